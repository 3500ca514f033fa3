// Package zaiofficial is the client type "zai-official": Z.ai's own endpoint of Chat Completions, for GLM. It differs from
// openai-chat in its config, in pictures, in reasoning that goes back as it came, and in calls that need an id.
package zaiofficial

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

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/internal/credentials"
	"github.com/prism-shadow/mmsp-go/internal/failure"
	"github.com/prism-shadow/mmsp-go/internal/modellist"
	"github.com/prism-shadow/mmsp-go/internal/sse"
	"github.com/prism-shadow/mmsp-go/internal/upstream"
	"github.com/prism-shadow/mmsp-go/wire/openaichat"
)

const class = "ZAIOfficialClient"

// usageWait is how long the usage chunk and the end of the stream are waited for after the finish chunk.
const usageWait = 5 * time.Second

// redactedThinking is the text of a thinking item that another provider keeps to itself. It says nothing here.
const redactedThinking = "_REDACTED_THINKING"

// Client speaks Chat Completions to Z.ai for one model.
type Client struct {
	model   string
	key     mmsp.Secret
	baseURL string
	issuer  string
	headers map[string]string
	limits  mmsp.HTTPOptions
	http    *upstream.Client
}

// New reads the key and the endpoint from the options or ZAI_API_KEY and ZAI_BASE_URL.
func New(o mmsp.Options) (*Client, error) {
	key, baseURL, err := credentials.Resolve(&o, credentials.Rule{
		Class: class, KeyVar: "ZAI_API_KEY", URLVar: "ZAI_BASE_URL", DefaultURL: "https://api.z.ai/api/paas/v4", Lenient: true,
	})
	if err != nil {
		return nil, err
	}
	return &Client{
		model: o.Model, key: key, baseURL: baseURL, issuer: issuerOf(baseURL), headers: o.DefaultHeaders, limits: o.HTTP,
		http: upstream.New(o.HTTPClient, o.HTTP),
	}, nil
}

// issuerOf names who issues the proofs that an endpoint sends.
func issuerOf(baseURL string) string {
	endpoint, err := url.Parse(baseURL)
	if err != nil || strings.EqualFold(endpoint.Hostname(), "api.z.ai") {
		return "zai"
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

// is reports whether the model id names a version of GLM, whatever stands around it.
func (c *Client) is(version string) bool { return strings.Contains(strings.ToLower(c.model), version) }

func (c *Client) convertToolChoice(choice *mmsp.ToolChoice) (string, error) {
	if choice.Mode == mmsp.ToolChoiceAuto {
		return choice.Mode, nil
	}
	return "", c.unsupported("tool_choice", "GLM decides by itself whether to call a tool; only auto is possible")
}

// convertThinkingLevel sets what says the level: a switch, and an effort beside it. GLM-5.3 always thinks and knows three
// efforts. Thinking of earlier turns is kept, as it is sent along.
func (c *Client) convertThinkingLevel(level mmsp.ThinkingLevel, request *openaichat.Request) {
	request.Thinking = &openaichat.Thinking{Type: "enabled", ClearThinking: new(false)}
	switch {
	case !c.is("glm-5.3") && level == mmsp.ThinkingNone:
		request.Thinking = &openaichat.Thinking{Type: "disabled"}
	case !c.is("glm-5.3"):
		request.ReasoningEffort = string(level)
	case level == mmsp.ThinkingNone, level == mmsp.ThinkingLow:
		request.ReasoningEffort = "low"
	case level == mmsp.ThinkingMedium, level == mmsp.ThinkingHigh:
		request.ReasoningEffort = "high"
	default:
		request.ReasoningEffort = "max"
	}
}

// transformUniConfigToModelConfig turns the config into the request but for its messages.
func (c *Client) transformUniConfigToModelConfig(config *mmsp.Config) (*openaichat.Request, error) {
	request := &openaichat.Request{
		Model:      c.model,
		Stream:     true,
		ToolStream: true, // else the arguments of a call come in one piece
	}
	request.MaxTokens = config.MaxTokens
	request.Temperature, request.TopP = config.Temperature, config.TopP
	if request.Stop = config.StopSequences; len(request.Stop) > 1 {
		return nil, c.unsupported("stop_sequences", "GLM takes one stop sequence")
	}
	for _, p := range []struct {
		name  string
		given bool
	}{
		{"top_k", config.TopK != nil},
		{"seed", config.Seed != nil},
		{"presence_penalty", config.PresencePenalty != nil && *config.PresencePenalty != 0},
		{"frequency_penalty", config.FrequencyPenalty != nil && *config.FrequencyPenalty != 0},
		{"parallel_tool_calls", config.ParallelToolCalls != nil && !*config.ParallelToolCalls},
		{"verbosity", config.Verbosity != ""},
		{"service_tier", config.ServiceTier != ""},
	} {
		if p.given {
			return nil, c.unsupported(p.name, "GLM has no "+p.name)
		}
	}
	if level := config.EffectiveThinkingLevel(); level != "" {
		c.convertThinkingLevel(level, request)
	}
	if config.Tools != nil {
		tools := []openaichat.Tool{}
		for i := range config.Tools {
			tool := config.Tools[i]
			tool.Strict = nil // which GLM does not know
			tools = append(tools, openaichat.Tool{Type: "function", Function: tool.AppendJSON(nil)})
		}
		request.Tools = &tools
	}
	if config.ToolChoice != nil {
		choice, err := c.convertToolChoice(config.ToolChoice)
		if err != nil {
			return nil, err
		}
		request.ToolChoice = choice
	}
	if format := config.ResponseFormat; format != nil && format.Type != mmsp.FormatText {
		if format.Type != mmsp.FormatJSONObject {
			return nil, c.unsupported("response_format", "GLM answers in JSON, but not of a given schema; only json_object is possible")
		}
		request.ResponseFormat = &openaichat.ResponseFormat{Type: format.Type}
	}
	if len(config.User) >= 6 && len(config.User) <= 128 { // others are refused
		request.UserID = config.User
	}
	if config.FastMode {
		return nil, c.unsupported("fast_mode", "GLM has no fast mode")
	}
	if config.PromptCaching != "" && config.PromptCaching != mmsp.CachingEnable {
		return nil, c.unsupported("prompt_caching", "GLM caches prompts by itself; only enable is possible")
	}
	return request, nil
}

// convertImage makes an image part. Z.ai fetches remote pictures itself. param is the path of the URL in the messages.
func (c *Client) convertImage(url, param string) (openaichat.ContentPart, error) {
	if !c.is("glm-5.3-flash") {
		return openaichat.ContentPart{}, &mmsp.InvalidRequestError{Param: param, Message: c.model + " does not support images"}
	}
	return openaichat.ContentPart{Type: "image_url", ImageURL: &openaichat.ImageURL{URL: url}}, nil
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
func (c *Client) transformUniMessageToModelInput(messages []mmsp.Message) ([]openaichat.Message, error) {
	input := []openaichat.Message{}
	for m := range messages {
		message := &messages[m]
		var parts []openaichat.ContentPart
		var calls []openaichat.ToolCall
		var thinking, unsigned strings.Builder
		turnFields := map[string]bool{} // "" where the field is not known
		var details []openaichat.ReasoningDetail
		for i := range message.ContentItems {
			item := &message.ContentItems[i]
			switch item.Type {
			case mmsp.TextDone:
				parts = append(parts, openaichat.ContentPart{Type: "text", Text: &item.Text})
			case mmsp.ImageURLDone:
				part, err := c.convertImage(item.ImageURL, fmt.Sprintf("messages[%d].content_items[%d].image_url", m, i))
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
			case mmsp.ToolCallDone:
				arguments := item.Arguments
				if arguments == "" {
					arguments = "{}"
				}
				calls = append(calls, openaichat.ToolCall{ID: item.ToolCallID, Type: "function", Function: openaichat.FunctionCall{Name: item.Name, Arguments: arguments}})
			case mmsp.ToolResultDone:
				input = append(input, openaichat.Message{Role: "tool", ToolCallID: item.ToolCallID, Content: item.Text})
				for n, url := range item.Images {
					part, err := c.convertImage(url, fmt.Sprintf("messages[%d].content_items[%d].images[%d]", m, i, n))
					if err != nil {
						return nil, err
					}
					parts = append(parts, part)
				}
			default:
				return nil, &mmsp.InvalidRequestError{
					Param:   fmt.Sprintf("messages[%d].content_items[%d]", m, i),
					Message: fmt.Sprintf("%s cannot send %s items", class, item.Type),
				}
			}
		}
		turn := openaichat.Message{Role: string(message.Role), ToolCalls: calls, ReasoningDetails: details}
		if len(parts) > 0 {
			turn.Content = parts
		}
		if thinking.Len() > 0 {
			turn.ReasoningContent, turn.Reasoning = reasoningFieldsOf(turnFields, new(thinking.String()))
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
		event.AddToolCall("tool_calls", mmsp.CallRef{Keyed: true, Index: call.Index}, call.ID, call.Name, call.Arguments)
	}
	if modelOutput.FinishReason != "" {
		event.Type = mmsp.EventStop
		event.Usage = &mmsp.Usage{} // the terminal event; usage may never come
		switch modelOutput.FinishReason {
		case "stop":
			event.FinishReason = mmsp.FinishStop
		case "length":
			event.FinishReason = mmsp.FinishLength
		case "tool_calls", "function_call":
			event.FinishReason = mmsp.FinishToolCall
		case "content_filter", "sensitive":
			event.FinishReason, event.StopDetail = mmsp.FinishUnknown, &mmsp.StopDetail{Kind: "filter"}
		case "model_context_window_exceeded":
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
func (c *Client) Prepare(_ context.Context, messages []mmsp.Message, config *mmsp.Config) (*mmsp.Request, error) {
	request, err := c.transformUniConfigToModelConfig(config)
	if err != nil {
		return nil, err
	}
	input, err := c.transformUniMessageToModelInput(messages)
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
		yield(nil, &mmsp.IncompleteStreamError{Client: class, Reason: "the connection broke before the first event", Err: err})
		return
	case first == '{' || first == '[':
		// The whole answer in one piece, as long as the response may be.
		body, err := reader.Rest(math.MaxInt64)
		if err != nil {
			yield(nil, &mmsp.IncompleteStreamError{Client: class, Reason: "the connection broke before the end of the answer", Err: err})
			return
		}
		chunk, err := decoder.DecodeWhole(body)
		switch {
		case err != nil || chunk.Error != nil || !chunk.HasChoice:
			yield(nil, failure.Body(class, response.Redact(body)))
			return
		case chunk.ChoiceError != nil:
			yield(nil, failure.Event(class, response.Redact(chunk.ChoiceError)))
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
		yield(nil, failure.Body(class, response.Redact(body)))
		return
	}

	finished := false
	for number := 1; ; number++ {
		wire, err := reader.Next()
		if err != nil && err != io.EOF && !finished {
			yield(nil, &mmsp.IncompleteStreamError{Client: class, Reason: "the connection broke before the finish chunk", Err: err})
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
			yield(nil, failure.Event(class, response.Redact(data)))
			return
		case err != nil:
			yield(nil, failure.Malformed(class, number, response.Redact(data), err))
			return
		case chunk.ChoiceError != nil:
			yield(nil, failure.Event(class, response.Redact(chunk.ChoiceError)))
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
		return nil, failure.Upstream(class, err)
	}
	return modellist.Read(class, response)
}
