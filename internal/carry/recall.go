package carry

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash"
	"reflect"
	"slices"
	"strconv"
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

// Trail is what a conversation has said so far, as its caller has it: a turn is known by all that led to it. The zero Trail
// is that of a conversation which begins.
type Trail struct {
	digest hash.Hash // of all turns
	role   mmsp.Role // of the last
	last   []string  // what it said
	text   []byte    // to write to the digest
}

// add takes the next turn, and returns what it says. One that says nothing leaves no trace, as some callers leave it out.
func (t *Trail) add(message *mmsp.Message) (said []string) {
	if said = saidBy(message); said == nil {
		return nil
	}
	if t.digest == nil {
		t.digest = sha256.New()
	}
	write := func(part string) {
		t.text = append(append(strconv.AppendInt(t.text[:0], int64(len(part)), 10), ':'), part...)
		_, _ = t.digest.Write(t.text)
	}
	if message.Role != t.role { // neighbours of one role are one turn
		t.role, t.last = message.Role, nil
		write(string(message.Role))
	}
	for _, part := range said {
		write(part)
	}
	t.last = append(t.last, said...)
	return said
}

// saidBy returns what a turn says: texts, pictures and files, then the name and the arguments of each call. Thinking and ids
// are left out, since some callers have none, and what callers write anew: how texts are split, white space around them,
// the layout of arguments.
func saidBy(message *mmsp.Message) (said []string) {
	if text := saidText(message.ContentItems); text != "" {
		said = append(said, text)
	}
	for i := range message.ContentItems {
		switch item := &message.ContentItems[i]; item.Type {
		case mmsp.ToolResultDone:
			said = append(said, item.Text)
		case mmsp.ImageURLDone:
			said = append(said, item.ImageURL)
		case mmsp.InlineDataDone:
			said = append(said, string(item.Data))
		}
	}
	for _, call := range callsOf(message.ContentItems) {
		said = append(said, call.Name, canonical(call.Arguments))
	}
	return said
}

const (
	maxRecalled = 64 << 20 // bytes of all records that a history makes one read: it may name one of them in every turn
	maxProofs   = 8        // of a turn that are looked up, each of which tells the turn
)

// keysOf adds an assistant's turn to the trail and returns the keys that it is known by, the surest first: its proofs;
// all that led to it; then, for callers that change what came before, each of its calls, or, for those that know no ids, all
// of them and what they answer. Without proofs and calls it is known by all that led to it alone: short answers are alike.
func keysOf(trail *Trail, message *mmsp.Message, invented map[string]bool) (keys []string) {
	question := trail.last
	said := trail.add(message)
	if said == nil {
		return nil
	}
	key := func(kind string, parts ...string) {
		sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
		keys = append(keys, kind+base64.RawURLEncoding.EncodeToString(sum[:]))
	}
	for _, item := range message.ContentItems {
		var proof struct {
			Encrypted string `json:"encrypted_content"`
			Signature string `json:"signature"`
		}
		if item.Fidelity.Decode(&proof); proof.Encrypted+proof.Signature != "" && len(keys) < maxProofs {
			key("proof:", proof.Encrypted, proof.Signature)
		}
	}
	key("turn:", string(trail.digest.Sum(nil)))
	calls := callsOf(message.ContentItems)
	called := said[len(said)-2*len(calls):]
	for i, call := range calls {
		if !invented[call.ToolCallID] { // another conversation may have a call of that id
			key("call:", call.ToolCallID, called[2*i], called[2*i+1])
		}
	}
	if len(calls) > 0 {
		key("calls:", slices.Concat(called, question)...)
	}
	return keys
}

// Remember keeps an answer for callers whose protocol loses part of it. peer gave the answer, to a conversation that left
// the trail. An answer that nothing of can be lost is not kept.
func Remember(ctx context.Context, store Store, caller string, peer Peer, trail *Trail, answer *mmsp.Message, ids map[string]string) error {
	if len(ids) == 0 && !slices.ContainsFunc(answer.ContentItems, losable) {
		return nil
	}
	whole := *answer // but for a call that was cut, which nobody sends back
	whole.ContentItems = slices.DeleteFunc(slices.Clone(answer.ContentItems), func(i mmsp.Item) bool { return i.Type.IsDelta() })
	record, err := json.Marshal(turn{whole.AppendJSON(nil), peer, ids})
	if err != nil {
		return err
	}
	return store.Put(ctx, caller, record, keysOf(trail, &whole, nil)...)
}

// losable reports whether an item has what some protocol has no place for.
func losable(item mmsp.Item) bool {
	return item.Type == mmsp.ThinkingDone || item.Type == mmsp.InlineThinkingDone || len(item.Fidelity) > 0 && string(item.Fidelity) != `{"refusal":true}`
}

// Recall puts back what a caller's protocol lost of the assistant's turns of a history, whose items stand at the given
// paths of the request, for the peer that is asked. What the caller kept wins. invented are the ids of calls that the
// caller's protocol has none for. It returns the provider's ids of tool calls whose own ids do not tell them, and the trail
// of the history. A store that fails costs what it holds, as does a history that recalls too much: what is left of the
// history stays as the caller sent it, and the error says so.
func Recall(ctx context.Context, store Store, caller string, peer Peer, messages []mmsp.Message, paths [][]string, invented map[string]bool) (map[string]string, *Trail, error) {
	ids, trail := map[string]string{}, &Trail{}
	var failed error
	left := maxRecalled
	for m := range messages {
		message := &messages[m]
		if message.Role != mmsp.RoleAssistant || len(message.ContentItems) == 0 || failed != nil {
			trail.add(message)
			continue
		}
		given := thinkingOf(message.ContentItems)
		for _, key := range keysOf(trail, message, invented) {
			record, err := store.Get(ctx, caller, key)
			if left -= len(record); left < 0 {
				err = fmt.Errorf("a history recalls more than %d bytes", maxRecalled)
			}
			if err != nil {
				failed = err
				break
			}
			kept, original := read(record)
			if kept == nil || contradicts(given, thinkingOf(original)) {
				continue
			}
			for i := range original {
				original[i].Fidelity = bind(original[i].Type.Kind(), original[i].Fidelity, kept.Issuer, peer)
			}
			rename(messages[m:min(m+2, len(messages))], original, invented)
			restored := restore(message.ContentItems, original)
			if restored == nil {
				continue
			}
			for visible, real := range kept.IDs {
				ids[visible] = real
			}
			message.ContentItems = restored
			at := make([]string, len(restored))
			for i := range at {
				at[i] = paths[m][min(i, len(paths[m])-1)]
			}
			paths[m] = at
			break
		}
	}
	return ids, trail, failed
}

// read returns the turn of a record, and its items; nil where there is none that this version can read.
func read(record []byte) (*turn, []mmsp.Item) {
	var kept turn
	if record == nil || json.Unmarshal(record, &kept) != nil {
		return nil, nil
	}
	original, err := mmsp.ParseMessages(append(append([]byte{'['}, kept.Message...), ']'), true)
	if err != nil || len(original) != 1 {
		return nil, nil
	}
	return &kept, original[0].ContentItems
}

// thinking is what is compared of a thought: its letters, as callers lay it out as they like, and its proof.
type thinking struct {
	letters string
	proof   map[string]any
}

func thinkingOf(items []mmsp.Item) (all []thinking) {
	for _, item := range items {
		if item.Type == mmsp.ThinkingDone && string(item.Fidelity) != Void {
			t := thinking{letters: strings.Join(strings.Fields(item.Thinking), "")}
			item.Fidelity.Decode(&t.proof)
			all = append(all, t)
		}
	}
	return all
}

// contradicts reports whether a caller sent thinking that is not of the turn, or not in its order: its own turn is another
// that says the same.
func contradicts(given, original []thinking) bool {
	var all strings.Builder
	for _, t := range original {
		all.WriteString(t.letters)
	}
	text := all.String()
	for _, t := range given {
		_, rest, found := strings.Cut(text, t.letters)
		if !found {
			return true
		}
		text = rest
		if t.proof == nil {
			continue
		}
		// The next thought may hold the same proof: callers split them.
		at := slices.IndexFunc(original, func(o thinking) bool { return holds(o.proof, t.proof) })
		if at < 0 {
			return true
		}
		original = original[at:]
	}
	return false
}

// holds reports whether a proof has all that part of it says.
func holds(whole, part map[string]any) bool {
	for key, value := range part {
		if !reflect.DeepEqual(whole[key], value) {
			return false
		}
	}
	return true
}

// rename gives the calls of a turn whose ids are invented, and the results that follow it, the ids that they had.
func rename(messages []mmsp.Message, original []mmsp.Item, invented map[string]bool) {
	if len(invented) == 0 {
		return
	}
	calls := callsOf(original)
	ids := map[string]string{}
	for i, call := range callsOf(messages[0].ContentItems) {
		if i < len(calls) && invented[call.ToolCallID] && call.Name == calls[i].Name && canonical(call.Arguments) == canonical(calls[i].Arguments) {
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
