package messages

import (
	"encoding/json"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/ingress"
	"github.com/prism-shadow/mmsp-go/ingress/ingresstest"
	"github.com/prism-shadow/mmsp-go/internal/carry"
	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// FuzzRead reads any body. What is accepted is a conversation that clients accept.
func FuzzRead(f *testing.F) {
	sealed := carry.Seal(carry.Envelope{Issuer: geminiPeer, Kind: "text", Fidelity: mmsp.Fidelity(`{"signature":"x"}`), Owner: &carry.Owner{}}, carry.MaxInline)
	for _, body := range []string{
		turn("user", `[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw=="}},{"type":"document","source":{"type":"content","content":[{"type":"text","text":"a"}]},"title":"t","context":"c"},{"type":"document","source":{"type":"url","url":"https://files.test/a.pdf"}}]`),
		turn("user", `[{"type":"tool_result","tool_use_id":"a","content":[{"type":"search_result","source":"s","title":"t","content":[{"type":"text","text":"a"}]}],"is_error":true}]`),
		turn("assistant", `[{"type":"thinking","thinking":"","signature":"`+sealed+`"},{"type":"text","text":" "},{"type":"redacted_thinking","data":"x"},{"type":"tool_use","id":"a","name":"f","input":{"a":1}},{"type":"server_tool_use"}]`),
		`{"model":"m","max_tokens":4096,"system":[{"type":"text","text":"s"}],"messages":[{"role":"user","content":"a"},{"role":"system","content":"b"}],"thinking":{"type":"enabled","budget_tokens":2048},` +
			`"tools":[{"name":"f","input_schema":{},"strict":true},{"type":"bash_20250124","name":"bash"}],"tool_choice":{"type":"tool","name":"f","disable_parallel_tool_use":true},"output_config":{"effort":"low","format":{"type":"json_schema","schema":{}}}}`,
	} {
		f.Add([]byte(body), false)
		f.Add([]byte(body), true)
	}
	f.Fuzz(func(t *testing.T, body []byte, counts bool) {
		if jsonscan.Check(body) != nil {
			return
		}
		path := "/v1/messages"
		if counts {
			path += "/count_tokens"
		}
		for _, peer := range []carry.Peer{anthropicPeer, geminiPeer} {
			c, err := New().Parse(httptest.NewRequest("POST", path, nil), body)
			if err != nil {
				return
			}
			request, err := c.Read(t.Context(), &ingress.Env{Peer: peer, Fetch: ingresstest.Fetch})
			if err != nil {
				return
			}
			if err := mmsp.Validate(request.Messages); err != nil {
				t.Error(err)
			}
			for i := range request.Messages {
				if len(request.Messages[i].ContentItems) != len(request.Paths[i]) {
					t.Error("items and paths do not match")
				}
			}
			if len(request.Config.Tools) != len(request.ToolPaths) {
				t.Error("tools and paths do not match")
			}
		}
	})
}

// FuzzWrite streams an answer of any items in any pieces and reads it as callers send it back: it says the same, proofs
// included.
func FuzzWrite(f *testing.F) {
	f.Add([]byte("\x00\x02Hi\x05\x01a\x04\x00\x01\x12_REDACTED_THINKING\x03\x00\x02\x03key\x03\x00"))
	f.Add([]byte("\x01\x09_REDACTED\x01\x09_THINKING\x03\x00\x00\x01 \x03\x00\x04\x00\x00\x00\x03\x00\x02\x00\x02\x01x"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var deltas []mmsp.Delta
		kind, id, calls, proofs := mmsp.TextDelta, 0, 0, 0
		for len(data) > 1 {
			op, n := data[0], min(int(data[1]), len(data)-2)
			piece := strings.ToValidUTF8(string(data[2:2+n]), "?")
			data = data[2+n:]
			d := mmsp.Delta{Item: mmsp.Item{Type: kind}, ItemID: strconv.Itoa(id)}
			switch op % 5 {
			case 0:
				d.Type, d.Text = mmsp.TextDelta, piece
			case 1:
				d.Type, d.Thinking = mmsp.ThinkingDelta, piece
			case 2:
				calls++
				whole, _ := json.Marshal(map[string]string{"a": piece})
				cut := n % len(whole)
				for !utf8.RuneStart(whole[cut]) {
					cut--
				}
				d.Item = mmsp.Item{Type: mmsp.ToolCallDelta, ToolCallID: "c" + strconv.Itoa(calls), Name: "f", Arguments: string(whole[:cut])}
				deltas = append(deltas, d)
				d.Item = mmsp.Item{Type: mmsp.ToolCallDelta, Arguments: string(whole[cut:])}
			case 3: // an item has one proof
				if proofs++; kind == mmsp.ToolCallDelta && proofs > 1 {
					continue
				}
				d.Fidelity = mmsp.Fidelity(`{"a":"` + strconv.Itoa(id) + `"}`)
			case 4:
				id++
				kind = mmsp.TextDelta
				continue
			}
			if d.Type != kind || op%5 == 2 {
				proofs = 0
				id++
				d.ItemID = strconv.Itoa(id)
			}
			kind = d.Type
			deltas = append(deltas, d)
		}
		c := answering(t, geminiPeer, "")
		items := mmsp.NewStreamItems("Fuzz")
		answer := &mmsp.Message{Role: mmsp.RoleAssistant, FinishReason: mmsp.FinishStop}
		var stream []byte
		var want []mmsp.Item
		take := func(out []mmsp.Item, err error) {
			if err != nil {
				t.Skip(err)
			}
			for _, i := range out {
				stream = c.Event(stream, &mmsp.Event{Type: mmsp.EventDelta, Item: i})
				if i.Type.IsDelta() {
					continue
				}
				answer.ContentItems = append(answer.ContentItems, i)
				blank := i.Type == mmsp.TextDone && strings.TrimSpace(i.Text) == "" || i.Type == mmsp.ThinkingDone && i.Thinking == ingress.RedactedThinking
				if !blank || i.Fidelity != nil {
					want = append(want, i)
				}
			}
		}
		for i := range deltas {
			take(items.Push(&deltas[i]))
		}
		take(items.Close())
		stream = c.Stop(stream, answer)
		short(t, stream)
		if n := strings.Count(string(stream), "\nevent: message_stop\n"); n != 1 {
			t.Errorf("%d ends", n)
		}
		if len(want) == 0 {
			return
		}
		var whole struct{ Content json.RawMessage }
		if err := json.Unmarshal(answering(t, geminiPeer, "").Whole(nil, answer), &whole); err != nil {
			t.Fatal(err)
		}
		for _, content := range []string{replay(t, stream), string(whole.Content)} {
			if got := text(t, read(t, geminiPeer, turn("assistant", content)).Messages[0].ContentItems); got != text(t, want) {
				t.Errorf("got  %s\nwant %s\nby way of %s", got, text(t, want), content)
			}
		}
	})
}
