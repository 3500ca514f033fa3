package responses

import (
	"context"
	"encoding/json"
	"errors"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// FuzzRead: a body is refused with the reason, or what it says can be sent.
func FuzzRead(f *testing.F) {
	for _, body := range []string{
		ask(tools),
		`{"model":"m","input":[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,YWJj","detail":"low"},{"type":"input_file","file_data":"YWJj"}]}]}`,
		`{"model":"m","input":[{"type":"reasoning","summary":[],"encrypted_content":"` + sealed("text", `{"signature":"s"}`, nil) + `"},{"role":"assistant","content":"A","phase":"commentary"}]}`,
		`{"model":"m","input":[{"type":"function_call","call_id":"c","name":"n","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"x"}],"previous_response_id":"resp_0"}`,
		`{"model":"m","input":[{"type":"custom_tool_call","call_id":"c","name":"n","namespace":"g","input":"x"},{"type":"additional_tools","tools":[{"type":"function","name":"x"}]}],"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"x"}]}}`,
	} {
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body string) {
		if jsonscan.Check([]byte(body)) != nil {
			return
		}
		read := func() (*call, []string, error) {
			parsed, err := numbered().Parse(httptest.NewRequest("POST", "/v1/responses", nil), []byte(body))
			if err != nil {
				return nil, nil, err
			}
			request, err := parsed.Read(context.Background(), environment(googlePeer, nil))
			if err != nil {
				return nil, nil, err
			}
			if err := mmsp.Validate(request.Messages); err != nil {
				t.Errorf("accepted, but %v", err)
			}
			if len(request.Paths) != len(request.Messages) || len(request.ToolPaths) != len(request.Config.Tools) {
				t.Error("something has no path")
			}
			return parsed.(*call), described(request), nil
		}
		c, lines, err := read()
		if err != nil {
			var invalid *mmsp.InvalidRequestError
			if !errors.As(err, &invalid) && !strings.Contains(err.Error(), "not found") {
				t.Errorf("the error is %T: %v", err, err)
			}
			return
		}
		if _, again, _ := read(); !slices.Equal(lines, again) {
			t.Errorf("read twice:\n%s\nand\n%s", strings.Join(lines, "\n"), strings.Join(again, "\n"))
		}
		answer := mmsp.AssistantMessage(mmsp.Text("A"))
		if whole := c.Whole(nil, &answer); jsonscan.Check(whole) != nil {
			t.Errorf("the resource is no JSON: %s", whole)
		}
	})
}

// middle is about half of a text, and not within a character.
func middle(text string) int {
	half := len(text) / 2
	for half > 0 && !utf8.RuneStart(text[half]) {
		half--
	}
	return half
}

// FuzzWrite: any public stream becomes one whose fragments are what the ends of items say, and whose last event shows the
// items that were announced, in their order.
func FuzzWrite(f *testing.F) {
	f.Add("tHello|T|h\\x|sHm|S|c{\"a\":1}|C|kone|i|", byte(0))
	f.Add("F|t|t|c|k{\"input\":\"a\\ud83d|c\"|", byte(1))
	f.Add("h_REDACTED_THINKING|s|rNo.|", byte(6))
	f.Fuzz(func(t *testing.T, script string, ending byte) {
		c, _, err := parse(t, numbered(), environment(googlePeer, nil), ask(tools))
		if err != nil {
			t.Fatal(err)
		}
		// Each piece of the script is an item, its first letter the kind, upper case a signed one.
		var items [][]mmsp.Item
		for n, piece := range strings.Split(strings.ToValidUTF8(script, "?"), "|") {
			if piece == "" || n > 20 {
				continue
			}
			half := max(middle(piece), 1)
			var item []mmsp.Item
			switch piece[0] | 0x20 {
			case 't':
				item = text(piece[1:half], piece[half:])
			case 'r':
				item = proven(text(piece[1:half], piece[half:]), `{"refusal":true}`)
			case 'h':
				item = thinking(piece[1:half], piece[half:])
			case 'i':
				item = []mmsp.Item{{Type: mmsp.InlineDataDelta, MimeType: "image/png", Data: []byte(piece)}}
			default:
				name, arguments := "dig", piece[1:]
				if piece[0]|0x20 == 'k' {
					name = "note"
				}
				if jsonscan.CheckObject(arguments) != nil {
					arguments = string(append(jsonscan.AppendString([]byte(`{"input":`), arguments), '}'))
				}
				half = middle(arguments)
				item = toolCall(string(rune('a'+n)), name, arguments[:half], arguments[half:])
			}
			if piece[0] < 'a' {
				item[0].Fidelity = mmsp.Fidelity(`{"signature":"s"}`)
			}
			items = append(items, item)
		}
		list, answer := events(items...)
		details := []*mmsp.StopDetail{nil, {Kind: "filter"}, {Kind: "refusal", Text: "No."}, {Kind: "refusal"}, {Kind: "malformed_call"}, {Kind: "pause"}, {Kind: "context"}}
		answer.FinishReason = []mmsp.FinishReason{mmsp.FinishStop, mmsp.FinishLength, mmsp.FinishUnknown}[int(ending)%3]
		answer.StopDetail = details[int(ending/3)%len(details)]

		var announced, ended []string
		said, fragments := "", ""
		out := stream(c, list, &answer)
		brief(t, out)
		for block := range strings.SplitSeq(out, "\n\n") {
			_, data, _ := strings.Cut(block, "\ndata: ")
			var e struct {
				Type, Delta, Text, Refusal, Arguments, Input string
				Index                                        int `json:"output_index"`
				Item                                         struct{ ID string }
				Response                                     struct{ Output []struct{ ID string } }
			}
			if data == "" || json.Unmarshal([]byte(data), &e) != nil {
				continue
			}
			switch {
			case strings.HasSuffix(e.Type, "output_item.added"):
				announced, said, fragments = append(announced, e.Item.ID), "", ""
				if e.Index != len(announced)-1 || len(ended) != e.Index {
					t.Errorf("item %d is announced as %d, after %d ends", len(announced)-1, e.Index, len(ended))
				}
			case strings.HasSuffix(e.Type, "output_item.done"):
				ended = append(ended, e.Item.ID)
				if said != fragments {
					t.Errorf("the item says %q, its fragments %q", said, fragments)
				}
			case strings.HasSuffix(e.Type, ".delta"):
				fragments += e.Delta
			case strings.HasSuffix(e.Type, ".done"):
				said += e.Text + e.Refusal + e.Arguments + e.Input
			case len(e.Response.Output) > 0:
				var last []string
				for _, item := range e.Response.Output {
					last = append(last, item.ID)
				}
				if !slices.Equal(last, announced) || !slices.Equal(last, ended) {
					t.Errorf("announced %q, ended %q, at last %q", announced, ended, last)
				}
			}
		}
		if len(c.ids) != len(answer.ContentItems) {
			t.Errorf("%d ids of %d items", len(c.ids), len(answer.ContentItems))
		}
	})
}
