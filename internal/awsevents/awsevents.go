// Package awsevents reads the frames of an AWS event stream from the body of an answer. The AWS SDK decodes them and
// checks both checksums of each; this package bounds a frame before it is awaited, tells a cut body from a damaged
// frame, and knows whether another frame is ready. It knows nothing of what the frames say.
package awsevents

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
)

// ContentType is the media type of an answer that is an event stream.
const ContentType = "application/vnd.amazon.eventstream"

const (
	defaultLimit = 64 << 20
	firstBuffer  = 4 << 10 // most frames fit, and a slow stream holds no more than this

	preludeBytes = 12 // length of the frame, length of its headers, checksum of these two
	minimalFrame = preludeBytes + 4
)

// FrameError says that a frame is damaged. Nothing after it can be read.
type FrameError struct {
	Number int // counted from 1
	Reason string
}

func (e *FrameError) Error() string {
	return fmt.Sprintf("frame %d is damaged: %s", e.Number, e.Reason)
}

// Frame is one frame. Its payload is valid until the next call of Next.
type Frame struct {
	Headers eventstream.Headers
	Payload []byte
}

// Header returns the text of a header such as ":event-type", empty if there is none.
func (f *Frame) Header(name string) string {
	text, _ := f.Headers.Get(name).(eventstream.StringValue)
	return string(text)
}

// Reader reads the frames of one body. It is not safe for concurrent use.
type Reader struct {
	src   io.Reader
	limit int
	err   error // what ended the body

	buf      []byte
	pos, end int // what was read and not yet handed out
	frames   int
	told     bool // the source knows that a frame was handed out
	decoder  *eventstream.Decoder
	payload  []byte
}

// NewReader reads from r. A frame of more than maxFrameBytes is an error; 0 or less means 64 MiB.
func NewReader(r io.Reader, maxFrameBytes int) *Reader {
	if maxFrameBytes <= 0 {
		maxFrameBytes = defaultLimit
	}
	return &Reader{src: r, limit: maxFrameBytes, decoder: eventstream.NewDecoder()}
}

// Next returns the next frame, or io.EOF after the last one; a frame that the end of the body cuts is dropped. A source with
// a method Begun is told when more is waited for after the first frame, once. Further
// errors: *FrameError, and a read error as it is, each after the frames that were whole.
func (r *Reader) Next() (Frame, error) {
	for {
		length, err := r.ready()
		switch {
		case err != nil:
			return Frame{}, &FrameError{r.frames + 1, err.Error()}
		case length == 0 && r.err != nil:
			return Frame{}, r.err
		case length == 0:
			if r.frames > 0 && !r.told {
				r.told = true
				if source, ok := r.src.(interface{ Begun() }); ok {
					source.Begun()
				}
			}
			r.fill()
			continue
		}
		message, err := r.decoder.Decode(bytes.NewReader(r.buf[r.pos:r.pos+length]), r.payload)
		if err != nil {
			return Frame{}, &FrameError{r.frames + 1, err.Error()}
		}
		r.pos += length
		r.frames++
		if cap(message.Payload) > cap(r.payload) {
			r.payload = message.Payload[:0]
		}
		return Frame{message.Headers, message.Payload}, nil
	}
}

// More tells whether the next call of Next returns a frame without reading.
func (r *Reader) More() bool {
	length, err := r.ready()
	return length > 0 && err == nil
}

// ready returns the length of the frame at the beginning of the buffer, 0 as long as it is not whole. A prelude that is
// wrong is an error at once: whatever length it gives, waiting for that many bytes would be in vain.
func (r *Reader) ready() (length int, err error) {
	if r.end-r.pos < preludeBytes {
		return 0, nil
	}
	prelude := r.buf[r.pos : r.pos+preludeBytes]
	total, headers := int64(binary.BigEndian.Uint32(prelude)), int64(binary.BigEndian.Uint32(prelude[4:]))
	switch {
	case crc32.ChecksumIEEE(prelude[:8]) != binary.BigEndian.Uint32(prelude[8:]):
		return 0, eventstream.ChecksumError{}
	case total < minimalFrame+headers:
		return 0, fmt.Errorf("its length of %d bytes does not hold %d bytes of headers", total, headers)
	case total > int64(r.limit):
		return 0, fmt.Errorf("its length of %d bytes is over the limit of %d", total, r.limit)
	case total > int64(r.end-r.pos):
		return 0, nil
	}
	return int(total), nil
}

// fill reads once, into a buffer that begins with the next frame. The buffer doubles when that frame fills it, so that it
// grows with what has come and not with what is promised.
func (r *Reader) fill() {
	r.end = copy(r.buf, r.buf[r.pos:r.end])
	r.pos = 0
	if r.end == len(r.buf) {
		grown := make([]byte, max(2*len(r.buf), firstBuffer))
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
