// Package metrics counts what a server's models do: requests, outcomes, tokens and latencies, in total and per model,
// since the start and in wall-clock buckets that survive restarts in one small history file. It takes plain numbers
// and hands back JSON-ready structs; who may read them, and over which route, is decided elsewhere.
package metrics

import (
	"cmp"
	"log/slog"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxErrors    = 100  // errors listed, newest first
	maxErrorText = 4096 // bytes kept of one error message
)

// Options configures Open. The zero value counts in memory for no model.
type Options struct {
	Models      []string         // ids of the model table, in table order
	File        string           // history file; empty keeps everything in memory
	Now         func() time.Time // clock; nil means time.Now
	Logger      *slog.Logger     // history file trouble; nil discards it
	OpenStreams func() int       // upstream streams open at the moment; nil reports 0
}

// Metrics holds all counters of one server. All methods are safe for concurrent use.
type Metrics struct {
	file        string
	now         func() time.Time
	log         *slog.Logger
	openStreams func() int
	unreadable  atomic.Int64
	started     time.Time

	mu      sync.Mutex
	since   int64 // unix seconds at which the history begins
	total   *series
	table   []*series          // in table order
	byID    map[string]*series // the table's, and models no longer in it that still have history
	refused [3]int64           // by RefusalKind
	errors  []Error            // newest first
	oldest  [3]int64           // first bucket start each tier holds since the last folding
	folded  int64              // wall-clock minute of the last folding
	dirty   bool               // something was counted since the last save

	saving      sync.Mutex // serializes writers of the file; taken before mu
	closed      bool
	writeFailed bool // the current run of failed writes was reported
}

// Error is one failed request. At is in unix seconds, with milliseconds.
type Error struct {
	At      float64 `json:"at"`
	Model   string  `json:"model"`
	Message string  `json:"message"`
}

// Tokens is the usage a model reported; nil means it reported none, a negative count is taken as 0.
type Tokens struct{ Prompt, Cached, Thoughts, Response *int64 }

// RefusalKind says why a request never reached a model.
type RefusalKind int

// The refusals that are counted.
const (
	Unauthorized RefusalKind = iota
	InvalidRequest
	UnknownModel
)

// Open starts counting at zero and continues the history of o.File. A missing file begins a new history; an unreadable
// or malformed one too, with one line to the logger, and is overwritten by the next save.
func Open(o Options) *Metrics {
	m := &Metrics{
		file:        o.File,
		now:         o.Now,
		log:         cmp.Or(o.Logger, slog.New(slog.DiscardHandler)),
		openStreams: o.OpenStreams,
		total:       &series{},
		byID:        map[string]*series{},
	}
	if m.now == nil {
		m.now = time.Now
	}
	if m.openStreams == nil {
		m.openStreams = func() int { return 0 }
	}
	m.started = m.now()
	m.since = m.started.Unix()
	m.load()
	m.fold(m.started.Unix())
	m.SetModels(o.Models)
	return m
}

// SetModels replaces the model table. Ids that stay, or come back, go on counting where they were; the history of ids
// that left stays in the file until it ages out.
func (m *Metrics) SetModels(models []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.byID {
		s.listed = false
	}
	m.table = nil
	for _, id := range models {
		s := m.byID[id]
		if s == nil {
			s = &series{id: id}
			m.byID[id] = s
		}
		if !s.listed {
			s.listed = true
			m.table = append(m.table, s)
		}
	}
}

// Request is one request on its way through a model. It ends once, by Succeed, Fail or Disconnect; later outcomes are
// ignored. The methods of a nil Request do nothing.
type Request struct {
	m      *Metrics
	model  string
	series []*series
	began  time.Time
	once   sync.Once
	first  time.Duration // from began to the first event; written by once
	ended  bool          // guarded by m.mu
}

// Begin counts a request that passed every check and is about to reach the model. A model that is neither in the table
// nor in the history counts in the total only, so that ids made up by callers take no memory.
func (m *Metrics) Begin(model string) *Request {
	r := &Request{m: m, model: model, began: m.now(), series: []*series{m.total}}
	at := r.began.Unix()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fold(at)
	m.dirty = true
	if s := m.byID[model]; s != nil {
		r.series = append(r.series, s)
	}
	for _, s := range r.series {
		s.sums[requests]++
		s.lastRequest = r.began
		s.bucketAt(at, m.oldest).sums[requests]++
	}
	return r
}

// FirstEvent notes that the first event of any type is ready to be sent. Only the first call counts; further calls are
// cheap.
func (r *Request) FirstEvent() {
	if r != nil {
		r.once.Do(func() { r.first = r.m.now().Sub(r.began) })
	}
}

// Succeed ends the request well: its last event was sent, with the usage u.
func (r *Request) Succeed(u Tokens) {
	if r == nil {
		return
	}
	r.FirstEvent() // a stream of nothing but its last event
	total := milliseconds(r.m.now().Sub(r.began))
	first := min(milliseconds(r.first), total)
	delta := sums{
		successes:  1,
		tokensOut:  add(count(u.Thoughts), count(u.Response)),
		thoughts:   count(u.Thoughts),
		response:   count(u.Response),
		generation: max(total-first, 1),
	}
	r.end("success", delta, func(s *series, b *bucket) {
		s.prompt, s.cached = add(s.prompt, count(u.Prompt)), add(s.cached, count(u.Cached))
		s.latest.push(total, first)
		if len(b.total) < maxSamples {
			b.total = append(b.total, total)
		}
		if len(b.first) < maxSamples {
			b.first = append(b.first, first)
		}
	})
}

// Fail ends the request with an error. err is kept in the list of errors and must hold nothing secret.
func (r *Request) Fail(err string) {
	if r == nil {
		return
	}
	failed := LastError{unix(r.m.now()), clip(err)}
	r.end("failure", sums{failures: 1}, func(s *series, _ *bucket) {
		s.lastError = &failed
		if s == r.m.total {
			kept := r.m.errors[:min(len(r.m.errors), maxErrors-1)]
			r.m.errors = append([]Error{{failed.At, clip(r.model), failed.Message}}, kept...)
		}
	})
}

// Disconnect ends the request because its caller went away first.
func (r *Request) Disconnect() {
	if r != nil {
		r.end("disconnect", sums{disconnects: 1}, func(*series, *bucket) {})
	}
}

// end adds an outcome to every series of the request: delta to the counters since the start and to whatever bucket now
// holds the moment the request began in, and then whatever more does.
func (r *Request) end(outcome string, delta sums, more func(*series, *bucket)) {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	if r.ended {
		return
	}
	r.ended = true
	r.m.fold(r.m.now().Unix())
	r.m.dirty = true
	for _, s := range r.series {
		b := s.bucketAt(r.began.Unix(), r.m.oldest)
		s.sums.add(delta)
		b.sums.add(delta)
		s.lastOutcome = &outcome
		more(s, b)
	}
}

// Unreadable counts proofs of thinking that are as good as absent.
func (m *Metrics) Unreadable(n int) { m.unreadable.Add(int64(n)) }

// Refuse counts a request that never reached a model.
func (m *Metrics) Refuse(kind RefusalKind) {
	at := m.now().Unix()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fold(at)
	m.dirty = true
	m.refused[kind]++
	m.total.bucketAt(at, m.oldest).sums[refused]++
}

// milliseconds rounds half up; a clock that stepped back counts as no time.
func milliseconds(d time.Duration) int64 { return max(d.Round(time.Millisecond).Milliseconds(), 0) }

// unix gives t in seconds, rounded to milliseconds.
func unix(t time.Time) float64 { return float64(t.Round(time.Millisecond).UnixMilli()) / 1000 }

func count(tokens *int64) int64 {
	if tokens == nil {
		return 0
	}
	return max(*tokens, 0)
}

// add stays at the largest number instead of overflowing: token counts are whatever an upstream claims.
func add(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// clip bounds the memory and the file space an error message takes.
func clip(text string) string {
	if len(text) > maxErrorText {
		text = text[:maxErrorText]
	}
	return strings.ToValidUTF8(text, "") // the cut may have split a character
}
