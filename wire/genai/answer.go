package genai

import (
	"encoding/base64"
	"strconv"

	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// AppendText appends a part of text; the signature, base64, may be empty.
func AppendText(dst []byte, text string, thought bool, signature string) []byte {
	dst = jsonscan.AppendString(append(dst, `{"text":`...), text)
	return appendMarks(dst, thought, signature)
}

// AppendInlineData appends a part of bytes.
func AppendInlineData(dst []byte, mimeType string, data []byte, thought bool, signature string) []byte {
	dst = jsonscan.AppendString(append(dst, `{"inlineData":{"mimeType":`...), mimeType)
	dst = base64.StdEncoding.AppendEncode(append(dst, `,"data":"`...), data)
	return appendMarks(append(dst, `"}`...), thought, signature)
}

// AppendFunctionCall appends a part of a call. The arguments are the text of a JSON object; "" is {}.
func AppendFunctionCall(dst []byte, id, name, arguments, signature string) []byte {
	dst = jsonscan.AppendString(append(dst, `{"functionCall":{"id":`...), id)
	dst = jsonscan.AppendString(append(dst, `,"name":`...), name)
	dst = append(dst, `,"args":`...)
	if arguments == "" {
		arguments = "{}"
	}
	for i := range len(arguments) {
		if c := arguments[i]; c != '\n' && c != '\r' { // between tokens, where they would end the line of an event
			dst = append(dst, c)
		}
	}
	return appendMarks(append(dst, '}'), false, signature)
}

// appendMarks ends a part.
func appendMarks(dst []byte, thought bool, signature string) []byte {
	if thought {
		dst = append(dst, `,"thought":true`...)
	}
	if signature != "" {
		dst = jsonscan.AppendString(append(dst, `,"thoughtSignature":`...), signature)
	}
	return append(dst, '}')
}

// Counts are the tokens of an answer. Nil: not known.
type Counts struct {
	Prompt     *int64 // cached ones included
	Cached     *int64
	Thoughts   *int64
	Candidates *int64 // without thoughts
}

// AppendUsage appends the counts as usageMetadata. The protocol always tells the prompt and the total; what is not known of
// them counts as none.
func AppendUsage(dst []byte, counts *Counts) []byte {
	dst = append(dst, '{')
	total := int64(0)
	count := func(name string, n *int64) {
		if n != nil {
			dst = append(append(append(dst, '"'), name...), `":`...)
			dst = append(strconv.AppendInt(dst, *n, 10), ',')
		}
	}
	if counts.Prompt == nil {
		count("promptTokenCount", new(int64))
	}
	for _, c := range []struct {
		name string
		n    *int64
	}{{"promptTokenCount", counts.Prompt}, {"candidatesTokenCount", counts.Candidates}, {"thoughtsTokenCount", counts.Thoughts}} {
		if count(c.name, c.n); c.n != nil {
			total += *c.n
		}
	}
	count("cachedContentTokenCount", counts.Cached)
	dst = append(dst, `"totalTokenCount":`...)
	return append(strconv.AppendInt(dst, total, 10), '}')
}
