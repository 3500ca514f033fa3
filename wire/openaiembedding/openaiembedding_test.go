package openaiembedding

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

func TestEncode(t *testing.T) {
	for _, c := range []struct {
		request Request
		want    string
	}{
		{Request{Model: "m", Input: []string{}}, `{"model":"m","input":[]}`},
		{
			Request{Model: "m", Dimensions: new(int64(256)), EncodingFormat: "base64", Input: []string{"Sète <&>", " "}},
			`{"model":"m","dimensions":256,"encoding_format":"base64","input":["Sète <&>"," "]}`,
		},
	} {
		if got, err := c.request.Encode(); err != nil || string(got) != c.want {
			t.Errorf("got  %s %v\nwant %s", got, err, c.want)
		}
	}
}

// pack is the base64 of little-endian float32 values.
func pack(values ...float32) string {
	var data []byte
	for _, v := range values {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
	}
	return base64.StdEncoding.EncodeToString(data)
}

func vectors(vectors ...[]float64) (data []Embedding) {
	for i, v := range vectors {
		data = append(data, Embedding{i, v})
	}
	return data
}

func TestDecode(t *testing.T) {
	for _, c := range []struct {
		body string
		want Response
	}{
		{
			`{"object":"list","data":[{"object":"embedding","index":0,"embedding":"` + pack(0.1, -0.0023064255, 3, 1e-45, math.MaxFloat32) + `"}],"model":"m","usage":{"prompt_tokens":8,"total_tokens":8}}`,
			Response{Data: vectors([]float64{0.1, -0.0023064255, 3, 1e-45, 3.4028235e38}), PromptTokens: new(int64(8))},
		},
		{
			`{"data":[{"embedding":[0.1,-1e-7,3,0.30000000000000004],"index":0}],"usage":{"prompt_tokens":0}}`,
			Response{Data: vectors([]float64{0.1, -1e-7, 3, 0.30000000000000004}), PromptTokens: new(int64(0))},
		},
		{ // out of order, mixed forms
			`{"data":[{"index":2,"embedding":[2]},{"index":0,"embedding":"` + pack(0.5) + `"},{"index":1,"embedding":[]}]}`,
			Response{Data: vectors([]float64{0.5}, []float64{}, []float64{2})},
		},
		{`{"data":[{"embedding":[1]},{"embedding":[2]},{"index":null,"embedding":[3]}]}`, Response{Data: vectors([]float64{1}, []float64{2}, []float64{3})}},
		{ // one index for all: the order of the answer stands
			`{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[2]}]}`,
			Response{Data: []Embedding{{0, []float64{1}}, {0, []float64{2}}}},
		},
		{`{"data":[{"embedding":"AACAPw\u003d=","index":-1}],"usage":null,"error":null}`, Response{Data: vectors([]float64{1})}},
		{`{"data":[{"embedding":"\/\/9\/Pw=="}]}`, Response{Data: vectors([]float64{0.99999994})}},
		{`{"data":[{"embedding":"","index":0}],"usage":{"prompt_tokens":"8"}}`, Response{Data: vectors([]float64{})}},
		{`{"data":[]}`, Response{}},
		{`{"error":{"message":"No."}}`, Response{Error: json.RawMessage(`{"error":{"message":"No."}}`)}},
		{`{"error":"No.","data":null}`, Response{Error: json.RawMessage(`{"error":"No.","data":null}`)}},
	} {
		got, err := Decode([]byte(c.body))
		if err != nil || !reflect.DeepEqual(*got, c.want) {
			t.Errorf("%s:\ngot  %+v %v\nwant %+v", c.body, got, err, c.want)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	for body, want := range map[string]string{
		``:                                    "ends early",
		`{"data":[{"embedding":[1`:            "missing",
		`{"data":[]} x`:                       "after the value",
		`[]`:                                  "no list",
		`{}`:                                  "no list",
		`{"data":{"embedding":[1]}}`:          "no list",
		`{"embeddings":{"float":[[1]]}}`:      "no list",
		`{"data":[{"embedding":[1]},{}]}`:     "data[1]: there is no vector",
		`{"data":[3]}`:                        "data[0]: there is no vector",
		`{"data":[{"embedding":null}]}`:       "data[0]: there is no vector",
		`{"data":[{"embedding":[1,null]}]}`:   "data[0]: an element of the vector is no number",
		`{"data":[{"embedding":[[1]]}]}`:      "data[0]: an element of the vector is no number",
		`{"data":[{"embedding":[1e999]}]}`:    "data[0]: an element of the vector is no number",
		`{"data":[{"embedding":"AACAP!=="}]}`: "data[0]: the vector is no base64",
		`{"data":[{"embedding":"AACA"}]}`:     "data[0]: 3 bytes are no float32 values",
		`{"data":[{"embedding":"` + pack(float32(math.NaN())) + `"}]}`:   "data[0]: an element of the vector is no finite number",
		`{"data":[{"embedding":"` + pack(float32(math.Inf(-1))) + `"}]}`: "data[0]: an element of the vector is no finite number",
	} {
		if got, err := Decode([]byte(body)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v %v, want %s", body, got, err, want)
		}
	}
}

// TestExact: whatever bits a provider sends come back from the decoded number, which is as short as they allow.
func TestExact(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		want := math.Float32frombits(random.Uint32())
		if want != want || math.IsInf(float64(want), 0) {
			continue
		}
		got, err := decodeBase64([]byte(pack(want)))
		if err != nil || math.Float32bits(float32(got[0])) != math.Float32bits(want) {
			t.Fatalf("%v becomes %v (%v)", want, got, err)
		}
		if a, b := strconv.FormatFloat(got[0], 'g', -1, 64), strconv.FormatFloat(float64(want), 'g', -1, 32); a != b {
			t.Fatalf("%s is written as %s", b, a)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"object":"list","data":[{"index":1,"embedding":"` + pack(1, 2) + `"},{"index":0,"embedding":[0.5,-1e-7]}],"usage":{"prompt_tokens":8}}`))
	f.Add([]byte(`{"error":{"message":"No."}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := Decode(body)
		if err != nil || r.Error != nil {
			return
		}
		for i, e := range r.Data {
			if i > 0 && e.Index < r.Data[i-1].Index {
				t.Errorf("%d comes after %d", e.Index, r.Data[i-1].Index)
			}
			for _, v := range e.Vector {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					t.Errorf("%v is no number of JSON", v)
				}
			}
		}
	})
}

func BenchmarkDecode(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	var data []string
	for i := range 64 {
		values := make([]float32, 1536)
		for n := range values {
			values[n] = random.Float32() - 0.5
		}
		data = append(data, fmt.Sprintf(`{"object":"embedding","index":%d,"embedding":"%s"}`, i, pack(values...)))
	}
	body := []byte(`{"object":"list","data":[` + strings.Join(data, ",") + `],"model":"m","usage":{"prompt_tokens":8,"total_tokens":8}}`)
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		if _, err := Decode(body); err != nil {
			b.Fatal(err)
		}
	}
}
