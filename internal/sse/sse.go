// Package sse reads server-sent events from the body of a provider's answer. It takes every framing that is seen in
// practice, legal or not, and hands out slices of its own buffer, so that an event costs no allocation. It knows
// nothing of what the events say: "[DONE]" is data like any other.
package sse

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"
)

const (
	defaultLimit = 64 << 20
	firstBuffer  = 4 << 10 // most events fit, and a slow stream holds no more than this
)

// TooLongError says that an event, or the body given to [Reader.Rest], is longer than its limit.
type TooLongError struct {
	Limit int64 // bytes
}

func (e *TooLongError) Error() string {
	return fmt.Sprintf("event stream: longer than %d bytes", e.Limit)
}

// Event is one event. Its slices are valid until the next call of Next.
type Event struct {
	Name         []byte // the event field, nil if absent
	Data         []byte // the data lines joined with '\n'
	Unterminated bool   // the body ended before the blank line that dispatches an event: the data may be cut
}

// Reader reads the events of one body. It is not safe for concurrent use.
type Reader struct {
	src   io.Reader
	limit int
	err   error // what ended the body: io.EOF, a read error or a limit
	told  bool  // the source knows that an event was handed out
	given bool  // one was

	buf    []byte
	pos    int  // the next line
	end    int  // the end of what was read
	lf, cr int  // no '\n' lies in buf[pos:lf], no '\r' in buf[pos:cr]: no byte is searched twice for the same thing
	begun  bool // the byte order mark is behind
	skipLF bool // the last line ended with '\r': a '\n' that follows belongs to it

	// The event that is being put together. Positions rather than slices, because a read may move the buffer.
	start            int // its first line
	nameFrom, nameTo int
	dataFrom, dataTo int
	named, hasData   bool
	bare             bool   // its lines are data without the name of the field
	lateName         []byte // a name that came after data, where joining the data may overwrite it
	unterminated     bool
	ready            bool // complete, waiting for Next
}

// NewReader reads from r. An event of more than maxLineBytes is an error; 0 or less means 64 MiB.
func NewReader(r io.Reader, maxLineBytes int) *Reader {
	if maxLineBytes <= 0 {
		maxLineBytes = defaultLimit
	}
	return &Reader{src: r, limit: min(maxLineBytes, math.MaxInt-1)}
}

// Next returns the next event that has data, io.EOF after the last one. A source with a method Begun is told when more is
// waited for after the first event, once. A read error is returned as it is, after the
// events that were complete; an incomplete one is then dropped.
func (r *Reader) Next() (Event, error) {
	r.begin()
	for !r.scan() {
		if r.err != nil {
			return Event{}, r.err
		}
		if r.given && !r.told {
			r.told = true
			if source, ok := r.src.(interface{ Begun() }); ok {
				source.Begun()
			}
		}
		r.fill()
	}
	r.given = true
	ev := Event{Name: r.lateName, Data: r.buf[r.dataFrom:r.dataTo:r.dataTo], Unterminated: r.unterminated}
	if r.named {
		ev.Name = r.buf[r.nameFrom:r.nameTo:r.nameTo]
	}
	r.forget()
	r.ready = false
	return ev, nil
}

// More tells whether the next call of Next returns an event without reading. It leaves the last event valid, and what
// it scans Next does not scan again.
func (r *Reader) More() bool { return r.scan() }

// First returns the first byte of the body that is neither white space nor part of a byte order mark, without
// consuming it; io.EOF if there is none. It is for telling a body that is no event stream ('{', '[', '<') before the
// first call of Next.
func (r *Reader) First() (byte, error) {
	r.begin()
	for seen := 0; ; {
		for _, c := range r.buf[r.pos+seen : r.end] {
			if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
				return c, nil
			}
			seen++
		}
		if r.err != nil {
			return 0, r.err
		}
		r.fill()
	}
}

// Rest returns the whole body after the byte order mark, what First has buffered included: an answer that is one
// document and no stream. It is for use instead of Next. A body of more than limit bytes is a TooLongError.
func (r *Reader) Rest(limit int64) ([]byte, error) {
	r.begin()
	rest := slices.Clone(r.buf[r.pos:r.end])
	r.pos = r.end
	for r.err == nil && int64(len(rest)) <= limit {
		rest = slices.Grow(rest, 512)
		n, err := r.src.Read(rest[len(rest):cap(rest)])
		rest, r.err = rest[:len(rest)+n], err
	}
	if int64(len(rest)) > limit {
		r.err = &TooLongError{Limit: limit}
	}
	if r.err != io.EOF {
		return nil, r.err
	}
	return rest, nil
}

// Body returns what Rest returns as a reader, for a body that is a stream of another kind.
func (r *Reader) Body() io.Reader {
	r.begin()
	head := r.buf[r.pos:r.end]
	r.pos = r.end
	return io.MultiReader(bytes.NewReader(head), r.src)
}

// begin drops the byte order mark.
func (r *Reader) begin() {
	bom := []byte("\xef\xbb\xbf")
	for !r.begun {
		switch head := r.buf[r.pos:r.end]; {
		case r.err == nil && bytes.HasPrefix(bom, head):
			r.fill()
		case bytes.HasPrefix(head, bom):
			r.pos += len(bom)
			r.begun = true
		default:
			r.begun = true
		}
	}
}

// scan works through the lines in the buffer until an event is complete, and tells whether one is. It never reads and
// never moves the bytes of an event that was handed out.
func (r *Reader) scan() bool {
	for !r.ready && r.pos < r.end {
		if r.skipLF {
			r.skipLF = false
			if r.buf[r.pos] == '\n' {
				r.pos++
				continue
			}
		}
		r.lf, r.cr = r.find('\n', r.lf), r.find('\r', r.cr)
		from, eol := r.pos, min(r.lf, r.cr)
		if eol == r.end {
			break
		}
		if r.ready = r.bare && isField(r.buf[from:eol]); r.ready {
			break
		}
		r.pos = eol + 1
		r.skipLF = r.buf[eol] == '\r'
		switch {
		case from < eol:
			r.field(from, eol)
		case r.says():
			r.ready = true
		default:
			r.forget()
		}
	}
	if r.ready = r.ready || r.err == io.EOF && r.bare && isField(r.buf[r.pos:r.end]); r.ready {
		return true
	}
	if r.err == io.EOF {
		r.field(r.pos, r.end)
		r.pos = r.end
		r.ready, r.unterminated = r.says(), true
	}
	return r.ready
}

// says reports whether the event has data. Blank data is a heartbeat and no event.
func (r *Reader) says() bool {
	return r.hasData && len(bytes.TrimSpace(r.buf[r.dataFrom:r.dataTo])) > 0
}

// find returns the place of the first c in the unread part of the buffer, or its end; c is known not to be before from.
func (r *Reader) find(c byte, from int) int {
	from = max(from, r.pos)
	if from == r.end {
		return from
	}
	if i := bytes.IndexByte(r.buf[from:r.end], c); i >= 0 {
		return from + i
	}
	return r.end
}

// field takes the line buf[from:to] into the event: data and event fields, and JSON without a field, as Google's errors in
// mid-stream come; everything else, comments included, is skipped.
func (r *Reader) field(from, to int) {
	line := r.buf[from:to]
	var width int // of the field's name
	switch {
	case from == to:
		return
	case r.bare, !r.hasData && !r.named && isJSON(line):
		r.bare = true
	case bytes.HasPrefix(line, []byte("data")):
		width = len("data")
	case bytes.HasPrefix(line, []byte("event")):
		width = len("event")
	default:
		return
	}
	value := from + width
	if value < to && !r.bare {
		if r.buf[value] != ':' {
			return
		}
		value++
		if value < to && r.buf[value] == ' ' {
			value++
		}
	}
	if !r.hasData && !r.named {
		r.start = from
	}
	switch name := line[0] == 'e' && !r.bare; {
	case name && r.hasData:
		r.named, r.lateName = false, append([]byte{}, r.buf[value:to]...)
	case name:
		r.named, r.nameFrom, r.nameTo = true, value, to
	case !r.hasData:
		r.hasData, r.dataFrom, r.dataTo = true, value, to
	default:
		// A further data line moves up to the ones before it. There is room: its own field name lies between, or the end of a line.
		r.buf[r.dataTo] = '\n'
		r.dataTo += 1 + copy(r.buf[r.dataTo+1:], r.buf[value:to])
	}
}

// isJSON reports whether a line without a field looks like the beginning of JSON, and not like that of a log.
func isJSON(line []byte) bool {
	rest := bytes.TrimLeft(line[1:], " \t")
	return line[0] == '{' && (len(rest) == 0 || rest[0] == '"') || line[0] == '[' && (len(rest) == 0 || rest[0] == '{')
}

// isField reports whether a line is a field or a comment, which end JSON without one.
func isField(line []byte) bool {
	return bytes.HasPrefix(line, []byte("data")) || bytes.HasPrefix(line, []byte("event")) || bytes.HasPrefix(line, []byte(":"))
}

// forget drops what was gathered of an event.
func (r *Reader) forget() {
	r.start, r.named, r.hasData, r.bare, r.lateName = r.pos, false, false, false, nil
}

// fill reads once, into a buffer that begins with the event that is being put together. The buffer doubles when that
// event fills it.
func (r *Reader) fill() {
	if !r.hasData && !r.named {
		r.start = r.pos
	}
	if shift := r.start; shift > 0 {
		copy(r.buf, r.buf[shift:r.end])
		for _, at := range []*int{&r.start, &r.pos, &r.end, &r.nameFrom, &r.nameTo, &r.dataFrom, &r.dataTo} {
			*at -= shift
		}
		r.lf, r.cr = max(r.lf-shift, 0), max(r.cr-shift, 0)
	}
	if r.end > r.limit {
		r.err = &TooLongError{Limit: int64(r.limit)}
		return
	}
	if r.end == len(r.buf) {
		// One byte more than the limit: an event of the full length still finds its blank line.
		grown := make([]byte, min(max(2*len(r.buf), firstBuffer), r.limit+1))
		copy(grown, r.buf)
		r.buf = grown
	}
	for range 100 {
		n, err := r.src.Read(r.buf[r.end:])
		r.end += n
		r.err = err
		if n > 0 || err != nil {
			return
		}
	}
	r.err = io.ErrNoProgress
}
