package ingress_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/ingress"
)

// fault is an error of a connection.
type fault struct{ timeout, permanent bool }

func (fault) Error() string     { return "no answer" }
func (f fault) Timeout() bool   { return f.timeout }
func (f fault) Permanent() bool { return f.permanent }

func TestExplain(t *testing.T) {
	t.Parallel()
	status := func(status int, words ...string) *mmsp.UpstreamError {
		e := &mmsp.UpstreamError{Client: "C", Status: status, Message: "told"}
		for i, word := range words {
			*[]*string{&e.ErrorType, &e.Code, &e.Message}[i] = word
		}
		return e
	}
	daily := status(429, "RESOURCE_EXHAUSTED", "429")
	daily.Object = []byte(`{"details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerDayPerProject"}]}]}`)
	minute := status(429, "RESOURCE_EXHAUSTED", "429")
	minute.Object = []byte(`{"details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerMinutePerProject"}]}]}`)
	connection := func(f fault) *mmsp.UpstreamError {
		return &mmsp.UpstreamError{Client: "C", ErrorType: "connection_error", Message: "told", Err: f}
	}
	for _, tt := range []struct {
		err    error
		kind   ingress.Kind
		status int
		final  bool
		code   string
	}{
		{status(302), ingress.KindUpstream, 502, true, ""},
		{status(400, "invalid_request_error", "unsupported_value"), ingress.KindInvalid, 400, false, "unsupported_value"},
		{status(400, "INVALID_ARGUMENT", "400"), ingress.KindInvalid, 400, false, ""},
		{status(400, "exceed_context_size_error", "400"), ingress.KindContextLength, 400, false, ""}, // llama.cpp
		{status(400, "", "", "the request exceeds the available context size"), ingress.KindContextLength, 400, false, ""},
		{status(400, "api_error", "", "prompt too long; exceeded max context by 12 tokens"), ingress.KindContextLength, 400, false, ""},   // Ollama
		{status(400, "", "", "the model is loaded with a context length of only 4096 tokens"), ingress.KindContextLength, 400, false, ""}, // LM Studio
		{status(418), ingress.KindInvalid, 418, false, ""},
		{status(401, "", "invalid_api_key"), ingress.KindUnauthorized, 401, false, ""},
		{status(402), ingress.KindBilling, 402, true, ""},
		{status(403, "", "region"), ingress.KindForbidden, 403, false, "region"},
		{status(404), ingress.KindUnknownModel, 404, false, ""},
		{status(408), ingress.KindTimeout, 504, false, ""},
		{status(409), ingress.KindConflict, 409, false, ""},
		{status(413), ingress.KindTooLarge, 413, false, ""},
		{status(429), ingress.KindRateLimit, 429, false, ""},
		{status(429, "tokens", "rate_limit_exceeded", "Request too large for m on tokens per min"), ingress.KindRateLimit, 429, true, ""},
		{status(500, "server_error", "odd"), ingress.KindUpstream, 500, false, "odd"},
		{status(501), ingress.KindUpstream, 501, true, ""},
		{status(502), ingress.KindUpstream, 502, false, ""},
		{status(503), ingress.KindOverloaded, 503, false, ""},
		{status(504), ingress.KindTimeout, 504, false, ""},
		{status(505), ingress.KindUpstream, 505, true, ""},
		{status(511), ingress.KindUpstream, 502, true, ""},
		{status(524), ingress.KindUpstream, 502, false, ""},
		{status(529), ingress.KindOverloaded, 503, false, ""},

		{status(429, "insufficient_quota", "insufficient_quota"), ingress.KindBilling, 429, true, ""},
		{status(400, "invalid_request_error", "", "Your credit balance is too low to access the API."), ingress.KindBilling, 402, true, ""},
		{status(500, "", "", "our credit balance is too low"), ingress.KindUpstream, 500, false, ""},
		{daily, ingress.KindBilling, 429, true, ""},
		{minute, ingress.KindRateLimit, 429, false, ""},
		{status(400, "", "context_length_exceeded"), ingress.KindContextLength, 400, false, ""},
		{status(400, "", "", "prompt is too long: 9 > 8"), ingress.KindContextLength, 400, false, ""},
		{status(429, "", "", "the context window is busy"), ingress.KindRateLimit, 429, false, ""},

		// Inside a stream.
		{status(0), ingress.KindUpstream, 502, false, ""},
		{status(0, "server_error", "server_error"), ingress.KindUpstream, 502, false, "server_error"},
		{status(0, "overloaded_error"), ingress.KindOverloaded, 503, false, ""},
		{status(0, "rate_limit_error"), ingress.KindRateLimit, 429, false, ""},
		{status(0, "throttlingException"), ingress.KindRateLimit, 429, false, ""},
		{status(0, "", "resource_exhausted"), ingress.KindRateLimit, 429, false, ""},
		{status(0, "serviceUnavailableException"), ingress.KindOverloaded, 503, false, ""},
		{status(0, "modelTimeoutException"), ingress.KindTimeout, 504, false, ""},
		{status(0, "authentication_error"), ingress.KindUnauthorized, 401, false, ""},
		{status(0, "permission_error"), ingress.KindForbidden, 403, false, ""},
		{status(0, "not_found_error"), ingress.KindUnknownModel, 404, false, ""},
		{status(0, "request_too_large"), ingress.KindTooLarge, 413, false, ""},
		{status(0, "invalid_request_error"), ingress.KindInvalid, 400, false, ""},
		{status(0, "validationException"), ingress.KindInvalid, 400, false, ""},
		{status(0, "billing_error"), ingress.KindBilling, 402, true, ""},
		{status(0, "", "bio_policy"), ingress.KindInvalid, 400, false, "bio_policy"},
		{status(0, "", "image_file_not_found"), ingress.KindInvalid, 400, false, "image_file_not_found"},
		{status(0, "", "image_too_large"), ingress.KindInvalid, 400, false, "image_too_large"},
		{status(0, "", "invalid_image_url"), ingress.KindInvalid, 400, false, "invalid_image_url"},
		{status(0, "", "usage_not_included"), ingress.KindForbidden, 403, false, "usage_not_included"},
		{status(0, "", "vector_store_timeout"), ingress.KindTimeout, 504, false, ""},
		{status(0, "", "", "input token count exceeds"), ingress.KindContextLength, 400, false, ""},
		{status(0, "malformed_event"), ingress.KindUpstream, 502, true, ""},
		{status(0, "unexpected_body"), ingress.KindUpstream, 502, true, ""},
		{status(504, "IncompleteStreamError"), ingress.KindTimeout, 504, true, ""}, // of another server

		{connection(fault{}), ingress.KindUpstream, 502, false, ""},
		{connection(fault{timeout: true}), ingress.KindTimeout, 504, false, ""},
		{connection(fault{permanent: true}), ingress.KindUpstream, 502, true, ""},
		{&mmsp.IncompleteStreamError{Client: "C", Reason: "told"}, ingress.KindUpstream, 502, true, ""},
		{&mmsp.IncompleteStreamError{Client: "C", Reason: "told", Err: fault{timeout: true}}, ingress.KindTimeout, 504, true, ""},
		{&mmsp.StreamProtocolError{Client: "C", Detail: "told"}, ingress.KindUpstream, 502, true, ""},
		{&mmsp.ToolCallArgumentParseError{Client: "C", Reason: "told"}, ingress.KindUpstream, 502, true, ""},
		{context.DeadlineExceeded, ingress.KindTimeout, 504, false, ""},
		{errors.New("told"), ingress.KindUpstream, 502, false, ""},

		{&http.MaxBytesError{Limit: 7}, ingress.KindTooLarge, 413, false, ""},
		{&mmsp.InvalidRequestError{Param: "p", Message: "told"}, ingress.KindInvalid, 400, false, ""},
		{&mmsp.UnsupportedParameterError{Parameter: "p", Message: "told"}, ingress.KindInvalid, 400, false, ""},
		{&mmsp.UnsupportedOperationError{Message: "told"}, ingress.KindInvalid, 400, false, ""},
		{&mmsp.AuthenticationError{Message: "told"}, ingress.KindUnauthorized, 401, false, ""},
		{&mmsp.NotFoundError{Message: "told"}, ingress.KindUnknownModel, 404, false, "model_not_found"},
		{ingress.ErrShutdown, ingress.KindOverloaded, 503, false, ""},
	} {
		for _, err := range []error{tt.err, fmt.Errorf("wrapped: %w", tt.err)} {
			p := ingress.Explain(err)
			if p.Kind != tt.kind || p.Status != tt.status || p.Final != tt.final || p.Code != tt.code || p.Message == "" {
				t.Errorf("%v: %+v, want %+v", err, p, tt)
			}
		}
	}
	told := &ingress.Problem{Kind: ingress.KindMethod, Status: 405, Message: "told", RetryAfter: time.Second}
	if p := ingress.Explain(told); *p != *told || p == told {
		t.Errorf("%+v", p)
	}
	limited := &mmsp.UpstreamError{Status: 429, RetryAfter: time.Minute, RequestID: "up_1"}
	if p := ingress.Explain(limited); p.RetryAfter != time.Minute || p.UpstreamID != "up_1" || p.Message == "" {
		t.Errorf("%+v", p)
	}
}
