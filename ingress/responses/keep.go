package responses

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/ingress"
	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// keptResponse is what is kept of a response for those that follow it; keptAnswer what is kept for references to its items.
type keptResponse struct {
	Parent   string            `json:"parent"`
	System   []string          `json:"system"`
	Messages []json.RawMessage `json:"messages"` // in MMSP's form: the new input, then the answer
}

type keptAnswer struct {
	Message json.RawMessage `json:"message"`
	IDs     []string        `json:"ids"` // of its items
}

const (
	maxParents     = 1000
	maxParentBytes = 64 << 20 // of all records of a conversation
)

// Keep stores the response and its items, unless the request says that nothing is to be stored.
func (c *call) Keep(ctx context.Context, answer *mmsp.Message) error {
	c.number(answer)
	if !c.body.Stored() || c.counts {
		return nil
	}
	whole := *answer
	ids := c.ids
	if n := len(whole.ContentItems); n > 0 && whole.ContentItems[n-1].Type.IsDelta() { // a call that was cut
		whole.ContentItems, ids = whole.ContentItems[:n-1], ids[:n-1]
	}

	record := jsonscan.AppendString([]byte(`{"parent":`), c.body.PreviousResponseID)
	record = append(record, `,"system":[`...)
	for i, text := range c.system {
		if i > 0 {
			record = append(record, ',')
		}
		record = jsonscan.AppendString(record, text)
	}
	record = append(record, `],"messages":[`...)
	for i := range c.messages {
		record = append(c.messages[i].AppendJSON(record), ',')
	}
	message := whole.AppendJSON(nil)
	record = append(append(record, message...), `]}`...)
	if err := c.env.Store.Put(ctx, c.env.Caller, record, "response:"+c.id); err != nil {
		return err
	}
	if len(ids) == 0 {
		return nil
	}
	record = append(append([]byte(`{"message":`), message...), `,"ids":[`...)
	keys := make([]string, len(ids))
	for i, id := range ids {
		if i > 0 {
			record = append(record, ',')
		}
		record = jsonscan.AppendString(record, id)
		keys[i] = "item:" + id
	}
	return c.env.Store.Put(ctx, c.env.Caller, append(record, `]}`...), keys...)
}

// previous adds the conversation that ends with a response.
func (r *reading) previous(id string) error {
	var chain []keptResponse
	size := 0
	seen := map[string]bool{}
	for at := id; at != "" && !seen[at]; {
		seen[at] = true
		record, err := r.env.Store.Get(r.ctx, r.env.Caller, "response:"+at)
		if err != nil {
			return unavailable(err)
		}
		var kept keptResponse
		if record == nil || json.Unmarshal(record, &kept) != nil {
			message := fmt.Sprintf("Previous response with id '%.128s' not found.", id)
			if at != id {
				message = fmt.Sprintf("Of the conversation that response '%.128s' ends, '%.128s' is not kept any more.", id, at)
			}
			return &ingress.Problem{Kind: ingress.KindPreviousMissing, Status: http.StatusBadRequest, Message: message, Param: "previous_response_id"}
		}
		if size += len(record); size > maxParentBytes || len(chain) == maxParents {
			return ingress.Invalid("previous_response_id", "the conversation that it names is too long")
		}
		chain = append(chain, kept)
		at = kept.Parent
	}
	for i := len(chain) - 1; i >= 0; i-- {
		for _, text := range chain[i].System {
			r.talk.System(text)
		}
		for _, raw := range chain[i].Messages {
			var message mmsp.Message
			if err := json.Unmarshal(raw, &message); err != nil {
				return unavailable(err)
			}
			for _, item := range message.ContentItems {
				if message.Role == mmsp.RoleAssistant {
					r.recall("previous_response_id", item)
				} else {
					r.talk.Add(message.Role, "previous_response_id", item)
				}
			}
		}
	}
	return nil
}

func unavailable(err error) error {
	return &ingress.Problem{Kind: ingress.KindOverloaded, Status: http.StatusServiceUnavailable, Message: "stored responses cannot be read now: " + err.Error()}
}

// answers finds items by their ids. An answer is read once.
type answers struct{ byID map[string]mmsp.Item }

func (a *answers) find(ctx context.Context, env *ingress.Env, id string) (mmsp.Item, bool, error) {
	if item, ok := a.byID[id]; ok {
		return item, true, nil
	}
	record, err := env.Store.Get(ctx, env.Caller, "item:"+id)
	if err != nil {
		return mmsp.Item{}, false, unavailable(err)
	}
	var kept keptAnswer
	var message mmsp.Message
	if record == nil || json.Unmarshal(record, &kept) != nil || json.Unmarshal(kept.Message, &message) != nil ||
		len(kept.IDs) != len(message.ContentItems) {
		return mmsp.Item{}, false, nil
	}
	if a.byID == nil {
		a.byID = map[string]mmsp.Item{}
	}
	for i := range kept.IDs {
		a.byID[kept.IDs[i]] = message.ContentItems[i]
	}
	item, ok := a.byID[id]
	return item, ok, nil
}
