// Package openaichat is the client type "openai-chat": any endpoint of the Chat Completions protocol. It is the
// reference that the other clients of the protocol are read against.
package openaichat

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
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/internal/credentials"
	"github.com/prism-shadow/mmsp-go/internal/failure"
	"github.com/prism-shadow/mmsp-go/internal/fetch"
	"github.com/prism-shadow/mmsp-go/internal/images"
	"github.com/prism-shadow/mmsp-go/internal/modellist"
	"github.com/prism-shadow/mmsp-go/internal/sse"
	"github.com/prism-shadow/mmsp-go/internal/upstream"
	"github.com/prism-shadow/mmsp-go/wire/openaichat"
)

// usageWait is how long the usage chunk and the end of the stream are waited for after the finish chunk.
const usageWait = 5 * time.Second

// redactedThinking is the text of a thinking item that another provider keeps to itself. It says nothing here.
const redactedThinking = "_REDACTED_THINKING"

// Client speaks Chat Completions for one model.
type Client struct {
	class   string
	extend  func(*openaichat.Request, *mmsp.Config) // of an adapter; nil: nothing
	model   string
	key     mmsp.Secret
	baseURL string
	issuer  string
	headers map[string]string
	limits  mmsp.HTTPOptions
	http    *upstream.Client
	fetcher *fetch.Fetcher
}

// New reads the key and the endpoint from the options or OPENAI_API_KEY and OPENAI_BASE_URL.
func New(o mmsp.Options) (*Client, error) { return NewAdapter(o, "OpenaiChatClient", nil) }

// NewAdapter is New for a client type that embeds this one: its errors carry another class name, and extend adds to the
// request what the config says in a server program's own fields.
func NewAdapter(o mmsp.Options, class string, extend func(*openaichat.Request, *mmsp.Config)) (*Client, error) {
	key, baseURL, err := credentials.Resolve(&o, credentials.Rule{
		Class: class, KeyVar: "OPENAI_API_KEY", URLVar: "OPENAI_BASE_URL", DefaultURL: "https://api.openai.com/v1",
	})
	if err != nil {
		return nil, err
	}
	return &Client{
		class: class, extend: extend,
		model: o.Model, key: key, baseURL: baseURL, issuer: issuerOf(baseURL), headers: o.DefaultHeaders, limits: o.HTTP,
		http:    upstream.New(o.HTTPClient, o.HTTP),
		fetcher: fetch.New(fetch.Options{AllowPrivate: o.AllowPrivateFetch, MaxBytes: o.HTTP.MaxFetchBytes}),
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
func (c *Client) Class() string { return c.class }

// Model returns the upstream model id.
func (c *Client) Model() string { return c.model }

func (c *Client) unsupported(parameter, reason string) error {
	return &mmsp.UnsupportedParameterError{Client: c.class, Parameter: parameter, Message: reason}
}

func (c *Client) convertToolChoice(choice *mmsp.ToolChoice) any {
	if choice.Mode != "" {
		return choice.Mode
	}
	// A list of names means that one of them must be called. Of one name every server knows the older form.
	if len(choice.Names) == 1 {
		return openaichat.FunctionTool{Type: "function", Function: openaichat.FunctionName{Name: choice.Names[0]}}
	}
	allowed := openaichat.AllowedToolChoice{Type: "allowed_tools", AllowedTools: openaichat.AllowedTools{Mode: "required"}}
	for _, name := range choice.Names {
		allowed.AllowedTools.Tools = append(allowed.AllowedTools.Tools, openaichat.FunctionTool{Type: "function", Function: openaichat.FunctionName{Name: name}})
	}
	return allowed
}

// convertResponseFormat says what the text of the answer must be, nil where nothing is said.
func (c *Client) convertResponseFormat(format *mmsp.ResponseFormat) *openaichat.ResponseFormat {
	switch {
	case format == nil, format.Type == mmsp.FormatText:
		return nil
	case format.Type == mmsp.FormatJSONSchema: // which the protocol wants to have a name
		return &openaichat.ResponseFormat{Type: format.Type, JSONSchema: &openaichat.JSONSchema{
			Name: cmp.Or(format.Name, "response"), Description: format.Description, Schema: format.Schema, Strict: format.Strict,
		}}
	}
	return &openaichat.ResponseFormat{Type: format.Type}
}

// transformUniConfigToModelConfig turns the config into the request but for its messages.
func (c *Client) transformUniConfigToModelConfig(config *mmsp.Config) (*openaichat.Request, error) {
	request := &openaichat.Request{
		Model:         c.model,
		Stream:        true,
		StreamOptions: &openaichat.StreamOptions{IncludeUsage: true},
	}
	request.MaxCompletionTokens = config.MaxTokens
	request.Temperature, request.TopP, request.Stop, request.Seed = config.Temperature, config.TopP, config.StopSequences, config.Seed
	request.PresencePenalty, request.FrequencyPenalty = config.PresencePenalty, config.FrequencyPenalty
	if config.Tools != nil {
		tools := []openaichat.Tool{}
		for i := range config.Tools {
			tools = append(tools, openaichat.Tool{Type: "function", Function: config.Tools[i].AppendJSON(nil)})
		}
		request.Tools = &tools
	}
	if config.ToolChoice != nil {
		request.ToolChoice = c.convertToolChoice(config.ToolChoice)
	}
	request.ParallelToolCalls = config.ParallelToolCalls
	request.ResponseFormat = c.convertResponseFormat(config.ResponseFormat)
	request.Verbosity = string(config.Verbosity)
	if config.FastMode {
		request.ServiceTier = "priority"
	}
	request.ServiceTier = cmp.Or(config.ServiceTier, request.ServiceTier)
	if utf8.RuneCountInString(config.User) <= 64 { // longer ones are refused
		request.User = config.User
	}
	// Metadata is refused beside an answer that is not to be stored.
	if config.PromptCaching != "" && config.PromptCaching != mmsp.CachingEnable {
		return nil, c.unsupported("prompt_caching", "Chat Completions caches prompts by itself; only enable is possible")
	}
	if c.extend != nil {
		c.extend(request, config)
	}
	if config.TopK != nil && request.TopK == nil {
		return nil, c.unsupported("top_k", "Chat Completions has no top_k")
	}
	return request, nil
}

// audioFormats are the sounds that the protocol takes.
var audioFormats = map[string]string{
	"audio/wav": "wav", "audio/x-wav": "wav", "audio/wave": "wav", "audio/vnd.wave": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3",
}

// convertMedia makes a part of a picture or, in a data URL, of a document, which may have a name, or a sound. The protocol
// takes pictures inline only where endpoints cannot fetch, so that remote ones are fetched here. param is the path of the
// URL in the messages.
func (c *Client) convertMedia(ctx context.Context, url, detail, filename, param string) (openaichat.ContentPart, error) {
	if !strings.EqualFold(url[:min(len(url), len("data:"))], "data:") {
		var err error
		if url, err = c.fetcher.Image(ctx, url); err != nil {
			return openaichat.ContentPart{}, &mmsp.InvalidRequestError{Param: param, Message: err.Error()}
		}
	}
	mediaType, payload, _ := images.ParseDataURL(url)
	switch kind, _, _ := strings.Cut(mediaType, "/"); {
	case kind == "", kind == "image":
		if detail == "" && images.NeedsHighDetail(c.model, url) {
			detail = "high"
		}
		return openaichat.ContentPart{Type: "image_url", ImageURL: &openaichat.ImageURL{URL: url, Detail: detail}}, nil
	case audioFormats[mediaType] != "":
		return openaichat.ContentPart{Type: "input_audio", InputAudio: &openaichat.InputAudio{Data: payload, Format: audioFormats[mediaType]}}, nil
	case kind == "audio", kind == "video":
		return openaichat.ContentPart{}, &mmsp.InvalidRequestError{
			Param:   param,
			Message: fmt.Sprintf("%s cannot send %s, only pictures, documents and wav or mp3 sounds", c.class, mediaType),
		}
	}
	url, name := images.TakeName(url)
	return openaichat.ContentPart{Type: "file", File: &openaichat.File{Filename: images.FileName(cmp.Or(filename, name), mediaType), FileData: url}}, nil
}

// fidelity is what the client keeps of thinking beside its text.
type fidelity struct {
	ReasoningField string `json:"reasoning_field,omitempty"` // reasoning_content or reasoning

	// A detail without its text, which is that of the item, bound to who issued it.
	ReasoningDetails []openaichat.ReasoningDetail `json:"reasoning_details,omitempty"`
	Issuer           string                       `json:"issuer,omitempty"`
}

// transformUniMessageToModelInput turns the messages into the request's. Tool results of a turn come first, each as a
// message of its own, and what else the turn holds follows in one message.
func (c *Client) transformUniMessageToModelInput(ctx context.Context, messages []mmsp.Message) ([]openaichat.Message, error) {
	ctx = fetch.ForRequest(ctx)
	input := []openaichat.Message{}
	reasoningFields := map[string]bool{} // of all thinking so far; "" where the field is not known
	for m := range messages {
		message := &messages[m]
		var parts []openaichat.ContentPart
		var calls []openaichat.ToolCall
		var thinking, unsigned strings.Builder
		turnFields := map[string]bool{}
		var details []openaichat.ReasoningDetail
		for i := range message.ContentItems {
			item := &message.ContentItems[i]
			switch item.Type {
			case mmsp.TextDone:
				parts = append(parts, openaichat.ContentPart{Type: "text", Text: &item.Text})
			case mmsp.ImageURLDone:
				part, err := c.convertMedia(ctx, item.ImageURL, item.Detail, "", fmt.Sprintf("messages[%d].content_items[%d].image_url", m, i))
				if err != nil {
					return nil, err
				}
				parts = append(parts, part)
			case mmsp.InlineDataDone:
				param := fmt.Sprintf("messages[%d].content_items[%d]", m, i)
				if message.Role == mmsp.RoleAssistant {
					return nil, &mmsp.InvalidRequestError{Param: param, Message: fmt.Sprintf("%s cannot send %s items of the model's own", c.class, item.Type)}
				}
				part, err := c.convertMedia(ctx, images.DataURL(item.MimeType, item.Data), "", item.Filename, param)
				if err != nil {
					return nil, err
				}
				parts = append(parts, part)
			case mmsp.ThinkingDone:
				if item.Thinking == redactedThinking {
					continue
				}
				var kept fidelity
				item.Fidelity.Decode(&kept)
				if len(kept.ReasoningDetails) > 0 {
					if kept.Issuer == "" || kept.Issuer == c.issuer {
						details = appendDetails(details, kept.ReasoningDetails, item.Thinking, &unsigned)
						continue
					} else if item.Thinking == "" {
						continue // another's proof, void here
					}
				}
				thinking.WriteString(item.Thinking)
				unsigned.WriteString(item.Thinking)
				turnFields[kept.ReasoningField] = true
				if item.Thinking != "" {
					reasoningFields[kept.ReasoningField] = true
				}
			case mmsp.ToolCallDone:
				arguments := item.Arguments
				if arguments == "" {
					arguments = "{}"
				}
				calls = append(calls, openaichat.ToolCall{ID: item.ToolCallID, Type: "function", Function: openaichat.FunctionCall{Name: item.Name, Arguments: arguments}})
			case mmsp.ToolResultDone:
				input = append(input, openaichat.Message{Role: "tool", ToolCallID: item.ToolCallID, Content: item.Text})
				for n, url := range item.Images {
					part, err := c.convertMedia(ctx, url, "", "", fmt.Sprintf("messages[%d].content_items[%d].images[%d]", m, i, n))
					if err != nil {
						return nil, err
					}
					parts = append(parts, part)
				}
			default:
				return nil, &mmsp.InvalidRequestError{
					Param:   fmt.Sprintf("messages[%d].content_items[%d]", m, i),
					Message: fmt.Sprintf("%s cannot send %s items", c.class, item.Type),
				}
			}
		}
		turn := openaichat.Message{Role: string(message.Role), ToolCalls: calls, ReasoningDetails: details}
		if len(parts) > 0 {
			turn.Content = parts
		}
		switch {
		case thinking.Len() > 0:
			turn.ReasoningContent, turn.Reasoning = reasoningFieldsOf(turnFields, new(thinking.String()))
		case len(calls) > 0 && len(reasoningFields) > 0:
			// Strict servers want the field on every turn with calls once the conversation had it.
			turn.ReasoningContent, turn.Reasoning = reasoningFieldsOf(reasoningFields, new(""))
		}
		if turn.Content != nil || turn.ToolCalls != nil || turn.ReasoningContent != nil || turn.Reasoning != nil || turn.ReasoningDetails != nil {
			input = append(input, turn)
		}
	}
	return input, nil
}

// reasoningFieldsOf puts the text on the field it came in, on both where that is not known.
func reasoningFieldsOf(fields map[string]bool, text *string) (reasoningContent, reasoning *string) {
	switch {
	case len(fields) == 1 && fields["reasoning_content"]:
		return text, nil
	case len(fields) == 1 && fields["reasoning"]:
		return nil, text
	}
	return text, text
}

// appendDetails adds an item's details to those of its turn. The text of the item is that of the first one. A signature
// that came after its text takes it from the detail before it, or from the strings of the turn.
func appendDetails(details, kept []openaichat.ReasoningDetail, text string, unsigned *strings.Builder) []openaichat.ReasoningDetail {
	for _, detail := range kept {
		last := len(details) - 1
		switch {
		case detail.Type == "reasoning.summary":
			detail.Summary, text = text, ""
		case text != "" || detail.Signature == "":
			detail.Text, text = text, ""
		case last >= 0 && details[last].Text != "" && details[last].Signature == "":
			details[last].Signature = detail.Signature
			continue
		default:
			detail.Text = unsigned.String()
			unsigned.Reset()
		}
		details = append(details, detail)
	}
	return details
}

var (
	reasoningContentField = mmsp.Fidelity(`{"reasoning_field":"reasoning_content"}`)
	reasoningField        = mmsp.Fidelity(`{"reasoning_field":"reasoning"}`)
	refusalMark           = mmsp.Fidelity(`{"refusal":true}`)
)

// convertDetails appends a delta for each detail. Details that say different things are items of their own.
func (c *Client) convertDetails(event *mmsp.UniEvent, details []openaichat.ReasoningDetail) {
	for _, detail := range details {
		text := detail.Said()
		detail.Text, detail.Summary = "", ""
		kept, _ := json.Marshal(fidelity{ReasoningDetails: []openaichat.ReasoningDetail{detail}, Issuer: c.issuer})
		event.AddThinking(string(kept), text).Fidelity = kept
	}
}

// transformModelOutputToUniEvent turns one chunk into one event.
func (c *Client) transformModelOutputToUniEvent(modelOutput *openaichat.Chunk, event *mmsp.UniEvent) {
	event.Reset()
	delta := &modelOutput.Delta
	switch {
	case delta.ReasoningContent != "" && delta.Reasoning != "":
		event.AddThinking("reasoning_content", delta.ReasoningContent)
	case delta.ReasoningContent != "":
		event.AddThinking("reasoning_content", delta.ReasoningContent).Fidelity = reasoningContentField
	case delta.Reasoning != "":
		event.AddThinking("reasoning", delta.Reasoning).Fidelity = reasoningField
	}
	c.convertDetails(event, delta.ReasoningDetails)
	for i := range delta.Parts {
		if part := &delta.Parts[i]; part.Thinking {
			event.AddThinking("content", part.Text)
		} else {
			event.AddText("content", part.Text)
		}
	}
	if delta.Refusal != "" {
		event.AddText("refusal", delta.Refusal).Fidelity = refusalMark
		event.Type, event.StopDetail = mmsp.EventStop, &mmsp.StopDetail{Kind: "refusal"}
	}
	for i := range delta.ToolCalls {
		call := &delta.ToolCalls[i]
		// Some endpoints give calls no id.
		event.AddToolCall("tool_calls", mmsp.CallRef{Keyed: true, Index: call.Index, NameAsID: true}, call.ID, call.Name, call.Arguments)
	}
	if modelOutput.FinishReason != "" {
		event.Type = mmsp.EventStop
		event.Usage = &mmsp.Usage{} // the terminal event; usage may never come
		switch modelOutput.FinishReason {
		case "stop":
			event.FinishReason = mmsp.FinishStop
		case "length", "max_tokens":
			event.FinishReason = mmsp.FinishLength
		case "tool_calls", "function_call":
			event.FinishReason = mmsp.FinishToolCall
		case "content_filter":
			event.FinishReason, event.StopDetail = mmsp.FinishUnknown, &mmsp.StopDetail{Kind: "filter"}
		case "model_length", "model_context_window_exceeded": // of Mistral and of Z.AI
			event.FinishReason, event.StopDetail = mmsp.FinishUnknown, &mmsp.StopDetail{Kind: "context"}
		default:
			event.FinishReason = mmsp.FinishUnknown
		}
	}
	if usage := modelOutput.Usage; usage != nil {
		event.Type = mmsp.EventStop
		event.Usage = &mmsp.Usage{CachedTokens: usage.CachedTokens, ThoughtsTokens: usage.ReasoningTokens}
		if usage.PromptTokens != nil {
			prompt := *usage.PromptTokens
			if usage.CachedTokens != nil && prompt >= *usage.CachedTokens { // some gateways leave cached ones out of the sum
				prompt -= *usage.CachedTokens
			}
			event.Usage.PromptTokens = &prompt
		}
		if usage.CompletionTokens != nil {
			response := *usage.CompletionTokens
			if usage.ReasoningTokens != nil && response >= *usage.ReasoningTokens { // some gateways leave reasoning out of the sum
				response -= *usage.ReasoningTokens
			}
			event.Usage.ResponseTokens = &response
		}
	}
}

// Prepare returns the upstream request.
func (c *Client) Prepare(ctx context.Context, messages []mmsp.Message, config *mmsp.Config) (*mmsp.Request, error) {
	request, err := c.transformUniConfigToModelConfig(config)
	if err != nil {
		return nil, err
	}
	input, err := c.transformUniMessageToModelInput(ctx, messages)
	if err != nil {
		return nil, err
	}
	if config.SystemPrompt != nil && *config.SystemPrompt != "" {
		input = append([]openaichat.Message{{Role: "system", Content: *config.SystemPrompt}}, input...)
	}
	request.Messages = input
	body, err := request.Encode()
	if err != nil { // a number or a schema that JSON cannot say
		return nil, &mmsp.InvalidRequestError{Message: err.Error()}
	}
	return &mmsp.Request{
		Method: http.MethodPost, URL: c.baseURL + "/chat/completions", Body: body,
		Header: http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}},
	}, nil
}

// Do sends the request and yields an event per chunk.
func (c *Client) Do(ctx context.Context, request *mmsp.Request) iter.Seq2[*mmsp.UniEvent, error] {
	return func(yield func(*mmsp.UniEvent, error) bool) { c.streamingResponseInternal(ctx, request, yield) }
}

func (c *Client) streamingResponseInternal(ctx context.Context, request *mmsp.Request, yield func(*mmsp.UniEvent, error) bool) {
	response, err := c.http.Do(ctx, c.authorized(request))
	if err != nil {
		yield(nil, failure.Upstream(c.class, err))
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

	var called, refused bool
	var held []openaichat.ReasoningDetail // proofs that would end the call in whose midst they come
	next := func(chunk *openaichat.Chunk) {
		if called {
			chunk.Delta.ReasoningDetails = slices.DeleteFunc(chunk.Delta.ReasoningDetails, func(detail openaichat.ReasoningDetail) bool {
				if detail.Said() == "" {
					held = append(held, detail)
					return true
				}
				return false
			})
		}
		c.transformModelOutputToUniEvent(chunk, &event)
		called = called || len(chunk.Delta.ToolCalls) > 0
		refused = refused || chunk.Delta.Refusal != ""
		if event.FinishReason == mmsp.FinishStop {
			switch {
			case called: // some endpoints report stop for a turn that made calls
				event.FinishReason = mmsp.FinishToolCall
			case refused:
				event.FinishReason = mmsp.FinishUnknown
			}
		}
	}

	var decoder openaichat.Decoder
	reader := sse.NewReader(response.Body, c.limits.MaxLineBytes)
	first, err := reader.First()
	switch {
	case err != nil && err != io.EOF:
		yield(nil, &mmsp.IncompleteStreamError{Client: c.class, Reason: "the connection broke before the first event", Err: err})
		return
	case first == '{' || first == '[':
		// The whole answer in one piece, as long as the response may be.
		body, err := reader.Rest(math.MaxInt64)
		if err != nil {
			yield(nil, &mmsp.IncompleteStreamError{Client: c.class, Reason: "the connection broke before the end of the answer", Err: err})
			return
		}
		chunk, err := decoder.DecodeWhole(body)
		switch {
		case err != nil || chunk.Error != nil || !chunk.HasChoice:
			yield(nil, failure.Body(c.class, response.Redact(body)))
			return
		case chunk.ChoiceError != nil:
			yield(nil, failure.Event(c.class, response.Redact(chunk.ChoiceError)))
			return
		}
		next(chunk)
		if event.FinishReason == "" && chunk.HasMessage { // it is whole all the same
			event.Type, event.FinishReason, event.Usage = mmsp.EventStop, mmsp.FinishUnknown, cmp.Or(event.Usage, &mmsp.Usage{})
		}
		event.Last = true
		yield(&event, nil)
		return
	case first == '<':
		body, _ := reader.Rest(1 << 20)
		yield(nil, failure.Body(c.class, response.Redact(body)))
		return
	}

	finished := false
	for number := 1; ; number++ {
		wire, err := reader.Next()
		if err != nil && err != io.EOF && !finished {
			yield(nil, &mmsp.IncompleteStreamError{Client: c.class, Reason: "the connection broke before the finish chunk", Err: err})
			return
		}
		data := bytes.TrimSpace(wire.Data)
		if err != nil || string(data) == "[DONE]" {
			event.Reset()
			if event.Last = finished; finished {
				c.convertDetails(&event, held)
			}
			yield(&event, nil)
			return
		}
		chunk, err := decoder.Decode(data)
		switch {
		case err != nil && wire.Unterminated:
			continue // cut in the middle of an event: the end of the body comes next
		case string(wire.Name) == "error" || err == nil && chunk.Error != nil:
			yield(nil, failure.Event(c.class, response.Redact(data)))
			return
		case err != nil:
			yield(nil, failure.Malformed(c.class, number, response.Redact(data), err))
			return
		case chunk.ChoiceError != nil:
			yield(nil, failure.Event(c.class, response.Redact(chunk.ChoiceError)))
			return
		}
		next(chunk)
		// The usage chunk comes after the finish chunk, if it comes.
		if event.Last = finished && chunk.Usage != nil && !chunk.HasChoice; event.Last {
			c.convertDetails(&event, held)
		}
		event.More = reader.More()
		if event.FinishReason != "" && !finished {
			finished = true
			response.Linger(usageWait)
		}
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
	header.Set("Authorization", "Bearer "+c.key.Reveal())
	return upstream.Request{Method: request.Method, URL: request.URL, Header: header, Body: request.Body}
}

// ListModels returns the ids of GET /models.
func (c *Client) ListModels(ctx context.Context) ([]string, error) {
	request := &mmsp.Request{Method: http.MethodGet, URL: c.baseURL + "/models", Header: http.Header{}}
	response, err := c.http.Do(ctx, c.authorized(request))
	if err != nil {
		return nil, failure.Upstream(c.class, err)
	}
	return modellist.Read(c.class, response)
}
