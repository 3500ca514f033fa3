// Package floor is what is possible: the smallest converters from a provider's stream to the public stream that one
// would write by hand, for one kind of answer each. They take text only, check no grammar, keep no limits and report
// no errors of the provider, so that no product can do without what they leave out; they say how far it is from them.
package floor

import (
	"bufio"
	"bytes"
	"io"
	"strconv"
	"time"

	"github.com/valyala/fastjson"
)

// Convert appends the public events that the data of one provider event make.
type Convert func(dst, data []byte) ([]byte, error)

// Stream converts a body of server-sent events. What is ready together is written together, and nothing waits for the
// provider.
func Stream(body io.Reader, convert Convert, write func([]byte) error) error {
	in := bufio.NewReaderSize(body, 4<<10) // an event must fit
	var out []byte
	for {
		line, err := in.ReadSlice('\n')
		switch {
		case err == io.EOF:
			return write(out)
		case err != nil:
			return err
		case bytes.HasPrefix(line, []byte("data: ")):
			if out, err = convert(out, bytes.TrimRight(line[len("data: "):], "\r\n")); err != nil {
				return err
			}
		case line[0] <= '\r' && len(out) > 0: // blank, with one of two line ends
			waiting, _ := in.Peek(in.Buffered())
			if !bytes.Contains(waiting, []byte("\n\n")) && !bytes.Contains(waiting, []byte("\n\r\n")) {
				if err := write(out); err != nil {
					return err
				}
				out = out[:0]
			}
		}
	}
}

// Chat returns a converter of one Chat Completions stream.
func Chat() Convert {
	var a answer
	var parser fastjson.Parser
	return func(dst, data []byte) ([]byte, error) {
		if data[0] == '[' {
			return a.end(dst), nil
		}
		v, err := parser.ParseBytes(data)
		if err != nil {
			return dst, err
		}
		if usage := v.Get("usage"); usage != nil && usage.Type() == fastjson.TypeObject {
			a.prompt, a.response = new(usage.GetInt64("prompt_tokens")), new(usage.GetInt64("completion_tokens"))
		}
		return a.delta(dst, v.GetStringBytes("choices", "0", "delta", "content")), nil
	}
}

// Messages returns a converter of one Anthropic Messages stream.
func Messages() Convert {
	var a answer
	var parser fastjson.Parser
	return func(dst, data []byte) ([]byte, error) {
		v, err := parser.ParseBytes(data)
		if err != nil {
			return dst, err
		}
		switch string(v.GetStringBytes("type")) {
		case "message_start":
			a.prompt = new(v.GetInt64("message", "usage", "input_tokens"))
		case "content_block_delta":
			dst = a.delta(dst, v.GetStringBytes("delta", "text"))
		case "message_delta":
			a.response = new(v.GetInt64("usage", "output_tokens"))
		case "message_stop":
			dst = a.end(dst)
		}
		return dst, nil
	}
}

// Responses returns a converter of one stream of OpenAI's Responses.
func Responses() Convert {
	var a answer
	var parser fastjson.Parser
	return func(dst, data []byte) ([]byte, error) {
		v, err := parser.ParseBytes(data)
		if err != nil {
			return dst, err
		}
		switch string(v.GetStringBytes("type")) {
		case "response.output_text.delta":
			dst = a.delta(dst, v.GetStringBytes("delta"))
		case "response.completed":
			usage := v.Get("response", "usage")
			a.prompt, a.response = new(usage.GetInt64("input_tokens")), new(usage.GetInt64("output_tokens"))
			a.cached = new(usage.GetInt64("input_tokens_details", "cached_tokens"))
			a.thoughts = new(usage.GetInt64("output_tokens_details", "reasoning_tokens"))
			dst = a.end(dst)
		}
		return dst, nil
	}
}

// GenerateContent returns a converter of one stream of Gemini's generateContent.
func GenerateContent() Convert {
	var a answer
	var parser fastjson.Parser
	return func(dst, data []byte) ([]byte, error) {
		v, err := parser.ParseBytes(data)
		if err != nil {
			return dst, err
		}
		candidate := v.Get("candidates", "0")
		dst = a.delta(dst, candidate.GetStringBytes("content", "parts", "0", "text"))
		if candidate.Exists("finishReason") {
			usage := v.Get("usageMetadata")
			a.prompt, a.response = new(usage.GetInt64("promptTokenCount")), new(usage.GetInt64("candidatesTokenCount"))
			a.thoughts = new(usage.GetInt64("thoughtsTokenCount"))
			dst = a.end(dst)
		}
		return dst, nil
	}
}

// Interactions returns a converter of one stream of Google's Interactions.
func Interactions() Convert {
	var a answer
	var parser fastjson.Parser
	return func(dst, data []byte) ([]byte, error) {
		if data[0] == '[' {
			return a.end(dst), nil
		}
		v, err := parser.ParseBytes(data)
		if err != nil {
			return dst, err
		}
		switch string(v.GetStringBytes("event_type")) {
		case "step.delta":
			dst = a.delta(dst, v.GetStringBytes("delta", "text"))
		case "interaction.completed":
			usage := v.Get("interaction", "usage")
			a.prompt, a.response = new(usage.GetInt64("total_input_tokens")), new(usage.GetInt64("total_output_tokens"))
		}
		return dst, nil
	}
}

// answer is what the end of a stream says again, and the counts that it says, where they are known.
type answer struct {
	text                               []byte
	cached, prompt, thoughts, response *int64
}

func (a *answer) delta(dst, text []byte) []byte {
	if len(text) == 0 {
		return dst
	}
	a.text = append(a.text, text...)
	return appendText(dst, "text.delta", text)
}

func (a *answer) end(dst []byte) []byte {
	dst = appendText(dst, "text.done", a.text)
	dst = append(dst, `data: {"role":"assistant","event_type":"stop","content_items":[],"usage_metadata":{"cached_tokens":`...)
	dst = appendCount(dst, a.cached)
	dst = appendCount(append(dst, `,"prompt_tokens":`...), a.prompt)
	dst = appendCount(append(dst, `,"thoughts_tokens":`...), a.thoughts)
	dst = appendCount(append(dst, `,"response_tokens":`...), a.response)
	dst = append(dst, `},"finish_reason":"stop","created_at":`...)
	dst = strconv.AppendInt(dst, time.Now().UnixMilli(), 10)
	return append(dst, "}\n\ndata: [DONE]\n\n"...)
}

func appendCount(dst []byte, n *int64) []byte {
	if n == nil {
		return append(dst, "null"...)
	}
	return strconv.AppendInt(dst, *n, 10)
}

func appendText(dst []byte, kind string, text []byte) []byte {
	dst = append(dst, `data: {"role":"assistant","event_type":"delta","content_items":[{"type":"`...)
	dst = append(dst, kind...)
	dst = append(dst, `","text":`...)
	dst = appendString(dst, text)
	dst = append(dst, `}],"usage_metadata":null,"finish_reason":null,"created_at":`...)
	dst = strconv.AppendInt(dst, time.Now().UnixMilli(), 10)
	return append(dst, "}\n\n"...)
}

func appendString(dst, s []byte) []byte {
	dst = append(dst, '"')
	start := 0
	for i, c := range s {
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		default:
			const hex = "0123456789abcdef"
			dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		start = i + 1
	}
	return append(append(dst, s[start:]...), '"')
}
