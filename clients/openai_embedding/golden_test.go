package openaiembedding

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/prism-shadow/mmsp-go"
)

// rows names everything that decides what a request says. Each has a case below, and each case is of a row.
var rows = strings.Fields(`
	top_p top_p.1 top_k stop_sequences stop_sequences.none seed presence_penalty presence_penalty.0 frequency_penalty
	frequency_penalty.0 parallel.true parallel.false format.text format.json_object format.json_schema budget verbosity
	service_tier metadata tools.strict user user.long
	config.always config.dimensions config.dimensions.absent config.fast_mode.true config.fast_mode.false config.ignored
	messages.none messages.one messages.many messages.joined messages.empty messages.empty_text messages.roles messages.markup
	messages.image messages.tool_call messages.tool_result messages.thinking messages.inline_data messages.inline_thinking messages.embedding messages.delta
`)

// parsed reads a config in its wire form.
func parsed(text string) (c mmsp.Config) {
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		panic(err)
	}
	return c
}

func refused(item mmsp.Item) []mmsp.Message {
	return []mmsp.Message{mmsp.UserMessage(mmsp.Text("a")), mmsp.UserMessage(mmsp.Text("b"), item)}
}

const second = "messages[1].content_items[1]"

var cases = []struct {
	id       string
	config   mmsp.Config
	messages []mmsp.Message
	fields   string // between the model and the encoding
	more     string // after the encoding
	input    string
	refused  string // the parameter, or the path in the messages
}{
	{id: "config.always"},
	{id: "config.dimensions", config: mmsp.Config{EmbeddingConfig: &mmsp.EmbeddingConfig{Dimensions: new(int64(256))}}, fields: `,"dimensions":256`},
	{id: "config.dimensions.absent", config: mmsp.Config{EmbeddingConfig: &mmsp.EmbeddingConfig{}}},
	{id: "config.fast_mode.true", config: mmsp.Config{FastMode: true}, refused: "fast_mode"},
	{id: "config.fast_mode.false", config: mmsp.Config{FastMode: false}},
	{id: "config.ignored", config: mmsp.Config{
		SystemPrompt: new("Be brief."), MaxTokens: new(int64(9)), Temperature: new(0.5), Tools: []mmsp.Tool{{Name: "f", Parameters: json.RawMessage(`{}`)}},
		ToolChoice: &mmsp.ToolChoice{Names: []string{"f"}}, ThinkingLevel: mmsp.ThinkingMax, ThinkingSummary: new(true), PromptCaching: mmsp.CachingEnhance,
		ImageConfig: &mmsp.ImageConfig{ImageSize: "1K"}, TTSConfig: []mmsp.TTSVoice{{Voice: "v"}}, TraceID: "a/b",
	}},

	{id: "top_p", config: parsed(`{"top_p":0.9}`), refused: "top_p"},
	{id: "top_p.1", config: parsed(`{"top_p":1}`)},
	{id: "top_k", config: parsed(`{"top_k":40}`), refused: "top_k"},
	{id: "stop_sequences", config: parsed(`{"stop_sequences":["END","<\n"]}`), refused: "stop_sequences"},
	{id: "stop_sequences.none", config: parsed(`{"stop_sequences":[]}`)},
	{id: "seed", config: parsed(`{"seed":9007199254740993}`), refused: "seed"},
	{id: "presence_penalty", config: parsed(`{"presence_penalty":-0.5}`), refused: "presence_penalty"},
	{id: "presence_penalty.0", config: parsed(`{"presence_penalty":0}`)},
	{id: "frequency_penalty", config: parsed(`{"frequency_penalty":1.5}`), refused: "frequency_penalty"},
	{id: "frequency_penalty.0", config: parsed(`{"frequency_penalty":0}`)},
	{id: "parallel.true", config: parsed(`{"parallel_tool_calls":true}`)},
	{id: "parallel.false", config: parsed(`{"parallel_tool_calls":false}`)},
	{id: "format.text", config: parsed(`{"response_format":{"type":"text"}}`)},
	{id: "format.json_object", config: parsed(`{"response_format":{"type":"json_object"}}`), refused: "response_format"},
	{id: "format.json_schema", config: parsed(`{"response_format":{"type":"json_schema","name":"log","description":"A <log>","schema":{"type":"object","properties":{"z":{"maximum":9007199254740993},"a":{"$ref":"#/$defs/d"}},"$defs":{"d":{"type":"string"}}},"strict":true}}`), refused: "response_format"},
	{id: "budget", config: parsed(`{"thinking_budget":20000}`)},
	{id: "verbosity", config: parsed(`{"verbosity":"low"}`), refused: "verbosity"},
	{id: "service_tier", config: parsed(`{"service_tier":"flex"}`), refused: "service_tier"},
	{id: "metadata", config: parsed(`{"metadata":{"trip":"9","user_id":"m-1"}}`)},
	{id: "tools.strict", config: parsed(`{"tools":[{"name":"f","description":"d","parameters":{},"strict":false}]}`)},
	{id: "user", config: mmsp.Config{User: "u-4711"}, more: `,"user":"u-4711"`},
	{id: "user.long", config: mmsp.Config{User: strings.Repeat("u", 65)}},
	{id: "messages.none"},
	{id: "messages.one", messages: []mmsp.Message{mmsp.UserMessage(mmsp.Text("tide table"))}, input: `"tide table"`},
	{id: "messages.many", messages: []mmsp.Message{mmsp.UserMessage(mmsp.Text("tide")), mmsp.UserMessage(mmsp.Text("berth")), mmsp.UserMessage(mmsp.Text("tide"))}, input: `"tide","berth","tide"`},
	{id: "messages.joined", messages: []mmsp.Message{mmsp.UserMessage(mmsp.Text("tide "), mmsp.Text("ta"), mmsp.Text("ble"))}, input: `"tide table"`},
	{id: "messages.empty", messages: []mmsp.Message{mmsp.UserMessage(mmsp.Text("tide table")), mmsp.UserMessage()}, input: `"tide table"," "`},
	{id: "messages.empty_text", messages: []mmsp.Message{mmsp.UserMessage(mmsp.Text(""), mmsp.Text(""))}, input: `" "`},
	{id: "messages.roles", messages: []mmsp.Message{mmsp.AssistantMessage(mmsp.Text("a")), mmsp.UserMessage(mmsp.Text("b"))}, input: `"a","b"`},
	{id: "messages.markup", messages: []mmsp.Message{mmsp.UserMessage(mmsp.Text("<Sète> & \"sea\"\n"))}, input: `"<Sète> & \"sea\"\n"`},

	{id: "messages.image", messages: refused(mmsp.ImageURL("https://a.test/b.png")), refused: second},
	{id: "messages.tool_call", messages: refused(mmsp.ToolCall("c", "f", "{}")), refused: second},
	{id: "messages.tool_result", messages: refused(mmsp.ToolResult("c", "x")), refused: second},
	{id: "messages.thinking", messages: refused(mmsp.Thinking("Hm.")), refused: second},
	{id: "messages.inline_data", messages: refused(mmsp.Item{Type: mmsp.InlineDataDone, MimeType: "audio/wav"}), refused: second},
	{id: "messages.inline_thinking", messages: refused(mmsp.Item{Type: mmsp.InlineThinkingDone, MimeType: "image/png"}), refused: second},
	{id: "messages.embedding", messages: refused(mmsp.Item{Type: mmsp.EmbeddingDone}), refused: second},
	{id: "messages.delta", messages: refused(mmsp.Item{Type: mmsp.TextDelta}), refused: second},
}

func TestGolden(t *testing.T) {
	missing := map[string]bool{}
	for _, id := range rows {
		missing[id] = true
	}
	client := newClient(t, mmsp.Options{}, nil)
	for _, c := range cases {
		t.Run(c.id, func(t *testing.T) {
			if !missing[c.id] {
				t.Error("an unknown id, or one with two cases")
			}
			delete(missing, c.id)
			request, err := client.Prepare(context.Background(), c.messages, &c.config)
			if c.refused != "" {
				var parameter *mmsp.UnsupportedParameterError
				var invalid *mmsp.InvalidRequestError
				if !(errors.As(err, &parameter) && parameter.Parameter == c.refused && parameter.Client == class && parameter.Message != "") &&
					!(errors.As(err, &invalid) && invalid.Param == c.refused && strings.Contains(invalid.Message, "only text")) {
					t.Errorf("%#v, want %s", err, c.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if want := `{"model":"text-embedding-3-large"` + c.fields + `,"encoding_format":"base64"` + c.more + `,"input":[` + c.input + `]}`; string(request.Body) != want {
				t.Errorf("got  %s\nwant %s", request.Body, want)
			}
			if request.Method != "POST" || request.URL != base+"/embeddings" || len(request.Header) != 2 || request.Header.Get("Authorization") != "" {
				t.Errorf("%s %s %v", request.Method, request.URL, request.Header)
			}
		})
	}
	for id := range missing {
		t.Errorf("%s has no case", id)
	}
}
