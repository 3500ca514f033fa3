package mmsp_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	. "github.com/prism-shadow/mmsp-go"
)

func TestNormalizeLegacy(t *testing.T) {
	for _, c := range []struct{ name, items, want string }{ // an empty want: the very same items
		{"current", `{"type":"text.done","text":"a"},{"type":"thinking.done","thinking":"b","fidelity":{"signature":"s"}}`, ""},
		{"unknown", `{"type":"hologram.done","beams":7},{"type":"text.delta","text":"a"}`, ""},
		{
			"every old type",
			`{"type":"text","text":"a","later":1},{"type":"image_url","image_url":"u"},{"type":"inline_data","data":"AA==","mime_type":"image/png"},` +
				`{"type":"thinking","thinking":"b"},{"type":"inline_thinking","data":"AA==","mime_type":"image/png"},` +
				`{"type":"tool_call","name":"f","arguments":{"a":9007199254740993},"tool_call_id":"c"},` +
				`{"type":"tool_result","text":"r","tool_call_id":"c"},{"type":"embedding","embedding":[1]}`,
			`{"type":"text.done","text":"a","later":1},{"type":"image_url.done","image_url":"u"},{"type":"inline_data.done","data":"AA==","mime_type":"image/png"},` +
				`{"type":"thinking.done","thinking":"b"},{"type":"inline_thinking.done","data":"AA==","mime_type":"image/png"},` +
				`{"type":"tool_call.done","name":"f","arguments":{"a":9007199254740993},"tool_call_id":"c"},` +
				`{"type":"tool_result.done","text":"r","tool_call_id":"c"},{"type":"embedding.done","embedding":[1]}`,
		},
		{
			"fragments are dropped",
			`{"type":"text","text":"a"},{"type":"partial_tool_call","name":"f","arguments":"{","tool_call_id":"c"},{"type":"text.done","text":"b"}`,
			`{"type":"text.done","text":"a"},{"type":"text.done","text":"b"}`,
		},
		{
			"old and current fidelity stay as they are",
			`{"type":"thinking","thinking":"a","fidelity":{"signature":"AP8="}},{"type":"text","text":"b"}`,
			`{"type":"thinking.done","thinking":"a","fidelity":{"signature":"AP8="}},{"type":"text.done","text":"b"}`,
		},
		{
			"a reasoning block with a summary",
			`{"type":"thinking.done","thinking":"a","fidelity":{"keep":[1],"block":{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"a"}],"content":[],"encrypted_content":"Eü"}}}`,
			`{"type":"thinking.done","thinking":"a","fidelity":{"channel":"summary","encrypted_content":"Eü","keep":[1]}}`,
		},
		{
			"a list of reasoning blocks with raw text",
			`{"type":"thinking","thinking":"a","fidelity":{"items":[{"type":"reasoning","summary":[ ],"content":[{"type":"reasoning_text","text":"a"}],"signature":"S","format":"F"}]}}`,
			`{"type":"thinking.done","thinking":"a","fidelity":{"channel":"content","format":"F","signature":"S"}}`,
		},
		{
			"a reasoning block without text implies no channel",
			`{"type":"thinking.done","thinking":"","fidelity":{"block":{"type":"reasoning","summary":null,"encrypted_content":"E"}}}`,
			`{"type":"thinking.done","thinking":"","fidelity":{"encrypted_content":"E"}}`,
		},
		{
			"what is no reasoning block is ignored",
			`{"type":"thinking.done","thinking":"a","fidelity":{"kind":"reasoning","a":null,"b":5,"c":[{"type":"message"},7,null],"d":{"type":["reasoning"]}}}`, "",
		},
		{"a reasoning block elsewhere", `{"type":"text.done","text":"a","fidelity":{"block":{"type":"reasoning","encrypted_content":"E"}}}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			const first = `{"role":"user","content_items":[{"type":"text.done","text":"first"}]}`
			given := `[` + first + `,{"role":"assistant","content_items":[` + c.items + `],"created_at":5}]`
			messages, err := ParseMessages([]byte(given), true)
			if err != nil {
				t.Fatal(err)
			}
			got := NormalizeLegacy(messages)
			if after := string(marshalMessages(messages)); after != given {
				t.Errorf("the caller's messages became %s", after)
			}
			if same := &got[0] == &messages[0]; same != (c.want == "") {
				t.Errorf("the same list: %v", same)
			}
			if &got[0].ContentItems[0] != &messages[0].ContentItems[0] {
				t.Error("a current message was copied")
			}
			want := given
			if c.want != "" {
				want = `[` + first + `,{"role":"assistant","content_items":[` + c.want + `],"created_at":5}]`
			}
			if text := string(marshalMessages(got)); text != want {
				t.Errorf("got\n  %s\nwant\n  %s", text, want)
			}
			if again := NormalizeLegacy(got); &again[0] != &got[0] {
				t.Error("what was converted is converted again")
			}
			if c.name == "every old type" {
				got[1].ContentItems[5].Type, got[1].Role = "", RoleUser // a result must stand in a user message
				got[1].ContentItems[5] = Text("")
				if err := Validate(got); err != nil {
					t.Error(err)
				}
			}
		})
	}
	if got := NormalizeLegacy(nil); got != nil {
		t.Errorf("got %v", got)
	}
}

// The warning comes at most once a process, whichever test converts first.
func TestLegacyWarning(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	for range 3 {
		NormalizeLegacy([]Message{UserMessage(Item{Type: "text", Text: "secret words"})})
	}
	if n := strings.Count(log.String(), "\n"); n > 1 || strings.Contains(log.String(), "secret") {
		t.Errorf("logged %s", log.String())
	}
}
