package openaiembedding

import (
	"fmt"

	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// Body is the body of POST /v1/embeddings as a caller writes it.
type Body struct {
	Model      string
	Input      []string
	Single     bool // the input is one text, not a list
	Base64     bool // vectors are wanted as the base64 of little-endian float32 values
	Dimensions *int64
	User       string
}

// MaxInputs is how many texts a request may hold.
const MaxInputs = 2048

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
			r.Skip()
		}
	})
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

// readInput reads a text or a list of texts. Tokens, which the protocol allows in their place, are numbers of one provider's
// vocabulary.
func (b *Body) readInput(r *jsonscan.Reader) {
	if r.Kind() == '"' {
		b.Single = true
		b.readText(r)
		return
	}
	r.Elements(func() {
		switch {
		case r.Kind() == '0' || r.Kind() == '[':
			r.FailAt("input", "texts are wanted: tokens cannot be read without the tokenizer of the provider")
			r.Skip()
		case r.Kind() == 'n':
			r.Fail("a text is wanted")
			r.Skip()
		case len(b.Input) == MaxInputs:
			r.FailAt("input", fmt.Sprintf("at most %d texts are wanted", MaxInputs))
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
	b.Input = append(b.Input, text)
}
