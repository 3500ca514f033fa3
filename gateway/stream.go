package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/gateway/metrics"
	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// stream answers POST /v1/stream.
func (c *call) stream() {
	refuse := func(kind metrics.RefusalKind, err error) {
		c.metrics.Refuse(kind)
		c.fail(err)
	}
	body, err := c.body()
	if err != nil {
		var tooLarge *http.MaxBytesError
		if errors.As(err, &tooLarge) {
			c.err = err
			c.w.Header().Set("Connection", "close")
			c.json(http.StatusRequestEntityTooLarge, mmsp.AppendErrorJSON(nil, &mmsp.InvalidRequestError{Message: fmt.Sprintf("the body is larger than %d bytes", tooLarge.Limit)}))
			return
		}
		refuse(metrics.InvalidRequest, err)
		return
	}
	request, err := mmsp.ParseStreamRequest(body)
	if err != nil {
		refuse(metrics.InvalidRequest, err)
		return
	}
	row, ok := c.state.row(request.Model)
	if !ok {
		refuse(metrics.UnknownModel, &mmsp.NotFoundError{Message: fmt.Sprintf("the model %.200q does not exist; GET /v1/models lists those that do", request.Model)})
		return
	}
	c.model = request.Model
	messages, err := mmsp.ParseMessages(request.Messages, row.relay)
	if err == nil && !row.relay {
		messages = mmsp.NormalizeLegacy(messages)
		err = mmsp.Validate(messages)
	}
	var config mmsp.Config
	if err == nil {
		config, err = mmsp.ParseConfig(request.Config)
	}
	if err != nil {
		refuse(metrics.InvalidRequest, err)
		return
	}

	counted := c.metrics.Begin(row.counted)
	c.streams.Add(1)
	defer c.streams.Add(-1)
	out := newEventWriter(c.w, c.state.config.KeepAlive)
	defer out.close()
	ctx := c.r.Context()
	for event, err := range row.client.StreamingResponse(ctx, messages, &config) {
		switch {
		case err != nil && errors.Is(context.Cause(ctx), errShutdown):
			c.end(out, errShutdown)
			c.outcome = "cancelled"
			counted.Fail(errShutdown.Error())
		case err != nil && ctx.Err() != nil:
			c.err, c.outcome, c.status = err, "disconnect", out.status()
			counted.Disconnect()
		case err != nil:
			c.end(out, err)
			c.outcome = "failure"
			counted.Fail(err.Error())
		case event.Type == mmsp.EventStop:
			counted.FirstEvent()
			c.usage, c.outcome = event.Usage, "success"
			out.last(&event)
			c.status = out.status()
			counted.Succeed(metrics.Tokens{Prompt: event.Usage.PromptTokens, Cached: event.Usage.CachedTokens, Thoughts: event.Usage.ThoughtsTokens, Response: event.Usage.ResponseTokens})
		default:
			counted.FirstEvent()
			if out.event(&event) != nil {
				// The caller is gone; leaving the loop ends the upstream request.
				c.outcome, c.status = "disconnect", out.status()
				counted.Disconnect()
				return
			}
		}
	}
}

// end answers with the error that ends the stream: as an HTTP status while nothing is out, else as the last event.
func (c *call) end(out *eventWriter, err error) {
	c.err = err
	var (
		empty     *mmsp.EmptyResponseError
		arguments *mmsp.ToolCallArgumentParseError
		protocol  *mmsp.StreamProtocolError
	)
	inBand := errors.As(err, &empty) || errors.As(err, &arguments) || errors.As(err, &protocol) // the provider did answer
	if !inBand && out.withhold() {
		c.fail(err)
		return
	}
	out.failure(err)
	c.status = out.status()
}

// body reads the request's body within its limits.
func (c *call) body() ([]byte, error) {
	media, _, err := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	if err != nil || media != "application/json" && !strings.HasSuffix(media, "+json") {
		return nil, &mmsp.InvalidRequestError{Message: "the body must be JSON with the content type application/json"}
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
			body = append(body, 0)[:len(body)]
		}
	}
	if depth := c.state.config.Limits.MaxDepth; depth < jsonscan.MaxDepth {
		if err := jsonscan.CheckDepth(body, depth); err != nil {
			return nil, &mmsp.InvalidRequestError{Message: "the body is not acceptable JSON: " + err.Error()}
		}
	}
	return body, nil
}

// bytesOver lets the read that finds the end of the body succeed without growing the buffer.
const bytesOver = 512

// eventWriter writes a public stream as server-sent events. Events that are ready together go out together, and nothing
// waits when nothing more is ready. While the model is silent a comment keeps the connection alive.
type eventWriter struct {
	w         http.ResponseWriter
	flusher   http.Flusher
	keepAlive time.Duration

	mu      sync.Mutex
	timer   *time.Timer
	quiet   bool // nothing was written since the timer last fired
	started bool // the header is out
	closed  bool
	buf     []byte
	err     error
}

const (
	// writeBytes is how much of a burst is collected before it is written.
	writeBytes = 16 << 10
	// stuckTime is how long a caller may leave a write waiting.
	stuckTime = 5 * time.Minute
)

func newEventWriter(w http.ResponseWriter, keepAlive time.Duration) *eventWriter {
	flusher, _ := w.(http.Flusher)
	out := &eventWriter{w: w, flusher: flusher, keepAlive: keepAlive, quiet: true}
	if keepAlive > 0 {
		out.timer = time.AfterFunc(keepAlive, out.tick)
	}
	return out
}

// tick runs every keepAlive. It also moves the deadline of writes along, which ends those that a caller never reads.
func (o *eventWriter) tick() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed || o.err != nil {
		return
	}
	_ = http.NewResponseController(o.w).SetWriteDeadline(time.Now().Add(stuckTime))
	if o.quiet {
		o.buf = append(o.buf, ": keep-alive\n\n"...)
		o.flush()
	}
	o.quiet = true
	o.timer.Reset(o.keepAlive)
}

func (o *eventWriter) start() {
	if o.started {
		return
	}
	o.started = true
	h := o.w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	h.Set("X-Accel-Buffering", "no")
	o.w.WriteHeader(http.StatusOK)
}

// flush writes what is collected. The caller holds the lock.
func (o *eventWriter) flush() {
	o.start()
	if _, err := o.w.Write(o.buf); err != nil && o.err == nil {
		o.err = err
	}
	o.buf = o.buf[:0]
	o.quiet = false
	if o.flusher != nil {
		o.flusher.Flush()
	}
}

// event takes the next event. Its error says that the caller is gone.
func (o *eventWriter) event(e *mmsp.Event) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.buf = append(o.buf, "data: "...)
	o.buf = e.AppendJSON(o.buf)
	o.buf = append(o.buf, "\n\n"...)
	if !e.More || len(o.buf) >= writeBytes {
		o.flush()
	}
	return o.err
}

// last takes the stop event and ends the stream.
func (o *eventWriter) last(e *mmsp.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.buf = append(o.buf, "data: "...)
	o.buf = e.AppendJSON(o.buf)
	o.buf = append(o.buf, "\n\ndata: [DONE]\n\n"...)
	o.flush()
	o.closed = true
}

// failure ends the stream with an error event.
func (o *eventWriter) failure(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.buf = append(o.buf, "data: "...)
	o.buf = mmsp.AppendErrorJSON(o.buf, err)
	o.buf = append(o.buf, "\n\ndata: [DONE]\n\n"...)
	o.flush()
	o.closed = true
}

// withhold reports whether nothing is out yet; the answer is then the caller's to give, and no comment follows.
func (o *eventWriter) withhold() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.started {
		o.closed = true
	}
	return !o.started
}

func (o *eventWriter) status() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.started {
		return http.StatusOK
	}
	return 0
}

// close stops the comments.
func (o *eventWriter) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closed = true
	if o.timer != nil {
		o.timer.Stop()
	}
}
