package openairesponses

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// What counts together is bounded together.
func TestBodyBounds(t *testing.T) {
	many := func(n int, element string) string { return strings.TrimSuffix(strings.Repeat(element+",", n), ",") }
	for _, c := range []struct{ name, body, path string }{
		{"items", `{"input":[` + many(maxElements+1, `{"id":"x"}`) + `]}`, fmt.Sprintf("input[%d]", maxElements)},
		{"parts", `{"input":[{"role":"user","content":[` + many(maxElements, `{"type":"input_text","text":""}`) + `]}]}`, fmt.Sprintf("input[0].content[%d]", maxElements-1)},
		{"tools", `{"tools":[{"type":"namespace","name":"n","tools":[` + many(maxElements, `{"type":"mcp"}`) + `]}]}`, fmt.Sprintf("tools[0].tools[%d]", maxElements-1)},
		{"a text", `{"input":"` + strings.Repeat("x", maxText+1) + `"}`, "input"},
		{"a key", `{"prompt_cache_key":"` + strings.Repeat("é", 65) + `"}`, "prompt_cache_key"},
	} {
		_, err := ReadBody([]byte(c.body))
		var at *jsonscan.PathError
		if !errors.As(err, &at) || at.Path != c.path {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if _, err := ReadBody([]byte(`{"prompt_cache_key":"` + strings.Repeat("é", 64) + `"}`)); err != nil {
		t.Error(err)
	}
}

// A group within a group is not read: each level copies what it holds.
func TestNestedGroups(t *testing.T) {
	body := strings.Repeat(`{"type":"namespace","name":"n","tools":[`, 100) + strings.Repeat(`]}`, 100)
	b, err := ReadBody([]byte(`{"tools":[` + body + `]}`))
	if err != nil {
		t.Fatal(err)
	}
	if inner := b.Tools[0].Tools; len(inner) != 1 || inner[0].Tools != nil {
		t.Errorf("got %+v", inner)
	}
}

// Raw JSON is repeated in events, whose lines have no breaks.
func TestRawIsOneLine(t *testing.T) {
	b, err := ReadBody([]byte("{\"tools\":[{\"type\":\"custom\",\n\"name\":\"a\"},{\"type\":\"function\",\"name\":\"b\",\"parameters\":{\n}}],\"metadata\":{\n\"a\":\"b\"},\"tool_choice\":{\"type\":\n\"x\"},\"text\":{\"format\":{\"type\":\"json_schema\",\"schema\":{\n}}}}"))
	if err != nil {
		t.Fatal(err)
	}
	for _, raw := range [][]byte{b.Tools[0].Raw, b.Tools[1].Raw, b.Tools[1].Parameters, b.Metadata, b.ToolChoice.Raw, b.Format.Schema} {
		if len(raw) == 0 || strings.Contains(string(raw), "\n") {
			t.Errorf("got %q", raw)
		}
	}
}

func FuzzReadBody(f *testing.F) {
	f.Add(`{"model":"m","input":[{"role":"user","content":[{"type":"input_file","source":{"type":"base64","data":"YQ==","media_type":"a/b"}}]}],"tools":[{"type":"function","name":"x","parameters":{}}]}`)
	f.Add(`{"input":[{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"x"}]}],"tool_choice":{"type":"allowed_tools","tools":[{"type":"function","name":"x"}]}}`)
	f.Add(`{"reasoning":{"effort":"low"},"text":{"format":{"type":"json_schema","schema":{}}},"metadata":{"a":"b"},"include":["x"]}`)
	f.Fuzz(func(t *testing.T, body string) {
		b, err := ReadBody([]byte(body))
		if err != nil || jsonscan.Check([]byte(body)) != nil {
			return
		}
		resource := NewEcho(b).Append(nil, &Resource{Status: StatusInProgress})
		if err := jsonscan.Check(resource); err != nil || strings.Contains(string(resource), "\n") {
			t.Errorf("%v in %s", err, resource)
		}
	})
}
