package generatecontent

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/ingress"
	"github.com/prism-shadow/mmsp-go/internal/carry"
	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
	"github.com/prism-shadow/mmsp-go/wire/genai"
)

// encoder is the state of an answer that is being written.
type encoder struct {
	showsThoughts bool
	begun         bool   // the stream
	tail          []byte // of a chunk that is not the last, from behind its parts

	// Of the open item.
	started bool   // a delta came
	held    string // what may turn out to be the text of thinking that is not shown
	mime    string // of sound

	// unsigned is the kind of the text that was written last, if another of its kind would run into it.
	unsigned mmsp.ItemType
}

// ContentType is that of events, or of the one array.
func (c *call) ContentType() string {
	if c.events {
		return "text/event-stream; charset=utf-8"
	}
	return "application/json; charset=utf-8"
}

// Heartbeat writes an empty block, which says nothing in either framing. Google's Python library takes every line of a stream
// that is neither empty nor data for JSON, and so a comment; the one for Go every block.
func (c *call) Heartbeat(dst []byte) []byte { return append(dst, "\n\n"...) }

// Event writes a chunk for every piece of text and sound, and for everything else when it is whole: Google sends calls whole,
// too.
func (c *call) Event(dst []byte, e *mmsp.Event) []byte {
	start, begun := len(dst), c.begun
	dst = append(c.open(dst), partsHead...)
	parts := len(dst)
	if e.Item.Type.IsDelta() {
		dst = c.delta(dst, &e.Item)
	} else {
		dst = c.done(dst, &e.Item)
	}
	if len(dst) == parts { // there is nothing to say
		c.begun = begun
		return dst[:start]
	}
	if c.tail == nil {
		c.tail = append(c.appendAbout([]byte(`]},"index":0}]`)), '}')
	}
	return c.close(append(dst, c.tail...))
}

// Stop writes the last chunk, which alone has a finish reason and the counts. Chats of Google's library forget an answer with
// a chunk that has no part.
func (c *call) Stop(dst []byte, answer *mmsp.Message) []byte {
	dst = c.open(dst)
	if blocked(answer) {
		dst = c.appendBlock(dst, answer)
	} else {
		dst = c.appendFinish(append(dst, partsHead+`{"text":""}`...), answer)
	}
	return c.end(c.close(dst))
}

// Fail writes the error in the place of a chunk.
func (c *call) Fail(dst []byte, p *ingress.Problem) []byte {
	return c.end(c.close(appendError(c.open(dst), p)))
}

// Whole writes an answer in one, or its vectors.
func (c *call) Whole(dst []byte, answer *mmsp.Message) []byte {
	if c.embeddings != nil {
		return c.appendVectors(dst, answer)
	}
	if blocked(answer) {
		return c.appendBlock(dst, answer)
	}
	dst = append(dst, partsHead...)
	parts := len(dst)
	for i := range answer.ContentItems {
		dst = c.done(dst, &answer.ContentItems[i]) // which leaves out a call that was cut
	}
	if len(dst) == parts {
		dst = append(dst, `{"text":""}`...)
	}
	return c.appendFinish(dst, answer)
}

// Count writes the answer of countTokens.
func (c *call) Count(dst []byte, tokens int64) []byte {
	return append(strconv.AppendInt(append(dst, `{"totalTokens":`...), tokens, 10), '}')
}

// open begins a chunk of the stream.
func (c *call) open(dst []byte) []byte {
	switch {
	case c.events:
		dst = append(dst, "data: "...)
	case c.begun:
		dst = append(dst, ",\n"...)
	default:
		dst = append(dst, '[')
	}
	c.begun = true
	return dst
}

// close ends a chunk of the stream.
func (c *call) close(dst []byte) []byte {
	if c.events {
		dst = append(dst, "\n\n"...)
	}
	return dst
}

// end ends the stream.
func (c *call) end(dst []byte) []byte {
	if !c.events {
		dst = append(dst, ']')
	}
	return dst
}

const partsHead = `{"candidates":[{"content":{"role":"model","parts":[`

// appendAbout appends what every chunk says of the whole answer.
func (c *call) appendAbout(dst []byte) []byte {
	dst = jsonscan.AppendString(append(dst, `,"modelVersion":`...), c.model)
	return jsonscan.AppendString(append(dst, `,"responseId":`...), c.env.RequestID)
}

// appendFinish appends what follows the parts of the last chunk, or of a whole answer.
func (c *call) appendFinish(dst []byte, answer *mmsp.Message) []byte {
	reason, message := finish(answer)
	dst = append(append(append(dst, `]},"finishReason":"`...), reason...), '"')
	if message != "" {
		dst = jsonscan.AppendString(append(dst, `,"finishMessage":`...), message)
	}
	return c.appendEnd(append(dst, `,"index":0}]`...), answer)
}

// blocked reports whether the prompt was stopped before anything was answered.
func blocked(answer *mmsp.Message) bool {
	return len(answer.ContentItems) == 0 && answer.StopDetail != nil && answer.StopDetail.Prompt
}

// appendBlock appends a chunk, or a whole answer, that says why the prompt was stopped in the place of a candidate.
func (c *call) appendBlock(dst []byte, answer *mmsp.Message) []byte {
	reason, message := answer.StopDetail.Text, ""
	if !slices.Contains(blockReasons, reason) {
		reason, message = "SAFETY", reason
	}
	dst = jsonscan.AppendString(append(dst, `{"promptFeedback":{"blockReason":`...), reason)
	if message != "" {
		dst = jsonscan.AppendString(append(dst, `,"blockReasonMessage":`...), message)
	}
	return c.appendEnd(append(dst, '}'), answer)
}

// blockReasons are the words for a prompt that was stopped.
var blockReasons = []string{"SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY", "MODEL_ARMOR", "JAILBREAK"}

// appendEnd ends the last chunk, or a whole answer, with the counts.
func (c *call) appendEnd(dst []byte, answer *mmsp.Message) []byte {
	dst = c.appendAbout(dst)
	if counts, known := usage(answer.Usage); known {
		dst = genai.AppendUsage(append(dst, `,"usageMetadata":`...), &counts)
	}
	return append(dst, '}')
}

// finish returns the protocol's word for why the answer ended, and what the provider says of it.
func finish(answer *mmsp.Message) (reason, message string) {
	detail := answer.StopDetail
	if detail == nil {
		detail = &mmsp.StopDetail{}
	}
	switch answer.FinishReason {
	case mmsp.FinishLength:
		return "MAX_TOKENS", ""
	case mmsp.FinishToolCall:
		return "STOP", ""
	case mmsp.FinishStop:
		if detail.Kind != "refusal" && detail.Kind != "filter" {
			return "STOP", ""
		}
	}
	if slices.Contains(finishReasons, detail.Text) { // the provider speaks the protocol itself
		return detail.Text, ""
	}
	reason = map[string]string{
		"filter": "SAFETY", "refusal": "SAFETY", "context": "MAX_TOKENS", "stop_sequence": "STOP", "malformed_call": "MALFORMED_FUNCTION_CALL",
	}[detail.Kind]
	return cmp.Or(reason, "OTHER"), detail.Text
}

// finishReasons are the words for an answer that did not end well.
var finishReasons = []string{
	"SAFETY", "RECITATION", "LANGUAGE", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL",
	"TOO_MANY_TOOL_CALLS", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "IMAGE_OTHER", "NO_IMAGE",
}

// usage returns the counts as the protocol has them, and whether any is known.
func usage(u *mmsp.Usage) (counts genai.Counts, known bool) {
	if u == nil {
		return counts, false
	}
	counts = genai.Counts{
		Prompt: ingress.Sum(u.CachedTokens, u.PromptTokens), Cached: u.CachedTokens, Thoughts: u.ThoughtsTokens, Candidates: u.ResponseTokens,
	}
	return counts, counts != genai.Counts{}
}

// delta appends the parts of a piece of an item.
func (c *call) delta(dst []byte, item *mmsp.Item) []byte {
	switch item.Type {
	case mmsp.TextDelta:
		dst = c.text(dst, item.Text, false, "")
	case mmsp.ThinkingDelta:
		text := item.Thinking
		if !c.started || c.held != "" {
			text = c.held + text
			if c.held = ""; strings.HasPrefix(ingress.RedactedThinking, text) {
				c.held, text = text, ""
			}
		}
		if c.showsThoughts {
			dst = c.text(dst, text, true, "")
		}
	case mmsp.InlineDataDelta: // sound goes out as it comes; pictures are whole
		if !c.started {
			c.mime = item.MimeType
		}
		if strings.HasPrefix(c.mime, "audio/") && len(item.Data) > 0 {
			dst = genai.AppendInlineData(comma(dst), c.mime, item.Data, false, c.signature("inline_data", item.Fidelity))
			c.unsigned = ""
		}
	}
	c.started = true
	return dst
}

// done appends the parts of an item that its pieces have not said.
func (c *call) done(dst []byte, item *mmsp.Item) []byte {
	started, held := c.started, c.held
	c.started, c.held = false, ""
	switch item.Type {
	case mmsp.TextDone:
		text := item.Text
		if started {
			text = ""
		}
		signature := c.signature("text", item.Fidelity)
		dst = c.text(dst, text, false, signature)
		if item.Text != "" && signature == "" {
			c.unsigned = mmsp.TextDone
		}
	case mmsp.ThinkingDone:
		text, kind := item.Thinking, "thinking"
		switch {
		case !c.showsThoughts:
			return dst
		case text == ingress.RedactedThinking:
			text, kind = "", redactedKind
		case started:
			text = held
		}
		signature := c.signature(kind, item.Fidelity)
		dst = c.text(dst, text, true, signature)
		if item.Thinking != "" && kind != redactedKind && signature == "" {
			c.unsigned = mmsp.ThinkingDone
		}
	case mmsp.ToolCallDone:
		dst = genai.AppendFunctionCall(comma(dst), item.ToolCallID, item.Name, item.Arguments, c.signature("tool_call", item.Fidelity))
		c.unsigned = ""
	case mmsp.InlineDataDone, mmsp.InlineThinkingDone:
		thought := item.Type == mmsp.InlineThinkingDone
		sent := started && !thought && strings.HasPrefix(c.mime, "audio/")
		if !sent && len(item.Data) > 0 && (c.showsThoughts || !thought) {
			dst = genai.AppendInlineData(comma(dst), item.MimeType, item.Data, thought, c.signature(item.Type.Kind(), item.Fidelity))
			c.unsigned = ""
		}
	}
	return dst
}

// text appends a part of text, unless it says nothing. Where one text ends and another begins, and nothing else would show it,
// an empty part stands between them.
func (c *call) text(dst []byte, text string, thought bool, signature string) []byte {
	if text == "" && signature == "" {
		return dst
	}
	if thought && c.unsigned == mmsp.ThinkingDone || !thought && c.unsigned == mmsp.TextDone {
		dst = genai.AppendText(comma(dst), "", thought, "")
	}
	c.unsigned = ""
	return genai.AppendText(comma(dst), text, thought, signature)
}

// comma separates a part from the one before it.
func comma(dst []byte) []byte {
	if dst[len(dst)-1] == '}' {
		dst = append(dst, ',')
	}
	return dst
}

// signature returns what carries an item's fidelity: the provider's own signature, or base64 of an envelope, since the field
// is bytes.
func (c *call) signature(kind string, fidelity mmsp.Fidelity) string {
	if len(fidelity) == 0 || kind == "text" && !c.provesText(fidelity) {
		return ""
	}
	peer := c.env.Peer
	value := carry.Value(carry.GenerateContent, peer, kind, fidelity, carry.MaxInline)
	if !carry.Sealed(value) {
		// What is no bytes, is an envelope of another gateway, or says more than itself would not be read as it was written.
		if _, err := base64.StdEncoding.DecodeString(value); err == nil && !strings.HasPrefix(value, sealedPrefix) && kind != redactedKind {
			return value
		}
		value = carry.Seal(carry.Envelope{Issuer: peer, Kind: kind, Fidelity: fidelity}, carry.MaxInline)
	}
	return base64.StdEncoding.EncodeToString([]byte(value))
}

// provesText reports whether a text's fidelity must come back: that it is a refusal shows in how the answer ends, and only
// Responses knows phases.
func (c *call) provesText(fidelity mmsp.Fidelity) bool {
	var fields map[string]json.RawMessage
	fidelity.Decode(&fields)
	for name := range fields {
		if name != "refusal" && (name != "phase" || c.env.Peer.Protocol == carry.Responses) {
			return true
		}
	}
	return false
}

// appendVectors writes the answer of embedContent, or of a batch.
func (c *call) appendVectors(dst []byte, answer *mmsp.Message) []byte {
	single := c.verb == verbEmbed
	if single {
		dst = append(dst, `{"embedding":`...)
	} else {
		dst = append(dst, `{"embeddings":[`...)
	}
	written := 0
	for i := range answer.ContentItems {
		item := &answer.ContentItems[i]
		if item.Type != mmsp.EmbeddingDone || single && written > 0 {
			continue
		}
		if written++; written > 1 {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"values":[`...)
		for j, value := range item.Embedding {
			if j > 0 {
				dst = append(dst, ',')
			}
			dst = strconv.AppendFloat(dst, value, 'g', -1, 64)
		}
		dst = append(dst, "]}"...)
	}
	switch {
	case !single:
		dst = append(dst, ']')
	case written == 0:
		dst = append(dst, `{"values":[]}`...)
	}
	if u := answer.Usage; u != nil && u.PromptTokens != nil {
		dst = strconv.AppendInt(append(dst, `,"usageMetadata":{"promptTokenCount":`...), *u.PromptTokens, 10)
		dst = append(dst, '}')
	}
	return append(dst, '}')
}

// Status returns the HTTP status of an error.
func (protocol) Status(p *ingress.Problem) int { return statusCode(p) }

// AppendError appends the body of an HTTP error.
func (protocol) AppendError(dst []byte, p *ingress.Problem) []byte { return appendError(dst, p) }

func appendError(dst []byte, p *ingress.Problem) []byte {
	word := statusOf(p.Kind).word
	message := cmp.Or(p.Message, word)
	if p.Param != "" {
		message = p.Param + ": " + message
	}
	dst = strconv.AppendInt(append(dst, `{"error":{"code":`...), int64(statusCode(p)), 10)
	dst = jsonscan.AppendString(append(dst, `,"message":`...), message)
	dst = jsonscan.AppendString(append(dst, `,"status":`...), word)
	details := 0
	detail := func(kind string) {
		if details++; details == 1 {
			dst = append(dst, `,"details":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = jsonscan.AppendString(append(dst, `{"@type":`...), "type.googleapis.com/google.rpc."+kind)
	}
	if p.Param != "" {
		detail("BadRequest")
		dst = jsonscan.AppendString(append(dst, `,"fieldViolations":[{"field":`...), p.Param)
		dst = append(jsonscan.AppendString(append(dst, `,"description":`...), p.Message), "}]}"...)
	}
	if p.RetryAfter > 0 {
		detail("RetryInfo")
		delay := strconv.FormatFloat(p.RetryAfter.Seconds(), 'f', -1, 64) + "s"
		dst = append(jsonscan.AppendString(append(dst, `,"retryDelay":`...), delay), '}')
	}
	if p.RequestID != "" {
		detail("RequestInfo")
		dst = append(jsonscan.AppendString(append(dst, `,"requestId":`...), p.RequestID), '}')
	}
	if details > 0 {
		dst = append(dst, ']')
	}
	return append(dst, "}}"...)
}

// statusCode returns the HTTP status, but for what this protocol does not know: 402, and such as Anthropic's 529.
func statusCode(p *ingress.Problem) int {
	if p.Kind == ingress.KindBilling || p.Status < 400 || p.Status > 511 {
		return statusOf(p.Kind).code
	}
	return p.Status
}

type status struct {
	code int // HTTP
	word string
}

// statusOf returns Google's word for a kind of error, and the HTTP status that goes with it.
func statusOf(kind ingress.Kind) status {
	switch kind {
	case ingress.KindUnauthorized:
		return status{401, "UNAUTHENTICATED"}
	case ingress.KindBilling, ingress.KindRateLimit:
		return status{429, "RESOURCE_EXHAUSTED"}
	case ingress.KindForbidden:
		return status{403, "PERMISSION_DENIED"}
	case ingress.KindUnknownModel, ingress.KindNotFound:
		return status{404, "NOT_FOUND"}
	case ingress.KindMethod:
		return status{405, "UNIMPLEMENTED"}
	case ingress.KindConflict:
		return status{409, "ABORTED"}
	case ingress.KindTimeout:
		return status{504, "DEADLINE_EXCEEDED"}
	case ingress.KindOverloaded:
		return status{503, "UNAVAILABLE"}
	case ingress.KindUpstream, ingress.KindInternal:
		return status{500, "INTERNAL"}
	}
	return status{400, "INVALID_ARGUMENT"}
}
