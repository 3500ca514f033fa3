package generatecontent

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/ingress"
	"github.com/prism-shadow/mmsp-go/internal/carry"
	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

const hello = `{"contents":[{"parts":[{"text":"Hi"}]}]}`

// begin returns a call that has been read.
func begin(t testing.TB, peer carry.Peer, verb, body string) ingress.Call {
	t.Helper()
	call, err := parse("/v1beta/models/demo-1:"+verb, body)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := call.Read(context.Background(), &ingress.Env{Peer: peer, RequestID: "resp-a1"}); err != nil {
		t.Fatal(err)
	}
	return call
}

func deltas(items ...mmsp.Item) (events []mmsp.Event) {
	for _, item := range items {
		events = append(events, mmsp.Event{Type: mmsp.EventDelta, Item: item, CreatedAt: 1})
	}
	return events
}

func text(delta string) mmsp.Item     { return mmsp.Item{Type: mmsp.TextDelta, Text: delta} }
func thinking(delta string) mmsp.Item { return mmsp.Item{Type: mmsp.ThinkingDelta, Thinking: delta} }

func with(item mmsp.Item, fidelity string) mmsp.Item {
	item.Fidelity = mmsp.Fidelity(fidelity)
	return item
}

func stream(call ingress.Call, events []mmsp.Event, answer *mmsp.Message) string {
	var out []byte
	for i := range events {
		out = call.Event(out, &events[i])
	}
	return string(call.Stop(out, answer))
}

// chunks cuts the common parts of events away: what is left is the parts of a chunk, and what the last one says.
func chunks(t *testing.T, stream string) string {
	t.Helper()
	const head, tail = `data: {"candidates":[{"content":{"role":"model","parts":[`, `],"modelVersion":"demo-1","responseId":"resp-a1"`
	var out []string
	for chunk := range strings.SplitSeq(strings.TrimSuffix(stream, "\n\n"), "\n\n") {
		if !strings.HasPrefix(chunk, head) || !strings.Contains(chunk, tail) || jsonscan.Check([]byte(chunk[len("data: "):])) != nil {
			t.Fatalf("%q is no chunk", chunk)
		}
		chunk = strings.Replace(chunk[len(head):], tail, "", 1)
		out = append(out, strings.Replace(chunk, `]},"index":0}}`, "", 1))
	}
	return strings.Join(out, "\n")
}

func TestStream(t *testing.T) {
	const stop = `{"text":""}]},"finishReason":"STOP","index":0}}`
	sealed := func(kind, fidelity string) string {
		return envelope(carry.Envelope{Issuer: anthropic, Kind: kind, Fidelity: mmsp.Fidelity(fidelity)})
	}
	for _, c := range []struct {
		name   string
		peer   carry.Peer
		events []mmsp.Event
		want   string
	}{
		{"nothing", google, nil, stop},
		{
			"thinking, text", openai, deltas(thinking("Hm"), thinking(""), thinking("m."), mmsp.Thinking("Hmm."), text(""), text("H\"\n"), text("ü"), mmsp.Text("H\"\nü")),
			`{"text":"Hm","thought":true}` + "\n" + `{"text":"m.","thought":true}` + "\n" + `{"text":"H\"\n"}` + "\n" + `{"text":"ü"}` + "\n" + stop,
		},
		{"done alone", openai, deltas(mmsp.Thinking("T"), mmsp.Text("a")), `{"text":"T","thought":true}` + "\n" + `{"text":"a"}` + "\n" + stop},
		{
			"one text after another", openai, deltas(text("a"), mmsp.Text("a"), text(""), text("b"), mmsp.Text("b"), mmsp.Thinking("T"), mmsp.Thinking("U")),
			`{"text":"a"}` + "\n" + `{"text":""},{"text":"b"}` + "\n" + `{"text":"T","thought":true}` + "\n" + `{"text":"","thought":true},{"text":"U","thought":true}` + "\n" + stop,
		},
		{
			"a call", google, deltas(
				mmsp.Item{Type: mmsp.ToolCallDelta, ToolCallID: "call_1", Name: "get_weather"}, mmsp.Item{Type: mmsp.ToolCallDelta, Arguments: `{"city":`},
				with(mmsp.ToolCall("call_1", "get_weather", "{\"city\":\n \"Oslo\", \"n\": 1.50}"), `{"signature":"c2ln","issuer":"google"}`), mmsp.ToolCall("x", "f", "")),
			`{"functionCall":{"id":"call_1","name":"get_weather","args":{"city": "Oslo", "n": 1.50}},"thoughtSignature":"c2ln"}` + "\n" + `{"functionCall":{"id":"x","name":"f","args":{}}}` + "\n" + stop,
		},
		{
			"a signature at the end of a text", google, deltas(text("a"), with(mmsp.Text("a"), `{"signature":"c2ln"}`), with(text(""), `{"signature":"ZQ=="}`), with(mmsp.Text(""), `{"signature":"ZQ=="}`), with(mmsp.Text("b"), `{"signature":"Yg=="}`)),
			`{"text":"a"}` + "\n" + `{"text":"","thoughtSignature":"c2ln"}` + "\n" + `{"text":"","thoughtSignature":"ZQ=="}` + "\n" + `{"text":"b","thoughtSignature":"Yg=="}` + "\n" + stop,
		},
		{
			"a signature that is no base64", google, deltas(with(mmsp.Text("a"), `{"signature":"c2ln!"}`)),
			`{"text":"a","thoughtSignature":"` + envelope(carry.Envelope{Issuer: google, Kind: "text", Fidelity: mmsp.Fidelity(`{"signature":"c2ln!"}`)}) + `"}` + "\n" + stop,
		},
		{
			"proofs of another provider", anthropic, deltas(thinking("T"), with(mmsp.Thinking("T"), `{"signature":"s"}`), with(mmsp.ToolCall("x", "f", "{}"), `{"a":1}`)),
			`{"text":"T","thought":true}` + "\n" + `{"text":"","thought":true,"thoughtSignature":"` + sealed("thinking", `{"signature":"s"}`) + `"}` + "\n" +
				`{"functionCall":{"id":"x","name":"f","args":{}},"thoughtSignature":"` + sealed("tool_call", `{"a":1}`) + `"}` + "\n" + stop,
		},
		{
			"thinking that is not shown", anthropic, deltas(thinking("_RED"), thinking("ACTED_THINKING"), with(mmsp.Thinking(ingress.RedactedThinking), `{"signature":"s"}`), mmsp.Thinking(ingress.RedactedThinking), thinking("_RED"), thinking("!"), mmsp.Thinking("_RED!"), thinking("_"), mmsp.Thinking("_")),
			`{"text":"","thought":true,"thoughtSignature":"` + sealed(redactedKind, `{"signature":"s"}`) + `"}` + "\n" + `{"text":"_RED!","thought":true}` + "\n" + `{"text":"","thought":true},{"text":"_","thought":true}` + "\n" + stop,
		},
		{"a refusal and a phase prove nothing", anthropic, deltas(with(mmsp.Text("a"), `{"refusal":true,"phase":"commentary"}`)), `{"text":"a"}` + "\n" + stop},
		{
			"a phase of Responses", openai, deltas(with(mmsp.Text("a"), `{"phase":"commentary"}`)),
			`{"text":"a","thoughtSignature":"` + envelope(carry.Envelope{Issuer: openai, Kind: "text", Fidelity: mmsp.Fidelity(`{"phase":"commentary"}`)}) + `"}` + "\n" + stop,
		},
		{
			"pictures whole, sound as it comes", google, deltas(
				mmsp.Item{Type: mmsp.InlineDataDelta, MimeType: "image/png", Data: []byte("a")}, with(mmsp.InlineData([]byte("ab"), "image/png", ""), `{"signature":"c2ln"}`),
				mmsp.Item{Type: mmsp.InlineDataDelta, MimeType: "audio/L16;rate=24000", Data: []byte("a")}, mmsp.Item{Type: mmsp.InlineDataDelta, Data: []byte("b")}, mmsp.InlineData([]byte("ab"), "audio/L16;rate=24000", ""),
				mmsp.InlineData([]byte("c"), "audio/wav", ""), mmsp.Item{Type: mmsp.InlineThinkingDone, MimeType: "image/png", Data: []byte("t")}),
			`{"inlineData":{"mimeType":"image/png","data":"YWI="},"thoughtSignature":"c2ln"}` + "\n" +
				`{"inlineData":{"mimeType":"audio/L16;rate=24000","data":"YQ=="}}` + "\n" + `{"inlineData":{"mimeType":"audio/L16;rate=24000","data":"Yg=="}}` + "\n" +
				`{"inlineData":{"mimeType":"audio/wav","data":"Yw=="}}` + "\n" + `{"inlineData":{"mimeType":"image/png","data":"dA=="},"thought":true}` + "\n" + stop,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := chunks(t, stream(begin(t, c.peer, "streamGenerateContent?alt=sse", hello), c.events, &mmsp.Message{FinishReason: mmsp.FinishStop}))
			if got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestThoughtsUnwanted(t *testing.T) {
	call := begin(t, openai, "streamGenerateContent?alt=sse", `{"contents":[{"parts":[{"text":"Hi"}]}],"generationConfig":{"thinkingConfig":{"includeThoughts":false}}}`)
	events := deltas(text("a"), mmsp.Text("a"), thinking("T"), with(mmsp.Thinking("T"), `{"encrypted_content":"e"}`), mmsp.Item{Type: mmsp.InlineThinkingDone, MimeType: "image/png", Data: []byte("t")}, mmsp.Text("b"))
	want := `{"text":"a"}` + "\n" + `{"text":""},{"text":"b"}` + "\n" + `{"text":""}]},"finishReason":"STOP","index":0}}`
	if got := chunks(t, stream(call, events, &mmsp.Message{FinishReason: mmsp.FinishStop})); got != want {
		t.Error(got)
	}
}

func TestFraming(t *testing.T) {
	const chunk = `{"candidates":[{"content":{"role":"model","parts":[{"text":"a"}]},"index":0}],"modelVersion":"demo-1","responseId":"resp-a1"}`
	const last = `{"candidates":[{"content":{"role":"model","parts":[{"text":""}]},"finishReason":"STOP","index":0}],"modelVersion":"demo-1","responseId":"resp-a1","usageMetadata":{"promptTokenCount":15,"candidatesTokenCount":12,"thoughtsTokenCount":5,"cachedContentTokenCount":4,"totalTokenCount":32}}`
	const failure = `{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}`
	answer := &mmsp.Message{FinishReason: mmsp.FinishToolCall, Usage: &mmsp.Usage{CachedTokens: new(int64(4)), PromptTokens: new(int64(11)), ThoughtsTokens: new(int64(5)), ResponseTokens: new(int64(12))}}
	problem := &ingress.Problem{Kind: ingress.KindOverloaded, Status: 529, Message: "overloaded"}
	a := deltas(text("a"))[0]
	for _, c := range []struct {
		name   string
		write  func(call ingress.Call) []byte
		events string
		array  string
	}{
		{"text", func(call ingress.Call) []byte {
			out := call.Event(call.Heartbeat(nil), &a)
			return call.Stop(call.Event(call.Heartbeat(out), &a), answer)
		}, "\n\ndata: " + chunk + "\n\n\n\ndata: " + chunk + "\n\ndata: " + last + "\n\n", "\n\n[" + chunk + "\n\n,\n" + chunk + ",\n" + last + "]"},
		{"nothing", func(call ingress.Call) []byte { return call.Stop(nil, answer) }, "data: " + last + "\n\n", "[" + last + "]"},
		{"nothing to say first", func(call ingress.Call) []byte {
			return call.Stop(call.Event(nil, &deltas(text(""))[0]), answer)
		}, "data: " + last + "\n\n", "[" + last + "]"},
		{"failure at once", func(call ingress.Call) []byte { return call.Fail(nil, problem) }, "data: " + failure + "\n\n", "[" + failure + "]"},
		{"failure", func(call ingress.Call) []byte { return call.Fail(call.Event(nil, &a), problem) }, "data: " + chunk + "\n\ndata: " + failure + "\n\n", "[" + chunk + ",\n" + failure + "]"},
	} {
		if got := string(c.write(begin(t, google, "streamGenerateContent?alt=sse", hello))); got != c.events {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, got, c.events)
		}
		got := string(c.write(begin(t, google, "streamGenerateContent", hello)))
		if got != c.array {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, got, c.array)
		}
		if err := jsonscan.Check([]byte(got)); err != nil {
			t.Error(c.name, err)
		}
	}
}

func TestWhole(t *testing.T) {
	const about = `,"index":0}],"modelVersion":"demo-1","responseId":"resp-a1"`
	for _, c := range []struct {
		name   string
		answer mmsp.Message
		want   string
	}{
		{
			"items",
			mmsp.Message{FinishReason: mmsp.FinishToolCall, ContentItems: []mmsp.Item{mmsp.Thinking("T"), mmsp.Text("a"), mmsp.Text("b"), mmsp.ToolCall("x", "f", `{"a":1}`), mmsp.ToolCall("y", "f", "")}},
			`{"text":"T","thought":true},{"text":"a"},{"text":""},{"text":"b"},{"functionCall":{"id":"x","name":"f","args":{"a":1}}},{"functionCall":{"id":"y","name":"f","args":{}}}]},"finishReason":"STOP"` + about + `}`,
		},
		{
			"a call that was cut",
			mmsp.Message{FinishReason: mmsp.FinishLength, ContentItems: []mmsp.Item{mmsp.Text("a"), {Type: mmsp.ToolCallDelta, ToolCallID: "x", Name: "f", Arguments: `{"a`}}},
			`{"text":"a"}]},"finishReason":"MAX_TOKENS"` + about + `}`,
		},
		{
			"only a call that was cut",
			mmsp.Message{FinishReason: mmsp.FinishLength, ContentItems: []mmsp.Item{{Type: mmsp.ToolCallDelta, ToolCallID: "x", Name: "f"}}},
			`{"text":""}]},"finishReason":"MAX_TOKENS"` + about + `}`,
		},
		{
			"filtered",
			mmsp.Message{FinishReason: mmsp.FinishUnknown, StopDetail: &mmsp.StopDetail{Kind: "filter", Text: "not so"}, Usage: &mmsp.Usage{}},
			`{"text":""}]},"finishReason":"SAFETY","finishMessage":"not so"` + about + `}`,
		},
		{
			"some counts",
			mmsp.Message{FinishReason: mmsp.FinishStop, Usage: &mmsp.Usage{ResponseTokens: new(int64(3))}},
			`{"text":""}]},"finishReason":"STOP"` + about + `,"usageMetadata":{"promptTokenCount":0,"candidatesTokenCount":3,"totalTokenCount":3}}`,
		},
	} {
		got := string(begin(t, openai, "generateContent", hello).Whole(nil, &c.answer))
		if want := partsHead + c.want; got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, got, want)
		}
	}
}

// TestBlocked: a prompt that was stopped has no candidate, unless something was answered.
func TestBlocked(t *testing.T) {
	const about = `,"modelVersion":"demo-1","responseId":"resp-a1"`
	stopped := func(text string, prompt bool) mmsp.Message {
		return mmsp.Message{FinishReason: mmsp.FinishUnknown, StopDetail: &mmsp.StopDetail{Kind: "filter", Text: text, Prompt: prompt}}
	}
	counted, answered := stopped("PROHIBITED_CONTENT", true), stopped("PROHIBITED_CONTENT", true)
	counted.Usage = &mmsp.Usage{PromptTokens: new(int64(13))}
	answered.ContentItems = []mmsp.Item{mmsp.Text("a")}
	for _, c := range []struct {
		answer mmsp.Message
		want   string
	}{
		{counted, `{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"}` + about + `,"usageMetadata":{"promptTokenCount":13,"totalTokenCount":13}}`},
		{stopped("not so", true), `{"promptFeedback":{"blockReason":"SAFETY","blockReasonMessage":"not so"}` + about + `}`},
		{stopped("", true), `{"promptFeedback":{"blockReason":"SAFETY"}` + about + `}`},
		{stopped("PROHIBITED_CONTENT", false), partsHead + `{"text":""}]},"finishReason":"PROHIBITED_CONTENT","index":0}]` + about + `}`},
		{answered, partsHead + `{"text":"a"}]},"finishReason":"PROHIBITED_CONTENT","index":0}]` + about + `}`},
	} {
		if got := string(begin(t, google, "generateContent", hello).Whole(nil, &c.answer)); got != c.want {
			t.Errorf("got\n%s\nwant\n%s", got, c.want)
		}
		last := strings.Replace(c.want, `{"text":"a"}`, `{"text":""}`, 1)
		events := stream(begin(t, google, "streamGenerateContent?alt=sse", hello), deltas(c.answer.ContentItems...), &c.answer)
		array := stream(begin(t, google, "streamGenerateContent", hello), deltas(c.answer.ContentItems...), &c.answer)
		if !strings.HasSuffix(events, "data: "+last+"\n\n") || !strings.HasSuffix(array, last+"]") {
			t.Errorf("got\n%s\n%s\nwant\n%s", events, array, last)
		}
	}
}

func TestFinish(t *testing.T) {
	for _, c := range []struct {
		finish mmsp.FinishReason
		detail *mmsp.StopDetail
		want   string
	}{
		{mmsp.FinishStop, nil, "STOP "},
		{mmsp.FinishStop, &mmsp.StopDetail{Kind: "stop_sequence", Text: "###"}, "STOP "},
		{mmsp.FinishStop, &mmsp.StopDetail{Kind: "refusal"}, "SAFETY "},
		{mmsp.FinishToolCall, nil, "STOP "},
		{mmsp.FinishLength, nil, "MAX_TOKENS "},
		{mmsp.FinishUnknown, nil, "OTHER "},
		{mmsp.FinishUnknown, &mmsp.StopDetail{Kind: "filter", Text: "RECITATION"}, "RECITATION "},
		{mmsp.FinishUnknown, &mmsp.StopDetail{Kind: "filter", Text: "bad words"}, "SAFETY bad words"},
		{mmsp.FinishUnknown, &mmsp.StopDetail{Kind: "refusal", Text: "no"}, "SAFETY no"},
		{mmsp.FinishUnknown, &mmsp.StopDetail{Kind: "context"}, "MAX_TOKENS "},
		{mmsp.FinishUnknown, &mmsp.StopDetail{Kind: "pause"}, "OTHER "},
		{mmsp.FinishUnknown, &mmsp.StopDetail{Kind: "malformed_call"}, "MALFORMED_FUNCTION_CALL "},
		{mmsp.FinishUnknown, &mmsp.StopDetail{Kind: "malformed_call", Text: "UNEXPECTED_TOOL_CALL"}, "UNEXPECTED_TOOL_CALL "},
	} {
		reason, message := finish(&mmsp.Message{FinishReason: c.finish, StopDetail: c.detail})
		if got := reason + " " + message; got != c.want {
			t.Errorf("%s %+v: %q, want %q", c.finish, c.detail, got, c.want)
		}
	}
}

func TestCountAndVectors(t *testing.T) {
	if got := string(begin(t, google, "countTokens", hello).Count(nil, 31)); got != `{"totalTokens":31}` {
		t.Error(got)
	}
	answer := &mmsp.Message{Usage: &mmsp.Usage{PromptTokens: new(int64(7))}, ContentItems: []mmsp.Item{
		{Type: mmsp.EmbeddingDone, Embedding: []float64{0.25, -1e-9, 3}}, {Type: mmsp.EmbeddingDone, Embedding: []float64{}},
	}}
	const batch = `{"requests":[{"content":{"parts":[{"text":"a"}]}},{"content":{"parts":[{"text":"b"}]}}]}`
	if got := string(begin(t, google, "batchEmbedContents", batch).Whole(nil, answer)); got != `{"embeddings":[{"values":[0.25,-1e-09,3]},{"values":[]}],"usageMetadata":{"promptTokenCount":7}}` {
		t.Error(got)
	}
	answer.Usage = nil
	if got := string(begin(t, google, "embedContent", `{"content":{"parts":[{"text":"a"}]}}`).Whole(nil, answer)); got != `{"embedding":{"values":[0.25,-1e-09,3]}}` {
		t.Error(got)
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		problem ingress.Problem
		want    string
	}{
		{
			ingress.Problem{Kind: ingress.KindInvalid, Status: 400, Message: "a \"string\" is wanted", Param: "contents[0]"},
			`{"error":{"code":400,"message":"contents[0]: a \"string\" is wanted","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"contents[0]","description":"a \"string\" is wanted"}]}]}}`,
		},
		{
			ingress.Problem{Kind: ingress.KindRateLimit, Status: 429, Message: "slow down", RetryAfter: 1500 * time.Millisecond, RequestID: "req-1"},
			`{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"1.5s"},{"@type":"type.googleapis.com/google.rpc.RequestInfo","requestId":"req-1"}]}}`,
		},
		{ingress.Problem{Kind: ingress.KindUnauthorized}, `{"error":{"code":401,"message":"UNAUTHENTICATED","status":"UNAUTHENTICATED"}}`},
		{ingress.Problem{Kind: ingress.KindBilling, Status: 402, Message: "m"}, `{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED"}}`},
		{ingress.Problem{Kind: ingress.KindForbidden, Message: "m"}, `{"error":{"code":403,"message":"m","status":"PERMISSION_DENIED"}}`},
		{ingress.Problem{Kind: ingress.KindUnknownModel, Message: "m"}, `{"error":{"code":404,"message":"m","status":"NOT_FOUND"}}`},
		{ingress.Problem{Kind: ingress.KindMethod, Message: "m"}, `{"error":{"code":405,"message":"m","status":"UNIMPLEMENTED"}}`},
		{ingress.Problem{Kind: ingress.KindTooLarge, Status: 413, Message: "m"}, `{"error":{"code":413,"message":"m","status":"INVALID_ARGUMENT"}}`},
		{ingress.Problem{Kind: ingress.KindConflict, Message: "m"}, `{"error":{"code":409,"message":"m","status":"ABORTED"}}`},
		{ingress.Problem{Kind: ingress.KindTimeout, Message: "m"}, `{"error":{"code":504,"message":"m","status":"DEADLINE_EXCEEDED"}}`},
		{ingress.Problem{Kind: ingress.KindUpstream, Status: 502, Message: "m"}, `{"error":{"code":502,"message":"m","status":"INTERNAL"}}`},
	} {
		if got := string(New().AppendError(nil, &c.problem)); got != c.want {
			t.Errorf("got\n%s\nwant\n%s", got, c.want)
		}
	}
}

func TestModels(t *testing.T) {
	models := []Model{{ID: "embedder"}, {ID: "b/c", InputTokens: 1 << 20}, {ID: "text", Embeds: true}}
	var got []string
	for token := "-"; token != ""; {
		query := url.Values{"pageSize": {"2"}}
		if token != "-" {
			query.Set("pageToken", token)
		}
		page, err := AppendModels(nil, models, query)
		if err != nil {
			t.Fatal(err)
		}
		var list struct {
			Models []struct {
				Name    string
				Input   int64    `json:"inputTokenLimit"`
				Methods []string `json:"supportedGenerationMethods"`
			}
			NextPageToken string
		}
		if err := json.Unmarshal(page, &list); err != nil {
			t.Fatal(err)
		}
		for _, m := range list.Models {
			got = append(got, m.Name, strconv.FormatInt(m.Input, 10), m.Methods[0])
		}
		got, token = append(got, "|"), list.NextPageToken
	}
	if want := "models/embedder 0 generateContent models/b/c 1048576 generateContent | models/text 0 embedContent |"; strings.Join(got, " ") != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, query := range []string{"pageSize=-1", "pageSize=x", "pageToken=%25", "page_token=" + base64.RawURLEncoding.EncodeToString([]byte("gone"))} {
		values, _ := url.ParseQuery(query)
		if _, err := AppendModels(nil, models, values); err == nil {
			t.Error(query)
		}
	}
	if all, err := AppendModels(nil, nil, nil); err != nil || string(all) != `{"models":[]}` {
		t.Errorf("%s %v", all, err)
	}
}

// replay reads an answer as the chat of Google's library would send it back: every chunk's content is a turn of the history.
func replay(t *testing.T, peer carry.Peer, answer string) []mmsp.Item {
	t.Helper()
	var contents []json.RawMessage
	add := func(chunk string) {
		var c struct {
			Candidates []struct{ Content json.RawMessage }
		}
		if err := json.Unmarshal([]byte(chunk), &c); err != nil {
			t.Fatal(err)
		}
		contents = append(contents, c.Candidates[0].Content)
	}
	if strings.HasPrefix(answer, "data: ") {
		for chunk := range strings.SplitSeq(strings.TrimSpace(answer), "\n\n") {
			add(strings.TrimPrefix(chunk, "data: "))
		}
	} else {
		add(answer)
	}
	history, _ := json.Marshal(contents)
	request, err := read(peer, "/v1beta/models/m:generateContent", fmt.Sprintf(`{"contents":[{"parts":[{"text":"q"}]},%s`, history[1:])+`}`)
	if err != nil {
		t.Fatal(err)
	}
	if len(request.Messages) < 2 {
		return nil
	}
	return request.Messages[1].ContentItems
}

func TestRoundTrip(t *testing.T) {
	picture := mmsp.InlineData([]byte("p"), "image/png", "")
	thoughtPicture := picture
	thoughtPicture.Type = mmsp.InlineThinkingDone
	for _, c := range []struct {
		name  string
		peer  carry.Peer
		items []mmsp.Item
	}{
		{"native", google, []mmsp.Item{
			mmsp.Thinking("a"), mmsp.Thinking("b"), with(mmsp.Thinking("c"), `{"signature":"Yw=="}`), mmsp.Text("d"), with(mmsp.Text("e"), `{"signature":"ZQ=="}`), with(mmsp.Text(""), `{"signature":"Zg=="}`), mmsp.Text("g"),
			with(mmsp.ToolCall("x", "f", `{"n":1.50}`), `{"signature":"eA=="}`), mmsp.ToolCall("y", "f", `{}`), with(picture, `{"signature":"cA=="}`), thoughtPicture,
			with(mmsp.Text("another gateway's"), `{"signature":"`+envelope(carry.Envelope{Kind: "text"})+`"}`), with(mmsp.Text("more"), `{"signature":"bQ==","more":1}`),
		}},
		{"enveloped", anthropic, []mmsp.Item{
			with(mmsp.Thinking("a"), `{"signature":"s","issuer":"anthropic"}`), with(mmsp.Thinking(ingress.RedactedThinking), `{"signature":"r"}`), mmsp.Thinking("b"), with(mmsp.Thinking(ingress.RedactedThinking), `{"signature":"r2"}`),
			with(mmsp.Thinking(""), `{"signature":"only"}`), mmsp.Text("c"), with(mmsp.Text("d"), `{"x":1}`), mmsp.Text("e"), mmsp.Text("f"), with(mmsp.ToolCall("x", "f", `{}`), `{"y":[1]}`), with(picture, `{"z":null}`),
		}},
		{"encrypted", openai, []mmsp.Item{with(mmsp.Thinking(""), `{"encrypted_content":"e"}`), with(mmsp.Text("a"), `{"phase":"commentary"}`), mmsp.ToolCall("x", "f", `{}`)}},
	} {
		answer := &mmsp.Message{FinishReason: mmsp.FinishStop, ContentItems: c.items}
		var events []mmsp.Event
		for _, item := range c.items {
			switch done := item; item.Type {
			case mmsp.TextDone:
				for _, r := range item.Text {
					events = append(events, deltas(text(string(r)))...)
				}
				events = append(events, deltas(done)...)
			case mmsp.ThinkingDone:
				for _, r := range item.Thinking {
					events = append(events, deltas(thinking(string(r)))...)
				}
				events = append(events, deltas(done)...)
			default:
				events = append(events, deltas(done)...)
			}
		}
		for _, written := range []string{
			stream(begin(t, c.peer, "streamGenerateContent?alt=sse", hello), events, answer),
			stream(begin(t, c.peer, "streamGenerateContent?alt=sse", hello), deltas(c.items...), answer),
			string(begin(t, c.peer, "generateContent", hello).Whole(nil, answer)),
		} {
			got := replay(t, c.peer, written)
			if len(got) != len(c.items) {
				t.Errorf("%s: got %d items of %d from\n%s", c.name, len(got), len(c.items), written)
				continue
			}
			for i := range got {
				if !reflect.DeepEqual(got[i], c.items[i]) {
					t.Errorf("%s: item %d: got %+v, want %+v", c.name, i, got[i], c.items[i])
				}
			}
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(0, hello)
	f.Add(1, `{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f","args":{}},"thoughtSignature":"bW1zcDEu"},{"text":"a","thought":true}]},{"parts":[{"functionResponse":{"name":"f","response":{"result":"r"}}}]}]}`)
	f.Add(2, `{"generateContentRequest":{"contents":{"parts":{"inlineData":{"mimeType":"image/png","data":"AA=="}}},"generationConfig":{"responseSchema":{"type":"OBJECT","nullable":true,"anyOf":[{}],"properties":{"a":{"minItems":"1"}}}}}}`)
	f.Add(3, `{"requests":[{"content":{"parts":[{"text":"a"}]},"outputDimensionality":3}]}`)
	f.Add(4, `{"content":{"parts":[{"file_data":{"file_uri":"https://a/b.png"}}]}}`)
	f.Fuzz(func(t *testing.T, verb int, body string) {
		if jsonscan.Check([]byte(body)) != nil {
			return
		}
		verbs := []string{verbGenerate, verbStream, verbCount, verbBatchEmbed, verbEmbed}
		for _, peer := range []carry.Peer{google, anthropic} {
			request, err := read(peer, "/v1beta/models/m:"+verbs[uint(verb)%uint(len(verbs))], body)
			if err != nil {
				continue
			}
			if err := mmsp.Validate(request.Messages); err != nil {
				t.Fatal(err)
			}
			for i, message := range request.Messages {
				if len(message.ContentItems) == 0 || len(message.ContentItems) != len(request.Paths[i]) {
					t.Fatalf("message %d has %d items and %d paths", i, len(message.ContentItems), len(request.Paths[i]))
				}
			}
			if len(request.ToolPaths) != len(request.Config.Tools) {
				t.Fatal("the tools have other paths")
			}
			for _, tool := range request.Config.Tools {
				if tool.Parameters != nil && jsonscan.Check(tool.Parameters) != nil {
					t.Fatalf("%s is no JSON", tool.Parameters)
				}
			}
			if format := request.Config.ResponseFormat; format != nil && format.Schema != nil && jsonscan.Check(format.Schema) != nil {
				t.Fatalf("%s is no JSON", format.Schema)
			}
		}
	})
}

// FuzzWrite writes items as their bytes say and reads the answer back.
func FuzzWrite(f *testing.F) {
	f.Add([]byte("0ab1cd2e3f"), "text", `{"signature":"c2ln"}`)
	f.Add([]byte("4a5b0c"), "_REDACTED_THINKING", `{"a":"b"}`)
	f.Fuzz(func(t *testing.T, plan []byte, words, fidelity string) {
		if jsonscan.Check([]byte(fidelity)) != nil || fidelity[0] != '{' || len(plan) > 64 {
			fidelity = ""
		}
		words = strings.ToValidUTF8(words, "")
		var items []mmsp.Item
		var events []mmsp.Event
		for i, b := range plan {
			var item mmsp.Item
			switch b % 6 {
			case 0, 1:
				item = mmsp.Text(words)
			case 2:
				item = mmsp.Thinking(words)
			case 3:
				item = mmsp.ToolCall(fmt.Sprint("call", i), "f", `{"a": "`+"\\n"+`"}`)
			case 4:
				item = mmsp.InlineData([]byte("x"), "image/png", "")
			case 5:
				item = mmsp.InlineData([]byte("xy"), "audio/wav", "")
			}
			if b&64 != 0 {
				item.Fidelity = mmsp.Fidelity(fidelity)
			}
			if b&32 != 0 {
				delta := item
				delta.Type, delta.Fidelity = mmsp.ItemType(item.Type.Kind()+".delta"), nil
				events = append(events, deltas(delta)...)
			}
			events = append(events, deltas(item)...)
			items = append(items, item)
		}
		answer := &mmsp.Message{FinishReason: mmsp.FinishStop, ContentItems: items}
		for _, peer := range []carry.Peer{google, openai} {
			written := stream(begin(t, peer, "streamGenerateContent?alt=sse", hello), events, answer)
			_ = chunks(t, written)
			streamed := replay(t, peer, written)
			whole := replay(t, peer, string(begin(t, peer, "generateContent", hello).Whole(nil, answer)))
			if !reflect.DeepEqual(streamed, whole) && !strings.Contains(fmt.Sprint(events), "audio") {
				t.Fatalf("streamed %+v, whole %+v", streamed, whole)
			}
			if err := jsonscan.Check([]byte(stream(begin(t, peer, "streamGenerateContent", hello), events, answer))); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func BenchmarkEvent(b *testing.B) {
	call := begin(b, google, "streamGenerateContent?alt=sse", hello)
	event := deltas(text("some words of text"))[0]
	buffer := make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		buffer = call.Event(buffer[:0], &event)
	}
}
