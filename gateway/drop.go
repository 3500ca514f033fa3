package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/ingress"
	"github.com/prism-shadow/mmsp-go/internal/carry"
	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// letGo takes a parameter that the provider's client refused out of the config, or puts the nearest that a provider may
// take in its place, and says what the caller asked for in vain. It is not ok for what no answer is right without.
func letGo(config *mmsp.Config, parameter string, r *row) (dropped string, ok bool) {
	switch parameter {
	case "max_tokens": // none
		if config.MaxTokens == nil || *config.MaxTokens != 0 {
			return "", false
		}
		config.MaxTokens = new(int64(1))
	case "temperature":
		config.Temperature = nil
	case "top_p":
		config.TopP = nil
	case "top_k":
		config.TopK = nil
	case "stop_sequences":
		config.StopSequences = nil
	case "seed":
		config.Seed = nil
	case "presence_penalty":
		config.PresencePenalty = nil
	case "frequency_penalty":
		config.FrequencyPenalty = nil
	case "parallel_tool_calls":
		config.ParallelToolCalls = nil
	case "thinking_level":
		config.ThinkingLevel, config.ThinkingBudget = "", nil
	case "thinking_budget":
		config.ThinkingBudget = nil
	case "thinking_summary":
		config.ThinkingSummary = nil
	case "verbosity":
		config.Verbosity = ""
	case "service_tier":
		config.ServiceTier = ""
	case "fast_mode":
		config.FastMode = false
	case "prompt_caching":
		config.PromptCaching = ""
	case "image_config":
		config.ImageConfig = nil
	case "response_format": // JSON of any kind is no nearer: without a word of it in the prompt some models do not end
		config.ResponseFormat = nil
	case "tool_choice":
		choice := config.ToolChoice
		switch {
		case choice == nil:
			return "", false
		case r.peer.Protocol == carry.Messages && thinks(config) && r.takes(&mmsp.Config{Tools: config.Tools, ToolChoice: choice}):
			// The model cannot do both, and a caller that forces a call acts on nothing else.
			config.ThinkingLevel, config.ThinkingBudget, config.ThinkingSummary = "", nil, nil
			return "thinking_level", true
		case len(choice.Names) > 0:
			// Nothing is lost where those are the only tools: the model is as bound as it was.
			names := choice.Names
			config.Tools = slices.DeleteFunc(slices.Clone(config.Tools), func(t mmsp.Tool) bool { return !slices.Contains(names, t.Name) })
			config.ToolChoice = &mmsp.ToolChoice{Mode: mmsp.ToolChoiceRequired}
			return "", true
		case choice.Mode == mmsp.ToolChoiceRequired:
			config.ToolChoice = &mmsp.ToolChoice{Mode: mmsp.ToolChoiceAuto}
			return "tool_choice required", true
		}
		config.ToolChoice = nil
		if choice.Mode == mmsp.ToolChoiceNone { // which is as much as no tools
			config.Tools = nil
			return "", true
		}
	default:
		return "", false
	}
	return parameter, true
}

// leastTokens is the least max_tokens that a protocol takes.
func leastTokens(protocol carry.Protocol) int64 {
	switch protocol {
	case carry.Messages:
		return 0 // for the cache alone
	case carry.Responses:
		return 16 // at OpenAI
	}
	return 1
}

// fit puts the nearest in place of what the provider would refuse, takes out what its client would pass over, and names both.
func fit(request *ingress.Request, r *row) (dropped []string) {
	config := &request.Config
	if least := leastTokens(r.peer.Protocol); config.MaxTokens != nil && *config.MaxTokens < least {
		config.MaxTokens = &least
		dropped = append(dropped, "max_tokens")
	}
	// Callers of other protocols have twice of it. Endpoints that would take more are not told from those that refuse it.
	if r.peer.Protocol == carry.Messages && config.Temperature != nil && *config.Temperature > 1 {
		config.Temperature = new(1.0)
		dropped = append(dropped, "temperature")
	}
	if config.EffectiveThinkingLevel() != "" && !r.asks(&mmsp.Config{ThinkingLevel: mmsp.ThinkingHigh}) {
		config.ThinkingLevel, config.ThinkingBudget = "", nil
		dropped = append(dropped, "thinking_level")
	}
	// Other protocols cache by themselves. Callers have no word for it but that of Messages.
	if r.peer.Protocol == carry.Messages && config.PromptCaching != "" && !r.asks(&mmsp.Config{PromptCaching: mmsp.CachingDisable}) {
		config.PromptCaching = ""
		dropped = append(dropped, "cache_control")
	}
	// Callers of Chat's older form can take one call of a turn.
	if one := new(false); request.OneCall && r.takes(&mmsp.Config{Tools: config.Tools, ParallelToolCalls: one}) {
		config.ParallelToolCalls = one
	}
	// Only Google's models take back what a model has drawn.
	if !r.peer.TakesDrawn() {
		for m := range request.Messages {
			for i := range request.Messages[m].ContentItems {
				if kind := request.Messages[m].ContentItems[i].Type; request.Messages[m].Role == mmsp.RoleAssistant && drawn(kind) {
					dropped = append(dropped, request.Paths[m][i]+" ("+kind.Kind()+")")
				}
			}
		}
	}
	// Others read the text of a result, and not that the tool failed.
	switch r.peer.Protocol {
	case carry.Messages, carry.GenerateContent, carry.Interactions, carry.MMSP:
	default:
		for m := range request.Messages {
			for i := range request.Messages[m].ContentItems {
				if request.Messages[m].ContentItems[i].IsError {
					dropped = append(dropped, request.Paths[m][i]+" (is_error)")
				}
			}
		}
	}
	return dropped
}

// cool takes out the sampling that endpoints of Messages refuse beside thinking, all but a top_p near 1, and names it.
func cool(config *mmsp.Config, r *row) (dropped []string) {
	if r.peer.Protocol != carry.Messages || !thinks(config) {
		return nil
	}
	for _, p := range []struct {
		name    string
		refused bool
	}{
		{"temperature", config.Temperature != nil && *config.Temperature != 1},
		{"top_p", config.TopP != nil && *config.TopP < 0.95},
		{"top_k", config.TopK != nil},
	} {
		if p.refused {
			letGo(config, p.name, r)
			dropped = append(dropped, p.name)
		}
	}
	return dropped
}

// drawn reports whether an item of a model's own is a picture or a sound.
func drawn(kind mmsp.ItemType) bool {
	return kind == mmsp.InlineDataDone || kind == mmsp.InlineThinkingDone
}

// fitTools says to a provider what the caller's protocol takes for granted of a tool: that its arguments are an object, which
// others want to read, and that it is not strict, which is the other way round in Responses.
func fitTools(tools []mmsp.Tool, from, to carry.Protocol) {
	for i := range tools {
		tool := &tools[i]
		if to == carry.Messages || to == carry.Responses {
			tool.Parameters = typed(tool.Parameters)
		}
		if to == carry.Responses && from != to && tool.Strict == nil {
			tool.Strict = new(false)
		}
	}
}

// typed returns a schema of arguments with the type that it has in any case.
func typed(schema json.RawMessage) json.RawMessage {
	inside, object := bytes.CutPrefix(bytes.TrimSpace(schema), []byte("{"))
	inside = bytes.TrimSpace(inside)
	switch {
	case len(schema) == 0: // no arguments
		return json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)
	case object && string(inside) == "}": // any
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	var s jsonscan.Scanner
	s.Reset(schema)
	for first := true; s.Field(&first); s.Skip() {
		if string(s.Name()) == "type" {
			return schema
		}
	}
	if !object {
		return schema
	}
	return append([]byte(`{"type":"object",`), inside...)
}

// asks reports whether the row's client asks for what a config says, which is whether its request is another without it.
func (r *row) asks(config *mmsp.Config) bool {
	with, err := r.tries(context.Background(), config)
	without, _ := r.tries(context.Background(), &mmsp.Config{})
	return err == nil && !bytes.Equal(with, without)
}

// takes reports whether the row's client refuses nothing of a config.
func (r *row) takes(config *mmsp.Config) bool {
	_, err := r.tries(context.Background(), config)
	return err == nil
}

// tries returns what the row's client would send of a config. What is long to write is left out: it is not what clients
// refuse parameters for.
func (r *row) tries(ctx context.Context, config *mmsp.Config) ([]byte, error) {
	light := *config
	light.SystemPrompt, light.Tools = nil, slices.Clone(config.Tools)
	for i := range light.Tools {
		light.Tools[i].Description, light.Tools[i].Parameters = "", nil
	}
	request, err := r.client.Provider().Prepare(ctx, []mmsp.Message{mmsp.UserMessage(mmsp.Text("hi"))}, &light)
	if err != nil {
		return nil, err
	}
	return request.Body, nil
}

// thinks reports whether the config asks for thinking.
func thinks(config *mmsp.Config) bool {
	level := config.EffectiveThinkingLevel()
	return level != "" && level != mmsp.ThinkingNone || config.ThinkingSummary != nil && level != mmsp.ThinkingNone
}
