package simulate

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// filler makes JSON values that follow a schema out of the words and numbers of a prompt.
type filler struct {
	pairs   map[string]string // what the prompt gives by name: city=Oslo
	phrases []string          // texts for strings, taken in turn
	numbers []string          // JSON numbers, taken in turn
	phrase  int
	number  int
	now     time.Time
	prompt  string

	root any // the schema that references point into
	left int // values that may still be made
}

const (
	maxValues = 500
	maxDepth  = 12
)

var (
	namedValue  = regexp.MustCompile(`(\w+)\s*[=:]\s*(?:"([^"]*)"|([^\s,;]+))`)
	quotedText  = regexp.MustCompile(`["“]([^"”]+)["”]`)
	jsonNumber  = regexp.MustCompile(`-?(?:0|[1-9]\d*)(?:\.\d+)?`)
	errorStatus = regexp.MustCompile(`(?i)\berror\s+([45]\d\d)\b(?:\s+(after|until)\s+(\d{1,6})\b)?`)
	failStatus  = regexp.MustCompile(`(?i)\bfail\s+([45]\d\d)\b`)
)

// newFiller collects what the prompt offers: quoted texts first, then names, then longer words that are neither a
// scenario's nor part of a tool's name.
func newFiller(prompt string, tools []tool, now time.Time) *filler {
	prompt = clip(prompt, 20_000)
	f := &filler{pairs: map[string]string{}, now: now, prompt: strings.ToLower(prompt)}
	for _, m := range namedValue.FindAllStringSubmatch(prompt, 100) {
		f.pairs[strings.ToLower(m[1])] = m[2] + m[3]
	}
	f.numbers = jsonNumber.FindAllString(failStatus.ReplaceAllString(errorStatus.ReplaceAllString(prompt, ""), ""), 100)

	taken := maps.Clone(scenarioWords)
	for _, t := range tools {
		for _, word := range words(strings.ReplaceAll(t.name, "_", " ")) {
			taken[strings.ToLower(word)] = true
		}
	}
	for _, m := range quotedText.FindAllStringSubmatch(prompt, 100) {
		f.phrases = append(f.phrases, m[1])
	}
	all := words(prompt)
	all = all[:min(len(all), 1000)]
	for i, word := range all {
		if first, _ := utf8.DecodeRuneInString(word); i > 0 && unicode.IsUpper(first) && !taken[strings.ToLower(word)] {
			f.phrases = append(f.phrases, word)
		}
	}
	for _, word := range all {
		if utf8.RuneCountInString(word) > 3 && !taken[strings.ToLower(word)] && !slices.Contains(f.phrases, word) {
			f.phrases = append(f.phrases, word)
		}
	}
	return f
}

// object returns the text of a JSON object for a schema; anything but an object schema gives {}.
func (f *filler) object(schema any) string {
	f.root, f.left = schema, maxValues
	text := f.value(nil, "", schema, 0)
	if len(text) == 0 || text[0] != '{' {
		return "{}"
	}
	return string(text)
}

func (f *filler) value(b []byte, name string, schema any, depth int) []byte {
	s, _ := schema.(map[string]any)
	f.left--
	if f.left < 0 || depth > maxDepth {
		return append(b, "null"...)
	}
	if ref, ok := s["$ref"].(string); ok {
		return f.value(b, name, f.resolve(ref), depth+1)
	}
	if value, ok := s["const"]; ok {
		return appendJSON(b, value)
	}
	if values, ok := s["enum"].([]any); ok && len(values) > 0 {
		named := slices.IndexFunc(values[:min(len(values), 100)], func(v any) bool {
			text, ok := v.(string)
			return ok && text != "" && strings.Contains(f.prompt, strings.ToLower(text))
		})
		return appendJSON(b, values[max(named, 0)])
	}
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		if options, _ := s[key].([]any); len(options) > 0 {
			chosen := max(slices.IndexFunc(options, func(o any) bool { return typeOf(o) != "null" }), 0)
			return f.value(b, name, options[chosen], depth+1)
		}
	}

	given, named := f.pairs[strings.ToLower(name)]
	switch typeOf(s) {
	case "object":
		properties, _ := s["properties"].(map[string]any)
		b = append(b, '{')
		for i, key := range required(s, properties) {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendJSON(b, key), ':')
			b = f.value(b, key, properties[key], depth+1)
		}
		return append(b, '}')
	case "array":
		count := 1
		if least, err := number(s["minItems"]); err == nil {
			count = int(min(max(least, 1), 10))
		}
		b = append(b, '[')
		for i := range count {
			if i > 0 {
				b = append(b, ',')
			}
			b = f.value(b, name, s["items"], depth+1)
		}
		return append(b, ']')
	case "integer", "number":
		return append(b, f.numeral(s, given, typeOf(s) == "integer")...)
	case "boolean":
		return strconv.AppendBool(b, !named || given != "false")
	case "null":
		return append(b, "null"...)
	default:
		if !named {
			given = f.text(name, s)
		}
		return appendJSON(b, given)
	}
}

func (f *filler) text(name string, s map[string]any) string {
	text := name
	if len(f.phrases) > 0 {
		text = f.phrases[f.phrase%len(f.phrases)]
	}
	switch s["format"] {
	case "date":
		return f.now.Format(time.DateOnly)
	case "date-time":
		return f.now.Format(time.RFC3339)
	case "time":
		return f.now.Format(time.TimeOnly)
	case "email":
		text = strings.Join(strings.Fields(text), ".") + "@example.com"
	case "uri", "url":
		text = "https://example.com/" + strings.Join(strings.Fields(text), "-")
	}
	f.phrase++
	if least, err := number(s["minLength"]); err == nil {
		for text != "" && float64(utf8.RuneCountInString(text)) < min(least, 1000) {
			text += text
		}
	}
	if most, err := number(s["maxLength"]); err == nil && float64(utf8.RuneCountInString(text)) > most {
		text = string([]rune(text)[:max(int(most), 0)])
	}
	return text
}

// numeral returns the number that was given or the next one of the prompt, digit for digit, moved into the bounds.
func (f *filler) numeral(s map[string]any, given string, whole bool) string {
	fits := func(text string) bool {
		return jsonNumber.FindString(text) == text && text != "" && (!whole || !strings.Contains(text, "."))
	}
	text := "1"
	if fits(given) {
		text = given
	} else {
		for range f.numbers {
			next := f.numbers[f.number%len(f.numbers)]
			f.number++
			if fits(next) {
				text = next
				break
			}
		}
	}
	value, _ := strconv.ParseFloat(text, 64)
	if least, err := number(s["minimum"]); err == nil && value < least {
		return s["minimum"].(json.Number).String()
	}
	if most, err := number(s["maximum"]); err == nil && value > most {
		return s["maximum"].(json.Number).String()
	}
	return text
}

// resolve follows a reference within the schema, such as #/$defs/Place.
func (f *filler) resolve(ref string) any {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	at := f.root
	for step := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if step == "" {
			continue
		}
		level, _ := at.(map[string]any)
		at = level[step]
	}
	return at
}

// required returns the properties to fill: the required ones in their order, or all of them where none is.
func required(s, properties map[string]any) []string {
	var keys []string
	list, _ := s["required"].([]any)
	for _, key := range list {
		if key, ok := key.(string); ok && !slices.Contains(keys, key) && len(keys) < 100 {
			keys = append(keys, key)
		}
	}
	if len(keys) == 0 {
		keys = slices.Sorted(maps.Keys(properties))
		keys = keys[:min(len(keys), 100)]
	}
	return keys
}

func typeOf(schema any) string {
	s, _ := schema.(map[string]any)
	switch t := s["type"].(type) {
	case string:
		return strings.ToLower(t) // Google writes STRING
	case []any:
		for _, name := range t {
			if name, ok := name.(string); ok && name != "null" {
				return name
			}
		}
	}
	if s["properties"] != nil {
		return "object"
	}
	return ""
}

func number(v any) (float64, error) {
	n, _ := v.(json.Number)
	return n.Float64()
}

func appendJSON(b []byte, value any) []byte {
	text, err := json.Marshal(value)
	if err != nil {
		return append(b, "null"...)
	}
	return append(b, text...)
}

// parseSchema reads a schema and keeps its numbers as they are written.
func parseSchema(raw json.RawMessage) any {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var schema any
	if decoder.Decode(&schema) != nil {
		return nil
	}
	return schema
}
