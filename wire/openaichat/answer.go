package openaichat

import (
	"encoding/base64"
	"strconv"

	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// Chunks writes the events of a stream to a caller. All of them share what stands before and after the delta.
type Chunks struct {
	open  []byte // up to the fields of the delta
	close []byte // behind them
	frame []byte // up to the choices
	usage bool
}

// NewChunks returns the writer of one stream. withUsage: the last chunk has the usage, and the others say null.
func NewChunks(id string, created int64, model string, withUsage bool) *Chunks {
	frame := jsonscan.AppendString([]byte(`data: {"id":`), id)
	frame = strconv.AppendInt(append(frame, `,"object":"chat.completion.chunk","created":`...), created, 10)
	frame = jsonscan.AppendString(append(frame, `,"model":`...), model)
	c := &Chunks{frame: append(frame, `,"choices":[`...), usage: withUsage}
	c.open = append(append(c.open, c.frame...), `{"index":0,"delta":{`...)
	c.close = append(c.close, `},"logprobs":null,"finish_reason":null}`...)
	c.close = c.end(c.close)
	return c
}

// end appends what stands behind the choices.
func (c *Chunks) end(dst []byte) []byte {
	dst = append(dst, ']')
	if c.usage {
		dst = append(dst, `,"usage":null`...)
	}
	return append(dst, "}\n\n"...)
}

// Role appends the first chunk. An answer that begins with text has content from the start.
func (c *Chunks) Role(dst []byte, content bool) []byte {
	dst = append(append(dst, c.open...), `"role":"assistant","content":`...)
	if content {
		dst = append(dst, `""`...)
	} else {
		dst = append(dst, "null"...)
	}
	return append(append(dst, `,"refusal":null`...), c.close...)
}

// Text appends a piece of text to a field: content or refusal.
func (c *Chunks) Text(dst []byte, field, text string) []byte {
	dst = append(append(append(append(dst, c.open...), '"'), field...), `":`...)
	return append(jsonscan.AppendString(dst, text), c.close...)
}

// Reasoning appends a piece of reasoning, with its detail where the provider gives one. Either may be missing.
func (c *Chunks) Reasoning(dst []byte, text string, details ...ReasoningDetail) []byte {
	dst = append(dst, c.open...)
	if text != "" {
		dst = jsonscan.AppendString(append(dst, `"reasoning_content":`...), text)
		if len(details) > 0 {
			dst = append(dst, ',')
		}
	}
	if len(details) > 0 {
		dst = appendDetails(dst, details)
	}
	return append(dst, c.close...)
}

// Call appends the beginning of a call. The signature may be empty.
func (c *Chunks) Call(dst []byte, index int, call *AnswerCall) []byte {
	dst = strconv.AppendInt(append(append(dst, c.open...), `"tool_calls":[{"index":`...), int64(index), 10)
	dst = jsonscan.AppendString(append(dst, `,"id":`...), call.ID)
	if call.Custom {
		dst = jsonscan.AppendString(append(dst, `,"type":"custom","custom":{"name":`...), call.Name)
		dst = append(dst, `,"input":""}`...)
	} else {
		dst = jsonscan.AppendString(append(dst, `,"type":"function","function":{"name":`...), call.Name)
		dst = append(dst, `,"arguments":""}`...)
	}
	dst = appendSignature(dst, call.ThoughtSignature)
	return append(append(dst, `}]`...), c.close...)
}

// Arguments appends a fragment of the arguments of a call.
func (c *Chunks) Arguments(dst []byte, index int, fragment string) []byte {
	return c.fragment(dst, index, `,"function":{"arguments":`, fragment, "")
}

// Signature appends the signature of a call that has begun.
func (c *Chunks) Signature(dst []byte, index int, signature string) []byte {
	return c.fragment(dst, index, `,"function":{"arguments":`, "", signature)
}

// Input appends the input of a call of a custom tool.
func (c *Chunks) Input(dst []byte, index int, input string) []byte {
	return c.fragment(dst, index, `,"custom":{"input":`, input, "")
}

func (c *Chunks) fragment(dst []byte, index int, field, fragment, signature string) []byte {
	dst = strconv.AppendInt(append(append(dst, c.open...), `"tool_calls":[{"index":`...), int64(index), 10)
	dst = append(jsonscan.AppendString(append(dst, field...), fragment), '}')
	dst = appendSignature(dst, signature)
	return append(append(dst, `}]`...), c.close...)
}

// FunctionCall appends the beginning of a call in its older form.
func (c *Chunks) FunctionCall(dst []byte, name string) []byte {
	dst = jsonscan.AppendString(append(append(dst, c.open...), `"function_call":{"name":`...), name)
	return append(append(dst, `,"arguments":""}`...), c.close...)
}

// FunctionArguments appends a fragment of the arguments of a call in its older form.
func (c *Chunks) FunctionArguments(dst []byte, fragment string) []byte {
	dst = jsonscan.AppendString(append(append(dst, c.open...), `"function_call":{"arguments":`...), fragment)
	return append(append(dst, '}'), c.close...)
}

// Picture appends a picture that the model made.
func (c *Chunks) Picture(dst []byte, picture *Media) []byte {
	dst = append(append(dst, c.open...), `"images":[`...)
	return append(append(appendPicture(dst, picture), ']'), c.close...)
}

// Audio appends sound that the model made.
func (c *Chunks) Audio(dst []byte, audio *Media) []byte {
	return append(appendAudio(append(dst, c.open...), audio), c.close...)
}

// Finish appends the last chunk of the choice.
func (c *Chunks) Finish(dst []byte, reason string) []byte {
	dst = append(append(dst, c.open...), `},"logprobs":null,"finish_reason":`...)
	return c.end(append(jsonscan.AppendString(dst, reason), '}'))
}

// Done appends what follows the last chunk of the choice: the usage where it is asked for and known, and the end of the
// stream.
func (c *Chunks) Done(dst []byte, usage *Usage) []byte {
	if c.usage && usage != nil {
		dst = appendUsage(append(append(dst, c.frame...), ']'), usage)
		dst = append(dst, "}\n\n"...)
	}
	return append(dst, "data: [DONE]\n\n"...)
}

// AppendErrorChunk appends an error that ends a stream.
func AppendErrorChunk(dst []byte, message, kind, param, code string) []byte {
	dst = AppendError(append(dst, "data: "...), message, kind, param, code)
	return append(dst, "\n\ndata: [DONE]\n\n"...)
}

// AppendError appends the object of an error. All four are strings, which some clients insist on.
func AppendError(dst []byte, message, kind, param, code string) []byte {
	dst = jsonscan.AppendString(append(dst, `{"error":{"message":`...), message)
	dst = jsonscan.AppendString(append(dst, `,"type":`...), kind)
	dst = jsonscan.AppendString(append(dst, `,"param":`...), param)
	dst = jsonscan.AppendString(append(dst, `,"code":`...), code)
	return append(dst, "}}"...)
}

// Answer is a whole answer.
type Answer struct {
	ID           string
	Created      int64
	Model        string
	Content      *string // nil: null
	Refusal      string
	Reasoning    string
	Details      []ReasoningDetail
	ToolCalls    []AnswerCall
	FunctionCall *AnswerCall // the older form
	Pictures     []Media
	Audio        *Media
	FinishReason string
	Usage        *Usage // nil: not known
}

// AnswerCall is a call that the model made.
type AnswerCall struct {
	ID               string
	Name             string
	Arguments        string // of a custom tool its input
	Custom           bool
	ThoughtSignature string // extra_content.google.thought_signature; empty: none
}

// Media is a picture or a sound that the model made.
type Media struct {
	ID       string // of a sound
	MimeType string
	Data     []byte
	Expires  int64 // of a sound: Unix time in seconds
}

// Append appends the answer as one object.
func (a *Answer) Append(dst []byte) []byte {
	dst = jsonscan.AppendString(append(dst, `{"id":`...), a.ID)
	dst = strconv.AppendInt(append(dst, `,"object":"chat.completion","created":`...), a.Created, 10)
	dst = jsonscan.AppendString(append(dst, `,"model":`...), a.Model)
	dst = append(dst, `,"choices":[{"index":0,"message":{"role":"assistant","content":`...)
	if a.Content != nil {
		dst = jsonscan.AppendString(dst, *a.Content)
	} else {
		dst = append(dst, "null"...)
	}
	dst = append(dst, `,"refusal":`...)
	if a.Refusal != "" {
		dst = jsonscan.AppendString(dst, a.Refusal)
	} else {
		dst = append(dst, "null"...)
	}
	if a.Reasoning != "" {
		dst = jsonscan.AppendString(append(dst, `,"reasoning_content":`...), a.Reasoning)
	}
	if len(a.Details) > 0 {
		dst = appendDetails(append(dst, ','), a.Details)
	}
	for i := range a.ToolCalls {
		call := &a.ToolCalls[i]
		if i == 0 {
			dst = append(dst, `,"tool_calls":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = jsonscan.AppendString(append(dst, `{"id":`...), call.ID)
		if call.Custom {
			dst = jsonscan.AppendString(append(dst, `,"type":"custom","custom":{"name":`...), call.Name)
			dst = jsonscan.AppendString(append(dst, `,"input":`...), call.Arguments)
		} else {
			dst = jsonscan.AppendString(append(dst, `,"type":"function","function":{"name":`...), call.Name)
			dst = jsonscan.AppendString(append(dst, `,"arguments":`...), call.Arguments)
		}
		dst = append(appendSignature(append(dst, '}'), call.ThoughtSignature), '}')
		if i == len(a.ToolCalls)-1 {
			dst = append(dst, ']')
		}
	}
	if a.FunctionCall != nil {
		dst = jsonscan.AppendString(append(dst, `,"function_call":{"name":`...), a.FunctionCall.Name)
		dst = append(jsonscan.AppendString(append(dst, `,"arguments":`...), a.FunctionCall.Arguments), '}')
	}
	for i := range a.Pictures {
		if i == 0 {
			dst = append(dst, `,"images":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = appendPicture(dst, &a.Pictures[i])
		if i == len(a.Pictures)-1 {
			dst = append(dst, ']')
		}
	}
	if a.Audio != nil {
		dst = appendAudio(append(dst, ','), a.Audio)
	}
	dst = jsonscan.AppendString(append(dst, `},"logprobs":null,"finish_reason":`...), a.FinishReason)
	dst = append(dst, "}]"...)
	if a.Usage != nil {
		dst = appendUsage(dst, a.Usage)
	}
	return append(dst, '}')
}

func appendSignature(dst []byte, signature string) []byte {
	if signature == "" {
		return dst
	}
	dst = jsonscan.AppendString(append(dst, `,"extra_content":{"google":{"thought_signature":`...), signature)
	return append(dst, "}}"...)
}

func appendDetails(dst []byte, details []ReasoningDetail) []byte {
	dst = append(dst, `"reasoning_details":[`...)
	for i := range details {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = details[i].append(dst)
	}
	return append(dst, ']')
}

// append appends the detail as its struct tags say it.
func (r *ReasoningDetail) append(dst []byte) []byte {
	dst = jsonscan.AppendString(append(dst, `{"type":`...), r.Type)
	for _, field := range [...]struct{ name, text string }{
		{`,"id":`, r.ID}, {`,"format":`, r.Format}, {`,"text":`, r.Text}, {`,"summary":`, r.Summary}, {`,"data":`, r.Data}, {`,"signature":`, r.Signature},
	} {
		if field.text != "" {
			dst = jsonscan.AppendString(append(dst, field.name...), field.text)
		}
	}
	if r.Index != nil {
		dst = strconv.AppendInt(append(dst, `,"index":`...), *r.Index, 10)
	}
	return append(dst, '}')
}

// appendPicture appends a picture as gateways to several vendors say it; the protocol itself has none.
func appendPicture(dst []byte, picture *Media) []byte {
	dst = append(dst, `{"type":"image_url","image_url":{"url":`...)
	dst = jsonscan.AppendString(dst, "data:"+picture.MimeType+";base64,") // the type is the provider's
	dst = base64.StdEncoding.AppendEncode(dst[:len(dst)-1], picture.Data)
	return append(dst, `"}}`...)
}

// appendAudio appends sound as the protocol says it, without the words of it, which are not known.
func appendAudio(dst []byte, audio *Media) []byte {
	dst = jsonscan.AppendString(append(dst, `"audio":{"id":`...), audio.ID)
	dst = base64.StdEncoding.AppendEncode(append(dst, `,"data":"`...), audio.Data)
	dst = strconv.AppendInt(append(dst, `","expires_at":`...), audio.Expires, 10)
	return append(dst, `,"transcript":""}`...)
}

// appendUsage appends the usage, whose sums are never missing.
func appendUsage(dst []byte, u *Usage) []byte {
	prompt, completion := valueOf(u.PromptTokens), valueOf(u.CompletionTokens)
	dst = strconv.AppendInt(append(dst, `,"usage":{"prompt_tokens":`...), prompt, 10)
	dst = strconv.AppendInt(append(dst, `,"completion_tokens":`...), completion, 10)
	dst = strconv.AppendInt(append(dst, `,"total_tokens":`...), prompt+completion, 10)
	if u.CachedTokens != nil {
		dst = strconv.AppendInt(append(dst, `,"prompt_tokens_details":{"cached_tokens":`...), *u.CachedTokens, 10)
		dst = append(dst, '}')
	}
	if u.ReasoningTokens != nil {
		dst = strconv.AppendInt(append(dst, `,"completion_tokens_details":{"reasoning_tokens":`...), *u.ReasoningTokens, 10)
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

func valueOf(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
