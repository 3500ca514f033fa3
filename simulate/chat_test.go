package simulate

import (
	"encoding/json"
	"strings"
	"testing"
)

const chatTools = `"tools":[{"type":"function","function":{"name":"get_weather","parameters":{"type":"object","properties":{` +
	`"city":{"type":"string"},"days":{"type":"integer"}},"required":["city","days"]}}},` +
	`{"type":"function","function":{"name":"get_time","parameters":{"type":"object","properties":{"zone":{"type":"string"}}}}}]`

// chatKind names a chunk by what it carries.
func chatKind(f frame) string {
	delta := f.at("choices.0.delta")
	switch finish := f.at("choices.0.finish_reason").text(); {
	case f.data == "[DONE]":
		return "[DONE]"
	case f.at("error").value != nil:
		return "error"
	case finish != "":
		return "finish " + finish
	case len(f.at("choices").list()) == 0 && f.at("usage").value != nil:
		return "usage"
	case delta.at("role").text() == "assistant":
		return "role"
	case delta.at("tool_calls").value != nil:
		call := delta.at("tool_calls.0")
		if name := call.at("function.name").text(); name != "" {
			return "call " + call.at("index").json() + " " + name
		}
		return "arguments " + call.at("index").json()
	default:
		for _, field := range []string{"content", "reasoning_content", "reasoning", "refusal"} {
			if delta.at(field).text() != "" {
				return field
			}
		}
	}
	return "?"
}

func TestChatStream(t *testing.T) {
	cases := []struct {
		name, prompt, more string
		options            Options
		want               string
	}{
		{"text", "hello there", "", Options{}, "role\ncontent\nfinish stop\n[DONE]"},
		{"usage", "hello there", `"stream_options":{"include_usage":true}`, Options{}, "role\ncontent\nfinish stop\nusage\n[DONE]"},
		{"think", "Think first", "", Options{}, "role\nreasoning_content\ncontent\nfinish stop\n[DONE]"},
		{"usage unasked", "hello there", "", Options{AlwaysUsage: true}, "role\ncontent\nfinish stop\nusage\n[DONE]"},
		{"think in another field", "think", "", Options{ReasoningField: "reasoning"}, "role\nreasoning\ncontent\nfinish stop\n[DONE]"},
		{"thinking asked for", "hello", `"reasoning_effort":"high"`, Options{}, "role\nreasoning_content\ncontent\nfinish stop\n[DONE]"},
		{"thinking hidden", "redacted", "", Options{}, "role\ncontent\nfinish stop\n[DONE]"},
		{"call", "call for weather", chatTools, Options{}, "role\ncall 0 get_weather\narguments 0\nfinish tool_calls\n[DONE]"},
		{"call picks the named tool", "call for time", chatTools, Options{}, "role\ncall 0 get_time\narguments 0\nfinish tool_calls\n[DONE]"},
		{"call without tools", "call", "", Options{}, "role\ncontent\nfinish stop\n[DONE]"},
		{"call not allowed", "call", chatTools + `,"tool_choice":"none"`, Options{}, "role\ncontent\nfinish stop\n[DONE]"},
		{"tool required", "hi", chatTools + `,"tool_choice":"required"`, Options{}, "role\ncall 0 get_weather\narguments 0\nfinish tool_calls\n[DONE]"},
		{
			"tool named", "hi", chatTools + `,"tool_choice":{"type":"function","function":{"name":"get_time"}}`,
			Options{},
			"role\ncall 0 get_time\narguments 0\nfinish tool_calls\n[DONE]",
		},
		{
			"tools allowed", "call weather", chatTools + `,"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto",` +
				`"tools":[{"type":"function","function":{"name":"get_time"}}]}}`,
			Options{},
			"role\ncall 0 get_time\narguments 0\nfinish tool_calls\n[DONE]",
		},
		{
			"think and call", "think, then call", chatTools,
			Options{},
			"role\nreasoning_content\ncall 0 get_weather\narguments 0\nfinish tool_calls\n[DONE]",
		},
		{
			"parallel", "parallel weather", chatTools,
			Options{},
			"role\ncall 0 get_weather\narguments 0\ncall 1 get_time\narguments 1\nfinish tool_calls\n[DONE]",
		},
		{"one call only", "parallel", chatTools + `,"parallel_tool_calls":false`, Options{}, "role\ncall 0 get_weather\narguments 0\nfinish tool_calls\n[DONE]"},
		{"refuse", "refuse", "", Options{}, "role\nrefusal\nfinish stop\n[DONE]"},
		{"filter", "filter", "", Options{}, "role\nfinish content_filter\n[DONE]"},
		{"empty", "empty", "", Options{}, "role\nfinish stop\n[DONE]"},
		{"length", "length of this", "", Options{}, "role\ncontent\nfinish length\n[DONE]"},
		{"token limit", "hello", `"max_completion_tokens":3`, Options{}, "role\ncontent\nfinish length\n[DONE]"},
		{"token limit in thinking", "think", `"max_tokens":2`, Options{}, "role\nreasoning_content\nfinish length\n[DONE]"},
		{"token limit in a call", "call", chatTools + `,"max_tokens":2`, Options{}, "role\ncall 0 get_weather\narguments 0\nfinish length\n[DONE]"},
		{"fail", "fail soon", "", Options{}, "role\ncontent\nerror"},
		{"cut", "cut cleanly: clean", "", Options{}, "role\ncontent"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			more := []string{`"stream":true`}
			if c.more != "" {
				more = append(more, c.more)
			}
			all := frames(t, dial(t, "chat", c.options).ok(ask("chat", c.prompt, more...)))
			if got := shape(all, chatKind); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			for _, f := range all {
				if !strings.HasPrefix(c.name, "usage") && strings.Contains(f.data, `"usage"`) {
					t.Errorf("usage was not asked for: %s", f.data)
				}
			}
		})
	}
}

func TestChatInterleavedArguments(t *testing.T) {
	all := frames(t, dial(t, "chat", Options{}).ok(ask("chat", "parallel interleaved calls for Oslo and Bergen, 3 days",
		`"stream":true`, chatTools)))
	got := map[string]string{}
	order := ""
	for _, f := range all {
		call := f.at("choices.0.delta.tool_calls.0")
		got[call.at("index").json()] += call.at("function.arguments").text()
		if call.at("function.arguments").text() != "" {
			order += call.at("index").json()
		}
	}
	if !strings.HasPrefix(order, "0101") {
		t.Errorf("order %s", order)
	}
	if got["0"] != `{"city":"Oslo","days":3}` || got["1"] != `{"zone":"Bergen"}` {
		t.Errorf("arguments %v", got)
	}
}

func TestChatWhole(t *testing.T) {
	p := dial(t, "chat", Options{})
	body := p.whole(ask("chat", "think and call for Oslo, 9007199254740993 days", chatTools))
	message := body.at("choices.0.message")
	arguments := message.at("tool_calls.0.function.arguments").text()
	if arguments != `{"city":"Oslo","days":9007199254740993}` || message.at("content").value != nil ||
		message.at("reasoning_content").text() == "" || body.at("choices.0.finish_reason").text() != "tool_calls" {
		t.Errorf("message %s", message.json())
	}
	usage := body.at("usage")
	if thoughts := usage.at("completion_tokens_details.reasoning_tokens").number(); thoughts != tokens(message.at("reasoning_content").text()) {
		t.Errorf("usage %s", usage.json())
	}

	id := message.at("tool_calls.0.id").text()
	next := p.whole(`{"model":"m","messages":[{"role":"user","content":"weather?"},{"role":"assistant","tool_calls":[{"id":"` + id +
		`","type":"function","function":{"name":"get_weather","arguments":"{}"}}]},{"role":"tool","tool_call_id":"` + id +
		`","content":"call error 500: rain"}]}`)
	if text := answer("chat", next); !strings.Contains(text, "get_weather answered “call error 500: rain”") {
		t.Errorf("the result is not in %q", text)
	}
	stops := p.whole(ask("chat", "hello", `"stop":["wrote"]`))
	if text := answer("chat", stops); text != "You " || stops.at("choices.0.finish_reason").text() != "stop" {
		t.Errorf("stopped at %q", text)
	}
	schema := answer("chat", p.whole(ask("chat", "Make Oslo", `"response_format":{"type":"json_schema","json_schema":{"schema":`+
		`{"type":"object","properties":{"place":{"type":"string"}},"required":["place"]}}}`)))
	if schema != `{"place":"Oslo"}` {
		t.Errorf("structured answer %s", schema)
	}
}

func TestChatChecks(t *testing.T) {
	const user = `{"role":"user","content":"hi"}`
	call := func(id string) string {
		return `{"role":"assistant","tool_calls":[{"id":"` + id + `","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	}
	const result = `{"role":"tool","tool_call_id":"call_1","content":"x"}`
	cases := []struct{ name, fields, want string }{
		{"no model", `"model":"","messages":[` + user + `]`, "you must provide a model parameter"},
		{"no messages", `"model":"m"`, "Missing required parameter: 'messages'."},
		{"empty messages", `"messages":[]`, "Expected an array with minimum length 1"},
		{"role", `"messages":[{"role":"robot","content":"x"}]`, "Invalid value: 'robot'. Supported values are"},
		{"no role", `"messages":[{"content":"x"}]`, "Missing required parameter: 'messages[0].role'."},
		{"content type", `"messages":[{"role":"user","content":7}]`, "Invalid type for 'messages[0].content': expected one of a string or array of objects, but got an integer instead."},
		{"content null", `"messages":[{"role":"user","content":null}]`, "Invalid value for 'content': expected a string, got null."},
		{"role type", `"messages":[{"role":7}]`, "Invalid type for 'messages[0].role': expected a string, but got a number instead."},
		{"part type", `"messages":[{"role":"user","content":[{"type":"input_text","text":"x"}]}]`, "Invalid value: 'input_text'."},
		{"picture by the model", `"messages":[{"role":"assistant","content":[{"type":"image_url","image_url":{"url":"https://a/b"}}]}]`, "Invalid value: 'image_url'."},
		{"picture", `"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png,x"}}]}]`, "Expected an http(s) URL or a base64-encoded data URL"},
		{"result without call", `"messages":[` + user + `,` + result + `]`, "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'."},
		{"result twice", `"messages":[` + user + `,` + call("call_1") + `,` + result + `,` + result + `]`, "Duplicate value for 'tool_call_id' of 'call_1', in messages[2] and messages[3]."},
		{"result too late", `"messages":[` + user + `,` + call("call_1") + `,` + user + `,` + result + `]`, "did not have response messages: call_1"},
		{"call without result", `"messages":[` + user + `,` + call("call_2") + `]`, "did not have response messages: call_2"},
		{"tool type", `"messages":[` + user + `],"tools":[{"type":"x"}]`, "Invalid value: 'x'. Supported values are: 'function'."},
		{"tool name", `"messages":[` + user + `],"tools":[{"type":"function","function":{"name":"a b"}}]`, "string does not match pattern"},
		{"tool choice", `"messages":[` + user + `],"tool_choice":"any"`, "Invalid value: 'any'."},
		{"unknown tool chosen", `"messages":[` + user + `],` + chatTools + `,"tool_choice":{"type":"function","function":{"name":"zz"}}`, "Tool choice 'zz' not found in 'tools' parameter."},
		{"stream options", `"messages":[` + user + `],"stream_options":{"include_usage":true}`, "only allowed when 'stream' is enabled"},
		{"token limit", `"messages":[` + user + `],"max_tokens":0`, "integer below minimum value"},
	}
	p := dial(t, "chat", Options{})
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			body := "{" + c.fields + "}"
			if !strings.Contains(c.fields, `"model"`) {
				body = `{"model":"m",` + c.fields + "}"
			}
			checkRefused(t, p, body, "invalid_request_error", c.want)
		})
	}
}

// checkRefused makes sure that a request gets a 400 of a kind with a message.
func checkRefused(t *testing.T, p *peer, body, kind, message string) {
	t.Helper()
	response, text, err := p.post(body)
	if err != nil || response.StatusCode != 400 {
		t.Fatalf("status %d, %v: %s\nto %s", response.StatusCode, err, text, body)
	}
	problem := parse(t, text).at("error")
	if !strings.Contains(problem.at("message").text(), message) || problem.at("type").text() != kind {
		t.Errorf("got %s\nwant %q", problem.json(), message)
	}
}

func TestChatStrictReasoning(t *testing.T) {
	const begin = `{"model":"m","messages":[{"role":"user","content":"x"},`
	turn := func(id, reasoning string) string {
		return `{"role":"assistant","tool_calls":[{"id":"` + id + `","type":"function","function":{"name":"f","arguments":"{}"}}]` +
			reasoning + `},{"role":"tool","tool_call_id":"` + id + `","content":"x"}`
	}
	p, loose := dial(t, "chat", Options{Strict: true}), dial(t, "chat", Options{})
	issued := func(prompt string) string {
		return p.whole(ask("chat", prompt, chatTools)).at("choices.0.message.tool_calls.0.id").text()
	}
	thought, plain := issued("think and call"), issued("call")
	cases := []struct {
		name, turns string
		refused     bool
	}{
		{"issued with thinking", turn(thought, ""), true},
		{"given back", turn(thought, `,"reasoning_content":"x"`), false},
		{"given back empty", turn(thought, `,"reasoning_content":""`), false},
		{"given back in another field", turn(thought, `,"reasoning":"x"`), true},
		{"issued without", turn(plain, ""), false},
		{"of another provider", turn("call_other", ""), false},
		{"had it before", turn(thought, `,"reasoning_content":"x"`) + "," + turn("call_other", ""), true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			body := begin + c.turns + "]}"
			if c.refused {
				checkRefused(t, p, body, "invalid_request_error", "must be passed back to the API")
			} else {
				p.ok(body)
			}
			loose.ok(body)
		})
	}
}

func TestArgumentsFollowTheSchema(t *testing.T) {
	cases := []struct{ prompt, schema, want string }{
		{"go to Oslo", `{"properties":{"a":{"type":"string"}}}`, `{"a":"Oslo"}`},
		{`call "north pole" now`, `{"properties":{"a":{"type":"string"}}}`, `{"a":"north pole"}`},
		{"a=12 b=false c=deep", `{"properties":{"a":{"type":"integer"},"b":{"type":"boolean"},"c":{"type":"string"}}}`, `{"a":12,"b":false,"c":"deep"}`},
		{"x 18446744073709551615", `{"properties":{"n":{"type":"number"}}}`, `{"n":18446744073709551615}`},
		{"x 99", `{"properties":{"n":{"type":"integer","maximum":10},"m":{"type":"integer","minimum":100}},"required":["n","m"]}`, `{"n":10,"m":100}`},
		{"in celsius", `{"properties":{"u":{"enum":["kelvin","celsius"]}}}`, `{"u":"celsius"}`},
		{"x", `{"properties":{"u":{"enum":["kelvin","celsius"]},"v":{"const":null}},"required":["v","u"]}`, `{"v":null,"u":"kelvin"}`},
		{"Some Words Here", `{"properties":{"l":{"type":"array","items":{"type":"string"},"minItems":2}}}`, `{"l":["Words","Here"]}`},
		{"to Oslo", `{"properties":{"p":{"$ref":"#/$defs/P"}},"$defs":{"P":{"properties":{"q":{"type":["null","string"]}}}}}`, `{"p":{"q":"Oslo"}}`},
		{"to Oslo", `{"properties":{"p":{"anyOf":[{"type":"null"},{"type":"string"}]}}}`, `{"p":"Oslo"}`},
		{"a b", `{"properties":{"name":{"type":"string"}}}`, `{"name":"name"}`},
		{"abcdef", `{"properties":{"s":{"type":"string","maxLength":3}}}`, `{"s":"abc"}`},
		{"x", `{"type":"object"}`, `{}`},
		{"x", `7`, `{}`},
	}
	for _, c := range cases {
		got := newFiller(c.prompt, nil, testTime).object(parseSchema(json.RawMessage(c.schema)))
		if got != c.want {
			t.Errorf("%q with %s: got %s, want %s", c.prompt, c.schema, got, c.want)
		}
	}
	deep := parseSchema(json.RawMessage(`{"$ref":"#/$defs/a","$defs":{"a":{"properties":{"x":{"$ref":"#/$defs/a"},"y":{"$ref":"#/$defs/a"}}}}}`))
	if text := newFiller("", nil, testTime).object(deep); len(text) > 100_000 || !json.Valid([]byte(text)) {
		t.Errorf("a schema within itself gave %d bytes", len(text))
	}
}
