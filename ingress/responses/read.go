package responses

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/ingress"
	"github.com/prism-shadow/mmsp-go/internal/carry"
	"github.com/prism-shadow/mmsp-go/internal/images"
	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
	"github.com/prism-shadow/mmsp-go/wire/openairesponses"
)

// declared is a tool as the caller knows it. The model knows it under a name of one word.
type declared struct {
	namespace, name string
	custom          bool // it takes any text: for the model, a function with one string
}

// reading is the state of turning one body into a request.
type reading struct {
	*call
	ctx      context.Context
	request  *ingress.Request
	talk     ingress.Conversation
	flat     map[[2]string]string // namespace and name → the name that the model knows
	inner    map[string]string    // name of a tool in a group → the name that the model knows; empty: groups share it
	places   map[string]int       // of the tools by the name that the model knows
	kept     map[string]*keptItem // by their ids, as far as they are read
	recalled int                  // bytes of the records that are read
	next     *carry.Envelope      // the proof of the assistant's next item
	calls    map[string]bool      // ids of the calls in the conversation
	results  []openairesponses.BodyItem
}

// Read turns the request into MMSP's terms.
func (c *call) Read(ctx context.Context, env *ingress.Env) (*ingress.Request, error) {
	c.env = env
	r := &reading{call: c, ctx: ctx, request: &ingress.Request{Params: params}, kept: map[string]*keptItem{}, calls: map[string]bool{}}
	if c.body.Instructions != nil {
		r.talk.System(*c.body.Instructions)
	}
	if c.body.PreviousResponseID != "" {
		if err := r.previous(c.body.PreviousResponseID); err != nil {
			return nil, err
		}
	}
	if err := r.readTools(); err != nil {
		return nil, err
	}
	before, beginning := len(r.talk.Messages), 0
	if before > 0 {
		beginning = len(r.talk.Messages[before-1].ContentItems)
	}
	for i := range c.body.Input {
		if err := r.item(&c.body.Input[i]); err != nil {
			return nil, err
		}
	}
	for i := range r.results {
		if result := &r.results[i]; !r.calls[result.CallID] {
			return nil, ingress.Invalid(result.Path+".call_id", "No tool call found for function call output with call_id "+result.CallID+".")
		}
	}
	if len(r.talk.Messages) == 0 {
		return nil, ingress.Invalid("input", "the input holds nothing to answer")
	}

	// What is new is kept as it stands now: the request is the gateway's to change.
	for m := max(before-1, 0); m < len(r.talk.Messages); m++ {
		message := r.talk.Messages[m]
		if m == before-1 {
			message.ContentItems = message.ContentItems[beginning:]
		}
		if len(message.ContentItems) > 0 {
			message.ContentItems = slices.Clone(message.ContentItems)
			c.messages = append(c.messages, message)
		}
	}

	r.request.Messages, r.request.Paths, r.request.Pictures = r.talk.Messages, r.talk.Paths, r.talk.Pictures
	r.configure(&r.request.Config)
	if err := r.choose(&r.request.Config); err != nil {
		return nil, err
	}
	return r.request, nil
}

var params = map[string]string{
	"max_tokens": "max_output_tokens", "thinking_level": "reasoning.effort", "thinking_summary": "reasoning.summary",
	"response_format": "text.format", "verbosity": "text.verbosity",
}

// configure sets what the body asks for, tools and the choice of them aside.
func (r *reading) configure(config *mmsp.Config) {
	b := r.body
	config.SystemPrompt = r.talk.SystemPrompt()
	config.MaxTokens, config.Temperature, config.TopP = b.MaxOutputTokens, b.Temperature, b.TopP
	config.PresencePenalty, config.FrequencyPenalty = b.PresencePenalty, b.FrequencyPenalty
	config.ThinkingLevel = mmsp.ThinkingLevel(b.Effort)
	if b.Effort == "minimal" {
		config.ThinkingLevel = mmsp.ThinkingLow
		r.drop("reasoning.effort", b.Effort)
	}
	if b.Summary != "" {
		config.ThinkingSummary = new(true)
	}
	if b.Summary == "detailed" { // providers are asked for a summary of the usual length
		r.drop("reasoning.summary", b.Summary)
	}
	switch f := b.Format; {
	case f == nil, f.Type == mmsp.FormatText:
	case f.Type == mmsp.FormatJSONSchema && f.Schema != nil:
		config.ResponseFormat = &mmsp.ResponseFormat{Type: f.Type, Name: f.Name, Schema: f.Schema, Strict: f.Strict}
		if f.Description != nil {
			config.ResponseFormat.Description = *f.Description
		}
	default: // a schema that is not given leaves any object
		config.ResponseFormat = &mmsp.ResponseFormat{Type: mmsp.FormatJSONObject}
	}
	config.Verbosity = mmsp.Verbosity(b.Verbosity)
	if b.ServiceTier != "auto" {
		config.ServiceTier = b.ServiceTier
	}
	if b.PromptCacheKey != nil {
		config.PromptCacheKey = *b.PromptCacheKey
	}
	config.User, config.Metadata = b.User, b.Metadata
	if config.User == "" && b.SafetyIdentifier != nil {
		config.User = *b.SafetyIdentifier
	}
	if b.Truncation == "auto" {
		r.drop("truncation", "auto")
	}
	if b.TopLogprobs != nil && *b.TopLogprobs > 0 {
		r.drop("top_logprobs", fmt.Sprint(*b.TopLogprobs))
	}
	told := map[string]bool{includeProofs: true}
	for _, word := range b.Include {
		if !told[word] {
			told[word] = true
			r.drop("include", fmt.Sprintf("%.64s", word))
		}
	}
	r.request.Dropped, r.request.Unknown = append(r.request.Dropped, b.Unserved...), b.Unknown
}

func (r *reading) drop(path, what string) {
	r.request.Dropped = append(r.request.Dropped, path+" ("+what+")")
}

// readTools declares the tools of the body and of the items that bring more of them, which may declare one anew.
func (r *reading) readTools() error {
	r.tools, r.flat, r.inner, r.places = map[string]declared{}, map[[2]string]string{}, map[string]string{}, map[string]int{}
	numbers := map[string]int{} // of names that are taken
	tools := slices.Clone(r.body.Tools)
	for i := range r.body.Input {
		tools = append(tools, r.body.Input[i].Tools...)
	}
	// Tools outside of groups keep their names.
	for i := range tools {
		if t := &tools[i]; t.Type == "function" || t.Type == "custom" {
			if _, twice := r.flat[[2]string{"", t.Name}]; twice && i < len(r.body.Tools) {
				return ingress.Invalid(t.Path+".name", fmt.Sprintf("two tools are called %q", t.Name))
			}
			r.flat[[2]string{"", t.Name}] = t.Name
			r.tools[t.Name] = declared{name: t.Name, custom: t.Type == "custom"}
		}
	}
	for i := range tools {
		switch t := &tools[i]; t.Type {
		case "function", "custom":
			r.declare(t, t.Name)
		case "namespace":
			for j := range t.Tools {
				inner := &t.Tools[j]
				if inner.Type != "function" && inner.Type != "custom" {
					r.drop(inner.Path, inner.Type)
					continue
				}
				key := [2]string{t.Name, inner.Name}
				name, again := r.flat[key]
				if again && i < len(r.body.Tools) {
					return ingress.Invalid(inner.Path+".name", fmt.Sprintf("two tools of %q are called %q", t.Name, inner.Name))
				}
				if !again {
					flat := flatten(t.Name, inner.Name)
					for name = flat; r.tools[name] != (declared{}); name = fmt.Sprintf("%s_%d", flat, numbers[flat]+1) {
						numbers[flat]++
					}
					r.flat[key] = name
					if _, several := r.inner[inner.Name]; several {
						r.inner[inner.Name] = ""
					} else {
						r.inner[inner.Name] = name
					}
				}
				r.tools[name] = declared{t.Name, inner.Name, inner.Type == "custom"}
				r.declare(inner, name)
			}
		default:
			r.drop(t.Path, t.Type)
		}
	}
	return nil
}

// flatten returns the name that the model knows a tool of a group under.
func flatten(namespace, name string) string { return namespace + "__" + name }

// declare makes a tool of the request, in the place of one of the same name.
func (r *reading) declare(t *openairesponses.BodyTool, name string) {
	tool := mmsp.Tool{Name: name, Parameters: t.Parameters, Strict: t.Strict}
	if t.Description != nil {
		tool.Description = *t.Description
	}
	if t.Type == "custom" {
		tool = ingress.CustomTool(name, tool.Description, t.Syntax, t.Definition)
		if t.Definition != "" {
			r.drop(t.Path+".format", "grammar")
		}
	}
	config := &r.request.Config
	if i, again := r.places[name]; again {
		config.Tools[i], r.request.ToolPaths[i] = tool, t.Path
		return
	}
	r.places[name] = len(config.Tools)
	config.Tools = append(config.Tools, tool)
	r.request.ToolPaths = append(r.request.ToolPaths, t.Path)
}

// choose sets which tools may and must be called.
func (r *reading) choose(config *mmsp.Config) error {
	choice := r.body.ToolChoice
	if choice != nil {
		switch choice.Type {
		case "":
			config.ToolChoice = &mmsp.ToolChoice{Mode: choice.Mode}
		case "allowed_tools":
			if err := r.allow(config, choice); err != nil {
				return err
			}
		default:
			name, err := r.choice(choice)
			if err != nil {
				return err
			}
			config.ToolChoice = &mmsp.ToolChoice{Names: []string{name}}
		}
	}
	if len(config.Tools) > 0 {
		config.ParallelToolCalls = r.body.ParallelToolCalls
		return nil
	}
	// Without tools providers refuse a choice, even of none.
	if config.ToolChoice != nil && config.ToolChoice.Mode == mmsp.ToolChoiceRequired {
		return ingress.Invalid("tool_choice", "a tool is to be called, and there is none that the model could call")
	}
	config.ToolChoice = nil
	return nil
}

func (r *reading) allow(config *mmsp.Config, choice *openairesponses.BodyChoice) error {
	names := []string{}
	for i := range choice.Tools {
		tool := &choice.Tools[i]
		if tool.Type != "function" && tool.Type != "custom" {
			r.drop(tool.Path, tool.Type)
			continue
		}
		name, err := r.choice(tool)
		if err != nil {
			return err
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	switch {
	case choice.Mode == mmsp.ToolChoiceNone:
		config.ToolChoice = &mmsp.ToolChoice{Mode: mmsp.ToolChoiceNone}
		return nil
	case choice.Mode == mmsp.ToolChoiceRequired && len(names) == 0:
		return ingress.Invalid(choice.Path+".tools", "a tool is to be called, and none of these is one that the model could call")
	case choice.Mode == mmsp.ToolChoiceRequired:
		config.ToolChoice = &mmsp.ToolChoice{Names: names}
	default:
		r.request.KeepTools(names)
		config.ToolChoice = &mmsp.ToolChoice{Mode: mmsp.ToolChoiceAuto}
	}
	r.request.Allowed = names
	return nil
}

// choice returns the name that the model knows the chosen tool under. A tool of a group may be named without it.
func (r *reading) choice(choice *openairesponses.BodyChoice) (string, error) {
	if choice.Type != "function" && choice.Type != "custom" {
		return "", ingress.Invalid(choice.Path, fmt.Sprintf("tools of type %.64q cannot be called here", choice.Type))
	}
	if name, ok := r.flat[[2]string{choice.Namespace, choice.Name}]; ok {
		return name, nil
	}
	if _, ok := r.tools[choice.Name]; ok && choice.Namespace == "" {
		return choice.Name, nil
	}
	if name := r.inner[choice.Name]; name != "" && choice.Namespace == "" {
		return name, nil
	}
	return "", ingress.Invalid(choice.Path+".name", fmt.Sprintf("no tool of the request is called %.64q", choice.Name))
}

// item adds an item of the input to the conversation.
func (r *reading) item(i *openairesponses.BodyItem) error {
	switch {
	case i.Foreign:
		r.drop(i.Path, i.Type)
		return nil
	case i.Type == openairesponses.ItemMessage && i.Role == "assistant":
		for p := range i.Content {
			part := &i.Content[p]
			item := mmsp.Text(part.Text)
			fidelity := []byte{}
			if part.Type == openairesponses.PartRefusal {
				fidelity = append(fidelity, `,"refusal":true`...)
			}
			if i.Phase != "" {
				fidelity = jsonscan.AppendString(append(fidelity, `,"phase":`...), i.Phase)
			}
			if len(fidelity) > 0 {
				fidelity[0] = '{'
				item.Fidelity = append(fidelity, '}')
			}
			if part.Text != "" || r.next != nil && r.next.Kind == "text" {
				r.say(part.Path, item)
			}
		}
	case i.Type == openairesponses.ItemMessage && i.Role == "user":
		return r.hear(i)
	case i.Type == openairesponses.ItemMessage:
		for p := range i.Content {
			r.talk.System(i.Content[p].Text)
			r.system = append(r.system, i.Content[p].Text)
		}
	case i.Type == openairesponses.ItemReasoning:
		r.think(i)
	case i.Type == openairesponses.ItemFunctionCall:
		arguments, whole, err := jsonscan.Object(i.Arguments)
		if err != nil {
			return ingress.Invalid(i.Path+".arguments", "the text of a JSON object is wanted: "+err.Error())
		}
		if !whole {
			r.request.Dropped = append(r.request.Dropped, i.Path+".arguments")
		}
		r.say(i.Path, mmsp.ToolCall(i.CallID, r.known(i), arguments))
	case i.Type == openairesponses.ItemCustomToolCall:
		arguments := append(jsonscan.AppendString([]byte(`{"input":`), i.Input), '}')
		r.say(i.Path, mmsp.ToolCall(i.CallID, r.known(i), string(arguments)))
	case i.Type == openairesponses.ItemFunctionCallOutput, i.Type == openairesponses.ItemCustomToolCallOutput:
		r.results = append(r.results, *i)
		return r.result(i)
	case i.Type == openairesponses.ItemReference:
		kept, err := r.find(i.Path+".id", i.ID)
		switch {
		case err != nil:
			return err
		case kept == nil && strings.HasPrefix(i.ID, "rs_"): // reasoning may be missing
		case kept == nil:
			return ingress.Invalid(i.Path+".id", fmt.Sprintf("no item %.128q is kept", i.ID))
		case kept.taken:
			return ingress.Invalid(i.Path+".id", fmt.Sprintf("Duplicate item found with id %.128s. Remove duplicate items from your input and try again.", i.ID))
		default:
			kept.taken = true
			r.recall(i.Path, kept.item)
		}
	case i.Type == openairesponses.ItemImageGenerationCall:
		return r.picture(i)
	}
	return nil
}

// known returns the name that the model knows the tool of a call under.
func (r *reading) known(i *openairesponses.BodyItem) string {
	if name, ok := r.flat[[2]string{i.Namespace, i.Name}]; ok {
		return name
	}
	if i.Namespace != "" {
		return flatten(i.Namespace, i.Name)
	}
	return i.Name
}

// say adds an item to the assistant's turn, with the proof that came before it if that is its own.
func (r *reading) say(path string, item mmsp.Item) {
	if e := r.next; e != nil && owns(e, &item) {
		item.Fidelity = e.Fidelity
	}
	r.next = nil
	if item.Type == mmsp.ToolCallDone {
		r.calls[item.ToolCallID] = true
	}
	r.talk.Add(mmsp.RoleAssistant, path, item)
}

func owns(e *carry.Envelope, item *mmsp.Item) bool {
	return e.Fidelity != nil && e.Kind == item.Type.Kind() && e.Owner.ToolCallID == item.ToolCallID
}

// think adds a reasoning item, or gives the proof that it holds to the item beside it.
func (r *reading) think(i *openairesponses.BodyItem) {
	parts, channel := i.Summary, "summary"
	if len(parts) == 0 {
		parts, channel = i.Content, "content"
	}
	texts := make([]string, len(parts))
	for p := range parts {
		texts[p] = parts[p].Text
	}
	item := mmsp.Thinking(strings.Join(texts, "\n\n"))
	e, ok := r.env.Restore(carry.Responses, i.EncryptedContent)
	switch {
	case ok && e.Owner != nil && e.Owner.Previous:
		if turn := r.turn(); turn != nil {
			if last := &turn.ContentItems[len(turn.ContentItems)-1]; owns(&e, last) {
				last.Fidelity = e.Fidelity
			}
		}
		return
	case ok && e.Owner != nil:
		r.next = &e
		return
	case ok && e.Kind == "": // the provider's own value
		item.Fidelity = e.Fidelity
		if item.Thinking != "" {
			item.Fidelity = append([]byte(`{"channel":"`+channel+`",`), e.Fidelity[1:]...)
		}
	case ok && e.Kind == "thinking":
		item.Fidelity = e.Fidelity
	case ok && e.Kind == "redacted_thinking":
		item.Thinking, item.Fidelity = ingress.RedactedThinking, e.Fidelity
	case i.EncryptedContent == "" && i.ID != "":
		if kept, _ := r.find(i.Path+".id", i.ID); kept != nil && !kept.taken && kept.item.Type == mmsp.ThinkingDone &&
			(kept.item.Thinking == item.Thinking || kept.item.Thinking == ingress.RedactedThinking && item.Thinking == "") {
			kept.taken = true
			item = kept.item
		}
	}
	if item.Thinking == "" && item.Fidelity == nil {
		return // it says and proves nothing: what it was is recalled without it
	}
	r.say(i.Path, item)
}

// turn returns the assistant's turn that is being read, nil if another's is.
func (r *reading) turn() *mmsp.Message {
	if last := len(r.talk.Messages) - 1; last >= 0 && r.talk.Messages[last].Role == mmsp.RoleAssistant {
		return &r.talk.Messages[last]
	}
	return nil
}

// hear adds the parts of a user's message.
func (r *reading) hear(i *openairesponses.BodyItem) error {
	r.next = nil
	for p := range i.Content {
		part := &i.Content[p]
		switch part.Type {
		case "input_text":
			if part.Text != "" {
				r.talk.Add(mmsp.RoleUser, part.Path, mmsp.Text(part.Text))
			}
		case "input_image":
			url, err := pictureURL(part)
			if err != nil {
				return err
			}
			item := mmsp.ImageURL(url)
			item.Detail = part.Detail
			r.talk.Add(mmsp.RoleUser, part.Place, item)
		case "input_file":
			file, err := r.file(part)
			if err != nil {
				return err
			}
			r.talk.Add(mmsp.RoleUser, part.Place, file.Item(part.Filename))
		case "input_audio":
			data, ok := jsonscan.DecodeBase64(part.FileData)
			if !ok || len(data) == 0 {
				return ingress.Invalid(part.Place, "base64 is wanted")
			}
			mediaType := "audio/wav"
			if part.Format == "mp3" {
				mediaType = "audio/mpeg"
			}
			r.talk.Add(mmsp.RoleUser, part.Place, mmsp.InlineData(data, mediaType, ""))
		}
	}
	return nil
}

// result adds what a tool returned: its texts, and what else it holds as pictures.
func (r *reading) result(i *openairesponses.BodyItem) error {
	r.next = nil
	var texts, urls []string
	for p := range i.Content {
		part := &i.Content[p]
		switch part.Type {
		case "input_image":
			url, err := pictureURL(part)
			if err != nil {
				return err
			}
			urls = append(urls, url)
			r.talk.Picture(i.Path, part.Place)
		case "input_file":
			file, err := r.file(part)
			if err != nil {
				return err
			}
			urls = append(urls, file.DataURL(part.Filename))
			r.talk.Picture(i.Path, part.Place)
		default:
			texts = append(texts, part.Text)
		}
	}
	r.talk.Add(mmsp.RoleUser, i.Path, mmsp.ToolResult(i.CallID, strings.Join(texts, "\n"), urls...))
	return nil
}

// recall adds an item of the assistant that was kept.
func (r *reading) recall(path string, item mmsp.Item) {
	switch item.Type {
	case "": // it was shown, and there is nothing to it
		return
	case mmsp.InlineDataDone, mmsp.InlineThinkingDone:
		if !r.takesPictures() {
			r.next = nil
			r.drop(path, item.Type.Kind())
			return
		}
	}
	r.say(path, item)
}

// takesPictures reports whether the model takes back what it has drawn. Only those of Google do.
func (r *reading) takesPictures() bool {
	return r.env.Peer.Protocol == carry.GenerateContent || r.env.Peer.Protocol == carry.Interactions
}

// picture adds a picture that the model made.
func (r *reading) picture(i *openairesponses.BodyItem) error {
	if !r.takesPictures() || i.Result == "" {
		r.next = nil
		r.drop(i.Path, i.Type)
		return nil
	}
	data, ok := jsonscan.DecodeBase64(i.Result)
	if !ok || len(data) == 0 {
		return ingress.Invalid(i.Path+".result", "base64 is wanted")
	}
	mediaType := "image/" + i.OutputFormat
	if !ingress.IsMediaType(mediaType) {
		mediaType = http.DetectContentType(data)
	}
	r.say(i.Path+".result", mmsp.InlineData(data, mediaType, ""))
	return nil
}

// pictureURL returns the URL of a picture.
func pictureURL(part *openairesponses.BodyPart) (url string, err error) {
	if part.FileID != "" && part.ImageURL == "" {
		return "", ingress.Invalid(part.Path+".file_id", "input_image: file ids of a provider are not known here")
	}
	return ingress.Picture(part.Place, part.ImageURL)
}

// file returns a file, wherever it is.
func (r *reading) file(part *openairesponses.BodyPart) (*ingress.File, error) {
	switch {
	case part.FileID != "":
		return nil, ingress.Invalid(part.Path+".file_id", "input_file: file ids of a provider are not known here")
	case part.FileURL != "" && part.FileData != "":
		return nil, ingress.Invalid(part.Path+".file_url", "input_file: file_data stands beside it, and one of the two is wanted")
	case part.FileURL != "":
		return r.env.Fetch(r.ctx, part.Place, part.FileURL)
	case part.FileData == "":
		return nil, ingress.Invalid(part.Place, "input_file: file_data or file_url is wanted")
	}
	encoded, mediaType := part.FileData, ""
	if strings.HasPrefix(encoded, "data:") {
		head, rest, _ := strings.Cut(encoded, ",")
		mediaType, _, _ = strings.Cut(strings.TrimPrefix(head, "data:"), ";")
		mediaType = strings.ToLower(strings.TrimSpace(mediaType))
		if !strings.HasSuffix(head, ";base64") {
			return nil, ingress.Invalid(part.Place, "the data URL is to be of base64")
		}
		encoded = rest
	}
	data, ok := jsonscan.DecodeBase64(encoded)
	if !ok || len(data) == 0 {
		return nil, ingress.Invalid(part.Place, "base64 is wanted")
	}
	if !ingress.IsMediaType(mediaType) || mediaType == images.Unknown {
		mediaType = images.TypeOf(part.Filename, data)
	}
	return &ingress.File{Data: data, MediaType: mediaType}, nil
}
