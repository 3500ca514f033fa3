package openairesponses

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/prism-shadow/mmsp-go"
)

// The counter gets the prompt and what shapes it, and nothing that it does not know.
func TestCountTokens(t *testing.T) {
	const given = `{"system_prompt":"Be brief.","max_tokens":9,"service_tier":"flex","user":"u-1","metadata":{"a":"b"},"thinking_level":"high","verbosity":"low",` +
		`"tools":[{"name":"note","description":"d","parameters":{"type":"object"}}],"tool_choice":"auto","parallel_tool_calls":false}`
	const want = `{"model":"m","instructions":"Be brief.","reasoning":{"effort":"high"},` +
		`"tools":[{"type":"function","name":"note","description":"d","parameters":{"type":"object"}}],"tool_choice":"auto","parallel_tool_calls":false,` +
		`"text":{"verbosity":"low"},"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi"}]}]}`
	var config mmsp.Config
	if err := json.Unmarshal([]byte(given), &config); err != nil {
		t.Fatal(err)
	}
	client := mmsp.NewClient(newClient(t, mmsp.Options{Model: "m"}, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method != "POST" || r.URL.Path != "/v1/responses/input_tokens" || r.Header.Get("Authorization") != "Bearer sk-test" {
			t.Errorf("%s %s %v", r.Method, r.URL, r.Header)
		}
		if string(body) != want {
			t.Errorf("sent\n%s\nwant\n%s", body, want)
		}
		_, _ = io.WriteString(w, `{"object":"response.input_tokens","input_tokens":11}`)
	}))
	n, err := client.CountTokens(t.Context(), []mmsp.Message{mmsp.UserMessage(mmsp.Text("Hi"))}, &config)
	if n != 11 || err != nil {
		t.Error(n, err)
	}
}

func TestCountTokensFails(t *testing.T) {
	hi := []mmsp.Message{mmsp.UserMessage(mmsp.Text("Hi"))}
	for _, c := range []struct {
		status      int
		body        string
		unsupported bool
	}{
		{400, `{"error":{"type":"invalid_request_error","message":"no"}}`, false},
		{404, `{"error":{"message":"Invalid URL (POST /v1/responses/input_tokens)"}}`, true},
		{405, ``, true},
		{501, ``, true},
		{503, ``, false},
		{200, `{"object":"response","output":[]}`, false},
		{200, `<html>`, false},
	} {
		_, err := newClient(t, mmsp.Options{}, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		}).CountTokens(t.Context(), hi, &mmsp.Config{})
		_, unsupported := errors.AsType[*mmsp.UnsupportedOperationError](err)
		_, failed := errors.AsType[*mmsp.UpstreamError](err)
		if unsupported != c.unsupported || failed == c.unsupported {
			t.Errorf("%d %s: %v", c.status, c.body, err)
		}
	}
	unsent := newClient(t, mmsp.Options{}, func(http.ResponseWriter, *http.Request) { t.Error("a request went out") })
	if _, err := unsent.CountTokens(t.Context(), hi, &mmsp.Config{Seed: new(int64)}); !errors.As(err, new(*mmsp.UnsupportedParameterError)) {
		t.Error(err)
	}
	if _, err := unsent.CountTokens(t.Context(), []mmsp.Message{mmsp.UserMessage(mmsp.Item{Type: mmsp.EmbeddingDone})}, &mmsp.Config{}); !errors.As(err, new(*mmsp.InvalidRequestError)) {
		t.Error(err)
	}
}
