package wiregrammar

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// checkers by the first word of an example's name.
var checkers = map[string]func([]byte) error{
	"responses":      Responses,
	"resource":       ResponsesResource,
	"chat":           func(b []byte) error { return Chat(b, false) },
	"chatusage":      func(b []byte) error { return Chat(b, true) },
	"completion":     ChatCompletion,
	"messages":       Messages,
	"message":        Message,
	"gemini":         GenerateContent,
	"array":          GenerateContentArray,
	"response":       GenerateContentResponse,
	"openaierror":    OpenAIError,
	"anthropicerror": AnthropicError,
	"geminierror":    GeminiError,
	"embeddings":     func(b []byte) error { return Embeddings(b, false) },
	"embeddings64":   func(b []byte) error { return Embeddings(b, true) },
	"models":         ModelList,
	"geminimodels":   GeminiModelList,
}

func check(name string, body []byte) error {
	word, _, _ := strings.Cut(name, "-")
	return checkers[word](body)
}

func examples(t testing.TB, folder string) map[string]string {
	paths, err := filepath.Glob(filepath.Join("testdata", folder, "*"))
	if err != nil || len(paths) == 0 {
		t.Fatal("no examples: ", err)
	}
	found := map[string]string{}
	for _, path := range paths {
		body, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		found[filepath.Base(path)] = string(body)
	}
	return found
}

func TestExamples(t *testing.T) {
	right := examples(t, "right")
	seen := map[string]bool{}
	for name, body := range right {
		word, _, _ := strings.Cut(name, "-")
		seen[word] = true
		if err := check(name, []byte(body)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for word := range checkers {
		if !seen[word] {
			t.Errorf("no example of %s", word)
		}
	}
	wrong := map[string]string{
		"messages-no-event-lines.sse": "no event line",
		"gemini-event-lines.sse":      "an event line",
		"gemini-done.sse":             "[DONE]",
	}
	for name, body := range examples(t, "wrong") {
		if err := check(name, []byte(body)); err == nil || wrong[name] == "" || !strings.Contains(err.Error(), wrong[name]) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// split cuts a stream into its blocks, the note at its head left out, and join puts them together again, with new sequence numbers.
func split(stream string) []string {
	blocks := strings.Split(strings.TrimSuffix(stream, "\n\n"), "\n\n")
	return slices.DeleteFunc(blocks, func(b string) bool { return strings.HasPrefix(b, ": A made-up") })
}

var sequence = regexp.MustCompile(`"sequence_number":\d+`)

func join(blocks []string) []byte {
	number := 0
	var stream strings.Builder
	for _, b := range blocks {
		if sequence.MatchString(b) {
			b = sequence.ReplaceAllString(b, fmt.Sprintf(`"sequence_number":%d`, number))
			number++
		}
		stream.WriteString(b + "\n\n")
	}
	return []byte(stream.String())
}

// harmless blocks may be left out, repeated or exchanged with another.
func harmless(name, block string, list []string) bool {
	switch {
	case strings.HasPrefix(block, ":"), strings.Contains(block, `"type":"ping"`):
		return true
	case strings.Contains(block, `"delta":{"type":"input_json_delta","partial_json":""}`):
		return true
	case strings.HasPrefix(name, "responses"): // in_progress may come twice
		return strings.Contains(block, `"type":"response.in_progress"`) && strings.Count(strings.Join(list, ""), `"type":"response.in_progress"`) > 1
	}
	return false
}

// Every block of every right stream counts: without it, with it twice, or with its neighbour before it, the stream is
// refused, but for the cases listed.
func TestEveryBlockCounts(t *testing.T) {
	for name, stream := range examples(t, "right") {
		if !strings.HasSuffix(name, ".sse") {
			continue
		}
		blocks := split(stream)
		if err := check(name, join(blocks)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for i, b := range blocks {
			if harmless(name, b, blocks) {
				continue
			}
			refused := func(what string, changed []string) {
				if check(name, join(changed)) == nil && !accepted(name, what, b) {
					t.Errorf("%s: accepted with block %d %s:\n%s", name, i, what, b)
				}
			}
			refused("left out", slices.Delete(slices.Clone(blocks), i, i+1))
			refused("twice", slices.Insert(slices.Clone(blocks), i, b))
			if i+1 < len(blocks) && !harmless(name, blocks[i+1], blocks) {
				changed := slices.Clone(blocks)
				changed[i], changed[i+1] = changed[i+1], changed[i]
				refused("after its neighbour", changed)
			}
			refused("the last", blocks[:i])
		}
	}
}

// accepted lists the changes that leave a stream right, though another one.
func accepted(name, what, block string) bool {
	pieces := map[string]string{ // pieces of a text that nothing repeats: the loss cannot be seen in the stream itself
		"chat":     `"delta":{"content":|"delta":{"reasoning_content":`,
		"messages": `"type":"(text|thinking|citations)_delta"`,
		"gemini":   `"parts":\[\{("functionCall"|"text":"[^"])`,
	}
	word, _, _ := strings.Cut(name, "-")
	if word == "chatusage" {
		if strings.Contains(block, `"choices":[],`) {
			return what == "left out" || what == "the last" // nothing was counted
		}
		word = "chat"
	}
	cut := strings.Contains(name, "cut-call") // so that arguments need not be whole
	switch {
	case strings.Contains(block, `"type":"error"`) || strings.Contains(block, `"error":{`): // failed alone is enough, and so is an error at once
		return word == "responses" && what == "left out" || word != "responses" && what == "after its neighbour"
	case strings.Contains(block, `"type":"response.queued"`), strings.Contains(block, `"partial_json":"{\"city\":\"Oslo\"}"`): // empty arguments are {}
		return what == "left out"
	case strings.Contains(name, "custom-call") && strings.Contains(block, `"content_index":0`): // a citation may come before its text
		return what == "after its neighbour" && regexp.MustCompile(`"response.output_text.(delta|annotation.added)"`).MatchString(block)
	case cut && regexp.MustCompile(`"partial_json"|"tool_calls":\[\{"index":1`).MatchString(block):
		return what != "after its neighbour"
	case pieces[word] != "" && regexp.MustCompile(pieces[word]).MatchString(block):
		return true
	case word == "messages" && strings.Contains(block, `_block`) && strings.Contains(name, "error"): // the error may come anywhere
		return what == "left out" || what == "after its neighbour"
	}
	return false
}

// Every key of every right body counts: without it, or with a value of another kind, the body is refused, but for the
// keys that may be absent and those whose value is free.
func TestEveryKeyCounts(t *testing.T) {
	optional := strings.Fields(`
		annotations[].* annotation.* citation.* parameters.* metadata.* args.* input.*
		conversation verbosity phase logprobs encrypted_content obfuscation cache_write_tokens verbosity
		reasoning_content tool_calls usage prompt_tokens_details completion_tokens_details cached_tokens reasoning_tokens delta.refusal
		stop_details container diagnostics cache_creation output_tokens_details server_tool_use service_tier inference_geo speed caller citations
		request_id thought thoughtSignature functionCall.id usageMetadata candidatesTokenCount thoughtsTokenCount
		cachedContentTokenCount finishMessage details displayName inputTokenLimit outputTokenLimit nextPageToken`)
	for name, body := range examples(t, "right") {
		blocks := []string{body}
		if strings.HasSuffix(name, ".sse") {
			blocks = split(body)
		}
		for i, b := range blocks {
			at := strings.IndexAny(b, "{[")
			if at < 0 || strings.HasSuffix(b, "[DONE]") {
				continue
			}
			var value any
			if err := json.Unmarshal([]byte(b[at:]), &value); err != nil {
				t.Fatal(err)
			}
			refused := func(path, what string) {
				data, err := json.Marshal(value)
				if err != nil {
					t.Fatal(err)
				}
				changed := slices.Clone(blocks)
				changed[i] = b[:at] + string(data)
				whole := []byte(changed[0])
				if strings.HasSuffix(name, ".sse") {
					whole = []byte(strings.Join(changed, "\n\n") + "\n\n")
				}
				if err := check(name, whole); err == nil {
					t.Errorf("%s, block %d: accepted with %s %s", name, i, path, what)
				}
			}
			walk(value, "", func(path string, object map[string]any, key string) {
				was := object[key]
				free := func(p string) bool { return strings.HasSuffix(p, "."+key) || p == key }
				inside := slices.ContainsFunc(optional, func(p string) bool {
					open, cut := strings.CutSuffix(p, ".*")
					return cut && strings.Contains(path+".", "."+open+".")
				})
				if inside {
					return
				}
				mayMiss := slices.ContainsFunc(optional, func(p string) bool { return free(p) && strings.HasSuffix(path+"."+key, "."+p) })
				if !mayMiss && !missable(name, path, key, object) {
					delete(object, key)
					refused(path+"."+key, "left out")
				}
				others := []any{map[string]any{"no": true}, "no", -1.0, []any{nil}}
				if was == nil { // it may be of any one kind
					others = others[3:]
				}
				for _, other := range others {
					if _, list := was.([]any); list || fmt.Sprintf("%T", was) != fmt.Sprintf("%T", other) {
						object[key] = other
						refused(path+"."+key, fmt.Sprintf("set to %v", other))
					}
				}
				object[key] = was
			})
		}
	}
}

// missable reports keys that may be absent in some objects only.
func missable(name, path, key string, object map[string]any) bool {
	switch {
	case object["type"] == "reasoning":
		return key == "status" && object[key] != "incomplete" || key == "content"
	case object["type"] == "custom_tool_call":
		return key == "status"
	case strings.HasSuffix(path, ".delta"): // of Chat
		return key == "content" && object["role"] == nil
	case strings.HasPrefix(name, "messages-") && path == ".usage": // of message_delta
		return key != "output_tokens"
	}
	return false
}

func walk(value any, path string, visit func(path string, object map[string]any, key string)) {
	switch v := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			child := v[key]
			visit(path, v, key)
			walk(child, path+"."+key, visit)
		}
	case []any:
		for _, child := range v {
			walk(child, path+"[]", visit)
		}
	}
}
