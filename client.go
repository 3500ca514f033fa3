package mmsp

import (
	"context"
	"errors"
	"iter"
	"slices"
	"sync/atomic"
	"time"
)

// Client streams answers of one model through one provider. It keeps nothing between calls and may be used by many
// goroutines at once.
type Client struct {
	provider Provider
	tracer   *Tracer
}

// NewClient makes a client of a provider. Package auto does both for a model id.
func NewClient(provider Provider) *Client { return &Client{provider: provider} }

// WithTracer returns a client that writes its traces with the given tracer instead of one in MMSP_CACHE_DIR.
func (c *Client) WithTracer(tracer *Tracer) *Client {
	return &Client{provider: c.provider, tracer: tracer}
}

// Provider returns the provider that the client streams through.
func (c *Client) Provider() Provider { return c.provider }

// ListModels returns the model ids that the endpoint serves, in its order. The error is an *UpstreamError, or an
// *UnsupportedOperationError where the protocol has no list.
func (c *Client) ListModels(ctx context.Context) ([]string, error) { return c.provider.ListModels(ctx) }

// Embeds reports whether the model makes vectors, and nothing else, as far as the client can tell.
func (c *Client) Embeds() bool {
	embedder, ok := c.provider.(Embedder)
	return ok && embedder.Embeds()
}

// CountTokens returns how many tokens the provider counts as the input of a request, cached ones included. Nothing is
// answered or traced, and the caller's messages are never written to. The error is an *UnsupportedOperationError where the
// provider has no counter, else what StreamingResponse returns before the request goes out, or an *UpstreamError.
func (c *Client) CountTokens(ctx context.Context, messages []Message, config *Config) (int64, error) {
	counter, ok := c.provider.(TokenCounter)
	if !ok {
		class := c.provider.Class()
		return 0, &UnsupportedOperationError{Client: class, Operation: "count_tokens", Message: class + " has no counter of tokens"}
	}
	if config == nil {
		config = &Config{}
	}
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	messages = NormalizeLegacy(stampMessages(messages))
	if err := Validate(messages); err != nil {
		return 0, err
	}
	n, err := counter.CountTokens(ctx, messages, config)
	if err != nil {
		return 0, causeOf(ctx, err)
	}
	return n, nil
}

// errStreamUsed: a stream is a request under way, not a recording of one.
var errStreamUsed = errors.New("this stream has been read already")

// StreamingResponse returns the public stream of one request: deltas and done items as the provider sends them, then
// one stop event. The request goes out when the stream is ranged over, which can be done once. An error is yielded
// once, last, in place of the stop; deltas before it stand. Cancelling ctx ends the stream with the cause of ctx and
// closes the provider's connection, as leaving the loop does. The caller's messages are never written to.
//
// Before the request goes out the error is an *InvalidRequestError or an *UnsupportedParameterError; afterwards it is an
// *UpstreamError, *IncompleteStreamError, *EmptyResponseError, *ToolCallArgumentParseError or *StreamProtocolError.
func (c *Client) StreamingResponse(ctx context.Context, messages []Message, config *Config) iter.Seq2[Event, error] {
	if config == nil {
		config = &Config{}
	}
	var used atomic.Bool
	return func(yield func(Event, error) bool) {
		if used.Swap(true) {
			yieldError(yield, errStreamUsed)
			return
		}
		if forwarder, ok := c.provider.(Forwarder); ok {
			forwarder.StreamingResponse(ctx, messages, config)(yield)
			return
		}
		c.stream(ctx, messages, config, yield)
	}
}

// stream builds the public stream from what the provider's client reads, top to bottom.
func (c *Client) stream(ctx context.Context, messages []Message, config *Config, yield func(Event, error) bool) {
	class := c.provider.Class()
	fail := func(err error) { yieldError(yield, err) }

	// Cancelled before it began: nothing goes out.
	if ctx.Err() != nil {
		fail(context.Cause(ctx))
		return
	}
	messages = NormalizeLegacy(stampMessages(messages))
	if err := Validate(messages); err != nil {
		fail(err)
		return
	}
	if config.TraceID != "" {
		if err := checkTraceID(config.TraceID); err != nil {
			fail(&UnsupportedParameterError{Client: class, Parameter: "trace_id", Message: err.Error()})
			return
		}
	}
	request, err := c.provider.Prepare(ctx, messages, config)
	if err != nil {
		fail(causeOf(ctx, err))
		return
	}
	if config.TraceID == "" {
		messages = nil // a long stream need not hold what the request holds
	}

	var (
		items    = NewStreamItems(class)
		answer   Message // of a trace: the done items so far
		usage    *Usage
		finish   FinishReason
		detail   *StopDetail
		anything bool // a done item other than thinking

		// An event waits here while more is buffered, so that More is known when it goes out. Nothing waits for the
		// provider.
		waiting Event
		holds   bool
		gone    bool // the consumer left
	)
	waiting.Type = EventDelta
	release := func(more bool) {
		if holds && !gone {
			waiting.More = more
			holds = false
			gone = !yield(waiting, nil)
		}
	}
	// Item by item, so that everything before a failure reaches the consumer.
	items.emit = func(item *Item) {
		if !item.Type.IsDelta() {
			if config.TraceID != "" {
				answer.ContentItems = append(answer.ContentItems, *item)
			}
			anything = anything || item.Type != ThinkingDone && item.Type != InlineThinkingDone
		}
		release(true)
		waiting.Item = *item
		waiting.CreatedAt = time.Now().UnixMilli()
		holds = true
	}
	// end decides between the stop, before which the last item is closed, and an error.
	end := func(failure error) {
		failure = causeOf(ctx, failure)
		switch { // what a cut stream left open stays open
		case failure != nil || gone:
		case finish == "":
			failure = &IncompleteStreamError{Client: class, Reason: "no finish reason arrived"}
		case usage == nil:
			failure = &IncompleteStreamError{Client: class, Reason: "no usage arrived"}
		default:
			failure = items.end()
		}
		release(true)
		if gone {
			return
		}
		var arguments *ToolCallArgumentParseError
		switch {
		case errors.As(failure, &arguments):
			arguments.FinishReason, arguments.Usage, arguments.StopDetail = finish, usage, detail
			fail(failure)
			return
		case failure != nil:
			fail(failure)
			return
		case ctx.Err() != nil: // cancelled over the last items: no stop, no trace
			fail(context.Cause(ctx))
			return
		case !anything:
			fail(&EmptyResponseError{Client: class, FinishReason: finish, Usage: usage, StopDetail: detail})
			return
		}
		stop := Event{Type: EventStop, Usage: usage, FinishReason: finish, StopDetail: detail, CreatedAt: time.Now().UnixMilli()}
		if config.TraceID != "" {
			tracer := c.tracer
			if tracer == nil {
				tracer = NewTracer("")
			}
			answer.Role, answer.Usage, answer.FinishReason, answer.StopDetail, answer.CreatedAt = RoleAssistant, usage, finish, detail, stop.CreatedAt
			if err := tracer.Save(config.TraceID, modelOf(c.provider), append(messages, answer), config); err != nil {
				fail(err)
				return
			}
		}
		yield(stop, nil)
	}

	for event, err := range c.provider.Do(ctx, request) {
		if err != nil {
			end(err)
			return
		}
		// A cancelled stream ends even while the provider's bytes are still buffered.
		if ctx.Err() != nil {
			end(context.Cause(ctx))
			return
		}
		if event.Type != EventStop && (event.Usage != nil || event.FinishReason != "") {
			end(&StreamProtocolError{Client: class, Detail: "a delta event carries usage or a finish reason"})
			return
		}
		var broken error
		for i := range event.Deltas {
			if broken = items.take(&event.Deltas[i]); broken != nil {
				break
			}
		}
		if event.Usage != nil {
			if usage == nil {
				usage = &Usage{}
			}
			usage.merge(event.Usage)
		}
		if event.FinishReason != "" {
			finish = event.FinishReason
		}
		if event.StopDetail != nil {
			detail = event.StopDetail
		}
		if broken != nil || event.Last {
			end(broken)
			return
		}
		if !event.More {
			release(false)
		}
		if gone {
			return
		}
	}
	end(nil)
}

// yieldError yields an error. It stands apart so that the frames that live as long as a stream hold no room for an event:
// they decide whether a server's stack fits 8 kB.
//
//go:noinline
func yieldError(yield func(Event, error) bool, err error) { yield(Event{}, err) }

// modelOf returns the model id of a provider that tells it.
func modelOf(p Provider) string {
	if m, ok := p.(interface{ Model() string }); ok {
		return m.Model()
	}
	return ""
}

// causeOf returns why ctx ended if it did, else err: what a cancelled request fails with is noise.
func causeOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// stampMessages returns copies of the messages with the time put on those that lack it.
func stampMessages(messages []Message) []Message {
	stamped := slices.Clone(messages)
	for i := range stamped {
		if stamped[i].CreatedAt == 0 {
			stamped[i].CreatedAt = time.Now().UnixMilli()
		}
	}
	return stamped
}

// Collect reads a stream to its end into the assistant's message. With the stream's error it returns the items that
// arrived whole, without usage and finish reason.
func Collect(stream iter.Seq2[Event, error]) (Message, error) {
	message := Message{Role: RoleAssistant, ContentItems: []Item{}}
	for event, err := range stream {
		if err != nil {
			return message, err
		}
		message.add(&event)
	}
	return message, nil
}

// add takes over what an event of the message's stream completes.
func (m *Message) add(event *Event) {
	if event.Type == EventStop {
		m.Usage, m.FinishReason, m.StopDetail, m.CreatedAt = event.Usage, event.FinishReason, event.StopDetail, event.CreatedAt
	} else if !event.Item.Type.IsDelta() {
		m.ContentItems = append(m.ContentItems, event.Item)
	}
}
