package gateway

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/gateway/metrics"
	"github.com/prism-shadow/mmsp-go/ingress"
	"github.com/prism-shadow/mmsp-go/internal/carry"
	"github.com/prism-shadow/mmsp-go/internal/tokens"
	"github.com/prism-shadow/mmsp-go/internal/upstream"
)

// answerIngress answers a request in a protocol of another's SDKs.
func (c *call) answerIngress() {
	asked, ok := c.acceptIngress()
	if !ok {
		return
	}
	env := &ingress.Env{
		Peer: c.row.peer, Asks: c.row.asks, Fetch: c.files().fetch,
		Caller: c.caller, Store: c.store, RequestID: c.id, Now: c.began,
	}
	request, err := asked.Read(c.r.Context(), env)
	c.metrics.Unreadable(env.Unreadable)
	if err == nil {
		c.tellUnknown(request.Unknown)
		err = c.fits(request)
	}
	switch {
	case errors.Is(err, ingress.ErrShutdown):
		c.fail(err)
		return
	case errors.Is(err, context.Canceled): // the caller left while a file was fetched
		c.err, c.outcome = err, outcomeDisconnect
		return
	case err != nil:
		c.refuse(metrics.InvalidRequest, err)
		return
	}
	x := &exchange{call: c, asked: asked, request: request, env: env, words: newTranslator(c.row.peer, c.row.host, c.protocol.Name())}
	if err := x.prepare(); err != nil {
		c.refuse(metrics.InvalidRequest, err)
		return
	}
	x.ledger()
	if asked.Counts() {
		x.count()
		return
	}
	c.begin()
	if asked.Streams() {
		c.out = newEventWriter(c.w, c.state.config.KeepAlive, ingressEncoder{x})
	} else {
		c.out = newEventWriter(c.w, 0, wholeEncoder{ingressEncoder{x}})
	}
	c.copy(x.stream())
}

// begin counts a request that goes to a provider.
func (c *call) begin() {
	c.counted = c.metrics.Begin(c.row.counted)
	c.streams.Add(1)
}

// acceptIngress reads the request and finds the row that answers. A request that cannot be is answered, and not ok.
func (c *call) acceptIngress() (asked ingress.Call, ok bool) {
	body, ok := c.acceptBody()
	if !ok {
		return nil, false
	}
	asked, err := c.protocol.Parse(c.r, body)
	if err != nil {
		c.refuse(metrics.InvalidRequest, err)
		return nil, false
	}
	return asked, c.find(asked.Model())
}

// fits refuses to ask a model for what it does not make. Of the models of another MMSP server nothing is known here.
func (c *call) fits(request *ingress.Request) error {
	embeds := c.row.client.Embeds()
	switch {
	case c.row.relay || embeds == request.Embeds:
		return nil
	case embeds:
		return ingress.Invalid("model", fmt.Sprintf("the model %.200q makes vectors only", c.model))
	}
	return ingress.Invalid("model", fmt.Sprintf("the model %.200q makes no vectors", c.model))
}

// unknownFields are fields of requests that the log has named, each behind its protocol.
type unknownFields struct {
	sync.Mutex
	told map[string]bool
}

// maxUnknownFields is how many the log names: callers make them up.
const maxUnknownFields = 1024

// tellUnknown has the log name fields of a request that its protocol does not know here, each once.
func (c *call) tellUnknown(fields []string) {
	if len(fields) == 0 || !c.log.Enabled(c.r.Context(), slog.LevelDebug) {
		return
	}
	c.unknown.Lock()
	defer c.unknown.Unlock()
	for _, field := range fields {
		key := string(c.protocol.Name()) + " " + field
		if c.unknown.told[key] || len(c.unknown.told) == maxUnknownFields {
			continue
		}
		if c.unknown.told == nil {
			c.unknown.told = map[string]bool{}
		}
		c.unknown.told[key] = true
		c.log.Debug("an unknown field is ignored", "id", c.id, "protocol", c.protocol.Name(), "field", field)
	}
}

// strict refuses what the row's callers are not to lose. A name may begin with the place in the body.
func (x *exchange) strict(dropped []string) error {
	if !x.row.strict || len(dropped) == 0 {
		return nil
	}
	told := make([]string, len(dropped))
	for i, lost := range dropped {
		name, rest, _ := strings.Cut(lost, " ")
		told[i] = strings.TrimSpace(x.param(name) + " " + rest)
	}
	path, _, _ := strings.Cut(told[0], " ")
	return ingress.Invalid(path, "the model cannot take "+strings.Join(told, ", ")+", and its row is strict")
}

// exchange is a request of an ingress protocol on its way.
type exchange struct {
	*call
	asked   ingress.Call
	request *ingress.Request
	env     *ingress.Env
	words   *translator

	trail   *carry.Trail // of the history as the caller has it
	dropped []string
	answer  mmsp.Message // as the caller has it
	open    bool         // the last item has no end yet

	// The call that is open, for the case that it is cut.
	cut       mmsp.Item
	arguments []byte
}

// prepare makes of what the caller sent what the provider is to get.
func (x *exchange) prepare() error {
	r := x.request
	x.dropped = append(slices.Clone(r.Dropped), fit(r, x.row)...)
	if err := x.strict(x.dropped); err != nil {
		return err
	}
	fitTools(r.Config.Tools, x.protocol.Name(), x.row.peer.Protocol)
	known, trail, err := carry.Recall(x.r.Context(), x.store, x.env.Caller, x.env.Peer, r.Messages, r.Paths, r.Invented)
	if err != nil {
		x.log.Error("proofs of thinking are lost to this request", "id", x.id, "error", err)
	}
	x.trail = trail
	x.leaveBehind()
	if err := x.converses(); err != nil {
		return err
	}
	orderResults(r)
	x.words.in(r, known)
	r.Messages = mmsp.NormalizeLegacy(r.Messages)
	if err := mmsp.Validate(r.Messages); err != nil {
		return x.located(err)
	}
	if err := x.settle(); err != nil {
		return err
	}
	cooled := cool(&r.Config, x.row)
	x.dropped = append(x.dropped, cooled...)
	return x.strict(cooled)
}

// settle lets go of what the client refuses, which no client does because of messages: before a heartbeat begins the answer,
// the caller can still be told. What another MMSP server refuses is not known before it answers.
func (x *exchange) settle() error {
	if x.row.relay {
		return nil
	}
	for range maxRefusals {
		var refused *mmsp.UnsupportedParameterError
		if _, err := x.row.tries(x.context(), &x.request.Config); !errors.As(err, &refused) {
			return nil // any other error comes again with the messages
		}
		if err := x.drop(refused); err != nil {
			return err
		}
	}
	return errInternal
}

// drop lets go of a parameter that the client refused. Its error refuses the request.
func (x *exchange) drop(refused *mmsp.UnsupportedParameterError) error {
	before := x.request.Config.AppendJSON(nil)
	dropped, ok := letGo(&x.request.Config, refused.Parameter, x.row)
	switch {
	case !ok, bytes.Equal(before, x.request.Config.AppendJSON(nil)): // another attempt would be refused again
		return x.located(refused)
	case dropped == "":
		return nil
	}
	if err := x.strict([]string{dropped}); err != nil {
		return err
	}
	x.dropped = append(x.dropped, dropped)
	return nil
}

// leaveBehind leaves out what a model has drawn where the one that is asked does not take it back, whether the caller sent it
// or it was recalled, and the thinking of other models: what is void, and what nothing proves to be of the model that is
// asked, unless the caller speaks its protocol. A turn with calls and no thinking has an empty thought where providers want
// the field of it on every such turn; their clients know which do.
func (x *exchange) leaveBehind() {
	r, peer := x.request, x.row.peer.Protocol
	turns := 0
	for m, message := range r.Messages {
		kept := message.ContentItems[:0:0]
		var paths []string
		thought := false
		for i, item := range message.ContentItems {
			if drawn(item.Type) && message.Role == mmsp.RoleAssistant && !x.row.peer.TakesDrawn() {
				continue
			}
			if item.Type == mmsp.ThinkingDone {
				if string(item.Fidelity) == carry.Void || item.Fidelity == nil && peer != x.protocol.Name() {
					continue
				}
				thought = true
			}
			kept, paths = append(kept, item), append(paths, r.Paths[m][i])
		}
		if !thought && peer == carry.Chat && len(message.ToolCalls()) > 0 {
			kept, paths = slices.Insert(kept, 0, mmsp.Thinking("")), slices.Insert(paths, 0, paths[0])
		}
		if len(kept) > 0 {
			message.ContentItems = kept
			r.Messages[turns], r.Paths[turns] = message, paths
			turns++
		}
	}
	r.Messages, r.Paths = r.Messages[:turns], r.Paths[:turns]
}

var (
	itemPath = regexp.MustCompile(`^messages\[(\d+)\](?:\.content_items\[(\d+)\](?:\.images\[(\d+)\])?)?`)
	toolPath = regexp.MustCompile(`^tools\[(\d+)\]`)
)

// param returns where the caller's body has a parameter of MMSP's Config. A place in the body stays what it is.
func (x *exchange) param(name string) string { return cmp.Or(x.request.Params[name], name) }

// located turns the place of an error in MMSP's messages or tools into that in the caller's body.
func (x *exchange) located(err error) error {
	var refused *mmsp.UnsupportedParameterError
	if errors.As(err, &refused) {
		if at := toolPath.FindStringSubmatch(refused.Parameter); at != nil {
			if i, _ := strconv.Atoi(at[1]); i < len(x.request.ToolPaths) {
				return ingress.Invalid(x.request.ToolPaths[i], refused.Message)
			}
		}
		return ingress.Invalid(x.param(refused.Parameter), refused.Message)
	}
	var invalid *mmsp.InvalidRequestError
	if !errors.As(err, &invalid) {
		return err
	}
	at := itemPath.FindStringSubmatch(invalid.Param)
	if at == nil {
		return err
	}
	m, _ := strconv.Atoi(at[1])
	i, _ := strconv.Atoi(at[2])
	path := ""
	if m < len(x.request.Paths) && i < len(x.request.Paths[m]) {
		path = x.request.Paths[m][i]
	}
	if pictures := x.request.Pictures[path]; at[3] != "" {
		if n, _ := strconv.Atoi(at[3]); n < len(pictures) {
			path = pictures[n]
		}
	}
	return ingress.Invalid(path, invalid.Message)
}

// context is that of what the provider is asked.
func (x *exchange) context() context.Context {
	return upstream.WithBetas(x.r.Context(), x.request.Betas)
}

// maxRefusals is more than there are parameters that a client can refuse.
const maxRefusals = 32

// stream is the public stream in the caller's terms. Parameters that another MMSP server refuses are let go of; a turn of
// nothing is a turn; what the caller's protocol would lose is kept before the stop goes out.
func (x *exchange) stream() iter.Seq2[mmsp.Event, error] {
	return func(yield func(mmsp.Event, error) bool) {
		ctx := x.context()
		if x.asked.Streams() {
			ctx = upstream.WithBegun(ctx, x.out.begin)
		}
		for range maxRefusals {
			var refused *mmsp.UnsupportedParameterError
			begun := false
			for event, err := range x.row.client.StreamingResponse(ctx, x.request.Messages, &x.request.Config) {
				if err != nil {
					err = fromRelay(err)
				}
				if !begun {
					if begun = true; errors.As(err, &refused) {
						break
					}
				}
				if err != nil {
					x.fails(err, yield)
					return
				}
				if !x.pass(&event, yield) {
					return
				}
			}
			if refused == nil {
				return
			}
			if err := x.drop(refused); err != nil {
				yield(mmsp.Event{}, err)
				return
			}
			x.ledger()
		}
		yield(mmsp.Event{}, errInternal)
	}
}

// fails ends the stream with an error, unless it is an answer after all: a turn of nothing, or a call that a limit or a filter cut.
func (x *exchange) fails(err error, yield func(mmsp.Event, error) bool) {
	var (
		empty     *mmsp.EmptyResponseError
		arguments *mmsp.ToolCallArgumentParseError
	)
	switch {
	case errors.As(err, &empty):
		x.stop(&mmsp.Event{Type: mmsp.EventStop, Usage: empty.Usage, FinishReason: empty.FinishReason, StopDetail: empty.StopDetail}, yield)
	case errors.As(err, &arguments) && ingress.Cut(arguments):
		x.cut.Arguments = string(x.arguments)
		x.answer.ContentItems = append(x.answer.ContentItems, x.cut)
		x.stop(&mmsp.Event{Type: mmsp.EventStop, Usage: arguments.Usage, FinishReason: arguments.FinishReason, StopDetail: arguments.StopDetail}, yield)
	default:
		yield(mmsp.Event{}, x.located(err))
	}
}

// pass hands one event on in the caller's terms, and reports whether the stream goes on.
func (x *exchange) pass(event *mmsp.Event, yield func(mmsp.Event, error) bool) bool {
	if event.Type == mmsp.EventStop {
		if x.open { // of another server, whose stream nobody has checked
			yield(mmsp.Event{}, &mmsp.StreamProtocolError{Client: x.row.client.Provider().Class(), Detail: "the stop came in the middle of an item"})
		} else {
			x.stop(event, yield)
		}
		return false
	}
	x.words.out(event)
	item := &event.Item
	x.open = item.Type.IsDelta()
	switch item.Type {
	case mmsp.ToolCallDelta:
		if x.cut.Type == "" {
			x.cut = *item
		}
		x.arguments = append(x.arguments, item.Arguments...)
		if item.Name != "" && !x.allows(item.Name) {
			yield(mmsp.Event{}, x.forbidden(item.Name))
			return false
		}
	case mmsp.ToolCallDone:
		if x.cut, x.arguments = (mmsp.Item{}), x.arguments[:0]; !x.allows(item.Name) {
			yield(mmsp.Event{}, x.forbidden(item.Name))
			return false
		}
	}
	if !item.Type.IsDelta() {
		x.answer.ContentItems = append(x.answer.ContentItems, *item)
	}
	return yield(*event, nil)
}

// allows reports whether the request lets the model call a tool.
func (x *exchange) allows(name string) bool {
	return x.request.Allowed == nil || slices.Contains(x.request.Allowed, name)
}

func (x *exchange) forbidden(name string) error {
	return &ingress.Problem{
		Kind: ingress.KindUpstream, Status: http.StatusBadGateway, Final: true,
		Message: fmt.Sprintf("the model called the tool %.100q, which the request does not allow", name),
	}
}

// stop ends the answer.
func (x *exchange) stop(event *mmsp.Event, yield func(mmsp.Event, error) bool) {
	x.answer.Role, x.answer.Usage, x.answer.FinishReason, x.answer.StopDetail = mmsp.RoleAssistant, event.Usage, event.FinishReason, event.StopDetail
	ctx := context.WithoutCancel(x.r.Context())
	err := carry.Remember(ctx, x.store, x.env.Caller, x.env.Peer, x.trail, &x.answer, x.words.given)
	if keeper, ok := x.asked.(ingress.Keeper); ok {
		x.out.sync(func() { err = errors.Join(err, keeper.Keep(ctx, &x.answer)) })
	}
	if err != nil { // the turn succeeds all the same
		x.log.Error("the store failed, what it would have kept of this answer is lost", "id", x.id, "error", err)
	}
	yield(*event, nil)
}

// count answers how many tokens the request costs as input: by the provider's own counter, else by an estimate.
func (x *exchange) count() {
	var operation *mmsp.UnsupportedOperationError
	n, err := x.row.client.CountTokens(x.context(), x.request.Messages, &x.request.Config)
	switch {
	case errors.As(err, &operation):
		n = tokens.Estimate(x.request.Messages, &x.request.Config, x.row.peer.Model)
		x.w.Header().Set("X-Mmsp-Token-Count", "estimated")
	case err != nil:
		x.fail(x.located(err))
		return
	}
	x.json(http.StatusOK, x.asked.Count(nil, n))
}

// ledger tells the caller what of the request no provider is asked for, unless a heartbeat has begun the answer.
func (x *exchange) ledger() {
	if list := strings.Join(x.dropped, ", "); list != "" {
		x.out.sync(func() { x.w.Header().Set("X-Mmsp-Dropped", headerText(list[:min(len(list), 1024)])) })
	}
}

// headerText makes a text fit for a header.
func headerText(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
}

// ingressEncoder writes a stream as the caller's protocol has it.
type ingressEncoder struct{ *exchange }

func (e ingressEncoder) ContentType() string         { return e.asked.ContentType() }
func (e ingressEncoder) Heartbeat(dst []byte) []byte { return e.asked.Heartbeat(dst) }
func (e ingressEncoder) Event(dst []byte, event *mmsp.Event) []byte {
	return e.asked.Event(dst, event)
}

func (e ingressEncoder) Stop(dst []byte, _ *mmsp.Event) []byte { return e.asked.Stop(dst, &e.answer) }

func (e ingressEncoder) Fail(dst []byte, err error) []byte {
	return e.asked.Fail(dst, e.problem(err))
}

// wholeEncoder writes an answer in one piece, at its end.
type wholeEncoder struct{ ingressEncoder }

func (wholeEncoder) ContentType() string                    { return "application/json" }
func (wholeEncoder) Event(dst []byte, _ *mmsp.Event) []byte { return dst }
func (e wholeEncoder) Stop(dst []byte, _ *mmsp.Event) []byte {
	dst = e.asked.Whole(dst, &e.answer)
	e.w.Header().Set("Content-Length", strconv.Itoa(len(dst)))
	return dst
}
