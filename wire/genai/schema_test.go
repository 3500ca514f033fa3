package genai

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

const anyType = `"anyOf":[{"type":"STRING"},{"type":"NUMBER"},{"type":"BOOLEAN"},{"type":"OBJECT"}]`

// Each row: the schema of one property, and what becomes of it.
var schemaTests = []struct{ name, schema, want string }{
	{"types", `{"type":"string"}`, `{"type":"STRING"}`},
	{"types in capitals", `{"type":"INTEGER"}`, `{"type":"INTEGER"}`},
	{"texts", `{"type":"string","title":"T","description":"<d>","default":"x","example":"y","pattern":"^a","minLength":1,"maxLength":3}`, `{"type":"STRING","title":"T","description":"<d>","minLength":1,"maxLength":3,"pattern":"^a","default":"x","example":"y"}`},
	{"formats", `{"type":"string","format":"date-time"}`, `{"type":"STRING","format":"date-time"}`},
	{"formats that are refused", `{"type":"string","format":"uri"}`, `{"type":"STRING"}`},
	{"formats of numbers", `{"type":"integer","format":"int64"}`, `{"type":"INTEGER","format":"int64"}`},
	{"bounds", `{"type":"number","minimum":-1.5,"maximum":1e3,"multipleOf":2}`, `{"type":"NUMBER","minimum":-1.5,"maximum":1e3}`},
	{"exclusive bounds", `{"type":"integer","exclusiveMinimum":0,"exclusiveMaximum":10}`, `{"type":"INTEGER","minimum":1,"maximum":9}`},
	{"exclusive bounds of draft 4", `{"type":"integer","minimum":0,"exclusiveMinimum":true}`, `{"type":"INTEGER","minimum":1}`},
	{"exclusive bounds of a number", `{"type":"number","exclusiveMinimum":0.5}`, `{"type":"NUMBER","minimum":0.5}`},
	{"bounds of another kind", `{"type":"number","minimum":"0"}`, `{"type":"NUMBER"}`},
	{"an enum", `{"enum":["a","b",""]}`, `{"type":"STRING","enum":["a","b"]}`},
	{"an enum with null", `{"type":["string","null"],"enum":["a",null]}`, `{"type":"STRING","nullable":true,"enum":["a"]}`},
	{"an enum of numbers", `{"type":"integer","description":"Size.","enum":[1,2]}`, `{"type":"INTEGER","description":"Size. One of: 1, 2."}`},
	{"an enum of no type", `{"enum":[1,2.5]}`, `{"type":"NUMBER","description":"One of: 1, 2.5."}`},
	{"a constant", `{"const":"x"}`, `{"type":"STRING","enum":["x"]}`},
	{"a constant number", `{"const":7,"type":"integer"}`, `{"type":"INTEGER","description":"One of: 7."}`},
	{"a constant truth", `{"const":true}`, `{"type":"BOOLEAN","description":"One of: true."}`},
	{"a constant null", `{"const":null}`, `{"type":"STRING","nullable":true}`},
	{"nullable", `{"type":["null","number"]}`, `{"type":"NUMBER","nullable":true}`},
	{"nullable by its own word", `{"type":"string","nullable":true,"default":null}`, `{"type":"STRING","nullable":true}`},
	{"several types", `{"type":["string","integer","null"],"description":"d","minimum":1}`, `{"description":"d","nullable":true,"anyOf":[{"type":"STRING"},{"type":"INTEGER","minimum":1}]}`},
	{"alternatives", `{"description":"d","anyOf":[{"type":"string"},{"type":"number","description":"n"}]}`, `{"description":"d","anyOf":[{"type":"STRING"},{"type":"NUMBER","description":"n"}]}`},
	{"one of", `{"oneOf":[{"type":"string"},{"type":"array","items":{"type":"string"}}]}`, `{"anyOf":[{"type":"STRING"},{"type":"ARRAY","items":{"type":"STRING"}}]}`},
	{"an alternative to null", `{"title":"N","anyOf":[{"type":"string","title":"S","maxLength":2},{"type":"null"}],"default":null}`, `{"type":"STRING","title":"N","nullable":true,"maxLength":2}`},
	{"a default beside alternatives", `{"anyOf":[{"type":"string","default":"y","example":"z"},{"type":"null"}],"default":"x","example":"w"}`, `{"type":"STRING","nullable":true,"default":"x","example":"w"}`},
	{"alternative references of one type", `{"type":"object","anyOf":[{"$ref":"#/$defs/Open"},{"$ref":"#/definitions/Word"},{"allOf":[{"$ref":"#/definitions/Word"}]},{"oneOf":[{"type":"number"}]}]}`, `{"anyOf":[{"type":"OBJECT","description":"o"},{"type":"STRING","description":"w"},{"type":"STRING","description":"w"},{"type":"NUMBER"}]}`},
	{"null alone", `{"anyOf":[{"type":"null"}]}`, `{"type":"STRING","nullable":true}`},
	{"alternative constants", `{"anyOf":[{"const":"fast"},{"const":"safe"},{"enum":["fast","slow"]}]}`, `{"type":"STRING","enum":["fast","safe","slow"]}`},
	{"alternative constants that are described", `{"anyOf":[{"const":"fast","description":"f"},{"const":"safe"}]}`, `{"anyOf":[{"type":"STRING","description":"f","enum":["fast"]},{"type":"STRING","enum":["safe"]}]}`},
	{"alternatives of one type", `{"type":"string","anyOf":[{"maxLength":1},{"pattern":"x"}]}`, `{"anyOf":[{"type":"STRING","maxLength":1},{"type":"STRING","pattern":"x"}]}`},
	{"alternatives of what is required", `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`, `{"type":"OBJECT","properties":{"a":{"type":"STRING"},"b":{"type":"STRING"}}}`},
	{"all of", `{"allOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{"type":"number"},"a":{"type":"number"}},"required":["b"]}],"description":"d"}`, `{"type":"OBJECT","description":"d","properties":{"a":{"type":"STRING"},"b":{"type":"NUMBER"}},"required":["a","b"]}`},
	{"all of a reference", `{"allOf":[{"$ref":"#/$defs/Port"}],"description":"d"}`, `{"type":"OBJECT","description":"d","properties":{"code":{"type":"STRING"},"berths":{"type":"INTEGER","minimum":1}},"required":["code"]}`},
	{"a reference", `{"$ref":"#/$defs/Port"}`, `{"type":"OBJECT","properties":{"code":{"type":"STRING"},"berths":{"type":"INTEGER","minimum":1}},"required":["code"]}`},
	{"a reference with more to say", `{"$ref":"#/definitions/Word","description":"d"}`, `{"type":"STRING","description":"d"}`},
	{"a reference to a reference", `{"$ref":"#/$defs/Again"}`, `{"type":"STRING","description":"w"}`},
	{"a reference with escapes", `{"$ref":"#/$defs/a~1b~0c"}`, `{"type":"BOOLEAN"}`},
	{"a reference into a list", `{"$ref":"#/$defs/Pair/prefixItems/1"}`, `{"type":"NUMBER"}`},
	{"references in lists", `{"type":"array","items":{"$ref":"#/definitions/Word"}}`, `{"type":"ARRAY","items":{"type":"STRING","description":"w"}}`},
	{"a reference to nowhere", `{"$ref":"#/$defs/None","description":"d"}`, `{"description":"d",` + anyType + `}`},
	{"a reference elsewhere", `{"$ref":"https://example.test/x.json"}`, `{` + anyType + `}`},
	{"a circle of references", `{"$ref":"#/$defs/Circle"}`, `{"type":"OBJECT"}`},
	{"a tree", `{"$ref":"#/$defs/Node"}`, `{"type":"OBJECT","description":"n","properties":{"next":{"type":"OBJECT","description":"n","properties":{"next":{"type":"OBJECT"}}}}}`},
	{"the whole again", `{"$ref":"#"}`, `{"type":"OBJECT","properties":{"p":{"type":"OBJECT","properties":{"p":{"type":"OBJECT"}},"required":["p"]}},"required":["p"]}`},
	{"lists", `{"type":"array","items":{"type":"string"},"minItems":1,"maxItems":2,"uniqueItems":true}`, `{"type":"ARRAY","items":{"type":"STRING"},"minItems":1,"maxItems":2}`},
	{"a list of anything", `{"type":"array"}`, `{"type":"ARRAY","items":{` + anyType + `}}`},
	{"a list of true", `{"type":"array","items":true}`, `{"type":"ARRAY","items":{` + anyType + `}}`},
	{"a pair", `{"$ref":"#/$defs/Pair"}`, `{"type":"ARRAY","items":{"anyOf":[{"type":"STRING"},{"type":"NUMBER"}]}}`},
	{"a pair as it was once written", `{"items":[{"type":"string"}]}`, `{"type":"ARRAY","items":{"type":"STRING"}}`},
	{"objects", `{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"string"}},"required":["a","none","a"],"additionalProperties":false,"minProperties":1}`, `{"type":"OBJECT","properties":{"z":{"type":"STRING"},"a":{"type":"STRING"}},"required":["a"]}`},
	{"an open object", `{"type":"object","additionalProperties":{"type":"string"},"properties":{}}`, `{"type":"OBJECT"}`},
	{"no type but properties", `{"properties":{"a":{}}}`, `{"type":"OBJECT","properties":{"a":{` + anyType + `}}}`},
	{"no type but items", `{"items":{"type":"string"}}`, `{"type":"ARRAY","items":{"type":"STRING"}}`},
	{"no type but a limit", `{"maximum":3}`, `{"type":"NUMBER","maximum":3}`},
	{"no type at all", `{"description":"d","x-order":1}`, `{"description":"d",` + anyType + `}`},
	{"an unknown type", `{"type":"decimal","enum":["1"]}`, `{` + anyType + `}`},
	{"true", `true`, `{` + anyType + `}`},
	{"keywords of other kinds", `{"type":7,"description":[],"enum":{},"required":"x","properties":[],"anyOf":{},"$ref":5}`, `{"type":"OBJECT"}`},
	{"conditions", `{"type":"string","not":{"const":"x"},"if":{},"then":{},"$comment":"c","examples":["y"],"readOnly":true,"contentEncoding":"base64"}`, `{"type":"STRING"}`},
	{"a name with escapes", `{"properties":{"a\"b\u00e9":{"type":"string"}}}`, `{"type":"OBJECT","properties":{"a\"bé":{"type":"STRING"}}}`},
	{"a schema within a description", `{"type":"string","description":"{\"$ref\":\"x\"}"}`, `{"type":"STRING","description":"{\"$ref\":\"x\"}"}`},
	{"the last of two keys", `{"type":"string","type":"number"}`, `{"type":"NUMBER"}`},
}

const definitions = `"$defs":{"Port":{"type":"object","additionalProperties":false,"properties":{"code":{"type":"string"},"berths":{"type":"integer","exclusiveMinimum":0}},"required":["code"]},` +
	`"Open":{"description":"o","required":[]},"Again":{"$ref":"#/definitions/Word"},"a/b~c":{"type":"boolean"},"Pair":{"type":"array","prefixItems":[{"type":"string"},{"type":"number"}],"items":false},` +
	`"Circle":{"$ref":"#/$defs/Circle"},"Node":{"type":"object","description":"n","properties":{"next":{"$ref":"#/$defs/Node"}}}},"definitions":{"Word":{"type":"string","description":"w"}}`

func TestParameters(t *testing.T) {
	for _, tt := range schemaTests {
		schema, err := new(Schemas).Parameters(json.RawMessage(`{"$schema":"x","type":"object","properties":{"p":` + tt.schema + `},"required":["p"],` + definitions + `}`))
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		var got bytes.Buffer
		e := json.NewEncoder(&got)
		e.SetEscapeHTML(false)
		if err := e.Encode(schema); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if want := `{"type":"OBJECT","properties":{"p":` + tt.want + `},"required":["p"]}` + "\n"; got.String() != want {
			t.Errorf("%s: got\n%s\nwant\n%s", tt.name, got.String(), want)
		}
	}
}

// The parameters of a function are one object, or none.
func TestWholeParameters(t *testing.T) {
	for _, tt := range []struct{ schema, want string }{
		{``, `null`},
		{`null`, `null`},
		{`{}`, `null`},
		{`{"type":"object"}`, `null`},
		{`{"type":"object","properties":{}}`, `null`},
		{`{"$schema":"https://json-schema.org/draft/2020-12/schema"}`, `null`},
		{`{"type":["object","null"],"properties":{"a":{"type":"string"}}}`, `{"type":"OBJECT","properties":{"a":{"type":"STRING"}}}`},
		{`{"anyOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"properties":{"b":{"type":"string"},"a":{"type":"number"}}}]}`, `{"type":"OBJECT","properties":{"a":{"type":"STRING"},"b":{"type":"STRING"}}}`},
		{`{`, `the schema is no JSON, or nests too deeply`},
		{`{"a":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`, `the schema is no JSON, or nests too deeply`},
		{wide(9), `the schema is too large once its references are written out`},
		{long, `the schema is too large once its references are written out`},
	} {
		schema, err := new(Schemas).Parameters(json.RawMessage(tt.schema))
		got, _ := json.Marshal(schema)
		if err != nil {
			got = []byte(err.Error())
		}
		if string(got) != tt.want {
			t.Errorf("%.100s: got %.300s, want %s", tt.schema, got, tt.want)
		}
	}
	if _, err := new(Schemas).Parameters(json.RawMessage(wide(4))); err != nil {
		t.Errorf("a schema of a few thousand nodes: %v", err)
	}
	deep := json.RawMessage(`{"properties":{"a":` + strings.Repeat(`{"properties":{"a":`, 100) + `{}` + strings.Repeat(`}}`, 100) + `}}`)
	if schema, err := new(Schemas).Parameters(deep); err != nil || schema == nil {
		t.Errorf("a deep schema: %v", err)
	}
}

// wide is a schema whose references make 4096 or more nodes of a few lines.
func wide(each int) string {
	schema := `{"properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{"d6":{"type":"string"}`
	for i := range 6 {
		var properties []string
		for j := range each {
			properties = append(properties, fmt.Sprintf(`"p%d":{"$ref":"#/$defs/d%d"}`, j, i+1))
		}
		schema += fmt.Sprintf(`,"d%d":{"type":"object","properties":{%s}}`, i, strings.Join(properties, ","))
	}
	return schema + `}}`
}

// long repeats a long text by references.
var long = func() string {
	schema := `{"$defs":{"d":{"type":"string","description":"` + strings.Repeat("x", 100_000) + `"}},"properties":{"a":{}`
	for i := range 500 {
		schema += fmt.Sprintf(`,"p%d":{"$ref":"#/$defs/d"}`, i)
	}
	return schema + `}}`
}()

// FuzzParameters: whatever JSON comes, what is sent holds nothing that the API refuses for its form.
func FuzzParameters(f *testing.F) {
	for _, tt := range schemaTests {
		f.Add([]byte(`{"properties":{"p":` + tt.schema + `},` + definitions + `}`))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		schema, err := new(Schemas).Parameters(data)
		if err != nil || schema == nil {
			return
		}
		if schema.Type != "OBJECT" || len(schema.Properties) == 0 {
			t.Errorf("%q: %+v", data, schema)
		}
		var check func(*Schema)
		check = func(s *Schema) {
			switch {
			case s.Type == "" && len(s.AnyOf) == 0, s.Type != "" && len(s.AnyOf) > 0, s.Type == "ARRAY" && s.Items == nil, s.Type != "STRING" && len(s.Enum) > 0:
				t.Errorf("%q: %+v", data, s)
			}
			for _, p := range s.Properties {
				check(p.Schema)
			}
			for _, variant := range s.AnyOf {
				check(variant)
			}
			if s.Items != nil {
				check(s.Items)
			}
		}
		check(schema)
		if _, err := json.Marshal(schema); err != nil {
			t.Errorf("%q: %v", data, err)
		}
	})
}

// TestLargeSchemas: each of these reads its parts again and again, or compares each with all others, unless that is counted.
// They end in a few milliseconds or are refused; the limit leaves room for a slow machine.
func TestLargeSchemas(t *testing.T) {
	list := func(n int, element string) string { // of an element that may hold its number
		if !strings.Contains(element, "N") {
			return strings.Repeat(element+",", n-1) + element
		}
		all := make([]string, n)
		for i := range all {
			all[i] = strings.ReplaceAll(element, "N", fmt.Sprint(i))
		}
		return strings.Join(all, ",")
	}
	big := strings.Repeat("x", 160_000)
	for _, tt := range []struct {
		name, schema string
		refused      bool
	}{
		{"properties in all of", `{"allOf":[` + list(8000, `{"properties":{"aN":{}}}`) + `]}`, true},
		{"properties in some of all", `{"allOf":[` + list(3000, `{"properties":{"aN":{}}}`) + `]}`, false},
		{"required in all of", `{"properties":{"p":{}},"allOf":[` + list(8000, `{"required":["aN"]}`) + `]}`, false},
		{"empty parts of all", `{"allOf":[` + list(200_000, `{}`) + `]}`, true},
		{"references in all of", `{"$defs":{"d":{"x":"` + big + `"}},"allOf":[` + list(8000, `{"$ref":"#/$defs/d"}`) + `]}`, true},
		{"all of in all of", strings.Repeat(`{"allOf":[{"x":1},`, 60) + `{"properties":{"a":{"description":"` + big + `"}}}` + strings.Repeat(`]}`, 60), true},
		{"one type many times", `{"properties":{"p":{"type":[` + list(16_000, `"string"`) + `],"description":"` + big + `","x":"` + big + `"}}}`, false},
		{"many unknown types", `{"properties":{"p":{"type":[` + list(16_000, `"tN"`) + `],"description":"` + big + `","x":"` + big + `"}}}`, false},
		{"types in types", `{"properties":{"p":` + strings.Repeat(`{"type":["array","object","string"],"x":"y","items":`, 60) + `{}` + strings.Repeat(`}`, 60) + `}}`, false},
		{"required many times", `{"properties":{` + list(5000, `"aN":{}`) + `},"required":[` + list(90_000, `"aN"`) + `]}`, false},
		{"many properties", `{"properties":{` + list(400_000, `"aN":1`) + `}}`, true},
		{"many alternatives", `{"anyOf":[` + list(200_000, `{}`) + `]}`, true},
		{"properties of alternatives", `{"anyOf":[` + list(2400, `{"properties":{"aN":{},"bN":{},"cN":{}}}`) + `]}`, false},
		{"listed strings of alternatives", `{"properties":{"p":{"anyOf":[{"enum":[` + list(60_000, `"aN"`) + `]},{"enum":[` + list(60_000, `"bN"`) + `]}]}}}`, false},
		{"references into a list", `{"x":[` + list(1000, `{}`) + `],"properties":{` + list(4000, `"aN":{"$ref":"#/x/999"}`) + `}}`, false},
		{"references into a long list", `{"x":[` + list(400_000, `{}`) + `],"properties":{"a":{"$ref":"#/x/9"}}}`, true},
		{"long references", `{"properties":{` + list(60, `"aN":{"$ref":"#`+strings.Repeat("/"+strings.Repeat("x", 3000), 60)+`"}`) + `}}`, true},
		{"empty steps", `{"properties":{` + list(9000, `"aN":{"$ref":"#`+strings.Repeat("/", 64)+`"}`) + `}}`, false},
	} {
		began := time.Now()
		_, err := new(Schemas).Parameters(json.RawMessage(tt.schema))
		if took := time.Since(began); took > time.Minute || (err != nil) != tt.refused {
			t.Errorf("%s: %v after %v", tt.name, err, took)
		}
	}
}

// TestManySchemas: what references make of the schemas of a request is bounded together.
func TestManySchemas(t *testing.T) {
	half := `{"$defs":{"d":{"properties":{` + properties(80, `{}`) + `}}},"properties":{` + properties(80, `{"$ref":"#/$defs/d"}`) + `}}`
	long := `{"description":"` + strings.Repeat("x", 4<<20) + `","properties":{"a":{"$ref":"#"}}}`
	for _, schema := range []string{half, long} {
		var schemas Schemas
		n := 0
		for ; n < 100; n++ {
			if _, err := schemas.Parameters(json.RawMessage(schema)); err != nil {
				break
			}
		}
		if n < 5 || n > 20 {
			t.Errorf("%d schemas of %d bytes are written out", n, len(schema))
		}
	}
}

// properties are n fields of a schema.
func properties(n int, each string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`"p%d":%s`, i, each)
	}
	return strings.Join(all, ",")
}
