// Package bench measures the cost of a conversion beside what is possible and what is common, in one run, because only
// ratios mean anything on a machine that does other things as well. It is a module of its own, so that what it
// compares with never becomes a dependency of the product.
package bench

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicstream "github.com/anthropics/anthropic-sdk-go/packages/ssestream"
	"github.com/openai/openai-go/v3"
	openaistream "github.com/openai/openai-go/v3/packages/ssestream"
	"github.com/openai/openai-go/v3/responses"
	"google.golang.org/genai"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/bench/internal/floor"
	"github.com/prism-shadow/mmsp-go/bench/internal/provider"
	antmessages "github.com/prism-shadow/mmsp-go/clients/ant_messages"
	googlegenai "github.com/prism-shadow/mmsp-go/clients/google_genai"
	googleofficial "github.com/prism-shadow/mmsp-go/clients/google_official"
	openaichat "github.com/prism-shadow/mmsp-go/clients/openai_chat"
	openairesponses "github.com/prism-shadow/mmsp-go/clients/openai_responses"
)

// contender does the work of one stream. Its result is the public stream, or nothing if all it does is decode.
type contender struct {
	protocol, name string
	run            func(out []byte) ([]byte, error)
}

const (
	product      = "mmsp"
	byHand       = "floor"
	reflection   = "encoding/json"
	vendor       = "official SDK" // decodes only
	publicEvents = deltas + 2     // with the done item and the stop
)

func contenders(t testing.TB) []contender {
	chat, padded, messages := stream(provider.Chat(false)), stream(provider.Chat(true)), stream(provider.Messages())
	responses, content, interactions := stream(provider.Responses()), stream(provider.GenerateContent()), stream(provider.Interactions())
	openaiChat := func(o mmsp.Options) (mmsp.Provider, error) { return openaichat.New(o) }
	antMessages := func(o mmsp.Options) (mmsp.Provider, error) { return antmessages.New(o) }
	openaiResponses := func(o mmsp.Options) (mmsp.Provider, error) { return openairesponses.New(o) }
	googleGenai := func(o mmsp.Options) (mmsp.Provider, error) { return googlegenai.New(o) }
	googleOfficial := func(o mmsp.Options) (mmsp.Provider, error) { return googleofficial.New(o) }
	return []contender{
		{"Chat", product, convert(t, chat, openaiChat)},
		{"Chat", byHand, handwritten(chat, floor.Chat)},
		{"Chat", reflection, handwritten(chat, chatReflection)},
		{"Chat", vendor, func([]byte) ([]byte, error) { return nil, decodeChat(chat) }},
		{"Chat, padded", product, convert(t, padded, openaiChat)},
		{"Chat, padded", byHand, handwritten(padded, floor.Chat)},
		{"Messages", product, convert(t, messages, antMessages)},
		{"Messages", byHand, handwritten(messages, floor.Messages)},
		{"Messages", reflection, handwritten(messages, messagesReflection)},
		{"Messages", vendor, func([]byte) ([]byte, error) { return nil, decodeMessages(messages) }},
		{"Responses", product, convert(t, responses, openaiResponses)},
		{"Responses", byHand, handwritten(responses, floor.Responses)},
		{"Responses", reflection, handwritten(responses, responsesReflection)},
		{"Responses", vendor, func([]byte) ([]byte, error) { return nil, decodeResponses(responses) }},
		{"generateContent", product, convert(t, content, googleGenai)},
		{"generateContent", byHand, handwritten(content, floor.GenerateContent)},
		{"generateContent", reflection, handwritten(content, generateContentReflection)},
		{"generateContent", vendor, decodeGenerateContent(t, content)},
		{"Interactions", product, convert(t, interactions, googleOfficial)},
		{"Interactions", byHand, handwritten(interactions, floor.Interactions)},
		{"Interactions", reflection, handwritten(interactions, interactionsReflection)}, // no SDK in Go has the API
	}
}

// convert is the product: a client of the protocol, the grammar, the items and the bytes that the server writes.
func convert(t testing.TB, stream []byte, client func(mmsp.Options) (mmsp.Provider, error)) func([]byte) ([]byte, error) {
	p, err := client(mmsp.Options{
		Model: "m", APIKey: mmsp.NewSecret("k"), BaseURL: "http://provider.invalid",
		HTTPClient: &http.Client{Transport: recorded(stream)},
	})
	if err != nil {
		t.Fatal(err)
	}
	asked := mmsp.NewClient(p)
	messages := []mmsp.Message{mmsp.UserMessage(mmsp.Text("hello"))}
	var burst []byte
	return func(out []byte) ([]byte, error) {
		for event, err := range asked.StreamingResponse(t.Context(), messages, nil) {
			if err != nil {
				return out, err
			}
			burst = append(burst, "data: "...)
			burst = event.AppendJSON(burst)
			burst = append(burst, "\n\n"...)
			if !event.More {
				out = append(out, burst...)
				burst = burst[:0]
			}
		}
		return append(out, "data: [DONE]\n\n"...), nil
	}
}

func handwritten(stream []byte, converter func() floor.Convert) func([]byte) ([]byte, error) {
	return func(out []byte) ([]byte, error) {
		err := floor.Stream(bytes.NewReader(stream), converter(), func(p []byte) error {
			out = append(out, p...)
			return nil
		})
		return out, err
	}
}

// The converters through encoding/json have structs for nothing but what they need.
type (
	publicEvent struct {
		Role      string       `json:"role"`
		EventType string       `json:"event_type"`
		Items     []publicItem `json:"content_items"`
		Usage     *publicUsage `json:"usage_metadata"`
		Finish    *string      `json:"finish_reason"`
		CreatedAt int64        `json:"created_at"`
	}
	publicItem struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	publicUsage struct {
		Cached   *int64 `json:"cached_tokens"`
		Prompt   *int64 `json:"prompt_tokens"`
		Thoughts *int64 `json:"thoughts_tokens"`
		Response *int64 `json:"response_tokens"`
	}
)

func appendReflected(dst []byte, event *publicEvent) ([]byte, error) {
	event.Role, event.CreatedAt = "assistant", time.Now().UnixMilli()
	encoded, err := json.Marshal(event)
	return append(append(append(dst, "data: "...), encoded...), "\n\n"...), err
}

func appendReflectedText(dst []byte, kind, text string) ([]byte, error) {
	return appendReflected(dst, &publicEvent{EventType: "delta", Items: []publicItem{{kind, text}}})
}

func appendReflectedEnd(dst []byte, text string, usage *publicUsage) ([]byte, error) {
	dst, err := appendReflectedText(dst, "text.done", text)
	if err == nil {
		dst, err = appendReflected(dst, &publicEvent{EventType: "stop", Items: []publicItem{}, Usage: usage, Finish: new("stop")})
	}
	return append(dst, "data: [DONE]\n\n"...), err
}

func chatReflection() floor.Convert {
	var text []byte
	var usage publicUsage
	return func(dst, data []byte) ([]byte, error) {
		if data[0] == '[' {
			return appendReflectedEnd(dst, string(text), &usage)
		}
		var chunk struct {
			Choices []struct {
				Delta struct {
					Content string `json:"content"`
				} `json:"delta"`
			} `json:"choices"`
			Usage *struct {
				Prompt   *int64 `json:"prompt_tokens"`
				Response *int64 `json:"completion_tokens"`
			} `json:"usage"`
		}
		if err := json.Unmarshal(data, &chunk); err != nil {
			return dst, err
		}
		if chunk.Usage != nil {
			usage.Prompt, usage.Response = chunk.Usage.Prompt, chunk.Usage.Response
		}
		if len(chunk.Choices) == 0 || chunk.Choices[0].Delta.Content == "" {
			return dst, nil
		}
		text = append(text, chunk.Choices[0].Delta.Content...)
		return appendReflectedText(dst, "text.delta", chunk.Choices[0].Delta.Content)
	}
}

func messagesReflection() floor.Convert {
	var text []byte
	var usage publicUsage
	return func(dst, data []byte) ([]byte, error) {
		var event struct {
			Type  string `json:"type"`
			Delta struct {
				Text string `json:"text"`
			} `json:"delta"`
			Message struct {
				Usage struct {
					Input *int64 `json:"input_tokens"`
				} `json:"usage"`
			} `json:"message"`
			Usage struct {
				Output *int64 `json:"output_tokens"`
			} `json:"usage"`
		}
		if err := json.Unmarshal(data, &event); err != nil {
			return dst, err
		}
		switch event.Type {
		case "message_start":
			usage.Prompt = event.Message.Usage.Input
		case "content_block_delta":
			text = append(text, event.Delta.Text...)
			return appendReflectedText(dst, "text.delta", event.Delta.Text)
		case "message_delta":
			usage.Response = event.Usage.Output
		case "message_stop":
			return appendReflectedEnd(dst, string(text), &usage)
		}
		return dst, nil
	}
}

func responsesReflection() floor.Convert {
	var text []byte
	return func(dst, data []byte) ([]byte, error) {
		var event struct {
			Type     string `json:"type"`
			Delta    string `json:"delta"`
			Response struct {
				Usage struct {
					Input        *int64 `json:"input_tokens"`
					InputDetails struct {
						Cached *int64 `json:"cached_tokens"`
					} `json:"input_tokens_details"`
					Output        *int64 `json:"output_tokens"`
					OutputDetails struct {
						Reasoning *int64 `json:"reasoning_tokens"`
					} `json:"output_tokens_details"`
				} `json:"usage"`
			} `json:"response"`
		}
		if err := json.Unmarshal(data, &event); err != nil {
			return dst, err
		}
		switch event.Type {
		case "response.output_text.delta":
			text = append(text, event.Delta...)
			return appendReflectedText(dst, "text.delta", event.Delta)
		case "response.completed":
			usage := &event.Response.Usage
			return appendReflectedEnd(dst, string(text), &publicUsage{
				Cached: usage.InputDetails.Cached, Prompt: usage.Input, Thoughts: usage.OutputDetails.Reasoning, Response: usage.Output,
			})
		}
		return dst, nil
	}
}

func generateContentReflection() floor.Convert {
	var text []byte
	return func(dst, data []byte) ([]byte, error) {
		var chunk struct {
			Candidates []struct {
				Content struct {
					Parts []struct {
						Text string `json:"text"`
					} `json:"parts"`
				} `json:"content"`
				FinishReason string `json:"finishReason"`
			} `json:"candidates"`
			Usage struct {
				Prompt     *int64 `json:"promptTokenCount"`
				Thoughts   *int64 `json:"thoughtsTokenCount"`
				Candidates *int64 `json:"candidatesTokenCount"`
			} `json:"usageMetadata"`
		}
		err := json.Unmarshal(data, &chunk)
		if err != nil {
			return dst, err
		}
		for _, part := range chunk.Candidates[0].Content.Parts {
			if part.Text == "" {
				continue
			}
			text = append(text, part.Text...)
			if dst, err = appendReflectedText(dst, "text.delta", part.Text); err != nil {
				return dst, err
			}
		}
		if chunk.Candidates[0].FinishReason == "" {
			return dst, nil
		}
		return appendReflectedEnd(dst, string(text), &publicUsage{Prompt: chunk.Usage.Prompt, Thoughts: chunk.Usage.Thoughts, Response: chunk.Usage.Candidates})
	}
}

func interactionsReflection() floor.Convert {
	var text []byte
	var usage publicUsage
	return func(dst, data []byte) ([]byte, error) {
		if data[0] == '[' {
			return appendReflectedEnd(dst, string(text), &usage)
		}
		var event struct {
			Type  string `json:"event_type"`
			Delta struct {
				Text string `json:"text"`
			} `json:"delta"`
			Interaction struct {
				Usage struct {
					Input  *int64 `json:"total_input_tokens"`
					Output *int64 `json:"total_output_tokens"`
				} `json:"usage"`
			} `json:"interaction"`
		}
		if err := json.Unmarshal(data, &event); err != nil {
			return dst, err
		}
		switch event.Type {
		case "step.delta":
			text = append(text, event.Delta.Text...)
			return appendReflectedText(dst, "text.delta", event.Delta.Text)
		case "interaction.completed":
			usage.Prompt, usage.Response = event.Interaction.Usage.Input, event.Interaction.Usage.Output
		}
		return dst, nil
	}
}

// The decoders of the official SDKs, read as their examples do.

func decodeChat(stream []byte) error {
	events := openaistream.NewStream[openai.ChatCompletionChunk](openaistream.NewDecoder(recorded(stream).answer(nil)), nil)
	n := 0
	for events.Next() {
		if chunk := events.Current(); len(chunk.Choices) > 0 && chunk.Choices[0].Delta.Content != "" {
			n++
		}
	}
	return decoded(n, events.Err())
}

func decodeMessages(stream []byte) error {
	events := anthropicstream.NewStream[anthropic.MessageStreamEventUnion](anthropicstream.NewDecoder(recorded(stream).answer(nil)), nil)
	n := 0
	for events.Next() {
		if event, ok := events.Current().AsAny().(anthropic.ContentBlockDeltaEvent); ok {
			if text, ok := event.Delta.AsAny().(anthropic.TextDelta); ok && text.Text != "" {
				n++
			}
		}
	}
	return decoded(n, events.Err())
}

func decodeResponses(stream []byte) error {
	events := openaistream.NewStream[responses.ResponseStreamEventUnion](openaistream.NewDecoder(recorded(stream).answer(nil)), nil)
	n := 0
	for events.Next() {
		if event, ok := events.Current().AsAny().(responses.ResponseTextDeltaEvent); ok && event.Delta != "" {
			n++
		}
	}
	return decoded(n, events.Err())
}

// The SDK of generateContent lets nobody at its decoder but through its client, which asks once a stream.
func decodeGenerateContent(t testing.TB, stream []byte) func([]byte) ([]byte, error) {
	client, err := genai.NewClient(t.Context(), &genai.ClientConfig{
		APIKey: "k", Backend: genai.BackendGeminiAPI, HTTPClient: &http.Client{Transport: recorded(stream)},
		HTTPOptions: genai.HTTPOptions{BaseURL: "http://provider.invalid"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return func([]byte) ([]byte, error) {
		n := 0
		for chunk, err := range client.Models.GenerateContentStream(t.Context(), "m", genai.Text("hello"), nil) {
			if err != nil {
				return nil, err
			}
			if chunk.Text() != "" {
				n++
			}
		}
		return nil, decoded(n, nil)
	}
}

func decoded(n int, err error) error {
	if err == nil && n != deltas {
		return fmt.Errorf("%d events of text instead of %d", n, deltas)
	}
	return err
}

// A comparison is fair only if the work is the same.
func TestSameStream(t *testing.T) {
	times := regexp.MustCompile(`"created_at":\d+`)
	want := map[string]string{}
	for _, c := range contenders(t) {
		out, err := c.run(nil)
		if err != nil {
			t.Fatalf("%s, %s: %v", c.protocol, c.name, err)
		}
		if c.name == vendor {
			continue
		}
		got := times.ReplaceAllString(string(out), `"created_at":0`)
		if n := bytes.Count(out, []byte("\n\n")); n != publicEvents+1 {
			t.Errorf("%s, %s: %d events", c.protocol, c.name, n)
		}
		if first, ok := want[c.protocol]; !ok {
			want[c.protocol] = got
		} else if got != first {
			t.Errorf("%s, %s: another stream:\n%s\nwant\n%s", c.protocol, c.name, got[len(got)-600:], first[len(first)-600:])
		}
	}
}

func BenchmarkConvert(b *testing.B) {
	for _, c := range contenders(b) {
		b.Run(c.protocol+"/"+c.name, func(b *testing.B) { measure(b, &c) })
	}
}

func measure(b *testing.B, c *contender) {
	var out []byte
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if out, err = c.run(out[:0]); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/publicEvents, "ns/event")
}
