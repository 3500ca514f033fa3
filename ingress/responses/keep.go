package responses

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

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
	IDs     []string        `json:"ids"` // of its items, then of what was shown besides
}

const (
	maxParents   = 1000
	maxKeptBytes = 64 << 20 // of all records that a request brings back
)

// Keep stores the response and its items, unless the request says that nothing is to be stored.
func (c *call) Keep(ctx context.Context, answer *mmsp.Message) error {
	c.number(answer)
	if !c.body.Stored() || c.counts {
		return nil
	}
	whole := *answer
	if n := len(whole.ContentItems); n > 0 && whole.ContentItems[n-1].Type.IsDelta() { // a call that was cut
		whole.ContentItems = whole.ContentItems[:n-1]
	}
	c.spare = c.newID("msg_")
	ids := append(slices.Clone(c.ids), c.spare) // what is shown beyond the items of the answer can be named, too

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
	seen := map[string]bool{}
	for at := id; at != "" && !seen[at]; {
		seen[at] = true
		record, err := r.record("previous_response_id", "response:"+at)
		if err != nil {
			return err
		}
		var kept keptResponse
		if record == nil || json.Unmarshal(record, &kept) != nil {
			message := fmt.Sprintf("Previous response with id '%.128s' not found.", id)
			if at != id {
				message = fmt.Sprintf("Of the conversation that response '%.128s' ends, '%.128s' is not kept any more.", id, at)
			}
			return &ingress.Problem{Kind: ingress.KindPreviousMissing, Status: http.StatusBadRequest, Message: message, Param: "previous_response_id"}
		}
		if len(chain) == maxParents {
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

// record returns what is kept under a key that a path of the body asks for, nil where nothing is.
func (r *reading) record(path, key string) ([]byte, error) {
	var record []byte
	if r.recalled <= maxKeptBytes {
		var err error
		if record, err = r.env.Store.Get(r.ctx, r.env.Caller, key); err != nil {
			return nil, unavailable(err)
		}
		r.recalled += len(record)
	}
	if r.recalled > maxKeptBytes {
		return nil, ingress.Invalid(path, "what the request brings back of earlier responses is too long")
	}
	return record, nil
}

// keptItem is an item of an earlier answer. It stands in a conversation once: else a short body would ask for a long one.
type keptItem struct {
	item  mmsp.Item
	taken bool
}

// find returns the item that a path of the body names by its id, nil where none is kept. An answer is read once.
func (r *reading) find(path, id string) (*keptItem, error) {
	if item := r.kept[id]; item != nil {
		return item, nil
	}
	record, err := r.record(path, "item:"+id)
	if err != nil {
		return nil, err
	}
	var kept keptAnswer
	var message mmsp.Message
	if record == nil || json.Unmarshal(record, &kept) != nil || json.Unmarshal(kept.Message, &message) != nil ||
		len(kept.IDs) < len(message.ContentItems) {
		return nil, nil
	}
	for i := range kept.IDs {
		item := &keptItem{}
		if i < len(message.ContentItems) {
			item.item = message.ContentItems[i]
		}
		r.kept[kept.IDs[i]] = item
	}
	return r.kept[id], nil
}
