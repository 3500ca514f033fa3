package zaiofficial_test

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/clients/zai_official"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// build makes a client that no environment reaches.
func build(t *testing.T, o mmsp.Options) *zaiofficial.Client {
	t.Helper()
	o.APIKey = mmsp.NewSecret("sk-test")
	o.Getenv = func(string) string { return "" }
	if o.Model == "" {
		o.Model = "m-1"
	}
	c, err := zaiofficial.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// rows names everything that decides what a request says. Each has a case below, and each case is of a row.
var rows = strings.Fields(`
zai.config.top_p zai.config.top_p.1 zai.config.top_k zai.config.stop_sequences zai.config.stop_sequences.one
zai.config.stop_sequences.none zai.config.seed zai.config.presence_penalty zai.config.presence_penalty.0
zai.config.frequency_penalty zai.config.frequency_penalty.0 zai.config.parallel.true zai.config.parallel.false
zai.config.format.text zai.config.format.json_object zai.config.format.json_schema zai.config.budget
zai.config.budget.0 zai.config.budget.dynamic zai.config.budget.with_level zai.config.verbosity
zai.config.service_tier zai.config.user zai.config.metadata zai.config.tools.strict zai.config.user.short
zai.config.always zai.config.system_prompt zai.config.system_prompt.empty zai.config.max_tokens zai.config.tools
zai.config.tools.empty zai.config.tool_choice.auto zai.config.tool_choice.list zai.config.fast_mode
zai.config.fast_mode.false zai.config.prompt_caching.enable zai.config.prompt_caching.disable
zai.config.prompt_caching.enhance zai.config.thinking_summary zai.config.ignored zai.config.temperature
zai.config.temperature.zero zai.config.tool_choice.none zai.config.tool_choice.required zai.config.trace_id
zai.thinking.none.5.3 zai.thinking.low.5.3 zai.thinking.medium.5.3 zai.thinking.high.5.3 zai.thinking.xhigh.5.3
zai.thinking.max.5.3 zai.thinking.none.other zai.thinking.low.other zai.thinking.medium.other
zai.thinking.high.other zai.thinking.xhigh.other zai.thinking.max.other zai.thinking.absent
zai.thinking.model.5.3-flash zai.thinking.model.zai-org zai.thinking.model.pro zai.example zai.message.text.user
zai.message.text.assistant zai.message.tool_call zai.message.tool_result zai.message.tool_result.no_images
zai.message.turn zai.message.empty zai.message.inline_data zai.reasoning.reasoning_content zai.reasoning.reasoning
zai.reasoning.unset zai.reasoning.mixed zai.reasoning.empty zai.reasoning.call_only_turn zai.reasoning.details.own
zai.reasoning.details.own_text zai.reasoning.details.one_text zai.reasoning.details.signed_text zai.reasoning.details.foreign
zai.reasoning.details.foreign_text zai.message.image.flash zai.message.image.other
zai.message.tool_result.images.flash zai.message.tool_result.images.other
`)

// golden gives each row a config and messages, in their wire form, and the body that they become but for the fields that
// every body begins with, or the error. Messages that are not given say "hi".
var golden = []struct{ id, model, config, messages, want string }{
	{"zai.config.always", "glm-5.2", ``, ``, ``},
	{"zai.config.system_prompt", "glm-5.2", `"system_prompt":"Be <brief>"`, ``, `"messages":[{"role":"system","content":"Be <brief>"},` + hi + `]`},
	{"zai.config.system_prompt.empty", "glm-5.2", `"system_prompt":""`, ``, ``},
	{"zai.config.max_tokens", "glm-5.2", `"max_tokens":400`, ``, `"max_tokens":400,`},
	{"zai.config.tools", "glm-5.2", `"tools":[{"name":"f","description":"d","parameters":{"type":"object","properties":{"z":{},"a":{"maximum":9007199254740993}}}}]`, ``, `"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{"z":{},"a":{"maximum":9007199254740993}}}}}],`},
	{"zai.config.tools.empty", "glm-5.2", `"tools":[]`, ``, `"tools":[],`},
	{"zai.config.tool_choice.auto", "glm-5.2", `"tool_choice":"auto"`, ``, `"tool_choice":"auto",`},
	{"zai.config.tool_choice.list", "glm-5.2", `"tool_choice":["f"]`, ``, `unsupported tool_choice`},
	{"zai.config.fast_mode", "glm-5.2", `"fast_mode":true`, ``, `unsupported fast_mode`},
	{"zai.config.fast_mode.false", "glm-5.2", `"fast_mode":false`, ``, ``},
	{"zai.config.prompt_caching.enable", "glm-5.2", `"prompt_caching":"enable"`, ``, ``},
	{"zai.config.prompt_caching.disable", "glm-5.2", `"prompt_caching":"disable"`, ``, `unsupported prompt_caching`},
	{"zai.config.prompt_caching.enhance", "glm-5.2", `"prompt_caching":"enhance"`, ``, `unsupported prompt_caching`},
	{"zai.config.thinking_summary", "glm-5.2", `"thinking_summary":true`, ``, ``},
	{"zai.config.ignored", "glm-5.2", `"image_config":{"image_size":"1K"},"tts_config":[{"voice":"v"}],"embedding_config":{"dimensions":4}`, ``, ``},
	{"zai.config.temperature", "glm-5.2", `"temperature":0.7`, ``, `"temperature":0.7,`},
	{"zai.config.temperature.zero", "glm-5.2", `"temperature":0`, ``, `"temperature":0,`},
	{"zai.config.tool_choice.none", "glm-5.2", `"tool_choice":"none"`, ``, `unsupported tool_choice`},
	{"zai.config.tool_choice.required", "glm-5.2", `"tool_choice":"required"`, ``, `unsupported tool_choice`},
	{"zai.config.trace_id", "glm-5.2", `"trace_id":"a/b"`, ``, ``},
	{"zai.thinking.none.5.3", "glm-5.3", `"thinking_level":"none"`, ``, `"thinking":{"type":"enabled","clear_thinking":false},"reasoning_effort":"low",`},
	{"zai.thinking.low.5.3", "glm-5.3", `"thinking_level":"low"`, ``, `"thinking":{"type":"enabled","clear_thinking":false},"reasoning_effort":"low",`},
	{"zai.thinking.medium.5.3", "glm-5.3", `"thinking_level":"medium"`, ``, `"thinking":{"type":"enabled","clear_thinking":false},"reasoning_effort":"high",`},
	{"zai.thinking.high.5.3", "glm-5.3", `"thinking_level":"high"`, ``, `"thinking":{"type":"enabled","clear_thinking":false},"reasoning_effort":"high",`},
	{"zai.thinking.xhigh.5.3", "glm-5.3", `"thinking_level":"xhigh"`, ``, `"thinking":{"type":"enabled","clear_thinking":false},"reasoning_effort":"max",`},
	{"zai.thinking.max.5.3", "glm-5.3", `"thinking_level":"max"`, ``, `"thinking":{"type":"enabled","clear_thinking":false},"reasoning_effort":"max",`},
	{"zai.thinking.none.other", "glm-5.2", `"thinking_level":"none"`, ``, `"thinking":{"type":"disabled"},`},
	{"zai.thinking.low.other", "glm-5.2", `"thinking_level":"low"`, ``, `"thinking":{"type":"enabled","clear_thinking":false},"reasoning_effort":"low",`},
	{"zai.thinking.medium.other", "glm-5.2", `"thinking_level":"medium"`, ``, `"thinking":{"type":"enabled","clear_thinking":false},"reasoning_effort":"medium",`},
	{"zai.thinking.high.other", "glm-5.2", `"thinking_level":"high"`, ``, `"thinking":{"type":"enabled","clear_thinking":false},"reasoning_effort":"high",`},
	{"zai.thinking.xhigh.other", "glm-5.2", `"thinking_level":"xhigh"`, ``, `"thinking":{"type":"enabled","clear_thinking":false},"reasoning_effort":"xhigh",`},
	{"zai.thinking.max.other", "glm-5.2", `"thinking_level":"max"`, ``, `"thinking":{"type":"enabled","clear_thinking":false},"reasoning_effort":"max",`},
	{"zai.thinking.absent", "glm-5.3", ``, ``, ``},
	{"zai.thinking.model.5.3-flash", "GLM-5.3-Flash", `"thinking_level":"none"`, ``, `"thinking":{"type":"enabled","clear_thinking":false},"reasoning_effort":"low",`},
	{"zai.thinking.model.zai-org", "zai-org/GLM-5.2", `"thinking_level":"none"`, ``, `"thinking":{"type":"disabled"},`},
	{"zai.thinking.model.pro", "Pro/zai-org/GLM-5.1", `"thinking_level":"max"`, ``, `"thinking":{"type":"enabled","clear_thinking":false},"reasoning_effort":"max",`},
	{"zai.config.top_p", "glm-5.2", `"top_p":0.9`, ``, `"top_p":0.9,`},
	{"zai.config.top_p.1", "glm-5.2", `"top_p":1`, ``, `"top_p":1,`},
	{"zai.config.top_k", "glm-5.2", `"top_k":40`, ``, `unsupported top_k`},
	{"zai.config.stop_sequences", "glm-5.2", `"stop_sequences":["END","<\n"]`, ``, `unsupported stop_sequences`},
	{"zai.config.stop_sequences.one", "glm-5.2", `"stop_sequences":["END"]`, ``, `"stop":["END"],`},
	{"zai.config.stop_sequences.none", "glm-5.2", `"stop_sequences":[]`, ``, ``},
	{"zai.config.seed", "glm-5.2", `"seed":9007199254740993`, ``, `unsupported seed`},
	{"zai.config.presence_penalty", "glm-5.2", `"presence_penalty":-0.5`, ``, `unsupported presence_penalty`},
	{"zai.config.presence_penalty.0", "glm-5.2", `"presence_penalty":0`, ``, ``},
	{"zai.config.frequency_penalty", "glm-5.2", `"frequency_penalty":1.5`, ``, `unsupported frequency_penalty`},
	{"zai.config.frequency_penalty.0", "glm-5.2", `"frequency_penalty":0`, ``, ``},
	{"zai.config.parallel.true", "glm-5.2", `"parallel_tool_calls":true`, ``, ``},
	{"zai.config.parallel.false", "glm-5.2", `"parallel_tool_calls":false`, ``, `unsupported parallel_tool_calls`},
	{"zai.config.format.text", "glm-5.2", `"response_format":{"type":"text"}`, ``, ``},
	{"zai.config.format.json_object", "glm-5.2", `"response_format":{"type":"json_object"}`, ``, `"response_format":{"type":"json_object"},`},
	{"zai.config.format.json_schema", "glm-5.2", `"response_format":{"type":"json_schema","name":"log","description":"A <log>","schema":{"type":"object","properties":{"z":{"maximum":9007199254740993},"a":{"$ref":"#/$defs/d"}},"$defs":{"d":{"type":"string"}}},"strict":true}`, ``, `unsupported response_format`},
	{"zai.config.budget", "glm-5.2", `"thinking_budget":20000`, ``, `"thinking":{"type":"enabled","clear_thinking":false},"reasoning_effort":"high",`},
	{"zai.config.budget.0", "glm-5.2", `"thinking_budget":0`, ``, `"thinking":{"type":"disabled"},`},
	{"zai.config.budget.dynamic", "glm-5.2", `"thinking_budget":-1`, ``, ``},
	{"zai.config.budget.with_level", "glm-5.2", `"thinking_budget":20000,"thinking_level":"low"`, ``, `"thinking":{"type":"enabled","clear_thinking":false},"reasoning_effort":"low",`},
	{"zai.config.verbosity", "glm-5.2", `"verbosity":"low"`, ``, `unsupported verbosity`},
	{"zai.config.service_tier", "glm-5.2", `"service_tier":"flex"`, ``, `unsupported service_tier`},
	{"zai.config.user", "glm-5.2", `"user":"u-4711"`, ``, `"user_id":"u-4711",`},
	{"zai.config.metadata", "glm-5.2", `"metadata":{"trip":"9","user_id":"m-1"}`, ``, ``},
	{"zai.config.tools.strict", "glm-5.2", `"tools":[{"name":"f","description":"d","parameters":{},"strict":false}]`, ``, `"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{}}}],`},
	{"zai.config.user.short", "glm-5.2", `"user":"u-1"`, ``, ``},
	{"zai.example", "glm-5.3", `"max_tokens":300,"thinking_level":"none"`, ``, `"max_tokens":300,"thinking":{"type":"enabled","clear_thinking":false},"reasoning_effort":"low",`},
	{"zai.message.text.user", "glm-5.3", ``, user(`{"type":"text.done","text":"Grüße <b>&"},{"type":"text.done","text":"b"}`), sent(`{"role":"user","content":[{"type":"text","text":"Grüße <b>&"},{"type":"text","text":"b"}]}`)},
	{"zai.message.text.assistant", "glm-5.3", ``, assistant(`{"type":"text.done","text":"yes"}`), sent(`{"role":"assistant","content":[{"type":"text","text":"yes"}]}`)},
	{"zai.message.tool_call", "glm-5.3", ``, assistant(call), sent(`{"role":"assistant","tool_calls":[` + wireCall + `]}`)},
	{"zai.message.tool_result", "glm-5.3", ``, user(`{"type":"text.done","text":"hi"},` + result(`,"is_error":true`)), sent(`{"role":"tool","tool_call_id":"k1","content":"4.1 m"},` + hi)},
	{"zai.message.tool_result.no_images", "glm-5.3", ``, user(result(`,"images":[]`)), sent(`{"role":"tool","tool_call_id":"k1","content":"4.1 m"}`)},
	{"zai.message.turn", "glm-5.3", ``, assistant(thought(`Hm.`, `"reasoning_field":"reasoning_content"`) + `,{"type":"text.done","text":"So:"},` + call), sent(`{"role":"assistant","content":[{"type":"text","text":"So:"}],"tool_calls":[` + wireCall + `],"reasoning_content":"Hm."}`)},
	{"zai.message.empty", "glm-5.3", ``, user(``), sent(``)},
	{"zai.message.inline_data", "glm-5.3", ``, user(`{"type":"inline_data.done","data":"AAAA","mime_type":"audio/wav"}`), `invalid messages[0].content_items[0]: ZAIOfficialClient cannot send inline_data.done items`},
	{"zai.reasoning.reasoning_content", "glm-5.3", ``, assistant(thought(`a`, `"reasoning_field":"reasoning_content"`) + `,` + thought(`b`, `"reasoning_field":"reasoning_content"`)), sent(`{"role":"assistant","reasoning_content":"ab"}`)},
	{"zai.reasoning.reasoning", "glm-5.3", ``, assistant(thought(`a`, `"reasoning_field":"reasoning"`)), sent(`{"role":"assistant","reasoning":"a"}`)},
	{"zai.reasoning.unset", "glm-5.3", ``, assistant(thought(`a`, `"signature":"s"`)), sent(`{"role":"assistant","reasoning_content":"a","reasoning":"a"}`)},
	{"zai.reasoning.mixed", "glm-5.3", ``, assistant(thought(`a`, `"reasoning_field":"reasoning"`) + `,` + thought(`b`, ``)), sent(`{"role":"assistant","reasoning_content":"ab","reasoning":"ab"}`)},
	{"zai.reasoning.empty", "glm-5.3", ``, assistant(thought(``, `"reasoning_field":"reasoning"`)), sent(``)},
	{"zai.reasoning.call_only_turn", "glm-5.3", ``, assistant(thought(`a`, `"reasoning_field":"reasoning_content"`)+`,`+call) + `,` + user(result(``)) + `,` + assistant(call), sent(`{"role":"assistant","tool_calls":[` + wireCall + `],"reasoning_content":"a"},{"role":"tool","tool_call_id":"k1","content":"4.1 m"},{"role":"assistant","tool_calls":[` + wireCall + `]}`)},
	{"zai.reasoning.details.own", "glm-5.3", ``, assistant(thought(`a`, `"reasoning_field":"reasoning"`) + `,` + thought(``, `"reasoning_details":[{"type":"reasoning.text","format":"f","index":0,"signature":"S"}],"issuer":"zai"`)), sent(`{"role":"assistant","reasoning":"a","reasoning_details":[{"type":"reasoning.text","format":"f","index":0,"text":"a","signature":"S"}]}`)},
	{"zai.reasoning.details.own_text", "glm-5.3", ``, assistant(thought(`a`, `"reasoning_details":[{"type":"reasoning.text","index":0}],"issuer":"zai"`) + `,` + thought(``, `"reasoning_details":[{"type":"reasoning.text","index":0,"signature":"S"}]`) + `,` + thought(`b`, `"reasoning_field":"reasoning"`) + `,` + thought(`c`, `"reasoning_field":"reasoning"`) + `,` + thought(``, `"reasoning_details":[{"type":"reasoning.text","index":1,"signature":"T"},{"type":"reasoning.summary"},{"type":"reasoning.encrypted","data":"D"}]`)), sent(`{"role":"assistant","reasoning":"bc","reasoning_details":[{"type":"reasoning.text","index":0,"text":"a","signature":"S"},{"type":"reasoning.text","index":1,"text":"bc","signature":"T"},{"type":"reasoning.summary"},{"type":"reasoning.encrypted","data":"D"}]}`)},
	{"zai.reasoning.details.one_text", "glm-5.3", ``, assistant(thought(`a`, `"reasoning_details":[{"type":"reasoning.text","index":0},{"type":"reasoning.text","index":0,"signature":"S"},{"type":"reasoning.encrypted","data":"D"}],"issuer":"zai"`)), sent(`{"role":"assistant","reasoning_details":[{"type":"reasoning.text","index":0,"text":"a","signature":"S"},{"type":"reasoning.encrypted","data":"D"}]}`)},
	{"zai.reasoning.details.signed_text", "glm-5.3", ``, assistant(thought(`b`, `"reasoning_field":"reasoning"`) + `,` + thought(`a`, `"reasoning_details":[{"type":"reasoning.text","signature":"S"}],"issuer":"zai"`)), sent(`{"role":"assistant","reasoning":"b","reasoning_details":[{"type":"reasoning.text","text":"a","signature":"S"}]}`)},
	{"zai.reasoning.details.foreign", "glm-5.3", ``, assistant(thought(`a`, `"reasoning_field":"reasoning"`) + `,` + thought(``, `"reasoning_details":[{"type":"reasoning.encrypted","data":"D"}],"issuer":"other.test"`)), sent(`{"role":"assistant","reasoning":"a"}`)},
	{"zai.reasoning.details.foreign_text", "glm-5.3", ``, assistant(thought(`a`, `"reasoning_details":[{"type":"reasoning.text","signature":"S"}],"issuer":"other.test"`)), sent(`{"role":"assistant","reasoning_content":"a","reasoning":"a"}`)},
	{"zai.message.image.flash", "zai-org/GLM-5.3-Flash", ``, user(`{"type":"image_url.done","image_url":"` + data + `"},{"type":"image_url.done","image_url":"https://pictures.test/a.png"}`), sent(`{"role":"user","content":[` + picture + `,{"type":"image_url","image_url":{"url":"https://pictures.test/a.png"}}]}`)},
	{"zai.message.image.other", "glm-5.3", ``, user(`{"type":"image_url.done","image_url":"` + data + `"}`), `invalid messages[0].content_items[0].image_url: glm-5.3 does not support images`},
	{"zai.message.tool_result.images.flash", "glm-5.3-flash", ``, user(`{"type":"text.done","text":"hi"},` + result(`,"images":["https://pictures.test/a.png"]`)), sent(`{"role":"tool","tool_call_id":"k1","content":"4.1 m"},{"role":"user","content":[{"type":"text","text":"hi"},{"type":"image_url","image_url":{"url":"https://pictures.test/a.png"}}]}`)},
	{"zai.message.tool_result.images.other", "glm-5.2", ``, user(`{"type":"text.done","text":"hi"},` + result(`,"images":["`+data+`"]`)), `invalid messages[0].content_items[1].images[0]: glm-5.2 does not support images`},
}

func TestGolden(t *testing.T) {
	seen := map[string]bool{}
	for _, tt := range golden {
		if seen[tt.id] || !slices.Contains(rows, tt.id) {
			t.Errorf("%s stands for no row, or for one that has its case", tt.id)
		}
		seen[tt.id] = true
		t.Run(tt.id, func(t *testing.T) {
			if tt.messages == "" {
				tt.messages = user(`{"type":"text.done","text":"hi"}`)
			}
			if !strings.HasPrefix(tt.want, "unsupported ") && !strings.HasPrefix(tt.want, "invalid ") {
				if !strings.Contains(tt.want, `"messages":`) {
					tt.want += `"messages":[` + hi + `]`
				}
				tt.want = `{"model":"` + tt.model + `","stream":true,"tool_stream":true,` + tt.want + `}`
			}
			messages, err := mmsp.ParseMessages([]byte("["+tt.messages+"]"), false)
			if err != nil {
				t.Fatal(err)
			}
			config, err := mmsp.ParseConfig([]byte("{" + tt.config + "}"))
			if err != nil {
				t.Fatal(err)
			}
			c := build(t, mmsp.Options{Model: tt.model, AllowPrivateFetch: true})
			for range 2 { // the same bytes every time
				if got := prepare(t, c, messages, &config); got != tt.want {
					t.Errorf("got  %s\nwant %s", got, tt.want)
				}
			}
		})
	}
	for _, id := range rows {
		if !seen[id] {
			t.Errorf("%s has no case", id)
		}
	}
}

// prepare returns the request body, or the kind of the error and what it names.
func prepare(t *testing.T, c *zaiofficial.Client, messages []mmsp.Message, config *mmsp.Config) string {
	request, err := c.Prepare(t.Context(), messages, config)
	var unsupported *mmsp.UnsupportedParameterError
	var invalid *mmsp.InvalidRequestError
	switch {
	case errors.As(err, &unsupported) && unsupported.Client == "ZAIOfficialClient":
		return "unsupported " + unsupported.Parameter
	case errors.As(err, &invalid):
		return "invalid " + invalid.Error()
	case err != nil:
		return fmt.Sprintf("%T %v", err, err)
	}
	if request.Method != http.MethodPost || request.URL != "https://api.z.ai/api/paas/v4/chat/completions" ||
		request.Header.Get("Content-Type") != "application/json" || request.Header.Get("Authorization") != "" {
		t.Errorf("%s %s %v", request.Method, request.URL, request.Header)
	}
	return string(request.Body)
}

const (
	hi       = `{"role":"user","content":[{"type":"text","text":"hi"}]}`
	data     = `data:image/png;base64,AAAA`
	picture  = `{"type":"image_url","image_url":{"url":"` + data + `"}}`
	call     = `{"type":"tool_call.done","name":"tide_at","arguments":{ "port":"Brest","n":18446744073709551615 },"tool_call_id":"k1"}`
	wireCall = `{"id":"k1","type":"function","function":{"name":"tide_at","arguments":"{ \"port\":\"Brest\",\"n\":18446744073709551615 }"}}`
)

func user(items string) string { return `{"role":"user","content_items":[` + items + `]}` }

func assistant(items string) string { return `{"role":"assistant","content_items":[` + items + `]}` }

func thought(text, fidelity string) string {
	return `{"type":"thinking.done","thinking":"` + text + `","fidelity":{` + fidelity + `}}`
}

func result(more string) string {
	return `{"type":"tool_result.done","tool_call_id":"k1","text":"4.1 m"` + more + `}`
}

// sent is the list of messages of a body.
func sent(messages string) string { return `"messages":[` + messages + `]` }
