package openairesponses

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestEncode(t *testing.T) {
	request := Request{
		Model: "m", Stream: true, Include: []string{"reasoning.encrypted_content"}, Instructions: new("<é>"), MaxOutputTokens: new(int64(9)),
		Temperature: new(0.5), Reasoning: &Reasoning{Effort: "low"}, Tools: &[]Tool{Tool(`{"name":"f","description":"d"}`)},
		ToolChoice:  AllowedToolChoice{Type: "allowed_tools", Mode: "required", Tools: []FunctionTool{{Type: "function", Name: "f"}}},
		ServiceTier: "priority",
		Input: []any{
			Message{Type: "message", Role: "user", Content: []ContentPart{{Type: "input_text", Text: new("")}, {Type: "input_image", ImageURL: "u", Detail: "high"}}},
			ReasoningItem{Type: "reasoning", Summary: []ContentPart{}},
			ReasoningItem{Type: "reasoning", Content: []ContentPart{{Type: "reasoning_text", Text: new("t")}}, EncryptedContent: "E", Signature: "S", Format: "F"},
			FunctionCall{Type: "function_call", CallID: "c", Name: "f", Arguments: "{}"},
			FunctionCallOutput{Type: "function_call_output", CallID: "c", Output: ""},
		},
	}
	want := `{"model":"m","store":false,"include":["reasoning.encrypted_content"],"stream":true,"instructions":"<é>","max_output_tokens":9,` +
		`"temperature":0.5,"reasoning":{"effort":"low"},"tools":[{"type":"function","name":"f","description":"d"}],` +
		`"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"f"}]},"service_tier":"priority","input":[` +
		`{"type":"message","role":"user","content":[{"type":"input_text","text":""},{"type":"input_image","image_url":"u","detail":"high"}]},` +
		`{"type":"reasoning","summary":[]},` +
		`{"type":"reasoning","content":[{"type":"reasoning_text","text":"t"}],"encrypted_content":"E","signature":"S","format":"F"},` +
		`{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},` +
		`{"type":"function_call_output","call_id":"c","output":""}]}`
	if got, err := request.Encode(); err != nil || string(got) != want {
		t.Errorf("got  %s %v\nwant %s", got, err, want)
	}
}

func TestDecode(t *testing.T) {
	event := func(e Event) Event { // with what most events lack
		if e.PartIndex == 0 {
			e.PartIndex = -1
		}
		return e
	}
	for _, c := range []struct {
		data string
		want Event
	}{
		{
			`{"type":"response.output_text.delta","output_index":3,"content_index":2,"item_id":"m","delta":"a\nb","obfuscation":"xx"}`,
			Event{Type: EventOutputTextDelta, OutputIndex: 3, PartIndex: 2, ItemID: "m", Part: Part{PartOutputText, "a\nb"}},
		},
		{
			` { "delta" : "x", "item_id":null , "sequence_number": 4, "type":"response.output_text.delta" } `,
			event(Event{Type: EventOutputTextDelta, OutputIndex: -1, Part: Part{PartOutputText, "x"}}),
		},
		{
			`{"type":"response.output_text.delta","delta":{"a":1},"output_index":"3","content_index":-1}`,
			event(Event{Type: EventOutputTextDelta, OutputIndex: -1, Part: Part{PartOutputText, ""}}),
		},
		{
			`{"type":"response.output_text.done","output_index":0,"text":"whole","logprobs":[]}`,
			event(Event{Type: EventOutputTextDone, Part: Part{PartOutputText, "whole"}}),
		},
		{`{"type":"response.refusal.delta","output_index":0,"delta":"no"}`, event(Event{Type: EventRefusalDelta, Part: Part{PartRefusal, "no"}})},
		{`{"type":"response.refusal.done","output_index":0,"refusal":"no"}`, event(Event{Type: EventRefusalDone, Part: Part{PartRefusal, "no"}})},
		{`{"type":"response.reasoning_text.delta","output_index":0,"delta":"r"}`, event(Event{Type: EventReasoningTextDelta, Part: Part{PartReasoningText, "r"}})},
		{`{"type":"response.reasoning.delta","output_index":0,"delta":"r"}`, event(Event{Type: EventReasoningDelta, Part: Part{PartReasoningText, "r"}})},
		{
			`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":1,"delta":"s"}`,
			Event{Type: EventReasoningSummaryTextDelta, PartIndex: 1, Part: Part{PartSummaryText, "s"}},
		},
		{
			`{"type":"response.content_part.done","output_index":0,"part":{"type":"refusal","refusal":"no"}}`,
			event(Event{Type: EventContentPartDone, Part: Part{PartRefusal, "no"}}),
		},
		{`{"type":"response.content_part.added","output_index":0,"part":{"type":"output_text","text":"x"}}`, event(Event{Type: EventContentPartAdded})},
		{
			`{"type":"response.reasoning_summary_part.done","output_index":0,"part":{"text":"s","type":"summary_text"}}`,
			event(Event{Type: EventReasoningSummaryPartDone, Part: Part{PartSummaryText, "s"}}),
		},
		{
			`{"type":"response.function_call_arguments.delta","output_index":1,"item_id":"f","delta":"{\"a\":"}`,
			event(Event{Type: EventFunctionCallArgumentsDelta, OutputIndex: 1, ItemID: "f", Arguments: `{"a":`}),
		},
		{
			`{"type":"response.function_call_arguments.done","output_index":1,"arguments":{"a": 1}}`,
			event(Event{Type: EventFunctionCallArgumentsDone, OutputIndex: 1, Arguments: `{"a": 1}`}),
		},
		{
			`{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"f","call_id":"c","name":"n","arguments":"{}","encrypted_content":"HALF"}}`,
			event(Event{Type: EventOutputItemAdded, Item: Item{Type: ItemFunctionCall, ID: "f", CallID: "c", Name: "n"}}),
		},
		{
			`{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m","phase":"commentary","content":[{"type":"output_text","text":"x"}]}}`,
			event(Event{Type: EventOutputItemAdded, Item: Item{Type: ItemMessage, ID: "m", Phase: "commentary"}}),
		},
		{
			`{"type":"response.output_item.done","output_index":0,"item":{"id":"r","summary":[{"type":"summary_text","text":"s"}],"content":[],"encrypted_content":"E","signature":null,"format":"F","type":"reasoning"}}`,
			event(Event{Type: EventOutputItemDone, Item: Item{
				Type: ItemReasoning, ID: "r", Summary: []Part{{PartSummaryText, "s"}}, EncryptedContent: "E", Format: "F",
			}}),
		},
		{
			`{"type":"response.completed","response":{"id":"x","output":[{"type":"message"}],"status":"completed","error":null,"usage":{"input_tokens":5,"output_tokens":4,"input_tokens_details":{"cached_tokens":3},"output_tokens_details":{"reasoning_tokens":2}}}}`,
			event(Event{Type: EventCompleted, OutputIndex: -1, Response: Response{Status: "completed", Usage: &Usage{new(int64(5)), new(int64(4)), new(int64(3)), new(int64(2))}}}),
		},
		{
			`{"type":"response.completed","response":{"status":"incomplete","incomplete_details":{"reason":"content_filter"},"usage":null}}`,
			event(Event{Type: EventIncomplete, OutputIndex: -1, Response: Response{Status: "incomplete", IncompleteReason: "content_filter"}}),
		},
		{`{"type":"response.completed"}`, event(Event{Type: EventCompleted, OutputIndex: -1})},
		{
			`{"type":"response.failed","response":{"status":"failed","error":{"code":"c"}}}`,
			event(Event{Type: EventFailed, OutputIndex: -1, Response: Response{Status: "failed"}, Error: json.RawMessage(`{"code":"c"}`)}),
		},
		{`{"type":"response.created","response":{"status":"in_progress","error":{"code":"c"}}}`, event(Event{Type: EventCreated, OutputIndex: -1})},
		{`{"type":"error","code":"c","message":"m"}`, event(Event{Type: EventError, OutputIndex: -1, Error: json.RawMessage(`{"type":"error","code":"c","message":"m"}`)})},
		{`{"error":"broken"}`, event(Event{OutputIndex: -1, Error: json.RawMessage(`{"error":"broken"}`)})},
		{`{"type":"response.code_interpreter_call_code.delta","delta":"print"}`, event(Event{Type: "response.code_interpreter_call_code.delta", OutputIndex: -1})},
		{`[1]`, event(Event{OutputIndex: -1})},
	} {
		var d Decoder
		for range 2 { // the second time into used memory
			got, err := d.Decode([]byte(c.data))
			if err != nil {
				t.Fatalf("%s: %v", c.data, err)
			}
			if len(got.Item.Content) == 0 {
				got.Item.Content = nil
			}
			if len(got.Item.Summary) == 0 {
				got.Item.Summary = nil
			}
			if !reflect.DeepEqual(*got, c.want) {
				t.Errorf("%s:\ngot  %+v\nwant %+v", c.data, *got, c.want)
			}
		}
	}
	for _, data := range []string{``, `{`, `{"type":"response.completed"`, `{"type":"a"}x`, `ping`} {
		if _, err := new(Decoder).Decode([]byte(data)); err == nil {
			t.Errorf("%q is read", data)
		}
	}
}

// line puts an event in a few words.
func line(e *Event) string {
	parts := []string{strings.TrimPrefix(e.Type, "response.")}
	if strings.Contains(e.Type, "item") && e.Item.Type == "" {
		return "nothing"
	}
	for _, part := range append(append([]Part{e.Part}, e.Item.Summary...), e.Item.Content...) {
		if part.Text != "" {
			parts = append(parts, part.Text)
		}
	}
	for _, part := range []string{e.Item.Name, e.Arguments, e.Item.Arguments, e.Item.Phase, string(e.Error)} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if e.CallID != "" {
		parts = append(parts, fmt.Sprint("of ", e.CallID, " at ", e.OutputIndex))
	}
	return strings.Join(parts, " ")
}

func TestUnroll(t *testing.T) {
	const output = `"output":[{"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":"s"}]},` +
		`{"type":"web_search_call","id":"w"},{"type":"message","content":[{"type":"output_text","text":"t"},{"type":"refusal","refusal":"no"}],"phase":"p"},` +
		`{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}]`
	whole := []string{"output_item.done s", "output_item.done", "output_item.done t no p", "output_item.done f {}"}
	for _, c := range []struct {
		body string
		want []string
	}{
		{`{"object":"response",` + output + `,"status":"completed","error":null}`, append(whole[:4:4], "completed")},
		{`{"object":"response",` + output + `,"status":"incomplete"}`, append(whole[:4:4], "incomplete")},
		{`{"object":"response",` + output + `,"status":"anything"}`, append(whole[:4:4], "completed")},
		{`{"object":"response",` + output + `,"status":"failed","error":{"code":"c"}}`, append(whole[:4:4], `failed {"code":"c"}`)},
		{`{"status":"queued","output":[]}`, nil},
		{`{"status":"in_progress"}`, nil},
		{`{"status":"failed","error":{"code":"c"}}`, []string{`failed {"code":"c"}`}},
		{`{"status":"cancelled","output":[]}`, []string{`cancelled {"type":"cancelled","message":"the response was cancelled"}`}},
		{`{"response":{"output":[],"status":"in_progress"},"type":"response.incomplete"}`, []string{"incomplete"}},
		{`{"error":{"code":"c"}}`, []string{"error"}},
		{`{"type":"response.completed","response":{}}`, []string{"error"}},
		{`{"output":[{]}`, []string{"error"}},
		{`[]`, []string{"error"}},
	} {
		var got []string
		for event, err := range new(Decoder).Unroll([]byte(c.body)) {
			if err != nil {
				got = append(got, "error")
			} else {
				got = append(got, line(event))
			}
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\ngot  %q\nwant %q", c.body, got, c.want)
		}
	}
}

func TestTracker(t *testing.T) {
	const (
		addedM = `{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m","phase":"p"}}`
		deltaM = `{"type":"response.output_text.delta","output_index":0,"content_index":0,"item_id":"m","delta":"ab"}`
		textM  = `{"type":"response.output_text.done","output_index":0,"content_index":0,"item_id":"m","text":"ab"}`
		partM  = `{"type":"response.content_part.done","output_index":0,"content_index":0,"item_id":"m","part":{"type":"output_text","text":"ab"}}`
		doneM  = `{"type":"response.output_item.done","output_index":0,"item":{"type":"message","id":"m","phase":"p","content":[{"type":"output_text","text":"ab"}]}}`
		addedR = `{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"r"}}`
		doneR  = `{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"r","summary":[{"type":"summary_text","text":"s"}],"content":[{"type":"reasoning_text","text":"r"}]}}`
		addedC = `{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"f","call_id":"c","name":"n"}}`
		deltaC = `{"type":"response.function_call_arguments.delta","output_index":0,"item_id":"f","delta":"{}"}`
		argsC  = `{"type":"response.function_call_arguments.done","output_index":0,"item_id":"f","arguments":"{}"}`
		doneC  = `{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"f","call_id":"c","name":"n","arguments":"{}"}}`
	)
	for _, c := range []struct {
		name   string
		events []string
		want   string // one line each
	}{
		{"all four times", []string{addedM, deltaM, textM, partM, doneM}, "output_item.added p/output_text.delta ab/output_text.done/content_part.done/output_item.done"},
		{"text.done alone", []string{addedM, textM, partM, doneM}, "output_item.added p/output_text.done ab/content_part.done/output_item.done"},
		{"part.done alone", []string{addedM, partM, doneM}, "output_item.added p/content_part.done ab/output_item.done"},
		{"item.done alone", []string{addedM, doneM}, "output_item.added p/output_item.done ab"},
		{"item.done unannounced", []string{doneM, doneM}, "output_item.done ab p/nothing"},
		{"keyless deltas", []string{`{"type":"response.output_text.delta","delta":"ab"}`, textM, doneM}, "output_text.delta ab/output_text.done/output_item.done"},
		{
			"a second part without deltas",
			[]string{addedM, deltaM, strings.ReplaceAll(textM, `"content_index":0`, `"content_index":1`), doneM},
			"output_item.added p/output_text.delta ab/output_text.done ab/output_item.done",
		},
		{
			"parts that are not numbered",
			[]string{addedM, strings.ReplaceAll(deltaM, `"content_index":0,`, ``), textM, doneM},
			"output_item.added p/output_text.delta ab/output_text.done/output_item.done",
		},
		{
			"another id on the deltas",
			[]string{strings.ReplaceAll(addedM, `"output_index":0,`, ``), strings.ReplaceAll(strings.ReplaceAll(deltaM, `"m"`, `"x"`), `"output_index":0,`, ``), doneM},
			"output_item.added p/output_text.delta ab/output_item.done",
		},
		{
			"two messages, the second without deltas",
			[]string{addedM, deltaM, doneM, strings.ReplaceAll(doneM, `"m"`, `"m2"`)},
			"output_item.added p/output_text.delta ab/output_item.done/output_item.done ab p",
		},
		{"reasoning whole", []string{addedR, doneR}, "output_item.added/output_item.done s r"},
		{"reasoning and summary in fragments", []string{
			addedR, `{"type":"response.reasoning_summary_text.delta","output_index":0,"item_id":"r","summary_index":0,"delta":"s"}`,
			`{"type":"response.reasoning_text.done","output_index":0,"item_id":"r","content_index":0,"text":"r"}`, doneR,
		}, "output_item.added/reasoning_summary_text.delta s/reasoning_text.done r/output_item.done"},
		{"call in fragments", []string{addedC, deltaC, argsC, doneC}, "output_item.added n/function_call_arguments.delta {} of c at 0/function_call_arguments.done/output_item.done"},
		{"call with arguments.done alone", []string{addedC, argsC, doneC}, "output_item.added n/function_call_arguments.done {} of c at 0/output_item.done"},
		{"call with item.done alone", []string{addedC, doneC}, "output_item.added n/output_item.done {}"},
		{"call unannounced", []string{deltaC, argsC, doneC, doneC}, "function_call_arguments.delta/function_call_arguments.done/output_item.done n {}/nothing"},
		{"call announced without a name", []string{strings.ReplaceAll(addedC, `"n"`, `null`), deltaC, doneC}, "nothing/function_call_arguments.delta/output_item.done n {}"},
		{"call without any ids", []string{
			`{"type":"response.output_item.added","item":{"type":"function_call","id":null,"call_id":"c","name":"n"}}`,
			`{"type":"response.function_call_arguments.delta","item_id":null,"delta":"{}"}`,
			`{"type":"response.output_item.done","item":{"type":"function_call","id":null,"call_id":"c","name":"n","arguments":"{}"}}`,
		}, "output_item.added n/function_call_arguments.delta {} of c at -1/output_item.done"},
		{"arguments under another id", []string{addedC, strings.ReplaceAll(deltaC, `"f"`, `"x"`), doneC}, "output_item.added n/function_call_arguments.delta {} of c at 0/output_item.done"},
		{"interleaved by id", []string{
			strings.ReplaceAll(addedC, `"output_index":0,`, ``), strings.ReplaceAll(strings.NewReplacer(`"f"`, `"f2"`, `"c"`, `"c2"`).Replace(addedC), `"output_index":0,`, ``),
			strings.ReplaceAll(deltaC, `"output_index":0,`, ``), strings.ReplaceAll(strings.ReplaceAll(deltaC, `"f"`, `"f2"`), `"output_index":0,`, ``),
		}, "output_item.added n/output_item.added n/function_call_arguments.delta {} of c at -1/function_call_arguments.delta {} of c2 at -1"},
	} {
		var d Decoder
		var tracker Tracker
		var got []string
		for _, data := range c.events {
			event, err := d.Decode([]byte(data))
			if err != nil {
				t.Fatal(err)
			}
			tracker.Trim(event)
			got = append(got, line(event))
		}
		if joined := strings.Join(got, "/"); joined != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, joined, c.want)
		}
	}
}

// TestTrackerOfManyParts: of however many parts of an item each is told once, with fragments before it or without.
func TestTrackerOfManyParts(t *testing.T) {
	for _, c := range []struct {
		name, delta, done string // with the number of the part as N
	}{
		{"texts", "", `{"type":"response.output_text.done","item_id":"m","content_index":N,"text":"N "}`},
		{"texts in fragments", `{"type":"response.output_text.delta","item_id":"m","content_index":N,"delta":"N "}`, `{"type":"response.output_text.done","item_id":"m","content_index":N,"text":"N "}`},
		{"texts in fragments without numbers", `{"type":"response.output_text.delta","item_id":"m","delta":"N "}`, `{"type":"response.output_text.done","item_id":"m","content_index":N,"text":"N "}`},
		{"summaries", "", `{"type":"response.reasoning_summary_part.done","item_id":"r","summary_index":N,"part":{"type":"summary_text","text":"N "}}`},
		{"reasoning", "", `{"type":"response.reasoning_text.done","item_id":"r","content_index":N,"text":"N "}`},
	} {
		var d Decoder
		var tracker Tracker
		var got, want strings.Builder
		for part := range 70 {
			for _, data := range []string{c.delta, c.done, c.done} {
				if data == "" {
					continue
				}
				event, err := d.Decode([]byte(strings.ReplaceAll(data, "N", fmt.Sprint(part))))
				if err != nil {
					t.Fatal(err)
				}
				tracker.Trim(event)
				got.WriteString(event.Part.Text)
			}
			fmt.Fprint(&want, part, " ")
		}
		if got.String() != want.String() {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, &got, &want)
		}
	}
}

func TestTrackerForgetsTheOldest(t *testing.T) {
	var tracker Tracker
	for i := range 3 * maxTracked {
		tracker.Trim(&Event{Type: EventOutputItemAdded, OutputIndex: i, Item: Item{Type: ItemMessage, ID: fmt.Sprint(i)}})
	}
	if n := len(tracker.items); n != maxTracked || tracker.items[n-1].index != 3*maxTracked-1 {
		t.Errorf("%d items", n)
	}
}

func TestTextDeltaAllocatesItsTextAlone(t *testing.T) {
	data := []byte(`{"type":"response.output_text.delta","content_index":0,"delta":" capital","item_id":"msg_0fabc13af1ee0049006a691e008ed881a1","logprobs":[],"output_index":0}`)
	var d Decoder
	var tracker Tracker
	read := func() {
		event, err := d.Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		tracker.Trim(event)
	}
	read()
	if n := testing.AllocsPerRun(100, read); n != 1 {
		t.Errorf("%v allocations", n)
	}
}

// TestDecodeRepeats: an event that differs from the one before in a text alone is read as it is by itself.
func TestDecodeRepeats(t *testing.T) {
	for _, format := range []string{
		`{"type":"response.output_text.delta","sequence_number":%[2]d,"item_id":"i","output_index":0,"delta":"%[1]s","obfuscation":"%[1]s"}`,
		`{"type":"response.output_text.delta","sequence_number":%[2]d,"item_id":"%[1]s","output_index":0,"delta":"a"}`,
		`{"type":"response.output_text.delta","sequence_number":1,"output_index":%[2]d,"delta":"%[1]s"}`,
		`{"type":"response.output_text.delta","sequence_number":%[2]d,"delta":"%[1]s","delta":1}`,
		`{"type":"response.output_text.delta","sequence_number":%[2]d,"delta":"%[1]s","text":"a"}`,
		`{"type":"response.output_text.delta","sequence_number":%[2]d,"text":"a","delta":null}`,
		`{"type":"response.output_text.delta","sequence_number":%[2]d,"delta":"%[1]s","delta":"a"}`,
		`{"type":"response.output_text.delta",    "item_id":"%[1]s","delta":"a"}`, // where the padding stood before
		`{"type":"response.output_text.done","sequence_number":%[2]d,"text":"%[1]s"}`,
		`{"type":"response.content_part.done","sequence_number":%[2]d,"part":{"type":"output_text"},"text":"a","part":{"text":"b"}}`,
		`{"type":"response.output_text.delta","sequence_number":%[2]d,"delta":"%[1]s","error":{"message":"m"}}`,
		`{"type":"response.function_call_arguments.delta","sequence_number":%[2]d,"item_id":"i","delta":"%[1]s"}`,
		`{"type":"response.content_part.done","sequence_number":%[2]d,"part":{"type":"output_text","text":"%[1]s"},"text":"%[1]s"}`,
	} {
		var d Decoder
		var tracker Tracker
		_, _ = d.Decode([]byte(`{"type":"response.output_text.delta","obfuscation":"one","delta":"x"}`))
		first, second := fmt.Appendf(nil, format, "one", 1), fmt.Appendf(nil, format, "another", 22)
		event, err := d.Decode(first)
		if err != nil {
			t.Fatal(err)
		}
		tracker.Trim(event)
		clear(first) // the buffer is used again
		got, _ := d.Decode(second)
		if want, err := new(Decoder).Decode(second); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v (%v)", format, got, want, err)
		}
	}
}

// FuzzDecode looks for panics, for text that is not what encoding/json reads, and for events that are read otherwise after
// others than by themselves.
func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"type":"response.output_text.delta","delta":"a\u00e9` + "\xff\xfe" + `"}` + "\n" + `{"type":"response.output_item.done","item":{"type":"message","content":[{"type":"output_text","text":"a"}]}}`))
	f.Add([]byte(`{"type":"response.output_text.delta","sequence_number":1,"delta":"a","obfuscation":"x"}` + "\n" +
		`{"type":"response.output_text.delta","sequence_number":2,"delta":"bc","obfuscation":""}` + "\n"))
	f.Add([]byte(`{"type":"response.completed","response":{"status":"completed","output":[{"type":"function_call","arguments":{}}],"usage":{}}}`))
	f.Add([]byte(`{"object":"response","status":"failed","output":[],"error":{"code":1}}`))
	f.Fuzz(func(t *testing.T, stream []byte) {
		var d Decoder
		var tracker Tracker
		for data := range bytes.Lines(stream) {
			event, err := d.Decode(data)
			if err != nil {
				continue
			}
			first, got := *event, *event
			if fresh, err := new(Decoder).Decode(data); err == nil {
				first = *fresh
			}
			first.Item, got.Item = Item{}, Item{}
			if !reflect.DeepEqual(first, got) {
				t.Fatalf("%s: read %+v, by itself %+v", data, got, first)
			}
			var want struct {
				Type  string
				Delta string
			}
			if json.Valid(data) && json.Unmarshal(data, &want) == nil && event.Type == want.Type && event.Type == EventOutputTextDelta &&
				strings.Count(string(data), `"delta"`) == 1 && bytes.Count(bytes.ToLower(data), []byte("delta")) == 2 && event.Part.Text != want.Delta {
				t.Fatalf("%s: read %q, want %q", data, event.Part.Text, want.Delta)
			}
			tracker.Trim(event)
		}
		for event, err := range new(Decoder).Unroll(stream) {
			if err == nil {
				tracker.Trim(event)
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	data := []byte(`{"type":"response.output_text.delta","content_index":0,"delta":" capital","item_id":"msg_0fabc13af1ee0049006a691e008ed881a1","logprobs":[],"obfuscation":"7Vbd90o7","output_index":0,"sequence_number":6}`)
	var d Decoder
	var tracker Tracker
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		event, _ := d.Decode(data)
		tracker.Trim(event)
	}
}
