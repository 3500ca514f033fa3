package minimaxofficial

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/prism-shadow/mmsp-go"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const base = "https://minimax.test/v1"

// redirect sends every request to one server, whatever host it names.
type redirect struct {
	to   *url.URL
	base *http.Transport
}

func (r redirect) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.URL.Scheme, request.URL.Host = r.to.Scheme, r.to.Host
	return r.base.RoundTrip(request)
}

// newClient makes a client whose provider is the handler.
func newClient(t testing.TB, o mmsp.Options, provider http.HandlerFunc) *Client {
	server := httptest.NewServer(provider)
	transport := &http.Transport{}
	t.Cleanup(server.Close)
	t.Cleanup(transport.CloseIdleConnections)
	to, _ := url.Parse(server.URL)
	o.HTTPClient = &http.Client{Transport: redirect{to, transport}}
	o.HTTP.MaxRetries = new(0)
	if o.Model == "" {
		o.Model = "MiniMax-M3"
	}
	if o.APIKey.IsZero() {
		o.APIKey = mmsp.NewSecret("sk-test")
	}
	if o.BaseURL == "" {
		o.BaseURL = base
	}
	if o.Getenv == nil {
		o.Getenv = func(string) string { return "" }
	}
	client, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// answer writes a body; one that begins with a brace is a whole answer.
func answer(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, body)
	}
}

// events frames lines of JSON as server-sent events.
func events(lines string) string {
	var body strings.Builder
	for line := range strings.Lines(lines) {
		if line = strings.TrimSpace(line); line != "" {
			body.WriteString("data: " + line + "\n\n")
		}
	}
	return body.String()
}

var prompt = []mmsp.Message{mmsp.UserMessage(mmsp.Text("Ahoy."))}

func stream(c *Client) iter.Seq2[mmsp.Event, error] {
	return mmsp.NewClient(c).StreamingResponse(context.Background(), prompt, nil)
}

// transcript writes a public stream one line an event, and checks its grammar.
func transcript(t testing.TB, stream iter.Seq2[mmsp.Event, error]) []string {
	var lines []string
	var grammar mmsp.GrammarChecker
	for event, err := range stream {
		if err != nil {
			return append(lines, errorLine(err))
		}
		if err := grammar.Event(&event); err != nil {
			t.Error(err)
		}
		item := &event.Item
		var line string
		switch item.Type.Kind() {
		case "":
			line = "stop " + string(event.FinishReason) + usageText(event.Usage)
			if event.StopDetail != nil {
				line += " " + event.StopDetail.Kind
			}
		case "tool_call":
			line = strings.TrimRight(fmt.Sprintf("%s %s %s %s", item.Type, item.Name, item.ToolCallID, item.Arguments), " ")
		default:
			line = fmt.Sprintf("%s %q", item.Type, item.Text+item.Thinking)
		}
		if len(item.Fidelity) > 0 {
			line += " " + string(item.Fidelity)
		}
		lines = append(lines, line)
	}
	return lines
}

func usageText(u *mmsp.Usage) string {
	text := ""
	for _, n := range []*int64{u.CachedTokens, u.PromptTokens, u.ThoughtsTokens, u.ResponseTokens} {
		if n == nil {
			text += " null"
		} else {
			text += fmt.Sprint(" ", *n)
		}
	}
	return text
}

func errorLine(err error) string {
	var incomplete *mmsp.IncompleteStreamError
	var upstream *mmsp.UpstreamError
	var arguments *mmsp.ToolCallArgumentParseError
	var empty *mmsp.EmptyResponseError
	switch {
	case errors.As(err, &incomplete):
		return "IncompleteStreamError"
	case errors.As(err, &upstream):
		return fmt.Sprintf("UpstreamError %d %s %s %s", upstream.Status, upstream.ErrorType, upstream.Code, upstream.Message)
	case errors.As(err, &arguments):
		return "ToolCallArgumentParseError " + arguments.RawArguments + " " + string(arguments.FinishReason)
	case errors.As(err, &empty):
		return "EmptyResponseError " + string(empty.FinishReason)
	}
	return err.Error()
}

func compare(t *testing.T, got, want []string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

const (
	completed = `{"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":120,"output_tokens":50,"input_tokens_details":{"cached_tokens":20},"output_tokens_details":{"reasoning_tokens":30}}}}`
	usage     = " 20 100 30 20"
)

// turnStream is a turn: reasoning, a text and two calls, everything said up to three times, and the fragments of the
// first call are not what it is.
const turnStream = `
{"type":"response.created","response":{"status":"in_progress","output":[]}}
{"type":"response.in_progress","response":{"status":"in_progress","output":[]}}
{"type":"response.output_item.added","item":{"type":"reasoning","id":"r1","status":"in_progress","content":[],"summary":[]},"output_index":0}
{"type":"response.content_part.added","content_index":0,"item_id":"r1","output_index":0,"part":{"type":"reasoning_text","text":""}}
{"type":"response.reasoning_text.delta","content_index":0,"item_id":"r1","output_index":0,"delta":"Which"}
{"type":"response.reasoning_text.delta","content_index":0,"item_id":"r1","output_index":0,"delta":" pump?"}
{"type":"response.reasoning_text.done","content_index":0,"item_id":"r1","output_index":0,"text":"Which pump?"}
{"type":"response.content_part.done","content_index":0,"item_id":"r1","output_index":0,"part":{"type":"reasoning_text","text":"Which pump?"}}
{"type":"response.output_item.done","item":{"type":"reasoning","id":"r1","status":"completed","content":[{"type":"reasoning_text","text":"Which pump?"}],"summary":[],"encrypted_content":"resp-0"},"output_index":0}
{"type":"response.output_item.added","item":{"type":"message","id":"m1","content":[],"phase":"commentary","role":"assistant"},"output_index":1}
{"type":"response.content_part.added","content_index":0,"item_id":"m1","output_index":1,"part":{"type":"output_text","text":""}}
{"type":"response.output_text.delta","content_index":0,"item_id":"m1","output_index":1,"delta":"Both, "}
{"type":"response.output_text.delta","content_index":0,"item_id":"m1","output_index":1,"delta":"then."}
{"type":"response.output_text.done","content_index":0,"item_id":"m1","output_index":1,"text":"Both, then."}
{"type":"response.content_part.done","content_index":0,"item_id":"m1","output_index":1,"part":{"type":"output_text","text":"Both, then."}}
{"type":"response.output_item.done","item":{"type":"message","id":"m1","content":[{"type":"output_text","text":"Both, then."}],"phase":"commentary","role":"assistant"},"output_index":1}
{"type":"response.output_item.added","item":{"type":"function_call","id":"f1","arguments":"","call_id":"c1","name":"run_pump"},"output_index":2}
{"type":"response.function_call_arguments.delta","item_id":"f1","output_index":2,"delta":"{\"speed\":"}
{"type":"response.function_call_arguments.delta","item_id":"f1","output_index":2,"delta":"oops"}
{"type":"response.output_item.added","item":{"type":"function_call","id":"f2","arguments":"","call_id":"c2","name":"stop_pump"},"output_index":3}
{"type":"response.function_call_arguments.delta","item_id":"f2","output_index":3,"delta":"{\"now\": true}"}
{"type":"response.function_call_arguments.done","item_id":"f1","output_index":2,"arguments":"{\"speed\":1}"}
{"type":"response.output_item.done","item":{"type":"function_call","id":"f1","arguments":"{\"speed\":9007199254740993}","call_id":"c1","name":"run_pump"},"output_index":2}
{"type":"response.function_call_arguments.done","item_id":"f2","output_index":3,"arguments":"{\"now\": true}"}
{"type":"response.output_item.done","item":{"type":"function_call","id":"f2","arguments":"{\"now\": true}","call_id":"c2","name":"stop_pump"},"output_index":3}
` + completed

// turnReplay is the input that the turn becomes.
const turnReplay = `{"type":"reasoning","content":[{"type":"reasoning_text","text":"Which pump?"}]},` +
	`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Both, then."}]},` +
	`{"type":"function_call","call_id":"c1","name":"run_pump","arguments":"{\"speed\":9007199254740993}"},` +
	`{"type":"function_call","call_id":"c2","name":"stop_pump","arguments":"{\"now\": true}"}`

// callWithoutIDs is one call whose items and events carry no ids; %s are the arguments of the finished item.
const callWithoutIDs = `
{"type":"response.output_item.added","item":{"type":"function_call","name":"run_pump","call_id":"c7","id":null}}
{"type":"response.function_call_arguments.delta","item_id":null,"delta":"{\"spe"}
{"type":"response.function_call_arguments.done","item_id":null}
{"type":"response.output_item.done","item":{"type":"function_call","name":"run_pump","call_id":"c7","id":null,"arguments":%s,"status":"completed"}}
` + completed

const wholeAnswer = `{"id":"resp_1","object":"response","status":"completed","output":[
{"type":"reasoning","id":"r1","content":[{"type":"reasoning_text","text":"Look "},{"type":"reasoning_text","text":"up."}],"summary":[],"encrypted_content":"E"},
{"type":"web_search_call","id":"ws_1"},
{"type":"message","id":"m1","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"Let me see."}]},
{"type":"function_call","id":"f1","call_id":"c1","name":"tide_at","arguments":"{\"port\":\"Sète\"}"}],
"usage":{"input_tokens":3,"output_tokens":2}}`

var wholeTranscript = []string{
	`thinking.delta "Look "`, `thinking.delta "up."`, `thinking.done "Look up."`, `text.delta "Let me see."`, `text.done "Let me see."`,
	`tool_call.delta tide_at c1 {"port":"Sète"}`, `tool_call.done tide_at c1 {"port":"Sète"}`, `stop tool_call 0 3 0 2`,
}

const textA = `{"type":"response.output_text.delta","item_id":"m","delta":"a"}` + "\n"

func TestStreams(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       []string
	}{
		{"a turn", events(turnStream), []string{
			`thinking.delta "Which"`, `thinking.delta " pump?"`, `thinking.done "Which pump?"`,
			`text.delta "Both, "`, `text.delta "then."`, `text.done "Both, then."`,
			`tool_call.delta run_pump c1 {"speed":9007199254740993}`, `tool_call.done run_pump c1 {"speed":9007199254740993}`,
			`tool_call.delta stop_pump c2 {"now": true}`, `tool_call.done stop_pump c2 {"now": true}`, `stop tool_call` + usage,
		}},
		{"two messages", events(`
			{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m1","phase":"commentary"}}
			{"type":"response.output_text.delta","item_id":"m1","output_index":0,"content_index":0,"delta":"a"}
			{"type":"response.output_item.added","output_index":1,"item":{"type":"message","id":"m2","phase":"final_answer"}}
			{"type":"response.output_text.delta","item_id":"m2","output_index":1,"content_index":0,"delta":"b"}
			` + completed), []string{`text.delta "a"`, `text.done "a"`, `text.delta "b"`, `text.done "b"`, `stop stop` + usage}},
		{"two messages whose deltas have no ids", events(`
			{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m1"}}
			{"type":"response.output_text.delta","delta":"a"}
			{"type":"response.output_item.added","output_index":1,"item":{"type":"message","id":"m2"}}
			{"type":"response.output_text.delta","delta":"b"}
			` + completed), []string{`text.delta "a"`, `text.done "a"`, `text.delta "b"`, `text.done "b"`, `stop stop` + usage}},
		{"a closing event that comes late", events(`
			{"type":"response.reasoning_text.delta","output_index":0,"item_id":"r","content_index":0,"delta":"Hm."}
			{"type":"response.output_text.delta","output_index":1,"item_id":"m","content_index":0,"delta":"a"}
			{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"r","content":[{"type":"reasoning_text","text":"Hm."}]}}
			{"type":"response.output_text.delta","output_index":1,"item_id":"m","content_index":0,"delta":"b"}
			` + completed), []string{`thinking.delta "Hm."`, `thinking.done "Hm."`, `text.delta "a"`, `text.delta "b"`, `text.done "ab"`, `stop stop` + usage}},
		{"deltas without ids", events(`
			{"type":"response.reasoning_text.delta","delta":"Hm."}
			{"type":"response.output_text.delta","delta":"4"}
			{"type":"response.output_text.delta","delta":"2"}
			` + completed), []string{`thinking.delta "Hm."`, `thinking.done "Hm."`, `text.delta "4"`, `text.delta "2"`, `text.done "42"`, `stop stop` + usage}},
		{"a summary is none of its events", events(`
			{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"r"}}
			{"type":"response.reasoning_summary_part.added","output_index":0,"item_id":"r"}
			{"type":"response.reasoning_summary_text.delta","output_index":0,"item_id":"r","delta":"Hm."}
			{"type":"response.reasoning_summary_text.done","output_index":0,"item_id":"r","text":"Hm."}
			{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":"Hm."}],"content":[]}}
			` + textA + completed), []string{`text.delta "a"`, `text.done "a"`, `stop stop` + usage}},
		{"calls open at once, and finished in another order", events(`
			{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"f1","name":"a","call_id":"c1"}}
			{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","id":"f2","name":"b","call_id":"c2"}}
			{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","id":"f2","name":"b","call_id":"c2","arguments":"{\"y\":2}"}}
			{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"f1","name":"a","call_id":"c1","arguments":"{\"x\":1}"}}
			` + completed), []string{
			`tool_call.delta b c2 {"y":2}`, `tool_call.done b c2 {"y":2}`, `tool_call.delta a c1 {"x":1}`, `tool_call.done a c1 {"x":1}`, `stop tool_call` + usage,
		}},
		{"two calls without ids", events(`
			{"type":"response.output_item.done","item":{"type":"function_call","name":"a","call_id":"c1","arguments":"{}"}}
			{"type":"response.output_item.done","item":{"type":"function_call","name":"a","call_id":"c2","arguments":"{}"}}
			` + completed), []string{
			`tool_call.delta a c1 {}`, `tool_call.done a c1 {}`, `tool_call.delta a c2 {}`, `tool_call.done a c2 {}`, `stop tool_call` + usage,
		}},
		{"a call told twice", events(`
			{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"f1","name":"a","call_id":"c1","arguments":"{}"}}
			{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"f1","name":"a","call_id":"c1","arguments":"{}"}}
			` + completed), []string{`tool_call.delta a c1 {}`, `tool_call.done a c1 {}`, `stop tool_call` + usage}},
		{"a call that only the terminal event finishes", events(`
			{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m1"}}
			{"type":"response.output_text.delta","output_index":0,"item_id":"m1","delta":"a"}
			{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","id":"f1","name":"a","call_id":"c1"}}
			{"type":"response.function_call_arguments.delta","output_index":1,"item_id":"f1","delta":"{\"z"}
			{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","id":"m1","content":[{"type":"output_text","text":"a"}]},{"type":"function_call","id":"f1","name":"a","call_id":"c1","arguments":"{\"x\":1}"}],"usage":{"input_tokens":1,"output_tokens":2}}}
			`), []string{`text.delta "a"`, `text.done "a"`, `tool_call.delta a c1 {"x":1}`, `tool_call.done a c1 {"x":1}`, `stop tool_call 0 1 0 2`}},
		{"a call that nothing finishes", events(textA + `
			{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","id":"f1","name":"a","call_id":"c1"}}
			{"type":"response.function_call_arguments.done","output_index":1,"item_id":"f1","arguments":"{}"}
			` + completed), []string{`text.delta "a"`, `text.done "a"`, `stop stop` + usage}},
		{"a call without ids", events(fmt.Sprintf(callWithoutIDs, `"{\"speed\":2}"`)), []string{
			`tool_call.delta run_pump c7 {"speed":2}`, `tool_call.done run_pump c7 {"speed":2}`, `stop tool_call` + usage,
		}},
		{"a call without arguments", events(fmt.Sprintf(callWithoutIDs, "null")), []string{
			`tool_call.delta run_pump c7`, `tool_call.done run_pump c7 {}`, `stop tool_call` + usage,
		}},
		{"arguments that are cut", events(fmt.Sprintf(callWithoutIDs, `"{\"speed\":"`)), []string{
			`tool_call.delta run_pump c7 {"speed":`, `ToolCallArgumentParseError {"speed": tool_call`,
		}},
		{"arguments that are no object", events(fmt.Sprintf(callWithoutIDs, `"[]"`)), []string{
			`tool_call.delta run_pump c7 []`, `ToolCallArgumentParseError [] tool_call`,
		}},
		{"a finished call without a name", events(`
			{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"f1","name":"","call_id":"c1","arguments":"{}"}}
			` + completed), []string{`MiniMaxOfficialClient broke the streaming protocol: the first delta of a tool call has no name or no id (name "", id "c1")`}},
		{"a turn on output_item.done alone", events(`
			{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"r","content":[{"type":"reasoning_text","text":"Hm."}]}}
			{"type":"response.output_item.done","output_index":1,"item":{"type":"message","id":"m","content":[{"type":"output_text","text":"one"}]}}
			{"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","id":"f1","name":"a","call_id":"c1","arguments":"{\"x\":1}"}}
			` + completed), []string{
			`thinking.delta "Hm."`, `thinking.done "Hm."`, `text.delta "one"`, `text.done "one"`,
			`tool_call.delta a c1 {"x":1}`, `tool_call.done a c1 {"x":1}`, `stop tool_call` + usage,
		}},
		{"the output on the terminal event alone", events(`
			{"type":"response.created","response":{"status":"in_progress"}}
			{"type":"response.completed","response":` + strings.ReplaceAll(wholeAnswer, "\n", "") + `}`), wholeTranscript},
		{"a whole answer", wholeAnswer, wholeTranscript},
		{"a whole answer that is queued", `{"object":"response","status":"queued","output":[]}`, []string{"IncompleteStreamError"}},
		{
			"a whole answer that failed", `{"object":"response","status":"failed","output":[],"error":{"code":"server_error","message":"Down."}}`,
			[]string{"UpstreamError 0  server_error Down."},
		},
		{
			"an error instead of a stream", `{"error":{"type":"invalid_request_error","code":"bad","message":"No."}}`,
			[]string{"UpstreamError 0 invalid_request_error bad No."},
		},
		{"a page instead of a stream", "<html>Sign in</html>", []string{
			`UpstreamError 0 unexpected_body  the provider answered with something else than a stream: "Sign in"`,
		}},
		{"heartbeats and foreign frames", ": hello\n\ndata:\n\n" + events(`
			{"type":"keepalive"}
			{"type":"response.output_text.delta","item_id":"m","delta":"a"}
			{"type":"ping","cost":0.1}
			{"type":"relay_frame","payload":{"delta":"x"}}
			{"type":"keepalive"}
			{"type":"response.output_text.delta","item_id":"m","delta":"b"}
			{"type":"heartbeat"}
			`+completed+`
			{"type":"keepalive"}
			[DONE]`), []string{`text.delta "a"`, `text.delta "b"`, `text.done "ab"`, `stop stop` + usage}},
		{"refusal", events(`
			{"type":"response.refusal.delta","item_id":"m","content_index":0,"output_index":0,"delta":"I "}
			{"type":"response.refusal.delta","item_id":"m","content_index":0,"output_index":0,"delta":"cannot."}
			{"type":"response.refusal.done","item_id":"m","content_index":0,"output_index":0,"refusal":"I cannot."}
			` + completed), []string{
			`text.delta "I " {"refusal":true}`, `text.delta "cannot."`, `text.done "I cannot." {"refusal":true}`, `stop unknown` + usage + ` refusal`,
		}},
		{
			"token limit", events(textA + `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"usage":{"input_tokens":1,"output_tokens":2}}}`),
			[]string{`text.delta "a"`, `text.done "a"`, `stop length 0 1 0 2`},
		},
		{
			"incomplete without a reason", events(textA + `{"type":"response.incomplete","response":{"status":"incomplete","usage":{"input_tokens":1,"output_tokens":2}}}`),
			[]string{`text.delta "a"`, `text.done "a"`, `stop length 0 1 0 2`},
		},
		{ // no part of it is known to be right
			"a call cut by the token limit", events(`
			{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"f1","name":"a","call_id":"c1"}}
			{"type":"response.function_call_arguments.delta","output_index":0,"item_id":"f1","delta":"{\"x"}
			{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":null,"usage":{"input_tokens":1,"output_tokens":2}}}`),
			[]string{`EmptyResponseError length`},
		},
		{
			"a finished call cut by the token limit", events(`
			{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"f1","name":"a","call_id":"c1","arguments":"{\"x"}}
			{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":null,"usage":{"input_tokens":1,"output_tokens":2}}}`),
			[]string{`tool_call.delta a c1 {"x`, `ToolCallArgumentParseError {"x length`},
		},
		{
			"content filter", events(textA + `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"content_filter"},"usage":{"input_tokens":1,"output_tokens":2}}}`),
			[]string{`text.delta "a"`, `text.done "a"`, `stop unknown 0 1 0 2 filter`},
		},
		{
			"another reason", events(textA + `{"type":"response.incomplete","response":{"status":"incomplete","incomplete_details":{"reason":"weather"},"usage":{"input_tokens":1,"output_tokens":2}}}`),
			[]string{`text.delta "a"`, `text.done "a"`, `stop length 0 1 0 2`},
		},
		{"thinking alone", events(`
			{"type":"response.reasoning_text.delta","item_id":"r","delta":"Hm."}
			` + completed), []string{`thinking.delta "Hm."`, `thinking.done "Hm."`, `EmptyResponseError stop`}},
		{"nothing, and the token limit", events(`{"type":"response.incomplete","response":{"status":"incomplete","usage":{"input_tokens":1,"output_tokens":2}}}`), []string{`EmptyResponseError length`}},
		{
			"usage details that are null", events(textA + `{"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":7,"output_tokens":5,"input_tokens_details":null,"output_tokens_details":{"reasoning_tokens":null}}}}`),
			[]string{`text.delta "a"`, `text.done "a"`, `stop stop 0 7 0 5`},
		},
		{
			"details that are no part of the sum", events(textA + `{"type":"response.completed","response":{"usage":{"input_tokens":7,"output_tokens":5,"input_tokens_details":{"cached_tokens":8},"output_tokens_details":{"reasoning_tokens":6}}}}`),
			[]string{`text.delta "a"`, `text.done "a"`, `stop stop 8 7 6 5`},
		},
		{
			"no usage", events(textA + `{"type":"response.completed","response":{"status":"completed","usage":null}}`),
			[]string{`text.delta "a"`, `text.done "a"`, `stop stop null null null null`},
		},
		{
			"error and response.failed", events(textA + `
			{"type":"error","error":{"type":"tokens","code":"rate_limit_exceeded","message":"Slow down.","param":null}}
			{"type":"response.failed","response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"Slow down."}}}`),
			[]string{`text.delta "a"`, `UpstreamError 0 tokens rate_limit_exceeded Slow down.`},
		},
		{
			"response.failed alone", events(`{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"Down."},"output":[]}}`),
			[]string{`UpstreamError 0  server_error Down.`},
		},
		{"a gateway's error", events(`{"error":{"code":502,"message":"Bad gateway."}}`), []string{`UpstreamError 502  502 Bad gateway.`}},
		{"an event that is no JSON", "data: oops\n\n", []string{
			`UpstreamError 0 malformed_event  event 1 from the provider is not readable as JSON (not a value at byte 0): "oops"`,
		}},
		{"an empty body", "", []string{"IncompleteStreamError"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			compare(t, transcript(t, stream(newClient(t, mmsp.Options{}, answer(c.body)))), c.want)
		})
	}
}

// A stream that is cut anywhere before its terminal event has no stop, and what came before the cut stands.
func TestTruncation(t *testing.T) {
	body := events(turnStream)
	end := strings.LastIndex(strings.TrimSpace(body), "\n\n")
	cut := len(body)
	client := newClient(t, mmsp.Options{}, func(w http.ResponseWriter, r *http.Request) { answer(body[:cut])(w, r) })
	whole := strings.Join(transcript(t, stream(client)), "\n")
	cuts := []int{}
	for at := 0; at <= end+2; at += 41 {
		cuts = append(cuts, at)
	}
	for at := range end + 2 { // after every event
		if body[at:at+2] == "\n\n" {
			cuts = append(cuts, at+2)
		}
	}
	for _, cut = range cuts {
		lines := transcript(t, stream(client))
		last := len(lines) - 1
		if lines[last] != "IncompleteStreamError" || !strings.HasPrefix(whole, strings.Join(lines[:last], "\n")) {
			t.Fatalf("cut after %d bytes: %q", cut, lines)
		}
	}
}

func TestMore(t *testing.T) {
	var more []bool
	for event, err := range stream(newClient(t, mmsp.Options{}, answer(events(turnStream)))) {
		if err != nil {
			t.Fatal(err)
		}
		more = append(more, event.More)
	}
	if len(more) < 3 || !more[0] || !more[1] || more[len(more)-1] {
		t.Errorf("%v", more)
	}
}

// Events that the client does not know raise in debug mode, and only there.
func TestDebug(t *testing.T) {
	for event, known := range map[string]bool{
		`{"type":"keepalive"}`: true, `{"type":"response.created"}`: true, `{"type":"response.in_progress"}`: true, `{"type":"response.content_part.added"}`: true,
		`{"type":"response.content_part.done"}`: true, `{"type":"response.output_text.done"}`: true, `{"type":"response.reasoning_text.done"}`: true,
		`{"type":"response.function_call_arguments.done"}`: true, `{"type":"response.function_call_arguments.delta"}`: true, `{"type":"response.output_item.done","item":{"type":"web_search_call"}}`: true,
		`{"type":"response.output_item.added","item":{"type":"web_search_call"}}`: true,
		`{"type":"response.mystery"}`: false, `{"type":"response.reasoning_summary_text.delta","delta":"x"}`: false, `{"type":"response.reasoning_summary_text.done"}`: false,
		`{"type":"response.reasoning_summary_part.added"}`: false, `{"type":"response.reasoning_summary_part.done"}`: false, `{"type":"ping"}`: false, `{"cost":1}`: false,
	} {
		for value, on := range map[string]bool{"": false, " 0 ": false, "False": false, "NO": false, "off": false, "1": true, "yes": true} {
			client := newClient(t, mmsp.Options{Getenv: func(name string) string {
				return map[string]string{"MMSP_DEBUG": value}[name]
			}}, answer(events(textA+event+"\n"+completed)))
			lines := transcript(t, stream(client))
			last := lines[len(lines)-1]
			if raises := on && !known; strings.HasPrefix(last, "Unknown output") != raises || strings.HasPrefix(last, "stop stop") == raises {
				t.Errorf("%s in %q: %s", event, value, last)
			}
		}
	}
}

// What a stream recorded goes back in the next request.
func TestReplay(t *testing.T) {
	client := newClient(t, mmsp.Options{}, answer(events(turnStream)))
	message, err := mmsp.Collect(stream(client))
	if err != nil {
		t.Fatal(err)
	}
	request, err := client.Prepare(context.Background(), []mmsp.Message{message}, &mmsp.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, input, _ := strings.Cut(string(request.Body), `"input":`); input != "["+turnReplay+"]}" {
		t.Errorf("got  %s\nwant %s", input, turnReplay)
	}
}

func TestRequestsCarryTheCredential(t *testing.T) {
	var seen []string
	client := newClient(t, mmsp.Options{
		APIKey: mmsp.NewSecret("sk-secret"), BaseURL: base + "/", DefaultHeaders: map[string]string{"X-Team": "pilots", "Authorization": "Bearer other"},
	}, func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, fmt.Sprint(r.Method, " ", r.URL.Path, " ", r.Header["Authorization"], " ", r.Header.Get("X-Team")))
		if r.URL.Path == "/v1/models" {
			_, _ = io.WriteString(w, `{"data":[{"id":"MiniMax-M3"},{"id":"other"}]}`)
			return
		}
		answer(events(turnStream))(w, r)
	})
	transcript(t, stream(client))
	models, err := mmsp.NewClient(client).ListModels(context.Background())
	if err != nil || fmt.Sprint(models) != "[MiniMax-M3 other]" {
		t.Errorf("%v %v", models, err)
	}
	compare(t, seen, []string{"POST /v1/responses [Bearer sk-secret] pilots", "GET /v1/models [Bearer sk-secret] pilots"})
}

func TestNew(t *testing.T) {
	environment := func(names ...string) func(string) string {
		return func(name string) string {
			for _, n := range names {
				if n == name {
					return map[string]string{
						"MINIMAX_API_KEY": "sk-env", "MINIMAX_BASE_URL": "https://env.example/v1", "OPENAI_API_KEY": "sk-openai", "OPENAI_BASE_URL": "https://openai.example",
					}[name]
				}
			}
			return ""
		}
	}
	for _, c := range []struct {
		options mmsp.Options
		want    string // key and URL, or what the error says
	}{
		{mmsp.Options{Getenv: environment("MINIMAX_API_KEY")}, "sk-env https://api.minimax.io/v1"},
		{mmsp.Options{Getenv: environment("MINIMAX_API_KEY", "MINIMAX_BASE_URL")}, "sk-env https://env.example/v1"},
		{mmsp.Options{APIKey: mmsp.NewSecret("sk-arg"), Getenv: environment("MINIMAX_API_KEY", "MINIMAX_BASE_URL")}, "sk-arg https://env.example/v1"},
		{mmsp.Options{BaseURL: "https://elsewhere.example/", Getenv: environment("MINIMAX_API_KEY", "MINIMAX_BASE_URL")}, "sk-env https://elsewhere.example"},
		{mmsp.Options{Getenv: environment("OPENAI_API_KEY", "OPENAI_BASE_URL")}, "MINIMAX_API_KEY is required for MiniMaxOfficialClient."},
		{mmsp.Options{BaseURL: "https://elsewhere.example", Getenv: environment()}, "MINIMAX_API_KEY is required for MiniMaxOfficialClient."},
	} {
		client, err := New(c.options)
		got := fmt.Sprint(err)
		if err == nil {
			got = client.key.Reveal() + " " + client.baseURL
		}
		if got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

func TestHTTPErrors(t *testing.T) {
	client := newClient(t, mmsp.Options{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.Header().Set("X-Request-Id", "req_1")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"error":{"type":"requests","code":"rate_limit_exceeded","message":"Slow down.","param":null}}`)
	})
	for _, err := range stream(client) {
		var upstream *mmsp.UpstreamError
		if !errors.As(err, &upstream) || upstream.Client != class || upstream.Status != 429 || upstream.Code != "rate_limit_exceeded" ||
			upstream.RetryAfter != 7*time.Second || upstream.RequestID != "req_1" || upstream.Message != "Slow down." {
			t.Errorf("%#v", err)
		}
	}
	if _, err := client.ListModels(context.Background()); err == nil {
		t.Error("the list of models hides the error")
	}
}

// The provider's connection ends when the consumer does not want the rest.
func TestAbort(t *testing.T) {
	closed := make(chan time.Time, 1)
	client := newClient(t, mmsp.Options{}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, events(textA))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		closed <- time.Now()
	})
	for _, leave := range []bool{true, false} {
		took := time.Hour
		for range 3 { // a busy machine may be late once
			ctx, cancel := context.WithCancelCause(context.Background())
			var left time.Time
			var end error
			for event, err := range mmsp.NewClient(client).StreamingResponse(ctx, prompt, nil) {
				if end = err; err != nil {
					break
				}
				if event.Item.Type == mmsp.TextDelta {
					left = time.Now()
					if leave {
						break
					}
					cancel(errors.New("enough"))
				}
			}
			took = min(took, (<-closed).Sub(left))
			cancel(nil)
			if !leave && (end == nil || end.Error() != "enough") {
				t.Errorf("the stream ends with %v", end)
			}
			if took < 100*time.Millisecond {
				break
			}
		}
		if took > 100*time.Millisecond {
			t.Errorf("closed after %v", took)
		}
	}
}

// body answers every request with the same bytes, without a network.
type body []byte

func (b body) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(string(b)))}, nil
}

// FuzzTransform: whatever a provider sends, the public stream is legal up to its end or its error.
func FuzzTransform(f *testing.F) {
	f.Add([]byte(events(turnStream)))
	f.Add([]byte(events(fmt.Sprintf(callWithoutIDs, `"{}"`))))
	f.Add([]byte(wholeAnswer))
	f.Fuzz(func(t *testing.T, data []byte) {
		client, err := New(mmsp.Options{
			Model: "MiniMax-M3", APIKey: mmsp.NewSecret("k"), HTTPClient: &http.Client{Transport: body(data)}, HTTP: mmsp.HTTPOptions{MaxRetries: new(0)},
			Getenv: func(string) string { return "" },
		})
		if err != nil {
			t.Fatal(err)
		}
		transcript(t, stream(client))
	})
}
