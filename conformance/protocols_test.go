package conformance

import (
	"bytes"
	"slices"
	"strings"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/clients/ant_messages"
	"github.com/prism-shadow/mmsp-go/clients/anthropic_official"
	"github.com/prism-shadow/mmsp-go/clients/deepseek_official"
	"github.com/prism-shadow/mmsp-go/clients/google_genai"
	"github.com/prism-shadow/mmsp-go/clients/google_official"
	"github.com/prism-shadow/mmsp-go/clients/minimax_official"
	"github.com/prism-shadow/mmsp-go/clients/moonshot_official"
	"github.com/prism-shadow/mmsp-go/clients/openai_chat"
	"github.com/prism-shadow/mmsp-go/clients/openai_chat_vllm_adapter"
	"github.com/prism-shadow/mmsp-go/clients/openai_embedding"
	"github.com/prism-shadow/mmsp-go/clients/openai_official"
	"github.com/prism-shadow/mmsp-go/clients/openai_responses"
	"github.com/prism-shadow/mmsp-go/clients/zai_official"
)

// client is a client type and the protocol that it speaks.
type client struct {
	name     string
	protocol *protocol
	usage    usageFormula
	new      func(mmsp.Options) (mmsp.Provider, error)
}

var clients = []client{
	{"openai-chat", &chat, chatUsage, of(openaichat.New)},
	{"openai-chat-vllm-adapter", &chat, chatUsage, of(openaichatvllmadapter.New)},
	{"zai-official", &chat, chatUsage, of(zaiofficial.New)},
	{"moonshot-official", &chat, chatUsage, of(moonshotofficial.New)},
	{"openai-responses", &responses, responsesUsage, of(openairesponses.New)},
	{"openai-official", &responses, responsesUsageRequired, of(openaiofficial.New)},
	{"deepseek-official", &responses, responsesUsage, of(deepseekofficial.New)},
	{"minimax-official", &responses, responsesUsage, of(minimaxofficial.New)},
	{"openai-embedding", &embeddings, nil, of(openaiembedding.New)}, // its answers have an expectation of their own
	{"ant-messages", &messages, messagesUsage, of(antmessages.New)},
	{"anthropic-official", &messages, anthropicUsage, of(anthropicofficial.New)},
	{"anthropic-official over bedrock", &bedrock, anthropicUsage, of(newBedrock)},
	{"google-official", &interactions, interactionsUsage, of(googleofficial.New)},
	{"google-genai", &generateContent, generateContentUsage, of(googlegenai.New)},
}

// foreign is a text of recordings that a client type does not read, because its vendor sends nothing like it.
var foreign = map[string]string{
	"deepseek-official": "summary_text", // of reasoning, which comes as plain text
	"minimax-official":  "summary_text",
}

// reads reports whether a recording is in the protocol of the client type, as its vendor speaks it.
func (c *client) reads(r *recording) bool {
	text, ok := foreign[c.name]
	return r.protocol == c.protocol && !(ok && bytes.Contains(r.body, []byte(text)))
}

func of[P mmsp.Provider](build func(mmsp.Options) (P, error)) func(mmsp.Options) (mmsp.Provider, error) {
	return func(o mmsp.Options) (mmsp.Provider, error) { return build(o) }
}

// protocol is what these tests know of a wire protocol, independently of its readers.
type protocol struct {
	// frame makes a server-sent event of the JSON of one.
	frame func(data []byte) []byte
	// terminal tells the event that has to come before a stop.
	terminal func(object) bool
	// failed tells an event that reports a failure.
	failed func(object) bool
	// marks are texts of which a body with a terminal event holds one.
	marks []string
	// whole is a text that an answer in one piece holds, where it need not say how it ended.
	whole string
	// finish maps the provider's word for how a turn ended.
	finish func(word, incomplete string) mmsp.FinishReason
}

// protocols by their names in the manifest of the corpus.
var protocols = map[string]*protocol{
	"openai-chat": &chat, "openai-responses": &responses, "embeddings": &embeddings, "anthropic-messages": &messages,
	"gemini-interactions": &interactions, "gemini-generate-content": &generateContent,
}

func dataFrame(data []byte) []byte { return slices.Concat([]byte("data: "), data, []byte("\n\n")) }

var chat = protocol{
	frame:    dataFrame,
	terminal: func(chunk object) bool { return chatChoice(chunk).string("finish_reason") != "" },
	failed:   func(chunk object) bool { return chunk["error"] != nil || chatChoice(chunk)["error"] != nil },
	marks:    []string{"finish_reason", "message"},
	finish: func(word, _ string) mmsp.FinishReason {
		return words{
			"stop": mmsp.FinishStop, "length": mmsp.FinishLength,
			"tool_calls": mmsp.FinishToolCall, "function_call": mmsp.FinishToolCall,
		}.of(word)
	},
}

// chatChoice is the first choice of a chunk if it is that of index 0.
func chatChoice(chunk object) object {
	choices, _ := chunk["choices"].([]any)
	if len(choices) == 0 {
		return nil
	}
	choice, _ := choices[0].(map[string]any)
	if *orZero(object(choice).int("index")) != 0 {
		return nil
	}
	return choice
}

var responses = protocol{
	frame: dataFrame,
	terminal: func(event object) bool {
		return event.string("type") == "response.completed" || event.string("type") == "response.incomplete"
	},
	failed: func(event object) bool {
		return slices.Contains([]string{"error", "response.error", "response.failed"}, event.string("type"))
	},
	marks: []string{"completed", "incomplete", "status"},
	whole: `"output"`,
	finish: func(word, incomplete string) mmsp.FinishReason {
		if word == "queued" || word == "in_progress" { // not ended
			return ""
		}
		return words{
			"completed": mmsp.FinishStop, "complete": mmsp.FinishStop, // as one gateway spells it
			"incomplete": mmsp.FinishLength, "incomplete max_output_tokens": mmsp.FinishLength,
		}.of(strings.TrimSpace(word + " " + incomplete))
	},
}

var messages = protocol{
	frame: func(data []byte) []byte {
		_, rest, _ := bytes.Cut(data, []byte(`"type":"`))
		name, _, _ := bytes.Cut(rest, []byte(`"`))
		return slices.Concat([]byte("event: "), name, []byte("\n"), dataFrame(data))
	},
	terminal: func(event object) bool {
		delta, _ := event["delta"].(map[string]any)
		return event.string("type") == "message_stop" ||
			event.string("type") == "message_delta" && object(delta).string("stop_reason") != ""
	},
	failed: func(event object) bool { return event.string("type") == "error" },
	marks:  []string{"message_stop", "stop_reason"},
	finish: func(word, _ string) mmsp.FinishReason {
		return words{
			"end_turn": mmsp.FinishStop, "stop_sequence": mmsp.FinishStop,
			"max_tokens": mmsp.FinishLength, "tool_use": mmsp.FinishToolCall,
		}.of(word)
	},
}

// embeddings come in one piece, of which no neutral expectation says anything.
var embeddings = protocol{
	frame:    dataFrame,
	terminal: func(object) bool { return false },
	failed:   func(answer object) bool { return answer["error"] != nil },
	marks:    []string{"data"},
}

var generateContent = protocol{
	frame: dataFrame,
	terminal: func(chunk object) bool {
		candidates, _ := chunk["candidates"].([]any)
		feedback, _ := chunk["promptFeedback"].(map[string]any)
		if len(candidates) == 0 {
			return object(feedback).string("blockReason") != ""
		}
		candidate, _ := candidates[0].(map[string]any)
		return object(candidate).string("finishReason") != ""
	},
	failed: func(chunk object) bool { return chunk["error"] != nil },
	marks:  []string{"finishReason", "blockReason"},
	finish: func(word, _ string) mmsp.FinishReason {
		return words{"STOP": mmsp.FinishStop, "MAX_TOKENS": mmsp.FinishLength}.of(word)
	},
}

var interactions = protocol{
	frame: func(data []byte) []byte {
		_, rest, _ := bytes.Cut(data, []byte(`"event_type":"`))
		name, _, _ := bytes.Cut(rest, []byte(`"`))
		return slices.Concat([]byte("event: "), name, []byte("\n"), dataFrame(data))
	},
	terminal: func(event object) bool { return event.string("event_type") == "interaction.completed" },
	failed:   func(event object) bool { return event.string("event_type") == "error" && event["error"] != nil },
	marks:    []string{"interaction.completed", "status"},
	finish: func(word, _ string) mmsp.FinishReason {
		return words{
			"completed": mmsp.FinishStop, "requires_action": mmsp.FinishToolCall, "incomplete": mmsp.FinishLength,
		}.of(word)
	},
}

type words map[string]mmsp.FinishReason

func (w words) of(word string) mmsp.FinishReason {
	if reason, ok := w[word]; ok {
		return reason
	}
	return mmsp.FinishUnknown
}

// usageFormula computes the usage of a recording from the provider's own counts. nil: there is none.
type usageFormula func(*recording) *mmsp.Usage

func chatUsage(r *recording) *mmsp.Usage {
	u := r.expected.Usage
	cached, thoughts := u.int("prompt_tokens_details", "cached_tokens"), u.int("completion_tokens_details", "reasoning_tokens")
	return &mmsp.Usage{
		CachedTokens: cached, PromptTokens: minus(u.int("prompt_tokens"), cached),
		ThoughtsTokens: thoughts, ResponseTokens: positiveMinus(u.int("completion_tokens"), thoughts),
	}
}

func responsesUsage(r *recording) *mmsp.Usage {
	u := r.expected.Usage
	if u == nil {
		return &mmsp.Usage{}
	}
	cached, thoughts := orZero(u.int("input_tokens_details", "cached_tokens")), orZero(u.int("output_tokens_details", "reasoning_tokens"))
	return &mmsp.Usage{
		CachedTokens: cached, PromptTokens: minus(u.int("input_tokens"), cached),
		ThoughtsTokens: thoughts, ResponseTokens: positiveMinus(u.int("output_tokens"), thoughts),
	}
}

// responsesUsageRequired is responsesUsage for a client to which a response without usage is incomplete.
func responsesUsageRequired(r *recording) *mmsp.Usage {
	if r.expected.Usage == nil {
		return nil
	}
	return responsesUsage(r)
}

// messagesInputUsage is what a message_start, or a message_delta of a gateway, says of the input.
func messagesInputUsage(u object) (cached, prompt *int64) {
	if prompt = u.int("input_tokens"); prompt != nil {
		prompt = new(*prompt + *orZero(u.int("cache_creation_input_tokens")))
	}
	return u.int("cache_read_input_tokens"), prompt
}

// messagesUsageOf returns the usage of the message_start and of the last message_delta; a whole answer has one usage.
func messagesUsageOf(r *recording) (start, delta object) {
	if !r.stream {
		return r.expected.Usage, r.expected.Usage
	}
	for _, event := range r.events {
		switch event.string("type") {
		case "message_start":
			message, _ := event.object["message"].(map[string]any)
			start, _ = message["usage"].(map[string]any)
		case "message_delta":
			if usage, ok := event.object["usage"].(map[string]any); ok {
				delta = usage
			}
		}
	}
	return start, delta
}

// anthropicUsage: the input side of the start, the output side of the end, thinking not told apart.
func anthropicUsage(r *recording) *mmsp.Usage {
	start, delta := messagesUsageOf(r)
	if start == nil && delta == nil {
		return nil
	}
	u := &mmsp.Usage{ResponseTokens: delta.int("output_tokens")}
	u.CachedTokens, u.PromptTokens = messagesInputUsage(start)
	return u
}

// messagesUsage: gateways give the real input counts only at the end, and some tell thinking apart.
func messagesUsage(r *recording) *mmsp.Usage {
	start, delta := messagesUsageOf(r)
	if start == nil && delta == nil {
		return nil
	}
	u := &mmsp.Usage{ThoughtsTokens: delta.int("output_tokens_details", "thinking_tokens")}
	u.ResponseTokens = positiveMinus(delta.int("output_tokens"), u.ThoughtsTokens)
	u.CachedTokens, u.PromptTokens = messagesInputUsage(start)
	cached, prompt := messagesInputUsage(delta)
	if cached != nil {
		u.CachedTokens = cached
	}
	if prompt != nil {
		u.PromptTokens = prompt
	}
	return u
}

// generateContentUsage: a count of zero is none, and without the prompt's there are no counts.
func generateContentUsage(r *recording) *mmsp.Usage {
	u := r.expected.Usage
	if u.int("promptTokenCount") == nil {
		return &mmsp.Usage{}
	}
	some := func(name string) *int64 {
		if n := u.int(name); n != nil && *n > 0 {
			return n
		}
		return nil
	}
	return &mmsp.Usage{
		CachedTokens: some("cachedContentTokenCount"), PromptTokens: minus(u.int("promptTokenCount"), u.int("cachedContentTokenCount")),
		ThoughtsTokens: some("thoughtsTokenCount"), ResponseTokens: some("candidatesTokenCount"),
	}
}

// interactionsUsage: thoughts are not in the output, and zeros are not reported.
func interactionsUsage(r *recording) *mmsp.Usage {
	u := r.expected.Usage
	if u == nil {
		return nil
	}
	reported := func(name string) *int64 {
		if n := u.int(name); n != nil && *n != 0 {
			return n
		}
		return nil
	}
	return &mmsp.Usage{
		CachedTokens: reported("total_cached_tokens"), PromptTokens: minus(orZero(u.int("total_input_tokens")), u.int("total_cached_tokens")),
		ThoughtsTokens: reported("total_thought_tokens"), ResponseTokens: reported("total_output_tokens"),
	}
}

func orZero(n *int64) *int64 {
	if n == nil {
		return new(int64)
	}
	return n
}

func minus(n, part *int64) *int64 {
	if n == nil {
		return nil
	}
	return new(*n - *orZero(part))
}

// positiveMinus: where the difference is negative, the part was not in the sum.
func positiveMinus(n, part *int64) *int64 {
	if difference := minus(n, part); difference == nil || *difference >= 0 {
		return difference
	}
	return n
}
