package openaichat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// show writes what a chunk says in one line.
func show(c *Chunk) string {
	var says []string
	add := func(name, value string) {
		if value != "" {
			says = append(says, name+"="+value)
		}
	}
	add("reasoning_content", c.Delta.ReasoningContent)
	add("reasoning", c.Delta.Reasoning)
	for _, p := range c.Delta.Parts {
		if p.Thinking {
			add("thinking", p.Text)
		} else {
			add("text", p.Text)
		}
	}
	for _, r := range c.Delta.ReasoningDetails {
		detail, _ := json.Marshal(r)
		add("detail", string(detail))
	}
	add("refusal", c.Delta.Refusal)
	for _, t := range c.Delta.ToolCalls {
		add("call", fmt.Sprintf("%d/%s/%s/%s", t.Index, t.ID, t.Name, t.Arguments))
	}
	add("finish", c.FinishReason)
	if c.Usage != nil {
		line := ""
		for _, n := range []*int64{c.Usage.PromptTokens, c.Usage.CachedTokens, c.Usage.CompletionTokens, c.Usage.ReasoningTokens} {
			if n == nil {
				line += "-,"
			} else {
				line += fmt.Sprint(*n, ",")
			}
		}
		add("usage", strings.TrimSuffix(line, ","))
	}
	add("error", string(c.Error))
	add("choice error", string(c.ChoiceError))
	if c.HasChoice {
		says = append(says, "choice")
	}
	return strings.Join(says, " ")
}

var decodeTests = []struct{ name, data, want string }{
	{"nothing", `{}`, ""},
	{"null", `null`, ""},
	{"another kind", `[1]`, ""},
	{"no choice", `{"id":"x","choices":[],"created":1}`, ""},
	{"null choices", `{"choices":null}`, ""},
	{"a null choice", `{"choices":[null]}`, "choice"},
	{"text", ` {"id":"x","choices":[{"index":0,"delta":{"role":"assistant","content":"héllo\n\ud83d\ude00"},"logprobs":null,"finish_reason":null}]} `, "text=héllo\n😀 choice"},
	{"nulls", `{"choices":[{"delta":{"content":null,"reasoning_content":null,"reasoning":null,"refusal":null,"tool_calls":null},"finish_reason":null}],"usage":null,"error":null}`, "choice"},
	{"null delta", `{"choices":[{"delta":null}]}`, "choice"},
	{"values of other kinds", `{"choices":[{"delta":{"content":7,"reasoning":{},"refusal":[],"tool_calls":"x"},"finish_reason":{}}],"usage":"x"}`, "choice"},
	{"every text", `{"choices":[{"delta":{"reasoning_content":"a","reasoning":"b","content":"c","refusal":"d"}}]}`, "reasoning_content=a reasoning=b text=c refusal=d choice"},
	{"the first choice only", `{"choices":[{"delta":{"content":"a"}},{"delta":{"content":"b"},"finish_reason":"stop"}]}`, "text=a choice"},
	{"a choice of another index", `{"choices":[{"delta":{"content":"b","reasoning":"r","tool_calls":[{"id":"x"}]},"finish_reason":"stop","index":1,"error":"e"}],"usage":{"prompt_tokens":1}}`, "usage=1,-,-,-"},
	{"a choice of another index first", `{"error":"e","choices":[{"index":1,"delta":{"content":"b"},"finish_reason":"length"},{"index":0,"delta":{"content":"a"}}]}`, `text=a error="e" choice`},
	{"an index that is none", `{"choices":[{"index":null,"delta":{"content":"a"}}]}`, "text=a choice"},
	{"finish reasons", `{"choices":[{"finish_reason":"stop"}]}`, "finish=stop choice"},
	{"finish reasons of answers without an end", `{"choices":[{"finish_reason":"abort","delta":{"content":"a"}}]}`, `text=a finish=abort choice error={"message":"the provider gave up before the end of the answer","code":"abort"} choice`},
	{"an error in place of a chunk", `{"object":"error","message":"CUDA out of memory","code":500}`, `error={"object":"error","message":"CUDA out of memory","code":500}`},
	{"an unusual finish reason", `{"choices":[{"finish_reason":"weird"}]}`, "finish=weird choice"},
	{"empty finish reason", `{"choices":[{"finish_reason":""}]}`, "choice"},
	{"content parts", `{"choices":[{"delta":{"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"},{"text":"b"},7]},{"type":"thinking","thinking":"c"},{"type":"text","text":"d"},{"type":"image_url"},"e",null]}}]}`, "thinking=ab thinking=c text=d choice"},
	{"calls", `{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":"{\"q\":"}},{"index":1,"function":{"arguments":""}}]}}]}`, `call=0/a/f/{"q": call=1/// choice`},
	{"calls without an index", `{"choices":[{"delta":{"tool_calls":[{"id":"a"},{"index":null},{"index":-2},{"index":"1"},{"index":4294967296}]}}]}`, "call=-1/a// call=-1/// call=-1/// call=-1/// call=-1/// choice"},
	{"calls of no shape", `{"choices":[{"delta":{"tool_calls":[null,{"function":null},"x"]}}]}`, "call=-1/// call=-1/// call=-1/// choice"},
	{"arguments as an object", `{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":{"n": 18446744073709551615}}}]}}]}`, `call=0//f/{"n": 18446744073709551615} choice`},
	{"a whole answer", `{"choices":[{"message":{"content":"a","tool_calls":[{"id":"k","function":{"name":"f","arguments":"{}"}},{"id":"l","function":{"name":"g","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}`, "text=a call=0/k/f/{} call=1/l/g/{} finish=tool_calls choice"},
	{"the message so far beside each delta", `{"choices":[{"delta":{"content":"b"},"message":{"content":"ab"}}]}`, "text=b choice"},
	{"a message that is no UTF-8", "{\"choices\":[{\"message\":{\"\xf2\":[],\"content\":\"a\xf2\"},\"finish_reason\":\"stop\"}]}", "text=a\uFFFD finish=stop choice"},
	{"a message beside no delta", `{"choices":[{"delta":null,"message":{"content":"ab"}}]}`, "text=ab choice"},
	{"usage", `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":5,"total_tokens":14,"prompt_tokens_details":{"audio_tokens":0,"cached_tokens":2},"completion_tokens_details":{"reasoning_tokens":1,"audio_tokens":0}}}`, "usage=9,2,5,1"},
	{"usage without details", `{"usage":{"prompt_tokens":0,"completion_tokens":1.0,"prompt_tokens_details":null,"completion_tokens_details":[]}}`, "usage=0,-,1,-"},
	{"counts that are none", `{"usage":{"prompt_tokens":-1,"completion_tokens":1e400,"completion_tokens_details":{"reasoning_tokens":"7"}}}`, "usage=-,-,-,-"},
	{"usage in x_groq", `{"x_groq":{"id":"x","usage":{"prompt_tokens":1}},"choices":[]}`, "usage=1,-,-,-"},
	{"usage in the choice", `{"choices":[{"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":7,"completion_tokens":5,"cached_tokens":3}}]}`, `finish=stop usage=7,3,5,- choice`},
	{"usage in the choice and beside it", `{"usage":{"prompt_tokens":2},"choices":[{"delta":{},"usage":{"prompt_tokens":7}}]}`, `usage=2,-,-,- choice`},
	{"cached tokens in DeepSeek's words", `{"usage":{"prompt_tokens":7,"prompt_cache_hit_tokens":3,"prompt_cache_miss_tokens":4}}`, `usage=7,3,-,-`},
	{"cached tokens in two words", `{"usage":{"cached_tokens":1,"prompt_tokens_details":{"cached_tokens":2},"prompt_cache_hit_tokens":3}}`, `usage=-,2,-,-`},
	{"usage in both places", `{"usage":{"prompt_tokens":2},"x_groq":{"usage":{"prompt_tokens":1}}}`, "usage=2,-,-,-"},
	{"error", `{"error":{"message":"m"},"choices":[]}`, `error={"message":"m"}`},
	{"error of the choice", `{"choices":[{"delta":{"content":"a"},"error":{"code":502,"message":"m"},"finish_reason":"error"}]}`, `text=a finish=error choice error={"code":502,"message":"m"} choice`},
	{"no error of the choice", `{"choices":[{"delta":{"content":"a"},"error":null}]}`, "text=a choice"},

	{"details that repeat the string", `{"choices":[{"delta":{"reasoning":"a","reasoning_details":[{"type":"reasoning.text","text":"a","format":"unknown","index":0}]}}]}`, "reasoning=a choice"},
	{"a summary that repeats a string after it", `{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.summary","summary":"a","id":"rs"}],"reasoning_content":"a"}}]}`, "reasoning_content=a choice"},
	{"details alone", `{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text","text":"a","signature":"","format":"f","id":null,"index":2},{"type":"reasoning.summary","summary":"b"}]}}]}`, `detail={"type":"reasoning.text","format":"f","index":2,"text":"a"} detail={"type":"reasoning.summary","summary":"b"} choice`},
	{"a proof beside a string", `{"choices":[{"delta":{"reasoning":"a","reasoning_details":[{"type":"reasoning.summary","summary":"","index":0},{"type":"reasoning.encrypted","data":"D","id":"rs","index":1}]}}]}`, `reasoning=a detail={"type":"reasoning.encrypted","id":"rs","index":1,"data":"D"} choice`},
	{"text with its proof beside a string", `{"choices":[{"message":{"reasoning":"ab","reasoning_details":[{"type":"reasoning.text","text":"a","signature":"S"},{"type":"reasoning.text","text":"b"}]}}]}`, `detail={"type":"reasoning.text","text":"a","signature":"S"} detail={"type":"reasoning.text","text":"b"} choice`},
	{"details of nothing", `{"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text","text":"","signature":""},null,7,{}]}}]}`, "choice"},
	{"details of another kind", `{"choices":[{"delta":{"reasoning_details":"x","reasoning":"a"}}]}`, "reasoning=a choice"},
	{"the last of two lists", `{"choices":[{"delta":{"reasoning_details":[{"data":"a"}],"reasoning_details":[{"data":"b"}]}}]}`, `detail={"data":"b"} choice`},
	{"error as a string", `{"error":"m"}`, `error="m"`},
	{"errors of nothing", `{"error":{}}`, ""},
	{"no error", `{"error":false,"choices":[]}`, ""},
	{"the last of two keys", `{"choices":[{"delta":{"content":"a","content":"b","reasoning":"c","reasoning":"d","tool_calls":[{"id":"x"}],"tool_calls":[{"id":"y"}]}}],"error":"e","error":null}`, "reasoning=d text=b call=-1/y// choice"},
	{"keys with escapes", `{"\u0063hoices":[{"delt\u0061":{"content":"a"}}]}`, "text=a choice"},
	{"case matters", `{"Choices":[{"delta":{"content":"a"}}]}`, ""},
}

func TestDecode(t *testing.T) {
	var d Decoder // one for all: nothing of a chunk may show in the next
	for _, tt := range decodeTests {
		for range 2 {
			if c, err := d.Decode([]byte(tt.data)); err != nil || show(c) != tt.want {
				t.Errorf("%s: got %s (%v), want %s", tt.name, show(c), err, tt.want)
			}
		}
	}
}

// TestDecodeWhole: in a whole answer the message counts, whatever stands beside it.
func TestDecodeWhole(t *testing.T) {
	var d Decoder
	for range 2 {
		c, err := d.DecodeWhole([]byte(`{"choices":[{"delta":{"content":""},"message":{"content":"a"},"finish_reason":"stop"}]}`))
		if want := "text=a finish=stop choice"; err != nil || show(c) != want {
			t.Errorf("got %s (%v), want %s", show(c), err, want)
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	var d Decoder
	for _, data := range []string{``, ` `, `{`, `{"choices":[`, `{"choices":[{"delta":{"content":"a`, `{"choices":[]} x`, `{"a" 1}`, `{"a":1,}`, `{a:1}`, `hello`, `{"choices":[{"delta":{"content":tru}}]}`, `{"choices":[{"delta":{"tool_calls":[` + strings.Repeat("1,", 1<<18) + `1]}}]}`, `{"x":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`} {
		if c, err := d.Decode([]byte(data)); err == nil {
			t.Errorf("%.40s was read as %s", data, show(c))
		}
	}
}

// TestLongPart: the pieces of a part are joined once.
func TestLongPart(t *testing.T) {
	const n = 10_000
	piece := strings.Repeat("x", 100)
	data := []byte(`{"choices":[{"delta":{"content":[{"thinking":[` + strings.Repeat(`{"text":"`+piece+`"},`, n) + `{}]}]}}]}`)
	var d Decoder
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	c, err := d.Decode(data)
	runtime.ReadMemStats(&after)
	if err != nil || len(c.Delta.Parts) != 1 || c.Delta.Parts[0].Text != strings.Repeat(piece, n) {
		t.Errorf("%d parts, %v", len(c.Delta.Parts), err)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > uint64(10*len(data)) {
		t.Errorf("%d bytes are allocated for a chunk of %d", took, len(data))
	}
}

// TestDecodeAllocations: a chunk of text costs its text and the list it stands in.
// TestDecodeRepeats: a chunk that differs from the one before in a text alone is read as it is by itself.
func TestDecodeRepeats(t *testing.T) {
	for _, format := range []string{
		`{"choices":[{"delta":{"content":"%s","reasoning_content":null}}]}`,
		`{"choices":[{"delta":{"content":null,"reasoning_content":"%s"}}]}`,
		`{"choices":[{"delta":{"content":"a"},"finish_reason":"%s"}]}`,
		`{"choices":[{"delta":{"content":"%[1]s"}}],"obfuscation":"%[1]s"}`,
		`{"choices":[{"finish_reason":"%s","delta":{"content":"a"}}]}`, // where the padding stood before
		`{"choices":[{"delta":{"content":"a","obfuscation":"%s"}}],"obfuscation":"x"}`,
		`{"choices":[{"delta":{"content":"%s","content":[{"text":"a"}]}}]}`,
		`{"choices":[{"delta":{"content":"%s","content":"a"}}]}`,
		`{"choices":[{"delta":{"reasoning":"%s","reasoning":{}}}]}`,
		`{"choices":[{"delta":{"content":"%s"},"message":{"content":"a"}}]}`,
		`{"choices":[{"delta":{"content":"%s"},"index":1},{"delta":{"content":"a"}}]}`,
		`{"choices":[{"delta":{"content":"%s"}}],"error":{"message":"m"}}`,
		`{"choices":[{"delta":{"content":"%s"},"error":{"message":"m"}}]}`,
	} {
		var d Decoder
		_, _ = d.Decode([]byte(`{              "obfuscation":"one","choices":[{"delta":{"content":"x"}}]}`))
		first, second := fmt.Appendf(nil, format, "one"), fmt.Appendf(nil, format, "another")
		if _, err := d.Decode(first); err != nil {
			t.Fatal(err)
		}
		clear(first) // the buffer is used again
		got, _ := d.Decode(second)
		if want, err := new(Decoder).Decode(second); err != nil || show(got) != show(want) {
			t.Errorf("%s: got %s, want %s (%v)", format, show(got), show(want), err)
		}
	}
}

func TestDecodeAllocations(t *testing.T) {
	for _, delta := range []string{
		`{"content":" world"}`,
		`{"content":"","role":"assistant","reasoning":" world","reasoning_details":[{"type":"reasoning.summary","summary":" world","format":"f","id":"rs_1","index":0}]}`,
	} {
		var d Decoder
		data := []byte(`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":` + delta + `,"logprobs":null,"finish_reason":null}]}`)
		if n := testing.AllocsPerRun(100, func() {
			if _, err := d.Decode(data); err != nil {
				t.Fatal(err)
			}
		}); n > 1 {
			t.Errorf("%s: %v allocations", delta, n)
		}
	}
}

func TestEncode(t *testing.T) {
	request := Request{
		Model: "m", Stream: true, Tools: &[]Tool{{"function", json.RawMessage("{\n \"name\": \"f\" }")}}, ToolChoice: "auto",
		Messages: []Message{{Role: "system", Content: "<é&>\u2028"}, {Role: "tool", ToolCallID: "k", Content: ""}, {Role: "assistant", Reasoning: new(""), ToolCalls: []ToolCall{{"k", "function", FunctionCall{"f", "{ }"}}}}},
	}
	const want = `{"model":"m","stream":true,"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":"auto","messages":[{"role":"system","content":"<é&>\u2028"},` +
		`{"role":"tool","tool_call_id":"k","content":""},{"role":"assistant","tool_calls":[{"id":"k","type":"function","function":{"name":"f","arguments":"{ }"}}],"reasoning":""}]}`
	if got, err := request.Encode(); err != nil || string(got) != want {
		t.Errorf("got  %s (%v)\nwant %s", got, err, want)
	}
}

// FuzzDecode: no input panics, what is not JSON in UTF-8 may be read leniently but what is is always read, as text in UTF-8.
func FuzzDecode(f *testing.F) {
	for _, tt := range decodeTests {
		f.Add([]byte(tt.data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var d Decoder
		c, err := d.Decode(data)
		if err != nil {
			if json.Valid(data) && utf8.Valid(data) && !strings.Contains(err.Error(), "nested too deeply") {
				t.Errorf("%q is JSON: %v", data, err)
			}
			return
		}
		first := show(c)
		if c.Error == nil && !utf8.ValidString(first) {
			t.Errorf("%q gives %q", data, first)
		}
		if c, err = d.Decode(data); err != nil || show(c) != first {
			t.Errorf("%q read again: %s (%v), first %s", data, show(c), err, first)
		}
		pieces := bytes.SplitAfter(data, []byte(`:"`))
		for i := 1; i < min(len(pieces), 8); i++ { // with one string changed
			another := slices.Concat(bytes.Join(pieces[:i], nil), []byte("z"), bytes.Join(pieces[i:], nil))
			c, err := d.Decode(another)
			if fresh, want := new(Decoder).Decode(another); (err == nil) != (want == nil) || err == nil && show(c) != show(fresh) {
				t.Errorf("%q after %q: %s (%v), want %s (%v)", another, data, show(c), err, show(fresh), want)
			}
		}
	})
}
