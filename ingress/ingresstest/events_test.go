package ingresstest

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"unicode/utf8"

	"github.com/prism-shadow/mmsp-go"
)

// Every stream passes the grammar up to its end, and among them is everything that this package promises.
func TestEvents(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(5000) {
		events, end := Events(rand.New(rand.NewPCG(seed, 0)))
		if again, _ := Events(rand.New(rand.NewPCG(seed, 0))); !reflect.DeepEqual(events, again) {
			t.Fatalf("seed %d: two streams of one source differ", seed)
		}
		if err := mmsp.CheckStream(Stream(events, end)); err != end {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := mmsp.CheckStream(Stream(CallerIDs(events), end)); err != end {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if answer, err := Answer(events, end); err == nil && (answer.Usage == nil || answer.FinishReason == "") {
			t.Fatalf("seed %d: an answer without its end", seed)
		} else if err == nil && end != nil {
			seen["answer in spite of an error"]++
		}
		if end != nil {
			seen[fmt.Sprintf("%T", end)]++
		}
		deltas := 0
		for _, e := range events {
			if e.Type == mmsp.EventStop {
				seen["finish "+string(e.FinishReason)]++
				if e.StopDetail != nil {
					seen["detail "+e.StopDetail.Kind]++
				}
				continue
			}
			for _, s := range []string{e.Item.Text, e.Item.Thinking, e.Item.Arguments, e.Item.Name, e.Item.ToolCallID} {
				if !utf8.ValidString(s) {
					t.Fatalf("seed %d: %q", seed, s)
				}
			}
			kind := e.Item.Type.Kind()
			seen[string(e.Item.Type)]++
			if !e.Item.Type.IsDelta() {
				seen[fmt.Sprintf("%s of %d", kind, min(deltas, 3))]++
				deltas = 0
				continue
			}
			if len(e.Item.Fidelity) > 0 {
				seen[fmt.Sprintf("%s fidelity at %d", kind, min(deltas, 1))]++
			}
			deltas++
		}
	}
	var lacks []string
	for _, want := range []string{
		"text.done", "thinking.done", "tool_call.done", "inline_data.done", "inline_thinking.done", "embedding.done",
		"text of 1", "text of 3", "thinking of 3", "tool_call of 1", "tool_call of 3", "inline_data of 1", "inline_data of 3",
		"text fidelity at 0", "text fidelity at 1", "thinking fidelity at 0", "thinking fidelity at 1", "tool_call fidelity at 0", "tool_call fidelity at 1",
		"finish stop", "finish length", "finish tool_call", "finish unknown",
		"detail filter", "detail refusal", "detail pause", "detail context", "detail stop_sequence", "detail malformed_call",
		"*mmsp.UnsupportedParameterError", "*mmsp.UnsupportedOperationError", "*mmsp.InvalidRequestError", "*mmsp.AuthenticationError",
		"*mmsp.NotFoundError", "*mmsp.EmptyResponseError", "*mmsp.IncompleteStreamError", "*mmsp.StreamProtocolError",
		"*mmsp.ToolCallArgumentParseError", "*mmsp.UpstreamError", "answer in spite of an error",
	} {
		if seen[want] == 0 {
			lacks = append(lacks, want)
		}
	}
	if slices.Sort(lacks); lacks != nil {
		t.Errorf("no stream has %v; there are %v", lacks, seen)
	}
}
