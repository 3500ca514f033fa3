// Package ingress is what the protocols that callers speak have in common: the shape of a request that has been read, of
// the encoder that answers it, and of an error. Each protocol is a package below; the gateway drives them.
//
// What a protocol's package sees is what its caller sees: tool-call ids and tool names are the caller's. The gateway
// translates them on the way to the provider and back, restores what the store recalls, and lets go of parameters that the
// provider's client cannot take.
package ingress

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/internal/carry"
	"github.com/prism-shadow/mmsp-go/internal/images"
	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// RedactedThinking is the text of a thinking item whose content its provider keeps to itself. Callers never see it.
const RedactedThinking = "_REDACTED_THINKING"

// Protocol is one protocol that callers speak.
type Protocol interface {
	// Name returns the protocol, which a row's client may speak too.
	Name() carry.Protocol
	// Parse reads the body of a request to one of the protocol's routes, whose JSON has passed jsonscan.Check. The error
	// is an *mmsp.InvalidRequestError whose Param is the path of what is wrong, such as "input[3].content[0].image_url", or
	// a *Problem where the caller is to be told of another kind.
	Parse(r *http.Request, body []byte) (Call, error)
	// AppendError appends the body of an HTTP error.
	AppendError(dst []byte, p *Problem) []byte
}

// Call is one request, and how its answer is written. An encoder's methods are called in order: Event for every delta and
// done item of the public stream, then Stop or Fail, once; or Whole alone; or Count alone. Heartbeat may come at any time
// before the end. Each appends bytes to dst, and first the beginning of the stream where it has not begun; a sign of life or
// an error needs none in some protocols.
type Call interface {
	Model() string // as the caller names it
	Streams() bool // the answer is to be streamed
	Counts() bool  // the tokens of the request are to be counted, and nothing answered

	// Read turns the request into MMSP's terms. The error is as of Parse.
	Read(ctx context.Context, env *Env) (*Request, error)

	// ContentType is that of a stream.
	ContentType() string
	// Heartbeat keeps a silent connection open.
	Heartbeat(dst []byte) []byte
	// Event writes a delta or a done item.
	Event(dst []byte, e *mmsp.Event) []byte
	// Stop ends the stream. The answer holds every done item of it, usage, finish reason and stop detail. A call that a
	// limit or a filter cut stands last in it, as a tool_call.delta with what arrived of its arguments.
	Stop(dst []byte, answer *mmsp.Message) []byte
	// Fail ends a stream that has begun, or could not begin in time, with an error.
	Fail(dst []byte, p *Problem) []byte
	// Whole writes the answer of a request that does not stream.
	Whole(dst []byte, answer *mmsp.Message) []byte
	// Count writes the answer of a request that counts.
	Count(dst []byte, tokens int64) []byte
}

// Keeper is a Call that keeps its answer for later requests.
type Keeper interface {
	// Keep stores the answer, whose items are the caller's view of them. It is called before Stop or Whole, and not at all
	// when the answer failed.
	Keep(ctx context.Context, answer *mmsp.Message) error
}

// Env is what a request is read for.
type Env struct {
	Peer      carry.Peer  // who answers
	Caller    string      // whose records are seen
	Store     carry.Store // never nil
	RequestID string
	Now       time.Time
	// Asks reports whether the client of who answers makes anything of what a config says. Not every protocol needs it.
	Asks func(*mmsp.Config) bool
	// Unreadable counts the values of opaque fields that are neither an envelope nor of the provider that answers.
	Unreadable int
	// Fetch downloads the file at a URL, which stands at a path of the body. The error is an *mmsp.InvalidRequestError at
	// the path, or that of ctx.
	Fetch func(ctx context.Context, path, url string) (*File, error)
}

// Restore reads the value of an opaque field of a protocol, as carry.Restore does.
func (e *Env) Restore(protocol carry.Protocol, value string) (carry.Envelope, bool) {
	envelope, ok := carry.Restore(protocol, e.Peer, value)
	if !ok && value != "" {
		e.Unreadable++
	}
	return envelope, ok
}

// File is a file that the request names by URL.
type File struct {
	Data      []byte
	MediaType string
	Name      string // as its server has it; empty: it has none
}

// DataURL returns the file as a data URL, with the caller's name for it if there is one.
func (f *File) DataURL(name string) string {
	return images.NamedURL(f.MediaType, cmp.Or(name, f.Name), f.Data)
}

// Item makes an item of the file: a picture or a document, which has the caller's name for it if there is one.
func (f *File) Item(name string) mmsp.Item {
	if strings.HasPrefix(f.MediaType, "image/") {
		return mmsp.ImageURL(f.DataURL(""))
	}
	return mmsp.InlineData(f.Data, f.MediaType, cmp.Or(name, f.Name))
}

// Request is a request in MMSP's terms.
type Request struct {
	Messages []mmsp.Message
	Config   mmsp.Config

	// Paths says where in the body each item of each message stands, for errors that are found later: of a picture or a file
	// the field that holds it. What was kept of an earlier answer stands where that is named.
	Paths [][]string
	// Pictures says where those of a tool's result stand, which is found by its own path.
	Pictures map[string][]string
	// ToolPaths says the same of each of Config.Tools.
	ToolPaths []string
	// Dropped names what the request holds and no provider is asked for, such as `tools[2] (web_search)`. The caller is
	// told; where the model's row is strict, the request is refused.
	Dropped []string
	// Params says where in the body the parameters of Config stand which have another name there.
	Params map[string]string
	// Unknown are fields that the protocol does not know here, and that nothing is made of.
	Unknown []string
	// Allowed are the tools that may be called, where the request restricts them; nil: all of Config.Tools.
	Allowed []string
	// Betas are what the caller asks for of Anthropic's API before it is for everyone, and what providers of that protocol are
	// asked for. Others are not told.
	Betas []string
	// Invented are the ids of calls that the caller's protocol has none for.
	Invented map[string]bool
	// OneCall reports that the caller's form has room for one call of a turn.
	OneCall bool
	// Embeds reports that vectors are wanted: one for each message.
	Embeds bool
}

// KeepTools leaves the model no tools but those of some names.
func (r *Request) KeepTools(names []string) {
	kept := make(map[string]bool, len(names))
	for _, name := range names {
		kept[name] = true
	}
	tools, paths := r.Config.Tools, r.ToolPaths
	r.Config.Tools, r.ToolPaths = nil, nil
	for i := range tools {
		if kept[tools[i].Name] {
			r.Config.Tools, r.ToolPaths = append(r.Config.Tools, tools[i]), append(r.ToolPaths, paths[i])
		}
	}
}

// Conversation gathers the turns of a request: neighbours of one role join, and texts of the system are kept in order.
type Conversation struct {
	Messages []mmsp.Message
	Paths    [][]string
	Pictures map[string][]string // as of a Request
	system   []string
}

// Add appends an item that stands at a path of the body to the turn of its role.
func (c *Conversation) Add(role mmsp.Role, path string, item mmsp.Item) {
	last := len(c.Messages) - 1
	if last < 0 || c.Messages[last].Role != role {
		c.Messages = append(c.Messages, mmsp.Message{Role: role})
		c.Paths = append(c.Paths, nil)
		last++
	}
	c.Messages[last].ContentItems = append(c.Messages[last].ContentItems, item)
	c.Paths[last] = append(c.Paths[last], path)
}

// Picture notes that the result of a tool at a path has one more picture, or file, which stands at another path.
func (c *Conversation) Picture(result, path string) {
	if c.Pictures == nil {
		c.Pictures = map[string][]string{}
	}
	c.Pictures[result] = append(c.Pictures[result], path)
}

// System appends a text of the system prompt. MMSP has no such turn in mid-conversation: its text joins what stood before.
func (c *Conversation) System(text string) {
	if strings.TrimSpace(text) != "" {
		c.system = append(c.system, text)
	}
}

// SystemPrompt joins the texts of the system; nil where there are none.
func (c *Conversation) SystemPrompt() *string {
	if len(c.system) == 0 {
		return nil
	}
	return new(strings.Join(c.system, "\n\n"))
}

// CustomTool is a tool that takes any text: for providers, which know functions alone, one of a string called input. None
// is asked to keep the text to a grammar. Its description tells the model of it, and the request's Dropped the caller.
func CustomTool(name, description, syntax, definition string) mmsp.Tool {
	if definition != "" {
		description = strings.TrimLeft(description+"\n\nThe input must fit this grammar ("+syntax+"):\n"+definition, "\n")
	}
	return mmsp.Tool{
		Name: name, Description: description,
		Parameters: []byte(`{"type":"object","properties":{"input":{"type":"string","description":"The whole input of the tool, as plain text."}},"required":["input"],"additionalProperties":false}`),
	}
}

// IsRefusal reports whether a text that has this fidelity is the model's refusal.
func IsRefusal(fidelity mmsp.Fidelity) bool {
	if len(fidelity) == 0 {
		return false
	}
	var kept struct {
		Refusal bool `json:"refusal"`
	}
	fidelity.Decode(&kept)
	return kept.Refusal
}

// Sum adds the counts that are known; nil: none is.
func Sum(counts ...*int64) (sum *int64) {
	for _, n := range counts {
		switch {
		case n == nil:
		case sum == nil:
			sum = new(*n)
		default:
			*sum += *n
		}
	}
	return sum
}

// Invalid is the error of a request whose value at a path is wrong.
func Invalid(path, message string) error {
	return &mmsp.InvalidRequestError{Param: path, Message: message}
}

// FromPath turns the error of a jsonscan.Reader into that of a request.
func FromPath(err error) error {
	var at *jsonscan.PathError
	if errors.As(err, &at) {
		return Invalid(at.Path, at.Message)
	}
	return err
}
