package simulate

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// google is what generateContent, Interactions and the embeddings share. They take each other's thought signatures.
type google struct {
	*core
	account *account // of Vertex AI; nil: the Gemini API
}

// Gemini returns a provider of the Gemini API: POST …/v1beta/models/{m}:generateContent, :streamGenerateContent,
// :embedContent, :batchEmbedContents and :countTokens, POST …/v1beta/interactions, GET …/v1beta/models with paging. The
// names of models that embed hold "embed", of those that speak "tts"; those of Gemini 1 and 2 take calls unsigned. A
// thought signature is one of the call, text or media that it was given with.
func Gemini(o Options) *Provider {
	c := newCore(o)
	return &Provider{c, google{core: c}, func(path string) bool {
		_, method := splitMethod(path)
		return method != "" || strings.HasSuffix(path, "/v1beta/interactions")
	}, "x-request-id"}
}

var googleMethods = []string{"generateContent", "streamGenerateContent", "embedContent", "batchEmbedContents", "countTokens"}

// splitMethod reads a path such as /v1beta/models/m:countTokens. The method is empty if there is none.
func splitMethod(path string) (model, method string) {
	at := strings.LastIndexByte(path, ':')
	_, model, ok := strings.Cut(path[:max(at, 0)], "/models/")
	if !ok || model == "" || !slices.Contains(googleMethods, path[at+1:]) {
		return "", ""
	}
	return model, path[at+1:]
}

func (g google) admit(r *http.Request) *fault {
	if g.account != nil {
		return g.account.admit(r)
	}
	key := cmp.Or(r.Header.Get("X-Goog-Api-Key"), r.URL.Query().Get("key"))
	if g.Key != "" && key == "" {
		return &fault{status: http.StatusForbidden, message: "Method doesn't allow unregistered callers (callers without " +
			"established identity). Please use API Key or other form of API consumer identity to call this API."}
	}
	if g.admitKey(key) != nil {
		return &fault{
			status: http.StatusBadRequest, message: "API key not valid. Please pass a valid API key.",
			details: []object{{
				"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com",
			}},
		}
	}
	return nil
}

// models returns one page of the listing: pageSize models (50 unless asked for otherwise) after the pageToken.
func (g google) models(r *http.Request) (any, *fault) {
	query := r.URL.Query()
	size, err := strconv.Atoi(cmp.Or(query.Get("pageSize"), "50"))
	if err != nil || size < 0 {
		return nil, argument("Invalid value at 'page_size'.")
	}
	ids := g.listed()
	if token := query.Get("pageToken"); token != "" {
		start, err := strconv.Atoi(token)
		if err != nil || start < 0 || start > len(ids) {
			return nil, argument("The page token is not valid.")
		}
		ids = ids[start:]
	}
	shown := ids[:min(cmp.Or(min(size, 1000), 50), len(ids))]
	models := []object{}
	for _, id := range shown {
		if g.account != nil {
			models = append(models, object{"name": "publishers/google/models/" + id, "launchStage": "GA"})
			continue
		}
		methods := []string{"generateContent", "countTokens"}
		if embeds(id) {
			methods = []string{"embedContent", "batchEmbedContents"}
		}
		models = append(models, object{
			"name": "models/" + id, "version": "001", "displayName": id, "description": "A simulated model",
			"inputTokenLimit": 1048576, "outputTokenLimit": 65536, "supportedGenerationMethods": methods,
		})
	}
	page := object{"models": models}
	if g.account != nil {
		page = object{"publisherModels": models}
	}
	if rest := len(ids) - len(shown); rest > 0 {
		page["nextPageToken"] = strconv.Itoa(len(g.listed()) - rest)
	}
	return page, nil
}

func embeds(model string) bool { return strings.Contains(strings.ToLower(model), "embed") }

func speaks(model string) bool { return strings.Contains(strings.ToLower(model), "tts") }

// refusal returns the body of an error. A stream that was to be a JSON array is an array with the error.
func (google) refusal(f *fault, r *http.Request, _ http.Header) any {
	f.fill(map[string]fault{
		noQuota: {message: "You exceeded your current quota, please check your plan and billing details.", details: []object{{
			"@type":      "type.googleapis.com/google.rpc.QuotaFailure",
			"violations": []object{{"quotaId": "GenerateRequestsPerDayPerProjectPerModel", "quotaValue": "1000"}},
		}}},
		tooLong: {message: "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."},
	}, map[int]fault{
		401: {message: "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or " +
			"other valid authentication credential."},
		403: {message: "The caller does not have permission"},
		413: {message: "Request payload size exceeds the limit: 33554432 bytes."},
		429: {message: "You exceeded your current quota, please check your plan and billing details.", details: []object{
			{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": fmt.Sprintf("%ds", cmp.Or(f.retryAfter, 1))},
		}},
		500: {message: "An internal error has occurred. Please retry."},
		503: {message: "The model is overloaded. Please try again later."},
	})
	status, ok := map[int]string{
		401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 409: "ABORTED", 429: "RESOURCE_EXHAUSTED",
		499: "CANCELLED", 500: "INTERNAL", 501: "UNIMPLEMENTED", 503: "UNAVAILABLE", 504: "DEADLINE_EXCEEDED",
	}[f.status]
	switch {
	case !ok && f.status < 500:
		status = "INVALID_ARGUMENT"
	case !ok:
		status = "UNKNOWN"
	}
	failure := object{"code": f.status, "message": f.message, "status": status}
	if f.details != nil {
		failure["details"] = f.details
	}
	body := object{"error": failure}
	if r != nil && strings.HasSuffix(r.URL.Path, ":streamGenerateContent") && r.URL.Query().Get("alt") != "sse" {
		return []object{body}
	}
	return body
}

// argument is a 400 in the manner of Google.
func argument(format string, args ...any) *fault {
	return &fault{status: http.StatusBadRequest, message: fmt.Sprintf(format, args...)}
}

func (g google) read(body []byte, r *http.Request) (exchange, *fault) {
	model, method := splitMethod(r.URL.Path)
	if g.account != nil && !vertexPath.MatchString(r.URL.Path) {
		return nil, &fault{status: http.StatusNotFound}
	}
	if method == "" {
		return g.readInteraction(body)
	}
	unsupported := &fault{status: http.StatusNotFound, message: fmt.Sprintf("models/%s is not found for API version v1beta, "+
		"or is not supported for %s. Call ModelService.ListModels to see the list of available models and their supported "+
		"methods.", clip(model, 100), method)}
	forEmbedding := method == "embedContent" || method == "batchEmbedContents"
	if !g.serves(model) || forEmbedding != embeds(model) && method != "countTokens" {
		return nil, unsupported
	}
	switch method {
	case "countTokens":
		return g.readCount(body, model)
	case "embedContent", "batchEmbedContents":
		return g.readEmbed(body, model, method)
	}
	return g.readContent(body, r, model, method)
}

// protos are the messages of the API with their fields. After a colon stands the message that a field holds, with [] if
// there are many and with {} if they have names; "scalar" is anything but an object or a list; other fields hold
// anything.
var protos = parseProtos(map[string]string{
	"GenerateContentRequest": "contents:[]Content systemInstruction:Content tools:[]Tool toolConfig:ToolConfig " +
		"safetySettings generationConfig:GenerationConfig cachedContent model:scalar labels serviceTier:scalar store " +
		"modelArmorConfig",
	"Content": "role:scalar parts:[]Part",
	"Part": "text:scalar thought:scalar thoughtSignature:scalar inlineData:Blob fileData functionCall:FunctionCall " +
		"functionResponse:FunctionResponse executableCode codeExecutionResult toolCall toolResponse videoMetadata " +
		"speechMetadata mediaResolution partMetadata",
	"Blob":             "mimeType:scalar data:scalar displayName:scalar",
	"FunctionCall":     "id:scalar name:scalar args partialArgs willContinue",
	"FunctionResponse": "id:scalar name:scalar response parts:[]Part willContinue scheduling",
	"Tool": "functionDeclarations:[]FunctionDeclaration googleSearch googleSearchRetrieval codeExecution urlContext " +
		"computerUse fileSearch googleMaps retrieval",
	"FunctionDeclaration": "name:scalar description:scalar behavior parameters:Schema parametersJsonSchema response:Schema " +
		"responseJsonSchema",
	"ToolConfig":            "functionCallingConfig:FunctionCallingConfig retrievalConfig includeServerSideToolInvocations",
	"FunctionCallingConfig": "mode:scalar allowedFunctionNames",
	"GenerationConfig": "stopSequences responseMimeType:scalar responseSchema:Schema responseJsonSchema " +
		"responseModalities candidateCount maxOutputTokens temperature topP topK seed presencePenalty frequencyPenalty " +
		"responseLogprobs logprobs enableEnhancedCivicAnswers speechConfig thinkingConfig:ThinkingConfig imageConfig " +
		"mediaResolution audioTimestamp routingConfig",
	"ThinkingConfig": "includeThoughts:scalar thinkingBudget:scalar thinkingLevel:scalar",
	"Schema": "type:scalar format:scalar title:scalar description:scalar nullable enum items:Schema maxItems minItems " +
		"properties:{}Schema required minProperties maxProperties minLength maxLength pattern example anyOf:[]Schema " +
		"propertyOrdering default minimum maximum",
	"CountTokensRequest": "contents:[]Content systemInstruction:Content tools:[]Tool generationConfig " +
		"generateContentRequest:GenerateContentRequest model",
	"EmbedContentRequest": "model:scalar content:Content taskType:scalar title:scalar outputDimensionality autoTruncate " +
		"embedContentConfig",
	"BatchEmbedContentsRequest": "requests:[]EmbedContentRequest",
})

func parseProtos(table map[string]string) map[string]map[string]string {
	all := map[string]map[string]string{}
	for message, fields := range table {
		all[message] = map[string]string{}
		for field := range strings.FieldsSeq(fields) {
			name, kind, _ := strings.Cut(field, ":")
			all[message][name] = kind
		}
	}
	return all
}

// decodeProto reads a message that holds no field but its own, which may be written in camel or in snake case.
func decodeProto(body []byte, message string, into any) *fault {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	var sent any
	if err := decoder.Decode(&sent); err != nil {
		return argument("Invalid JSON payload received. %s", err)
	}
	c := protoChecker{}
	text, err := json.Marshal(c.message(sent, message, ""))
	if len(c.wrong) > 0 {
		var violations []object
		for _, w := range c.wrong {
			violations = append(violations, object{"field": w[0], "description": w[1]})
		}
		var all []string
		for _, w := range c.wrong {
			all = append(all, w[1])
		}
		return &fault{
			status: http.StatusBadRequest, message: strings.Join(all, "\n"),
			details: []object{{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": violations}},
		}
	}
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return argument("Invalid value in the JSON payload: %s", err)
	}
	return nil
}

// protoChecker collects what is wrong with a message: pairs of a path and a description.
type protoChecker struct{ wrong [][2]string }

func (c *protoChecker) refuse(at, format string, args ...any) {
	if len(c.wrong) < 20 {
		c.wrong = append(c.wrong, [2]string{at, fmt.Sprintf(format, args...)})
	}
}

// message returns the message with its fields in camel case.
func (c *protoChecker) message(value any, kind, at string) any {
	fields, ok := value.(map[string]any)
	if !ok {
		c.refuse(at, "Invalid value at '%s' (%s), the value is no object", at, kind)
		return nil
	}
	clean := map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		name := camel(key)
		inner, known := protos[kind][name]
		if !known {
			place := ""
			if at != "" {
				place = " at '" + at + "'"
			}
			c.refuse(at, "Invalid JSON payload received. Unknown name %q%s: Cannot find field.", clip(key, 100), place)
			continue
		}
		path := strings.Trim(at+"."+snake(name), ".")
		clean[name] = c.field(fields[key], inner, path, at, key)
	}
	return clean
}

func (c *protoChecker) field(value any, kind, path, at, key string) any {
	list, isList := value.([]any)
	switch element, many := strings.CutPrefix(kind, "[]"); {
	case value == nil || kind == "":
		return value
	case many:
		if !isList {
			list = []any{value} // one of many is taken for all
		}
		all := []any{}
		for i, v := range list {
			all = append(all, c.message(v, element, fmt.Sprintf("%s[%d]", path, i)))
		}
		return all
	case isList:
		c.refuse(at, "Invalid JSON payload received. Unknown name %q at '%s': Proto field is not repeating, cannot start list.",
			key, at)
		return nil
	case kind == "scalar":
		if _, isObject := value.(map[string]any); isObject {
			c.refuse(path, "Invalid value at '%s', a message was found where a scalar is expected", path)
			return nil
		}
		return value
	}
	if element, named := strings.CutPrefix(kind, "{}"); named {
		fields, _ := value.(map[string]any)
		all := map[string]any{}
		for i, name := range slices.Sorted(maps.Keys(fields)) {
			all[name] = c.message(fields[name], element, fmt.Sprintf("%s[%d].value", path, i))
		}
		return all
	}
	return c.message(value, kind, path)
}

func camel(name string) string {
	words := strings.Split(name, "_")
	for i, word := range words[1:] {
		if word != "" {
			words[i+1] = strings.ToUpper(word[:1]) + word[1:]
		}
	}
	return strings.Join(words, "")
}

func snake(name string) string {
	var b strings.Builder
	for _, r := range name {
		if unicode.IsUpper(r) {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// placeholderSignature is what a caller may send with a call that the API did not make.
const placeholderSignature = "skip_thought_signature_validator"

// signature returns the thought signature of what the thoughts led to: a call, a text or media.
func (g google) signature(subject string) string { return g.sealer.sign("thought " + subject) }

// The subjects of thought signatures. Of arguments only the value counts, not how it is written.
func callSubject(name string, arguments json.RawMessage) string {
	var value any
	_ = json.Unmarshal(arguments, &value)
	if value == nil {
		value = object{}
	}
	text, _ := json.Marshal(value)
	return "call " + name + " " + string(text)
}

func textSubject(text string) string { return "text " + text }

func mediaSubject(data []byte) string { return "media " + string(data) }

// subjectOf is the subject of a part of a reply.
func subjectOf(p part) string {
	switch p.kind {
	case call:
		if p.partial {
			p.text = "{}"
		}
		return callSubject(p.name, json.RawMessage(p.text))
	case painting, sketch, speech:
		return mediaSubject([]byte(p.text))
	}
	return textSubject(p.text)
}

// checkSignature refuses a signature that was not issued here for one of the subjects.
func (g google) checkSignature(signature, at string, subjects iter.Seq[string]) *fault {
	if signature == placeholderSignature {
		return nil
	}
	raw, ok := decodeBytes(signature)
	if !ok {
		return argument("Invalid value at '%s' (TYPE_BYTES), Base64 decoding failed for %q", at, clip(signature, 100))
	}
	proof := base64.StdEncoding.EncodeToString(raw)
	for subject := range subjects {
		if g.sealer.verify(proof, "thought "+subject) {
			return nil
		}
	}
	if g.account != nil {
		return argument("Unable to submit request because Thought signature is not valid.")
	}
	return argument("Corrupted thought signature.")
}

// decodeBytes reads bytes in either alphabet of base64, padded or not.
func decodeBytes(text string) ([]byte, bool) {
	text = strings.NewReplacer("-", "+", "_", "/").Replace(strings.TrimRight(text, "="))
	raw, err := base64.RawStdEncoding.DecodeString(text)
	return raw, err == nil
}

// readMedia adds a picture to the prompt, or another document.
func (t *turn) readMedia(mimeType, data, at string) *fault {
	raw, ok := decodeBytes(data)
	switch {
	case mimeType == "":
		return argument("%s: the media type is missing", at)
	case !ok || len(raw) == 0:
		return argument("Invalid value at '%s' (TYPE_BYTES), Base64 decoding failed for %q", at, clip(data, 40))
	case !strings.HasPrefix(mimeType, "image/"):
		t.say("media", data)
		return nil
	}
	picture, _ := decodePicture(mimeType, base64.StdEncoding.EncodeToString(raw))
	t.see(picture, data)
	return nil
}

// readFunctionResult returns the text of what a function gave back, and whether it failed.
func readFunctionResult(raw json.RawMessage) (text string, failed bool) {
	if json.Unmarshal(raw, &text) == nil {
		return text, false
	}
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(raw, &fields)
	_, failed = fields["error"]
	for _, value := range fields {
		if len(fields) == 1 && json.Unmarshal(value, &text) == nil {
			return text, failed
		}
	}
	return string(raw), failed
}

// readCount reads a countTokens request.
func (g google) readCount(body []byte, model string) (exchange, *fault) {
	var request struct {
		contentRequest
		GenerateContentRequest *contentRequest
	}
	if f := decodeProto(body, "CountTokensRequest", &request); f != nil {
		return nil, f
	}
	x := &contentExchange{google: g, turn: turn{model: model}}
	if f := x.readRequest(cmp.Or(request.GenerateContentRequest, &request.contentRequest)); f != nil {
		return nil, f
	}
	return newCounter(x.turn, func(tokens int) object {
		return object{"totalTokens": tokens, "promptTokensDetails": []object{{"modality": "TEXT", "tokenCount": tokens}}}
	}), nil
}

// embedding is a request for the vectors of some contents.
type embedding struct {
	google
	turn
	texts []string
	sizes []int // of the vectors
	batch bool
}

const googleVector = 3072 // numbers of a vector, unless the request wants fewer

func (g google) readEmbed(body []byte, model, method string) (exchange, *fault) {
	type contentToEmbed struct {
		Model                string
		Content              *content
		OutputDimensionality *int
		EmbedContentConfig   struct{ OutputDimensionality *int } // of Vertex
	}
	x := &embedding{google: g, turn: turn{model: model}, batch: method == "batchEmbedContents"}
	var requests []contentToEmbed
	if x.batch {
		var all struct{ Requests []contentToEmbed }
		if f := decodeProto(body, "BatchEmbedContentsRequest", &all); f != nil {
			return nil, f
		}
		if requests = all.Requests; len(requests) == 0 || len(requests) > 100 {
			return nil, argument("* BatchEmbedContentsRequest.requests: at least one request and at most 100 can be in one batch")
		}
	} else {
		requests = make([]contentToEmbed, 1)
		if f := decodeProto(body, "EmbedContentRequest", &requests[0]); f != nil {
			return nil, f
		}
	}
	for i, request := range requests {
		at := fmt.Sprintf("requests[%d].", i)
		if !x.batch {
			at = ""
		}
		size := cmp.Or(request.OutputDimensionality, request.EmbedContentConfig.OutputDimensionality, new(googleVector))
		switch {
		case x.batch && request.Model != "models/"+model || request.Model != "" && request.Model != "models/"+model:
			return nil, argument("* BatchEmbedContentsRequest.%smodel: the model of a request must be the model of the batch, models/%s", at, model)
		case request.Content == nil || len(request.Content.Parts) == 0:
			return nil, argument("* %scontent: content is required to embed.", at)
		case *size < 1 || *size > googleVector:
			return nil, argument("* %soutput_dimensionality: must be in the range [1, %d].", at, googleVector)
		}
		var texts []string
		for k, part := range request.Content.Parts {
			switch {
			case part.Text != nil:
				texts = append(texts, *part.Text)
				x.hear(*part.Text)
			case part.InlineData != nil:
				if f := x.readMedia(part.InlineData.MimeType, part.InlineData.Data, fmt.Sprintf("%scontent.parts[%d].inline_data.data", at, k)); f != nil {
					return nil, f
				}
				texts = append(texts, part.InlineData.Data)
			default:
				return nil, argument("* %scontent.parts[%d]: only text and media can be embedded", at, k)
			}
		}
		x.texts, x.sizes = append(x.texts, strings.Join(texts, " ")), append(x.sizes, *size)
	}
	return x, nil
}

func (x *embedding) asked() *turn { return &x.turn }

func (x *embedding) stream(*stream, *reply) {}

func (x *embedding) whole(r *reply) any {
	all := []object{}
	for i, text := range x.texts {
		all = append(all, object{"values": vector(text, x.sizes[i])})
	}
	body := object{"embeddings": all}
	if !x.batch {
		body = object{"embedding": all[0]}
	}
	if x.account != nil {
		body["usageMetadata"] = object{"promptTokenCount": r.usage.input, "totalTokenCount": r.usage.input}
		body["truncated"] = false
	}
	return body
}
