package ingress

import "testing"

func TestPicture(t *testing.T) {
	const refused = ""
	for address, want := range map[string]string{
		"https://a.test/b.png?c=d,e":                      "https://a.test/b.png?c=d,e",
		"HTTP://[::1]:80":                                 "HTTP://[::1]:80",
		"data:image/png;base64,iVBORw==":                  "data:image/png;base64,iVBORw==",
		"data:image/svg+xml;charset=utf-8;BASE64,iVBORw=": "data:image/svg+xml;charset=utf-8;BASE64,iVBORw==",
		"data:application/pdf;name=a.pdf;base64,-_8":      "data:application/pdf;name=a.pdf;base64,+/8=",
		"data:image/png;base64,iVBO\r\nRw==":              "data:image/png;base64,iVBORw==",
		"data:image/png;base64,AAAA====":                  "data:image/png;base64,AAAA",

		"":                                  refused,
		"é":                                 refused,
		"http://":                           refused,
		"http://:80/a":                      refused,
		"https:a.test":                      refused,
		"https://a b/c":                     refused,
		"https://a/\n":                      refused,
		"file:///etc/passwd":                refused,
		"//a.test/b.png":                    refused,
		"data:,x":                           refused,
		"data:image/png,iVBORw==":           refused,
		"data:;base64,iVBORw==":             refused,
		"data:png;base64,iVBORw==":          refused,
		"data:image/;base64,iVBORw==":       refused,
		"data:image/p ng;base64,iVBORw==":   refused,
		"data:image/png,a;base64,iVBORw==":  refused,
		"data:image/png;base64,":            refused,
		"data:image/png;base64":             refused,
		"data:image/png;base64,!!!":         refused,
		"data:image/png;base64,AAAA!!!!":    refused,
		"data:image/png;base64,iVBO Rw==":   refused,
		"data:image/png;base64,A":           refused,
		"data:image/png;base64,AA==AA==":    refused,
		" data:image/png;base64,iVBORw==":   refused,
		"blob:https://a.test/1234-5678":     refused,
		"data:image/png;base64,iVBORw==%0A": refused,
	} {
		got, err := Picture("input[0]", address)
		if got != want || (err != nil) != (want == refused) {
			t.Errorf("%q: %q, %v", address, got, err)
		}
		if err != nil && Explain(err).Param != "input[0]" {
			t.Errorf("%q: %v is at %q", address, err, Explain(err).Param)
		}
	}
}
