package sdk

import (
	"context"
	"errors"
	"strings"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
)

func openaiClient() openai.Client {
	return openai.NewClient(option.WithBaseURL(gateway+"/v1"), option.WithAPIKey(key), option.WithMaxRetries(0))
}

func openaiFault(err error) fault {
	f := fault{aborted: errors.Is(err, context.Canceled)}
	if e := (*openai.Error)(nil); errors.As(err, &e) {
		f.status, f.body = e.StatusCode, e.RawJSON()
	}
	return f
}

func pictureURL() string {
	return "data:" + matrix.Picture.MediaType + ";base64," + matrix.Picture.Base64
}

type openaiResponses struct{}

func (openaiResponses) fault(err error) fault { return openaiFault(err) }

func (openaiResponses) open(model, way string) conversation {
	return &responsesConversation{client: openaiClient(), model: model, way: way}
}

type responsesConversation struct {
	client     openai.Client
	model, way string
	input      responses.ResponseInputParam
	previous   string
}

func (c *responsesConversation) use(model string) { c.model = model }

func (c *responsesConversation) user(text string, picture bool) {
	if !picture {
		c.input = append(c.input, responses.ResponseInputItemParamOfMessage(text, responses.EasyInputMessageRoleUser))
		return
	}
	c.input = append(c.input, responses.ResponseInputItemParamOfMessage(responses.ResponseInputMessageContentListParam{
		{OfInputText: &responses.ResponseInputTextParam{Text: text}},
		{OfInputImage: &responses.ResponseInputImageParam{ImageURL: openai.String(pictureURL()), Detail: responses.ResponseInputImageDetailAuto}},
	}, responses.EasyInputMessageRoleUser))
}

func (c *responsesConversation) results(calls []call) {
	for _, call := range calls {
		result := responses.ResponseInputItemParamOfFunctionCallOutput(matrix.Tools[call.name].Result)
		result.OfFunctionCallOutput.CallID = openai.String(call.id)
		c.input = append(c.input, result)
	}
}

func (c *responsesConversation) ask(ctx context.Context, o options) (a answer, err error) {
	params := responses.ResponseNewParams{Model: c.model, Input: responses.ResponseNewParamsInputUnion{OfInputItemList: c.input}}
	if c.previous != "" {
		params.PreviousResponseID = openai.String(c.previous)
	}
	if c.way == "encrypted reasoning" {
		params.Store = openai.Bool(false)
		params.Include = []responses.ResponseIncludable{responses.ResponseIncludableReasoningEncryptedContent}
	}
	for _, name := range o.tools {
		tool := matrix.Tools[name]
		params.Tools = append(params.Tools, responses.ToolUnionParam{OfFunction: &responses.FunctionToolParam{
			Name: name, Description: openai.String(tool.Description), Parameters: tool.Parameters, Strict: openai.Bool(true),
		}})
	}
	if o.thinking {
		params.Reasoning = shared.ReasoningParam{Effort: shared.ReasoningEffortLow, Summary: shared.ReasoningSummaryAuto}
	}
	if o.schema != nil {
		params.Text.Format.OfJSONSchema = &responses.ResponseFormatTextJSONSchemaConfigParam{
			Name: "report", Schema: o.schema, Strict: openai.Bool(true),
		}
	}
	var last *responses.Response
	if o.whole {
		last, err = c.client.Responses.New(ctx, params)
	} else {
		last, err = c.stream(ctx, params, o)
	}
	if err != nil {
		return a, err
	}

	a.text = last.OutputText()
	a.input, a.output = last.Usage.InputTokens, last.Usage.OutputTokens
	a.finish = map[responses.ResponseStatus]string{"completed": "stop", "failed": "failed"}[last.Status]
	switch last.IncompleteDetails.Reason {
	case "max_output_tokens":
		a.finish = "length"
	case "content_filter":
		a.finish = "refused"
	}
	if c.way == "previous response" {
		c.previous, c.input = last.ID, nil
	}
	for _, item := range last.Output {
		var back responses.ResponseInputItemUnionParam
		switch item := item.AsAny().(type) {
		case responses.ResponseReasoningItem:
			for _, part := range item.Summary {
				a.thinking += part.Text
			}
			p := item.ToParam()
			back.OfReasoning = &p
		case responses.ResponseFunctionToolCall:
			a.calls = append(a.calls, call{item.CallID, item.Name, parse(item.Arguments)})
			p := item.ToParam()
			back.OfFunctionCall = &p
		case responses.ResponseOutputMessage:
			for _, part := range item.Content {
				if part.Type == "refusal" {
					a.finish = "refused"
				}
			}
			p := item.ToParam()
			back.OfOutputMessage = &p
		default:
			return a, errors.New("an item of another type")
		}
		if c.way != "previous response" {
			c.input = append(c.input, back)
		}
	}
	return a, nil
}

func (c *responsesConversation) stream(ctx context.Context, params responses.ResponseNewParams, o options) (last *responses.Response, err error) {
	stream := c.client.Responses.NewStreaming(ctx, params)
	defer stream.Close()
	for stream.Next() {
		switch event := stream.Current(); event.Type {
		case "response.output_text.delta":
			o.told(event.Delta)
		case "response.completed", "response.incomplete", "response.failed":
			last = &event.Response
		}
	}
	if err := stream.Err(); err != nil {
		return nil, err
	}
	if last == nil {
		return nil, errors.New("the stream has no terminal event")
	}
	return last, nil
}

type openaiChat struct{}

func (openaiChat) fault(err error) fault { return openaiFault(err) }

func (openaiChat) open(model, way string) conversation {
	return &chatConversation{client: openaiClient(), model: model, way: way}
}

type chatConversation struct {
	client     openai.Client
	model, way string
	messages   []openai.ChatCompletionMessageParamUnion
}

func (c *chatConversation) use(model string) { c.model = model }

func (c *chatConversation) user(text string, picture bool) {
	if !picture {
		c.messages = append(c.messages, openai.UserMessage(text))
		return
	}
	c.messages = append(c.messages, openai.UserMessage([]openai.ChatCompletionContentPartUnionParam{
		openai.TextContentPart(text), openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: pictureURL()}),
	}))
}

func (c *chatConversation) results(calls []call) {
	for _, call := range calls {
		c.messages = append(c.messages, openai.ToolMessage(matrix.Tools[call.name].Result, call.id))
	}
}

func (c *chatConversation) ask(ctx context.Context, o options) (a answer, err error) {
	params := openai.ChatCompletionNewParams{Model: c.model, Messages: c.messages}
	for _, name := range o.tools {
		tool := matrix.Tools[name]
		params.Tools = append(params.Tools, openai.ChatCompletionFunctionTool(shared.FunctionDefinitionParam{
			Name: name, Description: openai.String(tool.Description), Parameters: tool.Parameters,
		}))
	}
	if o.thinking {
		params.ReasoningEffort = shared.ReasoningEffortLow
	}
	if o.schema != nil {
		params.ResponseFormat.OfJSONSchema = &shared.ResponseFormatJSONSchemaParam{
			JSONSchema: shared.ResponseFormatJSONSchemaJSONSchemaParam{Name: "report", Schema: o.schema, Strict: openai.Bool(true)},
		}
	}
	var all *openai.ChatCompletion
	if o.whole {
		all, err = c.client.Chat.Completions.New(ctx, params)
	} else {
		params.StreamOptions.IncludeUsage = openai.Bool(true)
		all, a.thinking, err = c.stream(ctx, params, o)
	}
	switch {
	case err != nil:
		return a, err
	case len(all.Choices) != 1 || all.Choices[0].FinishReason == "":
		return a, errors.New("the answer has no finish reason")
	}

	message := all.Choices[0].Message
	a.text = message.Content
	a.finish = strings.NewReplacer("tool_calls", "stop", "content_filter", "refused").Replace(all.Choices[0].FinishReason)
	if message.Refusal != "" {
		a.finish = "refused"
	}
	a.input, a.output = all.Usage.PromptTokens, all.Usage.CompletionTokens
	bare := openai.ChatCompletionAssistantMessageParam{}
	if message.Content != "" {
		bare.Content.OfString = openai.String(message.Content)
	}
	for _, c := range message.ToolCalls {
		a.calls = append(a.calls, call{c.ID, c.Function.Name, parse(c.Function.Arguments)})
		bare.ToolCalls = append(bare.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{
			OfFunction: &openai.ChatCompletionMessageFunctionToolCallParam{
				ID: c.ID, Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: c.Function.Name, Arguments: c.Function.Arguments},
			},
		})
	}
	if c.way == "bare message" {
		c.messages = append(c.messages, openai.ChatCompletionMessageParamUnion{OfAssistant: &bare})
	} else {
		c.messages = append(c.messages, message.ToParam())
	}
	return a, nil
}

func (c *chatConversation) stream(ctx context.Context, params openai.ChatCompletionNewParams, o options) (*openai.ChatCompletion, string, error) {
	stream := c.client.Chat.Completions.NewStreaming(ctx, params)
	defer stream.Close()
	var all openai.ChatCompletionAccumulator
	thinking := ""
	for stream.Next() {
		chunk := stream.Current()
		if !all.AddChunk(chunk) {
			return nil, "", errors.New("the SDK cannot add a chunk to those before: " + chunk.RawJSON())
		}
		if len(chunk.Choices) == 0 {
			continue
		}
		delta := chunk.Choices[0].Delta
		if delta.Content != "" {
			o.told(delta.Content)
		}
		if raw := delta.JSON.ExtraFields["reasoning_content"].Raw(); raw != "" && raw != "null" {
			thought, _ := parse(raw).(string)
			thinking += thought
		}
	}
	return &all.ChatCompletion, thinking, stream.Err()
}

func openaiEmbed(ctx context.Context, model string, texts []string) (vectors [][]float64, err error) {
	client := openaiClient()
	response, err := client.Embeddings.New(ctx, openai.EmbeddingNewParams{
		Model: model, Input: openai.EmbeddingNewParamsInputUnion{OfArrayOfStrings: texts}, EncodingFormat: openai.EmbeddingNewParamsEncodingFormatFloat,
		Dimensions: param.NewOpt[int64](256),
	})
	if err != nil {
		return nil, err
	}
	for _, d := range response.Data {
		vectors = append(vectors, d.Embedding)
	}
	return vectors, nil
}

func openaiModels(ctx context.Context) (ids []string, err error) {
	client := openaiClient()
	pager := client.Models.ListAutoPaging(ctx)
	for pager.Next() {
		ids = append(ids, pager.Current().ID)
	}
	return ids, pager.Err()
}
