package antmessages

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/prism-shadow/mmsp-go"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a provider on the loopback interface and returns a transport on which every host is that provider.
func serve(t *testing.T, handler http.HandlerFunc) http.RoundTripper {
	server := httptest.NewServer(handler)
	overNetwork := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
	}}
	t.Cleanup(server.Close)
	t.Cleanup(overNetwork.CloseIdleConnections)
	return transport(func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.URL.Scheme = "http"
		return overNetwork.RoundTrip(r)
	})
}

// frames turns the data of events, one a line, into a stream. A line that is no object passes as it is.
func frames(lines string) (all []string) {
	for line := range strings.Lines(lines) {
		line = strings.TrimSpace(line)
		var event struct{ Type string }
		switch {
		case line == "":
		case json.Unmarshal([]byte(line), &event) == nil && event.Type != "":
			all = append(all, "event: "+event.Type+"\ndata: "+line+"\n\n")
		default:
			all = append(all, strings.ReplaceAll(line, `\n`, "\n")+"\n\n")
		}
	}
	return all
}

// read reads a public stream, judging its grammar: its items one a line, and the stop as
// "finish cached/prompt/thoughts/response detail: text".
func read(t testing.TB, client *Client) (items []string, stop string, err error) {
	t.Helper()
	var grammar mmsp.GrammarChecker
	messages := []mmsp.Message{mmsp.UserMessage(mmsp.Text("Hi"))}
	for event, err := range mmsp.NewClient(client).StreamingResponse(t.Context(), messages, nil) {
		if err != nil {
			return items, "", err
		}
		if err := grammar.Event(&event); err != nil {
			t.Fatal(err)
		}
		if event.Type == mmsp.EventDelta {
			wire := parse[struct {
				ContentItems []json.RawMessage `json:"content_items"`
			}](t, string(event.AppendJSON(nil)))
			items = append(items, string(wire.ContentItems[0]))
			continue
		}
		count := func(n *int64) string {
			if n == nil {
				return "-"
			}
			return fmt.Sprint(*n)
		}
		u := event.Usage
		stop = fmt.Sprintf("%s %s/%s/%s/%s", event.FinishReason, count(u.CachedTokens), count(u.PromptTokens), count(u.ThoughtsTokens), count(u.ResponseTokens))
		if event.StopDetail != nil {
			stop += " " + event.StopDetail.Kind + ": " + event.StopDetail.Text
		}
	}
	if err := grammar.End(); err != nil {
		t.Fatal(err)
	}
	return items, stop, nil
}

const (
	start = `{"type":"message_start","message":{"usage":{"input_tokens":10,"cache_creation_input_tokens":5,"cache_read_input_tokens":100,"output_tokens":1}}}`
	text  = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}
		{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Yes"}}
		{"type":"content_block_stop","index":0}`
	textItems = `{"type":"text.delta","text":"Yes"}
		{"type":"text.done","text":"Yes"}`
	end = `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":30}}
		{"type":"message_stop"}`
	toolEnd = `{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":30}}
		{"type":"message_stop"}`
	// A turn with everything in it.
	whole = start + `
		{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}
		{"type":"ping"}
		{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm"}}
		{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"S1"}}
		{"type":"content_block_stop","index":0}
		{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}
		{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Yes"}}
		{"type":"content_block_stop","index":1}
		{"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"t1","name":"go","input":{}}}
		{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":""}}
		{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}
		{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"2}"}}
		{"type":"content_block_stop","index":2}
		` + toolEnd
	wholeItems = `{"type":"thinking.delta","thinking":"Hm"}
		{"type":"thinking.delta","thinking":"","fidelity":{"signature":"S1","issuer":"gw.example"}}
		{"type":"thinking.done","thinking":"Hm","fidelity":{"signature":"S1","issuer":"gw.example"}}
		{"type":"text.delta","text":"Yes"}
		{"type":"text.done","text":"Yes"}
		{"type":"tool_call.delta","name":"go","arguments":"","tool_call_id":"t1"}
		{"type":"tool_call.delta","name":"","arguments":"{\"a\":","tool_call_id":""}
		{"type":"tool_call.delta","name":"","arguments":"2}","tool_call_id":""}
		{"type":"tool_call.done","name":"go","arguments":{"a":2},"tool_call_id":"t1"}`
)

func lines(text string) (all []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}

// Each row: a stream, and the items and the stop that come of it.
func TestStream(t *testing.T) {
	delta := func(rest string) string {
		return start + "\n" + text + `
		{"type":"message_delta",` + rest + `}
		{"type":"message_stop"}`
	}
	call := func(index int, id, input string, more string) string {
		return fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":"%s","name":"go","input":%s}}`+"\n%s", index, id, input, more)
	}
	stopBlock := func(index int) string { return fmt.Sprintf(`{"type":"content_block_stop","index":%d}`+"\n", index) }
	fragment := func(index int, json string) string {
		return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":%q}}`+"\n", index, json)
	}
	begun := func(id string) string {
		return fmt.Sprintf(`{"type":"tool_call.delta","name":"go","arguments":"","tool_call_id":"%s"}`+"\n", id)
	}
	added := func(json string) string {
		return fmt.Sprintf(`{"type":"tool_call.delta","name":"","arguments":%q,"tool_call_id":""}`+"\n", json)
	}
	done := func(id, json string) string {
		return fmt.Sprintf(`{"type":"tool_call.done","name":"go","arguments":%s,"tool_call_id":"%s"}`+"\n", json, id)
	}
	const usual, called = "stop 100/15/-/30", "tool_call 100/15/-/30"
	table := []struct{ name, stream, items, stop string }{
		{"a turn with everything", whole, wholeItems, called},

		// Usage.
		{"no caches", `{"type":"message_start","message":{"usage":{"input_tokens":7,"cache_creation_input_tokens":null}}}` + "\n" + text + "\n" + end, textItems, "stop -/7/-/30"},
		{"the message's delta counts", delta(`"delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":1,"cache_creation_input_tokens":1,"cache_read_input_tokens":2,"output_tokens":9,"output_tokens_details":{"thinking_tokens":4}}`), textItems, "stop 2/2/4/5"},
		{
			"zeros at the start", `{"type":"message_start","message":{"usage":{"input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0}}}
			` + text + `
			{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":12,"cache_read_input_tokens":4,"output_tokens":9,"output_tokens_details":{"thinking_tokens":5}}}
			{"type":"message_stop"}`, textItems, "stop 4/12/5/4",
		},
		{"thinking left out of the sum", delta(`"delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3,"output_tokens_details":{"thinking_tokens":5}}`), textItems, "stop 100/15/5/3"},
		{"nulls overwrite nothing", delta(`"delta":{"stop_reason":"end_turn"},"usage":{"input_tokens":null,"cache_read_input_tokens":null,"output_tokens":9}`), textItems, "stop 100/15/-/9"},
		{"usage in a delta of its own", delta(`"delta":{"stop_reason":"end_turn"}}` + "\n" + `{"type":"message_delta","delta":{},"usage":{"output_tokens":9}`), textItems, "stop 100/15/-/9"},
		{"a second start", start + "\n" + start + "\n" + text + "\n" + end, textItems, usual},

		// Stop reasons.
		{"stop_sequence", delta(`"delta":{"stop_reason":"stop_sequence","stop_sequence":"END"},"usage":{"output_tokens":30}`), textItems, usual + " stop_sequence: END"},
		{"max_tokens", delta(`"delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":30}`), textItems, "length 100/15/-/30"},
		{"refusal", delta(`"delta":{"stop_reason":"refusal"},"usage":{"output_tokens":30}`), textItems, "unknown 100/15/-/30 refusal: "},
		{"explained refusal", delta(`"delta":{"stop_reason":"refusal","stop_details":{"category":"cyber","explanation":"Not this."}},"usage":{"output_tokens":30}`), textItems, "unknown 100/15/-/30 refusal: Not this."},
		{"category of a refusal", delta(`"delta":{"stop_reason":"refusal","stop_details":{"category":"cyber"}},"usage":{"output_tokens":30}`), textItems, "unknown 100/15/-/30 refusal: cyber"},
		{"pause_turn", delta(`"delta":{"stop_reason":"pause_turn"},"usage":{"output_tokens":30}`), textItems, "unknown 100/15/-/30 pause: "},
		{"context window", delta(`"delta":{"stop_reason":"model_context_window_exceeded"},"usage":{"output_tokens":30}`), textItems, "unknown 100/15/-/30 context: "},
		{"a new stop reason", delta(`"delta":{"stop_reason":"bored"},"usage":{"output_tokens":30}`), textItems, "unknown 100/15/-/30"},
		{"end_turn after a call", start + "\n" + call(0, "t1", `{}`, fragment(0, `{}`)) + end, begun("t1") + added(`{}`) + done("t1", `{}`), called},
		{"the body ends after the message's delta", strings.TrimSuffix(whole, `{"type":"message_stop"}`), wholeItems, called},

		// Blocks.
		{
			"redacted and signed thinking", start + `
			{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}
			{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"S1"}}
			{"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"RU5D"}}
			{"type":"content_block_start","index":2,"content_block":{"type":"thinking","thinking":"T","signature":"S3"}}
			{"type":"content_block_start","index":3,"content_block":{"type":"text","text":"Yes"}}
			` + end,
			`{"type":"thinking.delta","thinking":"","fidelity":{"signature":"S1","issuer":"gw.example"}}
			{"type":"thinking.done","thinking":"","fidelity":{"signature":"S1","issuer":"gw.example"}}
			{"type":"thinking.delta","thinking":"_REDACTED_THINKING","fidelity":{"signature":"RU5D","issuer":"gw.example"}}
			{"type":"thinking.done","thinking":"_REDACTED_THINKING","fidelity":{"signature":"RU5D","issuer":"gw.example"}}
			{"type":"thinking.delta","thinking":"T","fidelity":{"signature":"S3","issuer":"gw.example"}}
			{"type":"thinking.done","thinking":"T","fidelity":{"signature":"S3","issuer":"gw.example"}}
			` + textItems,
			usual,
		},
		{
			"unsigned thinking", start + `
			{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":""}}
			{"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm"}}
			{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":""}}
			` + strings.ReplaceAll(text, `"index":0`, `"index":1`) + "\n" + end,
			`{"type":"thinking.delta","thinking":"Hm"}
			{"type":"thinking.done","thinking":"Hm"}
			` + textItems, usual,
		},
		{
			"two texts, two items", start + "\n" + text + `
			{"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}
			{"type":"content_block_delta","index":1,"delta":{"type":"citations_delta","citation":{"cited_text":"x"}}}
			{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"Yes"}}
			` + end, textItems + "\n" + textItems, usual,
		},
		{
			"blocks that do not begin", start + "\n" + `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Yes"}}` + "\n" + end, textItems, usual,
		},
		{
			"the provider's own tools", start + `
			{"type":"content_block_start","index":0,"content_block":{"type":"server_tool_use","id":"srv","name":"web_search","input":{"q":"x"}}}
			{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"q\":\"x\"}"}}
			{"type":"content_block_stop","index":0}
			{"type":"content_block_start","index":1,"content_block":{"type":"web_search_tool_result","tool_use_id":"srv","content":[{"type":"text","text":"no"}]}}
			{"type":"content_block_start","index":2,"content_block":{"type":"mcp_tool_use","id":"mcp","name":"ask","input":{"q":"x"}}}
			{"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{}"}}
			{"type":"content_block_start","index":3,"content_block":{"type":"compaction","content":null}}
			{"type":"content_block_delta","index":3,"delta":{"type":"compaction_delta","content":"no"}}
			{"type":"content_block_delta","index":3,"delta":{"type":"text_delta","text":"no"}}
			{"type":"content_block_start","index":4,"content_block":{"type":"text","text":""}}
			{"type":"content_block_delta","index":4,"delta":{"type":"input_json_delta","partial_json":"{}"}}
			` + text + "\n" + end, textItems, usual,
		},

		// Calls.
		{"no arguments at all", start + "\n" + call(0, "t1", `{}`, stopBlock(0)) + toolEnd, begun("t1") + done("t1", `{}`), called},
		{"an empty fragment alone", start + "\n" + call(0, "t1", `{}`, fragment(0, "")+stopBlock(0)) + toolEnd, begun("t1") + done("t1", `{}`), called},
		{"no input either", start + "\n" + call(0, "t1", `null`, stopBlock(0)) + toolEnd, begun("t1") + done("t1", `{}`), called},
		{
			"arguments in the start", start + "\n" + call(0, "t1", `{"n": 9007199254740993}`, stopBlock(0)) + toolEnd,
			begun("t1") + added(`{"n": 9007199254740993}`) + done("t1", `{"n": 9007199254740993}`), called,
		},
		{
			"arguments in the start, which does not end", start + "\n" + call(0, "t1", `{"a":1}`, "") + call(1, "t2", `{"a":2}`, "") + toolEnd,
			begun("t1") + added(`{"a":1}`) + done("t1", `{"a":1}`) + begun("t2") + added(`{"a":2}`) + done("t2", `{"a":2}`), called,
		},
		{
			"arguments in the start, then text", start + "\n" + call(1, "t1", `{"a":1}`, "") + text + "\n" + stopBlock(1) + toolEnd,
			begun("t1") + added(`{"a":1}`) + done("t1", `{"a":1}`) + textItems, called,
		},
		{
			"arguments in the start and in fragments", start + "\n" + call(0, "t1", `{"a":1}`, fragment(0, `{"a":1}`)+stopBlock(0)) + toolEnd,
			begun("t1") + added(`{"a":1}`) + done("t1", `{"a":1}`), called,
		},
		{
			"calls one after the other, the first without arguments",
			start + "\n" + call(0, "t1", `{}`, stopBlock(0)) + call(1, "t2", `{}`, fragment(1, `{"a":2}`)+stopBlock(1)) + toolEnd,
			begun("t1") + added(`{}`) + done("t1", `{}`) + begun("t2") + added(`{"a":2}`) + done("t2", `{"a":2}`), called,
		},
		{
			"a call without arguments that ends late", start + "\n" + call(1, "t1", `{}`, "") + text + "\n" + stopBlock(1) + call(2, "t2", `{}`, fragment(2, `{}`)) + toolEnd,
			begun("t1") + done("t1", `{}`) + textItems + "\n" + begun("t2") + added(`{}`) + done("t2", `{}`), called,
		},
		{
			"calls that interleave",
			start + "\n" + call(0, "t1", `{}`, "") + call(1, "t2", `{}`, "") + fragment(1, `{"b":`) + fragment(0, `{"a":`) + fragment(1, `2}`) + fragment(0, `1}`) + stopBlock(0) + stopBlock(1) + toolEnd,
			begun("t1") + added(`{"a":`) + added(`1}`) + done("t1", `{"a":1}`) +
				`{"type":"tool_call.delta","name":"go","arguments":"{\"b\":2}","tool_call_id":"t2"}` + "\n" + done("t2", `{"b":2}`), called,
		},

		// Framing.
		{"no event names", "data: " + strings.Join(lines(start+"\n"+text+"\n"+end), "\ndata: "), textItems, usual},
		{
			"foreign events", `{"type":"ping"}
			event: heartbeat\ndata: not JSON
			data:
			event: gateway.cost\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"no"}}
			event: message_delta\ndata: {"type":"message_mystery","delta":{"stop_reason":"max_tokens"}}
			data: {"type":"gateway_error","error":{"message":"no"}}
			: a comment
			` + start + "\n" + text + "\n" + `data: [DONE]` + "\n" + end + "\n" + `data: not read any more`, textItems, usual,
		},
		{"no type but in the name", start + "\n" + text + "\n" + `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":30}}` + "\n" + `event: message_stop\ndata: {}`, textItems, usual},
		{
			"one whole answer", `{"type":"message","role":"assistant","content":[
			{"type":"thinking","thinking":"Hm","signature":"S1"},{"type":"redacted_thinking","data":"RU5D"},{"type":"text","text":"Yes"},
			{"type":"server_tool_use","id":"srv","name":"web_search","input":{"q":"x"}},
			{"type":"tool_use","id":"t1","name":"go","input":{"a": 9007199254740993}},{"type":"tool_use","id":"t2","name":"go","input":{}}],
			"stop_reason":"tool_use","usage":{"input_tokens":10,"cache_creation_input_tokens":5,"cache_read_input_tokens":100,"output_tokens":30}}`,
			`{"type":"thinking.delta","thinking":"Hm","fidelity":{"signature":"S1","issuer":"gw.example"}}
			{"type":"thinking.done","thinking":"Hm","fidelity":{"signature":"S1","issuer":"gw.example"}}
			{"type":"thinking.delta","thinking":"_REDACTED_THINKING","fidelity":{"signature":"RU5D","issuer":"gw.example"}}
			{"type":"thinking.done","thinking":"_REDACTED_THINKING","fidelity":{"signature":"RU5D","issuer":"gw.example"}}
			` + textItems + "\n" + begun("t1") + added(`{"a":9007199254740993}`) + done("t1", `{"a":9007199254740993}`) + begun("t2") + done("t2", `{}`),
			called,
		},
	}
	for _, row := range table {
		t.Run(row.name, func(t *testing.T) {
			body := strings.Join(frames(row.stream), "")
			if strings.HasPrefix(row.stream, `{"type":"message",`) {
				body = row.stream
			}
			client := testClient(t, "m", serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, body) }))
			items, stop, err := read(t, client)
			if want := lines(row.items); err != nil || !reflect.DeepEqual(items, want) || stop != row.stop {
				t.Errorf("error %v\n got %s\n     %s\nwant %s\n     %s", err, strings.Join(items, "\n     "), stop, strings.Join(want, "\n     "), row.stop)
			}
		})
	}
}

// A turn that was streamed goes back as it came, but to another endpoint without what only its issuer can read.
func TestReplay(t *testing.T) {
	stream := start + `
		{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"RU5D"}}` + strings.TrimPrefix(strings.ReplaceAll(whole, `"index":0`, `"index":7`), start)
	over := transport(func(*http.Request) (*http.Response, error) { return answer(200, strings.Join(frames(stream), "")), nil })
	client := testClient(t, "m", over)
	question := mmsp.UserMessage(mmsp.Text("Hi"))
	turn, err := mmsp.Collect(mmsp.NewClient(client).StreamingResponse(t.Context(), []mmsp.Message{question}, nil))
	if err != nil {
		t.Fatal(err)
	}
	const rest = `{"type":"text","text":"Yes"},{"type":"tool_use","id":"t1","name":"go","input":{"a":2}}`
	table := []struct{ baseURL, issuer, want string }{
		{"https://gw.example/anthropic", "gw.example", `{"type":"redacted_thinking","data":"RU5D"},{"type":"thinking","thinking":"Hm","signature":"S1"},` + rest},
		{"https://other.example:8443/v1", "other.example:8443", rest},
		{"https://api.Anthropic.com/v1/", "anthropic", rest},
	}
	for _, row := range table {
		client, err := New(mmsp.Options{Model: "m", APIKey: mmsp.NewSecret("k"), BaseURL: row.baseURL, Getenv: func(string) string { return "" }})
		if err != nil {
			t.Fatal(err)
		}
		request, err := client.Prepare(t.Context(), []mmsp.Message{question, turn}, &mmsp.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if want := `{"role":"assistant","content":[` + row.want + `]}`; client.issuer != row.issuer || !strings.Contains(string(request.Body), want) {
			t.Errorf("%s, issuer %s:\n got %s\nwant %s", row.baseURL, client.issuer, request.Body, want)
		}
	}
}

// With MMSP_DEBUG on, what the client does not know is an error; a ping never is.
func TestStreamDebug(t *testing.T) {
	table := []struct {
		debug, event string
		fails        bool
	}{
		{"", `{"type":"message_mystery"}`, false},
		{" Off ", `{"type":"message_mystery"}`, false},
		{"1", `{"type":"message_mystery"}`, true},
		{"true", `event: heartbeat\ndata: tick`, true},
		{"1", `event: message_stop\ndata: {"type":"relay_frame"}`, true},
		{"1", `{"type":"ping"}`, false},
		{"1", `{"type":"content_block_delta","index":9,"delta":{"type":"citations_delta"}}`, false},
	}
	for _, row := range table {
		client, err := New(mmsp.Options{
			Model: "m", APIKey: mmsp.NewSecret("k"),
			HTTPClient: &http.Client{Transport: transport(func(*http.Request) (*http.Response, error) {
				return answer(200, strings.Join(frames(start+"\n"+row.event+"\n"+text+"\n"+end), "")), nil
			})},
			Getenv: func(name string) string { return map[string]string{"MMSP_DEBUG": row.debug}[name] },
		})
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = read(t, client)
		if fails := err != nil && strings.Contains(err.Error(), "Unknown output"); fails != row.fails || err != nil && !fails {
			t.Errorf("MMSP_DEBUG=%q, %s: error %v", row.debug, row.event, err)
		}
	}
}

// Each row: an answer, what of it reaches the consumer, and the error that ends the stream.
func TestStreamErrors(t *testing.T) {
	const overloaded = `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}`
	table := []struct {
		name   string
		status int
		body   string
		items  int
		want   error
	}{
		{"overloaded", 529, overloaded, 0, &mmsp.UpstreamError{Status: 529, ErrorType: "overloaded_error", Message: "Overloaded", RequestID: "req_1"}},
		{"a refused key", 401, `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`, 0, &mmsp.UpstreamError{Status: 401, ErrorType: "authentication_error", Message: "invalid x-api-key"}},
		{"an error event", 200, strings.Join(frames(start+"\n"+text+"\n"+overloaded), ""), 1, &mmsp.UpstreamError{ErrorType: "overloaded_error", Message: "Overloaded", RequestID: "req_1"}},
		{"an error event without a name", 200, "data: " + overloaded + "\n\n", 0, &mmsp.UpstreamError{ErrorType: "overloaded_error", Message: "Overloaded", RequestID: "req_1"}},
		{"an error object alone", 200, "data: {\"error\":{\"message\":\"No.\",\"code\":429}}\n\n", 0, &mmsp.UpstreamError{Status: 429, Code: "429", Message: "No."}},
		{"an error as plain text", 200, "event: error\ndata: Busy\n\n", 0, &mmsp.UpstreamError{Message: "Busy"}},
		{"an error instead of a stream", 200, overloaded, 0, &mmsp.UpstreamError{ErrorType: "overloaded_error", Message: "Overloaded", RequestID: "req_1"}},
		{"a page", 200, "\n<!DOCTYPE html><title>Sign in</title>", 0, &mmsp.UpstreamError{ErrorType: "unexpected_body"}},
		{"another document", 200, `{"object":"list"}`, 0, &mmsp.UpstreamError{ErrorType: "unexpected_body"}},
		{"a list", 200, `[]`, 0, &mmsp.UpstreamError{ErrorType: "unexpected_body"}},
		{"an unreadable event", 200, strings.Join(frames(start), "") + "event: content_block_start\ndata: {\"type\":\n\n" + "data: {}\n\n", 0, &mmsp.UpstreamError{ErrorType: "malformed_event"}},
		{"an empty body", 200, "", 0, &mmsp.IncompleteStreamError{}},
		{"no stop reason", 200, strings.Join(frames(start+"\n"+text+"\n"+`{"type":"message_stop"}`), ""), 1, &mmsp.IncompleteStreamError{}},
		{"no usage", 200, strings.Join(frames(text+"\n"+`{"type":"message_delta","delta":{"stop_reason":"end_turn"}}`+"\n"+`{"type":"message_stop"}`), ""), 1, &mmsp.IncompleteStreamError{}},
		{"thinking alone", 200, strings.Join(frames(start+"\n"+`{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"x"}}`+"\n"+end), ""), 2, &mmsp.EmptyResponseError{}},
		{
			"a call cut by the token limit", 200,
			strings.Join(frames(start+"\n"+`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"f","input":{}}}
				{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}
				{"type":"message_delta","delta":{"stop_reason":"max_tokens"},"usage":{"output_tokens":1}}
				{"type":"message_stop"}`), ""),
			2, &mmsp.ToolCallArgumentParseError{FinishReason: mmsp.FinishLength},
		},
		{
			"arguments of no call", 200,
			strings.Join(frames(start+"\n"+`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{}"}}`), ""),
			0, &mmsp.StreamProtocolError{},
		},
	}
	for _, row := range table {
		t.Run(row.name, func(t *testing.T) {
			client := testClient(t, "m", serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(row.status)
				_, _ = io.WriteString(w, row.body)
			}))
			items, _, err := read(t, client)
			if len(items) != row.items {
				t.Errorf("%d items: %s", len(items), items)
			}
			if reflect.TypeOf(err) != reflect.TypeOf(row.want) {
				t.Fatalf("error %T %v, want %T", err, err, row.want)
			}
			switch got := err.(type) {
			case *mmsp.UpstreamError:
				want := row.want.(*mmsp.UpstreamError)
				if got.Status != want.Status || got.ErrorType != want.ErrorType || got.Code != want.Code || got.RequestID != want.RequestID ||
					want.Message != "" && got.Message != want.Message || got.Client != class {
					t.Errorf("%+v", got)
				}
			case *mmsp.ToolCallArgumentParseError:
				if got.FinishReason != mmsp.FinishLength || got.Usage == nil {
					t.Errorf("%+v", got)
				}
			}
		})
	}
}

// A stream that is cut, cleanly or not, says so: only the message's delta ends the turn of a body that ends cleanly, and only
// the message's stop that of a connection that breaks. What came before stands.
func TestStreamCut(t *testing.T) {
	all := frames(whole)
	want := lines(wholeItems)
	for cut := range len(all) + 1 {
		for _, broken := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d broken %v", cut, broken), func(t *testing.T) {
				client := testClient(t, "m", serve(t, func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.WriteString(w, strings.Join(all[:cut], ""))
					w.(http.Flusher).Flush()
					if broken {
						panic(http.ErrAbortHandler)
					}
				}))
				items, _, err := read(t, client)
				complete := cut == len(all) || cut == len(all)-1 && !broken
				var incomplete *mmsp.IncompleteStreamError
				if complete && err != nil || !complete && !errors.As(err, &incomplete) {
					t.Errorf("error %v", err)
				}
				if len(items) > len(want) || !reflect.DeepEqual(items, append([]string(nil), want[:len(items)]...)) || complete && len(items) < len(want) {
					t.Errorf("items %s", items)
				}
			})
		}
	}
}

// The same at every byte.
func TestStreamCutAnywhere(t *testing.T) {
	body := strings.Join(frames(whole), "")
	turnEnds := strings.Index(body, "\n\nevent: message_stop")
	for cut := range len(body) {
		client := testClient(t, "m", transport(func(*http.Request) (*http.Response, error) { return answer(200, body[:cut]), nil }))
		_, _, err := read(t, client)
		var incomplete *mmsp.IncompleteStreamError
		if cut < turnEnds && !errors.As(err, &incomplete) || cut >= turnEnds && err != nil {
			t.Fatalf("cut at %d of %d, after %q: error %v", cut, len(body), body[max(cut-40, 0):cut], err)
		}
	}
}

// The provider's connection is closed at once when the caller cancels, and when it leaves the loop.
func TestStreamAbort(t *testing.T) {
	for _, leave := range []bool{false, true} {
		closed := make(chan time.Time, 1)
		client := mmsp.NewClient(testClient(t, "m", serve(t, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, strings.Join(frames(start+"\n"+text), ""))
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			closed <- time.Now()
		})))
		reason := errors.New("the user pressed escape")
		ctx, cancel := context.WithCancelCause(t.Context())
		var left time.Time
		var err error
		for _, err = range client.StreamingResponse(ctx, []mmsp.Message{mmsp.UserMessage(mmsp.Text("Hi"))}, nil) {
			if err != nil {
				break
			}
			left = time.Now()
			if leave {
				break
			}
			cancel(reason)
		}
		cancel(nil)
		if !leave && !errors.Is(err, reason) {
			t.Errorf("error %v", err)
		}
		select {
		case at := <-closed:
			if took := at.Sub(left); took > 100*time.Millisecond {
				t.Errorf("leave %v: closed after %v", leave, took)
			}
		case <-time.After(5 * time.Second):
			t.Fatalf("leave %v: the connection stays open", leave)
		}
	}
}

// The public stream ends with the message, not with the connection.
func TestStreamDoesNotAwaitTheEndOfTheBody(t *testing.T) {
	release := make(chan struct{})
	client := testClient(t, "m", serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, strings.Join(frames(whole), ""))
		w.(http.Flusher).Flush()
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer close(release)
	began := time.Now()
	if _, stop, err := read(t, client); err != nil || stop == "" || time.Since(began) > 2*time.Second {
		t.Errorf("%q %v after %v", stop, err, time.Since(began))
	}
}

// Whatever a provider sends, the public stream is legal or ends with an error.
func FuzzTransform(f *testing.F) {
	for _, stream := range []string{whole, start + "\n" + text + "\n" + end, `data: {"error":{}}`, "<html>"} {
		f.Add([]byte(strings.Join(frames(stream), "")))
	}
	f.Add([]byte(`{"type":"message","content":[{"type":"tool_use","id":"t","name":"f","input":{"a":1}}],"stop_reason":"tool_use","usage":{"output_tokens":1}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		read(t, testClient(t, "m", transport(func(*http.Request) (*http.Response, error) { return answer(200, string(body)), nil })))
	})
}

// TestHeldOpen: after the stop reason the end of the message is awaited, but not for as long as the connection stays.
func TestHeldOpen(t *testing.T) {
	lines := strings.Join(frames(start+"\n"+text+"\n"+`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}`), "")
	synctest.Test(t, func(t *testing.T) {
		body, provider := io.Pipe()
		client := testClient(t, "m", transport(func(r *http.Request) (*http.Response, error) {
			go func() { _, _ = io.WriteString(provider, lines) }()
			return &http.Response{StatusCode: 200, Header: http.Header{}, Body: body}, nil
		}))
		begin := time.Now()
		_, stop, err := read(t, client)
		if took := time.Since(begin); err != nil || stop == "" || took > endWait+time.Second {
			t.Errorf("%q, %v after %v", stop, err, took)
		}
	})
}
