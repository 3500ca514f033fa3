package openaiembedding

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// Response is the answer to a Request.
type Response struct {
	Data         []Embedding     // in the order of the inputs
	PromptTokens *int64          // nil: not reported
	Error        json.RawMessage // what went wrong; aliases the body
}

// Embedding is the vector of one input.
type Embedding struct {
	Index  int
	Vector []float64
}

// errNoList: a body has no list of vectors.
var errNoList = errors.New("the body has no list of embeddings")

// Decode reads a whole answer. A vector is an array of numbers, or the base64 of little-endian float32 values, of which
// each is read as the shortest decimal number that stands for it: what the answer would say in an array, and short when
// it is written again. Converted to float32 it is the provider's value, bit for bit.
func Decode(body []byte) (*Response, error) {
	r := &Response{}
	var s jsonscan.Scanner
	var broken error
	listed := false
	s.Reset(body)
	for first := true; s.Field(&first); {
		switch string(s.Name()) {
		case "data":
			listed, r.Data = s.Kind() == '[', nil
			for first := true; s.Element(&first); {
				embedding, err := decodeEmbedding(&s, len(r.Data))
				if err != nil && broken == nil {
					broken = fmt.Errorf("data[%d]: %w", len(r.Data), err)
				}
				r.Data = append(r.Data, embedding)
			}
		case "usage":
			for first := true; s.Field(&first); {
				if string(s.Name()) != "prompt_tokens" {
					s.Skip()
				} else if n, ok := s.Int(); ok {
					r.PromptTokens = &n
				}
			}
		case "error":
			if kind := s.Kind(); kind == '{' || kind == '"' {
				r.Error = body
			}
			s.Skip()
		default:
			s.Skip()
		}
	}
	switch err := s.End(); {
	case err != nil:
		return nil, err
	case r.Error != nil:
		return r, nil
	case !listed:
		return nil, errNoList
	case broken != nil:
		return nil, broken
	}
	slices.SortStableFunc(r.Data, func(a, b Embedding) int { return cmp.Compare(a.Index, b.Index) })
	return r, nil
}

// decodeEmbedding reads one element of the list, whose place stands for an index that is not given.
func decodeEmbedding(s *jsonscan.Scanner, place int) (Embedding, error) {
	e := Embedding{Index: place}
	err := errors.New("there is no vector")
	for first := true; s.Field(&first); {
		switch string(s.Name()) {
		case "index":
			if n, ok := s.Int(); ok && n >= 0 && n < math.MaxInt32 {
				e.Index = int(n)
			}
		case "embedding":
			e.Vector = []float64{}
			switch s.Kind() {
			case '"':
				e.Vector, err = decodeBase64(s.Bytes())
			case '[':
				err = nil
				for first := true; s.Element(&first); {
					f, ok := s.Float()
					if !ok {
						err = errors.New("an element of the vector is no number")
					}
					e.Vector = append(e.Vector, f)
				}
			default:
				s.Skip()
			}
		default:
			s.Skip()
		}
	}
	return e, err
}

// decodeBase64 reads float32 values.
func decodeBase64(text []byte) ([]float64, error) {
	data, err := base64.StdEncoding.AppendDecode(nil, text)
	switch {
	case err != nil:
		return nil, fmt.Errorf("the vector is no base64: %w", err)
	case len(data)%4 != 0:
		return nil, fmt.Errorf("%d bytes are no float32 values", len(data))
	}
	vector := make([]float64, len(data)/4)
	var digits [32]byte
	for i := range vector {
		f := float64(math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:])))
		if math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, errors.New("an element of the vector is no finite number")
		}
		vector[i], _ = strconv.ParseFloat(string(strconv.AppendFloat(digits[:0], f, 'g', -1, 32)), 64)
	}
	return vector, nil
}
