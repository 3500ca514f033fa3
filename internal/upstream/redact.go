package upstream

import (
	"bytes"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
)

// shortestSecret is the length from which a header's value is taken for a secret; shorter ones are ordinary words.
const shortestSecret = 6

// ordinaryHeaders hold no secret, and words that error texts use.
var ordinaryHeaders = []string{"Accept", "Content-Type", "User-Agent", "Anthropic-Version", "Anthropic-Beta"}

// Redact takes what the request carried and a provider may repeat (header values, query, userinfo) out of the bytes of a
// failure. It is to be called before anything is cut from them, and cuts itself what is longer than any error's text.
func (r *Response) Redact(text []byte) []byte {
	if r.request == nil { // not made by Client.Do
		return text
	}
	return redact(text[:min(len(text), errorBodyBytes)], r.request)
}

func redact(text []byte, req *http.Request) []byte {
	var secrets []string
	for name, values := range req.Header {
		if !slices.Contains(ordinaryHeaders, name) {
			for _, value := range values {
				secrets = append(secrets, value, value[strings.LastIndexByte(value, ' ')+1:])
			}
		}
	}
	secrets = append(secrets, req.URL.RawQuery)
	for _, values := range req.URL.Query() {
		secrets = append(secrets, values...)
	}
	if user := req.URL.User; user != nil {
		password, _ := user.Password()
		secrets = append(secrets, user.String(), password)
	}
	secrets = slices.DeleteFunc(secrets, func(s string) bool { return len(s) < shortestSecret })
	if len(secrets) == 0 || len(text) == 0 {
		return text
	}
	for i := range secrets {
		secret, _ := unspell([]byte(secrets[i]))
		secrets[i] = string(secret)
	}
	plain, at := unspell(text)
	var safe []byte
	end := 0 // of what has been copied, in text
	for i := 0; i < len(plain); {
		length := 0
		for _, secret := range secrets {
			if bytes.HasPrefix(plain[i:], []byte(secret)) {
				length = max(length, len(secret))
			}
		}
		if length == 0 {
			i++
			continue
		}
		safe = append(append(safe, text[end:at[i]]...), "[…]"...)
		i += length
		end = at[i]
	}
	if end == 0 {
		return text
	}
	return append(safe, text[end:]...)
}

// unspell writes a text with the escapes of JSON and URLs resolved, ASCII only, and tells where in the text each byte of
// that begins; one place more stands for the end.
func unspell(text []byte) (plain []byte, at []int) {
	plain, at = make([]byte, 0, len(text)), make([]int, 0, len(text)+1)
	for i := 0; i < len(text); {
		c, width := text[i], 1
		rest := text[i+1:]
		switch {
		case c == '\\' && len(rest) >= 5 && rest[0]|0x20 == 'u' && rest[1] == '0' && rest[2] == '0':
			if code, err := hex.DecodeString(string(rest[3:5])); err == nil {
				c, width = code[0], 6
			}
		case c == '\\' && len(rest) > 0:
			c, width = rest[0], 2
		case c == '%' && len(rest) >= 2:
			if code, err := hex.DecodeString(string(rest[:2])); err == nil {
				c, width = code[0], 3
			}
		}
		plain, at = append(plain, c), append(at, i)
		i += width
	}
	return plain, append(at, len(text))
}
