// Package openairesponses is the Responses protocol on the wire: its requests, and its stream events with their fast
// decoding. It knows nothing of the message format of this module.
package openairesponses

import (
	"bytes"
	"encoding/json"
)

// Request is the body of POST /responses.
type Request struct {
	Model             string          `json:"model"`
	Store             bool            `json:"store"`
	Include           []string        `json:"include,omitempty"`
	Stream            bool            `json:"stream"`
	Instructions      *string         `json:"instructions,omitempty"`
	MaxOutputTokens   *int64          `json:"max_output_tokens,omitempty"`
	Temperature       *float64        `json:"temperature,omitempty"`
	TopP              *float64        `json:"top_p,omitempty"`
	PresencePenalty   *float64        `json:"presence_penalty,omitempty"`  // Open Responses
	FrequencyPenalty  *float64        `json:"frequency_penalty,omitempty"` // Open Responses
	Reasoning         *Reasoning      `json:"reasoning,omitempty"`
	Tools             *[]Tool         `json:"tools,omitempty"`
	ToolChoice        any             `json:"tool_choice,omitempty"` // a mode, or AllowedToolChoice
	ParallelToolCalls *bool           `json:"parallel_tool_calls,omitempty"`
	Text              *Text           `json:"text,omitempty"`
	ServiceTier       string          `json:"service_tier,omitempty"`
	PromptCacheKey    string          `json:"prompt_cache_key,omitempty"`
	User              string          `json:"user,omitempty"`
	Metadata          json.RawMessage `json:"metadata,omitempty"` // an object
	Input             []any           `json:"input"`              // Message, ReasoningItem, FunctionCall, FunctionCallOutput
}

// CountRequest is the body of POST /responses/input_tokens: what of a request is part of the prompt or shapes it. The
// endpoint knows nothing else.
type CountRequest struct {
	Model             string     `json:"model"`
	Instructions      *string    `json:"instructions,omitempty"`
	Reasoning         *Reasoning `json:"reasoning,omitempty"`
	Tools             *[]Tool    `json:"tools,omitempty"`
	ToolChoice        any        `json:"tool_choice,omitempty"`
	ParallelToolCalls *bool      `json:"parallel_tool_calls,omitempty"`
	Text              *Text      `json:"text,omitempty"`
	Input             []any      `json:"input"`
}

// Count returns the request that counts the tokens of r.
func (r *Request) Count() *CountRequest {
	return &CountRequest{
		Model: r.Model, Instructions: r.Instructions, Reasoning: r.Reasoning, Tools: r.Tools,
		ToolChoice: r.ToolChoice, ParallelToolCalls: r.ParallelToolCalls, Text: r.Text, Input: r.Input,
	}
}

// Text says what the text of the answer must be.
type Text struct {
	Format    *Format `json:"format,omitempty"`
	Verbosity string  `json:"verbosity,omitempty"` // low, medium or high
}

// Format is any JSON object, or JSON of a schema.
type Format struct {
	Type        string          `json:"type"` // json_object or json_schema
	Name        string          `json:"name,omitempty"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`
	Strict      *bool           `json:"strict,omitempty"`
}

// Reasoning says how much the model reasons and whether it summarizes that.
type Reasoning struct {
	Effort  string `json:"effort,omitempty"`
	Summary string `json:"summary,omitempty"`
}

// Tool is a function the model may call: the text of the object {name, description, parameters, …}, which stands on the
// wire with the type beside these keys.
type Tool []byte

// MarshalJSON writes the object with its type in front.
func (t Tool) MarshalJSON() ([]byte, error) {
	return append([]byte(`{"type":"function",`), bytes.TrimPrefix(t, []byte("{"))...), nil
}

// AllowedToolChoice limits the model to some of the tools.
type AllowedToolChoice struct {
	Type  string         `json:"type"` // "allowed_tools"
	Mode  string         `json:"mode"` // "auto" or "required"
	Tools []FunctionTool `json:"tools"`
}

// FunctionTool names a tool.
type FunctionTool struct {
	Type string `json:"type"` // "function"
	Name string `json:"name"`
}

// Message is a piece of a turn.
type Message struct {
	Type    string        `json:"type"` // "message"
	Role    string        `json:"role"` // user, assistant
	Content []ContentPart `json:"content"`
	Phase   string        `json:"phase,omitempty"`
}

// ContentPart is a piece of text, a picture or a document.
type ContentPart struct {
	Type     string  `json:"type"` // input_text, output_text, input_image, input_file, summary_text, reasoning_text
	Text     *string `json:"text,omitempty"`
	ImageURL string  `json:"image_url,omitempty"`
	Detail   string  `json:"detail,omitempty"`    // of a picture
	Filename string  `json:"filename,omitempty"`  // of a document
	FileData string  `json:"file_data,omitempty"` // of a document: a data URL
}

// ReasoningItem gives the model its reasoning back. A list that is nil is left out, an empty one is sent.
type ReasoningItem struct {
	Type             string        `json:"type"` // "reasoning"
	Summary          []ContentPart `json:"summary,omitzero"`
	Content          []ContentPart `json:"content,omitzero"`
	EncryptedContent string        `json:"encrypted_content,omitempty"`
	Signature        string        `json:"signature,omitempty"`
	Format           string        `json:"format,omitempty"`
}

// FunctionCall is a call the model made. Arguments is the text of a JSON object.
type FunctionCall struct {
	Type      string `json:"type"` // "function_call"
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// FunctionCallOutput answers a call. Output is a text, or a list of parts.
type FunctionCallOutput struct {
	Type   string `json:"type"` // "function_call_output"
	CallID string `json:"call_id"`
	Output any    `json:"output"` // string or []ContentPart
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
