package carry

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// turn is an assistant's turn as the store keeps it, with the ids and names that its caller knows.
type turn struct {
	Message json.RawMessage   `json:"m"`
	Issuer  Peer              `json:"by"`
	IDs     map[string]string `json:"ids,omitempty"` // of the caller → of the provider, where one does not tell the other
}

// Remember keeps an answer for callers whose protocol loses part of it: under the ids of its tool calls, and under digests
// of what such callers send back. peer gave the answer, and before is the history that it answers. An answer that nothing of can be lost is not kept.
func Remember(ctx context.Context, store Store, caller string, peer Peer, before []mmsp.Message, answer *mmsp.Message, ids map[string]string) error {
	if len(ids) == 0 && !slices.ContainsFunc(answer.ContentItems, losable) {
		return nil
	}
	whole := *answer // but for a call that was cut, which nobody sends back
	whole.ContentItems = slices.DeleteFunc(slices.Clone(answer.ContentItems), func(i mmsp.Item) bool { return i.Type.IsDelta() })
	record, err := json.Marshal(turn{whole.AppendJSON(nil), peer, ids})
	if err != nil {
		return err
	}
	var keys []string
	for i := range answer.ContentItems {
		if item := &answer.ContentItems[i]; item.Type == mmsp.ToolCallDone && !slices.Contains(keys, callKey(item.ToolCallID)) {
			keys = append(keys, callKey(item.ToolCallID))
		}
	}
	keys = append(keys, digests(before, answer)...)
	return store.Put(ctx, caller, record, keys...)
}

// losable reports whether an item has what some protocol has no place for.
func losable(item mmsp.Item) bool {
	return item.Type == mmsp.ThinkingDone || item.Type == mmsp.InlineThinkingDone || len(item.Fidelity) > 0 && string(item.Fidelity) != `{"refusal":true}`
}

// Recall puts back what a caller's protocol lost of the assistant's turns of a history, whose items stand at the given
// paths of the request, for the peer that is asked. invented are the ids of calls that the caller's protocol has none for.
// It returns the provider's ids of tool calls whose own ids do not tell them. A store that fails costs what it holds: the
// history stays as the caller sent it, and the error says so.
func Recall(ctx context.Context, store Store, caller string, peer Peer, messages []mmsp.Message, paths [][]string, invented map[string]bool) (map[string]string, error) {
	ids := map[string]string{}
	var failed error
	for m := range messages {
		message := &messages[m]
		if message.Role != mmsp.RoleAssistant || len(message.ContentItems) == 0 {
			continue
		}
		kept, err := find(ctx, store, caller, messages[:m], message, invented)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		if kept == nil {
			continue
		}
		original, err := mmsp.ParseMessages(append(append([]byte{'['}, kept.Message...), ']'), true)
		if err != nil || len(original) != 1 {
			continue // of another version
		}
		for i := range original[0].ContentItems {
			item := &original[0].ContentItems[i]
			item.Fidelity = bind(item.Type.Kind(), item.Fidelity, kept.Issuer, peer)
		}
		rename(messages[m:min(m+2, len(messages))], original[0].ContentItems, invented)
		for visible, real := range kept.IDs {
			ids[visible] = real
		}
		restored := restore(message.ContentItems, original[0].ContentItems)
		if restored != nil {
			message.ContentItems = restored
			at := make([]string, len(restored))
			for i := range at {
				at[i] = paths[m][min(i, len(paths[m])-1)]
			}
			paths[m] = at
		}
	}
	return ids, failed
}

// find looks a turn up by the ids of its calls. One whose calls have none of their own, or that calls nothing, is known by
// what it says: after what it was said first.
func find(ctx context.Context, store Store, caller string, before []mmsp.Message, message *mmsp.Message, invented map[string]bool) (kept *turn, err error) {
	var keys []string
	for _, call := range callsOf(message.ContentItems) {
		if !invented[call.ToolCallID] {
			keys = append(keys, callKey(call.ToolCallID))
		}
	}
	if keys == nil {
		keys = digests(before, message)
	}
	for _, key := range keys {
		record, err := store.Get(ctx, caller, key)
		if err != nil {
			return nil, err
		}
		if record != nil && json.Unmarshal(record, &kept) == nil {
			return kept, nil
		}
	}
	return nil, nil
}

// rename gives the calls of a turn whose ids are invented, and the results that follow it, the ids that they had.
func rename(messages []mmsp.Message, original []mmsp.Item, invented map[string]bool) {
	calls := callsOf(original)
	ids := map[string]string{}
	for i, call := range callsOf(messages[0].ContentItems) {
		if i < len(calls) && invented[call.ToolCallID] {
			ids[call.ToolCallID] = calls[i].ToolCallID
			call.ToolCallID = calls[i].ToolCallID
		}
	}
	if len(messages) < 2 {
		return
	}
	for i := range messages[1].ContentItems {
		item := &messages[1].ContentItems[i]
		if id, ok := ids[item.ToolCallID]; ok && item.Type == mmsp.ToolResultDone {
			item.ToolCallID = id
		}
	}
}

// restore returns the items that a turn had, where the caller's items are what a protocol keeps of them; nil where
// nothing of the turn fits. A turn that the caller changed keeps its change: only its calls get back what is theirs.
func restore(given, original []mmsp.Item) []mmsp.Item {
	if saidText(given) == saidText(original) && sameCalls(given, original) {
		return original
	}
	restored := slices.Clone(given)
	first := -1 // of the original calls that are there
	changed := false
	for i := range restored {
		if restored[i].Type != mmsp.ToolCallDone {
			continue
		}
		j := slices.IndexFunc(original, func(o mmsp.Item) bool { return sameCall(&o, &restored[i]) })
		if j < 0 {
			continue
		}
		if first < 0 {
			first = j
		}
		restored[i], changed = original[j], true
	}
	if !changed {
		return nil
	}
	// Thinking stands before the calls that it led to.
	if !slices.ContainsFunc(given, func(i mmsp.Item) bool { return i.Type == mmsp.ThinkingDone }) {
		var thoughts []mmsp.Item
		for _, item := range original[:first] {
			if item.Type == mmsp.ThinkingDone {
				thoughts = append(thoughts, item)
			}
		}
		restored = append(thoughts, restored...)
	}
	return restored
}

func callKey(id string) string { return "call:" + id }

// digests returns the keys of a turn by what it says, the surest first: with what it answers and, where it calls nothing,
// by itself.
func digests(before []mmsp.Message, message *mmsp.Message) []string {
	digest := func(parts ...string) string {
		sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
		return "turn:" + base64.RawURLEncoding.EncodeToString(sum[:])
	}
	text := saidText(message.ContentItems)
	said := []string{text}
	for _, call := range callsOf(message.ContentItems) {
		said = append(said, call.Name, canonical(call.Arguments))
	}
	if len(said) == 1 && text == "" {
		return nil
	}
	answers := said
	if len(before) > 0 {
		last := &before[len(before)-1]
		for i := range last.ContentItems {
			item := &last.ContentItems[i]
			answers = append(answers, string(item.Type), item.Text, item.ToolCallID)
		}
	}
	keys := []string{digest(answers...)}
	if len(said) == 1 {
		keys = append(keys, digest(text))
	}
	return slices.Compact(keys)
}

// saidText joins the texts of a turn: callers split and trim them as they like.
func saidText(items []mmsp.Item) string {
	var b strings.Builder
	for i := range items {
		if items[i].Type == mmsp.TextDone {
			b.WriteString(items[i].Text)
		}
	}
	return strings.TrimSpace(b.String())
}

func callsOf(items []mmsp.Item) (calls []*mmsp.Item) {
	for i := range items {
		if items[i].Type == mmsp.ToolCallDone {
			calls = append(calls, &items[i])
		}
	}
	return calls
}

func sameCalls(a, b []mmsp.Item) bool { return slices.EqualFunc(callsOf(a), callsOf(b), sameCall) }

// sameCall compares calls whose arguments callers may have written anew: other white space, another order of keys, the
// numbers of JavaScript.
func sameCall(a, b *mmsp.Item) bool {
	if a.Type != b.Type || a.ToolCallID != b.ToolCallID || a.Name != b.Name {
		return false
	}
	return a.Arguments == b.Arguments || canonical(a.Arguments) == canonical(b.Arguments)
}

func canonical(arguments string) string {
	if arguments == "" {
		return "{}"
	}
	var value any
	if !jsonscan.Valid([]byte(arguments)) || json.Unmarshal([]byte(arguments), &value) != nil {
		return arguments
	}
	text, err := json.Marshal(value)
	if err != nil {
		return arguments
	}
	return string(text)
}
