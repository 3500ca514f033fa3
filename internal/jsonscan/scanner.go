// Package jsonscan reads and writes JSON where it is read and written most: one streamed event at a time.
//
// Scanner is a pull reader over one text in memory. It builds no tree, allocates only the strings that are asked for,
// and is lenient as provider bytes demand: unknown keys are skipped, a value of another kind reads as absent, the last
// of two equal keys wins. Check is the strict judge of texts that callers send.
package jsonscan

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// SyntaxError says where a text stops being JSON.
type SyntaxError struct {
	Offset int // in bytes from the start of the text
	Reason string
}

func (e *SyntaxError) Error() string { return fmt.Sprintf("%s at byte %d", e.Reason, e.Offset) }

// MaxDepth bounds how deeply objects and arrays nest in a text that a Scanner or Check accepts.
const MaxDepth = 512

// Scanner reads one JSON text. Its zero value is ready for Reset.
//
//	for first := true; s.Field(&first); {
//		switch string(s.Name()) {
//		case "text":
//			text = s.String()
//		default:
//			s.Skip()
//		}
//	}
//	return s.End()
//
// The first error stays, and every later call returns a zero value.
type Scanner struct {
	data    []byte
	pos     int
	name    []byte
	err     error
	scratch []byte // strings with escapes are unescaped here

	span    Span // the inside of the string that was read last
	nodes   int  // values that were looked into
	checked bool
}

// Reset starts over on another text. The scanner reads data in place.
func (s *Scanner) Reset(data []byte) {
	s.data, s.pos, s.name, s.err, s.nodes, s.checked = data, 0, nil, nil, 0, false
}

// ResetChecked is Reset for a text that Check has passed, of which Raw need judge nothing.
func (s *Scanner) ResetChecked(data []byte) {
	s.Reset(data)
	s.checked = true
}

// Span returns where the inside of the string that was read last stands in the text, keys included.
func (s *Scanner) Span() Span { return s.span }

// SkipSpan is Skip for a value that varies while nothing else does. It returns where the inside of a string or a number
// stands, the zero Span for any other value.
func (s *Scanner) SkipSpan() Span {
	kind := s.Kind()
	start := s.pos
	s.Skip()
	switch kind {
	case '"':
		return Span{start + 1, s.pos - 1}
	case '0':
		return Span{start, s.pos}
	}
	return Span{}
}

// Err returns the first error.
func (s *Scanner) Err() error { return s.err }

// End returns the first error, or one for text after the value.
func (s *Scanner) End() error {
	if s.err == nil && (s.peek() != 0 || s.pos < len(s.data)) { // a zero byte is text, too
		s.fail("text after the value")
	}
	return s.err
}

// Stop makes every later call return a zero value, as after an error: the reader has seen enough.
func (s *Scanner) Stop() { s.fail("reading was stopped") }

func (s *Scanner) fail(reason string) {
	if s.err == nil {
		s.err = &SyntaxError{s.pos, reason}
	}
	s.pos = len(s.data)
}

// peek skips white space and returns the next byte, 0 at the end.
func (s *Scanner) peek() byte {
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; c {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

// Kind tells what the next value is by its first byte: '{', '[', '"', 't', 'f', 'n', '0' for a number, 0 at the end.
func (s *Scanner) Kind() byte {
	switch c := s.peek(); c {
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		return '0'
	default:
		return c
	}
}

// Field moves to the next field of an object; first must be true before the first call. It returns false after the
// last field, at an error, and for a value that is no object, which is skipped.
func (s *Scanner) Field(first *bool) bool {
	c := s.peek()
	if *first {
		*first = false
		if !s.enter(c, '{') {
			return false
		}
		if c = s.peek(); c == '}' {
			s.pos++
			return false
		}
	} else {
		switch c {
		case '}':
			s.pos++
			return false
		case ',':
			s.pos++
			c = s.peek()
		default:
			s.fail("a comma or the end of the object is missing")
			return false
		}
	}
	if c != '"' {
		s.fail("a key is missing")
		return false
	}
	s.name = s.text()
	if s.peek() != ':' {
		s.fail("a colon is missing")
		return false
	}
	s.pos++
	return true
}

// enter moves into the next value, which begins with c, if it is of the wanted kind; any other is skipped. Both count, since
// readers make something of each.
func (s *Scanner) enter(c, want byte) bool {
	switch s.nodes++; {
	case s.nodes > MaxNodes:
		s.fail(tooManyNodes)
		return false
	case c != want:
		s.Skip()
		return false
	}
	s.pos++
	return true
}

// Name returns the key that Field moved to, valid until the next string is read.
func (s *Scanner) Name() []byte { return s.name }

// Element moves to the next element of an array, as Field does in an object.
func (s *Scanner) Element(first *bool) bool {
	c := s.peek()
	if *first {
		*first = false
		if !s.enter(c, '[') {
			return false
		}
		if s.peek() == ']' {
			s.pos++
			return false
		}
		return s.err == nil
	}
	switch c {
	case ']':
		s.pos++
		return false
	case ',':
		s.pos++
		return true
	}
	s.fail("a comma or the end of the array is missing")
	return false
}

// Bool returns the next value if it is true; any other value is skipped.
func (s *Scanner) Bool() bool {
	if s.peek() == 't' {
		s.literal("true")
		return s.err == nil
	}
	s.Skip()
	return false
}

func (s *Scanner) literal(word string) {
	if len(s.data)-s.pos < len(word) || string(s.data[s.pos:s.pos+len(word)]) != word {
		s.fail("not a value")
		return
	}
	s.pos += len(word)
}

// Bytes returns the next string unescaped, valid until the next string is read; nil for any other value.
func (s *Scanner) Bytes() []byte {
	if s.peek() != '"' {
		s.Skip()
		return nil
	}
	return s.text()
}

// String returns a copy of the next string in valid UTF-8, "" for any other value.
func (s *Scanner) String() string {
	return validUTF8(s.Bytes())
}

// validUTF8 returns b as a string, with U+FFFD for each byte that is no UTF-8, as encoding/json reads it.
func validUTF8(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	var text strings.Builder
	for _, r := range string(b) {
		text.WriteRune(r)
	}
	return text.String()
}

// Intern is String for a value that mostly repeats: when it equals last, last is returned and nothing is allocated.
func (s *Scanner) Intern(last string) string {
	if s.peek() == '"' {
		if b := s.text(); string(b) == last {
			return last
		} else {
			return validUTF8(b)
		}
	}
	s.Skip()
	return ""
}

// Int returns the next value if it is a number, cut to an integer; ok is false for any other value.
func (s *Scanner) Int() (n int64, ok bool) {
	text := s.number()
	if text == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil || f != f || f > 1<<63-1024 || f < -1<<63 {
		return 0, false
	}
	return int64(f), true
}

// Float returns the next value if it is a number; ok is false for any other value.
func (s *Scanner) Float() (f float64, ok bool) {
	text := s.number()
	if text == nil {
		return 0, false
	}
	f, err := strconv.ParseFloat(string(text), 64)
	return f, err == nil
}

func (s *Scanner) number() []byte {
	if s.Kind() != '0' {
		s.Skip()
		return nil
	}
	start := s.pos
	s.Skip()
	return s.data[start:s.pos]
}

// Raw returns the text of the next value, which aliases the scanned data. It is valid JSON unless Err says otherwise.
func (s *Scanner) Raw() []byte {
	s.peek()
	start := s.pos
	s.Skip()
	if s.err != nil {
		return nil
	}
	raw := s.data[start:s.pos]
	if s.checked {
		return raw
	}
	if err := valid(raw); err != nil {
		s.pos = start + err.Offset
		s.fail(err.Reason)
		return nil
	}
	return raw
}

// Skip passes over the next value. Of what it passes it checks only that strings and brackets close.
func (s *Scanner) Skip() {
	switch c := s.peek(); c {
	case '"':
		s.skipString()
	case '{', '[':
		s.skipContainer()
	case 't':
		s.literal("true")
	case 'f':
		s.literal("false")
	case 'n':
		s.literal("null")
	case 0:
		s.fail("the text ends early")
	default:
		if c != '-' && (c < '0' || c > '9') {
			s.fail("not a value")
			return
		}
		for s.pos++; s.pos < len(s.data); s.pos++ {
			switch c := s.data[s.pos]; {
			case c >= '0' && c <= '9', c == '.', c == 'e', c == 'E', c == '+', c == '-':
			default:
				return
			}
		}
	}
}

// shortString is how far a string is looked through byte by byte; keys and most values end before.
const shortString = 24

// closing returns the offset of the quote that ends the string which begins at s.pos, and whether it holds an escape.
func (s *Scanner) closing() (end int, escaped bool) {
	from := s.pos + 1
	near := s.data[from:min(from+shortString, len(s.data))]
	for i, c := range near {
		if c == '"' {
			return from + i, false
		}
		if c == '\\' {
			return s.closingEscaped(from + i)
		}
	}
	from += len(near)
	n := bytes.IndexByte(s.data[from:], '"')
	if n < 0 {
		s.fail("a string does not end")
		return -1, false
	}
	if i := bytes.IndexByte(s.data[from:from+n], '\\'); i >= 0 {
		return s.closingEscaped(from + i)
	}
	return from + n, false
}

// closingEscaped is closing from the first backslash on. Every byte is looked at once, however many escapes there are.
func (s *Scanner) closingEscaped(i int) (end int, escaped bool) {
	for quote := -1; i < len(s.data); {
		if s.data[i] == '\\' {
			i += 2
			continue
		}
		if quote < i {
			n := bytes.IndexByte(s.data[i:], '"')
			if n < 0 {
				break
			}
			quote = i + n
		}
		n := bytes.IndexByte(s.data[i:quote], '\\')
		if n < 0 {
			return quote, true
		}
		i += n
	}
	s.fail("a string does not end")
	return -1, false
}

func (s *Scanner) skipString() {
	if end, _ := s.closing(); end >= 0 {
		s.pos = end + 1
	}
}

func (s *Scanner) skipContainer() {
	depth := 0
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case '"':
			s.skipString()
			continue
		case '{', '[':
			if depth++; depth > MaxDepth {
				s.fail("nested too deeply")
				return
			}
		case '}', ']':
			if depth--; depth == 0 {
				s.pos++
				return
			}
		}
		s.pos++
	}
	s.fail("the text ends early")
}

// text reads the string that begins at s.pos.
func (s *Scanner) text() []byte {
	end, escaped := s.closing()
	if end < 0 {
		return nil
	}
	s.span = Span{s.pos + 1, end}
	raw := s.data[s.span.From:s.span.To]
	s.pos = end + 1
	if !escaped {
		return raw
	}
	s.scratch = unescape(s.scratch[:0], raw)
	return s.scratch
}

// unescape appends the text of a string's inside. Broken escapes become U+FFFD, as lone surrogates do.
func unescape(dst, raw []byte) []byte {
	for {
		n := bytes.IndexByte(raw, '\\')
		if n < 0 || n+1 >= len(raw) {
			return append(dst, raw...)
		}
		dst = append(dst, raw[:n]...)
		c := raw[n+1]
		raw = raw[n+2:]
		switch c {
		case '"', '\\', '/':
			dst = append(dst, c)
		case 'b':
			dst = append(dst, '\b')
		case 'f':
			dst = append(dst, '\f')
		case 'n':
			dst = append(dst, '\n')
		case 'r':
			dst = append(dst, '\r')
		case 't':
			dst = append(dst, '\t')
		case 'u':
			r, ok := hex4(raw)
			if !ok {
				dst = append(dst, "\uFFFD"...)
				continue
			}
			raw = raw[4:]
			if utf16.IsSurrogate(r) {
				pair := rune(utf8.RuneError)
				if len(raw) >= 6 && raw[0] == '\\' && raw[1] == 'u' {
					if low, ok := hex4(raw[2:]); ok {
						pair = utf16.DecodeRune(r, low)
					}
				}
				if r = pair; r != utf8.RuneError {
					raw = raw[6:]
				}
			}
			dst = utf8.AppendRune(dst, r)
		default:
			dst = append(dst, "\uFFFD"...)
		}
	}
}

func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	for _, c := range b[:4] {
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}
