// Package gateway is the HTTP server: who may call, which row of the models table answers, what is counted and logged,
// and how it all ends when the process is told to stop.
package gateway

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/gateway/config"
	"github.com/prism-shadow/mmsp-go/gateway/metrics"
	"github.com/prism-shadow/mmsp-go/ingress"
	"github.com/prism-shadow/mmsp-go/internal/carry"
)

// Server serves one configuration at a time; Reload swaps it for another. It is safe for concurrent use.
type Server struct {
	log     *slog.Logger
	metrics *metrics.Metrics
	started time.Time
	state   atomic.Pointer[state]
	reload  sync.Mutex // one Reload at a time

	store    carry.Store // what callers' protocols have no place for
	draining atomic.Bool
	streams  atomic.Int64 // open upstream streams
	unknown  unknownFields

	// ctx is what every request's context comes from; stop ends those that outlive the drain.
	ctx  context.Context
	stop context.CancelCauseFunc
}

// maxStoreBytes bounds the memory that the store takes.
const maxStoreBytes = 256 << 20

// errInternal is what a caller is told of a panic.
var errInternal = errors.New("internal error; the server's log says more under the id of this request")

// Own is a row that a program adds to the models table: a client that it built itself, of its own Provider perhaps.
type Own struct {
	ID         string // what callers name
	Client     *mmsp.Client
	ClientType string // that the client is of; empty: one of the program's own
}

// New builds every row's client; the rows of own come after those of the configuration. The error is a *TableError where
// rows cannot be served. The metrics reach their file through Serve alone.
func New(c *config.Config, log *slog.Logger, own ...Own) (*Server, error) {
	first, err := newState(c, nil, own)
	if err != nil {
		return nil, err
	}
	return newServer(first, c, log), nil
}

// NewFromEnvironment serves, without a models table, the family of each official client whose key is in the
// environment, under the vendor's own ids. The error is ErrNoKeys when there is none.
func NewFromEnvironment(c *config.Config, getenv func(string) string, log *slog.Logger) (*Server, error) {
	first, err := environmentState(c, getenv)
	if err != nil {
		return nil, err
	}
	return newServer(first, c, log), nil
}

func newServer(first *state, c *config.Config, log *slog.Logger) *Server {
	s := &Server{log: log, started: time.Now(), store: carry.NewMemory(c.Store.MaxAge, min(c.Store.MaxBytes, maxStoreBytes))}
	s.ctx, s.stop = context.WithCancelCause(context.Background())
	s.metrics = metrics.Open(metrics.Options{Models: first.counted(), File: c.Metrics.File, Logger: log, OpenStreams: func() int { return int(s.streams.Load()) }})
	s.state.Store(first)
	return s
}

// Models returns the ids of GET /v1/models.
func (s *Server) Models() []string { return slices.Clone(s.state.Load().listed) }

// Reload swaps the configuration for new requests at once; running streams finish on the old one. A configuration
// whose rows cannot be built changes nothing.
func (s *Server) Reload(c *config.Config) error {
	s.reload.Lock()
	defer s.reload.Unlock()
	old := s.state.Load()
	next, err := newState(c, old, old.own)
	if err != nil {
		return err
	}
	s.state.Store(next)
	s.metrics.SetModels(next.counted())
	if next.http != old.http {
		old.http.CloseIdleConnections()
	}
	return nil
}

// Serve answers on the listener until ctx ends, then drains: readiness flips, new streams are refused, and running ones
// get the given time to finish; those that do not are ended with an error event. It returns when everything has ended,
// and is called once.
func (s *Server) Serve(ctx context.Context, listener net.Listener, drain time.Duration) error {
	background, cancel := context.WithCancel(context.Background())
	saved := make(chan struct{})
	go func() {
		defer close(saved)
		s.metrics.Run(background)
	}()
	var connections sync.WaitGroup // with what answers on them
	server := &http.Server{
		Handler:           s,
		BaseContext:       func(net.Listener) context.Context { return s.ctx },
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       120 * time.Second,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
		ConnState: func(_ net.Conn, now http.ConnState) {
			switch now {
			case http.StateNew:
				connections.Add(1)
			case http.StateClosed:
				connections.Done()
			}
		},
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
		s.draining.Store(true)
		s.log.Info("draining", "open_streams", s.streams.Load(), "limit", drain)
		limit, stop := context.WithTimeout(context.Background(), drain)
		// The listener stays open while streams run, so that probes and callers learn what is going on.
		server.SetKeepAlivesEnabled(false)
		for s.streams.Load() > 0 && limit.Err() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		if err = server.Shutdown(limit); errors.Is(err, context.DeadlineExceeded) {
			err = nil
		}
		stop()
		<-failed
	}
	// End what still runs, honestly, and give the last words a moment to go out.
	s.stop(ingress.ErrShutdown)
	limit, stop := context.WithTimeout(context.Background(), time.Second)
	if server.Shutdown(limit) != nil {
		err = errors.Join(err, server.Close())
	}
	stop()
	ended := make(chan struct{})
	go func() {
		connections.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(time.Second):
		err = errors.Join(err, errors.New("a request did not end"))
	}
	cancel()
	<-saved
	s.state.Load().http.CloseIdleConnections()
	return errors.Join(err, s.metrics.Close())
}

// ServeHTTP routes a request. Paths are matched to the letter.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	current := s.state.Load()
	call := &call{Server: s, state: current, w: w, r: r, began: time.Now(), id: requestID()}
	w.Header().Set("X-Request-Id", call.id)
	defer call.logged()
	// However slowly a body comes, it does not come for ever.
	_ = http.NewResponseController(w).SetReadDeadline(call.began.Add(bodyTime))

	switch r.URL.Path {
	case "/healthz":
		if call.method(http.MethodGet) {
			call.json(http.StatusOK, []byte(`{"status":"ok"}`))
		}
		return
	case "/readyz":
		switch {
		case !call.method(http.MethodGet):
		case s.draining.Load():
			call.json(http.StatusServiceUnavailable, []byte(`{"status":"draining"}`))
		default:
			call.json(http.StatusOK, []byte(`{"status":"ready"}`))
		}
		return
	}
	endpoint := endpointOf(r)
	if endpoint != nil {
		call.protocol = endpoint.protocol
		w.Header().Set("Request-Id", call.id) // where Anthropic's libraries look
	}
	if strings.HasPrefix(r.URL.Path, "/v1/") || strings.HasPrefix(r.URL.Path, "/v1beta/") {
		var err error
		if call.caller, err = current.authorize(r); err != nil {
			call.refuse(metrics.Unauthorized, err)
			return
		}
	}
	switch {
	case endpoint != nil:
		call.route(endpoint)
	case r.URL.Path == "/v1/stream" && r.Method == http.MethodPost:
		call.guard(call.stream)
	case r.URL.Path == "/v1/models" && r.Method == http.MethodGet:
		call.models()
	case strings.HasPrefix(r.URL.Path, "/v1/models/") && r.URL.Path != "/v1/models/" && r.Method == http.MethodGet:
		call.oneModel()
	case r.URL.Path == "/v1/metrics" && r.Method == http.MethodGet:
		snapshot, err := s.metrics.Query(r.URL.Query())
		if err != nil {
			call.fail(&mmsp.InvalidRequestError{Message: err.Error()})
			return
		}
		call.marshal(snapshot)
	default:
		call.method("")
	}
}

// call is one request being answered.
type call struct {
	*Server
	state *state
	w     http.ResponseWriter
	r     *http.Request
	began time.Time
	id    string

	protocol ingress.Protocol // that the caller speaks; nil: this server's own
	caller   string           // tells callers apart: the digest of the key, empty where the server is open
	row      *row             // of the model that is asked
	counted  *metrics.Request // nil until the model is
	out      *eventWriter     // nil where nothing is streamed

	// What the log line tells.
	status  int
	model   string
	outcome string
	usage   *mmsp.Usage
	err     error
}

// method answers 404 unless the request has the method; there is no such route otherwise.
func (c *call) method(want string) bool {
	if c.r.Method == want {
		return true
	}
	c.fail(&mmsp.NotFoundError{Message: fmt.Sprintf("no route for %.16s %.200s; there are POST /v1/stream, GET /v1/models and GET /v1/metrics", c.r.Method, c.r.URL.Path)})
	return false
}

func (c *call) json(status int, body []byte) {
	c.status = status
	_ = http.NewResponseController(c.w).SetWriteDeadline(time.Now().Add(stuckTime))
	h := c.w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	c.w.WriteHeader(status)
	_, _ = c.w.Write(body)
}

func (c *call) marshal(value any) {
	var body bytes.Buffer
	e := json.NewEncoder(&body)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		c.fail(err)
		return
	}
	c.json(http.StatusOK, body.Bytes())
}

// retryAfter is a wait as a header says it, rounded up: a caller must not come back too early.
func retryAfter(wait time.Duration) string {
	return strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10)
}

// refuse answers a request that no provider is asked for.
func (c *call) refuse(kind metrics.RefusalKind, err error) {
	c.metrics.Refuse(kind)
	c.fail(err)
}

// fail answers with an error that came before anything else.
func (c *call) fail(err error) {
	if c.protocol != nil {
		c.failIngress(err)
		return
	}
	c.err = err
	status := httpStatus(err)
	var upstream *mmsp.UpstreamError
	if errors.As(err, &upstream) {
		if upstream.RetryAfter > 0 {
			c.w.Header().Set("Retry-After", retryAfter(upstream.RetryAfter))
		}
		if id := c.redact(upstream.RequestID); requestIDForm.MatchString(id) {
			c.w.Header().Set("X-Upstream-Request-Id", id)
		}
	}
	if ingress.Explain(err).Final {
		c.w.Header().Set("X-Should-Retry", "false")
	}
	body := c.errorJSON(err)
	if c.r.Method == http.MethodGet && (c.r.URL.Path == "/v1/models" || strings.HasPrefix(c.r.URL.Path, "/v1/models/")) {
		body = modelsError(body, err)
	}
	c.json(status, body)
}

// requestIDForm is what of a provider's id may stand in a header.
var requestIDForm = regexp.MustCompile(`^[!-~]{1,256}$`)

// errorJSON is an error as it travels.
func (c *call) errorJSON(err error) []byte {
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		err = &mmsp.InvalidRequestError{Message: ingress.Explain(err).Message}
	}
	return []byte(c.redact(string(mmsp.AppendErrorJSON(nil, err))))
}

// withoutSecrets takes the secrets of the row out of a text: providers may repeat what they were sent.
func (c *call) withoutSecrets(text string) string {
	if c.row == nil {
		return text
	}
	return c.row.secrets.Replace(text)
}

// redact makes a text fit for callers: without secrets, and without where the provider stands, which errors of the network tell.
func (c *call) redact(text string) string {
	var certificate *tls.CertificateVerificationError
	if errors.As(c.err, &certificate) { // names whom it is of
		text = redactor([]string{certificate.Err.Error()}).Replace(text)
	}
	text = addresses.ReplaceAllString(c.withoutSecrets(text), "")
	if c.row == nil {
		return text
	}
	return c.row.places.Replace(text)
}

var addresses = regexp.MustCompile(`\b(dial|read|write|proxyconnect|socks connect) (tcp|udp)[46]?( [^ ]+)?: |\blookup [^ ]+( on [^ ]+)?: `)

// httpStatus is the status of an error that came before any event: a provider's own passes through.
func httpStatus(err error) int {
	var upstream *mmsp.UpstreamError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.Is(err, errInternal):
		return http.StatusInternalServerError
	case !errors.As(err, &upstream):
		return ingress.Explain(err).Status
	case upstream.Status >= 400 && upstream.Status < 600:
		return upstream.Status
	case errors.As(err, &timeout) && timeout.Timeout():
		return http.StatusGatewayTimeout
	}
	return http.StatusBadGateway
}

// logged writes the one line of the request.
func (c *call) logged() {
	if c.r.URL.Path == "/healthz" || c.r.URL.Path == "/readyz" {
		return
	}
	attrs := []slog.Attr{
		slog.String("id", c.id),
		slog.String("method", clip(c.r.Method)),
		slog.String("path", clip(c.r.URL.Path)),
		slog.Int("status", c.status),
		slog.Float64("took_ms", float64(time.Since(c.began).Microseconds())/1000),
	}
	if c.model != "" {
		attrs = append(attrs, slog.String("model", c.model))
	}
	if c.outcome != "" {
		attrs = append(attrs, slog.String("outcome", c.outcome))
	}
	if c.usage != nil {
		attrs = append(attrs, slog.Int64("tokens", c.usage.Total()))
	}
	level := slog.LevelInfo
	if c.err != nil {
		level = slog.LevelWarn
		attrs = append(attrs, slog.String("error", clip(c.withoutSecrets(c.err.Error()))))
	}
	c.log.LogAttrs(context.Background(), level, "request", attrs...)
}

// clip bounds a text that callers or providers choose.
func clip(text string) string {
	if len(text) > 512 {
		return strings.ToValidUTF8(text[:512], "") + "…"
	}
	return text
}

func requestID() string { return "req_" + strings.ToLower(rand.Text()) }

// authorize names the caller by the key of a request, which may be in any of the places where the SDKs of the protocols put
// theirs; two keys name none. Every key is compared, in constant time. A server without keys is not open to pages of the web.
func (s *state) authorize(r *http.Request) (caller string, err error) {
	if len(s.keys) == 0 {
		if !s.config.AllowOpen && !private(r.Host) {
			return "", &mmsp.AuthenticationError{Message: fmt.Sprintf("a server without api_keys is not called by a public name, as %.100q is; allow_open lets it", r.Host)}
		}
		return "", nil
	}
	given := []string{r.Header.Get("X-Api-Key"), r.Header.Get("X-Goog-Api-Key")}
	if scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		given = append(given, token)
	}
	if r.URL.RawQuery != "" {
		given = append(given, r.URL.Query().Get("key"))
	}
	for _, text := range given {
		if text == "" {
			continue
		}
		digest := sha256.Sum256([]byte(text))
		for i := range s.keys {
			if subtle.ConstantTimeCompare(digest[:], s.keys[i][:]) == 1 {
				if caller != "" && caller != string(digest[:]) {
					return "", errKey
				}
				caller = string(digest[:])
			}
		}
	}
	if caller == "" {
		return "", errKey
	}
	return caller, nil
}

var errKey = &mmsp.AuthenticationError{Message: "a valid API key is required"}

// private reports whether a Host header is no name of the public DNS. A page of any site can have its own name point at this
// machine, and then calls what listens here, but under that name.
func private(host string) bool {
	name := strings.ToLower(strings.TrimSuffix((&url.URL{Host: host}).Hostname(), "."))
	_, err := netip.ParseAddr(name)
	zone := name[strings.LastIndexByte(name, '.')+1:]
	return err == nil || zone == name || zone == "localhost" || zone == "local" || zone == "internal"
}
