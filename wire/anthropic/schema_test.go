package anthropic

import (
	"testing"

	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

func TestStrictSchema(t *testing.T) {
	for schema, want := range map[string]string{
		``: ``, `{`: `{`, `true`: `true`, `{"type":"object"}`: `{"type":"object"}`,
		`{"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false}`: `{"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": false}`,
		`{"properties":{"a":{"additionalProperties":true,"properties":{}}},"type":"object"}`:         `{"properties":{"a":{"properties":{},"additionalProperties":false}},"type":"object","additionalProperties":false}`,
		`{"properties":{"map":{"type":"object","additionalProperties":{"type":"string"}}}}`:          `{"properties":{"map":{"type":"object","additionalProperties":{"type":"string"}}},"additionalProperties":false}`,
		`{"type":"integer","minimum":1,"description":"Age.","maximum":9007199254740993}`:             `{"type":"integer","description":"Age.\nminimum 1, maximum 9007199254740993"}`,
		`{"type":"string","format":"int32","minLength":1}`:                                           `{"type":"string","description":"format int32, minLength 1"}`,
		`{"properties":{},"additionalProperties":null}`:                                              `{"properties":{},"additionalProperties":false}`,
		`{"properties":{},"additionalProperties":{ }}`:                                               `{"properties":{},"additionalProperties":false}`,
		`{"oneOf":[{"maxLength":null,"properties":{}}]}`:                                             `{"oneOf":[{"properties":{},"additionalProperties":false}]}`,
		`{"type":"string","format":"date-time"}`:                                                     `{"type":"string","format":"date-time"}`,
		`{"type":"array","minItems":1,"items":{"minimum":0}}`:                                        `{"type":"array","minItems":1,"items":{"description":"minimum 0"}}`,
		`{"anyOf":[{"maxItems":3},{"type":"null"}],"$defs":{"minimum":{"maxLength":2}}}`:             `{"anyOf":[{"description":"maxItems 3"},{"type":"null"}],"$defs":{"minimum":{"description":"maxLength 2"}}}`,
		`{"const":{"properties":{}},"default":{"minimum":1},"properties":7,"anyOf":{}}`:              `{"const":{"properties":{}},"default":{"minimum":1},"properties":7,"anyOf":{},"additionalProperties":false}`,
	} {
		if got := string(StrictSchema([]byte(schema))); got != want {
			t.Errorf("%s\n  got  %s\n  want %s", schema, got, want)
		}
	}
}

func FuzzStrictSchema(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"type":"integer","minimum":1,"description":"A"}},"anyOf":[{"items":{"maxLength":2}}]}`)
	f.Fuzz(func(t *testing.T, schema string) {
		if jsonscan.Check([]byte(schema)) != nil {
			return
		}
		once := StrictSchema([]byte(schema))
		if jsonscan.Check(once) != nil {
			t.Errorf("%s becomes %s", schema, once)
		}
		if again := StrictSchema(once); string(again) != string(once) {
			t.Errorf("%s becomes %s, and then %s", schema, once, again)
		}
	})
}
