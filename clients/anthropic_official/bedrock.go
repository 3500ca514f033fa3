package anthropicofficial

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/internal/awsevents"
	"github.com/prism-shadow/mmsp-go/internal/credentials"
	"github.com/prism-shadow/mmsp-go/internal/failure"
	"github.com/prism-shadow/mmsp-go/internal/fetch"
	"github.com/prism-shadow/mmsp-go/internal/sse"
	"github.com/prism-shadow/mmsp-go/internal/upstream"
	"github.com/prism-shadow/mmsp-go/wire/anthropic"
)

// Bedrock is another way to the same models: InvokeModelWithResponseStream takes the Messages request, signed with AWS
// keys, and answers with the same events in frames of an AWS event stream. Nothing of the machine's AWS configuration is
// read: no profile, no role, no token, no variable but the one that moves the endpoint.

const (
	bedrockIssuer   = "anthropic@bedrock"
	maxMessageBytes = 64 << 10 // of what AWS says about a failure
)

// reachBedrock turns the client to the region of a bedrock:// URL.
func (c *Client) reachBedrock(region string, key mmsp.Secret, o *mmsp.Options) error {
	access, secret, ok := strings.Cut(key.Reveal(), ",")
	if !ok || access == "" || secret == "" || strings.ContainsAny(access+secret, ", \t") {
		return fmt.Errorf("the key of %s for Bedrock (api_key, or ANTHROPIC_API_KEY) must have the form ACCESS_KEY,SECRET_KEY", class)
	}
	region = strings.TrimRight(region, "/")
	if strings.Trim(region, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
		return fmt.Errorf("the base_url of %s for Bedrock must have the form bedrock://REGION, such as bedrock://us-east-1", class)
	}
	_, baseURL, err := credentials.Resolve(&mmsp.Options{APIKey: key, Getenv: o.Env}, credentials.Rule{
		Class: class, URLVar: "ANTHROPIC_BEDROCK_BASE_URL", DefaultURL: "https://bedrock-runtime." + region + ".amazonaws.com",
	})
	if err != nil {
		return err
	}
	if strings.HasPrefix(baseURL, "bedrock:") {
		return fmt.Errorf("ANTHROPIC_BEDROCK_BASE_URL for %s must be an http or https URL", class)
	}
	client := o.HTTPClient
	if client == nil {
		client = upstream.NewHTTPClient(o.HTTP)
	}
	transport := client.Transport
	if transport == nil {
		transport = http.DefaultTransport
	}
	c.aws = &signer{
		transport: transport,
		access:    mmsp.NewSecret(access), secret: mmsp.NewSecret(secret), region: region, v4: v4.NewSigner(),
	}
	c.http = upstream.New(&http.Client{Transport: c.aws}, o.HTTP)
	c.baseURL, c.issuer = baseURL, bedrockIssuer
	c.fetcher = fetch.New(fetch.Options{AllowPrivate: o.AllowPrivateFetch, MaxBytes: o.HTTP.MaxFetchBytes})
	return nil
}

// signer signs every attempt of a request as it leaves, so that a retry bears its own time.
type signer struct {
	transport      http.RoundTripper
	access, secret mmsp.Secret
	region         string
	v4             *v4.Signer
}

// RoundTrip signs a copy of the request and sends it.
func (s *signer) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := r.GetBody()
	if err != nil {
		return nil, err
	}
	hash := sha256.New()
	if _, err := io.Copy(hash, body); err != nil {
		return nil, err
	}
	signed := r.Clone(r.Context())
	keys := aws.Credentials{AccessKeyID: s.access.Reveal(), SecretAccessKey: s.secret.Reveal()}
	if err := s.v4.SignHTTP(r.Context(), keys, signed, hex.EncodeToString(hash.Sum(nil)), "bedrock", s.region, time.Now()); err != nil {
		return nil, err
	}
	answer, err := s.transport.RoundTrip(signed)
	if err != nil && strings.Contains(err.Error(), s.access.Reveal()) { // a server may echo what it was sent
		err = errors.New(s.hide(err.Error()))
	}
	return answer, err
}

func (s *signer) hide(text string) string {
	return strings.ReplaceAll(text, s.access.Reveal(), "[…]")
}

// prepareBedrock makes a request to Bedrock of one to Anthropic: what its URL and headers say, but for the betas, moves to where AWS
// reads it.
func (c *Client) prepareBedrock(request *anthropic.Request) (address string) {
	request.Model, request.Stream = "", false
	request.AnthropicVersion = anthropic.BedrockVersion
	// A breakpoint stands at the end of what is to be cached; the request as a whole takes none.
	breakpoint := request.CacheControl
	request.CacheControl = nil
	if breakpoint != nil {
		if breakpoint.TTL == "" {
			breakpoint.TTL = "5m"
		}
		for i := len(request.Messages) - 1; i >= 0; i-- {
			if message := &request.Messages[i]; message.Role == string(mmsp.RoleUser) {
				message.Content[len(message.Content)-1].CacheControl = breakpoint
				break
			}
		}
	}
	return c.baseURL + "/model/" + strings.ReplaceAll(url.PathEscape(c.model), ":", "%3A") + "/invoke-with-response-stream"
}

// failed says why no answer came.
func (c *Client) failed(err error) error {
	status, ok := errors.AsType[*upstream.StatusError](err)
	if c.aws == nil || !ok {
		return failure.Upstream(class, err)
	}
	status.Body = []byte(c.aws.hide(string(status.Body)))
	err = failure.Upstream(class, status)
	if failed, ok := errors.AsType[*mmsp.UpstreamError](err); ok {
		awsFailure(failed, status.Header.Get("X-Amzn-Errortype"), status.Body)
	}
	return err
}

// frameReader reads the events of an answer in frames.
type frameReader struct {
	reader *awsevents.Reader
	chunks anthropic.ChunkDecoder
	number int
}

func (f *frameReader) More() bool { return f.reader.More() }

// Next returns the event in the next chunk. A frame that reports a failure, or is damaged, is an UpstreamError.
func (f *frameReader) Next() (sse.Event, error) {
	for {
		frame, err := f.reader.Next()
		f.number++
		if _, ok := errors.AsType[*awsevents.FrameError](err); ok {
			return sse.Event{}, &mmsp.UpstreamError{Client: class, ErrorType: "malformed_event", Message: "the provider's event stream broke: " + err.Error(), Err: err}
		}
		if err != nil {
			return sse.Event{}, err
		}
		switch frame.Header(":message-type") {
		case "exception":
			return sse.Event{}, awsFailure(failure.Event(class, frame.Payload), frame.Header(":exception-type"), frame.Payload)
		case "error": // says all in its headers
			failed := failure.Event(class, frame.Payload)
			failed.Message = cmp.Or(frame.Header(":error-message"), failed.Message)
			return sse.Event{}, awsFailure(failed, frame.Header(":error-code"), nil)
		}
		event := sse.Event{Data: frame.Payload}
		if kind := frame.Header(":event-type"); kind != "chunk" {
			event.Name = []byte(kind)
		} else if event.Data, err = f.chunks.Decode(frame.Payload); err != nil {
			return sse.Event{}, failure.Malformed(class, f.number, frame.Payload, err)
		}
		if event.Data = bytes.TrimSpace(event.Data); len(event.Data) > 0 {
			return event, nil
		}
	}
}

// awsFailure adds what AWS says in its own way: the type of an error stands in a header, and some of its services write
// the message with a capital letter.
func awsFailure(failed *mmsp.UpstreamError, kind string, body []byte) *mmsp.UpstreamError {
	var said struct {
		Type            string `json:"__type"`
		Message         string // or "message"
		OriginalMessage string // of the model, behind AWS
	}
	_ = json.Unmarshal(body, &said)
	kind, _, _ = strings.Cut(cmp.Or(kind, said.Type), ":") // "ValidationException:http://…"
	kind = kind[strings.LastIndexByte(kind, '#')+1:]       // "com.amazon.coral.service#ValidationException"
	failed.ErrorType = cmp.Or(kind, failed.ErrorType)
	if message := cmp.Or(said.Message, said.OriginalMessage); message != "" && len(message) <= maxMessageBytes {
		failed.Message = message
	}
	return failed
}
