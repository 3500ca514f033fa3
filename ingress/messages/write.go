package messages

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/ingress"
	"github.com/prism-shadow/mmsp-go/internal/carry"
	"github.com/prism-shadow/mmsp-go/wire/anthropic"
)

// stream is how far the stream of an answer is.
type stream struct {
	begun bool
	index int  // of the block that is open, or comes next
	open  bool // a block is

	// Of the item that streams.
	fidelity mmsp.Fidelity // what its deltas brought
	carried  bool          // the block before holds it
	held     string        // thinking that may turn out to be redacted
}

func (c *call) ContentType() string { return "text/event-stream; charset=utf-8" }

func (c *call) Heartbeat(dst []byte) []byte { return anthropic.AppendPing(c.begin(dst)) }

func (c *call) begin(dst []byte) []byte {
	if c.begun {
		return dst
	}
	c.begun = true
	return anthropic.AppendMessageStart(dst, c.id, c.body.Model)
}

// Event writes the delta of a block that streams, opening it where there is something to show; or, at the end of an item,
// what is left of it.
func (c *call) Event(dst []byte, e *mmsp.Event) []byte {
	item := &e.Item
	if !item.Type.IsDelta() {
		return c.done(c.begin(dst), item)
	}
	if len(item.Fidelity) > 0 {
		c.fidelity = item.Fidelity
	}
	switch item.Type {
	case mmsp.TextDelta:
		if item.Text == "" {
			return dst
		}
		if !c.open {
			dst = c.start(dst, item, &anthropic.Block{Type: "text"})
		}
		return anthropic.AppendBlockDelta(dst, c.index, anthropic.TextDelta, item.Text)
	case mmsp.ThinkingDelta:
		text := item.Thinking
		switch {
		case c.omitted || text == "":
			return dst
		case !c.open:
			if c.held += text; strings.HasPrefix(ingress.RedactedThinking, c.held) {
				return dst
			}
			text = c.held
			dst = anthropic.AppendBlockStart(c.begin(dst), c.index, &anthropic.Block{Type: "thinking"})
			c.open = true
		}
		return anthropic.AppendBlockDelta(dst, c.index, anthropic.ThinkingDelta, text)
	case mmsp.ToolCallDelta:
		if !c.open {
			dst = c.start(dst, item, &anthropic.Block{Type: "tool_use", ID: item.ToolCallID, Name: item.Name, Input: emptyInput})
			dst = anthropic.AppendBlockDelta(dst, c.index, anthropic.InputDelta, "")
		}
		if item.Arguments == "" {
			return dst
		}
		return anthropic.AppendBlockDelta(dst, c.index, anthropic.InputDelta, item.Arguments)
	}
	return dst // what cannot be shown in pieces
}

var emptyInput = json.RawMessage("{}")

// start opens the block of a text or a call, after the proof where that is known.
func (c *call) start(dst []byte, item *mmsp.Item, b *anthropic.Block) []byte {
	dst = c.begin(dst)
	c.carried = c.fidelity != nil
	if proof := c.proof(item.Type, c.fidelity); proof != nil {
		dst = c.whole(dst, c.carrier(item, proof, &carry.Owner{ToolCallID: item.ToolCallID}))
	}
	c.open = true
	return anthropic.AppendBlockStart(dst, c.index, b)
}

// done ends the block of an item, or writes an item that did not stream.
func (c *call) done(dst []byte, item *mmsp.Item) []byte {
	open, carried := c.open, c.carried
	c.open, c.fidelity, c.carried, c.held = false, nil, false, ""
	if !open {
		for _, b := range c.blocks(item) {
			dst = c.whole(dst, b)
		}
		return dst
	}
	if item.Type == mmsp.ThinkingDone {
		dst = anthropic.AppendBlockDelta(dst, c.index, anthropic.SignatureDelta, c.signature(item))
	}
	dst = anthropic.AppendBlockStop(dst, c.index)
	c.index++
	if proof := c.proof(item.Type, item.Fidelity); item.Type != mmsp.ThinkingDone && !carried && proof != nil {
		dst = c.whole(dst, c.carrier(item, proof, &carry.Owner{Previous: true, ToolCallID: item.ToolCallID}))
	}
	return dst
}

// whole writes the events of a block that is whole.
func (c *call) whole(dst []byte, b anthropic.Block) []byte {
	first := b
	delta := func(kind anthropic.DeltaType, text string) {
		dst = anthropic.AppendBlockDelta(dst, c.index, kind, text)
	}
	switch b.Type {
	case "text":
		first.Text = ""
		dst = anthropic.AppendBlockStart(dst, c.index, &first)
		delta(anthropic.TextDelta, b.Text)
	case "thinking":
		first.Thinking, first.Signature = nil, ""
		dst = anthropic.AppendBlockStart(dst, c.index, &first)
		if b.Thinking != nil {
			delta(anthropic.ThinkingDelta, *b.Thinking)
		}
		delta(anthropic.SignatureDelta, b.Signature)
	case "tool_use":
		first.Input = emptyInput
		dst = anthropic.AppendBlockStart(dst, c.index, &first)
		delta(anthropic.InputDelta, "")
		delta(anthropic.InputDelta, string(b.Input))
	default:
		dst = anthropic.AppendBlockStart(dst, c.index, &first)
	}
	dst = anthropic.AppendBlockStop(dst, c.index)
	c.index++
	return dst
}

// blocks returns what a done item is shown as: its block, after one that carries its proof where its own cannot. What
// cannot be shown has none.
func (c *call) blocks(item *mmsp.Item) (blocks []anthropic.Block) {
	switch item.Type {
	case mmsp.TextDone:
		if item.Text != "" {
			blocks = []anthropic.Block{{Type: "text", Text: item.Text}}
		}
	case mmsp.ThinkingDone:
		switch {
		case item.Thinking == ingress.RedactedThinking && len(item.Fidelity) > 0:
			return []anthropic.Block{{Type: "redacted_thinking", Data: c.signature(item)}}
		case item.Thinking == ingress.RedactedThinking, item.Thinking == "" && len(item.Fidelity) == 0:
			return nil
		case item.Thinking == "", c.omitted:
			return []anthropic.Block{{Type: "thinking", Signature: c.signature(item)}}
		}
		return []anthropic.Block{{Type: "thinking", Thinking: &item.Thinking, Signature: c.signature(item)}}
	case mmsp.ToolCallDone:
		blocks = []anthropic.Block{{Type: "tool_use", ID: item.ToolCallID, Name: item.Name, Input: json.RawMessage(item.Arguments)}}
	case mmsp.InlineDataDone:
		// The protocol's own answers hold neither pictures nor sound: they stand as they would in a request.
		b := anthropic.Block{Type: "document", Source: &anthropic.Source{Type: "base64", MediaType: item.MimeType}, Title: item.Filename}
		if strings.HasPrefix(item.MimeType, "image/") {
			b.Type = "image"
		}
		b.Source.Data = base64.StdEncoding.EncodeToString(item.Data)
		blocks = []anthropic.Block{b}
	default:
		return nil
	}
	proof := c.proof(item.Type, item.Fidelity)
	switch {
	case proof == nil:
		return blocks
	case blocks == nil: // a text that says nothing stands for itself
		return []anthropic.Block{c.carrier(item, proof, nil)}
	}
	return append([]anthropic.Block{c.carrier(item, proof, &carry.Owner{ToolCallID: item.ToolCallID})}, blocks...)
}

// signature is the opaque value of a block of thinking. It is never empty, since callers leave out what is not signed.
func (c *call) signature(item *mmsp.Item) string {
	if value := carry.Value(carry.Messages, c.peer, "thinking", item.Fidelity, carry.MaxInline); value != "" {
		return value
	}
	return carry.Seal(carry.Envelope{Issuer: c.peer, Kind: "thinking"}, carry.MaxInline)
}

// carrier is the block that brings the proof of an item through the caller.
func (c *call) carrier(item *mmsp.Item, proof mmsp.Fidelity, owner *carry.Owner) anthropic.Block {
	e := carry.Envelope{Issuer: c.peer, Kind: item.Type.Kind(), Fidelity: proof, Owner: owner}
	return anthropic.Block{Type: "thinking", Signature: carry.Seal(e, carry.MaxInline)}
}

// proof is the fidelity of an item but for what the caller sees, or the provider does not know.
func (c *call) proof(kind mmsp.ItemType, fidelity mmsp.Fidelity) mmsp.Fidelity {
	if len(fidelity) == 0 || kind.Kind() != "text" {
		return fidelity
	}
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(fidelity, &fields) // the client wrote it
	before := len(fields)
	delete(fields, "refusal")
	if c.peer.Protocol != carry.Responses {
		delete(fields, "phase")
	}
	switch len(fields) {
	case before:
		return fidelity
	case 0:
		return nil
	}
	rest, _ := json.Marshal(fields)
	return rest
}

func (c *call) Stop(dst []byte, answer *mmsp.Message) []byte {
	dst = c.begin(dst)
	if c.open { // a call that was cut
		dst = anthropic.AppendBlockStop(dst, c.index)
		c.open = false
		c.index++
	}
	return anthropic.AppendMessageStop(dst, c.ending(answer))
}

func (c *call) Fail(dst []byte, p *ingress.Problem) []byte {
	return anthropic.AppendErrorEvent(dst, errorType(p.Kind), errorMessage(p), p.Code, p.RequestID)
}

func (c *call) Whole(dst []byte, answer *mmsp.Message) []byte {
	var content []anthropic.Block
	for i := range answer.ContentItems {
		content = append(content, c.blocks(&answer.ContentItems[i])...)
	}
	return anthropic.AppendMessage(dst, c.id, c.body.Model, content, c.ending(answer))
}

// ending says why the message ends. What the protocol has no reason for is the end of a turn; but a call that the provider
// could not read counts as refused, unless there are others to make: what is left of the turn is not all of it.
func (c *call) ending(answer *mmsp.Message) *anthropic.Ending {
	end := &anthropic.Ending{StopReason: "end_turn"}
	calls, refused := 0, false
	for i := range answer.ContentItems {
		item := &answer.ContentItems[i]
		if item.Type == mmsp.ToolCallDone {
			calls++
		}
		refused = refused || item.Type == mmsp.TextDone && ingress.IsRefusal(item.Fidelity)
	}
	detail := answer.StopDetail
	if detail == nil {
		detail = &mmsp.StopDetail{}
	}
	switch {
	case answer.FinishReason == mmsp.FinishLength:
		end.StopReason = "max_tokens"
	case detail.Kind == "context":
		end.StopReason = "model_context_window_exceeded"
	case detail.Kind == "filter", detail.Kind == "refusal", detail.Kind == "malformed_call" && calls == 0, ingress.EndsCut(answer):
		end.StopReason = "refusal"
		end.StopDetails = &anthropic.StopDetails{Explanation: detail.Text}
	case detail.Kind == "pause":
		end.StopReason = "pause_turn"
	case calls > 0: // callers answer the calls of no other turn
		end.StopReason = "tool_use"
	case refused:
		end.StopReason = "refusal"
		end.StopDetails = &anthropic.StopDetails{}
	case detail.Kind == "stop_sequence":
		end.StopReason, end.StopSequence = "stop_sequence", &detail.Text
	}
	if u := answer.Usage; u != nil {
		end.Usage = anthropic.Usage{
			InputTokens: u.PromptTokens, CacheReadInputTokens: u.CachedTokens,
			OutputTokens: ingress.Sum(u.ThoughtsTokens, u.ResponseTokens), ThinkingTokens: u.ThoughtsTokens,
		}
	}
	return end
}
