package sdk

import (
	"context"
	"encoding/base64"
	"errors"
	"iter"
	"slices"
	"strings"

	"google.golang.org/genai"
)

func genaiClient(ctx context.Context) (*genai.Client, error) {
	return genai.NewClient(ctx, &genai.ClientConfig{
		APIKey: key, Backend: genai.BackendGeminiAPI, HTTPOptions: genai.HTTPOptions{BaseURL: gateway},
	})
}

type genaiContents struct{}

func (genaiContents) fault(err error) fault {
	f := fault{aborted: errors.Is(err, context.Canceled)}
	if e := (genai.APIError{}); errors.As(err, &e) {
		f.status = e.Code
	}
	return f
}

func (genaiContents) open(model, way string) conversation {
	return &contentsConversation{model: model, way: way}
}

type contentsConversation struct {
	model, way string
	history    []*genai.Content
	next       []*genai.Part // of the user
}

func (c *contentsConversation) use(model string) { c.model = model }

func (c *contentsConversation) user(text string, picture bool) {
	c.next = []*genai.Part{genai.NewPartFromText(text)}
	if picture {
		data, _ := base64.StdEncoding.DecodeString(matrix.Picture.Base64)
		c.next = append(c.next, genai.NewPartFromBytes(data, matrix.Picture.MediaType))
	}
}

func (c *contentsConversation) results(calls []call) {
	c.next = nil
	for _, call := range calls {
		part := genai.NewPartFromFunctionResponse(call.name, map[string]any{"output": matrix.Tools[call.name].Result})
		part.FunctionResponse.ID = call.id
		c.next = append(c.next, part)
	}
}

func (c *contentsConversation) ask(ctx context.Context, o options) (a answer, err error) {
	client, err := genaiClient(ctx)
	if err != nil {
		return a, err
	}
	config := &genai.GenerateContentConfig{}
	for _, name := range o.tools {
		tool := matrix.Tools[name]
		config.Tools = append(config.Tools, &genai.Tool{FunctionDeclarations: []*genai.FunctionDeclaration{{
			Name: name, Description: tool.Description,
			Parameters: &genai.Schema{
				Type: genai.TypeObject, Properties: map[string]*genai.Schema{"city": {Type: genai.TypeString}}, Required: []string{"city"},
			},
		}}})
	}
	if o.thinking {
		config.ThinkingConfig = &genai.ThinkingConfig{IncludeThoughts: true, ThinkingBudget: genai.Ptr[int32](1024)}
	}
	if o.schema != nil {
		config.ResponseMIMEType, config.ResponseJsonSchema = "application/json", o.schema
	}
	question := &genai.Content{Role: genai.RoleUser, Parts: c.next}
	chat, err := client.Chats.Create(ctx, c.model, config, c.history)
	if err != nil {
		return a, err
	}
	contents := append(slices.Clone(c.history), question)
	var stream iter.Seq2[*genai.GenerateContentResponse, error]
	switch {
	case o.whole:
		stream = func(yield func(*genai.GenerateContentResponse, error) bool) {
			yield(chat.Send(ctx, c.next...))
		}
	case c.way == "chat":
		stream = chat.SendStream(ctx, c.next...)
	default:
		stream = client.Models.GenerateContentStream(ctx, c.model, contents, config)
	}
	reply := &genai.Content{Role: genai.RoleModel}
	for chunk, err := range stream {
		if err != nil {
			return a, err
		}
		if chunk.UsageMetadata != nil {
			a.input, a.output = int64(chunk.UsageMetadata.PromptTokenCount), int64(chunk.UsageMetadata.CandidatesTokenCount)
		}
		if len(chunk.Candidates) == 0 {
			continue
		}
		candidate := chunk.Candidates[0]
		if candidate.FinishReason != "" {
			a.finish = strings.NewReplacer("STOP", "stop", "MAX_TOKENS", "length", "SAFETY", "refused", "PROHIBITED_CONTENT", "refused", "OTHER", "refused").Replace(string(candidate.FinishReason))
		}
		if candidate.Content == nil {
			continue
		}
		for _, part := range candidate.Content.Parts {
			if part.Text != "" || part.FunctionCall != nil || part.ThoughtSignature != nil {
				reply.Parts = append(reply.Parts, part) // an empty text would come back as a part of nothing
			}
			switch {
			case part.FunctionCall != nil:
				a.calls = append(a.calls, call{part.FunctionCall.ID, part.FunctionCall.Name, part.FunctionCall.Args})
			case part.Thought:
				a.thinking += part.Text
			case part.Text != "":
				a.text += part.Text
				o.told(part.Text)
			}
		}
	}
	if err := ctx.Err(); err != nil {
		return a, err
	}
	if a.finish == "" {
		return a, errors.New("the stream has no finish reason")
	}
	if c.history = chat.History(true); c.way == "contents" {
		c.history = append(contents, reply)
	}
	return a, nil
}

func genaiModels(ctx context.Context) (ids []string, err error) {
	client, err := genaiClient(ctx)
	if err != nil {
		return nil, err
	}
	for model, err := range client.Models.All(ctx) {
		if err != nil {
			return nil, err
		}
		ids = append(ids, strings.TrimPrefix(model.Name, "models/"))
	}
	return ids, nil
}

func genaiCount(ctx context.Context, model, text string) (int64, error) {
	client, err := genaiClient(ctx)
	if err != nil {
		return 0, err
	}
	count, err := client.Models.CountTokens(ctx, model, genai.Text(text), nil)
	if err != nil {
		return 0, err
	}
	return int64(count.TotalTokens), nil
}

func genaiEmbed(ctx context.Context, model string, texts []string) (vectors [][]float64, err error) {
	client, err := genaiClient(ctx)
	if err != nil {
		return nil, err
	}
	var contents []*genai.Content
	for _, text := range texts {
		contents = append(contents, genai.NewContentFromText(text, genai.RoleUser))
	}
	response, err := client.Models.EmbedContent(ctx, model, contents, &genai.EmbedContentConfig{OutputDimensionality: genai.Ptr[int32](256)})
	if err != nil {
		return nil, err
	}
	for _, e := range response.Embeddings {
		vector := make([]float64, len(e.Values))
		for i, v := range e.Values {
			vector[i] = float64(v)
		}
		vectors = append(vectors, vector)
	}
	return vectors, nil
}
