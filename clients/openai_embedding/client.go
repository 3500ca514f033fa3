// Package openaiembedding is the client type "openai-embedding": any endpoint of the Embeddings protocol. Each message
// becomes a vector; the answer comes whole, in the order of the messages.
package openaiembedding

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"unicode/utf8"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/internal/credentials"
	"github.com/prism-shadow/mmsp-go/internal/failure"
	"github.com/prism-shadow/mmsp-go/internal/modellist"
	"github.com/prism-shadow/mmsp-go/internal/upstream"
	"github.com/prism-shadow/mmsp-go/wire/openaiembedding"
)

const class = "OpenaiEmbeddingClient"

// Client speaks Embeddings for one model.
type Client struct {
	model   string
	key     mmsp.Secret
	baseURL string
	headers map[string]string
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
		model: o.Model, key: key, baseURL: baseURL, headers: o.DefaultHeaders,
		http: upstream.New(o.HTTPClient, o.HTTP),
	}, nil
}

// Class returns the class name in errors.
func (c *Client) Class() string { return class }

// Model returns the upstream model id.
func (c *Client) Model() string { return c.model }

// Embeds reports that the model makes vectors.
func (c *Client) Embeds() bool { return true }

// transformUniConfigToModelConfig turns the config into the request but for its input. What shapes an answer of words
// and older clients ignore has no meaning here and is left; the rest is refused.
func (c *Client) transformUniConfigToModelConfig(config *mmsp.Config) (*openaiembedding.Request, error) {
	// Base64 is a third of the length of numbers; endpoints that do not know it send numbers.
	request := &openaiembedding.Request{Model: c.model, EncodingFormat: "base64"}
	if config.FastMode {
		return nil, &mmsp.UnsupportedParameterError{Client: class, Parameter: "fast_mode", Message: "the Embeddings API has no fast mode"}
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
	} {
		if p.given {
			return nil, &mmsp.UnsupportedParameterError{Client: class, Parameter: p.name, Message: "the Embeddings API has no " + p.name}
		}
	}
	if utf8.RuneCountInString(config.User) <= 64 { // longer ones are refused
		request.User = config.User
	}
	if config.EmbeddingConfig != nil {
		request.Dimensions = config.EmbeddingConfig.Dimensions
	}
	return request, nil
}

// transformUniMessageToModelInput turns each message into one text. The protocol refuses empty ones.
func (c *Client) transformUniMessageToModelInput(messages []mmsp.Message) ([]string, error) {
	input := []string{}
	for m := range messages {
		for i := range messages[m].ContentItems {
			if t := messages[m].ContentItems[i].Type; t != mmsp.TextDone {
				return nil, &mmsp.InvalidRequestError{
					Param:   fmt.Sprintf("messages[%d].content_items[%d]", m, i),
					Message: fmt.Sprintf("%s cannot send %s items, only text", class, t),
				}
			}
		}
		input = append(input, cmp.Or(messages[m].Text(), " "))
	}
	return input, nil
}

// transformModelOutputToUniEvent turns the answer into the only event.
func (c *Client) transformModelOutputToUniEvent(modelOutput *openaiembedding.Response, event *mmsp.UniEvent) {
	event.Reset()
	for i := range modelOutput.Data {
		event.Add(mmsp.EmbeddingDelta, "").Embedding = modelOutput.Data[i].Vector
	}
	event.Type = mmsp.EventStop
	event.Usage = &mmsp.Usage{PromptTokens: modelOutput.PromptTokens}
	event.FinishReason = mmsp.FinishStop
	event.Last = true
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
	if err != nil {
		return nil, &mmsp.InvalidRequestError{Message: err.Error()}
	}
	return &mmsp.Request{
		Method: http.MethodPost, URL: c.baseURL + "/embeddings", Body: body,
		Header: http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json"}},
	}, nil
}

// Do sends the request and yields one event with every vector.
func (c *Client) Do(ctx context.Context, request *mmsp.Request) iter.Seq2[*mmsp.UniEvent, error] {
	return func(yield func(*mmsp.UniEvent, error) bool) { c.streamingResponseInternal(ctx, request, yield) }
}

func (c *Client) streamingResponseInternal(ctx context.Context, request *mmsp.Request, yield func(*mmsp.UniEvent, error) bool) {
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
	modelOutput, err := openaiembedding.Decode(body)
	switch {
	case err != nil && cut(body):
		yield(nil, &mmsp.IncompleteStreamError{Client: class, Reason: "the answer ended early"})
	case err != nil:
		yield(nil, &mmsp.UpstreamError{
			Client: class, ErrorType: "unexpected_body", Err: err,
			Message: fmt.Sprintf("the embeddings from the provider are not readable (%v): %s", err, failure.Excerpt(response.Redact(body))),
		})
	case modelOutput.Error != nil:
		yield(nil, failure.Event(class, response.Redact(modelOutput.Error)))
	case !complete(request.Body, modelOutput):
		yield(nil, &mmsp.UpstreamError{Client: class, ErrorType: "unexpected_body", Message: "the provider did not answer with one vector for each text"})
	default:
		var event mmsp.UniEvent
		c.transformModelOutputToUniEvent(modelOutput, &event)
		yield(&event, nil)
	}
}

// complete reports whether an answer has a vector for each text of the request.
func complete(request []byte, modelOutput *openaiembedding.Response) bool {
	var asked struct {
		Input []json.RawMessage `json:"input"`
	}
	return json.Unmarshal(request, &asked) == nil && len(asked.Input) <= len(modelOutput.Data)
}

// cut reports whether a body is the beginning of a JSON text.
func cut(body []byte) bool {
	err := json.NewDecoder(bytes.NewReader(body)).Decode(new(json.RawMessage))
	return err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF)
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
