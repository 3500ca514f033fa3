package simulate

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// openai is what Chat Completions and Responses share.
type openai struct{ *core }

func (o openai) admit(r *http.Request) *fault {
	key, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return o.admitKey(key)
}

func (o openai) models(*http.Request) (any, *fault) {
	data := []object{}
	for _, id := range o.listed() {
		data = append(data, object{"id": id, "object": "model", "created": o.Now().Unix(), "owned_by": "simulate"})
	}
	return object{"object": "list", "data": data}, nil
}

func (openai) refusal(f *fault, r *http.Request, _ http.Header) any {
	long := fault{param: "input", message: "Your input exceeds the context window of this model. Please adjust your input and try again."}
	if r != nil && strings.HasSuffix(r.URL.Path, "/chat/completions") {
		long = fault{param: "messages", message: "This model's maximum context length is 128000 tokens. However, your messages " +
			"resulted in 130017 tokens. Please reduce the length of the messages."}
	}
	long.kind, long.code = "invalid_request_error", tooLong
	f.fill(map[string]fault{
		noQuota: {kind: noQuota, code: noQuota, message: "You exceeded your current quota, please check your plan and " +
			"billing details. For more information on this error, read the docs: " +
			"https://platform.openai.com/docs/guides/error-codes/api-errors."},
		tooLong: long,
	}, map[int]fault{
		401: {kind: "invalid_request_error", code: "invalid_api_key", message: "Incorrect API key provided. " +
			"Check the key that is sent as a bearer token."},
		403: {kind: "invalid_request_error", code: "unsupported_country_region_territory", message: "Country, region, or " +
			"territory not supported"},
		413: {kind: "invalid_request_error", message: "The request body is larger than 33554432 bytes."},
		429: {kind: "requests", code: "rate_limit_exceeded", retryAfter: 1, message: "Rate limit reached on requests per " +
			"min (RPM): Limit 3, Used 3, Requested 1. Please try again in 1s."},
		500: {kind: "server_error", message: "The server had an error while processing your request. Sorry about that!"},
		503: {kind: "server_error", message: "That model is currently overloaded with other requests. You can retry " +
			"your request."},
	})
	if f.kind == "" {
		f.kind = "server_error"
		if f.status < 500 {
			f.kind = "invalid_request_error"
		}
	}
	return object{"error": object{
		"message": f.message, "type": f.kind, "param": orNull(f.param), "code": orNull(f.code),
	}}
}

// fill completes a fault that has no message yet: by its code, or else by its status.
func (f *fault) fill(coded map[string]fault, known map[int]fault) {
	if f.message != "" {
		return
	}
	sent := *f
	*f = known[sent.status]
	if c, ok := coded[sent.code]; ok {
		*f = c
	}
	f.status, f.page, f.retryDate = cmp.Or(f.status, sent.status), sent.page, sent.retryDate
	f.retryAfter = cmp.Or(sent.retryAfter, f.retryAfter)
	f.message = cmp.Or(f.message, fmt.Sprintf("Simulated error: %s", cmp.Or(http.StatusText(f.status), strconv.Itoa(f.status))))
}

// bad is a 400 in the manner of OpenAI.
func bad(param, code, format string, args ...any) *fault {
	return &fault{status: http.StatusBadRequest, param: param, code: code, message: fmt.Sprintf(format, args...)}
}

func longUser(user string) *fault {
	return bad("user", "string_above_max_length", "Invalid 'user': string too long. Expected a string with maximum length 64, "+
		"but got a string with length %d instead.", utf8.RuneCountInString(user))
}

// decode reads JSON. The path says where the text stands in the request.
func decode(raw []byte, into any, path string) *fault {
	err := json.Unmarshal(raw, into)
	if err == nil {
		return nil
	}
	wrong := (*json.UnmarshalTypeError)(nil)
	if !errors.As(err, &wrong) {
		return bad(path, "", "We could not parse the JSON body of your request: %s.", err)
	}
	at := strings.Trim(path+"."+strings.ToLower(wrong.Field), ".")
	want := "an object"
	if wrong.Type != nil {
		switch kind := wrong.Type.Kind().String(); kind {
		case "string":
			want = "a string"
		case "bool":
			want = "a boolean"
		case "int", "float64":
			want = "an integer"
		case "slice":
			want = "an array"
		}
	}
	got, _, _ := strings.Cut(wrong.Value, " ")
	got = cmp.Or(map[string]string{"object": "an object", "array": "an array", "bool": "a boolean"}[got], "a "+got)
	return bad(at, "invalid_type", "Invalid type for '%s': expected %s, but got %s instead.", at, want, got)
}

// missing is the fault of a field that is not there.
func missing(param string) *fault {
	return bad(param, "missing_required_parameter", "Missing required parameter: '%s'.", param)
}

func invalidValue(param, value string, supported ...string) *fault {
	return bad(param, "invalid_value", "Invalid value: '%s'. Supported values are: '%s'.", clip(value, 100),
		strings.Join(supported, "', '"))
}

func (o openai) unknownModel(model string) *fault {
	return &fault{
		status: http.StatusNotFound, code: "model_not_found",
		message: fmt.Sprintf("The model `%s` does not exist or you do not have access to it.", clip(model, 100)),
	}
}

var openaiToolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

func checkToolName(name, path string) *fault {
	if name == "" {
		return missing(path)
	}
	if !openaiToolName.MatchString(name) {
		return bad(path, "invalid_value", "Invalid '%s': string does not match pattern. Expected a string that matches "+
			"the pattern '^[a-zA-Z0-9_-]+$' and has at most 64 characters.", path)
	}
	return nil
}

// choose reads a tool_choice: a word, a named function, or a list of allowed ones. Both protocols nest the names in
// their own way, and all of the ways are read here.
func (t *turn) choose(raw json.RawMessage) *fault {
	var mode string
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	if json.Unmarshal(raw, &mode) == nil {
		if !slices.Contains([]string{"none", "auto", "required"}, mode) {
			return invalidValue("tool_choice", mode, "none", "auto", "required")
		}
		t.never, t.must = mode == "none", mode == "required"
		return nil
	}
	type named struct {
		Name     string
		Function struct{ Name string }
	}
	var choice struct {
		named
		Type    string
		Mode    string
		Tools   []named
		Allowed *struct {
			Mode  string
			Tools []named
		} `json:"allowed_tools"`
	}
	if f := decode(raw, &choice, "tool_choice"); f != nil {
		return f
	}
	switch choice.Type {
	case "function":
		t.must, t.only = true, map[string]bool{cmp.Or(choice.Name, choice.Function.Name): true}
	case "allowed_tools":
		mode, tools := choice.Mode, choice.Tools
		if choice.Allowed != nil {
			mode, tools = choice.Allowed.Mode, choice.Allowed.Tools
		}
		if mode != "auto" && mode != "required" {
			return invalidValue("tool_choice.mode", mode, "auto", "required")
		}
		t.must = mode == "required"
		t.only = map[string]bool{}
		for _, tool := range tools {
			t.only[cmp.Or(tool.Name, tool.Function.Name)] = true
		}
	default:
		return invalidValue("tool_choice.type", choice.Type, "function", "allowed_tools")
	}
	return t.checkChoice()
}

// checkChoice makes sure that the tools named by the choice exist.
func (t *turn) checkChoice() *fault {
	offered := map[string]bool{}
	for _, tool := range t.tools {
		offered[tool.name] = true
	}
	for name := range t.only {
		if !offered[name] {
			return bad("tool_choice", "", "Tool choice '%s' not found in 'tools' parameter.", clip(name, 100))
		}
	}
	return nil
}

// readStops reads a stop field: a string or an array of them.
func readStops(raw json.RawMessage) []string {
	var one string
	var many []string
	if json.Unmarshal(raw, &one) == nil && one != "" {
		return []string{one}
	}
	_ = json.Unmarshal(raw, &many)
	return many
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}
