package interactions

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

func TestEncode(t *testing.T) {
	request := Request{
		Model: "m", Stream: true, ServiceTier: "priority", SystemInstruction: "a < b", ResponseFormat: Format{Type: "audio"},
		GenerationConfig: GenerationConfig{
			MaxOutputTokens: new(int64(1)), ThinkingLevel: "low", ThinkingSummaries: "auto", SpeechConfig: []Voice{{Voice: "v"}, {Speaker: "s", Voice: "w"}},
			ToolChoice: AllowedToolChoice{AllowedTools{Mode: "any", Tools: []string{"f"}}},
		},
		Tools: &[]Tool{Tool(`{"name":"f"}`)},
		Input: []Step{
			{Type: "user_input", Content: []Content{{Type: "text", Text: "é", Annotations: []Annotation{{Type: "speech_metadata", Speaker: "s"}}}}},
			{Type: "thought", Summary: []Content{}, Signature: "S"},
			{Type: "thought", Signature: "S"},
			{Type: "function_call", Name: "f", Arguments: []byte(`{"n": 9007199254740993}`), ID: "c"},
			{Type: "function_result", Name: "f", Result: "", CallID: "c", IsError: true},
			{Type: "function_result", Name: "f", Result: []Content{{Type: "image", Data: "QQ==", MimeType: "image/png"}}},
		},
	}
	const want = `{"model":"m","stream":true,"store":false,"service_tier":"priority","generation_config":{"max_output_tokens":1,"thinking_level":"low",` +
		`"thinking_summaries":"auto","tool_choice":{"allowed_tools":{"mode":"any","tools":["f"]}},"speech_config":[{"voice":"v"},{"speaker":"s","voice":"w"}]},` +
		`"response_format":{"type":"audio"},"system_instruction":"a < b","tools":[{"type":"function","name":"f"}],"input":[` +
		`{"type":"user_input","content":[{"type":"text","text":"é","annotations":[{"type":"speech_metadata","speaker":"s"}]}]},` +
		`{"type":"thought","summary":[],"signature":"S"},{"type":"thought","signature":"S"},` +
		`{"type":"function_call","name":"f","arguments":{"n":9007199254740993},"id":"c"},` +
		`{"type":"function_result","name":"f","result":"","call_id":"c","is_error":true},` +
		`{"type":"function_result","name":"f","result":[{"type":"image","data":"QQ==","mime_type":"image/png"}]}]}`
	if got, err := request.Encode(); err != nil || string(got) != want {
		t.Errorf("%v\n got %s\nwant %s", err, got, want)
	}
	if _, err := (&Request{Input: []Step{{Arguments: []byte(`{`)}}}).Encode(); err == nil {
		t.Error("broken arguments are taken")
	}
}

func TestDecode(t *testing.T) {
	delta := func(d Delta) Event { return Event{Type: "step.delta", Index: 1, Delta: d} }
	table := []struct {
		name  string
		event string // its name, if any
		data  string
		want  Event // without Data
	}{
		{"created", "interaction.created", `{"interaction":{"id":"","status":"in_progress","model":"m"},"event_type":"interaction.created"}`, Event{Type: "interaction.created", Interaction: Interaction{Status: "in_progress"}}},
		{"call", "step.start", `{"index":2,"step":{"id":"c","signature":"","type":"function_call","name":"f","arguments":{}},"event_type":"step.start"}`, Event{Type: "step.start", Index: 2, Start: Start{Type: "function_call", ID: "c", Name: "f"}}},
		{"call with its arguments", "", `{"event_type":"step.start","step":{"type":"function_call","arguments":{"n": 9007199254740993}}}`, Event{Type: "step.start", Start: Start{Type: "function_call", Arguments: []byte(`{"n": 9007199254740993}`)}}},
		{"arguments that are empty", "", `{"event_type":"step.start","step":{"arguments":{ }}}`, Event{Type: "step.start"}},
		{"arguments that are no object", "", `{"event_type":"step.start","step":{"arguments":"{}"}}`, Event{Type: "step.start"}},
		{"text", "", `{"index":1,"delta":{"text":"é\n\u00e9","type":"text"},"event_type":"step.delta"}`, delta(Delta{Type: "text", Text: "é\né"})},
		{"keys in another order, and unknown ones", "", `{"x":[{}],"event_type":"step.delta","delta":{"y":{},"type":"text","text":"t"},"metadata":{"total_usage":{}},"index":1}`, delta(Delta{Type: "text", Text: "t"})},
		{"summary", "", `{"index":1,"delta":{"type":"thought_summary","content":{"type":"text","text":"t"}},"event_type":"step.delta"}`, delta(Delta{Type: "thought_summary", Content: "text", Text: "t"})},
		{"picture in a summary", "", `{"index":1,"delta":{"content":{"type":"image","data":"QUI=","mime_type":"image/png"},"type":"thought_summary"},"event_type":"step.delta"}`, delta(Delta{Type: "thought_summary", Content: "image", Data: []byte("AB"), MimeType: "image/png"})},
		{"signature", "", `{"index":1,"delta":{"signature":"U0lH","type":"thought_signature"},"event_type":"step.delta"}`, delta(Delta{Type: "thought_signature", Signature: "U0lH"})},
		{"arguments", "", `{"index":1,"delta":{"arguments":"{\"a\":","type":"arguments_delta"},"event_type":"step.delta"}`, delta(Delta{Type: "arguments_delta", Arguments: `{"a":`})},
		{"arguments of the provider's own tool", "", `{"index":1,"delta":{"type":"google_search_call","arguments":{"queries":["q"]}},"event_type":"step.delta"}`, delta(Delta{Type: "google_search_call"})},
		{"picture", "", `{"index":1,"delta":{"type":"image","data":"-_8","mime_type":"image/webp"},"event_type":"step.delta"}`, delta(Delta{Type: "image", Data: []byte{0xfb, 0xff}, MimeType: "image/webp"})},
		{"sound", "", `{"index":1,"delta":{"type":"audio","data":"AAE=","mime_type":"audio/l16","sample_rate":24000,"channels":1},"event_type":"step.delta"}`, delta(Delta{Type: "audio", Data: []byte{0, 1}, MimeType: "audio/l16", SampleRate: 24000, Channels: 1})},
		{
			"completed", "", `{"interaction":{"status":"requires_action","usage":{"total_tokens":9,"total_input_tokens":3,"total_cached_tokens":0,"total_output_tokens":-1,"input_tokens_by_modality":[{"tokens":3}]},"error":{}},"event_type":"interaction.completed"}`,
			Event{Type: "interaction.completed", Interaction: Interaction{Status: "requires_action", Usage: &Usage{Input: new(int64(3)), Cached: new(int64(0)), Output: new(int64(-1))}}},
		},
		{"usage of another kind", "", `{"event_type":"interaction.completed","interaction":{"usage":[1]}}`, Event{Type: "interaction.completed"}},
		{"failed", "", `{"event_type":"interaction.completed","interaction":{"status":"failed","error":{"code":"x"}}}`, Event{Type: "interaction.completed", Interaction: Interaction{Status: "failed"}, Error: []byte(`{"code":"x"}`)}},
		{"error", "error", `{"event_type":"error","error":{"code":"x"}}`, Event{Type: "error", Error: []byte(`{"event_type":"error","error":{"code":"x"}}`)}},
		{"error by its name", "error", `{"message":"m"}`, Event{Type: "error", Error: []byte(`{"message":"m"}`)}},
		{"an error object alone", "", `{"error":"m"}`, Event{Type: "error", Error: []byte(`{"error":"m"}`)}},
		{"error without an error", "error", `{"event_type":"error"}`, Event{Type: "error"}},
		{"no error", "", `{"error":null}`, Event{}},
		{"an error under a foreign type", "", `{"event_type":"gateway.error","error":{}}`, Event{Type: "gateway.error"}},
		{"values of other kinds", "", `{"event_type":"step.delta","index":"1","delta":{"type":"text","text":7,"data":8,"content":[]}}`, Event{Type: "step.delta", Delta: Delta{Type: "text"}}},
		{"an index out of range", "", `{"event_type":"step.stop","index":-1}`, Event{Type: "step.stop"}},
		{"no type, but a name", "step.stop", `{}`, Event{Type: "step.stop"}},
		{"a foreign name", "heartbeat", `not JSON`, Event{Type: "heartbeat"}},
		{"a type under a foreign name", "message", `{"event_type":"step.stop"}`, Event{Type: "step.stop"}},
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
			if row.want.Delta.Data == nil && len(got.Delta.Data) == 0 {
				got.Delta.Data = nil
			}
			if !reflect.DeepEqual(*got, row.want) {
				t.Errorf("\n got %+v\nwant %+v", *got, row.want)
			}
		})
	}
}

// TestDecodeRepeats: an event that differs from the one before in a text alone is read as it is by itself.
func TestDecodeRepeats(t *testing.T) {
	for _, format := range []string{
		`{"index":1,"delta":{"text":"%s","type":"text"},"event_type":"step.delta"}`,
		`{"index":1,"delta":{"text":"a","type":"%s"},"event_type":"step.delta"}`,
		`{"delta":{"text":"%s","text":1},"event_type":"step.delta"}`,
		`{"delta":{"content":{"text":"%s"},"text":"a"},"event_type":"step.delta"}`,
		`{"delta":{"text":"%s","arguments":"{}"},"event_type":"step.delta"}`,
		`{"delta":{"text":"%s"},"step":{"type":"function_call","arguments":{"a":"b"}},"event_type":"step.start"}`,
		`{"delta":{"text":"%s"},"interaction":{"status":"failed","error":{"message":"m"}},"event_type":"interaction.completed"}`,
	} {
		var d Decoder
		first, second := fmt.Appendf(nil, format, "one"), fmt.Appendf(nil, format, "another")
		if _, err := d.Decode(nil, first); err != nil {
			t.Fatal(err)
		}
		clear(first) // the buffer is used again
		got, _ := d.Decode(nil, second)
		if want, err := new(Decoder).Decode(nil, second); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v (%v)", format, got, want, err)
		}
	}
}

func TestDecodeMalformed(t *testing.T) {
	for _, data := range []string{``, `{`, `{"event_type":"step.stop"`, `{"event_type":"step.stop"}x`, `{"index":}`, `{"step":{"arguments":{"a":}}}`, `{"delta":{"type":"image","data":"*"}}`} {
		for _, name := range []string{"", "error", "step.delta", "interaction.completed"} {
			if _, err := new(Decoder).Decode([]byte(name), []byte(data)); err == nil {
				t.Errorf("%s is taken under the name %q", data, name)
			}
		}
	}
}

// What one event is damaged by does not outlive it.
func TestDecodeAfterDamage(t *testing.T) {
	var decoder Decoder
	_, _ = decoder.Decode(nil, []byte(`{"event_type":"step.delta","delta":{"type":"image","data":"*"}}`))
	if e, err := decoder.Decode(nil, []byte(`{"event_type":"step.delta","delta":{"type":"image","data":"QQ=="}}`)); err != nil || string(e.Delta.Data) != "A" {
		t.Errorf("%+v %v", e, err)
	}
}

// Events that differ in their text alone say what they would say read by themselves.
func TestDecodeConsecutive(t *testing.T) {
	text := func(index, kind, text string) string {
		return `{"index":` + index + `,"delta":{"text":"` + text + `","type":"` + kind + `"},"event_type":"step.delta"}`
	}
	stream := []string{
		text("0", "text", "a"), text("0", "text", "b"), text("0", "text", ""), text("0", "text", `\"`), text("0", "text", "c"), text("1", "text", "c"),
		`{"event_type":"step.stop","index":1}`, text("1", "text", "d"), text("1", "other", "d"),
		`{"event_type":"step.delta","delta":{"text":"x","arguments":"y"}}`, `{"event_type":"step.delta","delta":{"text":"x","arguments":"z"}}`,
		`{"delta":{"text":"x"}}`, `{"delta":{"text":"y"}}`, text("0", "text", "\xff"),
	}
	var together Decoder
	for i, data := range stream {
		got, err := together.Decode(nil, []byte(data))
		want, wantErr := new(Decoder).Decode(nil, []byte(data))
		if err != nil || wantErr != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("event %d, %s:\n got %+v %v\nwant %+v %v", i, data, got, err, want, wantErr)
		}
	}
}

// Text is what streams are made of: it costs the string alone.
func TestDecodeAllocations(t *testing.T) {
	for _, data := range []string{
		`{"index":1,"delta":{"text":"a few more words","type":"text"},"event_type":"step.delta"}`,
		`{"index":1,"delta":{"text":"a few more\nwords","type":"text"},"event_type":"step.delta"}`, // read anew each time
		`{"index":0,"delta":{"content":{"text":"a few more words","type":"text"},"type":"thought_summary"},"event_type":"step.delta"}`,
		`{"index":2,"delta":{"arguments":"{\"a\":","type":"arguments_delta"},"event_type":"step.delta"}`,
		`{"index":2,"delta":{"type":"audio","data":"AAEC","mime_type":"audio/l16","sample_rate":24000,"channels":1},"event_type":"step.delta"}`,
	} {
		var decoder Decoder
		name, data := []byte("step.delta"), []byte(data)
		if n := testing.AllocsPerRun(100, func() { _, _ = decoder.Decode(name, data) }); n > 1 {
			t.Errorf("%v allocations for %s, want 1", n, data)
		}
	}
}

func TestUnroll(t *testing.T) {
	stream, ok := Unroll([]byte("{\n \"id\": \"i\", \"status\": \"requires_action\", \"usage\": {\"total_input_tokens\": 1},\n \"steps\": [\n" +
		`{"signature": "S", "type": "thought", "summary": [{"type": "text", "text": "t"}, {"type": "image", "data": "QQ=="}]},` + "\n" +
		`{"content": [{"text": "a\nb", "type": "text", "annotations": []}, {"type": "audio", "data": "QQ=="}], "type": "model_output"},` + "\n" +
		`{"type": "thought", "signature": ""},` + "\n" +
		`{"id": "c", "type": "function_call", "name": "f", "arguments": {"n": 1}},` + "\n" +
		`{"type": "google_search_call", "content": [1], "signature": "X"}` + "\n ]\n}"))
	want := `data: {"event_type":"step.start","index":0,"step":{"type":"thought"}}

data: {"event_type":"step.delta","index":0,"delta":{"type":"thought_summary","content":{"type":"text","text":"t"}}}

data: {"event_type":"step.delta","index":0,"delta":{"type":"thought_summary","content":{"type":"image","data":"QQ=="}}}

data: {"event_type":"step.delta","index":0,"delta":{"type":"thought_signature","signature":"S"}}

data: {"event_type":"step.stop","index":0}

data: {"event_type":"step.start","index":1,"step":{"type":"model_output"}}

data: {"event_type":"step.delta","index":1,"delta":{"text":"a\nb","type":"text","annotations":[]}}

data: {"event_type":"step.delta","index":1,"delta":{"type":"audio","data":"QQ=="}}

data: {"event_type":"step.stop","index":1}

data: {"event_type":"step.start","index":2,"step":{"type":"thought"}}

data: {"event_type":"step.stop","index":2}

data: {"event_type":"step.start","index":3,"step":{"id":"c","type":"function_call","name":"f","arguments":{"n":1}}}

data: {"event_type":"step.stop","index":3}

data: {"event_type":"step.start","index":4,"step":{"type":"google_search_call"}}

data: {"event_type":"step.stop","index":4}

data: {"event_type":"interaction.completed","interaction":{"status":"requires_action","usage":{"total_input_tokens":1},"error":null}}

`
	if !ok || string(stream) != want {
		t.Errorf("ok %v\n got %s\nwant %s", ok, stream, want)
	}
	for body, want := range map[string]string{
		`{"status":"in_progress","steps":[]}`:         "",
		`{"status":"failed","error":{"message":"m"}}`: `data: {"event_type":"interaction.completed","interaction":{"status":"failed","usage":null,"error":{"message":"m"}}}` + "\n\n",
	} {
		if stream, ok := Unroll([]byte(body)); !ok || string(stream) != want {
			t.Errorf("%s unrolls to %s, %v", body, stream, ok)
		}
	}
	for _, body := range []string{``, `[]`, `{}`, `{"error":{}}`, `{"status":"completed"}`, `{"steps":[]}`, `{"status":"completed","steps":[]`, `{"status":"completed","steps":[]}{}`} {
		if stream, ok := Unroll([]byte(body)); ok {
			t.Errorf("%s unrolls to %s", body, stream)
		}
	}
}

func TestDecodeEmbeddings(t *testing.T) {
	for body, want := range map[string]Embeddings{
		`{"embeddings":[{"values":[0.5,-1e-3]},{},{"values":[],"x":1}],"metadata":{"billableCharacterCount":7,"x":[]}}`: {Vectors: [][]float64{{0.5, -0.001}, {}, {}}, Characters: new(int64(7))},
		`{"embeddings":[],"metadata":{"billableCharacterCount":null}}`:                                                  {},
	} {
		if got, ok := DecodeEmbeddings([]byte(body)); !ok || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v %v", body, got, ok)
		}
	}
	for _, body := range []string{``, `{}`, `[]`, `{"embeddings":{}}`, `{"embeddings":[{"values":[1}]}`, `{"error":{}}`} {
		if got, ok := DecodeEmbeddings([]byte(body)); ok {
			t.Errorf("%s: %+v", body, got)
		}
	}
}

func TestDecodeModels(t *testing.T) {
	for _, row := range []struct {
		body string
		ids  []string
		next string
		ok   bool
	}{
		{`{"models":[{"name":"models/a"},{"name":"publishers/google/models/b","x":{}},{},{"name":""},{"name":"c"}],"nextPageToken":"n"}`, []string{"a", "b", "c"}, "n", true},
		{`{"models":[],"other":1}`, nil, "", true},
		{`{}`, nil, "", true},
		{`{"nextPageToken":"n"}`, nil, "n", true},
		{`{"error":{}}`, nil, "", false},
		{`{"models":[{"name":"a"}`, []string{"a"}, "", false},
		{`[]`, nil, "", false},
		{``, nil, "", false},
	} {
		if ids, next, ok := DecodeModels([]byte(row.body)); !reflect.DeepEqual(ids, row.ids) || next != row.next || ok != row.ok {
			t.Errorf("%s: %q %q %v", row.body, ids, next, ok)
		}
	}
}

// Whatever a provider sends, decoding ends without a panic and an unrolled interaction decodes.
func FuzzTransform(f *testing.F) {
	picture := base64.StdEncoding.EncodeToString([]byte("a picture"))
	for _, data := range []string{
		`{"index":1,"delta":{"text":"t","type":"text"},"event_type":"step.delta"}`,
		`{"index":0,"step":{"type":"function_call","id":"c","name":"f","arguments":{"a":[1,"x"]}},"event_type":"step.start"}`,
		`{"delta":{"type":"image","data":"` + picture + `"},"event_type":"step.delta"}`,
		`{"interaction":{"status":"completed","usage":{"total_input_tokens":-1e3}},"event_type":"interaction.completed"}`,
		`{"status":"completed","steps":[{"type":"model_output","content":[{"type":"text","text":"\ud800"}]},{"type":"thought","summary":[7]}],"usage":{}}`,
	} {
		f.Add("", []byte(data))
	}
	f.Add("error", []byte("x"))
	f.Fuzz(func(t *testing.T, name string, data []byte) {
		var decoder Decoder
		_, _ = decoder.Decode([]byte(name), data)
		_, _ = DecodeEmbeddings(data)
		_, _, _ = DecodeModels(data)
		stream, ok := Unroll(data)
		if !ok {
			return
		}
		for event := range strings.SplitSeq(strings.TrimSuffix(string(stream), "\n\n"), "\n\n") {
			event, isData := strings.CutPrefix(event, "data: ")
			_, err := decoder.Decode(nil, []byte(event))
			if (err != nil && err != errBase64 || !isData || bytes.ContainsAny([]byte(event), "\r\n")) && len(stream) > 0 {
				t.Fatalf("%s unrolls to %q: %v", data, event, err)
			}
		}
	})
}

// TestLongUnroll: as many pieces as a text may hold become events.
func TestLongUnroll(t *testing.T) {
	for _, row := range []struct{ begin, end string }{
		{`{"status":"completed","steps":[` + strings.Repeat("0,", jsonscan.MaxNodes-1) + `0`, `]}`},
		{`{"status":"completed","steps":[{"type":"model_output","content":[` + strings.Repeat("0,", jsonscan.MaxNodes-2) + `0`, `]}]}`},
		{`{"status":"completed","steps":[{},{"type":"thought","summary":[` + strings.Repeat("0,", jsonscan.MaxNodes-3) + `0`, `]}]}`},
	} {
		if _, ok := Unroll([]byte(row.begin + row.end)); !ok {
			t.Errorf("%.60s… is not taken", row.begin)
		}
		if stream, ok := Unroll([]byte(row.begin + ",0" + row.end)); ok {
			t.Errorf("%.60s…: %d bytes", row.begin, len(stream))
		}
	}
}
