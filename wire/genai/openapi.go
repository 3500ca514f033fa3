package genai

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// maxInputNesting bounds how deeply a schema of a caller nests: what a schema costs grows with its depth.
const maxInputNesting = 64

var errInputNesting = errors.New("a schema nests at most " + strconv.Itoa(maxInputNesting) + " deep")

var errSpellings = errors.New("a keyword of a schema is given in two spellings")

// JSONSchema makes JSON Schema of a schema as the protocol has it, a subset of OpenAPI's: types are written small, what may
// be null says so among its types, and properties stand in the order that propertyOrdering gives. What is JSON Schema
// already stays as it is. The text must be JSON.
func JSONSchema(schema []byte) ([]byte, error) { return appendJSONSchema(nil, schema, 0) }

// schemaKeywords are the keywords of two words, which callers also write with an underscore.
var schemaKeywords = []string{
	"anyOf", "oneOf", "allOf", "prefixItems", "additionalProperties", "propertyOrdering",
	"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties",
}

func appendJSONSchema(dst, schema []byte, depth int) ([]byte, error) {
	if depth > maxInputNesting {
		return dst, errInputNesting
	}
	if schema[0] != '{' { // true and false are schemas, too
		return append(dst, schema...), nil
	}
	type keyword struct {
		name  string
		value []byte
	}
	var keywords []keyword
	var ordering []string
	nullable, typed := false, false
	var spelled map[string]bool
	var s jsonscan.Scanner
	s.ResetChecked(schema)
	for first := true; s.Field(&first); {
		name := string(s.Name())
		if short := camel(name); slices.Contains(schemaKeywords, short) {
			name = short
			if spelled[name] {
				return dst, errSpellings
			}
			if spelled == nil {
				spelled = map[string]bool{}
			}
			spelled[name] = true
		}
		switch name {
		case "nullable":
			nullable = s.Bool()
		case "propertyOrdering":
			for first := true; s.Element(&first); {
				ordering = append(ordering, s.String())
			}
		default:
			value := s.Raw()
			if unspecified := string(value) == `"TYPE_UNSPECIFIED"` || string(value) == "0"; name == "type" && unspecified || string(value) == "null" && name != "default" && name != "const" && name != "example" {
				continue
			}
			typed = typed || name == "type"
			keywords = append(keywords, keyword{name, value})
		}
	}
	if err := s.End(); err != nil {
		return dst, err
	}

	dst = append(dst, '{')
	var err error
	each := func(values []byte) { // of a list of schemas
		var s jsonscan.Scanner
		s.ResetChecked(values)
		for first, n := true, 0; err == nil && s.Element(&first); n++ {
			if n > 0 {
				dst = append(dst, ',')
			}
			dst, err = appendJSONSchema(dst, s.Raw(), depth+1)
		}
	}
	written := 0
	for _, k := range keywords {
		value := k.value
		if k.name == "format" && string(value) == `"enum"` { // says of a string what the list says already
			continue
		}
		if written++; written > 1 {
			dst = append(dst, ',')
		}
		dst = append(jsonscan.AppendString(dst, k.name), ':')
		switch {
		case k.name == "type":
			dst = appendTypes(dst, value, nullable)
		case k.name == "enum" && nullable && len(value) > 2 && value[0] == '[':
			dst = append(append(dst, value[:len(value)-1]...), ",null]"...)
		case slices.Contains([]string{"anyOf", "oneOf", "allOf", "prefixItems"}, k.name) && value[0] == '[', k.name == "items" && value[0] == '[':
			dst = append(dst, '[')
			if each(value); k.name == "anyOf" && nullable && !typed && len(value) > 2 {
				dst = append(dst, `,{"type":"null"}`...)
			}
			dst = append(dst, ']')
		case slices.Contains([]string{"items", "additionalProperties", "not"}, k.name):
			dst, err = appendJSONSchema(dst, value, depth+1)
		case slices.Contains([]string{"properties", "$defs", "definitions"}, k.name) && value[0] == '{':
			dst, err = appendProperties(dst, value, ordering, depth)
		case strings.HasPrefix(k.name, "min") || strings.HasPrefix(k.name, "max"):
			// Google writes integers of 64 bits as strings.
			text := strings.Trim(string(value), `"`)
			if _, wrong := strconv.ParseInt(text, 10, 64); wrong != nil {
				text = string(value)
			}
			dst = append(dst, text...)
		default:
			dst = append(dst, value...)
		}
		if err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}

// typeNumbers are the types in the order of their numbers, from 1, by which older libraries of Google's write them.
var typeNumbers = [][]byte{
	[]byte(`"string"`), []byte(`"number"`), []byte(`"integer"`), []byte(`"boolean"`), []byte(`"array"`), []byte(`"object"`), []byte(`"null"`),
}

// appendTypes appends a type, or the list of them.
func appendTypes(dst, value []byte, nullable bool) []byte {
	var types []string
	var s jsonscan.Scanner
	s.ResetChecked(value)
	if n := int(value[0] - '0'); len(value) == 1 && 1 <= n && n <= len(typeNumbers) {
		return appendTypes(dst, typeNumbers[n-1], nullable)
	}
	switch value[0] {
	case '"':
		types = []string{strings.ToLower(s.String())}
	case '[':
		for first := true; s.Element(&first); {
			types = append(types, strings.ToLower(s.String()))
		}
	default: // no schema; whose business it is will say so
		return append(dst, value...)
	}
	if nullable && !slices.Contains(types, "null") {
		types = append(types, "null")
	}
	if len(types) == 1 && value[0] == '"' {
		return jsonscan.AppendString(dst, types[0])
	}
	dst = append(dst, '[')
	for i, t := range types {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = jsonscan.AppendString(dst, t)
	}
	return append(dst, ']')
}

// appendProperties appends named schemas: those that ordering names in its order, then the others in their own.
func appendProperties(dst, properties []byte, ordering []string, depth int) ([]byte, error) {
	var names []string
	schemas := map[string][]byte{}
	var s jsonscan.Scanner
	s.ResetChecked(properties)
	for first := true; s.Field(&first); {
		name := string(s.Name())
		names = append(names, name)
		schemas[name] = s.Raw()
	}
	dst = append(dst, '{')
	written := 0
	for _, name := range append(ordering, names...) {
		schema, ok := schemas[name]
		if !ok {
			continue
		}
		delete(schemas, name)
		if written++; written > 1 {
			dst = append(dst, ',')
		}
		dst = append(jsonscan.AppendString(dst, name), ':')
		var err error
		if dst, err = appendJSONSchema(dst, schema, depth+1); err != nil {
			return dst, err
		}
	}
	return append(dst, '}'), nil
}
