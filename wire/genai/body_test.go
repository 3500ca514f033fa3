package genai

import (
	"runtime"
	"strings"
	"testing"
)

// TestLargeBodies: what a body makes is no more than some times its own length.
func TestLargeBodies(t *testing.T) {
	nested := func(n int) string {
		return strings.Repeat(`{"functionResponse":{"name":"f","parts":[`, n) + strings.Repeat(`{},`, 10_000) + `{}` + strings.Repeat(`]}}`, n)
	}
	for _, row := range []struct{ name, body, fails string }{
		{"answers in answers", `{"contents":[{"role":"user","parts":[` + nested(160) + `]}]}`, "contents[0].parts[0].functionResponse.parts[0]: inlineData or fileData is wanted, not functionResponse"},
		{"modalities", `{"contents":[{"parts":[{"text":"a"}]}],"generationConfig":{"responseModalities":[` + strings.Repeat(`"IMAGE",`, 10_000) + `"AUDIO"]}}`, ""},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		body, err := ReadBody([]byte(row.body))
		runtime.ReadMemStats(&after)
		if err != nil != (row.fails != "") || err != nil && err.Error() != row.fails {
			t.Errorf("%s: %v", row.name, err)
		}
		if pictures := len(body.Generation.AsksPictures); pictures > 1 {
			t.Errorf("%s: pictures are asked for %d times", row.name, pictures)
		}
		if took := after.TotalAlloc - before.TotalAlloc; took > uint64(100*len(row.body)) {
			t.Errorf("%s: %d bytes are allocated for a body of %d", row.name, took, len(row.body))
		}
	}
}
