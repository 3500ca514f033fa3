package images_test

import (
	"testing"

	"github.com/prism-shadow/mmsp-go/internal/images"
)

func TestFileName(t *testing.T) {
	for _, c := range []struct{ name, mediaType, want string }{
		{"log.pdf", "application/pdf", "log.pdf"},
		{"log", "text/plain", "log"},
		{"", "application/pdf", "document.pdf"},
		{"", "Text/CSV; charset=utf-8", "document.csv"},
		{"", "application/x-unheard-of", "document"},
		{"", "", "document"},
	} {
		if got := images.FileName(c.name, c.mediaType); got != c.want {
			t.Errorf("%q, %q: got %q, want %q", c.name, c.mediaType, got, c.want)
		}
	}
}

func TestDataURL(t *testing.T) {
	url := images.DataURL("text/plain; charset=utf-8", []byte("\xff\x00,a"))
	if mediaType, payload, ok := images.ParseDataURL(url); !ok || mediaType != "text/plain" || string(images.Decode(payload)) != "\xff\x00,a" {
		t.Errorf("%s is read as %q, %q, %v", url, mediaType, payload, ok)
	}
}
