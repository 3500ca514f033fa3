package gateway

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/gateway/config"
	"github.com/prism-shadow/mmsp-go/ingress"
	"github.com/prism-shadow/mmsp-go/internal/carry"
)

// callerSees lets a translator see the calls of an answer and returns what the caller gets of them.
func callerSees(t *translator, calls ...mmsp.Item) (seen []mmsp.Item) {
	for _, call := range calls {
		delta := mmsp.Event{Item: call}
		delta.Item.Type = mmsp.ToolCallDelta
		t.out(&delta)
		done := mmsp.Event{Item: call}
		t.out(&done)
		if delta.Item.ToolCallID != done.Item.ToolCallID || delta.Item.Name != done.Item.Name {
			panic("a delta and its item differ")
		}
		seen = append(seen, done.Item)
	}
	return seen
}

// TestIDsComeBack sends calls to a caller and back: the provider gets the ids that it gave, or ones as good.
func TestIDsComeBack(t *testing.T) {
	long := "call_" + strings.Repeat("x", 80) + "__thought__c2ln"
	for _, tt := range []struct {
		name     string
		upstream carry.Protocol
		caller   carry.Protocol
		ids      []string // of calls of the function f; "f": none was given
		back     []string // "": any that differs from the others
	}{
		{"plain ids", carry.Chat, carry.Messages, []string{"call_1", "toolu_2"}, []string{"call_1", "toolu_2"}},
		{"an alphabet of its own", carry.Chat, carry.Responses, []string{"functions.f:0", "mmx_1", "a b"}, []string{"functions.f:0", "mmx_1", "a b"}},
		{"Chat callers take anything", carry.Chat, carry.Chat, []string{"functions.f:0", long}, []string{"functions.f:0", long}},
		{"no ids", carry.GenerateContent, carry.Messages, []string{"f", "f"}, []string{"f", "f"}},
		{"one id for two", carry.Chat, carry.Messages, []string{"fn:1", "fn:1"}, []string{"fn:1", ""}},
		{"too long", carry.Chat, carry.Responses, []string{long, long + "2"}, []string{long, long + "2"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			peer := carry.Peer{Protocol: tt.upstream}
			var calls []mmsp.Item
			for i, id := range tt.ids {
				calls = append(calls, mmsp.ToolCall(id, "f", fmt.Sprint(`{"n":`, i, `}`)))
			}
			out := newTranslator(peer, "", tt.caller)
			seen := callerSees(out, calls...)
			request := &ingress.Request{Messages: []mmsp.Message{mmsp.AssistantMessage(seen...), {Role: mmsp.RoleUser}}}
			given := map[string]bool{}
			for i, call := range seen {
				if given[call.ToolCallID] || tt.caller != carry.Chat && !plainID.MatchString(call.ToolCallID) {
					t.Errorf("the caller gets %q", call.ToolCallID)
				}
				given[call.ToolCallID] = true
				// Answered the other way around.
				request.Messages[1].ContentItems = slices.Insert(request.Messages[1].ContentItems, 0, mmsp.ToolResult(call.ToolCallID, fmt.Sprint(i)))
			}
			request.Paths = [][]string{make([]string, len(seen)), make([]string, len(seen))}
			orderResults(request)
			newTranslator(peer, "", tt.caller).in(request, out.given)
			for i, want := range tt.back {
				call, result := request.Messages[0].ContentItems[i], request.Messages[1].ContentItems[i]
				if want != "" && call.ToolCallID != want || want == "" && call.ToolCallID == tt.ids[i] {
					t.Errorf("call %d comes back as %q", i, call.ToolCallID)
				}
				if result.ToolCallID != call.ToolCallID || result.Text != fmt.Sprint(i) {
					t.Errorf("call %d gets the result %+v", i, result)
				}
			}
		})
	}
}

// TestIDsThatLookEscaped: what reads like this server's own writing, and is the provider's, comes back as it was in every
// protocol, and callers that may get any id get the provider's.
func TestIDsThatLookEscaped(t *testing.T) {
	for _, caller := range []carry.Protocol{carry.Responses, carry.Chat, carry.Messages, carry.GenerateContent} {
		for id, plain := range map[string]bool{
			"look:0": false, "mmx_look_3a0": false, "mmx_look": false, "mmx_mmx__look__3a0": false, "mmh_abc": false,
			"call_1": true, "look_mmaaaaaaaaaa": true,
		} {
			peer := carry.Peer{Protocol: carry.Chat}
			out := newTranslator(peer, "", caller)
			seen := callerSees(out, mmsp.ToolCall(id, "f", "{}"))
			visible := seen[0].ToolCallID
			if anything := caller == carry.Chat || caller == carry.GenerateContent; (anything || plain) != (visible == id) {
				t.Errorf("%s: the provider's %q is the caller's %q", caller, id, visible)
			}
			request := &ingress.Request{Messages: []mmsp.Message{mmsp.AssistantMessage(seen...)}}
			newTranslator(peer, "", caller).in(request, out.given)
			if back := request.Messages[0].ContentItems[0].ToolCallID; back != id {
				t.Errorf("%s: the provider's %q is the caller's %q and comes back as %q", caller, id, visible, back)
			}
		}
		// A call without an id whose function is called like an escaped one.
		peer := carry.Peer{Protocol: carry.GenerateContent}
		out := newTranslator(peer, "", caller)
		seen := callerSees(out, mmsp.ToolCall("mmx_look_3a0", "mmx_look_3a0", "{}"))
		request := &ingress.Request{Messages: []mmsp.Message{mmsp.AssistantMessage(seen...)}}
		newTranslator(peer, "", caller).in(request, out.given)
		if back := request.Messages[0].ContentItems[0].ToolCallID; back != "mmx_look_3a0" {
			t.Errorf("%s: a call without an id comes back with %q", caller, back)
		}
	}
}

// TestIDsStayUnique: a provider that numbers the calls of every turn from 0 gives no id twice to a caller.
func TestIDsStayUnique(t *testing.T) {
	history := &ingress.Request{Messages: []mmsp.Message{mmsp.AssistantMessage(mmsp.ToolCall("call_0", "f", "{}"))}}
	out := newTranslator(carry.Peer{Protocol: carry.Chat}, "", carry.Chat)
	out.in(history, nil)
	if seen := callerSees(out, mmsp.ToolCall("call_0", "f", "{}")); seen[0].ToolCallID == "call_0" {
		t.Error("an id of the history is given again")
	}
}

// TestHistoryIDs: what a history calls its calls fits the provider, which gets no id twice where it refuses that. Results
// follow their calls, and a history that goes on begins as it did.
func TestHistoryIDs(t *testing.T) {
	long, hashed := strings.Repeat("x", 65), "mmh_su34l7prebec67ky2jpj5vmd6uwafnhdatvictnr"
	for _, tt := range []struct {
		name     string
		upstream []carry.Protocol
		turns    []string // the ids of calls of the function f, which one turn makes and the next answers
		want     []string
	}{
		{"fine", []carry.Protocol{carry.Responses, carry.Messages, carry.Chat}, []string{"call_1 call_2", "call_3"}, []string{"call_1 call_2", "call_3"}},
		{"not of Responses' alphabet", []carry.Protocol{carry.Responses}, []string{"call_ü a.b"}, []string{hashedID("call_ü") + " " + hashedID("a.b")}},
		{"too long for Responses", []carry.Protocol{carry.Responses}, []string{long}, []string{hashed}},
		{"too long for Responses, twice", []carry.Protocol{carry.Responses}, []string{long, long}, []string{hashed, hashed + "_2"}},
		{"too long with a number", []carry.Protocol{carry.Responses}, []string{long[:64], long[:64]}, []string{long[:64], hashedID(long[:64] + "_2")}},
		{"not of one alphabet", []carry.Protocol{carry.Messages, carry.Chat, carry.GenerateContent, carry.Interactions, carry.MMSP}, []string{"call_ü " + long}, []string{"call_ü " + long}},
		{
			"counted anew in every turn",
			[]carry.Protocol{carry.Responses, carry.Messages, carry.Interactions, carry.MMSP},
			[]string{"0 1", "0", "0_2 1", "0 1"},
			[]string{"0 1", "0_2", "0_2_2 1_2", "0_3 1_3"},
		},
		{"counted anew where that is usual", []carry.Protocol{carry.Chat, carry.GenerateContent}, []string{"0 1", "0", "1 0"}, []string{"0 1", "0", "1 0"}},
		{"no ids", []carry.Protocol{carry.GenerateContent, carry.Interactions, carry.MMSP}, []string{"f f", "f"}, []string{"f f", "f"}},
		{"no ids, of another", []carry.Protocol{carry.Responses, carry.Messages}, []string{"f f", "f"}, []string{"f f_2", "f_3"}},
		{"no ids, of another that counts", []carry.Protocol{carry.Chat}, []string{"f f", "f"}, []string{"f f_2", "f"}},
	} {
		for _, upstream := range tt.upstream {
			for turns := 1; turns <= len(tt.turns); turns++ {
				var messages []mmsp.Message
				for _, ids := range tt.turns[:turns] {
					var calls, results []mmsp.Item
					for i, id := range strings.Fields(ids) {
						calls, results = append(calls, mmsp.ToolCall(id, "f", "{}")), append(results, mmsp.ToolResult(id, fmt.Sprint(i)))
					}
					messages = append(messages, mmsp.AssistantMessage(calls...), mmsp.UserMessage(results...))
				}
				newTranslator(carry.Peer{Protocol: upstream}, "", carry.Chat).in(&ingress.Request{Messages: messages}, nil)
				for m := range messages {
					for i, want := range strings.Fields(tt.want[m/2]) {
						if item := messages[m].ContentItems[i]; item.ToolCallID != want || m%2 == 1 && item.Text != fmt.Sprint(i) {
							t.Errorf("%s, %s, turn %d: %s %q, want %q", tt.name, upstream, m, item.Type, item.ToolCallID, want)
						}
					}
				}
			}
		}
	}
}

// TestIssuers: a caller knows the provider's host by its class, and the provider's client gets the name back that it gave.
func TestIssuers(t *testing.T) {
	const host = "models.internal:8443"
	for fidelity, want := range map[string]string{
		`{"signature":"s","issuer":"models.internal:8443"}`:                        `{"signature":"s","issuer":"host-64b4067922"}`,
		`{"issuer": "models.internal:8443", "reasoning_details":[{"issuer":"x"}]}`: `{"issuer": "host-64b4067922", "reasoning_details":[{"issuer":"x"}]}`,
		`{"signature":"s","issuer":"anthropic"}`:                                   `{"signature":"s","issuer":"anthropic"}`,
		`{"signature":"s","issuer":"models.internal"}`:                             `{"signature":"s","issuer":"models.internal"}`,
		`{"signature":"models.internal:8443","issuer":{}}`:                         `{"signature":"models.internal:8443","issuer":{}}`,
		``: ``,
	} {
		tr := newTranslator(carry.Peer{Protocol: carry.Messages}, host, carry.Responses)
		event := mmsp.Event{Item: mmsp.Thinking("t")}
		event.Item.Fidelity = mmsp.Fidelity(fidelity)
		if tr.out(&event); string(event.Item.Fidelity) != want {
			t.Errorf("%s goes out as %s", fidelity, event.Item.Fidelity)
		}
		history := &ingress.Request{Messages: []mmsp.Message{mmsp.AssistantMessage(event.Item)}}
		if tr.in(history, nil); string(history.Messages[0].ContentItems[0].Fidelity) != fidelity {
			t.Errorf("%s comes back as %s", fidelity, history.Messages[0].ContentItems[0].Fidelity)
		}
		other := newTranslator(carry.Peer{Protocol: carry.Messages}, "other.internal", carry.Responses)
		history = &ingress.Request{Messages: []mmsp.Message{mmsp.AssistantMessage(event.Item)}}
		if other.in(history, nil); string(history.Messages[0].ContentItems[0].Fidelity) != want {
			t.Errorf("%s comes to another as %s", fidelity, history.Messages[0].ContentItems[0].Fidelity)
		}
	}
}

func FuzzEscapeID(f *testing.F) {
	for _, id := range []string{"", "a", "mmx_a", "fn:1", "__", "mmh_x", "ü_\x00", "call_1_mmabcdefghij"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		escaped := escapeID(id)
		if got := unescapeID(escaped); got != id {
			t.Errorf("%q escapes to %q and back to %q", id, escaped, got)
		}
		if strings.ContainsFunc(escaped, func(r rune) bool {
			return r != '_' && r != '-' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
		}) {
			t.Errorf("%q escapes to %q", id, escaped)
		}
		_ = unescapeID("mmx_" + id)
	})
}

func TestNamesComeBack(t *testing.T) {
	for _, name := range []string{"plain", "with.dots:and-more", "1st", "äöü", strings.Repeat("n", 100), "t_x", ""} {
		for _, protocol := range []carry.Protocol{carry.Chat, carry.Responses, carry.Messages, carry.GenerateContent, carry.Interactions, carry.MMSP} {
			tr := newTranslator(carry.Peer{Protocol: protocol}, "", carry.Chat)
			request := &ingress.Request{Messages: []mmsp.Message{mmsp.AssistantMessage(mmsp.ToolCall("c", name, "{}"))}, Config: mmsp.Config{
				Tools: []mmsp.Tool{{Name: name}}, ToolChoice: &mmsp.ToolChoice{Names: []string{name}},
			}}
			tr.in(request, nil)
			sent := request.Config.Tools[0].Name
			wide := wideNames[protocol]
			if name != "" && !commonName.MatchString(sent) && (wide == nil || !wide.MatchString(sent)) {
				t.Errorf("%s is sent %q", protocol, sent)
			}
			if request.Config.ToolChoice.Names[0] != sent || request.Messages[0].ContentItems[0].Name != sent {
				t.Errorf("%s: the names differ", protocol)
			}
			if got := callerSees(tr, mmsp.ToolCall("d", sent, "{}")); got[0].Name != name {
				t.Errorf("%s: %q comes back as %q", protocol, name, got[0].Name)
			}
		}
	}
}

func TestOrderResults(t *testing.T) {
	calls := []mmsp.Item{mmsp.ToolCall("a", "f", "{}"), mmsp.ToolCall("b", "f", "{}")}
	request := &ingress.Request{
		Messages: []mmsp.Message{mmsp.AssistantMessage(calls...), mmsp.UserMessage(mmsp.Text("x"), mmsp.ToolResult("b", "2"), mmsp.ToolResult("a", "1"), mmsp.Text("y"))},
		Paths:    [][]string{{"0", "0"}, {"x", "b", "a", "y"}},
	}
	orderResults(request)
	if got := strings.Join(request.Paths[1], ""); got != "abxy" {
		t.Error(got)
	}
}

// TestLetGo lets go of every parameter at most a few times: the loop that asks again ends.
func TestLetGo(t *testing.T) {
	full := func() mmsp.Config {
		return mmsp.Config{
			MaxTokens: new(int64(0)), Temperature: new(0.5), TopP: new(0.5), TopK: new(int64(1)), StopSequences: []string{"x"}, Seed: new(int64(1)),
			PresencePenalty: new(1.0), FrequencyPenalty: new(1.0), ParallelToolCalls: new(false), ThinkingLevel: mmsp.ThinkingHigh, ThinkingBudget: new(int64(2000)),
			ThinkingSummary: new(true), Verbosity: mmsp.VerbosityLow, ServiceTier: "flex", FastMode: true, PromptCaching: mmsp.CachingEnhance,
			ResponseFormat: &mmsp.ResponseFormat{Type: mmsp.FormatJSONSchema}, Tools: []mmsp.Tool{{Name: "a"}, {Name: "b"}}, ToolChoice: &mmsp.ToolChoice{Names: []string{"a"}},
		}
	}
	r := rowOf(t, "ant-messages", "claude")
	for parameter, want := range map[string]string{
		"max_tokens": "max_tokens", "temperature": "temperature", "top_p": "top_p", "top_k": "top_k", "stop_sequences": "stop_sequences", "seed": "seed", "presence_penalty": "presence_penalty",
		"frequency_penalty": "frequency_penalty", "parallel_tool_calls": "parallel_tool_calls", "thinking_level": "thinking_level", "verbosity": "verbosity",
		"service_tier": "service_tier", "fast_mode": "fast_mode", "prompt_caching": "prompt_caching", "thinking_summary": "thinking_summary",
		"response_format": "response_format", "tool_choice": "thinking_level  tool_choice required tool_choice",
		"trace_id": "refused", "tools": "refused",
	} {
		config := full()
		before := string(config.AppendJSON(nil))
		var got []string
		for range 10 {
			dropped, ok := letGo(&config, parameter, r)
			if !ok {
				got = append(got, "refused")
				break
			}
			after := string(config.AppendJSON(nil))
			if after == before {
				break
			}
			before, got = after, append(got, dropped)
		}
		got = slices.DeleteFunc(got, func(s string) bool { return s == "refused" && want != "refused" })
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %q", parameter, got)
		}
	}
}

// TestNoTools: a client that takes no "none" is given no tools.
func TestNoTools(t *testing.T) {
	c := mmsp.Config{Tools: []mmsp.Tool{{Name: "a"}}, ToolChoice: &mmsp.ToolChoice{Mode: mmsp.ToolChoiceNone}}
	if dropped, ok := letGo(&c, "tool_choice", rowOf(t, "openai-chat", "m")); dropped != "" || !ok || c.Tools != nil || c.ToolChoice != nil {
		t.Errorf("%q, %v, %+v", dropped, ok, c)
	}
}

// TestForcedTool: thinking makes place for a forced call, but not where the model cannot be made to call.
func TestForcedTool(t *testing.T) {
	for model, want := range map[string]string{
		"claude-sonnet-4-5": `thinking_level {"tools":[{"name":"a","description":""}],"tool_choice":"required"}`,
		"claude-sonnet-5-5": `tool_choice required {"tools":[{"name":"a","description":""}],"tool_choice":"auto","thinking_level":"high"}`,
	} {
		c := mmsp.Config{Tools: []mmsp.Tool{{Name: "a"}}, ToolChoice: &mmsp.ToolChoice{Mode: mmsp.ToolChoiceRequired}, ThinkingLevel: mmsp.ThinkingHigh}
		dropped, ok := letGo(&c, "tool_choice", rowOf(t, "anthropic-official", model))
		if got := dropped + " " + string(c.AppendJSON(nil)); got != want || !ok {
			t.Errorf("%s: %s, want %s", model, got, want)
		}
	}
}

// rowOf is the row of a client that nobody asks.
func rowOf(t *testing.T, clientType, model string) *row {
	s, err := newState(&config.Config{Models: []config.Model{{ServerModelID: "m", ModelID: model, ClientType: clientType, APIKey: mmsp.NewSecret("k")}}}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s.rows["m"]
}

// TestFit: the nearest is put in place of what a provider would refuse, and what its client passes over is said.
func TestFit(t *testing.T) {
	for _, tt := range []struct {
		name       string
		config     mmsp.Config
		clientType string
		want       string // of the config, then what is dropped
	}{
		{"fewer tokens than OpenAI makes", mmsp.Config{MaxTokens: new(int64(1))}, "openai-official", `{"max_tokens":16} max_tokens`},
		{"as many", mmsp.Config{MaxTokens: new(int64(16))}, "openai-responses", `{"max_tokens":16}`},
		{"fewer elsewhere", mmsp.Config{MaxTokens: new(int64(1))}, "openai-chat", `{"max_tokens":1}`},
		{"a level that nobody hears", mmsp.Config{ThinkingLevel: mmsp.ThinkingHigh}, "openai-chat", `{} thinking_level`},
		{"a budget that nobody hears", mmsp.Config{ThinkingBudget: new(int64(9000))}, "openai-chat", `{} thinking_level`},
		{"a free budget", mmsp.Config{ThinkingBudget: new(int64(-1))}, "openai-chat", `{"thinking_budget":-1}`},
		{"a level", mmsp.Config{ThinkingLevel: mmsp.ThinkingHigh}, "openai-chat-vllm-adapter", `{"thinking_level":"high"}`},
		{"a cache that is there", mmsp.Config{PromptCaching: mmsp.CachingEnhance}, "anthropic-official", `{"prompt_caching":"enhance"}`},
		{"a cache that nobody can ask for", mmsp.Config{PromptCaching: mmsp.CachingEnhance}, "ant-messages", `{} cache_control`},
		{"a cache of the provider's own", mmsp.Config{PromptCaching: mmsp.CachingEnable}, "openai-official", `{"prompt_caching":"enable"}`},
	} {
		request := &ingress.Request{Config: tt.config}
		dropped := fit(request, rowOf(t, tt.clientType, "m"))
		if got := strings.TrimSpace(string(request.Config.AppendJSON(nil)) + " " + strings.Join(dropped, " ")); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
	}
}

// TestCool: endpoints of Messages take no sampling beside thinking, and any without.
func TestCool(t *testing.T) {
	warm := `{"temperature":0.5,"top_p":0.9,"top_k":40`
	for _, tt := range []struct{ config, clientType, want string }{
		{warm + `,"thinking_level":"high"}`, "ant-messages", `{"thinking_level":"high"} [temperature top_p top_k]`},
		{`{"temperature":1,"top_p":0.95,"thinking_level":"high"}`, "ant-messages", `{"temperature":1,"top_p":0.95,"thinking_level":"high"} []`},
		{warm + `,"thinking_level":"none"}`, "ant-messages", warm + `,"thinking_level":"none"} []`},
		{warm + `,"thinking_budget":-1}`, "ant-messages", warm + `,"thinking_budget":-1} []`},
		{warm + `,"thinking_level":"high"}`, "mmsp", warm + `,"thinking_level":"high"} []`},
	} {
		config, err := mmsp.ParseConfig([]byte(tt.config))
		if err != nil {
			t.Fatal(err)
		}
		dropped := cool(&config, rowOf(t, tt.clientType, "m"))
		if got := string(config.AppendJSON(nil)) + " " + fmt.Sprint(dropped); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.clientType, got, tt.want)
		}
	}
}

// TestFitTools: what a protocol takes for granted of a tool is said to those that do not.
func TestFitTools(t *testing.T) {
	empty := `{"type":"object","properties":{},"additionalProperties":false}`
	for _, tt := range []struct {
		tool     string
		from, to carry.Protocol
		want     string
	}{
		{`{"name":"f","description":"d"}`, carry.Chat, carry.Chat, `{"name":"f","description":"d"}`},
		{`{"name":"f","description":"d"}`, carry.Chat, carry.Messages, `{"name":"f","description":"d","parameters":` + empty + `}`},
		{`{"name":"f","description":"d","parameters":{ }}`, carry.GenerateContent, carry.Messages, `{"name":"f","description":"d","parameters":{"type":"object","properties":{}}}`},
		{`{"name":"f","description":"d","parameters":{"properties":{"type":{}}}}`, carry.Chat, carry.Messages, `{"name":"f","description":"d","parameters":{"type":"object","properties":{"type":{}}}}`},
		{`{"name":"f","description":"d","parameters":{"properties":{},"type":"object"}}`, carry.Chat, carry.Messages, `{"name":"f","description":"d","parameters":{"properties":{},"type":"object"}}`},
		{`{"name":"f","description":"d"}`, carry.Responses, carry.Responses, `{"name":"f","description":"d","parameters":` + empty + `}`},
		{`{"name":"f","description":"d","parameters":{"type":"object"}}`, carry.Messages, carry.Responses, `{"name":"f","description":"d","parameters":{"type":"object"},"strict":false}`},
		{`{"name":"f","description":"d","parameters":{"type":"object"},"strict":true}`, carry.Chat, carry.Responses, `{"name":"f","description":"d","parameters":{"type":"object"},"strict":true}`},
	} {
		config, err := mmsp.ParseConfig([]byte(`{"tools":[` + tt.tool + `]}`))
		if err != nil {
			t.Fatal(err)
		}
		fitTools(config.Tools, tt.from, tt.to)
		if got := string(config.Tools[0].AppendJSON(nil)); got != tt.want {
			t.Errorf("%s to %s: %s, want %s", tt.from, tt.to, got, tt.want)
		}
	}
}

// TestFitOfTurns: what a caller's form has no room for is not asked for, and what a provider is not told of a result is said.
func TestFitOfTurns(t *testing.T) {
	failed := mmsp.ToolResult("c", "boom")
	failed.IsError = true
	for clientType, want := range map[string]string{
		"openai-chat": "false [messages[1].content[0] (is_error)]", "openai-responses": "false [messages[1].content[0] (is_error)]",
		"ant-messages": "false []", "google-genai": "<nil> []", "mmsp": "false []", "deepseek-official": "<nil> [messages[1].content[0] (is_error)]",
	} {
		request := &ingress.Request{
			Messages: []mmsp.Message{mmsp.AssistantMessage(mmsp.ToolCall("c", "f", "{}")), mmsp.UserMessage(failed, mmsp.Text("hi"))},
			Paths:    [][]string{{"messages[0].tool_calls[0]"}, {"messages[1].content[0]", "messages[1].content[1]"}},
			Config:   mmsp.Config{Tools: []mmsp.Tool{{Name: "f"}}}, OneCall: true,
		}
		dropped, single := fit(request, rowOf(t, clientType, "m")), "<nil>"
		if p := request.Config.ParallelToolCalls; p != nil {
			single = fmt.Sprint(*p)
		}
		if got := single + " " + fmt.Sprint(dropped); got != want {
			t.Errorf("%s: %s, want %s", clientType, got, want)
		}
	}
}

// TestMediaTypes: what a provider calls its data is a media type to callers.
func TestMediaTypes(t *testing.T) {
	for given, want := range map[string]string{"image/png": "image/png", "audio/L16;codec=pcm;rate=24000": "audio/L16;codec=pcm;rate=24000", "ima\x8age/png": "application/octet-stream", "0": "application/octet-stream", "": ""} {
		e := mmsp.Event{Item: mmsp.InlineData([]byte("x"), given, "")}
		newTranslator(carry.Peer{}, "", carry.Chat).out(&e)
		if e.Item.MimeType != want {
			t.Errorf("%q: %q, want %q", given, e.Item.MimeType, want)
		}
	}
}
