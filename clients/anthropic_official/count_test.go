package anthropicofficial

import (
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/prism-shadow/mmsp-go"
)

// The counter gets the prompt and what shapes it, and nothing that it refuses.
func TestCountTokens(t *testing.T) {
	const config = `{"system_prompt":"Be brief.","max_tokens":9,"stop_sequences":["x"],"service_tier":"auto","user":"u-1","fast_mode":true,"thinking_level":"high",` +
		`"tools":[{"name":"note","description":"d","parameters":{"type":"object"}}],"tool_choice":"auto"}`
	const want = `{"model":"m","thinking":{"type":"adaptive"},"output_config":{"effort":"high"},"cache_control":{"type":"ephemeral"},` +
		`"tools":[{"name":"note","description":"d","input_schema":{"type":"object"}}],"tool_choice":{"type":"auto"},` +
		`"system":"Be brief.","messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]}]}`
	client := mmsp.NewClient(testClient(t, "m", serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method != "POST" || r.URL.Path != "/v1/messages/count_tokens" || r.Header.Get("X-Api-Key") != "test-key" || r.Header.Get("Anthropic-Version") != "2023-06-01" {
			t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
		}
		if string(body) != want {
			t.Errorf("sent\n%s\nwant\n%s", body, want)
		}
		io.WriteString(w, `{"input_tokens":2095}`)
	})))
	n, err := client.CountTokens(t.Context(), []mmsp.Message{mmsp.UserMessage(mmsp.Text("Hi"))}, new(parse[mmsp.Config](t, config)))
	if n != 2095 || err != nil {
		t.Error(n, err)
	}
}

func TestCountTokensFails(t *testing.T) {
	hi := []mmsp.Message{mmsp.UserMessage(mmsp.Text("Hi"))}
	count := func(status int, body string) error {
		client := testClient(t, "m", transport(func(*http.Request) (*http.Response, error) { return answer(status, body), nil }))
		_, err := client.CountTokens(t.Context(), hi, &mmsp.Config{})
		return err
	}
	for _, tt := range []struct {
		status      int
		body        string
		unsupported bool
	}{
		{400, `{"type":"error","error":{"type":"invalid_request_error","message":"no"}}`, false},
		{404, `{"type":"error","error":{"type":"not_found_error","message":"no"}}`, false},
		{405, ``, false},
		{501, ``, false},
		{529, `{"type":"error","error":{"type":"overloaded_error","message":"later"}}`, false},
		{200, `{"type":"message"}`, false},
		{200, `<html>`, false},
	} {
		err := count(tt.status, tt.body)
		_, unsupported := errors.AsType[*mmsp.UnsupportedOperationError](err)
		_, failed := errors.AsType[*mmsp.UpstreamError](err)
		if unsupported != tt.unsupported || failed == tt.unsupported {
			t.Errorf("%d %s: %v", tt.status, tt.body, err)
		}
	}
	if _, err := testClient(t, "m", nil).CountTokens(t.Context(), hi, &mmsp.Config{Seed: new(int64)}); !errors.As(err, new(*mmsp.UnsupportedParameterError)) {
		t.Error(err)
	}
	if _, err := testClient(t, "m", nil).CountTokens(t.Context(), []mmsp.Message{mmsp.UserMessage(mmsp.Item{Type: mmsp.EmbeddingDone})}, &mmsp.Config{}); !errors.As(err, new(*mmsp.InvalidRequestError)) {
		t.Error(err)
	}
	const picture = "https://pictures.example/a.png"
	for _, item := range []mmsp.Item{mmsp.ImageURL(picture), mmsp.ToolResult("c", "seen", picture)} {
		_, err := testClient(t, "m", nil).CountTokens(t.Context(), []mmsp.Message{mmsp.UserMessage(mmsp.Text("Look."), item)}, &mmsp.Config{})
		if unsupported, ok := errors.AsType[*mmsp.UnsupportedOperationError](err); !ok || unsupported.Operation != "count_tokens" {
			t.Errorf("%s: %v", item.Type, err)
		}
	}
}
