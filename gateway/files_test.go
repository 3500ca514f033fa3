package gateway_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/prism-shadow/mmsp-go"
)

const pdf = "%PDF-1.7 of the test"

// linked says how a dialect names a file by its URL: what stands in the place of the prompt "hi", a part, and where its URL is.
var linked = map[string]struct{ prompt, content, part, path string }{
	"responses":       {`"input":"hi"`, `"input":[{"role":"user","content":[%s]}]`, `{"type":"input_file","file_url":%q}`, "input[0].content[%d].file_url"},
	"chatCompletions": {`"content":"hi"`, `"content":[%s]`, `{"type":"file","file":{"file_data":%q}}`, "messages[0].content[%d].file.file_data"},
	"messages":        {`"content":"hi"`, `"content":[%s]`, `{"type":"document","source":{"type":"url","url":%q}}`, "messages[0].content[%d].source.url"},
	"generateContent": {`{"text":"hi"}`, `%s`, `{"fileData":{"fileUri":%q}}`, "contents[0].parts[%d].fileData.fileUri"},
}

// withFiles is a request that names files.
func (d *dialect) withFiles(s *served, model string, urls ...string) *http.Request {
	s.t.Helper()
	l := linked[d.endpoint]
	parts := make([]string, len(urls))
	for i, url := range urls {
		parts[i] = fmt.Sprintf(l.part, url)
	}
	plain := d.body(model, "hi", false)
	body := strings.Replace(plain, l.prompt, fmt.Sprintf(l.content, strings.Join(parts, ",")), 1)
	if body == plain {
		s.t.Fatalf("%s: no %s in %s", d.endpoint, l.prompt, plain)
	}
	return s.request("POST", d.path(model, false), body)
}

// fileServer serves a PDF and what is none; hits counts what it is asked for.
func fileServer(t *testing.T) (url string, hits *atomic.Int64) {
	hits = new(atomic.Int64)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		switch r.URL.Path {
		case "/report.pdf":
			w.Header().Set("Content-Type", "application/pdf")
			_, _ = io.WriteString(w, pdf)
		case "/large.pdf":
			_, _ = io.WriteString(w, "%PDF-"+strings.Repeat("x", 2000))
		case "/to-a-file":
			http.Redirect(w, r, "file:///etc/passwd", http.StatusFound)
		case "/unknown":
			_, _ = w.Write([]byte{0, 1, 2})
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, hits
}

// TestFilesByURL: a document that any caller names by its URL reaches every provider that takes documents, inline and with
// its name, and is refused at its place where the model's client takes none.
func TestFilesByURL(t *testing.T) {
	t.Parallel()
	url, _ := fileServer(t)
	var last atomic.Value
	models := simulatedBehind(t, func(provider http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			last.Store(string(body))
			r.Body = io.NopCloser(bytes.NewReader(body))
			provider.ServeHTTP(w, r)
		})
	})
	none := chatRow("takes none", "http://127.0.0.1:1")
	none.ClientType = "zai-official"
	c := everywhere(table(append(models, none)...))
	c.HTTP.Fetch.AllowPrivate = true
	s := start(t, c)
	for i := range dialects {
		d := &dialects[i]
		for _, name := range egress {
			got := s.send(d.withFiles(s, name, url+"/report.pdf"))
			sent := last.Load().(string)
			if got.status != 200 || !strings.Contains(sent, base64.StdEncoding.EncodeToString([]byte(pdf))) || !strings.Contains(sent, "application/pdf") {
				t.Errorf("%s over %s: %d %s\nof %s", d.endpoint, name, got.status, got.body, sent)
			}
			if !strings.HasPrefix(name, "google") && !strings.Contains(sent, `"report.pdf"`) { // Google has no field for it
				t.Errorf("%s over %s: no name in %s", d.endpoint, name, sent)
			}
		}
		got := s.send(d.withFiles(s, none.ServerModelID, url+"/report.pdf"))
		place, _, _ := strings.Cut(linked[d.endpoint].path, "[%d]")
		if e := d.failure(t, got); got.status != 400 || !invalid.says(d, false, e.words) || !strings.Contains(got.body, "inline_data") || !strings.Contains(got.body, place+"[0]") {
			t.Errorf("%s over a client without documents: %d %s", d.endpoint, got.status, got.body)
		}
	}

	for path, body := range map[string]string{
		"/v1/responses/input_tokens":                       `{"model":"ant-messages","input":[{"role":"user","content":[{"type":"input_file","file_url":%q}]}]}`,
		"/v1/messages/count_tokens":                        `{"model":"openai-chat","messages":[{"role":"user","content":[{"type":"document","source":{"type":"url","url":%q}}]}]}`,
		"/v1beta/models/openai-responses:countTokens":      `{"contents":[{"parts":[{"fileData":{"fileUri":%q}}]}]}`,
		"/v1beta/models/google-genai:countTokens?alt=json": `{"contents":[{"parts":[{"fileData":{"fileUri":%q}}]}]}`,
	} {
		if got := s.send(s.request("POST", path, fmt.Sprintf(body, url+"/report.pdf"))); got.status != 200 {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
}

// TestFilesAreRefused: what cannot be fetched is a 400 that names its place and says why.
func TestFilesAreRefused(t *testing.T) {
	t.Parallel()
	url, _ := fileServer(t)
	c := everywhere(table())
	c.HTTP.Fetch.AllowPrivate, c.HTTP.Fetch.MaxBytes = true, 1000
	c.Limits.MaxBodyBytes = 4000
	s := start(t, c, own("m", plays(nil, says("hi"), stops)))
	guarded := start(t, everywhere(table()), own("m", plays(nil, says("hi"), stops)))
	many := strings.Split(strings.Repeat(url+"/report.pdf ", 20)+url+"/none", " ")
	c = everywhere(table())
	c.HTTP.Fetch.AllowPrivate, c.Limits.MaxBodyBytes = true, 3000
	little := start(t, c, own("m", plays(nil, says("hi"), stops)))
	for _, tt := range []struct {
		name   string
		server *served
		urls   []string
		place  int
		says   string
	}{
		{"not found", s, []string{url + "/none?token=canary"}, 0, "file " + url + "/none: the server answered with status 404"},
		{"the second", s, []string{url + "/report.pdf", url + "/none"}, 1, "status 404"},
		{"too large", s, []string{url + "/large.pdf"}, 0, "is larger than 1000 bytes"},
		{"too large together", little, []string{url + "/large.pdf", url + "/large.pdf"}, 1, "are larger than 3000 bytes together"},
		{"too many", s, many, 20, "at most 20 files"},
		{"of no type", s, []string{url + "/unknown"}, 0, "is of no known type"},
		{"no connection", s, []string{"http://127.0.0.1:1/a.pdf"}, 0, "the connection failed"},
		{"a redirect to a file", s, []string{url + "/to-a-file"}, 0, "only http and https URLs are fetched"},
		{"a private address", guarded, []string{url + "/report.pdf"}, 0, "the address is not public"},
		{"metadata", guarded, []string{"http://169.254.169.254/latest/"}, 0, "the address is not public"},
		{"credentials", s, []string{"http://me:canary@127.0.0.1/a.pdf"}, 0, "a URL with a user name or password is not fetched"},
		{"a file", s, []string{"file:///etc/passwd"}, 0, "http"},
		{"FTP", s, []string{"ftp://files.test/a.pdf"}, 0, "http"},
	} {
		for i := range dialects {
			d := &dialects[i]
			got := tt.server.send(d.withFiles(tt.server, "m", tt.urls...))
			e := d.failure(t, got)
			if got.status != 400 || !invalid.says(d, false, e.words) || !strings.Contains(e.message, tt.says) || strings.Contains(got.body, "canary") {
				t.Errorf("%s, %s: %d %s", d.endpoint, tt.name, got.status, got.body)
			}
			if place := fmt.Sprintf(linked[d.endpoint].path, tt.place); !strings.Contains(e.message, place) && e.param != place {
				t.Errorf("%s, %s: the place is not %s in %s", d.endpoint, tt.name, place, got.body)
			}
		}
	}
	got := s.send(responsesDialect.withFiles(s, "m", "data:application/pdf;base64,JVBERi0="))
	if e := responsesDialect.failure(t, got); got.status != 400 || e.param != "input[0].content[0].file_url" || !strings.Contains(e.message, "only http and https") {
		t.Errorf("a data URL: %d %s", got.status, got.body)
	}
	if m := s.metrics(); m.Requests != 0 || m.Refused.InvalidRequest != 10*4+1 {
		t.Errorf("%+v %+v", m.Counts, m.Refused)
	}
}

// TestNothingIsFetchedInVain: a request that is refused anyway fetches nothing.
func TestNothingIsFetchedInVain(t *testing.T) {
	t.Parallel()
	url, hits := fileServer(t)
	c := everywhere(table())
	c.HTTP.Fetch.AllowPrivate = true
	c.APIKeys = []mmsp.Secret{mmsp.NewSecret(callerKey)}
	s := start(t, c, own("m", plays(nil, says("hi"), stops)))
	off := table()
	off.HTTP.Fetch.AllowPrivate, off.APIKeys = true, c.APIKeys
	closed := start(t, off, own("m", plays(nil, says("hi"), stops)))
	for i := range dialects {
		d := &dialects[i]
		for _, tt := range []struct {
			server     *served
			model, key string
			status     int
		}{
			{s, "m", "wrong-key", 401}, {s, "nobody", callerKey, 404}, {closed, "m", callerKey, 404}, {s, "m", callerKey, 200},
		} {
			r := d.withFiles(tt.server, tt.model, url+"/report.pdf")
			r.Header.Set("Authorization", "Bearer "+tt.key)
			if got := tt.server.send(r); got.status != tt.status {
				t.Errorf("%s: %d, want %d: %s", d.endpoint, got.status, tt.status, got.body)
			}
		}
	}
	if n := hits.Load(); n != int64(len(dialects)) {
		t.Errorf("%d fetches for %d requests", n, len(dialects))
	}
}

// TestCallersLeaveFetches: who goes ends the fetch.
func TestCallersLeaveFetches(t *testing.T) {
	t.Parallel()
	asked, gone := make(chan bool), make(chan bool)
	files := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked <- true
		<-r.Context().Done()
		gone <- true
	}))
	defer files.Close()
	c := everywhere(table())
	c.HTTP.Fetch.AllowPrivate = true
	s := start(t, c, own("m", plays(nil, says("hi"), stops)))
	for i := range dialects {
		d := &dialects[i]
		ctx, leave := context.WithCancel(t.Context())
		var caller sync.WaitGroup
		caller.Go(func() {
			if response, err := s.client.Do(d.withFiles(s, "m", files.URL).WithContext(ctx)); err == nil {
				response.Body.Close()
				t.Errorf("%s: HTTP %d", d.endpoint, response.StatusCode)
			}
		})
		<-asked
		leave()
		<-gone
		caller.Wait()
	}
	eventually(t, "the lines of the log", func() bool { return len(s.json.with(`"outcome":"disconnect"`)) == len(dialects) })
	if m := s.metrics(); m.Requests != 0 || m.Refused.InvalidRequest != 0 {
		t.Errorf("%+v %+v", m.Counts, m.Refused)
	}
}
