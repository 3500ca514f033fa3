package wiregrammar

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// report collects the faults of one body.
type report struct {
	faults []error
	more   int // faults beyond the first maxFaults
}

const maxFaults = 100

func (r *report) add(format string, args ...any) {
	if len(r.faults) == maxFaults {
		r.more++
		return
	}
	r.faults = append(r.faults, fmt.Errorf(format, args...))
}

func (r *report) err() error {
	if r.more > 0 {
		return errors.Join(append(slices.Clone(r.faults), fmt.Errorf("and %d more faults", r.more))...)
	}
	return errors.Join(r.faults...)
}

// parse reads one JSON object, strictly: RFC 8259, valid UTF-8, no key twice.
func (r *report) parse(where string, data []byte) node {
	n := node{report: r, path: where, silent: true}
	if err := jsonscan.Check(data); err != nil {
		r.add("%s: no strict JSON: %w", where, err)
		return n
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(&n.value); err != nil {
		r.add("%s: no JSON: %w", where, err)
		return n
	}
	n.there, n.silent = true, false
	n.silent = !n.object()
	return n
}

// node is a JSON value at a path, or its absence. Each reading method reports a fault unless the value is of the kind
// that it reads. Of a body that is no JSON object nothing else is reported.
type node struct {
	report *report
	path   string
	value  any
	there  bool
	silent bool
}

func (n node) fault(format string, args ...any) {
	if !n.silent {
		n.report.add("%s: %w", n.path, fmt.Errorf(format, args...))
	}
}

func (n node) wrong(want string) {
	switch value := n.value.(type) {
	case nil:
		if !n.there {
			n.fault("is missing, want %s", want)
		} else {
			n.fault("is null, want %s", want)
		}
	case map[string]any:
		n.fault("is an object, want %s", want)
	case []any:
		n.fault("is an array, want %s", want)
	default:
		n.fault("is %.100q, want %s", fmt.Sprint(value), want)
	}
}

// get returns the value of a key.
func (n node) get(key string) node {
	object, _ := n.value.(map[string]any)
	child := node{report: n.report, path: n.path + "." + key, silent: n.silent}
	child.value, child.there = object[key]
	return child
}

func (n node) has(key string) bool { return n.get(key).there }

// null reports that the value is null or absent.
func (n node) null() bool { return n.value == nil }

func (n node) object() bool {
	if _, ok := n.value.(map[string]any); !ok {
		n.wrong("an object")
		return false
	}
	return true
}

func (n node) list() (nodes []node) {
	values, ok := n.value.([]any)
	if !ok {
		n.wrong("an array")
	}
	for i, value := range values {
		nodes = append(nodes, node{report: n.report, path: n.path + "[" + strconv.Itoa(i) + "]", value: value, there: true, silent: n.silent})
	}
	return nodes
}

func (n node) empty() {
	if values, ok := n.value.([]any); !ok || len(values) > 0 {
		n.wrong("[]")
	}
}

func (n node) text() string {
	s, ok := n.value.(string)
	if !ok {
		n.wrong("a string")
	}
	return s
}

// name is a string that says something.
func (n node) name() string {
	s, _ := n.value.(string)
	if s == "" {
		n.wrong("a string that is not empty")
	}
	return s
}

// prefixed is an id of a kind.
func (n node) prefixed(prefix string) string {
	s := n.name()
	if s != "" && (!strings.HasPrefix(s, prefix) || s == prefix) {
		n.wrong("an id that begins with " + prefix)
	}
	return s
}

func (n node) is(want string) {
	if s, ok := n.value.(string); !ok || s != want {
		n.wrong(strconv.Quote(want))
	}
}

func (n node) oneOf(words ...string) string {
	s, _ := n.value.(string)
	if !slices.Contains(words, s) {
		n.wrong("one of " + strings.Join(words, ", "))
	}
	return s
}

// count is a number of things: an integer, not negative.
func (n node) count() int64 {
	number, _ := n.value.(json.Number)
	i, err := strconv.ParseInt(string(number), 10, 64)
	if err != nil || i < 0 {
		n.wrong("a count")
		return 0
	}
	return i
}

func (n node) number() {
	if _, ok := n.value.(json.Number); !ok {
		n.wrong("a number")
	}
}

func (n node) flag() {
	if _, ok := n.value.(bool); !ok {
		n.wrong("true or false")
	}
}

// orNull checks a key that must be there and may be null; optional one that may also be absent.
func (n node) orNull(check func(node)) {
	if !n.there {
		n.wrong("a value or null")
	} else if n.value != nil {
		check(n)
	}
}

func (n node) optional(check func(node)) {
	if n.there {
		n.orNull(check)
	}
}

// absentOr checks a key that may be absent and may not be null.
func (n node) absentOr(check func(node)) {
	if n.there {
		check(n)
	}
}

func isText(n node)   { n.text() }
func isName(n node)   { n.name() }
func isCount(n node)  { n.count() }
func isFlag(n node)   { n.flag() }
func isObject(n node) { n.object() }

func isObjects(n node) {
	for _, element := range n.list() {
		element.object()
	}
}

func isOneOf(words ...string) func(node) { return func(n node) { n.oneOf(words...) } }

// isJSONObject reports whether a text is that of one JSON object.
func isJSONObject(text string) bool {
	return jsonscan.Valid([]byte(text)) && strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{")
}
