package responses

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/ingress"
	"github.com/prism-shadow/mmsp-go/ingress/ingresstest"
	"github.com/prism-shadow/mmsp-go/internal/carry"
	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// numbered is the protocol with ids and times that tests know.
func numbered() *protocol {
	counts := map[string]int{}
	return &protocol{
		newID: func(prefix string) string {
			counts[prefix]++
			return fmt.Sprintf("%sa%d", prefix, counts[prefix])
		},
		now: func() time.Time { return time.Unix(1790000002, 0) },
	}
}

var (
	chatPeer   = carry.Peer{ClientType: "openai-chat", Protocol: carry.Chat, Host: "host", Model: "m"}
	nativePeer = carry.Peer{ClientType: "openai-official", Protocol: carry.Responses, Host: "openai", Model: "m"}
	googlePeer = carry.Peer{ClientType: "google-genai", Protocol: carry.GenerateContent, Host: "google", Model: "m"}
)

func environment(peer carry.Peer, store carry.Store) *ingress.Env {
	if store == nil {
		store = carry.NewMemory(time.Hour, 1<<30)
	}
	return &ingress.Env{Peer: peer, Caller: "me", Store: store, Now: time.Unix(1790000000, 0), Fetch: ingresstest.Fetch}
}

// parse reads a body for a peer.
func parse(t testing.TB, p *protocol, env *ingress.Env, body string, headers ...string) (*call, *ingress.Request, error) {
	t.Helper()
	if err := jsonscan.Check([]byte(body)); err != nil {
		t.Fatalf("the test's body: %v", err)
	}
	r := httptest.NewRequest("POST", "/v1/responses", nil)
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	parsed, err := p.Parse(r, []byte(body))
	if err != nil {
		return nil, nil, err
	}
	request, err := parsed.Read(context.Background(), env)
	return parsed.(*call), request, err
}

func ask(fields string) string {
	return `{"model":"demo-1","input":"Hi"` + fields + `}`
}

// events makes the public stream of an answer: of each item one delta for each of the pieces that its text is given as,
// with the fidelity on the first, then the whole.
func events(items ...[]mmsp.Item) (list []mmsp.Event, answer mmsp.Message) {
	answer.Role = mmsp.RoleAssistant
	for _, pieces := range items {
		whole := pieces[0]
		whole.Type = mmsp.ItemType(whole.Type.Kind() + ".done")
		for i := range pieces {
			list = append(list, mmsp.Event{Type: mmsp.EventDelta, Item: pieces[i]})
			if i > 0 {
				whole.Text += pieces[i].Text
				whole.Thinking += pieces[i].Thinking
				whole.Arguments += pieces[i].Arguments
			}
		}
		if whole.Type == mmsp.ToolCallDone && whole.Arguments == "" {
			whole.Arguments = "{}"
		}
		list = append(list, mmsp.Event{Type: mmsp.EventDelta, Item: whole})
		answer.ContentItems = append(answer.ContentItems, whole)
	}
	answer.FinishReason = mmsp.FinishStop
	answer.Usage = &mmsp.Usage{}
	return list, answer
}

func text(pieces ...string) (items []mmsp.Item) {
	for _, piece := range pieces {
		items = append(items, mmsp.Item{Type: mmsp.TextDelta, Text: piece})
	}
	return items
}

func thinking(pieces ...string) (items []mmsp.Item) {
	for _, piece := range pieces {
		items = append(items, mmsp.Item{Type: mmsp.ThinkingDelta, Thinking: piece})
	}
	return items
}

func toolCall(id, name string, pieces ...string) []mmsp.Item {
	items := []mmsp.Item{{Type: mmsp.ToolCallDelta, ToolCallID: id, Name: name}}
	for _, piece := range pieces {
		items = append(items, mmsp.Item{Type: mmsp.ToolCallDelta, Arguments: piece})
	}
	return items
}

// proven puts a fidelity on the first piece of an item.
func proven(items []mmsp.Item, fidelity string) []mmsp.Item {
	items[0].Fidelity = mmsp.Fidelity(fidelity)
	return items
}

// stream writes events and the end of their answer.
func stream(c *call, list []mmsp.Event, answer *mmsp.Message) string {
	var out []byte
	for i := range list {
		out = c.Event(out, &list[i])
	}
	if err := c.Keep(context.Background(), answer); err != nil {
		panic(err)
	}
	return string(c.Stop(out, answer))
}

// brief leaves out of a stream what its own test checks: event lines, sequence numbers and the resources of lifecycle
// events, of which the status and the output stay.
func brief(t testing.TB, out string) []string {
	t.Helper()
	var lines []string
	number := 0
	for block := range strings.SplitSeq(strings.TrimSuffix(out, "\n\n"), "\n\n") {
		if strings.HasPrefix(block, ":") || block == "data: [DONE]" {
			lines = append(lines, block)
			continue
		}
		name, data, _ := strings.Cut(block, "\ndata: ")
		name = strings.TrimPrefix(name, "event: ")
		if strings.Contains(data, "\n") {
			t.Errorf("a line break in %s", data)
		}
		if err := jsonscan.Check([]byte(data)); err != nil {
			t.Errorf("%v in %s", err, data)
		}
		head := fmt.Sprintf(`{"type":%q,"sequence_number":%d,`, name, number)
		rest, ok := strings.CutPrefix(data, head)
		if !ok {
			t.Errorf("%s does not begin with %s", data, head)
		}
		number++
		if strings.HasPrefix(rest, `"response":`) {
			var e struct {
				Response struct {
					Status     string
					Output     json.RawMessage
					Incomplete struct{ Reason string } `json:"incomplete_details"`
					Error      json.RawMessage
				}
			}
			_ = json.Unmarshal([]byte(data), &e)
			rest = e.Response.Status
			if e.Response.Incomplete.Reason != "" {
				rest += " " + e.Response.Incomplete.Reason
			}
			if string(e.Response.Error) != "null" {
				rest += " " + string(e.Response.Error)
			}
			if string(e.Response.Output) != "[]" {
				rest += " " + string(e.Response.Output)
			}
		} else {
			rest = strings.TrimSuffix(rest, "}")
		}
		lines = append(lines, strings.TrimPrefix(name, "response.")+" "+rest)
	}
	return lines
}

func compare(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}
