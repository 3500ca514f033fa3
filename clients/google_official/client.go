// Package googleofficial is the client type "google-official": Gemini over Google's own Interactions API, without any
// state kept there, and its embedding models. Its keys are API keys.
package googleofficial

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
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

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/internal/credentials"
	"github.com/prism-shadow/mmsp-go/internal/failure"
	"github.com/prism-shadow/mmsp-go/internal/fetch"
	"github.com/prism-shadow/mmsp-go/internal/images"
	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
	"github.com/prism-shadow/mmsp-go/internal/sse"
	"github.com/prism-shadow/mmsp-go/internal/upstream"
	"github.com/prism-shadow/mmsp-go/wire/interactions"
)

const class = "GoogleOfficialClient"

const (
	// placeholderSignature is what Google documents for turns that its API did not produce.
	placeholderSignature = "skip_thought_signature_validator"

	// redactedThinking is the text of a thinking item that another provider keeps to itself. It says nothing here.
	redactedThinking = "_REDACTED_THINKING"

	defaultVoice = "Kore"

	maxModelPages     = 1000
	maxModelPageBytes = 16 << 20
	maxNameBytes      = 1 << 10 // of a function, which every answer to a call repeats
	maxTurns          = 1 << 16 // of a script for two speakers
)

// Client speaks Interactions to Google for one model.
type Client struct {
	model   string
	key     mmsp.Secret
	baseURL string
	issuer  string // of the signatures that this endpoint gives
	headers map[string]string
	limits  mmsp.HTTPOptions
	debug   bool // events that the client does not know are errors
	http    *upstream.Client
	fetcher *fetch.Fetcher
}

// New reads the key and the endpoint from the options or GEMINI_API_KEY and GEMINI_BASE_URL, each by itself.
func New(o mmsp.Options) (*Client, error) {
	key, baseURL, err := credentials.Resolve(&o, credentials.Rule{
		Class: class, KeyVar: "GEMINI_API_KEY", URLVar: "GEMINI_BASE_URL", DefaultURL: "https://generativelanguage.googleapis.com",
		Lenient: true, KeyDocument: true,
	})
	if err != nil {
		return nil, err
	}
	if strings.HasPrefix(strings.TrimSpace(key.Reveal()), "{") { // a private key must never travel in a header
		return nil, errors.New(class + " takes a Gemini API key, not the JSON of a service account; the client type google-genai takes that")
	}
	endpoint, err := url.Parse(baseURL)
	if err != nil {
		return nil, err
	}
	issuer := strings.ToLower(endpoint.Host)
	if issuer == "generativelanguage.googleapis.com" {
		issuer = "google"
	}
	return &Client{
		// Base URLs are written with and without the version, which the paths begin with.
		model: o.Model, key: key, baseURL: strings.TrimSuffix(baseURL, "/v1beta"), issuer: issuer, headers: o.DefaultHeaders, limits: o.HTTP,
		debug:   !slices.Contains([]string{"", "0", "false", "no", "off"}, strings.ToLower(strings.TrimSpace(o.Env("MMSP_DEBUG")))),
		http:    upstream.New(o.HTTPClient, o.HTTP),
		fetcher: fetch.New(fetch.Options{AllowPrivate: o.AllowPrivateFetch, MaxBytes: o.HTTP.MaxFetchBytes}),
	}, nil
}

// Class returns the class name in errors.
func (c *Client) Class() string { return class }

// Model returns the upstream model id.
func (c *Client) Model() string { return c.model }

func (c *Client) unsupported(parameter, reason string) error {
	return &mmsp.UnsupportedParameterError{Client: class, Parameter: parameter, Message: reason}
}

// invalid names an item that cannot be sent.
func invalid(message, item int, field, reason string) error {
	return &mmsp.InvalidRequestError{Param: fmt.Sprintf("messages[%d].content_items[%d]%s", message, item, field), Message: reason}
}

// speaks reports whether the model turns text into speech.
func (c *Client) speaks() bool { return strings.Contains(strings.ToLower(c.model), "tts") }

// Embeds reports whether the model makes vectors, which Interactions does not serve.
func (c *Client) Embeds() bool { return strings.Contains(strings.ToLower(c.model), "embedding") }

// convertThinkingLevel names the nearest level that the model has, the higher one of two that are equally near.
func (c *Client) convertThinkingLevel(level mmsp.ThinkingLevel) string {
	scale := []string{"minimal", "low", "medium", "high"}
	supported := scale
	switch {
	case strings.Contains(c.model, "-image"):
		supported = []string{"minimal", "high"}
	case strings.Contains(c.model, "gemini-3-pro"):
		supported = []string{"low", "high"}
	case strings.Contains(c.model, "-pro"), strings.Contains(c.model, "gemini-3.7"), strings.Contains(c.model, "gemini-3.8"):
		supported = []string{"low", "medium", "high"}
	}
	var wanted int
	switch level {
	case mmsp.ThinkingNone:
		wanted = 0
	case mmsp.ThinkingLow:
		wanted = 1
	case mmsp.ThinkingMedium:
		wanted = 2
	case mmsp.ThinkingHigh, mmsp.ThinkingXHigh, mmsp.ThinkingMax:
		wanted = 3
	default:
		return ""
	}
	for distance := range len(scale) {
		for _, at := range []int{wanted + distance, wanted - distance} {
			if at >= 0 && at < len(scale) && slices.Contains(supported, scale[at]) {
				return scale[at]
			}
		}
	}
	return ""
}

func (c *Client) convertToolChoice(choice *mmsp.ToolChoice) any {
	switch choice.Mode {
	case "": // one of the named must be called
		return interactions.AllowedToolChoice{AllowedTools: interactions.AllowedTools{Mode: "any", Tools: choice.Names}}
	case mmsp.ToolChoiceRequired:
		return "any"
	}
	return choice.Mode
}

// convertVoices gives each speaker a voice.
func (c *Client) convertVoices(config []mmsp.TTSVoice) ([]interactions.Voice, error) {
	switch len(config) {
	case 0:
		return []interactions.Voice{{Voice: defaultVoice}}, nil
	case 1:
		return []interactions.Voice{{Voice: config[0].Voice}}, nil
	case 2:
		if config[0].Speaker == "" || config[1].Speaker == "" {
			return nil, c.unsupported("tts_config", "two voices need a speaker each")
		}
		return []interactions.Voice{{Speaker: config[0].Speaker, Voice: config[0].Voice}, {Speaker: config[1].Speaker, Voice: config[1].Voice}}, nil
	}
	return nil, c.unsupported("tts_config", "Gemini speaks with one voice or two")
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

// convertFormat makes text of JSON, of a schema if there is one.
func (c *Client) convertFormat(format *mmsp.ResponseFormat) interactions.Format {
	text := interactions.Format{Type: "text"}
	if format != nil && format.Type != mmsp.FormatText {
		text.MimeType = "application/json"
		text.Schema = format.Schema
	}
	return text
}

// transformUniConfigToModelConfig turns the config into the request but for its input.
func (c *Client) transformUniConfigToModelConfig(config *mmsp.Config) (*interactions.Request, error) {
	request := &interactions.Request{Model: c.model, Stream: true}
	if config.Temperature != nil {
		return nil, c.unsupported("temperature", "Gemini 3 takes no temperature")
	}
	for _, p := range []struct {
		name  string
		given bool
	}{
		{"top_p", config.TopP != nil && *config.TopP != 1},
		{"top_k", config.TopK != nil},
		{"presence_penalty", config.PresencePenalty != nil && *config.PresencePenalty != 0},
		{"frequency_penalty", config.FrequencyPenalty != nil && *config.FrequencyPenalty != 0},
		{"parallel_tool_calls", config.ParallelToolCalls != nil && !*config.ParallelToolCalls},
		{"verbosity", config.Verbosity != ""},
		{"stop_sequences", c.speaks() && len(config.StopSequences) > 0},
		{"seed", c.speaks() && config.Seed != nil},
	} {
		if p.given {
			return nil, c.unsupported(p.name, c.model+" has no "+p.name)
		}
	}
	if config.PromptCaching != "" && config.PromptCaching != mmsp.CachingEnable {
		return nil, c.unsupported("prompt_caching", "Gemini caches prompts by itself; only enable is possible")
	}
	request.GenerationConfig.MaxOutputTokens = config.MaxTokens
	if config.FastMode {
		request.ServiceTier = "priority"
	}
	tier, err := c.convertServiceTier(config.ServiceTier)
	if err != nil {
		return nil, err
	}
	request.ServiceTier = cmp.Or(tier, request.ServiceTier)
	if c.speaks() { // speech models refuse everything below
		if config.ResponseFormat != nil && config.ResponseFormat.Type != mmsp.FormatText {
			return nil, c.unsupported("response_format", c.model+" speaks; it writes no JSON")
		}
		voices, err := c.convertVoices(config.TTSConfig)
		if err != nil {
			return nil, err
		}
		request.GenerationConfig.SpeechConfig = voices
		request.ResponseFormat = interactions.Format{Type: "audio"}
		return request, nil
	}
	if config.SystemPrompt != nil {
		request.SystemInstruction = *config.SystemPrompt // left out when empty
	}
	request.GenerationConfig.Seed = config.Seed
	if len(config.StopSequences) > 0 {
		request.GenerationConfig.StopSequences = config.StopSequences
	}
	if level := config.EffectiveThinkingLevel(); level != "" {
		request.GenerationConfig.ThinkingLevel = c.convertThinkingLevel(level)
	}
	if config.ThinkingSummary != nil {
		request.GenerationConfig.ThinkingSummaries = "none"
		if *config.ThinkingSummary {
			request.GenerationConfig.ThinkingSummaries = "auto"
		}
	}
	if config.Tools != nil {
		tools := []interactions.Tool{}
		for i := range config.Tools {
			tool := config.Tools[i]
			tool.Strict = nil // which Gemini does not know
			tools = append(tools, tool.AppendJSON(nil))
		}
		request.Tools = &tools
		if config.ToolChoice != nil {
			request.GenerationConfig.ToolChoice = c.convertToolChoice(config.ToolChoice)
		}
	}
	text := c.convertFormat(config.ResponseFormat)
	if text.MimeType != "" {
		request.ResponseFormat = text
	}
	if image := config.ImageConfig; image != nil {
		// A picture asked for alone would come without any text.
		request.ResponseFormat = []interactions.Format{text, {Type: "image", AspectRatio: image.AspectRatio, ImageSize: image.ImageSize}}
	}
	return request, nil
}

// convertImage returns the media type and the base64 of a picture. The API takes pictures inline only, so that remote
// ones are fetched here.
func (c *Client) convertImage(ctx context.Context, url string) (mediaType, data string, err error) {
	if !strings.EqualFold(url[:min(len(url), len("data:"))], "data:") {
		if url, err = c.fetcher.Image(ctx, url); err != nil {
			return "", "", err
		}
	}
	mediaType, payload, ok := images.ParseDataURL(url)
	if !ok || mediaType == "" {
		return "", "", errors.New("a data URL must be base64 and name its media type")
	}
	return mediaType, base64.StdEncoding.EncodeToString(images.Decode(payload)), nil
}

// convertMedia makes a block of a document of any kind.
func (c *Client) convertMedia(mediaType, data string) interactions.Content {
	kind, _, _ := strings.Cut(mediaType, "/")
	if kind != "image" && kind != "audio" && kind != "video" {
		kind = "document"
	}
	return interactions.Content{Type: kind, Data: data, MimeType: mediaType}
}

// transformUniMessageToModelInput turns the messages into steps, in their order. Text and media gather in a step, which
// ends before any item that is no part of one. The API wants a turn of the model to begin with a signed thought.
func (c *Client) transformUniMessageToModelInput(ctx context.Context, messages []mmsp.Message) ([]interactions.Step, error) {
	ctx = fetch.ForRequest(ctx)
	input := []interactions.Step{}
	names := map[string]string{} // of the calls so far, by their ids
	for m := range messages {
		message := &messages[m]
		begin := len(input)              // the message's first step
		content, thought := false, false // the last step is one of contents, or a thought, that more may join
		step := func(step interactions.Step) { input = append(input, step) }
		add := func(block interactions.Content) {
			if !content {
				kind := "user_input"
				if message.Role == mmsp.RoleAssistant {
					kind = "model_output"
				}
				step(interactions.Step{Type: kind})
				content = true
			}
			last := &input[len(input)-1]
			last.Content = append(last.Content, block)
		}
		for i := range message.ContentItems {
			item := &message.ContentItems[i]
			var fidelity struct {
				Signature string `json:"signature"`
				Issuer    string `json:"issuer"`
			}
			if message.Role == mmsp.RoleAssistant {
				item.Fidelity.Decode(&fidelity)
			}
			if fidelity.Issuer != "" && fidelity.Issuer != c.issuer {
				fidelity.Signature = ""
			}
			if item.Type == mmsp.ThinkingDone || item.Type == mmsp.InlineThinkingDone {
				content = false
				var summary []interactions.Content
				switch {
				case item.Type == mmsp.InlineThinkingDone:
					summary = []interactions.Content{{Type: "image", Data: base64.StdEncoding.EncodeToString(item.Data), MimeType: item.MimeType}}
				case item.Thinking == redactedThinking:
					continue
				case item.Thinking != "":
					summary = []interactions.Content{{Type: "text", Text: item.Thinking}}
				case fidelity.Signature == "":
					continue
				}
				if !thought {
					step(interactions.Step{Type: "thought", Summary: []interactions.Content{}})
				}
				last := &input[len(input)-1]
				last.Summary = append(last.Summary, summary...)
				last.Signature = fidelity.Signature
				thought = fidelity.Signature == ""
				continue
			}
			thought = false
			if fidelity.Signature != "" { // recorded through generateContent, which signs what follows the thought
				step(interactions.Step{Type: "thought", Signature: fidelity.Signature})
				content = false
			}
			switch item.Type {
			case mmsp.TextDone:
				if item.Text != "" { // refused when empty
					add(interactions.Content{Type: "text", Text: item.Text})
				}
			case mmsp.ImageURLDone:
				mediaType, data, err := c.convertImage(ctx, item.ImageURL)
				if err != nil {
					return nil, invalid(m, i, ".image_url", err.Error())
				}
				add(c.convertMedia(mediaType, data))
			case mmsp.InlineDataDone:
				add(c.convertMedia(item.MimeType, base64.StdEncoding.EncodeToString(item.Data)))
			case mmsp.ToolCallDone:
				if len(item.Name) > maxNameBytes {
					return nil, invalid(m, i, ".name", fmt.Sprintf("the name of a function is longer than %d bytes", maxNameBytes))
				}
				names[item.ToolCallID] = item.Name
				arguments := item.Arguments
				if arguments == "" {
					arguments = "{}"
				}
				call := interactions.Step{Type: "function_call", Name: item.Name, Arguments: json.RawMessage(arguments), ID: item.ToolCallID}
				if call.ID == call.Name { // the call came without an id
					call.ID = ""
				}
				step(call)
				content = false
			case mmsp.ToolResultDone:
				result := interactions.Step{Type: "function_result", Name: names[item.ToolCallID], Result: item.Text, CallID: item.ToolCallID, IsError: item.IsError}
				if result.Name == "" {
					result.Name = item.ToolCallID
				}
				if result.CallID == result.Name {
					result.CallID = ""
				}
				if len(item.Images) > 0 {
					var blocks []interactions.Content
					if item.Text != "" {
						blocks = append(blocks, interactions.Content{Type: "text", Text: item.Text})
					}
					for j, url := range item.Images {
						mediaType, data, err := c.convertImage(ctx, url)
						if err != nil {
							return nil, invalid(m, i, fmt.Sprintf(".images[%d]", j), err.Error())
						}
						blocks = append(blocks, c.convertMedia(mediaType, data))
					}
					result.Result = blocks
				}
				step(result)
				content = false
			default:
				return nil, invalid(m, i, "", fmt.Sprintf("%s cannot send %s items", class, item.Type))
			}
		}

		turn := input[begin:]
		signed := slices.IndexFunc(turn, func(s interactions.Step) bool { return s.Type == "thought" && s.Signature != "" })
		thinks := slices.ContainsFunc(turn, func(s interactions.Step) bool { return s.Type == "thought" })
		answers := slices.ContainsFunc(turn, func(s interactions.Step) bool { return s.Type == "model_output" || s.Type == "function_call" })
		switch {
		case answers && signed < 0, thinks && turn[0].Type != "thought":
			input = slices.Insert(input, begin, interactions.Step{Type: "thought", Signature: placeholderSignature})
		case signed > 0: // an unsigned thought before a signed one is refused, the same signature twice is not
			turn[0].Signature = turn[signed].Signature
		}
	}
	return input, nil
}

// transformUniMessageToScript turns the last message into the one turn that speech models take. Those that know who speaks
// get the turns of a script with two speakers apart.
func (c *Client) transformUniMessageToScript(messages []mmsp.Message, voices []interactions.Voice) ([]interactions.Step, error) {
	if len(messages) == 0 {
		return nil, &mmsp.InvalidRequestError{Param: "messages", Message: class + " needs a message to speak"}
	}
	m := len(messages) - 1
	var content []interactions.Content
	var texts []string
	for i := range messages[m].ContentItems {
		item := &messages[m].ContentItems[i]
		if item.Type != mmsp.TextDone {
			return nil, invalid(m, i, "", fmt.Sprintf("%s speaks text, not %s items", class, item.Type))
		}
		if item.Text != "" {
			content = append(content, interactions.Content{Type: "text", Text: item.Text})
			texts = append(texts, item.Text)
		}
	}
	if len(voices) == 2 && strings.Contains(c.model, "gemini-3.8") {
		content = nil
		var said []string // the lines of the current turn
		var speaker string
		flush := func() {
			if text := strings.TrimSpace(strings.Join(said, "\n")); text != "" {
				content = append(content, interactions.Content{
					Type: "text", Text: text, Annotations: []interactions.Annotation{{Type: "speech_metadata", Speaker: speaker}},
				})
			}
			said = nil
		}
		for line := range strings.SplitSeq(strings.Join(texts, "\n"), "\n") {
			name, rest, labelled := strings.Cut(line, ":")
			name = strings.TrimSpace(name)
			switch {
			case labelled && (name == voices[0].Speaker || name == voices[1].Speaker):
				if flush(); len(content) == maxTurns {
					return nil, &mmsp.InvalidRequestError{Param: fmt.Sprintf("messages[%d]", m), Message: fmt.Sprintf("the script has more than %d turns", maxTurns)}
				}
				speaker = name
				said = []string{strings.TrimSpace(rest)}
			case speaker != "":
				said = append(said, line)
			case strings.TrimSpace(line) != "":
				return nil, &mmsp.InvalidRequestError{
					Param:   fmt.Sprintf("messages[%d]", m),
					Message: fmt.Sprintf("a script of two voices begins with %q or %q and a colon", voices[0].Speaker, voices[1].Speaker),
				}
			}
		}
		flush()
	}
	if content == nil {
		return nil, &mmsp.InvalidRequestError{Param: fmt.Sprintf("messages[%d]", m), Message: "there is no text to speak"}
	}
	return []interactions.Step{{Type: "user_input", Content: content}}, nil
}

// transformModelOutputToUniEvent turns one wire event into one event.
func (c *Client) transformModelOutputToUniEvent(modelOutput *interactions.Event, event *mmsp.UniEvent) error {
	event.Reset()
	known := true
	id := strconv.Itoa(modelOutput.Index)
	call := mmsp.CallRef{Keyed: true, Index: modelOutput.Index, NameAsID: true}
	switch modelOutput.Type {
	case interactions.EventStepStart:
		switch start := &modelOutput.Start; start.Type {
		case "function_call":
			event.AddToolCall(id, call, start.ID, start.Name, string(start.Arguments))
		case "thought", "model_output": // what they hold comes in deltas
		default:
			known = false
		}
	case interactions.EventStepDelta:
		switch delta := &modelOutput.Delta; delta.Type {
		case "thought_summary":
			switch delta.Content {
			case "text":
				event.AddThinking(id, delta.Text)
			case "image":
				picture := event.Add(mmsp.InlineThinkingDelta, id)
				picture.Data, picture.MimeType = delta.Data, cmp.Or(delta.MimeType, "image/jpeg")
			default:
				known = false
			}
		case "thought_signature":
			event.AddThinking(id, "").Fidelity = c.proof(delta.Signature)
		case "arguments_delta":
			event.AddToolCall(id, call, "", "", delta.Arguments)
		case "text":
			event.AddText(id, delta.Text)
		case "image":
			picture := event.Add(mmsp.InlineDataDelta, id)
			picture.Data, picture.MimeType = delta.Data, cmp.Or(delta.MimeType, "image/jpeg")
		case "audio":
			sound := event.Add(mmsp.InlineDataDelta, id)
			sound.Data, sound.MimeType = delta.Data, delta.MimeType
			if delta.SampleRate != 0 {
				sound.MimeType += "; rate=" + strconv.FormatInt(delta.SampleRate, 10)
			}
			if delta.Channels != 0 {
				sound.MimeType += "; channels=" + strconv.FormatInt(delta.Channels, 10)
			}
		default:
			known = false
		}
	case interactions.EventCompleted:
		event.Type = mmsp.EventStop
		switch modelOutput.Interaction.Status {
		case "completed":
			event.FinishReason = mmsp.FinishStop
		case "requires_action":
			event.FinishReason = mmsp.FinishToolCall
		case "incomplete": // the token limit
			event.FinishReason = mmsp.FinishLength
		case "failed": // of a fault there is an error event; what is left is that the answer may not go on
			event.FinishReason, event.StopDetail = mmsp.FinishUnknown, &mmsp.StopDetail{Kind: "filter"}
		case "budget_exceeded": // there are no tokens left for the rest of it
			event.FinishReason, event.StopDetail = mmsp.FinishUnknown, &mmsp.StopDetail{Kind: "context"}
		default:
			event.FinishReason = mmsp.FinishUnknown
		}
		if usage := modelOutput.Interaction.Usage; usage != nil {
			event.Usage = &mmsp.Usage{PromptTokens: new(int64)}
			if usage.Input != nil {
				*event.Usage.PromptTokens = *usage.Input
			}
			if usage.Cached != nil && *usage.Cached != 0 {
				event.Usage.CachedTokens = usage.Cached
				*event.Usage.PromptTokens -= *usage.Cached
			}
			if usage.Thought != nil && *usage.Thought != 0 {
				event.Usage.ThoughtsTokens = usage.Thought
			}
			if usage.Output != nil && *usage.Output != 0 {
				event.Usage.ResponseTokens = usage.Output
			}
		}
	case interactions.EventCreated, interactions.EventStatusUpdate, interactions.EventStepStop:
	default:
		known = false
	}
	if !known && c.debug {
		return fmt.Errorf("%s: Unknown output: %s", class, failure.Excerpt(modelOutput.Data))
	}
	return nil
}

// proof is the fidelity of a thought that the provider signed.
func (c *Client) proof(signature string) mmsp.Fidelity {
	if signature == "" {
		return nil
	}
	fidelity := jsonscan.AppendString([]byte(`{"signature":`), signature)
	fidelity = jsonscan.AppendString(append(fidelity, `,"issuer":`...), c.issuer)
	return append(fidelity, '}')
}

// Prepare returns the upstream request.
func (c *Client) Prepare(ctx context.Context, messages []mmsp.Message, config *mmsp.Config) (*mmsp.Request, error) {
	if c.Embeds() {
		return c.prepareEmbedding(ctx, messages, config)
	}
	request, err := c.transformUniConfigToModelConfig(config)
	if err != nil {
		return nil, err
	}
	if c.speaks() {
		request.Input, err = c.transformUniMessageToScript(messages, request.GenerationConfig.SpeechConfig)
	} else {
		request.Input, err = c.transformUniMessageToModelInput(ctx, messages)
	}
	if err != nil {
		return nil, err
	}
	body, err := request.Encode()
	if err != nil { // a number or a schema that JSON cannot say
		return nil, &mmsp.InvalidRequestError{Message: err.Error()}
	}
	return &mmsp.Request{
		Method: http.MethodPost, URL: c.baseURL + "/v1beta/interactions", Body: body,
		Header: http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}},
	}, nil
}

// prepareEmbedding asks for a vector of each message.
func (c *Client) prepareEmbedding(ctx context.Context, messages []mmsp.Message, config *mmsp.Config) (*mmsp.Request, error) {
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
	ctx = fetch.ForRequest(ctx)
	model := strings.TrimPrefix(c.model, "models/")
	request := &interactions.EmbedRequest{Requests: []interactions.EmbedContentRequest{}}
	for m := range messages {
		content := interactions.EmbedContent{Role: "user", Parts: []interactions.EmbedPart{}}
		if messages[m].Role != mmsp.RoleUser {
			content.Role = "model"
		}
		for i := range messages[m].ContentItems {
			item := &messages[m].ContentItems[i]
			switch item.Type {
			case mmsp.TextDone:
				content.Parts = append(content.Parts, interactions.EmbedPart{Text: &item.Text})
			case mmsp.ImageURLDone:
				mediaType, data, err := c.convertImage(ctx, item.ImageURL)
				if err != nil {
					return nil, invalid(m, i, ".image_url", err.Error())
				}
				content.Parts = append(content.Parts, interactions.EmbedPart{InlineData: &interactions.InlineData{Data: data, MimeType: mediaType}})
			case mmsp.InlineDataDone:
				data := base64.StdEncoding.EncodeToString(item.Data)
				content.Parts = append(content.Parts, interactions.EmbedPart{InlineData: &interactions.InlineData{Data: data, MimeType: item.MimeType}})
			default:
				return nil, invalid(m, i, "", fmt.Sprintf("%s cannot embed %s items", class, item.Type))
			}
		}
		one := interactions.EmbedContentRequest{Model: "models/" + model, Content: content}
		if config.EmbeddingConfig != nil {
			one.OutputDimensionality = config.EmbeddingConfig.Dimensions
		}
		request.Requests = append(request.Requests, one)
	}
	body, err := request.Encode()
	if err != nil {
		return nil, &mmsp.InvalidRequestError{Message: err.Error()}
	}
	return &mmsp.Request{
		Method: http.MethodPost, URL: c.baseURL + "/v1beta/models/" + url.PathEscape(model) + ":batchEmbedContents", Body: body,
		Header: http.Header{"Content-Type": {"application/json"}},
	}, nil
}

// Do sends the request and yields an event per wire event.
func (c *Client) Do(ctx context.Context, request *mmsp.Request) iter.Seq2[*mmsp.UniEvent, error] {
	if c.Embeds() {
		return func(yield func(*mmsp.UniEvent, error) bool) { c.embedMessagesInternal(ctx, request, yield) }
	}
	return func(yield func(*mmsp.UniEvent, error) bool) { c.streamingResponseInternal(ctx, request, yield) }
}

// embedMessagesInternal yields the whole answer as one event.
func (c *Client) embedMessagesInternal(ctx context.Context, request *mmsp.Request, yield func(*mmsp.UniEvent, error) bool) {
	response, err := c.http.Do(ctx, c.authorized(request))
	if err != nil {
		yield(nil, failure.Upstream(class, err))
		return
	}
	defer response.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		yield(nil, &mmsp.IncompleteStreamError{Client: class, Reason: "the connection broke before the end of the answer", Err: err})
		return
	}
	answer, ok := interactions.DecodeEmbeddings(body)
	if !ok {
		yield(nil, failure.Body(class, response.Redact(body)))
		return
	}
	var asked struct {
		Requests []json.RawMessage `json:"requests"`
	}
	if n := len(answer.Vectors); json.Unmarshal(request.Body, &asked) != nil || n > 0 && n < len(asked.Requests) {
		yield(nil, &mmsp.UpstreamError{
			Client: class, ErrorType: "unexpected_body",
			Message: fmt.Sprintf("the provider answered with %d vectors for %d contents", n, len(asked.Requests)),
		})
		return
	}
	event := mmsp.UniEvent{
		Type: mmsp.EventStop, FinishReason: mmsp.FinishStop, Last: true,
		Usage: &mmsp.Usage{PromptTokens: answer.Characters}, // counted in characters, where it is counted
	}
	for _, vector := range answer.Vectors {
		event.Add(mmsp.EmbeddingDelta, "").Embedding = vector
	}
	yield(&event, nil)
}

func (c *Client) streamingResponseInternal(ctx context.Context, request *mmsp.Request, yield func(*mmsp.UniEvent, error) bool) {
	response, err := c.http.Do(ctx, c.authorized(request))
	if err != nil {
		yield(nil, failure.Upstream(class, err))
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
	case first == '{' || first == '[':
		// The whole answer in one piece, as long as the response may be.
		body, err := reader.Rest(math.MaxInt64)
		if err != nil {
			yield(nil, &mmsp.IncompleteStreamError{Client: class, Reason: "the connection broke before the end of the answer", Err: err})
			return
		}
		stream, ok := interactions.Unroll(body)
		if !ok {
			yield(nil, failure.Body(class, response.Redact(body)))
			return
		}
		reader = sse.NewReader(bytes.NewReader(stream), len(stream))
	case first == '<':
		body, _ := reader.Rest(1 << 20)
		yield(nil, failure.Body(class, response.Redact(body)))
		return
	}

	var decoder interactions.Decoder
	called := false
	whole := -1 // the call whose arguments came with its start
	for number := 1; ; number++ {
		wire, err := reader.Next()
		data := bytes.TrimSpace(wire.Data)
		switch {
		case err == io.EOF || string(data) == "[DONE]":
			yield(nil, &mmsp.IncompleteStreamError{Client: class, Reason: "the stream ended before the interaction did"})
			return
		case err != nil:
			yield(nil, &mmsp.IncompleteStreamError{Client: class, Reason: "the connection broke before the end of the interaction", Err: err})
			return
		}
		output, err := decoder.Decode(wire.Name, data)
		switch {
		case err != nil && wire.Unterminated:
			continue // cut in the middle of an event: the end of the body comes next
		case err != nil:
			yield(nil, failure.Malformed(class, number, response.Redact(data), err))
			return
		case output.Error != nil:
			yield(nil, failure.Event(class, response.Redact(output.Error)))
			return
		}
		if err := c.transformModelOutputToUniEvent(output, &event); err != nil {
			yield(nil, err)
			return
		}
		for i := range event.Deltas { // one at most
			switch delta := &event.Deltas[i]; {
			case delta.Type != mmsp.ToolCallDelta:
			case output.Type == interactions.EventStepStart:
				called = true
				if whole = -1; delta.Arguments != "" {
					whole = output.Index
				}
			case output.Index == whole: // told twice
				event.Deltas = event.Deltas[:0]
			}
		}
		if called && event.FinishReason == mmsp.FinishStop { // the turn that made calls is over all the same
			event.FinishReason = mmsp.FinishToolCall
		}
		event.Last = event.FinishReason != ""
		event.More = reader.More() && !event.Last
		if !yield(&event, nil) || event.Last {
			return
		}
	}
}

// authorized adds what every request of the client carries.
func (c *Client) authorized(request *mmsp.Request) upstream.Request {
	header := request.Header.Clone()
	for name, value := range c.headers {
		header.Set(name, value)
	}
	header.Set("X-Goog-Api-Key", c.key.Reveal())
	return upstream.Request{Method: request.Method, URL: request.URL, Header: header, Body: request.Body}
}

// ListModels returns the ids of GET /v1beta/models, all pages of it.
func (c *Client) ListModels(ctx context.Context) ([]string, error) {
	models := []string{}
	address := c.baseURL + "/v1beta/models?pageSize=1000"
	for range maxModelPages {
		request := &mmsp.Request{Method: http.MethodGet, URL: address, Header: http.Header{}}
		response, err := c.http.Do(ctx, c.authorized(request))
		if err != nil {
			return nil, failure.Upstream(class, err)
		}
		body, err := io.ReadAll(io.LimitReader(response.Body, maxModelPageBytes))
		response.Close()
		if err != nil {
			return nil, err
		}
		ids, next, ok := interactions.DecodeModels(body)
		if !ok {
			return nil, &mmsp.UpstreamError{Client: class, ErrorType: "unexpected_body", Message: "the list of models is not readable: " + failure.Excerpt(response.Redact(body))}
		}
		models = append(models, ids...)
		if next == "" {
			return models, nil
		}
		address = c.baseURL + "/v1beta/models?pageSize=1000&pageToken=" + url.QueryEscape(next)
	}
	return nil, &mmsp.UpstreamError{Client: class, ErrorType: "unexpected_body", Message: "the list of models does not end"}
}
