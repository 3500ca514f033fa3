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

func TestTypeOf(t *testing.T) {
	for _, c := range []struct{ name, data, want string }{
		{"a.pdf", "", "application/pdf"},
		{"A.MD", "%PDF-1.7", "text/markdown"},
		{"a.docx", "PK\x03\x04", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"},
		{"a.b.csv", "", "text/csv"},
		{"1706.03762", "%PDF-1.7", "application/pdf"},
		{"", "%PDF-1.7", "application/pdf"},
		{"a.go", "package a", "text/plain"},
		{"", "\ufeff<!doctype html>", "text/html"},
		{"", "ID3\x04", "audio/mpeg"},
		{"a.png", "\x89PNG\r\n\x1a\n", "image/png"},
		{"a.bin", "\x00\x01", images.Unknown},
	} {
		if got := images.TypeOf(c.name, []byte(c.data)); got != c.want {
			t.Errorf("%q, %q: got %q, want %q", c.name, c.data, got, c.want)
		}
	}
}

func TestNamedURL(t *testing.T) {
	for _, c := range []struct{ mediaType, name, want string }{
		{"application/pdf", "", "data:application/pdf;base64,YWJj"},
		{"application/pdf", "a;b, ü.pdf", "data:application/pdf;name=a%3Bb%2C%20%C3%BC.pdf;base64,YWJj"},
		{"image/png", "a.png", "data:image/png;base64,YWJj"},
	} {
		if got := images.NamedURL(c.mediaType, c.name, []byte("abc")); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

func TestTakeName(t *testing.T) {
	for _, c := range []struct{ url, bare, name string }{
		{"data:application/pdf;name=log%20%3B%2C1.pdf;base64,QUJD", "data:application/pdf;base64,QUJD", "log ;,1.pdf"},
		{"data:text/plain;charset=utf-8;base64;name=a.txt,QUJD", "data:text/plain;charset=utf-8;base64,QUJD", "a.txt"},
		{"data:application/pdf;name=%zz;base64,QUJD", "data:application/pdf;base64,QUJD", ""},
		{"data:application/pdf;base64,QUJD;name=a", "data:application/pdf;base64,QUJD;name=a", ""},
		{"data:application/pdf;name=a", "data:application/pdf;name=a", ""},
		{"https://a.test/x;name=y,z", "https://a.test/x;name=y,z", ""},
		{"", "", ""},
	} {
		if bare, name := images.TakeName(c.url); bare != c.bare || name != c.name {
			t.Errorf("%s: got %s, %q", c.url, bare, name)
		}
	}
}
