// Package genai is Google's generateContent protocol on the wire: its requests with the subset of JSON Schema that they
// take, its stream events with their fast decoding, and the answers of its embedding and listing calls. It knows nothing
// of the message format of this module.
package genai

import (
	"bytes"
	"encoding/json"
)

// SkipSignature is a thought signature that the API takes on a call that it did not issue.
const SkipSignature = "skip_thought_signature_validator"

// Request is the body of POST …/models/{model}:streamGenerateContent.
type Request struct {
	SystemInstruction *Content          `json:"systemInstruction,omitempty"`
	Tools             []Tool            `json:"tools,omitempty"`
	ToolConfig        *ToolConfig       `json:"toolConfig,omitempty"`
	Contents          []Content         `json:"contents"`
	GenerationConfig  *GenerationConfig `json:"generationConfig,omitempty"`
	ServiceTier       string            `json:"serviceTier,omitempty"` // flex, standard or priority
}

// CountRequest is the body of POST …/models/{model}:countTokens. Google's own endpoint takes a whole request, which must name
// the model; Vertex AI takes the fields of one that count.
type CountRequest struct {
	GenerateContentRequest *NamedRequest `json:"generateContentRequest,omitempty"`

	SystemInstruction *Content          `json:"systemInstruction,omitempty"`
	Tools             []Tool            `json:"tools,omitempty"`
	Contents          []Content         `json:"contents,omitempty"`
	GenerationConfig  *GenerationConfig `json:"generationConfig,omitempty"`
}

// NamedRequest is a request with the model that the path names elsewhere.
type NamedRequest struct {
	Model string `json:"model"` // models/…
	*Request
}

// Content is one turn, or the system instruction, which has no role.
type Content struct {
	Role  string `json:"role,omitempty"` // user or model
	Parts []Part `json:"parts,omitempty"`
}

// Part is a piece of a turn: one of text, data, a call or the answer to one.
type Part struct {
	Text             *string           `json:"text,omitempty"`
	InlineData       *Blob             `json:"inlineData,omitempty"`
	FunctionCall     *FunctionCall     `json:"functionCall,omitempty"`
	FunctionResponse *FunctionResponse `json:"functionResponse,omitempty"`
	Thought          bool              `json:"thought,omitempty"`
	ThoughtSignature string            `json:"thoughtSignature,omitempty"` // base64, as it came
	SpeechMetadata   *SpeechMetadata   `json:"speech_metadata,omitempty"`
}

// Blob is a picture, a sound or a document.
type Blob struct {
	MimeType string `json:"mimeType"`
	Data     []byte `json:"data"` // base64 on the wire
}

// FunctionCall is a call the model made.
type FunctionCall struct {
	ID   string          `json:"id,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"` // an object
}

// FunctionResponse is the answer to a call.
type FunctionResponse struct {
	ID       string         `json:"id,omitempty"`
	Name     string         `json:"name"`
	Response FunctionResult `json:"response"`
	Parts    []Part         `json:"parts,omitempty"` // inline data
}

// FunctionResult is what a function returned, or why it failed.
type FunctionResult struct {
	Result *string `json:"result,omitempty"`
	Error  *string `json:"error,omitempty"`
}

// SpeechMetadata names who speaks a part that is read aloud.
type SpeechMetadata struct {
	Speaker string `json:"speaker"`
}

// Tool holds functions the model may call.
type Tool struct {
	FunctionDeclarations []FunctionDeclaration `json:"functionDeclarations"`
}

// FunctionDeclaration is one function. Parameters is nil for one that takes none.
type FunctionDeclaration struct {
	Name        string  `json:"name"`
	Description string  `json:"description,omitempty"`
	Parameters  *Schema `json:"parameters,omitempty"`
}

// ToolConfig says whether functions are called.
type ToolConfig struct {
	FunctionCallingConfig FunctionCallingConfig `json:"functionCallingConfig"`
}

// FunctionCallingConfig is a mode, with ANY limited to some of the functions.
type FunctionCallingConfig struct {
	Mode                 string   `json:"mode"` // AUTO, ANY or NONE
	AllowedFunctionNames []string `json:"allowedFunctionNames,omitempty"`
}

// GenerationConfig shapes the answer.
type GenerationConfig struct {
	MaxOutputTokens    *int64          `json:"maxOutputTokens,omitempty"`
	StopSequences      []string        `json:"stopSequences,omitempty"`
	Seed               *int64          `json:"seed,omitempty"`
	PresencePenalty    *float64        `json:"presencePenalty,omitempty"`
	FrequencyPenalty   *float64        `json:"frequencyPenalty,omitempty"`
	ResponseMimeType   string          `json:"responseMimeType,omitempty"`   // "application/json"
	ResponseJSONSchema json.RawMessage `json:"responseJsonSchema,omitempty"` // with that type
	ThinkingConfig     *ThinkingConfig `json:"thinkingConfig,omitempty"`
	ImageConfig        *ImageConfig    `json:"imageConfig,omitempty"`
	ResponseModalities []string        `json:"responseModalities,omitempty"`
	SpeechConfig       *SpeechConfig   `json:"speechConfig,omitempty"`
}

// ThinkingConfig says how the model thinks and whether it shows it.
type ThinkingConfig struct {
	IncludeThoughts *bool  `json:"includeThoughts,omitempty"`
	ThinkingLevel   string `json:"thinkingLevel,omitempty"`  // MINIMAL, LOW, MEDIUM or HIGH
	ThinkingBudget  *int64 `json:"thinkingBudget,omitempty"` // tokens; -1: the model decides
}

// ImageConfig shapes generated pictures.
type ImageConfig struct {
	AspectRatio string `json:"aspectRatio,omitempty"`
	ImageSize   string `json:"imageSize,omitempty"`
}

// SpeechConfig is one voice, or a voice per speaker.
type SpeechConfig struct {
	VoiceConfig             *VoiceConfig             `json:"voiceConfig,omitempty"`
	MultiSpeakerVoiceConfig *MultiSpeakerVoiceConfig `json:"multiSpeakerVoiceConfig,omitempty"`
}

// VoiceConfig chooses a voice.
type VoiceConfig struct {
	PrebuiltVoiceConfig PrebuiltVoice `json:"prebuiltVoiceConfig"`
}

// PrebuiltVoice is a voice by its name.
type PrebuiltVoice struct {
	VoiceName string `json:"voiceName"`
}

// MultiSpeakerVoiceConfig chooses a voice for each speaker.
type MultiSpeakerVoiceConfig struct {
	SpeakerVoiceConfigs []SpeakerVoice `json:"speakerVoiceConfigs"`
}

// SpeakerVoice is the voice of one speaker.
type SpeakerVoice struct {
	Speaker     string      `json:"speaker"`
	VoiceConfig VoiceConfig `json:"voiceConfig"`
}

// BatchEmbedRequest is the body of POST …/models/{model}:batchEmbedContents.
type BatchEmbedRequest struct {
	Requests []EmbedRequest `json:"requests"`
}

// EmbedRequest is one content to embed, and the body of POST …/models/{model}:embedContent, where the path names the model.
type EmbedRequest struct {
	Model                string  `json:"model,omitempty"` // models/…
	Content              Content `json:"content"`
	OutputDimensionality *int64  `json:"outputDimensionality,omitempty"`
}

// Encode returns a body: compact, non-ASCII and markup characters as they are.
func Encode[T Request | CountRequest | BatchEmbedRequest | EmbedRequest](request *T) ([]byte, error) {
	var body bytes.Buffer
	e := json.NewEncoder(&body)
	e.SetEscapeHTML(false)
	if err := e.Encode(request); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(body.Bytes(), []byte("\n")), nil
}
