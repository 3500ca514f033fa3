package simulate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"
)

// responses is the Responses API without a store: every request brings its whole history.
type responses struct{ openai }

type responsesRequest struct {
	Model, User       string
	Input             json.RawMessage
	Instructions      *string
	Stream            bool
	Store             *bool
	Include           []string
	MaxOutputTokens   *int            `json:"max_output_tokens"`
	ParallelToolCalls *bool           `json:"parallel_tool_calls"`
	PreviousResponse  string          `json:"previous_response_id"`
	ToolChoice        json.RawMessage `json:"tool_choice"`
	Tools             []struct {
		Type, Name string
		Parameters json.RawMessage
	}
	Reasoning *struct {
		Effort, Summary *string
	}
	Text struct {
		Format struct {
			Type   string
			Schema json.RawMessage
		}
	}
}

// responsesParameters are the fields of a request; any other is refused.
var responsesParameters = []string{
	"background", "conversation", "frequency_penalty", "include", "input", "instructions", "max_output_tokens",
	"max_tool_calls", "metadata", "model", "parallel_tool_calls", "presence_penalty", "previous_response_id", "prompt",
	"prompt_cache_key", "prompt_cache_retention", "reasoning", "safety_identifier", "service_tier", "store", "stream",
	"stream_options", "temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p", "truncation", "user",
}

// countedParameters are those of a request that only counts its tokens.
var countedParameters = []string{
	"conversation", "input", "instructions", "model", "parallel_tool_calls", "previous_response_id", "reasoning", "text",
	"tool_choice", "tools", "truncation",
}

// hostedItems are the items of tools that the provider runs itself, or that it has the caller run in ways of its own.
// They are taken as they come: none is simulated.
var hostedItems = []string{
	"additional_tools", "apply_patch_call", "apply_patch_call_output", "code_interpreter_call", "compaction",
	"computer_call", "computer_call_output", "custom_tool_call", "custom_tool_call_output", "file_search_call",
	"image_generation_call", "local_shell_call", "local_shell_call_output", "mcp_approval_request",
	"mcp_approval_response", "mcp_call", "mcp_list_tools", "shell_call", "shell_call_output", "tool_search_call",
	"tool_search_output", "web_search_call",
}

type responsesItem struct {
	Type             string
	ID               string
	Role             string
	Content          json.RawMessage
	CallID           string `json:"call_id"`
	Name             string
	Arguments        *string
	Output           json.RawMessage
	Summary          *[]struct{ Type, Text string }
	EncryptedContent *string `json:"encrypted_content"`
}

type responsesPart struct {
	Type     string
	Text     string
	Refusal  string
	ImageURL string `json:"image_url"`
	Filename string
	FileData string `json:"file_data"`
	FileURL  string `json:"file_url"`
}

// responsesExchange is one request of the Responses API.
type responsesExchange struct {
	responses
	turn
	id        string
	echo      map[string]any // the parameters, as a response repeats them
	stored    bool           // ids are to be remembered
	encrypted bool           // the caller wants reasoning.encrypted_content
	summary   bool           // and a summary of it
}

func (c responses) read(body []byte, r *http.Request) (exchange, *fault) {
	counts, known := strings.HasSuffix(r.URL.Path, "/input_tokens"), responsesParameters
	if counts {
		known = countedParameters
	}
	var sent map[string]any
	if f := decode(body, &sent, ""); f != nil {
		return nil, f
	}
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		if !slices.Contains(known, name) {
			name = clip(name, 100)
			return nil, bad(name, "unknown_parameter", "Unknown parameter: '%s'.", name)
		}
	}
	var request responsesRequest
	if f := decode(body, &request, ""); f != nil {
		return nil, f
	}
	x := &responsesExchange{responses: c, id: newID("resp_"), turn: turn{model: request.Model, streamed: request.Stream}}
	t := &x.turn
	switch {
	case request.Model == "":
		return nil, missing("model")
	case !c.serves(request.Model):
		return nil, c.unknownModel(request.Model)
	case utf8.RuneCountInString(request.User) > 64:
		return nil, longUser(request.User)
	case request.PreviousResponse != "":
		return nil, bad("previous_response_id", "previous_response_not_found", "Previous response with id '%s' not found.",
			clip(request.PreviousResponse, 100))
	case len(request.Input) == 0 || string(request.Input) == "null":
		return nil, missing("input")
	}
	if request.MaxOutputTokens != nil {
		least := 1
		if c.Strict {
			least = 16
		}
		if t.limit = *request.MaxOutputTokens; t.limit < least {
			return nil, bad("max_output_tokens", "integer_below_min_value", "Invalid 'max_output_tokens': integer below "+
				"minimum value. Expected a value >= %d, but got %d instead.", least, t.limit)
		}
	}
	t.oneCall = request.ParallelToolCalls != nil && !*request.ParallelToolCalls
	x.stored = request.Store == nil || *request.Store
	x.encrypted = slices.Contains(request.Include, "reasoning.encrypted_content")
	if reasoning := request.Reasoning; reasoning != nil {
		if reasoning.Effort != nil {
			t.effort = *reasoning.Effort
		}
		x.summary = reasoning.Summary != nil
		t.think = t.effort != "none" && (t.effort != "" || x.summary)
	}
	switch format := request.Text.Format; format.Type {
	case "", "text":
	case "json_object", "json_schema":
		t.json, t.schema = true, parseSchema(format.Schema)
	default:
		return nil, invalidValue("text.format.type", format.Type, "text", "json_object", "json_schema")
	}
	x.echo = map[string]any{
		"background": false, "instructions": nil, "max_output_tokens": nil, "max_tool_calls": nil, "metadata": object{},
		"parallel_tool_calls": true, "previous_response_id": nil, "service_tier": "default", "store": true,
		"temperature": 1.0, "text": object{"format": object{"type": "text"}}, "tool_choice": "auto", "tools": []any{},
		"top_p": 1.0, "truncation": "disabled", "user": nil, "reasoning": object{"effort": nil, "summary": nil},
	}
	for name := range x.echo {
		if value, ok := sent[name]; ok && value != nil {
			x.echo[name] = value
		}
	}

	for i, tool := range request.Tools {
		switch tool.Type {
		case "function":
			if f := checkToolName(tool.Name, fmt.Sprintf("tools[%d].name", i)); f != nil {
				return nil, f
			}
			t.offer(tool.Name, tool.Parameters)
		case "":
			return nil, missing(fmt.Sprintf("tools[%d].type", i))
		default: // a tool that the provider runs itself: none is simulated
		}
	}
	if f := t.choose(request.ToolChoice); f != nil {
		return nil, f
	}
	if request.Instructions != nil {
		t.rule(*request.Instructions)
	}
	if f := x.readInput(request.Input); f != nil {
		return nil, f
	}
	if counts {
		return newCounter(x.turn, func(tokens int) object {
			return object{"object": "response.input_tokens", "input_tokens": tokens}
		}), nil
	}
	return x, nil
}

// readInput reads the input: a text or a list of items.
func (x *responsesExchange) readInput(raw json.RawMessage) *fault {
	if raw[0] == '"' {
		var text string
		if f := decode(raw, &text, "input"); f != nil {
			return f
		}
		x.turns++
		x.hear(text)
		return nil
	}
	var items []json.RawMessage
	if f := decode(raw, &items, "input"); f != nil {
		return f
	}
	return x.readItems(items)
}

// readItems reads the history and checks that calls and outputs belong together, and that reasoning is unaltered and
// stands before what it led to.
func (x *responsesExchange) readItems(items []json.RawMessage) *fault {
	t := &x.turn
	seen := map[string]bool{}   // ids of items
	calls := map[string]bool{}  // ids of calls
	before := reasoned{}        // since the model was last spoken to
	bare := ""                  // the reasoning that nothing follows yet
	open := map[string]string{} // calls without an output: id to name
	var ids []string            // of all calls, in order
	checkOutputs := func() *fault {
		for _, id := range ids {
			if _, ok := open[id]; ok {
				return bad("input", "", "No tool output found for function call %s.", id)
			}
		}
		return nil
	}

	for i, raw := range items {
		at := fmt.Sprintf("input[%d]", i)
		var head struct{ Type, ID string }
		if f := decode(raw, &head, at); f != nil {
			return f
		}
		item := responsesItem{Type: head.Type, ID: head.ID}
		if !slices.Contains(hostedItems, head.Type) {
			if f := decode(raw, &item, at); f != nil {
				return f
			}
		}
		if item.Type == "" && item.Role != "" {
			item.Type = "message"
		}
		switch fromModel := item.Type != "function_call_output" && (item.Type != "message" || item.Role == "assistant"); {
		case item.ID != "" && seen[item.ID]:
			return bad("input", "", "Duplicate item found with id %s. Remove duplicate items from your input and try again.",
				clip(item.ID, 100))
		case !fromModel && bare != "":
			return withoutFollower(bare)
		case !fromModel && item.Type == "message":
			before = reasoned{}
		}
		seen[item.ID] = true
		if item.Type != "reasoning" {
			bare = ""
		}
		if strings.HasPrefix(item.Type, "function_call") {
			if item.CallID == "" {
				return missing(at + ".call_id")
			}
			if len(item.CallID) > 64 {
				return bad(at+".call_id", "string_above_max_length", "Invalid '%s.call_id': string too long. Expected a string "+
					"with maximum length 64, but got a string with length %d instead.", at, len(item.CallID))
			}
		}
		switch item.Type {
		case "message":
			if x.Strict {
				if f := checkOutputs(); f != nil {
					return f
				}
				ids = nil
			}
			switch item.Role {
			case "user":
				t.turns++
			case "assistant":
				t.spoke()
				if f := x.checkReasoned(item, before); f != nil {
					return f
				}
			case "system", "developer":
			default:
				return invalidValue(at+".role", item.Role, "assistant", "system", "developer", "user")
			}
			if f := x.readContent(item.Role, item.Content, at+".content"); f != nil {
				return f
			}
		case "function_call":
			if item.Name == "" {
				return missing(at + ".name")
			}
			if item.Arguments == nil {
				return missing(at + ".arguments")
			}
			if calls[item.CallID] {
				return bad("input", "", "Duplicate 'call_id': %s.", item.CallID)
			}
			if f := x.checkReasoned(item, before); f != nil {
				return f
			}
			t.spoke()
			calls[item.CallID] = true
			open[item.CallID] = item.Name
			ids = append(ids, item.CallID)
			t.say("call", item.CallID+item.Name+*item.Arguments)
		case "function_call_output":
			name, ok := open[item.CallID]
			if !ok {
				return bad("input", "", "No tool call found for function call output with call_id %s.", item.CallID)
			}
			delete(open, item.CallID)
			t.results = append(t.results, result{name: name})
			if f := x.readContent("tool", item.Output, at+".output"); f != nil {
				return f
			}
		case "reasoning":
			if item.Summary == nil && !x.RawReasoning {
				return missing(at + ".summary")
			}
			id, f := x.checkReasoning(item, before, at)
			if f != nil {
				return f
			}
			if !x.RawReasoning {
				bare = id
			}
			t.spoke()
			t.say("reasoning", string(raw))
		case "item_reference":
			return x.notFound(item.ID)
		case "":
			return missing(at + ".type")
		default:
			if !slices.Contains(hostedItems, item.Type) {
				return invalidValue(at, item.Type, "message", "reasoning", "function_call", "function_call_output")
			}
			t.say(item.Type, string(raw))
		}
	}
	if bare != "" {
		return withoutFollower(bare)
	}
	return checkOutputs()
}

// reasoned holds the ids of some reasoning items and of the calls that they led to. An empty one stands for reasoning
// that does not say what it led to.
type reasoned map[string]bool

func withoutFollower(id string) *fault {
	return bad("input", "", "Item '%s' of type 'reasoning' was provided without its required following item.", clip(id, 100))
}

// notFound is the answer to an item that has to be looked up: there is no store.
func (x *responsesExchange) notFound(id string) *fault {
	message := "Item with id '" + clip(id, 100) + "' not found."
	if !x.stored {
		message += " Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this " +
			"item from your input."
	}
	return &fault{status: http.StatusNotFound, param: "input", message: message}
}

// checkReasoning refuses reasoning without its proof, or with one that was issued elsewhere or for another item. It adds
// what the proof says to what is known, and returns the item's id.
func (x *responsesExchange) checkReasoning(item responsesItem, known reasoned, at string) (string, *fault) {
	proof := item.EncryptedContent
	switch {
	case proof != nil:
	case x.RawReasoning:
		known[""] = true
		return item.ID, nil
	case item.ID != "":
		return "", x.notFound(item.ID)
	case x.Strict && x.encrypted:
		return "", missing(at + ".encrypted_content")
	default:
		known[""] = true
		return "", nil
	}
	unverified := func(reason string) *fault {
		what := clip(*proof, 12)
		if item.ID != "" {
			what = "for item " + clip(item.ID, 100)
		}
		return bad("", "invalid_encrypted_content", "The encrypted content %s could not be verified. Reason: %s", what, reason)
	}
	about, ok := x.sealer.open(*proof)
	all := strings.Fields(about)
	switch {
	case !ok:
		return "", unverified("Encrypted content could not be decrypted or parsed.")
	case len(all) == 0: // of another provider
		known[""] = true
		return item.ID, nil
	case item.ID != "" && item.ID != all[0]:
		return "", unverified("Encrypted content item_id did not match the target item id.")
	}
	for _, id := range all {
		known[id] = true
	}
	return all[0], nil
}

// checkReasoned refuses an item without the reasoning that led to it: a provider that remembers its items knows it by
// the id of the item, a strict one by that of the call.
func (x *responsesExchange) checkReasoned(item responsesItem, before reasoned) *fault {
	id := x.reasoningOf(item.ID)
	asked := id
	if x.Strict && item.Type == "function_call" && x.issuedWithThought(item.CallID) {
		asked = item.CallID
	} else if !x.stored {
		asked = ""
	}
	if asked == "" || before[asked] || before[""] {
		return nil
	}
	message := fmt.Sprintf("Item '%s' of type '%s' was provided without its required 'reasoning' item",
		clip(cmp.Or(item.ID, item.CallID), 100), item.Type)
	if id != "" {
		message += ": '" + id + "'"
	}
	return bad("input", "", "%s.", message)
}

// readContent reads the content of a message or the output of a call: a text or a list of parts.
func (x *responsesExchange) readContent(role string, raw json.RawMessage, at string) *fault {
	t := &x.turn
	take := func(text string) {
		switch role {
		case "user":
			t.hear(text)
		case "system", "developer":
			t.rule(text)
		case "tool":
			t.results[len(t.results)-1].text = text
			t.say(role, text)
		default:
			t.say(role, text)
		}
	}
	var text string
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return missing(at)
	case raw[0] == '"' && json.Unmarshal(raw, &text) == nil:
		take(text)
		return nil
	case raw[0] != '[':
		return bad(at, "invalid_type", "Invalid type for '%s': expected one of an array of objects or string, but got "+
			"something else instead.", at)
	}
	var parts []responsesPart
	if f := decode(raw, &parts, at); f != nil {
		return f
	}
	var texts []string
	for k, p := range parts {
		path := fmt.Sprintf("%s[%d]", at, k)
		fromModel := role == "assistant"
		switch {
		case p.Type == "output_text" && fromModel, p.Type == "input_text" && !fromModel:
			texts = append(texts, p.Text)
		case p.Type == "refusal" && fromModel:
			texts = append(texts, p.Refusal)
		case p.Type == "input_image" && !fromModel:
			picture, ok := readPicture(p.ImageURL)
			if !ok || p.ImageURL == "" {
				return bad(path+".image_url", "invalid_value", "Invalid '%s.image_url'. Expected a valid URL, but got a value "+
					"with an invalid format.", path)
			}
			t.see(picture, p.ImageURL)
		case p.Type == "input_file" && !fromModel:
			t.say("file", p.Filename+p.FileURL+p.FileData)
		case fromModel:
			return invalidValue(path, p.Type, "output_text", "refusal")
		default:
			return invalidValue(path, p.Type, "input_text", "input_image", "input_file")
		}
	}
	if len(texts) > 0 {
		take(strings.Join(texts, "\n"))
	}
	return nil
}

func (x *responsesExchange) asked() *turn { return &x.turn }

// itemKey is the key of a part in the id of its item, followed by that of the reasoning that led to it.
func (x *responsesExchange) itemKey(p part, r *reply) string {
	if !r.thought() {
		return p.key
	}
	reasoning := r.parts[0].key
	return p.key + x.sealer.mark(p.key+reasoning) + reasoning
}

// reasoningOf returns the id of the reasoning that led to an item, empty if there was none or if the item is not of this
// provider.
func (x *responsesExchange) reasoningOf(item string) string {
	_, key, _ := strings.Cut(item, "_")
	size := (len(key) - markSize) / 2
	if size < 1 || len(key) != size+markSize+size || key[size:size+markSize] != x.sealer.mark(key[:size]+key[size+markSize:]) {
		return ""
	}
	return "rs_" + key[size+markSize:]
}

// item makes the output item of a part, whole as far as the part goes.
func (x *responsesExchange) item(p part, r *reply) object {
	status := "completed"
	if p.partial {
		status = "incomplete"
	}
	switch p.kind {
	case thinking, redacted:
		item := object{"id": "rs_" + p.key, "type": "reasoning", "summary": []object{}, "content": []object{}}
		switch {
		case p.kind == redacted:
		case x.RawReasoning:
			item["content"] = []object{reasoningText(p.text)}
		case x.summary:
			summary := []object{}
			for _, paragraph := range paragraphs(p.text) {
				summary = append(summary, summaryText(paragraph))
			}
			item["summary"] = summary
		}
		if x.encrypted && !p.partial {
			item["encrypted_content"] = x.sealer.seal("rs_" + p.key + " " + x.callIDs("call_", r))
		}
		return item
	case call:
		return object{
			"id": "fc_" + x.itemKey(p, r), "type": "function_call", "status": status, "name": p.name,
			"call_id": x.callID("call_", p, r.thought()), "arguments": p.text,
		}
	default:
		content := outputText(p.text)
		if p.kind == refusal {
			content = refusalPart(p.text)
		}
		return object{
			"id": "msg_" + x.itemKey(p, r), "type": "message", "status": status, "role": "assistant",
			"content": []object{content},
		}
	}
}

func outputText(text string) object {
	return object{"type": "output_text", "text": text, "annotations": []any{}, "logprobs": []any{}}
}

func refusalPart(text string) object { return object{"type": "refusal", "refusal": text} }

func reasoningText(text string) object { return object{"type": "reasoning_text", "text": text} }

func summaryText(text string) object { return object{"type": "summary_text", "text": text} }

// paragraphs are the parts of a summary, each with the empty line that follows it.
func paragraphs(text string) []string { return strings.SplitAfter(text, "\n\n") }

// responsesStream numbers the events of one response.
type responsesStream struct {
	*stream
	number int
}

func (s *responsesStream) event(kind string, fields object) {
	fields["type"], fields["sequence_number"] = kind, s.number
	s.number++
	s.send(kind, fields)
}

func (x *responsesExchange) stream(plain *stream, r *reply) {
	s := &responsesStream{stream: plain}
	s.event("response.created", object{"response": x.response("in_progress", nil, nil)})
	s.event("response.in_progress", object{"response": x.response("in_progress", nil, nil)})

	output := []object{}
	for group := range r.groups() {
		first := len(output)
		for i, p := range group {
			item := x.item(p, r)
			output = append(output, item)
			s.event("response.output_item.added", object{"output_index": first + i, "item": opened(item)})
		}

		// Of a reply that breaks off, the part that it breaks off in is never closed.
		open := func(p part) bool { return p.partial && r.ending != complete }
		p, at := group[0], position{"item_id": output[first]["id"], "output_index": first}
		switch p.kind {
		case thinking:
			switch {
			case x.RawReasoning:
				s.part(at, "content", 0, "response.content_part", "response.reasoning_text", reasoningText, p.text, open(p))
			case x.summary:
				all := paragraphs(p.text)
				for i, paragraph := range all {
					s.part(at, "summary", i, "response.reasoning_summary_part", "response.reasoning_summary_text", summaryText,
						paragraph, open(p) && i == len(all)-1)
				}
			}
		case text:
			s.part(at, "content", 0, "response.content_part", "response.output_text", outputText, p.text, open(p))
		case refusal:
			s.part(at, "content", 0, "response.content_part", "response.refusal", refusalPart, p.text, open(p))
		case call:
			for i, piece := range fragments(group) {
				if !s.next() {
					return
				}
				s.event("response.function_call_arguments.delta",
					object{"item_id": output[first+i]["id"], "output_index": first + i, "delta": piece})
			}
		}
		if s.gone {
			return
		}
		for i, p := range group {
			if open(p) {
				continue
			}
			if p.kind == call {
				s.event("response.function_call_arguments.done",
					object{"item_id": output[first+i]["id"], "output_index": first + i, "arguments": p.text})
			}
			s.event("response.output_item.done", object{"output_index": first + i, "item": output[first+i]})
		}
	}

	switch r.ending {
	case complete:
		response := x.finished(output, r)
		s.event("response."+response["status"].(string), object{"response": response})
	case failed:
		code, message := "server_error", "The server had an error processing your request. Sorry about that! You "+
			"can retry your request."
		if f := r.fault(0); f.status != 0 {
			x.refusal(f, nil, nil)
			code, message = cmp.Or(f.code, f.kind), f.message
		}
		response := x.response("failed", nil, nil)
		response["error"] = object{"code": code, "message": message}
		s.event("error", object{"error": object{"type": code, "code": code, "message": message, "param": nil}})
		s.event("response.failed", object{"response": response})
	}
}

// opened returns an item as it stands when it is announced, without its content.
func opened(item object) object {
	item = maps.Clone(item)
	switch item["type"] {
	case "reasoning":
		item["summary"], item["content"] = []object{}, []object{}
		if proof, ok := item["encrypted_content"].(string); ok {
			item["encrypted_content"] = proof[:len(proof)/2] // a first part, of no use by itself
		}
	case "function_call":
		item["arguments"], item["status"] = "", "in_progress"
	default:
		item["content"], item["status"] = []object{}, "in_progress"
	}
	return item
}

// position is what the events of an item have in common.
type position object

// part streams one part of an item: a content or a summary, with the events around it and those of its text. An open
// one has no end.
func (s *responsesStream) part(at position, list string, index int, frame, content string, make func(string) object,
	text string, open bool,
) {
	event := func(kind string, fields object) {
		maps.Copy(fields, at)
		fields[list+"_index"] = index
		s.event(kind, fields)
	}
	event(frame+".added", object{"part": make("")})
	for _, piece := range pieces(text) {
		if !s.next() {
			return
		}
		event(content+".delta", object{"delta": piece})
	}
	if open {
		return
	}
	whole := object{"text": text}
	if content == "response.refusal" {
		whole = object{"refusal": text}
	}
	event(content+".done", whole)
	event(frame+".done", object{"part": make(text)})
}

func (x *responsesExchange) whole(r *reply) any {
	output := []object{}
	for _, p := range r.parts {
		output = append(output, x.item(p, r))
	}
	return x.finished(output, r)
}

// response makes a response object with what was asked for.
func (x *responsesExchange) response(status string, output []object, usage any) object {
	body := object{
		"id": x.id, "object": "response", "created_at": x.Now().Unix(), "completed_at": nil, "status": status,
		"model": x.model, "error": nil, "incomplete_details": nil, "output": []object{}, "usage": usage,
	}
	maps.Copy(body, x.echo)
	if output != nil {
		body["output"] = output
	}
	return body
}

// finished makes the response object of a reply that ended by itself.
func (x *responsesExchange) finished(output []object, r *reply) object {
	body := x.response("completed", output, object{
		"input_tokens": r.usage.input, "input_tokens_details": object{"cached_tokens": r.usage.cached},
		"output_tokens": r.usage.output, "output_tokens_details": object{"reasoning_tokens": r.usage.thoughts},
		"total_tokens": r.usage.input + r.usage.output,
	})
	switch r.finish {
	case lengthy:
		body["status"], body["incomplete_details"] = "incomplete", object{"reason": "max_output_tokens"}
	case filtered:
		body["status"], body["incomplete_details"] = "incomplete", object{"reason": "content_filter"}
	default:
		body["completed_at"] = x.Now().Unix()
	}
	return body
}
