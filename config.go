package mmsp

import "encoding/json"

// Config says how the model is to answer. Every field is optional; a client that cannot take a given value returns an
// UnsupportedParameterError before any request. JSON names are those of the wire.
type Config struct {
	MaxTokens         *int64   // of the answer, thinking included
	Temperature       *float64 // 1 is every model's own and never refused
	TopP              *float64 // as with the temperature, 1 is never refused
	TopK              *int64   // how many of the likeliest tokens are drawn from
	StopSequences     []string // texts that end the answer; the one met is no part of it
	Seed              *int64
	PresencePenalty   *float64 // 0 is never refused
	FrequencyPenalty  *float64 // 0 is never refused
	SystemPrompt      *string
	Tools             []Tool // nil: absent; empty: given, and sent as an empty list
	ToolChoice        *ToolChoice
	ParallelToolCalls *bool // several calls in one turn; true, which is every model's own, is never refused
	ResponseFormat    *ResponseFormat
	ThinkingLevel     ThinkingLevel
	ThinkingBudget    *int64 // tokens, where no level is given; see EffectiveThinkingLevel
	ThinkingSummary   *bool
	Verbosity         Verbosity
	PromptCaching     PromptCaching
	FastMode          bool
	ServiceTier       string // the provider's word, such as auto, default, flex or priority; outranks FastMode where both mean a tier

	// PromptCacheKey lets requests that begin alike find the same cache: sent where the provider routes by it, never refused.
	PromptCacheKey string

	// Who asks and why, for the provider's records: sent where the protocol has a place, left out elsewhere, never refused.
	User     string          // a stable id of the end user
	Metadata json.RawMessage // one object

	ImageConfig     *ImageConfig
	TTSConfig       []TTSVoice
	EmbeddingConfig *EmbeddingConfig
	TraceID         string          // relative path of the trace files, see Tracer
	Extra           json.RawMessage // unknown keys, as one object
}

// EffectiveThinkingLevel returns ThinkingLevel or, where only a budget is given, the level that costs nearest to it: no
// tokens are none, and a negative budget, which leaves the choice to the model, is no level.
func (c *Config) EffectiveThinkingLevel() ThinkingLevel {
	if c.ThinkingLevel != "" || c.ThinkingBudget == nil || *c.ThinkingBudget < 0 {
		return c.ThinkingLevel
	}
	for _, l := range []struct {
		below int64 // half way to the next level's budget
		level ThinkingLevel
	}{{1, ThinkingNone}, {4608, ThinkingLow}, {16384, ThinkingMedium}, {36864, ThinkingHigh}, {65536, ThinkingXHigh}} {
		if *c.ThinkingBudget < l.below {
			return l.level
		}
	}
	return ThinkingMax
}

// Tool is a function the model may call.
type Tool struct {
	Name        string
	Description string
	Parameters  json.RawMessage // a JSON Schema; nil: absent
	Strict      *bool           // arguments must fit the schema; left out where a provider cannot promise it
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

// ResponseFormat says what the text of the answer must be.
type ResponseFormat struct {
	Type        string          // text, json_object or json_schema
	Name        string          // json_schema: some providers show it to the model
	Description string          // json_schema: likewise
	Schema      json.RawMessage // json_schema: a JSON Schema
	Strict      *bool           // json_schema: providers that know both are told; the others always are strict
	Extra       json.RawMessage // unknown keys, as one object
}

// Response formats.
const (
	FormatText       = "text"
	FormatJSONObject = "json_object" // any JSON object
	FormatJSONSchema = "json_schema" // JSON that fits the schema
)

// Verbosity says how long the answer is to be.
type Verbosity string

// The verbosities.
const (
	VerbosityLow    Verbosity = "low"
	VerbosityMedium Verbosity = "medium"
	VerbosityHigh   Verbosity = "high"
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
	Voice   string // the provider's name of it
	Speaker string // as the text names who speaks; empty where there is one voice
}

// EmbeddingConfig shapes embedding vectors.
type EmbeddingConfig struct {
	Dimensions *int64 // numbers in a vector; nil: as many as the model gives
}
