package mmsp_test

import (
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	. "github.com/prism-shadow/mmsp-go"
)

func streamOf(events []Event, err error) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		for _, event := range events {
			if !yield(event, nil) {
				return
			}
		}
		if err != nil {
			yield(Event{}, err)
		}
	}
}

func events(items ...Item) (list []Event) {
	for _, item := range items {
		list = append(list, Event{Type: EventDelta, Item: item, CreatedAt: 1})
	}
	return append(list, Event{Type: EventStop, FinishReason: FinishStop, Usage: &Usage{}, CreatedAt: 1})
}

// good has every kind of item, at 0 to 11, and a stop.
func good() []Event {
	return events(
		Item{Type: ThinkingDelta, Thinking: "Plan"}, Item{Type: ThinkingDelta, Fidelity: Fidelity(`{"signature":"s","n":1}`)},
		Item{Type: ThinkingDone, Thinking: "Plan", Fidelity: Fidelity(`{"n":1, "signature":"s"}`)},
		Item{Type: ToolCallDelta, Name: "f", ToolCallID: "c1", Arguments: `{"a":`}, Item{Type: ToolCallDelta, Arguments: `1.0}`},
		Item{Type: ToolCallDone, Name: "f", ToolCallID: "c1", Arguments: `{"a": 1}`},
		Item{Type: InlineDataDelta, Data: []byte("ab"), MimeType: "image/png"}, Item{Type: InlineDataDone, Data: []byte("ab"), MimeType: "image/png"},
		Item{Type: EmbeddingDelta, Embedding: []float64{1, 2}}, Item{Type: EmbeddingDone, Embedding: []float64{1, 2}},
		Item{Type: TextDelta, Text: "Go"}, Item{Type: TextDone, Text: "Go"},
	)
}

func TestCheckStream(t *testing.T) {
	for name, stream := range map[string][]Event{
		"every kind":  good(),
		"only a stop": events(),
		"a call without arguments": events(
			Item{Type: ToolCallDelta, Name: "f", ToolCallID: "c1"}, Item{Type: ToolCallDone, Name: "f", ToolCallID: "c1", Arguments: "{}"},
		),
		"image thoughts": events(Item{Type: InlineThinkingDelta, MimeType: "image/png"}, Item{Type: InlineThinkingDone, MimeType: "image/png"}),
	} {
		if err := CheckStream(streamOf(stream, nil)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	failure := errors.New("gone")
	if err := CheckStream(streamOf(good()[:4], failure)); err != failure {
		t.Errorf("an honest failure: %v", err)
	}
	if err := CheckStream(streamOf(good()[:12], nil)); err == nil {
		t.Error("no stop is no violation")
	}
	if err := CheckStream(streamOf(nil, nil)); err == nil {
		t.Error("no event is no violation")
	}
}

func TestGrammarRefuses(t *testing.T) {
	at := func(n int, change func(*Event)) func([]Event) []Event {
		return func(list []Event) []Event { change(&list[n]); return list }
	}
	item := func(n int, change func(*Item)) func([]Event) []Event {
		return at(n, func(e *Event) { change(&e.Item) })
	}
	without := func(from, to int) func([]Event) []Event {
		return func(list []Event) []Event { return slices.Delete(list, from, to) }
	}
	insert := func(n int, e Event) func([]Event) []Event {
		return func(list []Event) []Event { return slices.Insert(list, n, e) }
	}
	const stop = 12
	for name, mutate := range map[string]func([]Event) []Event{
		"an event after the stop":         insert(stop+1, good()[10]),
		"two stops":                       insert(stop, good()[stop]),
		"a stop with an item":             item(stop, func(i *Item) { i.Type = TextDelta }),
		"a stop without usage":            at(stop, func(e *Event) { e.Usage = nil }),
		"a stop without a finish reason":  at(stop, func(e *Event) { e.FinishReason = "" }),
		"an unknown finish reason":        at(stop, func(e *Event) { e.FinishReason = "end_turn" }),
		"a stop within an item":           without(11, 12),
		"a delta with usage":              at(10, func(e *Event) { e.Usage = &Usage{} }),
		"a delta with a finish reason":    at(10, func(e *Event) { e.FinishReason = FinishStop }),
		"a delta with a stop detail":      at(10, func(e *Event) { e.StopDetail = &StopDetail{} }),
		"a delta without an item":         at(10, func(e *Event) { e.Item = Item{} }),
		"an unknown event type":           at(10, func(e *Event) { e.Type = "ping" }),
		"no time":                         at(10, func(e *Event) { e.CreatedAt = 0 }),
		"no time on the stop":             at(stop, func(e *Event) { e.CreatedAt = 0 }),
		"a kind that does not stream":     item(10, func(i *Item) { i.Type = ToolResultDone }),
		"a type from before 0.5.0":        item(10, func(i *Item) { i.Type = "text" }),
		"a done without deltas":           without(10, 11),
		"a done of another kind":          item(11, func(i *Item) { i.Type = ThinkingDone }),
		"a done twice":                    insert(12, good()[11]),
		"a delta of another kind between": insert(1, good()[10]),
		"a call without a name":           item(3, func(i *Item) { i.Name = "" }),
		"a call without an id":            item(3, func(i *Item) { i.ToolCallID = "" }),
		"a name again":                    item(4, func(i *Item) { i.Name = "f" }),
		"an id again":                     item(4, func(i *Item) { i.ToolCallID = "c1" }),
		"another name at the end":         item(5, func(i *Item) { i.Name = "g" }),
		"another id at the end":           item(5, func(i *Item) { i.ToolCallID = "c2" }),
		"other arguments at the end":      item(5, func(i *Item) { i.Arguments = `{"a":2}` }),
		"arguments that are no object":    item(5, func(i *Item) { i.Arguments = `[]` }),
		"no arguments":                    item(5, func(i *Item) { i.Arguments = `` }),
		"fragments that are no JSON":      item(4, func(i *Item) { i.Arguments = `1` }),
		"fidelity twice":                  item(0, func(i *Item) { i.Fidelity = good()[1].Item.Fidelity }),
		"fidelity lost at the end":        item(2, func(i *Item) { i.Fidelity = nil }),
		"fidelity new at the end":         item(11, func(i *Item) { i.Fidelity = Fidelity(`{"a":1}`) }),
		"another fidelity at the end":     item(2, func(i *Item) { i.Fidelity = Fidelity(`{"signature":"t","n":1}`) }),
		"an item id":                      item(1, func(i *Item) { i.Fidelity = Fidelity(`{"signature":"s","n":1,"item_id":"7"}`) }),
		"an item id at the end":           item(2, func(i *Item) { i.Fidelity = Fidelity(`{"signature":"s","n":1,"item_id":"7"}`) }),
		"a call index":                    item(1, func(i *Item) { i.Fidelity = Fidelity(`{"call_index":0}`) }),
		"other text at the end":           item(11, func(i *Item) { i.Text = "Goo" }),
		"other thinking at the end":       item(2, func(i *Item) { i.Thinking = "" }),
		"other bytes at the end":          item(7, func(i *Item) { i.Data = []byte("ac") }),
		"another MIME type at the end":    item(7, func(i *Item) { i.MimeType = "image/jpeg" }),
		"another vector at the end":       item(9, func(i *Item) { i.Embedding = []float64{1} }),
		"a delta lost":                    without(4, 5),
		"items out of order":              func(list []Event) []Event { list[2], list[3] = list[3], list[2]; return list },
	} {
		t.Run(name, func(t *testing.T) {
			err := CheckStream(streamOf(mutate(good()), nil))
			if err == nil || !strings.HasPrefix(err.Error(), "event ") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestGrammarTakesWhatTheBaseMakes(t *testing.T) {
	clean := 0
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 1))
		var steps []step
		for range random.IntN(10) {
			s := says(randomDeltas(random, random.IntN(5))...)
			s.event.More = random.IntN(2) == 0
			steps = append(steps, s)
		}
		err := CheckStream(NewClient(&fakeProvider{steps: append(steps, ends(FinishStop))}).StreamingResponse(t.Context(), hello, nil))
		switch kind := fmt.Sprintf("%T", err); kind {
		case "<nil>":
			clean++
		case protocolError, argumentError, "*mmsp.EmptyResponseError":
		default:
			t.Errorf("seed %d: %s: %v", seed, kind, err)
		}
	}
	if clean < 200 {
		t.Errorf("only %d streams came to their stop", clean)
	}
}
