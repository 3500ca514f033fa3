package openaichat_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prism-shadow/mmsp-go"
)

// show writes an event in a few characters: "text+a" is a delta, "text=ab" the whole item.
func show(e *mmsp.Event) string {
	if e.Type == mmsp.EventStop {
		line := "stop " + string(e.FinishReason)
		for _, n := range []*int64{e.Usage.CachedTokens, e.Usage.PromptTokens, e.Usage.ThoughtsTokens, e.Usage.ResponseTokens} {
			if n == nil {
				line += " -"
			} else {
				line += fmt.Sprint(" ", *n)
			}
		}
		if e.StopDetail != nil {
			line += " " + e.StopDetail.Kind
		}
		return line
	}
	i, phase := &e.Item, "="
	if i.Type.IsDelta() {
		phase = "+"
	}
	line := i.Type.Kind() + phase + i.Text + i.Thinking + i.Arguments
	if i.ToolCallID != "" {
		line += " " + i.Name + "/" + i.ToolCallID
	}
	if len(i.Fidelity) > 0 {
		line += " " + string(i.Fidelity)
	}
	return line
}

// read shows the events of a stream, each checked against the grammar, and returns the error the stream ended with.
func read(t *testing.T, stream iter.Seq2[mmsp.Event, error]) (lines []string, err error) {
	t.Helper()
	var grammar mmsp.GrammarChecker
	for event, failure := range stream {
		if err != nil {
			t.Errorf("after the error %v came %v, %v", err, event, failure)
		}
		if err = failure; err != nil {
			continue
		}
		if broken := grammar.Event(&event); broken != nil {
			t.Errorf("%v (%s)", broken, show(&event))
		}
		lines = append(lines, show(&event))
	}
	if err == nil {
		if broken := grammar.End(); broken != nil {
			t.Error(broken)
		}
	}
	return lines, err
}

// serve answers every request with a body.
func serve(t *testing.T, status int, header http.Header, body string) *mmsp.Client {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for name, values := range header {
			w.Header()[name] = values
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}))
	t.Cleanup(server.Close)
	return mmsp.NewClient(build(t, mmsp.Options{BaseURL: server.URL + "/v1", HTTP: mmsp.HTTPOptions{MaxRetries: new(0)}, HTTPClient: server.Client()}))
}

var ask = []mmsp.Message{mmsp.UserMessage(mmsp.Text("hi"))}

// sse frames chunks, one to a line, as events.
func sse(chunks string) string {
	var body strings.Builder
	for chunk := range strings.Lines(chunks) {
		if chunk = strings.TrimSpace(chunk); chunk != "" {
			body.WriteString("data: " + chunk + "\n\n")
		}
	}
	return body.String()
}

// d is a chunk with a delta, fin one with a finish reason.
func d(delta string) string {
	return `{"choices":[{"index":0,"delta":` + delta + `,"finish_reason":null}]}` + "\n"
}

func fin(reason string) string {
	return `{"choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}` + "\n"
}

func calls(fragments string) string { return d(`{"tool_calls":[` + fragments + `]}`) }

// frag is a fragment of a call as the wire has it.
func frag(index, id, name, arguments string) string {
	text, _ := json.Marshal(arguments)
	fragment := `{"function":{"name":"` + name + `","arguments":` + string(text) + `},"id":"` + id + `"`
	if index != "" {
		fragment += `,"index":` + index
	}
	return fragment + "}"
}

const (
	usage = `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":2},"completion_tokens_details":{"reasoning_tokens":1}}}` + "\n"
	done  = "[DONE]\n"
	rc    = ` {"reasoning_field":"reasoning_content"}`
	rf    = ` {"reasoning_field":"reasoning"}`
)

// details is the fidelity of a reasoning detail, whoever issued it.
func details(detail string) string {
	return ` {"reasoning_details":[{` + detail + `}],"issuer":"…"}`
}

var issuer = regexp.MustCompile(`"issuer":"[^"]*"`)

func TestStream(t *testing.T) {
	fogCall := `tool_call+{"q": f/c9; tool_call+"fog"}; tool_call={"q":"fog"} f/c9; `
	tests := []struct{ name, chunks, want string }{
		{"text", d(`{"role":"assistant","content":""}`) + d(`{"content":"Go"}`) + d(`{"content":"od"}`) + fin("stop") + usage + done, `text+Go; text+od; text=Good; stop stop 2 7 1 4`},
		{
			"reasoning_content", d(`{"reasoning_content":"Count"}`) + d(`{"reasoning_content":" the buoys."}`) + d(`{"content":"Seven."}`) + fin("stop") + usage + done,
			`thinking+Count` + rc + `; thinking+ the buoys.; thinking=Count the buoys.` + rc + `; text+Seven.; text=Seven.; stop stop 2 7 1 4`,
		},
		{
			"reasoning", d(`{"reasoning":"Count"}`) + d(`{"reasoning":"!","content":"Seven."}`) + fin("stop") + usage + done,
			`thinking+Count` + rf + `; thinking+!; thinking=Count!` + rf + `; text+Seven.; text=Seven.; stop stop 2 7 1 4`,
		},
		{"both reasoning fields", d(`{"reasoning":"x","reasoning_content":"Count"}`) + d(`{"content":"7"}`) + fin("stop") + usage, `thinking+Count; thinking=Count; text+7; text=7; stop stop 2 7 1 4`},
		{
			"everything in one chunk", `{"choices":[{"finish_reason":"tool_calls","delta":{"tool_calls":[` + frag("0", "k", "f", "{}") + `],"content":"b","reasoning":"a"}}],"usage":{"prompt_tokens":1,"completion_tokens":1}}` + "\n" + done,
			`thinking+a` + rf + `; thinking=a` + rf + `; text+b; text=b; tool_call+{} f/k; tool_call={} f/k; stop tool_call - 1 - 1`,
		},
		{"call in fragments, later ones with empty id and name", calls(frag("0", "c9", "f", `{"q":`)) + calls(frag("0", "", "", `"fog"}`)) +
			`{"choices":[{"delta":{},"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":2,"completion_tokens":3,"completion_tokens_details":{"reasoning_tokens":1}}}` + "\n" + done, fogCall + `stop tool_call - 2 1 2`},
		{"null id and name", calls(frag("0", "c9", "f", `{"q":`)) + calls(`{"index":0,"id":null,"type":null,"function":{"name":null,"arguments":"\"fog\"}"}}`) + fin("tool_calls") + usage, fogCall + `stop tool_call 2 7 1 4`},
		{"id and name repeated", calls(frag("0", "c9", "f", `{"q":`)) + calls(frag("0", "c9", "f", `"fog"}`)) + fin("tool_calls") + usage, fogCall + `stop tool_call 2 7 1 4`},
		{"name repeated without the id", calls(frag("0", "c9", "f", `{"q":`)) + calls(frag("0", "", "f", `"fog"}`)) + fin("tool_calls") + usage, fogCall + `stop tool_call 2 7 1 4`},
		{"name repeated without id and index", calls(frag("", "c9", "f", `{"q":`)) + calls(frag("", "", "f", `"fog"}`)) + fin("tool_calls") + usage, fogCall + `stop tool_call 2 7 1 4`},
		{
			"header, then arguments", calls(frag("0", "c9", "f", "")) + calls(frag("0", "", "", `{"q":`)) + calls(frag("0", "", "", `"fog"}`)) + fin("tool_calls") + usage,
			`tool_call+ f/c9; tool_call+{"q":; tool_call+"fog"}; tool_call={"q":"fog"} f/c9; stop tool_call 2 7 1 4`,
		},
		{"no arguments", calls(`{"index":0,"id":"c9","function":{"name":"f"}}`) + fin("tool_calls") + usage, `tool_call+ f/c9; tool_call={} f/c9; stop tool_call 2 7 1 4`},
		{
			"arguments as an object", calls(`{"index":0,"id":"c9","function":{"name":"f","arguments":{"n":18446744073709551615}}}`) + fin("tool_calls") + usage,
			`tool_call+{"n":18446744073709551615} f/c9; tool_call={"n":18446744073709551615} f/c9; stop tool_call 2 7 1 4`,
		},
		{
			"two calls one after the other", calls(frag("0", "a", "f", `{"x"`)) + calls(frag("0", "", "", `:1}`)) + calls(frag("1", "b", "g", `{}`)) + fin("tool_calls") + usage,
			`tool_call+{"x" f/a; tool_call+:1}; tool_call={"x":1} f/a; tool_call+{} g/b; tool_call={} g/b; stop tool_call 2 7 1 4`,
		},
		{
			"two calls in one chunk", calls(frag("0", "a", "f", "{}")+`,`+frag("1", "b", "f", "{}")) + fin("tool_calls") + usage,
			`tool_call+{} f/a; tool_call={} f/a; tool_call+{} f/b; tool_call={} f/b; stop tool_call 2 7 1 4`,
		},
		{
			"two calls interleaved", calls(frag("0", "a", "f", "")+`,`+frag("1", "b", "g", "")) + calls(frag("1", "", "", `{"y"`)) + calls(frag("0", "", "", `{"x"`)) + calls(frag("1", "", "", `:2}`)) + calls(frag("0", "", "", `:1}`)) + fin("tool_calls") + usage,
			`tool_call+ f/a; tool_call+{"x"; tool_call+:1}; tool_call={"x":1} f/a; tool_call+{"y":2} g/b; tool_call={"y":2} g/b; stop tool_call 2 7 1 4`,
		},
		{
			"one index, several ids", calls(frag("0", "a", "f", "{}")) + calls(frag("0", "b", "f", `{"x"`)) + calls(frag("0", "", "", `:1}`)) + fin("tool_calls") + usage,
			`tool_call+{} f/a; tool_call={} f/a; tool_call+{"x" f/b; tool_call+:1}; tool_call={"x":1} f/b; stop tool_call 2 7 1 4`,
		},
		{
			"no index", calls(frag("", "a", "f", "{}")+`,`+frag("", "b", "g", `{"x"`)) + calls(frag("", "b", "", `:1}`)) + fin("tool_calls") + usage,
			`tool_call+{} f/a; tool_call={} f/a; tool_call+{"x" g/b; tool_call+:1}; tool_call={"x":1} g/b; stop tool_call 2 7 1 4`,
		},
		{
			"no ids: the name stands for it", calls(frag("0", "", "f", `{"x"`)) + calls(frag("0", "", "", `:1}`)) + calls(frag("1", "", "g", "{}")) + fin("tool_calls") + usage,
			`tool_call+{"x" f/f; tool_call+:1}; tool_call={"x":1} f/f; tool_call+{} g/g; tool_call={} g/g; stop tool_call 2 7 1 4`,
		},
		{
			"no index, no ids", calls(frag("", "", "f", "{}")+`,`+frag("", "", "g", "{}")) + fin("tool_calls") + usage,
			`tool_call+{} f/f; tool_call={} f/f; tool_call+{} g/g; tool_call={} g/g; stop tool_call 2 7 1 4`,
		},
		{"calls with finish stop", calls(frag("0", "c9", "f", "{}")) + fin("stop") + usage, `tool_call+{} f/c9; tool_call={} f/c9; stop tool_call 2 7 1 4`},
		{"calls with finish length", calls(frag("0", "c9", "f", "{}")) + fin("length") + usage, `tool_call+{} f/c9; tool_call={} f/c9; stop length 2 7 1 4`},
		{"older word for calls", calls(frag("0", "c9", "f", "{}")) + fin("function_call") + usage, `tool_call+{} f/c9; tool_call={} f/c9; stop tool_call 2 7 1 4`},

		{"length", d(`{"content":"a"}`) + fin("length") + usage, `text+a; text=a; stop length 2 7 1 4`},
		{"content filter", d(`{"content":"a"}`) + fin("content_filter") + usage, `text+a; text=a; stop unknown 2 7 1 4 filter`},
		{"length in Anthropic's word", d(`{"content":"a"}`) + fin("max_tokens") + usage, `text+a; text=a; stop length 2 7 1 4`},
		{"the context is full", d(`{"content":"a"}`) + fin("model_length") + usage, `text+a; text=a; stop unknown 2 7 1 4 context`},
		{"another reason", d(`{"content":"a"}`) + fin("eos") + usage, `text+a; text=a; stop unknown 2 7 1 4`},
		{"refusal", d(`{"refusal":"I "}`) + d(`{"refusal":"cannot."}`) + fin("stop") + usage, `text+I  {"refusal":true}; text+cannot.; text=I cannot. {"refusal":true}; stop unknown 2 7 1 4 refusal`},
		{"empty finish reasons", `{"choices":[{"delta":{"content":"a"},"finish_reason":""}]}` + "\n" + fin("") + fin("stop") + usage, `text+a; text=a; stop stop 2 7 1 4`},
		{"null delta, null choices, no choices", `{"choices":[{"delta":null,"finish_reason":null}]}` + "\n" + `{"choices":null}` + "\n" + `{"choices":[null]}` + "\n{}\nnull\n" + d(`{"content":"a"}`) + fin("stop") + usage, `text+a; text=a; stop stop 2 7 1 4`},
		{"foreign frames", `{"type":"keepalive"}` + "\n" + d(`{"content":null,"audio":{"id":"x"}}`) + `{"error":null,"choices":[{"delta":{"content":"a"}}]}` + "\n" + fin("stop") + usage, `text+a; text=a; stop stop 2 7 1 4`},
		{"the first choice only", `{"choices":[{"delta":{"content":"a"}},{"delta":{"content":"b"},"finish_reason":"length"}]}` + "\n" + fin("stop") + usage, `text+a; text=a; stop stop 2 7 1 4`},
		{
			"choices of other indices", `{"choices":[{"index":1,"delta":{"content":"b"}}]}` + "\n" + d(`{"content":"a"}`) + `{"choices":[{"index":1,"delta":{},"finish_reason":"length"}]}` + "\n" + d(`{"content":"c"}`) + fin("stop") + usage,
			`text+a; text+c; text=ac; stop stop 2 7 1 4`,
		},

		{
			"details that repeat the string", d(`{"reasoning":"Hm","reasoning_details":[{"type":"reasoning.text","text":"Hm","format":"unknown","index":0}]}`) + d(`{"content":"a"}`) + fin("stop") + usage,
			`thinking+Hm` + rf + `; thinking=Hm` + rf + `; text+a; text=a; stop stop 2 7 1 4`,
		},
		{
			"details without a string", d(`{"content":"","reasoning_details":[{"type":"reasoning.text","text":"H","id":"r","index":0}]}`) + d(`{"reasoning_details":[{"type":"reasoning.text","text":"m","id":"r","index":0}]}`) + d(`{"content":"a"}`) + fin("stop") + usage,
			`thinking+H` + details(`"type":"reasoning.text","id":"r","index":0`) + `; thinking+m; thinking=Hm` + details(`"type":"reasoning.text","id":"r","index":0`) + `; text+a; text=a; stop stop 2 7 1 4`,
		},
		{
			"details of several blocks", d(`{"reasoning_details":[{"type":"reasoning.text","text":"a","signature":"S","index":0},{"type":"reasoning.summary","summary":"b","index":1}]}`) + d(`{"content":"c"}`) + fin("stop") + usage,
			`thinking+a` + details(`"type":"reasoning.text","index":0,"signature":"S"`) + `; thinking=a` + details(`"type":"reasoning.text","index":0,"signature":"S"`) +
				`; thinking+b` + details(`"type":"reasoning.summary","index":1`) + `; thinking=b` + details(`"type":"reasoning.summary","index":1`) + `; text+c; text=c; stop stop 2 7 1 4`,
		},
		{
			"a signature after its text", d(`{"reasoning":"Hm","reasoning_details":[{"type":"reasoning.text","text":"Hm","index":0}]}`) + d(`{"reasoning":null,"reasoning_details":[{"type":"reasoning.text","text":"","signature":"S<","index":0}]}`) + d(`{"content":"a"}`) + fin("stop") + usage,
			`thinking+Hm` + rf + `; thinking=Hm` + rf + `; thinking+` + details(`"type":"reasoning.text","index":0,"signature":"S\u003c"`) + `; thinking=` + details(`"type":"reasoning.text","index":0,"signature":"S\u003c"`) + `; text+a; text=a; stop stop 2 7 1 4`,
		},
		{
			"a proof said twice, and another", d(`{"reasoning_details":[{"data":"D"}]}`) + d(`{"reasoning_details":[{"data":"D"},{"data":"E"}]}`) + d(`{"content":"a"}`) + fin("stop") + usage,
			`thinking+` + details(`"data":"D"`) + `; thinking=` + details(`"data":"D"`) + `; thinking+` + details(`"data":"E"`) + `; thinking=` + details(`"data":"E"`) + `; text+a; text=a; stop stop 2 7 1 4`,
		},
		{
			"a proof in the midst of a call", calls(frag("0", "k", "f", `{"q":`)) + d(`{"reasoning_details":[{"data":"D"}]}`) + calls(frag("0", "", "", `1}`)) + fin("tool_calls") + usage,
			`tool_call+{"q": f/k; tool_call+1}; tool_call={"q":1} f/k; thinking+` + details(`"data":"D"`) + `; thinking=` + details(`"data":"D"`) + `; stop tool_call 2 7 1 4`,
		},
		{
			"details of thinking after a call", calls(frag("0", "k", "f", `{}`)) + d(`{"reasoning_details":[{"type":"reasoning.text","text":"Hm"}]}`) + d(`{"content":"a"}`) + fin("stop") + usage,
			`tool_call+{} f/k; tool_call={} f/k; thinking+Hm` + details(`"type":"reasoning.text"`) + `; thinking=Hm` + details(`"type":"reasoning.text"`) + `; text+a; text=a; stop tool_call 2 7 1 4`,
		},
		{
			"a proof with the last fragment of a call, without usage", calls(frag("0", "k", "f", `{"q":`)) + `{"choices":[{"delta":{"reasoning_details":[{"data":"D"}],"tool_calls":[` + frag("0", "", "", `1}`) + `]},"finish_reason":"tool_calls"}]}` + "\n" + done,
			`tool_call+{"q": f/k; tool_call+1}; tool_call={"q":1} f/k; thinking+` + details(`"data":"D"`) + `; thinking=` + details(`"data":"D"`) + `; stop tool_call - - - -`,
		},
		{
			"content as a list of text and thinking", d(`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm"},{"type":"text","text":"."}]}]}`) + d(`{"content":[{"type":"thinking","thinking":"!"},{"type":"text","text":"Yes"},{"type":"reference","reference_ids":[1]}]}`) + d(`{"content":"."}`) + fin("stop") + usage,
			`thinking+Hm.; thinking+!; thinking=Hm.!; text+Yes; text+.; text=Yes.; stop stop 2 7 1 4`,
		},

		{"usage on the finish chunk", d(`{"content":"a"}`) + `{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}` + "\n" + done, `text+a; text=a; stop stop - 1 - 2`},
		{"usage on the finish chunk and after it", d(`{"content":"a"}`) + `{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}` + "\n" + usage + done, `text+a; text=a; stop stop 2 7 1 4`},
		{"usage with every chunk", `{"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":9,"completion_tokens":1}}` + "\n" + fin("stop") + `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2}}` + "\n" + done, `text+a; text=a; stop stop - 9 - 2`},
		{"usage in x_groq", d(`{"content":"a"}`) + `{"choices":[{"delta":{},"finish_reason":"stop"}],"x_groq":{"id":"r","usage":{"prompt_tokens":1,"completion_tokens":2}}}` + "\n" + done, `text+a; text=a; stop stop - 1 - 2`},
		{"no usage, [DONE]", d(`{"content":"a"}`) + fin("stop") + done, `text+a; text=a; stop stop - - - -`},
		{"no usage, no [DONE]", d(`{"content":"a"}`) + fin("stop"), `text+a; text=a; stop stop - - - -`},
		{"null usage", `{"choices":[{"delta":{"content":"a"}}],"usage":null}` + "\n" + fin("stop") + `{"choices":[],"usage":{"prompt_tokens":null,"prompt_tokens_details":null,"completion_tokens_details":{"reasoning_tokens":null}}}` + "\n", `text+a; text=a; stop stop - - - -`},
		{"zeros are counts", d(`{"content":"a"}`) + fin("stop") + `{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":0,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":0}}}` + "\n", `text+a; text=a; stop stop 0 3 0 0`},
		{"reasoning left out of the sum", d(`{"content":"a"}`) + fin("stop") + `{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"completion_tokens_details":{"reasoning_tokens":9}}}` + "\n", `text+a; text=a; stop stop - 3 9 4`},
		{"cached tokens left out of the sum", d(`{"content":"a"}`) + fin("stop") + `{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"prompt_tokens_details":{"cached_tokens":8}}}` + "\n", `text+a; text=a; stop stop 8 3 - 4`},
		{"negative and fractional counts", d(`{"content":"a"}`) + fin("stop") + `{"choices":[],"usage":{"prompt_tokens":-3,"completion_tokens":4.0}}` + "\n", `text+a; text=a; stop stop - - - 4`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := read(t, serve(t, 200, nil, sse(tt.chunks)).StreamingResponse(t.Context(), ask, nil))
			if lines := issuer.ReplaceAllString(strings.Join(got, "; "), `"issuer":"…"`); lines != tt.want || err != nil {
				t.Errorf("got  %s (%v)\nwant %s", lines, err, tt.want)
			}
		})
	}
}

// TestFraming: what the wire may look like around the same chunks.
func TestFraming(t *testing.T) {
	const a, b = `{"choices":[{"delta":{"content":"a"}}]}`, `{"choices":[{"delta":{},"finish_reason":"stop"}]}`
	for name, body := range map[string]string{
		"comments":              ": ping\n\ndata: " + a + "\n\n: OPENROUTER PROCESSING\n\ndata: " + b + "\n\n",
		"CRLF, names, ids":      "event: message\r\nid: 1\r\ndata: " + a + "\r\n\r\ndata: " + b + "\r\n\r\ndata: [DONE]\r\n\r\n",
		"no space, no last end": "data:" + a + "\n\ndata:" + b,
		"empty data":            "data:\n\ndata: " + a + "\n\ndata: \n\ndata: " + b + "\n\n",
		"spaces after [DONE]":   "data: " + a + "\n\ndata: " + b + "\n\ndata: [DONE] \n\n",
		"chunks in lines":       "data: {\"choices\":\ndata: [{\"delta\":{\"content\":\"a\"}}]}\n\ndata: " + b + "\n\n",
		"cut after the finish":  "data: " + a + "\n\ndata: " + b + "\n\ndata: {\"choices\":[],\"us",
	} {
		t.Run(name, func(t *testing.T) {
			got, err := read(t, serve(t, 200, nil, body).StreamingResponse(t.Context(), ask, nil))
			if lines := strings.Join(got, "; "); lines != "text+a; text=a; stop stop - - - -" || err != nil {
				t.Errorf("%s (%v)", lines, err)
			}
		})
	}
}

// TestWholeAnswer: a body of one JSON object is read as the answer that it is.
func TestWholeAnswer(t *testing.T) {
	answer := func(message, finish string) string {
		return ` {"object":"chat.completion","choices":[{"index":0,"message":` + message + `,"finish_reason":"` + finish + `"}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`
	}
	for _, tt := range []struct{ name, body, want string }{
		{"text", answer(`{"role":"assistant","content":"yes","refusal":null}`, "stop"), `text+yes; text=yes; stop stop - 1 - 2`},
		{"thinking", answer(`{"reasoning":"hm","content":"yes"}`, "stop"), `thinking+hm` + rf + `; thinking=hm` + rf + `; text+yes; text=yes; stop stop - 1 - 2`},
		{"calls", answer(`{"content":null,"tool_calls":[`+frag("", "a", "f", "{}")+`,`+frag("", "a", "f", `{"x":1}`)+`]}`, "stop"), `tool_call+{} f/a; tool_call={} f/a; tool_call+{"x":1} f/a; tool_call={"x":1} f/a; stop tool_call - 1 - 2`},
		{"refusal", answer(`{"content":null,"refusal":"No."}`, "stop"), `text+No. {"refusal":true}; text=No. {"refusal":true}; stop unknown - 1 - 2 refusal`},
		{"longer than a buffer", answer(`{"content":"`+strings.Repeat("y", 1<<20)+`"}`, "stop"), `text+` + strings.Repeat("y", 1<<20) + `; text=` + strings.Repeat("y", 1<<20) + `; stop stop - 1 - 2`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := read(t, serve(t, 200, http.Header{"Content-Type": {"application/json"}}, tt.body).StreamingResponse(t.Context(), ask, nil))
			if lines := strings.Join(got, "; "); lines != tt.want || err != nil {
				t.Errorf("got  %.300s (%v)\nwant %.300s", lines, err, tt.want)
			}
		})
	}
}

func TestStreamErrors(t *testing.T) {
	up := func(e mmsp.UpstreamError) *mmsp.UpstreamError { e.Client = "OpenaiChatClient"; return &e }
	cut := &mmsp.IncompleteStreamError{Client: "OpenaiChatClient", Reason: "no finish reason arrived"}
	text := sse(d(`{"content":"a"}`))
	for _, tt := range []struct {
		name   string
		status int
		header http.Header
		body   string
		events string
		want   error
	}{
		{
			"error chunk", 200, nil, text + sse(`{"error":{"message":"overloaded","type":"server_error","code":503,"param":"p"}}`), "text+a",
			up(mmsp.UpstreamError{Message: "overloaded", ErrorType: "server_error", Code: "503", Param: "p", Status: 503, Object: []byte(`{"error":{"message":"overloaded","type":"server_error","code":503,"param":"p"}}`)}),
		},
		{
			"error chunk beside a choice", 200, nil, sse(`{"choices":[{"delta":{"content":""},"finish_reason":"error"}],"error":{"code":"x","message":"m"}}`), "",
			up(mmsp.UpstreamError{Message: "m", Code: "x", Object: []byte(`{"choices":[{"delta":{"content":""},"finish_reason":"error"}],"error":{"code":"x","message":"m"}}`)}),
		},
		{
			"error of the choice", 200, nil, text + sse(`{"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"error","error":{"code":502,"message":"gone"}}]}`), "text+a",
			up(mmsp.UpstreamError{Message: "gone", Code: "502", Status: 502, Object: []byte(`{"code":502,"message":"gone"}`)}),
		},
		{
			"error of the choice of a whole answer", 200, nil, `{"choices":[{"message":{"content":""},"finish_reason":"error","error":{"code":502,"message":"gone"}}]}`, "",
			up(mmsp.UpstreamError{Message: "gone", Code: "502", Status: 502, Object: []byte(`{"code":502,"message":"gone"}`)}),
		},
		{"error as a string", 200, nil, text + sse(`{"error":"boom"}`), "text+a", up(mmsp.UpstreamError{Message: "boom", Object: []byte(`{"error":"boom"}`)})},
		{"error event", 200, nil, text + "event: error\ndata: {\"message\":\"boom\",\"code\":\"c\"}\n\n", "text+a", up(mmsp.UpstreamError{Message: "boom", Code: "c", Object: []byte(`{"message":"boom","code":"c"}`)})},
		{"error event of plain text", 200, nil, text + "event: error\ndata: boom\n\n", "text+a", up(mmsp.UpstreamError{Message: "boom"})},
		{"error event cut in its data", 200, nil, text + "event: error\ndata: {\"message\":\"bo", "text+a", cut},
		{"error event cut before its data", 200, nil, text + "event: error\ndata: ", "text+a", cut},
		{"error after the finish", 200, nil, text + sse(fin("stop")+`{"error":{"message":"late"}}`), "text+a", up(mmsp.UpstreamError{Message: "late", Object: []byte(`{"error":{"message":"late"}}`)})},
		{
			"HTML", 200,
			http.Header{"Content-Type": {"text/html"}},
			"\n<!DOCTYPE html><title>Sign in</title>", "",
			up(mmsp.UpstreamError{ErrorType: "unexpected_body", Message: `the provider answered with something else than a stream: "Sign in"`}),
		},
		{
			"JSON error with status 200", 200, nil, `{"error":{"message":"no credit","type":"billing","code":402}}`, "",
			up(mmsp.UpstreamError{Message: "no credit", ErrorType: "billing", Code: "402", Status: 402, Object: []byte(`{"error":{"message":"no credit","type":"billing","code":402}}`)}),
		},
		{"list of errors with status 200", 200, nil, `[{"error":{"message":"m","status":"INTERNAL"}}]`, "", up(mmsp.UpstreamError{Message: "m", ErrorType: "INTERNAL", Object: []byte(`{"error":{"message":"m","status":"INTERNAL"}}`)})},
		{"JSON of another kind", 200, nil, `{"ok":true}`, "", up(mmsp.UpstreamError{ErrorType: "unexpected_body", Message: `the provider answered with something else than a stream: "{\"ok\":true}"`, Object: []byte(`{"ok":true}`)})},
		{"broken JSON", 200, nil, `{"choices":[`, "", up(mmsp.UpstreamError{ErrorType: "unexpected_body", Message: `the provider answered with something else than a stream: "{\"choices\":["`})},
		{
			"status with every field", 429,
			http.Header{"Retry-After": {"7"}, "X-Request-Id": {"req-1"}},
			`{"error":{"message":"slow down","type":"rate_limit","code":"rate_limit_exceeded","param":"model"}}`, "",
			up(mmsp.UpstreamError{Status: 429, Message: "slow down", ErrorType: "rate_limit", Code: "rate_limit_exceeded", Param: "model", RequestID: "req-1", RetryAfter: 7 * time.Second, Object: []byte(`{"error":{"message":"slow down","type":"rate_limit","code":"rate_limit_exceeded","param":"model"}}`)}),
		},
		{"status wins over the body's number", 400, nil, `{"error":{"message":"m","code":429}}`, "", up(mmsp.UpstreamError{Status: 400, Message: "m", Code: "429", Object: []byte(`{"error":{"message":"m","code":429}}`)})},
		{"status without a body", 502, nil, ``, "", up(mmsp.UpstreamError{Status: 502, Message: "HTTP 502: Bad Gateway"})},
		{"redirect", 307, http.Header{"Location": {"https://elsewhere.test/"}}, ``, "", up(mmsp.UpstreamError{Status: 307, Message: "HTTP 307: Temporary Redirect"})},
		{
			"malformed event", 200, nil, text + "data: {\"choices\":[}" + strings.Repeat("x", 500) + "\n\n" + sse(fin("stop")), "text+a",
			up(mmsp.UpstreamError{ErrorType: "malformed_event", Message: `event 2 from the provider is not readable as JSON (not a value at byte 12): "{\"choices\":[}` + strings.Repeat("x", 200-13) + `"…`}),
		},
		{"no body", 200, nil, ``, "", cut},
		{"comments only", 200, nil, ": a\n\n: b\n\n", "", cut},
		{"cut", 200, nil, text, "text+a", cut},
		{"a chunk alone, without framing", 200, nil, `{"choices":[{"delta":{"content":"a"}}]}`, "text+a", cut},
		{"[DONE] without a finish", 200, nil, text + sse(done), "text+a", cut},
		{"cut in the middle of an event", 200, nil, text + `data: {"choices":[{"delta":{"content":"b`, "text+a", cut},
		{
			"thinking only", 200, nil, sse(d(`{"reasoning":"a"}`) + fin("stop") + usage), "thinking+a" + rf + "; thinking=a" + rf,
			&mmsp.EmptyResponseError{Client: "OpenaiChatClient", FinishReason: "stop", Usage: &mmsp.Usage{CachedTokens: new(int64(2)), PromptTokens: new(int64(7)), ThoughtsTokens: new(int64(1)), ResponseTokens: new(int64(4))}},
		},
		{"nothing but a finish", 200, nil, sse(fin("length")), "", &mmsp.EmptyResponseError{Client: "OpenaiChatClient", FinishReason: "length", Usage: &mmsp.Usage{}}},
		{
			"a call cut by the limit", 200, nil, sse(calls(frag("0", "k", "f", `{"q":`)) + fin("length") + usage), `tool_call+{"q": f/k`,
			&mmsp.ToolCallArgumentParseError{Client: "OpenaiChatClient", ToolName: "f", ToolCallID: "k", RawArguments: `{"q":`, Reason: "the text ends early at byte 5", FinishReason: "length", Usage: &mmsp.Usage{CachedTokens: new(int64(2)), PromptTokens: new(int64(7)), ThoughtsTokens: new(int64(1)), ResponseTokens: new(int64(4))}},
		},
		{
			"a fragment of no call", 200, nil, sse(calls(frag("0", "k", "", `{}`)) + fin("stop")), "",
			&mmsp.StreamProtocolError{Client: "OpenaiChatClient", Detail: `a fragment of no open tool call (index 0, name "", id "k")`},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := read(t, serve(t, tt.status, tt.header, tt.body).StreamingResponse(t.Context(), ask, nil))
			var upstream *mmsp.UpstreamError
			if errors.As(err, &upstream) {
				upstream.Err = nil
			}
			if !reflect.DeepEqual(err, tt.want) {
				t.Errorf("got  %#v\nwant %#v", err, tt.want)
			}
			if lines := strings.Join(got, "; "); lines != tt.events {
				t.Errorf("got events %s, want %s", lines, tt.events)
			}
		})
	}
}

// A whole answer is its own end, also without a finish reason.
func TestWholeWithoutFinish(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"choices":[{"message":{"content":"a"},"finish_reason":null}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`)
	}))
	defer server.Close()
	answer, err := mmsp.Collect(mmsp.NewClient(build(t, mmsp.Options{BaseURL: server.URL, HTTPClient: server.Client()})).StreamingResponse(t.Context(), ask, nil))
	if err != nil || answer.Text() != "a" || answer.FinishReason != mmsp.FinishUnknown || answer.Usage.Total() != 3 {
		t.Errorf("%+v, %v", answer, err)
	}
}

// TestTruncation cuts a stream at every byte: there is a stop exactly when the finish chunk was whole.
func TestTruncation(t *testing.T) {
	body := sse(d(`{"reasoning":"é"}`) + d(`{"content":"a"}`) + calls(frag("0", "k", "f", "{}")) + fin("tool_calls") + usage + done)
	finish := strings.Index(body, `"finish_reason":"tool_calls"}]}`) + len(`"finish_reason":"tool_calls"}]}`)
	var length int
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body[:length]) }))
	defer server.Close()
	client := mmsp.NewClient(build(t, mmsp.Options{BaseURL: server.URL, HTTPClient: server.Client()}))
	for length = range len(body) + 1 {
		_, err := read(t, client.StreamingResponse(t.Context(), ask, nil))
		var incomplete *mmsp.IncompleteStreamError
		if whole := length >= finish; whole != (err == nil) || !whole && !errors.As(err, &incomplete) {
			t.Errorf("cut at byte %d (the finish chunk ends at %d): %v", length, finish, err)
		}
	}
}

// held is a transport whose answers stay open after their text.
type held struct{ body string }

func (h held) RoundTrip(r *http.Request) (*http.Response, error) {
	reader, writer := io.Pipe()
	go func() {
		io.WriteString(writer, h.body)
		<-r.Context().Done()
		writer.Close()
	}()
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: reader}, nil
}

// TestHeldOpen: the public stream ends with what it awaits, not with the connection.
func TestHeldOpen(t *testing.T) {
	for _, tt := range []struct {
		name, chunks string
		wait         time.Duration
		usage        string
	}{
		{"neither usage nor [DONE]", fin("stop"), 5 * time.Second, "- - - -"},
		{"usage on the finish chunk", `{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1}}`, 5 * time.Second, "- 1 - -"},
		{"usage", fin("stop") + usage, 0, "2 7 1 4"},
		{"[DONE]", fin("stop") + done, 0, "- - - -"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := mmsp.NewClient(build(t, mmsp.Options{HTTPClient: &http.Client{Transport: held{sse(d(`{"content":"a"}`) + tt.chunks)}}}))
				begin := time.Now()
				var stopped time.Duration
				for event, err := range client.StreamingResponse(t.Context(), ask, nil) {
					if err != nil {
						t.Fatal(err)
					}
					if event.Type == mmsp.EventStop {
						stopped = time.Since(begin)
						if want := "stop stop " + tt.usage; show(&event) != want {
							t.Errorf("got %s, want %s", show(&event), want)
						}
					}
				}
				// The connection gets a moment more to end by itself.
				if after := time.Since(begin) - stopped; stopped != tt.wait || after > 100*time.Millisecond {
					t.Errorf("the stop came after %v, the end %v later", stopped, after)
				}
			})
		})
	}
}

// TestMore: an event says whether another one is there already, and none waits for the provider.
func TestMore(t *testing.T) {
	next := make(chan string)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for part := range next {
			io.WriteString(w, part)
			w.(http.Flusher).Flush()
		}
	}))
	defer server.Close()
	client := mmsp.NewClient(build(t, mmsp.Options{BaseURL: server.URL, HTTPClient: server.Client()}))
	go func() { next <- sse(d(`{"content":"a"}`) + d(`{"content":"b"}`)) }()
	var got []string
	for event, err := range client.StreamingResponse(t.Context(), ask, nil) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(show(&event), " ", event.More))
		if event.Item.Text == "b" {
			next <- sse(fin("stop") + done) // only now: b was not held back
			close(next)
		}
	}
	if lines := strings.Join(got, "; "); lines != "text+a true; text+b false; text=ab true; stop stop - - - - false" {
		t.Error(lines)
	}
}
