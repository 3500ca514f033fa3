// Package openaichatvllmadapter is the client type "openai-chat-vllm-adapter": openai-chat for a vLLM server, which
// takes the thinking level in the words of the chat template of each model.
package openaichatvllmadapter

import (
	"strings"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/clients/openai_chat"
	wire "github.com/prism-shadow/mmsp-go/wire/openaichat"
)

const class = "OpenaiChatVllmAdapterClient"

// Client speaks Chat Completions to a vLLM server for one model.
type Client struct {
	*openaichat.Client
}

// New reads the key and the endpoint from the options or OPENAI_API_KEY and OPENAI_BASE_URL.
func New(o mmsp.Options) (*Client, error) {
	base, err := openaichat.NewAdapter(o, class, func(request *wire.Request, config *mmsp.Config) {
		request.TopK = config.TopK
		if level := config.EffectiveThinkingLevel(); level != "" {
			request.ChatTemplateKwargs = templateKwargs(o.Model, level)
		}
	})
	if err != nil {
		return nil, err
	}
	return &Client{base}, nil
}

// kwargs are what a chat template takes for each level; a level that is not there says nothing.
type kwargs map[mmsp.ThinkingLevel]*wire.ChatTemplateKwargs

func enabled(on bool) *wire.ChatTemplateKwargs {
	return &wire.ChatTemplateKwargs{EnableThinking: &on}
}

func effort(word string) *wire.ChatTemplateKwargs {
	return &wire.ChatTemplateKwargs{ReasoningEffort: word}
}

func thinking(word string) *wire.ChatTemplateKwargs {
	return &wire.ChatTemplateKwargs{Thinking: true, ReasoningEffort: word}
}

var (
	// A template that only switches. Qwen3.5-0.8B thinks only when told so, so that it is always told.
	toggle = kwargs{
		mmsp.ThinkingNone: enabled(false), mmsp.ThinkingLow: enabled(true), mmsp.ThinkingMedium: enabled(true),
		mmsp.ThinkingHigh: enabled(true), mmsp.ThinkingXHigh: enabled(true), mmsp.ThinkingMax: enabled(true),
	}
	// Qwen3.8 knows low, medium and xhigh, and fails at any other word.
	qwen38 = kwargs{
		mmsp.ThinkingNone: enabled(false), mmsp.ThinkingLow: effort("low"), mmsp.ThinkingMedium: effort("medium"),
		mmsp.ThinkingHigh: effort("xhigh"), mmsp.ThinkingXHigh: effort("xhigh"), mmsp.ThinkingMax: effort("xhigh"),
	}
	// DeepSeek V4 knows high and max, its vision model low too. None of them thinks unless told so.
	deepseekV4 = kwargs{
		mmsp.ThinkingLow: thinking("high"), mmsp.ThinkingMedium: thinking("high"), mmsp.ThinkingHigh: thinking("high"),
		mmsp.ThinkingXHigh: thinking("high"), mmsp.ThinkingMax: thinking("max"),
	}
	deepseekV4Vision = kwargs{
		mmsp.ThinkingLow: thinking("low"), mmsp.ThinkingMedium: thinking("high"), mmsp.ThinkingHigh: thinking("high"),
		mmsp.ThinkingXHigh: thinking("high"), mmsp.ThinkingMax: thinking("max"),
	}
)

// templates are the chat templates of models by a part of the lower-case model id. The first that fits counts.
var templates = []struct {
	part   string
	kwargs kwargs
}{
	{"qwen3.8-flash-next", qwen38},
	{"qwen3.8-27b", qwen38},
	{"qwen3.6-35b-a3b", toggle},
	{"qwen3.5-0.8b", toggle},
	{"qwen3.5-9b", toggle},
	{"deepseek-v4-flash-vision-exp", deepseekV4Vision},
	{"deepseek-v4-pro", deepseekV4},
	{"deepseek-v4-flash", deepseekV4},
}

// templateKwargs says the level in the words of the model's template, nil where nothing says it.
func templateKwargs(model string, level mmsp.ThinkingLevel) *wire.ChatTemplateKwargs {
	model = strings.ToLower(model)
	for _, t := range templates {
		if strings.Contains(model, t.part) {
			return t.kwargs[level]
		}
	}
	return toggle[level]
}
