package anthropic

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// Event is one event of a stream. Type says which fields count. Strings are empty where the wire has null or nothing.
type Event struct {
	Type         string       // as the data says; the name of the event where they do not
	Data         []byte       // the event as it came; aliases the decoded bytes
	Usage        *Usage       // message_start, message_delta
	Index        int          // content_block_*
	ContentBlock ContentBlock // content_block_start
	Delta        Delta        // content_block_delta, message_delta
}

// ContentBlock is what a block begins with.
type ContentBlock struct {
	Type      string
	Text      string // text
	Thinking  string // thinking
	Signature string // thinking
	Data      string // redacted_thinking
	ID        string // tool_use
	Name      string // tool_use
	Input     []byte // tool_use: the text of an object, or nil; aliases the decoded bytes
}

// Delta is what a block, or the message, adds.
type Delta struct {
	Type        string // of a block's delta
	Text        string
	Thinking    string
	Signature   string
	PartialJSON string

	// Of the message's delta.
	StopReason   string
	StopSequence string
	StopDetails  StopDetails
}

// StopDetails says why the model refused.
type StopDetails struct {
	Category    string
	Explanation string
}

// Usage counts tokens. Nil: not reported.
type Usage struct {
	InputTokens              *int64 // neither read from nor written to the cache
	CacheCreationInputTokens *int64
	CacheReadInputTokens     *int64
	OutputTokens             *int64 // thinking included
	ThinkingTokens           *int64 // output_tokens_details.thinking_tokens
}

// Decoder reads events, one after the other into the same memory.
type Decoder struct {
	scanner jsonscan.Scanner
	event   Event

	// Most events say what the one before said, but for the text.
	template jsonscan.Template
	texts    int           // texts in the event
	text     *string       // the last of them
	at       jsonscan.Span // where it stands
}

// Decode reads one event of the given name, which may be absent. The data of an event whose name is not one of a message's are
// not looked into, and need not be JSON. The event is valid until the next call.
func (d *Decoder) Decode(name, data []byte) (*Event, error) {
	s, e := &d.scanner, &d.event
	if text, ok := d.template.Match(data); ok && string(name) == e.Type {
		*d.text, e.Data = text, data
		return e, nil
	}
	d.template.Forget()
	d.texts = 0
	lastType, lastDelta := e.Type, e.Delta.Type
	*e = Event{Data: data}
	switch string(name) {
	case "", "message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop":
	default:
		e.Type = string(name)
		return e, nil
	}
	failed := false
	s.Reset(data)
	for first := true; s.Field(&first); {
		switch string(s.Name()) {
		case "type":
			e.Type = s.Intern(lastType)
		case "index":
			if n, ok := s.Int(); ok && n >= 0 && n < 1<<31 {
				e.Index = int(n)
			}
		case "delta":
			d.delta(lastDelta)
		case "content_block":
			d.contentBlock()
		case "message":
			for first := true; s.Field(&first); {
				if string(s.Name()) == "usage" {
					d.usage()
				} else {
					s.Skip()
				}
			}
		case "usage":
			d.usage()
		case "error":
			failed = s.Kind() != 'n'
			s.Skip()
		default:
			s.Skip()
		}
	}
	if e.Type == "" {
		if e.Type = string(name); failed {
			e.Type = "error"
		}
	}
	err := s.End()
	// A later key of the same name may have emptied the text, and an input aliases these bytes.
	if err == nil && d.texts == 1 && *d.text != "" && e.ContentBlock.Input == nil && string(name) == e.Type {
		d.template.Remember(data, d.at)
	}
	return e, err
}

// piece notes where a text of the delta came from.
func (d *Decoder) piece(text *string) {
	if *text != "" {
		d.texts++
		d.text = text
		d.at = d.scanner.Span()
	}
}

func (d *Decoder) delta(lastType string) {
	s, delta := &d.scanner, &d.event.Delta
	for first := true; s.Field(&first); {
		switch string(s.Name()) {
		case "type":
			delta.Type = s.Intern(lastType)
		case "text":
			delta.Text = s.String()
			d.piece(&delta.Text)
		case "thinking":
			delta.Thinking = s.String()
			d.piece(&delta.Thinking)
		case "signature":
			delta.Signature = s.String()
		case "partial_json":
			delta.PartialJSON = s.String()
			d.piece(&delta.PartialJSON)
		case "stop_reason":
			delta.StopReason = s.String()
		case "stop_sequence":
			delta.StopSequence = s.String()
		case "stop_details":
			for first := true; s.Field(&first); {
				switch string(s.Name()) {
				case "category":
					delta.StopDetails.Category = s.String()
				case "explanation":
					delta.StopDetails.Explanation = s.String()
				default:
					s.Skip()
				}
			}
		default:
			s.Skip()
		}
	}
}

func (d *Decoder) contentBlock() {
	s, block := &d.scanner, &d.event.ContentBlock
	for first := true; s.Field(&first); {
		switch string(s.Name()) {
		case "type":
			block.Type = s.String()
		case "text":
			block.Text = s.String()
		case "thinking":
			block.Thinking = s.String()
		case "signature":
			block.Signature = s.String()
		case "data":
			block.Data = s.String()
		case "id":
			block.ID = s.String()
		case "name":
			block.Name = s.String()
		case "input":
			if s.Kind() == '{' {
				block.Input = s.Raw()
			} else {
				s.Skip()
			}
		default:
			s.Skip()
		}
	}
}

// usage leaves what is there for anything but an object.
func (d *Decoder) usage() {
	s := &d.scanner
	if s.Kind() != '{' {
		s.Skip()
		return
	}
	u := &Usage{}
	for first := true; s.Field(&first); {
		switch string(s.Name()) {
		case "input_tokens":
			u.InputTokens = d.count()
		case "cache_creation_input_tokens":
			u.CacheCreationInputTokens = d.count()
		case "cache_read_input_tokens":
			u.CacheReadInputTokens = d.count()
		case "output_tokens":
			u.OutputTokens = d.count()
		case "output_tokens_details":
			for first := true; s.Field(&first); {
				if string(s.Name()) == "thinking_tokens" {
					u.ThinkingTokens = d.count()
				} else {
					s.Skip()
				}
			}
		default:
			s.Skip()
		}
	}
	d.event.Usage = u
}

func (d *Decoder) count() *int64 {
	if n, ok := d.scanner.Int(); ok {
		return &n
	}
	return nil
}

// Unroll turns a whole message into the event stream that says the same. Each block is whole in its start. ok is false for
// anything but a message.
func Unroll(message []byte) (stream []byte, ok bool) {
	var line bytes.Buffer
	if json.Compact(&line, message) != nil {
		return nil, false
	}
	var s jsonscan.Scanner
	var kind string
	var content [][]byte
	usage, reason, sequence, details := []byte("null"), []byte("null"), []byte("null"), []byte("null")
	s.Reset(line.Bytes())
	for first := true; s.Field(&first); {
		switch string(s.Name()) {
		case "type":
			kind = s.String()
		case "content":
			for first := true; s.Element(&first); {
				if len(content) == jsonscan.MaxNodes { // each becomes two events
					return nil, false
				}
				content = append(content, s.Raw())
			}
		case "usage":
			usage = s.Raw()
		case "stop_reason":
			reason = s.Raw()
		case "stop_sequence":
			sequence = s.Raw()
		case "stop_details":
			details = s.Raw()
		default:
			s.Skip()
		}
	}
	if s.End() != nil || kind != "message" {
		return nil, false
	}
	var b bytes.Buffer
	b.Grow(line.Len() + 1<<10)
	fmt.Fprintf(&b, "data: {\"type\":\"message_start\",\"message\":{\"usage\":%s}}\n\n", usage)
	for i, block := range content {
		fmt.Fprintf(&b, "data: {\"type\":\"content_block_start\",\"index\":%d,\"content_block\":%s}\n\n", i, block)
		fmt.Fprintf(&b, "data: {\"type\":\"content_block_stop\",\"index\":%d}\n\n", i)
	}
	fmt.Fprintf(&b, "data: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":%s,\"stop_sequence\":%s,\"stop_details\":%s},\"usage\":%s}\n\n",
		reason, sequence, details, usage)
	b.WriteString("data: {\"type\":\"message_stop\"}\n\n")
	return b.Bytes(), true
}
