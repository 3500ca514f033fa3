package simulate

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// VertexProvider is a provider of Vertex AI with the service account that may use it.
type VertexProvider struct {
	*Provider
	account *account
}

// Vertex returns a provider of generateContent as Vertex AI has it: the methods of Gemini below
// …/v1beta1/projects/{p}/locations/{l}/publishers/google/models/{m}, GET …/v1beta1/publishers/google/models with
// paging, and POST …/token, which gives access tokens to the service account. Options.Key means nothing here.
func Vertex(o Options) *VertexProvider {
	c := newCore(o)
	a := &account{core: c, key: sync.OnceValue(func() *rsa.PrivateKey {
		key, _ := rsa.GenerateKey(rand.Reader, 2048)
		return key
	})}
	return &VertexProvider{&Provider{c, google{c, a}, func(path string) bool {
		_, method := splitMethod(path)
		return method != ""
	}, "x-request-id"}, a}
}

// ServiceAccountKey returns the JSON key of the service account, made for this provider. The base URL is the
// provider's, where the key's token_uri points to.
func (v *VertexProvider) ServiceAccountKey(baseURL string) string {
	der, _ := x509.MarshalPKCS8PrivateKey(v.account.key())
	document, _ := json.Marshal(map[string]string{
		"type": "service_account", "project_id": vertexProject, "private_key_id": vertexKeyID,
		"private_key":  string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})),
		"client_email": vertexEmail, "client_id": "1", "token_uri": strings.TrimRight(baseURL, "/") + "/token",
		"universe_domain": "googleapis.com",
	})
	return string(document)
}

// ServeHTTP answers one request, as Provider does, and those for tokens.
func (v *VertexProvider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/token") {
		v.Provider.ServeHTTP(w, r)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, 64<<10)
	if grant := r.PostFormValue("grant_type"); grant != "urn:ietf:params:oauth:grant-type:jwt-bearer" {
		writeJSON(w, http.StatusBadRequest, object{"error": "unsupported_grant_type", "error_description": "Invalid grant_type: " + clip(grant, 100)})
		return
	}
	if wrong := v.account.checkAssertion(r.PostFormValue("assertion"), r); wrong != "" {
		writeJSON(w, http.StatusBadRequest, object{"error": "invalid_grant", "error_description": wrong})
		return
	}
	expiry := strconv.FormatInt(v.Now().Add(tokenLife).Unix(), 10)
	writeJSON(w, http.StatusOK, object{
		"access_token": "ya29." + expiry + "." + v.sealer.sign("token "+expiry), "expires_in": int(tokenLife.Seconds()), "token_type": "Bearer",
	})
}

const (
	vertexProject = "simulated-project"
	vertexEmail   = "caller@simulated-project.iam.gserviceaccount.com"
	vertexKeyID   = "simulated-key"
	cloudScope    = "https://www.googleapis.com/auth/cloud-platform"
	tokenLife     = time.Hour
)

var vertexPath = regexp.MustCompile(`/v1(beta1)?/projects/` + vertexProject + `/locations/[a-z0-9-]+/publishers/google/models/[^/]+$`)

// account is the service account that may use a provider.
type account struct {
	*core
	key func() *rsa.PrivateKey
}

// checkAssertion says what is wrong with a signed assertion that asks for a token.
func (a *account) checkAssertion(assertion string, r *http.Request) string {
	signed, signature, _ := cutLast(assertion, ".")
	head, claims, ok := strings.Cut(signed, ".")
	var header struct{ Alg, Kid string }
	var claim struct {
		Iss, Aud, Scope string
		Iat, Exp        int64
	}
	raw, err := base64.RawURLEncoding.DecodeString(signature)
	if !ok || err != nil || !decodeJWT(head, &header) || !decodeJWT(claims, &claim) {
		return "Invalid JWT: it is not readable."
	}
	sum := sha256.Sum256([]byte(signed))
	now := a.Now().Unix()
	switch {
	case header.Alg != "RS256", header.Kid != "" && header.Kid != vertexKeyID:
		return "Invalid JWT: no key for its header."
	case rsa.VerifyPKCS1v15(&a.key().PublicKey, crypto.SHA256, sum[:], raw) != nil:
		return "Invalid JWT Signature."
	case claim.Iss != vertexEmail:
		return "Invalid grant: account not found"
	case !strings.HasSuffix(claim.Aud, r.Host+strings.Split(r.RequestURI, "?")[0]):
		return "Invalid JWT: Failed audience check."
	case claim.Iat > now+60 || claim.Exp <= now || claim.Exp-claim.Iat > int64(tokenLife.Seconds()):
		return "Invalid JWT: Token must be a short-lived token (60 minutes) and in a reasonable timeframe. Check your iat and exp values in the JWT claim."
	case !slices.Contains(strings.Fields(claim.Scope), cloudScope):
		return "Invalid OAuth scope or ID token audience provided."
	}
	return ""
}

func cutLast(text, separator string) (before, after string, found bool) {
	if at := strings.LastIndex(text, separator); at >= 0 {
		return text[:at], text[at+len(separator):], true
	}
	return text, "", false
}

func decodeJWT(text string, into any) bool {
	raw, err := base64.RawURLEncoding.DecodeString(text)
	return err == nil && json.Unmarshal(raw, into) == nil
}

// admit refuses a caller without a token that was issued here and is still good.
func (a *account) admit(r *http.Request) *fault {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ya29.")
	expiry, proof, _ := strings.Cut(token, ".")
	until, err := strconv.ParseInt(expiry, 10, 64)
	if !ok || err != nil || until <= a.Now().Unix() || !a.sealer.verify(proof, "token "+expiry) {
		return &fault{status: http.StatusUnauthorized, details: []object{{
			"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "ACCESS_TOKEN_TYPE_UNSUPPORTED", "domain": "googleapis.com",
		}}}
	}
	return nil
}
