package mmsp

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync"
)

// legacyTypes are the item types of histories recorded before 0.5.0. They are read until 0.6.0.
var legacyTypes = map[ItemType]ItemType{
	"text":            TextDone,
	"image_url":       ImageURLDone,
	"inline_data":     InlineDataDone,
	"thinking":        ThinkingDone,
	"inline_thinking": InlineThinkingDone,
	"tool_call":       ToolCallDone,
	"tool_result":     ToolResultDone,
	"embedding":       EmbeddingDone,
}

// partialToolCall held the argument fragments of a call beside the whole one.
const partialToolCall ItemType = "partial_tool_call"

var warnLegacy = sync.OnceFunc(func() {
	slog.Warn("messages with item types from before MMSP 0.5.0 are converted; they are read until 0.6.0")
})

// NormalizeLegacy returns the messages with older shapes converted to the current ones. Messages without older shapes
// are returned as they are, the others as copies: the caller's data is never written to.
func NormalizeLegacy(messages []Message) []Message {
	out, copied := messages, false
	for i := range messages {
		items, changed := normalizeItems(messages[i].ContentItems)
		if !changed {
			continue
		}
		if !copied {
			out, copied = slices.Clone(messages), true
		}
		out[i].ContentItems = items
	}
	return out
}

func normalizeItems(items []Item) ([]Item, bool) {
	old := func(i Item) bool {
		_, renamed := legacyTypes[i.Type]
		return renamed || i.Type == partialToolCall
	}
	types := slices.ContainsFunc(items, old)
	blocks := slices.ContainsFunc(items, func(i Item) bool { return i.Type.Kind() == "thinking" && hasReasoningBlock(i.Fidelity) })
	if !types && !blocks {
		return items, false
	}
	if types {
		warnLegacy()
	}
	out := make([]Item, 0, len(items))
	for _, item := range items {
		if item.Type == partialToolCall {
			continue
		}
		if current, ok := legacyTypes[item.Type]; ok {
			item.Type = current
		}
		if item.Type == ThinkingDone && hasReasoningBlock(item.Fidelity) {
			item.Fidelity = liftReasoningBlock(item.Fidelity)
		}
		out = append(out, item)
	}
	return out, true
}

// reasoningBlock is a wire reasoning item of the Responses protocol, which 0.5.5 kept whole inside a fidelity when it
// came through a gateway.
type reasoningBlock struct {
	Type             string          `json:"type"`
	Summary          json.RawMessage `json:"summary"`
	Content          json.RawMessage `json:"content"`
	EncryptedContent *string         `json:"encrypted_content"`
	Signature        *string         `json:"signature"`
	Format           *string         `json:"format"`
}

func hasReasoningBlock(f Fidelity) bool {
	if !bytes.Contains(f, []byte(`"reasoning"`)) {
		return false
	}
	for _, value := range fidelityFields(f) {
		if len(reasoningBlocks(value)) > 0 {
			return true
		}
	}
	return false
}

func fidelityFields(f Fidelity) (fields map[string]json.RawMessage) {
	f.Decode(&fields)
	return fields
}

// reasoningBlocks reads a value that is a reasoning item or a list of them.
func reasoningBlocks(value json.RawMessage) (blocks []reasoningBlock) {
	switch value[0] {
	case '{':
		blocks = make([]reasoningBlock, 1)
		_ = json.Unmarshal(value, &blocks[0])
	case '[':
		_ = json.Unmarshal(value, &blocks)
	}
	return slices.DeleteFunc(blocks, func(b reasoningBlock) bool { return b.Type != "reasoning" })
}

// liftReasoningBlock puts what a block must give back on the keys that clients read.
func liftReasoningBlock(f Fidelity) Fidelity {
	fields := fidelityFields(f)
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		blocks := reasoningBlocks(fields[key])
		if len(blocks) == 0 {
			continue
		}
		delete(fields, key)
		for _, block := range blocks {
			for name, value := range map[string]*string{"encrypted_content": block.EncryptedContent, "signature": block.Signature, "format": block.Format} {
				if value != nil {
					fields[name], _ = json.Marshal(*value)
				}
			}
			if channel := blockChannel(block); channel != "" {
				fields["channel"], _ = json.Marshal(channel)
			}
		}
	}
	lifted, _ := json.Marshal(fields)
	return Fidelity(lifted)
}

// blockChannel tells by which list of the block its text came.
func blockChannel(b reasoningBlock) string {
	empty := func(list json.RawMessage) bool {
		return len(bytes.Trim(list, " \t\r\n[]")) == 0 || string(list) == "null"
	}
	switch {
	case !empty(b.Summary):
		return "summary"
	case !empty(b.Content):
		return "content"
	}
	return ""
}
