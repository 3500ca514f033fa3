// Package anthropic is the Messages protocol on the wire: its requests, and its stream events with their fast decoding.
// It knows nothing of the message format of this module.
package anthropic

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// Version is the value of the anthropic-version header.
const Version = "2023-06-01"

// BedrockVersion is the value of anthropic_version in a request to Bedrock.
const BedrockVersion = "bedrock-2023-05-31"

// Request is the body of POST /v1/messages, or of InvokeModelWithResponseStream, where the URL says model and stream, and
// the body what are headers otherwise.
type Request struct {
	AnthropicVersion string   `json:"anthropic_version,omitempty"` // Bedrock
	AnthropicBeta    []string `json:"anthropic_beta,omitempty"`    // Bedrock

	Model         string        `json:"model,omitempty"`
	MaxTokens     int64         `json:"max_tokens"`
	Temperature   *float64      `json:"temperature,omitempty"`
	TopP          *float64      `json:"top_p,omitempty"`
	TopK          *int64        `json:"top_k,omitempty"`
	StopSequences []string      `json:"stop_sequences,omitempty"`
	Thinking      *Thinking     `json:"thinking,omitempty"`
	OutputConfig  *OutputConfig `json:"output_config,omitempty"`
	Speed         string        `json:"speed,omitempty"`        // "fast", with its beta
	ServiceTier   string        `json:"service_tier,omitempty"` // auto or standard_only
	Metadata      *Metadata     `json:"metadata,omitempty"`
	CacheControl  *CacheControl `json:"cache_control,omitempty"`
	Stream        bool          `json:"stream,omitempty"`
	Tools         *[]Tool       `json:"tools,omitempty"`
	ToolChoice    *ToolChoice   `json:"tool_choice,omitempty"`
	System        string        `json:"system,omitempty"`
	Messages      []Message     `json:"messages"`
}

// CountRequest is the body of POST /v1/messages/count_tokens: what of a request is part of the prompt or shapes it. The
// endpoint refuses the rest.
type CountRequest struct {
	Model        string        `json:"model"`
	Thinking     *Thinking     `json:"thinking,omitempty"`
	OutputConfig *OutputConfig `json:"output_config,omitempty"`
	CacheControl *CacheControl `json:"cache_control,omitempty"`
	Tools        *[]Tool       `json:"tools,omitempty"`
	ToolChoice   *ToolChoice   `json:"tool_choice,omitempty"`
	System       string        `json:"system,omitempty"`
	Messages     []Message     `json:"messages"`
}

// Count returns the request that counts the tokens of r.
func (r *Request) Count() *CountRequest {
	return &CountRequest{
		Model: r.Model, Thinking: r.Thinking, OutputConfig: r.OutputConfig, CacheControl: r.CacheControl,
		Tools: r.Tools, ToolChoice: r.ToolChoice, System: r.System, Messages: r.Messages,
	}
}

// Remote reports whether the messages hold a picture by its URL, which the endpoint does not count.
func (r *CountRequest) Remote() bool {
	return slices.ContainsFunc(r.Messages, func(m Message) bool { return remote(m.Content) })
}

func remote(blocks []Block) bool {
	return slices.ContainsFunc(blocks, func(b Block) bool { return b.Source != nil && b.Source.Type == "url" || remote(b.Content) })
}

// Thinking says how the model thinks.
type Thinking struct {
	Type         string `json:"type"`                    // adaptive, between_tools, enabled or disabled
	BudgetTokens int64  `json:"budget_tokens,omitempty"` // enabled: at least 1024, less than max_tokens
	Display      string `json:"display,omitempty"`       // summarized or omitted
}

// MinBudgetTokens is the smallest budget for thinking.
const MinBudgetTokens = 1024

// OutputConfig says how much effort an answer is worth, and what its text must be.
type OutputConfig struct {
	Effort string  `json:"effort,omitempty"` // low, medium, high, xhigh or max
	Format *Format `json:"format,omitempty"`
}

// Format makes the text of the answer JSON of a schema.
type Format struct {
	Type   string          `json:"type"` // "json_schema"
	Schema json.RawMessage `json:"schema"`
}

// Metadata says for whom a request is.
type Metadata struct {
	UserID string `json:"user_id"`
}

// CacheControl marks the end of what is to be cached.
type CacheControl struct {
	Type string `json:"type"`          // "ephemeral"
	TTL  string `json:"ttl,omitempty"` // "5m" or "1h"
}

// Tool is a tool the model may call. Its order of keys is fixed: a changed byte costs the prompt cache.
type Tool struct {
	Name        string
	Description string
	InputSchema json.RawMessage // nil: absent
	Strict      *bool           // the input must fit the schema
	Extra       json.RawMessage // further keys, as one object
}

// MarshalJSON returns the tool with its further keys last.
func (t Tool) MarshalJSON() ([]byte, error) {
	object := jsonscan.AppendString([]byte(`{"name":`), t.Name)
	if t.Description != "" {
		object = jsonscan.AppendString(append(object, `,"description":`...), t.Description)
	}
	if t.InputSchema != nil {
		object = append(append(object, `,"input_schema":`...), t.InputSchema...)
	}
	if t.Strict != nil {
		object = strconv.AppendBool(append(object, `,"strict":`...), *t.Strict)
	}
	extra := bytes.TrimSpace(t.Extra)
	if extra = bytes.TrimSpace(bytes.TrimPrefix(extra, []byte("{"))); len(extra) > 1 {
		object = append(append(object, ','), extra[:len(extra)-1]...)
	}
	return append(object, '}'), nil
}

// ToolChoice says whether tools are called.
type ToolChoice struct {
	Type string `json:"type"` // auto, any, none or tool
	Name string `json:"name,omitempty"`

	DisableParallelToolUse bool `json:"disable_parallel_tool_use,omitempty"` // of all types but none
}

// Message is one turn.
type Message struct {
	Role    string  `json:"role"` // user or assistant
	Content []Block `json:"content"`
}

// Block is a piece of a turn. Type says which fields count.
type Block struct {
	Type string `json:"type"`

	Text string `json:"text,omitempty"` // text

	Thinking  *string `json:"thinking,omitempty"`  // thinking: may be empty
	Signature string  `json:"signature,omitempty"` // thinking
	Data      string  `json:"data,omitempty"`      // redacted_thinking

	Source *Source `json:"source,omitempty"` // image, document
	Title  string  `json:"title,omitempty"`  // document

	ID    string          `json:"id,omitempty"`    // tool_use
	Name  string          `json:"name,omitempty"`  // tool_use
	Input json.RawMessage `json:"input,omitempty"` // tool_use: an object

	ToolUseID string  `json:"tool_use_id,omitempty"` // tool_result
	Content   []Block `json:"content,omitempty"`     // tool_result: text, images and documents
	IsError   bool    `json:"is_error,omitempty"`    // tool_result

	CacheControl *CacheControl `json:"cache_control,omitempty"`
}

// Source is where a picture or a document comes from.
type Source struct {
	Type      string `json:"type"` // base64, url or text
	MediaType string `json:"media_type,omitempty"`
	Data      string `json:"data,omitempty"` // base64, or the text itself
	URL       string `json:"url,omitempty"`
}

// Encode returns the body: compact, non-ASCII and markup characters as they are.
func (r *Request) Encode() ([]byte, error) { return encode(r) }

// Encode returns the body, as that of a Request.
func (r *CountRequest) Encode() ([]byte, error) { return encode(r) }

func encode(r any) ([]byte, error) {
	var body bytes.Buffer
	e := json.NewEncoder(&body)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(body.Bytes(), []byte("\n")), nil
}
