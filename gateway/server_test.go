package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/gateway"
	"github.com/prism-shadow/mmsp-go/gateway/config"
	"github.com/prism-shadow/mmsp-go/simulate"
)

func TestKeys(t *testing.T) {
	t.Parallel()
	c := table()
	c.APIKeys = []mmsp.Secret{mmsp.NewSecret("key-a"), mmsp.NewSecret("key-b")}
	s := start(t, c, own("m", plays(nil, says("hi"), stops)))
	refused, body := int64(0), ""
	for _, tt := range []struct {
		name, method, path string
		header             http.Header
		status             int
	}{
		{"bearer", "GET", "/v1/models", http.Header{"Authorization": {"Bearer key-a"}}, 200},
		{"the second key", "GET", "/v1/models", http.Header{"Authorization": {"Bearer key-b"}}, 200},
		{"the scheme in any case", "GET", "/v1/models", http.Header{"Authorization": {"bearer key-a"}}, 200},
		{"x-api-key", "GET", "/v1/models", http.Header{"X-Api-Key": {"key-a"}}, 200},
		{"x-goog-api-key", "GET", "/v1/models", http.Header{"X-Goog-Api-Key": {"key-b"}}, 200},
		{"query", "GET", "/v1/models?key=key-a", nil, 200},
		{"query of metrics", "GET", "/v1/metrics?window=60&key=key-a", nil, 200},
		{"a right one beside a wrong one", "GET", "/v1/models?key=no", http.Header{"Authorization": {"Bearer no"}, "X-Api-Key": {"key-a"}}, 200},
		{"the same twice", "GET", "/v1/models?key=key-a", http.Header{"X-Api-Key": {"key-a"}}, 200},
		{"two right ones, of two callers", "GET", "/v1/models", http.Header{"Authorization": {"Bearer key-a"}, "X-Api-Key": {"key-b"}}, 401},
		{"none", "GET", "/v1/models", nil, 401},
		{"wrong", "GET", "/v1/models", http.Header{"Authorization": {"Bearer key-c"}}, 401},
		{"wrong in every place", "GET", "/v1/models?key=x", http.Header{"Authorization": {"Bearer x"}, "X-Api-Key": {"x"}, "X-Goog-Api-Key": {"x"}}, 401},
		{"a prefix", "GET", "/v1/models", http.Header{"Authorization": {"Bearer key-"}}, 401},
		{"more than a key", "GET", "/v1/models", http.Header{"Authorization": {"Bearer key-a, key-b"}, "X-Api-Key": {"key-aa"}}, 401},
		{"both keys", "GET", "/v1/models", http.Header{"X-Api-Key": {"key-akey-b"}}, 401},
		{"another scheme", "GET", "/v1/models", http.Header{"Authorization": {"Basic key-a"}}, 401},
		{"no scheme", "GET", "/v1/models", http.Header{"Authorization": {"key-a"}}, 401},
		{"empty", "GET", "/v1/models?key=", http.Header{"Authorization": {"Bearer "}, "X-Api-Key": {""}, "X-Goog-Api-Key": {""}}, 401},
		{"before the body", "POST", "/v1/stream", nil, 401},
		{"before the routes", "DELETE", "/v1/nothing", nil, 401},
		{"before the routes of Gemini", "POST", "/v1beta/nothing", nil, 401},
		{"an escaped path", "GET", "/%761/models", nil, 401},
		{"no route", "GET", "/v1/nothing", http.Header{"X-Api-Key": {"key-a"}}, 404},
		{"outside", "GET", "/v1", nil, 404},
		{"outside, other case", "GET", "/V1/models", nil, 404},
		{"health", "GET", "/healthz", nil, 200},
		{"readiness", "GET", "/readyz", nil, 200},
	} {
		r := s.request(tt.method, tt.path, "")
		if tt.header != nil {
			r.Header = tt.header
		}
		got := s.send(r)
		if got.status != tt.status {
			t.Errorf("%s: status %d, want %d: %s", tt.name, got.status, tt.status, got.body)
		}
		if tt.status != 401 {
			continue
		}
		refused++
		bare := strings.Replace(got.body, `,"param":null,"code":"invalid_api_key"},"type":"error"}`, "}}", 1)
		if body == "" {
			body = bare
		}
		if bare != body || errorOf(t, got.body).Type != "AuthenticationError" {
			t.Errorf("%s: body %s differs from %s", tt.name, got.body, body)
		}
	}
	r := s.request("GET", "/v1/metrics", "")
	r.Header.Set("Authorization", "Bearer key-a")
	if want := fmt.Sprintf(`"refused":{"unauthorized":%d,"invalid_request":0,"unknown_model":0}`, refused); !strings.Contains(s.send(r).body, want) {
		t.Errorf("the metrics lack %s", want)
	}
}

// TestPublicName: a page that had its own name point here is not answered, lest it spend the keys of who reads it.
func TestPublicName(t *testing.T) {
	t.Parallel()
	open, asked, locked := table(), table(), table()
	asked.AllowOpen = true
	locked.APIKeys = []mmsp.Secret{mmsp.NewSecret("key")}
	for _, tt := range []struct {
		config *config.Config
		hosts  []string
		status int
	}{
		{open, []string{"evil.example", "evil.example:25752", "evil.example.", "127.0.0.1.evil.example", "[::1].evil.example"}, 401},
		{open, []string{"localhost", "LOCALHOST:1", "app.localhost", "127.0.0.1:25752", "[::1]:25752", "10.0.0.7", "gateway", "box.local", "host.docker.internal:80"}, 200},
		{asked, []string{"proxy.example"}, 200},
		{locked, []string{"proxy.example"}, 200},
	} {
		s := start(t, tt.config)
		for _, host := range tt.hosts {
			r := s.request("GET", "/v1/models", "")
			r.Host = host
			r.Header.Set("X-Api-Key", "key")
			if got := s.send(r); got.status != tt.status {
				t.Errorf("%s: status %d, want %d: %s", host, got.status, tt.status, got.body)
			}
		}
	}
}

// TestEmptyKey: a key that is configured as nothing must not let everybody in.
func TestEmptyKey(t *testing.T) {
	c := table()
	c.APIKeys = []mmsp.Secret{{}}
	if _, err := gateway.New(c, logger(new(lines), new(lines))); err == nil || !strings.Contains(err.Error(), "api_keys[0]") {
		t.Errorf("New: %v", err)
	}
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	s := start(t, table(), own("m", plays(nil, says("hi"), stops)))
	for _, tt := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/v1/models", 200},
		{"GET", "/v1/models?x=1", 200},
		{"GET", "/v1/metrics", 200},
		{"GET", "/healthz", 200},
		{"GET", "/readyz", 200},
		{"GET", "/", 404},
		{"GET", "/models", 404},
		{"GET", "/V1/models", 404},
		{"GET", "/v1/Models", 404},
		{"GET", "/v1/models/", 404},
		{"GET", "/v1/../v1/models", 404},
		{"GET", "/v1/stream", 404},
		{"POST", "/v1/stream/", 404},
		{"PUT", "/v1/stream", 404},
		{"POST", "/v1/models", 404},
		{"POST", "/v1/metrics", 404},
		{"HEAD", "/v1/models", 404},
		{"OPTIONS", "/v1/stream", 404},
		{"POST", "/healthz", 404},
		{"POST", "/readyz", 404},
		{"GET", "/healthz/", 404},
	} {
		r := s.request(tt.method, "/", "")
		r.URL.Opaque = tt.path // as it stands
		got := s.send(r)
		if got.status != tt.status || got.header.Get("Content-Type") != "application/json" || got.header.Get("X-Request-Id") == "" {
			t.Errorf("%s %s: %d %v %s", tt.method, tt.path, got.status, got.header, got.body)
		}
		if tt.status != 404 || tt.method == "HEAD" {
			continue
		}
		e := errorOf(t, got.body)
		path, _, _ := strings.Cut(tt.path, "?")
		for _, part := range []string{tt.method, path, "POST /v1/stream", "GET /v1/models", "GET /v1/metrics"} {
			if e.Type != "NotFoundError" || !strings.Contains(e.Message, part) {
				t.Errorf("%s %s: %+v lacks %q", tt.method, tt.path, e, part)
			}
		}
	}
	if r := s.metrics().Refused; r.Unauthorized+r.InvalidRequest+r.UnknownModel != 0 {
		t.Errorf("an unknown route counts as a refusal: %+v", r)
	}
}

func TestModels(t *testing.T) {
	t.Parallel()
	rows := []config.Model{chatRow("zeta", "http://127.0.0.1:1"), chatRow("alpha", "http://127.0.0.1:1"), chatRow(`a"b/ü`, "http://127.0.0.1:1")}
	before := time.Now().Unix()
	s := start(t, table(rows...), own("mine", plays(nil)))
	got := s.get("/v1/models")
	var list struct {
		Object string
		Data   []struct {
			ID, Object string
			Created    int64
			OwnedBy    string `json:"owned_by"`
		}
	}
	if err := json.Unmarshal([]byte(got.body), &list); err != nil || list.Object != "list" {
		t.Fatalf("%s: %v", got.body, err)
	}
	var ids []string
	for _, m := range list.Data {
		ids = append(ids, m.ID)
		if m.Object != "model" || m.OwnedBy != "mmsp" || m.Created != list.Data[0].Created || m.Created < before || m.Created > time.Now().Unix() {
			t.Errorf("%+v", m)
		}
	}
	if want := []string{"zeta", "alpha", `a"b/ü`, "mine"}; !slices.Equal(ids, want) || !slices.Equal(s.Models(), want) {
		t.Errorf("%q, %q, want %q", ids, s.Models(), want)
	}
}

func TestMetricsRoute(t *testing.T) {
	t.Parallel()
	s := start(t, table(), own("a", plays(nil, says("hi"), stops)), own("b", plays(errors.New("broken"), says("hi"))))
	s.ask("a")
	s.ask("b")
	s.ask("nobody")
	m := s.metrics()
	switch a, b := m.Models[0], m.Models[1]; {
	case m.Requests != 2, m.Successes != 1, m.Failures != 1, m.Disconnects != 0, m.InFlight != 0, m.Refused.UnknownModel != 1:
		t.Errorf("%+v", m.Counts)
	case a.ID != "a", a.Successes != 1, a.TokensOut != 5, a.Tokens.Prompt != 7, a.LastError != nil, *a.LastOutcome != "success":
		t.Errorf("a: %+v", a)
	case b.ID != "b", b.Failures != 1, b.LastError.Message != "broken", *b.LastOutcome != "failure":
		t.Errorf("b: %+v", b)
	case len(m.Errors) != 1, m.Errors[0].Model != "b":
		t.Errorf("errors: %+v", m.Errors)
	case m.Process.Goroutines == 0, m.Process.HeapBytes == 0, m.Process.OpenUpstreamStreams != 0:
		t.Errorf("process: %+v", m.Process)
	case m.Window != nil:
		t.Error("a window without a query")
	}
	for query, status := range map[string]int{
		"window=60": 200, "window=60&columns=6": 200, "columns=5": 200, "window=9": 400, "window=x": 400, "window=60&from=1": 400, "from=1": 400,
		"from=5&to=4": 400, "columns=0": 400,
	} {
		got := s.get("/v1/metrics?" + query)
		if got.status != status || strings.Contains(got.body, `"window":{`) != strings.HasPrefix(query, "window=60") && status == 200 {
			t.Errorf("%s: %d %s", query, got.status, got.body)
		}
		if status == 400 && errorOf(t, got.body).Type != "InvalidRequestError" {
			t.Errorf("%s: %s", query, got.body)
		}
	}
	if r := s.metrics().Refused; r.InvalidRequest != 0 {
		t.Errorf("a bad query counts as a refusal: %+v", r)
	}
}

func TestLog(t *testing.T) {
	t.Parallel()
	c := table()
	c.APIKeys = []mmsp.Secret{mmsp.NewSecret("key-a")}
	nasty := errors.New("line\nbreak \x1b[31m\x00" + strings.Repeat("x", 2000))
	s := start(t, c,
		own("good", plays(nil, says("hi"), stops)), own("early", plays(nasty)), own("late", plays(nasty, says("hi"))))
	for _, r := range []*http.Request{
		s.request("POST", "/v1/stream", question("good")),
		s.request("POST", "/v1/stream", question("early")),
		s.request("POST", "/v1/stream", question("late")),
		s.request("POST", "/v1/stream", "{"),
		s.request("POST", "/v1/stream", question("nobody")),
		s.request("GET", "/v1/models?x=y", ""),
		s.request("GET", "/"+strings.Repeat("long", 2000), ""),
		s.request(strings.Repeat("METHOD", 2000), "/v1/models", ""),
		s.request("GET", "/v1/%0A%1B%5B31m", ""),
		s.request("GET", "/healthz", ""),
	} {
		r.Header.Set("Authorization", "Bearer key-a")
		s.send(r)
	}
	s.get("/v1/models") // without a key
	want := []struct {
		method, path, model, outcome, err string
		status                            int
		tokens                            int64
	}{
		{method: "POST", path: "/v1/stream", status: 200, model: "good", outcome: "success", tokens: 12},
		{method: "POST", path: "/v1/stream", status: 502, model: "early", outcome: "failure", err: "line\nbreak"},
		{method: "POST", path: "/v1/stream", status: 200, model: "late", outcome: "failure", err: "line\nbreak"},
		{method: "POST", path: "/v1/stream", status: 400, err: "JSON"},
		{method: "POST", path: "/v1/stream", status: 404, err: "nobody"},
		{method: "GET", path: "/v1/models", status: 200},
		{method: "GET", path: "/longlong", status: 404, err: "no route"},
		{method: "METHOD", path: "/v1/models", status: 404, err: "no route"},
		{method: "GET", path: "/v1/\n\x1b[31m", status: 404, err: "no route"},
		{method: "GET", path: "/v1/models", status: 401, err: "key"},
	}
	eventually(t, "the last line", func() bool { return len(s.json.with(`"msg":"request"`)) >= len(want) })
	logged := s.json.with(`"msg":"request"`)
	if len(logged) != len(want) || len(s.text.with("msg=request")) != len(want) {
		t.Fatalf("%d lines, %d lines, want %d", len(logged), len(s.text.with("msg=request")), len(want))
	}
	for i, w := range want {
		var line struct {
			ID, Method, Path, Model, Outcome, Error, Level string
			Status                                         int
			Tokens                                         int64
			Took                                           float64 `json:"took_ms"`
		}
		if err := json.Unmarshal([]byte(logged[i]), &line); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(line.Method, w.method) || !strings.HasPrefix(line.Path, w.path) || line.Status != w.status ||
			line.Model != w.model || line.Outcome != w.outcome || line.Tokens != w.tokens || line.Took <= 0 || line.ID == "" ||
			!strings.Contains(line.Error, w.err) || (line.Error == "") != (w.err == "") || (line.Level == "WARN") != (w.err != "") {
			t.Errorf("%d: %s, want %+v", i, logged[i], w)
		}
		if len(logged[i]) > 4000 {
			t.Errorf("%d: a line of %d bytes", i, len(logged[i]))
		}
	}
	if text := s.text.String() + s.json.String(); strings.ContainsAny(text, "\x1b\x00") {
		t.Error("control characters in the log")
	}
}

func TestDrainFinishes(t *testing.T) {
	t.Parallel()
	more := make(chan struct{})
	s := start(t, table(), own("m", script{do: func(_ context.Context, say func(mmsp.UniEvent) bool) error {
		say(says("begun"))
		<-more
		say(stops)
		return nil
	}}))
	response, err := s.open(t.Context(), "m")
	if err != nil {
		t.Fatal(err)
	}
	if got := s.get("/readyz"); got.status != 200 {
		t.Errorf("readyz: %d", got.status)
	}
	s.end()
	eventually(t, "readyz is 503", func() bool { return s.get("/readyz").status == 503 })
	if got := s.get("/healthz"); got.status != 200 {
		t.Errorf("healthz: %d", got.status)
	}
	if got := s.ask("m"); got.status != 503 || !strings.Contains(errorOf(t, got.body).Message, "shutting down") {
		t.Errorf("a new stream: %d %s", got.status, got.body)
	}
	select {
	case <-s.ended:
		t.Error("Serve returned over a running stream")
	default:
	}
	close(more)
	if got := kinds(t, readAll(t, response)); got != "text.delta text.done stop [DONE]" {
		t.Error(got)
	}
	<-s.ended
	if _, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://")); err == nil {
		t.Error("the listener is open")
	}
}

func TestDrainEnds(t *testing.T) {
	t.Parallel()
	waits := func(events ...mmsp.UniEvent) script {
		return script{do: func(ctx context.Context, say func(mmsp.UniEvent) bool) error {
			for _, e := range events {
				say(e)
			}
			<-ctx.Done()
			return ctx.Err()
		}}
	}
	var text, jsonLines lines
	server, err := gateway.New(table(), logger(&text, &jsonLines), own("silent", waits()), own("begun", waits(says("He"))))
	if err != nil {
		t.Fatal(err)
	}
	s := run(t, server, &text, &jsonLines, 50*time.Millisecond)
	begun, err := s.open(t.Context(), "begun")
	if err != nil {
		t.Fatal(err)
	}
	silent := make(chan answer)
	go func() { silent <- s.ask("silent") }()
	eventually(t, "two streams", func() bool { return s.metrics().Process.OpenUpstreamStreams == 2 })
	s.end()
	if got := kinds(t, readAll(t, begun)); got != "text.delta Error [DONE]" {
		t.Error(got)
	}
	if got := <-silent; got.status != 503 || !strings.Contains(errorOf(t, got.body).Message, "shutting down") {
		t.Errorf("%d %s", got.status, got.body)
	}
	<-s.ended
	if got := len(text.with("outcome=cancelled")); got != 2 {
		t.Errorf("%d streams are logged as cancelled", got)
	}
}

// TestDrainOfStalledCaller: one who reads nothing does not keep the server from ending.
func TestDrainOfStalledCaller(t *testing.T) {
	t.Parallel()
	var text, jsonLines lines
	server, err := gateway.New(table(), logger(&text, &jsonLines), own("m", script{do: endless(nil)}))
	if err != nil {
		t.Fatal(err)
	}
	s := run(t, server, &text, &jsonLines, 50*time.Millisecond)
	connection := dial(t, s, question("m"))
	defer connection.Close()
	eventually(t, "the stream", func() bool { return s.metrics().Process.OpenUpstreamStreams == 1 })
	s.end()
	select {
	case <-s.ended:
	case <-time.After(5 * time.Second):
		t.Fatal("Serve did not return")
	}
}

func TestListenerFails(t *testing.T) {
	t.Parallel()
	server, err := gateway.New(table(), logger(new(lines), new(lines)))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	listener.Close()
	if err := server.Serve(t.Context(), listener, time.Second); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Serve: %v", err)
	}
}

func TestIPv6(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "[::1]:0")
	if err != nil {
		t.Skip(err)
	}
	server, err := gateway.New(table(), logger(new(lines), new(lines)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- server.Serve(ctx, listener, time.Second) }()
	response, err := http.Get("http://" + listener.Addr().String() + "/healthz")
	if err != nil || response.StatusCode != 200 {
		t.Errorf("%v %v", response, err)
	} else {
		response.Body.Close()
	}
	http.DefaultClient.CloseIdleConnections()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestTable(t *testing.T) {
	noKey := chatRow("c", "http://127.0.0.1:1")
	noKey.APIKey, noKey.Line = mmsp.Secret{}, 7
	unknown := chatRow("d", "http://127.0.0.1:1")
	unknown.ClientType = "nonsense"
	_, err := gateway.New(table(chatRow("a", "http://127.0.0.1:1"), chatRow("a", "http://127.0.0.1:1"), noKey, unknown), logger(new(lines), new(lines)))
	var bad *gateway.TableError
	if !errors.As(err, &bad) || len(bad.Rows) != 3 || bad.Rows[1].Line != 7 || bad.Rows[1].Row != 2 || bad.Rows[1].ID != "c" {
		t.Fatalf("%v", err)
	}
	for _, part := range []string{"models[1] 'a': ", "models[2] 'c': ", "api_key", "models[3] 'd': ", "nonsense"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%v lacks %q", err, part)
		}
	}
	if _, err := gateway.New(table(chatRow("a", "http://127.0.0.1:1")), logger(new(lines), new(lines)), own("a", script{})); err == nil {
		t.Error("an own row takes the id of another")
	}
}

func TestReload(t *testing.T) {
	t.Parallel()
	var connections atomic.Int64
	more := make(chan struct{})
	upstream := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		flushes(w, chatDelta)
		if r.URL.Path == "/slow/chat/completions" {
			<-more
		}
		flushes(w, chatEnd)
	}))
	upstream.Config.ConnState = func(_ net.Conn, now http.ConnState) {
		if now == http.StateNew {
			connections.Add(1)
		}
	}
	upstream.Start()
	defer upstream.Close()

	s := start(t, table(chatRow("old", upstream.URL+"/slow"), chatRow("both", upstream.URL)), own("mine", plays(nil, says("hi"), stops)))
	running, err := s.open(t.Context(), "old")
	if err != nil {
		t.Fatal(err)
	}
	s.ask("both")
	s.ask("mine")
	used := connections.Load()

	bad := table(chatRow("new", upstream.URL), chatRow("new", upstream.URL))
	if err := s.Reload(bad); err == nil {
		t.Error("a bad table is taken")
	}
	if got := s.Models(); !slices.Equal(got, []string{"old", "both", "mine"}) {
		t.Errorf("after a bad table: %q", got)
	}

	next := table(chatRow("new", upstream.URL), chatRow("both", upstream.URL))
	next.APIKeys = []mmsp.Secret{mmsp.NewSecret("key-a")}
	if err := s.Reload(next); err != nil {
		t.Fatal(err)
	}
	if got := s.ask("both"); got.status != 401 {
		t.Errorf("without the new key: %d", got.status)
	}
	for model, status := range map[string]int{"new": 200, "both": 200, "mine": 200, "old": 404} {
		r := s.request("POST", "/v1/stream", question(model))
		r.Header.Set("X-Api-Key", "key-a")
		if got := s.send(r); got.status != status {
			t.Errorf("%s: %d %s", model, got.status, got.body)
		}
	}
	if got := connections.Load(); got != used {
		t.Errorf("%d connections to the upstream, %d before the reload", got, used)
	}
	close(more)
	if got := kinds(t, readAll(t, running)); got != "text.delta text.done stop [DONE]" {
		t.Errorf("the running stream: %s", got)
	}

	changed := table(chatRow("both", upstream.URL), chatRow("old", upstream.URL))
	changed.Upstream.ConnectTimeout++
	if err := s.Reload(changed); err != nil {
		t.Fatal(err)
	}
	s.ask("both")
	if got := connections.Load(); got <= used {
		t.Error("new limits go over the old connections")
	}
	m := s.metrics()
	if got := []int64{m.Models[0].Successes, m.Models[1].Successes, m.Models[2].Successes, m.Successes}; m.Models[0].ID != "both" || m.Models[1].ID != "old" || !slices.Equal(got, []int64{3, 1, 2, 7}) {
		t.Errorf("%+v", m.Models)
	}
}

func TestReloadUnderLoad(t *testing.T) {
	t.Parallel()
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { flushes(w, chatDelta+chatEnd) }))
	defer upstream.Close()
	s := start(t, table(chatRow("a", upstream.URL)))
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 25 {
				if got := s.ask("a"); got.status != 200 {
					t.Errorf("%d %s", got.status, got.body)
				}
			}
		})
	}
	for i := range 2 {
		group.Go(func() {
			for n := range 10 {
				c := table(chatRow("a", upstream.URL), chatRow(fmt.Sprint("b", n), upstream.URL))
				c.Upstream.ConnectTimeout += time.Duration(i + n%3)
				if err := s.Reload(c); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if m := s.metrics(); m.Models[0].Successes != 100 || m.InFlight != 0 {
		t.Errorf("%+v", m.Counts)
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	providers, err := simulate.Start(t.Context(), map[string]http.Handler{"responses": simulate.Responses(simulate.Options{Key: "env-key"})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { providers.Close() })
	environment := func(pairs ...string) func(string) string {
		return func(name string) string {
			if i := slices.Index(pairs, name); i >= 0 {
				return pairs[i+1]
			}
			return ""
		}
	}
	var text, jsonLines lines
	log := logger(&text, &jsonLines)
	for _, tt := range []struct {
		env  func(string) string
		want error
	}{
		{environment(), gateway.ErrNoKeys},
		{environment("MMSP_API_KEY", "k", "CLIENT_TYPE", "openai-chat"), gateway.ErrNoKeys},
		{environment("OPENAI_API_KEY", "k", "OPENAI_BASE_URL", "nonsense"), nil},
		{environment("OPENAI_API_KEY", "k\nk"), nil},
	} {
		if _, err := gateway.NewFromEnvironment(table(), tt.env, log); err == nil || tt.want != nil && !errors.Is(err, tt.want) {
			t.Errorf("%v, want %v", err, tt.want)
		}
	}

	env := environment("OPENAI_API_KEY", "env-key", "OPENAI_BASE_URL", providers.URL("responses")+"/v1")
	server, err := gateway.NewFromEnvironment(table(), env, log)
	if err != nil {
		t.Fatal(err)
	}
	s := run(t, server, &text, &jsonLines, time.Second)
	if !slices.Contains(s.Models(), "gpt-5.5") {
		t.Errorf("listed: %q", s.Models())
	}
	for _, id := range s.Models() {
		if !strings.HasPrefix(id, "gpt-") && !strings.HasPrefix(id, "text-embedding-") {
			t.Errorf("%q is listed", id)
		}
	}
	for model, status := range map[string]int{
		"gpt-5.5": 200, "gpt-of-tomorrow": 200, "claude-opus-5": 404, "openai-official": 404, "gpt": 404, "gpt-" + strings.Repeat("x", 300): 404,
	} {
		if got := s.ask(model); got.status != status {
			t.Errorf("%s: %d %s", model, got.status, got.body)
		}
	}
	m := s.metrics()
	if len(m.Models) != 1 || m.Models[0].ID != "openai-official" || m.Models[0].Successes != 2 || m.Refused.UnknownModel != 4 {
		t.Errorf("%+v", m)
	}
	for _, name := range gateway.KeyVariables() {
		if !strings.HasSuffix(name, "_API_KEY") {
			t.Errorf("%q is a key's variable", name)
		}
	}
}

// TestModelErrors: SDKs of both vendors read the errors of the list of models, as MMSP's clients do.
func TestModelErrors(t *testing.T) {
	t.Parallel()
	c := table()
	c.APIKeys = []mmsp.Secret{mmsp.NewSecret("key-a")}
	s := start(t, c)
	for _, tt := range []struct {
		path, key, want string
		status          int
	}{
		{"/v1/models/zz", "key-a", `{"error":{"type":"NotFoundError","message":"the model \"zz\" does not exist; GET /v1/models lists those that do","param":null,"code":"model_not_found"},"type":"error"}`, 404},
		{"/v1/models", "wrong", `"param":null,"code":"invalid_api_key"},"type":"error"}`, 401},
		{"/v1/metrics", "wrong", `"}}`, 401},
	} {
		r := s.request("GET", tt.path, "")
		r.Header.Set("Authorization", "Bearer "+tt.key)
		if got := s.send(r); got.status != tt.status || !strings.HasSuffix(strings.TrimSpace(got.body), tt.want) {
			t.Errorf("%s: %d %s", tt.path, got.status, got.body)
		}
	}
}
