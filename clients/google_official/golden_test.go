package googleofficial

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/prism-shadow/mmsp-go"
)

// transport answers requests without a network.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answer(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
}

// testClient is a client of Google's own endpoint over the given transport.
func testClient(t testing.TB, model string, over http.RoundTripper) *Client {
	t.Helper()
	client, err := New(mmsp.Options{
		Model: model, APIKey: mmsp.NewSecret("test-key"), HTTPClient: &http.Client{Transport: over},
		HTTP: mmsp.HTTPOptions{MaxRetries: new(0)}, AllowPrivateFetch: true, Getenv: func(string) string { return "" },
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func parse[T any](t testing.TB, text string) (value T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return value
}

// rows names everything that decides what a request says: config, the levels of each group of models, speech, vectors,
// items, and what stands before a turn. Each has a case in golden of its name, or of its name with a dot and more.
var rows = append([]string{
	"config.top_p", "config.top_p.1", "config.top_k", "config.stop_sequences", "config.stop_sequences.none",
	"config.seed", "config.presence_penalty", "config.presence_penalty.0", "config.frequency_penalty",
	"config.frequency_penalty.0", "config.parallel.true", "config.parallel.false", "config.format.text",
	"config.format.json_object", "config.format.json_schema", "config.budget", "config.budget.0",
	"config.budget.dynamic", "config.budget.with_level", "config.verbosity", "config.service_tier",
	"config.service_tier.default", "config.service_tier.auto", "config.service_tier.with_fast", "config.user",
	"config.metadata", "config.tools.strict", "config.service_tier.unknown", "config.format.with_image", "speech.format",
	"vector.refused.top_p", "vector.refused.top_k", "vector.refused.stop_sequences", "vector.refused.seed", "vector.refused.presence_penalty", "vector.refused.frequency_penalty", "vector.refused.response_format", "vector.refused.verbosity", "vector.refused.service_tier", "vector.refused.fast_mode", "vector.refused.prompt_caching", "vector.refused.parallel_tool_calls",
	"speech.refused.stop_sequences", "speech.refused.seed", "speech.refused.presence_penalty", "speech.refused.frequency_penalty", "item.tool_result.document",
	"config.none", "config.temperature", "config.prompt_caching.enable", "config.prompt_caching.disable", "config.prompt_caching.enhance",
	"config.max_tokens", "config.fast_mode", "config.system_prompt", "config.thinking_level", "config.thinking_summary.true", "config.thinking_summary.false",
	"config.tools", "config.tool_choice.auto", "config.tool_choice.required", "config.tool_choice.none", "config.tool_choice.names", "config.tool_choice.without_tools",
	"config.image_config", "config.others_ignored",

	"speech.default_voice", "speech.one_voice", "speech.two_voices", "speech.three_voices", "speech.speaker_missing", "speech.limits", "speech.temperature",
	"speech.prompt_caching", "speech.rest_left_out", "speech.last_message", "speech.other_item", "speech.script", "speech.script.unlabelled", "speech.script.plain_3.1", "speech.nothing",

	"vector.text", "vector.image_url", "vector.inline_data", "vector.role", "vector.dimensions", "vector.other_item", "vector.config_unread",

	"item.text", "item.text.empty", "item.media.joined", "item.image_url.data", "item.image_url.remote", "item.image_url.broken", "item.inline_data.kinds",
	"item.thinking", "item.thinking.signed", "item.thinking.nothing", "item.thinking.joined", "item.thinking.foreign", "item.thinking.redacted", "item.inline_thinking",
	"item.tool_call", "item.tool_call.name_as_id", "item.tool_result", "item.tool_result.name_as_id", "item.tool_result.unknown_id", "item.tool_result.images",
	"item.tool_result.is_error", "item.signed_text", "item.signed_call", "item.signed_image", "item.signed_by_another", "item.signed_by_user", "item.embedding",

	"turn.placeholder.thought_not_first", "turn.placeholder.unsigned", "turn.placeholder.unsigned_thought", "turn.placeholder.not_for_users",
	"turn.leading_thought_signed", "turn.order", "turn.unsigned_turns", "turn.nothing",
}, levelRows()...)

// levels is what each level becomes, by group of models.
var levels = []struct {
	group  string
	models []string
	want   [6]string // of none, low, medium, high, xhigh and max
}{
	{"image", []string{"gemini-3.1-flash-image", "gemini-3-pro-image", "gemini-3.1-flash-lite-image", "gemini-3.8-flash-image"}, [6]string{"minimal", "minimal", "high", "high", "high", "high"}},
	{"3-pro", []string{"gemini-3-pro-preview", "gemini-3-pro"}, [6]string{"low", "low", "high", "high", "high", "high"}},
	{"pro", []string{"gemini-3.1-pro-preview", "gemini-4-pro", "gemini-2.5-pro"}, [6]string{"low", "low", "medium", "high", "high", "high"}},
	{"3.7_3.8", []string{"gemini-3.7-flash", "gemini-3.8-flash"}, [6]string{"low", "low", "medium", "high", "high", "high"}},
	{"rest", []string{"gemini-3.6-flash", "gemini-3.5-flash", "gemini-3.5-flash-lite", "gemini-3-flash", "gemini-9-flash", "other"}, [6]string{"minimal", "low", "medium", "high", "high", "high"}},
}

var levelNames = [6]string{"none", "low", "medium", "high", "xhigh", "max"}

func levelRows() (ids []string) {
	for _, group := range levels {
		for _, level := range levelNames {
			ids = append(ids, "level."+group.group+"."+level)
		}
	}
	return ids
}

// golden is a request: what goes in, and the exact body or the place of the error.
type golden struct {
	id       string
	model    string // default: gemini-3.5-flash
	config   string // default: {}
	messages string // default: a user's "Hi"

	fields string // the body between "store" and "input"
	input  string // default: the user's "Hi"
	body   string // instead of fields and input
	err    string // the parameter, or "@" and the path, that the error names; then a word of its text after a space
}

const hi = `[{"type":"user_input","content":[{"type":"text","text":"Hi"}]}]`

func user(items ...string) string {
	return `[{"role":"user","content_items":[` + strings.Join(items, ",") + `]}]`
}

// turns begins with the user's "Hi" and alternates.
func turns(messages ...string) string {
	all := `[{"role":"user","content_items":[{"type":"text.done","text":"Hi"}]}`
	for i, items := range messages {
		all += fmt.Sprintf(`,{"role":"%s","content_items":[%s]}`, []string{"assistant", "user"}[i%2], items)
	}
	return all + "]"
}

// steps is the user's "Hi" and what follows it.
func steps(more ...string) string {
	return strings.Join(append([]string{strings.TrimSuffix(hi, "]")}, more...), ",") + "]"
}

const (
	placeholder = `{"type":"thought","signature":"skip_thought_signature_validator"}`
	picture     = "\x89PNG\r\n\x1a\n"
	picture64   = "iVBORw0KGgo="
	remote      = "{remote}" // stands for the address of a picture
	two         = `[{"voice":"A","speaker":"Ann"},{"voice":"B","speaker":"Bob"}]`
)

func goldens() (table []golden) {
	tool := `{"name":"f","description":"d","parameters":{"type":"object","properties":{"n":{"type":"integer"}}},"later":true}`
	tools := `"tools":[{"type":"function",` + tool[1:] + `]`
	choice := func(id, given, sent string) golden {
		return golden{id: "config.tool_choice." + id, config: `{"tools":[` + tool + `],"tool_choice":` + given + `}`, fields: `,"generation_config":{"tool_choice":` + sent + `},` + tools}
	}
	table = []golden{
		// Config.
		{id: "config.none"},
		{id: "config.temperature", config: `{"temperature":1.0}`, err: "temperature"},
		{id: "config.temperature.other", config: `{"temperature":0.5}`, err: "temperature"},
		{id: "config.prompt_caching.enable", config: `{"prompt_caching":"enable"}`},
		{id: "config.prompt_caching.disable", config: `{"prompt_caching":"disable"}`, err: "prompt_caching"},
		{id: "config.prompt_caching.enhance", config: `{"prompt_caching":"enhance"}`, err: "prompt_caching"},
		{id: "config.max_tokens", config: `{"max_tokens":100}`, fields: `,"generation_config":{"max_output_tokens":100}`},
		{id: "config.fast_mode", config: `{"fast_mode":true}`, fields: `,"service_tier":"priority"`},
		{id: "config.fast_mode.off", config: `{"fast_mode":false}`},
		{id: "config.system_prompt", config: `{"system_prompt":"Be <brief>."}`, fields: `,"system_instruction":"Be <brief>."`},
		{id: "config.system_prompt.empty", config: `{"system_prompt":""}`},
		{id: "config.thinking_level", config: `{"thinking_level":"medium"}`, fields: `,"generation_config":{"thinking_level":"medium"}`},
		{id: "config.thinking_summary.true", config: `{"thinking_summary":true}`, fields: `,"generation_config":{"thinking_summaries":"auto"}`},
		{id: "config.thinking_summary.false", config: `{"thinking_summary":false,"thinking_level":"high"}`, fields: `,"generation_config":{"thinking_level":"high","thinking_summaries":"none"}`},
		{id: "config.tools", config: `{"tools":[` + tool + `]}`, fields: `,` + tools},
		{id: "config.tools.none", config: `{"tools":[]}`, fields: `,"tools":[]`},
		choice("auto", `"auto"`, `"auto"`),
		choice("required", `"required"`, `"any"`),
		choice("none", `"none"`, `"none"`),
		choice("names", `["f"]`, `{"allowed_tools":{"mode":"any","tools":["f"]}}`),
		choice("names.two", `["f","g"]`, `{"allowed_tools":{"mode":"any","tools":["f","g"]}}`),
		{id: "config.tool_choice.without_tools", config: `{"tool_choice":"required"}`},
		{id: "config.image_config", config: `{"image_config":{"aspect_ratio":"16:9","image_size":"2K"}}`, fields: `,"response_format":[{"type":"text"},{"type":"image","aspect_ratio":"16:9","image_size":"2K"}]`},
		{id: "config.image_config.size", config: `{"image_config":{"image_size":"1K"}}`, fields: `,"response_format":[{"type":"text"},{"type":"image","image_size":"1K"}]`},
		{id: "config.top_p", config: `{"top_p":0.9}`, err: "top_p"},
		{id: "config.top_p.1", config: `{"top_p":1}`},
		{id: "config.top_k", config: `{"top_k":40}`, err: "top_k"},
		{id: "config.stop_sequences", config: `{"stop_sequences":["END","<\n"]}`, fields: `,"generation_config":{"stop_sequences":["END","<\n"]}`},
		{id: "config.stop_sequences.none", config: `{"stop_sequences":[]}`},
		{id: "config.seed", config: `{"seed":9007199254740993}`, fields: `,"generation_config":{"seed":9007199254740993}`},
		{id: "config.presence_penalty", config: `{"presence_penalty":-0.5}`, err: "presence_penalty"},
		{id: "config.presence_penalty.0", config: `{"presence_penalty":0}`},
		{id: "config.frequency_penalty", config: `{"frequency_penalty":1.5}`, err: "frequency_penalty"},
		{id: "config.frequency_penalty.0", config: `{"frequency_penalty":0}`},
		{id: "config.parallel.true", config: `{"parallel_tool_calls":true}`},
		{id: "config.parallel.false", config: `{"parallel_tool_calls":false}`, err: "parallel_tool_calls"},
		{id: "config.format.text", config: `{"response_format":{"type":"text"}}`},
		{id: "config.format.json_object", config: `{"response_format":{"type":"json_object"}}`, fields: `,"response_format":{"type":"text","mime_type":"application/json"}`},
		{id: "config.format.json_schema", config: `{"response_format":{"type":"json_schema","name":"log","description":"A <log>","schema":{"type":"object","properties":{"z":{"maximum":9007199254740993},"a":{"$ref":"#/$defs/d"}},"$defs":{"d":{"type":"string"}}},"strict":true}}`, fields: `,"response_format":{"type":"text","mime_type":"application/json","schema":{"type":"object","properties":{"z":{"maximum":9007199254740993},"a":{"$ref":"#/$defs/d"}},"$defs":{"d":{"type":"string"}}}}`},
		{id: "config.budget", config: `{"thinking_budget":20000}`, fields: `,"generation_config":{"thinking_level":"high"}`},
		{id: "config.budget.0", config: `{"thinking_budget":0}`, fields: `,"generation_config":{"thinking_level":"minimal"}`},
		{id: "config.budget.dynamic", config: `{"thinking_budget":-1}`},
		{id: "config.budget.with_level", config: `{"thinking_budget":20000,"thinking_level":"low"}`, fields: `,"generation_config":{"thinking_level":"low"}`},
		{id: "config.verbosity", config: `{"verbosity":"low"}`, err: "verbosity"},
		{id: "config.service_tier", config: `{"service_tier":"flex"}`, fields: `,"service_tier":"flex"`},
		{id: "config.service_tier.default", config: `{"service_tier":"default"}`, fields: `,"service_tier":"standard"`},
		{id: "config.service_tier.auto", config: `{"service_tier":"auto"}`},
		{id: "config.service_tier.with_fast", config: `{"service_tier":"default","fast_mode":true}`, fields: `,"service_tier":"standard"`},
		{id: "config.user", config: `{"user":"u-4711"}`},
		{id: "config.metadata", config: `{"metadata":{"trip":"9","user_id":"m-1"}}`},
		{id: "config.tools.strict", config: `{"tools":[{"name":"f","description":"d","parameters":{},"strict":false}]}`, fields: `,"tools":[{"type":"function","name":"f","description":"d","parameters":{}}]`},
		{id: "config.service_tier.unknown", config: `{"service_tier":"scale"}`, err: "service_tier"},
		{id: "config.format.with_image", config: `{"response_format":{"type":"json_object"},"image_config":{"image_size":"1K"}}`, fields: `,"response_format":[{"type":"text","mime_type":"application/json"},{"type":"image","image_size":"1K"}]`},
		{id: "speech.format", model: "gemini-3.8-flash-tts", config: `{"response_format":{"type":"json_object"}}`, err: "response_format"},
		{id: "vector.refused.top_p", model: "gemini-embedding-2", config: `{"top_p":0.9}`, err: "top_p"},
		{id: "vector.refused.top_k", model: "gemini-embedding-2", config: `{"top_k":40}`, err: "top_k"},
		{id: "vector.refused.stop_sequences", model: "gemini-embedding-2", config: `{"stop_sequences":["END"]}`, err: "stop_sequences"},
		{id: "vector.refused.seed", model: "gemini-embedding-2", config: `{"seed":1}`, err: "seed"},
		{id: "vector.refused.presence_penalty", model: "gemini-embedding-2", config: `{"presence_penalty":1}`, err: "presence_penalty"},
		{id: "vector.refused.frequency_penalty", model: "gemini-embedding-2", config: `{"frequency_penalty":1}`, err: "frequency_penalty"},
		{id: "vector.refused.response_format", model: "gemini-embedding-2", config: `{"response_format":{"type":"json_object"}}`, err: "response_format"},
		{id: "vector.refused.verbosity", model: "gemini-embedding-2", config: `{"verbosity":"low"}`, err: "verbosity"},
		{id: "vector.refused.service_tier", model: "gemini-embedding-2", config: `{"service_tier":"flex"}`, err: "service_tier"},
		{id: "vector.refused.fast_mode", model: "gemini-embedding-2", config: `{"fast_mode":true}`, err: "fast_mode"},
		{id: "vector.refused.prompt_caching", model: "gemini-embedding-2", config: `{"prompt_caching":"enhance"}`, err: "prompt_caching"},
		{id: "vector.refused.parallel_tool_calls", model: "gemini-embedding-2", config: `{"parallel_tool_calls":false}`, err: "parallel_tool_calls"},
		{id: "speech.refused.stop_sequences", model: "gemini-3.8-flash-tts", config: `{"stop_sequences":["END"]}`, err: "stop_sequences"},
		{id: "speech.refused.seed", model: "gemini-3.8-flash-tts", config: `{"seed":0}`, err: "seed"},
		{id: "speech.refused.presence_penalty", model: "gemini-3.8-flash-tts", config: `{"presence_penalty":0.5}`, err: "presence_penalty"},
		{id: "speech.refused.frequency_penalty", model: "gemini-3.8-flash-tts", config: `{"frequency_penalty":0.5}`, err: "frequency_penalty"},
		{id: "item.tool_result.document", messages: user(`{"type":"tool_result.done","text":"","tool_call_id":"f","images":["data:application/pdf;base64,QUJD"]}`), input: `[{"type":"function_result","name":"f","result":[{"type":"document","data":"QUJD","mime_type":"application/pdf"}]}]`},
		{id: "config.others_ignored", config: `{"tts_config":[{"voice":"A"}],"embedding_config":{"dimensions":3},"trace_id":"a/b"}`},
	}

	for _, group := range levels {
		for _, model := range group.models {
			for i, level := range levelNames {
				table = append(table, golden{
					id: "level." + group.group + "." + level + "." + model, model: model, config: `{"thinking_level":"` + level + `"}`,
					fields: `,"generation_config":{"thinking_level":"` + group.want[i] + `"}`,
				})
			}
		}
	}

	speech := func(more, voices string) string {
		return `,"generation_config":{` + more + `"speech_config":` + voices + `},"response_format":{"type":"audio"}`
	}
	said := func(speaker, text string) string {
		return fmt.Sprintf(`{"type":"text","text":%q,"annotations":[{"type":"speech_metadata","speaker":%q}]}`, text, speaker)
	}
	input := func(content ...string) string {
		return `[{"type":"user_input","content":[` + strings.Join(content, ",") + `]}]`
	}
	twoVoices := `[{"speaker":"Ann","voice":"A"},{"speaker":"Bob","voice":"B"}]`
	const tts38, tts31 = "gemini-3.8-flash-tts", "gemini-3.1-flash-TTS-preview"
	text := func(text string) string { return fmt.Sprintf(`{"type":"text.done","text":%q}`, text) }
	table = append(table, []golden{
		// Speech.
		{id: "speech.default_voice", model: tts31, fields: speech("", `[{"voice":"Kore"}]`)},
		{id: "speech.default_voice.empty", model: tts38, config: `{"tts_config":[]}`, fields: speech("", `[{"voice":"Kore"}]`)},
		{id: "speech.one_voice", model: tts38, config: `{"tts_config":[{"voice":"A","speaker":"Ann"}]}`, fields: speech("", `[{"voice":"A"}]`)},
		{id: "speech.two_voices", model: tts38, config: `{"tts_config":` + two + `}`, messages: user(text("Ann: Hi")), fields: speech("", twoVoices), input: input(said("Ann", "Hi"))},
		{id: "speech.three_voices", model: tts38, config: `{"tts_config":[{"voice":"A","speaker":"a"},{"voice":"B","speaker":"b"},{"voice":"C","speaker":"c"}]}`, err: "tts_config"},
		{id: "speech.speaker_missing", model: tts38, config: `{"tts_config":[{"voice":"A","speaker":"a"},{"voice":"B"}]}`, err: "tts_config"},
		{id: "speech.speaker_missing.first", model: tts31, config: `{"tts_config":[{"voice":"A","speaker":""},{"voice":"B","speaker":"b"}]}`, err: "tts_config"},
		{id: "speech.limits", model: tts31, config: `{"max_tokens":5,"fast_mode":true}`, fields: `,"service_tier":"priority"` + speech(`"max_output_tokens":5,`, `[{"voice":"Kore"}]`)},
		{id: "speech.temperature", model: tts31, config: `{"temperature":1}`, err: "temperature"},
		{id: "speech.prompt_caching", model: tts31, config: `{"prompt_caching":"enhance"}`, err: "prompt_caching"},
		{
			id: "speech.rest_left_out", model: tts31, fields: speech("", `[{"voice":"Kore"}]`),
			config: `{"system_prompt":"s","thinking_level":"high","thinking_summary":true,"tools":[` + tool + `],"tool_choice":"auto","image_config":{"image_size":"1K"}}`,
		},
		{id: "speech.last_message", model: tts31, messages: turns(text("No.")+","+`{"type":"thinking.done","thinking":"t"}`, text("Say")+","+text("")+","+text("this.")), fields: speech("", `[{"voice":"Kore"}]`), input: input(`{"type":"text","text":"Say"}`, `{"type":"text","text":"this."}`)},
		{id: "speech.other_item", model: tts31, messages: user(text("a"), `{"type":"image_url.done","image_url":"https://x.test/a.png"}`), err: "@messages[0].content_items[1] image_url.done"},
		{
			id: "speech.script", model: tts38, config: `{"tts_config":` + two + `}`, fields: speech("", twoVoices),
			messages: user(text("\n  \n Ann :  How are you? \n  And: yours? \n\nBob:  Fine. "), text("Ann:\nBob: Ann: said so")),
			input:    input(said("Ann", "How are you?\n  And: yours?"), said("Bob", "Fine."), said("Bob", "Ann: said so")),
		},
		{id: "speech.script.one_voice", model: tts38, config: `{"tts_config":[{"voice":"A","speaker":"Ann"}]}`, messages: user(text("Ann: Hi")), fields: speech("", `[{"voice":"A"}]`), input: input(`{"type":"text","text":"Ann: Hi"}`)},
		{id: "speech.script.unlabelled", model: tts38, config: `{"tts_config":` + two + `}`, messages: user(text("Eve: Hi\nAnn: Hi")), err: "@messages[0] Ann"},
		{id: "speech.script.plain_3.1", model: tts31, config: `{"tts_config":` + two + `}`, messages: user(text("Ann: Hi\nBob: Ho")), fields: speech("", twoVoices), input: input(`{"type":"text","text":"Ann: Hi\nBob: Ho"}`)},
		{id: "speech.nothing", model: tts31, messages: `[]`, err: "@messages"},
		{id: "speech.nothing.empty", model: tts31, messages: user(text("")), err: "@messages[0]"},
		{id: "speech.nothing.script", model: tts38, config: `{"tts_config":` + two + `}`, messages: user(text("Ann: \nBob:")), err: "@messages[0]"},
	}...)

	vector := func(id, messages string, contents ...string) golden {
		for i, content := range contents {
			contents[i] = `{"model":"models/gemini-embedding-2","content":` + content
		}
		return golden{id: "vector." + id, model: "gemini-embedding-2", messages: messages, body: `{"requests":[` + strings.Join(contents, ",") + `]}`}
	}
	dimensions := vector("dimensions", "", `{"role":"user","parts":[{"text":"Hi"}]},"outputDimensionality":256}`)
	dimensions.config = `{"embedding_config":{"dimensions":256}}`
	unread := vector("config_unread", "", `{"role":"user","parts":[{"text":"Hi"}]}}`)
	unread.config = `{"temperature":0.5,"prompt_caching":"disable","max_tokens":1,"thinking_level":"max","tools":[],"embedding_config":{}}`
	prefixed := vector("text.resource_name", "", `{"role":"user","parts":[{"text":"Hi"}]}}`)
	prefixed.model = "models/gemini-embedding-2"
	capital := vector("text.capital", "", `{"role":"user","parts":[{"text":"Hi"}]}}`)
	capital.model = "gemini-EMBEDDING-2"
	capital.body = strings.ReplaceAll(capital.body, "gemini-embedding-2", capital.model)
	table = append(
		table,
		vector("text", user(text("a"), text("")), `{"role":"user","parts":[{"text":"a"},{"text":""}]}}`),
		prefixed, capital,
		vector("image_url", user(`{"type":"image_url.done","image_url":"`+remote+`"}`, `{"type":"image_url.done","image_url":"data:image/gif;base64,R0lG"}`),
			`{"role":"user","parts":[{"inlineData":{"data":"`+picture64+`","mimeType":"image/png"}},{"inlineData":{"data":"R0lG","mimeType":"image/gif"}}]}}`),
		vector("inline_data", user(`{"type":"inline_data.done","data":"QUJD","mime_type":"audio/wav"}`), `{"role":"user","parts":[{"inlineData":{"data":"QUJD","mimeType":"audio/wav"}}]}}`),
		vector("role", turns(text("Ho")), `{"role":"user","parts":[{"text":"Hi"}]}}`, `{"role":"model","parts":[{"text":"Ho"}]}}`),
		dimensions, unread,
		golden{id: "vector.other_item", model: "gemini-embedding-2", messages: turns(`{"type":"thinking.done","thinking":"t"}`), err: "@messages[1].content_items[0] thinking.done"},
		golden{id: "vector.other_item.picture", model: "gemini-embedding-2", messages: user(`{"type":"image_url.done","image_url":"data:x"}`), err: "@messages[0].content_items[0].image_url"},
	)

	thought := func(summary, signature string) string {
		if signature != "" {
			signature = `,"signature":"` + signature + `"`
		}
		if summary == "" {
			return `{"type":"thought"` + signature + `}`
		}
		return `{"type":"thought","summary":` + summary + signature + `}`
	}
	thinking := func(text, fidelity string) string {
		return fmt.Sprintf(`{"type":"thinking.done","thinking":%q,"fidelity":%s}`, text, fidelity)
	}
	output := func(text string) string {
		return fmt.Sprintf(`{"type":"model_output","content":[{"type":"text","text":%q}]}`, text)
	}
	call := func(id, more string) string {
		return fmt.Sprintf(`{"type":"tool_call.done","name":"lookup","arguments":{"sku":"A7"},"tool_call_id":%q%s}`, id, more)
	}
	result := func(id string) string {
		return fmt.Sprintf(`{"type":"tool_result.done","text":"3 left","tool_call_id":%q}`, id)
	}
	called := func(id string) string {
		return fmt.Sprintf(`{"type":"function_call","name":"lookup","arguments":{"sku":"A7"},"id":%q}`, id)
	}
	given := func(id string) string {
		return fmt.Sprintf(`{"type":"function_result","name":"lookup","result":"3 left","call_id":%q}`, id)
	}
	own := thinking("", `{"signature":"OWN"}`)
	ownStep := thought("[]", "OWN")
	return append(table, []golden{
		// Items.
		{id: "item.text", messages: user(text("a <b> é")), input: `[{"type":"user_input","content":[{"type":"text","text":"a <b> é"}]}]`},
		{id: "item.text.empty", messages: user(text(""), text("a")), input: `[{"type":"user_input","content":[{"type":"text","text":"a"}]}]`},
		{id: "item.media.joined", messages: user(text("a"), `{"type":"image_url.done","image_url":"data:image/png;base64,QUJD"}`, text("b")), input: input(`{"type":"text","text":"a"}`, `{"type":"image","data":"QUJD","mime_type":"image/png"}`, `{"type":"text","text":"b"}`)},
		{id: "item.media.joined.of_model", messages: turns(own + "," + text("a") + "," + text("b")), input: steps(ownStep, `{"type":"model_output","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}`)},
		{id: "item.image_url.data", messages: user(`{"type":"image_url.done","image_url":"data:image/PNG;base64,QU\n-_"}`), input: input(`{"type":"image","data":"QU+/","mime_type":"image/png"}`)},
		{id: "item.image_url.data.document", messages: user(`{"type":"image_url.done","image_url":"data:application/pdf;base64,QUJD"}`), input: input(`{"type":"document","data":"QUJD","mime_type":"application/pdf"}`)},
		{id: "item.image_url.remote", messages: user(`{"type":"image_url.done","image_url":"` + remote + `"}`), input: input(`{"type":"image","data":"` + picture64 + `","mime_type":"image/png"}`)},
		{id: "item.image_url.broken", messages: user(text("a"), `{"type":"image_url.done","image_url":"data:image/png,QUJD"}`), err: "@messages[0].content_items[1].image_url"},
		{id: "item.image_url.broken.no_type", messages: user(`{"type":"image_url.done","image_url":"Data:;base64,QUJD"}`), err: "@messages[0].content_items[0].image_url"},
		{id: "item.image_url.broken.no_type_either", messages: user(`{"type":"image_url.done","image_url":"data:;base64,QUJD"}`), err: "@messages[0].content_items[0].image_url"},
		{id: "item.image_url.broken.missing", messages: user(`{"type":"image_url.done","image_url":"` + remote + `/none"}`), err: "@messages[0].content_items[0].image_url 404"},
		{
			id: "item.inline_data.kinds", messages: user(`{"type":"inline_data.done","data":"QUI=","mime_type":"image/webp"}`, `{"type":"inline_data.done","data":"QUI=","mime_type":"audio/l16; rate=24000; channels=1"}`,
				`{"type":"inline_data.done","data":"QUI=","mime_type":"video/mp4"}`, `{"type":"inline_data.done","data":"QUI=","mime_type":"text/plain"}`),
			input: input(`{"type":"image","data":"QUI=","mime_type":"image/webp"}`, `{"type":"audio","data":"QUI=","mime_type":"audio/l16; rate=24000; channels=1"}`,
				`{"type":"video","data":"QUI=","mime_type":"video/mp4"}`, `{"type":"document","data":"QUI=","mime_type":"text/plain"}`),
		},
		{id: "item.thinking", messages: turns(thinking("a", `{}`)), input: steps(thought(`[{"type":"text","text":"a"}]`, ""))},
		{id: "item.thinking.signed", messages: turns(thinking("a", `{"signature":"S"}`)), input: steps(thought(`[{"type":"text","text":"a"}]`, "S"))},
		{id: "item.thinking.signed.issuer", messages: turns(thinking("a", `{"signature":"S","issuer":"google"}`)), input: steps(thought(`[{"type":"text","text":"a"}]`, "S"))},
		{id: "item.thinking.signed.alone", messages: turns(own), input: steps(ownStep)},
		{id: "item.thinking.nothing", messages: turns(thinking("", `{}`) + "," + own + "," + text("a") + "," + thinking("", `{}`) + "," + text("b")), input: steps(ownStep, output("a"), output("b"))},
		{
			id: "item.thinking.joined", messages: turns(thinking("a", `{}`) + "," + thinking("b", `{"signature":"S"}`) + "," + thinking("c", `{"signature":"T"}`)),
			input: steps(thought(`[{"type":"text","text":"a"},{"type":"text","text":"b"}]`, "S"), thought(`[{"type":"text","text":"c"}]`, "T")),
		},
		{id: "item.thinking.foreign", messages: turns(thinking("a", `{"signature":"S","issuer":"anthropic"}`) + "," + text("b")), input: steps(placeholder, thought(`[{"type":"text","text":"a"}]`, ""), output("b"))},
		{id: "item.thinking.foreign.vertex", messages: turns(thinking("", `{"signature":"S","issuer":"google@vertex"}`) + "," + text("b")), input: steps(placeholder, output("b"))},
		{id: "item.thinking.redacted", messages: turns(thinking("_REDACTED_THINKING", `{"signature":"S"}`) + "," + text("b")), input: steps(placeholder, output("b"))},
		{
			id:       "item.inline_thinking",
			messages: turns(`{"type":"inline_thinking.done","data":"RDE=","mime_type":"image/png"},{"type":"inline_thinking.done","data":"RDI=","mime_type":"image/jpeg","fidelity":{"signature":"cw=="}},{"type":"inline_data.done","data":"STE=","mime_type":"image/png"}`),
			input: steps(thought(`[{"type":"image","data":"RDE=","mime_type":"image/png"},{"type":"image","data":"RDI=","mime_type":"image/jpeg"}]`, "cw=="),
				`{"type":"model_output","content":[{"type":"image","data":"STE=","mime_type":"image/png"}]}`),
		},
		{id: "item.tool_call", messages: turns(own + `,{"type":"tool_call.done","name":"f","arguments":{"n":18446744073709551615,"x":1.50},"tool_call_id":"c"}`), input: steps(ownStep, `{"type":"function_call","name":"f","arguments":{"n":18446744073709551615,"x":1.50},"id":"c"}`)},
		{id: "item.tool_call.name_as_id", messages: turns(own + `,{"type":"tool_call.done","name":"f","arguments":{},"tool_call_id":"f"}`), input: steps(ownStep, `{"type":"function_call","name":"f","arguments":{}}`)},
		{id: "item.tool_result", messages: turns(own+","+call("c", ""), result("c")), input: steps(ownStep, called("c"), given("c"))},
		{id: "item.tool_result.empty", messages: turns(own+","+call("c", ""), `{"type":"tool_result.done","text":"","tool_call_id":"c"}`), input: steps(ownStep, called("c"), `{"type":"function_result","name":"lookup","result":"","call_id":"c"}`)},
		{id: "item.tool_result.name_as_id", messages: turns(own+","+call("lookup", ""), result("lookup")), input: steps(ownStep, `{"type":"function_call","name":"lookup","arguments":{"sku":"A7"}}`, `{"type":"function_result","name":"lookup","result":"3 left"}`)},
		{id: "item.tool_result.unknown_id", messages: user(result("f")), input: `[{"type":"function_result","name":"f","result":"3 left"}]`},
		{id: "item.tool_result.images", messages: user(`{"type":"tool_result.done","text":"","tool_call_id":"f","images":["data:image/png;base64,QUJD"]}`), input: `[{"type":"function_result","name":"f","result":[{"type":"image","data":"QUJD","mime_type":"image/png"}]}]`},
		{
			id: "item.tool_result.images.text", messages: user(`{"type":"tool_result.done","text":"see","tool_call_id":"f","images":["`+remote+`","data:image/gif;base64,R0lG"]}`, text("and")),
			input: `[{"type":"function_result","name":"f","result":[{"type":"text","text":"see"},{"type":"image","data":"` + picture64 + `","mime_type":"image/png"},{"type":"image","data":"R0lG","mime_type":"image/gif"}]},{"type":"user_input","content":[{"type":"text","text":"and"}]}]`,
		},
		{id: "item.tool_result.images.broken", messages: user(`{"type":"tool_result.done","text":"","tool_call_id":"f","images":["data:image/png;base64,QUJD","data:x"]}`), err: "@messages[0].content_items[0].images[1]"},
		{id: "item.tool_result.is_error", messages: user(`{"type":"tool_result.done","text":"no","tool_call_id":"f","is_error":true}`), input: `[{"type":"function_result","name":"f","result":"no","is_error":true}]`},
		{id: "item.signed_text", messages: turns(text("a") + `,{"type":"text.done","text":"b","fidelity":{"signature":"S","issuer":"google"}}`), input: steps(placeholder, output("a"), thought("", "S"), output("b"))},
		{id: "item.signed_text.first", messages: turns(`{"type":"text.done","text":"b","fidelity":{"signature":"S"}}`), input: steps(thought("", "S"), output("b"))},
		{id: "item.signed_text.empty", messages: turns(`{"type":"text.done","text":"","fidelity":{"signature":"S"}}`), input: steps(thought("", "S"))},
		{id: "item.signed_call", messages: turns(thinking("a", `{}`) + "," + call("c", `,"fidelity":{"signature":"S"}`) + "," + call("d", "")), input: steps(thought(`[{"type":"text","text":"a"}]`, "S"), thought("", "S"), called("c"), called("d"))},
		{id: "item.signed_call.two", messages: turns(thinking("a", `{}`) + "," + call("c", `,"fidelity":{"signature":"S"}`) + "," + call("d", `,"fidelity":{"signature":"T"}`)), input: steps(thought(`[{"type":"text","text":"a"}]`, "S"), thought("", "S"), called("c"), thought("", "T"), called("d"))},
		{id: "item.signed_image", messages: turns(`{"type":"inline_data.done","data":"QUI=","mime_type":"image/png","fidelity":{"signature":"S"}}`), input: steps(thought("", "S"), `{"type":"model_output","content":[{"type":"image","data":"QUI=","mime_type":"image/png"}]}`)},
		{id: "item.signed_by_another", messages: turns(call("c", `,"fidelity":{"signature":"S","issuer":"gateway.test"}`)), input: steps(placeholder, called("c"))},
		{id: "item.signed_by_user", messages: user(`{"type":"inline_data.done","data":"QUI=","mime_type":"image/png","fidelity":{"signature":"S"}}`), input: input(`{"type":"image","data":"QUI=","mime_type":"image/png"}`)},
		{id: "item.embedding", messages: turns(`{"type":"embedding.done","embedding":[1]}`), err: "@messages[1].content_items[0] embedding.done"},

		// What stands before a turn.
		{id: "turn.placeholder.thought_not_first", messages: turns(text("a") + "," + thinking("t", `{"signature":"S"}`) + "," + text("b")), input: steps(placeholder, output("a"), thought(`[{"type":"text","text":"t"}]`, "S"), output("b"))},
		{id: "turn.placeholder.unsigned", messages: turns(text("a")), input: steps(placeholder, output("a"))},
		{id: "turn.placeholder.unsigned_thought", messages: turns(thinking("t", `{}`) + "," + text("a")), input: steps(placeholder, thought(`[{"type":"text","text":"t"}]`, ""), output("a"))},
		{id: "turn.placeholder.not_for_users", messages: user(result("f"), text("a")), input: `[{"type":"function_result","name":"f","result":"3 left"},{"type":"user_input","content":[{"type":"text","text":"a"}]}]`},
		{id: "turn.leading_thought_signed", messages: turns(thinking("t", `{}`) + "," + text("a") + "," + own), input: steps(thought(`[{"type":"text","text":"t"}]`, "OWN"), output("a"), ownStep)},
		{
			id: "turn.order.of_contents", messages: turns(own+","+text("a")+","+call("c", "")+","+text("b"), text("a")+","+result("c")+","+text("b")),
			input: steps(ownStep, output("a"), called("c"), output("b"), `{"type":"user_input","content":[{"type":"text","text":"a"}]}`, given("c"), `{"type":"user_input","content":[{"type":"text","text":"b"}]}`),
		},
		{
			id:       "turn.order",
			messages: turns(thinking("check stock", `{"signature":"U0lHLUE="}`)+","+text("One moment.")+","+call("c-9", ""), result("c-9")),
			input:    steps(thought(`[{"type":"text","text":"check stock"}]`, "U0lHLUE="), output("One moment."), called("c-9"), given("c-9")),
		},
		{
			id: "turn.unsigned_turns",
			messages: turns(text("Hm.")+","+call("k1", ""), result("k1"), thinking("ask tool", `{"encrypted_content":"x"}`)+","+call("k2", ""), result("k2"),
				call("k3", `,"fidelity":{"signature":"c2lnLTM="}`), result("k3")),
			input: steps(placeholder, output("Hm."), called("k1"), given("k1"), placeholder, thought(`[{"type":"text","text":"ask tool"}]`, ""), called("k2"), given("k2"),
				thought("", "c2lnLTM="), called("k3"), given("k3")),
		},
		{id: "turn.nothing", messages: `[]`, input: `[]`},
		{id: "turn.nothing.empty", messages: turns(text(""), text("")), input: hi},
	}...)
}

func TestGolden(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/picture" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, picture)
	}))
	defer server.Close()

	unseen := map[string]bool{}
	for _, id := range rows {
		if unseen[id] {
			t.Errorf("two rows %s", id)
		}
		unseen[id] = true
	}
	known := slices.Collect(maps.Keys(unseen))
	seen := map[string]bool{}
	for _, row := range goldens() {
		if seen[row.id] {
			t.Errorf("two cases %s", row.id)
		}
		seen[row.id] = true
		delete(unseen, row.id)
		found := false
		for _, id := range known {
			if row.id == id || strings.HasPrefix(row.id, id+".") {
				found = true
				if strings.HasPrefix(id, "level.") {
					delete(unseen, id)
				}
			}
		}
		if !found {
			t.Errorf("the case %s is of no row", row.id)
		}
		t.Run(row.id, func(t *testing.T) {
			or := func(text, otherwise string) string {
				if text == "" {
					return otherwise
				}
				return text
			}
			model := or(row.model, "gemini-3.5-flash")
			config := parse[mmsp.Config](t, or(row.config, "{}"))
			messages := parse[[]mmsp.Message](t, strings.ReplaceAll(or(row.messages, turns()), remote, server.URL+"/picture"))
			client := testClient(t, model, nil)
			request, err := client.Prepare(t.Context(), messages, &config)
			if row.err != "" {
				place, word, _ := strings.Cut(row.err, " ")
				path, isPath := strings.CutPrefix(place, "@")
				var unsupported *mmsp.UnsupportedParameterError
				var invalid *mmsp.InvalidRequestError
				if isPath && (!errors.As(err, &invalid) || invalid.Param != path) ||
					!isPath && (!errors.As(err, &unsupported) || unsupported.Parameter != place || unsupported.Client != class) || !strings.Contains(err.Error(), word) {
					t.Fatalf("error %v, want one for %s", err, row.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := or(row.body, `{"model":"`+model+`","stream":true,"store":false`+row.fields+`,"input":`+or(row.input, hi)+`}`)
			if string(request.Body) != want {
				t.Errorf("\n got %s\nwant %s", request.Body, want)
			}
			url := "https://generativelanguage.googleapis.com/v1beta/interactions"
			if row.body != "" {
				url = "https://generativelanguage.googleapis.com/v1beta/models/" + strings.TrimPrefix(model, "models/") + ":batchEmbedContents"
			}
			if request.Method != http.MethodPost || request.URL != url || request.Header.Get("Content-Type") != "application/json" || request.Header.Get("X-Goog-Api-Key") != "" {
				t.Errorf("%s %s %v", request.Method, request.URL, request.Header)
			}
			// The same messages make the same bytes, and a longer conversation begins with them.
			again, err := client.Prepare(t.Context(), messages, &config)
			if err != nil || string(again.Body) != string(request.Body) {
				t.Errorf("%v\n then %s", err, again.Body)
			}
			if row.body == "" && !client.speaks() {
				longer, err := client.Prepare(t.Context(), append(messages, mmsp.UserMessage(mmsp.Text("More"))), &config)
				if prefix := strings.TrimSuffix(want, "]}"); err != nil || !strings.HasPrefix(string(longer.Body), prefix) {
					t.Errorf("%v\nlonger %s", err, longer.Body)
				}
			}
		})
	}
	for id := range unseen {
		t.Errorf("the row %s has no case", id)
	}
}

// What a request repeats of its history is short: an answer to a call repeats the name of the function, a turn of a script
// that of its speaker.
func TestRepeats(t *testing.T) {
	voices := &mmsp.Config{TTSConfig: []mmsp.TTSVoice{{Voice: "Kore", Speaker: "a"}, {Voice: "Puck", Speaker: "b"}}}
	named := func(n int) []mmsp.Message {
		return []mmsp.Message{mmsp.AssistantMessage(mmsp.ToolCall("k", strings.Repeat("n", n), "")), mmsp.UserMessage(mmsp.ToolResult("k", ""))}
	}
	turns := func(n int) []mmsp.Message {
		return []mmsp.Message{mmsp.UserMessage(mmsp.Text(strings.Repeat("a:x\n", n)))}
	}
	for _, row := range []struct {
		model    string
		messages []mmsp.Message
		config   *mmsp.Config
		param    string // that is wrong
	}{
		{"gemini-3.8-flash", named(maxNameBytes), &mmsp.Config{}, ""},
		{"gemini-3.8-flash", named(maxNameBytes + 1), &mmsp.Config{}, "messages[0].content_items[0].name"},
		{"gemini-3.8-flash-tts", turns(maxTurns), voices, ""},
		{"gemini-3.8-flash-tts", turns(maxTurns + 1), voices, "messages[0]"},
	} {
		_, err := testClient(t, row.model, nil).Prepare(t.Context(), row.messages, row.config)
		var invalid *mmsp.InvalidRequestError
		if errors.As(err, &invalid) != (row.param != "") || invalid != nil && invalid.Param != row.param {
			t.Errorf("%s: %v, want one for %q", row.model, err, row.param)
		}
	}
}

// TestManyImages: the pictures of a request are bounded together.
func TestManyImages(t *testing.T) {
	pictures := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("GIF89a\x01\x00\x01\x00\x00\x00\x00;")) }))
	defer pictures.Close()
	items := slices.Repeat([]mmsp.Item{mmsp.ImageURL(pictures.URL)}, 513)
	_, err := testClient(t, "gemini-3.8-flash", nil).Prepare(t.Context(), []mmsp.Message{mmsp.UserMessage(items...)}, &mmsp.Config{})
	var invalid *mmsp.InvalidRequestError
	if !errors.As(err, &invalid) || invalid.Param != "messages[0].content_items[512].image_url" {
		t.Error(err)
	}
}
