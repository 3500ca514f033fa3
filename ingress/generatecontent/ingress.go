// Package generatecontent answers callers that speak Google's generateContent: its requests become messages, and the public
// stream becomes its chunks, as server-sent events or as one JSON array. It also counts tokens, embeds and lists models in
// that protocol.
package generatecontent

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/prism-shadow/mmsp-go/ingress"
	"github.com/prism-shadow/mmsp-go/internal/carry"
	"github.com/prism-shadow/mmsp-go/wire/genai"
)

// New returns the protocol.
func New() ingress.Protocol { return protocol{} }

type protocol struct{}

func (protocol) Name() carry.Protocol { return carry.GenerateContent }

// The verbs of the protocol, which stand in the path behind the model.
const (
	verbGenerate   = "generateContent"
	verbStream     = "streamGenerateContent"
	verbCount      = "countTokens"
	verbEmbed      = "embedContent"
	verbBatchEmbed = "batchEmbedContents"
)

// Parse reads a request to /v1beta/models/{model}:{verb}, or the same under /v1/. The model may hold slashes and colons; one
// with a slash may stand without models/, as tuned models do.
func (protocol) Parse(r *http.Request, body []byte) (ingress.Call, error) {
	c := &call{}
	if err := c.route(r.URL); err != nil {
		return nil, err
	}
	var err error
	switch c.verb {
	case verbGenerate, verbStream:
		c.body, err = genai.ReadBody(body)
	case verbCount:
		c.body, err = genai.ReadCount(body)
	case verbEmbed:
		c.embeddings, err = genai.ReadEmbedding(body)
	case verbBatchEmbed:
		c.embeddings, err = genai.ReadEmbeddingBatch(body)
	}
	if err != nil {
		return nil, ingress.FromPath(err)
	}
	return c, nil
}

// route reads the address. Of its path it is all one what is escaped.
func (c *call) route(address *url.URL) error {
	rest, ok := strings.CutPrefix(address.Path, "/v1beta/")
	if !ok {
		rest, ok = strings.CutPrefix(address.Path, "/v1/")
	}
	if colon := strings.LastIndexByte(rest, ':'); colon >= 0 {
		c.model, c.verb = strings.TrimPrefix(rest[:colon], "models/"), rest[colon+1:]
	}
	if !ok || c.model == "" || !slices.Contains([]string{verbGenerate, verbStream, verbCount, verbEmbed, verbBatchEmbed}, c.verb) {
		return &ingress.Problem{Kind: ingress.KindNotFound, Status: http.StatusNotFound, Message: fmt.Sprintf("there is nothing at %.200s", address.Path)}
	}
	query := address.Query()
	alt, _, _ := strings.Cut(cmp.Or(query.Get("alt"), query.Get("$alt")), ";") // older libraries add ;enum-encoding=int
	switch alt {
	case "sse":
		c.events = true
	case "", "json":
	default:
		return ingress.Invalid("alt", fmt.Sprintf("%.64q is not known; sse and json are", alt))
	}
	return nil
}

// call is one request and its answer.
type call struct {
	model      string
	verb       string
	body       *genai.Body          // of a request for an answer or a count
	embeddings *genai.EmbeddingBody // of a request for vectors
	events     bool                 // a stream is server-sent events; else it is an array
	env        *ingress.Env         // since Read
	encoder                         // of the answer
}

func (c *call) Model() string { return c.model }
func (c *call) Streams() bool { return c.verb == verbStream }
func (c *call) Counts() bool  { return c.verb == verbCount }

func (c *call) Read(ctx context.Context, env *ingress.Env) (*ingress.Request, error) {
	c.env = env
	if c.embeddings != nil {
		return c.readEmbeddings(ctx)
	}
	return c.readBody(ctx)
}
