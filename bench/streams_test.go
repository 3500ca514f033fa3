package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
)

const deltas = 500 // text events of a stream

// tokens is a text as models stream it: short pieces, some with escapes, some beyond ASCII.
var tokens = []string{"The", " quick", " brown", " fox", " said", " \"", "na\u00efve", "\",", "\n\n", " \u4f60\u597d", " and", " jumped", " over", " the lazy", " dog", "."}

func token(i int) []byte {
	quoted, err := json.Marshal(tokens[i%len(tokens)])
	if err != nil {
		panic(err)
	}
	return quoted
}

// chatStream is an answer as endpoints of Chat Completions stream it: chunks that differ in their text only. OpenAI pads
// them besides, each with another number of letters, to hide the length of the text.
func chatStream(padded bool) []byte {
	var b bytes.Buffer
	const head = `data: {"id":"chatcmpl-0123456789abcdef01234567","object":"chat.completion.chunk","created":1790000000,"model":"gpt-5.6-luna",` +
		`"service_tier":"default","system_fingerprint":"fp_44709d6fcb","choices":[`
	random := rand.New(rand.NewPCG(1, 2))
	chunk := func(delta, finish string) {
		padding := ""
		if padded {
			padding = fmt.Sprintf(`,"obfuscation":"%s"`, "kQ7wZxv2LmTb9R"[:1+random.IntN(14)])
		}
		fmt.Fprintf(&b, head+`{"index":0,"delta":%s,"logprobs":null,"finish_reason":%s}],"usage":null%s}`+"\n\n", delta, finish, padding)
	}
	chunk(`{"role":"assistant","content":"","refusal":null}`, "null")
	for i := range deltas {
		chunk(fmt.Sprintf(`{"content":%s}`, token(i)), "null")
	}
	chunk(`{}`, `"stop"`)
	fmt.Fprintf(&b, head+`],"usage":{"prompt_tokens":10,"completion_tokens":%d,"total_tokens":%d}}`+"\n\ndata: [DONE]\n\n", deltas, deltas+10)
	return b.Bytes()
}

// messagesStream is an answer as Anthropic streams it.
func messagesStream() []byte {
	var b bytes.Buffer
	event := func(name, rest string) {
		fmt.Fprintf(&b, "event: %[1]s\ndata: {\"type\":\"%[1]s\"%[2]s}\n\n", name, rest)
	}
	event("message_start", `,"message":{"id":"msg_0123456789abcdefghijklmn","type":"message","role":"assistant","model":"claude-sonnet-4-6",`+
		`"content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":1}}`)
	event("content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`)
	event("ping", "")
	for i := range deltas {
		event("content_block_delta", fmt.Sprintf(`,"index":0,"delta":{"type":"text_delta","text":%s}`, token(i)))
	}
	event("content_block_stop", `,"index":0`)
	event("message_delta", fmt.Sprintf(`,"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":%d}`, deltas))
	event("message_stop", "")
	return b.Bytes()
}

// responsesStream is an answer as OpenAI streams it: every event is numbered, and each delta padded with another number of
// letters.
func responsesStream() []byte {
	var b bytes.Buffer
	random := rand.New(rand.NewPCG(3, 4))
	number := 0
	event := func(name, rest string, arguments ...any) {
		fmt.Fprintf(&b, "event: %[1]s\ndata: {\"type\":\"%[1]s\",\"sequence_number\":%[2]d,%[3]s}\n\n", name, number, fmt.Sprintf(rest, arguments...))
		number++
	}
	const (
		place = `"item_id":"msg_006dcb10dc68b990006931d75a58dc819bb156d745aff1ee2a","output_index":0,"content_index":0`
		item  = `{"id":"msg_006dcb10dc68b990006931d75a58dc819bb156d745aff1ee2a","type":"message","status":"%s","content":[%s],"role":"assistant"}`
		part  = `{"type":"output_text","annotations":[],"logprobs":[],"text":%s}`
	)
	response := func(name, status, output, usage string) {
		event(name, `"response":{"id":"resp_006dcb10dc68b990006931d75955d4819b8c5d6f0b7a1b7c2d","object":"response","created_at":1790000000,`+
			`"status":"%s","background":false,"error":null,"incomplete_details":null,"instructions":null,"max_output_tokens":null,`+
			`"model":"gpt-5.6-luna","output":[%s],"parallel_tool_calls":true,"previous_response_id":null,"reasoning":{"effort":"none","summary":null},`+
			`"service_tier":"default","store":false,"temperature":1.0,"text":{"format":{"type":"text"},"verbosity":"medium"},"tool_choice":"auto",`+
			`"tools":[],"top_logprobs":0,"top_p":1.0,"truncation":"disabled","usage":%s,"user":null,"metadata":{}}`, status, output, usage)
	}
	response("response.created", "in_progress", "", "null")
	response("response.in_progress", "in_progress", "", "null")
	event("response.output_item.added", `"output_index":0,"item":`+item, "in_progress", "")
	event("response.content_part.added", place+`,"part":`+part, `""`)
	var text []byte
	for i := range deltas {
		event("response.output_text.delta", place+`,"delta":%s,"logprobs":[],"obfuscation":"%s"`, token(i), "kQ7wZxv2LmTb9R1h"[:1+random.IntN(16)])
		text = append(text, bytes.Trim(token(i), `"`)...)
	}
	whole := fmt.Sprintf(part, `"`+string(text)+`"`)
	event("response.output_text.done", place+`,"text":"%s","logprobs":[]`, text)
	event("response.content_part.done", place+`,"part":%s`, whole)
	event("response.output_item.done", `"output_index":0,"item":`+item, "completed", whole)
	response("response.completed", "completed", fmt.Sprintf(item, "completed", whole), fmt.Sprintf(`{"input_tokens":10,`+
		`"input_tokens_details":{"cached_tokens":0},"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":%d}`, deltas, deltas+10))
	return b.Bytes()
}

// generateContentStream is an answer as Gemini streams it: lines end with CRLF and every chunk has the counts so far.
func generateContentStream() []byte {
	var b bytes.Buffer
	for i := range deltas {
		finish := ""
		if i == deltas-1 {
			finish = `"finishReason": "STOP",`
		}
		fmt.Fprintf(&b, `data: {"candidates": [{"content": {"parts": [{"text": %s}],"role": "model"},%s"index": 0}],"usageMetadata": {"promptTokenCount": 10,`+
			`"candidatesTokenCount": %d,"totalTokenCount": %d,"promptTokensDetails": [{"modality": "TEXT","tokenCount": 10}],"thoughtsTokenCount": 28,`+
			`"serviceTier": "standard"},"modelVersion": "gemini-3.8-flash","responseId": "beHBaJfEMqqvnvgPu4-x2AQ"}`+"\r\n\r\n", token(i), finish, i+1, i+39)
	}
	return b.Bytes()
}

// interactionsStream is an answer as Google streams it over its other API.
func interactionsStream() []byte {
	var b bytes.Buffer
	event := func(name, rest string) {
		fmt.Fprintf(&b, "event: %[1]s\ndata: {%[2]s,\"event_type\":\"%[1]s\"}\n\n", name, rest)
	}
	event("interaction.created", `"interaction":{"id":"","status":"in_progress","object":"interaction","model":"gemini-3.8-flash"}`)
	event("interaction.status_update", `"interaction_id":"","status":"in_progress"`)
	event("step.start", `"index":0,"step":{"type":"model_output"}`)
	for i := range deltas {
		event("step.delta", fmt.Sprintf(`"index":0,"delta":{"text":%s,"type":"text"}`, token(i)))
	}
	event("step.stop", `"index":0`)
	event("interaction.completed", fmt.Sprintf(`"interaction":{"id":"","status":"completed","usage":{"total_tokens":%d,"total_input_tokens":10,`+
		`"input_tokens_by_modality":[{"modality":"text","tokens":10}],"total_cached_tokens":0,"total_output_tokens":%d,"total_tool_use_tokens":0,`+
		`"total_thought_tokens":0},"created":"2026-09-21T13:33:20Z","updated":"2026-09-21T13:33:24Z","service_tier":"standard","object":"interaction",`+
		`"model":"gemini-3.8-flash"}`, deltas+10, deltas))
	b.WriteString("event: done\ndata: [DONE]\n\n")
	return b.Bytes()
}

// recorded answers every request with the same bytes, without a socket.
type recorded []byte

func (r recorded) RoundTrip(q *http.Request) (*http.Response, error) { return r.answer(q), nil }

func (r recorded) answer(q *http.Request) *http.Response {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: io.NopCloser(bytes.NewReader(r)), Request: q,
	}
}
