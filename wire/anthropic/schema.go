package anthropic

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// MaxStrictTools is how many tools of a request can be strict.
const MaxStrictTools = 20

// stringFormats are those that decoding can be held to.
var stringFormats = []string{
	`"date-time"`, `"time"`, `"date"`, `"duration"`, `"email"`, `"hostname"`, `"uri"`, `"ipv4"`, `"ipv6"`, `"uuid"`,
}

// StrictSchema writes a JSON Schema as the API takes it for what decoding is held to: every object that names its
// properties has no others, and bounds that cannot be held to are told in the description
// (platform.claude.com/docs/en/build-with-claude/structured-outputs). What needs no change, and what is no JSON, stays as it is.
func StrictSchema(schema json.RawMessage) json.RawMessage {
	var w schemaWriter
	w.scanner.Reset(schema)
	w.schema()
	if w.scanner.End() != nil || !w.changed {
		return schema
	}
	return w.out
}

// schemaWriter writes a schema while it reads it.
type schemaWriter struct {
	scanner jsonscan.Scanner
	out     []byte
	changed bool
}

func (w *schemaWriter) raw() { w.out = append(w.out, w.scanner.Raw()...) }

func (w *schemaWriter) schema() {
	if w.scanner.Kind() != '{' {
		w.raw()
		return
	}
	var bounds []string
	var description, further []byte // the raw values
	named := false
	w.out = append(w.out, '{')
	begin := len(w.out)
	field := func(name string) {
		if len(w.out) > begin {
			w.out = append(w.out, ',')
		}
		w.out = append(jsonscan.AppendString(w.out, name), ':')
	}
	for first := true; w.scanner.Field(&first); {
		name := string(w.scanner.Name())
		switch name {
		case "description":
			description = w.scanner.Raw()
			continue
		case "additionalProperties":
			further = w.scanner.Raw()
			continue
		case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength",
			"minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties", "format":
			value := w.scanner.Raw()
			switch held := string(value); {
			case held == "null":
				w.changed = true
			case name == "minItems" && (held == "0" || held == "1"), name == "format" && slices.Contains(stringFormats, held):
				field(name)
				w.out = append(w.out, value...)
			default:
				bounds = append(bounds, name+" "+strings.Trim(held, `"`))
			}
			continue
		}
		field(name)
		switch name {
		case "properties":
			named = true
			w.schemas('{')
		case "$defs", "definitions":
			w.schemas('{')
		case "anyOf", "oneOf":
			w.schemas('[')
		case "items":
			w.schema()
		default:
			w.raw()
		}
	}
	if len(bounds) > 0 {
		w.changed = true
		var text string
		if json.Unmarshal(description, &text) == nil && text != "" {
			text += "\n"
		}
		description = jsonscan.AppendString(nil, text+strings.Join(bounds, ", "))
	}
	if description != nil {
		field("description")
		w.out = append(w.out, description...)
	}
	if named && slices.Contains([]string{"", "true", "null", "{}"}, strings.ReplaceAll(string(further), " ", "")) {
		w.changed = true
		further = []byte("false")
	}
	if further != nil {
		field("additionalProperties")
		w.out = append(w.out, further...)
	}
	w.out = append(w.out, '}')
}

// schemas writes an object or a list of schemas.
func (w *schemaWriter) schemas(kind byte) {
	if w.scanner.Kind() != kind {
		w.raw()
		return
	}
	w.out = append(w.out, kind)
	begin := len(w.out)
	next := func() {
		if len(w.out) > begin {
			w.out = append(w.out, ',')
		}
	}
	if kind == '[' {
		for first := true; w.scanner.Element(&first); {
			next()
			w.schema()
		}
		w.out = append(w.out, ']')
		return
	}
	for first := true; w.scanner.Field(&first); {
		next()
		w.out = append(jsonscan.AppendString(w.out, string(w.scanner.Name())), ':')
		w.schema()
	}
	w.out = append(w.out, '}')
}
