// Package simulate holds simulated model providers: HTTP handlers that speak the real wire protocols and answer from
// what was sent, so that a server can be shown and tested without a key and without a network. The history is checked
// as strictly as the providers do.
//
// What the user said last chooses what happens. These words count anywhere in it, in any case, and combine; without one
// of them the answer reports what was received.
//
//	think        thinking first, with the protocol's proof; also where the request asks for thinking
//	redacted     the same, but not shown
//	call         a call of one of the request's tools, its arguments filled from the prompt
//	parallel     two or three calls; interleaved: their fragments alternate (Chat, Responses)
//	image        a description of the pictures that were sent
//	paint        a picture (generateContent, Interactions); think: pictures in the thinking, too
//	say          speech (generateContent, Interactions)
//	error 429    an HTTP error, any status from 400 to 599; error 429 after 7: to be tried again after seven seconds;
//	             error 429 until 7: the same, said as a date
//	insufficient_quota, context_length_exceeded   the error that says so
//	webpage      a page of HTML; error 502 webpage: with this status
//	fail         an error inside the stream; fail 429, and fail with the two words above: the one that says so
//	cut          the connection breaks; cut and clean: the body just ends
//	slow         the first byte late and every chunk late, in multiples of the pace
//	long         some hundred chunks
//	length       the token limit is reached halfway
//	refuse       a refusal; filter: a content filter instead, and of calls their interdiction (generateContent)
//	block        the prompt is not answered (generateContent, Interactions)
//	empty        nothing
package simulate

import (
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// DefaultPace is a wait between two chunks at which a reader can follow the answer.
const DefaultPace = 20 * time.Millisecond

const (
	maxBody  = 32 << 20         // bytes of a request
	bodyTime = 30 * time.Second // to send it
)

// Options says how a simulated provider behaves. The zero value accepts every caller and every model and never waits.
type Options struct {
	Key    string           // the credential callers must send (Bedrock: ID,SECRET); empty: none is asked for
	Models []string         // the ids that are served and listed; empty: every id is accepted and one is listed
	Pace   time.Duration    // wait between two chunks; 0: none
	Now    func() time.Time // nil: time.Now

	// Strict adds the checks that only some providers of a protocol make. Chat: a turn with calls that was answered
	// with reasoning comes back with its reasoning field. Responses: max_output_tokens is at least 16, and the outputs
	// of calls stand before the next message; a call that reasoning led to comes back after it. Messages: adaptive
	// thinking comes back before its calls, too.
	Strict bool
	// RawReasoning makes Responses show the thinking itself, as servers of open-weight models do, and accept reasoning
	// items without a summary. Otherwise it shows a summary, and only to those who ask for one.
	RawReasoning bool
	// ReasoningField is the field that holds the thinking of Chat Completions: "reasoning_content" if empty.
	ReasoningField string
	// AlwaysUsage makes Chat Completions report usage to those who do not ask for it, too.
	AlwaysUsage bool
}

// Provider is a simulated provider of one protocol.
type Provider struct {
	*core
	wire      wire
	generates func(path string) bool // a path that takes a request
	requestID string                 // the header that names the request
}

// core is what every protocol shares.
type core struct {
	Options
	sealer   sealer
	prefixes *prefixes
}

// wire is one protocol.
type wire interface {
	// admit refuses a caller without the right credential.
	admit(*http.Request) *fault
	// read decodes a request and checks it as the provider does.
	read(body []byte, r *http.Request) (exchange, *fault)
	// models returns the listing.
	models(*http.Request) (any, *fault)
	// refusal returns the body of an error, having filled in what the fault leaves open. It may add to the header of
	// the answer, which names the request.
	refusal(f *fault, r *http.Request, answer http.Header) any
}

// exchange is one request that passed the checks, and how its protocol writes a reply to it.
type exchange interface {
	asked() *turn
	stream(*stream, *reply)
	whole(*reply) any
}

// endsIn returns a function that knows a path by its end.
func endsIn(ends ...string) func(string) bool {
	return func(path string) bool {
		return slices.ContainsFunc(ends, func(end string) bool { return strings.HasSuffix(path, end) })
	}
}

// counter is a request for the tokens of a prompt, which passed the checks that its protocol makes of one to be answered.
type counter struct {
	turn
	body func(tokens int) object
}

func newCounter(t turn, body func(int) object) *counter {
	t.streamed, t.counts = false, true
	return &counter{t, body}
}

func (x *counter) asked() *turn { return &x.turn }

func (x *counter) stream(*stream, *reply) {}

func (x *counter) whole(r *reply) any { return x.body(r.usage.input) }

// fault is an HTTP error. A protocol fills in the fields that are empty from the status.
type fault struct {
	status     int
	kind       string
	code       string
	param      string
	message    string
	retryAfter int      // seconds
	retryDate  bool     // which the header says as a date
	details    []object // of Google
	page       bool     // HTML in place of the protocol's object
}

// Chat returns a provider of Chat Completions: POST …/chat/completions, GET …/models.
func Chat(o Options) *Provider {
	c := newCore(o)
	return &Provider{c, chat{openai{c}}, endsIn("/chat/completions"), "x-request-id"}
}

// Responses returns a provider of the Responses API: POST …/responses, POST …/responses/input_tokens, GET …/models.
func Responses(o Options) *Provider {
	c := newCore(o)
	return &Provider{c, responses{openai{c}}, endsIn("/responses", "/responses/input_tokens"), "x-request-id"}
}

// Messages returns a provider of the Anthropic Messages API: POST …/v1/messages, POST …/v1/messages/count_tokens, GET
// …/v1/models with paging.
func Messages(o Options) *Provider {
	c := newCore(o)
	return &Provider{c, messages{c}, endsIn("/v1/messages", "/v1/messages/count_tokens"), "request-id"}
}

// admitKey compares a key with the one that is asked for.
func (c *core) admitKey(key string) *fault {
	if c.Key != "" && subtle.ConstantTimeCompare([]byte(key), []byte(c.Key)) != 1 {
		return &fault{status: http.StatusUnauthorized}
	}
	return nil
}

func newCore(o Options) *core {
	if o.Now == nil {
		o.Now = time.Now
	}
	o.Models = slices.Clone(o.Models)
	return &core{Options: o, sealer: newSealer(), prefixes: newPrefixes()}
}

func (c *core) serves(model string) bool {
	return len(c.Models) == 0 || slices.Contains(c.Models, model)
}

func (c *core) listed() []string {
	if len(c.Models) == 0 {
		return []string{"simulated"}
	}
	return c.Models
}

// ServeHTTP answers one request. A reply that is to be cut ends the connection with http.ErrAbortHandler, as every
// handler may that an http.Server runs.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	requestID := newID("req_")
	w.Header().Set(p.requestID, requestID)
	refuse := func(f *fault) {
		body := p.wire.refusal(f, r, w.Header())
		switch after := time.Duration(f.retryAfter) * time.Second; {
		case f.retryDate:
			w.Header().Set("Retry-After", p.Now().Add(after).UTC().Format(http.TimeFormat))
		case after > 0:
			w.Header().Set("Retry-After", strconv.Itoa(f.retryAfter))
		}
		if f.page {
			writePage(w, f.status)
			return
		}
		writeJSON(w, f.status, body)
	}

	allowed := http.MethodPost
	switch {
	case strings.HasSuffix(r.URL.Path, "/models"):
		allowed = http.MethodGet
	case !p.generates(r.URL.Path):
		refuse(&fault{status: http.StatusNotFound, message: "Invalid URL (" + r.Method + " " + r.URL.Path + ")"})
		return
	}
	if r.Method != allowed {
		w.Header().Set("Allow", allowed)
		refuse(&fault{status: http.StatusMethodNotAllowed, message: "Not allowed to " + r.Method + " on " + r.URL.Path + "."})
		return
	}
	if f := p.wire.admit(r); f != nil {
		refuse(f)
		return
	}
	if allowed == http.MethodGet {
		list, f := p.wire.models(r)
		if f != nil {
			refuse(f)
			return
		}
		writeJSON(w, http.StatusOK, list)
		return
	}

	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTime))
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		refuse(&fault{status: http.StatusRequestEntityTooLarge})
		return
	} else if err != nil {
		return // nobody is left to answer
	}
	_ = control.SetReadDeadline(time.Time{})

	x, f := p.wire.read(body, r)
	if f != nil {
		refuse(f)
		return
	}
	t := x.asked()
	answer, f := t.plan(p.Now())
	if f != nil {
		refuse(f)
		return
	}
	if t.counts {
		answer = &reply{usage: usage{input: t.size()}}
	} else {
		answer.usage.input, answer.usage.cached = p.prefixes.count(t.model, t.segments)
	}

	s := &stream{w: w, control: control, ctx: r.Context(), pace: p.Pace}
	if answer.slow {
		s.pace *= 10
		if !s.sleep(100 * p.Pace) {
			return
		}
	}
	switch {
	case t.streamed:
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8") // unless the protocol sets another
		w.Header().Set("Cache-Control", "no-cache")
		x.stream(s, answer)
	case answer.ending == failed:
		refuse(answer.fault(http.StatusInternalServerError))
	default:
		text, _ := json.Marshal(x.whole(answer))
		w.Header().Set("Content-Type", "application/json")
		if answer.ending == cut {
			text = text[:len(text)/2]
		}
		_, _ = w.Write(text)
	}
	if answer.ending == cut && !answer.clean {
		_ = control.Flush()
		panic(http.ErrAbortHandler)
	}
}

// writePage writes what stands before providers: a page for people, as proxies and wrong addresses answer.
func writePage(w http.ResponseWriter, status int) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	title := strconv.Itoa(status) + " " + http.StatusText(status)
	_, _ = io.WriteString(w, "<!DOCTYPE html>\n<html>\n<head><title>"+title+"</title></head>\n<body>\n<center><h1>"+title+
		"</h1></center>\n<hr><center>simulated</center>\n</body>\n</html>\n")
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	text, _ := json.Marshal(body)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(text)
}
