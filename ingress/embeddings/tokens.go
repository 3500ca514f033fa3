package embeddings

import (
	"fmt"
	"slices"
	"sync"

	"github.com/tiktoken-go/tokenizer/codec"

	"github.com/prism-shadow/mmsp-go/ingress"
)

// vocabulary is cl100k_base: that of OpenAI's embedding models, and what libraries split texts with where they do not know
// the model. It takes some milliseconds and megabytes, and is made when the first tokens come.
var vocabulary = sync.OnceValue(func() *codec.Codec {
	c := codec.NewCl100kBase()
	c.SetErrorMode(codec.ErrorModeReplace) // libraries cut long texts anywhere, within a character too
	return c
})

// decode returns the text of tokens that stand at a path of the body.
func decode(tokens []uint, path string) (string, error) {
	text, err := vocabulary().Decode(tokens)
	if err == nil {
		return text, nil
	}
	wrong := slices.IndexFunc(tokens, func(token uint) bool {
		_, err := vocabulary().Decode([]uint{token})
		return err != nil
	})
	return "", ingress.Invalid(fmt.Sprintf("%s[%d]", path, wrong), fmt.Sprintf("%d is no token of the vocabulary cl100k_base", tokens[wrong]))
}
