package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/prism-shadow/mmsp-go"
)

// decoder fills the structs of this package from the nodes of one file and collects what is wrong on the way.
type decoder struct {
	file     string
	getenv   func(string) string
	problems []Problem
	cells    map[string]cell // by path: every known key that stands in the file, and every row that is a mapping
}

// cell is where a key stands. It is set unless it is null or empty text, which are the same as leaving it out.
type cell struct {
	line int
	text string // of a scalar, as written
	set  bool
}

func (d *decoder) report(where string, line int, message string) {
	d.problems = append(d.problems, Problem{d.file, line, where, message})
}

// line returns the line of the first of the paths that stands in the file, else 1.
func (d *decoder) line(paths ...string) int {
	for _, path := range paths {
		if c, ok := d.cells[path]; ok {
			return c.line
		}
	}
	return 1
}

// parse returns the root node of the file, nil where there is none to look into.
func (d *decoder) parse(data []byte) *yaml.Node {
	if len(data) > maxFileBytes {
		d.report("", 0, fmt.Sprintf("is larger than %d bytes", maxFileBytes))
		return nil
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	lineAt := func(offset int) int { return 1 + bytes.Count(data[:offset], []byte("\n")) }
	for i := 0; i < len(data); {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size == 1 || unicode.IsControl(r) && !strings.ContainsRune("\t\r\n", r) {
			d.report("", lineAt(i), "holds bytes that are not UTF-8 text")
			return nil
		}
		i += size
	}
	if json.Valid(data) {
		data = jsonEscape.ReplaceAllFunc(data, func(escape []byte) []byte {
			if len(escape) == 2 && escape[1] != '/' {
				return escape
			}
			var text string
			_ = json.Unmarshal(slices.Concat([]byte(`"`), escape, []byte(`"`)), &text) // cannot fail: the file is valid
			return []byte(text)
		})
	}

	documents := yaml.NewDecoder(bytes.NewReader(data))
	var document, second yaml.Node
	err := decodeYAML(documents, &document)
	if err == nil {
		if err = decodeYAML(documents, &second); err == nil {
			d.report("", second.Line, "holds more than one YAML document")
			return nil
		}
	}
	if document.Kind == 0 && err == io.EOF || len(document.Content) == 1 && isNull(document.Content[0]) {
		d.report("", 1, "is empty")
		return nil
	}
	if err != io.EOF {
		line, message := 0, err.Error()
		if m := yamlError.FindStringSubmatch(message); m != nil {
			line, _ = strconv.Atoi(m[1])
			message = m[2]
		}
		if m := unknownAnchor.FindStringSubmatch(message); m != nil {
			// The name may be a key that begins with a star.
			line, message = lineAt(max(0, bytes.Index(data, []byte("*"+m[1])))), noAliases
		} else if parserMessage.MatchString(message) {
			line++ // the library counts the lines of these from 0
		}
		d.report("", max(1, min(line, lineAt(len(bytes.TrimRight(data, " \t\r\n"))))), "is neither YAML nor JSON: "+message)
		return nil
	}

	root := document.Content[0]
	if root.Kind != yaml.MappingNode {
		d.report("", root.Line, "must be a mapping, not "+kind(root))
		return nil
	}
	if root.Anchor != "" {
		d.report("", root.Line, noAliases)
	}
	return root
}

const noAliases = "anchors and aliases are not accepted, write the value out"

var (
	// jsonEscape finds the escapes of JSON strings. YAML knows neither surrogates nor (in this library) the escaped slash.
	jsonEscape = regexp.MustCompile(`\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[dD][89a-fA-F][0-9a-fA-F]{2}|\\.`)

	yamlError     = regexp.MustCompile(`(?s)^yaml: (?:line (\d+): )?(.*)$`)
	unknownAnchor = regexp.MustCompile(`(?s)^unknown anchor '(.*)' referenced$`)
	parserMessage = regexp.MustCompile(`^(did not find expected (',' or|'-' indicator|<document start>|key|node content)|found undefined tag)`)
)

// decodeYAML turns the panics that the library keeps for its own faults into errors.
func decodeYAML(documents *yaml.Decoder, n *yaml.Node) (err error) {
	defer func() {
		if recover() != nil {
			err = errors.New("the parser gave up")
		}
	}()
	return documents.Decode(n)
}

// object reads a mapping into one section, or into several that share it.
func (d *decoder) object(path string, line int, n *yaml.Node, sections ...reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.report(path, line, "must be a mapping, not "+kind(n))
		return
	}
	d.cells[path] = cell{line: line, set: true}
	type field struct {
		tag   reflect.StructTag
		value reflect.Value
	}
	known := map[string]field{}
	var names []string
	for _, section := range sections {
		for f, value := range section.Fields() {
			if name := f.Tag.Get("yaml"); name != "-" {
				known[name] = field{f.Tag, value}
				names = append(names, name)
			}
		}
	}
	for key, value := range d.pairs(path, n) {
		at := join(path, key.Value)
		f, ok := known[key.Value]
		if !ok {
			message := "unknown key"
			if near := nearest(key.Value, names); near != "" {
				message += ", did you mean " + near + "?"
			}
			d.report(at, key.Line, message)
			continue
		}
		isText := f.value.Kind() == reflect.String || f.value.Type() == reflect.TypeFor[mmsp.Secret]()
		absent := isNull(value) || isText && value.Kind == yaml.ScalarNode && value.Value == ""
		absent = absent && value.Anchor == ""
		d.cells[at] = cell{line: key.Line, text: value.Value, set: !absent}
		if !absent {
			d.value(at, key.Line, value, f.value, f.tag)
		}
	}
}

// value reads one node that is not absent into a field or element.
func (d *decoder) value(path string, line int, n *yaml.Node, out reflect.Value, tag reflect.StructTag) {
	if n.Anchor != "" || n.Kind == yaml.AliasNode {
		d.report(path, line, noAliases)
	}
	if n.Kind == yaml.AliasNode {
		return
	}
	atLeast, _ := strconv.ParseInt(tag.Get("min"), 10, 64)
	switch p := out.Addr().Interface().(type) {
	case *string:
		s, ok := d.text(path, line, n)
		if ok && tag.Get("env") != "" {
			s, ok = d.resolve(path, line, s, false)
		}
		if enum := strings.Fields(tag.Get("enum")); ok && len(enum) > 0 && !slices.Contains(enum, s) {
			d.report(path, line, "must be one of "+strings.Join(enum, ", "))
		} else if ok {
			*p = s
		}

	case *mmsp.Secret:
		s, ok := d.text(path, line, n)
		if ok && s == "" {
			d.report(path, line, "must not be empty")
		} else if ok {
			s, _ = d.resolve(path, line, s, true)
			*p = mmsp.NewSecret(s)
		}

	case *bool:
		b, err := strconv.ParseBool(n.Value)
		if n.Tag != "!!bool" || err != nil {
			d.report(path, line, "must be true or false, not "+kind(n))
			return
		}
		*p = b

	case *time.Duration:
		v, ok := duration(n)
		switch {
		case !ok:
			d.report(path, line, "must be a duration such as 500ms, 2s or 168h, or a number of seconds")
		case v < 0:
			d.report(path, line, "must not be negative")
		case int64(v) < atLeast:
			d.report(path, line, "must be longer than 0")
		default:
			*p = v
		}

	case *int, *int64:
		v, err := strconv.ParseInt(n.Value, 0, 64) // with prefixes and underscores, as YAML has them
		if n.Tag != "!!int" || err != nil && !errors.Is(err, strconv.ErrRange) {
			d.report(path, line, "must be a whole number, not "+kind(n))
			return
		}
		atMost, err := strconv.ParseInt(tag.Get("max"), 10, 64)
		switch {
		case err == nil && (v < atLeast || v > atMost):
			d.report(path, line, fmt.Sprintf("must be between %d and %d", atLeast, atMost))
		case v < atLeast:
			d.report(path, line, fmt.Sprintf("must be at least %d", atLeast))
		case v == math.MaxInt64 || out.OverflowInt(v):
			d.report(path, line, "is too large")
		default:
			out.SetInt(v)
		}

	case *map[string]mmsp.Secret:
		d.headers(path, line, n, p)

	default:
		if out.Kind() != reflect.Slice {
			d.object(path, line, n, out)
			return
		}
		if n.Kind != yaml.SequenceNode {
			d.report(path, line, "must be a list, not "+kind(n))
			return
		}
		out.Set(reflect.MakeSlice(out.Type(), len(n.Content), len(n.Content)))
		for i, item := range n.Content {
			d.value(fmt.Sprintf("%s[%d]", path, i), item.Line, item, out.Index(i), "")
		}
	}
}

// headers reads the headers of a row. They go out with every request, so what HTTP would refuse is refused here.
func (d *decoder) headers(path string, line int, n *yaml.Node, out *map[string]mmsp.Secret) {
	if n.Kind != yaml.MappingNode {
		d.report(path, line, "must be a mapping, not "+kind(n))
		return
	}
	*out = map[string]mmsp.Secret{}
	seen := map[string]bool{}
	for key, value := range d.pairs(path, n) {
		at := join(path, key.Value)
		var header mmsp.Secret
		d.value(at, key.Line, value, reflect.ValueOf(&header).Elem(), "")
		(*out)[key.Value] = header
		if !headerName.MatchString(key.Value) {
			d.report(at, key.Line, "is not a header name")
		} else if name := http.CanonicalHeaderKey(key.Value); seen[name] {
			d.report(at, key.Line, "the same header stands here already, spelled otherwise")
		} else {
			seen[name] = true
		}
		if strings.ContainsFunc(header.Reveal(), func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			d.report(at, key.Line, "must not hold control characters")
		}
	}
}

var (
	headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")
	reference  = regexp.MustCompile(`^\$(?:([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})$`)
)

// text returns a text cell as it is written.
func (d *decoder) text(path string, line int, n *yaml.Node) (string, bool) {
	if n.Kind == yaml.ScalarNode && (n.Tag == "!!str" || n.Tag == "!!timestamp") {
		return n.Value, true
	}
	message := "must be text, not " + kind(n)
	if n.Kind == yaml.ScalarNode && n.Tag != "!!null" {
		message += " (put it in quotes)"
	}
	d.report(path, line, message)
	return "", false
}

// resolve replaces a cell that is a reference, $NAME or ${NAME}, by the environment variable it names; $$ at the
// beginning stands for a dollar. Where the cell holds a key, a name that is unlike a variable's may be the key itself
// and is not repeated.
func (d *decoder) resolve(path string, line int, text string, secret bool) (string, bool) {
	if !strings.HasPrefix(text, "$") {
		return text, true
	}
	if strings.HasPrefix(text, "$$") {
		return text[1:], true
	}
	m := reference.FindStringSubmatch(text)
	if m == nil {
		d.report(path, line, "must be a whole reference, $NAME or ${NAME} (write $$ for a dollar)")
		return "", false
	}
	name := m[1] + m[2]
	if value := d.getenv(name); value != "" {
		return value, true
	}
	message := "the environment variable " + printable(name) + " is not set, or empty"
	if secret && name != strings.ToUpper(name) {
		message = "the environment variable it names is not set, or empty"
	}
	d.report(path, line, message)
	return "", false
}

// duration reads Go's notation or a plain number of seconds.
func duration(n *yaml.Node) (time.Duration, bool) {
	switch n.Tag {
	case "!!str":
		v, err := time.ParseDuration(n.Value)
		return v, err == nil
	case "!!int", "!!float":
		seconds, err := strconv.ParseFloat(n.Value, 64)
		inRange := math.Abs(seconds) < math.MaxInt64/1e9 // false for NaN too
		if err != nil || !inRange {
			return 0, false
		}
		return time.Duration(math.Round(seconds * 1e9)), true
	}
	return 0, false
}

// pairs yields the keys and values of a mapping, each key once.
func (d *decoder) pairs(path string, n *yaml.Node) iter.Seq2[*yaml.Node, *yaml.Node] {
	return func(yield func(key, value *yaml.Node) bool) {
		first := map[string]int{} // key → line
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			if key.Kind != yaml.ScalarNode || key.Anchor != "" {
				d.report(path, key.Line, "a key must be plain text")
			} else if line, again := first[key.Value]; again {
				d.report(join(path, key.Value), key.Line, fmt.Sprintf("duplicate key, it stands on line %d already", line))
			} else if first[key.Value] = key.Line; !yield(key, value) {
				return
			}
		}
	}
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.Tag == "!!null" }

// kind says what a node is, never what it holds.
func kind(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "a mapping"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	}
	switch n.Tag {
	case "!!str":
		return "text"
	case "!!int":
		return "a whole number"
	case "!!float":
		return "a fraction or a number too large"
	case "!!bool":
		return "true or false"
	case "!!null":
		return "null"
	}
	return "a value of another type"
}

// join appends a key to a path. The key ends where it stops looking like one: with the space behind a colon forgotten,
// YAML takes `{api_key:sk-1}` for a key.
func join(path, key string) string {
	word := key
	if end := strings.IndexFunc(key, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-'
	}); end >= 0 {
		word = key[:end] + "…"
	}
	if word = printable(word); path == "" {
		return word
	}
	return path + "." + word
}

// printable makes text of the file fit for one line of a message.
func printable(s string) string {
	runes := []rune(s)
	if len(runes) > 64 {
		runes = append(runes[:64], '…')
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, string(runes))
}

// nearest returns the known word that a misspelled one most likely means, empty where none is near.
func nearest(word string, known []string) string {
	fold := func(s string) string { return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(s)) }
	word = fold(printable(word))
	best, bestDistance := "", math.MaxInt
	for _, candidate := range known {
		distance := editDistance(word, fold(candidate))
		if distance < bestDistance && distance <= max(1, len(candidate)/3) {
			best, bestDistance = candidate, distance
		}
	}
	return best
}

// editDistance is the number of bytes to insert, delete or replace (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			above := row[j+1]
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			row[j+1] = min(replace, above+1, row[j]+1)
			diagonal = above
		}
	}
	return row[len(b)]
}
