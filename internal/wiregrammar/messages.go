package wiregrammar

import (
	"regexp"
	"slices"
	"strings"
)

// Messages checks the event stream of POST /v1/messages: message_start, blocks one after the other, message_delta,
// message_stop. There is no [DONE].
func Messages(stream []byte) error {
	c := &messagesChecker{report: &report{}, open: -1}
	for _, b := range c.blocks(stream, false) {
		c.block(b)
	}
	switch {
	case c.failed:
	case c.stopReason == "":
		c.add("the stream ends without message_delta")
	case !c.stopped:
		c.add("the stream ends without message_stop")
	}
	return c.err()
}

type messagesChecker struct {
	*report
	started    bool
	stopReason string
	stopped    bool
	failed     bool
	list       []*messageBlock
	open       int // index of the open block, -1: none
	ids        []string
}

type messageBlock struct {
	kind   string
	signed bool
	input  strings.Builder
}

var (
	stopReasons = []string{"end_turn", "max_tokens", "model_context_window_exceeded", "stop_sequence", "tool_use", "refusal", "pause_turn"}
	toolUseID   = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
)

func (c *messagesChecker) block(b block) {
	if b.data == "[DONE]" {
		c.add("%s: [DONE]; the protocol has none", b.where)
		return
	}
	event := c.parse(b.where, []byte(b.data))
	if !event.there {
		return
	}
	kind := event.get("type").name()
	event.path += " " + kind
	switch {
	case !b.named:
		event.fault("no event line; the SDK ignores the event")
	case b.event != kind:
		event.fault("the event line says %q", b.event)
	}
	switch {
	case c.stopped:
		event.fault("an event follows message_stop")
	case c.failed:
		event.fault("an event follows the error")
	case kind == "error":
	case !c.started && kind != "message_start":
		event.fault("the first event is not message_start")
	case c.stopReason != "" && kind != "message_stop" && kind != "ping":
		event.fault("comes after message_delta")
	}
	index := func() int {
		n := event.get("index")
		i := n.count()
		if c.open < 0 {
			event.fault("no block is open")
			return -1
		}
		if i != int64(c.open) {
			n.fault("is not that of the open block, %d", c.open)
			return -1
		}
		return c.open
	}
	switch kind {
	case "ping":
	case "error":
		c.failed = true
		c.anthropicError(event)
	case "message_start":
		if c.started {
			event.fault("is repeated")
		}
		c.started = true
		message := event.get("message")
		c.message(message)
		message.get("content").empty()
		if reason := message.get("stop_reason"); !reason.null() {
			reason.fault("is not null at the start")
		}
	case "content_block_start":
		if c.open >= 0 {
			event.fault("block %d is still open", c.open)
		}
		if n := event.get("index"); n.count() != int64(len(c.list)) {
			n.fault("is not the next, %d", len(c.list))
		}
		n := event.get("content_block")
		block := &messageBlock{}
		block.kind = c.contentBlock(n)
		switch block.kind {
		case "text":
			n.get("text").is("")
		case "thinking":
			n.get("thinking").is("")
			n.get("signature").is("")
		case "tool_use":
			if input, _ := n.get("input").value.(map[string]any); len(input) > 0 {
				n.get("input").fault("is not {} at the start")
			}
			c.uniqueID(n.get("id"))
		}
		c.open = len(c.list)
		c.list = append(c.list, block)
	case "content_block_delta":
		if i := index(); i >= 0 {
			c.delta(event.get("delta"), c.list[i])
		}
	case "content_block_stop":
		i := index()
		if i < 0 {
			return
		}
		if block := c.list[i]; block.kind == "thinking" && !block.signed {
			event.fault("a thinking block ends without signature_delta")
		}
		c.open = -1
	case "message_delta":
		if c.open >= 0 {
			event.fault("block %d is still open", c.open)
		}
		delta := event.get("delta")
		c.stopReason = c.stop(delta)
		delta.get("container").optional(isObject)
		c.messagesUsage(event.get("usage"))
		c.inputs(delta)
	case "message_stop":
		if c.open >= 0 {
			event.fault("block %d is still open", c.open)
		}
		if c.stopReason == "" {
			event.fault("comes before message_delta")
		}
		c.stopped = true
	default:
		event.fault("no such event")
	}
}

func (c *messagesChecker) delta(n node, block *messageBlock) {
	fits := map[string][]string{
		"text":     {"text_delta", "citations_delta"},
		"thinking": {"thinking_delta", "signature_delta"},
		"tool_use": {"input_json_delta"},
	}[block.kind]
	kind := n.get("type").name()
	if !slices.Contains(fits, kind) {
		n.fault("a %s does not fit a %s block", kind, block.kind)
	}
	if block.signed {
		n.fault("a delta follows the signature_delta of its block")
	}
	switch kind {
	case "text_delta":
		n.get("text").text()
	case "citations_delta":
		n.get("citation").object()
	case "thinking_delta":
		n.get("thinking").text()
	case "signature_delta":
		n.get("signature").name()
		block.signed = true
	case "input_json_delta":
		block.input.WriteString(n.get("partial_json").text())
	}
}

// stop checks stop_reason and what stands beside it.
func (r *report) stop(n node) string {
	reason := n.get("stop_reason").oneOf(stopReasons...)
	sequence := n.get("stop_sequence")
	sequence.orNull(isText)
	if (reason == "stop_sequence") == sequence.null() {
		sequence.fault("is not null exactly when the stop_reason is stop_sequence")
	}
	n.get("stop_details").optional(func(n node) { n.get("type").name() })
	return reason
}

// inputs checks the tool calls once it is known why the message stopped.
func (c *messagesChecker) inputs(delta node) {
	calls := 0
	for i, block := range c.list {
		if block.kind != "tool_use" {
			continue
		}
		calls++
		cut := i == len(c.list)-1 && slices.Contains([]string{"max_tokens", "model_context_window_exceeded", "refusal"}, c.stopReason)
		if text := block.input.String(); text != "" && !cut && !isJSONObject(text) {
			delta.fault("the joined partial_json of block %d is no JSON object: %.100q", i, text)
		}
	}
	stopFitsCalls(delta.get("stop_reason"), c.stopReason, calls)
}

func stopFitsCalls(n node, reason string, calls int) {
	switch {
	case reason == "tool_use" && calls == 0:
		n.fault("is tool_use and there is no tool_use block")
	case reason == "end_turn" && calls > 0:
		n.fault("is end_turn and there is a tool_use block")
	}
}

func (c *messagesChecker) uniqueID(n node) {
	id, _ := n.value.(string)
	if slices.Contains(c.ids, id) {
		n.fault("is that of an earlier call")
	}
	c.ids = append(c.ids, id)
}

// message checks what message_start and a whole message have in common.
func (r *report) message(n node) {
	n.object()
	n.get("id").prefixed("msg_")
	n.get("type").is("message")
	n.get("role").is("assistant")
	n.get("model").name()
	n.get("stop_reason").orNull(isOneOf(stopReasons...))
	n.get("stop_sequence").orNull(isText)
	n.get("container").optional(isObject)
	n.get("diagnostics").optional(isObject)
	n.get("stop_details").optional(func(n node) { n.get("type").name() })
	usage := n.get("usage")
	usage.object()
	usage.get("input_tokens").count()
	usage.get("cache_creation_input_tokens").orNull(isCount)
	usage.get("cache_read_input_tokens").orNull(isCount)
	r.messagesUsage(usage)
}

// messagesUsage checks what may stand in any usage. Its input_tokens are those that no cache gave or took.
func (r *report) messagesUsage(usage node) {
	usage.get("output_tokens").count()
	for _, key := range []string{"input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"} {
		usage.get(key).optional(isCount)
	}
	usage.get("cache_creation").optional(func(n node) {
		n.get("ephemeral_5m_input_tokens").count()
		n.get("ephemeral_1h_input_tokens").count()
	})
	usage.get("output_tokens_details").optional(func(n node) { n.get("thinking_tokens").count() })
	usage.get("server_tool_use").optional(isObject)
	usage.get("service_tier").optional(isName)
	usage.get("inference_geo").optional(isName)
	usage.get("speed").optional(isName)
}

func (r *report) contentBlock(n node) string {
	kind := n.get("type").oneOf("text", "thinking", "redacted_thinking", "tool_use", "image", "document")
	switch kind {
	case "image", "document": // as in a request: Anthropic's own models answer with none
		n.get("source").get("type").is("base64")
		n.get("source").get("media_type").name()
		isBase64(n.get("source").get("data"))
	case "text":
		n.get("text").text()
		n.get("citations").optional(isObjects)
	case "thinking":
		n.get("thinking").text()
		n.get("signature").text()
	case "redacted_thinking":
		n.get("data").name()
	case "tool_use":
		if id := n.get("id"); id.name() != "" && !toolUseID.MatchString(id.text()) {
			id.wrong("characters of A-Z a-z 0-9 _ -")
		}
		n.get("name").name()
		n.get("input").object()
		n.get("caller").optional(func(n node) { n.get("type").name() })
	}
	return kind
}

// Message checks the whole answer of POST /v1/messages.
func Message(body []byte) error {
	c := &messagesChecker{report: &report{}}
	n := c.parse("message", body)
	c.message(n)
	reason := c.stop(n)
	calls := 0
	for _, block := range n.get("content").list() {
		switch c.contentBlock(block) {
		case "thinking":
			block.get("signature").name()
		case "tool_use":
			calls++
			c.uniqueID(block.get("id"))
		}
	}
	stopFitsCalls(n.get("stop_reason"), reason, calls)
	return c.err()
}
