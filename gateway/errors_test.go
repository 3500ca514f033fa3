package gateway_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/gateway/config"
	"github.com/prism-shadow/mmsp-go/gateway/metrics"
	"github.com/prism-shadow/mmsp-go/simulate"
)

// kind is a row of the table of errors: what each dialect calls it. Responses says some in other words inside a stream, for
// Codex, which asks again at all codes but those that it knows.
type kind struct {
	responses, chat, messages, gemini string
	inStream                          string // of Responses; empty: the same
}

func (k *kind) words(d *dialect, stream bool) string {
	switch d.endpoint {
	case "responses":
		if stream && k.inStream != "" {
			return k.inStream
		}
		return k.responses
	case "chatCompletions":
		return k.chat
	case "messages":
		return k.messages
	}
	return k.gemini
}

var (
	invalid = kind{
		"invalid_request_error *", "invalid_request_error *", "invalid_request_error", "INVALID_ARGUMENT", "invalid_request_error invalid_prompt",
	}
	unauthorized = kind{
		"invalid_request_error invalid_api_key", "invalid_request_error invalid_api_key", "authentication_error", "UNAUTHENTICATED",
		"invalid_request_error invalid_prompt",
	}
	billing       = kind{"insufficient_quota insufficient_quota", "insufficient_quota insufficient_quota", "billing_error", "RESOURCE_EXHAUSTED", ""}
	forbidden     = kind{"permission_error *", "permission_error *", "permission_error", "PERMISSION_DENIED", "permission_error invalid_prompt"}
	unknownModel  = kind{"invalid_request_error model_not_found", "invalid_request_error model_not_found", "not_found_error", "NOT_FOUND", ""}
	notFound      = kind{"invalid_request_error not_found", "invalid_request_error not_found", "not_found_error", "NOT_FOUND", ""}
	wrongMethod   = kind{"invalid_request_error method_not_allowed", "invalid_request_error method_not_allowed", "invalid_request_error", "UNIMPLEMENTED", ""}
	tooLarge      = kind{"invalid_request_error request_too_large", "invalid_request_error request_too_large", "request_too_large", "INVALID_ARGUMENT", ""}
	mediaType     = kind{"invalid_request_error unsupported_media_type", "invalid_request_error unsupported_media_type", "invalid_request_error", "INVALID_ARGUMENT", ""}
	contextLength = kind{
		"invalid_request_error context_length_exceeded", "invalid_request_error context_length_exceeded", "invalid_request_error", "INVALID_ARGUMENT", "",
	}
	previousMissing = kind{responses: "invalid_request_error previous_response_not_found"}
	rateLimit       = kind{"rate_limit_error rate_limit_exceeded", "rate_limit_error rate_limit_exceeded", "rate_limit_error", "RESOURCE_EXHAUSTED", ""}
	conflict        = kind{"conflict_error conflict", "conflict_error conflict", "conflict_error", "ABORTED", ""}
	timeout         = kind{"server_error timeout", "server_error timeout", "timeout_error", "DEADLINE_EXCEEDED", "server_error server_error"}
	overloaded      = kind{"server_error server_is_overloaded", "server_error server_is_overloaded", "overloaded_error", "UNAVAILABLE", ""}
	fault           = kind{"server_error *", "server_error *", "api_error", "INTERNAL", "server_error server_error"}
)

// says reports whether the words are those of the kind; a star stands for any code.
func (k *kind) says(d *dialect, stream bool, words string) bool {
	want := k.words(d, stream)
	if begin, ok := strings.CutSuffix(want, "*"); ok {
		return strings.HasPrefix(words, begin)
	}
	return words == want
}

// retried reports whether SDKs ask again at a status without being told not to.
func retried(status int) bool {
	return status == 408 || status == 409 || status == 429 || status >= 500
}

const (
	callerKey      = "caller-key"
	otherCallerKey = "other-caller-key"
)

// egress are the simulated providers, each as the client type of its protocol asks it.
var egress = []string{"openai-chat", "openai-responses", "ant-messages", "google-genai", "google-official"}

// simulated serves the simulated providers, under the names of the client types that ask them.
func simulated(t *testing.T) (models []config.Model) {
	t.Helper()
	return simulatedBehind(t, func(provider http.Handler) http.Handler { return provider })
}

// simulatedBehind is simulated with something in front of each provider.
func simulatedBehind(t *testing.T, front func(http.Handler) http.Handler) (models []config.Model) {
	t.Helper()
	o := simulate.Options{Key: "upstream-key"}
	google := simulate.Gemini(o)
	providers, err := simulate.Start(t.Context(), map[string]http.Handler{
		"openai-chat": front(simulate.Chat(o)), "openai-responses": front(simulate.Responses(o)), "ant-messages": front(simulate.Messages(o)),
		"google-genai": front(google), "google-official": front(google),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { providers.Close() })
	for _, name := range egress {
		row := chatRow(name, providers.URL(name))
		row.ClientType = name
		models = append(models, row)
	}
	return models
}

// TestProviderErrors: what a provider refuses is told in the words of every dialect, with what it says, as an HTTP status
// while nothing is out and as the end of the stream afterwards.
func TestProviderErrors(t *testing.T) {
	t.Parallel()
	c := everywhere(table(simulated(t)...))
	c.APIKeys = []mmsp.Secret{mmsp.NewSecret(callerKey), mmsp.NewSecret(otherCallerKey)}
	s := start(t, c)
	send := func(r *http.Request) answer {
		r.Header.Set("Authorization", "Bearer "+callerKey)
		return s.send(r)
	}
	said := func(model, prompt string) string {
		got := send(s.request("POST", "/v1/stream", strings.Replace(question(model), `"hi"`, quote(prompt), 1)))
		if got.status == 200 {
			_, got.body, _ = strings.Cut(got.body, `"UpstreamError"`)
			got.body, _, _ = strings.Cut(`{"error":{"type":"UpstreamError"`+got.body, "\n")
		}
		return errorOf(t, got.body).Message
	}
	// all is the kind, unless the client type has its own.
	type kinds map[string]*kind
	for _, tt := range []struct {
		prompt string
		kinds  kinds
		status int // messages: 402 and 529 for 429 or 503; generateContent: 429 for 402
		final  bool
		wait   string
	}{
		{prompt: "error 400", kinds: kinds{"": &invalid}, status: 400},
		{prompt: "error 401", kinds: kinds{"": &unauthorized}, status: 401},
		{prompt: "error 402", kinds: kinds{"": &billing}, status: 402},
		{prompt: "error 403", kinds: kinds{"": &forbidden}, status: 403},
		{prompt: "error 404", kinds: kinds{"": &unknownModel}, status: 404},
		{prompt: "error 408", kinds: kinds{"": &timeout}, status: 504},
		{prompt: "error 409", kinds: kinds{"": &conflict}, status: 409},
		{prompt: "error 413", kinds: kinds{"": &tooLarge}, status: 413},
		{prompt: "error 422", kinds: kinds{"": &invalid}, status: 422},
		{prompt: "error 429 after 7", kinds: kinds{"": &rateLimit}, status: 429, wait: "7"},
		{prompt: "error 429", kinds: kinds{"": &rateLimit}, status: 429, wait: "1"},
		{prompt: "error 500", kinds: kinds{"": &fault}, status: 500},
		{prompt: "error 501", kinds: kinds{"": &fault}, status: 501, final: true},
		{prompt: "error 502", kinds: kinds{"": &fault}, status: 502},
		{prompt: "error 503 after 2", kinds: kinds{"": &overloaded}, status: 503, wait: "2"},
		{prompt: "error 504", kinds: kinds{"": &timeout}, status: 504},
		{prompt: "error 505", kinds: kinds{"": &fault}, status: 505, final: true},
		{prompt: "error 520", kinds: kinds{"": &fault}, status: 502},
		{prompt: "error 529", kinds: kinds{"": &overloaded}, status: 503},
		{prompt: "insufficient_quota", kinds: kinds{"": &billing, "ant-messages": &billing}, status: 429, final: true},
		{prompt: "context_length_exceeded", kinds: kinds{"": &contextLength}, status: 400},
		{prompt: "webpage", kinds: kinds{"": &fault}, status: 502, final: true},
		{prompt: "error 503 webpage", kinds: kinds{"": &overloaded}, status: 503},

		{prompt: "fail", kinds: kinds{"": &fault, "ant-messages": &overloaded}},
		{prompt: "fail 400", kinds: kinds{"": &invalid}},
		{prompt: "fail 401", kinds: kinds{"": &unauthorized}},
		{prompt: "fail 429", kinds: kinds{"": &rateLimit}},
		{prompt: "fail 503", kinds: kinds{"": &fault, "google-genai": &overloaded, "google-official": &overloaded}},
		{prompt: "fail 529", kinds: kinds{"": &fault, "ant-messages": &overloaded, "google-genai": &overloaded}},
		{prompt: "fail insufficient_quota", kinds: kinds{"": &billing, "google-official": &rateLimit}},
		{prompt: "fail context_length_exceeded", kinds: kinds{"": &contextLength}},
		{prompt: "call, fail 429", kinds: kinds{"": &rateLimit}},
	} {
		for _, model := range egress {
			k := tt.kinds[model]
			if k == nil {
				k = tt.kinds[""]
			}
			message := said(model, tt.prompt)
			for i := range dialects {
				d := &dialects[i]
				for _, stream := range []bool{false, true} {
					name := fmt.Sprintf("%s to %s, %s, stream %v", d.endpoint, model, tt.prompt, stream)
					r := d.request(s, model, tt.prompt, stream)
					got := send(r)
					if strings.Contains(got.body, "upstream-key") || strings.Contains(got.body, "caller-key") {
						t.Errorf("%s: a key in %s", name, got.body)
					}
					if tt.status == 0 && stream && got.status != 200 && strings.HasPrefix(tt.prompt, "call") {
						// Calls go out whole, to those who speak as Google: nothing was out.
						if e := d.failure(t, got); !k.says(d, false, e.words) || d.endpoint != "generateContent" && model != "google-genai" {
							t.Errorf("%s: %d %+v", name, got.status, e)
						}
						continue
					}
					if tt.status == 0 && stream {
						e := d.ending(t, got)
						if e.failed == nil || !k.says(d, true, e.failed.words) || !strings.Contains(e.failed.message, message) {
							t.Errorf("%s: %+v, want %s, %s", name, e.failed, k.words(d, true), message)
						}
						if !strings.Contains(e.text, "wrote") && !strings.HasPrefix(tt.prompt, "call") {
							t.Errorf("%s: the text is %q", name, e.text)
						}
						continue
					}
					if tt.status == 0 {
						// The provider fails before it answers in one piece, with a status of its own.
						if got.status < 400 || d.failure(t, got).message == "" {
							t.Errorf("%s: %d %s", name, got.status, got.body)
						}
						continue
					}
					e := d.failure(t, got)
					want, final := tt.status, tt.final
					if k == &billing {
						if final = true; model == "ant-messages" {
							want = 402
						}
					}
					if d.endpoint == "messages" && k == &overloaded {
						want = 529
					}
					if own := map[string]int{"messages": 402, "generateContent": 429}[d.endpoint]; k == &billing && own != 0 {
						want = own
					}
					if got.status != want || !k.says(d, false, e.words) || !strings.Contains(e.message, message) || message == "" {
						t.Errorf("%s: %d %+v, want %d %s, %s", name, got.status, e, want, k.words(d, false), message)
					}
					h := got.header
					if again := h.Get("X-Should-Retry") != "false"; retried(want) && again == final {
						t.Errorf("%s: SDKs ask again: %v", name, again)
					}
					if tt.wait != "" && (h.Get("Retry-After") != tt.wait || h.Get("Retry-After-Ms") != tt.wait+"000") {
						t.Errorf("%s: to be tried after %q, %q ms", name, h.Get("Retry-After"), h.Get("Retry-After-Ms"))
					}
					if h.Get("Request-Id") != h.Get("X-Request-Id") {
						t.Errorf("%s: ids %q, %q", name, h.Get("Request-Id"), h.Get("X-Request-Id"))
					}
					if !strings.HasPrefix(h.Get("X-Request-Id"), "req_") || h.Get("X-Upstream-Request-Id") == "" && tt.prompt != "webpage" {
						t.Errorf("%s: ids %q, %q", name, h.Get("X-Request-Id"), h.Get("X-Upstream-Request-Id"))
					}
				}
			}
		}
	}
}

// TestOwnErrors: what the gateway itself refuses.
func TestOwnErrors(t *testing.T) {
	t.Parallel()
	c := everywhere(table())
	c.APIKeys = []mmsp.Secret{mmsp.NewSecret(callerKey)}
	c.Limits.MaxBodyBytes = 4000
	c.Limits.MaxDepth = 60
	hi := own("m", plays(nil, says("hi"), stops))
	s := start(t, c, hi)
	off := table()
	off.APIKeys = c.APIKeys
	closed := start(t, off, hi)
	body := func(change func(d *dialect, body string) string) func(*dialect, *http.Request) {
		return func(d *dialect, r *http.Request) {
			text, _ := io.ReadAll(r.Body)
			changed := change(d, string(text))
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(changed)), int64(len(changed))
		}
	}
	// bad puts a value in the place of one that stands in every request of a dialect, or in front of it.
	bad := func(places map[string][2]string) func(*dialect, *http.Request) {
		return body(func(d *dialect, body string) string {
			place := places[d.endpoint]
			changed := strings.Replace(body, place[0], place[1], 1)
			if changed == body {
				t.Errorf("%s: no %s in %s", d.endpoint, place[0], body)
			}
			return changed
		})
	}
	for _, tt := range []struct {
		name   string
		kind   *kind
		status int
		param  map[string]string
		says   string // in the message
		server *served
		model  string
		change func(*dialect, *http.Request)
		header string // "Name: value"
	}{
		{name: "no JSON", kind: &invalid, status: 400, says: "JSON", change: body(func(_ *dialect, body string) string { return body[:20] })},
		{name: "no body", kind: &invalid, status: 400, says: "JSON", change: body(func(*dialect, string) string { return "" })},
		{name: "a key twice", kind: &invalid, status: 400, says: "tools", change: body(func(_ *dialect, body string) string { return `{"tools":[],` + body[1:] })},
		{name: "too deep", kind: &invalid, status: 400, says: "JSON", change: body(func(_ *dialect, body string) string {
			return `{"x":` + strings.Repeat("[", 60) + strings.Repeat("]", 60) + `,` + body[1:]
		})},
		{
			name: "a value of another type", kind: &invalid, status: 400,
			param: map[string]string{
				"responses": "tools[0].name", "chatCompletions": "tools[0].function.name", "messages": "tools[0].name", "generateContent": "tools[0].functionDeclarations[0].name",
			},
			change: body(func(_ *dialect, body string) string { return strings.Replace(body, `"name":"look"`, `"name":7`, 1) }),
		},
		{
			name: "a value out of its range", kind: &invalid, status: 400,
			param: map[string]string{
				"responses": "temperature", "chatCompletions": "temperature", "messages": "temperature", "generateContent": "generationConfig.temperature",
			},
			change: bad(map[string][2]string{
				"responses": {`{`, `{"temperature":-7,`}, "chatCompletions": {`{`, `{"temperature":-7,`}, "messages": {`{`, `{"temperature":-7,`},
				"generateContent": {`{`, `{"generationConfig":{"temperature":-7},`},
			}),
		},
		{
			name: "an unknown part", kind: &invalid, status: 400, says: "smell",
			param: map[string]string{
				"responses": "input[0].content[0]", "chatCompletions": "messages[0].content[0]", "messages": "messages[0].content[0]", "generateContent": "contents[0].parts[0]",
			},
			change: bad(map[string][2]string{
				"responses": {`"input":"hi"`, `"input":[{"role":"user","content":[{"type":"smell"}]}]`}, "chatCompletions": {`"content":"hi"`, `"content":[{"type":"smell"}]`},
				"messages": {`"content":"hi"`, `"content":[{"type":"smell"}]`}, "generateContent": {`{"text":"hi"}`, `{"smell":{}}`},
			}),
		},
		{
			name: "two tools of a name", kind: &invalid, status: 400, says: "look",
			param: map[string]string{
				"responses": "tools[1].name", "chatCompletions": "tools[1].function.name", "messages": "tools[1].name", "generateContent": "tools[0].functionDeclarations[1].name",
			},
			change: bad(map[string][2]string{
				"responses":       {`"tools":[`, `"tools":[{"type":"function","name":"look","parameters":{}},`},
				"chatCompletions": {`"tools":[`, `"tools":[{"type":"function","function":{"name":"look"}},`},
				"messages":        {`"tools":[`, `"tools":[{"name":"look","input_schema":{"type":"object"}},`},
				"generateContent": {`"functionDeclarations":[`, `"functionDeclarations":[{"name":"look"},`},
			}),
		},
		{
			name: "nothing but the system's", kind: &invalid, status: 400,
			param: map[string]string{"responses": "input", "chatCompletions": "messages", "messages": "messages", "generateContent": "contents"},
			change: bad(map[string][2]string{
				"responses": {`"input":"hi"`, `"input":[{"role":"developer","content":"hi"}]`}, "chatCompletions": {`"role":"user"`, `"role":"system"`},
				"messages": {`"role":"user"`, `"role":"system"`}, "generateContent": {`"contents":[{"role":"user","parts":[{"text":"hi"}]}]`, `"systemInstruction":{"parts":[{"text":"hi"}]},"contents":[]`},
			}),
		},
		{
			name: "a call without a result", kind: &invalid, status: 400, says: "result",
			param: map[string]string{
				"responses": "input[0]", "chatCompletions": "messages[0].tool_calls[0]", "messages": "messages[0].content[0]", "generateContent": "contents[0].parts[0]",
			},
			change: bad(map[string][2]string{
				"responses":       {`"input":"hi"`, `"input":[{"type":"function_call","call_id":"c1","name":"look","arguments":"{}"},{"role":"user","content":"hi"}]`},
				"chatCompletions": {`"messages":[`, `"messages":[{"role":"assistant","tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{}"}}]},`},
				"messages":        {`"messages":[`, `"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"look","input":{}}]},`},
				"generateContent": {`"contents":[`, `"contents":[{"role":"model","parts":[{"functionCall":{"id":"c1","name":"look","args":{}}}]},`},
			}),
		},
		{
			name: "a result without a call", kind: &invalid, status: 400,
			param: map[string]string{
				"responses": "input[0]", "chatCompletions": "messages[0]", "messages": "messages[0].content[0]", "generateContent": "contents[0].parts[0]",
			},
			change: bad(map[string][2]string{
				"responses":       {`"input":"hi"`, `"input":[{"type":"function_call_output","call_id":"c1","output":"x"}]`},
				"chatCompletions": {`"messages":[`, `"messages":[{"role":"tool","tool_call_id":"c1","content":"x"},`},
				"messages":        {`"content":"hi"`, `"content":[{"type":"tool_result","tool_use_id":"c1","content":"x"}]`},
				"generateContent": {`{"text":"hi"}`, `{"functionResponse":{"id":"c1","name":"look","response":{}}}`},
			}),
		},
		{name: "no key", kind: &unauthorized, status: 401, says: "key", change: func(_ *dialect, r *http.Request) { r.Header.Del("Authorization") }},
		{name: "a wrong key", kind: &unauthorized, status: 401, says: "key", change: func(_ *dialect, r *http.Request) { r.Header.Set("Authorization", "Bearer wrong-key") }},
		{name: "no such model", kind: &unknownModel, status: 404, says: "nobody", model: "nobody"},
		{name: "an endpoint that is off", kind: &notFound, status: 404, says: "enabled", server: closed},
		{name: "a method", kind: &wrongMethod, status: 405, says: "DELETE", header: "Allow: POST", change: func(_ *dialect, r *http.Request) { r.Method = "DELETE" }},
		{name: "GET", kind: &wrongMethod, status: 405, says: "GET", header: "Allow: POST", change: func(_ *dialect, r *http.Request) { r.Method, r.Body, r.ContentLength = "GET", nil, 0 }},
		{name: "too large", kind: &tooLarge, status: 413, says: "4000", header: "Connection: close", change: body(func(_ *dialect, body string) string {
			return body + strings.Repeat(" ", 4000)
		})},
		{name: "too large, in chunks", kind: &tooLarge, status: 413, says: "4000", header: "Connection: close", change: func(_ *dialect, r *http.Request) {
			r.Body, r.ContentLength = io.NopCloser(strings.NewReader(strings.Repeat(" ", 5000))), -1
		}},
		{name: "a form", kind: &mediaType, status: 415, says: "JSON", change: func(_ *dialect, r *http.Request) { r.Header.Set("Content-Type", "text/plain") }},
		{name: "a compressed body", kind: &mediaType, status: 415, says: "gzip", change: func(_ *dialect, r *http.Request) { r.Header.Set("Content-Encoding", "gzip") }},
		{name: "no content type", kind: &mediaType, status: 415, says: "JSON", change: func(_ *dialect, r *http.Request) { r.Header.Del("Content-Type") }},
		{name: "an unknown response", kind: &previousMissing, status: 400, says: "resp_nothing", param: map[string]string{"responses": "previous_response_id"}, change: bad(map[string][2]string{
			"responses": {`{`, `{"previous_response_id":"resp_nothing",`},
		})},
	} {
		for i := range dialects {
			d := &dialects[i]
			if tt.kind.words(d, false) == "" {
				continue
			}
			for _, stream := range []bool{false, true} {
				name := fmt.Sprintf("%s, %s, stream %v", d.endpoint, tt.name, stream)
				server, model := s, "m"
				if tt.server != nil {
					server = tt.server
				}
				if tt.model != "" {
					model = tt.model
				}
				r := d.request(server, model, "hi", stream)
				r.Header.Set("Authorization", "Bearer "+callerKey)
				if tt.change != nil {
					tt.change(d, r)
				}
				got := server.send(r)
				e := d.failure(t, got)
				if got.status != tt.status || !tt.kind.says(d, false, e.words) || e.message == "" || !strings.Contains(e.message, tt.says) {
					t.Errorf("%s: %d %+v, want %d %s", name, got.status, e, tt.status, tt.kind.words(d, false))
				}
				// Messages has no field for the place, and says it in the message.
				if param := tt.param[d.endpoint]; d.endpoint == "messages" && !strings.Contains(e.message, param) || d.endpoint != "messages" && !strings.HasPrefix(e.param, param) {
					t.Errorf("%s: the place is %q, want %q", name, e.param, param)
				}
				if header, value, _ := strings.Cut(tt.header, ": "); header != "" && got.header.Get(header) != value && !(header == "Connection" && got.closes) {
					t.Errorf("%s: %v", name, got.header)
				}
				if !strings.HasPrefix(got.header.Get("X-Request-Id"), "req_") || strings.Contains(got.body, callerKey) || strings.Contains(got.body, "wrong-key") {
					t.Errorf("%s: %v %s", name, got.header, got.body)
				}
			}
		}
	}
	r := s.request("GET", "/v1/metrics", "")
	r.Header.Set("Authorization", "Bearer "+callerKey)
	var m metrics.Snapshot
	if err := json.Unmarshal([]byte(s.send(r).body), &m); err != nil {
		t.Fatal(err)
	}
	// Bodies that are too large are not counted, as those of POST /v1/stream are not.
	if m.Requests != 0 || m.Failures != 0 || m.Refused.Unauthorized != 2*8 || m.Refused.UnknownModel != 8 || m.Refused.InvalidRequest != 14*8+2 {
		t.Errorf("%+v, %+v", m.Counts, m.Refused)
	}
}
