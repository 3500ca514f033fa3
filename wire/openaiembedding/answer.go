package openaiembedding

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"strconv"

	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// Answer is what a caller gets.
type Answer struct {
	Vectors      [][]float64
	Base64       bool // little-endian float32 values, else numbers
	Model        string
	PromptTokens int64
}

// Append appends the answer as one object.
func (a *Answer) Append(dst []byte) []byte {
	dst = append(dst, `{"object":"list","data":[`...)
	var packed []byte
	for i, vector := range a.Vectors {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(append(dst, `{"object":"embedding","index":`...), int64(i), 10)
		dst = append(dst, `,"embedding":`...)
		if a.Base64 {
			packed = packed[:0]
			for _, f := range vector {
				packed = binary.LittleEndian.AppendUint32(packed, math.Float32bits(float32(f)))
			}
			dst = base64.StdEncoding.AppendEncode(append(dst, '"'), packed)
			dst = append(dst, '"')
		} else {
			dst = append(dst, '[')
			for n, f := range vector {
				if n > 0 {
					dst = append(dst, ',')
				}
				dst = appendNumber(dst, f)
			}
			dst = append(dst, ']')
		}
		dst = append(dst, '}')
	}
	dst = jsonscan.AppendString(append(dst, `],"model":`...), a.Model)
	dst = strconv.AppendInt(append(dst, `,"usage":{"prompt_tokens":`...), a.PromptTokens, 10)
	dst = strconv.AppendInt(append(dst, `,"total_tokens":`...), a.PromptTokens, 10)
	return append(dst, "}}"...)
}

// appendNumber appends the shortest number that reads as f; JSON has none for what is not finite.
func appendNumber(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, "null"...)
	}
	return strconv.AppendFloat(dst, f, 'g', -1, 64)
}

// AppendError appends the object of an error. All four are strings, which some clients insist on.
func AppendError(dst []byte, message, kind, param, code string) []byte {
	dst = jsonscan.AppendString(append(dst, `{"error":{"message":`...), message)
	dst = jsonscan.AppendString(append(dst, `,"type":`...), kind)
	dst = jsonscan.AppendString(append(dst, `,"param":`...), param)
	dst = jsonscan.AppendString(append(dst, `,"code":`...), code)
	return append(dst, "}}"...)
}
