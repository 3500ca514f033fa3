package messages

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/ingress"
	"github.com/prism-shadow/mmsp-go/ingress/ingresstest"
	"github.com/prism-shadow/mmsp-go/internal/carry"
	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

var (
	anthropicPeer = carry.Peer{ClientType: "ant-messages", Protocol: carry.Messages, Host: "anthropic", Model: "claude"}
	geminiPeer    = carry.Peer{ClientType: "google-genai", Protocol: carry.GenerateContent, Host: "google", Model: "gemini"}
	openaiPeer    = carry.Peer{ClientType: "openai-responses", Protocol: carry.Responses, Host: "openai", Model: "gpt"}
	chatPeer      = carry.Peer{ClientType: "openai-chat", Protocol: carry.Chat, Host: "deepseek", Model: "deepseek"}
)

func parse(path, body string) (*call, error) {
	if err := jsonscan.Check([]byte(body)); err != nil {
		return nil, err
	}
	c, err := New().Parse(httptest.NewRequest("POST", path, nil), []byte(body))
	if err != nil {
		return nil, err
	}
	return c.(*call), nil
}

func read(t *testing.T, peer carry.Peer, body string) *ingress.Request {
	t.Helper()
	c, err := parse("/v1/messages?beta=true", body)
	if err != nil {
		t.Fatal(err)
	}
	request, err := c.Read(t.Context(), &ingress.Env{Peer: peer, Fetch: ingresstest.Fetch})
	if err != nil {
		t.Fatal(err)
	}
	if err := mmsp.Validate(request.Messages); err != nil {
		t.Fatal(err)
	}
	for i, m := range request.Messages {
		if len(m.ContentItems) != len(request.Paths[i]) {
			t.Errorf("message %d has %d items and %d paths", i, len(m.ContentItems), len(request.Paths[i]))
		}
	}
	return request
}

// turn is the body of a request with one message.
func turn(role, content string) string {
	return `{"model":"m","max_tokens":9,"messages":[{"role":"` + role + `","content":` + content + `}]}`
}

func text(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestReadMessages(t *testing.T) {
	sealed := func(e carry.Envelope) string { return carry.Seal(e, carry.MaxInline) }
	for _, test := range []struct{ name, body, want, dropped string }{
		{
			"a text", turn("user", `"Hi"`),
			`[{"role":"user","content_items":[{"type":"text.done","text":"Hi"}]}]`, "",
		},
		{
			"blank texts are left out, and turns of one role join",
			`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":[{"type":"text","text":" \n"},{"type":"text","text":"a","cache_control":{"type":"ephemeral"}}]},` +
				`{"role":"user","content":"b"},{"role":"assistant","content":""},{"role":"assistant","content":[{"type":"text","text":"c","citations":null}]}]}`,
			`[{"role":"user","content_items":[{"type":"text.done","text":"a"},{"type":"text.done","text":"b"}]},{"role":"assistant","content_items":[{"type":"text.done","text":"c"}]}]`, "",
		},
		{
			"pictures and documents",
			turn("user", `[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBO\nRw"},"transformations":{"oversized":"resize"}},{"type":"image","source":{"type":"url","url":"https://a.test/b.png"},"transformations":{}},`+
				`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"-_8"},"title":"a.pdf","citations":{"enabled":true}},`+
				`{"type":"document","source":{"type":"text","media_type":"text/plain","data":"plain"},"context":"about it","citations":{"enabled":false}},`+
				`{"type":"document","source":{"type":"content","content":[{"type":"text","text":"one"},{"type":"image","source":{"type":"url","url":"data:image/png;base64,aQ=="}},{"type":"text","text":"two"}]}},`+
				`{"type":"document","source":{"type":"content","content":"three"}}]`),
			`[{"role":"user","content_items":[{"type":"image_url.done","image_url":"data:image/png;base64,iVBORw=="},{"type":"image_url.done","image_url":"https://a.test/b.png"},` +
				`{"type":"inline_data.done","data":"+/8=","mime_type":"application/pdf","filename":"a.pdf"},` +
				`{"type":"text.done","text":"about it"},{"type":"inline_data.done","data":"cGxhaW4=","mime_type":"text/plain"},` +
				`{"type":"inline_data.done","data":"b25lCnR3bw==","mime_type":"text/plain"},{"type":"image_url.done","image_url":"data:image/png;base64,aQ=="},` +
				`{"type":"inline_data.done","data":"dGhyZWU=","mime_type":"text/plain"}]}]`,
			"messages[0].content[0].transformations, messages[0].content[2].citations",
		},
		{
			"documents by URL",
			turn("user", `[{"type":"document","source":{"type":"url","url":"https://files.test/a.pdf"},"title":"Report","context":"about it"},{"type":"document","source":{"type":"url","url":"https://files.test/a.txt"}},`+
				`{"type":"document","source":{"type":"url","url":"https://files.test/a.png"}},{"type":"tool_result","tool_use_id":"toolu_1","content":[`+
				`{"type":"document","source":{"type":"url","url":"https://files.test/a.pdf"},"context":"about it"},{"type":"document","source":{"type":"url","url":"https://files.test/a.txt"}}]}]`),
			`[{"role":"user","content_items":[{"type":"text.done","text":"about it"},{"type":"inline_data.done","data":"JVBERi0=","mime_type":"application/pdf","filename":"Report"},` +
				`{"type":"inline_data.done","data":"aGk=","mime_type":"text/plain","filename":"a.txt"},{"type":"image_url.done","image_url":"data:image/png;base64,iVBORw=="},` +
				`{"type":"tool_result.done","text":"about it\na.txt\nhi","images":["data:application/pdf;name=a.pdf;base64,JVBERi0="],"tool_call_id":"toolu_1"}]}]`, "",
		},
		{
			"a search result",
			turn("user", `[{"type":"search_result","source":"https://a.test","title":"A","content":[{"type":"text","text":"one"},{"type":"text","text":"two"}]}]`),
			`[{"role":"user","content_items":[{"type":"text.done","text":"A\nhttps://a.test\none\ntwo"}]}]`, "",
		},
		{
			"calls, digit for digit, and their results",
			`{"model":"m","max_tokens":9,"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"f","input":{"n": 1.50, "k":12345678901234567890},"caller":{"type":"direct"},"provider_specific_fields":null},` +
				`{"type":"tool_use","id":"toolu_2","name":"f","input":null}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"done"},` +
				`{"type":"tool_result","tool_use_id":"toolu_2","is_error":true,"content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aQ=="}},` +
				`{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERg=="}},{"type":"document","title":"T","source":{"type":"text","data":"b"}},{"type":"tool_reference","tool_name":"g"},` +
				`{"type":"search_result","source":"s","title":"r","content":[{"type":"text","text":"c"}]}]},` +
				`{"type":"tool_result","tool_use_id":"toolu_3"}]}]}`,
			`[{"role":"assistant","content_items":[{"type":"tool_call.done","name":"f","arguments":{"n":1.50,"k":12345678901234567890},"tool_call_id":"toolu_1"},` +
				`{"type":"tool_call.done","name":"f","arguments":{},"tool_call_id":"toolu_2"}]},` +
				`{"role":"user","content_items":[{"type":"tool_result.done","text":"done","tool_call_id":"toolu_1"},` +
				`{"type":"tool_result.done","text":"a\nT\nb\nr\ns\nc","images":["data:image/png;base64,aQ==","data:application/pdf;base64,JVBERg=="],"tool_call_id":"toolu_2","is_error":true},` +
				`{"type":"tool_result.done","text":"","tool_call_id":"toolu_3"}]}]`,
			"messages[1].content[1].content[4] (tool_reference)",
		},
		{
			"what a provider's own tools did is left out",
			turn("assistant", `[{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}},{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[]},{"type":"text","text":"a"}]`),
			`[{"role":"assistant","content_items":[{"type":"text.done","text":"a"}]}]`,
			"messages[0].content[0] (server_tool_use), messages[0].content[1] (web_search_tool_result)",
		},
		{
			"the provider's own proofs",
			turn("assistant", `[{"type":"thinking","thinking":"t","signature":"c2ln"},{"type":"redacted_thinking","data":"cmVk"},{"type":"thinking","thinking":"","signature":"b21pdA=="},{"type":"thinking","thinking":"unsigned"},{"type":"text","text":"a"}]`),
			`[{"role":"assistant","content_items":[{"type":"thinking.done","thinking":"t","fidelity":{"signature":"c2ln"}},{"type":"thinking.done","thinking":"_REDACTED_THINKING","fidelity":{"signature":"cmVk"}},` +
				`{"type":"thinking.done","thinking":"","fidelity":{"signature":"b21pdA=="}},{"type":"thinking.done","thinking":"unsigned"},{"type":"text.done","text":"a"}]}]`, "",
		},
		{
			"enveloped proofs, of items that stand before and behind",
			turn("assistant", `[{"type":"thinking","thinking":"t","signature":"`+sealed(carry.Envelope{Issuer: chatPeer, Kind: "thinking", Fidelity: mmsp.Fidelity(`{"reasoning_field":"reasoning"}`)})+`"},`+
				`{"type":"thinking","thinking":"u","signature":"mmsp1.damaged!"},`+
				`{"type":"thinking","thinking":"","signature":"`+sealed(carry.Envelope{Issuer: geminiPeer, Kind: "text", Fidelity: mmsp.Fidelity(`{"a":1}`), Owner: &carry.Owner{}})+`"},{"type":"text","text":"\n"},`+
				`{"type":"thinking","thinking":"","signature":"`+sealed(carry.Envelope{Issuer: geminiPeer, Kind: "text", Fidelity: mmsp.Fidelity(`{"a":2}`)})+`"},`+
				`{"type":"tool_use","id":"c1","name":"f","input":{}},`+
				`{"type":"thinking","thinking":"","signature":"`+sealed(carry.Envelope{Issuer: geminiPeer, Kind: "tool_call", Fidelity: mmsp.Fidelity(`{"a":3}`), Owner: &carry.Owner{Previous: true, ToolCallID: "c1"}})+`"},`+
				`{"type":"thinking","thinking":"","signature":"`+sealed(carry.Envelope{Issuer: geminiPeer, Kind: "tool_call", Fidelity: mmsp.Fidelity(`{"a":4}`), Owner: &carry.Owner{ToolCallID: "c2"}})+`"},`+
				`{"type":"tool_use","id":"c2","name":"f","input":{}},`+
				`{"type":"thinking","thinking":"","signature":"`+sealed(carry.Envelope{Issuer: geminiPeer, Kind: "tool_call", Fidelity: mmsp.Fidelity(`{"a":5}`), Owner: &carry.Owner{ToolCallID: "gone"}})+`"},`+
				`{"type":"tool_use","id":"c3","name":"f","input":{}}]`),
			`[{"role":"assistant","content_items":[{"type":"thinking.done","thinking":"t","fidelity":{"void":true}},{"type":"thinking.done","thinking":"u"},` +
				`{"type":"text.done","text":"\n","fidelity":{"a":1}},{"type":"text.done","text":"","fidelity":{"a":2}},` +
				`{"type":"tool_call.done","name":"f","arguments":{},"tool_call_id":"c1","fidelity":{"a":3}},{"type":"tool_call.done","name":"f","arguments":{},"tool_call_id":"c2","fidelity":{"a":4}},` +
				`{"type":"tool_call.done","name":"f","arguments":{},"tool_call_id":"c3"}]}]`, "",
		},
		{
			"a summary in the place of what stood before, and tools that come later",
			`{"model":"m","max_tokens":9,"messages":[{"role":"assistant","content":[{"type":"compaction","content":"they met"}]},{"role":"system","content":[{"type":"tool_addition","tool":{"type":"tool_reference","name":"f"}}]}]}`,
			`[{"role":"assistant","content_items":[{"type":"text.done","text":"they met"}]}]`, "messages[1].content[0] (tool_addition)",
		},
		{
			"a picture of the assistant's own",
			turn("assistant", `[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aQ=="}}]`),
			`[{"role":"assistant","content_items":[{"type":"inline_data.done","data":"aQ==","mime_type":"image/png"}]}]`, "",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			request := read(t, anthropicPeer, test.body)
			if got := text(t, request.Messages); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
			if got := strings.Join(request.Dropped, ", "); got != test.dropped {
				t.Errorf("dropped %q, want %q", got, test.dropped)
			}
		})
	}
}

// However many proofs stand beside each other, each finds the item that it is of, and the last of an item counts.
func TestManyProofs(t *testing.T) {
	const n = 1 << 10
	proof := func(fidelity string, owner carry.Owner) string {
		e := carry.Envelope{Issuer: geminiPeer, Kind: "text", Fidelity: mmsp.Fidelity(fidelity), Owner: &owner}
		return `{"type":"thinking","thinking":"","signature":"` + carry.Seal(e, carry.MaxInline) + `"},`
	}
	before, after := proof(`{"a":1}`, carry.Owner{}), proof(`{"a":2}`, carry.Owner{Previous: true})
	others := strings.Repeat(before+proof(`{"a":3}`, carry.Owner{Previous: true, ToolCallID: "c"}), n)
	for _, c := range []struct{ name, content, want string }{
		{"between others", others + before + `{"type":"text","text":"x"},` + others + `{"type":"text","text":"y"}`, `{"a":1} {"a":1}`},
		{"after others", after + `{"type":"text","text":"x"},` + others + after + `{"type":"text","text":"y"}`, `{"a":2} {"a":1}`},
		{"none behind", `{"type":"text","text":"x"},{"type":"text","text":"y"},` + strings.TrimSuffix(others, ","), ` `},
	} {
		items := read(t, geminiPeer, turn("assistant", `[`+c.content+`]`)).Messages[0].ContentItems
		if len(items) != 2 || string(items[0].Fidelity)+" "+string(items[1].Fidelity) != c.want {
			t.Errorf("%s: %d items, %s %s", c.name, len(items), items[0].Fidelity, items[len(items)-1].Fidelity)
		}
	}
}

func TestReadPaths(t *testing.T) {
	request := read(t, anthropicPeer, `{"model":"m","max_tokens":9,"system":[{"type":"text","text":"one"},{"type":"text","text":"two"}],"messages":[{"role":"user","content":"a"},`+
		`{"role":"system","content":"three"},{"role":"user","content":[{"type":"text","text":" "},{"type":"text","text":"b"}]},{"role":"assistant","content":"The answer is "}]}`)
	if got := text(t, request.Paths); got != `[["messages[0].content","messages[2].content[1]"],["messages[3].content"]]` {
		t.Error(got)
	}
	if got := *request.Config.SystemPrompt; got != "one\n\ntwo\n\nthree" {
		t.Errorf("%q", got)
	}
	// Another provider cannot have issued a value without an envelope.
	request = read(t, geminiPeer, turn("assistant", `[{"type":"thinking","thinking":"t","signature":"c2ln"}]`))
	if got := text(t, request.Messages[0].ContentItems); got != `[{"type":"thinking.done","thinking":"t"}]` {
		t.Error(got)
	}
}

func TestReadConfig(t *testing.T) {
	const weather = `{"name":"weather","description":"d","input_schema":{"type":"object","b":1,"a":2},"strict":true,"cache_control":{"type":"ephemeral"},"defer_loading":true}`
	for _, test := range []struct{ name, fields, want, dropped string }{
		{"nothing", ``, `{"max_tokens":9}`, ""},
		{"no tokens", `"max_tokens":0`, `{"max_tokens":0}`, ""},
		{
			"numbers that say that none is given", `"top_p":-1,"top_k":-1`, `{"max_tokens":9}`, "",
		},
		{
			"every number", `"temperature":1,"top_p":0.5,"top_k":40,"stop_sequences":["a","b"]`,
			`{"max_tokens":9,"temperature":1,"top_p":0.5,"top_k":40,"stop_sequences":["a","b"]}`, "",
		},
		{
			"nulls and what nobody knows",
			`"temperature":null,"stream":null,"system":null,"tools":null,"tool_choice":null,"thinking":null,"metadata":{"user_id":null},"stop_sequences":null,"cache_control":null,"container":{"skills":[]},"context_management":{"edits":[]},"inference_geo":null,"fallbacks":[],"thread":null,"diagnostics":{},"new":1`,
			`{"max_tokens":9}`, "",
		},
		{"who asks, and how fast", `"metadata":{"user_id":"u"},"service_tier":"standard_only","speed":"fast"`, `{"max_tokens":9,"fast_mode":true,"service_tier":"standard_only","user":"u"}`, ""},
		{"defaults", `"service_tier":"auto","speed":"standard","mcp_servers":[]`, `{"max_tokens":9}`, ""},
		{
			"what only the provider has", `"container":"c","context_management":{"edits":[{"type":"clear_tool_uses_20250919"}]},"mcp_servers":[{"type":"url"}],"inference_geo":"us","compaction":{"type":"summarize"},"fallbacks":"default","output_config":{"task_budget":{"type":"tokens","total":9}}`,
			`{"max_tokens":9}`, "container, context_management, mcp_servers, inference_geo, compaction, fallbacks, output_config.task_budget",
		},
		{"a container with skills", `"container":{"skills":[{"type":"anthropic","skill_id":"pdf"}]}`, `{"max_tokens":9}`, "container"},
		{"the cache", `"cache_control":{"type":"ephemeral"}`, `{"max_tokens":9,"prompt_caching":"enable"}`, ""},
		{"the cache for long", `"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral","ttl":"1h","scope":"global"}}],"cache_control":{"type":"ephemeral","ttl":"5m"}`, `{"max_tokens":9,"system_prompt":"s","prompt_caching":"enhance"}`, ""},
		{"the cache up to a hosted tool", `"tools":[{"type":"bash_20250124","name":"bash","cache_control":{"type":"ephemeral","ttl":"1h"}}]`, `{"max_tokens":9,"prompt_caching":"enhance"}`, "tools[0] (bash_20250124)"},
		{"examples of a tool's input", `"tools":[{"name":"f","input_schema":{},"input_examples":[{"a":1}]}]`, `{"max_tokens":9,"tools":[{"name":"f","description":"","parameters":{}}]}`, "tools[0].input_examples"},
		{"a budget", `"max_tokens":4096,"thinking":{"type":"enabled","budget_tokens":2048}`, `{"max_tokens":4096,"thinking_budget":2048,"thinking_summary":true}`, ""},
		{"a hidden budget", `"max_tokens":4096,"thinking":{"type":"enabled","budget_tokens":2048,"display":"omitted"}`, `{"max_tokens":4096,"thinking_budget":2048,"thinking_summary":false}`, ""},
		{"no thinking", `"thinking":{"type":"disabled"},"output_config":{"effort":"max"}`, `{"max_tokens":9,"thinking_level":"none"}`, "output_config.effort"},
		{"adaptive", `"thinking":{"type":"adaptive"},"output_config":{"effort":"xhigh"}`, `{"max_tokens":9,"thinking_level":"xhigh","thinking_summary":true}`, ""},
		{"between tools", `"thinking":{"type":"between_tools","display":"omitted"}`, `{"max_tokens":9,"thinking_summary":false}`, "thinking.type (between_tools)"},
		{
			"a schema", `"output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}}`,
			`{"max_tokens":9,"response_format":{"type":"json_schema","schema":{"type":"object"}}}`, "",
		},
		{
			"a schema in its old place", `"output_format":{"type":"json_schema","schema":{"type":"object"}}`,
			`{"max_tokens":9,"response_format":{"type":"json_schema","schema":{"type":"object"}}}`, "",
		},
		{
			"tools", `"tools":[{"type":"web_search_20250305","name":"web_search","max_uses":5},` + weather + `,{"type":"custom","name":"b","input_schema":{}},{"type":"bash_20250124","name":"bash"}],"tool_choice":{"type":"tool","name":"weather","disable_parallel_tool_use":true}`,
			`{"max_tokens":9,"tools":[{"name":"weather","description":"d","parameters":{"type":"object","b":1,"a":2},"strict":true},{"name":"b","description":"","parameters":{}}],"tool_choice":["weather"],"parallel_tool_calls":false,"prompt_caching":"enable"}`,
			"tools[0] (web_search_20250305), tools[3] (bash_20250124)",
		},
		{"any tool", `"tools":[` + weather + `],"tool_choice":{"type":"any"}`, `{"max_tokens":9,"tools":[{"name":"weather","description":"d","parameters":{"type":"object","b":1,"a":2},"strict":true}],"tool_choice":"required","prompt_caching":"enable"}`, ""},
		{"no tool is left", `"tools":[{"type":"bash_20250124","name":"bash"}],"tool_choice":{"type":"auto"}`, `{"max_tokens":9}`, "tools[0] (bash_20250124)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			body := `{"model":"m","messages":[{"role":"user","content":"a"}]`
			if !strings.Contains(test.fields, `"max_tokens"`) {
				body += `,"max_tokens":9`
			}
			if test.fields != "" {
				body += "," + test.fields
			}
			request := read(t, anthropicPeer, body+"}")
			if got := text(t, request.Config); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
			if got := strings.Join(request.Dropped, ", "); got != test.dropped {
				t.Errorf("dropped %q, want %q", got, test.dropped)
			}
			if len(request.ToolPaths) != len(request.Config.Tools) {
				t.Errorf("%d paths of %d tools", len(request.ToolPaths), len(request.Config.Tools))
			}
		})
	}
}

func TestBadRequests(t *testing.T) {
	field := func(fields string) string {
		return `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"a"}],` + fields + `}`
	}
	for _, test := range []struct{ body, want string }{
		{`[]`, "an object is wanted"},
		{`{"max_tokens":9,"messages":[]}`, "model is required"},
		{`{"model":"m","messages":[{"role":"user","content":"a"}]}`, "max_tokens is required"},
		{`{"model":"m","max_tokens":-1,"messages":[]}`, "max_tokens an integer from 0 to 9007199254740992 is wanted"},
		{`{"model":"m","max_tokens":"9","messages":[]}`, "max_tokens an integer is wanted"},
		{`{"model":"m","max_tokens":9}`, "messages is required"},
		{`{"model":"m","max_tokens":9,"messages":[]}`, "messages at least one message with content is wanted"},
		{`{"model":"m","max_tokens":9,"messages":[null]}`, "messages[0] an object is wanted"},
		{`{"model":"m","max_tokens":9,"messages":[{"role":"tool","content":"a"}]}`, "messages[0].role one of user, assistant, system is wanted"},
		{`{"model":"m","max_tokens":9,"messages":[{"content":"a"}]}`, "messages[0].role is required"},
		{`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":null}]}`, "messages[0].content is required"},
		{`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":{}}]}`, "messages[0].content a string or a list is wanted"},
		{turn("user", `["a"]`), "messages[0].content[0] an object is wanted"},
		{turn("user", `[{"text":"a"}]`), "messages[0].content[0].type is required"},
		{turn("user", `[{"type":7,"text":"a"}]`), "messages[0].content[0].type a string is wanted"},
		{turn("user", `[{"type":"image","source":{"type":7,"url":"https://a.test"}}]`), "messages[0].content[0].source.type a string is wanted"},
		{field(`"tools":[{"type":7,"name":"f","input_schema":{}}]`), "tools[0].type a string is wanted"},
		{turn("user", `[{"type":"text","content":"a"}]`), "messages[0].content[0].text is required"},
		{turn("user", `[{"type":"input_text","text":"a"}]`), `messages[0].content[0].type blocks of type "input_text" are not possible here`},
		{turn("user", `[{"type":"container_upload","file_id":"file_1"}]`), "messages[0].content[0] container_upload: there is no container that takes files"},
		{turn("user", `[{"type":"image"}]`), "messages[0].content[0].source is required"},
		{turn("user", `[{"type":"image","source":{"type":"file","file_id":"file_1"}}]`), "messages[0].content[0].source file ids of a provider are not known here; send the file as base64"},
		{turn("user", `[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"%%%"}}]`), "messages[0].content[0].source.data base64 is wanted"},
		{turn("user", `[{"type":"image","source":{"type":"base64","media_type":"text/plain","data":"aQ=="}}]`), "messages[0].content[0].source.media_type a media type such as image/png or application/pdf is wanted"},
		{turn("user", `[{"type":"image","source":{"type":"url","url":"file:///etc/passwd"}}]`), "messages[0].content[0].source.url an http(s) URL with a host is wanted, or a data URL with a media type and base64"},
		{turn("user", `[{"type":"image","source":{"type":"text","data":"a"}}]`), `messages[0].content[0].source.type "text" is no type of source of an image`},
		{turn("user", `[{"type":"document","source":{"type":"url","url":"https://a.test/a.pdf"}}]`), "messages[0].content[0].source.url nothing is there"},
		{turn("user", `[{"type":"document","source":{"type":"url"}}]`), "messages[0].content[0].source.url is required"},
		{turn("user", `[{"type":"tool_result","tool_use_id":"a","content":[{"type":"document","source":{"type":"url","url":"https://a.test/a.pdf"}}]}]`), "messages[0].content[0].content[0].source.url nothing is there"},
		{turn("user", `[{"type":"document","source":{"type":"file","file_id":"file_1"}}]`), "messages[0].content[0].source file ids of a provider are not known here; send the file as base64"},
		{turn("user", `[{"type":"tool_use","id":"a","name":"f","input":{}}]`), "messages[0].content[0] a block of type tool_use does not stand in a message of role user"},
		{turn("assistant", `[{"type":"tool_use","id":"a","name":"f","input":"{}"}]`), "messages[0].content[0].input an object is wanted"},
		{turn("assistant", `[{"type":"tool_use","name":"f","input":{}}]`), "messages[0].content[0].id is required"},
		{turn("assistant", `[{"type":"tool_result","tool_use_id":"a"}]`), "messages[0].content[0] a block of type tool_result does not stand in a message of role assistant"},
		{turn("user", `[{"type":"tool_result","content":"a"}]`), "messages[0].content[0].tool_use_id is required"},
		{turn("user", `[{"type":"tool_result","tool_use_id":"a","content":[{"type":"thinking","thinking":"a"}]}]`), `messages[0].content[0].content[0].type blocks of type "thinking" are not possible here`},
		{turn("system", `[{"type":"image","source":{"type":"url","url":"https://a.test/a.png"}}]`), "messages[0].content[0] a block of type image does not stand in a message of role system"},
		{field(`"system":[{"type":"image"}]`), `system[0].type blocks of type "image" are not possible here`},
		{field(`"temperature":1.5`), "temperature a number from 0 to 1 is wanted"},
		{field(`"stop_sequences":[1]`), "stop_sequences[0] a string is wanted"},
		{field(`"thinking":{"type":"on"}`), "thinking.type one of enabled, disabled, adaptive, between_tools is wanted"},
		{field(`"thinking":{"type":"enabled"}`), "thinking.budget_tokens at least 1024 is wanted"},
		{field(`"thinking":{"type":"enabled","budget_tokens":1024}`), "thinking.budget_tokens must be less than max_tokens"},
		{`{"model":"m","max_tokens":0,"messages":[],"thinking":{"type":"enabled","budget_tokens":1024}}`, "thinking.budget_tokens must be less than max_tokens"},
		{field(`"output_config":{"effort":"huge"}`), "output_config.effort one of low, medium, high, xhigh, max is wanted"},
		{field(`"output_config":{"format":{"type":"json_schema"}}`), "output_config.format.schema is required"},
		{field(`"tools":[{"name":"f"}]`), "tools[0].input_schema is required"},
		{field(`"tools":[{"name":"f","input_schema":[]}]`), "tools[0].input_schema an object is wanted"},
		{field(`"tools":[{"input_schema":{}}]`), "tools[0].name is required"},
		{field(`"tool_choice":{"type":"tool"}`), "tool_choice.name is required"},
		{field(`"tool_choice":{"type":"tool","name":"f"}`), `tool_choice.name there is no tool "f"`},
		{field(`"tool_choice":{"type":"any"}`), "tool_choice there is no tool that could be called"},
		{field(`"tools":[{"type":"web_search_20250305","name":"web_search"}],"tool_choice":{"type":"tool","name":"web_search"}`), `tool_choice.name "web_search" is a tool that a provider runs or defines, which is not possible here`},
		{field(`"cache_control":"ephemeral"`), "cache_control an object is wanted"},
		{field(`"cache_control":{"type":"persistent"}`), "cache_control.type one of ephemeral is wanted"},
		{field(`"system":[{"type":"text","text":"s","cache_control":{"ttl":"5m"}}]`), "system[0].cache_control.type is required"},
		{field(`"tools":[{"name":"f","input_schema":{},"cache_control":{"type":"ephemeral","ttl":"2h"}}]`), "tools[0].cache_control.ttl one of 5m, 1h is wanted"},
		{turn("user", `[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"a","cache_control":true}]}]`), "messages[0].content[0].content[0].cache_control an object is wanted"},
		{turn("assistant", `[{"type":"web_search_tool_result","cache_control":[]}]`), "messages[0].content[0].cache_control an object is wanted"},
		{field(`"container":7`), "container a string or an object is wanted"},
		{field(`"context_management":[]`), "context_management an object is wanted"},
		{field(`"mcp_servers":{}`), "mcp_servers a list is wanted"},
		{field(`"inference_geo":true`), "inference_geo a string is wanted"},
		{field(`"thread":{"type":"continue","previous_message_id":"msg_1"}`), "thread conversations that a provider holds are not known here; send all messages"},
		{field(`"service_tier":"priority"`), "service_tier one of auto, standard_only is wanted"},
	} {
		c, err := parse("/v1/messages", test.body)
		if err == nil {
			_, err = c.Read(t.Context(), &ingress.Env{Peer: anthropicPeer, Fetch: ingresstest.Fetch})
		}
		var invalid *mmsp.InvalidRequestError
		if !errors.As(err, &invalid) {
			t.Errorf("%s: %v", test.body, err)
		} else if got := strings.TrimSpace(invalid.Param + " " + invalid.Message); got != test.want {
			t.Errorf("%s:\ngot  %s\nwant %s", test.body, got, test.want)
		}
	}
}

func TestCount(t *testing.T) {
	c, err := parse("/v1/messages/count_tokens?beta=true", `{"model":"m","messages":[{"role":"user","content":"a"}],"thinking":{"type":"enabled","budget_tokens":2048},"stream":true}`)
	if err != nil {
		t.Fatal(err)
	}
	if !c.Counts() || c.Streams() || c.Model() != "m" {
		t.Error(c.Counts(), c.Streams(), c.Model())
	}
	if got := string(c.Count(nil, 12)); got != `{"input_tokens":12}` {
		t.Error(got)
	}
	request, err := c.Read(t.Context(), &ingress.Env{Peer: anthropicPeer, Fetch: ingresstest.Fetch})
	if err != nil || request.Config.MaxTokens != nil {
		t.Error(err, request)
	}
}

func TestInterleavedThinkingMayTakeMore(t *testing.T) {
	r := httptest.NewRequest("POST", "/v1/messages", nil)
	r.Header.Set("Anthropic-Beta", "new-2099-01-01,interleaved-thinking-2025-05-14")
	r.Header.Set("Anthropic-Version", "2099-01-01")
	if _, err := New().Parse(r, []byte(`{"model":"m","max_tokens":1000,"thinking":{"type":"enabled","budget_tokens":2000},"messages":[]}`)); err != nil {
		t.Error(err)
	}
}

func TestBetas(t *testing.T) {
	var many []string
	for i := range 40 {
		many = append(many, "b"+strconv.Itoa(i))
	}
	long := strings.Repeat("x", 64)
	for _, test := range []struct{ name, headers, want string }{
		{"none", "", ""},
		{"one", "context-1m-2025-08-07", "context-1m-2025-08-07"},
		{"several, with one again", "a-1, b_2 ,\tc.3,,a-1", "a-1 b_2 c.3"},
		{"several lines", "a\nb,c", "a b c"},
		{"what no beta is named like", `"a",b c,d;q=1,é,e:f,g`, "g"},
		{"the longest", long + "," + long + "x", long},
		{"the most", strings.Join(many, ","), strings.Join(many[:32], " ")},
	} {
		r := httptest.NewRequest("POST", "/v1/messages", nil)
		for line := range strings.SplitSeq(test.headers, "\n") {
			r.Header.Add("anthropic-beta", line)
		}
		c, err := New().Parse(r, []byte(turn("user", `"a"`)))
		if err != nil {
			t.Fatal(err)
		}
		request, err := c.Read(t.Context(), &ingress.Env{Peer: anthropicPeer})
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(request.Betas, " "); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

// What means another thing, or nothing, where the peer does not speak the protocol.
func TestReadConfigForPeers(t *testing.T) {
	for _, test := range []struct {
		name, fields string
		peer         carry.Peer
		want         string
		dropped      string
	}{
		{"effort, which is no thinking", `"max_tokens":9,"output_config":{"effort":"low"}`, anthropicPeer, `{"max_tokens":9}`, "output_config.effort"},
		{"effort, which is all that the peer has", `"max_tokens":9,"output_config":{"effort":"low"}`, geminiPeer, `{"max_tokens":9,"thinking_level":"low"}`, ""},
		{"effort without thinking", `"max_tokens":9,"output_config":{"effort":"low"},"thinking":{"type":"disabled"}`, openaiPeer, `{"max_tokens":9,"thinking_level":"none"}`, ""},
		{"between tools", `"max_tokens":9,"output_config":{"effort":"low"},"thinking":{"type":"between_tools"}`, anthropicPeer, `{"max_tokens":9,"thinking_level":"low","thinking_summary":true}`, "thinking.type (between_tools)"},
		{"between tools of others", `"max_tokens":9,"thinking":{"type":"between_tools"}`, chatPeer, `{"max_tokens":9,"thinking_summary":true}`, "thinking.type (between_tools)"},
	} {
		t.Run(test.name, func(t *testing.T) {
			request := read(t, test.peer, `{"model":"m","messages":[{"role":"user","content":"a"}],`+test.fields+`}`)
			if got := text(t, request.Config); got != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
			if got := strings.Join(request.Dropped, ", "); got != test.dropped {
				t.Errorf("dropped %q, want %q", got, test.dropped)
			}
		})
	}
}

// Keys that nobody knows are tolerated in every object of a request, and say nothing.
func TestUnknownKeys(t *testing.T) {
	const body = `{"model":"m","max_tokens":4096,"stream":false,"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],"messages":[` +
		`{"role":"user","content":[{"type":"text","text":"a","citations":[{}]},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aQ=="}},` +
		`{"type":"image","source":{"type":"url","url":"https://a.test/b.png"}},{"type":"document","source":{"type":"text","data":"b"},"citations":{"enabled":true}},` +
		`{"type":"document","source":{"type":"content","content":[{"type":"text","text":"c"}]}},{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"d"}]}]},` +
		`{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"c2ln"},{"type":"redacted_thinking","data":"cmVk"},{"type":"tool_use","id":"c1","name":"f","input":{"a":1},"caller":{"type":"direct"}},` +
		`{"type":"server_tool_use","id":"s1","name":"web_search","input":{}}]},{"role":"system","content":[{"type":"text","text":"s"}]},` +
		`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"e"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aQ=="}}]},{"type":"text","text":"f"}]}],` +
		`"tools":[{"name":"f","input_schema":{"type":"object"}},{"type":"web_search_20250305","name":"web_search"}],"tool_choice":{"type":"auto"},` +
		`"thinking":{"type":"enabled","budget_tokens":2048},"output_config":{"effort":"low","format":{"type":"json_schema","schema":{"type":"object"}}},"metadata":{"user_id":"u"},"mcp_servers":[{"type":"url"}]}`
	var plain map[string]any
	if err := json.Unmarshal([]byte(body), &plain); err != nil {
		t.Fatal(err)
	}
	objects := 0
	var strew func(v any) any
	strew = func(v any) any {
		switch v := v.(type) {
		case []any:
			for i := range v {
				v[i] = strew(v[i])
			}
		case map[string]any:
			for key := range v {
				if key != "input" && key != "input_schema" && key != "schema" { // what is not read at all
					v[key] = strew(v[key])
				}
			}
			objects++
			v["provider_specific_fields"], v["new"] = nil, map[string]any{"type": []any{1, "x", true}}
		}
		return v
	}
	sorted := text(t, plain) // as the other is
	strewn := text(t, strew(plain))
	for _, path := range []string{"/v1/messages", "/v1/messages/count_tokens?beta=true"} {
		var want string
		for _, body := range []string{sorted, strewn} {
			if strings.Contains(path, "count") {
				body = strings.Replace(body, `"max_tokens":4096,`, "", 1)
			}
			c, err := parse(path, body)
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			request, err := c.Read(t.Context(), &ingress.Env{Peer: anthropicPeer})
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			got := text(t, request.Messages) + text(t, request.Config) + text(t, request.Dropped) + text(t, request.Paths)
			if want == "" {
				want = got
			}
			if got != want || c.Counts() != (request.Config.MaxTokens == nil) {
				t.Errorf("%s, %d objects with unknown keys:\n got %s\nwant %s", path, objects, got, want)
			}
		}
	}
}

// TestRecordedRequests reads what callers sent to the provider. What only the provider itself could give is refused.
func TestRecordedRequests(t *testing.T) {
	folder := os.Getenv("MMSP_CORPUS")
	if folder == "" {
		t.Skip("MMSP_CORPUS is not set")
	}
	files, _ := filepath.Glob(filepath.Join(folder, "anthropic-messages", "*", "request.json"))
	if len(files) == 0 {
		t.Fatal("no requests")
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		body := string(data)
		if !strings.Contains(body, `"model":`) { // it stands in the URL of some platforms
			body = strings.Replace(body, "{", `{"model":"m",`, 1)
		}
		c, err := parse("/v1/messages", body)
		if err == nil {
			_, err = c.Read(t.Context(), &ingress.Env{Peer: anthropicPeer, Fetch: ingresstest.Fetch})
		}
		if err != nil && !strings.Contains(err.Error(), "container_upload") {
			t.Errorf("%s: %v", file, err)
		}
	}
}
