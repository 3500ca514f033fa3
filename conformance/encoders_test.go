package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/ingress"
	ingresschat "github.com/prism-shadow/mmsp-go/ingress/chat"
	"github.com/prism-shadow/mmsp-go/ingress/generatecontent"
	"github.com/prism-shadow/mmsp-go/ingress/ingresstest"
	ingressmessages "github.com/prism-shadow/mmsp-go/ingress/messages"
	ingressresponses "github.com/prism-shadow/mmsp-go/ingress/responses"
	"github.com/prism-shadow/mmsp-go/internal/carry"
	"github.com/prism-shadow/mmsp-go/internal/wiregrammar"
)

// said is what a caller reads out of a stream.
type said struct {
	text  string
	calls []string // name and arguments, in one spelling
}

// call adds a call whose arguments are whole.
func (s *said) call(name, arguments string) {
	var value dict
	if readJSON([]byte(arguments), &value) == nil {
		text, _ := json.Marshal(value)
		s.calls = append(s.calls, name+" "+string(text))
	}
}

// readJSON keeps the spelling of numbers.
func readJSON(data []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		return err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return errors.New("text after the value")
	}
	return nil
}

// TestEncoders lets every encoder write streams of every kind. What comes out keeps to its protocol's grammar and says what
// went in, whatever that was.
func TestEncoders(t *testing.T) {
	const (
		input    = `{"model":"m","input":"Hi.","tools":[{"type":"function","name":"get_weather"}]`
		proofs   = `{"model":"m","input":"Hi.","include":["reasoning.encrypted_content"],"store":false`
		messages = `{"model":"m","max_tokens":100,"messages":[{"role":"user","content":"Hi."}]`
		contents = `{"contents":[{"role":"user","parts":[{"text":"Hi."}]}]}`
		models   = "/v1beta/models/m"
	)
	for name, e := range map[string]struct {
		protocol     ingress.Protocol
		path, body   string
		grammar      func([]byte) error
		says         func(*said, []dict) // nil: the grammar alone is checked
		wholePath    string
		wholeBody    string
		wholeGrammar func([]byte) error
	}{
		"responses": {
			ingressresponses.New(), "/v1/responses", input + `,"stream":true}`, wiregrammar.Responses, responsesSay,
			"/v1/responses", input + "}", wiregrammar.ResponsesResource,
		},
		"responses with proofs": {
			ingressresponses.New(), "/v1/responses", proofs + `,"stream":true}`, wiregrammar.Responses, responsesSay,
			"/v1/responses", proofs + "}", wiregrammar.ResponsesResource,
		},
		"chat": {
			ingresschat.New(), "/v1/chat/completions", messages + `,"stream":true}`, func(b []byte) error { return wiregrammar.Chat(b, false) }, chatSays,
			"/v1/chat/completions", messages + "}", wiregrammar.ChatCompletion,
		},
		"chat with usage": {
			ingresschat.New(), "/v1/chat/completions", messages + `,"stream":true,"stream_options":{"include_usage":true}}`,
			func(b []byte) error { return wiregrammar.Chat(b, true) }, chatSays,
			"/v1/chat/completions", messages + "}", wiregrammar.ChatCompletion,
		},
		"messages": {
			ingressmessages.New(), "/v1/messages", messages + `,"stream":true}`, wiregrammar.Messages, messagesSay,
			"/v1/messages", messages + "}", wiregrammar.Message,
		},
		"generateContent": {
			generatecontent.New(), models + ":streamGenerateContent?alt=sse", contents, wiregrammar.GenerateContent, geminiSays,
			models + ":generateContent", contents, wiregrammar.GenerateContentResponse,
		},
		"generateContent in an array": {
			generatecontent.New(), models + ":streamGenerateContent", contents, wiregrammar.GenerateContentArray, nil,
			models + ":generateContent", contents, wiregrammar.GenerateContentResponse,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seeds := uint64(600)
			if testing.Short() {
				seeds = 100
			}
			failures := 0
			for seed := range seeds {
				r := rand.New(rand.NewPCG(seed, 1))
				events, end := ingresstest.Events(r)
				peer := []carry.Peer{{Protocol: e.protocol.Name()}, {Protocol: carry.Messages}, {Protocol: carry.GenerateContent}}[seed%3]
				read := func(path, body string) ingress.Call {
					call, err := e.protocol.Parse(httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, nil), []byte(body))
					if err != nil {
						t.Fatal(err)
					}
					env := &ingress.Env{Peer: peer, Caller: "c", Store: carry.NewMemory(time.Hour, 1<<20), RequestID: "req_1", Now: time.UnixMilli(1_790_000_000_000)}
					if _, err := call.Read(t.Context(), env); err != nil {
						t.Fatal(err)
					}
					return call
				}
				stream := ingresstest.Play(r, read(e.path, e.body), events, end)
				err := e.grammar(stream)
				pictured := slices.ContainsFunc(events, func(e mmsp.Event) bool { return e.Item.Type == mmsp.InlineDataDelta }) // maybe as text
				if err == nil && e.says != nil && !pictured {
					got, want := said{}, saidBy(events)
					e.says(&got, dataLines(t, stream))
					if end != nil && len(got.calls) == len(want.calls)+1 { // what cut the stream came after all arguments
						got.calls = got.calls[:len(want.calls)]
					}
					if rest, ok := strings.CutPrefix(got.text, want.text); !ok || rest != "" && rest != refusal(events, end) || !slices.Equal(got.calls, want.calls) {
						err = fmt.Errorf("it says\n%+q, not\n%+q", got, want)
					}
				}
				if err == nil {
					if answer, fails := ingresstest.Answer(ingresstest.CallerIDs(events), end); fails == nil {
						stream = read(e.wholePath, e.wholeBody).Whole(nil, answer)
						err = e.wholeGrammar(stream)
					}
				}
				if err != nil {
					t.Errorf("seed %d: %v\nafter %v, in\n%.4000s", seed, err, end, stream)
					if failures++; failures == 3 {
						return
					}
				}
			}
		})
	}
}

// saidBy is what a stream says: the text of its deltas and the calls that came whole.
func saidBy(events []mmsp.Event) (s said) {
	for _, e := range events {
		switch e.Item.Type {
		case mmsp.TextDelta:
			s.text += e.Item.Text
		case mmsp.ToolCallDone:
			s.call(e.Item.Name, e.Item.Arguments)
		}
	}
	return s
}

// refusal is the provider's own words where it refused without an item, which may be shown.
func refusal(events []mmsp.Event, end error) string {
	answer, err := ingresstest.Answer(events, end)
	if err != nil || answer.StopDetail == nil || answer.StopDetail.Kind != "refusal" {
		return ""
	}
	return answer.StopDetail.Text
}

func dataLines(t *testing.T, stream []byte) (list []dict) {
	for line := range strings.SplitSeq(string(stream), "\n") {
		if data, ok := strings.CutPrefix(line, "data: "); ok && data != "[DONE]" {
			var event dict
			if err := readJSON([]byte(data), &event); err != nil {
				t.Fatal(err)
			}
			list = append(list, event)
		}
	}
	return list
}

func responsesSay(s *said, events []dict) {
	for _, e := range events {
		switch e["type"] {
		case "response.output_text.delta", "response.refusal.delta":
			s.text += e["delta"].(string)
		case "response.output_item.done":
			if item := e["item"].(dict); item["type"] == "function_call" {
				s.call(item["name"].(string), item["arguments"].(string))
			}
		}
	}
}

func chatSays(s *said, chunks []dict) {
	var names, arguments []string
	for _, chunk := range chunks {
		choices, _ := chunk["choices"].([]any)
		if len(choices) == 0 {
			continue
		}
		delta := choices[0].(dict)["delta"].(dict)
		for _, key := range []string{"content", "refusal"} {
			text, _ := delta[key].(string)
			s.text += text
		}
		calls, _ := delta["tool_calls"].([]any)
		for _, c := range calls {
			function := c.(dict)["function"].(dict)
			if name, ok := function["name"].(string); ok {
				names, arguments = append(names, name), append(arguments, "")
			}
			arguments[len(arguments)-1] += function["arguments"].(string)
		}
	}
	for i := range names {
		s.call(names[i], arguments[i])
	}
}

func messagesSay(s *said, events []dict) {
	var name, input string
	for _, e := range events {
		block, _ := e["content_block"].(dict)
		delta, _ := e["delta"].(dict)
		switch {
		case e["type"] == "content_block_start":
			name, _ = block["name"].(string)
			input = ""
		case delta["type"] == "text_delta":
			s.text += delta["text"].(string)
		case delta["type"] == "input_json_delta":
			input += delta["partial_json"].(string)
		case e["type"] == "content_block_stop" && name != "" && input == "":
			s.call(name, "{}")
		case e["type"] == "content_block_stop" && name != "":
			s.call(name, input)
		}
	}
}

func geminiSays(s *said, chunks []dict) {
	for _, chunk := range chunks {
		candidates, _ := chunk["candidates"].([]any)
		if len(candidates) == 0 {
			continue
		}
		for _, p := range candidates[0].(dict)["content"].(dict)["parts"].([]any) {
			part := p.(dict)
			if text, ok := part["text"].(string); ok && part["thought"] != true {
				s.text += text
			}
			if call, ok := part["functionCall"].(dict); ok {
				arguments, _ := json.Marshal(call["args"])
				s.call(call["name"].(string), string(arguments))
			}
		}
	}
}
