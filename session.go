package mmsp

import (
	"context"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
)

// Session is a conversation: it sends its history with every message and records each turn that ends with a stop. The
// history may be read while a turn streams.
type Session struct {
	client *Client

	mu      sync.Mutex
	history []Message
}

// NewSession begins an empty conversation.
func (c *Client) NewSession() *Session { return &Session{client: c} }

// StreamingResponse sends the history and the message. Just before the stop event is yielded the message and the
// answer join the history; on an error, or when ctx ends or the consumer leaves first, the history stays as it was.
func (s *Session) StreamingResponse(ctx context.Context, message Message, config *Config) iter.Seq2[Event, error] {
	var used atomic.Bool
	return func(yield func(Event, error) bool) {
		if used.Swap(true) {
			yield(Event{}, errStreamUsed)
			return
		}
		turn := NormalizeLegacy(stampMessages([]Message{message}))
		answer := Message{Role: RoleAssistant, ContentItems: []Item{}}
		for event, err := range s.client.StreamingResponse(ctx, append(s.History(), turn...), config) {
			if err != nil {
				yield(event, err)
				return
			}
			answer.add(&event)
			if event.Type == EventStop {
				s.mu.Lock()
				s.history = append(s.history, turn[0], answer)
				s.mu.Unlock()
			}
			if !yield(event, nil) {
				return
			}
		}
	}
}

// History returns a copy of the list of messages.
func (s *Session) History() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.history)
}

// SetHistory replaces the history with a copy of the given one, older item types converted.
func (s *Session) SetHistory(messages []Message) {
	history := slices.Clone(NormalizeLegacy(messages))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history = history
}

// Clear empties the history.
func (s *Session) Clear() { s.SetHistory(nil) }
