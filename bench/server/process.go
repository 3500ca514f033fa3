//go:build linux

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a child. It does not outlive this process, however that ends.
type process struct {
	command *exec.Cmd
	url     string
	cold    time.Duration // from the start of the process to the first 200 of /readyz
}

var address = regexp.MustCompile(`http://127\.0\.0\.1:\d+`)

// start runs a program and waits until it is ready. It must be called from the main goroutine, which is locked to the
// main thread: the kernel kills a child when the thread that started it ends.
func start(ctx context.Context, name string, args ...string) (*process, error) {
	began := time.Now()
	p := &process{command: exec.CommandContext(ctx, name, args...)}
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var complaints tail
	p.command.Stderr = &complaints
	out, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.command.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if p.url = address.FindString(line); p.url == "" {
		p.stop()
		return nil, fmt.Errorf("%s did not tell its address: %q, %w\n%s", name, line, err, complaints.text)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	for limit := time.Now().Add(10 * time.Second); time.Now().Before(limit); time.Sleep(200 * time.Microsecond) {
		response, err := http.Get(p.url + "/readyz")
		if err != nil {
			continue
		}
		response.Body.Close()
		if response.StatusCode == http.StatusOK {
			p.cold = time.Since(began)
			return p, nil
		}
	}
	p.stop()
	return nil, fmt.Errorf("%s was not ready in time\n%s", name, complaints.text)
}

// tail keeps the beginning of what a child complains about and drops the rest.
type tail struct{ text []byte }

func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p[:min(len(p), max(4096-len(t.text), 0))]...)
	return len(p), nil
}

func (p *process) stop() {
	_ = p.command.Process.Kill()
	_ = p.command.Wait()
}

// cpu is the time that the process spent on a processor, from the scheduler's own counters of its threads.
func (p *process) cpu() (total time.Duration) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", p.command.Process.Pid))
	for _, file := range files {
		text, _ := os.ReadFile(file)
		spent, _, _ := strings.Cut(string(text), " ")
		ns, _ := strconv.ParseInt(spent, 10, 64)
		total += time.Duration(ns)
	}
	return total
}

var resident = regexp.MustCompile(`VmRSS:\s+(\d+) kB`)

// memory is what the process holds, in kB.
func (p *process) memory() (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.command.Process.Pid))
	if err != nil {
		return 0, err
	}
	match := resident.FindSubmatch(text)
	if match == nil {
		return 0, errors.New("the process tells no resident memory")
	}
	return strconv.Atoi(string(match[1]))
}

// build compiles the product into a directory.
func build(ctx context.Context, dir string) (string, error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "github.com/prism-shadow/mmsp-go").Output()
	if err != nil {
		return "", fmt.Errorf("run this in the module of the benchmarks: %w", err)
	}
	binary := filepath.Join(dir, "mmsp")
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", binary, "./cmd/mmsp")
	command.Dir = strings.TrimSpace(string(root))
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building mmsp: %w\n%s", err, out)
	}
	return binary, nil
}
