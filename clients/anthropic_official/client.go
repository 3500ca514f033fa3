// Package anthropicofficial is the client type "anthropic-official": Claude over Anthropic's own Messages API, or over
// Amazon Bedrock. It is the reference that the other client of the protocol is read against.
package anthropicofficial

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
	"unicode/utf8"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/internal/awsevents"
	"github.com/prism-shadow/mmsp-go/internal/credentials"
	"github.com/prism-shadow/mmsp-go/internal/failure"
	"github.com/prism-shadow/mmsp-go/internal/fetch"
	"github.com/prism-shadow/mmsp-go/internal/images"
	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
	"github.com/prism-shadow/mmsp-go/internal/modellist"
	"github.com/prism-shadow/mmsp-go/internal/sse"
	"github.com/prism-shadow/mmsp-go/internal/tokens"
	"github.com/prism-shadow/mmsp-go/internal/upstream"
	"github.com/prism-shadow/mmsp-go/wire/anthropic"
)

const class = "AnthropicOfficialClient"

const (
	defaultMaxTokens = 64000 // the protocol wants a limit
	fastModeBeta     = "fast-mode-2026-02-01"

	// redactedThinking is the text of a thinking item whose content the provider keeps to itself. Histories hold it.
	redactedThinking = "_REDACTED_THINKING"

	maxModelPages = 1000

	endWait = 5 * time.Second // for the end of the message after its stop reason
)

// Client speaks Messages for one model.
type Client struct {
	model   string
	key     mmsp.Secret
	baseURL string
	issuer  string // of the signatures that this endpoint gives
	headers map[string]string
	limits  mmsp.HTTPOptions
	debug   bool // events that the client does not know are errors
	http    *upstream.Client

	aws     *signer        // nil: Anthropic's own endpoint, or one like it
	fetcher *fetch.Fetcher // of pictures for Bedrock
}

// New reads the key and the endpoint from the options or ANTHROPIC_API_KEY and ANTHROPIC_BASE_URL. bedrock://REGION with a key
// ACCESS_KEY,SECRET_KEY is Claude on Amazon Bedrock.
func New(o mmsp.Options) (*Client, error) {
	key, baseURL, err := credentials.Resolve(&o, credentials.Rule{
		Class: class, KeyVar: "ANTHROPIC_API_KEY", URLVar: "ANTHROPIC_BASE_URL", DefaultURL: "https://api.anthropic.com", KeyOptional: true,
	})
	if err != nil {
		return nil, err
	}
	c := &Client{
		model: o.Model, headers: o.DefaultHeaders, limits: o.HTTP,
		debug: !slices.Contains([]string{"", "0", "false", "no", "off"}, strings.ToLower(strings.TrimSpace(o.Env("MMSP_DEBUG")))),
	}
	if region, ok := strings.CutPrefix(baseURL, "bedrock://"); ok {
		if err := c.reachBedrock(region, key, &o); err != nil {
			return nil, err
		}
		return c, nil
	}
	endpoint, err := url.Parse(baseURL)
	if err != nil {
		return nil, err
	}
	c.key, c.http = key, upstream.New(o.HTTPClient, o.HTTP)
	c.baseURL = strings.TrimSuffix(baseURL, "/v1") // written with and without the version, which the paths begin with
	if c.issuer = strings.ToLower(endpoint.Host); c.issuer == "api.anthropic.com" {
		c.issuer = "anthropic"
	}
	return c, nil
}

// Class returns the class name in errors.
func (c *Client) Class() string { return class }

// Model returns the upstream model id.
func (c *Client) Model() string { return c.model }

func (c *Client) unsupported(parameter, reason string) error {
	return &mmsp.UnsupportedParameterError{Client: class, Parameter: parameter, Message: reason}
}

// isModel reports whether the model is of one of the generations.
func (c *Client) isModel(generations ...string) bool {
	return slices.ContainsFunc(generations, func(g string) bool { return strings.Contains(c.model, g) })
}

func (c *Client) convertThinkingLevel(level mmsp.ThinkingLevel) (*anthropic.Thinking, *anthropic.OutputConfig) {
	effort := string(level)
	switch level {
	case mmsp.ThinkingNone:
		switch {
		case c.isModel("sonnet-5-5"):
			return &anthropic.Thinking{Type: "between_tools"}, nil
		case !c.isModel("opus-5-5", "haiku-5-5", "fable-5-1"):
			return nil, nil
		}
		effort = "low" // these always think
	case mmsp.ThinkingLow, mmsp.ThinkingMedium, mmsp.ThinkingHigh, mmsp.ThinkingMax:
	case mmsp.ThinkingXHigh:
		if c.isModel("4-6") {
			effort = "high"
		}
	default:
		return nil, nil
	}
	return &anthropic.Thinking{Type: "adaptive"}, &anthropic.OutputConfig{Effort: effort}
}

// convertTool makes strict no more tools than the API takes, of which strict counts those so far.
func (c *Client) convertTool(tool *mmsp.Tool, strict *int) anthropic.Tool {
	t := anthropic.Tool{Name: tool.Name, Description: tool.Description, InputSchema: tool.Parameters, Strict: tool.Strict, Extra: tool.Extra}
	if t.Strict == nil || !*t.Strict {
		return t
	}
	if *strict++; *strict > anthropic.MaxStrictTools {
		t.Strict = nil
		return t
	}
	t.InputSchema = anthropic.StrictSchema(t.InputSchema)
	return t
}

func (c *Client) convertToolChoice(choice *mmsp.ToolChoice) (*anthropic.ToolChoice, error) {
	forced := choice.Mode == mmsp.ToolChoiceRequired || len(choice.Names) > 0
	switch {
	case forced && c.isModel("opus-5-5", "sonnet-5-5", "haiku-5-5", "fable-5-1"):
		return nil, c.unsupported("tool_choice", c.model+" cannot be made to call a tool; only auto and none are possible")
	case choice.Mode == mmsp.ToolChoiceNone, choice.Mode == mmsp.ToolChoiceAuto:
		return &anthropic.ToolChoice{Type: choice.Mode}, nil
	case choice.Mode == mmsp.ToolChoiceRequired:
		return &anthropic.ToolChoice{Type: "any"}, nil
	case len(choice.Names) == 1:
		return &anthropic.ToolChoice{Type: "tool", Name: choice.Names[0]}, nil
	}
	return nil, c.unsupported("tool_choice", "Messages takes auto, required, none or the name of one tool")
}

// convertUser returns who asks, which the protocol has one place for.
func (c *Client) convertUser(config *mmsp.Config) string {
	var metadata struct {
		UserID string `json:"user_id"`
	}
	_ = json.Unmarshal(config.Metadata, &metadata) // of what else it holds the protocol knows nothing
	return cmp.Or(config.User, metadata.UserID)
}

// transformUniConfigToModelConfig turns the config into the request but for its messages.
func (c *Client) transformUniConfigToModelConfig(config *mmsp.Config) (*anthropic.Request, error) {
	request := &anthropic.Request{Model: c.model, MaxTokens: defaultMaxTokens}
	if config.SystemPrompt != nil {
		request.System = *config.SystemPrompt // left out when empty
	}
	if config.MaxTokens != nil {
		request.MaxTokens = *config.MaxTokens
	}
	if request.MaxTokens == 0 && c.aws != nil {
		return nil, c.unsupported("max_tokens", "Bedrock answers in a stream, which has at least one token")
	}
	request.Stream = request.MaxTokens != 0 // no tokens, for the cache alone, are not streamed
	if config.Temperature != nil && *config.Temperature != 1 {
		return nil, c.unsupported("temperature", "Claude takes no temperature other than 1")
	}
	for _, p := range []struct {
		name  string
		given bool
	}{
		{"top_p", config.TopP != nil && *config.TopP != 1},
		{"top_k", config.TopK != nil},
		{"seed", config.Seed != nil},
		{"presence_penalty", config.PresencePenalty != nil && *config.PresencePenalty != 0},
		{"frequency_penalty", config.FrequencyPenalty != nil && *config.FrequencyPenalty != 0},
		{"verbosity", config.Verbosity != ""},
	} {
		if p.given {
			return nil, c.unsupported(p.name, "Claude has no "+p.name)
		}
	}
	request.StopSequences = config.StopSequences
	budget := config.ThinkingBudget
	switch level := config.EffectiveThinkingLevel(); {
	case config.ThinkingLevel == "" && budget != nil && c.isModel("4-5", "4-6") && *budget >= anthropic.MinBudgetTokens && *budget < request.MaxTokens:
		request.Thinking = &anthropic.Thinking{Type: "enabled", BudgetTokens: *budget} // later ones refuse it
	case level != "":
		request.Thinking, request.OutputConfig = c.convertThinkingLevel(level)
	}
	if config.ThinkingSummary != nil {
		if request.Thinking == nil {
			request.Thinking = &anthropic.Thinking{Type: "adaptive"}
		}
		if request.Thinking.Type != "between_tools" { // which always shows its text and refuses the field
			request.Thinking.Display = "omitted"
			if *config.ThinkingSummary {
				request.Thinking.Display = "summarized"
			}
		}
	}
	if config.Tools != nil {
		tools, strict := []anthropic.Tool{}, 0
		for i := range config.Tools {
			tools = append(tools, c.convertTool(&config.Tools[i], &strict))
		}
		request.Tools = &tools
	}
	if config.ToolChoice != nil {
		var err error
		if request.ToolChoice, err = c.convertToolChoice(config.ToolChoice); err != nil {
			return nil, err
		}
	}
	if config.ParallelToolCalls != nil && !*config.ParallelToolCalls && len(config.Tools) > 0 {
		if request.ToolChoice == nil {
			request.ToolChoice = &anthropic.ToolChoice{Type: mmsp.ToolChoiceAuto}
		}
		request.ToolChoice.DisableParallelToolUse = request.ToolChoice.Type != mmsp.ToolChoiceNone // which refuses the field
	}
	if format := config.ResponseFormat; format != nil && format.Type != mmsp.FormatText {
		if format.Type != mmsp.FormatJSONSchema {
			return nil, c.unsupported("response_format", "Messages has no JSON without a schema; only json_schema is possible")
		}
		if request.OutputConfig == nil {
			request.OutputConfig = &anthropic.OutputConfig{}
		}
		request.OutputConfig.Format = &anthropic.Format{Type: format.Type, Schema: anthropic.StrictSchema(format.Schema)}
	}
	if c.aws != nil && config.ServiceTier != "" {
		return nil, c.unsupported("service_tier", "Bedrock has no service tiers in its requests")
	}
	switch config.ServiceTier {
	case "":
	case "auto", "standard_only":
		request.ServiceTier = config.ServiceTier
	case "default", "standard":
		request.ServiceTier = "standard_only"
	default:
		return nil, c.unsupported("service_tier", "Messages has the service tiers auto and standard_only")
	}
	if userID := c.convertUser(config); userID != "" && c.aws == nil {
		request.Metadata = &anthropic.Metadata{UserID: userID}
	}
	if config.FastMode {
		if c.aws != nil {
			return nil, c.unsupported("fast_mode", "Bedrock has no fast mode")
		}
		if c.isModel("4-6", "sonnet-5-5", "haiku-5-5", "fable-5-1") {
			return nil, c.unsupported("fast_mode", c.model+" has no fast mode")
		}
		request.Speed = "fast"
	}
	switch config.PromptCaching {
	case "", mmsp.CachingEnable:
		request.CacheControl = &anthropic.CacheControl{Type: "ephemeral"}
	case mmsp.CachingEnhance:
		request.CacheControl = &anthropic.CacheControl{Type: "ephemeral", TTL: "1h"}
	}
	return request, nil
}

// convertMedia makes a block of a picture or, in a data URL, of a document, which may have a name. Anthropic fetches remote
// pictures itself; Bedrock takes them only inline.
func (c *Client) convertMedia(ctx context.Context, url, filename string) (anthropic.Block, error) {
	remote := len(url) < 5 || !strings.EqualFold(url[:5], "data:")
	if remote && c.aws == nil {
		return anthropic.Block{Type: "image", Source: &anthropic.Source{Type: "url", URL: url}}, nil
	}
	if remote {
		var err error
		if url, err = c.fetcher.Image(ctx, url); err != nil {
			return anthropic.Block{}, err
		}
	}
	if filename == "" {
		_, filename = images.TakeName(url)
	}
	mediaType, payload, ok := images.ParseDataURL(url)
	switch {
	case !ok || mediaType == "":
		return anthropic.Block{}, errors.New("a data URL must be base64 and name its media type")
	case strings.HasPrefix(mediaType, "image/"):
		return anthropic.Block{Type: "image", Source: &anthropic.Source{Type: "base64", MediaType: mediaType, Data: payload}}, nil
	case mediaType == "application/pdf":
		return anthropic.Block{Type: "document", Source: &anthropic.Source{Type: "base64", MediaType: mediaType, Data: payload}, Title: filename}, nil
	case strings.HasPrefix(mediaType, "text/"), mediaType == "application/json":
		if text := images.Decode(payload); utf8.Valid(text) && len(bytes.TrimSpace(text)) > 0 {
			return anthropic.Block{Type: "document", Source: &anthropic.Source{Type: "text", MediaType: "text/plain", Data: string(text)}, Title: filename}, nil
		}
		return anthropic.Block{}, errors.New("a document of text must be UTF-8 and not blank")
	}
	return anthropic.Block{}, fmt.Errorf("%s cannot send %s, only pictures, PDF and text", class, mediaType)
}

// convertToolCallID writes an id that another provider gave in the characters that Messages allows in one.
func (c *Client) convertToolCallID(id string) string {
	var b strings.Builder
	for i := range len(id) {
		switch char := id[i]; {
		case 'a' <= char && char <= 'z', 'A' <= char && char <= 'Z', '0' <= char && char <= '9', char == '_', char == '-':
			b.WriteByte(char)
		default:
			fmt.Fprintf(&b, "_%02x", char)
		}
	}
	return b.String()
}

// transformUniMessageToModelInput turns the messages into the request's, one for one and in their order. What the API
// refuses is left out: blank text, thinking without a signature of this endpoint, and turns of which nothing stays.
func (c *Client) transformUniMessageToModelInput(ctx context.Context, messages []mmsp.Message) ([]anthropic.Message, error) {
	ctx = fetch.ForRequest(ctx)
	input := []anthropic.Message{}
	for m := range messages {
		message := &messages[m]
		var content []anthropic.Block
		for i := range message.ContentItems {
			item := &message.ContentItems[i]
			invalid := func(field, reason string) error {
				return &mmsp.InvalidRequestError{Param: fmt.Sprintf("messages[%d].content_items[%d]%s", m, i, field), Message: reason}
			}
			switch item.Type {
			case mmsp.TextDone:
				if strings.TrimSpace(item.Text) != "" {
					content = append(content, anthropic.Block{Type: "text", Text: item.Text})
				}
			case mmsp.ImageURLDone:
				block, err := c.convertMedia(ctx, item.ImageURL, "")
				if err != nil {
					return nil, invalid(".image_url", err.Error())
				}
				content = append(content, block)
			case mmsp.InlineDataDone:
				if message.Role == mmsp.RoleAssistant {
					return nil, invalid("", fmt.Sprintf("%s cannot send %s items of the model's own", class, item.Type))
				}
				block, err := c.convertMedia(ctx, images.DataURL(item.MimeType, item.Data), item.Filename)
				if err != nil {
					return nil, invalid("", err.Error())
				}
				content = append(content, block)
			case mmsp.ThinkingDone:
				var fidelity struct {
					Signature string `json:"signature"`
					Issuer    string `json:"issuer"`
				}
				item.Fidelity.Decode(&fidelity)
				switch {
				case fidelity.Signature == "", fidelity.Issuer != "" && fidelity.Issuer != c.issuer:
				case item.Thinking == redactedThinking:
					content = append(content, anthropic.Block{Type: "redacted_thinking", Data: fidelity.Signature})
				default:
					content = append(content, anthropic.Block{Type: "thinking", Thinking: &item.Thinking, Signature: fidelity.Signature})
				}
			case mmsp.ToolCallDone:
				arguments := item.Arguments
				if arguments == "" {
					arguments = "{}"
				}
				content = append(content, anthropic.Block{
					Type: "tool_use", ID: c.convertToolCallID(item.ToolCallID), Name: item.Name, Input: json.RawMessage(arguments),
				})
			case mmsp.ToolResultDone:
				result := anthropic.Block{Type: "tool_result", ToolUseID: c.convertToolCallID(item.ToolCallID), IsError: item.IsError}
				if strings.TrimSpace(item.Text) != "" {
					result.Content = append(result.Content, anthropic.Block{Type: "text", Text: item.Text})
				}
				for j, url := range item.Images {
					block, err := c.convertMedia(ctx, url, "")
					if err != nil {
						return nil, invalid(fmt.Sprintf(".images[%d]", j), err.Error())
					}
					result.Content = append(result.Content, block)
				}
				content = append(content, result)
			default:
				return nil, invalid("", fmt.Sprintf("%s cannot send %s items", class, item.Type))
			}
		}
		if len(content) > 0 {
			input = append(input, anthropic.Message{Role: string(message.Role), Content: content})
		}
	}
	return input, nil
}

// transformModelOutputToUniEvent turns one wire event into one event.
func (c *Client) transformModelOutputToUniEvent(modelOutput *anthropic.Event, event *mmsp.UniEvent) error {
	event.Reset()
	id := strconv.Itoa(modelOutput.Index)
	call := mmsp.CallRef{Keyed: true, Index: modelOutput.Index}
	switch modelOutput.Type {
	case "message_start":
		if usage := modelOutput.Usage; usage != nil {
			event.Type = mmsp.EventStop
			event.Usage = &mmsp.Usage{CachedTokens: usage.CacheReadInputTokens, PromptTokens: usage.InputTokens}
			if usage.InputTokens != nil && usage.CacheCreationInputTokens != nil {
				event.Usage.PromptTokens = new(*usage.InputTokens + *usage.CacheCreationInputTokens)
			}
		}
	case "content_block_start":
		switch block := &modelOutput.ContentBlock; block.Type {
		case "text": // mostly empty, as the next
			if block.Text != "" {
				event.AddText(id, block.Text)
			}
		case "thinking":
			if block.Thinking != "" || block.Signature != "" {
				event.AddThinking(id, block.Thinking).Fidelity = c.proof(block.Signature)
			}
		case "redacted_thinking":
			event.AddThinking(id, redactedThinking).Fidelity = c.proof(block.Data)
		case "tool_use":
			event.AddToolCall(id, call, block.ID, block.Name, "")
		}
	case "content_block_delta":
		switch delta := &modelOutput.Delta; delta.Type {
		case "text_delta":
			event.AddText(id, delta.Text)
		case "thinking_delta":
			event.AddThinking(id, delta.Thinking)
		case "signature_delta":
			event.AddThinking(id, "").Fidelity = c.proof(delta.Signature)
		case "input_json_delta":
			event.AddToolCall(id, call, "", "", delta.PartialJSON)
		}
	case "message_delta":
		delta := &modelOutput.Delta
		if usage := modelOutput.Usage; usage != nil {
			event.Type = mmsp.EventStop
			event.Usage = &mmsp.Usage{ResponseTokens: usage.OutputTokens} // the input side came with the start
		}
		if delta.StopReason != "" {
			event.Type = mmsp.EventStop
		}
		switch delta.StopReason {
		case "":
		case "end_turn":
			event.FinishReason = mmsp.FinishStop
		case "stop_sequence":
			event.FinishReason, event.StopDetail = mmsp.FinishStop, &mmsp.StopDetail{Kind: "stop_sequence", Text: delta.StopSequence}
		case "max_tokens":
			event.FinishReason = mmsp.FinishLength
		case "tool_use":
			event.FinishReason = mmsp.FinishToolCall
		case "refusal":
			text := delta.StopDetails.Explanation
			if text == "" {
				text = delta.StopDetails.Category
			}
			event.FinishReason, event.StopDetail = mmsp.FinishUnknown, &mmsp.StopDetail{Kind: "refusal", Text: text}
		case "pause_turn":
			event.FinishReason, event.StopDetail = mmsp.FinishUnknown, &mmsp.StopDetail{Kind: "pause"}
		case "model_context_window_exceeded":
			event.FinishReason, event.StopDetail = mmsp.FinishUnknown, &mmsp.StopDetail{Kind: "context"}
		default:
			event.FinishReason = mmsp.FinishUnknown
		}
	case "content_block_stop", "message_stop", "ping", "text", "thinking", "signature", "input_json":
	default:
		if c.debug {
			return fmt.Errorf("%s: Unknown output: %s", class, failure.Excerpt(modelOutput.Data))
		}
	}
	return nil
}

// proof is the fidelity of thinking that the provider signed.
func (c *Client) proof(signature string) mmsp.Fidelity {
	if signature == "" {
		return nil
	}
	fidelity := jsonscan.AppendString([]byte(`{"signature":`), signature)
	fidelity = jsonscan.AppendString(append(fidelity, `,"issuer":`...), c.issuer)
	return append(fidelity, '}')
}

// betas are those of the API that a request asks for: its own, those among the default headers, and the caller's.
func (c *Client) betas(ctx context.Context, fastMode bool) (betas []string) {
	var all []string
	if fastMode {
		all = append(all, fastModeBeta)
	}
	for name, value := range c.headers {
		if strings.EqualFold(name, "Anthropic-Beta") {
			all = append(all, strings.Split(value, ",")...)
		}
	}
	if c.aws == nil { // AWS refuses what it does not know
		all = append(all, upstream.Betas(ctx)...)
	}
	for _, beta := range all {
		if beta = strings.TrimSpace(beta); beta != "" && !slices.Contains(betas, beta) {
			betas = append(betas, beta)
		}
	}
	return betas
}

// Prepare returns the upstream request.
func (c *Client) Prepare(ctx context.Context, messages []mmsp.Message, config *mmsp.Config) (*mmsp.Request, error) {
	request, err := c.transformUniConfigToModelConfig(config)
	if err != nil {
		return nil, err
	}
	if request.Messages, err = c.transformUniMessageToModelInput(ctx, messages); err != nil {
		return nil, err
	}
	address, accept, betas := c.baseURL+"/v1/messages?beta=true", "text/event-stream", c.betas(ctx, config.FastMode)
	if c.aws != nil {
		request.AnthropicBeta, betas = betas, nil
		address, accept = c.prepareBedrock(request), awsevents.ContentType
	}
	body, err := request.Encode()
	if err != nil { // a number or a schema that JSON cannot say
		return nil, &mmsp.InvalidRequestError{Message: err.Error()}
	}
	header := http.Header{"Content-Type": {"application/json"}, "Accept": {accept}}
	if len(betas) > 0 {
		header.Set("Anthropic-Beta", strings.Join(betas, ","))
	}
	return &mmsp.Request{Method: http.MethodPost, URL: address, Header: header, Body: body}, nil
}

// Do sends the request and yields an event per wire event.
func (c *Client) Do(ctx context.Context, request *mmsp.Request) iter.Seq2[*mmsp.UniEvent, error] {
	return func(yield func(*mmsp.UniEvent, error) bool) { c.streamingResponseInternal(ctx, request, yield) }
}

// eventReader reads the events of an answer, from server-sent events or from frames.
type eventReader interface {
	Next() (sse.Event, error)
	More() bool
}

// readEvents finds out what an answer is: a stream, or one whole message.
func (c *Client) readEvents(response *upstream.Response) (eventReader, error) {
	if strings.HasPrefix(response.Header.Get("Content-Type"), awsevents.ContentType) {
		return &frameReader{reader: awsevents.NewReader(response.Body, c.limits.MaxLineBytes)}, nil
	}
	reader := sse.NewReader(response.Body, c.limits.MaxLineBytes)
	first, err := reader.First()
	switch {
	case err != nil && err != io.EOF:
		return nil, &mmsp.IncompleteStreamError{Client: class, Reason: "the connection broke before the first event", Err: err}
	case first == '{' || first == '[':
		// The whole answer in one piece, as long as the response may be.
		body, err := reader.Rest(math.MaxInt64)
		if err != nil {
			return nil, &mmsp.IncompleteStreamError{Client: class, Reason: "the connection broke before the end of the answer", Err: err}
		}
		stream, ok := anthropic.Unroll(body)
		if !ok {
			return nil, failure.Body(class, response.Redact(body))
		}
		return sse.NewReader(bytes.NewReader(stream), len(stream)), nil
	case first == '<':
		body, _ := reader.Rest(1 << 20)
		return nil, failure.Body(class, response.Redact(body))
	}
	return reader, nil
}

func (c *Client) streamingResponseInternal(ctx context.Context, request *mmsp.Request, yield func(*mmsp.UniEvent, error) bool) {
	authorized, err := c.authorized(request)
	if err != nil {
		yield(nil, err)
		return
	}
	response, err := c.http.Do(ctx, authorized)
	if err != nil {
		yield(nil, c.failed(err))
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

	reader, err := c.readEvents(response)
	if err != nil {
		yield(nil, err)
		return
	}
	var decoder anthropic.Decoder
	blocks := map[int]string{} // the type of each block, by its index
	called, finished := false, false
	// The last call. Its arguments are the input that its block began with, unless deltas bring them.
	var call struct {
		index  int
		input  string // "" when it counts no more
		closed bool
	}
	for number := 1; ; number++ {
		wire, err := reader.Next()
		switch {
		case finished && (err == io.EOF || errors.Is(err, upstream.ErrLingered)):
			return
		case err == io.EOF:
			yield(nil, &mmsp.IncompleteStreamError{Client: class, Reason: "the stream ended before the message did"})
			return
		case err != nil:
			if failed, ok := errors.AsType[*mmsp.UpstreamError](err); ok { // a frame says so, or is damaged
				yield(nil, failed)
				return
			}
			yield(nil, &mmsp.IncompleteStreamError{Client: class, Reason: "the connection broke before the end of the message", Err: err})
			return
		}
		data := bytes.TrimSpace(wire.Data)
		if string(data) == "[DONE]" { // the end as another protocol marks it
			event.Reset()
			event.Last, event.More = finished, reader.More()
			if !yield(&event, nil) || event.Last {
				return
			}
			continue
		}
		output, err := decoder.Decode(wire.Name, data)
		switch {
		case wire.Unterminated && (err != nil || output.Type == "error" && !json.Valid(data)):
			continue // cut in the middle of an event: the end of the body comes next
		case err != nil:
			yield(nil, failure.Malformed(class, number, response.Redact(data), err))
			return
		case output.Type == "error":
			yield(nil, failure.Event(class, response.Redact(data)))
			return
		}
		if err := c.transformModelOutputToUniEvent(output, &event); err != nil {
			yield(nil, err)
			return
		}
		takeInput := false
		switch output.Type {
		case "content_block_start":
			takeInput = call.input != "" && (call.closed || call.input != "{}")
		case "content_block_delta":
			arguments := output.Delta.Type == "input_json_delta"
			switch blocks[output.Index] {
			case "": // some endpoints skip the start of a block
			case "tool_use":
				if arguments && output.Index == call.index && output.Delta.PartialJSON != "" {
					call.input = ""
				}
			case "text", "thinking", "redacted_thinking":
				if arguments {
					event.Deltas = event.Deltas[:0]
				}
			default: // what the provider's own tools do is no content
				event.Deltas = event.Deltas[:0]
			}
		case "content_block_stop":
			if output.Index == call.index {
				call.closed = true
				takeInput = call.input != "" && call.input != "{}"
			}
		case "message_delta":
			takeInput = call.input != "" && call.input != "{}"
			if event.FinishReason == mmsp.FinishStop && called { // some endpoints report end_turn for a turn that made calls
				event.FinishReason = mmsp.FinishToolCall
			}
		}
		if takeInput {
			event.Deltas = slices.Insert(event.Deltas, 0, mmsp.Delta{
				Item:   mmsp.Item{Type: mmsp.ToolCallDelta, Arguments: call.input},
				ItemID: strconv.Itoa(call.index), Call: mmsp.CallRef{Keyed: true, Index: call.index},
			})
			call.input = ""
		}
		if block := &output.ContentBlock; output.Type == "content_block_start" {
			blocks[output.Index] = block.Type
			call.input = ""
			if block.Type == "tool_use" {
				called = true
				call.index, call.closed, call.input = output.Index, false, "{}"
				if len(block.Input) > len(call.input) {
					call.input = string(block.Input)
				}
			}
		}
		if event.FinishReason != "" && !finished {
			finished = true
			response.Linger(endWait)
		}
		event.Last = output.Type == "message_stop"
		event.More = reader.More()
		if !yield(&event, nil) || event.Last {
			return
		}
	}
}

// authorized adds what every request of the client carries. Without a key, the client's or one among its default headers,
// a request does not go out.
func (c *Client) authorized(request *mmsp.Request) (upstream.Request, error) {
	header := request.Header.Clone()
	if c.aws == nil {
		header.Set("Anthropic-Version", anthropic.Version)
	}
	for name, value := range c.headers {
		if strings.EqualFold(name, "Anthropic-Beta") && (c.aws != nil || header.Get(name) != "") {
			continue // those of the request hold it
		}
		header.Set(name, value)
	}
	if !c.key.IsZero() {
		header.Set("X-Api-Key", c.key.Reveal())
	}
	if header.Get("X-Api-Key") == "" && header.Get("Authorization") == "" && c.aws == nil {
		return upstream.Request{}, &mmsp.AuthenticationError{Message: "ANTHROPIC_API_KEY is required for " + class + "."}
	}
	return upstream.Request{Method: request.Method, URL: request.URL, Header: header, Body: request.Body}, nil
}

// ListModels returns the ids of GET /v1/models, all pages of it.
func (c *Client) ListModels(ctx context.Context) ([]string, error) {
	if c.aws != nil {
		return nil, &mmsp.UnsupportedOperationError{Client: class, Operation: "list_models", Message: "Bedrock does not list models over this API"}
	}
	models := []string{}
	address := c.baseURL + "/v1/models"
	for range maxModelPages {
		request := &mmsp.Request{Method: http.MethodGet, URL: address, Header: http.Header{}}
		authorized, err := c.authorized(request)
		if err != nil {
			return nil, err
		}
		response, err := c.http.Do(ctx, authorized)
		if err != nil {
			return nil, failure.Upstream(class, err)
		}
		ids, after, err := modellist.ReadPage(class, response)
		if err != nil {
			return nil, err
		}
		models = append(models, ids...)
		if after == "" {
			return models, nil
		}
		address = c.baseURL + "/v1/models?after_id=" + url.QueryEscape(after)
	}
	return nil, &mmsp.UpstreamError{Client: class, ErrorType: "unexpected_body", Message: "the list of models does not end"}
}

// CountTokens returns the answer of POST /v1/messages/count_tokens.
func (c *Client) CountTokens(ctx context.Context, messages []mmsp.Message, config *mmsp.Config) (int64, error) {
	if c.aws != nil {
		return 0, &mmsp.UnsupportedOperationError{Client: class, Operation: "count_tokens", Message: "Bedrock does not count tokens over this API"}
	}
	request, err := c.transformUniConfigToModelConfig(config)
	if err != nil {
		return 0, err
	}
	if request.Messages, err = c.transformUniMessageToModelInput(ctx, messages); err != nil {
		return 0, err
	}
	count := request.Count()
	if count.Remote() {
		return 0, &mmsp.UnsupportedOperationError{Client: class, Operation: "count_tokens", Message: "pictures are counted only inline, not by their URLs"}
	}
	body, err := count.Encode()
	if err != nil { // a number or a schema that JSON cannot say
		return 0, &mmsp.InvalidRequestError{Message: err.Error()}
	}
	header := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}}
	if betas := c.betas(ctx, false); len(betas) > 0 {
		header.Set("Anthropic-Beta", strings.Join(betas, ","))
	}
	authorized, err := c.authorized(&mmsp.Request{Method: http.MethodPost, URL: c.baseURL + "/v1/messages/count_tokens?beta=true", Header: header, Body: body})
	if err != nil {
		return 0, err
	}
	response, err := c.http.Do(ctx, authorized)
	if err != nil {
		return 0, failure.Upstream(class, err)
	}
	return tokens.Read(class, "input_tokens", response)
}
