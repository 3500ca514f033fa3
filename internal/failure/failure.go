// Package failure turns what a provider says went wrong into an UpstreamError: an HTTP status with a body, an error
// object inside a stream, a page where an answer was asked for. It reads the error shapes of every wire protocol, so
// that nothing of the provider's message is lost.
package failure

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
	"github.com/prism-shadow/mmsp-go/internal/upstream"
)

const (
	maxObjectBytes = 64 << 10 // of a provider's error object, or of its message, that is passed on
	maxNested      = 8        // error objects inside each other
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
		e.Status = status.Status
		if status.RetryAfter > 0 {
			e.RetryAfter = status.RetryAfter
		}
		if e.RequestID == "" {
			e.RequestID = status.RequestID
		}
		if e.Message == "" {
			e.Message = strings.TrimSuffix(fmt.Sprintf("HTTP %d: %s", status.Status, http.StatusText(status.Status)), ": ")
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

// tag is markup of a web page, the last one of which may be cut.
var tag = regexp.MustCompile(`<[^>]*>?`)

// Excerpt quotes the beginning of untrusted bytes; of a web page what is to be read on it.
func Excerpt(data []byte) string {
	whole := string(bytes.TrimSpace(data[:min(len(data), maxObjectBytes)]))
	if strings.HasPrefix(whole, "<") {
		if whole = strings.Join(strings.Fields(tag.ReplaceAllString(whole, " ")), " "); whole == "" {
			return "a page without a text"
		}
	}
	text, cut := shorten(whole, excerptBytes)
	return strconv.Quote(text) + cut
}

// shorten cuts a text between two characters and says whether it did.
func shorten(text string, limit int) (short, cut string) {
	if len(text) > limit {
		for limit > 0 && !utf8.RuneStart(text[limit]) {
			limit--
		}
		text, cut = text[:limit], "…"
	}
	return strings.ToValidUTF8(text, "\uFFFD"), cut
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
		if e.Message = Excerpt(body); body[0] != '<' {
			short, cut := shorten(string(body), maxObjectBytes)
			e.Message = short + cut
		}
		return e
	}
	var s jsonscan.Scanner
	s.Reset(body)
	switch s.Kind() {
	case '"':
		text(&s, &e.Message)
		return e
	case '[':
		if first := true; s.Element(&first) && s.Kind() == '{' {
			body = s.Raw()
		}
	}
	if len(body) <= maxObjectBytes {
		e.Object = bytes.Clone(body)
	}
	read(e, body, maxNested)
	return e
}

// text reads a string or a number. What says nothing leaves the text as it is.
func text(s *jsonscan.Scanner, into *string) {
	switch s.Kind() {
	case '"':
		if value := s.String(); value != "" {
			short, cut := shorten(value, maxObjectBytes)
			*into = short + cut
		}
	case '0':
		*into, _ = shorten(string(s.Raw()), excerptBytes)
	default:
		s.Skip()
	}
}

// read takes what an object says, from the outside in: the innermost error object has the last word.
func read(e *mmsp.UpstreamError, object []byte, levels int) {
	var s jsonscan.Scanner
	var inner [][]byte
	var words []byte // in no shape that is known
	named := ""      // {"error": "Not Found"}, which a message beside it says better
	s.Reset(object)
	for first := true; s.Field(&first); {
		switch string(s.Name()) {
		case "error", "response":
			switch s.Kind() {
			case '{':
				inner = append(inner, s.Raw())
			default:
				text(&s, &named)
			}
		case "message":
			if kind := s.Kind(); kind == '{' || kind == '[' { // Mistral's, of a request that is not valid
				words = s.Raw()
			} else {
				text(&s, &e.Message)
			}
		case "detail", "title", "msg":
			if e.Message == "" && s.Kind() == '"' {
				text(&s, &e.Message)
			} else if e.Message == "" && s.Kind() != 'n' {
				e.Message = Excerpt(s.Raw())
			} else {
				s.Skip()
			}
		case "type":
			if kind := ""; s.Kind() == '"' {
				// The type of an event is none of an error.
				if text(&s, &kind); kind != "error" && !strings.HasPrefix(kind, "response.") {
					e.ErrorType = kind
				}
			} else {
				s.Skip()
			}
		case "status": // Google's word for the type, in capitals; others give the HTTP status
			if kind := ""; s.Kind() == '"' {
				if text(&s, &kind); kind != "" && kind == strings.ToUpper(kind) {
					e.ErrorType = kind
				}
			} else {
				status(e, &s)
			}
		case "status_code":
			status(e, &s)
		case "code":
			if s.Kind() == '0' {
				text(&s, &e.Code)
				if n, err := strconv.Atoi(e.Code); err == nil && n >= 400 && n < 600 {
					e.Status = n
				}
			} else {
				text(&s, &e.Code)
			}
		case "param":
			text(&s, &e.Param)
		case "request_id":
			text(&s, &e.RequestID)
		case "details":
			details(e, &s)
		default:
			s.Skip()
		}
	}
	if e.Message == "" {
		e.Message = named
	}
	if levels > 1 {
		for _, object := range inner {
			read(e, object, levels-1)
		}
	}
	if e.Message == "" && len(words) > len("{}") {
		e.Message = Excerpt(words)
	}
}

func status(e *mmsp.UpstreamError, s *jsonscan.Scanner) {
	if n, ok := s.Int(); ok && n >= 400 && n < 600 {
		e.Status = int(n)
	}
}

// details reads Google's list of details, of which RetryInfo says how long to wait: {"retryDelay": "7s"}; and Anthropic's
// object, which has the error's code.
func details(e *mmsp.UpstreamError, s *jsonscan.Scanner) {
	if s.Kind() == '{' {
		for first := true; s.Field(&first); {
			if string(s.Name()) == "error_code" {
				text(s, &e.Code)
			} else {
				s.Skip()
			}
		}
		return
	}
	for first := true; s.Element(&first); {
		for first := true; s.Field(&first); {
			if string(s.Name()) != "retryDelay" || s.Kind() != '"' {
				s.Skip()
			} else if wait, err := time.ParseDuration(s.String()); err == nil && wait > 0 {
				e.RetryAfter = wait
			}
		}
	}
}
