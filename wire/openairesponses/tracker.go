package openairesponses

// Tracker follows the items of one stream. The protocol says everything up to four times: in fragments, when a part is
// done, when its item is done, and on the terminal event; and a provider may leave out any of these.
type Tracker struct {
	items []tracked
}

// maxTracked bounds how many items are remembered; the oldest are forgotten.
const maxTracked = 256

// tracked is an item that was announced or spoken of.
type tracked struct {
	kind   string // type of the item
	index  int    // -1: not known
	id     string
	callID string
	said   uint64 // the parts whose text came, a bit each; those from lastBit on share one,
	far    [2]int // so that this is the last of them, of texts or summaries and of reasoning
	done   bool
}

// lastBit is the part that has the last bit of its kind for itself and those behind it.
const lastBit = 31

// allParts stands for parts that the wire does not number.
const allParts = ^uint64(0)

// Silent reports whether nothing of any item came yet.
func (t *Tracker) Silent() bool { return len(t.items) == 0 }

// Trim takes out of an event what earlier events of the stream have said, so that everything is read once, and gives
// arguments the place and the id of their call.
func (t *Tracker) Trim(e *Event) {
	switch e.Type {
	case EventOutputItemAdded:
		switch e.Item.Type {
		case ItemFunctionCall:
			if e.Item.Name == "" || e.Item.CallID == "" {
				e.Item.Type = "" // not yet a call; the done event has the rest
				return
			}
			fallthrough
		case ItemMessage, ItemReasoning:
			t.add(e, e.Item.Type, e.Item.ID)
		}
	case EventOutputTextDelta, EventRefusalDelta:
		t.part(e, ItemMessage, false)
	case EventReasoningDelta, EventReasoningTextDelta, EventReasoningSummaryTextDelta:
		t.part(e, ItemReasoning, false)
	case EventOutputTextDone, EventRefusalDone:
		t.part(e, ItemMessage, true)
	case EventReasoningDone, EventReasoningTextDone, EventReasoningSummaryTextDone, EventReasoningSummaryPartDone:
		t.part(e, ItemReasoning, true)
	case EventContentPartDone:
		if e.Part.Type == PartReasoningText {
			t.part(e, ItemReasoning, true)
		} else {
			t.part(e, ItemMessage, true)
		}
	case EventFunctionCallArgumentsDelta, EventFunctionCallArgumentsDone:
		call := t.find(e, ItemFunctionCall, e.ItemID)
		if call == nil || e.Type == EventFunctionCallArgumentsDone && call.said != 0 {
			e.Arguments = "" // of a call without a name the done event has all
			return
		}
		e.OutputIndex, e.CallID = call.index, call.callID
		if e.Arguments != "" {
			call.said = allParts
		}
	case EventOutputItemDone:
		t.itemDone(e)
	}
}

// part notes the text of a part, and takes it out of a done event when it came before.
func (t *Tracker) part(e *Event, kind string, done bool) {
	if e.Part.Text == "" {
		return
	}
	item := t.find(e, kind, e.ItemID)
	if item == nil {
		item = t.add(e, kind, e.ItemID)
	}
	bits, far := allParts, &item.far[0]
	if e.PartIndex >= 0 {
		bits = 1 << min(e.PartIndex, lastBit)
		if e.Part.Type == PartReasoningText { // numbered apart from the summary's
			bits, far = bits<<32, &item.far[1]
		}
	}
	if done && (item.said == allParts || item.said&bits != 0 && e.PartIndex <= max(*far, lastBit-1)) {
		e.Part.Text = ""
	}
	item.said |= bits
	*far = max(*far, e.PartIndex)
}

func (t *Tracker) itemDone(e *Event) {
	done := &e.Item
	switch done.Type {
	case ItemMessage, ItemReasoning, ItemFunctionCall:
	default:
		return
	}
	item := t.find(e, done.Type, done.ID)
	if item == nil {
		item = t.add(e, done.Type, done.ID)
	} else {
		if item.done {
			done.Type = "" // told twice
			return
		}
		done.Name, done.Phase = "", ""
		e.OutputIndex = item.index
	}
	if item.said != 0 {
		done.Arguments = ""
		for _, parts := range [][]Part{done.Content, done.Summary} {
			for i := range parts {
				parts[i].Text = ""
			}
		}
	}
	item.said, item.done = allParts, true
}

func (t *Tracker) add(e *Event, kind, id string) *tracked {
	if len(t.items) == maxTracked {
		t.items = append(t.items[:0], t.items[1:]...)
	}
	t.items = append(t.items, tracked{kind: kind, index: e.OutputIndex, id: id, callID: e.Item.CallID})
	return &t.items[len(t.items)-1]
}

// find returns the latest item that an event speaks of: by an id, else by its place. Where either has no place it is
// the open item: some providers give an item another id on every event, or none.
func (t *Tracker) find(e *Event, kind, id string) *tracked {
	var placed, open *tracked
	for i := len(t.items) - 1; i >= 0; i-- {
		item := &t.items[i]
		if item.kind != kind {
			continue
		}
		if id != "" && id == item.id || e.Item.CallID != "" && e.Item.CallID == item.callID {
			return item
		}
		another := item.done && id != "" && item.id != "" // the ids differ
		if placed == nil && item.index >= 0 && item.index == e.OutputIndex && !another {
			placed = item
		}
		if open == nil && !item.done && (item.index < 0 || e.OutputIndex < 0) {
			open = item
		}
	}
	if placed != nil {
		return placed
	}
	return open
}
