package metrics

import (
	"bytes"
	"math"
	"os"
	"runtime"
	runtimemetrics "runtime/metrics"
	"slices"
	"strconv"
	"time"
)

// Snapshot is the answer of GET /v1/metrics. Times are unix seconds, *_ms are milliseconds; null means nothing was
// measured.
type Snapshot struct {
	StartedAt int64 `json:"started_at"`
	Since     int64 `json:"since"` // where the history begins
	UptimeS   int64 `json:"uptime_s"`
	Counts
	Refused       Refused  `json:"refused"`
	LastRequestAt *float64 `json:"last_request_at"`
	Errors        []Error  `json:"errors"` // newest first
	Models        []Model  `json:"models"` // in table order
	Process       Process  `json:"process"`
	Window        *Window  `json:"window,omitempty"` // only when the query asked for a range
}

// Counts is what was counted since the start of the process.
type Counts struct {
	Requests    int64      `json:"requests"`
	Successes   int64      `json:"successes"`
	Failures    int64      `json:"failures"`
	Disconnects int64      `json:"disconnects"`
	InFlight    int64      `json:"in_flight"`
	SuccessRate *float64   `json:"success_rate"` // successes of successes and failures
	LatencyMS   Latency    `json:"latency_ms"`
	Tokens      TokenCount `json:"tokens"`
	TokensOut   int64      `json:"tokens_out"` // thoughts and response
	GenMS       int64      `json:"generation_ms"`
	TPS         *float64   `json:"tps"` // tokens out per second of generation
}

// Latency is measured from the start of a request, over successes.
type Latency struct {
	FirstEvent Percentiles `json:"first_event"`
	Total      Percentiles `json:"total"`
}

// Percentiles are nearest-rank percentiles in milliseconds.
type Percentiles struct {
	P50 *int64 `json:"p50"`
	P90 *int64 `json:"p90"`
}

// TokenCount sums the reported usage of successes.
type TokenCount struct {
	Prompt   int64 `json:"prompt"`
	Cached   int64 `json:"cached"`
	Thoughts int64 `json:"thoughts"`
	Response int64 `json:"response"`
}

// Refused counts the requests that never reached a model.
type Refused struct {
	Unauthorized   int64 `json:"unauthorized"`
	InvalidRequest int64 `json:"invalid_request"`
	UnknownModel   int64 `json:"unknown_model"`
}

// Model is one row of the model table.
type Model struct {
	ID string `json:"id"`
	Counts
	LastRequestAt *float64   `json:"last_request_at"`
	LastOutcome   *string    `json:"last_outcome"` // success, failure or disconnect
	LastError     *LastError `json:"last_error"`
}

// LastError is the newest failure of a model.
type LastError struct {
	At      float64 `json:"at"`
	Message string  `json:"message"`
}

// Process describes the server process. RSSBytes is 0 where the system does not tell.
type Process struct {
	Goroutines          int    `json:"goroutines"`
	HeapBytes           uint64 `json:"heap_bytes"`
	RSSBytes            int64  `json:"rss_bytes"`
	OpenUpstreamStreams int    `json:"open_upstream_streams"`
	// FidelityUnreadable counts the proofs that callers brought and nobody here can read: they count as absent.
	FidelityUnreadable int64 `json:"fidelity_unreadable"`
}

// Snapshot returns the counters as they are now.
func (m *Metrics) Snapshot() *Snapshot { return m.snapshot(m.now()) }

func (m *Metrics) snapshot(now time.Time) *Snapshot {
	total, table, answer := m.copy(now)
	answer.Counts = total.counts()
	answer.LastRequestAt = total.lastRequestAt()
	answer.Models = make([]Model, len(table))
	for i, s := range table {
		answer.Models[i] = Model{s.id, s.counts(), s.lastRequestAt(), s.lastOutcome, s.lastError}
	}
	answer.Process = m.process()
	return answer
}

// copy takes what a snapshot needs while nothing is counted; sorting waits until the lock is free again.
func (m *Metrics) copy(now time.Time) (total series, table []series, answer *Snapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fold(now.Unix())
	for _, s := range append([]*series{m.total}, m.table...) {
		c := *s
		c.latest.total, c.latest.first = slices.Clone(s.latest.total), slices.Clone(s.latest.first)
		table = append(table, c)
	}
	return table[0], table[1:], &Snapshot{
		StartedAt: m.started.Unix(),
		Since:     m.since,
		UptimeS:   max(int64(now.Sub(m.started)/time.Second), 0),
		Refused:   Refused{m.refused[Unauthorized], m.refused[InvalidRequest], m.refused[UnknownModel]},
		Errors:    append([]Error{}, m.errors...),
	}
}

// counts sorts the latencies of s in place.
func (s *series) counts() Counts {
	return Counts{
		Requests:    s.sums[requests],
		Successes:   s.sums[successes],
		Failures:    s.sums[failures],
		Disconnects: s.sums[disconnects],
		InFlight:    s.sums.inFlight(),
		SuccessRate: s.sums.successRate(),
		LatencyMS:   latency(s.latest.total, s.latest.first),
		Tokens:      TokenCount{s.prompt, s.cached, s.sums[thoughts], s.sums[response]},
		TokensOut:   s.sums[tokensOut],
		GenMS:       s.sums[generation],
		TPS:         s.sums.tps(),
	}
}

func (s *series) lastRequestAt() *float64 {
	if s.lastRequest.IsZero() {
		return nil
	}
	return new(unix(s.lastRequest))
}

func (s sums) inFlight() int64 { return s[requests] - s[successes] - s[failures] - s[disconnects] }

// successRate is rounded to four decimals.
func (s sums) successRate() *float64 {
	if s[successes]+s[failures] == 0 {
		return nil
	}
	return new(round(float64(s[successes])/float64(s[successes]+s[failures]), 10000))
}

// tps is rounded to one decimal.
func (s sums) tps() *float64 {
	if s[generation] == 0 {
		return nil
	}
	return new(round(float64(s[tokensOut])*1000/float64(s[generation]), 10))
}

// round rounds half up to a fraction of 1/unit.
func round(x, unit float64) float64 { return math.Floor(x*unit+0.5) / unit }

func latency(total, first []int64) Latency {
	slices.Sort(total)
	slices.Sort(first)
	return Latency{
		FirstEvent: Percentiles{percentile(first, 50), percentile(first, 90)},
		Total:      Percentiles{percentile(total, 50), percentile(total, 90)},
	}
}

// percentile takes the nearest rank of sorted samples.
func percentile(sorted []int64, p int) *int64 {
	if len(sorted) == 0 {
		return nil
	}
	return new(sorted[(p*len(sorted)+99)/100-1])
}

func (m *Metrics) process() Process {
	heap := []runtimemetrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	runtimemetrics.Read(heap)
	var pages int64
	statm, _ := os.ReadFile("/proc/self/statm") // Linux: total and resident size first, in pages
	if fields := bytes.Fields(statm); len(fields) > 1 {
		pages, _ = strconv.ParseInt(string(fields[1]), 10, 64)
	}
	return Process{
		Goroutines:          runtime.NumGoroutine(),
		HeapBytes:           heap[0].Value.Uint64(),
		RSSBytes:            pages * int64(os.Getpagesize()),
		OpenUpstreamStreams: m.openStreams(), FidelityUnreadable: m.unreadable.Load(),
	}
}
