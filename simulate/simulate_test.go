package simulate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// peer is a client of one simulated provider.
type peer struct {
	*testing.T
	base   string // of the provider
	url    string
	header http.Header
	client *http.Client
}

// to returns the client of another route.
func (p *peer) to(path string) *peer {
	return &peer{p.T, p.base, p.base + path, p.header, p.client}
}

// dial starts a provider of a protocol and returns a client of its generating route.
func dial(t *testing.T, protocol string, o Options) *peer {
	t.Helper()
	make := map[string]func(Options) *Provider{
		"chat": Chat, "responses": Responses, "messages": Messages, "gemini": Gemini, "interactions": Gemini,
		"embeddings": Embeddings, "bedrock": Bedrock,
	}[protocol]
	return dialHandler(t, protocol, make(o))
}

func dialHandler(t *testing.T, protocol string, handler http.Handler) *peer {
	t.Helper()
	server, err := Start(t.Context(), map[string]http.Handler{protocol: handler})
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	route := map[string]string{
		"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages?beta=true",
		"gemini": "/v1beta/models/gemini-3.8-flash:streamGenerateContent?alt=sse", "interactions": "/v1beta/interactions",
		"embeddings": "/v1/embeddings", "bedrock": "/model/anthropic.claude-sonnet-5-5%3A0/invoke-with-response-stream",
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if protocol == "messages" {
		header.Set("Anthropic-Version", "2023-06-01")
	}
	return &peer{t, server.URL(protocol), server.URL(protocol) + route[protocol], header, client}
}

func (p *peer) post(body string) (*http.Response, string, error) {
	p.Helper()
	request, _ := http.NewRequestWithContext(p.Context(), http.MethodPost, p.url, strings.NewReader(body))
	request.Header = p.header.Clone()
	response, err := p.client.Do(request)
	if err != nil {
		p.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response, string(text), err
}

// ok posts a request that must be answered with 200 and returns the body.
func (p *peer) ok(body string) string {
	p.Helper()
	response, text, err := p.post(body)
	if response.StatusCode != http.StatusOK || err != nil {
		p.Fatalf("status %d, %v: %s\nto %s", response.StatusCode, err, text, body)
	}
	return text
}

// whole posts a request and reads the JSON of the answer.
func (p *peer) whole(body string) tree {
	p.Helper()
	return parse(p.T, p.ok(body))
}

// tree is a JSON value, for reading by path.
type tree struct{ value any }

func parse(t *testing.T, text string) tree {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return tree{value}
}

// at follows a path such as "choices.0.delta.content". A missing value is a tree of nil.
func (v tree) at(path string) tree {
	value := v.value
	for step := range strings.SplitSeq(path, ".") {
		switch level := value.(type) {
		case map[string]any:
			value = level[step]
		case []any:
			index := -1
			if _, err := fmt.Sscan(step, &index); err != nil || index < 0 || index >= len(level) {
				return tree{}
			}
			value = level[index]
		default:
			return tree{}
		}
	}
	return tree{value}
}

func (v tree) list() []any  { list, _ := v.value.([]any); return list }
func (v tree) text() string { text, _ := v.value.(string); return text }
func (v tree) number() int {
	n, _ := v.value.(json.Number)
	i, _ := n.Int64()
	return int(i)
}
func (v tree) json() string { text, _ := json.Marshal(v.value); return string(text) }

// frame is a server-sent event.
type frame struct {
	name string
	data string
	tree
}

// frames reads server-sent events and makes sure that nothing else is in the body.
func frames(t *testing.T, body string) []frame {
	t.Helper()
	var all []frame
	if body != "" && !strings.HasSuffix(body, "\n\n") {
		t.Fatalf("the last event has no end: %q", body[max(len(body)-80, 0):])
	}
	for text := range strings.SplitSeq(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		var f frame
		lines := strings.Split(text, "\n")
		if name, ok := strings.CutPrefix(lines[0], "event: "); ok {
			f.name, lines = name, lines[1:]
		}
		data, ok := strings.CutPrefix(lines[0], "data: ")
		if !ok || len(lines) != 1 {
			t.Fatalf("not an event: %q", text)
		}
		f.data = data
		if data != "[DONE]" {
			f.tree = parse(t, data)
		}
		if f.name != "" && f.name != f.at("type").text() {
			t.Errorf("event %q holds type %q", f.name, f.at("type").text())
		}
		all = append(all, f)
	}
	return all
}

// shape names the events in order, equal neighbours once.
func shape(all []frame, name func(frame) string) string {
	var names []string
	for _, f := range all {
		if n := name(f); n != "" && (len(names) == 0 || names[len(names)-1] != n) {
			names = append(names, n)
		}
	}
	return strings.Join(names, "\n")
}

// joined joins what one field holds in all events of a type.
func joined(all []frame, kind, path string) string {
	var b strings.Builder
	for _, f := range all {
		if kind == "" || f.name == kind {
			b.WriteString(f.at(path).text())
		}
	}
	return b.String()
}

// trim removes the indentation of a shape that is written in a test.
func trim(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

func quoted(text string) string { b, _ := json.Marshal(text); return string(b) }

// ask makes a request with one message of the user. More fields may follow.
func ask(protocol, prompt string, more ...string) string {
	fields := []string{`"model":"m"`}
	switch message := `[{"role":"user","content":` + quoted(prompt) + `}]`; protocol {
	case "responses":
		fields = append(fields, `"input":`+message)
	case "messages":
		fields = append(fields, `"messages":`+message)
		if !strings.Contains(strings.Join(more, ""), "max_tokens") {
			fields = append(fields, `"max_tokens":4000`)
		}
	default:
		fields = append(fields, `"messages":`+message)
	}
	return "{" + strings.Join(append(fields, more...), ",") + "}"
}

// answer returns the text of a whole answer.
func answer(protocol string, body tree) string {
	switch protocol {
	case "chat":
		return body.at("choices.0.message.content").text()
	case "messages":
		return body.at("content.0.text").text()
	default:
		return body.at("output.0.content.0.text").text()
	}
}

var protocols = []string{"chat", "responses", "messages"}

func TestAnswerShowsWhatWasSent(t *testing.T) {
	for _, protocol := range protocols {
		t.Run(protocol, func(t *testing.T) {
			p := dial(t, protocol, Options{})
			system := map[string]string{
				"chat":      `"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"Where is Bergen?"}]`,
				"responses": `"instructions":"Be brief."`,
				"messages":  `"system":"Be brief."`,
			}[protocol]
			text := answer(protocol, p.whole(ask(protocol, "Where is Bergen?", system)))
			for _, want := range []string{"3 words: “Where is Bergen?”", "“Be brief.”", "turn 1"} {
				if !strings.Contains(text, want) {
					t.Errorf("no %q in %q", want, text)
				}
			}
			if other := answer(protocol, p.whole(ask(protocol, "Who?"))); other == text || strings.Contains(other, "brief") {
				t.Errorf("another question got %q", other)
			}
		})
	}
}

func TestTurnsEffortAndPictures(t *testing.T) {
	const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	requests := map[string]string{
		"chat": `{"model":"m","reasoning_effort":"none","messages":[{"role":"user","content":"a"},
			{"role":"assistant","content":"b"},{"role":"user","content":[{"type":"text","text":"image please"},
			{"type":"image_url","image_url":{"url":"data:image/png;base64,` + pixel + `"}}]}]}`,
		"responses": `{"model":"m","reasoning":{"effort":"none"},"input":[{"role":"user","content":"a"},
			{"role":"assistant","content":[{"type":"output_text","text":"b"}]},{"role":"user","content":[
			{"type":"input_text","text":"image please"},{"type":"input_image","image_url":"data:image/png;base64,` + pixel + `"}]}]}`,
		"messages": `{"model":"m","max_tokens":900,"output_config":{"effort":"none"},"messages":[{"role":"user","content":"a"},
			{"role":"assistant","content":"b"},{"role":"user","content":[{"type":"text","text":"image please"},
			{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + pixel + `"}}]}]}`,
	}
	for protocol, body := range requests {
		text := answer(protocol, dial(t, protocol, Options{}).whole(body))
		for _, want := range []string{"Image 1 is image/png of 70 bytes, 1 by 1 pixels.", "turn 2", "thinking set to “none”"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: no %q in %q", protocol, want, text)
			}
		}
	}
}

func TestHTTPErrors(t *testing.T) {
	const invalid = "invalid_request_error"
	cases := []struct {
		name, method, path, key, body string
		status                        int
		openai, code, anthropic       string // the type and code of the error
	}{
		{"wrong key", "POST", "", "no", "", 401, invalid, "invalid_api_key", "authentication_error"},
		{"unknown route", "POST", "/x", "", "{}", 404, invalid, "", "not_found_error"},
		{"wrong method", "GET", "", "", "", 405, invalid, "", invalid},
		{"malformed", "POST", "", "", `{"model":`, 400, invalid, "", invalid},
		{"not an object", "POST", "", "", `[]`, 400, invalid, "invalid_type", invalid},
		{"too large", "POST", "", "", strings.Repeat(" ", maxBody+1), 413, invalid, "", "request_too_large"},
		{"error 429", "POST", "", "", "say", 429, "requests", "rate_limit_exceeded", "rate_limit_error"},
		{"error 500", "POST", "", "", "say", 500, "server_error", "", "api_error"},
		{"error 401", "POST", "", "", "say", 401, invalid, "invalid_api_key", "authentication_error"},
		{"think, then ERROR 529", "POST", "", "", "say", 529, "server_error", "", "overloaded_error"},
		{"unknown model", "POST", "", "", "say", 404, invalid, "model_not_found", "not_found_error"},
	}
	for _, protocol := range protocols {
		p := dial(t, protocol, Options{Key: "sk-right", Models: []string{"m"}})
		for _, c := range cases {
			t.Run(protocol+" "+c.name, func(t *testing.T) {
				body := c.body
				if body == "say" {
					body = ask(protocol, c.name, `"stream":true`)
					if c.name == "unknown model" {
						body = strings.Replace(body, `"m"`, `"other"`, 1)
					}
				}
				url, query, _ := strings.Cut(p.url, "?")
				request, _ := http.NewRequestWithContext(t.Context(), c.method, url+c.path+"?"+query, strings.NewReader(body))
				request.Header = p.header.Clone()
				request.Header.Set("Authorization", "Bearer "+cmp.Or(c.key, "sk-right"))
				response, err := p.client.Do(request)
				if err != nil {
					t.Fatal(err)
				}
				defer response.Body.Close()
				text, _ := io.ReadAll(response.Body)
				if response.StatusCode != c.status || response.Header.Get("Content-Type") != "application/json" {
					t.Fatalf("status %d, %s", response.StatusCode, text)
				}
				answer, kind := parse(t, string(text)), c.openai
				if protocol == "messages" {
					kind = c.anthropic
					id := answer.at("request_id").text()
					if answer.at("type").text() != "error" || id == "" || id != response.Header.Get("Request-Id") {
						t.Errorf("answer %s", text)
					}
				} else if answer.at("error.code").text() != c.code {
					t.Errorf("code in %s", text)
				}
				if answer.at("error.type").text() != kind || answer.at("error.message").text() == "" {
					t.Errorf("error %s", text)
				}
				if got := response.Header.Get("Retry-After"); (got == "1") != (c.status == 429) {
					t.Errorf("Retry-After %q", got)
				}
				if c.status == 405 && response.Header.Get("Allow") != "POST" {
					t.Error("no Allow")
				}
			})
		}
	}
}

func TestModels(t *testing.T) {
	var ids []string
	for i := range 5 {
		ids = append(ids, fmt.Sprintf("model-%d", i))
	}
	for _, protocol := range protocols {
		p := dial(t, protocol, Options{Models: ids})
		base, _, _ := strings.Cut(p.url, "/v1/")
		var got []string
		for after, pages := "", 0; pages < 10; pages++ {
			response, err := p.client.Get(base + "/v1/models?limit=2&after_id=" + after)
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(response.Body)
			response.Body.Close()
			page := parse(t, string(text))
			for _, model := range page.at("data").list() {
				got = append(got, tree{model}.at("id").text())
			}
			if after = page.at("last_id").text(); page.at("has_more").value != true {
				break
			}
			if len(page.at("data").list()) != 2 {
				t.Fatalf("page %s", text)
			}
		}
		if strings.Join(got, " ") != strings.Join(ids, " ") {
			t.Errorf("%s: %v", protocol, got)
		}
	}
}

func TestUsage(t *testing.T) {
	usage := map[string][3]string{ // input, cached and output
		"chat":      {"usage.prompt_tokens", "usage.prompt_tokens_details.cached_tokens", "usage.completion_tokens"},
		"responses": {"usage.input_tokens", "usage.input_tokens_details.cached_tokens", "usage.output_tokens"},
		"messages":  {"usage.cache_creation_input_tokens", "usage.cache_read_input_tokens", "usage.output_tokens"},
	}
	for protocol, paths := range usage {
		p := dial(t, protocol, Options{})
		more := map[string]string{"messages": `"cache_control":{"type":"ephemeral"}`}[protocol]
		more = cmp.Or(more, `"top_p":1`)
		prompt := strings.Repeat("quite a few words ", 20)
		first := p.whole(ask(protocol, prompt, more))
		again := p.whole(ask(protocol, prompt, more))
		shorter := p.whole(ask(protocol, "few", more))
		if n := first.at(paths[0]).number(); n < 80 || shorter.at(paths[0]).number() >= n || first.at(paths[1]).number() != 0 {
			t.Errorf("%s: first %s, shorter %s", protocol, first.at("usage").json(), shorter.at("usage").json())
		}
		if again.at(paths[1]).number() < 80 || shorter.at(paths[1]).number() != 0 {
			t.Errorf("%s: again %s", protocol, again.at("usage").json())
		}
		if n := first.at(paths[2]).number(); n != tokens(answer(protocol, first)) || n == 0 {
			t.Errorf("%s: %d output tokens", protocol, n)
		}
	}
}

// TestTokenCounters makes sure that a counted prompt costs what its answer says, in the history of a call, too, and that
// counting is refused where answering would be.
func TestTokenCounters(t *testing.T) {
	for _, c := range []struct{ protocol, path, count string }{
		{"messages", "/v1/messages/count_tokens", "input_tokens"},
		{"responses", "/v1/responses/input_tokens", "input_tokens"},
		{"gemini", "/v1beta/models/gemini-3.8-flash:countTokens", "totalTokens"},
	} {
		t.Run(c.protocol, func(t *testing.T) {
			r := replayProtocols()[slices.IndexFunc(replayProtocols(), func(r replayed) bool { return r.protocol == c.protocol })]
			p := dialHandler(t, c.protocol, r.make(Options{Key: "k"}))
			for _, name := range []string{"Authorization", "X-Goog-Api-Key"} {
				p.header.Set(name, strings.TrimPrefix("Bearer k", map[string]string{"X-Goog-Api-Key": "Bearer "}[name]))
			}
			if c.protocol == "gemini" {
				p = p.to("/v1beta/models/gemini-3.8-flash:generateContent")
			}
			s := r.answer(p, "think, call for Oslo")
			counter := p.to(c.path)
			for _, steps := range [][]step{{}, {s}} {
				body := r.history(steps, false)
				var sent fields
				_ = json.Unmarshal([]byte(body), &sent)
				delete(sent, "max_tokens")
				delete(sent, "stream")
				delete(sent, "include")
				counted := counter.whole(encode(sent))
				usage := p.whole(body)
				want := usage.at("usage.input_tokens").number() + usage.at("usageMetadata.promptTokenCount").number()
				if n := counted.at(c.count).number(); n != want || n < 20 {
					t.Errorf("counted %s, answered %s", counted.json(), usage.json())
				}
				if c.protocol == "responses" && counted.at("object").text() != "response.input_tokens" {
					t.Error(counted.json())
				}
			}
			spoilt := s.copyOf()
			spoilt.results = nil
			find(spoilt.model, r.signed)[r.proof] = "Zm9yZWlnbg=="
			body := r.history([]step{spoilt}, false)
			var sent fields
			_ = json.Unmarshal([]byte(body), &sent)
			for _, name := range []string{"max_tokens", "stream", "include"} {
				delete(sent, name)
			}
			if response, text, _ := counter.post(encode(sent)); response.StatusCode != 400 {
				t.Errorf("a foreign proof: %d %s", response.StatusCode, text)
			}
			sent["temperature"] = 1
			if response, text, _ := counter.post(encode(sent)); response.StatusCode != 400 || !strings.Contains(text, "temperature") {
				t.Errorf("a field of answers: %d %s", response.StatusCode, text)
			}
			counter.header = http.Header{"Anthropic-Version": {"2023-06-01"}}
			if response, _, _ := counter.post(body); response.StatusCode < 400 || response.StatusCode > 403 || response.StatusCode == 402 {
				t.Errorf("without a key: %d", response.StatusCode)
			}
		})
	}
}

// TestFaults makes sure that every protocol says in its own words when to come back, that the quota is used up and that
// the prompt is too long, and shows a page where it is asked for one.
func TestFaults(t *testing.T) {
	requests := map[string]func(string) string{
		"chat": func(s string) string { return ask("chat", s) }, "responses": func(s string) string { return ask("responses", s) },
		"messages": func(s string) string { return ask("messages", s) }, "gemini": func(s string) string { return askGemini(s) },
		"interactions": func(s string) string { return askInteraction(s) },
		"bedrock": func(s string) string {
			return strings.Replace(ask("messages", s), `"model":"m"`, `"anthropic_version":"bedrock-2023-05-31"`, 1)
		},
	}
	quota := map[string]string{
		"chat": `"code":"insufficient_quota"`, "responses": `"type":"insufficient_quota"`, "messages": "Your credit balance is too low",
		"gemini": "RESOURCE_EXHAUSTED", "interactions": "QuotaFailure", "bedrock": "Too many tokens per day",
	}
	long := map[string]string{
		"chat": "This model's maximum context length is", "responses": "Your input exceeds the context window", "messages": "prompt is too long: ",
		"gemini": "exceeds the maximum number of tokens allowed", "interactions": "INVALID_ARGUMENT", "bedrock": "Input is too long",
	}
	now := time.Date(2026, 4, 1, 12, 0, 0, 0, time.UTC)
	for protocol, request := range requests {
		p := dial(t, protocol, Options{Now: func() time.Time { return now }})
		for _, c := range []struct {
			prompt, after, want string
			status              int
		}{
			{"error 429 after 7", "7", "", 429},
			{"error 503 until 70, please", "Wed, 01 Apr 2026 12:01:10 GMT", "", 503},
			{"error 529", "", "", 529},
			{"insufficient_quota", "", quota[protocol], map[string]int{"messages": 400}[protocol]},
			{"context_length_exceeded", "", long[protocol], 400},
			{"webpage", "", "<h1>200 OK</h1>", 200},
			{"a webpage with error 502", "", "<h1>502 Bad Gateway</h1>", 502},
		} {
			response, text, err := p.post(request(c.prompt))
			if response.StatusCode != cmp.Or(c.status, 429) || err != nil || response.Header.Get("Retry-After") != c.after || !strings.Contains(text, c.want) {
				t.Errorf("%s, %s: %d, %v, Retry-After %q, %s", protocol, c.prompt, response.StatusCode, err, response.Header.Get("Retry-After"), text)
			}
			if html := strings.HasPrefix(response.Header.Get("Content-Type"), "text/html"); html != strings.HasPrefix(c.want, "<") || !html && !json.Valid([]byte(text)) {
				t.Errorf("%s, %s: %s %s", protocol, c.prompt, response.Header.Get("Content-Type"), text)
			}
		}
	}
}

func TestLongAnswerHasManyChunks(t *testing.T) {
	for _, protocol := range protocols {
		all := frames(t, dial(t, protocol, Options{}).ok(ask(protocol, "a long story of Oslo", `"stream":true`)))
		if len(all) < 300 {
			t.Errorf("%s: %d events", protocol, len(all))
		}
	}
}

func TestObjectsBeginWithTheirType(t *testing.T) {
	text, err := json.Marshal(object{"usage": nil, "a": []object{{"x": "<&>", "type": "t"}}, "id": 1, "z": object{}, "index": 0})
	if want := `{"id":1,"index":0,"a":[{"type":"t","x":"\u003c\u0026\u003e"}],"usage":null,"z":{}}`; string(text) != want || err != nil {
		t.Errorf("got %s, %v", text, err)
	}
	p := dial(t, "chat", Options{})
	if body := p.ok(ask("chat", "a < b & c", `"stream":true`)); !strings.Contains(body, "<") || strings.Contains(body, `\u003c`) {
		t.Error("events escape what JSON need not")
	}
}

// FuzzRequests makes sure that no request, history or schema makes a provider panic.
func FuzzRequests(f *testing.F) {
	for _, protocol := range protocols {
		tools := map[string]string{"chat": chatTools, "responses": responsesTools, "messages": messagesTools}[protocol]
		f.Add(ask(protocol, "think, parallel interleaved calls, length", tools, `"stream":true`))
		f.Add(ask(protocol, "redacted image error 999", `"stream":true`))
		f.Add(ask(protocol, "webpage error 503 until 7"))
	}
	f.Add(`{"model":"m","messages":[null,{"role":"user","content":[null]}],"max_tokens":1}`)
	f.Add(`{"model":"m","input":[null,{"role":"user","content":[null,{"type":"input_image"}]}]}`)
	f.Add(`{"model":"m","max_tokens":5,"messages":[{"role":"user","content":[{"type":"tool_result"},{"type":"image"}]}],"tools":[null]}`)
	f.Add(`{"contents":[null,{"parts":[null,{"functionCall":{}}]}],"tools":[{"functionDeclarations":[{"name":"f","parameters":{"type":"OBJECT"}}]}]}`)
	f.Add(`{"model":"m","input":[null,{"type":"function_call","name":"f","arguments":{}},{"type":"thought","summary":[null]}],"tools":[null]}`)
	f.Add(`{"requests":[null,{"content":{"parts":[{"text":"x"}]}}]}`)
	f.Add(`{"anthropic_version":"bedrock-2023-05-31","max_tokens":5,"messages":[{"role":"user","content":"say paint block"}]}`)
	gemini := Gemini(Options{})
	providers := map[string]*Provider{
		"/chat/completions": Chat(Options{}), "/responses": Responses(Options{}), "/v1/messages": Messages(Options{}),
		"/v1/embeddings": Embeddings(Options{}), "/model/m/invoke-with-response-stream": Bedrock(Options{}),
		"/v1beta/models/m:streamGenerateContent": gemini, "/v1beta/models/m:countTokens": gemini, "/v1beta/interactions": gemini,
		"/v1beta/models/embed:batchEmbedContents": gemini, "/v1/messages/count_tokens": Messages(Options{}),
		"/v1/responses/input_tokens": Responses(Options{}),
	}
	f.Fuzz(func(t *testing.T, body string) {
		for route, provider := range providers {
			w := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodPost, route, strings.NewReader(body))
			r.Header.Set("Anthropic-Version", "2023-06-01")
			func() {
				defer func() {
					if p := recover(); p != nil && p != http.ErrAbortHandler {
						panic(p)
					}
				}()
				provider.ServeHTTP(w, r)
			}()
			if strings.HasPrefix(w.Header().Get("Content-Type"), "text/html") {
				continue
			}
			if w.Code != http.StatusOK && (!json.Valid(w.Body.Bytes()) || !strings.Contains(strings.ToLower(w.Body.String()), `"message":"`)) {
				t.Errorf("%s: status %d, %s", route, w.Code, w.Body)
			}
		}
	})
}

func TestPrefixesAreBounded(t *testing.T) {
	p := newPrefixes()
	for i := range 20_000 {
		p.count("m", []segment{{"user", fmt.Sprint(i), 1}})
	}
	if len(p.seen) > len(p.ring)+1 {
		t.Errorf("%d hashes", len(p.seen))
	}
	if _, cached := p.count("m", []segment{{"user", "19999", 1}}); cached != 1 {
		t.Error("the newest is forgotten")
	}
	if _, cached := p.count("other", []segment{{"user", "19999", 1}}); cached != 0 {
		t.Error("another model shares the cache")
	}
}

func TestCuts(t *testing.T) {
	for _, protocol := range protocols {
		p := dial(t, protocol, Options{})
		for _, streamed := range []string{`"stream":false`, `"stream":true`} {
			response, text, err := p.post(ask(protocol, "cut this answer please", streamed))
			if response.StatusCode != 200 || err == nil || !strings.Contains(text, "wrote") && streamed == `"stream":true` {
				t.Errorf("%s %s: status %d, error %v: %s", protocol, streamed, response.StatusCode, err, text)
			}
			_, text, err = p.post(ask(protocol, "cut this answer, a clean one", streamed))
			ended := regexp.MustCompile(`"stop"|DONE|message_stop|response\.completed`).MatchString(text)
			if streamed == `"stream":false` {
				ended = json.Valid([]byte(text))
			}
			if err != nil || ended {
				t.Errorf("%s %s, clean: %v %s", protocol, streamed, err, text)
			}
		}
		if response, _, _ := p.post(ask(protocol, "fail")); response.StatusCode != 500 {
			t.Errorf("%s: whole answer that fails: %d", protocol, response.StatusCode)
		}
	}
}

// TestFailures: an error inside the stream is the one that is asked for.
func TestFailures(t *testing.T) {
	for _, tt := range []struct {
		prompt string
		status int               // of an answer that is not streamed
		words  map[string]string // by protocol; "": all others
	}{
		{"fail 429", 429, map[string]string{"chat": "rate_limit_exceeded", "responses": "rate_limit_exceeded", "messages": "rate_limit_error"}},
		{"fail 503", 503, map[string]string{"chat": "overloaded", "responses": "overloaded", "messages": "api_error"}},
		{"fail insufficient_quota", 429, map[string]string{"messages": "credit balance", "": "current quota"}},
		{"fail context_length_exceeded", 400, map[string]string{"messages": "prompt is too long", "": "context_length_exceeded"}},
	} {
		for _, protocol := range protocols {
			word, ok := tt.words[protocol]
			if !ok {
				if word, ok = tt.words[""]; !ok {
					continue
				}
			}
			status := tt.status
			if protocol == "messages" && strings.Contains(tt.prompt, noQuota) {
				status = 400
			}
			p := dial(t, protocol, Options{})
			if response, text, _ := p.post(ask(protocol, tt.prompt)); response.StatusCode != status || !strings.Contains(text, word) {
				t.Errorf("%s, %s: %d %s", protocol, tt.prompt, response.StatusCode, text)
			}
			response, text, _ := p.post(ask(protocol, tt.prompt, `"stream":true`))
			said, failure, _ := strings.Cut(text, "wrote")
			if response.StatusCode != 200 || !strings.Contains(failure, word) || said == "" {
				t.Errorf("%s, %s: %d %s", protocol, tt.prompt, response.StatusCode, text)
			}
		}
	}
}

func TestDisconnectEndsTheWork(t *testing.T) {
	ended := make(chan struct{})
	provider := Messages(Options{Pace: time.Hour})
	server, err := Start(t.Context(), map[string]http.Handler{"m": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		provider.ServeHTTP(w, r)
	})})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	request, _ := http.NewRequest(http.MethodPost, server.URL("m")+"/v1/messages", strings.NewReader(ask("messages", "hi", `"stream":true`)))
	request.Header.Set("Anthropic-Version", "2023-06-01")
	client := &http.Client{Transport: &http.Transport{}}
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	select {
	case <-ended:
	case <-time.After(3 * time.Second):
		t.Error("the handler goes on")
	}
}

func TestSlowAndClose(t *testing.T) {
	server, err := Start(t.Context(), map[string]http.Handler{"chat": Chat(Options{Pace: time.Minute})})
	if err != nil {
		t.Fatal(err)
	}
	failure := make(chan error, 1)
	client := &http.Client{Transport: &http.Transport{}}
	go func() {
		response, err := client.Post(server.URL("chat")+"/chat/completions", "application/json", strings.NewReader(ask("chat", "slow", `"stream":true`)))
		if err == nil {
			response.Body.Close()
		}
		failure <- err
	}()
	select {
	case err := <-failure:
		t.Fatalf("answered before its time: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	if <-failure == nil {
		t.Error("an answer after Close")
	}
}
