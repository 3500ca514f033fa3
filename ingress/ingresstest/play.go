package ingresstest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/ingress"
)

// Play drives a call through a stream as the gateway does and returns what it writes, with heartbeats here and there. The
// ids of tool calls are made a caller's first.
func Play(r *rand.Rand, call ingress.Call, events []mmsp.Event, end error) (stream []byte) {
	events = CallerIDs(events)
	beat := func() {
		if r.IntN(8) == 0 {
			stream = call.Heartbeat(stream)
		}
	}
	for _, event := range events {
		beat()
		if event.Type == mmsp.EventDelta {
			stream = call.Event(stream, &event)
		}
	}
	beat()
	answer, err := Answer(events, end)
	if err != nil {
		return call.Fail(stream, ingress.Explain(err))
	}
	if keeper, ok := call.(ingress.Keeper); ok {
		_ = keeper.Keep(context.Background(), answer) // the turn succeeds all the same
	}
	return call.Stop(stream, answer)
}

// Answer is what a stream's Stop or Whole is given, or the error that Fail is told of. A turn of nothing is an answer, and so
// is one whose last call was cut, which stands in it as far as it came.
func Answer(events []mmsp.Event, end error) (*mmsp.Message, error) {
	answer := &mmsp.Message{Role: mmsp.RoleAssistant}
	var cut mmsp.Item
	for _, event := range events {
		switch {
		case event.Type == mmsp.EventStop:
			answer.Usage, answer.FinishReason, answer.StopDetail = event.Usage, event.FinishReason, event.StopDetail
		case event.Item.Type == mmsp.ToolCallDelta && cut.Type == "":
			cut = event.Item
		case event.Item.Type == mmsp.ToolCallDelta:
			cut.Arguments += event.Item.Arguments
		case !event.Item.Type.IsDelta():
			answer.ContentItems, cut = append(answer.ContentItems, event.Item), mmsp.Item{}
		}
	}
	var (
		empty     *mmsp.EmptyResponseError
		arguments *mmsp.ToolCallArgumentParseError
	)
	switch {
	case errors.As(end, &empty):
		answer.Usage, answer.FinishReason, answer.StopDetail = empty.Usage, empty.FinishReason, empty.StopDetail
	case errors.As(end, &arguments) && ingress.Cut(arguments):
		answer.ContentItems = append(answer.ContentItems, cut)
		answer.Usage, answer.FinishReason, answer.StopDetail = arguments.Usage, arguments.FinishReason, arguments.StopDetail
	case end != nil:
		return nil, end
	}
	return answer, nil
}

// CallerIDs returns the events with ids of tool calls as the gateway makes them for callers: each once, of letters, digits,
// _ and -.
func CallerIDs(events []mmsp.Event) []mmsp.Event {
	events = slices.Clone(events)
	id, calls := "", 0
	for i := range events {
		item := &events[i].Item
		if item.ToolCallID == "" {
			continue
		}
		if item.Type == mmsp.ToolCallDelta { // only the first of a call has one
			calls++
			id = fmt.Sprintf("call_%d", calls)
		}
		item.ToolCallID = id
	}
	return events
}
