package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/big"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prism-shadow/mmsp-go"
)

// exceptions names recordings that a client type does not read as expected, each with a reason that its user would
// accept.
var exceptions = map[string]string{
	"zai-official/openai-chat/google-gemini-2.5-pro-preview-05-06-compatible-api-with-tool-calls-withou-t1-ns":      idless,
	"moonshot-official/openai-chat/google-gemini-2.5-pro-preview-05-06-compatible-api-with-tool-calls-withou-t1-ns": idless,
}

const idless = "a call of another vendor that comes without an id, which this one always gives"

// TestRecordings reads every recording with each client type of its protocol over HTTP, in every chunking.
func TestRecordings(t *testing.T) {
	recordings := load(t)
	known := map[string]bool{}
	for _, r := range recordings {
		for _, c := range clients {
			if c.reads(r) {
				known[c.name+"/"+r.path] = true
			}
		}
	}
	for excepted := range exceptions {
		if corpus(t) != "testdata" && !known[excepted] {
			t.Errorf("the exception %s names no recording", excepted)
		}
	}
	server, transport := replay(t, recordings)
	for _, c := range clients {
		for i, r := range recordings {
			if !c.reads(r) {
				continue
			}
			t.Run(c.name+"/"+r.path, func(t *testing.T) {
				t.Parallel()
				var whole outcome
				for _, chunking := range chunkings {
					provider := c.provider(t, server.URL+"/"+strconv.Itoa(i), chunked{transport, chunking.size})
					o := run(t.Context(), provider)
					if o.broken != nil {
						t.Errorf("%s: %v", chunking.name, o.broken)
					}
					if chunking.size == nil {
						whole = o
					} else if d := firstDifference(whole.dump(), o.dump()); d != "" {
						t.Errorf("%s: not the stream that it is in one piece: %s", chunking.name, d)
					}
				}
				differences := r.compare(&c, &whole)
				reason, excepted := exceptions[c.name+"/"+r.path]
				switch {
				case excepted && len(differences) == 0:
					t.Errorf("it reads as expected, though it is an exception: %s", reason)
				case excepted:
					t.Logf("exception: %s (%s)", reason, strings.Join(differences, "; "))
				default:
					for _, difference := range differences {
						t.Error(difference)
					}
				}
			})
		}
	}
}

// replay serves recording i to every request below /i.
func replay(t *testing.T, recordings []*recording) (*httptest.Server, *http.Transport) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		number, _, _ := strings.Cut(request.URL.Path[1:], "/")
		i, err := strconv.Atoi(number)
		if err != nil || i >= len(recordings) {
			http.NotFound(w, request)
			return
		}
		w.Header().Set("Content-Type", recordings[i].contentType())
		w.WriteHeader(recordings[i].status)
		w.Write(recordings[i].body)
	}))
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
	})
	return server, transport
}

// compare returns what differs between a public stream and what the recording says.
func (r *recording) compare(c *client, o *outcome) (differences []string) {
	want := r.expected
	if want == nil {
		return nil
	}
	differ := func(what string, want, got any) {
		differences = append(differences, fmt.Sprintf("%s:\nwant %.1000s\n got %.1000s", what, show(want), show(got)))
	}

	// How it ends.
	calls := slices.DeleteFunc(slices.Clone(want.Calls), func(call expectedCall) bool {
		// Tools with free input cannot be declared in this protocol, so that their calls are nobody's to answer.
		return call.RawArguments != nil && bytes.Contains(r.body, []byte(`"custom_tool_call"`))
	})
	unreadable := slices.IndexFunc(calls, func(call expectedCall) bool { return call.RawArguments != nil })
	finish, usage := r.finish(len(calls) > 0), c.usage(r)
	switch {
	case want.Error != nil:
		var failure *mmsp.UpstreamError
		if !errors.As(o.err, &failure) {
			differ("an UpstreamError", *want.Error, o.err)
		} else if status := r.status; status != http.StatusOK && failure.Status != status || !strings.Contains(failure.Message, *want.Error) {
			differ("the UpstreamError", fmt.Sprint(status, " ", *want.Error), fmt.Sprint(failure.Status, " ", failure.Message))
		}
	case finish == "" || usage == nil:
		if failure := (*mmsp.IncompleteStreamError)(nil); !errors.As(o.err, &failure) {
			differ("the end", "an IncompleteStreamError", o)
		}
	case unreadable >= 0:
		var failure *mmsp.ToolCallArgumentParseError
		if !errors.As(o.err, &failure) || failure.RawArguments != *calls[unreadable].RawArguments || failure.FinishReason != finish {
			differ("a ToolCallArgumentParseError", calls[unreadable], o)
		}
		calls = calls[:unreadable]
	case want.Text == "" && want.Refusal == "" && len(calls) == 0 && !slices.Contains(want.Others, "inlineData"):
		var failure *mmsp.EmptyResponseError
		if !errors.As(o.err, &failure) {
			differ("the end", "an EmptyResponseError", o)
		} else if failure.FinishReason != finish || !reflect.DeepEqual(failure.Usage, usage) {
			differ("the EmptyResponseError", &mmsp.Event{FinishReason: finish, Usage: usage}, &mmsp.Event{FinishReason: failure.FinishReason, Usage: failure.Usage})
		}
	case o.stop == nil:
		differ("the end", "a stop", o)
	case o.stop.FinishReason != finish || !reflect.DeepEqual(o.stop.Usage, usage):
		differ("the stop", &mmsp.Event{FinishReason: finish, Usage: usage}, &mmsp.Event{FinishReason: o.stop.FinishReason, Usage: o.stop.Usage})
	}

	// What it says, the deltas of an item that never ended included.
	var text, thinking, refusal, openText, openThinking string
	got := []mmsp.Item{}
	for i := range o.events {
		item := &o.events[i].Item
		switch item.Type {
		case mmsp.TextDelta:
			openText += item.Text
		case mmsp.ThinkingDelta:
			openThinking += item.Thinking
		case mmsp.TextDone:
			var fidelity struct{ Refusal bool }
			if item.Fidelity.Decode(&fidelity); fidelity.Refusal {
				refusal += item.Text
			} else {
				text += item.Text
			}
			openText = ""
		case mmsp.ThinkingDone:
			if item.Thinking != "_REDACTED_THINKING" {
				thinking += item.Thinking
			}
			openThinking = ""
		case mmsp.ToolCallDone:
			got = append(got, *item)
		}
	}
	for _, part := range []struct{ what, want, got string }{
		{"text", want.Text, text + openText},
		{"thinking", want.Thinking, thinking + openThinking},
		{"refusal", want.Refusal, refusal},
	} {
		if part.want != part.got {
			differ(part.what, part.want, part.got)
		}
	}
	if !slices.EqualFunc(calls, got, func(want expectedCall, got mmsp.Item) bool {
		return got.Name == want.Name && (want.ID == nil || *want.ID == "" || got.ToolCallID == *want.ID) && sameJSON(want.Arguments, []byte(got.Arguments))
	}) {
		differ("tool calls", calls, got)
	}
	return differences
}

// finish is the finish reason that a recording ends with, empty when it does not end.
func (r *recording) finish(called bool) mmsp.FinishReason {
	want := r.expected
	if want.Blocked != "" {
		return mmsp.FinishUnknown
	}
	if want.Finish == nil || *want.Finish == "" && r.stream {
		return ""
	}
	finish := r.protocol.finish(*want.Finish, want.Incomplete)
	switch {
	case finish == mmsp.FinishStop && called:
		return mmsp.FinishToolCall
	case finish == mmsp.FinishStop && want.Refusal != "":
		return mmsp.FinishUnknown
	}
	return finish
}

// sameJSON compares two JSON texts by value, numbers exactly.
func sameJSON(a, b []byte) bool {
	var left, right struct{ V object }
	wrap := func(text []byte) []byte { return slices.Concat([]byte(`{"v":{"v":`), text, []byte("}}")) }
	if json.Unmarshal(wrap(a), &left) != nil || json.Unmarshal(wrap(b), &right) != nil {
		return false
	}
	return sameValue(left.V["v"], right.V["v"])
}

func sameValue(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, sameValue)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, sameValue)
	case json.Number:
		b, ok := b.(json.Number)
		left, leftOK := new(big.Rat).SetString(string(a))
		right, rightOK := new(big.Rat).SetString(string(b))
		return ok && leftOK && rightOK && left.Cmp(right) == 0
	}
	return a == b
}

func show(v any) string {
	switch v := v.(type) {
	case *mmsp.Event:
		return string(v.AppendJSON(nil))
	case *outcome:
		return "…" + v.dump()[max(0, len(v.dump())-800):]
	case string:
		return strconv.Quote(v)
	case error:
		return fmt.Sprintf("%T: %v", v, v)
	}
	b, _ := json.Marshal(v)
	return string(b)
}
