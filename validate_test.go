package mmsp_test

import (
	"testing"

	. "github.com/prism-shadow/mmsp-go"
)

func TestValidate(t *testing.T) {
	if err := Validate([]Message{
		UserMessage(Text(""), ImageURL("https://x.test/a"), Item{Type: ImageURLDone, ImageURL: "u", Detail: "original"}, InlineData(nil, "application/pdf", "a.pdf"), ToolResult("c1", "", "https://x.test/b")),
		AssistantMessage(
			Thinking(""), ToolCall("c1", "f", `{"a":[1]}`), ToolCall("c2", "f", ""), Item{Type: InlineThinkingDone, MimeType: "image/png"},
			Item{Type: EmbeddingDone}, Item{Type: TextDone, Fidelity: Fidelity(`{"phase":"final"}`)},
		),
		UserMessage(),
	}); err != nil {
		t.Errorf("a good conversation: %v", err)
	}
	if err := Validate(nil); err != nil {
		t.Errorf("nothing: %v", err)
	}

	for _, c := range []struct {
		message Message
		param   string
	}{
		{Message{}, ".role"},
		{Message{Role: "system"}, ".role"},
		{Message{Role: "User"}, ".role"},
		{UserMessage(Item{}), ".content_items[0].type"},
		{UserMessage(Text("a"), Item{Type: "hologram.done"}), ".content_items[1].type"},
		{UserMessage(Item{Type: "text"}), ".content_items[0].type"},
		{UserMessage(Item{Type: TextDelta}), ".content_items[0].type"},
		{AssistantMessage(Item{Type: ToolCallDelta}), ".content_items[0].type"},
		{AssistantMessage(ToolResult("c", "")), ".content_items[0].type"},
		{UserMessage(ToolResult("", "a")), ".content_items[0].tool_call_id"},
		{AssistantMessage(ToolCall("", "f", "{}")), ".content_items[0].tool_call_id"},
		{AssistantMessage(ToolCall("c", "", "{}")), ".content_items[0].name"},
		{AssistantMessage(ToolCall("c", "f", "[]")), ".content_items[0].arguments"},
		{AssistantMessage(ToolCall("c", "f", "{")), ".content_items[0].arguments"},
		{AssistantMessage(ToolCall("c", "f", "{} {}")), ".content_items[0].arguments"},
		{AssistantMessage(ToolCall("c", "f", "null")), ".content_items[0].arguments"},
		{UserMessage(ImageURL("")), ".content_items[0].image_url"},
		{UserMessage(Item{Type: ImageURLDone, ImageURL: "u", Detail: "closely"}), ".content_items[0].detail"},
		{UserMessage(Item{Type: InlineDataDone}), ".content_items[0].mime_type"},
		{UserMessage(Item{Type: InlineThinkingDone}), ".content_items[0].mime_type"},
		{AssistantMessage(Item{Type: TextDone, Fidelity: Fidelity(`[]`)}), ".content_items[0].fidelity"},
		{AssistantMessage(Item{Type: TextDone, Fidelity: Fidelity(`{"a":`)}), ".content_items[0].fidelity"},
	} {
		err := Validate([]Message{UserMessage(Text("a")), c.message})
		if param, message := badRequest(t, err); param != "messages[1]"+c.param || message == "" {
			t.Errorf("%+v: got %q: %q, want messages[1]%s", c.message, param, message, c.param)
		}
	}
}
