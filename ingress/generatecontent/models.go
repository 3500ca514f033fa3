package generatecontent

import (
	"encoding/base64"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/prism-shadow/mmsp-go/ingress"
	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

const (
	defaultPage = 50 // models
	maxPage     = 1000
)

// AppendModels appends a page of the answer to GET /v1beta/models: the query may have a pageSize and the pageToken that the
// page before it gave. The error is an *mmsp.InvalidRequestError.
func AppendModels(dst []byte, ids []string, query url.Values) ([]byte, error) {
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
			at := slices.Index(ids, string(last))
			if err != nil || at < 0 {
				return dst, ingress.Invalid(name, "it is not the token of a page")
			}
			ids = ids[at+1:]
		}
	}
	next := ""
	if len(ids) > size {
		ids = ids[:size]
		next = base64.RawURLEncoding.EncodeToString([]byte(ids[size-1]))
	}
	dst = append(dst, `{"models":[`...)
	for i, id := range ids {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendModel(dst, id)
	}
	dst = append(dst, ']')
	if next != "" {
		dst = jsonscan.AppendString(append(dst, `,"nextPageToken":`...), next)
	}
	return append(dst, '}'), nil
}

// AppendModel appends one model. Which of them make vectors shows in their names alone.
func AppendModel(dst []byte, id string) []byte {
	dst = jsonscan.AppendString(append(dst, `{"name":`...), "models/"+id)
	dst = jsonscan.AppendString(append(dst, `,"displayName":`...), id)
	if strings.Contains(strings.ToLower(id), "embed") {
		return append(dst, `,"supportedGenerationMethods":["embedContent","batchEmbedContents"]}`...)
	}
	return append(dst, `,"supportedGenerationMethods":["generateContent","streamGenerateContent","countTokens"]}`...)
}
