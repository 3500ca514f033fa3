package gateway_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
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

// TestResponsesRoutes: what Responses has beside its POST is refused by name, in its own words; where the endpoint is off, its
// switch is named.
func TestResponsesRoutes(t *testing.T) {
	t.Parallel()
	hi := own("m", plays(nil, says("hi"), stops))
	on, off := start(t, everywhere(table()), hi), start(t, table(), hi)
	for _, tt := range []struct {
		method, path, upgrade string
		status                int
		says                  string
	}{
		{"POST", "/v1/responses/compact", "", 400, "/v1/responses/compact"},
		{"GET", "/v1/responses", "websocket", 400, "WebSocket"},
		{"GET", "/v1/responses", "WebSocket, h2c", 400, "WebSocket"},
		{"GET", "/v1/responses", "", 405, "POST"},
		{"GET", "/v1/responses/input_tokens", "", 405, "POST"},
		{"GET", "/v1/responses/resp_1", "", 404, "/v1/responses/resp_1"},
		{"DELETE", "/v1/responses/resp_1", "", 404, "/v1/responses/resp_1"},
		{"GET", "/v1/responses/resp_1/input_items?limit=1", "", 404, "/v1/responses/resp_1/input_items"},
		{"POST", "/v1/responses/resp_1/cancel", "", 404, "/v1/responses/resp_1/cancel"},
		{"GET", "/v1/responses/", "", 404, "/v1/responses/"},
	} {
		for _, s := range []*served{on, off} {
			r := s.request(tt.method, tt.path, "{}")
			if tt.upgrade != "" {
				r.Header.Set("Connection", "Upgrade")
				r.Header.Set("Upgrade", tt.upgrade)
			}
			got := s.send(r)
			e := responsesDialect.failure(t, got)
			status, says := tt.status, tt.says
			if s == off {
				status, says = http.StatusNotFound, "gateway.http.endpoints.responses.enabled"
			}
			if got.status != status || !strings.Contains(e.message, says) {
				t.Errorf("%s %s: %d %+v", tt.method, tt.path, got.status, e)
			}
		}
	}
}

// TestOneCall: a caller of Chat's older form has room for one call of a turn, and the model is asked for one.
func TestOneCall(t *testing.T) {
	t.Parallel()
	var asked atomic.Value
	s := start(t, everywhere(table(chat(t, "m", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked.Store(string(body))
		w.WriteHeader(http.StatusBadRequest)
	}))))
	for form, one := range map[string]bool{`"functions":[{"name":"f"}]`: true, `"tools":[{"type":"function","function":{"name":"f"}}]`: false} {
		s.send(s.request("POST", "/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":"hi"}],`+form+`}`))
		if got, _ := asked.Load().(string); strings.Contains(got, `"parallel_tool_calls":false`) != one {
			t.Errorf("%s: asked %s", form, got)
		}
	}
}

// TestCooled: what is taken out is named, and refused on strict rows; the provider refuses what is left in.
func TestCooled(t *testing.T) {
	t.Parallel()
	rows := simulated(t)
	for _, row := range rows {
		if row.ClientType == "ant-messages" {
			row.ServerModelID, row.Strict = "strict", true
			rows = append(rows, row)
		}
	}
	s := start(t, everywhere(table(rows...)))
	for _, tt := range []struct {
		model, asks, dropped string
		status               int
	}{
		{"ant-messages", `"reasoning_effort":"high","temperature":0.5,"top_p":0.5`, "temperature, top_p", 200},
		{"ant-messages", `"reasoning_effort":"high","temperature":1`, "", 200},
		{"ant-messages", `"temperature":0.5`, "", 200},
		{"strict", `"reasoning_effort":"high","temperature":0.5`, "", 400},
	} {
		got := s.send(s.request("POST", "/v1/chat/completions", `{"model":"`+tt.model+`","messages":[{"role":"user","content":"hi"}],`+tt.asks+`}`))
		if got.status != tt.status || got.header.Get("X-Mmsp-Dropped") != tt.dropped {
			t.Errorf("%s, %s: %d, dropped %q: %s", tt.model, tt.asks, got.status, got.header.Get("X-Mmsp-Dropped"), got.body)
		}
	}
}
