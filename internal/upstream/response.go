package upstream

import (
	"context"
	"io"
	"math"
	"net/http"
	"sync/atomic"
	"time"
)

const (
	finishBytes = 16 << 10
	finishTime  = 50 * time.Millisecond
)

// Response is an answer whose body has yet to be read. Body is decompressed; its Read is for one goroutine, its Close
// and that of Response may be called from any. A Read ends with io.EOF, *LimitError, *IdleTimeoutError, ErrLingered, the
// cause of the request's context (wrapped), or what the connection says.
type Response struct {
	Status int
	Header http.Header
	Body   io.ReadCloser

	request *http.Request
	body    body
}

// newResponse takes over an answer.
func (c *Client) newResponse(req *http.Request, answer *http.Response) *Response {
	ctx := req.Context()
	r := &Response{Status: answer.StatusCode, Header: answer.Header, request: req}
	r.body = body{
		raw:   raw{ctx: ctx, body: answer.Body, idle: c.idle},
		limit: c.maxBytes,
	}
	b := &r.body
	b.raw.timer = time.AfterFunc(c.idle, b.raw.expire)
	b.raw.timer.Stop()
	b.src = &b.raw
	if codings := answer.Header["Content-Encoding"]; codings != nil {
		b.src = decode(&b.raw, codings, b.limit)
		delete(r.Header, "Content-Encoding")
		delete(r.Header, "Content-Length")
	}
	r.Body = b
	return r
}

// Linger bounds the time for the rest of the body: once d has passed, reads fail with ErrLingered. It is for the
// goroutine that reads.
func (r *Response) Linger(d time.Duration) {
	end := time.Now().Add(d)
	if raw := &r.body.raw; raw.lingerEnd.IsZero() || end.Before(raw.lingerEnd) {
		raw.lingerEnd = end
	}
}

// Finish closes an answer of which nothing more is wanted. It gives the few bytes to its end a moment to arrive (16 KiB,
// 50 ms), so that the connection can be used again. It is for the goroutine that reads.
func (r *Response) Finish() {
	if raw := &r.body.raw; raw.err == nil {
		r.Linger(finishTime)
		io.Copy(io.Discard, io.LimitReader(raw, finishBytes))
	}
	r.Close()
}

// Close ends the answer at once; unless the body was read to its end, the connection goes with it.
func (r *Response) Close() error { return r.body.Close() }

// body is the decompressed body, bounded in size.
type body struct {
	src   io.Reader // raw itself, or what decodes it
	raw   raw
	limit int64
	total int64
	err   error // sticky
}

func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.src.Read(p)
	b.total += int64(n)
	if over := b.total - b.limit; over > 0 {
		n -= int(over)
		err = &LimitError{b.limit}
	}
	if err != nil {
		b.err = err
		if err != io.EOF {
			b.Close()
		}
	}
	return n, err
}

func (b *body) Close() error { return b.raw.close() }

// raw is the body as the connection delivers it, bounded in time. One timer serves all of its reads; when it fires it
// closes the body, which ends the read.
type raw struct {
	ctx       context.Context
	body      io.ReadCloser
	idle      time.Duration
	lingerEnd time.Time
	timer     *time.Timer
	closed    atomic.Bool
	err       error // sticky
}

func (r *raw) Read(p []byte) (int, error) {
	if r.err != nil {
		return 0, r.err
	}
	if r.closed.Load() {
		r.err = http.ErrBodyReadAfterClose
		return 0, r.err
	}
	wait, lingering := r.idle, false
	if !r.lingerEnd.IsZero() {
		if left := time.Until(r.lingerEnd); left < wait {
			wait, lingering = left, true
		}
	}
	if wait <= 0 {
		r.err = ErrLingered
		r.close()
		return 0, r.err
	}
	r.timer.Reset(wait)
	n, err := r.body.Read(p)
	expired := !r.timer.Stop()
	switch {
	case err == io.EOF:
	case err == nil && !expired:
		return n, nil
	case r.ctx.Err() != nil:
		err = canceled(r.ctx)
	case r.closed.Load():
		err = http.ErrBodyReadAfterClose
	case expired && lingering:
		err = ErrLingered
	case expired:
		err = &IdleTimeoutError{r.idle}
	}
	r.err = err
	return n, err
}

// expire runs when the timer fires.
func (r *raw) expire() { r.body.Close() }

func (r *raw) close() error {
	if r.closed.Swap(true) {
		return nil
	}
	r.timer.Stop()
	return r.body.Close()
}

// encodedLimit bounds the bytes of a coding that hold at most decoded bytes, so that a body which never yields anything
// ends too.
func encodedLimit(decoded int64) int64 {
	if decoded > math.MaxInt64/4 {
		return math.MaxInt64
	}
	return 2*decoded + 64<<10
}
