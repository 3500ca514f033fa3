package gateway_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prism-shadow/mmsp-go/gateway/config"
	"github.com/prism-shadow/mmsp-go/internal/wiregrammar"
)

// dialect is a protocol as its callers speak it.
type dialect struct {
	endpoint string
	path     func(model string, stream bool) string
	body     func(model, prompt string, stream bool) string // with the tool "look"
	parse    func(body string) (told, error)                // of an HTTP error
	ends     func(body string) (ending, error)              // of a stream
	text     func(body string) string                       // of a whole answer

	refusal, stream func([]byte) error // what the protocol's grammar says of an HTTP error and of a stream
}

// told is an error as a caller reads it.
type told struct {
	words   string // the type and the code, or the status
	message string
	param   string
	status  int // the body says; 0: it does not
}

// ending is what a caller makes of a stream.
type ending struct {
	text   string
	calls  int
	failed *told // nil: it came to its end
	beats  int   // signs of life
}

var dialects = []dialect{responsesDialect, chatDialect, messagesDialect, geminiDialect}

// everywhere switches the endpoints of all dialects on.
func everywhere(c *config.Config) *config.Config {
	for _, d := range dialects {
		c.HTTP.Endpoints.Enable(d.endpoint)
	}
	return c
}

func (d *dialect) request(s *served, model, prompt string, stream bool) *http.Request {
	return s.request("POST", d.path(model, stream), d.body(model, prompt, stream))
}

func (d *dialect) ask(s *served, model, prompt string, stream bool) answer {
	s.t.Helper()
	return s.send(d.request(s, model, prompt, stream))
}

// failure reads the error of an answer that has a status.
func (d *dialect) failure(t *testing.T, got answer) told {
	t.Helper()
	e, err := d.parse(got.body)
	if err == nil {
		err = d.refusal([]byte(got.body))
	}
	if err != nil || got.header.Get("Content-Type") != "application/json" {
		t.Errorf("%s: %v in %d %v %s", d.endpoint, err, got.status, got.header, got.body)
	}
	if e.status != 0 && e.status != got.status {
		t.Errorf("%s: the body of a %d says %d", d.endpoint, got.status, e.status)
	}
	return e
}

// ending reads a stream, which has exactly one end.
func (d *dialect) ending(t *testing.T, got answer) ending {
	t.Helper()
	e, err := d.ends(got.body)
	if err == nil {
		err = d.stream([]byte(got.body))
	}
	if err != nil || got.status != 200 || got.header.Get("Content-Type") != "text/event-stream; charset=utf-8" {
		t.Errorf("%s: %v in %d %v\n%s", d.endpoint, err, got.status, got.header, got.body)
	}
	return e
}

func quote(text string) string { return strconv.Quote(text) }

const lookSchema = `{"type":"object","properties":{"q":{"type":"string"}}}`

var responsesDialect = dialect{
	refusal: wiregrammar.OpenAIError, stream: wiregrammar.Responses,
	endpoint: "responses",
	path:     func(string, bool) string { return "/v1/responses" },
	body: func(model, prompt string, stream bool) string {
		return fmt.Sprintf(`{"model":%s,"stream":%v,"input":%s,"tools":[{"type":"function","name":"look","parameters":%s}]}`, quote(model), stream, quote(prompt), lookSchema)
	},
	parse: openAIError,
	ends: func(body string) (e ending, err error) {
		var next int
		var terminals []string
		items := false
		events, err := eventsOf(body, &e.beats)
		if err != nil {
			return e, err
		}
		for i, event := range events {
			if event.data == "[DONE]" {
				if i != len(events)-1 || event.name != "" || len(terminals) != 1 {
					return e, fmt.Errorf("[DONE] is event %d of %d, after %q", i+1, len(events), terminals)
				}
				return e, nil
			}
			var said struct {
				Type     string
				Sequence int `json:"sequence_number"`
				Delta    string
				Response struct {
					Status string
					Error  *struct{ Type, Code, Message string }
				}
			}
			if err := json.Unmarshal([]byte(event.data), &said); err != nil || said.Type != event.name || said.Sequence != next {
				return e, fmt.Errorf("event %d: %v: %s %s", next, err, event.name, event.data)
			}
			if len(terminals) > 0 {
				return e, fmt.Errorf("%s comes after %s", said.Type, terminals)
			}
			if next++; (next == 1) != (said.Type == "response.created") {
				return e, fmt.Errorf("%s is event %d", said.Type, next)
			}
			switch said.Type {
			case "response.in_progress":
				if items {
					return e, fmt.Errorf("response.in_progress comes after an item")
				}
			case "response.output_text.delta":
				e.text += said.Delta
				if said.Delta == "" {
					e.beats++
				}
			case "response.output_item.added":
				if items = true; strings.Contains(event.data, `"function_call"`) {
					e.calls++
				}
			case "response.completed", "response.incomplete", "response.failed":
				terminals = append(terminals, said.Type)
				failure := said.Response.Error
				if "response."+said.Response.Status != said.Type || (failure != nil) != (said.Type == "response.failed") {
					return e, fmt.Errorf("%s with %s", said.Type, event.data)
				}
				if failure != nil {
					e.failed = &told{words: failure.Type + " " + failure.Code, message: failure.Message}
				}
			}
		}
		return e, fmt.Errorf("no [DONE]")
	},
	text: func(body string) string {
		var whole struct {
			Output []struct{ Content []struct{ Text string } }
		}
		_ = json.Unmarshal([]byte(body), &whole)
		if len(whole.Output) == 0 || len(whole.Output[0].Content) == 0 {
			return ""
		}
		return whole.Output[0].Content[0].Text
	},
}

var chatDialect = dialect{
	refusal: wiregrammar.OpenAIError, stream: func(b []byte) error { return wiregrammar.Chat(b, false) },
	endpoint: "chatCompletions",
	path:     func(string, bool) string { return "/v1/chat/completions" },
	body: func(model, prompt string, stream bool) string {
		return fmt.Sprintf(`{"model":%s,"stream":%v,"messages":[{"role":"user","content":%s}],"tools":[{"type":"function","function":{"name":"look","parameters":%s}}]}`,
			quote(model), stream, quote(prompt), lookSchema)
	},
	parse: openAIError,
	ends: func(body string) (e ending, err error) {
		events, err := eventsOf(body, &e.beats)
		if err != nil {
			return e, err
		}
		finished := 0
		for i, event := range events {
			if event.name != "" {
				return e, fmt.Errorf("an event line: %s", event.name)
			}
			if event.data == "[DONE]" {
				if i != len(events)-1 || finished != 1 {
					return e, fmt.Errorf("[DONE] is event %d of %d, after %d ends", i+1, len(events), finished)
				}
				return e, nil
			}
			if strings.HasPrefix(event.data, `{"error"`) {
				failure, err := openAIError(event.data)
				if finished++; err != nil {
					return e, err
				}
				e.failed = &failure
				continue
			}
			var chunk struct {
				Object  string
				Choices []struct {
					Delta struct {
						Content string
						Calls   []struct{ ID string } `json:"tool_calls"`
					}
					Finish *string `json:"finish_reason"`
				}
			}
			if err := json.Unmarshal([]byte(event.data), &chunk); err != nil || chunk.Object != "chat.completion.chunk" || finished > 0 && len(chunk.Choices) > 0 {
				return e, fmt.Errorf("%v: after %d ends %s", err, finished, event.data)
			}
			for _, choice := range chunk.Choices {
				e.text += choice.Delta.Content
				for _, call := range choice.Delta.Calls {
					if call.ID != "" {
						e.calls++
					}
				}
				if choice.Finish != nil {
					finished++
				}
			}
		}
		return e, fmt.Errorf("no [DONE]")
	},
	text: func(body string) string {
		var whole struct {
			Choices []struct{ Message struct{ Content string } }
		}
		_ = json.Unmarshal([]byte(body), &whole)
		if len(whole.Choices) == 0 {
			return ""
		}
		return whole.Choices[0].Message.Content
	},
}

var messagesDialect = dialect{
	refusal: wiregrammar.AnthropicError, stream: wiregrammar.Messages,
	endpoint: "messages",
	path:     func(string, bool) string { return "/v1/messages" },
	body: func(model, prompt string, stream bool) string {
		return fmt.Sprintf(`{"model":%s,"stream":%v,"max_tokens":1000,"messages":[{"role":"user","content":%s}],"tools":[{"name":"look","input_schema":%s}]}`,
			quote(model), stream, quote(prompt), lookSchema)
	},
	parse: anthropicError,
	ends: func(body string) (e ending, err error) {
		events, err := eventsOf(body, &e.beats)
		if err != nil {
			return e, err
		}
		for i, event := range events {
			var said struct {
				Type  string
				Block struct{ Type string } `json:"content_block"`
				Delta struct{ Text string }
			}
			if err := json.Unmarshal([]byte(event.data), &said); err != nil || said.Type != event.name {
				return e, fmt.Errorf("%v: %s %s", err, event.name, event.data)
			}
			if (said.Type == "error" || said.Type == "message_stop") != (i == len(events)-1) {
				return e, fmt.Errorf("%s is event %d of %d", said.Type, i+1, len(events))
			}
			if (said.Type == "message_start") != (i == 0) && (i > 0 || said.Type != "error") {
				return e, fmt.Errorf("%s is event %d", said.Type, i+1)
			}
			switch e.text += said.Delta.Text; said.Type {
			case "ping":
				e.beats++
			case "content_block_start":
				if said.Block.Type == "tool_use" {
					e.calls++
				}
			case "error":
				failure, err := anthropicError(event.data)
				if err != nil {
					return e, err
				}
				e.failed = &failure
			}
		}
		if len(events) == 0 {
			err = fmt.Errorf("no event")
		}
		return e, err
	},
	text: func(body string) string {
		var whole struct{ Content []struct{ Text string } }
		_ = json.Unmarshal([]byte(body), &whole)
		if len(whole.Content) == 0 {
			return ""
		}
		return whole.Content[0].Text
	},
}

var geminiDialect = dialect{
	refusal: wiregrammar.GeminiError, stream: wiregrammar.GenerateContent,
	endpoint: "generateContent",
	path: func(model string, stream bool) string {
		method := ":generateContent"
		if stream {
			method = ":streamGenerateContent?alt=sse"
		}
		return "/v1beta/models/" + strings.ReplaceAll(model, " ", "%20") + method
	},
	body: func(_, prompt string, _ bool) string {
		return fmt.Sprintf(`{"contents":[{"role":"user","parts":[{"text":%s}]}],"tools":[{"functionDeclarations":[{"name":"look","parameters":%s}]}]}`, quote(prompt), lookSchema)
	},
	parse: googleError,
	ends: func(body string) (e ending, err error) {
		events, err := eventsOf(body, &e.beats)
		if err != nil {
			return e, err
		}
		ended := false
		for _, event := range events {
			if event.name != "" || ended {
				return e, fmt.Errorf("ended %v, then %s %s", ended, event.name, event.data)
			}
			var chunk struct {
				Error      json.RawMessage
				Candidates []struct {
					Content struct {
						Parts []struct {
							Text    string
							Thought bool
							Call    json.RawMessage `json:"functionCall"`
						}
					}
					Finish string `json:"finishReason"`
				}
			}
			if err := json.Unmarshal([]byte(event.data), &chunk); err != nil {
				return e, fmt.Errorf("%v: %s", err, event.data)
			}
			if chunk.Error != nil {
				ended = true
				failure, err := googleError(event.data)
				if err != nil {
					return e, err
				}
				e.failed = &failure
			}
			for _, candidate := range chunk.Candidates {
				ended = ended || candidate.Finish != ""
				for _, part := range candidate.Content.Parts {
					if !part.Thought {
						e.text += part.Text
					}
					if part.Call != nil {
						e.calls++
					}
				}
			}
		}
		if !ended {
			err = fmt.Errorf("no end")
		}
		return e, err
	},
	text: func(body string) string {
		var whole struct {
			Candidates []struct {
				Content struct{ Parts []struct{ Text string } }
			}
		}
		_ = json.Unmarshal([]byte(body), &whole)
		if len(whole.Candidates) == 0 || len(whole.Candidates[0].Content.Parts) == 0 {
			return ""
		}
		return whole.Candidates[0].Content.Parts[0].Text
	},
}

func openAIError(body string) (told, error) {
	var said struct {
		Error map[string]*string
	}
	err := json.Unmarshal([]byte(body), &said)
	for _, key := range []string{"message", "type", "param", "code"} { // some libraries insist on four strings
		if err == nil && said.Error[key] == nil {
			err = fmt.Errorf("no %s in %s", key, body)
		}
	}
	if err != nil {
		return told{}, err
	}
	return told{words: *said.Error["type"] + " " + *said.Error["code"], message: *said.Error["message"], param: *said.Error["param"]}, nil
}

func anthropicError(body string) (told, error) {
	var said struct {
		Type      string
		Error     struct{ Type, Message string }
		RequestID string `json:"request_id"`
	}
	err := json.Unmarshal([]byte(body), &said)
	if err == nil && (said.Type != "error" || !strings.HasPrefix(said.RequestID, "req_")) {
		err = fmt.Errorf("not Anthropic's: %s", body)
	}
	return told{words: said.Error.Type, message: said.Error.Message}, err
}

func googleError(body string) (told, error) {
	var said struct {
		Error struct {
			Code            int
			Message, Status string
			Details         []struct {
				FieldViolations []struct{ Field string }
			}
		}
	}
	err := json.Unmarshal([]byte(body), &said)
	e := told{words: said.Error.Status, message: said.Error.Message, status: said.Error.Code}
	if err == nil && (e.words == "" || e.status == 0) {
		err = fmt.Errorf("not Google's: %s", body)
	}
	for _, detail := range said.Error.Details {
		for _, violation := range detail.FieldViolations {
			e.param = violation.Field
		}
	}
	return e, err
}

// serverEvent is one event of a stream.
type serverEvent struct{ name, data string }

// eventsOf reads server-sent events and counts comments and empty lines that stand alone.
func eventsOf(body string, beats *int) (events []serverEvent, err error) {
	var event serverEvent
	for line := range strings.SplitSeq(strings.TrimSuffix(body, "\n"), "\n") {
		name, value, _ := strings.Cut(line, ": ")
		switch {
		case line == "" && event.data == "" && event.name == "", strings.HasPrefix(line, ":"):
			*beats++
		case line == "":
			events = append(events, event)
			event = serverEvent{}
		case name == "event" && event == serverEvent{}:
			event.name = value
		case name == "data" && event.data == "":
			event.data = value
		default:
			return nil, fmt.Errorf("the line %q behind %+v", line, event)
		}
	}
	if event != (serverEvent{}) {
		err = fmt.Errorf("the stream ends within %+v", event)
	}
	return events, err
}

func TestDialectsAreEndpoints(t *testing.T) {
	s := start(t, everywhere(table()), own("m", plays(nil, says("hi"), stops)))
	for _, d := range dialects {
		if e := d.ending(t, d.ask(s, "m", "x", true)); e.text != "hi" || e.failed != nil {
			t.Errorf("%s: %+v", d.endpoint, e)
		}
		if got := d.ask(s, "m", "x", false); got.status != 200 || d.text(got.body) != "hi" {
			t.Errorf("%s: %d %s", d.endpoint, got.status, got.body)
		}
	}
}

// TestUnserved: what only the protocol's own provider serves is said to be lost, or refused where nothing may be.
func TestUnserved(t *testing.T) {
	t.Parallel()
	rows := simulated(t)
	strict := rows[0]
	strict.ServerModelID, strict.Strict = "strict", true
	s := start(t, everywhere(table(append(rows, strict)...)))
	asks := map[string][2]string{ // what stands first in the body, and what of it is lost
		"responses":       {`"include":["message.output_text.logprobs"],"moderation":{"model":"m"}`, "include (message.output_text.logprobs), moderation"},
		"chatCompletions": {`"logprobs":true,"prompt_cache_options":{"mode":"explicit"}`, "logprobs, prompt_cache_options"},
		"messages":        {`"container":"c","context_management":{"edits":[{"type":"clear_tool_uses_20250919"}]}`, "container, context_management"},
		"generateContent": {`"safetySettings":[{"category":"HARM_CATEGORY_HARASSMENT","threshold":"BLOCK_NONE"}],"labels":{"a":"b"}`, "safetySettings, labels"},
	}
	for i := range dialects {
		d := &dialects[i]
		ask := func(model string) answer {
			return s.send(s.request("POST", d.path(model, false), strings.Replace(d.body(model, "hi", false), "{", "{"+asks[d.endpoint][0]+",", 1)))
		}
		lost := asks[d.endpoint][1]
		if got := ask(rows[0].ServerModelID); got.status != 200 || got.header.Get("X-Mmsp-Dropped") != lost {
			t.Errorf("%s: %d %q %s", d.endpoint, got.status, got.header.Get("X-Mmsp-Dropped"), got.body)
		}
		if got := ask("strict"); got.status != 400 || !strings.Contains(d.failure(t, got).message, lost) {
			t.Errorf("%s, strict: %d %s", d.endpoint, got.status, got.body)
		}
	}
}

// TestStrictNamesTheField: what a strict row refuses is found in the body.
func TestStrictNamesTheField(t *testing.T) {
	t.Parallel()
	row := chatRow("m", "http://127.0.0.1:1")
	row.Strict = true
	s := start(t, everywhere(table(row)))
	asks := map[string][2]string{
		"responses":       {`"reasoning":{"effort":"high"}`, "reasoning.effort"},
		"chatCompletions": {`"reasoning_effort":"high"`, "reasoning_effort"},
		"messages":        {`"thinking":{"type":"adaptive"},"output_config":{"effort":"high"}`, "cannot take thinking,"},
		"generateContent": {`"generationConfig":{"thinkingConfig":{"thinkingLevel":"HIGH"}}`, "generationConfig.thinkingConfig"},
	}
	for i := range dialects {
		d := &dialects[i]
		got := s.send(s.request("POST", d.path("m", false), strings.Replace(d.body("m", "hi", false), "{", "{"+asks[d.endpoint][0]+",", 1)))
		if e := d.failure(t, got); got.status != 400 || !strings.Contains(got.body, asks[d.endpoint][1]) || e.param != "" && e.param != asks[d.endpoint][1] {
			t.Errorf("%s: %d %s", d.endpoint, got.status, got.body)
		}
	}
}

// TestLossIsToldBeforeHeartbeats: what the protocol and what the client let go of is named also where the provider is silent for
// so long that a heartbeat begins the answer.
func TestLossIsToldBeforeHeartbeats(t *testing.T) {
	t.Parallel()
	const every = 5 * time.Millisecond
	slow := chat(t, "slow", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		time.Sleep(40 * every)
		flushes(w, chatDelta+chatEnd)
	})
	strict := slow
	strict.ServerModelID, strict.Strict = "strict", true
	for _, keepAlive := range []time.Duration{0, every} {
		c := everywhere(table(slow, strict))
		c.KeepAlive = keepAlive
		s := start(t, c)
		for _, tt := range []struct {
			model, asks, dropped string
			status               int
		}{
			{"slow", ``, "", 200},
			{"slow", `"container":"c",`, "container", 200},
			{"slow", `"top_k":5,`, "top_k", 200},
			{"slow", `"top_k":5,"container":"c",`, "container, top_k", 200},
			{"strict", `"top_k":5,`, "", 400},
		} {
			for path, body := range map[string]string{
				"/v1/messages":              `"max_tokens":9,"stream":true,`,
				"/v1/messages?whole":        `"max_tokens":9,`,
				"/v1/messages/count_tokens": ``,
			} {
				got := s.send(s.request("POST", path, `{"model":"`+tt.model+`",`+tt.asks+body+`"messages":[{"role":"user","content":"hi"}]}`))
				if got.status != tt.status || got.header.Get("X-Mmsp-Dropped") != tt.dropped {
					t.Errorf("%s, %s, heartbeats every %v: %d, dropped %q", path, tt.asks, keepAlive, got.status, got.header.Get("X-Mmsp-Dropped"))
				}
				if beats := keepAlive > 0 && path == "/v1/messages" && tt.status == 200; beats != strings.Contains(got.body, "event: ping") {
					t.Errorf("%s, heartbeats every %v: %s", path, keepAlive, got.body)
				}
			}
		}
		if m := s.metrics(); m.Failures != 0 || m.Refused.InvalidRequest != 3 {
			t.Errorf("%+v, %+v", m.Counts, m.Refused)
		}
	}
}

// TestLossOfAnotherServer: what another MMSP server's client refuses is let go of when that server says so.
func TestLossOfAnotherServer(t *testing.T) {
	t.Parallel()
	inner := start(t, table(chat(t, "m", func(w http.ResponseWriter, _ *http.Request) { flushes(w, chatDelta+chatEnd) })))
	relay := config.Model{ServerModelID: "m", ModelID: "m", ClientType: "mmsp", BaseURL: inner.url + "/v1"}
	strict := relay
	strict.ServerModelID, strict.Strict = "strict", true
	s := start(t, everywhere(table(relay, strict)))
	for _, tt := range []struct {
		model, dropped string
		status         int
	}{{"m", "container, top_k", 200}, {"strict", "", 400}} {
		for _, stream := range []bool{false, true} {
			body := strings.Replace(messagesDialect.body(tt.model, "hi", stream), "{", `{"top_k":5,`, 1)
			if tt.model == "m" {
				body = strings.Replace(body, "{", `{"container":"c",`, 1)
			}
			if got := s.send(s.request("POST", "/v1/messages", body)); got.status != tt.status || got.header.Get("X-Mmsp-Dropped") != tt.dropped {
				t.Errorf("%s, stream %v: %d, dropped %q: %s", tt.model, stream, got.status, got.header.Get("X-Mmsp-Dropped"), got.body)
			}
		}
	}
}

// TestEndlessRefusal: what another server refuses again, or what nobody asked for, is refused to the caller at once.
func TestEndlessRefusal(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(400)
		io.WriteString(w, `{"error":{"type":"UnsupportedParameterError","message":"no","client":"C","parameter":"temperature"}}`)
	}))
	defer refuses.Close()
	s := start(t, everywhere(table(config.Model{ServerModelID: "m", ModelID: "m", ClientType: "mmsp", BaseURL: refuses.URL + "/v1"})))
	for _, tt := range []struct {
		fields string
		asked  int64
	}{{"", 1}, {`"temperature":0.5,`, 2}} {
		asked.Store(0)
		body := strings.Replace(messagesDialect.body("m", "hi", false), "{", "{"+tt.fields, 1)
		if got := s.send(s.request("POST", "/v1/messages", body)); got.status != 400 || asked.Load() != tt.asked {
			t.Errorf("%q: %d after %d requests: %s", tt.fields, got.status, asked.Load(), got.body)
		}
	}
}

// TestStopInTheMidst: a stop of another server in the midst of an item is no end.
func TestStopInTheMidst(t *testing.T) {
	t.Parallel()
	event := func(kind, item, finish string) string {
		return `data: {"role":"assistant","event_type":"` + kind + `","content_items":[` + item + `],"usage_metadata":null,"finish_reason":` + finish + `,"created_at":1}` + "\n\n"
	}
	end := event("stop", "", `"tool_call"`) + "data: [DONE]\n\n"
	for _, open := range []string{
		event("delta", `{"type":"text.delta","text":"Hel"}`, "null"),
		event("delta", `{"type":"tool_call.delta","name":"look","tool_call_id":"c","arguments":"{\"ci"}`, "null"),
	} {
		row := chat(t, "m", func(w http.ResponseWriter, _ *http.Request) { flushes(w, open+end) })
		row.ClientType = "mmsp"
		s := start(t, everywhere(table(row)))
		for i := range dialects {
			d := &dialects[i]
			if got := s.send(s.request("POST", d.path("m", false), d.body("m", "hi", false))); got.status != 502 {
				t.Errorf("%s: %d %s", d.endpoint, got.status, got.body)
			}
			got := s.send(s.request("POST", d.path("m", true), d.body("m", "hi", true)))
			if !strings.Contains(got.body, "in the middle of an item") {
				t.Errorf("%s: %s", d.endpoint, got.body)
			}
		}
	}
}

// TestCutByFilter: a filter that cuts a call is an end of its own, and no fault.
func TestCutByFilter(t *testing.T) {
	t.Parallel()
	wire := `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"look","arguments":"{\"ci"}}]}}]}` + "\n\n" +
		`data: {"choices":[{"index":0,"delta":{},"finish_reason":"content_filter"}],"usage":{"prompt_tokens":7,"completion_tokens":5}}` + "\n\ndata: [DONE]\n\n"
	s := start(t, everywhere(table(chat(t, "m", func(w http.ResponseWriter, _ *http.Request) { flushes(w, wire) }))))
	for i := range dialects {
		d := &dialects[i]
		end := map[string]string{
			"responses": `"incomplete_details":{"reason":"content_filter"}`, "messages": `"stop_reason":"refusal"`,
			"chatCompletions": `"finish_reason":"content_filter"`, "generateContent": `"finishReason":"SAFETY"`,
		}[d.endpoint]
		for _, stream := range []bool{false, true} {
			got := s.send(s.request("POST", d.path("m", stream), d.body("m", "hi", stream)))
			if got.status != 200 || !strings.Contains(got.body, end) {
				t.Errorf("%s, stream %v: %d %s", d.endpoint, stream, got.status, got.body)
			}
		}
	}
}

// TestUnknownFields: nothing is made of a field that nobody knows, and the log names it once for each protocol. What is known
// and left alone is not among it.
func TestUnknownFields(t *testing.T) {
	t.Parallel()
	s := start(t, everywhere(table()), own("m", plays(nil, says("hi"), stops)))
	for i := range dialects {
		d := &dialects[i]
		known := map[string]string{
			"responses": `"stream_options":{},"max_tool_calls":1,`, "chatCompletions": `"store":true,"safety_identifier":"u",`, "messages": `"diagnostics":{},"metadata":{},`, "generateContent": `"model":"models/m","store":false,`,
		}[d.endpoint]
		for range 2 {
			body := strings.Replace(d.body("m", "hi", false), "{", `{"new\n`+strings.Repeat("w", 100)+`":{"a":1},"newer":null,`+known, 1)
			if got := s.send(s.request("POST", d.path("m", false), body)); got.status != 200 || got.header.Get("X-Mmsp-Dropped") != "" {
				t.Errorf("%s: %d %v %s", d.endpoint, got.status, got.header, got.body)
			}
		}
	}
	lines := s.json.with(`"msg":"an unknown field is ignored"`)
	long, short := 0, 0
	for _, line := range lines {
		if strings.Contains(line, `"field":"new\n`+strings.Repeat("w", 60)+`"`) {
			long++
		}
		if strings.Contains(line, `"field":"newer"`) {
			short++
		}
	}
	if len(lines) != 2*len(dialects) || long != len(dialects) || short != len(dialects) {
		t.Error(strings.Join(lines, "\n"))
	}
}
