package gateway_test

import (
	"fmt"
	"strings"
	"testing"
)

// shown says where callers of a dialect put pictures: the fields of a body, its turns alone, with the URL or the base64 of
// one, and the path of that.
var shown = map[string][]struct{ fields, path string }{
	"responses": {
		{`"input":[{"role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_image","image_url":URL}]}]`, "input[0].content[1].image_url"},
		{`"input":[{"role":"user","content":[{"type":"input_image","source":{"type":"url","url":URL}}]}]`, "input[0].content[0].source.url"},
		{`"input":[{"role":"user","content":[{"type":"input_image","source":{"type":"base64","media_type":"image/png","data":BASE64}}]}]`, "input[0].content[0].source.data"},
		{`"input":[{"type":"function_call","call_id":"c","name":"look","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":[{"type":"input_image","image_url":"data:image/png;base64,iVBORw=="},{"type":"input_image","image_url":URL}]}]`, "input[1].output[1].image_url"},
	},
	"chatCompletions": {
		{`"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":URL}}]}]`, "messages[0].content[0].image_url.url"},
		{`"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":URL}]}]`, "messages[0].content[1].image_url"},
		{`"messages":[{"role":"assistant","tool_calls":[{"id":"c","function":{"name":"look","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":URL}}]}]`, "messages[1].content[1].image_url.url"},
		{`"messages":[{"role":"user","content":"a"},{"role":"assistant","images":[{"image_url":{"url":"data:image/png;base64,iVBORw=="}},{"image_url":{"url":"data:image/png;base64,BASE64"}}]}]`, "messages[1].images[1].image_url.url"},
	},
	"messages": {
		{`"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":URL}}]}]`, "messages[0].content[0].source.url"},
		{`"messages":[{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":BASE64}}]}]`, "messages[0].content[0].source.data"},
		{`"messages":[{"role":"user","content":[{"type":"document","source":{"type":"content","content":[{"type":"text","text":"a"},{"type":"image","source":{"type":"url","url":URL}}]}}]}]`, "messages[0].content[0].source.content[1].source.url"},
		{`"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"look","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw=="}},{"type":"image","source":{"type":"url","url":URL}}]}]}]`, "messages[1].content[0].content[1].source.url"},
		{`"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"look","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"document","source":{"type":"content","content":[{"type":"image","source":{"type":"url","url":URL}}]}}]}]}]`, "messages[1].content[0].content[0].source.content[0].source.url"},
	},
	"generateContent": {
		{`"contents":[{"parts":[{"text":"a"},{"fileData":{"mimeType":"image/png","fileUri":URL}}]}]`, "contents[0].parts[1].fileData.fileUri"},
		{`"contents":[{"parts":[{"inlineData":{"mimeType":"image/png","data":BASE64}}]}]`, "contents[0].parts[0].inlineData.data"},
		{`"contents":[{"role":"model","parts":[{"functionCall":{"name":"look"}}]},{"parts":[{"functionResponse":{"name":"look","parts":[{"inlineData":{"mimeType":"image/png","data":"iVBORw=="}},{"fileData":{"mimeType":"image/png","fileUri":URL}}]}}]}]`, "contents[1].parts[0].functionResponse.parts[1].fileData.fileUri"},
		{`"contents":[{"role":"model","parts":[{"functionCall":{"name":"look"}}]},{"parts":[{"functionResponse":{"name":"look","parts":[{"inlineData":{"mimeType":"image/png","data":BASE64}}]}}]}]`, "contents[1].parts[0].functionResponse.parts[0].inlineData.data"},
	},
}

// TestPicturesAreRefused: what is no picture's URL, and an address that the model's client may not fetch from, is a 400 at
// the field that holds it, wherever pictures stand.
func TestPicturesAreRefused(t *testing.T) {
	t.Parallel()
	row := chatRow("m", "http://127.0.0.1:1")
	row.ClientType = "google-genai" // which fetches
	s := start(t, everywhere(table(row)))
	for i := range dialects {
		d := &dialects[i]
		for _, place := range shown[d.endpoint] {
			bad := []string{"http://127.0.0.1/x", "http://", "é", "data:,x", "data:;base64,iVBORw==", "data:image/png;base64,!!!", "data:image/png;base64,AAAA!!!!"}
			if strings.Contains(place.fields, "BASE64") {
				bad = []string{"!!!", "AAAA!!!!", "é", ""}
			}
			for _, text := range bad {
				fields := strings.NewReplacer("URL", quote(text), `,BASE64"`, ","+text+`"`, "BASE64", quote(text)).Replace(place.fields)
				got := s.send(s.request("POST", d.path("m", false), fmt.Sprintf(`{"model":"m","max_tokens":20,%s}`, fields)))
				e := d.failure(t, got)
				if got.status != 400 || e.param != place.path && !strings.Contains(e.message, place.path+" ") && !strings.Contains(e.message, place.path+":") {
					t.Errorf("%s of %s: %d %s\nwant the place %s", d.endpoint, fields, got.status, got.body, place.path)
				}
			}
		}
	}
}
