package openaichat

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// Body is the body of POST /v1/chat/completions as a caller writes it. Request is the same as this module writes it to a
// provider.
type Body struct {
	Model             string
	Messages          []Turn
	Stream            bool
	IncludeUsage      bool // stream_options.include_usage
	MaxTokens         *int64
	Temperature       *float64
	TopP              *float64
	PresencePenalty   *float64
	FrequencyPenalty  *float64
	Seed              *int64
	Stop              []string
	Tools             []ToolSpec
	Functions         []ToolSpec // the older list
	ToolChoice        *ToolSelection
	FunctionCall      *ToolSelection // the older choice
	ParallelToolCalls *bool
	ResponseFormat    *ResponseFormat
	ReasoningEffort   string
	Verbosity         string
	ServiceTier       string
	User              string
	SafetyIdentifier  string
	PromptCacheKey    string
	Metadata          []byte // an object of strings
	AsksPictures      string // the path of what asks for pictures; empty: nothing does

	Unserved []string // the paths of what only OpenAI's own machinery serves
	Unknown  []string // fields
}

// Turn is a message of a caller.
type Turn struct {
	Role             string
	Parts            []TurnPart
	ToolCallID       string // of a tool's message
	Name             string // of a function's message; of others it is ignored
	ToolCalls        []TurnCall
	FunctionCall     *TurnCall // the older form, without an id
	ReasoningContent string
	Reasoning        string
	ReasoningDetails []ReasoningDetail
	Pictures         []TurnPart // of type image_url: data URLs of pictures that the model made
}

// TurnPart is a piece of content. Type says which fields count.
type TurnPart struct {
	Path     string
	Type     string // text, refusal, image_url, input_audio or file
	Text     string // of text and refusal
	Place    string // of image_url, input_audio and file: the path of the field that holds it
	URL      string // of image_url, and of a file instead of its bytes
	Detail   string // of image_url
	Data     []byte // of input_audio and file
	Format   string // of input_audio: wav or mp3
	Filename string // of file
	MimeType string // of file: what its data URL says
}

// TurnCall is a call that the model made.
type TurnCall struct {
	Path             string
	ID               string
	Name             string
	Arguments        string // of a function: as the caller has it
	Input            string // of a custom tool
	Custom           bool
	ThoughtSignature string // extra_content.google.thought_signature
}

// ToolSpec is a tool of a request.
type ToolSpec struct {
	Path        string
	Type        string // function or custom; any other is a hosted tool, of which nothing else is read
	Name        string
	NamePath    string
	Description string
	Parameters  []byte // a JSON Schema
	Strict      *bool
	Syntax      string // of a custom tool: of the grammar that the input must fit: lark, regex
	Definition  string // of a custom tool: the grammar; empty: any text
}

// ToolSelection says which tools may or must be called.
type ToolSelection struct {
	Path  string
	Mode  string     // none, auto or required
	Tools []ToolName // of which one must be called, or, when Listed, that alone may be called
	// Listed reports the type allowed_tools.
	Listed bool
}

// ToolName names a tool at its place.
type ToolName struct{ Path, Name string }

// ReadBody reads a body whose JSON has passed jsonscan.Check. The error is a *jsonscan.PathError.
func ReadBody(data []byte) (*Body, error) {
	b := &Body{}
	r := jsonscan.NewReader(data)
	var maxTokens, maxCompletionTokens *int64
	r.Fields(func(name string) {
		switch name {
		case "model":
			b.Model = r.String()
		case "messages":
			r.Elements(func() { b.Messages = append(b.Messages, readTurn(r)) })
		case "stream":
			b.Stream = isTrue(r.Bool())
		case "stream_options":
			r.Fields(func(name string) {
				if name == "include_usage" {
					b.IncludeUsage = isTrue(r.Bool())
				} else {
					r.Skip()
				}
			})
		case "max_completion_tokens":
			maxCompletionTokens = r.IntBetween(1, 1<<53)
		case "max_tokens":
			maxTokens = r.IntBetween(1, 1<<53)
		case "temperature":
			b.Temperature = r.FloatBetween(0, 2)
		case "top_p":
			b.TopP = r.FloatBetween(0, 1)
		case "presence_penalty":
			b.PresencePenalty = r.FloatBetween(-2, 2)
		case "frequency_penalty":
			b.FrequencyPenalty = r.FloatBetween(-2, 2)
		case "seed":
			b.Seed = r.Int()
		case "n":
			if n := r.Int(); n != nil && *n != 1 {
				r.Fail("one answer is given to a request: only 1 is supported")
			}
		case "stop":
			b.Stop = readStop(r)
		case "tools":
			r.Elements(func() { b.Tools = append(b.Tools, readTool(r)) })
		case "functions":
			r.Elements(func() {
				tool := ToolSpec{Path: r.Path(), Type: "function"}
				readFunction(r, &tool)
				b.Functions = append(b.Functions, tool)
			})
		case "tool_choice":
			b.ToolChoice = readToolChoice(r)
		case "function_call":
			b.FunctionCall = readFunctionChoice(r)
		case "parallel_tool_calls":
			b.ParallelToolCalls = r.Bool()
		case "response_format":
			b.ResponseFormat = readResponseFormat(r)
		case "reasoning_effort":
			b.ReasoningEffort = r.Word("none", "minimal", "low", "medium", "high", "xhigh", "max")
		case "verbosity":
			b.Verbosity = r.Word("low", "medium", "high")
		case "service_tier":
			b.ServiceTier = r.String() // each provider has words of its own
		case "user":
			b.User = r.String()
		case "safety_identifier":
			b.SafetyIdentifier = r.String()
		case "prompt_cache_key":
			b.PromptCacheKey = r.String()
		case "metadata":
			b.Metadata = readMetadata(r)
		case "modalities":
			r.Elements(func() {
				switch r.Word("text", "image", "audio") {
				case "image":
					b.AsksPictures = r.Path()
				case "audio":
					r.Fail("answers in sound are not given here")
				}
			})
		case "logprobs":
			if isTrue(r.Bool()) {
				r.Drop()
			}
		case "top_logprobs":
			if n := r.IntBetween(0, 20); n != nil && *n > 0 {
				r.Drop()
			}
		case "web_search_options": // which asks for a search when it is empty, too
			if r.Fields(func(string) { r.Skip() }) {
				r.Drop()
			}
		case "logit_bias", "prediction", "audio", "moderation", "prompt_cache_options":
			r.Leave('{')
		case "prompt_cache_retention":
			if r.Word("in_memory", "in-memory", "24h") == "24h" {
				r.Drop()
			}
		case "store": // for the provider's own pages
			_ = r.Bool()
		default:
			r.SkipUnknown()
		}
	})
	b.Unserved, b.Unknown = r.Dropped(), r.Unknown()
	b.MaxTokens = maxCompletionTokens
	if b.MaxTokens == nil {
		b.MaxTokens = maxTokens
	}
	switch {
	case b.Model == "":
		r.FailAt("model", "the name of a model is wanted")
	case len(b.Messages) == 0:
		r.FailAt("messages", "at least one message is wanted")
	}
	if err := r.End(); err != nil {
		return nil, err
	}
	return b, nil
}

func isTrue(b *bool) bool { return b != nil && *b }

// readStop reads a text or a list of at most four.
func readStop(r *jsonscan.Reader) (stop []string) {
	if r.Kind() != '[' {
		if text := r.String(); text != "" {
			stop = []string{text}
		}
		return stop
	}
	for _, text := range r.Strings() {
		if text != "" {
			stop = append(stop, text)
		}
	}
	if len(stop) > 4 {
		r.Fail("at most 4 texts are wanted")
	}
	return stop
}

// readMetadata reads an object of at most 16 strings.
func readMetadata(r *jsonscan.Reader) []byte {
	raw := r.Object()
	if raw == nil {
		return nil
	}
	pairs := 0
	values := jsonscan.NewReaderAt(raw, r.Path())
	values.Fields(func(name string) {
		pairs++
		if len(name) > 64 {
			values.Fail("a key of at most 64 characters is wanted")
		}
		if len([]rune(values.String())) > 512 {
			values.Fail("at most 512 characters are wanted")
		}
	})
	if pairs > 16 {
		values.Fail("at most 16 pairs are wanted")
	}
	if err, ok := values.End().(*jsonscan.PathError); ok {
		r.FailAt(err.Path, err.Message)
	}
	return raw
}

func readResponseFormat(r *jsonscan.Reader) *ResponseFormat {
	f := &ResponseFormat{}
	given := r.Fields(func(name string) {
		switch name {
		case "type":
			f.Type = r.Word("text", "json_object", "json_schema")
		case "json_schema":
			f.JSONSchema = &JSONSchema{}
			if !r.Fields(func(name string) {
				switch name {
				case "name":
					f.JSONSchema.Name = r.String()
				case "description":
					f.JSONSchema.Description = r.String()
				case "schema":
					f.JSONSchema.Schema = r.Object()
				case "strict":
					f.JSONSchema.Strict = r.Bool()
				default:
					r.Skip()
				}
			}) {
				f.JSONSchema = nil
			}
		default:
			r.Skip()
		}
	})
	switch {
	case !given:
		return nil
	case f.Type == "":
		r.FailField("type", "one of text, json_object, json_schema is wanted")
	case f.Type == "json_schema" && f.JSONSchema == nil:
		r.FailField("json_schema", "an object is wanted")
	}
	return f
}

func readTool(r *jsonscan.Reader) ToolSpec {
	tool := ToolSpec{Path: r.Path(), Type: r.Lookahead("type")}
	if tool.Type != "" && tool.Type != "function" && tool.Type != "custom" {
		r.Skip()
		return tool
	}
	read := false
	r.Fields(func(name string) {
		switch {
		case name == "function" && tool.Type != "custom":
			tool.Type = "function"
			readFunction(r, &tool)
			read = true
		case name == "custom" && tool.Type == "custom":
			r.Fields(func(name string) {
				switch name {
				case "name":
					tool.Name = r.String()
				case "description":
					tool.Description = r.String()
				case "format":
					r.Fields(func(name string) {
						if name == "grammar" {
							readGrammar(r, &tool)
						} else {
							r.Skip()
						}
					})
				default:
					r.Skip()
				}
			})
			if tool.Name == "" {
				r.FailField("name", "a tool needs a name")
			}
			tool.NamePath = r.Path() + ".name"
			read = true
		default:
			r.Skip()
		}
	})
	if !read {
		field := tool.Type
		if field == "" {
			field = "type"
		}
		r.FailField(field, "a tool says what it is: a function or a custom tool")
	}
	return tool
}

// readGrammar reads {syntax, definition}.
func readGrammar(r *jsonscan.Reader, tool *ToolSpec) {
	r.Fields(func(name string) {
		switch name {
		case "syntax":
			tool.Syntax = r.String()
		case "definition":
			tool.Definition = r.String()
		default:
			r.Skip()
		}
	})
}

// readFunction reads {name, description, parameters, strict}.
func readFunction(r *jsonscan.Reader, tool *ToolSpec) {
	r.Fields(func(name string) {
		switch name {
		case "name":
			tool.Name = r.String()
		case "description":
			tool.Description = r.String()
		case "parameters":
			tool.Parameters = r.Object()
		case "strict":
			tool.Strict = r.Bool()
		default:
			r.Skip()
		}
	})
	if tool.Name == "" {
		r.FailField("name", "a function needs a name")
	}
	tool.NamePath = r.Path() + ".name"
}

func readToolChoice(r *jsonscan.Reader) *ToolSelection {
	choice := &ToolSelection{Path: r.Path()}
	switch r.Kind() {
	case 'n':
		r.Skip()
		return nil
	case '{':
	default:
		choice.Mode = r.Word("none", "auto", "required")
		return choice
	}
	switch kind := r.Lookahead("type"); kind {
	case "function", "custom":
		choice.Mode, choice.Tools = "required", []ToolName{readToolName(r, kind)}
	case "allowed_tools":
		choice.Listed, choice.Tools = true, []ToolName{}
		r.Fields(func(name string) {
			if name != "allowed_tools" {
				r.Skip()
				return
			}
			r.Fields(func(name string) {
				switch name {
				case "mode":
					choice.Mode = r.Word("auto", "required")
				case "tools":
					r.Elements(func() {
						switch kind := r.Lookahead("type"); kind {
						case "function", "custom":
							choice.Tools = append(choice.Tools, readToolName(r, kind))
						default: // a hosted tool, which is not there
							r.Skip()
						}
					})
				default:
					r.Skip()
				}
			})
		})
		switch {
		case choice.Mode == "":
			r.FailField("allowed_tools.mode", "one of auto, required is wanted")
		case len(choice.Tools) == 0:
			r.FailField("allowed_tools.tools", "at least one function or custom tool is wanted")
		case len(choice.Tools) > 128:
			r.FailField("allowed_tools.tools", "at most 128 tools are wanted")
		}
	default:
		r.FailField("type", fmt.Sprintf("%.64q cannot be chosen, only function, custom and allowed_tools", kind))
		r.Skip()
	}
	return choice
}

// readToolName reads {type, function: {name}}, or with the field of another kind.
func readToolName(r *jsonscan.Reader, kind string) ToolName {
	tool := ToolName{Path: r.Path() + "." + kind + ".name"}
	r.Fields(func(name string) {
		switch name {
		case kind:
			r.Fields(func(name string) {
				if name == "name" {
					tool.Name = r.String()
				} else {
					r.Skip()
				}
			})
		case "name": // as Responses says it
			if text := r.String(); tool.Name == "" {
				tool.Name = text
			}
		default:
			r.Skip()
		}
	})
	if tool.Name == "" {
		r.FailAt(tool.Path, "the name of a tool is wanted")
	}
	return tool
}

func readFunctionChoice(r *jsonscan.Reader) *ToolSelection {
	choice := &ToolSelection{Path: r.Path()}
	switch r.Kind() {
	case 'n':
		r.Skip()
		return nil
	case '{':
	default:
		choice.Mode = r.Word("none", "auto")
		return choice
	}
	tool := ToolName{Path: r.Path() + ".name"}
	r.Fields(func(name string) {
		if name == "name" {
			tool.Name = r.String()
		} else {
			r.Skip()
		}
	})
	if tool.Name == "" {
		r.FailAt(tool.Path, "the name of a function is wanted")
	}
	choice.Mode, choice.Tools = "required", []ToolName{tool}
	return choice
}

// partTypes says what the content of a role may hold.
var partTypes = map[string][]string{
	"system":    {"text"},
	"developer": {"text"},
	"user":      {"text", "image_url", "input_audio", "file"},
	"assistant": {"text", "refusal"},
	"tool":      {"text", "image_url", "file"}, // the latter two are no part of the protocol, and sent all the same
	"function":  {"text"},
}

func readTurn(r *jsonscan.Reader) Turn {
	turn := Turn{Role: r.Lookahead("role")}
	allowed := partTypes[turn.Role]
	if r.Kind() == '{' && allowed == nil {
		r.FailField("role", "one of system, developer, user, assistant, tool, function is wanted")
		r.Skip()
		return turn
	}
	assistant := turn.Role == "assistant"
	var refusal *TurnPart
	if !r.Fields(func(name string) {
		switch {
		case name == "content":
			turn.Parts = readContent(r, turn.Role, allowed)
		case name == "tool_call_id" && turn.Role == "tool":
			turn.ToolCallID = r.String()
		case name == "name" && turn.Role == "function":
			turn.Name = r.String()
		case name == "refusal" && assistant:
			if text := r.String(); text != "" {
				refusal = &TurnPart{Path: r.Path(), Type: "refusal", Text: text}
			}
		case name == "tool_calls" && assistant:
			r.Elements(func() { turn.ToolCalls = append(turn.ToolCalls, readCall(r)) })
		case name == "function_call" && assistant:
			call := TurnCall{Path: r.Path()}
			if readFunctionCall(r, &call) {
				turn.FunctionCall = &call
			}
		case name == "reasoning_content" && assistant:
			turn.ReasoningContent = r.String()
		case name == "reasoning" && assistant:
			turn.Reasoning = r.String()
		case name == "reasoning_details" && assistant:
			turn.ReasoningDetails = readDetails(r)
		case name == "images" && assistant:
			turn.Pictures = readPictures(r)
		default:
			r.Skip()
		}
	}) {
		r.Fail("a message is wanted")
	}
	if refusal != nil {
		turn.Parts = append(turn.Parts, *refusal)
	}
	switch {
	case turn.Role == "tool" && turn.ToolCallID == "":
		r.FailField("tool_call_id", "the id of a call is wanted")
	case turn.Role == "function" && turn.Name == "":
		r.FailField("name", "the name of a function is wanted")
	}
	return turn
}

// readContent reads a text, or a list of parts.
func readContent(r *jsonscan.Reader, role string, allowed []string) (parts []TurnPart) {
	switch r.Kind() {
	case '"':
		return []TurnPart{{Path: r.Path(), Type: "text", Text: r.String()}}
	case '[':
		r.Elements(func() { parts = append(parts, readPart(r, role, allowed)) })
	case 'n':
		r.Skip()
	default:
		r.Fail("a string or a list of parts is wanted")
		r.Skip()
	}
	return parts
}

func readPart(r *jsonscan.Reader, role string, allowed []string) TurnPart {
	part := TurnPart{Path: r.Path(), Type: r.Lookahead("type")}
	known := false
	for _, name := range allowed {
		known = known || name == part.Type
	}
	if !known {
		r.FailField("type", fmt.Sprintf("%.64q is no part of a message of role %s, which holds %s", part.Type, role, strings.Join(allowed, ", ")))
		r.Skip()
		return part
	}
	given := false
	r.Fields(func(name string) {
		if name != part.Type {
			r.Skip()
			return
		}
		switch name {
		case "text", "refusal":
			given = r.Kind() == '"'
			part.Text = r.String()
		case "image_url":
			if r.Kind() == '"' { // as some clients write it
				part.URL, part.Place = r.String(), r.Path()
			} else {
				r.Fields(func(name string) {
					switch name {
					case "url":
						part.URL, part.Place = r.String(), r.Path()
					case "detail":
						part.Detail = r.Word("auto", "low", "high", "original")
					default:
						r.Skip()
					}
				})
			}
			if given = part.URL != ""; !given {
				r.FailField("url", "an http(s) or data URL is wanted")
			}
		case "input_audio":
			given = r.Fields(func(name string) {
				switch name {
				case "data":
					part.Data, part.Place = r.Base64(), r.Path()
				case "format":
					part.Format = r.Word("wav", "mp3")
				default:
					r.Skip()
				}
			})
			switch {
			case part.Format == "":
				r.FailField("format", "one of wav, mp3 is wanted")
			case len(part.Data) == 0:
				r.FailField("data", "base64 is wanted")
			}
		case "file":
			given = readFile(r, &part)
		}
	})
	if !given {
		r.FailField(part.Type, "a part of this type needs it")
	}
	return part
}

// readFile reads {filename, file_data}. What is no base64 and no data URL is a URL.
func readFile(r *jsonscan.Reader, part *TurnPart) bool {
	given := r.Fields(func(name string) {
		switch name {
		case "filename":
			part.Filename = r.String()
		case "file_id":
			if r.String() != "" {
				r.Fail("file ids of a provider are not known here: send the file's bytes as file_data")
			}
		case "file_data":
			text := r.String()
			part.Place = r.Path()
			if header, payload, ok := strings.Cut(text, ","); ok && strings.HasPrefix(header, "data:") {
				mime, rest, _ := strings.Cut(strings.TrimPrefix(header, "data:"), ";")
				if rest != "base64" && !strings.HasSuffix(rest, ";base64") {
					r.Fail("a data URL in base64 is wanted")
				}
				part.MimeType, text = strings.ToLower(mime), payload
			} else if strings.Contains(text, "://") {
				part.URL = text
				return
			}
			var ok bool
			if part.Data, ok = jsonscan.DecodeBase64(text); !ok {
				r.Fail("base64 is wanted")
			}
		default:
			r.Skip()
		}
	})
	if given && len(part.Data) == 0 && part.URL == "" {
		r.FailField("file_data", "the file's bytes are wanted, as a data URL or in base64, or its URL")
	}
	return given
}

func readCall(r *jsonscan.Reader) TurnCall {
	call := TurnCall{Path: r.Path()}
	kind := r.Lookahead("type")
	if kind == "" {
		kind = "function"
	}
	if kind != "function" && kind != "custom" {
		r.FailField("type", fmt.Sprintf("%.64q is no type of call; function and custom are", kind))
		r.Skip()
		return call
	}
	call.Custom = kind == "custom"
	given := false
	r.Fields(func(name string) {
		switch name {
		case "id":
			call.ID = r.String()
		case "extra_content":
			call.ThoughtSignature = readThoughtSignature(r)
		case kind:
			if call.Custom {
				given = r.Fields(func(name string) {
					switch name {
					case "name":
						call.Name = r.String()
					case "input":
						call.Input = r.String()
					default:
						r.Skip()
					}
				})
				if call.Name == "" {
					r.FailField("name", "the name of a tool is wanted")
				}
			} else {
				given = readFunctionCall(r, &call)
			}
		default:
			r.Skip()
		}
	})
	switch {
	case call.ID == "":
		r.FailField("id", "a call needs an id")
	case !given:
		r.FailField(kind, "an object is wanted")
	}
	return call
}

// readFunctionCall reads {name, arguments}.
func readFunctionCall(r *jsonscan.Reader, call *TurnCall) bool {
	given := r.Fields(func(name string) {
		switch name {
		case "name":
			call.Name = r.String()
		case "arguments":
			var whole bool
			var err error
			if call.Arguments, whole, err = jsonscan.Object(r.String()); err != nil {
				r.Fail("the text of a JSON object is wanted: " + err.Error())
			} else if !whole {
				r.Drop()
			}
		default:
			r.Skip()
		}
	})
	if given && call.Name == "" {
		r.FailField("name", "the name of a function is wanted")
	}
	if call.Arguments == "" {
		call.Arguments = "{}"
	}
	return given
}

// readThoughtSignature reads {google: {thought_signature}}, which is a vendor's and bent by nobody's schema.
func readThoughtSignature(r *jsonscan.Reader) (signature string) {
	vendorFields(r, func(name string) {
		if name != "google" {
			r.Skip()
			return
		}
		vendorFields(r, func(name string) {
			if name == "thought_signature" {
				signature = vendorString(r)
			} else {
				r.Skip()
			}
		})
	})
	return signature
}

// readDetails reads reasoning_details. What is no list of objects is nothing: a proof that is lost is no error.
func readDetails(r *jsonscan.Reader) (details []ReasoningDetail) {
	if r.Kind() != '[' {
		r.Skip()
		return nil
	}
	r.Elements(func() {
		var d ReasoningDetail
		vendorFields(r, func(name string) {
			switch name {
			case "type":
				d.Type = vendorString(r)
			case "id":
				d.ID = vendorString(r)
			case "format":
				d.Format = vendorString(r)
			case "index":
				if n, err := strconv.ParseInt(string(r.Raw()), 10, 64); err == nil {
					d.Index = &n
				}
			case "text":
				d.Text = vendorString(r)
			case "summary":
				d.Summary = vendorString(r)
			case "data":
				d.Data = vendorString(r)
			case "signature":
				d.Signature = vendorString(r)
			default:
				r.Skip()
			}
		})
		if d.Type != "" {
			details = append(details, d)
		}
	})
	return details
}

// readPictures reads images: [{type, image_url: {url}}].
func readPictures(r *jsonscan.Reader) (pictures []TurnPart) {
	if r.Kind() != '[' {
		r.Skip()
		return nil
	}
	r.Elements(func() {
		vendorFields(r, func(name string) {
			if name != "image_url" {
				r.Skip()
				return
			}
			vendorFields(r, func(name string) {
				if name != "url" {
					r.Skip()
				} else if url := vendorString(r); strings.HasPrefix(url, "data:") {
					pictures = append(pictures, TurnPart{Path: r.Path(), Type: "image_url", Place: r.Path(), URL: url})
				}
			})
		})
	})
	return pictures
}

// vendorFields and vendorString read what no schema of the protocol knows: a value of another kind is absent.
func vendorFields(r *jsonscan.Reader, read func(name string)) {
	if r.Kind() == '{' {
		r.Fields(read)
	} else {
		r.Skip()
	}
}

func vendorString(r *jsonscan.Reader) string {
	if r.Kind() == '"' {
		return r.String()
	}
	r.Skip()
	return ""
}
