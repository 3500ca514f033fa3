package openaichatvllmadapter_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/clients/openai_chat_vllm_adapter"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// build makes a client that no environment reaches.
func build(t *testing.T, o mmsp.Options) *openaichatvllmadapter.Client {
	t.Helper()
	o.APIKey = mmsp.NewSecret("sk-test")
	o.Getenv = func(string) string { return "" }
	c, err := openaichatvllmadapter.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// rows names everything that decides what a request says: the chat templates, each with every thinking level, and the
// fields of the config. Each has a case below, and each case is of a row.
var rows = strings.Fields(`
vllm.top_p vllm.top_p.1 vllm.top_k vllm.stop_sequences vllm.stop_sequences.none vllm.seed vllm.presence_penalty
vllm.presence_penalty.0 vllm.frequency_penalty vllm.frequency_penalty.0 vllm.parallel.true vllm.parallel.false
vllm.format.text vllm.format.json_object vllm.format.json_schema vllm.format.json_schema.bare vllm.budget
vllm.budget.0 vllm.budget.dynamic vllm.budget.with_level vllm.verbosity vllm.service_tier vllm.service_tier.with_fast
vllm.user vllm.metadata vllm.tools.strict
vllm.qwen3.8-flash-next.none vllm.qwen3.8-flash-next.low vllm.qwen3.8-flash-next.medium
vllm.qwen3.8-flash-next.high vllm.qwen3.8-flash-next.xhigh vllm.qwen3.8-flash-next.max vllm.qwen3.8-27b.none
vllm.qwen3.8-27b.low vllm.qwen3.8-27b.medium vllm.qwen3.8-27b.high vllm.qwen3.8-27b.xhigh vllm.qwen3.8-27b.max
vllm.qwen3.6-35b-a3b.none vllm.qwen3.6-35b-a3b.low vllm.qwen3.6-35b-a3b.medium vllm.qwen3.6-35b-a3b.high
vllm.qwen3.6-35b-a3b.xhigh vllm.qwen3.6-35b-a3b.max vllm.qwen3.5-0.8b.none vllm.qwen3.5-0.8b.low
vllm.qwen3.5-0.8b.medium vllm.qwen3.5-0.8b.high vllm.qwen3.5-0.8b.xhigh vllm.qwen3.5-0.8b.max vllm.qwen3.5-9b.none
vllm.qwen3.5-9b.low vllm.qwen3.5-9b.medium vllm.qwen3.5-9b.high vllm.qwen3.5-9b.xhigh vllm.qwen3.5-9b.max
vllm.deepseek-v4-flash-vision-exp.none vllm.deepseek-v4-flash-vision-exp.low
vllm.deepseek-v4-flash-vision-exp.medium vllm.deepseek-v4-flash-vision-exp.high
vllm.deepseek-v4-flash-vision-exp.xhigh vllm.deepseek-v4-flash-vision-exp.max vllm.deepseek-v4-pro.none
vllm.deepseek-v4-pro.low vllm.deepseek-v4-pro.medium vllm.deepseek-v4-pro.high vllm.deepseek-v4-pro.xhigh
vllm.deepseek-v4-pro.max vllm.deepseek-v4-flash.none vllm.deepseek-v4-flash.low vllm.deepseek-v4-flash.medium
vllm.deepseek-v4-flash.high vllm.deepseek-v4-flash.xhigh vllm.deepseek-v4-flash.max vllm.other.none vllm.other.low
vllm.other.medium vllm.other.high vllm.other.xhigh vllm.other.max vllm.absent vllm.summary vllm.rest
`)

// golden gives each row a config in its wire form and what the body says between the fields that every body begins with
// and the messages.
var golden = []struct{ id, model, config, want string }{
	{"vllm.qwen3.8-flash-next.none", "Qwen/Qwen3.8-Flash-Next-FP8", `"thinking_level":"none"`, `"chat_template_kwargs":{"enable_thinking":false},`},
	{"vllm.qwen3.8-flash-next.low", "Qwen/Qwen3.8-Flash-Next-FP8", `"thinking_level":"low"`, `"chat_template_kwargs":{"reasoning_effort":"low"},`},
	{"vllm.qwen3.8-flash-next.medium", "Qwen/Qwen3.8-Flash-Next-FP8", `"thinking_level":"medium"`, `"chat_template_kwargs":{"reasoning_effort":"medium"},`},
	{"vllm.qwen3.8-flash-next.high", "Qwen/Qwen3.8-Flash-Next-FP8", `"thinking_level":"high"`, `"chat_template_kwargs":{"reasoning_effort":"xhigh"},`},
	{"vllm.qwen3.8-flash-next.xhigh", "Qwen/Qwen3.8-Flash-Next-FP8", `"thinking_level":"xhigh"`, `"chat_template_kwargs":{"reasoning_effort":"xhigh"},`},
	{"vllm.qwen3.8-flash-next.max", "Qwen/Qwen3.8-Flash-Next-FP8", `"thinking_level":"max"`, `"chat_template_kwargs":{"reasoning_effort":"xhigh"},`},
	{"vllm.qwen3.8-27b.none", "acme/Qwen3.8-27B", `"thinking_level":"none"`, `"chat_template_kwargs":{"enable_thinking":false},`},
	{"vllm.qwen3.8-27b.low", "acme/Qwen3.8-27B", `"thinking_level":"low"`, `"chat_template_kwargs":{"reasoning_effort":"low"},`},
	{"vllm.qwen3.8-27b.medium", "acme/Qwen3.8-27B", `"thinking_level":"medium"`, `"chat_template_kwargs":{"reasoning_effort":"medium"},`},
	{"vllm.qwen3.8-27b.high", "acme/Qwen3.8-27B", `"thinking_level":"high"`, `"chat_template_kwargs":{"reasoning_effort":"xhigh"},`},
	{"vllm.qwen3.8-27b.xhigh", "acme/Qwen3.8-27B", `"thinking_level":"xhigh"`, `"chat_template_kwargs":{"reasoning_effort":"xhigh"},`},
	{"vllm.qwen3.8-27b.max", "acme/Qwen3.8-27B", `"thinking_level":"max"`, `"chat_template_kwargs":{"reasoning_effort":"xhigh"},`},
	{"vllm.qwen3.6-35b-a3b.none", "Qwen/Qwen3.6-35B-A3B", `"thinking_level":"none"`, `"chat_template_kwargs":{"enable_thinking":false},`},
	{"vllm.qwen3.6-35b-a3b.low", "Qwen/Qwen3.6-35B-A3B", `"thinking_level":"low"`, `"chat_template_kwargs":{"enable_thinking":true},`},
	{"vllm.qwen3.6-35b-a3b.medium", "Qwen/Qwen3.6-35B-A3B", `"thinking_level":"medium"`, `"chat_template_kwargs":{"enable_thinking":true},`},
	{"vllm.qwen3.6-35b-a3b.high", "Qwen/Qwen3.6-35B-A3B", `"thinking_level":"high"`, `"chat_template_kwargs":{"enable_thinking":true},`},
	{"vllm.qwen3.6-35b-a3b.xhigh", "Qwen/Qwen3.6-35B-A3B", `"thinking_level":"xhigh"`, `"chat_template_kwargs":{"enable_thinking":true},`},
	{"vllm.qwen3.6-35b-a3b.max", "Qwen/Qwen3.6-35B-A3B", `"thinking_level":"max"`, `"chat_template_kwargs":{"enable_thinking":true},`},
	{"vllm.qwen3.5-0.8b.none", "Qwen/Qwen3.5-0.8B", `"thinking_level":"none"`, `"chat_template_kwargs":{"enable_thinking":false},`},
	{"vllm.qwen3.5-0.8b.low", "Qwen/Qwen3.5-0.8B", `"thinking_level":"low"`, `"chat_template_kwargs":{"enable_thinking":true},`},
	{"vllm.qwen3.5-0.8b.medium", "Qwen/Qwen3.5-0.8B", `"thinking_level":"medium"`, `"chat_template_kwargs":{"enable_thinking":true},`},
	{"vllm.qwen3.5-0.8b.high", "Qwen/Qwen3.5-0.8B", `"thinking_level":"high"`, `"chat_template_kwargs":{"enable_thinking":true},`},
	{"vllm.qwen3.5-0.8b.xhigh", "Qwen/Qwen3.5-0.8B", `"thinking_level":"xhigh"`, `"chat_template_kwargs":{"enable_thinking":true},`},
	{"vllm.qwen3.5-0.8b.max", "Qwen/Qwen3.5-0.8B", `"thinking_level":"max"`, `"chat_template_kwargs":{"enable_thinking":true},`},
	{"vllm.qwen3.5-9b.none", "Qwen/Qwen3.5-9B", `"thinking_level":"none"`, `"chat_template_kwargs":{"enable_thinking":false},`},
	{"vllm.qwen3.5-9b.low", "Qwen/Qwen3.5-9B", `"thinking_level":"low"`, `"chat_template_kwargs":{"enable_thinking":true},`},
	{"vllm.qwen3.5-9b.medium", "Qwen/Qwen3.5-9B", `"thinking_level":"medium"`, `"chat_template_kwargs":{"enable_thinking":true},`},
	{"vllm.qwen3.5-9b.high", "Qwen/Qwen3.5-9B", `"thinking_level":"high"`, `"chat_template_kwargs":{"enable_thinking":true},`},
	{"vllm.qwen3.5-9b.xhigh", "Qwen/Qwen3.5-9B", `"thinking_level":"xhigh"`, `"chat_template_kwargs":{"enable_thinking":true},`},
	{"vllm.qwen3.5-9b.max", "Qwen/Qwen3.5-9B", `"thinking_level":"max"`, `"chat_template_kwargs":{"enable_thinking":true},`},
	{"vllm.deepseek-v4-flash-vision-exp.none", "deepseek-ai/DeepSeek-V4-Flash-Vision-Exp", `"thinking_level":"none"`, ``},
	{"vllm.deepseek-v4-flash-vision-exp.low", "deepseek-ai/DeepSeek-V4-Flash-Vision-Exp", `"thinking_level":"low"`, `"chat_template_kwargs":{"thinking":true,"reasoning_effort":"low"},`},
	{"vllm.deepseek-v4-flash-vision-exp.medium", "deepseek-ai/DeepSeek-V4-Flash-Vision-Exp", `"thinking_level":"medium"`, `"chat_template_kwargs":{"thinking":true,"reasoning_effort":"high"},`},
	{"vllm.deepseek-v4-flash-vision-exp.high", "deepseek-ai/DeepSeek-V4-Flash-Vision-Exp", `"thinking_level":"high"`, `"chat_template_kwargs":{"thinking":true,"reasoning_effort":"high"},`},
	{"vllm.deepseek-v4-flash-vision-exp.xhigh", "deepseek-ai/DeepSeek-V4-Flash-Vision-Exp", `"thinking_level":"xhigh"`, `"chat_template_kwargs":{"thinking":true,"reasoning_effort":"high"},`},
	{"vllm.deepseek-v4-flash-vision-exp.max", "deepseek-ai/DeepSeek-V4-Flash-Vision-Exp", `"thinking_level":"max"`, `"chat_template_kwargs":{"thinking":true,"reasoning_effort":"max"},`},
	{"vllm.deepseek-v4-pro.none", "deepseek-ai/DeepSeek-V4-Pro", `"thinking_level":"none"`, ``},
	{"vllm.deepseek-v4-pro.low", "deepseek-ai/DeepSeek-V4-Pro", `"thinking_level":"low"`, `"chat_template_kwargs":{"thinking":true,"reasoning_effort":"high"},`},
	{"vllm.deepseek-v4-pro.medium", "deepseek-ai/DeepSeek-V4-Pro", `"thinking_level":"medium"`, `"chat_template_kwargs":{"thinking":true,"reasoning_effort":"high"},`},
	{"vllm.deepseek-v4-pro.high", "deepseek-ai/DeepSeek-V4-Pro", `"thinking_level":"high"`, `"chat_template_kwargs":{"thinking":true,"reasoning_effort":"high"},`},
	{"vllm.deepseek-v4-pro.xhigh", "deepseek-ai/DeepSeek-V4-Pro", `"thinking_level":"xhigh"`, `"chat_template_kwargs":{"thinking":true,"reasoning_effort":"high"},`},
	{"vllm.deepseek-v4-pro.max", "deepseek-ai/DeepSeek-V4-Pro", `"thinking_level":"max"`, `"chat_template_kwargs":{"thinking":true,"reasoning_effort":"max"},`},
	{"vllm.deepseek-v4-flash.none", "deepseek-ai/DeepSeek-V4-Flash", `"thinking_level":"none"`, ``},
	{"vllm.deepseek-v4-flash.low", "deepseek-ai/DeepSeek-V4-Flash", `"thinking_level":"low"`, `"chat_template_kwargs":{"thinking":true,"reasoning_effort":"high"},`},
	{"vllm.deepseek-v4-flash.medium", "deepseek-ai/DeepSeek-V4-Flash", `"thinking_level":"medium"`, `"chat_template_kwargs":{"thinking":true,"reasoning_effort":"high"},`},
	{"vllm.deepseek-v4-flash.high", "deepseek-ai/DeepSeek-V4-Flash", `"thinking_level":"high"`, `"chat_template_kwargs":{"thinking":true,"reasoning_effort":"high"},`},
	{"vllm.deepseek-v4-flash.xhigh", "deepseek-ai/DeepSeek-V4-Flash", `"thinking_level":"xhigh"`, `"chat_template_kwargs":{"thinking":true,"reasoning_effort":"high"},`},
	{"vllm.deepseek-v4-flash.max", "deepseek-ai/DeepSeek-V4-Flash", `"thinking_level":"max"`, `"chat_template_kwargs":{"thinking":true,"reasoning_effort":"max"},`},
	{"vllm.other.none", "mistralai/Devstral", `"thinking_level":"none"`, `"chat_template_kwargs":{"enable_thinking":false},`},
	{"vllm.other.low", "mistralai/Devstral", `"thinking_level":"low"`, `"chat_template_kwargs":{"enable_thinking":true},`},
	{"vllm.other.medium", "mistralai/Devstral", `"thinking_level":"medium"`, `"chat_template_kwargs":{"enable_thinking":true},`},
	{"vllm.other.high", "mistralai/Devstral", `"thinking_level":"high"`, `"chat_template_kwargs":{"enable_thinking":true},`},
	{"vllm.other.xhigh", "mistralai/Devstral", `"thinking_level":"xhigh"`, `"chat_template_kwargs":{"enable_thinking":true},`},
	{"vllm.other.max", "mistralai/Devstral", `"thinking_level":"max"`, `"chat_template_kwargs":{"enable_thinking":true},`},
	{"vllm.top_p", "acme/Qwen3.8-27B", `"top_p":0.9`, `"top_p":0.9,`},
	{"vllm.top_p.1", "acme/Qwen3.8-27B", `"top_p":1`, `"top_p":1,`},
	{"vllm.top_k", "acme/Qwen3.8-27B", `"top_k":40`, `"top_k":40,`},
	{"vllm.stop_sequences", "acme/Qwen3.8-27B", `"stop_sequences":["END","<\n"]`, `"stop":["END","<\n"],`},
	{"vllm.stop_sequences.none", "acme/Qwen3.8-27B", `"stop_sequences":[]`, ``},
	{"vllm.seed", "acme/Qwen3.8-27B", `"seed":9007199254740993`, `"seed":9007199254740993,`},
	{"vllm.presence_penalty", "acme/Qwen3.8-27B", `"presence_penalty":-0.5`, `"presence_penalty":-0.5,`},
	{"vllm.presence_penalty.0", "acme/Qwen3.8-27B", `"presence_penalty":0`, `"presence_penalty":0,`},
	{"vllm.frequency_penalty", "acme/Qwen3.8-27B", `"frequency_penalty":1.5`, `"frequency_penalty":1.5,`},
	{"vllm.frequency_penalty.0", "acme/Qwen3.8-27B", `"frequency_penalty":0`, `"frequency_penalty":0,`},
	{"vllm.parallel.true", "acme/Qwen3.8-27B", `"parallel_tool_calls":true`, `"parallel_tool_calls":true,`},
	{"vllm.parallel.false", "acme/Qwen3.8-27B", `"parallel_tool_calls":false`, `"parallel_tool_calls":false,`},
	{"vllm.format.text", "acme/Qwen3.8-27B", `"response_format":{"type":"text"}`, ``},
	{"vllm.format.json_object", "acme/Qwen3.8-27B", `"response_format":{"type":"json_object"}`, `"response_format":{"type":"json_object"},`},
	{"vllm.format.json_schema", "acme/Qwen3.8-27B", `"response_format":{"type":"json_schema","name":"log","description":"A <log>","schema":{"type":"object","properties":{"z":{"maximum":9007199254740993},"a":{"$ref":"#/$defs/d"}},"$defs":{"d":{"type":"string"}}},"strict":true}`, `"response_format":{"type":"json_schema","json_schema":{"name":"log","description":"A <log>","schema":{"type":"object","properties":{"z":{"maximum":9007199254740993},"a":{"$ref":"#/$defs/d"}},"$defs":{"d":{"type":"string"}}},"strict":true}},`},
	{"vllm.format.json_schema.bare", "acme/Qwen3.8-27B", `"response_format":{"type":"json_schema","schema":{"type":"object"}}`, `"response_format":{"type":"json_schema","json_schema":{"name":"response","schema":{"type":"object"}}},`},
	{"vllm.budget", "acme/Qwen3.8-27B", `"thinking_budget":20000`, `"chat_template_kwargs":{"reasoning_effort":"xhigh"},`},
	{"vllm.budget.0", "acme/Qwen3.8-27B", `"thinking_budget":0`, `"chat_template_kwargs":{"enable_thinking":false},`},
	{"vllm.budget.dynamic", "acme/Qwen3.8-27B", `"thinking_budget":-1`, ``},
	{"vllm.budget.with_level", "acme/Qwen3.8-27B", `"thinking_budget":20000,"thinking_level":"low"`, `"chat_template_kwargs":{"reasoning_effort":"low"},`},
	{"vllm.verbosity", "acme/Qwen3.8-27B", `"verbosity":"low"`, `"verbosity":"low",`},
	{"vllm.service_tier", "acme/Qwen3.8-27B", `"service_tier":"flex"`, `"service_tier":"flex",`},
	{"vllm.service_tier.with_fast", "acme/Qwen3.8-27B", `"service_tier":"default","fast_mode":true`, `"service_tier":"default",`},
	{"vllm.user", "acme/Qwen3.8-27B", `"user":"u-4711"`, `"user":"u-4711",`},
	{"vllm.metadata", "acme/Qwen3.8-27B", `"metadata":{"trip":"9","user_id":"m-1"}`, ``},
	{"vllm.tools.strict", "acme/Qwen3.8-27B", `"tools":[{"name":"f","description":"d","parameters":{},"strict":false}]`, `"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{},"strict":false}}],`},
	{"vllm.absent", "acme/Qwen3.8-27B", ``, ``},
	{"vllm.summary", "acme/Qwen3.8-27B", `"thinking_summary":true`, ``},
	{"vllm.rest", "acme/Qwen3.8-27B", `"max_tokens":4,"temperature":0.5,"tools":[],"tool_choice":["f"],"fast_mode":true,"thinking_level":"low"`, `"max_completion_tokens":4,"temperature":0.5,"tools":[],"tool_choice":{"type":"function","function":{"name":"f"}},"service_tier":"priority","chat_template_kwargs":{"reasoning_effort":"low"},`},
}

func TestGolden(t *testing.T) {
	seen := map[string]bool{}
	for _, tt := range golden {
		if seen[tt.id] || !slices.Contains(rows, tt.id) {
			t.Errorf("%s stands for no row, or for one that has its case", tt.id)
		}
		seen[tt.id] = true
		t.Run(tt.id, func(t *testing.T) {
			config, err := mmsp.ParseConfig([]byte("{" + tt.config + "}"))
			if err != nil {
				t.Fatal(err)
			}
			want := `{"model":"` + tt.model + `","stream":true,"stream_options":{"include_usage":true},` + tt.want + `"messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}]}`
			for range 2 { // the same bytes every time
				request, err := build(t, mmsp.Options{Model: tt.model}).Prepare(t.Context(), []mmsp.Message{mmsp.UserMessage(mmsp.Text("hi"))}, &config)
				if err != nil {
					t.Fatal(err)
				}
				if string(request.Body) != want {
					t.Errorf("got  %s\nwant %s", request.Body, want)
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

// TestClass: everything but the config is of the base, and says the adapter's name.
func TestClass(t *testing.T) {
	answers := []string{
		"data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
		"data: {\"error\":{\"message\":\"busy\"}}\n\n", "", `{"data":[{"id":"m-1"}]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, answers[0])
		answers = answers[1:]
	}))
	defer server.Close()
	client := mmsp.NewClient(build(t, mmsp.Options{Model: "m-1", BaseURL: server.URL, HTTPClient: server.Client()}))
	ask := []mmsp.Message{mmsp.UserMessage(mmsp.Text("hi"))}
	if message, err := mmsp.Collect(client.StreamingResponse(t.Context(), ask, nil)); err != nil || message.Text() != "a" {
		t.Error(message, err)
	}
	var upstream *mmsp.UpstreamError
	if _, err := mmsp.Collect(client.StreamingResponse(t.Context(), ask, nil)); !errors.As(err, &upstream) || upstream.Client != "OpenaiChatVllmAdapterClient" {
		t.Error(err)
	}
	var incomplete *mmsp.IncompleteStreamError
	if _, err := mmsp.Collect(client.StreamingResponse(t.Context(), ask, nil)); !errors.As(err, &incomplete) || incomplete.Client != "OpenaiChatVllmAdapterClient" {
		t.Error(err)
	}
	if ids, err := client.ListModels(t.Context()); err != nil || !slices.Equal(ids, []string{"m-1"}) {
		t.Error(ids, err)
	}
	var unsupported *mmsp.UnsupportedParameterError
	_, err := mmsp.Collect(client.StreamingResponse(t.Context(), ask, &mmsp.Config{PromptCaching: mmsp.CachingDisable}))
	if !errors.As(err, &unsupported) || unsupported.Client != "OpenaiChatVllmAdapterClient" || unsupported.Parameter != "prompt_caching" {
		t.Error(err)
	}
	if model := client.Provider().(interface{ Model() string }).Model(); model != "m-1" || client.Provider().Class() != "OpenaiChatVllmAdapterClient" {
		t.Error(model, client.Provider().Class())
	}
}
