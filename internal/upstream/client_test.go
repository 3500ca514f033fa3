package upstream

import (
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	mmsp "github.com/prism-shadow/mmsp-go"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fake is a transport that answers each attempt with the next of its steps.
type fake struct {
	t        *testing.T
	steps    []step
	attempts int
}

type step struct {
	status int
	header string // "Name: value", comma-separated
	body   io.ReadCloser
	err    error
}

func (f *fake) RoundTrip(req *http.Request) (*http.Response, error) {
	if body, err := io.ReadAll(req.Body); string(body) != "question" || err != nil {
		f.t.Errorf("attempt %d sent %q, %v", f.attempts, body, err)
	}
	s := f.steps[min(f.attempts, len(f.steps)-1)]
	f.attempts++
	if s.err != nil {
		return nil, s.err
	}
	if s.body == nil {
		s.body = io.NopCloser(strings.NewReader("answer"))
	}
	return &http.Response{StatusCode: s.status, Header: header(s.header), Body: s.body}, nil
}

// header makes "A: 1 | B: 2" a header.
func header(text string) http.Header {
	h := http.Header{}
	for field := range strings.SplitSeq(text, " | ") {
		if name, value, ok := strings.Cut(field, ": "); ok {
			h.Add(name, value)
		}
	}
	return h
}

func (f *fake) client(o mmsp.HTTPOptions) *Client { return New(&http.Client{Transport: f}, o) }

var question = Request{Method: "POST", URL: "http://provider.test/v1", Body: []byte("question")}

// netTimeout looks like the transport's own timeouts.
type netTimeout string

func (e netTimeout) Error() string { return string(e) }
func (netTimeout) Timeout() bool   { return true }

func TestRetries(t *testing.T) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")}
	for _, tt := range []struct {
		name      string
		steps     []step
		retries   *int
		attempts  int
		status    int // 0: a ConnectError
		wait, max time.Duration
	}{
		{name: "success", steps: []step{{status: 200}}, attempts: 1, status: 200},
		{name: "any 2xx", steps: []step{{status: 204}}, attempts: 1, status: 204},
		{name: "408", steps: []step{{status: 408}, {status: 200}}, attempts: 2, status: 200, wait: 375, max: 500},
		{name: "409", steps: []step{{status: 409}, {status: 200}}, attempts: 2, status: 200, wait: 375, max: 500},
		{name: "429", steps: []step{{status: 429}, {status: 200}}, attempts: 2, status: 200, wait: 375, max: 500},
		{name: "500", steps: []step{{status: 500}, {status: 200}}, attempts: 2, status: 200, wait: 375, max: 500},
		{name: "529 twice", steps: []step{{status: 529}, {status: 529}, {status: 200}}, attempts: 3, status: 200, wait: 1125, max: 1500},
		{name: "503 for ever", steps: []step{{status: 503}}, attempts: 3, status: 503, wait: 1125, max: 1500},
		{name: "connection refused", steps: []step{{err: refused}, {status: 200}}, attempts: 2, status: 200, wait: 375, max: 500},
		{name: "connection refused for ever", steps: []step{{err: refused}}, attempts: 3, wait: 1125, max: 1500},
		{name: "connection lost, then 500", steps: []step{{err: io.EOF}, {status: 500}, {status: 200}}, attempts: 3, status: 200, wait: 1125, max: 1500},
		{name: "backoff is capped", steps: []step{{status: 500}}, retries: new(4), attempts: 5, status: 500, wait: 4125, max: 5500},
		{name: "no retries", steps: []step{{status: 500}}, retries: new(0), attempts: 1, status: 500},
		{name: "400", steps: []step{{status: 400}}, attempts: 1, status: 400},
		{name: "401", steps: []step{{status: 401}}, attempts: 1, status: 401},
		{name: "404", steps: []step{{status: 404}}, attempts: 1, status: 404},
		{name: "422", steps: []step{{status: 422}}, attempts: 1, status: 422},
		{name: "redirect", steps: []step{{status: 307, header: "Location: /b"}}, attempts: 1, status: 307},
		{name: "provider wants a retry", steps: []step{{status: 400, header: "x-should-retry: true"}, {status: 200}}, attempts: 2, status: 200, wait: 375, max: 500},
		{name: "provider wants none", steps: []step{{status: 500, header: "x-should-retry: false"}}, attempts: 1, status: 500},
		{name: "wanted retry, but later", steps: []step{{status: 400, header: "x-should-retry: true | retry-after: 3"}}, attempts: 1, status: 400},
		{name: "header timeouts are retried once", steps: []step{{err: netTimeout("net/http: timeout awaiting response headers")}}, attempts: 2, wait: 375, max: 500},
		{name: "certificate", steps: []step{{err: &tls.CertificateVerificationError{Err: errors.New("x509: expired")}}}, attempts: 1},
		{name: "retry-after-ms", steps: []step{{status: 429, header: "retry-after-ms: 120.5 | retry-after: 60"}, {status: 200}}, attempts: 2, status: 200, wait: 120, max: 121},
		{name: "seconds", steps: []step{{status: 429, header: "Retry-After: 2"}, {status: 200}}, attempts: 2, status: 200, wait: 2000, max: 2000},
		{name: "fraction of a second", steps: []step{{status: 429, header: "Retry-After: 0.25"}, {status: 200}}, attempts: 2, status: 200, wait: 250, max: 250},
		{name: "zero", steps: []step{{status: 429, header: "Retry-After: 0"}, {status: 200}}, attempts: 2, status: 200},
		{name: "date", steps: []step{{status: 429, header: "Retry-After: Sat, 01 Jan 2000 00:00:01 GMT"}, {status: 200}}, attempts: 2, status: 200, wait: 1000, max: 1000},
		{name: "past date", steps: []step{{status: 429, header: "Retry-After: Fri, 31 Dec 1999 00:00:01 GMT"}, {status: 200}}, attempts: 2, status: 200},
		{name: "far date", steps: []step{{status: 429, header: "Retry-After: Sat, 01 Jan 2000 00:00:09 GMT"}, {status: 200}}, attempts: 1, status: 429},
		{name: "too long", steps: []step{{status: 429, header: "Retry-After: 2.1"}, {status: 200}}, attempts: 1, status: 429},
		{name: "far too long", steps: []step{{status: 429, header: "Retry-After: 1e300"}, {status: 200}}, attempts: 1, status: 429},
		{name: "nonsense", steps: []step{{status: 429, header: "Retry-After: soon"}, {status: 200}}, attempts: 2, status: 200, wait: 375, max: 500},
		{name: "negative", steps: []step{{status: 429, header: "Retry-After: -1"}, {status: 200}}, attempts: 2, status: 200, wait: 375, max: 500},
		{name: "not a number", steps: []step{{status: 429, header: "retry-after-ms: NaN"}, {status: 200}}, attempts: 2, status: 200, wait: 375, max: 500},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{t: t, steps: tt.steps}
				start := time.Now()
				resp, err := f.client(mmsp.HTTPOptions{MaxRetries: tt.retries}).Do(t.Context(), question)
				waited := time.Since(start)

				status := 0
				var statusErr *StatusError
				var connectErr *ConnectError
				switch {
				case err == nil:
					status = resp.Status
					resp.Close()
				case errors.As(err, &statusErr):
					status = statusErr.Status
				case !errors.As(err, &connectErr):
					t.Errorf("untyped error %v", err)
				}
				if status != tt.status || (err == nil) != (tt.status/100 == 2) || f.attempts != tt.attempts {
					t.Errorf("%d attempts, status %d, %v; want %d, %d", f.attempts, status, err, tt.attempts, tt.status)
				}
				if low, high := tt.wait*time.Millisecond, tt.max*time.Millisecond; waited < low || waited > high {
					t.Errorf("waited %v, want %v to %v", waited, low, high)
				}
			})
		})
	}
}

func TestStatusError(t *testing.T) {
	var zipped strings.Builder
	w := gzip.NewWriter(&zipped)
	w.Write([]byte(strings.Repeat("x", 2<<20)))
	w.Close()
	for _, tt := range []struct {
		header, id, body string
		after            time.Duration
	}{
		{"Cf-Ray: c | X-Amzn-RequestId: am | X-Goog-Request-Id: go | Request-Id: an | X-Request-Id: op", "op", "{}", 0},
		{"Cf-Ray: c | X-Amzn-RequestId: am | X-Goog-Request-Id: go | Request-Id: an", "an", "{}", 0},
		{"Cf-Ray: c | X-Amzn-RequestId: am | X-Goog-Request-Id: go", "go", "{}", 0},
		{"Cf-Ray: c | X-Amzn-RequestId: am | Retry-After: 7", "am", "{}", 7 * time.Second},
		{"Cf-Ray: c | Retry-After-Ms: 9000", "c", "{}", 9 * time.Second},
		{"", "", strings.Repeat("y", 2<<20), 0},
		{"Content-Encoding: gzip", "", zipped.String(), 0},
	} {
		f := &fake{t: t, steps: []step{{status: 400, header: tt.header, body: io.NopCloser(strings.NewReader(tt.body))}}}
		_, err := f.client(mmsp.HTTPOptions{}).Do(t.Context(), question)
		var e *StatusError
		if !errors.As(err, &e) || e.RequestID != tt.id || e.RetryAfter != tt.after {
			t.Errorf("%s: %#v", tt.header, err)
			continue
		}
		if len(tt.body) < 100 && string(e.Body) != tt.body || len(tt.body) > 100 && len(e.Body) != 1<<20 {
			t.Errorf("%s: body of %d bytes", tt.header, len(e.Body))
		}
		if e.Body[0] != 'y' && e.Body[0] != 'x' && e.Body[0] != '{' {
			t.Errorf("%s: body is not decoded", tt.header)
		}
		if text := err.Error(); !strings.Contains(text, "400 Bad Request") || !strings.Contains(text, tt.id) || strings.Contains(text, "{}") {
			t.Errorf("text %q", text)
		}
	}
}

// A provider that never ends its error answer does not hold the request.
func TestSlowErrorBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body, w := io.Pipe()
		go w.Write([]byte("part"))
		f := &fake{t: t, steps: []step{{status: 400, body: body}}}
		start := time.Now()
		_, err := f.client(mmsp.HTTPOptions{}).Do(t.Context(), question)
		var e *StatusError
		if !errors.As(err, &e) || string(e.Body) != "part" || time.Since(start) != errorBodyWait {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

func TestCancelDuringRetryWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fake{t: t, steps: []step{{status: 500}}}
		gone := errors.New("the caller is gone")
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(100*time.Millisecond, func() { cancel(gone) })
		start := time.Now()
		_, err := f.client(mmsp.HTTPOptions{}).Do(ctx, question)
		if !errors.Is(err, context.Canceled) || !errors.Is(err, gone) || time.Since(start) != 100*time.Millisecond || f.attempts != 1 {
			t.Errorf("%v after %v and %d attempts", err, time.Since(start), f.attempts)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		_, err := (&fake{t: t, steps: []step{{status: 500}}}).client(mmsp.HTTPOptions{}).Do(ctx, question)
		if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
			t.Errorf("deadline: %v", err)
		}
	})
}

// serve starts a provider and a client for it. With h2 they speak HTTP/2.
func serve(t *testing.T, o mmsp.HTTPOptions, h2 bool, handler http.HandlerFunc) (*Client, Request, *atomic.Int32) {
	t.Helper()
	srv := httptest.NewUnstartedServer(handler)
	srv.Config.ErrorLog = quiet
	conns := new(atomic.Int32)
	srv.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			conns.Add(1)
		}
	}
	hc := NewHTTPClient(o)
	if h2 {
		srv.EnableHTTP2 = true
		srv.StartTLS()
		hc.Transport.(*http.Transport).TLSClientConfig = srv.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	} else {
		srv.Start()
	}
	t.Cleanup(func() {
		hc.CloseIdleConnections()
		srv.Close()
	})
	return New(hc, o), Request{Method: "POST", URL: srv.URL + "/v1", Header: http.Header{"X-Api-Key": {"k"}}, Body: []byte("question")}, conns
}

func TestRequestOnTheWire(t *testing.T) {
	c, r, _ := serve(t, mmsp.HTTPOptions{}, false, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		user, password, _ := r.BasicAuth()
		fmt.Fprintf(w, "%s %s %s %q %s:%s %d", r.Method, r.URL, r.Header.Get("X-Api-Key"), r.Header["Accept-Encoding"], user, password, len(body))
	})
	r.URL = strings.Replace(r.URL, "http://", "http://me:pass%20word@", 1) + "?a=b"
	resp, err := c.Do(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Finish()
	body, err := io.ReadAll(resp.Body)
	if want := `POST /v1?a=b k [] me:pass word 8`; string(body) != want || err != nil {
		t.Errorf("got %q, %v; want %q", body, err, want)
	}
	if len(r.Header) != 1 {
		t.Errorf("the caller's header was changed: %v", r.Header)
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	var visited atomic.Int32
	c, r, _ := serve(t, mmsp.HTTPOptions{}, false, func(w http.ResponseWriter, r *http.Request) {
		visited.Add(1)
		http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
	})
	_, err := c.Do(t.Context(), r)
	var e *StatusError
	if !errors.As(err, &e) || e.Status != 307 || e.Header.Get("Location") != "/elsewhere" || visited.Load() != 1 {
		t.Errorf("%v after %d requests", err, visited.Load())
	}
	hc := NewHTTPClient(mmsp.HTTPOptions{})
	defer hc.CloseIdleConnections()
	resp, err := hc.Post(r.URL, "", nil)
	if err != nil || resp.StatusCode != 307 {
		t.Fatalf("plain client: %v, %v", resp, err)
	}
	resp.Body.Close()
}

func TestNoRetryAfterFirstByte(t *testing.T) {
	var requests atomic.Int32
	c, r, _ := serve(t, mmsp.HTTPOptions{}, false, func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		io.WriteString(w, "data: a")
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	resp, err := c.Do(t.Context(), r)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if string(body) != "data: a" || !errors.Is(err, io.ErrUnexpectedEOF) || requests.Load() != 1 {
		t.Errorf("%q, %v, %d requests", body, err, requests.Load())
	}
	if _, again := resp.Body.Read(make([]byte, 1)); again != err {
		t.Errorf("read after the error: %v", again)
	}
	resp.Finish()
}

// Aborting reaches the provider at once, whatever the request waits for.
func TestAbort(t *testing.T) {
	for _, phase := range []string{"before headers", "between bytes"} {
		for _, h2 := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/h2=%v", phase, h2), func(t *testing.T) {
				arrived, left := make(chan bool), make(chan time.Time, 1)
				c, r, _ := serve(t, mmsp.HTTPOptions{}, h2, func(w http.ResponseWriter, r *http.Request) {
					io.Copy(io.Discard, r.Body)
					if phase == "between bytes" {
						io.WriteString(w, "x")
						w.(http.Flusher).Flush()
					}
					arrived <- true
					<-r.Context().Done()
					left <- time.Now()
				})
				gone := errors.New("the caller is gone")
				ctx, cancel := context.WithCancelCause(t.Context())
				result := make(chan error)
				go func() {
					resp, err := c.Do(ctx, r)
					if err == nil {
						_, err = io.ReadAll(resp.Body)
						resp.Close()
					}
					result <- err
				}()
				<-arrived
				time.Sleep(10 * time.Millisecond) // into the blocking read
				start := time.Now()
				cancel(gone)
				if err := <-result; !errors.Is(err, context.Canceled) || !errors.Is(err, gone) {
					t.Errorf("error %v", err)
				}
				if took := (<-left).Sub(start); took > 100*time.Millisecond {
					t.Errorf("the provider learnt of it after %v", took)
				}
			})
		}
	}
}

func TestConnectErrors(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refusing := closed.Addr().String()
	closed.Close()

	silent, err := net.Listen("tcp", "127.0.0.1:0") // its backlog takes connections, nobody speaks on them
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	selfSigned := httptest.NewTLSServer(http.NotFoundHandler())
	defer selfSigned.Close()
	selfSigned.Config.ErrorLog = quiet
	hangUp := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer hangUp.Close()
	echo, err := net.Listen("tcp", "127.0.0.1:0") // answers with what it was sent, which is no HTTP
	if err != nil {
		t.Fatal(err)
	}
	defer echo.Close()
	go func() {
		for {
			conn, err := echo.Accept()
			if err != nil {
				return
			}
			p := make([]byte, 4096)
			n, _ := conn.Read(p)
			for line := range strings.SplitSeq(string(p[:n]), "\r\n") {
				if strings.Contains(line, "s3cr3t") {
					conn.Write([]byte(line + "\r\n\r\n"))
				}
			}
			conn.Close()
		}
	}()

	client := func(o mmsp.HTTPOptions) *Client {
		hc := NewHTTPClient(o)
		t.Cleanup(hc.CloseIdleConnections)
		return New(hc, o)
	}
	patient := client(mmsp.HTTPOptions{MaxRetries: new(0)})
	hasty := client(mmsp.HTTPOptions{MaxRetries: new(0), ConnectTimeout: 150 * time.Millisecond, HeaderTimeout: 120 * time.Millisecond})
	for _, tt := range []struct{ name, url, phase, text string }{
		{"refused", "http://me:pa-s3cr3t@" + refusing + "/?key=q-s3cr3t", "connect", "refused"},
		{"no handshake", "https://me:pa-s3cr3t@" + silent.Addr().String() + "/?key=q-s3cr3t", "tls", "150ms"},
		{"no TLS", "https://me:pa-s3cr3t@" + strings.TrimPrefix(hangUp.URL, "http://") + "/?key=q-s3cr3t", "tls", "TLS"},
		{"unknown authority", selfSigned.URL + "/?key=q-s3cr3t", "tls", "certificate"},
		{"no header", "http://me:pa-s3cr3t@" + silent.Addr().String() + "/?key=q-s3cr3t", "header", "120ms"},
		{"closed", hangUp.URL + "/?key=q-s3cr3t", "header", "EOF"},
		{"no HTTP", "http://me:pa-s3cr3t@" + echo.Addr().String() + "/?key=q-s3cr3t", "header", "malformed"},
		{"no URL", "http://me:pa-s3cr3t@host:port/", "connect", "malformed"},
		{"no URL, password with a slash", "http://me:s3cr3t/w@host/", "connect", "malformed"},
		{"other scheme", "ftp://me:pa-s3cr3t@host/", "connect", "malformed"},
		{"no host", "/v1?key=q-s3cr3t", "connect", "malformed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := patient
			if strings.HasSuffix(tt.text, "ms") { // where a limit is to run out
				c = hasty
			}
			start := time.Now()
			_, err := c.Do(t.Context(), Request{Method: "POST", URL: tt.url, Header: http.Header{"X-Api-Key": {"h-s3cr3t"}, "Authorization": {"Bearer b-s3cr3t"}}})
			var e *ConnectError
			if !errors.As(err, &e) || e.Phase != tt.phase {
				t.Fatalf("error %#v", err)
			}
			if again := strings.Contains(tt.text, "certificate") || tt.phase == "connect" && tt.text == "malformed"; e.Permanent() != again {
				t.Errorf("permanent: %v", e.Permanent())
			}
			if text := err.Error(); !strings.Contains(text, tt.text) || strings.Contains(text, "s3cr3t") || strings.Contains(e.Err.Error(), "s3cr3t") {
				t.Errorf("text %q", text)
			}
			if strings.HasSuffix(tt.text, "ms") && (!e.Timeout() || time.Since(start) < 100*time.Millisecond) {
				t.Errorf("timeout %v after %v", e.Timeout(), time.Since(start))
			}
			if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
				t.Error("passes for the caller's context")
			}
		})
	}
	t.Run("invalid header", func(t *testing.T) {
		retrying := client(mmsp.HTTPOptions{})
		start := time.Now()
		_, err := retrying.Do(t.Context(), Request{Method: "POST", URL: hangUp.URL, Header: http.Header{"X-Api-Key": {"h-s3cr3t\n"}}})
		if err == nil || strings.Contains(err.Error(), "s3cr3t") || time.Since(start) > 300*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

// Errors that no loopback server can cause.
func TestConnectErrorTexts(t *testing.T) {
	c := New(&http.Client{}, mmsp.HTTPOptions{ConnectTimeout: 7 * time.Second, HeaderTimeout: 9 * time.Second})
	req, err := newRequest(t.Context(), Request{URL: "http://me:pa-s3cr3t@provider.test/v1?key=q%2Fs3cr3t&alt=sse"})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		err         error
		phase, text string
		timeout     bool
	}{
		{&net.OpError{Op: "dial", Err: netTimeout("i/o timeout")}, "connect", "connect timeout after 7s", true},
		{&net.DNSError{Err: "no such host", Name: "nowhere.test"}, "connect", "lookup nowhere.test: no such host", false},
		{&net.OpError{Op: "proxyconnect", Err: errors.New("refused")}, "connect", "proxyconnect: refused", false},
		{&net.OpError{Op: "remote error", Err: errors.New("tls: handshake failure")}, "tls", "handshake failure", false},
		{netTimeout("net/http: TLS handshake timeout"), "tls", "tls timeout after 7s", true},
		{netTimeout("http2: timeout awaiting response headers"), "header", "header timeout after 9s", true},
		{netTimeout("read: connection timed out"), "header", "connection timed out", true},
		{errors.New(`invalid proxy address "me:s3cr3t%zz@proxy"`), "connect", "invalid proxy address in the environment", false},
		{context.Canceled, "header", "context canceled", false},
		{errors.New("broken: me:pa-s3cr3t, pa-s3cr3t"), "header", "broken: […], […]", false},
		{errors.New("broken: key=q%2Fs3cr3t&alt=sse, q/s3cr3t"), "header", "broken: […], […]", false},
	} {
		e := c.connectError(req, tt.err)
		if e.Phase != tt.phase || !strings.Contains(e.Error(), tt.text) || e.Timeout() != tt.timeout || strings.Contains(e.Error(), "s3cr3t") || errors.Is(e, context.Canceled) {
			t.Errorf("%v: %s, timeout %v", tt.err, e, e.Timeout())
		}
	}
}
