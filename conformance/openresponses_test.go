package conformance

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/gateway/config"
	"github.com/prism-shadow/mmsp-go/internal/wiregrammar"
	"github.com/prism-shadow/mmsp-go/simulate"
)

// simulated are simulated providers of several protocols, by the client type that reaches them, which is the id of the row.
var simulated = []struct {
	clientType, model, path string
	provider                func(simulate.Options) *simulate.Provider
}{
	{"openai-official", "gpt-5.6-luna", "/v1", simulate.Responses},
	{"openai-chat", "demo-chat", "/v1", simulate.Chat},
	{"anthropic-official", "claude-sonnet-5-5", "", simulate.Messages},
	{"google-genai", "gemini-3.8-flash", "", simulate.Gemini},
	{"google-official", "gemini-3.8-flash", "", simulate.Gemini},
	{"moonshot-official", "kimi-k3", "/v1", simulate.Chat},
	{"openai-embedding", "demo-embedding", "/v1", simulate.Embeddings},
}

// simulation is a gateway with a row for each simulated provider. It returns its address.
func simulation(t *testing.T, endpoints config.Endpoints) (url string) {
	served := config.Defaults()
	served.HTTP.Endpoints = endpoints
	served.Upstream.MaxRetries = 0
	for _, row := range simulated {
		provider := httptest.NewServer(row.provider(simulate.Options{Key: "key"}))
		t.Cleanup(provider.Close)
		served.Models = append(served.Models, config.Model{
			ServerModelID: row.clientType, ModelID: row.model, ClientType: row.clientType, BaseURL: provider.URL + row.path, APIKey: mmsp.NewSecret("key"),
		})
	}
	return strings.TrimSuffix(serve(t, &served), "/v1")
}

func openResponses(t *testing.T) (url string) {
	return simulation(t, config.Endpoints{Responses: config.Endpoint{Enabled: true}}) + "/v1/responses"
}

type dict = map[string]any

// post sends a body and returns the answer.
func post(t *testing.T, url string, body any, header ...string) (status int, answer []byte, h http.Header) {
	t.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		t.Fatal(err)
	}
	return send(t, http.MethodPost, url, data, header...)
}

func send(t *testing.T, method, url string, body []byte, header ...string) (status int, answer []byte, h http.Header) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err = io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, answer, response.Header
}

// openEvents are the events that the schema of Open Responses knows. Its suite refuses every other.
var openEvents = strings.Fields(`error
	response.created response.queued response.in_progress response.completed response.failed response.incomplete
	response.output_item.added response.output_item.done response.content_part.added response.content_part.done
	response.output_text.delta response.output_text.done response.output_text.annotation.added response.refusal.delta response.refusal.done
	response.reasoning.delta response.reasoning.done response.reasoning_summary_part.added response.reasoning_summary_part.done
	response.reasoning_summary_text.delta response.reasoning_summary_text.done
	response.function_call_arguments.delta response.function_call_arguments.done`)

// ask sends a request as the suite does and returns the response resource, which has passed the schema.
func ask(t *testing.T, url string, body dict, header ...string) (resource dict, events []dict) {
	t.Helper()
	status, answer, h := post(t, url, body, header...)
	if status != http.StatusOK {
		t.Fatalf("HTTP %d: %s", status, answer)
	}
	if body["stream"] != true {
		if !strings.HasPrefix(h.Get("Content-Type"), "application/json") {
			t.Errorf("content type %q", h.Get("Content-Type"))
		}
		if err := wiregrammar.ResponsesResource(answer); err != nil {
			t.Fatalf("%v\n%s", err, answer)
		}
		if err := json.Unmarshal(answer, &resource); err != nil {
			t.Fatal(err)
		}
		return resource, nil
	}
	if !strings.HasPrefix(h.Get("Content-Type"), "text/event-stream") {
		t.Errorf("content type %q", h.Get("Content-Type"))
	}
	if err := wiregrammar.Responses(answer); err != nil {
		t.Fatalf("%v\n%s", err, answer)
	}
	for line := range strings.SplitSeq(string(answer), "\n") {
		data, ok := strings.CutPrefix(line, "data: {")
		if !ok {
			continue
		}
		var event dict
		if err := json.Unmarshal([]byte("{"+data), &event); err != nil {
			t.Fatal(err)
		}
		if kind := event["type"].(string); !slices.Contains(openEvents, kind) {
			t.Errorf("an event that the schema does not know: %s", kind)
		}
		events = append(events, event)
		if r, ok := event["response"].(dict); ok {
			resource = r
		}
	}
	return resource, events
}

func output(resource dict, kind string) (items []dict) {
	for _, item := range resource["output"].([]any) {
		if item := item.(dict); kind == "" || item["type"] == kind {
			items = append(items, item)
		}
	}
	return items
}

// answered is what most tests of the suite check: it is completed and says something.
func answered(t *testing.T, resource dict) {
	t.Helper()
	if resource["status"] != "completed" || len(output(resource, "")) == 0 {
		t.Errorf("status %v, output %v", resource["status"], resource["output"])
	}
}

func user(content any) dict { return dict{"type": "message", "role": "user", "content": content} }

var weather = dict{
	"type": "function", "name": "get_weather", "description": "Get the weather of a place",
	"parameters": dict{"type": "object", "properties": dict{"location": dict{"type": "string"}}, "required": []string{"location"}},
}

func dataURL(mimeType string, data []byte) string {
	return "data:" + mimeType + ";base64," + base64.StdEncoding.EncodeToString(data)
}

// TestOpenResponses is the compliance suite of Open Responses, over every row.
func TestOpenResponses(t *testing.T) {
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 32, 32))); err != nil {
		t.Fatal(err)
	}
	pdf := []byte("%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[]/Count 0>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n")

	called := func(t *testing.T, resource dict) dict {
		t.Helper()
		calls := output(resource, "function_call")
		if len(calls) == 0 {
			t.Fatalf("no function_call: %v", resource["output"])
		}
		return calls[0]
	}
	tests := []struct {
		id  string
		run func(t *testing.T, url, model string)
	}{
		{"basic-response", func(t *testing.T, url, model string) {
			resource, _ := ask(t, url, dict{"model": model, "input": []any{user("Say hello in exactly 3 words.")}})
			answered(t, resource)
		}},
		{"streaming-response", func(t *testing.T, url, model string) {
			resource, events := ask(t, url, dict{"model": model, "stream": true, "input": []any{user("Count from 1 to 5.")}})
			answered(t, resource)
			if last := events[len(events)-1]["type"]; last != "response.completed" {
				t.Errorf("the last event is %v", last)
			}
		}},
		{"streaming-response, long", func(t *testing.T, url, model string) {
			resource, _ := ask(t, url, dict{"model": model, "stream": true, "input": []any{user("A long answer.")}})
			answered(t, resource)
		}},
		{"system-prompt", func(t *testing.T, url, model string) {
			resource, _ := ask(t, url, dict{"model": model, "input": []any{
				dict{"type": "message", "role": "system", "content": "You are a pirate."}, user("Say hello."),
			}})
			answered(t, resource)
		}},
		{"developer-prompt", func(t *testing.T, url, model string) {
			resource, _ := ask(t, url, dict{"model": model, "instructions": "Be brief.", "input": []any{
				dict{"role": "developer", "content": []any{dict{"type": "input_text", "text": "You are a pirate."}}}, dict{"role": "user", "content": "Say hello."},
			}})
			answered(t, resource)
		}},
		{"tool-calling", func(t *testing.T, url, model string) {
			resource, _ := ask(t, url, dict{"model": model, "tools": []any{weather}, "input": []any{user("Call the tool: what is the weather in Oslo?")}})
			answered(t, resource)
			called(t, resource)
		}},
		{"image-input", func(t *testing.T, url, model string) {
			resource, _ := ask(t, url, dict{"model": model, "input": []any{user([]any{
				dict{"type": "input_text", "text": "What is in this image?"},
				dict{"type": "input_image", "image_url": dataURL("image/png", picture.Bytes())},
			})}})
			answered(t, resource)
		}},
		{"multi-turn", func(t *testing.T, url, model string) {
			resource, _ := ask(t, url, dict{"model": model, "input": []any{
				user("My name is Alice."), dict{"type": "message", "role": "assistant", "content": "Hello Alice!"}, user("What is my name?"),
			}})
			answered(t, resource)
		}},
		{"tool-calling-streaming", func(t *testing.T, url, model string) {
			resource, events := ask(t, url, dict{"model": model, "stream": true, "tools": []any{weather}, "input": []any{user("Call the tool: what is the weather in Oslo?")}})
			called(t, resource)
			var got []string
			for _, event := range events {
				item, _ := event["item"].(dict)
				if kind := event["type"].(string); strings.Contains(kind, "arguments") || item["type"] == "function_call" {
					got = append(got, strings.TrimPrefix(kind, "response."))
				}
			}
			want := []string{"output_item.added", "function_call_arguments.delta", "function_call_arguments.done", "output_item.done"}
			if got = slices.Compact(got); !reflect.DeepEqual(got, want) {
				t.Errorf("events %v", got)
			}
		}},
		{"parallel calls, streamed", func(t *testing.T, url, model string) {
			resource, _ := ask(t, url, dict{"model": model, "stream": true, "tools": []any{weather}, "input": []any{user("Call the tool, parallel: what is the weather in Oslo and Bergen?")}})
			if calls := output(resource, "function_call"); len(calls) < 2 {
				t.Errorf("calls %v", calls)
			}
		}},
		{"function-call-roundtrip", func(t *testing.T, url, model string) {
			first, _ := ask(t, url, dict{
				"model": model, "input": "Call the tool: what is the weather in Oslo?", "tools": []any{weather}, "tool_choice": dict{"type": "function", "name": "get_weather"},
			})
			call := called(t, first)
			second, _ := ask(t, url, dict{"model": model, "previous_response_id": first["id"], "input": []any{
				dict{"type": "function_call_output", "call_id": call["call_id"], "output": `{"temperature":"4 °C"}`},
			}})
			answered(t, second)
			if second["previous_response_id"] != first["id"] {
				t.Errorf("previous_response_id is %v", second["previous_response_id"])
			}
		}},
		{"function-call-roundtrip, thinking and streamed", func(t *testing.T, url, model string) {
			first, _ := ask(t, url, dict{
				"model": model, "stream": true, "input": "Think, then call the tool: what is the weather in Oslo?", "tools": []any{weather},
				"reasoning": dict{"effort": "low", "summary": "auto"},
			})
			call := called(t, first)
			second, _ := ask(t, url, dict{"model": model, "stream": true, "previous_response_id": first["id"], "tools": []any{weather}, "input": []any{
				dict{"type": "function_call_output", "call_id": call["call_id"], "output": "4 °C"},
			}})
			answered(t, second)
		}},
		{"function-call-roundtrip, replayed by the caller", func(t *testing.T, url, model string) {
			tools := []any{weather}
			history := []any{user("Think, then call the tool: what is the weather in Oslo?")}
			first, _ := ask(t, url, dict{"model": model, "store": false, "include": []any{"reasoning.encrypted_content"}, "input": history, "tools": tools})
			call := called(t, first)
			history = append(append(history, first["output"].([]any)...), dict{"type": "function_call_output", "call_id": call["call_id"], "output": "4 °C"})
			second, _ := ask(t, url, dict{"model": model, "store": false, "input": history, "tools": tools})
			answered(t, second)
		}},
		{"file-input", func(t *testing.T, url, model string) {
			resource, _ := ask(t, url, dict{"model": model, "input": []any{user([]any{
				dict{"type": "input_text", "text": "What is in this document?"},
				dict{"type": "input_file", "filename": "document.pdf", "file_data": dataURL("application/pdf", pdf)},
			})}})
			answered(t, resource)
		}},
		{"previous-response-id", func(t *testing.T, url, model string) {
			first, _ := ask(t, url, dict{"model": model, "input": "My name is Alice."})
			answered(t, first)
			second, _ := ask(t, url, dict{"model": model, "previous_response_id": first["id"], "input": "What is my name?"})
			answered(t, second)
		}},
		{"reasoning summary", func(t *testing.T, url, model string) {
			resource, events := ask(t, url, dict{"model": model, "stream": true, "input": "Think about it.", "reasoning": dict{"effort": "high", "summary": "auto"}})
			answered(t, resource)
			if items := output(resource, "reasoning"); len(items) == 0 || !has(events, "response.reasoning_summary_text.delta") {
				t.Errorf("reasoning items %v", items)
			}
		}},
		{"raw reasoning under the names of Open Responses", func(t *testing.T, url, model string) {
			body := dict{"model": model, "stream": true, "input": "Think about it.", "reasoning": dict{"effort": "high", "summary": "auto"}}
			resource, events := ask(t, url, body, "OpenResponses-Version", "latest", "X-MMSP-Reasoning", "raw")
			answered(t, resource)
			if !has(events, "response.reasoning.delta") {
				t.Error("no response.reasoning.delta")
			}
		}},
		{"token limit", func(t *testing.T, url, model string) {
			for _, stream := range []bool{false, true} {
				resource, _ := ask(t, url, dict{"model": model, "stream": stream, "input": "Long, up to the length."})
				if resource["status"] != "incomplete" || resource["incomplete_details"].(dict)["reason"] != "max_output_tokens" {
					t.Errorf("status %v, details %v", resource["status"], resource["incomplete_details"])
				}
			}
		}},
		{"refusal", func(t *testing.T, url, model string) {
			for _, stream := range []bool{false, true} {
				resource, _ := ask(t, url, dict{"model": model, "stream": stream, "input": "Please refuse."})
				if status := resource["status"]; status != "completed" && status != "incomplete" {
					t.Errorf("status %v", status)
				}
			}
		}},
		{"empty answer", func(t *testing.T, url, model string) {
			for _, stream := range []bool{false, true} {
				resource, _ := ask(t, url, dict{"model": model, "stream": stream, "input": "Give an empty answer."})
				if resource["status"] != "completed" {
					t.Errorf("status %v", resource["status"])
				}
			}
		}},
		{"failure inside the stream", func(t *testing.T, url, model string) {
			resource, _ := ask(t, url, dict{"model": model, "stream": true, "input": "Please fail."})
			if resource["status"] != "failed" {
				t.Errorf("status %v", resource["status"])
			}
		}},
		{"failure of the provider", func(t *testing.T, url, model string) {
			for _, status := range []int{400, 429, 500, 503} {
				got, answer, _ := post(t, url, dict{"model": model, "input": fmt.Sprintf("Please give me an error %d.", status)})
				if got != status {
					t.Errorf("HTTP %d for the provider's %d: %s", got, status, answer)
				}
				if err := wiregrammar.OpenAIError(answer); err != nil {
					t.Error(err)
				}
			}
		}},
	}
	url := openResponses(t)
	for _, row := range simulated[:4] {
		for _, test := range tests {
			t.Run(row.clientType+"/"+test.id, func(t *testing.T) {
				t.Parallel()
				test.run(t, url, row.clientType)
			})
		}
	}
}

func has(events []dict, kind string) bool {
	return slices.ContainsFunc(events, func(e dict) bool { return e["type"] == kind })
}

// TestResponsesFields goes through the table of request fields: what each may be and how the resource echoes it, and what
// it may not be, which is a 400 that names it.
func TestResponsesFields(t *testing.T) {
	url := openResponses(t)
	long := func(n int) string { return strings.Repeat("a", n) }
	pairs := func(n int) dict {
		m := dict{}
		for i := range n {
			m[fmt.Sprint("k", i)] = "v"
		}
		return m
	}
	format := func(f dict) dict { return dict{"format": f} }
	schema := dict{"type": "object", "properties": dict{"city": dict{"type": "string"}}, "required": []any{"city"}, "additionalProperties": false}
	echoed := dict{"type": "function", "name": "get_weather", "description": weather["description"], "parameters": weather["parameters"], "strict": nil}
	var echo dict // as JSON has it
	data, err := json.Marshal(echoed)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &echo); err != nil {
		t.Fatal(err)
	}
	delete(echo, "strict") // it may be what the API takes for the default

	type pair struct{ sent, echo any } // echo: nothing is compared
	type nothing struct{}
	same := func(values ...any) (pairs []pair) {
		for _, v := range values {
			pairs = append(pairs, pair{v, v})
		}
		return pairs
	}
	taken := func(values ...any) (pairs []pair) {
		for _, v := range values {
			pairs = append(pairs, pair{v, nothing{}})
		}
		return pairs
	}
	fields := []struct {
		name    string
		right   []pair
		wrong   []any
		with    dict // further fields
		initial any  // of the echo when the field is absent
	}{
		{name: "input", right: taken("Hello.", []any{user("Hello.")}), wrong: []any{3, true, dict{}, nil}, initial: nothing{}},
		{name: "instructions", right: same("Be brief.", nil), wrong: []any{3, []any{"x"}}, initial: nil},
		{name: "previous_response_id", right: same(nil), wrong: []any{3, "resp_that_is_not_there"}, initial: nil},
		{
			name: "include", wrong: []any{"reasoning.encrypted_content", []any{3}}, initial: nothing{},
			right: taken([]any{}, []any{"reasoning.encrypted_content"}, []any{"message.output_text.logprobs", "file_search_call.results", "web_search_call.action.sources"}, []any{"something.of.tomorrow"}),
		},
		{
			name: "tools", initial: []any{}, right: []pair{{nil, []any{}}, {[]any{}, []any{}}, {[]any{weather}, []any{echo}}},
			wrong: []any{"x", dict{}, []any{3}, []any{dict{"type": "function"}}},
		},
		{
			name: "tool_choice", with: dict{"tools": []any{weather}}, initial: "auto",
			right: []pair{
				{nil, "auto"},
				{"auto", "auto"},
				{"none", "none"},
				{"required", "required"},
				{dict{"type": "function", "name": "get_weather"}, dict{"type": "function", "name": "get_weather"}},
				{
					dict{"type": "allowed_tools", "mode": "auto", "tools": []any{dict{"type": "function", "name": "get_weather"}}},
					dict{"type": "allowed_tools", "mode": "auto", "tools": []any{dict{"type": "function", "name": "get_weather"}}},
				},
			},
			wrong: []any{
				3, "bogus",
				dict{"type": "function"},
				dict{"type": "function", "name": "unknown"},
				dict{"type": "bogus"},
				dict{"type": "allowed_tools", "mode": "auto", "tools": []any{}},
				dict{"type": "allowed_tools", "mode": "bogus", "tools": []any{dict{"type": "function", "name": "get_weather"}}},
			},
		},
		{name: "parallel_tool_calls", right: append(same(true, false), pair{nil, true}), wrong: []any{"x", 1}, initial: true},
		{name: "max_output_tokens", right: same(16.0, 4096.0, nil), wrong: []any{0, -1, 1.5, "x"}, initial: nil},
		{name: "max_tool_calls", right: same(1.0, nil), wrong: []any{0, -1, "x"}, initial: nil},
		{name: "temperature", right: append(same(0.0, 0.5, 2.0), pair{nil, 1.0}), wrong: []any{2.1, -0.1, "x"}, initial: 1.0},
		{name: "top_p", right: append(same(0.5, 1.0), pair{nil, 1.0}), wrong: []any{1.1, -0.1, "x"}, initial: 1.0},
		{name: "presence_penalty", right: append(same(0.5), pair{nil, 0.0}), wrong: []any{"x"}, initial: 0.0},
		{name: "frequency_penalty", right: append(same(0.5), pair{nil, 0.0}), wrong: []any{"x"}, initial: 0.0},
		{name: "top_logprobs", right: append(same(0.0, 20.0), pair{nil, 0.0}), wrong: []any{21, -1, "x"}, initial: 0.0},
		{
			name: "reasoning", initial: nothing{}, wrong: []any{"x", dict{"effort": "bogus"}, dict{"effort": 3}, dict{"summary": "bogus"}},
			right: append(taken(nil, dict{}, dict{"effort": nil, "summary": nil}, dict{"effort": "minimal"}, dict{"effort": "max"}, dict{"summary": "concise"}),
				same(dict{"effort": "none", "summary": nil}, dict{"effort": "low", "summary": "auto"}, dict{"effort": "medium", "summary": "detailed"},
					dict{"effort": "high", "summary": nil}, dict{"effort": "xhigh", "summary": nil})...),
		},
		{
			name: "text", initial: nothing{}, wrong: []any{
				"x", format(dict{"type": "bogus"}), format(dict{"type": "json_schema", "name": "a b", "schema": schema}),
				format(dict{"type": "json_schema", "name": long(65), "schema": schema}), format(dict{"type": "json_schema", "name": "city", "schema": 3}),
				dict{"verbosity": "bogus"},
				dict{"verbosity": 3},
			},
			right: taken(nil, dict{}, format(dict{"type": "text"}), format(dict{"type": "json_object"}),
				format(dict{"type": "json_schema", "name": "city", "schema": schema, "strict": true}), dict{"verbosity": "low"}, dict{"verbosity": nil}),
		},
		{name: "truncation", right: same("auto", "disabled"), wrong: []any{"bogus", 3}, initial: "disabled"},
		{
			name: "metadata", right: append(same(dict{}, dict{"k": "v"}, pairs(16)), pair{nil, dict{}}), initial: dict{},
			wrong: []any{"x", pairs(17), dict{long(65): "v"}, dict{"k": long(513)}, dict{"k": 3}},
		},
		{name: "store", right: append(same(true, false), taken(nil)...), wrong: []any{"x", 1}, initial: nothing{}},
		{name: "background", right: append(same(false), pair{nil, false}), wrong: []any{true, "x"}, initial: false},
		{name: "stream", right: taken(false, nil), wrong: []any{"x", 1}, initial: nothing{}},
		{name: "stream_options", right: taken(nil), wrong: []any{"x"}, initial: nothing{}},
		{name: "service_tier", right: taken("auto", "default", "flex", "priority", nil), wrong: []any{"bogus", 3}, initial: "default"},
		{name: "safety_identifier", right: same("s", long(64), nil), wrong: []any{long(65), 3}, initial: nil},
		{name: "prompt_cache_key", right: same("s", long(64), nil), wrong: []any{long(65), 3}, initial: nil},
		{name: "user", right: taken("u"), wrong: []any{3}, initial: nothing{}},
		{name: "prompt", wrong: []any{dict{"id": "pmpt_1"}}, initial: nothing{}},
		{name: "a_field_of_tomorrow", right: taken(3, "x", dict{"deep": []any{nil}}, nil), initial: nothing{}},
		{name: "client_metadata", right: taken(dict{"k": "v"}), initial: nothing{}},
		{name: "prompt_cache_retention", right: taken("24h"), initial: nothing{}},
	}
	compare := func(t *testing.T, resource dict, name string, want any) {
		t.Helper()
		if want == any(nothing{}) {
			return
		}
		got := resource[name]
		if list, ok := got.([]any); ok && name == "tools" {
			for _, tool := range list {
				delete(tool.(dict), "strict")
			}
		}
		if !reflect.DeepEqual(normal(t, got), normal(t, want)) {
			t.Errorf("%s is echoed as %v, want %v", name, got, want)
		}
	}
	for _, f := range fields {
		request := func(value any) dict {
			body := dict{"model": "openai-chat", "input": "Hello."}
			for k, v := range f.with {
				body[k] = v
			}
			body[f.name] = value
			return body
		}
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			for _, v := range f.right {
				t.Run(fmt.Sprintf("%.60v", v.sent), func(t *testing.T) {
					resource, _ := ask(t, url, request(v.sent))
					compare(t, resource, f.name, v.echo)
				})
			}
			for _, v := range f.wrong {
				t.Run(fmt.Sprintf("not %.60v", v), func(t *testing.T) { refusedAt(t, url, request(v), http.StatusBadRequest, f.name) })
			}
			resource, _ := ask(t, url, dict{"model": "openai-chat", "input": "Hello."})
			compare(t, resource, f.name, f.initial)
		})
	}
}

// normal is a value as JSON has it.
func normal(t *testing.T, v any) (n any) {
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// refusedAt sends a request that is refused with an error in the protocol's shape that names what is wrong: the field, or
// a path that begins with it.
func refusedAt(t *testing.T, url string, body any, status int, param string) (message string) {
	t.Helper()
	got, answer, _ := post(t, url, body)
	if got != status {
		t.Fatalf("HTTP %d, want %d: %.500s", got, status, answer)
	}
	if err := wiregrammar.OpenAIError(answer); err != nil {
		t.Fatalf("%v\n%s", err, answer)
	}
	var failure struct {
		Error struct{ Message, Param, Code, Type string }
	}
	if err := json.Unmarshal(answer, &failure); err != nil {
		t.Fatal(err)
	}
	if p := failure.Error.Param; !strings.HasPrefix(p, param) || len(p) > len(param) && !strings.ContainsAny(p[len(param):len(param)+1], ".[") {
		t.Errorf("param is %q, want %q: %s", p, param, failure.Error.Message)
	}
	return failure.Error.Message + " " + failure.Error.Code
}

// TestResponsesInput goes through the tables of input items and content parts.
func TestResponsesInput(t *testing.T) {
	url := openResponses(t)
	text := dict{"type": "input_text", "text": "Hello."}
	call := dict{"type": "function_call", "call_id": "call_1", "name": "get_weather", "arguments": `{"location":"Oslo"}`}
	with := func(o dict, key string, value any) dict {
		c := dict{}
		for k, v := range o {
			c[k] = v
		}
		if c[key] = value; value == nil {
			delete(c, key)
		}
		return c
	}
	result := dict{"type": "function_call_output", "call_id": "call_1", "output": "4 °C"}
	picture := dataURL("image/png", []byte("\x89PNG\r\n\x1a\n"))
	base64Text := base64.StdEncoding.EncodeToString([]byte("Hello."))
	for name, input := range map[string][]any{
		"a message without its type":          {dict{"role": "user", "content": "Hello."}},
		"a message with id and status":        {dict{"type": "message", "id": "msg_1", "status": "completed", "role": "user", "content": []any{text}}},
		"an assistant with a phase":           {user("Hi."), dict{"role": "assistant", "phase": "commentary", "content": []any{dict{"type": "output_text", "text": "Hm."}}}, user("So?")},
		"an assistant with annotations":       {user("Hi."), dict{"role": "assistant", "content": []any{dict{"type": "output_text", "text": "Hm.", "annotations": []any{}, "logprobs": []any{}}}}, user("So?")},
		"an assistant that refused":           {user("Hi."), dict{"role": "assistant", "content": []any{dict{"type": "refusal", "refusal": "No."}}}, user("So?")},
		"a call and its output":               {user("Weather?"), call, result},
		"an output of parts":                  {user("Weather?"), call, with(result, "output", []any{text})},
		"two calls, then two outputs":         {user("Weather?"), call, with(call, "call_id", "call_2"), result, with(result, "call_id", "call_2")},
		"reasoning of nobody":                 {user("Hi."), dict{"type": "reasoning", "id": "rs_1", "summary": []any{dict{"type": "summary_text", "text": "Hm."}}}, dict{"role": "assistant", "content": "Hm."}, user("So?")},
		"reasoning with content":              {user("Hi."), dict{"type": "reasoning", "summary": []any{}, "content": []any{dict{"type": "reasoning_text", "text": "Hm."}}}, dict{"role": "assistant", "content": "Hm."}, user("So?")},
		"reasoning with a foreign proof":      {user("Hi."), dict{"type": "reasoning", "summary": []any{}, "encrypted_content": "gAAAA", "content": nil}, dict{"role": "assistant", "content": "Hm."}, user("So?")},
		"a reference to reasoning, forgotten": {user("Hi."), dict{"type": "item_reference", "id": "rs_unknown"}, user("So?")},
		"a picture with a source":             {user([]any{text, dict{"type": "input_image", "source": dict{"type": "base64", "media_type": "image/png", "data": base64Text}}})},
		"a picture with a detail":             {user([]any{text, dict{"type": "input_image", "image_url": picture, "detail": "low"}})},
		"a cache hint":                        {user([]any{dict{"type": "input_text", "text": "Hello.", "prompt_cache_breakpoint": dict{"mode": "explicit"}}})},
		"keys of tomorrow":                    {dict{"type": "message", "role": "user", "content": []any{dict{"type": "input_text", "text": "Hello.", "tomorrow": 1}}, "tomorrow": nil}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resource, _ := ask(t, url, dict{"model": "openai-chat", "input": input, "tools": []any{weather}})
			answered(t, resource)
		})
	}
	for name, c := range map[string]struct {
		input []any
		param string
	}{
		"an item that is no object":     {[]any{3}, "input[0]"},
		"an unknown item":               {[]any{user("Hi."), dict{"type": "bogus"}}, "input[1]"},
		"an unknown role":               {[]any{dict{"role": "bogus", "content": "x"}}, "input[0].role"},
		"a message without content":     {[]any{dict{"role": "user"}}, "input[0].content"},
		"content of a wrong kind":       {[]any{dict{"role": "user", "content": 3}}, "input[0].content"},
		"an unknown part":               {[]any{user([]any{text, dict{"type": "bogus"}})}, "input[0].content[1]"},
		"a film":                        {[]any{user([]any{dict{"type": "input_video", "video_url": "https://example.com/v.mp4"}})}, "input[0].content[0]"},
		"a part without its text":       {[]any{user([]any{dict{"type": "input_text"}})}, "input[0].content[0].text"},
		"a picture in a system prompt":  {[]any{dict{"role": "system", "content": []any{dict{"type": "input_image", "image_url": picture}}}, user("Hi.")}, "input[0].content[0]"},
		"a picture without a source":    {[]any{user([]any{dict{"type": "input_image"}})}, "input[0].content[0]"},
		"a picture with a bad detail":   {[]any{user([]any{dict{"type": "input_image", "image_url": picture, "detail": "bogus"}})}, "input[0].content[0].detail"},
		"a picture of the provider's":   {[]any{user([]any{dict{"type": "input_image", "file_id": "file_1"}})}, "input[0].content[0]"},
		"a file with two sources":       {[]any{user([]any{dict{"type": "input_file", "filename": "a.pdf", "file_data": base64Text, "file_url": "https://example.com/a.pdf"}})}, "input[0].content[0]"},
		"a file without a source":       {[]any{user([]any{dict{"type": "input_file", "filename": "a.pdf"}})}, "input[0].content[0]"},
		"a file that is no base64":      {[]any{user([]any{dict{"type": "input_file", "filename": "a.pdf", "file_data": "###"}})}, "input[0].content[0].file_data"},
		"an output of no call":          {[]any{user("Hi."), result}, "input"},
		"arguments that are no object":  {[]any{user("Hi."), with(call, "arguments", "[1]"), result}, "input[1].arguments"},
		"a call without a name":         {[]any{user("Hi."), with(call, "name", nil), result}, "input[1].name"},
		"a call without an id":          {[]any{user("Hi."), with(call, "call_id", nil), result}, "input[1].call_id"},
		"an output without output":      {[]any{user("Hi."), call, with(result, "output", nil)}, "input[2].output"},
		"a reference to a lost message": {[]any{user("Hi."), dict{"type": "item_reference", "id": "msg_unknown"}}, "input[1]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refusedAt(t, url, dict{"model": "openai-chat", "input": c.input, "tools": []any{weather}}, http.StatusBadRequest, c.param)
		})
	}
}

// TestResponsesRefusals checks what is wrong with a request as a whole.
func TestResponsesRefusals(t *testing.T) {
	url, off := openResponses(t), simulation(t, config.Endpoints{})+"/v1/responses"
	t.Run("model", func(t *testing.T) {
		refusedAt(t, url, dict{"input": "Hi."}, http.StatusBadRequest, "model")
		refusedAt(t, url, dict{"model": nil, "input": "Hi."}, http.StatusBadRequest, "model")
		refusedAt(t, url, dict{"model": 3, "input": "Hi."}, http.StatusBadRequest, "model")
		if message := refusedAt(t, url, dict{"model": "unknown", "input": "Hi."}, http.StatusNotFound, "model"); !strings.Contains(message, "model_not_found") {
			t.Error(message)
		}
	})
	t.Run("input", func(t *testing.T) { refusedAt(t, url, dict{"model": "openai-chat"}, http.StatusBadRequest, "input") })
	t.Run("previous response", func(t *testing.T) {
		body := dict{"model": "openai-chat", "input": "Hi.", "previous_response_id": "resp_unknown"}
		if message := refusedAt(t, url, body, http.StatusBadRequest, "previous_response_id"); !strings.Contains(message, "previous_response_not_found") {
			t.Error(message)
		}
		stored, _ := ask(t, url, dict{"model": "openai-chat", "input": "Hi.", "store": false})
		body["previous_response_id"] = stored["id"]
		refusedAt(t, url, body, http.StatusBadRequest, "previous_response_id")
	})
	t.Run("hosted tools", func(t *testing.T) {
		body := dict{"model": "openai-chat", "input": "Hi.", "tools": []any{dict{"type": "web_search"}, weather}}
		status, answer, h := post(t, url, body)
		if status != http.StatusOK || !strings.Contains(h.Get("X-Mmsp-Dropped"), "web_search") {
			t.Errorf("HTTP %d, dropped %q: %.300s", status, h.Get("X-Mmsp-Dropped"), answer)
		}
		if err := wiregrammar.ResponsesResource(answer); err != nil {
			t.Error(err)
		}
		body["tool_choice"] = dict{"type": "web_search"}
		refusedAt(t, url, body, http.StatusBadRequest, "tool_choice")
	})
	t.Run("bodies", func(t *testing.T) {
		for _, body := range []string{"", "{", "[]", "null", `{"model":"openai-chat","model":"openai-chat","input":"Hi."}`, "\xff"} {
			status, answer, _ := send(t, http.MethodPost, url, []byte(body))
			if err := wiregrammar.OpenAIError(answer); err != nil || status != http.StatusBadRequest {
				t.Errorf("%q: HTTP %d: %v", body, status, err)
			}
		}
	})
	t.Run("method", func(t *testing.T) {
		status, answer, h := send(t, http.MethodGet, url, nil)
		if err := wiregrammar.OpenAIError(answer); err != nil || status != http.StatusMethodNotAllowed || h.Get("Allow") != http.MethodPost {
			t.Errorf("HTTP %d, Allow %q: %v", status, h.Get("Allow"), err)
		}
	})
	t.Run("switched off", func(t *testing.T) {
		message := refusedAt(t, off, dict{"model": "openai-chat", "input": "Hi."}, http.StatusNotFound, "")
		if !strings.Contains(message, "gateway.http.endpoints.responses.enabled") {
			t.Error(message)
		}
	})
}
