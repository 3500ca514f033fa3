package mmsp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"time"

	. "github.com/prism-shadow/mmsp-go"
)

type Timeout9 struct{ text string }

func (e Timeout9) Error() string { return e.text }

func TestErrorsOnTheWire(t *testing.T) {
	wire := `{"type":"EmptyResponseError","message":"m","client":"OpenaiChatClient","later":[ 1.50,9007199254740993 ]}`
	for _, c := range []struct {
		err  error
		want string
	}{
		{
			&UnsupportedParameterError{Client: "OpenAIOfficialClient", Parameter: "temperature", Message: "no <temperature>"},
			`{"type":"UnsupportedParameterError","message":"no <temperature>","client":"OpenAIOfficialClient","parameter":"temperature"}`,
		},
		{
			&UnsupportedOperationError{Client: "C", Operation: "list_models", Message: "no list"},
			`{"type":"UnsupportedOperationError","message":"no list","client":"C","operation":"list_models"}`,
		},
		{
			&EmptyResponseError{
				Client: "OpenaiChatClient", FinishReason: FinishLength,
				Usage: &Usage{PromptTokens: new(int64(7)), ThoughtsTokens: new(int64(40)), ResponseTokens: new(int64(0))},
			},
			`{"type":"EmptyResponseError","message":"OpenaiChatClient returned no content other than thinking (finish reason \"length\")","client":"OpenaiChatClient",` +
				`"finish_reason":"length","usage_metadata":{"cached_tokens":null,"prompt_tokens":7,"thoughts_tokens":40,"response_tokens":0}}`,
		},
		{
			&EmptyResponseError{Client: "C", FinishReason: FinishUnknown, StopDetail: &StopDetail{Kind: "refusal", Text: "nein"}},
			`{"type":"EmptyResponseError","message":"C returned no content other than thinking (finish reason \"unknown\"): refusal: nein","client":"C",` +
				`"finish_reason":"unknown","usage_metadata":null,"stop_detail":{"kind":"refusal","text":"nein"}}`,
		},
		{
			&IncompleteStreamError{Client: "C", Reason: "no usage arrived", Err: io.ErrUnexpectedEOF},
			`{"type":"IncompleteStreamError","message":"the stream of C ended early: no usage arrived: unexpected EOF","client":"C"}`,
		},
		// The wire has the detail without the sentence around it.
		{&StreamProtocolError{Client: "C", Detail: "a detail"}, `{"type":"StreamProtocolError","message":"a detail","client":"C"}`},
		{
			&ToolCallArgumentParseError{Client: "OpenaiChatClient", ToolName: "f", ToolCallID: "c1", RawArguments: `{"q":`, Reason: "cut"},
			`{"type":"ToolCallArgumentParseError","message":"OpenaiChatClient returned a tool call with unreadable arguments (tool=f, tool_call_id=c1, length=5, preview=\"{\\\"q\\\":\"): cut",` +
				`"client":"OpenaiChatClient","tool_name":"f","tool_call_id":"c1","raw_arguments_length":5,"raw_arguments_preview":"{\"q\":","finish_reason":null,"usage_metadata":null}`,
		},
		{
			&UpstreamError{
				Client: "C", Message: "ü", Status: 429, ErrorType: "rate_limit", Code: "slow_down", Param: "model", RequestID: "r1", RetryAfter: 1500 * time.Millisecond,
				Object: json.RawMessage("{\"message\":\"ü\",\n\"n\":9007199254740993}"), Err: io.EOF,
			},
			`{"type":"UpstreamError","message":"ü","client":"C","status":429,"error_type":"rate_limit","code":"slow_down","param":"model","request_id":"r1",` +
				`"retry_after_ms":1500,"error":{"message":"ü", "n":9007199254740993}}`,
		},
		{&UpstreamError{Client: "C", Message: "m", Object: json.RawMessage(`{"cut`)}, `{"type":"UpstreamError","message":"m","client":"C"}`},
		{&UpstreamError{Client: "C", Status: 502}, `{"type":"UpstreamError","message":"the provider reported an error (HTTP 502)","client":"C","status":502}`},
		// The next hop gets what this one got.
		{&UpstreamError{Client: "MmspClient", Message: "m", Status: 500, Wire: json.RawMessage(wire)}, wire},
		{&UpstreamError{Client: "MmspClient", Message: "m", Wire: json.RawMessage("{\"type\":\r\n\"X\"}")}, `{"type":  "X"}`},
		{&UpstreamError{Client: "MmspClient", Message: "m", Wire: json.RawMessage(`{"type`)}, `{"type":"UpstreamError","message":"m","client":"MmspClient"}`},
		{&InvalidRequestError{Param: "messages[0].role", Message: "no role"}, `{"type":"InvalidRequestError","message":"messages[0].role: no role","param":"messages[0].role"}`},
		{&InvalidRequestError{Message: "no JSON"}, `{"type":"InvalidRequestError","message":"no JSON"}`},
		{&AuthenticationError{Message: "no key"}, `{"type":"AuthenticationError","message":"no key"}`},
		{&NotFoundError{Message: "no model"}, `{"type":"NotFoundError","message":"no model"}`},

		{Timeout9{"gone"}, `{"type":"Timeout9","message":"gone"}`},
		{&Timeout9{"gone"}, `{"type":"Timeout9","message":"gone"}`},
		{Timeout9{}, `{"type":"Timeout9","message":"Timeout9"}`},
		{errors.New("plain"), `{"type":"Error","message":"plain"}`},
		{context.Canceled, `{"type":"Error","message":"context canceled"}`},
		{fmt.Errorf("reading: %w", io.EOF), `{"type":"Error","message":"reading: EOF"}`},
		{errors.Join(io.EOF, io.ErrClosedPipe), `{"type":"Error","message":"EOF\nio: read/write on closed pipe"}`},
		{&url.Error{Op: "Get", URL: "https://x.test", Err: io.EOF}, `{"type":"Error","message":"Get \"https://x.test\": EOF"}`},
	} {
		want := `x{"error":` + c.want + `}`
		for _, err := range []error{c.err, fmt.Errorf("wrapped: %w", c.err)} {
			got := string(AppendErrorJSON([]byte("x"), err))
			if plain := strings.Contains(want, `"type":"Error"`) || strings.Contains(want, "Timeout9"); plain && err != c.err {
				continue
			}
			if got != want || strings.ContainsAny(got, "\r\n") || !json.Valid([]byte(got[1:])) {
				t.Errorf("%T: got\n  %s\nwant\n  %s", err, got, want)
			}
		}
	}
}

func TestErrorsAreFound(t *testing.T) {
	upstream := &UpstreamError{Message: "m", Err: io.ErrUnexpectedEOF}
	err := fmt.Errorf("a: %w", &IncompleteStreamError{Client: "C", Err: fmt.Errorf("b: %w", upstream)})
	var incomplete *IncompleteStreamError
	var found *UpstreamError
	if !errors.As(err, &incomplete) || !errors.As(err, &found) || found != upstream || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v, %v", incomplete, found)
	}
	if got := string(AppendErrorJSON(nil, err)); !strings.Contains(got, `"type":"IncompleteStreamError"`) {
		t.Errorf("got %s", got)
	}
}

func TestErrorTexts(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{&StreamProtocolError{Client: "C", Detail: "d"}, "C broke the streaming protocol: d"},
		{&UpstreamError{Message: "m", Status: 400, ErrorType: "t", Code: "c", RequestID: "r"}, "m (HTTP 400, t, c, request r)"},
		{&UpstreamError{Message: "m"}, "m"},
		{&InvalidRequestError{Param: "a.b", Message: "m"}, "a.b: m"},
		{&IncompleteStreamError{Client: "C", Reason: "r"}, "the stream of C ended early: r"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
	}
}

func TestArgumentPreview(t *testing.T) {
	for _, c := range []struct {
		raw, want string
		length    int
	}{
		{"", "", 0},
		{strings.Repeat("ü", 160), strings.Repeat("ü", 160), 160},
		{
			strings.Repeat("a", 71) + "日" + strings.Repeat("x", 17) + "本" + strings.Repeat("ü", 71),
			strings.Repeat("a", 71) + "日...[truncated]...本" + strings.Repeat("ü", 71), 161,
		},
	} {
		var got struct {
			Error struct {
				Length  int    `json:"raw_arguments_length"`
				Preview string `json:"raw_arguments_preview"`
			}
		}
		if err := json.Unmarshal(AppendErrorJSON(nil, &ToolCallArgumentParseError{RawArguments: c.raw}), &got); err != nil {
			t.Fatal(err)
		}
		if got.Error.Preview != c.want || got.Error.Length != c.length {
			t.Errorf("got %d characters, %q, want %d, %q", got.Error.Length, got.Error.Preview, c.length, c.want)
		}
	}
	long := &ToolCallArgumentParseError{RawArguments: strings.Repeat("日", 1<<20)}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	message := long.Error()
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 64<<10 {
		t.Errorf("%d bytes are allocated for a message of %d", took, len(message))
	}
}

func TestSecretDoesNotPrint(t *testing.T) {
	secret := NewSecret("sk-canary")
	options := Options{APIKey: secret}
	asJSON, err := json.Marshal(map[string]any{"a": secret, "b": &secret})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		fmt.Sprint(secret), fmt.Sprintf("%v %+v %#v %s %q %x %d", secret, secret, secret, secret, secret, secret, secret),
		fmt.Sprintf("%v %+v %#v", options, options, &options), string(asJSON), secret.LogValue().String(),
	} {
		if strings.Contains(text, "canary") || strings.Contains(text, fmt.Sprintf("%x", "canary")) {
			t.Errorf("got %s", text)
		}
	}
	if secret.Reveal() != "sk-canary" || secret.IsZero() || !NewSecret("").IsZero() {
		t.Error("the secret is lost")
	}
}
