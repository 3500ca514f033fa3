package responses

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/ingress"
	"github.com/prism-shadow/mmsp-go/internal/carry"
)

const tools = `,"store":false,"tools":[{"type":"function","name":"dig"},{"type":"custom","name":"note"},
	{"type":"namespace","name":"deck","tools":[{"type":"custom","name":"edit"},{"type":"function","name":"scan"}]}]`

// sealed is the text of an envelope of the chat peer.
func sealed(kind, fidelity string, owner *carry.Owner) string {
	return carry.Seal(carry.Envelope{Issuer: chatPeer, Kind: kind, Fidelity: mmsp.Fidelity(fidelity), Owner: owner}, carry.MaxInline)
}

func TestStreams(t *testing.T) {
	const message = `{"id":"msg_a1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Ahoy.","annotations":[],"logprobs":[]}]}`
	ahoy := func(index string) []string {
		return []string{
			`output_item.added "output_index":` + index + `,"item":{"id":"msg_a1","type":"message","status":"in_progress","role":"assistant","content":[]}`,
			`content_part.added "item_id":"msg_a1","output_index":` + index + `,"content_index":0,"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]}`,
			`output_text.delta "item_id":"msg_a1","output_index":` + index + `,"content_index":0,"delta":"Ahoy.","logprobs":[]`,
			`output_text.done "item_id":"msg_a1","output_index":` + index + `,"content_index":0,"text":"Ahoy.","logprobs":[]`,
			`content_part.done "item_id":"msg_a1","output_index":` + index + `,"content_index":0,"part":{"type":"output_text","text":"Ahoy.","annotations":[],"logprobs":[]}`,
			`output_item.done "output_index":` + index + `,"item":` + message,
		}
	}
	incomplete := strings.Replace(message, "completed", "incomplete", 1)
	for _, c := range []struct {
		name   string
		ask    string
		items  [][]mmsp.Item
		finish mmsp.FinishReason
		detail *mmsp.StopDetail
		header string
		want   []string
	}{
		{"text", "", [][]mmsp.Item{text("Ahoy.")}, "stop", nil, "", append(ahoy("0"), `completed completed [`+message+`]`)},
		{"text at the token limit", "", [][]mmsp.Item{text("Ahoy.")}, "length", nil, "", append(
			ahoy("0")[:5], `output_item.done "output_index":0,"item":`+incomplete, `incomplete incomplete max_output_tokens [`+incomplete+`]`,
		)},
		{"filtered text", "", [][]mmsp.Item{text("Ahoy.")}, "unknown", &mmsp.StopDetail{Kind: "filter"}, "", append(
			ahoy("0")[:5], `output_item.done "output_index":0,"item":`+incomplete, `incomplete incomplete content_filter [`+incomplete+`]`,
		)},
		{"a pause", "", [][]mmsp.Item{text("Ahoy.")}, "unknown", &mmsp.StopDetail{Kind: "pause"}, "", append(ahoy("0"), `completed completed [`+message+`]`)},
		{"a text with a phase", "", [][]mmsp.Item{proven(text("", "A"), `{"phase":"commentary"}`)}, "stop", nil, "", []string{
			`output_item.added "output_index":0,"item":{"id":"msg_a1","type":"message","status":"in_progress","role":"assistant","phase":"commentary","content":[]}`,
			`content_part.added "item_id":"msg_a1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]}`,
			`output_text.delta "item_id":"msg_a1","output_index":0,"content_index":0,"delta":"A","logprobs":[]`,
			`output_text.done "item_id":"msg_a1","output_index":0,"content_index":0,"text":"A","logprobs":[]`,
			`content_part.done "item_id":"msg_a1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"A","annotations":[],"logprobs":[]}`,
			`output_item.done "output_index":0,"item":{"id":"msg_a1","type":"message","status":"completed","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"A","annotations":[],"logprobs":[]}]}`,
			`completed completed [{"id":"msg_a1","type":"message","status":"completed","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"A","annotations":[],"logprobs":[]}]}]`,
		}},
		{"nothing", "", nil, "stop", nil, "", []string{
			`output_item.added "output_index":0,"item":{"id":"msg_a1","type":"message","status":"in_progress","role":"assistant","content":[]}`,
			`content_part.added "item_id":"msg_a1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]}`,
			`output_text.done "item_id":"msg_a1","output_index":0,"content_index":0,"text":"","logprobs":[]`,
			`content_part.done "item_id":"msg_a1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]}`,
			`output_item.done "output_index":0,"item":{"id":"msg_a1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"","annotations":[],"logprobs":[]}]}`,
			`completed completed [{"id":"msg_a1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"","annotations":[],"logprobs":[]}]}]`,
		}},
		{"nothing at the token limit", "", nil, "length", nil, "", []string{`incomplete incomplete max_output_tokens`}},
		{"nothing but a refusal's reason", "", nil, "unknown", &mmsp.StopDetail{Kind: "refusal", Text: "No."}, "", []string{
			`output_item.added "output_index":0,"item":{"id":"msg_a1","type":"message","status":"in_progress","role":"assistant","content":[]}`,
			`content_part.added "item_id":"msg_a1","output_index":0,"content_index":0,"part":{"type":"refusal","refusal":""}`,
			`refusal.delta "item_id":"msg_a1","output_index":0,"content_index":0,"delta":"No."`,
			`refusal.done "item_id":"msg_a1","output_index":0,"content_index":0,"refusal":"No."`,
			`content_part.done "item_id":"msg_a1","output_index":0,"content_index":0,"part":{"type":"refusal","refusal":"No."}`,
			`output_item.done "output_index":0,"item":{"id":"msg_a1","type":"message","status":"completed","role":"assistant","content":[{"type":"refusal","refusal":"No."}]}`,
			`completed completed [{"id":"msg_a1","type":"message","status":"completed","role":"assistant","content":[{"type":"refusal","refusal":"No."}]}]`,
		}},
		{"a refusal without words", "", nil, "unknown", &mmsp.StopDetail{Kind: "refusal"}, "", []string{`incomplete incomplete content_filter`}},
		{"thinking with a proof", "", [][]mmsp.Item{proven(thinking("Hm"), `{"signature":"s"}`), text("Ahoy.")}, "stop", nil, "", append(append([]string{
			`output_item.added "output_index":0,"item":{"id":"rs_a1","type":"reasoning","summary":[]}`,
			`reasoning_summary_part.added "item_id":"rs_a1","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}`,
			`reasoning_summary_text.delta "item_id":"rs_a1","output_index":0,"summary_index":0,"delta":"Hm"`,
			`reasoning_summary_text.done "item_id":"rs_a1","output_index":0,"summary_index":0,"text":"Hm"`,
			`reasoning_summary_part.done "item_id":"rs_a1","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":"Hm"}`,
			`output_item.done "output_index":0,"item":{"id":"rs_a1","type":"reasoning","summary":[{"type":"summary_text","text":"Hm"}],"encrypted_content":"` + sealed("thinking", `{"signature":"s"}`, nil) + `"}`,
		}, ahoy("1")...), `completed completed [{"id":"rs_a1","type":"reasoning","summary":[{"type":"summary_text","text":"Hm"}],"encrypted_content":"`+
			sealed("thinking", `{"signature":"s"}`, nil)+`"},`+message+`]`)},
		{"a proof that is not wanted", `,"include":[]`, [][]mmsp.Item{proven(thinking(""), `{"signature":"s"}`), text("Ahoy.")}, "stop", nil, "", append(
			ahoy("0"), `completed completed [`+message+`]`,
		)},
		{"thinking that is kept back", "", [][]mmsp.Item{proven(thinking(ingress.RedactedThinking), `{"signature":"s"}`), text("Ahoy.")}, "stop", nil, "", append(append([]string{
			`output_item.added "output_index":0,"item":{"id":"rs_a1","type":"reasoning","summary":[]}`,
			`output_item.done "output_index":0,"item":{"id":"rs_a1","type":"reasoning","summary":[],"encrypted_content":"` + sealed("redacted_thinking", `{"signature":"s"}`, nil) + `"}`,
		}, ahoy("1")...), `completed completed [{"id":"rs_a1","type":"reasoning","summary":[],"encrypted_content":"`+sealed("redacted_thinking", `{"signature":"s"}`, nil)+`"},`+message+`]`)},
		{"thinking that begins like what is kept back", "", [][]mmsp.Item{thinking(ingress.RedactedThinking, "", " is", " it"), text("Ahoy.")}, "stop", nil, "", append(append([]string{
			`output_item.added "output_index":0,"item":{"id":"rs_a1","type":"reasoning","summary":[]}`,
			`reasoning_summary_part.added "item_id":"rs_a1","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}`,
			`reasoning_summary_text.delta "item_id":"rs_a1","output_index":0,"summary_index":0,"delta":"_REDACTED_THINKING is"`,
			`reasoning_summary_text.delta "item_id":"rs_a1","output_index":0,"summary_index":0,"delta":" it"`,
			`reasoning_summary_text.done "item_id":"rs_a1","output_index":0,"summary_index":0,"text":"_REDACTED_THINKING is it"`,
			`reasoning_summary_part.done "item_id":"rs_a1","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":"_REDACTED_THINKING is it"}`,
			`output_item.done "output_index":0,"item":{"id":"rs_a1","type":"reasoning","summary":[{"type":"summary_text","text":"_REDACTED_THINKING is it"}]}`,
		}, ahoy("1")...), `completed completed [{"id":"rs_a1","type":"reasoning","summary":[{"type":"summary_text","text":"_REDACTED_THINKING is it"}]},`+message+`]`)},
		{"a signed text", "", [][]mmsp.Item{proven(text("Ahoy."), `{"signature":"s"}`)}, "stop", nil, "", append(append([]string{
			`output_item.added "output_index":0,"item":{"id":"rs_a1","type":"reasoning","summary":[]}`,
			`output_item.done "output_index":0,"item":{"id":"rs_a1","type":"reasoning","summary":[],"encrypted_content":"` + sealed("text", `{"signature":"s"}`, &carry.Owner{}) + `"}`,
		}, ahoy("1")...), `completed completed [{"id":"rs_a1","type":"reasoning","summary":[],"encrypted_content":"`+sealed("text", `{"signature":"s"}`, &carry.Owner{})+`"},`+message+`]`)},
		{"a signed call", tools, [][]mmsp.Item{proven(toolCall("c1", "dig"), `{"signature":"s"}`)}, "tool_call", nil, "", []string{
			`output_item.added "output_index":0,"item":{"id":"rs_a1","type":"reasoning","summary":[]}`,
			`output_item.done "output_index":0,"item":{"id":"rs_a1","type":"reasoning","summary":[],"encrypted_content":"` + sealed("tool_call", `{"signature":"s"}`, &carry.Owner{ToolCallID: "c1"}) + `"}`,
			`output_item.added "output_index":1,"item":{"id":"fc_a1","type":"function_call","status":"in_progress","call_id":"c1","name":"dig","arguments":""}`,
			`function_call_arguments.delta "item_id":"fc_a1","output_index":1,"delta":"{}"`,
			`function_call_arguments.done "item_id":"fc_a1","output_index":1,"name":"dig","arguments":"{}"`,
			`output_item.done "output_index":1,"item":{"id":"fc_a1","type":"function_call","status":"completed","call_id":"c1","name":"dig","arguments":"{}"}`,
			`completed completed [{"id":"rs_a1","type":"reasoning","summary":[],"encrypted_content":"` + sealed("tool_call", `{"signature":"s"}`, &carry.Owner{ToolCallID: "c1"}) + `"},` +
				`{"id":"fc_a1","type":"function_call","status":"completed","call_id":"c1","name":"dig","arguments":"{}"}]`,
		}},
		{"tools of a group", tools, [][]mmsp.Item{
			toolCall("c1", "deck__edit", `{"input":"line one\`, `n\"line `, `two\""}`), toolCall("c2", "deck__scan", `{"deck":1}`),
		}, "tool_call", nil, "", []string{
			`output_item.added "output_index":0,"item":{"id":"ctc_a1","type":"custom_tool_call","status":"in_progress","call_id":"c1","namespace":"deck","name":"edit","input":""}`,
			`custom_tool_call_input.delta "item_id":"ctc_a1","output_index":0,"delta":"line one"`,
			`custom_tool_call_input.delta "item_id":"ctc_a1","output_index":0,"delta":"\n\"line "`,
			`custom_tool_call_input.delta "item_id":"ctc_a1","output_index":0,"delta":"two\""`,
			`custom_tool_call_input.done "item_id":"ctc_a1","output_index":0,"input":"line one\n\"line two\""`,
			`output_item.done "output_index":0,"item":{"id":"ctc_a1","type":"custom_tool_call","status":"completed","call_id":"c1","namespace":"deck","name":"edit","input":"line one\n\"line two\""}`,
			`output_item.added "output_index":1,"item":{"id":"fc_a1","type":"function_call","status":"in_progress","call_id":"c2","namespace":"deck","name":"scan","arguments":""}`,
			`function_call_arguments.delta "item_id":"fc_a1","output_index":1,"delta":"{\"deck\":1}"`,
			`function_call_arguments.done "item_id":"fc_a1","output_index":1,"name":"scan","arguments":"{\"deck\":1}"`,
			`output_item.done "output_index":1,"item":{"id":"fc_a1","type":"function_call","status":"completed","call_id":"c2","namespace":"deck","name":"scan","arguments":"{\"deck\":1}"}`,
			`completed completed [{"id":"ctc_a1","type":"custom_tool_call","status":"completed","call_id":"c1","namespace":"deck","name":"edit","input":"line one\n\"line two\""},` +
				`{"id":"fc_a1","type":"function_call","status":"completed","call_id":"c2","namespace":"deck","name":"scan","arguments":"{\"deck\":1}"}]`,
		}},
		{"a picture", "", [][]mmsp.Item{{{Type: mmsp.InlineDataDelta, MimeType: "image/png", Data: []byte("abc")}}}, "stop", nil, "", []string{
			`output_item.added "output_index":0,"item":{"id":"ig_a1","type":"image_generation_call","status":"in_progress","output_format":"png","result":null}`,
			`output_item.done "output_index":0,"item":{"id":"ig_a1","type":"image_generation_call","status":"completed","output_format":"png","result":"YWJj"}`,
			`completed completed [{"id":"ig_a1","type":"image_generation_call","status":"completed","output_format":"png","result":"YWJj"}]`,
		}},
		{"raw thinking under the standard's names", "", [][]mmsp.Item{thinking("Hm"), text("Ahoy.")}, "stop", nil, "raw", append(append([]string{
			`output_item.added "output_index":0,"item":{"id":"rs_a1","type":"reasoning","summary":[],"content":[]}`,
			`content_part.added "item_id":"rs_a1","output_index":0,"content_index":0,"part":{"type":"reasoning_text","text":""}`,
			`reasoning.delta "item_id":"rs_a1","output_index":0,"content_index":0,"delta":"Hm"`,
			`reasoning.done "item_id":"rs_a1","output_index":0,"content_index":0,"text":"Hm"`,
			`content_part.done "item_id":"rs_a1","output_index":0,"content_index":0,"part":{"type":"reasoning_text","text":"Hm"}`,
			`output_item.done "output_index":0,"item":{"id":"rs_a1","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"Hm"}]}`,
		}, ahoy("1")...), `completed completed [{"id":"rs_a1","type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"Hm"}]},`+message+`]`)},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, whole := range []bool{false, true} {
				call, _, err := parse(t, numbered(), environment(chatPeer, nil), ask(c.ask), "x-mmsp-reasoning", c.header, "OpenResponses-Version", c.header)
				if err != nil {
					t.Fatal(err)
				}
				list, answer := events(c.items...)
				answer.FinishReason, answer.StopDetail = c.finish, c.detail
				if !whole {
					want := append([]string{"created in_progress", "in_progress in_progress"}, c.want...)
					compare(t, brief(t, stream(call, list, &answer)), append(want, "data: [DONE]"))
					continue
				}
				var r struct {
					Status  string
					Details struct{ Reason string } `json:"incomplete_details"`
					Output  json.RawMessage
				}
				if err := json.Unmarshal(call.Whole(nil, &answer), &r); err != nil {
					t.Fatal(err)
				}
				got := r.Status
				if r.Details.Reason != "" {
					got += " " + r.Details.Reason
				}
				if string(r.Output) != "[]" {
					got += " " + string(r.Output)
				}
				_, want, _ := strings.Cut(c.want[len(c.want)-1], " ")
				compare(t, []string{got}, []string{want})
			}
		})
	}
}

// A call that the token limit cut is shown as far as it came.
func TestCutCalls(t *testing.T) {
	for _, c := range []struct{ name, arguments, want string }{
		{"dig", `{"deep":`, `{"id":"fc_a1","type":"function_call","status":"incomplete","call_id":"c1","name":"dig","arguments":"{\"deep\":"}`},
		{"note", `{"input":"one \ud83d`, `{"id":"ctc_a1","type":"custom_tool_call","status":"incomplete","call_id":"c1","name":"note","input":"one "}`},
		{"note", ``, `{"id":"ctc_a1","type":"custom_tool_call","status":"incomplete","call_id":"c1","name":"note","input":""}`},
	} {
		for _, streamed := range []bool{true, false} {
			call, _, err := parse(t, numbered(), environment(chatPeer, nil), ask(tools))
			if err != nil {
				t.Fatal(err)
			}
			var out []byte
			if streamed {
				for _, item := range toolCall("c1", c.name, c.arguments) {
					out = call.Event(out, &mmsp.Event{Type: mmsp.EventDelta, Item: item})
				}
			}
			answer := mmsp.AssistantMessage(mmsp.Item{Type: mmsp.ToolCallDelta, ToolCallID: "c1", Name: c.name, Arguments: c.arguments})
			answer.FinishReason = mmsp.FinishLength
			if err := call.Keep(t.Context(), &answer); err != nil {
				t.Fatal(err)
			}
			if streamed {
				lines := brief(t, string(call.Stop(out, &answer)))
				compare(t, lines[len(lines)-2:], []string{`incomplete incomplete max_output_tokens [` + c.want + `]`, `data: [DONE]`})
			} else if got := string(call.Whole(nil, &answer)); !strings.Contains(got, `"output":[`+c.want+`]`) {
				t.Errorf("%s: got %s", c.arguments, got)
			}
		}
	}
}

// A proof that comes after the item has begun follows it.
func TestLateProof(t *testing.T) {
	call, _, err := parse(t, numbered(), environment(chatPeer, nil), ask(""))
	if err != nil {
		t.Fatal(err)
	}
	signed := mmsp.Text("A")
	signed.Fidelity = mmsp.Fidelity(`{"signature":"s"}`)
	list := []mmsp.Event{{Item: mmsp.Item{Type: mmsp.TextDelta, Text: "A"}}, {Item: signed}}
	answer := mmsp.AssistantMessage(signed)
	answer.FinishReason = mmsp.FinishStop
	lines := brief(t, stream(call, list, &answer))
	compare(t, lines[len(lines)-2:len(lines)-1], []string{
		`completed completed [{"id":"msg_a1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"A","annotations":[],"logprobs":[]}]},` +
			`{"id":"rs_a1","type":"reasoning","summary":[],"encrypted_content":"` + sealed("text", `{"signature":"s"}`, &carry.Owner{Previous: true}) + `"}]`,
	})
	if strings.Join(call.ids, " ") != "msg_a1" {
		t.Errorf("ids %q", call.ids)
	}
}

func TestHeartbeats(t *testing.T) {
	call, _, err := parse(t, numbered(), environment(chatPeer, nil), ask(tools))
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	beat := func(items ...mmsp.Item) {
		for i := range items {
			out = call.Event(out, &mmsp.Event{Type: mmsp.EventDelta, Item: items[i]})
		}
		out = call.Heartbeat(append(out, ": here\n\n"...))
	}
	beat()
	beat()
	beat(thinking("")...)
	beat(thinking("Hm")...)
	beat(mmsp.Thinking("Hm"))
	beat(text("A")...)
	beat(mmsp.Text("A"))
	beat(toolCall("c1", "note", `{"input":"`)...)
	beat(mmsp.ToolCall("c1", "note", `{"input":"x"}`))
	var got []string
	for i, lines := 0, brief(t, string(out)); i+1 < len(lines); i++ {
		if lines[i] == ": here" {
			got = append(got, lines[i+1])
		}
	}
	compare(t, got, []string{
		"created in_progress", ": keep-alive", ": keep-alive",
		`reasoning_summary_text.delta "item_id":"rs_a1","output_index":0,"summary_index":0,"delta":""`, ": keep-alive",
		`output_text.delta "item_id":"msg_a1","output_index":1,"content_index":0,"delta":"","logprobs":[]`, ": keep-alive",
		`custom_tool_call_input.delta "item_id":"ctc_a1","output_index":2,"delta":""`, ": keep-alive",
	})
}

func TestFailures(t *testing.T) {
	for _, c := range []struct {
		problem ingress.Problem
		want    string
	}{
		{ingress.Problem{Kind: ingress.KindContextLength, Message: "long"}, `{"code":"context_length_exceeded","message":"long","type":"invalid_request_error"}`},
		{ingress.Problem{Kind: ingress.KindBilling, Message: "pay"}, `{"code":"insufficient_quota","message":"pay","type":"insufficient_quota"}`},
		{ingress.Problem{Kind: ingress.KindRateLimit, Message: "Slow down.", RetryAfter: 1500 * time.Millisecond}, `{"code":"rate_limit_exceeded","message":"Slow down. Please try again in 1.5s.","type":"rate_limit_error"}`},
		{ingress.Problem{Kind: ingress.KindOverloaded, Message: "busy"}, `{"code":"server_is_overloaded","message":"busy","type":"server_error"}`},
		{ingress.Problem{Kind: ingress.KindInvalid, Message: "bad", Code: "x"}, `{"code":"invalid_prompt","message":"bad","type":"invalid_request_error"}`},
		{ingress.Problem{Kind: ingress.KindForbidden, Message: "no", Code: "usage_not_included"}, `{"code":"usage_not_included","message":"no","type":"permission_error"}`},
		{ingress.Problem{Kind: ingress.KindUpstream, Message: "cut", Code: "x"}, `{"code":"server_error","message":"cut","type":"server_error"}`},
		{ingress.Problem{Kind: ingress.KindTimeout}, `{"code":"server_error","message":"the response failed","type":"server_error"}`},
	} {
		call, _, err := parse(t, numbered(), environment(chatPeer, nil), ask(""))
		if err != nil {
			t.Fatal(err)
		}
		compare(t, brief(t, string(call.Fail(nil, &c.problem))), []string{"created in_progress", "in_progress in_progress", "failed failed " + c.want, "data: [DONE]"})
	}
}

// A response that failed has what was produced, the item that was open as far as it came.
func TestFailuresKeepWhatCame(t *testing.T) {
	const failed, whole = `failed failed {"code":"server_error","message":"cut","type":"server_error"}`,
		`{"id":"msg_a1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"A","annotations":[],"logprobs":[]}]}`
	begun := []mmsp.Item{text("A")[0], mmsp.Text("A")}
	for _, c := range []struct {
		name  string
		items []mmsp.Item
		raw   string
		want  string
	}{
		{"nothing", nil, "", failed},
		{"a whole text", begun, "", failed + " [" + whole + "]"},
		{"a text", text("Paris", " is ", "\"big\""), "", failed + ` [{"id":"msg_a1","type":"message","status":"incomplete","role":"assistant","content":[{"type":"output_text","text":"Paris is \"big\"","annotations":[],"logprobs":[]}]}]`},
		{"a refusal", proven(text("N", "o"), `{"refusal":true}`), "", failed + ` [{"id":"msg_a1","type":"message","status":"incomplete","role":"assistant","content":[{"type":"refusal","refusal":"No"}]}]`},
		{"a summary after a text", append(begun, thinking("B", "C")...), "", failed + " [" + whole + `,{"id":"rs_a1","type":"reasoning","status":"incomplete","summary":[{"type":"summary_text","text":"BC"}]}]`},
		{"raw thinking", thinking("B", "C"), "raw", failed + ` [{"id":"rs_a1","type":"reasoning","status":"incomplete","summary":[],"content":[{"type":"reasoning_text","text":"BC"}]}]`},
		{"thinking that is kept back", thinking(ingress.RedactedThinking), "", failed},
		{"a call", toolCall("c1", "dig", `{"deep`, `":`), "", failed + ` [{"id":"fc_a1","type":"function_call","status":"incomplete","call_id":"c1","name":"dig","arguments":"{\"deep\":"}]`},
		{"a call without arguments", toolCall("c1", "dig"), "", failed + ` [{"id":"fc_a1","type":"function_call","status":"incomplete","call_id":"c1","name":"dig","arguments":""}]`},
		{"a call of a custom tool", toolCall("c1", "note", `{"input":"one \`, `ntwo \ud83d`), "", failed + ` [{"id":"ctc_a1","type":"custom_tool_call","status":"incomplete","call_id":"c1","name":"note","input":"one \ntwo "}]`},
	} {
		call, _, err := parse(t, numbered(), environment(chatPeer, nil), ask(tools), "x-mmsp-reasoning", c.raw)
		if err != nil {
			t.Fatal(err)
		}
		var out []byte
		for i := range c.items {
			out = call.Heartbeat(call.Event(out, &mmsp.Event{Type: mmsp.EventDelta, Item: c.items[i]}))
		}
		lines := brief(t, string(call.Fail(out, &ingress.Problem{Kind: ingress.KindUpstream, Message: "cut"})))
		t.Run(c.name, func(t *testing.T) { compare(t, lines[len(lines)-2:], []string{c.want, "data: [DONE]"}) })
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		problem ingress.Problem
		want    string
	}{
		{ingress.Problem{Kind: ingress.KindInvalid, Message: `a "b"`, Param: "input[0]"}, `{"error":{"message":"a \"b\"","type":"invalid_request_error","param":"input[0]","code":"invalid_value"}}`},
		{ingress.Problem{Kind: ingress.KindUnauthorized}, `{"error":{"message":"","type":"invalid_request_error","param":"","code":"invalid_api_key"}}`},
		{ingress.Problem{Kind: ingress.KindUnknownModel}, `{"error":{"message":"","type":"invalid_request_error","param":"","code":"model_not_found"}}`},
		{ingress.Problem{Kind: ingress.KindRateLimit, Code: "x"}, `{"error":{"message":"","type":"rate_limit_error","param":"","code":"rate_limit_exceeded"}}`},
		{ingress.Problem{Kind: ingress.KindUpstream, Code: "x"}, `{"error":{"message":"","type":"server_error","param":"","code":"x"}}`},
		{ingress.Problem{Kind: ingress.KindInternal}, `{"error":{"message":"","type":"server_error","param":"","code":"server_error"}}`},
	} {
		compare(t, []string{string(New().AppendError(nil, &c.problem))}, []string{c.want})
	}
}

func TestResource(t *testing.T) {
	body := `{"model":"demo-1","input":"Hi","instructions":"Be\nbrief.","metadata":{"a": "b"},"max_output_tokens":16,"max_tool_calls":2,"temperature":0.5,"top_p":0.25,
		"presence_penalty":-1,"frequency_penalty":1e-7,"top_logprobs":3,"reasoning":{"effort":"minimal","summary":"auto"},"parallel_tool_calls":false,
		"text":{"verbosity":"low","format":{"type":"json_schema","name":"n","schema":{"type": "object"}}},"truncation":"auto","service_tier":"flex","store":false,
		"safety_identifier":"s","prompt_cache_key":"k","user":"u","tool_choice":{"type":"allowed_tools","tools":[{"type":"function","name":"dig"}]},
		"tools":[{"type":"function","name":"dig","description":"d","parameters":{"type": "object",
			"properties":{}},"strict":true},{"type":"web_search"},{"type":"function","name":"fill"},{"type":"custom","name":"note"}]}`
	call, _, err := parse(t, numbered(), environment(chatPeer, nil), body)
	if err != nil {
		t.Fatal(err)
	}
	answer := mmsp.AssistantMessage(mmsp.Text("A"))
	answer.FinishReason = mmsp.FinishStop
	answer.Usage = &mmsp.Usage{CachedTokens: new(int64(2)), PromptTokens: new(int64(3)), ThoughtsTokens: new(int64(4)), ResponseTokens: new(int64(5))}
	compare(t, []string{string(call.Whole(nil, &answer))}, []string{`{"id":"resp_a1","object":"response","created_at":1790000000,"completed_at":1790000002,"status":"completed",` +
		`"incomplete_details":null,"model":"demo-1","previous_response_id":null,"instructions":"Be\nbrief.","output":[{"id":"msg_a1","type":"message","status":"completed",` +
		`"role":"assistant","content":[{"type":"output_text","text":"A","annotations":[],"logprobs":[]}]}],"error":null,` +
		`"tools":[{"type":"function","name":"dig","description":"d","parameters":{"type":"object","properties":{}},"strict":true},` +
		`{"type":"function","name":"fill","description":null,"parameters":null,"strict":null},{"type":"custom","name":"note"}],` +
		`"tool_choice":{"mode":"auto","type":"allowed_tools","tools":[{"type":"function","name":"dig"}]},"truncation":"auto","parallel_tool_calls":false,` +
		`"text":{"format":{"type":"json_schema","name":"n","description":null,"schema":{"type":"object"},"strict":false},"verbosity":"low"},"top_p":0.25,"presence_penalty":-1,` +
		`"frequency_penalty":0.0000001,"top_logprobs":3,"temperature":0.5,"reasoning":{"effort":"minimal","summary":"auto"},"usage":{"input_tokens":5,` +
		`"input_tokens_details":{"cached_tokens":2,"cache_write_tokens":0},"output_tokens":9,"output_tokens_details":{"reasoning_tokens":4},"total_tokens":14},` +
		`"max_output_tokens":16,"max_tool_calls":2,"store":false,"background":false,"service_tier":"flex","metadata":{"a":"b"},"safety_identifier":"s",` +
		`"prompt_cache_key":"k","user":"u"}`})
}

func BenchmarkTextDelta(b *testing.B) {
	call, _, err := parse(b, New().(*protocol), environment(chatPeer, nil), ask(""))
	if err != nil {
		b.Fatal(err)
	}
	e := mmsp.Event{Type: mmsp.EventDelta, Item: mmsp.Item{Type: mmsp.TextDelta, Text: " and so the \"story\" goes on"}}
	buffer := make([]byte, 0, 4096)
	buffer = call.Event(buffer, &e)
	b.ReportAllocs()
	for b.Loop() {
		buffer = call.Event(buffer[:0], &e)
	}
}

// TestEndingOfCutCalls: a response that ends in half a call is not completed, whatever the provider says of it.
func TestEndingOfCutCalls(t *testing.T) {
	for _, kind := range []string{"filter", "refusal", "malformed_call"} {
		answer := mmsp.AssistantMessage(mmsp.Item{Type: mmsp.ToolCallDelta, ToolCallID: "c1", Name: "dig", Arguments: `{"n"`})
		answer.FinishReason, answer.StopDetail = mmsp.FinishUnknown, &mmsp.StopDetail{Kind: kind, Text: "No."}
		if status, reason, refusal := ending(&answer); status != "incomplete" || reason != "content_filter" || refusal != "" {
			t.Errorf("%s: %s %s %q", kind, status, reason, refusal)
		}
	}
}
