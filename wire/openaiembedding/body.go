package openaiembedding

import (
	"fmt"
	"math"

	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// Body is the body of POST /v1/embeddings as a caller writes it.
type Body struct {
	Model      string
	Input      []Input
	Single     bool // the input is one text, not a list
	Base64     bool // vectors are wanted as the base64 of little-endian float32 values
	Dimensions *int64
	User       string

	Unknown []string // fields

	tokens int // in all inputs
}

// Input is a text, or the tokens of one.
type Input struct {
	Text   string
	Tokens []uint // nil: it is a text
}

// What a request may hold.
const (
	MaxInputs    = 2048
	MaxTokens    = 8192 // of one text
	MaxAllTokens = 300_000
)

// ReadBody reads a body whose JSON has passed jsonscan.Check. The error is a *jsonscan.PathError.
func ReadBody(data []byte) (*Body, error) {
	b := &Body{}
	r := jsonscan.NewReader(data)
	r.Fields(func(name string) {
		switch name {
		case "model":
			b.Model = r.String()
		case "input":
			b.readInput(r)
		case "encoding_format":
			b.Base64 = r.Word("float", "base64") == "base64"
		case "dimensions":
			b.Dimensions = r.IntBetween(1, 1<<20)
		case "user":
			b.User = r.String()
		default:
			r.SkipUnknown()
		}
	})
	b.Unknown = r.Unknown()
	switch {
	case b.Model == "":
		r.FailAt("model", "the name of a model is wanted")
	case len(b.Input) == 0:
		r.FailAt("input", "a text or a list of texts is wanted")
	}
	if err := r.End(); err != nil {
		return nil, err
	}
	return b, nil
}

// readInput reads a text, the tokens of one, or a list of either.
func (b *Body) readInput(r *jsonscan.Reader) {
	if r.Kind() == '"' {
		b.Single = true
		b.readText(r)
		return
	}
	r.Elements(func() {
		kind := r.Kind()
		if kind == '0' && len(b.Input) == 0 {
			b.Single, b.Input = true, make([]Input, 1)
		}
		switch {
		case b.Single:
			b.readToken(r, "input")
		case len(b.Input) == MaxInputs:
			r.FailAt("input", fmt.Sprintf("at most %d texts are wanted", MaxInputs))
			r.Skip()
		case kind == '[':
			path := r.Path()
			b.Input = append(b.Input, Input{})
			r.Elements(func() { b.readToken(r, path) })
			if len(b.Input[len(b.Input)-1].Tokens) == 0 {
				r.Fail("the tokens of a text are wanted, not of an empty one")
			}
		case kind == 'n':
			r.Fail("a text is wanted")
			r.Skip()
		default:
			b.readText(r)
		}
	})
}

func (b *Body) readText(r *jsonscan.Reader) {
	text := r.String()
	if text == "" {
		r.Fail("a text is wanted, not an empty one")
	}
	b.Input = append(b.Input, Input{Text: text})
}

// readToken reads a token of the last input, which stands at a path.
func (b *Body) readToken(r *jsonscan.Reader, path string) {
	input := &b.Input[len(b.Input)-1]
	id := r.IntBetween(0, math.MaxInt32)
	switch {
	case r.Failed():
	case id == nil:
		r.Fail("a token is wanted")
	case len(input.Tokens) == MaxTokens:
		r.FailAt(path, fmt.Sprintf("at most %d tokens a text are wanted", MaxTokens))
	case b.tokens == MaxAllTokens:
		r.FailAt("input", fmt.Sprintf("at most %d tokens are wanted", MaxAllTokens))
	default:
		input.Tokens = append(input.Tokens, uint(*id))
		b.tokens++
	}
}
