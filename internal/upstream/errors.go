package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// StatusError is an answer with a status other than 2xx.
type StatusError struct {
	Status     int
	Header     http.Header
	Body       []byte        // decompressed, at most 1 MiB
	RetryAfter time.Duration // 0: none given
	RequestID  string        // the provider's
}

// Error leaves the body out: it is the provider's text and may repeat what was sent.
func (e *StatusError) Error() string {
	text := fmt.Sprintf("the provider answered with status %d", e.Status)
	if name := http.StatusText(e.Status); name != "" {
		text += " " + name
	}
	if e.RequestID != "" {
		text += " (request id " + e.RequestID + ")"
	}
	return text
}

// ConnectError says that no answer came.
type ConnectError struct {
	Phase string // "connect", "tls" (where it is known to be the handshake) or "header"
	Err   error
}

const (
	phaseConnect = "connect"
	phaseTLS     = "tls"
	phaseHeader  = "header"
)

func (e *ConnectError) Error() string {
	return fmt.Sprintf("no answer from the provider (%s): %v", e.Phase, e.Err)
}

func (e *ConnectError) Unwrap() error { return e.Err }

// Timeout reports whether a time limit ended the attempt.
func (e *ConnectError) Timeout() bool {
	var t interface{ Timeout() bool }
	return errors.As(e.Err, &t) && t.Timeout()
}

// Permanent reports whether the next attempt would meet the same.
func (e *ConnectError) Permanent() bool { return isPermanent(e.Err) }

// phaseTimeout is the limit of one phase.
type phaseTimeout struct {
	phase string
	after time.Duration
}

func (e *phaseTimeout) Error() string { return fmt.Sprintf("%s timeout after %v", e.phase, e.after) }
func (e *phaseTimeout) Timeout() bool { return true }

// IdleTimeoutError says that no byte of an answer came for too long.
type IdleTimeoutError struct{ After time.Duration }

func (e *IdleTimeoutError) Error() string {
	return fmt.Sprintf("the provider sent nothing for %v", e.After)
}

// Timeout reports true.
func (e *IdleTimeoutError) Timeout() bool { return true }

// LimitError says that an answer is longer than its limit.
type LimitError struct{ Limit int64 } // bytes, decompressed

func (e *LimitError) Error() string {
	return fmt.Sprintf("the provider's answer is longer than %d bytes", e.Limit)
}

// ErrLingered ends a body that was read for as long as [Response.Linger] allowed.
var ErrLingered = errors.New("the provider's answer was not awaited any longer")

// canceledError carries both what ended a context and why.
type canceledError struct{ cause, err error }

func (e *canceledError) Error() string   { return "request canceled: " + e.cause.Error() }
func (e *canceledError) Unwrap() []error { return []error{e.cause, e.err} }

func canceled(ctx context.Context) error { return &canceledError{context.Cause(ctx), ctx.Err()} }

// statusError reads what it may of an error answer and ends it.
func statusError(ctx context.Context, resp *Response, req *http.Request) error {
	resp.Linger(errorBodyWait)
	body, _ := io.ReadAll(io.LimitReader(resp.Body, errorBodyBytes))
	resp.Finish()
	if ctx.Err() != nil {
		return canceled(ctx)
	}
	e := &StatusError{Status: resp.Status, Header: resp.Header, Body: redact(body, req)}
	e.RetryAfter, _ = retryAfter(resp.Header)
	for _, name := range []string{"X-Request-Id", "Request-Id", "X-Goog-Request-Id", "X-Amzn-Requestid", "Cf-Ray"} {
		if e.RequestID = resp.Header.Get(name); e.RequestID != "" {
			break
		}
	}
	return e
}

// worthRetrying tells whether an error status may be gone at the next attempt. The provider's own word wins.
func worthRetrying(status int, h http.Header) bool {
	switch strings.ToLower(h.Get("X-Should-Retry")) {
	case "true":
		return true
	case "false":
		return false
	}
	switch status {
	case http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return true
	}
	return status >= 500
}

// retryAfter returns the wait that a provider asks for, and whether it asks for any: retry-after-ms, else Retry-After in
// seconds or as a date.
func retryAfter(h http.Header) (time.Duration, bool) {
	number := func(text string, unit time.Duration) (time.Duration, bool) {
		n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil || math.IsNaN(n) || n < 0 {
			return 0, false
		}
		return time.Duration(min(n*float64(unit), 1<<62)), true
	}
	if wait, ok := number(h.Get("Retry-After-Ms"), time.Millisecond); ok {
		return wait, true
	}
	text := h.Get("Retry-After")
	if wait, ok := number(text, time.Second); ok {
		return wait, true
	}
	if date, err := http.ParseTime(text); err == nil {
		return max(time.Until(date), 0), true
	}
	return 0, false
}

var (
	errMalformed = errors.New("the method or the URL of the request is malformed")
	errProxy     = errors.New("invalid proxy address in the environment")
)

// isPermanent tells failures of a request that the next attempt would meet again.
func isPermanent(err error) bool {
	var certificate *tls.CertificateVerificationError
	return errors.As(err, &certificate) || errors.Is(err, errMalformed) || errors.Is(err, errProxy) ||
		strings.HasPrefix(err.Error(), "net/http: invalid header")
}

// connectError says in which phase an attempt failed, without the secrets of the request.
func (c *Client) connectError(req *http.Request, err error) *ConnectError {
	e := &ConnectError{Phase: phaseHeader, Err: err}
	text, timedOut := err.Error(), e.Timeout()
	var op *net.OpError
	var dns *net.DNSError
	switch {
	case strings.HasPrefix(text, "invalid proxy address"): // repeats the variable, which may hold a password
		return &ConnectError{Phase: phaseConnect, Err: errProxy}
	case errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect"), errors.As(err, &dns):
		e.Phase = phaseConnect
		if timedOut {
			e.Err = &phaseTimeout{e.Phase, c.connect}
		}
	case strings.Contains(text, "tls: "), strings.Contains(text, "x509: "), strings.Contains(text, "TLS handshake"):
		e.Phase = phaseTLS
		if timedOut {
			e.Err = &phaseTimeout{e.Phase, c.connect}
		}
	case timedOut && strings.Contains(text, "awaiting response headers"):
		e.Err = &phaseTimeout{e.Phase, c.header}
	}
	// Only the text is kept where it repeats a secret (a server may echo what it was sent), and where the error of
	// somebody else's context would pass for the caller's.
	safe := string(redact([]byte(e.Err.Error()), req))
	if safe != e.Err.Error() || errors.Is(e.Err, context.Canceled) || errors.Is(e.Err, context.DeadlineExceeded) {
		e.Err = errors.New(safe)
	}
	return e
}
