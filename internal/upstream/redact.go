package upstream

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// shortestSecret is the length from which a header's value is taken for a secret; shorter ones are ordinary words.
const shortestSecret = 6

// ordinaryHeaders hold no secret, and words that error texts use.
var ordinaryHeaders = []string{"Accept", "Content-Type", "User-Agent", "Anthropic-Version", "Anthropic-Beta"}

// Redact takes what the request carried and a provider may repeat (header values, query, userinfo) out of the bytes of a
// failure. It is to be called before anything is cut from them.
func (r *Response) Redact(text []byte) []byte { return redact(text, r.request) }

func redact(text []byte, req *http.Request) []byte {
	var secrets []string
	for name, values := range req.Header {
		if !slices.Contains(ordinaryHeaders, name) {
			for _, value := range values {
				secrets = append(secrets, value, value[strings.LastIndexByte(value, ' ')+1:])
			}
		}
	}
	secrets = append(secrets, req.URL.RawQuery)
	for _, values := range req.URL.Query() {
		secrets = append(secrets, values...)
	}
	if user := req.URL.User; user != nil {
		password, _ := user.Password()
		secrets = append(secrets, user.String(), password)
	}
	secrets = slices.DeleteFunc(secrets, func(s string) bool { return len(s) < shortestSecret })
	if len(secrets) == 0 || len(text) == 0 {
		return text
	}
	// The longest first, so that none is left over when one contains another.
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })
	var pattern strings.Builder
	for i, secret := range slices.Compact(secrets) {
		if i > 0 {
			pattern.WriteByte('|')
		}
		for _, c := range []byte(secret) {
			// As it is, behind a backslash, as JSON's \u escape, as a URL spells it.
			fmt.Fprintf(&pattern, `(?:\\?\x%02x|(?i:\\u00%02x|%%%02x))`, c, c, c)
		}
	}
	spelled, err := regexp.Compile(pattern.String())
	if err != nil { // too long to compile: nothing of the text is safe
		return []byte("[…]")
	}
	return spelled.ReplaceAllLiteral(text, []byte("[…]"))
}
