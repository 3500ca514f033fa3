package chat

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/ingress"
	"github.com/prism-shadow/mmsp-go/internal/carry"
	"github.com/prism-shadow/mmsp-go/internal/images"
	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
	"github.com/prism-shadow/mmsp-go/wire/openaichat"
)

// read turns a body into MMSP's terms.
func read(ctx context.Context, body *openaichat.Body, env *ingress.Env) (*ingress.Request, error) {
	request := &ingress.Request{Params: params, OneCall: len(body.Functions) > 0 && len(body.Tools) == 0}
	if err := readConfig(body, request); err != nil {
		return nil, err
	}
	switch {
	case body.AsksPictures == "":
	case env.Asks(&mmsp.Config{ImageConfig: &mmsp.ImageConfig{}}):
		request.Config.ImageConfig = &mmsp.ImageConfig{}
	default:
		request.Dropped = append(request.Dropped, body.AsksPictures+" (image)")
	}
	var conversation ingress.Conversation
	var calls callsSoFar
	for i := range body.Messages {
		turn := &body.Messages[i]
		at := fmt.Sprintf("messages[%d]", i)
		switch turn.Role {
		case "system", "developer":
			for p := range turn.Parts {
				conversation.System(turn.Parts[p].Text)
			}
		case "user":
			for p := range turn.Parts {
				item, err := readUserPart(ctx, &turn.Parts[p], env)
				if err != nil {
					return nil, err
				}
				if item.Type != mmsp.TextDone || item.Text != "" {
					conversation.Add(mmsp.RoleUser, cmp.Or(turn.Parts[p].Place, turn.Parts[p].Path), item)
				}
			}
		case "assistant":
			items, err := readAssistant(turn, i, env, &calls, request)
			if err != nil {
				return nil, err
			}
			for _, p := range items {
				conversation.Add(mmsp.RoleAssistant, p.path, p.item)
			}
		case "tool":
			if !calls.ids[turn.ToolCallID] {
				return nil, ingress.Invalid(at+".tool_call_id", fmt.Sprintf("no call before it has the id %.64q", turn.ToolCallID))
			}
			if err := readResult(ctx, turn.ToolCallID, turn.Parts, env, &conversation, at); err != nil {
				return nil, err
			}
		case "function":
			id := calls.functions[turn.Name]
			if id == "" {
				return nil, ingress.Invalid(at+".name", fmt.Sprintf("no function_call before it calls %.64q", turn.Name))
			}
			if err := readResult(ctx, id, turn.Parts, env, &conversation, at); err != nil {
				return nil, err
			}
		}
	}
	request.Messages, request.Paths, request.Pictures, request.Invented = conversation.Messages, conversation.Paths, conversation.Pictures, calls.invented
	request.Config.SystemPrompt = conversation.SystemPrompt()
	if len(request.Messages) == 0 && request.Config.SystemPrompt == nil {
		return nil, ingress.Invalid("messages", "a message with content is wanted")
	}
	return request, nil
}

// callsSoFar are the calls of the turns before a result.
type callsSoFar struct {
	ids       map[string]bool
	functions map[string]string // the id of the last call of a function in the older form,
	invented  map[string]bool   // which the body does not say
}

func readUserPart(ctx context.Context, part *openaichat.TurnPart, env *ingress.Env) (mmsp.Item, error) {
	switch part.Type {
	case "image_url":
		url, err := ingress.Picture(part.Place, part.URL)
		if err != nil {
			return mmsp.Item{}, err
		}
		item := mmsp.ImageURL(url)
		item.Detail = part.Detail
		return item, nil
	case "input_audio":
		return mmsp.InlineData(part.Data, map[string]string{"wav": "audio/wav", "mp3": "audio/mpeg"}[part.Format], ""), nil
	case "file":
		file, err := readFile(ctx, part, env)
		if err != nil {
			return mmsp.Item{}, err
		}
		return file.Item(part.Filename), nil
	}
	return mmsp.Text(part.Text), nil
}

// readFile returns a file, whose data URL says its type, or its name does, or its first bytes. Some gateways of the protocol
// take a URL in the place of the bytes.
func readFile(ctx context.Context, part *openaichat.TurnPart, env *ingress.Env) (*ingress.File, error) {
	if part.URL != "" {
		return env.Fetch(ctx, part.Place, part.URL)
	}
	mediaType := part.MimeType
	if !ingress.IsMediaType(mediaType) || mediaType == images.Unknown {
		mediaType = images.TypeOf(part.Filename, part.Data)
	}
	return &ingress.File{Data: part.Data, MediaType: mediaType}, nil
}

// readResult adds what a tool's message at a path says: its texts as one; pictures and documents become its images.
func readResult(ctx context.Context, id string, parts []openaichat.TurnPart, env *ingress.Env, conversation *ingress.Conversation, at string) error {
	var texts, urls []string
	for i := range parts {
		switch part := &parts[i]; part.Type {
		case "image_url":
			url, err := ingress.Picture(part.Place, part.URL)
			if err != nil {
				return err
			}
			urls = append(urls, url)
			conversation.Picture(at, part.Place)
		case "file":
			file, err := readFile(ctx, part, env)
			if err != nil {
				return err
			}
			urls = append(urls, file.DataURL(part.Filename))
			conversation.Picture(at, part.Place)
		default:
			texts = append(texts, part.Text)
		}
	}
	conversation.Add(mmsp.RoleUser, at, mmsp.ToolResult(id, strings.Join(texts, "\n"), urls...))
	return nil
}

// readAssistant returns the items of message i, in the order and with the proofs that they had when they were written.
func readAssistant(turn *openaichat.Turn, i int, env *ingress.Env, calls *callsSoFar, request *ingress.Request) ([]placed, error) {
	peer := env.Peer
	at := fmt.Sprintf("messages[%d]", i)
	thinking := &strand{kind: "thinking", build: mmsp.Thinking}
	thinking.text, thinking.path = turn.ReasoningContent, at+".reasoning_content"
	if thinking.text == "" && turn.Reasoning != "" {
		thinking.text, thinking.path = turn.Reasoning, at+".reasoning"
	}
	text := &strand{kind: "text", path: at + ".content", build: mmsp.Text}
	refusal := &strand{kind: "refusal", path: at + ".refusal", build: mmsp.Text}
	pictures := &strand{kind: "inline_data"}
	called := &strand{kind: "tool_call"}

	thinking.items = readThinking(turn, thinking, at, peer)
	said := map[*strand][]string{}
	for p := range turn.Parts {
		part := &turn.Parts[p]
		if part.Text == "" {
			continue
		}
		item := mmsp.Text(part.Text)
		s := text
		if part.Type == "refusal" {
			s, item.Fidelity = refusal, refusalMark
		}
		said[s] = append(said[s], part.Text)
		s.items = append(s.items, placed{part.Path, item})
	}
	text.text, refusal.text = strings.Join(said[text], ""), strings.Join(said[refusal], "")
	for p := range turn.Pictures { // of the model's own
		picture := &turn.Pictures[p]
		mediaType, data, ok := ingress.ReadDataURL(picture.URL)
		switch {
		case ok:
			pictures.items = append(pictures.items, placed{picture.Place, mmsp.InlineData(data, mediaType, "")})
		case peer.TakesDrawn():
			return nil, ingress.Invalid(picture.Place, "a data URL with a media type and base64 is wanted")
		default: // who takes none does not miss it: callers trim what is long
			request.Dropped = append(request.Dropped, picture.Place+" (inline_data)")
		}
	}
	if turn.FunctionCall != nil {
		// The older form has no ids: each turn has at most one call, whose number names it.
		id := fmt.Sprintf("fcall_%d", i)
		if calls.functions == nil {
			calls.functions, calls.invented = map[string]string{}, map[string]bool{}
		}
		calls.invented[id] = true
		calls.functions[turn.FunctionCall.Name] = id
		called.items = append(called.items, placed{at + ".function_call", mmsp.ToolCall(id, turn.FunctionCall.Name, turn.FunctionCall.Arguments)})
	}
	for n := range turn.ToolCalls {
		call := &turn.ToolCalls[n]
		if calls.ids == nil {
			calls.ids = map[string]bool{}
		}
		calls.ids[call.ID] = true
		arguments := call.Arguments
		if call.Custom {
			arguments = string(append(jsonscan.AppendString([]byte(`{"input":`), call.Input), '}'))
		}
		item := mmsp.ToolCall(call.ID, call.Name, arguments)
		if e, ok := env.Restore(carry.Chat, call.ThoughtSignature); ok && e.Kind == "tool_call" {
			item.Fidelity = e.Fidelity
		}
		called.items = append(called.items, placed{call.Path, item})
	}
	return weave([]*strand{thinking, text, refusal, pictures, called}, unseal(turn.ReasoningDetails)), nil
}

// readThinking returns the thinking of a turn as the body has it. Where the provider speaks the protocol, the details are
// its own, and the field that the text came in is the one that it goes back in.
func readThinking(turn *openaichat.Turn, s *strand, at string, peer carry.Peer) (items []placed) {
	plain := mmsp.Thinking(s.text)
	if peer.Protocol != carry.Chat {
		if s.text != "" {
			items = append(items, placed{s.path, plain})
		}
		return items
	}
	switch {
	case turn.ReasoningContent == "":
		plain.Fidelity = mmsp.Fidelity(`{"reasoning_field":"reasoning"}`)
	case turn.Reasoning == "": // else both are wanted
		plain.Fidelity = mmsp.Fidelity(`{"reasoning_field":"reasoning_content"}`)
	}
	details := joinDetails(turn.ReasoningDetails)
	said := slices.ContainsFunc(details, func(d openaichat.ReasoningDetail) bool { return d.Said() != "" })
	if s.text != "" && !said {
		items = append(items, placed{s.path, plain})
	}
	for _, d := range details {
		item := mmsp.Thinking(d.Said())
		d.Text, d.Summary = "", ""
		item.Fidelity = encodeDetail(&d)
		items = append(items, placed{at + ".reasoning_details", item})
	}
	return items
}

// joinDetails joins the pieces of details that a caller gathered from a stream, and leaves out what is not the provider's.
func joinDetails(details []openaichat.ReasoningDetail) (joined []openaichat.ReasoningDetail) {
	var texts, summaries []string // of the last of them
	finish := func() {
		if last := len(joined) - 1; last >= 0 {
			joined[last].Text, joined[last].Summary = strings.Join(texts, ""), strings.Join(summaries, "")
		}
		texts, summaries = texts[:0], summaries[:0]
	}
	for _, d := range details {
		if carry.Sealed(d.Data) || carry.Sealed(d.Signature) {
			continue
		}
		if last := len(joined) - 1; last >= 0 {
			l := &joined[last]
			sameIndex := l.Index == d.Index || l.Index != nil && d.Index != nil && *l.Index == *d.Index
			if sameIndex && l.Type == d.Type && l.Format == d.Format && (d.ID == "" || d.ID == l.ID) && !l.Bound() && d.Data == "" {
				texts, summaries = append(texts, d.Text), append(summaries, d.Summary)
				l.Signature = d.Signature
				continue
			}
		}
		finish()
		texts, summaries = append(texts, d.Text), append(summaries, d.Summary)
		joined = append(joined, d)
	}
	finish()
	return joined
}

var params = map[string]string{
	"stop_sequences": "stop", "thinking_level": "reasoning_effort", "thinking_summary": "reasoning_effort",
}

// readConfig reads everything but the messages.
func readConfig(body *openaichat.Body, request *ingress.Request) error {
	config := &request.Config
	config.MaxTokens = body.MaxTokens
	config.Temperature, config.TopP = body.Temperature, body.TopP
	config.PresencePenalty, config.FrequencyPenalty = body.PresencePenalty, body.FrequencyPenalty
	config.StopSequences, config.Seed = body.Stop, body.Seed
	config.ParallelToolCalls = body.ParallelToolCalls
	config.ThinkingLevel = mmsp.ThinkingLevel(body.ReasoningEffort)
	if body.ReasoningEffort == "minimal" {
		config.ThinkingLevel = mmsp.ThinkingLow
		request.Dropped = append(request.Dropped, "reasoning_effort (minimal)")
	}
	if config.ThinkingLevel != "" && config.ThinkingLevel != mmsp.ThinkingNone {
		config.ThinkingSummary = new(true) // the protocol has no word for it, and callers read reasoning_content
	}
	config.Verbosity = mmsp.Verbosity(body.Verbosity)
	if body.ServiceTier != "auto" && body.ServiceTier != "default" {
		config.ServiceTier = body.ServiceTier
	}
	config.PromptCacheKey, config.User, config.Metadata = body.PromptCacheKey, body.User, body.Metadata
	if config.User == "" {
		config.User = body.SafetyIdentifier
	}
	if f := body.ResponseFormat; f != nil {
		config.ResponseFormat = &mmsp.ResponseFormat{Type: f.Type}
		if s := f.JSONSchema; s != nil && f.Type == mmsp.FormatJSONSchema {
			config.ResponseFormat = &mmsp.ResponseFormat{Type: f.Type, Name: s.Name, Description: s.Description, Schema: s.Schema, Strict: s.Strict}
		}
	}
	request.Dropped, request.Unknown = append(request.Dropped, body.Unserved...), body.Unknown

	named := map[string]bool{}
	for _, list := range [][]openaichat.ToolSpec{body.Tools, body.Functions} {
		for i := range list {
			tool := &list[i]
			if tool.Name != "" && named[tool.Name] {
				return ingress.Invalid(tool.NamePath, fmt.Sprintf("two tools are called %.64q", tool.Name))
			}
			named[tool.Name] = true
			switch tool.Type {
			case "function":
				config.Tools = append(config.Tools, mmsp.Tool{Name: tool.Name, Description: tool.Description, Parameters: tool.Parameters, Strict: tool.Strict})
			case "custom":
				config.Tools = append(config.Tools, ingress.CustomTool(tool.Name, tool.Description, tool.Syntax, tool.Definition))
				if tool.Definition != "" {
					request.Dropped = append(request.Dropped, tool.Path+".custom.format (grammar)")
				}
			default:
				request.Dropped = append(request.Dropped, fmt.Sprintf("%s (%.64s)", tool.Path, tool.Type))
				continue
			}
			request.ToolPaths = append(request.ToolPaths, tool.Path)
		}
	}
	choice := body.ToolChoice
	if choice == nil {
		choice = body.FunctionCall
	}
	return readToolChoice(choice, request)
}

func readToolChoice(choice *openaichat.ToolSelection, request *ingress.Request) error {
	config := &request.Config
	switch {
	case choice == nil:
		return nil
	case len(config.Tools) == 0 && choice.Mode == "required":
		return ingress.Invalid(choice.Path, "there is no tool to call")
	case len(config.Tools) == 0:
		return nil
	}
	declared := map[string]bool{}
	for i := range config.Tools {
		declared[config.Tools[i].Name] = true
	}
	var names []string
	for _, tool := range choice.Tools {
		if !declared[tool.Name] {
			return ingress.Invalid(tool.Path, fmt.Sprintf("no tool has the name %.64q", tool.Name))
		}
		names = append(names, tool.Name)
	}
	if choice.Listed {
		request.Allowed = names
	}
	switch {
	case len(names) == 0 || choice.Listed && choice.Mode == "auto":
		config.ToolChoice = &mmsp.ToolChoice{Mode: choice.Mode}
	default:
		config.ToolChoice = &mmsp.ToolChoice{Names: names}
	}
	if choice.Listed && choice.Mode == "auto" {
		request.KeepTools(names) // no provider but one takes such a list
	}
	return nil
}
