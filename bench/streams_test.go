package bench

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	"github.com/prism-shadow/mmsp-go/bench/internal/provider"
)

const deltas = 500 // text events of a stream

// pieces is a text as models stream it: short, some with escapes, some beyond ASCII.
var pieces = []string{"The", " quick", " brown", " fox", " said", " \"", "na\u00efve", "\",", "\n\n", " \u4f60\u597d", " and", " jumped", " over", " the lazy", " dog", "."}

func stream(answer *provider.Answer) []byte {
	var all [][]byte
	for i := range deltas {
		quoted, err := json.Marshal(pieces[i%len(pieces)])
		if err != nil {
			panic(err)
		}
		all = append(all, quoted)
	}
	return answer.Stream(nil, all...)
}

// recorded answers every request with the same bytes, without a socket.
type recorded []byte

func (r recorded) RoundTrip(q *http.Request) (*http.Response, error) { return r.answer(q), nil }

func (r recorded) answer(q *http.Request) *http.Response {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: io.NopCloser(bytes.NewReader(r)), Request: q,
	}
}
