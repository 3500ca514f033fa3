package mmsp

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// wireReader reads the records of the wire; unknown fields are kept.
type wireReader struct {
	jsonscan.Reader
	strict bool // the fields that an item's type needs must be there
	read   int  // items so far
}

// newWireReader returns a reader of a JSON text that stands at a path of the request.
func newWireReader(data []byte, path string, strict bool) *wireReader {
	r := &wireReader{strict: strict}
	r.Reset(data, path)
	return r
}

// end returns the first error, of the text or of what it says.
func (r *wireReader) end() error {
	if err, wrong := r.End().(*jsonscan.PathError); wrong {
		return &InvalidRequestError{Param: err.Path, Message: err.Message}
	}
	return nil
}

// extra keeps an unknown field.
func (r *wireReader) extra(into *json.RawMessage, name string) {
	value := r.Text()
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

func (r *wireReader) item() (i Item) {
	var data string
	seen := map[string]bool{}
	known := itemFields[ItemType(r.Lookahead("type")).Kind()]
	r.Fields(func(name string) {
		seen[name] = r.Kind() != 'n'
		if name != "type" && name != "fidelity" && !slices.Contains(known, name) {
			r.extra(&i.Extra, name)
			return
		}
		switch name {
		case "type":
			i.Type = cmp.Or(i.Type, ItemType(r.String()))
		case "text":
			i.Text = r.String()
		case "thinking":
			i.Thinking = r.String()
		case "name":
			i.Name = r.String()
		case "arguments":
			// A fragment in a delta, an object in a whole call.
			switch r.Kind() {
			case '"':
				i.Arguments = r.String()
			default:
				i.Arguments = string(r.Object())
			}
		case "tool_call_id":
			i.ToolCallID = r.String()
		case "image_url":
			i.ImageURL = r.String()
		case "detail":
			i.Detail = r.String()
		case "images":
			i.Images = r.Strings()
		case "is_error":
			if b := r.Bool(); b != nil {
				i.IsError = *b
			}
		case "data":
			data = r.String()
		case "mime_type":
			i.MimeType = r.String()
		case "filename":
			i.Filename = r.String()
		case "embedding":
			i.Embedding = []float64{}
			r.Elements(func() {
				if f := r.Float(); f != nil {
					i.Embedding = append(i.Embedding, *f)
				} else {
					r.Fail("a number is wanted")
				}
			})
		case "fidelity":
			i.Fidelity = Fidelity(r.Object())
		}
	})
	if data != "" {
		var err error
		if i.Data, err = base64.StdEncoding.DecodeString(data); err != nil {
			r.FailField("data", "not readable as base64")
		}
	}
	if r.strict && !r.Failed() {
		for _, name := range append([]string{"type"}, known...) {
			if !seen[name] && !slices.Contains(optionalFields, name) {
				r.FailField(name, "the field is missing")
			}
		}
	}
	return i
}

// maxItems bounds the items of a request: each takes some hundred bytes of memory, however short it is on the wire.
const maxItems = 1 << 17

func (r *wireReader) items() []Item {
	items := []Item{}
	r.Elements(func() {
		if r.read++; r.read > maxItems {
			r.Fail(fmt.Sprintf("there are more than %d items", maxItems))
			r.Stop()
			return
		}
		items = append(items, r.item())
	})
	return items
}

func (r *wireReader) usage() *Usage {
	if r.Kind() == 'n' {
		r.Skip()
		return nil
	}
	var u Usage
	r.Fields(func(name string) {
		switch name {
		case "cached_tokens":
			u.CachedTokens = r.Int()
		case "prompt_tokens":
			u.PromptTokens = r.Int()
		case "thoughts_tokens":
			u.ThoughtsTokens = r.Int()
		case "response_tokens":
			u.ResponseTokens = r.Int()
		default:
			r.Skip()
		}
	})
	return &u
}

func (r *wireReader) stopDetail() *StopDetail {
	if r.Kind() == 'n' {
		r.Skip()
		return nil
	}
	var d StopDetail
	r.Fields(func(name string) {
		switch name {
		case "kind":
			d.Kind = r.String()
		case "text":
			d.Text = r.String()
		case "prompt":
			if prompt := r.Bool(); prompt != nil {
				d.Prompt = *prompt
			}
		default:
			r.Skip()
		}
	})
	return &d
}

func (r *wireReader) message() (m Message) {
	m.ContentItems = []Item{}
	r.Fields(func(name string) {
		switch name {
		case "role":
			m.Role = Role(r.String())
		case "content_items":
			m.ContentItems = r.items()
		case "usage_metadata":
			m.Usage = r.usage()
		case "finish_reason":
			m.FinishReason = FinishReason(r.String())
		case "stop_detail":
			m.StopDetail = r.stopDetail()
		case "created_at":
			if n := r.Int(); n != nil {
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
	r.Fields(func(name string) {
		switch name {
		case "role":
			r.Skip()
		case "event_type":
			e.Type = EventType(r.String())
		case "content_items":
			items = r.items()
		case "usage_metadata":
			e.Usage = r.usage()
		case "finish_reason":
			e.FinishReason = FinishReason(r.String())
		case "stop_detail":
			e.StopDetail = r.stopDetail()
		case "created_at":
			if n := r.Int(); n != nil {
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
	r.Fields(func(name string) {
		switch name {
		case "name":
			t.Name = r.String()
		case "description":
			t.Description = r.String()
		case "parameters":
			t.Parameters = r.Object()
		case "strict":
			t.Strict = r.Bool()
		default:
			r.extra(&t.Extra, name)
		}
	})
	if t.Name == "" {
		r.Fail("a tool needs a name")
	}
	return t
}

func (r *wireReader) responseFormat() *ResponseFormat {
	var f ResponseFormat
	if !r.Fields(func(name string) {
		switch name {
		case "type":
			f.Type = oneOf(r, FormatText, FormatJSONObject, FormatJSONSchema)
		case "name":
			f.Name = r.String()
		case "description":
			f.Description = r.String()
		case "schema":
			f.Schema = r.Object()
		case "strict":
			f.Strict = r.Bool()
		default:
			r.extra(&f.Extra, name)
		}
	}) {
		return nil
	}
	if f.Type == "" {
		r.FailField("type", "the field is missing")
	}
	if f.Type == FormatJSONSchema && f.Schema == nil {
		r.FailField("schema", "the field is missing")
	}
	return &f
}

// oneOf reads a string that must be one of the given words.
func oneOf[T ~string](r *wireReader, words ...T) T {
	value := T(r.String())
	if value == "" {
		return ""
	}
	for _, word := range words {
		if value == word {
			return value
		}
	}
	r.Fail("one of " + joinWords(words) + " is wanted")
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
	r.Fields(func(name string) {
		switch name {
		case "max_tokens":
			c.MaxTokens = r.Int()
		case "temperature":
			c.Temperature = r.Float()
		case "top_p":
			c.TopP = r.Float()
		case "top_k":
			c.TopK = r.Int()
		case "stop_sequences":
			c.StopSequences = r.Strings()
		case "seed":
			c.Seed = r.Int()
		case "presence_penalty":
			c.PresencePenalty = r.Float()
		case "frequency_penalty":
			c.FrequencyPenalty = r.Float()
		case "system_prompt":
			c.SystemPrompt = r.StringOrNil()
		case "tools":
			tools := []Tool{}
			if r.Elements(func() { tools = append(tools, r.tool()) }) {
				c.Tools = tools
			}
		case "tool_choice":
			switch r.Kind() {
			case '[':
				c.ToolChoice = &ToolChoice{Names: r.Strings()}
			default:
				if mode := oneOf(r, ToolChoiceAuto, ToolChoiceRequired, ToolChoiceNone); mode != "" {
					c.ToolChoice = &ToolChoice{Mode: mode}
				}
			}
		case "thinking_level":
			c.ThinkingLevel = oneOf(r, ThinkingNone, ThinkingLow, ThinkingMedium, ThinkingHigh, ThinkingXHigh, ThinkingMax)
		case "thinking_budget":
			c.ThinkingBudget = r.Int()
		case "thinking_summary":
			c.ThinkingSummary = r.Bool()
		case "parallel_tool_calls":
			c.ParallelToolCalls = r.Bool()
		case "response_format":
			c.ResponseFormat = r.responseFormat()
		case "verbosity":
			c.Verbosity = oneOf(r, VerbosityLow, VerbosityMedium, VerbosityHigh)
		case "service_tier":
			c.ServiceTier = r.String()
		case "prompt_cache_key":
			c.PromptCacheKey = r.String()
		case "user":
			c.User = r.String()
		case "metadata":
			c.Metadata = r.Object()
		case "prompt_caching":
			c.PromptCaching = oneOf(r, CachingEnable, CachingDisable, CachingEnhance)
		case "fast_mode":
			if b := r.Bool(); b != nil {
				c.FastMode = *b
			}
		case "image_config":
			if r.Kind() == 'n' {
				r.Skip()
				return
			}
			c.ImageConfig = &ImageConfig{}
			r.Fields(func(name string) {
				switch name {
				case "aspect_ratio":
					c.ImageConfig.AspectRatio = r.String()
				case "image_size":
					c.ImageConfig.ImageSize = r.String()
				default:
					r.Skip()
				}
			})
		case "tts_config":
			voices := []TTSVoice{}
			if r.Elements(func() {
				var voice TTSVoice
				r.Fields(func(name string) {
					switch name {
					case "voice":
						voice.Voice = r.String()
					case "speaker":
						voice.Speaker = r.String()
					default:
						r.Skip()
					}
				})
				voices = append(voices, voice)
			}) {
				c.TTSConfig = voices
			}
		case "embedding_config":
			if r.Kind() == 'n' {
				r.Skip()
				return
			}
			c.EmbeddingConfig = &EmbeddingConfig{}
			r.Fields(func(name string) {
				if name == "dimensions" {
					c.EmbeddingConfig.Dimensions = r.Int()
				} else {
					r.Skip()
				}
			})
		case "trace_id":
			c.TraceID = r.String()
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
	var r jsonscan.Scanner
	r.ResetChecked(body)
	if r.Kind() != '{' {
		return q, &InvalidRequestError{Message: "the body must be a JSON object"}
	}
	var model, messages, config byte
	for first := true; r.Field(&first); {
		switch string(r.Name()) {
		case "model":
			model = r.Kind()
			q.Model = r.String()
		case "messages":
			messages = r.Kind()
			q.Messages = r.Raw()
		case "config":
			if config = r.Kind(); config == '{' {
				q.Config = r.Raw()
			} else {
				r.Skip()
			}
		default:
			r.Skip()
		}
	}
	switch {
	case model != '"' || q.Model == "":
		return q, &InvalidRequestError{Param: "model", Message: "a non-empty string is wanted"}
	case messages != '[':
		return q, &InvalidRequestError{Param: "messages", Message: "a list is wanted"}
	case config != 0 && config != '{' && config != 'n':
		return q, &InvalidRequestError{Param: "config", Message: "an object is wanted"}
	}
	return q, nil
}

// ParseMessages reads a JSON list of messages. With relay set, items need not be complete: a server that only forwards
// them leaves the judgement to the next one. Errors are *InvalidRequestError with the path of what is wrong.
func ParseMessages(data []byte, relay bool) ([]Message, error) {
	r := newWireReader(data, "messages", !relay)
	messages := []Message{}
	r.Elements(func() { messages = append(messages, r.message()) })
	return messages, r.end()
}

// ParseConfig reads a config object; no data is the empty config. Errors are *InvalidRequestError with the path of what is
// wrong.
func ParseConfig(data []byte) (c Config, err error) {
	if len(data) == 0 {
		return c, nil
	}
	r := newWireReader(data, "config", true)
	c = r.config()
	return c, r.end()
}

// ParseEvent reads one event of a public stream. The grammar allows one item an event; what a peer sends beyond that
// comes back in more. Errors are *InvalidRequestError with the path of what is wrong.
func ParseEvent(data []byte) (e Event, more []Item, err error) {
	r := newWireReader(data, "", false)
	e, more = r.event()
	return e, more, r.end()
}

// UnmarshalJSON reads the wire form.
func (i *Item) UnmarshalJSON(data []byte) error {
	r := newWireReader(data, "", true)
	*i = r.item()
	return r.end()
}

// UnmarshalJSON reads the wire form.
func (m *Message) UnmarshalJSON(data []byte) error {
	r := newWireReader(data, "", true)
	*m = r.message()
	return r.end()
}

// UnmarshalJSON reads the wire form.
func (e *Event) UnmarshalJSON(data []byte) error {
	r := newWireReader(data, "", false)
	*e, _ = r.event()
	return r.end()
}

// UnmarshalJSON reads the wire form.
func (t *Tool) UnmarshalJSON(data []byte) error {
	r := newWireReader(data, "", true)
	*t = r.tool()
	return r.end()
}

// UnmarshalJSON reads the wire form.
func (c *Config) UnmarshalJSON(data []byte) error {
	r := newWireReader(data, "", true)
	*c = r.config()
	return r.end()
}
