package conformance

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prism-shadow/mmsp-go"
)

// otherEmbeddings are the beginnings of names of recordings that are in the protocol of a vendor, with what it is.
var otherEmbeddings = map[string]string{
	"embeddings/bedrock-":    "the answers of Titan and Cohere models",
	"embeddings/cohere-":     "embeddings_by_type",
	"embeddings/google-":     "embedContent",
	"embeddings/perplexity-": "int8 values in base64, which encoding_format base64 does not ask for",
}

// TestEmbeddings compares the vectors and the usage of every recording with what the standard library reads in it.
func TestEmbeddings(t *testing.T) {
	c := clients[slices.IndexFunc(clients, func(c client) bool { return c.protocol == &embeddings })]
	recordings := load(t)
	server, transport := replay(t, recordings)
	read := 0
	for i, r := range recordings {
		vendor := ""
		for prefix := range otherEmbeddings {
			if strings.HasPrefix(r.path, prefix) {
				vendor = prefix
			}
		}
		if r.protocol != &embeddings || vendor != "" {
			continue
		}
		read++
		t.Run(r.path, func(t *testing.T) {
			o := run(t.Context(), c.provider(t, server.URL+"/"+strconv.Itoa(i), transport))
			if o.broken != nil {
				t.Error(o.broken)
			}
			if r.status != http.StatusOK {
				if failure := (*mmsp.UpstreamError)(nil); !errors.As(o.err, &failure) || failure.Status != r.status || failure.Message == "" || !strings.Contains(string(r.body), failure.Message) {
					t.Errorf("status %d: %v", r.status, o.err)
				}
				return
			}
			var want struct {
				Data []struct {
					Index     int
					Embedding any
				}
				Usage object
			}
			if err := json.Unmarshal(r.body, &want); err != nil {
				t.Fatal(err)
			}
			if o.stop == nil || o.stop.FinishReason != mmsp.FinishStop || !sameCounts(o.stop.Usage, &mmsp.Usage{PromptTokens: want.Usage.int("prompt_tokens")}) {
				t.Fatalf("the end: %s", o.dump())
			}
			var got [][]float64
			for i := range o.events {
				if o.events[i].Item.Type == mmsp.EmbeddingDone {
					got = append(got, o.events[i].Item.Embedding)
				}
			}
			if len(got) != len(want.Data) {
				t.Fatalf("%d vectors, want %d", len(got), len(want.Data))
			}
			for _, element := range want.Data {
				vector := got[element.Index]
				switch embedding := element.Embedding.(type) {
				case string: // float32 values, bit for bit
					data, err := base64.StdEncoding.DecodeString(embedding)
					if err != nil || len(data) != 4*len(vector) {
						t.Fatalf("%d values of %d bytes (%v)", len(vector), len(data), err)
					}
					for n := range vector {
						if bits := binary.LittleEndian.Uint32(data[4*n:]); math.Float32bits(float32(vector[n])) != bits {
							t.Fatalf("value %d is %v, want %v", n, vector[n], math.Float32frombits(bits))
						}
					}
				case []any:
					if !slices.EqualFunc(embedding, vector, func(want any, got float64) bool { return want == got }) {
						t.Fatalf("got %v, want %v", vector, embedding)
					}
				}
			}
		})
	}
	if read == 0 {
		t.Error("no recording is in the protocol of OpenAI")
	}
}

func sameCounts(a, b *mmsp.Usage) bool {
	text := func(u *mmsp.Usage) string { return show(&mmsp.Event{Usage: u}) }
	return text(a) == text(b)
}
