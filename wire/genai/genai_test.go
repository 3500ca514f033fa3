package genai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"time"
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
	for _, p := range c.Parts {
		kind := []string{"unknown", "text", "data", "call"}[p.Kind]
		if p.Thought {
			kind = "thought-" + kind
		}
		switch p.Kind {
		case PartText:
			kind += "(" + p.Text + ")"
		case PartInlineData:
			kind += "(" + p.MimeType + " " + p.Data + ")"
		case PartFunctionCall:
			kind += "(" + p.ID + "/" + p.Name + "/" + p.Arguments + ")"
		}
		if p.Signature != "" {
			kind += "!" + p.Signature
		}
		says = append(says, kind)
	}
	add("finish", c.FinishReason)
	add("because", c.FinishText)
	add("block", c.BlockReason)
	add("because", c.BlockText)
	if u := c.Usage; u != (Usage{}) {
		add("usage", fmt.Sprintf("%v,%d,%d,%d,%d", u.Reported, u.Prompt, u.Cached, u.Thoughts, u.Candidates))
	}
	add("error", string(c.Error))
	if c.HasCandidate {
		says = append(says, "candidate")
	}
	if c.Ended {
		says = append(says, "ended")
	}
	return strings.Join(says, " ")
}

func parts(p string) string {
	return `{"candidates":[{"content":{"parts":[` + p + `],"role":"model"}}]}`
}

var decodeTests = []struct{ name, data, want string }{
	{"nothing", `{}`, ""},
	{"null", `null`, ""},
	{"another kind", `[1]`, ""},
	{"no candidate", `{"candidates":[],"modelVersion":"x"}`, ""},
	{"nulls", `{"candidates":null,"promptFeedback":null,"usageMetadata":null,"error":null}`, ""},
	{"a null candidate", `{"candidates":[null]}`, "candidate"},
	{"no content", `{"candidates":[{"content":{},"index":0},{"finishReason":"STOP"}]}`, "candidate"},
	{"text", ` {"candidates": [{"content": {"parts": [{"text": "h\u00e9\n😀"}]}}]} `, "text(hé\n😀) candidate"},
	{"an empty text", parts(`{"text":""}`), "text() candidate"},
	{"a thought", parts(`{"thought":true,"text":"t","thoughtSignature":"QQ=="}`), "thought-text(t)!QQ== candidate"},
	{"a signature alone", parts(`{"thoughtSignature":"QQ=="},{"thought":true,"thoughtSignature":"Qg=="}`), "text()!QQ== thought-text()!Qg== candidate"},
	{"data", parts(`{"inlineData":{"mimeType":"image/png","data":"AQI=","x":1}},{"thought":true,"inlineData":{}}`), "data(image/png AQI=) thought-data( ) candidate"},
	{"several things in one part", parts(`{"text":"a","inlineData":{"data":"x"}},{"text":"a","thought":true,"inlineData":{"data":"x"}},{"text":"a","inlineData":{"data":"x"},"functionCall":{"name":"f"}}`), "data( x) thought-text(a) call(/f/{}) candidate"},
	{"other parts", parts(`{"executableCode":{}},{"toolCall":{},"thoughtSignature":"QQ=="},{},null,1,{"text":7},{"thought":"x","inlineData":null,"functionCall":[]}`), "unknown unknown!QQ== unknown unknown unknown unknown unknown candidate"},
	{"calls", parts(`{"functionCall":{"id":"k","name":"f","args":{ "n": 18446744073709551615 }},"thoughtSignature":"QQ=="},{"functionCall":{"name":"g","args":null}},{"functionCall":{"name":"h"}},{"functionCall":{"args":{}}},{"functionCall":{}}`), `call(k/f/{ "n": 18446744073709551615 })!QQ== call(/g/{}) call(/h/{}) call(//{}) call(//) candidate`},
	{"the end", `{"candidates":[{"finishReason":"STOP","finishMessage":"m"}]}`, "finish=STOP because=m candidate"},
	{"a refusal", `{"promptFeedback":{"blockReason":"SAFETY","blockReasonMessage":"m","safetyRatings":[]}}`, "block=SAFETY because=m"},
	{"usage", `{"usageMetadata":{"promptTokenCount":9,"cachedContentTokenCount":2,"thoughtsTokenCount":3,"candidatesTokenCount":4,"totalTokenCount":16,"promptTokensDetails":[{"modality":"TEXT","tokenCount":9}]}}`, "usage=true,9,2,3,4"},
	{"usage of nothing", `{"usageMetadata":{"promptTokenCount":0}}`, "usage=true,0,0,0,0"},
	{"no usage", `{"usageMetadata":{"trafficType":"ON_DEMAND","candidatesTokenCount":4}}`, ""},
	{"counts that are none", `{"usageMetadata":{"promptTokenCount":-1}}`, ""},
	{"counts of other kinds", `{"usageMetadata":{"promptTokenCount":5,"thoughtsTokenCount":"7","candidatesTokenCount":-3}}`, "usage=true,5,0,0,0"},
	{"an error", `{"error":{"message":"m"}}`, `error={"message":"m"}`},
	{"errors of nothing", `{"error":{}}`, ""},
	{"the last of two keys", `{"candidates":[{"content":{"parts":[{"text":"a"}],"parts":[{"text":"b","text":"c"}]},"finishReason":"X","finishReason":null}]}`, "text(c) candidate"},
	{"case matters", `{"Candidates":[{}]}`, ""},
	{"values of other kinds", `{"candidates":[{"content":[],"finishReason":{}}],"promptFeedback":"x","usageMetadata":[]}`, "candidate"},
}

func TestDecode(t *testing.T) {
	for _, tt := range decodeTests {
		var d Decoder
		for range 2 { // the second time as the one before said it
			c, err := d.Decode([]byte(tt.data))
			if got := strings.TrimSuffix(show(c), " ended"); err != nil || got != tt.want {
				t.Errorf("%s: got %s (%v), want %s", tt.name, got, err, tt.want)
			}
		}
	}
}

// What a decoder keeps from chunk to chunk: the counts, that the end came, and a call that streams. Nothing else.
func TestDecodeStream(t *testing.T) {
	call := func(fields string) string { return parts(`{"functionCall":{` + fields + `}}`) }
	for _, tt := range []struct{ name, data, want string }{
		{"texts", parts(`{"text":"a"}`) + "\n" + parts(`{"text":"b"}`) + "\n" + parts(`{"text":"\n"}`) + "\n" + parts(`{"text":""}`) + "\n" + parts(`{"text":"c"}`) + "\n" + parts(`{"text":"d"},{"text":"e"}`), `
			text(a) candidate; text(b) candidate; text(\n) candidate; text() candidate; text(c) candidate; text(d) text(e) candidate`},
		{"a text like the signed one before", parts(`{"text":"a","thoughtSignature":"QQ=="}`) + "\n" + parts(`{"text":"b","thoughtSignature":"QQ=="}`) + "\n" + parts(`{"text":"b"}`), `
			text(a)!QQ== candidate; text(b)!QQ== candidate; text(b) candidate`},
		{"counts grow", `{"usageMetadata":{"promptTokenCount":9,"thoughtsTokenCount":3}}` + "\n" + `{"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":1}}` + "\n" + `{"usageMetadata":{"trafficType":"x"}}` + "\n" + `{"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":2}}`, `
			usage=true,9,0,3,0; usage=true,9,0,3,1; usage=true,9,0,3,1; usage=true,10,0,3,2`},
		{"the end stays", `{"candidates":[{"finishReason":"STOP"}]}` + "\n" + `{}`, `finish=STOP candidate ended; ended`},
		{"a refusal stays", `{"promptFeedback":{"blockReason":"X"}}` + "\n" + `{}`, `block=X ended; ended`},
		{
			"a call that streams",
			call(`"id":"k","name":"f","willContinue":true`) + "\n" + call(`"partialArgs":[{"jsonPath":"$.a","stringValue":"x\"","willContinue":true}],"willContinue":true`) + "\n" +
				call(`"partialArgs":[{"jsonPath":"$.a","stringValue":"y"},{"jsonPath":"$.b","numberValue":1.50}],"willContinue":true`) + "\n" + call(`"willContinue":true`) + "\n" + call(``) + "\n" + call(`"name":"g","args":{}`),
			`call(k/f/) candidate; call(//{"a":"x\") candidate; call(//y","b":1.50) candidate; call(//) candidate; call(//}) candidate; call(/g/{}) candidate`,
		},
		{"a call of no arguments that streams", call(`"name":"f","willContinue":true`) + "\n" + call(``), `call(/f/) candidate; call(//) candidate`},
		{"the whole after all", call(`"name":"f","willContinue":true`) + "\n" + call(`"args":{"a":1}`), `call(/f/) candidate; call(//{"a":1}) candidate`},
		{"a call in one chunk", call(`"name":"f","partialArgs":[{"jsonPath":"$.a","boolValue":false},{"jsonPath":"$.b","nullValue":"NULL_VALUE"}]`), `call(/f/{"a":false,"b":null}) candidate`},
		{"a call that is cut off", call(`"name":"f","partialArgs":[{"jsonPath":"$.a","stringValue":"x","willContinue":true}],"willContinue":true`) + "\n" + parts(`{"thoughtSignature":"QQ==","functionCall":{"name":"g"}}`), `call(/f/{"a":"x) candidate; call(//"}) call(/g/{})!QQ== candidate`},
	} {
		var d Decoder
		var got []string
		for line := range strings.SplitSeq(tt.data, "\n") {
			c, err := d.Decode([]byte(line))
			if err != nil {
				t.Errorf("%s: %s: %v", tt.name, line, err)
			}
			got = append(got, strings.ReplaceAll(show(c), "\n", `\n`))
		}
		if got := strings.Join(got, "; "); got != strings.TrimSpace(tt.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.name, got, strings.TrimSpace(tt.want))
		}
	}
}

// TestManyArguments: a call of many values, each compared with those before it, would take minutes.
func TestManyArguments(t *testing.T) {
	for _, tt := range []struct{ path, value, end string }{
		{"$.a[%d]", `1`, "]}"},
		{"$.a%d", `1`, "}"},
		{"$.a.b%d", `1`, "}}"},
	} {
		var partial []string
		for i := range 50_000 {
			partial = append(partial, fmt.Sprintf(`{"jsonPath":"`+tt.path+`","numberValue":`+tt.value+`}`, i))
		}
		all := strings.Join(partial, ",")
		began := time.Now()
		var d Decoder
		c, err := d.Decode([]byte(parts(`{"functionCall":{"name":"f","partialArgs":[` + all + `]}}`)))
		if took := time.Since(began); err != nil || took > 20*time.Second || !strings.HasSuffix(c.Parts[0].Arguments, ",1"+tt.end) && !strings.HasSuffix(c.Parts[0].Arguments, ":1"+tt.end) {
			t.Errorf("%s: %v after %v", tt.path, err, took)
		}
		if _, err := d.Decode([]byte(parts(`{"functionCall":{"name":"f","partialArgs":[` + all + `,` + partial[7] + `]}}`))); err == nil {
			t.Errorf("%s: a value came twice", tt.path)
		}
	}
}

func TestDecodeErrors(t *testing.T) {
	var d Decoder
	for _, data := range []string{
		``, ` `, `{`, `{"candidates":[`, parts(`{"text":"a`), `{} x`, `{"a" 1}`, `{a:1}`, `hello`, parts(`{"functionCall":{"args":tru}}`),
		`{"x":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`, parts(`{"functionCall":{"name":"f","partialArgs":[{"jsonPath":"a","stringValue":""}]}}`),
	} {
		if c, err := d.Decode([]byte(data)); err == nil {
			t.Errorf("%.60s was read as %s", data, show(c))
		}
	}
}

// TestDecodeAllocations: a chunk of text costs its text, whether only the text differs or the counts do too.
// TestDecodeRepeats: a chunk that differs from the one before in a text alone is read as it is by itself.
func TestDecodeRepeats(t *testing.T) {
	for _, format := range []string{
		`{"candidates":[{"content":{"parts":[{"text":"%s"}]}}],"usageMetadata":{"promptTokenCount":3}}`,
		`{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"%s"}]}`,
		`{"candidates":[{"content":{"parts":[{"text":"%s","text":1}]}}]}`,
		`{"candidates":[{"content":{"parts":[{"text":"%s","text":"a"}]}}]}`,
		`{"candidates":[{"content":{"parts":[{"text":"%s"},{"text":"a"}]}}]}`,
		`{"candidates":[{"content":{"parts":[{"text":"%s"}],"parts":[{"text":"a"}]}}]}`,
		`{"candidates":[{"content":{"parts":[{"text":"%s"}],"parts":[]}}]}`,
		`{"candidates":[{"content":{"parts":[{"text":"%s","thoughtSignature":"a"}]}}]}`,
		`{"candidates":[{"content":{"parts":[{"text":"%s","inlineData":{"data":"QQ=="}}]}}]}`,
		`{"candidates":[{"content":{"parts":[{"text":"%s"}]}}],"error":{"message":"m"}}`,
	} {
		var d Decoder
		first, second := fmt.Appendf(nil, format, "one"), fmt.Appendf(nil, format, "another")
		if _, err := d.Decode(first); err != nil {
			t.Fatal(err)
		}
		clear(first) // the buffer is used again
		got, _ := d.Decode(second)
		want, err := new(Decoder).Decode(second)
		if err != nil || show(got) != show(want) || string(got.Data) != string(want.Data) {
			t.Errorf("%s: got %s, want %s (%v)", format, show(got), show(want), err)
		}
	}
}

func TestDecodeAllocations(t *testing.T) {
	for name, chunks := range map[string][]string{
		"the text differs":       {"1", "1"},
		"the counts differ too ": {"1", "2"},
	} {
		var d Decoder
		var data [][]byte
		for i, count := range chunks {
			data = append(data, fmt.Appendf(nil, `{"candidates": [{"content": {"parts": [{"text": " world %d"}],"role": "model"},"index": 0}],"usageMetadata": {"promptTokenCount": 13,"candidatesTokenCount": %s},"modelVersion": "m"}`, i, count))
		}
		n := 0
		if allocs := testing.AllocsPerRun(100, func() {
			n++
			if _, err := d.Decode(data[n%2]); err != nil {
				t.Fatal(err)
			}
		}); allocs > 1 {
			t.Errorf("%s: %v allocations", name, allocs)
		}
	}
}

func TestPaths(t *testing.T) {
	for _, tt := range []struct{ path, want string }{
		{"$.a", "a"},
		{"$.a.b", "a b"},
		{"$.a[0].b", "a [0 b"},
		{"$['a b']", "a b"},
		{`$["a"]['b\'c']`, "a b'c"},
		{"$.é-1", "é-1"},
		{"$.a[0][12]", "a [0 [12"},
		{"", ""},
		{"$", ""},
		{"a", ""},
		{"$a", ""},
		{"$.", ""},
		{"$..a", ""},
		{"$.a[", ""},
		{"$.a[]", ""},
		{"$.a[-1]", ""},
		{"$.a[x]", ""},
		{"$['a'", ""},
		{"$['a", ""},
		{"$['']", ""},
		{"$['[0']", ""},
		{"$.a[99999999999999999999]", ""},
		{"$" + strings.Repeat(".a", 64), strings.TrimSuffix(strings.Repeat("a ", 64), " ")},
		{"$" + strings.Repeat(".a", 65), ""},
	} {
		path, err := parsePath(tt.path)
		if strings.Join(path, " ") != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%q: %q %v", tt.path, path, err)
		}
	}
}

func TestArguments(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{`$.a="x`, `{"a":"x"}`},
		{`$.a=1 $.b=true $.c=null`, `{"a":1,"b":true,"c":null}`},
		{`$.a.b=1 $.a.c=2 $.d=3`, `{"a":{"b":1,"c":2},"d":3}`},
		{`$.a[0]=1 $.a[1]=2`, `{"a":[1,2]}`},
		{`$.a[0].x=1 $.a[0].y=2 $.a[1].x=3 $.b[0][0]=4 $.b[0][1]=5 $.b[1][0]=6`, `{"a":[{"x":1,"y":2},{"x":3}],"b":[[4,5],[6]]}`},
		{`$.a="x+ $.a="y+ $.a="z $.b="`, `{"a":"xyz","b":""}`},
		{`$.a="x+ $.b=1`, `{"a":"x","b":1}`},
		{`$.a="x+`, `{"a":"x"}`},
		{`$["a.b"]=1`, `{"a.b":1}`},
		{``, ``},
		{`$.a=1 $.a=2`, "error"},
		{`$.a.b=1 $.c=1 $.a.d=1`, "error"},
		{`$.a.b=1 $.a=2`, "error"},
		{`$.a[0].b=1 $.a[0]=2`, "error"},
		{`$.a[1]=1`, "error"},
		{`$.a[0]=1 $.a[2]=1`, "error"},
		{`$.a[0]=1 $.a.b=1`, "error"},
		{`$.a=1 $.a.b=1`, "error"},
		{`$[0]=1`, "error"},
		{`$.a="x $.a="y`, "error"},
	} {
		var a arguments
		var text []byte
		var err error
		for arg := range strings.FieldsSeq(tt.args) {
			path, value, _ := strings.Cut(arg, "=")
			p := partialArgument{path: path, value: []byte(value)}
			if rest, ok := strings.CutPrefix(value, `"`); ok {
				p.value = nil
				p.text, p.continues = strings.CutSuffix(rest, "+")
			}
			if text, err = a.add(text, &p); err != nil {
				break
			}
		}
		got := string(a.close(text))
		if err != nil {
			got = "error"
		} else if got != "" && !json.Valid([]byte(got)) {
			t.Errorf("%s: %s is no JSON", tt.args, got)
		}
		if got != tt.want {
			t.Errorf("%s: got %s (%v), want %s", tt.args, got, err, tt.want)
		}
	}
}

func TestFrames(t *testing.T) {
	for _, tt := range []struct{ body, want string }{
		{`[{"a":1},{"b":2}]`, `{"a":1}|{"b":2}`},
		{" [\r\n{\n \"a\": [1,\r\n2],\n\"b\":{}}\n,\r\n{}]\n", ` {...}`},
		{`{"a":"[{\"}\\"}`, `{"a":"[{\"}\\"}`},
		{`[{"a":"}"},{"b":"\\\"}{"},{"c":"\\\\"},{"d":"{"},{}]`, `{"a":"}"}|{"b":"\\\"}{"}|{"c":"\\\\"}|{"d":"{"}|{}`},
		{`[]`, ``},
		{``, ``},
		{`[{"a":1},{"b`, `{"a":1}|{"b`},
		{`[1,"x"]`, `1|"|x|"`},
		{`[[{"a":1}]]`, `{"a":1}`},
		{`[{"a":"é😀"}]`, `{"a":"é😀"}`},
	} {
		if tt.want == ` {...}` {
			tt.want = `{ "a": [1,2],"b":{}}|{}`
		}
		for name, r := range map[string]io.Reader{"whole": strings.NewReader(tt.body), "bytes": iotest.OneByteReader(strings.NewReader(tt.body)), "with the end": iotest.DataErrReader(strings.NewReader(tt.body))} {
			framed, err := io.ReadAll(iotest.HalfReader(Frames(r)))
			var got []string
			for event := range strings.SplitSeq(string(framed), "\n\n") {
				if event != "" {
					got = append(got, strings.TrimPrefix(event, "data: "))
				}
			}
			if err != nil || strings.Join(got, "|") != tt.want {
				t.Errorf("%s, %s: %q (%v), want %s", tt.body, name, got, err, tt.want)
			}
		}
	}
	broken := Frames(io.MultiReader(strings.NewReader(`[{"a":1}`), iotest.ErrReader(io.ErrUnexpectedEOF)))
	if data, err := io.ReadAll(broken); err != io.ErrUnexpectedEOF || string(data) != "data: {\"a\":1}\n\n" {
		t.Errorf("%q %v", data, err)
	}
}

func TestAnswers(t *testing.T) {
	for _, tt := range []struct{ data, want string }{
		{`{"embeddings":[{"values":[1,2.5]},{"values":null},null]}`, "[[1 2.5] [] []] -1 true"},
		{`{"embedding":{"values":[1],"statistics":{"tokenCount":3}},"usageMetadata":{"promptTokenCount":5}}`, "[[1]] 5 true"},
		{`{"embeddings":[],"metadata":{"billableCharacterCount":2}}`, "[] 2 true"},
		{`{"embeddings":{}}`, "[] -1 false"},
		{`{"error":{}}`, "[] -1 false"},
		{`[]`, "[] -1 false"},
		{`{"embeddings":[{"values":[1]}]`, "[[1]] -1 false"},
	} {
		e, ok := ReadEmbeddings([]byte(tt.data))
		tokens := int64(-1)
		if e.PromptTokens != nil {
			tokens = *e.PromptTokens
		}
		if got := fmt.Sprint(e.Vectors, tokens, ok); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.data, got, tt.want)
		}
	}
	for _, tt := range []struct{ data, want string }{
		{`{"models":[{"name":"models/a"},{"name":"b"},{"x":1},null],"nextPageToken":"t"}`, "[a b] t true"},
		{`{"publisherModels":[{"name":"publishers/google/models/a","versionId":"1"}]}`, "[a]  true"},
		{`{}`, "[]  true"},
		{`[]`, "[]  false"},
		{`{"models":[`, "[]  false"},
	} {
		ids, next, ok := ReadModels([]byte(tt.data))
		if got := fmt.Sprint(ids, " ", next, " ", ok); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.data, got, tt.want)
		}
	}
}

func TestEncode(t *testing.T) {
	text := "<é&>\u2028"
	body, err := Encode(&Request{Contents: []Content{{Role: "user", Parts: []Part{{Text: &text}, {InlineData: &Blob{"image/png", []byte{255, 239}}}, {FunctionCall: &FunctionCall{Name: "f", Args: json.RawMessage("{ \"b\": 1e400,\n\"a\": 1.0 }")}}}}}})
	const want = `{"contents":[{"role":"user","parts":[{"text":"<é&>\u2028"},{"inlineData":{"mimeType":"image/png","data":"/+8="}},{"functionCall":{"name":"f","args":{"b":1e400,"a":1.0}}}]}]}`
	if err != nil || string(body) != want {
		t.Errorf("%s (%v)", body, err)
	}
	if _, err := Encode(&Request{Contents: []Content{{Parts: []Part{{FunctionCall: &FunctionCall{Args: json.RawMessage("{")}}}}}}); err == nil {
		t.Error("arguments that are no JSON")
	}
}

// FuzzDecode: no input panics, JSON is always read, and as text in UTF-8; the second time it says the same.
func FuzzDecode(f *testing.F) {
	for _, tt := range decodeTests {
		f.Add([]byte(tt.data))
	}
	f.Add([]byte(parts(`{"functionCall":{"name":"f","partialArgs":[{"jsonPath":"$.a[0]['b']","stringValue":"x","willContinue":true}],"willContinue":true}}`)))
	f.Fuzz(func(t *testing.T, data []byte) {
		var d Decoder
		c, err := d.Decode(data)
		if err != nil {
			if json.Valid(data) && utf8.Valid(data) && !strings.Contains(err.Error(), "nested too deeply") && !strings.Contains(err.Error(), "argument") {
				t.Errorf("%q is JSON: %v", data, err)
			}
			return
		}
		c.Error = nil
		if first := show(c); !utf8.ValidString(first) {
			t.Errorf("%q gives %q", data, first)
		} else if !bytes.Contains(data, []byte(`C`)) { // of a call that streams the second piece is another
			first := strings.TrimSuffix(first, " ended")
			if c, err = d.Decode(data); err != nil || !slices.Contains([]string{first, first + " ended"}, show(&Chunk{Parts: c.Parts, FinishReason: c.FinishReason, FinishText: c.FinishText, BlockReason: c.BlockReason, BlockText: c.BlockText, Usage: c.Usage, HasCandidate: c.HasCandidate})) {
				t.Errorf("%q read again: %s (%v), first %s", data, show(c), err, first)
			}
		}
	})
}
