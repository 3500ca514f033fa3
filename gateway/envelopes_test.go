package gateway_test

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

var (
	sealed      = regexp.MustCompile(`mmsp1\.[A-Za-z0-9_-]+`)
	sealedTwice = regexp.MustCompile(`bW1zcDEu[A-Za-z0-9+/]+`) // as bytes, in generateContent
)

// TestEnvelopesHideHosts: callers keep envelopes, and none says where the provider stands.
func TestEnvelopesHideHosts(t *testing.T) {
	t.Parallel()
	models := simulated(t)
	s := start(t, everywhere(table(models...)))
	for i := range dialects {
		d := &dialects[i]
		opened := 0
		for _, row := range models {
			address, err := url.Parse(row.BaseURL)
			if err != nil {
				t.Fatal(err)
			}
			for _, stream := range []bool{false, true} {
				got := d.ask(s, row.ServerModelID, "think call q=x", stream)
				text := sealedTwice.ReplaceAllStringFunc(got.body, func(twice string) string {
					once, _ := base64.RawStdEncoding.DecodeString(twice)
					return string(once)
				})
				for _, envelope := range sealed.FindAllString(text, -1) {
					record, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(envelope, "mmsp1."))
					if opened++; err != nil || strings.Contains(string(record), address.Hostname()) || strings.Contains(string(record), ":"+address.Port()) {
						t.Errorf("%s over %s, stream %v: %v, %s", d.endpoint, row.ServerModelID, stream, err, record)
					}
				}
			}
		}
		if opened < len(models) {
			t.Errorf("%s: there are %d envelopes", d.endpoint, opened)
		}
	}
}
