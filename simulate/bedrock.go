package simulate

import (
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Bedrock returns a provider of the Messages API as Amazon Bedrock has it: POST …/model/{id}/invoke and
// …/model/{id}/invoke-with-response-stream. Options.Key is an access key id and a secret with a comma between them, with
// which requests must be signed.
func Bedrock(o Options) *Provider {
	c := newCore(o)
	return &Provider{c, bedrock{messages{c}}, func(path string) bool {
		_, _, ok := splitInvoke(path)
		return ok
	}, "x-amzn-requestid"}
}

// bedrock is InvokeModel with the requests of Messages.
type bedrock struct{ messages }

// splitInvoke reads a path such as /model/m/invoke.
func splitInvoke(path string) (model string, streamed, ok bool) {
	path, streamed = strings.CutSuffix(path, "/invoke-with-response-stream")
	if !streamed {
		if path, ok = strings.CutSuffix(path, "/invoke"); !ok {
			return "", false, false
		}
	}
	_, model, ok = strings.Cut(path, "/model/")
	return model, streamed, ok && model != ""
}

func (bedrock) models(*http.Request) (any, *fault) {
	return nil, &fault{status: http.StatusNotFound, kind: "UnknownOperationException"}
}

// refusal returns the body of an error, whose type stands in the header.
func (bedrock) refusal(f *fault, _ *http.Request, answer http.Header) any {
	f.fill(map[string]fault{
		noQuota: {message: "Too many tokens per day, please wait before trying again."},
		tooLong: {message: "Input is too long for requested model."},
	}, map[int]fault{
		429: {message: "Too many requests, please wait before trying again."},
		500: {message: "The system encountered an unexpected error during processing. Try your request again."},
		503: {message: "Bedrock is unable to process your request."},
	})
	kind := cmp.Or(f.kind, map[int]string{
		403: "AccessDeniedException", 404: "ResourceNotFoundException", 408: "ModelTimeoutException", 424: "ModelErrorException",
		429: "ThrottlingException", 500: "InternalServerException", 503: "ServiceUnavailableException",
	}[f.status], "ValidationException")
	answer.Set("X-Amzn-Errortype", kind+":http://internal.amazon.com/coral/com.amazon.bedrock/")
	return object{"message": f.message}
}

// bedrockExchange is one request, answered in frames.
type bedrockExchange struct{ *messagesExchange }

func (b bedrock) read(body []byte, r *http.Request) (exchange, *fault) {
	if f := b.checkSignature(r, body); f != nil {
		return nil, f
	}
	model, streamed, _ := splitInvoke(r.URL.Path)
	var sent map[string]json.RawMessage
	if json.Unmarshal(body, &sent) != nil {
		return nil, invalid("Malformed input request, please reformat your input and try again.")
	}
	if string(sent["anthropic_version"]) != `"bedrock-2023-05-31"` {
		return nil, invalid("anthropic_version: Input should be 'bedrock-2023-05-31'")
	}
	delete(sent, "anthropic_version")
	delete(sent, "anthropic_beta")
	for _, name := range []string{"cache_control", "model", "speed", "stream"} {
		if _, ok := sent[name]; ok {
			return nil, invalid("%s: Extra inputs are not permitted", name)
		}
	}
	if !b.serves(model) {
		return nil, invalid("The provided model identifier is invalid.")
	}
	sent["model"], _ = json.Marshal(model)
	sent["stream"], _ = json.Marshal(streamed)
	body, _ = json.Marshal(sent)
	inner := r.Clone(r.Context())
	inner.Header.Set("Anthropic-Version", "2023-06-01")
	x, f := b.messages.read(body, inner)
	if f != nil {
		return nil, f
	}
	return bedrockExchange{x.(*messagesExchange)}, nil
}

func (x bedrockExchange) stream(s *stream, r *reply) {
	s.w.Header().Set("Content-Type", "application/vnd.amazon.eventstream")
	s.write = func(frame *bytes.Buffer, name string, data []byte) {
		switch name {
		case "ping": // is not sent
		case "error":
			writeFrame(frame, [][2]string{
				{":exception-type", "modelStreamErrorException"}, {":content-type", "application/json"}, {":message-type", "exception"},
			}, object{
				"message":            "The system encountered an unexpected error during processing. Try your request again.",
				"originalStatusCode": 529, "originalMessage": "Overloaded",
			})
		default:
			if name == "message_stop" {
				data = fmt.Appendf(nil, `{"type":"message_stop","amazon-bedrock-invocationMetrics":{"inputTokenCount":%d,"outputTokenCount":%d,`+
					`"invocationLatency":9,"firstByteLatency":3}}`, r.usage.input, r.usage.output)
			}
			const padding = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			writeFrame(frame, [][2]string{
				{":event-type", "chunk"}, {":content-type", "application/json"}, {":message-type", "event"},
			}, object{"bytes": base64.StdEncoding.EncodeToString(data), "p": padding[:1+len(data)%len(padding)]})
		}
	}
	x.messagesExchange.stream(s, r)
}

// writeFrame writes a frame of an AWS event stream: the lengths of all of it and of its headers, a checksum of these,
// the headers, the payload, and a checksum of everything before.
func writeFrame(frame *bytes.Buffer, headers [][2]string, payload object) {
	const stringValue = 7 // the type of a header
	var head []byte
	for _, h := range headers {
		head = append(head, byte(len(h[0])))
		head = append(head, h[0]...)
		head = binary.BigEndian.AppendUint16(append(head, stringValue), uint16(len(h[1])))
		head = append(head, h[1]...)
	}
	text, _ := json.Marshal(payload)
	start := frame.Len()
	frame.Write(binary.BigEndian.AppendUint32(nil, uint32(12+len(head)+len(text)+4)))
	frame.Write(binary.BigEndian.AppendUint32(nil, uint32(len(head))))
	frame.Write(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(frame.Bytes()[start:])))
	frame.Write(head)
	frame.Write(text)
	frame.Write(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(frame.Bytes()[start:])))
}

// forbiddenBy is a 403 of a kind.
func forbiddenBy(kind, message string) *fault {
	return &fault{status: http.StatusForbidden, kind: kind, message: message}
}

// admit refuses a caller who does not name the access key. The signature needs the body and is checked with it.
func (b bedrock) admit(r *http.Request) *fault {
	if b.Key == "" {
		return nil
	}
	id, _, _ := strings.Cut(b.Key, ",")
	_, fields, ok := readAuthorization(r)
	switch scope := strings.Split(fields["Credential"], "/"); {
	case !ok:
		return forbiddenBy("MissingAuthenticationTokenException", "Missing Authentication Token")
	case len(scope) != 5 || scope[3] != "bedrock" || scope[4] != "aws4_request" || fields["SignedHeaders"] == "" || fields["Signature"] == "":
		return forbiddenBy("IncompleteSignatureException", "The Authorization header is not one of AWS4-HMAC-SHA256 for the service bedrock.")
	case scope[0] != id:
		return forbiddenBy("UnrecognizedClientException", "The security token included in the request is invalid.")
	}
	return nil
}

func readAuthorization(r *http.Request) (algorithm string, fields map[string]string, ok bool) {
	algorithm, list, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	fields = map[string]string{}
	for field := range strings.SplitSeq(list, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(field), "=")
		fields[name] = value
	}
	return algorithm, fields, ok && algorithm == "AWS4-HMAC-SHA256"
}

const clockSkew = 5 * time.Minute

// checkSignature computes version 4 of AWS's signature of a request and compares it with the one that was sent.
func (b bedrock) checkSignature(r *http.Request, body []byte) *fault {
	if b.Key == "" {
		return nil
	}
	_, secret, _ := strings.Cut(b.Key, ",")
	algorithm, fields, _ := readAuthorization(r)
	scope := strings.Split(fields["Credential"], "/")[1:]
	date := r.Header.Get("X-Amz-Date")
	at, err := time.Parse("20060102T150405Z", date)
	if err != nil || !strings.HasPrefix(date, scope[0]) {
		return forbiddenBy("IncompleteSignatureException", "X-Amz-Date is missing or is not of the day of the credential.")
	}
	if age := b.Now().Sub(at).Abs(); age > clockSkew {
		return forbiddenBy("InvalidSignatureException", "Signature expired: "+date+" is too far from the time of the server.")
	}
	wrong := forbiddenBy("InvalidSignatureException", "The request signature we calculated does not match the signature you "+
		"provided. Check your AWS Secret Access Key and signing method. Consult the service documentation for details.")

	// What was asked for stands in the request line: a prefix may be gone from the URL.
	path, query, _ := strings.Cut(r.RequestURI, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return wrong
	}
	var canonical strings.Builder
	fmt.Fprintf(&canonical, "%s\n%s\n%s\n", r.Method, escapeAWS(path), strings.ReplaceAll(values.Encode(), "+", "%20"))
	names := strings.Split(fields["SignedHeaders"], ";")
	if !slices.IsSorted(names) || !slices.Contains(names, "host") || !slices.Contains(names, "x-amz-date") {
		return wrong
	}
	for _, name := range names {
		value := strings.Join(r.Header.Values(name), ",")
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = fmt.Sprint(r.ContentLength)
		}
		fmt.Fprintf(&canonical, "%s:%s\n", name, strings.Join(strings.Fields(value), " "))
	}
	sum := sha256.Sum256(body)
	payload := hex.EncodeToString(sum[:])
	if sent := r.Header.Get("X-Amz-Content-Sha256"); sent != "" && sent != payload {
		return wrong
	}
	fmt.Fprintf(&canonical, "\n%s\n%s", fields["SignedHeaders"], payload)

	sum = sha256.Sum256([]byte(canonical.String()))
	key := []byte("AWS4" + secret)
	for _, step := range append(scope, strings.Join([]string{algorithm, date, strings.Join(scope, "/"), hex.EncodeToString(sum[:])}, "\n")) {
		mac := hmac.New(sha256.New, key)
		_, _ = io.WriteString(mac, step)
		key = mac.Sum(nil)
	}
	if signature, err := hex.DecodeString(fields["Signature"]); err != nil || !hmac.Equal(signature, key) {
		return wrong
	}
	return nil
}

// escapeAWS escapes a path, which is escaped already, once more.
func escapeAWS(path string) string {
	var b strings.Builder
	for i := range len(path) {
		switch c := path[i]; {
		case c == '/' || c == '-' || c == '_' || c == '.' || c == '~' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z':
			b.WriteByte(c)
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
