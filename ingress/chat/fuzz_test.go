package chat

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/ingress"
	"github.com/prism-shadow/mmsp-go/internal/carry"
	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// FuzzRead: whatever a caller sends is read or refused, and what is read can be sent.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"model":"m",` + hi + `,"tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"f"}}]}}}`))
	f.Add([]byte(`{"model":"m","messages":[{"role":"user","content":[{"type":"file","file":{"file_data":"data:application/pdf;base64,JVBERi0="}},{"type":"input_audio","input_audio":{"data":"AA","format":"mp3"}}]},` +
		`{"role":"assistant","content":"ab","refusal":"c","reasoning":"t","reasoning_details":[{"type":"reasoning.text","text":"t","index":0}],"images":[{"image_url":{"url":"data:image/png;base64,AA=="}}],` +
		`"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"},"extra_content":{"google":{"thought_signature":"x"}}},{"id":"2","type":"custom","custom":{"name":"p","input":"i"}}],"function_call":{"name":"g","arguments":""}},` +
		`{"role":"tool","tool_call_id":"1","content":[{"type":"text","text":"r"}]},{"role":"function","name":"g","content":"r"}]}`))
	layout := carry.Seal(carry.Envelope{Kind: layoutKind, Fidelity: mmsp.Fidelity(`{"items":[{"k":"thinking","n":1,"f":{"signature":"s"}},{"k":"text","n":2},{"k":"tool_call","id":"1"}]}`)}, 1<<20)
	f.Add([]byte(`{"model":"m","messages":[{"role":"assistant","content":"ab","reasoning_content":"t","reasoning_details":[{"type":"reasoning.encrypted","data":"` + layout + `"}],"tool_calls":[{"id":"1","function":{"name":"f","arguments":"{}"}}]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		if jsonscan.Check(body) != nil {
			return
		}
		for _, peer := range []carry.Peer{chatPeer, geminiPeer} {
			_, request, err := ask(string(body), peer)
			if err != nil {
				continue
			}
			if err := mmsp.Validate(request.Messages); err != nil {
				t.Fatal(err)
			}
			for m := range request.Messages {
				if len(request.Paths[m]) != len(request.Messages[m].ContentItems) {
					t.Fatalf("message %d has %d items and %d paths", m, len(request.Messages[m].ContentItems), len(request.Paths[m]))
				}
			}
			if len(request.ToolPaths) != len(request.Config.Tools) {
				t.Fatalf("%d tools and %d paths", len(request.Config.Tools), len(request.ToolPaths))
			}
		}
	})
}

// FuzzWrite: whatever a model says, each chunk is JSON, a call begins once, the stream ends once, and what was said comes
// back from the caller.
func FuzzWrite(f *testing.F) {
	f.Add([]byte(`[{"role":"assistant","content_items":[{"type":"thinking.done","thinking":"t","fidelity":{"signature":"s"}},{"type":"text.done","text":"a"},{"type":"tool_call.done","name":"f","arguments":{},"tool_call_id":"c"}]}]`), uint8(0))
	f.Add([]byte(`[{"role":"assistant","content_items":[{"type":"text.done","text":"a","fidelity":{"refusal":true}},{"type":"inline_data.done","data":"AA==","mime_type":"image/png"},{"type":"tool_call.done","name":"p","arguments":{"input":"x"},"tool_call_id":"c"}]}]`), uint8(1))
	f.Add([]byte(`[{"role":"assistant","content_items":[{"type":"thinking.done","thinking":"t","fidelity":{"reasoning_details":[{"type":"reasoning.text","signature":"s","index":3}]}},{"type":"embedding.done","embedding":[1]}]}]`), uint8(2))
	f.Fuzz(func(t *testing.T, data []byte, shape uint8) {
		messages, err := mmsp.ParseMessages(data, false)
		if err != nil || len(messages) == 0 || mmsp.Validate(messages) != nil {
			return
		}
		fields := `,"stream":true,"tools":[{"type":"custom","custom":{"name":"p"}}]`
		if shape&1 != 0 {
			fields = `,"stream":true,"functions":[{"name":"f"}]`
		}
		peer := geminiPeer
		if shape&2 != 0 {
			peer = chatPeer
		}
		answer := answerOf(mmsp.FinishStop)
		for _, item := range messages[0].ContentItems {
			if item.Type != mmsp.ImageURLDone && item.Type != mmsp.ToolResultDone {
				item.MimeType = ingress.MediaType(item.MimeType) // as the gateway has it
				answer.ContentItems = append(answer.ContentItems, item)
			}
		}
		out := stream(callFor(t, fields, peer), answer)
		if !bytes.HasSuffix(out, []byte("data: [DONE]\n\n")) || bytes.Count(out, []byte("\ndata: [DONE]\n")) != 1 || bytes.Count(out, []byte(`"finish_reason":"`)) != 1 {
			t.Fatalf("%s", out)
		}
		for block := range bytes.SplitSeq(bytes.TrimSuffix(out, []byte("\n\n")), []byte("\n\n")) {
			if text, ok := bytes.CutPrefix(block, []byte("data: ")); !ok || string(text) != "[DONE]" && !jsonscan.Valid(text) {
				t.Fatalf("%q", block)
			}
		}
		whole := callFor(t, fields, peer).Whole(nil, answer)
		if jsonscan.Check(whole) != nil {
			t.Fatalf("%s", whole)
		}
		var said struct {
			Choices []struct{ Message json.RawMessage }
		}
		_ = json.Unmarshal(whole, &said)
		_, request, err := ask(`{"model":"m","messages":[{"role":"user","content":"hi"},`+string(said.Choices[0].Message)+`]}`, peer)
		if err != nil {
			t.Fatalf("%v of %s", err, whole)
		}
		if err := mmsp.Validate(request.Messages); err != nil {
			t.Fatal(err)
		}
	})
}
