package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/gateway"
	"github.com/prism-shadow/mmsp-go/gateway/config"
	"github.com/prism-shadow/mmsp-go/gateway/metrics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// served is a server under test.
type served struct {
	*gateway.Server
	t          *testing.T
	url        string
	text, json *lines          // the log, in both formats
	end        func()          // begins the drain
	ended      <-chan struct{} // Serve has returned
	err        error           // what it returned; to be read after ended
	client     *http.Client
}

// table returns a configuration whose comments and retries do not get in the way.
func table(models ...config.Model) *config.Config {
	c := config.Defaults()
	c.Models = models
	c.KeepAlive = time.Hour
	c.Upstream.MaxRetries = 0
	return &c
}

func start(t *testing.T, c *config.Config, own ...gateway.Own) *served {
	t.Helper()
	var text, jsonLines lines
	server, err := gateway.New(c, logger(&text, &jsonLines), own...)
	if err != nil {
		t.Fatal(err)
	}
	return run(t, server, &text, &jsonLines, 5*time.Second)
}

func logger(text, json *lines) *slog.Logger {
	o := &slog.HandlerOptions{Level: slog.LevelDebug}
	return slog.New(slog.NewMultiHandler(slog.NewTextHandler(text, o), slog.NewJSONHandler(json, o)))
}

func run(t *testing.T, server *gateway.Server, text, jsonLines *lines, drain time.Duration) *served {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	s := &served{
		Server: server, t: t, url: "http://" + listener.Addr().String(), text: text, json: jsonLines,
		end: cancel, ended: ended, client: &http.Client{Transport: &http.Transport{}},
	}
	go func() {
		defer close(ended)
		s.err = server.Serve(ctx, listener, drain)
	}()
	t.Cleanup(func() {
		s.client.CloseIdleConnections()
		cancel()
		<-ended
		if s.err != nil {
			t.Errorf("Serve: %v", s.err)
		}
	})
	return s
}

// answer is a response that was read to its end.
type answer struct {
	status int
	header http.Header
	body   string
	closes bool // the connection
}

func (s *served) send(r *http.Request) answer {
	s.t.Helper()
	response, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return answer{response.StatusCode, response.Header, string(body), response.Close}
}

func (s *served) request(method, path, body string) *http.Request {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	return r
}

func (s *served) get(path string) answer { return s.send(s.request("GET", path, "")) }

// ask asks a model and reads the answer to its end.
func (s *served) ask(model string) answer {
	return s.send(s.request("POST", "/v1/stream", question(model)))
}

// open asks a model; the answer is read by the caller.
func (s *served) open(ctx context.Context, model string) (*http.Response, error) {
	r := s.request("POST", "/v1/stream", question(model)).WithContext(ctx)
	return s.client.Do(r)
}

func question(model string) string {
	return `{"model":"` + model + `","messages":[{"role":"user","content_items":[{"type":"text.done","text":"hi"}]}]}`
}

func (s *served) metrics() (m metrics.Snapshot) {
	s.t.Helper()
	if err := json.Unmarshal([]byte(s.get("/v1/metrics").body), &m); err != nil {
		s.t.Fatal(err)
	}
	return m
}

// eventually waits for what happens soon after something else.
func eventually(t *testing.T, what string, happened func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Second); !happened(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// payloads returns the data of the events of a stream and checks its framing: nothing but data lines and comments,
// one blank line after each.
func payloads(t *testing.T, body string) (data []string, comments int) {
	t.Helper()
	if !strings.HasSuffix(body, "\n\n") {
		t.Errorf("the stream does not end with a blank line: %q", body[max(0, len(body)-80):])
	}
	for block := range strings.SplitSeq(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		text, isData := strings.CutPrefix(block, "data: ")
		switch {
		case strings.Contains(block, "\n") || !isData && block != ": keep-alive":
			t.Errorf("a block of the stream is %q", block)
		case isData:
			data = append(data, text)
		default:
			comments++
		}
	}
	return data, comments
}

// kinds names the events of a stream: the types of items, stop, the types of errors, and [DONE].
func kinds(t *testing.T, body string) string {
	t.Helper()
	data, _ := payloads(t, body)
	var names []string
	for _, payload := range data {
		var event struct {
			EventType string `json:"event_type"`
			Items     []struct{ Type string }
			Error     *struct{ Type string }
		}
		payload = strings.Replace(payload, `"content_items"`, `"items"`, 1)
		switch err := json.Unmarshal([]byte(payload), &event); {
		case payload == "[DONE]":
			names = append(names, payload)
		case err != nil:
			t.Errorf("%q: %v", payload, err)
		case event.Error != nil:
			names = append(names, event.Error.Type)
		case event.EventType == "stop":
			names = append(names, "stop")
		default:
			names = append(names, event.Items[0].Type)
		}
	}
	return strings.Join(names, " ")
}

// wireError is an error as it travels.
type wireError struct {
	Type, Message, Client, Param, Parameter string
	Status                                  int
}

func errorOf(t *testing.T, body string) wireError {
	t.Helper()
	var wire struct{ Error *wireError }
	if err := json.Unmarshal([]byte(body), &wire); err != nil || wire.Error == nil {
		t.Fatalf("no error object: %q", body)
	}
	return *wire.Error
}

// lines is a log that keeps its lines.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// with returns the lines that hold a text.
func (l *lines) with(text string) []string {
	return slices.DeleteFunc(strings.Split(l.String(), "\n"), func(line string) bool { return !strings.Contains(line, text) })
}

// script is a Provider that does what a test says.
type script struct {
	prepare func() error
	do      func(ctx context.Context, say func(mmsp.UniEvent) bool) error
}

func (script) Class() string                                { return "ScriptClient" }
func (script) ListModels(context.Context) ([]string, error) { return nil, errors.ErrUnsupported }

func (s script) Prepare(context.Context, []mmsp.Message, *mmsp.Config) (*mmsp.Request, error) {
	if s.prepare != nil {
		return nil, s.prepare()
	}
	return &mmsp.Request{}, nil
}

func (s script) Do(ctx context.Context, _ *mmsp.Request) iter.Seq2[*mmsp.UniEvent, error] {
	return func(yield func(*mmsp.UniEvent, error) bool) {
		if err := s.do(ctx, func(e mmsp.UniEvent) bool { return yield(&e, nil) }); err != nil {
			yield(nil, err)
		}
	}
}

func own(id string, s script) gateway.Own {
	return gateway.Own{ID: id, Client: mmsp.NewClient(s)}
}

// plays is a script of fixed events and the error after them.
func plays(err error, events ...mmsp.UniEvent) script {
	return script{do: func(_ context.Context, say func(mmsp.UniEvent) bool) error {
		for _, e := range events {
			if !say(fresh(e)) {
				return nil
			}
		}
		return err
	}}
}

// fresh is an event for one stream, which what reads it may change.
func fresh(e mmsp.UniEvent) mmsp.UniEvent {
	e.Deltas = slices.Clone(e.Deltas)
	return e
}

func says(text string) mmsp.UniEvent {
	return mmsp.UniEvent{Type: mmsp.EventDelta, Deltas: []mmsp.Delta{{Item: mmsp.Item{Type: mmsp.TextDelta, Text: text}, ItemID: "text"}}}
}

func thinks(text string) mmsp.UniEvent {
	return mmsp.UniEvent{Type: mmsp.EventDelta, Deltas: []mmsp.Delta{{Item: mmsp.Item{Type: mmsp.ThinkingDelta, Thinking: text}, ItemID: "thinking"}}}
}

func calls(arguments string) mmsp.UniEvent {
	return mmsp.UniEvent{Type: mmsp.EventDelta, Deltas: []mmsp.Delta{{
		Item: mmsp.Item{Type: mmsp.ToolCallDelta, Name: "look", ToolCallID: "c1", Arguments: arguments}, ItemID: "call",
	}}}
}

func continues(arguments string) mmsp.UniEvent {
	return mmsp.UniEvent{Type: mmsp.EventDelta, Deltas: []mmsp.Delta{{Item: mmsp.Item{Type: mmsp.ToolCallDelta, Arguments: arguments}, ItemID: "call"}}}
}

var stops = mmsp.UniEvent{
	Type: mmsp.EventStop, FinishReason: mmsp.FinishStop, Last: true,
	Usage: &mmsp.Usage{PromptTokens: new(int64(7)), ResponseTokens: new(int64(5))},
}

// chat starts a Chat Completions endpoint that a handler plays, and returns the row that reaches it.
func chat(t *testing.T, id string, handler http.HandlerFunc) config.Model {
	t.Helper()
	upstream := httptest.NewServer(handler)
	t.Cleanup(func() {
		upstream.CloseClientConnections()
		upstream.Close()
	})
	return chatRow(id, upstream.URL)
}

func chatRow(id, url string) config.Model {
	return config.Model{ServerModelID: id, ModelID: "upstream-id", ClientType: "openai-chat", BaseURL: url, APIKey: mmsp.NewSecret("upstream-key")}
}

const (
	chatDelta = `data: {"choices":[{"index":0,"delta":{"content":"He"}}]}` + "\n\n"
	chatEnd   = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n" +
		`data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":5}}` + "\n\ndata: [DONE]\n\n"
)

// flushes writes a piece of a stream.
func flushes(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, text)
	_ = http.NewResponseController(w).Flush()
}
