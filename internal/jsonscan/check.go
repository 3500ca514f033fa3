package jsonscan

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Check reports why data is not one JSON text that every reader takes for the same value: RFC 8259 to the letter, valid
// UTF-8, no lone surrogates, no key twice in one object, at most MaxDepth levels deep, at most MaxNodes objects and lists.
func Check(data []byte) error { return CheckDepth(data, MaxDepth) }

// CheckDepth is Check with a smaller depth.
func CheckDepth(data []byte, depth int) error {
	if err := (&checker{data: data, strict: true, depth: MaxDepth - min(depth, MaxDepth)}).run(); err != nil {
		return err
	}
	return nil
}

// valid is Check without the rules on keys and surrogates.
func valid(data []byte) *SyntaxError { return (&checker{data: data}).run() }

// Valid reports whether data is one JSON text.
func Valid(data []byte) bool { return valid(data) == nil }

// CheckObject is Check of a text that must be an object.
func CheckObject(text string) error {
	if !strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{") {
		return errNoObject
	}
	return Check([]byte(text))
}

var errNoObject = &SyntaxError{0, "no object begins"}

// maxMended is the length of arguments, in bytes, up to which Object reads what is in them if they are not whole.
const maxMended = 1 << 20

// Object reads the text of an object that a model wrote and a caller sends back; blank is an empty one. It is not whole, and
// no error, where two readers could take it differently, which is read as encoding/json does if it is short, and where it was
// cut or is malformed. What is not read is an empty object.
func Object(text string) (object string, whole bool, err error) {
	if strings.Trim(text, " \t\r\n") == "" {
		return "{}", true, nil
	}
	switch err := CheckObject(text); err {
	case nil:
		return text, true, nil
	case error(errNoObject):
		return "{}", false, err
	}
	if len(text) > maxMended || !Valid([]byte(text)) {
		return "{}", false, nil
	}
	var fields map[string]any
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var read bytes.Buffer
	encoder := json.NewEncoder(&read)
	encoder.SetEscapeHTML(false)
	if decoder.Decode(&fields) != nil || encoder.Encode(fields) != nil || Check(read.Bytes()) != nil {
		return "{}", false, nil
	}
	return strings.TrimSuffix(read.String(), "\n"), false, nil
}

// MaxNodes is how many objects and lists a text may hold, and how many values of it a Scanner looks into: what is made of
// each takes some hundred bytes, however short it is.
const MaxNodes = 1 << 18

var tooManyNodes = "more than " + strconv.Itoa(MaxNodes) + " objects and lists"

type checker struct {
	data    []byte
	pos     int
	depth   int
	nodes   int
	strict  bool
	scratch []byte
}

func (c *checker) run() *SyntaxError {
	c.space()
	if err := c.value(); err != nil {
		return err
	}
	if c.space(); c.pos < len(c.data) {
		return c.error("text after the value")
	}
	return nil
}

func (c *checker) error(reason string) *SyntaxError { return &SyntaxError{c.pos, reason} }

func (c *checker) space() {
	for c.pos < len(c.data) {
		switch c.data[c.pos] {
		case ' ', '\t', '\n', '\r':
			c.pos++
		default:
			return
		}
	}
}

// is consumes the next byte after white space if it is want.
func (c *checker) is(want byte) bool {
	c.space()
	if c.pos < len(c.data) && c.data[c.pos] == want {
		c.pos++
		return true
	}
	return false
}

func (c *checker) value() *SyntaxError {
	if c.pos >= len(c.data) {
		return c.error("the text ends early")
	}
	switch c.data[c.pos] {
	case '{', '[':
		if c.nodes++; c.strict && c.nodes > MaxNodes {
			return c.error(tooManyNodes)
		}
		if c.data[c.pos] == '{' {
			return c.object()
		}
		return c.array()
	case '"':
		_, _, err := c.string()
		return err
	case 't':
		return c.literal("true")
	case 'f':
		return c.literal("false")
	case 'n':
		return c.literal("null")
	default:
		return c.number()
	}
}

// linearKeys is how many keys of an object are compared one by one before a map takes over.
const linearKeys = 16

func (c *checker) object() *SyntaxError {
	if c.depth++; c.depth > MaxDepth {
		return c.error("nested too deeply")
	}
	c.pos++
	var few [linearKeys]string
	var count int
	var many map[string]struct{}
	if c.is('}') {
		c.depth--
		return nil
	}
	for {
		if c.space(); c.pos >= len(c.data) || c.data[c.pos] != '"' {
			return c.error("a key is missing")
		}
		at := c.pos
		key, escaped, err := c.string()
		if err != nil {
			return err
		}
		if escaped {
			c.scratch = unescape(c.scratch[:0], key)
			key = c.scratch
		}
		if c.strict {
			twice := false
			if many != nil {
				_, twice = many[string(key)]
				many[string(key)] = struct{}{}
			} else {
				for _, k := range few[:count] {
					twice = twice || k == string(key)
				}
				if few[count] = string(key); count+1 < linearKeys {
					count++
				} else {
					many = make(map[string]struct{}, 4*linearKeys)
					for _, k := range few {
						many[k] = struct{}{}
					}
				}
			}
			if twice {
				c.pos = at
				return c.error("the key " + strconv.Quote(string(key[:min(len(key), 64)])) + " stands twice")
			}
		}
		if !c.is(':') {
			return c.error("a colon is missing")
		}
		c.space()
		if err := c.value(); err != nil {
			return err
		}
		if c.is(',') {
			continue
		}
		if !c.is('}') {
			return c.error("a comma or the end of the object is missing")
		}
		c.depth--
		return nil
	}
}

func (c *checker) array() *SyntaxError {
	if c.depth++; c.depth > MaxDepth {
		return c.error("nested too deeply")
	}
	c.pos++
	if c.is(']') {
		c.depth--
		return nil
	}
	for {
		c.space()
		if err := c.value(); err != nil {
			return err
		}
		if c.is(',') {
			continue
		}
		if !c.is(']') {
			return c.error("a comma or the end of the array is missing")
		}
		c.depth--
		return nil
	}
}

// string checks the string that begins here and returns its inside, and whether that holds escapes.
func (c *checker) string() (inside []byte, escaped bool, err *SyntaxError) {
	start := c.pos + 1
	ascii := true
	for i := start; i < len(c.data); i++ {
		b := c.data[i]
		switch {
		case plain[b]:
		case b == '"':
			inside = c.data[start:i]
			if !ascii && !utf8.Valid(inside) {
				return nil, false, c.error("a string is not UTF-8")
			}
			c.pos = i + 1
			return inside, escaped, nil
		case b == '\\':
			escaped = true
			n, reason := c.escape(c.data[i:])
			if reason != "" {
				c.pos = i
				return nil, false, c.error(reason)
			}
			i += n - 1
		case b < 0x20:
			c.pos = i
			return nil, false, c.error("a control character stands in a string")
		default:
			ascii = false
		}
	}
	return nil, false, c.error("a string does not end")
}

// escape returns the length of the escape that b begins with.
func (c *checker) escape(b []byte) (n int, reason string) {
	if len(b) < 2 {
		return 0, "a string does not end"
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, ""
	case 'u':
		r, ok := hex4(b[2:])
		if !ok {
			return 0, "not an escape"
		}
		if c.strict && r >= 0xD800 && r < 0xE000 {
			if len(b) >= 12 && b[6] == '\\' && b[7] == 'u' && r < 0xDC00 {
				if low, ok := hex4(b[8:]); ok && low >= 0xDC00 && low < 0xE000 {
					return 12, ""
				}
			}
			return 0, "a lone surrogate stands in a string"
		}
		return 6, ""
	}
	return 0, "not an escape"
}

func (c *checker) literal(word string) *SyntaxError {
	if len(c.data)-c.pos < len(word) || string(c.data[c.pos:c.pos+len(word)]) != word {
		return c.error("not a value")
	}
	c.pos += len(word)
	return nil
}

func (c *checker) digits() bool {
	start := c.pos
	for c.pos < len(c.data) && c.data[c.pos] >= '0' && c.data[c.pos] <= '9' {
		c.pos++
	}
	return c.pos > start
}

func (c *checker) number() *SyntaxError {
	if c.pos < len(c.data) && c.data[c.pos] == '-' {
		c.pos++
	}
	if c.pos < len(c.data) && c.data[c.pos] == '0' {
		c.pos++
	} else if !c.digits() {
		return c.error("not a value")
	}
	if c.pos < len(c.data) && c.data[c.pos] == '.' {
		if c.pos++; !c.digits() {
			return c.error("not a number")
		}
	}
	if c.pos < len(c.data) && c.data[c.pos]|0x20 == 'e' {
		if c.pos++; c.pos < len(c.data) && (c.data[c.pos] == '+' || c.data[c.pos] == '-') {
			c.pos++
		}
		if !c.digits() {
			return c.error("not a number")
		}
	}
	return nil
}
