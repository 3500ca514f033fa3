package generatecontent

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/ingress"
	"github.com/prism-shadow/mmsp-go/ingress/ingresstest"
	"github.com/prism-shadow/mmsp-go/internal/carry"
	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

var (
	google    = carry.Peer{ClientType: "google-genai", Protocol: carry.GenerateContent, Host: "google", Model: "gemini-3-pro"}
	anthropic = carry.Peer{ClientType: "anthropic-official", Protocol: carry.Messages, Host: "anthropic", Model: "claude"}
	openai    = carry.Peer{ClientType: "openai-official", Protocol: carry.Responses, Host: "openai", Model: "gpt"}
)

func parse(target, body string) (ingress.Call, error) {
	return New().Parse(httptest.NewRequest(http.MethodPost, target, nil), []byte(body))
}

func read(peer carry.Peer, target, body string) (*ingress.Request, error) {
	call, err := parse(target, body)
	if err != nil {
		return nil, err
	}
	return call.Read(context.Background(), &ingress.Env{
		Peer: peer, Asks: func(*mmsp.Config) bool { return peer == google }, RequestID: "req-1", Fetch: ingresstest.Fetch,
	})
}

func envelope(e carry.Envelope) string {
	return base64.StdEncoding.EncodeToString([]byte(carry.Seal(e, carry.MaxInline)))
}

// show writes a request as the tests compare it: one line of JSON a message, then what the config says.
func show(t *testing.T, r *ingress.Request) string {
	t.Helper()
	var out strings.Builder
	for i := range r.Messages {
		text, err := json.Marshal(&r.Messages[i])
		if err != nil {
			t.Fatal(err)
		}
		out.Write(text)
		out.WriteString(" @" + strings.Join(r.Paths[i], " ") + "\n")
	}
	config, err := json.Marshal(&r.Config)
	if err != nil {
		t.Fatal(err)
	}
	if string(config) != "{}" {
		out.WriteString(strings.ReplaceAll(string(config), `,"description":""`, ""))
		out.WriteString("\n")
	}
	for _, list := range []struct {
		name  string
		words []string
	}{{"tools", r.ToolPaths}, {"dropped", r.Dropped}, {"allowed", r.Allowed}} {
		if len(list.words) > 0 {
			out.WriteString(list.name + ": " + strings.Join(list.words, " | ") + "\n")
		}
	}
	return strings.TrimSpace(out.String())
}

func TestRead(t *testing.T) {
	const contents = `"contents":[{"parts":[{"text":"Hi"}]}]`
	const hi = `{"role":"user","content_items":[{"type":"text.done","text":"Hi"}]} @contents[0].parts[0]` + "\n"
	for _, c := range []struct {
		name string
		peer carry.Peer
		body string
		want string
	}{
		{
			"texts stay apart, roles join, empty ones are left out", openai, `{"contents":[
			{"role":"user","parts":[{"text":"a"},{"text":""},{}]},{"parts":[{"text":"b"}]},{"role":"model","parts":[]},{"role":"function","parts":[{"text":"c"}]}]}`,
			`{"role":"user","content_items":[{"type":"text.done","text":"a"},{"type":"text.done","text":"b"},{"type":"text.done","text":"c"}]} @contents[0].parts[0] contents[1].parts[0] contents[3].parts[0]`,
		},
		{
			"one in the place of a list", openai, `{"contents":{"parts":{"text":"Hi"}},"system_instruction":{"parts":{"text":"Be kind."}},"tools":{"function_declarations":{"name":"f"}}}`,
			`{"role":"user","content_items":[{"type":"text.done","text":"Hi"}]} @contents.parts
{"system_prompt":"Be kind.","tools":[{"name":"f"}]}
tools: tools.function_declarations`,
		},
		{"system", openai, `{` + contents + `,"systemInstruction":{"role":"user","parts":[{"text":"a"},{"text":"b"}]}}`, hi + `{"system_prompt":"a\n\nb"}`},
		{"system text", openai, `{` + contents + `,"systemInstruction":"a"}`, hi + `{"system_prompt":"a"}`},
		{
			"pictures and documents", openai, `{"contents":[{"parts":[
			{"inlineData":{"mimeType":"image/png","data":"iVBORw=="}},
			{"inline_data":{"mime_type":"application/pdf","data":"-_8","display_name":"a.pdf"}},
			{"fileData":{"mimeType":"image/png","fileUri":"https://example.com/a"}},
			{"fileData":{"fileUri":"https://example.com/a.JPG"},"videoMetadata":{"fps":2}},
			{"fileData":{"fileUri":"https://files.test/a.pdf"}},{"file_data":{"mime_type":"text/markdown","file_uri":"https://files.test/a.txt","display_name":"b.md"}}]}]}`,
			`{"role":"user","content_items":[{"type":"image_url.done","image_url":"data:image/png;base64,iVBORw=="},{"type":"inline_data.done","data":"+/8=","mime_type":"application/pdf","filename":"a.pdf"},{"type":"image_url.done","image_url":"https://example.com/a"},{"type":"image_url.done","image_url":"https://example.com/a.JPG"},{"type":"inline_data.done","data":"JVBERi0=","mime_type":"application/pdf","filename":"a.pdf"},{"type":"inline_data.done","data":"aGk=","mime_type":"text/markdown","filename":"b.md"}]} @contents[0].parts[0].inlineData contents[0].parts[1].inlineData contents[0].parts[2].fileData.fileUri contents[0].parts[3].fileData.fileUri contents[0].parts[4].fileData.fileUri contents[0].parts[5].fileData.fileUri
dropped: contents[0].parts[3].videoMetadata`,
		},
		{
			"what a stream of the model left in a chat is one item", google, `{"contents":[{"parts":[{"text":"q"}]},
			{"role":"model","parts":[{"text":"Hm","thought":true}]},{"role":"model","parts":[{"text":"m.","thought":true}]},
			{"role":"model","parts":[{"text":"Hel"}]},{"role":"model","parts":[{"text":"lo"}]},{"role":"model","parts":[{"text":"","thoughtSignature":"c2ln"}]},
			{"role":"model","parts":[{"text":"A"},{"text":""},{"text":"B"}]},{"role":"model","parts":[{"text":""}]},
			{"parts":[{"text":"r"}]}]}`,
			`{"role":"user","content_items":[{"type":"text.done","text":"q"}]} @contents[0].parts[0]
{"role":"assistant","content_items":[{"type":"thinking.done","thinking":"Hmm."},{"type":"text.done","text":"Hello","fidelity":{"signature":"c2ln"}},{"type":"text.done","text":"A"},{"type":"text.done","text":"B"}]} @contents[1].parts[0] contents[3].parts[0] contents[6].parts[0] contents[6].parts[2]
{"role":"user","content_items":[{"type":"text.done","text":"r"}]} @contents[8].parts[0]`,
		},
		{
			"signatures of the provider", google, `{"contents":[{"parts":[{"text":"q"}]},{"role":"model","parts":[
			{"text":"T","thought":true,"thoughtSignature":"dA=="},
			{"functionCall":{"name":"f","args":{"n":1.50}},"thought_signature":"Zi0_"},
			{"inlineData":{"mimeType":"image/png","data":"iVBORw=="},"thoughtSignature":"aQ=="},
			{"thoughtSignature":"ZQ=="}]}]}`,
			`{"role":"user","content_items":[{"type":"text.done","text":"q"}]} @contents[0].parts[0]
{"role":"assistant","content_items":[{"type":"thinking.done","thinking":"T","fidelity":{"signature":"dA=="}},{"type":"tool_call.done","name":"f","arguments":{"n":1.50},"tool_call_id":"call_1_1","fidelity":{"signature":"Zi0_"}},{"type":"inline_data.done","data":"iVBORw==","mime_type":"image/png","fidelity":{"signature":"aQ=="}},{"type":"text.done","text":"","fidelity":{"signature":"ZQ=="}}]} @contents[1].parts[0] contents[1].parts[1] contents[1].parts[2].inlineData contents[1].parts[3]`,
		},
		{
			"signatures of another provider", anthropic, `{"contents":[{"parts":[{"text":"q"}]},{"role":"model","parts":[
			{"text":"T","thought":true,"thoughtSignature":"dA=="},{"text":"","thought":true,"thoughtSignature":"dA=="},
			{"text":"a","thoughtSignature":"bW1zcDEuAAAA"},{"text":"","thoughtSignature":"dA=="},{"functionCall":{"name":"f"},"thoughtSignature":"%"}]}]}`,
			`{"role":"user","content_items":[{"type":"text.done","text":"q"}]} @contents[0].parts[0]
{"role":"assistant","content_items":[{"type":"thinking.done","thinking":"T"},{"type":"thinking.done","thinking":""},{"type":"text.done","text":"a"},{"type":"tool_call.done","name":"f","arguments":{},"tool_call_id":"call_1_4"}]} @contents[1].parts[0] contents[1].parts[1] contents[1].parts[2] contents[1].parts[4]`,
		},
		{
			"envelopes", anthropic, `{"contents":[{"parts":[{"text":"q"}]},{"role":"model","parts":[
			{"text":"T","thought":true,"thoughtSignature":"` + envelope(carry.Envelope{Issuer: anthropic, Kind: "thinking", Fidelity: mmsp.Fidelity(`{"signature":"s"}`)}) + `"},
			{"text":"R","thought":true},
			{"text":"","thought":true,"thoughtSignature":"` + envelope(carry.Envelope{Issuer: anthropic, Kind: redactedKind, Fidelity: mmsp.Fidelity(`{"signature":"r"}`)}) + `"},
			{"text":"a","thoughtSignature":"` + envelope(carry.Envelope{Issuer: anthropic, Kind: "thinking", Fidelity: mmsp.Fidelity(`{"signature":"of a thought"}`)}) + `"},
			{"text":"b","thoughtSignature":"` + envelope(carry.Envelope{Issuer: anthropic, Kind: "text", Fidelity: mmsp.Fidelity(`{"signature":"of another"}`), Owner: &carry.Owner{}}) + `"}]}]}`,
			`{"role":"user","content_items":[{"type":"text.done","text":"q"}]} @contents[0].parts[0]
{"role":"assistant","content_items":[{"type":"thinking.done","thinking":"T","fidelity":{"signature":"s"}},{"type":"thinking.done","thinking":"R"},{"type":"thinking.done","thinking":"_REDACTED_THINKING","fidelity":{"signature":"r"}},{"type":"text.done","text":"a"},{"type":"text.done","text":"b"}]} @contents[1].parts[0] contents[1].parts[1] contents[1].parts[2] contents[1].parts[3] contents[1].parts[4]`,
		},
		{
			"answers by id, by order and by name", openai, `{"contents":[{"parts":[{"text":"q"}]},
			{"role":"model","parts":[{"functionCall":{"id":"x","name":"f"}},{"functionCall":{"name":"g","args":{}}},{"functionCall":{"name":"g","args":{"a": 1}}},{"functionCall":{"id":"y","name":"g"}}]},
			{"role":"function","parts":[
				{"functionResponse":{"name":"g","response":{"result":"one"}}},
				{"functionResponse":{"id":"x","name":"f","response":{"output":"two"}}},
				{"functionResponse":{"id":"made up","name":"g","response":{"error":"three"}}},
				{"functionResponse":{"name":"g","response":{"error":{"code": 4}}}}]}]}`,
			`{"role":"user","content_items":[{"type":"text.done","text":"q"}]} @contents[0].parts[0]
{"role":"assistant","content_items":[{"type":"tool_call.done","name":"f","arguments":{},"tool_call_id":"x"},{"type":"tool_call.done","name":"g","arguments":{},"tool_call_id":"call_1_1"},{"type":"tool_call.done","name":"g","arguments":{"a":1},"tool_call_id":"call_1_2"},{"type":"tool_call.done","name":"g","arguments":{},"tool_call_id":"y"}]} @contents[1].parts[0] contents[1].parts[1] contents[1].parts[2] contents[1].parts[3]
{"role":"user","content_items":[{"type":"tool_result.done","text":"one","tool_call_id":"call_1_1"},{"type":"tool_result.done","text":"two","tool_call_id":"x"},{"type":"tool_result.done","text":"three","tool_call_id":"call_1_2","is_error":true},{"type":"tool_result.done","text":"{\"code\":4}","tool_call_id":"y","is_error":true}]} @contents[2].parts[0] contents[2].parts[1] contents[2].parts[2] contents[2].parts[3]`,
		},
		{
			"what functions return", openai, `{"contents":[{"parts":[{"text":"q"}]},
			{"role":"model","parts":[{"functionCall":{"name":"f"}},{"functionCall":{"name":"f"}},{"functionCall":{"name":"f"}},{"functionCall":{"name":"f"}}]},
			{"parts":[
				{"functionResponse":{"name":"f","response":{"result": [1, 2e400]}}},
				{"functionResponse":{"name":"f","response":{"result":"a","more":1}}},
				{"functionResponse":{"name":"f","parts":[{"inlineData":{"mimeType":"image/png","data":"iVBORw=="}},{"fileData":{"mimeType":"image/png","fileUri":"https://example.com/a"}},{"fileData":{"fileUri":"https://files.test/a.pdf"}}]}},
				{"functionResponse":{"name":"f","response":{}}}]}]}`,
			`{"role":"user","content_items":[{"type":"text.done","text":"q"}]} @contents[0].parts[0]
{"role":"assistant","content_items":[{"type":"tool_call.done","name":"f","arguments":{},"tool_call_id":"call_1_0"},{"type":"tool_call.done","name":"f","arguments":{},"tool_call_id":"call_1_1"},{"type":"tool_call.done","name":"f","arguments":{},"tool_call_id":"call_1_2"},{"type":"tool_call.done","name":"f","arguments":{},"tool_call_id":"call_1_3"}]} @contents[1].parts[0] contents[1].parts[1] contents[1].parts[2] contents[1].parts[3]
{"role":"user","content_items":[{"type":"tool_result.done","text":"{\"result\":[1,2e400]}","tool_call_id":"call_1_0"},{"type":"tool_result.done","text":"{\"result\":\"a\",\"more\":1}","tool_call_id":"call_1_1"},{"type":"tool_result.done","text":"","images":["data:image/png;base64,iVBORw==","https://example.com/a","data:application/pdf;base64,JVBERi0="],"tool_call_id":"call_1_2"},{"type":"tool_result.done","text":"{}","tool_call_id":"call_1_3"}]} @contents[2].parts[0] contents[2].parts[1] contents[2].parts[2] contents[2].parts[3]`,
		},
		{
			"answers to calls of one id", openai, `{"contents":[{"parts":[{"text":"q"}]},{"role":"model","parts":[{"functionCall":{"id":"x","name":"f"}},{"functionCall":{"id":"x","name":"f"}}]},{"parts":[
			{"functionResponse":{"name":"f","response":{"result":"a"}}},{"functionResponse":{"name":"f","response":{"result":"b"}}}]}]}`,
			`{"role":"user","content_items":[{"type":"text.done","text":"q"}]} @contents[0].parts[0]
{"role":"assistant","content_items":[{"type":"tool_call.done","name":"f","arguments":{},"tool_call_id":"x"},{"type":"tool_call.done","name":"f","arguments":{},"tool_call_id":"x"}]} @contents[1].parts[0] contents[1].parts[1]
{"role":"user","content_items":[{"type":"tool_result.done","text":"a","tool_call_id":"x"},{"type":"tool_result.done","text":"b","tool_call_id":"x"}]} @contents[2].parts[0] contents[2].parts[1]`,
		},
		{
			"a synthesized id is taken", openai, `{"contents":[{"parts":[{"text":"q"}]},{"role":"model","parts":[{"functionCall":{"id":"call_1_1","name":"f"}},{"functionCall":{"name":"f"}}]},{"parts":[
			{"functionResponse":{"name":"f","response":{"result":"a"}}},{"functionResponse":{"name":"f","response":{"result":"b"}}}]}]}`,
			`{"role":"user","content_items":[{"type":"text.done","text":"q"}]} @contents[0].parts[0]
{"role":"assistant","content_items":[{"type":"tool_call.done","name":"f","arguments":{},"tool_call_id":"call_1_1"},{"type":"tool_call.done","name":"f","arguments":{},"tool_call_id":"call_1_1_"}]} @contents[1].parts[0] contents[1].parts[1]
{"role":"user","content_items":[{"type":"tool_result.done","text":"a","tool_call_id":"call_1_1"},{"type":"tool_result.done","text":"b","tool_call_id":"call_1_1_"}]} @contents[2].parts[0] contents[2].parts[1]`,
		},
		{
			"what Google runs itself", openai, `{"contents":[{"parts":[{"text":"Hi"}]},{"role":"model","parts":[{"executableCode":{"code":"1"}},{"codeExecutionResult":{}},{"toolCall":{}},{"text":"a"}]}],
			"tools":[{"googleSearch":{}},{"functionDeclarations":[{"name":"f"}],"url_context":{}},{"codeExecution":null}]}`,
			hi + `{"role":"assistant","content_items":[{"type":"text.done","text":"a"}]} @contents[1].parts[3]
{"tools":[{"name":"f"}]}
tools: tools[1].functionDeclarations[0]
dropped: tools[0] (googleSearch) | tools[1] (urlContext) | contents[1].parts[0] (executableCode) | contents[1].parts[1] (codeExecutionResult) | contents[1].parts[2] (toolCall)`,
		},
		{
			"schemas", openai, `{` + contents + `,"tools":[{"functionDeclarations":[
			{"name":"f","description":"d","parameters":{"type":"OBJECT","properties":{"a":{"type":"STRING","nullable":true,"enum":["x"]},"b":{"type":"ARRAY","min_items":"1","items":{"type":"NUMBER"}}},"propertyOrdering":["b","a"]},"response":{}},
			{"name":"g","parameters_json_schema":{"type":"object","additionalProperties":false}}]}]}`,
			hi + `{"tools":[{"name":"f","description":"d","parameters":{"type":"object","properties":{"b":{"type":"array","minItems":1,"items":{"type":"number"}},"a":{"type":["string","null"],"enum":["x",null]}}}},{"name":"g","parameters":{"type":"object","additionalProperties":false}}]}
tools: tools[0].functionDeclarations[0] | tools[0].functionDeclarations[1]`,
		},
		{
			"auto", openai, `{` + contents + `,"tools":[{"functionDeclarations":[{"name":"f"}]}],"toolConfig":{"functionCallingConfig":{"mode":"auto"}}}`,
			hi + `{"tools":[{"name":"f"}],"tool_choice":"auto"}` + "\ntools: tools[0].functionDeclarations[0]",
		},
		{
			"none", openai, `{` + contents + `,"tools":[{"functionDeclarations":[{"name":"f"}]}],"tool_config":{"function_calling_config":{"mode":"NONE"}}}`,
			hi + `{"tools":[{"name":"f"}],"tool_choice":"none"}` + "\ntools: tools[0].functionDeclarations[0]",
		},
		{
			"any", openai, `{` + contents + `,"tools":[{"functionDeclarations":[{"name":"f"}]}],"toolConfig":{"functionCallingConfig":{"mode":"ANY"}}}`,
			hi + `{"tools":[{"name":"f"}],"tool_choice":"required"}` + "\ntools: tools[0].functionDeclarations[0]",
		},
		{
			"any of some", openai, `{` + contents + `,"tools":[{"functionDeclarations":[{"name":"f"},{"name":"g"}]}],"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["g"]}}}`,
			hi + `{"tools":[{"name":"f"},{"name":"g"}],"tool_choice":["g"]}` + "\ntools: tools[0].functionDeclarations[0] | tools[0].functionDeclarations[1]\nallowed: g",
		},
		{
			"validated", openai, `{` + contents + `,"tools":[{"functionDeclarations":[{"name":"f"},{"name":"g"}]}],"toolConfig":{"functionCallingConfig":{"mode":"VALIDATED","allowedFunctionNames":["g"]}}}`,
			hi + `{"tools":[{"name":"g"}],"tool_choice":"auto"}` + "\ntools: tools[0].functionDeclarations[1]\ndropped: toolConfig.functionCallingConfig.mode (VALIDATED)\nallowed: g",
		},
		{
			"words by their numbers", openai, `{` + contents + `,"tools":[{"functionDeclarations":[{"name":"f","parameters":{"type":6,"properties":{"a":{"type":1}}}}]}],"toolConfig":{"functionCallingConfig":{"mode":2}},"generationConfig":{"mediaResolution":2,"responseModalities":[1]}}`,
			hi + `{"tools":[{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"string"}}}}],"tool_choice":"required"}` + "\ntools: tools[0].functionDeclarations[0]\ndropped: generationConfig.mediaResolution",
		},
		{"auto of nothing", openai, `{` + contents + `,"toolConfig":{"functionCallingConfig":{"mode":"AUTO"},"retrievalConfig":{}}}`, hi},
		{
			"the whole config", openai, `{` + contents + `,"serviceTier":"standard","labels":{},"store":false,"safetySettings":[],"new":1,"generationConfig":{
			"temperature":0.5,"topP":0.9,"topK":40.0,"candidateCount":1,"maxOutputTokens":100,"stopSequences":["x"],"seed":-7,"presencePenalty":0.1,"frequencyPenalty":-0.1,
			"responseLogprobs":true,"logprobs":3,"responseMimeType":"application/json","responseModalities":["text","IMAGE"],"mediaResolution":"MEDIA_RESOLUTION_LOW",
			"imageConfig":{"aspectRatio":"1:1","image_size":"2K"},"thinkingConfig":{"includeThoughts":true,"thinkingBudget":-1,"thinkingLevel":"minimal"}}}`,
			hi + `{"max_tokens":100,"temperature":0.5,"top_p":0.9,"top_k":40,"stop_sequences":["x"],"seed":-7,"presence_penalty":0.1,"frequency_penalty":-0.1,"response_format":{"type":"json_object"},"thinking_level":"low","thinking_budget":-1,"thinking_summary":true,"service_tier":"default"}
dropped: generationConfig.responseLogprobs | generationConfig.logprobs | generationConfig.mediaResolution | generationConfig.thinkingConfig.thinkingLevel (MINIMAL) | generationConfig.responseModalities[1] (IMAGE) | generationConfig.imageConfig`,
		},
		{
			"what nobody but Google has", openai, `{` + contents + `,"model":"models/m","safety_settings":[{"category":"HARM_CATEGORY_HARASSMENT","threshold":"BLOCK_NONE"}],"labels":{"a":"b"},"store":true,"continuationToken":"t",
			"tools":[{"functionDeclarations":[{"name":"f","response":{"type":"STRING"},"behavior":"BLOCKING"}]}],"generationConfig":{"routingConfig":{"autoMode":{}},"audioTimestamp":true,"enableEnhancedCivicAnswers":false,"translationConfig":{"targetLanguageCode":"de"}}}`,
			hi + `{"tools":[{"name":"f"}]}
tools: tools[0].functionDeclarations[0]
dropped: safety_settings | labels | store | continuationToken | tools[0].functionDeclarations[0].response | generationConfig.audioTimestamp | generationConfig.translationConfig`,
		},
		{"nothing said", openai, `{` + contents + `,"generationConfig":{"temperature":null,"candidateCount":null,"responseMimeType":"text/plain","responseLogprobs":false,"thinkingConfig":{"thinkingLevel":"THINKING_LEVEL_UNSPECIFIED"},"imageConfig":{}},"tools":null,"toolConfig":null,"systemInstruction":null,"cachedContent":null,"serviceTier":null}`, hi},
		{
			"a format", openai, `{` + contents + `,"generation_config":{"response_mime_type":"application/json","response_schema":{"type":"OBJECT","nullable":false,"properties":{}}}}`,
			hi + `{"response_format":{"type":"json_schema","schema":{"type":"object","properties":{}}}}`,
		},
		{
			"a format in JSON Schema", openai, `{` + contents + `,"generationConfig":{"responseJsonSchema":{"type":"OBJECT"}}}`,
			hi + `{"response_format":{"type":"json_schema","schema":{"type":"OBJECT"}}}`,
		},
		{
			"no thinking", openai, `{` + contents + `,"generationConfig":{"thinkingConfig":{"thinkingBudget":0,"includeThoughts":false}}}`,
			hi + `{"thinking_budget":0,"thinking_summary":false}`,
		},
		{
			"pictures", google, `{` + contents + `,"generationConfig":{"responseModalities":["TEXT","IMAGE"]}}`,
			hi + `{"image_config":{}}`,
		},
		{
			"pictures of a form", google, `{` + contents + `,"generation_config":{"image_config":{"aspect_ratio":"1:1","image_size":"2K","person_generation":"ALLOW_ALL"}}}`,
			hi + `{"image_config":{"aspect_ratio":"1:1","image_size":"2K"}}` + "\ndropped: generation_config.image_config.person_generation",
		},
		{
			"speech without a voice", google, `{` + contents + `,"generationConfig":{"responseModalities":["AUDIO"]}}`, hi,
		},
		{
			"speech that nobody speaks", openai, `{` + contents + `,"generation_config":{"response_modalities":["AUDIO"],"speechConfig":{"voiceConfig":{"prebuiltVoiceConfig":{"voiceName":"Kore"}}}}}`,
			hi + "dropped: generation_config.response_modalities[0] (AUDIO) | generation_config.speechConfig",
		},
		{
			"a voice", google, `{` + contents + `,"generationConfig":{"responseModalities":["AUDIO"],"speechConfig":{"languageCode":"de-DE","voiceConfig":{"prebuiltVoiceConfig":{"voiceName":"Kore"}}}}}`,
			hi + `{"tts_config":[{"voice":"Kore"}]}` + "\ndropped: generationConfig.speechConfig.languageCode",
		},
		{
			"voices", google, `{` + contents + `,"generationConfig":{"speechConfig":{"multiSpeakerVoiceConfig":{"speakerVoiceConfigs":[{"speaker":"A","voiceConfig":{"prebuiltVoiceConfig":{"voiceName":"Kore"}}},{"speaker":"B","voiceConfig":{"prebuiltVoiceConfig":{"voiceName":"Puck"}}}]}}}}`,
			hi + `{"tts_config":[{"voice":"Kore","speaker":"A"},{"voice":"Puck","speaker":"B"}]}`,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			request, err := read(c.peer, "/v1beta/models/m:generateContent", c.body)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := show(t, request), strings.TrimSpace(c.want); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			if err := mmsp.Validate(request.Messages); err != nil {
				t.Error(err)
			}
		})
	}
}

// Calls of one name are answered in their order, however many there are and however the caller names them.
func TestManyAnswers(t *testing.T) {
	const n = 1 << 12
	for _, c := range []struct{ name, call, answer string }{
		{"no ids", `{"functionCall":{"name":"f"}}`, `{"functionResponse":{"name":"f"}}`},
		{"ids of the caller's own", `{"functionCall":{"name":"f"}}`, `{"functionResponse":{"id":"made up","name":"f"}}`},
	} {
		request, err := read(openai, "/v1beta/models/m:generateContent", `{"contents":[{"role":"model","parts":[{"functionCall":{"id":"x","name":"f"}}`+strings.Repeat(","+c.call, n)+
			`]},{"parts":[{"functionResponse":{"id":"x","name":"f"}}`+strings.Repeat(","+c.answer, n)+`]}]}`)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		calls, answers := request.Messages[0].ContentItems, request.Messages[1].ContentItems
		for i := range calls {
			if calls[i].ToolCallID != answers[i].ToolCallID {
				t.Errorf("%s: answer %d is of %s, not %s", c.name, i, answers[i].ToolCallID, calls[i].ToolCallID)
				break
			}
		}
	}
}

func TestReadRefuses(t *testing.T) {
	const contents = `"contents":[{"parts":[{"text":"Hi"}]}]`
	for _, c := range []struct{ verb, body, param, words string }{
		{"generateContent", `[]`, "", "an object"},
		{"generateContent", `{}`, "contents", "at least one"},
		{"generateContent", `{"contents":"Hi"}`, "contents", "a list"},
		{"generateContent", `{"contents":[{"parts":[{"text":""}]}]}`, "contents[0]", "nothing"},
		{"generateContent", `{"contents":[{"role":"system","parts":[]}]}`, "contents[0].role", "user, model, function"},
		{"generateContent", `{"contents":[{"parts":[{"text":1}]}]}`, "contents[0].parts[0].text", "a string"},
		{"generateContent", `{"contents":[{"parts":["Hi"]}]}`, "contents[0].parts[0]", "an object"},
		{"generateContent", `{"contents":[{"parts":[{"hologram":{},"thoughtSignature":"dA=="}]}]}`, "contents[0].parts[0]", "hologram"},
		{"generateContent", `{"contents":[{"parts":[{"text":"a","inlineData":{"mimeType":"image/png","data":"iVBORw=="}}]}]}`, "contents[0].parts[0]", "text and inlineData"},
		{"generateContent", `{"contents":[{"parts":[{"inlineData":{},"inline_data":{}}]}]}`, "contents[0].parts[0].inlineData.mimeType", "MIME"},
		{"generateContent", `{"contents":[{"parts":[{"text":"a","thoughtSignature":"a","thought_signature":"a"}]}]}`, "contents[0].parts[0].thought_signature", "two spellings"},
		{"generateContent", `{"contents":[{"parts":[{"inlineData":{"mimeType":"image/","data":"iVBORw=="}}]}]}`, "contents[0].parts[0].inlineData.mimeType", "MIME"},
		{"generateContent", `{"contents":[{"parts":[{"fileData":{"mimeType":"image/png,x","fileUri":"https://files.test/a.png"}}]}]}`, "contents[0].parts[0].fileData.mimeType", "MIME"},
		{"generateContent", `{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f"}}]},{"parts":[{"functionResponse":{"name":"f","parts":[{"inlineData":{"mimeType":"image/png;a=b,c","data":"iVBORw=="}}]}}]}]}`, "contents[1].parts[0].functionResponse.parts[0].inlineData.mimeType", "MIME"},
		{"generateContent", `{"contents":[{"parts":[{"inlineData":{"data":"iVBORw=="}}]}]}`, "contents[0].parts[0].inlineData.mimeType", "MIME"},
		{"generateContent", `{"contents":[{"parts":[{"inlineData":{"mimeType":"image/png","data":"*"}}]}]}`, "contents[0].parts[0].inlineData.data", "base64"},
		{"generateContent", `{"contents":[{"parts":[{"inlineData":{"mimeType":"image/png"}}]}]}`, "contents[0].parts[0].inlineData.data", "bytes"},
		{"generateContent", `{"contents":[{"parts":[{"fileData":{"mimeType":"image/png"}}]}]}`, "contents[0].parts[0].fileData.fileUri", "address"},
		{"generateContent", `{"contents":[{"parts":[{"fileData":{"mimeType":"image/png","fileUri":"gs://a/b"}}]}]}`, "contents[0].parts[0].fileData.fileUri", "fileData"},
		{"generateContent", `{"contents":[{"parts":[{"fileData":{"mimeType":"image/png","fileUri":"https://generativelanguage.googleapis.com/v1beta/files/x"}}]}]}`, "contents[0].parts[0].fileData.fileUri", "files of a provider"},
		{"generateContent", `{"contents":[{"parts":[{"fileData":{"fileUri":"https://www.youtube.com/watch?v=x"}}]}]}`, "contents[0].parts[0].fileData.fileUri", "YouTube"},
		{"generateContent", `{"contents":[{"parts":[{"fileData":{"mimeType":"video/mp4","fileUri":"https://YouTu.be/x"}}]}]}`, "contents[0].parts[0].fileData.fileUri", "YouTube"},
		{"generateContent", `{"contents":[{"parts":[{"fileData":{"mimeType":"video/mp4","fileUri":"https://youtube.com/x"}}]}]}`, "contents[0].parts[0].fileData.fileUri", "YouTube"},
		{"generateContent", `{"contents":[{"parts":[{"fileData":{"mimeType":"application/pdf","fileUri":"gs://a/b.pdf"}}]}]}`, "contents[0].parts[0].fileData.fileUri", "http or https"},
		{"generateContent", `{"contents":[{"parts":[{"fileData":{"mimeType":"application/pdf","fileUri":"files/x"}}]}]}`, "contents[0].parts[0].fileData.fileUri", "http or https"},
		{"generateContent", `{"contents":[{"parts":[{"fileData":{"mimeType":"application/pdf","fileUri":"https://example.com/a.png"}}]}]}`, "contents[0].parts[0].fileData.fileUri", "nothing is there"},
		{"generateContent", `{"contents":[{"parts":[{"functionCall":{"name":"f"}}]}]}`, "contents[0].parts[0].functionCall", "turn of the model"},
		{"generateContent", `{"contents":[{"role":"model","parts":[{"functionCall":{"args":{}}}]}]}`, "contents[0].parts[0].functionCall.name", "name"},
		{"generateContent", `{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f","args":"{}"}}]}]}`, "contents[0].parts[0].functionCall.args", "an object"},
		{"generateContent", `{"contents":[{"parts":[{"functionResponse":{"name":"f","response":"a"}}]}]}`, "contents[0].parts[0].functionResponse.response", "an object"},
		{"generateContent", `{"contents":[{"parts":[{"functionResponse":{"name":"f","response":{}}}]}]}`, "contents[0].parts[0].functionResponse", `no call of "f"`},
		{"generateContent", `{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f"}}]},{"parts":[{"functionResponse":{"id":"x","name":"g","response":{}}}]}]}`, "contents[1].parts[0].functionResponse", `no call of "g"`},
		{"generateContent", `{"contents":[{"role":"model","parts":[{"functionCall":{"id":"y","name":"f"}}]},{"parts":[{"functionResponse":{"id":"x","name":"f","response":{}}}]}]}`, "contents[1].parts[0].functionResponse", `no call of "f"`},
		{"generateContent", `{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f"}}]},{"parts":[{"functionResponse":{"name":"f"}},{"functionResponse":{"name":"f"}}]}]}`, "contents[1].parts[1].functionResponse", `no call of "f"`},
		{"generateContent", `{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f"}}]},{"parts":[{"text":"a"}]},{"role":"model","parts":[{"text":"b"}]},{"parts":[{"functionResponse":{"name":"f"}}]}]}`, "contents[3].parts[0].functionResponse", `no call of "f"`},
		{"generateContent", `{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f"}}]},{"parts":[{"functionResponse":{"name":"f","parts":[{"text":"a"}]}}]}]}`, "contents[1].parts[0].functionResponse.parts[0]", "not text"},
		{"generateContent", `{` + contents + `,"systemInstruction":{"parts":[{"inlineData":{"mimeType":"image/png","data":"iVBORw=="}}]}}`, "systemInstruction.parts[0]", "not inlineData"},
		{"generateContent", `{` + contents + `,"cachedContent":"cachedContents/x"}`, "cachedContent", "not known here"},
		{"generateContent", `{` + contents + `,"serviceTier":"best"}`, "serviceTier", "flex"},
		{"generateContent", `{` + contents + `,"tools":[{"functionDeclarations":[{}]}]}`, "tools[0].functionDeclarations[0].name", "name"},
		{"generateContent", `{` + contents + `,"tools":[{"functionDeclarations":[{"name":"f","parameters":{},"parametersJsonSchema":{}}]}]}`, "tools[0].functionDeclarations[0]", "exclude"},
		{"generateContent", `{` + contents + `,"tools":[{"functionDeclarations":[{"name":"f","parameters":[]}]}]}`, "tools[0].functionDeclarations[0].parameters", "an object"},
		{"generateContent", `{` + contents + `,"tools":[{"functionDeclarations":[{"name":"f","parameters":` + strings.Repeat(`{"items":`, 70) + `{}` + strings.Repeat(`}`, 70) + `}]}]}`, "tools[0].functionDeclarations[0].parameters", "deep"},
		{"generateContent", `{` + contents + `,"toolConfig":{"functionCallingConfig":{"mode":"SOMETIMES"}}}`, "toolConfig.functionCallingConfig.mode", "AUTO"},
		{"generateContent", `{` + contents + `,"toolConfig":{"functionCallingConfig":{"mode":"AUTO","allowedFunctionNames":["f"]}}}`, "toolConfig.functionCallingConfig.allowedFunctionNames", "ANY"},
		{"generateContent", `{` + contents + `,"tools":[{"functionDeclarations":[{"name":"f"}]}],"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["f","googleSearch"]}}}`, "toolConfig.functionCallingConfig.allowedFunctionNames[1]", `"googleSearch"`},
		{"generateContent", `{` + contents + `,"tools":[{"googleSearch":{}}],"toolConfig":{"functionCallingConfig":{"mode":"ANY"}}}`, "toolConfig.functionCallingConfig.mode", "no function"},
		{"generateContent", `{` + contents + `,"generationConfig":{"candidateCount":2}}`, "generationConfig.candidateCount", "one candidate"},
		{"generateContent", `{` + contents + `,"generationConfig":{"temperature":3}}`, "generationConfig.temperature", "0 to 2"},
		{"generateContent", `{` + contents + `,"generationConfig":{"maxOutputTokens":"many"}}`, "generationConfig.maxOutputTokens", "an integer"},
		{"generateContent", `{` + contents + `,"generation_config":{"max_output_tokens":0}}`, "generation_config.max_output_tokens", "from 1"},
		{"generateContent", `{` + contents + `,"generationConfig":{"responseMimeType":"text/x.enum"}}`, "generationConfig.responseMimeType", "application/json"},
		{"generateContent", `{` + contents + `,"generationConfig":{"responseMimeType":"text/plain","responseSchema":{}}}`, "generationConfig.responseMimeType", "application/json"},
		{"generateContent", `{` + contents + `,"generationConfig":{"responseJsonSchema":{},"responseSchema":{}}}`, "generationConfig.responseSchema", "exclude"},
		{"generateContent", `{` + contents + `,"generationConfig":{"responseModalities":["VIDEO"]}}`, "generationConfig.responseModalities[0]", "AUDIO"},
		{"generateContent", `{` + contents + `,"generationConfig":{"thinkingConfig":{"thinkingLevel":"EXTREME"}}}`, "generationConfig.thinkingConfig.thinkingLevel", "MINIMAL"},
		{"generateContent", `{` + contents + `,"generationConfig":{"thinkingConfig":{"thinkingBudget":-2}}}`, "generationConfig.thinkingConfig.thinkingBudget", "from -1"},
		{"generateContent", `{` + contents + `,"generationConfig":{"speechConfig":{"voiceConfig":{"replicatedVoiceConfig":{}}}}}`, "generationConfig.speechConfig.voiceConfig.prebuiltVoiceConfig.voiceName", "voice"},
		{"streamGenerateContent?alt=proto", `{` + contents + `}`, "alt", "sse"},
		{"generateContent", `{` + contents + `,"safetySettings":"OFF"}`, "safetySettings", "a list or an object"},
		{"generateContent", `{` + contents + `,"labels":[]}`, "labels", "an object"},
		{"generateContent", `{` + contents + `,"store":"yes"}`, "store", "true or false"},
		{"generateContent", `{` + contents + `,"generationConfig":{"logprobs":21}}`, "generationConfig.logprobs", "from 0 to 20"},
		{"generateContent", `{` + contents + `,"tools":[{"functionDeclarations":[{"name":"f"}]}],"toolConfig":{"functionCallingConfig":{"mode":"VALIDATED","allowedFunctionNames":["f"` + strings.Repeat(`,"f"`, 128) + `]}}}`, "toolConfig.functionCallingConfig.allowedFunctionNames", "at most 128"},
		{"generateContent", `{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f"}},{"functionCall":{"id":"x","name":"f"}}]},{"parts":[{"functionResponse":{"name":"f"}},{"functionResponse":{"name":"f"}},{"functionResponse":{"name":"f"}}]}]}`, "contents[1].parts[2].functionResponse", "awaits"},
		{"generateContent", `{"contents":[{"role":"model","parts":[{"functionCall":{"id":"x","name":"f"}}]},{"parts":[{"functionResponse":{"id":"y","name":"f"}}]}]}`, "contents[1].parts[0].functionResponse", "awaits"},
		{"generateContent", `{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f"}}]},{"parts":[{"text":"no"}]},{"role":"model","parts":[{"text":"so"}]},{"parts":[{"functionResponse":{"name":"f"}}]}]}`, "contents[3].parts[0].functionResponse", "awaits"},
		{"countTokens", `{}`, "contents", "at least one"},
		{"countTokens", `{"generateContentRequest":{}}`, "generateContentRequest.contents", "at least one"},
		{"countTokens", `{` + contents + `,"generateContentRequest":{` + contents + `}}`, "contents", "exclude"},
		{"embedContent", `{}`, "content", "parts"},
		{"embedContent", `{"content":{"parts":[{"text":""}]}}`, "content", "nothing"},
		{"embedContent", `{"content":{"parts":[{"functionResponse":{"name":"f"}}]}}`, "content.parts[0]", "no vector"},
		{"batchEmbedContents", `{"requests":[]}`, "requests", "at least one"},
		{"batchEmbedContents", `{"requests":[{"model":"models/other","content":{"parts":[{"text":"a"}]}}]}`, "requests[0].model", "another model"},
		{"batchEmbedContents", `{"requests":[{"content":{"parts":[{"text":"a"}]}},{"content":{"parts":[{"text":"a"}]},"outputDimensionality":3}]}`, "requests[1].outputDimensionality", "one length"},
	} {
		if err := jsonscan.Check([]byte(c.body)); err != nil {
			t.Fatal(c.body, err)
		}
		_, err := read(openai, "/v1beta/models/m:"+c.verb, c.body)
		var invalid *mmsp.InvalidRequestError
		if !errors.As(err, &invalid) || invalid.Param != c.param || !strings.Contains(invalid.Message, c.words) {
			t.Errorf("%s %s\n  got %v\n  want %s: …%s…", c.verb, c.body, err, c.param, c.words)
		}
	}
}

func TestRoute(t *testing.T) {
	for _, c := range []struct {
		target, model string // no model: refused
		streams       bool
		counts        bool
		contentType   string
	}{
		{"/v1beta/models/gemini-3.8-pro:generateContent", "gemini-3.8-pro", false, false, ""},
		{"/v1/models/m:streamGenerateContent?key=k", "m", true, false, "application/json; charset=utf-8"},
		{"/v1beta/models/m:streamGenerateContent?%24alt=json%3Benum-encoding%3Dint", "m", true, false, "application/json; charset=utf-8"},
		{"/v1beta/models/a%2Fb:c:streamGenerateContent?alt=sse", "a/b:c", true, false, "text/event-stream; charset=utf-8"},
		{"/v1beta/models/models/a/b%20c%3AgenerateContent", "models/a/b c", false, false, ""},
		{"/v1beta/models%2Fm:generateContent", "m", false, false, ""},
		{"/v1beta/tunedModels/m:generateContent", "tunedModels/m", false, false, ""},
		{"/v1/a/b:generateContent", "a/b", false, false, ""},
		{"/v1beta/models/m:countTokens", "m", false, true, ""},
		{"/v1beta/models/m:predict", "", false, false, ""},
		{"/v1beta/models/:generateContent", "", false, false, ""},
		{"/v1beta/models/m", "", false, false, ""},
		{"/v2/models/m:generateContent", "", false, false, ""},
	} {
		call, err := parse(c.target, `{"contents":[{"parts":[{"text":"Hi"}]}]}`)
		if c.model == "" {
			if p := ingress.Explain(err); p.Status != http.StatusNotFound {
				t.Errorf("%s: %v", c.target, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.target, err)
			continue
		}
		if call.Model() != c.model || call.Streams() != c.streams || call.Counts() != c.counts || c.streams && call.ContentType() != c.contentType {
			t.Errorf("%s: %q %v %v %q", c.target, call.Model(), call.Streams(), call.Counts(), call.ContentType())
		}
	}
}

func TestReadCount(t *testing.T) {
	for _, body := range []string{
		`{"contents":[{"parts":[{"text":"Hi"}]}],"systemInstruction":"S"}`,
		`{"generateContentRequest":{"model":"models/m","contents":[{"parts":[{"text":"Hi"}]}],"systemInstruction":"S"}}`,
	} {
		request, err := read(openai, "/v1beta/models/m:countTokens", body)
		if err != nil {
			t.Fatal(err)
		}
		if request.Messages[0].Text() != "Hi" || *request.Config.SystemPrompt != "S" {
			t.Error(show(t, request))
		}
	}
}

func TestReadEmbeddings(t *testing.T) {
	for _, c := range []struct{ verb, body, want string }{
		{
			"embedContent", `{"model":"models/m","content":{"role":"model","parts":[{"text":"a"},{"text":"b"}]},"outputDimensionality":3,"taskType":"RETRIEVAL_QUERY"}`,
			`{"role":"user","content_items":[{"type":"text.done","text":"a"},{"type":"text.done","text":"b"}]} @content.parts[0] content.parts[1]
{"embedding_config":{"dimensions":3}}
dropped: taskType`,
		},
		{
			"batchEmbedContents", `{"requests":[{"model":"models/m","content":{"parts":[{"text":"a"}]},"output_dimensionality":3},{"model":"m","content":{"parts":[{"text":"b"}]},"outputDimensionality":3,"title":"t"}]}`,
			`{"role":"user","content_items":[{"type":"text.done","text":"a"}]} @requests[0].content.parts[0]
{"role":"user","content_items":[{"type":"text.done","text":"b"}]} @requests[1].content.parts[0]
{"embedding_config":{"dimensions":3}}
dropped: requests[1].title`,
		},
	} {
		request, err := read(google, "/v1beta/models/m:"+c.verb, c.body)
		if err != nil {
			t.Fatal(err)
		}
		if got := show(t, request); got != c.want {
			t.Errorf("got\n%s\nwant\n%s", got, c.want)
		}
	}
}

// TestIDsStay: what stands before a growing history keeps its ids.
func TestIDsStay(t *testing.T) {
	turns := []string{
		`{"parts":[{"text":"q"}]}`, `{"role":"model","parts":[{"functionCall":{"name":"f"}}]}`, `{"parts":[{"functionResponse":{"name":"f"}}]}`,
		`{"role":"model","parts":[{"text":"a"},{"functionCall":{"name":"f"}}]}`, `{"parts":[{"functionResponse":{"name":"f"}}]}`,
	}
	var before []byte
	for n := 1; n <= len(turns); n++ {
		request, err := read(openai, "/v1beta/models/m:generateContent", `{"contents":[`+strings.Join(turns[:n], ",")+`]}`)
		if err != nil {
			t.Fatal(err)
		}
		now, _ := json.Marshal(request.Messages)
		if !bytes.HasPrefix(now, bytes.TrimSuffix(before, []byte("]"))) {
			t.Errorf("%s\nis not the beginning of\n%s", before, now)
		}
		before = now
	}
}

// TestRecordedRequests reads what callers sent to Google. What only Google itself could give is refused.
func TestRecordedRequests(t *testing.T) {
	folder := os.Getenv("MMSP_CORPUS")
	if folder == "" {
		t.Skip("MMSP_CORPUS is not set")
	}
	files, _ := filepath.Glob(filepath.Join(folder, "gemini-generate-content", "*", "request.json"))
	if len(files) == 0 {
		t.Fatal("no requests")
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := jsonscan.Check(data); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		request, err := read(google, "/v1beta/models/m:generateContent", string(data))
		if err == nil {
			err = mmsp.Validate(request.Messages)
		}
		if err != nil && !strings.Contains(err.Error(), "fileData") && !strings.Contains(err.Error(), "cachedContent") {
			t.Errorf("%s: %v", file, err)
		}
	}
}
