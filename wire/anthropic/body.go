package anthropic

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// Body is the body of POST /v1/messages, or of /v1/messages/count_tokens, as a caller wrote it.
type Body struct {
	Model         string
	MaxTokens     *int64 // nil: absent, where tokens are only counted; 0: nothing is to be said, the prompt is for the cache
	Stream        bool
	System        []BodyBlock // of text
	Messages      []BodyMessage
	Tools         []BodyTool
	ToolChoice    *ToolChoice
	Thinking      *Thinking
	Effort        string  // output_config.effort
	Format        *Format // output_config.format
	Temperature   *float64
	TopP          *float64
	TopK          *int64
	StopSequences []string
	UserID        string // metadata.user_id
	ServiceTier   string // auto or standard_only
	Speed         string // standard or fast
	CacheTTL      string // the longest of all cache_control, 5m or 1h; empty: there is none

	Unserved []string // the paths of what only a provider's own machinery serves, such as container or context_management
	Unknown  []string // fields
}

// BodyMessage is one turn.
type BodyMessage struct {
	Path    string // where it stands in the body
	Role    string // user, assistant or system
	Content []BodyBlock
}

// BodyBlock is a piece of a turn. Type says which fields count.
type BodyBlock struct {
	Path string // where it stands in the body
	Type string

	Text string // text; document: its context; compaction: a summary of what stood before

	Thinking  string // thinking
	Signature string // thinking; empty: nobody signed it
	Data      string // redacted_thinking

	Source BodySource // image, document
	Title  string     // document, search_result

	Origin string // search_result: its source

	ID    string          // tool_use
	Name  string          // tool_use
	Input json.RawMessage // tool_use: an object

	ToolUseID string      // tool_result
	Content   []BodyBlock // tool_result: text, image, document, search_result, others of a provider's own; search_result: text
	IsError   bool        // tool_result
}

// BodySource is where a picture or a document comes from. Type says which fields count.
type BodySource struct {
	Type      string // base64, url, text or content
	MediaType string // base64
	Data      []byte // base64
	Text      string // text
	URL       string
	Content   []BodyBlock // text and image
}

// BodyTool is a tool the model may call. Of one that the provider itself defines, there are only type and name.
type BodyTool struct {
	Path        string // where it stands in the body
	Type        string // empty: a function of the caller
	Name        string
	Description string
	InputSchema json.RawMessage // an object
	Strict      *bool
}

// maxMessages is how many turns a request may have.
const maxMessages = 100_000

// ReadBody reads the body of a request, which jsonscan.Check has passed. A request that counts needs no max_tokens. The error
// is a *jsonscan.PathError.
func ReadBody(data []byte, counts bool) (*Body, error) {
	b := &Body{}
	r := bodyReader{jsonscan.NewReader(data), b}
	var messages bool
	whole := r.Fields(func(name string) {
		switch name {
		case "model":
			b.Model = r.String()
		case "max_tokens":
			b.MaxTokens = r.IntBetween(0, 1<<53)
		case "stream":
			b.Stream = r.flag()
		case "system":
			b.System = r.content(textBlocks)
		case "messages":
			messages = r.Elements(func() {
				if len(b.Messages) == maxMessages {
					r.FailAt("messages", "at most "+strconv.Itoa(maxMessages)+" messages are possible")
				}
				if len(b.Messages) < maxMessages {
					b.Messages = append(b.Messages, r.message())
				} else {
					r.Skip()
				}
			})
		case "tools":
			r.Elements(func() { b.Tools = append(b.Tools, r.tool()) })
		case "tool_choice":
			b.ToolChoice = r.toolChoice()
		case "thinking":
			b.Thinking = r.thinking()
		case "output_config":
			r.Fields(func(name string) {
				switch name {
				case "effort":
					b.Effort = r.Word("low", "medium", "high", "xhigh", "max")
				case "format":
					b.Format = r.format()
				case "task_budget":
					r.Leave('{')
				default:
					r.Skip()
				}
			})
		case "output_format": // before there was output_config
			if format := r.format(); b.Format == nil {
				b.Format = format
			}
		case "temperature":
			b.Temperature = r.FloatBetween(0, 1)
		case "top_p":
			switch b.TopP = r.Float(); {
			case b.TopP == nil:
			case *b.TopP == -1: // how LangChain for JavaScript says that none is given
				b.TopP = nil
			case *b.TopP < 0 || *b.TopP > 1:
				r.Fail("a number from 0 to 1 is wanted")
			}
		case "top_k":
			switch b.TopK = r.Int(); {
			case b.TopK == nil:
			case *b.TopK == -1: // as above
				b.TopK = nil
			case *b.TopK < 0 || *b.TopK > 1<<31:
				r.Fail("an integer from 0 to 2147483648 is wanted")
			}
		case "stop_sequences":
			b.StopSequences = r.Strings()
		case "metadata":
			r.Fields(func(name string) {
				if name == "user_id" {
					b.UserID = r.String()
				} else {
					r.Skip()
				}
			})
		case "service_tier":
			b.ServiceTier = r.Word("auto", "standard_only")
		case "speed":
			b.Speed = r.Word("standard", "fast")
		case "cache_control":
			r.cacheControl()
		case "container":
			r.Leave('"', '{')
		case "fallbacks":
			r.Leave('"', '[')
		case "context_management", "compaction":
			r.Leave('{')
		case "mcp_servers":
			r.Leave('[')
		case "inference_geo":
			r.Leave('"')
		case "thread":
			if r.Kind() != 'n' {
				r.Fail("conversations that a provider holds are not known here; send all messages")
			}
			r.Skip()
		case "diagnostics": // of the cache
			r.Skip()
		default:
			r.SkipUnknown()
		}
	})
	b.Unserved, b.Unknown = r.Dropped(), r.Unknown()
	switch {
	case !whole:
		r.FailAt("", "an object is wanted")
	case b.Model == "":
		r.FailAt("model", required)
	case b.MaxTokens == nil && !counts:
		r.FailAt("max_tokens", required)
	case !messages:
		r.FailAt("messages", required)
	}
	return b, r.End()
}

const required = "is required"

type bodyReader struct {
	*jsonscan.Reader
	body *Body
}

// need reports a field of the value at the reader's path that is absent.
func (r bodyReader) need(field string, there bool) {
	if !there {
		r.FailField(field, required)
	}
}

func (r bodyReader) flag() bool {
	b := r.Bool()
	return b != nil && *b
}

// cacheControl reads {type, ttl}: the prompt up to where it stands is to be cached.
func (r bodyReader) cacheControl() {
	kind, ttl := "", ""
	if r.Fields(func(name string) {
		switch name {
		case "type":
			kind = r.Word("ephemeral")
		case "ttl":
			ttl = r.Word("5m", "1h")
		default:
			r.Skip()
		}
	}) {
		r.need("type", kind != "")
		if r.body.CacheTTL != "1h" {
			r.body.CacheTTL = cmp.Or(ttl, "5m")
		}
	}
}

func (r bodyReader) message() BodyMessage {
	m := BodyMessage{Path: r.Path()}
	content := false
	if !r.Fields(func(name string) {
		switch name {
		case "role":
			m.Role = r.Word("user", "assistant", "system")
		case "content":
			content = r.Kind() != 'n'
			m.Content = r.content(turnBlocks)
		default:
			r.Skip()
		}
	}) {
		r.Fail("an object is wanted")
		return m
	}
	r.need("role", m.Role != "")
	r.need("content", content)
	return m
}

// The types of blocks that a list may hold.
var (
	turnBlocks   = []string{"text", "image", "document", "search_result", "thinking", "redacted_thinking", "tool_use", "tool_result", "compaction"}
	resultBlocks = []string{"text", "image", "document", "search_result"}
	sourceBlocks = []string{"text", "image"}
	textBlocks   = []string{"text"}
)

// ProvidersOwn reports whether blocks of a type are about tools that a provider runs or finds by itself. They may stand
// where other blocks stand, and nothing of them is read but their cache_control.
func ProvidersOwn(kind string) bool {
	switch kind {
	case "server_tool_use", "mcp_tool_use", "tool_reference", "tool_addition", "tool_removal":
		return true
	}
	return kind != "tool_result" && strings.HasSuffix(kind, "_tool_result")
}

// content reads a text, which becomes one block, or a list of blocks.
func (r bodyReader) content(types []string) (blocks []BodyBlock) {
	switch r.Kind() {
	case '"':
		return []BodyBlock{{Path: r.Path(), Type: "text", Text: r.String()}}
	case '[':
		r.Elements(func() { blocks = append(blocks, r.block(types)) })
		return blocks
	case 'n':
	default:
		r.Fail("a string or a list is wanted")
	}
	r.Skip()
	return nil
}

func (r bodyReader) block(types []string) BodyBlock {
	b := BodyBlock{Path: r.Path(), Type: r.Lookahead("type")}
	if own := ProvidersOwn(b.Type) && len(types) > 1; !own && !slices.Contains(types, b.Type) {
		switch {
		case r.Kind() != '{':
			r.Fail("an object is wanted")
		case b.Type == "":
			r.need("type", false)
		case b.Type == "container_upload":
			r.Fail("container_upload: there is no container that takes files")
		default:
			r.FailAt(b.Path+".type", fmt.Sprintf("blocks of type %.64q are not possible here", b.Type))
		}
		r.Skip()
		return b
	}
	var text, source bool
	r.Fields(func(name string) {
		if name == "cache_control" {
			r.cacheControl()
			return
		}
		switch b.Type + "." + name {
		case "text.text":
			text = r.Kind() != 'n'
			b.Text = r.String()
		case "thinking.thinking":
			b.Thinking = r.String()
		case "thinking.signature":
			b.Signature = r.String()
		case "redacted_thinking.data":
			b.Data = r.String()
		case "image.source", "document.source":
			source = r.Kind() != 'n'
			b.Source = r.source(b.Type)
		case "document.title", "search_result.title":
			b.Title = r.String()
		case "document.context":
			b.Text = r.String()
		case "document.citations", "search_result.citations", "image.transformations":
			r.Leave('{')
		case "compaction.content":
			b.Text = r.String()
		case "search_result.source":
			b.Origin = r.String()
		case "search_result.content":
			b.Content = r.content(textBlocks)
		case "tool_use.id":
			b.ID = r.String()
		case "tool_use.name":
			b.Name = r.String()
		case "tool_use.input":
			b.Input = r.Object()
		case "tool_result.tool_use_id":
			b.ToolUseID = r.String()
		case "tool_result.content":
			b.Content = r.content(resultBlocks)
		case "tool_result.is_error":
			b.IsError = r.flag()
		default:
			r.Skip()
		}
	})
	switch b.Type {
	case "text":
		r.need("text", text)
	case "image", "document":
		r.need("source", source)
	case "tool_use":
		r.need("id", b.ID != "")
		r.need("name", b.Name != "")
		if b.Input == nil {
			b.Input = json.RawMessage("{}")
		}
	case "tool_result":
		r.need("tool_use_id", b.ToolUseID != "")
	}
	return b
}

// source reads where a picture or a document comes from.
func (r bodyReader) source(of string) BodySource {
	s := BodySource{Type: r.Lookahead("type")}
	switch of + "." + s.Type {
	case "image.base64", "image.url", "document.base64", "document.url", "document.text", "document.content":
	case "image.file", "document.file":
		r.Fail("file ids of a provider are not known here; send the file as base64")
	default:
		if r.Kind() == '{' {
			r.FailField("type", fmt.Sprintf("%.64q is no type of source of an %s", s.Type, of))
			r.Skip() // however deep sources stand in pictures that stand in sources
			return s
		}
	}
	r.Fields(func(name string) {
		switch s.Type + "." + name {
		case "base64.media_type":
			s.MediaType = r.String()
		case "base64.data":
			s.Data = r.Base64()
		case "text.data":
			s.Text = r.String()
		case "url.url":
			s.URL = r.String()
		case "content.content":
			s.Content = r.content(sourceBlocks)
		default:
			r.Skip()
		}
	})
	switch s.Type {
	case "base64":
		r.need("media_type", s.MediaType != "")
		r.need("data", len(s.Data) > 0)
		if strings.ContainsAny(s.MediaType, ";, \t\r\n") || of == "image" && !strings.HasPrefix(s.MediaType, "image/") {
			r.FailField("media_type", "a media type such as image/png or application/pdf is wanted")
		}
	case "url":
		r.need("url", s.URL != "")
	}
	return s
}

func (r bodyReader) tool() BodyTool {
	t := BodyTool{Path: r.Path(), Type: r.Lookahead("type")}
	if t.Type == "custom" {
		t.Type = ""
	}
	if !r.Fields(func(name string) {
		switch {
		case name == "type":
			_ = r.String()
		case name == "name":
			t.Name = r.String()
		case name == "cache_control":
			r.cacheControl()
		case t.Type != "":
			r.Skip()
		case name == "description":
			t.Description = r.String()
		case name == "input_schema":
			t.InputSchema = r.Object()
		case name == "strict":
			t.Strict = r.Bool()
		case name == "input_examples":
			r.Leave('[')
		default:
			r.Skip()
		}
	}) {
		r.Fail("an object is wanted")
	} else if t.Type == "" {
		r.need("name", t.Name != "")
		r.need("input_schema", t.InputSchema != nil)
	}
	return t
}

func (r bodyReader) toolChoice() *ToolChoice {
	c := &ToolChoice{}
	if !r.Fields(func(name string) {
		switch name {
		case "type":
			c.Type = r.Word("auto", "any", "tool", "none")
		case "name":
			c.Name = r.String()
		case "disable_parallel_tool_use":
			c.DisableParallelToolUse = r.flag()
		default:
			r.Skip()
		}
	}) {
		return nil
	}
	r.need("type", c.Type != "")
	r.need("name", c.Type != "tool" || c.Name != "")
	return c
}

func (r bodyReader) thinking() *Thinking {
	t := &Thinking{}
	if !r.Fields(func(name string) {
		switch name {
		case "type":
			t.Type = r.Word("enabled", "disabled", "adaptive", "between_tools")
		case "budget_tokens":
			if n := r.Int(); n != nil {
				t.BudgetTokens = *n
			}
		case "display":
			t.Display = r.Word("summarized", "omitted")
		default:
			r.Skip()
		}
	}) {
		return nil
	}
	r.need("type", t.Type != "")
	if t.Type == "enabled" && t.BudgetTokens < MinBudgetTokens {
		r.FailField("budget_tokens", "at least "+strconv.Itoa(MinBudgetTokens)+" is wanted")
	}
	return t
}

func (r bodyReader) format() *Format {
	f := &Format{}
	if !r.Fields(func(name string) {
		switch name {
		case "type":
			f.Type = r.Word("json_schema")
		case "schema":
			f.Schema = r.Object()
		default:
			r.Skip()
		}
	}) {
		return nil
	}
	r.need("type", f.Type != "")
	r.need("schema", f.Schema != nil)
	return f
}
