package ingress

import (
	"encoding/base64"
	"mime"
	"net/url"
	"regexp"
	"strings"

	"github.com/prism-shadow/mmsp-go/internal/images"
	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// Picture returns the URL of a picture, which stands at a path of the body, as it goes on: an http(s) URL as it is, and a
// data URL with its base64 of the standard alphabet and padded, which not every caller writes and not every provider does
// without. What is neither, or holds no bytes, is an error at the path.
func Picture(path, address string) (string, error) {
	if _, ok := WebURL(address); ok {
		return address, nil
	}
	_, data, ok := ReadDataURL(address)
	if !ok {
		return "", Invalid(path, "an http(s) URL with a host is wanted, or a data URL with a media type and base64")
	}
	header, payload, _ := strings.Cut(address, ",")
	if len(payload) != base64.StdEncoding.EncodedLen(len(data)) || strings.ContainsAny(payload, "-_\r\n") {
		return header + "," + base64.StdEncoding.EncodeToString(data), nil
	}
	return address, nil
}

// ReadDataURL returns the media type, lower-cased and without parameters, and the bytes of a data URL. It is not ok for any
// other URL, and for one without a media type, base64 or bytes.
func ReadDataURL(address string) (mediaType string, data []byte, ok bool) {
	mediaType, payload, ok := images.ParseDataURL(address)
	data, readable := jsonscan.DecodeBase64(payload)
	return mediaType, data, ok && readable && len(data) > 0 && IsMediaType(mediaType)
}

// WebURL reads an http(s) URL. It is not ok for any other, and for one without a host.
func WebURL(text string) (address *url.URL, ok bool) {
	address, err := url.Parse(text)
	if err != nil || address.Hostname() == "" || address.Scheme != "https" && address.Scheme != "http" {
		return nil, false
	}
	return address, true
}

// MediaType returns a provider's word for what some data is, with its parameters, or that nobody knows where it is no such word.
func MediaType(text string) string {
	if name, _, err := mime.ParseMediaType(text); err != nil || !IsMediaType(name) {
		return images.Unknown
	}
	return text
}

var mediaTypeForm = regexp.MustCompile(`^[A-Za-z0-9!#$&^_.+-]+/[A-Za-z0-9!#$&^_.+-]+$`)

// IsMediaType reports whether a text is a media type without parameters, such as image/png.
func IsMediaType(text string) bool { return mediaTypeForm.MatchString(text) }
