package upstream

import (
	"bufio"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"fmt"
	"io"
	"strings"
)

// maxCodings bounds the decoders stacked for one body.
const maxCodings = 4

// decode undoes the Content-Encoding header of a body. Nothing is read before the first Read, and a Read returns what
// the bytes up to a sync flush hold without waiting for more.
func decode(src io.Reader, header []string, limit int64) io.Reader {
	var codings []string
	for coding := range strings.SplitSeq(strings.ToLower(strings.Join(header, ",")), ",") {
		switch coding = strings.TrimSpace(coding); coding {
		case "", "identity":
		case "gzip", "x-gzip", "deflate":
			codings = append(codings, strings.TrimPrefix(coding, "x-"))
		default:
			return failing{fmt.Errorf("the provider's answer is in the unsupported content encoding %q", coding)}
		}
	}
	if len(codings) > maxCodings {
		return failing{fmt.Errorf("the provider's answer has %d content encodings", len(codings))}
	}
	for len(codings) > 0 { // the last one was applied last
		last := len(codings) - 1
		src = &decoder{coding: codings[last], src: bufio.NewReader(&meter{src, encodedLimit(limit), limit})}
		codings = codings[:last]
	}
	return src
}

// decoder undoes one coding.
type decoder struct {
	coding  string
	src     *bufio.Reader
	decoded io.Reader // nil before the first Read
}

func (d *decoder) Read(p []byte) (int, error) {
	if d.decoded == nil {
		head, err := d.src.Peek(2)
		if len(head) == 0 {
			return 0, err // an empty body is an empty body in any coding
		}
		switch {
		case d.coding == "gzip":
			d.decoded, err = gzip.NewReader(d.src)
		case len(head) == 2 && head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0: // a zlib header
			d.decoded, err = zlib.NewReader(d.src)
		default: // without it, as some servers do
			d.decoded, err = flate.NewReader(d.src), nil
		}
		if err != nil {
			d.decoded = failing{err}
		}
	}
	return d.decoded.Read(p)
}

// meter fails once too much was read through it.
type meter struct {
	src   io.Reader
	left  int64
	limit int64 // what the error names
}

func (m *meter) Read(p []byte) (int, error) {
	if m.left <= 0 {
		return 0, &LimitError{m.limit}
	}
	n, err := m.src.Read(p[:min(int64(len(p)), m.left)])
	m.left -= int64(n)
	return n, err
}

// failing is a reader that only has an error.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
