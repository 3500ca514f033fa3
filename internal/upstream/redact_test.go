package upstream

import (
	"net/http"
	"strings"
	"testing"
)

func TestRedact(t *testing.T) {
	const key = "sk-SECRET/x+Z9=ab"
	req, err := http.NewRequest(http.MethodPost, "https://host.example/v1?key=querysecret", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Authorization": {"Bearer " + key}, "X-Team": {"team-secret"}, "X-Short": {"no"}, "Content-Type": {"application/json"}}
	for text, want := range map[string]string{
		"a " + key + " b":                  "a […] b",
		"Bearer " + key:                    "[…]",
		`sk-SECRET\/x+Z9=ab`:               "[…]",
		`sk-SECRET\u002fx\u002BZ9\u003dab`: "[…]",
		`\u0073k-SECRET/x+Z9=ab`:           "[…]",
		"sk-SECRET%2Fx%2bZ9%3Dab":          "[…]",
		"team-secret querysecret":          "[…] […]",
		"no application/json":              "no application/json",
		"":                                 "",
	} {
		if got := string(redact([]byte(text), req)); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
	if long := string(redact([]byte(strings.Repeat("A", 1<<20)+key), req)); strings.Contains(long, "SECRET") {
		t.Error("a key behind a long text stays")
	}
}
