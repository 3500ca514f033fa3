// Package modellist reads the list of models that an endpoint serves, in the form that OpenAI's and Anthropic's
// protocols share: {"data": [{"id": …}, …]}.
package modellist

import (
	"fmt"
	"io"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/internal/failure"
	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
	"github.com/prism-shadow/mmsp-go/internal/upstream"
)

const maxBytes = 16 << 20

// Read reads one page to its end and closes it. It returns the ids in order.
func Read(class string, response *upstream.Response) ([]string, error) {
	ids, _, err := ReadPage(class, response)
	return ids, err
}

// ReadPage also returns the id after which the next page begins, empty on the last page.
func ReadPage(class string, response *upstream.Response) (ids []string, after string, err error) {
	defer response.Body.Close()
	data, err := io.ReadAll(io.LimitReader(response.Body, maxBytes+1))
	if err != nil {
		return nil, "", err
	}
	if len(data) > maxBytes {
		return nil, "", &mmsp.UpstreamError{Client: class, ErrorType: "unexpected_body", Message: fmt.Sprintf("the list of models is longer than %d bytes", maxBytes)}
	}
	ids = []string{}
	var more, listed bool
	var last string
	var s jsonscan.Scanner
	s.Reset(data)
	for first := true; s.Field(&first); {
		switch string(s.Name()) {
		case "data":
			listed = s.Kind() == '['
			for first := true; s.Element(&first); {
				id := ""
				for first := true; s.Field(&first); {
					if string(s.Name()) == "id" {
						id = s.String()
					} else {
						s.Skip()
					}
				}
				if id != "" {
					ids = append(ids, id)
				}
			}
		case "has_more":
			more = s.Bool()
		case "last_id":
			last = s.String()
		default:
			s.Skip()
		}
	}
	if err := s.End(); err != nil || !listed {
		return nil, "", &mmsp.UpstreamError{Client: class, ErrorType: "unexpected_body", Message: "the list of models is not readable: " + failure.Excerpt(response.Redact(data))}
	}
	if more {
		after = last
	}
	return ids, after, nil
}
