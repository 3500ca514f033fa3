// Package upstream is the HTTP layer of provider requests: it bounds every phase in time and every answer in size,
// retries what is worth retrying before the first byte of an answer is handed out, and turns failures into typed
// errors that name no secret. What an answer says is for the provider clients to read.
package upstream

import (
	"bytes"
	"context"
	"encoding/base64"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	mmsp "github.com/prism-shadow/mmsp-go"
)

const (
	defaultRetries          = 2
	defaultRetryWait        = 2 * time.Second
	defaultConnectTimeout   = 10 * time.Second
	defaultHeaderTimeout    = 120 * time.Second
	defaultIdleTimeout      = 300 * time.Second
	defaultMaxResponseBytes = 512 << 20

	firstBackoff   = 500 * time.Millisecond
	errorBodyBytes = 1 << 20         // of an error answer's body
	errorBodyWait  = 5 * time.Second // for the whole of it
)

// NewHTTPClient returns a client with the transport policy for providers. It is safe to share between any number of
// provider clients, and the better for it: connections are reused. The proxy variables of the environment are honoured.
func NewHTTPClient(o mmsp.HTTPOptions) *http.Client {
	connect := positive(o.ConnectTimeout, defaultConnectTimeout)
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            (&net.Dialer{Timeout: connect}).DialContext,
			TLSHandshakeTimeout:    connect,
			ResponseHeaderTimeout:  positive(o.HeaderTimeout, defaultHeaderTimeout),
			MaxResponseHeaderBytes: 1 << 20,
			MaxIdleConnsPerHost:    1024,
			IdleConnTimeout:        90 * time.Second,
			ReadBufferSize:         4 << 10, // a slow stream holds these as long as it lasts
			WriteBufferSize:        1 << 10, // holds a request's header; what is longer bypasses it
			DisableCompression:     true,    // a compressed stream delays its events
			ForceAttemptHTTP2:      true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// Client sends requests to providers. It is safe for concurrent use.
type Client struct {
	transport http.RoundTripper
	retries   int
	retryWait time.Duration
	connect   time.Duration
	header    time.Duration
	idle      time.Duration
	maxBytes  int64
}

// New returns a client that sends through the transport of hc, nil meaning one built from o. Of hc nothing else is used:
// redirects are never followed, cookies never kept, and a total Timeout would cut streams. The connect and header limits
// belong to the transport; when hc is given, o should be the options it was built from.
func New(hc *http.Client, o mmsp.HTTPOptions) *Client {
	if hc == nil {
		hc = NewHTTPClient(o)
	}
	c := &Client{
		transport: hc.Transport,
		retries:   defaultRetries,
		retryWait: positive(o.MaxRetryWait, defaultRetryWait),
		connect:   positive(o.ConnectTimeout, defaultConnectTimeout),
		header:    positive(o.HeaderTimeout, defaultHeaderTimeout),
		idle:      positive(o.IdleTimeout, defaultIdleTimeout),
		maxBytes:  positive(o.MaxResponseBytes, defaultMaxResponseBytes),
	}
	if c.transport == nil {
		c.transport = http.DefaultTransport
	}
	if o.MaxRetries != nil {
		c.retries = *o.MaxRetries
	}
	return c
}

func positive[T time.Duration | int64](value, otherwise T) T {
	if value > 0 {
		return value
	}
	return otherwise
}

// Request is one provider request. Header and Body are read only.
type Request struct {
	Method, URL string
	Header      http.Header
	Body        []byte
}

// Do sends a request and returns its answer as soon as the header of a 2xx answer is there; the caller closes it with
// Finish or Close. Until then statuses 408, 409, 429, 5xx and connection failures are retried, as the provider's
// x-should-retry and Retry-After headers allow.
//
// Errors: *StatusError for any other status, redirects included; *ConnectError when no answer came; the cause of ctx,
// wrapped together with ctx.Err(), when ctx ended.
func (c *Client) Do(ctx context.Context, r Request) (*Response, error) {
	req, err := newRequest(ctx, r)
	if err != nil {
		return nil, err
	}
	headerTimeouts := 0
	for attempt := 0; ; attempt++ {
		answer, err := c.transport.RoundTrip(req)
		wait := c.backoff(attempt)
		if err != nil {
			if ctx.Err() != nil {
				return nil, canceled(ctx)
			}
			fault := c.connectError(req, err)
			if fault.Phase == phaseHeader && fault.Timeout() {
				headerTimeouts++
			}
			if attempt >= c.retries || headerTimeouts > 1 || isPermanent(err) {
				return nil, fault
			}
		} else {
			resp := c.newResponse(req, answer)
			if resp.Status/100 == 2 {
				return resp, nil
			}
			after, asked := retryAfter(resp.Header)
			if attempt >= c.retries || after > c.retryWait || !worthRetrying(resp.Status, resp.Header) {
				return nil, statusError(ctx, resp, req)
			}
			resp.Finish()
			if asked {
				wait = after
			}
		}

		pause := time.NewTimer(wait)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil, canceled(ctx)
		}
		req = req.WithContext(ctx) // a copy: the transport may still hold the last one
		req.Body, _ = req.GetBody()
	}
}

// newRequest builds the HTTP request. Its errors leave the URL out, which may hold credentials.
func newRequest(ctx context.Context, r Request) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, bytes.NewReader(r.Body))
	if err != nil || (req.URL.Scheme != "http" && req.URL.Scheme != "https") || req.URL.Host == "" {
		return nil, &ConnectError{Phase: phaseConnect, Err: errMalformed}
	}
	if r.Header != nil {
		req.Header = r.Header
	}
	if user := req.URL.User; user != nil && req.Header.Get("Authorization") == "" {
		password, _ := user.Password()
		req.Header = req.Header.Clone()
		req.Header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user.Username()+":"+password)))
	}
	return req, nil
}

// backoff is the wait after a failed attempt, counted from 0, when the provider names none. It grows up to the longest
// wait that a provider may ask for.
func (c *Client) backoff(attempt int) time.Duration {
	d := min(firstBackoff<<min(attempt, 10), c.retryWait)
	return d - rand.N(d/4+1)
}
