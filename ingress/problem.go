package ingress

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
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
	Code       string        // the provider's own, or one that says more than the kind; empty: none
	RetryAfter time.Duration // 0: not said
	RequestID  string        // of this gateway
	UpstreamID string        // the provider's id of the request
	// Final reports that asking again gives the same: SDKs, which retry some statuses by themselves, are told so.
	Final bool
}

// ErrShutdown ends what outlives the drain of a server that is told to stop.
var ErrShutdown = errors.New("the server is shutting down")

// Cut reports that a call is no whole one because the answer ended in its midst, or as the provider says that it is
// malformed: an end, and no fault.
func Cut(err *mmsp.ToolCallArgumentParseError) bool {
	kinds := []string{"filter", "refusal", "context", "malformed_call"}
	return err.FinishReason == mmsp.FinishLength ||
		err.FinishReason == mmsp.FinishUnknown && err.StopDetail != nil && slices.Contains(kinds, err.StopDetail.Kind)
}

// EndsCut reports whether an answer ends in a call that was cut.
func EndsCut(answer *mmsp.Message) bool {
	n := len(answer.ContentItems)
	return n > 0 && answer.ContentItems[n-1].Type.IsDelta()
}

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
		p.Message = fmt.Sprintf("the body is larger than %d bytes", tooLarge.Limit)
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
		if errors.As(err, &timeout) && timeout.Timeout() {
			return set(KindTimeout, http.StatusGatewayTimeout)
		}
		return set(KindUpstream, http.StatusBadGateway)
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, context.DeadlineExceeded):
		return set(KindTimeout, http.StatusGatewayTimeout)
	}
	return set(KindUpstream, http.StatusBadGateway)
}

// explainUpstream keeps the provider's words, and its status where callers' libraries know what to do with it.
func explainUpstream(e *mmsp.UpstreamError) *Problem {
	p := &Problem{Kind: kindOf(e), Message: e.Message, RetryAfter: e.RetryAfter, UpstreamID: e.RequestID, Final: permanent(e)}
	if p.Message == "" {
		p.Message = e.Error()
	}
	switch p.Kind {
	case KindInvalid, KindForbidden, KindUpstream:
		if _, err := strconv.Atoi(e.Code); err != nil { // Google's code is the status again
			p.Code = e.Code
		}
	}
	switch p.Kind {
	case KindBilling:
		// Unlike 429, no library asks again at a 402.
		p.Status, p.Final = http.StatusPaymentRequired, true
		if e.Status == http.StatusTooManyRequests {
			p.Status = e.Status
		}
	case KindInvalid:
		p.Status = http.StatusBadRequest
		if e.Status > 400 && e.Status < 500 {
			p.Status = e.Status
		}
	case KindUpstream:
		p.Status = http.StatusBadGateway
		switch e.Status {
		case http.StatusInternalServerError, http.StatusNotImplemented, http.StatusHTTPVersionNotSupported:
			p.Status = e.Status
		}
	default:
		p.Status = statuses[p.Kind]
	}
	return p
}

// statuses are those of the kinds that have one.
var statuses = map[Kind]int{
	KindUnauthorized: http.StatusUnauthorized, KindForbidden: http.StatusForbidden, KindUnknownModel: http.StatusNotFound,
	KindMethod: http.StatusMethodNotAllowed, KindTooLarge: http.StatusRequestEntityTooLarge, KindMediaType: http.StatusUnsupportedMediaType,
	KindContextLength: http.StatusBadRequest, KindRateLimit: http.StatusTooManyRequests, KindConflict: http.StatusConflict,
	KindTimeout: http.StatusGatewayTimeout, KindOverloaded: http.StatusServiceUnavailable,
}

// kindOf reads what the provider said: its code and its message first, where one status means several things, then the
// status. An error inside a stream may have words alone.
func kindOf(e *mmsp.UpstreamError) Kind {
	words := strings.ToLower(e.ErrorType + " " + e.Code)
	switch {
	case e.Status == http.StatusPaymentRequired, holds(words, "insufficient_quota", "billing", "insufficient_balance"), e.Status < 500 && unpaid(e):
		return KindBilling
	case holds(words, "context_length", "model_context_window", "exceed_context"), e.Status == 0 && tooLong(e.Message), e.Status == http.StatusBadRequest && tooLong(e.Message):
		return KindContextLength
	}
	switch e.Status {
	case 0:
	case http.StatusUnauthorized:
		return KindUnauthorized
	case http.StatusForbidden:
		return KindForbidden
	case http.StatusNotFound:
		return KindUnknownModel
	case http.StatusRequestTimeout, http.StatusGatewayTimeout:
		return KindTimeout
	case http.StatusConflict:
		return KindConflict
	case http.StatusRequestEntityTooLarge:
		return KindTooLarge
	case http.StatusTooManyRequests:
		return KindRateLimit
	case http.StatusServiceUnavailable, 529:
		return KindOverloaded
	default:
		if e.Status >= 400 && e.Status < 500 {
			return KindInvalid
		}
		return KindUpstream
	}

	var timeout interface{ Timeout() bool }
	if errors.As(e.Err, &timeout) && timeout.Timeout() {
		return KindTimeout
	}
	switch e.Code { // of a response that failed, where the request is at fault
	case "usage_not_included", "data_residency_mismatch":
		return KindForbidden
	case "bio_policy", "cyber_policy", "image_too_large", "image_too_small", "image_parse_error", "image_content_policy_violation",
		"image_file_too_large", "image_file_not_found", "unsupported_image_media_type", "empty_image_file", "failed_to_download_image":
		return KindInvalid
	}
	for _, k := range []struct {
		kind  Kind
		words []string
	}{
		{KindRateLimit, []string{"rate_limit", "resource_exhausted", "too_many_requests", "throttling"}},
		{KindOverloaded, []string{"overloaded", "unavailable", "slow_down"}},
		{KindTimeout, []string{"timeout", "deadline_exceeded"}},
		{KindUnauthorized, []string{"authentication", "unauthenticated", "invalid_api_key"}},
		{KindForbidden, []string{"permission", "accessdenied"}},
		{KindUnknownModel, []string{"not_found", "resourcenotfound"}},
		{KindTooLarge, []string{"too_large"}},
		{KindInvalid, []string{"invalid_", "validation"}},
	} {
		if holds(words, k.words...) {
			return k.kind
		}
	}
	return KindUpstream
}

// permanent reports whether the provider's fault is there at the next attempt, too, or it answered with what is no answer,
// which another attempt would pay for again.
func permanent(e *mmsp.UpstreamError) bool {
	switch e.ErrorType { // the latter two as another MMSP server names them
	case "malformed_event", "unexpected_body", "IncompleteStreamError", "StreamProtocolError":
		return true
	}
	switch e.Status {
	case 0:
		var fault interface{ Permanent() bool }
		return errors.As(e.Err, &fault) && fault.Permanent()
	case http.StatusNotImplemented, http.StatusHTTPVersionNotSupported, http.StatusVariantAlsoNegotiates, http.StatusLoopDetected,
		http.StatusNotExtended, http.StatusNetworkAuthenticationRequired:
		return true
	case http.StatusTooManyRequests: // more than is allowed at any time
		return strings.HasPrefix(e.Message, "Request too large")
	}
	return e.Status < 400
}

func holds(text string, words ...string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(text, word) })
}

// unpaid knows the words of providers that have no code for a quota or a credit that is used up. Google's is that of a day;
// it says the same of a minute's, which is a limit of the rate.
func unpaid(e *mmsp.UpstreamError) bool {
	return holds(strings.ToLower(e.Message), "credit balance is too low", "insufficient balance", "insufficient credits") ||
		strings.Contains(string(e.Object), "google.rpc.QuotaFailure") && strings.Contains(string(e.Object), "PerDay")
}

// tooLong knows the words of providers that have no code for a prompt that the model cannot hold.
func tooLong(message string) bool {
	return holds(strings.ToLower(message), "prompt is too long", "prompt too long", "context length", "context size", "context window", "input token count", "input is too long")
}

// Error lets a Problem be returned as an error.
func (p *Problem) Error() string { return p.Message }

// OpenAI returns the type and the code that OpenAI's protocols have for it.
func (p *Problem) OpenAI() (kind, code string) {
	kind = "invalid_request_error"
	switch p.Kind {
	case KindInvalid:
		code = "invalid_value"
	case KindUnauthorized:
		code = "invalid_api_key"
	case KindBilling:
		return "insufficient_quota", "insufficient_quota"
	case KindForbidden:
		kind, code = "permission_error", "permission_denied"
	case KindUnknownModel:
		return kind, "model_not_found"
	case KindNotFound:
		code = "not_found"
	case KindMethod:
		code = "method_not_allowed"
	case KindTooLarge:
		code = "request_too_large"
	case KindMediaType:
		code = "unsupported_media_type"
	case KindContextLength:
		return kind, "context_length_exceeded"
	case KindPreviousMissing:
		code = "previous_response_not_found"
	case KindRateLimit:
		return "rate_limit_error", "rate_limit_exceeded"
	case KindConflict:
		return "conflict_error", "conflict"
	case KindTimeout:
		return "server_error", "timeout"
	case KindOverloaded:
		return "server_error", "server_is_overloaded"
	default:
		kind, code = "server_error", "server_error"
	}
	if p.Code != "" {
		code = p.Code // the provider's own, or one that says more
	}
	return kind, code
}
