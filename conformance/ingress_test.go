package conformance

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/prism-shadow/mmsp-go/gateway/config"
	"github.com/prism-shadow/mmsp-go/internal/wiregrammar"
)

// TestIngress asks every simulated provider through every protocol that callers speak: what comes back keeps to the grammar
// of that protocol, whichever the provider speaks.
func TestIngress(t *testing.T) {
	on := config.Endpoint{Enabled: true}
	url := simulation(t, config.Endpoints{Responses: on, ChatCompletions: on, Messages: on, GenerateContent: on, Embeddings: on})
	schema := dict{"type": "object", "properties": dict{"location": dict{"type": "string"}}}
	function := dict{"name": "get_weather", "description": "Get the weather of a place", "parameters": schema}
	protocols := []struct {
		name    string
		request func(model, prompt string, stream bool) (path string, body dict)
		stream  func([]byte) error
		whole   func([]byte) error
		failure func([]byte) error
	}{
		{"responses", func(model, prompt string, stream bool) (string, dict) {
			return "/v1/responses", dict{"model": model, "stream": stream, "input": prompt, "tools": []any{weather}, "include": []any{"reasoning.encrypted_content"}}
		}, wiregrammar.Responses, wiregrammar.ResponsesResource, wiregrammar.OpenAIError},
		{"chat", func(model, prompt string, stream bool) (string, dict) {
			return "/v1/chat/completions", dict{"model": model, "stream": stream, "messages": []any{dict{"role": "user", "content": prompt}}, "tools": []any{dict{"type": "function", "function": function}}}
		}, func(b []byte) error { return wiregrammar.Chat(b, false) }, wiregrammar.ChatCompletion, wiregrammar.OpenAIError},
		{"chat with usage", func(model, prompt string, _ bool) (string, dict) {
			return "/v1/chat/completions", dict{"model": model, "stream": true, "stream_options": dict{"include_usage": true}, "messages": []any{dict{"role": "user", "content": prompt}}}
		}, func(b []byte) error { return wiregrammar.Chat(b, true) }, nil, wiregrammar.OpenAIError},
		{"messages", func(model, prompt string, stream bool) (string, dict) {
			return "/v1/messages", dict{
				"model": model, "stream": stream, "max_tokens": 4096, "messages": []any{dict{"role": "user", "content": prompt}},
				"tools": []any{dict{"name": "get_weather", "input_schema": schema}},
			}
		}, wiregrammar.Messages, wiregrammar.Message, wiregrammar.AnthropicError},
		{"generateContent", func(model, prompt string, stream bool) (string, dict) {
			verb := ":generateContent"
			if stream {
				verb = ":streamGenerateContent?alt=sse"
			}
			return "/v1beta/models/" + model + verb, dict{"contents": []any{dict{"parts": []any{dict{"text": prompt}}}}, "tools": []any{dict{"functionDeclarations": []any{function}}}}
		}, wiregrammar.GenerateContent, wiregrammar.GenerateContentResponse, wiregrammar.GeminiError},
		{"generateContent in an array", func(model, prompt string, _ bool) (string, dict) {
			return "/v1beta/models/" + model + ":streamGenerateContent", dict{"contents": []any{dict{"parts": []any{dict{"text": prompt}}}}}
		}, wiregrammar.GenerateContentArray, nil, wiregrammar.GeminiError},
	}
	prompts := []string{
		"Say hello.", "Think about it.", "Think, but redacted.", "Call the tool for Oslo.", "Think, then call the tool, parallel.", "Call the tool, parallel, interleaved.",
		"A long answer.", "Long, up to the length.", "Call the tool, up to the length.", "Think, up to the length.", "Please refuse.", "Please refuse, filter.",
		"Call the tool, refuse, filter.", "Please block.", "Give an empty answer.", "Paint it.", "Think and paint.", "Please say it.", "Please fail.", "Think, then fail.",
		"Please cut.", "Please cut, clean.", "An error 400.", "An error 401.", "An error 404.", "An error 413.", "An error 429.", "An error 500.", "An error 503.", "An error 529.",
	}
	for _, p := range protocols {
		for _, row := range simulated[:6] {
			t.Run(p.name+"/"+row.clientType, func(t *testing.T) {
				t.Parallel()
				for _, prompt := range prompts {
					for _, stream := range []bool{false, true} {
						path, body := p.request(row.clientType, prompt, stream)
						status, answer, h := post(t, url+path, body)
						grammar := p.failure
						switch {
						case status != http.StatusOK:
							if !strings.Contains(prompt, "error") && !strings.Contains(prompt, "fail") && !strings.Contains(prompt, "cut") {
								t.Errorf("%s (stream %v): HTTP %d: %s", prompt, stream, status, answer)
							}
						case stream || p.whole == nil:
							grammar = p.stream
						default:
							grammar = p.whole
						}
						if err := grammar(answer); err != nil {
							t.Errorf("%s (stream %v): HTTP %d, %s: %v\n%.4000s", prompt, stream, status, h.Get("Content-Type"), err, answer)
						}
					}
				}
			})
		}
		t.Run(p.name+"/no such model", func(t *testing.T) {
			path, body := p.request("unknown", "Hi.", true)
			status, answer, _ := post(t, url+path, body)
			if err := p.failure(answer); err != nil || status != http.StatusNotFound {
				t.Errorf("HTTP %d: %v\n%s", status, err, answer)
			}
		})
	}

	t.Run("embeddings", func(t *testing.T) {
		for _, input := range []any{[]any{"Oslo", "Bergen"}, []any{15339, 1917}, []any{[]any{15339}, []any{1917}}} {
			for _, base64 := range []bool{false, true} {
				body := dict{"model": "openai-embedding", "input": input}
				if base64 {
					body["encoding_format"] = "base64"
				}
				status, answer, _ := post(t, url+"/v1/embeddings", body)
				if err := wiregrammar.Embeddings(answer, base64); err != nil || status != http.StatusOK {
					t.Errorf("%v: HTTP %d: %v\n%.1000s", input, status, err, answer)
				}
			}
		}
		for _, wrong := range []any{nil, 3, "", []any{}, []any{""}, []any{3.5}} {
			status, answer, _ := post(t, url+"/v1/embeddings", dict{"model": "openai-embedding", "input": wrong})
			var failure struct{ Error struct{ Param string } }
			if err := wiregrammar.OpenAIError(answer); err != nil || status != http.StatusBadRequest || json.Unmarshal(answer, &failure) != nil || !strings.HasPrefix(failure.Error.Param, "input") {
				t.Errorf("input %v: HTTP %d: %v\n%.1000s", wrong, status, err, answer)
			}
		}
	})
	t.Run("models", func(t *testing.T) {
		for path, grammar := range map[string]func([]byte) error{"/v1/models": wiregrammar.ModelList, "/v1beta/models": wiregrammar.GeminiModelList} {
			status, answer, _ := send(t, http.MethodGet, url+path, nil)
			if err := grammar(answer); err != nil || status != http.StatusOK {
				t.Errorf("GET %s: HTTP %d: %v\n%s", path, status, err, answer)
			}
		}
	})
}
