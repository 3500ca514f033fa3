package moonshotofficial_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prism-shadow/mmsp-go"
)

// show writes an event in a few characters: "text+a" is a delta, "text=ab" the whole item.
func show(e *mmsp.Event) string {
	if e.Type == mmsp.EventStop {
		line := "stop " + string(e.FinishReason)
		for _, n := range []*int64{e.Usage.CachedTokens, e.Usage.PromptTokens, e.Usage.ThoughtsTokens, e.Usage.ResponseTokens} {
			if n == nil {
				line += " -"
			} else {
				line += fmt.Sprint(" ", *n)
			}
		}
		if e.StopDetail != nil {
			line += " " + e.StopDetail.Kind
		}
		return line
	}
	i, phase := &e.Item, "="
	if i.Type.IsDelta() {
		phase = "+"
	}
	line := i.Type.Kind() + phase + i.Text + i.Thinking + i.Arguments
	if i.ToolCallID != "" {
		line += " " + i.Name + "/" + i.ToolCallID
	}
	if len(i.Fidelity) > 0 {
		line += " " + string(i.Fidelity)
	}
	return line
}

// read shows the events of a stream, each checked against the grammar, and returns the error the stream ended with.
func read(t *testing.T, stream iter.Seq2[mmsp.Event, error]) (lines string, err error) {
	t.Helper()
	var grammar mmsp.GrammarChecker
	var shown []string
	for event, failure := range stream {
		if err != nil {
			t.Errorf("after the error %v came %v, %v", err, event, failure)
		}
		if err = failure; err != nil {
			continue
		}
		if broken := grammar.Event(&event); broken != nil {
			t.Errorf("%v (%s)", broken, show(&event))
		}
		shown = append(shown, show(&event))
	}
	if err == nil {
		if broken := grammar.End(); broken != nil {
			t.Error(broken)
		}
	}
	return strings.Join(shown, "; "), err
}

// serve answers every request with a body.
func serve(t *testing.T, status int, body string) *mmsp.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/chat/completions" || r.Header.Get("Authorization") != "Bearer sk-test" {
			t.Errorf("%s %v", r.URL, r.Header)
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	return mmsp.NewClient(build(t, mmsp.Options{BaseURL: server.URL + "/v1", HTTP: mmsp.HTTPOptions{MaxRetries: new(0)}, HTTPClient: server.Client()}))
}

var ask = []mmsp.Message{mmsp.UserMessage(mmsp.Text("hi"))}

// sse frames chunks, one to a line, as events.
func sse(chunks string) string {
	var body strings.Builder
	for chunk := range strings.Lines(chunks) {
		if chunk = strings.TrimSpace(chunk); chunk != "" {
			body.WriteString("data: " + chunk + "\n\n")
		}
	}
	return body.String()
}

// d is a chunk with a delta, fin one with a finish reason.
func d(delta string) string {
	return `{"choices":[{"index":0,"delta":` + delta + `,"finish_reason":null}]}` + "\n"
}

func fin(reason string) string {
	return `{"choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}],"usage":` + usage + `}` + "\n"
}

func calls(fragments string) string { return d(`{"tool_calls":[` + fragments + `]}`) }

// frag is a fragment of a call as the wire has it.
func frag(index, id, name, arguments string) string {
	text, _ := json.Marshal(arguments)
	return `{"index":` + index + `,"id":"` + id + `","function":{"name":"` + name + `","arguments":` + string(text) + `}}`
}

const (
	usage = `{"prompt_tokens":9,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":2},"completion_tokens_details":{"reasoning_tokens":1}}`
	end   = `; stop stop 2 7 1 4`
	done  = "[DONE]\n"
	rc    = ` {"reasoning_field":"reasoning_content"}`
	rf    = ` {"reasoning_field":"reasoning"}`
)

var issuer = regexp.MustCompile(`"issuer":"127[^"]*"`)

func TestStream(t *testing.T) {
	const bare = `{"choices":[{"delta":{},"finish_reason":"stop"}]}` + "\n"
	const fog = `tool_call+{"q": f/c9; tool_call+"fog"}; tool_call={"q":"fog"} f/c9; stop tool_call 2 7 1 4`
	signed := ` {"reasoning_details":[{"type":"reasoning.text","index":0,"signature":"S"}],"issuer":"…"}`
	tests := []struct{ name, chunks, want string }{
		{"text", d(`{"role":"assistant","content":""}`) + d(`{"content":"Go"}`) + d(`{"content":"od"}`) + fin("stop") + done, `text+Go; text+od; text=Good` + end},
		{
			"reasoning_content", d(`{"reasoning_content":"Count"}`) + d(`{"reasoning_content":" the buoys."}`) + d(`{"content":"Seven."}`) + fin("stop") + done,
			`thinking+Count` + rc + `; thinking+ the buoys.; thinking=Count the buoys.` + rc + `; text+Seven.; text=Seven.` + end,
		},
		{
			"reasoning", d(`{"reasoning":"Count"}`) + d(`{"reasoning":" the buoys."}`) + d(`{"content":"Seven."}`) + fin("stop") + done,
			`thinking+Count` + rf + `; thinking+ the buoys.; thinking=Count the buoys.` + rf + `; text+Seven.; text=Seven.` + end,
		},
		{"both reasoning fields", d(`{"reasoning":"x","reasoning_content":"Count"}`) + d(`{"content":"7"}`) + fin("stop"), `thinking+Count; thinking=Count; text+7; text=7` + end},
		{
			"reasoning details", d(`{"reasoning_details":[{"type":"reasoning.text","index":0,"text":"Count","signature":"S"}]}`) + d(`{"content":"7"}`) + fin("stop"),
			`thinking+Count` + signed + `; thinking=Count` + signed + `; text+7; text=7` + end,
		},
		{
			"a proof in the midst of a call", calls(frag("0", "c9", "f", `{"q":`)) + d(`{"reasoning_details":[{"type":"reasoning.text","index":0,"signature":"S"}]}`) + calls(frag("0", "", "", `"fog"}`)) + fin("tool_calls") + done,
			`tool_call+{"q": f/c9; tool_call+"fog"}; tool_call={"q":"fog"} f/c9; thinking+` + signed + `; thinking=` + signed + `; stop tool_call 2 7 1 4`,
		},
		{
			"details of thinking after a call", calls(frag("0", "c9", "f", `{}`)) + d(`{"reasoning_details":[{"type":"reasoning.text","index":0,"text":"Hm","signature":"S"}]}`) + fin("tool_calls") + done,
			`tool_call+{} f/c9; tool_call={} f/c9; thinking+Hm` + signed + `; thinking=Hm` + signed + `; stop tool_call 2 7 1 4`,
		},
		{
			"content as a list", d(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm."}]},{"type":"text","text":"Yes"}]}`) + fin("stop"),
			`thinking+Hm.; thinking=Hm.; text+Yes; text=Yes` + end,
		},
		{
			"everything in one chunk", `{"choices":[{"finish_reason":"tool_calls","delta":{"tool_calls":[` + frag("0", "k", "f", "{}") + `],"content":"b","reasoning_content":"a"}}],"usage":` + usage + `}` + "\n" + done,
			`thinking+a` + rc + `; thinking=a` + rc + `; text+b; text=b; tool_call+{} f/k; tool_call={} f/k; stop tool_call 2 7 1 4`,
		},
		{"a call in fragments", calls(frag("0", "c9", "f", `{"q":`)) + calls(frag("0", "", "", `"fog"}`)) + fin("tool_calls") + done, fog},
		{"a call whose name is repeated", calls(frag("0", "c9", "f", `{"q":`)) + calls(frag("0", "c9", "f", `"fog"}`)) + fin("tool_calls") + done, fog},
		{
			"whole calls in one chunk", calls(frag("0", "a", "f", `{"x":1}`)+`,`+frag("1", "b", "f", "{}")) + fin("tool_calls") + done,
			`tool_call+{"x":1} f/a; tool_call={"x":1} f/a; tool_call+{} f/b; tool_call={} f/b; stop tool_call 2 7 1 4`,
		},
		{
			"interleaved calls", calls(frag("0", "a", "f", "")+`,`+frag("1", "b", "g", "")) + calls(frag("1", "", "", `{"y":2}`)) + calls(frag("0", "", "", `{"x":1}`)) + fin("tool_calls") + done,
			`tool_call+ f/a; tool_call+{"x":1}; tool_call={"x":1} f/a; tool_call+{"y":2} g/b; tool_call={"y":2} g/b; stop tool_call 2 7 1 4`,
		},
		{"a call without arguments", calls(frag("0", "c9", "f", "")) + fin("tool_calls") + done, `tool_call+ f/c9; tool_call={} f/c9; stop tool_call 2 7 1 4`},
		{"a call that ends with stop", calls(frag("0", "c9", "f", "{}")) + fin("stop") + done, `tool_call+{} f/c9; tool_call={} f/c9; stop tool_call 2 7 1 4`},
		{"refusal", d(`{"refusal":"No."}`) + fin("stop") + done, `text+No. {"refusal":true}; text=No. {"refusal":true}; stop unknown 2 7 1 4 refusal`},
		{"the choice of index 0", `{"choices":[{"index":1,"delta":{"content":"b"},"finish_reason":"length"}]}` + "\n" + d(`{"content":"a"}`) + fin("stop"), `text+a; text=a` + end},
		{"heartbeats", `{"choices":[]}` + "\n" + `{"choices":null,"usage":null}` + "\n" + `{"type":"keepalive"}` + "\n" + d(`{"content":"a"}`) + fin("stop"), `text+a; text=a` + end},
		{"length", d(`{"content":"a"}`) + fin("length"), `text+a; text=a; stop length 2 7 1 4`},
		{"content filter", d(`{"content":"a"}`) + fin("content_filter"), `text+a; text=a; stop unknown 2 7 1 4 filter`},
		{"another finish", d(`{"content":"a"}`) + fin("eos"), `text+a; text=a; stop unknown 2 7 1 4`},
		{"usage after the finish chunk", d(`{"content":"a"}`) + bare + `{"choices":[],"usage":` + usage + "}\n" + done, `text+a; text=a` + end},
		{"no usage", d(`{"content":"a"}`) + bare + done, `text+a; text=a; stop stop - - - -`},
		{"usage without details", d(`{"content":"a"}`) + bare + `{"choices":[],"usage":{"prompt_tokens":2,"completion_tokens":3,"completion_tokens_details":{"reasoning_tokens":1}}}`, `text+a; text=a; stop stop - 2 1 2`},
		{"reasoning left out of the sum", d(`{"content":"a"}`) + bare + `{"choices":[],"usage":{"prompt_tokens":2,"completion_tokens":3,"completion_tokens_details":{"reasoning_tokens":9}}}`, `text+a; text=a; stop stop - 2 9 3`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := read(t, serve(t, 200, sse(tt.chunks)).StreamingResponse(t.Context(), ask, nil))
			if got = issuer.ReplaceAllString(got, `"issuer":"…"`); got != tt.want || err != nil {
				t.Errorf("got  %s (%v)\nwant %s", got, err, tt.want)
			}
		})
	}
}

func TestStreamErrors(t *testing.T) {
	up := func(e mmsp.UpstreamError) *mmsp.UpstreamError { e.Client = "MoonshotOfficialClient"; return &e }
	counted := &mmsp.Usage{CachedTokens: new(int64(2)), PromptTokens: new(int64(7)), ThoughtsTokens: new(int64(1)), ResponseTokens: new(int64(4))}
	cut := &mmsp.IncompleteStreamError{Client: "MoonshotOfficialClient", Reason: "no finish reason arrived"}
	text := sse(d(`{"content":"a"}`))
	for _, tt := range []struct {
		name   string
		status int
		body   string
		events string
		want   error
	}{
		{"error chunk", 200, text + sse(`{"error":{"message":"busy","code":"1305"}}`), "text+a", up(mmsp.UpstreamError{Message: "busy", Code: "1305", Object: []byte(`{"error":{"message":"busy","code":"1305"}}`)})},
		{"error of the choice", 200, text + sse(`{"choices":[{"delta":{},"error":{"message":"gone","code":502}}]}`), "text+a", up(mmsp.UpstreamError{Message: "gone", Code: "502", Status: 502, Object: []byte(`{"message":"gone","code":502}`)})},
		{"a finish that is none", 200, text + sse(`{"choices":[{"delta":{},"finish_reason":"network_error"}]}`), "text+a", up(mmsp.UpstreamError{Message: "the provider gave up before the end of the answer", Code: "network_error", Object: []byte(`{"message":"the provider gave up before the end of the answer","code":"network_error"}`)})},
		{"error event", 200, text + "event: error\ndata: {\"message\":\"boom\"}\n\n", "text+a", up(mmsp.UpstreamError{Message: "boom", Object: []byte(`{"message":"boom"}`)})},
		{"error event cut in its data", 200, text + "event: error\ndata: {\"message\":\"bo", "text+a", cut},
		{"status", 401, `{"error":{"message":"wrong key","type":"auth"}}`, "", up(mmsp.UpstreamError{Status: 401, Message: "wrong key", ErrorType: "auth", Object: []byte(`{"error":{"message":"wrong key","type":"auth"}}`)})},
		{"HTML", 200, "<html>", "", up(mmsp.UpstreamError{ErrorType: "unexpected_body", Message: `the provider answered with something else than a stream: a page without a text`})},
		{"JSON error with status 200", 200, `{"error":{"message":"no credit"}}`, "", up(mmsp.UpstreamError{Message: "no credit", Object: []byte(`{"error":{"message":"no credit"}}`)})},
		{"malformed event", 200, text + sse(`{"choices":[}`), "text+a", up(mmsp.UpstreamError{ErrorType: "malformed_event", Message: `event 2 from the provider is not readable as JSON (not a value at byte 12): "{\"choices\":[}"`})},
		{"no body", 200, "", "", cut},
		{"[DONE] without a finish", 200, text + sse(done), "text+a", cut},
		{"thinking only", 200, sse(d(`{"reasoning_content":"a"}`) + fin("stop")), "thinking+a" + rc + "; thinking=a" + rc, &mmsp.EmptyResponseError{Client: "MoonshotOfficialClient", FinishReason: "stop", Usage: counted}},
		{"nothing but a finish", 200, sse(fin("length")), "", &mmsp.EmptyResponseError{Client: "MoonshotOfficialClient", FinishReason: "length", Usage: counted}},
		{
			"a call cut by the limit", 200, sse(calls(frag("0", "k", "f", `{"q":`)) + fin("length")), `tool_call+{"q": f/k`,
			&mmsp.ToolCallArgumentParseError{Client: "MoonshotOfficialClient", ToolName: "f", ToolCallID: "k", RawArguments: `{"q":`, Reason: "the text ends early at byte 5", FinishReason: "length", Usage: counted},
		},
		{"a call without an id", 200, sse(calls(frag("0", "", "f", `{}`)) + fin("tool_calls")), "", &mmsp.StreamProtocolError{Client: "MoonshotOfficialClient", Detail: `a fragment of no open tool call (index 0, name "f", id "")`}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := read(t, serve(t, tt.status, tt.body).StreamingResponse(t.Context(), ask, nil))
			var upstream *mmsp.UpstreamError
			if errors.As(err, &upstream) {
				upstream.Err = nil
			}
			if got != tt.events || !reflect.DeepEqual(err, tt.want) {
				t.Errorf("got  %s, then %#v\nwant %s, then %#v", got, err, tt.events, tt.want)
			}
		})
	}
}

// TestWholeAnswer: a body of one JSON object is read as the answer that it is.
func TestWholeAnswer(t *testing.T) {
	body := `{"choices":[{"index":0,"message":{"role":"assistant","content":"yes","reasoning_content":"hm","tool_calls":[` + frag("0", "k", "f", "{}") + `]},"finish_reason":"tool_calls"}],"usage":` + usage + `}`
	got, err := read(t, serve(t, 200, body).StreamingResponse(t.Context(), ask, nil))
	if want := `thinking+hm` + rc + `; thinking=hm` + rc + `; text+yes; text=yes; tool_call+{} f/k; tool_call={} f/k; stop tool_call 2 7 1 4`; got != want || err != nil {
		t.Errorf("%s (%v)", got, err)
	}
	got, err = read(t, serve(t, 200, `{"choices":[{"message":{},"error":{"message":"gone"}}]}`).StreamingResponse(t.Context(), ask, nil))
	if got != "" || err == nil || err.Error() != "gone" {
		t.Errorf("%s (%v)", got, err)
	}
}

// TestTruncation cuts a stream at every byte: there is a stop exactly when the finish chunk was whole.
func TestTruncation(t *testing.T) {
	body := sse(d(`{"reasoning_content":"é"}`) + d(`{"content":"a"}`) + calls(frag("0", "k", "f", "{}")) + fin("tool_calls") + done)
	finish := strings.Index(body, usage+"}") + len(usage+"}")
	var length int
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body[:length]) }))
	defer server.Close()
	client := mmsp.NewClient(build(t, mmsp.Options{BaseURL: server.URL, HTTPClient: server.Client()}))
	for length = range len(body) + 1 {
		_, err := read(t, client.StreamingResponse(t.Context(), ask, nil))
		var incomplete *mmsp.IncompleteStreamError
		if whole := length >= finish; whole != (err == nil) || !whole && !errors.As(err, &incomplete) {
			t.Errorf("cut at byte %d (the finish chunk ends at %d): %v", length, finish, err)
		}
	}
}

// TestAbort: whatever ends a stream early, the provider's side sees the connection close at once.
func TestAbort(t *testing.T) {
	cause := errors.New("enough")
	for _, first := range []string{"", sse(d(`{"content":"a"}`))} {
		for _, leaves := range []bool{false, true} {
			if leaves && first == "" {
				continue // there is no event to leave at
			}
			t.Run(fmt.Sprintf("after %d bytes, leaves=%v", len(first), leaves), func(t *testing.T) {
				arrived, closed := make(chan struct{}, 1), make(chan time.Time, 1)
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					io.Copy(io.Discard, r.Body) // only then does the server see the client leave
					if first != "" {
						io.WriteString(w, first)
						w.(http.Flusher).Flush()
					}
					arrived <- struct{}{}
					<-r.Context().Done()
					closed <- time.Now()
				}))
				defer server.Close()
				client := mmsp.NewClient(build(t, mmsp.Options{BaseURL: server.URL, HTTPClient: server.Client()}))
				left := make(chan time.Time, 1)
				if leaves {
					for range client.StreamingResponse(t.Context(), ask, nil) {
						left <- time.Now()
						break
					}
				} else {
					ctx, stop := context.WithCancelCause(t.Context())
					go func() {
						<-arrived
						left <- time.Now()
						stop(cause)
					}()
					if _, err := read(t, client.StreamingResponse(ctx, ask, nil)); err != cause {
						t.Errorf("ended with %v", err)
					}
				}
				if took := (<-closed).Sub(<-left); took > 100*time.Millisecond {
					t.Errorf("closed after %v", took)
				}
			})
		}
	}
}

// TestSecondTurn: what a stream leaves goes back on the field it came in.
func TestSecondTurn(t *testing.T) {
	for _, tt := range []struct{ name, chunks, want string }{
		{"reasoning_content", d(`{"reasoning_content":"Count"}`) + d(`{"reasoning_content":" the buoys."}`), `"reasoning_content":"Count the buoys."`},
		{"reasoning", d(`{"reasoning":"Count"}`), `"reasoning":"Count"`},
		{"both", d(`{"reasoning":"x","reasoning_content":"Count"}`), `"reasoning_content":"Count","reasoning":"Count"`},
		{
			"a string, and a detail that signs it", d(`{"reasoning":"Count","reasoning_details":[{"type":"reasoning.text","text":"Count","index":0}]}`) + d(`{"reasoning_details":[{"type":"reasoning.text","signature":"S","index":0}]}`),
			`"reasoning":"Count","reasoning_details":[{"type":"reasoning.text","index":0,"text":"Count","signature":"S"}]`,
		},
		{
			"details alone", d(`{"reasoning_details":[{"type":"reasoning.summary","summary":"Count","id":"r"}]}`) + d(`{"reasoning_details":[{"type":"reasoning.encrypted","data":"D","id":"r"}]}`),
			`"reasoning_details":[{"type":"reasoning.summary","id":"r","summary":"Count"},{"type":"reasoning.encrypted","id":"r","data":"D"}]`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			client := serve(t, 200, sse(tt.chunks+d(`{"content":"Seven."}`)+fin("stop")+done))
			answer, err := mmsp.Collect(client.StreamingResponse(t.Context(), ask, nil))
			if err != nil {
				t.Fatal(err)
			}
			request, err := client.Provider().Prepare(t.Context(), []mmsp.Message{answer}, &mmsp.Config{})
			if err != nil {
				t.Fatal(err)
			}
			if want := `"messages":[{"role":"assistant","content":[{"type":"text","text":"Seven."}],` + tt.want + `}]}`; !strings.HasSuffix(string(request.Body), want) {
				t.Errorf("got  %s\nwant %s", request.Body, want)
			}
		})
	}
}

// TestHeaders: every request carries the key and the default headers, of which none replaces the key.
func TestHeaders(t *testing.T) {
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, strings.Join([]string{r.Method, r.URL.Path, strings.Join(r.Header["Authorization"], ","), r.Header.Get("X-Title")}, " "))
		io.WriteString(w, `{"data":[{"id":"m-2"},{"id":"m-1"}],"choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}`)
	}))
	defer server.Close()
	client := mmsp.NewClient(build(t, mmsp.Options{
		BaseURL: server.URL + "/x/", HTTPClient: server.Client(), DefaultHeaders: map[string]string{"x-title": "t", "authorization": "Bearer other"},
	}))
	if _, err := read(t, client.StreamingResponse(t.Context(), ask, nil)); err != nil {
		t.Error(err)
	}
	if ids, err := client.ListModels(t.Context()); err != nil || !slices.Equal(ids, []string{"m-2", "m-1"}) {
		t.Error(ids, err)
	}
	if want := []string{"POST /x/chat/completions Bearer sk-test t", "GET /x/models Bearer sk-test t"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
