package mmsp_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	. "github.com/prism-shadow/mmsp-go"
)

// reread reads a record of the named kind and writes it again.
func reread(kind, text string) (string, error) {
	record := map[string]json.Unmarshaler{"item": &Item{}, "message": &Message{}, "event": &Event{}, "tool": &Tool{}, "config": &Config{}}[kind]
	if err := json.Unmarshal([]byte(text), record); err != nil {
		return "", err
	}
	out, err := reflect.ValueOf(record).Elem().Interface().(json.Marshaler).MarshalJSON()
	return string(out), err
}

func TestWireRoundTrip(t *testing.T) {
	for _, c := range []struct{ kind, text, want string }{ // an empty want: the same text
		{"item", `{"type":"text.done","text":"grüße <b>&</b> 😀\u0001\"\\\n"}`, ""},
		{"item", `{"type":"text.delta","text":""}`, ""},
		{"item", `{"type":"text.done","text":"a","fidelity":{"n":9007199254740993,"s":"<ü>","x":null},"later":[1,{"b":1.50}]}`, ""},
		{"item", `{"type":"thinking.done","thinking":"a","fidelity":{"signature":"s"}}`, ""},
		{"item", `{"type":"thinking.delta","thinking":"a"}`, ""},
		{"item", `{"type":"tool_call.delta","name":"","arguments":"{\"a\": ","tool_call_id":""}`, ""},
		{"item", `{"type":"tool_call.done","name":"f","arguments":{},"tool_call_id":"c1"}`, ""},
		{
			"item",
			`{"type":"tool_call.done","name":"f","arguments":{"z":9007199254740993, "a":-9223372036854775808,"m":18446744073709551615,"f":1.50e+3,"ü":"ü"},"tool_call_id":"c1"}`,
			"",
		},
		{"item", `{"type":"tool_call.done","name":"f","arguments":"{\"a\":1}","tool_call_id":"c1"}`, `{"type":"tool_call.done","name":"f","arguments":{"a":1},"tool_call_id":"c1"}`},
		{"item", `{"type":"tool_call.done","name":"f","arguments":"{\"a\":","tool_call_id":"c1"}`, ""},
		{"item", `{"type":"inline_data.done","data":"AP8=","mime_type":"image/png","filename":"a.png"}`, ""},
		{"item", `{"type":"inline_data.done","data":"AP8=","mime_type":"application/pdf","filename":"<log> ü.pdf","later":1}`, ""},
		{"item", `{"type":"inline_data.done","data":"AP8=","mime_type":"a/b","filename":null}`, `{"type":"inline_data.done","data":"AP8=","mime_type":"a/b"}`},
		{"item", `{"type":"text.done","text":"a","filename":7,"detail":{}}`, ""},
		{"item", `{"type":"image_url.done","image_url":"https://x.test/a","detail":"closely"}`, ""}, // Validate judges the word
		{"item", `{"type":"inline_data.delta","data":"","mime_type":"audio/pcm"}`, ""},
		{"item", `{"type":"inline_thinking.done","data":"AP8=","mime_type":"image/png"}`, ""},
		{"item", `{"data":"AP8=","mime_type":"image/png","type":"inline_data.done"}`, `{"type":"inline_data.done","data":"AP8=","mime_type":"image/png"}`},
		{"item", `{"arguments":"x{","tool_call_id":"","name":"","type":"tool_call.delta"}`, `{"type":"tool_call.delta","name":"","arguments":"x{","tool_call_id":""}`},
		{"item", `{"type":"embedding.done","embedding":[1,-2.5,1e-9,0.1]}`, `{"type":"embedding.done","embedding":[1,-2.5,1e-09,0.1]}`},
		{"item", `{"type":"embedding.done","embedding":[]}`, ""},
		{"item", `{"type":"image_url.done","image_url":"https://x.test/a?b=1&c=2","detail":"low"}`, ""},
		{"item", `{"type":"tool_result.done","text":"ok","images":["https://x.test/a"],"tool_call_id":"c1","is_error":true}`, ""},
		{"item", `{"type":"tool_result.done","text":"ok","images":[],"tool_call_id":"c1"}`, ""},
		{"item", `{"type":"tool_result.done","text":"ok","tool_call_id":"c1"}`, ""},
		{"item", `{"type":"tool_result.done","text":"ok","tool_call_id":"c1","is_error":false,"images":null}`, `{"type":"tool_result.done","text":"ok","tool_call_id":"c1"}`},
		{"item", `{"type":"text.done","text":"a","fidelity":null}`, `{"type":"text.done","text":"a"}`},
		// A key that belongs to another kind of item is unknown to this one, and no data but that of inline items is base64.
		{"item", `{"type":"text.done","text":"a","data":"not base64!","name":7,"images":"x"}`, ""},
		{"item", `{"type":"hologram.done","text":["a"],"data":5,"arguments":null}`, ""},
		// Line breaks between tokens would end an event.
		{
			"item", "{\"type\":\"tool_call.done\",\"name\":\"f\",\"arguments\":{\r\n\t\"a\": 1\n},\"tool_call_id\":\"c1\",\"fidelity\":{\n},\"later\":[\n1]}",
			"{\"type\":\"tool_call.done\",\"name\":\"f\",\"arguments\":{  \t\"a\": 1 },\"tool_call_id\":\"c1\",\"fidelity\":{ },\"later\":[ 1]}",
		},
		// Item types from before 0.5.0.
		{"item", `{"type":"text","text":"a"}`, ""},
		{"item", `{"type":"inline_data","data":"AP8=","mime_type":"image/png"}`, ""},
		{"item", `{"type":"tool_call","name":"f","arguments":{"a":1},"tool_call_id":"c1"}`, ""},
		{"item", `{"type":"partial_tool_call","name":"f","arguments":"{\"a","tool_call_id":"c1"}`, ""},

		{"message", `{"role":"user","content_items":[]}`, ""},
		{"message", `{"role":"user"}`, `{"role":"user","content_items":[]}`},
		{"message", `{"role":"user","content_items":null,"usage_metadata":null,"finish_reason":null,"created_at":null}`, `{"role":"user","content_items":[]}`},
		{
			"message",
			`{"role":"assistant","content_items":[{"type":"text.done","text":"a"},{"type":"thinking.done","thinking":"b"}],` +
				`"usage_metadata":{"cached_tokens":0,"prompt_tokens":9007199254740993,"thoughts_tokens":null,"response_tokens":1},"finish_reason":"unknown",` +
				`"stop_detail":{"kind":"refusal","text":"nein, danke"},"created_at":1800000000900,"later":{"ü":[]},"more":null}`,
			"",
		},

		{
			"event",
			`{"role":"assistant","event_type":"delta","content_items":[{"type":"text.delta","text":"ü","later":1}],"usage_metadata":null,"finish_reason":null,"created_at":1800000000123}`,
			"",
		},
		{
			"event",
			`{"role":"assistant","event_type":"stop","content_items":[],"usage_metadata":{"cached_tokens":null,"prompt_tokens":4,"thoughts_tokens":null,"response_tokens":2},"finish_reason":"stop","created_at":1800000000123}`,
			"",
		},
		{
			"event",
			`{"role":"assistant","event_type":"stop","content_items":[],"usage_metadata":null,"finish_reason":"unknown","stop_detail":{"kind":"filter","prompt":true},"created_at":1,"later":{"a":"ü"}}`,
			"",
		},
		{
			"event", `{"event_type":"delta","content_items":null,"later":1}`,
			`{"role":"assistant","event_type":"delta","content_items":[],"usage_metadata":null,"finish_reason":null,"later":1}`,
		},

		// Of a peer's events not every field is wanted.
		{
			"event", `{"event_type":"delta","content_items":[{"type":"text.delta"}],"created_at":1}`,
			`{"role":"assistant","event_type":"delta","content_items":[{"type":"text.delta","text":""}],"usage_metadata":null,"finish_reason":null,"created_at":1}`,
		},

		{"tool", `{"name":"f","description":"","parameters":{"type":"object","properties":{"z":{"maximum":18446744073709551615},"a":{}}},"strict":true}`, ""},
		{"tool", `{"name":"f","description":"ü"}`, ""},
		{"tool", `{"name":"f","parameters":null}`, `{"name":"f","description":""}`},

		{"tool", `{"name":"f","description":"","strict":false,"later":1}`, ""},
		{"tool", `{"strict":null,"name":"f"}`, `{"name":"f","description":""}`},

		{"config", `{}`, ""},
		{
			"config",
			`{"top_p":0.95,"top_k":40,"stop_sequences":["END","\n"],"seed":-9007199254740993,"presence_penalty":-2,"frequency_penalty":0,"parallel_tool_calls":false,` +
				`"response_format":{"type":"json_schema","name":"log","description":"A <log>","schema":{"z":9007199254740993, "a":1.50},"strict":false,"later":{"x":1}},` +
				`"thinking_budget":0,"verbosity":"high","service_tier":"flex","prompt_cache_key":"k","user":"u-1","metadata":{"trip":"9","n":1.50},"later":true}`,
			"",
		},
		{"config", `{"response_format":{"type":"text"},"verbosity":"low"}`, ""},
		{"config", `{"stop_sequences":[],"parallel_tool_calls":true,"response_format":{"type":"json_object","strict":true},"thinking_budget":-1,"verbosity":"medium","metadata":{}}`, ""},
		{
			"config",
			`{"top_p":null,"top_k":null,"stop_sequences":null,"seed":null,"presence_penalty":null,"frequency_penalty":null,"parallel_tool_calls":null,"response_format":null,` +
				`"thinking_budget":null,"verbosity":null,"service_tier":null,"user":null,"metadata":null}`,
			`{}`,
		},
		{"config", `{"user":"","service_tier":"","response_format":{"schema":null,"strict":null,"name":null,"description":null,"type":"json_object"}}`, `{"response_format":{"type":"json_object"}}`},
		{
			"config",
			`{"max_tokens":9007199254740993,"temperature":0.7,"system_prompt":"","tools":[{"name":"f","description":"d"}],"tool_choice":"required","thinking_level":"xhigh",` +
				`"thinking_summary":false,"prompt_caching":"enhance","fast_mode":true,"image_config":{"aspect_ratio":"16:9","image_size":"2K"},` +
				`"tts_config":[{"voice":"v","speaker":"s"},{"voice":"w"}],"embedding_config":{"dimensions":256},"trace_id":"a/b","later":{"x":[1,2]},"n":5}`,
			"",
		},
		{"config", `{"tools":[],"tool_choice":["f","g"],"image_config":{},"tts_config":[],"embedding_config":{}}`, ""},
		{
			"config",
			`{"max_tokens":null,"temperature":null,"system_prompt":null,"tools":null,"tool_choice":null,"thinking_level":null,"thinking_summary":null,"prompt_caching":null,` +
				`"fast_mode":null,"image_config":null,"tts_config":null,"embedding_config":null,"trace_id":null}`,
			`{}`,
		},
		{
			"message",
			`{"role":"assistant","content_items":[],"usage_metadata":{"later":1},"finish_reason":"stop","stop_detail":null}`,
			`{"role":"assistant","content_items":[],"usage_metadata":{"cached_tokens":null,"prompt_tokens":null,"thoughts_tokens":null,"response_tokens":null},"finish_reason":"stop"}`,
		},
		{
			"message", `{"role":"assistant","content_items":[],"stop_detail":{"text":null,"kind":"pause","prompt":false,"later":1}}`,
			`{"role":"assistant","content_items":[],"stop_detail":{"kind":"pause"}}`,
		},
		{
			"config", `{"image_config":{"later":1,"image_size":"1K"},"tts_config":[{"later":1,"voice":"v"}],"embedding_config":{"later":1}}`,
			`{"image_config":{"image_size":"1K"},"tts_config":[{"voice":"v"}],"embedding_config":{}}`,
		},
		{"config", `{"max_tokens":1e3,"temperature":2}`, `{"max_tokens":1000,"temperature":2}`},
		{"config", `{"Max_Tokens":1,"later":null}`, ""},
	} {
		got, err := reread(c.kind, c.text)
		if want := cmp.Or(c.want, c.text); got != want || err != nil {
			t.Errorf("%s: got\n  %s\nwant\n  %s\nerror %v", c.kind, got, want, err)
			continue
		}
		if again, err := reread(c.kind, got); again != got || err != nil {
			t.Errorf("%s: read again it is\n  %s\nnot\n  %s\nerror %v", c.kind, again, got, err)
		}
	}
}

func TestWireReadsFields(t *testing.T) {
	var item Item
	if err := json.Unmarshal([]byte(`{"type":"tool_call.done","name":"f","arguments":{"id":9007199254740993},"tool_call_id":"c1"}`), &item); err != nil {
		t.Fatal(err)
	}
	var arguments struct{ ID int64 }
	if err := item.DecodeArguments(&arguments); err != nil || arguments.ID != 1<<53+1 {
		t.Errorf("got %+v, %v", arguments, err)
	}
	var picture Item
	if err := json.Unmarshal([]byte(`{"data":"AP8=","type":"inline_thinking.done","mime_type":"image/png"}`), &picture); err != nil {
		t.Fatal(err)
	}
	if want := (Item{Type: InlineThinkingDone, Data: []byte{0, 0xFF}, MimeType: "image/png"}); !reflect.DeepEqual(picture, want) {
		t.Errorf("got %+v", picture)
	}
}

func TestWireOfUnreadableParts(t *testing.T) {
	for _, c := range []struct {
		item Item
		want string
	}{
		{Item{Type: EmbeddingDone, Embedding: []float64{inf, -inf, inf - inf}}, `{"type":"embedding.done","embedding":[null,null,null]}`},
		{Item{Type: TextDone, Text: "a\xffb"}, `{"type":"text.done","text":"a` + "\uFFFD" + `b"}`},
		{Item{Type: TextDone, Extra: json.RawMessage(`{ }`)}, `{"type":"text.done","text":""}`},
		{Item{Type: ToolCallDone, Name: "f", ToolCallID: "c"}, `{"type":"tool_call.done","name":"f","arguments":{},"tool_call_id":"c"}`},
	} {
		if got, err := json.Marshal(c.item); string(got) != c.want || err != nil {
			t.Errorf("got %s, %v, want %s", got, err, c.want)
		}
	}
}

var inf = func() float64 { x := 1e308; return x * 10 }()

// badRequest returns the param and the message of an InvalidRequestError.
func badRequest(t *testing.T, err error) (param, message string) {
	t.Helper()
	var invalid *InvalidRequestError
	if !errors.As(err, &invalid) {
		t.Errorf("got %T: %v", err, err)
		return "", ""
	}
	return invalid.Param, invalid.Message
}

func TestParseStreamRequest(t *testing.T) {
	body := ` {"later":[], "config": {"max_tokens": 1}, "messages":[ {"role":"user"} ], "model":"ü"} `
	request, err := ParseStreamRequest([]byte(body))
	if err != nil || request.Model != "ü" || string(request.Messages) != `[ {"role":"user"} ]` || string(request.Config) != `{"max_tokens": 1}` {
		t.Errorf("got %+v, %v", request, err)
	}
	for _, config := range []string{``, `,"config":null`} {
		request, err := ParseStreamRequest([]byte(`{"model":"m","messages":[]` + config + `}`))
		if err != nil || request.Config != nil || string(request.Messages) != `[]` {
			t.Errorf("%s: got %+v, %v", config, request, err)
		}
	}

	for _, c := range []struct{ body, param, message string }{
		{``, "", "JSON"},
		{`{`, "", "JSON"},
		{`[]`, "", "object"},
		{`"x"`, "", "object"},
		{`{"model":"m","messages":[]} x`, "", "JSON"},
		{`{"model":"m","messages":[],"model":"n"}`, "", "twice"},
		{`{"model":"m","messages":[],"m\u006fdel":"n"}`, "", "twice"},
		{`{"model":"m","messages":[{"role":"user","content_items":[{"type":"text.done","text":"a","text":"b"}]}]}`, "", "twice"},
		{`{"model":"m","messages":[],"config":{"later":{"a":1,"a":1}}}`, "", "twice"},
		{"{\"model\":\"\xff\",\"messages\":[]}", "", "UTF-8"},
		{`{"model":"m","messages":[],"later":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`, "", "deep"},
		{`{"messages":[]}`, "model", "string"},
		{`{"model":"","messages":[]}`, "model", "string"},
		{`{"model":null,"messages":[]}`, "model", "string"},
		{`{"model":["m"],"messages":[]}`, "model", "string"},
		{`{"Model":"m","messages":[]}`, "model", "string"},
		{`{"model":"m"}`, "messages", "list"},
		{`{"model":"m","Messages":[]}`, "messages", "list"},
		{`{"model":"m","messages":null}`, "messages", "list"},
		{`{"model":"m","messages":{}}`, "messages", "list"},
		{`{"model":"m","messages":[],"config":[]}`, "config", "object"},
		{`{"model":"m","messages":[],"config":""}`, "config", "object"},
		{`{"model":"m","messages":[],"config":false}`, "config", "object"},
	} {
		_, err := ParseStreamRequest([]byte(c.body))
		if param, message := badRequest(t, err); param != c.param || !strings.Contains(message, c.message) {
			t.Errorf("%.99s: got %q: %q, want %q: %q", c.body, param, message, c.param, c.message)
		}
	}
}

func TestParseMessagesErrors(t *testing.T) {
	item := func(fields string) string {
		return `[{"role":"user","content_items":[]},{"role":"user","content_items":[{"type":"text.done","text":""},` + fields + `]}]`
	}
	for _, c := range []struct{ text, param, message string }{
		{`{}`, "messages", "list"},
		{`[`, "messages", "JSON"},
		{`[] x`, "messages", "JSON"},
		{`[5]`, "messages[0]", "object"},
		{`[{"role":5}]`, "messages[0].role", "string"},
		{`[{"content_items":{}}]`, "messages[0].content_items", "list"},
		{`[{"usage_metadata":[]}]`, "messages[0].usage_metadata", "object"},
		{`[{"usage_metadata":{"prompt_tokens":"1"}}]`, "messages[0].usage_metadata.prompt_tokens", "integer"},
		{`[{"usage_metadata":{"prompt_tokens":1.5}}]`, "messages[0].usage_metadata.prompt_tokens", "integer"},
		{`[{"finish_reason":[]}]`, "messages[0].finish_reason", "string"},
		{`[{"stop_detail":"x"}]`, "messages[0].stop_detail", "object"},
		{`[{"created_at":"now"}]`, "messages[0].created_at", "integer"},
		{`[{"created_at":1e99}]`, "messages[0].created_at", "integer"},
		{item(`"x"`), "messages[1].content_items[1]", "object"},
		{item(`{"text":"a"}`), "messages[1].content_items[1].type", "missing"},
		{item(`{"type":7}`), "messages[1].content_items[1].type", "string"},
		{item(`null`), "messages[1].content_items[1].type", "missing"},
		{item(`{"type":"text.done"}`), "messages[1].content_items[1].text", "missing"},
		{item(`{"type":"text.done","Text":"a"}`), "messages[1].content_items[1].text", "missing"},
		{item(`{"type":"text.done","text":null}`), "messages[1].content_items[1].text", "missing"},
		{item(`{"type":"text.done","text":["a"]}`), "messages[1].content_items[1].text", "string"},
		{item(`{"type":"text","text":1}`), "messages[1].content_items[1].text", "string"},
		{item(`{"type":"thinking.done"}`), "messages[1].content_items[1].thinking", "missing"},
		{item(`{"type":"image_url.done"}`), "messages[1].content_items[1].image_url", "missing"},
		{item(`{"type":"tool_result.done","text":""}`), "messages[1].content_items[1].tool_call_id", "missing"},
		{item(`{"type":"tool_result.done","text":"","tool_call_id":"c","images":["a",1]}`), "messages[1].content_items[1].images[1]", "string"},
		{item(`{"type":"tool_result.done","text":"","tool_call_id":"c","is_error":"yes"}`), "messages[1].content_items[1].is_error", "true or false"},
		{item(`{"type":"tool_call.done","arguments":{},"tool_call_id":"c"}`), "messages[1].content_items[1].name", "missing"},
		{item(`{"type":"tool_call.done","name":"f","tool_call_id":"c"}`), "messages[1].content_items[1].arguments", "missing"},
		{item(`{"type":"tool_call.done","name":"f","arguments":[],"tool_call_id":"c"}`), "messages[1].content_items[1].arguments", "object"},
		{item(`{"type":"inline_data.done","data":"AA=="}`), "messages[1].content_items[1].mime_type", "missing"},
		{item(`{"type":"inline_data.done","data":"?","mime_type":"image/png"}`), "messages[1].content_items[1].data", "base64"},
		{item(`{"type":"inline_data.done","data":[],"mime_type":"image/png"}`), "messages[1].content_items[1].data", "string"},
		{item(`{"type":"inline_data.done","data":"","mime_type":"a/b","filename":1}`), "messages[1].content_items[1].filename", "string"},
		{item(`{"type":"image_url.done","image_url":"u","detail":1}`), "messages[1].content_items[1].detail", "string"},
		{item(`{"type":"embedding.done","embedding":"1"}`), "messages[1].content_items[1].embedding", "list"},
		{item(`{"type":"embedding.done","embedding":[1,null]}`), "messages[1].content_items[1].embedding[1]", "number"},
		{item(`{"type":"embedding.done","embedding":[1,1e999]}`), "messages[1].content_items[1].embedding[1]", "number"},
		{item(`{"type":"text.done","text":"a","fidelity":"s"}`), "messages[1].content_items[1].fidelity", "object"},
		{item(`{"type":"text.done","text":"a","later":tru}`), "messages", "JSON"},
	} {
		_, err := ParseMessages([]byte(c.text), false)
		if param, message := badRequest(t, err); param != c.param || !strings.Contains(message, c.message) {
			t.Errorf("%s: got %q: %q, want %q: %q", c.text, param, message, c.param, c.message)
		}
	}
}

func TestParseMessagesForARelay(t *testing.T) {
	text := `[{"role":"robot","content_items":[{"type":"text.done"},{"type":"hologram.done","beams":7},{"later":1},{"type":"text","text":"old"}]}]`
	messages, err := ParseMessages([]byte(text), true)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"role":"robot","content_items":[{"type":"text.done","text":""},{"type":"hologram.done","beams":7},{"type":"","later":1},{"type":"text","text":"old"}]}]`
	if got := string(marshalMessages(messages)); got != want {
		t.Errorf("got %s", got)
	}
	if text, err := json.Marshal(messages); string(text) != want || err != nil {
		t.Errorf("got %s, %v", text, err)
	}
	if _, err := ParseMessages([]byte(`[{"role":7}]`), true); err == nil {
		t.Error("a wrong type is no error")
	}
}

func TestParseConfigErrors(t *testing.T) {
	for _, data := range []string{``, `null`, `{}`} {
		if config, err := ParseConfig([]byte(data)); err != nil || !reflect.DeepEqual(config, Config{}) {
			t.Errorf("%q: got %+v, %v", data, config, err)
		}
	}
	for _, c := range []struct{ text, param, message string }{
		{`{"top_p":"0.9"}`, "config.top_p", "number"},
		{`{"top_k":1.5}`, "config.top_k", "integer"},
		{`{"stop_sequences":"END"}`, "config.stop_sequences", "list"},
		{`{"stop_sequences":["a",1]}`, "config.stop_sequences[1]", "string"},
		{`{"seed":"7"}`, "config.seed", "integer"},
		{`{"presence_penalty":[]}`, "config.presence_penalty", "number"},
		{`{"frequency_penalty":true}`, "config.frequency_penalty", "number"},
		{`{"parallel_tool_calls":"no"}`, "config.parallel_tool_calls", "true or false"},
		{`{"response_format":"json"}`, "config.response_format", "object"},
		{`{"response_format":{}}`, "config.response_format.type", "missing"},
		{`{"response_format":{"type":"xml"}}`, "config.response_format.type", "text, json_object, json_schema"},
		{`{"response_format":{"type":"json_schema"}}`, "config.response_format.schema", "missing"},
		{`{"response_format":{"type":"json_schema","schema":"x"}}`, "config.response_format.schema", "object"},
		{`{"response_format":{"type":"json_schema","schema":{},"strict":1}}`, "config.response_format.strict", "true or false"},
		{`{"response_format":{"type":"json_schema","schema":{},"name":1}}`, "config.response_format.name", "string"},
		{`{"thinking_budget":"much"}`, "config.thinking_budget", "integer"},
		{`{"verbosity":"chatty"}`, "config.verbosity", "low, medium, high"},
		{`{"service_tier":1}`, "config.service_tier", "string"},
		{`{"user":1}`, "config.user", "string"},
		{`{"metadata":"x"}`, "config.metadata", "object"},
		{`{"tools":[{"name":"f","strict":"yes"}]}`, "config.tools[0].strict", "true or false"},
		{`[]`, "config", "object"},
		{`{`, "config", "JSON"},
		{`{"max_tokens":"1"}`, "config.max_tokens", "integer"},
		{`{"max_tokens":1.5}`, "config.max_tokens", "integer"},
		{`{"temperature":"hot"}`, "config.temperature", "number"},
		{`{"system_prompt":["a"]}`, "config.system_prompt", "string"},
		{`{"tools":{}}`, "config.tools", "list"},
		{`{"tools":[{"name":"f"},5]}`, "config.tools[1]", "object"},
		{`{"tools":[{"description":"d"}]}`, "config.tools[0]", "name"},
		{`{"tools":[{"name":"f","description":1}]}`, "config.tools[0].description", "string"},
		{`{"tools":[{"name":"f","parameters":"x"}]}`, "config.tools[0].parameters", "object"},
		{`{"tool_choice":"any"}`, "config.tool_choice", "auto, required, none"},
		{`{"tool_choice":{}}`, "config.tool_choice", "string"},
		{`{"tool_choice":["f",1]}`, "config.tool_choice[1]", "string"},
		{`{"thinking_level":"most"}`, "config.thinking_level", "none, low, medium, high, xhigh, max"},
		{`{"thinking_level":1}`, "config.thinking_level", "string"},
		{`{"thinking_summary":1}`, "config.thinking_summary", "true or false"},
		{`{"prompt_caching":"on"}`, "config.prompt_caching", "enable, disable, enhance"},
		{`{"fast_mode":"yes"}`, "config.fast_mode", "true or false"},
		{`{"image_config":[]}`, "config.image_config", "object"},
		{`{"image_config":{"image_size":2}}`, "config.image_config.image_size", "string"},
		{`{"tts_config":{}}`, "config.tts_config", "list"},
		{`{"tts_config":[{"voice":1}]}`, "config.tts_config[0].voice", "string"},
		{`{"embedding_config":{"dimensions":"1"}}`, "config.embedding_config.dimensions", "integer"},
		{`{"trace_id":1}`, "config.trace_id", "string"},
	} {
		_, err := ParseConfig([]byte(c.text))
		if param, message := badRequest(t, err); param != c.param || !strings.Contains(message, c.message) {
			t.Errorf("%s: got %q: %q, want %q: %q", c.text, param, message, c.param, c.message)
		}
	}
}

func TestParseEvent(t *testing.T) {
	event, more, err := ParseEvent([]byte(`{"event_type":"delta","content_items":[{"type":"text.delta","text":"a"},{"type":"text.done","text":"a"}],"created_at":5}`))
	if err != nil || showEvent(&event) != `text.delta "a"` || showAll(more) != `text.done "a"` || event.CreatedAt != 5 {
		t.Errorf("got %+v, %+v, %v", event, more, err)
	}
	for _, text := range []string{``, `[]`, `{"event_type":5}`, `{"content_items":[{"type":"inline_data.delta","data":"?"}]}`, `{} {}`} {
		if _, _, err := ParseEvent([]byte(text)); err == nil {
			t.Errorf("%s is no error", text)
		}
	}
}

func TestAppendStreamRequest(t *testing.T) {
	body := AppendStreamRequest([]byte("x"), "m", []Message{UserMessage(Text("a")), UserMessage()}, &Config{MaxTokens: new(int64(1))})
	want := `x{"model":"m","messages":[{"role":"user","content_items":[{"type":"text.done","text":"a"}]},{"role":"user","content_items":[]}],"config":{"max_tokens":1}}`
	if string(body) != want {
		t.Errorf("got %s", body)
	}
	request, err := ParseStreamRequest(body[1:])
	if err != nil || request.Model != "m" {
		t.Errorf("got %+v, %v", request, err)
	}
}

// What is read must not change when the buffer it was read from is used again.
func TestWireKeepsNothingOfTheBuffer(t *testing.T) {
	text := []byte(`[{"role":"user","content_items":[{"type":"tool_call.done","name":"f","arguments":{"a":1},"tool_call_id":"c","fidelity":{"s":1},"later":[1]}],"more":"x"}]`)
	messages, err := ParseMessages(text, false)
	if err != nil {
		t.Fatal(err)
	}
	want := string(text)
	clear(text)
	if got := string(marshalMessages(messages)); got != want {
		t.Errorf("got %s", got)
	}
	config := []byte(`{"tools":[{"name":"f","description":"d","parameters":{"a":1},"strict":true}],"later":1}`)
	read, err := ParseConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	want = string(config)
	clear(config)
	if got := string(read.AppendJSON(nil)); got != want {
		t.Errorf("got %s", got)
	}
}

func TestItemTypes(t *testing.T) {
	if got := []any{ToolCallDelta.Kind(), ToolCallDelta.IsDelta(), ToolCallDone.IsDelta(), ItemType("text").Kind()}; !slices.Equal(got, []any{"tool_call", true, false, "text"}) {
		t.Errorf("got %v", got)
	}
}

func TestTooManyItems(t *testing.T) {
	items := strings.Repeat(`{"type":"text.done","text":""},`, 1<<17)
	_, err := ParseMessages([]byte(`[{"role":"user","content_items":[`+items+`{"type":"text.done","text":""}]}]`), false)
	var invalid *InvalidRequestError
	if !errors.As(err, &invalid) || !strings.Contains(err.Error(), "131072 items") {
		t.Error(err)
	}
}
