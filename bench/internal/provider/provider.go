// Package provider is what providers send: answers of text as each protocol streams them.
package provider

import (
	"fmt"
	"math/rand/v2"
)

// Answer is one answer. It is streamed by Head, a Delta for each piece of text, and Tail; each appends whole events to dst.
type Answer struct {
	Head  func(dst []byte) []byte
	Delta func(dst, quoted []byte) []byte // the piece as a JSON string
	Tail  func(dst []byte) []byte
}

// Stream appends an answer of the given pieces.
func (a *Answer) Stream(dst []byte, pieces ...[]byte) []byte {
	dst = a.Head(dst)
	for _, quoted := range pieces {
		dst = a.Delta(dst, quoted)
	}
	return a.Tail(dst)
}

// Chat is an answer as endpoints of Chat Completions stream it: chunks that differ in their text only. OpenAI pads them
// besides, each with another number of letters, to hide the length of the text.
func Chat(padded bool) *Answer {
	const head = `data: {"id":"chatcmpl-0123456789abcdef01234567","object":"chat.completion.chunk","created":1790000000,"model":"gpt-5.6-luna",` +
		`"service_tier":"default","system_fingerprint":"fp_44709d6fcb","choices":[`
	random := rand.New(rand.NewPCG(1, 2))
	deltas := 0
	chunk := func(dst []byte, delta, finish string) []byte {
		padding := ""
		if padded {
			padding = fmt.Sprintf(`,"obfuscation":"%s"`, "kQ7wZxv2LmTb9R"[:1+random.IntN(14)])
		}
		return fmt.Appendf(dst, head+`{"index":0,"delta":%s,"logprobs":null,"finish_reason":%s}],"usage":null%s}`+"\n\n", delta, finish, padding)
	}
	return &Answer{
		Head: func(dst []byte) []byte { return chunk(dst, `{"role":"assistant","content":"","refusal":null}`, "null") },
		Delta: func(dst, quoted []byte) []byte {
			deltas++
			return chunk(dst, fmt.Sprintf(`{"content":%s}`, quoted), "null")
		},
		Tail: func(dst []byte) []byte {
			dst = chunk(dst, `{}`, `"stop"`)
			return fmt.Appendf(dst, head+`],"usage":{"prompt_tokens":10,"completion_tokens":%d,"total_tokens":%d}}`+"\n\ndata: [DONE]\n\n", deltas, deltas+10)
		},
	}
}

// Messages is an answer as Anthropic streams it.
func Messages() *Answer {
	deltas := 0
	event := func(dst []byte, name, rest string, arguments ...any) []byte {
		dst = fmt.Appendf(dst, "event: %[1]s\ndata: {\"type\":\"%[1]s\"", name)
		return append(fmt.Appendf(dst, rest, arguments...), "}\n\n"...)
	}
	return &Answer{
		Head: func(dst []byte) []byte {
			dst = event(dst, "message_start", `,"message":{"id":"msg_0123456789abcdefghijklmn","type":"message","role":"assistant","model":"claude-sonnet-4-6",`+
				`"content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":1}}`)
			dst = event(dst, "content_block_start", `,"index":0,"content_block":{"type":"text","text":""}`)
			return event(dst, "ping", "")
		},
		Delta: func(dst, quoted []byte) []byte {
			deltas++
			return event(dst, "content_block_delta", `,"index":0,"delta":{"type":"text_delta","text":%s}`, quoted)
		},
		Tail: func(dst []byte) []byte {
			dst = event(dst, "content_block_stop", `,"index":0`)
			dst = event(dst, "message_delta", `,"delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":%d}`, deltas)
			return event(dst, "message_stop", "")
		},
	}
}

// Responses is an answer as OpenAI streams it: every event is numbered, and each delta padded with another number of
// letters.
func Responses() *Answer {
	random := rand.New(rand.NewPCG(3, 4))
	number, deltas := 0, 0
	var text []byte
	event := func(dst []byte, name, rest string, arguments ...any) []byte {
		dst = fmt.Appendf(dst, "event: %[1]s\ndata: {\"type\":\"%[1]s\",\"sequence_number\":%[2]d,", name, number)
		number++
		return append(fmt.Appendf(dst, rest, arguments...), "}\n\n"...)
	}
	const (
		place = `"item_id":"msg_006dcb10dc68b990006931d75a58dc819bb156d745aff1ee2a","output_index":0,"content_index":0`
		item  = `{"id":"msg_006dcb10dc68b990006931d75a58dc819bb156d745aff1ee2a","type":"message","status":"%s","content":[%s],"role":"assistant"}`
		part  = `{"type":"output_text","annotations":[],"logprobs":[],"text":%s}`
	)
	response := func(dst []byte, name, status, output, usage string) []byte {
		return event(dst, name, `"response":{"id":"resp_006dcb10dc68b990006931d75955d4819b8c5d6f0b7a1b7c2d","object":"response","created_at":1790000000,`+
			`"status":"%s","background":false,"error":null,"incomplete_details":null,"instructions":null,"max_output_tokens":null,`+
			`"model":"gpt-5.6-luna","output":[%s],"parallel_tool_calls":true,"previous_response_id":null,"reasoning":{"effort":"none","summary":null},`+
			`"service_tier":"default","store":false,"temperature":1.0,"text":{"format":{"type":"text"},"verbosity":"medium"},"tool_choice":"auto",`+
			`"tools":[],"top_logprobs":0,"top_p":1.0,"truncation":"disabled","usage":%s,"user":null,"metadata":{}}`, status, output, usage)
	}
	return &Answer{
		Head: func(dst []byte) []byte {
			dst = response(dst, "response.created", "in_progress", "", "null")
			dst = response(dst, "response.in_progress", "in_progress", "", "null")
			dst = event(dst, "response.output_item.added", `"output_index":0,"item":`+item, "in_progress", "")
			return event(dst, "response.content_part.added", place+`,"part":`+part, `""`)
		},
		Delta: func(dst, quoted []byte) []byte {
			deltas++
			text = append(text, quoted[1:len(quoted)-1]...)
			return event(dst, "response.output_text.delta", place+`,"delta":%s,"logprobs":[],"obfuscation":"%s"`, quoted, "kQ7wZxv2LmTb9R1h"[:1+random.IntN(16)])
		},
		Tail: func(dst []byte) []byte {
			whole := fmt.Sprintf(part, `"`+string(text)+`"`)
			dst = event(dst, "response.output_text.done", place+`,"text":"%s","logprobs":[]`, text)
			dst = event(dst, "response.content_part.done", place+`,"part":%s`, whole)
			dst = event(dst, "response.output_item.done", `"output_index":0,"item":`+item, "completed", whole)
			return response(dst, "response.completed", "completed", fmt.Sprintf(item, "completed", whole), fmt.Sprintf(`{"input_tokens":10,`+
				`"input_tokens_details":{"cached_tokens":0},"output_tokens":%d,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":%d}`, deltas, deltas+10))
		},
	}
}

// GenerateContent is an answer as Gemini streams it: lines end with CRLF, every chunk has the counts so far, and the last
// has no text.
func GenerateContent() *Answer {
	deltas := 0
	chunk := func(dst []byte, quoted, finish string) []byte {
		return fmt.Appendf(dst, `data: {"candidates": [{"content": {"parts": [{"text": %s}],"role": "model"},%s"index": 0}],"usageMetadata": {"promptTokenCount": 10,`+
			`"candidatesTokenCount": %d,"totalTokenCount": %d,"promptTokensDetails": [{"modality": "TEXT","tokenCount": 10}],"thoughtsTokenCount": 28,`+
			`"serviceTier": "standard"},"modelVersion": "gemini-3.8-flash","responseId": "beHBaJfEMqqvnvgPu4-x2AQ"}`+"\r\n\r\n", quoted, finish, deltas, deltas+38)
	}
	return &Answer{
		Head: func(dst []byte) []byte { return dst },
		Delta: func(dst, quoted []byte) []byte {
			deltas++
			return chunk(dst, string(quoted), "")
		},
		Tail: func(dst []byte) []byte { return chunk(dst, `""`, `"finishReason": "STOP",`) },
	}
}

// Interactions is an answer as Google streams it over its other API.
func Interactions() *Answer {
	deltas := 0
	event := func(dst []byte, name, rest string, arguments ...any) []byte {
		dst = fmt.Appendf(dst, "event: %s\ndata: {", name)
		return fmt.Appendf(fmt.Appendf(dst, rest, arguments...), ",\"event_type\":\"%s\"}\n\n", name)
	}
	return &Answer{
		Head: func(dst []byte) []byte {
			dst = event(dst, "interaction.created", `"interaction":{"id":"","status":"in_progress","object":"interaction","model":"gemini-3.8-flash"}`)
			dst = event(dst, "interaction.status_update", `"interaction_id":"","status":"in_progress"`)
			return event(dst, "step.start", `"index":0,"step":{"type":"model_output"}`)
		},
		Delta: func(dst, quoted []byte) []byte {
			deltas++
			return event(dst, "step.delta", `"index":0,"delta":{"text":%s,"type":"text"}`, quoted)
		},
		Tail: func(dst []byte) []byte {
			dst = event(dst, "step.stop", `"index":0`)
			dst = event(dst, "interaction.completed", `"interaction":{"id":"","status":"completed","usage":{"total_tokens":%d,"total_input_tokens":10,`+
				`"input_tokens_by_modality":[{"modality":"text","tokens":10}],"total_cached_tokens":0,"total_output_tokens":%d,"total_tool_use_tokens":0,`+
				`"total_thought_tokens":0},"created":"2026-09-21T13:33:20Z","updated":"2026-09-21T13:33:24Z","service_tier":"standard","object":"interaction",`+
				`"model":"gemini-3.8-flash"}`, deltas+10, deltas)
			return append(dst, "event: done\ndata: [DONE]\n\n"...)
		},
	}
}
