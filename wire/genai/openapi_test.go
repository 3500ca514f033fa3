package genai

import (
	"strings"
	"testing"

	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

func TestJSONSchema(t *testing.T) {
	for _, c := range []struct{ schema, want string }{
		{`{}`, `{}`},
		{
			`{"type":"OBJECT","description":"d","properties":{"type":{"type":"STRING"},"nullable":{"type":"BOOLEAN","nullable":true}},"required":["type"]}`,
			`{"type":"object","description":"d","properties":{"type":{"type":"string"},"nullable":{"type":["boolean","null"]}},"required":["type"]}`,
		},
		{`{"type":"OBJECT","property_ordering":["b","missing","b"],"properties":{"a":{},"b":{},"c":{}}}`, `{"type":"object","properties":{"b":{},"a":{},"c":{}}}`},
		{`{"type":"STRING","format":"enum","enum":["a"],"nullable":true}`, `{"type":["string","null"],"enum":["a",null]}`},
		{`{"type":"STRING","format":"date-time","enum":[],"nullable":true}`, `{"type":["string","null"],"format":"date-time","enum":[]}`},
		{`{"any_of":[{"type":"STRING"},{"type":"INTEGER"}],"nullable":true}`, `{"anyOf":[{"type":"string"},{"type":"integer"},{"type":"null"}]}`},
		{`{"type":"TYPE_UNSPECIFIED","title":null,"default":null,"nullable":false}`, `{"default":null}`},
		{`{"type":["string","NULL"],"nullable":true}`, `{"type":["string","null"]}`},
		{`{"type":"ARRAY","minItems":"2","max_items":3,"items":{"type":"NUMBER","minimum":1.5}}`, `{"type":"array","minItems":2,"maxItems":3,"items":{"type":"number","minimum":1.5}}`},
		{
			`{"type":"object","additionalProperties":{"type":"STRING"},"$defs":{"a":{"type":"NULL"}},"x_y":1,"pattern":"a_b","not":true,"items":[{"type":"STRING"}]}`,
			`{"type":"object","additionalProperties":{"type":"string"},"$defs":{"a":{"type":"null"}},"x_y":1,"pattern":"a_b","not":true,"items":[{"type":"string"}]}`,
		},
		{`{"type":6,"properties":{"a":{"type":1,"nullable":true},"b":{"type":0}}}`, `{"type":"object","properties":{"a":{"type":["string","null"]},"b":{}}}`},
		{`{"type":8,"properties":2,"anyOf":3,"enum":"x","nullable":"true","minItems":"many"}`, `{"type":8,"properties":2,"anyOf":3,"enum":"x","minItems":"many"}`},
	} {
		got, err := JSONSchema([]byte(c.schema))
		if err != nil || string(got) != c.want {
			t.Errorf("%s\n  got  %s %v\n  want %s", c.schema, got, err, c.want)
		}
	}
	if _, err := JSONSchema([]byte(`{"items":{"minItems":1,"min_items":"1"}}`)); err == nil {
		t.Error("two spellings of a keyword are taken")
	}
	deep := strings.Repeat(`{"items":`, maxInputNesting+1) + `{}` + strings.Repeat(`}`, maxInputNesting+1)
	if _, err := JSONSchema([]byte(deep)); err == nil {
		t.Error("there is no limit to nesting")
	}
}

func TestCamel(t *testing.T) {
	for name, want := range map[string]string{
		"": "", "text": "text", "inlineData": "inlineData", "inline_data": "inlineData", "a_1_b": "a1B", "_responseJsonSchema": "_responseJsonSchema", "text_": "text_", "_": "_", "a__b": "a_b",
	} {
		if got := camel(name); got != want {
			t.Errorf("%q: %q, want %q", name, got, want)
		}
	}
}

func FuzzJSONSchema(f *testing.F) {
	f.Add(`{"type":"OBJECT","nullable":true,"properties":{"a":{"anyOf":[{"type":"STRING"}],"nullable":true}},"propertyOrdering":["a"]}`)
	f.Fuzz(func(t *testing.T, schema string) {
		if jsonscan.Check([]byte(schema)) != nil {
			return
		}
		got, err := JSONSchema([]byte(strings.TrimSpace(schema)))
		if err == nil && jsonscan.Check(got) != nil {
			t.Errorf("%s becomes %s", schema, got)
		}
	})
}
