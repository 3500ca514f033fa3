package mmsp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// kind is everything the stream knows of one kind of item: the field that grows chunk by chunk, whether the first delta
// carries the header fields of a call, and when a delta begins an item by itself.
type kind struct {
	delta, done ItemType
	header      bool
	begins      func(*Item) bool // nil: only another kind or id begins an item
	empty       func(*Item) bool // the growing field is empty
	clear       func(*Item)      // empties the growing field
	grow        func(*growth, *Item)
	join        func(*growth, *Item) // sets the growing field to the join of all chunks
}

// growth collects the chunks of the open item.
type growth struct {
	text   strings.Builder
	data   []byte
	vector []float64
}

func textKind(delta, done ItemType, field func(*Item) *string) *kind {
	return &kind{
		delta: delta, done: done,
		empty: func(i *Item) bool { return *field(i) == "" },
		clear: func(i *Item) { *field(i) = "" },
		grow:  func(g *growth, i *Item) { g.text.WriteString(*field(i)) },
		join:  func(g *growth, i *Item) { *field(i) = g.text.String() },
	}
}

func dataKind(delta, done ItemType, begins func(*Item) bool) *kind {
	return &kind{
		delta: delta, done: done, begins: begins,
		empty: func(i *Item) bool { return len(i.Data) == 0 },
		clear: func(i *Item) { i.Data = nil },
		grow:  func(g *growth, i *Item) { g.data = append(g.data, i.Data...) },
		join:  func(g *growth, i *Item) { i.Data = g.data },
	}
}

var (
	kindText     = textKind(TextDelta, TextDone, func(i *Item) *string { return &i.Text })
	kindThinking = textKind(ThinkingDelta, ThinkingDone, func(i *Item) *string { return &i.Thinking })
	kindToolCall = func() *kind {
		k := textKind(ToolCallDelta, ToolCallDone, func(i *Item) *string { return &i.Arguments })
		k.header = true
		k.begins = func(i *Item) bool { return i.Name != "" }
		return k
	}()
	// Each picture is an item; audio streams in chunks of one.
	kindInlineData     = dataKind(InlineDataDelta, InlineDataDone, func(i *Item) bool { return strings.HasPrefix(i.MimeType, "image/") })
	kindInlineThinking = dataKind(InlineThinkingDelta, InlineThinkingDone, func(*Item) bool { return true })
	kindEmbedding      = &kind{
		delta: EmbeddingDelta, done: EmbeddingDone,
		begins: func(*Item) bool { return true },
		empty:  func(*Item) bool { return false }, // an empty vector still goes out
		clear:  func(i *Item) { i.Embedding = nil },
		grow:   func(g *growth, i *Item) { g.vector = append(g.vector, i.Embedding...) },
		join:   func(g *growth, i *Item) { i.Embedding = g.vector },
	}
)

func kindOf(delta ItemType) *kind {
	switch delta {
	case TextDelta:
		return kindText
	case ThinkingDelta:
		return kindThinking
	case ToolCallDelta:
		return kindToolCall
	case InlineDataDelta:
		return kindInlineData
	case InlineThinkingDelta:
		return kindInlineThinking
	case EmbeddingDelta:
		return kindEmbedding
	}
	return nil
}

// StreamItems decides where one item ends and the next begins. A client hands it every delta in wire order; it hands
// on each delta at once and closes each item with its .done item when the next begins or the stream ends.
//
// One item is open at a time. A delta begins the next item when it is of another kind, begins by itself (a call with a
// name, a picture, a vector), or belongs to text or thinking and carries another id than the open item. Everything else
// continues the open item.
type StreamItems struct {
	client string
	emit   func(*Item) // takes what is let out, in order; the item is valid during the call
	out    []Item      // what Push or Close let out

	open     *kind // nil: nothing is open
	id       string
	first    Item // the first delta that went out, without fidelity
	sent     bool // a delta of the open item went out
	fidelity Fidelity
	grown    growth

	calls []*call // keyed calls that are not closed: the first is open and live, the others wait
	held  int     // bytes of argument fragments that wait
}

// What calls that wait for an earlier call to end may hold back.
const (
	maxHeldBytes = 16 << 20
	maxHeldCalls = 1 << 10
)

// NewStreamItems returns the items of one stream of the named client class.
func NewStreamItems(client string) *StreamItems {
	s := &StreamItems{client: client}
	s.emit = func(item *Item) { s.out = append(s.out, *item) }
	return s
}

// Push takes the next delta and returns the public items that it lets out, valid until the next call. Items let out
// before an error come with it.
func (s *StreamItems) Push(delta *Delta) ([]Item, error) {
	s.out = s.out[:0]
	err := s.take(delta)
	return s.out, err
}

// Close ends the stream: every open item is closed.
func (s *StreamItems) Close() ([]Item, error) {
	s.out = s.out[:0]
	err := s.end()
	return s.out, err
}

// take is Push without the list.
func (s *StreamItems) take(delta *Delta) error {
	if string(delta.Fidelity) == "{}" {
		delta.Fidelity = nil
	}
	if delta.Type == ToolCallDelta && delta.Call.Keyed {
		return s.pushCall(delta)
	}
	if err := s.closeCalls(); err != nil {
		return err
	}
	return s.push(&delta.Item, delta.ItemID)
}

// end is Close without the list.
func (s *StreamItems) end() error {
	if err := s.closeCalls(); err != nil {
		return err
	}
	return s.close()
}

func (s *StreamItems) broken(format string, args ...any) error {
	return &StreamProtocolError{Client: s.client, Detail: fmt.Sprintf(format, args...)}
}

func (s *StreamItems) push(item *Item, id string) error {
	k := kindOf(item.Type)
	if k == nil {
		return s.broken("%q is no delta", item.Type)
	}
	// Fidelity alone under the open item's id belongs to that item, whatever kind it comes as.
	if s.open != nil && s.sent && s.open != k && id != "" && id == s.id && len(item.Fidelity) > 0 && k.empty(item) && item.Name == "" && item.ToolCallID == "" {
		stray := s.first
		s.open.clear(&stray)
		stray.Fidelity = item.Fidelity
		return s.send(&stray)
	}
	otherMedia := k == kindInlineData && s.sent && item.MimeType != "" && item.MimeType != s.first.MimeType
	if s.open != k || otherMedia || k.begins != nil && k.begins(item) || !k.header && id != "" && s.id != "" && id != s.id {
		if err := s.close(); err != nil {
			return err
		}
		s.open = k
	}
	if s.id == "" {
		s.id = id
	}
	return s.send(item)
}

// send hands on a delta of the open item.
func (s *StreamItems) send(item *Item) error {
	k := s.open
	if k.header && s.sent {
		item.Name, item.ToolCallID = "", "" // the header rides the first delta only
	}
	repeated := false
	if len(item.Fidelity) > 0 {
		if s.fidelity == nil {
			s.fidelity = item.Fidelity
		} else if repeated = sameJSON(s.fidelity, item.Fidelity); !repeated {
			return s.broken("a second, different fidelity in one %s", k.delta.Kind())
		}
	}
	empty := k.empty(item) && (!k.header || item.Name == "" && item.ToolCallID == "")
	if empty && (len(item.Fidelity) == 0 || repeated) {
		return nil
	}
	if !s.sent {
		if k.header && (item.Name == "" || item.ToolCallID == "") {
			return s.broken("the first delta of a tool call has no name or no id (name %q, id %q)", item.Name, item.ToolCallID)
		}
		s.sent = true
		s.first = *item
		s.first.Fidelity = nil
	}
	k.grow(&s.grown, item)
	if repeated {
		item.Fidelity = nil
	}
	s.emit(item)
	return nil
}

// close ends the open item with its .done item.
func (s *StreamItems) close() error {
	k, done, sent := s.open, s.first, s.sent
	if sent {
		k.join(&s.grown, &done)
		done.Type = k.done
		done.Fidelity = s.fidelity
	}
	s.open, s.id, s.first, s.fidelity, s.sent, s.grown = nil, "", Item{}, nil, false, growth{}
	if !sent {
		return nil
	}
	if k == kindToolCall {
		if done.Arguments == "" {
			done.Arguments = "{}"
		}
		if reason := argumentsProblem(done.Arguments); reason != "" {
			return &ToolCallArgumentParseError{Client: s.client, ToolName: done.Name, ToolCallID: done.ToolCallID, RawArguments: done.Arguments, Reason: reason}
		}
	}
	s.emit(&done)
	return nil
}

// sameJSON reports whether two objects say the same.
func sameJSON(a, b Fidelity) bool {
	if bytes.Equal(a, b) {
		return true
	}
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// call is a keyed tool call that has begun and is not closed.
type call struct {
	index     int
	id, name  string
	balance   balance
	held      Item            // while an earlier call is live: its first delta and its fidelity,
	fragments strings.Builder // and all its arguments, which go out with them as one delta
}

// pushCall keeps the public stream contiguous when a provider interleaves its calls. The earliest open call streams
// live and later ones wait. It is closed when its arguments are a whole object and another call moves on, so that calls
// which come one after the other are never held up.
func (s *StreamItems) pushCall(delta *Delta) error {
	if s.open != nil && s.open != kindToolCall {
		if err := s.close(); err != nil {
			return err
		}
	}
	c := s.find(delta)
	if c == nil {
		if delta.ToolCallID == "" && delta.Call.NameAsID {
			delta.ToolCallID = delta.Name
		}
		if delta.Name == "" || delta.ToolCallID == "" {
			if delta.Name == "" && strings.TrimSpace(delta.Arguments) == "" && len(delta.Fidelity) == 0 {
				return nil // nothing, after the call it belonged to was closed
			}
			return s.broken("a fragment of no open tool call (index %d, name %q, id %q)", delta.Call.Index, delta.Name, delta.ToolCallID)
		}
		c = &call{index: delta.Call.Index, id: delta.ToolCallID, name: delta.Name}
		s.calls = append(s.calls, c)
	} else {
		delta.Name, delta.ToolCallID = "", ""
	}
	c.balance.add(delta.Arguments)
	for s.calls[0] != c && s.calls[0].balance.whole() {
		if err := s.nextCall(); err != nil {
			return err
		}
	}
	if s.calls[0] == c {
		return s.push(&delta.Item, delta.ItemID)
	}
	s.held += len(delta.Arguments) + len(delta.Name) + len(delta.ToolCallID)
	if s.held > maxHeldBytes || len(s.calls) > maxHeldCalls {
		return s.broken("interleaved tool calls hold back more than %d bytes or %d calls", maxHeldBytes, maxHeldCalls)
	}
	c.fragments.WriteString(delta.Arguments)
	switch {
	case c.held.Type == "":
		c.held = delta.Item
	case len(c.held.Fidelity) == 0:
		c.held.Fidelity = delta.Fidelity
	case len(delta.Fidelity) > 0 && !sameJSON(c.held.Fidelity, delta.Fidelity):
		return s.broken("a second, different fidelity in one tool_call")
	}
	return nil
}

// find returns the open call that a delta continues. Under one index the same id, or none, continues; another id, or a
// name after arguments that are whole, is another call. Without an index the id tells, without an id the name, and without
// either the order.
func (s *StreamItems) find(delta *Delta) *call {
	for i := len(s.calls) - 1; i >= 0; i-- {
		c := s.calls[i]
		switch {
		case delta.Call.Index >= 0 && c.index != delta.Call.Index:
			continue
		case delta.Call.Index < 0 && delta.ToolCallID == "" && delta.Name != "" && delta.Name != c.name:
			continue
		case delta.ToolCallID == "" || delta.ToolCallID == c.id:
			if delta.Name != "" && strings.TrimSpace(delta.Arguments) != "" && c.balance.whole() {
				return nil
			}
			return c
		}
	}
	return nil
}

// nextCall closes the live call and lets out what the next one held.
func (s *StreamItems) nextCall() error {
	if err := s.close(); err != nil {
		return err
	}
	if s.calls = s.calls[1:]; len(s.calls) == 0 {
		return nil
	}
	next := s.calls[0]
	if next.held.Type == "" { // it begins with the delta at hand
		return nil
	}
	next.held.Arguments = next.fragments.String()
	s.held -= len(next.held.Arguments) + len(next.held.Name) + len(next.held.ToolCallID)
	return s.push(&next.held, "")
}

func (s *StreamItems) closeCalls() error {
	for len(s.calls) > 0 {
		if err := s.nextCall(); err != nil {
			return err
		}
	}
	return nil
}

// balance follows the brackets of a JSON object that arrives in fragments.
type balance struct {
	depth           int
	started, closed bool
	inString, slash bool
}

func (b *balance) add(fragment string) {
	for i := range len(fragment) {
		switch c := fragment[i]; {
		case b.slash:
			b.slash = false
		case b.inString:
			b.slash = c == '\\'
			b.inString = c != '"'
		case c == '"':
			b.inString = true
		case c == '{' || c == '[':
			b.depth++
			b.started = true
		case c == '}' || c == ']':
			b.depth--
			b.closed = b.depth == 0
		}
	}
}

// whole reports whether an object has begun and ended.
func (b *balance) whole() bool { return b.started && b.closed && b.depth == 0 }
