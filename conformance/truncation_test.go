package conformance

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/prism-shadow/mmsp-go"
)

const (
	cutsPerStream  = 200     // at random bytes, and at most as many after events
	bytesPerStream = 1 << 20 // read in all cuts of one stream; fewer cuts are made of longer streams

	// With MMSP_TRUNCATION=full every stream but the longest is cut after each of its events and at all the bytes.
	longest = 300 << 10
)

// TestTruncation cuts every recorded stream after its events and at random bytes. What comes out before the cut stands
// as it is in the whole stream; only a stream with its terminal event ends in a stop.
func TestTruncation(t *testing.T) {
	recordings := load(t)
	for _, c := range clients {
		provider := c.provider(t, "http://provider.test/v1", canned{})
		for _, r := range recordings {
			if r.protocol != c.protocol || !r.stream {
				continue
			}
			t.Run(c.name+"/"+r.path, func(t *testing.T) {
				t.Parallel()
				whole := run(withAnswer(t, r.answer()), provider)
				terminal, failed := len(r.body)+1, len(r.body)+1 // where the first of these events ends
				for _, event := range slices.Backward(r.events) {
					if r.protocol.terminal(event.object) {
						terminal = event.end
					}
					if r.protocol.failed(event.object) {
						failed = event.end
					}
				}
				for _, cut := range r.cuts() {
					for _, end := range []error{nil, io.ErrUnexpectedEOF} {
						answer := r.answer()
						answer.body, answer.end = r.body[:cut], end
						o := run(withAnswer(t, answer), provider)
						if problem := judgeCut(&o, &whole, cut >= terminal, cut >= failed, end == nil); problem != nil {
							t.Fatalf("cut at byte %d of %d (terminal event ends at %d, then %v): %v", cut, len(r.body), terminal, end, problem)
						}
					}
				}
			})
		}
	}
}

// cuts are the places to cut a stream at: after events and at random bytes.
func (r *recording) cuts() (cuts []int) {
	random := rand.New(rand.NewPCG(3, uint64(len(r.body))))
	count := min(cutsPerStream, bytesPerStream/max(1, 2*len(r.body)))
	events := slices.Clone(r.events)
	full := os.Getenv("MMSP_TRUNCATION") == "full" && len(r.body) <= longest
	if full {
		count = cutsPerStream
	}
	if len(events) > count && !full { // the first, the last, and some in between
		keep := count / 3
		middle := events[keep : len(events)-keep]
		random.Shuffle(len(middle), func(i, j int) { middle[i], middle[j] = middle[j], middle[i] })
		events = slices.Concat(events[:keep], middle[:count-2*keep], events[len(events)-keep:])
	}
	for _, event := range events {
		cuts = append(cuts, event.end)
	}
	for range count {
		cuts = append(cuts, random.IntN(len(r.body)))
	}
	slices.Sort(cuts)
	return slices.Compact(cuts)
}

// judgeCut says what is wrong with the stream of a cut body.
func judgeCut(o, whole *outcome, terminal, failed, clean bool) error {
	var incomplete *mmsp.IncompleteStreamError
	switch {
	case o.broken != nil:
		return o.broken
	case o.stop != nil && !terminal:
		return errors.New("a stop without a terminal event")
	case o.err != nil && !terminal && !failed && !errors.As(o.err, &incomplete) && !sameError(o.err, whole.err):
		return fmt.Errorf("want an IncompleteStreamError, got %T: %w", o.err, o.err)
	case o.err != nil && terminal && clean && whole.stop != nil:
		return fmt.Errorf("the terminal event is there, and yet: %T: %w", o.err, o.err)
	case o.stop == nil && !terminal:
		// All that came out is the beginning of the whole stream.
		for i := range o.events {
			if i >= len(whole.events) || !sameEvent(&o.events[i], &whole.events[i]) {
				return fmt.Errorf("event %d is %s", i, o.events[i].AppendJSON(nil))
			}
		}
	}
	return nil
}

// sameError: the whole stream fails before its end and for the same reason.
func sameError(a, b error) bool { return b != nil && a.Error() == b.Error() }

func sameEvent(a, b *mmsp.Event) bool {
	x, y := &a.Item, &b.Item
	return a.Type == b.Type && x.Type == y.Type && x.Text == y.Text && x.Thinking == y.Thinking && x.Name == y.Name &&
		x.Arguments == y.Arguments && x.ToolCallID == y.ToolCallID && string(x.Fidelity) == string(y.Fidelity)
}
