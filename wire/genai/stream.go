package genai

import (
	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// Chunk is one event of a stream, or a whole answer. Only the first candidate is read.
type Chunk struct {
	Data         []byte // the chunk as it came; aliases the decoded bytes
	Parts        []OutputPart
	HasCandidate bool
	FinishReason string // empty: the candidate goes on
	FinishText   string // what the provider says of it

	BlockReason string // the prompt was refused, and there is no candidate
	BlockText   string

	Usage Usage  // the counts of the stream so far
	Fresh bool   // some of the counts came in this chunk
	Ended bool   // the candidate has finished or the prompt was refused, in this chunk or an earlier one
	Error []byte // the text of an error object; aliases the decoded bytes
}

// PartKind says what a part holds.
type PartKind int

// The kinds of parts.
const (
	PartUnknown PartKind = iota // what the provider's own tools do, and what is new
	PartText
	PartInlineData
	PartFunctionCall
)

// OutputPart is a piece of an answer.
type OutputPart struct {
	Kind      PartKind
	Thought   bool
	Text      string
	MimeType  string
	Data      string // base64
	Signature string // base64

	// A call. One that streams comes in several parts, of which only the first has a name and each brings a piece of the
	// arguments' text.
	ID        string
	Name      string
	Arguments string
}

// Usage counts tokens. Zero: none, or not reported.
type Usage struct {
	Reported   bool  // a prompt count came
	Prompt     int64 // cached ones included
	Cached     int64
	Thoughts   int64
	Candidates int64 // without thoughts
}

// Decoder reads the chunks of one stream, one after the other into the same memory.
type Decoder struct {
	scanner jsonscan.Scanner
	chunk   Chunk
	call    *arguments // of a call that streams

	// Many chunks say what the one before said, but for the text.
	template jsonscan.Template
	texts    int           // pieces of text in the chunk; more than one when it holds anything else that must be read anew
	text     *string       // the last of them
	at       jsonscan.Span // where it stands
}

// Decode reads one chunk, valid until the next call.
func (d *Decoder) Decode(data []byte) (*Chunk, error) {
	if text, ok := d.template.Match(data); ok && text != "" {
		*d.text, d.chunk.Data = text, data
		return &d.chunk, nil
	}
	s, c := &d.scanner, &d.chunk
	d.texts = 0
	*c = Chunk{Data: data, Parts: c.Parts[:0], Usage: c.Usage, Ended: c.Ended}
	s.Reset(data)
	var err error
	for first := true; s.Field(&first); {
		switch string(s.Name()) {
		case "candidates":
			for first := true; s.Element(&first); {
				if c.HasCandidate {
					s.Skip()
					continue
				}
				c.HasCandidate = true
				if failure := d.candidate(); err == nil {
					err = failure
				}
			}
		case "promptFeedback":
			for first := true; s.Field(&first); {
				switch string(s.Name()) {
				case "blockReason":
					c.BlockReason = s.String()
				case "blockReasonMessage":
					c.BlockText = s.String()
				default:
					s.Skip()
				}
			}
		case "usageMetadata":
			d.usage()
		case "error":
			switch raw := s.Raw(); string(raw) {
			case "null", "false", `""`, "{}": // said of an answer that is well
			default:
				c.Error = raw
			}
		default:
			s.Skip()
		}
	}
	if failure := s.End(); failure != nil {
		err = failure
	}
	c.Ended = c.Ended || err == nil && (c.FinishReason != "" || c.BlockReason != "")
	if err == nil && d.texts == 1 && len(c.Parts) == 1 && c.Error == nil {
		d.text = &c.Parts[0].Text
		d.template.Remember(data, d.at)
	} else {
		d.template.Forget()
	}
	return c, err
}

func (d *Decoder) candidate() (err error) {
	s, c := &d.scanner, &d.chunk
	for first := true; s.Field(&first); {
		switch string(s.Name()) {
		case "content":
			for first := true; s.Field(&first); {
				if string(s.Name()) != "parts" {
					s.Skip()
					continue
				}
				c.Parts = c.Parts[:0]
				for first := true; s.Element(&first); {
					if failure := d.part(); err == nil {
						err = failure
					}
				}
			}
		case "finishReason":
			c.FinishReason = s.Intern("STOP")
		case "finishMessage":
			c.FinishText = s.String()
		default:
			s.Skip()
		}
	}
	return err
}

// part reads a part. Of several things in one the call comes first, data next, text last.
func (d *Decoder) part() (err error) {
	s, c := &d.scanner, &d.chunk
	c.Parts = append(c.Parts, OutputPart{})
	part := &c.Parts[len(c.Parts)-1]
	var hasText, hasData, hasCall, hasOther bool
	for first := true; s.Field(&first); {
		switch string(s.Name()) {
		case "text":
			hasText = s.Kind() == '"'
			part.Text = s.String()
			d.at = s.Span()
		case "thought":
			part.Thought = s.Bool()
		case "thoughtSignature":
			part.Signature = s.String()
		case "inlineData":
			hasData = s.Kind() == '{'
			for first := true; s.Field(&first); {
				switch string(s.Name()) {
				case "mimeType":
					part.MimeType = s.String()
				case "data":
					part.Data = s.String()
				default:
					s.Skip()
				}
			}
		case "functionCall":
			if hasCall = s.Kind() == '{'; hasCall {
				part, err = d.functionCall()
			} else {
				s.Skip()
			}
		default:
			hasOther = true
			s.Skip()
		}
	}
	switch {
	case hasCall:
		part.Kind = PartFunctionCall
	case part.Thought && hasText, hasText && !hasData:
		part.Kind = PartText
	case hasData:
		part.Kind = PartInlineData
	case part.Signature != "" && !hasOther: // an empty text that was left out
		part.Kind = PartText
	}
	if part.Kind == PartText && part.Text != "" && part.Signature == "" {
		d.texts++
	} else {
		d.texts += 2
	}
	return err
}

// functionCall reads a call into the last part, which it returns. Arguments that stream become text in pieces. A call that
// the next one cuts off is closed by a part of its own before it.
func (d *Decoder) functionCall() (part *OutputPart, err error) {
	s, c := &d.scanner, &d.chunk
	part = &c.Parts[len(c.Parts)-1]
	var args, text []byte
	var partial []partialArgument
	continues := false
	for first := true; s.Field(&first); {
		switch string(s.Name()) {
		case "id":
			part.ID = s.String()
		case "name":
			part.Name = s.String()
		case "args":
			if args = s.Raw(); string(args) == "null" {
				args = nil
			}
		case "partialArgs":
			for first := true; s.Element(&first); {
				partial = append(partial, d.partialArgument())
			}
		case "willContinue":
			continues = s.Bool()
		default:
			s.Skip()
		}
	}
	if d.call != nil && part.Name != "" {
		if rest := d.call.close(nil); len(rest) > 0 {
			call := *part
			*part = OutputPart{Kind: PartFunctionCall, Arguments: string(rest)}
			c.Parts = append(c.Parts, call)
			part = &c.Parts[len(c.Parts)-1]
		}
		d.call = nil
	}
	if d.call == nil && partial == nil && !continues {
		if args == nil && part.Name != "" {
			args = []byte("{}")
		}
		part.Arguments = string(args)
		return part, nil
	}
	if d.call == nil {
		d.call = &arguments{}
	}
	for i := range partial {
		if text, err = d.call.add(text, &partial[i]); err != nil {
			return part, err
		}
	}
	if !continues {
		if len(args) > 0 && len(text) == 0 && d.call.open == nil { // the whole after all
			text = args
		} else {
			text = d.call.close(text)
		}
		d.call = nil
	}
	part.Arguments = string(text)
	return part, nil
}

func (d *Decoder) partialArgument() (arg partialArgument) {
	s := &d.scanner
	for first := true; s.Field(&first); {
		switch string(s.Name()) {
		case "jsonPath":
			arg.path = s.String()
		case "stringValue":
			arg.text = s.String()
		case "numberValue", "boolValue":
			arg.value = s.Raw()
		case "nullValue":
			arg.value = []byte("null")
			s.Skip()
		case "willContinue":
			arg.continues = s.Bool()
		default:
			s.Skip()
		}
	}
	return arg
}

// usage adds to the counts what a chunk says of them. Some chunks say only by what contract they are billed.
func (d *Decoder) usage() {
	s := &d.scanner
	var u Usage
	for first := true; s.Field(&first); {
		switch string(s.Name()) {
		case "promptTokenCount":
			u.Prompt, u.Reported = s.Int()
		case "cachedContentTokenCount":
			u.Cached, _ = s.Int()
		case "thoughtsTokenCount":
			u.Thoughts, _ = s.Int()
		case "candidatesTokenCount":
			u.Candidates, _ = s.Int()
		default:
			s.Skip()
		}
	}
	if !u.Reported || u.Prompt < 0 {
		return
	}
	total := &d.chunk.Usage
	total.Reported, total.Prompt, d.chunk.Fresh = true, u.Prompt, true
	for _, count := range []struct {
		total *int64
		n     int64
	}{{&total.Cached, u.Cached}, {&total.Thoughts, u.Thoughts}, {&total.Candidates, u.Candidates}} {
		if count.n > 0 {
			*count.total = count.n
		}
	}
}
