package simulate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"
)

// chat is Chat Completions.
type chat struct{ openai }

type chatRequest struct {
	Model, User   string
	Messages      []json.RawMessage
	Stream        bool
	StreamOptions *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	MaxTokens           *int `json:"max_tokens"`
	MaxCompletionTokens *int `json:"max_completion_tokens"`
	Stop                json.RawMessage
	Tools               []struct {
		Type     string
		Function struct {
			Name       string
			Parameters json.RawMessage
		}
	}
	ToolChoice        json.RawMessage `json:"tool_choice"`
	ParallelToolCalls *bool           `json:"parallel_tool_calls"`
	ReasoningEffort   string          `json:"reasoning_effort"`
	Reasoning         struct{ Effort string }
	Thinking          struct{ Type string }
	Template          struct {
		EnableThinking *bool `json:"enable_thinking"`
		Thinking       *bool
	} `json:"chat_template_kwargs"`
	ResponseFormat struct {
		Type       string
		JSONSchema struct{ Schema json.RawMessage } `json:"json_schema"`
	} `json:"response_format"`
}

type chatMessage struct {
	Role      string
	Content   json.RawMessage
	Refusal   string
	ToolCalls []struct {
		ID       string
		Type     string
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
	ToolCallID       string  `json:"tool_call_id"`
	ReasoningContent *string `json:"reasoning_content"`
	Reasoning        *string
}

type chatPart struct {
	Type     string
	Text     string
	Refusal  string
	ImageURL struct{ URL string }  `json:"image_url"`
	Audio    struct{ Data string } `json:"input_audio"`
	File     struct {
		Filename string
		FileData string `json:"file_data"`
	}
}

// chatExchange is one request of Chat Completions.
type chatExchange struct {
	chat
	turn
	id           string
	includeUsage bool
}

func (c chat) read(body []byte, _ *http.Request) (exchange, *fault) {
	var request chatRequest
	if f := decode(body, &request, ""); f != nil {
		return nil, f
	}
	x := &chatExchange{chat: c, id: newID("chatcmpl-"), turn: turn{model: request.Model, streamed: request.Stream}}
	t := &x.turn
	switch {
	case request.Model == "":
		return nil, bad("", "", "you must provide a model parameter")
	case !c.serves(request.Model):
		return nil, c.unknownModel(request.Model)
	case utf8.RuneCountInString(request.User) > 64:
		return nil, longUser(request.User)
	case request.Messages == nil:
		return nil, missing("messages")
	case len(request.Messages) == 0:
		return nil, bad("messages", "empty_array", "Invalid 'messages': empty array. Expected an array with minimum "+
			"length 1, but got an empty array instead.")
	case request.StreamOptions != nil && !request.Stream:
		return nil, bad("stream_options", "", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	}
	x.includeUsage = x.AlwaysUsage || request.StreamOptions != nil && request.StreamOptions.IncludeUsage
	if limit := cmp.Or(request.MaxCompletionTokens, request.MaxTokens); limit != nil {
		if t.limit = *limit; t.limit < 1 {
			return nil, bad("max_completion_tokens", "integer_below_min_value", "Invalid 'max_completion_tokens': integer "+
				"below minimum value. Expected a value >= 1, but got %d instead.", t.limit)
		}
	}
	t.stops = readStops(request.Stop)
	t.oneCall = request.ParallelToolCalls != nil && !*request.ParallelToolCalls
	t.effort = cmp.Or(request.ReasoningEffort, request.Reasoning.Effort, request.Thinking.Type)
	if on := cmp.Or(request.Template.EnableThinking, request.Template.Thinking); on != nil {
		t.effort = cmp.Or(t.effort, map[bool]string{true: "enabled", false: "disabled"}[*on])
	}
	if t.effort != "" {
		t.think = t.effort != "none" && t.effort != "disabled" && request.Thinking.Type != "disabled"
	}
	if format := request.ResponseFormat; format.Type == "json_object" || format.Type == "json_schema" {
		t.json, t.schema = true, parseSchema(format.JSONSchema.Schema)
	}

	for i, tool := range request.Tools {
		if tool.Type != "function" {
			return nil, invalidValue(fmt.Sprintf("tools[%d].type", i), tool.Type, "function")
		}
		if f := checkToolName(tool.Function.Name, fmt.Sprintf("tools[%d].function.name", i)); f != nil {
			return nil, f
		}
		t.offer(tool.Function.Name, tool.Function.Parameters)
	}
	if f := t.choose(request.ToolChoice); f != nil {
		return nil, f
	}
	if f := x.readMessages(request.Messages); f != nil {
		return nil, f
	}
	return x, nil
}

// readMessages reads the history and checks that calls and their answers belong together.
func (x *chatExchange) readMessages(messages []json.RawMessage) *fault {
	t := &x.turn
	open := map[string]string{} // the calls of the last assistant message that have no answer: id to name
	var unanswered []string     // their ids, in order
	answers := map[string]int{} // the messages that answer those calls, by id
	checkAnswered := func(i int) *fault {
		var ids []string
		for _, id := range unanswered {
			if _, ok := open[id]; ok {
				ids = append(ids, id)
			}
		}
		if len(ids) == 0 {
			return nil
		}
		return bad(fmt.Sprintf("messages.[%d].role", i), "", "An assistant message with 'tool_calls' must be followed by "+
			"tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: %s",
			clip(strings.Join(ids, ", "), 1000))
	}
	reasoned := false // a message of the model came back with its reasoning

	for i, raw := range messages {
		at := fmt.Sprintf("messages[%d]", i)
		var m chatMessage
		if f := decode(raw, &m, at); f != nil {
			return f
		}
		if m.Role != "tool" {
			if f := checkAnswered(i); f != nil {
				return f
			}
			clear(open)
			clear(answers)
			unanswered = nil
		}
		empty := len(m.Content) == 0 || string(m.Content) == "null"
		hasReasoning := m.ReasoningContent != nil && x.reasoningField() == "reasoning_content" ||
			m.Reasoning != nil && x.reasoningField() == "reasoning"
		switch m.Role {
		case "system", "developer", "user":
			if empty {
				return nullContent(i)
			}
			if m.Role == "user" {
				t.turns++
			}
		case "assistant":
			if empty && len(m.ToolCalls) == 0 && m.Refusal == "" && m.ReasoningContent == nil && m.Reasoning == nil {
				return nullContent(i)
			}
			t.spoke()
			reasoned = reasoned || hasReasoning
			for k, c := range m.ToolCalls {
				path := fmt.Sprintf("%s.tool_calls[%d]", at, k)
				switch {
				case c.ID == "":
					return missing(path + ".id")
				case c.Type != "function":
					return invalidValue(path+".type", c.Type, "function")
				case c.Function.Name == "":
					return missing(path + ".function.name")
				case x.Strict && !hasReasoning && (reasoned || x.issuedWithThought(c.ID)):
					return bad(at, "invalid_request_error", "The `%s` in the thinking mode must be passed back to the API.",
						x.reasoningField())
				}
				open[c.ID] = c.Function.Name
				unanswered = append(unanswered, c.ID)
				t.say("call", c.ID+c.Function.Name+c.Function.Arguments)
			}
		case "tool":
			name, ok := open[m.ToolCallID]
			if other, twice := answers[m.ToolCallID]; twice {
				return bad(fmt.Sprintf("messages.[%d].tool_call_id", i), "", "Invalid parameter: Duplicate value for "+
					"'tool_call_id' of '%s', in messages[%d] and messages[%d].", clip(m.ToolCallID, 100), other, i)
			}
			if !ok {
				return bad(fmt.Sprintf("messages.[%d].role", i), "", "Invalid parameter: messages with role 'tool' must be a "+
					"response to a preceeding message with 'tool_calls'.")
			}
			if empty {
				return nullContent(i)
			}
			delete(open, m.ToolCallID)
			answers[m.ToolCallID] = i
			t.results = append(t.results, result{name: name})
		case "":
			return missing(at + ".role")
		default:
			return invalidValue(at+".role", m.Role, "system", "assistant", "user", "tool", "developer")
		}
		if !empty {
			if f := x.readContent(m.Role, m.Content, at+".content"); f != nil {
				return f
			}
		}
	}
	return checkAnswered(len(messages))
}

func nullContent(i int) *fault {
	return bad(fmt.Sprintf("messages.[%d].content", i), "invalid_type",
		"Invalid value for 'content': expected a string, got null.")
}

// readContent reads a content field: a text or a list of parts.
func (x *chatExchange) readContent(role string, raw json.RawMessage, at string) *fault {
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
	if raw[0] == '"' && json.Unmarshal(raw, &text) == nil {
		take(text)
		return nil
	}
	if raw[0] != '[' {
		kind := map[byte]string{'{': "an object", 't': "a boolean", 'f': "a boolean"}[raw[0]]
		return bad(at, "invalid_type", "Invalid type for '%s': expected one of a string or array of objects, but got %s "+
			"instead.", at, cmp.Or(kind, "an integer"))
	}
	var parts []chatPart
	if f := decode(raw, &parts, at); f != nil {
		return f
	}
	var texts []string
	for k, p := range parts {
		path := fmt.Sprintf("%s[%d]", at, k)
		switch {
		case p.Type == "text":
			texts = append(texts, p.Text)
		case p.Type == "refusal" && role == "assistant":
			texts = append(texts, p.Refusal)
		case p.Type == "image_url" && role == "user":
			picture, ok := readPicture(p.ImageURL.URL)
			if !ok || p.ImageURL.URL == "" {
				return bad(path+".image_url.url", "invalid_image_url", "Invalid '%s.image_url.url'. Expected an http(s) URL "+
					"or a base64-encoded data URL with an image MIME type.", path)
			}
			t.see(picture, p.ImageURL.URL)
		case p.Type == "input_audio" && role == "user":
			t.say("audio", p.Audio.Data)
		case p.Type == "file" && role == "user":
			t.say("file", p.File.Filename+p.File.FileData)
		case role == "user":
			return invalidValue(path+".type", p.Type, "text", "image_url", "input_audio", "file")
		default:
			return invalidValue(path+".type", p.Type, "text")
		}
	}
	if len(texts) > 0 {
		take(strings.Join(texts, "\n"))
	}
	return nil
}

// reasoningField is the field of a message that holds the thinking.
func (c *core) reasoningField() string { return cmp.Or(c.ReasoningField, "reasoning_content") }

// callID names a call. The id tells whether thinking came with it, so that a strict provider sees its absence later.
func (c *core) callID(prefix string, p part, thought bool) string {
	if thought {
		return prefix + p.key + c.sealer.mark(p.key)
	}
	return prefix + p.key
}

// callIDs lists the ids of the calls of a reply with spaces between them.
func (c *core) callIDs(prefix string, r *reply) string {
	var ids []string
	for _, p := range r.parts {
		if p.kind == call {
			ids = append(ids, c.callID(prefix, p, r.thought()))
		}
	}
	return strings.Join(ids, " ")
}

// issuedWithThought reads what callID has written here: of the id of another provider it says no.
func (c *core) issuedWithThought(id string) bool {
	_, key, _ := strings.Cut(id, "_")
	key = strings.TrimPrefix(key, "01")
	at := max(len(key)-markSize, 0)
	return key[at:] == c.sealer.mark(key[:at])
}

func (x *chatExchange) asked() *turn { return &x.turn }

func (x *chatExchange) stream(s *stream, r *reply) {
	chunk := func(delta object, finish any) {
		body := x.object("chat.completion.chunk")
		body["choices"] = []object{{"index": 0, "delta": delta, "logprobs": nil, "finish_reason": finish}}
		if x.includeUsage {
			body["usage"] = nil
		}
		s.send("", body)
	}

	chunk(object{"role": "assistant", "content": ""}, nil)
	calls := 0
	for group := range r.groups() {
		if group[0].kind == call {
			for i, p := range group {
				chunk(object{"tool_calls": []object{{
					"index": calls + i, "id": x.callID("call_", p, r.thought()),
					"type": "function", "function": object{"name": p.name, "arguments": ""},
				}}}, nil)
			}
		}
		for i, piece := range fragments(group) {
			if !s.next() {
				return
			}
			switch group[0].kind {
			case thinking:
				chunk(object{x.reasoningField(): piece}, nil)
			case text:
				chunk(object{"content": piece}, nil)
			case refusal:
				chunk(object{"refusal": piece}, nil)
			case call:
				chunk(object{"tool_calls": []object{{"index": calls + i, "function": object{"arguments": piece}}}}, nil)
			}
		}
		if group[0].kind == call {
			calls += len(group)
		}
	}
	switch r.ending {
	case failed:
		s.send("", x.refusal(r.fault(http.StatusInternalServerError), nil, nil))
		return
	case cut:
		return
	}
	chunk(object{}, chatFinish(r))
	if x.includeUsage {
		body := x.object("chat.completion.chunk")
		body["choices"] = []object{}
		body["usage"] = chatUsage(r.usage)
		s.send("", body)
	}
	s.done()
}

func (x *chatExchange) whole(r *reply) any {
	message := object{"role": "assistant", "content": nil, "refusal": nil}
	var calls []object
	for _, p := range r.parts {
		switch p.kind {
		case thinking:
			message[x.reasoningField()] = p.text
		case text:
			message["content"] = p.text
		case refusal:
			message["refusal"] = p.text
		case call:
			calls = append(calls, object{
				"id": x.callID("call_", p, r.thought()), "type": "function",
				"function": object{"name": p.name, "arguments": p.text},
			})
		}
	}
	if calls != nil {
		message["tool_calls"] = calls
	}
	body := x.object("chat.completion")
	body["choices"] = []object{{"index": 0, "message": message, "logprobs": nil, "finish_reason": chatFinish(r)}}
	body["usage"] = chatUsage(r.usage)
	return body
}

func (x *chatExchange) object(kind string) object {
	return object{
		"id": x.id, "object": kind, "created": x.Now().Unix(), "model": x.model, "service_tier": "default",
		"system_fingerprint": "fp_simulated",
	}
}

func chatFinish(r *reply) string {
	switch r.finish {
	case called:
		return "tool_calls"
	case lengthy:
		return "length"
	case filtered:
		return "content_filter"
	default:
		return "stop"
	}
}

func chatUsage(u usage) object {
	return object{
		"prompt_tokens": u.input, "completion_tokens": u.output, "total_tokens": u.input + u.output,
		"prompt_tokens_details":     object{"cached_tokens": u.cached},
		"completion_tokens_details": object{"reasoning_tokens": u.thoughts},
	}
}
