package simulate

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

type contentRequest struct {
	Contents          []content
	SystemInstruction *content
	Tools             []struct {
		FunctionDeclarations []struct {
			Name                 string
			Parameters           json.RawMessage
			ParametersJSONSchema json.RawMessage `json:"parametersJsonSchema"`
		}
	}
	ToolConfig struct {
		FunctionCallingConfig struct {
			Mode                 string
			AllowedFunctionNames []string
		}
	}
	GenerationConfig struct {
		MaxOutputTokens    *int
		StopSequences      []string
		ResponseMimeType   string
		ResponseSchema     json.RawMessage
		ResponseJSONSchema json.RawMessage `json:"responseJsonSchema"`
		ResponseModalities []string
		ImageConfig        json.RawMessage
		ThinkingConfig     struct {
			IncludeThoughts *bool
			ThinkingBudget  *int
			ThinkingLevel   string
		}
	}
}

type content struct {
	Role  string
	Parts []contentPart
}

type contentPart struct {
	Text             *string
	Thought          bool
	ThoughtSignature *string
	InlineData       *struct{ MimeType, Data string }
	FileData         *struct{ MimeType, FileURI string }
	FunctionCall     *struct {
		ID, Name string
		Args     json.RawMessage
	}
	FunctionResponse *struct {
		ID, Name string
		Response json.RawMessage
		Parts    []contentPart
	}
	ExecutableCode      json.RawMessage
	CodeExecutionResult json.RawMessage
	ToolCall            json.RawMessage // of a tool that the API runs itself
	ToolResponse        json.RawMessage

	at       string // where it stands in the request
	position int    // of the content in the request, from 1
}

// contentExchange is one request of generateContent or streamGenerateContent.
type contentExchange struct {
	google
	turn
	id     string
	events bool // the stream is one of events, not a JSON array
	hidden bool // thoughts are not to be shown
}

func (g google) readContent(body []byte, r *http.Request, model, method string) (exchange, *fault) {
	var request contentRequest
	if f := decodeProto(body, "GenerateContentRequest", &request); f != nil {
		return nil, f
	}
	x := &contentExchange{
		google: g, id: newID(""), events: r.URL.Query().Get("alt") == "sse",
		turn: turn{model: model, streamed: method == "streamGenerateContent", rich: true},
	}
	if f := x.readRequest(&request); f != nil {
		return nil, f
	}
	return x, nil
}

var googleToolName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}$`)

func (x *contentExchange) readRequest(request *contentRequest) *fault {
	t := &x.turn
	config := &request.GenerationConfig
	if config.MaxOutputTokens != nil {
		if t.limit = *config.MaxOutputTokens; t.limit < 1 {
			return argument("max_output_tokens must be positive.")
		}
	}
	t.stops = config.StopSequences
	thinking := &config.ThinkingConfig
	t.effort = strings.ToLower(thinking.ThinkingLevel)
	t.think = thinking.IncludeThoughts != nil && *thinking.IncludeThoughts
	x.hidden = thinking.IncludeThoughts != nil && !t.think
	switch {
	case !slices.Contains([]string{"", "minimal", "low", "medium", "high", "thinking_level_unspecified"}, t.effort):
		return argument("Invalid value at 'generation_config.thinking_config.thinking_level' "+
			"(type.googleapis.com/google.ai.generativelanguage.v1beta.ThinkingConfig.ThinkingLevel), %q", clip(thinking.ThinkingLevel, 100))
	case t.effort != "" && thinking.ThinkingBudget != nil:
		return argument("You can only set only one of thinking budget and thinking level.")
	}
	switch format := config.ResponseMimeType; {
	case format == "application/json":
		t.json, t.schema = true, parseSchema(config.ResponseSchema)
		if t.schema == nil {
			t.schema = parseSchema(config.ResponseJSONSchema)
		}
	case format != "" && format != "text/plain":
		return argument("* GenerateContentRequest.generation_config.response_mime_type: allowed mimetypes are "+
			"`text/plain`, `application/json`, but got %q", clip(format, 100))
	case config.ResponseSchema != nil || config.ResponseJSONSchema != nil:
		return argument("Function calling config or a response schema is set without response_mime_type 'application/json'")
	}
	t.speak = slices.Contains(config.ResponseModalities, "AUDIO")
	t.paint = slices.Contains(config.ResponseModalities, "IMAGE") || config.ImageConfig != nil
	if speaks(t.model) {
		switch {
		case !t.speak:
			return argument("The requested combination of response modalities (TEXT) is not supported by the model. models/%s "+
				"accepts the following combination of response modalities: * AUDIO", clip(t.model, 100))
		case request.SystemInstruction != nil:
			return argument("Developer instruction is not enabled for models/%s", clip(t.model, 100))
		case len(request.Tools) > 0:
			return argument("Function calling is not enabled for models/%s", clip(t.model, 100))
		}
	}

	for i, group := range request.Tools {
		for k, function := range group.FunctionDeclarations {
			at := fmt.Sprintf("GenerateContentRequest.tools[%d].function_declarations[%d]", i, k)
			schema := function.Parameters
			if schema == nil {
				schema = function.ParametersJSONSchema
			}
			switch parsed, _ := parseSchema(schema).(map[string]any); {
			case !googleToolName.MatchString(function.Name):
				return argument("* %s.name: [FIELD_INVALID] Invalid function name. It must start with a letter or an underscore and "+
					"hold letters, digits, underscores, dots, colons and dashes only, with a maximum length of 128.", at)
			case function.Parameters != nil && function.ParametersJSONSchema != nil:
				return argument("* %s: parameters and parameters_json_schema are mutually exclusive.", at)
			case schema != nil && typeOf(parsed) != "object":
				return argument("* %s.parameters: functionDeclaration parameters schema should be of type OBJECT.", at)
			case slices.ContainsFunc(t.tools, func(o tool) bool { return o.name == function.Name }):
				return argument("Duplicate function declaration found: %s", function.Name)
			}
			t.offer(function.Name, schema)
		}
	}
	choice := request.ToolConfig.FunctionCallingConfig
	switch mode := strings.ToUpper(choice.Mode); mode {
	case "", "MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED":
		t.never, t.must = mode == "NONE", mode == "ANY"
		if len(choice.AllowedFunctionNames) == 0 {
			break
		}
		if mode != "ANY" && mode != "VALIDATED" {
			return argument("tool_config.function_calling_config.allowed_function_names: can only be set when the mode is ANY or VALIDATED.")
		}
		t.only = map[string]bool{}
		for _, name := range choice.AllowedFunctionNames {
			t.only[name] = true
		}
		if t.checkChoice() != nil {
			return argument("tool_config.function_calling_config.allowed_function_names: a name is not one of the function declarations.")
		}
	default:
		return argument("Invalid value at 'tool_config.function_calling_config.mode' "+
			"(type.googleapis.com/google.ai.generativelanguage.v1beta.FunctionCallingConfig.Mode), %q", clip(choice.Mode, 100))
	}

	if request.SystemInstruction != nil {
		for i, part := range request.SystemInstruction.Parts {
			if part.Text == nil {
				return argument("* GenerateContentRequest.system_instruction.parts[%d]: only text is possible", i)
			}
			t.rule(*part.Text)
		}
	}
	if len(request.Contents) == 0 {
		return argument("* GenerateContentRequest.contents: contents is not specified")
	}
	return x.readContents(request.Contents)
}

// readContents reads the history. Contents of one side that follow each other are one turn.
func (x *contentExchange) readContents(all []content) *fault {
	type side struct {
		model bool
		parts []contentPart
	}
	var sides []side
	current := 0 // the turn of the user that is being answered
	for i, c := range all {
		at := fmt.Sprintf("contents[%d]", i)
		if c.Role != "" && c.Role != "user" && c.Role != "model" && c.Role != "function" {
			return argument("Please use a valid role: user, model.")
		}
		if len(c.Parts) == 0 {
			return argument("* GenerateContentRequest.%s.parts: contents.parts must not be empty.", at)
		}
		model := c.Role == "model"
		if len(sides) == 0 || sides[len(sides)-1].model != model {
			sides = append(sides, side{model: model})
		}
		responses := 0
		for k := range c.Parts {
			c.Parts[k].at, c.Parts[k].position = fmt.Sprintf("%s.parts[%d]", at, k), i+1
			if c.Parts[k].FunctionResponse != nil {
				responses++
			}
		}
		switch {
		case model:
		case responses == 0:
			current = len(sides) - 1
		case responses < len(c.Parts) && x.account != nil:
			return responseCount()
		}
		last := &sides[len(sides)-1]
		last.parts = append(last.parts, c.Parts...)
	}

	var calls []contentPart // of the turn before, without an answer
	for i, side := range sides {
		var f *fault
		if side.model {
			if calls, f = x.readModel(side.parts, i > current); f != nil {
				return f
			}
			if len(calls) > 0 && i == 0 {
				return argument("Please ensure that function call turn comes immediately after a user turn or after a function " +
					"response turn.")
			}
			continue
		}
		if f = x.readUser(side.parts, calls); f != nil {
			return f
		}
		calls = nil
	}
	if len(calls) > 0 {
		return responseCount()
	}
	return nil
}

func responseCount() *fault {
	return argument("Please ensure that the number of function response parts is equal to the number of function call parts " +
		"of the function call turn.")
}

// readModel reads a turn of the model and returns its calls. Of the current turn, the first call must be signed.
func (x *contentExchange) readModel(parts []contentPart, current bool) (calls []contentPart, f *fault) {
	x.spoke()
	for i, p := range parts {
		signed := p.ThoughtSignature != nil && *p.ThoughtSignature != ""
		if signed {
			if f := x.checkSignature(*p.ThoughtSignature, p.at+".thought_signature", signedSubjects(parts, i)); f != nil {
				return nil, f
			}
		}
		switch {
		case p.FunctionCall != nil:
			call := p.FunctionCall
			switch {
			case call.Name == "":
				return nil, argument("* GenerateContentRequest.%s.function_call.name: Name cannot be empty.", p.at)
			case current && len(calls) == 0 && !signed && x.signs():
				return nil, x.unsigned(call.Name, p.position)
			}
			x.say("call", call.ID+call.Name+string(call.Args))
			calls = append(calls, p)
		case p.InlineData != nil:
			if _, ok := decodeBytes(p.InlineData.Data); !ok {
				return nil, argument("Invalid value at '%s.inline_data.data' (TYPE_BYTES), Base64 decoding failed", p.at)
			}
			x.say("picture", p.InlineData.Data)
		case p.Text != nil:
			x.say("model", *p.Text)
		case p.FunctionResponse != nil:
			return nil, argument("Please ensure that function response turn comes immediately after a function call turn.")
		case p.FileData == nil && p.ExecutableCode == nil && p.CodeExecutionResult == nil && p.ToolCall == nil && p.ToolResponse == nil:
			return nil, noData(p.at)
		}
	}
	return calls, nil
}

// signedSubjects yields what the signature of a part may be about: the part, and of texts the whole text that ends with
// it, which may come back in pieces. That of a thought is about what follows.
func signedSubjects(parts []contentPart, at int) iter.Seq[string] {
	return func(yield func(string) bool) {
		p := parts[at]
		switch {
		case p.Text == nil || p.Thought:
			if !yield(p.subject()) {
				return
			}
		default:
			begin := at
			for begin > 0 && parts[begin-1].Text != nil && !parts[begin-1].Thought {
				begin--
			}
			_ = yield(p.subject()) && yield(wholeText(parts[begin:at+1]))
			return
		}
		for i := at + 1; p.Thought && i < len(parts); i++ {
			subject := parts[i].subject()
			if begin := i; parts[i].Text != nil && !parts[i].Thought {
				for i+1 < len(parts) && parts[i+1].Text != nil && !parts[i+1].Thought {
					i++
				}
				subject = wholeText(parts[begin : i+1])
			}
			if !parts[i].Thought && !yield(subject) {
				return
			}
		}
	}
}

func wholeText(parts []contentPart) string {
	var text strings.Builder
	for _, p := range parts {
		text.WriteString(*p.Text)
	}
	return textSubject(text.String())
}

// subject is what a signature on the part is about.
func (p contentPart) subject() string {
	switch {
	case p.FunctionCall != nil:
		return callSubject(p.FunctionCall.Name, p.FunctionCall.Args)
	case p.InlineData != nil:
		raw, _ := decodeBytes(p.InlineData.Data)
		return mediaSubject(raw)
	case p.Text != nil:
		return textSubject(*p.Text)
	}
	return ""
}

// signs reports whether calls of the model must be signed.
func (x *contentExchange) signs() bool {
	return !strings.HasPrefix(x.model, "gemini-1") && !strings.HasPrefix(x.model, "gemini-2")
}

func (x *contentExchange) unsigned(name string, position int) *fault {
	if x.account != nil {
		return argument("Unable to submit request because function call `%s` in the %d. content block is missing a "+
			"`thought_signature`.", clip(name, 100), position)
	}
	return argument("Function call is missing a thought_signature in functionCall parts. This is required for tools to work "+
		"correctly, and missing thought_signature may lead to degraded model performance. Additional data, function call "+
		"`default_api:%s` , position %d.", clip(name, 100), position)
}

func noData(at string) *fault {
	return argument("* GenerateContentRequest.%s.data: required oneof field 'data' must have one initialized field", at)
}

// readUser reads a turn of the user, which answers all the calls of the turn before.
func (x *contentExchange) readUser(parts, calls []contentPart) *fault {
	spoken, answered := false, 0
	open := slices.Clone(calls)
	for _, p := range parts {
		switch {
		case p.FunctionResponse != nil:
			response := p.FunctionResponse
			answered++
			match := slices.IndexFunc(open, func(c contentPart) bool {
				call := c.FunctionCall
				return call.Name == response.Name && (response.ID == "" || call.ID == "" || response.ID == call.ID)
			})
			switch {
			case response.Name == "":
				return argument("* GenerateContentRequest.%s.function_response.name: Name cannot be empty.", p.at)
			case len(calls) == 0:
				return argument("Please ensure that function response turn comes immediately after a function call turn.")
			case answered > len(calls):
				return responseCount()
			case match < 0:
				return argument("%s.function_response: `%s` is the response to none of the function calls of the function call turn.",
					p.at, clip(response.Name, 100))
			}
			open = slices.Delete(open, match, match+1)
			text, failed := readFunctionResult(response.Response)
			x.results = append(x.results, result{name: response.Name, text: text, failed: failed})
			x.say("result", response.ID+response.Name+string(response.Response))
			for k, inner := range response.Parts {
				if inner.InlineData != nil {
					if f := x.readMedia(inner.InlineData.MimeType, inner.InlineData.Data, fmt.Sprintf("%s.function_response.parts[%d].inline_data.data", p.at, k)); f != nil {
						return f
					}
				}
			}
		case p.FunctionCall != nil:
			return argument("Please ensure that function call turn comes immediately after a user turn or after a function " +
				"response turn.")
		case p.Text != nil:
			spoken = true
			x.hear(*p.Text)
		case p.InlineData != nil:
			spoken = true
			if f := x.readMedia(p.InlineData.MimeType, p.InlineData.Data, p.at+".inline_data.data"); f != nil {
				return f
			}
		case p.FileData != nil:
			spoken = true
			x.say("file", p.FileData.FileURI)
		default:
			return noData(p.at)
		}
	}
	if len(open) > 0 {
		return responseCount()
	}
	if spoken {
		x.turns++
	}
	return nil
}

func (x *contentExchange) asked() *turn { return &x.turn }

// chunk makes a response with some parts; done is its finish reason.
func (x *contentExchange) chunk(r *reply, parts []object, done string) object {
	candidate := object{"index": 0, "content": object{"role": "model"}}
	if len(parts) > 0 {
		candidate["content"] = object{"role": "model", "parts": parts}
	}
	usage := object{
		"promptTokenCount": r.usage.input, "totalTokenCount": r.usage.input,
		"promptTokensDetails": []object{{"modality": "TEXT", "tokenCount": r.usage.input}},
	}
	body := object{"candidates": []object{candidate}, "modelVersion": x.model, "responseId": x.id}
	switch done {
	case "":
		if x.account != nil {
			usage = object{} // with nothing but what is added below
		}
	case "SAFETY":
		candidate["content"] = object{}
		candidate["safetyRatings"] = []object{
			{"category": "HARM_CATEGORY_DANGEROUS_CONTENT", "probability": "HIGH", "blocked": true},
			{"category": "HARM_CATEGORY_HARASSMENT", "probability": "NEGLIGIBLE"},
		}
	case "UNEXPECTED_TOOL_CALL":
		candidate["content"] = object{}
		candidate["finishMessage"] = "The model tried to call a function although none may be called."
	case "PROHIBITED_CONTENT":
		delete(body, "candidates")
		body["promptFeedback"] = object{"blockReason": done}
	}
	if done != "" {
		candidate["finishReason"] = done
		usage["totalTokenCount"] = r.usage.input + r.usage.output
		if n := r.usage.output - r.usage.thoughts; n > 0 {
			usage["candidatesTokenCount"] = n
		}
		if r.usage.thoughts > 0 {
			usage["thoughtsTokenCount"] = r.usage.thoughts
		}
		if r.usage.cached > 0 {
			usage["cachedContentTokenCount"] = r.usage.cached
		}
	}
	if x.account != nil {
		usage["trafficType"] = "ON_DEMAND"
		body["createTime"] = x.Now().UTC().Format(time.RFC3339Nano)
	}
	body["usageMetadata"] = usage
	return body
}

func contentFinish(r *reply) string {
	switch r.finish {
	case lengthy:
		return "MAX_TOKENS"
	case filtered:
		return "SAFETY"
	case forbidden:
		return "UNEXPECTED_TOOL_CALL"
	case blocked:
		return "PROHIBITED_CONTENT"
	default:
		return "STOP"
	}
}

func inlineData(mimeType, data string) object {
	return object{"mimeType": mimeType, "data": base64.StdEncoding.EncodeToString([]byte(data))}
}

const contentSpeech = "audio/L16;codec=pcm;rate=24000"

// part makes the part of a reply, whole as far as it goes, and nil for what is not shown. The signature is left to the
// caller: it stands on pictures, on the first call, and on text at its end.
func (x *contentExchange) part(p part) object {
	switch p.kind {
	case thinking:
		if !x.hidden {
			return object{"text": p.text, "thought": true}
		}
	case sketch:
		if !x.hidden {
			return object{"inlineData": inlineData("image/png", p.text), "thought": true, "thoughtSignature": x.signature(subjectOf(p))}
		}
	case painting:
		return object{"inlineData": inlineData("image/png", p.text), "thoughtSignature": x.signature(subjectOf(p))}
	case speech:
		return object{"inlineData": inlineData(contentSpeech, p.text)}
	case text, refusal:
		return object{"text": p.text}
	case call:
		if !p.partial { // calls come whole or not at all
			return object{"functionCall": object{"name": p.name, "args": json.RawMessage(p.text)}}
		}
	}
	return nil
}

func (x *contentExchange) stream(s *stream, r *reply) {
	separator := "["
	if x.events {
		s.write = func(frame *bytes.Buffer, _ string, data []byte) {
			frame.WriteString("data: ")
			frame.Write(data)
			frame.WriteString("\r\n\r\n")
		}
	} else {
		s.w.Header().Set("Content-Type", "application/json; charset=UTF-8")
		s.write = func(frame *bytes.Buffer, _ string, data []byte) {
			frame.WriteString(separator)
			frame.Write(data)
			frame.WriteByte('\n')
			separator = ",\r\n"
		}
	}
	closing, called := object{"text": ""}, false
	for _, p := range r.parts {
		var fragments []object
		switch p.kind {
		case thinking, text, refusal:
			split := pieces
			if p.kind == thinking {
				split = paragraphs
			}
			for _, piece := range split(p.text) {
				fragments = append(fragments, x.part(part{kind: p.kind, text: piece}))
			}
		case speech:
			for chunk := range slices.Chunk([]byte(p.text), speechChunk) {
				fragments = append(fragments, x.part(part{kind: speech, text: string(chunk)}))
			}
		default:
			fragments = append(fragments, x.part(p))
		}
		delete(closing, "thoughtSignature")
		if p.kind == text || p.kind == refusal { // is signed at its end, when that is the end of the answer
			closing["thoughtSignature"] = x.signature(subjectOf(p))
		}
		for _, fragment := range fragments {
			if fragment == nil {
				continue
			}
			if !s.next() {
				return
			}
			if p.kind == call && !called {
				fragment["thoughtSignature"] = x.signature(subjectOf(p))
				called = true
			}
			s.send("", x.chunk(r, []object{fragment}, ""))
		}
	}
	switch r.ending {
	case cut:
		return
	case failed:
		s.send("", x.refusal(r.fault(http.StatusInternalServerError), nil, nil))
	default:
		var last []object
		if len(r.parts) > 0 {
			last = []object{closing}
		}
		s.send("", x.chunk(r, last, contentFinish(r)))
	}
	if !x.events {
		s.frame.Reset()
		s.frame.WriteString("]\n")
		s.flush()
	}
}

func (x *contentExchange) whole(r *reply) any {
	var parts []object
	called := false
	for _, p := range r.parts {
		shown := x.part(p)
		if shown == nil {
			continue
		}
		if p.kind == text || p.kind == refusal || p.kind == call && !called {
			shown["thoughtSignature"] = x.signature(subjectOf(p))
		}
		called = called || p.kind == call
		parts = append(parts, shown)
	}
	return x.chunk(r, parts, contentFinish(r))
}
