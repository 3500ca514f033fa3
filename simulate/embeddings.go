package simulate

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"hash/fnv"
	"maps"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
)

// Embeddings returns a provider of the Embeddings API: POST …/embeddings, GET …/models. Texts that share words have
// vectors that are near to each other.
func Embeddings(o Options) *Provider {
	c := newCore(o)
	return &Provider{c, embeddings{openai{c}}, endsIn("/embeddings"), "x-request-id"}
}

// embeddings is the Embeddings API.
type embeddings struct{ openai }

type embeddingsExchange struct {
	embeddings
	turn
	texts  []string
	size   int
	base64 bool
}

const (
	openaiVector = 1536 // numbers of a vector, unless the request wants fewer
	maxInputs    = 2048
)

func (e embeddings) read(body []byte, _ *http.Request) (exchange, *fault) {
	var sent map[string]json.RawMessage
	if f := decode(body, &sent, ""); f != nil {
		return nil, f
	}
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		if !slices.Contains([]string{"dimensions", "encoding_format", "input", "model", "user"}, name) {
			return nil, bad("", "", "Unrecognized request argument supplied: %s", clip(name, 100))
		}
	}
	var request struct {
		Model          string
		Input          json.RawMessage
		EncodingFormat string `json:"encoding_format"`
		Dimensions     *int
	}
	if f := decode(body, &request, ""); f != nil {
		return nil, f
	}
	x := &embeddingsExchange{
		embeddings: e, turn: turn{model: request.Model}, size: openaiVector, base64: request.EncodingFormat == "base64",
	}
	if request.Dimensions != nil {
		x.size = *request.Dimensions
	}
	switch {
	case request.Model == "":
		return nil, bad("", "", "you must provide a model parameter")
	case !e.serves(request.Model):
		return nil, e.unknownModel(request.Model)
	case request.EncodingFormat != "" && request.EncodingFormat != "float" && !x.base64:
		return nil, invalidValue("encoding_format", request.EncodingFormat, "float", "base64")
	case x.size < 1 || x.size > openaiVector:
		return nil, bad("dimensions", "", "Invalid value for 'dimensions' = %d. Must be between 1 and %d.", x.size, openaiVector)
	}
	// One input is a text or a list of token numbers, and there may be a list of either.
	var one string
	var many []json.RawMessage
	input := request.Input
	if json.Unmarshal(input, &many) != nil || len(many) > 0 && bytes.IndexByte([]byte("-0123456789"), many[0][0]) >= 0 {
		many = []json.RawMessage{input}
	}
	invalid := bad("input", "", "'$.input' is invalid. Please check the API reference: https://platform.openai.com/docs/api-reference.")
	if len(many) == 0 || len(many) > maxInputs {
		return nil, invalid
	}
	for _, raw := range many {
		var numbers []int
		switch {
		case json.Unmarshal(raw, &one) == nil && one != "":
		case json.Unmarshal(raw, &numbers) == nil && len(numbers) > 0:
			one = string(raw)
		default:
			return nil, invalid
		}
		x.texts = append(x.texts, one)
		x.hear(one)
	}
	return x, nil
}

func (x *embeddingsExchange) asked() *turn { return &x.turn }

func (x *embeddingsExchange) stream(*stream, *reply) {}

func (x *embeddingsExchange) whole(r *reply) any {
	data := []object{}
	for i, text := range x.texts {
		values := vector(text, x.size)
		item := object{"object": "embedding", "index": i, "embedding": values}
		if x.base64 {
			var raw []byte
			for _, v := range values {
				raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
			}
			item["embedding"] = base64.StdEncoding.EncodeToString(raw)
		}
		data = append(data, item)
	}
	input := r.usage.input - replyOverhead
	return object{
		"object": "list", "data": data, "model": x.model, "usage": object{"prompt_tokens": input, "total_tokens": input},
	}
}

// vector makes a vector of length 1 that is the sum of one for each word. A shorter one is the beginning of a longer one.
func vector(text string, size int) []float32 {
	all := words(strings.ToLower(text))
	if len(all) == 0 {
		all = []string{text}
	}
	sum := make([]float64, size)
	for _, word := range all[:min(len(all), 1000)] {
		hash := fnv.New64a()
		_, _ = hash.Write([]byte(word))
		random := rand.New(rand.NewPCG(hash.Sum64(), 0))
		for i := range sum {
			sum[i] += random.NormFloat64()
		}
	}
	square := 0.0
	for _, v := range sum {
		square += v * v
	}
	values := make([]float32, size)
	for i, v := range sum {
		values[i] = float32(v / math.Sqrt(square))
	}
	return values
}
