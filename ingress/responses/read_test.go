package responses

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/ingress"
	"github.com/prism-shadow/mmsp-go/internal/carry"
)

// described writes a request one line a fact: an item of a message with its path, the config, what else there is.
func described(r *ingress.Request) (lines []string) {
	for m := range r.Messages {
		for i := range r.Messages[m].ContentItems {
			one := mmsp.Message{Role: r.Messages[m].Role, ContentItems: r.Messages[m].ContentItems[i : i+1]}
			text := strings.TrimSuffix(string(one.AppendJSON(nil)), `]}`)
			_, text, _ = strings.Cut(text, `"content_items":[`)
			lines = append(lines, fmt.Sprintf("%d %s %s %s", m, r.Messages[m].Role, r.Paths[m][i], text))
		}
	}
	if config := string(r.Config.AppendJSON(nil)); config != "{}" {
		lines = append(lines, config)
	}
	for _, list := range []struct {
		name  string
		words []string
	}{{"tools", r.ToolPaths}, {"dropped", r.Dropped}, {"unknown", r.Unknown}, {"allowed", r.Allowed}} {
		if list.words != nil {
			lines = append(lines, list.name+" "+strings.Join(list.words, ", "))
		}
	}
	return lines
}

func TestRead(t *testing.T) {
	custom := `{"name":"note","description":"d\n\nThe input must fit this grammar (lark):\nstart: /x/","parameters":` + string(ingress.CustomTool("", "", "", "").Parameters) + `}`
	user := func(path, text string) string {
		return fmt.Sprintf(`0 user %s {"type":"text.done","text":%q}`, path, text)
	}
	for _, c := range []struct {
		name, body string
		peer       carry.Peer
		want       []string
	}{
		{"a text", `"input":"Hi"`, chatPeer, []string{user("input", "Hi")}},
		{"nulls", `"input":"Hi","instructions":null,"tools":null,"tool_choice":null,"reasoning":null,"text":null,"metadata":null,"include":null,"store":null,"stream":null,
			"conversation":null,"background":null,"prompt":null,"previous_response_id":null,"temperature":null,"stream_options":null,"user":null`, chatPeer, []string{user("input", "Hi")}},
		{"unknown fields", `"input":"Hi","client_metadata":{"a":1},"new":3`, chatPeer, []string{user("input", "Hi"), "unknown client_metadata, new"}},
		{"defaults", `"input":"Hi","include":["reasoning.encrypted_content"],"prompt_cache_retention":"in_memory","prompt_cache_options":{},"moderation":null,"context_management":[],"max_tool_calls":3,
			"stream_options":{"include_obfuscation":false},"reasoning":{"context":"auto","mode":"standard"}`, chatPeer, []string{user("input", "Hi")}},
		{"what nobody but OpenAI has", `"input":"Hi","include":["message.output_text.logprobs","reasoning.encrypted_content","message.output_text.logprobs","web_search_call.action.sources"],"prompt_cache_retention":"24h",
			"prompt_cache_options":{"mode":"explicit"},"moderation":{"model":"omni-moderation-latest"},"context_management":[{"type":"compaction"}],"reasoning":{"context":"all_turns","mode":"pro"}`, nativePeer, []string{
			user("input", "Hi"),
			`dropped include (message.output_text.logprobs), include (web_search_call.action.sources), prompt_cache_retention, prompt_cache_options, moderation, context_management, reasoning.context, reasoning.mode`,
		}},
		{"turns", `"instructions":"One.","input":[{"role":"developer","content":"Two."},{"type":"message","role":"user","content":[{"type":"input_text","text":"Hi"},{"type":"input_text","text":""}]},
			{"role":"assistant","content":"Ahoy."},{"role":"system","content":[{"type":"input_text","text":"Three."}]},
			{"type":"message","role":"assistant","id":"msg_1","status":"completed","phase":"final_answer","content":[{"type":"output_text","text":"A","annotations":[]},{"type":"refusal","refusal":"No."}]},
			{"role":"user","content":"Why?"}]`, chatPeer, []string{
			user("input[1].content[0]", "Hi"),
			`1 assistant input[2].content {"type":"text.done","text":"Ahoy."}`,
			`1 assistant input[4].content[0] {"type":"text.done","text":"A","fidelity":{"phase":"final_answer"}}`,
			`1 assistant input[4].content[1] {"type":"text.done","text":"No.","fidelity":{"refusal":true,"phase":"final_answer"}}`,
			`2 user input[5].content {"type":"text.done","text":"Why?"}`,
			`{"system_prompt":"One.\n\nTwo.\n\nThree."}`,
		}},
		{"media", `"input":[{"role":"user","content":[{"type":"input_image","image_url":"https://a/b.png","detail":"low"},
			{"type":"input_image","source":{"type":"base64","media_type":"image/png","data":"YWJj"}},{"type":"input_file","filename":"a.pdf","file_data":"YWJj"},
			{"type":"input_file","file_data":"data:text/plain;base64,YWI="},{"type":"input_file","source":{"type":"base64","media_type":"application/pdf","data":"YWJj","filename":"b.pdf"}},
			{"type":"input_file","file_data":"data:image/gif;base64,YWJj"},{"type":"input_audio","input_audio":{"data":"-_8","format":"mp3"}},{"type":"input_file","file_data":"YWJj"}]}]`, chatPeer, []string{
			`0 user input[0].content[0].image_url {"type":"image_url.done","image_url":"https://a/b.png","detail":"low"}`,
			`0 user input[0].content[1].source.data {"type":"image_url.done","image_url":"data:image/png;base64,YWJj"}`,
			`0 user input[0].content[2].file_data {"type":"inline_data.done","data":"YWJj","mime_type":"application/pdf","filename":"a.pdf"}`,
			`0 user input[0].content[3].file_data {"type":"inline_data.done","data":"YWI=","mime_type":"text/plain"}`,
			`0 user input[0].content[4].source.data {"type":"inline_data.done","data":"YWJj","mime_type":"application/pdf","filename":"b.pdf"}`,
			`0 user input[0].content[5].file_data {"type":"image_url.done","image_url":"data:image/gif;base64,YWJj"}`,
			`0 user input[0].content[6].input_audio.data {"type":"inline_data.done","data":"+/8=","mime_type":"audio/mpeg"}`,
			`0 user input[0].content[7].file_data {"type":"inline_data.done","data":"YWJj","mime_type":"text/plain"}`,
		}},
		{"files by URL", `"input":[{"role":"user","content":[{"type":"input_file","file_url":"https://files.test/a.pdf"},{"type":"input_file","file_url":"https://files.test/a.pdf","filename":"b.pdf","file_data":null},
			{"type":"input_file","source":{"type":"url","url":"https://files.test/a.txt"}},{"type":"input_file","file_url":"https://files.test/a.png"}]},{"type":"function_call","call_id":"c1","name":"dig","arguments":""},
			{"type":"function_call_output","call_id":"c1","output":[{"type":"input_file","file_url":"https://files.test/a.pdf"}]}]`, chatPeer, []string{
			`0 user input[0].content[0].file_url {"type":"inline_data.done","data":"JVBERi0=","mime_type":"application/pdf","filename":"a.pdf"}`,
			`0 user input[0].content[1].file_url {"type":"inline_data.done","data":"JVBERi0=","mime_type":"application/pdf","filename":"b.pdf"}`,
			`0 user input[0].content[2].source.url {"type":"inline_data.done","data":"aGk=","mime_type":"text/plain","filename":"a.txt"}`,
			`0 user input[0].content[3].file_url {"type":"image_url.done","image_url":"data:image/png;base64,iVBORw=="}`,
			`1 assistant input[1] {"type":"tool_call.done","name":"dig","arguments":{},"tool_call_id":"c1"}`,
			`2 user input[2] {"type":"tool_result.done","text":"","images":["data:application/pdf;name=a.pdf;base64,JVBERi0="],"tool_call_id":"c1"}`,
		}},
		{"calls and results", `"input":[{"role":"user","content":"Hi"},{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"A"},{"type":"summary_text","text":"B"}]},
			{"type":"function_call","id":"fc_1","call_id":"c1","name":"dig","arguments":"{\"n\": 9007199254740993}"},{"type":"function_call","call_id":"c2","name":"dig","arguments":""},
			{"type":"custom_tool_call","call_id":"c3","name":"note","input":"a\"b"},{"type":"function_call_output","call_id":"c2","output":"two"},
			{"type":"function_call_output","call_id":"c1","output":[{"type":"input_text","text":"one"},{"type":"input_text","text":"more"},{"type":"input_image","image_url":"data:image/png;base64,YWJj"},
			{"type":"input_file","filename":"a.pdf","file_data":"YWJj"}]},{"type":"custom_tool_call_output","call_id":"c3","output":""}]`, chatPeer, []string{
			user("input[0].content", "Hi"),
			`1 assistant input[1] {"type":"thinking.done","thinking":"A\n\nB"}`,
			`1 assistant input[2] {"type":"tool_call.done","name":"dig","arguments":{"n": 9007199254740993},"tool_call_id":"c1"}`,
			`1 assistant input[3] {"type":"tool_call.done","name":"dig","arguments":{},"tool_call_id":"c2"}`,
			`1 assistant input[4] {"type":"tool_call.done","name":"note","arguments":{"input":"a\"b"},"tool_call_id":"c3"}`,
			`2 user input[5] {"type":"tool_result.done","text":"two","tool_call_id":"c2"}`,
			`2 user input[6] {"type":"tool_result.done","text":"one\nmore","images":["data:image/png;base64,YWJj","data:application/pdf;name=a.pdf;base64,YWJj"],"tool_call_id":"c1"}`,
			`2 user input[7] {"type":"tool_result.done","text":"","tool_call_id":"c3"}`,
		}},
		{"a call that the token limit cut", `"input":[{"role":"user","content":"Hi"},{"type":"function_call","call_id":"c1","name":"dig","arguments":"{\"city\":"},{"type":"function_call_output","call_id":"c1","output":"no JSON"}]`, chatPeer, []string{
			user("input[0].content", "Hi"),
			`1 assistant input[1] {"type":"tool_call.done","name":"dig","arguments":{},"tool_call_id":"c1"}`,
			`2 user input[2] {"type":"tool_result.done","text":"no JSON","tool_call_id":"c1"}`,
			`dropped input[1].arguments`,
		}},
		{"native reasoning", `"input":[{"role":"user","content":"Hi"},{"type":"reasoning","summary":[{"type":"summary_text","text":"A"}],"encrypted_content":"E"},
			{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"B"}],"encrypted_content":"F"},{"type":"reasoning","summary":[],"content":null,"encrypted_content":"G"},{"type":"reasoning","summary":[],"encrypted_content":null}]`, nativePeer, []string{
			user("input[0].content", "Hi"),
			`1 assistant input[1] {"type":"thinking.done","thinking":"A","fidelity":{"channel":"summary","encrypted_content":"E"}}`,
			`1 assistant input[2] {"type":"thinking.done","thinking":"B","fidelity":{"channel":"content","encrypted_content":"F"}}`,
			`1 assistant input[3] {"type":"thinking.done","thinking":"","fidelity":{"encrypted_content":"G"}}`,
		}},
		{"foreign reasoning", `"input":[{"role":"user","content":"Hi"},{"type":"reasoning","summary":[{"type":"summary_text","text":"A"}],"encrypted_content":"E"},{"type":"reasoning","summary":[],"encrypted_content":"E"},{"type":"reasoning","summary":[],"encrypted_content":"mmsp1.!"}]`, chatPeer, []string{
			user("input[0].content", "Hi"), `1 assistant input[1] {"type":"thinking.done","thinking":"A"}`,
		}},
		{"config", `"input":"Hi","max_output_tokens":16,"temperature":0,"top_p":1,"presence_penalty":1,"frequency_penalty":2,"reasoning":{"effort":"minimal","summary":"auto"},
			"text":{"verbosity":"high","format":{"type":"json_schema","name":"n","description":"d","schema":{"a": 1},"strict":true}},"service_tier":"priority","metadata":{"k": "v"},
			"safety_identifier":"s","prompt_cache_key":"k","truncation":"auto","top_logprobs":2,"parallel_tool_calls":true`, chatPeer, []string{
			user("input", "Hi"),
			`{"max_tokens":16,"temperature":0,"top_p":1,"presence_penalty":1,"frequency_penalty":2,"response_format":{"type":"json_schema","name":"n","description":"d","schema":{"a":1},"strict":true},` +
				`"thinking_level":"low","thinking_summary":true,"verbosity":"high","service_tier":"priority","prompt_cache_key":"k","user":"s","metadata":{"k":"v"}}`,
			`dropped reasoning.effort (minimal), truncation (auto), top_logprobs (2)`,
		}},
		{"a long summary", `"input":"Hi","reasoning":{"summary":"detailed"}`, chatPeer, []string{user("input", "Hi"), `{"thinking_summary":true}`, "dropped reasoning.summary (detailed)"}},
		{"a schema that is not given", `"input":"Hi","service_tier":"auto","text":{"format":{"type":"json_schema"}}`, chatPeer, []string{user("input", "Hi"), `{"response_format":{"type":"json_object"}}`}},
		{"tools", `"input":"Hi","parallel_tool_calls":false,"tool_choice":"required","tools":[{"type":"function","name":"dig","description":null,"parameters":{"type":"object"},"strict":false},
			{"type":"web_search"},{"type":"custom","name":"note","description":"d","format":{"type":"grammar","syntax":"lark","definition":"start: /x/"}},
			{"type":"namespace","name":"deck","tools":[{"type":"function","name":"scan"},{"type":"mcp"}]},{"type":"function","name":"deck__scan"}]`, chatPeer, []string{
			user("input", "Hi"),
			`{"tools":[{"name":"dig","description":"","parameters":{"type":"object"},"strict":false},` + custom + `,{"name":"deck__scan_2","description":""},{"name":"deck__scan","description":""}],` +
				`"tool_choice":"required","parallel_tool_calls":false}`,
			`tools tools[0], tools[2], tools[3].tools[0], tools[4]`,
			`dropped tools[1] (web_search), tools[2].format (grammar), tools[3].tools[1] (mcp)`,
		}},
		{"groups whose names run into each other", `"input":"Hi","tools":[{"type":"namespace","name":"a","tools":[{"type":"function","name":"_b"}]},{"type":"namespace","name":"a_","tools":[{"type":"function","name":"b"}]},
			{"type":"function","name":"a___b_2"}],"tool_choice":{"type":"function","name":"b"}`, chatPeer, []string{
			user("input", "Hi"), `{"tools":[{"name":"a___b","description":""},{"name":"a___b_3","description":""},{"name":"a___b_2","description":""}],"tool_choice":["a___b_3"]}`,
			`tools tools[0].tools[0], tools[1].tools[0], tools[2]`,
		}},
		{"no tools", `"input":"Hi","parallel_tool_calls":false,"tool_choice":"auto","tools":[]`, chatPeer, []string{user("input", "Hi")}},
		{"tools that the input brings", `"input":[{"type":"additional_tools","role":"developer","tools":[{"type":"function","name":"dig","description":"new"}]},{"role":"user","content":"Hi"}],
			"tools":[{"type":"function","name":"dig"}]`, chatPeer, []string{user("input[1].content", "Hi"), `{"tools":[{"name":"dig","description":"new"}]}`, `tools input[0].tools[0]`}},
		{"one tool", `"input":"Hi","tools":[{"type":"function","name":"dig"}],"tool_choice":{"type":"function","function":{"name":"dig"}}`, chatPeer, []string{
			user("input", "Hi"), `{"tools":[{"name":"dig","description":""}],"tool_choice":["dig"]}`, `tools tools[0]`,
		}},
		{"allowed tools", `"input":"Hi","tools":[{"type":"function","name":"dig"},{"type":"function","name":"fill"}],"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"fill"},{"type":"mcp"}]}`, chatPeer, []string{
			user("input", "Hi"), `{"tools":[{"name":"fill","description":""}],"tool_choice":"auto"}`, `tools tools[1]`, `dropped tool_choice.tools[1] (mcp)`, `allowed fill`,
		}},
		{"allowed tools of which one must be called", `"input":"Hi","tools":[{"type":"function","name":"dig"},{"type":"namespace","name":"n","tools":[{"type":"function","name":"fill"}]}],
			"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"function","name":"fill"}]}`, chatPeer, []string{
			user("input", "Hi"), `{"tools":[{"name":"dig","description":""},{"name":"n__fill","description":""}],"tool_choice":["n__fill"]}`, `tools tools[0], tools[1].tools[0]`, `allowed n__fill`,
		}},
		{"what hosted tools did", `"input":[{"type":"web_search_call","id":"ws_1","status":"completed","action":{"query":1}},{"role":"user","content":"Hi"},{"type":"image_generation_call","id":"ig_1","result":"YWJj"}]`, chatPeer, []string{
			user("input[1].content", "Hi"), `dropped input[0] (web_search_call), input[2] (image_generation_call)`,
		}},
		{"a context that the provider made compact", `"input":[{"type":"compaction","id":"cmp_1","encrypted_content":"E"},{"role":"user","content":"Hi"}]`, nativePeer, []string{
			user("input[1].content", "Hi"), `dropped input[0] (compaction)`,
		}},
		{"a picture of the model's own", `"input":[{"role":"user","content":"Hi"},{"type":"image_generation_call","result":"YWJj","output_format":"webp"}]`, googlePeer, []string{
			user("input[0].content", "Hi"), `1 assistant input[1].result {"type":"inline_data.done","data":"YWJj","mime_type":"image/webp"}`,
		}},
		{"reasoning that is not kept", `"input":[{"type":"item_reference","id":"rs_1"},{"role":"user","content":"Hi"}]`, chatPeer, []string{user("input[1].content", "Hi")}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, request, err := parse(t, numbered(), environment(c.peer, nil), `{"model":"m",`+c.body+`}`)
			if err != nil {
				t.Fatal(err)
			}
			if err := mmsp.Validate(request.Messages); err != nil {
				t.Error(err)
			}
			compare(t, described(request), c.want)
		})
	}
}

// However many groups have tools whose names are one when they are joined, each name is about as long as the caller's.
func TestManyNames(t *testing.T) {
	const length = 500
	var tools []string
	for i := 1; i < length; i++ { // the name without a number is the same of all
		tools = append(tools, fmt.Sprintf(`{"type":"namespace","name":"%s","tools":[{"type":"function","name":"%s"}]}`, strings.Repeat("_", i), strings.Repeat("_", length-i)))
	}
	_, request, err := parse(t, numbered(), environment(chatPeer, nil), ask(`,"tools":[`+strings.Join(tools, ",")+`]`))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, tool := range request.Config.Tools {
		names[tool.Name] = true
		if len(tool.Name) > length+len("___500") {
			t.Fatalf("a name of %d bytes", len(tool.Name))
		}
	}
	if len(names) != len(tools) {
		t.Errorf("%d names of %d tools", len(names), len(tools))
	}
}

func TestBadRequests(t *testing.T) {
	item := func(text string) string { return `"input":[` + text + `]` }
	part := func(text string) string { return item(`{"role":"user","content":[` + text + `]}`) }
	with := func(text string) string { return `"input":"Hi",` + text }
	for _, c := range []struct{ body, path, message string }{
		{`"input":7`, "input", "a string or a list is wanted"},
		{`"instructions":"x"`, "input", "the input is missing"},
		{`"input":[]`, "input", "the input holds nothing to answer"},
		{item(`null`), "input[0]", "an object is wanted"},
		{item(`7`), "input[0]", "an object is wanted"},
		{item(`{}`), "input[0].type", "the type is missing"},
		{item(`{"type":7,"id":"fc_1","call_id":"c"}`), "input[0].type", "a string is wanted"},
		{item(`{"type":7,"role":"user","content":"x"}`), "input[0].type", "a string is wanted"},
		{item(`{"type":null,"role":["user"],"content":"x"}`), "input[0].role", "a string is wanted"},
		{item(`{"id":7}`), "input[0].id", "a string is wanted"},
		{part(`{"type":["input_text"],"text":"x"}`), "input[0].content[0].type", "a string is wanted"},
		{with(`"tools":[{"type":7,"name":"x"}]`), "tools[0].type", "a string is wanted"},
		{item(`{"type":"local_shell_call"}`), "input[0].type", `items of type "local_shell_call" are not supported`},
		{item(`{"type":"compaction","encrypted_content":"x"}`), "input", "the input holds nothing to answer"},
		{item(`{"type":"compaction_trigger"}`), "input[0].type", `items of type "compaction_trigger" are not supported`},
		{item(`{"role":"tool","content":"x"}`), "input[0].role", "one of user, assistant, system, developer is wanted"},
		{item(`{"role":"user"}`), "input[0].content", "the content is missing"},
		{item(`{"role":"user","content":7}`), "input[0].content", "a string or a list of parts is wanted"},
		{item(`{"role":"developer","content":[{"type":"input_image"}]}`), "input[0].content[0].type", `parts of type "input_image" cannot stand here; these can: input_text`},
		{part(`{"type":"input_video"}`), "input[0].content[0].type", `parts of type "input_video" cannot stand here; these can: input_text, input_image, input_file, input_audio`},
		{part(`{"type":"input_text"}`), "input[0].content[0].text", "a string is wanted"},
		{part(`{"type":"input_text","text":7}`), "input[0].content[0].text", "a string is wanted"},
		{part(`{"type":"input_image"}`), "input[0].content[0].image_url", "an http(s) URL with a host is wanted, or a data URL with a media type and base64"},
		{part(`{"type":"input_image","file_id":"f"}`), "input[0].content[0].file_id", "input_image: file ids of a provider are not known here"},
		{part(`{"type":"input_image","image_url":"https://a","detail":"big"}`), "input[0].content[0].detail", "one of auto, low, high, original is wanted"},
		{part(`{"type":"input_file","file_url":"https://a"}`), "input[0].content[0].file_url", "nothing is there"},
		{part(`{"type":"input_file","file_url":"https://files.test/a.pdf","file_data":"YWJj"}`), "input[0].content[0].file_url", "input_file: file_data stands beside it, and one of the two is wanted"},
		{part(`{"type":"input_file","file_url":"https://files.test/a.pdf","file_id":"f"}`), "input[0].content[0].file_id", "input_file: file ids of a provider are not known here"},
		{part(`{"type":"input_file","file_data":"*"}`), "input[0].content[0].file_data", "base64 is wanted"},
		{part(`{"type":"input_file"}`), "input[0].content[0].file_data", "input_file: file_data or file_url is wanted"},
		{item(`{"type":"function_call","call_id":"c","name":"n","arguments":"[]"}`), "input[0].arguments", "the text of a JSON object is wanted: no object begins at byte 0"},
		{item(`{"type":"function_call","call_id":"c","arguments":"{}"}`), "input[0].name", "a string that is not empty is wanted"},
		{item(`{"type":"function_call_output","call_id":"c","output":"x"}`), "input[0].call_id", "No tool call found for function call output with call_id c."},
		{item(`{"type":"function_call_output","call_id":"c"}`), "input[0].output", "the output is missing"},
		{item(`{"type":"item_reference","id":"msg_1"}`), "input[0].id", `no item "msg_1" is kept`},
		{item(`{"id":"fc_1"}`), "input[0].id", `no item "fc_1" is kept`},
		{with(`"conversation":"c"`), "conversation", "conversations are not supported; previous_response_id is"},
		{with(`"background":true`), "background", "work in the background is not supported"},
		{with(`"prompt":{"id":"p"}`), "prompt", "stored prompts are not supported"},
		{with(`"max_output_tokens":15`), "max_output_tokens", "an integer from 16 to 9007199254740992 is wanted"},
		{with(`"temperature":3`), "temperature", "a number from 0 to 2 is wanted"},
		{with(`"stream":"yes"`), "stream", "true or false is wanted"},
		{with(`"reasoning":{"effort":"huge"}`), "reasoning.effort", "one of none, minimal, low, medium, high, xhigh, max is wanted"},
		{with(`"text":{"format":{"type":"xml"}}`), "text.format.type", "one of text, json_object, json_schema is wanted"},
		{with(`"text":{"format":{"type":"json_schema","name":"a b"}}`), "text.format.name", "at most 64 letters, digits, _ and - are wanted"},
		{with(`"metadata":{"a":1}`), "metadata.a", "a string is wanted"},
		{with(`"metadata":{"` + strings.Repeat("a", 65) + `":"x"}`), "metadata", "a key has more than 64 characters"},
		{with(`"user":7`), "user", "a string is wanted"},
		{with(`"include":["a",7]`), "include[1]", "a string is wanted"},
		{with(`"include":[""` + strings.Repeat(`,""`, 4096) + `]`), "include", "at most 4096 strings are wanted"},
		{with(`"moderation":true`), "moderation", "an object is wanted"},
		{with(`"context_management":{}`), "context_management", "a list is wanted"},
		{with(`"prompt_cache_retention":"1h"`), "prompt_cache_retention", "one of in_memory, in-memory, 24h is wanted"},
		{with(`"tools":[{"type":"function"}]`), "tools[0].name", "a string that is not empty is wanted"},
		{with(`"tools":[{"name":"x"}]`), "tools[0].type", "the type is missing"},
		{with(`"tools":[{"type":"function","name":"x","parameters":[]}]`), "tools[0].parameters", "an object is wanted"},
		{with(`"tools":[{"type":"function","name":"x"},{"type":"custom","name":"x"}]`), "tools[1].name", `two tools are called "x"`},
		{with(`"tools":[{"type":"namespace","name":"n","tools":[{"type":"function"}]}]`), "tools[0].tools[0].name", "a string that is not empty is wanted"},
		{with(`"tool_choice":"any"`), "tool_choice", "one of none, auto, required is wanted"},
		{with(`"tool_choice":"required"`), "tool_choice", "a tool is to be called, and there is none that the model could call"},
		{with(`"tool_choice":{"type":"function","name":"x"}`), "tool_choice.name", `no tool of the request is called "x"`},
		{with(`"tools":[{"type":"namespace","name":"m","tools":[{"type":"function","name":"x"}]},{"type":"namespace","name":"n","tools":[{"type":"function","name":"x"}]}],"tool_choice":{"type":"function","name":"x"}`), "tool_choice.name", `no tool of the request is called "x"`},
		{with(`"tools":[{"type":"web_search"}],"tool_choice":{"type":"web_search"}`), "tool_choice", `tools of type "web_search" cannot be called here`},
		{with(`"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[]}`), "tool_choice.tools", "a list of 1 to 128 tools is wanted"},
		{with(`"tool_choice":{"type":"allowed_tools","mode":"required","tools":[{"type":"mcp"}]}`), "tool_choice.tools", "a tool is to be called, and none of these is one that the model could call"},
		{with(`"tool_choice":{"type":"allowed_tools","mode":"auto","tools":[{"type":"function","name":"x"}]}`), "tool_choice.tools[0].name", `no tool of the request is called "x"`},
		{with(`"previous_response_id":"resp_9"`), "previous_response_id", "Previous response with id 'resp_9' not found."},
	} {
		_, _, err := parse(t, numbered(), environment(chatPeer, nil), `{"model":"m",`+c.body+`}`)
		if err == nil {
			t.Errorf("%s: no error", c.body)
			continue
		}
		p := ingress.Explain(err)
		if p.Param != c.path || p.Message != c.message || p.Status != 400 {
			t.Errorf("%s:\ngot  %s: %s\nwant %s: %s", c.body, p.Param, p.Message, c.path, c.message)
		}
	}
	for _, body := range []string{`{"input":"Hi"}`, `null`} {
		if _, _, err := parse(t, numbered(), environment(chatPeer, nil), body); err == nil || ingress.Explain(err).Param != "model" {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// replayed makes of a response what callers send back of it: its output items, as they are or by reference.
func replayed(t *testing.T, response []byte, byReference bool) string {
	t.Helper()
	var r struct{ Output []json.RawMessage }
	if err := json.Unmarshal(response, &r); err != nil {
		t.Fatal(err)
	}
	var items []string
	for _, raw := range r.Output {
		if byReference {
			var item struct{ ID string }
			_ = json.Unmarshal(raw, &item)
			raw = fmt.Appendf(nil, `{"type":"item_reference","id":%q}`, item.ID)
		}
		items = append(items, string(raw))
	}
	return strings.Join(items, ",")
}

// What a caller sends back holds every proof on the item that it belongs to.
func TestProofsComeBack(t *testing.T) {
	with := func(item mmsp.Item, fidelity string) mmsp.Item {
		item.Fidelity = mmsp.Fidelity(fidelity)
		return item
	}
	signature := `{"signature":"s","issuer":"google"}`
	for _, c := range []struct {
		name  string
		peer  carry.Peer
		items []mmsp.Item
	}{
		{"everything signed", googlePeer, []mmsp.Item{
			with(mmsp.Thinking("Hm"), signature), with(mmsp.Text("A"), `{"signature":"t"}`), mmsp.Text("B"),
			with(mmsp.ToolCall("c1", "dig", `{"n": 1}`), `{"signature":"u"}`), mmsp.ToolCall("c2", "dig", `{}`),
			with(mmsp.ToolCall("c3", "deck__edit", `{"input":"x"}`), `{"signature":"v"}`), with(mmsp.Text("C"), `{"signature":"w","refusal":true}`),
			with(mmsp.InlineData([]byte("abc"), "image/png", ""), `{"signature":"x"}`),
		}},
		{"one vendor's blocks", carry.Peer{ClientType: "anthropic-official", Protocol: carry.Messages, Host: "anthropic", Model: "m"}, []mmsp.Item{
			with(mmsp.Thinking("Hm"), `{"signature":"s"}`), with(mmsp.Thinking(ingress.RedactedThinking), `{"signature":"r"}`), with(mmsp.Thinking(""), `{"signature":"q"}`), mmsp.Text("A"),
		}},
		{"a chat field", chatPeer, []mmsp.Item{with(mmsp.Thinking("Hm"), `{"field":"reasoning_content"}`), mmsp.Text("A"), mmsp.Thinking("unproven")}},
		{"the protocol's own", nativePeer, []mmsp.Item{
			with(mmsp.Thinking("Hm"), `{"channel":"summary","encrypted_content":"E"}`), with(mmsp.Thinking(""), `{"encrypted_content":"F"}`),
			with(mmsp.Text("A"), `{"phase":"commentary"}`), with(mmsp.Text("B"), `{"phase":"final_answer"}`), with(mmsp.Text("No."), `{"refusal":true}`),
			with(mmsp.Thinking("raw"), `{"channel":"content","encrypted_content":"G"}`), with(mmsp.Thinking("x"), `{"channel":"summary","encrypted_content":"H","signature":"S","format":"f"}`),
		}},
	} {
		for _, raw := range []string{"", "raw"} {
			for _, byReference := range []bool{false, true} {
				name := c.name + " " + raw
				if byReference {
					name += " by reference"
				}
				t.Run(name, func(t *testing.T) {
					env := environment(c.peer, nil)
					p := numbered()
					call, _, err := parse(t, p, env, ask(strings.Replace(tools, `"store":false,`, "", 1)), "x-mmsp-reasoning", raw)
					if err != nil {
						t.Fatal(err)
					}
					answer := mmsp.AssistantMessage(c.items...)
					answer.FinishReason = mmsp.FinishStop
					if err := call.Keep(t.Context(), &answer); err != nil {
						t.Fatal(err)
					}
					back := `{"model":"m","input":[{"role":"user","content":"Hi"},` + replayed(t, call.Whole(nil, &answer), byReference) + `]` +
						strings.Replace(tools, `"store":false,`, "", 1) + `}`
					_, request, err := parse(t, p, env, back)
					if err != nil {
						t.Fatal(err)
					}
					got := mmsp.AssistantMessage(request.Messages[1].ContentItems...)
					want := mmsp.AssistantMessage(c.items...)
					compare(t, strings.Split(string(got.AppendJSON(nil)), `{"type":`), strings.Split(string(want.AppendJSON(nil)), `{"type":`))
				})
			}
		}
	}
}

// A response is continued by its id: what was said before comes first, instructions and tools are not carried over.
func TestPreviousResponse(t *testing.T) {
	store := carry.NewMemory(1<<40, 1<<30)
	env, p := environment(googlePeer, store), numbered()
	turn := func(body string, items ...mmsp.Item) {
		t.Helper()
		call, request, err := parse(t, p, env, `{"model":"m",`+body+`}`)
		if err != nil {
			t.Fatal(err)
		}
		answer := mmsp.AssistantMessage(items...)
		for m := range request.Messages { // the gateway may change what it was given
			for i := range request.Messages[m].ContentItems {
				request.Messages[m].ContentItems[i] = mmsp.Text("changed")
			}
		}
		if err := call.Keep(t.Context(), &answer); err != nil {
			t.Fatal(err)
		}
	}
	signed := mmsp.ToolCall("c1", "dig", `{"n": 1}`)
	signed.Fidelity = mmsp.Fidelity(`{"signature":"s"}`)
	turn(`"instructions":"Not kept.","input":[{"role":"developer","content":"One."},{"role":"user","content":"Hi"}],"tools":[{"type":"function","name":"dig"}]`, signed)
	turn(`"input":[{"type":"function_call_output","call_id":"c1","output":"done"}],"previous_response_id":"resp_a1"`, mmsp.Text("Dug."))

	_, request, err := parse(t, p, env, `{"model":"m","instructions":"Three.","input":[{"role":"developer","content":"Two."},{"role":"assistant","content":"Well."},{"role":"user","content":"More."}],"previous_response_id":"resp_a2"}`)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, described(request), []string{
		`0 user previous_response_id {"type":"text.done","text":"Hi"}`,
		`1 assistant previous_response_id {"type":"tool_call.done","name":"dig","arguments":{"n": 1},"tool_call_id":"c1","fidelity":{"signature":"s"}}`,
		`2 user previous_response_id {"type":"tool_result.done","text":"done","tool_call_id":"c1"}`,
		`3 assistant previous_response_id {"type":"text.done","text":"Dug."}`,
		`3 assistant input[1].content {"type":"text.done","text":"Well."}`,
		`4 user input[2].content {"type":"text.done","text":"More."}`,
		`{"system_prompt":"Three.\n\nOne.\n\nTwo."}`,
	})

	// Nobody else's response is found, nor one that was not to be kept.
	other := environment(googlePeer, store)
	other.Caller = "you"
	var missing *ingress.Problem
	if _, _, err := parse(t, p, other, `{"model":"m","previous_response_id":"resp_a2"}`); !errors.As(err, &missing) || missing.Kind != ingress.KindPreviousMissing {
		t.Errorf("another caller: %v", err)
	}
	call, _, err := parse(t, p, env, ask(`,"store":false`))
	if err != nil {
		t.Fatal(err)
	}
	answer := mmsp.AssistantMessage(mmsp.Text("A"))
	if err := call.Keep(t.Context(), &answer); err != nil {
		t.Fatal(err)
	}
	if len(call.ids) != 1 {
		t.Errorf("ids %q", call.ids)
	}
	if _, _, err := parse(t, p, env, `{"model":"m","input":[{"id":"`+call.ids[0]+`"}]}`); err == nil {
		t.Error("an item of a response that was not to be kept is found")
	}

	// A conversation that leads back to itself ends, and one whose beginning is gone is refused.
	if err := store.Put(t.Context(), "me", []byte(`{"parent":"resp_x","messages":[{"role":"user","content_items":[{"type":"text.done","text":"round"}]}]}`), "response:resp_x"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := parse(t, p, env, `{"model":"m","previous_response_id":"resp_x"}`); err != nil {
		t.Errorf("a conversation in a circle: %v", err)
	}
	if err := store.Put(t.Context(), "me", []byte("a record of another version"), "response:resp_a1"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := parse(t, p, env, `{"model":"m","previous_response_id":"resp_a2"}`); !errors.As(err, &missing) || !strings.Contains(missing.Message, "resp_a1") {
		t.Errorf("a conversation without its beginning: %v", err)
	}
}

// A proof that followed its item comes back onto it; one that lost its item is let go of.
func TestLateProofComesBack(t *testing.T) {
	signature := `{"signature":"s"}`
	text := `{"type":"reasoning","summary":[],"encrypted_content":"` + sealed("text", signature, &carry.Owner{Previous: true}) + `"}`
	call := `{"type":"reasoning","summary":[],"encrypted_content":"` + sealed("tool_call", signature, &carry.Owner{Previous: true, ToolCallID: "c2"}) + `"}`
	next := `{"type":"reasoning","summary":[],"encrypted_content":"` + sealed("text", signature, &carry.Owner{}) + `"}`
	_, request, err := parse(t, numbered(), environment(chatPeer, nil), `{"model":"m","input":[`+text+`,{"role":"user","content":"Hi"},`+text+
		`,{"role":"assistant","content":"A"},`+text+`,{"role":"assistant","content":"B"},`+call+`,{"type":"function_call","call_id":"c1","name":"n","arguments":"{}"},`+call+
		`,{"type":"function_call","call_id":"c2","name":"n","arguments":"{}"},`+call+`,`+next+`,{"role":"user","content":"Why?"},{"role":"assistant","content":"C"}]}`)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, described(request), []string{
		`0 user input[1].content {"type":"text.done","text":"Hi"}`,
		`1 assistant input[3].content {"type":"text.done","text":"A","fidelity":{"signature":"s"}}`,
		`1 assistant input[5].content {"type":"text.done","text":"B"}`,
		`1 assistant input[7] {"type":"tool_call.done","name":"n","arguments":{},"tool_call_id":"c1"}`,
		`1 assistant input[9] {"type":"tool_call.done","name":"n","arguments":{},"tool_call_id":"c2","fidelity":{"signature":"s"}}`,
		`2 user input[12].content {"type":"text.done","text":"Why?"}`,
		`3 assistant input[13].content {"type":"text.done","text":"C"}`,
	})
}

// Reasoning whose proof the caller left out is known by its id, as long as its text is the same.
func TestKeptReasoning(t *testing.T) {
	env, p := environment(chatPeer, nil), numbered()
	call, _, err := parse(t, p, env, ask(`,"include":[]`))
	if err != nil {
		t.Fatal(err)
	}
	signed := mmsp.Thinking("Hm")
	signed.Fidelity = mmsp.Fidelity(`{"signature":"s"}`)
	answer := mmsp.AssistantMessage(signed, mmsp.InlineData([]byte("abc"), "image/png", ""), mmsp.InlineData([]byte("abc"), "audio/wav", ""))
	if err := call.Keep(t.Context(), &answer); err != nil {
		t.Fatal(err)
	}
	if whole := string(call.Whole(nil, &answer)); !strings.Contains(whole, `{"type":"output_text","text":"data:audio/wav;base64,YWJj"`) || strings.Contains(whole, "encrypted_content") {
		t.Errorf("got %s", whole)
	}
	_, request, err := parse(t, p, env, `{"model":"m","input":[{"role":"user","content":"Hi"},{"type":"reasoning","id":"rs_a1","summary":[{"type":"summary_text","text":"Hm"}]},
		{"type":"reasoning","id":"rs_a1","summary":[{"type":"summary_text","text":"Ha"}]},{"type":"reasoning","id":"rs_a2","summary":[]},{"type":"item_reference","id":"ig_a1"},
		{"type":"reasoning","id":"rs_a1","summary":[{"type":"summary_text","text":"Hm"}]}]}`)
	if err != nil {
		t.Fatal(err)
	}
	compare(t, described(request), []string{
		`0 user input[0].content {"type":"text.done","text":"Hi"}`,
		`1 assistant input[1] {"type":"thinking.done","thinking":"Hm","fidelity":{"signature":"s"}}`,
		`1 assistant input[2] {"type":"thinking.done","thinking":"Ha"}`,
		`1 assistant input[5] {"type":"thinking.done","thinking":"Hm"}`,
		`dropped input[4] (inline_data)`,
	})
}

// shelf has a record under every key: a response that follows another, whose id is one letter shorter, or an answer of one
// item that proves something. Beside the one called big a request may bring back three others. Neither it nor the one called
// huge, which is too long by itself, can be read.
type shelf struct {
	carry.Store
	read int
}

func (s *shelf) Get(_ context.Context, _, key string) ([]byte, error) {
	const length = 200
	s.read++
	kind, id, _ := strings.Cut(key, ":")
	switch id {
	case "big":
		return make([]byte, maxKeptBytes-3*length), nil
	case "huge":
		return make([]byte, maxKeptBytes+1), nil
	}
	record := `{"parent":"` + strings.TrimPrefix(id, "a") + `","messages":[{"role":"user","content_items":[{"type":"text.done","text":"` + id + `"}]}]}`
	if kind == "item" {
		record = `{"message":{"role":"assistant","content_items":[{"type":"thinking.done","thinking":"` + id + `","fidelity":{"a":1}}]},"ids":["` + id + `"]}`
	}
	return []byte(record + strings.Repeat(" ", length-len(record))), nil
}

// A short body does not bring back any number of bytes.
func TestMuchIsKept(t *testing.T) {
	const long = "what the request brings back of earlier responses is too long"
	item := func(id string) string { return `{"type":"item_reference","id":"` + id + `"}` }
	thought := func(id string) string {
		return `{"type":"reasoning","id":"` + id + `","summary":[{"type":"summary_text","text":"` + id + `"}]}`
	}
	twice := func(id string) string {
		return "Duplicate item found with id " + id + ". Remove duplicate items from your input and try again."
	}
	for _, c := range []struct {
		name, previous string
		input          []string
		items, read    int // of the conversation and of the store
		path, message  string
	}{
		{"what may be", "aa", []string{thought("big"), item("i")}, 4, 4, "", ""},
		{"items", "", []string{thought("big"), item("i"), item("j"), item("k"), item("l")}, 0, 5, "input[4].id", long},
		{"a response", "huge", nil, 0, 1, "previous_response_id", long},
		{"an item", "aa", []string{item("huge")}, 0, 3, "input[0].id", long},
		{"items after responses", "aa", []string{thought("big"), item("i"), item("j")}, 0, 5, "input[2].id", long},
		{"an item twice", "", []string{item("i"), item("j"), item("i")}, 0, 2, "input[2].id", twice("i")},
		{"an item and its id", "", []string{thought("i"), item("i")}, 0, 1, "input[1].id", twice("i")},
		{"reasoning beyond", "aaa", []string{thought("big"), thought("i"), thought("j")}, 6, 5, "", ""},
	} {
		store := &shelf{}
		_, request, err := parse(t, numbered(), environment(chatPeer, store), `{"model":"m","previous_response_id":"`+c.previous+`","input":[`+strings.Join(c.input, ",")+`]}`)
		items := 0
		if err == nil {
			for _, m := range request.Messages {
				items += len(m.ContentItems)
			}
		}
		p := &ingress.Problem{}
		if err != nil {
			p = ingress.Explain(err)
		}
		if items != c.items || store.read != c.read || p.Param != c.path || p.Message != c.message || err != nil && p.Status != 400 {
			t.Errorf("%s: %d items, %d records, %v", c.name, items, store.read, err)
		}
	}
}

// broken is a store that is down.
type broken struct{ carry.Store }

func (broken) Get(context.Context, string, string) ([]byte, error) { return nil, errors.New("down") }

func TestStoreIsDown(t *testing.T) {
	for body, status := range map[string]int{
		`{"model":"m","input":"Hi","previous_response_id":"resp_1"}`:                                        503,
		`{"model":"m","input":[{"type":"item_reference","id":"rs_1"}]}`:                                     503,
		`{"model":"m","input":[{"role":"user","content":"Hi"},{"type":"reasoning","id":"r","summary":[]}]}`: 0,
	} {
		_, _, err := parse(t, numbered(), environment(chatPeer, broken{}), body)
		if got := 0; err != nil {
			if got = ingress.Explain(err).Status; got != status {
				t.Errorf("%s: %d", body, got)
			}
		} else if status != 0 {
			t.Errorf("%s: no error", body)
		}
	}
}

func TestCount(t *testing.T) {
	r := httptest.NewRequest("POST", "/v1/responses/input_tokens", nil)
	call, err := New().Parse(r, []byte(`{"model":"m","input":"Hi","stream":true}`))
	if err != nil {
		t.Fatal(err)
	}
	if !call.Counts() || call.Streams() || call.Model() != "m" {
		t.Errorf("counts %t, streams %t, model %s", call.Counts(), call.Streams(), call.Model())
	}
	compare(t, []string{string(call.Count(nil, 12))}, []string{`{"object":"response.input_tokens","input_tokens":12}`})
}
