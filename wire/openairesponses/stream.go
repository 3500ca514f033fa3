package openairesponses

import (
	"encoding/json"
	"errors"
	"iter"

	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// The event types that say something.
const (
	EventOutputItemAdded            = "response.output_item.added"
	EventOutputItemDone             = "response.output_item.done"
	EventContentPartDone            = "response.content_part.done"
	EventOutputTextDelta            = "response.output_text.delta"
	EventOutputTextDone             = "response.output_text.done"
	EventRefusalDelta               = "response.refusal.delta"
	EventRefusalDone                = "response.refusal.done"
	EventReasoningDelta             = "response.reasoning.delta" // of the Open Responses standard, as reasoning_text
	EventReasoningDone              = "response.reasoning.done"
	EventReasoningTextDelta         = "response.reasoning_text.delta"
	EventReasoningTextDone          = "response.reasoning_text.done"
	EventReasoningSummaryTextDelta  = "response.reasoning_summary_text.delta"
	EventReasoningSummaryTextDone   = "response.reasoning_summary_text.done"
	EventReasoningSummaryPartDone   = "response.reasoning_summary_part.done"
	EventFunctionCallArgumentsDelta = "response.function_call_arguments.delta"
	EventFunctionCallArgumentsDone  = "response.function_call_arguments.done"
	EventCompleted                  = "response.completed"
	EventIncomplete                 = "response.incomplete"
	EventFailed                     = "response.failed"
	EventCancelled                  = "response.cancelled"
	EventResponseError              = "response.error"
	EventError                      = "error"
)

// The event types that say nothing a closing event or the fragments do not say.
const (
	EventCreated                   = "response.created"
	EventInProgress                = "response.in_progress"
	EventContentPartAdded          = "response.content_part.added"
	EventReasoningSummaryPartAdded = "response.reasoning_summary_part.added"
	EventKeepalive                 = "keepalive"
)

// The item types that are read.
const (
	ItemMessage      = "message"
	ItemReasoning    = "reasoning"
	ItemFunctionCall = "function_call"
)

// The part types.
const (
	PartOutputText    = "output_text"
	PartRefusal       = "refusal"
	PartReasoningText = "reasoning_text"
	PartSummaryText   = "summary_text"
)

// Event is one event of a stream. Strings are empty where the wire has null or nothing.
type Event struct {
	Type        string
	OutputIndex int // -1 where the wire has none
	ItemID      string
	PartIndex   int // content_index or summary_index; -1 where the wire has none

	Part      Part   // a fragment, or in a done event the whole part
	Arguments string // a fragment, or in a done event all of them
	CallID    string // of the call that arguments belong to; a Tracker fills it in

	Item     Item            // of output_item events
	Response Response        // of the terminal events
	Error    json.RawMessage // what went wrong; aliases the event's bytes
}

// Part is a piece of content.
type Part struct {
	Type string
	Text string
}

// Item is an output item. An added event holds the first five fields alone.
type Item struct {
	Type   string
	ID     string
	CallID string
	Name   string
	Phase  string

	Arguments        string
	Content          []Part
	Summary          []Part
	EncryptedContent string
	Signature        string
	Format           string
}

// Response is what a terminal event says of the whole.
type Response struct {
	Status           string
	IncompleteReason string
	Usage            *Usage
}

// Usage counts tokens. Nil: not reported.
type Usage struct {
	InputTokens     *int64
	OutputTokens    *int64
	CachedTokens    *int64 // input_tokens_details.cached_tokens
	ReasoningTokens *int64 // output_tokens_details.reasoning_tokens
}

// Decoder reads events, one after the other into the same memory.
type Decoder struct {
	scanner  jsonscan.Scanner
	event    Event
	lastType string // types and ids repeat from event to event
	lastID   string

	// Most events say what the one before said, but for the text, its number and the padding that hides its length.
	template jsonscan.Template
	at       jsonscan.Span   // where the text stands
	skipped  []jsonscan.Span // what varies besides
}

// Decode reads one event. The event is valid until the next call. Of what long events repeat, such as the whole output
// on a terminal event, nothing is kept.
func (d *Decoder) Decode(data []byte) (*Event, error) {
	s, e := &d.scanner, &d.event
	if text, ok := d.template.Match(data); ok {
		e.Part.Text = text
		return e, nil
	}
	d.template.Forget()
	d.at, d.skipped = jsonscan.Span{}, d.skipped[:0]
	*e = Event{OutputIndex: -1, PartIndex: -1, Item: Item{Content: e.Item.Content[:0], Summary: e.Item.Summary[:0]}}

	// The type decides what else is read. It comes first, mostly.
	s.Reset(data)
	for first := true; s.Field(&first); {
		if string(s.Name()) == "type" {
			e.Type = s.Intern(d.lastType)
			d.lastType = e.Type
			break
		}
		s.Skip()
	}
	e.Part.Type = partOf(e.Type)

	s.Reset(data)
	for first := true; s.Field(&first); {
		switch string(s.Name()) {
		case "output_index":
			e.OutputIndex = d.index()
		case "content_index", "summary_index":
			e.PartIndex = d.index()
		case "item_id":
			e.ItemID = s.Intern(d.lastID)
			d.lastID = e.ItemID
		case "delta":
			switch {
			case e.Part.Type != "":
				e.Part.Text = s.String()
				d.at = s.Span()
			case e.Type == EventFunctionCallArgumentsDelta:
				e.Arguments = s.String()
			default:
				s.Skip()
			}
		case "text", "refusal":
			if e.Part.Type != "" {
				e.Part.Text = s.String()
				d.at = s.Span()
			} else {
				s.Skip()
			}
		case "arguments":
			if e.Type == EventFunctionCallArgumentsDone {
				e.Arguments = d.arguments()
			} else {
				s.Skip()
			}
		case "part":
			if e.Type == EventContentPartDone || e.Type == EventReasoningSummaryPartDone {
				e.Part, d.at = d.part(), jsonscan.Span{}
			} else {
				s.Skip()
			}
		case "item":
			switch e.Type {
			case EventOutputItemAdded:
				d.item(&e.Item, false)
			case EventOutputItemDone:
				d.item(&e.Item, true)
			default:
				s.Skip()
			}
		case "response":
			switch e.Type {
			case EventCompleted, EventIncomplete, EventFailed, EventCancelled:
				for first := true; s.Field(&first); {
					d.responseField(e)
				}
				e.settle(data)
			default:
				s.Skip()
			}
		case "error":
			if kind := s.Kind(); kind == '{' || kind == '"' {
				e.Error = data
			}
			s.Skip()
		case "sequence_number", "obfuscation":
			d.skipped = append(d.skipped, s.SkipSpan())
		default:
			s.Skip()
		}
	}
	switch e.Type {
	case EventFailed, EventCancelled, EventResponseError, EventError:
		if e.Error == nil {
			e.Error = data
		}
	}
	err := s.End()
	// What is no string gives an empty text and has no place, and an error aliases these bytes.
	if err == nil && d.at != (jsonscan.Span{}) && e.Part.Text != "" && e.Error == nil {
		d.template.Remember(data, d.at, d.skipped...)
	}
	return e, err
}

// errNoResponse: a body is no response with an output.
var errNoResponse = errors.New("the body is no response")

// Unroll reads a whole response, or the terminal event that holds one, as the events that its stream would have ended
// with: each item whole, then the terminal event, which a response that is not finished lacks. Each event is valid until
// the next one.
func (d *Decoder) Unroll(body []byte) iter.Seq2[*Event, error] {
	return func(yield func(*Event, error) bool) {
		s := &d.scanner
		d.template.Forget()
		last := Event{Type: EventCompleted, OutputIndex: -1, PartIndex: -1}
		response, nested := body, false
		s.Reset(body)
		for first := true; s.Field(&first); {
			switch name := string(s.Name()); {
			case name == "type" && s.Kind() == '"':
				last.Type = s.String()
			case name == "response" && s.Kind() == '{':
				response, nested = s.Raw(), true
			default:
				s.Skip()
			}
		}
		if !nested {
			last.Type = EventCompleted
		}
		if err := s.End(); err != nil {
			yield(nil, err)
			return
		}

		found := false
		s.Reset(response)
		for first := true; s.Field(&first); {
			if string(s.Name()) != "output" || s.Kind() != '[' {
				d.responseField(&last)
				continue
			}
			found = true
			index := 0
			for first := true; s.Element(&first); index++ {
				d.event = Event{Type: EventOutputItemDone, OutputIndex: index, PartIndex: -1}
				d.item(&d.event.Item, true)
				if s.Err() == nil && !yield(&d.event, nil) {
					return
				}
			}
		}
		last.settle(response)
		switch err := s.End(); {
		case err != nil:
			yield(nil, err)
		case !nested && (last.Response.Status == "queued" || last.Response.Status == "in_progress"):
		case !found && last.Error == nil:
			yield(nil, errNoResponse)
		default:
			yield(&last, nil)
		}
	}
}

// responseField reads one field of a response into its terminal event.
func (d *Decoder) responseField(e *Event) {
	s := &d.scanner
	switch string(s.Name()) {
	case "status":
		e.Response.Status = s.Intern("completed")
	case "error":
		if kind := s.Kind(); kind == '{' || kind == '"' {
			e.Error = s.Raw()
		} else {
			s.Skip()
		}
	case "incomplete_details":
		for first := true; s.Field(&first); {
			if string(s.Name()) == "reason" {
				e.Response.IncompleteReason = s.String()
			} else {
				s.Skip()
			}
		}
	case "usage":
		e.Response.Usage = d.usage()
	default:
		s.Skip()
	}
}

// settle decides how a response ended. Where its status says something else than the name of the event, the status is
// right; an error counts where the response has failed.
func (e *Event) settle(response []byte) {
	switch e.Response.Status {
	case "incomplete":
		e.Type = EventIncomplete
	case "failed":
		e.Type = EventFailed
	case "cancelled":
		e.Type = EventCancelled
	}
	switch {
	case e.Type == EventCompleted || e.Type == EventIncomplete:
		e.Error = nil
	case e.Type == EventCancelled && e.Error == nil:
		e.Error = json.RawMessage(`{"type":"cancelled","message":"the response was cancelled"}`)
	case e.Error == nil:
		e.Error = response
	}
}

// item reads an output item, of one that is only added no more than what announces it.
func (d *Decoder) item(item *Item, done bool) {
	s := &d.scanner
	for first := true; s.Field(&first); {
		switch name := string(s.Name()); name {
		case "type":
			item.Type = s.Intern(ItemMessage)
		case "id":
			item.ID = s.Intern(d.lastID)
			d.lastID = item.ID
		case "call_id":
			item.CallID = s.String()
		case "name":
			item.Name = s.String()
		case "phase":
			item.Phase = s.String()
		default:
			if !done {
				s.Skip()
				continue
			}
			switch name {
			case "arguments":
				item.Arguments = d.arguments()
			case "content":
				item.Content = d.parts(item.Content)
			case "summary":
				item.Summary = d.parts(item.Summary)
			case "encrypted_content":
				item.EncryptedContent = s.String()
			case "signature":
				item.Signature = s.String()
			case "format":
				item.Format = s.String()
			default:
				s.Skip()
			}
		}
	}
}

func (d *Decoder) parts(parts []Part) []Part {
	s := &d.scanner
	for first := true; s.Element(&first); {
		if part := d.part(); part != (Part{}) || len(parts) == 0 { // many empty ones take no memory
			parts = append(parts, part)
		}
	}
	return parts
}

func (d *Decoder) part() (part Part) {
	s := &d.scanner
	for first := true; s.Field(&first); {
		switch string(s.Name()) {
		case "type":
			part.Type = s.Intern(PartOutputText)
		case "text", "refusal":
			if s.Kind() == '"' {
				part.Text = s.String()
			} else {
				s.Skip()
			}
		default:
			s.Skip()
		}
	}
	return part
}

// partOf names the part that a delta or done event of a text belongs to.
func partOf(eventType string) string {
	switch eventType {
	case EventOutputTextDelta, EventOutputTextDone:
		return PartOutputText
	case EventRefusalDelta, EventRefusalDone:
		return PartRefusal
	case EventReasoningDelta, EventReasoningDone, EventReasoningTextDelta, EventReasoningTextDone:
		return PartReasoningText
	case EventReasoningSummaryTextDelta, EventReasoningSummaryTextDone:
		return PartSummaryText
	}
	return ""
}

// arguments reads the text of an object, or the object itself.
func (d *Decoder) arguments() string {
	if d.scanner.Kind() == '{' {
		return string(d.scanner.Raw())
	}
	return d.scanner.String()
}

func (d *Decoder) index() int {
	if n, ok := d.scanner.Int(); ok && n >= 0 && n < 1<<31 {
		return int(n)
	}
	return -1
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
		case "input_tokens":
			u.InputTokens = d.count()
		case "output_tokens":
			u.OutputTokens = d.count()
		case "input_tokens_details":
			u.CachedTokens = d.detail("cached_tokens")
		case "output_tokens_details":
			u.ReasoningTokens = d.detail("reasoning_tokens")
		default:
			s.Skip()
		}
	}
	return u
}

func (d *Decoder) count() *int64 {
	if n, ok := d.scanner.Int(); ok {
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
