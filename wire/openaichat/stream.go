package openaichat

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// Chunk is one event of a stream, or a whole answer read as the only event of its own stream: `message` stands for
// `delta`. Of its choices the one of index 0 is read.
type Chunk struct {
	HasChoice    bool
	HasMessage   bool // the choice is that of a whole answer
	Delta        Delta
	FinishReason string
	Usage        *Usage

	// The `error` of an answer that failed under way, of the chunk and of its choice; both alias the chunk's bytes.
	Error       json.RawMessage
	ChoiceError json.RawMessage
}

// Delta is what the choice adds. Strings are empty where the wire has null or nothing.
type Delta struct {
	Parts            []Part // content, in order
	ReasoningContent string
	Reasoning        string
	ReasoningDetails []ReasoningDetail // without those that repeat a string beside them and prove nothing
	Refusal          string
	ToolCalls        []ToolCallDelta
}

// Part is a piece of content: text, or thinking where a vendor mixes both in one list.
type Part struct {
	Text     string
	Thinking bool
}

// ToolCallDelta is a fragment of a call. Index is -1 where the wire has none.
type ToolCallDelta struct {
	Index     int
	ID        string
	Name      string
	Arguments string
}

// Usage counts tokens. Nil: not reported.
type Usage struct {
	PromptTokens     *int64
	CompletionTokens *int64
	CachedTokens     *int64 // prompt_tokens_details.cached_tokens, else cached_tokens or prompt_cache_hit_tokens
	ReasoningTokens  *int64 // completion_tokens_details.reasoning_tokens
}

// Decoder reads chunks, one after the other into the same memory.
type Decoder struct {
	scanner jsonscan.Scanner
	chunk   Chunk

	// Most chunks say what the one before said, but for the text and the padding that hides its length.
	template jsonscan.Template
	whole    bool            // the text is a whole answer
	texts    int             // pieces of text in the chunk
	text     *string         // the last of them
	at       jsonscan.Span   // where it stands
	skipped  []jsonscan.Span // what varies besides

	pieces []string // of the text of a part

	last ReasoningDetail // what the last detail says of its kind, which the next one repeats
}

// Decode reads one event. The chunk is valid until the next call.
func (d *Decoder) Decode(data []byte) (*Chunk, error) {
	if text, ok := d.template.Match(data); ok && text != "" {
		*d.text = text
		return &d.chunk, nil
	}
	s, c := &d.scanner, &d.chunk
	d.texts, d.skipped = 0, d.skipped[:0]
	c.reset()
	s.Reset(data)
	object := ""
	for first := true; s.Field(&first); {
		switch string(s.Name()) {
		case "choices":
			for first := true; s.Element(&first); {
				if c.HasChoice {
					s.Skip()
				} else {
					d.choice()
				}
			}
		case "usage":
			if usage := d.usage(); usage != nil {
				c.Usage = usage
			}
		case "x_groq":
			for first := true; s.Field(&first); {
				if string(s.Name()) == "usage" && c.Usage == nil {
					c.Usage = d.usage()
				} else {
					s.Skip()
				}
			}
		case "error":
			c.Error = d.failure()
		case "object": // older servers of vLLM send a whole error as an event
			object = s.Intern("chat.completion.chunk")
		case "obfuscation":
			d.skipped = append(d.skipped, s.SkipSpan())
		default:
			s.Skip()
		}
	}
	err := s.End()
	if object == "error" && c.Error == nil {
		c.Error = data
	}
	// A later key of the same name may have emptied the text, and an error aliases these bytes.
	if err == nil && d.texts == 1 && *d.text != "" && c.Error == nil && c.ChoiceError == nil {
		d.template.Remember(data, d.at, d.skipped...)
	} else {
		d.template.Forget()
	}
	return c, err
}

// reset empties the chunk and keeps its memory.
func (c *Chunk) reset() {
	*c = Chunk{Delta: Delta{
		Parts: c.Delta.Parts[:0], ReasoningDetails: c.Delta.ReasoningDetails[:0], ToolCalls: c.Delta.ToolCalls[:0],
	}}
}

// failure returns the value of an `error`, nil where it says that the answer is well.
func (d *Decoder) failure() json.RawMessage {
	switch raw := d.scanner.Raw(); string(raw) {
	case "null", "false", `""`, "{}":
		return nil
	default:
		return raw
	}
}

// DecodeWhole reads an answer that came in one piece as the only event of its stream.
func (d *Decoder) DecodeWhole(data []byte) (*Chunk, error) {
	d.whole = true
	defer func() { d.whole = false }()
	return d.Decode(data)
}

// piece notes where a text of the chunk came from.
func (d *Decoder) piece(text *string) {
	if *text != "" {
		d.texts++
		d.text = text
		d.at = d.scanner.Span()
	}
}

// failed are the finish reasons of answers that have no end: those of OpenRouter, Z.AI, DeepSeek and vLLM.
var failed = []string{"error", "network_error", "insufficient_system_resource", "abort"}

// choice reads the choice of index 0, or without an index; of any other it leaves nothing. A whole answer has a message
// in place of the delta, and some endpoints send both: with each delta of a stream the message so far, with a whole
// answer an empty delta.
func (d *Decoder) choice() {
	s, c := &d.scanner, &d.chunk
	c.HasChoice = true
	var message jsonscan.Scanner // at the value
	found, streamed, other := false, false, false
	for first := true; s.Field(&first); {
		switch string(s.Name()) {
		case "delta":
			streamed = !d.whole && s.Kind() == '{'
			d.delta(false)
		case "message":
			message, found = *s, true
			s.Skip()
		case "finish_reason":
			c.FinishReason = s.Intern("stop")
		case "usage": // as Kimi has it
			if usage := d.usage(); usage != nil && c.Usage == nil {
				c.Usage = usage
			}
		case "error":
			c.ChoiceError = d.failure()
		case "index":
			n, _ := s.Int()
			other = n != 0
		default:
			s.Skip()
		}
	}
	if other { // one of several answers to one request, of which the first counts
		usage, failure := c.Usage, c.Error
		c.reset()
		c.Usage, c.Error = usage, failure
		d.texts = 0
		return
	}
	if c.ChoiceError == nil && slices.Contains(failed, c.FinishReason) {
		c.ChoiceError = append(jsonscan.AppendString([]byte(`{"message":"the provider gave up before the end of the answer","code":`), c.FinishReason), '}')
	}
	if found && !streamed {
		c.HasMessage = true
		rest := *s
		*s = message
		if d.delta(true); s.Err() == nil {
			*s = rest
		}
	}
}

func (d *Decoder) delta(whole bool) {
	s, delta := &d.scanner, &d.chunk.Delta
	for first := true; s.Field(&first); {
		switch string(s.Name()) {
		case "content":
			d.content()
		case "reasoning_content":
			delta.ReasoningContent = s.String()
			d.piece(&delta.ReasoningContent)
		case "reasoning":
			delta.Reasoning = s.String()
			d.piece(&delta.Reasoning)
		case "reasoning_details":
			d.reasoningDetails()
		case "refusal":
			delta.Refusal = s.String()
		case "tool_calls":
			delta.ToolCalls = delta.ToolCalls[:0]
			for first := true; s.Element(&first); {
				call := ToolCallDelta{Index: -1}
				if whole {
					call.Index = len(delta.ToolCalls) // each element of a whole answer is a call of its own
				}
				d.toolCall(&call)
				delta.ToolCalls = append(delta.ToolCalls, call)
			}
		default:
			s.Skip()
		}
	}
	delta.settle()
}

// reasoningDetails reads the list. Of texts that the strings before it say too, nothing is copied.
func (d *Decoder) reasoningDetails() {
	s, delta := &d.scanner, &d.chunk.Delta
	delta.ReasoningDetails = delta.ReasoningDetails[:0]
	said := cmp.Or(delta.ReasoningContent, delta.Reasoning)
	for first := true; s.Element(&first); {
		var detail ReasoningDetail
		for first := true; s.Field(&first); {
			switch string(s.Name()) {
			case "type":
				detail.Type = s.Intern(d.last.Type)
			case "text":
				detail.Text = s.Intern(said)
			case "summary":
				detail.Summary = s.Intern(said)
			case "data":
				detail.Data = s.String()
			case "signature":
				detail.Signature = s.String()
			case "id":
				detail.ID = s.Intern(d.last.ID)
			case "format":
				detail.Format = s.Intern(d.last.Format)
			case "index":
				if n, ok := s.Int(); ok {
					if detail.Index = d.last.Index; detail.Index == nil || *detail.Index != n {
						detail.Index = new(n)
					}
				}
			default:
				s.Skip()
			}
		}
		d.last = ReasoningDetail{Type: detail.Type, ID: detail.ID, Format: detail.Format, Index: detail.Index}
		delta.ReasoningDetails = append(delta.ReasoningDetails, detail)
		d.texts = 2 // a text may stand in two places
	}
}

// settle leaves each text of the reasoning in one place: in the details where they bind it to a proof, else in the
// string where there is one.
func (delta *Delta) settle() {
	if len(delta.ReasoningDetails) == 0 {
		return
	}
	said := delta.ReasoningContent != "" || delta.Reasoning != ""
	bound := slices.ContainsFunc(delta.ReasoningDetails, func(r ReasoningDetail) bool { return r.Bound() && r.Said() != "" })
	if said && bound {
		delta.ReasoningContent, delta.Reasoning = "", ""
	}
	delta.ReasoningDetails = slices.DeleteFunc(delta.ReasoningDetails, func(r ReasoningDetail) bool {
		return !r.Bound() && (r.Said() == "" || said && !bound)
	})
}

// content reads a string, or a list of text and thinking parts.
func (d *Decoder) content() {
	s, delta := &d.scanner, &d.chunk.Delta
	delta.Parts = delta.Parts[:0]
	if s.Kind() == '"' {
		if text := s.String(); text != "" {
			delta.Parts = append(delta.Parts, Part{Text: text})
			d.piece(&delta.Parts[len(delta.Parts)-1].Text)
		}
		return
	}
	if s.Kind() == '[' {
		d.texts = 2 // it may overwrite the string of an earlier key
	}
	for first := true; s.Element(&first); {
		d.pieces = d.pieces[:0]
		thinking := false
		for first := true; s.Field(&first); {
			switch string(s.Name()) {
			case "text":
				d.pieces = append(d.pieces, s.String())
			case "thinking":
				thinking = true
				if s.Kind() == '"' {
					d.pieces = append(d.pieces, s.String())
					continue
				}
				for first := true; s.Element(&first); {
					for first := true; s.Field(&first); {
						if string(s.Name()) == "text" {
							d.pieces = append(d.pieces, s.String())
						} else {
							s.Skip()
						}
					}
				}
			default:
				s.Skip()
			}
		}
		if text := strings.Join(d.pieces, ""); text != "" {
			delta.Parts = append(delta.Parts, Part{text, thinking})
		}
	}
}

func (d *Decoder) toolCall(call *ToolCallDelta) {
	s := &d.scanner
	for first := true; s.Field(&first); {
		switch string(s.Name()) {
		case "index":
			if n, ok := s.Int(); ok && n >= 0 && n < 1<<31 {
				call.Index = int(n)
			}
		case "id":
			call.ID = s.String()
		case "function":
			for first := true; s.Field(&first); {
				switch string(s.Name()) {
				case "name":
					call.Name = s.String()
				case "arguments":
					if s.Kind() == '{' { // the object itself instead of its text
						call.Arguments = string(s.Raw())
					} else {
						call.Arguments = s.String()
					}
				default:
					s.Skip()
				}
			}
		default:
			s.Skip()
		}
	}
}

// usage returns nil for anything but an object.
func (d *Decoder) usage() *Usage {
	s := &d.scanner
	if s.Kind() != '{' {
		s.Skip()
		return nil
	}
	u := &Usage{}
	for first := true; s.Field(&first); {
		switch string(s.Name()) {
		case "prompt_tokens":
			u.PromptTokens = d.count()
		case "completion_tokens":
			u.CompletionTokens = d.count()
		case "prompt_tokens_details":
			if n := d.detail("cached_tokens"); n != nil {
				u.CachedTokens = n
			}
		case "cached_tokens", "prompt_cache_hit_tokens": // as Kimi and DeepSeek say it
			if n := d.count(); u.CachedTokens == nil {
				u.CachedTokens = n
			}
		case "completion_tokens_details":
			u.ReasoningTokens = d.detail("reasoning_tokens")
		default:
			s.Skip()
		}
	}
	return u
}

func (d *Decoder) count() *int64 {
	if n, ok := d.scanner.Int(); ok && n >= 0 {
		return &n
	}
	return nil
}

func (d *Decoder) detail(name string) (n *int64) {
	s := &d.scanner
	for first := true; s.Field(&first); {
		if string(s.Name()) == name {
			n = d.count()
		} else {
			s.Skip()
		}
	}
	return n
}
