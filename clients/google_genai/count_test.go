package googlegenai

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/prism-shadow/mmsp-go"
)

// The counter of Google's own endpoint takes the whole request, that of Vertex AI what of it counts.
func TestCountTokens(t *testing.T) {
	const given = `{"system_prompt":"Be brief.","max_tokens":9,"tools":[` + note + `],"tool_choice":"auto"}`
	const system, shape = `"systemInstruction":{"parts":[{"text":"Be brief."}]},"tools":[` + noteTool + `]`, `"contents":[` + hi + `],"generationConfig":{"maxOutputTokens":9}`
	var config mmsp.Config
	if err := json.Unmarshal([]byte(given), &config); err != nil {
		t.Fatal(err)
	}
	var seen string
	count := func(client *Client) {
		t.Helper()
		n, err := mmsp.NewClient(client).CountTokens(t.Context(), []mmsp.Message{mmsp.UserMessage(mmsp.Text("Hi"))}, &config)
		if n != 31 || err != nil {
			t.Error(n, err)
		}
	}
	const counted = `{"totalTokens":31,"cachedContentTokenCount":7,"promptTokensDetails":[{"modality":"TEXT","tokenCount":31}]}`

	count(serve(t, "gemini-x", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen = fmt.Sprint(r.Method, " ", r.URL, " ", r.Header.Get("X-Goog-Api-Key"), " ", string(body))
		io.WriteString(w, counted)
	}))
	if want := `POST /v1beta/models/gemini-x:countTokens the-key {"generateContentRequest":{"model":"models/gemini-x",` + system +
		`,"toolConfig":{"functionCallingConfig":{"mode":"AUTO"}},` + shape + `}}`; seen != want {
		t.Errorf("sent\n%s\nwant\n%s", seen, want)
	}

	count(build(t, "gemini-x", func(o *mmsp.Options) {
		o.APIKey = mmsp.NewSecret(serviceAccount(t))
		o.HTTPClient = &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			if r.URL.Host == "token.test" {
				return reply(200, `{"access_token":"t1","expires_in":3600,"token_type":"Bearer"}`), nil
			}
			body, _ := io.ReadAll(r.Body)
			seen = fmt.Sprint(r.Method, " ", r.URL, " ", r.Header.Get("Authorization"), " ", string(body))
			return reply(200, counted), nil
		})}
	}))
	if want := `POST https://aiplatform.googleapis.com/v1beta1/projects/harbour-7/locations/global/publishers/google/models/gemini-x:countTokens Bearer t1 {` +
		system + `,` + shape + `}`; seen != want {
		t.Errorf("sent\n%s\nwant\n%s", seen, want)
	}
}

func TestCountTokensFails(t *testing.T) {
	messages := []mmsp.Message{mmsp.UserMessage(mmsp.Text("Hi"))}
	for _, tt := range []struct {
		status      int
		body        string
		unsupported bool
	}{
		{400, `{"error":{"code":400,"message":"no","status":"INVALID_ARGUMENT"}}`, false},
		{404, `{"error":{"code":404,"message":"no","status":"NOT_FOUND"}}`, true},
		{405, ``, true},
		{501, ``, true},
		{429, `{"error":{"code":429,"message":"later","status":"RESOURCE_EXHAUSTED"}}`, false},
		{200, `{"candidates":[]}`, false},
		{200, `<html>`, false},
	} {
		_, err := serve(t, "m", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tt.status)
			io.WriteString(w, tt.body)
		}).CountTokens(t.Context(), messages, &mmsp.Config{})
		_, unsupported := errors.AsType[*mmsp.UnsupportedOperationError](err)
		_, failed := errors.AsType[*mmsp.UpstreamError](err)
		if unsupported != tt.unsupported || failed == tt.unsupported {
			t.Errorf("%d %s: %v", tt.status, tt.body, err)
		}
	}
	unsent := func(model string, messages []mmsp.Message, config *mmsp.Config) error {
		_, err := serve(t, model, func(http.ResponseWriter, *http.Request) { t.Error("a request went out") }).CountTokens(t.Context(), messages, config)
		return err
	}
	if err := unsent("m", messages, &mmsp.Config{TopK: new(int64)}); !errors.As(err, new(*mmsp.UnsupportedParameterError)) {
		t.Error(err)
	}
	if err := unsent("m", []mmsp.Message{mmsp.UserMessage(mmsp.Item{Type: mmsp.EmbeddingDone})}, &mmsp.Config{}); !errors.As(err, new(*mmsp.InvalidRequestError)) {
		t.Error(err)
	}
	if err := unsent("gemini-embedding-2", messages, &mmsp.Config{}); !errors.As(err, new(*mmsp.UnsupportedOperationError)) || !strings.Contains(err.Error(), "embedded") {
		t.Error(err)
	}
}
