// Package live asks real providers. A row of the table runs where the variable of its key is set and is skipped
// elsewhere; -run chooses among them, and -short skips them all:
//
//	OPENAI_API_KEY=… go test ./live -run 'TestLive/openai-official/gpt-6.1-sol' -v
//
// TestSimulated runs the same checks against the simulated providers, so that they are tested without a key.
package live

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/auto"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ability is what a model can do.
type ability uint

const (
	text ability = 1 << iota
	thinking
	tools
	images
	embeddings
	imagesOut
	audioOut
	lists // the endpoint lists its models
)

// target is a model at an endpoint.
type target struct {
	clientType, model string
	keyVar, urlVar    string // variables that hold the key and, where it is another, the base URL
	url               string // without that variable; empty: the vendor's own
	can               ability
}

// chats is what most models can.
const chats = text | thinking | tools | lists

// availableModels is the one table of what is tested (AVAILABLE_MODELS in the other implementations).
var availableModels = []target{
	{"openai-official", "gpt-6.1-sol", "OPENAI_API_KEY", "OPENAI_BASE_URL", "", chats | images},
	{"openai-official", "gpt-5.5", "OPENAI_API_KEY", "OPENAI_BASE_URL", "", chats | images},
	{"openai-official", "text-embedding-3-large", "OPENAI_API_KEY", "OPENAI_BASE_URL", "", embeddings | lists},
	{"anthropic-official", "claude-sonnet-5-5", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "", chats | images},
	{"anthropic-official", "claude-sonnet-4-6", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "", chats | images},
	// The key is that of an account: ACCESS,SECRET.
	{"anthropic-official", "anthropic.claude-sonnet-5-5-v1:0", "BEDROCK_API_KEY", "BEDROCK_BASE_URL", "bedrock://us-east-1", (chats | images) &^ lists},
	{"google-official", "gemini-3.8-flash", "GEMINI_API_KEY", "GEMINI_BASE_URL", "", chats | images},
	{"google-official", "gemini-3.1-flash-image", "GEMINI_API_KEY", "GEMINI_BASE_URL", "", imagesOut | lists},
	{"google-official", "gemini-3.1-flash-tts-preview", "GEMINI_API_KEY", "GEMINI_BASE_URL", "", audioOut | lists},
	{"google-official", "gemini-embedding-2", "GEMINI_API_KEY", "GEMINI_BASE_URL", "", embeddings | lists},
	{"zai-official", "glm-5.3", "ZAI_API_KEY", "ZAI_BASE_URL", "", chats},
	{"zai-official", "glm-5.3-flash", "ZAI_API_KEY", "ZAI_BASE_URL", "", chats | images},
	{"moonshot-official", "kimi-k3", "MOONSHOT_API_KEY", "MOONSHOT_BASE_URL", "", chats | images},
	{"moonshot-official", "kimi-k2.6", "MOONSHOT_API_KEY", "MOONSHOT_BASE_URL", "", chats | images},
	{"deepseek-official", "deepseek-flash", "DEEPSEEK_API_KEY", "DEEPSEEK_BASE_URL", "", chats | images},
	{"deepseek-official", "deepseek-v4-pro", "DEEPSEEK_API_KEY", "DEEPSEEK_BASE_URL", "", chats},
	{"minimax-official", "MiniMax-M3", "MINIMAX_API_KEY", "MINIMAX_BASE_URL", "", chats | images},
	{"openai-responses", "openai/gpt-6.1-sol", "OPENROUTER_API_KEY", "OPENROUTER_BASE_URL", "https://openrouter.ai/api/v1", chats | images},
	{"openai-responses", "anthropic/claude-sonnet-5.5", "OPENROUTER_API_KEY", "OPENROUTER_BASE_URL", "https://openrouter.ai/api/v1", chats | images},
	{"openai-chat", "Qwen/Qwen3.8-27B", "SILICONFLOW_API_KEY", "SILICONFLOW_BASE_URL", "https://api.siliconflow.cn/v1", chats | images},
	{"openai-chat-vllm-adapter", "Qwen/Qwen3.6-35B-A3B", "VLLM_API_KEY", "VLLM_BASE_URL", "http://127.0.0.1:8000/v1", chats | images},
	{"openai-embedding", "qwen/qwen3-embedding-4b", "OPENROUTER_API_KEY", "OPENROUTER_BASE_URL", "https://openrouter.ai/api/v1", embeddings},
	{"ant-messages", "claude-sonnet-5-5", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "", chats | images},
	{"google-genai", "gemini-3.8-flash", "GEMINI_API_KEY", "GEMINI_BASE_URL", "", chats | images},
	{"google-genai", "gemini-3.1-flash-image", "GEMINI_API_KEY", "GEMINI_BASE_URL", "", imagesOut | lists},
	{"google-genai", "gemini-3.1-flash-tts-preview", "GEMINI_API_KEY", "GEMINI_BASE_URL", "", audioOut | lists},
	{"google-genai", "gemini-embedding-2", "GEMINI_API_KEY", "GEMINI_BASE_URL", "", embeddings | lists},
	{"mmsp", "gpt-6.1-sol", "MMSP_API_KEY", "MMSP_BASE_URL", "", chats | images},
}

// session is a target with the client that speaks to it.
type session struct {
	*target
	client *mmsp.Client
	sees   string // a pattern of what is said of the picture
	silent bool   // of usage, as nobody asked for it
}

// checks are what is tested of a target that can do what they need.
var checks = []struct {
	name  string
	needs ability
	run   func(*testing.T, *session)
}{
	{"text", text, checkText},
	{"thinking and a tool", thinking | tools, checkTool},
	{"parallel calls", tools, checkParallel},
	{"an image", images, checkImage},
	{"embeddings", embeddings, checkEmbeddings},
	{"an image out", imagesOut, checkImageOut},
	{"speech", audioOut, checkSpeech},
	{"the list of models", lists, checkList},
}

func (s *session) check(t *testing.T) {
	for _, c := range checks {
		if s.can&c.needs == c.needs {
			t.Run(c.name, func(t *testing.T) { c.run(t, s) })
		}
	}
}

// TestLive asks the providers whose keys are there.
func TestLive(t *testing.T) {
	if testing.Short() {
		t.Skip("real providers are not asked with -short")
	}
	for _, to := range availableModels {
		t.Run(to.clientType+"/"+to.model, func(t *testing.T) {
			key := os.Getenv(to.keyVar)
			if key == "" {
				t.Skipf("set %s to ask %s through %s", to.keyVar, to.model, to.clientType)
			}
			client, err := auto.New(to.model, mmsp.Options{
				ClientType: to.clientType, APIKey: mmsp.NewSecret(key), BaseURL: cmp.Or(os.Getenv(to.urlVar), to.url),
			})
			if err != nil {
				t.Fatal(err)
			}
			(&session{&to, client, "(?i)red", false}).check(t)
		})
	}
}

// TestTable: every client type is tested, and of every model that can do something a check asks for it.
func TestTable(t *testing.T) {
	for _, typ := range auto.Types() {
		if !slices.ContainsFunc(availableModels, func(to target) bool { return to.clientType == typ.Name }) {
			t.Errorf("no model of %s", typ.Name)
		}
		for _, to := range availableModels {
			if official, ok := auto.Family(to.model); to.clientType == typ.Name && ok && typ.Vendor != "" && to.keyVar != typ.KeyVar {
				t.Errorf("%s of %s has its key in %s", to.model, official.Name, to.keyVar)
			}
		}
	}
	var all, tested ability
	for _, to := range availableModels {
		all |= to.can
	}
	for _, c := range checks {
		tested |= c.needs
	}
	if all != tested {
		t.Errorf("the models can %b, checks need %b", all, tested)
	}
}

// ask streams one answer, judges its grammar and returns it as a message of the history.
func (s *session) ask(t *testing.T, history []mmsp.Message, config *mmsp.Config) mmsp.Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	var grammar mmsp.GrammarChecker
	answer := mmsp.AssistantMessage()
	for event, err := range s.client.StreamingResponse(ctx, history, config) {
		if err != nil {
			t.Fatal(err)
		}
		if err := grammar.Event(&event); err != nil {
			t.Fatal(err)
		}
		switch {
		case event.Type == mmsp.EventStop:
			answer.Usage, answer.FinishReason, answer.StopDetail = event.Usage, event.FinishReason, event.StopDetail
		case !event.Item.Type.IsDelta():
			answer.ContentItems = append(answer.ContentItems, event.Item)
		}
	}
	if err := grammar.End(); err != nil {
		t.Fatal(err)
	}
	return answer
}

func has(m *mmsp.Message, kind mmsp.ItemType) bool {
	return slices.ContainsFunc(m.ContentItems, func(item mmsp.Item) bool { return item.Type == kind })
}

func said(text string) mmsp.Message { return mmsp.UserMessage(mmsp.Text(text)) }

// weather is the one tool.
func weather(level mmsp.ThinkingLevel) *mmsp.Config {
	config := &mmsp.Config{ThinkingLevel: level, Tools: []mmsp.Tool{{
		Name: "weather", Description: "Tells the weather of a city, one city a call.",
		Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`),
	}}}
	if level != "" {
		config.ThinkingSummary = new(true)
	}
	return config
}

func checkText(t *testing.T, s *session) {
	config := &mmsp.Config{SystemPrompt: new("You are brief.")}
	answer := s.ask(t, []mmsp.Message{said("Reply with the word ready.")}, config)
	if !strings.Contains(strings.ToLower(answer.Text()), "ready") || answer.FinishReason != mmsp.FinishStop {
		t.Errorf("%q, %s", answer.Text(), answer.FinishReason)
	}
	if (answer.Usage.Total() == 0) != s.silent {
		t.Errorf("%d tokens", answer.Usage.Total())
	}
}

// checkTool sends the thinking back with the call that it led to, twice.
func checkTool(t *testing.T, s *session) {
	config := weather(mmsp.ThinkingHigh)
	history := []mmsp.Message{said("Think about which of Oslo and Lisbon lies farther north, then call the weather tool once, for that city.")}
	answer := s.ask(t, history, config)
	calls := answer.ToolCalls()
	if !has(&answer, mmsp.ThinkingDone) || len(calls) == 0 || answer.FinishReason != mmsp.FinishToolCall {
		t.Fatalf("%d items, %d calls, %s", len(answer.ContentItems), len(calls), answer.FinishReason)
	}
	var arguments struct{ City string }
	if err := calls[0].DecodeArguments(&arguments); err != nil || arguments.City == "" || calls[0].Name != "weather" {
		t.Errorf("%s(%s): %v", calls[0].Name, calls[0].Arguments, err)
	}
	results := mmsp.UserMessage()
	for _, call := range calls {
		results.ContentItems = append(results.ContentItems, mmsp.ToolResult(call.ToolCallID, "17 degrees and hail"))
	}
	history = append(history, answer, results)
	answer = s.ask(t, history, config)
	if !strings.Contains(answer.Text(), "17") || len(answer.ToolCalls()) > 0 {
		t.Fatalf("after the result: %q, %d calls", answer.Text(), len(answer.ToolCalls()))
	}
	history = append(history, answer, said("Was there hail?"))
	if answer = s.ask(t, history, config); !strings.Contains(answer.Text(), "hail") && !strings.Contains(strings.ToLower(answer.Text()), "yes") {
		t.Errorf("after one more turn: %q", answer.Text())
	}
}

func checkParallel(t *testing.T, s *session) {
	config := weather("")
	history := []mmsp.Message{said("Call the weather tool for Oslo and for Lisbon in parallel, both in one turn, before anything else.")}
	answer := s.ask(t, history, config)
	calls := answer.ToolCalls()
	if len(calls) < 2 || calls[0].ToolCallID == calls[1].ToolCallID && s.clientType != "google-genai" { // which names calls without ids
		t.Fatalf("%d calls: %v", len(calls), calls)
	}
	results := mmsp.UserMessage()
	for i, call := range calls {
		results.ContentItems = append(results.ContentItems, mmsp.ToolResult(call.ToolCallID, fmt.Sprintf("%d degrees", 31+i)))
	}
	history = append(history, answer, results)
	answer = s.ask(t, history, config)
	for i := range calls {
		if !strings.Contains(answer.Text(), fmt.Sprint(31+i)) {
			t.Errorf("result %d is not in %q", i, answer.Text())
		}
	}
}

func checkImage(t *testing.T, s *session) {
	picture := image.NewRGBA(image.Rect(0, 0, 64, 64))
	draw.Draw(picture, picture.Bounds(), image.NewUniform(color.RGBA{220, 10, 10, 255}), image.Point{}, draw.Src)
	var file bytes.Buffer
	if err := png.Encode(&file, picture); err != nil {
		t.Fatal(err)
	}
	url := "data:image/png;base64," + base64.StdEncoding.EncodeToString(file.Bytes())
	answer := s.ask(t, []mmsp.Message{mmsp.UserMessage(mmsp.Text("Which colour fills this image? Answer with one word."), mmsp.ImageURL(url))}, nil)
	if !regexp.MustCompile(s.sees).MatchString(answer.Text()) {
		t.Errorf("%q", answer.Text())
	}
}

func checkEmbeddings(t *testing.T, s *session) {
	answer := s.ask(t, []mmsp.Message{said("a boat on the sea"), said("the square root of two")}, nil)
	if len(answer.ContentItems) != 2 || answer.FinishReason != mmsp.FinishStop {
		t.Fatalf("%d items, %s", len(answer.ContentItems), answer.FinishReason)
	}
	first, second := answer.ContentItems[0].Embedding, answer.ContentItems[1].Embedding
	if len(first) < 64 || len(first) != len(second) || slices.Equal(first, second) || slices.Max(first) <= 0 {
		t.Errorf("vectors of %d and %d", len(first), len(second))
	}
}

// checkImageOut asks for a picture and for a change of it, which sends it back.
func checkImageOut(t *testing.T, s *session) {
	history := []mmsp.Message{said("Paint a red boat.")}
	for _, next := range []string{"Paint it again, in blue.", ""} {
		answer := s.ask(t, history, nil)
		at := slices.IndexFunc(answer.ContentItems, func(item mmsp.Item) bool { return item.Type == mmsp.InlineDataDone })
		if at < 0 || !strings.HasPrefix(answer.ContentItems[at].MimeType, "image/") || len(answer.ContentItems[at].Data) == 0 {
			t.Fatalf("%d items, %s", len(answer.ContentItems), answer.FinishReason)
		}
		history = append(history, answer, said(next))
	}
}

func checkSpeech(t *testing.T, s *session) {
	answer := s.ask(t, []mmsp.Message{said("Say cheerfully: have a good day!")}, nil)
	if len(answer.ContentItems) != 1 || !strings.HasPrefix(answer.ContentItems[0].MimeType, "audio/") || len(answer.ContentItems[0].Data) < 1000 {
		t.Errorf("%d items, %s", len(answer.ContentItems), answer.FinishReason)
	}
}

func checkList(t *testing.T, s *session) {
	ids, err := s.client.ListModels(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(ids, func(id string) bool { return strings.EqualFold(strings.TrimPrefix(id, "models/"), s.model) }) {
		t.Errorf("%s is not among %d: %.300q", s.model, len(ids), ids)
	}
}
