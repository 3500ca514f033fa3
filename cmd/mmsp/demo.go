package main

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
	"net/http"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/gateway"
	"github.com/prism-shadow/mmsp-go/gateway/config"
	"github.com/prism-shadow/mmsp-go/simulate"
)

// demo is the simulated providers of `mmsp serve --demo`, and another MMSP server for the client type that needs one.
type demo struct {
	providers *simulate.Server
	server    *simulate.Server
	key       string
}

// demoRows serve one model per client type. The path is what stands between a provider's address and the client's own.
var demoRows = []struct{ clientType, model, provider, path string }{
	{"openai-official", "gpt-5.6-luna", "responses", "/v1"},
	{"anthropic-official", "claude-sonnet-5-5", "messages", ""},
	{"openai-responses", "demo-responses", "responses", "/v1"},
	{"openai-chat", "demo-chat", "chat", "/v1"},
	{"ant-messages", "demo-messages", "messages", ""},
}

// startDemo starts the providers on loopback sockets. The context of the command does not end them: running streams
// are drained first.
func startDemo() (*demo, error) {
	d := &demo{key: rand.Text()}
	o := simulate.Options{Key: d.key, Pace: simulate.DefaultPace}
	var err error
	d.providers, err = simulate.Start(context.Background(), map[string]http.Handler{
		"chat": simulate.Chat(o), "responses": simulate.Responses(o), "messages": simulate.Messages(o),
	})
	if err != nil {
		return nil, err
	}
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
			BaseURL: d.providers.URL(row.provider) + row.path, APIKey: mmsp.NewSecret(d.key),
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
	return errors.Join(err, d.providers.Close())
}
