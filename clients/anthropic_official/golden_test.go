package anthropicofficial

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
	budget.4-6 budget.4-6.summary budget.4-6.with_level budget.4-6.too_small budget.4-6.too_large service_tier.bedrock
	user.bedrock
	always bedrock.always bedrock.escaped_id bedrock.betas
	system_prompt system_prompt.empty max_tokens max_tokens.0 max_tokens.0.bedrock temperature.1 temperature.other
	tools tools.empty tools.without_parameters tools.other_keys
	ignored.image_config ignored.tts_config ignored.embedding_config

	thinking.unset.opus-5-5 thinking.none.opus-5-5 thinking.low.opus-5-5 thinking.medium.opus-5-5 thinking.high.opus-5-5 thinking.xhigh.opus-5-5 thinking.max.opus-5-5
	thinking.unset.fable-5-1 thinking.none.fable-5-1 thinking.low.fable-5-1 thinking.medium.fable-5-1 thinking.high.fable-5-1 thinking.xhigh.fable-5-1 thinking.max.fable-5-1
	thinking.unset.haiku-5-5 thinking.none.haiku-5-5 thinking.low.haiku-5-5 thinking.medium.haiku-5-5 thinking.high.haiku-5-5 thinking.xhigh.haiku-5-5 thinking.max.haiku-5-5
	thinking.unset.sonnet-5-5 thinking.none.sonnet-5-5 thinking.low.sonnet-5-5 thinking.medium.sonnet-5-5 thinking.high.sonnet-5-5 thinking.xhigh.sonnet-5-5 thinking.max.sonnet-5-5
	thinking.unset.4-6 thinking.none.4-6 thinking.low.4-6 thinking.medium.4-6 thinking.high.4-6 thinking.xhigh.4-6 thinking.max.4-6
	thinking.unset.other thinking.none.other thinking.low.other thinking.medium.other thinking.high.other thinking.xhigh.other thinking.max.other
	thinking.case_of_the_id thinking.bedrock_id

	summary.true.unset summary.false.unset summary.true.unset.sonnet-5-5
	summary.true.none.opus-5-5 summary.true.none.sonnet-5-5 summary.false.none.sonnet-5-5 summary.true.none.4-6 summary.true.none.other summary.false.high

	choice.auto choice.none choice.required choice.one choice.many choice.without_tools choice.with_thinking
	choice.auto.opus-5-5 choice.none.opus-5-5
	choice.required.opus-5-5 choice.required.sonnet-5-5 choice.required.haiku-5-5 choice.required.fable-5-1
	choice.one.opus-5-5 choice.one.sonnet-5-5 choice.one.haiku-5-5 choice.one.fable-5-1

	fast.opus-5-5 fast.opus-5 fast.sonnet-5 fast.false fast.4-6 fast.sonnet-5-5 fast.haiku-5-5 fast.fable-5-1 fast.bedrock

	cache.absent cache.enable cache.enhance cache.disable
	cache.bedrock.absent cache.bedrock.enable cache.bedrock.enhance cache.bedrock.disable
	cache.bedrock.no_user_message cache.bedrock.assistant_last cache.bedrock.tool_result

	messages.none messages.order messages.system_last
	text text.blank text.turn_of_nothing
	image.url image.data image.data.not_base64 image.data.without_type
	thinking.signed thinking.signed.without_text thinking.unsigned thinking.unsigned.alone thinking.foreign thinking.other_fidelity thinking.bedrock thinking.bedrock.foreign
	redacted redacted.without_data redacted.foreign
	tool_call tool_call.numbers tool_call.foreign_id
	tool_result tool_result.images tool_result.images_alone tool_result.error tool_result.empty tool_result.bad_image
	refused.inline_data refused.inline_thinking refused.embedding
`)

// golden is a config and messages, and the request that they make, byte for byte, or the parameter or place that is refused.
type golden struct {
	row, model       string
	bedrock          bool
	headers          map[string]string // default headers of the client
	config, messages string
	want, refused    string
}

const (
	head    = `"max_tokens":64000,`
	tail    = `"cache_control":{"type":"ephemeral"},"stream":true`
	awsHead = `{"anthropic_version":"bedrock-2023-05-31","max_tokens":64000`
	hi      = `{"role":"user","content":[{"type":"text","text":"Hi"}]}`
	ask     = `{"role":"user","content_items":[{"type":"text.done","text":"Hi"}]}`
	hello   = `[` + ask + `]`
	marked  = `{"role":"user","content":[{"type":"text","text":"Hi","cache_control":{"type":"ephemeral","ttl":"5m"}}]}`
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

// bedrock: the same, over AWS.
func bedrock(row, config, messages, wire string) golden {
	return golden{row: row, model: "m", bedrock: true, config: config, messages: messages, want: awsHead + `,"messages":[` + wire + `]}`}
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
		cases = append(cases, sets("thinking."+level+"."+generation, model, config, head+fields[i]+tail))
	}
	return cases
}

var cases = slices.Concat(
	levels("opus-5-5", "claude-opus-5-5", [7]string{"", effort("low"), effort("low"), effort("medium"), effort("high"), effort("xhigh"), effort("max")}),
	levels("fable-5-1", "claude-fable-5-1", [7]string{"", effort("low"), effort("low"), effort("medium"), effort("high"), effort("xhigh"), effort("max")}),
	levels("haiku-5-5", "claude-haiku-5-5", [7]string{"", effort("low"), effort("low"), effort("medium"), effort("high"), effort("xhigh"), effort("max")}),
	levels("sonnet-5-5", "claude-sonnet-5-5", [7]string{"", `"thinking":{"type":"between_tools"},`, effort("low"), effort("medium"), effort("high"), effort("xhigh"), effort("max")}),
	levels("4-6", "claude-sonnet-4-6", [7]string{"", "", effort("low"), effort("medium"), effort("high"), effort("high"), effort("max")}),
	levels("4-6", "claude-opus-4-6", [7]string{"", "", effort("low"), effort("medium"), effort("high"), effort("high"), effort("max")}),
	levels("other", "claude-sonnet-5", [7]string{"", "", effort("low"), effort("medium"), effort("high"), effort("xhigh"), effort("max")}),
	[]golden{
		sets("always", "claude-x", `{}`, head+tail),
		bedrock("bedrock.always", `{"prompt_caching":"disable"}`, hello, hi),
		{
			row: "bedrock.escaped_id", model: "arn:aws:bedrock:eu-west-1:1:inference-profile/a b", bedrock: true, config: `{"prompt_caching":"disable"}`, messages: hello,
			want: awsHead + `,"messages":[` + hi + `]}`,
		},
		{
			row: "bedrock.betas", model: "m", bedrock: true, config: `{"prompt_caching":"disable"}`, messages: hello, headers: map[string]string{"anthropic-beta": "context-1m, other"},
			want: `{"anthropic_version":"bedrock-2023-05-31","anthropic_beta":["context-1m","other"],"max_tokens":64000,"messages":[` + hi + `]}`,
		},

		sets("system_prompt", "claude-x", `{"system_prompt":"Be <brief>."}`, head+tail+`,"system":"Be <brief>."`),
		sets("system_prompt.empty", "claude-x", `{"system_prompt":""}`, head+tail), // the API refuses empty text
		sets("max_tokens", "claude-x", `{"max_tokens":100}`, `"max_tokens":100,`+tail),
		sets("max_tokens.0", "claude-x", `{"max_tokens":0}`, `"max_tokens":0,"cache_control":{"type":"ephemeral"}`), // the cache is warmed, not streamed
		{row: "max_tokens.0.bedrock", model: "claude-x", bedrock: true, config: `{"max_tokens":0}`, messages: hello, refused: "max_tokens"},
		sets("temperature.1", "claude-x", `{"temperature":1.0}`, head+tail),
		refuses("temperature.other", "claude-x", `{"temperature":0.5}`, "temperature"),
		refuses("temperature.other", "claude-sonnet-4-6", `{"temperature":0}`, "temperature"),
		sets("tools", "claude-x", `{"tools":[{"name":"f","description":"d","parameters":{"type":"object","required":["z","a"]}}]}`, head+tail+`,"tools":[{"name":"f","description":"d","input_schema":{"type":"object","required":["z","a"]}}]`),
		sets("tools.empty", "claude-x", `{"tools":[]}`, head+tail+`,"tools":[]`),
		sets("tools.without_parameters", "claude-x", `{"tools":[{"name":"g","description":""}]}`, head+tail+`,"tools":[{"name":"g"}]`),
		sets("tools.other_keys", "claude-x", `{"tools":[{"strict":true,"name":"f","parameters":{},"x":[1]}]}`, head+tail+`,"tools":[{"name":"f","input_schema":{},"strict":true,"x":[1]}]`),
		sets("ignored.image_config", "claude-x", `{"image_config":{"aspect_ratio":"1:1"}}`, head+tail),
		sets("ignored.tts_config", "claude-x", `{"tts_config":[{"voice":"v"}]}`, head+tail),
		sets("ignored.embedding_config", "claude-x", `{"embedding_config":{"dimensions":3}}`, head+tail),

		sets("thinking.case_of_the_id", "claude-OPUS-5-5", `{"thinking_level":"none"}`, head+tail),
		sets("thinking.bedrock_id", "us.anthropic.claude-opus-5-5-v1:0", `{"thinking_level":"none"}`, head+effort("low")+tail),

		sets("summary.true.unset", "claude-sonnet-5", `{"thinking_summary":true}`, head+`"thinking":{"type":"adaptive","display":"summarized"},`+tail),
		sets("summary.false.unset", "claude-sonnet-5", `{"thinking_summary":false}`, head+`"thinking":{"type":"adaptive","display":"omitted"},`+tail),
		sets("summary.true.unset.sonnet-5-5", "claude-sonnet-5-5", `{"thinking_summary":true}`, head+`"thinking":{"type":"adaptive","display":"summarized"},`+tail),
		sets("summary.true.none.opus-5-5", "claude-opus-5-5", `{"thinking_summary":true,"thinking_level":"none"}`, head+`"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"low"},`+tail),
		sets("summary.true.none.sonnet-5-5", "claude-sonnet-5-5", `{"thinking_summary":true,"thinking_level":"none"}`, head+`"thinking":{"type":"between_tools"},`+tail),
		sets("summary.false.none.sonnet-5-5", "claude-sonnet-5-5", `{"thinking_summary":false,"thinking_level":"none"}`, head+`"thinking":{"type":"between_tools"},`+tail),
		sets("summary.true.none.4-6", "claude-opus-4-6", `{"thinking_summary":true,"thinking_level":"none"}`, head+`"thinking":{"type":"adaptive","display":"summarized"},`+tail),
		sets("summary.true.none.other", "claude-sonnet-5", `{"thinking_summary":true,"thinking_level":"none"}`, head+`"thinking":{"type":"adaptive","display":"summarized"},`+tail),
		sets("summary.false.high", "claude-sonnet-5", `{"thinking_summary":false,"thinking_level":"high"}`, head+`"thinking":{"type":"adaptive","display":"omitted"},"output_config":{"effort":"high"},`+tail),

		sets("choice.auto", "claude-x", `{"tools":[{"name":"f"}],"tool_choice":"auto"}`, head+tail+`,"tools":[{"name":"f"}],"tool_choice":{"type":"auto"}`),
		sets("choice.none", "claude-x", `{"tool_choice":"none"}`, head+tail+`,"tool_choice":{"type":"none"}`),
		sets("choice.required", "claude-x", `{"tool_choice":"required"}`, head+tail+`,"tool_choice":{"type":"any"}`),
		sets("choice.one", "claude-x", `{"tool_choice":["f"]}`, head+tail+`,"tool_choice":{"type":"tool","name":"f"}`),
		sets("choice.without_tools", "claude-x", `{"tool_choice":"auto"}`, head+tail+`,"tool_choice":{"type":"auto"}`),
		sets("choice.with_thinking", "claude-x", `{"tool_choice":"required","thinking_level":"high"}`, head+effort("high")+tail+`,"tool_choice":{"type":"any"}`), // adaptive thinking lets itself be forced
		refuses("choice.many", "claude-x", `{"tool_choice":["f","g"]}`, "tool_choice"),
		sets("choice.auto.opus-5-5", "claude-opus-5-5", `{"tool_choice":"auto"}`, head+tail+`,"tool_choice":{"type":"auto"}`),
		sets("choice.none.opus-5-5", "claude-opus-5-5", `{"tool_choice":"none"}`, head+tail+`,"tool_choice":{"type":"none"}`),
		refuses("choice.required.opus-5-5", "claude-opus-5-5", `{"tool_choice":"required"}`, "tool_choice"),
		refuses("choice.required.sonnet-5-5", "claude-sonnet-5-5", `{"tool_choice":"required"}`, "tool_choice"),
		refuses("choice.required.haiku-5-5", "claude-haiku-5-5", `{"tool_choice":"required"}`, "tool_choice"),
		refuses("choice.required.fable-5-1", "claude-fable-5-1", `{"tool_choice":"required"}`, "tool_choice"),
		refuses("choice.one.opus-5-5", "claude-opus-5-5", `{"tool_choice":["f"]}`, "tool_choice"),
		refuses("choice.one.sonnet-5-5", "claude-sonnet-5-5", `{"tool_choice":["f"]}`, "tool_choice"),
		refuses("choice.one.haiku-5-5", "claude-haiku-5-5", `{"tool_choice":["f"]}`, "tool_choice"),
		refuses("choice.one.fable-5-1", "claude-fable-5-1", `{"tool_choice":["f"]}`, "tool_choice"),

		sets("fast.opus-5-5", "claude-opus-5-5", `{"fast_mode":true}`, head+`"speed":"fast",`+tail),
		sets("fast.opus-5", "claude-opus-5", `{"fast_mode":true}`, head+`"speed":"fast",`+tail),
		sets("fast.sonnet-5", "claude-sonnet-5", `{"fast_mode":true}`, head+`"speed":"fast",`+tail),
		sets("fast.false", "claude-opus-4-6", `{"fast_mode":false}`, head+tail),
		refuses("fast.4-6", "claude-opus-4-6", `{"fast_mode":true}`, "fast_mode"),
		refuses("fast.sonnet-5-5", "claude-sonnet-5-5", `{"fast_mode":true}`, "fast_mode"),
		refuses("fast.haiku-5-5", "claude-haiku-5-5", `{"fast_mode":true}`, "fast_mode"),
		refuses("fast.fable-5-1", "claude-fable-5-1", `{"fast_mode":true}`, "fast_mode"),
		{row: "fast.bedrock", model: "claude-opus-5-5", bedrock: true, config: `{"fast_mode":true}`, messages: hello, refused: "fast_mode"},

		sets("cache.absent", "claude-x", `{}`, head+`"cache_control":{"type":"ephemeral"},"stream":true`),
		sets("cache.enable", "claude-x", `{"prompt_caching":"enable"}`, head+`"cache_control":{"type":"ephemeral"},"stream":true`),
		sets("cache.enhance", "claude-x", `{"prompt_caching":"enhance"}`, head+`"cache_control":{"type":"ephemeral","ttl":"1h"},"stream":true`),
		sets("cache.disable", "claude-x", `{"prompt_caching":"disable"}`, head+`"stream":true`),
		bedrock("cache.bedrock.absent", `{}`, hello, marked),
		bedrock("cache.bedrock.enable", `{"prompt_caching":"enable"}`, hello, marked),
		bedrock("cache.bedrock.enhance", `{"prompt_caching":"enhance"}`, hello, strings.ReplaceAll(marked, "5m", "1h")),
		bedrock("cache.bedrock.disable", `{"prompt_caching":"disable"}`, hello, hi),
		bedrock("cache.bedrock.no_user_message", `{}`, `[{"role":"assistant","content_items":[{"type":"text.done","text":"Yes"}]}]`, `{"role":"assistant","content":[{"type":"text","text":"Yes"}]}`),
		bedrock("cache.bedrock.no_user_message", `{}`, `[]`, ``),
		bedrock("cache.bedrock.assistant_last", `{}`, `[`+ask+`,`+ask+`,{"role":"assistant","content_items":[{"type":"text.done","text":"Yes"}]}]`, hi+`,`+marked+`,{"role":"assistant","content":[{"type":"text","text":"Yes"}]}`),
		bedrock(
			"cache.bedrock.tool_result", `{"prompt_caching":"enhance"}`, user(`{"type":"text.done","text":"a"},{"type":"tool_result.done","text":"b","tool_call_id":"1"},{"type":"text.done","text":""}`),
			userTurn(`{"type":"text","text":"a"},{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"b"}],"cache_control":{"type":"ephemeral","ttl":"1h"}}`),
		),

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
		bedrock("image.data", `{"prompt_caching":"disable"}`, user(`{"type":"image_url.done","image_url":"data:image/png;base64,QUJD"}`), userTurn(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}}`)),
		invalid("image.data.not_base64", user(`{"type":"image_url.done","image_url":"data:image/png,ABC"}`), "messages[0].content_items[0].image_url"),
		invalid("image.data.without_type", user(`{"type":"image_url.done","image_url":"Data:;base64,QUJD"}`), "messages[0].content_items[0].image_url"),

		// Thinking goes back where it came from, and nowhere else.
		says("thinking.signed", assistant(`{"type":"thinking.done","thinking":"t","fidelity":{"signature":"s","issuer":"anthropic","other":1}}`), assistantTurn(`{"type":"thinking","thinking":"t","signature":"s"}`)),
		says("thinking.signed", assistant(`{"type":"thinking.done","thinking":"t","fidelity":{"signature":"s"}}`), assistantTurn(`{"type":"thinking","thinking":"t","signature":"s"}`)),
		says("thinking.signed.without_text", assistant(`{"type":"thinking.done","thinking":"","fidelity":{"signature":"s","issuer":"anthropic"}}`), assistantTurn(`{"type":"thinking","thinking":"","signature":"s"}`)),
		says("thinking.unsigned", assistant(`{"type":"thinking.done","thinking":"t","fidelity":{"reasoning_field":"reasoning"}},{"type":"text.done","text":"a"}`), assistantTurn(`{"type":"text","text":"a"}`)),
		says("thinking.unsigned.alone", assistant(`{"type":"thinking.done","thinking":"t"}`), hi),
		says("thinking.foreign", assistant(`{"type":"thinking.done","thinking":"t","fidelity":{"signature":"s","issuer":"google"}},{"type":"text.done","text":"a"}`), assistantTurn(`{"type":"text","text":"a"}`)),
		says("thinking.foreign", assistant(`{"type":"thinking.done","thinking":"t","fidelity":{"signature":"s","issuer":"anthropic@bedrock"}},{"type":"text.done","text":"a"}`), assistantTurn(`{"type":"text","text":"a"}`)),
		says("thinking.other_fidelity", assistant(`{"type":"thinking.done","thinking":"t","fidelity":{"signature":7}},{"type":"text.done","text":"a"}`), assistantTurn(`{"type":"text","text":"a"}`)),
		bedrock("thinking.bedrock", `{"prompt_caching":"disable"}`, assistant(`{"type":"thinking.done","thinking":"t","fidelity":{"signature":"s","issuer":"anthropic@bedrock"}},{"type":"text.done","text":"a"}`), assistantTurn(`{"type":"thinking","thinking":"t","signature":"s"},{"type":"text","text":"a"}`)),
		bedrock("thinking.bedrock.foreign", `{"prompt_caching":"disable"}`, assistant(`{"type":"thinking.done","thinking":"t","fidelity":{"signature":"s","issuer":"anthropic"}},{"type":"text.done","text":"a"}`), assistantTurn(`{"type":"text","text":"a"}`)),
		says("redacted", assistant(`{"type":"thinking.done","thinking":"_REDACTED_THINKING","fidelity":{"signature":"RU5D","issuer":"anthropic"}}`), assistantTurn(`{"type":"redacted_thinking","data":"RU5D"}`)),
		says("redacted.without_data", assistant(`{"type":"thinking.done","thinking":"_REDACTED_THINKING"},{"type":"text.done","text":"a"}`), assistantTurn(`{"type":"text","text":"a"}`)),
		says("redacted.foreign", assistant(`{"type":"thinking.done","thinking":"_REDACTED_THINKING","fidelity":{"signature":"s","issuer":"gw.example"}},{"type":"text.done","text":"a"}`), assistantTurn(`{"type":"text","text":"a"}`)),

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
		refuses("top_p", "claude-x", `{"top_p":0.9}`, "top_p"),
		sets("top_p.1", "claude-x", `{"top_p":1}`, head+tail),
		refuses("top_k", "claude-x", `{"top_k":40}`, "top_k"),
		sets("stop_sequences", "claude-x", `{"stop_sequences":["END","<\n"]}`, head+`"stop_sequences":["END","<\n"],`+tail),
		sets("stop_sequences.none", "claude-x", `{"stop_sequences":[]}`, head+tail),
		refuses("seed", "claude-x", `{"seed":9007199254740993}`, "seed"),
		refuses("presence_penalty", "claude-x", `{"presence_penalty":-0.5}`, "presence_penalty"),
		sets("presence_penalty.0", "claude-x", `{"presence_penalty":0}`, head+tail),
		refuses("frequency_penalty", "claude-x", `{"frequency_penalty":1.5}`, "frequency_penalty"),
		sets("frequency_penalty.0", "claude-x", `{"frequency_penalty":0}`, head+tail),
		sets("parallel.true", "claude-x", `{"parallel_tool_calls":true}`, head+tail),
		sets("parallel.false", "claude-x", `{"parallel_tool_calls":false}`, head+tail),
		sets("format.text", "claude-x", `{"response_format":{"type":"text"}}`, head+tail),
		refuses("format.json_object", "claude-x", `{"response_format":{"type":"json_object"}}`, "response_format"),
		sets("format.json_schema", "claude-x", `{"response_format":{"type":"json_schema","name":"log","description":"A <log>","schema":{"type":"object","properties":{"z":{"maximum":9007199254740993},"a":{"$ref":"#/$defs/d"}},"$defs":{"d":{"type":"string"}}},"strict":true}}`, head+`"output_config":{"format":{"type":"json_schema","schema":{"type":"object","properties":{"z":{"description":"maximum 9007199254740993"},"a":{"$ref":"#/$defs/d"}},"$defs":{"d":{"type":"string"}},"additionalProperties":false}}},`+tail),
		sets("budget", "claude-x", `{"thinking_budget":20000}`, head+`"thinking":{"type":"adaptive"},"output_config":{"effort":"high"},`+tail),
		sets("budget.0", "claude-x", `{"thinking_budget":0}`, head+tail),
		sets("budget.dynamic", "claude-x", `{"thinking_budget":-1}`, head+tail),
		sets("budget.with_level", "claude-x", `{"thinking_budget":20000,"thinking_level":"low"}`, head+`"thinking":{"type":"adaptive"},"output_config":{"effort":"low"},`+tail),
		refuses("verbosity", "claude-x", `{"verbosity":"low"}`, "verbosity"),
		refuses("service_tier", "claude-x", `{"service_tier":"flex"}`, "service_tier"),
		sets("service_tier.default", "claude-x", `{"service_tier":"default"}`, head+`"service_tier":"standard_only",`+tail),
		sets("service_tier.auto", "claude-x", `{"service_tier":"auto"}`, head+`"service_tier":"auto",`+tail),
		sets("user", "claude-x", `{"user":"u-4711"}`, head+`"metadata":{"user_id":"u-4711"},`+tail),
		sets("metadata", "claude-x", `{"metadata":{"trip":"9","user_id":"m-1"}}`, head+`"metadata":{"user_id":"m-1"},`+tail),
		sets("user.over_metadata", "claude-x", `{"user":"u-4711","metadata":{"user_id":"m-1"}}`, head+`"metadata":{"user_id":"u-4711"},`+tail),
		sets("tools.strict", "claude-x", `{"tools":[{"name":"f","description":"d","parameters":{},"strict":false}]}`, head+tail+`,"tools":[{"name":"f","description":"d","input_schema":{},"strict":false}]`),
		sets("tools.strict.held", "claude-x", `{"tools":[{"name":"f","description":"d","parameters":{"properties":{"n":{"minimum":1}}},"strict":true}]}`, head+tail+`,"tools":[{"name":"f","description":"d","input_schema":{"properties":{"n":{"description":"minimum 1"}},"additionalProperties":false},"strict":true}]`),
		sets("tools.strict.many", "claude-x", `{"tools":[`+strings.Repeat(`{"name":"f","description":"d","strict":true},`, 20)+`{"name":"g","description":"d","strict":true}]}`, head+tail+`,"tools":[`+strings.Repeat(`{"name":"f","description":"d","strict":true},`, 20)+`{"name":"g","description":"d"}]`),
		sets("format.with_effort", "claude-x", `{"thinking_level":"high","response_format":{"type":"json_schema","schema":{"type":"object"}}}`, head+`"thinking":{"type":"adaptive"},"output_config":{"effort":"high","format":{"type":"json_schema","schema":{"type":"object"}}},`+tail),
		sets("parallel.false.with_tools", "claude-x", `{"tools":[{"name":"f","description":"d"}],"parallel_tool_calls":false}`, head+tail+`,"tools":[{"name":"f","description":"d"}],"tool_choice":{"type":"auto","disable_parallel_tool_use":true}`),
		sets("parallel.false.required", "claude-x", `{"tools":[{"name":"f","description":"d"}],"parallel_tool_calls":false,"tool_choice":"required"}`, head+tail+`,"tools":[{"name":"f","description":"d"}],"tool_choice":{"type":"any","disable_parallel_tool_use":true}`),
		sets("parallel.false.no_call", "claude-x", `{"tools":[{"name":"f","description":"d"}],"parallel_tool_calls":false,"tool_choice":"none"}`, head+tail+`,"tools":[{"name":"f","description":"d"}],"tool_choice":{"type":"none"}`),
		says("inline.pdf", user(`{"type":"inline_data.done","data":"QUJD","mime_type":"application/pdf","filename":"<log>.pdf"}`), userTurn(`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"QUJD"},"title":"<log>.pdf"}`)),
		says("inline.text", user(`{"type":"inline_data.done","data":"YSxiCg==","mime_type":"text/csv"}`), userTurn(`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"a,b\n"}}`)),
		invalid("inline.text.not_utf8", user(`{"type":"inline_data.done","data":"/w==","mime_type":"text/csv"}`), "messages[0].content_items[0]"),
		says("inline.image", user(`{"type":"inline_data.done","data":"QUJD","mime_type":"image/png"}`), userTurn(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}}`)),
		invalid("inline.assistant", assistant(`{"type":"inline_data.done","data":"QUJD","mime_type":"image/png"}`), "messages[1].content_items[0]"),
		says("tool_result.document", user(`{"type":"tool_result.done","text":"a","tool_call_id":"1","images":["data:application/pdf;base64,QUJD"]}`), userTurn(`{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"a"},{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"QUJD"}}]}`)),
		says("tool_result.document.named", user(`{"type":"tool_result.done","text":"a","tool_call_id":"1","images":["data:application/pdf;name=log%20%3B1.pdf;base64,QUJD"]}`), userTurn(`{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"a"},{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"QUJD"},"title":"log ;1.pdf"}]}`)),
		sets("budget.4-6", "claude-opus-4-6", `{"thinking_budget":20000}`, head+`"thinking":{"type":"enabled","budget_tokens":20000},`+tail),
		sets("budget.4-6.summary", "claude-opus-4-6", `{"thinking_budget":20000,"thinking_summary":true}`, head+`"thinking":{"type":"enabled","budget_tokens":20000,"display":"summarized"},`+tail),
		sets("budget.4-6.with_level", "claude-opus-4-6", `{"thinking_budget":20000,"thinking_level":"xhigh"}`, head+effort("high")+tail),
		sets("budget.4-6.too_small", "claude-opus-4-6", `{"thinking_budget":1023}`, head+effort("low")+tail),
		sets("budget.4-6.too_large", "claude-opus-4-6", `{"thinking_budget":64000}`, head+effort("high")+tail), // xhigh, which these lack
		{row: "service_tier.bedrock", model: "m", bedrock: true, config: `{"service_tier":"auto"}`, messages: hello, refused: "service_tier"},
		bedrock("user.bedrock", `{"user":"u-4711"}`, hello, marked),
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
			address, header := "https://api.anthropic.com/v1/messages?beta=true", http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}}
			if c.bedrock {
				client = bedrockClient(t, c.model, nil)
				address = "https://bedrock-runtime.us-east-1.amazonaws.com/model/" + strings.NewReplacer(":", "%3A", "/", "%2F", " ", "%20").Replace(c.model) + "/invoke-with-response-stream"
				header.Set("Accept", "application/vnd.amazon.eventstream")
			}
			client.headers = c.headers
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
			case request.Method != "POST" || request.URL != address || !reflect.DeepEqual(request.Header, header):
				t.Errorf("%s %s %v", request.Method, request.URL, request.Header)
			}
		})
	}
	if len(missing) > 0 {
		t.Errorf("rows without a case: %s", missing)
	}
}
