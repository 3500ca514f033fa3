package mmsp

import "encoding/json"

// Config says how the model is to answer. Every field is optional; a client that cannot take a given value returns an
// UnsupportedParameterError before any request. JSON names are those of the wire.
type Config struct {
	MaxTokens       *int64
	Temperature     *float64
	SystemPrompt    *string
	Tools           []Tool // nil: absent; empty: given, and sent as an empty list
	ToolChoice      *ToolChoice
	ThinkingLevel   ThinkingLevel
	ThinkingSummary *bool
	PromptCaching   PromptCaching
	FastMode        bool
	ImageConfig     *ImageConfig
	TTSConfig       []TTSVoice
	EmbeddingConfig *EmbeddingConfig
	TraceID         string          // relative path of the trace files, see Tracer
	Extra           json.RawMessage // unknown keys, as one object
}

// Tool is a function the model may call.
type Tool struct {
	Name        string
	Description string
	Parameters  json.RawMessage // a JSON Schema; nil: absent
	Extra       json.RawMessage // unknown keys, as one object; sent to providers too
}

// ToolChoice is a mode, or the names of the tools of which one must be called.
type ToolChoice struct {
	Mode  string // auto, required or none; empty when Names is given
	Names []string
}

// Tool choice modes.
const (
	ToolChoiceAuto     = "auto"
	ToolChoiceRequired = "required"
	ToolChoiceNone     = "none"
)

// ThinkingLevel says how much the model thinks. A level that a model lacks becomes the nearest one it has.
type ThinkingLevel string

// The thinking levels.
const (
	ThinkingNone   ThinkingLevel = "none"
	ThinkingLow    ThinkingLevel = "low"
	ThinkingMedium ThinkingLevel = "medium"
	ThinkingHigh   ThinkingLevel = "high"
	ThinkingXHigh  ThinkingLevel = "xhigh"
	ThinkingMax    ThinkingLevel = "max"
)

// PromptCaching says whether the provider may cache the prompt.
type PromptCaching string

// The caching modes.
const (
	CachingEnable  PromptCaching = "enable"
	CachingDisable PromptCaching = "disable"
	CachingEnhance PromptCaching = "enhance" // keep it longer
)

// ImageConfig shapes generated images.
type ImageConfig struct {
	AspectRatio string // 1:1, 2:3, 3:2, 3:4, 4:3, 9:16, 16:9 or 21:9
	ImageSize   string // 1K or 2K
}

// TTSVoice is the voice of one speaker.
type TTSVoice struct {
	Voice   string
	Speaker string
}

// EmbeddingConfig shapes embedding vectors.
type EmbeddingConfig struct {
	Dimensions *int64
}
