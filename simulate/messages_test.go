package simulate

import (
	"strings"
	"testing"
)

const messagesTools = `"tools":[{"name":"get_weather","input_schema":{"type":"object","properties":{"city":{"type":"string"}},` +
	`"required":["city"]}},{"name":"get_time","input_schema":{"type":"object","properties":{"zone":{"type":"string"}}}}]`

// messagesKind names an event with its block or delta type and its stop reason.
func messagesKind(f frame) string {
	name := strings.TrimPrefix(f.name, "content_")
	for _, path := range []string{"content_block.type", "delta.type", "delta.stop_reason", "error.type"} {
		if kind := f.at(path).text(); kind != "" {
			name += " " + kind
		}
	}
	return name
}

func TestMessagesStream(t *testing.T) {
	const text = "\nblock_delta text_delta\nblock_stop"
	const call = "\nblock_delta input_json_delta\nblock_stop"
	cases := []struct{ name, prompt, more, want string }{
		{"text", "hello there", "", "block_start text\nping" + text + "\nmessage_delta end_turn\nmessage_stop"},
		{
			"think", "THINK about it", "", `block_start thinking
			ping
			block_delta thinking_delta
			block_delta signature_delta
			block_stop
			block_start text` + text + "\nmessage_delta end_turn\nmessage_stop",
		},
		{
			"thinking asked for", "hi", `"thinking":{"type":"adaptive","display":"omitted"}`, `block_start thinking
			ping
			block_delta signature_delta
			block_stop
			block_start text` + text + "\nmessage_delta end_turn\nmessage_stop",
		},
		{
			"redacted", "redacted", "", `block_start redacted_thinking
			ping
			block_stop
			block_start text` + text + "\nmessage_delta end_turn\nmessage_stop",
		},
		{"call", "call", messagesTools, "block_start tool_use\nping" + call + "\nmessage_delta tool_use\nmessage_stop"},
		{"any", "hi", messagesTools + `,"tool_choice":{"type":"any"}`, "block_start tool_use\nping" + call + "\nmessage_delta tool_use\nmessage_stop"},
		{"none", "call", messagesTools + `,"tool_choice":{"type":"none"}`, "block_start text\nping" + text + "\nmessage_delta end_turn\nmessage_stop"},
		{
			"parallel", "parallel", messagesTools,
			"block_start tool_use\nping" + call + "\nblock_start tool_use" + call + "\nmessage_delta tool_use\nmessage_stop",
		},
		{
			"one call only", "parallel", messagesTools + `,"tool_choice":{"type":"auto","disable_parallel_tool_use":true}`,
			"block_start tool_use\nping" + call + "\nmessage_delta tool_use\nmessage_stop",
		},
		{"refuse", "refuse", "", "message_delta refusal\nmessage_stop"},
		{"empty", "empty", "", "message_delta end_turn\nmessage_stop"},
		{"length", "length", "", "block_start text\nping" + text + "\nmessage_delta max_tokens\nmessage_stop"},
		{"token limit", "hi", `"max_tokens":2`, "block_start text\nping" + text + "\nmessage_delta max_tokens\nmessage_stop"},
		{"stop sequence", "hi", `"stop_sequences":["wrote"]`, "block_start text\nping" + text + "\nmessage_delta stop_sequence\nmessage_stop"},
		{"fail", "fail", "", "block_start text\nping\nblock_delta text_delta\nerror overloaded_error"},
		{"cut", "cut clean", "", "block_start text\nping\nblock_delta text_delta"},
		{"cut in a call", "call, cut clean", messagesTools, "block_start tool_use\nping\nblock_delta input_json_delta"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			more := []string{`"stream":true`}
			if c.more != "" {
				more = append(more, c.more)
			}
			all := frames(t, dial(t, "messages", Options{}).ok(ask("messages", c.prompt, more...)))
			if got, want := shape(all, messagesKind), trim("message_start\n"+c.want); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			open := -1
			for _, f := range all {
				switch at := f.at("index").number(); {
				case f.name == "content_block_start" && at == open+1:
					open = at
				case strings.HasPrefix(f.name, "content_block") && (f.name == "content_block_start" || at != open):
					t.Errorf("%s at index %d after %d", f.name, at, open)
				}
			}
		})
	}
}

// A request for no tokens reads its prompt into the cache, from where the next takes it.
func TestMessagesWarm(t *testing.T) {
	p := dial(t, "messages", Options{})
	const cache = `"cache_control":{"type":"ephemeral"}`
	body := p.whole(ask("messages", "hi, think and call", `"max_tokens":0`, cache))
	if got := body.at("content").json() + body.at("stop_reason").text(); got != "[]max_tokens" || body.at("usage.output_tokens").number() != 0 {
		t.Errorf("answered %s", body.json())
	}
	written := body.at("usage.cache_creation_input_tokens").number()
	if read := p.whole(ask("messages", "hi, think and call", cache)).at("usage.cache_read_input_tokens").number(); written == 0 || read != written {
		t.Errorf("%d tokens written, %d read", written, read)
	}
}

func TestMessagesWhole(t *testing.T) {
	p := dial(t, "messages", Options{})
	body := p.whole(ask("messages", "call for Oslo", messagesTools, `"thinking":{"type":"enabled","budget_tokens":1024}`))
	thinking, call := body.at("content.0"), body.at("content.1")
	if thinking.at("type").text() != "thinking" || call.at("input").json() != `{"city":"Oslo"}` || body.at("stop_reason").text() != "tool_use" {
		t.Fatalf("message %s", body.json())
	}
	if n := body.at("usage.output_tokens").number(); n != tokens(thinking.at("thinking").text())+tokens(call.at("input").json()) {
		t.Errorf("%d output tokens", n)
	}

	result := `{"role":"user","content":[{"type":"tool_result","tool_use_id":"` + call.at("id").text() + `","is_error":true,` +
		`"content":[{"type":"text","text":"rain, error 500"}]}]}`
	next := func(blocks string) string {
		return `{"model":"m","max_tokens":4000,"thinking":{"type":"enabled","budget_tokens":2000},"messages":[{"role":"user","content":"hi"},` +
			`{"role":"assistant","content":[` + blocks + `]},` + result + `]}`
	}
	kept := next(thinking.json() + "," + call.json())
	answered := p.whole(kept)
	if text := answered.at("content.1.text").text(); !strings.Contains(text, "get_weather failed with “rain, error 500”") {
		t.Errorf("the result is not in %q", text)
	}

	signature, thought := thinking.at("signature").text(), thinking.at("thinking").text()
	refusals := []struct{ name, body, want string }{
		{"altered signature", strings.Replace(kept, signature, "AAAA"+signature[4:], 1), "messages.1.content.0: Invalid `signature` in `thinking` block"},
		{"altered thinking", strings.Replace(kept, thought[:8], "No, user", 1), "messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified."},
		{"no signature", next(`{"type":"thinking","thinking":"x"},` + call.json()), "messages.1.content.0.thinking.signature: Field required"},
		{"no thinking", next(call.json()), "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`."},
		{"thinking after the call", next(call.json() + "," + thinking.json()), "Expected `thinking` or `redacted_thinking`, but found `tool_use`."},
		{"altered redacted", next(`{"type":"redacted_thinking","data":"Zm9v"},` + call.json()), "Invalid `data` in `redacted_thinking` block"},
	}
	for _, c := range refusals {
		t.Run(c.name, func(t *testing.T) { checkRefused(t, p, c.body, "invalid_request_error", c.want) })
	}
	checkRefused(t, dial(t, "messages", Options{}), kept, "invalid_request_error", "Invalid `signature`")

	adaptive := strings.Replace(next(call.json()), `{"type":"enabled","budget_tokens":2000}`, `{"type":"adaptive"}`, 1)
	p.ok(adaptive)
	strict := dial(t, "messages", Options{Strict: true})
	strict.ok(adaptive) // the call is of another provider
	own := strict.whole(ask("messages", "think, call for Oslo", messagesTools)).at("content.1.id").text()
	checkRefused(t, strict, strings.ReplaceAll(adaptive, call.at("id").text(), own), "invalid_request_error", "but found `tool_use`")

	refused := p.whole(ask("messages", "refuse this"))
	if len(refused.at("content").list()) != 0 || !strings.Contains(refused.at("stop_details.explanation").text(), "refuse this") {
		t.Errorf("refusal %s", refused.json())
	}
}

func TestMessagesProofsComeBack(t *testing.T) {
	p := dial(t, "messages", Options{})
	for _, c := range []struct{ prompt, more string }{
		{"think", `"temperature":1`},
		{"redacted", `"temperature":1`},
		{"think", `"thinking":{"type":"adaptive","display":"omitted"}`},
	} {
		first := p.whole(ask("messages", c.prompt, c.more)).at("content.0")
		p.ok(`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[` + first.json() +
			`,{"type":"text","text":"x"}]},{"role":"user","content":"and?"}]}`)
	}
}

func TestMessagesChecks(t *testing.T) {
	const user = `{"role":"user","content":"hi"}`
	const call = `{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"f","input":{}}]}`
	const result = `{"type":"tool_result","tool_use_id":"t1","content":"x"}`
	content := func(blocks string) string { return `"messages":[{"role":"user","content":[` + blocks + `]}]` }
	model := func(blocks string) string {
		return `"messages":[` + user + `,{"role":"assistant","content":[` + blocks + `]},` + user + `]`
	}
	cases := []struct{ name, fields, want string }{
		{"no max_tokens", `"max_tokens":null,"messages":[` + user + `]`, "max_tokens: Field required"},
		{"no messages", ``, "messages: Field required"},
		{"no model", `"model":null,"messages":[` + user + `]`, "model: Field required"},
		{"unknown field", `"messages":[` + user + `],"stop":"x"`, "stop: Extra inputs are not permitted"},
		{"type of max_tokens", `"max_tokens":"9","messages":[` + user + `]`, "max_tokens: Input should be a valid integer"},
		{"max_tokens", `"max_tokens":-1,"messages":[` + user + `]`, "max_tokens: Input should be greater than or equal to 0"},
		{"a stream of nothing", `"max_tokens":0,"stream":true,"messages":[` + user + `]`, "max_tokens: 0 is not supported with `stream`"},
		{"a call of nothing", messagesTools + `,"max_tokens":0,"tool_choice":{"type":"any"},"messages":[` + user + `]`, "max_tokens: 0 is not supported with"},
		{"thinking of nothing", `"max_tokens":0,"thinking":{"type":"enabled","budget_tokens":1024},"messages":[` + user + `]`, "`max_tokens` must be greater than `thinking.budget_tokens`."},
		{"no message", `"messages":[]`, "messages: at least one message is required"},
		{"empty text", content(`{"type":"text","text":""}`), "messages: text content blocks must be non-empty"},
		{"blank text", content(`{"type":"text","text":" \n"}`), "messages: text content blocks must contain non-whitespace text"},
		{"empty system block", `"system":[{"type":"text","text":""}],"messages":[` + user + `]`, "text content blocks must be non-empty"},
		{"empty content", `"messages":[{"role":"user","content":[]}]`, "messages.0: all messages must have non-empty content"},
		{"empty text in a result", `"messages":[` + user + `,` + call + `,{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":""}]}]}]`, "text content blocks must be non-empty"},
		{"system role", `"messages":[{"role":"system","content":"x"},` + user + `]`, `messages: Unexpected role "system".`},
		{"role", `"messages":[{"role":"tool","content":"x"}]`, "messages.0.role: Input should be 'user' or 'assistant'"},
		{"model first", `"messages":[{"role":"assistant","content":"x"},` + user + `]`, `messages: first message must use the "user" role`},
		{"model last", `"messages":[` + user + `,{"role":"assistant","content":"x"}]`, "This model does not support assistant message prefill."},
		{"unanswered call", `"messages":[` + user + `,` + call + `,` + user + `]`, "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: t1."},
		{"text before the result", `"messages":[` + user + `,` + call + `,{"role":"user","content":[{"type":"text","text":"x"},` + result + `]}]`, "`tool_use` ids were found without `tool_result` blocks immediately after: t1."},
		{"result without call", content(result), "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: t1."},
		{"two results", `"messages":[` + user + `,` + call + `,{"role":"user","content":[` + result + `,` + result + `]}]`, "each tool_use must have a single result."},
		{"two calls of one id", model(`{"type":"tool_use","id":"t1","name":"f","input":{}},{"type":"tool_use","id":"t1","name":"f","input":{}}`), "`tool_use` ids must be unique"},
		{"call id", model(`{"type":"tool_use","id":"a.b","name":"f","input":{}}`), "messages.1.content.0.tool_use.id: String should match pattern"},
		{"call input", model(`{"type":"tool_use","id":"t1","name":"f","input":"{}"}`), "messages.1.content.0.tool_use.input: Input should be a valid dictionary"},
		{"foreign signature", model(`{"type":"thinking","thinking":"x","signature":"Zm9yZWlnbg=="},{"type":"text","text":"x"}`), "messages.1.content.0: Invalid `signature` in `thinking` block"},
		{"result of the model", model(result), "`tool_result` blocks can only be in `user` messages"},
		{"call of the user", content(`{"type":"tool_use","id":"t1","name":"f","input":{}}`), "`tool_use` blocks can only be in `assistant` messages"},
		{"block type", content(`{"type":"input_text","text":"x"}`), "messages.0.content.0: Input tag 'input_text' found using 'type' does not match any of the expected tags"},
		{"picture type", content(`{"type":"image","source":{"type":"base64","media_type":"image/bmp","data":"QUJD"}}`), "messages.0.content.0.image.source.base64.media_type: Input should be"},
		{"picture data", content(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"?"}}`), "invalid base64 data"},
		{"budget", `"thinking":{"type":"enabled","budget_tokens":5000},"messages":[` + user + `]`, "`max_tokens` must be greater than `thinking.budget_tokens`."},
		{"small budget", `"thinking":{"type":"enabled","budget_tokens":5},"messages":[` + user + `]`, "Input should be greater than or equal to 1024"},
		{"display", `"thinking":{"type":"disabled","display":"omitted"},"messages":[` + user + `]`, "thinking.disabled.display: Extra inputs are not permitted"},
		{"high temperature", `"temperature":1.5,"messages":[` + user + `]`, "temperature: range: 0..1"},
		{"temperature", `"thinking":{"type":"adaptive"},"temperature":0.5,"messages":[` + user + `]`, "`temperature` may only be set to 1 when thinking is enabled."},
		{"forced tool", messagesTools + `,"thinking":{"type":"adaptive"},"tool_choice":{"type":"any"},"messages":[` + user + `]`, "Thinking may not be enabled when tool_choice forces tool use."},
		{"unknown tool", messagesTools + `,"tool_choice":{"type":"tool","name":"zz"},"messages":[` + user + `]`, "Tool 'zz' not found in provided tools"},
		{"tool name", `"tools":[{"name":"a b","input_schema":{"type":"object"}}],"messages":[` + user + `]`, "tools.0.custom.name: String should match pattern"},
		{"tool schema", `"tools":[{"name":"f"}],"messages":[` + user + `]`, "tools.0.custom.input_schema"},
	}
	p := dial(t, "messages", Options{})
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			body := `{"model":"m","max_tokens":4000` // a field that comes again replaces the one before it
			if c.fields != "" {
				body += "," + c.fields
			}
			checkRefused(t, p, body+"}", "invalid_request_error", c.want)
		})
	}
	p.header.Del("Anthropic-Version")
	checkRefused(t, p, ask("messages", "hi"), "invalid_request_error", "anthropic-version: header is required")
}
