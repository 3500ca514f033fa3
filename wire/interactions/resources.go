package interactions

import (
	"strings"

	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// Embeddings is the answer to an EmbedRequest: a vector per content, in its order.
type Embeddings struct {
	Vectors    [][]float64
	Characters *int64 // metadata.billableCharacterCount; nil: not reported
}

// DecodeEmbeddings reads the answer to an EmbedRequest. ok is false for anything else.
func DecodeEmbeddings(body []byte) (answer Embeddings, ok bool) {
	var s jsonscan.Scanner
	s.Reset(body)
	for first := true; s.Field(&first); {
		switch string(s.Name()) {
		case "embeddings":
			ok = s.Kind() == '['
			for first := true; s.Element(&first); {
				vector := []float64{}
				for first := true; s.Field(&first); {
					if string(s.Name()) != "values" {
						s.Skip()
						continue
					}
					for first := true; s.Element(&first); {
						value, _ := s.Float()
						vector = append(vector, value)
					}
				}
				answer.Vectors = append(answer.Vectors, vector)
			}
		case "metadata":
			for first := true; s.Field(&first); {
				if string(s.Name()) != "billableCharacterCount" {
					s.Skip()
				} else if n, ok := s.Int(); ok {
					answer.Characters = &n
				}
			}
		default:
			s.Skip()
		}
	}
	return answer, ok && s.End() == nil
}

// DecodeModels reads a page of GET /v1beta/models: the ids, which are what the resource names end with, and the token of
// the next page, empty on the last one. ok is false for anything else.
func DecodeModels(body []byte) (ids []string, next string, ok bool) {
	var s jsonscan.Scanner
	s.Reset(body)
	listed, empty := false, s.Kind() == '{' // a page without models is an empty object
	for first := true; s.Field(&first); {
		switch string(s.Name()) {
		case "models":
			listed = s.Kind() == '['
			for first := true; s.Element(&first); {
				name := ""
				for first := true; s.Field(&first); {
					if string(s.Name()) == "name" {
						name = s.String()
					} else {
						s.Skip()
					}
				}
				if id := name[strings.LastIndexByte(name, '/')+1:]; id != "" {
					ids = append(ids, id)
				}
			}
		case "nextPageToken":
			next = s.String()
		default:
			empty = false
			s.Skip()
		}
	}
	return ids, next, (listed || empty) && s.End() == nil
}
