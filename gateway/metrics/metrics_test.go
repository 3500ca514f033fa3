package metrics

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const epoch = 1800000000 // on a whole hour

// clock is a wall clock that moves only when told to.
type clock struct{ time.Time }

func at(seconds int64) *clock                   { return &clock{time.Unix(seconds, 0)} }
func (c *clock) now() time.Time                 { return c.Time }
func (c *clock) pass(d time.Duration)           { c.Time = c.Add(d) }
func (c *clock) passMS(milliseconds int64)      { c.pass(time.Duration(milliseconds) * time.Millisecond) }
func (c *clock) open(models ...string) *Metrics { return Open(Options{Models: models, Now: c.now}) }

// succeed runs one request on a clock that stands where it stood afterwards.
func (c *clock) succeed(m *Metrics, model string, first, total int64, u Tokens) {
	began := c.Time
	r := m.Begin(model)
	c.passMS(first)
	r.FirstEvent()
	c.passMS(total - first)
	r.Succeed(u)
	c.Time = began
}

func text(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func equal(t *testing.T, what string, got any, want string) {
	t.Helper()
	if g := text(t, got); g != want {
		t.Errorf("%s\n got %s\nwant %s", what, g, want)
	}
}

func TestLatenciesSinceStart(t *testing.T) {
	c := at(epoch)
	m := c.open("fast", "idle")
	for total := int64(100); total <= 1000; total += 100 {
		c.succeed(m, "fast", total/2, total, Tokens{})
	}
	const want = `{"first_event":{"p50":250,"p90":450},"total":{"p50":500,"p90":900}}`
	s := m.Snapshot()
	equal(t, "total", s.LatencyMS, want)
	equal(t, "model", s.Models[0].LatencyMS, want)
	equal(t, "other model", s.Models[1].LatencyMS, `{"first_event":{"p50":null,"p90":null},"total":{"p50":null,"p90":null}}`)

	for range 1000 {
		c.succeed(m, "fast", 7, 9, Tokens{})
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, total := range m.total.latest.total {
		if total != 9 || m.total.latest.first[i] != 7 {
			t.Fatalf("entry %d is %d/%d: older than the latest thousand", i, total, m.total.latest.first[i])
		}
	}
}

func TestThroughput(t *testing.T) {
	c := at(epoch)
	m := c.open("fast")
	c.succeed(m, "fast", 100, 2100, Tokens{Thoughts: new(int64(60)), Response: new(int64(40))})
	c.succeed(m, "fast", 100, 100, Tokens{Prompt: new(int64(11)), Cached: new(int64(3)), Response: new(int64(5))})
	s := m.Snapshot().Models[0]
	equal(t, "tokens", s.Tokens, `{"prompt":11,"cached":3,"thoughts":60,"response":45}`)
	equal(t, "tokens out, generation, tps", []any{s.TokensOut, s.GenMS, s.TPS}, `[105,2001,52.5]`)
}

func TestRounding(t *testing.T) {
	for _, c := range []struct {
		successes, failures, tokens, generation int64
		want                                    string
	}{
		{0, 0, 0, 0, `[null,null]`},
		{0, 3, 0, 1, `[0,0]`},
		{2, 1, 1, 3000, `[0.6667,0.3]`},
		{1, 2, 1, 20000, `[0.3333,0.1]`}, // 0.05 goes up
		{1, 0, 5, 4000, `[1,1.3]`},       // 1.25 goes up
	} {
		s := sums{successes: c.successes, failures: c.failures, tokensOut: c.tokens, generation: c.generation}
		equal(t, fmt.Sprint(c), []any{s.successRate(), s.tps()}, c.want)
	}
	for d, want := range map[time.Duration]int64{
		499 * time.Microsecond: 0, 500 * time.Microsecond: 1, 1499 * time.Microsecond: 1, 2500 * time.Microsecond: 3, -time.Second: 0,
	} {
		if got := milliseconds(d); got != want {
			t.Errorf("milliseconds(%v) = %d, want %d", d, got, want)
		}
	}
}

func TestPercentile(t *testing.T) {
	for _, c := range []struct {
		n    int // samples 1…n
		want string
	}{
		{0, `[null,null]`}, {1, `[1,1]`}, {2, `[1,2]`}, {7, `[4,7]`}, {10, `[5,9]`}, {11, `[6,10]`}, {1000, `[500,900]`},
	} {
		var samples []int64
		for i := range c.n {
			samples = append(samples, int64(i+1))
		}
		equal(t, fmt.Sprint(c.n), []any{percentile(samples, 50), percentile(samples, 90)}, c.want)
	}
}

func TestBucketKeepsFirstSamples(t *testing.T) {
	c := at(epoch)
	m := c.open("fast")
	for total := int64(1); total <= 100; total++ {
		c.succeed(m, "fast", total, total, Tokens{})
	}
	s := query(t, m, "window=60")
	equal(t, "p90 in window, column, since start",
		[]any{s.Window.Total.LatencyMS.Total.P90, s.Window.Models[0].Series.P90[5], s.LatencyMS.Total.P90}, `[58,58,90]`)
}

func TestErrors(t *testing.T) {
	c := at(epoch)
	m := c.open("fast", "slow")
	for i := range 125 {
		c.pass(1500 * time.Microsecond)
		m.Begin("fast").Fail(fmt.Sprint("error ", i))
	}
	m.Begin("slow").Fail(strings.Repeat("é", maxErrorText))
	s := m.Snapshot()
	if len(s.Errors) != 100 || len(s.Errors[0].Message) > maxErrorText || s.Errors[99].Message != "error 26" {
		t.Errorf("%d errors, first of %d bytes, last %q", len(s.Errors), len(s.Errors[0].Message), s.Errors[99].Message)
	}
	equal(t, "second newest", s.Errors[1], `{"at":1800000000.188,"model":"fast","message":"error 124"}`)
	equal(t, "last of model", []any{s.Models[0].LastOutcome, s.Models[0].LastError, s.Models[0].SuccessRate},
		`["failure",{"at":1800000000.188,"message":"error 124"},0]`)
}

func TestOutcomeCountsOnce(t *testing.T) {
	fail := func(r *Request) { r.Fail("gone") }
	succeed := func(r *Request) { r.Succeed(Tokens{Response: new(int64(2))}) }
	for _, c := range []struct {
		name string
		ends []func(*Request)
		want string // successes, failures, disconnects, in flight, success rate, tokens out, errors, outcome
	}{
		{"none", nil, `[0,0,0,1,null,0,0,null]`},
		{"success", []func(*Request){succeed, fail, succeed, (*Request).Disconnect}, `[1,0,0,0,1,2,0,"success"]`},
		{"failure", []func(*Request){fail, succeed, fail, (*Request).Disconnect}, `[0,1,0,0,0,0,1,"failure"]`},
		{"disconnect", []func(*Request){(*Request).Disconnect, fail, succeed}, `[0,0,1,0,null,0,0,"disconnect"]`},
	} {
		m := at(epoch).open("fast")
		r := m.Begin("fast")
		for _, end := range c.ends {
			end(r)
			end(nil)
		}
		(*Request)(nil).FirstEvent()
		s := m.Snapshot()
		equal(t, c.name, []any{
			s.Successes, s.Failures, s.Disconnects, s.InFlight, s.SuccessRate, s.TokensOut, len(s.Errors), s.Models[0].LastOutcome,
		}, c.want)
	}
}

func TestFirstEventCountsOnce(t *testing.T) {
	c := at(epoch)
	m := c.open("fast")
	r := m.Begin("fast")
	for range 3 {
		c.passMS(40)
		r.FirstEvent()
	}
	r.Succeed(Tokens{})
	s := m.Snapshot()
	equal(t, "first and total", []any{s.LatencyMS.FirstEvent.P50, s.LatencyMS.Total.P50, s.GenMS}, `[40,120,80]`)
}

func TestRefusals(t *testing.T) {
	m := at(epoch).open("fast")
	for kind, n := range map[RefusalKind]int{Unauthorized: 1, InvalidRequest: 2, UnknownModel: 3} {
		for range n {
			m.Refuse(kind)
		}
	}
	s := query(t, m, "window=20")
	equal(t, "refused", []any{s.Refused, s.Requests, s.Window.Total.Refused, s.Window.Total.Series.Refused},
		`[{"unauthorized":1,"invalid_request":2,"unknown_model":3},0,6,[0,6]]`)
}

func TestUnknownModelCountsInTotalOnly(t *testing.T) {
	m := at(epoch).open("fast")
	m.Begin("made up").Fail("x")
	s := m.Snapshot()
	equal(t, "requests, failures, models", []any{s.Requests, s.Failures, s.Models[0].Requests, len(m.byID)}, `[1,1,0,1]`)
}

func TestAbsurdUsage(t *testing.T) {
	c := at(epoch)
	m := c.open("fast")
	for range 2 {
		c.succeed(m, "fast", 1, 2, Tokens{
			Prompt: new(int64(-5)), Thoughts: new(int64(math.MaxInt64)), Response: new(int64(math.MaxInt64)),
		})
	}
	equal(t, "tokens", m.Snapshot().Tokens, `{"prompt":0,"cached":0,"thoughts":9223372036854775807,"response":9223372036854775807}`)
	if _, err := decode(m.encode()); err != nil {
		t.Error("the history became unreadable:", err)
	}
}

func TestSetModels(t *testing.T) {
	c := at(epoch)
	m := c.open("a", "b", "a")
	c.succeed(m, "a", 1, 2, Tokens{})
	running := m.Begin("b")
	equal(t, "an id listed twice is one row", len(m.Snapshot().Models), `2`)
	m.SetModels([]string{"c", "a"})
	running.Fail("late") // its model left meanwhile
	ids := func() (ids []string) {
		for _, model := range m.Snapshot().Models {
			ids = append(ids, fmt.Sprint(model.ID, model.Requests))
		}
		return ids
	}
	equal(t, "after reload", ids(), `["c0","a1"]`)
	if order := regexp.MustCompile(`"([abc])":\{`).FindAllString(string(m.encode()), -1); text(t, order) != `["\"c\":{","\"a\":{","\"b\":{"]` {
		t.Errorf("models in the file: %v", order)
	}
	m.SetModels([]string{"b"})
	equal(t, "back again", ids(), `["b1"]`)
	equal(t, "failures", m.Snapshot().Models[0].Failures, `1`)

	c.pass(61 * day * time.Second)
	m.Refuse(UnknownModel)
	equal(t, "models remembered once their history is too old", len(m.byID), `1`)
}

func TestSnapshotText(t *testing.T) {
	c := at(epoch)
	m := Open(Options{Models: []string{"fast"}, Now: c.now, OpenStreams: func() int { return 3 }})
	c.passMS(12345)
	c.succeed(m, "fast", 90, 390, Tokens{Response: new(int64(6))})
	m.Unreadable(2)
	const counts = `"requests":1,"successes":1,"failures":0,"disconnects":0,"in_flight":0,"success_rate":1,` +
		`"latency_ms":{"first_event":{"p50":90,"p90":90},"total":{"p50":390,"p90":390}},` +
		`"tokens":{"prompt":0,"cached":0,"thoughts":0,"response":6},"tokens_out":6,"generation_ms":300,"tps":20,`
	got := regexp.MustCompile(`("(?:goroutines|heap_bytes|rss_bytes)"):[1-9][0-9]*`).ReplaceAllString(text(t, m.Snapshot()), `$1:N`)
	want := `{"started_at":1800000000,"since":1800000000,"uptime_s":12,` + counts +
		`"refused":{"unauthorized":0,"invalid_request":0,"unknown_model":0},"last_request_at":1800000012.345,"errors":[],` +
		`"models":[{"id":"fast",` + counts + `"last_request_at":1800000012.345,"last_outcome":"success","last_error":null}],` +
		`"process":{"goroutines":N,"heap_bytes":N,"rss_bytes":N,"open_upstream_streams":3,"fidelity_unreadable":2}}`
	if got = strings.Replace(got, `"rss_bytes":0`, `"rss_bytes":N`, 1); got != want { // 0 where there is no /proc
		t.Errorf("\n got %s\nwant %s", got, want)
	}
	equal(t, "empty lists", []any{at(epoch).open().Snapshot().Errors, at(epoch).open().Snapshot().Models}, `[[],[]]`)
}

func TestConcurrency(t *testing.T) {
	m := Open(Options{Models: []string{"a", "b"}, File: t.TempDir() + "/m.json"})
	var group sync.WaitGroup
	const workers, rounds = 8, 50
	for w := range workers {
		group.Go(func() {
			for i := range rounds {
				r := m.Begin([]string{"a", "b"}[i%2])
				var ends sync.WaitGroup
				ends.Go(r.FirstEvent)
				ends.Go(func() { r.Succeed(Tokens{Response: new(int64(1))}) })
				ends.Go(r.Disconnect)
				ends.Wait()
				m.Refuse(Unauthorized)
				if w == 0 && i%10 == 0 {
					query(t, m, "window=3600")
					m.SetModels([]string{"b", "a"})
					if err := m.Save(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	group.Wait()
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	s := query(t, m, "window=3600")
	equal(t, "requests, in flight, refused, window", []any{
		s.Requests, s.InFlight, s.Refused.Unauthorized, s.Window.Total.Requests, s.Models[0].Requests + s.Models[1].Requests,
	}, `[400,0,400,400,400]`)
}
