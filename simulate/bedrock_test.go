package simulate

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// signing signs requests as the AWS SDK does.
type signing struct {
	id, secret, service string
	at                  time.Time
	alter               func(*http.Request) // after signing
}

func (s signing) RoundTrip(r *http.Request) (*http.Response, error) {
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	sum := sha256.Sum256(body)
	keys := aws.Credentials{AccessKeyID: s.id, SecretAccessKey: s.secret}
	if err := v4.NewSigner().SignHTTP(r.Context(), keys, r, hex.EncodeToString(sum[:]), s.service, "us-east-1", s.at); err != nil {
		return nil, err
	}
	if s.alter != nil {
		s.alter(r)
	}
	return http.DefaultTransport.RoundTrip(r)
}

func askBedrock(prompt string, more ...string) string {
	return `{` + strings.Join(append([]string{`"anthropic_version":"bedrock-2023-05-31","max_tokens":4000,"messages":[{"role":"user","content":` + quoted(prompt) + `}]`}, more...), ",") + `}`
}

// bedrockFrames decodes frames, whose checksums the SDK checks, and names what they hold.
func bedrockFrames(t *testing.T, body string) []frame {
	t.Helper()
	var all []frame
	decoder, source := eventstream.NewDecoder(), strings.NewReader(body)
	for {
		message, err := decoder.Decode(source, nil)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("frame %d: %v", len(all), err)
		}
		header := func(name string) string {
			value, _ := message.Headers.Get(name).(eventstream.StringValue)
			return string(value)
		}
		var chunk struct{ Bytes []byte }
		switch _ = json.Unmarshal(message.Payload, &chunk); header(":message-type") + " " + header(":event-type") {
		case "event chunk":
			f := frame{data: string(chunk.Bytes), tree: parse(t, string(chunk.Bytes))}
			f.name = f.at("type").text()
			all = append(all, f)
		default:
			all = append(all, frame{name: header(":message-type") + " " + header(":exception-type"), tree: parse(t, string(message.Payload))})
		}
	}
}

func TestBedrockStream(t *testing.T) {
	p := dial(t, "bedrock", Options{Key: "AKID,secret"})
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	p.client.Transport = signing{id: "AKID", secret: "secret", service: "bedrock", at: time.Now()}
	const text = "message_start\nblock_start text\nblock_delta text_delta\n"
	for _, c := range []struct{ name, prompt, more, want string }{
		{"text", "hello there", `"anthropic_beta":["x"]`, text + "block_stop\nmessage_delta end_turn\nmessage_stop"},
		{"call", "call", messagesTools, "message_start\nblock_start tool_use\nblock_delta input_json_delta\nblock_stop\nmessage_delta tool_use\nmessage_stop"},
		{"fail", "fail", `"top_k":1`, text + "exception modelStreamErrorException"},
		{"cut", "cut clean", `"top_k":1`, strings.TrimSpace(text)},
	} {
		response, body, err := p.post(askBedrock(c.prompt, c.more))
		if response.StatusCode != 200 || err != nil || response.Header.Get("Content-Type") != "application/vnd.amazon.eventstream" {
			t.Fatalf("%s: %d %v %s", c.name, response.StatusCode, err, body)
		}
		all := bedrockFrames(t, body)
		if got := shape(all, messagesKind); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, got, c.want)
		}
		if last := all[len(all)-1]; last.name == "message_stop" && last.at("amazon-bedrock-invocationMetrics.outputTokenCount").number() == 0 {
			t.Errorf("%s: no metrics in %s", c.name, last.data)
		}
	}
	whole := p.to("/model/m/invoke").whole(askBedrock("hi"))
	if whole.at("type").text() != "message" || whole.at("model").text() != "m" {
		t.Error(whole.json())
	}
}

func TestBedrockRefusals(t *testing.T) {
	p := dial(t, "bedrock", Options{Key: "AKID,secret", Models: []string{"anthropic.claude-sonnet-5-5:0"}})
	defer http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	good := signing{id: "AKID", secret: "secret", service: "bedrock", at: time.Now()}
	with := func(change func(*signing)) signing { s := good; change(&s); return s }
	for _, c := range []struct {
		name   string
		sign   http.RoundTripper
		body   string
		status int
		kind   string
		want   string
	}{
		{"unsigned", http.DefaultTransport, askBedrock("hi"), 403, "MissingAuthenticationTokenException", "Missing Authentication Token"},
		{"unknown key", with(func(s *signing) { s.id = "OTHER" }), askBedrock("hi"), 403, "UnrecognizedClientException", "security token"},
		{"wrong secret", with(func(s *signing) { s.secret = "x" }), askBedrock("hi"), 403, "InvalidSignatureException", "does not match"},
		{"other service", with(func(s *signing) { s.service = "s3" }), askBedrock("hi"), 403, "IncompleteSignatureException", "bedrock"},
		{"old", with(func(s *signing) { s.at = time.Now().Add(-time.Hour) }), askBedrock("hi"), 403, "InvalidSignatureException", "Signature expired"},
		{"another body", with(func(s *signing) {
			s.alter = func(r *http.Request) {
				r.Body = io.NopCloser(strings.NewReader(strings.Replace(askBedrock("hi"), "4000", "4001", 1)))
			}
		}), askBedrock("hi"), 403, "InvalidSignatureException", "does not match"},
		{"another path", with(func(s *signing) {
			s.alter = func(r *http.Request) { r.URL.RawPath, r.URL.Path = "", strings.Replace(r.URL.Path, "-5:0", "-6:0", 1) }
		}), askBedrock("hi"), 403, "InvalidSignatureException", "does not match"},
		{"another header", with(func(s *signing) { s.alter = func(r *http.Request) { r.Header.Set("Content-Type", "text/plain") } }), askBedrock("hi"), 403, "InvalidSignatureException", "does not match"},
		{"version", good, `{"max_tokens":1,"messages":[]}`, 400, "ValidationException", "anthropic_version"},
		{"model in the body", good, askBedrock("hi", `"model":"m"`), 400, "ValidationException", "model: Extra inputs"},
		{"stream in the body", good, askBedrock("hi", `"stream":true`), 400, "ValidationException", "stream: Extra inputs"},
		{"history", good, askBedrock("hi", `"messages":[]`), 400, "ValidationException", "at least one message"},
		{"error 429", good, askBedrock("error 429"), 429, "ThrottlingException", "Too many requests"},
		{"error 503", good, askBedrock("error 503"), 503, "ServiceUnavailableException", "unable to process"},
		{"error 500", good, askBedrock("error 500"), 500, "InternalServerException", "unexpected error"},
		{"error 404", good, askBedrock("error 404"), 404, "ResourceNotFoundException", "Simulated"},
	} {
		p.client.Transport = c.sign
		response, text, _ := p.post(c.body)
		kind, _, _ := strings.Cut(response.Header.Get("X-Amzn-Errortype"), ":")
		if response.StatusCode != c.status || kind != c.kind || !strings.Contains(parse(t, text).at("message").text(), c.want) {
			t.Errorf("%s: %d %s %s", c.name, response.StatusCode, kind, text)
		}
	}
	p.client.Transport = good
	response, text, _ := p.to("/model/other/invoke").post(askBedrock("hi"))
	if response.StatusCode != 400 || !strings.Contains(text, "model identifier is invalid") {
		t.Error(text)
	}
}
