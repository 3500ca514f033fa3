package mmsp

import (
	"encoding/json"
	"strings"
)

// Role says who speaks in a message.
type Role string

// The roles. Results of tools are items of user messages.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// FinishReason says why the model stopped.
type FinishReason string

// The finish reasons.
const (
	FinishStop     FinishReason = "stop"
	FinishLength   FinishReason = "length"    // the token limit
	FinishToolCall FinishReason = "tool_call" // the turn ended normally and holds a tool call
	FinishUnknown  FinishReason = "unknown"   // StopDetail says more
)

// StopDetail says what FinishUnknown, or a stop sequence, hides.
type StopDetail struct {
	Kind   string `json:"kind"`             // filter, refusal, pause, context, stop_sequence or malformed_call
	Text   string `json:"text,omitempty"`   // the provider's own words
	Prompt bool   `json:"prompt,omitempty"` // a filter stopped the prompt, and not the answer
}

// Usage counts tokens. A nil field was not reported. Input is Cached + Prompt, output Thoughts + Response.
type Usage struct {
	CachedTokens   *int64 `json:"cached_tokens"`   // input served from a cache
	PromptTokens   *int64 `json:"prompt_tokens"`   // input not served from a cache
	ThoughtsTokens *int64 `json:"thoughts_tokens"` // output spent on thinking, where the provider tells it apart
	ResponseTokens *int64 `json:"response_tokens"` // the rest of the output
}

// Total sums the reported fields.
func (u *Usage) Total() (total int64) {
	for _, n := range []*int64{u.CachedTokens, u.PromptTokens, u.ThoughtsTokens, u.ResponseTokens} {
		if n != nil {
			total += *n
		}
	}
	return total
}

// merge overwrites the fields that piece reports.
func (u *Usage) merge(piece *Usage) {
	for _, f := range []struct{ to, from **int64 }{
		{&u.CachedTokens, &piece.CachedTokens},
		{&u.PromptTokens, &piece.PromptTokens},
		{&u.ThoughtsTokens, &piece.ThoughtsTokens},
		{&u.ResponseTokens, &piece.ResponseTokens},
	} {
		if *f.from != nil {
			*f.to = new(**f.from)
		}
	}
}

// Message is one turn of a conversation.
type Message struct {
	Role         Role
	ContentItems []Item

	// What an assistant's turn ended with; zero in other messages.
	Usage        *Usage
	FinishReason FinishReason
	StopDetail   *StopDetail

	CreatedAt int64           // Unix time in milliseconds; 0: not known
	Extra     json.RawMessage // unknown keys, as one object
}

// UserMessage makes a user's turn.
func UserMessage(items ...Item) Message { return Message{Role: RoleUser, ContentItems: items} }

// AssistantMessage makes an assistant's turn.
func AssistantMessage(items ...Item) Message {
	return Message{Role: RoleAssistant, ContentItems: items}
}

// Text joins the .done text items of the message, with nothing between them.
func (m *Message) Text() string {
	var texts []string
	for i := range m.ContentItems {
		if m.ContentItems[i].Type == TextDone {
			texts = append(texts, m.ContentItems[i].Text)
		}
	}
	return strings.Join(texts, "")
}

// ToolCalls returns the tool call items of the message.
func (m *Message) ToolCalls() (calls []Item) {
	for i := range m.ContentItems {
		if m.ContentItems[i].Type == ToolCallDone {
			calls = append(calls, m.ContentItems[i])
		}
	}
	return calls
}

// EventType tells the last event of a stream from the others.
type EventType string

// The event types.
const (
	EventDelta EventType = "delta"
	EventStop  EventType = "stop"
)

// Event is one event of a public stream: any number of deltas, each with one item, then one stop.
type Event struct {
	Type EventType
	Item Item // of a delta; on the wire the only element of content_items

	// Of a stop.
	Usage        *Usage
	FinishReason FinishReason
	StopDetail   *StopDetail

	CreatedAt int64 // Unix time in milliseconds

	// More reports that another event of this stream is ready and comes without waiting for the provider, so that a
	// server may write both at once. Not on the wire.
	More bool

	Extra json.RawMessage // unknown keys, as one object
}
