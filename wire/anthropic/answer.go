package anthropic

import (
	"strconv"

	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// Ending is what a message ends with. The zero Ending is that of a message which has only begun.
type Ending struct {
	StopReason   string
	StopSequence *string
	StopDetails  *StopDetails // of a refusal
	Usage        Usage        // what is nil counts as 0
}

// AppendMessage appends a message that answers a request.
func AppendMessage(dst []byte, id, model string, content []Block, end *Ending) []byte {
	dst = jsonscan.AppendString(append(dst, `{"id":`...), id)
	dst = append(dst, `,"type":"message","role":"assistant","model":`...)
	dst = append(jsonscan.AppendString(dst, model), `,"content":[`...)
	for i := range content {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendBlock(dst, &content[i])
	}
	dst = append(dst, `],`...)
	dst = appendStop(dst, end)
	dst = append(dst, `,"diagnostics":null,"usage":`...)
	dst = appendUsage(dst, &end.Usage)
	return append(dst, `,"cache_creation":null,"service_tier":null,"inference_geo":null,"speed":null}}`...)
}

func appendStop(dst []byte, end *Ending) []byte {
	dst = appendOrNull(append(dst, `"stop_reason":`...), end.StopReason)
	dst = append(dst, `,"stop_sequence":`...)
	if end.StopSequence != nil {
		dst = jsonscan.AppendString(dst, *end.StopSequence)
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"stop_details":`...)
	if d := end.StopDetails; d != nil {
		dst = appendOrNull(append(dst, `{"type":"refusal","category":`...), d.Category)
		dst = append(appendOrNull(append(dst, `,"explanation":`...), d.Explanation), '}')
	} else {
		dst = append(dst, "null"...)
	}
	return append(dst, `,"container":null`...)
}

func appendOrNull(dst []byte, text string) []byte {
	if text == "" {
		return append(dst, "null"...)
	}
	return jsonscan.AppendString(dst, text)
}

// appendUsage appends the counts of an object that is not closed.
func appendUsage(dst []byte, u *Usage) []byte {
	count := func(key string, n *int64) {
		dst = append(dst, key...)
		if n == nil {
			n = new(int64)
		}
		dst = strconv.AppendInt(dst, *n, 10)
	}
	count(`{"input_tokens":`, u.InputTokens)
	count(`,"cache_creation_input_tokens":`, u.CacheCreationInputTokens)
	count(`,"cache_read_input_tokens":`, u.CacheReadInputTokens)
	count(`,"output_tokens":`, u.OutputTokens)
	if u.ThinkingTokens != nil {
		count(`,"output_tokens_details":{"thinking_tokens":`, u.ThinkingTokens)
		dst = append(dst, '}')
	} else {
		dst = append(dst, `,"output_tokens_details":null`...)
	}
	return append(dst, `,"server_tool_use":null`...)
}

// AppendBlock appends a block of an answer: text, thinking, redacted_thinking, tool_use, image or document.
func AppendBlock(dst []byte, b *Block) []byte {
	field := func(key, value string) { dst = jsonscan.AppendString(append(dst, key...), value) }
	field(`{"type":`, b.Type)
	switch b.Type {
	case "text":
		field(`,"text":`, b.Text) // without citations, whose null some clients refuse
	case "thinking":
		thinking := ""
		if b.Thinking != nil {
			thinking = *b.Thinking
		}
		field(`,"thinking":`, thinking)
		field(`,"signature":`, b.Signature)
	case "redacted_thinking":
		field(`,"data":`, b.Data)
	case "tool_use":
		field(`,"id":`, b.ID)
		field(`,"name":`, b.Name)
		dst = append(append(dst, `,"input":`...), b.Input...)
		dst = append(dst, `,"caller":{"type":"direct"}`...)
	case "image", "document":
		field(`,"source":{"type":`, b.Source.Type)
		field(`,"media_type":`, b.Source.MediaType)
		field(`,"data":`, b.Source.Data)
		dst = append(dst, '}')
		if b.Title != "" {
			field(`,"title":`, b.Title)
		}
	}
	return append(dst, '}')
}

// AppendMessageStart appends the first event of a stream.
func AppendMessageStart(dst []byte, id, model string) []byte {
	dst = append(dst, "event: message_start\ndata: {\"type\":\"message_start\",\"message\":"...)
	dst = AppendMessage(dst, id, model, nil, &Ending{})
	return append(dst, "}\n\n"...)
}

// AppendPing appends an event that says nothing.
func AppendPing(dst []byte) []byte {
	return append(dst, "event: ping\ndata: {\"type\":\"ping\"}\n\n"...)
}

// AppendBlockStart appends the event that a block begins with, which holds what its deltas do not bring.
func AppendBlockStart(dst []byte, index int, b *Block) []byte {
	dst = append(dst, "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":"...)
	dst = append(strconv.AppendInt(dst, int64(index), 10), `,"content_block":`...)
	return append(AppendBlock(dst, b), "}\n\n"...)
}

// DeltaType is the type of a delta of a block, as the wire has it, up to its text.
type DeltaType string

// The types of deltas.
const (
	TextDelta      DeltaType = `{"type":"text_delta","text":`
	ThinkingDelta  DeltaType = `{"type":"thinking_delta","thinking":`
	SignatureDelta DeltaType = `{"type":"signature_delta","signature":`
	InputDelta     DeltaType = `{"type":"input_json_delta","partial_json":`
)

// AppendBlockDelta appends an event with a piece of a block.
func AppendBlockDelta(dst []byte, index int, kind DeltaType, text string) []byte {
	dst = append(dst, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":"...)
	dst = append(strconv.AppendInt(dst, int64(index), 10), `,"delta":`...)
	return append(jsonscan.AppendString(append(dst, kind...), text), "}}\n\n"...)
}

// AppendBlockStop appends the event that ends a block.
func AppendBlockStop(dst []byte, index int) []byte {
	dst = append(dst, "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":"...)
	return append(strconv.AppendInt(dst, int64(index), 10), "}\n\n"...)
}

// AppendMessageStop appends the two events that end a stream.
func AppendMessageStop(dst []byte, end *Ending) []byte {
	dst = append(dst, "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{"...)
	dst = append(appendStop(dst, end), `},"usage":`...)
	dst = appendUsage(dst, &end.Usage)
	return append(dst, "}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"...)
}

// AppendError appends an error, which is the body of a response. Its code may be empty.
func AppendError(dst []byte, kind, message, code, requestID string) []byte {
	dst = jsonscan.AppendString(append(dst, `{"type":"error","error":{"type":`...), kind)
	dst = jsonscan.AppendString(append(dst, `,"message":`...), message)
	if code != "" {
		dst = append(jsonscan.AppendString(append(dst, `,"details":{"error_code":`...), code), '}')
	}
	return append(appendOrNull(append(dst, `},"request_id":`...), requestID), '}')
}

// AppendErrorEvent appends an error that ends a stream.
func AppendErrorEvent(dst []byte, kind, message, code, requestID string) []byte {
	dst = append(dst, "event: error\ndata: "...)
	return append(AppendError(dst, kind, message, code, requestID), "\n\n"...)
}

// AppendCount appends the answer of /v1/messages/count_tokens.
func AppendCount(dst []byte, tokens int64) []byte {
	return append(strconv.AppendInt(append(dst, `{"input_tokens":`...), tokens, 10), '}')
}
