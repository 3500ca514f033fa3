package openairesponses

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// Body is the body of POST /responses as a caller wrote it. What it does not say, or says null of, is nil or empty. Raw
// JSON is compact: it holds no line break.
type Body struct {
	Model              string
	Input              []BodyItem // nil: not said
	Instructions       *string
	PreviousResponseID string
	Conversation       bool // one is named
	Background         bool
	Prompt             bool     // a stored prompt is named
	Include            []string // nil: not said
	Tools              []BodyTool
	ToolChoice         *BodyChoice
	ParallelToolCalls  *bool
	MaxOutputTokens    *int64
	MaxToolCalls       *int64
	Temperature        *float64
	TopP               *float64
	PresencePenalty    *float64
	FrequencyPenalty   *float64
	TopLogprobs        *int64
	Effort             string // reasoning.effort
	Summary            string // reasoning.summary
	Format             *BodyFormat
	Verbosity          string
	Truncation         string
	Metadata           json.RawMessage // an object of strings
	Store              *bool
	Stream             bool
	ServiceTier        string
	SafetyIdentifier   *string
	PromptCacheKey     *string
	User               string

	Unserved []string // the paths of what only OpenAI's own machinery serves
	Unknown  []string // fields
}

// BodyItem is an item of the input. Type says which fields count.
type BodyItem struct {
	Path    string // such as "input[3]"
	Type    string // one of the Item constants
	Foreign bool   // it is for the provider that made it: a receipt of its own tool, or a compaction; nothing else of it is read

	ID               string
	Role             string     // message: user, system, developer, assistant
	Phase            string     // message of the assistant: commentary, final_answer
	Content          []BodyPart // message, reasoning; of a tool's output what it says
	Summary          []BodyPart // reasoning
	EncryptedContent string     // reasoning
	CallID           string     // calls and their outputs
	Name             string     // calls
	Namespace        string     // calls: the group of the tool
	Arguments        string     // function_call
	Input            string     // custom_tool_call
	Result           string     // image_generation_call: base64
	OutputFormat     string     // image_generation_call: png, jpeg, webp
	Tools            []BodyTool // additional_tools
}

// The item types of an input that are read, beside those that an output has too.
const (
	ItemFunctionCallOutput   = "function_call_output"
	ItemCustomToolCall       = "custom_tool_call"
	ItemCustomToolCallOutput = "custom_tool_call_output"
	ItemReference            = "item_reference"
	ItemAdditionalTools      = "additional_tools"
	ItemImageGenerationCall  = "image_generation_call"
)

// foreignItems are the receipts of what a provider's own tools did, and a context that only it can open.
var foreignItems = []string{
	"compaction", "web_search_call", "file_search_call", "code_interpreter_call", "mcp_list_tools", "mcp_call", "mcp_approval_request",
	"tool_search_call", "tool_search_output",
}

// BodyPart is a piece of content. Type says which fields count.
type BodyPart struct {
	Path string
	Type string // input_text, output_text, refusal, summary_text, reasoning_text, input_image, input_file, input_audio
	Text string // of the text types and a refusal

	Place    string // input_image, input_file, input_audio: the path of the field that holds it, or would
	ImageURL string // input_image: an http(s) or data URL
	Detail   string // input_image
	FileID   string // input_image, input_file: of a file that the provider stores

	Filename string // input_file
	FileURL  string // input_file
	FileData string // input_file: base64 or a data URL; input_audio: base64
	Format   string // input_audio: mp3, wav
}

// BodyTool is a tool as a caller declares it.
type BodyTool struct {
	Path string
	Raw  json.RawMessage // the whole object
	Type string          // function, custom, namespace, or the name of a hosted tool
	Name string          // function, custom, namespace

	Description *string
	Parameters  json.RawMessage // function: a JSON Schema
	Strict      *bool           // function
	Syntax      string          // custom: of the grammar that the input must fit: lark, regex
	Definition  string          // custom: the grammar; empty: any text
	Tools       []BodyTool      // namespace
}

// BodyChoice says which tool is to be called: a mode, one tool, or a mode for a list of tools.
type BodyChoice struct {
	Path      string
	Raw       json.RawMessage // as it came
	Mode      string          // none, auto, required; with Tools: of them
	Type      string          // empty for a mode alone; function, custom, allowed_tools, or the name of a hosted tool
	Name      string
	Namespace string
	Tools     []BodyChoice // allowed_tools
}

// BodyFormat says what the text of the answer must be.
type BodyFormat struct {
	Type        string // text, json_object, json_schema
	Name        string
	Description *string
	Schema      json.RawMessage
	Strict      *bool
}

const (
	maxText  = 10_485_760 // characters
	maxImage = 20_971_520
	maxFile  = 33_554_432

	// maxElements bounds items, parts and tools together: each takes some hundred bytes of memory, however short it is.
	maxElements = 1 << 17
)

type bodyReader struct {
	*jsonscan.Reader
	elements *int
}

// ReadBody reads the body of a request. The error is a *jsonscan.PathError.
func ReadBody(data []byte) (*Body, error) {
	b := &Body{}
	r := bodyReader{jsonscan.NewReader(data), new(int)}
	r.Fields(func(name string) {
		switch name {
		case "model":
			b.Model = r.String()
		case "input":
			b.Input = r.input()
		case "instructions":
			b.Instructions = r.StringOrNil()
		case "previous_response_id":
			b.PreviousResponseID = r.String()
		case "conversation":
			b.Conversation = r.given()
		case "prompt":
			b.Prompt = r.given()
		case "background":
			b.Background = isTrue(r.Bool())
		case "include":
			b.Include = r.Strings()
		case "tools":
			b.Tools = r.tools()
		case "tool_choice":
			b.ToolChoice = r.choice(true)
		case "parallel_tool_calls":
			b.ParallelToolCalls = r.Bool()
		case "max_output_tokens":
			b.MaxOutputTokens = r.IntBetween(16, 1<<53)
		case "max_tool_calls":
			b.MaxToolCalls = r.IntBetween(1, 1<<53)
		case "temperature":
			b.Temperature = r.FloatBetween(0, 2)
		case "top_p":
			b.TopP = r.FloatBetween(0, 1)
		case "presence_penalty":
			b.PresencePenalty = r.FloatBetween(-2, 2)
		case "frequency_penalty":
			b.FrequencyPenalty = r.FloatBetween(-2, 2)
		case "top_logprobs":
			b.TopLogprobs = r.IntBetween(0, 20)
		case "reasoning":
			r.Fields(func(name string) {
				switch name {
				case "effort":
					b.Effort = r.Word("none", "minimal", "low", "medium", "high", "xhigh", "max")
				case "summary":
					b.Summary = r.Word("auto", "concise", "detailed")
				case "generate_summary": // its older name
					if word := r.Word("auto", "concise", "detailed"); b.Summary == "" {
						b.Summary = word
					}
				case "context":
					if word := r.Word("auto", "current_turn", "all_turns"); word != "" && word != "auto" {
						r.Drop()
					}
				case "mode":
					if word := r.String(); word != "" && word != "standard" {
						r.Drop()
					}
				default:
					r.Skip()
				}
			})
		case "text":
			r.Fields(func(name string) {
				switch name {
				case "format":
					b.Format = r.format()
				case "verbosity":
					b.Verbosity = r.Word("low", "medium", "high")
				default:
					r.Skip()
				}
			})
		case "truncation":
			b.Truncation = r.Word("auto", "disabled")
		case "metadata":
			b.Metadata = r.metadata()
		case "store":
			b.Store = r.Bool()
		case "stream":
			b.Stream = isTrue(r.Bool())
		case "stream_options":
			r.Fields(func(string) { r.Skip() })
		case "service_tier":
			b.ServiceTier = r.Word("auto", "default", "flex", "priority", "scale")
		case "safety_identifier":
			b.SafetyIdentifier = r.shortString(64)
		case "prompt_cache_key":
			b.PromptCacheKey = r.shortString(64)
		case "prompt_cache_retention":
			if r.Word("in_memory", "in-memory", "24h") == "24h" {
				r.Drop()
			}
		case "prompt_cache_options", "moderation":
			r.Leave('{')
		case "context_management":
			r.Leave('[')
		case "user":
			b.User = r.String()
		default:
			r.SkipUnknown()
		}
	})
	b.Unserved, b.Unknown = r.Dropped(), r.Unknown()
	return b, r.End()
}

func isTrue(b *bool) bool { return b != nil && *b }

// given passes over the next value and reports whether it is one.
func (r bodyReader) given() bool {
	kind := r.Kind()
	r.Skip()
	return kind != 'n'
}

// shortString reads a string of at most so many characters.
func (r bodyReader) shortString(most int) *string {
	text := r.StringOrNil()
	if text != nil && utf8.RuneCountInString(*text) > most {
		r.Fail(fmt.Sprintf("at most %d characters are wanted", most))
	}
	return text
}

// text reads a string that must be there and not be too long.
func (r bodyReader) text(most int) string {
	text := r.StringOrNil()
	switch {
	case text == nil:
		r.Fail("a string is wanted")
		return ""
	case len(*text) > most && utf8.RuneCountInString(*text) > most:
		r.Fail(fmt.Sprintf("at most %d characters are wanted", most))
	}
	return *text
}

// raw returns the next value, an object, as compact text, and reads it too.
func (r bodyReader) raw(read func(bodyReader)) json.RawMessage {
	object := r.Object()
	if object == nil {
		return nil
	}
	inner := bodyReader{jsonscan.NewReaderAt(object, r.Path()), r.elements}
	read(inner)
	if err, _ := inner.End().(*jsonscan.PathError); err != nil {
		r.FailAt(err.Path, err.Message)
		return nil
	}
	return compact(object)
}

func compact(object []byte) json.RawMessage {
	if object == nil {
		return nil
	}
	var b bytes.Buffer
	if json.Compact(&b, object) != nil {
		return nil // the reader reports it
	}
	return b.Bytes()
}

// each reads the elements of a list, of all lists together no more than a request may have.
func (r bodyReader) each(read func()) {
	r.Elements(func() {
		switch *r.elements++; {
		case *r.elements > maxElements:
			r.Fail(fmt.Sprintf("there are more than %d items, parts and tools", maxElements))
			r.Skip()
		case r.Kind() == 'n':
			r.Fail("an object is wanted")
			r.Skip()
		default:
			read()
		}
	})
}

func (r bodyReader) input() (items []BodyItem) {
	switch r.Kind() {
	case 'n':
		r.Skip()
	case '"':
		items = []BodyItem{{Path: r.Path(), Type: ItemMessage, Role: "user", Content: r.content("input_text")}}
	case '[':
		items = []BodyItem{}
		r.each(func() { items = append(items, r.item()) })
	default:
		r.Fail("a string or a list is wanted")
		r.Skip()
	}
	return items
}

func (r bodyReader) item() BodyItem {
	i := BodyItem{Path: r.Path(), Type: r.Lookahead("type")}
	if r.Kind() != '{' {
		r.Fail("an object is wanted")
		r.Skip()
		return i
	}
	if i.Type == "" || i.Type == ItemMessage {
		i.Role = r.Lookahead("role")
	}
	if i.Type == "" {
		switch {
		case i.Role != "":
			i.Type = ItemMessage
		case r.Lookahead("id") != "":
			i.Type = ItemReference
		default:
			r.FailAt(i.Path+".type", "the type is missing")
		}
	}
	field := func(string) { r.Skip() }
	switch i.Type {
	case ItemMessage:
		allowed := []string{"input_text"}
		switch i.Role {
		case "user":
			allowed = []string{"input_text", "input_image", "input_file", "input_audio"}
		case "assistant":
			allowed = []string{"output_text", "refusal", "input_text"}
		case "system", "developer":
		default:
			r.FailAt(i.Path+".role", "one of user, assistant, system, developer is wanted")
		}
		said := false
		field = func(name string) {
			switch name {
			case "content":
				i.Content, said = r.content(allowed...), true
			case "phase":
				i.Phase = r.Word("commentary", "final_answer")
			default:
				r.Skip()
			}
		}
		defer func() {
			if !said {
				r.FailAt(i.Path+".content", "the content is missing")
			}
		}()
	case ItemReasoning:
		field = func(name string) {
			switch name {
			case "id":
				i.ID = r.String()
			case "summary":
				i.Summary = r.content("summary_text")
			case "content":
				i.Content = r.content("reasoning_text")
			case "encrypted_content":
				i.EncryptedContent = r.String()
			default:
				r.Skip()
			}
		}
	case ItemFunctionCall, ItemCustomToolCall:
		field = func(name string) {
			switch name {
			case "call_id":
				i.CallID = r.String()
			case "name":
				i.Name = r.String()
			case "namespace":
				i.Namespace = r.String()
			case "arguments":
				if i.Type == ItemFunctionCall {
					i.Arguments = r.String()
				} else {
					r.Skip()
				}
			case "input":
				if i.Type == ItemCustomToolCall {
					i.Input = r.String()
				} else {
					r.Skip()
				}
			default:
				r.Skip()
			}
		}
		defer r.need(i.Path, "name", &i.Name)
		defer r.need(i.Path, "call_id", &i.CallID)
	case ItemFunctionCallOutput, ItemCustomToolCallOutput:
		said := false
		field = func(name string) {
			switch name {
			case "call_id":
				i.CallID = r.String()
			case "output":
				i.Content, said = r.content("input_text", "output_text", "input_image", "input_file"), true
			default:
				r.Skip()
			}
		}
		defer func() {
			if !said {
				r.FailAt(i.Path+".output", "the output is missing")
			}
		}()
		defer r.need(i.Path, "call_id", &i.CallID)
	case ItemReference:
		field = func(name string) {
			if name == "id" {
				i.ID = r.String()
			} else {
				r.Skip()
			}
		}
		defer r.need(i.Path, "id", &i.ID)
	case ItemAdditionalTools:
		field = func(name string) {
			if name == "tools" {
				i.Tools = r.tools()
			} else {
				r.Skip()
			}
		}
	case ItemImageGenerationCall:
		field = func(name string) {
			switch name {
			case "result":
				i.Result = r.String()
			case "output_format":
				i.OutputFormat = r.String()
			default:
				r.Skip()
			}
		}
	default:
		i.Foreign = slices.Contains(foreignItems, i.Type)
		if !i.Foreign {
			r.FailAt(i.Path+".type", fmt.Sprintf("items of type %.64q are not supported", i.Type))
		}
	}
	r.Fields(field)
	return i
}

// need reports a field that is missing or empty.
func (r bodyReader) need(path, name string, value *string) {
	if *value == "" {
		r.FailAt(strings.TrimSuffix(path+"."+name, "."), "a string that is not empty is wanted")
	}
}

// content reads a text, which is a part of the first type, or a list of parts; null has none.
func (r bodyReader) content(allowed ...string) (parts []BodyPart) {
	switch r.Kind() {
	case 'n':
		r.Skip()
	case '"':
		parts = []BodyPart{{Path: r.Path(), Type: allowed[0], Text: r.text(maxText)}}
	case '[':
		r.each(func() { parts = append(parts, r.part(allowed)) })
	default:
		r.Fail("a string or a list of parts is wanted")
		r.Skip()
	}
	return parts
}

func (r bodyReader) part(allowed []string) BodyPart {
	p := BodyPart{Path: r.Path(), Type: r.Lookahead("type")}
	if r.Kind() == '{' && !slices.Contains(allowed, p.Type) {
		r.FailAt(p.Path+".type", fmt.Sprintf("parts of type %.64q cannot stand here; these can: %s", p.Type, strings.Join(allowed, ", ")))
		r.Skip()
		return p
	}
	switch p.Type {
	case "input_image":
		p.Place = p.Path + ".image_url"
	case "input_file":
		p.Place = p.Path + ".file_data"
	case "input_audio":
		p.Place = p.Path + ".input_audio.data"
	}
	said := false
	r.Fields(func(name string) {
		switch {
		case name == "source" && r.Kind() == 'n':
			r.Skip()
		case name == "refusal" && p.Type == PartRefusal, name == "text" && strings.HasSuffix(p.Type, "_text"):
			p.Text, said = r.text(maxText), true
		case p.Type == "input_image":
			switch name {
			case "image_url":
				if r.Kind() == 'n' {
					r.Skip()
				} else {
					p.ImageURL, p.Place = r.text(maxImage), r.Path()
				}
			case "detail":
				p.Detail = r.Word("auto", "low", "high", "original")
			case "file_id":
				p.FileID = r.String()
			case "source":
				p.ImageURL, _, p.Place = r.source()
			default:
				r.Skip()
			}
		case p.Type == "input_file":
			switch name {
			case "filename":
				p.Filename = r.String()
			case "file_data":
				if r.Kind() == 'n' {
					r.Skip()
				} else {
					p.FileData, p.Place = r.text(maxFile), r.Path()
				}
			case "file_url":
				if p.FileURL = r.String(); p.FileURL != "" {
					p.Place = r.Path()
				}
			case "file_id":
				p.FileID = r.String()
			case "source":
				var url, filename string
				if url, filename, p.Place = r.source(); strings.HasPrefix(url, "data:") {
					p.FileData = url
				} else {
					p.FileURL = url
				}
				if filename != "" {
					p.Filename = filename
				}
			default:
				r.Skip()
			}
		case p.Type == "input_audio":
			switch name {
			case "input_audio":
				r.Fields(func(name string) { r.audio(name, &p) })
			default:
				r.audio(name, &p)
			}
		default:
			r.Skip()
		}
	})
	if !said && (strings.HasSuffix(p.Type, "_text") || p.Type == PartRefusal) {
		r.FailAt(p.Path+"."+map[bool]string{false: "text", true: "refusal"}[p.Type == PartRefusal], "a string is wanted")
	}
	return p
}

// source reads where a picture or document is, as some servers of the protocol have it: a URL, or bytes, which become a
// data URL. place is the path of either.
func (r bodyReader) source() (url, filename, place string) {
	var kind, mediaType, data string
	path := r.Path()
	r.Fields(func(name string) {
		switch name {
		case "type":
			kind = r.Word("url", "base64")
		case "url":
			url = r.text(maxImage)
		case "media_type":
			mediaType = r.String()
		case "data":
			data = r.text(maxFile)
		case "filename":
			filename = r.String()
		default:
			r.Skip()
		}
	})
	if kind == "base64" {
		return "data:" + mediaType + ";base64," + data, filename, path + ".data"
	}
	return url, filename, path + ".url"
}

func (r bodyReader) audio(name string, p *BodyPart) {
	switch name {
	case "data":
		p.FileData, p.Place = r.text(maxFile), r.Path()
	case "format":
		p.Format = r.Word("mp3", "wav")
	default:
		r.Skip()
	}
}

func (r bodyReader) tools() (tools []BodyTool) {
	r.each(func() { tools = append(tools, r.tool(true)) })
	return tools
}

// tool reads a tool. A group holds no group.
func (r bodyReader) tool(groups bool) BodyTool {
	t := BodyTool{Path: r.Path(), Type: r.Lookahead("type")}
	if r.Kind() == '{' && t.Type == "" {
		r.FailAt(t.Path+".type", "the type is missing")
	}
	t.Raw = r.raw(func(r bodyReader) {
		if t.Type != "function" && t.Type != "custom" && (t.Type != "namespace" || !groups) {
			r.Skip()
			return
		}
		r.Fields(func(name string) {
			switch {
			case name == "name":
				t.Name = r.String()
			case name == "description":
				t.Description = r.StringOrNil()
			case name == "parameters" && t.Type == "function":
				t.Parameters = compact(r.Object())
			case name == "strict" && t.Type == "function":
				t.Strict = r.Bool()
			case name == "format" && t.Type == "custom":
				r.Fields(func(name string) {
					switch name {
					case "syntax":
						t.Syntax = r.String()
					case "definition":
						t.Definition = r.String()
					default:
						r.Skip()
					}
				})
			case name == "tools" && t.Type == "namespace":
				r.each(func() { t.Tools = append(t.Tools, r.tool(false)) })
			default:
				r.Skip()
			}
		})
		r.need(t.Path, "name", &t.Name)
	})
	return t
}

func (r bodyReader) choice(outer bool) *BodyChoice {
	switch r.Kind() {
	case 'n':
		r.Skip()
		return nil
	case '"':
		if outer {
			c := &BodyChoice{Path: r.Path(), Mode: r.Word("none", "auto", "required")}
			r.need(c.Path, "", &c.Mode)
			c.Raw = jsonscan.AppendString(nil, c.Mode)
			return c
		}
	case '{':
		c := &BodyChoice{Path: r.Path()}
		c.Raw = r.raw(func(r bodyReader) {
			r.Fields(func(name string) {
				switch name {
				case "type":
					c.Type = r.String()
				case "name":
					c.Name = r.String()
				case "namespace":
					c.Namespace = r.String()
				case "function": // an older form
					r.Fields(func(name string) {
						if name == "name" {
							c.Name = r.String()
						} else {
							r.Skip()
						}
					})
				case "mode":
					c.Mode = r.Word("none", "auto", "required")
				case "tools":
					if !outer {
						r.Skip()
						return
					}
					r.each(func() {
						if tool := r.choice(false); tool != nil {
							c.Tools = append(c.Tools, *tool)
						}
					})
				default:
					r.Skip()
				}
			})
			r.need(c.Path, "type", &c.Type)
			switch c.Type {
			case "function", "custom":
				r.need(c.Path, "name", &c.Name)
			case "allowed_tools":
				if len(c.Tools) == 0 || len(c.Tools) > 128 {
					r.FailAt(c.Path+".tools", "a list of 1 to 128 tools is wanted")
				}
			}
		})
		return c
	}
	r.Fail(map[bool]string{true: "a word or an object is wanted", false: "an object is wanted"}[outer])
	r.Skip()
	return nil
}

func (r bodyReader) format() *BodyFormat {
	f := &BodyFormat{}
	if !r.Fields(func(name string) {
		switch name {
		case "type":
			f.Type = r.Word("text", "json_object", "json_schema")
		case "name":
			f.Name = r.String()
		case "description":
			f.Description = r.StringOrNil()
		case "schema":
			f.Schema = compact(r.Object())
		case "strict":
			f.Strict = r.Bool()
		default:
			r.Skip()
		}
	}) {
		return nil
	}
	if f.Type == "" {
		r.FailField("type", "one of text, json_object, json_schema is wanted")
	}
	if len(f.Name) > 64 || strings.Trim(f.Name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-") != "" {
		r.FailField("name", "at most 64 letters, digits, _ and - are wanted")
	}
	return f
}

func (r bodyReader) metadata() json.RawMessage {
	return r.raw(func(r bodyReader) {
		pairs := 0
		path := r.Path()
		r.Fields(func(name string) {
			pairs++
			if utf8.RuneCountInString(name) > 64 {
				r.FailAt(path, "a key has more than 64 characters")
			}
			if r.Kind() == 'n' {
				r.Fail("a string is wanted")
			}
			r.shortString(512)
		})
		if pairs > 16 {
			r.FailAt(path, "at most 16 pairs are wanted")
		}
	})
}
