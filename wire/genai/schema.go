package genai

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// Schema is what the API takes of JSON Schema: no references, one type each, alternatives by anyOf alone.
type Schema struct {
	Type        string          `json:"type,omitempty"` // STRING, NUMBER, INTEGER, BOOLEAN, ARRAY or OBJECT; "" beside AnyOf
	Format      string          `json:"format,omitempty"`
	Title       string          `json:"title,omitempty"`
	Description string          `json:"description,omitempty"`
	Nullable    bool            `json:"nullable,omitempty"`
	Enum        []string        `json:"enum,omitempty"` // of strings only
	Items       *Schema         `json:"items,omitempty"`
	MinItems    json.RawMessage `json:"minItems,omitempty"`
	MaxItems    json.RawMessage `json:"maxItems,omitempty"`
	MinLength   json.RawMessage `json:"minLength,omitempty"`
	MaxLength   json.RawMessage `json:"maxLength,omitempty"`
	Pattern     string          `json:"pattern,omitempty"`
	Minimum     json.RawMessage `json:"minimum,omitempty"`
	Maximum     json.RawMessage `json:"maximum,omitempty"`
	Properties  Properties      `json:"properties,omitempty"`
	Required    []string        `json:"required,omitempty"`
	AnyOf       []*Schema       `json:"anyOf,omitempty"`
	Default     json.RawMessage `json:"default,omitempty"`
	Example     json.RawMessage `json:"example,omitempty"`
}

// Properties are the fields of an object in their order.
type Properties []Property

// Property is one field of an object.
type Property struct {
	Name   string
	Schema *Schema
}

// MarshalJSON returns the properties as one object.
func (p Properties) MarshalJSON() ([]byte, error) {
	var object bytes.Buffer
	e := json.NewEncoder(&object)
	e.SetEscapeHTML(false)
	for i := range p {
		object.WriteByte("{,"[min(i, 1)])
		object.Write(append(jsonscan.AppendString(nil, p[i].Name), ':'))
		if err := e.Encode(p[i].Schema); err != nil {
			return nil, err
		}
	}
	object.WriteByte('}')
	return object.Bytes(), nil
}

// What a schema may come to once its references are written out.
const (
	maxNodes   = 10_000
	maxScanned = 16 << 20 // bytes, those of each node counted with what it holds
	maxNesting = 64
	maxReentry = 2 // how often a schema that contains itself is written inside itself
)

// Parameters makes the schema of a function's parameters from JSON Schema. References are written out, and a schema that
// contains itself ends in an open object. What the API has no word for is left out, so that what it accepts is wider,
// never narrower. nil: the function takes no parameters.
func Parameters(jsonSchema json.RawMessage) (*Schema, error) {
	if len(bytes.TrimSpace(jsonSchema)) == 0 {
		return nil, nil
	}
	if !jsonscan.Valid(jsonSchema) {
		return nil, errors.New("the schema is no JSON, or nests too deeply")
	}
	c := cleaner{root: jsonSchema, open: map[string]int{}, parsed: map[string]keywords{}}
	s := c.schema(jsonSchema, 0)
	if c.nodes > maxNodes || c.scanned > maxScanned {
		return nil, errors.New("the schema is too large once its references are written out")
	}
	// The API wants one object here. Of alternatives it gets what any of them allows.
	for _, variant := range s.AnyOf {
		for _, property := range variant.Properties {
			if !slices.ContainsFunc(s.Properties, func(p Property) bool { return p.Name == property.Name }) {
				s.Properties = append(s.Properties, property)
			}
		}
	}
	if len(s.Properties) == 0 {
		return nil, nil // an object without properties is refused
	}
	s.Type, s.AnyOf, s.Nullable = "OBJECT", nil, false
	return s, nil
}

type cleaner struct {
	root   []byte
	open   map[string]int      // the references that are being written out
	parsed map[string]keywords // the objects on the way to what references point to, by their paths

	nodes, scanned int
}

// keywords of a schema object.
type keywords map[string][]byte

func (k keywords) text(name string) string {
	var s jsonscan.Scanner
	s.Reset(k[name])
	return s.String()
}

func (k keywords) number(name string) json.RawMessage {
	var s jsonscan.Scanner
	s.Reset(k[name])
	if _, ok := s.Float(); ok {
		return k[name]
	}
	return nil
}

func (k keywords) texts(name string) (texts []string) {
	for _, element := range elements(k[name]) {
		if len(element) > 0 && element[0] == '"' {
			texts = append(texts, keywords{"": element}.text(""))
		}
	}
	return texts
}

// fields returns the fields of an object in their order; of a name that repeats the last counts.
func fields(object []byte) (names []string, values keywords) {
	values = keywords{}
	var s jsonscan.Scanner
	s.ResetChecked(object)
	for first := true; len(object) > 0 && s.Field(&first); {
		name := string(s.Name())
		if values[name] == nil {
			names = append(names, name)
		}
		values[name] = s.Raw()
	}
	return names, values
}

func elements(array []byte) (all [][]byte) {
	var s jsonscan.Scanner
	s.ResetChecked(array)
	for first := true; len(array) > 0 && s.Element(&first); {
		all = append(all, s.Raw())
	}
	return all
}

// anything is a schema that excludes little: the API wants a type, or alternatives, everywhere.
func anything() *Schema {
	return &Schema{AnyOf: []*Schema{{Type: "STRING"}, {Type: "NUMBER"}, {Type: "BOOLEAN"}, {Type: "OBJECT"}}}
}

func (c *cleaner) schema(raw []byte, depth int) *Schema {
	c.nodes++
	c.scanned += len(raw)
	if c.nodes > maxNodes || c.scanned > maxScanned || depth > maxNesting {
		return &Schema{Type: "OBJECT"}
	}
	_, k := fields(raw)

	if ref := k.text("$ref"); ref != "" {
		if c.open[ref] >= maxReentry {
			return &Schema{Type: "OBJECT", Description: k.text("description")}
		}
		c.open[ref]++
		defer func() { c.open[ref]-- }()
		target := c.resolve(ref)
		c.scanned += len(target)
		_, referred := fields(target)
		delete(k, "$ref")
		maps.Copy(referred, k) // what stands beside a reference says more than what it refers to
		if k = referred; k["$ref"] != nil {
			return c.schema(k.object(), depth+1)
		}
	}
	if all := elements(k["allOf"]); len(all) > 0 {
		delete(k, "allOf")
		return c.schema(c.merge(k, all).object(), depth+1)
	}

	s := &Schema{
		Title: k.text("title"), Description: k.text("description"), Default: k["default"], Example: k["example"],
		Nullable: string(k["nullable"]) == "true",
	}
	if string(s.Default) == "null" {
		s.Default = nil
	}
	types := k.texts("type")
	if t := k.text("type"); t != "" {
		types = []string{t}
	}
	for i := range types {
		types[i] = strings.ToUpper(types[i])
	}
	null := func(t string) bool { return t == "NULL" }
	s.Nullable = s.Nullable || slices.ContainsFunc(types, null)
	types = slices.DeleteFunc(types, null)

	variants := elements(k["anyOf"])
	if variants == nil {
		variants = elements(k["oneOf"])
	}
	_, own := fields(k["properties"])
	switch {
	case len(variants) > 0 && len(own) == 0:
		c.alternatives(s, k, variants, depth)
		return s
	case len(types) > 1:
		var each [][]byte
		for _, t := range types {
			k["type"] = jsonscan.AppendString(nil, t)
			each = append(each, k.object())
		}
		for _, name := range []string{"title", "description", "default", "example", "nullable"} {
			for i := range each {
				_, variant := fields(each[i])
				delete(variant, name)
				each[i] = variant.object()
			}
		}
		c.alternatives(s, nil, each, depth)
		return s
	case len(types) == 1:
		s.Type = types[0]
	}

	values := elements(k["enum"])
	if constant := k["const"]; constant != nil {
		values = [][]byte{constant}
	}
	var others []string
	for _, value := range values {
		switch value[0] {
		case '"':
			if text := (keywords{"": value}).text(""); text != "" { // which the API refuses
				s.Enum = append(s.Enum, text)
			}
		case 'n':
			s.Nullable = true
		default:
			others = append(others, string(value))
		}
	}
	if len(others) > 0 { // only strings can be listed
		s.Enum = nil
		s.Description = strings.TrimSpace(s.Description + " One of: " + strings.Join(others, ", ") + ".")
	}

	if s.Type == "" {
		switch {
		case len(own) > 0 || k["required"] != nil || k["additionalProperties"] != nil && len(values) == 0:
			s.Type = "OBJECT"
		case k["items"] != nil || k["prefixItems"] != nil:
			s.Type = "ARRAY"
		case len(s.Enum) > 0 || k["pattern"] != nil || k["minLength"] != nil || k["maxLength"] != nil || k["format"] != nil:
			s.Type = "STRING"
		case len(others) > 0 && (others[0] == "true" || others[0] == "false"):
			s.Type = "BOOLEAN"
		case len(others) > 0 || k["minimum"] != nil || k["maximum"] != nil || k["exclusiveMinimum"] != nil || k["exclusiveMaximum"] != nil:
			s.Type = "NUMBER"
		case s.Nullable && len(values) > 0: // only null
			s.Type = "STRING"
		default:
			s.AnyOf = anything().AnyOf
			return s
		}
	}
	switch s.Type {
	case "STRING":
		if format := k.text("format"); format == "date-time" {
			s.Format = format
		}
		s.Pattern, s.MinLength, s.MaxLength = k.text("pattern"), k.number("minLength"), k.number("maxLength")
	case "NUMBER", "INTEGER":
		s.Enum = nil
		if format := k.text("format"); slices.Contains([]string{"float", "double", "int32", "int64"}, format) {
			s.Format = format
		}
		s.Minimum, s.Maximum = c.bound(k, s.Type, "minimum", "exclusiveMinimum", 1), c.bound(k, s.Type, "maximum", "exclusiveMaximum", -1)
	case "BOOLEAN":
		s.Enum = nil
	case "ARRAY":
		s.Enum = nil
		s.MinItems, s.MaxItems = k.number("minItems"), k.number("maxItems")
		each := elements(k["prefixItems"])
		if each == nil {
			each = elements(k["items"]) // as tuples were once written
		}
		items := k["items"]
		switch {
		case len(each) == 1:
			s.Items = c.schema(each[0], depth+1)
		case len(each) > 1:
			s.Items = &Schema{}
			c.alternatives(s.Items, nil, each, depth)
		case len(items) > 0 && items[0] == '{':
			s.Items = c.schema(items, depth+1)
		default:
			s.Items = anything()
		}
	case "OBJECT":
		s.Enum = nil
		names, properties := fields(k["properties"])
		for _, name := range names {
			s.Properties = append(s.Properties, Property{name, c.schema(properties[name], depth+1)})
		}
		for _, name := range k.texts("required") {
			if properties[name] != nil && !slices.Contains(s.Required, name) { // others are refused
				s.Required = append(s.Required, name)
			}
		}
	default:
		s.Type, s.Enum, s.AnyOf = "", nil, anything().AnyOf
	}
	return s
}

// alternatives puts the variants on a schema. Listed strings become one list, and null a flag. What the base says of type
// holds for the variants that say nothing.
func (c *cleaner) alternatives(s *Schema, base keywords, variants [][]byte, depth int) {
	texts := []string{}
	for _, raw := range variants {
		_, k := fields(raw)
		if k.text("type") == "null" && len(k) == 1 {
			s.Nullable = true
			continue
		}
		if base["type"] != nil && k["type"] == nil && k["$ref"] == nil && k["anyOf"] == nil && k["oneOf"] == nil && k["allOf"] == nil {
			k["type"] = base["type"]
			raw = k.object()
		}
		variant := c.schema(raw, depth+1)
		if texts != nil && len(variant.Enum) > 0 && variant.Description == "" && variant.Title == "" {
			texts = append(texts, variant.Enum...)
		} else {
			texts = nil
		}
		s.Nullable = s.Nullable || variant.Nullable
		variant.Nullable = false
		s.AnyOf = append(s.AnyOf, variant)
	}
	switch {
	case len(s.AnyOf) == 0: // null alone
		s.Type = "STRING"
	case len(s.AnyOf) == 1:
		only := *s.AnyOf[0]
		only.Nullable = s.Nullable
		if s.Title != "" {
			only.Title = s.Title
		}
		if s.Description != "" {
			only.Description = s.Description
		}
		if s.Default != nil {
			only.Default = s.Default
		}
		if s.Example != nil {
			only.Example = s.Example
		}
		*s = only
	case texts != nil:
		s.Type, s.AnyOf = "STRING", nil
		for _, text := range texts {
			if !slices.Contains(s.Enum, text) {
				s.Enum = append(s.Enum, text)
			}
		}
	}
}

// bound returns a limit of a number. The API has no exclusive limits: of integers the next one inside is the limit, of
// other numbers the limit itself.
func (c *cleaner) bound(k keywords, kind, inclusive, exclusive string, inside int64) json.RawMessage {
	limit := k.number(inclusive)
	if limit != nil && string(k[exclusive]) != "true" { // as drafts before 6 had it
		return limit
	}
	if limit == nil {
		limit = k.number(exclusive)
	}
	if n, err := strconv.ParseInt(string(limit), 10, 53); err == nil && kind == "INTEGER" {
		return strconv.AppendInt(nil, n+inside, 10)
	}
	return limit
}

// merge joins the parts of allOf into the schema that holds them: all properties, all that is required, of the rest the first.
func (c *cleaner) merge(base keywords, parts [][]byte) keywords {
	for _, raw := range parts {
		_, part := fields(raw)
		for hops := 0; part["$ref"] != nil && hops < maxReentry; hops++ {
			target := c.resolve(part.text("$ref"))
			c.scanned += len(target)
			_, referred := fields(target)
			delete(part, "$ref")
			maps.Copy(referred, part)
			part = referred
		}
		for name, value := range part {
			switch {
			case base[name] == nil:
				base[name] = value
			case name == "properties":
				names, properties := fields(base[name])
				more, others := fields(value)
				for _, other := range more {
					if properties[other] == nil {
						names = append(names, other)
						properties[other] = others[other]
					}
				}
				base[name] = properties.inOrder(names)
			case name == "required":
				base[name] = slices.Concat([]byte("["), bytes.Join(append(elements(base[name]), elements(value)...), []byte(",")), []byte("]"))
			}
		}
	}
	return base
}

// object writes keywords as a schema again.
func (k keywords) object() []byte { return k.inOrder(slices.Sorted(maps.Keys(k))) }

func (k keywords) inOrder(names []string) []byte {
	object := []byte("{")
	for i, name := range names {
		if i > 0 {
			object = append(object, ',')
		}
		object = append(append(jsonscan.AppendString(object, name), ':'), k[name]...)
	}
	return append(object, '}')
}

// resolve returns what a reference inside the schema points to, nil for any other.
func (c *cleaner) resolve(ref string) []byte {
	if ref == "#" {
		return c.root
	}
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok || strings.Count(path, "/") > maxNesting {
		return nil
	}
	at, walked := c.root, ""
	for step := range strings.SplitSeq(path, "/") {
		values := c.parsed[walked]
		if values == nil {
			_, values = fields(at)
			for i, element := range elements(at) {
				values[strconv.Itoa(i)] = element
			}
			c.parsed[walked] = values
		}
		walked += "/" + step
		at = values[strings.NewReplacer("~1", "/", "~0", "~").Replace(step)]
	}
	return at
}
