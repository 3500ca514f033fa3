package moonshotofficial_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/clients/moonshot_official"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// build makes a client that no environment reaches.
func build(t *testing.T, o mmsp.Options) *moonshotofficial.Client {
	t.Helper()
	o.APIKey = mmsp.NewSecret("sk-test")
	o.Getenv = func(string) string { return "" }
	if o.Model == "" {
		o.Model = "m-1"
	}
	c, err := moonshotofficial.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// rows names everything that decides what a request says. Each has a case below, and each case is of a row.
var rows = strings.Fields(`
moonshot.config.top_p moonshot.config.top_p.1 moonshot.config.top_k moonshot.config.stop_sequences
moonshot.config.stop_sequences.none moonshot.config.seed moonshot.config.presence_penalty
moonshot.config.presence_penalty.0 moonshot.config.frequency_penalty moonshot.config.frequency_penalty.0
moonshot.config.parallel.true moonshot.config.parallel.false moonshot.config.format.text
moonshot.config.format.json_object moonshot.config.format.json_schema moonshot.config.format.json_schema.bare
moonshot.config.budget moonshot.config.budget.0 moonshot.config.budget.dynamic moonshot.config.budget.with_level
moonshot.config.verbosity moonshot.config.service_tier moonshot.config.user moonshot.config.metadata
moonshot.config.tools.strict
moonshot.config.always moonshot.config.system_prompt moonshot.config.system_prompt.empty moonshot.config.max_tokens
moonshot.config.tools moonshot.config.tools.empty moonshot.config.tool_choice.auto moonshot.config.tool_choice.list
moonshot.config.fast_mode moonshot.config.fast_mode.false moonshot.config.prompt_caching.enable
moonshot.config.prompt_caching.disable moonshot.config.prompt_caching.enhance moonshot.config.thinking_summary
moonshot.config.ignored moonshot.config.temperature.one moonshot.config.temperature.other
moonshot.config.temperature.zero moonshot.config.tool_choice.none.k3 moonshot.config.tool_choice.required.k3
moonshot.config.trace_id.k3 moonshot.config.tool_choice.none.k2 moonshot.config.tool_choice.required.k2
moonshot.config.trace_id.k2 moonshot.thinking.none.k3 moonshot.thinking.low.k3 moonshot.thinking.medium.k3
moonshot.thinking.high.k3 moonshot.thinking.xhigh.k3 moonshot.thinking.max.k3 moonshot.thinking.none.k2
moonshot.thinking.low.k2 moonshot.thinking.medium.k2 moonshot.thinking.high.k2 moonshot.thinking.xhigh.k2
moonshot.thinking.max.k2 moonshot.thinking.absent.k2 moonshot.example moonshot.message.text.user
moonshot.message.text.assistant moonshot.message.tool_call moonshot.message.tool_result
moonshot.message.tool_result.no_images moonshot.message.turn moonshot.message.empty moonshot.message.inline_data
moonshot.reasoning.reasoning_content moonshot.reasoning.reasoning moonshot.reasoning.unset moonshot.reasoning.mixed
moonshot.reasoning.empty moonshot.reasoning.call_only_turn moonshot.reasoning.details.own
moonshot.reasoning.details.own_text moonshot.reasoning.details.one_text moonshot.reasoning.details.signed_text moonshot.reasoning.details.foreign
moonshot.reasoning.details.foreign_text moonshot.message.image.data moonshot.message.image.large
moonshot.message.image.remote moonshot.message.tool_result.images
`)

// golden gives each row a config and messages, in their wire form, and the body that they become but for the fields that
// every body begins with, or the error. Messages that are not given say "hi".
var golden = []struct{ id, model, config, messages, want string }{
	{"moonshot.config.always", "kimi-k3", ``, ``, ``},
	{"moonshot.config.system_prompt", "kimi-k3", `"system_prompt":"Be <brief>"`, ``, `"messages":[{"role":"system","content":"Be <brief>"},` + hi + `]`},
	{"moonshot.config.system_prompt.empty", "kimi-k3", `"system_prompt":""`, ``, ``},
	{"moonshot.config.max_tokens", "kimi-k3", `"max_tokens":400`, ``, `"max_completion_tokens":400,`},
	{"moonshot.config.tools", "kimi-k3", `"tools":[{"name":"f","description":"d","parameters":{"type":"object","properties":{"z":{},"a":{"maximum":9007199254740993}}}}]`, ``, `"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{"z":{},"a":{"maximum":9007199254740993}}}}}],`},
	{"moonshot.config.tools.empty", "kimi-k3", `"tools":[]`, ``, `"tools":[],`},
	{"moonshot.config.tool_choice.auto", "kimi-k3", `"tool_choice":"auto"`, ``, `"tool_choice":"auto",`},
	{"moonshot.config.tool_choice.list", "kimi-k3", `"tool_choice":["f"]`, ``, `unsupported tool_choice`},
	{"moonshot.config.fast_mode", "kimi-k3", `"fast_mode":true`, ``, `unsupported fast_mode`},
	{"moonshot.config.fast_mode.false", "kimi-k3", `"fast_mode":false`, ``, ``},
	{"moonshot.config.prompt_caching.enable", "kimi-k3", `"prompt_caching":"enable"`, ``, ``},
	{"moonshot.config.prompt_caching.disable", "kimi-k3", `"prompt_caching":"disable"`, ``, `unsupported prompt_caching`},
	{"moonshot.config.prompt_caching.enhance", "kimi-k3", `"prompt_caching":"enhance"`, ``, `unsupported prompt_caching`},
	{"moonshot.config.thinking_summary", "kimi-k3", `"thinking_summary":true`, ``, ``},
	{"moonshot.config.ignored", "kimi-k3", `"image_config":{"image_size":"1K"},"tts_config":[{"voice":"v"}],"embedding_config":{"dimensions":4}`, ``, ``},
	{"moonshot.config.temperature.one", "kimi-k3", `"temperature":1.0`, ``, ``},
	{"moonshot.config.temperature.other", "kimi-k3", `"temperature":0.7`, ``, `unsupported temperature`},
	{"moonshot.config.temperature.zero", "kimi-k3", `"temperature":0`, ``, `unsupported temperature`},
	{"moonshot.config.tool_choice.none.k3", "kimi-k3", `"tool_choice":"none"`, ``, `"tool_choice":"none",`},
	{"moonshot.config.tool_choice.required.k3", "kimi-k3", `"tool_choice":"required"`, ``, `"tool_choice":"required",`},
	{"moonshot.config.trace_id.k3", "kimi-k3", `"trace_id":"trips/trip-42"`, ``, ``},
	{"moonshot.config.tool_choice.none.k2", "kimi-k2.6", `"tool_choice":"none"`, ``, `"tool_choice":"none",`},
	{"moonshot.config.tool_choice.required.k2", "kimi-k2.6", `"tool_choice":"required"`, ``, `unsupported tool_choice`},
	{"moonshot.config.trace_id.k2", "kimi-k2.6", `"trace_id":"trips/trip-42"`, ``, `"prompt_cache_key":"trips/trip-42",`},
	{"moonshot.thinking.none.k3", "kimi-k3", `"thinking_level":"none"`, ``, `"reasoning_effort":"low",`},
	{"moonshot.thinking.low.k3", "kimi-k3", `"thinking_level":"low"`, ``, `"reasoning_effort":"low",`},
	{"moonshot.thinking.medium.k3", "kimi-k3", `"thinking_level":"medium"`, ``, `"reasoning_effort":"high",`},
	{"moonshot.thinking.high.k3", "kimi-k3", `"thinking_level":"high"`, ``, `"reasoning_effort":"high",`},
	{"moonshot.thinking.xhigh.k3", "kimi-k3", `"thinking_level":"xhigh"`, ``, `"reasoning_effort":"max",`},
	{"moonshot.thinking.max.k3", "kimi-k3", `"thinking_level":"max"`, ``, `"reasoning_effort":"max",`},
	{"moonshot.thinking.none.k2", "kimi-k2.6", `"thinking_level":"none"`, ``, `"thinking":{"type":"disabled"},`},
	{"moonshot.thinking.low.k2", "kimi-k2.6", `"thinking_level":"low"`, ``, `"thinking":{"type":"enabled","keep":"all"},`},
	{"moonshot.thinking.medium.k2", "kimi-k2.6", `"thinking_level":"medium"`, ``, `"thinking":{"type":"enabled","keep":"all"},`},
	{"moonshot.thinking.high.k2", "Moonshotai/Kimi-K2.5", `"thinking_level":"high"`, ``, `"thinking":{"type":"enabled","keep":"all"},`},
	{"moonshot.thinking.xhigh.k2", "kimi-k2.6", `"thinking_level":"xhigh"`, ``, `"thinking":{"type":"enabled","keep":"all"},`},
	{"moonshot.thinking.max.k2", "kimi-k2.6", `"thinking_level":"max"`, ``, `"thinking":{"type":"enabled","keep":"all"},`},
	{"moonshot.thinking.absent.k2", "kimi-k2.6", ``, ``, ``},
	{"moonshot.config.top_p", "kimi-k3", `"top_p":0.9`, ``, `unsupported top_p`},
	{"moonshot.config.top_p.1", "kimi-k3", `"top_p":1`, ``, ``},
	{"moonshot.config.top_k", "kimi-k3", `"top_k":40`, ``, `unsupported top_k`},
	{"moonshot.config.stop_sequences", "kimi-k3", `"stop_sequences":["END","<\n"]`, ``, `"stop":["END","<\n"],`},
	{"moonshot.config.stop_sequences.none", "kimi-k3", `"stop_sequences":[]`, ``, ``},
	{"moonshot.config.seed", "kimi-k3", `"seed":9007199254740993`, ``, `unsupported seed`},
	{"moonshot.config.presence_penalty", "kimi-k3", `"presence_penalty":-0.5`, ``, `unsupported presence_penalty`},
	{"moonshot.config.presence_penalty.0", "kimi-k3", `"presence_penalty":0`, ``, ``},
	{"moonshot.config.frequency_penalty", "kimi-k3", `"frequency_penalty":1.5`, ``, `unsupported frequency_penalty`},
	{"moonshot.config.frequency_penalty.0", "kimi-k3", `"frequency_penalty":0`, ``, ``},
	{"moonshot.config.parallel.true", "kimi-k3", `"parallel_tool_calls":true`, ``, ``},
	{"moonshot.config.parallel.false", "kimi-k3", `"parallel_tool_calls":false`, ``, `unsupported parallel_tool_calls`},
	{"moonshot.config.format.text", "kimi-k3", `"response_format":{"type":"text"}`, ``, ``},
	{"moonshot.config.format.json_object", "kimi-k3", `"response_format":{"type":"json_object"}`, ``, `"response_format":{"type":"json_object"},`},
	{"moonshot.config.format.json_schema", "kimi-k3", `"response_format":{"type":"json_schema","name":"log","description":"A <log>","schema":{"type":"object","properties":{"z":{"maximum":9007199254740993},"a":{"$ref":"#/$defs/d"}},"$defs":{"d":{"type":"string"}}},"strict":true}`, ``, `"response_format":{"type":"json_schema","json_schema":{"name":"log","description":"A <log>","schema":{"type":"object","properties":{"z":{"maximum":9007199254740993},"a":{"$ref":"#/$defs/d"}},"$defs":{"d":{"type":"string"}}},"strict":true}},`},
	{"moonshot.config.format.json_schema.bare", "kimi-k3", `"response_format":{"type":"json_schema","schema":{"type":"object"}}`, ``, `"response_format":{"type":"json_schema","json_schema":{"name":"response","schema":{"type":"object"}}},`},
	{"moonshot.config.budget", "kimi-k3", `"thinking_budget":20000`, ``, `"reasoning_effort":"high",`},
	{"moonshot.config.budget.0", "kimi-k3", `"thinking_budget":0`, ``, `"reasoning_effort":"low",`},
	{"moonshot.config.budget.dynamic", "kimi-k3", `"thinking_budget":-1`, ``, ``},
	{"moonshot.config.budget.with_level", "kimi-k3", `"thinking_budget":20000,"thinking_level":"low"`, ``, `"reasoning_effort":"low",`},
	{"moonshot.config.verbosity", "kimi-k3", `"verbosity":"low"`, ``, `unsupported verbosity`},
	{"moonshot.config.service_tier", "kimi-k3", `"service_tier":"flex"`, ``, `unsupported service_tier`},
	{"moonshot.config.user", "kimi-k3", `"user":"u-4711"`, ``, `"safety_identifier":"u-4711",`},
	{"moonshot.config.metadata", "kimi-k3", `"metadata":{"trip":"9","user_id":"m-1"}`, ``, ``},
	{"moonshot.config.tools.strict", "kimi-k3", `"tools":[{"name":"f","description":"d","parameters":{},"strict":false}]`, ``, `"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{}}}],`},
	{"moonshot.example", "kimi-k2.6", `"max_tokens":400,"thinking_level":"high","trace_id":"trip-42"`, ``, `"max_completion_tokens":400,"thinking":{"type":"enabled","keep":"all"},"prompt_cache_key":"trip-42",`},
	{"moonshot.message.text.user", "kimi-k3", ``, user(`{"type":"text.done","text":"Grüße <b>&"},{"type":"text.done","text":"b"}`), sent(`{"role":"user","content":[{"type":"text","text":"Grüße <b>&"},{"type":"text","text":"b"}]}`)},
	{"moonshot.message.text.assistant", "kimi-k3", ``, assistant(`{"type":"text.done","text":"yes"}`), sent(`{"role":"assistant","content":[{"type":"text","text":"yes"}]}`)},
	{"moonshot.message.tool_call", "kimi-k3", ``, assistant(call), sent(`{"role":"assistant","tool_calls":[` + wireCall + `]}`)},
	{"moonshot.message.tool_result", "kimi-k3", ``, user(`{"type":"text.done","text":"hi"},` + result(`,"is_error":true`)), sent(`{"role":"tool","tool_call_id":"k1","content":"4.1 m"},` + hi)},
	{"moonshot.message.tool_result.no_images", "kimi-k3", ``, user(result(`,"images":[]`)), sent(`{"role":"tool","tool_call_id":"k1","content":"4.1 m"}`)},
	{"moonshot.message.turn", "kimi-k3", ``, assistant(thought(`Hm.`, `"reasoning_field":"reasoning_content"`) + `,{"type":"text.done","text":"So:"},` + call), sent(`{"role":"assistant","content":[{"type":"text","text":"So:"}],"tool_calls":[` + wireCall + `],"reasoning_content":"Hm."}`)},
	{"moonshot.message.empty", "kimi-k3", ``, user(``), sent(``)},
	{"moonshot.message.inline_data", "kimi-k3", ``, user(`{"type":"inline_data.done","data":"AAAA","mime_type":"audio/wav"}`), `invalid messages[0].content_items[0]: MoonshotOfficialClient cannot send inline_data.done items`},
	{"moonshot.reasoning.reasoning_content", "kimi-k3", ``, assistant(thought(`a`, `"reasoning_field":"reasoning_content"`) + `,` + thought(`b`, `"reasoning_field":"reasoning_content"`)), sent(`{"role":"assistant","reasoning_content":"ab"}`)},
	{"moonshot.reasoning.reasoning", "kimi-k3", ``, assistant(thought(`a`, `"reasoning_field":"reasoning"`)), sent(`{"role":"assistant","reasoning":"a"}`)},
	{"moonshot.reasoning.unset", "kimi-k3", ``, assistant(thought(`a`, `"signature":"s"`)), sent(`{"role":"assistant","reasoning_content":"a","reasoning":"a"}`)},
	{"moonshot.reasoning.mixed", "kimi-k3", ``, assistant(thought(`a`, `"reasoning_field":"reasoning"`) + `,` + thought(`b`, ``)), sent(`{"role":"assistant","reasoning_content":"ab","reasoning":"ab"}`)},
	{"moonshot.reasoning.empty", "kimi-k3", ``, assistant(thought(``, `"reasoning_field":"reasoning"`)), sent(``)},
	{"moonshot.reasoning.call_only_turn", "kimi-k3", ``, assistant(thought(`a`, `"reasoning_field":"reasoning_content"`)+`,`+call) + `,` + user(result(``)) + `,` + assistant(call), sent(`{"role":"assistant","tool_calls":[` + wireCall + `],"reasoning_content":"a"},{"role":"tool","tool_call_id":"k1","content":"4.1 m"},{"role":"assistant","tool_calls":[` + wireCall + `]}`)},
	{"moonshot.reasoning.details.own", "kimi-k3", ``, assistant(thought(`a`, `"reasoning_field":"reasoning"`) + `,` + thought(``, `"reasoning_details":[{"type":"reasoning.text","format":"f","index":0,"signature":"S"}],"issuer":"moonshot"`)), sent(`{"role":"assistant","reasoning":"a","reasoning_details":[{"type":"reasoning.text","format":"f","index":0,"text":"a","signature":"S"}]}`)},
	{"moonshot.reasoning.details.own_text", "kimi-k3", ``, assistant(thought(`a`, `"reasoning_details":[{"type":"reasoning.text","index":0}],"issuer":"moonshot"`) + `,` + thought(``, `"reasoning_details":[{"type":"reasoning.text","index":0,"signature":"S"}]`) + `,` + thought(`b`, `"reasoning_field":"reasoning"`) + `,` + thought(`c`, `"reasoning_field":"reasoning"`) + `,` + thought(``, `"reasoning_details":[{"type":"reasoning.text","index":1,"signature":"T"},{"type":"reasoning.summary"},{"type":"reasoning.encrypted","data":"D"}]`)), sent(`{"role":"assistant","reasoning":"bc","reasoning_details":[{"type":"reasoning.text","index":0,"text":"a","signature":"S"},{"type":"reasoning.text","index":1,"text":"bc","signature":"T"},{"type":"reasoning.summary"},{"type":"reasoning.encrypted","data":"D"}]}`)},
	{"moonshot.reasoning.details.one_text", "kimi-k3", ``, assistant(thought(`a`, `"reasoning_details":[{"type":"reasoning.text","index":0},{"type":"reasoning.text","index":0,"signature":"S"},{"type":"reasoning.encrypted","data":"D"}],"issuer":"moonshot"`)), sent(`{"role":"assistant","reasoning_details":[{"type":"reasoning.text","index":0,"text":"a","signature":"S"},{"type":"reasoning.encrypted","data":"D"}]}`)},
	{"moonshot.reasoning.details.signed_text", "kimi-k3", ``, assistant(thought(`b`, `"reasoning_field":"reasoning"`) + `,` + thought(`a`, `"reasoning_details":[{"type":"reasoning.text","signature":"S"}],"issuer":"moonshot"`)), sent(`{"role":"assistant","reasoning":"b","reasoning_details":[{"type":"reasoning.text","text":"a","signature":"S"}]}`)},
	{"moonshot.reasoning.details.foreign", "kimi-k3", ``, assistant(thought(`a`, `"reasoning_field":"reasoning"`) + `,` + thought(``, `"reasoning_details":[{"type":"reasoning.encrypted","data":"D"}],"issuer":"other.test"`)), sent(`{"role":"assistant","reasoning":"a"}`)},
	{"moonshot.reasoning.details.foreign_text", "kimi-k3", ``, assistant(thought(`a`, `"reasoning_details":[{"type":"reasoning.text","signature":"S"}],"issuer":"other.test"`)), sent(`{"role":"assistant","reasoning_content":"a","reasoning":"a"}`)},
	{"moonshot.message.image.data", "kimi-k3", ``, user(`{"type":"image_url.done","image_url":"` + data + `"}`), sent(`{"role":"user","content":[` + picture + `]}`)},
	{"moonshot.message.image.large", "gpt-5.6-kimi", ``, user(`{"type":"image_url.done","image_url":"` + large + `"}`), sent(`{"role":"user","content":[{"type":"image_url","image_url":{"url":"` + large + `"}}]}`)},
	{"moonshot.message.image.remote", "kimi-k3", ``, user(`{"type":"image_url.done","image_url":"http://pictures.test/a.png"}`), sent(`{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/gif;base64,R0lGODlhAQABAAAAADs="}}]}`)},
	{"moonshot.message.tool_result.images", "kimi-k3", ``, user(`{"type":"text.done","text":"hi"},` + result(`,"images":["`+data+`","http://pictures.test/a.png"]`)), sent(`{"role":"tool","tool_call_id":"k1","content":"4.1 m"},{"role":"user","content":[{"type":"text","text":"hi"},` + picture + `,{"type":"image_url","image_url":{"url":"data:image/gif;base64,R0lGODlhAQABAAAAADs="}}]}`)},
}

func TestGolden(t *testing.T) {
	pictures := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "GIF89a\x01\x00\x01\x00\x00\x00\x00;")
	}))
	defer pictures.Close()
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
				tt.want = `{"model":"` + tt.model + `","stream":true,"stream_options":{"include_usage":true},` + tt.want + `}`
			}
			messages, err := mmsp.ParseMessages([]byte("["+strings.ReplaceAll(tt.messages, "http://pictures.test", pictures.URL)+"]"), false)
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
func prepare(t *testing.T, c *moonshotofficial.Client, messages []mmsp.Message, config *mmsp.Config) string {
	request, err := c.Prepare(t.Context(), messages, config)
	var unsupported *mmsp.UnsupportedParameterError
	var invalid *mmsp.InvalidRequestError
	switch {
	case errors.As(err, &unsupported) && unsupported.Client == "MoonshotOfficialClient":
		return "unsupported " + unsupported.Parameter
	case errors.As(err, &invalid):
		return "invalid " + invalid.Error()
	case err != nil:
		return fmt.Sprintf("%T %v", err, err)
	}
	if request.Method != http.MethodPost || request.URL != "https://api.moonshot.cn/v1/chat/completions" ||
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

// large is a picture of 6400×4832 pixels, which other models of this protocol want a detail for.
const large = `data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAGQAAABLgCAIAAAAAAAAA`

// TestRefusedImage: a picture is fetched from public addresses only, unless private ones are allowed.
func TestRefusedImage(t *testing.T) {
	messages := []mmsp.Message{mmsp.UserMessage(mmsp.Text("hi"), mmsp.ToolResult("k1", "", data, "http://127.0.0.1:1/a.png"))}
	want := "invalid messages[0].content_items[1].images[1]: image http://127.0.0.1:1/a.png: the address is not public"
	if got := prepare(t, build(t, mmsp.Options{}), messages, &mmsp.Config{}); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestManyImages: the pictures of a request are bounded together.
func TestManyImages(t *testing.T) {
	pictures := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("GIF89a\x01\x00\x01\x00\x00\x00\x00;")) }))
	defer pictures.Close()
	items := slices.Repeat([]mmsp.Item{mmsp.ImageURL(pictures.URL)}, 513)
	_, err := build(t, mmsp.Options{Model: "kimi-k3", AllowPrivateFetch: true}).Prepare(t.Context(), []mmsp.Message{mmsp.UserMessage(items...)}, &mmsp.Config{})
	var invalid *mmsp.InvalidRequestError
	if !errors.As(err, &invalid) || invalid.Param != "messages[0].content_items[512].image_url" {
		t.Error(err)
	}
}
