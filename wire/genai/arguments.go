package genai

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// arguments writes the text of a call's arguments while they stream: the wire names each value by its path, in the order
// of the text, and sends long strings in pieces.
type arguments struct {
	open   []container // from the root to where the last value stands
	string []string    // the path of a string that goes on, nil between values
}

// container is an object or array that has begun.
type container struct {
	step string // under which it stands in the one around it
	list bool
	size int
	has  map[string]bool // the fields of an object
}

const maxArgumentDepth = 64

// partialArgument is a value, or a piece of a string.
type partialArgument struct {
	path      string // as in JSONPath: $.a[0]['b c']
	value     []byte // a JSON value, nil for a string
	text      string
	continues bool // another piece of the string comes
}

// add appends what a value adds to the text.
func (a *arguments) add(dst []byte, arg *partialArgument) ([]byte, error) {
	path, err := parsePath(arg.path)
	if err != nil {
		return dst, err
	}
	if a.string != nil {
		if slices.Equal(path, a.string) {
			return a.piece(dst, path, arg), nil
		}
		dst, a.string = append(dst, '"'), nil
	}
	if a.open == nil {
		a.open = append(a.open, container{})
		dst = append(dst, '{')
	}
	// Close what the value does not stand in, open what it stands in.
	depth := 1
	for depth < len(a.open) && depth < len(path) && a.open[depth].step == path[depth-1] {
		depth++
	}
	dst = a.closeTo(dst, depth)
	for ; depth <= len(path); depth++ {
		in, step := &a.open[depth-1], path[depth-1]
		if in.has[step] || in.list != isIndex(step) || in.list && step != "["+strconv.Itoa(in.size) {
			return dst, fmt.Errorf("the argument %s is out of order", arg.path)
		}
		if in.size > 0 {
			dst = append(dst, ',')
		}
		if in.size++; !in.list {
			if in.has == nil {
				in.has = map[string]bool{}
			}
			in.has[step] = true
			dst = append(jsonscan.AppendString(dst, step), ':')
		}
		if depth < len(path) {
			list := isIndex(path[depth])
			a.open = append(a.open, container{step: step, list: list})
			dst = append(dst, bracket(list, "{["))
		}
	}
	if arg.value != nil {
		return append(dst, arg.value...), nil
	}
	return a.piece(append(dst, '"'), path, arg), nil
}

// piece appends a piece of a string that has begun.
func (a *arguments) piece(dst []byte, path []string, arg *partialArgument) []byte {
	start := len(dst)
	dst = jsonscan.AppendString(dst, arg.text)
	dst = append(dst[:start], dst[start+1:len(dst)-1]...)
	if a.string = path; !arg.continues {
		dst, a.string = append(dst, '"'), nil
	}
	return dst
}

// close appends what ends the text.
func (a *arguments) close(dst []byte) []byte {
	if a.string != nil {
		dst = append(dst, '"')
	}
	return a.closeTo(dst, 0)
}

func (a *arguments) closeTo(dst []byte, depth int) []byte {
	for len(a.open) > depth {
		last := len(a.open) - 1
		dst = append(dst, bracket(a.open[last].list, "}]"))
		a.open = a.open[:last]
	}
	return dst
}

func bracket(list bool, pair string) byte {
	if list {
		return pair[1]
	}
	return pair[0]
}

// isIndex tells the number of a list's element, which parsePath marks, from the name of a field.
func isIndex(step string) bool { return strings.HasPrefix(step, "[") }

var errPath = errors.New("the path of an argument is not readable")

// parsePath reads a JSONPath that names one value: fields as .name or ['name'], elements as [0], which come back as "[0".
// A field that begins with a bracket cannot be told apart and is refused.
func parsePath(text string) (path []string, err error) {
	rest, ok := strings.CutPrefix(text, "$")
	if !ok || rest == "" {
		return nil, errPath
	}
	for rest != "" {
		if len(path) == maxArgumentDepth {
			return nil, errPath
		}
		step := ""
		switch {
		case rest[0] == '.':
			end := strings.IndexAny(rest[1:], ".[")
			if end < 0 {
				end = len(rest) - 1
			}
			step, rest = rest[1:1+end], rest[1+end:]
		case len(rest) > 1 && rest[0] == '[' && (rest[1] == '\'' || rest[1] == '"'):
			end := 2
			var name []byte
			for end < len(rest) && rest[end] != rest[1] {
				if rest[end] == '\\' && end+1 < len(rest) {
					end++
				}
				name = append(name, rest[end])
				end++
			}
			if !strings.HasPrefix(rest[min(end+1, len(rest)):], "]") {
				return nil, errPath
			}
			step, rest = string(name), rest[end+2:]
		case rest[0] == '[':
			number, after, ok := strings.Cut(rest[1:], "]")
			if n, err := strconv.Atoi(number); !ok || err != nil || n < 0 {
				return nil, errPath
			}
			path, rest = append(path, "["+number), after
			continue
		default:
			return nil, errPath
		}
		if step == "" || isIndex(step) {
			return nil, errPath
		}
		path = append(path, step)
	}
	return path, nil
}
