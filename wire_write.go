package mmsp

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"

	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// objectWriter appends JSON objects field by field.
type objectWriter struct{ dst []byte }

func (w *objectWriter) open()  { w.dst = append(w.dst, '{') }
func (w *objectWriter) close() { w.dst = append(w.dst, '}') }

// key appends the name of the next field. Names are plain ASCII.
func (w *objectWriter) key(name string) {
	if last := w.dst[len(w.dst)-1]; last != '{' && last != '[' {
		w.dst = append(w.dst, ',')
	}
	w.dst = append(w.dst, '"')
	w.dst = append(w.dst, name...)
	w.dst = append(w.dst, '"', ':')
}

func (w *objectWriter) string(name, value string) {
	w.key(name)
	w.dst = jsonscan.AppendString(w.dst, value)
}

func (w *objectWriter) optionalString(name, value string) {
	if value != "" {
		w.string(name, value)
	}
}

func (w *objectWriter) int(name string, value int64) {
	w.key(name)
	w.dst = strconv.AppendInt(w.dst, value, 10)
}

func (w *objectWriter) bool(name string, value bool) {
	w.key(name)
	w.dst = strconv.AppendBool(w.dst, value)
}

func (w *objectWriter) float(name string, value float64) {
	w.key(name)
	w.dst = appendFloat(w.dst, value)
}

func (w *objectWriter) raw(name string, value []byte) {
	w.key(name)
	w.dst = appendOneLine(w.dst, value)
}

// appendOneLine appends a JSON text without the line breaks between its tokens, which would end a server-sent event.
func appendOneLine(dst, value []byte) []byte {
	start := len(dst)
	dst = append(dst, value...)
	for i := start; i < len(dst); i++ {
		if dst[i] == '\n' || dst[i] == '\r' {
			dst[i] = ' '
		}
	}
	return dst
}

func (w *objectWriter) base64(name string, value []byte) {
	w.key(name)
	w.dst = append(w.dst, '"')
	w.dst = base64.StdEncoding.AppendEncode(w.dst, value)
	w.dst = append(w.dst, '"')
}

func (w *objectWriter) strings(name string, values []string) {
	w.key(name)
	w.dst = append(w.dst, '[')
	for i, value := range values {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.dst = jsonscan.AppendString(w.dst, value)
	}
	w.dst = append(w.dst, ']')
}

// extra appends the fields of an object of unknown keys.
func (w *objectWriter) extra(object json.RawMessage) {
	if len(object) < len("{}") {
		return
	}
	fields := bytes.TrimSpace(object[1 : len(object)-1])
	if len(fields) == 0 {
		return
	}
	if last := w.dst[len(w.dst)-1]; last != '{' {
		w.dst = append(w.dst, ',')
	}
	w.dst = appendOneLine(w.dst, fields)
}

// appendFloat writes the shortest number that reads back the same; JSON has no NaN and no infinity.
func appendFloat(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, "null"...)
	}
	if f == math.Trunc(f) && math.Abs(f) < 1e15 {
		return strconv.AppendInt(dst, int64(f), 10)
	}
	return strconv.AppendFloat(dst, f, 'g', -1, 64)
}

func (w *objectWriter) item(i *Item) {
	w.open()
	w.string("type", string(i.Type))
	switch i.Type.Kind() { // which the item types from before 0.5.0 share
	case "text":
		w.string("text", i.Text)
	case "thinking":
		w.string("thinking", i.Thinking)
	case "tool_call":
		w.string("name", i.Name)
		switch {
		case i.Type.IsDelta():
			w.string("arguments", i.Arguments)
		case i.Arguments == "":
			w.raw("arguments", []byte("{}"))
		case jsonscan.Valid([]byte(i.Arguments)):
			w.raw("arguments", []byte(i.Arguments))
		default:
			w.string("arguments", i.Arguments)
		}
		w.string("tool_call_id", i.ToolCallID)
	case "inline_data", "inline_thinking":
		w.base64("data", i.Data)
		w.string("mime_type", i.MimeType)
		w.optionalString("filename", i.Filename)
	case "embedding":
		w.key("embedding")
		w.dst = append(w.dst, '[')
		for n, f := range i.Embedding {
			if n > 0 {
				w.dst = append(w.dst, ',')
			}
			w.dst = appendFloat(w.dst, f)
		}
		w.dst = append(w.dst, ']')
	case "image_url":
		w.string("image_url", i.ImageURL)
		w.optionalString("detail", i.Detail)
	case "tool_result":
		w.string("text", i.Text)
		if i.Images != nil {
			w.strings("images", i.Images)
		}
		w.string("tool_call_id", i.ToolCallID)
		if i.IsError {
			w.bool("is_error", true)
		}
	}
	if len(i.Fidelity) > 0 {
		w.raw("fidelity", i.Fidelity)
	}
	w.extra(i.Extra)
	w.close()
}

func (w *objectWriter) usage(u *Usage) {
	w.key("usage_metadata")
	if u == nil {
		w.dst = append(w.dst, "null"...)
		return
	}
	w.open()
	for _, f := range []struct {
		name  string
		value *int64
	}{
		{"cached_tokens", u.CachedTokens},
		{"prompt_tokens", u.PromptTokens},
		{"thoughts_tokens", u.ThoughtsTokens},
		{"response_tokens", u.ResponseTokens},
	} {
		if f.value != nil {
			w.int(f.name, *f.value)
		} else {
			w.raw(f.name, []byte("null"))
		}
	}
	w.close()
}

func (w *objectWriter) finishReason(r FinishReason) {
	if r == "" {
		w.raw("finish_reason", []byte("null"))
	} else {
		w.string("finish_reason", string(r))
	}
}

func (w *objectWriter) stopDetail(d *StopDetail) {
	if d == nil {
		return
	}
	w.key("stop_detail")
	w.open()
	w.string("kind", d.Kind)
	w.optionalString("text", d.Text)
	if d.Prompt {
		w.raw("prompt", []byte("true"))
	}
	w.close()
}

// AppendJSON appends the event as it travels on the wire.
func (e *Event) AppendJSON(dst []byte) []byte {
	if e.Type == EventDelta && e.Usage == nil && e.FinishReason == "" && e.StopDetail == nil && e.Extra == nil {
		// The event that streams are made of.
		w := objectWriter{append(dst, `{"role":"assistant","event_type":"delta","content_items":[`...)}
		if e.Item.Type != "" {
			w.item(&e.Item)
		}
		w.dst = append(w.dst, `],"usage_metadata":null,"finish_reason":null,"created_at":`...)
		w.dst = strconv.AppendInt(w.dst, e.CreatedAt, 10)
		return append(w.dst, '}')
	}
	w := objectWriter{append(dst, `{"role":"assistant"`...)}
	w.string("event_type", string(e.Type))
	w.key("content_items")
	w.dst = append(w.dst, '[')
	if e.Item.Type != "" {
		w.item(&e.Item)
	}
	w.dst = append(w.dst, ']')
	w.usage(e.Usage)
	w.finishReason(e.FinishReason)
	w.stopDetail(e.StopDetail)
	if e.CreatedAt != 0 {
		w.int("created_at", e.CreatedAt)
	}
	w.extra(e.Extra)
	w.close()
	return w.dst
}

// AppendJSON appends the message as it travels on the wire.
func (m *Message) AppendJSON(dst []byte) []byte {
	w := objectWriter{dst}
	w.open()
	w.string("role", string(m.Role))
	w.key("content_items")
	w.dst = append(w.dst, '[')
	for i := range m.ContentItems {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.item(&m.ContentItems[i])
	}
	w.dst = append(w.dst, ']')
	if m.Usage != nil {
		w.usage(m.Usage)
	}
	if m.FinishReason != "" {
		w.finishReason(m.FinishReason)
	}
	w.stopDetail(m.StopDetail)
	if m.CreatedAt != 0 {
		w.int("created_at", m.CreatedAt)
	}
	w.extra(m.Extra)
	w.close()
	return w.dst
}

// AppendJSON appends the tool as callers write it and as OpenAI's protocols take it: name, description, parameters, strict.
func (t *Tool) AppendJSON(dst []byte) []byte {
	w := objectWriter{dst}
	w.open()
	w.string("name", t.Name)
	w.string("description", t.Description)
	if t.Parameters != nil {
		w.raw("parameters", t.Parameters)
	}
	if t.Strict != nil {
		w.bool("strict", *t.Strict)
	}
	w.extra(t.Extra)
	w.close()
	return w.dst
}

// AppendJSON appends the config as it travels on the wire.
func (c *Config) AppendJSON(dst []byte) []byte {
	w := objectWriter{dst}
	w.open()
	if c.MaxTokens != nil {
		w.int("max_tokens", *c.MaxTokens)
	}
	if c.Temperature != nil {
		w.float("temperature", *c.Temperature)
	}
	if c.TopP != nil {
		w.float("top_p", *c.TopP)
	}
	if c.TopK != nil {
		w.int("top_k", *c.TopK)
	}
	if c.StopSequences != nil {
		w.strings("stop_sequences", c.StopSequences)
	}
	if c.Seed != nil {
		w.int("seed", *c.Seed)
	}
	if c.PresencePenalty != nil {
		w.float("presence_penalty", *c.PresencePenalty)
	}
	if c.FrequencyPenalty != nil {
		w.float("frequency_penalty", *c.FrequencyPenalty)
	}
	if c.SystemPrompt != nil {
		w.string("system_prompt", *c.SystemPrompt)
	}
	if c.Tools != nil {
		w.key("tools")
		w.dst = append(w.dst, '[')
		for i := range c.Tools {
			if i > 0 {
				w.dst = append(w.dst, ',')
			}
			w.dst = c.Tools[i].AppendJSON(w.dst)
		}
		w.dst = append(w.dst, ']')
	}
	if c.ToolChoice != nil {
		if c.ToolChoice.Mode != "" {
			w.string("tool_choice", c.ToolChoice.Mode)
		} else {
			w.strings("tool_choice", c.ToolChoice.Names)
		}
	}
	if c.ParallelToolCalls != nil {
		w.bool("parallel_tool_calls", *c.ParallelToolCalls)
	}
	if f := c.ResponseFormat; f != nil {
		w.key("response_format")
		w.open()
		w.string("type", f.Type)
		w.optionalString("name", f.Name)
		w.optionalString("description", f.Description)
		if f.Schema != nil {
			w.raw("schema", f.Schema)
		}
		if f.Strict != nil {
			w.bool("strict", *f.Strict)
		}
		w.extra(f.Extra)
		w.close()
	}
	w.optionalString("thinking_level", string(c.ThinkingLevel))
	if c.ThinkingBudget != nil {
		w.int("thinking_budget", *c.ThinkingBudget)
	}
	if c.ThinkingSummary != nil {
		w.bool("thinking_summary", *c.ThinkingSummary)
	}
	w.optionalString("verbosity", string(c.Verbosity))
	w.optionalString("prompt_caching", string(c.PromptCaching))
	if c.FastMode {
		w.bool("fast_mode", true)
	}
	w.optionalString("service_tier", c.ServiceTier)
	w.optionalString("prompt_cache_key", c.PromptCacheKey)
	w.optionalString("user", c.User)
	if c.Metadata != nil {
		w.raw("metadata", c.Metadata)
	}
	if c.ImageConfig != nil {
		w.key("image_config")
		w.open()
		w.optionalString("aspect_ratio", c.ImageConfig.AspectRatio)
		w.optionalString("image_size", c.ImageConfig.ImageSize)
		w.close()
	}
	if c.TTSConfig != nil {
		w.key("tts_config")
		w.dst = append(w.dst, '[')
		for i, voice := range c.TTSConfig {
			if i > 0 {
				w.dst = append(w.dst, ',')
			}
			w.open()
			w.string("voice", voice.Voice)
			w.optionalString("speaker", voice.Speaker)
			w.close()
		}
		w.dst = append(w.dst, ']')
	}
	if c.EmbeddingConfig != nil {
		w.key("embedding_config")
		w.open()
		if c.EmbeddingConfig.Dimensions != nil {
			w.int("dimensions", *c.EmbeddingConfig.Dimensions)
		}
		w.close()
	}
	w.optionalString("trace_id", c.TraceID)
	w.extra(c.Extra)
	w.close()
	return w.dst
}

// AppendStreamRequest appends the body of POST /v1/stream.
func AppendStreamRequest(dst []byte, model string, messages []Message, config *Config) []byte {
	w := objectWriter{dst}
	w.open()
	w.string("model", model)
	w.key("messages")
	w.dst = append(w.dst, '[')
	for i := range messages {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		w.dst = messages[i].AppendJSON(w.dst)
	}
	w.dst = append(w.dst, ']')
	w.key("config")
	w.dst = config.AppendJSON(w.dst)
	w.close()
	return w.dst
}

// MarshalJSON writes the wire form.
func (i Item) MarshalJSON() ([]byte, error) {
	w := objectWriter{}
	w.item(&i)
	return w.dst, nil
}

// MarshalJSON writes the wire form.
func (m Message) MarshalJSON() ([]byte, error) { return m.AppendJSON(nil), nil }

// MarshalJSON writes the wire form.
func (e Event) MarshalJSON() ([]byte, error) { return e.AppendJSON(nil), nil }

// MarshalJSON writes the wire form.
func (t Tool) MarshalJSON() ([]byte, error) { return t.AppendJSON(nil), nil }

// MarshalJSON writes the wire form.
func (c Config) MarshalJSON() ([]byte, error) { return c.AppendJSON(nil), nil }
