package tokens

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"strings"
	"testing"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/internal/images"
)

// The counts are those of OpenAI's o200k_base.
func TestText(t *testing.T) {
	for _, tt := range []struct {
		text    string
		counted int64
	}{
		{"The ferry leaves the harbour at seven and reaches the island before the fog lifts. Bring a coat, two sandwiches and the blue map; the lighthouse keeper will show you the way up.", 37},
		{"Der Fährmann wartet bis sieben Uhr, dann legt das Schiff ab und erreicht die Insel noch vor dem Mittag. Wer zu spät kommt, nimmt das nächste Boot.", 33},
		{"渡船七点离开港口，在雾散之前到达岛上。带上外套、两个三明治和蓝色地图，灯塔看守人会给你指路。", 43},
		{"フェリーは七時に港を出て、霧が晴れる前に島に着きます。上着とサンドイッチを持ってきてください。", 38},
		{"Паром отходит от пристани в семь и прибывает на остров до того, как рассеется туман. Возьмите пальто и синюю карту.", 35},
		{"func (q *queue) push(v int) {\n\tq.mu.Lock()\n\tdefer q.mu.Unlock()\n\tq.items = append(q.items, v)\n\tif len(q.items) > q.max {\n\t\tq.items = q.items[1:]\n\t}\n}\n", 50},
		{`{"type":"object","properties":{"harbour":{"type":"string","description":"Where the ferry leaves"},"seats":{"type":"integer","minimum":1}},"required":["harbour"],"additionalProperties":false}`, 45},
		{"2025-03-14T09:26:53Z WARN [ferry-7] berth 12 occupied, retry 3/5 in 1500 ms (id=7f3a9c21)\n", 46},
		{"", 0},
	} {
		got := (text(tt.text) + 500) / 1000
		if off := got - tt.counted; 5*max(off, -off) > tt.counted {
			t.Errorf("%.40q: estimated %d, counted %d", tt.text, got, tt.counted)
		}
	}
}

func say(text string) []mmsp.Message { return []mmsp.Message{mmsp.UserMessage(mmsp.Text(text))} }

// Each of these costs more with every model; what is no part of a prompt costs nothing.
func TestWhatCounts(t *testing.T) {
	system, seed := "You are brief.", int64(7)
	schema := json.RawMessage(`{"type":"object","properties":{"harbour":{"type":"string"}}}`)
	call, result := mmsp.ToolCall("c1", "look", `{"harbour":"north"}`), mmsp.ToolResult("c1", "Two ships.")
	thought := mmsp.Thinking("The north harbour is the one that they mean.")
	under := func(items ...mmsp.Item) []mmsp.Message {
		return []mmsp.Message{say("Hi")[0], mmsp.AssistantMessage(append(items, call)...), mmsp.UserMessage(result)}
	}
	sealed := mmsp.Item{Type: mmsp.ThinkingDone, Fidelity: mmsp.Fidelity(`{"encrypted_content":"` + strings.Repeat("x", 2000) + `"}`)}
	for _, model := range []string{"claude-opus-5-5", "claude-sonnet-4-5", "claude-3-7-sonnet", "gpt-4o", "gpt-5-mini", "gpt-6-astra", "openai/gpt-oss-120b", "gemini-2.0-flash", "gemini-2.5-pro", "gemini-3.8-flash", "grok-4", "deepseek-v4", "deepseek-chat", "glm-5", "kimi-k2.5", "MiniMax-M3", "mistral-small", "mixtral-8x7b", "qwen3", "qwen3-coder", "llama-3.3", "sonar", "whatever", ""} {
		base := Estimate(say("Hi"), nil, model)
		if base < 1 || base != Estimate(say("Hi"), &mmsp.Config{}, model) {
			t.Errorf("%s: Hi is %d", model, base)
		}
		for name, n := range map[string]int64{
			"text":          Estimate(say("Hi there, where are the ships?"), nil, model),
			"a system text": Estimate(say("Hi"), &mmsp.Config{SystemPrompt: &system}, model),
			"a tool":        Estimate(say("Hi"), &mmsp.Config{Tools: []mmsp.Tool{{Name: "look", Description: "Looks at the harbour.", Parameters: schema}}}, model),
			"a picture":     Estimate([]mmsp.Message{mmsp.UserMessage(mmsp.Text("Hi"), mmsp.ImageURL("https://pictures.example/a.png"))}, nil, model),
			"a document":    Estimate([]mmsp.Message{mmsp.UserMessage(mmsp.Text("Hi"), mmsp.InlineData([]byte("%PDF-1.4 /Type /Page /Type/Pages"), "application/pdf", ""))}, nil, model),
			"sound":         Estimate([]mmsp.Message{mmsp.UserMessage(mmsp.Text("Hi"), mmsp.InlineData(make([]byte, 100_000), "audio/mpeg", ""))}, nil, model),
			"a call":        Estimate(under(), nil, model),
		} {
			if n <= base {
				t.Errorf("%s: with %s the prompt costs %d, without %d", model, name, n, base)
			}
		}
		if Estimate(under(thought), nil, model) <= Estimate(under(), nil, model) {
			t.Errorf("%s: thinking of the turn under way costs nothing", model)
		}
		if Estimate(under(sealed), nil, model) <= Estimate(under(), nil, model) {
			t.Errorf("%s: sealed thinking costs nothing", model)
		}
		past := append(under(thought), say("And now?")...)
		without := append(under(), say("And now?")...)
		if costs := Estimate(past, nil, model) > Estimate(without, nil, model); costs != familyOf(model).keepsThinking {
			t.Errorf("%s: thinking of an earlier turn costs: %v", model, costs)
		}
		if n := Estimate(say("Hi"), &mmsp.Config{Seed: &seed, MaxTokens: &seed, User: "u", Metadata: json.RawMessage(`{"a":"b"}`)}, model); n != base {
			t.Errorf("%s: parameters cost %d", model, n-base)
		}
	}
	loose := json.RawMessage("{\n  \"type\": \"object\",\n  \"properties\": {\n    \"harbour\": {\n      \"type\": \"string\"\n    }\n  }\n}\n")
	with := func(parameters json.RawMessage) int64 {
		return Estimate(nil, &mmsp.Config{Tools: []mmsp.Tool{{Name: "look", Parameters: parameters}}}, "gpt-4o")
	}
	if with(schema) != with(loose) {
		t.Errorf("the layout of a schema costs: %d, %d", with(schema), with(loose))
	}
}

func TestFamilies(t *testing.T) {
	for model, name := range map[string]string{
		"claude-opus-4-8": "opus-4-8", "anthropic/claude-opus-4.7": "opus-4.7", "claude-sonnet-5-5": "claude-sonnet-5", "Claude-Haiku-4-5": "claude-haiku-4",
		"us.anthropic.claude-sonnet-4-5-20250929-v1:0": "claude-sonnet-4-5", "claude-sonnet-4-20250514": "claude-sonnet-4-2", "claude-opus-4-1": "claude-opus-4-1", "claude-opus-4-5": "claude-opus-4-",
		"models/gemini-2.5-flash": "gemini-2", "gemini-4-pro": "gemini", "openai.gpt-oss-20b": "gpt-oss", "gpt-5-mini-2025": "gpt-5-mini", "gpt-6-astra": "gpt-6", "o3": "", "gpt-4o": "",
		"deepseek-ai/DeepSeek-V4": "deepseek-v4", "Qwen/Qwen3-Coder-480B": "qwen3-coder", "moonshotai/Kimi-K2": "kimi",
	} {
		if names := familyOf(model).names; !strings.Contains(" "+strings.Join(names, " ")+" ", " "+name+" ") {
			t.Errorf("%s is of %q", model, names)
		}
	}
}

func png(width, height uint32) []byte {
	data := []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\x0dIHDR")
	return append(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(data, width), height), make([]byte, 40)...)
}

// The numbers are the vendors' own examples, where they give one.
func TestPictures(t *testing.T) {
	for _, tt := range []struct {
		model         string
		width, height uint32
		want          int64
	}{
		{"claude-sonnet-4-5", 200, 200, 54},
		{"claude-sonnet-4-5", 1000, 1000, 1334},
		{"claude-sonnet-4-5", 8000, 8000, 1600},
		{"claude-opus-5-5", 8000, 8000, 4784},
		{"gpt-4o", 1024, 1024, 765},
		{"gpt-4o", 2048, 4096, 1105},
		{"gpt-4.1-mini", 64, 32, 4},
		{"gemini-2.5-pro", 384, 384, 258},
		{"gemini-2.5-pro", 960, 540, 516},
		{"gemini-3.8-flash", 10, 10, 1120},
		{"claude-sonnet-4-5", 1<<31 - 1, 1<<31 - 1, 1600},
		{"gpt-5-nano", 1<<31 - 1, 1<<31 - 1, 3072},
		{"gpt-4o", 1<<31 - 1, 1, 765},
		{"qwen3-vl", 1<<31 - 1, 1<<31 - 1, 16384},
	} {
		url := images.DataURL("image/png", png(tt.width, tt.height))
		base := Estimate([]mmsp.Message{mmsp.UserMessage()}, nil, tt.model)
		for name, item := range map[string]mmsp.Item{
			"by URL": mmsp.ImageURL(url), "inline": mmsp.InlineData(png(tt.width, tt.height), "image/png", ""),
		} {
			if got := Estimate([]mmsp.Message{mmsp.UserMessage(item)}, nil, tt.model) - base; got != tt.want {
				t.Errorf("%s %dx%d %s: %d, want %d", tt.model, tt.width, tt.height, name, got, tt.want)
			}
		}
		bare := Estimate([]mmsp.Message{mmsp.UserMessage(mmsp.ToolResult("c", ""))}, nil, tt.model)
		if got := Estimate([]mmsp.Message{mmsp.UserMessage(mmsp.ToolResult("c", "", url))}, nil, tt.model) - bare; got != tt.want {
			t.Errorf("%s %dx%d in a result: %d, want %d", tt.model, tt.width, tt.height, got, tt.want)
		}
	}
	base := Estimate([]mmsp.Message{mmsp.UserMessage()}, nil, "gpt-4o")
	for url, want := range map[string]int64{
		"https://pictures.example/a.png":                      765,
		"data:image/png;base64,AAAA":                          765,
		"data:image/png,plain":                                765,
		images.DataURL("application/pdf", []byte("no PDF")):   800,
		images.DataURL("text/plain", []byte("seven ferries")): 2,
	} {
		if got := Estimate([]mmsp.Message{mmsp.UserMessage(mmsp.ImageURL(url))}, nil, "gpt-4o") - base; got != want {
			t.Errorf("%s: %d, want %d", url, got, want)
		}
	}
	low := mmsp.Item{Type: mmsp.ImageURLDone, ImageURL: images.DataURL("image/png", png(4000, 4000)), Detail: "low"}
	if got := Estimate([]mmsp.Message{mmsp.UserMessage(low)}, nil, "gpt-4o") - base; got != 255 {
		t.Errorf("at low detail: %d", got)
	}
}

func TestPages(t *testing.T) {
	for data, want := range map[string]int64{
		"": 0, "/Type /Page": 1, "/Type/Page /Type  /Page\n/Type /Pages /Type /Catalog": 2, "/Type /Pages": 0, "/Type": 0,
	} {
		if got := pages([]byte(data)); got != want {
			t.Errorf("%q: %d", data, got)
		}
	}
}

// A longer text never costs less.
func FuzzText(f *testing.F) {
	f.Add("The harbour's 3 ferries: getWeather(42)\n\n  – ünïcode 渡船 🎉 \xff\xfe")
	f.Fuzz(func(t *testing.T, s string) {
		before := int64(0)
		for i := range len(s) + 1 {
			n := text(s[:i])
			if n < before || n > int64(i)*2500 {
				t.Fatalf("%q costs %d, its beginning %d", s[:i], n, before)
			}
			before = n
		}
	})
}

func FuzzEstimate(f *testing.F) {
	f.Add("data:image/jpeg;base64,/9j/4AAQ", []byte("%PDF /Type /Page"), `{"encrypted_content":1}`, "claude-opus-5-5")
	f.Fuzz(func(t *testing.T, url string, data []byte, raw, model string) {
		messages := []mmsp.Message{
			mmsp.UserMessage(mmsp.ImageURL(url), mmsp.InlineData(data, url, ""), mmsp.InlineData(data, "application/pdf", ""), mmsp.InlineData(data, "image/png", "")),
			mmsp.AssistantMessage(mmsp.Item{Type: mmsp.ThinkingDone, Fidelity: mmsp.Fidelity(raw)}, mmsp.Item{Type: mmsp.ToolCallDone, Arguments: raw, Fidelity: mmsp.Fidelity(raw)}),
			mmsp.UserMessage(mmsp.ToolResult("c", url, url)),
		}
		config := &mmsp.Config{Tools: []mmsp.Tool{{Name: url, Parameters: json.RawMessage(raw)}}}
		n := Estimate(messages, config, model)
		if n < 0 || n != Estimate(messages, config, model) {
			t.Errorf("%d", n)
		}
	})
}

func BenchmarkEstimate(b *testing.B) {
	const line = "The ferry leaves the harbour at seven; getWeather(\"north\", 42) says 渡船七点离开港口.\n"
	messages := say(strings.Repeat(line, 1<<20/len(line)))
	b.SetBytes(1 << 20)
	b.ReportAllocs()
	for b.Loop() {
		Estimate(messages, nil, "claude-opus-5-5")
	}
}

// Of a large prompt nothing is copied.
func TestEstimateAllocates(t *testing.T) {
	messages := []mmsp.Message{mmsp.UserMessage(mmsp.Text(string(bytes.Repeat([]byte("a 渡 1\n"), 100_000))))}
	if n := testing.AllocsPerRun(3, func() { Estimate(messages, nil, "gpt-4o") }); n > 1 {
		t.Errorf("%v allocations", n)
	}
}
