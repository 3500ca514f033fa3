// Package chat is Chat Completions as callers speak it: POST /v1/chat/completions, the legacy layer. It reads every shape
// of message that the protocol ever had, and writes answers whole or as chunks. Nothing else of the product builds on it:
// the folder, the caller's side of its wire package and one line of the gateway are all there is of it.
package chat

import (
	"context"
	"crypto/rand"
	"net/http"
	"strings"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/ingress"
	"github.com/prism-shadow/mmsp-go/internal/carry"
	"github.com/prism-shadow/mmsp-go/wire/openaichat"
)

type protocol struct{}

// New returns the protocol.
func New() ingress.Protocol { return protocol{} }

func (protocol) Name() carry.Protocol { return carry.Chat }

// Parse reads the body of POST /v1/chat/completions.
func (protocol) Parse(_ *http.Request, body []byte) (ingress.Call, error) {
	b, err := openaichat.ReadBody(body)
	if err != nil {
		return nil, ingress.FromPath(err)
	}
	return &call{body: b}, nil
}

// AppendError appends {"error": {message, type, param, code}}.
func (protocol) AppendError(dst []byte, p *ingress.Problem) []byte {
	kind, code := p.OpenAI()
	return openaichat.AppendError(dst, p.Message, kind, p.Param, code)
}

// call is one request and its answer.
type call struct {
	body *openaichat.Body
	encoder
}

func (c *call) Model() string { return c.body.Model }
func (c *call) Streams() bool { return c.body.Stream }
func (c *call) Counts() bool  { return false }

// Read turns the body into MMSP's terms.
func (c *call) Read(ctx context.Context, env *ingress.Env) (*ingress.Request, error) {
	id := strings.TrimPrefix(env.RequestID, "req_")
	if id == "" {
		id = rand.Text()
	}
	c.encoder = encoder{
		id: id, created: env.Now.Unix(), model: c.body.Model, peer: env.Peer,
		legacy: len(c.body.Functions) > 0 && len(c.body.Tools) == 0,
		custom: customTools(c.body.Tools),
	}
	c.chunks = openaichat.NewChunks("chatcmpl-"+id, c.created, c.model, c.body.IncludeUsage)
	return read(ctx, c.body, env)
}

// customTools are the names of the tools whose input is a text; nil: none is.
func customTools(tools []openaichat.ToolSpec) (names map[string]bool) {
	for i := range tools {
		if tools[i].Type == "custom" {
			if names == nil {
				names = map[string]bool{}
			}
			names[tools[i].Name] = true
		}
	}
	return names
}

// Count is never called: the protocol does not count.
func (c *call) Count(dst []byte, _ int64) []byte { return dst }

var refusalMark = mmsp.Fidelity(`{"refusal":true}`)
