package googlegenai

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/prism-shadow/mmsp-go"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve starts a provider on the loopback interface and returns a client of it, which takes it for Google.
func serve(t testing.TB, model string, handler http.HandlerFunc, change ...func(*mmsp.Options)) *Client {
	server := httptest.NewServer(handler)
	network := &http.Transport{DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
	}}
	t.Cleanup(server.Close)
	t.Cleanup(network.CloseIdleConnections)
	over := transport(func(r *http.Request) (*http.Response, error) {
		r = r.Clone(r.Context())
		r.URL.Scheme = "http"
		return network.RoundTrip(r)
	})
	return build(t, model, append(change, func(o *mmsp.Options) { o.HTTPClient = &http.Client{Transport: over} })...)
}

// says is a provider that answers every request with a body.
func says(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body) }
}

// frames makes the events of a stream, one a line of the text.
func frames(lines string) string {
	var b strings.Builder
	for line := range strings.Lines(lines) {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString("data: " + line + "\r\n\r\n")
		}
	}
	return b.String()
}

// read reads a public stream, judging its grammar: its items one a line, and the stop as
// "finish cached/prompt/thoughts/response detail: text".
func read(t testing.TB, client *Client) (items []string, stop string, err error) {
	t.Helper()
	var grammar mmsp.GrammarChecker
	for event, err := range mmsp.NewClient(client).StreamingResponse(t.Context(), []mmsp.Message{mmsp.UserMessage(mmsp.Text("Hi"))}, nil) {
		if err != nil {
			return items, "", err
		}
		if err := grammar.Event(&event); err != nil {
			t.Fatal(err)
		}
		if event.Type == mmsp.EventDelta {
			var wire struct {
				ContentItems []json.RawMessage `json:"content_items"`
			}
			parse(t, string(event.AppendJSON(nil)), &wire)
			items = append(items, string(wire.ContentItems[0]))
			continue
		}
		stop = describe(event.FinishReason, event.Usage, event.StopDetail)
	}
	if err := grammar.End(); err != nil {
		t.Fatal(err)
	}
	return items, stop, nil
}

func describe(finish mmsp.FinishReason, u *mmsp.Usage, detail *mmsp.StopDetail) string {
	count := func(n *int64) string {
		if n == nil {
			return "-"
		}
		return fmt.Sprint(*n)
	}
	stop := fmt.Sprintf("%s %s/%s/%s/%s", finish, count(u.CachedTokens), count(u.PromptTokens), count(u.ThoughtsTokens), count(u.ResponseTokens))
	if detail != nil {
		stop += " " + detail.Kind + ": " + detail.Text
		if detail.Prompt {
			stop += ", of the prompt"
		}
	}
	return stop
}

func trimmed(text string) (all []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}

// chunk is a chunk with parts, and whatever follows them.
func chunk(parts, rest string) string {
	return `{"candidates":[{"content":{"role":"model","parts":[` + parts + `]},"index":0` + rest + `]}`
}

const (
	counts = `,"usageMetadata":{"promptTokenCount":40,"candidatesTokenCount":12,"thoughtsTokenCount":9,"trafficType":"ON_DEMAND"}}`
	usual  = "-/40/9/12"
)

// last is the chunk that ends a stream.
func last(reason string) string {
	return `{"candidates":[{"content":{"role":"model","parts":[{"text":""}]},"finishReason":"` + reason + `","index":0}]` + counts
}

func text(s string) string { return chunk(`{"text":"`+s+`"}`, `}`) }

const yes = `{"type":"text.delta","text":"Yes"}
	{"type":"text.done","text":"Yes"}`

// whole is a stream with everything in it, and what comes of it.
var (
	whole = strings.Join([]string{
		chunk(`{"text":"Plan","thought":true}`, `}`), `{"usageMetadata":{"trafficType":"ON_DEMAND"}}`,
		text("It"), text(" rains"),
		chunk(`{"functionCall":{"name":"umbrella","args":{"n":1},"id":"q1"},"thoughtSignature":"c2ln"}`, `}`),
		last("STOP"),
	}, "\n")
	wholeItems = `{"type":"thinking.delta","thinking":"Plan"}
		{"type":"thinking.done","thinking":"Plan"}
		{"type":"text.delta","text":"It"}
		{"type":"text.delta","text":" rains"}
		{"type":"text.done","text":"It rains"}
		{"type":"tool_call.delta","name":"umbrella","arguments":"{\"n\":1}","tool_call_id":"q1","fidelity":{"signature":"c2ln","issuer":"google"}}
		{"type":"tool_call.done","name":"umbrella","arguments":{"n":1},"tool_call_id":"q1","fidelity":{"signature":"c2ln","issuer":"google"}}`
)

// Each row: a stream, and the items and the stop that come of it.
func TestStream(t *testing.T) {
	call := func(fields string) string { return chunk(`{"functionCall":{`+fields+`}}`, `}`) }
	usage := func(fields string) string {
		return text("Yes") + "\n" + `{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{` + fields + `}}`
	}
	stopped := func(reason, message string) string {
		if message != "" {
			message = `,"finishMessage":"` + message + `"`
		}
		return text("Yes") + "\n" + `{"candidates":[{"finishReason":"` + reason + `"` + message + `}]` + counts
	}
	for _, row := range []struct{ name, stream, items, stop string }{
		{"a turn with everything", whole, wholeItems, "tool_call " + usual},

		// Parts.
		{"text", text("Yes") + "\n" + last("STOP"), yes, "stop " + usual},
		{"a chunk of several parts", chunk(`{"text":"Hm","thought":true},{"text":"Yes"}`, `}`) + "\n" + last("STOP"), `{"type":"thinking.delta","thinking":"Hm"}
			{"type":"thinking.done","thinking":"Hm"}
			` + yes, "stop " + usual},
		{"an empty signed part signs the open text", text("Sun") + "\n" + text("ny.") + "\n" + `{"candidates":[{"content":{"parts":[{"text":"","thoughtSignature":"eHk="}]},"finishReason":"STOP"}]` + counts, `{"type":"text.delta","text":"Sun"}
			{"type":"text.delta","text":"ny."}
			{"type":"text.delta","text":"","fidelity":{"signature":"eHk=","issuer":"google"}}
			{"type":"text.done","text":"Sunny.","fidelity":{"signature":"eHk=","issuer":"google"}}`, "stop " + usual},
		{"a signature without the empty text", text("Yes") + "\n" + chunk(`{"thoughtSignature":"eHk="}`, `}`) + "\n" + last("STOP"), `{"type":"text.delta","text":"Yes"}
			{"type":"text.delta","text":"","fidelity":{"signature":"eHk=","issuer":"google"}}
			{"type":"text.done","text":"Yes","fidelity":{"signature":"eHk=","issuer":"google"}}`, "stop " + usual},
		{"an empty thought is signed", chunk(`{"text":"","thought":true,"thoughtSignature":"eHk="}`, `}`) + "\n" + text("Yes") + "\n" + last("STOP"), `{"type":"thinking.delta","thinking":"","fidelity":{"signature":"eHk=","issuer":"google"}}
			{"type":"thinking.done","thinking":"","fidelity":{"signature":"eHk=","issuer":"google"}}
			` + yes, "stop " + usual},
		{"the same signature twice", chunk(`{"text":"Y","thoughtSignature":"eHk="}`, `}`) + "\n" + chunk(`{"text":"es","thoughtSignature":"eHk="}`, `}`) + "\n" + last("STOP"), `{"type":"text.delta","text":"Y","fidelity":{"signature":"eHk=","issuer":"google"}}
			{"type":"text.delta","text":"es"}
			{"type":"text.done","text":"Yes","fidelity":{"signature":"eHk=","issuer":"google"}}`, "stop " + usual},
		{"another signature begins another text", chunk(`{"text":"Y","thoughtSignature":"QQ=="}`, `}`) + "\n" + chunk(`{"text":"e","thoughtSignature":"Qg=="}`, `}`) + "\n" + text("s") + "\n" + last("STOP"), `{"type":"text.delta","text":"Y","fidelity":{"signature":"QQ==","issuer":"google"}}
			{"type":"text.done","text":"Y","fidelity":{"signature":"QQ==","issuer":"google"}}
			{"type":"text.delta","text":"e","fidelity":{"signature":"Qg==","issuer":"google"}}
			{"type":"text.delta","text":"s"}
			{"type":"text.done","text":"es","fidelity":{"signature":"Qg==","issuer":"google"}}`, "stop " + usual},
		{"unsigned empty parts", chunk(`{"text":""},{"text":"","thought":true},{"text":"Yes"},{"text":""},{}`, `}`) + "\n" + last("STOP"), yes, "stop " + usual},
		{"parts of the provider's own tools", chunk(`{"executableCode":{"code":"1"},"thoughtSignature":"QQ=="},{"codeExecutionResult":{"output":"1"}},{"toolCall":{}},{"text":"Yes"}`, `}`) + "\n" + last("STOP"), yes, "stop " + usual},
		{"pictures", chunk(`{"thought":true,"inlineData":{"mimeType":"image/png","data":"AQI="},"thoughtSignature":"QQ=="},{"inlineData":{"mimeType":"image/png","data":"AwQ="}},{"inlineData":{"data":"_-8"}}`, `}`) + "\n" + last("STOP"), `{"type":"inline_thinking.delta","data":"AQI=","mime_type":"image/png","fidelity":{"signature":"QQ==","issuer":"google"}}
			{"type":"inline_thinking.done","data":"AQI=","mime_type":"image/png","fidelity":{"signature":"QQ==","issuer":"google"}}
			{"type":"inline_data.delta","data":"AwQ=","mime_type":"image/png"}
			{"type":"inline_data.done","data":"AwQ=","mime_type":"image/png"}
			{"type":"inline_data.delta","data":"/+8=","mime_type":"application/octet-stream"}
			{"type":"inline_data.done","data":"/+8=","mime_type":"application/octet-stream"}`, "stop " + usual},
		{"two pictures", chunk(`{"inlineData":{"mimeType":"image/png","data":"AQI="}},{"inlineData":{"mimeType":"image/png","data":"AwQ="}}`, `}`) + "\n" + last("STOP"), `{"type":"inline_data.delta","data":"AQI=","mime_type":"image/png"}
			{"type":"inline_data.done","data":"AQI=","mime_type":"image/png"}
			{"type":"inline_data.delta","data":"AwQ=","mime_type":"image/png"}
			{"type":"inline_data.done","data":"AwQ=","mime_type":"image/png"}`, "stop " + usual},
		{"sound in pieces", chunk(`{"inlineData":{"mimeType":"audio/L16;rate=24000","data":"AQI="}}`, `}`) + "\n" + chunk(`{"inlineData":{"mimeType":"audio/L16;rate=24000","data":"AwQ="}}`, `}`) + "\n" + last("STOP"), `{"type":"inline_data.delta","data":"AQI=","mime_type":"audio/L16;rate=24000"}
			{"type":"inline_data.delta","data":"AwQ=","mime_type":"audio/L16;rate=24000"}
			{"type":"inline_data.done","data":"AQIDBA==","mime_type":"audio/L16;rate=24000"}`, "stop " + usual},

		// Calls.
		{"calls without ids", call(`"name":"go","args":{"a":1}`) + "\n" + chunk(`{"functionCall":{"name":"go"}},{"functionCall":{"name":"go","args":null,"id":""}}`, `}`) + "\n" + last("STOP"), `{"type":"tool_call.delta","name":"go","arguments":"{\"a\":1}","tool_call_id":"go"}
			{"type":"tool_call.done","name":"go","arguments":{"a":1},"tool_call_id":"go"}
			{"type":"tool_call.delta","name":"go","arguments":"{}","tool_call_id":"go"}
			{"type":"tool_call.done","name":"go","arguments":{},"tool_call_id":"go"}
			{"type":"tool_call.delta","name":"go","arguments":"{}","tool_call_id":"go"}
			{"type":"tool_call.done","name":"go","arguments":{},"tool_call_id":"go"}`, "tool_call " + usual},
		{"a call in the last chunk", `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"go","args":{"n":18446744073709551615}}}]},"finishReason":"STOP"}]` + counts, `{"type":"tool_call.delta","name":"go","arguments":"{\"n\":18446744073709551615}","tool_call_id":"go"}
			{"type":"tool_call.done","name":"go","arguments":{"n":18446744073709551615},"tool_call_id":"go"}`, "tool_call " + usual},
		{"a call at the limit", call(`"name":"go"`) + "\n" + last("MAX_TOKENS"), `{"type":"tool_call.delta","name":"go","arguments":"{}","tool_call_id":"go"}
			{"type":"tool_call.done","name":"go","arguments":{},"tool_call_id":"go"}`, "length " + usual},
		{"arguments in pieces", call(`"name":"go","id":"k1","willContinue":true`) + "\n" +
			call(`"partialArgs":[{"jsonPath":"$.to","stringValue":"Bo","willContinue":true}],"willContinue":true`) + "\n" +
			call(`"partialArgs":[{"jsonPath":"$.to","stringValue":"ston"}],"willContinue":true`) + "\n" + call(``) + "\n" +
			call(`"name":"go","willContinue":true`) + "\n" + call(`"partialArgs":[{"jsonPath":"$.n","numberValue":2}]`) + "\n" + last("STOP"), `{"type":"tool_call.delta","name":"go","arguments":"","tool_call_id":"k1"}
			{"type":"tool_call.delta","name":"","arguments":"{\"to\":\"Bo","tool_call_id":""}
			{"type":"tool_call.delta","name":"","arguments":"ston\"","tool_call_id":""}
			{"type":"tool_call.delta","name":"","arguments":"}","tool_call_id":""}
			{"type":"tool_call.done","name":"go","arguments":{"to":"Boston"},"tool_call_id":"k1"}
			{"type":"tool_call.delta","name":"go","arguments":"","tool_call_id":"go"}
			{"type":"tool_call.delta","name":"","arguments":"{\"n\":2}","tool_call_id":""}
			{"type":"tool_call.done","name":"go","arguments":{"n":2},"tool_call_id":"go"}`, "tool_call " + usual},
		{"a call cuts off another", call(`"name":"a","willContinue":true`) + "\n" + call(`"partialArgs":[{"jsonPath":"$.x","boolValue":true}],"willContinue":true`) + "\n" + call(`"name":"b","args":{}`) + "\n" + last("STOP"), `{"type":"tool_call.delta","name":"a","arguments":"","tool_call_id":"a"}
			{"type":"tool_call.delta","name":"","arguments":"{\"x\":true","tool_call_id":""}
			{"type":"tool_call.delta","name":"","arguments":"}","tool_call_id":""}
			{"type":"tool_call.done","name":"a","arguments":{"x":true},"tool_call_id":"a"}
			{"type":"tool_call.delta","name":"b","arguments":"{}","tool_call_id":"b"}
			{"type":"tool_call.done","name":"b","arguments":{},"tool_call_id":"b"}`, "tool_call " + usual},

		// How it ends.
		{"MAX_TOKENS", text("Yes") + "\n" + last("MAX_TOKENS"), yes, "length " + usual},
		{"SAFETY", stopped("SAFETY", ""), yes, "unknown " + usual + " filter: SAFETY"},
		{"MODEL_ARMOR", stopped("MODEL_ARMOR", "Not this."), yes, "unknown " + usual + " filter: Not this."},
		{"MALFORMED_FUNCTION_CALL", stopped("MALFORMED_FUNCTION_CALL", "print(x)"), yes, "unknown " + usual + " malformed_call: print(x)"},
		{"OTHER", stopped("OTHER", ""), yes, "unknown " + usual},
		{"the prompt is refused late", text("Yes") + "\n" + `{"promptFeedback":{"blockReason":"SAFETY"}}`, yes, "unknown -/-/-/- filter: SAFETY, of the prompt"},
		{"a note on the prompt refuses nothing", `{"promptFeedback":{"safetyRatings":[]}}` + "\n" + text("Yes") + "\n" + last("STOP"), yes, "stop " + usual},
		{"[DONE]", text("Yes") + "\n" + last("STOP") + "\n[DONE]", yes, "stop " + usual},
		{"something follows the end", text("Yes") + "\n" + usageless + "\n" + `{"candidates":[{"groundingMetadata":{}}]` + counts, yes, "stop " + usual},

		// Usage.
		{"no usage", text("Yes") + "\n" + usageless, yes, "stop -/-/-/-"},
		{"a billing note is no usage", usage(`"trafficType":"ON_DEMAND","candidatesTokenCount":3`), yes, "stop -/-/-/-"},
		{"zeros", usage(`"promptTokenCount":0,"candidatesTokenCount":0,"thoughtsTokenCount":0,"cachedContentTokenCount":0`), yes, "stop -/0/-/-"},
		{"cached", usage(`"promptTokenCount":10,"cachedContentTokenCount":4,"toolUsePromptTokenCount":9`), yes, "stop 4/6/-/-"},
		{"cached beside", usage(`"promptTokenCount":3,"cachedContentTokenCount":4`), yes, "stop 4/3/-/-"},
		{"nulls", usage(`"promptTokenCount":null`), yes, "stop -/-/-/-"},
		{"counts that came earlier", `{"candidates":[{"content":{"parts":[{"text":"Yes"}]}}]` + counts + "\n" + usageless, yes, "stop " + usual},
		{"the last counts", `{"candidates":[{"content":{"parts":[{"text":"Yes"}]}}],"usageMetadata":{"promptTokenCount":40,"candidatesTokenCount":1,"thoughtsTokenCount":9}}` + "\n" + last("STOP"), yes, "stop " + usual},

		// Frames.
		{"heartbeats", `{}` + "\n" + text("Yes") + "\n" + `{"candidates":[]}` + "\n" + `{"modelVersion":"x","createTime":"y"}` + "\n" + last("STOP"), yes, "stop " + usual},
		{"another candidate", `{"candidates":[{"content":{"parts":[{"text":"Yes"}]}},{"content":{"parts":[{"text":"No"}]},"finishReason":"SAFETY"}]}` + "\n" + last("STOP"), yes, "stop " + usual},
		{"keys and nulls of no interest", `{"candidates":[{"content":{"parts":[{"text":"Yes","thought":false,"thoughtSignature":null,"functionCall":null,"videoMetadata":{}}]},"finishReason":null,"safetyRatings":[1]}],"error":null,"promptFeedback":null}` + "\n" + last("STOP"), yes, "stop " + usual},
	} {
		t.Run(row.name, func(t *testing.T) {
			items, stop, err := read(t, serve(t, "gemini-3.8-flash", says(frames(row.stream))))
			if err != nil || stop != row.stop || !slices.Equal(items, trimmed(row.items)) {
				t.Errorf("%v\ngot %s\n%s\nwant %s\n%s", err, stop, strings.Join(items, "\n"), row.stop, strings.Join(trimmed(row.items), "\n"))
			}
		})
	}
}

// TestUsageApart: the usage does not depend on which chunks arrive together. Each row: chunks, of which each arrives a second
// after the one before, the stop, and when it comes. The connection stays.
func TestUsageApart(t *testing.T) {
	counted := func(fields string, n int) string {
		return fmt.Sprintf(`{%s"usageMetadata":{"promptTokenCount":40,"candidatesTokenCount":%d}}`, fields, n)
	}
	early := counted(`"candidates":[{"content":{"parts":[{"text":"Yes"}]}}],`, 1)
	for _, row := range []struct {
		name, stream, stop string
		after              time.Duration
	}{
		{"counts after the end", early + "\n" + usageless + "\n" + counted("", 50), "stop -/40/-/50", 2 * time.Second},
		{"counts at the end", early + "\n" + counted(`"candidates":[{"finishReason":"STOP"}],`, 50), "stop -/40/-/50", time.Second},
		{"a note and counts after the end", early + "\n" + usageless + "\n{}\n" + counted("", 50), "stop -/40/-/50", 3 * time.Second},
		{"counts before the end alone", early + "\n" + usageless, "stop -/40/-/1", time.Second + usageWait},
		{"a note after the end", early + "\n" + usageless + "\n{}", "stop -/40/-/1", time.Second + usageWait},
		{"no counts", text("Yes") + "\n" + usageless, "stop -/-/-/-", time.Second + usageWait},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client := build(t, "m", func(o *mmsp.Options) {
					o.HTTPClient = &http.Client{Transport: transport(func(*http.Request) (*http.Response, error) {
						body, w := io.Pipe()
						go func() {
							for line := range strings.Lines(row.stream) {
								io.WriteString(w, frames(line))
								time.Sleep(time.Second)
							}
						}()
						return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body}, nil
					})}
				})
				began := time.Now()
				items, stop, err := read(t, client)
				took := time.Since(began).Truncate(time.Second)
				time.Sleep(time.Minute) // until the provider has noticed
				if err != nil || stop != row.stop || took != row.after || !slices.Equal(items, trimmed(yes)) {
					t.Errorf("%v %s after %v: %s", err, stop, took, items)
				}
			})
		})
	}
}

const usageless = `{"candidates":[{"finishReason":"STOP"}]}`

// The same stream in every framing that endpoints send.
func TestFramings(t *testing.T) {
	lines := strings.Split(whole, "\n")
	indented := func(line string) string {
		var value any
		parse(t, line, &value)
		text, _ := json.MarshalIndent(value, "", "  ")
		return strings.ReplaceAll(string(text), "\n", "\r\n")
	}
	array, pretty := "["+strings.Join(lines, ",")+"]", "[{}"
	for _, line := range lines {
		pretty += "\n,\r\n" + indented(line)
	}
	for name, body := range map[string]string{
		"events": frames(whole), "LF alone": strings.ReplaceAll(frames(whole), "\r\n", "\n"), "a mark of the byte order": "\xef\xbb\xbf" + frames(whole),
		"comments":  ": hello\n\n" + strings.ReplaceAll(frames(whole), "data:", ": x\nevent: message\ndata:"),
		"heartbeat": "data:\n\n" + frames(whole), "no blank line at the end": strings.TrimSpace(frames(whole)),
		"an array": array, "an array on lines": pretty + "\n]\n", "an array without its end": strings.TrimSuffix(array, "]"),
		"an array after a mark": "\xef\xbb\xbf\n " + array, "objects one after the other": strings.Join(lines, "\n"),
	} {
		for _, size := range []int{1, 7, 1 << 20} {
			client := serve(t, "m", func(w http.ResponseWriter, _ *http.Request) {
				for piece := range slices.Chunk([]byte(body), size) {
					w.Write(piece)
					w.(http.Flusher).Flush()
				}
			})
			items, stop, err := read(t, client)
			if want := trimmed(wholeItems); err != nil || stop != "tool_call "+usual || len(items) != len(want) || items[3] != want[3] || items[4] != want[4] {
				t.Errorf("%s in pieces of %d: %v %s\n%s", name, size, err, stop, strings.Join(items, "\n"))
			}
		}
	}
}

// An array is read as it arrives, and the stream ends with the finish reason, not with the connection.
func TestEventsLeaveAtOnce(t *testing.T) {
	for name, frame := range map[string]func(string) string{
		"events": frames,
		"array":  func(line string) string { return strings.NewReplacer("\n", "", "\t", "").Replace(line) + "\n,\r\n" },
	} {
		t.Run(name, func(t *testing.T) {
			next, gone := make(chan bool), make(chan bool)
			client := serve(t, "m", func(w http.ResponseWriter, r *http.Request) {
				if name == "array" {
					io.WriteString(w, "[")
				}
				for _, line := range []string{text("a"), text("b"), last("STOP")} {
					io.WriteString(w, frame(line))
					w.(http.Flusher).Flush()
					select {
					case <-next:
					case <-r.Context().Done():
					}
				}
				<-r.Context().Done()
				close(gone)
			})
			var seen []string
			for event, err := range mmsp.NewClient(client).StreamingResponse(t.Context(), []mmsp.Message{mmsp.UserMessage(mmsp.Text("Hi"))}, nil) {
				if err != nil {
					t.Fatal(err)
				}
				seen = append(seen, string(event.Item.Type)+event.Item.Text)
				if event.Item.Type == mmsp.TextDelta {
					next <- true
				}
			}
			if got := strings.Join(seen, " "); got != "text.deltaa text.deltab text.doneab " {
				t.Error(got)
			}
			select {
			case <-gone:
			case <-time.After(5 * time.Second):
				t.Error("the connection stays")
			}
		})
	}
}

// Each row: a body, the items before the error, and the error.
func TestStreamErrors(t *testing.T) {
	var (
		upstream   *mmsp.UpstreamError
		incomplete *mmsp.IncompleteStreamError
		empty      *mmsp.EmptyResponseError
		arguments  *mmsp.ToolCallArgumentParseError
		protocol   *mmsp.StreamProtocolError
	)
	half := `{"type":"text.delta","text":"Half"}`
	for _, row := range []struct {
		name, body, items string
		kind              any
		says              string
	}{
		{"an error chunk", frames(text("Half") + "\n" + `{"error":{"code":429,"message":"Quota.","status":"RESOURCE_EXHAUSTED"}}`), half, &upstream, "Quota. (HTTP 429, RESOURCE_EXHAUSTED, 429)"},
		{"an error event", frames(text("Half")) + "event: error\ndata: {\"message\":\"Busy.\"}\n\n", half, &upstream, "Busy."},
		{"an error in an array", "[" + text("Half") + `,{"error":{"code":503,"message":"Later.","status":"UNAVAILABLE"}}]`, half, &upstream, "Later. (HTTP 503, UNAVAILABLE, 503)"},
		{"an array of an error", `[{"error":{"code":400,"message":"No.","status":"INVALID_ARGUMENT"}}]`, "", &upstream, "No. (HTTP 400"},
		{"an error alone", `{"error":{"message":"No."}}`, "", &upstream, "No."},
		{"an error of a gateway", `{"message":"no route"}`, "", &upstream, "no route"},
		{"a page", "<!doctype html><p>Login", "", &upstream, "something else than a stream"},
		{"no JSON", frames(text("Half")) + "data: hello\n\n", half, &upstream, "event 2 from the provider is not readable"},
		{"an array of no objects", "[" + text("Half") + `,"x"]`, half, &upstream, "event 2 from the provider is not readable"},
		{"arguments out of order", frames(chunk(`{"functionCall":{"name":"f","partialArgs":[{"jsonPath":"$.a.b","numberValue":1},{"jsonPath":"$.c","numberValue":1},{"jsonPath":"$.a.d","numberValue":1}]}}`, `}`)), "", &upstream, "out of order"},
		{"nothing", "", "", &incomplete, "no finish reason"},
		{"no finish reason", frames(text("Half")), half, &incomplete, "no finish reason"},
		{"a whole answer without a finish reason", text("Half"), half, &incomplete, "no finish reason"},
		{"cut in a chunk", frames(text("Half")) + `data: {"candidates":[{"content":{"parts":[{"te`, half, &incomplete, "no finish reason"},
		{"an array cut in a chunk", "[" + text("Half") + `,{"candidates":[{"content":{"parts":[{"text":"}`, half, &incomplete, "no finish reason"},
		{"a refused prompt", frames(`{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":13}}`), "", &empty, "unknown -/13/-/- filter: PROHIBITED_CONTENT, of the prompt"},
		{"a refused prompt in one piece", `{"promptFeedback":{"blockReason":"MODEL_ARMOR","blockReasonMessage":"Injection."},"usageMetadata":{"trafficType":"ON_DEMAND"}}`, "", &empty, "unknown -/-/-/- filter: Injection., of the prompt"},
		{"a refused answer", `{"candidates":[{"finishReason":"SAFETY"}]` + counts, "", &empty, "unknown " + usual + " filter: SAFETY"},
		{"thinking alone", frames(chunk(`{"text":"Hm","thought":true}`, `}`) + "\n" + last("STOP")), "{\"type\":\"thinking.delta\",\"thinking\":\"Hm\"}\n{\"type\":\"thinking.done\",\"thinking\":\"Hm\"}", &empty, "stop " + usual},
		{
			"a call cut at the limit", frames(chunk(`{"functionCall":{"name":"f","partialArgs":[{"jsonPath":"$.a","stringValue":"x","willContinue":true}],"willContinue":true}}`, `}`) + "\n" + last("MAX_TOKENS")),
			`{"type":"tool_call.delta","name":"f","arguments":"{\"a\":\"x","tool_call_id":"f"}`, &arguments, "length " + usual,
		},
		{"arguments of no object", frames(chunk(`{"functionCall":{"name":"f","args":[1]}}`, `}`) + "\n" + last("STOP")), `{"type":"tool_call.delta","name":"f","arguments":"[1]","tool_call_id":"f"}`, &arguments, "tool_call " + usual},
		{"a call without a name", frames(chunk(`{"functionCall":{"id":"k","args":{}}}`, `}`) + "\n" + last("STOP")), "", &protocol, "no name"},
	} {
		t.Run(row.name, func(t *testing.T) {
			items, _, err := read(t, serve(t, "m", says(row.body)))
			said := fmt.Sprint(err)
			if !errors.As(err, row.kind) {
				t.Fatalf("%T %v", err, err)
			}
			switch row.kind {
			case &empty:
				said = describe(empty.FinishReason, empty.Usage, empty.StopDetail)
			case &arguments:
				said = describe(arguments.FinishReason, arguments.Usage, arguments.StopDetail)
			}
			if !strings.Contains(said, row.says) || !slices.Equal(items, trimmed(row.items)) {
				t.Errorf("%s\n%s", said, strings.Join(items, "\n"))
			}
		})
	}
}

// A status other than 200 is an UpstreamError with the provider's words and without the key.
func TestStatuses(t *testing.T) {
	for _, row := range []struct {
		status        int
		body, message string
	}{
		{400, `{"error":{"code":400,"message":"API key the-key is not valid.","status":"INVALID_ARGUMENT"}}`, "API key […] is not valid. (HTTP 400, INVALID_ARGUMENT, 400)"},
		{429, `[{"error":{"code":429,"message":"Quota.","status":"RESOURCE_EXHAUSTED"}}]`, "Quota. (HTTP 429, RESOURCE_EXHAUSTED, 429)"},
		{404, ``, "HTTP 404: Not Found (HTTP 404)"},
	} {
		client := serve(t, "m", func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(row.status)
			io.WriteString(w, row.body)
		})
		var failure *mmsp.UpstreamError
		if _, _, err := read(t, client); !errors.As(err, &failure) || failure.Status != row.status || failure.Error() != row.message {
			t.Errorf("%d: %v", row.status, err)
		}
	}
}

// Whatever event a stream is cut after, only one with its finish reason ends in a stop.
func TestTruncation(t *testing.T) {
	lines := strings.Split(whole, "\n")
	for n := range len(lines) + 1 {
		for _, body := range []string{frames(strings.Join(lines[:n], "\n")), "[" + strings.Join(lines[:n], ",")} {
			_, stop, err := read(t, serve(t, "m", says(body)))
			var incomplete *mmsp.IncompleteStreamError
			if finished := n == len(lines); finished != (err == nil) || finished != (stop != "") || err != nil && !errors.As(err, &incomplete) {
				t.Errorf("after %d events: %s %v", n, stop, err)
			}
		}
	}
}

// Aborting, and leaving the loop, close the provider's connection within 100 ms.
func TestAbort(t *testing.T) {
	for _, how := range []string{"cancel", "leave"} {
		t.Run(how, func(t *testing.T) {
			gone := make(chan time.Time, 1)
			client := serve(t, "m", func(w http.ResponseWriter, r *http.Request) {
				io.WriteString(w, frames(text("a")))
				w.(http.Flusher).Flush()
				<-r.Context().Done()
				gone <- time.Now()
			})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var began time.Time
			var failure error
			for _, err := range mmsp.NewClient(client).StreamingResponse(ctx, []mmsp.Message{mmsp.UserMessage(mmsp.Text("Hi"))}, nil) {
				began = time.Now()
				if failure = err; err != nil {
					break
				}
				if how == "leave" {
					break
				}
				cancel()
			}
			if how == "cancel" && !errors.Is(failure, context.Canceled) {
				t.Error(failure)
			}
			select {
			case at := <-gone:
				if at.Sub(began) > 100*time.Millisecond {
					t.Errorf("after %v", at.Sub(began))
				}
			case <-time.After(5 * time.Second):
				t.Error("the connection stays")
			}
		})
	}
}

// With MMSP_DEBUG a part that the client does not know is an error; a chunk of nothing is none.
func TestDebug(t *testing.T) {
	for value, want := range map[string]bool{"1": true, "yes": true, "": false, " Off ": false} {
		client := serve(t, "m", says(frames(`{"x":1}`+"\n"+text("Yes")+"\n"+chunk(`{"newThing":{}}`, `}`)+"\n"+last("STOP"))), func(o *mmsp.Options) {
			o.Getenv = func(name string) string { return map[string]string{"MMSP_DEBUG": value}[name] }
		})
		_, _, err := read(t, client)
		if got := err != nil && strings.Contains(err.Error(), "Unknown output") && strings.Contains(err.Error(), "newThing"); got != want {
			t.Errorf("%q: %v", value, err)
		}
	}
}

// A turn that was read is sent back as it came, but for the empty part that closed it.
func TestReplay(t *testing.T) {
	for _, row := range []struct{ name, stream, want string }{
		{"everything", whole, `{"role":"model","parts":[{"text":"Plan","thought":true},{"text":"It rains"},{"functionCall":{"id":"q1","name":"umbrella","args":{"n":1}},"thoughtSignature":"c2ln"}]}`},
		{"a signed end", text("Sun") + "\n" + text("ny.") + "\n" + chunk(`{"text":"","thoughtSignature":"eHk="}`, `}`) + "\n" + last("STOP"), `{"role":"model","parts":[{"text":"Sunny.","thoughtSignature":"eHk="}]}`},
		{"calls without ids", chunk(`{"functionCall":{"name":"go","args":{}},"thoughtSignature":"QQ=="},{"functionCall":{"name":"go","args":{}}}`, `}`) + "\n" + last("STOP"), `{"role":"model","parts":[{"functionCall":{"name":"go","args":{}},"thoughtSignature":"QQ=="},{"functionCall":{"name":"go","args":{}}}]}`},
		{"pictures", chunk(`{"inlineData":{"mimeType":"image/png","data":"AQI="},"thoughtSignature":"QQ=="}`, `}`) + "\n" + last("STOP"), `{"role":"model","parts":[{"inlineData":{"mimeType":"image/png","data":"AQI="},"thoughtSignature":"QQ=="}]}`},
	} {
		var bodies []string
		client := serve(t, "m", func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			bodies = append(bodies, string(body))
			io.WriteString(w, frames(row.stream))
		})
		messages := []mmsp.Message{mmsp.UserMessage(mmsp.Text("Hi"))}
		for range 2 {
			answer, err := mmsp.Collect(mmsp.NewClient(client).StreamingResponse(t.Context(), messages, nil))
			if err != nil {
				t.Fatal(err)
			}
			messages = append(messages, answer)
		}
		if want := `{"contents":[` + hi + `,` + row.want + `]}`; bodies[1] != want {
			t.Errorf("%s: sent\n%s\nwant\n%s", row.name, bodies[1], want)
		}
	}
}

// What goes with every request.
func TestHeaders(t *testing.T) {
	var got http.Header
	client := serve(t, "m", func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		if r.Method == http.MethodGet {
			io.WriteString(w, `{}`)
		} else {
			io.WriteString(w, frames(last("STOP")))
		}
	}, func(o *mmsp.Options) { o.DefaultHeaders = map[string]string{"X-App": "cli", "x-goog-api-key": "mine"} })
	for _, accept := range []string{"text/event-stream", ""} {
		if accept != "" {
			read(t, client)
		} else if _, err := client.ListModels(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got.Get("X-App") != "cli" || !slices.Equal(got["X-Goog-Api-Key"], []string{"the-key"}) || got.Get("Authorization") != "" || got.Get("Accept") != accept {
			t.Error(got)
		}
	}
}

// Vectors come in the order of the messages, over as many requests as it takes.
func TestEmbeddings(t *testing.T) {
	embed := func(t *testing.T, client *Client, n int) (vectors []string, stop string, err error) {
		messages := make([]mmsp.Message, n)
		for i := range messages {
			messages[i] = mmsp.UserMessage(mmsp.Text(fmt.Sprint(i)))
		}
		var grammar mmsp.GrammarChecker
		for event, err := range mmsp.NewClient(client).StreamingResponse(t.Context(), messages, nil) {
			if err != nil {
				return vectors, "", err
			}
			if err := grammar.Event(&event); err != nil {
				t.Fatal(err)
			}
			switch {
			case event.Type == mmsp.EventStop:
				stop = describe(event.FinishReason, event.Usage, event.StopDetail)
			case event.Item.Type == mmsp.EmbeddingDone:
				vectors = append(vectors, fmt.Sprint(event.Item.Embedding))
			}
		}
		return vectors, stop, grammar.End()
	}
	for _, row := range []struct {
		name, answer string
		n            int
		vectors      string
		stop         string // or what the error says
	}{
		{"a batch", `{"embeddings":[{"values":[1,-0.5]},{"values":[2e-3]},{}]}`, 3, "[1 -0.5] [0.002] []", "stop -/-/-/-"},
		{"counts of characters", `{"embeddings":[{"values":[1]}],"metadata":{"billableCharacterCount":7}}`, 1, "[1]", "stop -/7/-/-"},
		{"counts of tokens", `{"embeddings":[{"values":[1],"statistics":{"tokenCount":3,"truncated":false}},{"values":[2],"statistics":{"tokenCount":4.0}}],"metadata":{"billableCharacterCount":9}}`, 2, "[1] [2]", "stop -/7/-/-"},
		{"too few", `{"embeddings":[{"values":[1]}]}`, 2, "", "1 vectors for 2 contents"},
		{"too many", `{"embeddings":[{"values":[1]},{"values":[1]}]}`, 1, "", "2 vectors for 1 contents"},
		{"no answer", `{"error":{"message":"No."}}`, 1, "", "No."},
		{"a cut answer", `{"embeddings":[{"values":[1`, 1, "", "something else"},
		{"a page", `<html>`, 1, "", "something else"},
	} {
		t.Run(row.name, func(t *testing.T) {
			vectors, stop, err := embed(t, serve(t, "gemini-embedding-2", says(row.answer)), row.n)
			if err != nil {
				var failure *mmsp.UpstreamError
				if stop = ""; errors.As(err, &failure) && strings.Contains(failure.Error(), row.stop) {
					stop = row.stop
				}
			}
			if strings.Join(vectors, " ") != row.vectors || stop != row.stop {
				t.Errorf("%s %s (%v)", vectors, stop, err)
			}
		})
	}
	t.Run("in several requests", func(t *testing.T) {
		client := serve(t, "gemini-embedding-2", func(w http.ResponseWriter, r *http.Request) {
			var batch struct {
				Requests []struct {
					Content struct{ Parts []struct{ Text string } }
				}
			}
			if err := json.NewDecoder(r.Body).Decode(&batch); err != nil || r.URL.Path != "/v1beta/models/gemini-embedding-2:batchEmbedContents" {
				t.Error(err, r.URL)
			}
			var all []string
			for _, request := range batch.Requests {
				all = append(all, `{"values":[`+request.Content.Parts[0].Text+`]}`)
			}
			fmt.Fprintf(w, `{"embeddings":[%s],"usageMetadata":{"promptTokenCount":%d}}`, strings.Join(all, ","), len(all))
		})
		vectors, stop, err := embed(t, client, 150)
		if err != nil || len(vectors) != 150 || vectors[0] != "[0]" || vectors[149] != "[149]" || stop != "stop -/150/-/-" {
			t.Errorf("%d %s %v", len(vectors), stop, err)
		}
	})
	t.Run("on Vertex AI", func(t *testing.T) {
		var c cloud
		calls := 0
		client := build(t, "gemini-embedding-2", func(o *mmsp.Options) {
			o.APIKey = mmsp.NewSecret(serviceAccount(t))
			o.HTTPClient = &http.Client{Transport: transport(func(r *http.Request) (*http.Response, error) {
				if r.URL.Host == "token.test" {
					return c.RoundTrip(r)
				}
				body, _ := io.ReadAll(r.Body)
				calls++
				if want := fmt.Sprintf(`{"content":{"role":"user","parts":[{"text":"%d"}]}}`, calls-1); string(body) != want || !strings.HasSuffix(r.URL.Path, "/gemini-embedding-2:embedContent") {
					t.Errorf("%s %s", r.URL, body)
				}
				return reply(200, fmt.Sprintf(`{"embedding":{"values":[%d]},"usageMetadata":{"promptTokenCount":2},"truncated":false}`, calls)), nil
			})}
		})
		vectors, stop, err := embed(t, client, 2)
		if err != nil || strings.Join(vectors, " ") != "[1] [2]" || stop != "stop -/4/-/-" || c.tokens != 1 {
			t.Errorf("%s %s %v, %d tokens", vectors, stop, err, c.tokens)
		}
	})
}

// Models are listed page by page, by the last part of their names.
func TestListModels(t *testing.T) {
	pages := map[string]string{
		"":    `{"models":[{"name":"models/gemini-x","displayName":"X"},{"displayName":"nameless"},{"name":"gemini-y"}],"nextPageToken":"a+b"}`,
		"a+b": `{"publisherModels":[{"name":"publishers/google/models/gemini-z"},{"name":"odd/"}],"nextPageToken":"c"}`,
		"c":   `{}`,
	}
	client := serve(t, "m", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1beta/models" {
			t.Error(r.URL)
		}
		io.WriteString(w, pages[r.URL.Query().Get("pageToken")])
	})
	if ids, err := client.ListModels(t.Context()); err != nil || strings.Join(ids, ",") != "gemini-x,gemini-y,gemini-z" {
		t.Error(ids, err)
	}
	for name, handler := range map[string]http.HandlerFunc{
		"an error":    func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) },
		"a page":      says("<html>"),
		"a list":      says("[]"),
		"an echo":     says(`"the-key"`),
		"a cut page":  says(`{"models":[{"name":"models/x"}`),
		"no last one": says(`{"nextPageToken":"x"}`),
	} {
		var failure *mmsp.UpstreamError
		if ids, err := serve(t, "m", handler).ListModels(t.Context()); !errors.As(err, &failure) || strings.Contains(failure.Message, "the-key") {
			t.Error(name, ids, err)
		}
	}
}

// Keys and endpoints: the key of the environment goes only where the environment says.
func TestCredentials(t *testing.T) {
	environment := map[string]string{"GEMINI_API_KEY": "env-key", "GOOGLE_API_KEY": "other", "GOOGLE_APPLICATION_CREDENTIALS": "/tmp/x.json"}
	getenv := func(name string) string { return environment[name] }
	if _, err := New(mmsp.Options{Model: "m", BaseURL: "https://gw.test", Getenv: getenv}); err == nil || !strings.Contains(err.Error(), class) || !strings.Contains(err.Error(), "GEMINI_API_KEY") || strings.Contains(err.Error(), "env-key") {
		t.Error(err)
	}
	if c, err := New(mmsp.Options{Model: "m", Getenv: getenv}); err != nil || c.key.Reveal() != "env-key" {
		t.Error(err)
	}
	delete(environment, "GEMINI_API_KEY")
	if _, err := New(mmsp.Options{Model: "m", Getenv: getenv}); err == nil {
		t.Error("built without a key")
	}
}
