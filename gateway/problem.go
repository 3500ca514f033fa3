package gateway

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/ingress"
)

// problem is an error as the caller of an ingress protocol is told of it.
func (c *call) problem(err error) *ingress.Problem {
	p := ingress.Explain(err)
	if errors.Is(err, errInternal) {
		p.Kind, p.Status, p.Final = ingress.KindInternal, http.StatusInternalServerError, true
	}
	p.RequestID = c.id
	p.Message, p.Code, p.Param = c.redact(p.Message), c.redact(p.Code), c.redact(p.Param)
	return p
}

// failIngress answers with an error that came before anything else.
func (c *call) failIngress(err error) {
	c.err = err
	p := c.problem(err)
	h := c.w.Header()
	if p.RetryAfter > 0 {
		h.Set("Retry-After", retryAfter(p.RetryAfter))
		h.Set("Retry-After-Ms", strconv.FormatInt(p.RetryAfter.Milliseconds(), 10))
	}
	if id := c.redact(p.UpstreamID); requestIDForm.MatchString(id) {
		h.Set("X-Upstream-Request-Id", id)
	}
	if p.Final {
		h.Set("X-Should-Retry", "false")
	}
	status := p.Status
	if s, ok := c.protocol.(interface{ Status(*ingress.Problem) int }); ok {
		status = s.Status(p)
	}
	c.json(status, c.protocol.AppendError(nil, p))
}

// fromRelay reads the errors that another MMSP server passed on, so that they are what they were there.
func fromRelay(err error) error {
	var upstream *mmsp.UpstreamError
	if !errors.As(err, &upstream) || upstream.Wire == nil {
		return err
	}
	var wire struct {
		Type       string            `json:"type"`
		Client     string            `json:"client"`
		Parameter  string            `json:"parameter"`
		Param      string            `json:"param"`
		ErrorType  string            `json:"error_type"`
		ToolName   string            `json:"tool_name"`
		ToolCallID string            `json:"tool_call_id"`
		Finish     mmsp.FinishReason `json:"finish_reason"`
		Usage      *mmsp.Usage       `json:"usage_metadata"`
		Detail     *mmsp.StopDetail  `json:"stop_detail"`
	}
	if json.Unmarshal(upstream.Wire, &wire) != nil {
		return err
	}
	switch wire.Type {
	case "UnsupportedParameterError":
		return &mmsp.UnsupportedParameterError{Client: wire.Client, Parameter: wire.Parameter, Message: upstream.Message}
	case "InvalidRequestError":
		return &mmsp.InvalidRequestError{Param: wire.Param, Message: upstream.Message}
	case "EmptyResponseError":
		return &mmsp.EmptyResponseError{Client: wire.Client, FinishReason: wire.Finish, Usage: wire.Usage, StopDetail: wire.Detail}
	case "ToolCallArgumentParseError":
		return &mmsp.ToolCallArgumentParseError{
			Client: wire.Client, ToolName: wire.ToolName, ToolCallID: wire.ToolCallID, Reason: upstream.Message,
			FinishReason: wire.Finish, Usage: wire.Usage, StopDetail: wire.Detail,
		}
	case "UpstreamError":
		told := *upstream
		told.ErrorType, told.Wire = wire.ErrorType, nil
		return &told
	}
	return err
}
