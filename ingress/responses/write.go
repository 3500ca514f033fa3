package responses

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/ingress"
	"github.com/prism-shadow/mmsp-go/internal/carry"
	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
	"github.com/prism-shadow/mmsp-go/wire/openairesponses"
)

// writer is the answer as far as it is written. An item of the public stream becomes one output item; a proof that the
// item has no place for, a reasoning item without a text beside it. The end of an item that has a status waits for what
// comes next: at a limit or a filter the last one is incomplete.
type writer struct {
	echo     *openairesponses.Echo
	created  int64 // Unix time in seconds
	sequence int64 // number of the next event
	output   []byte
	outputs  int // items in output

	ids   []string // of the items of the public stream
	spare string   // of a message that none of them is, where it is kept
	seen  int      // items of the public stream that have begun

	begun    bool          // an item of the public stream is open
	early    mmsp.Fidelity // of it, as known before it is shown
	redacted bool          // it is thinking that is kept back, so far
	current  *shown        // it, once it is shown
	sealed   bool          // its proof stands before it
	joined   []byte        // arguments of it
	input    unwrapper     // of them, where the tool takes any text

	spoke bool   // an item is shown that is no reasoning
	held  *shown // the item before, which lacks its end
	after string // the proof that is to follow it

	// The events of fragments differ in their number and text alone.
	prefix, middle []byte
	suffix         string
}

// shown is an output item.
type shown struct {
	kind, id                string
	phase, part             string // message
	text                    string // of the part; arguments of a call; base64 of a picture
	callID, namespace, name string
	format                  string // of a picture
}

func (s *shown) append(dst []byte, status string) []byte {
	switch s.kind {
	case openairesponses.ItemMessage:
		return openairesponses.AppendMessage(dst, s.id, status, s.phase, s.part, s.text)
	case openairesponses.ItemImageGenerationCall:
		return openairesponses.AppendImage(dst, s.id, status, s.format, s.text)
	case openairesponses.ItemReasoning:
		if status != openairesponses.StatusIncomplete {
			status = "" // the standard has none
		}
		return openairesponses.AppendReasoning(dst, s.id, status, s.part, s.text, "")
	}
	return openairesponses.AppendCall(dst, s.kind, s.id, status, s.callID, s.namespace, s.name, s.text)
}

// event begins an event; end ends it.
func (c *call) event(dst []byte, kind string) []byte {
	dst = append(append(append(dst, "event: "...), kind...), "\ndata: {\"type\":\""...)
	dst = append(append(dst, kind...), `","sequence_number":`...)
	dst = strconv.AppendInt(dst, c.sequence, 10)
	c.sequence++
	return dst
}

const end = "}\n\n"

// at says which item and which part of it an event belongs to.
func (c *call) at(dst []byte, s *shown, index string) []byte {
	dst = jsonscan.AppendString(append(dst, `,"item_id":`...), s.id)
	dst = strconv.AppendInt(append(dst, `,"output_index":`...), int64(c.outputs), 10)
	if index != "" {
		dst = append(append(append(dst, ',', '"'), index...), `":0`...)
	}
	return dst
}

func (c *call) lifecycle(dst []byte, kind string, r *openairesponses.Resource) []byte {
	dst = append(c.event(dst, kind), `,"response":`...)
	return append(c.echo.Append(dst, r), end...)
}

func (c *call) resource(status string) *openairesponses.Resource {
	return &openairesponses.Resource{ID: c.id, CreatedAt: c.created, Status: status, Output: c.output}
}

// begin begins the stream where it has not begun.
func (c *call) begin(dst []byte) []byte {
	if c.echo != nil {
		return dst
	}
	c.echo, c.created = openairesponses.NewEcho(c.body), c.env.Now.Unix()
	dst = c.lifecycle(dst, "response.created", c.resource(openairesponses.StatusInProgress))
	return c.lifecycle(dst, "response.in_progress", c.resource(openairesponses.StatusInProgress))
}

// Heartbeat writes what the timers of callers take for a sign of life: an empty fragment where an item is open, for Codex,
// which does not count comments. No event of the stream's life comes twice.
func (c *call) Heartbeat(dst []byte) []byte {
	switch {
	case c.echo == nil:
		return c.begin(dst)
	case c.current != nil:
		return c.fragment(dst, "")
	}
	return append(dst, ": keep-alive\n\n"...)
}

// Event writes a delta or a done item.
func (c *call) Event(dst []byte, e *mmsp.Event) []byte {
	item := &e.Item
	if c.echo == nil {
		dst = c.begin(dst)
	}
	if !c.begun {
		c.begun = true
		c.early, c.redacted, c.sealed, c.joined, c.input = nil, false, false, c.joined[:0], unwrapper{}
		c.identify(item)
	}
	if c.current == nil && len(item.Fidelity) > 0 {
		c.early = item.Fidelity
	}
	switch item.Type {
	case mmsp.TextDelta:
		if item.Text != "" {
			c.joined = append(c.joined, item.Text...)
			dst = c.fragment(c.openText(dst), item.Text)
		}
	case mmsp.TextDone:
		dst = c.textDone(dst, item)
	case mmsp.ThinkingDelta:
		switch text := item.Thinking; {
		case text == "":
		case text == ingress.RedactedThinking && c.current == nil && !c.redacted:
			c.redacted = true
		default:
			if c.redacted { // the model's own words, after all
				text, c.redacted = ingress.RedactedThinking+text, false
			}
			c.joined = append(c.joined, text...)
			dst = c.fragment(c.openThinking(dst), text)
		}
	case mmsp.ThinkingDone:
		dst = c.thinkingDone(dst, item)
	case mmsp.ToolCallDelta:
		dst = c.openCall(dst, item)
		if item.Arguments != "" {
			dst = c.arguments(dst, item.Arguments)
		}
	case mmsp.ToolCallDone:
		dst = c.callDone(dst, item)
	case mmsp.InlineDataDone:
		dst = c.dataDone(dst, item)
	}
	if !item.Type.IsDelta() {
		c.begun, c.current = false, nil
	}
	return dst
}

// identify gives an item that begins its id.
func (c *call) identify(item *mmsp.Item) string {
	if c.seen == len(c.ids) {
		prefix := "msg_"
		switch item.Type.Kind() {
		case "thinking", "inline_thinking":
			prefix = "rs_"
		case "tool_call":
			prefix = "fc_"
			if c.tools[item.Name].custom {
				prefix = "ctc_"
			}
		case "inline_data":
			if strings.HasPrefix(item.MimeType, "image/") {
				prefix = "ig_"
			}
		}
		c.ids = append(c.ids, c.newID(prefix))
	}
	c.seen++
	return c.ids[c.seen-1]
}

// number gives the items of an answer, none of which was streamed beyond those that have theirs, their ids.
func (c *call) number(answer *mmsp.Message) {
	seen := c.seen
	for c.seen = len(c.ids); c.seen < len(answer.ContentItems); {
		c.identify(&answer.ContentItems[c.seen])
	}
	c.seen = seen
}

// native is the phase that a text's fidelity says and a message shows itself, as it does a refusal; bound that there is more,
// which needs an envelope.
func native(fidelity mmsp.Fidelity) (phase string, bound bool) {
	if len(fidelity) == 0 {
		return "", false
	}
	var fields map[string]json.RawMessage
	fidelity.Decode(&fields)
	for name, raw := range fields {
		switch {
		case name == "refusal" && string(raw) == "true":
		case name == "phase" && (string(raw) == `"commentary"` || string(raw) == `"final_answer"`):
			phase = strings.Trim(string(raw), `"`)
		default:
			bound = true
		}
	}
	return phase, bound
}

// seal returns the envelope of a proof that the item has no place for, empty where the caller wants none.
func (c *call) seal(kind string, fidelity mmsp.Fidelity, owner carry.Owner) string {
	if !c.proofs || len(fidelity) == 0 {
		return ""
	}
	return carry.Seal(carry.Envelope{Issuer: c.env.Peer, Kind: kind, Fidelity: fidelity, Owner: &owner}, carry.MaxInlineResponses)
}

// show announces an output item, after the end of the one before and, if it has one, its proof.
func (c *call) show(dst []byte, s *shown, proof string) []byte {
	dst = c.release(dst, openairesponses.StatusCompleted)
	if proof != "" {
		dst = c.proof(dst, proof)
		c.sealed = true
	}
	c.current, c.spoke = s, c.spoke || s.kind != openairesponses.ItemReasoning
	text := s.text
	s.text = ""
	dst = c.item(dst, "response.output_item.added", s.append(nil, openairesponses.StatusInProgress))
	s.text = text
	return dst
}

func (c *call) item(dst []byte, kind string, item []byte) []byte {
	dst = strconv.AppendInt(append(c.event(dst, kind), `,"output_index":`...), int64(c.outputs), 10)
	dst = append(append(dst, `,"item":`...), item...)
	return append(dst, end...)
}

// finish ends an output item.
func (c *call) finish(dst, item []byte) []byte {
	dst = c.item(dst, "response.output_item.done", item)
	c.collect(item)
	return dst
}

// collect adds an item to the output.
func (c *call) collect(item []byte) {
	if c.outputs++; c.outputs > 1 {
		c.output = append(c.output, ',')
	}
	c.output = append(c.output, item...)
}

// proof shows a proof as reasoning without a text.
func (c *call) proof(dst []byte, value string) []byte {
	id := c.newID("rs_")
	dst = c.item(dst, "response.output_item.added", openairesponses.AppendReasoning(nil, id, "", openairesponses.PartSummaryText, "", ""))
	return c.finish(dst, openairesponses.AppendReasoning(nil, id, "", openairesponses.PartSummaryText, "", value))
}

// release ends the item that is held, if one is.
func (c *call) release(dst []byte, status string) []byte {
	if c.held == nil {
		return dst
	}
	dst = c.finish(dst, c.held.append(nil, status))
	c.held = nil
	if c.after != "" {
		dst = c.proof(dst, c.after)
		c.after = ""
	}
	return dst
}

// fragment writes a piece of the open part.
func (c *call) fragment(dst []byte, text string) []byte {
	dst = strconv.AppendInt(append(dst, c.prefix...), c.sequence, 10)
	c.sequence++
	dst = jsonscan.AppendString(append(dst, c.middle...), text)
	return append(dst, c.suffix...)
}

// fragments says how the pieces of the current item are written.
func (c *call) fragments(kind, index, suffix string) {
	c.prefix = append(append(append(c.prefix[:0], "event: "...), kind...), "\ndata: {\"type\":\""...)
	c.prefix = append(append(c.prefix, kind...), `","sequence_number":`...)
	c.middle = append(c.at(c.middle[:0], c.current, index), `,"delta":`...)
	c.suffix = suffix + end
}

func (c *call) openText(dst []byte) []byte {
	if c.current != nil {
		return dst
	}
	phase, bound := native(c.early)
	proof := ""
	if bound {
		proof = c.seal("text", c.early, carry.Owner{})
	}
	s := &shown{kind: openairesponses.ItemMessage, id: c.ids[c.seen-1], phase: phase, part: openairesponses.PartOutputText}
	if ingress.IsRefusal(c.early) {
		s.part = openairesponses.PartRefusal
	}
	return c.openPart(c.show(dst, s, proof))
}

// openPart adds the part of the current item.
func (c *call) openPart(dst []byte) []byte {
	s := c.current
	index := "content_index"
	switch s.part {
	case openairesponses.PartSummaryText:
		index = "summary_index"
		dst = c.event(dst, "response.reasoning_summary_part.added")
	default:
		dst = c.event(dst, "response.content_part.added")
	}
	dst = append(c.at(dst, s, index), `,"part":`...)
	dst = append(openairesponses.AppendPart(dst, s.part, ""), end...)
	suffix := ""
	if s.part == openairesponses.PartOutputText {
		suffix = `,"logprobs":[]`
	}
	c.fragments(c.textEvent()+".delta", index, suffix)
	return dst
}

// textEvent names the events of the text of the current part.
func (c *call) textEvent() string {
	switch c.current.part {
	case openairesponses.PartOutputText:
		return "response.output_text"
	case openairesponses.PartRefusal:
		return "response.refusal"
	case openairesponses.PartSummaryText:
		return "response.reasoning_summary_text"
	}
	if c.open {
		return "response.reasoning"
	}
	return "response.reasoning_text"
}

// closePart ends the part of the current item, whose text is known now.
func (c *call) closePart(dst []byte) []byte {
	s := c.current
	index, done, field := "content_index", "response.content_part.done", `,"text":`
	switch s.part {
	case openairesponses.PartSummaryText:
		index, done = "summary_index", "response.reasoning_summary_part.done"
	case openairesponses.PartRefusal:
		field = `,"refusal":`
	}
	dst = c.at(c.event(dst, c.textEvent()+".done"), s, index)
	dst = jsonscan.AppendString(append(dst, field...), s.text)
	if s.part == openairesponses.PartOutputText {
		dst = append(dst, `,"logprobs":[]`...)
	}
	dst = append(dst, end...)
	dst = append(c.at(c.event(dst, done), s, index), `,"part":`...)
	return append(openairesponses.AppendPart(dst, s.part, s.text), end...)
}

// hold keeps the current item's end back; a proof that has not been shown follows it.
func (c *call) hold(kind string, fidelity mmsp.Fidelity, bound bool) {
	c.held = c.current
	if bound && !c.sealed {
		c.after = c.seal(kind, fidelity, carry.Owner{Previous: true, ToolCallID: c.held.callID})
	}
}

// textDone ends a message. A text that is empty and proves nothing is not shown.
func (c *call) textDone(dst []byte, item *mmsp.Item) []byte {
	phase, bound := native(item.Fidelity)
	if c.current == nil {
		if item.Text == "" && !(bound && c.proofs) {
			return dst
		}
		dst = c.openText(dst)
		if item.Text != "" {
			dst = c.fragment(dst, item.Text)
		}
	}
	c.current.text = item.Text
	if phase != "" {
		c.current.phase = phase
	}
	dst = c.closePart(dst)
	c.hold("text", item.Fidelity, bound)
	return dst
}

func (c *call) openThinking(dst []byte) []byte {
	if c.current != nil {
		return dst
	}
	return c.openPart(c.show(dst, &shown{kind: openairesponses.ItemReasoning, id: c.ids[c.seen-1], part: c.part}, ""))
}

// thinkingDone ends a reasoning item. Thinking that is empty and proves nothing is not shown.
func (c *call) thinkingDone(dst []byte, item *mmsp.Item) []byte {
	text, kind := item.Thinking, "thinking"
	if text == ingress.RedactedThinking && (c.redacted || c.current == nil) {
		text, kind = "", "redacted_thinking"
	}
	proof := c.thinkingProof(kind, text, item.Fidelity)
	switch {
	case c.current != nil:
	case text != "":
		dst = c.fragment(c.openThinking(dst), text)
	case proof != "":
		dst = c.show(dst, &shown{kind: openairesponses.ItemReasoning, id: c.ids[c.seen-1], part: c.part}, "")
	default:
		return dst
	}
	c.current.text = text
	if text != "" {
		dst = c.closePart(dst)
	}
	return c.finish(dst, openairesponses.AppendReasoning(nil, c.current.id, "", c.part, text, proof))
}

// thinkingProof returns what encrypted_content is. The provider's own value says all only where the text stands in the
// list that it came in.
func (c *call) thinkingProof(kind, text string, fidelity mmsp.Fidelity) string {
	if !c.proofs {
		return ""
	}
	var shown struct {
		Channel string `json:"channel"`
	}
	fidelity.Decode(&shown)
	if len(fidelity) > 0 && text != "" && (shown.Channel == "summary") != (c.part == openairesponses.PartSummaryText) {
		return carry.Seal(carry.Envelope{Issuer: c.env.Peer, Kind: kind, Fidelity: fidelity}, carry.MaxInlineResponses)
	}
	return carry.Value(carry.Responses, c.env.Peer, kind, fidelity, carry.MaxInlineResponses)
}

func (c *call) openCall(dst []byte, item *mmsp.Item) []byte {
	if c.current != nil {
		return dst
	}
	s := &shown{kind: openairesponses.ItemFunctionCall, id: c.ids[c.seen-1], callID: item.ToolCallID, name: item.Name}
	kind := "response.function_call_arguments.delta"
	if tool, ok := c.tools[item.Name]; ok {
		s.namespace, s.name = tool.namespace, tool.name
		if tool.custom {
			s.kind, kind = openairesponses.ItemCustomToolCall, "response.custom_tool_call_input.delta"
		}
	}
	dst = c.show(dst, s, c.seal("tool_call", c.early, carry.Owner{ToolCallID: item.ToolCallID}))
	c.fragments(kind, "", "")
	return dst
}

// arguments writes a piece of the arguments of the current call.
func (c *call) arguments(dst []byte, piece string) []byte {
	c.joined = append(c.joined, piece...)
	if c.current.kind == openairesponses.ItemCustomToolCall {
		if piece = c.input.feed(c.joined); piece == "" {
			return dst
		}
	}
	return c.fragment(dst, piece)
}

func (c *call) callDone(dst []byte, item *mmsp.Item) []byte {
	dst = c.openCall(dst, item)
	if len(c.joined) == 0 {
		arguments := item.Arguments
		if arguments == "" {
			arguments = "{}"
		}
		dst = c.arguments(dst, arguments)
	}
	dst = c.closeCall(dst)
	c.hold("tool_call", item.Fidelity, len(item.Fidelity) > 0)
	return dst
}

// closeCall says the whole arguments of the current call, or what came of them.
func (c *call) closeCall(dst []byte) []byte {
	s := c.current
	s.text = string(c.joined)
	if s.kind == openairesponses.ItemCustomToolCall {
		if c.input.inside {
			s.text = string(c.input.text)
		} else {
			s.text = unwrap(s.text)
			dst = c.fragment(dst, s.text)
		}
		dst = c.at(c.event(dst, "response.custom_tool_call_input.done"), s, "")
		return append(jsonscan.AppendString(append(dst, `,"input":`...), s.text), end...)
	}
	dst = c.at(c.event(dst, "response.function_call_arguments.done"), s, "")
	dst = jsonscan.AppendString(append(dst, `,"name":`...), s.name)
	return append(jsonscan.AppendString(append(dst, `,"arguments":`...), s.text), end...)
}

// dataDone shows a picture as the call of the provider's own tool would be shown. For sound the protocol has no place: it
// is a text, its data URL.
func (c *call) dataDone(dst []byte, item *mmsp.Item) []byte {
	encoded := base64.StdEncoding.EncodeToString(item.Data)
	proof := c.seal("inline_data", item.Fidelity, carry.Owner{})
	s := &shown{kind: openairesponses.ItemImageGenerationCall, id: c.ids[c.seen-1], text: encoded}
	image := false
	if s.format, image = strings.CutPrefix(item.MimeType, "image/"); image {
		dst = c.show(dst, s, proof)
	} else {
		text := "data:" + item.MimeType + ";base64," + encoded
		s = &shown{kind: openairesponses.ItemMessage, id: c.ids[c.seen-1], part: openairesponses.PartOutputText}
		dst = c.fragment(c.openPart(c.show(dst, s, "")), text)
		s.text = text
		dst = c.closePart(dst)
	}
	c.held = c.current
	return dst
}

// Stop ends the stream.
func (c *call) Stop(dst []byte, answer *mmsp.Message) []byte {
	dst, r := c.conclude(c.begin(dst), answer)
	dst = c.lifecycle(dst, "response."+r.Status, r)
	return append(dst, "data: [DONE]\n\n"...)
}

// Whole writes the answer as the last event of its stream would show it.
func (c *call) Whole(dst []byte, answer *mmsp.Message) []byte {
	stream := c.begin(nil)
	for i := range answer.ContentItems {
		stream = c.Event(stream[:0], &mmsp.Event{Type: mmsp.EventDelta, Item: answer.ContentItems[i]})
	}
	_, r := c.conclude(stream[:0], answer)
	return c.echo.Append(dst, r)
}

// conclude ends what is open and returns how the response ended.
func (c *call) conclude(dst []byte, answer *mmsp.Message) ([]byte, *openairesponses.Resource) {
	status, reason, refusal := ending(answer)
	if n := len(answer.ContentItems); n > 0 && answer.ContentItems[n-1].Type == mmsp.ToolCallDelta {
		cut := answer.ContentItems[n-1]
		if !c.begun {
			dst = c.Event(dst, &mmsp.Event{Type: mmsp.EventDelta, Item: cut})
		}
		dst = c.closeCall(dst)
		c.held, c.begun, c.current = c.current, false, nil
	}
	last := openairesponses.StatusCompleted
	if c.after == "" {
		last = status
	}
	dst = c.release(dst, last)
	if refusal != "" {
		dst = c.say(dst, openairesponses.PartRefusal, refusal)
	} else if status == openairesponses.StatusCompleted && !c.spoke {
		dst = c.say(dst, openairesponses.PartOutputText, "")
	}
	r := c.resource(status)
	r.IncompleteReason = reason
	if status == openairesponses.StatusCompleted {
		r.CompletedAt = max(c.now().Unix(), c.created)
	}
	r.Usage = &openairesponses.Usage{}
	if u := answer.Usage; u != nil {
		r.Usage.InputTokens, r.Usage.OutputTokens = ingress.Sum(u.CachedTokens, u.PromptTokens), ingress.Sum(u.ThoughtsTokens, u.ResponseTokens)
		r.Usage.CachedTokens, r.Usage.ReasoningTokens = u.CachedTokens, u.ThoughtsTokens
	}
	return dst, r
}

// ending says how a response ends. A refusal that the model did not put into words has the provider's. A malformed call,
// of which nothing is left, counts as filtered; a pause, and what the provider does not explain, as the end of the turn.
func ending(answer *mmsp.Message) (status, reason, refusal string) {
	kind, text := "", ""
	if answer.StopDetail != nil {
		kind, text = answer.StopDetail.Kind, answer.StopDetail.Text
	}
	switch {
	case answer.FinishReason == mmsp.FinishLength, kind == "context":
		return openairesponses.StatusIncomplete, "max_output_tokens", ""
	case kind == "refusal" && !ingress.EndsCut(answer):
		for i := range answer.ContentItems {
			if ingress.IsRefusal(answer.ContentItems[i].Fidelity) {
				return openairesponses.StatusCompleted, "", ""
			}
		}
		if text != "" {
			return openairesponses.StatusCompleted, "", text
		}
		return openairesponses.StatusIncomplete, "content_filter", ""
	case kind == "filter", kind == "refusal", kind == "malformed_call":
		return openairesponses.StatusIncomplete, "content_filter", ""
	}
	return openairesponses.StatusCompleted, "", ""
}

// say writes a message that is no item of the public stream.
func (c *call) say(dst []byte, part, text string) []byte {
	s := &shown{kind: openairesponses.ItemMessage, id: cmp.Or(c.spare, c.newID("msg_")), part: part}
	dst = c.openPart(c.show(dst, s, ""))
	if text != "" {
		dst = c.fragment(dst, text)
	}
	s.text = text
	dst = c.closePart(dst)
	c.held, c.current = c.current, nil
	return c.release(dst, openairesponses.StatusCompleted)
}

// Fail ends the stream with an error. The item that is open stays so; the output has what came of it.
func (c *call) Fail(dst []byte, p *ingress.Problem) []byte {
	dst = c.begin(dst)
	dst = c.release(dst, openairesponses.StatusCompleted)
	if s := c.current; s != nil {
		if s.text = string(c.joined); s.kind == openairesponses.ItemCustomToolCall {
			s.text = string(c.input.text)
		}
		c.collect(s.append(nil, openairesponses.StatusIncomplete))
	}
	r := c.resource(openairesponses.StatusFailed)
	r.Error = failure(p)
	dst = c.lifecycle(dst, "response.failed", r)
	return append(dst, "data: [DONE]\n\n"...)
}
