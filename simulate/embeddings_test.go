package simulate

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"math"
	"testing"
)

func TestEmbeddings(t *testing.T) {
	p := dial(t, "embeddings", Options{})
	body := p.whole(`{"model":"m","input":["the red boat sails","the red boat rests","an essay about tax"],"dimensions":256}`)
	vectors := make([][]float64, 3)
	for i := range vectors {
		for _, v := range (tree{body.at("data").list()[i]}).at("embedding").list() {
			f, _ := v.(json.Number).Float64()
			vectors[i] = append(vectors[i], f)
		}
	}
	dot := func(a, b []float64) (sum float64) {
		for i := range a {
			sum += a[i] * b[i]
		}
		return sum
	}
	if len(vectors[0]) != 256 || math.Abs(dot(vectors[0], vectors[0])-1) > 1e-5 || dot(vectors[0], vectors[1]) < dot(vectors[0], vectors[2])+0.3 {
		t.Errorf("%d numbers, products %f %f %f", len(vectors[0]), dot(vectors[0], vectors[0]), dot(vectors[0], vectors[1]), dot(vectors[0], vectors[2]))
	}
	if body.at("data.2.index").number() != 2 || body.at("usage.prompt_tokens").number() < 10 || body.at("usage.total_tokens").number() != body.at("usage.prompt_tokens").number() {
		t.Error(body.at("usage").json())
	}
	raw, err := base64.StdEncoding.DecodeString(p.whole(`{"model":"m","input":"the red boat sails","dimensions":256,"encoding_format":"base64"}`).at("data.0.embedding").text())
	if err != nil || len(raw) != 4*256 {
		t.Fatal(err, len(raw))
	}
	for i, want := range vectors[0] {
		if got := float64(math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))); math.Abs(got-want) > 1e-6 {
			t.Fatalf("number %d is %v, not %v", i, got, want)
		}
	}
	if n := len(p.whole(`{"model":"m","input":[[1,2],[3]]}`).at("data").list()); n != 2 {
		t.Errorf("%d vectors of two lists of tokens", n)
	}
	if n := len(p.whole(`{"model":"m","input":[1,2]}`).at("data.0.embedding").list()); n != openaiVector {
		t.Errorf("%d numbers", n)
	}
	for _, c := range [][2]string{
		{`{"input":"x"}`, "you must provide a model parameter"},
		{`{"model":"m","input":""}`, "'$.input' is invalid."},
		{`{"model":"m","input":[]}`, "'$.input' is invalid."},
		{`{"model":"m","input":["x",""]}`, "'$.input' is invalid."},
		{`{"model":"m","input":{"a":1}}`, "'$.input' is invalid."},
		{`{"model":"m"}`, "'$.input' is invalid."},
		{`{"model":"m","input":"x","encoding_format":"hex"}`, "Invalid value: 'hex'."},
		{`{"model":"m","input":"x","dimensions":0}`, "Invalid value for 'dimensions' = 0."},
		{`{"model":"m","input":"x","stream":true}`, "Unrecognized request argument supplied: stream"},
	} {
		checkRefused(t, p, c[0], "invalid_request_error", c[1])
	}
	if response, _, _ := p.post(`{"model":"m","input":"error 503"}`); response.StatusCode != 503 {
		t.Errorf("status %d", response.StatusCode)
	}
}
