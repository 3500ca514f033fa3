package fetch

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const png = "\x89PNG\r\n\x1a\n and the rest"

func pngURL() string {
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte(png))
}

// private is a loopback address that the tests' policy counts as private, while 127.0.0.1 counts as public.
var private = netip.MustParseAddr("127.0.0.2")

func fetcher(opts Options) *Fetcher {
	f := New(opts)
	f.blocked = func(addr netip.Addr) bool { return addr.Unmap() == private }
	return f
}

func serve(t *testing.T, handler http.HandlerFunc) *httptest.Server {
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server
}

// fails checks that err is an *Error with this reason, or a reason that begins so.
func fails(t *testing.T, err error, reason string) {
	t.Helper()
	if e, ok := errors.AsType[*Error](err); !ok || !strings.HasPrefix(e.Reason, reason) {
		t.Errorf("got %v, want %q", err, reason)
	}
}

func TestContent(t *testing.T) {
	var compressed bytes.Buffer
	gz := gzip.NewWriter(&compressed)
	_, _ = io.WriteString(gz, png)
	_ = gz.Close()

	const noPicture = "is no picture"
	for _, c := range []struct {
		name, body, contentType, encoding string
		status                            int
		want, reason                      string
	}{
		{name: "PNG", body: png, want: "data:image/png;base64,iVBORw0KGgogYW5kIHRoZSByZXN0"},
		{name: "JPEG", body: "\xff\xd8\xff\xe0", want: "data:image/jpeg;base64,/9j/4A=="},
		{name: "GIF", body: "GIF89a", want: "data:image/gif;base64,R0lGODlh"},
		{name: "WebP", body: "RIFF....WEBP", want: "data:image/webp;base64,UklGRi4uLi5XRUJQ"},
		{name: "wrong content type", body: png, contentType: "text/html", want: pngURL()},
		{name: "compressed", body: compressed.String(), encoding: "gzip", want: pngURL()},
		{name: "page", body: "<!doctype html>", contentType: "image/png", reason: noPicture},
		{name: "SVG", body: "<svg/>", contentType: "image/svg+xml", reason: noPicture},
		{name: "empty", body: "", contentType: "image/png", reason: noPicture},
		{name: "damaged compression", body: png, encoding: "gzip", reason: "the connection failed"},
		{name: "not found", body: png, status: 404, reason: "the server answered with status 404"},
		{name: "partial", body: png, status: 206, reason: "the server answered with status 206"},
		{name: "failure", body: png, status: 503, reason: "the server answered with status 503"},
		{name: "redirect to nowhere", status: 302, reason: "the server redirects without a valid location"},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", c.contentType)
				if c.encoding != "" {
					w.Header().Set("Content-Encoding", c.encoding)
				}
				if c.status != 0 {
					w.WriteHeader(c.status)
				}
				_, _ = io.WriteString(w, c.body)
			})
			got, err := fetcher(Options{}).Image(t.Context(), server.URL)
			if c.reason != "" {
				fails(t, err, c.reason)
			} else if err != nil || got != c.want {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestFile(t *testing.T) {
	const pdf = "%PDF-1.7"
	for _, c := range []struct{ path, contentType, disposition, encoding, body, mediaType, name, reason string }{
		{path: "/a/report.pdf", contentType: "application/pdf", body: pdf, mediaType: "application/pdf", name: "report.pdf"},
		{path: "/report", contentType: "Application/PDF; x=y", body: pdf, mediaType: "application/pdf", name: "report.pdf"},
		{path: "/1706.03762", contentType: "application/pdf", body: pdf, mediaType: "application/pdf", name: "1706.03762.pdf"},
		{path: "/", contentType: "application/pdf", body: pdf, mediaType: "application/pdf"},
		{path: "/..", contentType: "application/pdf", body: pdf, mediaType: "application/pdf"},
		{path: "/a.pdf/", contentType: "application/pdf", body: pdf, mediaType: "application/pdf", name: "a.pdf"},
		{path: "/%E5%A0%B1 %0A%22%E5%91%8A.pdf", contentType: "application/pdf", body: pdf, mediaType: "application/pdf", name: `報 "告.pdf`},
		{path: "/" + strings.Repeat("x", 200) + ".pdf", contentType: "application/pdf", body: pdf, mediaType: "application/pdf", name: strings.Repeat("x", 124) + ".pdf"},
		{path: "/d?id=1", contentType: "application/pdf", disposition: `attachment; filename="my report.pdf"`, body: pdf, mediaType: "application/pdf", name: "my report.pdf"},
		{path: "/d", contentType: "application/pdf", disposition: `attachment; filename="..\..\etc/passwd"`, body: pdf, mediaType: "application/pdf", name: "passwd.pdf"},
		{path: "/d", contentType: "application/pdf", disposition: `attachment; filename*=UTF-8''%e2%82%ac.pdf`, body: pdf, mediaType: "application/pdf", name: "€.pdf"},
		{path: "/README.md", contentType: "text/plain; charset=utf-8", body: "# A", mediaType: "text/plain", name: "README.md"},
		{path: "/about", contentType: "text/html; charset=utf-8", body: "<p>", mediaType: "text/html", name: "about.html"},
		{path: "/a.json", contentType: "application/json", body: "{}", mediaType: "application/json", name: "a.json"},
		{path: "/a.mp3", contentType: "audio/mpeg", body: "ID3", mediaType: "audio/mpeg", name: "a.mp3"},
		{path: "/a.png", contentType: "image/png", body: png, mediaType: "image/png", name: "a.png"},
		{path: "/a.md", contentType: "application/octet-stream", body: "# A", mediaType: "text/markdown", name: "a.md"},
		{path: "/a", contentType: "binary/octet-stream", body: pdf, mediaType: "application/pdf", name: "a.pdf"},
		{path: "/a", contentType: "application/force-download", disposition: `attachment; filename=b.csv`, body: "1,2", mediaType: "text/csv", name: "b.csv"},
		{path: "/a", contentType: "pdf", body: pdf, mediaType: "application/pdf", name: "a.pdf"},
		{path: "/a", contentType: ";", body: "words", mediaType: "text/plain", name: "a.txt"},
		{path: "/a", body: pdf, mediaType: "application/pdf", name: "a.pdf"},
		{path: "/a.bin", contentType: "application/octet-stream", body: "\x00\x01", reason: "is of no known type"},
		{path: "/a.pdf", contentType: "application/pdf", reason: "is empty"},
		{path: "/a.txt", contentType: "text/plain", encoding: "br", body: "\x0b\x02\x80hi\x03", reason: "comes in an encoding that was not asked for"},
	} {
		t.Run(c.path+" "+c.contentType, func(t *testing.T) {
			server := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header()["Content-Type"] = nil // or it would be guessed
				for name, value := range map[string]string{"Content-Type": c.contentType, "Content-Disposition": c.disposition, "Content-Encoding": c.encoding} {
					if value != "" {
						w.Header().Set(name, value)
					}
				}
				_, _ = io.WriteString(w, c.body)
			})
			data, mediaType, name, err := fetcher(Options{}).File(t.Context(), server.URL+c.path)
			if c.reason != "" {
				fails(t, err, c.reason)
			} else if err != nil || string(data) != c.body || mediaType != c.mediaType || name != c.name {
				t.Errorf("got %q, %q, %q, %v", data, mediaType, name, err)
			}
		})
	}
}

// A file is fetched with the same care as a picture.
func TestFileIsGuarded(t *testing.T) {
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/large":
			_, _ = w.Write(make([]byte, 1001))
		case "/slow":
			<-r.Context().Done()
		case "/inside":
			http.Redirect(w, r, "http://"+private.String()+":1/", http.StatusFound)
		case "/metadata":
			http.Redirect(w, r, "http://169.254.169.254/latest", http.StatusFound)
		default:
			http.NotFound(w, r)
		}
	})
	f := fetcher(Options{MaxBytes: 1000, Timeout: 50 * time.Millisecond})
	f.blocked = func(addr netip.Addr) bool { return addr.Unmap().String() != "127.0.0.1" }
	for url, reason := range map[string]string{
		server.URL + "/large":            "is larger than 1000 bytes",
		server.URL + "/slow":             "no complete answer within 50ms",
		server.URL + "/inside":           "the address is not public",
		server.URL + "/metadata":         "the address is not public",
		server.URL + "/none":             "the server answered with status 404",
		"http://me:canary@h.example/a":   "a URL with a user name or password is not fetched",
		"file:///etc/passwd":             "only http and https URLs are fetched",
		"ftp://h.example/a":              "only http and https URLs are fetched",
		"data:application/pdf;base64,AA": "only http and https URLs are fetched",
	} {
		_, _, _, err := f.File(t.Context(), url)
		fails(t, err, reason)
		if err != nil && (!strings.HasPrefix(err.Error(), "file ") || strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), "169.254")) {
			t.Error(err)
		}
	}
	_, _, _, err := New(Options{}).File(t.Context(), server.URL)
	fails(t, err, "the address is not public")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, _, err := f.File(gone, server.URL+"/slow"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestURLs(t *testing.T) {
	for raw, want := range map[string]string{
		"ftp://h.example/a?canary":             "image ftp://h.example/a: only http and https URLs are fetched",
		"file:///etc/passwd":                   "image file:///etc/passwd: only http and https URLs are fetched",
		"data:image/png;base64,canary":         "image data:: only http and https URLs are fetched",
		"//h.example/a":                        "image //h.example/a: only http and https URLs are fetched",
		"":                                     "image URL: only http and https URLs are fetched",
		"http:///a#canary":                     "image http:///a: names no host",
		"http://:80/a":                         "image http://:80/a: names no host",
		"http://canary@h.example/a":            "image http://h.example/a: a URL with a user name or password is not fetched",
		"https://me:canary@h.example/a?b":      "image https://h.example/a: a URL with a user name or password is not fetched",
		"http://me:canary@h.example:port/a":    "image URL: is not a valid URL",
		"http://h.example/\n?canary":           "image URL: is not a valid URL",
		"http://h/" + strings.Repeat("a", 1e4): "image URL: is longer than 8192 bytes",
	} {
		_, err := New(Options{}).Image(t.Context(), raw)
		if err == nil || err.Error() != want {
			t.Errorf("%.60q: got %v", raw, err)
		}
	}
}

func TestErrorsHideQueryAndUser(t *testing.T) {
	server := serve(t, http.NotFound)
	_, err := fetcher(Options{}).Image(t.Context(), server.URL+"/a%2Fb?token=canary#canary")
	if want := "image " + server.URL + "/a%2Fb: the server answered with status 404"; err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
	gone := server.URL
	server.Close()
	_, err = fetcher(Options{}).Image(t.Context(), gone+"/a?token=canary")
	if want := "image " + gone + "/a: the connection failed"; err == nil || fmt.Sprintf("%v", err) != want || errors.Unwrap(err) != nil {
		t.Errorf("got %v", err)
	}
}

// What is not public is never connected to, however it is written.
func TestPrivateAddresses(t *testing.T) {
	var hits atomic.Int32
	server := serve(t, func(w http.ResponseWriter, _ *http.Request) { hits.Add(1); _, _ = io.WriteString(w, png) })
	port := server.Listener.Addr().(*net.TCPAddr).Port
	for _, host := range []string{
		"127.0.0.1", "localhost", "LOCALHOST", "0.0.0.0", "[::]", "[::1]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]",
		"169.254.169.254", "[fd00:ec2::254]", "10.0.0.1", "[64:ff9b::7f00:1]",
	} {
		_, err := New(Options{}).Image(t.Context(), fmt.Sprintf("http://%s:%d/", host, port))
		fails(t, err, "the address is not public")
	}
	if hits.Load() != 0 {
		t.Errorf("%d requests arrived", hits.Load())
	}

	got, err := New(Options{AllowPrivate: true}).Image(t.Context(), fmt.Sprintf("http://localhost:%d/", port))
	if err != nil || got != pngURL() || hits.Load() != 1 {
		t.Errorf("allowed: got %q, %v", got, err)
	}
}

func TestRedirects(t *testing.T) {
	var privateHits atomic.Int32
	listener, err := net.Listen("tcp", private.String()+":0")
	if err != nil {
		t.Skip("no second loopback address:", err)
	}
	inside := &httptest.Server{Listener: listener, Config: &http.Server{
		Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { privateHits.Add(1) }),
	}}
	inside.Start()
	defer inside.Close()

	outside := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/picture" {
			_, _ = io.WriteString(w, png)
			return
		}
		// /302/a/b redirects to /a/b, /302?to=x to x.
		status, to := 0, r.URL.Query().Get("to")
		_, _ = fmt.Sscanf(r.URL.Path, "/%d", &status)
		if to == "" {
			to = r.URL.Path[len("/302"):]
		}
		w.Header().Set("Location", to)
		w.WriteHeader(status)
	})
	to := func(target string) string { return outside.URL + "/302?to=" + url.QueryEscape(target) }

	for _, c := range []struct{ name, url, reason string }{
		{"each kind", outside.URL + "/301/307/308/picture", ""},
		{"see other", outside.URL + "/303/picture", ""},
		{"absolute", to(outside.URL + "/picture"), ""},
		{"without scheme", to("//" + outside.Listener.Addr().String() + "/picture"), ""},
		{"one too many", outside.URL + "/302/302/302/302/picture", "more than 3 redirects"},
		{"private", to(inside.URL), "the address is not public"},
		{"private, later", to(to(inside.URL)), "the address is not public"},
		{"private, mapped", to(strings.Replace(inside.URL, private.String(), "[::ffff:127.0.0.2]", 1)), "the address is not public"},
		{"file", to("file:///etc/passwd"), "only http and https URLs are fetched"},
		{"data", to(pngURL()), "only http and https URLs are fetched"},
		{"user name", to("http://me@" + outside.Listener.Addr().String() + "/picture"), "a URL with a user name or password"},
		{"no URL", to("http://[canary"), "the server redirects without a valid location"},
		{"not one", outside.URL + "/304", "the server answered with status 304"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := fetcher(Options{}).Image(t.Context(), c.url)
			if c.reason != "" {
				fails(t, err, c.reason)
			} else if err != nil || got != pngURL() {
				t.Errorf("got %q, %v", got, err)
			}
			if err != nil && (strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), private.String())) {
				t.Errorf("the error shows the target: %v", err)
			}
		})
	}
	if privateHits.Load() != 0 {
		t.Errorf("%d requests arrived at the private address", privateHits.Load())
	}
}

func TestNothingIsSentAlong(t *testing.T) {
	requests := make(chan *http.Request, 2)
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		requests <- r
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
		if r.URL.Path == "/" {
			http.Redirect(w, r, "/picture", http.StatusFound)
			return
		}
		_, _ = io.WriteString(w, png)
	})
	if _, err := fetcher(Options{}).Image(t.Context(), server.URL+"/?secret"); err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{"Accept": true, "Accept-Encoding": true, "User-Agent": true, "Connection": true}
	for range 2 {
		r := <-requests
		for name, value := range r.Header {
			if !known[name] {
				t.Errorf("%s carries %s: %q", r.URL, name, value)
			}
		}
		if r.Method != http.MethodGet || r.ContentLength != 0 {
			t.Errorf("%s with %d bytes", r.Method, r.ContentLength)
		}
	}
	if New(Options{AllowPrivate: true}).transport(t.Context()).Proxy != nil {
		t.Error("a proxy can be set")
	}
}

func TestMaxBytes(t *testing.T) {
	const limit = 1000
	picture := func(size int) []byte { return append([]byte(png), make([]byte, size-len(png))...) }
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/just":
			_, _ = w.Write(picture(limit))
		case "/announced":
			w.Header().Set("Content-Length", fmt.Sprint(limit+1))
			_, _ = w.Write(picture(limit + 1))
		case "/chunked", "/endless":
			for w.(http.Flusher).Flush(); ; {
				_, err := w.Write(picture(limit + 1))
				if err != nil || r.URL.Path == "/chunked" {
					return
				}
			}
		case "/compressed":
			w.Header().Set("Content-Encoding", "gzip")
			gz := gzip.NewWriter(w)
			_, _ = gz.Write(picture(1 << 20))
			_ = gz.Close()
		}
	})
	f := fetcher(Options{MaxBytes: limit})
	if _, err := f.Image(t.Context(), server.URL+"/just"); err != nil {
		t.Error(err)
	}
	for _, path := range []string{"/announced", "/chunked", "/endless", "/compressed"} {
		_, err := f.Image(t.Context(), server.URL+path)
		fails(t, err, "is larger than 1000 bytes")
	}
}

// The pictures of a request are bounded together, and those of another one apart from them.
func TestForRequest(t *testing.T) {
	asked := 0
	server := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked++
		if _, err := io.WriteString(w, png); r.URL.Path == "/large" && err == nil {
			_, _ = w.Write(make([]byte, 1<<20))
		}
	})
	f := fetcher(Options{})
	first := ForRequest(t.Context())
	for range maxPictures {
		if _, err := f.Image(first, server.URL); err != nil {
			t.Fatal(err)
		}
	}
	_, err := f.Image(first, server.URL)
	if fails(t, err, "at most 512 pictures are fetched for a request"); asked != maxPictures {
		t.Errorf("%d pictures were asked for", asked)
	}
	second := ForRequest(t.Context())
	for range allPictures/(1<<20) - 1 {
		if _, err := f.Image(second, server.URL+"/large"); err != nil {
			t.Fatal(err)
		}
	}
	_, err = f.Image(second, server.URL+"/large")
	fails(t, err, "the pictures of the request are larger than 134217728 bytes together")
	if _, err := f.Image(t.Context(), server.URL); err != nil {
		t.Error(err)
	}
}

// stalling is a server that answers never, or after the first bytes no more, and tells when its client has gone.
func stalling(t *testing.T) (server *httptest.Server, asked, gone chan bool) {
	asked, gone = make(chan bool, 1), make(chan bool, 1)
	return serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/body" {
			_, _ = io.WriteString(w, png)
			w.(http.Flusher).Flush()
		}
		asked <- true
		<-r.Context().Done()
		gone <- true
	}), asked, gone
}

func within(t *testing.T, d time.Duration, event <-chan bool, what string) {
	t.Helper()
	select {
	case <-event:
	case <-time.After(d):
		t.Fatalf("%s: not within %v", what, d)
	}
}

func TestTimeout(t *testing.T) {
	for _, path := range []string{"/header", "/body"} {
		server, _, gone := stalling(t)
		_, err := fetcher(Options{Timeout: 50 * time.Millisecond}).Image(t.Context(), server.URL+path)
		fails(t, err, "no complete answer within 50ms")
		if errors.Is(err, context.DeadlineExceeded) {
			t.Error("looks like the caller's own deadline")
		}
		within(t, 5*time.Second, gone, path+": connection closed")
	}
}

func TestCancel(t *testing.T) {
	for _, path := range []string{"/header", "/body"} {
		server, asked, gone := stalling(t)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan bool, 1)
		go func() {
			_, err := fetcher(Options{}).Image(ctx, server.URL+path)
			fails(t, err, "context canceled")
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%v is no cancellation", err)
			}
			done <- true
		}()
		within(t, 5*time.Second, asked, path+": request")
		cancel()
		within(t, time.Second, done, path+": return")
		within(t, time.Second, gone, path+": connection closed")
	}

	deadline, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	server, _, _ := stalling(t)
	if _, err := fetcher(Options{}).Image(deadline, server.URL); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// A TLS handshake that never ends is left as fast as anything else.
func TestCancelInHandshake(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	asked, gone, done := make(chan bool, 1), make(chan bool, 1), make(chan bool, 1)
	go func() {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		hello := make([]byte, 1)
		_, _ = conn.Read(hello)
		asked <- true
		_, _ = io.Copy(io.Discard, conn)
		gone <- true
	}()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		_, err := fetcher(Options{}).Image(ctx, "https://"+listener.Addr().String())
		fails(t, err, "context canceled")
		done <- true
	}()
	within(t, 5*time.Second, asked, "client hello")
	cancel()
	within(t, time.Second, done, "return")
	within(t, time.Second, gone, "connection closed")
}
