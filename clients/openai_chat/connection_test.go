package openaichat_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prism-shadow/mmsp-go"
)

// closing answers with what write sends and then holds the connection until the client leaves, whose moment it tells.
func closing(t *testing.T, write func(http.ResponseWriter)) (server *httptest.Server, arrived chan struct{}, closed chan time.Time) {
	arrived, closed = make(chan struct{}, 1), make(chan time.Time, 1)
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body) // only then does the server see the client leave
		write(w)
		arrived <- struct{}{}
		<-r.Context().Done()
		closed <- time.Now()
	}))
	t.Cleanup(server.Close)
	return server, arrived, closed
}

// TestAbort: whatever ends a stream early, the provider's side sees the connection close at once.
func TestAbort(t *testing.T) {
	silent := func(http.ResponseWriter) {}
	talking := func(w http.ResponseWriter) {
		io.WriteString(w, sse(d(`{"content":"a"}`)))
		w.(http.Flusher).Flush()
	}
	cause := errors.New("enough")
	for _, tt := range []struct {
		name  string
		write func(http.ResponseWriter)
		image bool // the server is that of a picture
		end   func(t *testing.T, client *mmsp.Client, messages []mmsp.Message, arrived chan struct{}) time.Time
	}{
		{"before the headers", silent, false, cancel(cause)},
		{"between bytes", talking, false, cancel(cause)},
		{"during an image fetch", silent, true, cancel(cause)},
		{"in the middle of a picture", talking, true, cancel(cause)},
		{"the consumer breaks", talking, false, func(t *testing.T, client *mmsp.Client, messages []mmsp.Message, _ chan struct{}) time.Time {
			var left time.Time
			for range client.StreamingResponse(t.Context(), messages, nil) {
				left = time.Now()
				break
			}
			return left
		}},
		{"the consumer panics", talking, false, func(t *testing.T, client *mmsp.Client, messages []mmsp.Message, _ chan struct{}) (left time.Time) {
			defer func() {
				if recover() != "consumer" {
					t.Error("the panic did not pass")
				}
			}()
			for range client.StreamingResponse(t.Context(), messages, nil) {
				left = time.Now()
				panic("consumer")
			}
			return left
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server, arrived, closed := closing(t, tt.write)
			options, messages := mmsp.Options{BaseURL: server.URL, HTTPClient: server.Client()}, ask
			if tt.image {
				options = mmsp.Options{BaseURL: "http://never.test", AllowPrivateFetch: true}
				messages = []mmsp.Message{mmsp.UserMessage(mmsp.ImageURL(server.URL))}
			}
			left := tt.end(t, mmsp.NewClient(build(t, options)), messages, arrived)
			if took := (<-closed).Sub(left); took > 100*time.Millisecond {
				t.Errorf("closed after %v", took)
			}
		})
	}
}

// cancel ends the stream by its context once the request has arrived, and checks that the cause is what it ends with.
func cancel(cause error) func(*testing.T, *mmsp.Client, []mmsp.Message, chan struct{}) time.Time {
	return func(t *testing.T, client *mmsp.Client, messages []mmsp.Message, arrived chan struct{}) time.Time {
		ctx, stop := context.WithCancelCause(t.Context())
		left := make(chan time.Time, 1)
		go func() {
			<-arrived
			left <- time.Now()
			stop(cause)
		}()
		if _, err := read(t, client.StreamingResponse(ctx, messages, nil)); err != cause {
			t.Errorf("ended with %v", err)
		}
		return <-left
	}
}

// TestCancelledBefore: nothing goes out.
func TestCancelledBefore(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a request went out") }))
	defer server.Close()
	ctx, stop := context.WithCancel(t.Context())
	stop()
	client := mmsp.NewClient(build(t, mmsp.Options{BaseURL: server.URL}))
	if _, err := read(t, client.StreamingResponse(ctx, ask, nil)); err != context.Canceled {
		t.Error(err)
	}
}

// TestReuse: streams that end by themselves, and listings, share one connection.
func TestReuse(t *testing.T) {
	bodies := []string{
		sse(d(`{"content":"a"}`) + fin("stop") + usage + done),
		sse(d(`{"content":"a"}`) + fin("stop") + done),
		sse(d(`{"content":"a"}`) + fin("stop")),
		`{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}`,
	}
	var peers, requests []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		peers, requests = append(peers, r.RemoteAddr), append(requests, r.Method+" "+r.URL.Path)
		if r.Method == http.MethodGet {
			io.WriteString(w, `{"data":[{"id":"m-2"},{"id":"m-1"}]}`)
			return
		}
		io.WriteString(w, bodies[0])
		bodies = bodies[1:]
	}))
	defer server.Close()
	client := mmsp.NewClient(build(t, mmsp.Options{BaseURL: server.URL + "/x/v1/", HTTPClient: server.Client()}))
	for len(bodies) > 0 {
		if _, err := read(t, client.StreamingResponse(t.Context(), ask, nil)); err != nil {
			t.Error(err)
		}
		if ids, err := client.ListModels(t.Context()); err != nil || !slices.Equal(ids, []string{"m-2", "m-1"}) {
			t.Error(ids, err)
		}
	}
	if slices.Sort(peers); peers[0] != peers[len(peers)-1] {
		t.Errorf("several connections: %v", peers)
	}
	if want := strings.Repeat("POST /x/v1/chat/completions,GET /x/v1/models,", 4); strings.Join(requests, ",")+"," != want {
		t.Errorf("requests: %v", requests)
	}
}

// parts is a transport and the body of its answer, which gives a part with each read.
type parts struct {
	left  []string
	ended bool // read to its end
}

func (p *parts) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: p}, nil
}

func (p *parts) Read(buf []byte) (int, error) {
	if len(p.left) == 0 {
		p.ended = true
		return 0, io.EOF
	}
	n := copy(buf, p.left[0])
	p.left = p.left[1:]
	return n, nil
}

func (p *parts) Close() error { return nil }

// TestFinished: after the stop the body is read to its end, without which a connection cannot be used again.
func TestFinished(t *testing.T) {
	for _, end := range [][]string{{sse(usage), sse(done)}, {sse(usage + done)}, {sse(done)}, {}} {
		body := &parts{left: append([]string{sse(d(`{"content":"a"}`)), sse(fin("stop"))}, end...)}
		client := mmsp.NewClient(build(t, mmsp.Options{HTTPClient: &http.Client{Transport: body}}))
		if _, err := read(t, client.StreamingResponse(t.Context(), ask, nil)); err != nil || !body.ended {
			t.Errorf("%q: %v, read to its end: %v", end, err, body.ended)
		}
	}
}

// TestHeaders: every request carries the key and the default headers, of which none replaces the key.
func TestHeaders(t *testing.T) {
	var got []http.Header
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header)
		w.WriteHeader(http.StatusUnauthorized)
		json.NewEncoder(w).Encode(map[string]any{"error": map[string]string{"message": "wrong key"}})
	}))
	defer server.Close()
	client := mmsp.NewClient(build(t, mmsp.Options{
		BaseURL: server.URL, HTTPClient: server.Client(),
		DefaultHeaders: map[string]string{"x-title": "t", "authorization": "Bearer other"},
	}))
	_, streaming := read(t, client.StreamingResponse(t.Context(), ask, nil))
	_, listing := client.ListModels(t.Context())
	for _, err := range []error{streaming, listing} {
		var upstream *mmsp.UpstreamError
		if !errors.As(err, &upstream) || upstream.Status != 401 || upstream.Message != "wrong key" || upstream.Client != "OpenaiChatClient" {
			t.Errorf("%#v", err)
		}
	}
	for _, header := range got {
		if !slices.Equal(header["Authorization"], []string{"Bearer sk-test"}) || header.Get("X-Title") != "t" {
			t.Errorf("%v", header)
		}
	}
	if len(got) != 2 {
		t.Errorf("%d requests", len(got))
	}
}
