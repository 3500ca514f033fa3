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

// recorded answers every request with the same bytes, without a socket.
type recorded []byte

func (r recorded) RoundTrip(q *http.Request) (*http.Response, error) { return r.answer(q), nil }

func (r recorded) answer(q *http.Request) *http.Response {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: io.NopCloser(bytes.NewReader(r)), Request: q,
	}
}
