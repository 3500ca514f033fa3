package mmsp_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"

	. "github.com/prism-shadow/mmsp-go"
)

func historyOf(s *Session) (lines []string) {
	for _, m := range s.History() {
		lines = append(lines, string(m.Role)+": "+showAll(m.ContentItems))
	}
	return lines
}

func TestSessionRecordsTurns(t *testing.T) {
	for _, finish := range []FinishReason{FinishStop, FinishLength, FinishToolCall, FinishUnknown} {
		t.Run(string(finish), func(t *testing.T) {
			provider := &fakeProvider{steps: []step{says(text("", "one"), call("", "f", "c1", "{}")), ends(finish)}}
			session := NewClient(provider).NewSession()
			for turn := range 3 {
				stop := false
				for event, err := range session.StreamingResponse(t.Context(), UserMessage(Item{Type: "text", Text: "hi"}), nil) {
					if err != nil {
						t.Fatal(err)
					}
					stop = event.Type == EventStop
					if want := 2 * turn; len(session.History()) != want && !stop || stop && len(session.History()) != want+2 {
						t.Errorf("turn %d: %d messages at a %s", turn, len(session.History()), event.Type)
					}
					if stop {
						break // a consumer that stops here has the turn
					}
				}
				if len(provider.messages) != 2*turn+1 {
					t.Errorf("turn %d sent %d messages", turn, len(provider.messages))
				}
			}
			if got := historyOf(session); len(got) != 6 || got[4] != `user: text.done "hi"` || got[5] != "assistant: text.done \"one\"; tool_call.done f/c1 `{}`" {
				t.Errorf("got %q", got)
			}
			user, answer := session.History()[0], session.History()[1]
			if user.CreatedAt == 0 || answer.CreatedAt == 0 || answer.FinishReason != finish || answer.Usage.Total() != 5 {
				t.Errorf("got %+v and %+v", user, answer)
			}
		})
	}
}

func TestSessionForgetsTurnsThatFail(t *testing.T) {
	cause := errors.New("the user left")
	for name, steps := range map[string][]step{
		"provider":  {says(text("", "a")), {err: io.EOF}},
		"empty":     {ends(FinishStop, think("", "a"))},
		"arguments": {ends(FinishStop, call("", "f", "c1", "{"))},
		"no finish": {says(text("", "a"))},
		"abort":     {says(text("", "a")), ends(FinishStop)},
		"leaves":    {says(text("", "a")), ends(FinishStop)},
		"panics":    {says(text("", "a")), ends(FinishStop)},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			session := NewClient(&fakeProvider{steps: steps}).NewSession()
			session.SetHistory(hello)
			func() {
				defer func() { _ = recover() }()
				for event := range session.StreamingResponse(ctx, hello[0], nil) {
					switch {
					case name == "abort":
						cancel(cause)
					case name == "leaves" && event.Item.Type == TextDone:
						return
					case name == "panics" && event.Item.Type == TextDone:
						panic(name)
					}
				}
			}()
			if got := historyOf(session); len(got) != 1 {
				t.Errorf("the history became %q", got)
			}
		})
	}
}

func TestSessionHistoryIsItsOwn(t *testing.T) {
	session := NewClient(&fakeProvider{}).NewSession()
	given := []Message{UserMessage(Item{Type: "text", Text: "old"}, Item{Type: "partial_tool_call"}), UserMessage(Text("current"))}
	session.SetHistory(given)
	if got := historyOf(session); len(got) != 2 || got[0] != `user: text.done "old"` {
		t.Errorf("got %q", got)
	}
	if given[0].ContentItems[0].Type != "text" || len(given[0].ContentItems) != 2 {
		t.Errorf("the caller's messages became %+v", given)
	}
	given[1] = UserMessage(Text("changed"))
	session.History()[1] = UserMessage(Text("changed"))
	if got := historyOf(session); got[1] != `user: text.done "current"` {
		t.Errorf("got %q", got)
	}
	session.Clear()
	if got := session.History(); len(got) != 0 {
		t.Errorf("got %v", got)
	}
}

func TestSessionOverAForwarder(t *testing.T) {
	provider := &forwarder{events: []Event{
		{Type: EventDelta, Item: Item{Type: TextDelta, Text: "a"}},
		{Type: EventDelta, Item: Item{Type: TextDone, Text: "a"}},
		{Type: EventStop, FinishReason: FinishStop, Usage: &Usage{}, CreatedAt: 9},
	}}
	session := NewClient(provider).NewSession()
	if _, err := read(session.StreamingResponse(t.Context(), hello[0], nil)); err != nil {
		t.Fatal(err)
	}
	if got := historyOf(session); len(got) != 2 || got[1] != `assistant: text.done "a"` || session.History()[1].CreatedAt != 9 {
		t.Errorf("got %q", got)
	}
}

func TestSessionIsReadWhileItStreams(t *testing.T) {
	session := NewClient(&fakeProvider{steps: long}).NewSession()
	var readers sync.WaitGroup
	reading, stop := context.WithCancel(t.Context())
	for range 3 {
		readers.Go(func() {
			for reading.Err() == nil {
				if n := len(session.History()); n%2 != 0 {
					t.Errorf("half a turn is in the history: %d messages", n)
				}
			}
		})
	}
	for range 50 {
		if _, err := read(session.StreamingResponse(t.Context(), hello[0], nil)); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	readers.Wait()
	if n := len(session.History()); n != 100 {
		t.Errorf("got %d messages", n)
	}
}
