package interactions

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// The event types.
const (
	EventCreated      = "interaction.created"
	EventStatusUpdate = "interaction.status_update"
	EventStepStart    = "step.start"
	EventStepDelta    = "step.delta"
	EventStepStop     = "step.stop"
	EventCompleted    = "interaction.completed"
	EventError        = "error"
)

// Event is one event of a stream. Type says which fields count. Strings are empty where the wire has null or nothing.
type Event struct {
	Type        string          // as the data says; the name of the event where they do not
	Data        []byte          // the event as it came; aliases the decoded bytes
	Index       int             // step.*
	Start       Start           // step.start
	Delta       Delta           // step.delta
	Interaction Interaction     // interaction.completed
	Error       json.RawMessage // error, interaction.completed: what went wrong, or nil; aliases the decoded bytes
}

// Start is what a step begins with. What further content it may hold is sent in deltas as well.
type Start struct {
	Type      string
	ID        string // function_call
	Name      string // function_call
	Arguments []byte // function_call: the text of an object that is not empty, or nil; aliases the decoded bytes
}

// Delta is what a step adds.
type Delta struct {
	Type      string // text, thought_summary, thought_signature, arguments_delta, image, audio, and others
	Content   string // thought_summary: what it holds, text or image
	Text      string // text, thought_summary
	Signature string // thought_signature
	Arguments string // arguments_delta: a fragment

	Data       []byte // image, audio, thought_summary
	MimeType   string // image, audio, thought_summary
	SampleRate int64  // audio; 0: not said
	Channels   int64  // audio; 0: not said
}

// Interaction is what the terminal event says of the whole.
type Interaction struct {
	Status string // completed, requires_action, incomplete, failed, cancelled or budget_exceeded
	Usage  *Usage
}

// Usage counts tokens. Nil: not reported.
type Usage struct {
	Input   *int64 // cached ones included
	Cached  *int64
	Output  *int64 // thoughts not included
	Thought *int64
}

// Decoder reads events, one after the other into the same memory.
type Decoder struct {
	scanner  jsonscan.Scanner
	event    Event
	mimeType string // repeats from event to event
	damaged  bool   // data that is no base64

	// Most events say what the one before said, but for the text.
	template jsonscan.Template
	texts    int           // texts in the event
	text     *string       // the last of them
	at       jsonscan.Span // where it stands
}

var errBase64 = errors.New("the data is not base64")

// Decode reads one event of the given name, which may be absent. The event is valid until the next call. An event of a
// foreign name need not be JSON.
func (d *Decoder) Decode(name, data []byte) (*Event, error) {
	s, e := &d.scanner, &d.event
	if text, ok := d.template.Match(data); ok {
		*d.text, e.Data = text, data
		return e, nil
	}
	d.template.Forget()
	d.texts, d.damaged = 0, false
	lastType, lastDelta := e.Type, e.Delta.Type
	*e = Event{Data: data}
	s.Reset(data)
	for first := true; s.Field(&first); {
		switch string(s.Name()) {
		case "event_type":
			e.Type = s.Intern(lastType)
		case "index":
			if n, ok := s.Int(); ok && n >= 0 && n < 1<<31 {
				e.Index = int(n)
			}
		case "delta":
			d.delta(lastDelta)
		case "step":
			d.start()
		case "interaction":
			d.interaction()
		case "error":
			if kind := s.Kind(); kind == '{' || kind == '"' {
				e.Error = data
			}
			s.Skip()
		default:
			s.Skip()
		}
	}
	switch err := s.End(); {
	case err != nil && foreign(name):
		*e = Event{Type: string(name), Data: data}
		return e, nil
	case err != nil:
		return e, err
	case d.damaged:
		return e, errBase64
	case e.Type == "" && e.Error != nil:
		e.Type = EventError
		return e, nil
	case e.Type == "":
		if e.Type = string(name); e.Type == EventError { // the whole of it is the error
			e.Error = data
		}
		return e, nil
	}
	switch e.Type {
	case EventError:
	case EventCompleted: // an error counts where the interaction has failed
		switch e.Interaction.Status {
		case "completed", "requires_action", "incomplete":
			e.Error = nil
		}
	default:
		e.Error = nil
	}
	// A later key of the same name may have emptied the text, and arguments and errors alias these bytes.
	if d.texts == 1 && *d.text != "" && e.Start.Arguments == nil && e.Error == nil {
		d.template.Remember(data, d.at)
	}
	return e, nil
}

// foreign reports whether a name is none that the protocol gives.
func foreign(name []byte) bool {
	return len(name) > 0 && string(name) != EventError && !bytes.HasPrefix(name, []byte("step.")) && !bytes.HasPrefix(name, []byte("interaction."))
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
		case "content":
			for first := true; s.Field(&first); {
				switch string(s.Name()) {
				case "type":
					delta.Content = s.Intern("text")
				case "text":
					delta.Text = s.String()
					d.piece(&delta.Text)
				case "data":
					delta.Data = d.bytes()
				case "mime_type":
					d.mime()
				default:
					s.Skip()
				}
			}
		case "text":
			delta.Text = s.String()
			d.piece(&delta.Text)
		case "signature":
			delta.Signature = s.String()
		case "arguments": // an object in the deltas of the provider's own tools
			delta.Arguments = s.String()
			d.piece(&delta.Arguments)
		case "data":
			delta.Data = d.bytes()
		case "mime_type":
			d.mime()
		case "sample_rate":
			delta.SampleRate, _ = s.Int()
		case "channels":
			delta.Channels, _ = s.Int()
		default:
			s.Skip()
		}
	}
}

func (d *Decoder) mime() {
	d.mimeType = d.scanner.Intern(d.mimeType)
	d.event.Delta.MimeType = d.mimeType
}

// bytes decodes base64 in either alphabet, padded or not.
func (d *Decoder) bytes() []byte {
	text := bytes.TrimRight(d.scanner.Bytes(), "=")
	encoding := base64.RawStdEncoding
	if bytes.ContainsAny(text, "-_") {
		encoding = base64.RawURLEncoding
	}
	data, err := encoding.AppendDecode(nil, text)
	if err != nil {
		d.damaged = true
		return nil
	}
	return data
}

func (d *Decoder) start() {
	s, start := &d.scanner, &d.event.Start
	for first := true; s.Field(&first); {
		switch string(s.Name()) {
		case "type":
			start.Type = s.String()
		case "id":
			start.ID = s.String()
		case "name":
			start.Name = s.String()
		case "arguments":
			if s.Kind() != '{' {
				s.Skip()
			} else if object := s.Raw(); len(object) > 1 && len(bytes.TrimSpace(object[1:len(object)-1])) > 0 {
				start.Arguments = object
			}
		default:
			s.Skip()
		}
	}
}

func (d *Decoder) interaction() {
	s, interaction := &d.scanner, &d.event.Interaction
	for first := true; s.Field(&first); {
		switch string(s.Name()) {
		case "status":
			interaction.Status = s.Intern("completed")
		case "usage":
			interaction.Usage = d.usage()
		case "error":
			if kind := s.Kind(); kind == '{' || kind == '"' {
				d.event.Error = s.Raw()
			} else {
				s.Skip()
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
		case "total_input_tokens":
			u.Input = d.count()
		case "total_cached_tokens":
			u.Cached = d.count()
		case "total_output_tokens":
			u.Output = d.count()
		case "total_thought_tokens":
			u.Thought = d.count()
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

// Unroll turns a whole interaction into the event stream that says the same; one that is not finished has no terminal
// event. ok is false for anything but an interaction.
func Unroll(interaction []byte) (stream []byte, ok bool) {
	var line bytes.Buffer
	if json.Compact(&line, interaction) != nil {
		return nil, false
	}
	var s jsonscan.Scanner
	var status string
	var steps [][]byte
	found := false
	usage, failed := []byte("null"), []byte("null")
	room := jsonscan.MaxNodes // for steps and what they hold, of which each becomes an event
	s.Reset(line.Bytes())
	for first := true; s.Field(&first); {
		switch string(s.Name()) {
		case "status":
			status = s.String()
		case "steps":
			found = true
			for first := true; s.Element(&first); {
				if room--; room < 0 {
					return nil, false
				}
				steps = append(steps, s.Raw())
			}
		case "usage":
			usage = s.Raw()
		case "error":
			failed = s.Raw()
		default:
			s.Skip()
		}
	}
	if s.End() != nil || status == "" || !found && string(failed) == "null" {
		return nil, false
	}
	var b bytes.Buffer
	b.Grow(line.Len() + 1<<10)
	for i, step := range steps {
		if unrollStep(&b, i, step, &room); room < 0 {
			return nil, false
		}
	}
	if status != "in_progress" && status != "queued" {
		head := jsonscan.AppendString([]byte(`data: {"event_type":"interaction.completed","interaction":{"status":`), status)
		fmt.Fprintf(&b, "%s,\"usage\":%s,\"error\":%s}}\n\n", head, usage, failed)
	}
	return b.Bytes(), true
}

// unrollStep writes the events of one step. A whole content of text, picture or sound is what its delta would be. Where there
// is no room for all, the room is less than nothing.
func unrollStep(b *bytes.Buffer, index int, step []byte, room *int) {
	var s jsonscan.Scanner
	var kind string
	var contents, summaries [][]byte
	signature := []byte("")
	s.Reset(step)
	for first := true; s.Field(&first); {
		switch string(s.Name()) {
		case "type":
			kind = s.String()
		case "content":
			for first := true; s.Element(&first); {
				if *room--; *room < 0 {
					return
				}
				contents = append(contents, s.Raw())
			}
		case "summary":
			for first := true; s.Element(&first); {
				if *room--; *room < 0 {
					return
				}
				summaries = append(summaries, s.Raw())
			}
		case "signature":
			if s.Kind() == '"' {
				signature = s.Raw()
			} else {
				s.Skip()
			}
		default:
			s.Skip()
		}
	}
	start := step
	if kind != "function_call" { // which is whole in its start
		start = append(jsonscan.AppendString([]byte(`{"type":`), kind), '}')
	}
	fmt.Fprintf(b, "data: {\"event_type\":\"step.start\",\"index\":%d,\"step\":%s}\n\n", index, start)
	delta := func(format string, value []byte) {
		fmt.Fprintf(b, "data: {\"event_type\":\"step.delta\",\"index\":%d,\"delta\":"+format+"}\n\n", index, value)
	}
	switch kind {
	case "thought":
		for _, summary := range summaries {
			delta(`{"type":"thought_summary","content":%s}`, summary)
		}
		if len(signature) > len(`""`) {
			delta(`{"type":"thought_signature","signature":%s}`, signature)
		}
	case "model_output":
		for _, content := range contents {
			delta("%s", content)
		}
	}
	fmt.Fprintf(b, "data: {\"event_type\":\"step.stop\",\"index\":%d}\n\n", index)
}
