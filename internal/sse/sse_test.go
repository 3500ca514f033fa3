package sse

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"
)

// cut is a reader that returns the pieces of a body one by one.
type cut [][]byte

func (c *cut) Read(p []byte) (int, error) {
	if len(*c) == 0 {
		return 0, io.EOF
	}
	n := copy(p, (*c)[0])
	if (*c)[0] = (*c)[0][n:]; len((*c)[0]) == 0 {
		*c = (*c)[1:]
	}
	return n, nil
}

// chunkings are the ways in which one body may arrive.
var chunkings = map[string]func(string) io.Reader{
	"whole":          func(s string) io.Reader { return strings.NewReader(s) },
	"one byte":       func(s string) io.Reader { return iotest.OneByteReader(strings.NewReader(s)) },
	"data with EOF":  func(s string) io.Reader { return iotest.DataErrReader(strings.NewReader(s)) },
	"random":         func(s string) io.Reader { return randomCuts(s, rand.New(rand.NewPCG(1, 2))) },
	"random, again":  func(s string) io.Reader { return randomCuts(s, rand.New(rand.NewPCG(3, 4))) },
	"after each \\r": func(s string) io.Reader { return cutAfter(s, "\r") },
}

func randomCuts(s string, rnd *rand.Rand) io.Reader {
	var c cut
	for len(s) > 0 {
		n := 1 + rnd.IntN(min(len(s), 9))
		c, s = append(c, []byte(s[:n])), s[n:]
	}
	return &c
}

func cutAfter(s, sep string) io.Reader {
	var c cut
	for _, piece := range strings.SplitAfter(s, sep) {
		if piece != "" {
			c = append(c, []byte(piece))
		}
	}
	return &c
}

// show writes events as text: name and data quoted, "-" for no name, "!" for an unterminated one.
func show(ev Event) string {
	name, end := "-", ""
	if ev.Name != nil {
		name = fmt.Sprintf("%q", ev.Name)
	}
	if ev.Unterminated {
		end = "!"
	}
	return fmt.Sprintf("%s %q%s\n", name, ev.Data, end)
}

// all reads every event. It asks More before each of them and, given the source, checks that it spoke the truth.
func all(r *Reader, src *countingReader) (string, error) {
	var out strings.Builder
	for {
		more, reads := r.More(), 0
		if src != nil {
			reads = src.reads
		}
		ev, err := r.Next()
		if err != nil {
			if more {
				out.WriteString("More promised an event\n")
			}
			return out.String(), err
		}
		if src != nil && more != (src.reads == reads) {
			fmt.Fprintf(&out, "More said %v, reads: %d\n", more, src.reads-reads)
		}
		out.WriteString(show(ev))
	}
}

type countingReader struct {
	io.Reader
	reads int
}

func (c *countingReader) Read(p []byte) (int, error) {
	c.reads++
	return c.Reader.Read(p)
}

func TestFramings(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	for _, tt := range []struct{ name, body, want string }{
		{"empty", "", ""},
		{"LF", "data: a\n\ndata: b\n\n", "- \"a\"\n- \"b\"\n"},
		{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", "- \"a\"\n- \"b\"\n"},
		{"CR", "data: a\r\rdata: b\r\r", "- \"a\"\n- \"b\"\n"},
		{"mixed line ends", "event: e\rdata: a\n\r\ndata: b\r\n\ndata: c\n\r", "\"e\" \"a\"\n- \"b\"\n- \"c\"\n"},
		{"LF then CR", "data: a\n\rdata: b\n\r", "- \"a\"\n- \"b\"\n"},
		{"byte order mark", "\xef\xbb\xbfdata: a\n\n", "- \"a\"\n"},
		{"byte order mark only once", "\xef\xbb\xbf\xef\xbb\xbfdata: a\n\ndata: b\n\n", "- \"b\"\n"},
		{"half a byte order mark", "\xef\xbb", ""},
		{"comments", ": hi\n\n:\n\ndata: a\n: between\ndata: b\n\n:end\n\n", "- \"a\\nb\"\n"},
		{"several data lines", "data: a\ndata:\ndata: c\n\n", "- \"a\\n\\nc\"\n"},
		{"no space after the colon", "event:e\ndata:a\n\n", "\"e\" \"a\"\n"},
		{"only one space goes", "data:  a \n\n", "- \" a \"\n"},
		{"no colon is blank data, a heartbeat and no event", "data\n\nevent\ndata\ndata\n\n", ""},
		{"other fields", "id: 1\nretry: 5\ndatax: n\n data: n\nDATA: n\neventful: n\ndata: a\nid: 2\n\n", "- \"a\"\n"},
		{"name without data", "event: e\n\ndata: a\n\n", "- \"a\"\n"},
		{"last name counts", "event: e\nevent: f\ndata: a\n\n", "\"f\" \"a\"\n"},
		{"name after data", "data: a\nevent: e\ndata: bbbbbbbbbbbbbbbbbbbb\n\ndata: c\n\n", "\"e\" \"a\\nbbbbbbbbbbbbbbbbbbbb\"\n- \"c\"\n"},
		{"name before and after data", "event: e\ndata: a\nevent: fg\n\n", "\"fg\" \"a\"\n"},
		{"done marker", "data: [DONE]\n\n", "- \"[DONE]\"\n"},
		{"many blank lines", "\n\n\r\n\r\n\r\rdata: a\n\n\n\n\n", "- \"a\"\n"},
		{"no final blank line", "data: a\n\ndata: b\n", "- \"a\"\n- \"b\"!\n"},
		{"no final line end", "data: a\n\nevent: e\ndata: b", "- \"a\"\n\"e\" \"b\"!\n"},
		{"cut in a further line", "data: a\ndata: b\nda", "- \"a\\nb\"!\n"},
		{"cut CRLF", "data: a\r\n\r", "- \"a\"\n"},
		{"cut without data", "data: a\n\nevent: e\n: c", "- \"a\"\n"},
		{"colons in the value", "data: a: b\n\n", "- \"a: b\"\n"},
		{"bytes that are no text", "data: \x00\xff\n\n", "- \"\\x00\\xff\"\n"},
		{"JSON without a field", "data: a\n\n{\"error\":\n  {\"data\": 1}\r\n,\n}\n\nevent: e\n{\ndata: b\n{\n\n[INFO] a\ndata: c\n\n{\"d\"}\ndata: e\n\n[{", "- \"a\"\n- \"{\\\"error\\\":\\n  {\\\"data\\\": 1}\\n,\\n}\"\n\"e\" \"b\"\n- \"c\"\n- \"{\\\"d\\\"}\"\n- \"e\"\n- \"[{\"!\n"},
		{"long line", "event: e\ndata: " + long + "\ndata: b\n\ndata: c\n\n", "\"e\" \"" + long + "\\nb\"\n- \"c\"\n"},
	} {
		for chunking, open := range chunkings {
			t.Run(tt.name+"/"+chunking, func(t *testing.T) {
				src := &countingReader{Reader: open(tt.body)}
				got, err := all(NewReader(src, 0), src)
				if got != tt.want || err != io.EOF {
					t.Errorf("got %v and\n%.300swant\n%.300s", err, got, tt.want)
				}
			})
		}
	}
}

// An event that ends with a lone '\r' is there at once, although a '\n' may follow, and both belong to one line end.
func TestEventEndsAtCarriageReturn(t *testing.T) {
	in, out := io.Pipe()
	defer in.Close()
	r := NewReader(in, 0)
	for i, part := range []string{"data: a\r\n\r", "\ndata: b\r\n\r", "\n: c\r\ndata: d\r\r"} {
		go out.Write([]byte(part))
		if ev, err := r.Next(); err != nil || string(ev.Data) != string("abd"[i]) {
			t.Fatalf("event %d: %q, %v", i, ev.Data, err)
		}
	}
}

func TestMore(t *testing.T) {
	src := &cut{[]byte("data: a\n\ndata: b\ndata: c\n\n: x\n\ndata: d\n"), []byte("\n"), []byte("data: e")}
	r := NewReader(src, 0)
	if r.More() {
		t.Error("More before anything was read")
	}
	for _, tt := range []struct {
		want string
		more bool
	}{{"a", true}, {"b\nc", false}, {"d", false}, {"e", false}} {
		ev, err := r.Next()
		if err != nil {
			t.Fatal(err)
		}
		if more := r.More(); more != tt.more || string(ev.Data) != tt.want {
			t.Errorf("%q, more %v; want %q, more %v", ev.Data, more, tt.want, tt.more)
		}
	}
	if _, err := r.Next(); err != io.EOF || r.More() {
		t.Errorf("at the end: %v, more %v", err, r.More())
	}
}

func TestReadError(t *testing.T) {
	broken := errors.New("broken")
	for _, body := range []string{"data: a\n\ndata: b\n", "data: a\n\ndata: b", "data: a\n\n"} {
		got, err := all(NewReader(io.MultiReader(strings.NewReader(body), iotest.ErrReader(broken)), 0), nil)
		if got != "- \"a\"\n" || err != broken {
			t.Errorf("%q: %q, %v", body, got, err)
		}
	}
	if _, err := NewReader(readNothing{}, 0).Next(); err != io.ErrNoProgress {
		t.Errorf("reader without progress: %v", err)
	}
}

type readNothing struct{}

func (readNothing) Read([]byte) (int, error) { return 0, nil }

func TestLimit(t *testing.T) {
	for _, tt := range []struct {
		name, body, want string
		limit            int
		ok               bool
	}{
		{"fits", "data: 3456\n\n", "- \"3456\"\n", 11, true},
		{"one byte more", "data: 34567\n\n", "", 11, false},
		{"events before it stay", "data: a\n\ndata: 34567\n\n", "- \"a\"\n", 11, false},
		{"the sum of the lines counts", "data: a\ndata: b\n\n", "", 11, false},
		{"what came before the event does not", "id: 123\n\n: 345678\ndata: 3456\n\n", "- \"3456\"\n", 11, true},
		{"nor in the same read", "i\ndata: 4\n:\n\n", "- \"4\"\n", 11, true},
		{"long comment", ": 3456789abcdef\n\n", "", 11, false},
		{"without a line end", strings.Repeat("d", 100_000), "", 20_000, false},
		{"endless line in a body that ends", "data: 3456789", "", 11, false},
		{"beyond the first buffer", "data: " + strings.Repeat("x", 9_000) + "\n\n", "", 8_000, false},
	} {
		for chunking, open := range chunkings {
			t.Run(tt.name+"/"+chunking, func(t *testing.T) {
				got, err := all(NewReader(open(tt.body), tt.limit), nil)
				var long *TooLongError
				if got != tt.want || (err == io.EOF) != tt.ok {
					t.Errorf("got %.100q, %v", got, err)
				}
				if !tt.ok && (!errors.As(err, &long) || long.Limit != int64(tt.limit)) {
					t.Errorf("error %v does not name the limit", err)
				}
			})
		}
	}
}

func tooLong(err error) bool {
	var long *TooLongError
	return errors.As(err, &long)
}

// The buffer follows the longest event, not the length of the stream.
func TestBufferStaysSmall(t *testing.T) {
	r := NewReader(strings.NewReader(strings.Repeat("data: "+strings.Repeat("x", 700)+"\n\n", 1000)), 0)
	if _, err := all(r, nil); err != io.EOF || len(r.buf) != firstBuffer {
		t.Errorf("%v, buffer of %d bytes", err, len(r.buf))
	}
}

func TestFirstAndRest(t *testing.T) {
	long := strings.Repeat("y", 10_000)
	for _, tt := range []struct {
		name, body, rest string
		first            byte
		limit            int64
		firstErr         error
		tooLong          bool
	}{
		{name: "document", body: "{\"a\":1}", rest: "{\"a\":1}", first: '{', limit: 7},
		{name: "white space and mark", body: "\xef\xbb\xbf \r\n\t[1]\n", rest: " \r\n\t[1]\n", first: '[', limit: 100},
		{name: "page", body: "<html>" + long, rest: "<html>" + long, first: '<', limit: 20_000},
		{name: "events", body: "\ndata: a\n\n", rest: "\ndata: a\n\n", first: 'd', limit: 100},
		{name: "much white space", body: strings.Repeat(" ", 9000) + "{", rest: strings.Repeat(" ", 9000) + "{", first: '{', limit: 9001},
		{name: "other byte above ASCII", body: "\xef\xbb\x00", rest: "\xef\xbb\x00", first: 0xef, limit: 100},
		{name: "empty", firstErr: io.EOF, limit: 100},
		{name: "white space only", body: " \n", rest: " \n", firstErr: io.EOF, limit: 100},
		{name: "too long", body: "{" + long, first: '{', limit: 10_000, tooLong: true},
		{name: "too long, short", body: "{23", first: '{', limit: 2, tooLong: true},
	} {
		for chunking, open := range chunkings {
			t.Run(tt.name+"/"+chunking, func(t *testing.T) {
				r := NewReader(open(tt.body), 0)
				for range 2 {
					if c, err := r.First(); c != tt.first || err != tt.firstErr {
						t.Errorf("First: %q, %v", c, err)
					}
				}
				rest, err := r.Rest(tt.limit)
				if string(rest) != tt.rest || tooLong(err) != tt.tooLong || (err != nil) != tt.tooLong {
					t.Errorf("Rest: %.100q, %v", rest, err)
				}
			})
			t.Run(tt.name+"/then Next/"+chunking, func(t *testing.T) {
				r := NewReader(open(tt.body), 0)
				r.First()
				if got, err := all(r, nil); got != reference([]byte(tt.body)) || err != io.EOF {
					t.Errorf("got %q, %v", got, err)
				}
			})
		}
	}
	broken := errors.New("broken")
	r := NewReader(io.MultiReader(strings.NewReader(" {"), iotest.ErrReader(broken)), 0)
	if c, err := r.First(); c != '{' || err != nil {
		t.Errorf("First before a read error: %q, %v", c, err)
	}
	if rest, err := r.Rest(100); rest != nil || err != broken {
		t.Errorf("Rest at a read error: %q, %v", rest, err)
	}
}

// reference parses a whole body in the plainest way and shows its events.
func reference(body []byte) string {
	body = bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	text := strings.ReplaceAll(strings.ReplaceAll(string(body), "\r\n", "\n"), "\r", "\n")
	lines := strings.Split(text, "\n")
	var out strings.Builder
	var ev Event
	var data []string
	bare := false
	flush := func() {
		if joined := strings.Join(data, "\n"); strings.TrimSpace(joined) != "" {
			ev.Data = []byte(joined)
			out.WriteString(show(ev))
		}
		ev, data, bare = Event{}, nil, false
	}
	jsonBegins := regexp.MustCompile(`^(\{[ \t]*("|$)|\[[ \t]*(\{|$))`)
	field := regexp.MustCompile(`^(data|event|:)`)
	for i, line := range lines {
		if bare && field.MatchString(line) {
			flush()
		}
		ev.Unterminated = i == len(lines)-1
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		bare = bare || data == nil && ev.Name == nil && jsonBegins.MatchString(line)
		if bare && line != "" {
			field, value = "data", line
		}
		switch field {
		case "data":
			data = append(data, value)
		case "event":
			ev.Name = append([]byte{}, value...)
		}
		if line != "" && !ev.Unterminated {
			continue
		}
		flush()
	}
	return out.String()
}

func TestAgainstReference(t *testing.T) {
	words := []string{"data: ", "data:", "data", "event: ", "event:", "id: 1", ": ", ":", " ", "\n", "\n", "\n\n", "\r", "\r\n", "a", "bc", "\xef\xbb\xbf", "dat", "{", "[", "{\"", "[{", " }"}
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 20_000 {
		var body strings.Builder
		for range rnd.IntN(30) {
			body.WriteString(words[rnd.IntN(len(words))])
		}
		got, err := all(NewReader(randomCuts(body.String(), rnd), 0), nil)
		if want := reference([]byte(body.String())); got != want || err != io.EOF {
			t.Fatalf("%q: %v\n%swant\n%s", body.String(), err, got, want)
		}
	}
}

func TestBody(t *testing.T) {
	for body, want := range map[string]string{"": "", "\xef\xbb\xbf [1,2]": " [1,2]", "\n" + strings.Repeat("x", 10_000): "\n" + strings.Repeat("x", 10_000)} {
		r := NewReader(iotest.HalfReader(strings.NewReader(body)), 0)
		r.First()
		if got, err := io.ReadAll(r.Body()); err != nil || string(got) != want {
			t.Errorf("%.20q: %.20q %v", body, got, err)
		}
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte("\xef\xbb\xbfevent: e\r\ndata: a\rdata: b\n\n:c\n\r\ndata"), uint64(1), 0)
	f.Add([]byte("data: a\nevent: long name\ndata: bbbbbbbbbbbbb\n\n"), uint64(2), 20)
	f.Fuzz(func(t *testing.T, body []byte, seed uint64, limit int) {
		whole, err := all(NewReader(bytes.NewReader(body), limit), nil)
		if err == io.EOF && whole != reference(body) {
			t.Errorf("%q\nwant\n%q", whole, reference(body))
		}
		cut, cutErr := all(NewReader(randomCuts(string(body), rand.New(rand.NewPCG(seed, 0))), limit), nil)
		if cut != whole || tooLong(err) != tooLong(cutErr) {
			t.Errorf("whole: %q, %v\ncut: %q, %v", whole, err, cut, cutErr)
		}
	})
}

func BenchmarkReader(b *testing.B) {
	data := `{"id":"chatcmpl-123","object":"chat.completion.chunk","created":1700000000,"model":"some-model","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}],"usage":null,"system_fingerprint":"fp_0123456789abcdef"}`
	for name, event := range map[string]string{
		"LF":    "data: " + data + "\n\n",
		"CRLF":  "data: " + data + "\r\n\r\n",
		"CR":    "data: " + data + "\r\r",
		"named": "event: content_block_delta\ndata: " + data + "\n\n",
	} {
		b.Run(name, func(b *testing.B) {
			body := strings.Repeat(event, 1000)
			src := strings.NewReader(body)
			r := NewReader(src, 0)
			b.SetBytes(int64(len(event)))
			b.ReportAllocs()
			for b.Loop() {
				ev, err := r.Next()
				if err == io.EOF {
					src.Reset(body)
					*r = Reader{src: src, limit: r.limit, buf: r.buf}
				} else if len(ev.Data) != len(data) {
					b.Fatal(ev, err)
				}
			}
		})
	}
}
