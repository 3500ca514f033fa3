package openaichat_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/prism-shadow/mmsp-go"
)

// rows names everything that decides what a request says. Each has a case below, and each case is of a row.
var rows = strings.Fields(`
	top_p top_p.1 top_k stop_sequences stop_sequences.none seed presence_penalty presence_penalty.0 frequency_penalty
	frequency_penalty.0 parallel.true parallel.false format.text format.json_object format.json_schema
	format.json_schema.bare budget verbosity service_tier service_tier.with_fast user user.long metadata tools.strict
	image.detail.given inline.document inline.document.unnamed inline.image inline.audio.wav inline.audio.mp3
	inline.video inline.assistant tool_result.document tool_result.document.named
	always system_prompt system_prompt.empty max_tokens temperature temperature.0 temperature.1
	thinking.unset thinking.none thinking.low thinking.medium thinking.high thinking.xhigh thinking.max summary.true summary.false
	tools tools.empty tools.other_keys
	choice.auto choice.required choice.none choice.one choice.many
	fast.true fast.false
	cache.absent cache.enable cache.disable cache.enhance
	ignored.trace_id ignored.image_config ignored.tts_config ignored.embedding_config

	messages.none messages.turn_of_nothing messages.order messages.results_first messages.one_for_a_turn
	text.user text.assistant text.empty text.characters
	image.data image.assistant image.private image.detail.large image.detail.small image.detail.other_model
	reasoning.reasoning_content reasoning.reasoning reasoning.unset reasoning.no_fidelity reasoning.foreign reasoning.mixed reasoning.joined reasoning.empty_alone reasoning.empty_counts
	empty_field.reasoning_content empty_field.reasoning empty_field.mixed empty_field.never_thought empty_field.plain_turn empty_field.later_thinking
	tool_call tool_call.alone tool_call.several tool_call.text_of_arguments
	tool_result tool_result.empty tool_result.error tool_result.images tool_result.images.other_model
	refused.inline_data refused.inline_thinking refused.embedding
`)

// golden is a config and messages, and the request that they make, byte for byte, or the parameter or place that is refused.
type golden struct {
	row, model, config, messages string
	want, refused                string
}

// sets: a config adds fields to the request.
func sets(row, config, fields string) golden {
	return golden{row: row, config: config, messages: hello, want: start + fields + `"messages":[` + hi + `]}`}
}

func refuses(row, config, parameter string) golden {
	return golden{row: row, config: config, messages: hello, refused: parameter}
}

// says: messages become these.
func says(row, messages, wire string) golden {
	return golden{row: row, config: `{}`, messages: `[` + messages + `]`, want: start + `"messages":[` + wire + `]}`}
}

// saysTo: the same, for a model.
func saysTo(model, row, messages, wire string) golden {
	c := says(row, messages, wire)
	c.model, c.want = model, strings.Replace(c.want, "m-1", model, 1)
	return c
}

func invalid(row, messages, place string) golden {
	return golden{row: row, config: `{}`, messages: `[` + messages + `]`, refused: place}
}

func userItems(items string) string { return `{"role":"user","content_items":[` + items + `]}` }
func assistantItems(items string) string {
	return `{"role":"assistant","content_items":[` + items + `]}`
}
func words(text string) string { return `{"type":"text.done","text":"` + text + `"}` }
func part(text string) string  { return `{"type":"text","text":"` + text + `"}` }
func picture(url string) string {
	return `{"type":"image_url.done","image_url":"` + url + `"}`
}

func imagePart(url, detail string) string {
	return `{"type":"image_url","image_url":{"url":"` + url + `"` + detail + `}}`
}

func thinking(text, field string) string {
	return `{"type":"thinking.done","thinking":"` + text + `","fidelity":{"reasoning_field":"` + field + `"}}`
}

func toolCall(id string) string {
	return `{"type":"tool_call.done","name":"tide_at","arguments":{"port":"Brest"},"tool_call_id":"` + id + `"}`
}

func wireToolCall(id string) string {
	return `{"id":"` + id + `","type":"function","function":{"name":"tide_at","arguments":"{\"port\":\"Brest\"}"}}`
}

func toolResult(id, rest string) string {
	return userItems(`{"type":"tool_result.done","tool_call_id":"` + id + `",` + rest + `}`)
}

func toolMessage(id, text string) string {
	return `{"role":"tool","tool_call_id":"` + id + `","content":"` + text + `"}`
}

// callTurn is an assistant's turn of one call, with what follows the calls on the wire.
func callTurn(id, fields string) string {
	return `{"role":"assistant","tool_calls":[` + wireToolCall(id) + `]` + fields + `}`
}

// secondCall is a conversation whose second call comes without thinking.
func secondCall(row, thought, first, second string) golden {
	return says(
		row, assistantItems(thought+toolCall("k1"))+`,`+toolResult("k1", `"text":"4.1 m"`)+`,`+assistantItems(toolCall("k2"))+`,`+toolResult("k2", `"text":"0.3 m"`),
		callTurn("k1", first)+`,`+toolMessage("k1", "4.1 m")+`,`+callTurn("k2", second)+`,`+toolMessage("k2", "0.3 m"),
	)
}

const detailHigh = `,"detail":"high"`

var large, small = png(6400, 8608), png(1024, 1024)

var cases = []golden{
	sets("always", `{}`, ``),
	sets("system_prompt.empty", `{"system_prompt":""}`, ``),
	{row: "system_prompt", config: `{"system_prompt":"Be <brief> & kind"}`, messages: hello, want: start + `"messages":[{"role":"system","content":"Be <brief> & kind"},` + hi + `]}`},
	sets("max_tokens", `{"max_tokens":400}`, `"max_completion_tokens":400,`),
	sets("temperature", `{"temperature":1.75}`, `"temperature":1.75,`),
	sets("temperature.0", `{"temperature":0}`, `"temperature":0,`),
	sets("temperature.1", `{"temperature":1.0}`, `"temperature":1,`),
	sets("thinking.unset", `{}`, ``),
	sets("thinking.none", `{"thinking_level":"none"}`, ``),
	sets("thinking.low", `{"thinking_level":"low"}`, ``),
	sets("thinking.medium", `{"thinking_level":"medium"}`, ``),
	sets("thinking.high", `{"thinking_level":"high"}`, ``),
	sets("thinking.xhigh", `{"thinking_level":"xhigh"}`, ``),
	sets("thinking.max", `{"thinking_level":"max"}`, ``),
	sets("summary.true", `{"thinking_summary":true,"thinking_level":"high"}`, ``),
	sets("summary.false", `{"thinking_summary":false}`, ``),
	sets(
		"tools", `{"tools":[{"name":"f","description":"Größe <b>","parameters":{"type":"object","properties":{"z":{},"a":{"maximum":9007199254740993}}}},{"name":"g","description":""}]}`,
		`"tools":[{"type":"function","function":{"name":"f","description":"Größe <b>","parameters":{"type":"object","properties":{"z":{},"a":{"maximum":9007199254740993}}}}},`+
			`{"type":"function","function":{"name":"g","description":""}}],`,
	),
	sets("tools.empty", `{"tools":[]}`, `"tools":[],`),
	sets("tools.other_keys", `{"tools":[{"name":"f","description":"d","parameters":{},"strict":true}]}`, `"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{},"strict":true}}],`),
	sets("choice.auto", `{"tool_choice":"auto"}`, `"tool_choice":"auto",`),
	sets("choice.required", `{"tool_choice":"required"}`, `"tool_choice":"required",`),
	sets("choice.none", `{"tool_choice":"none"}`, `"tool_choice":"none",`),
	sets("choice.one", `{"tool_choice":["f"]}`, `"tool_choice":{"type":"function","function":{"name":"f"}},`),
	sets("choice.many", `{"tool_choice":["f","g"]}`, `"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"g"}}]}},`),
	sets("fast.true", `{"fast_mode":true}`, `"service_tier":"priority",`),
	sets("fast.false", `{"fast_mode":false}`, ``),
	sets("cache.absent", `{}`, ``),
	sets("cache.enable", `{"prompt_caching":"enable"}`, ``),
	refuses("cache.disable", `{"prompt_caching":"disable"}`, "prompt_caching"),
	refuses("cache.enhance", `{"prompt_caching":"enhance"}`, "prompt_caching"),
	sets("ignored.trace_id", `{"trace_id":"a/b"}`, ``),
	sets("ignored.image_config", `{"image_config":{"image_size":"1K"}}`, ``),
	sets("ignored.tts_config", `{"tts_config":[{"voice":"v"}]}`, ``),
	sets("ignored.embedding_config", `{"embedding_config":{"dimensions":4}}`, ``),

	says("messages.none", ``, ``),
	says("messages.turn_of_nothing", userItems(``), ``),
	says(
		"messages.order", userItems(words("hi"))+`,`+assistantItems(thinking("Hm.", "reasoning_content")+`,`+words("So:")+`,`+toolCall("k1"))+`,`+toolResult("k1", `"text":"4.1 m"`),
		hi+`,{"role":"assistant","content":[`+part("So:")+`],"tool_calls":[`+wireToolCall("k1")+`],"reasoning_content":"Hm."},`+toolMessage("k1", "4.1 m"),
	),
	says("messages.one_for_a_turn", assistantItems(toolCall("k1")+`,`+words("a")+`,`+thinking("t", "reasoning")+`,`+words("b")), `{"role":"assistant","content":[`+part("a")+`,`+part("b")+`],"tool_calls":[`+wireToolCall("k1")+`],"reasoning":"t"}`),
	says(
		"messages.results_first", userItems(words("and?")+`,{"type":"tool_result.done","tool_call_id":"k1","text":"a"},`+picture(small)+`,{"type":"tool_result.done","tool_call_id":"k2","text":"b"}`),
		toolMessage("k1", "a")+`,`+toolMessage("k2", "b")+`,{"role":"user","content":[`+part("and?")+`,`+imagePart(small, "")+`]}`,
	),
	says("text.user", userItems(words("a")+`,`+words("b")), `{"role":"user","content":[`+part("a")+`,`+part("b")+`]}`),
	says("text.assistant", assistantItems(words("a")), `{"role":"assistant","content":[`+part("a")+`]}`),
	says("text.empty", userItems(words("")), `{"role":"user","content":[`+part("")+`]}`),
	says("text.characters", userItems(words(`Grüße <b>&日本 \"q\" \\ \n`)), `{"role":"user","content":[`+part(`Grüße <b>&日本 \"q\" \\ \n`)+`]}`),
	says("image.data", userItems(words("a")+`,`+picture(large)), `{"role":"user","content":[`+part("a")+`,`+imagePart(large, "")+`]}`),
	says("image.assistant", assistantItems(picture(small)), `{"role":"assistant","content":[`+imagePart(small, "")+`]}`),
	invalid("image.private", userItems(words("a")+`,`+picture("http://127.0.0.1:1/a.png")), "messages[0].content_items[1].image_url"),
	saysTo("GPT-5.6-Sol", "image.detail.large", userItems(picture(large)), `{"role":"user","content":[`+imagePart(large, detailHigh)+`]}`),
	saysTo("gpt-5.6", "image.detail.small", userItems(picture(small)), `{"role":"user","content":[`+imagePart(small, "")+`]}`),
	saysTo("gpt-5.5", "image.detail.other_model", userItems(picture(large)), `{"role":"user","content":[`+imagePart(large, "")+`]}`),

	says("reasoning.reasoning_content", assistantItems(thinking("a", "reasoning_content")+`,`+words("t")), `{"role":"assistant","content":[`+part("t")+`],"reasoning_content":"a"}`),
	says("reasoning.reasoning", assistantItems(thinking("a", "reasoning")+`,`+words("t")), `{"role":"assistant","content":[`+part("t")+`],"reasoning":"a"}`),
	says("reasoning.unset", assistantItems(`{"type":"thinking.done","thinking":"a","fidelity":{"reasoning_field":""}}`), `{"role":"assistant","reasoning_content":"a","reasoning":"a"}`),
	says("reasoning.no_fidelity", assistantItems(`{"type":"thinking.done","thinking":"a"}`), `{"role":"assistant","reasoning_content":"a","reasoning":"a"}`),
	says("reasoning.foreign", assistantItems(`{"type":"thinking.done","thinking":"a","fidelity":{"signature":"s","issuer":"anthropic"}}`), `{"role":"assistant","reasoning_content":"a","reasoning":"a"}`),
	says("reasoning.mixed", assistantItems(thinking("a", "reasoning")+`,`+thinking("b", "reasoning_content")), `{"role":"assistant","reasoning_content":"ab","reasoning":"ab"}`),
	says("reasoning.joined", assistantItems(thinking("a", "reasoning")+`,`+words("t")+`,`+thinking("b", "reasoning")), `{"role":"assistant","content":[`+part("t")+`],"reasoning":"ab"}`),
	says("reasoning.empty_alone", assistantItems(thinking("", "reasoning")), ``),
	says("reasoning.empty_counts", assistantItems(thinking("", "reasoning")+`,`+thinking("b", "reasoning_content")), `{"role":"assistant","reasoning_content":"b","reasoning":"b"}`),

	secondCall("empty_field.reasoning_content", thinking("Need it.", "reasoning_content")+`,`, `,"reasoning_content":"Need it."`, `,"reasoning_content":""`),
	secondCall("empty_field.reasoning", thinking("Need it.", "reasoning")+`,`, `,"reasoning":"Need it."`, `,"reasoning":""`),
	secondCall("empty_field.mixed", `{"type":"thinking.done","thinking":"Need it."},`, `,"reasoning_content":"Need it.","reasoning":"Need it."`, `,"reasoning_content":"","reasoning":""`),
	secondCall("empty_field.never_thought", ``, ``, ``),
	says(
		"empty_field.mixed", assistantItems(thinking("a", "reasoning"))+`,`+assistantItems(thinking("b", "reasoning_content"))+`,`+assistantItems(toolCall("k1")),
		`{"role":"assistant","reasoning":"a"},{"role":"assistant","reasoning_content":"b"},`+callTurn("k1", `,"reasoning_content":"","reasoning":""`),
	),
	says("empty_field.plain_turn", assistantItems(thinking("a", "reasoning"))+`,`+assistantItems(words("t")), `{"role":"assistant","reasoning":"a"},{"role":"assistant","content":[`+part("t")+`]}`),
	says("empty_field.later_thinking", assistantItems(toolCall("k1"))+`,`+assistantItems(thinking("a", "reasoning")), callTurn("k1", "")+`,{"role":"assistant","reasoning":"a"}`),

	says("tool_call", assistantItems(words("a")+`,`+toolCall("k1")), `{"role":"assistant","content":[`+part("a")+`],"tool_calls":[`+wireToolCall("k1")+`]}`),
	says("tool_call.alone", assistantItems(toolCall("k1")), callTurn("k1", "")),
	says("tool_call.several", assistantItems(toolCall("k1")+`,`+toolCall("k2")), `{"role":"assistant","tool_calls":[`+wireToolCall("k1")+`,`+wireToolCall("k2")+`]}`),
	says(
		"tool_call.text_of_arguments", assistantItems(`{"type":"tool_call.done","name":"f","arguments":{ "b" : 18446744073709551615, "a":1.50, "c":"\u00e9" },"tool_call_id":"k"}`),
		`{"role":"assistant","tool_calls":[{"id":"k","type":"function","function":{"name":"f","arguments":"{ \"b\" : 18446744073709551615, \"a\":1.50, \"c\":\"\\u00e9\" }"}}]}`,
	),
	says("tool_result", toolResult("k1", `"text":"4.1 m"`), toolMessage("k1", "4.1 m")),
	says("tool_result.empty", toolResult("k1", `"text":"","images":[]`), toolMessage("k1", "")),
	says("tool_result.error", toolResult("k1", `"text":"broken","is_error":true`), toolMessage("k1", "broken")), // the protocol knows no failed results
	saysTo(
		"GPT-5.6-Sol", "tool_result.images", userItems(words("What?")+`,`+picture(large)+`,`+picture(small))+`,`+assistantItems(toolCall("k1"))+`,`+toolResult("k1", `"text":"image/png","images":["`+large+`","`+small+`"]`),
		`{"role":"user","content":[`+part("What?")+`,`+imagePart(large, detailHigh)+`,`+imagePart(small, "")+`]},`+callTurn("k1", "")+`,`+toolMessage("k1", "image/png")+
			`,{"role":"user","content":[`+imagePart(large, detailHigh)+`,`+imagePart(small, "")+`]}`,
	),
	saysTo("kimi-k3", "tool_result.images.other_model", toolResult("k1", `"text":"","images":["`+large+`"]`), toolMessage("k1", "")+`,{"role":"user","content":[`+imagePart(large, "")+`]}`),
	sets("top_p", `{"top_p":0.9}`, `"top_p":0.9,`),
	sets("top_p.1", `{"top_p":1}`, `"top_p":1,`),
	refuses("top_k", `{"top_k":40}`, "top_k"),
	sets("stop_sequences", `{"stop_sequences":["END","<\n"]}`, `"stop":["END","<\n"],`),
	sets("stop_sequences.none", `{"stop_sequences":[]}`, ``),
	sets("seed", `{"seed":9007199254740993}`, `"seed":9007199254740993,`),
	sets("presence_penalty", `{"presence_penalty":-0.5}`, `"presence_penalty":-0.5,`),
	sets("presence_penalty.0", `{"presence_penalty":0}`, `"presence_penalty":0,`),
	sets("frequency_penalty", `{"frequency_penalty":1.5}`, `"frequency_penalty":1.5,`),
	sets("frequency_penalty.0", `{"frequency_penalty":0}`, `"frequency_penalty":0,`),
	sets("parallel.true", `{"parallel_tool_calls":true}`, `"parallel_tool_calls":true,`),
	sets("parallel.false", `{"parallel_tool_calls":false}`, `"parallel_tool_calls":false,`),
	sets("format.text", `{"response_format":{"type":"text"}}`, ``),
	sets("format.json_object", `{"response_format":{"type":"json_object"}}`, `"response_format":{"type":"json_object"},`),
	sets("format.json_schema", `{"response_format":{"type":"json_schema","name":"log","description":"A <log>","schema":{"type":"object","properties":{"z":{"maximum":9007199254740993},"a":{"$ref":"#/$defs/d"}},"$defs":{"d":{"type":"string"}}},"strict":true}}`, `"response_format":{"type":"json_schema","json_schema":{"name":"log","description":"A <log>","schema":{"type":"object","properties":{"z":{"maximum":9007199254740993},"a":{"$ref":"#/$defs/d"}},"$defs":{"d":{"type":"string"}}},"strict":true}},`),
	sets("format.json_schema.bare", `{"response_format":{"type":"json_schema","schema":{"type":"object"}}}`, `"response_format":{"type":"json_schema","json_schema":{"name":"response","schema":{"type":"object"}}},`),
	sets("budget", `{"thinking_budget":20000}`, ``),
	sets("verbosity", `{"verbosity":"low"}`, `"verbosity":"low",`),
	sets("service_tier", `{"service_tier":"flex"}`, `"service_tier":"flex",`),
	sets("service_tier.with_fast", `{"service_tier":"default","fast_mode":true}`, `"service_tier":"default",`),
	sets("user", `{"user":"u-4711"}`, `"user":"u-4711",`),
	sets("user.long", `{"user":"`+strings.Repeat("u", 65)+`"}`, ``),
	sets("metadata", `{"metadata":{"trip":"9","user_id":"m-1"}}`, ``),
	sets("tools.strict", `{"tools":[{"name":"f","description":"d","parameters":{},"strict":false}]}`, `"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{},"strict":false}}],`),
	saysTo("gpt-5.6-sol", "image.detail.given", userItems(`{"type":"image_url.done","image_url":"`+large+`","detail":"low"}`), `{"role":"user","content":[`+imagePart(large, `,"detail":"low"`)+`]}`),
	says("inline.document", userItems(words("a")+`,{"type":"inline_data.done","data":"QUJD","mime_type":"application/pdf","filename":"<log>.pdf"}`), `{"role":"user","content":[`+part("a")+`,{"type":"file","file":{"filename":"<log>.pdf","file_data":"data:application/pdf;base64,QUJD"}}]}`),
	says("inline.document.unnamed", userItems(`{"type":"inline_data.done","data":"QUJD","mime_type":"text/csv; charset=utf-8"}`), `{"role":"user","content":[{"type":"file","file":{"filename":"document.csv","file_data":"data:text/csv; charset=utf-8;base64,QUJD"}}]}`),
	says("inline.image", userItems(`{"type":"inline_data.done","data":"QUJD","mime_type":"image/png"}`), `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,QUJD"}}]}`),
	says("inline.audio.wav", userItems(`{"type":"inline_data.done","data":"QUJD","mime_type":"audio/x-wav"}`), `{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"QUJD","format":"wav"}}]}`),
	says("inline.audio.mp3", userItems(`{"type":"inline_data.done","data":"QUJD","mime_type":"audio/mpeg"}`), `{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"QUJD","format":"mp3"}}]}`),
	invalid("inline.video", userItems(`{"type":"inline_data.done","data":"QUJD","mime_type":"video/mp4"}`), "messages[0].content_items[0]"),
	invalid("inline.assistant", userItems(words("a"))+`,`+assistantItems(`{"type":"inline_data.done","data":"QUJD","mime_type":"image/png"}`), "messages[1].content_items[0]"),
	says("tool_result.document", toolResult("k1", `"text":"a","images":["data:application/pdf;base64,QUJD"]`), toolMessage("k1", "a")+`,{"role":"user","content":[{"type":"file","file":{"filename":"document.pdf","file_data":"data:application/pdf;base64,QUJD"}}]}`),
	says("tool_result.document.named", toolResult("k1", `"text":"a","images":["data:application/pdf;name=log%20%3B1.pdf;base64,QUJD"]`), toolMessage("k1", "a")+`,{"role":"user","content":[{"type":"file","file":{"filename":"log ;1.pdf","file_data":"data:application/pdf;base64,QUJD"}}]}`),
	invalid("refused.inline_data", userItems(words("a")+`,{"type":"inline_data.done","data":"QUJD","mime_type":"audio/ogg"}`), "messages[0].content_items[1]"),
	invalid("refused.inline_thinking", userItems(words("a"))+`,`+assistantItems(`{"type":"inline_thinking.done","data":"QUJD","mime_type":"image/png"}`), "messages[1].content_items[0]"),
	invalid("refused.embedding", userItems(`{"type":"embedding.done","embedding":[1]}`), "messages[0].content_items[0]"),
}

func TestGolden(t *testing.T) {
	missing := slices.Clone(rows)
	for _, c := range cases {
		if !slices.Contains(rows, c.row) {
			t.Errorf("the case %s is of no row", c.row)
		}
		missing = slices.DeleteFunc(missing, func(row string) bool { return row == c.row })
		t.Run(c.row, func(t *testing.T) {
			body, err := prepare(t, build(t, mmsp.Options{Model: c.model}), c.messages, c.config)
			var parameter *mmsp.UnsupportedParameterError
			var place *mmsp.InvalidRequestError
			switch {
			case c.refused != "":
				if !(errors.As(err, &parameter) && parameter.Parameter == c.refused && parameter.Client == "OpenaiChatClient") && !(errors.As(err, &place) && place.Param == c.refused) {
					t.Errorf("error %v, want one for %s", err, c.refused)
				}
			case err != nil || body != c.want:
				t.Errorf("%s (%v)\n got %s\nwant %s", c.config, err, body, c.want)
			}
		})
	}
	if len(missing) > 0 {
		t.Errorf("rows without a case: %s", missing)
	}
}
