// Package embeddings is the Embeddings protocol as callers speak it: POST /v1/embeddings. Every text is a message of its
// own, which is what the clients that make vectors take.
package embeddings

import (
	"context"
	"fmt"
	"net/http"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/ingress"
	"github.com/prism-shadow/mmsp-go/internal/carry"
	"github.com/prism-shadow/mmsp-go/wire/openaiembedding"
)

type protocol struct{}

// New returns the protocol.
func New() ingress.Protocol { return protocol{} }

func (protocol) Name() carry.Protocol { return carry.Embeddings }

// Parse reads the body of POST /v1/embeddings.
func (protocol) Parse(_ *http.Request, body []byte) (ingress.Call, error) {
	b, err := openaiembedding.ReadBody(body)
	if err != nil {
		return nil, ingress.FromPath(err)
	}
	return call{b}, nil
}

// AppendError appends {"error": {message, type, param, code}}.
func (protocol) AppendError(dst []byte, p *ingress.Problem) []byte {
	kind, code := p.OpenAI()
	return openaiembedding.AppendError(dst, p.Message, kind, p.Param, code)
}

// call is one request. Its answer never streams.
type call struct{ body *openaiembedding.Body }

func (c call) Model() string { return c.body.Model }
func (c call) Streams() bool { return false }
func (c call) Counts() bool  { return false }

// Read turns the body into MMSP's terms.
func (c call) Read(context.Context, *ingress.Env) (*ingress.Request, error) {
	request := &ingress.Request{Embeds: true, Unknown: c.body.Unknown}
	for i, input := range c.body.Input {
		path := "input"
		if !c.body.Single {
			path = fmt.Sprintf("input[%d]", i)
		}
		text := input.Text
		if input.Tokens != nil {
			var err error
			if text, err = decode(input.Tokens, path); err != nil {
				return nil, err
			}
		}
		request.Messages = append(request.Messages, mmsp.UserMessage(mmsp.Text(text)))
		request.Paths = append(request.Paths, []string{path})
	}
	request.Config.User = c.body.User
	if c.body.Dimensions != nil {
		request.Config.EmbeddingConfig = &mmsp.EmbeddingConfig{Dimensions: c.body.Dimensions}
	}
	return request, nil
}

// Whole appends the vectors in the order of the texts.
func (c call) Whole(dst []byte, answer *mmsp.Message) []byte {
	a := openaiembedding.Answer{Base64: c.body.Base64, Model: c.body.Model}
	for i := range answer.ContentItems {
		if item := &answer.ContentItems[i]; item.Type == mmsp.EmbeddingDone {
			a.Vectors = append(a.Vectors, item.Embedding)
		}
	}
	if u := answer.Usage; u != nil {
		if n := ingress.Sum(u.CachedTokens, u.PromptTokens); n != nil {
			a.PromptTokens = *n
		}
	}
	return a.Append(dst)
}

// The methods of a stream and of a count are never called. What a failure would say is said all the same.

func (c call) ContentType() string                          { return "application/json" }
func (c call) Heartbeat(dst []byte) []byte                  { return dst }
func (c call) Event(dst []byte, _ *mmsp.Event) []byte       { return dst }
func (c call) Stop(dst []byte, answer *mmsp.Message) []byte { return c.Whole(dst, answer) }
func (c call) Fail(dst []byte, p *ingress.Problem) []byte   { return protocol{}.AppendError(dst, p) }
func (c call) Count(dst []byte, _ int64) []byte             { return dst }
