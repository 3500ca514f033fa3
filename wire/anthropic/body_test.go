package anthropic

import (
	"runtime"
	"strings"
	"testing"
)

// TestNestedSources: pictures that stand in sources of pictures are refused without a look at what is in them.
func TestNestedSources(t *testing.T) {
	const n = 160
	body := `{"model":"m","max_tokens":1,"messages":[{"role":"user","content":[` +
		strings.Repeat(`{"type":"image","source":{"type":"content","content":[`, n) + strings.Repeat(`{"type":"text","text":"a"},`, 2000) + `{"type":"text","text":"a"}` + strings.Repeat(`]}}`, n) + `]}]}`
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := ReadBody([]byte(body), false)
	runtime.ReadMemStats(&after)
	if want := `messages[0].content[0].source.type: "content" is no type of source of an image`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	if took := after.TotalAlloc - before.TotalAlloc; took > uint64(10*len(body)) {
		t.Errorf("%d bytes are allocated for a body of %d", took, len(body))
	}
}
