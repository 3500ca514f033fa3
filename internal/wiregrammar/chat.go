package wiregrammar

import (
	"strings"
)

// Chat checks the event stream of POST /v1/chat/completions: the role, pieces of one choice, a finish, [DONE]. With
// includeUsage, usage is null in every chunk but for one after the finish, which has no choices; a provider that counts
// nothing leaves that one out.
func Chat(stream []byte, includeUsage bool) error {
	c := &chatChecker{report: &report{}, includeUsage: includeUsage}
	for _, b := range c.blocks(stream, false) {
		c.block(b)
	}
	switch {
	case c.finish == "" && !c.failed:
		c.add("the stream ends without a finish_reason")
	case !c.done:
		c.add("the stream ends without [DONE]")
	}
	return c.err()
}

type chatChecker struct {
	*report
	includeUsage bool
	first        node // chunk
	finish       string
	usage        bool // has come
	failed, done bool
	calls        []*chatCall
}

type chatCall struct {
	id, kind  string
	arguments strings.Builder
}

var chatFinishes = []string{"stop", "length", "tool_calls", "content_filter", "function_call"}

func (c *chatChecker) block(b block) {
	c.unnamed(b)
	if c.done {
		c.add("%s: an event follows [DONE]", b.where)
		return
	}
	if b.data == "[DONE]" {
		c.done = true
		return
	}
	chunk := c.parse(b.where, []byte(b.data))
	if !chunk.there {
		return
	}
	switch {
	case c.failed:
		chunk.fault("a chunk follows the error")
	case c.usage:
		chunk.fault("a chunk follows the usage chunk")
	}
	if chunk.has("error") {
		c.failed = true
		if c.finish != "" {
			chunk.fault("an error follows the finish")
		}
		c.openAIError(chunk)
		return
	}
	chunk.get("id").prefixed("chatcmpl-")
	chunk.get("object").is("chat.completion.chunk")
	chunk.get("created").count()
	chunk.get("model").name()
	begins := !c.first.there
	if begins {
		c.first = chunk
	}
	for _, key := range []string{"id", "created", "model"} {
		if n := chunk.get(key); !same(n.value, c.first.get(key).value) {
			n.fault("is not what it was in the first chunk")
		}
	}
	usage := chunk.get("usage")
	if c.includeUsage && !usage.there {
		usage.fault("is missing; with include_usage it is null until it comes")
	}
	choices := chunk.get("choices").list()
	if len(choices) == 0 {
		switch {
		case c.finish == "":
			chunk.fault("a chunk without choices comes before the finish")
		case !c.includeUsage:
			chunk.fault("a usage chunk that was not asked for")
		}
		c.usage = true
		c.chatUsage(usage)
		return
	}
	if !usage.null() {
		usage.fault("stands in a chunk with choices")
	}
	if len(choices) > 1 {
		chunk.get("choices").fault("has %d choices", len(choices))
	}
	if c.finish != "" {
		chunk.fault("a choice follows the finish")
	}
	choice := choices[0]
	if index := choice.get("index"); index.count() != 0 {
		index.fault("is not 0")
	}
	choice.get("logprobs").optional(isObject)
	choice.get("finish_reason").orNull(isOneOf(chatFinishes...))
	c.delta(choice.get("delta"), begins)

	if finish, _ := choice.get("finish_reason").value.(string); finish != "" {
		if begins {
			choice.fault("the finish stands in the first chunk; the role comes in one of its own")
		} else if delta, _ := choice.get("delta").value.(map[string]any); len(delta) > 0 {
			choice.get("delta").fault("is not empty in the chunk of the finish")
		}
		c.finish = finish
		if finish == "tool_calls" && len(c.calls) == 0 {
			choice.get("finish_reason").fault("is tool_calls and there are none")
		}
		for i, call := range c.calls {
			cut := (finish == "length" || finish == "content_filter") && i == len(c.calls)-1
			if text := call.arguments.String(); call.kind == "function" && !cut && !isJSONObject(text) {
				choice.fault("the joined arguments of call %d are no JSON object: %.100q", i, text)
			}
		}
	}
}

func (c *chatChecker) delta(delta node, begins bool) {
	if !delta.object() {
		return
	}
	switch {
	case begins:
		delta.get("role").is("assistant")
		delta.get("content").orNull(isText)
	case delta.has("role"):
		delta.get("role").fault("is repeated")
	}
	delta.get("content").optional(isText)
	delta.get("refusal").optional(isText)
	delta.get("reasoning_content").optional(isText)
	delta.get("reasoning").optional(isText)
	delta.get("reasoning_details").optional(isObjects)
	delta.get("tool_calls").absentOr(func(n node) {
		fragments := n.list()
		if len(fragments) == 0 {
			n.fault("is empty")
		}
		for _, fragment := range fragments {
			c.fragment(fragment)
		}
	})
}

// fragment checks an element of delta.tool_calls.
func (c *chatChecker) fragment(n node) {
	index := n.get("index")
	i := index.count()
	switch {
	case i > int64(len(c.calls)):
		index.fault("leaves a gap: the next call is %d", len(c.calls))
		return
	case i == int64(len(c.calls)):
		call := &chatCall{id: n.get("id").name()}
		for j, earlier := range c.calls {
			if earlier.id == call.id {
				n.get("id").fault("is that of call %d", j)
			}
		}
		call.kind = n.get("type").oneOf("function", "custom")
		c.calls = append(c.calls, call)
		if call.kind == "custom" {
			n.get("custom").get("name").name()
		} else {
			n.get("function").get("name").name()
		}
	default:
		if i < int64(len(c.calls)-1) {
			index.fault("is that of an earlier call; OpenAI's SDK has closed it")
		}
		for _, key := range []node{n.get("id"), n.get("function").get("name"), n.get("custom").get("name")} {
			if key.there {
				key.fault("is repeated in a later fragment")
			}
		}
	}
	call := c.calls[i]
	if call.kind == "custom" {
		n.get("custom").object()
		call.arguments.WriteString(n.get("custom").get("input").text())
		return
	}
	n.get("function").object() // the AI SDK wants it in every fragment
	call.arguments.WriteString(n.get("function").get("arguments").text())
}

func (r *report) chatUsage(n node) {
	n.object()
	prompt, completion := n.get("prompt_tokens").count(), n.get("completion_tokens").count()
	if total := n.get("total_tokens"); total.count() != prompt+completion {
		total.fault("is not prompt_tokens + completion_tokens")
	}
	n.get("prompt_tokens_details").optional(func(details node) {
		details.object()
		details.get("cache_write_tokens").optional(isCount)
		details.get("cached_tokens").optional(func(n node) {
			if n.count() > prompt {
				n.fault("is more than prompt_tokens")
			}
		})
	})
	n.get("completion_tokens_details").optional(func(details node) {
		details.object()
		details.get("reasoning_tokens").optional(func(n node) {
			if n.count() > completion {
				n.fault("is more than completion_tokens")
			}
		})
	})
}

// ChatCompletion checks the whole answer of POST /v1/chat/completions.
func ChatCompletion(body []byte) error {
	r := &report{}
	n := r.parse("completion", body)
	n.get("id").prefixed("chatcmpl-")
	n.get("object").is("chat.completion")
	n.get("created").count()
	n.get("model").name()
	choices := n.get("choices").list()
	if len(choices) == 0 {
		n.get("choices").fault("has no choice")
	}
	for i, choice := range choices {
		if index := choice.get("index"); index.count() != int64(i) {
			index.fault("is not %d", i)
		}
		choice.get("logprobs").optional(isObject)
		finish := choice.get("finish_reason").oneOf(chatFinishes...)
		message := choice.get("message")
		message.object()
		message.get("role").is("assistant")
		message.get("content").orNull(isText)
		message.get("refusal").orNull(isText)
		message.get("reasoning_content").optional(isText)
		message.get("reasoning_details").optional(isObjects)
		message.get("annotations").optional(isObjects)
		calls := 0
		message.get("tool_calls").absentOr(func(list node) {
			ids := map[string]bool{}
			nodes := list.list()
			if calls = len(nodes); calls == 0 {
				list.fault("is empty")
			}
			for j, call := range nodes {
				id := call.get("id").name()
				if ids[id] {
					call.get("id").fault("is that of an earlier call")
				}
				ids[id] = true
				if call.get("type").oneOf("function", "custom") == "custom" {
					call.get("custom").get("name").name()
					call.get("custom").get("input").text()
					continue
				}
				call.get("function").get("name").name()
				arguments := call.get("function").get("arguments")
				cut := (finish == "length" || finish == "content_filter") && j == len(nodes)-1
				if text := arguments.text(); !cut && !isJSONObject(text) {
					arguments.fault("are no JSON object: %.100q", text)
				}
			}
		})
		if finish == "tool_calls" && calls == 0 {
			choice.get("finish_reason").fault("is tool_calls and there are none")
		}
	}
	n.get("usage").absentOr(r.chatUsage)
	return r.err()
}
