package openaiembedding

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/prism-shadow/mmsp-go"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const base = "https://gate.test/v1"

// redirect sends every request to one server, whatever host it names.
type redirect struct {
	to   *url.URL
	base *http.Transport
}

func (r redirect) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.URL.Scheme, request.URL.Host = r.to.Scheme, r.to.Host
	return r.base.RoundTrip(request)
}

// newClient makes a client whose provider is the handler.
func newClient(t testing.TB, o mmsp.Options, provider http.HandlerFunc) *Client {
	server := httptest.NewServer(provider)
	transport := &http.Transport{}
	t.Cleanup(server.Close)
	t.Cleanup(transport.CloseIdleConnections)
	to, _ := url.Parse(server.URL)
	o.HTTPClient = &http.Client{Transport: redirect{to, transport}}
	o.HTTP.MaxRetries = new(0)
	o.Model = "text-embedding-3-large"
	if o.APIKey.IsZero() {
		o.APIKey = mmsp.NewSecret("sk-test")
	}
	o.BaseURL = base
	o.Getenv = func(string) string { return "" }
	client, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func answer(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	}
}

var inputs = []mmsp.Message{mmsp.UserMessage(mmsp.Text("tide")), mmsp.UserMessage(mmsp.Text("berth"))}

func stream(c *Client) iter.Seq2[mmsp.Event, error] {
	return mmsp.NewClient(c).StreamingResponse(context.Background(), inputs, nil)
}

// transcript writes a public stream one line an event as it travels on the wire, without its time, and checks its grammar.
func transcript(t testing.TB, stream iter.Seq2[mmsp.Event, error]) []string {
	var lines []string
	var grammar mmsp.GrammarChecker
	for event, err := range stream {
		if err != nil {
			var incomplete *mmsp.IncompleteStreamError
			var upstream *mmsp.UpstreamError
			var empty *mmsp.EmptyResponseError
			switch {
			case errors.As(err, &incomplete):
				return append(lines, "IncompleteStreamError")
			case errors.As(err, &upstream):
				return append(lines, fmt.Sprintf("UpstreamError %d %s %s %s", upstream.Status, upstream.ErrorType, upstream.Code, upstream.Message))
			case errors.As(err, &empty):
				return append(lines, "EmptyResponseError "+string(empty.FinishReason))
			}
			return append(lines, err.Error())
		}
		if err := grammar.Event(&event); err != nil {
			t.Error(err)
		}
		line := string(event.AppendJSON(nil))
		if event.Type == mmsp.EventDelta {
			_, line, _ = strings.Cut(line, `"content_items":[`)
			line, _, _ = strings.Cut(line, `],"usage_metadata"`)
		} else {
			_, line, _ = strings.Cut(line, `"usage_metadata":`)
			line, _, _ = strings.Cut(line, `,"created_at"`)
		}
		lines = append(lines, line)
	}
	return lines
}

// pack is the base64 of little-endian float32 values.
func pack(values ...float32) string {
	var data []byte
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return base64.StdEncoding.EncodeToString(data)
}

// vector is what one vector looks like in the public stream.
func vector(numbers string) []string {
	return []string{`{"type":"embedding.delta","embedding":[` + numbers + `]}`, `{"type":"embedding.done","embedding":[` + numbers + `]}`}
}

func stop(prompt string) string {
	return `{"cached_tokens":null,"prompt_tokens":` + prompt + `,"thoughts_tokens":null,"response_tokens":null},"finish_reason":"stop"`
}

func lines(parts ...[]string) (all []string) {
	for _, part := range parts {
		all = append(all, part...)
	}
	return all
}

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       []string
	}{
		{
			"base64", `{"object":"list","data":[{"object":"embedding","index":0,"embedding":"` + pack(0.1, -1e-7) + `"},{"object":"embedding","index":1,"embedding":"` + pack(3, -0.0023064255) + `"}],` +
				`"model":"m","usage":{"prompt_tokens":8,"total_tokens":8}}`,
			lines(vector(`0.1,-1e-07`), vector(`3,-0.0023064255`), []string{stop("8")}),
		},
		{
			"numbers, out of order", `{"data":[{"index":1,"embedding":[0.25]},{"index":0,"embedding":[0.30000000000000004,-1]}],"usage":{"prompt_tokens":3,"total_tokens":3,"completion_tokens":0}}`,
			lines(vector(`0.30000000000000004,-1`), vector(`0.25`), []string{stop("3")}),
		},
		{"an empty vector", `{"data":[{"index":0,"embedding":[]},{"index":1,"embedding":""}],"usage":{"prompt_tokens":0}}`, lines(vector(``), vector(``), []string{stop("0")})},
		{"no usage", `{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[2]}]}`, lines(vector(`1`), vector(`2`), []string{stop("null")})},
		{"usage without a prompt", `{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[2]}],"usage":{"total_tokens":12}}`, lines(vector(`1`), vector(`2`), []string{stop("null")})},
		{"no vectors", `{"data":[],"usage":{"prompt_tokens":3}}`, []string{"UpstreamError 0 unexpected_body  the provider did not answer with one vector for each text"}},
		{"a vector too few", `{"data":[{"index":1,"embedding":[1]}]}`, []string{"UpstreamError 0 unexpected_body  the provider did not answer with one vector for each text"}},
		{"an error", `{"error":{"type":"invalid_request_error","code":"bad","message":"No."}}`, []string{"UpstreamError 0 invalid_request_error bad No."}},
		{"a page", "<html>Sign in</html>", []string{
			`UpstreamError 0 unexpected_body  the embeddings from the provider are not readable (not a value at byte 0): "Sign in"`,
		}},
		{"another protocol", `{"embeddings":[[1]]}`, []string{
			`UpstreamError 0 unexpected_body  the embeddings from the provider are not readable (the body has no list of embeddings): "{\"embeddings\":[[1]]}"`,
		}},
		{"no number", `{"data":[{"embedding":"` + pack(float32(math.Inf(1))) + `"}]}`, []string{
			`UpstreamError 0 unexpected_body  the embeddings from the provider are not readable (data[0]: an element of the vector is no finite number): "{\"data\":[{\"embedding\":\"AACAfw==\"}]}"`,
		}},
		{"an empty body", "", []string{"IncompleteStreamError"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := transcript(t, stream(newClient(t, mmsp.Options{}, answer(c.body))))
			if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// An answer that is cut anywhere yields nothing but an error.
func TestTruncation(t *testing.T) {
	body := `{"object":"list","data":[{"object":"embedding","index":0,"embedding":"` + pack(1, 2) + `"},{"index":1,"embedding":[0.5,-1e-7]}],"usage":{"prompt_tokens":8}}`
	cut, broken := 0, false
	client := newClient(t, mmsp.Options{}, func(w http.ResponseWriter, r *http.Request) {
		if broken {
			w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		}
		answer(body[:cut])(w, r)
	})
	for cut = range len(body) {
		for _, broken = range []bool{false, true} {
			if got := transcript(t, stream(client)); len(got) != 1 || got[0] != "IncompleteStreamError" {
				t.Fatalf("cut after %d bytes: %q", cut, got)
			}
		}
	}
}

func TestRequestsCarryTheCredential(t *testing.T) {
	var seen []string
	client := newClient(t, mmsp.Options{
		APIKey: mmsp.NewSecret("sk-secret"), DefaultHeaders: map[string]string{"X-Team": "pilots", "Authorization": "Bearer other"},
	}, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		seen = append(seen, fmt.Sprint(r.Method, " ", r.URL.Path, " ", r.Header["Authorization"], " ", r.Header.Get("X-Team"), " ", string(body)))
		if r.URL.Path == "/v1/models" {
			_, _ = io.WriteString(w, `{"data":[{"id":"text-embedding-3-large"},{"id":"gpt-9"}]}`)
			return
		}
		_, _ = io.WriteString(w, `{"data":[{"index":0,"embedding":[1]}]}`)
	})
	transcript(t, stream(client))
	models, err := mmsp.NewClient(client).ListModels(context.Background())
	if err != nil || fmt.Sprint(models) != "[text-embedding-3-large gpt-9]" {
		t.Errorf("%v %v", models, err)
	}
	want := `POST /v1/embeddings [Bearer sk-secret] pilots {"model":"text-embedding-3-large","encoding_format":"base64","input":["tide","berth"]}` + "\n" +
		`GET /v1/models [Bearer sk-secret] pilots `
	if got := strings.Join(seen, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestNew(t *testing.T) {
	environment := func(name string) string {
		return map[string]string{"OPENAI_API_KEY": "sk-env", "OPENAI_BASE_URL": "https://env.example/v1"}[name]
	}
	for _, c := range []struct {
		options mmsp.Options
		want    string // key and URL, or what the error says
	}{
		{mmsp.Options{Getenv: environment}, "sk-env https://env.example/v1"},
		{mmsp.Options{APIKey: mmsp.NewSecret("sk-arg"), Getenv: environment}, "sk-arg https://env.example/v1"},
		{mmsp.Options{BaseURL: "https://elsewhere.example", Getenv: environment}, "OPENAI_API_KEY goes only to"},
		{mmsp.Options{Getenv: func(string) string { return "" }}, "OPENAI_API_KEY is required for " + class},
	} {
		client, err := New(c.options)
		got := fmt.Sprint(err)
		if err == nil {
			got = client.key.Reveal() + " " + client.baseURL
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

func TestHTTPErrors(t *testing.T) {
	client := newClient(t, mmsp.Options{}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "7")
		w.Header().Set("X-Request-Id", "req_1")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"error":{"type":"requests","code":"rate_limit_exceeded","message":"Slow down.","param":null}}`)
	})
	for _, err := range stream(client) {
		var upstream *mmsp.UpstreamError
		if !errors.As(err, &upstream) || upstream.Client != class || upstream.Status != 429 || upstream.Code != "rate_limit_exceeded" ||
			upstream.RetryAfter != 7*time.Second || upstream.RequestID != "req_1" || upstream.Message != "Slow down." {
			t.Errorf("%#v", err)
		}
	}
	if _, err := client.ListModels(context.Background()); err == nil {
		t.Error("the list of models hides the error")
	}
}

// The provider's connection ends when the caller gives up, before the answer or in the middle of it.
func TestAbort(t *testing.T) {
	for _, begun := range []string{"", `{"data":[{"embedding":[1,`} {
		arrived, closed := make(chan struct{}), make(chan time.Time)
		client := newClient(t, mmsp.Options{}, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			if begun != "" {
				_, _ = io.WriteString(w, begun)
				_ = http.NewResponseController(w).Flush()
			}
			arrived <- struct{}{}
			<-r.Context().Done()
			closed <- time.Now()
		})
		took := time.Hour
		for range 3 { // a busy machine may be late once
			ctx, cancel := context.WithCancelCause(context.Background())
			left := make(chan time.Time, 1)
			go func() {
				<-arrived
				left <- time.Now()
				cancel(errors.New("enough"))
			}()
			closing := make(chan time.Time, 1)
			go func() { closing <- <-closed }()
			var end error
			for _, err := range mmsp.NewClient(client).StreamingResponse(ctx, inputs, nil) {
				end = err
			}
			if end == nil || end.Error() != "enough" {
				t.Errorf("the stream ends with %v", end)
			}
			if took = min(took, (<-closing).Sub(<-left)); took < 100*time.Millisecond {
				break
			}
		}
		if took > 100*time.Millisecond {
			t.Errorf("closed after %v", took)
		}
	}
}
