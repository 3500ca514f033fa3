package anthropic

import "testing"

func TestDecodeChunk(t *testing.T) {
	table := []struct{ name, payload, want string }{
		{"padded", `{"bytes":"eyJhIjoxfQ==","p":"abcdef"}`, `{"a":1}`},
		{"keys in another order, an escape", `{"p":{"x":[]},"bytes":"w6k\/"}`, "é?"},
		{"nothing", `{"bytes":""}`, ""},
		{"no bytes", `{"p":"a"}`, ""},
		{"bytes of another kind", `{"bytes":[1]}`, ""},
		{"no base64", `{"bytes":"%"}`, "error"},
		{"no JSON", `{"bytes":"eyJ`, "error"},
		{"text after it", `{"bytes":""} x`, "error"},
	}
	var decoder ChunkDecoder
	for _, row := range table {
		t.Run(row.name, func(t *testing.T) {
			event, err := decoder.Decode([]byte(row.payload))
			if (err != nil) != (row.want == "error") || err == nil && string(event) != row.want {
				t.Errorf("%q, error %v", event, err)
			}
		})
	}
}
