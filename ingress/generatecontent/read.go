package generatecontent

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/ingress"
	"github.com/prism-shadow/mmsp-go/internal/carry"
	"github.com/prism-shadow/mmsp-go/internal/images"
	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
	"github.com/prism-shadow/mmsp-go/wire/genai"
)

// redactedKind is the kind of the envelope of an empty thought that stands for ingress.RedactedThinking.
const redactedKind = "redacted_thinking"

// sealedPrefix is how base64 of an envelope begins: that of "mmsp1.".
const sealedPrefix = "bW1zcDEu"

// reader turns contents into messages.
type reader struct {
	ctx          context.Context
	env          *ingress.Env
	conversation ingress.Conversation
	dropped      []string

	// A model's text in the pieces of a stream, as the chats of Google's libraries keep it. The pieces are one item, up to
	// one with a signature or, as the encoder has it, an empty one.
	run struct {
		kind mmsp.ItemType // empty: none
		path string
		text strings.Builder
	}

	known    map[string]bool // ids of calls
	invented map[string]bool // those of calls that came without

	// Of the calls of the model's last turn.
	calls   map[string]*pendingCall // by their ids
	waiting map[queue][]*pendingCall
}

type pendingCall struct {
	id       string
	answered bool
}

// queue is the calls of a function in their order: all, or those alone that came without an id.
type queue struct {
	name    string
	unnamed bool
}

func (c *call) readBody(ctx context.Context) (*ingress.Request, error) {
	body := c.body
	r := &reader{ctx: ctx, env: c.env, known: map[string]bool{}, invented: map[string]bool{}, dropped: slices.Concat(body.Hosted, body.Unserved)}
	for _, text := range body.System {
		r.conversation.System(text)
	}
	for i := range body.Contents {
		if err := r.turn(i, &body.Contents[i]); err != nil {
			return nil, err
		}
	}
	r.flush(nil)
	if len(r.conversation.Messages) == 0 {
		return nil, ingress.Invalid(body.Contents[0].Path, "there is nothing in the contents")
	}
	request := &ingress.Request{
		Messages: r.conversation.Messages, Paths: r.conversation.Paths, Pictures: r.conversation.Pictures,
		Dropped: r.dropped, Params: params, Invented: r.invented, Unknown: body.Unknown,
	}
	c.showsThoughts = body.Generation.IncludeThoughts == nil || *body.Generation.IncludeThoughts
	c.readConfig(request)
	request.Config.SystemPrompt = r.conversation.SystemPrompt()
	return request, c.readTools(request)
}

// turn reads the content with a number.
func (r *reader) turn(number int, turn *genai.Turn) error {
	for i := range turn.Parts {
		part := &turn.Parts[i]
		if part.Kind == "functionCall" && turn.Role != "model" {
			return ingress.Invalid(part.Path+".functionCall", "a call stands in a turn of the model")
		}
		if turn.Role == "model" && part.Kind == "text" {
			r.said(part)
			continue
		}
		if part.Kind == "" {
			continue
		}
		r.flush(nil)
		role := mmsp.RoleUser
		if turn.Role == "model" {
			role = mmsp.RoleAssistant
		}
		switch part.Kind {
		case "text":
			if part.Text != "" {
				r.add(role, part.Path, mmsp.Text(part.Text))
			}
		case "inlineData", "fileData":
			item, err := r.data(part, role)
			if err != nil {
				return err
			}
			r.add(role, place(part), item)
		case "functionCall":
			r.functionCall(part, fmt.Sprintf("call_%d_%d", number, i))
		case "functionResponse":
			if err := r.functionResponse(part); err != nil {
				return err
			}
		default: // what Google's own tools did
			r.dropped = append(r.dropped, part.Path+" ("+part.Kind+")")
		}
	}
	return nil
}

// add appends an item. The calls of an earlier turn of the model are answered by now, or never.
func (r *reader) add(role mmsp.Role, path string, item mmsp.Item) {
	if messages := r.conversation.Messages; role == mmsp.RoleAssistant && (len(messages) == 0 || messages[len(messages)-1].Role != role) {
		r.calls, r.waiting = map[string]*pendingCall{}, map[queue][]*pendingCall{}
	}
	r.conversation.Add(role, path, item)
}

// said reads a text of the model.
func (r *reader) said(part *genai.InputPart) {
	kind := mmsp.TextDone
	if part.Thought {
		kind = mmsp.ThinkingDone
	}
	fidelity, redacted := r.proof(part, kind.Kind())
	if r.run.kind != kind || part.Text == "" && part.Signature == "" || redacted {
		r.flush(nil)
	}
	if part.Text == "" && part.Signature == "" {
		return
	}
	if redacted {
		item := mmsp.Thinking(ingress.RedactedThinking)
		item.Fidelity = fidelity
		r.add(mmsp.RoleAssistant, part.Path, item)
		return
	}
	if r.run.kind == "" {
		r.run.kind, r.run.path = kind, part.Path
	}
	r.run.text.WriteString(part.Text)
	if part.Signature != "" {
		r.flush(fidelity)
	}
}

// flush ends the text that is gathered.
func (r *reader) flush(fidelity mmsp.Fidelity) {
	run := &r.run
	if run.kind == "" {
		return
	}
	text := run.text.String()
	item := mmsp.Text(text)
	if run.kind == mmsp.ThinkingDone { // an empty one had a proof that may be recalled
		item = mmsp.Thinking(text)
	}
	item.Fidelity = fidelity
	if text != "" || fidelity != nil || run.kind == mmsp.ThinkingDone {
		r.add(mmsp.RoleAssistant, run.path, item)
	}
	run.kind = ""
	run.text.Reset()
}

// proof returns the fidelity that a part's signature carries to an item of a kind, nil where there is none or it is not to
// be used, and whether the item is thinking whose text is not shown.
func (r *reader) proof(part *genai.InputPart, kind string) (fidelity mmsp.Fidelity, redacted bool) {
	value := part.Signature
	if strings.HasPrefix(value, sealedPrefix) {
		if text, ok := jsonscan.DecodeBase64(value); ok {
			value = string(text)
		}
	}
	e, ok := r.env.Restore(carry.GenerateContent, value)
	if !ok || e.Owner != nil {
		return nil, false
	}
	if redacted = e.Kind == redactedKind && kind == mmsp.ThinkingDone.Kind(); redacted || e.Kind == kind || e.Kind == "" {
		return e.Fidelity, redacted
	}
	return nil, false
}

// data reads a picture or a document. What the model made itself comes back as such.
func (r *reader) data(part *genai.InputPart, role mmsp.Role) (mmsp.Item, error) {
	if part.Kind == "fileData" {
		return r.remote(part)
	}
	if err := checkType(part); err != nil {
		return mmsp.Item{}, err
	}
	if role == mmsp.RoleUser && isPicture(part.MimeType) {
		return mmsp.ImageURL(images.DataURL(part.MimeType, part.Data)), nil
	}
	item := mmsp.InlineData(part.Data, part.MimeType, part.DisplayName)
	if role == mmsp.RoleAssistant {
		if part.Thought {
			item.Type = mmsp.InlineThinkingDone
		}
		item.Fidelity, _ = r.proof(part, item.Type.Kind())
	}
	return item, nil
}

// place is where the bytes or the address of a picture or a document stand.
func place(part *genai.InputPart) string {
	if part.Kind == "fileData" {
		return part.Path + ".fileData.fileUri"
	}
	return part.Path + ".inlineData"
}

// checkType refuses a MIME type, which may have parameters, that no data URL could hold.
func checkType(part *genai.InputPart) error {
	name, parameters, _ := strings.Cut(part.MimeType, ";")
	if !ingress.IsMediaType(name) || strings.Contains(parameters, ",") {
		return ingress.Invalid(part.Path+"."+part.Kind+".mimeType", "a MIME type such as image/png is wanted")
	}
	return nil
}

// isPicture reports whether a MIME type is plainly that of a picture.
func isPicture(mimeType string) bool {
	return strings.HasPrefix(strings.ToLower(mimeType), "image/") && ingress.IsMediaType(mimeType)
}

// remote reads fileData. The address of what is said to be a picture goes on as it is; any other file is fetched, and is of
// the type that the caller says. What only Google could read is refused: files that it stores, and videos of YouTube.
func (r *reader) remote(part *genai.InputPart) (mmsp.Item, error) {
	at := place(part)
	address, ok := ingress.WebURL(part.FileURI)
	if !ok {
		return mmsp.Item{}, ingress.Invalid(at, "fileData: an http or https address is wanted; file ids of a provider are not known here")
	}
	switch host := strings.ToLower(address.Hostname()); {
	case host == "generativelanguage.googleapis.com":
		return mmsp.Item{}, ingress.Invalid(at, "fileData: files of a provider are not known here; inlineData carries their bytes")
	case host == "youtu.be" || strings.HasSuffix("."+host, ".youtube.com"):
		return mmsp.Item{}, ingress.Invalid(at, "fileData: videos of YouTube cannot be fetched; inlineData carries the bytes of others")
	}
	if err := checkType(part); err != nil && part.MimeType != "" {
		return mmsp.Item{}, err
	}
	picture := isPicture(part.MimeType)
	if part.MimeType == "" {
		picture = slices.Contains([]string{".png", ".jpg", ".jpeg", ".webp", ".gif", ".heic", ".heif", ".avif", ".bmp"}, strings.ToLower(path.Ext(address.Path)))
	}
	if picture {
		return mmsp.ImageURL(part.FileURI), nil
	}
	file, err := r.env.Fetch(r.ctx, at, part.FileURI)
	if err != nil {
		return mmsp.Item{}, err
	}
	file.MediaType = cmp.Or(part.MimeType, file.MediaType)
	return file.Item(part.DisplayName), nil
}

// functionCall reads a call; id is what it gets where it has none.
func (r *reader) functionCall(part *genai.InputPart, id string) {
	unnamed := part.ID == ""
	if unnamed {
		for r.known[id] {
			id += "_"
		}
		r.invented[id] = true
	} else {
		id = part.ID
	}
	r.known[id] = true
	arguments := "{}"
	if part.Args != nil {
		arguments = string(part.Args)
	}
	item := mmsp.ToolCall(id, part.Name, arguments)
	item.Fidelity, _ = r.proof(part, item.Type.Kind())
	r.add(mmsp.RoleAssistant, part.Path, item)
	call := &pendingCall{id: id}
	if r.calls[id] == nil {
		r.calls[id] = call
	}
	all, without := queue{part.Name, false}, queue{part.Name, true}
	r.waiting[all] = append(r.waiting[all], call)
	if unnamed {
		r.waiting[without] = append(r.waiting[without], call)
	}
}

// functionResponse reads the answer to a call: the one that it names by its id or, where one of the two has no id, the first
// call of that function in the model's last turn that has no answer.
func (r *reader) functionResponse(part *genai.InputPart) error {
	id := part.ID
	if !r.known[id] {
		q := queue{part.Name, part.ID != ""}
		waiting := r.waiting[q]
		for len(waiting) > 0 && waiting[0].answered {
			waiting = waiting[1:]
		}
		if len(waiting) == 0 {
			return ingress.Invalid(part.Path+".functionResponse", fmt.Sprintf("no call of %.64q awaits this answer", part.Name))
		}
		id, r.waiting[q] = waiting[0].id, waiting[1:]
	}
	if call := r.calls[id]; call != nil {
		call.answered = true
	}
	var pictures []string
	for i := range part.Parts {
		inside := &part.Parts[i]
		switch inside.Kind {
		case "inlineData":
			if err := checkType(inside); err != nil {
				return err
			}
			pictures = append(pictures, images.DataURL(inside.MimeType, inside.Data))
		case "fileData":
			item, err := r.remote(inside)
			if err != nil {
				return err
			}
			if item.Type == mmsp.InlineDataDone {
				item.ImageURL = images.DataURL(item.MimeType, item.Data)
			}
			pictures = append(pictures, item.ImageURL)
		default: // nothing
			continue
		}
		r.conversation.Picture(part.Path, place(inside))
	}
	text, failed := resultText(part.Response)
	item := mmsp.ToolResult(id, text, pictures...)
	item.IsError = failed
	r.add(mmsp.RoleUser, part.Path, item)
	return nil
}

// resultText returns what a function returned, and whether it failed. A text alone under one of the names that the
// protocol's documentation uses is that text; anything else is the object.
func resultText(response json.RawMessage) (text string, failed bool) {
	if response == nil {
		return "", false
	}
	var s jsonscan.Scanner
	s.Reset(response)
	first := true
	if !s.Field(&first) {
		return "{}", false
	}
	name := string(s.Name())
	kind := s.Kind()
	value := bytes.Clone(s.Raw())
	alone := !s.Field(&first)
	switch {
	case alone && kind == '"' && slices.Contains([]string{"result", "output", "error"}, name):
		s.Reset(value)
		return s.String(), name == "error"
	case alone && kind != 'n' && name == "error":
		return compact(value), true
	}
	return compact(response), false
}

func compact(value []byte) string {
	var out bytes.Buffer
	if json.Compact(&out, value) != nil { // cannot be: the body is JSON
		return string(value)
	}
	return out.String()
}

var params = map[string]string{
	"max_tokens": "generationConfig.maxOutputTokens", "temperature": "generationConfig.temperature", "top_p": "generationConfig.topP",
	"top_k": "generationConfig.topK", "stop_sequences": "generationConfig.stopSequences", "seed": "generationConfig.seed",
	"presence_penalty": "generationConfig.presencePenalty", "frequency_penalty": "generationConfig.frequencyPenalty",
	"response_format": "generationConfig.responseMimeType", "image_config": "generationConfig.imageConfig", "tts_config": "generationConfig.speechConfig",
	"thinking_level": "generationConfig.thinkingConfig", "thinking_budget": "generationConfig.thinkingConfig.thinkingBudget",
	"thinking_summary": "generationConfig.thinkingConfig.includeThoughts", "service_tier": "serviceTier", "tool_choice": "toolConfig.functionCallingConfig",
}

func (c *call) readConfig(request *ingress.Request) {
	g, config := &c.body.Generation, &request.Config
	config.Temperature, config.TopP, config.TopK, config.MaxTokens = g.Temperature, g.TopP, g.TopK, g.MaxOutputTokens
	config.StopSequences, config.Seed = g.StopSequences, g.Seed
	config.PresencePenalty, config.FrequencyPenalty = g.PresencePenalty, g.FrequencyPenalty
	switch {
	case g.Schema != nil:
		config.ResponseFormat = &mmsp.ResponseFormat{Type: mmsp.FormatJSONSchema, Schema: g.Schema}
	case g.JSON:
		config.ResponseFormat = &mmsp.ResponseFormat{Type: mmsp.FormatJSONObject}
	}
	config.ThinkingSummary, config.ThinkingBudget = g.IncludeThoughts, g.ThinkingBudget
	if g.ThinkingLevel == "MINIMAL" {
		request.Dropped = append(request.Dropped, "generationConfig.thinkingConfig.thinkingLevel (MINIMAL)")
	}
	config.ThinkingLevel = map[string]mmsp.ThinkingLevel{
		"MINIMAL": mmsp.ThinkingLow, "LOW": mmsp.ThinkingLow, "MEDIUM": mmsp.ThinkingMedium, "HIGH": mmsp.ThinkingHigh,
	}[g.ThinkingLevel]
	if config.ServiceTier = c.body.ServiceTier; config.ServiceTier == "standard" {
		config.ServiceTier = "default" // as the others call it
	}
	c.readMedia(request)
}

// readMedia reads what is asked for beside text. Most clients have no word for it, those of Google for some models.
func (c *call) readMedia(request *ingress.Request) {
	g, config := &c.body.Generation, &request.Config
	switch {
	case g.AsksPictures == nil:
	case c.env.Asks(&mmsp.Config{ImageConfig: &mmsp.ImageConfig{}}):
		config.ImageConfig = &mmsp.ImageConfig{}
		if g.Image != nil {
			*config.ImageConfig = mmsp.ImageConfig{AspectRatio: g.Image.AspectRatio, ImageSize: g.Image.ImageSize}
		}
	default:
		request.Dropped = append(request.Dropped, g.AsksPictures...)
	}
	switch {
	case g.AsksSpeech == nil:
	case c.env.Asks(&mmsp.Config{TTSConfig: []mmsp.TTSVoice{{Voice: "any"}}}): // a model that speaks does nothing else
		for _, v := range g.Voices {
			config.TTSConfig = append(config.TTSConfig, mmsp.TTSVoice{Voice: v.VoiceConfig.PrebuiltVoiceConfig.VoiceName, Speaker: v.Speaker})
		}
	default:
		request.Dropped = append(request.Dropped, g.AsksSpeech...)
	}
}

func (c *call) readTools(request *ingress.Request) error {
	declared := map[string]bool{}
	for _, f := range c.body.Functions {
		declared[f.Name] = true
		request.Config.Tools = append(request.Config.Tools, mmsp.Tool{Name: f.Name, Description: f.Description, Parameters: f.Parameters})
		request.ToolPaths = append(request.ToolPaths, f.Path)
	}
	calling := c.body.Calling
	if calling == nil || calling.Mode == "" {
		return nil
	}
	if len(calling.Allowed) > 128 {
		return ingress.Invalid(calling.Path+".allowedFunctionNames", "at most 128 names are wanted")
	}
	for i, name := range calling.Allowed {
		if !declared[name] {
			return ingress.Invalid(fmt.Sprintf("%s.allowedFunctionNames[%d]", calling.Path, i), fmt.Sprintf("no function %.64q is declared", name))
		}
	}
	if len(declared) == 0 {
		if calling.Mode == "ANY" {
			return ingress.Invalid(calling.Path+".mode", "no function is declared that could be called")
		}
		return nil // there is nothing to choose from
	}
	switch choice := (&mmsp.ToolChoice{}); {
	case calling.Mode == "ANY" && len(calling.Allowed) > 0:
		choice.Names = calling.Allowed
		request.Config.ToolChoice, request.Allowed = choice, calling.Allowed
	case calling.Mode == "ANY":
		choice.Mode = mmsp.ToolChoiceRequired
		request.Config.ToolChoice = choice
	case calling.Mode == "NONE":
		choice.Mode = mmsp.ToolChoiceNone
		request.Config.ToolChoice = choice
	default: // AUTO, and VALIDATED, which may limit what is called
		choice.Mode = mmsp.ToolChoiceAuto
		request.Config.ToolChoice = choice
		if len(calling.Allowed) > 0 {
			request.Allowed = calling.Allowed
			request.KeepTools(calling.Allowed)
		}
		if calling.Mode == "VALIDATED" { // nothing holds the model to the schemas
			request.Dropped = append(request.Dropped, calling.Path+".mode (VALIDATED)")
		}
	}
	return nil
}

// readEmbeddings makes a message of each content to embed.
func (c *call) readEmbeddings(ctx context.Context) (*ingress.Request, error) {
	request := &ingress.Request{Embeds: true, Dropped: c.embeddings.Unserved, Unknown: c.embeddings.Unknown}
	var dimensions *int64
	for i := range c.embeddings.Requests {
		e := &c.embeddings.Requests[i]
		at := func(name string) string { return strings.TrimPrefix(e.Path+"."+name, ".") }
		if e.Model != "" && e.Model != c.model && strings.TrimPrefix(e.Model, "models/") != strings.TrimPrefix(c.model, "models/") {
			return nil, ingress.Invalid(at("model"), "the address of the request names another model")
		}
		if i > 0 && (dimensions == nil) != (e.Dimensions == nil) || i > 0 && dimensions != nil && *dimensions != *e.Dimensions {
			return nil, ingress.Invalid(at("outputDimensionality"), "all vectors of a batch have one length")
		}
		dimensions = e.Dimensions
		r := &reader{ctx: ctx, env: c.env}
		e.Content.Role = "user" // whoever says it
		for j := range e.Content.Parts {
			if part := &e.Content.Parts[j]; !slices.Contains([]string{"", "text", "inlineData", "fileData"}, part.Kind) {
				return nil, ingress.Invalid(part.Path, part.Kind+" has no vector")
			}
		}
		if err := r.turn(0, &e.Content); err != nil {
			return nil, err
		}
		if len(r.conversation.Messages) == 0 {
			return nil, ingress.Invalid(at("content"), "there is nothing to embed")
		}
		request.Messages = append(request.Messages, r.conversation.Messages...)
		request.Paths = append(request.Paths, r.conversation.Paths...)
	}
	if dimensions != nil {
		request.Config.EmbeddingConfig = &mmsp.EmbeddingConfig{Dimensions: dimensions}
	}
	return request, nil
}
