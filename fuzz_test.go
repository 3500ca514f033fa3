package mmsp_test

import (
	"encoding/json"
	"errors"
	"testing"

	. "github.com/prism-shadow/mmsp-go"
)

// deltasOf reads deltas out of bytes: two for the kind, id and header, the rest of a delta is its content.
func deltasOf(script []byte) (deltas []Delta) {
	kinds := []ItemType{TextDelta, ThinkingDelta, ToolCallDelta, ToolCallDelta, ToolCallDelta, InlineDataDelta, InlineThinkingDelta, EmbeddingDelta}
	for len(script) >= 3 && len(deltas) < 1000 {
		kind, head, size := script[0], script[1], int(script[2])%24
		script = script[3:]
		content := string(script[:min(size, len(script))])
		script = script[len(content):]

		d := Delta{Item: Item{Type: kinds[kind%8]}, ItemID: []string{"", "1", "2", "3"}[head%4]}
		switch d.Type {
		case TextDelta:
			d.Text = content
		case ThinkingDelta:
			d.Thinking = content
		case ToolCallDelta:
			d.Arguments = content
			d.Name = []string{"", "f", "g", ""}[head>>2%4]
			d.ToolCallID = []string{"", "c1", "c2", ""}[head>>4%4]
			d.Call = CallRef{Keyed: kind&8 != 0, Index: int(head>>6) - 1}
		case InlineDataDelta, InlineThinkingDelta:
			d.Data, d.MimeType = []byte(content), []string{"image/png", "audio/pcm", ""}[head>>2%3]
		case EmbeddingDelta:
			for _, c := range content {
				d.Embedding = append(d.Embedding, float64(c)/3)
			}
		}
		switch kind >> 4 {
		case 1:
			d.Fidelity = Fidelity(`{"s":1}`)
		case 2:
			d.Fidelity = Fidelity(`{"s": 1}`)
		case 3:
			d.Fidelity = Fidelity(`{"s":2}`)
		case 4:
			d.Fidelity = Fidelity(`{}`)
		case 5:
			d.Type = ItemType(content)
		}
		deltas = append(deltas, d)
	}
	return deltas
}

// Whatever deltas come, nothing panics, errors are typed, and what comes out keeps to the grammar.
func FuzzStreamItems(f *testing.F) {
	f.Add([]byte("\x00\x01\x02Go\x00\x01\x02od\x11\x01\x00\x02\x15\x02{}"))
	f.Add([]byte("\x0a\x55\x01{\x0a\x9a\x01{\x0a\x40\x01}\x0a\x80\x01}"))
	f.Add([]byte("\x06\x01\x03abc\x11\x01\x00\x07\x00\x02ab\x05\x04\x02ab\x05\x04\x02ab"))
	f.Add([]byte("\x00\x01\x02Go\x00\x01\x02o\x00\x02\x15\x02{}d\x11\x01\x00"))
	f.Fuzz(func(t *testing.T, script []byte) {
		var checker GrammarChecker
		judge := func(out []Item, err error) bool {
			for _, item := range out {
				if violation := checker.Event(&Event{Type: EventDelta, Item: item, CreatedAt: 1}); violation != nil {
					t.Fatal(violation)
				}
			}
			var broken *StreamProtocolError
			var arguments *ToolCallArgumentParseError
			if err != nil && !errors.As(err, &broken) && !errors.As(err, &arguments) {
				t.Fatalf("%T: %v", err, err)
			}
			return err == nil
		}
		items := NewStreamItems("TestClient")
		for _, delta := range deltasOf(script) {
			if !judge(items.Push(&delta)) {
				return
			}
		}
		if !judge(items.Close()) {
			return
		}
		if err := checker.Event(&Event{Type: EventStop, FinishReason: FinishStop, Usage: &Usage{}, CreatedAt: 1}); err != nil {
			t.Fatal(err)
		}
	})
}

// Whatever text comes, nothing panics, and what can be read is written as JSON that reads as the same.
func FuzzWireJSON(f *testing.F) {
	for _, seed := range []string{
		`[{"role":"user","content_items":[{"type":"text.done","text":"a","fidelity":{"a":1},"x":[]}],"y":1}]`,
		`[{"role":"assistant","content_items":[{"data":"AP8=","mime_type":"image/png","type":"inline_data.done"},{"type":"tool_call.done","name":"f","arguments":{"n":18446744073709551615},"tool_call_id":"c"}]}]`,
		`[{"content_items":[{"type":"thinking","thinking":"a","fidelity":{"b":[{"type":"reasoning","summary":[],"content":null,"signature":"s"}],"c":null}}]}]`,
		`[{"content_items":[{"type":"","type":"tool_call","tool_call_id":"c"}]}]`,
		`{"event_type":"stop","usage_metadata":{"prompt_tokens":1e3},"finish_reason":"unknown","stop_detail":{"kind":"filter","text":"x"},"created_at":5,"z":{}}`,
		`{"event_type":"delta","content_items":[{"type":"embedding.done","embedding":[1,2.5e-7]},{}]}`,
		`{"max_tokens":1,"tools":[{"name":"f","parameters":{}}],"tool_choice":["a"],"image_config":{},"tts_config":[{"voice":"v"}],"embedding_config":{"dimensions":1},"q":"ü"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		same := func(first, second []byte, err error) {
			t.Helper()
			if err != nil || string(first) != string(second) || !json.Valid(first) {
				t.Fatalf("%q was read and written as\n%s\nthen, with error %v, as\n%s", text, first, err, second)
			}
		}
		for _, relay := range []bool{true, false} {
			messages, err := ParseMessages(text, relay)
			if err != nil {
				continue
			}
			first := marshalMessages(messages)
			again, err := ParseMessages(first, relay)
			same(first, marshalMessages(again), err)
			normal := NormalizeLegacy(messages)
			if Validate(normal) == nil && !json.Valid(marshalMessages(normal)) {
				t.Fatalf("%q became %s", text, marshalMessages(normal))
			}
			same(first, marshalMessages(messages), nil)
		}
		if config, err := ParseConfig(text); err == nil {
			first := config.AppendJSON(nil)
			again, err := ParseConfig(first)
			same(first, again.AppendJSON(nil), err)
		}
		if event, _, err := ParseEvent(text); err == nil {
			first := event.AppendJSON(nil)
			again, _, err := ParseEvent(first)
			same(first, again.AppendJSON(nil), err)
		}
		if request, err := ParseStreamRequest(text); err == nil && (!json.Valid(request.Messages) || request.Config != nil && !json.Valid(request.Config)) {
			t.Fatalf("%q was taken as %+v", text, request)
		}
	})
}
