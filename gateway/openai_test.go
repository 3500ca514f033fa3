package gateway_test

import (
	"strings"
	"testing"

	"github.com/prism-shadow/mmsp-go"
)

// TestToolsThatCannotBeSent: what the client refuses of a tool is told at the tool's place in the caller's body.
func TestToolsThatCannotBeSent(t *testing.T) {
	t.Parallel()
	s := start(t, everywhere(table()), own("m", plays(&mmsp.UnsupportedParameterError{Client: "C", Parameter: "tools[0].parameters", Message: "too deep"})))
	hosted := map[string][3]string{ // what is put before the tool, and where the tool stands then
		"responses":       {`"tools":[`, `"tools":[{"type":"web_search"},`, "tools[1]"},
		"chatCompletions": {`"tools":[`, `"tools":[{"type":"web_search"},`, "tools[1]"},
		"messages":        {`"tools":[`, `"tools":[{"type":"web_search_20250305","name":"web_search"},`, "tools[1]"},
		"generateContent": {`"tools":[`, `"tools":[{"googleSearch":{}},`, "tools[1].functionDeclarations[0]"},
	}
	for i := range dialects {
		d := &dialects[i]
		place := hosted[d.endpoint]
		got := s.send(s.request("POST", d.path("m", false), strings.Replace(d.body("m", "hi", false), place[0], place[1], 1)))
		e := d.failure(t, got)
		if got.status != 400 || !strings.Contains(e.message, "too deep") || d.endpoint != "messages" && e.param != place[2] || d.endpoint == "messages" && !strings.Contains(e.message, place[2]) {
			t.Errorf("%s: %d %+v", d.endpoint, got.status, e)
		}
	}
}
