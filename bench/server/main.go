//go:build linux

// Command server measures what a gateway adds, each part a process of its own on loopback: a provider, a reverse proxy
// that converts nothing, a converter written by hand for this one job, and mmsp.
//
//	go run ./server              builds mmsp and measures it, in about a minute
//	go run ./server -binary F    measures a binary that is there
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"time"
)

// target is what a load goes to.
type target struct {
	name    string
	path    string
	command []string
	process *process
}

const (
	streamPath = "/v1/stream"
	chatPath   = "/v1/chat/completions"
)

var scenarios = []scenario{
	{title: "bursts, one at a time", concurrency: 1, requests: 60, chunks: 200},
	{title: "bursts, 16 at once", concurrency: 16, requests: 160, chunks: 200},
	{title: "bursts, 64 at once", concurrency: 64, requests: 320, chunks: 200},
	{title: "a chunk every 5 ms, 64 at once", concurrency: 64, requests: 128, chunks: 100, gap: 5 * time.Millisecond},
	{title: "a request of 100 kB", concurrency: 1, requests: 30, chunks: 10, bodyBytes: 100 << 10},
	{title: "a request of 1 MB", concurrency: 1, requests: 12, chunks: 10, bodyBytes: 1 << 20},
}

func main() {
	if len(os.Args) == 4 && os.Args[1] == "role" {
		fmt.Fprintln(os.Stderr, role(os.Args[2], os.Args[3]))
		os.Exit(1)
	}
	runtime.LockOSThread()
	binary := flag.String("binary", "", "the mmsp to measure; empty: it is built")
	rounds := flag.Int("rounds", 3, "of which medians are taken")
	streams := flag.Int("streams", 500, "slow streams of the memory measurement; 0: none")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := measure(ctx, *binary, *rounds, *streams); err != nil {
		fmt.Fprintln(os.Stderr, "server:", err)
		os.Exit(1)
	}
}

func measure(ctx context.Context, binary string, rounds, streams int) (err error) {
	dir, err := os.MkdirTemp("", "mmsp-bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if binary == "" {
		if binary, err = build(ctx, dir); err != nil {
			return err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	provider, err := start(ctx, self, "role", "mock", "")
	if err != nil {
		return err
	}
	defer provider.stop()
	config := filepath.Join(dir, "mmsp.json")
	if err := configure(config, provider.url, dir); err != nil {
		return err
	}
	direct := &target{name: "direct", path: chatPath, process: provider}
	proxy := &target{name: "reverse proxy", path: chatPath, command: []string{self, "role", "proxy", provider.url}}
	byHand := &target{name: "floor", path: streamPath, command: []string{self, "role", "floor", provider.url}}
	mmsp := &target{name: "mmsp", path: streamPath, command: []string{binary, "serve", "--config", config, "--host", "127.0.0.1", "--port", "0"}}
	gateways := []*target{proxy, byHand, mmsp}
	defer func() {
		for _, t := range gateways {
			t.stop()
		}
	}()

	const starts = 5
	fmt.Printf("%-32s%16s%24s\n", "", "cold start", "memory a slow stream")
	for _, t := range gateways {
		var cold []time.Duration
		for range starts {
			if err := t.restart(ctx); err != nil {
				return err
			}
			cold = append(cold, t.process.cold)
		}
		held := 0.0
		if streams > 0 {
			if held, err = slowStreams(ctx, t, streams); err != nil {
				return fmt.Errorf("%s, %d slow streams: %w", t.name, streams, err)
			}
		}
		fmt.Printf("%-32s%13.1f ms%21.0f kB\n", t.name, milliseconds(median(cold)), held)
		if err := t.restart(ctx); err != nil {
			return err
		}
	}

	all := append([]*target{direct}, gateways...)
	samples := map[*scenario]map[*target][]sample{}
	for range rounds {
		for i := range scenarios {
			s := &scenarios[i]
			if samples[s] == nil {
				samples[s] = map[*target][]sample{}
			}
			for _, t := range all {
				one, err := load(ctx, t, s)
				if err != nil {
					return fmt.Errorf("%s, %s: %w", t.name, s.title, err)
				}
				samples[s][t] = append(samples[s][t], one)
			}
		}
	}
	for i := range scenarios {
		s := &scenarios[i]
		unit, divisor := "µs/chunk", float64(s.requests*s.chunks)
		if s.bodyBytes > 0 { // the request is what costs
			unit, divisor = "µs/request", float64(s.requests)
		}
		of := func(t *target, value func(sample) float64) float64 {
			var values []float64
			for _, one := range samples[s][t] {
				values = append(values, value(one))
			}
			return median(values)
		}
		perSecond := func(one sample) float64 { return one.perSecond }
		cpu := func(one sample) float64 { return milliseconds(one.cpu) * 1000 / divisor }
		first := func(one sample) float64 { return milliseconds(one.first) }
		transit := func(one sample) float64 { return milliseconds(one.transit) }
		fmt.Printf("\n%-32s%11s%9s%12s%9s%9s%15s%14s\n", s.title, "requests/s", "/floor", unit, "/proxy", "/floor", "first token", "transit p50")
		fmt.Printf("%-32s%11.0f%9s%12s%9s%9s%12.2f ms%11.2f ms\n", "  direct", of(direct, perSecond), "", "", "", "", of(direct, first), of(direct, transit))
		for _, t := range gateways {
			fmt.Printf("%-32s%11.0f%9.2f%12.2f%9.2f%9.2f%+12.2f ms%11.2f ms\n", "  "+t.name,
				of(t, perSecond), of(t, perSecond)/of(byHand, perSecond),
				of(t, cpu), of(t, cpu)/of(proxy, cpu), of(t, cpu)/of(byHand, cpu),
				of(t, first)-of(direct, first), of(t, transit))
		}
	}
	return nil
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// restart replaces the process of a target by a fresh one.
func (t *target) restart(ctx context.Context) (err error) {
	t.stop()
	t.process, err = start(ctx, t.command[0], t.command[1:]...)
	return err
}

func (t *target) stop() {
	if t.process != nil {
		t.process.stop()
		t.process = nil
	}
}

// configure writes the configuration of mmsp: a row for each answer that is asked for.
func configure(file, provider, dataDir string) error {
	type object = map[string]any
	rows := map[string]object{}
	add := func(id string) {
		rows[id] = object{"server_model_id": id, "model_id": id, "client_type": "openai-chat", "base_url": provider + "/v1", "api_key": "sk-upstream"}
	}
	add(modelID(slowChunks, slowGap))
	for i := range scenarios {
		add(modelID(scenarios[i].chunks, scenarios[i].gap))
	}
	encoded, err := json.Marshal(object{"models": slices.Collect(maps.Values(rows)), "gateway": object{"data_dir": dataDir}})
	if err != nil {
		return err
	}
	return os.WriteFile(file, encoded, 0o600)
}
