package googlegenai

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prism-shadow/mmsp-go"
)

// build makes a client for Google's own endpoint. Of an environment it sees what it is given.
func build(t testing.TB, model string, change ...func(*mmsp.Options)) *Client {
	t.Helper()
	o := mmsp.Options{Model: model, APIKey: mmsp.NewSecret("the-key"), Getenv: func(string) string { return "" }}
	o.HTTP.MaxRetries = new(0)
	for _, f := range change {
		f(&o)
	}
	client, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

const (
	hi   = `{"role":"user","parts":[{"text":"Hi"}]}`
	note = `{"name":"note","description":"d","parameters":{"type":"object","properties":{"text":{"type":"string"}}}}`
	// what becomes of it
	noteTool = `{"functionDeclarations":[{"name":"note","description":"d","parameters":{"type":"OBJECT","properties":{"text":{"type":"STRING"}}}}]}`
)

// thinking is the table of levels: the models of a group, and what becomes of none, low, medium, high, xhigh and max.
var thinking = []struct {
	group  string
	models []string
	levels string
}{
	{"image", []string{"gemini-3.1-flash-image", "gemini-3-pro-image"}, "MINIMAL MINIMAL HIGH HIGH HIGH HIGH"},
	{"gemini-3-pro", []string{"gemini-3-pro-preview"}, "LOW LOW HIGH HIGH HIGH HIGH"},
	{"pro", []string{"gemini-3.1-pro-preview", "gemini-4-pro"}, "LOW LOW MEDIUM HIGH HIGH HIGH"},
	{"3.7-and-3.8", []string{"gemini-3.7-flash", "gemini-3.8-flash"}, "LOW LOW MEDIUM HIGH HIGH HIGH"},
	{"rest", []string{"gemini-3.6-flash", "gemini-3.5-flash-lite", "gemini-9-flash", "anything", "GEMINI-3.8-FLASH"}, "MINIMAL LOW MEDIUM HIGH HIGH HIGH"},
}

var levels = []mmsp.ThinkingLevel{mmsp.ThinkingNone, mmsp.ThinkingLow, mmsp.ThinkingMedium, mmsp.ThinkingHigh, mmsp.ThinkingXHigh, mmsp.ThinkingMax}

// rows names everything that decides what a request says: the fields of a config and the items of a message. Each has a
// case below, and each case is of a row.
var rows = func() []string {
	all := strings.Fields(`
		config.top_p config.top_p.1 config.top_k config.stop_sequences config.stop_sequences.none config.seed
		config.presence_penalty config.presence_penalty.0 config.frequency_penalty.0 config.frequency_penalty config.parallel.true config.parallel.false config.format.text
		config.format.json_object config.format.json_schema config.budget config.budget.0 config.budget.dynamic
		config.budget.with_level config.verbosity config.service_tier config.service_tier.default config.service_tier.auto
		config.user config.metadata config.budget.2.5 config.budget.2.5.dynamic config.budget.2.5.with_level
		config.service_tier.unknown config.service_tier.vertex tts.format embedding.refused.top_p embedding.refused.top_k embedding.refused.stop_sequences embedding.refused.seed embedding.refused.presence_penalty embedding.refused.frequency_penalty embedding.refused.response_format embedding.refused.verbosity embedding.refused.service_tier
		embedding.refused.fast_mode embedding.refused.prompt_caching embedding.refused.parallel_tool_calls
		tts.stop_sequences tts.seed tts.presence_penalty tts.frequency_penalty tts.neutral
		item.tool_result.document
		config.none config.temperature config.temperature.1 config.fast_mode config.prompt_caching.disable config.prompt_caching.enhance
		config.prompt_caching.enable config.order.1 config.order.2 config.max_tokens config.system_prompt config.system_prompt.empty
		config.thinking_summary.true config.thinking_summary.false config.thinking.both
		config.tools config.tools.empty config.tools.schema config.tools.schema.bad config.tool_choice.auto config.tool_choice.none
		config.tool_choice.required config.tool_choice.one config.tool_choice.several config.tool_choice.without_tools
		config.image_config config.image_config.part config.ignored config.all
		tts.voice.default tts.voice.one tts.voice.two tts.voice.three tts.voice.nameless tts.max_tokens tts.temperature tts.fast_mode
		tts.prompt_caching tts.left_out tts.last_message tts.not_text tts.nothing tts.script tts.script.unlabelled tts.script.labels tts.upper
		embedding.text embedding.role embedding.several embedding.inline_data embedding.image_url embedding.other embedding.dimensions
		embedding.ignored embedding.nothing embedding.vertex embedding.upper embedding.signed
		item.text item.text.empty item.text.signed item.image_url.data item.image_url.bare item.image_url.remote item.image_url.bad item.image_url.unnamed
		item.image_url.refused item.inline_data item.inline_data.signed item.thinking item.thinking.signed.alone item.inline_thinking item.inline_thinking.signed
		item.tool_call item.tool_call.without_id item.tool_call.without_arguments item.tool_call.exact item.tool_result item.tool_result.unknown
		item.tool_result.without_id item.tool_result.error item.tool_result.images item.tool_result.image.bad item.other item.none
		turn.order turn.split turn.results turn.interchange turn.unsigned turn.second_call turn.nearest turn.next_part turn.kept
		turn.empty_thought turn.image_thought issuer.own issuer.absent issuer.other issuer.vertex issuer.gateway`)
	for _, row := range thinking {
		for i := range row.models {
			for _, level := range levels {
				all = append(all, fmt.Sprintf("thinking.%s.%d.%s", row.group, i, level))
			}
		}
	}
	return all
}()

// golden is a config and messages, and the body that they become, or what the error says.
type golden struct {
	id       string
	model    string // "": gemini-3.8-flash
	config   string
	messages string // "": one message, Hi
	want     string // a body, or bodies a line
	err      string // the beginning of the parameter at fault
}

func goldens(server string) []golden {
	user := func(items string) string { return `[{"role":"user","content_items":[` + items + `]}]` }
	model := func(items string) string { return `[{"role":"assistant","content_items":[` + items + `]}]` }
	contents := func(all string) string { return `{"contents":[` + all + `]}` }
	userParts := func(parts string) string { return contents(`{"role":"user","parts":[` + parts + `]}`) }
	modelParts := func(parts string) string { return contents(`{"role":"model","parts":[` + parts + `]}`) }
	generation := func(config string) string { return `{"contents":[` + hi + `],"generationConfig":` + config + `}` }
	speech := func(rest string) string {
		return generation(`{"responseModalities":["AUDIO"],"speechConfig":` + rest + `}`)
	}
	const (
		tts, tts38, embedding = "gemini-3.1-flash-tts", "gemini-3.8-flash-tts", "gemini-embedding-2"
		kore                  = `{"voiceConfig":{"prebuiltVoiceConfig":{"voiceName":"Kore"}}}`
		twoVoices             = `"tts_config":[{"voice":"Kore","speaker":"Ann"},{"voice":"Puck","speaker":"Bo"}]`
		twoSpeakers           = `{"multiSpeakerVoiceConfig":{"speakerVoiceConfigs":[{"speaker":"Ann","voiceConfig":{"prebuiltVoiceConfig":{"voiceName":"Kore"}}},` +
			`{"speaker":"Bo","voiceConfig":{"prebuiltVoiceConfig":{"voiceName":"Puck"}}}]}}`
		png    = `{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgoB"}}`
		pngURL = `data:image/png;base64,iVBORw0KGgoB`
		call   = `{"type":"tool_call.done","name":"go","arguments":{"a":1},"tool_call_id":"k1"}`
	)
	text := func(s string) string { return `{"type":"text.done","text":"` + s + `"}` }
	result := func(id, rest string) string {
		return `{"type":"tool_result.done","tool_call_id":"` + id + `",` + rest + `}`
	}
	signed := func(item, signature, issuer string) string {
		fidelity := `"fidelity":{"signature":"` + signature + `"`
		if issuer != "" {
			fidelity += `,"issuer":"` + issuer + `"`
		}
		return strings.TrimSuffix(item, "}") + `,` + fidelity + `}}`
	}
	thought := func(s string) string { return `{"type":"thinking.done","thinking":"` + s + `"}` }
	toolConfig := func(calling string) string {
		return `{"tools":[` + noteTool + `],"toolConfig":{"functionCallingConfig":` + calling + `},"contents":[` + hi + `]}`
	}
	skip := `"thoughtSignature":"skip_thought_signature_validator"`

	all := []golden{
		{id: "config.none", config: `{}`, want: contents(hi)},
		{id: "config.temperature", config: `{"temperature":0}`, err: "temperature"},
		{id: "config.temperature.1", config: `{"temperature":1}`, err: "temperature"},
		{id: "config.fast_mode", config: `{"fast_mode":true}`, err: "fast_mode"},
		{id: "config.prompt_caching.disable", config: `{"prompt_caching":"disable"}`, err: "prompt_caching"},
		{id: "config.prompt_caching.enhance", config: `{"prompt_caching":"enhance"}`, err: "prompt_caching"},
		{id: "config.prompt_caching.enable", config: `{"prompt_caching":"enable"}`, want: contents(hi)},
		{id: "config.order.1", config: `{"prompt_caching":"disable","fast_mode":true,"temperature":1}`, err: "temperature"},
		{id: "config.order.2", config: `{"prompt_caching":"disable","fast_mode":true}`, err: "fast_mode"},
		{id: "config.max_tokens", config: `{"max_tokens":7}`, want: generation(`{"maxOutputTokens":7}`)},
		{id: "config.system_prompt", config: `{"system_prompt":"Be <brief>."}`, want: `{"systemInstruction":{"parts":[{"text":"Be <brief>."}]},"contents":[` + hi + `]}`},
		{id: "config.system_prompt.empty", config: `{"system_prompt":""}`, want: contents(hi)},
		{id: "config.thinking_summary.true", config: `{"thinking_summary":true}`, want: generation(`{"thinkingConfig":{"includeThoughts":true}}`)},
		{id: "config.thinking_summary.false", config: `{"thinking_summary":false}`, want: generation(`{"thinkingConfig":{"includeThoughts":false}}`)},
		{id: "config.thinking.both", config: `{"thinking_summary":true,"thinking_level":"none"}`, want: generation(`{"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"LOW"}}`)},
		{
			id: "config.tools", config: `{"tools":[` + note + `,{"name":"ping","description":"p","strict":true}]}`,
			want: `{"tools":[` + strings.TrimSuffix(noteTool, "]}") + `,{"name":"ping","description":"p"}]}],"contents":[` + hi + `]}`,
		},
		{id: "config.top_p", config: `{"top_p":0.9}`, err: "top_p"},
		{id: "config.top_p.1", config: `{"top_p":1}`, want: contents(hi)},
		{id: "config.top_k", config: `{"top_k":40}`, err: "top_k"},
		{id: "config.stop_sequences", config: `{"stop_sequences":["END","<\n"]}`, want: generation(`{"stopSequences":["END","<\n"]}`)},
		{id: "config.stop_sequences.none", config: `{"stop_sequences":[]}`, want: contents(hi)},
		{id: "config.seed", config: `{"seed":9007199254740993}`, want: generation(`{"seed":9007199254740993}`)},
		{id: "config.presence_penalty", config: `{"presence_penalty":-0.5}`, want: generation(`{"presencePenalty":-0.5}`)},
		{id: "config.frequency_penalty", config: `{"frequency_penalty":1.5}`, want: generation(`{"frequencyPenalty":1.5}`)},
		{id: "config.parallel.true", config: `{"parallel_tool_calls":true}`, want: contents(hi)},
		{id: "config.parallel.false", config: `{"parallel_tool_calls":false}`, err: "parallel_tool_calls"},
		{id: "config.format.text", config: `{"response_format":{"type":"text"}}`, want: contents(hi)},
		{id: "config.format.json_object", config: `{"response_format":{"type":"json_object"}}`, want: generation(`{"responseMimeType":"application/json"}`)},
		{id: "config.format.json_schema", config: `{"response_format":{"type":"json_schema","name":"log","description":"A <log>","schema":{"type":"object","properties":{"z":{"maximum":9007199254740993},"a":{"$ref":"#/$defs/d"}},"$defs":{"d":{"type":"string"}}},"strict":true}}`, want: generation(`{"responseMimeType":"application/json","responseJsonSchema":{"type":"object","properties":{"z":{"maximum":9007199254740993},"a":{"$ref":"#/$defs/d"}},"$defs":{"d":{"type":"string"}}}}`)},
		{id: "config.budget", config: `{"thinking_budget":20000}`, want: generation(`{"thinkingConfig":{"thinkingLevel":"HIGH"}}`)},
		{id: "config.budget.0", config: `{"thinking_budget":0}`, want: generation(`{"thinkingConfig":{"thinkingLevel":"LOW"}}`)},
		{id: "config.budget.dynamic", config: `{"thinking_budget":-1}`, want: contents(hi)},
		{id: "config.budget.with_level", config: `{"thinking_budget":20000,"thinking_level":"low"}`, want: generation(`{"thinkingConfig":{"thinkingLevel":"LOW"}}`)},
		{id: "config.verbosity", config: `{"verbosity":"low"}`, err: "verbosity"},
		{id: "config.service_tier", config: `{"service_tier":"flex"}`, want: `{"contents":[` + hi + `],"serviceTier":"flex"}`},
		{id: "config.service_tier.default", config: `{"service_tier":"default"}`, want: `{"contents":[` + hi + `],"serviceTier":"standard"}`},
		{id: "config.service_tier.auto", config: `{"service_tier":"auto"}`, want: contents(hi)},
		{id: "config.user", config: `{"user":"u-4711"}`, want: contents(hi)},
		{id: "config.metadata", config: `{"metadata":{"trip":"9","user_id":"m-1"}}`, want: contents(hi)},
		{id: "config.budget.2.5", model: "gemini-2.5-flash", config: `{"thinking_budget":20000,"thinking_summary":true}`, want: generation(`{"thinkingConfig":{"includeThoughts":true,"thinkingBudget":20000}}`)},
		{id: "config.budget.2.5.dynamic", model: "gemini-2.5-flash", config: `{"thinking_budget":-1}`, want: generation(`{"thinkingConfig":{"thinkingBudget":-1}}`)},
		{id: "config.budget.2.5.with_level", model: "gemini-2.5-flash", config: `{"thinking_budget":20000,"thinking_level":"low"}`, want: generation(`{"thinkingConfig":{"thinkingLevel":"LOW"}}`)},
		{id: "config.service_tier.unknown", config: `{"service_tier":"scale"}`, err: "service_tier"},
		{id: "config.service_tier.vertex", model: "vertex:gemini-3.8-flash", config: `{"service_tier":"flex"}`, err: "service_tier"},
		{id: "tts.format", model: tts, config: `{"response_format":{"type":"json_object"}}`, err: "response_format"},
		{id: "embedding.refused.top_p", model: embedding, config: `{"top_p":0.9}`, err: "top_p"},
		{id: "embedding.refused.top_k", model: embedding, config: `{"top_k":40}`, err: "top_k"},
		{id: "embedding.refused.stop_sequences", model: embedding, config: `{"stop_sequences":["END"]}`, err: "stop_sequences"},
		{id: "embedding.refused.seed", model: embedding, config: `{"seed":1}`, err: "seed"},
		{id: "embedding.refused.presence_penalty", model: embedding, config: `{"presence_penalty":1}`, err: "presence_penalty"},
		{id: "embedding.refused.frequency_penalty", model: embedding, config: `{"frequency_penalty":1}`, err: "frequency_penalty"},
		{id: "embedding.refused.response_format", model: embedding, config: `{"response_format":{"type":"json_object"}}`, err: "response_format"},
		{id: "embedding.refused.verbosity", model: embedding, config: `{"verbosity":"low"}`, err: "verbosity"},
		{id: "embedding.refused.service_tier", model: embedding, config: `{"service_tier":"flex"}`, err: "service_tier"},
		{id: "embedding.refused.fast_mode", model: embedding, config: `{"fast_mode":true}`, err: "fast_mode"},
		{id: "embedding.refused.prompt_caching", model: embedding, config: `{"prompt_caching":"enhance"}`, err: "prompt_caching"},
		{id: "embedding.refused.parallel_tool_calls", model: embedding, config: `{"parallel_tool_calls":false}`, err: "parallel_tool_calls"},
		{id: "tts.stop_sequences", model: tts, config: `{"stop_sequences":["END"]}`, err: "stop_sequences"},
		{id: "tts.seed", model: tts, config: `{"seed":0}`, err: "seed"},
		{id: "tts.presence_penalty", model: tts, config: `{"presence_penalty":0.5}`, err: "presence_penalty"},
		{id: "tts.frequency_penalty", model: tts, config: `{"frequency_penalty":0.5}`, err: "frequency_penalty"},
		{id: "tts.neutral", model: tts, config: `{"stop_sequences":[],"presence_penalty":0,"frequency_penalty":0,"parallel_tool_calls":true}`, want: speech(kore)},
		{id: "item.tool_result.document", messages: user(result("k1", `"text":"a","images":["data:application/pdf;base64,QUJD"]`)), want: userParts(`{"functionResponse":{"name":"k1","response":{"result":"a"},"parts":[{"inlineData":{"mimeType":"application/pdf","data":"QUJD"}}]}}`)},
		{id: "config.presence_penalty.0", config: `{"presence_penalty":0}`, want: contents(hi)},
		{id: "config.frequency_penalty.0", config: `{"frequency_penalty":0}`, want: contents(hi)},
		{id: "config.tools.empty", config: `{"tools":[],"tool_choice":"auto"}`, want: contents(hi)},
		{
			id: "config.tools.schema", config: `{"tools":[{"name":"f","description":"","parameters":{"$ref":"#/$defs/P","$defs":{"P":{"type":"object","properties":{"b":{"const":"x"},"a":{"type":["integer","null"]}},"required":["b"]}}}}]}`,
			want: `{"tools":[{"functionDeclarations":[{"name":"f","parameters":{"type":"OBJECT","properties":{"b":{"type":"STRING","enum":["x"]},"a":{"type":"INTEGER","nullable":true}},"required":["b"]}}]}],"contents":[` + hi + `]}`,
		},
		{id: "config.tools.schema.bad", config: `{"tools":[` + note + `,{"name":"f","description":"","parameters":` + explosive() + `}]}`, err: "tools[1].parameters"},
		{id: "config.tool_choice.auto", config: `{"tools":[` + note + `],"tool_choice":"auto"}`, want: toolConfig(`{"mode":"AUTO"}`)},
		{id: "config.tool_choice.none", config: `{"tools":[` + note + `],"tool_choice":"none"}`, want: toolConfig(`{"mode":"NONE"}`)},
		{id: "config.tool_choice.required", config: `{"tools":[` + note + `],"tool_choice":"required"}`, want: toolConfig(`{"mode":"ANY"}`)},
		{id: "config.tool_choice.one", config: `{"tools":[` + note + `],"tool_choice":["note"]}`, want: toolConfig(`{"mode":"ANY","allowedFunctionNames":["note"]}`)},
		{id: "config.tool_choice.several", config: `{"tools":[` + note + `],"tool_choice":["note","x"]}`, want: toolConfig(`{"mode":"ANY","allowedFunctionNames":["note","x"]}`)},
		{id: "config.tool_choice.without_tools", config: `{"tool_choice":"required"}`, want: contents(hi)},
		{id: "config.image_config", config: `{"image_config":{"aspect_ratio":"16:9","image_size":"2K"}}`, want: generation(`{"imageConfig":{"aspectRatio":"16:9","imageSize":"2K"}}`)},
		{id: "config.image_config.part", config: `{"image_config":{"aspect_ratio":"1:1"}}`, want: generation(`{"imageConfig":{"aspectRatio":"1:1"}}`)},
		{id: "config.ignored", config: `{"fast_mode":false,"trace_id":"t","tts_config":[{"voice":"Kore"}],"embedding_config":{"dimensions":3},"x":1}`, want: contents(hi)},
		{
			id: "config.all", config: `{"max_tokens":5,"system_prompt":"S","tools":[` + note + `],"tool_choice":"auto","thinking_level":"max","thinking_summary":false,"prompt_caching":"enable","image_config":{"image_size":"1K"}}`,
			want: `{"systemInstruction":{"parts":[{"text":"S"}]},"tools":[` + noteTool + `],"toolConfig":{"functionCallingConfig":{"mode":"AUTO"}},"contents":[` + hi + `],` +
				`"generationConfig":{"maxOutputTokens":5,"thinkingConfig":{"includeThoughts":false,"thinkingLevel":"HIGH"},"imageConfig":{"imageSize":"1K"}}}`,
		},

		{id: "tts.voice.default", model: tts, config: `{}`, want: speech(kore)},
		{id: "tts.voice.one", model: tts, config: `{"tts_config":[{"voice":"Puck","speaker":"Ann"}]}`, want: speech(`{"voiceConfig":{"prebuiltVoiceConfig":{"voiceName":"Puck"}}}`)},
		{id: "tts.voice.two", model: tts, config: `{` + twoVoices + `}`, want: speech(twoSpeakers)},
		{id: "tts.voice.three", model: tts, config: `{"tts_config":[{"voice":"a"},{"voice":"b"},{"voice":"c"}]}`, err: "tts_config"},
		{id: "tts.voice.nameless", model: tts, config: `{"tts_config":[{"voice":"a","speaker":"A"},{"voice":"b"}]}`, err: "tts_config"},
		{id: "tts.max_tokens", model: tts, config: `{"max_tokens":9}`, want: generation(`{"maxOutputTokens":9,"responseModalities":["AUDIO"],"speechConfig":` + kore + `}`)},
		{id: "tts.temperature", model: tts, config: `{"temperature":1}`, err: "temperature"},
		{id: "tts.fast_mode", model: tts, config: `{"fast_mode":true}`, err: "fast_mode"},
		{id: "tts.prompt_caching", model: tts, config: `{"prompt_caching":"disable"}`, err: "prompt_caching"},
		{id: "tts.left_out", model: tts, config: `{"system_prompt":"S","tools":[` + note + `],"tool_choice":"auto","thinking_level":"low","thinking_summary":true,"image_config":{"image_size":"1K"}}`, want: speech(kore)},
		{
			id: "tts.last_message", model: tts, config: `{}`, messages: `[{"role":"user","content_items":[` + text("before") + `]},{"role":"user","content_items":[` + text("Hi") + `]}]`,
			want: speech(kore),
		},
		{id: "tts.not_text", model: tts, config: `{}`, messages: user(text("a") + `,{"type":"image_url.done","image_url":"` + pngURL + `"}`), err: "messages[0].content_items[1]: gemini-3.1-flash-tts speaks text alone, not image_url.done"},
		{id: "tts.nothing", model: tts, config: `{}`, messages: `[]`, err: "messages"},
		{
			id: "tts.script", model: tts38, config: `{` + twoVoices + `}`, messages: user(text(`\n Ann : Hello\nto: you\nBo:\n Hi`) + `,` + text(`Ann: Bye`)),
			want: `{"contents":[{"role":"user","parts":[{"text":"Hello\nto: you","speech_metadata":{"speaker":"Ann"}},{"text":"Hi","speech_metadata":{"speaker":"Bo"}},{"text":"Bye","speech_metadata":{"speaker":"Ann"}}]}],` +
				`"generationConfig":{"responseModalities":["AUDIO"],"speechConfig":` + twoSpeakers + `}}`,
		},
		{id: "tts.script.unlabelled", model: tts38, config: `{` + twoVoices + `}`, messages: user(text(`Once\nAnn: Hello`)), err: "messages[0]: the script"},
		{
			id: "tts.script.labels", model: tts, config: `{` + twoVoices + `}`, messages: user(text(`Ann: Hello`)),
			want: `{"contents":[{"role":"user","parts":[{"text":"Ann: Hello"}]}],"generationConfig":{"responseModalities":["AUDIO"],"speechConfig":` + twoSpeakers + `}}`,
		},
		{id: "tts.upper", model: "Gemini-TTS", config: `{}`, want: speech(kore)},

		{id: "embedding.text", model: embedding, config: `{}`, want: `{"requests":[{"model":"models/gemini-embedding-2","content":` + hi + `}]}`},
		{id: "embedding.role", model: embedding, config: `{}`, messages: model(text("Hi")), want: `{"requests":[{"model":"models/gemini-embedding-2","content":{"role":"model","parts":[{"text":"Hi"}]}}]}`},
		{
			id: "embedding.several", model: embedding, config: `{}`, messages: `[{"role":"user","content_items":[` + text("a") + `,` + text("b") + `]},{"role":"user","content_items":[` + text("c") + `]}]`,
			want: `{"requests":[{"model":"models/gemini-embedding-2","content":{"role":"user","parts":[{"text":"a"},{"text":"b"}]}},{"model":"models/gemini-embedding-2","content":{"role":"user","parts":[{"text":"c"}]}}]}`,
		},
		{
			id: "embedding.inline_data", model: embedding, config: `{}`, messages: user(`{"type":"inline_data.done","mime_type":"audio/wav","data":"AQI="}`),
			want: `{"requests":[{"model":"models/gemini-embedding-2","content":{"role":"user","parts":[{"inlineData":{"mimeType":"audio/wav","data":"AQI="}}]}}]}`,
		},
		{
			id: "embedding.image_url", model: embedding, config: `{}`, messages: user(`{"type":"image_url.done","image_url":"` + server + `/picture"}`),
			want: `{"requests":[{"model":"models/gemini-embedding-2","content":{"role":"user","parts":[` + png + `]}}]}`,
		},
		{id: "embedding.other", model: embedding, config: `{}`, messages: user(text("a") + `,` + result("k", `"text":"x"`)), err: "messages[0].content_items[1]"},
		{id: "embedding.dimensions", model: embedding, config: `{"embedding_config":{"dimensions":64}}`, want: `{"requests":[{"model":"models/gemini-embedding-2","content":` + hi + `,"outputDimensionality":64}]}`},
		{id: "embedding.ignored", model: embedding, config: `{"temperature":1,"fast_mode":false,"prompt_caching":"disable","parallel_tool_calls":true,"system_prompt":"S","embedding_config":{}}`, want: `{"requests":[{"model":"models/gemini-embedding-2","content":` + hi + `}]}`},
		{id: "embedding.nothing", model: embedding, config: `{}`, messages: `[]`, err: "messages"},
		{
			id: "embedding.vertex", model: "vertex:" + embedding, config: `{"embedding_config":{"dimensions":2}}`, messages: `[{"role":"user","content_items":[` + text(`a\nb`) + `]},{"role":"user","content_items":[` + text("c") + `]}]`,
			want: `{"content":{"role":"user","parts":[{"text":"a\nb"}]},"outputDimensionality":2}` + "\n" + `{"content":{"role":"user","parts":[{"text":"c"}]},"outputDimensionality":2}`,
		},
		{id: "embedding.upper", model: "models/Text-EMBEDDING", config: `{}`, want: `{"requests":[{"model":"models/Text-EMBEDDING","content":` + hi + `}]}`},
		{id: "embedding.signed", model: embedding, config: `{}`, messages: user(signed(text("Hi"), "c2ln", "google")), want: `{"requests":[{"model":"models/gemini-embedding-2","content":` + hi + `}]}`},

		{id: "item.text", messages: user(text(`<é> & \u2028`)), want: userParts(`{"text":"<é> & \u2028"}`)},
		{id: "item.text.empty", messages: user(text("")), want: userParts(`{"text":""}`)},
		{id: "item.text.signed", messages: model(signed(text("a"), "c2ln", "google")), want: modelParts(`{"text":"a","thoughtSignature":"c2ln"}`)},
		{id: "item.image_url.data", messages: user(`{"type":"image_url.done","image_url":"data:Image/PNG;x=y; BASE64,iVBORw0K GgoB"}`), want: userParts(png)},
		{id: "item.image_url.bare", messages: user(`{"type":"image_url.done","image_url":"data:;base64,iVBORw0KGgoB"}`), want: userParts(png)},
		{id: "item.image_url.remote", messages: user(`{"type":"image_url.done","image_url":"` + server + `/picture","fidelity":{"signature":"c2ln"}}`), want: userParts(png)},
		{id: "item.image_url.bad", messages: user(text("a") + `,{"type":"image_url.done","image_url":"data:image/png,raw"}`), err: "messages[0].content_items[1].image_url"},
		{id: "item.image_url.unnamed", messages: user(`{"type":"image_url.done","image_url":"data:;base64,AQID"}`), err: "messages[0].content_items[0].image_url"},
		{id: "item.image_url.refused", messages: user(`{"type":"image_url.done","image_url":"` + server + `/none"}`), err: "messages[0].content_items[0].image_url"},
		{id: "item.inline_data", messages: user(`{"type":"inline_data.done","mime_type":"application/pdf","data":"/+8="}`), want: userParts(`{"inlineData":{"mimeType":"application/pdf","data":"/+8="}}`)},
		{id: "item.inline_data.signed", messages: model(signed(`{"type":"inline_data.done","mime_type":"image/png","data":"AQI="}`, "c2ln", "")), want: modelParts(`{"inlineData":{"mimeType":"image/png","data":"AQI="},"thoughtSignature":"c2ln"}`)},
		{id: "item.thinking", messages: model(thought("t") + `,` + text("a")), want: modelParts(`{"text":"t","thought":true},{"text":"a"}`)},
		{id: "item.thinking.signed.alone", messages: model(signed(thought("t"), "c2ln", "")), want: modelParts(`{"text":"t","thought":true,"thoughtSignature":"c2ln"}`)},
		{id: "item.inline_thinking", messages: model(`{"type":"inline_thinking.done","mime_type":"image/png","data":"AQI="}`), want: modelParts(`{"inlineData":{"mimeType":"image/png","data":"AQI="},"thought":true}`)},
		{id: "item.inline_thinking.signed", messages: model(signed(`{"type":"inline_thinking.done","mime_type":"image/png","data":"AQI="}`, "c2ln", "")), want: modelParts(`{"inlineData":{"mimeType":"image/png","data":"AQI="},"thought":true,"thoughtSignature":"c2ln"}`)},
		{id: "item.tool_call", messages: model(signed(call, "c2ln", "")), want: modelParts(`{"functionCall":{"id":"k1","name":"go","args":{"a":1}},"thoughtSignature":"c2ln"}`)},
		{id: "item.tool_call.without_id", messages: model(signed(`{"type":"tool_call.done","name":"go","arguments":{},"tool_call_id":"go"}`, "c2ln", "")), want: modelParts(`{"functionCall":{"name":"go","args":{}},"thoughtSignature":"c2ln"}`)},
		{id: "item.tool_call.without_arguments", messages: model(`{"type":"tool_call.done","name":"go","arguments":"","tool_call_id":"k1"}`), want: modelParts(`{"functionCall":{"id":"k1","name":"go","args":{}},` + skip + `}`)},
		{id: "item.tool_call.exact", messages: model(`{"type":"tool_call.done","name":"go","arguments":{"z":9007199254740993,"a":1.50,"m":18446744073709551615},"tool_call_id":"k1"}`), want: modelParts(`{"functionCall":{"id":"k1","name":"go","args":{"z":9007199254740993,"a":1.50,"m":18446744073709551615}},` + skip + `}`)},
		{
			id: "item.tool_result", messages: `[{"role":"assistant","content_items":[` + call + `]},{"role":"user","content_items":[` + result("k1", `"text":"3 left"`) + `]}]`,
			want: contents(`{"role":"model","parts":[{"functionCall":{"id":"k1","name":"go","args":{"a":1}},` + skip + `}]},{"role":"user","parts":[{"functionResponse":{"id":"k1","name":"go","response":{"result":"3 left"}}}]}`),
		},
		{id: "item.tool_result.unknown", messages: user(result("k9", `"text":""`)), want: userParts(`{"functionResponse":{"name":"k9","response":{"result":""}}}`)},
		{
			id: "item.tool_result.without_id", messages: `[{"role":"assistant","content_items":[{"type":"tool_call.done","name":"go","arguments":{},"tool_call_id":"go"}]},{"role":"user","content_items":[` + result("go", `"text":"x"`) + `]}]`,
			want: contents(`{"role":"model","parts":[{"functionCall":{"name":"go","args":{}},` + skip + `}]},{"role":"user","parts":[{"functionResponse":{"name":"go","response":{"result":"x"}}}]}`),
		},
		{id: "item.tool_result.error", messages: user(result("k9", `"text":"no","is_error":true`)), want: userParts(`{"functionResponse":{"name":"k9","response":{"error":"no"}}}`)},
		{id: "item.tool_result.images", messages: user(result("k9", `"text":"t","images":["`+pngURL+`","`+server+`/picture"]`)), want: userParts(`{"functionResponse":{"name":"k9","response":{"result":"t"},"parts":[` + png + `,` + png + `]}}`)},
		{id: "item.tool_result.image.bad", messages: user(result("k9", `"text":"t","images":["`+pngURL+`","ftp://x/y"]`)), err: "messages[0].content_items[0].images[1]"},
		{id: "item.other", messages: user(`{"type":"embedding.done","embedding":[1]}`), err: "messages[0].content_items[0]: GoogleGenaiClient cannot send embedding.done"},
		{id: "item.none", messages: model(``), want: contents(`{"role":"model"}`)},

		{ // a turn of the Interactions protocol: the signature moves from the thought to the first call
			id: "turn.interchange", messages: `[{"role":"user","content_items":[` + text("Any A7 left?") + `]},{"role":"assistant","content_items":[` + signed(thought("check stock"), "U0lHLUE=", "google") + `,` + text("One moment.") + `,{"type":"tool_call.done","name":"lookup","arguments":{"sku":"A7"},"tool_call_id":"c-9"}]},{"role":"user","content_items":[` + result("c-9", `"text":"3 left"`) + `]}]`,
			want: contents(`{"role":"user","parts":[{"text":"Any A7 left?"}]},{"role":"model","parts":[{"text":"check stock","thought":true},{"text":"One moment."},{"functionCall":{"id":"c-9","name":"lookup","args":{"sku":"A7"}},"thoughtSignature":"U0lHLUE="}]},` +
				`{"role":"user","parts":[{"functionResponse":{"id":"c-9","name":"lookup","response":{"result":"3 left"}}}]}`),
		},
		{id: "turn.order", messages: model(text("a") + `,` + thought("b") + `,` + text("c")), want: modelParts(`{"text":"a"},{"text":"b","thought":true},{"text":"c"}`)},
		{
			id: "turn.split", messages: user(text("See below.") + `,` + result("k1", `"text":"x"`) + `,` + result("k2", `"text":"y"`) + `,` + text("Go.")),
			want: contents(`{"role":"user","parts":[{"text":"See below."}]},{"role":"user","parts":[{"functionResponse":{"name":"k1","response":{"result":"x"}}},{"functionResponse":{"name":"k2","response":{"result":"y"}}}]},{"role":"user","parts":[{"text":"Go."}]}`),
		},
		{ // results keep the order that they were given in, each under the name of its call
			id: "turn.results", messages: `[{"role":"assistant","content_items":[{"type":"tool_call.done","name":"scan","arguments":{},"tool_call_id":"1"},{"type":"tool_call.done","name":"read","arguments":{},"tool_call_id":"2"}]},{"role":"user","content_items":[` + result("2", `"text":"{\"$ref\":1}"`) + `,` + result("1", `"text":"clear"`) + `]}]`,
			want: contents(`{"role":"model","parts":[{"functionCall":{"id":"1","name":"scan","args":{}},` + skip + `},{"functionCall":{"id":"2","name":"read","args":{}}}]},` +
				`{"role":"user","parts":[{"functionResponse":{"id":"2","name":"read","response":{"result":"{\"$ref\":1}"}}},{"functionResponse":{"id":"1","name":"scan","response":{"result":"clear"}}}]}`),
		},
		{
			id: "turn.unsigned",
			messages: `[{"role":"assistant","content_items":[` + text("a") + `,{"type":"tool_call.done","name":"f","arguments":{},"tool_call_id":"k1"}]},` +
				`{"role":"assistant","content_items":[{"type":"thinking.done","thinking":"ask tool","fidelity":{"reasoning_field":"reasoning"}},{"type":"tool_call.done","name":"f","arguments":{},"tool_call_id":"k2"}]},` +
				`{"role":"assistant","content_items":[{"type":"tool_call.done","name":"f","arguments":{},"tool_call_id":"k3","fidelity":{"signature":"c2lnLTM="}}]}]`,
			want: contents(`{"role":"model","parts":[{"text":"a"},{"functionCall":{"id":"k1","name":"f","args":{}},` + skip + `}]},{"role":"model","parts":[{"text":"ask tool","thought":true},{"functionCall":{"id":"k2","name":"f","args":{}},` + skip + `}]},` +
				`{"role":"model","parts":[{"functionCall":{"id":"k3","name":"f","args":{}},"thoughtSignature":"c2lnLTM="}]}`),
		},
		{id: "turn.second_call", messages: model(signed(call, "c2ln", "") + `,` + call), want: modelParts(`{"functionCall":{"id":"k1","name":"go","args":{"a":1}},"thoughtSignature":"c2ln"},{"functionCall":{"id":"k1","name":"go","args":{"a":1}}}`)},
		{
			id: "turn.nearest", messages: model(signed(thought("a"), "QQ==", "") + `,` + signed(thought("b"), "Qg==", "") + `,` + thought("c") + `,` + call + `,` + call),
			want: modelParts(`{"text":"a","thought":true},{"text":"b","thought":true},{"text":"c","thought":true},{"functionCall":{"id":"k1","name":"go","args":{"a":1}},"thoughtSignature":"Qg=="},{"functionCall":{"id":"k1","name":"go","args":{"a":1}},"thoughtSignature":"QQ=="}`),
		},
		{id: "turn.next_part", messages: model(signed(thought("t"), "QQ==", "") + `,` + signed(text("a"), "Qg==", "") + `,` + text("b")), want: modelParts(`{"text":"t","thought":true},{"text":"a","thoughtSignature":"Qg=="},{"text":"b","thoughtSignature":"QQ=="}`)},
		{id: "turn.kept", messages: model(text("a") + `,` + signed(thought("t"), "QQ==", "")), want: modelParts(`{"text":"a"},{"text":"t","thought":true,"thoughtSignature":"QQ=="}`)},
		{id: "turn.empty_thought", messages: model(signed(thought(""), "QQ==", "") + `,` + text("a") + `,` + thought("")), want: modelParts(`{"text":"a","thoughtSignature":"QQ=="}`)},
		{
			id: "turn.image_thought", messages: model(signed(`{"type":"inline_thinking.done","mime_type":"image/png","data":"AQI="}`, "QQ==", "") + `,{"type":"inline_data.done","mime_type":"image/png","data":"AQI="}`),
			want: modelParts(`{"inlineData":{"mimeType":"image/png","data":"AQI="},"thought":true,"thoughtSignature":"QQ=="},{"inlineData":{"mimeType":"image/png","data":"AQI="}}`),
		},

		{id: "issuer.own", messages: model(signed(text("a"), "QQ==", "google")), want: modelParts(`{"text":"a","thoughtSignature":"QQ=="}`)},
		{id: "issuer.absent", messages: model(signed(text("a"), "QQ==", "")), want: modelParts(`{"text":"a","thoughtSignature":"QQ=="}`)},
		{id: "issuer.other", messages: model(signed(thought("t"), "QQ==", "anthropic") + `,` + signed(text("a"), "QQ==", "google@vertex") + `,` + signed(call, "QQ==", "gw.test")), want: modelParts(`{"text":"t","thought":true},{"text":"a"},{"functionCall":{"id":"k1","name":"go","args":{"a":1}},` + skip + `}`)},
		{id: "issuer.vertex", model: "vertex:gemini-3.8-flash", messages: model(signed(text("a"), "QQ==", "google@vertex") + `,` + signed(text("b"), "QQ==", "google")), want: modelParts(`{"text":"a","thoughtSignature":"QQ=="},{"text":"b"}`)},
		{id: "issuer.gateway", model: "gateway:gemini-3.8-flash", messages: model(signed(text("a"), "QQ==", "gw.test:8443") + `,` + signed(text("b"), "QQ==", "google")), want: modelParts(`{"text":"a","thoughtSignature":"QQ=="},{"text":"b"}`)},
	}
	for _, row := range thinking {
		for i, name := range row.models {
			for j, level := range levels {
				all = append(all, golden{
					id: fmt.Sprintf("thinking.%s.%d.%s", row.group, i, level), model: name, config: fmt.Sprintf(`{"thinking_level":%q}`, level),
					want: generation(`{"thinkingConfig":{"thinkingLevel":"` + strings.Fields(row.levels)[j] + `"}}`),
				})
			}
		}
	}
	return all
}

// explosive is a small schema that its references make a large one.
func explosive() string {
	schema := `{"type":"object","properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{"d6":{"type":"string"}`
	for i := range 6 {
		schema += fmt.Sprintf(`,"d%d":{"type":"object","properties":{`, i)
		for j := range 9 {
			schema += fmt.Sprintf(`"p%d":{"$ref":"#/$defs/d%d"},`, j, i+1)
		}
		schema = strings.TrimSuffix(schema, ",") + `}}`
	}
	return schema + `}}`
}

// TestGolden: every row has a case, and every case is what is sent, the same again the second time.
func TestGolden(t *testing.T) {
	pictures := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/picture" {
			w.WriteHeader(http.StatusNotFound)
		}
		w.Write([]byte("\x89PNG\r\n\x1a\n\x01"))
	}))
	defer pictures.Close()
	cases := goldens(pictures.URL)
	for _, row := range rows {
		if !slices.ContainsFunc(cases, func(g golden) bool { return g.id == row }) {
			t.Errorf("%s has no case", row)
		}
	}
	for _, g := range cases {
		t.Run(g.id, func(t *testing.T) {
			if !slices.Contains(rows, g.id) {
				t.Error("it is no row")
			}
			model, at := "gemini-3.8-flash", func(*mmsp.Options) {}
			if g.model != "" {
				model = g.model
			}
			if rest, ok := strings.CutPrefix(model, "vertex:"); ok {
				model, at = rest, func(o *mmsp.Options) { o.APIKey = mmsp.NewSecret(serviceAccount(t)) }
			}
			if rest, ok := strings.CutPrefix(model, "gateway:"); ok {
				model, at = rest, func(o *mmsp.Options) { o.BaseURL = "https://GW.test:8443/base" }
			}
			client := build(t, model, at, func(o *mmsp.Options) { o.AllowPrivateFetch = true })
			var config mmsp.Config
			if g.config != "" {
				parse(t, g.config, &config)
			}
			messages := []mmsp.Message{mmsp.UserMessage(mmsp.Text("Hi"))}
			if g.messages != "" {
				parse(t, g.messages, &messages)
			}
			for range 2 {
				request, err := client.Prepare(t.Context(), messages, &config)
				if g.err != "" {
					var parameter *mmsp.UnsupportedParameterError
					var invalid *mmsp.InvalidRequestError
					switch {
					case errors.As(err, &parameter) && parameter.Parameter == g.err && parameter.Client == class && parameter.Message != "":
					case errors.As(err, &invalid) && strings.HasPrefix(invalid.Error(), g.err):
					default:
						t.Errorf("error %T %v, want %s", err, err, g.err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if got := string(request.Body); got != g.want {
					t.Errorf("got\n%s\nwant\n%s", got, g.want)
				}
			}
		})
	}
}

func parse(t testing.TB, text string, into any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), into); err != nil {
		t.Fatalf("%v in %.300s", err, text)
	}
}

// TestLongScript: a turn of many lines, or of many texts, is joined once.
func TestLongScript(t *testing.T) {
	client := build(t, "gemini-3.8-flash-tts")
	var config mmsp.Config
	parse(t, `{"tts_config":[{"voice":"Kore","speaker":"Ann"},{"voice":"Puck","speaker":"Bo"}]}`, &config)
	lines := slices.Repeat([]mmsp.Item{mmsp.Text("more and more of it")}, 200_000)
	lines[0] = mmsp.Text("Ann: begin")
	began := time.Now()
	request, err := client.Prepare(t.Context(), []mmsp.Message{mmsp.UserMessage(lines...)}, &config)
	if took := time.Since(began); err != nil || took > time.Minute || len(request.Body) < 200_000*len("more and more of it") {
		t.Errorf("%v after %v", err, took)
	}
}

// Where requests go, by model and endpoint.
func TestEndpoints(t *testing.T) {
	account := serviceAccount(t)
	const google, vertex = "https://generativelanguage.googleapis.com/v1beta/", "https://aiplatform.googleapis.com/v1beta1/"
	const stream = ":streamGenerateContent?alt=sse"
	for _, row := range []struct{ model, key, baseURL, env, want, list string }{
		{"m", "k", "", "", google + "models/m" + stream, google + "models"},
		{"models/m", "k", "", "", google + "models/m" + stream, google + "models"},
		{"tunedModels/m", "k", "", "", google + "tunedModels/m" + stream, google + "models"},
		{"a b?c", "k", "", "", google + "models/a%20b%3Fc" + stream, google + "models"},
		{"m", "k", "https://gw.test/base/", "", "https://gw.test/base/v1beta/models/m" + stream, "https://gw.test/base/v1beta/models"},
		{"m", "k", "https://gw.test/v1beta", "", "https://gw.test/v1beta/models/m" + stream, "https://gw.test/v1beta/models"},
		{"m", "", "", "https://env.test", "https://env.test/v1beta/models/m" + stream, "https://env.test/v1beta/models"},
		{"gemini-embedding-2", "k", "", "", google + "models/gemini-embedding-2:batchEmbedContents", google + "models"},
		{"m", account, "", "", vertex + "projects/harbour-7/locations/global/publishers/google/models/m" + stream, vertex + "publishers/google/models"},
		{"m", account, "https://gw.test", "", "https://gw.test/v1beta1/projects/harbour-7/locations/global/publishers/google/models/m" + stream, "https://gw.test/v1beta1/publishers/google/models"},
		{"m", account, "", "https://env.test", "https://env.test/v1beta1/projects/harbour-7/locations/global/publishers/google/models/m" + stream, "https://env.test/v1beta1/publishers/google/models"},
		{"gemini-embedding-2", account, "", "", vertex + "projects/harbour-7/locations/global/publishers/google/models/gemini-embedding-2:embedContent", vertex + "publishers/google/models"},
	} {
		client := build(t, row.model, func(o *mmsp.Options) {
			o.APIKey, o.BaseURL = mmsp.NewSecret(row.key), row.baseURL
			o.Getenv = func(name string) string {
				return map[string]string{"GEMINI_API_KEY": "env-key", "GEMINI_BASE_URL": row.env}[name]
			}
		})
		request, err := client.Prepare(t.Context(), []mmsp.Message{mmsp.UserMessage(mmsp.Text("Hi"))}, &mmsp.Config{})
		if err != nil || request.URL != row.want || request.Method != http.MethodPost || client.listURL != row.list {
			t.Errorf("%s at %q: %v %s (%v), lists at %s", row.model, row.baseURL, request.Method, request.URL, err, client.listURL)
		}
	}
}

// A batch holds a hundred contents; more go out in several bodies.
func TestEmbeddingBatches(t *testing.T) {
	messages := make([]mmsp.Message, 201)
	for i := range messages {
		messages[i] = mmsp.UserMessage(mmsp.Text(fmt.Sprint(i)))
	}
	request, err := build(t, "gemini-embedding-2").Prepare(t.Context(), messages, &mmsp.Config{})
	if err != nil {
		t.Fatal(err)
	}
	var sizes []int
	for line := range strings.SplitSeq(string(request.Body), "\n") {
		var batch struct{ Requests []struct{} }
		parse(t, line, &batch)
		sizes = append(sizes, len(batch.Requests))
	}
	if !slices.Equal(sizes, []int{100, 100, 1}) {
		t.Error(sizes)
	}
}

// What a request repeats of its history is short: an answer to a call repeats the name of the function, a turn of a script
// that of its speaker.
func TestRepeats(t *testing.T) {
	voices := &mmsp.Config{TTSConfig: []mmsp.TTSVoice{{Voice: "Kore", Speaker: "a"}, {Voice: "Puck", Speaker: "b"}}}
	named := func(n int) []mmsp.Message {
		return []mmsp.Message{mmsp.AssistantMessage(mmsp.ToolCall("k", strings.Repeat("n", n), "")), mmsp.UserMessage(mmsp.ToolResult("k", ""))}
	}
	turns := func(n int) []mmsp.Message {
		return []mmsp.Message{mmsp.UserMessage(mmsp.Text(strings.Repeat("a:x\n", n)))}
	}
	for _, row := range []struct {
		model    string
		messages []mmsp.Message
		config   *mmsp.Config
		param    string // that is wrong
	}{
		{"gemini-3.8-flash", named(maxNameBytes), &mmsp.Config{}, ""},
		{"gemini-3.8-flash", named(maxNameBytes + 1), &mmsp.Config{}, "messages[0].content_items[0].name"},
		{"gemini-3.8-flash-tts", turns(maxTurns), voices, ""},
		{"gemini-3.8-flash-tts", turns(maxTurns + 1), voices, "messages[0]"},
	} {
		_, err := build(t, row.model).Prepare(t.Context(), row.messages, row.config)
		var invalid *mmsp.InvalidRequestError
		if errors.As(err, &invalid) != (row.param != "") || invalid != nil && invalid.Param != row.param {
			t.Errorf("%s: %v, want one for %q", row.model, err, row.param)
		}
	}
}

// TestEmbeddingPlaces: what cannot be embedded is named where it stands.
func TestEmbeddingPlaces(t *testing.T) {
	messages := []mmsp.Message{mmsp.UserMessage(mmsp.Text("a")), mmsp.UserMessage(mmsp.Text("b"), mmsp.ImageURL("data:x"))}
	_, err := build(t, "gemini-embedding-2").Prepare(t.Context(), messages, &mmsp.Config{})
	var invalid *mmsp.InvalidRequestError
	if !errors.As(err, &invalid) || invalid.Param != "messages[1].content_items[1].image_url" {
		t.Error(err)
	}
}

// TestManyImages: the pictures of a request are bounded together.
func TestManyImages(t *testing.T) {
	pictures := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte("GIF89a\x01\x00\x01\x00\x00\x00\x00;")) }))
	defer pictures.Close()
	items := slices.Repeat([]mmsp.Item{mmsp.ImageURL(pictures.URL)}, 513)
	_, err := build(t, "gemini-3.8-flash", func(o *mmsp.Options) { o.AllowPrivateFetch = true }).Prepare(t.Context(), []mmsp.Message{mmsp.UserMessage(items...)}, &mmsp.Config{})
	var invalid *mmsp.InvalidRequestError
	if !errors.As(err, &invalid) || invalid.Param != "messages[0].content_items[512].image_url" {
		t.Error(err)
	}
}
