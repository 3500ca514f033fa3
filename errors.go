package mmsp

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// Each error type stands for one thing a caller may act on; errors.As finds it in any error of this module. Client is
// the class name that all implementations of the protocol share, such as "OpenaiChatClient".

// UnsupportedParameterError: the client cannot take a value of the Config. Raised before any request goes out.
type UnsupportedParameterError struct{ Client, Parameter, Message string }

// UnsupportedOperationError: the client has no way to do what was asked, such as listing models.
type UnsupportedOperationError struct{ Client, Operation, Message string }

// InvalidRequestError: the messages or the request are malformed. Param is the path of what is wrong, such as
// "messages[1].content_items[0].tool_call_id". Raised before any request goes out.
type InvalidRequestError struct{ Param, Message string }

// AuthenticationError: the caller's key is missing or wrong.
type AuthenticationError struct{ Message string }

// NotFoundError: no such model or route.
type NotFoundError struct{ Message string }

// EmptyResponseError: the turn ended with nothing but thinking. Its tokens are reported only here.
type EmptyResponseError struct {
	Client       string
	FinishReason FinishReason
	Usage        *Usage
	StopDetail   *StopDetail
}

// IncompleteStreamError: the provider's stream ended before its terminal event. Deltas already sent stay sent.
type IncompleteStreamError struct {
	Client string
	Reason string // what is missing
	Err    error  // what cut the stream, if known
}

// StreamProtocolError: a client broke the streaming grammar. A bug of this module or of the provider, never repaired.
type StreamProtocolError struct{ Client, Detail string }

// ToolCallArgumentParseError: the joined arguments of a tool call are not the text of a JSON object. Its deltas have
// reached the consumer.
type ToolCallArgumentParseError struct {
	Client       string
	ToolName     string
	ToolCallID   string
	RawArguments string
	Reason       string
	FinishReason FinishReason // "length" when the token limit cut the call, "unknown" with a StopDetail when a filter did
	Usage        *Usage
	StopDetail   *StopDetail
}

// UpstreamError: the provider, or the MMSP server in between, reported a failure.
type UpstreamError struct {
	Client     string
	Message    string
	Status     int    // HTTP status; 0 for a failure inside a stream without one
	ErrorType  string // this and the next two in the provider's own words; empty: not given
	Code       string
	Param      string
	RequestID  string          // the provider's, for its support
	RetryAfter time.Duration   // how long the provider asks to wait; 0: it does not say
	Object     json.RawMessage // the provider's own error object, bounded
	Wire       json.RawMessage // from an MMSP server: its whole error object, which the next hop gets unchanged
	Err        error           // of the connection, if that is what failed
}

func (e *UnsupportedParameterError) Error() string { return e.Message }
func (e *UnsupportedOperationError) Error() string { return e.Message }
func (e *AuthenticationError) Error() string       { return e.Message }
func (e *NotFoundError) Error() string             { return e.Message }

func (e *InvalidRequestError) Error() string {
	if e.Param == "" {
		return e.Message
	}
	return e.Param + ": " + e.Message
}

func (e *EmptyResponseError) Error() string {
	text := fmt.Sprintf("%s returned no content other than thinking (finish reason %q)", e.Client, e.FinishReason)
	if e.StopDetail != nil {
		text += ": " + e.StopDetail.Kind
		if e.StopDetail.Text != "" {
			text += ": " + e.StopDetail.Text
		}
	}
	return text
}

func (e *IncompleteStreamError) Error() string {
	text := fmt.Sprintf("the stream of %s ended early: %s", e.Client, e.Reason)
	if e.Err != nil {
		text += ": " + e.Err.Error()
	}
	return text
}

func (e *IncompleteStreamError) Unwrap() error { return e.Err }

func (e *StreamProtocolError) Error() string {
	return e.Client + " broke the streaming protocol: " + e.Detail
}

func (e *ToolCallArgumentParseError) Error() string {
	return fmt.Sprintf("%s returned a tool call with unreadable arguments (tool=%s, tool_call_id=%s, length=%d, preview=%q): %s",
		e.Client, e.ToolName, e.ToolCallID, utf8.RuneCountInString(e.RawArguments), e.preview(), e.Reason)
}

// preview returns the raw arguments, their middle cut out when they are long.
func (e *ToolCallArgumentParseError) preview() string {
	if utf8.RuneCountInString(e.RawArguments) <= 160 {
		return e.RawArguments
	}
	begin, end := 0, len(e.RawArguments)
	for range 72 {
		_, size := utf8.DecodeRuneInString(e.RawArguments[begin:])
		begin += size
		_, size = utf8.DecodeLastRuneInString(e.RawArguments[:end])
		end -= size
	}
	return e.RawArguments[:begin] + "...[truncated]..." + e.RawArguments[end:]
}

func (e *UpstreamError) Error() string {
	var about []string
	for _, part := range []string{statusText(e.Status), e.ErrorType, e.Code} {
		if part != "" {
			about = append(about, part)
		}
	}
	if e.RequestID != "" {
		about = append(about, "request "+e.RequestID)
	}
	text := e.Message
	if text == "" {
		text = "the provider reported an error"
	}
	if len(about) > 0 {
		text += " (" + strings.Join(about, ", ") + ")"
	}
	return text
}

func (e *UpstreamError) Unwrap() error { return e.Err }

func statusText(status int) string {
	if status == 0 {
		return ""
	}
	return "HTTP " + strconv.Itoa(status)
}

// AppendErrorJSON appends err as it travels on the wire: {"error": {"type": …, "message": …, …}}.
func AppendErrorJSON(dst []byte, err error) []byte {
	w := objectWriter{append(dst, `{"error":`...)}
	w.errorObject(err)
	return append(w.dst, '}')
}

func (w *objectWriter) errorObject(err error) {
	var (
		parameter  *UnsupportedParameterError
		operation  *UnsupportedOperationError
		empty      *EmptyResponseError
		incomplete *IncompleteStreamError
		protocol   *StreamProtocolError
		arguments  *ToolCallArgumentParseError
		upstream   *UpstreamError
		invalid    *InvalidRequestError
		auth       *AuthenticationError
		notFound   *NotFoundError
	)
	head := func(kind, message, client string) {
		w.open()
		w.string("type", kind)
		w.string("message", message)
		w.optionalString("client", client)
	}
	switch {
	case errors.As(err, &parameter):
		head("UnsupportedParameterError", parameter.Message, parameter.Client)
		w.string("parameter", parameter.Parameter)
	case errors.As(err, &operation):
		head("UnsupportedOperationError", operation.Message, operation.Client)
		w.string("operation", operation.Operation)
	case errors.As(err, &empty):
		head("EmptyResponseError", empty.Error(), empty.Client)
		w.finishReason(empty.FinishReason)
		w.usage(empty.Usage)
		w.stopDetail(empty.StopDetail)
	case errors.As(err, &incomplete):
		head("IncompleteStreamError", incomplete.Error(), incomplete.Client)
	case errors.As(err, &protocol):
		head("StreamProtocolError", protocol.Detail, protocol.Client)
	case errors.As(err, &arguments):
		head("ToolCallArgumentParseError", arguments.Error(), arguments.Client)
		w.string("tool_name", arguments.ToolName)
		w.string("tool_call_id", arguments.ToolCallID)
		w.int("raw_arguments_length", int64(utf8.RuneCountInString(arguments.RawArguments)))
		w.string("raw_arguments_preview", arguments.preview())
		w.finishReason(arguments.FinishReason)
		w.usage(arguments.Usage)
		w.stopDetail(arguments.StopDetail)
	case errors.As(err, &upstream):
		if jsonscan.Valid(upstream.Wire) {
			w.dst = appendOneLine(w.dst, upstream.Wire)
			return
		}
		message := upstream.Message
		if message == "" {
			message = upstream.Error()
		}
		head("UpstreamError", message, upstream.Client)
		if upstream.Status != 0 {
			w.int("status", int64(upstream.Status))
		}
		w.optionalString("error_type", upstream.ErrorType)
		w.optionalString("code", upstream.Code)
		w.optionalString("param", upstream.Param)
		w.optionalString("request_id", upstream.RequestID)
		if upstream.RetryAfter > 0 {
			w.int("retry_after_ms", upstream.RetryAfter.Milliseconds())
		}
		if len(upstream.Object) > 0 && jsonscan.Valid(upstream.Object) {
			w.raw("error", upstream.Object)
		}
	case errors.As(err, &invalid):
		head("InvalidRequestError", invalid.Error(), "")
		w.optionalString("param", invalid.Param)
	case errors.As(err, &auth):
		head("AuthenticationError", auth.Message, "")
	case errors.As(err, &notFound):
		head("NotFoundError", notFound.Message, "")
	default:
		kind := reflect.TypeOf(err)
		for kind.Kind() == reflect.Pointer {
			kind = kind.Elem()
		}
		name := kind.Name()
		if name == "" || name == "errorString" || name == "wrapError" || name == "wrapErrors" || name == "joinError" {
			name = "Error"
		}
		head(name, cmp.Or(err.Error(), name), "")
	}
	w.close()
}
