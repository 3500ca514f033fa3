package gateway_test

import (
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/gateway/config"
	"github.com/prism-shadow/mmsp-go/simulate"
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

// A request for no tokens warms the cache of a provider of the protocol; others are asked for the least there is. Its answer
// is a turn that the limit ended.
func TestNoTokens(t *testing.T) {
	providers, err := simulate.Start(t.Context(), map[string]http.Handler{
		"anthropic": simulate.Messages(simulate.Options{}), "aws": simulate.Bedrock(simulate.Options{Key: "access,secret"}),
		"chat": simulate.Chat(simulate.Options{}), "responses": simulate.Responses(simulate.Options{Strict: true}),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { providers.Close() })
	t.Setenv("ANTHROPIC_BEDROCK_BASE_URL", providers.URL("aws"))
	c := everywhere(table())
	add := func(id, clientType, url string) *config.Model {
		c.Models = append(c.Models, config.Model{ServerModelID: id, ModelID: "m", ClientType: clientType, BaseURL: url, APIKey: mmsp.NewSecret("access,secret")})
		return &c.Models[len(c.Models)-1]
	}
	add("official", "anthropic-official", providers.URL("anthropic"))
	add("messages", "ant-messages", providers.URL("anthropic"))
	add("bedrock", "anthropic-official", "bedrock://us-east-1")
	add("responses", "openai-official", providers.URL("responses"))
	add("chat", "openai-chat", providers.URL("chat"))
	add("strict", "openai-chat", providers.URL("chat")).Strict = true
	s := start(t, c)
	for _, row := range []struct {
		model   string
		status  int
		empty   bool
		dropped string
	}{
		{"official", 200, true, ""},
		{"messages", 200, true, ""},
		{"bedrock", 200, false, "max_tokens"},
		{"chat", 200, false, "max_tokens"},
		{"responses", 200, false, "max_tokens"},
		{"strict", 400, true, ""},
	} {
		for _, stream := range []bool{false, true} {
			body := strings.Replace(messagesDialect.body(row.model, "long", stream), `"max_tokens":1000`, `"max_tokens":0`, 1)
			got := s.send(s.request("POST", "/v1/messages", body))
			if got.status != row.status || got.header.Get("X-Mmsp-Dropped") != row.dropped {
				t.Errorf("%s: %d %v %s", row.model, got.status, got.header, got.body)
			}
			ended := strings.Contains(got.body, `"stop_reason":"max_tokens"`)
			text := strings.Contains(got.body, `"type":"text`)
			if ended != (row.status == 200) || text == row.empty {
				t.Errorf("%s, stream %v: %s", row.model, stream, got.body)
			}
			if stream && row.status == 200 {
				messagesDialect.ending(t, got)
			}
		}
	}
}

// Callers of other protocols may ask for a temperature that Messages does not have.
func TestHighTemperature(t *testing.T) {
	var sent []string
	models := messagesRows(t, &sent, func(_ *http.Request, body string) string {
		return regexp.MustCompile(`"temperature":[0-9.]+`).FindString(body)
	})
	strict := models[0]
	strict.ServerModelID, strict.Strict = "strict", true
	s := start(t, everywhere(table(append(models, strict)...)))
	for _, row := range []struct {
		model, temperature string
		status             int
		sent               []string
		dropped            string
	}{
		{"ant-messages", "1.5", 200, []string{`"temperature":1`}, "temperature"},
		{"ant-messages", "1", 200, []string{`"temperature":1`}, ""},
		{"ant-messages", "0.5", 200, []string{`"temperature":0.5`}, ""},
		{"anthropic-official", "1.5", 200, []string{""}, "temperature"}, // whose models have 1 alone, unsaid
		{"strict", "1.5", 400, nil, ""},
		{"openai-chat", "1.5", 502, []string{`"temperature":1.5`}, ""},
	} {
		for path, body := range map[string]string{
			"/v1/chat/completions": `{"model":"` + row.model + `","temperature":` + row.temperature + `,"messages":[{"role":"user","content":"Hi"}]}`,
			"/v1/responses":        `{"model":"` + row.model + `","temperature":` + row.temperature + `,"input":"Hi"}`,
			"/v1beta/models/" + row.model + ":generateContent": `{"generationConfig":{"temperature":` + row.temperature + `},"contents":[{"parts":[{"text":"Hi"}]}]}`,
		} {
			sent = nil
			got := s.send(s.request("POST", path, body))
			if got.status != row.status || !slices.Equal(sent, row.sent) || got.header.Get("X-Mmsp-Dropped") != row.dropped {
				t.Errorf("%s of %s: %d %q %v %s", path, row.model, got.status, sent, got.header, got.body)
			}
		}
	}
}

// What the caller asks of the prompt's cache reaches the clients that have a word for it. It is said where nothing is made of
// it, and how long it is to last where a provider caches by itself.
func TestCacheControl(t *testing.T) {
	var sent []string
	models := messagesRows(t, &sent, func(_ *http.Request, body string) string {
		return strings.Join(regexp.MustCompile(`"cache_control":\{[^}]*\}`).FindAllString(body, -1), " ")
	})
	strict := models[0]
	strict.ServerModelID, strict.Strict = "strict", true
	s := start(t, everywhere(table(append(models, strict)...)))
	const (
		short = `"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],`
		long  = `"tools":[{"name":"f","input_schema":{},"cache_control":{"type":"ephemeral","ttl":"1h"}}],"cache_control":{"type":"ephemeral"},`
	)
	for _, row := range []struct {
		model, asks   string
		status        int
		sent, dropped string
	}{
		{"ant-messages", "", 200, "", ""},
		{"ant-messages", short, 200, "", "cache_control"},
		{"ant-messages", long, 200, "", "cache_control"},
		{"anthropic-official", "", 200, `"cache_control":{"type":"ephemeral"}`, ""},
		{"anthropic-official", short, 200, `"cache_control":{"type":"ephemeral"}`, ""},
		{"anthropic-official", long, 200, `"cache_control":{"type":"ephemeral","ttl":"1h"}`, ""},
		{"openai-chat", short, 502, "", ""},
		{"openai-chat", long, 502, "", "prompt_caching"},
		{"openai-responses", short, 502, "", ""},
		{"openai-responses", long, 502, "", "prompt_caching"},
		{"google-genai", short, 502, "", ""},
		{"google-genai", long, 502, "", "prompt_caching"},
		{"strict", "", 200, "", ""},
		{"strict", short, 400, "", ""},
	} {
		sent = nil
		got := s.send(s.request("POST", "/v1/messages", `{"model":"`+row.model+`","max_tokens":99,`+row.asks+`"messages":[{"role":"user","content":"Hi"}]}`))
		if got.status != row.status || strings.Join(sent, " ") != row.sent || got.header.Get("X-Mmsp-Dropped") != row.dropped {
			t.Errorf("%s, %s: %d %q %v %s", row.model, row.asks, got.status, sent, got.header, got.body)
		}
	}
}
