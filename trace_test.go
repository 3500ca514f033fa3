package mmsp_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/prism-shadow/mmsp-go"
)

// filesIn lists the files below a folder, those of folders with a slash.
func filesIn(t *testing.T, dir string) (names []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			name, _ := filepath.Rel(dir, path)
			names = append(names, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestTracerWritesAPair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // at 2000-01-01T00:00:00Z
		dir := filepath.Join(t.TempDir(), "made", "later")
		history := []Message{
			{Role: RoleUser, ContentItems: []Item{Text("<hi> ü")}, CreatedAt: 1800000000000},
			{
				Role: RoleAssistant, ContentItems: []Item{ToolCall("c1", "f", `{"n":9007199254740993,"a":[]}`)}, CreatedAt: 1800000000900,
				Usage: &Usage{CachedTokens: new(int64(0)), PromptTokens: new(int64(1)), ResponseTokens: new(int64(1))}, FinishReason: FinishToolCall,
			},
		}
		time.Sleep(time.Millisecond)
		if err := NewTracer(dir).Save("demo/one", "gpt-5.5", history, &Config{TraceID: "demo/one", MaxTokens: new(int64(5))}); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(filepath.Join(dir, "demo", "one.json"))
		if err != nil {
			t.Fatal(err)
		}
		want := `{
  "history": [
    {
      "role": "user",
      "content_items": [
        {
          "type": "text.done",
          "text": "<hi> ü"
        }
      ],
      "created_at": 1800000000000
    },
    {
      "role": "assistant",
      "content_items": [
        {
          "type": "tool_call.done",
          "name": "f",
          "arguments": {
            "n": 9007199254740993,
            "a": []
          },
          "tool_call_id": "c1"
        }
      ],
      "usage_metadata": {
        "cached_tokens": 0,
        "prompt_tokens": 1,
        "thoughts_tokens": null,
        "response_tokens": 1
      },
      "finish_reason": "tool_call",
      "created_at": 1800000000900
    }
  ],
  "config": {
    "max_tokens": 5,
    "trace_id": "demo/one",
    "model": "gpt-5.5"
  },
  "timestamp": "2000-01-01T00:00:00.001Z"
}
`
		if string(got) != want {
			t.Errorf("got\n%s", got)
		}
		for name, mode := range map[string]fs.FileMode{"demo": 0o700 | fs.ModeDir, "demo/one.json": 0o600, "demo/one.txt": 0o600, ".": 0o700 | fs.ModeDir} {
			if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode() != mode {
				t.Errorf("%s: %v, %v", name, info, err)
			}
		}
	})
}

func TestTranscript(t *testing.T) {
	dir := t.TempDir()
	history := []Message{
		UserMessage(
			Text("two\nlines"), ImageURL("https://x.test/a"), ToolResult("c1", "ok", "https://x.test/b", "https://x.test/c"),
			Item{Type: InlineDataDone, Data: []byte("PAYLOAD" + strings.Repeat("x", 3000)), MimeType: "application/pdf", Filename: "log.pdf"},
		),
		{
			Role: RoleAssistant,
			ContentItems: []Item{
				{Type: ThinkingDone, Thinking: "hm", Fidelity: Fidelity(`{"signature":"SIGNATURE"}`)},
				{Type: InlineThinkingDone, Data: []byte("PAYLOAD"), MimeType: "image/png"},
				{Type: InlineDataDone, Data: make([]byte, 1500*1024), MimeType: "audio/wav"},
				{Type: EmbeddingDone, Embedding: []float64{1, 2.5, 3, 4, 5, 666}},
				ToolCall("c2", "lookup", `{"k":"ü","n":[]}`),
			},
			Usage: &Usage{PromptTokens: new(int64(7)), ResponseTokens: new(int64(3))}, FinishReason: FinishLength,
		},
	}
	config := &Config{
		TraceID: "a", SystemPrompt: new("be <brief>"), Temperature: new(0.5), ToolChoice: &ToolChoice{Names: []string{"f"}},
		Tools:          []Tool{{Name: "f", Description: "d"}},
		ResponseFormat: &ResponseFormat{Type: FormatJSONObject}, TopK: new(int64(3)), User: "u-1",
	}
	if err := NewTracer(dir).Save("a", "m-1", history, config); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "a.txt"))
	if err != nil {
		t.Fatal(err)
	}
	head, body, _ := strings.Cut(string(text), "Configuration:\n")
	if lines := strings.Split(head, "\n"); len(lines) != 5 || lines[0] != strings.Repeat("=", 80) || lines[2] != lines[0] || lines[3] != "" {
		t.Errorf("the head is\n%s", head)
	}
	ruler := strings.Repeat("-", 80)
	want := `  temperature: 0.5
  top_k: 3
  system_prompt: be <brief>
  tools: [
    {
      "name": "f",
      "description": "d"
    }
  ]
  tool_choice: ["f"]
  response_format: {
    "type": "json_object"
  }
  user: u-1
  model: m-1

[1] USER:
` + ruler + `
Text: two
lines
Image URL: https://x.test/a
Tool Result (c1): ok
  Image 1: https://x.test/b
  Image 2: https://x.test/c
Inline Data: application/pdf, 2.94 KB, log.pdf

[2] ASSISTANT:
` + ruler + `
Thinking: hm
Thinking Inline Image: image/png, 0.01 KB
Inline Audio: audio/wav, 1.46 MB
Embedding: [1, 2.5, 3, 4, 5]
Tool Call: lookup
  Arguments: {
    "k": "ü",
    "n": []
  }
  Tool Call ID: c2
Usage Metadata:
  prompt_tokens: 7
  response_tokens: 3
  total: 10
Finish Reason: length

`
	if body != want {
		t.Errorf("got\n%s\nwant\n%s", body, want)
	}
}

func TestTraceIDs(t *testing.T) {
	long := strings.Repeat("a", 300)
	for id, files := range map[string][]string{ // no files: refused
		"x":                             {"x.json", "x.txt"},
		"t/c.txt":                       {"t/c.json", "t/c.txt"},
		"v1.2":                          {"v1.json", "v1.txt"},
		"a.b.c":                         {"a.b.json", "a.b.txt"},
		"a.b/c":                         {"a.b/c.json", "a.b/c.txt"},
		"agent-1/r_7":                   {"agent-1/r_7.json", "agent-1/r_7.txt"},
		"":                              nil,
		"/":                             nil,
		"/x":                            nil,
		"x/":                            nil,
		"a//b":                          nil,
		".":                             nil,
		"..":                            nil,
		"../x":                          nil,
		"a/../x":                        nil,
		"a/./x":                         nil,
		".hidden":                       nil,
		"a/.hidden":                     nil,
		"a b":                           nil,
		"ü":                             nil,
		`a\b`:                           nil,
		"c:x":                           nil,
		"a\x00b":                        nil,
		"a\nb":                          nil,
		"%2e%2e/x":                      nil,
		"~":                             nil,
		long:                            nil,
		strings.Repeat("a/", 150) + "b": nil,
	} {
		parent := t.TempDir()
		dir := filepath.Join(parent, "cache")
		err := NewTracer(dir).Save(id, "m", hello, nil)
		var want []string
		for _, file := range files {
			want = append(want, "cache/"+file)
		}
		if got := filesIn(t, parent); !slices.Equal(got, want) || (err == nil) != (files != nil) {
			t.Errorf("%.40q: wrote %q, want %q, error %v", id, got, want, err)
		}
	}
}

func TestTracerFollowsNoLinkOutside(t *testing.T) {
	parent := t.TempDir()
	dir, outside := filepath.Join(parent, "cache"), filepath.Join(parent, "outside")
	for _, d := range []string{dir, outside} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	target := filepath.Join(outside, "target")
	if err := os.WriteFile(target, []byte("untouched"), 0o600); err != nil {
		t.Fatal(err)
	}
	for link, to := range map[string]string{"folder": outside, "up": "../outside", "file.json": target} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Skip(err)
		}
	}
	tracer := NewTracer(dir)
	for _, id := range []string{"folder/x", "folder/deep/x", "up/x"} {
		if err := tracer.Save(id, "m", hello, nil); err == nil {
			t.Errorf("%s is no error", id)
		}
	}
	if err := tracer.Save("file", "m", hello, nil); err != nil {
		t.Errorf("a link in the place of the file: %v", err)
	}
	if got := filesIn(t, outside); !slices.Equal(got, []string{"target"}) {
		t.Errorf("outside there are %q", got)
	}
	if content, _ := os.ReadFile(target); string(content) != "untouched" {
		t.Errorf("the target became %s", content)
	}
}

func TestTracerReplacesFiles(t *testing.T) {
	dir := t.TempDir()
	tracer := NewTracer(dir)
	long := []Message{UserMessage(Text(strings.Repeat("long ", 10_000)))}
	var writers sync.WaitGroup
	for n := range 8 {
		writers.Go(func() {
			if err := tracer.Save("x", "m", [][]Message{hello, long}[n%2], nil); err != nil {
				t.Error(err)
			}
		})
	}
	whole := func() {
		content, err := os.ReadFile(filepath.Join(dir, "x.json"))
		if err == nil && !json.Valid(content) {
			t.Errorf("half a file: %.99s", content)
		}
	}
	for range 100 {
		whole()
	}
	writers.Wait()
	whole()
	if got := filesIn(t, dir); !slices.Equal(got, []string{"x.json", "x.txt"}) {
		t.Errorf("there are %q", got)
	}
}

func TestTraceOfBytesReadsBack(t *testing.T) {
	dir := t.TempDir()
	history := []Message{{
		Role: RoleAssistant, CreatedAt: 1,
		ContentItems: []Item{{Type: InlineDataDone, Data: []byte{0, 255}, MimeType: "image/png", Fidelity: Fidelity(`{"b":1,"a":"ü"}`)}},
	}}
	if err := NewTracer(dir).Save("x", "m", history, &Config{Extra: json.RawMessage(`{"seed":1}`)}); err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(dir, "x.json"))
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		History []Message
		Config  map[string]any
	}
	if err := json.Unmarshal(content, &got); err != nil {
		t.Fatal(err)
	}
	item := got.History[0].ContentItems[0]
	if !reflect.DeepEqual(item.Data, []byte{0, 255}) || !reflect.DeepEqual(got.Config, map[string]any{"seed": 1.0, "model": "m"}) {
		t.Errorf("got %+v and %v", item, got.Config)
	}
}

func TestTracerFolder(t *testing.T) {
	work, set := t.TempDir(), t.TempDir()
	t.Chdir(work)
	t.Setenv("MMSP_CACHE_DIR", "")
	byDefault := NewTracer("")
	t.Setenv("MMSP_CACHE_DIR", set)
	byEnv := NewTracer("")
	t.Chdir(set) // a tracer stays where it was made
	for _, tracer := range []*Tracer{byDefault, byEnv} {
		if err := tracer.Save("x", "m", hello, nil); err != nil {
			t.Fatal(err)
		}
	}
	if got := filesIn(t, work); !slices.Equal(got, []string{"cache/x.json", "cache/x.txt"}) {
		t.Errorf("by default: %q", got)
	}
	if got := filesIn(t, set); !slices.Equal(got, []string{"x.json", "x.txt"}) {
		t.Errorf("by MMSP_CACHE_DIR: %q", got)
	}
}
