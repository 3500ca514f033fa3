package mmspclient_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/prism-shadow/mmsp-go"
	mmspclient "github.com/prism-shadow/mmsp-go/clients/mmsp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func build(t *testing.T, o mmsp.Options) *mmsp.Client {
	t.Helper()
	o.Model = "fast"
	o.Getenv = func(string) string { return "" }
	o.HTTP.MaxRetries = new(0)
	c, err := mmspclient.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return mmsp.NewClient(c)
}

// serve is a server that answers every request alike.
func serve(t *testing.T, status int, header http.Header, body string) *mmsp.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for name, values := range header {
			w.Header()[name] = values
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	return build(t, mmsp.Options{BaseURL: server.URL + "/v1", HTTPClient: server.Client()})
}

// read returns the events in their wire form, one to a line.
func read(t *testing.T, client *mmsp.Client) (events string, err error) {
	t.Helper()
	for event, failure := range client.StreamingResponse(t.Context(), []mmsp.Message{mmsp.UserMessage(mmsp.Text("hi"))}, nil) {
		if err != nil {
			t.Errorf("after the error %v came %v, %v", err, event, failure)
		}
		if err = failure; err == nil {
			events += string(event.AppendJSON(nil)) + "\n"
		}
	}
	return events, err
}

const (
	delta = `{"role":"assistant","event_type":"delta","content_items":[{"type":"text.delta","text":"He"}],"usage_metadata":null,"finish_reason":null,"created_at":1800000000456}`
	stop  = `{"role":"assistant","event_type":"stop","content_items":[],"usage_metadata":{"cached_tokens":null,"prompt_tokens":4,"thoughts_tokens":null,"response_tokens":2},"finish_reason":"stop","created_at":1800000000999}`
	done  = "data: [DONE]\n\n"
)

func sse(payloads ...string) (body string) {
	for _, payload := range payloads {
		body += "data: " + payload + "\n\n"
	}
	return body
}

// TestForwarding: the server's events pass as they came.
func TestForwarding(t *testing.T) {
	for _, tt := range []struct{ name, event, want string }{
		{"a delta", delta, delta},
		{"spaces, and another order of keys", `{ "event_type": "delta", "created_at": 1800000000456, "role": "assistant", "finish_reason": null, "usage_metadata": null, "content_items": [ {"text": "He", "type": "text.delta"} ] }`, delta},
		{
			"unknown keys", `{"role":"assistant","event_type":"delta","content_items":[{"type":"text.delta","text":"a","mood":[1, 2]}],"usage_metadata":null,"finish_reason":null,"created_at":5,"lane":{"x":null}}`,
			`{"role":"assistant","event_type":"delta","content_items":[{"type":"text.delta","text":"a","mood":[1, 2]}],"usage_metadata":null,"finish_reason":null,"created_at":5,"lane":{"x":null}}`,
		},
		{
			"an unknown kind of item", `{"role":"assistant","event_type":"delta","content_items":[{"type":"video.delta","frames":3}],"usage_metadata":null,"finish_reason":null,"created_at":5}`,
			`{"role":"assistant","event_type":"delta","content_items":[{"type":"video.delta","frames":3}],"usage_metadata":null,"finish_reason":null,"created_at":5}`,
		},
		{
			"an unknown type of event", `{"role":"assistant","event_type":"pause","content_items":[],"usage_metadata":null,"finish_reason":null,"created_at":5}`,
			`{"role":"assistant","event_type":"pause","content_items":[],"usage_metadata":null,"finish_reason":null,"created_at":5}`,
		},
		{"an empty event without a time", `{"event_type":"delta"}`, `{"role":"assistant","event_type":"delta","content_items":[],"usage_metadata":null,"finish_reason":null,"created_at":0}`},
		{
			"a done item without deltas, with fidelity", `{"role":"assistant","event_type":"delta","content_items":[{"type":"tool_call.done","name":"f","arguments":{"b": 18446744073709551615},"tool_call_id":"k","fidelity":{"z":1,"item_id":"q"}}],"usage_metadata":null,"finish_reason":null,"created_at":5}`,
			`{"role":"assistant","event_type":"delta","content_items":[{"type":"tool_call.done","name":"f","arguments":{"b": 18446744073709551615},"tool_call_id":"k","fidelity":{"z":1,"item_id":"q"}}],"usage_metadata":null,"finish_reason":null,"created_at":5}`,
		},
		{
			"the word error in an event", `{"role":"assistant","event_type":"delta","content_items":[{"type":"text.delta","text":"\"error\": {"}],"usage_metadata":null,"finish_reason":null,"created_at":5,"error":null,"note":"error"}`,
			`{"role":"assistant","event_type":"delta","content_items":[{"type":"text.delta","text":"\"error\": {"}],"usage_metadata":null,"finish_reason":null,"created_at":5,"error":null,"note":"error"}`,
		},
		{
			"several items in one event", `{"event_type":"delta","created_at":5,"content_items":[{"type":"text.delta","text":"a"},{"type":"text.done","text":"a"}]}`,
			`{"role":"assistant","event_type":"delta","content_items":[{"type":"text.delta","text":"a"}],"usage_metadata":null,"finish_reason":null,"created_at":5}` + "\n" +
				`{"role":"assistant","event_type":"delta","content_items":[{"type":"text.done","text":"a"}],"usage_metadata":null,"finish_reason":null,"created_at":5}`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			client := serve(t, 200, nil, ": keep-alive\n\n"+sse(tt.event)+": keep-alive\n\n"+sse(stop)+done)
			if got, err := read(t, client); got != tt.want+"\n"+stop+"\n" || err != nil {
				t.Errorf("got  %s (%v)\nwant %s\n%s", got, err, tt.want, stop)
			}
		})
	}
}

func TestInlineData(t *testing.T) {
	client := serve(t, 200, nil, sse(`{"event_type":"delta","created_at":5,"content_items":[{"type":"inline_thinking.delta","data":"AAH/","mime_type":"image/png"}]}`, stop)+done)
	for event, err := range client.StreamingResponse(t.Context(), nil, nil) {
		if err != nil {
			t.Fatal(err)
		}
		if event.Type == mmsp.EventDelta && !bytes.Equal(event.Item.Data, []byte{0, 1, 255}) {
			t.Errorf("%v", event.Item)
		}
	}
}

func TestEnds(t *testing.T) {
	up := func(e mmsp.UpstreamError) *mmsp.UpstreamError { e.Client = "MmspClient"; return &e }
	incomplete := &mmsp.IncompleteStreamError{Client: "MmspClient", Reason: "the server's stream ended without a stop"}
	const (
		late     = `{"type":"Timeout9","message":"gone"}`
		empty    = `{"type":"EmptyResponseError","message":"m","client":"OpenaiChatClient","finish_reason":"length","usage_metadata":{"cached_tokens":null,"prompt_tokens":7,"thoughts_tokens":40,"response_tokens":0}}`
		upstream = `{"type":"UpstreamError","message":"slow down","client":"OpenaiChatClient","status":429,"error_type":"rate","code":"c","param":"p","request_id":"r","retry_after_ms":1500,"error":{"error":{"message":"slow down"}}}`
	)
	for _, tt := range []struct {
		name   string
		status int
		header http.Header
		body   string
		events int
		want   error
		wire   string // what a next hop would send
	}{
		{name: "[DONE]", status: 200, body: sse(delta, stop) + done, events: 2},
		{name: "no [DONE]", status: 200, body: sse(delta, stop), events: 2},
		{name: "a last event without its blank line", status: 200, body: sse(delta) + "data: " + stop, events: 2},
		{name: "events after the stop", status: 200, body: sse(delta, stop, stop, delta, `{"error":`+late+`}`, `{`) + done, events: 2},
		{name: "items of the stop", status: 200, body: sse(delta, strings.Replace(stop, `[]`, `[{"type":"text.done","text":"a"},{"type":"text.done","text":"b"}]`, 1)) + done, events: 2},
		{name: "[DONE] without a stop", status: 200, body: sse(delta) + done, events: 1, want: incomplete},
		{name: "cut", status: 200, body: sse(delta), events: 1, want: incomplete},
		{name: "cut in the middle of an event", status: 200, body: sse(delta) + "data: " + stop[:100], events: 1, want: incomplete},
		{name: "nothing", status: 200, events: 0, want: incomplete},

		{
			name: "error event", status: 200, body: sse(delta, `{"error": `+late+`}`) + done, events: 1, wire: late,
			want: up(mmsp.UpstreamError{ErrorType: "Timeout9", Message: "gone", Wire: []byte(late)}),
		},
		{
			name: "error event behind other keys", status: 200, body: sse(`{"trace":"`+strings.Repeat("x", 200)+`","error":`+late+`}`) + done, wire: late,
			want: up(mmsp.UpstreamError{ErrorType: "Timeout9", Message: "gone", Wire: []byte(late)}),
		},
		{
			name: "error of this protocol as an event", status: 200, body: sse(`{"error":`+empty+`}`) + done, wire: empty,
			want: up(mmsp.UpstreamError{ErrorType: "EmptyResponseError", Message: "m", Wire: []byte(empty)}),
		},
		{
			name: "error of the provider as an event", status: 200, body: sse(`{"error":`+upstream+`}`) + done, wire: upstream,
			want: up(mmsp.UpstreamError{Status: 429, ErrorType: "UpstreamError", Message: "slow down", Code: "c", Param: "p", RequestID: "r", RetryAfter: 1500 * time.Millisecond, Object: []byte(`{"error":{"message":"slow down"}}`), Wire: []byte(upstream)}),
		},
		{
			name: "the same as a status", status: 503, header: http.Header{"Retry-After": {"9"}, "X-Request-Id": {"mine"}}, body: `{"error":` + upstream + `}`, wire: upstream,
			want: up(mmsp.UpstreamError{Status: 503, ErrorType: "UpstreamError", Message: "slow down", Code: "c", Param: "p", RequestID: "r", RetryAfter: 9 * time.Second, Object: []byte(`{"error":{"message":"slow down"}}`), Wire: []byte(upstream)}),
		},
		{
			name: "an error without a message", status: 401, body: `{"error":{"type":"AuthenticationError"}}`, wire: `{"type":"AuthenticationError"}`,
			want: up(mmsp.UpstreamError{Status: 401, ErrorType: "AuthenticationError", Message: "AuthenticationError", Wire: []byte(`{"type":"AuthenticationError"}`)}),
		},
		{name: "an error of nothing", status: 500, body: `{"error":{}}`, wire: `{}`, want: up(mmsp.UpstreamError{Status: 500, Message: "the server reported an error", Wire: []byte(`{}`)})},
		{
			name: "a large error", status: 400, body: `{"error":{"type":"T","message":"` + strings.Repeat("é", 50_000) + `"}}`, wire: `{"type":"T","message":"` + strings.Repeat("é", 50_000) + `"}`,
			want: up(mmsp.UpstreamError{Status: 400, ErrorType: "T", Message: strings.Repeat("é", 50_000), Wire: []byte(`{"type":"T","message":"` + strings.Repeat("é", 50_000) + `"}`)}),
		},

		{
			name: "a status of another server", status: 502, body: "\n<html>" + strings.Repeat("é", 300),
			want: up(mmsp.UpstreamError{Status: 502, ErrorType: "HTTPError", Message: "HTTP 502: <html>" + strings.Repeat("é", 194)}),
		},
		{name: "a status with JSON of another kind", status: 422, body: `{"detail":"x"}`, want: up(mmsp.UpstreamError{Status: 422, ErrorType: "HTTPError", Message: `HTTP 422: {"detail":"x"}`})},
		{name: "a status without a body", status: 503, header: http.Header{"Retry-After": {"9"}}, want: up(mmsp.UpstreamError{Status: 503, ErrorType: "HTTPError", Message: "HTTP 503: ", RetryAfter: 9 * time.Second})},
		{name: "a page", status: 200, body: "<html>", want: up(mmsp.UpstreamError{ErrorType: "unexpected_body", Message: `the provider answered with something else than a stream: a page without a text`})},
		{name: "an error with status 200", status: 200, body: `{"error":` + late + `}`, wire: late, want: up(mmsp.UpstreamError{ErrorType: "Timeout9", Message: "gone", Wire: []byte(late)})},
		{
			name: "an unreadable event", status: 200, body: sse(delta, `{"event_type":`) + done, events: 1,
			want: up(mmsp.UpstreamError{ErrorType: "malformed_event", Message: `event 2 from the provider is not readable as JSON (not readable as JSON: the text ends early at byte 14): "{\"event_type\":"`}),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			events, err := read(t, serve(t, tt.status, tt.header, tt.body))
			if n := strings.Count(events, "\n"); n != tt.events {
				t.Errorf("%d events, want %d", n, tt.events)
			}
			var e *mmsp.UpstreamError
			if errors.As(err, &e) {
				e.Err = nil
			}
			if !reflect.DeepEqual(err, tt.want) {
				t.Errorf("got  %.600s\nwant %.600s", fmt.Sprintf("%#v", err), fmt.Sprintf("%#v", tt.want))
			}
			if tt.wire == "" || err == nil {
				return
			}
			if got := string(mmsp.AppendErrorJSON(nil, err)); got != `{"error":`+tt.wire+`}` {
				t.Errorf("the next hop gets %.300s", got)
			}
		})
	}
}

// TestTwoHops: an error crosses a second server unchanged, and a stream does.
func TestTwoHops(t *testing.T) {
	const object = `{"type":"ToolCallArgumentParseError","message":"m","client":"OpenaiChatClient","tool_name":"f","tool_call_id":"c1","raw_arguments_length":5,"raw_arguments_preview":"{\"q\":","more":[1]}`
	for name, first := range map[string]*mmsp.Client{
		"event": serve(t, 200, nil, sse(delta, `{"error":`+object+`}`)+done), "status": serve(t, 400, nil, `{"error":`+object+`}`),
	} {
		second := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			for event, err := range first.StreamingResponse(r.Context(), nil, nil) {
				payload := event.AppendJSON(nil)
				if err != nil {
					payload = mmsp.AppendErrorJSON(nil, err)
				}
				fmt.Fprintf(w, "data: %s\n\n", payload)
			}
			io.WriteString(w, done)
		}))
		events, err := read(t, build(t, mmsp.Options{BaseURL: second.URL, HTTPClient: second.Client()}))
		second.Close()
		var e *mmsp.UpstreamError
		if !errors.As(err, &e) || string(e.Wire) != object || e.ErrorType != "ToolCallArgumentParseError" || name == "event" && events != delta+"\n" {
			t.Errorf("%s: %q, %#v", name, events, err)
		}
	}
}

// TestRequest: the messages and the config go out as they are, unjudged, below the base path.
func TestRequest(t *testing.T) {
	for _, tt := range []struct {
		name    string
		options mmsp.Options
		auth    string
	}{
		{"key", mmsp.Options{APIKey: mmsp.NewSecret("k")}, "Bearer k"},
		{"open server", mmsp.Options{}, ""},
		{"a key wins over the default header", mmsp.Options{APIKey: mmsp.NewSecret("k"), DefaultHeaders: map[string]string{"AUTHORIZATION": "Basic x"}}, "Bearer k"},
		{"the default header alone", mmsp.Options{DefaultHeaders: map[string]string{"Authorization": "Basic x"}}, "Basic x"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var requests []string
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				requests = append(requests, r.Method+" "+r.URL.Path+" "+string(body))
				if got := strings.Join(r.Header["Authorization"], ","); got != tt.auth || r.Header.Get("X-Team") != "t" {
					t.Errorf("%v", r.Header)
				}
				if r.Method == http.MethodGet {
					io.WriteString(w, `{"object":"list","data":[{"id":"b"},{"id":"a"}]}`)
					return
				}
				if r.Header.Get("Content-Type") != "application/json" || r.Header.Get("Accept") != "text/event-stream" {
					t.Errorf("%v", r.Header)
				}
				io.WriteString(w, sse(stop)+done)
			}))
			defer server.Close()
			headers := map[string]string{"x-team": "t"}
			for name, value := range tt.options.DefaultHeaders {
				headers[name] = value
			}
			tt.options.BaseURL, tt.options.HTTPClient, tt.options.DefaultHeaders = server.URL+"/team/v1/", server.Client(), headers
			client := build(t, tt.options)
			messages := []mmsp.Message{{Role: "system", ContentItems: []mmsp.Item{{Type: "text", Text: "ü"}, {Type: "video.done", Extra: []byte(`{"frames":3}`)}}, Extra: []byte(`{"n":1}`)}}
			config := &mmsp.Config{Temperature: new(9.5), TraceID: "../x", TopK: new(int64(3)), Verbosity: "shouting", Metadata: []byte(`{"a":1}`), Extra: []byte(`{"later":true}`)}
			if err := mmsp.CheckStream(client.StreamingResponse(t.Context(), messages, config)); err != nil {
				t.Error(err)
			}
			if ids, err := client.ListModels(t.Context()); err != nil || strings.Join(ids, ",") != "b,a" {
				t.Error(ids, err)
			}
			want := `POST /team/v1/stream {"model":"fast","messages":[{"role":"system","content_items":[{"type":"text","text":"ü"},{"type":"video.done","frames":3}],"n":1}],"config":{"temperature":9.5,"top_k":3,"verbosity":"shouting","metadata":{"a":1},"trace_id":"../x","later":true}}|GET /team/v1/models `
			if got := strings.Join(requests, "|"); got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestListModelsRefused(t *testing.T) {
	_, err := serve(t, 401, nil, `{"error":{"type":"AuthenticationError","message":"no"}}`).ListModels(t.Context())
	var e *mmsp.UpstreamError
	if !errors.As(err, &e) || e.Status != 401 || e.ErrorType != "AuthenticationError" || e.Message != "no" {
		t.Errorf("%#v", err)
	}
}

// TestAbort: cancelling closes the connection at once, and what is buffered is not read on.
func TestAbort(t *testing.T) {
	closed := make(chan time.Time, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, sse(delta, delta, delta))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		closed <- time.Now()
	}))
	defer server.Close()
	client := build(t, mmsp.Options{BaseURL: server.URL, HTTPClient: server.Client()})
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	events, last := 0, error(nil)
	for _, err := range client.StreamingResponse(ctx, nil, nil) {
		if last = err; err == nil {
			events++
			cancel(cause)
		}
	}
	left := time.Now()
	if events != 1 || last != cause {
		t.Errorf("%d events, then %v", events, last)
	}
	if took := (<-closed).Sub(left); took > 100*time.Millisecond {
		t.Errorf("closed after %v", took)
	}
}

// held is a transport whose answers stay open after their text.
type held struct{ body string }

func (h held) RoundTrip(r *http.Request) (*http.Response, error) {
	reader, writer := io.Pipe()
	go func() {
		io.WriteString(writer, h.body)
		<-r.Context().Done()
		writer.Close()
	}()
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: reader}, nil
}

// TestHeldOpen: a server that keeps the connection open after the stop holds nobody up for long.
func TestHeldOpen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := build(t, mmsp.Options{BaseURL: "http://server.test", HTTPClient: &http.Client{Transport: held{sse(delta, stop)}}})
		begin := time.Now()
		if events, err := read(t, client); err != nil || events != delta+"\n"+stop+"\n" {
			t.Error(events, err)
		}
		if took := time.Since(begin); took > 10*time.Second {
			t.Errorf("ended after %v", took)
		}
	})
}
