// Package messages is the ingress of Anthropic's Messages: POST /v1/messages and /v1/messages/count_tokens, of the API
// versions 2023-06-01 and 2026-10-21, which are the same on the wire. The version that a header names is not looked at.
// No beta is refused, since callers name new ones every month: they go on to providers of the protocol. One alone means
// something here, interleaved thinking.
package messages

import (
	"crypto/rand"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/prism-shadow/mmsp-go/ingress"
	"github.com/prism-shadow/mmsp-go/internal/carry"
	"github.com/prism-shadow/mmsp-go/wire/anthropic"
)

// statusOverloaded is the status that callers of the protocol know an overloaded provider by.
const statusOverloaded = 529

type protocol struct{}

// New returns the protocol.
func New() ingress.Protocol { return protocol{} }

func (protocol) Name() carry.Protocol { return carry.Messages }

func (protocol) Parse(r *http.Request, body []byte) (ingress.Call, error) {
	counts := strings.HasSuffix(r.URL.Path, "/count_tokens")
	b, err := anthropic.ReadBody(body, counts)
	if err != nil {
		return nil, ingress.FromPath(err)
	}
	betas := readBetas(r.Header)
	// Thinking between calls may take more than one answer does.
	interleaved := slices.ContainsFunc(betas, func(beta string) bool { return strings.HasPrefix(beta, "interleaved-thinking") })
	if t := b.Thinking; t != nil && t.Type == "enabled" && !counts && t.BudgetTokens >= *b.MaxTokens && !interleaved {
		return nil, ingress.Invalid("thinking.budget_tokens", "must be less than max_tokens")
	}
	return &call{
		body: b, betas: betas, counts: counts, id: "msg_" + rand.Text(),
		omitted: b.Thinking != nil && b.Thinking.Display == "omitted",
	}, nil
}

// maxBetas is how many betas of a request are looked at.
const maxBetas = 32

var betaForm = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// readBetas returns the betas that the caller asks for, each once. What no beta is named like is left out.
func readBetas(header http.Header) (betas []string) {
	for beta := range strings.SplitSeq(strings.Join(header.Values("Anthropic-Beta"), ","), ",") {
		beta = strings.TrimSpace(beta)
		if len(betas) < maxBetas && betaForm.MatchString(beta) && !slices.Contains(betas, beta) {
			betas = append(betas, beta)
		}
	}
	return betas
}

// Status is the HTTP status of an error where the protocol has its own.
func (protocol) Status(p *ingress.Problem) int {
	switch p.Kind {
	case ingress.KindOverloaded:
		return statusOverloaded
	case ingress.KindBilling:
		return http.StatusPaymentRequired
	}
	return p.Status
}

func (protocol) AppendError(dst []byte, p *ingress.Problem) []byte {
	return anthropic.AppendError(dst, errorType(p.Kind), errorMessage(p), p.Code, p.RequestID)
}

func errorType(kind ingress.Kind) string {
	switch kind {
	case ingress.KindUnauthorized:
		return "authentication_error"
	case ingress.KindBilling:
		return "billing_error"
	case ingress.KindForbidden:
		return "permission_error"
	case ingress.KindUnknownModel, ingress.KindNotFound:
		return "not_found_error"
	case ingress.KindTooLarge:
		return "request_too_large"
	case ingress.KindRateLimit:
		return "rate_limit_error"
	case ingress.KindConflict:
		return "conflict_error"
	case ingress.KindTimeout:
		return "timeout_error"
	case ingress.KindOverloaded:
		return "overloaded_error"
	case ingress.KindUpstream, ingress.KindInternal:
		return "api_error"
	}
	return "invalid_request_error"
}

// errorMessage says what is wrong and where, for which the protocol has one field.
func errorMessage(p *ingress.Problem) string {
	message := p.Message
	if p.Param != "" && !strings.Contains(message, p.Param) {
		message = p.Param + ": " + message
	}
	// Callers make room in their histories when they read these words.
	const tooLong = "prompt is too long"
	if p.Kind == ingress.KindContextLength && !strings.Contains(strings.ToLower(message), tooLong) {
		message = tooLong + ": " + message
	}
	return message
}

// call is one request and the state of its answer.
type call struct {
	body    *anthropic.Body
	betas   []string
	counts  bool
	id      string // of the answer
	omitted bool   // the caller does not want to see thinking
	peer    carry.Peer
	stream
}

func (c *call) Model() string { return c.body.Model }

func (c *call) Streams() bool { return c.body.Stream && !c.counts }

func (c *call) Counts() bool { return c.counts }

func (c *call) Count(dst []byte, tokens int64) []byte { return anthropic.AppendCount(dst, tokens) }
