package simulate

import (
	"strings"
	"testing"
)

const interactionTools = `"tools":[{"type":"function","name":"get_weather","parameters":{"type":"object","properties":{"city":{"type":"string"}},` +
	`"required":["city"]}},{"type":"function","name":"get_time","parameters":{"type":"object","properties":{"zone":{"type":"string"}}}}]`

func askInteraction(prompt string, more ...string) string {
	return `{` + strings.Join(append([]string{`"model":"gemini-3.8-flash","store":false,"input":[{"type":"user_input","content":[{"type":"text","text":` +
		quoted(prompt) + `}]}]`}, more...), ",") + `}`
}

func interactionKind(f frame) string {
	name := f.at("event_type").text()
	if f.data == "[DONE]" {
		return f.name
	}
	if name != f.name {
		return "event " + f.name + " holds " + name
	}
	for _, path := range []string{"step.type", "delta.type", "delta.content.type", "interaction.status", "status"} {
		if kind := f.at(path).text(); kind != "" {
			name += " " + kind
		}
	}
	return strings.TrimPrefix(name, "step.")
}

func TestInteractionStream(t *testing.T) {
	const thought = "start thought\ndelta thought_signature\nstop\n"
	const summary = "start thought\ndelta thought_summary text\ndelta thought_signature\nstop\n"
	const text = "start model_output\ndelta text\nstop\n"
	const call = "start function_call\ndelta arguments_delta\nstop\n"
	const completed = "interaction.completed completed\ndone"
	cases := []struct{ name, prompt, more, want string }{
		{"text", "hello there", "", thought + text + completed},
		{"think", "THINK about it", "", summary + text + completed},
		{"thinking asked for", "hi", `"generation_config":{"thinking_summaries":"auto","thinking_level":"low"}`, summary + text + completed},
		{"thinking hidden", "think", `"generation_config":{"thinking_summaries":"none"}`, thought + text + completed},
		{"redacted", "redacted", "", thought + text + completed},
		{"call", "call", interactionTools, thought + call + "interaction.completed requires_action\ndone"},
		{"any", "hi", interactionTools + `,"generation_config":{"tool_choice":"any"}`, thought + call + "interaction.completed requires_action\ndone"},
		{"allowed", "hi", interactionTools + `,"generation_config":{"tool_choice":{"allowed_tools":{"mode":"any","tools":["get_time"]}}}`, thought + call + "interaction.completed requires_action\ndone"},
		{"none", "call", interactionTools + `,"generation_config":{"tool_choice":"none"}`, thought + text + completed},
		{"parallel", "parallel", interactionTools, thought + call + call + "interaction.completed requires_action\ndone"},
		{"paint", "paint a boat", "", thought + "start model_output\ndelta text\ndelta image\nstop\n" + completed},
		{"think and paint", "think, paint", "", "start thought\ndelta thought_summary text\ndelta thought_summary image\ndelta thought_signature\nstop\nstart model_output\ndelta text\ndelta image\nstop\n" + completed},
		{"say", "say this", "", "start model_output\ndelta audio\nstop\n" + completed},
		{"speech asked for", "hi", `"response_format":{"type":"audio"}`, "start model_output\ndelta audio\nstop\n" + completed},
		{"filter", "filter", "", "interaction.completed failed\ndone"},
		{"block", "block", "", "interaction.completed failed\ndone"},
		{"empty", "empty", "", completed},
		{"length", "length", "", thought + text + "interaction.completed incomplete\ndone"},
		{"fail", "fail", "", thought + "start model_output\ndelta text\nerror\ndone"},
		{"cut", "cut clean", "", thought + "start model_output\ndelta text"},
		{"cut in a call", "call, cut clean", interactionTools, thought + "start function_call\ndelta arguments_delta"},
	}
	p := dial(t, "interactions", Options{})
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			more := []string{`"stream":true`}
			if c.more != "" {
				more = append(more, c.more)
			}
			body := strings.ReplaceAll(p.ok(askInteraction(c.prompt, more...)), "event: done\n", "")
			all := interactionFrames(t, body)
			if got, want := shape(all, interactionKind), "interaction.created in_progress\ninteraction.status_update in_progress\n"+c.want; got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// interactionFrames reads events, of which the last has no JSON.
func interactionFrames(t *testing.T, body string) []frame {
	t.Helper()
	var all []frame
	for text := range strings.SplitSeq(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		if text == "data: [DONE]" {
			all = append(all, frame{name: "done", data: "[DONE]"})
			continue
		}
		name, data, ok := strings.Cut(strings.TrimPrefix(text, "event: "), "\ndata: ")
		if !ok {
			t.Fatalf("not an event: %q", text)
		}
		all = append(all, frame{name, data, parse(t, data)})
	}
	return all
}

func TestInteractionProofs(t *testing.T) {
	p := dial(t, "interactions", Options{})
	first := p.whole(askInteraction("think, parallel for Oslo", interactionTools))
	thought, call, second := first.at("steps.0"), first.at("steps.1"), first.at("steps.2")
	if thought.at("type").text() != "thought" || call.at("arguments").json() != `{"city":"Oslo"}` || second.at("type").text() != "function_call" || first.at("status").text() != "requires_action" {
		t.Fatal(first.json())
	}
	signature := thought.at("signature").text()
	user := `{"type":"user_input","content":[{"type":"text","text":"hi"}]}`
	output := `{"type":"model_output","content":[{"type":"text","text":"x"}]}`
	result := func(call tree) string {
		return `{"type":"function_result","name":` + quoted(call.at("name").text()) + `,"call_id":` + quoted(call.at("id").text()) + `,"result":"rain"}`
	}
	input := func(steps ...string) string {
		return `{"model":"gemini-3.8-flash","input":[` + strings.Join(steps, ",") + `],` + interactionTools + `}`
	}
	kept := input(user, thought.json(), call.json(), second.json(), result(call), result(second))
	if text := p.whole(kept).at("steps.1.content.0.text").text(); !strings.Contains(text, "get_weather answered “rain”") {
		t.Errorf("the result is not in %q", text)
	}
	// Both protocols of the API take each other's signatures.
	p.to("/v1beta/models/gemini-3.8-flash:generateContent").ok(`{"contents":[{"role":"user","parts":[{"text":"x"}]},{"role":"model","parts":[{"functionCall":{"name":"get_weather",` +
		`"args":{"city":"Oslo"}},"thoughtSignature":` + quoted(signature) + `}]},{"role":"user","parts":[{"functionResponse":` +
		`{"name":"get_weather","response":{"result":"x"}}}]}]}`)
	placeholder := `{"type":"thought","signature":"` + placeholderSignature + `"}`
	unsigned := `{"type":"thought","summary":[{"type":"text","text":"x"}]}`
	anonymous := strings.NewReplacer(`"id":`+quoted(call.at("id").text())+`,`, "").Replace(call.json())
	for name, body := range map[string]string{
		"placeholder":          input(user, placeholder, unsigned, call.json(), result(call)),
		"a finished turn":      input(user, output, user),
		"results with content": input(user, placeholder, call.json(), strings.Replace(result(call), `"rain"`, `[{"type":"text","text":"rain"}]`, 1)),
		"without ids":          input(user, placeholder, anonymous, `{"type":"function_result","name":"get_weather","result":{"a":1}}`),
		"text":                 `{"model":"m","input":"hello"}`,
		"contents":             `{"model":"m","input":[{"type":"text","text":"hello"}]}`,
	} {
		t.Run(name, func(t *testing.T) { p.ok(body) })
	}
	cases := []struct{ name, body, want string }{
		{"no thought", input(user, call.json(), result(call)), "input[1]: a turn of the model must start with its signed thought"},
		{"unsigned thought first", input(user, unsigned, thought.json(), call.json(), result(call)), "input[1]: a turn of the model must start"},
		{"no thought in a later step", input(user, thought.json(), call.json(), result(call), second.json(), result(second)), "input[4]: a turn"},
		{"altered", strings.Replace(kept, signature, "AAAA"+signature[4:], 1), "Corrupted thought signature."},
		{"duplicate ids", input(user, thought.json(), call.json(), call.json(), result(call), result(call)), "duplicate function call id"},
		{"unknown field of a step", input(user, strings.Replace(output, `"content"`, `"signature":"x","content"`, 1), user), `Unknown parameter at 'input[1]': "signature".`},
		{"unknown field of a content", input(strings.Replace(user, `"text":"hi"`, `"text":"hi","cache_control":{}`, 1)), `Unknown parameter at 'input[0].content[0]': "cache_control".`},
		{"empty text", input(strings.Replace(user, `"hi"`, `""`, 1)), "a text content must not be empty"},
		{"unknown step", input(`{"type":"message"}`), `unknown type "message"`},
		{"no type", input(user, `{"content":[]}`), "Missing required field at 'input[1]': type."},
		{"no result", input(user, thought.json(), call.json(), second.json(), result(call)), "has no function result"},
		{"result after other input", input(user, placeholder, call.json(), user, result(call)), "has no function result"},
		{"result without a call", input(user, result(call)), "matches no function call"},
		{"result without a name", input(user, thought.json(), call.json(), `{"type":"function_result","result":"x"}`), "Missing required field at 'input[3]': name."},
		{"arguments", input(user, placeholder, `{"type":"function_call","name":"f","arguments":"{}"}`), "an object is expected"},
		{"no input", `{"model":"m"}`, "Missing required field: input."},
		{"no model", `{"input":"x"}`, "Missing required field: model."},
		{"unknown parameter", `{"model":"m","input":"x","messages":[]}`, `Unknown parameter: "messages".`},
		{"unknown parameter of the config", `{"model":"m","input":"x","generation_config":{"max_tokens":1}}`, `Unknown parameter at 'generation_config': "max_tokens".`},
		{"level", `{"model":"m","input":"x","generation_config":{"thinking_level":"max"}}`, "'generation_config.thinking_level'"},
		{"tool choice", `{"model":"m","input":"x","generation_config":{"tool_choice":"required"}}`, "'generation_config.tool_choice'"},
		{"mode of allowed tools", `{"model":"m","input":"x",` + interactionTools + `,"generation_config":{"tool_choice":{"allowed_tools":{"mode":"auto","tools":["get_time"]}}}}`, "allowed_tools.mode"},
		{"speech without a format", `{"model":"m-tts","input":"x"}`, "audio response_format"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { checkGoogle(t, p, c.body, 400, "INVALID_ARGUMENT", c.want) })
	}
	checkGoogle(t, p, `{"model":"gemini-embedding-2","input":"x"}`, 404, "NOT_FOUND", "is not found")
	checkGoogle(t, p, `{"model":"m","input":"x","previous_interaction_id":"y"}`, 404, "NOT_FOUND", "is not found")
}
