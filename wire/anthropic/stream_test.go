package anthropic

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

func TestDecode(t *testing.T) {
	table := []struct {
		name  string
		event string // its name, if any
		data  string
		want  Event // without Data
	}{
		{
			"message start", "message_start",
			`{"type":"message_start","message":{"id":"m","content":[],"usage":{"input_tokens":3,"cache_creation_input_tokens":null,"cache_read_input_tokens":0,"output_tokens":1}}}`,
			Event{Type: "message_start", Usage: &Usage{InputTokens: new(int64(3)), CacheReadInputTokens: new(int64(0)), OutputTokens: new(int64(1))}},
		},
		{"message start without usage", "", `{"type":"message_start","message":{"usage":null}}`, Event{Type: "message_start"}},
		{
			"text", "content_block_delta", `{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"é\n\u00e9"}}`,
			Event{Type: "content_block_delta", Index: 2, Delta: Delta{Type: "text_delta", Text: "é\né"}},
		},
		{
			"keys in another order, and unknown ones", "", `{"x":[{}],"delta":{"thinking":"t","y":{},"type":"thinking_delta"},"index":1,"type":"content_block_delta"}`,
			Event{Type: "content_block_delta", Index: 1, Delta: Delta{Type: "thinking_delta", Thinking: "t"}},
		},
		{
			"signature", "", `{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"U0lH"}}`,
			Event{Type: "content_block_delta", Delta: Delta{Type: "signature_delta", Signature: "U0lH"}},
		},
		{
			"arguments", "", `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}`,
			Event{Type: "content_block_delta", Delta: Delta{Type: "input_json_delta", PartialJSON: `{"a":`}},
		},
		{
			"tool use with its input", "", `{"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"t","name":"f","input":{"n": 9007199254740993}}}`,
			Event{Type: "content_block_start", Index: 3, ContentBlock: ContentBlock{Type: "tool_use", ID: "t", Name: "f", Input: []byte(`{"n": 9007199254740993}`)}},
		},
		{
			"tool use with an input that is no object", "", `{"type":"content_block_start","content_block":{"type":"tool_use","input":"{}"}}`,
			Event{Type: "content_block_start", ContentBlock: ContentBlock{Type: "tool_use"}},
		},
		{
			"whole thinking", "", `{"type":"content_block_start","content_block":{"type":"thinking","thinking":"t","signature":"s"}}`,
			Event{Type: "content_block_start", ContentBlock: ContentBlock{Type: "thinking", Thinking: "t", Signature: "s"}},
		},
		{
			"redacted thinking", "", `{"type":"content_block_start","content_block":{"type":"redacted_thinking","data":"RU5D"}}`,
			Event{Type: "content_block_start", ContentBlock: ContentBlock{Type: "redacted_thinking", Data: "RU5D"}},
		},
		{
			"message delta", "", `{"type":"message_delta","delta":{"stop_reason":"stop_sequence","stop_sequence":"END","stop_details":null},"usage":{"output_tokens":9,"output_tokens_details":{"thinking_tokens":4}}}`,
			Event{Type: "message_delta", Delta: Delta{StopReason: "stop_sequence", StopSequence: "END"}, Usage: &Usage{OutputTokens: new(int64(9)), ThinkingTokens: new(int64(4))}},
		},
		{
			"refusal", "", `{"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":{"type":"refusal","category":"cyber","explanation":"no"}},"usage":3}`,
			Event{Type: "message_delta", Delta: Delta{StopReason: "refusal", StopDetails: StopDetails{Category: "cyber", Explanation: "no"}}},
		},
		{"values of other kinds", "", `{"type":"content_block_delta","index":"1","delta":{"type":"text_delta","text":7}}`, Event{Type: "content_block_delta", Delta: Delta{Type: "text_delta"}}},
		{"an index out of range", "", `{"type":"content_block_stop","index":-1}`, Event{Type: "content_block_stop"}},
		{"no type, but a name", "message_stop", `{}`, Event{Type: "message_stop"}},
		{"another type under a known name", "message_delta", `{"type":"cost_ticker"}`, Event{Type: "cost_ticker"}},
		{"an error by its type", "", `{"type":"error","error":{"type":"overloaded_error"}}`, Event{Type: "error"}},
		{"an error object alone", "", `{"error":{"message":"m"}}`, Event{Type: "error"}},
		{"no error", "", `{"error":null}`, Event{}},
		{"an error under a foreign type", "", `{"type":"gateway_error","error":{}}`, Event{Type: "gateway_error"}},
		{"a foreign name is not looked into", "heartbeat", `not JSON`, Event{Type: "heartbeat"}},
		{"an error name", "error", `not JSON`, Event{Type: "error"}},
		{"no object", "", `[]`, Event{}},
	}
	var decoder Decoder
	for _, row := range table {
		t.Run(row.name, func(t *testing.T) {
			got, err := decoder.Decode([]byte(row.event), []byte(row.data))
			if err != nil {
				t.Fatal(err)
			}
			row.want.Data = []byte(row.data)
			if !reflect.DeepEqual(*got, row.want) {
				t.Errorf("\n got %+v\nwant %+v", *got, row.want)
			}
		})
	}
}

// TestDecodeRepeats: an event that differs from the one before in a text alone is read as it is by itself.
func TestDecodeRepeats(t *testing.T) {
	for _, format := range []string{
		`{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"%s"}}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"%s","text":"a"}}`,
		`{"type":"content_block_delta","delta":{"type":"text_delta","text":"%s","text":null}}`,
		`{"type":"content_block_delta","delta":{"text":"%s"},"delta":{"text":"a"}}`,
		`{"type":"content_block_delta","delta":{"text":"%s","thinking":"a"}}`,
		`{"type":"content_block_delta","delta":{"text":"%s"},"content_block":{"type":"tool_use","input":{"a":"b"}}}`,
	} {
		var d Decoder
		name, first, second := []byte("content_block_delta"), fmt.Appendf(nil, format, "one"), fmt.Appendf(nil, format, "another")
		if _, err := d.Decode(name, first); err != nil {
			t.Fatal(err)
		}
		clear(first) // the buffer is used again
		got, _ := d.Decode(name, second)
		if want, err := new(Decoder).Decode(name, second); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v (%v)", format, got, want, err)
		}
	}
}

func TestDecodeMalformed(t *testing.T) {
	for _, data := range []string{``, `{`, `{"type":"message_stop"`, `{"type":"message_stop"}x`, `{"index":}`, `{"content_block":{"input":{"a":}}}`} {
		if _, err := new(Decoder).Decode(nil, []byte(data)); err == nil {
			t.Errorf("%s is taken", data)
		}
	}
}

// Text is what streams are made of: it costs the string alone.
func TestDecodeAllocations(t *testing.T) {
	var decoder Decoder
	data := []byte(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a few more words"}}`)
	name := []byte("content_block_delta")
	if n := testing.AllocsPerRun(100, func() { _, _ = decoder.Decode(name, data) }); n > 1 {
		t.Errorf("%v allocations for a text delta, want 1", n)
	}
}

func TestUnroll(t *testing.T) {
	stream, ok := Unroll([]byte("{\n \"id\": \"m\", \"type\": \"message\",\n \"content\": [\n  {\"type\": \"text\", \"text\": \"a\\nb\"},\n" +
		"  {\"type\": \"tool_use\", \"id\": \"t\", \"name\": \"f\", \"input\": {\"n\": 1}}\n ],\n" +
		" \"stop_reason\": \"tool_use\", \"stop_sequence\": null, \"usage\": {\"input_tokens\": 1, \"output_tokens\": 2}\n}"))
	want := `data: {"type":"message_start","message":{"usage":{"input_tokens":1,"output_tokens":2}}}

data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a\nb"}}

data: {"type":"content_block_stop","index":0}

data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"f","input":{"n":1}}}

data: {"type":"content_block_stop","index":1}

data: {"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null,"stop_details":null},"usage":{"input_tokens":1,"output_tokens":2}}

data: {"type":"message_stop"}

`
	if !ok || string(stream) != want {
		t.Errorf("ok %v\n got %s\nwant %s", ok, stream, want)
	}
	for _, body := range []string{``, `[]`, `{}`, `{"type":"error","error":{}}`, `{"type":"message"`, `{"type":"message"}{}`} {
		if stream, ok := Unroll([]byte(body)); ok {
			t.Errorf("%s unrolls to %s", body, stream)
		}
	}
}

// Whatever a provider sends, decoding ends without a panic and an unrolled message decodes.
func FuzzTransform(f *testing.F) {
	for _, data := range []string{
		`{"type":"message_start","message":{"usage":{"input_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"f","input":{"a":[1,"x"]}}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}`,
		`{"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":{"explanation":"no"}},"usage":{"output_tokens":-1e3}}`,
		`{"type":"message","content":[{"type":"text","text":"\ud800"}],"stop_reason":"end_turn","usage":{}}`,
	} {
		f.Add("", []byte(data))
	}
	f.Add("error", []byte("x"))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		var decoder Decoder
		_, _ = decoder.Decode([]byte(name), data)
		stream, ok := Unroll(data)
		if !ok {
			return
		}
		for event := range strings.SplitSeq(strings.TrimSuffix(string(stream), "\n\n"), "\n\n") {
			event, isData := strings.CutPrefix(event, "data: ")
			if _, err := decoder.Decode(nil, []byte(event)); err != nil || !isData || bytes.ContainsAny([]byte(event), "\r\n") {
				t.Fatalf("%s unrolls to %q: %v", data, event, err)
			}
		}
	})
}

// TestLongUnroll: as many pieces as a text may hold become events.
func TestLongUnroll(t *testing.T) {
	for _, row := range []struct{ begin, end string }{
		{`{"type":"message","content":[` + strings.Repeat("0,", jsonscan.MaxNodes-1) + `0`, `]}`},
	} {
		if _, ok := Unroll([]byte(row.begin + row.end)); !ok {
			t.Errorf("%.60s… is not taken", row.begin)
		}
		if stream, ok := Unroll([]byte(row.begin + ",0" + row.end)); ok {
			t.Errorf("%.60s…: %d bytes", row.begin, len(stream))
		}
	}
}
