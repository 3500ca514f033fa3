package conformance

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/auto"
	"github.com/prism-shadow/mmsp-go/simulate"
)

// seat is a client type at an endpoint: what it records carries the marks of both.
type seat struct {
	clientType, at string
	model, baseURL string
	issuer         string   // of the proofs that it records
	wire           string   // the protocol of its requests: chat, responses, messages, generate, interactions or mmsp
	answers        *answers // what its provider streams; nil: nothing is recorded here
	ids            [2]string
	options        func(*testing.T, *mmsp.Options)
}

func (s *seat) name() string { return strings.TrimSpace(s.clientType + " " + s.at) }

// answers are the streams of two turns: thinking, a text and two calls, then a last word.
type answers struct {
	turns [2]string
	// proofs says, by the protocol of a request to their issuer, which item carries which of the proofs.
	proofs map[string][]carrier
}

// carrier is an item of a request with one of the proofs of a seat.
type carrier struct {
	proof int
	kind  string // of the item
	text  string // of the item, or the name of the called tool
}

const (
	thought  = "Two things to find out."
	lead     = "Let me look."
	lastWord = "I cannot say more."
	sentinel = "_REDACTED_THINKING"
)

// arguments hold numbers that no float64 does, and what JSON has to escape.
var arguments = [2]string{
	`{"place":"Oslo","id":9007199254740993,"low":-9223372036854775808,"high":18446744073709551615,"ratio":1.10,"note":"a \"b\" <c> & \\ é \u2028"}`,
	`{"deep":{"list":[1,{"n":9007199254740993}],"none":null}}`,
}

var chatTail = `
data: {"choices":[{"index":0,"delta":{"content":"Let me "}}]}

data: {"choices":[{"index":0,"delta":{"content":"look."}}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"$id0","type":"function","function":{"name":"weather","arguments":"$text0"}}]}}]}

data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"$id1","type":"function","function":{"name":"clock","arguments":"$text1"}}]}}]}

data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}

data: [DONE]

`

const chatRefusal = `data: {"choices":[{"index":0,"delta":{"refusal":"I cannot say more."}}]}

data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

data: [DONE]

`

func chatAnswers(field string) *answers {
	return &answers{turns: [2]string{
		`data: {"choices":[{"index":0,"delta":{"` + field + `":"Two things "}}]}

data: {"choices":[{"index":0,"delta":{"` + field + `":"to find out."}}]}
` + chatTail, chatRefusal,
	}}
}

var chatDetails = &answers{
	turns: [2]string{
		`data: {"choices":[{"index":0,"delta":{"reasoning_details":[{"type":"reasoning.text","text":"Two things to find out.","format":"f","index":0}]}}]}

data: {"choices":[{"index":0,"delta":{"reasoning_details":[{"type":"reasoning.text","signature":"$proof0","format":"f","index":0}]}}]}

data: {"choices":[{"index":0,"delta":{"reasoning_details":[{"type":"reasoning.encrypted","data":"$proof1","id":"rs_1","format":"f","index":1}]}}]}
` + chatTail, chatRefusal,
	},
	proofs: map[string][]carrier{"chat": {{0, "thinking", thought}, {1, "thinking", ""}}},
}

// responsesAnswers streams reasoning as a summary with a proof, or as its own text.
func responsesAnswers(kind string) *answers {
	summary, content := `[]`, `[{"type":"reasoning_text","text":"Two things to find out."}]`
	delta := `{"type":"response.reasoning_text.delta","item_id":"rs_1","output_index":0,"content_index":0,"delta":"Two things to find out."}`
	a := &answers{}
	if kind == "summary" {
		summary, content = `[{"type":"summary_text","text":"Two things to find out."}]`, `[]`
		delta = `{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"Two things to find out."}`
		a.proofs = map[string][]carrier{"responses": {{0, "thinking", thought}}}
	}
	a.turns = [2]string{
		`data: {"type":"response.created","response":{"id":"resp_1","status":"in_progress"}}

data: {"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[]}}

data: ` + delta + `

data: {"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":` + summary + `,"content":` + content + `,"encrypted_content":"$proof0"}}

data: {"type":"response.output_item.added","output_index":1,"item":{"type":"message","id":"msg_1","role":"assistant","phase":"commentary","content":[]}}

data: {"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":"Let me look."}

data: {"type":"response.output_item.done","output_index":1,"item":{"type":"message","id":"msg_1","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"Let me look."}]}}

data: {"type":"response.output_item.added","output_index":2,"item":{"type":"function_call","id":"fc_1","call_id":"$id0","name":"weather","arguments":""}}

data: {"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":2,"delta":"$text0"}

data: {"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","id":"fc_1","call_id":"$id0","name":"weather","arguments":"$text0"}}

data: {"type":"response.output_item.added","output_index":3,"item":{"type":"function_call","id":"fc_2","call_id":"$id1","name":"clock","arguments":""}}

data: {"type":"response.function_call_arguments.delta","item_id":"fc_2","output_index":3,"delta":"$text1"}

data: {"type":"response.output_item.done","output_index":3,"item":{"type":"function_call","id":"fc_2","call_id":"$id1","name":"clock","arguments":"$text1"}}

data: {"type":"response.completed","response":{"id":"resp_1","status":"completed","usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}}

`,
		`data: {"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"msg_2","role":"assistant","content":[]}}

data: {"type":"response.refusal.delta","item_id":"msg_2","output_index":0,"content_index":0,"delta":"I cannot say more."}

data: {"type":"response.completed","response":{"id":"resp_2","status":"completed","usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}}

`,
	}
	return a
}

const messagesStart = `event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}

`

var messagesAnswers = &answers{
	turns: [2]string{
		messagesStart + `event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Two things to find out."}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"$proof0"}}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"$proof1"}}

event: content_block_start
data: {"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"Let me look."}}

event: content_block_start
data: {"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"$id0","name":"weather","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"$text0"}}

event: content_block_start
data: {"type":"content_block_start","index":4,"content_block":{"type":"tool_use","id":"$id1","name":"clock","input":$object1}}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}

event: message_stop
data: {"type":"message_stop"}

`,
		messagesStart + `event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"I cannot say more."}}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}}

event: message_stop
data: {"type":"message_stop"}

`,
	},
	proofs: map[string][]carrier{"messages": {{0, "thinking", thought}, {1, "redacted", ""}}},
}

// generateAnswers signs the first call of a turn with calls, and the text of one without.
func generateAnswers(id0, id1 string) *answers {
	return &answers{
		turns: [2]string{
			`data: {"candidates":[{"content":{"role":"model","parts":[{"text":"Two things to find out.","thought":true}]}}]}

data: {"candidates":[{"content":{"role":"model","parts":[{"text":"Let me look."}]}}]}

data: {"candidates":[{"content":{"role":"model","parts":[{"functionCall":{` + id0 + `"name":"weather","args":$object0},"thoughtSignature":"$proof0"},{"functionCall":{` + id1 + `"name":"clock","args":$object1}}]}}]}

data: {"candidates":[{"content":{"role":"model","parts":[{"text":""}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1}}

`,
			`data: {"candidates":[{"content":{"role":"model","parts":[{"text":"I cannot say more.","thoughtSignature":"$proof1"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1}}

`,
		},
		// Interactions has signatures on thoughts only: one of its own stands before what was signed.
		proofs: map[string][]carrier{
			"generate":     {{0, "call", "weather"}, {1, "text", lastWord}},
			"interactions": {{0, "thinking", ""}, {1, "thinking", ""}},
		},
	}
}

var interactionsAnswers = &answers{
	turns: [2]string{
		`data: {"event_type":"step.start","index":0,"step":{"type":"thought"}}

data: {"event_type":"step.delta","index":0,"delta":{"type":"thought_summary","content":{"type":"text","text":"Two things to find out."}}}

data: {"event_type":"step.delta","index":0,"delta":{"type":"thought_signature","signature":"$proof0"}}

data: {"event_type":"step.start","index":1,"step":{"type":"model_output"}}

data: {"event_type":"step.delta","index":1,"delta":{"type":"text","text":"Let me look."}}

data: {"event_type":"step.start","index":2,"step":{"type":"function_call","id":"$id0","name":"weather","arguments":{}}}

data: {"event_type":"step.delta","index":2,"delta":{"type":"arguments_delta","arguments":"$text0"}}

data: {"event_type":"step.start","index":3,"step":{"type":"function_call","id":"$id1","name":"clock","arguments":$object1}}

data: {"event_type":"interaction.completed","interaction":{"id":"i_1","status":"requires_action","usage":{"total_input_tokens":1,"total_output_tokens":1}}}

`,
		`data: {"event_type":"step.start","index":0,"step":{"type":"thought"}}

data: {"event_type":"step.delta","index":0,"delta":{"type":"thought_signature","signature":"$proof1"}}

data: {"event_type":"step.start","index":1,"step":{"type":"model_output"}}

data: {"event_type":"step.delta","index":1,"delta":{"type":"text","text":"I cannot say more."}}

data: {"event_type":"interaction.completed","interaction":{"id":"i_2","status":"completed","usage":{"total_input_tokens":1,"total_output_tokens":1}}}

`,
	},
	// generateContent has signatures on what follows a thought.
	proofs: map[string][]carrier{
		"interactions": {{0, "thinking", thought}, {1, "thinking", ""}},
		"generate":     {{0, "call", "weather"}, {1, "text", lastWord}},
	},
}

// mmspAnswers come from a server whose provider nobody here knows.
var mmspAnswers = &answers{turns: [2]string{
	publicStream(
		&mmsp.Item{Type: mmsp.ThinkingDone, Thinking: thought, Fidelity: mmsp.Fidelity(`{"signature":"$proof0","issuer":"elsewhere.test"}`)},
		&mmsp.Item{Type: mmsp.TextDone, Text: lead},
		&mmsp.Item{Type: mmsp.ToolCallDone, ToolCallID: "$id0", Name: "weather", Arguments: arguments[0]},
		&mmsp.Item{Type: mmsp.ToolCallDone, ToolCallID: "$id1", Name: "clock", Arguments: arguments[1]},
	),
	publicStream(&mmsp.Item{Type: mmsp.TextDone, Text: lastWord, Fidelity: mmsp.Fidelity(`{"refusal":true}`)}),
}}

// publicStream writes the items as a server streams them, each in one delta.
func publicStream(items ...*mmsp.Item) string {
	var b []byte
	send := func(e mmsp.Event) {
		e.CreatedAt = 1
		b = append(e.AppendJSON(append(b, "data: "...)), "\n\n"...)
	}
	for _, item := range items {
		delta := *item
		delta.Type = mmsp.ItemType(item.Type.Kind() + ".delta")
		send(mmsp.Event{Type: mmsp.EventDelta, Item: delta})
		send(mmsp.Event{Type: mmsp.EventDelta, Item: *item})
	}
	send(mmsp.Event{Type: mmsp.EventStop, FinishReason: mmsp.FinishStop, Usage: &mmsp.Usage{}})
	return string(b) + "data: [DONE]\n\n"
}

// seats has one of every client type at least. Official ones sit at their vendors, others elsewhere, and some beside an
// official one, whose proofs they share.
var seats = []seat{
	{clientType: "openai-official", model: "gpt-6.1-sol", issuer: "openai", wire: "responses", answers: responsesAnswers("summary"), ids: [2]string{"call_a1", "call_a2"}},
	{clientType: "anthropic-official", model: "claude-sonnet-5-5", issuer: "anthropic", wire: "messages", answers: messagesAnswers, ids: [2]string{"toolu_1", "toolu_2"}},
	{clientType: "anthropic-official", at: "on Bedrock", model: "anthropic.claude-sonnet-5-5-v1:0", baseURL: "bedrock://us-east-1", issuer: "anthropic@bedrock", wire: "messages", options: func(_ *testing.T, o *mmsp.Options) {
		o.APIKey = mmsp.NewSecret("access,secret")
	}},
	{clientType: "google-official", model: "gemini-3.8-flash", issuer: "google", wire: "interactions", answers: interactionsAnswers, ids: [2]string{"9f3k", "9f3l"}},
	{clientType: "zai-official", model: "glm-5.3-flash", issuer: "zai", wire: "chat", answers: chatAnswers("reasoning_content"), ids: [2]string{"call_-7713", "call_-7714"}},
	{clientType: "moonshot-official", model: "kimi-k3", issuer: "moonshot", wire: "chat", answers: chatAnswers("reasoning_content"), ids: [2]string{"functions.weather:0", "functions.clock:1"}},
	{clientType: "moonshot-official", at: "elsewhere", model: "kimi-k3", baseURL: "https://router.test/v1", issuer: "router.test", wire: "chat", answers: chatDetails, ids: [2]string{"functions.weather:0", "functions.clock:1"}},
	{clientType: "deepseek-official", model: "deepseek-flash", issuer: "deepseek", wire: "responses", answers: responsesAnswers("text"), ids: [2]string{"call_d1", "call_d2"}},
	{clientType: "minimax-official", model: "MiniMax-M3", issuer: "minimax", wire: "responses", answers: responsesAnswers("text"), ids: [2]string{"call_m1", "call_m2"}},
	{clientType: "openai-responses", model: "m", baseURL: "https://responses.test/v1", issuer: "responses.test", wire: "responses", answers: responsesAnswers("summary"), ids: [2]string{"call_r1", "call_r2"}},
	{clientType: "openai-responses", at: "at OpenAI", model: "m", issuer: "openai", wire: "responses", answers: responsesAnswers("summary"), ids: [2]string{"call_r1", "call_r2"}},
	{clientType: "openai-chat", model: "m", baseURL: "https://chat.test/v1", issuer: "chat.test", wire: "chat", answers: chatAnswers("reasoning_content"), ids: [2]string{"call c/1", "call c/2"}},
	{clientType: "openai-chat", at: "with details", model: "m", baseURL: "https://router.test/v1", issuer: "router.test", wire: "chat", answers: chatDetails, ids: [2]string{"tool_1", "tool_2"}},
	{clientType: "openai-chat-vllm-adapter", model: "qwen3.6-35b-a3b", baseURL: "http://vllm.test/v1", issuer: "vllm.test", wire: "chat", answers: chatAnswers("reasoning"), ids: [2]string{"chatcmpl-tool-1", "chatcmpl-tool-2"}},
	{clientType: "ant-messages", model: "m", baseURL: "https://messages.test", issuer: "messages.test", wire: "messages", answers: messagesAnswers, ids: [2]string{"call_1", "call_2"}},
	{clientType: "ant-messages", at: "at Anthropic", model: "m", issuer: "anthropic", wire: "messages", answers: messagesAnswers, ids: [2]string{"toolu_1", "toolu_2"}},
	{clientType: "google-genai", model: "gemini-3.8-flash", issuer: "google", wire: "generate", answers: generateAnswers(`"id":"$id0",`, `"id":"$id1",`), ids: [2]string{"g1", "g2"}},
	{clientType: "google-genai", at: "without ids", model: "gemini-3.8-flash", baseURL: "https://gemini.test", issuer: "gemini.test", wire: "generate", answers: generateAnswers("", ""), ids: [2]string{"weather", "clock"}},
	{clientType: "google-genai", at: "on Vertex", model: "gemini-3.8-flash", issuer: "google@vertex", wire: "generate", options: func(_ *testing.T, o *mmsp.Options) {
		o.APIKey = mmsp.NewSecret(simulate.Vertex(simulate.Options{}).ServiceAccountKey("https://vertex.test"))
	}},
	{clientType: "mmsp", model: "m", baseURL: "https://mmsp.test/v1", wire: "mmsp", issuer: "elsewhere.test", answers: mmspAnswers, ids: [2]string{"x.y:z/1", "x.y:z/2"}},
}

// provider builds the client of a seat. Nothing leaves the process.
func (s *seat) provider(t *testing.T, types map[string]auto.Type) mmsp.Provider {
	t.Helper()
	o := mmsp.Options{
		Model: s.model, BaseURL: s.baseURL, APIKey: mmsp.NewSecret("key"), HTTPClient: &http.Client{Transport: canned{}},
		HTTP: mmsp.HTTPOptions{MaxRetries: new(0)}, Getenv: func(string) string { return "" },
	}
	if s.options != nil {
		s.options(t, &o)
	}
	p, err := types[s.clientType].New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// proofs of a seat are texts that occur nowhere else: base64 of some length.
func (s *seat) proofs() (all [2]string) {
	for i := range all {
		all[i] = fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, s.name(), i)))
	}
	return all
}

// record reads the two turns of a seat with its client and makes a conversation of them.
func (s *seat) record(t *testing.T, p mmsp.Provider) []mmsp.Message {
	t.Helper()
	proofs := s.proofs()
	replace := []string{"$proof0", proofs[0], "$proof1", proofs[1], "$id0", s.ids[0], "$id1", s.ids[1]}
	for i := range arguments {
		quoted, _ := json.Marshal(arguments[i])
		replace = append(replace, fmt.Sprint("$object", i), arguments[i], fmt.Sprint("$text", i), string(quoted[1:len(quoted)-1]))
	}
	stream := strings.NewReplacer(replace...)
	turn := func(wire string) mmsp.Message {
		o := run(withAnswer(t, &answer{status: http.StatusOK, contentType: "text/event-stream", body: []byte(stream.Replace(wire))}), p)
		if o.broken != nil || o.err != nil {
			t.Fatal(o.broken, o.err)
		}
		message := mmsp.AssistantMessage()
		for i := range o.events {
			if item := o.events[i].Item; item.Type != "" && !item.Type.IsDelta() {
				message.ContentItems = append(message.ContentItems, item)
			}
		}
		return message
	}
	first, last := turn(s.answers.turns[0]), turn(s.answers.turns[1])
	kinds := ""
	for _, item := range first.ContentItems {
		kinds += item.Type.Kind() + " "
	}
	calls := first.ToolCalls()
	if !regexp.MustCompile(`^(thinking )+text tool_call tool_call $`).MatchString(kinds) || calls[0].ToolCallID != s.ids[0] || calls[1].ToolCallID != s.ids[1] {
		t.Fatalf("recorded %s%v", kinds, calls)
	}
	if !slices.ContainsFunc(last.ContentItems, func(item mmsp.Item) bool { return strings.Contains(string(item.Fidelity), "refusal") }) {
		last.ContentItems = append(last.ContentItems, mmsp.Item{Type: mmsp.TextDone, Text: "Nor this.", Fidelity: mmsp.Fidelity(`{"refusal":true}`)})
	}
	last.ContentItems = append(last.ContentItems, mmsp.Thinking("On second thought."), mmsp.Text("At last."))
	failed := mmsp.ToolResult(s.ids[1], "no clock")
	failed.IsError = true
	return []mmsp.Message{
		mmsp.UserMessage(mmsp.Text("How is it in Oslo?")),
		first,
		mmsp.UserMessage(mmsp.ToolResult(s.ids[0], "21 °C"), failed, mmsp.Text("And here?"), mmsp.ImageURL("data:image/png;base64,iVBORw0KGgo=")),
		last,
		mmsp.UserMessage(mmsp.Text("Why?")),
	}
}

// entry is an item as a request has it.
type entry struct {
	kind      string // text, thinking, redacted, call, result or image
	role      string
	text      string // of a call the name of the tool
	id        string
	arguments string
	proofs    []string
	phase     string
}

// said is the entry without what belongs to its provider.
func (e *entry) said() string { return strings.TrimSpace(e.role + " " + e.kind + " " + e.text) }

// wanted are the items of a conversation as a request is to have them. Chat has the thinking of a turn in one place.
func wanted(wire string, messages []mmsp.Message) (all []entry) {
	for _, m := range messages {
		items := slices.Clone(m.ContentItems)
		if wire == "chat" {
			thinks := func(item mmsp.Item) bool { return item.Type == mmsp.ThinkingDone }
			rest := slices.DeleteFunc(slices.Clone(items), thinks)
			items = append(slices.DeleteFunc(items, func(item mmsp.Item) bool { return !thinks(item) }), rest...)
		}
		for _, item := range items {
			e := entry{kind: item.Type.Kind(), role: string(m.Role), text: item.Text}
			switch item.Type {
			case mmsp.ThinkingDone:
				if e.text = item.Thinking; e.text == sentinel {
					e.kind, e.text = "redacted", ""
				}
			case mmsp.ToolCallDone:
				e.kind, e.text, e.id, e.arguments = "call", item.Name, item.ToolCallID, item.Arguments
			case mmsp.ToolResultDone:
				e.kind, e.id = "result", item.ToolCallID
			case mmsp.ImageURLDone:
				e.kind = "image"
			}
			all = append(all, e)
		}
	}
	return all
}

// members are the names under which the protocols hold their messages.
var members = map[string]string{"chat": "messages", "responses": "input", "messages": "messages", "generate": "contents", "interactions": "input", "mmsp": "messages"}

// split takes the messages out of a request.
func split(t *testing.T, wire string, body []byte) (messages []json.RawMessage, rest string) {
	t.Helper()
	var request map[string]json.RawMessage
	if err := json.Unmarshal(body, &request); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	if err := json.Unmarshal(request[members[wire]], &messages); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	request[members[wire]] = nil
	text, _ := json.Marshal(request)
	return messages, string(text)
}

// readers read the messages of a request with nothing but the documents of its protocol.
var readers = map[string]func(message object) []entry{
	"chat":         readChat,
	"responses":    readResponses,
	"messages":     readMessages,
	"generate":     readGenerate,
	"interactions": readInteractions,
}

func list(v any) (all []object) {
	elements, _ := v.([]any)
	for _, element := range elements {
		o, _ := element.(map[string]any)
		all = append(all, o)
	}
	return all
}

func compact(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

func sub(o object, name string) object {
	inner, _ := o[name].(map[string]any)
	return inner
}

func some(proofs ...string) []string {
	return slices.DeleteFunc(proofs, func(proof string) bool { return proof == "" })
}

func readChat(m object) (all []entry) {
	role := m.string("role")
	if role == "tool" {
		return []entry{{kind: "result", role: "user", text: m.string("content"), id: m.string("tool_call_id")}}
	}
	if role == "system" {
		return nil
	}
	if text := m.string("reasoning_content"); text != "" {
		all = append(all, entry{kind: "thinking", role: role, text: text})
	} else if text := m.string("reasoning"); text != "" {
		all = append(all, entry{kind: "thinking", role: role, text: text})
	}
	for _, detail := range list(m["reasoning_details"]) {
		all = append(all, entry{kind: "thinking", role: role, text: detail.string("text") + detail.string("summary"), proofs: some(detail.string("signature"), detail.string("data"))})
	}
	if text := m.string("content"); text != "" {
		all = append(all, entry{kind: "text", role: role, text: text})
	}
	for _, part := range list(m["content"]) {
		switch part.string("type") {
		case "text":
			all = append(all, entry{kind: "text", role: role, text: part.string("text")})
		case "image_url":
			all = append(all, entry{kind: "image", role: role})
		default:
			all = append(all, entry{kind: "unknown", text: compact(part)})
		}
	}
	for _, call := range list(m["tool_calls"]) {
		function := sub(call, "function")
		all = append(all, entry{kind: "call", role: role, text: function.string("name"), id: call.string("id"), arguments: function.string("arguments")})
	}
	return all
}

func readResponses(m object) (all []entry) {
	switch m.string("type") {
	case "message":
		for _, part := range list(m["content"]) {
			e := entry{kind: "text", role: m.string("role"), text: part.string("text"), phase: m.string("phase")}
			if part.string("type") == "input_image" {
				e.kind = "image"
			}
			all = append(all, e)
		}
	case "reasoning":
		text := ""
		for _, part := range slices.Concat(list(m["summary"]), list(m["content"])) {
			text += part.string("text")
		}
		all = append(all, entry{kind: "thinking", role: "assistant", text: text, proofs: some(m.string("encrypted_content"), m.string("signature"))})
	case "function_call":
		all = append(all, entry{kind: "call", role: "assistant", text: m.string("name"), id: m.string("call_id"), arguments: m.string("arguments")})
	case "function_call_output":
		all = append(all, entry{kind: "result", role: "user", text: m.string("output"), id: m.string("call_id")})
	default:
		all = append(all, entry{kind: "unknown", text: compact(m)})
	}
	return all
}

func readMessages(m object) (all []entry) {
	for _, block := range list(m["content"]) {
		e := entry{kind: block.string("type"), role: m.string("role"), text: block.string("text")}
		switch e.kind {
		case "text", "image":
		case "thinking":
			e.text, e.proofs = block.string("thinking"), some(block.string("signature"))
		case "redacted_thinking":
			e.kind, e.proofs = "redacted", some(block.string("data"))
		case "tool_use":
			e.kind, e.text, e.id, e.arguments = "call", block.string("name"), block.string("id"), compact(block["input"])
		case "tool_result":
			e.kind, e.id = "result", block.string("tool_use_id")
			for _, inner := range list(block["content"]) {
				e.text += inner.string("text")
			}
		default:
			e.text = compact(block)
		}
		all = append(all, e)
	}
	return all
}

func readGenerate(m object) (all []entry) {
	role := map[string]string{"user": "user", "model": "assistant"}[m.string("role")]
	for _, part := range list(m["parts"]) {
		e := entry{kind: "text", role: role, text: part.string("text"), proofs: some(part.string("thoughtSignature"))}
		call, response := sub(part, "functionCall"), sub(part, "functionResponse")
		switch {
		case call != nil:
			e.kind, e.text, e.id, e.arguments = "call", call.string("name"), call.string("id"), compact(call["args"])
		case response != nil:
			e.kind, e.id = "result", response.string("id")
			e.text = sub(response, "response").string("result") + sub(response, "response").string("error")
		case part["thought"] == true:
			e.kind = "thinking"
		case part["inlineData"] != nil:
			e.kind = "image"
		}
		all = append(all, e)
	}
	return all
}

func readInteractions(m object) (all []entry) {
	texts := func(role, kind string, contents any) {
		for _, content := range list(contents) {
			e := entry{kind: kind, role: role, text: content.string("text")}
			if content.string("type") == "image" {
				e.kind = "image"
			}
			all = append(all, e)
		}
	}
	switch m.string("type") {
	case "user_input":
		texts("user", "text", m["content"])
	case "model_output":
		texts("assistant", "text", m["content"])
	case "thought":
		if texts("assistant", "thinking", m["summary"]); len(all) == 0 {
			all = []entry{{kind: "thinking", role: "assistant"}}
		}
		all[len(all)-1].proofs = some(m.string("signature"))
	case "function_call":
		all = append(all, entry{kind: "call", role: "assistant", text: m.string("name"), id: m.string("id"), arguments: compact(m["arguments"])})
	case "function_result":
		all = append(all, entry{kind: "result", role: "user", text: fmt.Sprint(m["result"]), id: m.string("call_id")})
	default:
		all = append(all, entry{kind: "unknown", text: compact(m)})
	}
	return all
}

// TestCrossing continues a conversation that was recorded through one client through every other. What was said stays, in
// its order and to the digit; a proof goes back to its issuer alone, to the item that it belongs to.
func TestCrossing(t *testing.T) {
	types := map[string]auto.Type{}
	for _, typ := range auto.Types() {
		types[typ.Name] = typ
		seated := slices.ContainsFunc(seats, func(s seat) bool { return s.clientType == typ.Name && s.answers != nil })
		if !seated && typ.Name != "openai-embedding" {
			t.Errorf("%s has no seat", typ.Name)
		}
	}
	config := &mmsp.Config{SystemPrompt: new("Be brief."), Tools: []mmsp.Tool{
		{Name: "weather", Description: "tells the weather", Parameters: json.RawMessage(`{"type":"object","properties":{"place":{"type":"string"}}}`)},
		{Name: "clock", Description: "tells the time", Parameters: json.RawMessage(`{"type":"object"}`)},
	}}
	providers := map[string]mmsp.Provider{}
	for i := range seats {
		providers[seats[i].name()] = seats[i].provider(t, types)
	}
	for _, from := range seats {
		if from.answers == nil {
			continue
		}
		messages := from.record(t, providers[from.name()])
		for _, to := range seats {
			t.Run(from.name()+" to "+to.name(), func(t *testing.T) {
				provider := providers[to.name()]
				prepare := func(messages []mmsp.Message) []byte {
					t.Helper()
					before := mmsp.AppendStreamRequest(nil, "", messages, config)
					request, err := provider.Prepare(t.Context(), messages, config)
					if err != nil {
						t.Fatal(err)
					}
					if after := mmsp.AppendStreamRequest(nil, "", messages, config); string(before) != string(after) {
						t.Error("the caller's messages are not what they were")
					}
					return request.Body
				}
				body := prepare(messages)

				// The same input is the same bytes, and a longer conversation begins with those of a shorter one.
				for range 4 {
					if again := prepare(messages); string(again) != string(body) {
						t.Errorf("the same input, other bytes:\n%s\n%s", body, again)
					}
				}
				sent, rest := split(t, to.wire, body)
				for turns := 1; turns < len(messages); turns += 2 {
					earlier, earlierRest := split(t, to.wire, prepare(messages[:turns]))
					if earlierRest != rest {
						t.Errorf("after %d messages beside them\n%s\nthen\n%s", turns, earlierRest, rest)
					}
					for i := range earlier {
						// Marks say where a cached prefix ends; they are no part of it.
						if i >= len(sent) || string(cacheMark.ReplaceAll(earlier[i], nil)) != string(cacheMark.ReplaceAll(sent[i], nil)) {
							t.Errorf("after %d messages\n%s\nthen\n%s", turns, earlier, sent)
							break
						}
					}
				}
				if to.wire == "mmsp" { // forwards what it was given
					if whole := mmsp.AppendStreamRequest(nil, to.model, messages, config); string(whole) != string(body) {
						t.Errorf("sent\n%s\nwant\n%s", body, whole)
					}
					return
				}

				var got []entry
				for _, raw := range sent {
					var message object
					if err := json.Unmarshal(raw, &message); err != nil {
						t.Fatal(err)
					}
					got = append(got, readers[to.wire](message)...)
				}
				compareCrossing(t, &from, &to, wanted(to.wire, messages), got)
				var carriers []carrier
				if from.issuer == to.issuer {
					carriers = from.answers.proofs[to.wire]
				}
				for i, proof := range from.proofs() {
					at := slices.IndexFunc(carriers, func(c carrier) bool { return c.proof == i })
					if at < 0 {
						if strings.Contains(string(body), proof) {
							t.Errorf("proof %d of another is sent: %s", i, body)
						}
						continue
					}
					c := carriers[at]
					if !slices.ContainsFunc(got, func(e entry) bool {
						return e.kind == c.kind && e.text == c.text && slices.Contains(e.proofs, proof)
					}) || slices.ContainsFunc(got, func(e entry) bool { return e.kind != c.kind && slices.Contains(e.proofs, proof) }) {
						t.Errorf("proof %d does not go back with the %s %q: %s", i, c.kind, c.text, body)
					}
				}
				for _, private := range []string{sentinel, `"fidelity"`, `"issuer"`, `"reasoning_field"`, `"channel"`, from.issuer + `"`} {
					if strings.Contains(string(body), private) {
						t.Errorf("%s is sent: %s", private, body)
					}
				}
				// The phase of a text is a word of Responses, which the clients of its vendor's models alone record.
				if phased := strings.Contains(string(body), "commentary"); phased && (to.wire != "responses" || from.wire != "responses") {
					t.Errorf("a phase is sent: %s", body)
				} else if from.wire == "responses" && from.issuer == to.issuer && len(carriers) > 0 && !phased {
					t.Errorf("the phase is not sent: %s", body)
				}
			})
		}
	}
}

var cacheMark = regexp.MustCompile(`,"cache_control":\{[^}]*\}`)

var restricted = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

// compareCrossing judges what a request says of a conversation. Thinking may be left out where another did it, and never
// stands elsewhere or as something else.
func compareCrossing(t *testing.T, from, to *seat, want, got []entry) {
	t.Helper()
	// outline are the entries but for thinking, and the thinking before each.
	outline := func(all []entry) (others []entry, thinking map[int]string) {
		thinking = map[int]string{}
		for _, e := range all {
			if e.kind == "thinking" || e.kind == "redacted" {
				thinking[len(others)] += e.text
			} else {
				others = append(others, e)
			}
		}
		return others, thinking
	}
	others, thinking := outline(got)
	wantOthers, wantThinking := outline(want)
	sameEntry := func(a, b entry) bool {
		return a.said() == b.said() && (a.kind != "call" || sameJSON([]byte(a.arguments), []byte(b.arguments)))
	}
	if !slices.EqualFunc(others, wantOthers, sameEntry) {
		t.Errorf("sent\n%+v\nwant\n%+v", others, wantOthers)
		return
	}
	for _, at := range slices.Sorted(maps.Keys(thinking)) {
		if text := thinking[at]; text != "" && text != wantThinking[at] {
			t.Errorf("thinking before entry %d: %q, want %q", at, text, wantThinking[at])
		}
	}
	if text, want := thinking[1], wantThinking[1]; from.name() == to.name() && text != want { // of the turn with the calls
		t.Errorf("thinking %q, want %q", text, want)
	}

	var calls, results []string
	for i := range others {
		e, id := &others[i], wantOthers[i].id
		switch {
		case e.kind == "call":
			calls = append(calls, e.id)
		case e.kind == "result":
			results = append(results, e.id)
		default:
			continue
		}
		switch idless := from.ids[0] == "weather"; {
		case to.wire == "messages" && !restricted.MatchString(e.id):
			t.Errorf("the id %q", e.id)
		case to.wire == "messages" && !restricted.MatchString(id): // it had to be written otherwise
		case idless && e.id == "" && (to.wire == "generate" || to.wire == "interactions"):
		case e.id != id:
			t.Errorf("the id %q of %q", e.id, id)
		}
	}
	if !slices.Equal(calls, results) || len(calls) != 2 || calls[0] == calls[1] && calls[0] != "" {
		t.Errorf("calls %q, results %q", calls, results)
	}
}

// TestRedactedText: what stands for thinking that a provider keeps to itself is never sent as its text, also where an older
// history does not say whose it is.
func TestRedactedText(t *testing.T) {
	types := map[string]auto.Type{}
	for _, typ := range auto.Types() {
		types[typ.Name] = typ
	}
	for _, to := range seats {
		if to.wire == "mmsp" {
			continue
		}
		provider := to.provider(t, types)
		for _, fidelity := range []string{"", `{"signature":"UkVE"}`, `{"signature":"UkVE","issuer":"elsewhere.test"}`} {
			redacted := mmsp.Item{Type: mmsp.ThinkingDone, Thinking: sentinel, Fidelity: mmsp.Fidelity(fidelity)}
			messages := []mmsp.Message{
				mmsp.UserMessage(mmsp.Text("Hi.")), mmsp.AssistantMessage(redacted, mmsp.Text("Hello."), redacted), mmsp.UserMessage(mmsp.Text("Bye.")),
			}
			request, err := provider.Prepare(t.Context(), messages, &mmsp.Config{})
			if err != nil || strings.Contains(string(request.Body), sentinel) || !strings.Contains(string(request.Body), "Hello.") {
				t.Errorf("%s, %s: %s, %v", to.name(), fidelity, request.Body, err)
			}
			if kept := strings.Contains(string(request.Body), "UkVE"); kept && to.wire != "messages" || kept && strings.Contains(fidelity, "elsewhere") {
				t.Errorf("%s, %s: %s", to.name(), fidelity, request.Body)
			}
		}
	}
}
