package anthropicofficial

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/internal/upstream"
)

const (
	accessKey = "AKIDEXAMPLE"
	secretKey = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"
)

func bedrockOptions(model string, over http.RoundTripper) mmsp.Options {
	return mmsp.Options{
		Model: model, APIKey: mmsp.NewSecret(accessKey + "," + secretKey), BaseURL: "bedrock://us-east-1", HTTPClient: &http.Client{Transport: over},
		HTTP: mmsp.HTTPOptions{MaxRetries: new(0)}, Getenv: func(string) string { return "" },
	}
}

func newBedrock(t testing.TB, o mmsp.Options) *Client {
	t.Helper()
	client, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// bedrockClient is a client of a region of AWS over the given transport.
func bedrockClient(t testing.TB, model string, over http.RoundTripper) *Client {
	t.Helper()
	return newBedrock(t, bedrockOptions(model, over))
}

// frame writes one frame; headers are pairs.
func frame(payload string, headers ...string) string {
	message := eventstream.Message{Payload: []byte(payload)}
	for pair := range slices.Chunk(headers, 2) {
		message.Headers.Set(pair[0], eventstream.StringValue(pair[1]))
	}
	var b bytes.Buffer
	if err := eventstream.NewEncoder().Encode(&b, message); err != nil {
		panic(err)
	}
	return b.String()
}

// chunk is an event as Bedrock sends it.
func chunk(event string) string {
	payload := fmt.Sprintf(`{"bytes":"%s","p":"abcdefg"}`, base64.StdEncoding.EncodeToString([]byte(event)))
	return frame(payload, ":event-type", "chunk", ":content-type", "application/json", ":message-type", "event")
}

// chunks turns the data of events, one a line, into frames.
func chunks(stream string) (all []string) {
	for _, line := range lines(stream) {
		all = append(all, chunk(line))
	}
	return all
}

// bedrockAnswer is an answer with an event stream.
func bedrockAnswer(body string) *http.Response {
	response := answer(200, body)
	response.Header.Set("Content-Type", "application/vnd.amazon.eventstream")
	return response
}

func overBedrock(body string) http.RoundTripper {
	return transport(func(*http.Request) (*http.Response, error) { return bedrockAnswer(body), nil })
}

func bedrockItems(items string) []string {
	return lines(strings.ReplaceAll(items, `"anthropic"`, `"anthropic@bedrock"`))
}

func TestBedrockStream(t *testing.T) {
	all := chunks(whole)
	metrics := strings.Replace(whole, `{"type":"message_stop"}`, `{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":8}}`, 1)
	foreign := frame(`{"type":"message_stop"}`, ":event-type", "initial-response", ":message-type", "event")
	table := map[string]string{
		"in frames":                          strings.Join(all, ""),
		"with AWS's own counts":              strings.Join(chunks(metrics), ""),
		"frames of another kind":             foreign + chunk("") + frame(`{}`, ":event-type", "chunk", ":message-type", "event") + strings.Join(all, foreign),
		"what follows the message":           strings.Join(all, "") + "not read",
		"a message whose stop does not come": strings.Join(all[:len(all)-1], ""),
		"a message whose stop is cut":        strings.Join(all, "")[:len(strings.Join(all, ""))-1],
		"a message type that is left out":    strings.Join(all[:3], "") + frame(`{"bytes":"eyJ0eXBlIjoicGluZyJ9"}`, ":event-type", "chunk") + strings.Join(all[3:], ""),
	}
	for name, body := range table {
		for _, slow := range []bool{false, true} {
			client := bedrockClient(t, "m", transport(func(*http.Request) (*http.Response, error) {
				response := bedrockAnswer(body)
				if slow {
					response.Body = io.NopCloser(iotest.OneByteReader(strings.NewReader(body)))
				}
				return response, nil
			}))
			items, stop, err := read(t, client)
			if want := bedrockItems(wholeItems); err != nil || !reflect.DeepEqual(items, want) || stop != "tool_call 100/15/-/30" {
				t.Errorf("%s, slow %v: error %v\n got %s\n     %s\nwant %s", name, slow, err, strings.Join(items, "\n     "), stop, strings.Join(want, "\n     "))
			}
		}
	}
}

// An answer that is no event stream is read for what it is.
func TestBedrockWholeAnswer(t *testing.T) {
	const message = `{"type":"message","content":[{"type":"text","text":"Yes"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":2}}`
	client := bedrockClient(t, "m", transport(func(*http.Request) (*http.Response, error) { return answer(200, message), nil }))
	if items, stop, err := read(t, client); err != nil || !reflect.DeepEqual(items, lines(textItems)) || stop != "stop -/1/-/2" {
		t.Errorf("%s %s %v", items, stop, err)
	}
}

func TestBedrockDebug(t *testing.T) {
	options := bedrockOptions("m", overBedrock(frame(`{}`, ":event-type", "mystery", ":message-type", "event")+strings.Join(chunks(whole), "")))
	options.Getenv = func(name string) string { return map[string]string{"MMSP_DEBUG": "1"}[name] }
	if _, _, err := read(t, newBedrock(t, options)); err == nil || !strings.Contains(err.Error(), "Unknown output") {
		t.Error(err)
	}
}

// Each row: what AWS says, and the error that it becomes.
func TestBedrockErrors(t *testing.T) {
	begun := strings.Join(chunks(start+"\n"+text), "")
	damaged := []byte(chunk(`{"type":"ping"}`))
	damaged[len(damaged)-20] ^= 1
	overlong := []byte(chunk(`{"type":"ping"}`))
	overlong[0] = 1
	table := []struct {
		name, body string
		items      int
		want       mmsp.UpstreamError
	}{
		{
			"an exception", begun + frame(`{"message":"Too many tokens."}`, ":exception-type", "throttlingException", ":content-type", "application/json", ":message-type", "exception"), 1,
			mmsp.UpstreamError{ErrorType: "throttlingException", Message: "Too many tokens.", Object: json.RawMessage(`{"message":"Too many tokens."}`)},
		},
		{
			"an exception of the model", frame(`{"originalStatusCode":500,"originalMessage":"Down."}`, ":exception-type", "modelStreamErrorException", ":message-type", "exception"), 0,
			mmsp.UpstreamError{ErrorType: "modelStreamErrorException", Message: "Down.", Object: json.RawMessage(`{"originalStatusCode":500,"originalMessage":"Down."}`)},
		},
		{
			"an exception without words", frame("", ":exception-type", "internalServerException", ":message-type", "exception"), 0,
			mmsp.UpstreamError{ErrorType: "internalServerException", Message: "the provider reported an error"},
		},
		{
			"an error", begun + frame("", ":error-code", "InternalFailure", ":error-message", "It broke.", ":message-type", "error"), 1,
			mmsp.UpstreamError{ErrorType: "InternalFailure", Message: "It broke."},
		},
		{
			"an error event of Anthropic", begun + chunk(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), 1,
			mmsp.UpstreamError{ErrorType: "overloaded_error", Message: "Overloaded", Object: json.RawMessage(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)},
		},
		{
			"a damaged frame", begun + string(damaged), 1,
			mmsp.UpstreamError{ErrorType: "malformed_event", Message: "the provider's event stream broke: frame 5 is damaged: message checksum mismatch"},
		},
		{
			"a damaged prelude", begun + string(overlong), 1,
			mmsp.UpstreamError{ErrorType: "malformed_event", Message: "the provider's event stream broke: frame 5 is damaged: message checksum mismatch"},
		},
		{
			"no base64", frame(`{"bytes":"%"}`, ":event-type", "chunk", ":message-type", "event"), 0,
			mmsp.UpstreamError{ErrorType: "malformed_event", Message: `event 1 from the provider is not readable as JSON (illegal base64 data at input byte 0): "{\"bytes\":\"%\"}"`},
		},
		{
			"no JSON", chunk(`{"type":`), 0,
			mmsp.UpstreamError{ErrorType: "malformed_event", Message: `event 1 from the provider is not readable as JSON (the text ends early at byte 8): "{\"type\":"`},
		},
	}
	for _, row := range table {
		t.Run(row.name, func(t *testing.T) {
			items, _, err := read(t, bedrockClient(t, "m", overBedrock(row.body)))
			got, ok := err.(*mmsp.UpstreamError) // and no other error around it
			if !ok || len(items) != row.items {
				t.Fatalf("%T %v, %d items", err, err, len(items))
			}
			found := mmsp.UpstreamError{ErrorType: got.ErrorType, Message: got.Message, Object: got.Object}
			if !reflect.DeepEqual(found, row.want) || got.Client != class {
				t.Errorf("%+v %s", got, got.Object)
			}
		})
	}
}

func TestBedrockHTTPErrors(t *testing.T) {
	const typed = "ValidationException:http://internal.amazon.com/coral/com.amazon.bedrock/"
	table := []struct {
		name, errorType, body string
		want                  mmsp.UpstreamError
	}{
		{"its type in a header", typed, `{"message":"The model is not known."}`, mmsp.UpstreamError{ErrorType: "ValidationException", Message: "The model is not known."}},
		{"a capital message", "AccessDeniedException", `{"Message":"Not yours."}`, mmsp.UpstreamError{ErrorType: "AccessDeniedException", Message: "Not yours."}},
		{"its type in the body", "", `{"__type":"com.amazon.coral.service#UnrecognizedClientException","message":"Who?"}`, mmsp.UpstreamError{ErrorType: "UnrecognizedClientException", Message: "Who?"}},
		{"no words", "ThrottlingException", ``, mmsp.UpstreamError{ErrorType: "ThrottlingException", Message: "HTTP 400: Bad Request"}},
		{"not AWS's words", "", `<html>Proxy</html>`, mmsp.UpstreamError{Message: `"Proxy"`}},
		{"an echo of the key", typed, `{"message":"Credential=` + accessKey + `/20260101 is not known."}`, mmsp.UpstreamError{ErrorType: "ValidationException", Message: "Credential=[…]/20260101 is not known."}},
	}
	for _, row := range table {
		t.Run(row.name, func(t *testing.T) {
			_, _, err := read(t, bedrockClient(t, "m", transport(func(*http.Request) (*http.Response, error) {
				response := answer(400, row.body)
				response.Header.Set("X-Amzn-Errortype", row.errorType)
				response.Header.Set("X-Amzn-Requestid", "r-1")
				return response, nil
			})))
			got, ok := errors.AsType[*mmsp.UpstreamError](err)
			if !ok || got.Status != 400 || got.RequestID != "r-1" || got.ErrorType != row.want.ErrorType || got.Message != row.want.Message {
				t.Errorf("%+v", err)
			}
			if all := fmt.Sprintf("%v %+v %s", err, got, mmsp.AppendErrorJSON(nil, err)); strings.Contains(all, accessKey) {
				t.Errorf("the key is shown: %s", all)
			}
		})
	}
	echo := transport(func(r *http.Request) (*http.Response, error) {
		return nil, fmt.Errorf("malformed HTTP response %q", r.Header.Get("Authorization"))
	})
	if _, _, err := read(t, bedrockClient(t, "m", echo)); err == nil || strings.Contains(err.Error(), accessKey) {
		t.Error(err)
	}
}

// A stream that is cut anywhere, cleanly or not, says so: inside a frame as between two.
func TestBedrockCut(t *testing.T) {
	all := chunks(whole)
	body := strings.Join(all, "")
	turnEnds := len(body) - len(all[len(all)-1])
	want := bedrockItems(wholeItems)
	for cut := range len(body) + 1 {
		for _, broken := range []bool{false, true} {
			if broken && cut%7 > 0 && cut < turnEnds {
				continue
			}
			client := bedrockClient(t, "m", transport(func(*http.Request) (*http.Response, error) {
				response := bedrockAnswer(body[:cut])
				if broken {
					response.Body = io.NopCloser(io.MultiReader(strings.NewReader(body[:cut]), iotest.ErrReader(io.ErrUnexpectedEOF)))
				}
				return response, nil
			}))
			items, _, err := read(t, client)
			_, incomplete := errors.AsType[*mmsp.IncompleteStreamError](err)
			complete := cut == len(body) || cut >= turnEnds && !broken
			if complete && err != nil || !complete && !incomplete {
				t.Fatalf("cut at %d of %d, broken %v: error %v", cut, len(body), broken, err)
			}
			if len(items) > len(want) || !slices.Equal(items, want[:len(items)]) {
				t.Fatalf("cut at %d: items %s", cut, items)
			}
		}
	}
}

// signature computes what a signed request must bear, from what arrived.
func signature(t *testing.T, r *http.Request, body []byte, secret, region string) string {
	t.Helper()
	sum := func(data []byte) string { h := sha256.Sum256(data); return hex.EncodeToString(h[:]) }
	mac := func(key []byte, data string) []byte {
		h := hmac.New(sha256.New, key)
		h.Write([]byte(data))
		return h.Sum(nil)
	}
	// The path is encoded once more than it travels.
	path := strings.ReplaceAll(r.URL.EscapedPath(), "%", "%25")
	_, signed, _ := strings.Cut(r.Header.Get("Authorization"), "SignedHeaders=")
	signed, _, _ = strings.Cut(signed, ",")
	canonical := r.Method + "\n" + path + "\n\n"
	for name := range strings.SplitSeq(signed, ";") {
		value := r.Header.Get(name)
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = fmt.Sprint(len(body))
		}
		canonical += name + ":" + value + "\n"
	}
	canonical += "\n" + signed + "\n" + sum(body)
	date := r.Header.Get("X-Amz-Date")
	scope := date[:8] + "/" + region + "/bedrock/aws4_request"
	key := mac(mac(mac(mac([]byte("AWS4"+secret), date[:8]), region), "bedrock"), "aws4_request")
	proof := mac(key, "AWS4-HMAC-SHA256\n"+date+"\n"+scope+"\n"+sum([]byte(canonical)))
	return "AWS4-HMAC-SHA256 Credential=" + accessKey + "/" + scope + ", SignedHeaders=" + signed + ", Signature=" + hex.EncodeToString(proof)
}

// What arrives is signed with the given keys and bears no other credential, whatever the machine holds.
func TestBedrockSignature(t *testing.T) {
	canaries := []string{
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_BEARER_TOKEN_BEDROCK", "AWS_PROFILE", "AWS_REGION", "AWS_WEB_IDENTITY_TOKEN_FILE",
		"AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_SHARED_CREDENTIALS_FILE", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN",
	}
	for _, name := range canaries {
		t.Setenv(name, "canary-"+name)
	}
	for _, override := range []string{"", "https://vpce-1.example/base/"} {
		options := bedrockOptions("eu.anthropic.claude-x-v1:0", serve(t, func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if want := signature(t, r, body, secretKey, "us-east-1"); r.Header.Get("Authorization") != want {
				t.Errorf("signed\n%s\nwant\n%s", r.Header.Get("Authorization"), want)
			}
			host, path := "bedrock-runtime.us-east-1.amazonaws.com", "/model/eu.anthropic.claude-x-v1%3A0/invoke-with-response-stream"
			if override != "" {
				host, path = "vpce-1.example", "/base"+path
			}
			if r.Host != host || r.RequestURI != path {
				t.Errorf("sent to %s %s", r.Host, r.RequestURI)
			}
			for _, name := range []string{"X-Api-Key", "Anthropic-Version", "Anthropic-Beta", "X-Amz-Security-Token"} {
				if r.Header[name] != nil {
					t.Errorf("%s: %s", name, r.Header[name])
				}
			}
			if _, signed, _ := strings.Cut(r.Header.Get("Authorization"), "SignedHeaders="); !strings.Contains(signed, "x-app") || r.Header.Get("X-App") != "cli" {
				t.Errorf("the default header is not there, or not signed: %v", r.Header)
			}
			dump, _ := httputil.DumpRequest(r, true)
			if all := string(dump) + string(body); strings.Contains(all, "canary") || strings.Contains(all, secretKey) {
				t.Errorf("a secret is sent:\n%s", all)
			}
			w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
			_, _ = io.WriteString(w, strings.Join(chunks(whole), ""))
		}))
		options.DefaultHeaders = map[string]string{"X-App": "cli", "anthropic-beta": "context-1m"}
		options.Getenv = func(name string) string {
			if name == "ANTHROPIC_BEDROCK_BASE_URL" {
				return override
			}
			return map[bool]string{true: "canary-" + name}[slices.Contains(canaries, name)]
		}
		if _, stop, err := read(t, newBedrock(t, options)); err != nil || stop == "" {
			t.Error(err)
		}
	}
}

// The body says what betas are asked for, and no header.
func TestBedrockBetas(t *testing.T) {
	options := bedrockOptions("m", nil)
	options.DefaultHeaders = map[string]string{"anthropic-beta": "row-1, a-1"}
	request, err := newBedrock(t, options).Prepare(upstream.WithBetas(t.Context(), []string{"a-1", "b-2"}), nil, &mmsp.Config{})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"anthropic_version":"bedrock-2023-05-31","anthropic_beta":["row-1","a-1"],"max_tokens":64000,"messages":[]}`
	if string(request.Body) != want || request.Header["Anthropic-Beta"] != nil {
		t.Errorf("%v %s, want %s", request.Header, request.Body, want)
	}
}

// Every attempt is signed when it leaves.
func TestBedrockRetriesSignAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dates, proofs, bodies []string
		options := bedrockOptions("m", transport(func(r *http.Request) (*http.Response, error) {
			body, _ := io.ReadAll(r.Body)
			r.Host = r.URL.Host
			if want := signature(t, r, body, secretKey, "us-east-1"); r.Header.Get("Authorization") != want {
				t.Errorf("signed\n%s\nwant\n%s", r.Header.Get("Authorization"), want)
			}
			dates, proofs, bodies = append(dates, r.Header.Get("X-Amz-Date")), append(proofs, r.Header.Get("Authorization")), append(bodies, string(body))
			if len(dates) < 3 {
				response := answer(503, `{}`)
				response.Header.Set("Retry-After", "2")
				return response, nil
			}
			return bedrockAnswer(strings.Join(chunks(whole), "")), nil
		}))
		options.HTTP.MaxRetries = nil
		_, _, err := read(t, newBedrock(t, options))
		unique := func(all []string) int { return len(slices.Compact(slices.Sorted(slices.Values(all)))) }
		if err != nil || len(dates) != 3 || unique(dates) != 3 || unique(proofs) != 3 || unique(bodies) != 1 {
			t.Errorf("%v %s %s", err, dates, proofs)
		}
	})
}

func TestBedrockRefuses(t *testing.T) {
	const form, region = "ACCESS_KEY,SECRET_KEY", "bedrock://REGION"
	table := []struct{ name, key, url, override, want string }{
		{"no comma", "canary", "bedrock://us-east-1", "", form},
		{"a key of Anthropic", "sk-ant-canary", "bedrock://us-east-1", "", form},
		{"two commas", "canary,canary,canary", "bedrock://us-east-1", "", form},
		{"no access key", ",canary", "bedrock://us-east-1", "", form},
		{"no secret", "canary,", "bedrock://us-east-1", "", form},
		{"a space", "canary, canary", "bedrock://us-east-1", "", form},
		{"no key", "", "bedrock://us-east-1", "", "ANTHROPIC_API_KEY"},
		{"a host for a region", "canary,canary", "bedrock://evil.example", "", region},
		{"a path", "canary,canary", "bedrock://us-east-1/x", "", region},
		{"a port", "canary,canary", "bedrock://us-east-1:443", "", region},
		{"no region", "canary,canary", "bedrock://", "", "base_url"},
		{"another endpoint, malformed", "canary,canary", "bedrock://us-east-1", "proxy.example", "ANTHROPIC_BEDROCK_BASE_URL"},
		{"another endpoint of the same kind", "canary,canary", "bedrock://us-east-1", "bedrock://eu-west-1", "ANTHROPIC_BEDROCK_BASE_URL"},
		{"another endpoint with a password", "canary,canary", "bedrock://us-east-1", "https://user:canary@proxy.example", "ANTHROPIC_BEDROCK_BASE_URL"},
	}
	for _, row := range table {
		options := mmsp.Options{Model: "m", APIKey: mmsp.NewSecret(row.key), BaseURL: row.url}
		options.Getenv = func(name string) string {
			return map[string]string{"ANTHROPIC_BEDROCK_BASE_URL": row.override, "ANTHROPIC_API_KEY": "canary,canary"}[name]
		}
		_, err := New(options)
		if err == nil || !strings.Contains(err.Error(), row.want) || !strings.Contains(err.Error(), class) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: %v", row.name, err)
		}
	}
}

// The environment may name both the region and the keys.
func TestBedrockFromTheEnvironment(t *testing.T) {
	environment := map[string]string{"ANTHROPIC_BASE_URL": "bedrock://eu-west-1/", "ANTHROPIC_API_KEY": accessKey + "," + secretKey}
	client := newBedrock(t, mmsp.Options{Model: "m", Getenv: func(name string) string { return environment[name] }})
	if client.baseURL != "https://bedrock-runtime.eu-west-1.amazonaws.com" || client.issuer != "anthropic@bedrock" {
		t.Errorf("%s %s", client.baseURL, client.issuer)
	}
	if printed := fmt.Sprintf("%v %+v %#v %+v %#v", client, client, client, client.aws, client.aws); strings.Contains(printed, accessKey) || strings.Contains(printed, secretKey) {
		t.Errorf("it prints its keys: %s", printed)
	}
	delete(environment, "ANTHROPIC_API_KEY")
	if _, err := New(mmsp.Options{Model: "m", Getenv: func(name string) string { return environment[name] }}); err == nil || !strings.Contains(err.Error(), "ACCESS_KEY,SECRET_KEY") {
		t.Errorf("built without a key: %v", err)
	}
}

func TestBedrockListsNoModels(t *testing.T) {
	_, err := bedrockClient(t, "m", nil).ListModels(t.Context())
	unsupported, ok := errors.AsType[*mmsp.UnsupportedOperationError](err)
	if !ok || unsupported.Operation != "list_models" || unsupported.Client != class || !strings.Contains(err.Error(), "Bedrock") {
		t.Error(err)
	}
}

func TestBedrockCountsNoTokens(t *testing.T) {
	_, err := bedrockClient(t, "m", nil).CountTokens(t.Context(), nil, &mmsp.Config{})
	unsupported, ok := errors.AsType[*mmsp.UnsupportedOperationError](err)
	if !ok || unsupported.Operation != "count_tokens" || unsupported.Client != class || !strings.Contains(err.Error(), "Bedrock") {
		t.Error(err)
	}
}

// Remote pictures go inline, in messages as in results.
func TestBedrockImages(t *testing.T) {
	const gif = "GIF89a\x01\x00\x01\x00\x00\x00\x00"
	pictures := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/a.png" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "image/png") // it is not
		_, _ = io.WriteString(w, gif)
	}))
	defer pictures.Close()
	image := `{"type":"image","source":{"type":"base64","media_type":"image/gif","data":"` + base64.StdEncoding.EncodeToString([]byte(gif)) + `"}}`
	table := []struct {
		name, path string
		private    bool
		place      string
	}{
		{"fetched where private addresses are allowed", "/a.png", true, ""},
		{"refused otherwise", "/a.png", false, "messages[0].content_items[0].image_url"},
		{"missing", "/gone.png", true, "messages[0].content_items[0].image_url"},
	}
	for _, row := range table {
		options := bedrockOptions("m", nil)
		options.AllowPrivateFetch = row.private
		messages := []mmsp.Message{mmsp.UserMessage(mmsp.ImageURL(pictures.URL+row.path), mmsp.ToolResult("1", "a", pictures.URL+row.path))}
		request, err := newBedrock(t, options).Prepare(t.Context(), messages, &mmsp.Config{PromptCaching: mmsp.CachingDisable})
		if row.place != "" {
			if invalid, ok := errors.AsType[*mmsp.InvalidRequestError](err); !ok || invalid.Param != row.place {
				t.Errorf("%s: %v", row.name, err)
			}
			continue
		}
		want := `"messages":[{"role":"user","content":[` + image + `,{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"a"},` + image + `]}]}]}`
		if err != nil || !strings.HasSuffix(string(request.Body), want) {
			t.Errorf("%s: %v %s", row.name, err, request.Body)
		}
	}
}

// The connection to AWS is closed at once when the caller leaves, and each event is handed on when its frame is there.
func TestBedrockAbort(t *testing.T) {
	closed := make(chan time.Time, 1)
	client := mmsp.NewClient(bedrockClient(t, "m", serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
		_, _ = io.WriteString(w, strings.Join(chunks(start+"\n"+text), "")+chunk(end)[:20])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		closed <- time.Now()
	})))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var left time.Time
	for _, err := range client.StreamingResponse(ctx, []mmsp.Message{mmsp.UserMessage(mmsp.Text("Hi"))}, nil) {
		if err != nil {
			break
		}
		left = time.Now()
		cancel()
	}
	if took := (<-closed).Sub(left); took > 100*time.Millisecond {
		t.Errorf("closed after %v", took)
	}
}

func FuzzBedrock(f *testing.F) {
	f.Add([]byte(strings.Join(chunks(whole), "")))
	f.Add([]byte(frame(`{"message":"x"}`, ":exception-type", "a:b#c", ":message-type", "exception")))
	f.Fuzz(func(t *testing.T, body []byte) {
		_, _, _ = read(t, bedrockClient(t, "m", overBedrock(string(body))))
	})
}

// TestManyImages: the pictures of a request are bounded together.
func TestManyImages(t *testing.T) {
	pictures := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("GIF89a\x01\x00\x01\x00\x00\x00\x00;")) }))
	defer pictures.Close()
	items := slices.Repeat([]mmsp.Item{mmsp.ImageURL(pictures.URL)}, 513)
	options := bedrockOptions("m", nil)
	options.AllowPrivateFetch = true
	_, err := newBedrock(t, options).Prepare(t.Context(), []mmsp.Message{mmsp.UserMessage(items...)}, &mmsp.Config{})
	var invalid *mmsp.InvalidRequestError
	if !errors.As(err, &invalid) || invalid.Param != "messages[0].content_items[512].image_url" {
		t.Error(err)
	}
}
