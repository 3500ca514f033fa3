package carry

import (
	"encoding/json"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// bind makes a proof void for a peer that speaks another protocol than who issued it. Clients tell issuers apart by their
// hosts, and one host may serve several protocols, whose proofs are alike in nothing but their shape. What another MMSP
// server leads to is for that one to tell.
func bind(fidelity mmsp.Fidelity, issuer, peer Peer) mmsp.Fidelity {
	if len(fidelity) == 0 || family(issuer.Protocol) == family(peer.Protocol) || open(issuer.Protocol) || open(peer.Protocol) {
		return fidelity
	}
	var fields map[string]json.RawMessage
	var by string
	if json.Unmarshal(fidelity, &fields) != nil || json.Unmarshal(fields["issuer"], &by) != nil {
		return fidelity // bound to nobody
	}
	fields["issuer"] = jsonscan.AppendString(nil, by+" "+string(issuer.Protocol))
	bound, err := json.Marshal(fields)
	if err != nil {
		return fidelity
	}
	return bound
}

// family is the protocols that share their proofs.
func family(p Protocol) Protocol {
	if p == Interactions {
		return GenerateContent
	}
	return p
}

func open(p Protocol) bool { return p == MMSP || p == "" }
