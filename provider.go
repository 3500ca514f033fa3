package mmsp

import (
	"context"
	"iter"
	"net/http"
)

// Provider is one client type for one model: it turns messages and a Config into a request of its wire protocol, and
// each event that comes back into a UniEvent. It keeps nothing between requests and nothing between events.
type Provider interface {
	// Class returns the class name that all implementations of the protocol share; errors carry it as "client".
	Class() string

	// Prepare does the transforms and nothing else: the exact upstream request, or a typed error. Only a picture that
	// the wire protocol wants inline is fetched here, which is what ctx is for.
	Prepare(ctx context.Context, messages []Message, config *Config) (*Request, error)

	// Do sends the request and yields one UniEvent per wire event, valid until the next one. An error is yielded once,
	// last. The connection is closed when the loop ends, however it ends.
	Do(ctx context.Context, request *Request) iter.Seq2[*UniEvent, error]

	// ListModels returns the ids that the endpoint serves, in its order.
	ListModels(ctx context.Context) ([]string, error)
}

// TokenCounter is a Provider whose endpoint counts the tokens of a prompt without answering it.
type TokenCounter interface {
	// CountTokens returns how many tokens the request that Prepare would make of the messages and the config costs as
	// input, cached ones included. The error is one that Prepare returns, an *UpstreamError, or an
	// *UnsupportedOperationError where the endpoint has no counter after all.
	CountTokens(ctx context.Context, messages []Message, config *Config) (int64, error)
}

// Embedder is a Provider whose models may make vectors.
type Embedder interface {
	// Embeds reports whether its model makes vectors, and nothing else.
	Embeds() bool
}

// Forwarder is a Provider whose peer builds the public stream already: its events pass as they arrive.
type Forwarder interface {
	StreamingResponse(ctx context.Context, messages []Message, config *Config) iter.Seq2[Event, error]
}

// Request is an upstream request without its credential, which Do adds.
type Request struct {
	Method string
	URL    string
	Header http.Header
	Body   []byte
}

// UniEvent is what one wire event says: the deltas that it carries, and on an EventStop event its part of usage, finish
// reason and stop detail. A wire event that says nothing is an empty EventDelta.
type UniEvent struct {
	Type         EventType
	Deltas       []Delta
	Usage        *Usage
	FinishReason FinishReason
	StopDetail   *StopDetail

	// More reports that another whole wire event is buffered, so that the next UniEvent comes without waiting.
	More bool
	// Last reports that the provider's terminal event and what it awaits have been read: the public stream ends here,
	// while the connection may still be put away.
	Last bool
}

// Reset empties the event for the next wire event and keeps its memory.
func (e *UniEvent) Reset() {
	*e = UniEvent{Type: EventDelta, Deltas: e.Deltas[:0]}
}

// Add appends an empty delta of the given type and item id for the caller to fill, and returns it.
func (e *UniEvent) Add(t ItemType, itemID string) *Delta {
	if len(e.Deltas) < cap(e.Deltas) {
		e.Deltas = e.Deltas[:len(e.Deltas)+1]
	} else {
		e.Deltas = append(e.Deltas, Delta{})
	}
	d := &e.Deltas[len(e.Deltas)-1]
	*d = Delta{ItemID: itemID}
	d.Type = t
	return d
}

// AddText appends a text delta.
func (e *UniEvent) AddText(itemID, text string) *Delta {
	d := e.Add(TextDelta, itemID)
	d.Text = text
	return d
}

// AddThinking appends a thinking delta.
func (e *UniEvent) AddThinking(itemID, thinking string) *Delta {
	d := e.Add(ThinkingDelta, itemID)
	d.Thinking = thinking
	return d
}

// AddToolCall appends a tool call delta. Name and id ride the first delta of a call; arguments is a fragment.
func (e *UniEvent) AddToolCall(itemID string, call CallRef, id, name, arguments string) *Delta {
	d := e.Add(ToolCallDelta, itemID)
	d.Call, d.ToolCallID, d.Name, d.Arguments = call, id, name, arguments
	return d
}

// Delta is a piece of an item with what StreamItems needs to know of it and the public stream never shows.
type Delta struct {
	Item
	// ItemID is the provider's own id of the item, which all its deltas share: a block index, an item id, the name of
	// the wire field. Empty: not known, and the delta continues what is open.
	ItemID string
	// Call places a fragment of a tool call whose calls may arrive interleaved.
	Call CallRef
}

// CallRef is the place of a tool call among the calls of a response. The zero value: the wire has one call at a time.
type CallRef struct {
	Keyed bool
	Index int // the wire's own index; -1: it gives none, and the call's id tells
	// NameAsID gives a call that comes without an id its name for one.
	NameAsID bool
}
