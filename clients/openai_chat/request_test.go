package openaichat_test

import (
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/prism-shadow/mmsp-go"
	openaichat "github.com/prism-shadow/mmsp-go/clients/openai_chat"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// build makes a client that no environment reaches.
func build(t *testing.T, o mmsp.Options) *openaichat.Client {
	t.Helper()
	o.APIKey = mmsp.NewSecret("sk-test")
	o.Getenv = func(string) string { return "" }
	if o.BaseURL == "" {
		o.BaseURL = "http://provider.test/v1"
	}
	if o.Model == "" {
		o.Model = "m-1"
	}
	c, err := openaichat.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// prepare reads messages and config in their wire form and returns the request body.
func prepare(t *testing.T, c *openaichat.Client, messages, config string) (string, error) {
	t.Helper()
	m, err := mmsp.ParseMessages([]byte(messages), false)
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := mmsp.ParseConfig([]byte(config))
	if err != nil {
		t.Fatal(err)
	}
	request, err := c.Prepare(t.Context(), m, &cfg)
	if err != nil {
		return "", err
	}
	if request.Method != http.MethodPost || request.URL != "http://provider.test/v1/chat/completions" ||
		request.Header.Get("Content-Type") != "application/json" || request.Header.Get("Authorization") != "" {
		t.Errorf("%s %s %v", request.Method, request.URL, request.Header)
	}
	return string(request.Body), nil
}

const (
	start = `{"model":"m-1","stream":true,"stream_options":{"include_usage":true},`
	hello = `[{"role":"user","content_items":[{"type":"text.done","text":"hi"}]}]`
	hi    = `{"role":"user","content":[{"type":"text","text":"hi"}]}`
)

func TestConfig(t *testing.T) {
	tests := []struct{ name, config, want string }{
		{"nothing", `{}`, start + `"messages":[` + hi + `]}`},
		{"system prompt", `{"system_prompt":"Be <brief> & kind"}`, start + `"messages":[{"role":"system","content":"Be <brief> & kind"},` + hi + `]}`},
		{"empty system prompt", `{"system_prompt":""}`, start + `"messages":[` + hi + `]}`},
		{"max_tokens", `{"max_tokens":400}`, start + `"max_completion_tokens":400,"messages":[` + hi + `]}`},
		{"temperature", `{"temperature":0}`, start + `"temperature":0,"messages":[` + hi + `]}`},
		{"any temperature", `{"temperature":1.75}`, start + `"temperature":1.75,"messages":[` + hi + `]}`},
		{"empty tools", `{"tools":[]}`, start + `"tools":[],"messages":[` + hi + `]}`},
		{
			"tools, with a key that only the provider knows", `{"tools":[{"name":"f","description":"Größe <b>","parameters":{"type":"object","properties":{"z":{},"a":{"maximum":9007199254740993}}},"strict":true},{"name":"g","description":""}]}`,
			start + `"tools":[{"type":"function","function":{"name":"f","description":"Größe <b>","parameters":{"type":"object","properties":{"z":{},"a":{"maximum":9007199254740993}}},"strict":true}},` +
				`{"type":"function","function":{"name":"g","description":""}}],"messages":[` + hi + `]}`,
		},
		{"choice auto", `{"tool_choice":"auto"}`, start + `"tool_choice":"auto","messages":[` + hi + `]}`},
		{"choice none", `{"tool_choice":"none"}`, start + `"tool_choice":"none","messages":[` + hi + `]}`},
		{"choice required", `{"tool_choice":"required"}`, start + `"tool_choice":"required","messages":[` + hi + `]}`},
		{
			"choice of names", `{"tool_choice":["f","g"]}`, start + `"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"required","tools":[` +
				`{"type":"function","function":{"name":"f"}},{"type":"function","function":{"name":"g"}}]}},"messages":[` + hi + `]}`,
		},
		{"fast mode", `{"fast_mode":true}`, start + `"service_tier":"priority","messages":[` + hi + `]}`},
		{"no fast mode", `{"fast_mode":false}`, start + `"messages":[` + hi + `]}`},
		{"caching as it is", `{"prompt_caching":"enable"}`, start + `"messages":[` + hi + `]}`},
		{
			"what the protocol does not have", `{"thinking_level":"high","thinking_summary":true,"trace_id":"a/b","image_config":{"image_size":"1K"},"tts_config":[{"voice":"v"}],"embedding_config":{"dimensions":4}}`,
			start + `"messages":[` + hi + `]}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := build(t, mmsp.Options{})
			for range 2 { // the same bytes every time
				if got, err := prepare(t, c, hello, tt.config); got != tt.want || err != nil {
					t.Errorf("got  %s (%v)\nwant %s", got, err, tt.want)
				}
			}
		})
	}
}

func TestMessages(t *testing.T) {
	const think, call = `{"type":"thinking.done","thinking":"Hm.","fidelity":{"reasoning_field":"reasoning_content"}}`,
		`{"type":"tool_call.done","name":"tide_at","arguments":{"port":"Brest"},"tool_call_id":"k1"}`
	const wireCall = `{"id":"k1","type":"function","function":{"name":"tide_at","arguments":"{\"port\":\"Brest\"}"}}`
	user := func(items string) string { return `{"role":"user","content_items":[` + items + `]}` }
	assistant := func(items string) string { return `{"role":"assistant","content_items":[` + items + `]}` }
	result := func(id, text string) string {
		return user(`{"type":"tool_result.done","tool_call_id":"` + id + `","text":"` + text + `"}`)
	}
	thought := func(text, field string) string {
		return `{"type":"thinking.done","thinking":"` + text + `","fidelity":{"reasoning_field":"` + field + `"}}`
	}
	tests := []struct{ name, messages, want string }{
		{"no message", ``, ``},
		{"a turn of nothing", user(``), ``},
		{
			"parts in order", user(`{"type":"text.done","text":"a"},{"type":"image_url.done","image_url":"data:image/png;base64,AAAA"},{"type":"text.done","text":""}`),
			`{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}},{"type":"text","text":""}]}`,
		},
		{"characters as they are", user(`{"type":"text.done","text":"Grüße <b>&\u00a0日本 \"q\" \\ \n"}`), "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"Grüße <b>&\u00a0日本 \\\"q\\\" \\\\ \\n\"}]}"},
		{"assistant's text", assistant(`{"type":"text.done","text":"yes"}`), `{"role":"assistant","content":[{"type":"text","text":"yes"}]}`},
		{"calls alone", assistant(call), `{"role":"assistant","tool_calls":[` + wireCall + `]}`},
		{
			"thinking, text and calls share a message", assistant(think + `,{"type":"text.done","text":"So:"},` + call),
			`{"role":"assistant","content":[{"type":"text","text":"So:"}],"tool_calls":[` + wireCall + `],"reasoning_content":"Hm."}`,
		},
		{
			"arguments verbatim", assistant(`{"type":"tool_call.done","name":"f","arguments":{ "b" : 18446744073709551615, "a":1.50,
 "c":"\u00e9" },"tool_call_id":"k"}`),
			`{"role":"assistant","tool_calls":[{"id":"k","type":"function","function":{"name":"f","arguments":"{ \"b\" : 18446744073709551615, \"a\":1.50,\n \"c\":\"\\u00e9\" }"}}]}`,
		},
		{
			"results stand before the rest of the turn", user(`{"type":"text.done","text":"and?"},{"type":"tool_result.done","tool_call_id":"k1","text":"4.1 m","is_error":true},{"type":"tool_result.done","tool_call_id":"k2","text":""}`),
			`{"role":"tool","tool_call_id":"k1","content":"4.1 m"},{"role":"tool","tool_call_id":"k2","content":""},{"role":"user","content":[{"type":"text","text":"and?"}]}`,
		},
		{
			"pictures of a result follow it", user(`{"type":"tool_result.done","tool_call_id":"k1","text":"see","images":["data:image/png;base64,AA","DATA:image/gif;base64,BB"]}`),
			`{"role":"tool","tool_call_id":"k1","content":"see"},{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}},{"type":"image_url","image_url":{"url":"DATA:image/gif;base64,BB"}}]}`,
		},

		{
			"reasoning_content goes back on its field", assistant(thought("a", "reasoning_content") + `,` + thought("b", "reasoning_content") + `,{"type":"text.done","text":"t"}`),
			`{"role":"assistant","content":[{"type":"text","text":"t"}],"reasoning_content":"ab"}`,
		},
		{"reasoning goes back on its field", assistant(thought("a", "reasoning")), `{"role":"assistant","reasoning":"a"}`},
		{"thinking of an unknown field", assistant(`{"type":"thinking.done","thinking":"a","fidelity":{"signature":"s"}}`), `{"role":"assistant","reasoning_content":"a","reasoning":"a"}`},
		{"thinking of mixed fields", assistant(thought("a", "reasoning") + `,` + thought("b", "reasoning_content")), `{"role":"assistant","reasoning_content":"ab","reasoning":"ab"}`},
		{"empty thinking counts for its turn's fields", assistant(thought("", "reasoning") + `,` + thought("b", "reasoning_content")), `{"role":"assistant","reasoning_content":"b","reasoning":"b"}`},
		{"empty thinking alone", assistant(thought("", "reasoning")), ``},
		{"a field of another type", assistant(`{"type":"thinking.done","thinking":"a","fidelity":{"reasoning_field":7}}`), `{"role":"assistant","reasoning_content":"a","reasoning":"a"}`},
		{
			"a call without thinking after one with it",
			assistant(thought("Need the tide.", "reasoning_content")+`,`+call) + `,` + result("k1", "4.1 m") + `,` + assistant(strings.ReplaceAll(call, "k1", "k2")) + `,` + result("k2", "0.3 m") + `,` + assistant(`{"type":"text.done","text":"done"}`),
			`{"role":"assistant","tool_calls":[` + wireCall + `],"reasoning_content":"Need the tide."},{"role":"tool","tool_call_id":"k1","content":"4.1 m"},` +
				`{"role":"assistant","tool_calls":[` + strings.ReplaceAll(wireCall, "k1", "k2") + `],"reasoning_content":""},{"role":"tool","tool_call_id":"k2","content":"0.3 m"},` +
				`{"role":"assistant","content":[{"type":"text","text":"done"}]}`,
		},
		{"a call in a history that never thought", assistant(call), `{"role":"assistant","tool_calls":[` + wireCall + `]}`},
		{
			"thinking after the call is too late", assistant(call) + `,` + result("k1", "") + `,` + assistant(thought("a", "reasoning")),
			`{"role":"assistant","tool_calls":[` + wireCall + `]},{"role":"tool","tool_call_id":"k1","content":""},{"role":"assistant","reasoning":"a"}`,
		},
		{
			"one field, then the other, then a call",
			assistant(thought("a", "reasoning")) + `,` + assistant(thought("b", "reasoning_content")) + `,` + assistant(call),
			`{"role":"assistant","reasoning":"a"},{"role":"assistant","reasoning_content":"b"},{"role":"assistant","tool_calls":[` + wireCall + `],"reasoning_content":"","reasoning":""}`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := build(t, mmsp.Options{})
			for range 2 {
				want := start + `"messages":[` + tt.want + `]}`
				if got, err := prepare(t, c, `[`+tt.messages+`]`, `{}`); got != want || err != nil {
					t.Errorf("got  %s (%v)\nwant %s", got, err, want)
				}
			}
		})
	}
}

// png is the header of a picture, as a data URL.
func png(width, height uint32) string {
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(pngBytes(width, height))
}

func pngBytes(width, height uint32) []byte {
	data := append([]byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR"), make([]byte, 13)...)
	binary.BigEndian.PutUint32(data[16:], width)
	binary.BigEndian.PutUint32(data[20:], height)
	return data
}

func TestImageDetail(t *testing.T) {
	large, small := png(6400, 4832), png(6400, 4800)
	for model, high := range map[string]bool{"GPT-5.6-Sol": true, "gpt-5.5": false, "kimi-k3": false} {
		c := build(t, mmsp.Options{Model: model})
		request, err := c.Prepare(t.Context(), []mmsp.Message{mmsp.UserMessage(
			mmsp.ImageURL(large), mmsp.ImageURL(small), mmsp.ToolResult("k", "image/png", large, small),
		)}, &mmsp.Config{})
		if err != nil {
			t.Fatal(err)
		}
		part := func(url, detail string) string {
			return `{"type":"image_url","image_url":{"url":"` + url + `"` + detail + `}}`
		}
		detail := ""
		if high {
			detail = `,"detail":"high"`
		}
		want := `"messages":[{"role":"tool","tool_call_id":"k","content":"image/png"},{"role":"user","content":[` +
			strings.Join([]string{part(large, detail), part(small, ""), part(large, detail), part(small, "")}, ",") + `]}]}`
		if !strings.HasSuffix(string(request.Body), want) {
			t.Errorf("%s: %s", model, request.Body)
		}
	}
}

func TestRemoteImages(t *testing.T) {
	pictures := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.Header["Authorization"])+len(r.Header["Cookie"])+len(r.Header["Referer"]) > 0 {
			t.Errorf("the picture's server got %v", r.Header)
		}
		if r.URL.Path != "/large" {
			http.NotFound(w, r)
			return
		}
		w.Write(pngBytes(6400, 4832))
	}))
	defer pictures.Close()
	for _, tt := range []struct {
		name, path string
		private    bool
		err        string
	}{
		{"fetched where private addresses are allowed", "/large", true, ""},
		{"refused otherwise", "/large", false, "messages[1].content_items[0].images[1]: image " + pictures.URL + "/large: the address is not public"},
		{"missing", "/gone", true, "messages[1].content_items[0].images[1]: image " + pictures.URL + "/gone: the server answered with status 404"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := build(t, mmsp.Options{Model: "gpt-5.6", AllowPrivateFetch: tt.private})
			request, err := c.Prepare(t.Context(), []mmsp.Message{
				mmsp.UserMessage(mmsp.Text("hi")),
				mmsp.UserMessage(mmsp.ToolResult("k", "", png(1, 1), pictures.URL+tt.path)),
			}, &mmsp.Config{})
			if tt.err != "" {
				var invalid *mmsp.InvalidRequestError
				if !errors.As(err, &invalid) || err.Error() != tt.err {
					t.Errorf("got %v, want %s", err, tt.err)
				}
				return
			}
			if want := `{"url":"` + png(6400, 4832) + `","detail":"high"}`; err != nil || !strings.Contains(string(request.Body), want) {
				t.Errorf("%v, %s", err, request.Body)
			}
		})
	}
}

// TestRefusals: what the protocol cannot say is a typed error, and no request goes out.
func TestRefusals(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { t.Errorf("%s was asked for", r.URL) }))
	defer server.Close()
	data := mmsp.Item{Type: mmsp.InlineDataDone, MimeType: "audio/wav", Data: []byte("x")}
	for _, tt := range []struct {
		name     string
		messages []mmsp.Message
		config   mmsp.Config
		want     string // the type and what it names
	}{
		{"caching off", nil, mmsp.Config{PromptCaching: mmsp.CachingDisable}, "parameter prompt_caching"},
		{"more caching", nil, mmsp.Config{PromptCaching: mmsp.CachingEnhance}, "parameter prompt_caching"},
		{"an item of another kind", []mmsp.Message{mmsp.UserMessage(mmsp.Text("a")), mmsp.UserMessage(mmsp.Text("b"), data)}, mmsp.Config{}, "request messages[1].content_items[1]"},
		{"an image thought", []mmsp.Message{mmsp.AssistantMessage(mmsp.Item{Type: mmsp.InlineThinkingDone, MimeType: "image/png", Data: []byte("x")})}, mmsp.Config{}, "request messages[0].content_items[0]"},
		{"a number that JSON lacks", nil, mmsp.Config{Temperature: new(math.NaN())}, "request "},
		{"a schema that is no JSON", nil, mmsp.Config{Tools: []mmsp.Tool{{Name: "f", Parameters: []byte("{")}}}, "request "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			client := mmsp.NewClient(build(t, mmsp.Options{BaseURL: server.URL}))
			err := mmsp.CheckStream(client.StreamingResponse(t.Context(), tt.messages, &tt.config))
			got := fmt.Sprintf("%T", err)
			var parameter *mmsp.UnsupportedParameterError
			var request *mmsp.InvalidRequestError
			if errors.As(err, &parameter) && parameter.Client == "OpenaiChatClient" {
				got = "parameter " + parameter.Parameter
			} else if errors.As(err, &request) {
				got = "request " + request.Param
			}
			if got != tt.want {
				t.Errorf("got %s (%v), want %s", got, err, tt.want)
			}
		})
	}
}

// TestCallersMessages: neither the messages nor the config are written to.
func TestCallersMessages(t *testing.T) {
	messages := []mmsp.Message{mmsp.AssistantMessage(mmsp.Thinking("a"), mmsp.ToolCall("k", "f", ""))}
	before := slices.Clone(messages[0].ContentItems)
	if _, err := build(t, mmsp.Options{}).Prepare(t.Context(), messages, &mmsp.Config{}); err != nil {
		t.Fatal(err)
	}
	for i := range before {
		if fmt.Sprint(before[i]) != fmt.Sprint(messages[0].ContentItems[i]) {
			t.Errorf("item %d became %v", i, messages[0].ContentItems[i])
		}
	}
}
