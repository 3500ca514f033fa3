package simulate

import (
	"strings"
	"testing"
	"time"
)

var testTime = time.Date(2026, 4, 1, 12, 0, 0, 0, time.UTC)

const responsesTools = `"tools":[{"type":"function","name":"get_weather","parameters":{"type":"object","properties":` +
	`{"city":{"type":"string"}},"required":["city"]}},{"type":"function","name":"get_time","parameters":{"type":"object",` +
	`"properties":{"zone":{"type":"string"}}}}]`

// responsesKind names an event without the prefix that most of them share, with the type of an item.
func responsesKind(f frame) string {
	return strings.TrimSpace(strings.TrimPrefix(f.name, "response.") + " " + f.at("item.type").text())
}

func TestResponsesStream(t *testing.T) {
	const message = `
		output_item.added message
		content_part.added
		output_text.delta
		output_text.done
		content_part.done
		output_item.done message`
	const oneCall = `
		output_item.added function_call
		function_call_arguments.delta
		function_call_arguments.done
		output_item.done function_call`
	const summary = `
		reasoning_summary_part.added
		reasoning_summary_text.delta
		reasoning_summary_text.done
		reasoning_summary_part.done`
	cases := []struct {
		name, prompt, more string
		options            Options
		want               string
	}{
		{"text", "hello there", "", Options{}, message + "\ncompleted"},
		{"think, no summary", "think", "", Options{}, "output_item.added reasoning\noutput_item.done reasoning" + message + "\ncompleted"},
		{
			"think, summary", "think", `"reasoning":{"summary":"concise"}`,
			Options{},
			"output_item.added reasoning" + summary + summary + "\noutput_item.done reasoning" + message + "\ncompleted",
		},
		{"think, raw", "think", "", Options{RawReasoning: true}, `output_item.added reasoning
			content_part.added
			reasoning_text.delta
			reasoning_text.done
			content_part.done
			output_item.done reasoning` + message + "\ncompleted"},
		{"not to think", "hi", `"reasoning":{"effort":"none"}`, Options{}, message + "\ncompleted"},
		{"call", "call", responsesTools, Options{}, oneCall + "\ncompleted"},
		{"required", "hi", responsesTools + `,"tool_choice":{"type":"function","name":"get_time"}`, Options{}, oneCall + "\ncompleted"},
		{"parallel", "parallel", responsesTools, Options{}, oneCall + oneCall + "\ncompleted"},
		{"interleaved", "parallel interleaved", responsesTools, Options{}, `output_item.added function_call
			function_call_arguments.delta
			function_call_arguments.done
			output_item.done function_call
			function_call_arguments.done
			output_item.done function_call
			completed`},
		{"refuse", "refuse", "", Options{}, `output_item.added message
			content_part.added
			refusal.delta
			refusal.done
			content_part.done
			output_item.done message
			completed`},
		{"filter", "filter", "", Options{}, "incomplete"},
		{"empty", "empty", "", Options{}, "completed"},
		{"length", "length", "", Options{}, message + "\nincomplete"},
		{"token limit", "hi", `"max_output_tokens":2`, Options{}, message + "\nincomplete"},
		{"fail", "fail", "", Options{}, "output_item.added message\ncontent_part.added\noutput_text.delta\nerror\nfailed"},
		{"fail in a call", "call, then fail", responsesTools, Options{}, "output_item.added function_call\nfunction_call_arguments.delta\nerror\nfailed"},
		{"cut", "cut, clean", "", Options{}, "output_item.added message\ncontent_part.added\noutput_text.delta"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			more := []string{`"stream":true`}
			if c.more != "" {
				more = append(more, c.more)
			}
			all := frames(t, dial(t, "responses", c.options).ok(ask("responses", c.prompt, more...)))
			if got, want := shape(all, responsesKind), trim("created\nin_progress\n"+c.want); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			for i, f := range all {
				if f.at("sequence_number").json() != itoa(i) {
					t.Errorf("event %d has number %s", i, f.at("sequence_number").json())
				}
			}
			checkItems(t, all)
		})
	}
}

func itoa(i int) string { return tree{i}.json() }

// checkItems makes sure that what was streamed is what the finished items and the response hold.
func checkItems(t *testing.T, all []frame) {
	t.Helper()
	for _, f := range all {
		item := f.at("item")
		if f.name != "response.output_item.done" {
			continue
		}
		at := f.at("output_index").json()
		var text string
		for _, d := range all {
			if strings.HasSuffix(d.name, ".delta") && d.at("output_index").json() == at {
				text += d.at("delta").text()
				if d.at("item_id").text() != item.at("id").text() {
					t.Errorf("delta of item %s, done as %s", d.at("item_id").text(), item.at("id").text())
				}
			}
		}
		want := item.at("arguments").text()
		for _, list := range []string{"content", "summary"} {
			for _, part := range item.at(list).list() {
				want += tree{part}.at("text").text() + tree{part}.at("refusal").text()
			}
		}
		if text != want {
			t.Errorf("streamed %q, done %q", text, want)
		}
		if last := all[len(all)-1]; last.name == "response.completed" && last.at("response.output."+at).json() != item.json() {
			t.Errorf("the response holds %s, the event %s", last.at("response.output."+at).json(), item.json())
		}
	}
}

func TestResponsesWhole(t *testing.T) {
	p := dial(t, "responses", Options{})
	body := p.whole(ask("responses", "think and call for Oslo", responsesTools, `"reasoning":{"effort":"high","summary":"auto"}`,
		`"include":["reasoning.encrypted_content"]`))
	reasoning, call := body.at("output.0"), body.at("output.1")
	if reasoning.at("type").text() != "reasoning" || len(reasoning.at("summary").list()) != 2 || reasoning.at("encrypted_content").text() == "" {
		t.Errorf("reasoning %s", reasoning.json())
	}
	if call.at("arguments").text() != `{"city":"Oslo"}` || call.at("status").text() != "completed" || body.at("status").text() != "completed" {
		t.Errorf("call %s", call.json())
	}
	if body.at("usage.output_tokens_details.reasoning_tokens").number() < 10 || body.at("reasoning.effort").text() != "high" {
		t.Errorf("response %s", body.json())
	}

	history := `{"model":"m","input":[{"role":"user","content":"weather?"},` + reasoning.json() + "," + call.json() +
		`,{"type":"function_call_output","call_id":"` + call.at("call_id").text() + `","output":"rain"}]}`
	if text := answer("responses", p.whole(history)); !strings.Contains(text, "get_weather answered “rain”") {
		t.Errorf("the output is not in %q", text)
	}
	proof := reasoning.at("encrypted_content").text()
	altered := strings.Replace(history, proof, "AAAA"+proof[4:], 1)
	checkRefused(t, p, altered, "invalid_request_error", "could not be verified")
	checkRefused(t, p, strings.Replace(history, proof, proof[:len(proof)/2], 1), "invalid_request_error", "could not be verified")
	checkRefused(t, dial(t, "responses", Options{}), history, "invalid_request_error", "could not be verified")

	incomplete := p.whole(ask("responses", "length"))
	if incomplete.at("incomplete_details.reason").text() != "max_output_tokens" || incomplete.at("output.0.status").text() != "incomplete" {
		t.Errorf("incomplete %s", incomplete.json())
	}
}

func TestResponsesEarlyProofIsNoProof(t *testing.T) {
	all := frames(t, dial(t, "responses", Options{}).ok(ask("responses", "think", `"stream":true`, `"include":["reasoning.encrypted_content"]`)))
	early := joined(all, "response.output_item.added", "item.encrypted_content")
	final := joined(all, "response.output_item.done", "item.encrypted_content")
	if early == "" || early == final || !strings.HasPrefix(final, early) {
		t.Errorf("announced %q, done %q", early, final)
	}
}

func TestResponsesChecks(t *testing.T) {
	const user = `{"role":"user","content":"hi"}`
	const call = `{"type":"function_call","call_id":"call_1","name":"f","arguments":"{}"}`
	const output = `{"type":"function_call_output","call_id":"call_1","output":"x"}`
	cases := []struct {
		name, fields string
		options      Options
		want         string
	}{
		{"no model", `"model":null,"input":"x"`, Options{}, "Missing required parameter: 'model'."},
		{"no input", `"model":"m"`, Options{}, "Missing required parameter: 'input'."},
		{"unknown parameter", `"input":"x","max_tokens":1`, Options{}, "Unknown parameter: 'max_tokens'."},
		{"input type", `"input":7`, Options{}, "Invalid type for 'input': expected an array, but got a number instead."},
		{"limit type", `"input":"x","max_output_tokens":"1"`, Options{}, "Invalid type for 'max_output_tokens': expected an integer, but got a string instead."},
		{"limit", `"input":"x","max_output_tokens":15`, Options{Strict: true}, "Expected a value >= 16, but got 15 instead."},
		{"previous response", `"input":"x","previous_response_id":"resp_1"`, Options{}, "Previous response with id 'resp_1' not found."},
		{"call without output", `"input":[` + user + `,` + call + `]`, Options{}, "No tool output found for function call call_1."},
		{"output too late", `"input":[` + user + `,` + call + `,` + user + `,` + output + `]`, Options{Strict: true}, "No tool output found for function call call_1."},
		{"output without call", `"input":[` + user + `,` + output + `]`, Options{}, "No tool call found for function call output with call_id call_1."},
		{"output twice", `"input":[` + call + `,` + output + `,` + output + `]`, Options{}, "No tool call found for function call output with call_id call_1."},
		{"no call id", `"input":[{"type":"function_call_output","output":"x"}]`, Options{}, "Missing required parameter: 'input[0].call_id'."},
		{"long call id", `"input":[{"type":"function_call","call_id":"` + strings.Repeat("x", 65) + `","name":"f","arguments":""}]`, Options{}, "string too long"},
		{"no summary", `"input":[` + user + `,{"type":"reasoning","content":[]}]`, Options{}, "Missing required parameter: 'input[1].summary'."},
		{"foreign proof", `"input":[` + user + `,{"type":"reasoning","summary":[],"encrypted_content":"Zm9yZWlnbg=="}]`, Options{}, "could not be verified"},
		{"unknown item", `"input":[{"type":"tool_result"}]`, Options{}, "Invalid value: 'tool_result'. Supported values are"},
		{"no type", `"input":[{"content":"x"}]`, Options{}, "Missing required parameter: 'input[0].type'."},
		{"role", `"input":[{"role":"tool","content":"x"}]`, Options{}, "Invalid value: 'tool'."},
		{"part of the other side", `"input":[{"role":"assistant","content":[{"type":"input_text","text":"x"}]}]`, Options{}, "Invalid value: 'input_text'. Supported values are: 'output_text', 'refusal'."},
		{"part", `"input":[{"role":"user","content":[{"type":"text","text":"x"}]}]`, Options{}, "Invalid value: 'text'."},
		{"picture", `"input":[{"role":"user","content":[{"type":"input_image","image_url":"data:x"}]}]`, Options{}, "Expected a valid URL"},
		{"tool name", `"input":"x","tools":[{"type":"function","name":"a b"}]`, Options{}, "string does not match pattern"},
		{"format", `"input":"x","text":{"format":{"type":"xml"}}`, Options{}, "Invalid value: 'xml'."},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			body := "{" + c.fields + "}"
			if !strings.Contains(c.fields, `"model"`) {
				body = `{"model":"m",` + c.fields + "}"
			}
			checkRefused(t, dial(t, "responses", c.options), body, "invalid_request_error", c.want)
		})
	}
	dial(t, "responses", Options{}).ok(`{"model":"m","input":[` + user + `,` + call + `,` + user + `,` + output + `]}`)
	dial(t, "responses", Options{RawReasoning: true}).ok(`{"model":"m","input":[` + user + `,{"type":"reasoning","content":[]}]}`)
}
