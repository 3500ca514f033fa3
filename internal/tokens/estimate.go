package tokens

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/internal/images"
)

// Estimate returns about how many tokens the model counts as the input of a request, without asking anybody: text by
// the kinds of its characters, pictures by their size, documents by their pages, and around them what the chat template
// of the model's family adds. It is linear in the size of the prompt and always the same for the same one. config may be nil.
func Estimate(messages []mmsp.Message, config *mmsp.Config, model string) int64 {
	if config == nil {
		config = &mmsp.Config{}
	}
	e := estimate{family: familyOf(model)}
	e.add(e.request)
	if config.SystemPrompt != nil && *config.SystemPrompt != "" {
		e.add(e.turn)
		e.text(*config.SystemPrompt)
	}
	if level := config.EffectiveThinkingLevel(); level != "" && level != mmsp.ThinkingNone {
		e.add(e.thinking)
	}
	if len(config.Tools) > 0 {
		e.add(e.tools)
	}
	for i := range config.Tools {
		tool := &config.Tools[i]
		e.add(e.tool)
		e.text(tool.Name)
		e.text(tool.Description)
		e.json(tool.Parameters, e.schema)
	}
	if format := config.ResponseFormat; format != nil && format.Type == mmsp.FormatJSONSchema {
		e.add(e.format)
		e.json(format.Schema, e.formatSchema)
	}
	began := turnUnderWay(messages)
	for m := range messages {
		message := &messages[m]
		if m == 0 || m < len(messages)-1 || message.Role == mmsp.RoleUser { // the model goes on in a turn of its own
			e.add(e.turn)
		}
		for i := range message.ContentItems {
			e.item(&message.ContentItems[i], m >= began || e.keepsThinking)
		}
	}
	return (e.cost + 500) / 1000
}

// turnUnderWay returns the index behind the last message in which the user says something, and not only answers calls.
func turnUnderWay(messages []mmsp.Message) int {
	for m := len(messages) - 1; m >= 0; m-- {
		if messages[m].Role != mmsp.RoleUser {
			continue
		}
		for i := range messages[m].ContentItems {
			if messages[m].ContentItems[i].Type != mmsp.ToolResultDone {
				return m + 1
			}
		}
	}
	return 0
}

// estimate adds up thousandths of tokens.
type estimate struct {
	*family
	cost int64
}

func (e *estimate) add(tokens int64) { e.cost += 1000 * tokens }

func (e *estimate) text(s string) { e.cost += text(s) * e.vocabulary / 1000 }

// json adds a share of what a JSON text costs, its layout aside.
func (e *estimate) json(raw json.RawMessage, share int64) {
	var compact bytes.Buffer
	if json.Compact(&compact, raw) != nil {
		compact.Reset()
		compact.Write(raw)
	}
	e.cost += text(compact.String()) * e.vocabulary / 1000 * share / 1000
}

func (e *estimate) item(item *mmsp.Item, thinkingCounts bool) {
	switch item.Type {
	case mmsp.TextDone:
		e.text(item.Text)
	case mmsp.ThinkingDone:
		if thinkingCounts {
			e.thought(item)
		}
	case mmsp.ToolCallDone:
		e.add(e.call)
		e.text(item.Name)
		e.text(item.Arguments)
	case mmsp.ToolResultDone:
		e.add(e.result)
		e.text(item.Text)
		for _, url := range item.Images {
			e.url(url, "")
		}
	case mmsp.ImageURLDone:
		e.url(item.ImageURL, item.Detail)
	case mmsp.InlineDataDone, mmsp.InlineThinkingDone:
		e.data(item.Data, item.MimeType)
	}
	if e.signedParts && thinkingCounts && item.Type != mmsp.ThinkingDone && len(item.Fidelity) > 0 {
		e.signature(item)
	}
}

// proof is what a provider sealed: the thinking itself, where an item shows nothing of it or a summary.
type proof struct {
	EncryptedContent string `json:"encrypted_content"`
	Signature        string `json:"signature"`
}

// How long a proof is in which nothing is sealed, and how many of its further characters make a token of what is.
const (
	emptySeal     = 800
	sealedToToken = 6
)

// thought adds thinking: what is sealed where the text is only a summary, else the text.
func (e *estimate) thought(item *mmsp.Item) {
	var p proof
	item.Fidelity.Decode(&p)
	sealed := len(p.EncryptedContent)
	if item.Thinking == "" {
		sealed = max(sealed, len(p.Signature))
	}
	if sealed > 0 {
		e.add(int64(max(0, sealed-emptySeal) / sealedToToken))
	} else {
		e.text(item.Thinking)
	}
}

// signature adds what is sealed in the signature of a part.
func (e *estimate) signature(item *mmsp.Item) {
	var p proof
	item.Fidelity.Decode(&p)
	e.add(int64(len(p.Signature) / sealedToToken))
}

// url adds a picture or, in a data URL, a document.
func (e *estimate) url(url, detail string) {
	mediaType, payload, inline := images.ParseDataURL(url)
	if inline && mediaType != "" && !strings.HasPrefix(mediaType, "image/") {
		e.data(images.Decode(payload), mediaType)
		return
	}
	w, h, ok := images.URLSize(url)
	e.image(w, h, ok, detail)
}

func (e *estimate) image(width, height int, known bool, detail string) {
	switch {
	case detail == "low":
		width, height = min(width, 512), min(height, 512)
		if !known {
			width, height = 512, 512
		}
		e.add(min(e.remote, e.picture(int64(width), int64(height))))
	case known && width > 0 && height > 0:
		e.add(e.picture(int64(width), int64(height)))
	default:
		e.add(e.remote)
	}
}

// What cannot be looked into costs by its size.
const (
	bytesOfPage   = 64 << 10
	bytesOfSecond = 16 << 10 // of sound that is compressed
)

func (e *estimate) data(data []byte, mediaType string) {
	kind, _, _ := strings.Cut(mediaType, "/")
	size := int64(len(data))
	switch {
	case kind == "image":
		w, h, ok := images.Size(data)
		e.image(w, h, ok, "")
	case mediaType == "application/pdf":
		n := pages(data)
		if n == 0 {
			n = 1 + size/bytesOfPage
		}
		e.add(n * e.page)
	case kind == "text", mediaType == "application/json":
		e.text(string(data))
	case kind == "audio", kind == "video":
		e.add((1 + size/bytesOfSecond) * e.second)
	default:
		e.add((1 + size/bytesOfPage) * e.page)
	}
}

// pages counts the pages that a PDF names outside its compressed parts.
func pages(data []byte) (n int64) {
	for {
		_, after, found := bytes.Cut(data, []byte("/Type"))
		if !found {
			return n
		}
		data = after
		if rest, ok := bytes.CutPrefix(bytes.TrimLeft(after, " \r\n"), []byte("/Page")); ok && !bytes.HasPrefix(rest, []byte("s")) {
			n++
		}
	}
}
