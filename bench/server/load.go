//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// scenario is one kind of load.
type scenario struct {
	title       string
	concurrency int
	requests    int
	chunks      int
	gap         time.Duration
	bodyBytes   int // of the conversation
}

// sample is what one round of a scenario gave. CPU is the gateway's alone.
type sample struct {
	perSecond float64
	cpu       time.Duration // of all requests
	first     time.Duration // median, from the request to the first token
	transit   time.Duration // median, from the provider's write to the reader's read
}

// body is a request of a conversation.
func body(d *dialect, model string, size int) []byte {
	text := "hello"
	turns := 1
	if size > 0 {
		text = strings.Repeat("A line of \"text\", as long as people write it.\n", 2048/46)
		turns = size/2048 | 1
	}
	var messages []object
	for i := range turns {
		messages = append(messages, d.message([]string{"user", "assistant"}[i%2], text))
	}
	encoded, err := json.Marshal(d.request(model, messages))
	if err != nil {
		panic(err)
	}
	return encoded
}

// reading is what a reader saw of one stream.
type reading struct {
	first   time.Duration
	transit []time.Duration
}

// read asks for a stream and reads it to its end, checking that every token arrives, once and in order.
func read(ctx context.Context, client *http.Client, t *target, model string, body []byte, chunks int, seen func()) (reading, error) {
	began := time.Now()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, t.caller.url(t.process.url, model), bytes.NewReader(body))
	if err != nil {
		return reading{}, err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return reading{}, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(response.Body, 300))
		return reading{}, fmt.Errorf("%s: %s", response.Status, text)
	}
	r := reading{transit: make([]time.Duration, 0, chunks)}
	for lines := bufio.NewReaderSize(response.Body, 64<<10); ; {
		line, err := lines.ReadSlice('\n')
		switch {
		case err == io.EOF && len(r.transit) == chunks:
			return r, nil
		case err != nil:
			return r, fmt.Errorf("after %d tokens of %d: %w", len(r.transit), chunks, err)
		}
		_, token, found := bytes.Cut(line, []byte(t.caller.token))
		if !found {
			continue
		}
		now := time.Now()
		number, sent, _ := strings.Cut(string(token[:min(len(token), 32)]), ":")
		sent, _, _ = strings.Cut(sent, " ")
		at, err := strconv.ParseInt(sent, 10, 64)
		if n, _ := strconv.Atoi(number); err != nil || n != len(r.transit) {
			return r, fmt.Errorf("token %q after %d tokens", token[:min(len(token), 32)], len(r.transit))
		}
		if len(r.transit) == 0 {
			r.first = now.Sub(began)
			if seen != nil {
				seen()
			}
		}
		r.transit = append(r.transit, now.Sub(time.Unix(0, at)))
	}
}

func newClient(concurrency int) *http.Client {
	return &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: concurrency, DisableCompression: true}}
}

// load runs a scenario once.
func load(ctx context.Context, t *target, s *scenario) (sample, error) {
	client := newClient(s.concurrency)
	defer client.CloseIdleConnections()
	model := t.model(s.chunks, s.gap)
	request := body(t.caller, model, s.bodyBytes)
	run := func(requests int) ([]reading, error) {
		readings, failures := make([]reading, requests), make([]error, requests)
		var next atomic.Int64
		var workers sync.WaitGroup
		for range s.concurrency {
			workers.Go(func() {
				for i := int(next.Add(1)) - 1; i < requests; i = int(next.Add(1)) - 1 {
					readings[i], failures[i] = read(ctx, client, t, model, request, s.chunks, nil)
				}
			})
		}
		workers.Wait()
		return readings, errors.Join(failures...)
	}
	if s.gap == 0 { // connections and pools are there
		if _, err := run(s.concurrency); err != nil {
			return sample{}, err
		}
	}
	before, began := t.process.cpu(), time.Now()
	readings, err := run(s.requests)
	took, spent := time.Since(began), t.process.cpu()-before
	var first, transit []time.Duration
	for _, r := range readings {
		first, transit = append(first, r.first), append(transit, r.transit...)
	}
	return sample{
		perSecond: float64(s.requests) / took.Seconds(),
		cpu:       spent,
		first:     median(first),
		transit:   median(transit),
	}, err
}

// A slow stream lasts longer than it is looked at.
const (
	slowChunks = 600
	slowGap    = 100 * time.Millisecond
)

// slowStreams returns how much more memory, in kB, a fresh process holds for each of many slow streams.
func slowStreams(ctx context.Context, t *target, streams int) (float64, error) {
	before, err := t.process.memory()
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(ctx)
	client := newClient(streams)
	defer client.CloseIdleConnections()
	model := t.model(slowChunks, slowGap)
	request := body(t.caller, model, 0)
	var running, ended sync.WaitGroup
	defer ended.Wait()
	defer cancel()
	running.Add(streams)
	failed := make(chan error, streams)
	for range streams {
		ended.Go(func() {
			if _, err := read(ctx, client, t, model, request, slowChunks, running.Done); err != nil {
				failed <- err
			}
		})
	}
	all := make(chan struct{})
	go func() { running.Wait(); close(all) }()
	select {
	case err := <-failed:
		return 0, err
	case <-all:
	}
	var held []int
	for range 7 {
		time.Sleep(500 * time.Millisecond)
		kB, err := t.process.memory()
		if err != nil {
			return 0, err
		}
		held = append(held, kB)
	}
	return float64(median(held)-before) / float64(streams), nil
}

func median[T int | float64 | time.Duration](values []T) T {
	slices.Sort(values)
	return values[len(values)/2]
}
