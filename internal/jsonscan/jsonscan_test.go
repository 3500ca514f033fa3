package jsonscan

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestScannerReadsAnObject(t *testing.T) {
	var s Scanner
	s.Reset([]byte(` { "text" : "a\"\\\n\u00e9\ud83d\ude00\ud83d!" , "n":12, "f": -1.5e1, "big":1e300, "yes":true, "no":false,
		"none":null, "list":[ 1 , "x" , {"y":[]} ], "empty":[], "raw": {"k": [1, 2]} , "skip":{"a":"}]\\\""} } `))
	got := map[string]any{}
	for first := true; s.Field(&first); {
		switch name := string(s.Name()); name {
		case "text":
			got[name] = s.String()
		case "n", "big":
			n, ok := s.Int()
			got[name] = [2]any{n, ok}
		case "f":
			f, _ := s.Float()
			got[name] = f
		case "yes", "no":
			got[name] = s.Bool()
		case "list", "empty":
			var kinds []byte
			for first := true; s.Element(&first); {
				kinds = append(kinds, s.Kind())
				s.Skip()
			}
			got[name] = string(kinds)
		case "raw":
			got[name] = string(s.Raw())
		default:
			s.Skip()
		}
	}
	if err := s.End(); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"text": "a\"\\\né😀\uFFFD!", "n": [2]any{int64(12), true}, "big": [2]any{int64(0), false}, "f": -15.0, "yes": true, "no": false,
		"list": `0"{`, "empty": "", "raw": `{"k": [1, 2]}`,
	}
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s: got %#v, want %#v", k, got[k], v)
		}
	}
}

func TestScannerTakesAnotherKindForAbsent(t *testing.T) {
	for _, text := range []string{`12`, `"x"`, `null`, `[1]`, `true`} {
		var s Scanner
		s.Reset([]byte(text))
		for first := true; s.Field(&first); {
			t.Errorf("%s has a field", text)
		}
		if err := s.End(); err != nil {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestScannerErrors(t *testing.T) {
	for _, text := range []string{``, `{`, `{"a"`, `{"a":`, `{"a":1`, `{"a":1,`, `{"a":1,}`, `{"a" 1}`, `{a:1}`, `{"a":"`, `{"a":"\"}`, `{"a":1}x`, `{"a":nul}`, `{"a":?}`, "{}\x00", "{\x00}", "{\"a\":\x00}"} {
		var s Scanner
		s.Reset([]byte(text))
		for first := true; s.Field(&first); {
			s.Skip()
		}
		if s.End() == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

// What says nothing is not missed.
func TestLeave(t *testing.T) {
	for text, want := range map[string]string{
		`null`: "", `{}`: "", `[]`: "", `""`: "", `false`: "", `[[],{"a":{"b":null},"c":[""]}]`: "",
		`{"a":[{"b":""},{"c":0}],"d":null}`: "x", `[null,"y"]`: "x", `true`: "x", `0`: "x", `"y"`: "x",
	} {
		r := NewReader([]byte(`{"x":` + text + `,"z":1}`))
		r.Fields(func(name string) {
			if name == "x" {
				r.Leave()
			} else {
				r.SkipUnknown()
			}
		})
		if err := r.End(); err != nil || strings.Join(r.Dropped(), ",") != want || strings.Join(r.Unknown(), ",") != "z" {
			t.Errorf("%s: dropped %q, unknown %q, %v", text, r.Dropped(), r.Unknown(), err)
		}
	}
	for text, want := range map[string]string{`[1]`: "", `"a"`: "", `null`: "", `{}`: "a list or a string is wanted", `true`: "a list or a string is wanted"} {
		r := NewReader([]byte(text))
		r.Leave('[', '"')
		if err := r.End(); (err != nil) != (want != "") || err != nil && err.Error() != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestIntern(t *testing.T) {
	var s Scanner
	last, text := "msg_1", []byte(`"msg_1"`)
	if n := testing.AllocsPerRun(100, func() {
		s.Reset(text)
		if s.Intern(last) != last {
			t.Error("another text")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestNodes: a scanner looks into as many values of a text as Check takes objects and lists.
func TestNodes(t *testing.T) {
	for element, read := range map[string]func(*Scanner){
		"{}": func(s *Scanner) {
			for first := true; s.Field(&first); {
			}
		},
		"[]": func(s *Scanner) {
			for first := true; s.Element(&first); {
			}
		},
		"1": func(s *Scanner) { // which is none
			for first := true; s.Field(&first); {
			}
		},
	} {
		for n, fits := range map[int]bool{MaxNodes - 1: true, MaxNodes: false} {
			var s Scanner
			for range 2 { // each text by itself
				s.Reset([]byte("[" + strings.Repeat(element+",", n-1) + element + "]"))
				elements := 0
				for first := true; s.Element(&first); elements++ {
					read(&s)
				}
				if err := s.End(); (err == nil) != fits || fits && elements != n {
					t.Errorf("%d times %s: %d elements, %v", n, element, elements, err)
				}
			}
		}
	}
	var s Scanner // what is skipped does not count
	s.Reset([]byte("[" + strings.Repeat("{},", MaxNodes) + "1]"))
	for first := true; s.Element(&first); {
		s.Skip()
	}
	if err := s.End(); err != nil {
		t.Error(err)
	}
}

func TestCheck(t *testing.T) {
	deep := strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth)
	many := func(last string) string {
		var b strings.Builder
		for i := range 40 {
			b.WriteString(`"k` + strings.Repeat("x", i) + `":1,`)
		}
		return "{" + b.String() + `"` + last + `":2}`
	}
	for _, c := range []struct {
		text   string
		reason string // "" when it passes
	}{
		{`{"a":[1,-0.5e+3,"\u00e9\ud83d\ude00",true,false,null,{}],"b":{"a":1}}`, ""},
		{deep, ""},
		{"[" + deep + "]", "nested too deeply"},
		{"[" + strings.Repeat("{},", MaxNodes-2) + "[]]", ""},
		{"[" + strings.Repeat("{},", MaxNodes-1) + "[]]", "objects and lists"},
		{`{"a":1,"a":2}`, `the key "a" stands twice`},
		{`{"x":{"a":1,"\u0061":2}}`, `the key "a" stands twice`},
		{`{"a":1,"A":2}`, ""},
		{many("last"), ""},
		{many("kxxx"), `the key "kxxx" stands twice`},
		{many("k" + strings.Repeat("x", 39)), "stands twice"},
		{"{\"a\":\"\xff\"}", "a string is not UTF-8"},
		{`"\ud83d"`, "a lone surrogate stands in a string"},
		{`"\ude00\ud83d"`, "a lone surrogate stands in a string"},
		{`"\x"`, "not an escape"},
		{"\"\n\"", "a control character stands in a string"},
		{`01`, "text after the value"},
		{`1.`, "not a number"},
		{`1e`, "not a number"},
		{`-`, "not a value"},
		{`+1`, "not a value"},
		{`NaN`, "not a value"},
		{`[1,]`, "not a value"},
		{`{"a":1,}`, "a key is missing"},
		{`[1 2]`, "a comma"},
		{``, "the text ends early"},
		{`"abc`, "a string does not end"},
	} {
		err := Check([]byte(c.text))
		if (err == nil) != (c.reason == "") || err != nil && !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%.60q: got %v, want %q", c.text, err, c.reason)
		}
	}
}

func TestAppendString(t *testing.T) {
	for in, want := range map[string]string{
		"":                `""`,
		"é😀<&>\u2028":     "\"é😀<&>\u2028\"",
		"a\"\\\n\r\t\x01": `"a\"\\\n\r\t\u0001"`,
		"x\xff\xfey\xe9":  "\"x\uFFFD\uFFFDy\uFFFD\"",
	} {
		if got := string(AppendString(nil, in)); got != want {
			t.Errorf("%q: got %s, want %s", in, got, want)
		}
	}
}

// walk reads everything of a text with the Scanner, back into what encoding/json makes of it.
func walk(s *Scanner) any {
	switch s.Kind() {
	case '{':
		m := map[string]any{}
		for first := true; s.Field(&first); {
			name := string([]rune(string(s.Name())))
			m[name] = walk(s)
		}
		return m
	case '[':
		l := []any{}
		for first := true; s.Element(&first); {
			l = append(l, walk(s))
		}
		return l
	case '"':
		return s.String()
	case '0':
		f, _ := s.Float()
		return f
	case 't', 'f':
		return s.Bool()
	}
	s.Skip()
	return nil
}

// FuzzScanner compares Scanner, Check and Valid with encoding/json.
func FuzzScanner(f *testing.F) {
	for _, seed := range []string{`{"a":[1,"\ud83d\ude00",null,{"b":-1.5e3}]}`, `"\u00"`, `[1,,2]`, "{\"\xff\xfe\":\"\\u00e9\xff\xfe\"}", `{"a":1,"a":2}`, ` [ ] `} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var s Scanner
		s.Reset(data)
		got := walk(&s)
		err := s.End()
		s.Reset(data)
		s.Raw()
		rawErr := s.End()
		if Check(data) == nil && (err != nil || rawErr != nil) {
			t.Fatalf("Check accepts what the Scanner refuses: %v, %v", err, rawErr)
		}
		if Valid(data) != json.Valid(data) && len(data) < MaxDepth && utf8.Valid(data) {
			t.Fatalf("Valid is %v", Valid(data))
		}
		if json.Valid(data) && err == nil {
			var want any
			if json.Unmarshal(data, &want) != nil {
				return // numbers that overflow
			}
			g, _ := json.Marshal(got)
			w, _ := json.Marshal(want)
			if string(g) != string(w) {
				t.Fatalf("read %s, want %s", g, w)
			}
		}
		if quoted := AppendString(nil, data); json.Valid(quoted) {
			var back string
			if json.Unmarshal(quoted, &back) != nil || back != string([]rune(string(data))) {
				t.Fatalf("%q comes back as %q", data, back)
			}
		} else {
			t.Fatalf("AppendString writes %s", quoted)
		}
	})
}

func BenchmarkScanner(b *testing.B) {
	data := []byte(`{"id":"chatcmpl-mock0123456789abcdef01234567","object":"chat.completion.chunk","created":1790000000,"model":"mock-n200-d0","system_fingerprint":"fp_44709d6fcb","choices":[{"index":0,"delta":{"content":"tok00000:1790000000000000000 "},"logprobs":null,"finish_reason":null}]}`)
	var s Scanner
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		s.Reset(data)
		for first := true; s.Field(&first); {
			s.Skip()
		}
	}
}

// remember returns a template of a text that asks for "content" and skips "n" and "pad".
func remember(t *testing.T, data []byte) *Template {
	var s Scanner
	var value Span
	var skipped []Span
	s.Reset(data)
	for first := true; s.Field(&first); {
		switch string(s.Name()) {
		case "n", "pad":
			skipped = append(skipped, s.SkipSpan())
		case "delta":
			for first := true; s.Field(&first); {
				s.Bytes()
				value = s.Span()
			}
		default:
			s.Skip()
		}
	}
	if err := s.End(); err != nil {
		t.Fatal(err)
	}
	var template Template
	if _, ok := template.Match(data); ok {
		t.Error("an empty template matches")
	}
	template.Remember(data, value, skipped...)
	return &template
}

func TestTemplate(t *testing.T) {
	const (
		plain  = `{"id":"c1","delta":{"content":"one"},"end":null}`
		padded = `{"pad":"p\"q", "n": 9 ,"delta":{"content":"one"},"n":-1.5,"pad":null,"end":1}`
	)
	for _, c := range []struct {
		first, text, value string
		ok                 bool
	}{
		{plain, plain, "one", true},
		{plain, `{"id":"c1","delta":{"content":""},"end":null}`, "", true},
		{plain, `{"id":"c1","delta":{"content":"é \xff"},"end":null}`, "", false},
		{plain, "{\"id\":\"c1\",\"delta\":{\"content\":\"\xff\xfe!\"},\"end\":null}", "\uFFFD\uFFFD!", true},
		{plain, `{"id":"c1","delta":{"content":"a","x":"b"},"end":null}`, "", false},
		{plain, `{"id":"c1","delta":{"content":"},"end":null}`, "", false},
		{plain, `{"id":"c1","delta":{"content":"},"end":null},"end":null}`, "", false},

		{padded, `{"pad":"","n": 10 ,"delta":{"content":"two"},"n":8,"pad":null,"end":1}`, "", false}, // a space is missing
		{padded, `{"pad":"", "n": 10 ,"delta":{"content":"two"},"n":8,"pad":null,"end":1}`, "two", true},
		{padded, `{"pad":"longer", "n": 007 ,"delta":{"content":""},"n":8,"pad":null,"end":1}`, "", true},
		{padded, `{"pad":"p\"q", "n": 9 ,"delta":{"content":"one"},"n":8,"pad":null,"end":1}`, "", false},
		{padded, `{"pad":"", "n": 9.5 ,"delta":{"content":"one"},"n":8,"pad":null,"end":1}`, "", false},
		{padded, `{"pad":"", "n": -9 ,"delta":{"content":"one"},"n":8,"pad":null,"end":1}`, "", false},
		{padded, `{"pad":"", "n": 9e9 ,"delta":{"content":"one"},"n":8,"pad":null,"end":1}`, "", false},
		{padded, `{"pad":"", "n": "9" ,"delta":{"content":"one"},"n":8,"pad":null,"end":1}`, "", false},
		{padded, `{"pad":"", "n":  ,"delta":{"content":"one"},"n":8,"pad":null,"end":1}`, "", false},
		{padded, `{"pad":"", "n": 9 ,"delta":{"content":"one"},"n":8,"pad":"","end":1}`, "", false},
		{padded, `{"pad":"", "n": 9 ,"delta":{"content":"one"},"n":8,"pad":null,"end":2}`, "", false},
		{padded, `{"pad":"","n":1, "n": 9 ,"delta":{"content":"one"},"n":8,"pad":null,"end":1}`, "", false},
	} {
		template := remember(t, []byte(c.first))
		if value, ok := template.Match([]byte(c.text)); value != c.value || ok != c.ok {
			t.Errorf("%s: got %q, %v", c.text, value, ok)
		}
		template.Forget()
		if _, ok := template.Match([]byte(c.first)); ok {
			t.Error("a forgotten template matches")
		}
	}
}

// TestTemplateMisses changes each byte of a text: a template may match only what differs where it may vary.
func TestTemplateMisses(t *testing.T) {
	const text = `{"n":12,"delta":{"content":"one"},"pad":"xyz","id":"c1"}`
	template := remember(t, []byte(text))
	for i := range len(text) {
		if _, ok := template.Match([]byte(text[:i])); ok {
			t.Errorf("%s is cut", text[:i])
		}
		inString := i >= strings.Index(text, "one") && i < strings.Index(text, `"},"pad`) || i >= strings.Index(text, "xyz") && i < strings.Index(text, `","id`)
		inNumber := i >= strings.Index(text, "12") && i < strings.Index(text, `,"delta`)
		for _, c := range []byte("0x\"\\,}- ") {
			changed := text[:i] + string(c) + text[i+1:]
			want := changed == text || inString && c != '"' && c != '\\' || inNumber && c == '0'
			if _, ok := template.Match([]byte(changed)); ok != want {
				t.Errorf("%s: %v", changed, ok)
			}
		}
	}
	if _, ok := template.Match([]byte(text + " ")); ok {
		t.Error("a longer text matches")
	}
}

// TestManyEscapes reads a string of a million escapes, which a reader that looks ahead from each of them never ends.
func TestManyEscapes(t *testing.T) {
	text := strings.Repeat(`line\n`, 1<<20)
	var s Scanner
	for _, end := range []string{`"`, ``, `\"`} {
		s.Reset([]byte(`"` + text + end))
		got := s.String()
		if err := s.End(); (err == nil) != (end == `"`) || err == nil && len(got) != 5<<20 {
			t.Errorf("%q: %d bytes, %v", end, len(got), err)
		}
	}
}

func TestDecodeBase64(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "YQ==": "a", "YQ": "a", "YQ=": "a", "+/8=": "\xfb\xff", "-_8": "\xfb\xff", "+_8": "\xfb\xff", "YWJj\r\nZA==\n": "abcd",
	} {
		if got, ok := DecodeBase64(text); !ok || string(got) != want {
			t.Errorf("%q: %q %v", text, got, ok)
		}
	}
	for _, text := range []string{"Y", "%", "YQ==YQ==", "Y Q"} {
		if _, ok := DecodeBase64(text); ok {
			t.Errorf("%q is taken", text)
		}
	}
}

func TestCheckObject(t *testing.T) {
	for text, want := range map[string]bool{
		`{}`: true, " \t\r\n{\"a\":1} ": true, ``: false, `[]`: false, `{`: false, `{} {}`: false, "\u00a0{}": false,
		`{"a":1,"a":1}`: false, `{"a":"\ud800"}`: false,
	} {
		if err := CheckObject(text); (err == nil) != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestObject(t *testing.T) {
	for text, want := range map[string]struct {
		object string
		whole  bool
	}{
		``: {"{}", true}, " \n": {"{}", true}, ` {"a":1.0} `: {` {"a":1.0} `, true},
		`{"city":`: {"{}", false}, `{"a":1} {}`: {"{}", false}, `{"a":1}}`: {"{}", false}, `{"a":"<","a":"<b>"}`: {`{"a":"<b>"}`, false},
		`{"a":1,"a":"` + strings.Repeat("x", maxMended) + `"}`: {"{}", false}, `{'a':1}`: {"{}", false},
		`{"b":9007199254740993,"a":1,"a":2}`: {`{"a":2,"b":9007199254740993}`, false}, `{"a":"\ud800"}`: {"{\"a\":\"\ufffd\"}", false},
		strings.Repeat(`{"a":`, MaxDepth+1) + "1" + strings.Repeat("}", MaxDepth+1): {"{}", false},
	} {
		if object, whole, err := Object(text); object != want.object || whole != want.whole || err != nil {
			t.Errorf("%.60q: %s %v %v", text, object, whole, err)
		}
	}
	for _, text := range []string{"[1]", "x", `"{}"`} {
		if _, _, err := Object(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// TestLookahead: null is absent, as everywhere, and a value of the wrong kind is an error where it stands.
func TestStrings(t *testing.T) {
	list := func(n int) string { return "[" + strings.Repeat(`"",`, n-1) + `""]` }
	for _, tt := range []struct {
		text  string
		count int
		wrong string
	}{
		{`null`, 0, ""},
		{`[]`, 0, ""},
		{`["a",null]`, 2, ""},
		{`"a"`, 0, "in: a list is wanted"},
		{`["a",7]`, 2, "in[1]: a string is wanted"},
		{list(MaxStrings), MaxStrings, ""},
		{list(MaxStrings + 1), MaxStrings, "in: at most 4096 strings are wanted"},
		{list(1 << 20), MaxStrings, "in: at most 4096 strings are wanted"},
	} {
		r := NewReaderAt([]byte(tt.text), "in")
		got := r.Strings()
		wrong := ""
		if err := r.End(); err != nil {
			wrong = err.Error()
		}
		if len(got) != tt.count || (got == nil) != (tt.text == "null" || tt.text == `"a"`) || wrong != tt.wrong {
			t.Errorf("%.20s: %d strings, %q", tt.text, len(got), wrong)
		}
	}
}

func TestLookahead(t *testing.T) {
	for _, tt := range []struct{ text, want, wrong string }{
		{`{"a":1,"type":"x","type":7}`, "x", ""},
		{`{"type":"","type":null,"type":"x"}`, "x", ""},
		{`{"type":null}`, "", ""},
		{`{"a":{"type":"x"}}`, "", ""},
		{`{"type":7}`, "", "in[0].type: a string is wanted"},
		{`{"type":["x"],"type":"x"}`, "", "in[0].type: a string is wanted"},
		{`["type"]`, "", ""},
	} {
		r := NewReaderAt([]byte(tt.text), "in[0]")
		got := r.Lookahead("type")
		r.Skip()
		wrong := ""
		if err := r.End(); err != nil {
			wrong = err.Error()
		}
		if got != tt.want || wrong != tt.wrong {
			t.Errorf("%s: %q, %q", tt.text, got, wrong)
		}
	}
}
