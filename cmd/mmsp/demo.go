package main

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net/http"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/clients/anthropic_official"
	"github.com/prism-shadow/mmsp-go/gateway"
	"github.com/prism-shadow/mmsp-go/gateway/config"
	"github.com/prism-shadow/mmsp-go/simulate"
)

// demo is the simulated providers of `mmsp serve --demo`, and another MMSP server for the client type that needs one.
type demo struct {
	providers map[string]*simulate.Server // each at an address of its own, as who issued a proof is told by it
	server    *simulate.Server
	bedrock   gateway.Own
	key       string
}

// demoRows serve one model per client type; only Bedrock's and another server's row are made apart. The path is what
// stands between a provider's address and the client's own.
var demoRows = []struct{ clientType, model, provider, path string }{
	{"openai-official", "gpt-5.6-luna", "responses", "/v1"},
	{"anthropic-official", "claude-sonnet-5-5", "messages", ""},
	{"openai-responses", "demo-responses", "open", "/v1"},
	{"openai-chat", "demo-chat", "chat", "/v1"},
	{"openai-embedding", "demo-embedding", "embeddings", "/v1"},
	{"openai-chat-vllm-adapter", "qwen3.6-35b-a3b", "vllm", "/v1"},
	{"ant-messages", "demo-messages", "compatible", ""},
	{"google-official", "gemini-3.8-flash", "gemini", ""},
	{"google-genai", "gemini-3.8-flash", "gemini", ""},
	{"deepseek-official", "deepseek-flash", "deepseek", ""},
	{"minimax-official", "MiniMax-M3", "minimax", "/v1"},
	{"moonshot-official", "kimi-k3", "kimi", "/v1"},
	{"zai-official", "glm-5.3", "glm", "/api/paas/v4"},
}

// startDemo starts the providers on loopback sockets. The context of the command does not end them: running streams
// are drained first.
func startDemo() (*demo, error) {
	d := &demo{key: rand.Text()}
	o := simulate.Options{Key: d.key, Pace: simulate.DefaultPace}
	plain, kimi, glm, vllm, aws := o, o, o, o, o
	plain.RawReasoning = true // reasoning in plain text
	kimi.Strict = true        // reasoning has to come back
	kimi.AlwaysUsage = true
	glm.AlwaysUsage = true
	vllm.ReasoningField = "reasoning"
	aws.Key = "demo," + d.key
	d.providers = map[string]*simulate.Server{}
	for name, provider := range map[string]http.Handler{
		"chat": simulate.Chat(o), "kimi": simulate.Chat(kimi), "glm": simulate.Chat(glm), "vllm": simulate.Chat(vllm),
		"responses": simulate.Responses(o), "open": simulate.Responses(o), "deepseek": simulate.Responses(plain), "minimax": simulate.Responses(plain),
		"messages": simulate.Messages(o), "compatible": simulate.Messages(o), "bedrock": simulate.Bedrock(aws),
		"gemini": simulate.Gemini(o), "embeddings": simulate.Embeddings(o),
	} {
		server, err := simulate.Start(context.Background(), map[string]http.Handler{name: provider})
		if err != nil {
			return nil, errors.Join(err, d.Close())
		}
		d.providers[name] = server
	}
	// The region of a Bedrock row says where to go, so that only this row's environment can lead to the simulation.
	bedrock, err := anthropicofficial.New(mmsp.Options{
		Model: "anthropic.claude-sonnet-5-5-v1:0", BaseURL: "bedrock://us-east-1", APIKey: mmsp.NewSecret(aws.Key),
		Getenv: func(name string) string {
			return map[string]string{"ANTHROPIC_BEDROCK_BASE_URL": d.providers["bedrock"].URL("bedrock")}[name]
		},
	})
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	d.bedrock = gateway.Own{ID: "demo-bedrock", Client: mmsp.NewClient(bedrock), ClientType: "anthropic-official"}
	inner, err := gateway.New(d.table(), slog.New(slog.NewTextHandler(io.Discard, nil)))
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	d.server, err = simulate.Start(context.Background(), map[string]http.Handler{"mmsp": inner})
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

// table is the configuration of the rows that reach the providers.
func (d *demo) table() *config.Config {
	c := new(config.Defaults())
	for _, row := range demoRows {
		c.Models = append(c.Models, config.Model{
			ServerModelID: "demo-" + row.clientType, ModelID: row.model, ClientType: row.clientType,
			BaseURL: d.providers[row.provider].URL(row.provider) + row.path, APIKey: mmsp.NewSecret(d.key),
		})
	}
	return c
}

// config is the configuration of the demo's server.
func (d *demo) config() *config.Config {
	c := d.table()
	c.Models = append(c.Models, config.Model{
		ServerModelID: "demo-mmsp", ModelID: "demo-openai-chat", ClientType: "mmsp", BaseURL: d.server.URL("mmsp") + "/v1",
	})
	return c
}

// Close ends the providers.
func (d *demo) Close() error {
	var err error
	if d.server != nil {
		err = d.server.Close()
	}
	for _, provider := range d.providers {
		err = errors.Join(err, provider.Close())
	}
	return err
}
