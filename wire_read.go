package mmsp

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// wireReader reads the records of the wire. A value of the wrong kind is an error that names its path; null and absent
// are the same; unknown keys are kept.
type wireReader struct {
	scanner jsonscan.Scanner
	strict  bool     // the fields that an item's type needs must be there
	path    []string // where the reader is, outermost first
	read    int      // items so far
	err     error
}

func newWireReader(data []byte, strict bool) *wireReader {
	r := &wireReader{strict: strict}
	r.scanner.Reset(data)
	return r
}

func (r *wireReader) fail(message string) {
	if r.err == nil {
		r.err = &InvalidRequestError{Param: strings.TrimPrefix(strings.Join(r.path, ""), "."), Message: message}
	}
}

// end returns the first error, of the text or of what it says.
func (r *wireReader) end() error {
	syntax := r.scanner.End()
	if r.err == nil && syntax != nil {
		r.fail("not readable as JSON: " + syntax.Error())
	}
	return r.err
}

// kind checks the kind of the next value; null and any other kind are skipped, the latter with an error.
func (r *wireReader) kind(want byte, word string) bool {
	k := r.scanner.Kind()
	if k == want {
		return true
	}
	if k != 'n' && k != 0 {
		r.fail(word + " is wanted")
	}
	r.scanner.Skip()
	return false
}

func (r *wireReader) string() string {
	if !r.kind('"', "a string") {
		return ""
	}
	return r.scanner.String()
}

func (r *wireReader) int() *int64 {
	if !r.kind('0', "an integer") {
		return nil
	}
	text := r.scanner.Raw()
	if n, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		return &n
	}
	if f, err := strconv.ParseFloat(string(text), 64); err == nil && f == float64(int64(f)) {
		return new(int64(f))
	}
	r.fail("an integer is wanted")
	return nil
}

func (r *wireReader) float() *float64 {
	if !r.kind('0', "a number") {
		return nil
	}
	f, ok := r.scanner.Float()
	if !ok {
		r.fail("a number is wanted")
	}
	return &f
}

func (r *wireReader) bool() *bool {
	switch r.scanner.Kind() {
	case 't', 'f':
		return new(r.scanner.Bool())
	case 'n':
	default:
		r.fail("true or false is wanted")
	}
	r.scanner.Skip()
	return nil
}

// object returns a copy of the raw text of the next value if it is an object.
func (r *wireReader) object() json.RawMessage {
	if !r.kind('{', "an object") {
		return nil
	}
	return append(json.RawMessage(nil), r.scanner.Raw()...)
}

// fields calls read for every field of the next value with the field's name on the path.
func (r *wireReader) fields(read func(name string)) {
	if !r.kind('{', "an object") {
		return
	}
	for first := true; r.scanner.Field(&first); {
		name := string(r.scanner.Name())
		r.path = append(r.path, "."+name)
		read(name)
		r.path = r.path[:len(r.path)-1]
	}
}

// elements calls read for every element of the next value and reports whether it is a list.
func (r *wireReader) elements(read func()) bool {
	if !r.kind('[', "a list") {
		return false
	}
	n := 0
	for first := true; r.scanner.Element(&first); n++ {
		r.path = append(r.path, "["+strconv.Itoa(n)+"]")
		read()
		r.path = r.path[:len(r.path)-1]
	}
	return true
}

func (r *wireReader) strings() []string {
	list := []string{}
	if !r.elements(func() { list = append(list, r.string()) }) {
		return nil
	}
	return list
}

// extra keeps an unknown field.
func (r *wireReader) extra(into *json.RawMessage, name string) {
	value := r.scanner.Raw()
	if value == nil {
		return
	}
	w := objectWriter{*into}
	if len(w.dst) == 0 {
		w.open()
	} else {
		w.dst = w.dst[:len(w.dst)-1]
		w.dst = append(w.dst, ',')
	}
	w.dst = jsonscan.AppendString(w.dst, name)
	w.dst = append(w.dst, ':')
	w.dst = append(w.dst, value...)
	w.close()
	*into = w.dst
}

// itemFields names the fields of each kind of item. None may be missing but the optional ones; empty text is text.
var itemFields = map[string][]string{
	"text":            {"text"},
	"thinking":        {"thinking"},
	"tool_call":       {"name", "arguments", "tool_call_id"},
	"inline_data":     {"data", "mime_type", "filename"},
	"inline_thinking": {"data", "mime_type"},
	"embedding":       {"embedding"},
	"image_url":       {"image_url", "detail"},
	"tool_result":     {"text", "tool_call_id", "images", "is_error"},
}

var optionalFields = []string{"images", "is_error", "filename", "detail"}

// itemType looks ahead for the type of the item that comes next: it decides what the other fields are.
func (r *wireReader) itemType() ItemType {
	ahead := r.scanner
	for first := true; ahead.Field(&first); {
		if string(ahead.Name()) != "type" {
			ahead.Skip()
		} else if t := ItemType(ahead.String()); t != "" {
			return t
		}
	}
	return ""
}

func (r *wireReader) item() (i Item) {
	var data string
	seen := map[string]bool{}
	known := itemFields[r.itemType().Kind()]
	r.fields(func(name string) {
		seen[name] = r.scanner.Kind() != 'n'
		if name != "type" && name != "fidelity" && !slices.Contains(known, name) {
			r.extra(&i.Extra, name)
			return
		}
		switch name {
		case "type":
			i.Type = cmp.Or(i.Type, ItemType(r.string()))
		case "text":
			i.Text = r.string()
		case "thinking":
			i.Thinking = r.string()
		case "name":
			i.Name = r.string()
		case "arguments":
			// A fragment in a delta, an object in a whole call.
			switch r.scanner.Kind() {
			case '"':
				i.Arguments = r.scanner.String()
			case '{':
				i.Arguments = string(r.scanner.Raw())
			default:
				r.kind('{', "a JSON object")
			}
		case "tool_call_id":
			i.ToolCallID = r.string()
		case "image_url":
			i.ImageURL = r.string()
		case "detail":
			i.Detail = r.string()
		case "images":
			i.Images = r.strings()
		case "is_error":
			if b := r.bool(); b != nil {
				i.IsError = *b
			}
		case "data":
			data = r.string()
		case "mime_type":
			i.MimeType = r.string()
		case "filename":
			i.Filename = r.string()
		case "embedding":
			i.Embedding = []float64{}
			r.elements(func() {
				if f := r.float(); f != nil {
					i.Embedding = append(i.Embedding, *f)
				} else {
					r.fail("a number is wanted")
				}
			})
		case "fidelity":
			i.Fidelity = Fidelity(r.object())
		}
	})
	if data != "" {
		var err error
		if i.Data, err = base64.StdEncoding.DecodeString(data); err != nil {
			r.path = append(r.path, ".data")
			r.fail("not readable as base64")
			r.path = r.path[:len(r.path)-1]
		}
	}
	if r.strict && r.err == nil && r.scanner.Err() == nil {
		for _, name := range append([]string{"type"}, known...) {
			if !seen[name] && !slices.Contains(optionalFields, name) {
				r.path = append(r.path, "."+name)
				r.fail("the field is missing")
				r.path = r.path[:len(r.path)-1]
			}
		}
	}
	return i
}

// maxItems bounds the items of a request: each takes some hundred bytes of memory, however short it is on the wire.
const maxItems = 1 << 17

func (r *wireReader) items() []Item {
	items := []Item{}
	r.elements(func() {
		if r.read++; r.read > maxItems {
			r.fail(fmt.Sprintf("there are more than %d items", maxItems))
			r.scanner.Stop()
			return
		}
		items = append(items, r.item())
	})
	return items
}

func (r *wireReader) usage() *Usage {
	if r.scanner.Kind() == 'n' {
		r.scanner.Skip()
		return nil
	}
	var u Usage
	r.fields(func(name string) {
		switch name {
		case "cached_tokens":
			u.CachedTokens = r.int()
		case "prompt_tokens":
			u.PromptTokens = r.int()
		case "thoughts_tokens":
			u.ThoughtsTokens = r.int()
		case "response_tokens":
			u.ResponseTokens = r.int()
		default:
			r.scanner.Skip()
		}
	})
	return &u
}

func (r *wireReader) stopDetail() *StopDetail {
	if r.scanner.Kind() == 'n' {
		r.scanner.Skip()
		return nil
	}
	var d StopDetail
	r.fields(func(name string) {
		switch name {
		case "kind":
			d.Kind = r.string()
		case "text":
			d.Text = r.string()
		default:
			r.scanner.Skip()
		}
	})
	return &d
}

func (r *wireReader) message() (m Message) {
	m.ContentItems = []Item{}
	r.fields(func(name string) {
		switch name {
		case "role":
			m.Role = Role(r.string())
		case "content_items":
			m.ContentItems = r.items()
		case "usage_metadata":
			m.Usage = r.usage()
		case "finish_reason":
			m.FinishReason = FinishReason(r.string())
		case "stop_detail":
			m.StopDetail = r.stopDetail()
		case "created_at":
			if n := r.int(); n != nil {
				m.CreatedAt = *n
			}
		default:
			r.extra(&m.Extra, name)
		}
	})
	return m
}

func (r *wireReader) event() (e Event, more []Item) {
	var items []Item
	r.fields(func(name string) {
		switch name {
		case "role":
			r.scanner.Skip()
		case "event_type":
			e.Type = EventType(r.string())
		case "content_items":
			items = r.items()
		case "usage_metadata":
			e.Usage = r.usage()
		case "finish_reason":
			e.FinishReason = FinishReason(r.string())
		case "stop_detail":
			e.StopDetail = r.stopDetail()
		case "created_at":
			if n := r.int(); n != nil {
				e.CreatedAt = *n
			}
		default:
			r.extra(&e.Extra, name)
		}
	})
	if len(items) > 0 {
		e.Item, more = items[0], items[1:]
	}
	return e, more
}

func (r *wireReader) tool() (t Tool) {
	r.fields(func(name string) {
		switch name {
		case "name":
			t.Name = r.string()
		case "description":
			t.Description = r.string()
		case "parameters":
			t.Parameters = r.object()
		case "strict":
			t.Strict = r.bool()
		default:
			r.extra(&t.Extra, name)
		}
	})
	if t.Name == "" {
		r.fail("a tool needs a name")
	}
	return t
}

func (r *wireReader) responseFormat() *ResponseFormat {
	if r.scanner.Kind() != '{' {
		r.kind('{', "an object")
		return nil
	}
	var f ResponseFormat
	r.fields(func(name string) {
		switch name {
		case "type":
			f.Type = oneOf(r, FormatText, FormatJSONObject, FormatJSONSchema)
		case "name":
			f.Name = r.string()
		case "description":
			f.Description = r.string()
		case "schema":
			f.Schema = r.object()
		case "strict":
			f.Strict = r.bool()
		default:
			r.extra(&f.Extra, name)
		}
	})
	missing := func(name string) {
		r.path = append(r.path, name)
		r.fail("the field is missing")
		r.path = r.path[:len(r.path)-1]
	}
	if f.Type == "" {
		missing(".type")
	}
	if f.Type == FormatJSONSchema && f.Schema == nil {
		missing(".schema")
	}
	return &f
}

// oneOf reads a string that must be one of the given words.
func oneOf[T ~string](r *wireReader, words ...T) T {
	value := T(r.string())
	if value == "" {
		return ""
	}
	for _, word := range words {
		if value == word {
			return value
		}
	}
	r.fail("one of " + joinWords(words) + " is wanted")
	return ""
}

func joinWords[T ~string](words []T) string {
	var list []string
	for _, word := range words {
		list = append(list, string(word))
	}
	return strings.Join(list, ", ")
}

func (r *wireReader) config() (c Config) {
	r.fields(func(name string) {
		switch name {
		case "max_tokens":
			c.MaxTokens = r.int()
		case "temperature":
			c.Temperature = r.float()
		case "top_p":
			c.TopP = r.float()
		case "top_k":
			c.TopK = r.int()
		case "stop_sequences":
			c.StopSequences = r.strings()
		case "seed":
			c.Seed = r.int()
		case "presence_penalty":
			c.PresencePenalty = r.float()
		case "frequency_penalty":
			c.FrequencyPenalty = r.float()
		case "system_prompt":
			if r.scanner.Kind() == '"' {
				c.SystemPrompt = new(r.scanner.String())
			} else {
				r.string()
			}
		case "tools":
			tools := []Tool{}
			if r.elements(func() { tools = append(tools, r.tool()) }) {
				c.Tools = tools
			}
		case "tool_choice":
			switch r.scanner.Kind() {
			case '[':
				c.ToolChoice = &ToolChoice{Names: r.strings()}
			default:
				if mode := oneOf(r, ToolChoiceAuto, ToolChoiceRequired, ToolChoiceNone); mode != "" {
					c.ToolChoice = &ToolChoice{Mode: mode}
				}
			}
		case "thinking_level":
			c.ThinkingLevel = oneOf(r, ThinkingNone, ThinkingLow, ThinkingMedium, ThinkingHigh, ThinkingXHigh, ThinkingMax)
		case "thinking_budget":
			c.ThinkingBudget = r.int()
		case "thinking_summary":
			c.ThinkingSummary = r.bool()
		case "parallel_tool_calls":
			c.ParallelToolCalls = r.bool()
		case "response_format":
			c.ResponseFormat = r.responseFormat()
		case "verbosity":
			c.Verbosity = oneOf(r, VerbosityLow, VerbosityMedium, VerbosityHigh)
		case "service_tier":
			c.ServiceTier = r.string()
		case "user":
			c.User = r.string()
		case "metadata":
			c.Metadata = r.object()
		case "prompt_caching":
			c.PromptCaching = oneOf(r, CachingEnable, CachingDisable, CachingEnhance)
		case "fast_mode":
			if b := r.bool(); b != nil {
				c.FastMode = *b
			}
		case "image_config":
			if r.scanner.Kind() == 'n' {
				r.scanner.Skip()
				return
			}
			c.ImageConfig = &ImageConfig{}
			r.fields(func(name string) {
				switch name {
				case "aspect_ratio":
					c.ImageConfig.AspectRatio = r.string()
				case "image_size":
					c.ImageConfig.ImageSize = r.string()
				default:
					r.scanner.Skip()
				}
			})
		case "tts_config":
			voices := []TTSVoice{}
			if r.elements(func() {
				var voice TTSVoice
				r.fields(func(name string) {
					switch name {
					case "voice":
						voice.Voice = r.string()
					case "speaker":
						voice.Speaker = r.string()
					default:
						r.scanner.Skip()
					}
				})
				voices = append(voices, voice)
			}) {
				c.TTSConfig = voices
			}
		case "embedding_config":
			if r.scanner.Kind() == 'n' {
				r.scanner.Skip()
				return
			}
			c.EmbeddingConfig = &EmbeddingConfig{}
			r.fields(func(name string) {
				if name == "dimensions" {
					c.EmbeddingConfig.Dimensions = r.int()
				} else {
					r.scanner.Skip()
				}
			})
		case "trace_id":
			c.TraceID = r.string()
		default:
			r.extra(&c.Extra, name)
		}
	})
	return c
}

// StreamRequest is the body of POST /v1/stream. Messages and Config stay as they came, to be read by ParseMessages and
// ParseConfig once the model is known.
type StreamRequest struct {
	Model    string
	Messages json.RawMessage
	Config   json.RawMessage // nil: absent or null
}

// ParseStreamRequest reads the body of POST /v1/stream. JSON that two readers could take differently (a key twice,
// text that is no UTF-8, deep nesting) is refused. Errors are *InvalidRequestError.
func ParseStreamRequest(body []byte) (q StreamRequest, err error) {
	if err := jsonscan.Check(body); err != nil {
		return q, &InvalidRequestError{Message: "the body is not acceptable JSON: " + err.Error()}
	}
	r := newWireReader(body, true)
	r.scanner.ResetChecked(body)
	if r.scanner.Kind() != '{' {
		return q, &InvalidRequestError{Message: "the body must be a JSON object"}
	}
	var model, messages, config byte
	r.fields(func(name string) {
		switch name {
		case "model":
			model = r.scanner.Kind()
			q.Model = r.string()
		case "messages":
			messages = r.scanner.Kind()
			q.Messages = r.scanner.Raw()
		case "config":
			if config = r.scanner.Kind(); config == '{' {
				q.Config = r.scanner.Raw()
			} else {
				r.scanner.Skip()
			}
		default:
			r.scanner.Skip()
		}
	})
	switch {
	case model != '"' || q.Model == "":
		return q, &InvalidRequestError{Param: "model", Message: "a non-empty string is wanted"}
	case messages != '[':
		return q, &InvalidRequestError{Param: "messages", Message: "a list is wanted"}
	case config != 0 && config != '{' && config != 'n':
		return q, &InvalidRequestError{Param: "config", Message: "an object is wanted"}
	}
	return q, r.end()
}

// ParseMessages reads a JSON list of messages. With relay set, items need not be complete: a server that only forwards
// them leaves the judgement to the next one. Errors are *InvalidRequestError with the path of what is wrong.
func ParseMessages(data []byte, relay bool) ([]Message, error) {
	r := newWireReader(data, !relay)
	messages := []Message{}
	r.path = append(r.path, "messages")
	r.elements(func() { messages = append(messages, r.message()) })
	return messages, r.end()
}

// ParseConfig reads a config object; no data is the empty config. Errors are *InvalidRequestError with the path of what is
// wrong.
func ParseConfig(data []byte) (c Config, err error) {
	if len(data) == 0 {
		return c, nil
	}
	r := newWireReader(data, true)
	r.path = append(r.path, "config")
	c = r.config()
	return c, r.end()
}

// ParseEvent reads one event of a public stream. The grammar allows one item an event; what a peer sends beyond that
// comes back in more. Errors are *InvalidRequestError with the path of what is wrong.
func ParseEvent(data []byte) (e Event, more []Item, err error) {
	r := newWireReader(data, false)
	e, more = r.event()
	return e, more, r.end()
}

// UnmarshalJSON reads the wire form.
func (i *Item) UnmarshalJSON(data []byte) error {
	r := newWireReader(data, true)
	*i = r.item()
	return r.end()
}

// UnmarshalJSON reads the wire form.
func (m *Message) UnmarshalJSON(data []byte) error {
	r := newWireReader(data, true)
	*m = r.message()
	return r.end()
}

// UnmarshalJSON reads the wire form.
func (e *Event) UnmarshalJSON(data []byte) error {
	r := newWireReader(data, false)
	*e, _ = r.event()
	return r.end()
}

// UnmarshalJSON reads the wire form.
func (t *Tool) UnmarshalJSON(data []byte) error {
	r := newWireReader(data, true)
	*t = r.tool()
	return r.end()
}

// UnmarshalJSON reads the wire form.
func (c *Config) UnmarshalJSON(data []byte) error {
	r := newWireReader(data, true)
	*c = r.config()
	return r.end()
}
