package conformance

import (
	"bytes"
	"net/http"
	"testing"
)

func FuzzOpenaiChat(f *testing.F)      { fuzz(f, &chat) }
func FuzzResponses(f *testing.F)       { fuzz(f, &responses) }
func FuzzMessages(f *testing.F)        { fuzz(f, &messages) }
func FuzzInteractions(f *testing.F)    { fuzz(f, &interactions) }
func FuzzGenerateContent(f *testing.F) { fuzz(f, &generateContent) }
func FuzzEmbeddings(f *testing.F)      { fuzz(f, &embeddings) }

// maxSeedBytes keeps long recordings out of the corpus of the fuzzer, which mutates short ones faster.
const maxSeedBytes = 20 << 10

// fuzz reads arbitrary bytes as the body of an answer: whatever they are, the public stream is legal up to its end.
func fuzz(f *testing.F, p *protocol) {
	for _, r := range load(f) {
		if r.protocol == p && r.status == http.StatusOK && len(r.body) < maxSeedBytes {
			f.Add(r.body)
		}
	}
	type reader struct {
		client
		run func(*testing.T, []byte) outcome
	}
	var readers []reader
	for _, c := range clients {
		if c.protocol == p {
			provider := c.provider(f, "http://provider.test/v1", canned{})
			readers = append(readers, reader{c, func(t *testing.T, body []byte) outcome {
				return run(withAnswer(t, &answer{status: http.StatusOK, contentType: "text/event-stream", body: body}), provider)
			}})
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, reader := range readers {
			o := reader.run(t, body)
			if o.broken != nil {
				t.Errorf("%s: %v", reader.name, o.broken)
			}
			if o.stop != nil && !p.marked(body) {
				t.Errorf("%s: a stop without a terminal event", reader.name)
			}
		}
	})
}

// marked reports whether a body may hold a terminal event, or be an answer in one piece. An escape may spell anything.
func (p *protocol) marked(body []byte) bool {
	if object := bytes.TrimLeft(body, " \t\r\n\ufeff"); p.whole != "" && bytes.HasPrefix(object, []byte("{")) && bytes.Contains(object, []byte(p.whole)) {
		return true
	}
	for _, mark := range append(p.marks, `\u`) {
		if bytes.Contains(body, []byte(mark)) {
			return true
		}
	}
	return false
}
