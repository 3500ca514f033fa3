package mmsp

import (
	"encoding/json"
	"strings"
)

// ItemType names the kind of an item and its phase: a ".delta" is a piece of an item that is still streaming, a ".done"
// the whole item. Messages hold ".done" items only.
type ItemType string

// The item types of the protocol.
const (
	TextDelta           ItemType = "text.delta"
	TextDone            ItemType = "text.done"
	ThinkingDelta       ItemType = "thinking.delta"
	ThinkingDone        ItemType = "thinking.done"
	ToolCallDelta       ItemType = "tool_call.delta"
	ToolCallDone        ItemType = "tool_call.done"
	InlineDataDelta     ItemType = "inline_data.delta"
	InlineDataDone      ItemType = "inline_data.done"
	InlineThinkingDelta ItemType = "inline_thinking.delta"
	InlineThinkingDone  ItemType = "inline_thinking.done"
	EmbeddingDelta      ItemType = "embedding.delta"
	EmbeddingDone       ItemType = "embedding.done"
	ImageURLDone        ItemType = "image_url.done"   // in user messages
	ToolResultDone      ItemType = "tool_result.done" // in user messages
)

// Kind returns the type without its phase.
func (t ItemType) Kind() string {
	kind, _, _ := strings.Cut(string(t), ".")
	return kind
}

// IsDelta reports whether the type is a piece of a streaming item.
func (t ItemType) IsDelta() bool { return strings.HasSuffix(string(t), ".delta") }

// Item is one piece of content. Type says which fields count; the others are zero.
type Item struct {
	Type ItemType

	Text       string   // text, tool_result
	Thinking   string   // thinking
	Name       string   // tool_call
	Arguments  string   // tool_call: the raw JSON object text; in a delta a fragment of it
	ToolCallID string   // tool_call, tool_result
	ImageURL   string   // image_url: an http(s) or data URL
	Detail     string   // image_url: how closely to look: auto, low, high or original; empty: the client decides
	Images     []string // tool_result: URLs; that of a document is a data URL, whose parameter name is its file's, percent-encoded
	IsError    bool     // tool_result: the tool failed

	Data     []byte // inline_data, inline_thinking; base64 on the wire
	MimeType string // inline_data, inline_thinking
	Filename string // inline_data: of a document, if it has one

	Embedding []float64 // embedding

	Fidelity Fidelity
	Extra    json.RawMessage // keys of the wire object that this version does not know, as one object; kept in a round trip
}

// Fidelity is what a provider must get back with the item on the next turn and no other field holds: a signature, an
// encrypted reasoning text, the name of a field. It is one JSON object, opaque to everybody but the client that wrote it.
type Fidelity json.RawMessage

// Decode reads the object into a struct. Absent or unreadable fidelity leaves it as it is.
func (f Fidelity) Decode(into any) {
	if len(f) > 0 {
		_ = json.Unmarshal(f, into)
	}
}

// MarshalJSON returns the object as it is.
func (f Fidelity) MarshalJSON() ([]byte, error) { return json.RawMessage(f).MarshalJSON() }

// UnmarshalJSON keeps a copy of the object.
func (f *Fidelity) UnmarshalJSON(data []byte) error {
	*f = append((*f)[:0], data...)
	return nil
}

// Text makes a text item.
func Text(text string) Item { return Item{Type: TextDone, Text: text} }

// Thinking makes a thinking item.
func Thinking(thinking string) Item { return Item{Type: ThinkingDone, Thinking: thinking} }

// InlineData makes an item of bytes: a document or a sound in a user's turn, a picture or a sound in an answer. The file
// name may be empty.
func InlineData(data []byte, mimeType, filename string) Item {
	return Item{Type: InlineDataDone, Data: data, MimeType: mimeType, Filename: filename}
}

// ImageURL makes an image item of an http(s) or data URL.
func ImageURL(url string) Item { return Item{Type: ImageURLDone, ImageURL: url} }

// ToolCall makes a tool call item; arguments is the text of a JSON object.
func ToolCall(id, name, arguments string) Item {
	return Item{Type: ToolCallDone, ToolCallID: id, Name: name, Arguments: arguments}
}

// ToolResult makes the answer to a tool call, with the URLs of images if there are any.
func ToolResult(id, text string, images ...string) Item {
	return Item{Type: ToolResultDone, ToolCallID: id, Text: text, Images: images}
}

// DecodeArguments reads the arguments of a tool call into a struct or map. Big integers stay exact where the target
// type can hold them.
func (i *Item) DecodeArguments(into any) error { return json.Unmarshal([]byte(i.Arguments), into) }
