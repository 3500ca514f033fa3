// Package googlegenai is the client type "google-genai": any endpoint of the generateContent protocol, Google's own with an
// API key, a gateway's, or Vertex AI with the JSON key of a service account.
package googlegenai

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/internal/credentials"
	"github.com/prism-shadow/mmsp-go/internal/failure"
	"github.com/prism-shadow/mmsp-go/internal/fetch"
	"github.com/prism-shadow/mmsp-go/internal/images"
	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
	"github.com/prism-shadow/mmsp-go/internal/sse"
	"github.com/prism-shadow/mmsp-go/internal/tokens"
	"github.com/prism-shadow/mmsp-go/internal/upstream"
	"github.com/prism-shadow/mmsp-go/wire/genai"
)

const class = "GoogleGenaiClient"

const (
	geminiURL = "https://generativelanguage.googleapis.com"
	vertexURL = "https://aiplatform.googleapis.com"

	defaultVoice = "Kore"

	maxEmbedBatch  = 100 // contents in one batchEmbedContents
	maxModelPages  = 1000
	maxModelsBytes = 16 << 20 // of one page
	maxNameBytes   = 1 << 10  // of a function, which every answer to a call repeats
	maxTurns       = 1 << 16  // of a script for two speakers

	// usageWait is how long the usage and the end of the stream are waited for after a finish reason without usage.
	usageWait = 5 * time.Second
)

// redactedThinking is the text of a thinking item that another provider keeps to itself. It says nothing here.
const redactedThinking = "_REDACTED_THINKING"

// Client speaks generateContent for one model.
type Client struct {
	model      string
	key        mmsp.Secret // without an account
	account    *account    // of Vertex AI
	modelURL   string      // of the model's methods: what follows is a colon and their name
	listURL    string
	issuer     string // of the thought signatures that this endpoint gives
	headers    map[string]string
	limits     mmsp.HTTPOptions
	debug      bool // parts that the client does not know are errors
	embeds     bool // the model makes vectors
	speaks     bool // the model makes speech
	http       *upstream.Client
	fetcher    *fetch.Fetcher
	batchModel string // the name that the contents of a batch repeat; empty where each is a request of its own
}

// New reads the key and the endpoint from the options or GEMINI_API_KEY and GEMINI_BASE_URL. A key that starts with { is that
// of a service account and means Vertex AI.
func New(o mmsp.Options) (*Client, error) {
	key, baseURL, err := credentials.Resolve(&o, credentials.Rule{
		Class: class, KeyVar: "GEMINI_API_KEY", URLVar: "GEMINI_BASE_URL", DefaultURL: geminiURL, KeyDocument: true,
	})
	if err != nil {
		return nil, err
	}
	c := &Client{
		model: o.Model, headers: o.DefaultHeaders, limits: o.HTTP,
		debug:   !slices.Contains([]string{"", "0", "false", "no", "off"}, strings.ToLower(strings.TrimSpace(o.Env("MMSP_DEBUG")))),
		embeds:  strings.Contains(strings.ToLower(o.Model), "embedding"),
		speaks:  strings.Contains(strings.ToLower(o.Model), "tts"),
		http:    upstream.New(o.HTTPClient, o.HTTP),
		fetcher: fetch.New(fetch.Options{AllowPrivate: o.AllowPrivateFetch, MaxBytes: o.HTTP.MaxFetchBytes}),
	}
	version := "/v1beta"
	model := "models/" + o.Model
	if strings.HasPrefix(o.Model, "models/") || strings.HasPrefix(o.Model, "tunedModels/") {
		model = o.Model
	}
	c.batchModel = model
	if strings.HasPrefix(key.Reveal(), "{") {
		project := ""
		if c.account, project, err = newAccount(key.Reveal(), c.http); err != nil {
			return nil, err
		}
		if cmp.Or(o.BaseURL, o.Env("GEMINI_BASE_URL")) == "" {
			baseURL = vertexURL
		}
		version, c.batchModel = "/v1beta1", ""
		model = "projects/" + project + "/locations/global/publishers/google/" + model
	} else {
		c.key = key
	}
	baseURL = strings.TrimSuffix(baseURL, version) + version // written with and without it
	endpoint, err := url.Parse(baseURL)
	if err != nil {
		return nil, err
	}
	switch c.issuer = strings.ToLower(endpoint.Host); {
	case c.account != nil && strings.HasSuffix(c.issuer, "aiplatform.googleapis.com"):
		c.issuer = "google@vertex"
	case c.account == nil && c.issuer == "generativelanguage.googleapis.com":
		c.issuer = "google"
	}
	c.modelURL = endpoint.JoinPath(model).String()
	c.listURL = endpoint.JoinPath("models").String()
	if c.account != nil {
		c.listURL = endpoint.JoinPath("publishers/google/models").String()
	}
	return c, nil
}

// Class returns the class name in errors.
func (c *Client) Class() string { return class }

// Model returns the upstream model id.
func (c *Client) Model() string { return c.model }

// Embeds reports whether the model makes vectors.
func (c *Client) Embeds() bool { return c.embeds }

func (c *Client) unsupported(parameter, reason string) error {
	return &mmsp.UnsupportedParameterError{Client: class, Parameter: parameter, Message: reason}
}

// convertThinkingLevel returns the level nearest to the wanted one that the model has, of two as near the higher. The groups
// of models are those of the protocol's clients.
func (c *Client) convertThinkingLevel(level mmsp.ThinkingLevel) string {
	names := []string{"MINIMAL", "LOW", "MEDIUM", "HIGH"}
	wanted, ok := map[mmsp.ThinkingLevel]int{
		mmsp.ThinkingNone: 0, mmsp.ThinkingLow: 1, mmsp.ThinkingMedium: 2, mmsp.ThinkingHigh: 3, mmsp.ThinkingXHigh: 3, mmsp.ThinkingMax: 3,
	}[level]
	if !ok {
		return ""
	}
	has := []int{0, 1, 2, 3}
	switch {
	case strings.Contains(c.model, "-image"):
		has = []int{0, 3}
	case strings.Contains(c.model, "gemini-3-pro"):
		has = []int{1, 3}
	case strings.Contains(c.model, "-pro"), strings.Contains(c.model, "gemini-3.7"), strings.Contains(c.model, "gemini-3.8"):
		has = []int{1, 2, 3}
	}
	nearest := has[0]
	distance := func(n int) int { return max(n-wanted, wanted-n) }
	for _, n := range has {
		if distance(n) <= distance(nearest) {
			nearest = n
		}
	}
	return names[nearest]
}

func (c *Client) convertToolChoice(choice *mmsp.ToolChoice) *genai.ToolConfig {
	calling := genai.FunctionCallingConfig{Mode: "ANY", AllowedFunctionNames: choice.Names} // one of the names must be called
	switch choice.Mode {
	case mmsp.ToolChoiceAuto:
		calling.Mode = "AUTO"
	case mmsp.ToolChoiceNone:
		calling.Mode = "NONE"
	}
	return &genai.ToolConfig{FunctionCallingConfig: calling}
}

// convertVoices makes the voices of a model that speaks.
func (c *Client) convertVoices(voices []mmsp.TTSVoice) (*genai.SpeechConfig, error) {
	voice := func(name string) genai.VoiceConfig {
		return genai.VoiceConfig{PrebuiltVoiceConfig: genai.PrebuiltVoice{VoiceName: name}}
	}
	switch len(voices) {
	case 0:
		return &genai.SpeechConfig{VoiceConfig: new(voice(defaultVoice))}, nil
	case 1:
		return &genai.SpeechConfig{VoiceConfig: new(voice(voices[0].Voice))}, nil
	case 2:
		several := &genai.MultiSpeakerVoiceConfig{}
		for i := range voices {
			if voices[i].Speaker == "" {
				return nil, c.unsupported("tts_config", "each of two voices needs a speaker")
			}
			several.SpeakerVoiceConfigs = append(several.SpeakerVoiceConfigs, genai.SpeakerVoice{Speaker: voices[i].Speaker, VoiceConfig: voice(voices[i].Voice)})
		}
		return &genai.SpeechConfig{MultiSpeakerVoiceConfig: several}, nil
	}
	return nil, c.unsupported("tts_config", "Gemini speaks with one or two voices")
}

// convertServiceTier names the tier as Google does, or not at all where it is the project's own.
func (c *Client) convertServiceTier(tier string) (string, error) {
	switch tier {
	case "", "auto":
		return "", nil
	case "default", "standard":
		return "standard", nil
	case "flex", "priority":
		return tier, nil
	}
	return "", c.unsupported("service_tier", "Gemini has the service tiers flex, standard and priority")
}

// transformUniConfigToModelConfig turns the config into the request but for its contents.
func (c *Client) transformUniConfigToModelConfig(config *mmsp.Config) (*genai.Request, error) {
	request := &genai.Request{}
	generation := genai.GenerationConfig{MaxOutputTokens: config.MaxTokens}
	given := config.MaxTokens != nil
	if config.Temperature != nil {
		return nil, c.unsupported("temperature", "Gemini takes no temperature")
	}
	for _, p := range []struct {
		name  string
		given bool
	}{
		{"top_p", config.TopP != nil && *config.TopP != 1},
		{"top_k", config.TopK != nil},
		{"parallel_tool_calls", config.ParallelToolCalls != nil && !*config.ParallelToolCalls},
		{"verbosity", config.Verbosity != ""},
		{"stop_sequences", c.speaks && len(config.StopSequences) > 0},
		{"seed", c.speaks && config.Seed != nil},
		{"presence_penalty", c.speaks && config.PresencePenalty != nil && *config.PresencePenalty != 0},
		{"frequency_penalty", c.speaks && config.FrequencyPenalty != nil && *config.FrequencyPenalty != 0},
	} {
		if p.given {
			return nil, c.unsupported(p.name, c.model+" has no "+p.name)
		}
	}
	if config.FastMode {
		return nil, c.unsupported("fast_mode", "generateContent has no fast mode")
	}
	if config.PromptCaching != "" && config.PromptCaching != mmsp.CachingEnable {
		return nil, c.unsupported("prompt_caching", "Gemini caches prompts by itself; only enable is possible")
	}
	if c.account != nil && config.ServiceTier != "" {
		return nil, c.unsupported("service_tier", "Vertex AI has no service tiers in its requests")
	}
	var err error
	if request.ServiceTier, err = c.convertServiceTier(config.ServiceTier); err != nil {
		return nil, err
	}
	if c.speaks { // everything else is refused
		if config.ResponseFormat != nil && config.ResponseFormat.Type != mmsp.FormatText {
			return nil, c.unsupported("response_format", c.model+" speaks; it writes no JSON")
		}
		generation.ResponseModalities = []string{"AUDIO"}
		generation.SpeechConfig, err = c.convertVoices(config.TTSConfig)
		request.GenerationConfig = &generation
		return request, err
	}
	if config.SystemPrompt != nil && *config.SystemPrompt != "" {
		request.SystemInstruction = &genai.Content{Parts: []genai.Part{{Text: config.SystemPrompt}}}
	}
	if len(config.StopSequences) > 0 || config.Seed != nil {
		given = true
		generation.StopSequences, generation.Seed = config.StopSequences, config.Seed
	}
	if p := config.PresencePenalty; p != nil && *p != 0 { // some models refuse the field, whatever it says
		given = true
		generation.PresencePenalty = p
	}
	if p := config.FrequencyPenalty; p != nil && *p != 0 {
		given = true
		generation.FrequencyPenalty = p
	}
	if format := config.ResponseFormat; format != nil && format.Type != mmsp.FormatText {
		given = true
		generation.ResponseMimeType, generation.ResponseJSONSchema = "application/json", format.Schema
	}
	level, budget := c.convertThinkingLevel(config.EffectiveThinkingLevel()), (*int64)(nil)
	if config.ThinkingLevel == "" && strings.Contains(c.model, "gemini-2.5") { // which knows budgets and no levels
		level, budget = "", config.ThinkingBudget
	}
	if config.ThinkingSummary != nil || level != "" || budget != nil {
		given = true
		generation.ThinkingConfig = &genai.ThinkingConfig{IncludeThoughts: config.ThinkingSummary, ThinkingLevel: level, ThinkingBudget: budget}
	}
	if len(config.Tools) > 0 {
		functions := make([]genai.FunctionDeclaration, len(config.Tools))
		var schemas genai.Schemas
		for i := range config.Tools {
			tool := &config.Tools[i]
			parameters, err := schemas.Parameters(tool.Parameters)
			if err != nil {
				return nil, c.unsupported(fmt.Sprintf("tools[%d].parameters", i), fmt.Sprintf("the parameters of %.64q: %v", tool.Name, err))
			}
			// Further keys of a tool are left out: the API refuses a declaration with a key that it does not know.
			functions[i] = genai.FunctionDeclaration{Name: tool.Name, Description: tool.Description, Parameters: parameters}
		}
		request.Tools = []genai.Tool{{FunctionDeclarations: functions}}
		if config.ToolChoice != nil {
			request.ToolConfig = c.convertToolChoice(config.ToolChoice)
		}
	}
	if image := config.ImageConfig; image != nil {
		given = true
		generation.ImageConfig = &genai.ImageConfig{AspectRatio: image.AspectRatio, ImageSize: image.ImageSize}
	}
	if given {
		request.GenerationConfig = &generation
	}
	return request, nil
}

// convertImage makes inline data of a picture; the protocol fetches none.
func (c *Client) convertImage(ctx context.Context, url string) (*genai.Blob, error) {
	if !strings.EqualFold(url[:min(len(url), len("data:"))], "data:") {
		var err error
		if url, err = c.fetcher.Image(ctx, url); err != nil {
			return nil, err
		}
	}
	mediaType, payload, ok := images.ParseDataURL(url)
	data := images.Decode(payload)
	if mediaType == "" {
		mediaType = images.Sniff(data)
	}
	if !ok || mediaType == "" {
		return nil, errors.New("a data URL must be base64 and name its media type")
	}
	return &genai.Blob{MimeType: mediaType, Data: data}, nil
}

// transformUniMessageToModelInput turns the messages into the contents of the request, the parts in the order of the items.
func (c *Client) transformUniMessageToModelInput(ctx context.Context, messages []mmsp.Message) ([]genai.Content, error) {
	ctx = fetch.ForRequest(ctx)
	contents := []genai.Content{}
	names := map[string]string{} // of the calls so far, by their ids
	for m := range messages {
		message := &messages[m]
		var parts []genai.Part
		for i := range message.ContentItems {
			item := &message.ContentItems[i]
			invalid := func(field, reason string) error {
				return &mmsp.InvalidRequestError{Param: fmt.Sprintf("messages[%d].content_items[%d]%s", m, i, field), Message: reason}
			}
			var fidelity struct {
				Signature string `json:"signature"`
				Issuer    string `json:"issuer"`
			}
			item.Fidelity.Decode(&fidelity)
			if fidelity.Issuer != "" && fidelity.Issuer != c.issuer {
				fidelity.Signature = ""
			}
			part := genai.Part{ThoughtSignature: fidelity.Signature}
			switch item.Type {
			case mmsp.TextDone:
				part.Text = &item.Text
			case mmsp.ThinkingDone:
				if item.Thinking == redactedThinking {
					continue
				}
				part.Text, part.Thought = &item.Thinking, true
			case mmsp.ImageURLDone:
				blob, err := c.convertImage(ctx, item.ImageURL)
				if err != nil {
					return nil, invalid(".image_url", err.Error())
				}
				part = genai.Part{InlineData: blob}
			case mmsp.InlineDataDone:
				part.InlineData = &genai.Blob{MimeType: item.MimeType, Data: item.Data}
			case mmsp.InlineThinkingDone:
				part.InlineData, part.Thought = &genai.Blob{MimeType: item.MimeType, Data: item.Data}, true
			case mmsp.ToolCallDone:
				if len(item.Name) > maxNameBytes {
					return nil, invalid(".name", fmt.Sprintf("the name of a function is longer than %d bytes", maxNameBytes))
				}
				call := &genai.FunctionCall{ID: item.ToolCallID, Name: item.Name, Args: json.RawMessage(cmp.Or(item.Arguments, "{}"))}
				names[item.ToolCallID] = item.Name
				if call.ID == call.Name { // it came without one
					call.ID = ""
				}
				part.FunctionCall = call
			case mmsp.ToolResultDone:
				response := &genai.FunctionResponse{ID: item.ToolCallID, Name: cmp.Or(names[item.ToolCallID], item.ToolCallID)}
				if response.ID == response.Name {
					response.ID = ""
				}
				if response.Response.Result = &item.Text; item.IsError {
					response.Response = genai.FunctionResult{Error: &item.Text}
				}
				for j, url := range item.Images {
					blob, err := c.convertImage(ctx, url)
					if err != nil {
						return nil, invalid(fmt.Sprintf(".images[%d]", j), err.Error())
					}
					response.Parts = append(response.Parts, genai.Part{InlineData: blob})
				}
				part = genai.Part{FunctionResponse: response}
			default:
				return nil, invalid("", fmt.Sprintf("%s cannot send %s items", class, item.Type))
			}
			parts = append(parts, part)
		}
		role := "user"
		if message.Role == mmsp.RoleAssistant {
			role = "model"
			parts = c.placeSignatures(parts)
		}
		// Answers to calls stand in contents of their own: Vertex AI refuses them beside anything else.
		if len(parts) == 0 {
			contents = append(contents, genai.Content{Role: role})
		}
		for len(parts) > 0 {
			answers := parts[0].FunctionResponse != nil
			end := slices.IndexFunc(parts, func(part genai.Part) bool { return (part.FunctionResponse != nil) != answers })
			if end < 0 {
				end = len(parts)
			}
			contents = append(contents, genai.Content{Role: role, Parts: parts[:end]})
			parts = parts[end:]
		}
	}
	return contents, nil
}

// placeSignatures puts the signatures of a turn where the API looks for them: on the first call, which must have one, and on
// what follows a thought. Turns of the Interactions protocol have them on the thoughts.
func (c *Client) placeSignatures(parts []genai.Part) []genai.Part {
	thinks := func(part *genai.Part) bool { return part.Thought && part.Text != nil }
	call := slices.IndexFunc(parts, func(part genai.Part) bool { return part.FunctionCall != nil })
	if call >= 0 && parts[call].ThoughtSignature == "" {
		parts[call].ThoughtSignature = genai.SkipSignature
		for i := call - 1; i >= 0; i-- {
			if thought := &parts[i]; thinks(thought) && thought.ThoughtSignature != "" {
				parts[call].ThoughtSignature, thought.ThoughtSignature = thought.ThoughtSignature, ""
				break
			}
		}
	}
	var signed []*genai.Part // thoughts that nothing has followed so far
	for i := range parts {
		switch part := &parts[i]; {
		case thinks(part) && part.ThoughtSignature != "":
			signed = append(signed, part)
		case len(signed) > 0 && !part.Thought && part.FunctionResponse == nil && part.ThoughtSignature == "":
			part.ThoughtSignature, signed[0].ThoughtSignature = signed[0].ThoughtSignature, ""
			signed = signed[1:]
		}
	}
	return slices.DeleteFunc(parts, func(part genai.Part) bool {
		return thinks(&part) && *part.Text == "" && part.ThoughtSignature == ""
	})
}

// transformSpeech makes the one turn that a model which speaks takes: the last message, which is text alone. Of two speakers
// the newest models want each turn marked with who speaks it; the others read labels in the text.
func (c *Client) transformSpeech(messages []mmsp.Message, voices []mmsp.TTSVoice) ([]genai.Content, error) {
	if len(messages) == 0 {
		return nil, &mmsp.InvalidRequestError{Param: "messages", Message: "there is nothing to say"}
	}
	m := len(messages) - 1
	turn := genai.Content{Role: "user"}
	var script []string
	for i := range messages[m].ContentItems {
		item := &messages[m].ContentItems[i]
		if item.Type != mmsp.TextDone {
			return nil, &mmsp.InvalidRequestError{
				Param:   fmt.Sprintf("messages[%d].content_items[%d]", m, i),
				Message: fmt.Sprintf("%s speaks text alone, not %s items", c.model, item.Type),
			}
		}
		script = append(script, item.Text)
		turn.Parts = append(turn.Parts, genai.Part{Text: &item.Text})
	}
	if len(voices) != 2 || !strings.Contains(c.model, "gemini-3.8") {
		return []genai.Content{turn}, nil
	}
	turn.Parts = nil
	var said []string // the lines of the last part
	flush := func() {
		if len(turn.Parts) > 0 {
			turn.Parts[len(turn.Parts)-1].Text = new(strings.TrimSpace(strings.Join(said, "\n")))
		}
		said = nil
	}
	for line := range strings.SplitSeq(strings.Join(script, "\n"), "\n") {
		label, rest, labelled := strings.Cut(line, ":")
		label = strings.TrimSpace(label)
		switch {
		case labelled && (label == voices[0].Speaker || label == voices[1].Speaker):
			if flush(); len(turn.Parts) == maxTurns {
				return nil, &mmsp.InvalidRequestError{Param: fmt.Sprintf("messages[%d]", m), Message: fmt.Sprintf("the script has more than %d turns", maxTurns)}
			}
			said = append(said, strings.TrimSpace(rest))
			turn.Parts = append(turn.Parts, genai.Part{SpeechMetadata: &genai.SpeechMetadata{Speaker: label}})
		case len(turn.Parts) > 0:
			said = append(said, line)
		case strings.TrimSpace(line) != "":
			return nil, &mmsp.InvalidRequestError{Param: fmt.Sprintf("messages[%d]", m), Message: "the script has text before the name of its first speaker"}
		}
	}
	flush()
	return []genai.Content{turn}, nil
}

// transformModelOutputToUniEvent turns one chunk into one event.
func (c *Client) transformModelOutputToUniEvent(modelOutput *genai.Chunk, event *mmsp.UniEvent) error {
	event.Reset()
	for i := range modelOutput.Parts {
		part := &modelOutput.Parts[i]
		var delta *mmsp.Delta
		switch {
		case part.Kind == genai.PartFunctionCall:
			id := part.ID
			if id == "" && part.Name != "" {
				id = part.Name
			}
			delta = event.AddToolCall("function_call", mmsp.CallRef{}, id, part.Name, part.Arguments)
		case part.Kind == genai.PartText && part.Text == "" && part.Signature == "":
			continue
		case part.Kind == genai.PartText && part.Thought:
			delta = event.AddThinking("thought", part.Text)
		case part.Kind == genai.PartText:
			delta = event.AddText("text", part.Text)
		case part.Kind == genai.PartInlineData:
			if delta = event.Add(mmsp.InlineDataDelta, "inline_data"); part.Thought {
				delta.Type, delta.ItemID = mmsp.InlineThinkingDelta, "inline_thinking"
			}
			delta.Data, delta.MimeType = images.Decode(part.Data), cmp.Or(part.MimeType, "application/octet-stream")
		case c.debug:
			return fmt.Errorf("%s: Unknown output: %s", class, failure.Excerpt(modelOutput.Data))
		default:
			continue
		}
		if part.Signature != "" {
			delta.Fidelity = c.proof(part.Signature)
		}
	}
	if modelOutput.FinishReason != "" || modelOutput.BlockReason != "" {
		event.Type = mmsp.EventStop
		event.Usage = &mmsp.Usage{} // the terminal event; usage may never come
		text := cmp.Or(modelOutput.FinishText, modelOutput.FinishReason)
		switch modelOutput.FinishReason {
		case "": // the prompt was refused
			event.FinishReason = mmsp.FinishUnknown
			event.StopDetail = &mmsp.StopDetail{Kind: "filter", Text: cmp.Or(modelOutput.BlockText, modelOutput.BlockReason), Prompt: true}
		case "STOP":
			event.FinishReason = mmsp.FinishStop
		case "MAX_TOKENS":
			event.FinishReason = mmsp.FinishLength
		case "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MODEL_ARMOR",
			"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
			event.FinishReason, event.StopDetail = mmsp.FinishUnknown, &mmsp.StopDetail{Kind: "filter", Text: text}
		case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE", "MALFORMED_RESPONSE":
			event.FinishReason, event.StopDetail = mmsp.FinishUnknown, &mmsp.StopDetail{Kind: "malformed_call", Text: text}
		default:
			event.FinishReason = mmsp.FinishUnknown
		}
	}
	if usage := &modelOutput.Usage; usage.Reported && modelOutput.Ended { // until then the counts are on their way
		event.Type = mmsp.EventStop
		positive := func(n int64) *int64 {
			if n <= 0 {
				return nil
			}
			return &n
		}
		prompt := usage.Prompt
		if usage.Cached <= prompt { // some gateways leave cached ones out of the sum
			prompt -= usage.Cached
		}
		event.Usage = &mmsp.Usage{
			CachedTokens: positive(usage.Cached), PromptTokens: &prompt,
			ThoughtsTokens: positive(usage.Thoughts), ResponseTokens: positive(usage.Candidates),
		}
	}
	return nil
}

// proof is the fidelity of a part that the provider signed.
func (c *Client) proof(signature string) mmsp.Fidelity {
	fidelity := jsonscan.AppendString([]byte(`{"signature":`), signature)
	fidelity = jsonscan.AppendString(append(fidelity, `,"issuer":`...), c.issuer)
	return append(fidelity, '}')
}

// Prepare returns the upstream request. That of a model which makes vectors holds a body a line where the endpoint takes
// fewer contents at a time than there are messages.
func (c *Client) Prepare(ctx context.Context, messages []mmsp.Message, config *mmsp.Config) (*mmsp.Request, error) {
	if c.embeds {
		return c.prepareEmbedding(ctx, messages, config)
	}
	request, err := c.transform(ctx, messages, config)
	if err != nil {
		return nil, err
	}
	body, err := genai.Encode(request)
	if err != nil { // a schema that JSON cannot say
		return nil, &mmsp.InvalidRequestError{Message: err.Error()}
	}
	return &mmsp.Request{
		Method: http.MethodPost, URL: c.modelURL + ":streamGenerateContent?alt=sse", Body: body,
		Header: http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}},
	}, nil
}

// transform makes the request of a model that writes or speaks.
func (c *Client) transform(ctx context.Context, messages []mmsp.Message, config *mmsp.Config) (*genai.Request, error) {
	request, err := c.transformUniConfigToModelConfig(config)
	if err != nil {
		return nil, err
	}
	if c.speaks {
		request.Contents, err = c.transformSpeech(messages, config.TTSConfig)
	} else {
		request.Contents, err = c.transformUniMessageToModelInput(ctx, messages)
	}
	return request, err
}

func (c *Client) prepareEmbedding(ctx context.Context, messages []mmsp.Message, config *mmsp.Config) (*mmsp.Request, error) {
	if len(messages) == 0 {
		return nil, &mmsp.InvalidRequestError{Param: "messages", Message: "there is nothing to embed"}
	}
	for _, p := range []struct {
		name  string
		given bool
	}{
		{"top_p", config.TopP != nil && *config.TopP != 1},
		{"top_k", config.TopK != nil},
		{"stop_sequences", len(config.StopSequences) > 0},
		{"seed", config.Seed != nil},
		{"presence_penalty", config.PresencePenalty != nil && *config.PresencePenalty != 0},
		{"frequency_penalty", config.FrequencyPenalty != nil && *config.FrequencyPenalty != 0},
		{"response_format", config.ResponseFormat != nil && config.ResponseFormat.Type != mmsp.FormatText},
		{"verbosity", config.Verbosity != ""},
		{"service_tier", config.ServiceTier != ""},
		{"fast_mode", config.FastMode},
		{"prompt_caching", config.PromptCaching == mmsp.CachingEnhance},
		{"parallel_tool_calls", config.ParallelToolCalls != nil && !*config.ParallelToolCalls},
	} {
		if p.given {
			return nil, c.unsupported(p.name, "the embeddings of Gemini have no "+p.name)
		}
	}
	for m := range messages {
		for i := range messages[m].ContentItems {
			item := &messages[m].ContentItems[i]
			if !slices.Contains([]mmsp.ItemType{mmsp.TextDone, mmsp.ImageURLDone, mmsp.InlineDataDone}, item.Type) {
				return nil, &mmsp.InvalidRequestError{
					Param:   fmt.Sprintf("messages[%d].content_items[%d]", m, i),
					Message: fmt.Sprintf("%s cannot embed %s items", class, item.Type),
				}
			}
		}
	}
	contents, err := c.transformUniMessageToModelInput(ctx, messages) // one for each message, which holds no answer to a call
	if err != nil {
		return nil, err
	}
	var all []genai.EmbedRequest
	for _, content := range contents {
		for i := range content.Parts {
			content.Parts[i].ThoughtSignature = ""
		}
		embed := genai.EmbedRequest{Model: c.batchModel, Content: content}
		if config.EmbeddingConfig != nil {
			embed.OutputDimensionality = config.EmbeddingConfig.Dimensions
		}
		all = append(all, embed)
	}
	request := &mmsp.Request{
		Method: http.MethodPost, URL: c.modelURL + ":batchEmbedContents",
		Header: http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}},
	}
	var bodies [][]byte
	if c.batchModel == "" { // Vertex AI takes one content at a time
		request.URL = c.modelURL + ":embedContent"
		for i := range all {
			body, err := genai.Encode(&all[i])
			if err != nil {
				return nil, &mmsp.InvalidRequestError{Message: err.Error()}
			}
			bodies = append(bodies, body)
		}
	} else {
		for batch := range slices.Chunk(all, maxEmbedBatch) {
			body, err := genai.Encode(&genai.BatchEmbedRequest{Requests: batch})
			if err != nil {
				return nil, &mmsp.InvalidRequestError{Message: err.Error()}
			}
			bodies = append(bodies, body)
		}
	}
	request.Body = bytes.Join(bodies, []byte("\n"))
	return request, nil
}

// Do sends the request and yields an event per chunk.
func (c *Client) Do(ctx context.Context, request *mmsp.Request) iter.Seq2[*mmsp.UniEvent, error] {
	return func(yield func(*mmsp.UniEvent, error) bool) {
		if c.embeds {
			c.embed(ctx, request, yield)
		} else {
			c.streamingResponseInternal(ctx, request, yield)
		}
	}
}

func (c *Client) streamingResponseInternal(ctx context.Context, request *mmsp.Request, yield func(*mmsp.UniEvent, error) bool) {
	response, err := c.send(ctx, request)
	if err != nil {
		yield(nil, err)
		return
	}
	var event mmsp.UniEvent
	defer func() {
		if event.Last {
			response.Finish()
		} else {
			response.Close()
		}
	}()

	reader := sse.NewReader(response.Body, c.limits.MaxLineBytes)
	first, err := reader.First()
	switch {
	case err != nil && err != io.EOF:
		yield(nil, &mmsp.IncompleteStreamError{Client: class, Reason: "the connection broke before the first event", Err: err})
		return
	case first == '[': // the framing of endpoints that know no events
		reader = sse.NewReader(genai.Frames(reader.Body()), c.limits.MaxLineBytes)
	case first == '{': // the whole answer in one piece, as long as the response may be
		reader = sse.NewReader(genai.Frames(reader.Body()), math.MaxInt)
	case first == '<':
		body, _ := reader.Rest(1 << 20)
		yield(nil, failure.Body(class, response.Redact(body)))
		return
	}

	var decoder genai.Decoder
	var called, finished, counted bool
	var kind mmsp.ItemType  // of the open item,
	var proof mmsp.Fidelity // which it has,
	var item int            // and how often a second proof made a new item of one
	for number := 1; ; number++ {
		wire, err := reader.Next()
		if err != nil && err != io.EOF && !finished {
			yield(nil, &mmsp.IncompleteStreamError{Client: class, Reason: "the connection broke before a finish reason", Err: err})
			return
		}
		data := bytes.TrimSpace(wire.Data)
		if err != nil || string(data) == "[DONE]" {
			event.Reset()
			event.Last = finished
			yield(&event, nil)
			return
		}
		if len(data) == 0 {
			continue // a heartbeat
		}
		chunk, err := decoder.Decode(data)
		switch {
		case err != nil && wire.Unterminated:
			continue // cut in the middle of a chunk: the end of the body comes next
		case err != nil:
			yield(nil, failure.Malformed(class, number, response.Redact(data), err))
			return
		case chunk.Error != nil || string(wire.Name) == "error":
			yield(nil, failure.Event(class, response.Redact(data)))
			return
		case first == '{' && number == 1 && !chunk.HasCandidate && chunk.BlockReason == "":
			yield(nil, failure.Body(class, response.Redact(data)))
			return
		}
		if err := c.transformModelOutputToUniEvent(chunk, &event); err != nil {
			yield(nil, err)
			return
		}
		for i := range event.Deltas {
			delta := &event.Deltas[i]
			called = called || delta.Type == mmsp.ToolCallDelta
			if delta.Type != kind {
				kind, proof = delta.Type, nil
			}
			if delta.Fidelity != nil {
				if proof != nil && !bytes.Equal(proof, delta.Fidelity) {
					item++ // what is signed anew is an item of its own
				}
				proof = delta.Fidelity
			}
			if item > 0 {
				delta.ItemID += strconv.Itoa(item)
			}
		}
		if event.FinishReason == mmsp.FinishStop && called { // STOP is said of turns that made calls too
			event.FinishReason = mmsp.FinishToolCall
		}
		event.More = reader.More()
		if chunk.Ended && !finished {
			finished = true
			response.Linger(usageWait)
		}
		counted = counted || finished && chunk.Fresh // the counts of earlier chunks still grow
		event.Last = counted && !event.More
		if !yield(&event, nil) || event.Last {
			return
		}
	}
}

// embed sends the bodies of a request one after the other and yields their vectors in the order of the messages.
func (c *Client) embed(ctx context.Context, request *mmsp.Request, yield func(*mmsp.UniEvent, error) bool) {
	var event mmsp.UniEvent
	usage := &mmsp.Usage{}
	for body := range bytes.SplitSeq(request.Body, []byte("\n")) {
		response, err := c.send(ctx, &mmsp.Request{Method: request.Method, URL: request.URL, Header: request.Header, Body: body})
		if err != nil {
			yield(nil, err)
			return
		}
		data, err := io.ReadAll(response.Body)
		response.Finish()
		if err != nil {
			yield(nil, &mmsp.IncompleteStreamError{Client: class, Reason: "the connection broke before the end of the answer", Err: err})
			return
		}
		answer, ok := genai.ReadEmbeddings(data)
		if !ok {
			yield(nil, failure.Body(class, response.Redact(data)))
			return
		}
		var asked struct {
			Requests []json.RawMessage `json:"requests"`
		}
		if err := json.Unmarshal(body, &asked); err != nil || len(answer.Vectors) != max(1, len(asked.Requests)) {
			yield(nil, &mmsp.UpstreamError{
				Client: class, ErrorType: "unexpected_body",
				Message: fmt.Sprintf("the provider answered with %d vectors for %d contents", len(answer.Vectors), max(1, len(asked.Requests))),
			})
			return
		}
		event.Reset()
		for _, vector := range answer.Vectors {
			event.Add(mmsp.EmbeddingDelta, "embedding").Embedding = vector
		}
		if answer.PromptTokens != nil {
			if usage.PromptTokens == nil {
				usage.PromptTokens = new(int64)
			}
			*usage.PromptTokens += *answer.PromptTokens
		}
		if !yield(&event, nil) {
			return
		}
	}
	event.Reset()
	event.Type, event.Usage, event.FinishReason, event.Last = mmsp.EventStop, usage, mmsp.FinishStop, true
	yield(&event, nil)
}

// send adds what every request of the client carries, and sends it. An access token that is refused is asked for once more.
func (c *Client) send(ctx context.Context, request *mmsp.Request) (*upstream.Response, error) {
	header := request.Header.Clone()
	for name, value := range c.headers {
		header.Set(name, value)
	}
	if c.account == nil {
		header.Set("X-Goog-Api-Key", c.key.Reveal())
	}
	for attempt := 1; ; attempt++ {
		var token string
		if c.account != nil {
			var err error
			if token, err = c.account.accessToken(ctx); err != nil {
				return nil, err
			}
			header.Set("Authorization", "Bearer "+token)
		}
		response, err := c.http.Do(ctx, upstream.Request{Method: request.Method, URL: request.URL, Header: header, Body: request.Body})
		if err == nil {
			return response, nil
		}
		var status *upstream.StatusError
		if attempt == 1 && token != "" && errors.As(err, &status) && status.Status == http.StatusUnauthorized {
			c.account.forget(ctx, token)
			continue
		}
		return nil, failure.Upstream(class, err)
	}
}

// ListModels returns the ids of the endpoint's models, all pages of them.
func (c *Client) ListModels(ctx context.Context) ([]string, error) {
	models := []string{}
	address := c.listURL
	for range maxModelPages {
		response, err := c.send(ctx, &mmsp.Request{Method: http.MethodGet, URL: address, Header: http.Header{}})
		if err != nil {
			return nil, err
		}
		data, err := io.ReadAll(io.LimitReader(response.Body, maxModelsBytes+1))
		response.Finish()
		if err != nil {
			return nil, err
		}
		ids, next, ok := genai.ReadModels(data)
		if !ok || len(data) > maxModelsBytes {
			return nil, &mmsp.UpstreamError{Client: class, ErrorType: "unexpected_body", Message: "the list of models is not readable: " + failure.Excerpt(response.Redact(data))}
		}
		models = append(models, ids...)
		if next == "" {
			return models, nil
		}
		address = c.listURL + "?pageToken=" + url.QueryEscape(next)
	}
	return nil, &mmsp.UpstreamError{Client: class, ErrorType: "unexpected_body", Message: "the list of models does not end"}
}

// CountTokens returns the answer of the model's countTokens. A model that makes vectors has no such request.
func (c *Client) CountTokens(ctx context.Context, messages []mmsp.Message, config *mmsp.Config) (int64, error) {
	if c.embeds {
		return 0, &mmsp.UnsupportedOperationError{Client: class, Operation: "count_tokens", Message: "what is embedded is not counted before"}
	}
	request, err := c.transform(ctx, messages, config)
	if err != nil {
		return 0, err
	}
	count := &genai.CountRequest{GenerateContentRequest: &genai.NamedRequest{Model: c.batchModel, Request: request}}
	if c.account != nil {
		count = &genai.CountRequest{
			SystemInstruction: request.SystemInstruction, Tools: request.Tools, Contents: request.Contents, GenerationConfig: request.GenerationConfig,
		}
	}
	body, err := genai.Encode(count)
	if err != nil { // a schema that JSON cannot say
		return 0, &mmsp.InvalidRequestError{Message: err.Error()}
	}
	response, err := c.send(ctx, &mmsp.Request{
		Method: http.MethodPost, URL: c.modelURL + ":countTokens", Body: body,
		Header: http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}},
	})
	if err != nil {
		return 0, tokens.Failed(class, err)
	}
	return tokens.Read(class, "totalTokens", response)
}
