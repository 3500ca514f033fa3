package messages

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/ingress"
	"github.com/prism-shadow/mmsp-go/internal/carry"
	"github.com/prism-shadow/mmsp-go/wire/anthropic"
)

// answering returns a call whose answer is to be written.
func answering(t testing.TB, peer carry.Peer, fields string) *call {
	t.Helper()
	c, err := parse("/v1/messages", `{"model":"demo-1","max_tokens":4096,"stream":true,"messages":[{"role":"user","content":"a"}]`+fields+`}`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Read(t.Context(), &ingress.Env{Peer: peer}); err != nil {
		t.Fatal(err)
	}
	c.id = "msg_1"
	return c
}

// item is one of an answer and the deltas that it streams in; with none it comes whole.
type item struct {
	done   mmsp.Item
	deltas []mmsp.Item
}

func with(i mmsp.Item, fidelity string) mmsp.Item {
	i.Fidelity = mmsp.Fidelity(fidelity)
	return i
}

// answer is a message of items that ends as it holds calls.
func answer(items []item, finish mmsp.FinishReason, detail *mmsp.StopDetail) *mmsp.Message {
	m := &mmsp.Message{Role: mmsp.RoleAssistant, FinishReason: finish, StopDetail: detail}
	for _, i := range items {
		m.ContentItems = append(m.ContentItems, i.done)
	}
	return m
}

func write(c *call, items []item, answer *mmsp.Message) (stream []byte) {
	for _, i := range items {
		for _, d := range i.deltas {
			stream = c.Event(stream, &mmsp.Event{Type: mmsp.EventDelta, Item: d})
		}
		if !i.done.Type.IsDelta() { // else it was cut
			stream = c.Event(stream, &mmsp.Event{Type: mmsp.EventDelta, Item: i.done})
		}
	}
	return c.Stop(stream, answer)
}

// short returns the data of a stream's events, without what tests need not repeat, and checks its framing.
func short(t testing.TB, stream []byte) string {
	t.Helper()
	var lines []string
	rest := string(stream)
	for rest != "" {
		event, after, ok := strings.Cut(rest, "\n\n")
		rest = after
		name, data, both := strings.Cut(event, "\n")
		var typed struct{ Type string }
		if data = strings.TrimPrefix(data, "data: "); !ok || !both || json.Unmarshal([]byte(data), &typed) != nil || name != "event: "+typed.Type {
			t.Fatalf("not an event: %q", event)
		}
		data = strings.ReplaceAll(data, `"type":"`+typed.Type+`",`, "")
		data = strings.ReplaceAll(data, `,"caller":{"type":"direct"}`, "")
		data = regexp.MustCompile(`mmsp1\.[A-Za-z0-9_-]+`).ReplaceAllStringFunc(data, func(sealed string) string {
			e, ok := carry.Open(sealed)
			if !ok {
				t.Fatal("a broken envelope")
			}
			owner := ""
			if e.Owner != nil {
				owner = map[bool]string{true: "<", false: ">"}[e.Owner.Previous] + e.Owner.ToolCallID
			}
			return strings.ReplaceAll(fmt.Sprintf("(%s %s%s)", e.Kind, e.Fidelity, owner), `"`, `'`)
		})
		lines = append(lines, strings.TrimPrefix(strings.TrimPrefix(typed.Type, "content_"), "message_")+" "+data)
	}
	return strings.Join(lines, "\n")
}

const started = `start {"message":{"id":"msg_1","type":"message","role":"assistant","model":"demo-1","content":[],"stop_reason":null,"stop_sequence":null,"stop_details":null,"container":null,"diagnostics":null,` +
	`"usage":{"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0,"output_tokens_details":null,"server_tool_use":null,"cache_creation":null,"service_tier":null,"inference_geo":null,"speed":null}}}` + "\n"

// ended is how a stream of which no usage is known ends.
func ended(reason string) string {
	return `delta {"delta":{"stop_reason":"` + reason + `","stop_sequence":null,"stop_details":null,"container":null},` +
		`"usage":{"input_tokens":0,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":0,"output_tokens_details":null,"server_tool_use":null}}` + "\nstop {\"type\":\"message_stop\"}"
}

func TestStream(t *testing.T) {
	textDelta := func(text string) mmsp.Item { return mmsp.Item{Type: mmsp.TextDelta, Text: text} }
	thinkingDelta := func(text string) mmsp.Item { return mmsp.Item{Type: mmsp.ThinkingDelta, Thinking: text} }
	callDelta := func(id, name, arguments string) mmsp.Item {
		return mmsp.Item{Type: mmsp.ToolCallDelta, ToolCallID: id, Name: name, Arguments: arguments}
	}
	for _, test := range []struct {
		name   string
		peer   carry.Peer
		fields string
		items  []item
		finish mmsp.FinishReason
		want   string
	}{
		{"nothing", openaiPeer, "", nil, mmsp.FinishStop, ended("end_turn")},
		{
			"thinking, text and a call, signed by the provider", anthropicPeer, "",
			[]item{
				{with(mmsp.Thinking("Need it."), `{"signature":"c2ln","issuer":"anthropic"}`), []mmsp.Item{thinkingDelta("Need "), thinkingDelta("it."), with(thinkingDelta(""), `{"signature":"c2ln","issuer":"anthropic"}`)}},
				{mmsp.Text("Hm \"\n"), []mmsp.Item{textDelta("Hm "), textDelta("\"\n")}},
				{mmsp.ToolCall("toolu_1", "f", `{"a":1}`), []mmsp.Item{callDelta("toolu_1", "f", ""), callDelta("", "", `{"a"`), callDelta("", "", `:1}`)}},
			},
			mmsp.FinishToolCall,
			`block_start {"index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}
block_delta {"index":0,"delta":{"type":"thinking_delta","thinking":"Need "}}
block_delta {"index":0,"delta":{"type":"thinking_delta","thinking":"it."}}
block_delta {"index":0,"delta":{"type":"signature_delta","signature":"c2ln"}}
block_stop {"index":0}
block_start {"index":1,"content_block":{"type":"text","text":""}}
block_delta {"index":1,"delta":{"type":"text_delta","text":"Hm "}}
block_delta {"index":1,"delta":{"type":"text_delta","text":"\"\n"}}
block_stop {"index":1}
block_start {"index":2,"content_block":{"type":"tool_use","id":"toolu_1","name":"f","input":{}}}
block_delta {"index":2,"delta":{"type":"input_json_delta","partial_json":""}}
block_delta {"index":2,"delta":{"type":"input_json_delta","partial_json":"{\"a\""}}
block_delta {"index":2,"delta":{"type":"input_json_delta","partial_json":":1}"}}
block_stop {"index":2}
` + ended("tool_use"),
		},
		{
			"items that come whole", geminiPeer, "",
			[]item{
				{done: mmsp.Thinking("t")},
				{done: with(mmsp.Text("a"), `{"signature":"x"}`)},
				{done: with(mmsp.ToolCall("c1", "f", `{}`), `{"signature":"y"}`)},
				{done: with(mmsp.Text(""), `{"signature":"z"}`)},
			},
			mmsp.FinishToolCall,
			`block_start {"index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}
block_delta {"index":0,"delta":{"type":"thinking_delta","thinking":"t"}}
block_delta {"index":0,"delta":{"type":"signature_delta","signature":"(thinking )"}}
block_stop {"index":0}
block_start {"index":1,"content_block":{"type":"thinking","thinking":"","signature":""}}
block_delta {"index":1,"delta":{"type":"signature_delta","signature":"(text {'signature':'x'}>)"}}
block_stop {"index":1}
block_start {"index":2,"content_block":{"type":"text","text":""}}
block_delta {"index":2,"delta":{"type":"text_delta","text":"a"}}
block_stop {"index":2}
block_start {"index":3,"content_block":{"type":"thinking","thinking":"","signature":""}}
block_delta {"index":3,"delta":{"type":"signature_delta","signature":"(tool_call {'signature':'y'}>c1)"}}
block_stop {"index":3}
block_start {"index":4,"content_block":{"type":"tool_use","id":"c1","name":"f","input":{}}}
block_delta {"index":4,"delta":{"type":"input_json_delta","partial_json":""}}
block_delta {"index":4,"delta":{"type":"input_json_delta","partial_json":"{}"}}
block_stop {"index":4}
block_start {"index":5,"content_block":{"type":"thinking","thinking":"","signature":""}}
block_delta {"index":5,"delta":{"type":"signature_delta","signature":"(text {'signature':'z'})"}}
block_stop {"index":5}
` + ended("tool_use"),
		},
		{
			"proofs that are known at once, and late", geminiPeer, "",
			[]item{
				{with(mmsp.Text("a"), `{"signature":"x"}`), []mmsp.Item{with(textDelta(""), `{"signature":"x"}`), textDelta("a")}},
				{with(mmsp.Text("b"), `{"signature":"y"}`), []mmsp.Item{textDelta("b"), with(textDelta(""), `{"signature":"y"}`)}},
				{with(mmsp.ToolCall("c1", "f", `{}`), `{"signature":"z"}`), []mmsp.Item{callDelta("c1", "f", "{}")}},
				{with(mmsp.Text(""), `{"signature":"w"}`), []mmsp.Item{with(textDelta(""), `{"signature":"w"}`)}},
			},
			mmsp.FinishToolCall,
			`block_start {"index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}
block_delta {"index":0,"delta":{"type":"signature_delta","signature":"(text {'signature':'x'}>)"}}
block_stop {"index":0}
block_start {"index":1,"content_block":{"type":"text","text":""}}
block_delta {"index":1,"delta":{"type":"text_delta","text":"a"}}
block_stop {"index":1}
block_start {"index":2,"content_block":{"type":"text","text":""}}
block_delta {"index":2,"delta":{"type":"text_delta","text":"b"}}
block_stop {"index":2}
block_start {"index":3,"content_block":{"type":"thinking","thinking":"","signature":""}}
block_delta {"index":3,"delta":{"type":"signature_delta","signature":"(text {'signature':'y'}<)"}}
block_stop {"index":3}
block_start {"index":4,"content_block":{"type":"tool_use","id":"c1","name":"f","input":{}}}
block_delta {"index":4,"delta":{"type":"input_json_delta","partial_json":""}}
block_delta {"index":4,"delta":{"type":"input_json_delta","partial_json":"{}"}}
block_stop {"index":4}
block_start {"index":5,"content_block":{"type":"thinking","thinking":"","signature":""}}
block_delta {"index":5,"delta":{"type":"signature_delta","signature":"(tool_call {'signature':'z'}<c1)"}}
block_stop {"index":5}
block_start {"index":6,"content_block":{"type":"thinking","thinking":"","signature":""}}
block_delta {"index":6,"delta":{"type":"signature_delta","signature":"(text {'signature':'w'})"}}
block_stop {"index":6}
` + ended("tool_use"),
		},
		{
			"redacted thinking, in one piece and in two, and what only begins like it", anthropicPeer, "",
			[]item{
				{with(mmsp.Thinking("_REDACTED_THINKING"), `{"signature":"cmVk"}`), []mmsp.Item{with(thinkingDelta("_REDACTED_THINKING"), `{"signature":"cmVk"}`)}},
				{with(mmsp.Thinking("_REDACTED_THINKING"), `{"signature":"cmVk"}`), []mmsp.Item{thinkingDelta("_REDACTED"), with(thinkingDelta("_THINKING"), `{"signature":"cmVk"}`)}},
				{mmsp.Thinking("_RED"), []mmsp.Item{thinkingDelta("_RED")}},
				{mmsp.Thinking("_REDO"), []mmsp.Item{thinkingDelta("_RED"), thinkingDelta("O")}},
				{done: mmsp.Thinking("_REDACTED_THINKING")},
			},
			mmsp.FinishStop,
			`block_start {"index":0,"content_block":{"type":"redacted_thinking","data":"cmVk"}}
block_stop {"index":0}
block_start {"index":1,"content_block":{"type":"redacted_thinking","data":"cmVk"}}
block_stop {"index":1}
block_start {"index":2,"content_block":{"type":"thinking","thinking":"","signature":""}}
block_delta {"index":2,"delta":{"type":"thinking_delta","thinking":"_RED"}}
block_delta {"index":2,"delta":{"type":"signature_delta","signature":"(thinking )"}}
block_stop {"index":2}
block_start {"index":3,"content_block":{"type":"thinking","thinking":"","signature":""}}
block_delta {"index":3,"delta":{"type":"thinking_delta","thinking":"_REDO"}}
block_delta {"index":3,"delta":{"type":"signature_delta","signature":"(thinking )"}}
block_stop {"index":3}
` + ended("end_turn"),
		},
		{
			"thinking that is not to be shown, or says nothing", chatPeer, `,"thinking":{"type":"enabled","budget_tokens":1024,"display":"omitted"}`,
			[]item{
				{with(mmsp.Thinking("hidden"), `{"reasoning_field":"reasoning"}`), []mmsp.Item{with(thinkingDelta("hidden"), `{"reasoning_field":"reasoning"}`)}},
				{done: mmsp.Thinking("")},
			},
			mmsp.FinishStop,
			`block_start {"index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}
block_delta {"index":0,"delta":{"type":"signature_delta","signature":"(thinking {'reasoning_field':'reasoning'})"}}
block_stop {"index":0}
` + ended("end_turn"),
		},
		{
			"a refusal, and the phase of a text", openaiPeer, "",
			[]item{{done: with(mmsp.Text("no"), `{"refusal":true,"phase":"final_answer"}`)}},
			mmsp.FinishStop,
			`block_start {"index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}
block_delta {"index":0,"delta":{"type":"signature_delta","signature":"(text {'phase':'final_answer'}>)"}}
block_stop {"index":0}
block_start {"index":1,"content_block":{"type":"text","text":""}}
block_delta {"index":1,"delta":{"type":"text_delta","text":"no"}}
block_stop {"index":1}
` + strings.Replace(ended("refusal"), `"stop_details":null`, `"stop_details":{"type":"refusal","category":null,"explanation":null}`, 1),
		},
		{
			"a refusal of a provider that has no phases", chatPeer, "",
			[]item{{with(mmsp.Text("no"), `{"refusal":true,"phase":"x"}`), []mmsp.Item{with(textDelta("no"), `{"refusal":true,"phase":"x"}`)}}},
			mmsp.FinishStop,
			`block_start {"index":0,"content_block":{"type":"text","text":""}}
block_delta {"index":0,"delta":{"type":"text_delta","text":"no"}}
block_stop {"index":0}
` + strings.Replace(ended("refusal"), `"stop_details":null`, `"stop_details":{"type":"refusal","category":null,"explanation":null}`, 1),
		},
		{
			"a call that was cut", chatPeer, "",
			[]item{{callDelta("c1", "f", `{"a`), []mmsp.Item{callDelta("c1", "f", ""), callDelta("", "", `{"a`)}}},
			mmsp.FinishLength,
			`block_start {"index":0,"content_block":{"type":"tool_use","id":"c1","name":"f","input":{}}}
block_delta {"index":0,"delta":{"type":"input_json_delta","partial_json":""}}
block_delta {"index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a"}}
block_stop {"index":0}
` + ended("max_tokens"),
		},
		{
			"pictures, sound, and what cannot be shown", geminiPeer, "",
			[]item{
				{with(mmsp.InlineData([]byte("i"), "image/png", ""), `{"signature":"x"}`), []mmsp.Item{{Type: mmsp.InlineDataDelta, Data: []byte("i"), MimeType: "image/png"}}},
				{done: mmsp.InlineData([]byte("s"), "audio/wav", "a.wav")},
				{done: mmsp.Item{Type: mmsp.InlineThinkingDone, Data: []byte("t"), MimeType: "image/png"}},
				{done: mmsp.Item{Type: mmsp.EmbeddingDone, Embedding: []float64{1}}},
			},
			mmsp.FinishStop,
			`block_start {"index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}
block_delta {"index":0,"delta":{"type":"signature_delta","signature":"(inline_data {'signature':'x'}>)"}}
block_stop {"index":0}
block_start {"index":1,"content_block":{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aQ=="}}}
block_stop {"index":1}
block_start {"index":2,"content_block":{"type":"document","source":{"type":"base64","media_type":"audio/wav","data":"cw=="},"title":"a.wav"}}
block_stop {"index":2}
` + ended("end_turn"),
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			stream := write(answering(t, test.peer, test.fields), test.items, answer(test.items, test.finish, nil))
			if got, want := short(t, stream), started+test.want; got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

func TestEndings(t *testing.T) {
	aText, aCall := item{done: mmsp.Text("a")}, item{done: mmsp.ToolCall("c1", "f", "{}")}
	for _, test := range []struct {
		items  []item
		finish mmsp.FinishReason
		detail *mmsp.StopDetail
		want   string
	}{
		{nil, mmsp.FinishStop, nil, `"end_turn","stop_sequence":null,"stop_details":null`},
		{nil, mmsp.FinishLength, nil, `"max_tokens","stop_sequence":null,"stop_details":null`},
		{[]item{aText}, mmsp.FinishStop, &mmsp.StopDetail{Kind: "stop_sequence", Text: "END"}, `"stop_sequence","stop_sequence":"END","stop_details":null`},
		{[]item{aText}, mmsp.FinishUnknown, &mmsp.StopDetail{Kind: "refusal", Text: "why"}, `"refusal","stop_sequence":null,"stop_details":{"type":"refusal","category":null,"explanation":"why"}`},
		{nil, mmsp.FinishUnknown, &mmsp.StopDetail{Kind: "filter"}, `"refusal","stop_sequence":null,"stop_details":{"type":"refusal","category":null,"explanation":null}`},
		{nil, mmsp.FinishUnknown, &mmsp.StopDetail{Kind: "context"}, `"model_context_window_exceeded","stop_sequence":null,"stop_details":null`},
		{[]item{aCall}, mmsp.FinishUnknown, &mmsp.StopDetail{Kind: "pause"}, `"pause_turn","stop_sequence":null,"stop_details":null`},
		{nil, mmsp.FinishUnknown, &mmsp.StopDetail{Kind: "malformed_call"}, `"refusal","stop_sequence":null,"stop_details":{"type":"refusal","category":null,"explanation":null}`},
		{[]item{aText}, mmsp.FinishUnknown, &mmsp.StopDetail{Kind: "malformed_call", Text: "TOO_MANY_TOOL_CALLS"}, `"refusal","stop_sequence":null,"stop_details":{"type":"refusal","category":null,"explanation":"TOO_MANY_TOOL_CALLS"}`},
		{[]item{aCall}, mmsp.FinishUnknown, &mmsp.StopDetail{Kind: "malformed_call"}, `"tool_use","stop_sequence":null,"stop_details":null`},
		{[]item{aCall}, mmsp.FinishToolCall, nil, `"tool_use","stop_sequence":null,"stop_details":null`},
		{[]item{aCall}, mmsp.FinishLength, nil, `"max_tokens","stop_sequence":null,"stop_details":null`},
		{[]item{aText}, mmsp.FinishUnknown, nil, `"end_turn","stop_sequence":null,"stop_details":null`},
	} {
		m := answer(test.items, test.finish, test.detail)
		stream := write(answering(t, chatPeer, ""), test.items, m)
		whole := answering(t, chatPeer, "").Whole(nil, m)
		for _, got := range [][]byte{stream, whole} {
			if !bytes.Contains(got, []byte(`"stop_reason":`+test.want+`,"container":null`)) {
				t.Errorf("want %s in\n%s", test.want, got)
			}
		}
	}
}

func TestWhole(t *testing.T) {
	items := []item{
		{done: with(mmsp.Thinking("t"), `{"signature":"c2ln"}`)},
		{done: mmsp.Text("a")},
		{done: mmsp.ToolCall("toolu_1", "f", `{"a":1.0}`)},
		{done: mmsp.Item{Type: mmsp.ToolCallDelta, ToolCallID: "toolu_2", Name: "f", Arguments: `{"b`}},
	}
	m := answer(items, mmsp.FinishLength, nil)
	m.Usage = &mmsp.Usage{CachedTokens: new(int64(100)), PromptTokens: new(int64(31)), ThoughtsTokens: new(int64(15)), ResponseTokens: new(int64(25))}
	const want = `{"id":"msg_1","type":"message","role":"assistant","model":"demo-1","content":[{"type":"thinking","thinking":"t","signature":"c2ln"},{"type":"text","text":"a"},` +
		`{"type":"tool_use","id":"toolu_1","name":"f","input":{"a":1.0},"caller":{"type":"direct"}}],"stop_reason":"max_tokens","stop_sequence":null,"stop_details":null,"container":null,"diagnostics":null,` +
		`"usage":{"input_tokens":31,"cache_creation_input_tokens":0,"cache_read_input_tokens":100,"output_tokens":40,"output_tokens_details":{"thinking_tokens":15},"server_tool_use":null,"cache_creation":null,"service_tier":null,"inference_geo":null,"speed":null}}`
	got := answering(t, anthropicPeer, "").Whole(nil, m)
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	m.ContentItems = nil
	if got := answering(t, anthropicPeer, "").Whole(nil, m); !bytes.Contains(got, []byte(`"content":[],`)) {
		t.Errorf("%s", got)
	}
	// An answer that the protocol's client of this module reads as what it says.
	if _, ok := anthropic.Unroll(got); !ok {
		t.Error("not a message")
	}
}

func TestHeartbeatAndFailure(t *testing.T) {
	problem := &ingress.Problem{Kind: ingress.KindOverloaded, Message: "Upstream is overloaded.", RequestID: "req_01a"}
	const failed = "event: error\ndata: " + `{"type":"error","error":{"type":"overloaded_error","message":"Upstream is overloaded."},"request_id":"req_01a"}` + "\n\n"
	c := answering(t, chatPeer, "")
	if got := string(c.Fail(nil, problem)); got != failed {
		t.Error(got)
	}
	c = answering(t, chatPeer, "")
	stream := c.Heartbeat(nil)
	stream = c.Event(stream, &mmsp.Event{Item: mmsp.Item{Type: mmsp.TextDelta, Text: "Par"}})
	stream = c.Heartbeat(stream)
	stream = c.Fail(stream, problem)
	want := started + "ping {\"type\":\"ping\"}\n" + `block_start {"index":0,"content_block":{"type":"text","text":""}}
block_delta {"index":0,"delta":{"type":"text_delta","text":"Par"}}
ping {"type":"ping"}
error {"error":{"type":"overloaded_error","message":"Upstream is overloaded."},"request_id":"req_01a"}`
	if got := short(t, stream); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestErrors(t *testing.T) {
	for _, test := range []struct {
		problem ingress.Problem
		status  int
		want    string
	}{
		{ingress.Problem{Kind: ingress.KindInvalid, Status: 400, Message: "is required", Param: "max_tokens"}, 400, `"invalid_request_error","message":"max_tokens: is required"`},
		{ingress.Problem{Kind: ingress.KindUnauthorized, Status: 401, Message: "no"}, 401, `"authentication_error","message":"no"`},
		{ingress.Problem{Kind: ingress.KindBilling, Status: 429, Message: "no"}, 402, `"billing_error","message":"no"`},
		{ingress.Problem{Kind: ingress.KindForbidden, Status: 403, Message: "no"}, 403, `"permission_error","message":"no"`},
		{ingress.Problem{Kind: ingress.KindForbidden, Status: 403, Message: "no", Code: "region"}, 403, `"permission_error","message":"no","details":{"error_code":"region"}`},
		{ingress.Problem{Kind: ingress.KindUnknownModel, Status: 404, Message: "no"}, 404, `"not_found_error","message":"no"`},
		{ingress.Problem{Kind: ingress.KindMethod, Status: 405, Message: "no"}, 405, `"invalid_request_error","message":"no"`},
		{ingress.Problem{Kind: ingress.KindTooLarge, Status: 413, Message: "no"}, 413, `"request_too_large","message":"no"`},
		{ingress.Problem{Kind: ingress.KindContextLength, Status: 400, Message: "maximum context length"}, 400, `"invalid_request_error","message":"prompt is too long: maximum context length"`},
		{ingress.Problem{Kind: ingress.KindContextLength, Status: 400, Message: "Prompt is too long: 9 > 8"}, 400, `"invalid_request_error","message":"Prompt is too long: 9 > 8"`},
		{ingress.Problem{Kind: ingress.KindRateLimit, Status: 429, Message: "no"}, 429, `"rate_limit_error","message":"no"`},
		{ingress.Problem{Kind: ingress.KindConflict, Status: 409, Message: "no"}, 409, `"conflict_error","message":"no"`},
		{ingress.Problem{Kind: ingress.KindTimeout, Status: 504, Message: "no"}, 504, `"timeout_error","message":"no"`},
		{ingress.Problem{Kind: ingress.KindUpstream, Status: 502, Message: "no"}, 502, `"api_error","message":"no"`},
		{ingress.Problem{Kind: ingress.KindOverloaded, Status: 503, Message: "no"}, 529, `"overloaded_error","message":"no"`},
		{ingress.Problem{Kind: ingress.KindInternal, Status: 500, Message: "no"}, 500, `"api_error","message":"no"`},
	} {
		if got, want := string(New().AppendError(nil, &test.problem)), `{"type":"error","error":{"type":`+test.want+`},"request_id":null}`; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if got := (protocol{}).Status(&test.problem); got != test.status {
			t.Errorf("%s: status %d, want %d", test.want, got, test.status)
		}
	}
}

// replay does what the protocol's SDK does with a stream: it gathers the blocks, which the caller sends back.
func replay(t testing.TB, stream []byte) string {
	t.Helper()
	var blocks []map[string]any
	for line := range strings.Lines(string(stream)) {
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		var e struct {
			Type         string         `json:"type"`
			Index        int            `json:"index"`
			ContentBlock map[string]any `json:"content_block"`
			Delta        map[string]any `json:"delta"`
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			t.Fatal(err)
		}
		switch e.Type {
		case "content_block_start":
			if e.Index != len(blocks) {
				t.Fatalf("block %d comes as %d", len(blocks), e.Index)
			}
			blocks = append(blocks, e.ContentBlock)
		case "content_block_delta":
			for _, key := range []string{"text", "thinking", "signature", "partial_json"} {
				if piece, ok := e.Delta[key].(string); ok {
					before, _ := blocks[e.Index][key].(string)
					blocks[e.Index][key] = before + piece
				}
			}
		case "content_block_stop":
			if input, _ := blocks[e.Index]["partial_json"].(string); input != "" {
				blocks[e.Index]["input"] = json.RawMessage(input)
			}
			delete(blocks[e.Index], "partial_json")
		}
	}
	data, err := json.Marshal(blocks)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestProofsComeBack answers with every kind of proof, whole and in pieces, and reads the turn as callers send it back.
func TestProofsComeBack(t *testing.T) {
	for _, test := range []struct {
		peer  carry.Peer
		items []mmsp.Item
	}{
		{anthropicPeer, []mmsp.Item{
			with(mmsp.Thinking("t"), `{"signature":"c2ln"}`), with(mmsp.Thinking(ingress.RedactedThinking), `{"signature":"cmVk"}`),
			with(mmsp.Thinking(""), `{"signature":"b21pdA=="}`), mmsp.Text("a"), mmsp.ToolCall("toolu_1", "f", `{"a":1}`),
		}},
		{openaiPeer, []mmsp.Item{
			with(mmsp.Thinking("t"), `{"encrypted_content":"x","id":"rs_1"}`), with(mmsp.Thinking(""), `{"encrypted_content":"y"}`),
			with(mmsp.Text("a"), `{"phase":"commentary"}`), with(mmsp.Text("b"), `{"phase":"final_answer"}`), mmsp.ToolCall("c1", "f", `{}`), mmsp.ToolCall("c2", "f", `{"a":[1]}`),
		}},
		{geminiPeer, []mmsp.Item{
			mmsp.Thinking("t"), with(mmsp.Text("a"), `{"signature":"1"}`), with(mmsp.ToolCall("c1", "f", `{}`), `{"signature":"2"}`), mmsp.ToolCall("c2", "f", `{}`),
			with(mmsp.ToolCall("c3", "g", `{"b":2}`), `{"signature":"3"}`), with(mmsp.InlineData([]byte("i"), "image/png", ""), `{"signature":"4"}`),
			with(mmsp.InlineData([]byte("s"), "audio/wav", "s.wav"), `{"signature":"7"}`),
			with(mmsp.Text(" "), `{"signature":"5"}`), with(mmsp.Text(""), `{"signature":"6"}`),
		}},
		{chatPeer, []mmsp.Item{
			with(mmsp.Thinking("t"), `{"reasoning_field":"reasoning_content"}`), mmsp.Text("a"), with(mmsp.ToolCall("c1", "f", `{}`), `{"reasoning_details":[{"type":"x"}]}`),
		}},
	} {
		m := &mmsp.Message{Role: mmsp.RoleAssistant, ContentItems: test.items, FinishReason: mmsp.FinishStop}
		want := text(t, test.items)
		var whole struct{ Content json.RawMessage }
		if err := json.Unmarshal(answering(t, test.peer, "").Whole(nil, m), &whole); err != nil {
			t.Fatal(err)
		}
		contents := map[string]string{"whole": string(whole.Content)}
		// Where in its item the proof comes: with the first delta, in one of its own, or with the done item alone.
		for _, proof := range []string{"first", "last", "done", "undivided"} {
			var items []item
			for _, done := range test.items {
				i := item{done: done}
				if first := piece(done); proof != "undivided" && first.Type != "" {
					last := first
					last.Text, last.Thinking, last.Arguments, last.Data, last.Name, last.ToolCallID = "", "", "", nil, "", ""
					switch proof {
					case "first":
						first.Fidelity = done.Fidelity
					case "last":
						last.Fidelity = done.Fidelity
					}
					i.deltas = []mmsp.Item{first, last}
				}
				items = append(items, i)
			}
			contents[proof] = replay(t, write(answering(t, test.peer, ""), items, m))
		}
		for name, content := range contents {
			if got := text(t, read(t, test.peer, turn("assistant", content)).Messages[0].ContentItems); got != want {
				t.Errorf("%s, %s:\ngot  %s\nwant %s\nby way of %s", test.peer.ClientType, name, got, want, content)
			}
		}
	}
}

// piece is a delta that says all that a done item says, but for its proof.
func piece(done mmsp.Item) mmsp.Item {
	done.Type = map[mmsp.ItemType]mmsp.ItemType{
		mmsp.TextDone: mmsp.TextDelta, mmsp.ThinkingDone: mmsp.ThinkingDelta, mmsp.ToolCallDone: mmsp.ToolCallDelta, mmsp.InlineDataDone: mmsp.InlineDataDelta,
	}[done.Type]
	done.Fidelity = nil
	return done
}

func BenchmarkTextDelta(b *testing.B) {
	c := answering(b, chatPeer, "")
	e := &mmsp.Event{Type: mmsp.EventDelta, Item: mmsp.Item{Type: mmsp.TextDelta, Text: " and so on, for a while"}}
	dst := c.Event(nil, e)
	b.ReportAllocs()
	for b.Loop() {
		dst = c.Event(dst[:0], e)
	}
}

func BenchmarkArgumentsDelta(b *testing.B) {
	c := answering(b, chatPeer, "")
	dst := c.Event(nil, &mmsp.Event{Item: mmsp.Item{Type: mmsp.ToolCallDelta, ToolCallID: "c1", Name: "f"}})
	e := &mmsp.Event{Type: mmsp.EventDelta, Item: mmsp.Item{Type: mmsp.ToolCallDelta, Arguments: `"key":"value",`}}
	b.ReportAllocs()
	for b.Loop() {
		dst = c.Event(dst[:0], e)
	}
}
