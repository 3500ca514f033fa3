package wiregrammar

import (
	"reflect"
	"regexp"
)

// ResponsesResource checks a response resource of Open Responses with every key that its schema and the SDKs want.
func ResponsesResource(body []byte) error {
	r := &report{}
	r.resource(r.parse("response", body))
	return r.err()
}

var (
	callID  = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}
)

func isCallID(n node) string {
	s := n.name()
	if s != "" && !callID.MatchString(s) {
		n.wrong("1 to 64 characters of A-Z a-z 0-9 _ -")
	}
	return s
}

func (r *report) resource(n node) (status string) {
	n.get("id").prefixed("resp_")
	n.get("object").is("response")
	n.get("created_at").count()
	n.get("completed_at").orNull(isCount)
	status = n.get("status").oneOf("queued", "in_progress", "completed", "incomplete", "failed", "cancelled")
	n.get("incomplete_details").orNull(func(n node) { n.get("reason").oneOf("max_output_tokens", "content_filter") })
	n.get("model").name()
	n.get("previous_response_id").orNull(isName)
	n.get("instructions").orNull(isText)
	n.get("error").orNull(func(n node) {
		n.get("code").name()
		n.get("message").name()
		n.get("type").name() // the AI SDK refuses the body without it
	})
	for _, tool := range n.get("tools").list() {
		r.tool(tool)
	}
	r.toolChoice(n.get("tool_choice"))
	n.get("truncation").oneOf("auto", "disabled")
	n.get("parallel_tool_calls").flag()
	text := n.get("text")
	text.object()
	format := text.get("format")
	if format.get("type").oneOf("text", "json_object", "json_schema") == "json_schema" {
		format.get("name").name()
		format.get("description").orNull(isText)
		format.get("schema").orNull(isObject)
		format.get("strict").flag()
	}
	text.get("verbosity").optional(isOneOf("low", "medium", "high"))
	for _, key := range []string{"temperature", "top_p", "presence_penalty", "frequency_penalty"} {
		n.get(key).number()
	}
	n.get("top_logprobs").count()
	n.get("reasoning").orNull(func(n node) {
		n.object()
		n.get("effort").orNull(isOneOf(efforts...))
		n.get("summary").orNull(isOneOf("concise", "detailed", "auto"))
	})
	n.get("usage").orNull(r.responsesUsage)
	n.get("max_output_tokens").orNull(isCount)
	n.get("max_tool_calls").orNull(isCount)
	n.get("store").flag()
	n.get("background").flag()
	n.get("service_tier").name()
	n.get("metadata").object()
	n.get("safety_identifier").orNull(isText)
	n.get("prompt_cache_key").orNull(isText)
	n.get("conversation").optional(func(n node) { n.get("id").name() })

	output := n.get("output").list()
	ids := map[string]bool{}
	for i, item := range output {
		id := r.outputItem(item)
		if ids[id] && id != "" {
			item.fault("the id %s is that of an earlier item", id)
		}
		ids[id] = true
		itemStatus, _ := item.get("status").value.(string)
		switch {
		case itemStatus == "incomplete" && i < len(output)-1:
			item.fault("an item is incomplete and not the last")
		case itemStatus == "incomplete" && status == "completed":
			item.fault("an item of a completed response is incomplete")
		case itemStatus == "in_progress" && (status == "completed" || status == "incomplete"):
			item.fault("an item of a response that has ended is in progress")
		case status == "incomplete" && i == len(output)-1 && itemStatus != "incomplete" && item.has("status"):
			item.fault("the last item of an incomplete response is not incomplete")
		}
	}

	if details := n.get("incomplete_details"); (status == "incomplete") == details.null() {
		details.fault("is not null exactly when the status is incomplete (status %q)", status)
	}
	if failure := n.get("error"); (status == "failed") == failure.null() {
		failure.fault("is not null exactly when the status is failed (status %q)", status)
	}
	if at := n.get("completed_at"); (status == "completed") == at.null() {
		at.fault("is not null exactly when the status is completed (status %q)", status)
	}
	return status
}

func (r *report) tool(n node) {
	if n.get("type").oneOf("function", "custom") == "custom" {
		n.get("name").name()
		return
	}
	n.get("name").name()
	n.get("description").orNull(isText)
	n.get("parameters").orNull(isObject)
	n.get("strict").orNull(isFlag)
}

func (r *report) toolChoice(n node) {
	if _, object := n.value.(map[string]any); !object {
		n.oneOf("none", "auto", "required")
		return
	}
	if n.get("type").oneOf("function", "custom", "allowed_tools") != "allowed_tools" {
		n.get("name").name()
		return
	}
	n.get("mode").oneOf("none", "auto", "required")
	tools := n.get("tools").list()
	if len(tools) < 1 || len(tools) > 128 {
		n.get("tools").fault("has %d tools, want 1 to 128", len(tools))
	}
	for _, tool := range tools {
		tool.get("type").oneOf("function", "custom")
		tool.get("name").name()
	}
}

func (r *report) responsesUsage(n node) {
	input, output := n.get("input_tokens").count(), n.get("output_tokens").count()
	details := n.get("input_tokens_details")
	details.object()
	if cached := details.get("cached_tokens"); cached.count() > input {
		cached.fault("is more than input_tokens")
	}
	details.get("cache_write_tokens").absentOr(isCount)
	details = n.get("output_tokens_details")
	details.object()
	if reasoning := details.get("reasoning_tokens"); reasoning.count() > output {
		reasoning.fault("is more than output_tokens")
	}
	if total := n.get("total_tokens"); total.count() != input+output {
		total.fault("is not input_tokens + output_tokens")
	}
}

// outputItem checks an item as a resource and response.output_item.done show it.
func (r *report) outputItem(n node) (id string) {
	status := func() { n.get("status").oneOf("in_progress", "completed", "incomplete") }
	switch n.get("type").oneOf("message", "reasoning", "function_call", "custom_tool_call", "function_call_output", "image_generation_call", "compaction") {
	case "message":
		id = n.get("id").prefixed("msg_")
		status()
		n.get("role").is("assistant")
		n.get("phase").optional(isOneOf("commentary", "final_answer"))
		for _, part := range n.get("content").list() {
			r.part(part, "output_text", "refusal")
		}
	case "reasoning":
		id = n.get("id").prefixed("rs_")
		n.get("status").absentOr(func(node) { status() })
		for _, part := range n.get("summary").list() {
			r.part(part, "summary_text")
		}
		n.get("content").absentOr(func(n node) {
			for _, part := range n.list() {
				r.part(part, "reasoning_text")
			}
		})
		n.get("encrypted_content").absentOr(isName)
	case "function_call":
		id = n.get("id").prefixed("fc_")
		status()
		isCallID(n.get("call_id"))
		n.get("name").name()
		arguments := n.get("arguments")
		if text := arguments.text(); n.get("status").value == "completed" && !isJSONObject(text) {
			arguments.fault("the arguments of a completed call are no JSON object: %.100q", text)
		}
	case "custom_tool_call":
		id = n.get("id").prefixed("ctc_")
		n.get("status").absentOr(func(node) { status() })
		isCallID(n.get("call_id"))
		n.get("name").name()
		n.get("input").text()
	case "function_call_output":
		id = n.get("id").prefixed("fco_")
		status()
		isCallID(n.get("call_id"))
		if _, text := n.get("output").value.(string); !text {
			isObjects(n.get("output"))
		}
	case "image_generation_call":
		id = n.get("id").prefixed("ig_")
		n.get("status").name()
		n.get("result").orNull(isText)
	case "compaction":
		id = n.get("id").prefixed("cmp_")
		n.get("encrypted_content").name()
	}
	return id
}

// part checks a content or summary part and returns its text.
func (r *report) part(n node, kinds ...string) string {
	switch n.get("type").oneOf(kinds...) {
	case "output_text":
		isObjects(n.get("annotations"))
		n.get("logprobs").absentOr(isObjects)
	case "refusal":
		return n.get("refusal").text()
	}
	return n.get("text").text()
}

func same(a, b any) bool { return reflect.DeepEqual(a, b) }
