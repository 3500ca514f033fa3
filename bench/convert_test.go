package bench

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/prism-shadow/mmsp-go"
	openaichat "github.com/prism-shadow/mmsp-go/clients/openai_chat"
)

// chatStream is an answer of n text chunks as OpenAI sends them.
func chatStream(n int) []byte {
	var b bytes.Buffer
	head := `data: {"id":"chatcmpl-0123456789abcdef01234567","object":"chat.completion.chunk","created":1790000000,"model":"gpt-5.6-luna","system_fingerprint":"fp_44709d6fcb","choices":[{"index":0,"delta":`
	b.WriteString(head + `{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}]}` + "\n\n")
	for i := range n {
		fmt.Fprintf(&b, head+`{"content":"tok%05d:%d "},"logprobs":null,"finish_reason":null}]}`+"\n\n", i, 1790000000000000000+i)
	}
	b.WriteString(head + `{},"logprobs":null,"finish_reason":"stop"}]}` + "\n\n")
	fmt.Fprintf(&b, `data: {"id":"chatcmpl-0123456789abcdef01234567","object":"chat.completion.chunk","created":1790000000,"model":"gpt-5.6-luna","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":%d,"total_tokens":%d}}`+"\n\ndata: [DONE]\n\n", n, n+10)
	return b.Bytes()
}

// recorded answers every request with the same bytes, without a socket.
type recorded []byte

func (r recorded) RoundTrip(q *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(bytes.NewReader(r)), Request: q}, nil
}

// convert runs a stream through a client to the bytes of /v1/stream and counts its events.
func convert(b *testing.B, client *mmsp.Client) {
	messages := []mmsp.Message{mmsp.UserMessage(mmsp.Text("hello"))}
	var out []byte
	events := 0
	b.ReportAllocs()
	for b.Loop() {
		events = 0
		for event, err := range client.StreamingResponse(context.Background(), messages, nil) {
			if err != nil {
				b.Fatal(err)
			}
			out = append(out, "data: "...)
			out = event.AppendJSON(out)
			out = append(out, "\n\n"...)
			if !event.More {
				out = out[:0]
			}
			events++
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(events), "ns/event")
}

func BenchmarkChat(b *testing.B) {
	stream := chatStream(500)
	p, err := openaichat.New(mmsp.Options{Model: "m", APIKey: mmsp.NewSecret("k"), BaseURL: "http://x/v1", HTTPClient: &http.Client{Transport: recorded(stream)}})
	if err != nil {
		b.Fatal(err)
	}
	convert(b, mmsp.NewClient(p))
}
