// Package interactions is the Gemini Interactions protocol on the wire: its requests, and its stream events with their
// fast decoding; and of the same API the embeddings and the list of models. It knows nothing of the message format of
// this module.
package interactions

import (
	"bytes"
	"encoding/json"
)

// Request is the body of POST /v1beta/interactions.
type Request struct {
	Model             string           `json:"model"`
	Stream            bool             `json:"stream"`
	Store             bool             `json:"store"` // false: every request carries the whole conversation
	ServiceTier       string           `json:"service_tier,omitempty"`
	GenerationConfig  GenerationConfig `json:"generation_config,omitzero"`
	ResponseFormat    any              `json:"response_format,omitempty"` // Format or []Format
	SystemInstruction string           `json:"system_instruction,omitempty"`
	Tools             *[]Tool          `json:"tools,omitempty"`
	Input             []Step           `json:"input"`
}

// GenerationConfig says how the model answers.
type GenerationConfig struct {
	MaxOutputTokens   *int64   `json:"max_output_tokens,omitempty"` // thinking included
	Seed              *int64   `json:"seed,omitempty"`
	StopSequences     []string `json:"stop_sequences,omitempty"`
	ThinkingLevel     string   `json:"thinking_level,omitempty"`     // minimal, low, medium or high
	ThinkingSummaries string   `json:"thinking_summaries,omitempty"` // auto or none
	ToolChoice        any      `json:"tool_choice,omitempty"`        // auto, any, none, or AllowedToolChoice
	SpeechConfig      []Voice  `json:"speech_config,omitempty"`
}

// AllowedToolChoice makes the model call one of the tools named.
type AllowedToolChoice struct {
	AllowedTools AllowedTools `json:"allowed_tools"`
}

// AllowedTools names tools.
type AllowedTools struct {
	Mode  string   `json:"mode"` // "any"
	Tools []string `json:"tools"`
}

// Voice is the voice of one speaker. A single one has no name.
type Voice struct {
	Speaker string `json:"speaker,omitempty"`
	Voice   string `json:"voice"`
}

// Format is a kind of output that is wanted.
type Format struct {
	Type        string          `json:"type"` // text, image or audio
	AspectRatio string          `json:"aspect_ratio,omitempty"`
	ImageSize   string          `json:"image_size,omitempty"`
	MimeType    string          `json:"mime_type,omitempty"` // of text: "application/json"
	Schema      json.RawMessage `json:"schema,omitempty"`    // of JSON
}

// Tool is a function the model may call: the text of the object {name, description, parameters, …}, which stands on the
// wire with the type beside these keys.
type Tool []byte

// MarshalJSON writes the object with its type in front.
func (t Tool) MarshalJSON() ([]byte, error) {
	return append([]byte(`{"type":"function",`), bytes.TrimPrefix(t, []byte("{"))...), nil
}

// Step is a piece of the conversation. Type says which fields count.
type Step struct {
	Type string `json:"type"` // user_input, model_output, thought, function_call or function_result

	Content []Content `json:"content,omitempty"` // user_input, model_output

	Summary   []Content `json:"summary,omitzero"`    // thought: nil is left out, an empty one is sent
	Signature string    `json:"signature,omitempty"` // thought

	Name      string          `json:"name,omitempty"`      // function_call, function_result
	Arguments json.RawMessage `json:"arguments,omitempty"` // function_call: an object
	ID        string          `json:"id,omitempty"`        // function_call
	Result    any             `json:"result,omitempty"`    // function_result: a string or []Content
	CallID    string          `json:"call_id,omitempty"`   // function_result
	IsError   bool            `json:"is_error,omitempty"`  // function_result
}

// Content is a piece of text, or a document of any kind.
type Content struct {
	Type        string       `json:"type"` // text, image, audio, video or document
	Text        string       `json:"text,omitempty"`
	Annotations []Annotation `json:"annotations,omitempty"` // of text
	Data        string       `json:"data,omitempty"`        // base64
	MimeType    string       `json:"mime_type,omitempty"`
}

// Annotation says who speaks a text.
type Annotation struct {
	Type    string `json:"type"` // "speech_metadata"
	Speaker string `json:"speaker"`
}

// EmbedRequest is the body of POST /v1beta/models/{model}:batchEmbedContents.
type EmbedRequest struct {
	Requests []EmbedContentRequest `json:"requests"`
}

// EmbedContentRequest asks for the vector of one content.
type EmbedContentRequest struct {
	Model                string       `json:"model"` // with "models/" before the id
	Content              EmbedContent `json:"content"`
	OutputDimensionality *int64       `json:"outputDimensionality,omitempty"`
}

// EmbedContent is what a vector is made of.
type EmbedContent struct {
	Role  string      `json:"role"` // user or model
	Parts []EmbedPart `json:"parts"`
}

// EmbedPart is a text or a document.
type EmbedPart struct {
	Text       *string     `json:"text,omitempty"`
	InlineData *InlineData `json:"inlineData,omitempty"`
}

// InlineData is a document.
type InlineData struct {
	Data     string `json:"data"` // base64
	MimeType string `json:"mimeType"`
}

// Encode returns the body.
func (r *Request) Encode() ([]byte, error) { return encode(r) }

// Encode returns the body.
func (r *EmbedRequest) Encode() ([]byte, error) { return encode(r) }

// encode writes compact JSON, non-ASCII and markup characters as they are.
func encode(r any) ([]byte, error) {
	var body bytes.Buffer
	e := json.NewEncoder(&body)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(body.Bytes(), []byte("\n")), nil
}
