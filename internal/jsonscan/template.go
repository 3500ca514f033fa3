package jsonscan

import (
	"bytes"
	"cmp"
	"slices"
)

// Span is a part of a text, in bytes.
type Span struct{ From, To int }

// Template recognises a text that differs from an earlier one only where that may vary: in one string that is asked for,
// as the pieces of a streamed answer do, and in values that nobody reads. All the rest that the earlier text said holds
// for this one, and nothing need be read.
type Template struct {
	text   []byte
	varies []Span // in their order; never at the very start
	value  Span   // the one that is asked for
}

// Remember takes a text that was read whole, the inside of the string that is asked for, as Scanner.Span gives it, and
// the values that were skipped, as Scanner.SkipSpan gives them.
func (t *Template) Remember(data []byte, value Span, skipped ...Span) {
	t.text, t.value = append(t.text[:0], data...), value
	t.varies = append(t.varies[:0], value)
	for _, span := range skipped {
		if span != (Span{}) {
			t.varies = append(t.varies, span)
		}
	}
	slices.SortFunc(t.varies, func(a, b Span) int { return cmp.Compare(a.From, b.From) })
}

// Forget makes Match fail until the next Remember.
func (t *Template) Forget() { t.text = t.text[:0] }

// Match returns the string of a text that is otherwise the remembered one. What may vary is a string without escapes where
// a string stood, and digits where a number stood; anything else is left to the scanner.
func (t *Template) Match(data []byte) (value string, ok bool) {
	if len(t.text) == 0 {
		return "", false
	}
	var inside []byte
	end := 0 // of the last span
	for _, span := range t.varies {
		fixed := t.text[end:span.From]
		if !bytes.HasPrefix(data, fixed) {
			return "", false
		}
		data, end = data[len(fixed):], span.To
		n := 0
		if t.text[span.From-1] == '"' {
			for n < len(data) && data[n] != '"' && data[n] != '\\' {
				n++
			}
		} else {
			for n < len(data) && '0' <= data[n] && data[n] <= '9' {
				n++
			}
			if n == 0 {
				return "", false
			}
		}
		if span == t.value {
			inside = data[:n]
		}
		data = data[n:]
	}
	if !bytes.Equal(data, t.text[end:]) {
		return "", false
	}
	return validUTF8(inside), true
}
