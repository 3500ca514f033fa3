package anthropicofficial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/prism-shadow/mmsp-go"
)

// transport answers requests without a network.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answer(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
}

// testClient is a client of Anthropic's own endpoint over the given transport.
func testClient(t testing.TB, model string, over http.RoundTripper) *Client {
	t.Helper()
	client, err := New(mmsp.Options{
		Model: model, APIKey: mmsp.NewSecret("test-key"), BaseURL: "https://api.anthropic.com", HTTPClient: &http.Client{Transport: over},
		HTTP: mmsp.HTTPOptions{MaxRetries: new(0)}, Getenv: func(string) string { return "" },
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func parse[T any](t testing.TB, text string) (value T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return value
}

// Each row: what a config adds to the request, or the parameter that is refused.
func TestPrepareConfig(t *testing.T) {
	const adaptive = `"thinking":{"type":"adaptive"},"output_config":{"effort":"%s"}`
	effort := func(e string) string { return fmt.Sprintf(adaptive, e) }
	table := []struct {
		model, config string
		want          string // fields, or
		unsupported   string
	}{
		{"claude-x", `{}`, ``, ""},
		{"claude-x", `{"max_tokens":100}`, `"max_tokens":100`, ""},
		{"claude-x", `{"system_prompt":"Be brief."}`, `"system":"Be brief."`, ""},
		{"claude-x", `{"system_prompt":""}`, ``, ""},
		{"claude-x", `{"temperature":1.0}`, ``, ""},
		{"claude-x", `{"temperature":0.5}`, ``, "temperature"},
		{"claude-x", `{"image_config":{"aspect_ratio":"1:1"},"embedding_config":{"dimensions":3},"tts_config":[{"voice":"v"}]}`, ``, ""},

		{"claude-sonnet-5", `{"thinking_level":"none"}`, ``, ""},
		{"claude-sonnet-5", `{"thinking_level":"low"}`, effort("low"), ""},
		{"claude-sonnet-5", `{"thinking_level":"medium"}`, effort("medium"), ""},
		{"claude-sonnet-5", `{"thinking_level":"high"}`, effort("high"), ""},
		{"claude-sonnet-5", `{"thinking_level":"xhigh"}`, effort("xhigh"), ""},
		{"claude-sonnet-5", `{"thinking_level":"max"}`, effort("max"), ""},
		{"claude-sonnet-4-6", `{"thinking_level":"none"}`, ``, ""},
		{"claude-sonnet-4-6", `{"thinking_level":"high"}`, effort("high"), ""},
		{"claude-sonnet-4-6", `{"thinking_level":"xhigh"}`, effort("high"), ""},
		{"claude-sonnet-4-6", `{"thinking_level":"max"}`, effort("max"), ""},
		{"claude-opus-5-5", `{"thinking_level":"none"}`, effort("low"), ""},
		{"claude-fable-5-1", `{"thinking_level":"none"}`, effort("low"), ""},
		{"anthropic.claude-haiku-5-5", `{"thinking_level":"none"}`, effort("low"), ""},
		{"claude-fable-5-1", `{"thinking_level":"xhigh"}`, effort("xhigh"), ""},
		{"claude-sonnet-5-5", `{"thinking_level":"none"}`, `"thinking":{"type":"between_tools"}`, ""},
		{"claude-sonnet-5-5", `{"thinking_level":"low"}`, effort("low"), ""},
		{"claude-sonnet-5-5", `{"thinking_level":"xhigh"}`, effort("xhigh"), ""},

		{"claude-sonnet-5", `{"thinking_summary":true}`, `"thinking":{"type":"adaptive","display":"summarized"}`, ""},
		{"claude-sonnet-5", `{"thinking_summary":false}`, `"thinking":{"type":"adaptive","display":"omitted"}`, ""},
		{"claude-sonnet-5", `{"thinking_summary":true,"thinking_level":"none"}`, `"thinking":{"type":"adaptive","display":"summarized"}`, ""},
		{"claude-sonnet-5", `{"thinking_summary":false,"thinking_level":"high"}`, `"thinking":{"type":"adaptive","display":"omitted"},"output_config":{"effort":"high"}`, ""},
		{"claude-opus-5-5", `{"thinking_summary":true,"thinking_level":"none"}`, `"thinking":{"type":"adaptive","display":"summarized"},"output_config":{"effort":"low"}`, ""},
		{"claude-sonnet-5-5", `{"thinking_summary":true,"thinking_level":"none"}`, `"thinking":{"type":"between_tools"}`, ""},
		{"claude-sonnet-5-5", `{"thinking_summary":true}`, `"thinking":{"type":"adaptive","display":"summarized"}`, ""},

		{"claude-x", `{"tools":[]}`, `"tools":[]`, ""},
		{
			"claude-x", `{"tools":[{"name":"f","description":"d","parameters":{"type":"object"},"strict":true},{"name":"g","description":""}]}`,
			`"tools":[{"name":"f","description":"d","input_schema":{"type":"object"},"strict":true},{"name":"g"}]`, "",
		},

		{"claude-x", `{"tool_choice":"auto"}`, `"tool_choice":{"type":"auto"}`, ""},
		{"claude-x", `{"tool_choice":"none"}`, `"tool_choice":{"type":"none"}`, ""},
		{"claude-x", `{"tool_choice":"required"}`, `"tool_choice":{"type":"any"}`, ""},
		{"claude-x", `{"tool_choice":["f"]}`, `"tool_choice":{"type":"tool","name":"f"}`, ""},
		{"claude-x", `{"tool_choice":["f","g"]}`, ``, "tool_choice"},
		{"claude-opus-5-5", `{"tool_choice":"auto"}`, `"tool_choice":{"type":"auto"}`, ""},
		{"claude-opus-5-5", `{"tool_choice":"none"}`, `"tool_choice":{"type":"none"}`, ""},
		{"claude-opus-5-5", `{"tool_choice":"required"}`, ``, "tool_choice"},
		{"claude-sonnet-5-5", `{"tool_choice":["f"]}`, ``, "tool_choice"},
		{"claude-haiku-5-5", `{"tool_choice":"required"}`, ``, "tool_choice"},
		{"claude-fable-5-1", `{"tool_choice":["f"]}`, ``, "tool_choice"},
		{"claude-x", `{"tool_choice":"required","thinking_level":"high"}`, `"thinking":{"type":"adaptive"},"output_config":{"effort":"high"},"tool_choice":{"type":"any"}`, ""}, // adaptive thinking lets itself be forced
		{"claude-x", `{"tool_choice":["f"],"thinking_level":"none"}`, `"tool_choice":{"type":"tool","name":"f"}`, ""},

		{"claude-opus-5-5", `{"fast_mode":true}`, `"speed":"fast"`, ""},
		{"claude-opus-5", `{"fast_mode":true}`, `"speed":"fast"`, ""},
		{"claude-opus-5", `{"fast_mode":false}`, ``, ""},
		{"claude-opus-4-6", `{"fast_mode":true}`, ``, "fast_mode"},
		{"claude-sonnet-5-5", `{"fast_mode":true}`, ``, "fast_mode"},
		{"claude-haiku-5-5", `{"fast_mode":true}`, ``, "fast_mode"},
		{"claude-fable-5-1", `{"fast_mode":true}`, ``, "fast_mode"},

		{"claude-x", `{"prompt_caching":"enable"}`, ``, ""},
		{"claude-x", `{"prompt_caching":"enhance"}`, `"cache_control":{"type":"ephemeral","ttl":"1h"}`, ""},
		{"claude-x", `{"prompt_caching":"disable"}`, `"cache_control":null`, ""},
	}
	for _, row := range table {
		t.Run(row.model+" "+row.config, func(t *testing.T) {
			config := parse[mmsp.Config](t, row.config)
			request, err := testClient(t, row.model, nil).Prepare(t.Context(), []mmsp.Message{mmsp.UserMessage(mmsp.Text("Hi"))}, &config)
			if row.unsupported != "" {
				var unsupported *mmsp.UnsupportedParameterError
				if !errors.As(err, &unsupported) || unsupported.Parameter != row.unsupported || unsupported.Client != class {
					t.Fatalf("error %v, want one for %s", err, row.unsupported)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := parse[map[string]any](t, `{"max_tokens":64000,"stream":true,"cache_control":{"type":"ephemeral"},
				"messages":[{"role":"user","content":[{"type":"text","text":"Hi"}]}]}`)
			want["model"] = row.model
			for key, value := range parse[map[string]any](t, "{"+row.want+"}") {
				if want[key] = value; value == nil {
					delete(want, key)
				}
			}
			if got := parse[map[string]any](t, string(request.Body)); !reflect.DeepEqual(got, want) {
				t.Errorf("\n got %s\nwant %v", request.Body, want)
			}
			header := http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}}
			if config.FastMode {
				header["Anthropic-Beta"] = []string{"fast-mode-2026-02-01"}
			}
			if request.URL != "https://api.anthropic.com/v1/messages?beta=true" || request.Method != "POST" || !reflect.DeepEqual(request.Header, header) {
				t.Errorf("%s %s %v", request.Method, request.URL, request.Header)
			}
		})
	}
}

// Each row: the messages of the request, byte for byte, or the place of the error.
func TestPrepareMessages(t *testing.T) {
	const (
		ask  = `{"role":"user","content_items":[{"type":"text.done","text":"Ask"}]}`
		sent = `{"role":"user","content":[{"type":"text","text":"Ask"}]}`
	)
	assistant := func(items string) string { return `[` + ask + `,{"role":"assistant","content_items":[` + items + `]}]` }
	turn := func(blocks string) string { return `[` + sent + `,{"role":"assistant","content":[` + blocks + `]}]` }
	user := func(items string) string { return `[{"role":"user","content_items":[` + items + `]}]` }
	blocks := func(blocks string) string { return `[{"role":"user","content":[` + blocks + `]}]` }
	table := []struct {
		name, messages string
		want, invalid  string
	}{
		{"no messages", `[]`, `[]`, ""},
		{"text as it is", user(`{"type":"text.done","text":" <b>é\n"}`), blocks(`{"type":"text","text":" <b>é\n"}`), ""},
		{
			"a turn in its order",
			`[` + ask + `,{"role":"assistant","content_items":[{"type":"thinking.done","thinking":"check stock","fidelity":{"signature":"U0lHLUE="}},
				{"type":"text.done","text":"One moment."},{"type":"tool_call.done","name":"lookup","arguments":{"sku":"A7"},"tool_call_id":"c-9"}]},
				{"role":"user","content_items":[{"type":"tool_result.done","text":"3 left","tool_call_id":"c-9"}]}]`,
			`[` + sent + `,{"role":"assistant","content":[{"type":"thinking","thinking":"check stock","signature":"U0lHLUE="},` +
				`{"type":"text","text":"One moment."},{"type":"tool_use","id":"c-9","name":"lookup","input":{"sku":"A7"}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c-9","content":[{"type":"text","text":"3 left"}]}]}]`,
			"",
		},
		{
			"arguments digit for digit",
			assistant(`{"type":"tool_call.done","name":"f","tool_call_id":"a","arguments":{"z":9007199254740993,"a":18446744073709551615,"e":1.0e-2}},
				{"type":"tool_call.done","name":"g","tool_call_id":"b","arguments":{}}`),
			turn(`{"type":"tool_use","id":"a","name":"f","input":{"z":9007199254740993,"a":18446744073709551615,"e":1.0e-2}},` +
				`{"type":"tool_use","id":"b","name":"g","input":{}}`),
			"",
		},
		{
			"ids of other providers",
			`[{"role":"assistant","content_items":[{"type":"tool_call.done","name":"f","arguments":{},"tool_call_id":"functions.f:0"}]},
				{"role":"user","content_items":[{"type":"tool_result.done","text":"r","tool_call_id":"functions.f:0"}]}]`,
			`[{"role":"assistant","content":[{"type":"tool_use","id":"functions_2ef_3a0","name":"f","input":{}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"functions_2ef_3a0","content":[{"type":"text","text":"r"}]}]}]`,
			"",
		},
		{"image by URL", user(`{"type":"image_url.done","image_url":"https://x.example/a.png"}`), blocks(`{"type":"image","source":{"type":"url","url":"https://x.example/a.png"}}`), ""},
		{"inline image", user(`{"type":"image_url.done","image_url":"data:image/png;base64,QUJD"}`), blocks(`{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}}`), ""},
		{"a data URL that is not base64", user(`{"type":"image_url.done","image_url":"data:image/png,ABC"}`), "", "messages[0].content_items[0].image_url"},
		{"a data URL without a media type", user(`{"type":"image_url.done","image_url":"Data:;base64,QUJD"}`), "", "messages[0].content_items[0].image_url"},
		{
			"results: text, pictures, an error, nothing",
			user(`{"type":"tool_result.done","text":"a","tool_call_id":"1","images":["data:image/png;base64,QUJD"]},
				{"type":"tool_result.done","text":"","tool_call_id":"2","images":["https://x.example/b.png"]},
				{"type":"tool_result.done","text":"broken","tool_call_id":"3","is_error":true},
				{"type":"tool_result.done","text":"","tool_call_id":"4"}`),
			blocks(`{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"QUJD"}}]},` +
				`{"type":"tool_result","tool_use_id":"2","content":[{"type":"image","source":{"type":"url","url":"https://x.example/b.png"}}]},` +
				`{"type":"tool_result","tool_use_id":"3","content":[{"type":"text","text":"broken"}],"is_error":true},` +
				`{"type":"tool_result","tool_use_id":"4"}`),
			"",
		},
		{"a picture of a result", user(`{"type":"tool_result.done","text":"a","tool_call_id":"1","images":["https://x.example/a.png","data:x"]}`), "", "messages[0].content_items[0].images[1]"},
		{"inline data", user(`{"type":"inline_data.done","data":"QUJD","mime_type":"image/png"}`), "", "messages[0].content_items[0]"},
		{"inline thinking", assistant(`{"type":"inline_thinking.done","data":"QUJD","mime_type":"image/png"}`), "", "messages[1].content_items[0]"},
		{"embedding", user(`{"type":"text.done","text":"a"},{"type":"embedding.done","embedding":[1]}`), "", "messages[0].content_items[1]"},
		{"blank text", user(`{"type":"text.done","text":""},{"type":"text.done","text":" \n"},{"type":"text.done","text":"a"}`), blocks(`{"type":"text","text":"a"}`), ""},
		{"turns of which nothing stays", `[` + ask + `,{"role":"assistant","content_items":[{"type":"text.done","text":""}]},{"role":"user","content_items":[]},` + ask + `]`, `[` + sent + `,` + sent + `]`, ""},

		// Thinking goes back where it came from, and nowhere else.
		{"signed", assistant(`{"type":"thinking.done","thinking":"t","fidelity":{"signature":"s","issuer":"anthropic","other":1}}`), turn(`{"type":"thinking","thinking":"t","signature":"s"}`), ""},
		{"signed, without text", assistant(`{"type":"thinking.done","thinking":"","fidelity":{"signature":"s","issuer":"anthropic"}}`), turn(`{"type":"thinking","thinking":"","signature":"s"}`), ""},
		{"redacted", assistant(`{"type":"thinking.done","thinking":"_REDACTED_THINKING","fidelity":{"signature":"RU5D","issuer":"anthropic"}}`), turn(`{"type":"redacted_thinking","data":"RU5D"}`), ""},
		{"redacted, without its data", assistant(`{"type":"thinking.done","thinking":"_REDACTED_THINKING"},{"type":"text.done","text":"a"}`), turn(`{"type":"text","text":"a"}`), ""},
		{"signed by another", assistant(`{"type":"thinking.done","thinking":"t","fidelity":{"signature":"s","issuer":"google"}},{"type":"text.done","text":"a"}`), turn(`{"type":"text","text":"a"}`), ""},
		{"redacted by another", assistant(`{"type":"thinking.done","thinking":"_REDACTED_THINKING","fidelity":{"signature":"s","issuer":"gw.example"}},{"type":"text.done","text":"a"}`), turn(`{"type":"text","text":"a"}`), ""},
		{"unsigned", assistant(`{"type":"thinking.done","thinking":"t","fidelity":{"reasoning_field":"reasoning"}},{"type":"text.done","text":"a"}`), turn(`{"type":"text","text":"a"}`), ""},
		{"nothing but unsigned", assistant(`{"type":"thinking.done","thinking":"t"}`), `[` + sent + `]`, ""},
		{"fidelity of another kind", assistant(`{"type":"thinking.done","thinking":"t","fidelity":{"signature":7}},{"type":"text.done","text":"a"}`), turn(`{"type":"text","text":"a"}`), ""},
	}
	for _, row := range table {
		t.Run(row.name, func(t *testing.T) {
			messages := parse[[]mmsp.Message](t, row.messages)
			request, err := testClient(t, "m", nil).Prepare(t.Context(), messages, &mmsp.Config{})
			if row.invalid != "" {
				var invalid *mmsp.InvalidRequestError
				if !errors.As(err, &invalid) || invalid.Param != row.invalid {
					t.Fatalf("error %v, want one at %s", err, row.invalid)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			body := parse[struct{ Messages json.RawMessage }](t, string(request.Body))
			if string(body.Messages) != row.want {
				t.Errorf("\n got %s\nwant %s", body.Messages, row.want)
			}
		})
	}
}

// The provider caches a prompt by its bytes: what was sent is sent again as it was, with the new turn behind it.
func TestPrepareIsStable(t *testing.T) {
	client := testClient(t, "m", nil)
	config := parse[mmsp.Config](t, `{"tools":[{"name":"b","parameters":{"z":1,"a":2}},{"name":"a","x":1,"b":2}],"system_prompt":"s"}`)
	messages := []mmsp.Message{
		mmsp.UserMessage(mmsp.Text("q")),
		mmsp.AssistantMessage(mmsp.ToolCall("1", "b", `{"z":1,"a":2}`)),
		mmsp.UserMessage(mmsp.ToolResult("1", "r")),
	}
	prepare := func(messages []mmsp.Message) string {
		request, err := client.Prepare(t.Context(), messages, &config)
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimSuffix(string(request.Body), "]}")
	}
	first := prepare(messages)
	if longer := prepare(append(messages, mmsp.AssistantMessage(mmsp.Text("a")))); !strings.HasPrefix(longer, first) || longer == first {
		t.Errorf("\n%s\nis not how this begins:\n%s", first, longer)
	}
}

// Each row: a key (k) and base URL (u) in the options, and in the environment (K, U), and what is sent where.
func TestCredentials(t *testing.T) {
	const (
		given, environment = "given-key", "environment-key"
		vendorURL          = "https://api.anthropic.com/v1/messages?beta=true"
		givenURL           = "https://given.example/anthropic/v1/messages?beta=true"
		environmentURL     = "https://environment.example/v1/messages?beta=true"
	)
	table := []struct{ cell, key, url string }{
		{"....", "", vendorURL},
		{"...U", "", environmentURL},
		{"..K.", environment, vendorURL},
		{"..KU", environment, environmentURL},
		{".u..", "", ""},
		{".u.U", "", ""},
		{".uK.", "", ""},
		{".uKU", "", ""},
		{"k...", given, vendorURL},
		{"k..U", given, environmentURL},
		{"k.K.", given, vendorURL},
		{"k.KU", given, environmentURL},
		{"ku..", given, givenURL},
		{"ku.U", given, givenURL},
		{"kuK.", given, givenURL},
		{"kuKU", given, givenURL},
	}
	for _, row := range table {
		t.Run(row.cell, func(t *testing.T) {
			var sent *http.Request
			options := mmsp.Options{Model: "m", HTTPClient: &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
				sent = r
				return answer(400, `{}`), nil
			})}}
			options.Getenv = func(name string) string {
				switch {
				case name == "ANTHROPIC_API_KEY" && row.cell[2] == 'K':
					return environment
				case name == "ANTHROPIC_BASE_URL" && row.cell[3] == 'U':
					return "https://environment.example/"
				case name == "ANTHROPIC_API_KEY", name == "ANTHROPIC_BASE_URL", name == "MMSP_DEBUG":
					return ""
				}
				return "planted-" + name // a key of another vendor, or ANTHROPIC_AUTH_TOKEN
			}
			if row.cell[0] == 'k' {
				options.APIKey = mmsp.NewSecret(given)
			}
			if row.cell[1] == 'u' {
				options.BaseURL = "https://given.example/anthropic/v1"
			}
			client, err := New(options)
			if row.url == "" {
				if err == nil || !strings.Contains(err.Error(), class) {
					t.Fatalf("error %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			request, err := client.Prepare(t.Context(), nil, &mmsp.Config{})
			if err != nil {
				t.Fatal(err)
			}
			for range client.Do(t.Context(), request) {
			}
			want := http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}, "Anthropic-Version": {"2023-06-01"}}
			if row.key != "" {
				want.Set("X-Api-Key", row.key)
			}
			if sent.URL.String() != row.url || !reflect.DeepEqual(sent.Header, want) {
				t.Errorf("%s %v, want %s %v", sent.URL, sent.Header, row.url, want)
			}
		})
	}
}

func TestNewRefuses(t *testing.T) {
	for _, url := range []string{"bedrock://us-east-1", "ftp://x.example", "x.example", "https://user:secret@x.example"} {
		_, err := New(mmsp.Options{Model: "m", APIKey: mmsp.NewSecret("AK,SK"), BaseURL: url, Getenv: func(string) string { return "" }})
		if err == nil || !strings.Contains(err.Error(), class) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: error %v", url, err)
		}
	}
}

func TestDefaultHeaders(t *testing.T) {
	var sent []http.Header
	client := testClient(t, "m", transport(func(r *http.Request) (*http.Response, error) {
		sent = append(sent, r.Header)
		return answer(200, `{"data":[]}`), nil
	}))
	client.headers = map[string]string{"x-app": "cli", "anthropic-beta": "context-1m", "x-api-key": "mine"}
	request, err := client.Prepare(t.Context(), nil, &mmsp.Config{FastMode: true})
	if err != nil {
		t.Fatal(err)
	}
	for range client.Do(t.Context(), request) {
	}
	if _, err := client.ListModels(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, beta := range []string{"fast-mode-2026-02-01,context-1m", "context-1m"} {
		if h := sent[i]; h.Get("X-App") != "cli" || h.Get("Anthropic-Beta") != beta || h.Get("X-Api-Key") != "test-key" {
			t.Errorf("request %d: %v", i, h)
		}
	}
}

func TestListModels(t *testing.T) {
	pages := map[string]string{
		"/v1/models":                   `{"data":[{"id":"claude-b"},{"id":"gpt-x"}],"has_more":true,"first_id":"claude-b","last_id":"gpt/x"}`,
		"/v1/models?after_id=gpt%2Fx":  `{"data":[{"id":"claude-a"}],"has_more":true,"last_id":"claude-a"}`,
		"/v1/models?after_id=claude-a": `{"data":[],"has_more":false,"last_id":null}`,
	}
	client := testClient(t, "m", transport(func(r *http.Request) (*http.Response, error) {
		page, ok := pages[r.URL.RequestURI()]
		if !ok || r.Method != "GET" || r.Header.Get("X-Api-Key") != "test-key" || r.Header.Get("Anthropic-Version") != "2023-06-01" {
			return answer(404, `{"type":"error","error":{"type":"not_found_error","message":"no"}}`), nil
		}
		return answer(200, page), nil
	}))
	got, err := client.ListModels(t.Context())
	if want := []string{"claude-b", "gpt-x", "claude-a"}; err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v %v", got, err)
	}

	for name, body := range map[string]string{"an error": `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`, "a page": `<html>`} {
		client := testClient(t, "m", transport(func(*http.Request) (*http.Response, error) { return answer(200, body), nil }))
		var upstream *mmsp.UpstreamError
		if _, err := client.ListModels(t.Context()); !errors.As(err, &upstream) {
			t.Errorf("%s: %v", name, err)
		}
	}

	endless := testClient(t, "m", transport(func(*http.Request) (*http.Response, error) {
		return answer(200, `{"data":[{"id":"a"}],"has_more":true,"last_id":"a"}`), nil
	}))
	if _, err := endless.ListModels(context.Background()); err == nil {
		t.Error("an endless list ends without an error")
	}
}
