package gateway_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/gateway/config"
)

// TestGeminiRoutes: what is asked of a model stands under either version, however the path is escaped; what is read, under
// v1beta alone.
func TestGeminiRoutes(t *testing.T) {
	t.Parallel()
	c := table()
	c.HTTP.Endpoints.Enable("generateContent")
	hi := plays(nil, says("hi"), stops)
	s := start(t, c, own("m", hi), own("a/b", hi), own("x:free", hi), own("tunedModels/t", hi))
	for _, tt := range []struct {
		method, path string
		status       int
		says, allow  string
	}{
		{"POST", "/v1beta/models/m:generateContent", 200, `"text":"hi"`, ""},
		{"POST", "/v1/models/m:generateContent", 200, `"text":"hi"`, ""},
		{"POST", "/v1/models/m:streamGenerateContent?alt=sse", 200, `"text":"hi"`, ""},
		{"POST", "/v1/models/m:countTokens", 200, `"totalTokens"`, ""},
		{"POST", "/v1/models/m:embedContent", 400, `"INVALID_ARGUMENT"`, ""},
		{"POST", "/v1/models/m:batchEmbedContents", 400, `"INVALID_ARGUMENT"`, ""},
		{"POST", "/v1beta/models%2Fm:generateContent", 200, `"text":"hi"`, ""},
		{"POST", "/v1%2Fmodels%2Fm%3AgenerateContent", 200, `"text":"hi"`, ""},
		{"POST", "/v1/models/a/b:generateContent", 200, `"modelVersion":"a/b"`, ""},
		{"POST", "/v1beta/a/b:generateContent", 200, `"modelVersion":"a/b"`, ""},
		{"POST", "/v1beta/models/x%3Afree:generateContent", 200, `"modelVersion":"x:free"`, ""},
		{"POST", "/v1beta/tunedModels/t:generateContent", 200, `"modelVersion":"tunedModels/t"`, ""},
		{"POST", "/v1/tunedModels/gone:generateContent", 404, `"NOT_FOUND"`, ""},
		{"POST", "/v1/models/gone:generateContent", 404, `"NOT_FOUND"`, ""},
		{"POST", "/v1beta/models/m:predict", 404, `"NOT_FOUND"`, ""},
		{"POST", "/v1/models/m:predict", 404, `"NotFoundError"`, ""},
		{"POST", "/v2/models/m:generateContent", 404, `"NotFoundError"`, ""},

		{"GET", "/v1beta/models", 200, `"models/a/b"`, ""},
		{"GET", "/v1beta/models/m", 200, `"name":"models/m"`, ""},
		{"GET", "/v1beta/models/a%2Fb", 200, `"name":"models/a/b"`, ""},
		{"GET", "/v1beta/models/x:free", 200, `"name":"models/x:free"`, ""},
		{"GET", "/v1beta/models/gone:free", 404, `"NOT_FOUND"`, ""},
		{"GET", "/v1beta/tunedModels/gone", 404, `"NOT_FOUND"`, ""},
		{"GET", "/v1/models/x:free", 200, `"object":"model"`, ""},
		{"GET", "/v1/models/m:generateContent", 404, `"NotFoundError"`, ""},

		{"POST", "/v1beta/models", 405, "POST is not possible here; GET is", "GET"},
		{"DELETE", "/v1beta/models", 405, "DELETE is not possible here; GET is", "GET"},
		{"POST", "/v1beta/models/m", 405, "POST is not possible here; GET is", "GET"},
		{"GET", "/v1beta/models/m:generateContent", 405, "GET is not possible here; POST is", "POST"},
	} {
		r := s.request(tt.method, "/", map[string]string{"POST": `{"contents":[{"parts":[{"text":"hi"}]}],"content":{"parts":[{"text":"hi"}]},"requests":[{"content":{"parts":[{"text":"hi"}]}}]}`}[tt.method])
		r.URL.Opaque = tt.path // as it stands
		if got := s.send(r); got.status != tt.status || !strings.Contains(got.body, tt.says) || got.header.Get("Allow") != tt.allow {
			t.Errorf("%s %s: %d %q %s", tt.method, tt.path, got.status, got.header.Get("Allow"), got.body)
		}
	}
	off := start(t, table(), own("m", hi))
	if got := off.send(off.request("POST", "/v1/models/m:generateContent", `{}`)); got.status != http.StatusNotFound || !strings.Contains(got.body, "generateContent.enabled") {
		t.Errorf("an endpoint that is off: %d %s", got.status, got.body)
	}
}

// TestGeminiModels: what a model makes comes from its client, and what it takes from the registry, never from the id that
// it is served under.
func TestGeminiModels(t *testing.T) {
	t.Parallel()
	key := mmsp.NewSecret("upstream-key")
	c := table(
		config.Model{ServerModelID: "embedder", ModelID: "gemini-3.8-flash", ClientType: "google-official", APIKey: key},
		config.Model{ServerModelID: "pro", ModelID: "gemini-embedding-2", ClientType: "google-official", APIKey: key},
		config.Model{ServerModelID: "open", ModelID: "openai/gpt-5.5", ClientType: "openai-responses", BaseURL: "https://openrouter.ai/api/v1/", APIKey: key},
		config.Model{ServerModelID: "elsewhere", ModelID: "gemini-3.8-flash", ClientType: "google-official", BaseURL: "http://127.0.0.1:1", APIKey: key},
	)
	c.HTTP.Endpoints.Enable("generateContent")
	s := start(t, c)
	const answers = `"supportedGenerationMethods":["generateContent","streamGenerateContent","countTokens"]}`
	want := []string{
		`{"name":"models/embedder","version":"","displayName":"embedder","description":"","inputTokenLimit":1048576,` + answers,
		`{"name":"models/pro","version":"","displayName":"pro","description":"","supportedGenerationMethods":["embedContent","batchEmbedContents"]}`,
		`{"name":"models/open","version":"","displayName":"open","description":"","inputTokenLimit":1050000,` + answers,
		`{"name":"models/elsewhere","version":"","displayName":"elsewhere","description":"",` + answers,
	}
	if got := s.get("/v1beta/models").body; got != `{"models":[`+strings.Join(want, ",")+`]}` {
		t.Error(got)
	}
	if got := s.get("/v1beta/models/embedder").body; got != want[0] {
		t.Error(got)
	}
}

// TestBlockedPrompts: what Gemini tells of a prompt that it does not answer reaches its callers as such, and another server's
// callers, too; those of other protocols are told of a filter.
func TestBlockedPrompts(t *testing.T) {
	t.Parallel()
	inner := start(t, everywhere(table(simulated(t)...)))
	s := start(t, everywhere(table(config.Model{ServerModelID: "relayed", ModelID: "google-genai", ClientType: "mmsp", BaseURL: inner.url + "/v1"})))
	for i := range dialects {
		d := &dialects[i]
		want := map[string]string{
			"responses": `"content_filter"`, "chatCompletions": `"content_filter"`, "messages": `"stop_reason":"refusal"`, "generateContent": `{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"}`,
		}[d.endpoint]
		for _, stream := range []bool{false, true} {
			for server, model := range map[*served]string{inner: "google-genai", s: "relayed"} {
				if got := d.ask(server, model, "block this", stream); got.status != 200 || !strings.Contains(got.body, want) {
					t.Errorf("%s of %s, stream %v: %d %s", d.endpoint, model, stream, got.status, got.body)
				}
			}
		}
	}
}

// TestMedia: pictures and speech are asked for where a row's client has a word for them, and the caller is told where it has
// none.
// TestPicturesStayBehind: a conversation goes on at a model that takes back no picture, and the caller is told of what it sent.
func TestPicturesStayBehind(t *testing.T) {
	t.Parallel()
	s := start(t, everywhere(table(simulated(t)...)))
	post := func(path, body, dropped string) (answer struct {
		ID      string
		Choices []struct{ Message json.RawMessage }
	},
	) {
		t.Helper()
		got := s.send(s.request("POST", path, body))
		if got.status != 200 || got.header.Get("X-Mmsp-Dropped") != dropped || json.Unmarshal([]byte(got.body), &answer) != nil {
			t.Fatalf("%s %s: %d, dropped %q: %s", path, body, got.status, got.header.Get("X-Mmsp-Dropped"), got.body)
		}
		return answer
	}
	painted := post("/v1/responses", `{"model":"google-official","input":"paint a cat"}`, "")
	post("/v1/responses", `{"model":"ant-messages","previous_response_id":"`+painted.ID+`","input":"Hi"}`, "previous_response_id (inline_data)")
	ask := `{"role":"user","content":"think, paint a dog"}`
	message := string(post("/v1/chat/completions", `{"model":"google-official","reasoning_effort":"high","messages":[`+ask+`]}`, "").Choices[0].Message)
	if !strings.Contains(message, `"images"`) {
		t.Fatal(message)
	}
	bare := `{"role":"assistant","content":""}`
	trimmed := `{"role":"assistant","content":"","images":[{"image_url":{"url":"data:image/png;base64,<omitted>"}}]}`
	const url = "messages[1].images[0].image_url.url (inline_data)"
	for _, back := range []struct{ message, dropped string }{{message, url}, {bare, ""}, {trimmed, url}} {
		for _, model := range []string{"openai-chat", "ant-messages", "openai-responses"} {
			post("/v1/chat/completions", `{"model":"`+model+`","messages":[`+ask+`,`+back.message+`,`+ask+`]}`, back.dropped)
		}
	}
}

// TestNamesOfWhatWasShown: each item that a response shows can be named in the next request.
func TestNamesOfWhatWasShown(t *testing.T) {
	t.Parallel()
	s := start(t, everywhere(table(simulated(t)...)))
	for _, prompt := range []string{"refuse", "empty", "call length", "think"} {
		var shown struct{ Output []struct{ ID string } }
		got := s.send(s.request("POST", "/v1/responses", `{"model":"ant-messages","input":"`+prompt+`","reasoning":{"effort":"high"},"tools":[{"type":"function","name":"look"}]}`))
		if json.Unmarshal([]byte(got.body), &shown) != nil || len(shown.Output) == 0 {
			t.Fatal(got.body)
		}
		input := `{"role":"user","content":"` + prompt + `"}`
		for _, item := range shown.Output {
			input += `,{"type":"item_reference","id":"` + item.ID + `"}`
		}
		if got := s.send(s.request("POST", "/v1/responses", `{"model":"ant-messages","input":[`+input+`,{"role":"user","content":"Hi"}]}`)); got.status != 200 {
			t.Errorf("%s: %d %s", prompt, got.status, got.body)
		}
	}
}

func TestMedia(t *testing.T) {
	t.Parallel()
	rows := simulated(t)
	for _, row := range rows {
		if strings.HasPrefix(row.ClientType, "google") {
			row.ServerModelID, row.ModelID = row.ClientType+" speaks", "gemini-3.8-flash-tts"
			rows = append(rows, row)
		}
	}
	inner := start(t, everywhere(table(rows...)))
	relay := config.Model{ServerModelID: "relay", ModelID: "google-genai", ClientType: "mmsp", BaseURL: inner.url + "/v1"}
	strict := rows[0]
	strict.ServerModelID, strict.Strict = "strict", true
	s := start(t, everywhere(table(append(rows, relay, strict)...)))
	const (
		pictures = `"responseModalities":["TEXT","IMAGE"],"imageConfig":{"aspectRatio":"1:1"}`
		image    = `"responseModalities":["IMAGE"]`
		speech   = `"responseModalities":["AUDIO"],"speechConfig":{"voiceConfig":{"prebuiltVoiceConfig":{"voiceName":"Kore"}}}`
	)
	for _, tt := range []struct {
		model, asks, says, dropped string
	}{
		{"google-genai", pictures, `"mimeType":"image/`, ""},
		{"google-genai", image, `"mimeType":"image/`, ""},
		{"google-official", pictures, `"mimeType":"image/`, ""},
		{"google-official", image, `"mimeType":"image/`, ""},
		{"relay", image, `"mimeType":"image/`, ""},
		{"google-genai speaks", speech, `"mimeType":"audio/`, ""},
		{"google-official speaks", speech, `"mimeType":"audio/`, ""},
		{"google-genai speaks", image, `"mimeType":"audio/`, "generationConfig.responseModalities[0] (IMAGE)"},
		{"google-genai", speech, `"text"`, "generationConfig.responseModalities[0] (AUDIO), generationConfig.speechConfig"},
		{"google-official", speech, `"text"`, "generationConfig.responseModalities[0] (AUDIO), generationConfig.speechConfig"},
		{"openai-chat", pictures, `"text"`, "generationConfig.responseModalities[1] (IMAGE), generationConfig.imageConfig"},
		{"ant-messages", speech, `"text"`, "generationConfig.responseModalities[0] (AUDIO), generationConfig.speechConfig"},
		{"strict", image, "generationConfig.responseModalities[0] (IMAGE)", ""},
	} {
		path := "/v1beta/models/" + strings.ReplaceAll(tt.model, " ", "%20") + ":generateContent"
		got := s.send(s.request("POST", path, `{"contents":[{"parts":[{"text":"hi"}]}],"generationConfig":{`+tt.asks+`}}`))
		want := http.StatusOK
		if tt.model == "strict" {
			want = http.StatusBadRequest
		}
		if got.status != want || !strings.Contains(got.body, tt.says) || got.header.Get("X-Mmsp-Dropped") != tt.dropped {
			t.Errorf("%s, %s: %d %q %.300s", tt.model, tt.asks, got.status, got.header.Get("X-Mmsp-Dropped"), got.body)
		}
	}
}
