// Package deepseekofficial is the client type "deepseek-official": DeepSeek's own endpoint of the Responses protocol. It
// is read as a diff of openai-official: reasoning is plain text there, which goes back as text and needs no proof.
package deepseekofficial

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"math"
	"net/http"
	"regexp"
	"strings"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/internal/credentials"
	"github.com/prism-shadow/mmsp-go/internal/failure"
	"github.com/prism-shadow/mmsp-go/internal/modellist"
	"github.com/prism-shadow/mmsp-go/internal/sse"
	"github.com/prism-shadow/mmsp-go/internal/upstream"
	"github.com/prism-shadow/mmsp-go/wire/openairesponses"
)

const class = "DeepSeekOfficialClient"

// redactedThinking is the text of a thinking item that another provider keeps to itself. It says nothing here.
const redactedThinking = "_REDACTED_THINKING"

// Client speaks Responses to DeepSeek for one model.
type Client struct {
	model   string
	key     mmsp.Secret
	baseURL string
	headers map[string]string
	limits  mmsp.HTTPOptions
	getenv  func(string) string
	http    *upstream.Client
}

// New reads the key and the endpoint from the options or DEEPSEEK_API_KEY and DEEPSEEK_BASE_URL. The variable of the key
// is DeepSeek's alone, so that it serves whatever endpoint is given.
func New(o mmsp.Options) (*Client, error) {
	key, baseURL, err := credentials.Resolve(&o, credentials.Rule{
		Class: class, KeyVar: "DEEPSEEK_API_KEY", URLVar: "DEEPSEEK_BASE_URL", DefaultURL: "https://api.deepseek.com", Lenient: true,
	})
	if err != nil {
		return nil, err
	}
	return &Client{
		model: o.Model, key: key, baseURL: baseURL, headers: o.DefaultHeaders, limits: o.HTTP,
		getenv: o.Env,
		http:   upstream.New(o.HTTPClient, o.HTTP),
	}, nil
}

// Class returns the class name in errors.
func (c *Client) Class() string { return class }

// Model returns the upstream model id.
func (c *Client) Model() string { return c.model }

func (c *Client) unsupported(parameter, reason string) error {
	return &mmsp.UnsupportedParameterError{Client: class, Parameter: parameter, Message: reason}
}

// convertThinkingLevel names the effort. DeepSeek V4 has no medium and nothing between high and max.
func (c *Client) convertThinkingLevel(level mmsp.ThinkingLevel) string {
	switch level {
	case mmsp.ThinkingNone, mmsp.ThinkingLow, mmsp.ThinkingMax:
		return string(level)
	}
	return string(mmsp.ThinkingHigh)
}

// transformUniConfigToModelConfig turns the config into the request but for its input.
func (c *Client) transformUniConfigToModelConfig(config *mmsp.Config) (*openairesponses.Request, error) {
	request := &openairesponses.Request{
		Model:  c.model,
		Stream: true,
	}
	request.Instructions = config.SystemPrompt
	request.MaxOutputTokens = config.MaxTokens
	if config.Temperature != nil && *config.Temperature != 1 {
		return nil, c.unsupported("temperature", "DeepSeek V4 has no temperature; only 1 is possible")
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
		{"parallel_tool_calls", config.ParallelToolCalls != nil && !*config.ParallelToolCalls},
		{"verbosity", config.Verbosity != ""},
		{"service_tier", config.ServiceTier != ""},
	} {
		if p.given {
			return nil, c.unsupported(p.name, "DeepSeek has no "+p.name)
		}
	}
	if level := config.EffectiveThinkingLevel(); level != "" {
		request.Reasoning = &openairesponses.Reasoning{Effort: c.convertThinkingLevel(level)}
	}
	if config.ThinkingSummary != nil && *config.ThinkingSummary {
		if request.Reasoning == nil {
			request.Reasoning = &openairesponses.Reasoning{}
		}
		request.Reasoning.Summary = "concise"
	}
	if config.Tools != nil {
		tools := []openairesponses.Tool{}
		for i := range config.Tools {
			tools = append(tools, config.Tools[i].AppendJSON(nil))
		}
		request.Tools = &tools
	}
	if config.ToolChoice != nil {
		if config.ToolChoice.Mode != mmsp.ToolChoiceAuto && config.ToolChoice.Mode != mmsp.ToolChoiceNone {
			return nil, c.unsupported("tool_choice", "DeepSeek cannot be made to call a tool; only auto and none are possible")
		}
		request.ToolChoice = config.ToolChoice.Mode
	}
	if format := config.ResponseFormat; format != nil && format.Type != mmsp.FormatText {
		if format.Type != mmsp.FormatJSONObject {
			return nil, c.unsupported("response_format", "DeepSeek answers in JSON, but not of a given schema; only json_object is possible")
		}
		request.Text = &openairesponses.Text{Format: &openairesponses.Format{Type: format.Type}}
	}
	if config.FastMode {
		return nil, c.unsupported("fast_mode", "DeepSeek has no fast mode")
	}
	if config.PromptCaching != "" && config.PromptCaching != mmsp.CachingEnable {
		return nil, c.unsupported("prompt_caching", "DeepSeek caches prompts by itself; only enable is possible")
	}
	return request, nil
}

// textOnly are the models that take no pictures, without a gateway's prefix.
var textOnly = regexp.MustCompile(`^deepseek-v4-(flash|pro)(-[0-9]{4})?$`)

// transformUniMessageToModelInput turns the messages into the request's input. Text and pictures gather in a message,
// which goes out before any item that is no part of one, so that the order of the turn is kept.
func (c *Client) transformUniMessageToModelInput(messages []mmsp.Message) ([]any, error) {
	blind := textOnly.MatchString(strings.ToLower(c.model[strings.LastIndexByte(c.model, '/')+1:]))
	input := []any{}
	for m := range messages {
		message := &messages[m]
		textType := "input_text"
		if message.Role == mmsp.RoleAssistant {
			textType = "output_text"
		}
		var parts []openairesponses.ContentPart
		flush := func() {
			if len(parts) > 0 {
				input = append(input, openairesponses.Message{Type: "message", Role: string(message.Role), Content: parts})
				parts = nil
			}
		}
		for i := range message.ContentItems {
			item := &message.ContentItems[i]
			if blind && (item.Type == mmsp.ImageURLDone || item.Type == mmsp.ToolResultDone && item.Images != nil) {
				return nil, &mmsp.InvalidRequestError{
					Param:   fmt.Sprintf("messages[%d].content_items[%d]", m, i),
					Message: fmt.Sprintf("%s does not support images", c.model),
				}
			}
			switch item.Type {
			case mmsp.TextDone:
				parts = append(parts, openairesponses.ContentPart{Type: textType, Text: &item.Text})
			case mmsp.ImageURLDone:
				parts = append(parts, openairesponses.ContentPart{Type: "input_image", ImageURL: item.ImageURL})
			case mmsp.ThinkingDone:
				if item.Thinking == redactedThinking {
					continue
				}
				flush()
				reasoning := openairesponses.ReasoningItem{Type: "reasoning", Summary: []openairesponses.ContentPart{}}
				if item.Thinking != "" {
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
					for _, url := range item.Images {
						output = append(output, openairesponses.ContentPart{Type: "input_image", ImageURL: url})
					}
					result.Output = output
				}
				input = append(input, result)
			default:
				return nil, &mmsp.InvalidRequestError{
					Param:   fmt.Sprintf("messages[%d].content_items[%d]", m, i),
					Message: fmt.Sprintf("%s cannot send %s items", class, item.Type),
				}
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
	case part.Type == openairesponses.PartReasoningText:
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
		openairesponses.EventReasoningTextDelta, openairesponses.EventReasoningTextDone,
		openairesponses.EventContentPartDone:
		c.convertPart(event, modelOutput.Part, modelOutput.ItemID)
	case openairesponses.EventOutputItemAdded, openairesponses.EventOutputItemDone:
		done := modelOutput.Type == openairesponses.EventOutputItemDone
		switch item.Type {
		case openairesponses.ItemMessage:
			if !done {
				event.AddText(item.ID, "")
			}
			for _, part := range item.Content {
				c.convertPart(event, part, item.ID)
			}
		case openairesponses.ItemReasoning:
			// Proofs and summaries are left: DeepSeek takes its reasoning back as plain text.
			if !done {
				event.AddThinking(item.ID, "")
			}
			for _, part := range item.Content {
				if part.Text != "" {
					event.AddThinking(item.ID, part.Text)
				}
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
		openairesponses.EventKeepalive:
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
