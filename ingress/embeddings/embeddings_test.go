package embeddings

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/ingress"
	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
	"github.com/prism-shadow/mmsp-go/wire/openaiembedding"
)

func ask(body string) (ingress.Call, *ingress.Request, error) {
	if err := jsonscan.Check([]byte(body)); err != nil {
		return nil, nil, err
	}
	c, err := New().Parse(nil, []byte(body))
	if err != nil {
		return nil, nil, err
	}
	request, err := c.Read(context.Background(), nil)
	return c, request, err
}

func TestRead(t *testing.T) {
	for _, c := range []struct{ body, messages, paths, config string }{
		{
			`{"model":"m","input":"a","encoding_format":null,"dimensions":null,"stream":1}`,
			`[{"role":"user","content_items":[{"type":"text.done","text":"a"}]}]`, `[["input"]]`, `{}`,
		},
		{
			`{"model":"m","input":["a"," "],"encoding_format":"float","dimensions":256,"user":"u"}`,
			`[{"role":"user","content_items":[{"type":"text.done","text":"a"}]},{"role":"user","content_items":[{"type":"text.done","text":" "}]}]`,
			`[["input[0]"],["input[1]"]]`, `{"user":"u","embedding_config":{"dimensions":256}}`,
		},
	} {
		call, request, err := ask(c.body)
		if err != nil {
			t.Errorf("%s: %v", c.body, err)
			continue
		}
		messages, _ := json.Marshal(request.Messages)
		paths, _ := json.Marshal(request.Paths)
		config := request.Config.AppendJSON(nil)
		if string(messages) != c.messages || string(paths) != c.paths || string(config) != c.config || call.Model() != "m" || call.Streams() {
			t.Errorf("%s:\n%s\n%s\n%s", c.body, messages, paths, config)
		}
	}
}

// TestTokens: the tokens are those that OpenAI's own library makes of these texts.
func TestTokens(t *testing.T) {
	for _, c := range []struct {
		input string
		texts []string
		path  string // of the last
	}{
		{`[15339,1917]`, []string{"hello world"}, "input"},
		{`[[83,1609,5963,374,2294,0],[15339,1917]]`, []string{"tiktoken is great!", "hello world"}, "input[1]"},
		{`["a",[15339]]`, []string{"a", "hello"}, "input[1]"},
		{`[33334,45918,243,21990,9080,33334,62004,16556,78699]`, []string{"お誕生日おめでとう"}, "input"},
		{`[[33334,45918],[243,21990]]`, []string{"お\ufffd", "\ufffd生"}, "input[1]"}, // cut within a character
		{`[243]`, []string{"\ufffd"}, "input"},
		{`[220]`, []string{" "}, "input"},
	} {
		_, request, err := ask(`{"model":"m","input":` + c.input + `}`)
		if err != nil {
			t.Errorf("%s: %v", c.input, err)
			continue
		}
		var texts []string
		for i := range request.Messages {
			texts = append(texts, request.Messages[i].ContentItems[0].Text)
		}
		if path := request.Paths[len(texts)-1][0]; !slices.Equal(texts, c.texts) || path != c.path {
			t.Errorf("%s: %q at %s", c.input, texts, path)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	repeated := func(token string, n int) string { return `[` + strings.Repeat(token+",", n-1) + token + `]` }
	many := `["a"` + strings.Repeat(`,"a"`, openaiembedding.MaxInputs) + `]`
	for _, c := range []struct{ body, param, says string }{
		{`{"input":"a"}`, "model", "name of a model"},
		{`{"model":"m"}`, "input", "a text or a list"},
		{`{"model":"m","input":null}`, "input", "a text or a list"},
		{`{"model":"m","input":[]}`, "input", "a text or a list"},
		{`{"model":"m","input":{}}`, "input", "a list"},
		{`{"model":"m","input":""}`, "input", "not an empty one"},
		{`{"model":"m","input":["a","b",""]}`, "input[2]", "not an empty one"},
		{`{"model":"m","input":["a",null]}`, "input[1]", "a text is wanted"},
		{`{"model":"m","input":["a",true]}`, "input[1]", "a string"},
		{`{"model":"m","input":[[1],"a",[]]}`, "input[2]", "not of an empty one"},
		{`{"model":"m","input":[1,"a"]}`, "input[1]", "an integer"},
		{`{"model":"m","input":[1,null]}`, "input[1]", "a token is wanted"},
		{`{"model":"m","input":[1,[2]]}`, "input[1]", "an integer"},
		{`{"model":"m","input":[[1,-1]]}`, "input[0][1]", "an integer from 0"},
		{`{"model":"m","input":[[1,1.5]]}`, "input[0][1]", "an integer"},
		{`{"model":"m","input":[1,1e30]}`, "input[1]", "an integer"},
		{`{"model":"m","input":[[1],[[1]]]}`, "input[1][0]", "an integer"},
		{`{"model":"m","input":[[1],[2],[3],[15339,1917,100256]]}`, "input[3][2]", "100256 is no token of the vocabulary cl100k_base"},
		{`{"model":"m","input":[15339,100257]}`, "input[1]", "100257 is no token"}, // one that stands for no text
		{`{"model":"m","input":` + repeated("1", openaiembedding.MaxTokens+1) + `}`, "input", "at most 8192 tokens"},
		{`{"model":"m","input":[[1],` + repeated("1", openaiembedding.MaxTokens+1) + `]}`, "input[1]", "at most 8192 tokens"},
		{`{"model":"m","input":` + repeated(repeated("1", 8000), 38) + `}`, "input", "at most 300000 tokens"},
		{`{"model":"m","input":` + repeated("[1]", openaiembedding.MaxInputs+1) + `}`, "input", "at most 2048"},
		{`{"model":"m","input":` + many + `}`, "input", "at most 2048"},
		{`{"model":"m","input":"a","encoding_format":"int8"}`, "encoding_format", "one of float, base64"},
		{`{"model":"m","input":"a","dimensions":0}`, "dimensions", "from 1"},
		{`{"model":"m","input":"a","user":1}`, "user", "a string"},
	} {
		_, _, err := ask(c.body)
		var invalid *mmsp.InvalidRequestError
		if !errors.As(err, &invalid) || invalid.Param != c.param || !strings.Contains(invalid.Message, c.says) {
			t.Errorf("%.80s:\ngot  %v\nwant %s: … %s", c.body, err, c.param, c.says)
		}
	}
}

func TestWhole(t *testing.T) {
	answer := &mmsp.Message{
		ContentItems: []mmsp.Item{{Type: mmsp.EmbeddingDone, Embedding: []float64{0.1, -1e-7, 3}}, {Type: mmsp.EmbeddingDone, Embedding: []float64{}}},
		Usage:        &mmsp.Usage{PromptTokens: new(int64(8))},
	}
	call, _, err := ask(`{"model":"m","input":["a","b"]}`)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.1,-1e-07,3]},{"object":"embedding","index":1,"embedding":[]}],"model":"m","usage":{"prompt_tokens":8,"total_tokens":8}}`
	if got := string(call.Whole(nil, answer)); got != want || !jsonscan.Valid([]byte(got)) {
		t.Errorf("got  %s\nwant %s", got, want)
	}

	call, _, _ = ask(`{"model":"m","input":["a","b"],"encoding_format":"base64"}`)
	answer.Usage = nil
	var got struct {
		Data  []struct{ Embedding string }
		Usage struct {
			PromptTokens *int64 `json:"prompt_tokens"`
		}
	}
	if err := json.Unmarshal(call.Whole(nil, answer), &got); err != nil || len(got.Data) != 2 || got.Usage.PromptTokens == nil || *got.Usage.PromptTokens != 0 {
		t.Fatalf("%v %+v", err, got)
	}
	packed, err := base64.StdEncoding.DecodeString(got.Data[0].Embedding)
	if err != nil || len(packed) != 12 {
		t.Fatal(err, packed)
	}
	for i, want := range []float32{0.1, -1e-7, 3} {
		if f := math.Float32frombits(binary.LittleEndian.Uint32(packed[4*i:])); f != want {
			t.Errorf("number %d is %v, want %v", i, f, want)
		}
	}
}

func TestError(t *testing.T) {
	want := `{"error":{"message":"m","type":"invalid_request_error","param":"input","code":"invalid_value"}}`
	if got := string(New().AppendError(nil, &ingress.Problem{Kind: ingress.KindInvalid, Message: "m", Param: "input"})); got != want {
		t.Errorf("got %s", got)
	}
}

// FuzzRead: whatever a caller sends is read or refused, and each text is a message.
func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"model":"m","input":["a","b"],"encoding_format":"base64","dimensions":3,"user":"u"}`))
	f.Add([]byte(`{"model":"m","input":[[1]]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		_, request, err := ask(string(body))
		if err != nil {
			return
		}
		if err := mmsp.Validate(request.Messages); err != nil || len(request.Messages) == 0 || len(request.Messages) != len(request.Paths) {
			t.Fatalf("%v: %d messages, %d paths", err, len(request.Messages), len(request.Paths))
		}
	})
}

// FuzzWrite: numbers come back as they were, or as close as float32 is.
func FuzzWrite(f *testing.F) {
	f.Add(0.1, -1e300)
	f.Fuzz(func(t *testing.T, a, b float64) {
		if math.IsNaN(a+b) || math.IsInf(a, 0) || math.IsInf(b, 0) {
			return
		}
		answer := &mmsp.Message{ContentItems: []mmsp.Item{{Type: mmsp.EmbeddingDone, Embedding: []float64{a, b}}}}
		call, _, _ := ask(`{"model":"m","input":"a"}`)
		var got struct {
			Data []struct{ Embedding []float64 }
		}
		if err := json.Unmarshal(call.Whole(nil, answer), &got); err != nil || got.Data[0].Embedding[0] != a || got.Data[0].Embedding[1] != b {
			t.Fatalf("%v: %+v is not %v, %v", err, got, a, b)
		}
	})
}
