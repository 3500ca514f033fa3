package carry

import (
	"encoding/json"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// nativeKeys names the key of fidelity that a protocol's own opaque field holds. Chat Completions has no such field.
var nativeKeys = map[Protocol]string{Responses: "encrypted_content", Messages: "signature", GenerateContent: "signature"}

// Value returns what carries an item's fidelity through the opaque field of a protocol: the provider's own value,
// unchanged, where the provider speaks the protocol itself and the value is all there is; else an envelope. It is empty
// where there is nothing to carry.
func Value(protocol Protocol, peer Peer, kind string, fidelity mmsp.Fidelity, limit int) string {
	if len(fidelity) == 0 {
		return ""
	}
	if raw, ok := native(protocol, peer, fidelity); ok {
		return raw
	}
	return Seal(Envelope{Issuer: peer, Kind: kind, Fidelity: fidelity}, limit)
}

func native(protocol Protocol, peer Peer, fidelity mmsp.Fidelity) (string, bool) {
	key := nativeKeys[protocol]
	if peer.Protocol != protocol || key == "" {
		return "", false
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(fidelity, &fields) != nil {
		return "", false
	}
	for name := range fields {
		// The channel of Responses shows in where the text stands.
		if name != key && name != "issuer" && name != "channel" {
			return "", false
		}
	}
	var raw string
	_ = json.Unmarshal(fields[key], &raw) // else there is none
	return raw, raw != "" && !Sealed(raw)
}

// Restore reads what Value wrote. A value without an envelope is taken for the provider's own where the provider speaks
// the protocol: it is then the fidelity of that protocol's client, with an empty Kind. It is not ok for a value that the
// provider cannot have issued; what another issued is void.
func Restore(protocol Protocol, peer Peer, value string) (e Envelope, ok bool) {
	if Sealed(value) {
		e, ok = Open(value)
		e.Fidelity = bind(e.Kind, e.Fidelity, e.Issuer, peer)
		return e, ok
	}
	key := nativeKeys[protocol]
	if value == "" || key == "" || peer.Protocol != protocol {
		return e, false
	}
	fidelity := jsonscan.AppendString([]byte(`{"`+key+`":`), value)
	return Envelope{Issuer: peer, Fidelity: append(fidelity, '}')}, true
}
