// Package openaichat is the Chat Completions protocol on the wire: its requests, and its stream events with their fast
// decoding. It knows nothing of the message format of this module.
package openaichat

import (
	"bytes"
	"encoding/json"
)

// Request is the body of POST /chat/completions.
type Request struct {
	Model               string              `json:"model"`
	Stream              bool                `json:"stream"`
	StreamOptions       *StreamOptions      `json:"stream_options,omitempty"`
	ToolStream          bool                `json:"tool_stream,omitempty"` // Z.ai: stream the arguments of calls too
	MaxCompletionTokens *int64              `json:"max_completion_tokens,omitempty"`
	MaxTokens           *int64              `json:"max_tokens,omitempty"` // Z.ai, in place of MaxCompletionTokens
	Temperature         *float64            `json:"temperature,omitempty"`
	TopP                *float64            `json:"top_p,omitempty"`
	TopK                *int64              `json:"top_k,omitempty"` // vLLM
	Stop                []string            `json:"stop,omitempty"`
	Seed                *int64              `json:"seed,omitempty"`
	PresencePenalty     *float64            `json:"presence_penalty,omitempty"`
	FrequencyPenalty    *float64            `json:"frequency_penalty,omitempty"`
	Tools               *[]Tool             `json:"tools,omitempty"`
	ToolChoice          any                 `json:"tool_choice,omitempty"` // a mode, or AllowedToolChoice
	ParallelToolCalls   *bool               `json:"parallel_tool_calls,omitempty"`
	ResponseFormat      *ResponseFormat     `json:"response_format,omitempty"`
	Verbosity           string              `json:"verbosity,omitempty"` // low, medium or high
	ServiceTier         string              `json:"service_tier,omitempty"`
	User                string              `json:"user,omitempty"`
	UserID              string              `json:"user_id,omitempty"`           // Z.ai, in place of User
	SafetyIdentifier    string              `json:"safety_identifier,omitempty"` // Moonshot, in place of User
	Thinking            *Thinking           `json:"thinking,omitempty"`          // Z.ai, Moonshot
	ReasoningEffort     string              `json:"reasoning_effort,omitempty"`
	PromptCacheKey      string              `json:"prompt_cache_key,omitempty"`     // Moonshot
	ChatTemplateKwargs  *ChatTemplateKwargs `json:"chat_template_kwargs,omitempty"` // vLLM
	Messages            []Message           `json:"messages"`
}

// ResponseFormat is any JSON object, or JSON of a schema.
type ResponseFormat struct {
	Type       string      `json:"type"` // json_object or json_schema
	JSONSchema *JSONSchema `json:"json_schema,omitempty"`
}

// JSONSchema is a schema with what the model is told of it.
type JSONSchema struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`
	Strict      *bool           `json:"strict,omitempty"`
}

// StreamOptions asks for the usage chunk.
type StreamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// Thinking switches thinking on or off, and says what becomes of the thinking of earlier turns.
type Thinking struct {
	Type          string `json:"type"`                     // "enabled" or "disabled"
	Keep          string `json:"keep,omitempty"`           // Moonshot: "all"
	ClearThinking *bool  `json:"clear_thinking,omitempty"` // Z.ai
}

// ChatTemplateKwargs are what vLLM hands to the chat template of the model.
type ChatTemplateKwargs struct {
	EnableThinking  *bool  `json:"enable_thinking,omitempty"`
	Thinking        bool   `json:"thinking,omitempty"`
	ReasoningEffort string `json:"reasoning_effort,omitempty"`
}

// Tool is a function the model may call. Function is the object {name, description, parameters, …}.
type Tool struct {
	Type     string          `json:"type"` // "function"
	Function json.RawMessage `json:"function"`
}

// AllowedToolChoice limits the model to some of the tools.
type AllowedToolChoice struct {
	Type         string       `json:"type"` // "allowed_tools"
	AllowedTools AllowedTools `json:"allowed_tools"`
}

// AllowedTools names tools; Mode says whether one of them must be called.
type AllowedTools struct {
	Mode  string         `json:"mode"` // "auto" or "required"
	Tools []FunctionTool `json:"tools"`
}

// FunctionTool names a tool.
type FunctionTool struct {
	Type     string       `json:"type"` // "function"
	Function FunctionName `json:"function"`
}

// FunctionName is the name of a function.
type FunctionName struct {
	Name string `json:"name"`
}

// Message is one turn. Content is a text, or a list of parts.
type Message struct {
	Role             string            `json:"role"` // system, user, assistant, tool
	ToolCallID       string            `json:"tool_call_id,omitempty"`
	Content          any               `json:"content,omitempty"` // string or []ContentPart
	ToolCalls        []ToolCall        `json:"tool_calls,omitempty"`
	ReasoningContent *string           `json:"reasoning_content,omitempty"`
	Reasoning        *string           `json:"reasoning,omitempty"`
	ReasoningDetails []ReasoningDetail `json:"reasoning_details,omitempty"`
}

// ReasoningDetail is a piece of reasoning as gateways to several vendors say it: text (of a block that may be signed), a
// summary, or data that only the vendor reads. In a stream the text of a block comes in pieces, its signature at the end.
type ReasoningDetail struct {
	Type      string `json:"type,omitempty"` // "reasoning.text", "reasoning.summary" or "reasoning.encrypted"
	ID        string `json:"id,omitempty"`
	Format    string `json:"format,omitempty"` // the vendor's, such as "anthropic-claude-v1"
	Index     *int64 `json:"index,omitempty"`  // of the block
	Text      string `json:"text,omitempty"`
	Summary   string `json:"summary,omitempty"`
	Data      string `json:"data,omitempty"`
	Signature string `json:"signature,omitempty"`
}

// Bound reports whether the detail holds what only its vendor can make.
func (r *ReasoningDetail) Bound() bool { return r.Data != "" || r.Signature != "" }

// Said returns what a reader may read of it.
func (r *ReasoningDetail) Said() string { return r.Text + r.Summary }

// ContentPart is a piece of text, a picture, a document or a sound.
type ContentPart struct {
	Type       string      `json:"type"` // text, image_url, file or input_audio
	Text       *string     `json:"text,omitempty"`
	ImageURL   *ImageURL   `json:"image_url,omitempty"`
	File       *File       `json:"file,omitempty"`
	InputAudio *InputAudio `json:"input_audio,omitempty"`
}

// File is a document.
type File struct {
	Filename string `json:"filename"`
	FileData string `json:"file_data"` // a data URL
}

// InputAudio is a sound.
type InputAudio struct {
	Data   string `json:"data"`   // base64
	Format string `json:"format"` // wav or mp3
}

// ImageURL is a picture by URL.
type ImageURL struct {
	URL    string `json:"url"`
	Detail string `json:"detail,omitempty"`
}

// ToolCall is a call the model made.
type ToolCall struct {
	ID       string       `json:"id"`
	Type     string       `json:"type"` // "function"
	Function FunctionCall `json:"function"`
}

// FunctionCall holds the arguments as the text of a JSON object.
type FunctionCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// Encode returns the body: compact, non-ASCII and markup characters as they are.
func (r *Request) Encode() ([]byte, error) {
	var body bytes.Buffer
	e := json.NewEncoder(&body)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(body.Bytes(), []byte("\n")), nil
}
