// Package carry brings the proofs of thinking through callers that speak another protocol than the provider: sealed into
// an opaque field that the caller's protocol has, or recalled from a store where it has none.
package carry

import (
	"encoding/base64"
	"encoding/json"
	"strings"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// Peer is who answers the requests of a model.
type Peer struct {
	ClientType string   // such as "openai-chat"
	Protocol   Protocol // that the client speaks
	Host       string   // class of the endpoint: a vendor, such as "Anthropic", else a digest of its host
	Model      string   // upstream id
}

// Protocol is what a client or an ingress speaks.
type Protocol string

// The protocols.
const (
	Responses       Protocol = "responses"
	Chat            Protocol = "chat"
	Messages        Protocol = "messages"
	GenerateContent Protocol = "generateContent"
	Interactions    Protocol = "interactions"
	Embeddings      Protocol = "embeddings"
	MMSP            Protocol = "mmsp"
)

// Envelope is a proof on its way through a caller. It holds no secret: callers keep it in their histories for months.
type Envelope struct {
	Issuer   Peer
	Kind     string        // of the item that the fidelity belongs to: thinking, text, tool_call, …
	Fidelity mmsp.Fidelity // nil: too large to carry; it is recalled
	Owner    *Owner        // set where the envelope stands in an item of its own, beside the one that it belongs to
}

// Owner says which item an envelope that stands by itself belongs to.
type Owner struct {
	Previous   bool   // the item before it; else the one after
	ToolCallID string // of a tool call, as the caller knows it
}

const (
	prefix = "mmsp1."

	// MaxInline is how many bytes a protocol carries in an envelope; Responses takes MaxInlineResponses.
	MaxInline          = 1 << 20
	MaxInlineResponses = 10 << 20
)

// record is the layout of an envelope's text. A golden file fixes it.
type record struct {
	Issuer   [4]string     `json:"by"` // client type, protocol, host, model
	Kind     string        `json:"k"`
	Fidelity mmsp.Fidelity `json:"f,omitempty"`
	Owner    *owner        `json:"of,omitempty"`
}

type owner struct {
	At string `json:"at"` // next or previous
	ID string `json:"id,omitempty"`
}

// Seal returns the text of an envelope. One that would be longer than limit goes without its fidelity.
func Seal(e Envelope, limit int) string {
	r := record{Issuer: [4]string{e.Issuer.ClientType, string(e.Issuer.Protocol), e.Issuer.Host, e.Issuer.Model}, Kind: e.Kind, Fidelity: e.Fidelity}
	if e.Owner != nil {
		r.Owner = &owner{"next", e.Owner.ToolCallID}
		if e.Owner.Previous {
			r.Owner.At = "previous"
		}
	}
	if base64.RawURLEncoding.EncodedLen(len(e.Fidelity)) > limit {
		r.Fidelity = nil
	}
	text, err := json.Marshal(r)
	if err != nil { // fidelity that is no JSON
		r.Fidelity = nil
		text, _ = json.Marshal(r)
	}
	return prefix + base64.RawURLEncoding.EncodeToString(text)
}

// Sealed reports whether a text claims to be an envelope.
func Sealed(text string) bool { return strings.HasPrefix(text, prefix) }

// Open reads the text of an envelope. It is not ok for anything else: a damaged envelope, or a value of another gateway or
// of a provider.
func Open(text string) (e Envelope, ok bool) {
	encoded, ok := strings.CutPrefix(text, prefix)
	if !ok {
		return e, false
	}
	raw, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return e, false
	}
	var r record
	if json.Unmarshal(raw, &r) != nil || r.Kind == "" || len(r.Fidelity) > 0 && (r.Fidelity[0] != '{' || !jsonscan.Valid(r.Fidelity)) {
		return e, false
	}
	e = Envelope{Peer{r.Issuer[0], Protocol(r.Issuer[1]), r.Issuer[2], r.Issuer[3]}, r.Kind, r.Fidelity, nil}
	if r.Owner != nil {
		e.Owner = &Owner{r.Owner.At == "previous", r.Owner.ID}
	}
	return e, true
}
