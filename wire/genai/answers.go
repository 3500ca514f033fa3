package genai

import (
	"strings"

	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// Embeddings is the answer to embedContent, which has one vector, or to batchEmbedContents.
type Embeddings struct {
	Vectors      [][]float64 // in the order of what was asked for; empty where the wire has no values
	PromptTokens *int64      // nil: not reported, neither as tokens nor as billable characters
}

// ReadEmbeddings reads the answer to an embedding request. ok is false for anything else.
func ReadEmbeddings(data []byte) (e Embeddings, ok bool) {
	var s jsonscan.Scanner
	var tokens, characters *int64
	embedding := func() {
		vector := []float64{}
		for first := true; s.Field(&first); {
			switch string(s.Name()) {
			case "values":
				for first := true; s.Element(&first); {
					value, _ := s.Float()
					vector = append(vector, value)
				}
			case "statistics":
				for first := true; s.Field(&first); {
					if string(s.Name()) == "tokenCount" {
						add(&tokens, &s)
					} else {
						s.Skip()
					}
				}
			default:
				s.Skip()
			}
		}
		e.Vectors = append(e.Vectors, vector)
	}
	var usage *int64
	s.Reset(data)
	for first := true; s.Field(&first); {
		switch string(s.Name()) {
		case "embedding":
			ok = s.Kind() == '{'
			embedding()
		case "embeddings":
			ok = s.Kind() == '['
			for first := true; s.Element(&first); {
				embedding()
			}
		case "usageMetadata":
			for first := true; s.Field(&first); {
				if string(s.Name()) == "promptTokenCount" {
					add(&usage, &s)
				} else {
					s.Skip()
				}
			}
		case "metadata":
			for first := true; s.Field(&first); {
				if string(s.Name()) == "billableCharacterCount" {
					add(&characters, &s)
				} else {
					s.Skip()
				}
			}
		default:
			s.Skip()
		}
	}
	for _, count := range []*int64{characters, tokens, usage} {
		if count != nil {
			e.PromptTokens = count
		}
	}
	return e, ok && s.End() == nil
}

func add(total **int64, s *jsonscan.Scanner) {
	if n, ok := s.Int(); ok && n >= 0 {
		if *total == nil {
			*total = new(int64)
		}
		**total += n
	}
}

// ReadModels reads a page of a list of models: the last parts of their names, in order, and the token of the next page, ""
// on the last. ok is false for anything else.
func ReadModels(data []byte) (ids []string, next string, ok bool) {
	var s jsonscan.Scanner
	s.Reset(data)
	if s.Kind() != '{' {
		return nil, "", false
	}
	for first := true; s.Field(&first); {
		switch string(s.Name()) {
		case "models", "publisherModels":
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
			s.Skip()
		}
	}
	return ids, next, s.End() == nil
}
