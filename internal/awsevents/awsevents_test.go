package awsevents

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

// frame writes a frame whose headers are texts, given as pairs.
func frame(payload string, headers ...string) []byte {
	var h []byte
	for pair := range slices.Chunk(headers, 2) {
		h = append(append(h, byte(len(pair[0]))), pair[0]...)
		h = append(binary.BigEndian.AppendUint16(append(h, 7), uint16(len(pair[1]))), pair[1]...)
	}
	return seal(uint32(16+len(h)+len(payload)), uint32(len(h)), append(h, payload...))
}

// seal writes a frame of the given lengths, with the right checksums.
func seal(length, headers uint32, rest []byte) []byte {
	f := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, length), headers)
	f = append(binary.BigEndian.AppendUint32(f, crc32.ChecksumIEEE(f)), rest...)
	return binary.BigEndian.AppendUint32(f, crc32.ChecksumIEEE(f))
}

// readAll reads a body to its end: "type payload" of each frame, and what ended it.
func readAll(r *Reader) (frames []string, err error) {
	for {
		f, err := r.Next()
		if err != nil {
			if _, again := r.Next(); again == nil || again.Error() != err.Error() {
				return frames, fmt.Errorf("%w, and then %w", err, again)
			}
			return frames, err
		}
		frames = append(frames, f.Header(":event-type")+" "+string(f.Payload))
	}
}

var (
	long = strings.Repeat("long ", 4000)
	body = slices.Concat(frame("one", ":event-type", "chunk"), frame(""), frame(long, "x", "", ":event-type", "other"), frame("four"))
	want = []string{"chunk one", " ", "other " + long, " four"}
)

func TestNext(t *testing.T) {
	for name, source := range map[string]io.Reader{
		"at once":               bytes.NewReader(body),
		"byte by byte":          iotest.OneByteReader(bytes.NewReader(body)),
		"in halves":             iotest.HalfReader(bytes.NewReader(body)),
		"its end with its last": iotest.DataErrReader(bytes.NewReader(body)),
		"nothing now and then":  &hesitant{bytes.NewReader(body), 0},
	} {
		got, err := readAll(NewReader(source, len(long)+41)) // just enough
		if !slices.Equal(got, want) || err != io.EOF {
			t.Errorf("%s: %.200q, %v", name, got, err)
		}
	}
}

// hesitant returns no bytes and no error every other time.
type hesitant struct {
	io.Reader
	n int
}

func (h *hesitant) Read(p []byte) (int, error) {
	if h.n++; h.n%2 == 0 {
		return 0, nil
	}
	return h.Reader.Read(p[:min(len(p), 7)])
}

func TestNextStuck(t *testing.T) {
	if _, err := NewReader(stuck{}, 0).Next(); err != io.ErrNoProgress {
		t.Error(err)
	}
}

type stuck struct{}

func (stuck) Read([]byte) (int, error) { return 0, nil }

// A body that is cut anywhere yields the frames that are whole and ends as the connection does.
func TestCut(t *testing.T) {
	broken := errors.New("broken")
	small := slices.Concat(frame("one", ":event-type", "chunk"), frame("two"))
	for cut := range len(small) {
		whole := 0
		if cut >= len(frame("one", ":event-type", "chunk")) {
			whole = 1
		}
		got, err := readAll(NewReader(bytes.NewReader(small[:cut]), 0))
		if len(got) != whole || err != io.EOF {
			t.Errorf("%d bytes: %q, %v", cut, got, err)
		}
		got, err = readAll(NewReader(io.MultiReader(bytes.NewReader(small[:cut]), iotest.ErrReader(broken)), 0))
		if len(got) != whole || err != broken {
			t.Errorf("%d bytes: %q, %v", cut, got, err)
		}
	}
}

// A bit that flips anywhere in a frame is found, and what came before stands.
func TestDamage(t *testing.T) {
	first := frame("one", ":event-type", "chunk")
	for at := range len(first) {
		for bit := range 8 {
			damaged := bytes.Clone(first)
			damaged[at] ^= 1 << bit
			got, err := readAll(NewReader(bytes.NewReader(slices.Concat(frame("zero"), damaged, frame("two"))), 0))
			var damage *FrameError
			if len(got) != 1 || !errors.As(err, &damage) || damage.Number != 2 {
				t.Fatalf("bit %d of byte %d: %q, %v", bit, at, got, err)
			}
		}
	}
}

// Frames with the right checksums that are none.
func TestMalformed(t *testing.T) {
	for name, row := range map[string]struct {
		frame []byte
		want  string
	}{
		"no length":                  {seal(0, 0, nil), "its length of 0 bytes"},
		"shorter than its prelude":   {seal(15, 0, nil), "its length of 15 bytes"},
		"headers longer than it":     {seal(20, 5, make([]byte, 4)), "does not hold 5 bytes of headers"},
		"lengths that overflow":      {seal(16, 1<<32-1, nil), "does not hold 4294967295 bytes of headers"},
		"longer than may be":         {seal(1001, 0, nil), "over the limit of 1000"},
		"a header cut in its name":   {seal(18, 2, []byte{5, 'a'}), ""},
		"a header cut in its text":   {seal(22, 6, []byte{1, 'a', 7, 0, 9, 'x'}), ""},
		"a header of no known type":  {seal(19, 3, []byte{1, 'a', 99}), "99"},
		"a header that has no value": {seal(18, 2, []byte{1, 'a'}), ""},
	} {
		_, err := NewReader(bytes.NewReader(row.frame), 1000).Next()
		var damage *FrameError
		if !errors.As(err, &damage) || damage.Number != 1 || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Headers of other types are read over, and are no texts.
func TestHeader(t *testing.T) {
	headers := []byte{1, 'a', 0, 1, 'b', 2, 9, 1, 'c', 4, 0, 0, 0, 9, 1, 'd', 6, 0, 1, 'x', 1, 'e', 7, 0, 1, 'y'}
	f, err := NewReader(bytes.NewReader(seal(uint32(16+len(headers)), uint32(len(headers)), headers)), 0).Next()
	if err != nil || f.Header("a")+f.Header("c")+f.Header("d")+f.Header("missing") != "" || f.Header("e") != "y" {
		t.Errorf("%v %v", f.Headers, err)
	}
}

// A frame is handed out before the next one has come, and More says whether it has.
func TestMore(t *testing.T) {
	in, out := io.Pipe()
	defer in.Close()
	r := NewReader(in, 0)
	go func() {
		_, _ = out.Write(slices.Concat(frame("one"), frame("two"), frame("three")[:14]))
		_, _ = out.Write(frame("three")[14:])
	}()
	for _, row := range []struct {
		payload string
		more    bool
	}{{"one", true}, {"two", false}, {"three", false}} {
		f, err := r.Next()
		if err != nil || string(f.Payload) != row.payload || r.More() != row.more {
			t.Errorf("%s: %q %v, more %v", row.payload, f.Payload, err, r.More())
		}
	}
}

// A promised length costs no memory until its bytes come.
func TestPromise(t *testing.T) {
	r := NewReader(bytes.NewReader(seal(60<<20, 0, nil)), 0)
	if _, err := r.Next(); err != io.EOF || len(r.buf) > firstBuffer {
		t.Errorf("%v, %d bytes", err, len(r.buf))
	}
}

func FuzzNext(f *testing.F) {
	f.Add(body)
	f.Add(frame("", ":message-type", "exception"))
	f.Fuzz(func(t *testing.T, data []byte) {
		frames, _ := readAll(NewReader(bytes.NewReader(data), 1<<20))
		if len(frames) > len(data)/minimalFrame {
			t.Error("more frames than bytes")
		}
	})
}
