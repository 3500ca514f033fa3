package jsonscan

import (
	"encoding/base64"
	"strings"
)

// plainBase64 turns what writers of base64 do differently into one: the alphabet, and the ends of lines.
var plainBase64 = strings.NewReplacer("-", "+", "_", "/", "\r", "", "\n", "")

// DecodeBase64 reads base64 as callers write it: of either alphabet, padded or not, in one line or in many.
func DecodeBase64(text string) (data []byte, ok bool) {
	if data, err := base64.StdEncoding.DecodeString(text); err == nil { // as most write it, and what is read fast
		return data, true
	}
	data, err := base64.RawStdEncoding.DecodeString(strings.TrimRight(plainBase64.Replace(text), "="))
	return data, err == nil
}

// Base64 returns the bytes of the next value, as DecodeBase64 reads them; none for null.
func (r *Reader) Base64() []byte {
	data, ok := DecodeBase64(r.String())
	if !ok {
		r.Fail("base64 is wanted")
	}
	return data
}
