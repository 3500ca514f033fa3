//go:build linux

// Command server measures what a gateway adds, each part a process of its own on loopback: a provider, a reverse proxy
// that converts nothing, a converter written by hand for this one job, and mmsp.
//
//	go run ./server              builds mmsp and measures it, in about three minutes
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
	caller  *dialect
	row     string // what stands before the name of a model
	command []string
	process *process
}

// model names an answer as the target's caller does.
func (t *target) model(chunks int, gap time.Duration) string { return t.row + modelID(chunks, gap) }

var scenarios = []*scenario{
	{title: "bursts, one at a time", concurrency: 1, requests: 60, chunks: 200},
	{title: "bursts, 16 at once", concurrency: 16, requests: 160, chunks: 200},
	{title: "bursts, 64 at once", concurrency: 64, requests: 320, chunks: 200},
	{title: "a chunk every 5 ms, 64 at once", concurrency: 64, requests: 128, chunks: 100, gap: 5 * time.Millisecond},
	{title: "a request of 100 kB", concurrency: 1, requests: 30, chunks: 10, bodyBytes: 100 << 10},
	{title: "a request of 1 MB", concurrency: 1, requests: 12, chunks: 10, bodyBytes: 1 << 20},
}

// The pairs of a caller's protocol and a provider's are measured in these.
var pairScenarios = []*scenario{scenarios[1], scenarios[3]}

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
	direct := &target{name: "direct", caller: chat, process: provider}
	proxy := &target{name: "reverse proxy", caller: chat, command: []string{self, "role", "proxy", provider.url}}
	byHand := &target{name: "floor", caller: stream, command: []string{self, "role", "floor", provider.url}}
	mmsp := &target{name: "mmsp", caller: stream, row: chat.name + "-", command: []string{binary, "serve", "--config", config, "--host", "127.0.0.1", "--port", "0"}}
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

	pairs := []*target{byHand}
	for _, caller := range callers {
		for _, p := range providers {
			pairs = append(pairs, &target{name: caller.name + " over " + p.name, caller: caller, row: p.name + "-", process: mmsp.process})
		}
	}
	samples, err := run(ctx, append([]*target{direct}, gateways...), scenarios, rounds)
	if err != nil {
		return err
	}
	ofPairs, err := run(ctx, pairs, pairScenarios, rounds)
	if err != nil {
		return err
	}
	for _, s := range scenarios {
		unit, divisor := "µs/chunk", float64(s.requests*s.chunks)
		if s.bodyBytes > 0 { // the request is what costs
			unit, divisor = "µs/request", float64(s.requests)
		}
		of := func(t *target, value func(sample) float64) float64 { return medianOf(samples[s][t], value) }
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

	fmt.Printf("\n%-32s", "µs/chunk, /floor")
	for _, s := range pairScenarios {
		fmt.Printf("%32s", s.title)
	}
	for _, t := range pairs {
		fmt.Printf("\n%-32s", "  "+t.name)
		for _, s := range pairScenarios {
			cpu := func(one sample) float64 { return milliseconds(one.cpu) * 1000 / float64(s.requests*s.chunks) }
			fmt.Printf("%23.2f%9.2f", medianOf(ofPairs[s][t], cpu), medianOf(ofPairs[s][t], cpu)/medianOf(ofPairs[s][byHand], cpu))
		}
	}
	fmt.Println()
	return nil
}

type results map[*scenario]map[*target][]sample

// run loads every target with every scenario in turn, several times.
func run(ctx context.Context, targets []*target, scenarios []*scenario, rounds int) (results, error) {
	samples := results{}
	for range rounds {
		for _, s := range scenarios {
			if samples[s] == nil {
				samples[s] = map[*target][]sample{}
			}
			for _, t := range targets {
				one, err := load(ctx, t, s)
				if err != nil {
					return nil, fmt.Errorf("%s, %s: %w", t.name, s.title, err)
				}
				samples[s][t] = append(samples[s][t], one)
			}
		}
	}
	return samples, nil
}

func medianOf(samples []sample, value func(sample) float64) float64 {
	var values []float64
	for _, one := range samples {
		values = append(values, value(one))
	}
	return median(values)
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

// configure writes the configuration of mmsp: a row for each answer that is asked for, of each protocol.
func configure(file, provider, dataDir string) error {
	rows := map[string]object{}
	add := func(d *dialect, chunks int, gap time.Duration) {
		id := modelID(chunks, gap)
		rows[d.name+id] = object{"server_model_id": d.name + "-" + id, "model_id": id, "client_type": d.client, "base_url": provider + d.base, "api_key": "sk-upstream"}
	}
	on := object{}
	for _, d := range []string{"responses", "messages", "generateContent", "chatCompletions"} {
		on[d] = object{"enabled": true}
	}
	for _, d := range providers {
		add(d, slowChunks, slowGap)
		for _, s := range scenarios {
			add(d, s.chunks, s.gap)
		}
	}
	encoded, err := json.Marshal(object{
		"models":  slices.Collect(maps.Values(rows)),
		"gateway": object{"data_dir": dataDir, "http": object{"endpoints": on}},
	})
	if err != nil {
		return err
	}
	return os.WriteFile(file, encoded, 0o600)
}
