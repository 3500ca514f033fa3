// Package failure turns what a provider says went wrong into an UpstreamError: an HTTP status with a body, an error
// object inside a stream, a page where an answer was asked for. It reads the error shapes of every wire protocol, so
// that nothing of the provider's message is lost.
package failure

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
	"github.com/prism-shadow/mmsp-go/internal/upstream"
)

const (
	maxObjectBytes = 64 << 10 // of a provider's error object that is passed on
	excerptBytes   = 200      // of a body that cannot be read
)

// Upstream names the client in an error of the HTTP layer. Statuses and connection faults become an UpstreamError;
// everything else, such as a cancelled context, stays as it is.
func Upstream(class string, err error) error {
	var status *upstream.StatusError
	var connect *upstream.ConnectError
	switch {
	case errors.As(err, &status):
		e := fromBody(class, status.Body)
		if e.Status == 0 || e.Status < 400 {
			e.Status = status.Status
		}
		e.RetryAfter = status.RetryAfter
		if e.RequestID == "" {
			e.RequestID = status.RequestID
		}
		if e.Message == "" {
			e.Message = fmt.Sprintf("HTTP %d: %s", status.Status, http.StatusText(status.Status))
		}
		return e
	case errors.As(err, &connect):
		return &mmsp.UpstreamError{Client: class, ErrorType: "connection_error", Message: connect.Error(), Err: err}
	}
	return err
}

// Event is the UpstreamError of an error object that came inside a stream. object is the whole event, such as
// {"type":"error","error":{…}}, or the error itself.
func Event(class string, object []byte) *mmsp.UpstreamError {
	e := fromBody(class, object)
	if e.Message == "" {
		e.Message = "the provider reported an error"
	}
	return e
}

// Body is the UpstreamError of a body that is no answer, such as an HTML page.
func Body(class string, body []byte) *mmsp.UpstreamError {
	e := fromBody(class, body)
	if e.Message == "" || e.Object == nil {
		e.Message = "the provider answered with something else than a stream: " + Excerpt(body)
		e.ErrorType = "unexpected_body"
	}
	return e
}

// Malformed is the UpstreamError of an event that cannot be read. number counts the events of the stream from 1.
func Malformed(class string, number int, data []byte, err error) *mmsp.UpstreamError {
	return &mmsp.UpstreamError{
		Client: class, ErrorType: "malformed_event", Err: err,
		Message: fmt.Sprintf("event %d from the provider is not readable as JSON (%v): %s", number, err, Excerpt(data)),
	}
}

// Excerpt quotes the beginning of untrusted bytes.
func Excerpt(data []byte) string {
	data = bytes.TrimSpace(data)
	cut := ""
	if len(data) > excerptBytes {
		data, cut = data[:excerptBytes], "…"
		for len(data) > 0 && !utf8.RuneStart(data[len(data)-1]) {
			data = data[:len(data)-1]
		}
	}
	return strconv.Quote(strings.ToValidUTF8(string(data), "\uFFFD")) + cut
}

// fromBody reads {"error":{…}}, {"error":"…"}, {"type":"error","error":{…}}, {"response":{"error":{…}}}, [{"error":{…}}],
// {"message":…}, {"detail":…} and plain text.
func fromBody(class string, body []byte) *mmsp.UpstreamError {
	e := &mmsp.UpstreamError{Client: class}
	body = bytes.TrimSpace(body)
	if len(body) == 0 {
		return e
	}
	if !jsonscan.Valid(body) {
		e.Message = Excerpt(body)
		return e
	}
	if body[0] == '[' {
		var list []json.RawMessage
		if json.Unmarshal(body, &list) == nil && len(list) > 0 {
			return fromBody(class, list[0])
		}
	}
	if body[0] == '"' {
		_ = json.Unmarshal(body, &e.Message)
		return e
	}
	if len(body) <= maxObjectBytes {
		e.Object = bytes.Clone(body)
	}
	read(e, body)
	return e
}

// read takes what an object says, from the outside in: the innermost error object has the last word.
func read(e *mmsp.UpstreamError, object []byte) {
	var s jsonscan.Scanner
	var inner [][]byte
	text := func(into *string) {
		switch s.Kind() {
		case '"':
			if value := s.String(); value != "" {
				*into = value
			}
		case '0':
			*into = string(s.Raw())
		default:
			s.Skip()
		}
	}
	s.Reset(object)
	for first := true; s.Field(&first); {
		switch string(s.Name()) {
		case "error", "response":
			switch s.Kind() {
			case '{':
				inner = append(inner, s.Raw())
			default:
				text(&e.Message)
			}
		case "message":
			text(&e.Message)
		case "detail", "title", "msg":
			if e.Message == "" && s.Kind() == '"' {
				text(&e.Message)
			} else if e.Message == "" && s.Kind() != 'n' {
				e.Message = Excerpt(s.Raw())
			} else {
				s.Skip()
			}
		case "type":
			if kind := ""; s.Kind() == '"' {
				if text(&kind); kind != "error" {
					e.ErrorType = kind
				}
			} else {
				s.Skip()
			}
		case "status": // Google's word for the type; others give the HTTP status
			switch s.Kind() {
			case '"':
				text(&e.ErrorType)
			default:
				status(e, &s)
			}
		case "status_code":
			status(e, &s)
		case "code":
			if s.Kind() == '0' {
				raw := string(s.Raw())
				e.Code = raw
				if n, err := strconv.Atoi(raw); err == nil && n >= 400 && n < 600 {
					e.Status = n
				}
			} else {
				text(&e.Code)
			}
		case "param":
			text(&e.Param)
		case "request_id":
			text(&e.RequestID)
		default:
			s.Skip()
		}
	}
	for _, object := range inner {
		read(e, object)
	}
}

func status(e *mmsp.UpstreamError, s *jsonscan.Scanner) {
	if n, ok := s.Int(); ok && n >= 400 && n < 600 {
		e.Status = int(n)
	}
}
