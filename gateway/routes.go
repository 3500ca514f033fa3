package gateway

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"

	"github.com/prism-shadow/mmsp-go/gateway/config"
	"github.com/prism-shadow/mmsp-go/ingress"
	"github.com/prism-shadow/mmsp-go/ingress/chat"
	"github.com/prism-shadow/mmsp-go/ingress/embeddings"
	"github.com/prism-shadow/mmsp-go/ingress/generatecontent"
	"github.com/prism-shadow/mmsp-go/ingress/messages"
	"github.com/prism-shadow/mmsp-go/ingress/responses"
	"github.com/prism-shadow/mmsp-go/internal/carry"
)

// endpoint is an ingress protocol with its routes.
type endpoint struct {
	name     string // of its switch, gateway.http.endpoints.<name>.enabled
	protocol ingress.Protocol
	paths    []string // one that ends in a slash stands for all below it
	// get answers what is asked with GET, and reports whether there is such a route; nil: there is none.
	get func(*call) bool
	// lacks tells of a request for what the protocol has and this server has not; nil: it has all.
	lacks func(*http.Request) error
}

// endpoints is the one table of ingress protocols.
var endpoints = []endpoint{
	{name: "responses", protocol: responses.New(), paths: []string{"/v1/responses", "/v1/responses/"}, lacks: responsesLack},
	{name: "chatCompletions", protocol: chat.New(), paths: []string{"/v1/chat/completions"}},
	{name: "messages", protocol: messages.New(), paths: []string{"/v1/messages", "/v1/messages/count_tokens"}},
	{name: "generateContent", protocol: generatecontent.New(), paths: []string{"/v1beta/models", "/v1beta/models/"}, get: (*call).geminiModels},
	{name: "embeddings", protocol: embeddings.New(), paths: []string{"/v1/embeddings"}},
}

// responsesLack tells of the compaction and the WebSocket of Responses, and of its routes to a response that is kept.
func responsesLack(r *http.Request) error {
	rest, below := strings.CutPrefix(r.URL.Path, "/v1/responses/")
	switch {
	case !below && strings.Contains(strings.ToLower(r.Header.Get("Upgrade")), "websocket"):
		return ingress.Invalid("", "the WebSocket of /v1/responses is not supported; POST streams as server-sent events")
	case !below, rest == "input_tokens":
		return nil
	case rest == "compact" && r.Method == http.MethodPost:
		return ingress.Invalid("", "compaction by POST /v1/responses/compact is not supported; send the whole conversation, or previous_response_id")
	}
	return &ingress.Problem{
		Kind: ingress.KindNotFound, Status: http.StatusNotFound,
		Message: fmt.Sprintf("no route for %.16s %.200s; responses are kept for previous_response_id and item_reference alone", r.Method, r.URL.Path),
	}
}

// Endpoints returns the names of the ingress endpoints that this version has, as the configuration spells them.
func Endpoints() (names []string) {
	for _, e := range endpoints {
		names = append(names, e.name)
	}
	return names
}

// endpointOf returns the endpoint that a path belongs to.
func endpointOf(path string) *endpoint {
	for i := range endpoints {
		for _, p := range endpoints[i].paths {
			if path == p || strings.HasSuffix(p, "/") && strings.HasPrefix(path, p) {
				return &endpoints[i]
			}
		}
	}
	return nil
}

// on reports whether the configuration switches the endpoint on.
func (e *endpoint) on(c *config.Config) bool {
	for field, value := range reflect.ValueOf(c.HTTP.Endpoints).Fields() {
		if field.Tag.Get("yaml") == e.name {
			return value.Interface().(config.Endpoint).Enabled
		}
	}
	return false
}

// route answers a request to a route of the endpoint, whose caller may call.
func (c *call) route(e *endpoint) {
	var lacking error
	if e.lacks != nil {
		lacking = e.lacks(c.r)
	}
	switch {
	case !e.on(c.state.config):
		c.fail(&ingress.Problem{
			Kind: ingress.KindNotFound, Status: http.StatusNotFound,
			Message: fmt.Sprintf("this endpoint is off; gateway.http.endpoints.%s.enabled turns it on", e.name),
		})
	case lacking != nil:
		c.fail(lacking)
	case c.r.Method == http.MethodGet && e.get != nil && e.get(c):
	case c.r.Method != http.MethodPost:
		c.w.Header().Set("Allow", http.MethodPost)
		c.fail(&ingress.Problem{Kind: ingress.KindMethod, Status: http.StatusMethodNotAllowed, Message: fmt.Sprintf("%.16s is not possible here; POST is", c.r.Method)})
	default:
		c.guard(c.answerIngress)
	}
}

// listOf is the route that lists models in the form of a protocol.
func listOf(p ingress.Protocol) string {
	if p.Name() == carry.GenerateContent {
		return "/v1beta/models"
	}
	return "/v1/models"
}
