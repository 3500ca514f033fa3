package gateway_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
)

// recorded is a history in a dialect: calls of the function look and the results of some of them, each by its id.
func (d *dialect) recorded(model string, turns ...string) string {
	templates := map[string]struct{ calls, call, results, result, body string }{
		"responses": {
			`%s`, `{"type":"function_call","call_id":%q,"name":"look","arguments":"{}"}`,
			`%s`, `{"type":"function_call_output","call_id":%q,"output":"r"}`, `{"model":%q,"input":[{"role":"user","content":"hi"},%s]}`,
		},
		"chatCompletions": {
			`{"role":"assistant","tool_calls":[%s]}`, `{"id":%q,"type":"function","function":{"name":"look","arguments":"{}"}}`,
			`%s`, `{"role":"tool","tool_call_id":%q,"content":"r"}`, `{"model":%q,"messages":[{"role":"user","content":"hi"},%s]}`,
		},
		"messages": {
			`{"role":"assistant","content":[%s]}`, `{"type":"tool_use","id":%q,"name":"look","input":{}}`,
			`{"role":"user","content":[%s]}`, `{"type":"tool_result","tool_use_id":%q,"content":"r"}`, `{"model":%q,"max_tokens":20,"messages":[{"role":"user","content":"hi"},%s]}`,
		},
		"generateContent": {
			`{"role":"model","parts":[%s]}`, `{"functionCall":{"id":%q,"name":"look"}}`,
			`{"role":"user","parts":[%s]}`, `{"functionResponse":{"id":%q,"name":"look","response":{}}}`, `{"unread":%q,"contents":[{"parts":[{"text":"hi"}]},%s]}`,
		},
	}
	t := templates[d.endpoint]
	var items []string
	for i, ids := range turns {
		all, one := t.calls, t.call
		if i%2 == 1 {
			all, one = t.results, t.result
		}
		var list []string
		for _, id := range strings.Fields(ids) {
			list = append(list, fmt.Sprintf(one, id))
		}
		items = append(items, fmt.Sprintf(all, strings.Join(list, ",")))
	}
	return fmt.Sprintf(t.body, model, strings.Join(items, ","))
}

// TestIDsThatStandTwice: one turn has one call of an id, and a call one result; the same id may come again in a later turn.
func TestIDsThatStandTwice(t *testing.T) {
	t.Parallel()
	s := start(t, everywhere(table()), own("m", plays(nil, says("ok"), stops)))
	for i := range dialects {
		d := &dialects[i]
		for _, tt := range []struct {
			turns []string // calls, their results, calls, …
			place map[string]string
		}{
			{[]string{"a b", "b a", "a", "a"}, nil},
			{[]string{"look look", "look look"}, nil}, // as a client of Google's notes calls without ids
			{[]string{"a b a", "a b"}, map[string]string{"responses": "input[3]", "chatCompletions": "messages[1].tool_calls[2]", "messages": "messages[1].content[2]", "generateContent": "contents[1].parts[2]"}},
			{[]string{"a b", "a b a"}, map[string]string{"responses": "input[5]", "chatCompletions": "messages[4]", "messages": "messages[2].content[2]", "generateContent": "contents[2].parts[2]"}},
			{[]string{"a", "a", "b", "b a"}, map[string]string{"responses": "input[5]", "chatCompletions": "messages[5]", "messages": "messages[4].content[1]", "generateContent": "contents[4].parts[1]"}},
			{[]string{"a b", "b", "a", "a"}, map[string]string{"responses": "input[1]", "chatCompletions": "messages[1].tool_calls[0]", "messages": "messages[1].content[0]", "generateContent": "contents[1].parts[0]"}},
		} {
			place, refused := tt.place[d.endpoint]
			got := s.send(s.request("POST", d.path("m", false), d.recorded("m", tt.turns...)))
			if !refused {
				if got.status != 200 {
					t.Errorf("%s of %q: %d %s", d.endpoint, tt.turns, got.status, got.body)
				}
				continue
			}
			if e := d.failure(t, got); got.status != 400 || e.param != place && !strings.Contains(e.message, place+":") {
				t.Errorf("%s of %q: %d %s\nwant the place %s", d.endpoint, tt.turns, got.status, got.body, place)
			}
		}
	}
}

// TestIDsFitProviders: whatever callers call their calls, a provider gets ids that it takes, each once, and the results of
// them.
func TestIDsFitProviders(t *testing.T) {
	t.Parallel()
	var last atomic.Value
	s := start(t, everywhere(table(simulatedBehind(t, func(provider http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			last.Store(string(body))
			r.Body = io.NopCloser(bytes.NewReader(body))
			provider.ServeHTTP(w, r)
		})
	})...)))
	long := strings.Repeat("x", 65)
	ids := map[string][2]*regexp.Regexp{ // of calls and of results
		"openai-responses": {regexp.MustCompile(`"type":"function_call","call_id":"([A-Za-z0-9_-]{1,64})"`), regexp.MustCompile(`"type":"function_call_output","call_id":"([^"]*)"`)},
		"ant-messages":     {regexp.MustCompile(`"type":"tool_use","id":"([A-Za-z0-9_-]+)"`), regexp.MustCompile(`"type":"tool_result","tool_use_id":"([^"]*)"`)},
	}
	for i := range dialects {
		d := &dialects[i]
		turns := []string{"call_1 " + long + " " + strings.Repeat("x", 1000) + " call_ü", "", "call_1", "call_1"}
		turns[1] = turns[0]
		for model, of := range ids {
			if got := s.send(s.request("POST", d.path(model, false), d.recorded(model, turns...))); got.status != 200 {
				t.Errorf("%s over %s: %d %s", d.endpoint, model, got.status, got.body)
				continue
			}
			calls, results := of[0].FindAllStringSubmatch(last.Load().(string), -1), of[1].FindAllStringSubmatch(last.Load().(string), -1)
			seen := map[string]bool{}
			for i, call := range calls {
				if seen[call[1]] || i >= len(results) || results[i][1] != call[1] {
					t.Errorf("%s over %s: call %d is %q, and the results are %q", d.endpoint, model, i, call[1], results)
				}
				seen[call[1]] = true
			}
			if len(calls) != 5 || len(results) != 5 || calls[0][1] != "call_1" {
				t.Errorf("%s over %s: %q and %q of %s", d.endpoint, model, calls, results, last.Load())
			}
		}
	}
}
