package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/gateway"
	"github.com/prism-shadow/mmsp-go/gateway/config"
)

func readAll(t *testing.T, response *http.Response) string {
	t.Helper()
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// dial sends a request over a connection of its own and reads nothing.
func dial(t *testing.T, s *served, body string) net.Conn {
	t.Helper()
	connection, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(connection, "POST /v1/stream HTTP/1.1\r\nHost: s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	return connection
}

// TestHalfClosed: a caller that closes its half is gone, and what it still reads does not look like a whole answer.
func TestHalfClosed(t *testing.T) {
	t.Parallel()
	s := start(t, table(), own("early", script{do: func(ctx context.Context, _ func(mmsp.UniEvent) bool) error {
		<-ctx.Done()
		return ctx.Err()
	}}), own("late", script{do: func(ctx context.Context, say func(mmsp.UniEvent) bool) error {
		say(says("hi"))
		<-ctx.Done()
		return ctx.Err()
	}}))
	for model, begins := range map[string]string{"early": "", "late": "HTTP/1.1 200 OK"} {
		connection := dial(t, s, question(model))
		time.Sleep(50 * time.Millisecond)
		_ = connection.(*net.TCPConn).CloseWrite()
		got, _ := io.ReadAll(connection)
		if !strings.HasPrefix(string(got), begins) || begins == "" && len(got) > 0 || strings.HasSuffix(string(got), "0\r\n\r\n") {
			t.Errorf("%s: %q", model, got)
		}
		connection.Close()
	}
	eventually(t, "two disconnects", func() bool { return s.metrics().Disconnects == 2 })
}

func TestStream(t *testing.T) {
	t.Parallel()
	s := start(t, table(), own("m", plays(nil, thinks("Hm"), says("H"), says("i"), calls(`{"a":`), continues(`1}`), stops)))
	got := s.ask("m")
	h := got.header
	if got.status != 200 || h.Get("Content-Type") != "text/event-stream; charset=utf-8" || h.Get("Cache-Control") != "no-cache" || h.Get("X-Request-Id") == "" {
		t.Errorf("%d %v", got.status, h)
	}
	data, comments := payloads(t, got.body)
	if comments != 0 || data[len(data)-1] != "[DONE]" {
		t.Errorf("%d comments, %q", comments, data)
	}
	var checker mmsp.GrammarChecker
	for _, payload := range data[:len(data)-1] {
		event, more, err := mmsp.ParseEvent([]byte(payload))
		if err == nil && more == nil {
			err = checker.Event(&event)
		}
		if err != nil {
			t.Errorf("%s: %v", payload, err)
		}
	}
	if err := checker.End(); err != nil {
		t.Error(err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	c := table(chatRow("served", "http://127.0.0.1:1"))
	c.Limits.MaxDepth = 40
	s := start(t, c, own("m", plays(nil, says("hi"), stops)))
	message := func(item string) string {
		return `{"model":"m","messages":[{"role":"user","content_items":[` + item + `]}]}`
	}
	invalid := 0
	for _, tt := range []struct {
		name, contentType, body string
		status                  int
		param, message          string
	}{
		{"good", "application/json", question("m"), 200, "", ""},
		{"charset", "application/json; charset=utf-8", question("m"), 200, "", ""},
		{"upper case", "Application/JSON", question("m"), 200, "", ""},
		{"unknown keys", "application/json", `{"x":{"y":1},` + question("m")[1:], 200, "", ""},
		{"config null", "application/json", `{"config":null,` + question("m")[1:], 200, "", ""},
		{"no content type", "", question("m"), 400, "", "content type"},
		{"form", "application/x-www-form-urlencoded", question("m"), 400, "", "content type"},
		{"text", "text/plain", question("m"), 400, "", "content type"},
		{"no body", "application/json", "", 400, "", "JSON"},
		{"cut", "application/json", question("m")[:20], 400, "", "JSON"},
		{"two values", "application/json", question("m") + "{}", 400, "", "JSON"},
		{"not UTF-8", "application/json", `{"model":"` + "\xff" + `"}`, 400, "", "JSON"},
		{"a list", "application/json", `[` + question("m") + `]`, 400, "", "object"},
		{"a key twice", "application/json", `{"model":"other",` + question("m")[1:], 400, "", "model"},
		{"a deep key twice", "application/json", message(`{"type":"text.done","text":"a","text":"b"}`), 400, "", "text"},
		{"another case", "application/json", strings.Replace(question("m"), "model", "Model", 1), 400, "model", "string"},
		{"no model", "application/json", `{"messages":[]}`, 400, "model", "string"},
		{"model empty", "application/json", `{"model":"","messages":[]}`, 400, "model", "string"},
		{"model a number", "application/json", `{"model":1,"messages":[]}`, 400, "", ""},
		{"model before messages", "application/json", `{}`, 400, "model", "string"},
		{"no messages", "application/json", `{"model":"m"}`, 400, "messages", "list"},
		{"messages an object", "application/json", `{"model":"m","messages":{}}`, 400, "messages", "list"},
		{"messages before the model is looked up", "application/json", `{"model":"x"}`, 400, "messages", "list"},
		{"config a list", "application/json", `{"config":[],` + question("m")[1:], 400, "config", "object"},
		{"config a text", "application/json", `{"config":"x",` + question("m")[1:], 400, "config", "object"},
		{"config value", "application/json", `{"config":{"thinking_level":"huge"},` + question("m")[1:], 400, "config.thinking_level", "low"},
		{"config type", "application/json", `{"config":{"max_tokens":"1"},` + question("m")[1:], 400, "config.max_tokens", "integer"},
		{"deep", "application/json", `{"x":` + strings.Repeat("[", 40) + strings.Repeat("]", 40) + `,` + question("m")[1:], 400, "", ""},
		{"role", "application/json", `{"model":"m","messages":[{"role":"system","content_items":[]}]}`, 400, "messages[0].role", ""},
		{"item type", "application/json", message(`{"type":"video.done"}`), 400, "messages[0].content_items[0].type", ""},
		{"no item type", "application/json", message(`{"text":"x"}`), 400, "messages[0].content_items[0].type", ""},
		{"delta", "application/json", message(`{"type":"text.delta","text":"x"}`), 400, "messages[0].content_items[0].type", ""},
		{"result without id", "application/json", message(`{"type":"tool_result.done","text":"x"}`), 400, "messages[0].content_items[0].tool_call_id", ""},
		{"base64", "application/json", message(`{"type":"inline_data.done","mime_type":"a/b","data":"*"}`), 400, "messages[0].content_items[0].data", "base64"},
		{"unknown model", "application/json", question("x"), 404, "", "GET /v1/models"},
		{"unknown model before its messages", "application/json", `{"model":"x","messages":[1]}`, 404, "", "GET /v1/models"},
		{"upstream id", "application/json", question("upstream-id"), 404, "", "upstream-id"},
		{"another case of the id", "application/json", question("M"), 404, "", ""},
	} {
		r := s.request("POST", "/v1/stream", tt.body)
		r.Header.Del("Content-Type")
		if tt.contentType != "" {
			r.Header.Set("Content-Type", tt.contentType)
		}
		got := s.send(r)
		if got.status != tt.status {
			t.Errorf("%s: %d, want %d: %s", tt.name, got.status, tt.status, got.body)
		}
		if tt.status == 200 {
			continue
		}
		want := map[int]string{400: "InvalidRequestError", 404: "NotFoundError"}[tt.status]
		e := errorOf(t, got.body)
		if e.Type != want || e.Param != tt.param && tt.param != "" || !strings.Contains(e.Message, tt.message) {
			t.Errorf("%s: %+v, want param %s, message %s", tt.name, e, tt.param, tt.message)
		}
		if tt.status == 400 {
			invalid++
		}
	}
	r := s.request("POST", "/v1/stream", question("m"))
	r.Header.Set("X-MMSP-Session-Key", "mine")
	if got := s.send(r); got.status != 400 || errorOf(t, got.body).Param != "X-MMSP-Session-Key" {
		t.Errorf("session key: %d %s", got.status, got.body)
	}
	r = s.request("POST", "/v1/stream", question("m"))
	r.Header.Set("Content-Encoding", "gzip")
	if got := s.send(r); got.status != 400 || errorOf(t, got.body).Type != "InvalidRequestError" || !strings.Contains(got.body, "gzip") {
		t.Errorf("a compressed body: %d %s", got.status, got.body)
	}
	m := s.metrics()
	if m.Refused.InvalidRequest != int64(invalid)+2 || m.Refused.UnknownModel != 4 || m.Requests != 5 || m.Failures != 0 {
		t.Errorf("%+v, %+v", m.Refused, m.Counts)
	}
}

func TestBodyLimit(t *testing.T) {
	t.Parallel()
	c := table()
	c.Limits.MaxBodyBytes = 2000
	s := start(t, c, own("m", plays(nil, says("hi"), stops)))
	body := func(size int) string { return question("m") + strings.Repeat(" ", size-len(question("m"))) }
	for _, chunked := range []bool{false, true} {
		for size, status := range map[int]int{1999: 200, 2000: 200, 2001: 413, 1 << 20: 413} {
			r := s.request("POST", "/v1/stream", body(size))
			if chunked {
				r.ContentLength = -1
			}
			got := s.send(r)
			if got.status != status {
				t.Errorf("%d bytes, chunked %v: %d %s", size, chunked, got.status, got.body)
			}
			if status == 413 && (errorOf(t, got.body).Type != "InvalidRequestError" || !strings.Contains(got.body, "2000")) {
				t.Errorf("%d bytes: %s", size, got.body)
			}
		}
	}
	if r := s.metrics().Refused; r.InvalidRequest != 0 {
		t.Errorf("too much counts as a refusal: %+v", r)
	}
}

// TestConnectionAfterRefusal: what follows a refused request on its connection is read as the next request, or the
// connection is closed.
func TestConnectionAfterRefusal(t *testing.T) {
	t.Parallel()
	c := table()
	c.Limits.MaxBodyBytes = 2000
	s := start(t, c, own("m", plays(nil, says("hi"), stops)))
	for _, tt := range []struct {
		name, header string
		size         int
		status       int
		close        bool
	}{
		{"not read", "Content-Type: text/plain", 1500, 400, false},
		{"not read and long", "Content-Type: text/plain", 1 << 20, 400, true},
		{"bad JSON", "Content-Type: application/json", 1500, 400, false},
		{"too much", "Content-Type: application/json", 3000, 413, true},
	} {
		connection, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		_ = connection.SetDeadline(time.Now().Add(3 * time.Second))
		go fmt.Fprintf(connection, "POST /v1/stream HTTP/1.1\r\nHost: s\r\n%s\r\nContent-Length: %d\r\n\r\n%sGET /v1/models HTTP/1.1\r\nHost: s\r\n\r\n",
			tt.header, tt.size, strings.Repeat("x", tt.size))
		reader := bufio.NewReader(connection)
		first, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		io.Copy(io.Discard, first.Body)
		if first.StatusCode != tt.status || first.Close != tt.close {
			t.Errorf("%s: %d, close %v", tt.name, first.StatusCode, first.Close)
		}
		second, err := http.ReadResponse(reader, nil)
		if !tt.close && (err != nil || second.StatusCode != 200) || tt.close && err == nil {
			t.Errorf("%s: then %v, %v", tt.name, second, err)
		}
		connection.Close()
	}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	status := func(code int, header, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			if name, value, ok := strings.Cut(header, ": "); ok {
				w.Header().Set(name, value)
			}
			w.WriteHeader(code)
			io.WriteString(w, body)
		}
	}
	piece := func(text string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) { flushes(w, text) }
	}
	quiet := make(chan struct{})
	silent := func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.Path, "/headers/") {
			flushes(w, "")
		}
		<-quiet
	}
	message := `{"error":{"message":"no","type":"t","code":"c"}}`

	var models []config.Model
	tests := []struct {
		name    string
		handler http.HandlerFunc
		url     string // in place of the handler
		config  string
		status  int
		kind    string
		header  string // "Name: value"
	}{
		{name: "400", handler: status(400, "", message), status: 400, kind: "UpstreamError"},
		{name: "401", handler: status(401, "", message), status: 401, kind: "UpstreamError"},
		{name: "404", handler: status(404, "", "<html>"), status: 404, kind: "UpstreamError"},
		{name: "429", handler: status(429, "Retry-After: 30", message), status: 429, kind: "UpstreamError", header: "Retry-After: 30"},
		{name: "rounded up", handler: status(429, "Retry-After-Ms: 30001", message), status: 429, kind: "UpstreamError", header: "Retry-After: 31"},
		{name: "less than a second", handler: status(503, "Retry-After: 0.1", message), status: 503, kind: "UpstreamError", header: "Retry-After: 1"},
		{name: "without a wait", handler: status(503, "", message), status: 503, kind: "UpstreamError", header: "Retry-After: "},
		{name: "request id", handler: status(500, "X-Request-Id: up_1", message), status: 500, kind: "UpstreamError", header: "X-Upstream-Request-Id: up_1"},
		{name: "no header in an id", handler: status(500, "", `{"request_id":"a\r\nX-Evil: 1","error":{}}`), status: 500, kind: "UpstreamError", header: "X-Upstream-Request-Id: "},
		{name: "529", handler: status(529, "", message), status: 529, kind: "UpstreamError"},
		{name: "a redirect", handler: status(302, "Location: /x", ""), status: 502, kind: "UpstreamError"},
		{name: "refused", url: "http://127.0.0.1:1", status: 502, kind: "UpstreamError", header: "X-Should-Retry: "},
		{name: "no name", url: "http://nowhere.invalid", status: 502, kind: "UpstreamError"},
		{name: "no header", handler: silent, status: 504, kind: "UpstreamError"},
		{name: "no event", url: "headers", handler: silent, status: 504, kind: "IncompleteStreamError"},
		{name: "empty body", handler: piece(""), status: 502, kind: "IncompleteStreamError"},
		{name: "[DONE] alone", handler: piece("data: [DONE]\n\n"), status: 502, kind: "IncompleteStreamError"},
		{name: "error event first", handler: piece("data: " + message + "\n\n"), status: 502, kind: "UpstreamError"},
		{name: "error event with a status", handler: piece(`data: {"error":{"message":"no","code":429}}` + "\n\n"), status: 429, kind: "UpstreamError", header: "X-Should-Retry: "},
		{name: "an overload first", handler: piece(`data: {"error":{"message":"no","type":"overloaded_error"}}` + "\n\n"), status: 502, kind: "UpstreamError", header: "X-Should-Retry: "},
		{name: "no quota", handler: status(429, "", `{"error":{"message":"no","code":"insufficient_quota"}}`), status: 429, kind: "UpstreamError", header: "X-Should-Retry: false"},
		{name: "not there", handler: status(501, "", message), status: 501, kind: "UpstreamError", header: "X-Should-Retry: false"},
		{name: "a page", handler: piece("<html>"), status: 502, kind: "UpstreamError", header: "X-Should-Retry: false"},
		{name: "cut before anything", handler: piece(": hello\n\n"), status: 502, kind: "IncompleteStreamError", header: "X-Should-Retry: false"},
		{name: "unreadable", handler: piece("data: {\n\n"), status: 502, kind: "UpstreamError", header: "X-Should-Retry: false"},
		{name: "a parameter", handler: piece(""), config: `{"prompt_caching":"enhance"}`, status: 400, kind: "UnsupportedParameterError"},
		{name: "a trace id", handler: piece(""), config: `{"trace_id":"../x"}`, status: 400, kind: "UnsupportedParameterError"},
	}
	for _, tt := range tests {
		row := chatRow(tt.name, tt.url)
		if tt.handler != nil {
			row = chat(t, tt.name, tt.handler)
			if tt.url != "" {
				row.BaseURL += "/" + tt.url
			}
		}
		models = append(models, row)
	}
	t.Cleanup(func() { close(quiet) }) // before the upstreams end, which wait for it
	c := table(models...)
	c.Upstream.HeaderTimeout, c.Upstream.IdleTimeout = 100*time.Millisecond, 200*time.Millisecond
	s := start(t, c)
	for _, tt := range tests {
		body := question(tt.name)
		if tt.config != "" {
			body = `{"config":` + tt.config + `,` + body[1:]
		}
		got := s.send(s.request("POST", "/v1/stream", body))
		name, value, _ := strings.Cut(tt.header, ": ")
		if e := errorOf(t, got.body); got.status != tt.status || e.Type != tt.kind || tt.header != "" && got.header.Get(name) != value || got.header.Get("X-Evil") != "" {
			t.Errorf("%s: %d %v %s", tt.name, got.status, got.header, got.body)
		}
	}
	if m := s.metrics(); m.Failures != int64(len(tests)) || m.InFlight != 0 || m.Refused.InvalidRequest != 0 {
		t.Errorf("%+v", m.Counts)
	}
}

// TestErrors: what ends a stream behind its header is its last event.
func TestErrors(t *testing.T) {
	t.Parallel()
	late := &mmsp.UpstreamError{Client: "ScriptClient", Message: "no", Status: 529, Object: json.RawMessage("{\n  \"a\": \"\\n\"\r\n}")}
	empty := mmsp.UniEvent{Type: mmsp.EventStop, FinishReason: mmsp.FinishLength, Usage: &mmsp.Usage{PromptTokens: new(int64(7))}, Last: true}
	misplaced := says("x")
	misplaced.FinishReason = mmsp.FinishStop
	for _, tt := range []struct {
		name   string
		script script
		kinds  string // of the events; empty: an HTTP status
	}{
		{"upstream", plays(late, says("He")), "text.delta UpstreamError [DONE]"},
		{"plain", plays(errors.New("gone"), says("He")), "text.delta Error [DONE]"},
		{"over several items", plays(late, thinks("a"), says("b"), calls("{")), "thinking.delta thinking.done text.delta text.done tool_call.delta UpstreamError [DONE]"},
		{"cut", plays(nil, says("He")), "text.delta IncompleteStreamError [DONE]"},
		{"empty", plays(nil, empty), "EmptyResponseError [DONE]"},
		{"thinking alone", plays(nil, thinks("a"), stops), "thinking.delta thinking.done EmptyResponseError [DONE]"},
		{"arguments", plays(nil, calls(`{"q":`), stops), "tool_call.delta ToolCallArgumentParseError [DONE]"},
		{"grammar, first", plays(nil, misplaced), "StreamProtocolError [DONE]"},
		{"grammar, late", plays(nil, says("He"), misplaced), "text.delta StreamProtocolError [DONE]"},
		{"early", plays(late), ""},
	} {
		s := start(t, table(), own("m", tt.script))
		got := s.ask("m")
		if tt.kinds == "" {
			if got.status != 529 {
				t.Errorf("%s: %d %s", tt.name, got.status, got.body)
			}
			continue
		}
		if k := kinds(t, got.body); k != tt.kinds || got.status != 200 {
			t.Errorf("%s: %d %s, want %s", tt.name, got.status, k, tt.kinds)
		}
		if m := s.metrics(); m.Failures != 1 || m.Successes != 0 || m.InFlight != 0 {
			t.Errorf("%s: %+v", tt.name, m.Counts)
		}
	}
}

// silent is a Forwarder that says nothing, not even how it ended.
type silent struct{ script }

func (silent) StreamingResponse(context.Context, []mmsp.Message, *mmsp.Config) iter.Seq2[mmsp.Event, error] {
	return func(func(mmsp.Event, error) bool) {}
}

func TestNoEnd(t *testing.T) {
	t.Parallel()
	s := start(t, table(), gateway.Own{ID: "m", Client: mmsp.NewClient(silent{})})
	if got := s.ask("m"); got.status != 502 || errorOf(t, got.body).Type != "IncompleteStreamError" {
		t.Errorf("%d %s", got.status, got.body)
	}
	if m := s.metrics(); m.Failures != 1 || m.InFlight != 0 {
		t.Errorf("%+v", m.Counts)
	}
}

func TestPanic(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		events []mmsp.UniEvent
		early  bool
		status int
	}{
		{"while preparing", nil, true, 500},
		{"before an event", nil, false, 500},
		{"after an event", []mmsp.UniEvent{says("He")}, false, 200},
	} {
		var closed atomic.Bool
		faulty := script{do: func(_ context.Context, say func(mmsp.UniEvent) bool) error {
			defer closed.Store(true)
			for _, e := range tt.events {
				say(e)
			}
			panic("oh \x1b[31m no")
		}}
		if tt.early {
			closed.Store(true)
			faulty.prepare = func() error { panic("oh no") }
		}
		s := start(t, table(), own("m", faulty), own("good", plays(nil, says("hi"), stops)))
		got := s.ask("m")
		if got.status != tt.status || !strings.Contains(got.body, "internal error") || strings.Contains(got.body, "oh") {
			t.Errorf("%s: %d %s", tt.name, got.status, got.body)
		}
		if got.status == 200 && kinds(t, got.body) != "text.delta Error [DONE]" {
			t.Errorf("%s: %s", tt.name, got.body)
		}
		if !closed.Load() {
			t.Errorf("%s: the upstream is open", tt.name)
		}
		if again := s.ask("good"); again.status != 200 {
			t.Errorf("%s: then %d", tt.name, again.status)
		}
		m := s.metrics()
		if m.Models[0].Failures != 1 || m.InFlight != 0 || m.Process.OpenUpstreamStreams != 0 {
			t.Errorf("%s: %+v", tt.name, m.Counts)
		}
		if log := s.json.with(`"msg":"panic"`); len(log) != 1 || !strings.Contains(log[0], "stream_test.go") || !strings.Contains(log[0], got.header.Get("X-Request-Id")) {
			t.Errorf("%s: %q", tt.name, log)
		}
		if log := s.json.with(`"outcome":"failure"`); len(log) != 1 || !strings.Contains(log[0], fmt.Sprintf(`"status":%d`, tt.status)) {
			t.Errorf("%s: %q", tt.name, log)
		}
	}
}

func TestKeepAlive(t *testing.T) {
	t.Parallel()
	const every = 60 * time.Millisecond
	pause := func(ctx context.Context) {
		select {
		case <-time.After(5 * every):
		case <-ctx.Done():
		}
	}
	talks := script{do: func(ctx context.Context, say func(mmsp.UniEvent) bool) error {
		pause(ctx)
		say(says("He"))
		pause(ctx)
		say(says("y"))
		say(stops)
		pause(ctx) // the stream is over; this is no silence
		return nil
	}}
	fails := script{do: func(ctx context.Context, _ func(mmsp.UniEvent) bool) error {
		pause(ctx)
		return &mmsp.UpstreamError{Status: 429, Message: "no"}
	}}
	c := table()
	c.KeepAlive = every
	s := start(t, c, own("talks", talks), own("fails", fails))

	got := s.ask("talks")
	before, rest, _ := strings.Cut(got.body, "data: ")
	between, after, _ := strings.Cut(rest, `"y"`)
	beats := func(text string) int { return strings.Count(text, ": keep-alive\n\n") }
	if beats(before) == 0 || beats(between) == 0 || beats(after) != 0 {
		t.Error(got.body)
	}
	if k := kinds(t, got.body); k != "text.delta text.delta text.done stop [DONE]" {
		t.Error(k)
	}
	// The header was out: the error comes behind it.
	got = s.ask("fails")
	if k := kinds(t, got.body); got.status != 200 || k != "UpstreamError [DONE]" || !strings.HasPrefix(got.body, ": keep-alive\n\n") {
		t.Errorf("%d %s", got.status, got.body)
	}

	c = table()
	c.KeepAlive = 0
	s = start(t, c, own("talks", talks), own("fails", fails))
	if got := s.ask("talks"); strings.Contains(got.body, "keep-alive") || got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := s.ask("fails"); got.status != 429 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// TestKeepAliveRace: comments come between events whenever they come.
func TestKeepAliveRace(t *testing.T) {
	t.Parallel()
	c := table()
	c.KeepAlive = time.Nanosecond
	busy := script{do: func(_ context.Context, say func(mmsp.UniEvent) bool) error {
		for i := range 200 {
			e := says("x")
			e.More = i%3 == 0
			say(e)
		}
		say(stops)
		return nil
	}}
	s := start(t, c, own("m", busy), own("fails", plays(errors.New("no"))))
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 5 {
				got := s.ask("m")
				if data, _ := payloads(t, got.body); len(data) != 203 {
					t.Errorf("%d events", len(data))
				}
				if got := s.ask("fails"); got.status != 502 && got.status != 200 {
					t.Errorf("%d %s", got.status, got.body)
				}
			}
		})
	}
	group.Wait()
}

// TestNothingIsHeldBack: an event reaches the caller while the provider pauses right after it, whatever came with it.
func TestNothingIsHeldBack(t *testing.T) {
	t.Parallel()
	responses := func(kind, fields string) string {
		return "event: " + kind + "\ndata: {\"type\":\"" + kind + "\"," + fields + "}\n\n"
	}
	starts := responses("response.output_item.added", `"output_index":0,"item":{"type":"message","id":"i","role":"assistant","content":[]}`) +
		responses("response.content_part.added", `"output_index":0,"item_id":"i","content_index":0,"part":{"type":"output_text","text":""}`)
	text := responses("response.output_text.delta", `"output_index":0,"item_id":"i","content_index":0,"delta":"He"`)
	emptyText := responses("response.output_text.delta", `"output_index":0,"item_id":"i","content_index":0,"delta":""`)
	block := "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"
	blockText := func(text string) string {
		return "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"" + text + "\"}}\n\n"
	}
	ping := "event: ping\ndata: {\"type\":\"ping\"}\n\n"
	emptyChunk := `data: {"choices":[{"index":0,"delta":{"content":""}}]}` + "\n\n"
	relayed := `data: {"role":"assistant","event_type":"delta","content_items":[{"type":"text.delta","text":"He"}],"usage_metadata":null,"finish_reason":null,"created_at":1}` + "\n\n"

	var models []config.Model
	tests := []struct{ clientType, name, wire string }{
		{"openai-chat", "alone", chatDelta},
		{"openai-chat", "empty deltas", chatDelta + emptyChunk + emptyChunk},
		{"openai-chat", "comment", chatDelta + ": ping\n\n"},
		{"openai-chat", "heartbeats", chatDelta + "data: \n\ndata\n\n"},
		{"openai-chat", "half an event", chatDelta + `data: {"choices":[{"index":0,"del`},
		{"openai-responses", "alone", starts + text},
		{"openai-responses", "empty delta", starts + text + emptyText},
		{"openai-official", "alone", starts + text},
		{"openai-official", "unknown", starts + text + responses("response.unknown", `"a":1`)},
		{"ant-messages", "alone", block + blockText("He")},
		{"ant-messages", "ping", block + blockText("He") + ping},
		{"ant-messages", "empty delta", block + blockText("He") + blockText("")},
		{"anthropic-official", "ping", block + blockText("He") + ping + ping},
		{"mmsp", "alone", relayed},
		{"mmsp", "comment", relayed + ": keep-alive\n\n"},
	}
	release := make(chan struct{})
	for _, tt := range tests {
		row := chat(t, tt.clientType+" "+tt.name, func(w http.ResponseWriter, _ *http.Request) {
			flushes(w, tt.wire)
			<-release
		})
		row.ClientType = tt.clientType
		models = append(models, row)
	}
	t.Cleanup(func() { close(release) })
	s := start(t, table(models...))
	for _, row := range models {
		connection := dial(t, s, question(row.ServerModelID))
		_ = connection.SetReadDeadline(time.Now().Add(2 * time.Second))
		reader := bufio.NewReader(connection)
		for got := ""; !strings.Contains(got, `"text":"He"`); {
			line, err := reader.ReadString('\n')
			if got += line; err != nil {
				t.Errorf("%s: %v after %q", row.ServerModelID, err, got)
				break
			}
		}
		connection.Close()
	}
	eventually(t, "all callers are gone", func() bool { return s.metrics().Disconnects == int64(len(models)) })
}

// TestBursts: events that are ready together go out together.
func TestBursts(t *testing.T) {
	t.Parallel()
	next := make(chan struct{})
	s := start(t, table(), own("m", script{do: func(_ context.Context, say func(mmsp.UniEvent) bool) error {
		for i := range 50 {
			e := says("x")
			e.More = i < 49
			say(e)
		}
		<-next
		say(stops)
		return nil
	}}))
	response, err := s.open(t.Context(), "m")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	buffer := make([]byte, 64<<10)
	n, err := response.Body.Read(buffer) // one chunk of the response
	if got := strings.Count(string(buffer[:n]), "data: "); got != 50 || err != nil {
		t.Errorf("%d events came at once, %v", got, err)
	}
	close(next)
	io.Copy(io.Discard, response.Body)
}

func TestDisconnect(t *testing.T) {
	t.Parallel()
	reached := make(chan struct{}, 4)
	gone := make(chan time.Time, 4)
	waits := func(before string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body) // the end of a caller is noticed behind the body
			if before != "" {
				flushes(w, before)
			}
			reached <- struct{}{}
			<-r.Context().Done()
			gone <- time.Now()
		}
	}
	var attempts atomic.Int64
	c := table(
		chat(t, "before the header", waits("")),
		chat(t, "between events", waits(chatDelta)),
		chat(t, "during a retry's wait", func(w http.ResponseWriter, _ *http.Request) {
			attempts.Add(1)
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(503)
			reached <- struct{}{}
		}),
	)
	c.Upstream.MaxRetries = 1
	s := start(t, c)
	for i, row := range c.Models {
		ctx, leave := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if response, err := s.open(ctx, row.ServerModelID); err == nil {
				io.Copy(io.Discard, response.Body)
				response.Body.Close()
			}
		}()
		<-reached
		time.Sleep(20 * time.Millisecond) // the first event reaches the caller, or the wait begins
		left := time.Now()
		leave()
		if i < 2 {
			if took := (<-gone).Sub(left); took > 100*time.Millisecond {
				t.Errorf("%s: the upstream was open for %v", row.ServerModelID, took)
			}
		}
		<-ended
		eventually(t, "a disconnect", func() bool { return s.metrics().Disconnects == int64(i+1) })
		if took := time.Since(left); took > 300*time.Millisecond {
			t.Errorf("%s: counted after %v", row.ServerModelID, took)
		}
	}
	m := s.metrics()
	if m.Failures != 0 || m.InFlight != 0 || m.SuccessRate != nil || len(m.Errors) != 0 || attempts.Load() != 1 {
		t.Errorf("%+v, %d attempts", m.Counts, attempts.Load())
	}
	for _, row := range m.Models {
		if row.LastError != nil || *row.LastOutcome != "disconnect" {
			t.Errorf("%+v", row)
		}
	}
	eventually(t, "three lines of log", func() bool { return len(s.json.with(`"outcome":"disconnect"`)) == 3 })
}

// endless says 64 KiB at a time for as long as somebody takes it.
func endless(said *atomic.Int64) func(context.Context, func(mmsp.UniEvent) bool) error {
	return func(ctx context.Context, say func(mmsp.UniEvent) bool) error {
		big := says(strings.Repeat("x", 64<<10))
		for ctx.Err() == nil && say(big) {
			if said != nil {
				said.Add(1)
			}
		}
		return ctx.Err()
	}
}

// TestBackpressure: a caller that stops reading stops the upstream, and fills no memory.
func TestBackpressure(t *testing.T) {
	t.Parallel()
	var said, ended atomic.Int64
	s := start(t, table(), own("m", script{do: func(ctx context.Context, say func(mmsp.UniEvent) bool) error {
		defer ended.Add(1)
		// Every delta is an item of its own, so that nothing is collected for the done item.
		kinds := []mmsp.UniEvent{thinks(strings.Repeat("x", 64<<10)), says(strings.Repeat("x", 64<<10))}
		for i := 0; ctx.Err() == nil && say(kinds[i%2]); i++ {
			said.Add(1)
		}
		return ctx.Err()
	}}))
	connection := dial(t, s, question("m"))
	var before int64
	eventually(t, "the stream stands still", func() bool {
		now := said.Load()
		still := now > 0 && now == before
		before = now
		time.Sleep(50 * time.Millisecond)
		return still
	})
	if sent := said.Load() * 64 << 10; sent > 64<<20 {
		t.Errorf("%d bytes went out unread", sent)
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	if memory.HeapAlloc > 256<<20 {
		t.Errorf("%d bytes in the heap", memory.HeapAlloc)
	}
	connection.Close()
	eventually(t, "the upstream ends", func() bool { return ended.Load() == 1 })
	eventually(t, "a disconnect", func() bool { return s.metrics().Disconnects == 1 })
}

// TestSlowBody: a body that stands still holds nothing of an upstream, and its end is noticed.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	s := start(t, table(), own("m", plays(nil, says("hi"), stops)))
	connection := dial(t, s, question("m"))
	connection.Close()
	half, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(half, "POST /v1/stream HTTP/1.1\r\nHost: s\r\nContent-Type: application/json\r\nContent-Length: 40000000\r\n\r\n{")
	half.Close()
	eventually(t, "a refusal, and nothing under way", func() bool {
		m := s.metrics()
		return m.Refused.InvalidRequest == 1 && m.InFlight == 0
	})
}

var stamp = regexp.MustCompile(`"created_at":\d+`)

// TestSecondHop: through another server everything is as it was.
func TestSecondHop(t *testing.T) {
	t.Parallel()
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(code)
			io.WriteString(w, "{\"error\":{\n\"message\":\"no\",\"type\":\"t\"}}")
		}
	}
	first := table(chat(t, "429", status(429)), chat(t, "500", status(500)), chat(t, "400", status(400)))
	data := mmsp.UniEvent{Type: mmsp.EventDelta, Deltas: []mmsp.Delta{{
		Item: mmsp.Item{Type: mmsp.InlineDataDelta, Data: []byte{0, 255}, MimeType: "image/png", Fidelity: mmsp.Fidelity(`{"signature":"s"}`)}, ItemID: "d",
	}}}
	owns := []gateway.Own{
		own("good", plays(nil, thinks("a"), says("b"), data, calls(`{"n":9007199254740993}`), stops)),
		own("late", plays(&mmsp.UpstreamError{Client: "C", Message: "no", Status: 529, Code: "c"}, says("He"))),
		own("plain", plays(errors.New("gone"), says("He"))),
		own("empty", plays(nil, thinks("a"), stops)),
		own("nothing", plays(nil, stops)),
		own("arguments", plays(nil, calls(`{"q":`), stops)),
		own("grammar", plays(nil, says("He"), continues(`1`), stops)),
		own("parameter", script{prepare: func() error {
			return &mmsp.UnsupportedParameterError{Client: "C", Parameter: "temperature", Message: "no"}
		}}),
	}
	a := start(t, first, owns...)
	second, third := table(), table()
	ids := a.Models()
	relay := func(id, url string) config.Model {
		return config.Model{ServerModelID: id, ModelID: id, ClientType: "mmsp", BaseURL: url + "/v1"}
	}
	ids = append(ids, "unknown")
	for _, id := range ids {
		second.Models = append(second.Models, relay(id, a.url))
	}
	b := start(t, second)
	for _, id := range ids {
		third.Models = append(third.Models, relay(id, b.url))
	}
	c := start(t, third)
	for _, id := range ids {
		for _, body := range []string{question(id), `{"model":"` + id + `","messages":[{"role":"robot","content_items":[]}]}`} {
			direct := a.send(a.request("POST", "/v1/stream", body))
			for _, s := range []*served{b, c} {
				hop := s.send(s.request("POST", "/v1/stream", body))
				want, got := stamp.ReplaceAllString(direct.body, ""), stamp.ReplaceAllString(hop.body, "")
				if got != want || hop.status != direct.status || hop.header.Get("Retry-After") != direct.header.Get("Retry-After") {
					t.Errorf("%s: %d %s\nwant %d %s", id, hop.status, got, direct.status, want)
				}
			}
		}
	}
	if m := c.metrics(); m.InFlight != 0 || m.Successes != 1 {
		t.Errorf("%+v", m.Counts)
	}
}

// TestStrangePeer: what another server sends against the grammar neither stops this one nor reaches behind an end.
func TestStrangePeer(t *testing.T) {
	t.Parallel()
	delta := `data: {"role":"assistant","event_type":"delta","content_items":[{"type":"text.delta","text":"He"}],"created_at":1}` + "\n\n"
	stop := `data: {"role":"assistant","event_type":"stop","content_items":[],"usage_metadata":null,"finish_reason":"stop","created_at":1}` + "\n\n"
	for _, tt := range []struct {
		name, wire, kinds, outcome string
		cut                        bool
	}{
		{"usage is null", delta + stop + "data: [DONE]\n\n", "text.delta stop [DONE]", "success", false},
		{"events after the stop", stop + delta + stop + "data: [DONE]\n\n", "stop [DONE]", "success", false},
		{"an error after the stop", delta + stop + "data: {\"error\":{\"type\":\"X\"}}\n\ndata: [DONE]\n\n", "text.delta stop [DONE]", "success", false},
		{"cut after the stop", delta + stop, "text.delta stop [DONE]", "success", true},
		{"no mark after the stop", delta + stop, "text.delta stop [DONE]", "success", false},
		{"no stop", delta + "data: [DONE]\n\n", "text.delta IncompleteStreamError [DONE]", "failure", false},
		{"cut", delta, "text.delta IncompleteStreamError [DONE]", "failure", true},
		{"several items", `data: {"event_type":"delta","content_items":[{"type":"text.delta","text":"a"},{"type":"text.delta","text":"b"}]}` + "\n\n" + stop, "text.delta text.delta stop [DONE]", "success", false},
		{"line breaks", "data: {\"event_type\":\"delta\",\ndata: \"content_items\":[{\"type\":\"text.delta\",\ndata: \"x\":\ndata: 1}]}\n\n" + stop, "text.delta stop [DONE]", "success", false},
		{"nothing", "", "", "failure", false},
	} {
		peer := chat(t, "m", func(w http.ResponseWriter, _ *http.Request) {
			flushes(w, tt.wire)
			if tt.cut {
				panic(http.ErrAbortHandler)
			}
		})
		peer.ClientType = "mmsp"
		s := start(t, table(peer))
		got := s.ask("m")
		if tt.kinds == "" {
			if got.status != 502 {
				t.Errorf("%s: %d %s", tt.name, got.status, got.body)
			}
		} else if k := kinds(t, got.body); k != tt.kinds {
			t.Errorf("%s: %s, want %s", tt.name, k, tt.kinds)
		}
		if m := s.metrics(); *m.Models[0].LastOutcome != tt.outcome || m.InFlight != 0 {
			t.Errorf("%s: %s, %+v", tt.name, *m.Models[0].LastOutcome, m.Counts)
		}
		if log := s.json.with(`"outcome":"` + tt.outcome + `"`); len(log) != 1 {
			t.Errorf("%s: %s", tt.name, s.json)
		}
	}
}

// TestPlainWriter: the server works behind a writer that can do nothing but write, as middleware may hand on.
func TestPlainWriter(t *testing.T) {
	t.Parallel()
	server, err := gateway.New(table(), logger(new(lines), new(lines)), own("m", plays(nil, says("hi"), stops)))
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/stream", strings.NewReader(question("m")))
	r.Host = "localhost"
	r.Header.Set("Content-Type", "application/json")
	recorder := httptest.NewRecorder()
	server.ServeHTTP(struct{ http.ResponseWriter }{recorder}, r)
	if k := kinds(t, recorder.Body.String()); k != "text.delta text.done stop [DONE]" {
		t.Error(k)
	}
}
