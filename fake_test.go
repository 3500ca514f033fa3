package mmsp_test

import (
	"context"
	"fmt"
	"iter"
	"strings"

	. "github.com/prism-shadow/mmsp-go"
)

// step is what a fake provider does next: it calls before, then yields the event or the error.
type step struct {
	before func(context.Context)
	event  UniEvent
	err    error
}

// fakeProvider plays steps. Like a real one it reuses one event, so that nothing may be read from it later.
type fakeProvider struct {
	steps   []step
	prepare func(context.Context) error
	after   func() // the loop of Do ran to its end

	prepared int
	messages []Message // what Prepare got
	config   *Config
	done     int // loops of Do begun
	ended    int // loops of Do ended
}

func (p *fakeProvider) Class() string { return "FakeClient" }

func (p *fakeProvider) Model() string { return "fake-1" }

func (p *fakeProvider) ListModels(context.Context) ([]string, error) {
	return []string{"fake-2", "fake-1"}, nil
}

func (p *fakeProvider) Prepare(ctx context.Context, messages []Message, config *Config) (*Request, error) {
	p.prepared++
	p.messages, p.config = messages, config
	if p.prepare != nil {
		if err := p.prepare(ctx); err != nil {
			return nil, err
		}
	}
	return &Request{Method: "POST", URL: "https://example.test/"}, nil
}

func (p *fakeProvider) Do(ctx context.Context, _ *Request) iter.Seq2[*UniEvent, error] {
	return func(yield func(*UniEvent, error) bool) {
		p.done++
		defer func() { p.ended++ }()
		var event UniEvent
		for _, s := range p.steps {
			if s.before != nil {
				s.before(ctx)
			}
			if s.err != nil {
				yield(nil, s.err)
				return
			}
			event.Reset()
			deltas := append(event.Deltas, s.event.Deltas...)
			event = s.event
			event.Deltas = deltas
			more := yield(&event, nil)
			clear(event.Deltas)
			event.Usage, event.FinishReason, event.StopDetail = nil, "", nil
			if !more {
				return
			}
		}
		if p.after != nil {
			p.after()
		}
	}
}

// says is an event of deltas.
func says(deltas ...Delta) step { return step{event: UniEvent{Type: EventDelta, Deltas: deltas}} }

// ends is an event with a finish reason, usage of 3 and 2 tokens, and deltas.
func ends(finish FinishReason, deltas ...Delta) step {
	return step{event: UniEvent{Type: EventStop, Deltas: deltas, FinishReason: finish, Usage: tokens(3, 2)}}
}

func tokens(prompt, response int64) *Usage {
	return &Usage{PromptTokens: new(prompt), ResponseTokens: new(response)}
}

// buffered marks the step's event as followed by one that is there already.
func buffered(s step) step { s.event.More = true; return s }

// fragment makes a delta under a provider's id.
func fragment(id string, item Item) Delta { return Delta{Item: item, ItemID: id} }

func text(id, s string) Delta  { return fragment(id, Item{Type: TextDelta, Text: s}) }
func think(id, s string) Delta { return fragment(id, Item{Type: ThinkingDelta, Thinking: s}) }

func data(id, mime, bytes string) Delta {
	return fragment(id, Item{Type: InlineDataDelta, MimeType: mime, Data: []byte(bytes)})
}

func imageThought(id, bytes string) Delta {
	return fragment(id, Item{Type: InlineThinkingDelta, MimeType: "image/png", Data: []byte(bytes)})
}

func vector(values ...float64) Delta {
	return fragment("", Item{Type: EmbeddingDelta, Embedding: values})
}

// call is a fragment of a tool call whose wire has one call at a time, keyed of one whose wire may interleave them.
func call(id, name, callID, arguments string) Delta {
	return fragment(id, Item{Type: ToolCallDelta, Name: name, ToolCallID: callID, Arguments: arguments})
}

func keyed(index int, name, callID, arguments string) Delta {
	d := call("tool_calls", name, callID, arguments)
	d.Call = CallRef{Keyed: true, Index: index}
	return d
}

func faithful(d Delta, fidelity string) Delta { d.Fidelity = Fidelity(fidelity); return d }

// show writes an item in one short line.
func show(i *Item) string {
	line := string(i.Type)
	switch i.Type.Kind() {
	case "text":
		line += fmt.Sprintf(" %q", i.Text)
	case "thinking":
		line += fmt.Sprintf(" %q", i.Thinking)
	case "tool_call":
		line += fmt.Sprintf(" %s/%s `%s`", i.Name, i.ToolCallID, i.Arguments)
	case "embedding":
		line += fmt.Sprintf(" %v", i.Embedding)
	default:
		line += fmt.Sprintf(" %s %q", i.MimeType, i.Data)
	}
	if len(i.Fidelity) > 0 {
		line += " " + string(i.Fidelity)
	}
	return line
}

func showAll(items []Item) string {
	var lines []string
	for i := range items {
		lines = append(lines, show(&items[i]))
	}
	return strings.Join(lines, "; ")
}

func showEvent(e *Event) string {
	if e.Type != EventStop {
		return show(&e.Item)
	}
	line := "stop " + string(e.FinishReason)
	for _, n := range []*int64{e.Usage.CachedTokens, e.Usage.PromptTokens, e.Usage.ThoughtsTokens, e.Usage.ResponseTokens} {
		if n == nil {
			line += " -"
		} else {
			line += fmt.Sprint(" ", *n)
		}
	}
	if e.StopDetail != nil {
		line += " " + e.StopDetail.Kind
	}
	return line
}

// read shows the events of a stream and returns its error.
func read(stream iter.Seq2[Event, error]) (lines []string, err error) {
	for event, e := range stream {
		if e != nil {
			return lines, e
		}
		lines = append(lines, showEvent(&event))
	}
	return lines, nil
}

var hello = []Message{UserMessage(Text("hello"))}
