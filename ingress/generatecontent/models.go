package generatecontent

import (
	"encoding/base64"
	"net/url"
	"slices"
	"strconv"

	"github.com/prism-shadow/mmsp-go/ingress"
	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

const (
	defaultPage = 50 // models
	maxPage     = 1000
)

// Model is a model as the protocol lists it.
type Model struct {
	ID          string
	Embeds      bool  // it makes vectors, and nothing else
	InputTokens int64 // that it takes; 0: not known
}

// AppendModels appends a page of the answer to GET /v1beta/models: the query may have a pageSize and the pageToken that the
// page before it gave. The error is an *mmsp.InvalidRequestError.
func AppendModels(dst []byte, models []Model, query url.Values) ([]byte, error) {
	size := defaultPage
	for _, name := range []string{"pageSize", "page_size"} {
		if text := query.Get(name); text != "" {
			n, err := strconv.Atoi(text)
			if err != nil || n < 0 {
				return dst, ingress.Invalid(name, "a number of models is wanted")
			}
			if n > 0 {
				size = min(n, maxPage)
			}
		}
	}
	// A token is the last model of the page before.
	for _, name := range []string{"pageToken", "page_token"} {
		if text := query.Get(name); text != "" {
			last, err := base64.RawURLEncoding.DecodeString(text)
			at := slices.IndexFunc(models, func(m Model) bool { return m.ID == string(last) })
			if err != nil || at < 0 {
				return dst, ingress.Invalid(name, "it is not the token of a page")
			}
			models = models[at+1:]
		}
	}
	next := ""
	if len(models) > size {
		models = models[:size]
		next = base64.RawURLEncoding.EncodeToString([]byte(models[size-1].ID))
	}
	dst = append(dst, `{"models":[`...)
	for i, m := range models {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendModel(dst, m)
	}
	dst = append(dst, ']')
	if next != "" {
		dst = jsonscan.AppendString(append(dst, `,"nextPageToken":`...), next)
	}
	return append(dst, '}'), nil
}

// AppendModel appends one model. The protocol gives each a version and a description, which are empty here.
func AppendModel(dst []byte, m Model) []byte {
	dst = jsonscan.AppendString(append(dst, `{"name":`...), "models/"+m.ID)
	dst = jsonscan.AppendString(append(dst, `,"version":"","displayName":`...), m.ID)
	dst = append(dst, `,"description":""`...)
	if m.InputTokens > 0 {
		dst = strconv.AppendInt(append(dst, `,"inputTokenLimit":`...), m.InputTokens, 10)
	}
	if m.Embeds {
		return append(dst, `,"supportedGenerationMethods":["embedContent","batchEmbedContents"]}`...)
	}
	return append(dst, `,"supportedGenerationMethods":["generateContent","streamGenerateContent","countTokens"]}`...)
}
