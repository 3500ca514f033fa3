package anthropic

import (
	"encoding/json"
	"testing"
)

func TestEncode(t *testing.T) {
	table := []struct {
		name    string
		request Request
		want    string
	}{
		{
			"least",
			Request{Model: "m", MaxTokens: 1, Stream: true, Messages: []Message{}},
			`{"model":"m","max_tokens":1,"stream":true,"messages":[]}`,
		},
		{
			"all fields in their order",
			Request{
				Model: "m", MaxTokens: 2, Temperature: new(0.5), Thinking: &Thinking{Type: "adaptive", Display: "omitted"},
				OutputConfig: &OutputConfig{Effort: "low"}, Speed: "fast", CacheControl: &CacheControl{Type: "ephemeral", TTL: "1h"},
				Stream: true, Tools: &[]Tool{}, ToolChoice: &ToolChoice{Type: "tool", Name: "f"}, System: "s",
				Messages: []Message{{Role: "user", Content: []Block{{Type: "text", Text: "t"}}}},
			},
			`{"model":"m","max_tokens":2,"temperature":0.5,"thinking":{"type":"adaptive","display":"omitted"},"output_config":{"effort":"low"},` +
				`"speed":"fast","cache_control":{"type":"ephemeral","ttl":"1h"},"stream":true,"tools":[],"tool_choice":{"type":"tool","name":"f"},` +
				`"system":"s","messages":[{"role":"user","content":[{"type":"text","text":"t"}]}]}`,
		},
		{
			"for Bedrock",
			Request{
				AnthropicVersion: BedrockVersion, AnthropicBeta: []string{"a", "b"}, MaxTokens: 2,
				Messages: []Message{{Role: "user", Content: []Block{{Type: "text", Text: "t", CacheControl: &CacheControl{Type: "ephemeral", TTL: "5m"}}}}},
			},
			`{"anthropic_version":"bedrock-2023-05-31","anthropic_beta":["a","b"],"max_tokens":2,` +
				`"messages":[{"role":"user","content":[{"type":"text","text":"t","cache_control":{"type":"ephemeral","ttl":"5m"}}]}]}`,
		},
		{
			"markup and other scripts stay as they are",
			Request{System: "<é> & \u2028", Messages: []Message{}},
			`{"max_tokens":0,"system":"<é> & \u2028","messages":[]}`,
		},
	}
	for _, row := range table {
		t.Run(row.name, func(t *testing.T) {
			got, err := row.request.Encode()
			if err != nil || string(got) != row.want {
				t.Errorf("error %v\n got %s\nwant %s", err, got, row.want)
			}
		})
	}
}

func TestEncodeTool(t *testing.T) {
	table := []struct {
		name string
		tool Tool
		want string
	}{
		{"name alone", Tool{Name: "f"}, `{"name":"f"}`},
		{"empty rest", Tool{Name: "f", Extra: json.RawMessage(` { } `)}, `{"name":"f"}`},
		{
			"order of keys, numbers and markup",
			Tool{Name: "f", Description: "<d>", InputSchema: json.RawMessage(`{"b": 1e400, "a": {}}`)},
			`{"name":"f","description":"<d>","input_schema":{"b":1e400,"a":{}}}`,
		},
		{
			"further keys",
			Tool{Name: "f", InputSchema: json.RawMessage(`{}`), Extra: json.RawMessage("{ \"strict\": true,\n\"x\": [1] }\n")},
			`{"name":"f","input_schema":{},"strict":true,"x":[1]}`,
		},
	}
	for _, row := range table {
		t.Run(row.name, func(t *testing.T) {
			body, err := (&Request{Model: "m", MaxTokens: 1, Stream: true, Tools: &[]Tool{row.tool}, Messages: []Message{}}).Encode()
			want := `{"model":"m","max_tokens":1,"stream":true,"tools":[` + row.want + `],"messages":[]}`
			if err != nil || string(body) != want {
				t.Errorf("error %v\n got %s\nwant %s", err, body, want)
			}
		})
	}
}
