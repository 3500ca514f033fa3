package mmsp

import (
	"fmt"
	"slices"

	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// Validate reports the first thing that no client could send: an unknown role or item type, a delta, a field that the
// item's type needs. The error is an *InvalidRequestError whose Param names message, item and field.
func Validate(messages []Message) error {
	for m := range messages {
		message := &messages[m]
		fail := func(field, reason string) error {
			return &InvalidRequestError{Param: fmt.Sprintf("messages[%d]%s", m, field), Message: reason}
		}
		if message.Role != RoleUser && message.Role != RoleAssistant {
			return fail(".role", fmt.Sprintf("%.64q is no role; user and assistant are", message.Role))
		}
		for i := range message.ContentItems {
			if field, reason := validateItem(message.Role, &message.ContentItems[i]); reason != "" {
				return fail(fmt.Sprintf(".content_items[%d]%s", i, field), reason)
			}
		}
	}
	return nil
}

// validateItem returns the field that is wrong and why, or no reason.
func validateItem(role Role, item *Item) (field, reason string) {
	if len(item.Fidelity) > 0 && (item.Fidelity[0] != '{' || !jsonscan.Valid(item.Fidelity)) {
		return ".fidelity", "a JSON object is wanted"
	}
	switch item.Type {
	case TextDone, ThinkingDone, EmbeddingDone:
	case ToolCallDone:
		switch {
		case item.Name == "":
			return ".name", "a tool call needs a name"
		case item.ToolCallID == "":
			return ".tool_call_id", "a tool call needs an id"
		case item.Arguments != "" && argumentsProblem(item.Arguments) != "":
			return ".arguments", argumentsProblem(item.Arguments)
		}
	case ToolResultDone:
		if item.ToolCallID == "" {
			return ".tool_call_id", "a tool result needs the id of its call"
		}
		if role != RoleUser {
			return ".type", "a tool result stands in a user message"
		}
	case ImageURLDone:
		if item.ImageURL == "" {
			return ".image_url", "an image needs a URL"
		}
		if !slices.Contains([]string{"", "auto", "low", "high", "original"}, item.Detail) {
			return ".detail", "one of auto, low, high, original is wanted"
		}
	case InlineDataDone, InlineThinkingDone:
		if item.MimeType == "" {
			return ".mime_type", "inline data needs a MIME type"
		}
	case "":
		return ".type", "an item needs a type"
	case TextDelta, ThinkingDelta, ToolCallDelta, InlineDataDelta, InlineThinkingDelta, EmbeddingDelta:
		return ".type", fmt.Sprintf("%q is a piece of a stream; messages hold .done items", item.Type)
	default:
		return ".type", fmt.Sprintf("%.64q is no item type", item.Type)
	}
	return "", ""
}

// argumentsProblem says why a text is not that of a JSON object, or nothing.
func argumentsProblem(arguments string) string {
	var s jsonscan.Scanner
	s.Reset([]byte(arguments))
	kind := s.Kind()
	s.Raw()
	if err := s.End(); err != nil {
		return err.Error()
	}
	if kind != '{' {
		return "Expected a JSON object."
	}
	return ""
}
