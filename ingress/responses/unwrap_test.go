package responses

import (
	"testing"
)

// The input is the same however its arguments are cut.
func TestUnwrapper(t *testing.T) {
	for _, c := range []struct{ arguments, want string }{
		{`{"input":"plain"}`, "plain"},
		{` { "input" : "a\nb\t\"c\" \\ \/ \u00e9 é 漢 😀" , "more":"x" } `, "a\nb\t\"c\" \\ / é é 漢 😀"},
		{`{"input":"\ud83d\ude00\ud83d\ude00"}`, "😀😀"},
		{`{"input":"\ud83d x\ude00 \ud83d\n"}`, "\uFFFD x\uFFFD \uFFFD\n"},
		{`{"input":"\ud83d\u0041"}`, "\uFFFDA"},
		{`{"input":""}`, ""},
	} {
		for size := 1; size <= len(c.arguments); size++ {
			var u unwrapper
			got := ""
			for end := size; ; end += size {
				got += u.feed([]byte(c.arguments[:min(end, len(c.arguments))]))
				if end >= len(c.arguments) {
					break
				}
			}
			if got != c.want || string(u.text) != c.want || !u.ended {
				t.Fatalf("%s in pieces of %d: got %q, kept %q", c.arguments, size, got, u.text)
			}
		}
	}
}

func TestUnwrap(t *testing.T) {
	for _, c := range []struct{ arguments, want string }{
		{`{"more":1,"input":"x"}`, "x"},
		{`{"text":"x"}`, "x"},
		{`{"input":7}`, `{"input":7}`},
		{`{"a":"x","b":"y"}`, `{"a":"x","b":"y"}`},
		{`{}`, `{}`},
		{`{"inp`, ""},
	} {
		if got := unwrap(c.arguments); got != c.want {
			t.Errorf("%s: got %q, want %q", c.arguments, got, c.want)
		}
	}
}

// Arguments of another form come as one piece, when they are whole.
func TestUnwrapAtTheEnd(t *testing.T) {
	call, _, err := parse(t, numbered(), environment(chatPeer, nil), ask(tools))
	if err != nil {
		t.Fatal(err)
	}
	list, answer := events(toolCall("c1", "note", `{"text":`, `"x"}`))
	lines := brief(t, stream(call, list, &answer))
	compare(t, lines[3:5], []string{
		`custom_tool_call_input.delta "item_id":"ctc_a1","output_index":0,"delta":"x"`,
		`custom_tool_call_input.done "item_id":"ctc_a1","output_index":0,"input":"x"`,
	})
}
