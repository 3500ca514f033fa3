// Package responses is POST /v1/responses as callers know it: the Open Responses standard, and what OpenAI's libraries and
// Codex need beyond it. Responses of its callers are kept for previous_response_id and item_reference. A conversation, work
// in the background and a stored prompt are refused by name in Parse; compaction and the WebSocket where routes are.
package responses

import (
	"crypto/rand"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/ingress"
	"github.com/prism-shadow/mmsp-go/internal/carry"
	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
	"github.com/prism-shadow/mmsp-go/wire/openairesponses"
)

// New returns the protocol.
func New() ingress.Protocol {
	return &protocol{
		newID: func(prefix string) string { return prefix + strings.ToLower(rand.Text()) },
		now:   time.Now,
	}
}

type protocol struct {
	newID func(prefix string) string
	now   func() time.Time
}

// Name returns the protocol.
func (*protocol) Name() carry.Protocol { return carry.Responses }

// call is one request, and the answer to it as far as it is written.
type call struct {
	*protocol
	body   *openairesponses.Body
	counts bool
	part   string // that thinking is shown in: summary_text or reasoning_text
	open   bool   // the events of reasoning_text have the names that Open Responses gives them
	proofs bool   // encrypted_content is shown
	id     string
	env    *ingress.Env
	tools  map[string]declared // by the name that the model knows

	system   []string       // of the input, without instructions
	messages []mmsp.Message // the new input as it is kept

	writer
}

// includeProofs is the one word of include that asks for what is there.
const includeProofs = "reasoning.encrypted_content"

// Parse reads a request to /responses or to /responses/input_tokens.
func (p *protocol) Parse(r *http.Request, body []byte) (ingress.Call, error) {
	b, err := openairesponses.ReadBody(body)
	if err != nil {
		return nil, ingress.FromPath(err)
	}
	switch {
	case b.Model == "":
		return nil, ingress.Invalid("model", "the model is missing")
	case b.Conversation:
		return nil, ingress.Invalid("conversation", "conversations are not supported; previous_response_id is")
	case b.Background:
		return nil, ingress.Invalid("background", "work in the background is not supported")
	case b.Prompt:
		return nil, ingress.Invalid("prompt", "stored prompts are not supported")
	case b.Input == nil && b.PreviousResponseID == "":
		return nil, ingress.Invalid("input", "the input is missing")
	}
	c := &call{
		protocol: p, body: b, id: p.newID("resp_"),
		counts: strings.HasSuffix(r.URL.Path, "/input_tokens"),
		part:   openairesponses.PartSummaryText,
		proofs: b.Include == nil || slices.Contains(b.Include, includeProofs),
	}
	if r.Header.Get("x-mmsp-reasoning") == "raw" {
		c.part, c.open = openairesponses.PartReasoningText, r.Header.Get("OpenResponses-Version") != ""
	}
	return c, nil
}

func (c *call) Model() string       { return c.body.Model }
func (c *call) Streams() bool       { return c.body.Stream && !c.counts }
func (c *call) Counts() bool        { return c.counts }
func (c *call) ContentType() string { return "text/event-stream; charset=utf-8" }

// Count writes how many tokens the request has.
func (c *call) Count(dst []byte, tokens int64) []byte {
	dst = append(dst, `{"object":"response.input_tokens","input_tokens":`...)
	return append(strconv.AppendInt(dst, tokens, 10), '}')
}

// AppendError appends an error with its four fields, which some libraries want to be strings.
func (*protocol) AppendError(dst []byte, p *ingress.Problem) []byte {
	kind, code := p.OpenAI()
	dst = jsonscan.AppendString(append(dst, `{"error":{"message":`...), p.Message)
	dst = jsonscan.AppendString(append(dst, `,"type":`...), kind)
	dst = jsonscan.AppendString(append(dst, `,"param":`...), p.Param)
	dst = jsonscan.AppendString(append(dst, `,"code":`...), code)
	return append(dst, `}}`...)
}

// failure says of a response that has failed why. Codex gives up at the codes it knows and asks again at all others, so
// that what stays wrong has one of these.
func failure(p *ingress.Problem) *openairesponses.Failure {
	f := &openairesponses.Failure{Message: p.Message}
	f.Type, f.Code = p.OpenAI()
	switch p.Kind {
	case ingress.KindContextLength, ingress.KindBilling, ingress.KindOverloaded:
	case ingress.KindRateLimit:
		if p.RetryAfter > 0 && !strings.Contains(strings.ToLower(p.Message), "try again in") {
			f.Message += " Please try again in " + strconv.FormatFloat(p.RetryAfter.Seconds(), 'f', -1, 64) + "s."
		}
	case ingress.KindTimeout, ingress.KindUpstream, ingress.KindInternal, ingress.KindConflict:
		f.Code = "server_error"
	default:
		if f.Code != "usage_not_included" {
			f.Code = "invalid_prompt"
		}
	}
	if f.Message == "" {
		f.Message = "the response failed"
	}
	return f
}
