// Package openairesponses is the client type "openai-responses": any endpoint of the Responses protocol. It is read as a
// diff of openai-official: it asks for nothing that only OpenAI has, and takes the shapes that others send.
package openairesponses

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"math"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/internal/credentials"
	"github.com/prism-shadow/mmsp-go/internal/failure"
	"github.com/prism-shadow/mmsp-go/internal/images"
	"github.com/prism-shadow/mmsp-go/internal/modellist"
	"github.com/prism-shadow/mmsp-go/internal/sse"
	"github.com/prism-shadow/mmsp-go/internal/tokens"
	"github.com/prism-shadow/mmsp-go/internal/upstream"
	"github.com/prism-shadow/mmsp-go/wire/openairesponses"
)

const class = "OpenaiResponsesClient"

// redactedThinking is the text of a thinking item that another provider keeps to itself. It says nothing here.
const redactedThinking = "_REDACTED_THINKING"

// Client speaks Responses for one model.
type Client struct {
	model   string
	key     mmsp.Secret
	baseURL string
	issuer  string
	headers map[string]string
	limits  mmsp.HTTPOptions
	getenv  func(string) string
	http    *upstream.Client
}

// New reads the key and the endpoint from the options or OPENAI_API_KEY and OPENAI_BASE_URL.
func New(o mmsp.Options) (*Client, error) {
	key, baseURL, err := credentials.Resolve(&o, credentials.Rule{
		Class: class, KeyVar: "OPENAI_API_KEY", URLVar: "OPENAI_BASE_URL", DefaultURL: "https://api.openai.com/v1",
	})
	if err != nil {
		return nil, err
	}
	return &Client{
		model: o.Model, key: key, baseURL: baseURL, issuer: issuerOf(baseURL), headers: o.DefaultHeaders, limits: o.HTTP,
		getenv: o.Env,
		http:   upstream.New(o.HTTPClient, o.HTTP),
	}, nil
}

// issuerOf names who issues the proofs that an endpoint sends.
func issuerOf(baseURL string) string {
	endpoint, err := url.Parse(baseURL)
	if err != nil || strings.EqualFold(endpoint.Hostname(), "api.openai.com") {
		return "openai"
	}
	return strings.ToLower(endpoint.Host)
}

// Class returns the class name in errors.
func (c *Client) Class() string { return class }

// Model returns the upstream model id.
func (c *Client) Model() string { return c.model }

func (c *Client) unsupported(parameter, reason string) error {
	return &mmsp.UnsupportedParameterError{Client: class, Parameter: parameter, Message: reason}
}

func (c *Client) convertToolChoice(choice *mmsp.ToolChoice) any {
	if choice.Mode != "" {
		return choice.Mode
	}
	// A list of names means that one of them must be called.
	allowed := openairesponses.AllowedToolChoice{Type: "allowed_tools", Mode: "required", Tools: []openairesponses.FunctionTool{}}
	for _, name := range choice.Names {
		allowed.Tools = append(allowed.Tools, openairesponses.FunctionTool{Type: "function", Name: name})
	}
	return allowed
}

// convertThinkingLevel names the effort. GPT-6 cannot do without thinking.
func (c *Client) convertThinkingLevel(level mmsp.ThinkingLevel) string {
	if level == mmsp.ThinkingNone && strings.Contains(c.model, "gpt-6") {
		return string(mmsp.ThinkingLow)
	}
	return string(level)
}

// convertText says what the text of the answer must be, nil where nothing is said.
func (c *Client) convertText(config *mmsp.Config) *openairesponses.Text {
	text := openairesponses.Text{Verbosity: string(config.Verbosity)}
	switch format := config.ResponseFormat; {
	case format == nil, format.Type == mmsp.FormatText:
	case format.Type == mmsp.FormatJSONSchema: // which the protocol wants to have a name
		text.Format = &openairesponses.Format{
			Type: format.Type, Name: cmp.Or(format.Name, "response"), Description: format.Description, Schema: format.Schema, Strict: format.Strict,
		}
	default:
		text.Format = &openairesponses.Format{Type: format.Type}
	}
	if text == (openairesponses.Text{}) {
		return nil
	}
	return &text
}

// transformUniConfigToModelConfig turns the config into the request but for its input.
func (c *Client) transformUniConfigToModelConfig(config *mmsp.Config) (*openairesponses.Request, error) {
	request := &openairesponses.Request{
		Model:  c.model,
		Stream: true,
	}
	request.Instructions = config.SystemPrompt
	request.MaxOutputTokens = config.MaxTokens
	request.Temperature, request.TopP = config.Temperature, config.TopP
	request.PresencePenalty, request.FrequencyPenalty = config.PresencePenalty, config.FrequencyPenalty
	for _, p := range []struct {
		name  string
		given bool
	}{
		{"top_k", config.TopK != nil},
		{"stop_sequences", len(config.StopSequences) > 0},
		{"seed", config.Seed != nil},
	} {
		if p.given {
			return nil, c.unsupported(p.name, "the Responses API has no "+p.name)
		}
	}
	if level := config.EffectiveThinkingLevel(); level != "" {
		request.Reasoning = &openairesponses.Reasoning{Effort: c.convertThinkingLevel(level)}
		// Without an effort some endpoints take the object for "no thinking".
		if config.ThinkingSummary != nil && *config.ThinkingSummary {
			request.Reasoning.Summary = "concise"
		}
	}
	if config.Tools != nil {
		tools := []openairesponses.Tool{}
		for i := range config.Tools {
			tools = append(tools, config.Tools[i].AppendJSON(nil))
		}
		request.Tools = &tools
	}
	if config.ToolChoice != nil {
		request.ToolChoice = c.convertToolChoice(config.ToolChoice)
	}
	request.ParallelToolCalls = config.ParallelToolCalls
	request.Text = c.convertText(config)
	if config.FastMode {
		request.ServiceTier = "priority"
	}
	request.ServiceTier = cmp.Or(config.ServiceTier, request.ServiceTier)
	request.PromptCacheKey, request.Metadata = config.PromptCacheKey, config.Metadata
	if utf8.RuneCountInString(config.User) <= 64 { // longer ones are refused
		request.User = config.User
	}
	if config.PromptCaching != "" && config.PromptCaching != mmsp.CachingEnable {
		return nil, c.unsupported("prompt_caching", "the Responses API caches prompts by itself; only enable is possible")
	}
	return request, nil
}

// convertMedia makes a part of a picture or, in a data URL, of a document, which may have a name. Endpoints fetch remote
// pictures themselves; the protocol takes no sound.
func (c *Client) convertMedia(url, detail, filename string) (openairesponses.ContentPart, error) {
	mediaType, _, _ := images.ParseDataURL(url)
	switch kind, _, _ := strings.Cut(mediaType, "/"); kind {
	case "", "image":
		if detail == "" && images.NeedsHighDetail(c.model, url) {
			detail = "high"
		}
		return openairesponses.ContentPart{Type: "input_image", ImageURL: url, Detail: detail}, nil
	case "audio", "video":
		return openairesponses.ContentPart{}, fmt.Errorf("%s cannot send %s, only pictures and documents", class, mediaType)
	}
	url, name := images.TakeName(url)
	return openairesponses.ContentPart{Type: "input_file", Filename: images.FileName(cmp.Or(filename, name), mediaType), FileData: url}, nil
}

// fidelity is what the client keeps of an item beside its text.
type fidelity struct {
	Phase string `json:"phase,omitempty"` // of text

	// Of thinking: the list that its text stood in, and proofs, bound to who issued them.
	Channel          string `json:"channel,omitempty"` // summary; else its content
	EncryptedContent string `json:"encrypted_content,omitempty"`
	Signature        string `json:"signature,omitempty"`
	Format           string `json:"format,omitempty"`
	Issuer           string `json:"issuer,omitempty"`
}

// encode returns the JSON object, nil if it were empty.
func (f fidelity) encode() mmsp.Fidelity {
	if f == (fidelity{}) {
		return nil
	}
	object, _ := json.Marshal(f)
	return object
}

// transformUniMessageToModelInput turns the messages into the request's input. Text and pictures gather in a message,
// which goes out before any item that is no part of one, so that the order of the turn is kept.
func (c *Client) transformUniMessageToModelInput(messages []mmsp.Message) ([]any, error) {
	input := []any{}
	for m := range messages {
		message := &messages[m]
		textType := "input_text"
		if message.Role == mmsp.RoleAssistant {
			textType = "output_text"
		}
		var parts []openairesponses.ContentPart
		var phase string
		flush := func() {
			if len(parts) > 0 {
				input = append(input, openairesponses.Message{Type: "message", Role: string(message.Role), Content: parts, Phase: phase})
				parts = nil
			}
		}
		for i := range message.ContentItems {
			item := &message.ContentItems[i]
			invalid := func(field, reason string) error {
				return &mmsp.InvalidRequestError{Param: fmt.Sprintf("messages[%d].content_items[%d]%s", m, i, field), Message: reason}
			}
			switch item.Type {
			case mmsp.TextDone:
				if message.Role == mmsp.RoleAssistant {
					var kept fidelity
					if item.Fidelity.Decode(&kept); kept.Phase != "" && kept.Phase != phase {
						if phase != "" {
							flush()
						}
						phase = kept.Phase
					}
				}
				parts = append(parts, openairesponses.ContentPart{Type: textType, Text: &item.Text})
			case mmsp.ImageURLDone:
				part, err := c.convertMedia(item.ImageURL, item.Detail, "")
				if err != nil {
					return nil, invalid(".image_url", err.Error())
				}
				parts = append(parts, part)
			case mmsp.InlineDataDone:
				if message.Role == mmsp.RoleAssistant {
					return nil, invalid("", fmt.Sprintf("%s cannot send %s items of the model's own", class, item.Type))
				}
				part, err := c.convertMedia(images.DataURL(item.MimeType, item.Data), "", item.Filename)
				if err != nil {
					return nil, invalid("", err.Error())
				}
				parts = append(parts, part)
			case mmsp.ThinkingDone:
				if item.Thinking == redactedThinking {
					continue
				}
				var kept fidelity
				item.Fidelity.Decode(&kept)
				if kept.Issuer != "" && kept.Issuer != c.issuer {
					continue // another's reasoning stays out whole: the proof is void here, and the text without it proves nothing
				}
				flush()
				reasoning := openairesponses.ReasoningItem{
					Type: "reasoning", Summary: []openairesponses.ContentPart{},
					EncryptedContent: kept.EncryptedContent, Signature: kept.Signature, Format: kept.Format,
				}
				switch {
				case item.Thinking == "":
				case kept.Channel == "summary":
					reasoning.Summary = []openairesponses.ContentPart{{Type: "summary_text", Text: &item.Thinking}}
				default:
					reasoning.Content = []openairesponses.ContentPart{{Type: "reasoning_text", Text: &item.Thinking}}
				}
				input = append(input, reasoning)
			case mmsp.ToolCallDone:
				flush()
				input = append(input, openairesponses.FunctionCall{
					Type: "function_call", CallID: item.ToolCallID, Name: item.Name, Arguments: cmp.Or(item.Arguments, "{}"),
				})
			case mmsp.ToolResultDone:
				flush()
				result := openairesponses.FunctionCallOutput{Type: "function_call_output", CallID: item.ToolCallID, Output: item.Text}
				if len(item.Images) > 0 {
					output := []openairesponses.ContentPart{{Type: "input_text", Text: &item.Text}}
					for j, url := range item.Images {
						part, err := c.convertMedia(url, "", "")
						if err != nil {
							return nil, invalid(fmt.Sprintf(".images[%d]", j), err.Error())
						}
						output = append(output, part)
					}
					result.Output = output
				}
				input = append(input, result)
			default:
				return nil, invalid("", fmt.Sprintf("%s cannot send %s items", class, item.Type))
			}
		}
		flush()
	}
	return input, nil
}

var refusalMark = mmsp.Fidelity(`{"refusal":true}`)

// convertPart appends the delta of a part of a message. A refusal is an item of its own.
func (c *Client) convertPart(event *mmsp.UniEvent, part openairesponses.Part, itemID string) {
	switch {
	case part.Text == "":
	case part.Type == openairesponses.PartRefusal:
		event.AddText("refusal", part.Text).Fidelity = refusalMark
		event.Type, event.StopDetail = mmsp.EventStop, &mmsp.StopDetail{Kind: "refusal"}
	case part.Type == openairesponses.PartOutputText:
		event.AddText(itemID, part.Text)
	case part.Type == openairesponses.PartReasoningText, part.Type == openairesponses.PartSummaryText:
		event.AddThinking(itemID, part.Text)
	}
}

// transformModelOutputToUniEvent turns one wire event into one event. Closing events hold only what no earlier event of
// the stream has said.
func (c *Client) transformModelOutputToUniEvent(modelOutput *openairesponses.Event, event *mmsp.UniEvent) error {
	event.Reset()
	item := &modelOutput.Item
	switch modelOutput.Type {
	case openairesponses.EventOutputTextDelta, openairesponses.EventOutputTextDone,
		openairesponses.EventRefusalDelta, openairesponses.EventRefusalDone,
		openairesponses.EventReasoningSummaryTextDelta, openairesponses.EventReasoningSummaryTextDone,
		openairesponses.EventReasoningTextDelta, openairesponses.EventReasoningTextDone,
		openairesponses.EventReasoningDelta, openairesponses.EventReasoningDone,
		openairesponses.EventContentPartDone, openairesponses.EventReasoningSummaryPartDone:
		c.convertPart(event, modelOutput.Part, modelOutput.ItemID)
	case openairesponses.EventOutputItemAdded, openairesponses.EventOutputItemDone:
		done := modelOutput.Type == openairesponses.EventOutputItemDone
		switch item.Type {
		case openairesponses.ItemMessage:
			if !done || item.Phase != "" {
				event.AddText(item.ID, "").Fidelity = fidelity{Phase: item.Phase}.encode()
			}
			for _, part := range item.Content {
				c.convertPart(event, part, item.ID)
			}
		case openairesponses.ItemReasoning:
			// Before the item is done its encrypted content may be cut, so that only the done event has it.
			var kept fidelity
			var text strings.Builder
			switch {
			case len(item.Summary) > 0:
				kept.Channel = "summary"
				for _, part := range item.Summary {
					text.WriteString(part.Text)
				}
			default:
				for _, part := range item.Content {
					text.WriteString(part.Text)
				}
			}
			kept.EncryptedContent, kept.Signature, kept.Format = item.EncryptedContent, item.Signature, item.Format
			if kept.EncryptedContent != "" || kept.Signature != "" {
				kept.Issuer = c.issuer
			}
			if proof := kept.encode(); !done || text.Len() > 0 || proof != nil {
				event.AddThinking(item.ID, text.String()).Fidelity = proof
			}
		case openairesponses.ItemFunctionCall:
			if !done || item.Name != "" || item.Arguments != "" {
				event.AddToolCall(cmp.Or(item.ID, item.CallID), mmsp.CallRef{Keyed: true, Index: modelOutput.OutputIndex}, item.CallID, item.Name, item.Arguments)
			}
		}
	case openairesponses.EventFunctionCallArgumentsDelta, openairesponses.EventFunctionCallArgumentsDone:
		if modelOutput.Arguments != "" {
			event.AddToolCall(modelOutput.ItemID, mmsp.CallRef{Keyed: true, Index: modelOutput.OutputIndex}, modelOutput.CallID, "", modelOutput.Arguments)
		}
	case openairesponses.EventCompleted, openairesponses.EventIncomplete:
		event.Type = mmsp.EventStop
		event.Usage = &mmsp.Usage{} // usage may never come
		switch {
		case modelOutput.Type == openairesponses.EventCompleted:
			event.FinishReason = mmsp.FinishStop
		case modelOutput.Response.IncompleteReason == "content_filter":
			event.FinishReason, event.StopDetail = mmsp.FinishUnknown, &mmsp.StopDetail{Kind: "filter"}
		default: // max_output_tokens, or whatever cut it
			event.FinishReason = mmsp.FinishLength
		}
		if usage := modelOutput.Response.Usage; usage != nil {
			cached, thoughts := new(int64), new(int64)
			if usage.CachedTokens != nil {
				cached = usage.CachedTokens
			}
			if usage.ReasoningTokens != nil {
				thoughts = usage.ReasoningTokens
			}
			event.Usage = &mmsp.Usage{CachedTokens: cached, ThoughtsTokens: thoughts}
			if usage.InputTokens != nil {
				prompt := *usage.InputTokens
				if prompt >= *cached { // some gateways leave cached ones out of the sum
					prompt -= *cached
				}
				event.Usage.PromptTokens = &prompt
			}
			if usage.OutputTokens != nil {
				response := *usage.OutputTokens
				if response >= *thoughts { // some gateways leave reasoning out of the sum
					response -= *thoughts
				}
				event.Usage.ResponseTokens = &response
			}
		}
	case openairesponses.EventCreated, openairesponses.EventInProgress, openairesponses.EventContentPartAdded,
		openairesponses.EventReasoningSummaryPartAdded, openairesponses.EventKeepalive:
	default:
		if c.debug() {
			//lint:ignore ST1005 the text begins as every implementation of the protocol begins it
			return fmt.Errorf("Unknown output of %s: an event of type %q", class, modelOutput.Type)
		}
	}
	return nil
}

// debug reports whether MMSP_DEBUG is on.
func (c *Client) debug() bool {
	switch strings.ToLower(strings.TrimSpace(c.getenv("MMSP_DEBUG"))) {
	case "", "0", "false", "no", "off":
		return false
	}
	return true
}

// Prepare returns the upstream request.
func (c *Client) Prepare(_ context.Context, messages []mmsp.Message, config *mmsp.Config) (*mmsp.Request, error) {
	request, err := c.transformUniConfigToModelConfig(config)
	if err != nil {
		return nil, err
	}
	if request.Input, err = c.transformUniMessageToModelInput(messages); err != nil {
		return nil, err
	}
	body, err := request.Encode()
	if err != nil { // a number or a schema that JSON cannot say
		return nil, &mmsp.InvalidRequestError{Message: err.Error()}
	}
	return &mmsp.Request{
		Method: http.MethodPost, URL: c.baseURL + "/responses", Body: body,
		Header: http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}},
	}, nil
}

// Do sends the request and yields an event per wire event.
func (c *Client) Do(ctx context.Context, request *mmsp.Request) iter.Seq2[*mmsp.UniEvent, error] {
	return func(yield func(*mmsp.UniEvent, error) bool) { c.streamingResponseInternal(ctx, request, yield) }
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

	var decoder openairesponses.Decoder
	var tracker openairesponses.Tracker
	called, refused := false, false
	// next yields what a wire event says and reports whether to go on.
	next := func(modelOutput *openairesponses.Event, more bool) bool {
		if modelOutput.Error != nil {
			yield(nil, failure.Event(class, response.Redact(modelOutput.Error)))
			return false
		}
		tracker.Trim(modelOutput)
		if err := c.transformModelOutputToUniEvent(modelOutput, &event); err != nil {
			yield(nil, err)
			return false
		}
		called = called || modelOutput.Item.Type == openairesponses.ItemFunctionCall
		refused = refused || event.StopDetail != nil && event.StopDetail.Kind == "refusal"
		if event.FinishReason == mmsp.FinishStop {
			switch {
			case called:
				event.FinishReason = mmsp.FinishToolCall
			case refused:
				event.FinishReason = mmsp.FinishUnknown
			}
		}
		event.Last = event.FinishReason != ""
		event.More = more && !event.Last
		return yield(&event, nil) && !event.Last
	}
	incomplete := func(reason string, err error) {
		yield(nil, &mmsp.IncompleteStreamError{Client: class, Reason: reason, Err: err})
	}

	reader := sse.NewReader(response.Body, c.limits.MaxLineBytes)
	first, err := reader.First()
	switch {
	case err != nil && err != io.EOF:
		incomplete("the connection broke before the first event", err)
		return
	case first == '{' || first == '[':
		// The whole answer in one piece, as long as the response may be.
		body, err := reader.Rest(math.MaxInt64)
		if err != nil {
			incomplete("the connection broke before the end of the answer", err)
			return
		}
		for modelOutput, err := range decoder.Unroll(body) {
			if err != nil {
				yield(nil, failure.Body(class, response.Redact(body)))
				return
			}
			if !next(modelOutput, true) {
				return
			}
		}
		incomplete("the response is not finished", nil)
		return
	case first == '<':
		body, _ := reader.Rest(1 << 20)
		yield(nil, failure.Body(class, response.Redact(body)))
		return
	}

	for number := 1; ; number++ {
		wire, err := reader.Next()
		data := bytes.TrimSpace(wire.Data)
		switch {
		case err == io.EOF || string(data) == "[DONE]":
			incomplete("the stream ended before the terminal event", nil)
			return
		case err != nil:
			incomplete("the connection broke before the terminal event", err)
			return
		}
		modelOutput, err := decoder.Decode(data)
		switch {
		case err != nil && wire.Unterminated:
			continue // cut in the middle of an event: the end of the body comes next
		case err != nil:
			yield(nil, failure.Malformed(class, number, response.Redact(data), err))
			return
		case string(wire.Name) == "error":
			yield(nil, failure.Event(class, response.Redact(data)))
			return
		case tracker.Silent() && (modelOutput.Type == openairesponses.EventCompleted || modelOutput.Type == openairesponses.EventIncomplete):
			// The output stands on the terminal event alone, if anywhere.
			var whole openairesponses.Decoder
			for modelOutput, err := range whole.Unroll(data) {
				if err != nil {
					break
				}
				if !next(modelOutput, true) {
					return
				}
			}
		}
		if !next(modelOutput, reader.More()) {
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
	header.Set("Authorization", "Bearer "+c.key.Reveal())
	return upstream.Request{Method: request.Method, URL: request.URL, Header: header, Body: request.Body}
}

// ListModels returns the ids of GET /models.
func (c *Client) ListModels(ctx context.Context) ([]string, error) {
	request := &mmsp.Request{Method: http.MethodGet, URL: c.baseURL + "/models", Header: http.Header{}}
	response, err := c.http.Do(ctx, c.authorized(request))
	if err != nil {
		return nil, failure.Upstream(class, err)
	}
	return modellist.Read(class, response)
}

// CountTokens returns the answer of POST /responses/input_tokens.
func (c *Client) CountTokens(ctx context.Context, messages []mmsp.Message, config *mmsp.Config) (int64, error) {
	request, err := c.transformUniConfigToModelConfig(config)
	if err != nil {
		return 0, err
	}
	if request.Input, err = c.transformUniMessageToModelInput(messages); err != nil {
		return 0, err
	}
	body, err := request.Count().Encode()
	if err != nil { // a number or a schema that JSON cannot say
		return 0, &mmsp.InvalidRequestError{Message: err.Error()}
	}
	response, err := c.http.Do(ctx, c.authorized(&mmsp.Request{
		Method: http.MethodPost, URL: c.baseURL + "/responses/input_tokens", Body: body,
		Header: http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}},
	}))
	if err != nil {
		return 0, tokens.Failed(class, failure.Upstream(class, err))
	}
	return tokens.Read(class, "input_tokens", response)
}
