package mmsp_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	. "github.com/prism-shadow/mmsp-go"
)

const (
	protocolError = "*mmsp.StreamProtocolError"
	argumentError = "*mmsp.ToolCallArgumentParseError"
)

// streamItems plays deltas. It returns what each Push let out, one line each, and what Close did unless there was an
// error, and holds the whole against the grammar.
func streamItems(t *testing.T, deltas []Delta) (lines []string, err error) {
	t.Helper()
	items := NewStreamItems("TestClient")
	var checker GrammarChecker
	judge := func(out []Item) {
		t.Helper()
		lines = append(lines, showAll(out))
		for _, item := range out {
			if err := checker.Event(&Event{Type: EventDelta, Item: item, CreatedAt: 1}); err != nil {
				t.Errorf("not in the grammar: %v", err)
			}
		}
	}
	for _, delta := range deltas {
		out, err := items.Push(&delta)
		judge(out)
		if err != nil {
			return lines, err
		}
	}
	out, err := items.Close()
	judge(out)
	if err == nil {
		if err := checker.Event(&Event{Type: EventStop, FinishReason: FinishStop, Usage: &Usage{}, CreatedAt: 1}); err != nil {
			t.Errorf("not in the grammar: %v", err)
		}
	}
	return lines, err
}

type streamItemsCase struct {
	name   string
	deltas []Delta
	want   []string // what each delta lets out, then what the end does
	err    string   // the type of the error that the last line comes with
}

func runStreamItems(t *testing.T, cases []streamItemsCase) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := streamItems(t, c.deltas)
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(c.want, "\n  "))
			}
			if kind := fmt.Sprintf("%T", err); kind != c.err && (err != nil || c.err != "") {
				t.Errorf("got error %s (%v), want %q", kind, err, c.err)
			}
		})
	}
}

func TestStreamItems(t *testing.T) {
	runStreamItems(t, []streamItemsCase{
		{"nothing", nil, []string{""}, ""},
		{
			"text streams and is joined",
			[]Delta{text("1", "Go"), text("1", "od")},
			[]string{`text.delta "Go"`, `text.delta "od"`, `text.done "Good"`},
			"",
		},
		{
			"a signature after thinking, then a call",
			[]Delta{
				think("0", "Plan it"), faithful(think("0", ""), `{"signature":"s1"}`),
				call("1", "lookup", "c9", ""), call("1", "", "", ""), call("1", "", "", `{"k": `), call("1", "", "", `"ü"}`),
			},
			[]string{
				`thinking.delta "Plan it"`, `thinking.delta "" {"signature":"s1"}`,
				`thinking.done "Plan it" {"signature":"s1"}; tool_call.delta lookup/c9 ` + "``", "",
				"tool_call.delta / `{\"k\": `", "tool_call.delta / `\"ü\"}`", "tool_call.done lookup/c9 `{\"k\": \"ü\"}`",
			},
			"",
		},
		{
			"another id begins another text",
			[]Delta{text("1", "a"), text("2", "b")},
			[]string{`text.delta "a"`, `text.done "a"; text.delta "b"`, `text.done "b"`},
			"",
		},
		{
			"another id begins another thinking",
			[]Delta{think("1", "a"), think("2", "b")},
			[]string{`thinking.delta "a"`, `thinking.done "a"; thinking.delta "b"`, `thinking.done "b"`},
			"",
		},
		{
			"another kind under the same id begins an item",
			[]Delta{think("1", "a"), text("1", "b"), data("1", "image/png", "c"), text("1", "d")},
			[]string{
				`thinking.delta "a"`, `thinking.done "a"; text.delta "b"`, `text.done "b"; inline_data.delta image/png "c"`,
				`inline_data.done image/png "c"; text.delta "d"`, `text.done "d"`,
			},
			"",
		},
		{
			"a delta without an id continues",
			[]Delta{text("1", "a"), text("", "b"), text("1", "c")},
			[]string{`text.delta "a"`, `text.delta "b"`, `text.delta "c"`, `text.done "abc"`},
			"",
		},
		{
			"the first id that is seen is the item's",
			[]Delta{text("", "a"), text("1", "b"), text("2", "c")},
			[]string{`text.delta "a"`, `text.delta "b"`, `text.done "ab"; text.delta "c"`, `text.done "c"`},
			"",
		},
		{
			"ids are forgotten between items",
			[]Delta{text("1", "a"), think("", "b"), think("1", "c"), think("2", "d")},
			[]string{
				`text.delta "a"`, `text.done "a"; thinking.delta "b"`, `thinking.delta "c"`,
				`thinking.done "bc"; thinking.delta "d"`, `thinking.done "d"`,
			},
			"",
		},
		{
			"a name begins a call under the same id",
			[]Delta{call("1", "f", "c1", "{}"), call("1", "g", "c2", "{}")},
			[]string{"tool_call.delta f/c1 `{}`", "tool_call.done f/c1 `{}`; tool_call.delta g/c2 `{}`", "tool_call.done g/c2 `{}`"},
			"",
		},
		{
			"argument fragments continue the call under whatever id",
			[]Delta{call("1", "f", "c1", "{"), call("foreign", "", "other", "}")},
			[]string{"tool_call.delta f/c1 `{`", "tool_call.delta / `}`", "tool_call.done f/c1 `{}`"},
			"",
		},
		{
			"a call without arguments has an empty object",
			[]Delta{call("", "f", "c1", "")},
			[]string{"tool_call.delta f/c1 ``", "tool_call.done f/c1 `{}`"},
			"",
		},
		{
			"arguments keep their spelling",
			[]Delta{call("", "f", "c1", `{"b":9007199254740993, "a":1.50`), call("", "", "", `,"c":18446744073709551615}`)},
			[]string{
				"tool_call.delta f/c1 `{\"b\":9007199254740993, \"a\":1.50`", "tool_call.delta / `,\"c\":18446744073709551615}`",
				"tool_call.done f/c1 `{\"b\":9007199254740993, \"a\":1.50,\"c\":18446744073709551615}`",
			},
			"",
		},
		{
			"an item whose only delta is empty is nothing",
			[]Delta{text("1", ""), think("2", "")},
			[]string{"", "", ""},
			"",
		},
		{
			"an empty delta is swallowed but its item counts as open",
			[]Delta{text("1", "a"), think("2", ""), text("1", "b")},
			[]string{`text.delta "a"`, `text.done "a"`, `text.delta "b"`, `text.done "b"`},
			"",
		},
		{
			"an empty delta in the middle is swallowed",
			[]Delta{text("1", "a"), text("1", ""), text("1", "b")},
			[]string{`text.delta "a"`, "", `text.delta "b"`, `text.done "ab"`},
			"",
		},
		{
			"fidelity of an empty object is none",
			[]Delta{faithful(text("1", ""), `{}`), faithful(text("1", "a"), `{}`)},
			[]string{"", `text.delta "a"`, `text.done "a"`},
			"",
		},
		{
			"fidelity alone is worth a delta",
			[]Delta{faithful(text("1", ""), `{"s":1}`)},
			[]string{`text.delta "" {"s":1}`, `text.done "" {"s":1}`},
			"",
		},
		{
			"the same fidelity goes out once, however it is spelled",
			[]Delta{faithful(text("1", "a"), `{"s":1,"t":2}`), faithful(text("1", "b"), `{"t":2, "s":1}`), faithful(text("1", ""), `{"s":1,"t":2}`)},
			[]string{`text.delta "a" {"s":1,"t":2}`, `text.delta "b"`, "", `text.done "ab" {"s":1,"t":2}`},
			"",
		},
		{
			"fidelity is the item's, not the next one's",
			[]Delta{faithful(text("1", "a"), `{"s":1}`), text("2", "b")},
			[]string{`text.delta "a" {"s":1}`, `text.done "a" {"s":1}; text.delta "b"`, `text.done "b"`},
			"",
		},
		{
			"each picture is an item",
			[]Delta{data("1", "image/png", "a"), data("1", "image/png", "b")},
			[]string{`inline_data.delta image/png "a"`, `inline_data.done image/png "a"; inline_data.delta image/png "b"`, `inline_data.done image/png "b"`},
			"",
		},
		{
			"sound after a picture is an item of its own",
			[]Delta{data("1", "image/png", "a"), data("1", "audio/pcm", "b"), data("1", "audio/pcm", "c")},
			[]string{`inline_data.delta image/png "a"`, `inline_data.done image/png "a"; inline_data.delta audio/pcm "b"`, `inline_data.delta audio/pcm "c"`, `inline_data.done audio/pcm "bc"`},
			"",
		},
		{
			"audio streams in chunks of one item",
			[]Delta{data("1", "audio/pcm", "a"), data("1", "audio/pcm", "b"), data("", "", "c")},
			[]string{`inline_data.delta audio/pcm "a"`, `inline_data.delta audio/pcm "b"`, `inline_data.delta  "c"`, `inline_data.done audio/pcm "abc"`},
			"",
		},
		{
			"each image thought is an item",
			[]Delta{imageThought("1", "a"), imageThought("1", "b")},
			[]string{
				`inline_thinking.delta image/png "a"`, `inline_thinking.done image/png "a"; inline_thinking.delta image/png "b"`,
				`inline_thinking.done image/png "b"`,
			},
			"",
		},
		{
			"each vector is an item, an empty one too",
			[]Delta{vector(1, 2), vector(), vector(3)},
			[]string{
				`embedding.delta [1 2]`, `embedding.done [1 2]; embedding.delta []`, `embedding.done []; embedding.delta [3]`, `embedding.done [3]`,
			},
			"",
		},
		{
			"fidelity alone under the open item's id is that item's",
			[]Delta{imageThought("7", "x"), faithful(think("7", ""), `{"signature":"z"}`), text("8", "t")},
			[]string{
				`inline_thinking.delta image/png "x"`, `inline_thinking.delta image/png "" {"signature":"z"}`,
				`inline_thinking.done image/png "x" {"signature":"z"}; text.delta "t"`, `text.done "t"`,
			},
			"",
		},
		{
			"fidelity alone for the open call goes out without its header",
			[]Delta{call("7", "f", "c1", "{}"), faithful(think("7", ""), `{"s":1}`)},
			[]string{"tool_call.delta f/c1 `{}`", "tool_call.delta / `` {\"s\":1}", "tool_call.done f/c1 `{}` {\"s\":1}"},
			"",
		},
		{
			"fidelity with text under the open item's id is not",
			[]Delta{imageThought("7", "x"), faithful(think("7", "y"), `{"s":1}`)},
			[]string{
				`inline_thinking.delta image/png "x"`, `inline_thinking.done image/png "x"; thinking.delta "y" {"s":1}`,
				`thinking.done "y" {"s":1}`,
			},
			"",
		},
		{
			"fidelity alone without an id is not",
			[]Delta{text("", "x"), faithful(think("", ""), `{"s":1}`)},
			[]string{`text.delta "x"`, `text.done "x"; thinking.delta "" {"s":1}`, `thinking.done "" {"s":1}`},
			"",
		},
		{
			"fidelity alone after nothing went out is not",
			[]Delta{text("7", ""), faithful(think("7", ""), `{"s":1}`)},
			[]string{"", `thinking.delta "" {"s":1}`, `thinking.done "" {"s":1}`},
			"",
		},

		{"a done item", []Delta{text("1", "a"), fragment("1", Text("b"))}, []string{`text.delta "a"`, ""}, protocolError},
		{"a kind that does not stream", []Delta{fragment("", Item{Type: "tool_result.delta"})}, []string{""}, protocolError},
		{"no type", []Delta{{}}, []string{""}, protocolError},
		{
			"two fidelities in one item",
			[]Delta{faithful(text("1", "a"), `{"s":1}`), faithful(text("1", "b"), `{"s":2}`)},
			[]string{`text.delta "a" {"s":1}`, ""},
			protocolError,
		},
		{
			"two fidelities, one of them stray",
			[]Delta{faithful(imageThought("7", "x"), `{"s":1}`), faithful(think("7", ""), `{"s":2}`)},
			[]string{`inline_thinking.delta image/png "x" {"s":1}`, ""},
			protocolError,
		},
		{"a call without an id", []Delta{call("1", "f", "", "{}")}, []string{""}, protocolError},
		{"fragments without a call", []Delta{text("1", "a"), call("1", "", "", "{}")}, []string{`text.delta "a"`, `text.done "a"`}, protocolError},
		{"arguments that are cut", []Delta{call("", "f", "c1", `{"q":`)}, []string{"tool_call.delta f/c1 `{\"q\":`", ""}, argumentError},
		{
			"arguments that are cut, then another item",
			[]Delta{call("", "f", "c1", `{`), text("", "a")},
			[]string{"tool_call.delta f/c1 `{`", ""},
			argumentError,
		},
		{"arguments that are a list", []Delta{call("", "f", "c1", `[1]`)}, []string{"tool_call.delta f/c1 `[1]`", ""}, argumentError},
		{"arguments that are blank", []Delta{call("", "f", "c1", " ")}, []string{"tool_call.delta f/c1 ` `", ""}, argumentError},
		{"arguments that are two objects", []Delta{call("", "f", "c1", `{}{}`)}, []string{"tool_call.delta f/c1 `{}{}`", ""}, argumentError},
	})
}

func TestStreamItemsInterleaved(t *testing.T) {
	runStreamItems(t, []streamItemsCase{
		{
			"calls one after the other are not held up",
			[]Delta{
				keyed(0, "f", "c1", ""), keyed(0, "", "", `{"a"`), keyed(0, "", "", `:1}`), keyed(0, "", "", ""),
				keyed(1, "g", "c2", ""), keyed(1, "", "", `{}`),
			},
			[]string{
				"tool_call.delta f/c1 ``", "tool_call.delta / `{\"a\"`", "tool_call.delta / `:1}`", "",
				"tool_call.done f/c1 `{\"a\":1}`; tool_call.delta g/c2 ``", "tool_call.delta / `{}`", "tool_call.done g/c2 `{}`",
			},
			"",
		},
		{
			"two interleaved indexes",
			[]Delta{
				keyed(0, "f", "c1", `{"a"`), keyed(1, "g", "c2", `{"b"`), keyed(0, "", "", `:1`), keyed(1, "", "", `:2`),
				keyed(0, "", "", `}`), keyed(1, "", "", `}`),
			},
			[]string{
				"tool_call.delta f/c1 `{\"a\"`", "", "tool_call.delta / `:1`", "", "tool_call.delta / `}`",
				"tool_call.done f/c1 `{\"a\":1}`; tool_call.delta g/c2 `{\"b\":2`; tool_call.delta / `}`", "tool_call.done g/c2 `{\"b\":2}`",
			},
			"",
		},
		{
			"the later call ends first",
			[]Delta{keyed(0, "f", "c1", `{`), keyed(1, "g", "c2", `{"b":2}`), keyed(0, "", "", `}`)},
			[]string{
				"tool_call.delta f/c1 `{`", "", "tool_call.delta / `}`",
				"tool_call.done f/c1 `{}`; tool_call.delta g/c2 `{\"b\":2}`; tool_call.done g/c2 `{\"b\":2}`",
			},
			"",
		},
		{
			"three calls wait for one another",
			[]Delta{keyed(0, "f", "c1", `{`), keyed(1, "g", "c2", `{}`), keyed(2, "h", "c3", `{`), keyed(0, "", "", `}`), keyed(2, "", "", `}`)},
			[]string{
				"tool_call.delta f/c1 `{`", "", "", "tool_call.delta / `}`",
				"tool_call.done f/c1 `{}`; tool_call.delta g/c2 `{}`; tool_call.done g/c2 `{}`; tool_call.delta h/c3 `{`; tool_call.delta / `}`",
				"tool_call.done h/c3 `{}`",
			},
			"",
		},
		{
			"several ids under one index, one after the other",
			[]Delta{keyed(0, "f", "c1", `{}`), keyed(0, "g", "c2", `{`), keyed(0, "", "", `}`)},
			[]string{
				"tool_call.delta f/c1 `{}`", "tool_call.done f/c1 `{}`; tool_call.delta g/c2 `{`", "tool_call.delta / `}`",
				"tool_call.done g/c2 `{}`",
			},
			"",
		},
		{
			"several ids under one index, interleaved",
			[]Delta{
				keyed(0, "f", "c1", `{"a"`), keyed(0, "g", "c2", `{"b"`), keyed(0, "", "c1", `:1}`), keyed(0, "", "c2", `:2}`),
			},
			[]string{
				"tool_call.delta f/c1 `{\"a\"`", "", "tool_call.delta / `:1}`",
				"tool_call.done f/c1 `{\"a\":1}`; tool_call.delta g/c2 `{\"b\"`; tool_call.delta / `:2}`", "tool_call.done g/c2 `{\"b\":2}`",
			},
			"",
		},
		{
			"the same function twice under one index is two calls",
			[]Delta{keyed(0, "f", "c1", `{"a":1}`), keyed(0, "f", "c2", `{"a":2}`)},
			[]string{"tool_call.delta f/c1 `{\"a\":1}`", "tool_call.done f/c1 `{\"a\":1}`; tool_call.delta f/c2 `{\"a\":2}`", "tool_call.done f/c2 `{\"a\":2}`"},
			"",
		},
		{
			"no index: the id tells",
			[]Delta{keyed(-1, "f", "c1", `{"a"`), keyed(-1, "g", "c2", `{"b"`), keyed(-1, "", "c1", `:1}`), keyed(-1, "", "c2", `:2}`)},
			[]string{
				"tool_call.delta f/c1 `{\"a\"`", "", "tool_call.delta / `:1}`",
				"tool_call.done f/c1 `{\"a\":1}`; tool_call.delta g/c2 `{\"b\"`; tool_call.delta / `:2}`", "tool_call.done g/c2 `{\"b\":2}`",
			},
			"",
		},
		{
			"no index and no id: the order tells",
			[]Delta{keyed(-1, "f", "c1", `{`), keyed(-1, "", "", `}`), keyed(-1, "g", "c2", `{`), keyed(-1, "", "", `}`)},
			[]string{
				"tool_call.delta f/c1 `{`", "tool_call.delta / `}`", "tool_call.done f/c1 `{}`; tool_call.delta g/c2 `{`",
				"tool_call.delta / `}`", "tool_call.done g/c2 `{}`",
			},
			"",
		},
		{
			"whole calls in one delta",
			[]Delta{keyed(0, "f", "c1", `{"a":1}`), keyed(1, "g", "c2", `{"b":2}`)},
			[]string{"tool_call.delta f/c1 `{\"a\":1}`", "tool_call.done f/c1 `{\"a\":1}`; tool_call.delta g/c2 `{\"b\":2}`", "tool_call.done g/c2 `{\"b\":2}`"},
			"",
		},
		{
			"whole calls of one id without an index",
			[]Delta{keyed(-1, "f", "f", `{"a":1}`), keyed(-1, "f", "f", `{"a":2}`)},
			[]string{"tool_call.delta f/f `{\"a\":1}`", "tool_call.done f/f `{\"a\":1}`; tool_call.delta f/f `{\"a\":2}`", "tool_call.done f/f `{\"a\":2}`"},
			"",
		},
		{
			"the name on every fragment",
			[]Delta{keyed(0, "f", "c1", `{"a"`), keyed(0, "f", "c1", `:1`), keyed(0, "f", "c1", `}`), keyed(0, "f", "c1", ``)},
			[]string{"tool_call.delta f/c1 `{\"a\"`", "tool_call.delta / `:1`", "tool_call.delta / `}`", "", "tool_call.done f/c1 `{\"a\":1}`"},
			"",
		},
		{
			"the name on every fragment, the id on the first only",
			[]Delta{keyed(0, "f", "c1", `{"a"`), keyed(0, "f", "", `:1}`), keyed(1, "f", "c2", `{`), keyed(1, "f", "", `}`)},
			[]string{
				"tool_call.delta f/c1 `{\"a\"`", "tool_call.delta / `:1}`", "tool_call.done f/c1 `{\"a\":1}`; tool_call.delta f/c2 `{`",
				"tool_call.delta / `}`", "tool_call.done f/c2 `{}`",
			},
			"",
		},
		{
			"calls without arguments wait for the end",
			[]Delta{keyed(0, "f", "c1", ""), keyed(1, "g", "c2", ""), keyed(1, "", "", "{}")},
			[]string{
				"tool_call.delta f/c1 ``", "", "",
				"tool_call.done f/c1 `{}`; tool_call.delta g/c2 `{}`; tool_call.done g/c2 `{}`",
			},
			"",
		},
		{
			"brackets in strings do not close a call",
			[]Delta{keyed(0, "f", "c1", `{"a":"}\"}`), keyed(1, "g", "c2", `{}`), keyed(0, "", "", `"}`)},
			[]string{
				"tool_call.delta f/c1 `{\"a\":\"}\\\"}`", "", "tool_call.delta / `\"}`",
				"tool_call.done f/c1 `{\"a\":\"}\\\"}\"}`; tool_call.delta g/c2 `{}`; tool_call.done g/c2 `{}`",
			},
			"",
		},
		{
			"one bracket in a string does not close a call",
			[]Delta{keyed(0, "f", "c1", `{"a":"}`), keyed(1, "g", "c2", `{}`), keyed(0, "", "", `"}`)},
			[]string{
				"tool_call.delta f/c1 `{\"a\":\"}`", "", "tool_call.delta / `\"}`",
				"tool_call.done f/c1 `{\"a\":\"}\"}`; tool_call.delta g/c2 `{}`; tool_call.done g/c2 `{}`",
			},
			"",
		},
		{
			"an escaped quote does not hold a call open",
			[]Delta{keyed(0, "f", "c1", `{"a":"\"{"}`), keyed(1, "g", "c2", `{}`)},
			[]string{
				"tool_call.delta f/c1 `{\"a\":\"\\\"{\"}`", "tool_call.done f/c1 `{\"a\":\"\\\"{\"}`; tool_call.delta g/c2 `{}`",
				"tool_call.done g/c2 `{}`",
			},
			"",
		},
		{
			"a nested object that ends does not close a call",
			[]Delta{keyed(0, "f", "c1", `{"a":{}`), keyed(1, "g", "c2", `{}`), keyed(0, "", "", `}`)},
			[]string{
				"tool_call.delta f/c1 `{\"a\":{}`", "", "tool_call.delta / `}`",
				"tool_call.done f/c1 `{\"a\":{}}`; tool_call.delta g/c2 `{}`; tool_call.done g/c2 `{}`",
			},
			"",
		},
		{
			"text closes every call",
			[]Delta{keyed(0, "f", "c1", `{}`), keyed(1, "g", "c2", `{`), keyed(1, "", "", `}`), text("content", "so")},
			[]string{
				"tool_call.delta f/c1 `{}`", "tool_call.done f/c1 `{}`; tool_call.delta g/c2 `{`", "tool_call.delta / `}`",
				"tool_call.done g/c2 `{}`; text.delta \"so\"", `text.done "so"`,
			},
			"",
		},
		{
			"text lets out the calls that wait",
			[]Delta{keyed(0, "f", "c1", ``), keyed(1, "g", "c2", `{}`), text("content", "so")},
			[]string{
				"tool_call.delta f/c1 ``", "",
				"tool_call.done f/c1 `{}`; tool_call.delta g/c2 `{}`; tool_call.done g/c2 `{}`; text.delta \"so\"", `text.done "so"`,
			},
			"",
		},
		{
			"a call closes the text before it",
			[]Delta{text("content", "so"), keyed(0, "f", "c1", `{}`)},
			[]string{`text.delta "so"`, "text.done \"so\"; tool_call.delta f/c1 `{}`", "tool_call.done f/c1 `{}`"},
			"",
		},
		{
			"fidelity of a call that waits",
			[]Delta{
				keyed(0, "f", "c1", `{`), keyed(1, "g", "c2", `{`), faithful(keyed(1, "", "", ``), `{"s":1}`), faithful(keyed(1, "", "", `}`), `{"s": 1}`),
				keyed(0, "", "", `}`),
			},
			[]string{
				"tool_call.delta f/c1 `{`", "", "", "", "tool_call.delta / `}`",
				"tool_call.done f/c1 `{}`; tool_call.delta g/c2 `{}` {\"s\":1}; tool_call.done g/c2 `{}` {\"s\":1}",
			},
			"",
		},
		{
			"nothing after a call was closed is nothing",
			[]Delta{keyed(0, "f", "c1", `{}`), keyed(1, "g", "c2", `{}`), keyed(0, "", "", ``), keyed(0, "", "c1", ` `)},
			[]string{"tool_call.delta f/c1 `{}`", "tool_call.done f/c1 `{}`; tool_call.delta g/c2 `{}`", "", "", "tool_call.done g/c2 `{}`"},
			"",
		},

		{
			"a fragment after its call was closed",
			[]Delta{keyed(0, "f", "c1", `{}`), keyed(1, "g", "c2", `{}`), keyed(0, "", "", `x`)},
			[]string{"tool_call.delta f/c1 `{}`", "tool_call.done f/c1 `{}`; tool_call.delta g/c2 `{}`", ""},
			protocolError,
		},
		{
			"fidelity after its call was closed",
			[]Delta{keyed(0, "f", "c1", `{}`), keyed(1, "g", "c2", `{}`), faithful(keyed(0, "", "", ""), `{"s":1}`)},
			[]string{"tool_call.delta f/c1 `{}`", "tool_call.done f/c1 `{}`; tool_call.delta g/c2 `{}`", ""},
			protocolError,
		},
		{"a fragment of no call", []Delta{keyed(0, "", "", `{}`)}, []string{""}, protocolError},
		{"a call without an id", []Delta{keyed(0, "f", "", `{}`)}, []string{""}, protocolError},
		{"a call without a name", []Delta{keyed(0, "f", "c1", `{}`), keyed(0, "", "c2", `{}`)}, []string{"tool_call.delta f/c1 `{}`", ""}, protocolError},
		{
			"two fidelities in a call that waits",
			[]Delta{keyed(0, "f", "c1", `{`), faithful(keyed(1, "g", "c2", ``), `{"s":1}`), faithful(keyed(1, "", "", ``), `{"s":2}`)},
			[]string{"tool_call.delta f/c1 `{`", "", ""},
			protocolError,
		},
		{
			"a call whose brackets close around no JSON",
			[]Delta{keyed(0, "f", "c1", `{x}`), keyed(1, "g", "c2", `{}`)},
			[]string{"tool_call.delta f/c1 `{x}`", ""},
			argumentError,
		},
		{
			"a cut call, then text",
			[]Delta{keyed(0, "f", "c1", `{`), text("content", "so")},
			[]string{"tool_call.delta f/c1 `{`", ""},
			argumentError,
		},
		{
			"a cut call that waits is told after the one before it",
			[]Delta{keyed(0, "f", "c1", `{`), keyed(1, "g", "c2", `{`), keyed(0, "", "", `}`)},
			[]string{"tool_call.delta f/c1 `{`", "", "tool_call.delta / `}`", "tool_call.done f/c1 `{}`; tool_call.delta g/c2 `{`"},
			argumentError,
		},
	})
}

func TestStreamItemsHoldBackIsBounded(t *testing.T) {
	chunk := strings.Repeat("x", 1<<20)
	for name, next := range map[string]func(n int) Delta{
		"bytes": func(int) Delta { return keyed(1, "g", "c2", chunk) },
		"calls": func(n int) Delta { return keyed(n+1, "g", fmt.Sprint(n), "") },
	} {
		t.Run(name, func(t *testing.T) {
			items := NewStreamItems("TestClient")
			first := keyed(0, "f", "c1", "{")
			_, err := items.Push(&first)
			pushed := 0
			for ; err == nil && pushed < 2048; pushed++ {
				delta := next(pushed)
				_, err = items.Push(&delta)
			}
			var broken *StreamProtocolError
			if !errors.As(err, &broken) || pushed < 16 {
				t.Errorf("after %d fragments: %v", pushed, err)
			}
		})
	}
}

func TestStreamItemsReleasedBytesCountNoMore(t *testing.T) {
	items := NewStreamItems("TestClient")
	chunk := strings.Repeat("x", 1<<20)
	for n := range 18 {
		for _, delta := range []Delta{
			keyed(2*n, "f", fmt.Sprint("a", n), `{`), keyed(2*n+1, "g", fmt.Sprint("b", n), `{"s":"`+chunk), keyed(2*n, "", "", `}`),
			keyed(2*n+1, "", "", `"}`),
		} {
			if _, err := items.Push(&delta); err != nil {
				t.Fatalf("after %d pairs: %v", n, err)
			}
		}
	}
}

func TestStreamItemsNamesTheClientAndTheCall(t *testing.T) {
	_, err := streamItems(t, []Delta{call("", "f", "c1", `{"q":`)})
	var arguments *ToolCallArgumentParseError
	if !errors.As(err, &arguments) {
		t.Fatalf("got %v", err)
	}
	if arguments.Client != "TestClient" || arguments.ToolName != "f" || arguments.ToolCallID != "c1" || arguments.RawArguments != `{"q":` || arguments.Reason == "" {
		t.Errorf("got %+v", arguments)
	}
	_, err = streamItems(t, []Delta{fragment("", Text("x"))})
	if err == nil || !strings.HasPrefix(err.Error(), "TestClient broke the streaming protocol: ") {
		t.Errorf("got %v", err)
	}
}
