package upstream

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	mmsp "github.com/prism-shadow/mmsp-go"
)

var quiet = log.New(io.Discard, "", 0)

// open returns a 2xx answer with the given body.
func open(t *testing.T, o mmsp.HTTPOptions, encoding string, body io.ReadCloser) *Response {
	t.Helper()
	s := step{status: 200, body: body}
	if encoding != "" {
		s.header = "Content-Encoding: " + encoding
	}
	resp, err := (&fake{t: t, steps: []step{s}}).client(o).Do(t.Context(), question)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// Each byte that arrives in time starts the idle limit anew; the time between two reads does not count.
func TestIdleTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body, w := io.Pipe()
		resp := open(t, mmsp.HTTPOptions{IdleTimeout: 10 * time.Second}, "", body)
		go func() {
			for range 3 {
				time.Sleep(9 * time.Second)
				w.Write([]byte("x"))
			}
		}()
		p := make([]byte, 10)
		for range 3 {
			if n, err := resp.Body.Read(p); n != 1 || err != nil {
				t.Fatal(n, err)
			}
		}
		time.Sleep(time.Hour)
		start := time.Now()
		_, err := resp.Body.Read(p)
		var idle *IdleTimeoutError
		if !errors.As(err, &idle) || idle.After != 10*time.Second || time.Since(start) != 10*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if _, again := resp.Body.Read(p); again != err {
			t.Errorf("then %v", again)
		}
		if _, err := w.Write([]byte("x")); err != io.ErrClosedPipe {
			t.Errorf("the body is not closed: %v", err)
		}
		resp.Finish()
	})
}

func TestIdleTimeoutOnTheWire(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		left := make(chan bool, 1)
		c, r, _ := serve(t, mmsp.HTTPOptions{IdleTimeout: 50 * time.Millisecond}, h2, func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			io.WriteString(w, "x")
			w.(http.Flusher).Flush()
			<-r.Context().Done()
			left <- true
		})
		resp, err := c.Do(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		var idle *IdleTimeoutError
		if string(body) != "x" || !errors.As(err, &idle) {
			t.Errorf("h2=%v: %q, %v", h2, body, err)
		}
		<-left
		resp.Close()
	}
}

func TestLinger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body, w := io.Pipe()
		defer w.Close()
		resp := open(t, mmsp.HTTPOptions{}, "", body)
		go func() {
			for {
				time.Sleep(2 * time.Second)
				if _, err := w.Write([]byte("x")); err != nil {
					return
				}
			}
		}()
		start := time.Now()
		resp.Linger(5 * time.Second)
		resp.Linger(time.Hour) // the earlier limit holds
		got, err := io.ReadAll(resp.Body)
		if string(got) != "xx" || err != ErrLingered || time.Since(start) != 5*time.Second {
			t.Errorf("%q, %v after %v", got, err, time.Since(start))
		}
		resp.Finish()
		time.Sleep(2 * time.Second) // the writer sees the end
	})
	synctest.Test(t, func(t *testing.T) {
		for _, encoding := range []string{"", "gzip", "gzip, deflate"} { // the idle limit holds on, in any coding
			body, _ := io.Pipe()
			resp := open(t, mmsp.HTTPOptions{}, encoding, body)
			resp.Linger(time.Hour)
			start := time.Now()
			_, err := io.ReadAll(resp.Body)
			var idle *IdleTimeoutError
			if !errors.As(err, &idle) || time.Since(start) != defaultIdleTimeout {
				t.Errorf("%q: %v after %v", encoding, err, time.Since(start))
			}
		}
	})
	synctest.Test(t, func(t *testing.T) {
		resp := open(t, mmsp.HTTPOptions{}, "", io.NopCloser(strings.NewReader("answer")))
		resp.Linger(time.Second)
		time.Sleep(time.Second)
		if n, err := resp.Body.Read(make([]byte, 1)); n != 0 || err != ErrLingered {
			t.Errorf("read after the time: %d, %v", n, err)
		}
	})
}

// Finish waits for the end, but neither long nor for much.
func TestFinishIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		body, w := io.Pipe()
		resp := open(t, mmsp.HTTPOptions{}, "", body)
		start := time.Now()
		resp.Finish()
		resp.Finish()
		if time.Since(start) != finishTime {
			t.Errorf("waited %v", time.Since(start))
		}
		if _, err := resp.Body.Read(make([]byte, 1)); err == nil || err == io.EOF {
			t.Errorf("read after Finish: %v", err)
		}
		w.Close()
	})
	synctest.Test(t, func(t *testing.T) {
		body, w := io.Pipe()
		resp := open(t, mmsp.HTTPOptions{}, "", body)
		taken := make(chan int)
		go func() {
			n := 0
			for {
				m, err := w.Write(make([]byte, 1000))
				if n += m; err != nil {
					taken <- n
					return
				}
			}
		}()
		resp.Finish()
		if n := <-taken; n != finishBytes {
			t.Errorf("took %d bytes", n)
		}
	})
}

func TestConnectionReuse(t *testing.T) {
	for _, tt := range []struct {
		name  string
		end   func(*Response)
		conns int32
	}{
		{"Finish", (*Response).Finish, 1},
		{"Close", func(r *Response) { r.Close() }, 3},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, r, conns := serve(t, mmsp.HTTPOptions{}, false, func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				io.WriteString(w, "data: [DONE]\n\n")
				w.(http.Flusher).Flush()
				io.WriteString(w, "\n")
			})
			for range 3 {
				resp, err := c.Do(t.Context(), r)
				if err != nil {
					t.Fatal(err)
				}
				if n, err := resp.Body.Read(make([]byte, 5)); n == 0 || err != nil {
					t.Fatal(n, err)
				}
				tt.end(resp)
			}
			if conns.Load() != tt.conns {
				t.Errorf("%d connections", conns.Load())
			}
		})
	}
	t.Run("after error statuses", func(t *testing.T) {
		c, r, conns := serve(t, mmsp.HTTPOptions{MaxRetryWait: time.Millisecond}, false, func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			http.Error(w, "busy", http.StatusServiceUnavailable)
		})
		if _, err := c.Do(t.Context(), r); err == nil || conns.Load() != 1 {
			t.Errorf("%v, %d connections", err, conns.Load())
		}
	})
}

// Close from another goroutine ends a blocked read, and is not mistaken for a timeout.
func TestConcurrentClose(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		c, r, _ := serve(t, mmsp.HTTPOptions{}, h2, func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		})
		resp, err := c.Do(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(20*time.Millisecond, func() { resp.Close() })
		if _, err := io.ReadAll(resp.Body); err != http.ErrBodyReadAfterClose {
			t.Errorf("h2=%v: %v", h2, err)
		}
	}
}

// encoders by content coding; "raw" is deflate without its zlib wrapper.
var encoders = map[string]func(io.Writer) flushWriter{
	"gzip":    func(w io.Writer) flushWriter { return gzip.NewWriter(w) },
	"deflate": func(w io.Writer) flushWriter { return zlib.NewWriter(w) },
	"raw": func(w io.Writer) flushWriter {
		fw, _ := flate.NewWriter(w, flate.DefaultCompression)
		return fw
	},
}

type flushWriter interface {
	io.WriteCloser
	Flush() error
}

func encode(data []byte, codings ...string) []byte {
	for _, coding := range codings {
		var out bytes.Buffer
		w := encoders[coding](&out)
		w.Write(data)
		w.Close()
		data = out.Bytes()
	}
	return data
}

// What a sync flush makes available is handed out although nothing follows it yet.
func TestCompressedStream(t *testing.T) {
	for coding, encoder := range encoders {
		t.Run(coding, func(t *testing.T) {
			seen := make(chan bool)
			c, r, _ := serve(t, mmsp.HTTPOptions{}, false, func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Encoding", strings.Replace(coding, "raw", "deflate", 1))
				z := encoder(w)
				w.(http.Flusher).Flush()
				for i := range 5 {
					fmt.Fprintf(z, "data: event %d\n\n", i)
					z.Flush()
					w.(http.Flusher).Flush()
					select {
					case <-seen:
					case <-r.Context().Done():
						return
					}
				}
				z.Close()
			})
			resp, err := c.Do(t.Context(), r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Close()
			p := make([]byte, 100)
			for i := range 5 {
				n, err := resp.Body.Read(p)
				if want := fmt.Sprintf("data: event %d\n\n", i); string(p[:n]) != want || err != nil {
					t.Fatalf("%q, %v", p[:n], err)
				}
				seen <- true
			}
			if n, err := resp.Body.Read(p); n != 0 || err != io.EOF {
				t.Errorf("at the end: %d, %v", n, err)
			}
		})
	}
}

func TestContentEncoding(t *testing.T) {
	data := []byte(strings.Repeat("some data ", 1000))
	for _, tt := range []struct {
		name, header string
		body         []byte
		fails        string
	}{
		{name: "none", body: data},
		{name: "identity", header: "identity", body: data},
		{name: "gzip", header: "gzip", body: encode(data, "gzip")},
		{name: "old name", header: "X-GZIP", body: encode(data, "gzip")},
		{name: "deflate", header: "deflate", body: encode(data, "deflate")},
		{name: "deflate without zlib", header: "deflate", body: encode(data, "raw")},
		{name: "nested", header: "gzip, identity,deflate", body: encode(data, "gzip", "deflate")},
		{name: "nested in two fields", header: "deflate | Content-Encoding: gzip", body: encode(data, "raw", "gzip")},
		{name: "two gzip members", header: "gzip", body: append(encode(data[:5000], "gzip"), encode(data[5000:], "gzip")...)},
		{name: "unknown", header: "gzip, br", body: data, fails: `"br"`},
		{name: "too many", header: "gzip, gzip, gzip, gzip, gzip", body: data, fails: "5 content encodings"},
		{name: "not gzip", header: "gzip", body: data, fails: "gzip"},
		{name: "not deflate", header: "deflate", body: []byte("\xff\xff\xff"), fails: "flate"},
		{name: "cut", header: "gzip", body: encode(data, "gzip")[:50], fails: "EOF"},
		{name: "wrong checksum", header: "gzip", body: append(encode(data, "gzip")[:60:60], 0, 0, 0, 0, 0, 0, 0, 0), fails: ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			resp := open(t, mmsp.HTTPOptions{}, tt.header, io.NopCloser(bytes.NewReader(tt.body)))
			got, err := io.ReadAll(resp.Body)
			if tt.name == "wrong checksum" || tt.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fails) {
					t.Errorf("error %v", err)
				}
			} else if err != nil || !bytes.Equal(got, data) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			resp.Finish()
		})
	}
	resp := open(t, mmsp.HTTPOptions{}, "gzip", http.NoBody)
	if got, err := io.ReadAll(resp.Body); len(got) != 0 || err != nil {
		t.Errorf("empty body: %q, %v", got, err)
	}
}

func TestLimits(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789"), 100)
	empty := bytes.Repeat(encode(nil, "gzip"), 10_000) // 230 kB that decode to nothing
	for _, tt := range []struct {
		name, header string
		body         []byte
		limit        int64
		got          int
		ok           bool
	}{
		{"exact", "", data, 1000, 1000, true},
		{"one byte more", "", data, 999, 999, false},
		{"far more", "", data, 10, 10, false},
		{"compressed, exact", "gzip", encode(data, "gzip"), 1000, 1000, true},
		{"compressed, one byte more", "gzip", encode(data, "gzip"), 999, 999, false},
		{"short body in a coding that makes it longer", "gzip", encode([]byte("x"), "gzip"), 1, 1, true},
		{"bomb", "deflate", encode(make([]byte, 4<<20), "deflate"), 1 << 20, 1 << 20, false},
		{"bomb in a bomb", "gzip, gzip", encode(make([]byte, 4<<20), "gzip", "gzip"), 1 << 20, 1 << 20, false},
		{"endless nothing", "gzip", empty, 1000, 0, false},
		{"endless nothing, packed", "gzip, gzip", encode(empty, "gzip"), 1000, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := &closing{Reader: bytes.NewReader(tt.body)}
			resp := open(t, mmsp.HTTPOptions{MaxResponseBytes: tt.limit}, tt.header, body)
			got, err := io.ReadAll(resp.Body)
			var limit *LimitError
			if len(got) != tt.got || (err == nil) != tt.ok || !tt.ok && (!errors.As(err, &limit) || limit.Limit != tt.limit) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			if body.closed == tt.ok {
				t.Errorf("closed: %v", body.closed)
			}
		})
	}
}

type closing struct {
	io.Reader
	closed bool
}

func (c *closing) Close() error {
	c.closed = true
	return nil
}

// loop is a transport that costs nothing itself.
type loop struct{}

func (loop) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("data: a\n\ndata: b\n\n"))}, nil
}

// BenchmarkDo is what this package adds to a request, beside the same through http.Client alone.
func BenchmarkDo(b *testing.B) {
	r := Request{Method: "POST", URL: "https://api.provider.test/v1/chat/completions", Header: http.Header{}, Body: []byte("{}")}
	p := make([]byte, 4096)
	b.Run("upstream", func(b *testing.B) {
		c := New(&http.Client{Transport: loop{}}, mmsp.HTTPOptions{})
		b.ReportAllocs()
		for b.Loop() {
			resp, err := c.Do(b.Context(), r)
			if err != nil {
				b.Fatal(err)
			}
			resp.Body.Read(p)
			resp.Finish()
		}
	})
	b.Run("http.Client", func(b *testing.B) {
		c := &http.Client{Transport: loop{}}
		b.ReportAllocs()
		for b.Loop() {
			req, _ := http.NewRequestWithContext(b.Context(), r.Method, r.URL, bytes.NewReader(r.Body))
			resp, err := c.Do(req)
			if err != nil {
				b.Fatal(err)
			}
			resp.Body.Read(p)
			resp.Body.Close()
		}
	})
}

// BenchmarkRead is what the limits add to each read.
func BenchmarkRead(b *testing.B) {
	c := New(&http.Client{Transport: loop{}}, mmsp.HTTPOptions{MaxResponseBytes: 1 << 62})
	req, _ := http.NewRequestWithContext(b.Context(), http.MethodGet, "http://x", http.NoBody)
	resp := c.newResponse(req, &http.Response{StatusCode: 200, Body: io.NopCloser(ones{})})
	p := make([]byte, 250)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := resp.Body.Read(p); err != nil {
			b.Fatal(err)
		}
	}
}

type ones struct{}

func (ones) Read(p []byte) (int, error) { return len(p), nil }
