package simulate

import (
	"encoding/base64"
	"fmt"
	"image/png"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/jwt"
)

const geminiTools = `"tools":[{"function_declarations":[{"name":"get_weather","parameters":{"type":"OBJECT","properties":{"city":{"type":"STRING"}},` +
	`"required":["city"]}},{"name":"get_time","parametersJsonSchema":{"type":"object","properties":{"zone":{"$ref":"#/$defs/z"}},"$defs":{"z":{"type":"string"}}}}]}]`

func askGemini(prompt string, more ...string) string {
	return `{` + strings.Join(append([]string{`"contents":[{"role":"user","parts":[{"text":` + quoted(prompt) + `}]}]`}, more...), ",") + `}`
}

// geminiKind names a response by its part, whether it is signed, and how it ends.
func geminiKind(f frame) string {
	var names []string
	for _, part := range f.at("candidates.0.content.parts").list() {
		p := tree{part}
		name := "text"
		switch {
		case p.at("functionCall").value != nil:
			name = "call"
		case p.at("inlineData").value != nil:
			name, _, _ = strings.Cut(p.at("inlineData.mimeType").text(), "/")
		}
		if p.at("thought").value == true {
			name = "thought " + name
		}
		if p.at("thoughtSignature").text() != "" {
			name = "signed " + name
		}
		names = append(names, name)
	}
	for _, path := range []string{"candidates.0.finishReason", "promptFeedback.blockReason", "error.status"} {
		if text := f.at(path).text(); text != "" {
			names = append(names, text)
		}
	}
	return strings.Join(names, ", ")
}

func TestGenerateContentStream(t *testing.T) {
	end := func(finish string) string { return "text\nsigned text, " + finish }
	cases := []struct{ name, prompt, more, want string }{
		{"text", "hello there", "", end("STOP")},
		{"think", "THINK about it", "", "thought text\n" + end("STOP")},
		{"thinking asked for", "hi", `"generationConfig":{"thinkingConfig":{"includeThoughts":true,"thinkingLevel":"LOW"}}`, "thought text\n" + end("STOP")},
		{"thinking hidden", "think", `"generationConfig":{"thinkingConfig":{"includeThoughts":false}}`, end("STOP")},
		{"redacted", "redacted", "", end("STOP")},
		{"call", "call", geminiTools, "signed call\ntext, STOP"},
		{"any", "hi", geminiTools + `,"toolConfig":{"functionCallingConfig":{"mode":"ANY"}}`, "signed call\ntext, STOP"},
		{"none", "call", geminiTools + `,"toolConfig":{"functionCallingConfig":{"mode":"NONE"}}`, end("STOP")},
		{"parallel", "think, parallel", geminiTools, "thought text\nsigned call\ncall\ntext, STOP"},
		{"paint", "paint a boat", "", "text\nsigned image\ntext, STOP"},
		{"think and paint", "think, paint a boat", "", "thought text\nsigned thought image\ntext\nsigned image\ntext, STOP"},
		{"no room to paint", "paint, length", "", end("MAX_TOKENS")},
		{"say", "say this", "", "audio\ntext, STOP"},
		{"speech asked for", "hi", `"generationConfig":{"responseModalities":["AUDIO"]}`, "audio\ntext, STOP"},
		{"refuse", "refuse", "", end("STOP")},
		{"filter", "filter", "", "SAFETY"},
		{"filter a call", "filter the call", geminiTools, "UNEXPECTED_TOOL_CALL"},
		{"block", "block", "", "PROHIBITED_CONTENT"},
		{"empty", "empty", "", "STOP"},
		{"length", "length", "", end("MAX_TOKENS")},
		{"token limit", "hi", `"generationConfig":{"maxOutputTokens":2}`, end("MAX_TOKENS")},
		{"length in a call", "call, length", geminiTools, "text, MAX_TOKENS"},
		{"stop sequence", "hi", `"generation_config":{"stop_sequences":["wrote"]}`, end("STOP")},
		{"fail", "fail", "", "text\nINTERNAL"},
		{"fail with a status", "fail 503", "", "text\nUNAVAILABLE"},
		{"fail with a code", "fail context_length_exceeded", "", "text\nINVALID_ARGUMENT"},
		{"cut", "cut clean", "", "text"},
		{"cut speech", "say: cut clean", "", "audio"},
	}
	p := dial(t, "gemini", Options{})
	array := p.to("/v1beta/models/gemini-3.8-flash:streamGenerateContent")
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			var more []string
			if c.more != "" {
				more = append(more, c.more)
			}
			body := p.ok(askGemini(c.prompt, more...))
			if strings.Count(body, "\n") != strings.Count(body, "\r\n") {
				t.Error("lines end without a carriage return")
			}
			all := frames(t, strings.ReplaceAll(body, "\r\n", "\n"))
			if got := shape(all, geminiKind); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}

			// The same without alt=sse is a JSON array, which a cut leaves open.
			body = array.ok(askGemini(c.prompt, more...))
			if strings.Contains(c.prompt, "cut") {
				if strings.HasSuffix(body, "]\n") {
					t.Error("the array of a cut stream is whole")
				}
				body += "]"
			}
			var other []frame
			for _, value := range parse(t, body).list() {
				other = append(other, frame{tree: tree{value}})
			}
			if got := shape(other, geminiKind); got != c.want {
				t.Errorf("as an array got\n%s\nwant\n%s", got, c.want)
			}
		})
	}
}

func TestGenerateContentMedia(t *testing.T) {
	p := dial(t, "gemini", Options{}).to("/v1beta/models/m:generateContent")
	picture := func(prompt string) string {
		return p.whole(askGemini(prompt)).at("candidates.0.content.parts.1.inlineData.data").text()
	}
	image, err := png.Decode(base64.NewDecoder(base64.StdEncoding, strings.NewReader(picture("paint a boat"))))
	if err != nil || image.Bounds().Dx() != 16 {
		t.Fatal(err, image)
	}
	boat, again, house := picture("paint a boat"), picture("paint a boat"), picture("paint a house")
	if boat != again || boat == house {
		t.Error("a picture does not follow its prompt")
	}
	if n := p.whole(askGemini("think, paint a boat")).at("usageMetadata.thoughtsTokenCount").number(); n <= paintingTokens {
		t.Errorf("%d tokens of thoughts with a picture among them", n)
	}
	speech := p.whole(askGemini("say these words")).at("candidates.0.content.parts.0.inlineData")
	if raw, err := base64.StdEncoding.DecodeString(speech.at("data").text()); err != nil || len(raw) < 10*speechChunk || !strings.HasPrefix(speech.at("mimeType").text(), "audio/L16") {
		t.Errorf("%d bytes of %s, %v", len(raw), speech.at("mimeType").text(), err)
	}
}

func TestGenerateContentProofs(t *testing.T) {
	p := dial(t, "gemini", Options{})
	whole := p.to("/v1beta/models/gemini-3.8-flash:generateContent")
	first := whole.whole(askGemini("think, parallel for Oslo", geminiTools))
	model := first.at("candidates.0.content")
	call, second := model.at("parts.1"), model.at("parts.2")
	if call.at("functionCall.args").json() != `{"city":"Oslo"}` || call.at("functionCall.id").value != nil || second.at("thoughtSignature").value != nil {
		t.Fatalf("answer %s", first.json())
	}
	signature := call.at("thoughtSignature").text()
	user := `{"role":"user","parts":[{"text":"hi"}]}`
	response := func(name, more string) string {
		return `{"functionResponse":{"name":"` + name + `","response":{"result":"fine and ` + name + `"}` + more + `}}`
	}
	both := response("get_weather", "") + "," + response("get_time", "")
	contents := func(all ...string) string { return `{"contents":[` + strings.Join(all, ",") + `],` + geminiTools + `}` }
	turn := func(parts string) string { return `{"role":"model","parts":[` + parts + `]}` }
	answers := func(parts string) string { return `{"role":"user","parts":[` + parts + `]}` }
	kept := contents(user, model.json(), answers(both))

	text := whole.whole(kept).at("candidates.0.content.parts.0.text").text()
	if !strings.Contains(text, "get_weather answered “fine and get_weather”") || !strings.Contains(text, "get_time answered") {
		t.Errorf("the results are not in %q", text)
	}
	text = whole.whole(askGemini("hello")).at("candidates.0.content").json()
	spoken, said := text, parse(t, text).at("parts.0.text").text()
	textSignature := parse(t, text).at("parts.0.thoughtSignature").text()
	unsigned := strings.Replace(call.json(), `,"thoughtSignature":`+quoted(signature), "", 1)
	urlSafe := strings.NewReplacer("+", "-", "/", "_").Replace(strings.TrimRight(signature, "="))
	for name, body := range map[string]string{
		"placeholder":             strings.Replace(kept, signature, placeholderSignature, 1),
		"the other alphabet":      strings.Replace(kept, signature, urlSafe, 1),
		"results in two contents": contents(user, model.json(), answers(response("get_weather", "")), answers(response("get_time", ""))),
		"text beside the results": contents(user, model.json(), answers(both+`,{"text":"and?"}`)),
		"unsigned in a past turn": contents(user, turn(unsigned), answers(response("get_weather", "")), turn(`{"text":"x"}`), user),
		"a signature on text":     contents(user, spoken, user),
		"on an end of the text":   contents(user, turn(`{"text":`+quoted(said[:5])+`},{"text":`+quoted(said[5:])+`},{"text":"","thoughtSignature":`+quoted(textSignature)+`}`), user),
		"second call unsigned":    kept,
	} {
		t.Run(name, func(t *testing.T) { whole.ok(body) })
	}
	cases := []struct{ name, body, want string }{
		{"unsigned", contents(user, turn(unsigned+","+second.json()), answers(both)), "Function call is missing a thought_signature in functionCall parts."},
		{"unsigned in a later step", contents(user, model.json(), answers(both), turn(unsigned), answers(response("get_weather", ""))), "position 4."},
		{"altered", strings.Replace(kept, signature, "AAAA"+signature[4:], 1), "Corrupted thought signature."},
		{"no base64", strings.Replace(kept, signature, "???", 1), "Invalid value at 'contents[1].parts[1].thought_signature' (TYPE_BYTES)"},
		{"of a call, on text", contents(user, turn(`{"text":"x","thoughtSignature":`+quoted(signature)+`}`), user), "Corrupted thought signature."},
		{"altered text", contents(user, strings.Replace(spoken, "hello", "hullo", 1), user), "Corrupted thought signature."},
		{"altered arguments", strings.Replace(kept, `"city":"Oslo"`, `"city":"Rome"`, 1), "Corrupted thought signature."},
		{"altered on text", contents(user, turn(`{"text":"x","thoughtSignature":"AAAA"}`), user), "Corrupted thought signature."},
		{"one result of two", contents(user, model.json(), answers(response("get_weather", ""))), "number of function response parts is equal"},
		{"three results of two", contents(user, model.json(), answers(both+","+response("get_time", ""))), "number of function response parts is equal"},
		{"no result", contents(user, model.json(), user), "number of function response parts is equal"},
		{"no result at the end", contents(user, model.json()), "number of function response parts is equal"},
		{"another name", contents(user, model.json(), answers(response("get_weather", "")+","+response("get_day", ""))), "`get_day` is the response to none"},
		{"another id", contents(user, turn(strings.Replace(call.json(), `"functionCall":{`, `"functionCall":{"id":"a",`, 1)), answers(response("get_weather", `,"id":"b"`))), "is the response to none"},
		{"a result without a call", contents(answers(response("get_weather", ""))), "function response turn comes immediately after a function call turn"},
		{"call first", contents(turn(call.json()), answers(response("get_weather", ""))), "function call turn comes immediately after a user turn"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { checkGoogle(t, whole, c.body, 400, "INVALID_ARGUMENT", c.want) })
	}
	checkGoogle(t, dial(t, "gemini", Options{}).to("/v1beta/models/m:generateContent"), kept, 400, "INVALID_ARGUMENT", "Corrupted thought signature.")
	p.to("/v1beta/models/gemini-2.5-flash:generateContent").ok(contents(user, turn(unsigned), answers(response("get_weather", ""))))
}

// checkGoogle posts a request that must be refused.
func checkGoogle(t *testing.T, p *peer, body string, status int, kind, want string) {
	t.Helper()
	response, text, _ := p.post(body)
	answer := parse(t, text)
	if response.StatusCode != status || answer.at("error.status").text() != kind || answer.at("error.code").number() != status || !strings.Contains(answer.at("error.message").text(), want) {
		t.Errorf("status %d, %s; want %s, %q\nto %s", response.StatusCode, text, kind, want, body)
	}
}

func TestGenerateContentChecks(t *testing.T) {
	const user = `"contents":[{"role":"user","parts":[{"text":"hi"}]}]`
	parameters := func(schema string) string {
		return user + `,"tools":[{"functionDeclarations":[{"name":"f","parameters":` + schema + `}]}]`
	}
	content := func(parts string) string { return `"contents":[{"parts":[` + parts + `]}]` }
	cases := []struct{ name, fields, want string }{
		{"no contents", `"contents":[]`, "contents is not specified"},
		{"no parts", `"contents":[{"role":"user","parts":[]}]`, "contents.parts must not be empty"},
		{"role", `"contents":[{"role":"assistant","parts":[{"text":"x"}]}]`, "Please use a valid role: user, model."},
		{"no data", content(`{"thought":true}`), "required oneof field 'data'"},
		{"unknown field", user + `,"messages":[]`, `Unknown name "messages": Cannot find field.`},
		{"unknown field of a part", content(`{"text":"x","cache_control":{}}`), `Unknown name "cache_control" at 'contents[0].parts[0]': Cannot find field.`},
		{"unknown field of the config", user + `,"generationConfig":{"max_tokens":1}`, `Unknown name "max_tokens" at 'generation_config': Cannot find field.`},
		{"a reference", parameters(`{"type":"OBJECT","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{}}`), `Unknown name "$ref" at 'tools[0].function_declarations[0].parameters.properties[0].value': Cannot find field.`},
		{"keyword", parameters(`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`), `Unknown name "additionalProperties" at 'tools[0].function_declarations[0].parameters': Cannot find field.`},
		{"keyword in a list", parameters(`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"const":1}]}}}`), `Unknown name "const" at 'tools[0].function_declarations[0].parameters.properties[0].value.any_of[1]'`},
		{"types", parameters(`{"type":"object","properties":{"a":{"type":["string","null"]}}}`), `Unknown name "type" at 'tools[0].function_declarations[0].parameters.properties[0].value': Proto field is not repeating, cannot start list.`},
		{"no object", parameters(`{"type":"STRING"}`), "should be of type OBJECT"},
		{"schema of the answer", user + `,"generationConfig":{"responseMimeType":"application/json","responseSchema":{"$ref":"x"}}`, `Unknown name "$ref" at 'generation_config.response_schema'`},
		{"schema without a type", user + `,"generationConfig":{"responseSchema":{"type":"OBJECT"}}`, "response_mime_type"},
		{"media type", user + `,"generationConfig":{"responseMimeType":"text/xml"}`, "allowed mimetypes are"},
		{"function name", user + `,"tools":[{"functionDeclarations":[{"name":"1 f"}]}]`, "Invalid function name."},
		{"function twice", user + `,"tools":[{"functionDeclarations":[{"name":"f"},{"name":"f"}]}]`, "Duplicate function declaration found: f"},
		{"two schemas", user + `,"tools":[{"functionDeclarations":[{"name":"f","parameters":{"type":"OBJECT"},"parametersJsonSchema":{"type":"object"}}]}]`, "mutually exclusive"},
		{"mode", user + `,"toolConfig":{"functionCallingConfig":{"mode":"SOME"}}`, "'tool_config.function_calling_config.mode'"},
		{"names without ANY", user + `,` + geminiTools + `,"toolConfig":{"functionCallingConfig":{"mode":"AUTO","allowedFunctionNames":["get_time"]}}`, "can only be set when the mode is ANY"},
		{"unknown function", user + `,` + geminiTools + `,"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["zz"]}}`, "not one of the function declarations"},
		{"level", user + `,"generationConfig":{"thinkingConfig":{"thinkingLevel":"xhigh"}}`, `thinking_level' (type.googleapis.com`},
		{"level and budget", user + `,"generationConfig":{"thinkingConfig":{"thinkingLevel":"LOW","thinkingBudget":1}}`, "only one of thinking budget and thinking level"},
		{"limit", user + `,"generationConfig":{"maxOutputTokens":0}`, "max_output_tokens must be positive"},
		{"picture", content(`{"inlineData":{"mimeType":"image/png","data":"?"}}`), "Base64 decoding failed"},
	}
	p := dial(t, "gemini", Options{Models: []string{"m", "m-tts", "m-embedding"}})
	whole := p.to("/v1beta/models/m:generateContent")
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { checkGoogle(t, whole, "{"+c.fields+"}", 400, "INVALID_ARGUMENT", c.want) })
	}
	checkGoogle(t, p.to("/v1beta/models/m-tts:generateContent"), "{"+user+"}", 400, "INVALID_ARGUMENT", "response modalities")
	checkGoogle(t, p.to("/v1beta/models/other:generateContent"), "{"+user+"}", 404, "NOT_FOUND", "models/other is not found for API version v1beta")
	checkGoogle(t, p.to("/v1beta/models/m-embedding:generateContent"), "{"+user+"}", 404, "NOT_FOUND", "not supported for generateContent")
	checkGoogle(t, p.to("/v1beta/models/m:embedContent"), `{"content":{"parts":[{"text":"x"}]}}`, 404, "NOT_FOUND", "not supported for embedContent")
	checkGoogle(t, whole, askGemini("error 429"), 429, "RESOURCE_EXHAUSTED", "quota")

	// Without alt=sse the error of a stream stands in an array.
	_, text, _ := p.to("/v1beta/models/m:streamGenerateContent").post(askGemini("error 503"))
	if answer := parse(t, text); answer.at("0.error.status").text() != "UNAVAILABLE" || len(answer.list()) != 1 {
		t.Error(text)
	}
}

func TestGeminiKeyModelsAndTokens(t *testing.T) {
	var ids []string
	for i := range 5 {
		ids = append(ids, fmt.Sprintf("gemini-%d", i))
	}
	p := dial(t, "gemini", Options{Key: "right", Models: ids})
	p.to("/v1beta/models/gemini-1:generateContent?key=right").ok(askGemini("hi"))
	checkGoogle(t, p, askGemini("hi"), 403, "PERMISSION_DENIED", "unregistered callers")
	p.header.Set("X-Goog-Api-Key", "wrong")
	checkGoogle(t, p.to("/v1beta/models/gemini-1:generateContent"), askGemini("hi"), 400, "INVALID_ARGUMENT", "API key not valid.")
	p.header.Set("X-Goog-Api-Key", "right")

	var got []string
	for token, pages := "", 0; pages < 10; pages++ {
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, p.base+"/v1beta/models?pageSize=2&pageToken="+token, nil)
		request.Header = p.header
		response, err := p.client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(response.Body)
		response.Body.Close()
		page := parse(t, string(text))
		for _, model := range page.at("models").list() {
			got = append(got, strings.TrimPrefix(tree{model}.at("name").text(), "models/"))
		}
		if token = page.at("nextPageToken").text(); token == "" {
			break
		}
	}
	if strings.Join(got, " ") != strings.Join(ids, " ") {
		t.Errorf("models %v", got)
	}

	prompt := strings.Repeat("quite a few words ", 20)
	count := p.to("/v1beta/models/gemini-1:countTokens").whole(askGemini(prompt)).at("totalTokens").number()
	usage := p.to("/v1beta/models/gemini-1:generateContent").whole(askGemini(prompt)).at("usageMetadata")
	if count < 80 || usage.at("promptTokenCount").number() != count || usage.at("cachedContentTokenCount").number() != 0 {
		t.Errorf("%d tokens, usage %s", count, usage.json())
	}
}

func TestGeminiEmbeddings(t *testing.T) {
	p := dial(t, "gemini", Options{})
	one := p.to("/v1beta/models/gemini-embedding-2:embedContent").whole(`{"content":{"parts":[{"text":"a boat"}]}}`)
	all := p.to("/v1beta/models/gemini-embedding-2:batchEmbedContents").whole(`{"requests":[
		{"model":"models/gemini-embedding-2","content":{"role":"user","parts":[{"text":"a boat"}]},"outputDimensionality":64},
		{"model":"models/gemini-embedding-2","content":{"parts":[{"text":"a house"}]},"output_dimensionality":64}]}`)
	if len(one.at("embedding.values").list()) != googleVector || len(all.at("embeddings").list()) != 2 ||
		len(all.at("embeddings.0.values").list()) != 64 || all.at("embeddings.0").json() == all.at("embeddings.1").json() {
		t.Errorf("%d and %s", len(one.at("embedding.values").list()), all.json())
	}
	for _, c := range [][2]string{
		{`{"requests":[{"model":"models/other","content":{"parts":[{"text":"x"}]}}]}`, "must be the model of the batch"},
		{`{"requests":[]}`, "at least one request"},
		{`{"requests":[{"model":"models/gemini-embedding-2"}]}`, "content is required"},
		{`{"requests":[{"model":"models/gemini-embedding-2","content":{"parts":[{"text":"x"}]},"dimensions":3}]}`, `Unknown name "dimensions" at 'requests[0]'`},
	} {
		checkGoogle(t, p.to("/v1beta/models/gemini-embedding-2:batchEmbedContents"), c[0], 400, "INVALID_ARGUMENT", c[1])
	}
}

func TestVertex(t *testing.T) {
	now := time.Now()
	vertex := Vertex(Options{Now: func() time.Time { return now }})
	p := dialHandler(t, "vertex", vertex)
	key := parse(t, vertex.ServiceAccountKey(p.base))
	path := "/v1beta1/projects/" + key.at("project_id").text() + "/locations/global/publishers/google/models/gemini-3.8-flash:"
	whole := p.to(path + "generateContent")
	checkGoogle(t, whole, askGemini("hi"), 401, "UNAUTHENTICATED", "invalid authentication credentials")

	p.header.Set("Authorization", "Bearer ya29.99999999999.Zm9yZ2Vk")
	checkGoogle(t, whole, askGemini("hi"), 401, "UNAUTHENTICATED", "invalid authentication credentials")

	config := jwt.Config{
		Email: key.at("client_email").text(), PrivateKey: []byte(key.at("private_key").text()), PrivateKeyID: key.at("private_key_id").text(),
		Scopes: []string{cloudScope}, TokenURL: key.at("token_uri").text(),
	}
	token := func(config jwt.Config) (*oauth2.Token, error) {
		return config.TokenSource(t.Context()).Token()
	}
	good, err := token(config)
	if err != nil || time.Until(good.Expiry) < 50*time.Minute {
		t.Fatal(err, good)
	}
	p.header.Set("Authorization", "Bearer "+good.AccessToken)
	answer := whole.whole(askGemini("hi"))
	if answer.at("usageMetadata.trafficType").text() != "ON_DEMAND" || answer.at("candidates.0.finishReason").text() != "STOP" {
		t.Error(answer.json())
	}
	for i, f := range frames(t, strings.ReplaceAll(p.to(path+"streamGenerateContent?alt=sse").ok(askGemini("hi")), "\r\n", "\n")) {
		if usage := f.at("usageMetadata"); i == 0 && usage.json() != `{"trafficType":"ON_DEMAND"}` {
			t.Errorf("first usage %s", usage.json())
		}
	}
	checkGoogle(t, p.to("/v1beta1/projects/other/locations/global/publishers/google/models/m:generateContent"), askGemini("hi"), 404, "NOT_FOUND", "")
	mixed := `{"contents":[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[{"functionCall":{"name":"f"},"thoughtSignature":"` +
		placeholderSignature + `"}]},{"role":"user","parts":[{"functionResponse":{"name":"f","response":{}}},{"text":"x"}]}]}`
	checkGoogle(t, whole, mixed, 400, "INVALID_ARGUMENT", "number of function response parts")
	checkGoogle(t, whole, strings.Replace(strings.Replace(mixed, `,{"text":"x"}`, "", 1), placeholderSignature, "", 1), 400, "INVALID_ARGUMENT", "function call `f` in the 2. content block is missing a `thought_signature`")
	embedded := p.to(strings.Replace(path, "3.8-flash", "embedding-2", 1) + "embedContent").whole(`{"content":{"role":"user","parts":[{"text":"x"}]}}`)
	if len(embedded.at("embedding.values").list()) != googleVector || embedded.at("usageMetadata.promptTokenCount").number() == 0 {
		t.Error(embedded.json()[:100])
	}

	now = now.Add(2 * time.Hour)
	checkGoogle(t, whole, askGemini("hi"), 401, "UNAUTHENTICATED", "")
	if _, err := token(config); err == nil || !strings.Contains(err.Error(), "reasonable timeframe") {
		t.Errorf("an old assertion: %v", err)
	}
	now = now.Add(-2 * time.Hour)
	other := parse(t, Vertex(Options{}).ServiceAccountKey(p.base))
	for want, change := range map[string]func(*jwt.Config){
		"Invalid JWT Signature.": func(c *jwt.Config) { c.PrivateKey = []byte(other.at("private_key").text()) },
		"account not found":      func(c *jwt.Config) { c.Email = "x@y" },
		"audience check":         func(c *jwt.Config) { c.Audience = "https://other/token" },
		"Invalid OAuth scope":    func(c *jwt.Config) { c.Scopes = []string{"openid"} },
		"no key for its header":  func(c *jwt.Config) { c.PrivateKeyID = "x" },
	} {
		wrong := config
		change(&wrong)
		if _, err := token(wrong); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
