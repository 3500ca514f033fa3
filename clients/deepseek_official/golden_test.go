package deepseekofficial

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
	frequency_penalty.0 parallel.true parallel.false format.text format.json_object format.json_schema budget budget.0
	budget.dynamic budget.with_level verbosity service_tier user metadata tools.strict
	config.always config.system_prompt config.system_prompt.empty config.max_tokens
	config.temperature.one config.temperature.other config.temperature.zero
	thinking.none thinking.low thinking.medium thinking.high thinking.xhigh thinking.max thinking.unknown thinking.none.flash thinking.max.flash
	summary.true summary.true.level summary.true.none summary.false summary.false.level
	config.tools config.tools.empty
	config.tool_choice.auto config.tool_choice.none config.tool_choice.required config.tool_choice.names config.tool_choice.no_names
	config.fast_mode.true config.fast_mode.false
	config.prompt_caching.enable config.prompt_caching.disable config.prompt_caching.enhance
	config.ignored
	messages.none messages.plain_turns messages.order messages.order.text_first messages.text.fidelity messages.text.empty
	messages.thinking messages.thinking.empty messages.thinking.fidelity messages.thinking.foreign
	messages.call messages.call.no_arguments
	messages.result messages.result.empty messages.result.no_images messages.result.images messages.result.error
	messages.image.user messages.image.assistant messages.image.alone messages.image.no_detail
	images.flash-vision images.v4.1-flash images.flash images.v4 images.five_digits images.three_digits images.suffix
	images.refused.flash images.refused.pro images.refused.flash-0731 images.refused.gateway images.refused.result images.refused.result.empty
	images.refused.result.text_only
	messages.inline_data messages.inline_thinking messages.embedding messages.delta
`)

// golden is one case: what stands in the request between its beginning and its input, and the elements of the input.
type golden struct {
	id       string
	model    string // deepseek-v4 if empty
	config   mmsp.Config
	messages []mmsp.Message
	fields   string
	input    string
	refused  string // the parameter, or the path in the messages, that is refused; then a part of the text
}

// parsed reads a config in its wire form.
func parsed(text string) (c mmsp.Config) {
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		panic(err)
	}
	return c
}

func level(l mmsp.ThinkingLevel) mmsp.Config { return mmsp.Config{ThinkingLevel: l} }

func choice(mode string, names ...string) mmsp.Config {
	return mmsp.Config{ToolChoice: &mmsp.ToolChoice{Mode: mode, Names: names}}
}

func user(items ...mmsp.Item) []mmsp.Message { return []mmsp.Message{mmsp.UserMessage(items...)} }

func assistant(items ...mmsp.Item) []mmsp.Message {
	return []mmsp.Message{mmsp.AssistantMessage(items...)}
}

// faithful gives an item a fidelity.
func faithful(item mmsp.Item, fidelity string) mmsp.Item {
	item.Fidelity = mmsp.Fidelity(fidelity)
	return item
}

func seen(id string) golden {
	return golden{model: id, messages: user(mmsp.ImageURL("https://a.test/b.png")), input: `{"type":"message","role":"user","content":[{"type":"input_image","image_url":"https://a.test/b.png"}]}`}
}

func refused(id string) golden {
	return golden{model: id, messages: user(mmsp.Text("a"), mmsp.ImageURL("https://a.test/b.png")), refused: "messages[0].content_items[1] does not support image"}
}

func named(id string, g golden) golden { g.id = id; return g }

var cases = []golden{
	{id: "config.always"},
	{id: "config.system_prompt", config: mmsp.Config{SystemPrompt: new("Answer <like> a pilot.")}, fields: `,"instructions":"Answer <like> a pilot."`},
	{id: "config.system_prompt.empty", config: mmsp.Config{SystemPrompt: new("")}, fields: `,"instructions":""`},
	{id: "config.max_tokens", config: mmsp.Config{MaxTokens: new(int64(900))}, fields: `,"max_output_tokens":900`},
	{id: "config.temperature.one", config: mmsp.Config{Temperature: new(1.0)}},
	{id: "config.temperature.other", config: mmsp.Config{Temperature: new(0.7)}, refused: "temperature"},
	{id: "config.temperature.zero", config: mmsp.Config{Temperature: new(0.0)}, refused: "temperature"},

	{id: "thinking.none", config: level("none"), fields: `,"reasoning":{"effort":"none"}`},
	{id: "thinking.low", config: level("low"), fields: `,"reasoning":{"effort":"low"}`},
	{id: "thinking.medium", config: level("medium"), fields: `,"reasoning":{"effort":"high"}`},
	{id: "thinking.high", config: level("high"), fields: `,"reasoning":{"effort":"high"}`},
	{id: "thinking.xhigh", config: level("xhigh"), fields: `,"reasoning":{"effort":"high"}`},
	{id: "thinking.max", config: level("max"), fields: `,"reasoning":{"effort":"max"}`},
	{id: "thinking.unknown", config: level("extreme"), fields: `,"reasoning":{"effort":"high"}`},
	{id: "thinking.none.flash", model: "deepseek-flash", config: level("none"), fields: `,"reasoning":{"effort":"none"}`},
	{id: "thinking.max.flash", model: "deepseek-flash", config: level("max"), fields: `,"reasoning":{"effort":"max"}`},
	{id: "summary.true", config: mmsp.Config{ThinkingSummary: new(true)}, fields: `,"reasoning":{"summary":"concise"}`},
	{id: "summary.true.level", config: mmsp.Config{ThinkingSummary: new(true), ThinkingLevel: "medium"}, fields: `,"reasoning":{"effort":"high","summary":"concise"}`},
	{id: "summary.true.none", config: mmsp.Config{ThinkingSummary: new(true), ThinkingLevel: "none"}, fields: `,"reasoning":{"effort":"none","summary":"concise"}`},
	{id: "summary.false", config: mmsp.Config{ThinkingSummary: new(false)}},
	{id: "summary.false.level", config: mmsp.Config{ThinkingSummary: new(false), ThinkingLevel: "low"}, fields: `,"reasoning":{"effort":"low"}`},

	{id: "config.tools", config: mmsp.Config{Tools: []mmsp.Tool{
		{Name: "tide_at", Description: "Tide height", Parameters: json.RawMessage(`{"type":"object","properties":{"port":{"type":"string"}}}`), Extra: json.RawMessage(`{"strict":true}`)},
	}}, fields: `,"tools":[{"type":"function","name":"tide_at","description":"Tide height","parameters":{"type":"object","properties":{"port":{"type":"string"}}},"strict":true}]`},
	{id: "config.tools.empty", config: mmsp.Config{Tools: []mmsp.Tool{}}, fields: `,"tools":[]`},
	{id: "config.tool_choice.auto", config: choice("auto"), fields: `,"tool_choice":"auto"`},
	{id: "config.tool_choice.none", config: choice("none"), fields: `,"tool_choice":"none"`},
	{id: "config.tool_choice.required", config: choice("required"), refused: "tool_choice"},
	{id: "config.tool_choice.names", config: choice("", "tide_at"), refused: "tool_choice"},
	{id: "config.tool_choice.no_names", config: choice(""), refused: "tool_choice"},
	{id: "config.fast_mode.true", config: mmsp.Config{FastMode: true}, refused: "fast_mode"},
	{id: "config.fast_mode.false", config: mmsp.Config{FastMode: false}},
	{id: "config.prompt_caching.enable", config: mmsp.Config{PromptCaching: mmsp.CachingEnable}},
	{id: "config.prompt_caching.disable", config: mmsp.Config{PromptCaching: mmsp.CachingDisable}, refused: "prompt_caching"},
	{id: "config.prompt_caching.enhance", config: mmsp.Config{PromptCaching: mmsp.CachingEnhance}, refused: "prompt_caching"},
	{id: "config.ignored", config: mmsp.Config{
		TraceID: "a/b", ImageConfig: &mmsp.ImageConfig{ImageSize: "1K"}, TTSConfig: []mmsp.TTSVoice{{Voice: "v"}}, EmbeddingConfig: &mmsp.EmbeddingConfig{Dimensions: new(int64(2))},
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
	{id: "parallel.false", config: parsed(`{"parallel_tool_calls":false}`), refused: "parallel_tool_calls"},
	{id: "format.text", config: parsed(`{"response_format":{"type":"text"}}`)},
	{id: "format.json_object", config: parsed(`{"response_format":{"type":"json_object"}}`), fields: `,"text":{"format":{"type":"json_object"}}`},
	{id: "format.json_schema", config: parsed(`{"response_format":{"type":"json_schema","name":"log","description":"A <log>","schema":{"type":"object","properties":{"z":{"maximum":9007199254740993},"a":{"$ref":"#/$defs/d"}},"$defs":{"d":{"type":"string"}}},"strict":true}}`), refused: "response_format"},
	{id: "budget", config: parsed(`{"thinking_budget":20000}`), fields: `,"reasoning":{"effort":"high"}`},
	{id: "budget.0", config: parsed(`{"thinking_budget":0}`), fields: `,"reasoning":{"effort":"none"}`},
	{id: "budget.dynamic", config: parsed(`{"thinking_budget":-1}`)},
	{id: "budget.with_level", config: parsed(`{"thinking_budget":20000,"thinking_level":"low"}`), fields: `,"reasoning":{"effort":"low"}`},
	{id: "verbosity", config: parsed(`{"verbosity":"low"}`), refused: "verbosity"},
	{id: "service_tier", config: parsed(`{"service_tier":"flex"}`), refused: "service_tier"},
	{id: "user", config: parsed(`{"user":"u-4711"}`)},
	{id: "metadata", config: parsed(`{"metadata":{"trip":"9","user_id":"m-1"}}`)},
	{id: "tools.strict", config: parsed(`{"tools":[{"name":"f","description":"d","parameters":{},"strict":false}]}`), fields: `,"tools":[{"type":"function","name":"f","description":"d","parameters":{},"strict":false}]`},
	{id: "messages.none", messages: []mmsp.Message{mmsp.UserMessage()}},
	{
		id: "messages.plain_turns", messages: []mmsp.Message{mmsp.UserMessage(mmsp.Text("Ahoy.")), mmsp.AssistantMessage(mmsp.Text("Ahoy <there>.")), mmsp.UserMessage(mmsp.Text("Depth?"))},
		input: `{"type":"message","role":"user","content":[{"type":"input_text","text":"Ahoy."}]},` +
			`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"Ahoy <there>."}]},` +
			`{"type":"message","role":"user","content":[{"type":"input_text","text":"Depth?"}]}`,
	},
	{
		id: "messages.order", messages: []mmsp.Message{
			mmsp.UserMessage(mmsp.Text("Tide?"), mmsp.Text(" Now?")),
			mmsp.AssistantMessage(mmsp.Thinking("Look."), mmsp.Text("One moment."), mmsp.ToolCall("c1", "tide_at", `{"port": "Sète"}`), mmsp.Text("And."), mmsp.ToolCall("c2", "now", "{}")),
			mmsp.UserMessage(mmsp.ToolResult("c1", "0.3 m"), mmsp.ToolResult("c2", "noon"), mmsp.Text("Well?")),
		},
		input: `{"type":"message","role":"user","content":[{"type":"input_text","text":"Tide?"},{"type":"input_text","text":" Now?"}]},` +
			`{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"Look."}]},` +
			`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"One moment."}]},` +
			`{"type":"function_call","call_id":"c1","name":"tide_at","arguments":"{\"port\": \"Sète\"}"},` +
			`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"And."}]},` +
			`{"type":"function_call","call_id":"c2","name":"now","arguments":"{}"},` +
			`{"type":"function_call_output","call_id":"c1","output":"0.3 m"},` +
			`{"type":"function_call_output","call_id":"c2","output":"noon"},` +
			`{"type":"message","role":"user","content":[{"type":"input_text","text":"Well?"}]}`,
	},
	{
		id: "messages.order.text_first", messages: []mmsp.Message{
			mmsp.AssistantMessage(mmsp.Text("a"), mmsp.Thinking("b"), mmsp.Text("c")), mmsp.UserMessage(mmsp.Text("d"), mmsp.ToolResult("e", "f"), mmsp.Text("g")),
		},
		input: `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"}]},` +
			`{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"b"}]},` +
			`{"type":"message","role":"assistant","content":[{"type":"output_text","text":"c"}]},` +
			`{"type":"message","role":"user","content":[{"type":"input_text","text":"d"}]},` +
			`{"type":"function_call_output","call_id":"e","output":"f"},` +
			`{"type":"message","role":"user","content":[{"type":"input_text","text":"g"}]}`,
	},
	{
		id: "messages.text.fidelity", messages: assistant(faithful(mmsp.Text("a"), `{"phase":"commentary"}`), faithful(mmsp.Text("b"), `{"phase":"final_answer"}`)),
		input: `{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a"},{"type":"output_text","text":"b"}]}`,
	},
	{id: "messages.text.empty", messages: user(mmsp.Text("")), input: `{"type":"message","role":"user","content":[{"type":"input_text","text":""}]}`},
	{id: "messages.thinking", messages: assistant(mmsp.Thinking("Hm.")), input: `{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"Hm."}]}`},
	{id: "messages.thinking.empty", messages: assistant(mmsp.Thinking("")), input: `{"type":"reasoning","summary":[]}`},
	{
		id: "messages.thinking.fidelity", messages: assistant(faithful(mmsp.Thinking("Hm."), `{"channel":"summary","encrypted_content":"E","signature":"S","format":"F","reasoning_field":"reasoning"}`)),
		input: `{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"Hm."}]}`,
	},
	{ // the proof of another is dropped
		id: "messages.thinking.foreign", messages: assistant(faithful(mmsp.Thinking("Hm."), `{"signature":"S","issuer":"anthropic"}`), faithful(mmsp.Thinking(""), `{"encrypted_content":"E","issuer":"openai"}`)),
		input: `{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"Hm."}]},{"type":"reasoning","summary":[]}`,
	},
	{
		id: "messages.call", messages: assistant(mmsp.ToolCall("c", "f", `{"n":9007199254740993,"é":"<"}`)),
		input: `{"type":"function_call","call_id":"c","name":"f","arguments":"{\"n\":9007199254740993,\"é\":\"<\"}"}`,
	},
	{id: "messages.call.no_arguments", messages: assistant(mmsp.ToolCall("c", "f", "")), input: `{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}`},
	{id: "messages.result", messages: user(mmsp.ToolResult("c", "4 m")), input: `{"type":"function_call_output","call_id":"c","output":"4 m"}`},
	{id: "messages.result.empty", messages: user(mmsp.ToolResult("c", "")), input: `{"type":"function_call_output","call_id":"c","output":""}`},
	{
		id: "messages.result.no_images", messages: user(mmsp.Item{Type: mmsp.ToolResultDone, ToolCallID: "c", Text: "x", Images: []string{}}),
		input: `{"type":"function_call_output","call_id":"c","output":"x"}`,
	},
	{
		id: "messages.result.images", messages: user(mmsp.ToolResult("c", "", "https://a.test/1.png", "data:image/png;base64,AA==")),
		input: `{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":""},{"type":"input_image","image_url":"https://a.test/1.png"},{"type":"input_image","image_url":"data:image/png;base64,AA=="}]}`,
	},
	{
		id: "messages.result.error", messages: user(mmsp.Item{Type: mmsp.ToolResultDone, ToolCallID: "c", Text: "No such port.", IsError: true}),
		input: `{"type":"function_call_output","call_id":"c","output":"No such port."}`,
	},
	{
		id: "messages.image.user", messages: user(mmsp.Text("What?"), mmsp.ImageURL("https://a.test/1.png")),
		input: `{"type":"message","role":"user","content":[{"type":"input_text","text":"What?"},{"type":"input_image","image_url":"https://a.test/1.png"}]}`,
	},
	{
		id: "messages.image.assistant", messages: assistant(mmsp.ImageURL("https://a.test/1.png")),
		input: `{"type":"message","role":"assistant","content":[{"type":"input_image","image_url":"https://a.test/1.png"}]}`,
	},
	{
		id: "messages.image.alone", messages: user(mmsp.ImageURL("data:image/png;base64,AA==")),
		input: `{"type":"message","role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,AA=="}]}`,
	},
	{ // which other clients of the protocol give to large pictures
		id: "messages.image.no_detail", model: "gpt-5.6-terra", messages: user(mmsp.ImageURL(largePicture)),
		input: `{"type":"message","role":"user","content":[{"type":"input_image","image_url":"` + largePicture + `"}]}`,
	},

	named("images.flash-vision", seen("deepseek-v4-flash-vision-exp")),
	named("images.v4.1-flash", seen("deepseek-v4.1-flash")),
	named("images.flash", seen("deepseek-flash")),
	named("images.v4", seen("deepseek-v4")),
	named("images.five_digits", seen("deepseek-v4-flash-20731")),
	named("images.three_digits", seen("deepseek-v4-pro-073")),
	named("images.suffix", seen("deepseek-v4-flash:free")),
	named("images.refused.flash", refused("deepseek-v4-flash")),
	named("images.refused.pro", refused("deepseek-v4-pro")),
	named("images.refused.flash-0731", refused("deepseek-v4-flash-0731")),
	named("images.refused.gateway", refused("deepseek-ai/DeepSeek-V4-Flash")),
	{
		id: "images.refused.result", model: "deepseek-v4-pro", messages: user(mmsp.ToolResult("c", "x", "https://a.test/1.png")),
		refused: "messages[0].content_items[0] does not support image",
	},
	{
		id: "images.refused.result.empty", model: "deepseek-v4-pro", messages: user(mmsp.Item{Type: mmsp.ToolResultDone, ToolCallID: "c", Text: "x", Images: []string{}}),
		refused: "messages[0].content_items[0] does not support image",
	},
	{
		id: "images.refused.result.text_only", model: "deepseek-v4-pro", messages: user(mmsp.ToolResult("c", "x")),
		input: `{"type":"function_call_output","call_id":"c","output":"x"}`,
	},
	{id: "messages.inline_data", messages: user(mmsp.Item{Type: mmsp.InlineDataDone, MimeType: "audio/wav"}), refused: "messages[0].content_items[0] inline_data.done"},
	{id: "messages.inline_thinking", messages: assistant(mmsp.Item{Type: mmsp.InlineThinkingDone, MimeType: "image/png"}), refused: "messages[0].content_items[0] inline_thinking.done"},
	{id: "messages.embedding", messages: assistant(mmsp.Item{Type: mmsp.EmbeddingDone}), refused: "messages[0].content_items[0] embedding.done"},
	{id: "messages.delta", messages: assistant(mmsp.Text("a"), mmsp.Item{Type: mmsp.TextDelta}), refused: "messages[0].content_items[1] text.delta"},
}

// largePicture is the data URL of the header of a picture of 6400 by 8608.
const largePicture = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAGQAAACGgAAAAAAAAAAA="

func TestGolden(t *testing.T) {
	missing := map[string]bool{}
	for _, id := range rows {
		missing[id] = true
	}
	for _, c := range cases {
		t.Run(c.id, func(t *testing.T) {
			if !missing[c.id] {
				t.Error("an unknown id, or one with two cases")
			}
			delete(missing, c.id)
			if c.model == "" {
				c.model = "deepseek-v4"
			}
			client := newClient(t, mmsp.Options{Model: c.model}, nil)
			request, err := client.Prepare(context.Background(), c.messages, &c.config)
			if c.refused != "" {
				where, text, _ := strings.Cut(c.refused, " ")
				var parameter *mmsp.UnsupportedParameterError
				var invalid *mmsp.InvalidRequestError
				if !(errors.As(err, &parameter) && parameter.Parameter == where && parameter.Client == class && parameter.Message != "") &&
					!(errors.As(err, &invalid) && invalid.Param == where && strings.Contains(invalid.Message, text)) {
					t.Errorf("%#v, want %s", err, c.refused)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if want := `{"model":"` + c.model + `","store":false,"stream":true` + c.fields + `,"input":[` + c.input + `]}`; string(request.Body) != want {
				t.Errorf("got  %s\nwant %s", request.Body, want)
			}
			again, err := client.Prepare(context.Background(), c.messages, &c.config)
			if err != nil || string(again.Body) != string(request.Body) {
				t.Errorf("then %s %v", again.Body, err)
			}
			if request.Method != "POST" || request.URL != base+"/responses" || len(request.Header) != 2 || request.Header.Get("Authorization") != "" {
				t.Errorf("%s %s %v", request.Method, request.URL, request.Header)
			}
		})
	}
	for id := range missing {
		t.Errorf("%s has no case", id)
	}
}
