package chat

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/ingress"
	"github.com/prism-shadow/mmsp-go/internal/carry"
	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
	"github.com/prism-shadow/mmsp-go/wire/openaichat"
)

func callFor(t testing.TB, fields string, peer carry.Peer) ingress.Call {
	t.Helper()
	c, _, err := ask(`{"model":"demo-1",`+hi+fields+`}`, peer)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// stream writes the items of an answer as they stream, texts and arguments in two pieces, and the stop.
func stream(c ingress.Call, answer *mmsp.Message) []byte {
	var out []byte
	event := func(item mmsp.Item) { out = c.Event(out, &mmsp.Event{Type: mmsp.EventDelta, Item: item}) }
	for _, item := range answer.ContentItems {
		if item.Type == mmsp.ToolCallDelta { // cut
			event(item)
			continue
		}
		delta := item
		delta.Type = mmsp.ItemType(item.Type.Kind() + ".delta")
		text := item.Text + item.Thinking + item.Arguments
		half := len(text) / 2
		for half > 0 && !utf8.RuneStart(text[half]) {
			half--
		}
		set := func(piece string) {
			switch item.Type {
			case mmsp.TextDone:
				delta.Text = piece
			case mmsp.ThinkingDone:
				delta.Thinking = piece
			case mmsp.ToolCallDone:
				delta.Arguments = piece
			}
		}
		if half == 0 || item.Thinking == ingress.RedactedThinking {
			event(delta)
		} else {
			set(text[:half])
			event(delta)
			delta.Fidelity, delta.Name, delta.ToolCallID = nil, "", ""
			set(text[half:])
			event(delta)
		}
		event(item)
	}
	return c.Stop(out, answer)
}

func answerOf(finish mmsp.FinishReason, items ...mmsp.Item) *mmsp.Message {
	return &mmsp.Message{Role: mmsp.RoleAssistant, ContentItems: items, FinishReason: finish}
}

func withFidelity(item mmsp.Item, fidelity string) mmsp.Item {
	item.Fidelity = mmsp.Fidelity(fidelity)
	return item
}

func TestStream(t *testing.T) {
	chunk := func(choice string) string {
		return `data: {"id":"chatcmpl-a1","object":"chat.completion.chunk","created":1790000000,"model":"demo-1","choices":[` + choice + "]}\n\n"
	}
	delta := func(fields string) string {
		return chunk(`{"index":0,"delta":{` + fields + `},"logprobs":null,"finish_reason":null}`)
	}
	finish := func(reason string) string {
		return chunk(`{"index":0,"delta":{},"logprobs":null,"finish_reason":"`+reason+`"}`) + "data: [DONE]\n\n"
	}
	began, begunWithText := delta(`"role":"assistant","content":null,"refusal":null`), delta(`"role":"assistant","content":"","refusal":null`)
	cut := mmsp.ToolCall("c1", "f", `{"a":`)
	cut.Type = mmsp.ToolCallDelta
	cutCustom := mmsp.ToolCall("c1", "p", `{"inp`)
	cutCustom.Type = mmsp.ToolCallDelta
	filtered := answerOf(mmsp.FinishUnknown)
	filtered.StopDetail = &mmsp.StopDetail{Kind: "filter"}
	malformed := func(items ...mmsp.Item) *mmsp.Message {
		answer := answerOf(mmsp.FinishUnknown, items...)
		answer.StopDetail = &mmsp.StopDetail{Kind: "malformed_call", Text: "MALFORMED_FUNCTION_CALL"}
		return answer
	}
	refused := func(text string, items ...mmsp.Item) *mmsp.Message {
		answer := answerOf(mmsp.FinishUnknown, items...)
		answer.StopDetail = &mmsp.StopDetail{Kind: "refusal", Text: text}
		return answer
	}
	tools := `,"stream":true,"tools":[{"type":"function","function":{"name":"f"}},{"type":"custom","custom":{"name":"p"}}]`
	for _, c := range []struct {
		name, fields string
		peer         carry.Peer
		answer       *mmsp.Message
		want         string
	}{
		{"nothing", `,"stream":true`, chatPeer, answerOf(mmsp.FinishStop), begunWithText + finish("stop")},
		{"filtered", `,"stream":true`, chatPeer, filtered, begunWithText + finish("content_filter")},
		{"a call that cannot be read", tools, chatPeer, malformed(mmsp.Text("t")), begunWithText + delta(`"content":"t"`) + finish("content_filter")},
		{
			"a call that cannot be read beside one that can", tools, chatPeer, malformed(mmsp.ToolCall("c3", "p", `{"input":"x"}`)),
			began + delta(`"tool_calls":[{"index":0,"id":"c3","type":"custom","custom":{"name":"p","input":""}}]`) +
				delta(`"tool_calls":[{"index":0,"custom":{"input":"x"}}]`) + finish("tool_calls"),
		},
		{
			"text", `,"stream":true`, chatPeer, answerOf(mmsp.FinishStop, mmsp.Text("a\"b✓")),
			begunWithText + delta(`"content":"a\"b"`) + delta(`"content":"✓"`) + finish("stop"),
		},
		{
			"thinking and calls", tools, chatPeer,
			answerOf(mmsp.FinishToolCall, withFidelity(mmsp.Thinking("ab"), `{"reasoning_field":"reasoning_content"}`), mmsp.ToolCall("c1", "f", `{"a":1}`), mmsp.ToolCall("c2", "f", "{}"), mmsp.ToolCall("c3", "p", `{"input":"x\ny"}`)),
			began + delta(`"reasoning_content":"a"`) + delta(`"reasoning_content":"b"`) +
				delta(`"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":""}}]`) +
				delta(`"tool_calls":[{"index":0,"function":{"arguments":"{\"a"}}]`) + delta(`"tool_calls":[{"index":0,"function":{"arguments":"\":1}"}}]`) +
				delta(`"tool_calls":[{"index":1,"id":"c2","type":"function","function":{"name":"f","arguments":""}}]`) +
				delta(`"tool_calls":[{"index":1,"function":{"arguments":"{"}}]`) + delta(`"tool_calls":[{"index":1,"function":{"arguments":"}"}}]`) +
				delta(`"tool_calls":[{"index":2,"id":"c3","type":"custom","custom":{"name":"p","input":""}}]`) +
				delta(`"tool_calls":[{"index":2,"custom":{"input":"x\ny"}}]`) + finish("tool_calls"),
		},
		{
			"a refusal", `,"stream":true`, chatPeer, &mmsp.Message{ContentItems: []mmsp.Item{withFidelity(mmsp.Text("no"), `{"refusal":true}`)}, FinishReason: mmsp.FinishUnknown, StopDetail: &mmsp.StopDetail{Kind: "refusal"}},
			began + delta(`"refusal":"n"`) + delta(`"refusal":"o"`) + finish("stop"),
		},
		{"a refusal's reason", `,"stream":true`, chatPeer, refused("No.\n"), began + delta(`"refusal":"No.\n"`) + finish("stop")},
		{
			"a refusal's reason after words", `,"stream":true`, chatPeer, refused("No.", mmsp.Text("t")),
			begunWithText + delta(`"content":"t"`) + delta(`"refusal":"No."`) + finish("stop"),
		},
		{
			"a refusal's reason after the same in the model's words", `,"stream":true`, chatPeer, refused("No.", withFidelity(mmsp.Text("n"), `{"refusal":true}`)),
			began + delta(`"refusal":"n"`) + finish("stop"),
		},
		{
			"a refusal's reason after a call", tools, chatPeer, refused("No.", mmsp.ToolCall("c3", "p", `{"input":"x"}`)),
			began + delta(`"tool_calls":[{"index":0,"id":"c3","type":"custom","custom":{"name":"p","input":""}}]`) +
				delta(`"tool_calls":[{"index":0,"custom":{"input":"x"}}]`) + delta(`"refusal":"No."`) + finish("stop"),
		},
		{"a refusal without a reason", `,"stream":true`, chatPeer, refused(""), begunWithText + finish("content_filter")},
		{
			"a call cut", tools, chatPeer, answerOf(mmsp.FinishLength, mmsp.Text("t"), cut),
			begunWithText + delta(`"content":"t"`) + delta(`"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"f","arguments":""}}]`) +
				delta(`"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":"}}]`) + finish("length"),
		},
		{
			"a call of a custom tool cut", tools, chatPeer, answerOf(mmsp.FinishLength, cutCustom),
			began + delta(`"tool_calls":[{"index":0,"id":"c1","type":"custom","custom":{"name":"p","input":""}}]`) +
				delta(`"tool_calls":[{"index":0,"custom":{"input":"{\"inp"}}]`) + finish("length"),
		},
		{
			"the older form has room for one call", `,"stream":true,"functions":[{"name":"f"}]`, chatPeer, answerOf(mmsp.FinishToolCall, mmsp.ToolCall("c1", "f", `{"a":1}`), mmsp.ToolCall("c2", "f", "{}")),
			began + delta(`"function_call":{"name":"f","arguments":""}`) + delta(`"function_call":{"arguments":"{\"a"}`) + delta(`"function_call":{"arguments":"\":1}"}`) + finish("function_call"),
		},
		{
			"details of the provider", `,"stream":true`, chatPeer,
			answerOf(mmsp.FinishStop, withFidelity(mmsp.Thinking("ab"), `{"reasoning_details":[{"type":"reasoning.text","format":"x","index":0}],"issuer":"i"}`), withFidelity(mmsp.Thinking(""), `{"reasoning_details":[{"type":"reasoning.text","format":"x","index":0,"signature":"s"}],"issuer":"i"}`), mmsp.Text("t")),
			began + delta(`"reasoning_content":"a","reasoning_details":[{"type":"reasoning.text","format":"x","text":"a","index":0}]`) +
				delta(`"reasoning_content":"b","reasoning_details":[{"type":"reasoning.text","format":"x","text":"b","index":0}]`) +
				delta(`"reasoning_details":[{"type":"reasoning.text","format":"x","signature":"s","index":0}]`) + delta(`"content":"t"`) + finish("stop"),
		},
		{
			"pictures and sound", `,"stream":true`, chatPeer, answerOf(mmsp.FinishStop, mmsp.InlineData([]byte("\x00"), "image/png", ""), mmsp.InlineData([]byte("\x01"), "audio/wav", "")),
			began + delta(`"images":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]`) + delta(`"audio":{"id":"audio_a1","data":"AQ==","expires_at":1790000000,"transcript":""}`) + finish("stop"),
		},
		{
			"thinking that begins like what is not shown", `,"stream":true`, chatPeer, answerOf(mmsp.FinishStop, mmsp.Thinking(ingress.RedactedThinking+ingress.RedactedThinking)),
			began + delta(`"reasoning_content":"_REDACTED_THINKING_REDACTED_THINKING"`) + finish("stop"),
		},
		{
			"what is not shown", `,"stream":true`, chatPeer, answerOf(mmsp.FinishStop, mmsp.Thinking(ingress.RedactedThinking), mmsp.Item{Type: mmsp.InlineThinkingDone, Data: []byte("x"), MimeType: "image/png"}, mmsp.Text("t")),
			begunWithText + delta(`"content":"t"`) + finish("stop"),
		},
	} {
		if got := string(stream(callFor(t, c.fields, c.peer), c.answer)); got != c.want {
			t.Errorf("%s:\ngot\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
}

func TestStreamUsage(t *testing.T) {
	c := callFor(t, `,"stream":true,"stream_options":{"include_usage":true}`, chatPeer)
	answer := answerOf(mmsp.FinishStop, mmsp.Text("Hi"))
	answer.Usage = &mmsp.Usage{CachedTokens: new(int64(4)), PromptTokens: new(int64(5)), ThoughtsTokens: new(int64(1)), ResponseTokens: new(int64(3))}
	const head = `data: {"id":"chatcmpl-a1","object":"chat.completion.chunk","created":1790000000,"model":"demo-1","choices":[`
	want := head + `{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null}` + "\n\n" +
		head + `{"index":0,"delta":{"content":"H"},"logprobs":null,"finish_reason":null}],"usage":null}` + "\n\n" +
		head + `{"index":0,"delta":{"content":"i"},"logprobs":null,"finish_reason":null}],"usage":null}` + "\n\n" +
		head + `{"index":0,"delta":{},"logprobs":null,"finish_reason":"stop"}],"usage":null}` + "\n\n" +
		head + `],"usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":1}}}` + "\n\n" +
		"data: [DONE]\n\n"
	if got := string(stream(c, answer)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	c = callFor(t, `,"stream":true,"stream_options":{"include_usage":true}`, chatPeer)
	answer.Usage = &mmsp.Usage{}
	if got := string(stream(c, answer)); !strings.HasSuffix(got, `"finish_reason":"stop"}],"usage":null}`+"\n\ndata: [DONE]\n\n") {
		t.Errorf("usage that is not known:\n%s", got)
	}
}

func TestFail(t *testing.T) {
	c := callFor(t, `,"stream":true`, chatPeer)
	problem := &ingress.Problem{Kind: ingress.KindOverloaded, Message: "busy", Param: ""}
	want := `data: {"error":{"message":"busy","type":"server_error","param":"","code":"server_is_overloaded"}}` + "\n\ndata: [DONE]\n\n"
	if got := string(c.Fail(nil, problem)); got != want {
		t.Errorf("got %s want %s", got, want)
	}
	if got := string(c.Heartbeat(c.Heartbeat(nil))); !strings.HasPrefix(got, "data: ") || strings.Count(got, `"role":"assistant"`) != 1 || !strings.HasSuffix(got, "\n\n: keep-alive\n\n") {
		t.Errorf("heartbeats %q", got)
	}
	for _, c := range []struct {
		problem ingress.Problem
		want    string
	}{
		{ingress.Problem{Kind: ingress.KindInvalid, Message: "m", Param: "n"}, `{"error":{"message":"m","type":"invalid_request_error","param":"n","code":"invalid_value"}}`},
		{ingress.Problem{Kind: ingress.KindInvalid, Message: "m", Code: "x"}, `{"error":{"message":"m","type":"invalid_request_error","param":"","code":"x"}}`},
		{ingress.Problem{Kind: ingress.KindUnauthorized, Message: "m"}, `{"error":{"message":"m","type":"invalid_request_error","param":"","code":"invalid_api_key"}}`},
		{ingress.Problem{Kind: ingress.KindUnknownModel, Message: "m", Param: "model"}, `{"error":{"message":"m","type":"invalid_request_error","param":"model","code":"model_not_found"}}`},
		{ingress.Problem{Kind: ingress.KindContextLength, Message: "m", Code: "1261"}, `{"error":{"message":"m","type":"invalid_request_error","param":"","code":"context_length_exceeded"}}`},
		{ingress.Problem{Kind: ingress.KindRateLimit, Message: "m"}, `{"error":{"message":"m","type":"rate_limit_error","param":"","code":"rate_limit_exceeded"}}`},
		{ingress.Problem{Kind: ingress.KindUpstream, Message: "m"}, `{"error":{"message":"m","type":"server_error","param":"","code":"server_error"}}`},
	} {
		if got := string(New().AppendError(nil, &c.problem)); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

func TestWhole(t *testing.T) {
	const head, tail = `{"id":"chatcmpl-a1","object":"chat.completion","created":1790000000,"model":"demo-1","choices":[{"index":0,"message":{"role":"assistant",`, `},"logprobs":null,"finish_reason":"`
	usage := &mmsp.Usage{PromptTokens: new(int64(5)), ResponseTokens: new(int64(3))}
	for _, c := range []struct {
		name, fields string
		answer       *mmsp.Message
		want         string
	}{
		{
			"text", "", &mmsp.Message{ContentItems: []mmsp.Item{mmsp.Thinking("t"), mmsp.Text("a"), mmsp.Thinking("u"), mmsp.Text("b")}, FinishReason: mmsp.FinishStop, Usage: usage},
			head + `"content":"ab","refusal":null,"reasoning_content":"tu"` + tail + `stop"}],"usage":{"prompt_tokens":5,"completion_tokens":3,"total_tokens":8}}`,
		},
		{"nothing", "", answerOf(mmsp.FinishStop), head + `"content":"","refusal":null` + tail + `stop"}]}`},
		{"thinking alone", "", answerOf(mmsp.FinishLength, mmsp.Thinking("t")), head + `"content":"","refusal":null,"reasoning_content":"t"` + tail + `length"}]}`},
		{
			"calls", `,"tools":[{"type":"custom","custom":{"name":"p"}}]`, answerOf(mmsp.FinishToolCall, mmsp.ToolCall("c1", "f", "{}"), mmsp.ToolCall("c2", "p", `{"input":"x"}`)),
			head + `"content":null,"refusal":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"c2","type":"custom","custom":{"name":"p","input":"x"}}]` + tail + `tool_calls"}]}`,
		},
		{
			"the older form", `,"functions":[{"name":"f"}]`, answerOf(mmsp.FinishToolCall, mmsp.ToolCall("c1", "f", "{}")),
			head + `"content":null,"refusal":null,"function_call":{"name":"f","arguments":"{}"}` + tail + `function_call"}]}`,
		},
		{
			"a call cut", "", answerOf(mmsp.FinishLength, mmsp.Item{Type: mmsp.ToolCallDelta, ToolCallID: "c1", Name: "f", Arguments: `{"a`}),
			head + `"content":null,"refusal":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a"}}]` + tail + `length"}]}`,
		},
		{
			"a refusal", "", answerOf(mmsp.FinishUnknown, withFidelity(mmsp.Text("no"), `{"refusal":true}`)),
			head + `"content":null,"refusal":"no"` + tail + `stop"}]}`,
		},
		{
			"a refusal's reason", "", &mmsp.Message{ContentItems: []mmsp.Item{mmsp.Text("t")}, FinishReason: mmsp.FinishUnknown, StopDetail: &mmsp.StopDetail{Kind: "refusal", Text: "No."}},
			head + `"content":"t","refusal":"No."` + tail + `stop"}]}`,
		},
		{
			"nothing but a refusal's reason", "", &mmsp.Message{FinishReason: mmsp.FinishUnknown, StopDetail: &mmsp.StopDetail{Kind: "refusal", Text: "No."}},
			head + `"content":null,"refusal":"No."` + tail + `stop"}]}`,
		},
		{
			"a refusal at the token limit", "", &mmsp.Message{FinishReason: mmsp.FinishLength, StopDetail: &mmsp.StopDetail{Kind: "refusal", Text: "No."}},
			head + `"content":"","refusal":null` + tail + `length"}]}`,
		},
		{
			"a refusal without words of its own", "", &mmsp.Message{ContentItems: []mmsp.Item{mmsp.Text("no")}, FinishReason: mmsp.FinishUnknown, StopDetail: &mmsp.StopDetail{Kind: "refusal"}},
			head + `"content":"no","refusal":null` + tail + `content_filter"}]}`,
		},
		{
			"details of the provider", "", answerOf(mmsp.FinishStop, withFidelity(mmsp.Thinking("s"), `{"reasoning_details":[{"type":"reasoning.summary","id":"i"}]}`)),
			head + `"content":"","refusal":null,"reasoning_content":"s","reasoning_details":[{"type":"reasoning.summary","id":"i","summary":"s"}]` + tail + `stop"}]}`,
		},
		{
			"pictures and sound", "", answerOf(mmsp.FinishStop, mmsp.InlineData([]byte("\x00"), "image/png", ""), mmsp.InlineData([]byte("\x01"), "audio/wav", ""), mmsp.InlineData([]byte("\x02"), "audio/wav", "")),
			head + `"content":"","refusal":null,"images":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}],"audio":{"id":"audio_a1","data":"AQI=","expires_at":1790000000,"transcript":""}` + tail + `stop"}]}`,
		},
	} {
		got := string(callFor(t, c.fields, chatPeer).Whole(nil, c.answer))
		if got != c.want || !jsonscan.Valid([]byte(got)) {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, got, c.want)
		}
	}
}

// message is an answer as a caller keeps it.
type message struct {
	Role             string            `json:"role"`
	Content          *string           `json:"content"`
	Refusal          *string           `json:"refusal,omitempty"`
	ReasoningContent string            `json:"reasoning_content,omitempty"`
	ReasoningDetails []json.RawMessage `json:"reasoning_details,omitempty"`
	ToolCalls        []*toolCall       `json:"tool_calls,omitempty"`
	FunctionCall     *function         `json:"function_call,omitempty"`
	Images           []json.RawMessage `json:"images,omitempty"`
}

type toolCall struct {
	Index        *int            `json:"index,omitempty"`
	ID           string          `json:"id"`
	Type         string          `json:"type"`
	Function     function        `json:"function"`
	ExtraContent json.RawMessage `json:"extra_content,omitempty"`
}

type function struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

// gather reads a stream as a library does. lastWins: what the library does not know is what the last chunk says of it.
func gather(t testing.TB, data []byte, lastWins bool) message {
	t.Helper()
	var m message
	for block := range bytes.SplitSeq(bytes.TrimSuffix(data, []byte("\n\n")), []byte("\n\n")) {
		text, _ := bytes.CutPrefix(block, []byte("data: "))
		if string(text) == "[DONE]" {
			continue
		}
		var chunk struct {
			Choices []struct{ Delta message }
		}
		if err := json.Unmarshal(text, &chunk); err != nil {
			t.Fatalf("%v in %s", err, text)
		}
		for _, choice := range chunk.Choices {
			d := choice.Delta
			if d.Role != "" {
				m.Role = d.Role
			}
			add := func(to **string, piece *string) {
				if piece != nil {
					if *to == nil {
						*to = new("")
					}
					*to = new(**to + *piece)
				}
			}
			add(&m.Content, d.Content)
			add(&m.Refusal, d.Refusal)
			if lastWins && d.ReasoningContent != "" {
				m.ReasoningContent = ""
			}
			m.ReasoningContent += d.ReasoningContent
			if lastWins && d.ReasoningDetails != nil {
				m.ReasoningDetails = nil
			}
			m.ReasoningDetails = append(m.ReasoningDetails, d.ReasoningDetails...)
			m.Images = append(m.Images, d.Images...)
			for _, c := range d.ToolCalls {
				if *c.Index == len(m.ToolCalls) {
					m.ToolCalls = append(m.ToolCalls, &toolCall{ID: c.ID, Type: c.Type})
				}
				to := m.ToolCalls[*c.Index]
				to.Function.Name += c.Function.Name
				to.Function.Arguments += c.Function.Arguments
				if c.ExtraContent != nil {
					to.ExtraContent = c.ExtraContent
				}
			}
			if f := d.FunctionCall; f != nil {
				if m.FunctionCall == nil {
					m.FunctionCall = &function{}
				}
				m.FunctionCall.Name += f.Name
				m.FunctionCall.Arguments += f.Arguments
			}
		}
	}
	return m
}

// TestRoundTrip: what callers that keep everything send back is what the provider said.
func TestRoundTrip(t *testing.T) {
	sign := func(s string) string { return `{"signature":"` + s + `","issuer":"x"}` }
	for _, c := range []struct {
		name, fields string
		peer         carry.Peer
		items        []mmsp.Item
		shuffled     bool // the order is not kept: nothing needs it
	}{
		{"text", "", anthropicPeer, []mmsp.Item{mmsp.Text("hi")}, false},
		{"signed thinking", "", anthropicPeer, []mmsp.Item{withFidelity(mmsp.Thinking("hm ✓"), sign("s")), mmsp.Text("hi"), mmsp.ToolCall("c1", "f", `{"a":1}`)}, false},
		{
			"thinking in between", "", anthropicPeer, []mmsp.Item{
				withFidelity(mmsp.Thinking("é"), sign("s")), withFidelity(mmsp.Thinking(ingress.RedactedThinking), sign("r")), mmsp.Text("ab"), mmsp.Text("c"),
				withFidelity(mmsp.Thinking("then"), sign("t")), mmsp.ToolCall("c1", "f", `{"a":1}`), mmsp.Text("d"), mmsp.ToolCall("c2", "f", `{}`),
			}, false,
		},
		{
			"signed texts and calls", "", geminiPeer, []mmsp.Item{
				mmsp.Thinking("hm"), withFidelity(mmsp.Text("a"), sign("t")), mmsp.Text("b"), withFidelity(mmsp.ToolCall("c1", "f", `{"a":1}`), sign("c")), mmsp.ToolCall("c2", "f", `{}`), withFidelity(mmsp.Text(""), sign("e")),
			}, false,
		},
		{"signed calls alone", "", geminiPeer, []mmsp.Item{mmsp.Text("b"), withFidelity(mmsp.ToolCall("c1", "f", `{"a":1}`), sign("c"))}, false},
		{"signed pictures", "", geminiPeer, []mmsp.Item{withFidelity(mmsp.InlineData([]byte("a"), "image/png", ""), sign("p")), mmsp.Text("b"), mmsp.InlineData([]byte("b"), "image/jpeg", "")}, false},
		{
			"encrypted thinking and phases", "", responsesPeer, []mmsp.Item{
				withFidelity(mmsp.Thinking("sum"), `{"channel":"summary","encrypted_content":"e","issuer":"openai"}`), withFidelity(mmsp.Text("a"), `{"phase":"commentary"}`),
				withFidelity(mmsp.Thinking(""), `{"encrypted_content":"e2"}`), mmsp.ToolCall("c1", "f", `{}`),
			}, false,
		},
		{"a refusal", "", responsesPeer, []mmsp.Item{withFidelity(mmsp.Text("no"), `{"refusal":true}`)}, false},
		{"a refusal with a proof", "", responsesPeer, []mmsp.Item{mmsp.Text("a"), withFidelity(mmsp.Text("no"), `{"refusal":true,"phase":"final_answer"}`)}, false},
		{"plain thinking of the protocol", "", chatPeer, []mmsp.Item{withFidelity(mmsp.Thinking("hm"), `{"reasoning_field":"reasoning_content"}`), mmsp.Text("a")}, false},
		{"thinking in another field", "", chatPeer, []mmsp.Item{withFidelity(mmsp.Thinking("hm"), `{"reasoning_field":"reasoning"}`), mmsp.Text("a")}, false},
		{
			"details of the provider", "", chatPeer, []mmsp.Item{
				withFidelity(mmsp.Thinking("hm"), `{"reasoning_details":[{"type":"reasoning.text","format":"f","index":0,"signature":"s"}]}`),
				withFidelity(mmsp.Thinking(""), `{"reasoning_details":[{"type":"reasoning.encrypted","id":"i","index":1,"data":"d"}]}`), mmsp.Text("a"),
			}, false,
		},
		{
			"details beside another field", "", chatPeer, []mmsp.Item{
				withFidelity(mmsp.Thinking("hm"), `{"reasoning_field":"reasoning"}`), withFidelity(mmsp.Thinking(""), `{"reasoning_details":[{"type":"reasoning.text","index":0,"signature":"s"}],"issuer":"i"}`), mmsp.Text("a"),
			}, false,
		},
		{"a call of the older form", `,"functions":[{"name":"f"}]`, geminiPeer, []mmsp.Item{mmsp.Text("a"), withFidelity(mmsp.ToolCall("fcall_1", "f", `{"a":1}`), sign("c"))}, false},
		{"nothing to prove", "", anthropicPeer, []mmsp.Item{mmsp.Text("a"), mmsp.ToolCall("c1", "f", `{}`)}, false},
	} {
		answer := answerOf(mmsp.FinishStop, c.items...)
		want := string(answer.AppendJSON(nil))
		check := func(how string, m message) {
			m.Role = "assistant"
			back, _ := json.Marshal(m)
			_, request, err := ask(`{"model":"m","messages":[{"role":"user","content":"hi"},`+string(back)+`]}`, c.peer)
			if err != nil {
				t.Errorf("%s, %s: %v\n%s", c.name, how, err, back)
				return
			}
			got := answerOf(mmsp.FinishStop, request.Messages[1].ContentItems...)
			if got := string(got.AppendJSON(nil)); got != want {
				t.Errorf("%s, %s:\ngot  %s\nwant %s\nfrom %s", c.name, how, got, want, back)
			}
		}
		streamed := stream(callFor(t, c.fields+`,"stream":true`, c.peer), answer)
		check("streamed", gather(t, streamed, false))
		var whole struct{ Choices []struct{ Message message } }
		if err := json.Unmarshal(callFor(t, c.fields, c.peer).Whole(nil, answer), &whole); err != nil {
			t.Fatal(err)
		}
		check("whole", whole.Choices[0].Message)
	}
}

// TestChangedTurns: a proof goes back to what it proves, and to nothing else.
func TestChangedTurns(t *testing.T) {
	answer := answerOf(mmsp.FinishStop,
		withFidelity(mmsp.Thinking("one two"), `{"signature":"s"}`), withFidelity(mmsp.Text("text"), `{"signature":"t"}`), withFidelity(mmsp.ToolCall("c1", "f", `{}`), `{"signature":"c"}`))
	data := stream(callFor(t, `,"stream":true`, geminiPeer), answer)
	const call = `{"type":"tool_call.done","name":"f","arguments":{},"tool_call_id":"c1","fidelity":{"signature":"c"}}`
	for name, c := range map[string]struct {
		change func(*message)
		want   string
	}{
		"thinking dropped":   {func(m *message) { m.ReasoningContent = "" }, `{"type":"text.done","text":"text","fidelity":{"signature":"t"}},` + call},
		"the last piece":     {func(m *message) { *m = gather(t, data, true) }, `{"type":"thinking.done","thinking":" two"},{"type":"text.done","text":"text","fidelity":{"signature":"t"}},` + call},
		"another text":       {func(m *message) { m.Content = new("changed") }, `{"type":"text.done","text":"changed"},{"type":"thinking.done","thinking":"one two","fidelity":{"signature":"s"}},` + call},
		"the details lost":   {func(m *message) { m.ReasoningDetails = nil }, `{"type":"thinking.done","thinking":"one two"},{"type":"text.done","text":"text"},` + call},
		"the call taken out": {func(m *message) { m.ToolCalls = nil }, `{"type":"thinking.done","thinking":"one two","fidelity":{"signature":"s"}},{"type":"text.done","text":"text","fidelity":{"signature":"t"}}`},
		"the text taken out": {func(m *message) { m.Content = nil }, `{"type":"thinking.done","thinking":"one two","fidelity":{"signature":"s"}},` + call},
	} {
		m := gather(t, data, false)
		c.change(&m)
		m.Role = "assistant"
		back, _ := json.Marshal(m)
		_, request, err := ask(`{"model":"m","messages":[{"role":"user","content":"hi"},`+string(back)+`]}`, geminiPeer)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got := string(request.Messages[1].AppendJSON(nil))
		if want := `{"role":"assistant","content_items":[` + c.want + `]}`; got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", name, got, want)
		}
	}
}

// TestOlderFormOfTwoCalls: of the calls that the older form has no room for nothing is left, and the first keeps its proof.
func TestOlderFormOfTwoCalls(t *testing.T) {
	answer := answerOf(mmsp.FinishToolCall, mmsp.Text("a"), withFidelity(mmsp.ToolCall("c1", "f", `{"a":1}`), `{"signature":"s"}`), mmsp.ToolCall("c2", "f", "{}"))
	m := gather(t, stream(callFor(t, `,"stream":true,"functions":[{"name":"f"}]`, geminiPeer), answer), false)
	back, _ := json.Marshal(m)
	_, request, err := ask(`{"model":"m","messages":[{"role":"user","content":"hi"},`+string(back)+`,{"role":"function","name":"f","content":"r"}]}`, geminiPeer)
	if err != nil {
		t.Fatal(err)
	}
	got := string(request.Messages[1].AppendJSON(nil))
	want := `{"role":"assistant","content_items":[{"type":"text.done","text":"a"},{"type":"tool_call.done","name":"f","arguments":{"a":1},"tool_call_id":"fcall_1","fidelity":{"signature":"s"}}]}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestLargeProofs: what is too large to carry is left to be recalled, and the rest is carried.
func TestLargeProofs(t *testing.T) {
	large := `{"signature":"` + strings.Repeat("x", carry.MaxInline) + `"}`
	answer := answerOf(mmsp.FinishStop, withFidelity(mmsp.Thinking("a"), large), withFidelity(mmsp.Text("b"), `{"signature":"s"}`), withFidelity(mmsp.ToolCall("c1", "f", "{}"), large))
	data := stream(callFor(t, `,"stream":true`, geminiPeer), answer)
	if len(data) > carry.MaxInline/2 {
		t.Errorf("%d bytes", len(data))
	}
	m := gather(t, data, false)
	m.Role = "assistant"
	back, _ := json.Marshal(m)
	_, request, err := ask(`{"model":"m","messages":[{"role":"user","content":"hi"},`+string(back)+`]}`, geminiPeer)
	if err != nil {
		t.Fatal(err)
	}
	got := string(request.Messages[1].AppendJSON(nil))
	want := `{"role":"assistant","content_items":[{"type":"thinking.done","thinking":"a"},{"type":"text.done","text":"b","fidelity":{"signature":"s"}},{"type":"tool_call.done","name":"f","arguments":{},"tool_call_id":"c1"}]}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestForgedLayout: a layout is what a caller sends, and may say anything.
func TestForgedLayout(t *testing.T) {
	for _, layout := range []string{
		`{"items":[{"k":"text","n":-1},{"k":"text","n":4}]}`, `{"items":[{"k":"text","n":9223372036854775807},{"k":"text","n":9223372036854775807}]}`,
		`{"items":[{"k":"text","n":2},{"k":"text","n":1}]}`, `{"items":[{"k":"text","n":3,"f":[1]}]}`, `{"items":[{"k":"text","n":3,"f":null},{"k":"inline_data"}]}`,
		`{"items":[{"k":"tool_call"},{"k":"tool_call","id":"x"}]}`, `{"items":3}`, `{}`, `{"items":[{"k":"x"}]}`,
	} {
		data := carry.Seal(carry.Envelope{Kind: layoutKind, Fidelity: mmsp.Fidelity(layout)}, 1<<20)
		detail, _ := json.Marshal([]openaichat.ReasoningDetail{{Type: "reasoning.encrypted", Data: data}})
		_, request, err := ask(`{"model":"m","messages":[{"role":"assistant","content":"aé","reasoning_details":`+string(detail)+`}]}`, geminiPeer)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := string(request.Messages[0].AppendJSON(nil)), `{"role":"assistant","content_items":[{"type":"text.done","text":"aé"}]}`; got != want {
			t.Errorf("%s: %s", layout, got)
		}
	}
}

func BenchmarkTextDelta(b *testing.B) {
	c := callFor(b, `,"stream":true`, chatPeer)
	event := &mmsp.Event{Type: mmsp.EventDelta, Item: mmsp.Item{Type: mmsp.TextDelta, Text: "a piece of \"text\" as it comes, "}, CreatedAt: time.Now().UnixMilli()}
	out := c.Event(make([]byte, 0, 4096), event)
	b.ReportAllocs()
	for b.Loop() {
		out = c.Event(out[:0], event)
	}
}
