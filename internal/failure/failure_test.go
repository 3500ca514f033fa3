package failure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/internal/upstream"
)

// TestRetryInfo: Google says in the error, not in a header, how long to wait.
func TestRetryInfo(t *testing.T) {
	const body = `{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED","details":[1,{"@type":"x","a":{"retryDelay":"1s"}},{"retryDelay":%s}]}}`
	for delay, want := range map[string]time.Duration{`"7.5s"`: 7500 * time.Millisecond, `"-7s"`: 0, `7`: 0, `"soon"`: 0, `null`: 0} {
		e := Event("C", fmt.Appendf(nil, body, delay))
		if e.RetryAfter != want || e.Message != "m" || e.Status != 429 {
			t.Errorf("%s: %+v", delay, e)
		}
		var status *mmsp.UpstreamError
		header := &upstream.StatusError{Status: 429, Body: fmt.Appendf(nil, body, delay), RetryAfter: time.Second}
		if !errors.As(Upstream("C", header), &status) || status.RetryAfter != time.Second {
			t.Errorf("%s: the header is not believed: %+v", delay, status)
		}
	}
}

// TestErrorCode: Anthropic has the code among the details.
func TestErrorCode(t *testing.T) {
	e := Event("C", []byte(`{"type":"error","error":{"details":{"error_visibility":"user","error_code":"region"},"type":"permission_error","message":"m"},"request_id":"r"}`))
	if e.Code != "region" || e.ErrorType != "permission_error" || e.Message != "m" || e.RequestID != "r" {
		t.Errorf("%+v", e)
	}
}

func TestUpstream(t *testing.T) {
	huge := `{"error":{"message":"` + strings.Repeat("é", 100_000) + `","code":"big"}}`
	for _, tt := range []struct {
		name   string
		status int
		body   string
		want   mmsp.UpstreamError // Object: "same" stands for the body
	}{
		{
			"OpenAI", 404, `{"error":{"message":"no such model","type":"invalid_request_error","param":"model","code":"model_not_found"}}`,
			mmsp.UpstreamError{Message: "no such model", ErrorType: "invalid_request_error", Param: "model", Code: "model_not_found", Object: []byte("same")},
		},
		{"OpenAI with nulls", 400, `{"error":{"message":"m","type":"t","param":null,"code":null}}`, mmsp.UpstreamError{Message: "m", ErrorType: "t", Object: []byte("same")}},
		{
			"OpenRouter", 429, `{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"busy"}},"user_id":"u"}`,
			mmsp.UpstreamError{Message: "Provider returned error", Code: "429", Object: []byte("same")},
		},
		{
			"Anthropic", 529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}`,
			mmsp.UpstreamError{Message: "Overloaded", ErrorType: "overloaded_error", RequestID: "req_1", Object: []byte("same")},
		},
		{
			"Google", 403, `{"error":{"code":403,"message":"denied","status":"PERMISSION_DENIED","details":[{"@type":"x","message":"y"}]}}`,
			mmsp.UpstreamError{Message: "denied", ErrorType: "PERMISSION_DENIED", Code: "403", Object: []byte("same")},
		},
		{
			"Google in a list", 503, `[{"error":{"code":503,"message":"down","status":"UNAVAILABLE"}}]`,
			mmsp.UpstreamError{Message: "down", ErrorType: "UNAVAILABLE", Code: "503", Object: []byte(`{"error":{"code":503,"message":"down","status":"UNAVAILABLE"}}`)},
		},
		{"FastAPI", 404, `{"detail":"Not Found"}`, mmsp.UpstreamError{Message: "Not Found", Object: []byte("same")}},
		{
			"FastAPI with a list", 422, `{"detail":[{"loc":["body"],"msg":"field required"}]}`,
			mmsp.UpstreamError{Message: `"[{\"loc\":[\"body\"],\"msg\":\"field required\"}]"`, Object: []byte("same")},
		},
		{
			"vLLM", 400, `{"object":"error","message":"too long","type":"BadRequestError","param":null,"code":400}`,
			mmsp.UpstreamError{Message: "too long", ErrorType: "BadRequestError", Code: "400", Object: []byte("same")},
		},
		{"a name and a message", 404, `{"status":404,"message":"no route","error":"Not Found"}`, mmsp.UpstreamError{Message: "no route", Object: []byte("same")}},
		{"a name alone", 404, `{"error":"model \"x\" not found"}`, mmsp.UpstreamError{Message: `model "x" not found`, Object: []byte("same")}},
		{"problem details", 503, `{"title":"Down","status":503}`, mmsp.UpstreamError{Message: "Down", Object: []byte("same")}},
		{"the HTTP status is the status", 500, `{"error":{"message":"m","code":401,"status_code":402}}`, mmsp.UpstreamError{Message: "m", Code: "401", Object: []byte("same")}},
		{"the innermost error", 500, `{"message":"outer","error":{"message":"middle","error":{"message":"inner"}}}`, mmsp.UpstreamError{Message: "inner", Object: []byte("same")}},
		{"an inner error that says nothing", 500, `{"message":"outer","error":{"message":""}}`, mmsp.UpstreamError{Message: "outer", Object: []byte("same")}},
		{"a JSON string", 500, `"boom"`, mmsp.UpstreamError{Message: "boom"}},
		{"plain text", 502, "\n upstream connect error \n", mmsp.UpstreamError{Message: "upstream connect error"}},
		{"JSON that is cut", 500, `{"error":{"mess`, mmsp.UpstreamError{Message: `{"error":{"mess`}},
		{"HTML", 502, "<html>\n<h1>Bad Gateway</h1>" + strings.Repeat("ü", 200), mmsp.UpstreamError{Message: `"Bad Gateway ` + strings.Repeat("ü", 94) + `"…`}},
		{"HTML without a word", 502, "<html></html>", mmsp.UpstreamError{Message: "a page without a text"}},
		{"bytes", 500, "\xff\xfe", mmsp.UpstreamError{Message: "\uFFFD"}},
		{"nothing", 502, " \n", mmsp.UpstreamError{Message: "HTTP 502: Bad Gateway"}},
		{"nothing with a status of no name", 599, ``, mmsp.UpstreamError{Message: "HTTP 599"}},
		{"an object of nothing", 500, `{}`, mmsp.UpstreamError{Message: "HTTP 500: Internal Server Error", Object: []byte("same")}},
		{"an empty list", 500, `[]`, mmsp.UpstreamError{Message: "HTTP 500: Internal Server Error", Object: []byte("same")}},
		{"huge", 500, huge, mmsp.UpstreamError{Message: strings.Repeat("é", 32<<10) + "…", Code: "big"}},
		{"deep lists", 500, strings.Repeat("[", 400) + strings.Repeat("]", 400), mmsp.UpstreamError{Message: "HTTP 500: Internal Server Error", Object: []byte("same")}},
		{"deeper than anything reads", 500, strings.Repeat("[", 600) + strings.Repeat("]", 600), mmsp.UpstreamError{Message: strings.Repeat("[", 600) + strings.Repeat("]", 600)}},
		{"values of other kinds", 500, `{"error":[1],"message":{"a":1},"type":7,"code":[],"param":false,"status":true}`, mmsp.UpstreamError{Message: `"{\"a\":1}"`, Object: []byte("same")}},
		{"a message of another kind beside words", 500, `{"error":"boom","message":[1]}`, mmsp.UpstreamError{Message: "boom", Object: []byte("same")}},
		{"an empty message of another kind", 500, `{"message":{},"detail":"human"}`, mmsp.UpstreamError{Message: "human", Object: []byte("same")}},
		{"what is not valid, in Mistral's words", 422, `{"object":"error","message":{"detail":[{"msg":"tools too long"}]},"type":"invalid_request_error"}`, mmsp.UpstreamError{ErrorType: "invalid_request_error", Message: `"{\"detail\":[{\"msg\":\"tools too long\"}]}"`, Object: []byte("same")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.want.Client, tt.want.Status, tt.want.RetryAfter = "C", tt.status, 3*time.Second
			if string(tt.want.Object) == "same" {
				tt.want.Object = []byte(tt.body)
			}
			if tt.want.RequestID == "" {
				tt.want.RequestID = "of-header"
			}
			got := Upstream("C", &upstream.StatusError{Status: tt.status, Body: []byte(tt.body), RetryAfter: 3 * time.Second, RequestID: "of-header"})
			if !reflect.DeepEqual(got, &tt.want) {
				t.Errorf("got  %.400s\nwant %.400s", shown(got), shown(&tt.want))
			}
		})
	}
}

func shown(err error) string {
	e, ok := err.(*mmsp.UpstreamError)
	if !ok {
		return err.Error()
	}
	return strings.Join([]string{e.Client, e.Message, e.ErrorType, e.Code, e.Param, e.RequestID, e.Error(), string(e.Object)}, " | ")
}

func TestNoStatus(t *testing.T) {
	refused := &upstream.ConnectError{Phase: "connect", Err: errors.New("connection refused")}
	var e *mmsp.UpstreamError
	if err := Upstream("C", refused); !errors.As(err, &e) || e.Client != "C" || e.ErrorType != "connection_error" || e.Status != 0 || !errors.Is(err, refused) {
		t.Errorf("%#v", err)
	}
	for _, err := range []error{context.Canceled, io.ErrUnexpectedEOF} {
		if got := Upstream("C", err); got != err {
			t.Errorf("%v became %v", err, got)
		}
	}
}

func TestInStream(t *testing.T) {
	for _, tt := range []struct{ name, object, message, kind, code string }{
		{"Responses error event", `{"type":"error","code":"server_error","message":"m","param":null,"sequence_number":3}`, "m", "", "server_error"},
		{"Responses failed event", `{"type":"response.failed","response":{"id":"r","status":"failed","error":{"code":"rate_limit_exceeded","message":"m"}}}`, "m", "", "rate_limit_exceeded"},
		{"Anthropic error event", `{"type":"error","error":{"type":"api_error","message":"m"}}`, "m", "api_error", ""},
		{"without a message", `{"error":{"type":"x"}}`, "the provider reported an error", "x", ""},
	} {
		e := Event("C", []byte(tt.object))
		if e.Message != tt.message || e.ErrorType != tt.kind || e.Code != tt.code || string(e.Object) != tt.object || e.Status != 0 {
			t.Errorf("%s: %s", tt.name, shown(e))
		}
	}
	if e := Event("C", []byte(`{"error":{"message":"m","code":503}}`)); e.Status != 503 {
		t.Errorf("the status that the event gives is lost: %d", e.Status)
	}
	cause := errors.New("why")
	e := Malformed("C", 7, []byte(strings.Repeat("日", 100)), cause)
	if want := `event 7 from the provider is not readable as JSON (why): "` + strings.Repeat("日", 66) + `"…`; e.Message != want || !errors.Is(e, cause) || e.Client != "C" {
		t.Errorf("%s", e.Message)
	}
}

// TestNesting: what nests for malice is read in reasonable time.
func TestNesting(t *testing.T) {
	body := strings.Repeat(`{"error":`, 500) + `{"message":"` + strings.Repeat("x", 9_000_000) + `"}` + strings.Repeat("}", 500)
	if e := Event("C", []byte(strings.Repeat(`{"error":`, 9)+`{"message":"m"}`+strings.Repeat("}", 9))); e.Message == "m" {
		t.Error("read deeper than errors nest")
	}
	begin := time.Now()
	Body("C", []byte(body))
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("took %v", took)
	}
}

func FuzzBody(f *testing.F) {
	for _, seed := range []string{``, `{"error":{"message":"m","code":429}}`, `[{"error":{"status":"X"}}]`, `{"detail":[{"msg":"a"}]}`, `<html>`, `"s"`, "\xff", `{"error":"\ud800"}`, strings.Repeat(`{"error":`, 9)} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, e := range []*mmsp.UpstreamError{Body("C", body), Event("C", body)} {
			if e.Message == "" || !utf8.ValidString(e.Message+e.Code+e.ErrorType+e.Param+e.RequestID) || len(e.Message) > maxObjectBytes+1000 || len(e.Object) > maxObjectBytes {
				t.Errorf("%q gives %q", body, e.Message)
			}
		}
	})
}
