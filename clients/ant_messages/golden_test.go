package antmessages

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/prism-shadow/mmsp-go"
)

// rows names everything that decides what a request says. Each has a case below, and each case is of a row.
var rows = strings.Fields(`
	top_p top_p.1 top_k stop_sequences stop_sequences.none seed presence_penalty presence_penalty.0 frequency_penalty
	frequency_penalty.0 parallel.true parallel.false format.text format.json_object format.json_schema budget budget.0
	budget.dynamic budget.with_level verbosity service_tier service_tier.default service_tier.auto user metadata
	user.over_metadata tools.strict tools.strict.held tools.strict.many format.with_effort parallel.false.with_tools parallel.false.required
	parallel.false.no_call inline.pdf inline.text inline.text.not_utf8 inline.image inline.assistant tool_result.document tool_result.document.named
	always system_prompt system_prompt.empty max_tokens max_tokens.0 temperature temperature.1
	tools tools.empty tools.without_parameters tools.other_keys
	ignored.image_config ignored.tts_config ignored.embedding_config

	thinking.unset thinking.none thinking.low thinking.medium thinking.high thinking.xhigh thinking.max
	thinking.unset.4-6 thinking.none.4-6 thinking.low.4-6 thinking.medium.4-6 thinking.high.4-6 thinking.xhigh.4-6 thinking.max.4-6
	thinking.unset.sonnet-5-5 thinking.none.sonnet-5-5 thinking.low.sonnet-5-5 thinking.medium.sonnet-5-5 thinking.high.sonnet-5-5 thinking.xhigh.sonnet-5-5 thinking.max.sonnet-5-5
	summary.true.unset summary.false.unset summary.true.none summary.false.none summary.true.high

	choice.auto choice.none choice.required choice.one choice.many choice.without_tools
	choice.required.opus-5-5 choice.one.fable-5-1 choice.required.with_thinking choice.one.without_thinking

	fast.true fast.4-6 fast.false
	cache.absent cache.enable cache.enhance cache.disable

	messages.none messages.order messages.system_last
	text text.blank text.turn_of_nothing
	image.url image.data image.data.not_base64 image.data.without_type
	thinking.signed thinking.signed.without_text thinking.unsigned thinking.unsigned.empty thinking.unsigned.foreign thinking.foreign thinking.other_fidelity thinking.other_protocol
	redacted redacted.without_data redacted.foreign
	tool_call tool_call.numbers tool_call.foreign_id
	tool_result tool_result.images tool_result.images_alone tool_result.error tool_result.empty tool_result.bad_image
	refused.inline_data refused.inline_thinking refused.embedding
`)

// golden is a config and messages, and the request that they make, byte for byte, or the parameter or place that is refused.
type golden struct {
	row, model, config, messages string
	want, refused                string
}

const (
	head  = `"max_tokens":64000,`
	tail  = `"stream":true`
	ask   = `{"role":"user","content_items":[{"type":"text.done","text":"Hi"}]}`
	hello = `[` + ask + `]`
	hi    = `{"role":"user","content":[{"type":"text","text":"Hi"}]}`
)

// sets: a config adds fields to the request.
func sets(row, model, config, fields string) golden {
	return golden{row: row, model: model, config: config, messages: hello, want: `{"model":"` + model + `",` + fields + `,"messages":[` + hi + `]}`}
}

func refuses(row, model, config, parameter string) golden {
	return golden{row: row, model: model, config: config, messages: hello, refused: parameter}
}

// says: messages become these.
func says(row, messages, wire string) golden {
	return golden{row: row, model: "m", config: "{}", messages: messages, want: `{"model":"m",` + head + tail + `,"messages":[` + wire + `]}`}
}

func invalid(row, messages, place string) golden {
	return golden{row: row, model: "m", config: "{}", messages: messages, refused: place}
}

func user(items string) string { return `[{"role":"user","content_items":[` + items + `]}]` }
func assistant(items string) string {
	return `[` + ask + `,{"role":"assistant","content_items":[` + items + `]}]`
}
func userTurn(blocks string) string { return `{"role":"user","content":[` + blocks + `]}` }
func assistantTurn(blocks string) string {
	return hi + `,{"role":"assistant","content":[` + blocks + `]}`
}

func effort(e string) string {
	return fmt.Sprintf(`"thinking":{"type":"adaptive"},"output_config":{"effort":"%s"},`, e)
}

// levels are the cases of a model: what unset, none, low, medium, high, xhigh and max add.
func levels(generation, model string, fields [7]string) (cases []golden) {
	for i, level := range []string{"unset", "none", "low", "medium", "high", "xhigh", "max"} {
		config := `{"thinking_level":"` + level + `"}`
		if level == "unset" {
			config = `{}`
		}
		cases = append(cases, sets(strings.TrimSuffix("thinking."+level+"."+generation, "."), model, config, head+fields[i]+tail))
	}
	return cases
}

// all is what every model gets: no id is looked into.
var all = [7]string{"", `"thinking":{"type":"disabled"},`, effort("low"), effort("medium"), effort("high"), effort("xhigh"), effort("max")}

var cases = slices.Concat(
	levels("", "glm-5.2", all),
	levels("4-6", "claude-sonnet-4-6", all),
	levels("sonnet-5-5", "claude-sonnet-5-5", all),
	[]golden{
		sets("always", "m-1", `{}`, head+tail),
		sets("system_prompt", "m-1", `{"system_prompt":"Be <brief>."}`, head+tail+`,"system":"Be <brief>."`),
		sets("system_prompt.empty", "m-1", `{"system_prompt":""}`, head+tail), // endpoints refuse empty text
		sets("max_tokens", "m-1", `{"max_tokens":100}`, `"max_tokens":100,`+tail),
		sets("max_tokens.0", "m-1", `{"max_tokens":0}`, `"max_tokens":0`), // the cache is warmed, not streamed
		sets("temperature", "m-1", `{"temperature":0.5}`, head+`"temperature":0.5,`+tail),
		sets("temperature", "m-1", `{"temperature":0}`, head+`"temperature":0,`+tail),
		sets("temperature.1", "m-1", `{"temperature":1.0}`, head+`"temperature":1,`+tail),
		sets("tools", "m-1", `{"tools":[{"name":"f","description":"d","parameters":{"type":"object","required":["z","a"]}}]}`, head+tail+`,"tools":[{"name":"f","description":"d","input_schema":{"type":"object","required":["z","a"]}}]`),
		sets("tools.empty", "m-1", `{"tools":[]}`, head+tail+`,"tools":[]`),
		sets("tools.without_parameters", "m-1", `{"tools":[{"name":"g","description":""}]}`, head+tail+`,"tools":[{"name":"g"}]`),
		sets("tools.other_keys", "m-1", `{"tools":[{"strict":true,"name":"f","parameters":{},"x":[1]}]}`, head+tail+`,"tools":[{"name":"f","input_schema":{},"strict":true,"x":[1]}]`),
		sets("ignored.image_config", "m-1", `{"image_config":{"aspect_ratio":"1:1"}}`, head+tail),
		sets("ignored.tts_config", "m-1", `{"tts_config":[{"voice":"v"}]}`, head+tail),
		sets("ignored.embedding_config", "m-1", `{"embedding_config":{"dimensions":3}}`, head+tail),

		sets("summary.true.unset", "m-1", `{"thinking_summary":true}`, head+`"thinking":{"type":"adaptive","display":"summarized"},`+tail),
		sets("summary.false.unset", "m-1", `{"thinking_summary":false}`, head+`"thinking":{"type":"adaptive","display":"omitted"},`+tail),
		sets("summary.true.none", "m-1", `{"thinking_summary":true,"thinking_level":"none"}`, head+`"thinking":{"type":"disabled"},`+tail),
		sets("summary.false.none", "m-1", `{"thinking_summary":false,"thinking_level":"none"}`, head+`"thinking":{"type":"disabled"},`+tail),
		sets("summary.true.high", "m-1", `{"thinking_summary":true,"thinking_level":"high"}`, head+`"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"high"},`+tail),

		sets("choice.auto", "m-1", `{"tools":[{"name":"f"}],"tool_choice":"auto"}`, head+tail+`,"tools":[{"name":"f"}],"tool_choice":{"type":"auto"}`),
		sets("choice.without_tools", "m-1", `{"tool_choice":"auto"}`, head+tail+`,"tool_choice":{"type":"auto"}`),
		sets("choice.none", "m-1", `{"tool_choice":"none"}`, head+tail+`,"tool_choice":{"type":"none"}`),
		sets("choice.required", "m-1", `{"tool_choice":"required"}`, head+tail+`,"tool_choice":{"type":"any"}`),
		sets("choice.one", "m-1", `{"tool_choice":["f"]}`, head+tail+`,"tool_choice":{"type":"tool","name":"f"}`),
		refuses("choice.many", "m-1", `{"tool_choice":["f","g"]}`, "tool_choice"),
		sets("choice.required.opus-5-5", "claude-opus-5-5", `{"tool_choice":"required"}`, head+tail+`,"tool_choice":{"type":"any"}`),
		sets("choice.one.fable-5-1", "claude-fable-5-1", `{"tool_choice":["f"]}`, head+tail+`,"tool_choice":{"type":"tool","name":"f"}`),
		refuses("choice.required.with_thinking", "m-1", `{"tool_choice":"required","thinking_level":"high"}`, "tool_choice"), // endpoints refuse the two together
		sets("choice.one.without_thinking", "m-1", `{"tool_choice":["f"],"thinking_level":"none"}`, head+`"thinking":{"type":"disabled"},`+tail+`,"tool_choice":{"type":"tool","name":"f"}`),

		sets("fast.true", "m-1", `{"fast_mode":true}`, head+`"speed":"fast",`+tail),
		sets("fast.4-6", "claude-opus-4-6", `{"fast_mode":true}`, head+`"speed":"fast",`+tail),
		sets("fast.false", "m-1", `{"fast_mode":false}`, head+tail),

		sets("cache.absent", "m-1", `{}`, head+tail),
		sets("cache.enable", "m-1", `{"prompt_caching":"enable"}`, head+tail),
		refuses("cache.enhance", "m-1", `{"prompt_caching":"enhance"}`, "prompt_caching"),
		refuses("cache.disable", "m-1", `{"prompt_caching":"disable"}`, "prompt_caching"),

		says("messages.none", `[]`, ``),
		says(
			"messages.order",
			`[`+ask+`,{"role":"assistant","content_items":[{"type":"thinking.done","thinking":"check stock","fidelity":{"signature":"U0lHLUE="}},
				{"type":"text.done","text":"One moment."},{"type":"tool_call.done","name":"lookup","arguments":{"sku":"A7"},"tool_call_id":"c-9"}]},
				{"role":"user","content_items":[{"type":"tool_result.done","text":"3 left","tool_call_id":"c-9"}]}]`,
			hi+`,{"role":"assistant","content":[{"type":"thinking","thinking":"check stock","signature":"U0lHLUE="},`+
				`{"type":"text","text":"One moment."},{"type":"tool_use","id":"c-9","name":"lookup","input":{"sku":"A7"}}]},`+
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c-9","content":[{"type":"text","text":"3 left"}]}]}`,
		),
		{ // the last thing that changes from turn to turn stands last
			row: "messages.system_last", model: "m", config: `{"tools":[{"name":"f"}],"system_prompt":"s","tool_choice":"auto","thinking_level":"low"}`, messages: hello,
			want: `{"model":"m",` + head + effort("low") + tail + `,"tools":[{"name":"f"}],"tool_choice":{"type":"auto"},"system":"s","messages":[` + hi + `]}`,
		},
		says("text", user(`{"type":"text.done","text":" <b>é\n"},{"type":"text.done","text":"b"}`), userTurn(`{"type":"text","text":" <b>é\n"},{"type":"text","text":"b"}`)),
		says("text.blank", user(`{"type":"text.done","text":""},{"type":"text.done","text":" \n"},{"type":"text.done","text":"a"}`), userTurn(`{"type":"text","text":"a"}`)),
		says("text.turn_of_nothing", `[`+ask+`,{"role":"assistant","content_items":[{"type":"text.done","text":""}]},{"role":"user","content_items":[]},`+ask+`]`, hi+`,`+hi),
		says("image.url", user(`{"type":"image_url.done","image_url":"https://x.example/a.png"}`), userTurn(`{"type":"image","source":{"type":"url","url":"https://x.example/a.png"}}`)),
		says("image.data", user(`{"type":"image_url.done","image_url":"data:image/png;base64,QUJD"}`), userTurn(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}}`)),
		invalid("image.data.not_base64", user(`{"type":"image_url.done","image_url":"data:image/png,ABC"}`), "messages[0].content_items[0].image_url"),
		invalid("image.data.without_type", user(`{"type":"image_url.done","image_url":"Data:;base64,QUJD"}`), "messages[0].content_items[0].image_url"),

		// Thinking goes back where it came from, and nowhere else.
		says("thinking.signed", assistant(`{"type":"thinking.done","thinking":"t","fidelity":{"signature":"s","issuer":"gw.example","other":1}}`), assistantTurn(`{"type":"thinking","thinking":"t","signature":"s"}`)),
		says("thinking.signed", assistant(`{"type":"thinking.done","thinking":"t","fidelity":{"signature":"s"}}`), assistantTurn(`{"type":"thinking","thinking":"t","signature":"s"}`)),
		says("thinking.signed.without_text", assistant(`{"type":"thinking.done","thinking":"","fidelity":{"signature":"s","issuer":"gw.example"}}`), assistantTurn(`{"type":"thinking","thinking":"","signature":"s"}`)),
		says("thinking.unsigned", assistant(`{"type":"thinking.done","thinking":"t","fidelity":{}},{"type":"text.done","text":"a"}`), assistantTurn(`{"type":"thinking","thinking":"t"},{"type":"text","text":"a"}`)),
		says("thinking.unsigned", assistant(`{"type":"thinking.done","thinking":"t"}`), assistantTurn(`{"type":"thinking","thinking":"t"}`)),
		says("thinking.unsigned.empty", assistant(`{"type":"thinking.done","thinking":""}`), hi),
		says("thinking.unsigned.foreign", assistant(`{"type":"thinking.done","thinking":"t","fidelity":{"encrypted_content":"x","issuer":"openai"}},{"type":"text.done","text":"a"}`), assistantTurn(`{"type":"text","text":"a"}`)),
		says("thinking.foreign", assistant(`{"type":"thinking.done","thinking":"t","fidelity":{"signature":"s","issuer":"google"}},{"type":"text.done","text":"a"}`), assistantTurn(`{"type":"text","text":"a"}`)),
		says("thinking.foreign", assistant(`{"type":"thinking.done","thinking":"t","fidelity":{"signature":"s","issuer":"anthropic"}},{"type":"text.done","text":"a"}`), assistantTurn(`{"type":"text","text":"a"}`)),
		says("thinking.other_protocol", assistant(`{"type":"thinking.done","thinking":"t","fidelity":{"reasoning_field":"reasoning"}},{"type":"thinking.done","thinking":"u","fidelity":{"channel":"summary"}},{"type":"text.done","text":"a"}`), assistantTurn(`{"type":"text","text":"a"}`)),
		says("thinking.other_fidelity", assistant(`{"type":"thinking.done","thinking":"t","fidelity":{"signature":7}},{"type":"text.done","text":"a"}`), assistantTurn(`{"type":"thinking","thinking":"t"},{"type":"text","text":"a"}`)),
		says("redacted", assistant(`{"type":"thinking.done","thinking":"_REDACTED_THINKING","fidelity":{"signature":"RU5D","issuer":"gw.example"}}`), assistantTurn(`{"type":"redacted_thinking","data":"RU5D"}`)),
		says("redacted.without_data", assistant(`{"type":"thinking.done","thinking":"_REDACTED_THINKING"},{"type":"text.done","text":"a"}`), assistantTurn(`{"type":"text","text":"a"}`)),
		says("redacted.foreign", assistant(`{"type":"thinking.done","thinking":"_REDACTED_THINKING","fidelity":{"signature":"s","issuer":"anthropic"}},{"type":"text.done","text":"a"}`), assistantTurn(`{"type":"text","text":"a"}`)),

		says("tool_call", assistant(`{"type":"tool_call.done","name":"g","tool_call_id":"b","arguments":{},"fidelity":{"signature":"s"}}`), assistantTurn(`{"type":"tool_use","id":"b","name":"g","input":{}}`)),
		says(
			"tool_call.numbers", assistant(`{"type":"tool_call.done","name":"f","tool_call_id":"a","arguments":{"z":9007199254740993,"a":18446744073709551615,"e":1.0e-2}}`),
			assistantTurn(`{"type":"tool_use","id":"a","name":"f","input":{"z":9007199254740993,"a":18446744073709551615,"e":1.0e-2}}`),
		),
		says(
			"tool_call.foreign_id",
			assistant(`{"type":"tool_call.done","name":"f","arguments":{},"tool_call_id":"functions.f:0"},{"type":"tool_result.done","text":"r","tool_call_id":"functions.f:0"}`),
			assistantTurn(`{"type":"tool_use","id":"functions_2ef_3a0","name":"f","input":{}},{"type":"tool_result","tool_use_id":"functions_2ef_3a0","content":[{"type":"text","text":"r"}]}`),
		),
		says("tool_result", user(`{"type":"tool_result.done","text":"a","tool_call_id":"1"}`), userTurn(`{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"a"}]}`)),
		says(
			"tool_result.images", user(`{"type":"tool_result.done","text":"a","tool_call_id":"1","images":["data:image/png;base64,QUJD","https://x.example/b.png"]}`),
			userTurn(`{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}},{"type":"image","source":{"type":"url","url":"https://x.example/b.png"}}]}`),
		),
		says("tool_result.images_alone", user(`{"type":"tool_result.done","text":"","tool_call_id":"2","images":["https://x.example/b.png"]}`), userTurn(`{"type":"tool_result","tool_use_id":"2","content":[{"type":"image","source":{"type":"url","url":"https://x.example/b.png"}}]}`)),
		says("tool_result.error", user(`{"type":"tool_result.done","text":"broken","tool_call_id":"3","is_error":true}`), userTurn(`{"type":"tool_result","tool_use_id":"3","content":[{"type":"text","text":"broken"}],"is_error":true}`)),
		says("tool_result.empty", user(`{"type":"tool_result.done","text":"","tool_call_id":"4"}`), userTurn(`{"type":"tool_result","tool_use_id":"4"}`)),
		invalid("tool_result.bad_image", user(`{"type":"tool_result.done","text":"a","tool_call_id":"1","images":["https://x.example/a.png","data:x"]}`), "messages[0].content_items[0].images[1]"),
		sets("top_p", "m-1", `{"top_p":0.9}`, head+`"top_p":0.9,`+tail),
		sets("top_p.1", "m-1", `{"top_p":1}`, head+`"top_p":1,`+tail),
		sets("top_k", "m-1", `{"top_k":40}`, head+`"top_k":40,`+tail),
		sets("stop_sequences", "m-1", `{"stop_sequences":["END","<\n"]}`, head+`"stop_sequences":["END","<\n"],`+tail),
		sets("stop_sequences.none", "m-1", `{"stop_sequences":[]}`, head+tail),
		refuses("seed", "m-1", `{"seed":9007199254740993}`, "seed"),
		refuses("presence_penalty", "m-1", `{"presence_penalty":-0.5}`, "presence_penalty"),
		sets("presence_penalty.0", "m-1", `{"presence_penalty":0}`, head+tail),
		refuses("frequency_penalty", "m-1", `{"frequency_penalty":1.5}`, "frequency_penalty"),
		sets("frequency_penalty.0", "m-1", `{"frequency_penalty":0}`, head+tail),
		sets("parallel.true", "m-1", `{"parallel_tool_calls":true}`, head+tail),
		sets("parallel.false", "m-1", `{"parallel_tool_calls":false}`, head+tail),
		sets("format.text", "m-1", `{"response_format":{"type":"text"}}`, head+tail),
		refuses("format.json_object", "m-1", `{"response_format":{"type":"json_object"}}`, "response_format"),
		sets("format.json_schema", "m-1", `{"response_format":{"type":"json_schema","name":"log","description":"A <log>","schema":{"type":"object","properties":{"z":{"maximum":9007199254740993},"a":{"$ref":"#/$defs/d"}},"$defs":{"d":{"type":"string"}}},"strict":true}}`, head+`"output_config":{"format":{"type":"json_schema","schema":{"type":"object","properties":{"z":{"description":"maximum 9007199254740993"},"a":{"$ref":"#/$defs/d"}},"$defs":{"d":{"type":"string"}},"additionalProperties":false}}},`+tail),
		sets("budget", "m-1", `{"thinking_budget":20000}`, head+`"thinking":{"type":"adaptive"},"output_config":{"effort":"high"},`+tail),
		sets("budget.0", "m-1", `{"thinking_budget":0}`, head+`"thinking":{"type":"disabled"},`+tail),
		sets("budget.dynamic", "m-1", `{"thinking_budget":-1}`, head+tail),
		sets("budget.with_level", "m-1", `{"thinking_budget":20000,"thinking_level":"low"}`, head+`"thinking":{"type":"adaptive"},"output_config":{"effort":"low"},`+tail),
		refuses("verbosity", "m-1", `{"verbosity":"low"}`, "verbosity"),
		refuses("service_tier", "m-1", `{"service_tier":"flex"}`, "service_tier"),
		sets("service_tier.default", "m-1", `{"service_tier":"default"}`, head+`"service_tier":"standard_only",`+tail),
		sets("service_tier.auto", "m-1", `{"service_tier":"auto"}`, head+`"service_tier":"auto",`+tail),
		sets("user", "m-1", `{"user":"u-4711"}`, head+`"metadata":{"user_id":"u-4711"},`+tail),
		sets("metadata", "m-1", `{"metadata":{"trip":"9","user_id":"m-1"}}`, head+`"metadata":{"user_id":"m-1"},`+tail),
		sets("user.over_metadata", "m-1", `{"user":"u-4711","metadata":{"user_id":"m-1"}}`, head+`"metadata":{"user_id":"u-4711"},`+tail),
		sets("tools.strict", "m-1", `{"tools":[{"name":"f","description":"d","parameters":{},"strict":false}]}`, head+tail+`,"tools":[{"name":"f","description":"d","input_schema":{},"strict":false}]`),
		sets("tools.strict.held", "m-1", `{"tools":[{"name":"f","description":"d","parameters":{"properties":{"n":{"minimum":1}}},"strict":true}]}`, head+tail+`,"tools":[{"name":"f","description":"d","input_schema":{"properties":{"n":{"description":"minimum 1"}},"additionalProperties":false},"strict":true}]`),
		sets("tools.strict.many", "m-1", `{"tools":[`+strings.Repeat(`{"name":"f","description":"d","strict":true},`, 20)+`{"name":"g","description":"d","strict":true}]}`, head+tail+`,"tools":[`+strings.Repeat(`{"name":"f","description":"d","strict":true},`, 20)+`{"name":"g","description":"d"}]`),
		sets("format.with_effort", "m-1", `{"thinking_level":"high","response_format":{"type":"json_schema","schema":{"type":"object"}}}`, head+`"thinking":{"type":"adaptive"},"output_config":{"effort":"high","format":{"type":"json_schema","schema":{"type":"object"}}},`+tail),
		sets("parallel.false.with_tools", "m-1", `{"tools":[{"name":"f","description":"d"}],"parallel_tool_calls":false}`, head+tail+`,"tools":[{"name":"f","description":"d"}],"tool_choice":{"type":"auto","disable_parallel_tool_use":true}`),
		sets("parallel.false.required", "m-1", `{"tools":[{"name":"f","description":"d"}],"parallel_tool_calls":false,"tool_choice":"required"}`, head+tail+`,"tools":[{"name":"f","description":"d"}],"tool_choice":{"type":"any","disable_parallel_tool_use":true}`),
		sets("parallel.false.no_call", "m-1", `{"tools":[{"name":"f","description":"d"}],"parallel_tool_calls":false,"tool_choice":"none"}`, head+tail+`,"tools":[{"name":"f","description":"d"}],"tool_choice":{"type":"none"}`),
		says("inline.pdf", user(`{"type":"inline_data.done","data":"QUJD","mime_type":"application/pdf","filename":"<log>.pdf"}`), userTurn(`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"QUJD"},"title":"<log>.pdf"}`)),
		says("inline.text", user(`{"type":"inline_data.done","data":"YSxiCg==","mime_type":"text/csv"}`), userTurn(`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"a,b\n"}}`)),
		invalid("inline.text.not_utf8", user(`{"type":"inline_data.done","data":"/w==","mime_type":"text/csv"}`), "messages[0].content_items[0]"),
		says("inline.image", user(`{"type":"inline_data.done","data":"QUJD","mime_type":"image/png"}`), userTurn(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}}`)),
		invalid("inline.assistant", assistant(`{"type":"inline_data.done","data":"QUJD","mime_type":"image/png"}`), "messages[1].content_items[0]"),
		says("tool_result.document", user(`{"type":"tool_result.done","text":"a","tool_call_id":"1","images":["data:application/pdf;base64,QUJD"]}`), userTurn(`{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"a"},{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"QUJD"}}]}`)),
		says("tool_result.document.named", user(`{"type":"tool_result.done","text":"a","tool_call_id":"1","images":["data:application/pdf;name=log%20%3B1.pdf;base64,QUJD"]}`), userTurn(`{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"a"},{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"QUJD"},"title":"log ;1.pdf"}]}`)),
		invalid("refused.inline_data", user(`{"type":"inline_data.done","data":"QUJD","mime_type":"audio/wav"}`), "messages[0].content_items[0]"),
		invalid("refused.inline_thinking", assistant(`{"type":"inline_thinking.done","data":"QUJD","mime_type":"image/png"}`), "messages[1].content_items[0]"),
		invalid("refused.embedding", user(`{"type":"text.done","text":"a"},{"type":"embedding.done","embedding":[1]}`), "messages[0].content_items[1]"),
	},
)

func TestGolden(t *testing.T) {
	missing := slices.Clone(rows)
	for _, c := range cases {
		if !slices.Contains(rows, c.row) {
			t.Errorf("the case %s is of no row", c.row)
		}
		missing = slices.DeleteFunc(missing, func(row string) bool { return row == c.row })
		t.Run(c.row, func(t *testing.T) {
			client := testClient(t, c.model, nil)
			header := http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}}
			config := parse[mmsp.Config](t, c.config)
			if config.FastMode {
				header.Set("Anthropic-Beta", "fast-mode-2026-02-01")
			}
			request, err := client.Prepare(t.Context(), parse[[]mmsp.Message](t, c.messages), &config)
			var parameter *mmsp.UnsupportedParameterError
			var place *mmsp.InvalidRequestError
			switch {
			case c.refused != "":
				if !(errors.As(err, &parameter) && parameter.Parameter == c.refused && parameter.Client == class) && !(errors.As(err, &place) && place.Param == c.refused) {
					t.Errorf("error %v, want one for %s", err, c.refused)
				}
			case err != nil:
				t.Error(err)
			case string(request.Body) != c.want:
				t.Errorf("%s\n got %s\nwant %s", c.config, request.Body, c.want)
			case request.Method != "POST" || request.URL != "https://gw.example/anthropic/v1/messages?beta=true" || !reflect.DeepEqual(request.Header, header):
				t.Errorf("%s %s %v", request.Method, request.URL, request.Header)
			}
		})
	}
	if len(missing) > 0 {
		t.Errorf("rows without a case: %s", missing)
	}
}
