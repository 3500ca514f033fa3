package simulate

import (
	"bytes"
	"encoding/csv"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// recording is a request that a real provider answered.
type recording struct {
	protocol, path, model, route string
	status                       string
	streaming                    bool
	request, answer              []byte
}

// replays returns the recorded requests in whose history the model has spoken.
func replays(t *testing.T) (all []recording) {
	t.Helper()
	corpus := os.Getenv("MMSP_CORPUS")
	if corpus == "" {
		t.Skip("MMSP_CORPUS is not set")
	}
	file, err := os.Open(filepath.Join(corpus, "MANIFEST.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	reader := csv.NewReader(file)
	reader.Comma, reader.LazyQuotes = '\t', true
	rows, err := reader.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	column := map[string]int{}
	for i, name := range rows[0] {
		column[name] = i
	}
	replayed := regexp.MustCompile(`"role":\s*"(assistant|model)"|"type":\s*"(function_call|reasoning)"`)
	for _, row := range rows[1:] {
		at := func(name string) string { return row[column[name]] }
		directory := filepath.Join(corpus, at("path"))
		request, err := os.ReadFile(filepath.Join(directory, "request.json"))
		if err != nil || !replayed.Match(request) {
			continue
		}
		answer, _ := os.ReadFile(filepath.Join(directory, "response.json"))
		all = append(all, recording{
			at("protocol"), at("path"), at("model"), at("request_path"), at("http_status"), at("streaming") == "yes", request, answer,
		})
	}
	return all
}

// TestRecordedReplays makes sure that what a real provider took as the history of a conversation is taken here, too: all
// checks but that of the proof itself, which only its issuer can make. With that check, histories with proofs are
// refused. What the real one refused was so for the documents that the history points to, which are not simulated.
func TestRecordedReplays(t *testing.T) {
	refusedDocument := regexp.MustCompile(`unsupported_file|Cannot fetch content from the provided URL`)
	foreign := regexp.MustCompile("Invalid `signature` in `thinking` block|could not be verified|Corrupted thought signature")
	providers := map[string]func(Options) *Provider{
		"openai-chat": Chat, "openai-responses": Responses, "anthropic-messages": Messages, "gemini-generate-content": Gemini,
	}
	routes := map[string]string{
		"openai-chat": "/v1/chat/completions", "openai-responses": "/v1/responses", "anthropic-messages": "/v1/messages",
	}
	counts, proofs := map[string]int{}, 0
	for _, r := range replays(t) {
		make, ok := providers[r.protocol]
		if !ok {
			continue // Converse and embeddings are not simulated
		}
		options := Options{RawReasoning: strings.Contains(r.path, "/deepseek-")} // shows its reasoning and takes it back
		route := routes[r.protocol]
		switch {
		case strings.Contains(r.path, "/bedrock-"):
			make, route = Bedrock, r.route
		case r.protocol == "gemini-generate-content":
			method := ":generateContent"
			if r.streaming {
				method = ":streamGenerateContent?alt=sse"
			}
			route = "/v1beta/models/" + r.model + method
		}
		provider := make(options)
		shown := 0
		provider.sealer.trusted = func(proof string) bool { shown++; return len(proof) > 40 }
		t.Run(r.path, func(t *testing.T) {
			counts[r.protocol]++
			post := func() *httptest.ResponseRecorder {
				w := httptest.NewRecorder()
				request := httptest.NewRequest(http.MethodPost, route, bytes.NewReader(r.request))
				request.Header.Set("Anthropic-Version", "2023-06-01")
				provider.ServeHTTP(w, request)
				return w
			}
			w := post()
			if r.status != "200" && !refusedDocument.Match(r.answer) {
				t.Fatalf("recorded with %s: %.400s", r.status, r.answer)
			}
			if w.Code != http.StatusOK {
				t.Errorf("refused with %d: %.400s", w.Code, w.Body)
			}
			if proofs += shown; shown == 0 {
				return
			}
			provider.sealer.trusted = nil
			if w := post(); w.Code != http.StatusBadRequest || !foreign.Match(w.Body.Bytes()) {
				t.Errorf("foreign proofs: %d, %.400s", w.Code, w.Body)
			}
		})
	}
	t.Logf("%v recordings, %d proofs", counts, proofs)
	for protocol := range providers {
		if counts[protocol] == 0 {
			t.Errorf("no recording of %s", protocol)
		}
	}
	if proofs == 0 {
		t.Error("no proof in them")
	}
}
