package auto_test

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/auto"
)

var update = flag.Bool("update", false, "write the tables of docs/config.md anew")

// shown is a model of each client type whose name says which of its vendor's rules hold.
var shown = map[string]string{
	"openai-official": "gpt-6-astra", "anthropic-official": "claude-opus-5-5", "google-official": "gemini-3.8-flash", "zai-official": "glm-5.3-flash",
	"moonshot-official": "kimi-k3", "deepseek-official": "deepseek-v4.1-flash", "minimax-official": "MiniMax-M3", "google-genai": "gemini-3.8-flash",
}

const (
	aTool    = `"tools":[{"name":"f","description":"d","parameters":{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`
	aPicture = `{"type":"image_url.done","image_url":"data:image/png;base64,iVBORw0KGgo="`
)

// field is a column: a config, or the items of a user's turn, with the field and without it. Of several values the first
// that a client does not refuse counts.
type field struct {
	title   string
	without string
	with    []string
	items   bool
}

var tables = []struct {
	title  string
	fields []field
}{
	{"Length and sampling", []field{
		{"max_tokens", ``, []string{`"max_tokens":900`}, false},
		{"temperature", ``, []string{`"temperature":0.5`}, false},
		{"top_p", ``, []string{`"top_p":0.9`}, false},
		{"top_k", ``, []string{`"top_k":40`}, false},
		{"stop_sequences", ``, []string{`"stop_sequences":["END"]`}, false},
		{"seed", ``, []string{`"seed":7`}, false},
		{"presence_penalty", ``, []string{`"presence_penalty":0.5`}, false},
		{"frequency_penalty", ``, []string{`"frequency_penalty":0.5`}, false},
	}},
	{"Prompt and tools", []field{
		{"system_prompt", ``, []string{`"system_prompt":"Be brief."`}, false},
		{"tools", ``, []string{aTool + `}]`}, false},
		{"tools[].strict", aTool + `}]`, []string{aTool + `,"strict":true}]`}, false},
		{"tool_choice", aTool + `}]`, []string{aTool + `}],"tool_choice":"auto"`}, false},
		{"tool_choice of a name", aTool + `}]`, []string{aTool + `}],"tool_choice":["f"]`}, false},
		{"parallel_tool_calls false", aTool + `}],"tool_choice":"auto"`, []string{aTool + `}],"tool_choice":"auto","parallel_tool_calls":false`}, false},
	}},
	{"The answer", []field{
		{"response_format json_object", ``, []string{`"response_format":{"type":"json_object"}`}, false},
		{"response_format json_schema", ``, []string{`"response_format":{"type":"json_schema","name":"n","schema":{"type":"object"}}`}, false},
		{"thinking_level", ``, []string{`"thinking_level":"high"`}, false},
		{"thinking_budget", ``, []string{`"thinking_budget":20000`}, false},
		{"thinking_summary", ``, []string{`"thinking_summary":true`}, false},
		{"verbosity", ``, []string{`"verbosity":"low"`}, false},
	}},
	{"Service", []field{
		{"prompt_caching enhance", ``, []string{`"prompt_caching":"enhance"`}, false},
		{"fast_mode", ``, []string{`"fast_mode":true`}, false},
		{"service_tier", ``, []string{`"service_tier":"flex"`, `"service_tier":"auto"`}, false},
		{"prompt_cache_key", ``, []string{`"prompt_cache_key":"k"`}, false},
		{"user", ``, []string{`"user":"u-4711"`}, false},
		{"metadata", ``, []string{`"metadata":{"user_id":"m-1"}`}, false},
		{"trace_id", ``, []string{`"trace_id":"a/b"`}, false},
	}},
	{"Media", []field{
		{"image_config", ``, []string{`"image_config":{"image_size":"1K"}`}, false},
		{"tts_config", ``, []string{`"tts_config":[{"voice":"v"}]`}, false},
		{"embedding_config", ``, []string{`"embedding_config":{"dimensions":256}`}, false},
		{"image_url detail", aPicture + `}`, []string{aPicture + `,"detail":"low"}`}, true},
		{"inline_data PDF", ``, []string{`{"type":"inline_data.done","data":"JVBERg==","mime_type":"application/pdf","filename":"a.pdf"}`}, true},
		{"inline_data WAV", ``, []string{`{"type":"inline_data.done","data":"UklGRg==","mime_type":"audio/wav"}`}, true},
	}},
}

// body is the request that a client makes of a config or of items.
func body(t *testing.T, provider mmsp.Provider, f *field, text string) (any, error) {
	config, items := text, ""
	if f.items {
		config, items = "", text
	}
	messages, err := mmsp.ParseMessages([]byte(`[{"role":"user","content_items":[`+strings.TrimSuffix(`{"type":"text.done","text":"Hi"},`+items, ",")+`]}]`), false)
	if err != nil {
		t.Fatal(err)
	}
	c, err := mmsp.ParseConfig([]byte("{" + config + "}"))
	if err != nil {
		t.Fatal(err)
	}
	request, err := provider.Prepare(t.Context(), messages, &c)
	if err != nil {
		return nil, err
	}
	var decoded any
	if err := json.Unmarshal(request.Body, &decoded); err != nil {
		t.Fatalf("%s: %v", request.Body, err)
	}
	return decoded, nil
}

// leaves collects what stands at each path of a JSON value.
func leaves(value any, path string, into map[string]string) {
	switch v := value.(type) {
	case map[string]any:
		for name, element := range v {
			leaves(element, strings.TrimPrefix(path+"."+name, "."), into)
		}
	case []any:
		for _, element := range v {
			leaves(element, path+"[]", into)
		}
	default:
		into[path] += fmt.Sprint(v, " ")
	}
}

// steps are the parts of a path.
func steps(path string) []string {
	return strings.SplitAfter(strings.ReplaceAll(path, "[]", "[]."), ".")
}

// cell says what becomes of a field: the place in the request where it stands, refused, or ignored.
func cell(t *testing.T, provider mmsp.Provider, f *field) string {
	without, err := body(t, provider, f, f.without)
	var parameter *mmsp.UnsupportedParameterError
	var place *mmsp.InvalidRequestError
	refused := func(err error) bool { return errors.As(err, &parameter) || errors.As(err, &place) }
	if refused(err) {
		return "refused"
	} else if err != nil {
		t.Fatal(err)
	}
	var with any
	for _, text := range f.with {
		if with, err = body(t, provider, f, text); !refused(err) {
			break
		}
	}
	if refused(err) {
		if name := strings.FieldsFunc(f.title, func(r rune) bool { return r == ' ' || r == '[' })[0]; parameter != nil && parameter.Parameter != name {
			t.Errorf("%s of %s names %s", f.title, provider.Class(), parameter.Parameter)
		}
		return "refused"
	} else if err != nil {
		t.Fatal(err)
	}
	before, after := map[string]string{}, map[string]string{}
	leaves(without, "", before)
	leaves(with, "", after)
	// One place for each field at the top: the one that holds all that is new in it, with its type if it has one.
	places := map[string][]string{}
	types := map[string]string{}
	for _, path := range slices.SortedFunc(maps.Keys(after), func(a, b string) int { return len(a) - len(b) }) { // the outermost first
		if before[path] == after[path] {
			continue
		}
		now := steps(path)
		if place, ok := places[now[0]]; ok {
			n := 0
			for n < min(len(place), len(now)) && place[n] == now[n] {
				n++
			}
			now = now[:n]
		}
		places[now[0]] = now
		if f.items && strings.HasSuffix(path, ".type") && types[now[0]] == "" {
			types[now[0]] = strings.Fields(strings.TrimPrefix(after[path], before[path]))[0]
		}
	}
	var sent []string
	for _, name := range slices.Sorted(maps.Keys(places)) {
		place := strings.NewReplacer("[].", "[]", "[]", "[].").Replace(strings.Join(places[name], ""))
		sent = append(sent, strings.TrimRight("`"+strings.TrimRight(place, ".[]")+"` "+types[name], " "))
	}
	if sent == nil {
		return "ignored"
	}
	return strings.Join(sent, ", ")
}

// TestConfigTables keeps the tables of docs/config.md true: what the page says of a field and a client type is what the client
// does with it.
func TestConfigTables(t *testing.T) {
	var text strings.Builder
	var every []string
	for _, table := range tables {
		fmt.Fprintf(&text, "\n## %s\n\n| client type |", table.title)
		for i := range table.fields {
			fmt.Fprintf(&text, " %s |", table.fields[i].title)
		}
		fmt.Fprintf(&text, "\n|---|%s\n", strings.Repeat("---|", len(table.fields)))
		for _, clientType := range auto.Types() {
			model := shown[clientType.Name]
			if model == "" {
				model = "m"
			}
			provider, err := clientType.New(mmsp.Options{Model: model, APIKey: mmsp.NewSecret("k"), Getenv: func(string) string { return "" }})
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&text, "| %s |", clientType.Name)
			for i := range table.fields {
				fmt.Fprintf(&text, " %s |", cell(t, provider, &table.fields[i]))
			}
			text.WriteByte('\n')
		}
		for _, f := range table.fields {
			if !f.items {
				every = append(every, f.with[0])
			}
		}
	}

	// Every field of the config has a column.
	seen := reflect.ValueOf(mmsp.Config{})
	for _, one := range every {
		config, err := mmsp.ParseConfig([]byte("{" + one + "}"))
		if err != nil {
			t.Fatal(err)
		}
		given := reflect.ValueOf(config)
		merged := reflect.New(seen.Type()).Elem()
		for i := range given.NumField() {
			if merged.Field(i).Set(seen.Field(i)); !given.Field(i).IsZero() {
				merged.Field(i).Set(given.Field(i))
			}
		}
		seen = merged
	}
	for i := range seen.NumField() {
		if name := seen.Type().Field(i).Name; name != "Extra" && seen.Field(i).IsZero() {
			t.Errorf("no table shows %s", name)
		}
	}

	const page, mark = "../docs/config.md", "<!-- Below are tables that a test writes: go test ./auto -run TestConfigTables -update -->\n"
	old, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, found := strings.Cut(string(old), mark)
	switch {
	case !found:
		t.Errorf("%s has no place for the tables", page)
	case *update:
		if err := os.WriteFile(page, []byte(head+mark+text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	case rest != text.String():
		t.Errorf("%s says something else than the clients do; go test ./auto -run TestConfigTables -update writes it anew", page)
	}
}
