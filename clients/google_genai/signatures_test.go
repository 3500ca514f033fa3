package googlegenai

import (
	"strings"
	"testing"

	"github.com/prism-shadow/mmsp-go/wire/genai"
)

// Parts are written as what they are, and their signature: a thought, a text, a call or an answer.
func TestPlaceSignatures(t *testing.T) {
	const n = 1 << 12
	many := func(part string) string { return strings.TrimSpace(strings.Repeat(part+" ", n)) }
	for _, c := range []struct{ name, parts, want string }{
		{"nothing signed", "thought text", "thought text"},
		{"what follows", "thought:1 text", "thought text:1"},
		{"what follows each", "thought:1 text thought:2 text", "thought text:1 thought text:2"},
		{"in their order", "thought:1 thought:2 text text", "thought thought text:1 text:2"},
		{"the first alone has room", "thought:1 thought:2 text", "thought thought:2 text:1"},
		{"past what is signed", "thought:1 text:2 thought answer text", "thought text:2 thought answer text:1"},
		{"nothing follows", "text thought:1", "text thought:1"},
		{"a call takes the nearest before it", "thought:1 thought:2 call text", "thought thought call:2 text:1"},
		{"a call has one", "thought:1 call:2 call", "thought call:2 call:1"},
		{"a call needs one", "text call", "text call:" + genai.SkipSignature},
		{"many that nothing follows", many("thought:1"), many("thought:1")},
		{"many that much follows", many("thought:1") + " " + many("text"), many("thought") + " " + many("text:1")},
	} {
		var parts []genai.Part
		for word := range strings.FieldsSeq(c.parts) {
			kind, signature, _ := strings.Cut(word, ":")
			part := genai.Part{ThoughtSignature: signature}
			switch kind {
			case "call":
				part.FunctionCall = &genai.FunctionCall{}
			case "answer":
				part.FunctionResponse = &genai.FunctionResponse{}
			default:
				part.Text, part.Thought = new("x"), kind == "thought"
			}
			parts = append(parts, part)
		}
		parts = (&Client{}).placeSignatures(parts)
		want := strings.Fields(c.want)
		if len(parts) != len(want) {
			t.Errorf("%s: %d parts, want %d", c.name, len(parts), len(want))
			continue
		}
		for i, word := range want {
			if _, signature, _ := strings.Cut(word, ":"); parts[i].ThoughtSignature != signature {
				t.Errorf("%s: part %d has the signature %q, want %q", c.name, i, parts[i].ThoughtSignature, signature)
				break
			}
		}
	}
}
