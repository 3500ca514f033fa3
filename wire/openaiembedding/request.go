// Package openaiembedding is the Embeddings protocol on the wire: its requests, and its answers with their decoding. It
// knows nothing of the message format of this module.
package openaiembedding

import (
	"bytes"
	"encoding/json"
)

// Request is the body of POST /embeddings. Each input becomes a vector.
type Request struct {
	Model          string   `json:"model"`
	Dimensions     *int64   `json:"dimensions,omitempty"`
	EncodingFormat string   `json:"encoding_format,omitempty"` // "float" or "base64"
	User           string   `json:"user,omitempty"`
	Input          []string `json:"input"`
}

// Encode returns the body: compact, non-ASCII and markup characters as they are.
func (r *Request) Encode() ([]byte, error) {
	var body bytes.Buffer
	e := json.NewEncoder(&body)
	e.SetEscapeHTML(false)
	if err := e.Encode(r); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(body.Bytes(), []byte("\n")), nil
}
