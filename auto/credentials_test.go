package auto_test

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/auto"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// credentialVars are the variables that vendors' own programs read. Each holds a canary of its own.
var credentialVars = []string{
	"OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_ORGANIZATION", "OPENAI_PROJECT_ID", "OPENAI_ADMIN_KEY", "OPENAI_WEBHOOK_SECRET", "AZURE_OPENAI_API_KEY",
	"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS", "CLAUDE_CODE_OAUTH_TOKEN",
	"GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENAI_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS",
	"DEEPSEEK_API_KEY", "ZAI_API_KEY", "MOONSHOT_API_KEY", "MINIMAX_API_KEY", "MMSP_API_KEY",
	"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK", "AWS_PROFILE",
	"OPENROUTER_API_KEY", "HF_TOKEN", "GROQ_API_KEY", "MISTRAL_API_KEY", "GITHUB_TOKEN",
}

func canary(variable string) string { return "canary-of-" + strings.ToLower(variable) }

// credentialRules says of every client type where its credential comes from and how it travels.
var credentialRules = map[string]struct {
	keyVar, urlVar string
	vendor         string // the endpoint that neither options nor environment name
	headers        []string
	keyless        bool // without any key the client is built, and asks only if it is open
	own            bool // the variable of the key is this client's alone and serves any endpoint
	open           bool // a given URL without a key is asked without one
}{
	"openai-official":          {keyVar: "OPENAI_API_KEY", urlVar: "OPENAI_BASE_URL", vendor: "https://api.openai.com", headers: []string{"Authorization: Bearer "}},
	"openai-responses":         {keyVar: "OPENAI_API_KEY", urlVar: "OPENAI_BASE_URL", vendor: "https://api.openai.com", headers: []string{"Authorization: Bearer "}},
	"openai-chat":              {keyVar: "OPENAI_API_KEY", urlVar: "OPENAI_BASE_URL", vendor: "https://api.openai.com", headers: []string{"Authorization: Bearer "}},
	"openai-chat-vllm-adapter": {keyVar: "OPENAI_API_KEY", urlVar: "OPENAI_BASE_URL", vendor: "https://api.openai.com", headers: []string{"Authorization: Bearer "}},
	"google-official":          {keyVar: "GEMINI_API_KEY", urlVar: "GEMINI_BASE_URL", vendor: "https://generativelanguage.googleapis.com", headers: []string{"X-Goog-Api-Key: "}, own: true},
	"zai-official":             {keyVar: "ZAI_API_KEY", urlVar: "ZAI_BASE_URL", vendor: "https://api.z.ai", headers: []string{"Authorization: Bearer "}, own: true},
	"moonshot-official":        {keyVar: "MOONSHOT_API_KEY", urlVar: "MOONSHOT_BASE_URL", vendor: "https://api.moonshot.cn", headers: []string{"Authorization: Bearer "}, own: true},
	"deepseek-official":        {keyVar: "DEEPSEEK_API_KEY", urlVar: "DEEPSEEK_BASE_URL", vendor: "https://api.deepseek.com", headers: []string{"Authorization: Bearer "}, own: true},
	"minimax-official":         {keyVar: "MINIMAX_API_KEY", urlVar: "MINIMAX_BASE_URL", vendor: "https://api.minimax.io", headers: []string{"Authorization: Bearer "}, own: true},
	"openai-embedding":         {keyVar: "OPENAI_API_KEY", urlVar: "OPENAI_BASE_URL", vendor: "https://api.openai.com", headers: []string{"Authorization: Bearer "}},
	"anthropic-official":       {keyVar: "ANTHROPIC_API_KEY", urlVar: "ANTHROPIC_BASE_URL", vendor: "https://api.anthropic.com", headers: []string{"X-Api-Key: "}, keyless: true},
	"ant-messages":             {keyVar: "ANTHROPIC_API_KEY", urlVar: "ANTHROPIC_BASE_URL", vendor: "https://api.anthropic.com", headers: []string{"Authorization: Bearer ", "X-Api-Key: "}, keyless: true},
	"google-genai":             {keyVar: "GEMINI_API_KEY", urlVar: "GEMINI_BASE_URL", vendor: "https://generativelanguage.googleapis.com", headers: []string{"X-Goog-Api-Key: "}},
	"mmsp":                     {keyVar: "MMSP_API_KEY", urlVar: "MMSP_BASE_URL", vendor: "http://127.0.0.1:25752", headers: []string{"Authorization: Bearer "}, keyless: true, open: true},
}

// credentialHeaders are all that a credential could travel in.
var credentialHeaders = []string{"Authorization", "Proxy-Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key", "X-Amz-Security-Token", "Cookie"}

// detour sends every request to one server, whatever host it is for, and keeps the address it was meant for.
type detour struct {
	t         *testing.T
	transport http.RoundTripper
	to        *url.URL
	urls      []string
}

func (d *detour) RoundTrip(r *http.Request) (*http.Response, error) {
	d.urls = append(d.urls, r.URL.String())
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host = d.to.Scheme, d.to.Host
	return d.transport.RoundTrip(r)
}

// TestCredentials: a credential goes only where it was given for. Every client type is built with and without a key,
// with and without a URL, in every kind of environment; what reaches the wire is read whole.
func TestCredentials(t *testing.T) {
	var received []*http.Request
	var dumps []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		dump, err := httputil.DumpRequest(r, true)
		if err != nil {
			t.Error(err)
		}
		received, dumps = append(received, r), append(dumps, string(dump))
		w.WriteHeader(http.StatusNotFound)
		io.WriteString(w, `{"error":{"message":"none here"}}`)
	}))
	defer server.Close()
	to, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	// What the process holds must not matter to a client that was given an environment.
	for _, name := range credentialVars {
		t.Setenv(name, "canary-of-the-process")
	}
	for _, name := range []string{"OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "ZAI_BASE_URL", "MOONSHOT_BASE_URL", "DEEPSEEK_BASE_URL", "MINIMAX_BASE_URL", "MMSP_BASE_URL"} {
		t.Setenv(name, "https://process.test")
	}

	yes := []bool{false, true}
	for _, typ := range auto.Types() {
		rule, ok := credentialRules[typ.Name]
		if !ok {
			t.Errorf("%s has no rule", typ.Name)
			continue
		}
		if typ.KeyVar != "" && typ.KeyVar != rule.keyVar {
			t.Errorf("%s says %s", typ.Name, typ.KeyVar)
		}
		for n := range 16 {
			keyGiven, urlGiven, keyInEnv, urlInEnv := yes[n&1], yes[n>>1&1], yes[n>>2&1], yes[n>>3&1]
			t.Run(fmt.Sprintf("%s/key=%v,url=%v,env key=%v,env url=%v", typ.Name, keyGiven, urlGiven, keyInEnv, urlInEnv), func(t *testing.T) {
				env := map[string]string{"CLIENT_TYPE": "mmsp"} // named types win over it
				for _, name := range credentialVars {
					env[name] = canary(name)
				}
				for other := range maps.Values(credentialRules) {
					env[other.urlVar] = "https://other.test"
				}
				delete(env, rule.keyVar)
				delete(env, rule.urlVar)
				if keyInEnv {
					env[rule.keyVar] = canary(rule.keyVar)
				}
				key, at := env[rule.keyVar], rule.vendor
				if urlInEnv {
					env[rule.urlVar] = "https://environment.test/base"
					at = "https://environment.test"
				}
				redirect := &detour{t: t, transport: server.Client().Transport, to: to}
				o := mmsp.Options{ClientType: typ.Name, HTTPClient: &http.Client{Transport: redirect}, Getenv: func(name string) string { return env[name] }}
				o.HTTP.MaxRetries = new(0)
				if keyGiven {
					o.APIKey, key = mmsp.NewSecret("given-key"), "given-key"
				}
				if urlGiven {
					o.BaseURL, at = "https://given.test/base", "https://given.test"
				}

				client, err := auto.New("model-1", o)
				switch {
				case keyGiven:
				case urlGiven && rule.open:
					key = "" // the environment's key is not for this server
				case urlGiven && !rule.own, key == "" && !rule.keyless:
					if err == nil || !strings.Contains(err.Error(), rule.keyVar) || strings.Contains(err.Error(), "canary") {
						t.Errorf("built without a key, or not saying why: %v", err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				received, dumps = nil, nil
				if err := mmsp.CheckStream(client.StreamingResponse(t.Context(), []mmsp.Message{mmsp.UserMessage(mmsp.Text("hi"))}, nil)); err == nil {
					t.Error("the stream has no error")
				} else {
					dumps = append(dumps, fmt.Sprintf("%v %+v %#v", err, err, err), string(mmsp.AppendErrorJSON(nil, err)))
				}
				if _, err := client.ListModels(t.Context()); err == nil {
					t.Error("the list has no error")
				}

				var want []string
				for _, header := range rule.headers {
					if key != "" {
						want = append(want, header+key)
					}
				}
				requests := 2
				if key == "" && !rule.open { // without a key nothing goes out
					requests = 0
				}
				if len(received) != requests {
					t.Fatalf("%d requests", len(received))
				}
				for i, r := range received {
					var got []string
					for _, name := range credentialHeaders {
						for _, value := range r.Header[name] {
							got = append(got, name+": "+value)
						}
					}
					if !slices.Equal(got, want) {
						t.Errorf("%s %s got %q, want %q", r.Method, r.URL, got, want)
					}
					if !strings.HasPrefix(redirect.urls[i], at+"/") {
						t.Errorf("sent to %s, want %s", redirect.urls[i], at)
					}
				}
				whole := strings.Join(append(dumps, redirect.urls...), "\n")
				for _, header := range want {
					whole = strings.ReplaceAll(whole, header, "")
				}
				for _, secret := range []string{"canary", "given-key"} {
					if strings.Contains(strings.ToLower(whole), secret) {
						t.Errorf("%s is elsewhere too:\n%s", secret, whole)
					}
				}
			})
		}
	}
}

// TestSecretsStayHidden: however a client is printed, its key is not.
func TestSecretsStayHidden(t *testing.T) {
	for _, typ := range auto.Types() {
		p, err := typ.New(mmsp.Options{Model: "m", APIKey: mmsp.NewSecret("canary-key"), BaseURL: "https://given.test", Getenv: func(string) string { return "" }})
		if err != nil {
			t.Fatal(err)
		}
		if out := fmt.Appendf(nil, "%v %+v %#v %s %q", p, p, p, p, p); bytes.Contains(out, []byte("canary")) {
			t.Errorf("%s prints its key: %s", typ.Name, out)
		}
	}
}
