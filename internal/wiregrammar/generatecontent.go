package wiregrammar

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"

	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// GenerateContent checks the event stream of :streamGenerateContent?alt=sse: data lines with one response each, the
// finish in the last that has a candidate. There are no event lines and no [DONE]. Empty lines may keep a connection alive:
// Google's Python SDK trips over comments, which its JavaScript SDK passes over.
func GenerateContent(stream []byte) error {
	c := &geminiChecker{report: &report{}}
	for _, b := range c.blocks(stream, true) {
		c.unnamed(b)
		if b.data == "[DONE]" {
			c.add("%s: [DONE]; the protocol has none", b.where)
			continue
		}
		c.chunk(c.parse(b.where, []byte(b.data)))
	}
	c.end()
	return c.err()
}

// GenerateContentArray checks the answer of :streamGenerateContent without alt=sse: a JSON array of the same responses.
func GenerateContentArray(body []byte) error {
	c := &geminiChecker{report: &report{}}
	var chunks []json.RawMessage
	if err := jsonscan.Check(body); err != nil {
		c.add("no strict JSON: %w", err)
	} else if err := json.Unmarshal(body, &chunks); err != nil || !bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")) {
		c.add("no JSON array")
	}
	for i, chunk := range chunks {
		c.chunk(c.parse(fmt.Sprintf("[%d]", i), chunk))
	}
	c.end()
	return c.err()
}

// GenerateContentResponse checks the answer of :generateContent.
func GenerateContentResponse(body []byte) error {
	c := &geminiChecker{report: &report{}}
	n := c.parse("response", body)
	if n.has("error") {
		n.fault("an error where a response is wanted")
	}
	c.chunk(n)
	c.end()
	return c.err()
}

type geminiChecker struct {
	*report
	first    node
	finish   string
	blocked  bool // the prompt
	failed   bool
	counts   map[string]int64
	anything bool // a candidate has come
}

var (
	finishReasons = []string{
		"STOP", "MAX_TOKENS", "SAFETY", "RECITATION", "LANGUAGE", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "MALFORMED_FUNCTION_CALL",
		"UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION", "IMAGE_OTHER", "NO_IMAGE", "CONTINUATION",
	}
	blockReasons = []string{"SAFETY", "OTHER", "BLOCKLIST", "PROHIBITED_CONTENT", "IMAGE_SAFETY", "MODEL_ARMOR", "JAILBREAK"}
	partKinds    = []string{"text", "inlineData", "fileData", "functionCall", "functionResponse", "executableCode", "codeExecutionResult"}
)

func (c *geminiChecker) end() {
	if c.finish == "" && !c.blocked && !c.failed {
		c.add("the answer ends without a finishReason")
	}
}

func (c *geminiChecker) chunk(n node) {
	if !n.there {
		return
	}
	if c.failed {
		n.fault("a chunk follows the error")
	}
	if n.has("error") {
		c.failed = true
		if c.finish != "" {
			n.fault("an error follows the finish")
		}
		c.geminiError(n)
		return
	}
	n.get("modelVersion").name()
	n.get("responseId").name()
	if !c.first.there {
		c.first = n
	}
	for _, key := range []string{"modelVersion", "responseId"} {
		if n := n.get(key); !same(n.value, c.first.get(key).value) {
			n.fault("is not what it was in the first chunk")
		}
	}
	n.get("usageMetadata").absentOr(c.usage)

	if feedback := n.get("promptFeedback"); feedback.get("blockReason").there {
		feedback.get("blockReason").oneOf(blockReasons...)
		if c.anything || n.has("candidates") {
			feedback.fault("the prompt is blocked and there is a candidate")
		}
		if c.blocked {
			feedback.fault("is repeated")
		}
		c.blocked = true
		return
	}
	candidates := n.get("candidates").list()
	if len(candidates) == 0 {
		n.fault("no candidate; the SDK's chat drops the turn")
		return
	}
	if c.blocked {
		n.fault("a candidate follows a blocked prompt")
	}
	if c.finish != "" {
		n.fault("a candidate follows the finish")
	}
	c.anything = true
	for i, candidate := range candidates {
		if index := candidate.get("index"); index.count() != int64(i) {
			index.fault("is not %d", i)
		}
		content := candidate.get("content")
		content.object()
		content.get("role").is("model")
		parts := content.get("parts").list()
		if len(parts) == 0 {
			content.get("parts").fault("is empty; the SDK's chat drops the turn")
		}
		for _, part := range parts {
			c.geminiPart(part)
		}
		candidate.get("finishMessage").absentOr(isText)
		candidate.get("finishReason").absentOr(func(n node) { c.finish = n.oneOf(finishReasons...) })
	}
}

func (c *geminiChecker) geminiPart(n node) {
	if !n.object() {
		return
	}
	if len(n.value.(map[string]any)) == 0 {
		n.fault("an empty part")
		return
	}
	kinds := 0
	for _, kind := range partKinds {
		if n.has(kind) {
			kinds++
			if kind != "text" {
				n.get(kind).object()
			}
		}
	}
	if kinds != 1 {
		n.fault("holds %d of text, inlineData, functionCall and so on, want one", kinds)
	}
	n.get("text").absentOr(isText)
	n.get("thought").absentOr(isFlag)
	n.get("thoughtSignature").absentOr(isBase64)
	n.get("inlineData").absentOr(func(n node) {
		n.get("mimeType").name()
		isBase64(n.get("data"))
	})
	n.get("functionCall").absentOr(func(n node) {
		n.get("id").absentOr(isName)
		n.get("name").name()
		n.get("args").object()
	})
}

func isBase64(n node) {
	if text := n.text(); text != "" {
		if _, err := base64.StdEncoding.DecodeString(text); err != nil {
			n.fault("is no base64: %w", err)
		}
	}
}

// usage checks counts, which are those of the answer up to here.
func (c *geminiChecker) usage(n node) {
	n.object()
	counts := map[string]int64{}
	for _, key := range []string{"promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "toolUsePromptTokenCount", "cachedContentTokenCount", "totalTokenCount"} {
		count := n.get(key)
		if key == "promptTokenCount" || key == "totalTokenCount" || count.there {
			counts[key] = count.count()
		}
		if counts[key] < c.counts[key] {
			count.fault("is %d after %d; counts are cumulative", counts[key], c.counts[key])
		}
	}
	c.counts = counts
	if counts["totalTokenCount"] != counts["promptTokenCount"]+counts["candidatesTokenCount"]+counts["thoughtsTokenCount"]+counts["toolUsePromptTokenCount"] {
		n.get("totalTokenCount").fault("is not the sum of prompt, candidates, thoughts and tool use")
	}
	if counts["cachedContentTokenCount"] > counts["promptTokenCount"] {
		n.get("cachedContentTokenCount").fault("is more than promptTokenCount")
	}
}
