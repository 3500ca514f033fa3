package genai

import "io"

// Frames makes server-sent events of the JSON array that the protocol sends when nobody asks for events, and of a whole
// answer: an event per object, as its bytes arrive.
func Frames(body io.Reader) io.Reader { return &frames{body: body} }

type frames struct {
	body   io.Reader
	err    error // what ended it
	in     []byte
	out    []byte // framed and not handed out
	depth  int    // of brackets inside an object; 0 between objects
	quoted bool
	escape bool
}

func (f *frames) Read(p []byte) (int, error) {
	for len(f.out) == 0 {
		if f.err != nil {
			return 0, f.err
		}
		if f.in == nil {
			f.in = make([]byte, 4<<10)
		}
		var n int
		n, f.err = f.body.Read(f.in)
		f.frame(f.in[:n])
	}
	n := copy(p, f.out)
	f.out = f.out[n:]
	return n, nil
}

func (f *frames) frame(data []byte) {
	f.out = f.out[:0]
	for _, c := range data {
		if f.depth == 0 {
			switch c {
			case '{':
				f.out = append(f.out, "data: {"...)
				f.depth = 1
			case '[', ',', ']', ' ', '\t', '\r', '\n':
			default: // no object: an event that cannot be read
				f.out = append(f.out, "data: "...)
				f.out = append(f.out, c, '\n', '\n')
			}
			continue
		}
		switch {
		case f.escape:
			f.escape = false
		case f.quoted:
			f.escape = c == '\\'
			f.quoted = c != '"'
		case c == '"':
			f.quoted = true
		case c == '{', c == '[':
			f.depth++
		case c == '}', c == ']':
			f.depth--
		case c == '\r', c == '\n':
			continue // would end the line of an event, and says nothing here
		}
		f.out = append(f.out, c)
		if f.depth == 0 {
			f.out = append(f.out, "\n\n"...)
		}
	}
}
