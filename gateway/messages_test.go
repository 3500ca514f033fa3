package gateway_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/prism-shadow/mmsp-go/gateway/config"
)

// messagesRows are a row of each client type, whose one upstream speaks Messages and takes down what it is sent. Rows of
// other protocols get answers that they cannot read.
func messagesRows(t *testing.T, sent *[]string, took func(*http.Request, string) string) (models []config.Model) {
	for _, clientType := range []string{"ant-messages", "anthropic-official", "openai-chat", "openai-responses", "google-genai"} {
		row := chat(t, clientType, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			*sent = append(*sent, took(r, string(body)))
			if strings.HasSuffix(r.URL.Path, "/count_tokens") {
				_, _ = io.WriteString(w, `{"input_tokens":7}`)
				return
			}
			_, _ = io.WriteString(w, `{"type":"message","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","usage":{"input_tokens":7,"output_tokens":1}}`)
		})
		row.ClientType = clientType
		models = append(models, row)
	}
	return models
}

// The caller's betas reach the providers of its protocol, and no other.
func TestBetas(t *testing.T) {
	var sent []string
	s := start(t, everywhere(table(messagesRows(t, &sent, func(r *http.Request, body string) string {
		if strings.Contains(body, "context-1m") {
			t.Errorf("the body says it: %s", body)
		}
		return strings.Join(r.Header.Values("Anthropic-Beta"), " and ")
	})...)))
	for _, row := range []struct{ model, path, want string }{
		{"ant-messages", "/v1/messages?beta=true", "context-1m-2025-08-07,new"},
		{"ant-messages", "/v1/messages/count_tokens?beta=true", "context-1m-2025-08-07,new"},
		{"anthropic-official", "/v1/messages", "context-1m-2025-08-07,new"},
		{"anthropic-official", "/v1/messages/count_tokens", "context-1m-2025-08-07,new"},
		{"openai-chat", "/v1/messages", ""},
		{"openai-responses", "/v1/messages", ""},
		{"google-genai", "/v1/messages", ""},
	} {
		sent = nil
		r := s.request("POST", row.path, `{"model":"`+row.model+`","max_tokens":9,"messages":[{"role":"user","content":"Hi"}]}`)
		r.Header.Add("Anthropic-Beta", "context-1m-2025-08-07, not one")
		r.Header.Add("Anthropic-Beta", "new,new")
		if s.send(r); len(sent) != 1 || sent[0] != row.want {
			t.Errorf("%s of %s: sent %q, want %q", row.path, row.model, sent, row.want)
		}
	}
}
