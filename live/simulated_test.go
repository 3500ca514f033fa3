package live

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/auto"
	"github.com/prism-shadow/mmsp-go/gateway"
	"github.com/prism-shadow/mmsp-go/gateway/config"
	"github.com/prism-shadow/mmsp-go/simulate"
)

// simulated says which simulated provider a client type asks, and the path of its base URL there.
var simulated = map[string]struct{ provider, path string }{
	"openai-official": {"responses", "/v1"}, "openai-responses": {"responses", "/v1"},
	"deepseek-official": {"raw", ""}, "minimax-official": {"raw", "/v1"},
	"openai-chat": {"chat", "/v1"}, "openai-chat-vllm-adapter": {"vllm", "/v1"}, "moonshot-official": {"chat", "/v1"}, "zai-official": {"chat", "/api/paas/v4"},
	"openai-embedding": {"embeddings", "/v1"},
	"ant-messages":     {"messages", ""}, "anthropic-official": {"messages", ""},
	"google-official": {"gemini", ""}, "google-genai": {"gemini", ""},
	"mmsp": {"server", "/v1"},
}

// TestSimulated runs every check of every row against simulated providers, which refuse what is not sent back as it came.
func TestSimulated(t *testing.T) {
	const key = "access,secret"
	strict := simulate.Options{Key: key, Strict: true}
	for _, to := range availableModels {
		strict.Models = append(strict.Models, to.model)
	}
	vllm, raw := strict, strict
	vllm.ReasoningField, raw.RawReasoning = "reasoning", true
	server, err := simulate.Start(t.Context(), map[string]http.Handler{
		"chat": simulate.Chat(strict), "vllm": simulate.Chat(vllm), "responses": simulate.Responses(strict), "raw": simulate.Responses(raw),
		"messages": simulate.Messages(strict), "bedrock": simulate.Bedrock(strict), "gemini": simulate.Gemini(strict), "embeddings": simulate.Embeddings(strict),
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
	for _, to := range availableModels {
		t.Run(to.clientType+"/"+to.model, func(t *testing.T) {
			at, ok := simulated[to.clientType]
			if !ok {
				t.Fatal("no simulated provider")
			}
			env := map[string]string{}
			o := mmsp.Options{
				ClientType: to.clientType, APIKey: mmsp.NewSecret(key), HTTPClient: &http.Client{Transport: transport},
				HTTP: mmsp.HTTPOptions{MaxRetries: new(0)}, Getenv: func(name string) string { return env[name] },
			}
			switch {
			case to.clientType == "mmsp":
				o.BaseURL = serve(t, to.model, server.URL("chat")+"/v1", o.APIKey) + at.path
			case to.url == "bedrock://us-east-1":
				o.BaseURL, env["ANTHROPIC_BEDROCK_BASE_URL"] = to.url, server.URL("bedrock")
			case to.clientType == "openai-official" && to.can&embeddings != 0:
				o.BaseURL = server.URL("embeddings") + at.path
			default:
				o.BaseURL = server.URL(at.provider) + at.path
			}
			client, err := auto.New(to.model, o)
			if err != nil {
				t.Fatal(err)
			}
			silent := to.clientType == "zai-official" // Z.ai counts for everyone, this provider for those who ask
			(&session{&to, client, "Image 1 is image/png", silent}).check(t)
		})
	}
}

// serve runs an MMSP server for one model behind Chat Completions until the test ends and returns its address.
func serve(t *testing.T, model, upstream string, key mmsp.Secret) string {
	c := config.Defaults()
	c.Models = []config.Model{{ServerModelID: model, ModelID: model, ClientType: "openai-chat", BaseURL: upstream, APIKey: key}}
	c.APIKeys = []mmsp.Secret{key}
	server, err := gateway.New(&c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- server.Serve(ctx, listener, time.Second) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return "http://" + listener.Addr().String()
}
