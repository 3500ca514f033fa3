package messages

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/ingress"
	"github.com/prism-shadow/mmsp-go/internal/carry"
	"github.com/prism-shadow/mmsp-go/wire/anthropic"
)

func (c *call) Read(ctx context.Context, env *ingress.Env) (*ingress.Request, error) {
	c.peer = env.Peer
	r := reader{ctx: ctx, env: env}
	for i := range c.body.System {
		r.conversation.System(c.body.System[i].Text)
	}
	for i := range c.body.Messages {
		if err := r.message(&c.body.Messages[i]); err != nil {
			return nil, err
		}
	}
	r.endTurn()
	turns := r.conversation.Messages
	if len(turns) == 0 {
		return nil, ingress.Invalid("messages", "at least one message with content is wanted")
	}
	request := &ingress.Request{
		Messages: turns, Paths: r.conversation.Paths, Pictures: r.conversation.Pictures,
		Dropped: append(r.dropped, c.body.Unserved...), Params: params, Unknown: c.body.Unknown, Betas: c.betas,
	}
	request.Config.SystemPrompt = r.conversation.SystemPrompt()
	return request, readConfig(c.body, env.Peer, request)
}

// reader gathers the turns.
type reader struct {
	ctx          context.Context
	env          *ingress.Env
	conversation ingress.Conversation
	role         mmsp.Role // of the turn at hand
	turn         []placed
	dropped      []string
}

// placed is an item and where it stands in the body, or a proof that stands by itself.
type placed struct {
	path  string
	item  mmsp.Item
	proof *carry.Envelope
}

func (r *reader) message(m *anthropic.BodyMessage) error {
	role := mmsp.Role(m.Role)
	if m.Role != "system" && role != r.role {
		r.endTurn()
		r.role = role
	}
	for i := range m.Content {
		b := &m.Content[i]
		switch {
		case anthropic.ProvidersOwn(b.Type):
			r.drop(b)
			continue
		case !stands(b.Type, m.Role):
			return ingress.Invalid(b.Path, fmt.Sprintf("a block of type %s does not stand in a message of role %s", b.Type, m.Role))
		case m.Role == "system":
			r.conversation.System(b.Text)
			continue
		}
		if err := r.block(b); err != nil {
			return err
		}
	}
	return nil
}

// stands reports whether a block of a type may stand in a message of a role. Pictures and documents of the assistant are
// those that it made.
func stands(kind, role string) bool {
	switch kind {
	case "text":
		return true
	case "image", "document":
		return role != "system"
	case "search_result", "tool_result":
		return role == "user"
	}
	return role == "assistant"
}

func (r *reader) drop(b *anthropic.BodyBlock) {
	r.dropped = append(r.dropped, b.Path+" ("+b.Type+")")
}

func (r *reader) add(path string, item mmsp.Item) {
	r.turn = append(r.turn, placed{path: path, item: item})
}

// block adds the items of a block.
func (r *reader) block(b *anthropic.BodyBlock) error {
	switch b.Type {
	case "text", "compaction":
		r.add(b.Path, mmsp.Text(b.Text))
	case "search_result":
		r.add(b.Path, mmsp.Text(searchResult(b)))
	case "image":
		if b.Source.Type == "base64" && r.role == mmsp.RoleAssistant {
			r.add(place(b), mmsp.InlineData(b.Source.Data, b.Source.MediaType, ""))
			return nil
		}
		url, err := pictureURL(b)
		if err != nil {
			return err
		}
		r.add(place(b), mmsp.ImageURL(url))
	case "document":
		return r.document(b)
	case "thinking":
		r.thinking(b.Path, b.Thinking, b.Signature)
	case "redacted_thinking":
		r.thinking(b.Path, ingress.RedactedThinking, b.Data)
	case "tool_use":
		r.add(b.Path, mmsp.ToolCall(b.ID, b.Name, string(b.Input)))
	case "tool_result":
		item, err := r.toolResult(b)
		if err != nil {
			return err
		}
		r.add(b.Path, item)
	}
	return nil
}

// document adds a file, and what the caller says about it before.
func (r *reader) document(b *anthropic.BodyBlock) error {
	if b.Text != "" {
		r.add(b.Path, mmsp.Text(b.Text))
	}
	text := b.Source.Text
	switch b.Source.Type {
	case "base64":
		r.add(place(b), mmsp.InlineData(b.Source.Data, b.Source.MediaType, b.Title))
		return nil
	case "url":
		file, err := r.fetch(b)
		if err != nil {
			return err
		}
		r.add(place(b), file.Item(b.Title))
		return nil
	case "content":
		text = joinTexts(b.Source.Content)
	}
	if strings.TrimSpace(text) != "" {
		r.add(place(b), mmsp.InlineData([]byte(text), "text/plain", b.Title))
	}
	for i := range b.Source.Content {
		if picture := &b.Source.Content[i]; picture.Type == "image" {
			url, err := pictureURL(picture)
			if err != nil {
				return err
			}
			r.add(place(picture), mmsp.ImageURL(url))
		}
	}
	return nil
}

// place is where the content of a picture or a document stands.
func place(b *anthropic.BodyBlock) string {
	switch b.Source.Type {
	case "url", "content":
		return b.Path + ".source." + b.Source.Type
	}
	return b.Path + ".source.data"
}

func (r *reader) fetch(b *anthropic.BodyBlock) (*ingress.File, error) {
	return r.env.Fetch(r.ctx, place(b), b.Source.URL)
}

// thinking adds an item with its proof, or a proof that belongs to a neighbour. A value that the provider cannot have
// issued leaves the item without one.
func (r *reader) thinking(path, text, value string) {
	e, ok := r.env.Restore(carry.Messages, value)
	item := mmsp.Thinking(text)
	switch {
	case !ok:
	case e.Owner != nil:
		r.turn = append(r.turn, placed{path: path, proof: &e})
		return
	case e.Kind == "text": // one that said nothing
		item = mmsp.Text("")
		item.Fidelity = e.Fidelity
	case e.Kind == "" || e.Kind == "thinking":
		item.Fidelity = e.Fidelity
	}
	r.add(path, item)
}

// toolResult makes one text of all texts, those of documents too. Pictures and PDF stand beside it.
func (r *reader) toolResult(b *anthropic.BodyBlock) (mmsp.Item, error) {
	var texts, files []string
	show := func(part *anthropic.BodyBlock, url string) {
		files = append(files, url)
		r.conversation.Picture(b.Path, place(part))
	}
	for i := range b.Content {
		switch part := &b.Content[i]; {
		case anthropic.ProvidersOwn(part.Type):
			r.drop(part)
		case part.Type == "text":
			texts = append(texts, part.Text)
		case part.Type == "search_result":
			texts = append(texts, searchResult(part))
		case part.Type == "image":
			url, err := pictureURL(part)
			if err != nil {
				return mmsp.Item{}, err
			}
			show(part, url)
		case part.Source.Type == "base64":
			texts = append(texts, part.Text)
			show(part, dataURL(&part.Source))
		case part.Source.Type == "url":
			file, err := r.fetch(part)
			if err != nil {
				return mmsp.Item{}, err
			}
			texts = append(texts, part.Text)
			if strings.HasPrefix(file.MediaType, "text/") && utf8.Valid(file.Data) {
				texts = append(texts, cmp.Or(part.Title, file.Name), string(file.Data))
			} else {
				show(part, file.DataURL(part.Title))
			}
		case part.Source.Type == "text":
			texts = append(texts, part.Text, part.Title, part.Source.Text)
		case part.Source.Type == "content":
			texts = append(texts, part.Text, part.Title, joinTexts(part.Source.Content))
			for j := range part.Source.Content {
				if picture := &part.Source.Content[j]; picture.Type == "image" {
					url, err := pictureURL(picture)
					if err != nil {
						return mmsp.Item{}, err
					}
					show(picture, url)
				}
			}
		}
	}
	item := mmsp.ToolResult(b.ToolUseID, joinLines(texts), files...)
	item.IsError = b.IsError
	return item, nil
}

func searchResult(b *anthropic.BodyBlock) string {
	return joinLines([]string{b.Title, b.Origin, joinTexts(b.Content)})
}

func joinTexts(blocks []anthropic.BodyBlock) string {
	var texts []string
	for i := range blocks {
		texts = append(texts, blocks[i].Text)
	}
	return joinLines(texts)
}

// joinLines joins the texts that say something.
func joinLines(texts []string) string {
	texts = slices.DeleteFunc(texts, func(text string) bool { return strings.TrimSpace(text) == "" })
	return strings.Join(texts, "\n")
}

// pictureURL returns the URL of a picture.
func pictureURL(b *anthropic.BodyBlock) (string, error) {
	switch {
	case b.Source.Type == "url":
		return ingress.Picture(place(b), b.Source.URL)
	case !ingress.IsMediaType(b.Source.MediaType):
		return "", ingress.Invalid(b.Path+".source.media_type", "a media type such as image/png is wanted")
	}
	return dataURL(&b.Source), nil
}

func dataURL(s *anthropic.BodySource) string {
	return (&ingress.File{MediaType: s.MediaType, Data: s.Data}).DataURL("")
}

// endTurn puts the proofs of a turn back onto the items that they belong to, and adds the items to the conversation. A
// proof whose item is gone goes, too, and so does blank text, which has none.
func (r *reader) endTurn() {
	var last *mmsp.Item
	var next []*carry.Envelope // proofs of the item that comes next
	for i := range r.turn {
		switch p := &r.turn[i]; {
		case p.proof == nil:
			last = &p.item
			for _, proof := range next {
				prove(last, proof)
			}
			next = next[:0]
		case !p.proof.Owner.Previous:
			next = append(next, p.proof)
		case last != nil:
			prove(last, p.proof)
		}
	}
	for i := range r.turn {
		p := &r.turn[i]
		blank := p.item.Type == mmsp.TextDone && strings.TrimSpace(p.item.Text) == "" && p.item.Fidelity == nil
		if p.proof == nil && !blank {
			r.conversation.Add(r.role, p.path, p.item)
		}
	}
	r.turn = r.turn[:0]
}

// prove gives an item a proof, if that is its own.
func prove(item *mmsp.Item, proof *carry.Envelope) {
	if item.Type.Kind() == proof.Kind && item.ToolCallID == proof.Owner.ToolCallID {
		item.Fidelity = proof.Fidelity
	}
}

var params = map[string]string{
	"thinking_level": "thinking", "thinking_budget": "thinking.budget_tokens", "thinking_summary": "thinking.display", "response_format": "output_config.format",
	"parallel_tool_calls": "tool_choice.disable_parallel_tool_use", "fast_mode": "speed", "prompt_caching": "cache_control",
}

// readConfig fills in how the model is to answer. What the peer cannot be asked for as it stands is noted among what is
// dropped, also where something near takes its place.
func readConfig(b *anthropic.Body, peer carry.Peer, request *ingress.Request) error {
	config := &request.Config
	config.MaxTokens = b.MaxTokens
	config.Temperature, config.TopP, config.TopK = b.Temperature, b.TopP, b.TopK
	config.StopSequences = b.StopSequences
	config.User = b.UserID
	config.FastMode = b.Speed == "fast"
	config.PromptCaching = map[string]mmsp.PromptCaching{"5m": mmsp.CachingEnable, "1h": mmsp.CachingEnhance}[b.CacheTTL]
	if b.ServiceTier != "auto" {
		config.ServiceTier = b.ServiceTier
	}
	t := b.Thinking
	if b.Effort != "" && peer.Protocol == carry.Messages && (t == nil || t.Type == "disabled") {
		// Effort is worth something without thinking, but the level that stands for it switches thinking on.
		request.Dropped = append(request.Dropped, "output_config.effort")
	} else {
		config.ThinkingLevel = mmsp.ThinkingLevel(b.Effort)
	}
	if t != nil {
		switch t.Type {
		case "disabled":
			config.ThinkingLevel = mmsp.ThinkingNone
		case "enabled":
			config.ThinkingBudget = &t.BudgetTokens
		case "between_tools": // MMSP has no such thinking; adaptive is the nearest
			request.Dropped = append(request.Dropped, "thinking.type (between_tools)")
		}
		if t.Type != "disabled" { // where the model decides how much it thinks, a summary is what says that it may
			config.ThinkingSummary = new(t.Display != "omitted")
		}
	}
	if f := b.Format; f != nil {
		config.ResponseFormat = &mmsp.ResponseFormat{Type: f.Type, Schema: f.Schema}
	}
	return readTools(b, request)
}

// readTools takes the functions of the caller. Tools that a provider itself defines have no schema that another would
// know, and are left out.
func readTools(b *anthropic.Body, request *ingress.Request) error {
	config := &request.Config
	names := map[string]bool{} // of tools; false: left out
	for i := range b.Tools {
		t := &b.Tools[i]
		if names[t.Name] = t.Type == ""; t.Type != "" {
			request.Dropped = append(request.Dropped, t.Path+" ("+t.Type+")")
			continue
		}
		config.Tools = append(config.Tools, mmsp.Tool{Name: t.Name, Description: t.Description, Parameters: t.InputSchema, Strict: t.Strict})
		request.ToolPaths = append(request.ToolPaths, t.Path)
	}
	choice := b.ToolChoice
	if choice == nil {
		return nil
	}
	switch function, known := names[choice.Name]; {
	case choice.Type == "any" && len(config.Tools) == 0:
		return ingress.Invalid("tool_choice", "there is no tool that could be called")
	case choice.Type == "tool" && !known:
		return ingress.Invalid("tool_choice.name", fmt.Sprintf("there is no tool %.128q", choice.Name))
	case choice.Type == "tool" && !function:
		return ingress.Invalid("tool_choice.name", fmt.Sprintf("%.128q is a tool that a provider runs or defines, which is not possible here", choice.Name))
	case len(config.Tools) == 0:
		return nil
	}
	if choice.DisableParallelToolUse {
		config.ParallelToolCalls = new(false)
	}
	switch choice.Type {
	case "any":
		config.ToolChoice = &mmsp.ToolChoice{Mode: mmsp.ToolChoiceRequired}
	case "tool":
		config.ToolChoice = &mmsp.ToolChoice{Names: []string{choice.Name}}
	default:
		config.ToolChoice = &mmsp.ToolChoice{Mode: choice.Type}
	}
	return nil
}
