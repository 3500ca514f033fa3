package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"mime"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/gateway/metrics"
	"github.com/prism-shadow/mmsp-go/ingress"
	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
	"github.com/prism-shadow/mmsp-go/internal/upstream"
)

// guard answers a request that may stream: a panic ends this request and no other.
func (c *call) guard(answer func()) {
	defer func() {
		if p := recover(); p != nil {
			c.log.Error("panic", "id", c.id, "panic", clip(c.withoutSecrets(fmt.Sprint(p))), "stack", string(debug.Stack()))
			if c.status == 0 {
				c.end(errInternal)
				c.outcome = "failure"
			}
			c.counted.Fail(errInternal.Error())
		}
		if c.out != nil {
			c.out.close()
		}
		if c.counted != nil {
			c.streams.Add(-1)
		}
		if c.outcome == outcomeDisconnect {
			// A caller that closed only its half must not take what it has for a whole answer.
			panic(http.ErrAbortHandler)
		}
	}()
	answer()
}

// stream answers POST /v1/stream.
func (c *call) stream() {
	if messages, config, ok := c.accept(); ok {
		c.forward(messages, config)
	}
}

// acceptBody reads the request's body. A request that has none to be read is answered, and not ok.
func (c *call) acceptBody() (body []byte, ok bool) {
	if c.draining.Load() {
		c.w.Header().Set("Connection", "close")
		c.fail(ingress.ErrShutdown)
		return nil, false
	}
	body, err := c.body()
	// The reader of this server's own requests checks them as far as jsonscan.MaxDepth.
	if depth := c.state.config.Limits.MaxDepth; err == nil && (c.protocol != nil || depth < jsonscan.MaxDepth) {
		if err = jsonscan.CheckDepth(body, depth); err != nil {
			err = &mmsp.InvalidRequestError{Message: "the body is not acceptable JSON: " + err.Error()}
		}
	}
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		c.w.Header().Set("Connection", "close")
		c.fail(err)
		return nil, false
	case err != nil:
		c.refuse(metrics.InvalidRequest, err)
		return nil, false
	}
	return body, true
}

// find finds the row of a model. Where there is none, the request is answered, and not ok.
func (c *call) find(model string) (ok bool) {
	row, ok := c.state.row(model)
	if !ok {
		c.refuse(metrics.UnknownModel, unknownModel(model, listOf(c.protocol)))
		return false
	}
	c.model, c.row = model, row
	return true
}

// accept reads the request and finds its row. A request that cannot be is answered, and not ok.
func (c *call) accept() (messages []mmsp.Message, config *mmsp.Config, ok bool) {
	body, ok := c.acceptBody()
	if !ok {
		return nil, nil, false
	}
	request, err := mmsp.ParseStreamRequest(body)
	if err != nil {
		c.refuse(metrics.InvalidRequest, err)
		return nil, nil, false
	}
	if !c.find(request.Model) {
		return nil, nil, false
	}
	messages, err = mmsp.ParseMessages(request.Messages, c.row.relay)
	if err == nil && !c.row.relay {
		messages = mmsp.NormalizeLegacy(messages)
		err = mmsp.Validate(messages)
	}
	config = new(mmsp.Config)
	if err == nil {
		*config, err = mmsp.ParseConfig(request.Config)
	}
	if err != nil {
		c.refuse(metrics.InvalidRequest, err)
		return nil, nil, false
	}
	return messages, config, true
}

// forward streams the answer. It holds little, for the stream's whole life.
func (c *call) forward(messages []mmsp.Message, config *mmsp.Config) {
	c.begin()
	c.out = newEventWriter(c.w, c.state.config.KeepAlive, publicEncoder{c})
	c.copy(c.row.client.StreamingResponse(upstream.WithBegun(c.r.Context(), c.out.begin), messages, config))
}

// copy writes a stream's events as they come, and counts how it ends.
func (c *call) copy(stream iter.Seq2[mmsp.Event, error]) {
	ctx := c.r.Context()
	for event, err := range stream {
		if c.outcome != "" {
			break // nothing belongs to a stream after its end
		}
		switch {
		case err != nil && errors.Is(context.Cause(ctx), ingress.ErrShutdown):
			c.end(ingress.ErrShutdown)
			c.outcome = "cancelled"
			c.counted.Fail(ingress.ErrShutdown.Error())
		case err != nil && ctx.Err() != nil:
			c.err = err
			c.disconnected()
		case err != nil:
			c.end(err)
			c.outcome = "failure"
			c.counted.Fail(c.reason(err))
		case event.Type == mmsp.EventStop:
			c.counted.FirstEvent()
			if c.out.last(&event) != nil {
				c.disconnected()
				return
			}
			c.status = c.out.status()
			c.succeeded(event.Usage)
		default:
			c.counted.FirstEvent()
			if c.out.event(&event) != nil {
				// The caller is gone; leaving the loop ends the upstream request.
				c.disconnected()
				return
			}
		}
	}
	if c.outcome == "" {
		err := &mmsp.IncompleteStreamError{Client: c.row.client.Provider().Class(), Reason: "it has no stop"}
		c.end(err)
		c.outcome = "failure"
		c.counted.Fail(err.Error())
	}
}

// reason is what the metrics keep of an error. Every caller reads them: where there are several, an error's own words, which
// may quote a prompt or an answer, are not theirs to see.
func (c *call) reason(err error) string {
	if len(c.state.keys) < 2 {
		return c.redact(err.Error())
	}
	p := ingress.Explain(err)
	_, code := p.OpenAI()
	return c.redact(fmt.Sprintf("%s (status %d)", code, p.Status))
}

// succeeded counts an answer.
func (c *call) succeeded(usage *mmsp.Usage) {
	var tokens metrics.Tokens
	if usage != nil { // a relayed stop may lack it
		tokens = metrics.Tokens{Prompt: usage.PromptTokens, Cached: usage.CachedTokens, Thoughts: usage.ThoughtsTokens, Response: usage.ResponseTokens}
	}
	c.outcome, c.usage = "success", usage
	c.counted.Succeed(tokens)
}

// outcomeDisconnect: the caller went away first.
const outcomeDisconnect = "disconnect"

// disconnected notes that the caller went away first.
func (c *call) disconnected() {
	c.outcome, c.status = outcomeDisconnect, c.out.status()
	c.counted.Disconnect()
}

// end answers with the error that ends the stream: as an HTTP status while nothing is out, else as the last event.
func (c *call) end(err error) {
	c.err = err
	var (
		empty     *mmsp.EmptyResponseError
		arguments *mmsp.ToolCallArgumentParseError
		protocol  *mmsp.StreamProtocolError
		upstream  *mmsp.UpstreamError
	)
	// The provider did answer: so it is said behind a 200, also when another server said it so.
	inBand := c.protocol == nil && (errors.As(err, &empty) || errors.As(err, &arguments) || errors.As(err, &protocol) ||
		errors.As(err, &upstream) && upstream.Wire != nil && upstream.Status == 0)
	if c.out == nil || !inBand && c.out.withhold() {
		c.fail(err)
		return
	}
	c.out.failure(err)
	c.status = c.out.status()
}

// body reads the request's body within its limits.
func (c *call) body() ([]byte, error) {
	unsupported := func(message string) error {
		if c.protocol != nil {
			return &ingress.Problem{Kind: ingress.KindMediaType, Status: http.StatusUnsupportedMediaType, Message: message}
		}
		return &mmsp.InvalidRequestError{Message: message}
	}
	media, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil || media != "application/json" && !strings.HasSuffix(media, "+json") {
		return nil, unsupported("the body must be JSON with the content type application/json")
	}
	if encoding := c.r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return nil, unsupported(fmt.Sprintf("the body must not be encoded (%.20q)", encoding))
	}
	if c.r.Header.Get("X-MMSP-Session-Key") != "" {
		return nil, &mmsp.InvalidRequestError{Param: "X-MMSP-Session-Key", Message: "this server keeps no conversations; send the whole one"}
	}
	limit := c.state.config.Limits.MaxBodyBytes
	if c.r.ContentLength > limit {
		return nil, &http.MaxBytesError{Limit: limit}
	}
	// A length that the caller only claims must not reserve much.
	body := make([]byte, 0, min(max(c.r.ContentLength, 0), 64<<10)+bytesOver)
	reader := http.MaxBytesReader(c.w, c.r.Body, limit)
	for {
		n, err := reader.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
		if err == io.EOF {
			_ = reader.Close() // or the first write would look for the rest of it
			break
		}
		if err != nil {
			var tooLarge *http.MaxBytesError
			if errors.As(err, &tooLarge) {
				return nil, err
			}
			return nil, &mmsp.InvalidRequestError{Message: "the body could not be read to its end"}
		}
		if len(body) == cap(body) {
			body = slices.Grow(body, len(body))
		}
	}
	_ = http.NewResponseController(c.w).SetReadDeadline(time.Time{}) // from here on only the end of the caller is read
	return body, nil
}

// bytesOver lets the read that finds the end of the body succeed without growing the buffer.
const bytesOver = 512

// encoder writes a public stream in the form that the caller reads: this server's own, or that of an ingress protocol.
type encoder interface {
	ContentType() string
	Heartbeat(dst []byte) []byte
	Event(dst []byte, e *mmsp.Event) []byte
	Stop(dst []byte, e *mmsp.Event) []byte
	Fail(dst []byte, err error) []byte
}

// publicEncoder writes the public stream as it is.
type publicEncoder struct{ *call }

func (publicEncoder) ContentType() string { return "text/event-stream; charset=utf-8" }

func (publicEncoder) Heartbeat(dst []byte) []byte { return append(dst, ": keep-alive\n\n"...) }

func (publicEncoder) Event(dst []byte, e *mmsp.Event) []byte {
	return append(e.AppendJSON(append(dst, "data: "...)), "\n\n"...)
}

func (p publicEncoder) Stop(dst []byte, e *mmsp.Event) []byte {
	return append(p.Event(dst, e), "data: [DONE]\n\n"...)
}

func (p publicEncoder) Fail(dst []byte, err error) []byte {
	dst = append(append(dst, "data: "...), p.errorJSON(err)...)
	return append(dst, "\n\ndata: [DONE]\n\n"...)
}

// eventWriter writes an answer. Events that are ready together go out together, and nothing waits when nothing more is
// ready. While the model is silent a heartbeat keeps the connection alive.
type eventWriter struct {
	encoder   encoder
	w         http.ResponseWriter
	control   *http.ResponseController
	keepAlive time.Duration

	mu       sync.Mutex
	timer    *time.Timer // nil: no heartbeat
	wrote    time.Time   // when anything was last written
	started  bool        // the header is out
	deadline time.Time   // of writes
	closed   bool
	latest   mmsp.Event // for the encoder
	buf      []byte
	err      error
}

const (
	// writeBytes is how much of a burst is collected before it is written.
	writeBytes = 16 << 10
	// stuckTime is how long a caller may leave a write waiting.
	stuckTime = 5 * time.Minute
	// bodyTime is how long the body of a request may take.
	bodyTime = 5 * time.Minute
)

func newEventWriter(w http.ResponseWriter, keepAlive time.Duration, encoder encoder) *eventWriter {
	out := &eventWriter{encoder: encoder, w: w, control: http.NewResponseController(w), keepAlive: keepAlive, wrote: time.Now()}
	if keepAlive > 0 {
		out.mu.Lock() // the timer may fire before its variable is set
		defer out.mu.Unlock()
		out.timer = time.AfterFunc(keepAlive, out.tick)
	}
	return out
}

// tick runs when keepAlive may have passed without a write.
func (o *eventWriter) tick() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || o.err != nil {
		return
	}
	wait := o.keepAlive - time.Since(o.wrote)
	if wait <= 0 {
		o.buf = o.encoder.Heartbeat(o.buf)
		o.flush()
		wait = o.keepAlive
	}
	o.timer.Reset(wait)
}

// flush writes what is collected. The caller holds the lock.
func (o *eventWriter) flush() {
	if o.started {
		o.write()
		return
	}
	o.started = true
	h := o.w.Header()
	h.Set("Content-Type", o.encoder.ContentType())
	if h.Get("Content-Length") == "" { // a stream
		h.Set("Cache-Control", "no-cache")
		h.Set("X-Accel-Buffering", "no")
	}
	o.w.WriteHeader(http.StatusOK)
	// The first write takes 4 kB of stack for the header. A slow stream would keep what it once needed, so that the
	// write has a stack of its own.
	done := make(chan struct{})
	go func() {
		defer close(done)
		o.write()
	}()
	<-done
}

func (o *eventWriter) write() {
	o.wrote = time.Now()
	if o.deadline.Sub(o.wrote) < stuckTime-10*time.Second { // moving it costs more than a short event
		o.deadline = o.wrote.Add(stuckTime)
		_ = o.control.SetWriteDeadline(o.deadline)
	}
	_, err := o.w.Write(o.buf)
	if err == nil {
		if err = o.control.Flush(); errors.Is(err, http.ErrNotSupported) {
			err = nil
		}
	}
	if o.err == nil {
		o.err = err
	}
	o.buf = o.buf[:0]
}

// begin sends the header, and what of the answer is known before its first event: the provider has begun.
func (o *eventWriter) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.started && !o.closed {
		o.buf = o.encoder.Heartbeat(o.buf)
		o.flush()
	}
}

// event takes the next event. Its error says that the caller is gone.
func (o *eventWriter) event(e *mmsp.Event) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.latest = *e // or every event would be made on the heap
	o.buf = o.encoder.Event(o.buf, &o.latest)
	// What says nothing to the caller does not begin the answer, which may still become an HTTP error.
	if len(o.buf) > 0 && (!e.More || len(o.buf) >= writeBytes) {
		o.flush()
	}
	return o.err
}

// last takes the stop event and ends the stream. Its error says that the caller was gone before.
func (o *eventWriter) last(e *mmsp.Event) error {
	return o.end(func() {
		o.latest = *e
		o.buf = o.encoder.Stop(o.buf, &o.latest)
	})
}

// failure ends the stream with an error.
func (o *eventWriter) failure(err error) {
	_ = o.end(func() { o.buf = o.encoder.Fail(o.buf, err) })
}

// end writes the last words, once.
func (o *eventWriter) end(words func()) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.closed = true
		words()
		o.flush()
	}
	return o.err
}

// sync runs what must not meet a heartbeat: it reads or changes the header, or what the encoder knows.
func (o *eventWriter) sync(do func()) {
	if o != nil {
		o.mu.Lock()
		defer o.mu.Unlock()
	}
	do()
}

// withhold reports whether no event has come yet; the answer is then the caller's to give, and no comment follows.
func (o *eventWriter) withhold() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.started || len(o.buf) > 0 {
		return false
	}
	o.closed = true
	return true
}

func (o *eventWriter) status() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.started {
		return http.StatusOK
	}
	return 0
}

// close stops the heartbeat.
func (o *eventWriter) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	if o.timer != nil {
		o.timer.Stop()
	}
}
