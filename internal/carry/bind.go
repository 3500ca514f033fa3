package carry

import (
	"strings"

	"github.com/prism-shadow/mmsp-go"
)

// Void is the fidelity of thinking that another provider has issued: it stays behind when a conversation moves on.
const Void = `{"void":true}`

// bind makes void what another provider has issued: thinking, which is its own alone, and any proof of another protocol
// from the same host. What else another issued tells by its issuer to the client, which knows what it is good for.
func bind(kind string, fidelity mmsp.Fidelity, issuer, peer Peer) mmsp.Fidelity {
	if issuer.open() || peer.open() {
		return fidelity
	}
	sameFamily := issuer.family() == peer.family()
	if strings.HasSuffix(kind, "thinking") {
		if sameFamily && issuer.Host == peer.Host {
			return fidelity
		}
		return mmsp.Fidelity(Void)
	}
	var bound struct {
		Issuer string `json:"issuer"`
	}
	if fidelity.Decode(&bound); sameFamily || bound.Issuer == "" {
		return fidelity
	}
	return nil
}

// open reports that what the peer leads to is not known here: it judges by itself.
func (p Peer) open() bool { return p.Protocol == MMSP || p.Protocol == "" }

// TakesDrawn reports whether the peer may take back pictures and sounds of a model's own, which only Google's models do. What
// is behind another server is not known.
func (p Peer) TakesDrawn() bool {
	return p.open() || p.family() == GenerateContent
}

// family is the protocols that share their proofs.
func (p Peer) family() Protocol {
	if p.Protocol == Interactions {
		return GenerateContent
	}
	return p.Protocol
}
