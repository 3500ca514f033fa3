package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/auto"
	"github.com/prism-shadow/mmsp-go/clients/mmsp"
)

var binary string // the command, built once

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "mmsp")
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "mmsp")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%s%v\n", out, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// command prepares a run of the binary in an environment of nothing but the given variables.
func command(t *testing.T, env []string, args ...string) *exec.Cmd {
	c := exec.CommandContext(t.Context(), binary, args...)
	c.Env = append([]string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}, env...)
	return c
}

// outcome is a run that has ended.
type outcome struct {
	out, err string
	code     int
}

func run(t *testing.T, env []string, input string, args ...string) outcome {
	t.Helper()
	var out, stderr bytes.Buffer
	c := command(t, env, args...)
	c.Stdin, c.Stdout, c.Stderr = strings.NewReader(input), &out, &stderr
	err := c.Run()
	if c.ProcessState == nil {
		t.Fatal(err)
	}
	return outcome{out.String(), stderr.String(), c.ProcessState.ExitCode()}
}

// process is a server that runs.
type process struct {
	*exec.Cmd
	t    *testing.T
	url  string // ends with /v1
	said string // what it printed up to then

	mu  sync.Mutex
	log strings.Builder
}

func (p *process) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(text)
}

func (p *process) logged(text string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Contains(p.log.String(), text)
}

func serveProcess(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	p := &process{t: t, Cmd: command(t, env, append([]string{"serve", "--port", "0"}, args...)...)}
	p.Cmd.Stderr = p
	out, err := p.StdoutPipe()
	if err == nil {
		err = p.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p.ProcessState == nil {
			_ = p.Process.Kill()
			_ = p.Wait()
		}
	})
	reader := bufio.NewReader(out)
	for range 2 {
		line, err := reader.ReadString('\n')
		if err != nil {
			t.Fatalf("%v after %q, log: %s", err, p.said, p.log.String())
		}
		p.said += line
	}
	if m := regexp.MustCompile(`http://\S+/v1`).FindString(p.said); m != "" {
		p.url = m
	}
	return p
}

// end sends SIGTERM and returns the exit code.
func (p *process) end() int {
	p.t.Helper()
	_ = p.Process.Signal(syscall.SIGTERM)
	_ = p.Wait()
	return p.ProcessState.ExitCode()
}

func (p *process) eventually(what string, happened func() bool) {
	p.t.Helper()
	for end := time.Now().Add(3 * time.Second); !happened(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("never: %s; log: %s", what, p.log.String())
		}
	}
}

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "mmsp.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const goodFile = `models:
  - {server_model_id: one, model_id: m, client_type: openai-chat, base_url: "http://127.0.0.1:1", api_key: k}
`

func TestCheck(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, text string
		args       []string
		code       int
		parts      []string
	}{
		{"good", goodFile, nil, 0, []string{"good, 1 models"}},
		{"feature to come", goodFile + "trace: {mode: all}\n", nil, 0, []string{"good", "does not have tracing yet"}},
		{"legacy layer", goodFile + "gateway: {http: {endpoints: {chatCompletions: {enabled: true}}}}\n", nil, 0, []string{"good", "legacy"}},
		{"unknown key", goodFile + "modles: []\n", nil, 1, []string{"mmsp.yaml:3", "modles", "models"}},
		{"unset variable", strings.Replace(goodFile, "api_key: k", "api_key: $NOT_SET", 1), nil, 1, []string{"mmsp.yaml:2", "models[0].api_key 'one'", "NOT_SET"}},
		{"client type", strings.Replace(goodFile, "openai-chat", "openai-chta", 1), nil, 1, []string{"mmsp.yaml:2", "models[0].client_type 'one'", "openai-chat"}},
		{"base url", strings.Replace(goodFile, "http://127.0.0.1:1", "ftp://h", 1), nil, 1, []string{"mmsp.yaml:2: models[0] 'one'", "base_url"}},
		{"no family", "models:\n\n  - {server_model_id: one, model_id: strange, api_key: k}\n", nil, 1, []string{"mmsp.yaml:3: models[0] 'one'", "strange"}},
		{"all at once", goodFile + "  - {server_model_id: one, model_id: m}\nx: 1\n", nil, 1, []string{"mmsp.yaml:3", "models[1].api_key 'one'", "models[1].server_model_id 'one'", "mmsp.yaml:4"}},
		{"open", goodFile + "listen: {host: 0.0.0.0}\n", nil, 1, []string{"0.0.0.0", "allow_open"}},
		{"open by flag", goodFile, []string{"--host", "0.0.0.0"}, 1, []string{"0.0.0.0"}},
		{"closed by flag", goodFile + "listen: {host: 0.0.0.0}\n", []string{"--host", "127.0.0.1"}, 0, nil},
		{"empty", "", nil, 1, []string{"mmsp.yaml", "empty"}},
	} {
		path := file(t, tt.text)
		got := run(t, nil, "", append([]string{"serve", "--check", "--config", path}, tt.args...)...)
		if got.code != tt.code || got.code != 0 && got.out != "" {
			t.Errorf("%s: code %d, %q %q", tt.name, got.code, got.out, got.err)
		}
		for _, part := range tt.parts {
			if !strings.Contains(got.out+got.err, part) {
				t.Errorf("%s: %q lacks %q", tt.name, got.out+got.err, part)
			}
		}
		// By the variable, and without --check: the same refusal.
		if got.code != 0 && tt.args == nil {
			if again := run(t, []string{"MMSP_SERVER_CONFIG=" + path}, "", "serve"); again.code != 1 || again.err != got.err {
				t.Errorf("%s: %q differs from %q", tt.name, again.err, got.err)
			}
		}
	}
}

func TestRefusedStarts(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, port, _ := net.SplitHostPort(taken.Addr().String())
	for _, tt := range []struct {
		name  string
		env   []string
		args  []string
		parts []string
	}{
		{"nothing to serve", nil, []string{"serve"}, []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "mmsp serve --demo"}},
		{"no file", nil, []string{"serve", "--config", "/nonexistent.yaml"}, []string{"/nonexistent.yaml"}},
		{"check of nothing", nil, []string{"serve", "--check"}, []string{"--config"}},
		{"check of the demo", nil, []string{"serve", "--check", "--demo"}, []string{"--config"}},
		{"open demo", nil, []string{"serve", "--demo", "--host", "0.0.0.0"}, []string{"open", "MMSP_SERVER_API_KEY"}},
		{"open environment", []string{"OPENAI_API_KEY=k"}, []string{"serve", "--host", "::"}, []string{"open"}},
		{"bad environment", []string{"OPENAI_API_KEY=k", "OPENAI_BASE_URL=nonsense"}, []string{"serve"}, []string{"OPENAI_BASE_URL"}},
		{"port in use", nil, []string{"serve", "--demo", "--port", port}, []string{port, "in use"}},
		{"no port", nil, []string{"serve", "--demo", "--port", "70000"}, []string{"70000"}},
		{"log format", nil, []string{"serve", "--demo", "--log-format", "xml"}, []string{"xml", "json"}},
		{"unknown flag", nil, []string{"serve", "--nonsense"}, []string{"nonsense"}},
		{"unknown command", nil, []string{"nonsense"}, []string{"nonsense"}},
		{"thinking", []string{"OPENAI_API_KEY=k"}, []string{"chat", "gpt-5.5", "--thinking", "huge", "hi"}, []string{"--thinking huge", "xhigh"}},
		{"chat without a key", nil, []string{"chat", "gpt-5.5", "hi"}, []string{"OPENAI_API_KEY"}},
		{"chat with nobody", nil, []string{"chat", "strange", "hi"}, []string{"strange", "openai-chat"}},
		{"chat without a model", nil, []string{"chat"}, []string{"a model is wanted"}},
		{"tools", []string{"OPENAI_API_KEY=k"}, []string{"chat", "gpt-5.5", "--tools", "/nonexistent.json", "hi"}, []string{"/nonexistent.json"}},
		{"currency", nil, []string{"models", "--currency", "EUR"}, []string{"EUR", "USD", "CNY"}},
	} {
		got := run(t, tt.env, "", tt.args...)
		if got.code != 1 || got.out != "" || !strings.HasPrefix(got.err, "mmsp: ") || strings.Contains(got.err, "panic") {
			t.Errorf("%s: code %d, %q %q", tt.name, got.code, got.out, got.err)
		}
		for _, part := range tt.parts {
			if !strings.Contains(got.err, part) {
				t.Errorf("%s: %q lacks %q", tt.name, got.err, part)
			}
		}
	}
}

// demoStream asks a model of the demo and returns the events, checked by the grammar, and the error that ended them.
func demoStream(t *testing.T, p *process, transport *http.Client, model, text string, config *mmsp.Config) (mmsp.Message, mmsp.FinishReason, error) {
	t.Helper()
	client, err := mmspclient.New(mmsp.Options{Model: model, BaseURL: p.url, HTTPClient: transport, HTTP: mmsp.HTTPOptions{MaxRetries: new(0)}})
	if err != nil {
		t.Fatal(err)
	}
	var checker mmsp.GrammarChecker
	answer := mmsp.Message{}
	for event, err := range mmsp.NewClient(client).StreamingResponse(t.Context(), []mmsp.Message{mmsp.UserMessage(mmsp.Text(text))}, config) {
		if err != nil {
			return answer, "", err
		}
		if err := checker.Event(&event); err != nil {
			t.Errorf("%s, %q: %v", model, text, err)
		}
		if event.Type == mmsp.EventStop {
			answer.FinishReason = event.FinishReason
		} else if !event.Item.Type.IsDelta() {
			answer.ContentItems = append(answer.ContentItems, event.Item)
		}
	}
	if err := checker.End(); err != nil {
		t.Errorf("%s, %q: %v", model, text, err)
	}
	return answer, answer.FinishReason, nil
}

func TestDemo(t *testing.T) {
	t.Parallel()
	p := serveProcess(t, nil, "--demo")
	var rows []string
	for _, name := range auto.Names() {
		rows = append(rows, "demo-"+name)
	}
	rows = append(rows, "demo-bedrock")
	for _, row := range rows {
		if !strings.Contains(p.said, row) {
			t.Errorf("%q lacks %s", p.said, row)
		}
	}
	tools := []mmsp.Tool{
		{Name: "weather", Description: "tells the weather", Parameters: json.RawMessage(`{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}`)},
		{Name: "clock", Description: "tells the time", Parameters: json.RawMessage(`{"type":"object"}`)},
	}
	transport := &http.Client{Transport: &http.Transport{}}
	defer transport.CloseIdleConnections()
	var group sync.WaitGroup
	for _, tt := range []struct {
		text   string
		tools  []mmsp.Tool
		finish mmsp.FinishReason // of a stream that ends well
		fails  string            // part of the error
		items  string            // kinds that there must be
		rows   string            // part of the names of the rows that are asked; empty: all
	}{
		{text: "Hello", finish: mmsp.FinishStop, items: "text"},
		{text: "think of it", finish: mmsp.FinishStop, items: "text"},
		{text: "call the weather", tools: tools, finish: mmsp.FinishToolCall, items: "tool_call"},
		{text: "parallel", tools: tools, finish: mmsp.FinishToolCall, items: "tool_call"},
		{text: "interleaved parallel", tools: tools, finish: mmsp.FinishToolCall, items: "tool_call"},
		{text: "image", finish: mmsp.FinishStop, items: "text"},
		{text: "length", finish: mmsp.FinishLength, items: "text"},
		{text: "refuse", finish: mmsp.FinishUnknown, items: "text", rows: "-openai-"},
		{text: "refuse", finish: mmsp.FinishUnknown, items: "text", rows: "-deepseek"},
		{text: "refuse", fails: "refusal: ", rows: "-ant"}, // the text is no content there
		{text: "refuse", fails: "refusal: ", rows: "-bedrock"},
		{text: "refuse", finish: mmsp.FinishStop, items: "text", rows: "-google-"}, // no refusals in the protocol
		{text: "think, paint", finish: mmsp.FinishStop, items: "thinking inline_thinking text inline_data", rows: "-google-"},
		{text: "say this", finish: mmsp.FinishStop, items: "inline_data", rows: "-google-"},
		{text: "filter the call", tools: tools, fails: "EmptyResponseError", rows: "-google-"},
		{text: "block", fails: "EmptyResponseError", rows: "-google-"},
		{text: "Hello", finish: mmsp.FinishStop, items: "embedding", rows: "-embedding"},
		{text: "error 400", fails: "HTTP 400", rows: "-embedding"},
		{text: "filter", fails: "EmptyResponseError"},
		{text: "empty", fails: "EmptyResponseError"},
		{text: "error 400", fails: "HTTP 400"},
		{text: "error 403", fails: "HTTP 403"},
		{text: "fail", fails: "UpstreamError"},
		{text: "cut", fails: "IncompleteStreamError"},
		{text: "clean cut", fails: "IncompleteStreamError"},
	} {
		for _, row := range rows {
			if !strings.Contains(row, tt.rows) || strings.Contains(row, "-embedding") && tt.rows != "-embedding" {
				continue
			}
			group.Go(func() {
				answer, finish, err := demoStream(t, p, transport, row, tt.text, &mmsp.Config{Tools: tt.tools})
				kinds := ""
				for _, item := range answer.ContentItems {
					kinds += item.Type.Kind() + " "
				}
				switch {
				case tt.fails == "" && (err != nil || finish != tt.finish || !strings.Contains(kinds, tt.items)):
					t.Errorf("%s, %q: %s, %s, %v", row, tt.text, kinds, finish, err)
				case tt.fails != "" && (err == nil || !strings.Contains(err.Error(), tt.fails)):
					t.Errorf("%s, %q: %s, %s, %v; want %s", row, tt.text, kinds, finish, err, tt.fails)
				}
			})
		}
	}
	group.Wait()
	response, err := transport.Get(p.url + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(response.Body)
	response.Body.Close()
	if !strings.Contains(string(text), `"in_flight":0`) || strings.Contains(string(text), `"in_flight":1`) {
		t.Errorf("%s", text)
	}
	if code := p.end(); code != 0 {
		t.Errorf("exit code %d, log: %s", code, p.log.String())
	}
	if p.logged("level=ERROR") {
		t.Error(p.log.String())
	}
}

func TestReloadSignal(t *testing.T) {
	t.Parallel()
	path := file(t, goodFile)
	p := serveProcess(t, nil, "--config", path, "--host", "localhost")
	models := func() string {
		response, err := http.Get(p.url + "/models")
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, _ := io.ReadAll(response.Body)
		return string(text)
	}
	defer http.DefaultClient.CloseIdleConnections()
	hangup := func(text, log string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_ = p.Process.Signal(syscall.SIGHUP)
		p.eventually(log, func() bool { return p.logged(log) })
	}
	hangup(strings.Replace(goodFile, "one", "two", 1), "was reloaded")
	if got := models(); !strings.Contains(got, `"two"`) || strings.Contains(got, `"one"`) {
		t.Error(got)
	}
	if p.logged("restart") {
		t.Error("the flags are taken for a change of the file")
	}
	hangup(goodFile+"x: 1\n", "not reloaded")
	if got := models(); !strings.Contains(got, `"two"`) || !p.logged("mmsp.yaml:3") {
		t.Error(got, p.log.String())
	}
	hangup(strings.Replace(goodFile, "http://127.0.0.1:1", "ftp://h", 1), "mmsp.yaml:2: models[0] 'one'")
	hangup(goodFile+"listen: {port: 1}\n", `models=1`)
	if got := p.end(); got != 0 {
		t.Errorf("exit code %d", got)
	}
}

func TestEnvironmentMode(t *testing.T) {
	t.Parallel()
	p := serveProcess(t, []string{"ANTHROPIC_API_KEY=k", "MMSP_SERVER_API_KEY=secret-key"}, "--host", "0.0.0.0", "--enable", "chatCompletions")
	if !strings.Contains(p.said, "claude-") || strings.Contains(p.said, "gpt-") {
		t.Error(p.said)
	}
	p.eventually("a warning", func() bool { return p.logged("legacy layer") })
	address := "http://127.0.0.1" + p.url[strings.LastIndexByte(p.url, ':'):]
	for key, status := range map[string]int{"": 401, "secret-key": 200} {
		response, err := http.Get(address + "/models?key=" + key)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != status {
			t.Errorf("key %q: %d", key, response.StatusCode)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	if p.end() != 0 || p.logged("secret-key") {
		t.Error(p.log.String())
	}
}

func TestIPv6(t *testing.T) {
	t.Parallel()
	if listener, err := net.Listen("tcp", "[::1]:0"); err != nil {
		t.Skip(err)
	} else {
		listener.Close()
	}
	p := serveProcess(t, nil, "--demo", "--host", "::1")
	if !strings.HasPrefix(p.url, "http://[::1]:") {
		t.Error(p.said)
	}
	if got := run(t, nil, "", "models", "--live", "demo-openai-chat", "--client-type", "mmsp", "--base-url", p.url); got.code != 0 || !strings.Contains(got.out, "demo-mmsp\n") {
		t.Errorf("%+v", got)
	}
	if p.end() != 0 {
		t.Error(p.log.String())
	}
}

func TestChat(t *testing.T) {
	t.Parallel()
	p := serveProcess(t, nil, "--demo")
	tools := filepath.Join(t.TempDir(), "tools.json")
	_ = os.WriteFile(tools, []byte(`[{"name":"weather","description":"d","parameters":{"type":"object","properties":{"city":{"type":"string"}}}}]`), 0o600)
	cache := t.TempDir()
	talk := func(input string, args ...string) outcome {
		return run(t, []string{"MMSP_CACHE_DIR=" + cache}, input, append([]string{"chat", "demo-openai-chat", "--client-type", "mmsp", "--base-url", p.url}, args...)...)
	}

	got := talk("", "say", "Hello", "--system", "Be brief", "--thinking", "low")
	if got.code != 0 || !strings.Contains(got.out, "say Hello") || !strings.Contains(got.out, "Be brief") || !strings.Contains(got.out, "[stop, ") || strings.Contains(got.out, "\x1b") {
		t.Errorf("%+v", got)
	}

	got = talk("", "Hello", "--json")
	var checker mmsp.GrammarChecker
	for line := range strings.Lines(got.out) {
		event, _, err := mmsp.ParseEvent([]byte(line))
		if err == nil {
			err = checker.Event(&event)
		}
		if err != nil {
			t.Errorf("%q: %v", line, err)
		}
	}
	if err := checker.End(); err != nil || got.code != 0 {
		t.Errorf("%v, %+v", err, got)
	}

	// Turn by turn: a call is answered by the next line, an error ends a turn and not the talk.
	got = talk("call the weather\n  sunny \nerror 400\n\nAnd this is the last", "--tools", tools)
	for _, part := range []string{"call weather {", "[tool_call, ", "result of weather> ", "weather answered “sunny”", "error: ", "HTTP 400", "This is turn"} {
		if !strings.Contains(got.out, part) {
			t.Errorf("%q lacks %q", got.out, part)
		}
	}
	if got.code != 0 || got.err != "" || strings.Count(got.out, "> ") < 5 {
		t.Errorf("%+v", got)
	}
	if got = talk("call the weather\n", "--tools", tools); got.code != 0 { // the input ends where a result is wanted
		t.Errorf("%+v", got)
	}

	if got = talk("", "error 403"); got.code != 1 || !strings.Contains(got.err, "HTTP 403") {
		t.Errorf("%+v", got)
	}
	if got = talk("", "cut"); got.code != 1 || !strings.Contains(got.err, "IncompleteStreamError") || got.out == "" {
		t.Errorf("%+v", got)
	}
	if p.end() != 0 {
		t.Error(p.log.String())
	}
}

// TestInterrupt: one signal ends a talk that waits for input.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	c := command(t, []string{"OPENAI_API_KEY=k"}, "chat", "gpt-5.5")
	in, _ := c.StdinPipe()
	defer in.Close()
	out, _ := c.StdoutPipe()
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.ReadFull(out, make([]byte, 2)) // the prompt
	_ = c.Process.Signal(os.Interrupt)
	ended := make(chan struct{})
	go func() {
		_ = c.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(3 * time.Second):
		t.Error("the talk goes on")
		_ = c.Process.Kill()
		<-ended
	}
}

// execute runs a command in this process.
func execute(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	root := rootCommand()
	root.SetArgs(args)
	root.SetOut(&out)
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Errorf("%q: %v", args, err)
	}
	return out.String()
}

func TestModels(t *testing.T) {
	table := execute(t, "models")
	if !regexp.MustCompile(`(?m)^claude-sonnet-5-5 +anthropic-official +Text,Image +Text +1000000 +2 +0.2 +10$`).MatchString(table) || !strings.Contains(table, "OUTPUT USD") {
		t.Error(table)
	}
	if yuan := execute(t, "models", "--currency", "CNY"); !regexp.MustCompile(`(?m)^claude-sonnet-5-5 .* 14 +1.4 +70$`).MatchString(yuan) || !strings.Contains(yuan, "OUTPUT CNY") {
		t.Error(yuan)
	}
	var list []struct {
		Model, Client string
		Pricing       *struct{ Currency string }
	}
	if err := json.Unmarshal([]byte(execute(t, "models", "--json")), &list); err != nil || len(list) != strings.Count(table, "\n")-1 || list[0].Model == "" || list[0].Pricing.Currency != "USD" {
		t.Errorf("%v %+v", err, list)
	}
}

func TestVersion(t *testing.T) {
	if text := execute(t, "version"); !regexp.MustCompile(`^mmsp \S+ \(commit \S+, go1\S+\)\n$`).MatchString(text) {
		t.Error(text)
	}
	var version struct {
		Version, Commit, Go string
		ClientTypes         []string `json:"client_types"`
		Ingress             []string
	}
	text := execute(t, "version", "--json")
	if err := json.Unmarshal([]byte(text), &version); err != nil {
		t.Fatal(err)
	}
	if version.Version == "" || version.Commit == "" || version.Go == "" || !slices.Equal(version.ClientTypes, auto.Names()) || version.Ingress == nil {
		t.Errorf("%s", text)
	}
}
