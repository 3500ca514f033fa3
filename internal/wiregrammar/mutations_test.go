package wiregrammar

import (
	"slices"
	"strings"
	"testing"
)

// edit changes the blocks of a right stream.
type edit func(*testing.T, []string) []string

func find(t *testing.T, blocks []string, part string) int {
	i := slices.IndexFunc(blocks, func(b string) bool { return strings.Contains(b, part) })
	if i < 0 {
		t.Fatalf("no block has %q", part)
	}
	return i
}

// drop leaves out the first block with a part.
func drop(part string) edit {
	return func(t *testing.T, blocks []string) []string {
		i := find(t, blocks, part)
		return slices.Delete(blocks, i, i+1)
	}
}

// twice repeats it.
func twice(part string) edit {
	return func(t *testing.T, blocks []string) []string {
		i := find(t, blocks, part)
		return slices.Insert(blocks, i, blocks[i])
	}
}

// move puts it before the first block with another part, put a new one there.
func move(part, before string) edit {
	return func(t *testing.T, blocks []string) []string {
		i := find(t, blocks, part)
		b := blocks[i]
		blocks = slices.Delete(blocks, i, i+1)
		return slices.Insert(blocks, find(t, blocks, before), b)
	}
}

func put(block, before string) edit {
	return func(t *testing.T, blocks []string) []string {
		return slices.Insert(blocks, find(t, blocks, before), block)
	}
}

func tail(block string) edit {
	return func(_ *testing.T, blocks []string) []string { return append(blocks, block) }
}

// swap replaces a text in the first block with a part.
func swap(part, was, becomes string) edit {
	return func(t *testing.T, blocks []string) []string {
		i := find(t, blocks, part)
		if !strings.Contains(blocks[i], was) {
			t.Fatalf("the block with %q has no %q", part, was)
		}
		blocks[i] = strings.ReplaceAll(blocks[i], was, becomes)
		return blocks
	}
}

// Each fault is found, and named, in a stream that is right but for it.
func TestMutations(t *testing.T) {
	const (
		text, tools, raw = "responses-text.sse", "responses-tools.sse", "responses-reasoning-raw.sse"
		summary, cut     = "responses-reasoning-summary.sse", "responses-incomplete.sse"
		failed, pair     = "responses-failed.sse", "responses-error-then-failed.sse"
		failedReasoning  = "responses-failed-reasoning.sse"
		failedCall       = "responses-failed-call.sse"
		refusal, custom  = "responses-refusal.sse", "responses-custom-call.sse"
		chat, chatTools  = "chatusage-text.sse", "chat-tools.sse"
		messages, gemini = "messages-thinking-tool.sse", "gemini-tool.sse"
	)
	right := examples(t, "right")
	right["chat-text.sse"] = right[chat]
	for _, m := range []struct {
		example string
		edit    edit
		fault   string
	}{
		// Responses: the frame.
		{text, drop(`"response.created"`), "the first event is not response.created"},
		{text, twice(`"response.created"`), "response.created: is repeated"},
		{text, drop(`"response.in_progress"`), "comes before response.in_progress"},
		{text, twice(`"response.in_progress"`), "response.in_progress: is repeated"},
		{text, move(`"response.output_item.added"`, `"response.in_progress"`), "comes before response.in_progress"},
		{custom, move(`"response.queued"`, "data: [DONE]"), "does not follow response.created"},
		{text, put("event: response.in_progress\n"+`data: {"type":"response.in_progress"}`, `"response.content_part.added"`), "comes after an item"},
		{text, drop(`[DONE]`), "ends without [DONE]"},
		{text, drop(`"response.completed"`), "[DONE] comes before a terminal event"},
		{text, twice(`"response.completed"`), "an event follows the terminal event"},
		{text, tail("data: [DONE]"), "an event follows [DONE]"},
		{text, swap("[DONE]", "data:", "event: done\ndata:"), "[DONE] has an event line"},
		{text, swap("output_text.delta", "event: response.output_text.delta", "event: delta"), `the event line says "delta"`},
		{text, swap("output_text.delta", "event: response.output_text.delta\n", ""), "no event line"},
		{text, swap("output_text.delta", "\n", "\r\n"), "a carriage return"},
		{text, swap("output_text.delta", "data:", "data: {}\ndata:"), "a second data line"},
		{text, swap("output_text.delta", "data:", "id: 4\ndata:"), "neither event, data nor comment"},
		{text, swap("output_text.delta", "data:", ": ping\ndata:"), "a comment inside an event"},
		{text, swap("output_text.delta", `"delta":"Hi"`, `"delta":"Hi","delta":""`), "no strict JSON"},
		{text, swap("output_text.delta", "response.output_text.delta", "acme:delta"), "no such event"},
		{text, swap("output_text.delta", "response.output_text.delta", "keepalive"), "no such event"},

		// Responses: items.
		{text, swap("output_item.added", `"output_index":0`, `"output_index":1`), ".output_index: is not the next, 0"},
		{tools, swap(`added","sequence_number":7`, `"output_index":1`, `"output_index":0`), ".output_index: is not the next, 1"},
		{tools, swap(`added","sequence_number":7`, `"output_index":1`, `"output_index":2`), ".output_index: is not the next, 1"},
		{text, drop(`output_item.added`), "no item is open"},
		{text, drop(`output_item.done`), "item 0 is still open"},
		{tools, drop(`output_item.done`), "item 0 is still open"},
		{text, move(`"response.completed"`, `output_item.done`), "item 0 is still open"},
		{text, swap("output_item.done", `"msg_a1"`, `"msg_a2"`), "is not that of output_item.added"},
		{text, swap("output_text.delta", `"msg_a1"`, `"msg_a2"`), ".item_id: is not that of the open item, msg_a1"},
		{text, swap("output_item.added", `"msg_a1"`, `"call_1"`), "an id that begins with msg_"},
		{tools, swap(`added","sequence_number":7`, `"fc_a2"`, `"fc_a1"`), "is that of an earlier item"},
		{tools, swap(`added","sequence_number":7`, `"call_2"`, `"call_1"`), ".call_id: is that of item 0"},
		{tools, swap(`added","sequence_number":7`, `"call_2"`, `"call 2"`), "1 to 64 characters"},
		{text, swap("output_item.added", `"in_progress"`, `"completed"`), `want "in_progress"`},
		{text, swap("output_item.added", `"content":[]`, `"content":[{"type":"output_text","text":"Hi","annotations":[]}]`), ".content: is an array, want []"},
		{tools, swap("output_item.added", `"arguments":""`, `"arguments":"{}"`), `.arguments: is "{}", want ""`},
		{tools, swap("output_item.done", `"get_weather"`, `"get_time"`), ".name: is not that of output_item.added"},
		{text, swap("output_item.done", `"type":"message"`, `"type":"reasoning"`), ".type: is not that of output_item.added"},
		{text, swap("output_item.done", `"completed"`, `"in_progress"`), "one of completed, incomplete"},

		// Responses: parts and texts.
		{text, drop("content_part.added"), "the part has not been added"},
		{text, drop("content_part.done"), "part 0 is still open"},
		{text, twice("content_part.added"), "part 0 is still open"},
		{text, move("content_part.done", "output_text.delta"), "the part is closed"},
		{text, move("output_text.done", "output_text.delta"), "a delta follows the .done of its text"},
		{text, move("output_text.delta", "output_item.added"), "no item is open"},
		{text, move("output_text.delta", "content_part.added"), "the part has not been added"},
		{text, drop("output_text.done"), "the .done of the text has not come"},
		{text, twice("output_text.done"), "is repeated"},
		{text, swap("output_text.done", "Hi there.", "Hi."), "is not the joined deltas"},
		{text, swap("content_part.done", "Hi there.", "Hi."), "is not the joined deltas"},
		{text, swap("output_item.done", "Hi there.", "Hi."), "is not what the part .done events showed"},
		{text, swap("content_part.added", `"annotations":[],`, ""), ".annotations: is missing"},
		{text, swap("output_item.done", `"annotations":[],`, ""), ".annotations: is missing"},
		{text, swap("output_text.delta", `"content_index":0`, `"content_index":1`), "the part has not been added"},
		{text, swap("content_part.added", `"text":""`, `"text":"Hi"`), "a part begins with a text"},
		{text, swap("output_text.delta", `"delta":"Hi"`, `"delta":null`), ".delta: is null, want a string"},
		{text, swap("output_text.delta", `output_text.delta`, `refusal.delta`), "does not belong to a part of type output_text"},
		{refusal, drop("response.refusal.delta"), "is not the joined deltas"},
		{refusal, drop("response.refusal.done"), "the .done of the text has not come"},
		{custom, swap("annotation.added", `"annotation_index":0`, `"annotation_index":1`), "is not the next, 0"},
		{custom, drop("annotation.added"), "has 1 annotations, 0 were added"},
		{raw, swap("reasoning_text.delta", "response.reasoning_text.delta", "response.reasoning_summary_text.delta"), "summary_index: is missing"},
		{raw, drop("response.reasoning_text.done"), "the .done of the text has not come"},
		{summary, drop("reasoning_summary_part.added"), "the part has not been added"},
		{summary, drop("reasoning_summary_part.done"), "part 0 is still open"},
		{summary, swap("output_item.done", "Weighing options", "Options"), ".summary: is not what the part .done events showed"},
		{summary, swap("output_item.done", `"mmsp1.b64payload"`, `null`), ".encrypted_content: is null"},

		// Responses: calls.
		{tools, drop("arguments.done"), "arguments.done has not come"},
		{tools, swap("arguments.done", "Oslo", "Rome"), "is not the joined deltas"},
		{tools, swap("arguments.done", `"name":"get_weather",`, ""), ".name: is missing"},
		{tools, swap("output_item.done", "Oslo", "Rome"), "are not those of arguments.done"},
		{tools, move("arguments.done", "arguments.delta"), "a delta follows the .done"},
		{tools, func(t *testing.T, b []string) []string { // no delta at all
			for i := range b {
				b[i] = strings.ReplaceAll(b[i], `{\"city\":\"Oslo\"}`, "")
			}
			return drop("arguments.delta")(t, drop("arguments.delta")(t, b))
		}, "no delta of the arguments has come"},
		{tools, func(t *testing.T, b []string) []string {
			for i := range b {
				b[i] = strings.ReplaceAll(b[i], `{\"city\":`, "")
			}
			return b
		}, "the arguments of a completed call are no JSON object"},
		{custom, drop("custom_tool_call_input.done"), "input.done has not come"},
		{custom, swap("custom_tool_call_input.delta", "custom_tool_call_input", "function_call_arguments"), "does not belong to a custom_tool_call"},

		// Responses: the terminal resource.
		{text, swap("response.completed", `"output":[{`, `"output":[],"was":[{`), ".output: lacks item 0, msg_a1"},
		{text, swap("response.completed", "Hi there.", "Hi."), "is not what output_item.done showed at output_index 0"},
		{tools, swap("response.completed", `"output":[{`, `"output":[{"id":"fc_a0","type":"function_call","status":"completed","call_id":"c","name":"n","arguments":"{}"},{`), "has 3 items, the stream had 2"},
		{text, swap("response.completed", `"status":"completed","incomplete`, `"status":"failed","incomplete`), `.status: is "failed"`},
		{text, swap("response.completed", `"resp_a1"`, `"resp_a2"`), ".id: is not what it was in response.created"},
		{text, swap("response.completed", `"total_tokens":13`, `"total_tokens":14`), "is not input_tokens + output_tokens"},
		{text, swap("response.completed", `"input_tokens_details":{"cached_tokens":0,"cache_write_tokens":0},`, ""), ".input_tokens_details: is missing"},
		{text, swap("response.completed", `"cached_tokens":0`, `"cached_tokens":10`), "is more than input_tokens"},
		{text, swap("response.completed", `"reasoning_tokens":0`, `"reasoning_tokens":5`), "is more than output_tokens"},
		{text, swap("response.completed", `"completed_at":1790000002`, `"completed_at":null`), ".completed_at: is not null exactly when"},
		{text, swap("response.completed", `"temperature":1`, `"temperature":null`), ".temperature: is null, want a number"},
		{text, swap("response.in_progress", `"metadata":{},`, ``), ".metadata: is missing"},
		{text, swap("response.created", `"output":[]`, `"output":[{"id":"rs_1","type":"reasoning","summary":[]}]`), ".output: is an array, want []"},
		{cut, swap("response.incomplete", `{"reason":"max_output_tokens"}`, "null"), ".incomplete_details: is not null exactly when"},
		{cut, swap("response.incomplete", `"max_output_tokens"}`, `"tired"}`), "one of max_output_tokens, content_filter"},
		{cut, func(t *testing.T, b []string) []string {
			for i := range b {
				b[i] = strings.ReplaceAll(b[i], `"status":"incomplete","role"`, `"status":"completed","role"`)
			}
			return b
		}, "the last item of an incomplete response is not incomplete"},
		{cut, swap("response.incomplete", "response.incomplete", "response.completed"), `.status: is "incomplete"`},
		{tools, func(t *testing.T, b []string) []string {
			return swap("response.completed", `"fc_a1","type":"function_call","status":"completed"`, `"fc_a1","type":"function_call","status":"incomplete"`)(t,
				swap("output_item.done", `"completed"`, `"incomplete"`)(t, b))
		}, "an item is incomplete and not the last"},
		{failed, swap("response.failed", `"error":{"code":"server_error",`, `"error":{`), ".error.code: is missing"},
		{failed, swap("response.failed", `,"type":"server_error"}`, `}`), ".error.type: is missing"},
		{failed, swap("response.failed", `"text":"Par"`, `"text":"Paris"`), ".content[0]: its text is not the joined deltas"},
		{failed, swap("response.failed", `"text":"Par"`, `"text":""`), ".content[0]: its text is not the joined deltas"},
		{failed, swap("response.failed", `"status":"incomplete"`, `"status":"completed"`), `.status: is "completed", want "incomplete"`},
		{failed, swap("response.failed", `"msg_a1"`, `"msg_a2"`), ".id: is not that of output_item.added"},
		{failed, swap("response.failed", `{"type":"output_text","text":"Par","annotations":[],"logprobs":[]}`, ""), ".content: has 0 parts, the stream had 1"},
		{failed, swap("response.failed", `"output":[{`, `"output":[],"was":[{`), ".output: lacks item 0, msg_a1"},
		{failed, drop("output_text.delta"), ".content[0]: its text is not the joined deltas"},
		{failedReasoning, swap("response.failed", "Weighing", "Weighing it"), ".summary[0]: its text is not the joined deltas"},
		{failedReasoning, swap("response.failed", `"status":"incomplete",`, ""), ".status: is missing"},
		{failedCall, swap("response.failed", `{\"city\":`, `{\"city\":1}`), ".arguments: are not the joined deltas"},
		{failedCall, swap("response.failed", `"call_1"`, `"call_2"`), ".call_id: is not that of output_item.added"},
		{failedCall, swap("response.failed", `"get_weather"`, `"get_time"`), ".name: is not that of output_item.added"},
		{pair, drop("response.failed"), "[DONE] comes before a terminal event"},
		{pair, move("response.failed", "event: error"), "an event follows the terminal event"},
		{pair, twice("event: error"), "an error event is not followed by response.failed"},
		{pair, swap("event: error", `"error":{"type":"server_error",`, `"error":{`), ".error.type: is missing"},

		// Chat.
		{chat, drop(`"role":"assistant"`), ".role: is missing"},
		{chat, swap(`"content":"Hi"`, `"content":"Hi"`, `"content":"Hi","role":"assistant"`), ".role: is repeated"},
		{chat, drop(`"finish_reason":"stop"`), "comes before the finish"},
		{chat, twice(`"finish_reason":"stop"`), "a choice follows the finish"},
		{chat, move(`"finish_reason":"stop"`, `"content":"Hi"`), "a choice follows the finish"},
		{chat, drop("[DONE]"), "ends without [DONE]"},
		{chat, tail("data: [DONE]"), "an event follows [DONE]"},
		{chat, swap(`"content":"Hi"`, `,"usage":null`, ""), ".usage: is missing; with include_usage"},
		{chat, swap(`"content":"Hi"`, `"usage":null`, `"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10}`), "stands in a chunk with choices"},
		{chat, move(`"choices":[]`, `"content":"Hi"`), "a chunk without choices comes before the finish"},
		{chat, twice(`"choices":[]`), "a chunk follows the usage chunk"},
		{chat, swap(`"choices":[]`, `"total_tokens":13`, `"total_tokens":12`), "is not prompt_tokens + completion_tokens"},
		{"chat-text.sse", func(_ *testing.T, b []string) []string { return b }, "a usage chunk that was not asked for"},
		{chat, swap(`"content":"Hi"`, `"chatcmpl-a1"`, `"chatcmpl-a2"`), ".id: is not what it was in the first chunk"},
		{chat, swap(`"content":"Hi"`, `"created":1790000000`, `"created":1790000001`), ".created: is not what it was"},
		{chat, swap(`"content":"Hi"`, `"model":"demo-1"`, `"model":"demo-2"`), ".model: is not what it was"},
		{chat, swap(`"content":"Hi"`, `data:`, "event: chunk\ndata:"), "an event line"},
		{chat, swap(`"stop"`, `"delta":{}`, `"delta":{"content":"!"}`), "is not empty in the chunk of the finish"},
		{chat, swap(`"stop"`, `"stop"`, `"end_turn"`), ".finish_reason: is \"end_turn\", want one of"},
		{chat, swap(`"stop"`, `"stop"`, `"tool_calls"`), "is tool_calls and there are none"},
		{chatTools, swap(`"index":0,"id":"call_1"`, `"id":"call_1",`, ""), ".id: is missing"},
		{chatTools, swap(`"index":0,"id":"call_1"`, `"type":"function",`, ""), ".type: is missing"},
		{chatTools, swap(`"index":0,"id":"call_1"`, `"name":"get_weather",`, ""), ".name: is missing"},
		{chatTools, swap(`"index":1,"id":"call_2"`, `"index":1`, `"index":2`), "leaves a gap: the next call is 1"},
		{chatTools, swap(`"index":1,"id":"call_2"`, `"call_2"`, `"call_1"`), ".id: is that of call 0"},
		{chatTools, swap(`Oslo`, `"function":{`, `"function":{"name":"get_weather",`), ".name: is repeated in a later fragment"},
		{chatTools, swap(`Oslo`, `"function":{`, `"id":"call_1","function":{`), ".id: is repeated in a later fragment"},
		{chatTools, swap(`Oslo`, `,"function":{"arguments":"{\"city\":\"Oslo\"}"}`, ``), ".function: is missing"},
		{chatTools, swap(`Oslo`, `Oslo\"}`, `Oslo`), "the joined arguments of call 0 are no JSON object"},
		{chatTools, move(`Oslo`, `Bergen`), "is that of an earlier call"},
		{"chat-error.sse", tail("data: [DONE]"), "an event follows [DONE]"},
		{"chat-error.sse", drop("[DONE]"), "ends without [DONE]"},
		{"chat-error.sse", twice(`"error"`), "a chunk follows the error"},
		{"chat-error.sse", swap(`"error"`, `"type":"server_error",`, ``), ".error.type: is missing"},

		// Messages.
		{messages, drop("message_start"), "the first event is not message_start"},
		{messages, move("ping", "message_start"), "the first event is not message_start"},
		{messages, twice("message_start"), "message_start: is repeated"},
		{messages, swap("message_start", `"usage":`, `"used":`), ".usage: is missing"},
		{messages, swap("message_start", `"stop_reason":null`, `"stop_reason":"end_turn"`), "is not null at the start"},
		{messages, swap(`block_start","index":1`, `"index":1`, `"index":2`), ".index: is not the next, 1"},
		{messages, swap(`block_start","index":1`, `"index":1`, `"index":0`), ".index: is not the next, 1"},
		{messages, drop(`block_stop","index":0`), "block 0 is still open"},
		{messages, move(`block_start","index":1`, `block_stop","index":0`), "block 0 is still open"},
		{messages, swap(`"Checking."`, `"index":1`, `"index":0`), ".index: is not that of the open block, 1"},
		{messages, move(`"Checking."`, `block_start","index":1`), "no block is open"},
		{messages, swap(`"Checking."`, `{"type":"text_delta","text"`, `{"type":"thinking_delta","thinking"`), "a thinking_delta does not fit a text block"},
		{messages, swap(`"Checking."`, `{"type":"text_delta","text"`, `{"type":"input_json_delta","partial_json"`), "does not fit a text block"},
		{messages, drop("signature_delta"), "ends without signature_delta"},
		{messages, move("signature_delta", "thinking_delta"), "a delta follows the signature_delta"},
		{messages, twice("signature_delta"), "a delta follows the signature_delta"},
		{messages, swap("signature_delta", `"c2ln"`, `""`), "a string that is not empty"},
		{messages, swap("Oslo", "{\\\"city", "\\\"city"), "the joined partial_json of block 2 is no JSON object"},
		{messages, swap(`"tool_use"`, `"toolu_01a"`, `"call:1"`), "characters of A-Z"},
		{messages, swap(`"tool_use"`, `"input":{}`, `"input":{"city":"Oslo"}`), "is not {} at the start"},
		{messages, drop("message_delta"), "comes before message_delta"},
		{messages, twice("message_delta"), "comes after message_delta"},
		{messages, move("message_delta", `block_start","index":2`), "comes after message_delta"},
		{messages, move("message_stop", `block_stop","index":2`), "block 2 is still open"},
		{messages, drop("message_stop"), "ends without message_stop"},
		{messages, tail("event: ping\n" + `data: {"type":"ping"}`), "an event follows message_stop"},
		{messages, tail("data: [DONE]"), "[DONE]; the protocol has none"},
		{messages, swap("message_delta", `"stop_reason":"tool_use"`, `"stop_reason":"stop"`), "want one of end_turn"},
		{messages, swap("message_delta", `"stop_reason":"tool_use"`, `"stop_reason":"end_turn"`), "is end_turn and there is a tool_use block"},
		{messages, swap("message_delta", `"stop_sequence":null`, `"stop_sequence":"\n"`), "is not null exactly when the stop_reason is stop_sequence"},
		{messages, swap("message_delta", `"output_tokens":40`, `"tokens":40`), ".output_tokens: is missing"},
		{messages, swap("Checking", "event: content_block_delta\n", ""), "no event line"},
		{messages, swap("Checking", "event: content_block_delta", "event: delta"), `the event line says "delta"`},
		{messages, swap("Checking", `content_block_delta`, "text"), "no such event"},
		{"messages-error.sse", tail("event: ping\n" + `data: {"type":"ping"}`), "an event follows the error"},
		{"messages-error.sse", swap("overloaded", `"overloaded_error"`, `"server_error"`), "want one of invalid_request_error"},
		{"messages-redacted-cut-call.sse", put("event: content_block_delta\n"+`data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"x"}}`, `block_stop","index":0`), "does not fit a redacted_thinking block"},
		{"messages-redacted-cut-call.sse", swap("message_delta", `"max_tokens"`, `"tool_use"`), "the joined partial_json of block 2 is no JSON object"},

		// generateContent.
		{gemini, tail("data: [DONE]"), "[DONE]; the protocol has none"},
		{gemini, swap("Considering", "data:", "event: message\ndata:"), "an event line"},
		{gemini, drop("STOP"), "ends without a finishReason"},
		{gemini, twice("STOP"), "a candidate follows the finish"},
		{gemini, move("STOP", "Considering"), "a candidate follows the finish"},
		{gemini, swap("STOP", "STOP", "stop"), "want one of STOP"},
		{gemini, swap("STOP", `[{"text":""}]`, `[]`), ".parts: is empty"},
		{gemini, swap("STOP", `[{"text":""}]`, `[{}]`), "an empty part"},
		{gemini, swap("STOP", `"content":{"role":"model","parts":[{"text":""}]},`, ``), ".content: is missing"},
		{gemini, swap("Considering", `"role":"model",`, ``), ".role: is missing"},
		{gemini, swap("Considering", `"candidates":[{"content":{"role":"model","parts":[{"text":"Considering weather.","thought":true}]},"index":0}],`, ``), ".candidates: is missing"},
		{gemini, swap("functionCall", `"args":{"city":"Oslo"}`, `"args":"{}"`), `.args: is "{}", want an object`},
		{gemini, swap("functionCall", `"c2ln"`, `"mmsp1.x"`), "is no base64"},
		{gemini, swap("functionCall", `"totalTokenCount":32`, `"totalTokenCount":33`), "is not the sum"},
		{gemini, swap("functionCall", `"thoughtsTokenCount":5,"totalTokenCount":32`, `"thoughtsTokenCount":4,"totalTokenCount":31`), "counts are cumulative"},
		{gemini, swap("functionCall", `"responseId":"resp-a1"`, `"responseId":"resp-a2"`), ".responseId: is not what it was"},
		{gemini, swap("functionCall", `"modelVersion":"demo-1"`, `"modelVersion":"demo-2"`), ".modelVersion: is not what it was"},
		{gemini, put(`data: {"promptFeedback":{"blockReason":"SAFETY"},"modelVersion":"demo-1","responseId":"resp-a1"}`, "STOP"), "the prompt is blocked and there is a candidate"},
		{gemini, func(_ *testing.T, b []string) []string { b[2] += "\n" + "data: {}"; return b }, "a second data line"},
		{"gemini-error.sse", twice("UNAVAILABLE"), "a chunk follows the error"},
		{"gemini-error.sse", move("UNAVAILABLE", "Considering"), "a chunk follows the error"},
		{"gemini-error.sse", swap("UNAVAILABLE", "503", "200"), "an HTTP status from 400 to 599"},
	} {
		err := check(m.example, join(m.edit(t, split(right[m.example]))))
		if err == nil || !strings.Contains(err.Error(), m.fault) {
			t.Errorf("%s: want %q, got: %.2000v", m.example, m.fault, err)
		}
	}
}

// What only the bytes of a stream or body show.
func TestFaultsOfBytes(t *testing.T) {
	right := examples(t, "right")
	for _, m := range []struct{ name, body, fault string }{
		{"responses-text", strings.TrimSuffix(right["responses-text.sse"], "\n"), "does not end with a blank line"},
		{"responses-text", strings.Replace(right["responses-text.sse"], `"sequence_number":5`, `"sequence_number":4`, 1), ".sequence_number: is not the next, 5"},
		{"responses-text", strings.Replace(right["responses-text.sse"], `"sequence_number":0`, `"sequence_number":1`, 1), ".sequence_number: is not the next, 0"},
		{"responses-text", strings.Replace(right["responses-text.sse"], "Hi", "H\xff", 1), "not UTF-8"},
		{"responses-text", strings.Replace(right["responses-text.sse"], "\n\n", "\n\n\n", 3), "an empty line too many"},
		{"messages-thinking-tool", strings.Replace(right["messages-thinking-tool.sse"], "\n\n", "\n\n\n", 3), "an empty line too many"},
		{"responses-text", "", "ends without a terminal event"},
		{"chat-text", "", "ends without a finish_reason"},
		{"messages-text", "", "ends without message_delta"},
		{"gemini-text", "", "ends without a finishReason"},
		{"array-text", "[]", "ends without a finishReason"},
		{"array-text", "{}", "no JSON array"},
		{"array-text", strings.TrimSuffix(right["array-two.json"], "]"), "no strict JSON"},
		{"response-error", right["geminierror-404.json"], "an error where a response is wanted"},
		{"embeddings-float", right["embeddings64-two.json"], "want an array"},
		{"embeddings64-base64", right["embeddings-float.json"], "want a string that is not empty"},
		{"embeddings-float", strings.Replace(right["embeddings-float.json"], `"index": 1`, `"index": 0`, 1), ".index: is not 1"},
		{"models-two", strings.Replace(right["models-two.json"], `"last_id": "b/c"`, `"last_id": "a"`, 1), "is not that of the last model"},
		{"models-two", strings.Replace(right["models-two.json"], "T13", " 13", 1), "a time of RFC 3339"},
		{"geminimodels-two", strings.Replace(right["geminimodels-two.json"], "models/b", "b", 1), "an id that begins with models/"},
		{"openaierror", `[]`, "want an object"},
		{"completion-tools", strings.Replace(right["completion-tools.json"], `"{}"`, `"{"`, 1), "are no JSON object"},
		{"message-tool", strings.Replace(right["message-tool.json"], `"c2ln"`, `""`, 1), ".signature: is"},
		{"message-tool", strings.Replace(right["message-tool.json"], `"stop_reason": "tool_use"`, `"stop_reason": null`, 1), "want one of end_turn"},
	} {
		if err := check(m.name, []byte(m.body)); err == nil || !strings.Contains(err.Error(), m.fault) {
			t.Errorf("%s: want %q, got: %.2000v", m.name, m.fault, err)
		}
	}
}

// Empty lines keep a stream of generateContent alive.
func TestEmptyLines(t *testing.T) {
	right := examples(t, "right")["gemini-tool.sse"]
	if err := GenerateContent([]byte("\n" + strings.ReplaceAll(right, "\n\n", "\n\n\n\n\n"))); err != nil {
		t.Error(err)
	}
}

// A body of nothing but faults has a report of bounded length.
func TestManyFaults(t *testing.T) {
	err := Chat([]byte(strings.Repeat("data: {}\n\n", 1000)), false)
	if err == nil || !strings.Contains(err.Error(), "more faults") || len(err.Error()) > 1<<16 {
		t.Error(len(err.Error()))
	}
}

// No bytes at all make a checker panic.
func FuzzCheckers(f *testing.F) {
	for _, body := range examples(f, "right") {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, checker := range checkers {
			_ = checker(body)
		}
	})
}
