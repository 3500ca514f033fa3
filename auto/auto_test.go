package auto_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/auto"
)

const (
	types    = "official: openai-official, anthropic-official, google-official, zai-official, moonshot-official, deepseek-official, minimax-official; compatible: openai-responses, openai-chat, openai-chat-vllm-adapter, openai-embedding, ant-messages, google-genai, mmsp"
	noFamily = "no client for the model %q: it belongs to no known family; give a client type: " + types
)

func TestRouting(t *testing.T) {
	unknown := func(name string) string { return fmt.Sprintf("Unknown client type %q: %s", name, types) }
	for _, tt := range []struct{ model, given, environment, class, err string }{
		{"gpt-5.6", "", "", "OpenAIOfficialClient", ""},
		{"GPT-6-Astra", "", "", "OpenAIOfficialClient", ""},
		{"claude-sonnet-5-5", "", "", "AnthropicOfficialClient", ""},
		{"Claude-Opus", "", "", "AnthropicOfficialClient", ""},
		{"Gemini-3.8-flash", "", "", "GoogleOfficialClient", ""},
		{"GLM-5.3-flash", "", "", "ZAIOfficialClient", ""},
		{"kimi-k3", "", "", "MoonshotOfficialClient", ""},
		{"deepseek-v4", "", "", "DeepSeekOfficialClient", ""},
		{"MiniMax-M3", "", "", "MiniMaxOfficialClient", ""},
		{"text-embedding-3-large", "", "", "OpenaiEmbeddingClient", ""},
		{"Text-Embedding-3-large", "openai-official", "", "OpenaiEmbeddingClient", ""},
		{"text-embedding-3-large", "openai-responses", "", "OpenaiResponsesClient", ""},

		{"openai/gpt-5.6", "", "", "", fmt.Sprintf(noFamily, "openai/gpt-5.6")},
		{"my-gpt-5", "", "", "", fmt.Sprintf(noFamily, "my-gpt-5")},
		{"gpt", "", "", "", fmt.Sprintf(noFamily, "gpt")},
		{"llama-4", "", "", "", fmt.Sprintf(noFamily, "llama-4")},
		{"", "", "", "", fmt.Sprintf(noFamily, "")},

		{"claude-sonnet-5-5", "openai-chat", "", "OpenaiChatClient", ""},
		{"anything", "OpenAI-Chat", "", "OpenaiChatClient", ""},
		{"anything", "openai", "", "OpenaiChatClient", ""},
		{"anything", "OPENAI", "", "OpenaiChatClient", ""},
		{"anything", "openai-official", "", "OpenAIOfficialClient", ""},
		{"anything", "openai-chat-vllm-adapter", "", "OpenaiChatVllmAdapterClient", ""},
		{"anything", "google-official", "", "GoogleOfficialClient", ""},
		{"anything", "zai-official", "", "ZAIOfficialClient", ""},
		{"anything", "moonshot-official", "", "MoonshotOfficialClient", ""},
		{"zai-org/GLM-5.2", "", "", "", fmt.Sprintf(noFamily, "zai-org/GLM-5.2")},
		{"anything", "deepseek-official", "", "DeepSeekOfficialClient", ""},
		{"anything", "minimax-official", "", "MiniMaxOfficialClient", ""},
		{"anything", "openai-embedding", "", "OpenaiEmbeddingClient", ""},
		{"anything", "openai-responses", "", "OpenaiResponsesClient", ""},
		{"anything", "anthropic-official", "", "AnthropicOfficialClient", ""},
		{"anything", "ant-messages", "", "AntMessagesClient", ""},
		{"anything", "mmsp", "", "MmspClient", ""},

		{"gpt-5.6", "", "openai", "OpenaiChatClient", ""},
		{"gpt-5.6", "", "ANT-MESSAGES", "AntMessagesClient", ""},
		{"gpt-5.6", "mmsp", "ant-messages", "MmspClient", ""},
		{"gpt-5.6", "mmsp", "nonsense", "MmspClient", ""},

		{"gpt-5.6", "gemini-official", "", "", unknown("gemini-official")},
		{"gpt-5.6", "", "Nonsense", "", unknown("Nonsense")},
		{"gpt-5.6", "openai-chat ", "", "", unknown("openai-chat ")},
	} {
		t.Run(strings.Join([]string{tt.model, tt.given, tt.environment}, ","), func(t *testing.T) {
			client, err := auto.New(tt.model, mmsp.Options{
				ClientType: tt.given, APIKey: mmsp.NewSecret("k"), Model: "ignored",
				Getenv: func(name string) string { return map[string]string{"CLIENT_TYPE": tt.environment}[name] },
			})
			if tt.err != "" {
				if err == nil || err.Error() != tt.err {
					t.Errorf("got %v, want %s", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			model := client.Provider().(interface{ Model() string }).Model()
			if client.Provider().Class() != tt.class || model != tt.model {
				t.Errorf("got %s of %s, want %s", client.Provider().Class(), model, tt.class)
			}
		})
	}
}

func TestNames(t *testing.T) {
	want := []string{"openai-official", "anthropic-official", "google-official", "zai-official", "moonshot-official", "deepseek-official", "minimax-official", "openai-responses", "openai-chat", "openai-chat-vllm-adapter", "openai-embedding", "ant-messages", "google-genai", "mmsp"}
	if got := auto.Names(); !slices.Equal(got, want) {
		t.Error(got)
	}
	if got := auto.Accepted(); !slices.Equal(got, append(want, "openai")) {
		t.Error(got)
	}
	for _, name := range auto.Accepted() { // and each is accepted
		if _, err := auto.New("m", mmsp.Options{ClientType: name, APIKey: mmsp.NewSecret("k"), Getenv: func(string) string { return "" }}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestListModels: only a client that the model's family chose leaves out other families.
func TestListModels(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"data":[{"id":"gpt-5.6"},{"id":"deepseek-v4"},{"id":"claude-x"},{"id":"GPT-4"},{"id":"x/gpt-5"},{"id":"MiniMax-M3"},{"id":"deepseek-flash"},{"id":"text-embedding-3-small"}],"has_more":false}`)
	}))
	defer server.Close()
	const all = "gpt-5.6,deepseek-v4,claude-x,GPT-4,x/gpt-5,MiniMax-M3,deepseek-flash,text-embedding-3-small"
	for _, tt := range []struct{ model, given, environment, want string }{
		{"gpt-5.5", "", "", "gpt-5.6,GPT-4,text-embedding-3-small"},
		{"text-embedding-3-large", "", "", "gpt-5.6,GPT-4,text-embedding-3-small"},
		{"deepseek-v4", "", "", "deepseek-v4,deepseek-flash"},
		{"MiniMax-M3", "", "", "MiniMax-M3"},
		{"text-embedding-3-large", "openai-embedding", "", all},
		{"claude-y", "", "", "claude-x"},
		{"gpt-5.5", "openai-official", "", all},
		{"gpt-5.5", "", "openai-official", all},
		{"gpt-5.5", "openai-chat", "", all},
		{"gpt-5.5", "mmsp", "", all},
	} {
		client, err := auto.New(tt.model, mmsp.Options{
			ClientType: tt.given, APIKey: mmsp.NewSecret("k"), BaseURL: server.URL, HTTPClient: server.Client(),
			Getenv: func(name string) string { return map[string]string{"CLIENT_TYPE": tt.environment}[name] },
		})
		if err != nil {
			t.Fatal(err)
		}
		if ids, err := client.ListModels(t.Context()); err != nil || strings.Join(ids, ",") != tt.want {
			t.Errorf("%s/%s/%s: %v, %v", tt.model, tt.given, tt.environment, ids, err)
		}
	}
}

// TestCountTokens: a client that the model's family chose counts as one that was named does.
func TestCountTokens(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/messages/count_tokens") || strings.HasSuffix(r.URL.Path, "/responses/input_tokens") {
			io.WriteString(w, `{"input_tokens":7}`)
		} else {
			io.WriteString(w, `{"totalTokens":7}`)
		}
	}))
	defer server.Close()
	for _, tt := range []struct {
		model, given string
		counts       bool
	}{
		{"gpt-5.5", "", true},
		{"claude-y", "", true},
		{"gemini-3.5-flash", "", false}, // over Interactions
		{"deepseek-v4", "", false},
		{"gpt-5.5", "openai-official", true},
		{"gpt-5.5", "openai-responses", true},
		{"gpt-5.5", "openai-chat", false},
		{"gpt-5.5", "ant-messages", true},
		{"gpt-5.5", "google-genai", true},
		{"gpt-5.5", "mmsp", false},
	} {
		client, err := auto.New(tt.model, mmsp.Options{
			ClientType: tt.given, APIKey: mmsp.NewSecret("k"), BaseURL: server.URL, HTTPClient: server.Client(), Getenv: func(string) string { return "" },
		})
		if err != nil {
			t.Fatal(err)
		}
		n, err := client.CountTokens(t.Context(), []mmsp.Message{mmsp.UserMessage(mmsp.Text("Hi"))}, nil)
		unsupported, isUnsupported := errors.AsType[*mmsp.UnsupportedOperationError](err)
		if tt.counts && (n != 7 || err != nil) || !tt.counts && (!isUnsupported || unsupported.Client != client.Provider().Class()) {
			t.Errorf("%s/%s: %d, %v", tt.model, tt.given, n, err)
		}
	}
}
