package jsonscan

import (
	"slices"
	"strconv"
	"strings"
)

// Reader reads the records of a request that a caller wrote. A value of the wrong kind is an error that names its path;
// null and absent are the same; what is not asked for is skipped. The first error counts.
type Reader struct {
	scanner Scanner
	path    []string // where the reader is, outermost first
	err     *PathError
	dropped []string
	unknown []string
}

// PathError says which part of a request is wrong.
type PathError struct {
	Path    string // such as "input[3].content[0].image_url"; empty: the whole
	Message string
}

func (e *PathError) Error() string {
	if e.Path == "" {
		return e.Message
	}
	return e.Path + ": " + e.Message
}

// NewReader returns a reader of one JSON text.
func NewReader(data []byte) *Reader { return NewReaderAt(data, "") }

// NewReaderAt is NewReader of a part that stands at a path of the request.
func NewReaderAt(data []byte, path string) *Reader {
	r := &Reader{}
	r.Reset(data, path)
	return r
}

// Reset makes r a new reader of a part that stands at a path of the request.
func (r *Reader) Reset(data []byte, path string) {
	*r = Reader{}
	r.scanner.Reset(data)
	if path != "" {
		r.path = []string{path}
	}
}

// Path returns where the reader is.
func (r *Reader) Path() string { return strings.TrimPrefix(strings.Join(r.path, ""), ".") }

// Fail reports that the value at the reader's path is wrong.
func (r *Reader) Fail(message string) { r.FailAt(r.Path(), message) }

// FailField is Fail of a field of the value at the reader's path.
func (r *Reader) FailField(name, message string) {
	r.FailAt(strings.TrimPrefix(r.Path()+"."+name, "."), message)
}

// FailAt is Fail of another path.
func (r *Reader) FailAt(path, message string) {
	if r.err == nil {
		r.err = &PathError{path, message}
	}
}

// Failed reports whether there is an error.
func (r *Reader) Failed() bool { return r.err != nil || r.scanner.Err() != nil }

// Stop lets the rest of the text be.
func (r *Reader) Stop() { r.scanner.Stop() }

// End returns the first error, of the text or of what it says: a *PathError.
func (r *Reader) End() error {
	syntax := r.scanner.End()
	if r.err == nil && syntax != nil {
		r.Fail("not readable as JSON: " + syntax.Error())
	}
	if r.err != nil {
		return r.err
	}
	return nil
}

// Kind returns the kind of the next value: '{', '[', '"', '0', 't', 'f' or 'n'; 0 where there is none.
func (r *Reader) Kind() byte { return r.scanner.Kind() }

// Skip passes over the next value.
func (r *Reader) Skip() { r.scanner.Skip() }

// Drop notes that the value at the reader's path is for nobody here to serve.
func (r *Reader) Drop() { r.dropped = append(r.dropped, r.Path()) }

// Dropped returns the paths of what was to be served in vain.
func (r *Reader) Dropped() []string { return r.dropped }

// kindWords are what Leave calls the kinds that it may be given.
var kindWords = map[byte]string{'{': "an object", '[': "a list", '"': "a string"}

// Leave is Drop of the next value, which is of one of the kinds or, where none is given, of any, unless it says nothing:
// null, false, an empty text, and a list or an object of nothing else.
func (r *Reader) Leave(kinds ...byte) {
	if kind := r.Kind(); kind != 'n' && len(kinds) > 0 && !slices.Contains(kinds, kind) {
		words := make([]string, len(kinds))
		for i := range kinds {
			words[i] = kindWords[kinds[i]]
		}
		r.Fail(strings.Join(words, " or ") + " is wanted")
	}
	if r.says() {
		r.Drop()
	}
}

// says takes the next value and reports whether it says anything.
func (r *Reader) says() (says bool) {
	inner := func() {
		if says {
			r.Skip()
		} else {
			says = r.says()
		}
	}
	switch r.Kind() {
	case '{':
		r.Fields(func(string) { inner() })
	case '[':
		r.Elements(inner)
	case '"':
		says = r.String() != ""
	case 'n', 'f':
		r.Skip()
	default:
		r.Skip()
		return true
	}
	return says
}

// What Unknown returns of a request.
const (
	maxUnknown      = 16
	maxUnknownBytes = 64
)

// SkipUnknown is Skip of a field that the reader of its record does not know.
func (r *Reader) SkipUnknown() {
	if path := r.Path(); len(r.unknown) < maxUnknown {
		r.unknown = append(r.unknown, strings.ToValidUTF8(path[:min(len(path), maxUnknownBytes)], ""))
	}
	r.Skip()
}

// Unknown returns the paths of the first unknown fields, cut where they are long.
func (r *Reader) Unknown() []string { return r.unknown }

// is checks the kind of the next value; null and any other kind are skipped, the latter with an error.
func (r *Reader) is(want byte, word string) bool {
	k := r.scanner.Kind()
	if k == want {
		return true
	}
	if k != 'n' && k != 0 {
		r.Fail(word + " is wanted")
	}
	r.scanner.Skip()
	return false
}

// String returns the next value, "" for null.
func (r *Reader) String() string {
	if !r.is('"', "a string") {
		return ""
	}
	return r.scanner.String()
}

// StringOrNil is String that tells null from "".
func (r *Reader) StringOrNil() *string {
	if !r.is('"', "a string") {
		return nil
	}
	return new(r.scanner.String())
}

// Word returns the next value, which must be one of the words; "" for null.
func (r *Reader) Word(words ...string) string {
	text := r.String()
	if text == "" {
		return ""
	}
	for _, word := range words {
		if text == word {
			return text
		}
	}
	r.Fail("one of " + strings.Join(words, ", ") + " is wanted")
	return ""
}

// Int returns the next value, nil for null.
func (r *Reader) Int() *int64 {
	if !r.is('0', "an integer") {
		return nil
	}
	text := r.scanner.Raw()
	if n, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		return &n
	}
	if f, err := strconv.ParseFloat(string(text), 64); err == nil && f == float64(int64(f)) {
		return new(int64(f))
	}
	r.Fail("an integer is wanted")
	return nil
}

// IntBetween is Int of a bounded value.
func (r *Reader) IntBetween(low, high int64) *int64 {
	n := r.Int()
	if n != nil && (*n < low || *n > high) {
		r.Fail("an integer from " + strconv.FormatInt(low, 10) + " to " + strconv.FormatInt(high, 10) + " is wanted")
	}
	return n
}

// Float returns the next value, nil for null.
func (r *Reader) Float() *float64 {
	if !r.is('0', "a number") {
		return nil
	}
	f, ok := r.scanner.Float()
	if !ok {
		r.Fail("a number is wanted")
	}
	return &f
}

// FloatBetween is Float of a bounded value.
func (r *Reader) FloatBetween(low, high float64) *float64 {
	f := r.Float()
	if f != nil && (*f < low || *f > high) {
		r.Fail("a number from " + strconv.FormatFloat(low, 'g', -1, 64) + " to " + strconv.FormatFloat(high, 'g', -1, 64) + " is wanted")
	}
	return f
}

// Bool returns the next value, nil for null.
func (r *Reader) Bool() *bool {
	switch r.scanner.Kind() {
	case 't', 'f':
		return new(r.scanner.Bool())
	case 'n':
	default:
		r.Fail("true or false is wanted")
	}
	r.scanner.Skip()
	return nil
}

// Text returns the text of the next value, as the part that it is of the whole; nil where there is none.
func (r *Reader) Text() []byte { return r.scanner.Raw() }

// Raw returns a copy of the text of the next value, nil for null.
func (r *Reader) Raw() []byte {
	if r.scanner.Kind() == 'n' {
		r.scanner.Skip()
		return nil
	}
	return append([]byte(nil), r.scanner.Raw()...)
}

// Object is Raw of an object.
func (r *Reader) Object() []byte {
	if !r.is('{', "an object") {
		return nil
	}
	return append([]byte(nil), r.scanner.Raw()...)
}

// Fields calls read for every field of the next value with the field's name on the path; read takes the field's value.
func (r *Reader) Fields(read func(name string)) bool {
	if !r.is('{', "an object") {
		return false
	}
	for first := true; r.scanner.Field(&first); {
		name := string(r.scanner.Name())
		r.path = append(r.path, "."+name)
		read(name)
		r.path = r.path[:len(r.path)-1]
	}
	return true
}

// Elements calls read for every element of the next value, which read takes, and reports whether it is a list.
func (r *Reader) Elements(read func()) bool {
	if !r.is('[', "a list") {
		return false
	}
	n := 0
	for first := true; r.scanner.Element(&first); n++ {
		r.path = append(r.path, "["+strconv.Itoa(n)+"]")
		read()
		r.path = r.path[:len(r.path)-1]
	}
	return true
}

// MaxStrings is how many strings a list of them may hold: what is made of each takes more than the three bytes that it may be.
const MaxStrings = 4096

// Strings returns a list of strings, nil for null.
func (r *Reader) Strings() []string {
	list, long := []string{}, false
	if !r.Elements(func() {
		if long = len(list) == MaxStrings; long {
			r.Stop()
			return
		}
		list = append(list, r.String())
	}) {
		return nil
	}
	if long {
		r.Fail("at most " + strconv.Itoa(MaxStrings) + " strings are wanted")
	}
	return list
}

// Lookahead returns the string in a field of the next value, an object, without taking it: the type that says what the
// other fields are. It is "" for null and an absent field. Of a field that stands twice the first that says something counts.
func (r *Reader) Lookahead(field string) string {
	if r.scanner.Kind() != '{' {
		return ""
	}
	ahead := r.scanner
	for first := true; ahead.Field(&first); {
		kind := ahead.Kind()
		switch {
		case string(ahead.Name()) != field, kind == 'n', kind == 0:
			ahead.Skip()
		case kind != '"':
			r.FailField(field, "a string is wanted")
			return ""
		default:
			if text := ahead.String(); text != "" {
				return text
			}
		}
	}
	return ""
}
