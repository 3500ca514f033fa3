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

func TestMessages(t *testing.T) {
	const call = `{"type":"tool_call.done","name":"tide_at","arguments":{"port":"Brest"},"tool_call_id":"k1"}`
	const wireCall = `{"id":"k1","type":"function","function":{"name":"tide_at","arguments":"{\"port\":\"Brest\"}"}}`
	user := func(items string) string { return `{"role":"user","content_items":[` + items + `]}` }
	assistant := func(items string) string { return `{"role":"assistant","content_items":[` + items + `]}` }
	thought := func(text, field string) string {
		return `{"type":"thinking.done","thinking":"` + text + `","fidelity":{"reasoning_field":"` + field + `"}}`
	}
	detail := func(text, detail, issuer string) string {
		return `{"type":"thinking.done","thinking":"` + text + `","fidelity":{"reasoning_details":[{` + detail + `}],"issuer":"` + issuer + `"}}`
	}
	tests := []struct{ name, messages, want string }{
		{
			"pictures of a result follow it", user(`{"type":"tool_result.done","tool_call_id":"k1","text":"see","images":["data:image/png;base64,AA","DATA:image/gif;base64,BB"]}`),
			`{"role":"tool","tool_call_id":"k1","content":"see"},{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA"}},{"type":"image_url","image_url":{"url":"DATA:image/gif;base64,BB"}}]}`,
		},

		{"a field of another type", assistant(`{"type":"thinking.done","thinking":"a","fidelity":{"reasoning_field":7}}`), `{"role":"assistant","reasoning_content":"a","reasoning":"a"}`},
		{
			"a signature after its text", assistant(thought("Hm.", "reasoning") + `,` + detail(``, `"type":"reasoning.text","format":"f","index":0,"signature":"S"`, `provider.test`) + `,` + call),
			`{"role":"assistant","tool_calls":[` + wireCall + `],"reasoning":"Hm.","reasoning_details":[{"type":"reasoning.text","format":"f","index":0,"text":"Hm.","signature":"S"}]}`,
		},
		{
			"a signature after two pieces of text", assistant(thought("a", "reasoning") + `,` + thought("b", "reasoning") + `,` + detail(``, `"type":"reasoning.text","signature":"S"`, `provider.test`)),
			`{"role":"assistant","reasoning":"ab","reasoning_details":[{"type":"reasoning.text","text":"ab","signature":"S"}]}`,
		},
		{
			"two signatures, each after its text", assistant(thought("a", "reasoning") + `,` + detail(``, `"type":"reasoning.text","signature":"S"`, `provider.test`) + `,` + thought("b", "reasoning") + `,` + detail(``, `"type":"reasoning.text","signature":"T"`, `provider.test`)),
			`{"role":"assistant","reasoning":"ab","reasoning_details":[{"type":"reasoning.text","text":"a","signature":"S"},{"type":"reasoning.text","text":"b","signature":"T"}]}`,
		},
		{
			"details with their text, then a signature of the last", assistant(detail(`a`, `"type":"reasoning.summary","id":"r","index":0`, `provider.test`) + `,` + detail(`b`, `"type":"reasoning.text","index":1`, `provider.test`) + `,` + detail(``, `"type":"reasoning.text","index":1,"signature":"S"`, `provider.test`)),
			`{"role":"assistant","reasoning_details":[{"type":"reasoning.summary","id":"r","index":0,"summary":"a"},{"type":"reasoning.text","index":1,"text":"b","signature":"S"}]}`,
		},
		{
			"a text signed with it", assistant(detail(`a`, `"type":"reasoning.text","signature":"S"`, `provider.test`) + `,` + detail(``, `"type":"reasoning.text","signature":"T"`, `provider.test`)),
			`{"role":"assistant","reasoning_details":[{"type":"reasoning.text","text":"a","signature":"S"},{"type":"reasoning.text","signature":"T"}]}`,
		},
		{
			"several details of one text", assistant(detail(`a`, `"type":"reasoning.text","index":0},{"type":"reasoning.text","index":0,"signature":"S"},{"type":"reasoning.summary"},{"type":"reasoning.encrypted","data":"D"`, `provider.test`)),
			`{"role":"assistant","reasoning_details":[{"type":"reasoning.text","index":0,"text":"a","signature":"S"},{"type":"reasoning.summary"},{"type":"reasoning.encrypted","data":"D"}]}`,
		},
		{
			"encrypted reasoning beside a string", assistant(thought("Hm.", "reasoning") + `,` + detail(``, `"type":"reasoning.encrypted","id":"k1","data":"D"`, `provider.test`)),
			`{"role":"assistant","reasoning":"Hm.","reasoning_details":[{"type":"reasoning.encrypted","id":"k1","data":"D"}]}`,
		},
		{"encrypted reasoning alone, of a history that names no issuer", assistant(`{"type":"thinking.done","thinking":"","fidelity":{"reasoning_details":[{"type":"reasoning.encrypted","data":"D"}]}}`), `{"role":"assistant","reasoning_details":[{"type":"reasoning.encrypted","data":"D"}]}`},
		{
			"another's proofs stay out", assistant(thought("a", "reasoning") + `,` + detail(``, `"type":"reasoning.text","signature":"S"`, `other.test`) + `,` + detail(``, `"type":"reasoning.encrypted","data":"D"`, `openai`)),
			`{"role":"assistant","reasoning":"a"}`,
		},
		{"another's text is thinking of an unknown field", assistant(detail(`a`, `"type":"reasoning.text","signature":"S"`, `other.test`)), `{"role":"assistant","reasoning_content":"a","reasoning":"a"}`},
		{"details of another kind", assistant(`{"type":"thinking.done","thinking":"a","fidelity":{"reasoning_field":"reasoning","reasoning_details":"x"}}`), `{"role":"assistant","reasoning":"a"}`},
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
	data := mmsp.Item{Type: mmsp.InlineDataDone, MimeType: "audio/ogg", Data: []byte("x")}
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

// TestIssuer: a proof goes back to the endpoint that it came from, and OpenAI's has a name.
func TestIssuer(t *testing.T) {
	for _, tt := range []struct {
		url, issuer string
		own         bool
	}{
		{"https://api.openai.com/v1", "openai", true},
		{"https://API.openai.com:443/v1", "openai", true},
		{"http://Gateway.test:8080/v1", "gateway.test:8080", true},
		{"http://gateway.test/v1", "gateway.test:8080", false},
		{"http://gateway.test/v1", "openai", false},
	} {
		proof := mmsp.Item{Type: mmsp.ThinkingDone, Fidelity: mmsp.Fidelity(`{"reasoning_details":[{"data":"D"}],"issuer":"` + tt.issuer + `"}`)}
		request, err := build(t, mmsp.Options{BaseURL: tt.url}).Prepare(t.Context(), []mmsp.Message{mmsp.AssistantMessage(proof)}, &mmsp.Config{})
		if err != nil || strings.Contains(string(request.Body), `"data":"D"`) != tt.own {
			t.Errorf("%s, issued by %s: %v, %s", tt.url, tt.issuer, err, request.Body)
		}
	}
}

// TestSecondTurn: what a stream leaves goes back as the gateway said it.
func TestSecondTurn(t *testing.T) {
	for _, tt := range []struct{ name, chunks, want string }{
		{
			"a string, and a detail that signs it",
			d(`{"reasoning":"Need ","reasoning_details":[{"type":"reasoning.text","text":"Need ","format":"anthropic-claude-v1","index":0}]}`) +
				d(`{"reasoning":"it.","reasoning_details":[{"type":"reasoning.text","text":"it.","format":"anthropic-claude-v1","index":0}]}`) +
				d(`{"reasoning_details":[{"type":"reasoning.text","signature":"S+/=","format":"anthropic-claude-v1","index":0}]}`),
			`"reasoning":"Need it.","reasoning_details":[{"type":"reasoning.text","format":"anthropic-claude-v1","index":0,"text":"Need it.","signature":"S+/="}]`,
		},
		{
			"details alone",
			d(`{"reasoning_details":[{"type":"reasoning.text","text":"Need ","id":"r","index":0}]}`) + d(`{"reasoning_details":[{"type":"reasoning.text","text":"it.","id":"r","index":0}]}`) +
				d(`{"reasoning_details":[{"type":"reasoning.text","signature":"S","id":"r","index":0}]}`),
			`"reasoning_details":[{"type":"reasoning.text","id":"r","index":0,"text":"Need it.","signature":"S"}]`,
		},
		{
			"a call that is signed", d(`{"reasoning_details":[{"type":"reasoning.encrypted","data":"D","format":"google-gemini-v1","id":"k","index":0}]}`),
			`"reasoning_details":[{"type":"reasoning.encrypted","id":"k","format":"google-gemini-v1","index":0,"data":"D"}]`,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			client := serve(t, 200, nil, sse(tt.chunks+calls(frag("0", "k", "f", "{}"))+fin("tool_calls")+usage+done))
			answer, err := mmsp.Collect(client.StreamingResponse(t.Context(), ask, nil))
			if err != nil {
				t.Fatal(err)
			}
			request, err := client.Provider().Prepare(t.Context(), []mmsp.Message{answer}, &mmsp.Config{})
			if err != nil {
				t.Fatal(err)
			}
			want := `"messages":[{"role":"assistant","tool_calls":[{"id":"k","type":"function","function":{"name":"f","arguments":"{}"}}],` + tt.want + `}]}`
			if !strings.HasSuffix(string(request.Body), want) {
				t.Errorf("got  %s\nwant %s", request.Body, want)
			}
		})
	}
}

// TestManyImages: the pictures of a request are bounded together.
func TestManyImages(t *testing.T) {
	pictures := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("GIF89a\x01\x00\x01\x00\x00\x00\x00;")) }))
	defer pictures.Close()
	items := slices.Repeat([]mmsp.Item{mmsp.ImageURL(pictures.URL)}, 513)
	_, err := build(t, mmsp.Options{AllowPrivateFetch: true}).Prepare(t.Context(), []mmsp.Message{mmsp.UserMessage(items...)}, &mmsp.Config{})
	var invalid *mmsp.InvalidRequestError
	if !errors.As(err, &invalid) || invalid.Param != "messages[0].content_items[512].image_url" {
		t.Error(err)
	}
}
