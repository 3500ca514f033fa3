package simulate

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

type interactionRequest struct {
	Model             string
	Input             json.RawMessage
	Stream            bool
	Store             *bool
	Previous          string          `json:"previous_interaction_id"`
	SystemInstruction string          `json:"system_instruction"`
	ResponseFormat    json.RawMessage `json:"response_format"`
	Tools             []struct {
		Type, Name string
		Parameters json.RawMessage
	}
	GenerationConfig struct {
		MaxOutputTokens   *int            `json:"max_output_tokens"`
		StopSequences     []string        `json:"stop_sequences"`
		ThinkingLevel     string          `json:"thinking_level"`
		ThinkingSummaries string          `json:"thinking_summaries"`
		ToolChoice        json.RawMessage `json:"tool_choice"`
	} `json:"generation_config"`
}

type interactionStep struct {
	Type      string
	Content   json.RawMessage
	Summary   json.RawMessage
	Signature string
	ID        string
	Name      string
	Arguments json.RawMessage
	CallID    string `json:"call_id"`
	Result    json.RawMessage
	IsError   bool `json:"is_error"`

	at string // where it stands in the request
}

type interactionContent struct {
	Type     string
	Text     string
	Data     string
	URI      string
	MimeType string `json:"mime_type"`
}

// interactionFields are the fields of a request, of its generation_config and of what its lists hold, by type; any other
// is refused.
var interactionFields = map[string][]string{
	"": {
		"model", "agent", "input", "system_instruction", "tools", "response_format", "stream", "store", "background", "labels",
		"previous_interaction_id", "safety_settings", "webhook_config", "environment", "service_tier", "generation_config",
	},
	"generation_config": {
		"max_output_tokens", "seed", "stop_sequences", "thinking_level", "thinking_summaries", "tool_choice", "speech_config",
		"temperature", "top_p",
	},
	"function":        {"type", "name", "description", "parameters"},
	"user_input":      {"type", "content"},
	"model_output":    {"type", "content"},
	"thought":         {"type", "signature", "summary"},
	"function_call":   {"type", "id", "name", "arguments", "signature"},
	"function_result": {"type", "call_id", "name", "result", "is_error"},
	"text":            {"type", "text", "annotations"},
	"image":           {"type", "data", "uri", "mime_type", "resolution"},
	"audio":           {"type", "data", "uri", "mime_type", "sample_rate", "channels"},
	"video":           {"type", "data", "uri", "mime_type", "resolution"},
	"document":        {"type", "data", "uri", "mime_type"},
}

// decodeFields reads an object that holds no field but those of its kind; an empty kind is the object's type.
func decodeFields(raw []byte, kind, at string, into any) *fault {
	var sent map[string]json.RawMessage
	if err := json.Unmarshal(raw, &sent); err != nil {
		return argument("Invalid value%s: an object is expected.", place(at))
	}
	if kind == "type" {
		if json.Unmarshal(sent["type"], &kind) != nil {
			return argument("Missing required field%s: type.", place(at))
		}
	}
	known, ok := interactionFields[kind]
	if !ok {
		return argument("Invalid value%s: unknown type %q.", place(at), clip(kind, 100))
	}
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		if !slices.Contains(known, name) {
			return argument("Unknown parameter%s: %q.", place(at), clip(name, 100))
		}
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return argument("Invalid value%s: %s.", place(at), err)
	}
	return nil
}

func place(at string) string {
	if at == "" {
		return ""
	}
	return " at '" + at + "'"
}

// interactionExchange is one request of Interactions.
type interactionExchange struct {
	google
	turn
	id     string
	hidden bool // summaries of thoughts are not to be shown
}

func (g google) readInteraction(body []byte) (exchange, *fault) {
	var request interactionRequest
	if f := decodeFields(body, "", "", &request); f != nil {
		return nil, f
	}
	x := &interactionExchange{google: g, turn: turn{model: request.Model, streamed: request.Stream, rich: true}}
	t := &x.turn
	if request.Store == nil || *request.Store {
		x.id = newID("v1_")
	}
	switch {
	case request.Model == "":
		return nil, argument("Missing required field: model.")
	case !g.serves(request.Model) || embeds(request.Model):
		return nil, &fault{status: http.StatusNotFound, message: fmt.Sprintf("Model %q is not found.", clip(request.Model, 100))}
	case request.Previous != "":
		return nil, &fault{status: http.StatusNotFound, message: fmt.Sprintf("Interaction %q is not found.", clip(request.Previous, 100))}
	case len(request.Input) == 0 || string(request.Input) == "null":
		return nil, argument("Missing required field: input.")
	}
	var raw struct {
		Config json.RawMessage   `json:"generation_config"`
		Tools  []json.RawMessage `json:"tools"`
	}
	_ = json.Unmarshal(body, &raw)
	config := &request.GenerationConfig
	if raw.Config != nil {
		if f := decodeFields(raw.Config, "generation_config", "generation_config", config); f != nil {
			return nil, f
		}
	}
	if config.MaxOutputTokens != nil {
		if t.limit = *config.MaxOutputTokens; t.limit < 1 {
			return nil, argument("Invalid value at 'generation_config.max_output_tokens': it must be positive.")
		}
	}
	t.stops, t.effort = config.StopSequences, config.ThinkingLevel
	x.hidden, t.think = config.ThinkingSummaries == "none", config.ThinkingSummaries == "auto"
	switch {
	case !slices.Contains([]string{"", "minimal", "low", "medium", "high"}, t.effort):
		return nil, argument("Invalid value at 'generation_config.thinking_level': %q.", clip(t.effort, 100))
	case !slices.Contains([]string{"", "auto", "none"}, config.ThinkingSummaries):
		return nil, argument("Invalid value at 'generation_config.thinking_summaries': %q.", clip(config.ThinkingSummaries, 100))
	}
	if f := x.readFormats(request.ResponseFormat); f != nil {
		return nil, f
	}
	if speaks(t.model) && (request.SystemInstruction != "" || len(request.Tools) > 0 || t.effort != "" || !t.speak) {
		return nil, argument("The model %s takes text and gives audio: it needs an audio response_format, and takes neither a "+
			"system instruction nor tools nor a thinking level.", clip(t.model, 100))
	}
	for i, tool := range request.Tools {
		if tool.Type != "function" { // a tool that the provider runs itself: none is simulated
			continue
		}
		at := fmt.Sprintf("tools[%d]", i)
		if f := decodeFields(raw.Tools[i], "function", at, &tool); f != nil {
			return nil, f
		}
		switch {
		case !googleToolName.MatchString(tool.Name):
			return nil, argument("Invalid value at '%s.name': %q.", at, clip(tool.Name, 150))
		case tool.Parameters != nil && typeOf(parseSchema(tool.Parameters)) != "object":
			return nil, argument("Invalid value at '%s.parameters': the schema of a function must be one of an object.", at)
		}
		t.offer(tool.Name, tool.Parameters)
	}
	if f := x.chooseTool(config.ToolChoice); f != nil {
		return nil, f
	}
	if request.SystemInstruction != "" {
		t.rule(request.SystemInstruction)
	}
	steps, f := readSteps(request.Input)
	if f != nil {
		return nil, f
	}
	if f := x.readHistory(steps); f != nil {
		return nil, f
	}
	return x, nil
}

// readFormats reads what the answer shall be: one format or a list.
func (x *interactionExchange) readFormats(raw json.RawMessage) *fault {
	type format struct {
		Type     string
		MimeType string `json:"mime_type"`
		Schema   json.RawMessage
	}
	var all []format
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	if json.Unmarshal(raw, &all) != nil {
		all = make([]format, 1)
		if json.Unmarshal(raw, &all[0]) != nil {
			return argument("Invalid value at 'response_format'.")
		}
	}
	for _, f := range all {
		switch f.Type {
		case "text":
			x.json = f.MimeType == "application/json" || f.Schema != nil
			x.schema = parseSchema(f.Schema)
		case "image":
			x.paint = true
		case "audio":
			x.speak = true
		case "video":
		default:
			return argument("Invalid value at 'response_format': unknown type %q.", clip(f.Type, 100))
		}
	}
	return nil
}

func (x *interactionExchange) chooseTool(raw json.RawMessage) *fault {
	var mode string
	var choice struct {
		Allowed struct {
			Mode  string
			Tools []string
		} `json:"allowed_tools"`
	}
	switch {
	case len(raw) == 0 || string(raw) == "null":
	case json.Unmarshal(raw, &mode) == nil:
		if !slices.Contains([]string{"auto", "any", "none", "validated"}, mode) {
			return argument("Invalid value at 'generation_config.tool_choice': %q.", clip(mode, 100))
		}
		x.never, x.must = mode == "none", mode == "any"
	case json.Unmarshal(raw, &choice) != nil || choice.Allowed.Mode != "any" && choice.Allowed.Mode != "validated":
		return argument("Invalid value at 'generation_config.tool_choice.allowed_tools.mode': \"any\" and \"validated\" are possible.")
	default:
		x.must, x.only = choice.Allowed.Mode == "any", map[string]bool{}
		for _, name := range choice.Allowed.Tools {
			x.only[name] = true
		}
		if x.checkChoice() != nil {
			return argument("Invalid value at 'generation_config.tool_choice.allowed_tools.tools': a name is not one of the tools.")
		}
	}
	return nil
}

// readSteps reads an input: a text, a content, contents, or steps.
func readSteps(raw json.RawMessage) ([]interactionStep, *fault) {
	said := func(content json.RawMessage) ([]interactionStep, *fault) {
		return []interactionStep{{Type: "user_input", Content: content, at: "input"}}, nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		block, _ := json.Marshal([]object{{"type": "text", "text": text}})
		return said(block)
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return said(append(append(json.RawMessage("["), raw...), ']'))
	}
	var first struct{ Type string }
	if len(list) == 0 {
		return nil, argument("Invalid value at 'input': it is empty.")
	}
	if _ = json.Unmarshal(list[0], &first); slices.Contains([]string{"text", "image", "audio", "video", "document"}, first.Type) {
		return said(raw)
	}
	steps := make([]interactionStep, len(list))
	for i, raw := range list {
		at := fmt.Sprintf("input[%d]", i)
		if f := decodeFields(raw, "type", at, &steps[i]); f != nil {
			return nil, f
		}
		steps[i].at = at
	}
	return steps, nil
}

// readHistory reads the steps. Those of the model that follow each other are one turn, which must begin with a signed
// thought unless the user has spoken since.
func (x *interactionExchange) readHistory(steps []interactionStep) *fault {
	t := &x.turn
	current := 0 // what follows the last input of the user is not finished
	for i, s := range steps {
		if s.Type == "user_input" {
			current = i
		}
	}
	ids := map[string]bool{}
	var calls []interactionStep // without a result
	unanswered := func() *fault {
		if len(calls) > 0 {
			return argument("%s: the function call %q has no function result.", calls[0].at, clip(calls[0].Name, 100))
		}
		return nil
	}
	for i, s := range steps {
		model := s.Type != "user_input" && s.Type != "function_result"
		begins := i == 0 || steps[i-1].Type == "user_input" || steps[i-1].Type == "function_result"
		if s.Type == "user_input" || model && begins {
			if f := unanswered(); f != nil {
				return f
			}
		}
		if s.Signature != "" {
			if f := x.checkSignature(s.Signature, s.at+".signature", stepSubjects(steps[i:])); f != nil {
				return f
			}
		}
		if model {
			t.spoke()
			if begins && i > current && (s.Type != "thought" || s.Signature == "") {
				return argument("%s: a turn of the model must start with its signed thought.", s.at)
			}
		}
		switch s.Type {
		case "user_input":
			t.turns++
			if f := x.readBlocks(s.Content, s.at+".content", t.hear); f != nil {
				return f
			}
		case "model_output":
			if f := x.readBlocks(s.Content, s.at+".content", func(text string) { t.say("model", text) }); f != nil {
				return f
			}
		case "thought":
			t.say("thought", s.Signature)
			if s.Summary != nil {
				if f := x.readBlocks(s.Summary, s.at+".summary", func(text string) { t.say("thought", text) }); f != nil {
					return f
				}
			}
		case "function_call":
			switch {
			case s.Name == "":
				return argument("Missing required field at '%s': name.", s.at)
			case len(s.Arguments) == 0 || s.Arguments[0] != '{':
				return argument("Invalid value at '%s.arguments': an object is expected.", s.at)
			case s.ID != "" && ids[s.ID]:
				return argument("%s: duplicate function call id %q.", s.at, clip(s.ID, 100))
			}
			ids[s.ID] = true
			calls = append(calls, s)
			t.say("call", s.ID+s.Name+string(s.Arguments))
		case "function_result":
			match := slices.IndexFunc(calls, func(c interactionStep) bool {
				return c.Name == s.Name && (s.CallID == "" || c.ID == "" || c.ID == s.CallID)
			})
			switch {
			case s.Name == "":
				return argument("Missing required field at '%s': name.", s.at)
			case len(s.Result) == 0:
				return argument("Missing required field at '%s': result.", s.at)
			case match < 0:
				return argument("%s: the function result matches no function call (name %q, call_id %q).", s.at, clip(s.Name, 100), clip(s.CallID, 100))
			}
			calls = slices.Delete(calls, match, match+1)
			text, failed := readFunctionResult(s.Result)
			if s.Result[0] == '[' {
				var texts []string
				if f := x.readBlocks(s.Result, s.at+".result", func(text string) { texts = append(texts, text) }); f != nil {
					return f
				}
				text = strings.Join(texts, "\n")
			}
			t.say("result", s.CallID+s.Name+text)
			t.results = append(t.results, result{name: s.Name, text: text, failed: failed || s.IsError})
		}
	}
	return unanswered()
}

// stepSubjects yields what the signature of the first step may be about: what it led to in this turn of the model, a
// text of nothing if that is nothing.
func stepSubjects(steps []interactionStep) iter.Seq[string] {
	return func(yield func(string) bool) {
		nothing := true
		for _, s := range steps {
			switch s.Type {
			case "user_input", "function_result":
				_ = nothing && yield(textSubject(""))
				return
			case "function_call":
				nothing = false
				if !yield(callSubject(s.Name, s.Arguments)) {
					return
				}
			case "model_output":
				nothing = false
				var all []interactionContent
				_ = json.Unmarshal(s.Content, &all)
				var text strings.Builder
				for _, c := range all {
					text.WriteString(c.Text)
					if raw, ok := decodeBytes(c.Data); ok && len(raw) > 0 && !yield(mediaSubject(raw)) {
						return
					}
				}
				if !yield(textSubject(text.String())) {
					return
				}
			}
		}
		_ = nothing && yield(textSubject(""))
	}
}

// thoughtSubject is what a thought step is signed about: the first thing after the thoughts.
func thoughtSubject(r *reply) string {
	for _, p := range r.parts {
		if p.kind != thinking && p.kind != redacted && p.kind != sketch {
			return subjectOf(p)
		}
	}
	return textSubject("")
}

// readBlocks reads contents and hands out their texts.
func (x *interactionExchange) readBlocks(raw json.RawMessage, at string, take func(string)) *fault {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return argument("Invalid value at '%s': a list of contents is expected.", at)
	}
	for i, raw := range list {
		var c interactionContent
		path := fmt.Sprintf("%s[%d]", at, i)
		if f := decodeFields(raw, "type", path, &c); f != nil {
			return f
		}
		switch {
		case c.Type == "text" && c.Text == "":
			return argument("Invalid value at '%s.text': a text content must not be empty.", path)
		case c.Type == "text":
			take(c.Text)
		case c.Type != "image" && c.Type != "audio" && c.Type != "video" && c.Type != "document":
			return argument("Invalid value at '%s': %q is no content.", path, c.Type)
		case c.URI != "":
			x.say("file", c.URI)
		default:
			if f := x.readMedia(c.MimeType, c.Data, path+".data"); f != nil {
				return f
			}
		}
	}
	return nil
}

func (x *interactionExchange) asked() *turn { return &x.turn }

// steps makes the steps of a reply: the thinking in one, which is signed and always there before text and
// calls, then texts and media, and a step for each call. A step holds the parts that it is made of.
func (x *interactionExchange) steps(r *reply) (steps [][]part) {
	if len(r.parts) == 0 {
		return nil
	}
	kind := func(p part) string {
		switch p.kind {
		case thinking, redacted, sketch:
			return "thought"
		case call:
			return "function_call"
		}
		return "model_output"
	}
	if first := r.parts[0]; kind(first) != "thought" && first.kind != speech {
		steps = append(steps, []part{{kind: redacted, key: newID("")}})
	}
	last := ""
	for _, p := range r.parts {
		if k := kind(p); k != last || k == "function_call" {
			steps = append(steps, nil)
			last = k
		}
		steps[len(steps)-1] = append(steps[len(steps)-1], p)
	}
	return steps
}

func imageContent(p part) object {
	return object{"type": "image", "mime_type": "image/png", "data": base64.StdEncoding.EncodeToString([]byte(p.text))}
}

func audioContent(data string) object {
	return object{
		"type": "audio", "mime_type": "audio/l16", "sample_rate": speechRate, "channels": 1,
		"data": base64.StdEncoding.EncodeToString([]byte(data)),
	}
}

// deltas makes the deltas of a part.
func (x *interactionExchange) deltas(p part) (deltas []object) {
	switch p.kind {
	case thinking:
		if !x.hidden {
			for _, paragraph := range paragraphs(p.text) {
				deltas = append(deltas, object{"type": "thought_summary", "content": object{"type": "text", "text": paragraph}})
			}
		}
	case sketch:
		if !x.hidden {
			deltas = append(deltas, object{"type": "thought_summary", "content": imageContent(p)})
		}
	case text, refusal:
		for _, piece := range pieces(p.text) {
			deltas = append(deltas, object{"type": "text", "text": piece})
		}
	case painting:
		deltas = append(deltas, imageContent(p))
	case speech:
		for chunk := range slices.Chunk([]byte(p.text), speechChunk) {
			deltas = append(deltas, audioContent(string(chunk)))
		}
	case call:
		for _, piece := range pieces(p.text) {
			deltas = append(deltas, object{"type": "arguments_delta", "arguments": piece})
		}
	}
	return deltas
}

func (x *interactionExchange) stream(s *stream, r *reply) {
	event := func(kind string, fields object) {
		fields["event_type"] = kind
		s.send(kind, fields)
	}
	event("interaction.created", object{"interaction": object{"id": x.id, "status": "in_progress", "object": "interaction", "model": x.model}})
	event("interaction.status_update", object{"interaction_id": x.id, "status": "in_progress"})
	for index, parts := range x.steps(r) {
		first := parts[0]
		open := object{"type": "model_output"}
		switch first.kind {
		case call:
			open = object{"type": "function_call", "id": first.key, "name": first.name, "arguments": object{}, "signature": ""}
		case thinking, redacted, sketch:
			open = object{"type": "thought"}
		}
		event("step.start", object{"index": index, "step": open})
		for _, p := range parts {
			for _, delta := range x.deltas(p) {
				if !s.next() {
					return
				}
				event("step.delta", object{"index": index, "delta": delta})
			}
		}
		if parts[len(parts)-1].partial && r.ending != complete {
			break
		}
		if open["type"] == "thought" {
			event("step.delta", object{"index": index, "delta": object{"type": "thought_signature", "signature": x.signature(thoughtSubject(r))}})
		}
		event("step.stop", object{"index": index})
	}
	switch r.ending {
	case cut:
		return
	case failed:
		code, message := "internal_error", "An internal error has occurred. Please retry."
		if f := r.fault(0); f.status != 0 {
			code = strings.ToLower(x.refusal(f, nil, nil).(object)["error"].(object)["status"].(string))
			message = f.message
		}
		event("error", object{"error": object{"code": code, "message": message}})
	default:
		event("interaction.completed", object{"interaction": x.interaction(r)})
	}
	s.event("done", []byte("[DONE]"))
}

func (x *interactionExchange) whole(r *reply) any {
	steps := []object{}
	for _, parts := range x.steps(r) {
		first := parts[0]
		switch first.kind {
		case call:
			arguments := json.RawMessage(first.text)
			if first.partial {
				arguments = json.RawMessage("{}")
			}
			steps = append(steps, object{"type": "function_call", "id": first.key, "name": first.name, "arguments": arguments})
			continue
		case thinking, redacted, sketch:
			step := object{"type": "thought", "signature": x.signature(thoughtSubject(r))}
			var summary []object
			for _, p := range parts {
				for _, delta := range x.deltas(p) {
					summary = append(summary, delta["content"].(object))
				}
			}
			if summary != nil {
				step["summary"] = summary
			}
			steps = append(steps, step)
			continue
		}
		content := []object{}
		for _, p := range parts {
			switch p.kind {
			case painting:
				content = append(content, imageContent(p))
			case speech:
				content = append(content, audioContent(p.text))
			default:
				content = append(content, object{"type": "text", "text": p.text})
			}
		}
		steps = append(steps, object{"type": "model_output", "content": content})
	}
	body := x.interaction(r)
	body["steps"] = steps
	return body
}

// interaction makes an interaction object without its steps.
func (x *interactionExchange) interaction(r *reply) object {
	status := "completed"
	switch r.finish {
	case called:
		status = "requires_action"
	case lengthy:
		status = "incomplete"
	case filtered, forbidden, blocked:
		status = "failed"
	}
	now := x.Now().UTC().Format(time.RFC3339)
	output := r.usage.output - r.usage.thoughts
	return object{
		"id": x.id, "object": "interaction", "model": x.model, "status": status, "created": now, "updated": now, "service_tier": "standard",
		"usage": object{
			"total_tokens": r.usage.input + r.usage.output, "total_input_tokens": r.usage.input, "total_cached_tokens": r.usage.cached,
			"total_output_tokens": output, "total_thought_tokens": r.usage.thoughts, "total_tool_use_tokens": 0,
			"input_tokens_by_modality": []object{{"modality": "text", "tokens": r.usage.input}},
		},
	}
}
