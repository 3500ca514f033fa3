package openairesponses

import (
	"cmp"
	"strconv"

	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// Echo is what every resource of a response repeats of its request, written once.
type Echo struct{ model, instructions, asked, limits []byte }

// Resource is what changes in a response from its first event to its last.
type Resource struct {
	ID               string
	CreatedAt        int64 // seconds
	CompletedAt      int64 // 0: it is not completed
	Status           string
	IncompleteReason string
	Error            *Failure
	Output           []byte // the JSON of items, commas between them
	Usage            *Usage // nil: not known yet
}

// Failure says why a response failed.
type Failure struct{ Code, Message, Type string }

// NewEcho writes what a request says, and the defaults of what it does not say. Tools that the provider would run are not
// among those that the model has.
func NewEcho(b *Body) *Echo {
	e := &Echo{}
	e.model = appendNullable(jsonscan.AppendString([]byte(`"model":`), b.Model), "previous_response_id", nonEmpty(b.PreviousResponseID))
	e.instructions = appendNullable(nil, "instructions", b.Instructions)

	dst := []byte(`"tools":[`)
	for i, n := 0, 0; i < len(b.Tools); i++ {
		t := &b.Tools[i]
		switch t.Type {
		case "function", "custom", "namespace":
		default:
			continue
		}
		if n++; n > 1 {
			dst = append(dst, ',')
		}
		if t.Type != "function" {
			dst = append(dst, t.Raw...)
			continue
		}
		dst = jsonscan.AppendString(append(dst, `{"type":"function","name":`...), t.Name)
		dst = appendNullable(dst, "description", t.Description)
		dst = appendRaw(append(dst, `,"parameters":`...), t.Parameters)
		dst = append(dst, `,"strict":`...)
		if t.Strict == nil {
			dst = append(dst, `null}`...)
		} else {
			dst = append(strconv.AppendBool(dst, *t.Strict), '}')
		}
	}
	dst = append(dst, `],"tool_choice":`...)
	switch c := b.ToolChoice; {
	case c == nil, c.Type == "" && c.Mode == "":
		dst = append(dst, `"auto"`...)
	case c.Type == "function":
		dst = append(jsonscan.AppendString(append(dst, `{"type":"function","name":`...), c.Name), '}')
	case c.Type == "allowed_tools" && c.Mode == "":
		dst = append(append(dst, `{"mode":"auto",`...), c.Raw[1:]...)
	default:
		dst = append(dst, c.Raw...)
	}
	dst = jsonscan.AppendString(append(dst, `,"truncation":`...), cmp.Or(b.Truncation, "disabled"))
	dst = append(dst, `,"parallel_tool_calls":`...)
	dst = strconv.AppendBool(dst, b.ParallelToolCalls == nil || *b.ParallelToolCalls)
	dst = append(dst, `,"text":{"format":`...)
	switch f := b.Format; {
	case f == nil:
		dst = append(dst, `{"type":"text"}`...)
	case f.Type != "json_schema":
		dst = append(jsonscan.AppendString(append(dst, `{"type":`...), f.Type), '}')
	default:
		dst = jsonscan.AppendString(append(dst, `{"type":"json_schema","name":`...), cmp.Or(f.Name, "response"))
		dst = appendNullable(dst, "description", f.Description)
		dst = appendRaw(append(dst, `,"schema":`...), f.Schema)
		dst = strconv.AppendBool(append(dst, `,"strict":`...), isTrue(f.Strict))
		dst = append(dst, '}')
	}
	if b.Verbosity != "" {
		dst = jsonscan.AppendString(append(dst, `,"verbosity":`...), b.Verbosity)
	}
	dst = append(dst, '}')
	dst = appendNumber(dst, "top_p", b.TopP, 1)
	dst = appendNumber(dst, "presence_penalty", b.PresencePenalty, 0)
	dst = appendNumber(dst, "frequency_penalty", b.FrequencyPenalty, 0)
	dst = append(dst, `,"top_logprobs":`...)
	if b.TopLogprobs == nil {
		dst = append(dst, '0')
	} else {
		dst = strconv.AppendInt(dst, *b.TopLogprobs, 10)
	}
	dst = appendNumber(dst, "temperature", b.Temperature, 1)
	dst = appendNullable(append(dst, `,"reasoning":{`...), "effort", nonEmpty(b.Effort))
	dst = appendNullable(dst, "summary", nonEmpty(b.Summary))
	e.asked = append(dst, '}')

	dst = appendCount(nil, "max_output_tokens", b.MaxOutputTokens)
	dst = appendCount(dst, "max_tool_calls", b.MaxToolCalls)
	dst = strconv.AppendBool(append(dst, `,"store":`...), b.Stored())
	tier := b.ServiceTier
	if tier == "auto" { // which is no tier
		tier = ""
	}
	dst = jsonscan.AppendString(append(dst, `,"background":false,"service_tier":`...), cmp.Or(tier, "default"))
	dst = append(dst, `,"metadata":`...)
	if b.Metadata == nil {
		dst = append(dst, `{}`...)
	} else {
		dst = append(dst, b.Metadata...)
	}
	dst = appendNullable(dst, "safety_identifier", b.SafetyIdentifier)
	dst = appendNullable(dst, "prompt_cache_key", b.PromptCacheKey)
	if b.User != "" {
		dst = appendNullable(dst, "user", &b.User)
	}
	e.limits = dst
	return e
}

// Stored reports whether the response is to be kept, as it is unless the request says otherwise.
func (b *Body) Stored() bool { return b.Store == nil || *b.Store }

// Append appends a response resource with all of its fields.
func (e *Echo) Append(dst []byte, r *Resource) []byte {
	dst = jsonscan.AppendString(append(dst, `{"id":`...), r.ID)
	dst = strconv.AppendInt(append(dst, `,"object":"response","created_at":`...), r.CreatedAt, 10)
	dst = append(dst, `,"completed_at":`...)
	if r.CompletedAt == 0 {
		dst = append(dst, `null`...)
	} else {
		dst = strconv.AppendInt(dst, r.CompletedAt, 10)
	}
	dst = jsonscan.AppendString(append(dst, `,"status":`...), r.Status)
	if r.IncompleteReason == "" {
		dst = append(dst, `,"incomplete_details":null,`...)
	} else {
		dst = jsonscan.AppendString(append(dst, `,"incomplete_details":{"reason":`...), r.IncompleteReason)
		dst = append(dst, `},`...)
	}
	dst = append(append(dst, e.model...), e.instructions...)
	dst = append(append(dst, `,"output":[`...), r.Output...)
	if r.Error == nil {
		dst = append(dst, `],"error":null,`...)
	} else {
		dst = jsonscan.AppendString(append(dst, `],"error":{"code":`...), r.Error.Code)
		dst = jsonscan.AppendString(append(dst, `,"message":`...), r.Error.Message)
		dst = jsonscan.AppendString(append(dst, `,"type":`...), r.Error.Type)
		dst = append(dst, `},`...)
	}
	dst = append(append(dst, e.asked...), `,"usage":`...)
	if r.Usage == nil {
		dst = append(dst, `null`...)
	} else {
		input, output := value(r.Usage.InputTokens), value(r.Usage.OutputTokens)
		dst = strconv.AppendInt(append(dst, `{"input_tokens":`...), input, 10)
		dst = strconv.AppendInt(append(dst, `,"input_tokens_details":{"cached_tokens":`...), value(r.Usage.CachedTokens), 10)
		dst = strconv.AppendInt(append(dst, `,"cache_write_tokens":0},"output_tokens":`...), output, 10)
		dst = strconv.AppendInt(append(dst, `,"output_tokens_details":{"reasoning_tokens":`...), value(r.Usage.ReasoningTokens), 10)
		dst = strconv.AppendInt(append(dst, `},"total_tokens":`...), input+output, 10)
		dst = append(dst, '}')
	}
	return append(append(dst, e.limits...), '}')
}

// The statuses of responses and items.
const (
	StatusInProgress = "in_progress"
	StatusCompleted  = "completed"
	StatusIncomplete = "incomplete"
	StatusFailed     = "failed"
)

// AppendMessage appends a message of one part, a text or a refusal; of one that is in progress the part is still to come.
func AppendMessage(dst []byte, id, status, phase, part, text string) []byte {
	dst = jsonscan.AppendString(append(dst, `{"id":`...), id)
	dst = jsonscan.AppendString(append(dst, `,"type":"message","status":`...), status)
	dst = append(dst, `,"role":"assistant"`...)
	if phase != "" {
		dst = jsonscan.AppendString(append(dst, `,"phase":`...), phase)
	}
	dst = append(dst, `,"content":[`...)
	if status != StatusInProgress {
		dst = AppendPart(dst, part, text)
	}
	return append(dst, `]}`...)
}

// AppendPart appends a part of a message or of reasoning.
func AppendPart(dst []byte, part, text string) []byte {
	dst = jsonscan.AppendString(append(dst, `{"type":`...), part)
	if part == PartRefusal {
		dst = jsonscan.AppendString(append(dst, `,"refusal":`...), text)
	} else {
		dst = jsonscan.AppendString(append(dst, `,"text":`...), text)
	}
	if part == PartOutputText {
		dst = append(dst, `,"annotations":[],"logprobs":[]`...)
	}
	return append(dst, '}')
}

// AppendReasoning appends a reasoning item, its text in the list that the part's type belongs to. The standard gives it no
// status; OpenAI does, and one may be said.
func AppendReasoning(dst []byte, id, status, part, text, encrypted string) []byte {
	dst = jsonscan.AppendString(append(dst, `{"id":`...), id)
	dst = append(dst, `,"type":"reasoning"`...)
	if status != "" {
		dst = jsonscan.AppendString(append(dst, `,"status":`...), status)
	}
	dst = append(dst, `,"summary":[`...)
	if part == PartReasoningText {
		dst = append(dst, `],"content":[`...)
	}
	if text != "" {
		dst = AppendPart(dst, part, text)
	}
	dst = append(dst, ']')
	if encrypted != "" {
		dst = jsonscan.AppendString(append(dst, `,"encrypted_content":`...), encrypted)
	}
	return append(dst, '}')
}

// AppendCall appends the call of a tool, whose arguments are the text of an object or, of a custom tool, any text.
func AppendCall(dst []byte, itemType, id, status, callID, namespace, name, arguments string) []byte {
	dst = jsonscan.AppendString(append(dst, `{"id":`...), id)
	dst = jsonscan.AppendString(append(dst, `,"type":`...), itemType)
	dst = jsonscan.AppendString(append(dst, `,"status":`...), status)
	dst = jsonscan.AppendString(append(dst, `,"call_id":`...), callID)
	if namespace != "" {
		dst = jsonscan.AppendString(append(dst, `,"namespace":`...), namespace)
	}
	dst = jsonscan.AppendString(append(dst, `,"name":`...), name)
	if itemType == ItemCustomToolCall {
		dst = append(dst, `,"input":`...)
	} else {
		dst = append(dst, `,"arguments":`...)
	}
	return append(jsonscan.AppendString(dst, arguments), '}')
}

// AppendImage appends a picture; result is base64, of one that is in progress still to come.
func AppendImage(dst []byte, id, status, format, result string) []byte {
	dst = jsonscan.AppendString(append(dst, `{"id":`...), id)
	dst = jsonscan.AppendString(append(dst, `,"type":"image_generation_call","status":`...), status)
	if format != "" {
		dst = jsonscan.AppendString(append(dst, `,"output_format":`...), format)
	}
	if result == "" {
		return append(dst, `,"result":null}`...)
	}
	return append(jsonscan.AppendString(append(dst, `,"result":`...), result), '}')
}

// appendNullable appends a field that follows another, or the first of an object.
func appendNullable(dst []byte, name string, value *string) []byte {
	if len(dst) == 0 || dst[len(dst)-1] != '{' {
		dst = append(dst, ',')
	}
	dst = append(jsonscan.AppendString(dst, name), ':')
	if value == nil {
		return append(dst, `null`...)
	}
	return jsonscan.AppendString(dst, *value)
}

func appendRaw(dst, raw []byte) []byte {
	if raw == nil {
		return append(dst, `null`...)
	}
	return append(dst, raw...)
}

func appendNumber(dst []byte, name string, value *float64, otherwise float64) []byte {
	if value == nil {
		value = &otherwise
	}
	dst = append(jsonscan.AppendString(append(dst, ','), name), ':')
	return strconv.AppendFloat(dst, *value, 'f', -1, 64)
}

func appendCount(dst []byte, name string, value *int64) []byte {
	dst = append(jsonscan.AppendString(append(dst, ','), name), ':')
	if value == nil {
		return append(dst, `null`...)
	}
	return strconv.AppendInt(dst, *value, 10)
}

func nonEmpty(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
