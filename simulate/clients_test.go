package simulate_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/auto"
	"github.com/prism-shadow/mmsp-go/simulate"
)

// here sends every request to the host of a simulated provider, which has no TLS.
type here struct {
	host string
	next *http.Transport
}

func (h here) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host = "http", h.host
	r.Host = ""
	return h.next.RoundTrip(r)
}

// TestClients holds a conversation with each protocol through each client type that speaks it: calls with their
// thinking, the results, then more words. What a client does not hand back as it came, the provider refuses.
func TestClients(t *testing.T) {
	const key = "AKID,secret"
	strict := simulate.Options{Key: key, Strict: true}
	with := func(change func(*simulate.Options)) simulate.Options { o := strict; change(&o); return o }
	vertex := simulate.Vertex(strict)
	raw := simulate.Responses(with(func(o *simulate.Options) { o.RawReasoning = true }))
	server, err := simulate.Start(t.Context(), map[string]http.Handler{
		"chat": simulate.Chat(strict), "vllm": simulate.Chat(with(func(o *simulate.Options) { o.ReasoningField = "reasoning" })),
		"responses": simulate.Responses(strict), "raw": raw, "messages": simulate.Messages(strict), "bedrock": simulate.Bedrock(strict),
		"gemini": simulate.Gemini(strict), "vertex": vertex, "embeddings": simulate.Embeddings(strict),
	})
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	client := func(t *testing.T, clientType, model, provider, path string) *mmsp.Client {
		o := mmsp.Options{
			ClientType: clientType, APIKey: mmsp.NewSecret(key), BaseURL: server.URL(provider) + path, HTTPClient: &http.Client{Transport: transport},
			HTTP: mmsp.HTTPOptions{MaxRetries: new(0)}, Getenv: func(string) string { return "" },
		}
		switch provider {
		case "bedrock":
			o.BaseURL = "bedrock://us-east-1"
			o.Getenv = func(name string) string {
				return map[string]string{"ANTHROPIC_BEDROCK_BASE_URL": server.URL("bedrock")}[name]
			}
		case "vertex":
			host, _, _ := strings.Cut(strings.TrimPrefix(server.URL("vertex"), "http://"), "/")
			o.APIKey = mmsp.NewSecret(vertex.ServiceAccountKey("https://" + host + "/vertex"))
			o.HTTPClient = &http.Client{Transport: here{host, transport}}
		}
		c, err := auto.New(model, o)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	ask := func(t *testing.T, c *mmsp.Client, history []mmsp.Message, config *mmsp.Config) mmsp.Message {
		t.Helper()
		answer := mmsp.Message{Role: mmsp.RoleAssistant}
		for event, err := range c.StreamingResponse(t.Context(), history, config) {
			if err != nil {
				t.Fatal(err)
			}
			if event.Type == mmsp.EventStop {
				answer.FinishReason = event.FinishReason
			} else if !event.Item.Type.IsDelta() {
				answer.ContentItems = append(answer.ContentItems, event.Item)
			}
		}
		return answer
	}
	config := &mmsp.Config{ThinkingLevel: mmsp.ThinkingHigh, ThinkingSummary: new(true), Tools: []mmsp.Tool{
		{Name: "weather", Description: "tells the weather", Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`)},
		{Name: "clock", Description: "tells the time", Parameters: json.RawMessage(`{"type":"object"}`)},
	}}
	kinds := func(m mmsp.Message) (all string) {
		for _, item := range m.ContentItems {
			all += item.Type.Kind() + " "
		}
		return all
	}
	for _, row := range []struct{ clientType, model, provider, path string }{
		{"openai-official", "gpt-5.6-luna", "responses", "/v1"},
		{"openai-responses", "m", "responses", "/v1"},
		{"openai-responses", "m", "raw", "/v1"},
		{"deepseek-official", "deepseek-flash", "raw", ""},
		{"minimax-official", "MiniMax-M3", "raw", "/v1"},
		{"openai-chat", "m", "chat", "/v1"},
		{"openai-chat-vllm-adapter", "qwen3.6-35b-a3b", "vllm", "/v1"},
		{"moonshot-official", "kimi-k3", "chat", "/v1"},
		{"zai-official", "glm-5.3", "chat", "/api/paas/v4"},
		{"ant-messages", "m", "messages", ""},
		{"anthropic-official", "claude-sonnet-5-5", "messages", ""},
		{"anthropic-official", "anthropic.claude-sonnet-5-5-v1:0", "bedrock", ""},
		{"google-official", "gemini-3.8-flash", "gemini", ""},
		{"google-genai", "gemini-3.8-flash", "gemini", ""},
		{"google-genai", "gemini-3.8-flash", "vertex", ""},
	} {
		t.Run(row.clientType+" "+row.provider, func(t *testing.T) {
			c := client(t, row.clientType, row.model, row.provider, row.path)
			history := []mmsp.Message{mmsp.UserMessage(mmsp.Text("think, parallel: weather in Oslo"))}
			for round, said := range []string{"think, call the clock", "what now?"} {
				answer := ask(t, c, history, config)
				if got := kinds(answer); !strings.HasPrefix(got, "thinking ") || !strings.Contains(got, "tool_call ") || answer.FinishReason != mmsp.FinishToolCall {
					t.Fatalf("round %d: %s, %s", round, got, answer.FinishReason)
				}
				var results []mmsp.Item
				for _, item := range answer.ContentItems {
					if item.Type == mmsp.ToolCallDone {
						results = append(results, mmsp.Item{Type: mmsp.ToolResultDone, ToolCallID: item.ToolCallID, Text: "fine at " + item.Name})
					}
				}
				history = append(history, answer, mmsp.Message{Role: mmsp.RoleUser, ContentItems: results})
				answer = ask(t, c, history, config)
				if text := answer.Text(); !strings.Contains(text, "“fine at "+results[0].Text[len("fine at "):]) {
					t.Fatalf("round %d: %s, %q", round, kinds(answer), text)
				}
				history = append(history, answer, mmsp.UserMessage(mmsp.Text(said)))
			}
			if answer := ask(t, c, history, config); !strings.Contains(answer.Text(), "This is turn 3") {
				t.Errorf("%s, %q", kinds(answer), answer.Text())
			}
		})
	}

	for _, row := range []struct{ clientType, provider string }{{"google-official", "gemini"}, {"google-genai", "gemini"}, {"google-genai", "vertex"}} {
		t.Run(row.clientType+" "+row.provider+" media", func(t *testing.T) {
			c := client(t, row.clientType, "gemini-3.1-flash-image", row.provider, "")
			history := []mmsp.Message{mmsp.UserMessage(mmsp.Text("think, paint a boat"))}
			answer := ask(t, c, history, nil)
			if got := kinds(answer); got != "thinking inline_thinking text inline_data " || len(answer.ContentItems[3].Data) < 60 {
				t.Fatal(got)
			}
			history = append(history, answer, mmsp.UserMessage(mmsp.Text("and a house")))
			ask(t, c, history, nil)

			c = client(t, row.clientType, "gemini-3.1-flash-tts-preview", row.provider, "")
			if answer := ask(t, c, []mmsp.Message{mmsp.UserMessage(mmsp.Text("read this"))}, nil); kinds(answer) != "inline_data " || len(answer.ContentItems[0].Data) < 10_000 {
				t.Error(kinds(answer), answer.ContentItems[0].MimeType)
			}

			c = client(t, row.clientType, "gemini-embedding-2", row.provider, "")
			messages := []mmsp.Message{mmsp.UserMessage(mmsp.Text("one")), mmsp.UserMessage(mmsp.Text("two"))}
			if answer := ask(t, c, messages, nil); kinds(answer) != "embedding embedding " || len(answer.ContentItems[1].Embedding) != 3072 {
				t.Error(kinds(answer))
			}
			if ids, err := c.ListModels(t.Context()); err != nil || len(ids) != 1 {
				t.Error(ids, err)
			}
		})
	}
	t.Run("openai-embedding", func(t *testing.T) {
		c := client(t, "openai-embedding", "m", "embeddings", "/v1")
		config := &mmsp.Config{EmbeddingConfig: &mmsp.EmbeddingConfig{Dimensions: new(int64(64))}}
		answer := ask(t, c, []mmsp.Message{mmsp.UserMessage(mmsp.Text("one")), mmsp.UserMessage(mmsp.Text("two"))}, config)
		if kinds(answer) != "embedding embedding " || len(answer.ContentItems[0].Embedding) != 64 {
			t.Error(kinds(answer))
		}
	})
}
