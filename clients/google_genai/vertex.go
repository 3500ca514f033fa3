package googlegenai

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/jwt"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/internal/failure"
	"github.com/prism-shadow/mmsp-go/internal/upstream"
)

const (
	cloudScope     = "https://www.googleapis.com/auth/cloud-platform"
	googleTokenURL = "https://oauth2.googleapis.com/token"

	tokenMargin = time.Minute // a token is replaced this long before it expires
)

// account gets the access tokens of a service account: nothing but the key that was given counts, no default credentials
// and no metadata server.
type account struct {
	config jwt.Config
	http   *upstream.Client
	turn   chan struct{} // held by whoever looks at the token
	token  *oauth2.Token
}

// newAccount reads the JSON key of a service account. Errors show nothing of it.
func newAccount(document string, http *upstream.Client) (a *account, project string, err error) {
	wrong := func(what string) error {
		return errors.New("an api_key for " + class + " that starts with { must be the JSON key of a service account: " + what)
	}
	var key struct {
		Type         string `json:"type"`
		ProjectID    string `json:"project_id"`
		PrivateKeyID string `json:"private_key_id"`
		PrivateKey   string `json:"private_key"`
		ClientEmail  string `json:"client_email"`
		TokenURI     string `json:"token_uri"`
	}
	if err := json.Unmarshal([]byte(document), &key); err != nil {
		return nil, "", wrong("it is not readable as JSON")
	}
	switch {
	case key.Type != "" && key.Type != "service_account":
		return nil, "", wrong(`its type is not "service_account"`)
	case key.ProjectID == "" || strings.ContainsAny(key.ProjectID, "/?#%\\ ") || strings.Trim(key.ProjectID, ".") == "":
		return nil, "", wrong("project_id is missing, or is none")
	case key.ClientEmail == "":
		return nil, "", wrong("client_email is missing")
	}
	block, _ := pem.Decode([]byte(key.PrivateKey))
	if block == nil {
		return nil, "", wrong("private_key is missing, or is not PEM")
	}
	parsed, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		parsed, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	}
	if _, isRSA := parsed.(*rsa.PrivateKey); err != nil || !isRSA {
		return nil, "", wrong("private_key is not an RSA key")
	}
	tokenURL, err := url.Parse(cmp.Or(key.TokenURI, googleTokenURL))
	if err != nil || tokenURL.Scheme != "https" || tokenURL.Host == "" || tokenURL.User != nil {
		return nil, "", wrong("token_uri is not an https URL")
	}
	return &account{
		config: jwt.Config{
			Email: key.ClientEmail, PrivateKey: []byte(key.PrivateKey), PrivateKeyID: key.PrivateKeyID,
			Scopes: []string{cloudScope}, TokenURL: tokenURL.String(),
		},
		http: http, turn: make(chan struct{}, 1),
	}, key.ProjectID, nil
}

// accessToken returns a token that is good for a while. Of several callers one asks for it and the others wait.
func (a *account) accessToken(ctx context.Context) (string, error) {
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	if a.token != nil && time.Until(a.token.Expiry) > tokenMargin {
		return a.token.AccessToken, nil
	}
	exchange := &tokenExchange{ctx: ctx, http: a.http}
	token, err := a.config.TokenSource(context.WithValue(ctx, oauth2.HTTPClient, &http.Client{Transport: exchange})).Token()
	var status *upstream.StatusError
	switch {
	case errors.As(exchange.err, &status):
		var refusal struct {
			Error       string `json:"error"`
			Description string `json:"error_description"`
		}
		json.Unmarshal(status.Body, &refusal)
		e := &mmsp.UpstreamError{
			Client: class, Status: status.Status, ErrorType: "authentication_error", RetryAfter: status.RetryAfter, RequestID: status.RequestID,
			Message: exchange.hide("the service account got no access token: " + cmp.Or(refusal.Error, status.Error()) + " " + refusal.Description),
		}
		if e.Status < 500 && e.Status != http.StatusTooManyRequests { // what is wrong is the key, not the request
			e.Status = http.StatusUnauthorized
		}
		return "", e
	case exchange.err != nil:
		return "", failure.Upstream(class, exchange.err)
	case err != nil || token.AccessToken == "" || strings.ContainsAny(token.AccessToken, "\r\n"):
		return "", &mmsp.UpstreamError{Client: class, ErrorType: "authentication_error", Message: "the token endpoint of the service account answered with something else than a token"}
	}
	a.token = token
	return token.AccessToken, nil
}

// forget makes the next request ask for another token than the given one.
func (a *account) forget(ctx context.Context, token string) {
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return
	}
	if a.token != nil && a.token.AccessToken == token {
		a.token = nil
	}
}

// tokenExchange sends the one request for a token as every other request of the client is sent.
type tokenExchange struct {
	ctx       context.Context
	http      *upstream.Client
	assertion string
	err       error
}

// RoundTrip keeps the error, which the oauth2 package turns into text.
func (t *tokenExchange) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	r.Body.Close()
	if err != nil {
		return nil, err
	}
	if form, err := url.ParseQuery(string(body)); err == nil {
		t.assertion = form.Get("assertion")
	}
	response, err := t.http.Do(t.ctx, upstream.Request{Method: r.Method, URL: r.URL.String(), Header: r.Header, Body: bytes.Clone(body)})
	if err != nil {
		t.err = err
		return nil, err
	}
	return &http.Response{StatusCode: response.Status, Header: response.Header, Body: response.Body, Request: r}, nil
}

// hide takes the signed assertion, which is as good as a key, out of a text, and the text to a bearable length.
func (t *tokenExchange) hide(text string) string {
	if t.assertion != "" {
		text = strings.ReplaceAll(text, t.assertion, "[…]")
	}
	return strings.ToValidUTF8(strings.TrimSpace(text[:min(len(text), 500)]), "")
}
