package gateway

import (
	"fmt"
	"net/http"
	"slices"
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
	// paths that end in a slash stand for all below them. Those that begin with a colon stand for what is asked of a model
	// with POST under /v1/ or /v1beta/.
	paths []string
	// get answers what is asked with GET, which is everything else; nil: there is none.
	get func(*call)
	// lacks tells of a request for what the protocol has and this server has not; nil: it has all.
	lacks func(*http.Request) error
}

// endpoints is the one table of ingress protocols.
var endpoints = []endpoint{
	{name: "responses", protocol: responses.New(), paths: []string{"/v1/responses", "/v1/responses/"}, lacks: responsesLack},
	{name: "chatCompletions", protocol: chat.New(), paths: []string{"/v1/chat/completions"}},
	{name: "messages", protocol: messages.New(), paths: []string{"/v1/messages", "/v1/messages/count_tokens"}},
	{name: "generateContent", protocol: generatecontent.New(), paths: []string{
		":generateContent", ":streamGenerateContent", ":countTokens", ":embedContent", ":batchEmbedContents",
		"/v1beta/models", "/v1beta/models/", "/v1beta/tunedModels/",
	}, get: (*call).geminiModels},
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

// endpointOf returns the endpoint that a request belongs to.
func endpointOf(r *http.Request) *endpoint {
	path := r.URL.Path
	versioned := strings.HasPrefix(path, "/v1/") || strings.HasPrefix(path, "/v1beta/")
	for i := range endpoints {
		e := &endpoints[i]
		if r.Method == http.MethodPost && versioned && e.asks(path) || slices.ContainsFunc(e.paths, func(p string) bool {
			return path == p || strings.HasSuffix(p, "/") && strings.HasPrefix(path, p)
		}) {
			return e
		}
	}
	return nil
}

// asks reports whether a path ends in what is asked of a model.
func (e *endpoint) asks(path string) bool {
	return slices.ContainsFunc(e.paths, func(p string) bool { return p[0] == ':' && strings.HasSuffix(path, p) })
}

// on reports whether the configuration switches the endpoint on.
func (e *endpoint) on(c *config.Config) bool {
	return slices.Contains(c.HTTP.Endpoints.Enabled(), e.name)
}

// route answers a request to a route of the endpoint, whose caller may call.
func (c *call) route(e *endpoint) {
	var lacking error
	if e.lacks != nil {
		lacking = e.lacks(c.r)
	}
	allowed := http.MethodPost
	if e.get != nil && !strings.Contains(c.r.URL.Path, ":") { // a list, or a model that nothing is asked of
		allowed = http.MethodGet
	}
	switch {
	case !e.on(c.state.config):
		c.fail(&ingress.Problem{
			Kind: ingress.KindNotFound, Status: http.StatusNotFound,
			Message: fmt.Sprintf("this endpoint is off; gateway.http.endpoints.%s.enabled turns it on", e.name),
		})
	case lacking != nil:
		c.fail(lacking)
	case c.r.Method == http.MethodGet && e.get != nil && !e.asks(c.r.URL.Path):
		e.get(c)
	case c.r.Method != allowed:
		c.w.Header().Set("Allow", allowed)
		c.fail(&ingress.Problem{Kind: ingress.KindMethod, Status: http.StatusMethodNotAllowed, Message: fmt.Sprintf("%.16s is not possible here; %s is", c.r.Method, allowed)})
	default:
		c.guard(c.answerIngress)
	}
}

// listOf is the route that lists models in the form of a protocol.
func listOf(p ingress.Protocol) string {
	if p != nil && p.Name() == carry.GenerateContent {
		return "/v1beta/models"
	}
	return "/v1/models"
}
