package chat

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/ingress"
	"github.com/prism-shadow/mmsp-go/internal/carry"
	"github.com/prism-shadow/mmsp-go/wire/openaichat"
)

// encoder writes one answer.
type encoder struct {
	id      string
	created int64
	model   string
	peer    carry.Peer
	legacy  bool            // calls are answered in the older form, which has room for one
	custom  map[string]bool // tools whose input is a text
	chunks  *openaichat.Chunks

	begun bool
	open  bool // an item has begun and is not done
	calls int  // that have begun

	// Of the open item.
	field  string                       // of text: content or refusal
	hidden bool                         // nothing is written of it
	detail []openaichat.ReasoningDetail // of thinking: what every piece of it is written with, proofs aside
	wrote  bool                         // of a call: arguments; of thinking: details
	signed bool                         // of a call
}

func (c *encoder) ContentType() string { return "text/event-stream; charset=utf-8" }

// Heartbeat appends the first chunk, which says no more than that the answer begins, or a comment, which every client passes over.
func (c *encoder) Heartbeat(dst []byte) []byte {
	if !c.begun {
		return c.begin(dst, false)
	}
	return append(dst, ": keep-alive\n\n"...)
}

// Event appends the chunks of an item or a piece of it.
func (c *encoder) Event(dst []byte, e *mmsp.Event) []byte {
	item := &e.Item
	first := !c.open
	c.open = item.Type.IsDelta()
	switch item.Type {
	case mmsp.TextDelta, mmsp.TextDone:
		if first {
			if c.field = "content"; ingress.IsRefusal(item.Fidelity) {
				c.field = "refusal"
			}
		}
		if (first || c.open) && item.Text != "" {
			dst = c.chunks.Text(c.begin(dst, c.field == "content"), c.field, item.Text)
		}
	case mmsp.ThinkingDelta, mmsp.ThinkingDone:
		dst = c.thinking(dst, item, first)
	case mmsp.ToolCallDelta, mmsp.ToolCallDone:
		dst = c.toolCall(dst, item, first)
	case mmsp.InlineDataDone:
		if len(item.Data) == 0 { // which nobody could bring back
			return dst
		}
		media := openaichat.Media{ID: "audio_" + c.id, MimeType: item.MimeType, Data: item.Data, Expires: c.created}
		if dst = c.begin(dst, false); strings.HasPrefix(item.MimeType, "audio/") {
			dst = c.chunks.Audio(dst, &media)
		} else {
			dst = c.chunks.Picture(dst, &media)
		}
	}
	return dst
}

// begin appends the first chunk where it has not been.
func (c *encoder) begin(dst []byte, content bool) []byte {
	if c.begun {
		return dst
	}
	c.begun = true
	return c.chunks.Role(dst, content)
}

// thinking appends a piece of thinking. Details that the provider gives are written as providers do: each piece says its
// part of the text, and the proof comes at the end.
func (c *encoder) thinking(dst []byte, item *mmsp.Item, first bool) []byte {
	if first {
		c.hidden, c.wrote, c.detail = item.Thinking == ingress.RedactedThinking, false, nil
		if len(item.Fidelity) > 0 && c.open {
			c.detail = decodeReasoning(item.Fidelity, c.peer).ReasoningDetails
			for i := range c.detail {
				c.detail[i].Data, c.detail[i].Signature = "", ""
			}
		}
	}
	text := item.Thinking
	switch {
	case c.hidden && c.open && !first && text != "": // the model's own words, after all
		text, c.hidden = ingress.RedactedThinking+text, false
	case c.hidden:
		text = ""
	}
	if c.open {
		if text == "" {
			return dst
		}
		c.wrote = len(c.detail) > 0
		return c.chunks.Reasoning(c.begin(dst, false), text, sayDetails(c.detail, text)...)
	}
	details := decodeReasoning(item.Fidelity, c.peer).ReasoningDetails
	if c.wrote { // but for the proof
		details = slices.DeleteFunc(details, func(d openaichat.ReasoningDetail) bool { return !d.Bound() })
	} else {
		details = sayDetails(details, text)
	}
	if !first {
		text = "" // it has been written
	}
	if text == "" && len(details) == 0 {
		return dst
	}
	return c.chunks.Reasoning(c.begin(dst, false), text, details...)
}

// sayDetails returns a copy of an item's details with its text, which the first of them had.
func sayDetails(details []openaichat.ReasoningDetail, text string) []openaichat.ReasoningDetail {
	if len(details) == 0 {
		return nil
	}
	said := append([]openaichat.ReasoningDetail(nil), details...)
	if said[0].Type == "reasoning.summary" {
		said[0].Summary = text
	} else {
		said[0].Text = text
	}
	return said
}

func encodeDetail(d *openaichat.ReasoningDetail) mmsp.Fidelity {
	fidelity, _ := json.Marshal(reasoning{ReasoningDetails: []openaichat.ReasoningDetail{*d}})
	return fidelity
}

// toolCall appends the beginning of a call or a fragment of its arguments.
func (c *encoder) toolCall(dst []byte, item *mmsp.Item, first bool) []byte {
	if first {
		c.calls++
		c.wrote, c.signed = false, len(item.Fidelity) > 0
		c.hidden = c.legacy && c.calls > 1 || c.open && c.custom[item.Name]
	}
	index := c.calls - 1
	if !c.open && c.custom[item.Name] && !(c.legacy && c.calls > 1) {
		// The text is known when its JSON string is whole.
		call := c.answerCall(item)
		return c.chunks.Input(c.chunks.Call(c.begin(dst, false), index, &call), index, call.Arguments)
	}
	if c.hidden {
		return dst
	}
	if first {
		dst = c.begin(dst, false)
		if c.legacy {
			dst = c.chunks.FunctionCall(dst, item.Name)
		} else {
			call := c.answerCall(item)
			dst = c.chunks.Call(dst, index, &call)
		}
	}
	if item.Arguments != "" && (c.open || !c.wrote) {
		c.wrote = true
		if c.legacy {
			dst = c.chunks.FunctionArguments(dst, item.Arguments)
		} else {
			dst = c.chunks.Arguments(dst, index, item.Arguments)
		}
	}
	if !c.signed && len(item.Fidelity) > 0 && !c.legacy {
		c.signed = true
		dst = c.chunks.Signature(dst, index, c.signature(item))
	}
	return dst
}

// signature carries the proof of a call in the field that Google's own endpoint of the protocol has for it.
func (c *encoder) signature(item *mmsp.Item) string {
	return carry.Value(carry.Chat, c.peer, "tool_call", item.Fidelity, carry.MaxInline)
}

func (c *encoder) answerCall(item *mmsp.Item) openaichat.AnswerCall {
	call := openaichat.AnswerCall{ID: item.ToolCallID, Name: item.Name, Arguments: item.Arguments, ThoughtSignature: c.signature(item)}
	if c.custom[item.Name] {
		call.Custom = true
		var arguments struct {
			Input *string `json:"input"`
		}
		if json.Unmarshal([]byte(item.Arguments), &arguments) == nil && arguments.Input != nil {
			call.Arguments = *arguments.Input
		}
	}
	return call
}

// Stop appends the proofs of the turn, its end, and the usage where it is asked for.
func (c *encoder) Stop(dst []byte, answer *mmsp.Message) []byte {
	if n := len(answer.ContentItems); n > 0 {
		// A call that was cut has been written, but for one that waited for its end.
		if cut := &answer.ContentItems[n-1]; cut.Type == mmsp.ToolCallDelta && c.custom[cut.Name] && !(c.legacy && c.calls > 1) {
			call := c.answerCall(cut)
			dst = c.chunks.Input(c.chunks.Call(c.begin(dst, false), c.calls-1, &call), c.calls-1, call.Arguments)
		}
	}
	refused := refusalOf(answer)
	dst = c.begin(dst, refused == "")
	if refused != "" {
		dst = c.chunks.Text(dst, "refusal", refused)
	}
	if detail, ok := c.layout(answer); ok {
		dst = c.chunks.Reasoning(dst, "", detail)
	}
	dst = c.chunks.Finish(dst, c.finishReason(answer))
	return c.chunks.Done(dst, usageOf(answer.Usage))
}

// layout is the detail that carries what a turn was before it was flattened. Its format is the one that stands for any
// other in the list of formats that clients of such details know, and its id is unlike that of any other turn: some
// clients leave out what they do not know or have had.
func (c *encoder) layout(answer *mmsp.Message) (detail openaichat.ReasoningDetail, ok bool) {
	sealed := seal(answer.ContentItems, c.peer, c.legacy)
	if sealed == "" {
		return detail, false
	}
	index := int64(0)
	for i := range answer.ContentItems {
		if item := &answer.ContentItems[i]; item.Type == mmsp.ThinkingDone {
			for _, own := range decodeReasoning(item.Fidelity, c.peer).ReasoningDetails {
				if own.Index != nil && *own.Index >= index {
					index = *own.Index + 1
				}
			}
		}
	}
	return openaichat.ReasoningDetail{Type: "reasoning.encrypted", Data: sealed, ID: "rs_" + c.id, Format: "unknown", Index: &index}, true
}

// Fail appends the error and the end of the stream.
func (c *encoder) Fail(dst []byte, p *ingress.Problem) []byte {
	kind, code := p.OpenAI()
	return openaichat.AppendErrorChunk(dst, p.Message, kind, p.Param, code)
}

// Whole appends the answer as one object.
func (c *encoder) Whole(dst []byte, answer *mmsp.Message) []byte {
	a := openaichat.Answer{
		ID: "chatcmpl-" + c.id, Created: c.created, Model: c.model,
		FinishReason: c.finishReason(answer), Usage: usageOf(answer.Usage),
	}
	var content, refusal, thinking strings.Builder
	for i := range answer.ContentItems {
		switch item := &answer.ContentItems[i]; item.Type {
		case mmsp.TextDone:
			if ingress.IsRefusal(item.Fidelity) {
				refusal.WriteString(item.Text)
			} else {
				content.WriteString(item.Text)
			}
		case mmsp.ThinkingDone:
			text := item.Thinking
			if text == ingress.RedactedThinking {
				text = ""
			}
			thinking.WriteString(text)
			a.Details = append(a.Details, sayDetails(decodeReasoning(item.Fidelity, c.peer).ReasoningDetails, text)...)
		case mmsp.ToolCallDone, mmsp.ToolCallDelta:
			call := c.answerCall(item)
			switch {
			case !c.legacy:
				a.ToolCalls = append(a.ToolCalls, call)
			case a.FunctionCall == nil:
				a.FunctionCall = &call
			}
		case mmsp.InlineDataDone:
			switch {
			case len(item.Data) == 0:
			case !strings.HasPrefix(item.MimeType, "audio/"):
				a.Pictures = append(a.Pictures, openaichat.Media{MimeType: item.MimeType, Data: item.Data})
			case a.Audio == nil:
				a.Audio = &openaichat.Media{ID: "audio_" + c.id, Data: slices.Clip(item.Data), Expires: c.created}
			default:
				a.Audio.Data = append(a.Audio.Data, item.Data...)
			}
		}
	}
	refusal.WriteString(refusalOf(answer))
	a.Refusal, a.Reasoning = refusal.String(), thinking.String()
	if content.Len() > 0 || a.Refusal == "" && a.ToolCalls == nil && a.FunctionCall == nil {
		a.Content = new(content.String())
	}
	if detail, ok := c.layout(answer); ok {
		a.Details = append(a.Details, detail)
	}
	return a.Append(dst)
}

// refusalOf is why the provider refused, in its own words, where the model did not put it into words; else empty.
func refusalOf(answer *mmsp.Message) string {
	if answer.FinishReason == mmsp.FinishLength || answer.StopDetail == nil || answer.StopDetail.Kind != "refusal" || refuses(answer) {
		return ""
	}
	return answer.StopDetail.Text
}

// refuses reports whether the model put a refusal into words.
func refuses(answer *mmsp.Message) bool {
	return slices.ContainsFunc(answer.ContentItems, func(i mmsp.Item) bool { return i.Type == mmsp.TextDone && ingress.IsRefusal(i.Fidelity) })
}

// finishReason says why the answer ended in the protocol's words, which have none for a refusal: it is a message of its own
// that stops. One without words is a filter's. A call that the provider could not read counts as filtered, unless there are
// others to make: what is left of the turn is not all of it.
func (c *encoder) finishReason(answer *mmsp.Message) string {
	called := slices.ContainsFunc(answer.ContentItems, func(i mmsp.Item) bool { return i.Type == mmsp.ToolCallDone })
	kind := ""
	if answer.StopDetail != nil {
		kind = answer.StopDetail.Kind
	}
	switch {
	case answer.FinishReason == mmsp.FinishLength, kind == "context":
		return "length"
	case kind == "filter", kind == "malformed_call" && !called, ingress.EndsCut(answer):
		return "content_filter"
	case kind == "refusal" && !refuses(answer) && refusalOf(answer) == "":
		return "content_filter"
	case kind == "refusal" && answer.FinishReason != mmsp.FinishToolCall: // calls that stand before it are not to be made
		return "stop"
	case called && c.legacy:
		return "function_call"
	case called:
		return "tool_calls"
	}
	return "stop"
}

// usageOf counts as the protocol does: input with what came from a cache, output with thinking. It is nil where the
// provider told nothing.
func usageOf(u *mmsp.Usage) *openaichat.Usage {
	if u == nil || *u == (mmsp.Usage{}) {
		return nil
	}
	return &openaichat.Usage{
		PromptTokens: ingress.Sum(u.CachedTokens, u.PromptTokens), CompletionTokens: ingress.Sum(u.ThoughtsTokens, u.ResponseTokens),
		CachedTokens: u.CachedTokens, ReasoningTokens: u.ThoughtsTokens,
	}
}
