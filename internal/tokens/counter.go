// Package tokens says how many tokens a prompt costs: it reads what a provider's own counter answers, and estimates where
// there is none.
package tokens

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/internal/failure"
	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
	"github.com/prism-shadow/mmsp-go/internal/upstream"
)

const maxBytes = 1 << 20 // of a counter's answer, which is one number with few words about it

// Read reads the answer of a counter to its end and closes it. It returns the number in the given field of the object.
func Read(class, field string, response *upstream.Response) (int64, error) {
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxBytes+1))
	if err != nil {
		return 0, err
	}
	if len(data) > maxBytes {
		return 0, &mmsp.UpstreamError{Client: class, ErrorType: "unexpected_body", Message: fmt.Sprintf("the count of tokens is longer than %d bytes", maxBytes)}
	}
	count, counted := int64(0), false
	var s jsonscan.Scanner
	s.Reset(data)
	for first := true; s.Field(&first); {
		if string(s.Name()) == field {
			count, counted = s.Int()
		} else {
			s.Skip()
		}
	}
	if err := s.End(); err != nil || !counted || count < 0 {
		return 0, &mmsp.UpstreamError{Client: class, ErrorType: "unexpected_body", Message: "the count of tokens is not readable: " + failure.Excerpt(response.Redact(data))}
	}
	return count, nil
}

// Failed makes an *mmsp.UnsupportedOperationError of a status that says that an endpoint has no counter, as those may that
// only speak a provider's protocol. Any other error stays as it is.
func Failed(class string, err error) error {
	var upstream *mmsp.UpstreamError
	if errors.As(err, &upstream) {
		switch upstream.Status {
		case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
			return &mmsp.UnsupportedOperationError{
				Client: class, Operation: "count_tokens", Message: fmt.Sprintf("the endpoint of %s counts no tokens (HTTP %d)", class, upstream.Status),
			}
		}
	}
	return err
}
