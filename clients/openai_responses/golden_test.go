package openairesponses

import (
	"encoding/json"
	"errors"
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
	frequency_penalty.0 parallel.true parallel.false format.text format.json_object format.json_schema
	format.json_schema.bare budget budget.0 budget.dynamic budget.with_level verbosity service_tier
	service_tier.with_fast user user.long metadata tools.strict image.detail.given inline.document inline.document.unnamed
	inline.image inline.video inline.assistant tool_result.document tool_result.document.named tool_result.audio
	always system_prompt system_prompt.empty max_tokens temperature temperature.1
	thinking.unset.gpt-6 thinking.none.gpt-6 thinking.low.gpt-6 thinking.medium.gpt-6 thinking.high.gpt-6 thinking.xhigh.gpt-6 thinking.max.gpt-6
	thinking.unset.other thinking.none.other thinking.low.other thinking.medium.other thinking.high.other thinking.xhigh.other thinking.max.other
	thinking.gateway_id thinking.case_of_the_id
	summary.true.unset summary.true.none summary.true.high summary.false.unset summary.false.high
	tools tools.empty tools.bare tools.other_keys
	choice.auto choice.required choice.none choice.one choice.many
	fast.true fast.false
	cache.absent cache.enable cache.disable cache.enhance
	ignored.trace_id ignored.image_config ignored.tts_config ignored.embedding_config

	messages.none messages.plain_turns messages.order messages.turn_of_nothing
	text.user text.assistant text.several text.empty
	image.url image.data image.assistant image.detail.large image.detail.small image.detail.other_model image.detail.unreadable
	phase phase.change phase.joined_by_none phase.after_a_call phase.next_message phase.user phase.foreign
	reasoning.summary reasoning.content reasoning.without_channel.encrypted reasoning.without_channel.plain reasoning.without_proof
	reasoning.encrypted_alone reasoning.signature reasoning.format reasoning.empty reasoning.own_issuer reasoning.foreign reasoning.other_keys
	tool_call tool_call.text_of_arguments
	tool_result tool_result.empty tool_result.empty_images tool_result.images tool_result.images_alone tool_result.detail tool_result.detail.other_model tool_result.error
	refused.inline_data refused.inline_thinking refused.embedding
`)

// golden is a config and messages, and the request that they make, byte for byte, or the parameter or place that is refused.
type golden struct {
	row, model, config, messages string
	want, refused                string
}

const (
	always = `"store":false,"stream":true`
	ask    = `{"role":"user","content_items":[{"type":"text.done","text":"Hi"}]}`
	hi     = `{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi"}]}`
	remote = `https://pictures.example/a.png`
)

var large, small = png(6400, 8608), png(1024, 1024)

// sets: a config adds fields to the request.
func sets(row, model, config, fields string) golden {
	return golden{row: row, model: model, config: config, messages: `[` + ask + `]`, want: `{"model":"` + model + `",` + always + fields + `,"input":[` + hi + `]}`}
}

func refuses(row, config, parameter string) golden {
	return golden{row: row, model: "gpt-6-astra", config: config, messages: `[` + ask + `]`, refused: parameter}
}

// says: messages become this input.
func says(row, messages, wire string) golden {
	return golden{row: row, model: "m", config: "{}", messages: `[` + messages + `]`, want: `{"model":"m",` + always + `,"input":[` + wire + `]}`}
}

// saysTo: the same, for a model.
func saysTo(model, row, messages, wire string) golden {
	c := says(row, messages, wire)
	c.model, c.want = model, strings.Replace(c.want, `"m"`, `"`+model+`"`, 1)
	return c
}

func invalid(row, messages, place string) golden {
	return golden{row: row, model: "m", config: "{}", messages: `[` + messages + `]`, refused: place}
}

func user(items string) string      { return `{"role":"user","content_items":[` + items + `]}` }
func assistant(items string) string { return `{"role":"assistant","content_items":[` + items + `]}` }

func userSays(parts string) string {
	return `{"type":"message","role":"user","content":[` + parts + `]}`
}

func assistantSays(parts string) string {
	return `{"type":"message","role":"assistant","content":[` + parts + `]}`
}

func text(text, fidelity string) string {
	return `{"type":"text.done","text":"` + text + `"` + fidelity + `}`
}

func phased(parts, phase string) string {
	return `{"type":"message","role":"assistant","content":[` + parts + `],"phase":"` + phase + `"}`
}
func output(text string) string { return `{"type":"output_text","text":"` + text + `"}` }
func thinks(text, fidelity string) string {
	return assistant(`{"type":"thinking.done","thinking":"` + text + `","fidelity":` + fidelity + `}`)
}

func result(text, images string) string {
	return user(`{"type":"tool_result.done","tool_call_id":"c","text":"` + text + `"` + images + `}`)
}
func effort(e string) string { return `,"reasoning":{"effort":"` + e + `"}` }

// levels are the cases of a model: the effort of each level.
func levels(generation, model string, efforts [6]string) (cases []golden) {
	for i, level := range []string{"none", "low", "medium", "high", "xhigh", "max"} {
		cases = append(cases, sets("thinking."+level+"."+generation, model, `{"thinking_level":"`+level+`"}`, effort(efforts[i])))
	}
	return append(cases, sets("thinking.unset."+generation, model, `{}`, ``))
}

const (
	commentary = `,"fidelity":{"phase":"commentary"}`
	final      = `,"fidelity":{"phase":"final_answer"}`
	call       = `{"type":"tool_call.done","name":"f","arguments":{},"tool_call_id":"c1"}`
	wireCall   = `{"type":"function_call","call_id":"c1","name":"f","arguments":"{}"}`
	astra      = "gpt-6-astra"
)

var cases = slices.Concat(
	levels("gpt-6", astra, [6]string{"low", "low", "medium", "high", "xhigh", "max"}),
	levels("other", "gpt-5.6", [6]string{"none", "low", "medium", "high", "xhigh", "max"}),
	[]golden{
		sets("always", astra, `{}`, ``),
		sets("system_prompt", astra, `{"system_prompt":"Answer <like> a pilot."}`, `,"instructions":"Answer <like> a pilot."`),
		sets("system_prompt.empty", astra, `{"system_prompt":""}`, `,"instructions":""`),
		sets("max_tokens", astra, `{"max_tokens":900}`, `,"max_output_tokens":900`),
		sets("temperature", astra, `{"temperature":0.5}`, `,"temperature":0.5`),
		sets("temperature", astra, `{"temperature":0}`, `,"temperature":0`),
		sets("temperature.1", astra, `{"temperature":1.0}`, `,"temperature":1`),
		sets("thinking.gateway_id", "openai/gpt-6.1-sol", `{"thinking_level":"none"}`, effort("low")),
		sets("thinking.case_of_the_id", "GPT-6-astra", `{"thinking_level":"none"}`, effort("none")),
		sets("summary.true.unset", astra, `{"thinking_summary":true}`, ``),
		sets("summary.true.none", astra, `{"thinking_summary":true,"thinking_level":"none"}`, `,"reasoning":{"effort":"low","summary":"concise"}`),
		sets("summary.true.high", astra, `{"thinking_summary":true,"thinking_level":"high"}`, `,"reasoning":{"effort":"high","summary":"concise"}`),
		sets("summary.false.unset", astra, `{"thinking_summary":false}`, ``),
		sets("summary.false.high", astra, `{"thinking_summary":false,"thinking_level":"high"}`, effort("high")),
		sets(
			"tools", astra, `{"tools":[{"name":"tide_at","description":"Tide height","parameters":{"type":"object","properties":{"port":{"type":"string"},"a":{"maximum":9007199254740993}}}},{"name":"g","description":"","parameters":{}}]}`,
			`,"tools":[{"type":"function","name":"tide_at","description":"Tide height","parameters":{"type":"object","properties":{"port":{"type":"string"},"a":{"maximum":9007199254740993}}}},{"type":"function","name":"g","description":"","parameters":{}}]`,
		),
		sets("tools.empty", astra, `{"tools":[]}`, `,"tools":[]`),
		sets("tools.bare", astra, `{"tools":[{"name":"f","description":"d"}]}`, `,"tools":[{"type":"function","name":"f","description":"d"}]`),
		sets("tools.other_keys", astra, `{"tools":[{"name":"f","description":"d","parameters":{},"strict":true}]}`, `,"tools":[{"type":"function","name":"f","description":"d","parameters":{},"strict":true}]`),
		sets("choice.auto", astra, `{"tool_choice":"auto"}`, `,"tool_choice":"auto"`),
		sets("choice.required", astra, `{"tool_choice":"required"}`, `,"tool_choice":"required"`),
		sets("choice.none", astra, `{"tool_choice":"none"}`, `,"tool_choice":"none"`),
		sets("choice.one", astra, `{"tool_choice":["a"]}`, `,"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"a"}]}`),
		sets("choice.many", astra, `{"tool_choice":["a","b"]}`, `,"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"a"},{"type":"function","name":"b"}]}`),
		sets("fast.true", astra, `{"fast_mode":true}`, `,"service_tier":"priority"`),
		sets("fast.false", astra, `{"fast_mode":false}`, ``),
		sets("cache.absent", astra, `{}`, ``),
		sets("cache.enable", astra, `{"prompt_caching":"enable"}`, ``),
		refuses("cache.disable", `{"prompt_caching":"disable"}`, "prompt_caching"),
		refuses("cache.enhance", `{"prompt_caching":"enhance"}`, "prompt_caching"),
		sets("ignored.trace_id", astra, `{"trace_id":"a/b"}`, ``),
		sets("ignored.image_config", astra, `{"image_config":{"image_size":"1K"}}`, ``),
		sets("ignored.tts_config", astra, `{"tts_config":[{"voice":"v"}]}`, ``),
		sets("ignored.embedding_config", astra, `{"embedding_config":{"dimensions":4}}`, ``),

		says("messages.none", ``, ``),
		says("messages.turn_of_nothing", user(``), ``),
		says(
			"messages.plain_turns", user(text("Ahoy.", ""))+`,`+assistant(text("Ahoy <there>.", ""))+`,`+user(text("Depth?", "")),
			userSays(`{"type":"input_text","text":"Ahoy."}`)+`,`+assistantSays(output("Ahoy <there>."))+`,`+userSays(`{"type":"input_text","text":"Depth?"}`),
		),
		says(
			"messages.order",
			ask+`,`+assistant(`{"type":"thinking.done","thinking":"Look."},`+text("One moment.", "")+`,`+call+`,`+text("And.", "")+`,`+strings.ReplaceAll(call, "c1", "c2"))+`,`+
				user(`{"type":"tool_result.done","tool_call_id":"c1","text":"0.3 m"},`+text("Well?", "")+`,{"type":"tool_result.done","tool_call_id":"c2","text":""}`),
			hi+`,{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"Look."}]},`+assistantSays(output("One moment."))+`,`+wireCall+`,`+
				assistantSays(output("And."))+`,`+strings.ReplaceAll(wireCall, "c1", "c2")+`,`+
				`{"type":"function_call_output","call_id":"c1","output":"0.3 m"},`+userSays(`{"type":"input_text","text":"Well?"}`)+`,{"type":"function_call_output","call_id":"c2","output":""}`,
		),
		says("text.user", user(text("a", "")), userSays(`{"type":"input_text","text":"a"}`)),
		says("text.assistant", assistant(text("a", "")), assistantSays(output("a"))),
		says("text.several", assistant(text("a", "")+`,`+text("b", "")), assistantSays(output("a")+`,`+output("b"))),
		says("text.empty", user(text("", "")), userSays(`{"type":"input_text","text":""}`)),
		says("image.url", user(`{"type":"image_url.done","image_url":"`+remote+`"}`), userSays(`{"type":"input_image","image_url":"`+remote+`"}`)),
		says("image.data", user(text("a", "")+`,{"type":"image_url.done","image_url":"`+large+`"}`), userSays(`{"type":"input_text","text":"a"},{"type":"input_image","image_url":"`+large+`"}`)),
		says("image.assistant", assistant(`{"type":"image_url.done","image_url":"`+remote+`"}`), assistantSays(`{"type":"input_image","image_url":"`+remote+`"}`)),
		saysTo("x/GPT-5.6-terra", "image.detail.large", user(`{"type":"image_url.done","image_url":"`+large+`"}`), userSays(`{"type":"input_image","image_url":"`+large+`","detail":"high"}`)),
		saysTo("gpt-5.6-terra", "image.detail.small", user(`{"type":"image_url.done","image_url":"`+small+`"}`), userSays(`{"type":"input_image","image_url":"`+small+`"}`)),
		saysTo("gpt-5.6-terra", "image.detail.unreadable", user(`{"type":"image_url.done","image_url":"`+remote+`"}`), userSays(`{"type":"input_image","image_url":"`+remote+`"}`)),
		saysTo("gpt-5.5", "image.detail.other_model", user(`{"type":"image_url.done","image_url":"`+large+`"}`), userSays(`{"type":"input_image","image_url":"`+large+`"}`)),

		says("phase", assistant(text("a", commentary)), phased(output("a"), "commentary")),
		says("phase.change", assistant(text("a", commentary)+`,`+text("b", final)+`,`+text("c", final)), phased(output("a"), "commentary")+`,`+phased(output("b")+`,`+output("c"), "final_answer")),
		says("phase.joined_by_none", assistant(text("a", "")+`,`+text("b", commentary)+`,`+text("c", "")), phased(output("a")+`,`+output("b")+`,`+output("c"), "commentary")),
		says("phase.after_a_call", assistant(text("a", final)+`,`+call+`,`+text("b", "")), phased(output("a"), "final_answer")+`,`+wireCall+`,`+phased(output("b"), "final_answer")),
		says("phase.next_message", assistant(text("a", final))+`,`+assistant(text("b", "")), phased(output("a"), "final_answer")+`,`+assistantSays(output("b"))),
		says("phase.user", user(text("a", commentary)), userSays(`{"type":"input_text","text":"a"}`)),
		says("phase.foreign", assistant(text("a", `,"fidelity":{"phase":"commentary","issuer":"elsewhere.example"}`)), phased(output("a"), "commentary")), // no proof of anything

		says("reasoning.summary", thinks("a", `{"channel":"summary","encrypted_content":"E"}`), `{"type":"reasoning","summary":[{"type":"summary_text","text":"a"}],"encrypted_content":"E"}`),
		says("reasoning.summary", thinks("a", `{"channel":"summary"}`), `{"type":"reasoning","summary":[{"type":"summary_text","text":"a"}]}`),
		says("reasoning.content", thinks("a", `{"channel":"content","encrypted_content":"E"}`), `{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"a"}],"encrypted_content":"E"}`),
		says("reasoning.without_channel.encrypted", thinks("a", `{"encrypted_content":"E"}`), `{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"a"}],"encrypted_content":"E"}`),
		says("reasoning.without_channel.plain", thinks("a", `{"signature":"S"}`), `{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"a"}],"signature":"S"}`),
		says("reasoning.without_proof", assistant(`{"type":"thinking.done","thinking":"a"}`), `{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"a"}]}`),
		says("reasoning.encrypted_alone", thinks("", `{"encrypted_content":"E"}`), `{"type":"reasoning","summary":[],"encrypted_content":"E"}`),
		says("reasoning.signature", thinks("", `{"signature":"S"}`), `{"type":"reasoning","summary":[],"signature":"S"}`),
		says("reasoning.format", thinks("", `{"encrypted_content":"E","format":"F"}`), `{"type":"reasoning","summary":[],"encrypted_content":"E","format":"F"}`),
		says("reasoning.empty", assistant(`{"type":"thinking.done","thinking":""}`), `{"type":"reasoning","summary":[]}`),
		says("reasoning.own_issuer", thinks("", `{"encrypted_content":"E","issuer":"gate.example:8443"}`), `{"type":"reasoning","summary":[],"encrypted_content":"E"}`),
		says("reasoning.foreign", thinks("a", `{"signature":"S","issuer":"anthropic"}`)+`,`+thinks("a", `{"channel":"summary","encrypted_content":"E","issuer":"elsewhere.example"}`)+`,`+ask, hi),
		says("reasoning.other_keys", thinks("a", `{"channel":"summary","reasoning_field":"reasoning","id":"rs_1"}`), `{"type":"reasoning","summary":[{"type":"summary_text","text":"a"}]}`),

		says("tool_call", assistant(`{"type":"tool_call.done","name":"f","arguments":{},"tool_call_id":"c1","fidelity":{"signature":"S"}}`), wireCall),
		says(
			"tool_call.text_of_arguments", assistant(`{"type":"tool_call.done","name":"tide_at","arguments":{"port": "Sète", "n": 9007199254740993, "a":1.50},"tool_call_id":"c1"}`),
			`{"type":"function_call","call_id":"c1","name":"tide_at","arguments":"{\"port\": \"Sète\", \"n\": 9007199254740993, \"a\":1.50}"}`,
		),
		says("tool_result", result("0.3 m", ``), `{"type":"function_call_output","call_id":"c","output":"0.3 m"}`),
		says("tool_result.empty", result("", ``), `{"type":"function_call_output","call_id":"c","output":""}`),
		says("tool_result.empty_images", result("a", `,"images":[]`), `{"type":"function_call_output","call_id":"c","output":"a"}`),
		says("tool_result.images", result("a", `,"images":["`+large+`","`+remote+`"]`), `{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"`+large+`"},{"type":"input_image","image_url":"`+remote+`"}]}`),
		says("tool_result.images_alone", result("", `,"images":["`+small+`"]`), `{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":""},{"type":"input_image","image_url":"`+small+`"}]}`),
		saysTo("gpt-5.6-terra", "tool_result.detail", result("a", `,"images":["`+large+`","`+small+`"]`), `{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"`+large+`","detail":"high"},{"type":"input_image","image_url":"`+small+`"}]}`),
		saysTo("gpt-5.5", "tool_result.detail.other_model", result("a", `,"images":["`+large+`"]`), `{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":"`+large+`"}]}`),
		says("tool_result.error", result("broken", `,"is_error":true`), `{"type":"function_call_output","call_id":"c","output":"broken"}`), // the protocol knows no failed results
		sets("top_p", astra, `{"top_p":0.9}`, `,"top_p":0.9`),
		sets("top_p.1", astra, `{"top_p":1}`, `,"top_p":1`),
		refuses("top_k", `{"top_k":40}`, "top_k"),
		refuses("stop_sequences", `{"stop_sequences":["END","<\n"]}`, "stop_sequences"),
		sets("stop_sequences.none", astra, `{"stop_sequences":[]}`, ``),
		refuses("seed", `{"seed":9007199254740993}`, "seed"),
		sets("presence_penalty", astra, `{"presence_penalty":-0.5}`, `,"presence_penalty":-0.5`),
		sets("presence_penalty.0", astra, `{"presence_penalty":0}`, `,"presence_penalty":0`),
		sets("frequency_penalty", astra, `{"frequency_penalty":1.5}`, `,"frequency_penalty":1.5`),
		sets("frequency_penalty.0", astra, `{"frequency_penalty":0}`, `,"frequency_penalty":0`),
		sets("parallel.true", astra, `{"parallel_tool_calls":true}`, `,"parallel_tool_calls":true`),
		sets("parallel.false", astra, `{"parallel_tool_calls":false}`, `,"parallel_tool_calls":false`),
		sets("format.text", astra, `{"response_format":{"type":"text"}}`, ``),
		sets("format.json_object", astra, `{"response_format":{"type":"json_object"}}`, `,"text":{"format":{"type":"json_object"}}`),
		sets("format.json_schema", astra, `{"response_format":{"type":"json_schema","name":"log","description":"A <log>","schema":{"type":"object","properties":{"z":{"maximum":9007199254740993},"a":{"$ref":"#/$defs/d"}},"$defs":{"d":{"type":"string"}}},"strict":true}}`, `,"text":{"format":{"type":"json_schema","name":"log","description":"A <log>","schema":{"type":"object","properties":{"z":{"maximum":9007199254740993},"a":{"$ref":"#/$defs/d"}},"$defs":{"d":{"type":"string"}}},"strict":true}}`),
		sets("format.json_schema.bare", astra, `{"response_format":{"type":"json_schema","schema":{"type":"object"}}}`, `,"text":{"format":{"type":"json_schema","name":"response","schema":{"type":"object"}}}`),
		sets("budget", astra, `{"thinking_budget":20000}`, `,"reasoning":{"effort":"high"}`),
		sets("budget.0", astra, `{"thinking_budget":0}`, `,"reasoning":{"effort":"low"}`),
		sets("budget.dynamic", astra, `{"thinking_budget":-1}`, ``),
		sets("budget.with_level", astra, `{"thinking_budget":20000,"thinking_level":"low"}`, `,"reasoning":{"effort":"low"}`),
		sets("verbosity", astra, `{"verbosity":"low"}`, `,"text":{"verbosity":"low"}`),
		sets("service_tier", astra, `{"service_tier":"flex"}`, `,"service_tier":"flex"`),
		sets("service_tier.with_fast", astra, `{"service_tier":"default","fast_mode":true}`, `,"service_tier":"default"`),
		sets("user", astra, `{"user":"u-4711"}`, `,"user":"u-4711"`),
		sets("user.long", astra, `{"user":"`+strings.Repeat("u", 65)+`"}`, ``),
		sets("metadata", astra, `{"metadata":{"trip":"9","user_id":"m-1"}}`, `,"metadata":{"trip":"9","user_id":"m-1"}`),
		sets("tools.strict", astra, `{"tools":[{"name":"f","description":"d","parameters":{},"strict":false}]}`, `,"tools":[{"type":"function","name":"f","description":"d","parameters":{},"strict":false}]`),
		saysTo("gpt-5.6-terra", "image.detail.given", user(`{"type":"image_url.done","image_url":"`+large+`","detail":"low"}`), userSays(`{"type":"input_image","image_url":"`+large+`","detail":"low"}`)),
		says("inline.document", user(text("Read.", "")+`,{"type":"inline_data.done","data":"QUJD","mime_type":"application/pdf","filename":"<log>.pdf"}`), userSays(`{"type":"input_text","text":"Read."},{"type":"input_file","filename":"<log>.pdf","file_data":"data:application/pdf;base64,QUJD"}`)),
		says("inline.document.unnamed", user(`{"type":"inline_data.done","data":"QUJD","mime_type":"application/pdf"}`), userSays(`{"type":"input_file","filename":"document.pdf","file_data":"data:application/pdf;base64,QUJD"}`)),
		says("inline.image", user(`{"type":"inline_data.done","data":"QUJD","mime_type":"image/png"}`), userSays(`{"type":"input_image","image_url":"data:image/png;base64,QUJD"}`)),
		invalid("inline.video", user(`{"type":"inline_data.done","data":"QUJD","mime_type":"video/mp4"}`), "messages[0].content_items[0]"),
		invalid("inline.assistant", assistant(`{"type":"inline_data.done","data":"QUJD","mime_type":"application/pdf"}`), "messages[0].content_items[0]"),
		says("tool_result.document", result("a", `,"images":["data:application/pdf;base64,QUJD"]`), `{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"a"},{"type":"input_file","filename":"document.pdf","file_data":"data:application/pdf;base64,QUJD"}]}`),
		says("tool_result.document.named", result("a", `,"images":["data:application/pdf;name=log%20%3B1.pdf;base64,QUJD"]`), `{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"a"},{"type":"input_file","filename":"log ;1.pdf","file_data":"data:application/pdf;base64,QUJD"}]}`),
		invalid("tool_result.audio", result("a", `,"images":["data:audio/wav;base64,QUJD"]`), "messages[0].content_items[0].images[0]"),
		invalid("refused.inline_data", user(text("a", "")+`,{"type":"inline_data.done","data":"QUJD","mime_type":"audio/wav"}`), "messages[0].content_items[1]"),
		invalid("refused.inline_thinking", ask+`,`+assistant(`{"type":"inline_thinking.done","data":"QUJD","mime_type":"image/png"}`), "messages[1].content_items[0]"),
		invalid("refused.embedding", user(`{"type":"embedding.done","embedding":[1]}`), "messages[0].content_items[0]"),
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
			var messages []mmsp.Message
			var config mmsp.Config
			if err := errors.Join(json.Unmarshal([]byte(c.messages), &messages), json.Unmarshal([]byte(c.config), &config)); err != nil {
				t.Fatal(err)
			}
			request, err := newClient(t, mmsp.Options{Model: c.model}, nil).Prepare(t.Context(), messages, &config)
			var parameter *mmsp.UnsupportedParameterError
			var place *mmsp.InvalidRequestError
			header := http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}}
			switch {
			case c.refused != "":
				if !(errors.As(err, &parameter) && parameter.Parameter == c.refused && parameter.Client == class && parameter.Message != "") &&
					!(errors.As(err, &place) && place.Param == c.refused) {
					t.Errorf("error %v, want one for %s", err, c.refused)
				}
			case err != nil:
				t.Error(err)
			case string(request.Body) != c.want:
				t.Errorf("%s\n got %s\nwant %s", c.config, request.Body, c.want)
			case request.Method != "POST" || request.URL != "https://gate.example:8443/v1/responses" || !reflect.DeepEqual(request.Header, header):
				t.Errorf("%s %s %v", request.Method, request.URL, request.Header)
			}
		})
	}
	if len(missing) > 0 {
		t.Errorf("rows without a case: %s", missing)
	}
}
