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
	maxScanned = 16 << 20 // bytes, counted as often as they are read
	memberCost = 32       // bytes that a member of an object or a list counts beside its own
	maxNesting = 64
	maxReentry = 2 // how often a schema that contains itself is written inside itself

	maxAllNodes   = 1 << 17 // of all schemas of a request
	maxAllScanned = 128 << 20
)

var (
	errTooLarge = errors.New("the schema is too large once its references are written out")
	errAllLarge = errors.New("the schemas of all functions are too large once their references are written out")
)

// Schemas makes the schemas of one request. Its zero value is ready for the first.
type Schemas struct{ nodes, scanned int }

// Parameters makes the schema of a function's parameters from JSON Schema. References are written out, and a schema that
// contains itself ends in an open object. What the API has no word for is left out, so that what it accepts is wider,
// never narrower. nil: the function takes no parameters.
func (all *Schemas) Parameters(jsonSchema json.RawMessage) (*Schema, error) {
	if len(bytes.TrimSpace(jsonSchema)) == 0 {
		return nil, nil
	}
	if len(jsonSchema) > maxScanned {
		return nil, errTooLarge
	}
	if !jsonscan.Valid(jsonSchema) {
		return nil, errors.New("the schema is no JSON, or nests too deeply")
	}
	c := cleaner{root: jsonSchema, open: map[string]int{}, parsed: map[string]members{}}
	s := c.schema(jsonSchema, 0)
	if c.spent() {
		return nil, errTooLarge
	}
	all.nodes, all.scanned = all.nodes+c.nodes, all.scanned+c.scanned
	if all.nodes > maxAllNodes || all.scanned > maxAllScanned {
		return nil, errAllLarge
	}
	// The API wants one object here. Of alternatives it gets what any of them allows.
	has := map[string]bool{}
	for _, property := range s.Properties {
		has[property.Name] = true
	}
	for _, variant := range s.AnyOf {
		for _, property := range variant.Properties {
			if !has[property.Name] {
				has[property.Name] = true
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

var knownTypes = []string{"STRING", "NUMBER", "INTEGER", "BOOLEAN", "ARRAY", "OBJECT", "NULL"}

type cleaner struct {
	root   []byte
	open   map[string]int     // the references that are being written out
	parsed map[string]members // what stands on the way to what references point to, by its path

	nodes, scanned int
}

// members are those of an object or of a list.
type members struct {
	fields   keywords
	elements [][]byte
}

// spent tells that the schema comes to more than it may. From then on nothing is read.
func (c *cleaner) spent() bool { return c.nodes > maxNodes || c.scanned > maxScanned }

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

func (c *cleaner) texts(array []byte) (texts []string) {
	for _, element := range c.elements(array) {
		if len(element) > 0 && element[0] == '"' {
			texts = append(texts, keywords{"": element}.text(""))
		}
	}
	return texts
}

// fields returns the fields of an object in their order; of a name that repeats the last counts.
func (c *cleaner) fields(object []byte) (names []string, values keywords) {
	values = keywords{}
	c.scanned += len(object)
	var s jsonscan.Scanner
	s.ResetChecked(object)
	for first := true; len(object) > 0 && !c.spent() && s.Field(&first); {
		c.scanned += memberCost
		name := string(s.Name())
		if values[name] == nil {
			names = append(names, name)
		}
		values[name] = s.Raw()
	}
	return names, values
}

func (c *cleaner) elements(array []byte) (all [][]byte) {
	c.scanned += len(array)
	var s jsonscan.Scanner
	s.ResetChecked(array)
	for first := true; len(array) > 0 && !c.spent() && s.Element(&first); {
		c.scanned += memberCost
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
	if c.spent() || depth > maxNesting {
		return &Schema{Type: "OBJECT"}
	}
	_, k := c.fields(raw)

	if ref := k.text("$ref"); ref != "" {
		if c.open[ref] >= maxReentry {
			return &Schema{Type: "OBJECT", Description: k.text("description")}
		}
		c.open[ref]++
		defer func() { c.open[ref]-- }()
		_, referred := c.fields(c.resolve(ref))
		delete(k, "$ref")
		maps.Copy(referred, k) // what stands beside a reference says more than what it refers to
		if k = referred; k["$ref"] != nil {
			return c.schema(k.object(), depth+1)
		}
	}
	if all := c.elements(k["allOf"]); len(all) > 0 {
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
	listed := c.texts(k["type"])
	if t := k.text("type"); t != "" {
		listed = []string{t}
	}
	var types []string // each once, of the unknown ones one
	for _, t := range listed {
		if t = strings.ToUpper(t); !slices.Contains(knownTypes, t) {
			t = "UNKNOWN"
		}
		switch {
		case t == "NULL":
			s.Nullable = true
		case !slices.Contains(types, t):
			types = append(types, t)
		}
	}

	variants := c.elements(k["anyOf"])
	if variants == nil {
		variants = c.elements(k["oneOf"])
	}
	names, own := c.fields(k["properties"])
	switch {
	case len(variants) > 0 && len(own) == 0:
		c.alternatives(s, k, variants, depth)
		return s
	case len(types) > 1:
		for _, name := range []string{"title", "description", "default", "example", "nullable"} {
			delete(k, name)
		}
		var each [][]byte
		for _, t := range types {
			k["type"] = jsonscan.AppendString(nil, t)
			each = append(each, k.object())
		}
		c.alternatives(s, nil, each, depth)
		return s
	case len(types) == 1:
		s.Type = types[0]
	}

	values := c.elements(k["enum"])
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
		each := c.elements(k["prefixItems"])
		if each == nil {
			each = c.elements(k["items"]) // as tuples were once written
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
		for _, name := range names {
			s.Properties = append(s.Properties, Property{name, c.schema(own[name], depth+1)})
		}
		for _, name := range c.texts(k["required"]) {
			if own[name] != nil { // others are refused, and so is a name that repeats
				s.Required = append(s.Required, name)
				delete(own, name)
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
		if c.spent() {
			break
		}
		_, k := c.fields(raw)
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
		has := map[string]bool{}
		for _, text := range texts {
			if !has[text] {
				has[text] = true
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
	names, properties := c.fields(base["properties"])
	required := c.elements(base["required"])
	for _, raw := range parts {
		if c.nodes++; c.spent() {
			break
		}
		_, part := c.fields(raw)
		for hops := 0; part["$ref"] != nil && hops < maxReentry; hops++ {
			_, referred := c.fields(c.resolve(part.text("$ref")))
			delete(part, "$ref")
			maps.Copy(referred, part)
			part = referred
		}
		more, others := c.fields(part["properties"])
		for _, name := range more {
			if properties[name] == nil {
				names = append(names, name)
				properties[name] = others[name]
			}
		}
		required = append(required, c.elements(part["required"])...)
		for name, value := range part {
			if base[name] == nil {
				base[name] = value
			}
		}
	}
	if base["properties"] != nil {
		base["properties"] = properties.inOrder(names)
	}
	if base["required"] != nil {
		base["required"] = slices.Concat([]byte("["), bytes.Join(required, []byte(",")), []byte("]"))
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

var unescape = strings.NewReplacer("~1", "/", "~0", "~") // of the steps of a reference

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
		inside, ok := c.parsed[walked]
		if !ok {
			_, inside.fields = c.fields(at)
			inside.elements = c.elements(at)
			c.parsed[walked] = inside
		}
		walked += "/" + step
		c.scanned += len(walked)
		at = inside.fields[unescape.Replace(step)]
		if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(inside.elements) {
			at = inside.elements[i]
		}
		if at == nil || c.spent() {
			return nil
		}
	}
	return at
}
