package mmsp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/prism-shadow/mmsp-go"
)

func TestStreamingResponse(t *testing.T) {
	const (
		empty      = "*mmsp.EmptyResponseError"
		incomplete = "*mmsp.IncompleteStreamError"
	)
	usage := func(u Usage) step { return step{event: UniEvent{Type: EventStop, Usage: &u}} }
	finish := func(f FinishReason, deltas ...Delta) step {
		return step{event: UniEvent{Type: EventStop, FinishReason: f, Deltas: deltas}}
	}
	upstream := &UpstreamError{Client: "FakeClient", Message: "boom"}
	last := ends(FinishStop, text("", "a"))
	last.event.Last = true

	for _, c := range []struct {
		name  string
		steps []step
		want  []string
		err   string // the error's type and text, as far as they matter
	}{
		{
			"text",
			[]step{says(text("1", "Go")), says(text("1", "od")), ends(FinishStop)},
			[]string{`text.delta "Go"`, `text.delta "od"`, `text.done "Good"`, "stop stop - 3 - 2"},
			"",
		},
		{
			"several items of one event",
			[]step{says(think("0", "hm"), text("1", "a"), call("2", "f", "c1", "{}")), ends(FinishToolCall)},
			[]string{
				`thinking.delta "hm"`, `thinking.done "hm"`, `text.delta "a"`, `text.done "a"`, "tool_call.delta f/c1 `{}`", "tool_call.done f/c1 `{}`",
				"stop tool_call - 3 - 2",
			},
			"",
		},
		{
			"usage in pieces overwrites field by field",
			[]step{
				usage(Usage{CachedTokens: new(int64(2)), PromptTokens: new(int64(8)), ResponseTokens: new(int64(1))}), says(text("", "a")),
				usage(Usage{ResponseTokens: new(int64(5))}), finish(FinishLength), finish(""), says(),
			},
			[]string{`text.delta "a"`, `text.done "a"`, "stop length 2 8 - 5"},
			"",
		},
		{
			"a zero overwrites too",
			[]step{says(text("", "a")), usage(Usage{ThoughtsTokens: new(int64(9))}), usage(Usage{ThoughtsTokens: new(int64(0))}), finish(FinishStop)},
			[]string{`text.delta "a"`, `text.done "a"`, "stop stop - - 0 -"},
			"",
		},
		{
			"usage without a number",
			[]step{says(text("", "a")), usage(Usage{}), finish(FinishStop)},
			[]string{`text.delta "a"`, `text.done "a"`, "stop stop - - - -"},
			"",
		},
		{
			"the last finish reason counts, and may come with content",
			[]step{finish(FinishStop, text("", "a")), finish(FinishToolCall), usage(Usage{})},
			[]string{`text.delta "a"`, `text.done "a"`, "stop tool_call - - - -"},
			"",
		},
		{
			"a stop detail",
			[]step{
				says(text("", "a")),
				{event: UniEvent{Type: EventStop, FinishReason: FinishUnknown, StopDetail: &StopDetail{Kind: "refusal"}}},
				usage(Usage{}),
			},
			[]string{`text.delta "a"`, `text.done "a"`, "stop unknown - - - - refusal"},
			"",
		},
		{
			"what follows the last event is not read",
			[]step{last, {err: io.ErrUnexpectedEOF}},
			[]string{`text.delta "a"`, `text.done "a"`, "stop stop - 3 - 2"},
			"",
		},

		{"no finish reason", []step{says(text("", "a")), usage(Usage{})}, []string{`text.delta "a"`}, incomplete + ": no finish reason"},
		{"no usage", []step{says(text("", "a")), finish(FinishStop)}, []string{`text.delta "a"`}, incomplete + ": no usage"},
		{"nothing", nil, nil, incomplete},
		{"no content", []step{ends(FinishStop)}, nil, empty + `: (finish reason "stop")`},
		{
			"thinking alone",
			[]step{says(think("0", "hm"), imageThought("1", "x")), ends(FinishLength)},
			[]string{`thinking.delta "hm"`, `thinking.done "hm"`, `inline_thinking.delta image/png "x"`, `inline_thinking.done image/png "x"`},
			empty + `: (finish reason "length")`,
		},
		{
			"arguments that are cut",
			[]step{says(text("", "a"), call("", "f", "c1", `{"q":`)), ends(FinishLength)},
			[]string{`text.delta "a"`, `text.done "a"`, "tool_call.delta f/c1 `{\"q\":`"},
			argumentError,
		},
		{
			"arguments that are cut within the last event",
			[]step{ends(FinishLength, call("", "f", "c1", `{`), text("", "a"), text("", "b"))},
			[]string{"tool_call.delta f/c1 `{`"},
			argumentError,
		},
		{
			"a failure of the provider",
			[]step{says(text("", "a")), {err: fmt.Errorf("reading: %w", upstream)}},
			[]string{`text.delta "a"`},
			"*fmt.wrapError: reading: boom",
		},
		{
			"a failure while an event waits",
			[]step{buffered(says(text("", "a"))), {err: upstream}},
			[]string{`text.delta "a"`},
			"*mmsp.UpstreamError",
		},
		{
			"a broken delta after good ones",
			[]step{says(text("", "a"), fragment("", Text("b")), text("", "c"))},
			[]string{`text.delta "a"`},
			protocolError,
		},
		{
			"a delta event with a finish reason",
			[]step{{event: UniEvent{Type: EventDelta, FinishReason: FinishStop, Deltas: []Delta{text("", "a")}}}},
			nil, protocolError,
		},
		{"a delta event with usage", []step{says(text("", "a")), {event: UniEvent{Type: EventDelta, Usage: &Usage{}}}}, []string{`text.delta "a"`}, protocolError},
	} {
		t.Run(c.name, func(t *testing.T) {
			provider := &fakeProvider{steps: c.steps}
			got, err := read(NewClient(provider).StreamingResponse(t.Context(), hello, nil))
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(c.want, "\n  "))
			}
			kind, message, _ := strings.Cut(c.err, ": ")
			if c.err != "" && (fmt.Sprintf("%T", err) != kind || !strings.Contains(err.Error(), message)) || c.err == "" && err != nil {
				t.Errorf("got error %T: %v, want %q", err, err, c.err)
			}
			if provider.done != 1 || provider.ended != 1 {
				t.Errorf("%d loops began and %d ended, want one", provider.done, provider.ended)
			}
		})
	}
}

func TestErrorsKeepFinishReasonAndUsage(t *testing.T) {
	detail := &StopDetail{Kind: "context"}
	end := ends(FinishLength)
	end.event.StopDetail = detail
	_, err := read(NewClient(&fakeProvider{steps: []step{says(call("", "f", "c1", `{"q":`)), end}}).StreamingResponse(t.Context(), hello, nil))
	var arguments *ToolCallArgumentParseError
	if !errors.As(err, &arguments) || arguments.FinishReason != FinishLength || !reflect.DeepEqual(arguments.Usage, tokens(3, 2)) || arguments.StopDetail != detail {
		t.Errorf("got %+v", err)
	}
	_, err = read(NewClient(&fakeProvider{steps: []step{says(think("", "hm")), end}}).StreamingResponse(t.Context(), hello, nil))
	want := &EmptyResponseError{Client: "FakeClient", FinishReason: FinishLength, Usage: tokens(3, 2), StopDetail: detail}
	if !reflect.DeepEqual(err, want) {
		t.Errorf("got %+v, want %+v", err, want)
	}
}

func TestNothingGoesOutForARequestThatCannotBeSent(t *testing.T) {
	refusal := &UnsupportedParameterError{Client: "FakeClient", Parameter: "temperature"}
	for _, c := range []struct {
		name     string
		messages []Message
		config   Config
		prepare  func(context.Context) error
		err      string
		prepared int
	}{
		{"a message without a role", []Message{{}}, Config{}, nil, "*mmsp.InvalidRequestError", 0},
		{"a delta in a message", []Message{UserMessage(Item{Type: TextDelta})}, Config{}, nil, "*mmsp.InvalidRequestError", 0},
		{"a trace outside the folder", hello, Config{TraceID: "../x"}, nil, "*mmsp.UnsupportedParameterError", 0},
		{"a parameter that the client refuses", hello, Config{}, func(context.Context) error { return refusal }, "*mmsp.UnsupportedParameterError", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			provider := &fakeProvider{steps: []step{ends(FinishStop, text("", "a"))}, prepare: c.prepare}
			got, err := read(NewClient(provider).StreamingResponse(t.Context(), c.messages, &c.config))
			if fmt.Sprintf("%T", err) != c.err || len(got) > 0 {
				t.Errorf("got %v and %T: %v", got, err, err)
			}
			if provider.prepared != c.prepared || provider.done != 0 {
				t.Errorf("prepared %d and sent %d times", provider.prepared, provider.done)
			}
		})
	}
}

func TestMessagesAreStampedOnCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := time.Now().UnixMilli()
		messages := []Message{{Role: RoleUser, CreatedAt: 5, ContentItems: []Item{{Type: "text", Text: "old"}}}, UserMessage(Text("new"))}
		before, _ := ParseMessages(marshalMessages(messages), true)
		provider := &fakeProvider{steps: []step{{before: func(context.Context) { time.Sleep(time.Second) }, event: ends(FinishStop, text("", "a")).event}}}
		var stamps []int64
		for event, err := range NewClient(provider).StreamingResponse(t.Context(), messages, nil) {
			if err != nil {
				t.Fatal(err)
			}
			stamps = append(stamps, event.CreatedAt)
		}
		if !reflect.DeepEqual(messages, before) {
			t.Errorf("the caller's messages became %+v", messages)
		}
		if sent := provider.messages; sent[0].CreatedAt != 5 || sent[1].CreatedAt != now || sent[0].ContentItems[0].Type != TextDone {
			t.Errorf("sent %+v", sent)
		}
		if later := now + 1000; !slices.Equal(stamps, []int64{later, later, later}) {
			t.Errorf("events are stamped %v, want %d", stamps, later)
		}
	})
}

func marshalMessages(messages []Message) []byte {
	list := []byte{'['}
	for i := range messages {
		if i > 0 {
			list = append(list, ',')
		}
		list = messages[i].AppendJSON(list)
	}
	return append(list, ']')
}

func TestAbort(t *testing.T) {
	cause := errors.New("the user left")
	for _, c := range []struct {
		name   string
		cancel string // the event at which the consumer cancels; "first": before it begins
		steps  func(cancel func()) []step
		want   []string
		sent   int
	}{
		{"before it begins", "first", func(func()) []step { return []step{ends(FinishStop, text("", "a"))} }, nil, 0},
		{
			"between two events", `text.delta "a"`, func(func()) []step { return []step{says(text("", "a")), says(text("", "b"))} },
			[]string{`text.delta "a"`},
			1,
		},
		{
			"between two events that are buffered", `text.delta "a"`,
			func(func()) []step {
				return []step{buffered(says(text("", "a"))), buffered(says(text("", "b"))), buffered(says(text("", "c"))), says(text("", "d"))}
			},
			// b was read when a went out.
			[]string{`text.delta "a"`, `text.delta "b"`},
			1,
		},
		{
			"while the provider is silent", "",
			func(cancel func()) []step {
				return []step{says(text("", "a")), {before: func(ctx context.Context) { time.AfterFunc(time.Second, cancel); <-ctx.Done() }, err: context.Canceled}}
			},
			[]string{`text.delta "a"`},
			1,
		},
		{
			"while the provider is silent, and it just ends", "",
			func(cancel func()) []step {
				return []step{
					ends(FinishStop, text("", "a")),
					{before: func(ctx context.Context) { time.AfterFunc(time.Second, cancel); <-ctx.Done() }, event: UniEvent{Type: EventStop}},
				}
			},
			[]string{`text.delta "a"`},
			1,
		},
		{
			"with the last delta", `text.delta "a"`, func(func()) []step { return []step{ends(FinishStop, text("", "a"))} },
			[]string{`text.delta "a"`},
			1,
		},
		{
			"with the last item", `text.done "a"`, func(func()) []step { return []step{ends(FinishStop, text("", "a"))} },
			[]string{`text.delta "a"`, `text.done "a"`},
			1,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				provider := &fakeProvider{steps: c.steps(func() { cancel(cause) })}
				dir := t.TempDir()
				client := NewClient(provider).WithTracer(NewTracer(dir))
				if c.cancel == "first" {
					cancel(cause)
				}
				var got []string
				var failure error
				for event, err := range client.StreamingResponse(ctx, hello, &Config{TraceID: "x"}) {
					if failure = err; err != nil {
						continue
					}
					got = append(got, showEvent(&event))
					if got[len(got)-1] == c.cancel {
						cancel(cause)
					}
				}
				if !errors.Is(failure, cause) || !slices.Equal(got, c.want) {
					t.Errorf("got %v and %v, want %v and the cause", got, failure, c.want)
				}
				if provider.prepared != c.sent || provider.done != c.sent || provider.ended != c.sent {
					t.Errorf("prepared %d, began %d, ended %d, want %d", provider.prepared, provider.done, provider.ended, c.sent)
				}
				if files, _ := os.ReadDir(dir); len(files) > 0 {
					t.Errorf("traced %v", files)
				}
			})
		})
	}
}

func TestAbortWhilePreparing(t *testing.T) {
	cause := errors.New("the user left")
	ctx, cancel := context.WithCancelCause(t.Context())
	provider := &fakeProvider{prepare: func(ctx context.Context) error {
		cancel(cause)
		return fmt.Errorf("fetching a picture: %w", ctx.Err())
	}}
	if _, err := read(NewClient(provider).StreamingResponse(ctx, hello, nil)); !errors.Is(err, cause) || provider.done != 0 {
		t.Errorf("got %v, sent %d times", err, provider.done)
	}
}

// long is a stream with every way for an event to go out: at once, held, several of one wire event, at the end.
var long = []step{
	says(text("", "a")), buffered(says(text("", "b"), think("", "c"))), buffered(says()), says(think("", "d")), says(),
	buffered(says(call("", "f", "c1", "{}"))), ends(FinishToolCall),
}

func TestConsumerLeaves(t *testing.T) {
	whole, err := read(NewClient(&fakeProvider{steps: long}).StreamingResponse(t.Context(), hello, nil))
	if err != nil || len(whole) != 9 {
		t.Fatalf("got %q, %v", whole, err)
	}
	for at := range whole {
		t.Run(fmt.Sprint("breaks at event ", at), func(t *testing.T) {
			provider := &fakeProvider{steps: long}
			seen := 0
			for range NewClient(provider).StreamingResponse(t.Context(), hello, nil) {
				if seen++; seen > at {
					break
				}
			}
			if provider.ended != 1 {
				t.Error("the provider's loop did not end")
			}
		})
		t.Run(fmt.Sprint("panics at event ", at), func(t *testing.T) {
			provider := &fakeProvider{steps: long}
			defer func() {
				if r := recover(); r != "consumer" || provider.ended != 1 {
					t.Errorf("recovered %v, %d loops ended", r, provider.ended)
				}
			}()
			seen := 0
			for range NewClient(provider).StreamingResponse(t.Context(), hello, nil) {
				if seen++; seen > at {
					panic("consumer")
				}
			}
		})
	}
}

func TestStreamsAreSingleUse(t *testing.T) {
	provider := &fakeProvider{steps: long}
	for name, stream := range map[string]iter.Seq2[Event, error]{
		"client":  NewClient(provider).StreamingResponse(t.Context(), hello, nil),
		"session": NewClient(provider).NewSession().StreamingResponse(t.Context(), hello[0], nil),
	} {
		t.Run(name, func(t *testing.T) {
			provider.done = 0
			if _, err := read(stream); err != nil {
				t.Fatal(err)
			}
			if got, err := read(stream); err == nil || len(got) > 0 || provider.done != 1 {
				t.Errorf("got %v and %v, sent %d times", got, err, provider.done)
			}
		})
	}
}

// More is true exactly if the next event comes without another wait for the provider, and no event is held back while
// the provider may block.
func TestMore(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 0))
		var steps []step
		for range 1 + random.IntN(12) {
			s := says(randomDeltas(random, random.IntN(4))...)
			s.event.More = random.IntN(2) == 0
			steps = append(steps, s)
		}
		// A wait lies before each step whose predecessor had nothing buffered.
		type received struct {
			more  bool
			waits int
		}
		var waits int
		var got []received
		produced := NewStreamItems("")
		count := 0 // of items that the steps before the current one made
		for i := range steps {
			steps[i].before = func(context.Context) {
				if i == 0 || !steps[i-1].event.More {
					waits++
					if len(got) != count {
						t.Fatalf("seed %d: %d of %d events went out when the provider was to block before step %d", seed, len(got), count, i)
					}
				}
				for _, d := range steps[i].event.Deltas {
					out, _ := produced.Push(&d)
					count += len(out)
				}
			}
		}
		end := ends(FinishStop)
		end.before = func(context.Context) {
			if !steps[len(steps)-1].event.More {
				waits++
			}
		}
		end.event.Last = random.IntN(2) == 0
		provider := &fakeProvider{steps: append(slices.Clip(steps), end), after: func() { waits++ }}
		for event, err := range NewClient(provider).StreamingResponse(t.Context(), hello, nil) {
			got = append(got, received{err == nil && event.More, waits})
		}
		for i := range len(got) - 1 {
			if together := got[i].waits == got[i+1].waits; got[i].more != together {
				t.Errorf("seed %d: event %d of %v says %v", seed, i, got, got[i].more)
			}
		}
	}
}

// randomDeltas makes deltas that mostly keep to the rules; calls have whole arguments.
func randomDeltas(random *rand.Rand, n int) (deltas []Delta) {
	id := func() string { return []string{"", "1", "2"}[random.IntN(3)] }
	for range n {
		d := []Delta{
			text(id(), "a"), text(id(), ""), think(id(), "b"), think(id(), "é"), call(id(), "f", "c1", `{"n":1}`), call(id(), "g", "c2", ""),
			keyed(random.IntN(3), "h", fmt.Sprint("k", random.IntN(9)), `{"a":[]}`), data(id(), "image/png", "x"), data(id(), "audio/pcm", "y"),
			imageThought(id(), "z"), vector(1, 2.5), vector(),
		}[random.IntN(12)]
		if random.IntN(8) == 0 {
			d.Fidelity = Fidelity(`{"s":1}`)
		}
		deltas = append(deltas, d)
	}
	return deltas
}

func TestMoreWithAnEmptyEventBehind(t *testing.T) {
	var got []bool
	blocked := func(n int) func(context.Context) {
		return func(context.Context) {
			if len(got) != n {
				t.Errorf("%d events went out before the provider blocked, want %d", len(got), n)
			}
		}
	}
	steps := []step{buffered(says(text("", "a"))), says(), says(text("", "b")), buffered(says(text("", "c"))), buffered(says()), says(text("", "d")), ends(FinishStop)}
	steps[2].before, steps[3].before, steps[6].before = blocked(1), blocked(2), blocked(4)
	for event, err := range NewClient(&fakeProvider{steps: steps}).StreamingResponse(t.Context(), hello, nil) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, event.More)
	}
	if want := []bool{false, false, true, false, true, false}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestTraceIsThereWhenTheStopIs(t *testing.T) {
	dir := t.TempDir()
	provider := &fakeProvider{steps: []step{says(faithful(text("7", "yo"), `{"phase":"final"}`)), ends(FinishStop)}}
	for event, err := range NewClient(provider).WithTracer(NewTracer(dir)).StreamingResponse(t.Context(), hello, &Config{TraceID: "demo/one"}) {
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"one.json", "one.txt"} {
			content, err := os.ReadFile(filepath.Join(dir, "demo", name))
			if there := err == nil; there != (event.Type == EventStop) {
				t.Errorf("%s at a %s: %v", name, event.Type, err)
			}
			if event.Type == EventStop && (!strings.Contains(string(content), "yo") || strings.Contains(string(content), "item_id")) {
				t.Errorf("%s holds %s", name, content)
			}
		}
	}
}

func TestTraceWithoutATracer(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("MMSP_CACHE_DIR", dir)
	if _, err := read(NewClient(&fakeProvider{steps: long}).StreamingResponse(t.Context(), hello, &Config{TraceID: "x"})); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(dir, "x.json"))
	if err != nil || !strings.Contains(string(content), `"model": "fake-1"`) {
		t.Errorf("got %s, %v", content, err)
	}
}

func TestTraceThatCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	provider := &fakeProvider{steps: []step{ends(FinishStop, text("", "a"))}}
	got, err := read(NewClient(provider).WithTracer(NewTracer(file)).StreamingResponse(t.Context(), hello, &Config{TraceID: "x"}))
	if err == nil || len(got) != 2 {
		t.Errorf("got %v and %v", got, err)
	}
}

func TestNoTraceOfATurnThatFailed(t *testing.T) {
	dir := t.TempDir()
	provider := &fakeProvider{steps: []step{ends(FinishStop, think("", "hm"))}}
	if _, err := read(NewClient(provider).WithTracer(NewTracer(dir)).StreamingResponse(t.Context(), hello, &Config{TraceID: "x"})); err == nil {
		t.Error("no error")
	}
	if files, _ := os.ReadDir(dir); len(files) > 0 {
		t.Errorf("traced %v", files)
	}
}

// forwarder is a provider whose peer builds the public stream.
type forwarder struct {
	fakeProvider
	messages []Message
	events   []Event
}

func (f *forwarder) StreamingResponse(_ context.Context, messages []Message, _ *Config) iter.Seq2[Event, error] {
	f.messages = messages
	return func(yield func(Event, error) bool) {
		for _, event := range f.events {
			if !yield(event, nil) {
				return
			}
		}
	}
}

func TestForwarderIsLeftAlone(t *testing.T) {
	events := []Event{{Type: EventDelta, Item: Item{Type: "new.done"}, CreatedAt: 7, More: true}, {Type: EventStop}}
	provider := &forwarder{events: events}
	messages := []Message{{Role: "robot", ContentItems: []Item{{Type: "text"}, {Type: "new.done"}}}}
	var got []Event
	for event, err := range NewClient(provider).StreamingResponse(t.Context(), messages, &Config{TraceID: "../x"}) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, event)
	}
	if !reflect.DeepEqual(got, events) || provider.prepared+provider.done > 0 {
		t.Errorf("got %+v", got)
	}
	if &provider.messages[0] != &messages[0] || messages[0].CreatedAt != 0 {
		t.Errorf("the messages were touched: %+v", provider.messages)
	}
}

func TestCollect(t *testing.T) {
	message, err := Collect(NewClient(&fakeProvider{steps: long}).StreamingResponse(t.Context(), hello, nil))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := showAll(message.ContentItems), "text.done \"ab\"; thinking.done \"cd\"; tool_call.done f/c1 `{}`"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if message.Role != RoleAssistant || message.FinishReason != FinishToolCall || message.Usage.Total() != 5 || message.CreatedAt == 0 {
		t.Errorf("got %+v", message)
	}
	if len(message.ToolCalls()) != 1 || message.Text() != "ab" {
		t.Errorf("got %v and %q", message.ToolCalls(), message.Text())
	}

	message, err = Collect(NewClient(&fakeProvider{steps: []step{says(text("", "a"), think("", "b")), {err: io.EOF}}}).StreamingResponse(t.Context(), hello, nil))
	if !errors.Is(err, io.EOF) || showAll(message.ContentItems) != `text.done "a"` {
		t.Errorf("got %+v and %v", message, err)
	}
}

func TestListModels(t *testing.T) {
	if got, err := NewClient(&fakeProvider{}).ListModels(t.Context()); err != nil || !slices.Equal(got, []string{"fake-2", "fake-1"}) {
		t.Errorf("got %v, %v", got, err)
	}
}

// counter is a provider that counts messages instead of tokens.
type counter struct {
	fakeProvider
	err error
}

func (c *counter) CountTokens(_ context.Context, messages []Message, config *Config) (int64, error) {
	c.messages, c.config = messages, config
	return int64(len(messages)), c.err
}

func TestCountTokens(t *testing.T) {
	provider := &counter{}
	messages := []Message{UserMessage(Item{Type: "text", Text: "a"}), AssistantMessage(Text("b"))}
	if n, err := NewClient(provider).CountTokens(t.Context(), messages, nil); n != 2 || err != nil {
		t.Error(n, err)
	}
	if got := provider.messages[0].ContentItems[0].Type; got != TextDone || provider.config == nil || messages[0].ContentItems[0].Type != "text" || messages[0].CreatedAt != 0 {
		t.Errorf("the provider got %s, the caller keeps %+v", got, messages[0])
	}
	if provider.prepared+provider.done > 0 {
		t.Error("a request was made")
	}

	provider.messages = nil
	if _, err := NewClient(provider).CountTokens(t.Context(), []Message{{Role: "robot"}}, nil); !errors.As(err, new(*InvalidRequestError)) || provider.messages != nil {
		t.Error(err)
	}
	cause := errors.New("gone")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if _, err := NewClient(provider).CountTokens(ctx, messages, nil); err != cause || provider.messages != nil {
		t.Error(err)
	}
	provider.err = &UpstreamError{Client: "FakeClient", Status: 529}
	if n, err := NewClient(provider).CountTokens(t.Context(), messages, nil); n != 0 || err != provider.err {
		t.Error(n, err)
	}

	for _, without := range []Provider{&fakeProvider{}, &forwarder{}} {
		_, err := NewClient(without).CountTokens(t.Context(), messages, nil)
		if unsupported, ok := errors.AsType[*UnsupportedOperationError](err); !ok || unsupported.Operation != "count_tokens" || unsupported.Client != "FakeClient" {
			t.Error(err)
		}
	}
}

// talker says n texts of 1 KiB, each an item of its own, and tells how much more memory is in use after them.
type talker struct {
	*fakeProvider
	n    int
	held int64
}

func (p *talker) Do(context.Context, *Request) iter.Seq2[*UniEvent, error] {
	inUse := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	return func(yield func(*UniEvent, error) bool) {
		before := inUse()
		var event UniEvent
		for i := range p.n {
			event.Reset()
			event.AddText(fmt.Sprint(i), strings.Repeat("x", 1<<10))
			if !yield(&event, nil) {
				return
			}
		}
		p.held = inUse() - before
		yield(&UniEvent{Type: EventStop, FinishReason: FinishStop, Usage: tokens(3, 2), Last: true}, nil)
	}
}

// TestLongStream: a stream holds what is open, and nothing of what it has handed on.
func TestLongStream(t *testing.T) {
	p := &talker{fakeProvider: &fakeProvider{}, n: 5000}
	for _, err := range NewClient(p).StreamingResponse(t.Context(), hello, nil) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if p.held > 1<<20 {
		t.Errorf("%d bytes are held of %d KiB", p.held, p.n)
	}
}
