package chat

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/ingress"
	"github.com/prism-shadow/mmsp-go/ingress/ingresstest"
	"github.com/prism-shadow/mmsp-go/internal/carry"
	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// inputSchema is what a custom tool takes as a function.
var inputSchema = string(ingress.CustomTool("", "", "", "").Parameters)

var (
	chatPeer      = carry.Peer{ClientType: "openai-chat", Protocol: carry.Chat, Host: "openrouter.ai", Model: "m"}
	geminiPeer    = carry.Peer{ClientType: "google-genai", Protocol: carry.GenerateContent, Host: "google", Model: "g"}
	anthropicPeer = carry.Peer{ClientType: "anthropic-official", Protocol: carry.Messages, Host: "anthropic", Model: "c"}
	responsesPeer = carry.Peer{ClientType: "openai-official", Protocol: carry.Responses, Host: "openai", Model: "o"}
)

func envFor(peer carry.Peer) *ingress.Env {
	return &ingress.Env{
		Peer: peer, RequestID: "req_a1", Now: time.Unix(1790000000, 0), Fetch: ingresstest.Fetch,
		Asks: func(*mmsp.Config) bool { return peer == geminiPeer },
	}
}

// ask parses and reads a body as the gateway does.
func ask(body string, peer carry.Peer) (ingress.Call, *ingress.Request, error) {
	if err := jsonscan.Check([]byte(body)); err != nil {
		return nil, nil, err
	}
	c, err := New().Parse(nil, []byte(body))
	if err != nil {
		return nil, nil, err
	}
	request, err := c.Read(context.Background(), envFor(peer))
	return c, request, err
}

// show writes a request as text: the messages, the config, and what else there is.
func show(r *ingress.Request) string {
	var b []byte
	for m := range r.Messages {
		b = append(r.Messages[m].AppendJSON(b), '\n')
	}
	config := r.Config.AppendJSON(nil)
	if string(config) != "{}" {
		b = append(append(append(b, "config "...), config...), '\n')
	}
	for _, list := range []struct {
		name  string
		texts []string
	}{{"dropped", r.Dropped}, {"unknown", r.Unknown}, {"allowed", r.Allowed}, {"tools at", r.ToolPaths}} {
		if list.texts != nil {
			b = append(append(append(append(b, list.name...), ' '), strings.Join(list.texts, ", ")...), '\n')
		}
	}
	return string(b)
}

const hi = `"messages":[{"role":"user","content":"hi"}]`

func TestRead(t *testing.T) {
	user := `{"role":"user","content_items":[{"type":"text.done","text":"hi"}]}` + "\n"
	for _, c := range []struct {
		name, body string
		peer       carry.Peer
		want       string
	}{
		{"text", `{"model":"m",` + hi + `,"new":{"a":[1]}}`, chatPeer, user + "unknown new\n"},
		{"null is absent", `{"model":"m",` + hi + `,"tools":null,"tool_choice":null,"stop":null,"n":null,"response_format":null,"metadata":null,"stream":null,"functions":null,"function_call":null,"logit_bias":null}`, chatPeer, user},
		{
			"system anywhere",
			`{"model":"m","messages":[{"role":"system","content":"a"},{"role":"user","content":"hi"},{"role":"developer","content":[{"type":"text","text":"b"},{"type":"text","text":"c"}]}]}`,
			chatPeer, user + `config {"system_prompt":"a\n\nb\n\nc"}` + "\n",
		},
		{"a system prompt alone", `{"model":"m","messages":[{"role":"system","content":"a"}]}`, chatPeer, `config {"system_prompt":"a"}` + "\n"},
		{
			"parts of a user",
			`{"model":"m","messages":[{"role":"user","name":"Ann","content":[{"type":"text","text":""},{"type":"text","text":"what"},{"type":"image_url","image_url":{"url":"https://x.test/a.png","detail":"high"}},` +
				`{"type":"image_url","image_url":"data:image/png;base64,AA=="},{"type":"input_audio","input_audio":{"data":"UklGRg==","format":"wav"}},{"type":"input_audio","input_audio":{"data":"-_8","format":"mp3"}},` +
				`{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERi0="}},{"type":"file","file":{"file_data":"JVBERi0"}},{"type":"file","file":{"filename":"n.txt","file_data":"aGk="}}]}]}`,
			chatPeer,
			`{"role":"user","content_items":[{"type":"text.done","text":"what"},{"type":"image_url.done","image_url":"https://x.test/a.png","detail":"high"},{"type":"image_url.done","image_url":"data:image/png;base64,AA=="},` +
				`{"type":"inline_data.done","data":"UklGRg==","mime_type":"audio/wav"},{"type":"inline_data.done","data":"+/8=","mime_type":"audio/mpeg"},` +
				`{"type":"inline_data.done","data":"JVBERi0=","mime_type":"application/pdf","filename":"a.pdf"},{"type":"inline_data.done","data":"JVBERi0=","mime_type":"application/pdf"},{"type":"inline_data.done","data":"aGk=","mime_type":"text/plain","filename":"n.txt"}]}` + "\n",
		},
		{
			"files by URL",
			`{"model":"m","messages":[{"role":"user","content":[{"type":"file","file":{"file_data":"https://files.test/a.pdf"}},{"type":"file","file":{"filename":"b.pdf","file_data":"https://files.test/a.pdf"}},` +
				`{"type":"file","file":{"file_data":"https://files.test/a.png"}}]},{"role":"assistant","tool_calls":[{"id":"c1","function":{"name":"f","arguments":""}}]},` +
				`{"role":"tool","tool_call_id":"c1","content":[{"type":"file","file":{"file_data":"https://files.test/a.pdf"}}]}]}`,
			chatPeer,
			`{"role":"user","content_items":[{"type":"inline_data.done","data":"JVBERi0=","mime_type":"application/pdf","filename":"a.pdf"},{"type":"inline_data.done","data":"JVBERi0=","mime_type":"application/pdf","filename":"b.pdf"},` +
				`{"type":"image_url.done","image_url":"data:image/png;base64,iVBORw=="}]}` + "\n" +
				`{"role":"assistant","content_items":[{"type":"tool_call.done","name":"f","arguments":{},"tool_call_id":"c1"}]}` + "\n" +
				`{"role":"user","content_items":[{"type":"tool_result.done","text":"","images":["data:application/pdf;name=a.pdf;base64,JVBERi0="],"tool_call_id":"c1"}]}` + "\n",
		},
		{
			"calls and results",
			`{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"n\":12345678901234567890.0}"}},{"id":"c2","function":{"name":"g","arguments":""}}]},` +
				`{"role":"tool","tool_call_id":"c2","content":[{"type":"text","text":"a"},{"type":"text","text":"b"},{"type":"image_url","image_url":{"url":"https://x.test/a.png"}},{"type":"file","file":{"file_data":"data:application/pdf;base64,JVBERi0="}},{"type":"file","file":{"filename":"a b.md","file_data":"aGk="}}]},{"role":"tool","tool_call_id":"c1","content":""}]}`,
			chatPeer,
			user + `{"role":"assistant","content_items":[{"type":"tool_call.done","name":"f","arguments":{"n":12345678901234567890.0},"tool_call_id":"c1"},{"type":"tool_call.done","name":"g","arguments":{},"tool_call_id":"c2"}]}` + "\n" +
				`{"role":"user","content_items":[{"type":"tool_result.done","text":"a\nb","images":["https://x.test/a.png","data:application/pdf;base64,JVBERi0=","data:text/markdown;name=a%20b.md;base64,aGk="],"tool_call_id":"c2"},{"type":"tool_result.done","text":"","tool_call_id":"c1"}]}` + "\n",
		},
		{
			"the older form",
			`{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"","function_call":{"name":"f","arguments":"{}"}},{"role":"function","name":"f","content":"1"},{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{\"a\":1}"}},{"role":"function","name":"f","content":"2"}],` +
				`"functions":[{"name":"f","description":"d","parameters":{"type":"object"}}],"function_call":{"name":"f"}}`,
			chatPeer,
			user + `{"role":"assistant","content_items":[{"type":"tool_call.done","name":"f","arguments":{},"tool_call_id":"fcall_1"}]}` + "\n" +
				`{"role":"user","content_items":[{"type":"tool_result.done","text":"1","tool_call_id":"fcall_1"}]}` + "\n" +
				`{"role":"assistant","content_items":[{"type":"tool_call.done","name":"f","arguments":{"a":1},"tool_call_id":"fcall_3"}]}` + "\n" +
				`{"role":"user","content_items":[{"type":"tool_result.done","text":"2","tool_call_id":"fcall_3"}]}` + "\n" +
				`config {"tools":[{"name":"f","description":"d","parameters":{"type":"object"}}],"tool_choice":["f"]}` + "\ntools at functions[0]\n",
		},
		{
			"a refusal",
			`{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"text","text":"a"},{"type":"refusal","refusal":"b"}]},{"role":"user","content":"hi"},{"role":"assistant","content":null,"refusal":"no"}]}`,
			chatPeer,
			user + `{"role":"assistant","content_items":[{"type":"text.done","text":"a"},{"type":"text.done","text":"b","fidelity":{"refusal":true}}]}` + "\n" + user +
				`{"role":"assistant","content_items":[{"type":"text.done","text":"no","fidelity":{"refusal":true}}]}` + "\n",
		},
		{
			"thinking of the row's own protocol",
			`{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"a","reasoning_content":"t"},{"role":"user","content":"hi"},{"role":"assistant","content":"a","reasoning":"t"},{"role":"user","content":"hi"},{"role":"assistant","content":"a","reasoning":"t","reasoning_content":"t"}]}`,
			chatPeer,
			user + `{"role":"assistant","content_items":[{"type":"thinking.done","thinking":"t","fidelity":{"reasoning_field":"reasoning_content"}},{"type":"text.done","text":"a"}]}` + "\n" +
				user + `{"role":"assistant","content_items":[{"type":"thinking.done","thinking":"t","fidelity":{"reasoning_field":"reasoning"}},{"type":"text.done","text":"a"}]}` + "\n" +
				user + `{"role":"assistant","content_items":[{"type":"thinking.done","thinking":"t"},{"type":"text.done","text":"a"}]}` + "\n",
		},
		{
			"thinking of unknown origin",
			`{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"a","reasoning_content":"t","reasoning_details":[{"type":"reasoning.text","text":"t","signature":"s"},{"type":"reasoning.encrypted","data":"mmsp1.broken"}]}]}`,
			anthropicPeer,
			user + `{"role":"assistant","content_items":[{"type":"thinking.done","thinking":"t"},{"type":"text.done","text":"a"}]}` + "\n",
		},
		{
			"details of the row's own, in pieces as a stream brings them",
			`{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"a","reasoning":"one two","reasoning_details":[{"type":"reasoning.text","text":"one ","format":"anthropic-claude-v1","index":0},` +
				`{"type":"reasoning.text","text":"two","format":"anthropic-claude-v1","index":0},{"type":"reasoning.text","signature":"s","text":null,"format":"anthropic-claude-v1","index":0},{"type":"reasoning.encrypted","data":"d","id":null,"index":1},"x",{"type":3}]}]}`,
			chatPeer,
			user + `{"role":"assistant","content_items":[{"type":"thinking.done","thinking":"one two","fidelity":{"reasoning_details":[{"type":"reasoning.text","format":"anthropic-claude-v1","index":0,"signature":"s"}]}},` +
				`{"type":"thinking.done","thinking":"","fidelity":{"reasoning_details":[{"type":"reasoning.encrypted","index":1,"data":"d"}]}},{"type":"text.done","text":"a"}]}` + "\n",
		},
		{
			"calls that the token limit cut, and that two readers take differently",
			`{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","tool_calls":[{"id":"c1","function":{"name":"f","arguments":"{\"a\":"}},{"id":"c2","function":{"name":"f","arguments":"{\"a\":1,\"a\":\"\\ud800\"}"}}]}]}`,
			chatPeer,
			user + `{"role":"assistant","content_items":[{"type":"tool_call.done","name":"f","arguments":{},"tool_call_id":"c1"},{"type":"tool_call.done","name":"f","arguments":{"a":"` + "\ufffd" + `"},"tool_call_id":"c2"}]}` + "\n" +
				"dropped messages[1].tool_calls[0].function.arguments, messages[1].tool_calls[1].function.arguments\n",
		},
		{
			"details alone",
			`{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"a","reasoning_details":[{"type":"reasoning.text","text":"t","signature":"s"}]}]}`,
			chatPeer,
			user + `{"role":"assistant","content_items":[{"type":"thinking.done","thinking":"t","fidelity":{"reasoning_details":[{"type":"reasoning.text","signature":"s"}]}},{"type":"text.done","text":"a"}]}` + "\n",
		},
		{
			"pictures of the model's own",
			`{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"a","images":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}},{"image_url":{"url":"https://x.test"}}]}]}`,
			geminiPeer,
			user + `{"role":"assistant","content_items":[{"type":"text.done","text":"a"},{"type":"inline_data.done","data":"AA==","mime_type":"image/png"}]}` + "\n",
		},
		{
			"the config",
			`{"model":"m",` + hi + `,"max_tokens":7,"max_completion_tokens":8,"temperature":0,"top_p":0.5,"presence_penalty":-2,"frequency_penalty":2,"seed":-3,"stop":["a","b"],"parallel_tool_calls":false,"reasoning_effort":"minimal","verbosity":"low","service_tier":"on_demand","prompt_cache_key":"k","user":"u","safety_identifier":"s","metadata":{"k":"v"},` +
				`"response_format":{"type":"json_schema","json_schema":{"name":"n","description":"d","schema":{"type":"object"},"strict":true}},"n":1,"logprobs":false,"top_logprobs":0,"logit_bias":{},"store":true,"modalities":["text"],"audio":null,"moderation":{},"prompt_cache_options":{"mode":null},"prompt_cache_retention":"in_memory"}`,
			chatPeer,
			user + `config {"max_tokens":8,"temperature":0,"top_p":0.5,"stop_sequences":["a","b"],"seed":-3,"presence_penalty":-2,"frequency_penalty":2,"parallel_tool_calls":false,"response_format":{"type":"json_schema","name":"n","description":"d","schema":{"type":"object"},"strict":true},` +
				`"thinking_level":"low","thinking_summary":true,"verbosity":"low","service_tier":"on_demand","prompt_cache_key":"k","user":"u","metadata":{"k":"v"}}` + "\ndropped reasoning_effort (minimal)\n",
		},
		{
			"more of the config",
			`{"model":"m",` + hi + `,"max_tokens":7,"stop":"x","reasoning_effort":"none","service_tier":"auto","safety_identifier":"s","response_format":{"type":"json_object"},"logprobs":true,"top_logprobs":2,"logit_bias":{"1":2},"prediction":{"type":"content"},"web_search_options":{}}`,
			chatPeer,
			user + `config {"max_tokens":7,"stop_sequences":["x"],"response_format":{"type":"json_object"},"thinking_level":"none","user":"s"}` + "\ndropped logprobs, top_logprobs, logit_bias, prediction, web_search_options\n",
		},
		{
			"what nobody but OpenAI has",
			`{"model":"m",` + hi + `,"audio":{"voice":"alloy","format":"wav"},"moderation":{"model":"omni-moderation-latest"},"prompt_cache_options":{"mode":"explicit"},"prompt_cache_retention":"24h"}`,
			responsesPeer, user + "dropped audio, moderation, prompt_cache_options, prompt_cache_retention\n",
		},
		{"pictures", `{"model":"m",` + hi + `,"modalities":["text","image"]}`, geminiPeer, user + `config {"image_config":{}}` + "\n"},
		{"pictures that nobody makes", `{"model":"m",` + hi + `,"modalities":["text","image"]}`, chatPeer, user + "dropped modalities[1] (image)\n"},
		{
			"tools",
			`{"model":"m",` + hi + `,"tools":[{"type":"web_search"},{"type":"function","function":{"name":"f","parameters":{"type":"object","$schema":"s"},"strict":true}},{"type":"custom","custom":{"name":"p","description":"d","format":{"type":"grammar","grammar":{"syntax":"lark","definition":"start: /x/"}}}},{"function":{"name":"g"}}],"tool_choice":"required"}`,
			chatPeer,
			user + `config {"tools":[{"name":"f","description":"","parameters":{"type":"object","$schema":"s"},"strict":true},{"name":"p","description":"d\n\nThe input must fit this grammar (lark):\nstart: /x/","parameters":` + inputSchema + `},{"name":"g","description":""}],"tool_choice":"required"}` +
				"\ndropped tools[0] (web_search), tools[2].custom.format (grammar)\ntools at tools[1], tools[2], tools[3]\n",
		},
		{
			"one tool", `{"model":"m",` + hi + `,"tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"g"}}],"tool_choice":{"type":"function","function":{"name":"g"}}}`,
			chatPeer, user + `config {"tools":[{"name":"f","description":""},{"name":"g","description":""}],"tool_choice":["g"]}` + "\ntools at tools[0], tools[1]\n",
		},
		{
			"some tools", `{"model":"m",` + hi + `,"tools":[{"type":"function","function":{"name":"f"}},{"type":"custom","custom":{"name":"g"}},{"type":"x"}],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"custom","custom":{"name":"g"}},{"type":"x"}]}}}`,
			chatPeer, user + `config {"tools":[{"name":"g","description":"","parameters":` + inputSchema + `}],"tool_choice":"auto"}` + "\ndropped tools[2] (x)\nallowed g\ntools at tools[1]\n",
		},
		{
			"one of some tools", `{"model":"m",` + hi + `,"tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"g"}}],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[{"type":"function","function":{"name":"g"}}]}}}`,
			chatPeer, user + `config {"tools":[{"name":"f","description":""},{"name":"g","description":""}],"tool_choice":["g"]}` + "\nallowed g\ntools at tools[0], tools[1]\n",
		},
		{"no tools left", `{"model":"m",` + hi + `,"tools":[{"type":"web_search"}],"tool_choice":"auto"}`, chatPeer, user + "dropped tools[0] (web_search)\n"},
		{
			"a call of a custom tool", `{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"custom","custom":{"name":"p","input":"a \"b\""}}]},{"role":"tool","tool_call_id":"c1","content":"r"}]}`,
			chatPeer, user + `{"role":"assistant","content_items":[{"type":"tool_call.done","name":"p","arguments":{"input":"a \"b\""},"tool_call_id":"c1"}]}` + "\n" +
				`{"role":"user","content_items":[{"type":"tool_result.done","text":"r","tool_call_id":"c1"}]}` + "\n",
		},
		{
			"what the vendors bend", `{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"a","reasoning_details":"x","images":{},"tool_calls":[{"id":"c1","type":"function","extra_content":3,"function":{"name":"f","arguments":"{}"}},{"id":"c2","type":"function","extra_content":{"google":{"thought_signature":"foreign"}},"function":{"name":"f","arguments":"{}"}}]}]}`,
			geminiPeer, user + `{"role":"assistant","content_items":[{"type":"text.done","text":"a"},{"type":"tool_call.done","name":"f","arguments":{},"tool_call_id":"c1"},{"type":"tool_call.done","name":"f","arguments":{},"tool_call_id":"c2"}]}` + "\n",
		},
	} {
		_, request, err := ask(c.body, c.peer)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got := show(request); got != c.want {
			t.Errorf("%s:\ngot  %swant %s", c.name, got, c.want)
		}
		if err := mmsp.Validate(request.Messages); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestReadPaths(t *testing.T) {
	_, request, err := ask(`{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","content":"a"},{"role":"user","content":[{"type":"text","text":"b"},{"type":"image_url","image_url":{"url":"https://x.test"}}]},`+
		`{"role":"assistant","content":"c","refusal":"d","reasoning_content":"t","tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}],"function_call":{"name":"g","arguments":"{}"}},{"role":"tool","tool_call_id":"1","content":"r"},{"role":"function","name":"g","content":"r"}]}`, chatPeer)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(request.Paths)
	want := `[["messages[1].content","messages[2].content[0]","messages[2].content[1].image_url.url"],` +
		`["messages[3].reasoning_content","messages[3].content","messages[3].refusal","messages[3].function_call","messages[3].tool_calls[0]"],["messages[4]","messages[5]"]]`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// What comes in many pieces is joined once: what that takes grows with the body, and not with its square.
func TestManyPieces(t *testing.T) {
	const n = 4000
	list := func(piece string) string { return "[" + strings.Repeat(piece+",", n-1) + piece + "]" }
	piece := strings.Repeat("x", 100)
	for _, c := range []struct {
		name, fields string
		items        int
		text         string // of the last of them
	}{
		{"texts", `"content":` + list(`{"type":"text","text":"`+piece+`"}`), n, piece},
		{"refusals", `"content":` + list(`{"type":"refusal","refusal":"`+piece+`"}`), n, piece},
		{"details", `"reasoning":"t","reasoning_details":` + list(`{"type":"reasoning.text","text":"`+piece+`"}`), 1, strings.Repeat(piece, n)},
		{"summaries", `"reasoning":"t","reasoning_details":` + list(`{"type":"reasoning.summary","summary":"`+piece+`"}`), 1, strings.Repeat(piece, n)},
	} {
		body := `{"model":"m","messages":[{"role":"assistant",` + c.fields + `}]}`
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, request, err := ask(body, chatPeer)
		runtime.ReadMemStats(&after)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		items := request.Messages[0].ContentItems
		if last := &items[len(items)-1]; len(items) != c.items || last.Text+last.Thinking != c.text {
			t.Errorf("%s: %d items, the last %.100q", c.name, len(items), last.Text+last.Thinking)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > uint64(100*len(body)) {
			t.Errorf("%s: %d bytes are allocated for a body of %d", c.name, took, len(body))
		}
	}
}

func TestReadRefuses(t *testing.T) {
	message := func(m string) string { return `{"model":"m","messages":[` + m + `]}` }
	with := func(fields string) string { return `{"model":"m",` + hi + `,` + fields + `}` }
	call := `{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	for _, c := range []struct{ body, param, says string }{
		{`[]`, "", "an object is wanted"},
		{`{` + hi + `}`, "model", "name of a model"},
		{`{"model":3,` + hi + `}`, "model", "a string is wanted"},
		{`{"model":"m"}`, "messages", "at least one"},
		{`{"model":"m","messages":[]}`, "messages", "at least one"},
		{`{"model":"m","messages":{}}`, "messages", "a list"},
		{message(`3`), "messages[0]", "an object"},
		{message(`null`), "messages[0]", "a message is wanted"},
		{message(`{"content":"x"}`), "messages[0].role", "one of system"},
		{message(`{"role":"critic","content":"x"}`), "messages[0].role", "one of system"},
		{message(`{"role":"system","content":" "},{"role":"user","content":""}`), "messages", "with content"},
		{message(`{"role":"user","content":3}`), "messages[0].content", "a string or a list"},
		{message(`{"role":"user","content":[3]}`), "messages[0].content[0].type", "is no part"},
		{message(`{"role":"user","content":[{"type":"video_url","video_url":{}}]}`), "messages[0].content[0].type", `"video_url" is no part`},
		{message(`{"role":"system","content":[{"type":"image_url","image_url":{"url":"https://x"}}]}`), "messages[0].content[0].type", `"image_url" is no part`},
		{message(`{"role":"user","content":[{"type":"text"}]}`), "messages[0].content[0].text", "needs it"},
		{message(`{"role":"user","content":[{"type":"text","text":3}]}`), "messages[0].content[0].text", "a string"},
		{message(`{"role":"user","content":[{"type":"image_url","image_url":{}}]}`), "messages[0].content[0].image_url.url", "URL is wanted"},
		{message(`{"role":"user","content":[{"type":"image_url","image_url":{"url":"file:///etc/passwd"}}]}`), "messages[0].content[0].image_url.url", "an http(s) URL"},
		{message(`{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://x","detail":"max"}}]}`), "messages[0].content[0].image_url.detail", "one of auto"},
		{message(`{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"AA==","format":"ogg"}}]}`), "messages[0].content[0].input_audio.format", "one of wav"},
		{message(`{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"!","format":"wav"}}]}`), "messages[0].content[0].input_audio.data", "base64"},
		{message(`{"role":"user","content":[{"type":"file","file":{"file_id":"file-1"}}]}`), "messages[0].content[0].file.file_id", "file ids of a provider"},
		{message(`{"role":"user","content":[{"type":"file","file":{"file_data":"https://x.test/a.pdf"}}]}`), "messages[0].content[0].file.file_data", "nothing is there"},
		{message(`{"role":"user","content":[{"type":"file","file":{"file_data":"file:///etc/passwd"}}]}`), "messages[0].content[0].file.file_data", "nothing is there"},
		{message(`{"role":"user","content":[{"type":"file","file":{"file_data":"data:text/plain,hi"}}]}`), "messages[0].content[0].file.file_data", "in base64"},
		{message(`{"role":"user","content":[{"type":"file","file":{}}]}`), "messages[0].content[0].file.file_data", "bytes are wanted"},
		{message(call + `,{"role":"tool","content":"x"}`), "messages[1].tool_call_id", "the id of a call"},
		{message(call + `,{"role":"tool","tool_call_id":"c2","content":"x"}`), "messages[1].tool_call_id", `no call before it has the id "c2"`},
		{message(`{"role":"function","name":"f","content":"x"}`), "messages[0].name", "no function_call"},
		{message(call + `,{"role":"function","name":"f","content":"x"}`), "messages[1].name", "no function_call"},
		{message(`{"role":"function","content":"x"}`), "messages[0].name", "name of a function"},
		{message(`{"role":"assistant","tool_calls":[{"type":"function","function":{"name":"f"}}]}`), "messages[0].tool_calls[0].id", "needs an id"},
		{message(`{"role":"assistant","tool_calls":[{"id":"1","type":"function"}]}`), "messages[0].tool_calls[0].function", "an object"},
		{message(`{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"arguments":"{}"}}]}`), "messages[0].tool_calls[0].function.name", "name of a function"},
		{message(`{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"[1]"}}]}`), "messages[0].tool_calls[0].function.arguments", "JSON object"},
		{message(`{"role":"assistant","tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":{}}}]}`), "messages[0].tool_calls[0].function.arguments", "a string"},
		{message(`{"role":"assistant","tool_calls":[{"id":"1","type":7,"function":{"name":"f"}}]}`), "messages[0].tool_calls[0].type", "a string is wanted"},
		{message(`{"role":7,"content":"x"}`), "messages[0].role", "a string is wanted"},
		{message(`{"role":"user","content":[{"type":7,"text":"x"}]}`), "messages[0].content[0].type", "a string is wanted"},
		{with(`"tools":[{"type":7,"function":{"name":"f"}}]`), "tools[0].type", "a string is wanted"},
		{with(`"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":7}`), "tool_choice.type", "a string is wanted"},
		{message(`{"role":"assistant","tool_calls":[{"id":"1","type":"computer"}]}`), "messages[0].tool_calls[0].type", `"computer"`},
		{message(`{"role":"assistant","tool_calls":{}}`), "messages[0].tool_calls", "a list"},
		{with(`"n":2`), "n", "only 1"},
		{with(`"temperature":2.1`), "temperature", "from 0 to 2"},
		{with(`"temperature":"1"`), "temperature", "a number"},
		{with(`"top_p":-1`), "top_p", "from 0 to 1"},
		{with(`"max_tokens":0`), "max_tokens", "an integer from 1"},
		{with(`"max_completion_tokens":1.5`), "max_completion_tokens", "an integer"},
		{with(`"stop":["a","b","c","d","e"]`), "stop", "at most 4"},
		{with(`"stop":[1]`), "stop[0]", "a string"},
		{with(`"stop":1`), "stop", "a string"},
		{with(`"stream":"yes"`), "stream", "true or false"},
		{with(`"stream_options":{"include_usage":1}`), "stream_options.include_usage", "true or false"},
		{with(`"reasoning_effort":"huge"`), "reasoning_effort", "one of none"},
		{with(`"verbosity":"x"`), "verbosity", "one of low"},
		{with(`"service_tier":1`), "service_tier", "a string"},
		{with(`"modalities":["text","audio"]`), "modalities[1]", "sound"},
		{with(`"prediction":"x"`), "prediction", "an object"},
		{with(`"web_search_options":true`), "web_search_options", "an object"},
		{with(`"prompt_cache_retention":"1h"`), "prompt_cache_retention", "one of in_memory"},
		{with(`"store":1`), "store", "true or false"},
		{with(`"metadata":{"a":1}`), "metadata.a", "a string"},
		{with(`"metadata":"x"`), "metadata", "an object"},
		{with(`"metadata":{"a":"` + strings.Repeat("é", 513) + `"}`), "metadata.a", "at most 512"},
		{with(`"response_format":{}`), "response_format.type", "one of text"},
		{with(`"response_format":{"type":"json_schema"}`), "response_format.json_schema", "an object"},
		{with(`"response_format":{"type":"json_schema","json_schema":{"schema":"x"}}`), "response_format.json_schema.schema", "an object"},
		{with(`"tools":[{}]`), "tools[0].type", "says what it is"},
		{with(`"tools":[{"type":"function"}]`), "tools[0].function", "says what it is"},
		{with(`"tools":[{"type":"function","function":{}}]`), "tools[0].function.name", "needs a name"},
		{with(`"tools":[{"type":"custom","custom":{}}]`), "tools[0].custom.name", "needs a name"},
		{with(`"tools":[{"type":"function","function":{"name":"f","parameters":[]}}]`), "tools[0].function.parameters", "an object"},
		{with(`"functions":[{}]`), "functions[0].name", "needs a name"},
		{with(`"tools":[{"type":"function","function":{"name":"f"}},{"type":"x"},{"type":"custom","custom":{"name":"f"}}]`), "tools[2].custom.name", `two tools are called "f"`},
		{with(`"tools":[{"function":{"name":"f"}},{"function":{"name":"f"}}]`), "tools[1].function.name", `two tools are called "f"`},
		{with(`"tools":[{"function":{"name":"f"}}],"functions":[{"name":"g"},{"name":"f"}]`), "functions[1].name", `two tools are called "f"`},
		{with(`"tool_choice":"any"`), "tool_choice", "one of none"},
		{with(`"tool_choice":"required"`), "tool_choice", "no tool to call"},
		{with(`"tools":[{"type":"web_search"}],"tool_choice":{"type":"web_search"}`), "tool_choice.type", `"web_search" cannot be chosen`},
		{with(`"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"function","function":{"name":"g"}}`), "tool_choice.function.name", `"g"`},
		{with(`"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"function"}`), "tool_choice.function.name", "name of a tool"},
		{with(`"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"allowed_tools","allowed_tools":{"tools":[{"type":"function","function":{"name":"f"}}]}}`), "tool_choice.allowed_tools.mode", "one of auto"},
		{with(`"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[]}}`), "tool_choice.allowed_tools.tools", "at least one"},
		{with(`"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[` + strings.Repeat(`{"type":"function","name":"f"},`, 128) + `{"type":"function","name":"f"}]}}`), "tool_choice.allowed_tools.tools", "at most 128"},
		{with(`"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"g"}}]}}`), "tool_choice.allowed_tools.tools[1].function.name", `"g"`},
		{with(`"functions":[{"name":"f"}],"function_call":{"name":"g"}`), "function_call.name", `"g"`},
		{with(`"functions":[{"name":"f"}],"function_call":"required"`), "function_call", "one of none"},
	} {
		_, _, err := ask(c.body, chatPeer)
		var invalid *mmsp.InvalidRequestError
		if !errors.As(err, &invalid) || invalid.Param != c.param || !strings.Contains(invalid.Message, c.says) {
			t.Errorf("%s:\ngot  %v\nwant %s: … %s", c.body, err, c.param, c.says)
		}
	}
}
