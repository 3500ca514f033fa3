package conformance

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/wire/genai"
)

// replayExceptions names proofs of a recording that a client type does not carry, each with a reason that its user would
// accept.
var replayExceptions = map[string]string{
	"google-genai/gemini-generate-content/google-gemini-3-flash-preview-model-file-search-grounding-gemini-3-true-t4 thoughtSignature": "they stand on what the provider's own tool did, which is no content",
}

// TestReplay reads a turn of a recorded conversation and sends it back: the request carries what the recorded request
// of the next turn carried for the calls and the proofs of that turn.
func TestReplay(t *testing.T) {
	recordings := load(t)
	turns, used := 0, map[string]bool{}
	for _, c := range clients {
		provider := c.provider(t, "http://provider.test/v1", canned{})
		for _, r := range recordings {
			next := slices.IndexFunc(recordings, func(next *recording) bool {
				return r.conversation != "" && next.conversation == r.conversation && next.turn == r.turn+1 && next.request != nil
			})
			if !c.reads(r) || next < 0 || c.protocol == &embeddings { // vectors are no turn of a conversation
				continue
			}
			turns++
			t.Run(c.name+"/"+r.path, func(t *testing.T) {
				o := run(withAnswer(t, r.answer()), provider)
				if o.stop == nil {
					t.Logf("the turn ends in an error and leaves nothing to replay: %v", o.err)
					return
				}
				answer := mmsp.AssistantMessage()
				for i := range o.events {
					if item := o.events[i].Item; item.Type != "" && !item.Type.IsDelta() {
						answer.ContentItems = append(answer.ContentItems, item)
					}
				}
				request, err := provider.Prepare(t.Context(), []mmsp.Message{mmsp.UserMessage(mmsp.Text("Question.")), answer}, &mmsp.Config{})
				if err != nil {
					t.Fatal(err)
				}
				sent, recorded := carried(t, request.Body), carried(t, recordings[next].request)
				missing := func(kind, value string, in map[string][]string) bool {
					return !slices.ContainsFunc(in[kind], func(other string) bool { return sameCarried(kind, value, other) })
				}
				for kind, values := range sent {
					for _, value := range values {
						if len(recorded[kind]) > 0 && missing(kind, value, recorded) {
							t.Errorf("%s: sent\n%.300s\nrecorded\n%.900s", kind, value, strings.Join(recorded[kind], "\n"))
						}
					}
				}
				// What the recorded request took from this very answer, and only that: the texts of reasoning come in pieces.
				for kind, values := range recorded {
					for _, value := range values {
						token, _, _ := strings.Cut(value, " ")
						if !strings.HasPrefix(kind, "reasoning") && bytes.Contains(r.body, []byte(`"`+token+`"`)) && missing(kind, value, sent) {
							excepted := c.name + "/" + r.path + " " + kind
							if reason := replayExceptions[excepted]; reason != "" {
								t.Logf("exception: %s", reason)
								used[excepted] = true
								continue
							}
							t.Errorf("%s: recorded, not sent\n%.300s", kind, value)
						}
					}
				}
			})
		}
	}
	for excepted := range replayExceptions {
		if corpus(t) != "testdata" && !used[excepted] {
			t.Errorf("the exception %s is none", excepted)
		}
	}
	if turns == 0 {
		t.Error("no conversation has two turns")
	}
}

// carried collects what a request carries of calls ("<id> <name> <arguments>") and proofs, wherever it stands.
func carried(t *testing.T, request []byte) map[string][]string {
	var root object
	if err := json.Unmarshal(request, &root); err != nil {
		t.Fatal(err)
	}
	found := map[string][]string{}
	add := func(kind string, id, name, arguments any) {
		if text, ok := arguments.(string); ok {
			found[kind] = append(found[kind], fmt.Sprintf("%v %v %s", id, name, text))
		} else {
			text, _ := json.Marshal(arguments)
			found[kind] = append(found[kind], fmt.Sprintf("%v %v %s", id, name, text))
		}
	}
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, element := range v {
				walk(element)
			}
		case map[string]any:
			function, _ := v["function"].(map[string]any)
			switch {
			case v["type"] == "tool_use":
				add("call", v["id"], v["name"], v["input"])
			case v["type"] == "function_call":
				add("call", cmp.Or(v["call_id"], v["id"]), v["name"], v["arguments"]) // Interactions has the latter alone
			case v["type"] == "function" && v["id"] != nil:
				add("call", v["id"], function["name"], function["arguments"])
			}
			if call, ok := v["functionCall"].(map[string]any); ok { // whose ids the callers of some recordings made up
				add("call", call["name"], call["name"], call["args"])
			}
			if proof, ok := v["thoughtSignature"].(string); ok && proof != genai.SkipSignature { // in either alphabet
				found["thoughtSignature"] = append(found["thoughtSignature"], strings.NewReplacer("-", "+", "_", "/").Replace(proof))
			}
			for _, proof := range []string{"signature", "encrypted_content", "reasoning_content", "reasoning"} {
				if text, ok := v[proof].(string); ok && text != "" {
					found[proof] = append(found[proof], text)
				}
			}
			switch v["type"] {
			case "redacted_thinking":
				found["redacted"] = append(found["redacted"], fmt.Sprint(v["data"]))
			case "reasoning.encrypted":
				found["encrypted detail"] = append(found["encrypted detail"], fmt.Sprintf("%v %v %v", v["data"], v["format"], v["id"]))
			case "reasoning.text":
				if v["signature"] != nil {
					found["signed detail"] = append(found["signed detail"], fmt.Sprintf("%v %v %v", v["signature"], v["format"], v["text"]))
				}
			}
			for _, value := range v {
				walk(value)
			}
		}
	}
	walk(map[string]any(root))
	return found
}

func sameCarried(kind, a, b string) bool {
	if kind != "call" {
		return a == b
	}
	headA, argumentsA, _ := strings.Cut(a, "{")
	headB, argumentsB, _ := strings.Cut(b, "{")
	return headA == headB && sameJSON([]byte("{"+argumentsA), []byte("{"+argumentsB))
}
