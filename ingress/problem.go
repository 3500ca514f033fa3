package ingress

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/prism-shadow/mmsp-go"
)

// Kind is a row of the table of errors; each protocol has its own words for it.
type Kind int

// The kinds of errors, with their HTTP status.
const (
	KindInvalid         Kind = iota // 400: a value of the request is wrong
	KindUnauthorized                // 401: no key, or a wrong one
	KindBilling                     // 402, 429: quota or credit is used up
	KindForbidden                   // 403
	KindUnknownModel                // 404
	KindNotFound                    // 404: a switched-off endpoint, a route, a stored object
	KindMethod                      // 405
	KindTooLarge                    // 413
	KindMediaType                   // 415
	KindContextLength               // 400: the prompt is longer than the model takes
	KindPreviousMissing             // 400: a stored response that is named does not exist
	KindRateLimit                   // 429
	KindConflict                    // 409
	KindTimeout                     // 504: of the provider
	KindUpstream                    // 500, 502: the provider failed, or its answer is broken
	KindOverloaded                  // 503; 529 in Messages
	KindInternal                    // 500: of the gateway itself
)

// Problem is an error as a caller is told of it. It holds no secret.
type Problem struct {
	Kind       Kind
	Status     int // HTTP
	Message    string
	Param      string        // path in the request; empty: none
	Code       string        // the provider's own; empty: none
	RetryAfter time.Duration // 0: not said
	RequestID  string        // of this gateway
	UpstreamID string        // the provider's id of the request
	// Final reports that asking again gives the same: SDKs, which retry some statuses by themselves, are told so.
	Final bool
}

// ErrShutdown ends what outlives the drain of a server that is told to stop.
var ErrShutdown = errors.New("the server is shutting down")

// Explain says what went wrong in the terms of the table.
func Explain(err error) *Problem {
	var (
		parameter  *mmsp.UnsupportedParameterError
		operation  *mmsp.UnsupportedOperationError
		invalid    *mmsp.InvalidRequestError
		auth       *mmsp.AuthenticationError
		notFound   *mmsp.NotFoundError
		upstream   *mmsp.UpstreamError
		incomplete *mmsp.IncompleteStreamError
		arguments  *mmsp.ToolCallArgumentParseError
		protocol   *mmsp.StreamProtocolError
		tooLarge   *http.MaxBytesError
		timeout    interface{ Timeout() bool }
		problem    *Problem
	)
	p := &Problem{Message: err.Error()}
	set := func(kind Kind, status int) *Problem {
		p.Kind, p.Status = kind, status
		return p
	}
	switch {
	case errors.As(err, &problem):
		return new(*problem)
	case errors.As(err, &tooLarge):
		return set(KindTooLarge, http.StatusRequestEntityTooLarge)
	case errors.As(err, &upstream):
		return explainUpstream(upstream)
	case errors.As(err, &parameter):
		p.Param = parameter.Parameter
		return set(KindInvalid, http.StatusBadRequest)
	case errors.As(err, &operation):
		return set(KindInvalid, http.StatusBadRequest)
	case errors.As(err, &invalid):
		p.Message, p.Param = invalid.Message, invalid.Param
		return set(KindInvalid, http.StatusBadRequest)
	case errors.As(err, &auth):
		return set(KindUnauthorized, http.StatusUnauthorized)
	case errors.As(err, &notFound):
		p.Param, p.Code = "model", "model_not_found"
		return set(KindUnknownModel, http.StatusNotFound)
	case errors.Is(err, ErrShutdown):
		return set(KindOverloaded, http.StatusServiceUnavailable)
	case errors.As(err, &incomplete), errors.As(err, &arguments), errors.As(err, &protocol):
		// The provider did answer: another try asks, and pays, for another answer.
		p.Final = true
		return set(KindUpstream, http.StatusBadGateway)
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return set(KindTimeout, http.StatusGatewayTimeout)
	}
	return set(KindUpstream, http.StatusBadGateway)
}

// explainUpstream keeps the provider's status where callers' libraries know what to do with it.
func explainUpstream(e *mmsp.UpstreamError) *Problem {
	p := &Problem{
		Message: e.Message, Code: e.Code, RetryAfter: e.RetryAfter, UpstreamID: e.RequestID, Status: e.Status,
		Final: e.Status == 0 && e.ErrorType != "connection_error",
	}
	if p.Message == "" {
		p.Message = e.Error()
	}
	words := strings.ToLower(e.ErrorType + " " + e.Code)
	said := func(any ...string) bool {
		for _, word := range any {
			if strings.Contains(words, word) {
				return true
			}
		}
		return false
	}
	switch {
	case e.Status == http.StatusPaymentRequired, said("insufficient_quota", "billing", "insufficient_balance"):
		p.Kind = KindBilling
		p.Final = true
	case said("context_length", "model_context_window"), e.Status == http.StatusBadRequest && tooLong(e.Message):
		p.Kind = KindContextLength
		p.Status = http.StatusBadRequest
	case e.Status == http.StatusTooManyRequests, e.Status == 0 && said("rate_limit", "resource_exhausted", "too_many_requests"):
		p.Kind = KindRateLimit
	case e.Status == http.StatusServiceUnavailable, e.Status == 529, e.Status == 0 && said("overloaded", "unavailable", "slow_down"):
		p.Kind = KindOverloaded
	case e.Status == http.StatusUnauthorized:
		p.Kind = KindUnauthorized
	case e.Status == http.StatusForbidden:
		p.Kind = KindForbidden
	case e.Status == http.StatusNotFound:
		p.Kind = KindUnknownModel
	case e.Status == http.StatusConflict:
		p.Kind = KindConflict
	case e.Status == http.StatusRequestEntityTooLarge:
		p.Kind = KindTooLarge
	case e.Status == http.StatusRequestTimeout, e.Status == http.StatusGatewayTimeout:
		p.Kind = KindTimeout
	case e.Status >= 400 && e.Status < 500:
		p.Kind = KindInvalid
	default:
		p.Kind = KindUpstream
		if e.Err != nil && e.Status == 0 {
			var timeout interface{ Timeout() bool }
			if errors.As(e.Err, &timeout) && timeout.Timeout() {
				p.Kind, p.Status = KindTimeout, http.StatusGatewayTimeout
			}
		}
	}
	if p.Status < 400 || p.Status > 599 {
		p.Status = map[Kind]int{
			KindBilling: http.StatusPaymentRequired, KindContextLength: http.StatusBadRequest, KindRateLimit: http.StatusTooManyRequests,
			KindOverloaded: http.StatusServiceUnavailable,
		}[p.Kind]
		if p.Status == 0 {
			p.Status = http.StatusBadGateway
		}
	}
	return p
}

// tooLong knows the words of providers that have no code for a prompt that the model cannot hold.
func tooLong(message string) bool {
	message = strings.ToLower(message)
	for _, words := range []string{"prompt is too long", "maximum context length", "context window", "input token count"} {
		if strings.Contains(message, words) {
			return true
		}
	}
	return false
}

// Error lets a Problem be returned as an error.
func (p *Problem) Error() string { return p.Message }
