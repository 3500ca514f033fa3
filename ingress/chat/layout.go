package chat

import (
	"encoding/json"
	"slices"
	"unicode/utf8"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/ingress"
	"github.com/prism-shadow/mmsp-go/internal/carry"
	"github.com/prism-shadow/mmsp-go/wire/openaichat"
)

// The protocol flattens a turn: all text is one string, all thinking another, and calls stand beside them. Only calls
// have a place for a proof. What a turn with proofs was before is therefore said in one envelope, which goes out as the
// last of its reasoning_details, the list in which callers keep what they cannot read. One is enough, and it comes at the
// end, because the official library for Node keeps only the last list of a stream.

// layoutKind is the kind of that envelope.
const layoutKind = "turn"

type layout struct {
	Pieces []piece `json:"items"`
}

// piece is an item of the turn: so many bytes of the string that holds its kind, or the next call or picture.
type piece struct {
	Kind     string        `json:"k"` // thinking, text, refusal, tool_call or inline_data
	Bytes    int           `json:"n,omitempty"`
	ID       string        `json:"id,omitempty"` // of a call
	Redacted bool          `json:"r,omitempty"`  // thinking whose text is not shown
	Fidelity mmsp.Fidelity `json:"f,omitempty"`
}

// seal returns the envelope of a turn's layout, empty where the turn has no proof that needs one. The proofs of calls stand
// on the calls, but for those of the older form.
func seal(items []mmsp.Item, peer carry.Peer, legacy bool) string {
	var l layout
	needed, called := false, false
	left := carry.MaxInline / 4 * 3 // in base64 it is the whole
	for i := range items {
		item := &items[i]
		p := piece{Kind: item.Type.Kind(), Fidelity: item.Fidelity}
		switch item.Type {
		case mmsp.ThinkingDone:
			p.Bytes = len(item.Thinking)
			if p.Redacted = item.Thinking == ingress.RedactedThinking; p.Redacted {
				p.Bytes = 0
			}
			needed = needed || len(item.Fidelity) > 0 && !shown(item.Fidelity, peer)
		case mmsp.TextDone:
			p.Bytes = len(item.Text)
			if ingress.IsRefusal(item.Fidelity) {
				p.Kind = "refusal"
			}
			needed = needed || len(item.Fidelity) > 0 && string(item.Fidelity) != string(refusalMark)
		case mmsp.InlineDataDone:
			needed = needed || len(item.Fidelity) > 0
		case mmsp.ToolCallDone:
			if legacy && called {
				continue // the older form has room for one
			}
			if called = true; !legacy {
				p.ID, p.Fidelity = item.ToolCallID, nil
			}
			needed = needed || len(p.Fidelity) > 0
		default:
			continue
		}
		if left -= len(p.Fidelity); left < 0 { // it is recalled
			left += len(p.Fidelity)
			p.Fidelity = nil
		}
		l.Pieces = append(l.Pieces, p)
	}
	if !needed {
		return ""
	}
	text, err := json.Marshal(l)
	if err != nil { // fidelity that is no JSON
		return ""
	}
	return carry.Seal(carry.Envelope{Issuer: peer, Kind: layoutKind, Fidelity: text}, 2*carry.MaxInline)
}

// shown reports whether a caller sees all that a thinking item's fidelity says: the provider speaks the protocol, and what
// it wants back is its reasoning_content, or details of its own.
func shown(fidelity mmsp.Fidelity, peer carry.Peer) bool {
	kept := decodeReasoning(fidelity, peer)
	return kept.ReasoningField == "reasoning_content" || len(kept.ReasoningDetails) > 0
}

// reasoning is what the clients of the protocol keep of thinking beside its text.
type reasoning struct {
	ReasoningField   string                       `json:"reasoning_field,omitempty"`
	ReasoningDetails []openaichat.ReasoningDetail `json:"reasoning_details,omitempty"`
}

func decodeReasoning(fidelity mmsp.Fidelity, peer carry.Peer) (kept reasoning) {
	if peer.Protocol == carry.Chat {
		fidelity.Decode(&kept)
	}
	return kept
}

// unseal returns the pieces of the turn whose details these are; nil where they hold no layout.
func unseal(details []openaichat.ReasoningDetail) []piece {
	for i := range details {
		if !carry.Sealed(details[i].Data) {
			continue
		}
		e, ok := carry.Open(details[i].Data)
		if !ok || e.Kind != layoutKind {
			continue
		}
		var l layout
		if json.Unmarshal(e.Fidelity, &l) == nil {
			return l.Pieces
		}
	}
	return nil
}

// placed is an item and its place in the body.
type placed struct {
	path string
	item mmsp.Item
}

// strand is what the protocol keeps together of a turn: its thinking, its text, its calls.
type strand struct {
	kind  string
	items []placed                    // as they stand in the body
	path  string                      // of thinking, text and refusals: where they stand,
	text  string                      // all of it,
	build func(text string) mmsp.Item // and what a piece of it is

	fits bool // the layout speaks of this very strand
	at   int  // what has been taken: bytes, or items
}

// matches reports whether the strand is still what the layout says.
func (s *strand) matches(pieces []piece) bool {
	if !slices.ContainsFunc(pieces, func(p piece) bool { return p.Kind == s.kind }) {
		return false
	}
	n := 0
	for i := range pieces {
		p := &pieces[i]
		if p.Kind != s.kind {
			continue
		}
		if len(p.Fidelity) > 0 && p.Fidelity[0] != '{' {
			return false
		}
		if s.build == nil {
			if n >= len(s.items) || p.ID != "" && p.ID != s.items[n].item.ToolCallID {
				return false
			}
			n++
			continue
		}
		if p.Bytes < 0 || p.Bytes > len(s.text)-n {
			return false
		}
		if n += p.Bytes; n < len(s.text) && !utf8.RuneStart(s.text[n]) {
			return false
		}
	}
	if s.build == nil {
		return n == len(s.items)
	}
	return n == len(s.text)
}

// take returns the next item of the strand.
func (s *strand) take(p *piece) (next placed, ok bool) {
	if s.build == nil {
		next = s.items[s.at]
		s.at++
		if len(next.item.Fidelity) == 0 {
			next.item.Fidelity = p.Fidelity
		}
		return next, true
	}
	text := s.text[s.at : s.at+p.Bytes]
	s.at += p.Bytes
	if p.Redacted {
		text = ingress.RedactedThinking
	}
	next = placed{s.path, s.build(text)}
	next.item.Fidelity = p.Fidelity
	return next, p.Bytes > 0 || len(p.Fidelity) > 0
}

// weave puts the items of a turn back as the layout says. A strand that the caller changed, or that has no layout, stays as
// it is in the body: thinking first, calls last.
func weave(strands []*strand, pieces []piece) (items []placed) {
	for _, s := range strands {
		if s.fits = s.matches(pieces); !s.fits && s.kind != "tool_call" {
			items = append(items, s.items...)
		}
	}
	for i := range pieces {
		for _, s := range strands {
			if s.fits && s.kind == pieces[i].Kind {
				if next, ok := s.take(&pieces[i]); ok {
					items = append(items, next)
				}
			}
		}
	}
	for _, s := range strands {
		if !s.fits && s.kind == "tool_call" {
			items = append(items, s.items...)
		}
	}
	return items
}
