package antmessages

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/internal/upstream"
)

// transport answers requests without a network.
type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answer(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
}

// testClient is a client of an endpoint of the protocol over the given transport.
func testClient(t testing.TB, model string, over http.RoundTripper) *Client {
	t.Helper()
	client, err := New(mmsp.Options{
		Model: model, APIKey: mmsp.NewSecret("test-key"), BaseURL: "https://gw.example/anthropic", HTTPClient: &http.Client{Transport: over},
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
			var failed error
			for _, err := range client.Do(t.Context(), request) {
				failed = err
			}
			if row.key == "" { // it does not go out
				if auth := (*mmsp.AuthenticationError)(nil); !errors.As(failed, &auth) || sent != nil {
					t.Errorf("sent %v, error %v", sent, failed)
				}
				return
			}
			want := http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}, "Anthropic-Version": {"2023-06-01"}}
			if row.key != "" {
				want.Set("X-Api-Key", row.key)
				want.Set("Authorization", "Bearer "+row.key)
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
		if h := sent[i]; h.Get("X-App") != "cli" || h.Get("Anthropic-Beta") != beta || h.Get("X-Api-Key") != "test-key" || h.Get("Authorization") != "Bearer test-key" {
			t.Errorf("request %d: %v", i, h)
		}
	}
}

// The betas of a request are the client's own, the row's and the caller's, each once. A count has no fast mode.
func TestBetas(t *testing.T) {
	for _, row := range []struct {
		name, header string
		fast         bool
		caller       []string
		want, counts string
	}{
		{"none", "", false, nil, "", ""},
		{"the caller's", "", false, []string{"a-1", "b-2"}, "a-1,b-2", "a-1,b-2"},
		{"all", "row-1, a-1,", true, []string{"a-1", "fast-mode-2026-02-01", "b-2"}, "fast-mode-2026-02-01,row-1,a-1,b-2", "row-1,a-1,fast-mode-2026-02-01,b-2"},
	} {
		var sent []string
		client := testClient(t, "m", transport(func(r *http.Request) (*http.Response, error) {
			sent = append(sent, strings.Join(r.Header.Values("Anthropic-Beta"), " and "))
			return answer(200, `{"input_tokens":1}`), nil
		}))
		client.headers = map[string]string{"anthropic-beta": row.header}
		ctx := upstream.WithBetas(t.Context(), row.caller)
		config := &mmsp.Config{FastMode: row.fast}
		request, err := client.Prepare(ctx, nil, config)
		if err != nil {
			t.Fatal(err)
		}
		for range client.Do(ctx, request) {
		}
		if _, err := client.CountTokens(ctx, nil, config); err != nil {
			t.Fatal(err)
		}
		if want := []string{row.want, row.counts}; !reflect.DeepEqual(sent, want) {
			t.Errorf("%s: sent %q, want %q", row.name, sent, want)
		}
	}
}

func TestListModels(t *testing.T) {
	pages := map[string]string{
		"/anthropic/v1/models":                   `{"data":[{"id":"claude-b"},{"id":"gpt-x"}],"has_more":true,"first_id":"claude-b","last_id":"gpt/x"}`,
		"/anthropic/v1/models?after_id=gpt%2Fx":  `{"data":[{"id":"claude-a"}],"has_more":true,"last_id":"claude-a"}`,
		"/anthropic/v1/models?after_id=claude-a": `{"data":[],"has_more":false,"last_id":null}`,
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
