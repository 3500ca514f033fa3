package wiregrammar

import (
	"slices"
	"strings"
)

// Responses checks the event stream of POST /v1/responses: created, in_progress, the items one after the other, one
// terminal event, [DONE].
func Responses(stream []byte) error {
	c := &responsesChecker{report: &report{}, ids: map[string]bool{}}
	for _, b := range c.blocks(stream, false) {
		c.block(b)
	}
	switch {
	case c.terminal == "":
		c.add("the stream ends without a terminal event")
	case !c.done:
		c.add("the stream ends without [DONE]")
	}
	return c.err()
}

type responsesChecker struct {
	*report
	sequence  int64
	lifecycle []string // the lifecycle events so far
	first     node     // the resource of response.created
	terminal  string
	failing   bool // an error event has come: response.failed is next
	done      bool

	items []*outputItem
	ids   map[string]bool
}

// outputItem is an item of the stream.
type outputItem struct {
	kind, id string
	callID   string
	name     string
	open     bool
	done     any // the item as output_item.done showed it
	parts    []*outputPart
	summary  []*outputPart

	arguments strings.Builder
	deltas    int
	closed    string // what the arguments' .done event said
	ended     bool   // that event has come
}

// outputPart is a content or summary part of an item.
type outputPart struct {
	kind        string
	text        strings.Builder
	annotations int
	textDone    bool
	done        any // the part as its .done event showed it
}

func (c *responsesChecker) open() *outputItem {
	if n := len(c.items); n > 0 && c.items[n-1].open {
		return c.items[n-1]
	}
	return nil
}

func (c *responsesChecker) block(b block) {
	if c.done {
		c.add("%s: an event follows [DONE]", b.where)
		return
	}
	if b.data == "[DONE]" {
		if b.named {
			c.add("%s: [DONE] has an event line", b.where)
		}
		if c.terminal == "" {
			c.add("%s: [DONE] comes before a terminal event", b.where)
		}
		c.done = true
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
		event.fault("no event line")
	case b.event != kind:
		event.fault("the event line says %q", b.event)
	}
	if number := event.get("sequence_number"); number.count() != c.sequence {
		number.fault("is not the next, %d", c.sequence)
	}
	c.sequence++
	if c.terminal != "" {
		event.fault("an event follows the terminal event")
	}
	if len(c.lifecycle) == 0 && kind != "response.created" {
		event.fault("the first event is not response.created")
	}
	if c.failing && kind != "response.failed" {
		event.fault("an error event is not followed by response.failed")
	}
	switch kind {
	case "response.created", "response.queued", "response.in_progress":
		c.begins(event, kind)
		return
	case "response.completed", "response.incomplete", "response.failed":
		c.ends(event, kind)
		return
	case "error":
		c.failing = true
		for _, n := range []node{event, event.get("error")} {
			n.get("message").name()
			n.get("code").orNull(isText)
			n.get("param").orNull(isText)
		}
		event.get("error").get("type").name()
		return
	}
	if len(c.lifecycle) == 0 || c.lifecycle[len(c.lifecycle)-1] != "response.in_progress" {
		event.fault("comes before response.in_progress")
	}
	if kind == "response.output_item.added" {
		c.added(event)
		return
	}

	// Everything else belongs to the open item.
	item := c.open()
	index := event.get("output_index").count()
	switch {
	case item == nil:
		event.fault("no item is open")
		return
	case index != int64(len(c.items)-1):
		event.get("output_index").fault("is not that of the open item, %d", len(c.items)-1)
	}
	if kind == "response.output_item.done" {
		c.itemDone(event, item)
		return
	}
	if id := event.get("item_id"); id.name() != item.id {
		id.fault("is not that of the open item, %s", item.id)
	}
	only := func(kinds ...string) bool {
		for _, k := range kinds {
			if item.kind == k {
				return true
			}
		}
		event.fault("does not belong to a %s", item.kind)
		return false
	}
	switch kind {
	case "response.content_part.added":
		if only("message", "reasoning") {
			c.partAdded(event, item, &item.parts, "content_index")
		}
	case "response.content_part.done":
		if only("message", "reasoning") {
			c.partDone(event, item.parts, "content_index")
		}
	case "response.reasoning_summary_part.added":
		if only("reasoning") {
			c.partAdded(event, item, &item.summary, "summary_index")
		}
	case "response.reasoning_summary_part.done":
		if only("reasoning") {
			event.get("status").absentOr(isOneOf("completed", "incomplete"))
			c.partDone(event, item.summary, "summary_index")
		}
	case "response.output_text.delta":
		isObjects(event.get("logprobs"))
		c.delta(event, item.parts, "content_index", "output_text")
	case "response.output_text.done":
		isObjects(event.get("logprobs"))
		c.textDone(event, item.parts, "content_index", "output_text", "text")
	case "response.output_text.annotation.added":
		if part := c.part(event, item.parts, "content_index", "output_text"); part != nil {
			if n := event.get("annotation_index"); n.count() != int64(part.annotations) {
				n.fault("is not the next, %d", part.annotations)
			}
			part.annotations++
		}
		event.get("annotation").object()
	case "response.refusal.delta":
		c.delta(event, item.parts, "content_index", "refusal")
	case "response.refusal.done":
		c.textDone(event, item.parts, "content_index", "refusal", "refusal")
	case "response.reasoning_summary_text.delta":
		c.delta(event, item.summary, "summary_index", "summary_text")
	case "response.reasoning_summary_text.done":
		c.textDone(event, item.summary, "summary_index", "summary_text", "text")
	case "response.reasoning_text.delta", "response.reasoning.delta":
		c.delta(event, item.parts, "content_index", "reasoning_text")
	case "response.reasoning_text.done", "response.reasoning.done":
		c.textDone(event, item.parts, "content_index", "reasoning_text", "text")
	case "response.function_call_arguments.delta":
		if only("function_call") {
			c.argumentsDelta(event, item)
		}
	case "response.function_call_arguments.done":
		if only("function_call") {
			if name := event.get("name"); name.name() != item.name {
				name.fault("is not that of the item, %q", item.name)
			}
			c.argumentsDone(event, item, "arguments")
		}
	case "response.custom_tool_call_input.delta":
		if only("custom_tool_call") {
			c.argumentsDelta(event, item)
		}
	case "response.custom_tool_call_input.done":
		if only("custom_tool_call") {
			c.argumentsDone(event, item, "input")
		}
	default:
		event.fault("no such event; SDKs throw at it")
	}
}

// begins checks created, queued and in_progress.
func (c *responsesChecker) begins(event node, kind string) {
	if len(c.items) > 0 {
		event.fault("comes after an item")
	}
	last := ""
	if n := len(c.lifecycle); n > 0 {
		last = c.lifecycle[n-1]
	}
	switch {
	case kind == "response.created" && last != "", kind == last:
		event.fault("is repeated")
	case kind == "response.queued" && last != "response.created":
		event.fault("does not follow response.created")
	}
	c.lifecycle = append(c.lifecycle, kind)
	resource := event.get("response")
	status := c.resource(resource)
	if kind != "response.created" && status != strings.TrimPrefix(kind, "response.") || kind == "response.created" && status != "in_progress" && status != "queued" {
		resource.get("status").fault("is %q", status)
	}
	resource.get("output").empty()
	c.constant(resource)
}

// constant checks what all resources of a stream have in common.
func (c *responsesChecker) constant(resource node) {
	if !c.first.there {
		c.first = resource
		return
	}
	for _, key := range []string{"id", "created_at", "model", "previous_response_id", "instructions", "tools", "tool_choice", "metadata", "store"} {
		if n := resource.get(key); !same(n.value, c.first.get(key).value) {
			n.fault("is not what it was in response.created")
		}
	}
}

func (c *responsesChecker) ends(event node, kind string) {
	if n := len(c.lifecycle); n == 0 || c.lifecycle[n-1] != "response.in_progress" {
		event.fault("comes before response.in_progress")
	}
	c.terminal = kind
	resource := event.get("response")
	if status := c.resource(resource); status != strings.TrimPrefix(kind, "response.") {
		resource.get("status").fault("is %q", status)
	}
	c.constant(resource)

	output := resource.get("output").list()
	for i, item := range c.items {
		switch {
		case item.open && kind != "response.failed":
			event.fault("item %d is still open", i)
		case item.open && i >= len(output) && !item.said(): // in a failed response it may be missing
		case i >= len(output):
			resource.get("output").fault("lacks item %d, %s", i, item.id)
		case item.open:
			c.left(output[i], item)
		case !same(output[i].value, item.done):
			output[i].fault("is not what output_item.done showed at output_index %d", i)
		}
	}
	if len(output) > len(c.items) {
		resource.get("output").fault("has %d items, the stream had %d", len(output), len(c.items))
	}
}

// said reports whether a piece of a text or of arguments has come.
func (i *outputItem) said() bool {
	for _, part := range append(slices.Clone(i.parts), i.summary...) {
		if part.text.Len() > 0 {
			return true
		}
	}
	return i.arguments.Len() > 0
}

// left checks what a failed response shows of the item that was open: what arrived of it, and no more.
func (c *responsesChecker) left(n node, item *outputItem) {
	for _, same := range [][2]string{{"id", item.id}, {"type", item.kind}, {"call_id", item.callID}, {"name", item.name}} {
		if got := n.get(same[0]); (got.there || same[1] != "") && got.value != same[1] {
			got.fault("is not that of output_item.added, %q", same[1])
		}
	}
	n.get("status").is("incomplete")
	parts := func(key string, parts []*outputPart) {
		list := n.get(key)
		if shown, _ := list.value.([]any); len(shown) != len(parts) {
			list.fault("has %d parts, the stream had %d", len(shown), len(parts))
			return
		}
		for i := range parts {
			got := list.list()[i]
			if text := c.report.part(got, parts[i].kind); text != parts[i].text.String() {
				got.fault("its text is not the joined deltas, %.100q", parts[i].text.String())
			}
		}
	}
	switch item.kind {
	case "message":
		parts("content", item.parts)
	case "reasoning":
		parts("summary", item.summary)
		parts("content", item.parts)
	case "function_call", "custom_tool_call":
		key := "arguments"
		if item.kind == "custom_tool_call" {
			key = "input"
		}
		if got := n.get(key); got.value != item.arguments.String() {
			got.fault("are not the joined deltas, %.100q", item.arguments.String())
		}
	}
}

func (c *responsesChecker) added(event node) {
	if item := c.open(); item != nil {
		event.fault("item %d is still open", len(c.items)-1)
		item.open = false
	}
	if index := event.get("output_index"); index.count() != int64(len(c.items)) {
		index.fault("is not the next, %d", len(c.items))
	}
	n := event.get("item")
	item := &outputItem{open: true}
	item.kind, _ = n.get("type").value.(string)
	item.id = c.outputItem(n)
	if c.ids[item.id] {
		n.get("id").fault("the id %s is that of an earlier item", item.id)
	}
	c.ids[item.id] = true
	item.callID, _ = n.get("call_id").value.(string)
	item.name, _ = n.get("name").value.(string)
	switch item.kind {
	case "message":
		n.get("content").empty()
	case "reasoning":
		n.get("summary").empty()
		n.get("content").absentOr(node.empty)
	case "function_call":
		n.get("arguments").is("")
	case "custom_tool_call":
		n.get("input").is("")
	}
	if n.has("status") {
		n.get("status").is("in_progress")
	}
	for i, earlier := range c.items {
		if item.callID != "" && earlier.callID == item.callID {
			n.get("call_id").fault("is that of item %d", i)
		}
	}
	c.items = append(c.items, item)
}

func (c *responsesChecker) itemDone(event node, item *outputItem) {
	item.open = false
	n := event.get("item")
	id := c.outputItem(n)
	item.done = n.value
	if id != item.id {
		n.get("id").fault("is not that of output_item.added, %s", item.id)
	}
	if kind := n.get("type"); kind.value != item.kind {
		kind.fault("is not that of output_item.added, %s", item.kind)
	}
	status, _ := n.get("status").value.(string)
	if n.has("status") {
		n.get("status").oneOf("completed", "incomplete")
	}
	parts := func(list []*outputPart, key string) {
		want := []any{}
		for i, part := range list {
			if part.done == nil {
				n.fault("part %d is still open", i)
			}
			want = append(want, part.done)
		}
		if got := n.get(key); !same(got.value, want) && (got.there || len(list) > 0) {
			got.fault("is not what the part .done events showed")
		}
	}
	switch item.kind {
	case "message":
		parts(item.parts, "content")
		if len(item.parts) == 0 {
			n.fault("a message without a part")
		}
	case "reasoning":
		parts(item.summary, "summary")
		parts(item.parts, "content")
	case "function_call", "custom_tool_call":
		key := "arguments"
		if item.kind == "custom_tool_call" {
			key = "input"
		}
		if got := n.get("call_id"); got.value != item.callID {
			got.fault("is not that of output_item.added, %q", item.callID)
		}
		if got := n.get("name"); got.value != item.name {
			got.fault("is not that of output_item.added, %q", item.name)
		}
		switch arguments := n.get(key); {
		case !item.ended:
			n.fault("%s.done has not come", key)
		case arguments.value != item.closed:
			arguments.fault("are not those of %s.done", key)
		}
		if item.kind == "function_call" && status == "completed" && item.deltas == 0 {
			n.fault("no delta of the arguments has come")
		}
	}
}

func (c *responsesChecker) partAdded(event node, item *outputItem, list *[]*outputPart, key string) {
	for _, parts := range [][]*outputPart{item.parts, item.summary} {
		if n := len(parts); n > 0 && parts[n-1].done == nil {
			event.fault("part %d is still open", n-1)
		}
	}
	if index := event.get(key); index.count() != int64(len(*list)) {
		index.fault("is not the next, %d", len(*list))
	}
	kinds := []string{"summary_text"}
	switch {
	case key == "content_index" && item.kind == "message":
		kinds = []string{"output_text", "refusal"}
	case key == "content_index":
		kinds = []string{"reasoning_text"}
	}
	n := event.get("part")
	part := &outputPart{}
	part.kind, _ = n.get("type").value.(string)
	if text := c.report.part(n, kinds...); text != "" {
		n.fault("a part begins with a text: %.60q", text)
	}
	if part.kind == "output_text" {
		n.get("annotations").empty()
	}
	*list = append(*list, part)
}

// part finds the open part of a kind that an event belongs to.
func (c *responsesChecker) part(event node, list []*outputPart, key, kind string) *outputPart {
	n := event.get(key)
	index := n.count()
	switch {
	case index >= int64(len(list)):
		n.fault("the part has not been added")
		return nil
	case list[index].done != nil:
		n.fault("the part is closed")
		return nil
	case kind != "" && list[index].kind != kind:
		event.fault("does not belong to a part of type %s", list[index].kind)
		return nil
	}
	return list[index]
}

func (c *responsesChecker) delta(event node, list []*outputPart, key, kind string) {
	delta := event.get("delta").text()
	event.get("obfuscation").absentOr(isText)
	if part := c.part(event, list, key, kind); part != nil {
		if part.textDone {
			event.fault("a delta follows the .done of its text")
		}
		part.text.WriteString(delta)
	}
}

func (c *responsesChecker) textDone(event node, list []*outputPart, key, kind, field string) {
	text := event.get(field)
	said := text.text()
	if part := c.part(event, list, key, kind); part != nil {
		if part.textDone {
			event.fault("is repeated")
		}
		part.textDone = true
		if said != part.text.String() {
			text.fault("is not the joined deltas, %.100q", part.text.String())
		}
	}
}

func (c *responsesChecker) partDone(event node, list []*outputPart, key string) {
	n := event.get("part")
	part := c.part(event, list, key, "")
	if part == nil {
		return
	}
	text := c.report.part(n, part.kind)
	part.done = n.value
	if part.done == nil {
		part.done = false
	}
	if !part.textDone {
		event.fault("the .done of the text has not come")
	}
	if text != part.text.String() {
		n.fault("its text is not the joined deltas, %.100q", part.text.String())
	}
	if part.kind == "output_text" {
		if list, _ := n.get("annotations").value.([]any); len(list) != part.annotations {
			n.get("annotations").fault("has %d annotations, %d were added", len(list), part.annotations)
		}
	}
}

func (c *responsesChecker) argumentsDelta(event node, item *outputItem) {
	if item.ended {
		event.fault("a delta follows the .done of its text")
	}
	item.deltas++
	item.arguments.WriteString(event.get("delta").text())
	event.get("obfuscation").absentOr(isText)
}

func (c *responsesChecker) argumentsDone(event node, item *outputItem, field string) {
	if item.ended {
		event.fault("is repeated")
	}
	item.ended = true
	item.closed = event.get(field).text()
	if joined := item.arguments.String(); item.closed != joined {
		event.get(field).fault("is not the joined deltas, %.100q", joined)
	}
}
