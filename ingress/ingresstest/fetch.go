package ingresstest

import (
	"context"

	"github.com/prism-shadow/mmsp-go/ingress"
)

// Fetch is an ingress.Env's Fetch: https://files.test has a.pdf, a.txt and a.png, and nothing else is anywhere.
func Fetch(_ context.Context, path, url string) (*ingress.File, error) {
	switch url {
	case "https://files.test/a.pdf":
		return &ingress.File{Data: []byte("%PDF-"), MediaType: "application/pdf", Name: "a.pdf"}, nil
	case "https://files.test/a.txt":
		return &ingress.File{Data: []byte("hi"), MediaType: "text/plain", Name: "a.txt"}, nil
	case "https://files.test/a.png":
		return &ingress.File{Data: []byte("\x89PNG"), MediaType: "image/png", Name: "a.png"}, nil
	}
	return nil, ingress.Invalid(path, "nothing is there")
}
