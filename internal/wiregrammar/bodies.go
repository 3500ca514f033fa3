package wiregrammar

import (
	"encoding/base64"
	"time"
)

// OpenAIError checks an error answer of the OpenAI protocols.
func OpenAIError(body []byte) error {
	r := &report{}
	r.openAIError(r.parse("body", body))
	return r.err()
}

func (r *report) openAIError(n node) {
	failure := n.get("error")
	failure.object()
	failure.get("message").name()
	failure.get("type").name()
	failure.get("param").orNull(isText)
	failure.get("code").orNull(isText)
}

// AnthropicError checks an error answer of the Messages protocol.
func AnthropicError(body []byte) error {
	r := &report{}
	r.anthropicError(r.parse("body", body))
	return r.err()
}

func (r *report) anthropicError(n node) {
	n.get("type").is("error")
	failure := n.get("error")
	failure.object()
	failure.get("type").oneOf("invalid_request_error", "authentication_error", "billing_error", "permission_error", "not_found_error",
		"request_too_large", "conflict_error", "rate_limit_error", "timeout_error", "api_error", "overloaded_error")
	failure.get("message").name()
	n.get("request_id").optional(isText)
}

// GeminiError checks an error answer of the generateContent protocol.
func GeminiError(body []byte) error {
	r := &report{}
	r.geminiError(r.parse("body", body))
	return r.err()
}

func (r *report) geminiError(n node) {
	failure := n.get("error")
	failure.object()
	if code := failure.get("code"); code.count() < 400 || code.count() > 599 {
		code.wrong("an HTTP status from 400 to 599; the SDK throws at these only")
	}
	failure.get("message").name()
	failure.get("status").oneOf("INVALID_ARGUMENT", "FAILED_PRECONDITION", "OUT_OF_RANGE", "UNAUTHENTICATED", "PERMISSION_DENIED", "NOT_FOUND", "ABORTED",
		"ALREADY_EXISTS", "RESOURCE_EXHAUSTED", "CANCELLED", "DATA_LOSS", "UNKNOWN", "INTERNAL", "UNIMPLEMENTED", "UNAVAILABLE", "DEADLINE_EXCEEDED")
	failure.get("details").absentOr(isObjects)
}

// Embeddings checks the answer of POST /v1/embeddings. With wantBase64 each vector is the base64 of little-endian float32
// numbers, which is what OpenAI's SDK asks for unless told otherwise; else it is an array.
func Embeddings(body []byte, wantBase64 bool) error {
	r := &report{}
	n := r.parse("body", body)
	n.get("object").is("list")
	n.get("model").name()
	data := n.get("data").list()
	if len(data) == 0 {
		n.get("data").fault("is empty")
	}
	for i, element := range data {
		element.get("object").is("embedding")
		if index := element.get("index"); index.count() != int64(i) {
			index.fault("is not %d", i)
		}
		vector := element.get("embedding")
		if wantBase64 {
			bytes, err := base64.StdEncoding.DecodeString(vector.name())
			if err != nil || len(bytes) == 0 || len(bytes)%4 != 0 {
				vector.wrong("base64 of float32 numbers")
			}
			continue
		}
		numbers := vector.list()
		if len(numbers) == 0 {
			vector.fault("is empty")
		}
		for _, number := range numbers {
			number.number()
		}
	}
	prompt := n.get("usage").get("prompt_tokens").count()
	if total := n.get("usage").get("total_tokens"); total.count() != prompt {
		total.fault("is not prompt_tokens")
	}
	return r.err()
}

// ModelList checks the answer of GET /v1/models, which OpenAI's and Anthropic's SDKs both read.
func ModelList(body []byte) error {
	r := &report{}
	n := r.parse("body", body)
	n.get("object").is("list")
	data := n.get("data").list()
	ids := map[string]bool{}
	for _, model := range data {
		id := model.get("id").name()
		if ids[id] {
			model.get("id").fault("is that of an earlier model")
		}
		ids[id] = true
		model.get("object").is("model")
		model.get("created").count()
		model.get("owned_by").name()
		model.get("type").is("model")
		model.get("display_name").name()
		at := model.get("created_at")
		if _, err := time.Parse(time.RFC3339, at.text()); err != nil {
			at.wrong("a time of RFC 3339")
		}
	}
	n.get("has_more").flag()
	first, last := n.get("first_id"), n.get("last_id")
	first.orNull(isName)
	last.orNull(isName)
	if len(data) > 0 && first.value != data[0].get("id").value {
		first.fault("is not that of the first model")
	}
	if len(data) > 0 && last.value != data[len(data)-1].get("id").value {
		last.fault("is not that of the last model")
	}
	return r.err()
}

// GeminiModelList checks the answer of GET /v1beta/models.
func GeminiModelList(body []byte) error {
	r := &report{}
	n := r.parse("body", body)
	names := map[string]bool{}
	for _, model := range n.get("models").list() {
		name := model.get("name").prefixed("models/")
		if names[name] {
			model.get("name").fault("is that of an earlier model")
		}
		names[name] = true
		for _, key := range []string{"version", "displayName", "description"} {
			model.get(key).absentOr(isText)
		}
		methods := model.get("supportedGenerationMethods").list()
		if len(methods) == 0 {
			model.get("supportedGenerationMethods").fault("is empty")
		}
		for _, method := range methods {
			method.name()
		}
		model.get("inputTokenLimit").absentOr(isCount)
		model.get("outputTokenLimit").absentOr(isCount)
	}
	n.get("nextPageToken").absentOr(isText)
	return r.err()
}
