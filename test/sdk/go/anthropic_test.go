package sdk

import (
	"context"
	"errors"
	"strings"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
)

func anthropicClient() anthropic.Client {
	return anthropic.NewClient(option.WithBaseURL(gateway), option.WithAPIKey(key), option.WithMaxRetries(0))
}

type anthropicMessages struct{}

func (anthropicMessages) fault(err error) fault {
	f := fault{aborted: errors.Is(err, context.Canceled)}
	if e := (*anthropic.Error)(nil); errors.As(err, &e) {
		f.status, f.body = e.StatusCode, e.RawJSON()
	}
	return f
}

func (anthropicMessages) open(model, _ string) conversation {
	return &messagesConversation{client: anthropicClient(), model: model}
}

type messagesConversation struct {
	client   anthropic.Client
	model    string
	messages []anthropic.MessageParam
}

func (c *messagesConversation) use(model string) { c.model = model }

func (c *messagesConversation) user(text string, picture bool) {
	blocks := []anthropic.ContentBlockParamUnion{anthropic.NewTextBlock(text)}
	if picture {
		blocks = append(blocks, anthropic.NewImageBlockBase64(matrix.Picture.MediaType, matrix.Picture.Base64))
	}
	c.messages = append(c.messages, anthropic.NewUserMessage(blocks...))
}

func (c *messagesConversation) results(calls []call) {
	var blocks []anthropic.ContentBlockParamUnion
	for _, call := range calls {
		blocks = append(blocks, anthropic.NewToolResultBlock(call.id, matrix.Tools[call.name].Result, false))
	}
	c.messages = append(c.messages, anthropic.NewUserMessage(blocks...))
}

func (c *messagesConversation) ask(ctx context.Context, o options) (a answer, err error) {
	params := anthropic.MessageNewParams{Model: c.model, MaxTokens: 4096, Messages: c.messages}
	for _, name := range o.tools {
		tool := matrix.Tools[name]
		params.Tools = append(params.Tools, anthropic.ToolUnionParam{OfTool: &anthropic.ToolParam{
			Name: name, Description: anthropic.String(tool.Description),
			InputSchema: anthropic.ToolInputSchemaParam{Properties: tool.Parameters["properties"], Required: []string{"city"}},
		}})
	}
	if o.thinking {
		params.Thinking = anthropic.ThinkingConfigParamOfEnabled(1024)
	}
	if o.schema != nil {
		params.OutputConfig.Format.Schema = o.schema
	}
	var message *anthropic.Message
	if o.whole {
		message, err = c.client.Messages.New(ctx, params)
	} else {
		message, err = c.stream(ctx, params, o)
	}
	if err != nil {
		return a, err
	}

	for _, block := range message.Content {
		switch block := block.AsAny().(type) {
		case anthropic.TextBlock:
			a.text += block.Text
		case anthropic.ThinkingBlock:
			a.thinking += block.Thinking
		case anthropic.ToolUseBlock:
			a.calls = append(a.calls, call{block.ID, block.Name, parse(string(block.Input))})
		}
	}
	a.finish = strings.NewReplacer("end_turn", "stop", "tool_use", "stop", "max_tokens", "length", "refusal", "refused").Replace(string(message.StopReason))
	a.input, a.output = message.Usage.InputTokens, message.Usage.OutputTokens
	c.messages = append(c.messages, message.ToParam())
	return a, nil
}

func (c *messagesConversation) stream(ctx context.Context, params anthropic.MessageNewParams, o options) (*anthropic.Message, error) {
	stream := c.client.Messages.NewStreaming(ctx, params)
	defer stream.Close()
	var message anthropic.Message
	ended := false
	for stream.Next() {
		event := stream.Current()
		if err := message.Accumulate(event); err != nil {
			return nil, err
		}
		ended = ended || event.Type == "message_stop"
		if event.Type == "content_block_delta" && event.Delta.Text != "" {
			o.told(event.Delta.Text)
		}
	}
	if err := stream.Err(); err != nil {
		return nil, err
	}
	if !ended {
		return nil, errors.New("the stream has no message_stop")
	}
	return &message, nil
}

func anthropicModels(ctx context.Context) (ids []string, err error) {
	client := anthropicClient()
	pager := client.Models.ListAutoPaging(ctx, anthropic.ModelListParams{Limit: anthropic.Int(5)})
	for pager.Next() {
		ids = append(ids, pager.Current().ID)
	}
	return ids, pager.Err()
}

func anthropicCount(ctx context.Context, model, text string) (int64, error) {
	client := anthropicClient()
	count, err := client.Messages.CountTokens(ctx, anthropic.MessageCountTokensParams{
		Model: model, Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(text))},
	})
	if err != nil {
		return 0, err
	}
	return count.InputTokens, nil
}
