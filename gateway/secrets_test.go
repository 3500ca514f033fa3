package gateway_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/gateway/config"
)

// TestErrorsAreNotShared: what a provider says of one caller's request is told to nobody else who has a key.
func TestErrorsAreNotShared(t *testing.T) {
	t.Parallel()
	for _, keys := range []string{"", "a", "ab"} {
		c := everywhere(table(chat(t, "m", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":{"message":"I will not pay with 4111","code":"card"}}`)
		})))
		for _, key := range keys {
			c.APIKeys = append(c.APIKeys, mmsp.NewSecret(string(key)))
		}
		s := start(t, c)
		for _, stream := range []bool{true, false} {
			r := chatDialect.request(s, "m", "hi", stream)
			r.Header.Set("X-Api-Key", "a")
			if got := s.send(r); got.status != 400 || !strings.Contains(got.body, "4111") {
				t.Errorf("%d %s", got.status, got.body)
			}
		}
		r := s.request("GET", "/v1/metrics", "")
		r.Header.Set("X-Api-Key", keys[max(len(keys)-1, 0):])
		got := s.send(r).body
		if shared := strings.Contains(got, "4111"); shared != (len(keys) < 2) || !strings.Contains(got, "card") && !shared {
			t.Errorf("%d keys: %s", len(keys), got)
		}
	}
}

// TestSecrets drives every kind of failure with an upstream that repeats what it was sent, and looks for the keys in
// all that comes out.
func TestSecrets(t *testing.T) {
	const (
		callerKey   = "canary-caller-key"
		wrongKey    = "canary-wrong-key"
		upstreamKey = `canary-"upstream"-key\ü` // JSON spells it differently
		headerKey   = "canary-header-value"
		tokenKey    = "canary/token"
	)
	traces := t.TempDir()
	t.Setenv("MMSP_CACHE_DIR", traces)

	echo := func(r *http.Request) string {
		sent, _ := json.Marshal(r.Header)
		sent = bytes.ReplaceAll(sent, []byte("/"), []byte(`\/`)) // as some languages spell it
		plain := fmt.Sprint(r.Header)
		both, _ := json.Marshal(plain)
		return `{"error":{"message":` + string(both) + `,"type":"t","code":"` + headerKey + `","headers":` + string(sent) + `}}`
	}
	var models []config.Model
	add := func(name string, handler http.HandlerFunc) {
		for _, clientType := range []string{"openai-chat", "openai-official", "anthropic-official", "mmsp"} {
			row := chat(t, clientType+" "+name, handler)
			row.ClientType, row.APIKey = clientType, mmsp.NewSecret(upstreamKey)
			row.Headers = map[string]mmsp.Secret{"X-Title": mmsp.NewSecret(headerKey), "X-Auth": mmsp.NewSecret("Token " + tokenKey)}
			models = append(models, row)
		}
	}
	for _, status := range []int{302, 400, 401, 403, 404, 429, 500, 529} {
		add(fmt.Sprint(status), func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Request-Id", tokenKey)
			w.WriteHeader(status)
			io.WriteString(w, echo(r))
		})
	}
	add("page", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "<html>%v", r.Header) })
	add("plain", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(500)
		fmt.Fprint(w, r.Header)
	})
	add("event", func(w http.ResponseWriter, r *http.Request) { flushes(w, "event: error\ndata: "+echo(r)+"\n\n") })
	add("unreadable", func(w http.ResponseWriter, r *http.Request) { flushes(w, fmt.Sprintf("data: {%v\n\n", r.Header)) })
	add("late", func(w http.ResponseWriter, r *http.Request) {
		flushes(w, chatDelta+"event: error\ndata: "+echo(r)+"\n\n")
	})
	add("no HTTP", func(w http.ResponseWriter, r *http.Request) {
		connection, _, _ := http.NewResponseController(w).Hijack()
		defer connection.Close()
		fmt.Fprintf(connection, "HTTP/1.1 %v\r\n", r.Header)
	})
	refused := chatRow("refused", "http://127.0.0.1:1")
	refused.APIKey = mmsp.NewSecret(upstreamKey)
	models = append(models, refused, chat(t, "good", func(w http.ResponseWriter, _ *http.Request) { flushes(w, chatDelta+chatEnd) }))

	c := everywhere(table(models...))
	c.APIKeys = []mmsp.Secret{mmsp.NewSecret(callerKey)}
	s := start(t, c, own("panics", script{prepare: func() error { panic("oh") }}))
	var out strings.Builder
	failures := 0
	note := func(got answer) {
		fmt.Fprintf(&out, "%d %v\n%s\n", got.status, got.header, got.body)
	}
	places := []func(*http.Request, string){
		func(r *http.Request, key string) { r.Header.Set("Authorization", "Bearer "+key) },
		func(r *http.Request, key string) { r.Header.Set("X-Api-Key", key) },
		func(r *http.Request, key string) { r.Header.Set("X-Goog-Api-Key", key) },
		func(r *http.Request, key string) { r.URL.RawQuery = "key=" + key },
	}
	for i, id := range s.Models() {
		body := strings.Replace(question(id), `"messages"`, fmt.Sprintf(`"config":{"trace_id":"t%d"},"messages"`, i), 1)
		r := s.request("POST", "/v1/stream", body)
		places[i%4](r, callerKey)
		got := s.send(r)
		if got.status != 200 || strings.Contains(got.body, `"error"`) {
			failures++
		}
		note(got)
		if id == "refused" && (strings.Contains(got.body, "127.0.0.1") || !strings.Contains(got.body, "connection refused")) {
			t.Errorf("where the provider stands: %s", got.body)
		}
		for j := range dialects {
			for _, stream := range []bool{false, true} {
				r := dialects[j].request(s, id, "hi", stream)
				places[(i+j)%4](r, callerKey)
				if strings.Contains(r.URL.RawQuery, "key=") && stream {
					r.URL.RawQuery += "&alt=sse"
				}
				note(s.send(r))
			}
		}
	}
	if failures != len(s.Models())-1 {
		t.Errorf("%d requests failed, want %d", failures, len(s.Models())-1)
	}
	for _, key := range []string{callerKey, wrongKey} {
		for _, place := range places {
			for _, path := range []string{"/v1/models", "/v1/metrics", "/v1/metrics?window=x", "/v1/nothing", "/v1beta/models/m:generateContent", "/readyz", "/"} {
				r := s.request("GET", path, "")
				place(r, key)
				note(s.send(r))
			}
			r := s.request("POST", "/v1/stream", "{")
			place(r, key)
			note(s.send(r))
		}
	}
	// What net/http itself refuses.
	for _, raw := range []string{"GET /v1/models?key=" + wrongKey + "; HTTP/1.1\r\n\r\n", "GET /v1/models?key=" + wrongKey + " HTTP/9\r\n\r\n", "GET / HTTP/1.1\r\nHost: s\r\nX-Api-Key " + wrongKey + "\r\n\r\n"} {
		connection, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		_ = connection.SetDeadline(time.Now().Add(time.Second))
		io.WriteString(connection, raw)
		answered, _ := io.ReadAll(bufio.NewReader(connection))
		out.Write(answered)
		connection.Close()
	}

	written := 0
	_ = fs.WalkDir(os.DirFS(traces), ".", func(path string, entry fs.DirEntry, _ error) error {
		if !entry.IsDir() {
			text, _ := fs.ReadFile(os.DirFS(traces), path)
			out.Write(text)
			written++
		}
		return nil
	})
	if written != 2 {
		t.Errorf("%d trace files", written)
	}
	for what, text := range map[string]string{"answers": out.String(), "the text log": s.text.String(), "the JSON log": s.json.String()} {
		if !strings.Contains(text, "[secret]") {
			t.Errorf("nothing was repeated in %s", what)
		}
		for rest := text; ; {
			_, after, found := strings.Cut(rest, "canary")
			if !found {
				break
			}
			t.Errorf("%s hold canary%.60s", what, after)
			rest = after
		}
	}
}

// TestPlaces: callers are not told where a provider stands, by whatever goes wrong there. The log tells.
func TestPlaces(t *testing.T) {
	t.Parallel()
	secure := httptest.NewTLSServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	t.Cleanup(secure.Close)
	port := secure.URL[strings.LastIndexByte(secure.URL, ':')+1:]
	repeats := chat(t, "", func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := net.SplitHostPort(r.Host)
		w.WriteHeader(400)
		fmt.Fprintf(w, `{"error":{"message":"no such thing at %s, which is http:\/\/%s\/v1","code":"at_%s"}}`, host, r.Host, host)
	})
	for _, tt := range []struct {
		name, url string
		hidden    []string // of what the log says
		told      string
	}{
		{"a certificate of others", "https://localhost:" + port, []string{"localhost", "example.com"}, "certificate"},
		{"a certificate of nobody's", secure.URL, []string{"unknown authority"}, "certificate"},
		{"no such host", "http://nowhere.invalid", []string{"nowhere.invalid"}, "no answer"},
		{"nobody there", "http://127.0.0.1:1", []string{"127.0.0.1"}, "connection refused"},
		{"one that says where it is", repeats.BaseURL, []string{"127.0.0.1"}, "no such thing at"},
		{"no TLS", strings.Replace(repeats.BaseURL, "http:", "https:", 1), nil, "TLS handshake"},
	} {
		s := start(t, everywhere(table(chatRow("m", tt.url))))
		answers := []answer{s.ask("m")}
		for i := range dialects {
			answers = append(answers, dialects[i].ask(s, "m", "hi", false), dialects[i].ask(s, "m", "hi", true))
		}
		for _, got := range answers {
			text := fmt.Sprint(got.header, got.body)
			if got.status < 400 || !strings.Contains(text, tt.told) || strings.Contains(text, port) || strings.Contains(text, "127.0.0.1") {
				t.Errorf("%s: %d %s", tt.name, got.status, text)
			}
			for _, hidden := range tt.hidden {
				if strings.Contains(text, hidden) {
					t.Errorf("%s: %s", tt.name, text)
				}
			}
		}
		for _, hidden := range tt.hidden {
			if lines := s.text.with(hidden); len(lines) != len(answers) {
				t.Errorf("%s: %d lines of the log tell of %s", tt.name, len(lines), hidden)
			}
		}
	}
}
