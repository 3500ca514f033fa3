package googlegenai

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prism-shadow/mmsp-go"
)

var privateKey = sync.OnceValue(func() string {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
})

// serviceAccount is a key, with fields changed: nil takes one out.
func serviceAccount(t testing.TB, change ...map[string]any) string {
	t.Helper()
	key := map[string]any{
		"type": "service_account", "project_id": "harbour-7", "private_key_id": "kid-1", "private_key": privateKey(),
		"client_email": "robot@harbour-7.test", "token_uri": "https://token.test/token",
	}
	for _, c := range change {
		for name, value := range c {
			if key[name] = value; value == nil {
				delete(key, name)
			}
		}
	}
	text, err := json.MarshalIndent(key, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func reply(status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}
}

const answered = `data: {"candidates":[{"content":{"parts":[{"text":"Yes"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1}}` + "\n\n"

// cloud is a token endpoint and Vertex AI in memory. Tokens are t1, t2, …
type cloud struct {
	tokens   int
	answer   func(number int) *http.Response // of the token endpoint; nil: a token for an hour
	refuse   map[string]bool                 // access tokens that Vertex AI refuses
	requests []string                        // "token" or the credential of the others
	form     url.Values                      // of the last request for a token
}

func (c *cloud) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if r.URL.Host == "token.test" {
		c.requests = append(c.requests, "token")
		body, _ := io.ReadAll(r.Body)
		c.form, _ = url.ParseQuery(string(body))
		c.tokens++
		if c.answer != nil {
			return c.answer(c.tokens), nil
		}
		return reply(200, fmt.Sprintf(`{"access_token":"t%d","expires_in":3600,"token_type":"Bearer"}`, c.tokens)), nil
	}
	credential := r.Header.Get("Authorization")
	c.requests = append(c.requests, credential)
	if r.Header.Get("X-Goog-Api-Key") != "" || r.URL.Host != "aiplatform.googleapis.com" {
		return reply(500, `{"error":{"message":"misdirected"}}`), nil
	}
	if c.refuse[credential] {
		return reply(401, `{"error":{"code":401,"message":"expired","status":"UNAUTHENTICATED"}}`), nil
	}
	return reply(200, answered), nil
}

func (c *cloud) client(t testing.TB) *mmsp.Client {
	return mmsp.NewClient(build(t, "gemini-3.8-flash", func(o *mmsp.Options) {
		o.APIKey, o.HTTPClient = mmsp.NewSecret(serviceAccount(t)), &http.Client{Transport: c}
	}))
}

func ask(t testing.TB, client *mmsp.Client) error {
	t.Helper()
	return mmsp.CheckStream(client.StreamingResponse(t.Context(), []mmsp.Message{mmsp.UserMessage(mmsp.Text("Hi"))}, nil))
}

// A token is asked for once, replaced before it expires, and asked for anew when it is refused.
func TestTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &cloud{refuse: map[string]bool{}}
		client := c.client(t)
		steps := []struct {
			wait   time.Duration
			refuse string
			want   string
		}{
			{0, "", "token,Bearer t1"},
			{0, "", "Bearer t1"},
			{58 * time.Minute, "", "Bearer t1"},
			{61 * time.Second, "", "token,Bearer t2"},
			{0, "Bearer t2", "Bearer t2,token,Bearer t3"},
			{2 * time.Hour, "", "token,Bearer t4"},
		}
		for i, step := range steps {
			time.Sleep(step.wait)
			c.requests, c.refuse[step.refuse] = nil, true
			if err := ask(t, client); err != nil || strings.Join(c.requests, ",") != step.want {
				t.Errorf("step %d: %s (%v), want %s", i, c.requests, err, step.want)
			}
		}
		c.refuse["Bearer t4"], c.refuse["Bearer t5"], c.requests = true, true, nil
		var failure *mmsp.UpstreamError
		if err := ask(t, client); !errors.As(err, &failure) || failure.Status != 401 || len(c.requests) != 3 {
			t.Errorf("refused twice: %v after %s", err, c.requests)
		}
	})
}

// The assertion says who asks for what, to whom.
func TestAssertion(t *testing.T) {
	c := &cloud{}
	if err := ask(t, c.client(t)); err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(c.form.Get("assertion"), ".")
	if c.form.Get("grant_type") != "urn:ietf:params:oauth:grant-type:jwt-bearer" || len(parts) != 3 {
		t.Fatalf("%v", c.form)
	}
	decode := func(text string) (fields map[string]any) {
		data, err := base64.RawURLEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		parse(t, string(data), &fields)
		return fields
	}
	header, claims := decode(parts[0]), decode(parts[1])
	if header["alg"] != "RS256" || header["kid"] != "kid-1" || claims["iss"] != "robot@harbour-7.test" ||
		claims["scope"] != "https://www.googleapis.com/auth/cloud-platform" || claims["aud"] != "https://token.test/token" {
		t.Errorf("%v %v", header, claims)
	}
}

// What goes wrong at the token endpoint is an UpstreamError without the assertion, and no request goes out.
func TestTokenErrors(t *testing.T) {
	var c *cloud
	for _, row := range []struct {
		name    string
		answer  func(int) *http.Response
		status  int
		message string
	}{
		{"refused", func(int) *http.Response {
			return reply(400, `{"error":"invalid_grant","error_description":"Bad assertion `+c.form.Get("assertion")+`"}`)
		}, 401, "the service account got no access token: invalid_grant Bad assertion […]"},
		{"refused without a word", func(int) *http.Response { return reply(403, "") }, 401, "the service account got no access token: the provider answered with status 403 Forbidden"},
		{"down", func(int) *http.Response { return reply(503, `{"error":{"message":"later"}}`) }, 503, "the service account got no access token"},
		{"sent elsewhere", func(int) *http.Response {
			r := reply(307, "")
			r.Header.Set("Location", "https://elsewhere.test/")
			return r
		}, 401, "the service account got no access token"},
		{"a page", func(int) *http.Response { return reply(200, "<html>") }, 0, "the token endpoint of the service account answered with something else than a token"},
		{"no token", func(int) *http.Response { return reply(200, `{}`) }, 0, "the token endpoint of the service account answered with something else than a token"},
		{"a token of two lines", func(int) *http.Response { return reply(200, `{"access_token":"a\r\nX: y","expires_in":9}`) }, 0, "the token endpoint"},
	} {
		t.Run(row.name, func(t *testing.T) {
			c = &cloud{answer: row.answer}
			var failure *mmsp.UpstreamError
			err := ask(t, c.client(t))
			if !errors.As(err, &failure) || failure.Status != row.status || failure.Client != class || !strings.HasPrefix(failure.Message, row.message) {
				t.Errorf("%T %v", err, err)
			}
			for _, secret := range []string{c.form.Get("assertion"), privateKey()[100:140]} {
				if strings.Contains(fmt.Sprintf("%+v %s", failure, mmsp.AppendErrorJSON(nil, err)), secret) {
					t.Errorf("the error shows a secret: %v", err)
				}
			}
			if strings.Join(c.requests, ",") != "token" {
				t.Errorf("requests %s", c.requests)
			}
		})
	}
}

// Callers that come at once share one token, and one who leaves meanwhile leaves the others their turn.
func TestTokenTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		tokens := 0
		slow := transport(func(r *http.Request) (*http.Response, error) {
			if r.URL.Host != "token.test" {
				return reply(200, answered), nil
			}
			select {
			case <-time.After(time.Second):
			case <-r.Context().Done():
				return nil, r.Context().Err()
			}
			mu.Lock()
			defer mu.Unlock()
			tokens++
			return reply(200, fmt.Sprintf(`{"access_token":"t%d","expires_in":3600}`, tokens)), nil
		})
		client := mmsp.NewClient(build(t, "m", func(o *mmsp.Options) {
			o.APIKey, o.HTTPClient = mmsp.NewSecret(serviceAccount(t)), &http.Client{Transport: slow}
		}))
		leaving, leave := context.WithCancel(t.Context())
		time.AfterFunc(300*time.Millisecond, leave)
		var group sync.WaitGroup
		for i := range 5 {
			ctx := t.Context()
			if i < 2 {
				ctx = leaving
			}
			group.Go(func() {
				begin := time.Now()
				err := mmsp.CheckStream(client.StreamingResponse(ctx, []mmsp.Message{mmsp.UserMessage(mmsp.Text("Hi"))}, nil))
				if i < 2 && (!errors.Is(err, context.Canceled) || time.Since(begin) > 400*time.Millisecond) || i >= 2 && err != nil {
					t.Errorf("caller %d: %v after %v", i, err, time.Since(begin))
				}
			})
			time.Sleep(time.Millisecond)
		}
		group.Wait()
		if tokens != 1 {
			t.Errorf("%d tokens", tokens)
		}
	})
}

// A key in the wrong form is refused with the form that is wanted and no part of the key.
func TestAccountForms(t *testing.T) {
	ec := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: []byte("canary")}))
	for name, key := range map[string]string{
		"not JSON":          `{"canary`,
		"another kind":      serviceAccount(t, map[string]any{"type": "external_account", "credential_source": map[string]any{"url": "https://canary.test"}}),
		"a list":            `{"type":["canary"]}`,
		"no project":        serviceAccount(t, map[string]any{"project_id": nil}),
		"a path":            serviceAccount(t, map[string]any{"project_id": "../canary"}),
		"dots":              serviceAccount(t, map[string]any{"project_id": ".."}),
		"no mail":           serviceAccount(t, map[string]any{"client_email": nil}),
		"no private key":    serviceAccount(t, map[string]any{"private_key": nil}),
		"no PEM":            serviceAccount(t, map[string]any{"private_key": "canary"}),
		"no RSA key":        serviceAccount(t, map[string]any{"private_key": ec}),
		"a plain token_uri": serviceAccount(t, map[string]any{"token_uri": "http://canary.test/token"}),
		"no token_uri":      serviceAccount(t, map[string]any{"token_uri": "canary"}),
	} {
		client, err := New(mmsp.Options{Model: "m", APIKey: mmsp.NewSecret(key), Getenv: func(string) string { return "" }})
		if err == nil {
			t.Errorf("%s: built %v", name, client.model)
			continue
		}
		text := err.Error()
		if !strings.Contains(text, class) || !strings.Contains(text, "JSON key of a service account") || strings.Contains(text, "canary") || strings.Contains(text, "PRIVATE") {
			t.Errorf("%s: %v", name, err)
		}
	}
	client, err := New(mmsp.Options{Model: "m", APIKey: mmsp.NewSecret(serviceAccount(t, map[string]any{"token_uri": nil, "type": nil}))})
	if err != nil || client.account.config.TokenURL != "https://oauth2.googleapis.com/token" {
		t.Errorf("%v", err)
	}
	for _, client := range []*Client{client, build(t, "m")} {
		if out := fmt.Appendf(nil, "%v %+v %#v", client, client, client); bytes.Contains(out, []byte("PRIVATE")) || bytes.Contains(out, []byte("the-key")) {
			t.Error("a client prints its key")
		}
	}
}
