package mmsp

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// GrammarChecker judges a public stream event by event: the deltas of an item are contiguous and followed by one .done
// item that says what they said; one stop comes last. The zero value is ready for the first event.
type GrammarChecker struct {
	events   int
	stopped  bool
	open     *kind
	first    Item
	grown    growth
	fidelity Fidelity
}

// CheckStream reads a stream to its end and returns the first violation of the grammar, or the error that the stream
// ended with: a stream that fails honestly is legal up to its error.
func CheckStream(stream iter.Seq2[Event, error]) error {
	var checker GrammarChecker
	for event, err := range stream {
		if err != nil {
			return err
		}
		if err := checker.Event(&event); err != nil {
			return err
		}
	}
	return checker.End()
}

// Event judges the next event. An error says what breaks the grammar; the stream is judged no further.
func (g *GrammarChecker) Event(e *Event) error {
	err := g.check(e)
	if err != nil {
		err = fmt.Errorf("event %d: %w", g.events, err)
	}
	g.events++
	return err
}

// End judges the end of the stream: an error if there was no stop.
func (g *GrammarChecker) End() error {
	if !g.stopped {
		return errors.New("the stream ended without a stop")
	}
	return nil
}

func (g *GrammarChecker) check(e *Event) error {
	if g.stopped {
		return errors.New("an event follows the stop")
	}
	if e.CreatedAt <= 0 {
		return errors.New("created_at is missing")
	}
	switch e.Type {
	case EventStop:
		g.stopped = true
		switch {
		case e.Item.Type != "":
			return errors.New("a stop carries an item")
		case e.Usage == nil:
			return errors.New("a stop carries no usage")
		case !slices.Contains([]FinishReason{FinishStop, FinishLength, FinishToolCall, FinishUnknown}, e.FinishReason):
			return fmt.Errorf("%q is no finish reason", e.FinishReason)
		case g.open != nil:
			return fmt.Errorf("a %s is open at the stop", g.open.delta.Kind())
		}
		return nil
	case EventDelta:
		if e.Usage != nil || e.FinishReason != "" || e.StopDetail != nil {
			return errors.New("a delta carries what belongs on the stop")
		}
		return g.item(&e.Item)
	}
	return fmt.Errorf("%q is no event type", e.Type)
}

func (g *GrammarChecker) item(i *Item) error {
	if f := (struct {
		ItemID    any `json:"item_id"`
		CallIndex any `json:"call_index"`
	}{}); bytes.Contains(i.Fidelity, []byte(`item_id`)) || bytes.Contains(i.Fidelity, []byte(`call_index`)) {
		if i.Fidelity.Decode(&f); f.ItemID != nil || f.CallIndex != nil {
			return errors.New("a fidelity shows a key that is private to the client")
		}
	}
	if k := kindOf(i.Type); k != nil {
		return g.delta(k, i)
	}
	if g.open == nil || i.Type != g.open.done {
		return fmt.Errorf("%q comes without its deltas", i.Type)
	}
	return g.done(i)
}

func (g *GrammarChecker) delta(k *kind, i *Item) error {
	switch {
	case g.open == nil:
		if k.header && (i.Name == "" || i.ToolCallID == "") {
			return errors.New("the first delta of a tool call has no name or no id")
		}
		g.open, g.first = k, *i
	case g.open != k:
		return fmt.Errorf("a %s begins while a %s is open", k.delta.Kind(), g.open.delta.Kind())
	case k.header && (i.Name != "" || i.ToolCallID != ""):
		return errors.New("a later delta of a tool call repeats its name or id")
	}
	if len(i.Fidelity) > 0 {
		if g.fidelity != nil {
			return errors.New("a second delta of an item carries fidelity")
		}
		g.fidelity = i.Fidelity
	}
	k.grow(&g.grown, i)
	return nil
}

func (g *GrammarChecker) done(i *Item) error {
	k, want, fidelity := g.open, g.first, g.fidelity
	k.join(&g.grown, &want)
	g.open, g.first, g.grown, g.fidelity = nil, Item{}, growth{}, nil
	name := string(i.Type)
	switch {
	case len(fidelity) != len(i.Fidelity) && (len(fidelity) == 0 || len(i.Fidelity) == 0), len(fidelity) > 0 && !sameJSON(fidelity, i.Fidelity):
		return fmt.Errorf("the fidelity of the %s is not that of its deltas", name)
	case i.Text != want.Text, i.Thinking != want.Thinking, !bytes.Equal(i.Data, want.Data), !slices.Equal(i.Embedding, want.Embedding):
		return fmt.Errorf("the %s is not the join of its deltas", name)
	case i.MimeType != want.MimeType, i.Name != want.Name, i.ToolCallID != want.ToolCallID:
		return fmt.Errorf("the %s does not begin as its first delta did", name)
	}
	if k.header {
		if want.Arguments == "" {
			want.Arguments = "{}"
		}
		if problem := argumentsProblem(i.Arguments); problem != "" {
			return fmt.Errorf("the arguments of the %s: %s", name, problem)
		}
		if !jsonscan.Valid([]byte(want.Arguments)) || !sameJSON(Fidelity(i.Arguments), Fidelity(want.Arguments)) {
			return fmt.Errorf("the %s is not the join of its deltas", name)
		}
	}
	return nil
}
