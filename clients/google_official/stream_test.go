package googleofficial

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
	"slices"
	"strings"
	"testing"
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

// sends is a provider that answers with a body.
func sends(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// frames turns the data of events, one a line, into a stream. A line that is no object passes as it is.
func frames(lines string) (all []string) {
	for line := range strings.Lines(lines) {
		line = strings.TrimSpace(line)
		var event struct {
			Type string `json:"event_type"`
		}
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

func stream(lines string) string { return strings.Join(frames(lines), "") }

// read reads a public stream, judging its grammar: its items one a line, and the stop as
// "finish cached/prompt/thoughts/response".
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
			stop += " " + event.StopDetail.Kind
		}
	}
	if err := grammar.End(); err != nil {
		t.Fatal(err)
	}
	return items, stop, nil
}

func lines(text string) (all []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}

const (
	created = `{"interaction":{"id":"","status":"in_progress","object":"interaction","model":"m"},"event_type":"interaction.created"}
		{"interaction_id":"","status":"in_progress","event_type":"interaction.status_update"}`
	text = `{"index":1,"step":{"type":"model_output"},"event_type":"step.start"}
		{"index":1,"delta":{"text":"Yes","type":"text"},"event_type":"step.delta"}
		{"index":1,"event_type":"step.stop"}`
	textItems = `{"type":"text.delta","text":"Yes"}
		{"type":"text.done","text":"Yes"}`
	usage = `{"total_input_tokens":110,"total_cached_tokens":100,"total_output_tokens":30,"total_thought_tokens":7,"total_tokens":147,"total_tool_use_tokens":3}`
	end   = `{"interaction":{"status":"completed","usage":` + usage + `},"event_type":"interaction.completed"}
		event: done\ndata: [DONE]`
	toolEnd = `{"interaction":{"status":"requires_action","usage":` + usage + `},"event_type":"interaction.completed"}
		event: done\ndata: [DONE]`
	signed = `,"fidelity":{"signature":"S1","issuer":"google"}`

	// A turn with everything in it.
	whole = created + `
		{"index":0,"step":{"type":"thought"},"event_type":"step.start"}
		{"index":0,"delta":{"type":"thought_summary","content":{"type":"text","text":"Hm, "}},"event_type":"step.delta"}
		{"index":0,"delta":{"type":"thought_summary","content":{"type":"text","text":"so."}},"event_type":"step.delta"}
		{"index":0,"delta":{"signature":"S1","type":"thought_signature"},"event_type":"step.delta"}
		{"index":0,"event_type":"step.stop"}
		` + text + `
		{"index":2,"step":{"id":"c1","signature":"","type":"function_call","name":"go","arguments":{}},"event_type":"step.start"}
		{"index":2,"delta":{"arguments":"{\"a\":","type":"arguments_delta"},"event_type":"step.delta"}
		{"index":2,"delta":{"arguments":"2}","type":"arguments_delta"},"event_type":"step.delta"}
		{"index":2,"event_type":"step.stop"}
		{"interaction_id":"","status":"requires_action","event_type":"interaction.status_update"}
		` + toolEnd
	wholeItems = `{"type":"thinking.delta","thinking":"Hm, "}
		{"type":"thinking.delta","thinking":"so."}
		{"type":"thinking.delta","thinking":""` + signed + `}
		{"type":"thinking.done","thinking":"Hm, so."` + signed + `}
		` + textItems + `
		{"type":"tool_call.delta","name":"go","arguments":"","tool_call_id":"c1"}
		{"type":"tool_call.delta","name":"","arguments":"{\"a\":","tool_call_id":""}
		{"type":"tool_call.delta","name":"","arguments":"2}","tool_call_id":""}
		{"type":"tool_call.done","name":"go","arguments":{"a":2},"tool_call_id":"c1"}`
)

// Each row: a stream, and the items and the stop that come of it.
func TestStream(t *testing.T) {
	step := func(index int, step string) string {
		return fmt.Sprintf(`{"index":%d,"step":%s,"event_type":"step.start"}`+"\n", index, step)
	}
	delta := func(index int, delta string) string {
		return fmt.Sprintf(`{"index":%d,"delta":%s,"event_type":"step.delta"}`+"\n", index, delta)
	}
	call := func(index int, id, arguments string) string {
		return step(index, `{"type":"function_call","id":"`+id+`","name":"go","arguments":`+arguments+`}`)
	}
	fragment := func(index int, json string) string {
		return delta(index, fmt.Sprintf(`{"type":"arguments_delta","arguments":%q}`, json))
	}
	stopStep := func(index int) string { return fmt.Sprintf(`{"event_type":"step.stop","index":%d}`+"\n", index) }
	completed := func(rest string) string {
		return text + "\n" + `{"event_type":"interaction.completed","interaction":{` + rest + `}}`
	}
	begun := func(id, arguments string) string {
		return fmt.Sprintf(`{"type":"tool_call.delta","name":"go","arguments":%q,"tool_call_id":"%s"}`+"\n", arguments, id)
	}
	added := func(json string) string {
		return fmt.Sprintf(`{"type":"tool_call.delta","name":"","arguments":%q,"tool_call_id":""}`+"\n", json)
	}
	done := func(id, json string) string {
		return fmt.Sprintf(`{"type":"tool_call.done","name":"go","arguments":%s,"tool_call_id":"%s"}`+"\n", json, id)
	}
	data := func(kind, data, mime, more string) string {
		return fmt.Sprintf(`{"type":"%s","data":"%s","mime_type":"%s"%s}`+"\n", kind, data, mime, more)
	}
	const usual, called = "stop 100/10/7/30", "tool_call 100/10/7/30"
	table := []struct{ name, stream, items, stop string }{
		{"a turn with everything", whole, wholeItems, called},

		// The end.
		{"completed", completed(`"status":"completed","usage":` + usage), textItems, usual},
		{"requires_action", completed(`"status":"requires_action","usage":` + usage), textItems, called},
		{"incomplete", completed(`"status":"incomplete","usage":` + usage), textItems, "length 100/10/7/30"},
		{"failed", completed(`"status":"failed","usage":` + usage), textItems, "unknown 100/10/7/30 filter"},
		{"cancelled", completed(`"status":"cancelled","usage":` + usage), textItems, "unknown 100/10/7/30"},
		{"budget_exceeded", completed(`"status":"budget_exceeded","usage":` + usage), textItems, "unknown 100/10/7/30 context"},
		{"no status", completed(`"usage":` + usage), textItems, "unknown 100/10/7/30"},
		{"completed after a call", call(0, "c1", `{}`) + end, begun("c1", "") + done("c1", `{}`), called},
		{"incomplete after a call", call(0, "c1", `{}`) + strings.Replace(end, "completed", "incomplete", 1), begun("c1", "") + done("c1", `{}`), "length 100/10/7/30"},
		{"no mark of the end", strings.TrimSuffix(whole, `event: done\ndata: [DONE]`), wholeItems, called},

		// Usage.
		{"zeros are not reported", completed(`"status":"completed","usage":{"total_input_tokens":9,"total_cached_tokens":0,"total_output_tokens":0,"total_thought_tokens":0}`), textItems, "stop -/9/-/-"},
		{"an empty usage", completed(`"status":"completed","usage":{}`), textItems, "stop -/0/-/-"},

		// Thoughts.
		{
			"a signature alone", step(0, `{"type":"thought"}`) + delta(0, `{"type":"thought_signature","signature":"S1"}`) + text + "\n" + end,
			`{"type":"thinking.delta","thinking":""` + signed + `}
			{"type":"thinking.done","thinking":""` + signed + `}
			` + textItems, usual,
		},
		{
			"two thoughts", delta(0, `{"type":"thought_summary","content":{"type":"text","text":"a"}}`) + delta(2, `{"type":"thought_summary","content":{"type":"text","text":"b"}}`) + text + "\n" + end,
			`{"type":"thinking.delta","thinking":"a"}
			{"type":"thinking.done","thinking":"a"}
			{"type":"thinking.delta","thinking":"b"}
			{"type":"thinking.done","thinking":"b"}
			` + textItems, usual,
		},
		{
			"text, picture, text", delta(0, `{"type":"thought_summary","content":{"type":"text","text":"a"}}`) + delta(0, `{"type":"thought_summary","content":{"type":"image","data":"RDE="}}`) +
				delta(0, `{"type":"thought_summary","content":{"type":"text","text":"b"}}`) + text + "\n" + end,
			`{"type":"thinking.delta","thinking":"a"}
			{"type":"thinking.done","thinking":"a"}
			` + data("inline_thinking.delta", "RDE=", "image/jpeg", "") + data("inline_thinking.done", "RDE=", "image/jpeg", "") + `
			{"type":"thinking.delta","thinking":"b"}
			{"type":"thinking.done","thinking":"b"}
			` + textItems, usual,
		},
		{"empty signature", delta(0, `{"type":"thought_signature","signature":""}`) + text + "\n" + end, textItems, usual},

		// Media.
		{
			"pictures and sound", step(0, `{"type":"thought"}`) + delta(0, `{"type":"thought_summary","content":{"type":"image","data":"RDE=","mime_type":"image/png"}}`) +
				delta(0, `{"type":"thought_summary","content":{"type":"image","data":"RDI=","mime_type":"image/png"}}`) + delta(0, `{"type":"thought_signature","signature":"S1"}`) +
				step(1, `{"type":"model_output"}`) + delta(1, `{"type":"image","data":"STE=","mime_type":"image/png"}`) + delta(1, `{"type":"image","data":"STI="}`) +
				delta(2, `{"type":"audio","data":"UDE=","mime_type":"audio/l16","sample_rate":24000,"channels":1}`) + delta(2, `{"type":"audio","data":"UDI=","mime_type":"audio/l16","sample_rate":24000,"channels":1}`) + end,
			data("inline_thinking.delta", "RDE=", "image/png", "") + data("inline_thinking.done", "RDE=", "image/png", "") +
				data("inline_thinking.delta", "RDI=", "image/png", "") + data("inline_thinking.delta", "", "image/png", signed) + data("inline_thinking.done", "RDI=", "image/png", signed) +
				data("inline_data.delta", "STE=", "image/png", "") + data("inline_data.done", "STE=", "image/png", "") +
				data("inline_data.delta", "STI=", "image/jpeg", "") + data("inline_data.done", "STI=", "image/jpeg", "") +
				data("inline_data.delta", "UDE=", "audio/l16; rate=24000; channels=1", "") + data("inline_data.delta", "UDI=", "audio/l16; rate=24000; channels=1", "") +
				data("inline_data.done", "UDFQMg==", "audio/l16; rate=24000; channels=1", ""),
			usual,
		},
		{"sound in a file", delta(0, `{"type":"audio","data":"UDE=","mime_type":"audio/wav"}`) + end, data("inline_data.delta", "UDE=", "audio/wav", "") + data("inline_data.done", "UDE=", "audio/wav", ""), usual},

		// Calls.
		{"no arguments at all", call(0, "c1", `{}`) + stopStep(0) + toolEnd, begun("c1", "") + done("c1", `{}`), called},
		{"an empty fragment", call(0, "c1", `{}`) + fragment(0, "") + stopStep(0) + toolEnd, begun("c1", "") + done("c1", `{}`), called},
		{"no arguments key", step(0, `{"type":"function_call","id":"c1","name":"go"}`) + toolEnd, begun("c1", "") + done("c1", `{}`), called},
		{"arguments with the start", call(0, "c1", `{"n": 9007199254740993}`) + stopStep(0) + toolEnd, begun("c1", `{"n": 9007199254740993}`) + done("c1", `{"n": 9007199254740993}`), called},
		{"arguments with the start and in fragments", call(0, "c1", `{"a":1}`) + fragment(0, `{"a":`) + fragment(0, `1}`) + stopStep(0) + toolEnd, begun("c1", `{"a":1}`) + done("c1", `{"a":1}`), called},
		{
			"parallel calls", call(0, "c1", `{"a":1}`) + stopStep(0) + call(1, "c2", `{}`) + fragment(1, `{"b":2}`) + stopStep(1) + toolEnd,
			begun("c1", `{"a":1}`) + done("c1", `{"a":1}`) + begun("c2", "") + added(`{"b":2}`) + done("c2", `{"b":2}`), called,
		},
		{
			"calls under one index", call(0, "c1", `{"a":1}`) + call(0, "c2", `{}`) + fragment(0, `{"b":2}`) + toolEnd,
			begun("c1", `{"a":1}`) + done("c1", `{"a":1}`) + begun("c2", "") + added(`{"b":2}`) + done("c2", `{"b":2}`), called,
		},
		{
			"calls without ids", call(0, "", `{"a":1}`) + call(1, "", `{}`) + fragment(1, `{"b":2}`) + toolEnd,
			begun("go", `{"a":1}`) + done("go", `{"a":1}`) + begun("go", "") + added(`{"b":2}`) + done("go", `{"b":2}`), called,
		},

		// What is not read.
		{"content in a start", step(1, `{"type":"model_output","content":[{"type":"text","text":"no"}]}`) + step(0, `{"type":"thought","summary":[{"type":"text","text":"no"}]}`) + text + "\n" + end, textItems, usual},
		{
			"the provider's own tools", text + "\n" + delta(1, `{"type":"text_annotation_delta","annotations":[{"type":"url_citation"}]}`) + step(2, `{"id":"x","type":"google_search_call"}`) +
				delta(2, `{"type":"google_search_call","arguments":{"queries":["q"]}}`) + stopStep(2) + step(3, `{"type":"google_search_result"}`) + delta(3, `{"type":"google_search_result","result":[{"text":"no"}]}`) + stopStep(3) + end, textItems, usual,
		},
		{"media of other kinds", delta(0, `{"type":"video","data":"UDE="}`) + delta(0, `{"type":"document","data":"UDE="}`) + delta(0, `{"type":"thought_summary","content":{"type":"audio"}}`) + text + "\n" + end, textItems, usual},
		{
			"foreign events", `event: heartbeat\ndata: not JSON
			data:
			: a comment
			data: {"type":"heartbeat"}
			{"event_type":"error"}
			{"event_type":"error","error":null}
			{"event_type":"gateway.cost","error":{"message":"no"}}
			{"event_type":"interaction.in_progress"}
			` + created + "\n" + text + "\n" + end + "\n" + `data: not read any more`, textItems, usual,
		},

		// Framing.
		{"no event names", "data: " + strings.Join(lines(strings.ReplaceAll(whole, `event: done\ndata: `, "")), "\ndata: "), wholeItems, called},
		{
			"one whole answer", `{"id":"i","object":"interaction","model":"m","status":"requires_action","usage":` + usage + `,"steps":[{"signature":"S1","type":"thought","summary":[{"type":"text","text":"Hm, so."}]},` +
				`{"type":"model_output","content":[{"type":"text","text":"Yes","annotations":[]},{"type":"image","data":"STE=","mime_type":"image/png"}]},{"type":"google_search_call","signature":"x"},{"type":"function_call","id":"c1","name":"go","arguments":{"a":2}}]}`,
			`{"type":"thinking.delta","thinking":"Hm, so."}
			{"type":"thinking.delta","thinking":""` + signed + `}
			{"type":"thinking.done","thinking":"Hm, so."` + signed + `}
			` + textItems + "\n" + data("inline_data.delta", "STE=", "image/png", "") + data("inline_data.done", "STE=", "image/png", "") + begun("c1", `{"a":2}`) + done("c1", `{"a":2}`), called,
		},
	}
	for _, row := range table {
		t.Run(row.name, func(t *testing.T) {
			body := stream(row.stream)
			if strings.HasPrefix(row.name, "no event names") {
				body = strings.ReplaceAll(row.stream, "\n", "\n\n") + "\n\n"
			}
			items, stop, err := read(t, testClient(t, "m", serve(t, sends(200, body))))
			if err != nil || stop != row.stop || !slices.Equal(items, lines(row.items)) {
				t.Errorf("%v\n got %s\n%s\nwant %s\n%s", err, stop, strings.Join(items, "\n"), row.stop, strings.Join(lines(row.items), "\n"))
			}
		})
	}
}

// With MMSP_DEBUG on, what the client does not know is an error; what it knows to say nothing is not.
func TestStreamDebug(t *testing.T) {
	for unknown, event := range map[string]string{
		"step":    `{"index":2,"step":{"type":"google_search_call"},"event_type":"step.start"}`,
		"delta":   `{"index":2,"delta":{"type":"video"},"event_type":"step.delta"}`,
		"summary": `{"index":2,"delta":{"type":"thought_summary","content":{"type":"audio"}},"event_type":"step.delta"}`,
		"event":   `{"event_type":"interaction.mystery"}`,
		"error":   `{"event_type":"error"}`,
		"no type": `data: {"type":"heartbeat"}`,
		"name":    `event: heartbeat\ndata: not JSON`,
		"":        `{"interaction_id":"","status":"in_progress","event_type":"interaction.status_update"}`,
	} {
		for _, debug := range []string{"1", " Yes ", "", "0", "FALSE", "off", "no"} {
			client, err := New(mmsp.Options{
				Model: "m", APIKey: mmsp.NewSecret("test-key"), Getenv: func(name string) string { return map[string]string{"MMSP_DEBUG": debug}[name] },
				HTTPClient: &http.Client{Transport: transport(func(*http.Request) (*http.Response, error) {
					return answer(200, stream(created+"\n"+event+"\n"+text+"\n"+end)), nil
				})},
			})
			if err != nil {
				t.Fatal(err)
			}
			on := debug == "1" || debug == " Yes "
			_, _, err = read(t, client)
			if fails := on && unknown != ""; fails != (err != nil) || fails && !strings.Contains(err.Error(), "Unknown output") {
				t.Errorf("unknown %s, debug %q: %v", unknown, debug, err)
			}
		}
	}
}

// Each row: a body, the items that come before the error, and the error.
func TestStreamErrors(t *testing.T) {
	table := []struct {
		name   string
		status int
		body   string
		items  int
		want   error
	}{
		{"an error event", 200, stream(text + "\n" + `{"event_type":"error","error":{"code":"quota_hit","message":"Slow down."}}`), 1, &mmsp.UpstreamError{Code: "quota_hit", Message: "Slow down."}},
		{"an error without a type", 200, "data: {\"error\":{\"code\":503,\"message\":\"Busy.\",\"status\":\"UNAVAILABLE\"}}\n\n", 0, &mmsp.UpstreamError{Status: 503, Code: "503", ErrorType: "UNAVAILABLE", Message: "Busy."}},
		{"an error by its name", 200, "event: error\ndata: {\"message\":\"Busy.\"}\n\n", 0, &mmsp.UpstreamError{Message: "Busy."}},
		{"a failed interaction", 200, stream(text + "\n" + `{"event_type":"interaction.completed","interaction":{"status":"failed","error":{"code":"x","message":"No."},"usage":{}}}`), 1, &mmsp.UpstreamError{Code: "x", Message: "No."}},
		{"HTTP 400", 400, `{"error":{"code":400,"message":"Bad.","status":"INVALID_ARGUMENT"}}`, 0, &mmsp.UpstreamError{Status: 400, Code: "400", ErrorType: "INVALID_ARGUMENT", Message: "Bad."}},
		{"HTTP 429", 429, `[{"error":{"code":429,"message":"Slow.","status":"RESOURCE_EXHAUSTED"}}]`, 0, &mmsp.UpstreamError{Status: 429, Code: "429", ErrorType: "RESOURCE_EXHAUSTED", Message: "Slow."}},
		{"HTTP 502 with a page", 502, "<html>Bad gateway</html>", 0, &mmsp.UpstreamError{Status: 502}},
		{"an error document", 200, `{"error":{"code":400,"message":"Bad.","status":"INVALID_ARGUMENT"}}`, 0, &mmsp.UpstreamError{Status: 400, Code: "400", ErrorType: "INVALID_ARGUMENT", Message: "Bad."}},
		{"a failed whole answer", 200, `{"status":"failed","error":{"code":"x","message":"No."}}`, 0, &mmsp.UpstreamError{Code: "x", Message: "No."}},
		{"a page", 200, "<html><title>Sign in</title>", 0, &mmsp.UpstreamError{ErrorType: "unexpected_body"}},
		{"another document", 200, `{"candidates":[]}`, 0, &mmsp.UpstreamError{ErrorType: "unexpected_body"}},
		{"a list", 200, `[]`, 0, &mmsp.UpstreamError{ErrorType: "unexpected_body"}},
		{"an unreadable event", 200, stream(created) + "event: step.delta\ndata: {\"index\":\n\n" + "data: {}\n\n", 0, &mmsp.UpstreamError{ErrorType: "malformed_event"}},
		{"an unreadable picture", 200, stream(`{"index":0,"delta":{"type":"image","data":"*"},"event_type":"step.delta"}` + "\n" + end), 0, &mmsp.UpstreamError{ErrorType: "malformed_event"}},
		{"an empty body", 200, "", 0, &mmsp.IncompleteStreamError{}},
		{"no terminal event", 200, stream(text + "\n" + `event: done\ndata: [DONE]`), 1, &mmsp.IncompleteStreamError{}},
		{"a mark of the end without a name", 200, stream(text + "\n" + `data: [DONE]` + "\n" + end), 1, &mmsp.IncompleteStreamError{}},
		{"no usage", 200, stream(text + "\n" + `{"event_type":"interaction.completed","interaction":{"status":"completed"}}`), 1, &mmsp.IncompleteStreamError{}},
		{"a whole answer that is not finished", 200, `{"status":"in_progress","steps":[{"type":"model_output","content":[{"type":"text","text":"Yes"}]}]}`, 1, &mmsp.IncompleteStreamError{}},
		{"thinking alone", 200, stream(`{"index":0,"delta":{"type":"thought_signature","signature":"S1"},"event_type":"step.delta"}` + "\n" + end), 2, &mmsp.EmptyResponseError{}},
		{"nothing", 200, stream(end), 0, &mmsp.EmptyResponseError{}},
		{
			"a call cut by the token limit", 200,
			stream(`{"index":0,"step":{"type":"function_call","id":"c","name":"f"},"event_type":"step.start"}
				{"index":0,"delta":{"type":"arguments_delta","arguments":"{\"a\":"},"event_type":"step.delta"}
				{"event_type":"interaction.completed","interaction":{"status":"incomplete","usage":{}}}`), 2, &mmsp.ToolCallArgumentParseError{},
		},
		{"arguments of no call", 200, stream(`{"index":0,"delta":{"type":"arguments_delta","arguments":"{}"},"event_type":"step.delta"}` + "\n" + end), 0, &mmsp.StreamProtocolError{}},
		{
			"two signatures of one thought", 200,
			stream(`{"index":0,"delta":{"type":"thought_signature","signature":"S1"},"event_type":"step.delta"}
				{"index":0,"delta":{"type":"thought_signature","signature":"S2"},"event_type":"step.delta"}`), 1, &mmsp.StreamProtocolError{},
		},
	}
	for _, row := range table {
		t.Run(row.name, func(t *testing.T) {
			items, _, err := read(t, testClient(t, "m", serve(t, sends(row.status, row.body))))
			if len(items) != row.items {
				t.Errorf("%d items: %s", len(items), items)
			}
			if reflect.TypeOf(err) != reflect.TypeOf(row.want) {
				t.Fatalf("error %T %v, want %T", err, err, row.want)
			}
			switch got := err.(type) {
			case *mmsp.UpstreamError:
				want := row.want.(*mmsp.UpstreamError)
				if got.Status != want.Status || got.ErrorType != want.ErrorType || got.Code != want.Code || want.Message != "" && got.Message != want.Message || got.Client != class {
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

// A stream that is cut, cleanly or not, says so unless its terminal event came. What came before stands.
func TestStreamCut(t *testing.T) {
	all := frames(whole)
	want := lines(wholeItems)
	for cut := range len(all) + 1 {
		for _, broken := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d broken %v", cut, broken), func(t *testing.T) {
				items, _, err := read(t, testClient(t, "m", serve(t, func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.WriteString(w, strings.Join(all[:cut], ""))
					w.(http.Flusher).Flush()
					if broken {
						panic(http.ErrAbortHandler)
					}
				})))
				complete := cut >= len(all)-1
				var incomplete *mmsp.IncompleteStreamError
				if complete && err != nil || !complete && !errors.As(err, &incomplete) {
					t.Errorf("error %v", err)
				}
				if len(items) > len(want) || !slices.Equal(items, want[:len(items)]) || complete && len(items) < len(want) {
					t.Errorf("items %s", items)
				}
			})
		}
	}
}

// The same at every byte.
func TestStreamCutAnywhere(t *testing.T) {
	body := stream(whole)
	ends := strings.Index(body, "\n\nevent: done")
	for cut := range len(body) {
		_, _, err := read(t, testClient(t, "m", transport(func(*http.Request) (*http.Response, error) { return answer(200, body[:cut]), nil })))
		var incomplete *mmsp.IncompleteStreamError
		if cut < ends && !errors.As(err, &incomplete) || cut >= ends && err != nil {
			t.Fatalf("cut at %d of %d, after %q: error %v", cut, len(body), body[max(cut-40, 0):cut], err)
		}
	}
}

// The provider's connection is closed at once when the caller cancels, and when it leaves the loop, whatever it waits for.
func TestStreamAbort(t *testing.T) {
	const silent, talking, vectors, picture = "no answer yet", "between events", "vectors", "a picture is fetched"
	for _, moment := range []string{silent, talking, vectors, picture} {
		for _, leave := range []bool{false, true} {
			if leave && moment != talking {
				continue
			}
			t.Run(fmt.Sprintf("%s, leave %v", moment, leave), func(t *testing.T) {
				arrived, closed := make(chan struct{}, 1), make(chan time.Time, 1)
				handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					if moment == talking {
						_, _ = io.WriteString(w, stream(created+"\n"+text))
						w.(http.Flusher).Flush()
					}
					arrived <- struct{}{}
					<-r.Context().Done()
					closed <- time.Now()
				})
				message := mmsp.UserMessage(mmsp.Text("Hi"))
				model := "m"
				switch moment {
				case vectors:
					model = "gemini-embedding-2"
				case picture:
					server := httptest.NewServer(handler)
					defer server.Close()
					message = mmsp.UserMessage(mmsp.ImageURL(server.URL))
				}
				client := mmsp.NewClient(testClient(t, model, serve(t, handler)))
				reason := errors.New("the user pressed escape")
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				left := make(chan time.Time, 1)
				if moment != talking {
					go func() {
						<-arrived
						left <- time.Now()
						cancel(reason)
					}()
				}
				var err error
				for _, err = range client.StreamingResponse(ctx, []mmsp.Message{message}, nil) {
					if err != nil {
						break
					}
					left <- time.Now()
					if leave {
						break
					}
					cancel(reason)
				}
				if !leave && !errors.Is(err, reason) {
					t.Errorf("error %v", err)
				}
				select {
				case at := <-closed:
					if took := at.Sub(<-left); took > 100*time.Millisecond {
						t.Errorf("closed after %v", took)
					}
				case <-time.After(5 * time.Second):
					t.Fatal("the connection stays open")
				}
			})
		}
	}
}

// The public stream ends with the interaction, not with the connection.
func TestStreamDoesNotAwaitTheEndOfTheBody(t *testing.T) {
	release := make(chan struct{})
	client := testClient(t, "m", serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, stream(whole))
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

// What a stream brought goes back as it came, and the next turn begins with the same bytes.
func TestReplay(t *testing.T) {
	pictures := created + `
		{"index":0,"delta":{"type":"thought_summary","content":{"type":"image","data":"RDE=","mime_type":"image/png"}},"event_type":"step.delta"}
		{"index":0,"delta":{"type":"thought_summary","content":{"type":"image","data":"RDI=","mime_type":"image/png"}},"event_type":"step.delta"}
		{"index":0,"delta":{"type":"thought_signature","signature":"S1"},"event_type":"step.delta"}
		{"index":1,"delta":{"type":"image","data":"STE=","mime_type":"image/png"},"event_type":"step.delta"}
		{"index":1,"delta":{"type":"text","text":"There."},"event_type":"step.delta"}
		` + end
	for _, row := range []struct{ baseURL, stream, turn string }{
		{
			"", whole,
			`{"type":"thought","summary":[{"type":"text","text":"Hm, so."}],"signature":"S1"},{"type":"model_output","content":[{"type":"text","text":"Yes"}]},{"type":"function_call","name":"go","arguments":{"a":2},"id":"c1"}`,
		},
		{
			"", pictures,
			`{"type":"thought","summary":[{"type":"image","data":"RDE=","mime_type":"image/png"},{"type":"image","data":"RDI=","mime_type":"image/png"}],"signature":"S1"},` +
				`{"type":"model_output","content":[{"type":"image","data":"STE=","mime_type":"image/png"},{"type":"text","text":"There."}]}`,
		},
		{
			"https://gateway.test:8443", whole, // whose signatures Google would not know
			`{"type":"thought","signature":"skip_thought_signature_validator"},{"type":"thought","summary":[{"type":"text","text":"Hm, so."}]},` +
				`{"type":"model_output","content":[{"type":"text","text":"Yes"}]},{"type":"function_call","name":"go","arguments":{"a":2},"id":"c1"}`,
		},
	} {
		over := transport(func(*http.Request) (*http.Response, error) { return answer(200, stream(row.stream)), nil })
		client, err := New(mmsp.Options{Model: "m", APIKey: mmsp.NewSecret("test-key"), BaseURL: row.baseURL, HTTPClient: &http.Client{Transport: over}, Getenv: func(string) string { return "" }})
		if err != nil {
			t.Fatal(err)
		}
		history := []mmsp.Message{mmsp.UserMessage(mmsp.Text("Hi"))}
		reply, err := mmsp.Collect(mmsp.NewClient(client).StreamingResponse(t.Context(), history, nil))
		if err != nil {
			t.Fatal(err)
		}
		request, err := testClient(t, "m", nil).Prepare(t.Context(), append(history, reply), &mmsp.Config{})
		want := `{"model":"m","stream":true,"store":false,"input":` + strings.TrimSuffix(hi, "]") + "," + row.turn + `]}`
		if err != nil || string(request.Body) != want {
			t.Errorf("%v\n got %s\nwant %s", err, request.Body, want)
		}
	}
}

// Vectors come in the order of the messages.
func TestEmbedding(t *testing.T) {
	for _, row := range []struct{ body, items, stop string }{
		{
			`{"embeddings":[{"values":[0.5,-1e-3]},{}],"metadata":{"billableCharacterCount":7}}`,
			`{"type":"embedding.delta","embedding":[0.5,-0.001]}
			{"type":"embedding.done","embedding":[0.5,-0.001]}
			{"type":"embedding.delta","embedding":[]}
			{"type":"embedding.done","embedding":[]}`, "stop -/7/-/-",
		},
		{`{"embeddings":[{"values":[1]}]}`, `{"type":"embedding.delta","embedding":[1]}
			{"type":"embedding.done","embedding":[1]}`, "stop -/-/-/-"},
	} {
		var path string
		items, stop, err := read(t, testClient(t, "gemini-embedding-2", serve(t, func(w http.ResponseWriter, r *http.Request) {
			path = r.URL.Path + " " + r.Header.Get("X-Goog-Api-Key")
			_, _ = io.WriteString(w, row.body)
		})))
		if err != nil || stop != row.stop || !slices.Equal(items, lines(row.items)) || path != "/v1beta/models/gemini-embedding-2:batchEmbedContents test-key" {
			t.Errorf("%s %v %s\n%s", path, err, stop, strings.Join(items, "\n"))
		}
	}
	for _, row := range []struct {
		status int
		body   string
		want   error
	}{
		{404, `{"error":{"code":404,"message":"No model.","status":"NOT_FOUND"}}`, &mmsp.UpstreamError{}},
		{200, `{"error":{"code":404,"message":"No model.","status":"NOT_FOUND"}}`, &mmsp.UpstreamError{}},
		{200, `<html>`, &mmsp.UpstreamError{}},
		{200, `{"embeddings":[`, &mmsp.UpstreamError{}},
		{200, `{"embeddings":[]}`, &mmsp.EmptyResponseError{}},
	} {
		_, _, err := read(t, testClient(t, "gemini-embedding-2", serve(t, sends(row.status, row.body))))
		if reflect.TypeOf(err) != reflect.TypeOf(row.want) {
			t.Errorf("%s: %T %v", row.body, err, err)
		}
	}
	two := []mmsp.Message{mmsp.UserMessage(mmsp.Text("a")), mmsp.UserMessage(mmsp.Text("b"))}
	client := testClient(t, "gemini-embedding-2", serve(t, sends(200, `{"embeddings":[{"values":[1]}]}`)))
	if _, err := mmsp.Collect(mmsp.NewClient(client).StreamingResponse(t.Context(), two, nil)); err == nil || !strings.Contains(err.Error(), "1 vectors for 2 contents") {
		t.Errorf("too few vectors: %v", err)
	}
	_, _, err := read(t, testClient(t, "gemini-embedding-2", serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `{"embeddings":[`)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})))
	if incomplete := (*mmsp.IncompleteStreamError)(nil); !errors.As(err, &incomplete) {
		t.Errorf("a broken connection: %v", err)
	}
}

func TestListModels(t *testing.T) {
	pages := map[string]string{
		"":      `{"models":[{"name":"models/gemini-x"},{"displayName":"no name"},{"name":"publishers/google/models/gemini-y"}],"nextPageToken":"a&b+="}`,
		"a&b+=": `{"nextPageToken":"empty"}`,
		"empty": `{"models":[{"name":"gemini-z"}]}`,
	}
	var asked []string
	client, err := New(mmsp.Options{
		Model: "m", APIKey: mmsp.NewSecret("test-key"), BaseURL: "https://proxy.test/google/v1beta", DefaultHeaders: map[string]string{"X-App": "cli"},
		Getenv: func(string) string { return "" },
		HTTPClient: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
			asked = append(asked, r.Method+" "+r.URL.Host+r.URL.Path+" "+r.Header.Get("X-Goog-Api-Key")+" "+r.Header.Get("X-App"))
			return answer(200, pages[r.URL.Query().Get("pageToken")]), nil
		})},
	})
	if err != nil {
		t.Fatal(err)
	}
	ids, err := client.ListModels(t.Context())
	one := "GET proxy.test/google/v1beta/models test-key cli"
	if err != nil || !slices.Equal(ids, []string{"gemini-x", "gemini-y", "gemini-z"}) || !slices.Equal(asked, []string{one, one, one}) {
		t.Errorf("%q %v %q", ids, err, asked)
	}

	for body, status := range map[string]int{`{"error":{"code":401,"message":"No."}}`: 401, `<html>`: 200, `"test-key"`: 200, `{"error":{"message":"No."}}`: 200, `{"models":[{"name":"a"}],"nextPageToken":"again"}`: 200} {
		ids, err := testClient(t, "m", transport(func(*http.Request) (*http.Response, error) { return answer(status, body), nil })).ListModels(t.Context())
		if failure := (*mmsp.UpstreamError)(nil); !errors.As(err, &failure) || failure.Client != class || ids != nil || strings.Contains(failure.Message, "test-key") {
			t.Errorf("%s: %q %v", body, ids, err)
		}
	}
}

// The key and the endpoint come from the options or the environment, each by itself; the JSON of a service account is refused.
func TestNew(t *testing.T) {
	const document = "{\n  \"type\": \"service_account\",\n  \"private_key\": \"-----BEGIN canary\"\n}\n"
	for _, row := range []struct {
		key, baseURL string
		env          map[string]string
		url, sent    string
		err          string
	}{
		{"k", "", nil, "https://generativelanguage.googleapis.com/v1beta/interactions", "k", ""},
		{"k", "https://proxy.test/x/", nil, "https://proxy.test/x/v1beta/interactions", "k", ""},
		{"k", "https://proxy.test/v1beta", nil, "https://proxy.test/v1beta/interactions", "k", ""},
		{"", "", map[string]string{"GEMINI_API_KEY": "e"}, "https://generativelanguage.googleapis.com/v1beta/interactions", "e", ""},
		{"", "", map[string]string{"GEMINI_API_KEY": "e", "GEMINI_BASE_URL": "https://env.test"}, "https://env.test/v1beta/interactions", "e", ""},
		{"", "https://proxy.test", map[string]string{"GEMINI_API_KEY": "e", "GEMINI_BASE_URL": "https://env.test"}, "https://proxy.test/v1beta/interactions", "e", ""},
		{"k", "", map[string]string{"GEMINI_API_KEY": "e", "GEMINI_BASE_URL": "https://env.test"}, "https://env.test/v1beta/interactions", "k", ""},
		{"", "", map[string]string{"GOOGLE_API_KEY": "g"}, "", "", "GEMINI_API_KEY is required for GoogleOfficialClient."},
		{"", "https://proxy.test", nil, "", "", "GEMINI_API_KEY is required for GoogleOfficialClient."},
		{document, "", nil, "", "", "google-genai"},
		{"", "", map[string]string{"GEMINI_API_KEY": document}, "", "", "google-genai"},
		{"{canary", "", nil, "", "", "google-genai"},
		{"k", "ftp://x", nil, "", "", "http or https"},
	} {
		var sent string
		client, err := New(mmsp.Options{
			Model: "m", APIKey: mmsp.NewSecret(row.key), BaseURL: row.baseURL, Getenv: func(name string) string { return row.env[name] },
			HTTPClient: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
				sent = r.URL.String() + " " + strings.Join(r.Header["X-Goog-Api-Key"], ",") + r.Header.Get("Authorization")
				return answer(200, stream(whole)), nil
			})},
		})
		if row.err != "" {
			if err == nil || !strings.Contains(err.Error(), row.err) || strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), "service_account") {
				t.Errorf("%+v: %v", row, err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := read(t, client); err != nil || sent != row.url+" "+row.sent {
			t.Errorf("%v: sent to %s, want %s %s", err, sent, row.url, row.sent)
		}
	}
}

// A text delta costs the text and what the public stream makes of it, in every place of a long answer.
func TestTransformAllocations(t *testing.T) {
	lines := make([]string, 2000)
	for i := range lines {
		lines[i] = `{"index":1,"delta":{"text":"a few more words","type":"text"},"event_type":"step.delta"}`
	}
	body := stream(strings.Join(lines, "\n") + "\n" + end)
	client := testClient(t, "m", transport(func(*http.Request) (*http.Response, error) { return answer(200, body), nil }))
	request, err := client.Prepare(t.Context(), nil, &mmsp.Config{})
	if err != nil {
		t.Fatal(err)
	}
	more := 0 // events behind which another was buffered
	n := testing.AllocsPerRun(3, func() {
		more = 0
		for event, err := range client.Do(t.Context(), request) {
			if err != nil || event.More && event.Last {
				t.Fatal(err)
			}
			if event.More {
				more++
			}
		}
	})
	if more < len(lines)/2 {
		t.Errorf("%d of %d events tell that more is there", more, len(lines))
	}
	if perEvent := n / float64(len(lines)); perEvent > 1.2 {
		t.Errorf("%v allocations for each event", perEvent)
	}
}

// Whatever a provider sends, the public stream is legal or ends with an error.
func FuzzTransform(f *testing.F) {
	for _, lines := range []string{whole, text + "\n" + end, `data: {"error":{}}`, "<html>"} {
		f.Add([]byte(stream(lines)))
	}
	f.Add([]byte(`{"status":"completed","steps":[{"type":"function_call","id":"c","name":"f","arguments":{"a":1}}],"usage":{}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		_, _, _ = read(t, testClient(t, "m", transport(func(*http.Request) (*http.Response, error) { return answer(200, string(body)), nil })))
	})
}
