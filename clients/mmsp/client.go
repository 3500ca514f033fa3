// Package mmspclient is the client type "mmsp": another MMSP server. It only forwards: the server's upstream client has
// validated, converted and built the public stream already, and its events pass as they arrive.
package mmspclient

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/internal/credentials"
	"github.com/prism-shadow/mmsp-go/internal/failure"
	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
	"github.com/prism-shadow/mmsp-go/internal/modellist"
	"github.com/prism-shadow/mmsp-go/internal/sse"
	"github.com/prism-shadow/mmsp-go/internal/upstream"
)

const class = "MmspClient"

// doneWait is how long the end of the stream is waited for after the stop.
const doneWait = 5 * time.Second

// Client forwards to one model of a server.
type Client struct {
	model   string
	key     mmsp.Secret
	baseURL string
	headers map[string]string
	limits  mmsp.HTTPOptions
	http    *upstream.Client
}

// New reads the key and the server's URL from the options or MMSP_API_KEY and MMSP_BASE_URL. A URL without a key is an
// open server, and no key is sent there.
func New(o mmsp.Options) (*Client, error) {
	key, baseURL, err := credentials.Resolve(&o, credentials.Rule{
		Class: class, KeyVar: "MMSP_API_KEY", URLVar: "MMSP_BASE_URL", DefaultURL: "http://127.0.0.1:25752/v1",
		OpenServer: true, KeyOptional: true,
	})
	if err != nil {
		return nil, err
	}
	return &Client{
		model: o.Model, key: key, baseURL: baseURL, headers: o.DefaultHeaders, limits: o.HTTP,
		http: upstream.New(o.HTTPClient, o.HTTP),
	}, nil
}

// Class returns the class name in errors.
func (c *Client) Class() string { return class }

// Model returns the id that the server gives the model.
func (c *Client) Model() string { return c.model }

// Prepare returns the upstream request: the messages and the config as they are.
func (c *Client) Prepare(_ context.Context, messages []mmsp.Message, config *mmsp.Config) (*mmsp.Request, error) {
	return &mmsp.Request{
		Method: http.MethodPost, URL: c.baseURL + "/stream",
		Header: http.Header{"Content-Type": {"application/json"}, "Accept": {"text/event-stream"}},
		Body:   mmsp.AppendStreamRequest(nil, c.model, messages, config),
	}, nil
}

// StreamingResponse forwards the public stream of the server.
func (c *Client) StreamingResponse(ctx context.Context, messages []mmsp.Message, config *mmsp.Config) iter.Seq2[mmsp.Event, error] {
	return func(yield func(mmsp.Event, error) bool) {
		request, err := c.Prepare(ctx, messages, config)
		if err == nil {
			err = c.forward(ctx, request, yield)
		}
		if err != nil {
			if ctx.Err() != nil {
				err = context.Cause(ctx)
			}
			yield(mmsp.Event{}, err)
		}
	}
}

// forward yields the server's events and returns the error that ends the stream, if any.
func (c *Client) forward(ctx context.Context, request *mmsp.Request, yield func(mmsp.Event, error) bool) error {
	response, err := c.http.Do(ctx, c.authorized(request))
	if err != nil {
		return refusal(err)
	}
	ended := false
	defer func() {
		if ended {
			response.Finish()
		} else {
			response.Close()
		}
	}()
	reader := sse.NewReader(response.Body, c.limits.MaxLineBytes)
	if first, err := reader.First(); err == nil && (first == '{' || first == '<') {
		body, _ := reader.Rest(1 << 20)
		return serverError(0, response.Redact(body))
	}
	stopped := false
	for number := 1; ; number++ {
		wire, err := reader.Next()
		switch {
		case err != nil && stopped:
			return nil
		case ctx.Err() != nil && !stopped: // cancelled while the server's bytes are still buffered
			return context.Cause(ctx)
		case err == io.EOF:
			return &mmsp.IncompleteStreamError{Client: class, Reason: "the server's stream ended without a stop"}
		case err != nil:
			return &mmsp.IncompleteStreamError{Client: class, Reason: "the connection to the server broke", Err: err}
		case string(wire.Data) == "[DONE]" && stopped:
			ended = true
			return nil
		case string(wire.Data) == "[DONE]":
			return &mmsp.IncompleteStreamError{Client: class, Reason: "the server's stream ended without a stop"}
		case stopped: // nothing follows a stop
			continue
		}
		if errorObject(wire.Data) != nil {
			return serverError(0, response.Redact(wire.Data))
		}
		event, rest, err := mmsp.ParseEvent(wire.Data)
		switch {
		case err != nil && wire.Unterminated:
			continue // cut in the middle of an event
		case err != nil:
			return failure.Malformed(class, number, response.Redact(wire.Data), err)
		}
		if event.Type == mmsp.EventStop {
			stopped, rest = true, nil
			response.Linger(doneWait)
		}
		event.More = len(rest) > 0 || reader.More()
		if !yield(event, nil) {
			return nil
		}
		// The grammar has one item an event; what a peer sends beyond that passes as events of their own.
		for i := range rest {
			event.Item, event.More = rest[i], i < len(rest)-1 || reader.More()
			if !yield(event, nil) {
				return nil
			}
		}
	}
}

// Do yields nothing of its own: StreamingResponse is the stream of this client.
func (c *Client) Do(context.Context, *mmsp.Request) iter.Seq2[*mmsp.UniEvent, error] {
	return func(yield func(*mmsp.UniEvent, error) bool) {
		yield(nil, &mmsp.UnsupportedOperationError{Client: class, Operation: "do", Message: class + " forwards public streams and reads no provider's events"})
	}
}

// errorObject returns the error of a payload {"error": {…}}, nil for an event.
func errorObject(payload []byte) (object []byte) {
	if !bytes.Contains(payload, []byte(`"error"`)) {
		return nil
	}
	var s jsonscan.Scanner
	s.Reset(payload)
	for first := true; s.Field(&first); {
		if string(s.Name()) == "error" && s.Kind() != 'n' {
			object = s.Raw()
		} else {
			s.Skip()
		}
	}
	return object
}

// refusal reads the error body of a status.
func refusal(err error) error {
	var status *upstream.StatusError
	if !errors.As(err, &status) {
		return failure.Upstream(class, err)
	}
	e := serverError(status.Status, status.Body)
	if e.Wire == nil {
		text := []rune(strings.ToValidUTF8(string(bytes.TrimSpace(status.Body)), "\uFFFD"))
		e = &mmsp.UpstreamError{
			Client: class, Status: status.Status, ErrorType: "HTTPError",
			Message: fmt.Sprintf("HTTP %d: %s", status.Status, string(text[:min(len(text), 200)])),
		}
	}
	e.RetryAfter = cmp.Or(status.RetryAfter, e.RetryAfter)
	e.RequestID = cmp.Or(e.RequestID, status.RequestID)
	return e
}

// serverError is the UpstreamError of a server's {"error": {…}}, which the next hop gets unchanged.
func serverError(status int, payload []byte) *mmsp.UpstreamError {
	object := errorObject(payload)
	if len(object) == 0 || object[0] != '{' {
		return failure.Body(class, payload)
	}
	var fields struct {
		Type         string          `json:"type"`
		Message      string          `json:"message"`
		Status       int             `json:"status"`
		Code         string          `json:"code"`
		Param        string          `json:"param"`
		RequestID    string          `json:"request_id"`
		RetryAfterMS int64           `json:"retry_after_ms"`
		Error        json.RawMessage `json:"error"` // the provider's own object
	}
	_ = json.Unmarshal(object, &fields)
	return &mmsp.UpstreamError{
		Client: class, Status: cmp.Or(status, fields.Status), ErrorType: fields.Type,
		Message: cmp.Or(fields.Message, fields.Type, "the server reported an error"),
		Code:    fields.Code, Param: fields.Param, RequestID: fields.RequestID,
		RetryAfter: time.Duration(min(max(fields.RetryAfterMS, 0), 1<<40)) * time.Millisecond,
		Object:     fields.Error, Wire: slices.Clone(object),
	}
}

// authorized adds what every request of the client carries.
func (c *Client) authorized(request *mmsp.Request) upstream.Request {
	header := request.Header.Clone()
	for name, value := range c.headers {
		header.Set(name, value)
	}
	if !c.key.IsZero() {
		header.Set("Authorization", "Bearer "+c.key.Reveal())
	}
	return upstream.Request{Method: request.Method, URL: request.URL, Header: header, Body: request.Body}
}

// ListModels returns the ids of GET /models.
func (c *Client) ListModels(ctx context.Context) ([]string, error) {
	response, err := c.http.Do(ctx, c.authorized(&mmsp.Request{Method: http.MethodGet, URL: c.baseURL + "/models", Header: http.Header{}}))
	if err != nil {
		return nil, refusal(err)
	}
	return modellist.Read(class, response)
}
