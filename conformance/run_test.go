package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"testing"

	"github.com/prism-shadow/mmsp-go"
)

// recordedModel is the id that clients are built with here: what a reader does never depends on it.
const recordedModel = "recorded-model"

// provider builds a client for an endpoint.
func (c *client) provider(tb testing.TB, baseURL string, transport http.RoundTripper) mmsp.Provider {
	tb.Helper()
	p, err := c.new(mmsp.Options{
		Model: recordedModel, APIKey: mmsp.NewSecret("key"), BaseURL: baseURL,
		HTTP: mmsp.HTTPOptions{MaxRetries: new(0)}, HTTPClient: &http.Client{Transport: transport},
		Getenv: func(string) string { return "" },
	})
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

// outcome is a public stream and how it ended.
type outcome struct {
	events []mmsp.Event // without their times
	stop   *mmsp.Event  // the last of them when it is a stop
	err    error        // what the stream ended with
	broken error        // the first violation of the grammar
}

func run(ctx context.Context, p mmsp.Provider) (o outcome) {
	var grammar mmsp.GrammarChecker
	question := []mmsp.Message{mmsp.UserMessage(mmsp.Text("Question."))}
	for event, err := range mmsp.NewClient(p).StreamingResponse(ctx, question, &mmsp.Config{}) {
		if o.err != nil {
			o.broken = errors.Join(o.broken, errors.New("the stream goes on after an error"))
		}
		if err != nil {
			o.err = err
			continue
		}
		if broken := grammar.Event(&event); broken != nil && o.broken == nil {
			o.broken = broken
		}
		event.CreatedAt, event.More = 0, false
		o.events = append(o.events, event)
	}
	if n := len(o.events); n > 0 && o.events[n-1].Type == mmsp.EventStop {
		o.stop = &o.events[n-1]
	}
	switch {
	case o.broken != nil:
	case o.err == nil:
		o.broken = grammar.End()
	case o.stop != nil:
		o.broken = errors.New("an error follows the stop")
	case !typed(o.err):
		o.broken = fmt.Errorf("the error is of no type of the protocol: %T: %w", o.err, o.err)
	}
	return o
}

// typed reports whether a provider's answer may end in the error.
func typed(err error) bool {
	var (
		empty      *mmsp.EmptyResponseError
		incomplete *mmsp.IncompleteStreamError
		arguments  *mmsp.ToolCallArgumentParseError
		upstream   *mmsp.UpstreamError
		protocol   *mmsp.StreamProtocolError
	)
	return errors.As(err, &empty) || errors.As(err, &incomplete) || errors.As(err, &arguments) ||
		errors.As(err, &upstream) || errors.As(err, &protocol)
}

// dump writes a stream in the public wire format, one event or error a line.
func (o *outcome) dump() string {
	var b []byte
	for i := range o.events {
		b = append(o.events[i].AppendJSON(b), '\n')
	}
	if o.err != nil {
		b = append(mmsp.AppendErrorJSON(b, o.err), '\n')
	}
	return string(b)
}

// firstDifference returns the first lines in which two dumps differ.
func firstDifference(a, b string) string {
	for i := 1; a != b; i++ {
		lineA, restA, _ := bytes.Cut([]byte(a), []byte("\n"))
		lineB, restB, _ := bytes.Cut([]byte(b), []byte("\n"))
		if !bytes.Equal(lineA, lineB) {
			return fmt.Sprintf("event %d:\n%.400s\n%.400s", i, lineA, lineB)
		}
		a, b = string(restA), string(restB)
	}
	return ""
}

// chunked is a transport whose bodies arrive in pieces of the client's side of the connection: size gives each.
type chunked struct {
	http.RoundTripper
	size func() func() int // nil: as the connection delivers them
}

func (c chunked) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := c.RoundTripper.RoundTrip(request)
	if err == nil && c.size != nil {
		response.Body = &pieces{response.Body, c.size()}
	}
	return response, err
}

type pieces struct {
	io.ReadCloser
	size func() int
}

func (p *pieces) Read(into []byte) (int, error) {
	return p.ReadCloser.Read(into[:min(len(into), p.size())])
}

var chunkings = []struct {
	name string
	size func() func() int
}{
	{"as recorded", nil},
	{"one byte at a time", func() func() int {
		n := 0
		return func() int { n++; return 1 + n/100_000*16 } // for the first 100 kB
	}},
	{"random pieces", func() func() int {
		random := rand.New(rand.NewPCG(1, 2))
		return func() int { return 1 + random.IntN(1<<random.IntN(9)) }
	}},
}

// canned answers every request from memory with the answer in the request's context.
type canned struct{}

type answer struct {
	status      int
	contentType string
	body        []byte
	end         error // what the body ends with after its bytes; nil: io.EOF
}

type answerKey struct{}

func withAnswer(tb testing.TB, a *answer) context.Context {
	return context.WithValue(tb.Context(), answerKey{}, a)
}

func (canned) RoundTrip(request *http.Request) (*http.Response, error) {
	a := request.Context().Value(answerKey{}).(*answer)
	body := io.Reader(bytes.NewReader(a.body))
	if a.end != nil {
		body = io.MultiReader(body, failing{a.end})
	}
	return &http.Response{
		StatusCode: a.status, Header: http.Header{"Content-Type": {a.contentType}},
		Body: io.NopCloser(body), Request: request, ProtoMajor: 1, ProtoMinor: 1, ContentLength: -1,
	}, nil
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// answer is the recording as an answer in memory.
func (r *recording) answer() *answer {
	return &answer{status: r.status, contentType: r.contentType(), body: r.body}
}

func (r *recording) contentType() string {
	if r.protocol == &bedrock {
		return "application/vnd.amazon.eventstream"
	}
	if r.stream && !r.array {
		return "text/event-stream; charset=utf-8"
	}
	return "application/json"
}
