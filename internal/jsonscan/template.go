package jsonscan

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// Template recognises a text that differs from an earlier one in the inside of one string only, as the pieces of a
// streamed answer do. What the earlier text said then holds for this one but for that string, and nothing need be read.
type Template struct {
	text     []byte
	from, to int // the inside of the string
}

// Remember takes a text that was read whole and the inside of the string that may differ, as Scanner.Span gives it.
func (t *Template) Remember(data []byte, from, to int) {
	t.text = append(t.text[:0], data...)
	t.from, t.to = from, to
}

// Forget makes Match fail until the next Remember.
func (t *Template) Forget() { t.text = t.text[:0] }

// Match returns the string of a text that is otherwise the remembered one. Strings with escapes are left to the scanner.
func (t *Template) Match(data []byte) (value string, ok bool) {
	if len(t.text) == 0 {
		return "", false
	}
	before, after := t.text[:t.from], t.text[t.to:]
	if len(data) < len(before)+len(after) || !bytes.HasPrefix(data, before) || !bytes.HasSuffix(data, after) {
		return "", false
	}
	inside := data[len(before) : len(data)-len(after)]
	for _, c := range inside {
		if c == '"' || c == '\\' {
			return "", false
		}
	}
	if !utf8.Valid(inside) {
		return strings.ToValidUTF8(string(inside), "\uFFFD"), true
	}
	return string(inside), true
}
