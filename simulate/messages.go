package simulate

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// messages is the Anthropic Messages API.
type messages struct{ *core }

func (m messages) admit(r *http.Request) *fault {
	key, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return m.admitKey(cmp.Or(r.Header.Get("X-Api-Key"), key))
}

// models returns one page of the listing: limit models (20 unless asked for otherwise) after after_id.
func (m messages) models(r *http.Request) (any, *fault) {
	query := r.URL.Query()
	limit, err := strconv.Atoi(query.Get("limit"))
	if err != nil || limit < 1 || limit > 1000 {
		limit = 20
	}
	ids := m.listed()
	if after := slices.Index(ids, query.Get("after_id")); after >= 0 {
		ids = ids[after+1:]
	}
	more := len(ids) > limit
	ids = ids[:min(limit, len(ids))]
	data := []object{}
	for _, id := range ids {
		data = append(data, object{"type": "model", "id": id, "display_name": id, "created_at": m.Now().UTC()})
	}
	page := object{"data": data, "has_more": more, "first_id": nil, "last_id": nil}
	if len(ids) > 0 {
		page["first_id"], page["last_id"] = ids[0], ids[len(ids)-1]
	}
	return page, nil
}

func (messages) refusal(f *fault, _ *http.Request, answer http.Header) any {
	f.fill(map[string]fault{
		noQuota: {status: http.StatusBadRequest, message: "Your credit balance is too low to access the Anthropic API. " +
			"Please go to Plans & Billing to upgrade or purchase credits."},
		tooLong: {message: "prompt is too long: 204521 tokens > 200000 maximum"},
	}, map[int]fault{
		401: {message: "invalid x-api-key"},
		403: {message: "Your API key does not have permission to use the specified resource."},
		413: {message: "Request exceeds the maximum size"},
		429: {retryAfter: 1, message: "This request would exceed the rate limit for your organization. Please reduce the " +
			"prompt length or the maximum tokens requested, or try again later."},
		500: {message: "Internal server error"},
		529: {message: "Overloaded"},
	})
	kind := "api_error"
	switch f.status {
	case 401:
		kind = "authentication_error"
	case 403:
		kind = "permission_error"
	case 404:
		kind = "not_found_error"
	case 413:
		kind = "request_too_large"
	case 429:
		kind = "rate_limit_error"
	case 529:
		kind = "overloaded_error"
	default:
		if f.status < 500 {
			kind = "invalid_request_error"
		}
	}
	return object{"type": "error", "error": object{"type": kind, "message": f.message}, "request_id": answer.Get("Request-Id")}
}

type messagesRequest struct {
	Model         string
	MaxTokens     *int `json:"max_tokens"`
	Messages      []messagesMessage
	System        json.RawMessage
	Stream        bool
	StopSequences []string `json:"stop_sequences"`
	Temperature   *float64
	TopP          *float64 `json:"top_p"`
	TopK          *int     `json:"top_k"`
	Tools         []struct {
		Type, Name  string
		InputSchema json.RawMessage `json:"input_schema"`
		Strict      bool
	}
	ToolChoice *struct {
		Type, Name string
		OneCall    bool `json:"disable_parallel_tool_use"`
	} `json:"tool_choice"`
	Thinking *struct {
		Type    string
		Budget  *int `json:"budget_tokens"`
		Display string
	}
	OutputConfig struct {
		Effort string
		Format struct {
			Type   string
			Schema json.RawMessage
		}
	} `json:"output_config"`
	CacheControl json.RawMessage `json:"cache_control"`
}

// messagesParameters are the fields of a request; any other is refused.
var messagesParameters = []string{
	"cache_control", "container", "context_management", "inference_geo", "max_tokens", "mcp_servers", "messages",
	"metadata", "model", "output_config", "output_format", "service_tier", "speed", "stop_sequences", "stream", "system",
	"temperature", "thinking", "tool_choice", "tools", "top_k", "top_p",
}

// countParameters are those of a request that only counts its tokens.
var countParameters = []string{
	"cache_control", "context_management", "mcp_servers", "messages", "model", "output_config", "output_format", "speed",
	"system", "thinking", "tool_choice", "tools",
}

type messagesMessage struct {
	Role    string
	Content json.RawMessage
}

type messagesBlock struct {
	Type         string
	Text         string
	Thinking     string
	Signature    *string
	Data         string
	ID           string
	Name         string
	Input        json.RawMessage
	ToolUseID    string `json:"tool_use_id"`
	Content      json.RawMessage
	IsError      bool `json:"is_error"`
	Source       json.RawMessage
	CacheControl json.RawMessage `json:"cache_control"`

	at string // where it stands in the request
}

type messagesSource struct {
	Type, Data, URL string
	MediaType       string `json:"media_type"`
}

// messagesExchange is one request of the Messages API.
type messagesExchange struct {
	messages
	turn
	id      string
	caching bool            // a cache_control stands somewhere
	omitted bool            // the text of thinking is not to be shown
	budget  bool            // thinking is enabled with a budget, so that it must come back before tool calls
	ids     map[string]bool // of all calls
}

// invalid is a 400 in the manner of Anthropic.
func invalid(format string, args ...any) *fault {
	return &fault{status: http.StatusBadRequest, message: fmt.Sprintf(format, args...)}
}

// decodeBlock reads JSON. The path says where the text stands in the request.
func decodeBlock(raw []byte, into any, path string) *fault {
	err := json.Unmarshal(raw, into)
	wrong := (*json.UnmarshalTypeError)(nil)
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &wrong):
		return invalid("The request body is not valid JSON: %s", err)
	}
	want := "object"
	if wrong.Type != nil {
		switch kind := wrong.Type.Kind().String(); kind {
		case "string":
			want = "string"
		case "bool":
			want = "boolean"
		case "int":
			want = "integer"
		case "float64":
			want = "number"
		case "slice":
			want = "list"
		}
	}
	return invalid("%s: Input should be a valid %s", strings.Trim(path+"."+strings.ToLower(wrong.Field), "."), want)
}

var (
	messagesToolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
	messagesToolID   = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	pictureTypes     = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}

	prefills       = regexp.MustCompile(`claude-(3|(opus|sonnet|haiku)-4-([0-5]|20\d{6}))`) // take the beginning of the answer
	systemAnywhere = regexp.MustCompile(`claude-opus-4-8`)                                  // take system messages later on
)

func (m messages) read(body []byte, r *http.Request) (exchange, *fault) {
	var sent map[string]json.RawMessage
	if f := decodeBlock(body, &sent, ""); f != nil {
		return nil, f
	}
	counts := strings.HasSuffix(r.URL.Path, "/count_tokens")
	required, known := []string{"model", "max_tokens", "messages"}, messagesParameters
	if counts {
		required, known = []string{"model", "messages"}, countParameters
	}
	for _, name := range required {
		if raw := sent[name]; len(raw) == 0 || string(raw) == "null" {
			return nil, invalid("%s: Field required", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		if !slices.Contains(known, name) {
			return nil, invalid("%s: Extra inputs are not permitted", clip(name, 100))
		}
	}
	var request messagesRequest
	if f := decodeBlock(body, &request, ""); f != nil {
		return nil, f
	}
	x := &messagesExchange{
		messages: m, id: newID("msg_01"), turn: turn{model: request.Model, streamed: request.Stream}, ids: map[string]bool{},
	}
	t := &x.turn
	switch {
	case r.Header.Get("Anthropic-Version") == "":
		return nil, invalid("anthropic-version: header is required")
	case !m.serves(request.Model):
		return nil, &fault{status: http.StatusNotFound, message: "model: " + clip(request.Model, 100)}
	case !counts && *request.MaxTokens < 0:
		return nil, invalid("max_tokens: Input should be greater than or equal to 0")
	case request.Temperature != nil && (*request.Temperature < 0 || *request.Temperature > 1):
		return nil, invalid("temperature: range: 0..1")
	case len(request.Messages) == 0:
		return nil, invalid("messages: at least one message is required")
	}
	if !counts {
		t.limit = *request.MaxTokens
		t.mute = t.limit == 0
	}
	t.stops = request.StopSequences
	x.caching = len(request.CacheControl) > 0 && string(request.CacheControl) != "null"
	t.effort = request.OutputConfig.Effort
	if format := request.OutputConfig.Format; format.Type == "json_schema" {
		t.json, t.schema = true, parseSchema(format.Schema)
		if f := checkHeld(t.schema, "output_config.format.schema"); f != nil {
			return nil, f
		}
	}
	if f := x.readThinking(&request); f != nil {
		return nil, f
	}

	strict := 0
	for i, tool := range request.Tools {
		switch {
		case tool.Type != "" && tool.Type != "custom": // a tool that the provider runs itself: none is simulated
			continue
		case !messagesToolName.MatchString(tool.Name):
			return nil, invalid("tools.%d.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", i)
		case typeOf(parseSchema(tool.InputSchema)) != "object":
			return nil, invalid("tools.%d.custom.input_schema.type: Field required", i)
		}
		if tool.Strict {
			strict++
			if f := checkHeld(parseSchema(tool.InputSchema), fmt.Sprintf("tools.%d.custom", i)); f != nil {
				return nil, f
			}
		}
		t.offer(tool.Name, tool.InputSchema)
	}
	if strict > 20 {
		return nil, invalid("Too many strict tools (%d). The maximum number of strict tools supported is 20.", strict)
	}
	if choice := request.ToolChoice; choice != nil {
		switch choice.Type {
		case "auto", "none":
			t.never = choice.Type == "none"
		case "any", "tool":
			if t.think {
				return nil, invalid("Thinking may not be enabled when tool_choice forces tool use.")
			}
			t.must = true
			if choice.Type == "tool" {
				t.only = map[string]bool{choice.Name: true}
				if t.checkChoice() != nil {
					return nil, invalid("Tool '%s' not found in provided tools", clip(choice.Name, 100))
				}
			}
		default:
			return nil, invalid("tool_choice: Input tag '%s' found using 'type' does not match any of the expected tags: "+
				"'auto', 'any', 'tool', 'none'", clip(choice.Type, 100))
		}
		t.oneCall = choice.OneCall
	}
	if t.mute && (t.streamed || t.json || t.must) {
		return nil, invalid("max_tokens: 0 is not supported with `stream`, `output_config.format` or a `tool_choice` that forces tool use")
	}

	if len(request.System) > 0 && string(request.System) != "null" {
		var text string
		var blocks []messagesBlock
		if json.Unmarshal(request.System, &text) == nil {
			t.rule(text)
		} else if f := decodeBlock(request.System, &blocks, "system"); f != nil {
			return nil, f
		}
		for i, block := range blocks {
			if f := checkText(block, fmt.Sprintf("system.%d", i)); f != nil {
				return nil, f
			}
			x.caching = x.caching || block.CacheControl != nil
			t.rule(block.Text)
		}
	}
	if f := x.readMessages(request.Messages); f != nil {
		return nil, f
	}
	if counts {
		return newCounter(x.turn, func(tokens int) object { return object{"input_tokens": tokens} }), nil
	}
	return x, nil
}

func (x *messagesExchange) readThinking(request *messagesRequest) *fault {
	mode := request.Thinking
	if mode == nil {
		return nil
	}
	x.omitted = mode.Display == "omitted"
	switch mode.Type {
	case "adaptive":
		x.think = true
	case "enabled":
		x.think, x.budget = true, true
		switch {
		case mode.Budget == nil:
			return invalid("thinking.enabled.budget_tokens: Field required")
		case *mode.Budget < 1024:
			return invalid("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
		case request.MaxTokens != nil && *mode.Budget >= *request.MaxTokens:
			return invalid("`max_tokens` must be greater than `thinking.budget_tokens`.")
		}
		if x.effort == "" {
			x.effort = plural(*mode.Budget, "token")
		}
	case "disabled", "between_tools":
		if mode.Display != "" {
			return invalid("thinking.%s.display: Extra inputs are not permitted", mode.Type)
		}
		if x.effort == "" {
			x.effort = mode.Type
		}
	default:
		return invalid("thinking: Input tag '%s' found using 'type' does not match any of the expected tags: 'adaptive', "+
			"'disabled', 'enabled'", clip(mode.Type, 100))
	}
	switch {
	case !x.think:
	case request.Temperature != nil && *request.Temperature != 1:
		return invalid("`temperature` may only be set to 1 when thinking is enabled.")
	case request.TopP != nil && *request.TopP < 0.95:
		return invalid("`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled.")
	case request.TopK != nil:
		return invalid("`top_k` must be unset when thinking is enabled or in adaptive mode.")
	}
	return nil
}

// checkHeld refuses what no decoding can be held to.
func checkHeld(schema any, at string) *fault {
	node, ok := schema.(map[string]any)
	if !ok {
		return nil
	}
	kind := typeOf(node)
	if kind == "object" && node["additionalProperties"] != false {
		return invalid("%s: For 'object' type, 'additionalProperties' must be explicitly set to false", at)
	}
	for _, bound := range []string{"exclusiveMaximum", "exclusiveMinimum", "maxItems", "maxLength", "maximum", "minLength", "minimum", "multipleOf"} {
		if node[bound] != nil {
			return invalid("%s: For '%s' type, property '%s' is not supported", at, kind, bound)
		}
	}
	var inside []any
	for _, name := range []string{"properties", "$defs", "definitions"} {
		named, _ := node[name].(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(named)) {
			inside = append(inside, named[key])
		}
	}
	list, _ := node["anyOf"].([]any)
	for _, schema := range append(append(inside, list...), node["items"]) {
		if f := checkHeld(schema, at); f != nil {
			return f
		}
	}
	return nil
}

// checkText refuses what no text block may hold.
func checkText(block messagesBlock, at string) *fault {
	switch {
	case block.Type != "text":
		return wrongTag(at, block.Type, "text")
	case block.Text == "":
		return invalid("messages: text content blocks must be non-empty")
	case strings.TrimSpace(block.Text) == "":
		return invalid("messages: text content blocks must contain non-whitespace text")
	}
	return nil
}

func wrongTag(at, tag string, expected ...string) *fault {
	return invalid("%s: Input tag '%s' found using 'type' does not match any of the expected tags: '%s'", at,
		clip(tag, 100), strings.Join(expected, "', '"))
}

// readMessages reads the history. Messages of one role that follow each other are one turn, as the provider has it.
func (x *messagesExchange) readMessages(all []messagesMessage) *fault {
	type side struct {
		role   string
		blocks []messagesBlock
	}
	var sides []side
	for i, m := range all {
		at := fmt.Sprintf("messages.%d", i)
		switch m.Role {
		case "user", "assistant":
		case "system":
			if i > 0 && systemAnywhere.MatchString(x.model) {
				x.say("system", string(m.Content))
				continue
			}
			return invalid("messages: Unexpected role \"system\". The Messages API accepts a top-level `system` parameter, " +
				"not \"system\" as an input message role.")
		default:
			return invalid("%s.role: Input should be 'user' or 'assistant'", at)
		}
		var text string
		var blocks []messagesBlock
		switch {
		case len(m.Content) == 0:
			return invalid("%s.content: Field required", at)
		case json.Unmarshal(m.Content, &text) == nil && m.Content[0] == '"':
			if text != "" {
				blocks = []messagesBlock{{Type: "text", Text: text}}
			}
		default:
			if f := decodeBlock(m.Content, &blocks, at+".content"); f != nil {
				return f
			}
		}
		if len(blocks) == 0 {
			return invalid("%s: all messages must have non-empty content except for the optional final assistant message", at)
		}
		for k := range blocks {
			blocks[k].at = fmt.Sprintf("%s.content.%d", at, k)
		}
		if len(sides) == 0 || sides[len(sides)-1].role != m.Role {
			sides = append(sides, side{role: m.Role})
		}
		last := &sides[len(sides)-1]
		last.blocks = append(last.blocks, blocks...)
	}
	if len(sides) == 0 || sides[0].role != "user" {
		return invalid("messages: first message must use the \"user\" role")
	}
	if sides[len(sides)-1].role != "user" && !prefills.MatchString(x.model) {
		return invalid("This model does not support assistant message prefill. The conversation must end with a user message.")
	}

	var calls []messagesBlock // of the turn before
	for i, side := range sides {
		if side.role == "assistant" {
			x.spoke()
			var f *fault
			if calls, f = x.readAssistant(side.blocks, i >= len(sides)-2); f != nil {
				return f
			}
			continue
		}
		if f := x.readUser(side.blocks, calls); f != nil {
			return f
		}
		calls = nil
	}
	if len(calls) > 0 { // at the end of a history that leaves the beginning of the answer
		return x.readUser(nil, calls)
	}
	return nil
}

// readAssistant reads a turn of the model and returns its calls. The last such turn must show the thinking before them.
// What tools of the provider did is taken as it comes: none is simulated.
func (x *messagesExchange) readAssistant(blocks []messagesBlock, last bool) (calls []messagesBlock, f *fault) {
	thought, next := false, -1 // the call that comes next
	for i, b := range blocks {
		for next < len(blocks) && (next < i || blocks[next].Type != "tool_use") {
			next++
		}
		var call *messagesBlock
		if next < len(blocks) {
			call = &blocks[next]
		}
		x.caching = x.caching || b.CacheControl != nil
		switch b.Type {
		case "text":
			if f := checkText(b, b.at); f != nil {
				return nil, f
			}
			x.say("assistant", b.Text)
		case "thinking":
			switch {
			case b.Signature == nil:
				return nil, invalid("%s.thinking.signature: Field required", b.at)
			}
			if f := x.checkThinking(b, *b.Signature, b.Thinking, "signature", call, last); f != nil {
				return nil, f
			}
			thought = true
			x.say("thinking", b.Thinking+*b.Signature)
		case "redacted_thinking":
			if f := x.checkThinking(b, b.Data, "", "data", call, last); f != nil {
				return nil, f
			}
			thought = true
			x.say("thinking", b.Data)
		case "tool_use":
			switch {
			case !messagesToolID.MatchString(b.ID):
				return nil, invalid("%s.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'", b.at)
			case !messagesToolName.MatchString(b.Name):
				return nil, invalid("%s.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", b.at)
			case len(b.Input) == 0:
				return nil, invalid("%s.tool_use.input: Field required", b.at)
			case b.Input[0] != '{':
				return nil, invalid("%s.tool_use.input: Input should be a valid dictionary", b.at)
			case x.ids[b.ID]:
				return nil, invalid("%s: `tool_use` ids must be unique", b.at)
			case last && !thought && (x.budget || x.Strict && x.issuedWithThought(b.ID)):
				return nil, invalid("%s.type: Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` "+
					"is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of "+
					"`tool_use` and `tool_result` blocks).", blocks[0].at)
			}
			x.ids[b.ID] = true
			calls = append(calls, b)
			x.say("call", b.ID+b.Name+string(b.Input))
		case "tool_result":
			return nil, invalid("%s: `tool_result` blocks can only be in `user` messages", b.at)
		case "server_tool_use", "mcp_tool_use", "compaction", "fallback":
			x.say("assistant", b.ID+b.Name+string(b.Input)+string(b.Content))
		default:
			if !strings.HasSuffix(b.Type, "_tool_result") {
				return nil, wrongTag(b.at, b.Type, "redacted_thinking", "text", "thinking", "tool_use")
			}
			x.say("assistant", b.ToolUseID+string(b.Content))
		}
	}
	return calls, nil
}

// signThinking returns a proof of thinking as it is shown, bound to the calls that came with it.
func (x *messagesExchange) signThinking(shown string, r *reply) string {
	sum := sha256.Sum256([]byte(shown))
	return x.sealer.seal(hex.EncodeToString(sum[:]) + " " + x.callIDs("toolu_01", r))
}

// checkThinking refuses thinking that was not issued here, and that was altered or stands in another place: not before
// a call that it led to. The field holds its proof.
func (x *messagesExchange) checkThinking(b messagesBlock, proof, shown, field string, next *messagesBlock, last bool) *fault {
	wrong := invalid("%s: Invalid `%s` in `%s` block", b.at, field, b.Type)
	about, ok := x.sealer.open(proof)
	switch {
	case !ok:
		return wrong
	case about == "": // of another provider
		return nil
	}
	sum := sha256.Sum256([]byte(shown))
	sealed, calls, _ := strings.Cut(about, " ")
	switch {
	case sealed == hex.EncodeToString(sum[:]) && (next == nil || slices.Contains(strings.Fields(calls), next.ID)):
		return nil
	case last:
		return invalid("%s: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. "+
			"These blocks must remain as they were in the original response.", b.at)
	}
	return wrong
}

// readUser reads a turn of the user, which answers the calls of the turn before it at its start.
func (x *messagesExchange) readUser(blocks, calls []messagesBlock) *fault {
	names := map[string]string{} // of the calls
	for _, call := range calls {
		names[call.ID] = call.Name
	}
	answered := map[string]bool{}
	for _, b := range blocks {
		if b.Type != "tool_result" {
			break
		}
		if answered[b.ToolUseID] {
			return invalid("%s: each tool_use must have a single result. Found multiple `tool_result` blocks with id: %s",
				b.at, clip(b.ToolUseID, 100))
		}
		answered[b.ToolUseID] = true
	}
	var open []string
	for _, call := range calls {
		if !answered[call.ID] {
			open = append(open, call.ID)
		}
	}
	if len(open) > 0 {
		at, _, _ := strings.Cut(calls[0].at, ".content.")
		return invalid("%s: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` "+
			"block must have a corresponding `tool_result` block in the next message.", at, clip(strings.Join(open, ", "), 1000))
	}

	spoken := false
	for _, b := range blocks {
		x.caching = x.caching || b.CacheControl != nil
		switch b.Type {
		case "text":
			if f := checkText(b, b.at); f != nil {
				return f
			}
			spoken = true
			x.hear(b.Text)
		case "image":
			spoken = true
			if f := x.readImage(b); f != nil {
				return f
			}
		case "document":
			spoken = true
			if b.Source == nil {
				return invalid("%s.document.source: Field required", b.at)
			}
			x.say("document", string(b.Source))
		case "tool_result":
			name, ok := names[b.ToolUseID]
			if !ok {
				return invalid("%s: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must "+
					"have a corresponding `tool_use` block in the previous message.", b.at, clip(b.ToolUseID, 100))
			}
			text, f := x.readResult(b)
			if f != nil {
				return f
			}
			x.say("result", b.ToolUseID+text)
			x.results = append(x.results, result{name: name, text: text, failed: b.IsError})
		case "container_upload", "search_result":
			spoken = true
			x.say(b.Type, string(b.Content))
		case "tool_use", "thinking", "redacted_thinking":
			return invalid("%s: `%s` blocks can only be in `assistant` messages", b.at, b.Type)
		default:
			return wrongTag(b.at, b.Type, "document", "image", "text", "tool_result")
		}
	}
	if spoken {
		x.turns++
	}
	return nil
}

// readResult reads the content of a tool result: nothing, a text, or blocks.
func (x *messagesExchange) readResult(b messagesBlock) (string, *fault) {
	var text string
	if len(b.Content) == 0 || json.Unmarshal(b.Content, &text) == nil {
		return text, nil
	}
	var inner []messagesBlock
	if f := decodeBlock(b.Content, &inner, b.at+".tool_result.content"); f != nil {
		return "", f
	}
	var texts []string
	for k, block := range inner {
		block.at = fmt.Sprintf("%s.tool_result.content.%d", b.at, k)
		switch block.Type {
		case "image":
			if f := x.readImage(block); f != nil {
				return "", f
			}
		case "document", "search_result", "tool_reference":
		default:
			if f := checkText(block, block.at); f != nil {
				return "", f
			}
			texts = append(texts, block.Text)
		}
	}
	return strings.Join(texts, "\n"), nil
}

func (x *messagesExchange) readImage(b messagesBlock) *fault {
	var source *messagesSource
	if b.Source != nil {
		if f := decodeBlock(b.Source, &source, b.at+".image.source"); f != nil {
			return f
		}
	}
	if source == nil {
		return invalid("%s.image.source: Field required", b.at)
	}
	switch source.Type {
	case "url":
		if !strings.HasPrefix(source.URL, "https://") && !strings.HasPrefix(source.URL, "http://") {
			return invalid("%s.image.source.url.url: Only HTTPS URLs are supported.", b.at)
		}
		x.see(picture{url: source.URL}, source.URL)
	case "base64":
		if !slices.Contains(pictureTypes, source.MediaType) {
			return invalid("%s.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or "+
				"'image/webp'", b.at)
		}
		if _, err := base64.StdEncoding.DecodeString(source.Data); err != nil || source.Data == "" {
			return invalid("%s.image.source.base64: invalid base64 data", b.at)
		}
		picture, _ := decodePicture(source.MediaType, source.Data)
		x.see(picture, source.Data)
	default:
		return wrongTag(b.at+".image.source", source.Type, "base64", "url")
	}
	return nil
}

func (x *messagesExchange) asked() *turn { return &x.turn }

// block makes the content block of a part, and nil for one that this protocol does not show.
func (x *messagesExchange) block(p part, r *reply) object {
	switch p.kind {
	case thinking:
		shown := p.text
		if x.omitted {
			shown = ""
		}
		signature := ""
		if !p.partial {
			signature = x.signThinking(shown, r)
		}
		return object{"type": "thinking", "thinking": shown, "signature": signature}
	case redacted:
		return object{"type": "redacted_thinking", "data": x.signThinking("", r)}
	case text:
		return object{"type": "text", "text": p.text}
	case call:
		input := json.RawMessage(p.text)
		if p.partial {
			input = json.RawMessage("{}")
		}
		return object{"type": "tool_use", "id": x.callID("toolu_01", p, r.thought()), "name": p.name, "input": input}
	default:
		return nil
	}
}

func (x *messagesExchange) stream(s *stream, r *reply) {
	event := func(kind string, fields object) {
		fields["type"] = kind
		s.send(kind, fields)
	}
	message := x.message(r)
	message["content"], message["stop_reason"], message["stop_details"] = []any{}, nil, nil
	message["stop_sequence"] = nil
	message["usage"].(object)["output_tokens"] = 1
	event("message_start", object{"message": message})

	index := 0
	for _, p := range r.parts {
		block := x.block(p, r)
		if block == nil {
			continue
		}
		delta := func(kind, field string, value any) {
			event("content_block_delta", object{"index": index, "delta": object{"type": kind, field: value}})
		}
		open := maps.Clone(block)
		kind, field := "text_delta", "text"
		switch p.kind {
		case thinking:
			kind, field = "thinking_delta", "thinking"
			open["thinking"], open["signature"] = "", ""
		case text:
			open["text"] = ""
		case call:
			kind, field = "input_json_delta", "partial_json"
			open["input"] = object{}
		}
		event("content_block_start", object{"index": index, "content_block": open})
		if index == 0 {
			event("ping", object{})
		}
		if p.kind == call {
			delta(kind, field, "")
		}
		for _, piece := range pieces(p.text) {
			if !s.next() {
				return
			}
			if p.kind != redacted && !(p.kind == thinking && x.omitted) {
				delta(kind, field, piece)
			}
		}
		if p.partial && r.ending != complete {
			break
		}
		if signature := block["signature"]; p.kind == thinking && signature != "" {
			delta("signature_delta", "signature", signature)
		}
		event("content_block_stop", object{"index": index})
		index++
	}

	switch r.ending {
	case failed:
		s.send("error", x.refusal(r.fault(529), nil, s.w.Header()))
	case complete:
		whole := x.message(r)
		event("message_delta", object{
			"delta": object{
				"stop_reason": whole["stop_reason"], "stop_sequence": whole["stop_sequence"],
				"stop_details": whole["stop_details"],
			},
			"usage": whole["usage"],
		})
		event("message_stop", object{})
	}
}

func (x *messagesExchange) whole(r *reply) any {
	message := x.message(r)
	content := []object{}
	for _, p := range r.parts {
		if block := x.block(p, r); block != nil {
			content = append(content, block)
		}
	}
	message["content"] = content
	return message
}

// message makes a message object without its content.
func (x *messagesExchange) message(r *reply) object {
	reason := map[finish]string{
		stopped: "end_turn", stoppedAt: "stop_sequence", called: "tool_use", lengthy: "max_tokens",
		refused: "refusal", filtered: "refusal",
	}[r.finish]
	var details any
	if reason == "refusal" {
		explanation := "This request was blocked by a safety filter."
		if len(r.parts) > 0 && r.parts[len(r.parts)-1].kind == refusal {
			explanation = r.parts[len(r.parts)-1].text
		}
		details = object{"type": "refusal", "category": nil, "explanation": explanation}
	}
	read, created := 0, 0
	if x.caching {
		read = r.usage.cached
		created = r.usage.input - read - replyOverhead
	}
	return object{
		"id": x.id, "type": "message", "role": "assistant", "model": x.model,
		"stop_reason": reason, "stop_sequence": orNull(r.stop), "stop_details": details,
		"usage": object{
			"input_tokens": r.usage.input - read - created, "output_tokens": r.usage.output,
			"cache_read_input_tokens": read, "cache_creation_input_tokens": created, "service_tier": "standard",
		},
	}
}
