package metrics

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"testing"
	"time"
)

func query(t *testing.T, m *Metrics, q string) *Snapshot {
	t.Helper()
	values, err := url.ParseQuery(q)
	if err != nil {
		t.Fatal(err)
	}
	s, err := m.Query(values)
	if err != nil {
		t.Fatalf("%s: %v", q, err)
	}
	return s
}

func TestWindowText(t *testing.T) {
	c := at(epoch + 7)
	m := c.open("fast")
	c.succeed(m, "fast", 90, 390, Tokens{Response: new(int64(6))})
	const (
		sums   = `"requests":1,"successes":1,"failures":0,"disconnects":0,"in_flight":0,"success_rate":1,`
		rest   = `"tokens_out":6,"thoughts":0,"response":6,"generation_ms":300,"tps":20,"latency_ms":{"first_event":{"p50":90,"p90":90},"total":{"p50":390,"p90":390}},`
		series = `"series":{"requests":[0,0,0,0,0,1],"successes":[0,0,0,0,0,1],"failures":[0,0,0,0,0,0],"disconnects":[0,0,0,0,0,0],`
		more   = `"tokens_out":[0,0,0,0,0,6],"thoughts":[0,0,0,0,0,0],"response":[0,0,0,0,0,6],"generation_ms":[0,0,0,0,0,300],` +
			`"tps":[null,null,null,null,null,20],"p50":[null,null,null,null,null,390],"p90":[null,null,null,null,null,390],` +
			`"first_event_p50":[null,null,null,null,null,90],"first_event_p90":[null,null,null,null,null,90]}`
	)
	answer := query(t, m, "window=60")
	equal(t, "window", answer.Window, `{"seconds":60,"bucket_s":10,"start":1799999950,"end":1800000010,`+
		`"total":{`+sums+`"refused":0,`+rest+series+`"refused":[0,0,0,0,0,0],`+more+`},`+
		`"models":[{"id":"fast",`+sums+rest+series+more+`}],"previous":null}`)
	if body := text(t, answer); !strings.Contains(body, `},"window":{"seconds":60`) || !strings.HasSuffix(body, `"previous":null}}`) {
		t.Errorf("window is not the last key: %s", body)
	}
	if none := query(t, m, "columns=7&unknown=x"); none.Window != nil {
		t.Errorf("columns alone gave a window: %+v", none.Window)
	}
}

func TestWindowBounds(t *testing.T) {
	for _, c := range []struct{ query, want string }{ // seconds, bucket_s, start, end, columns
		{"window=60", `[60,10,1799999950,1800000010,6]`},
		{"window=0000000000061", `[61,10,1799999940,1800000010,7]`},
		{"window=60&columns=1", `[60,60,1800000000,1800000060,1]`},
		{"from=1800000003&to=1800000047", `[44,10,1800000000,1800000050,5]`},
		{"from=1800000010&to=1800000020", `[10,10,1800000010,1800000020,1]`},
		{"from=1799136000&to=1799139600", `[3600,3600,1799136000,1799139600,1]`}, // ten days back
		{"from=1799913600&to=1799917200", `[3600,60,1799913600,1799917200,60]`},  // one day back
		{"from=1799992790&to=1799992800", `[10,60,1799992740,1799992800,1]`},     // just beyond the fine tier
		{"from=1799992800&to=1799992810", `[10,10,1799992800,1799992810,1]`},     // just within
		{"from=0&to=5184000", `[5184000,21600,0,5184000,240]`},
		{"from=9999999990&to=9999999999&columns=1440", `[9,10,9999999990,10000000000,1]`},
	} {
		w := query(t, at(epoch+7).open(), c.query).Window
		equal(t, c.query, []any{w.Seconds, w.BucketS, w.Start, w.End, len(w.Total.Series.Requests)}, c.want)
	}
}

func TestColumnSpan(t *testing.T) {
	for _, c := range []struct{ window, columns, span, count int64 }{
		{900, 90, 10, 90},
		{900, 30, 30, 30},
		{3600, 90, 60, 60},
		{21600, 90, 300, 72},
		{86400, 90, 1200, 72},
		{86400, 360, 300, 288},
		{604800, 90, 7200, 84},
		{2592000, 90, 43200, 60},
		{2592000, 30, 43200, 60},
		{7200, 1440, 10, 720},
		{172800, 1440, 120, 1440},
		{5184000, 1440, 3600, 1440},
		{10, 1, 10, 1},
	} {
		for _, now := range []int64{epoch, epoch + 7, epoch + 59, epoch + 3599, epoch + 5*3600 + 1234} {
			w := query(t, at(now).open(), fmt.Sprintf("window=%d&columns=%d", c.window, c.columns)).Window
			if got := int64(len(w.Total.Series.TPS)); w.BucketS != c.span || got != c.count {
				t.Errorf("%+v at %d: span %d, %d columns", c, now, w.BucketS, got)
			}
		}
	}
}

func TestPrevious(t *testing.T) {
	c := at(epoch)
	m := c.open("fast")
	c.succeed(m, "fast", 10, 30, Tokens{Response: new(int64(2))})
	m.Refuse(Unauthorized)
	c.pass(60 * time.Second)
	for _, q := range []struct{ query, want string }{
		{"window=70", `null`}, // the range before starts 10 s before the history
		{"from=1800000060&to=1800000120", `{"requests":1,"successes":1,"failures":0,"disconnects":0,"in_flight":0,"success_rate":1,` +
			`"refused":1,"tokens_out":2,"thoughts":0,"response":2,"generation_ms":20,"tps":100,` +
			`"latency_ms":{"first_event":{"p50":10,"p90":10},"total":{"p50":30,"p90":30}}}`},
		{"from=1900000000&to=1900000060", `{"requests":0,"successes":0,"failures":0,"disconnects":0,"in_flight":0,"success_rate":null,` +
			`"refused":0,"tokens_out":0,"thoughts":0,"response":0,"generation_ms":0,"tps":null,` +
			`"latency_ms":{"first_event":{"p50":null,"p90":null},"total":{"p50":null,"p90":null}}}`},
	} {
		equal(t, q.query, query(t, m, q.query).Window.Previous, q.want)
	}
	// The column that holds the beginning of the history counts as covered.
	c = at(epoch + 7)
	m = c.open()
	c.pass(5 * time.Second)
	if query(t, m, "window=10").Window.Previous == nil {
		t.Error("no previous though it starts with the column the history begins in")
	}
}

func TestQueryErrors(t *testing.T) {
	messages := map[string]string{}
	for _, c := range []struct{ kind, query string }{
		{"columns", "columns=0"},
		{"columns", "columns=1441"},
		{"columns", "columns="},
		{"columns", "columns=x&window=1&from=2"},
		{"combination", "window=60&from=1&to=2"},
		{"combination", "window=1&to=2"},
		{"combination", "from=1"},
		{"combination", "to=1&columns=5"},
		{"window", "window=9"},
		{"window", "window=5184001"},
		{"window", "window="},
		{"window", "window=%2B60"},
		{"window", "window=-60"},
		{"window", "window=60.0"},
		{"window", "window=%D9%A6%D9%A0"}, // digits, but not ASCII
		{"window", "window=99999999999999999999"},
		{"range", "from=2&to=2"},
		{"range", "from=3&to=2"},
		{"range", "from=0&to=5184001"},
		{"range", "from=-1&to=2"},
		{"range", "from=&to=2"},
		{"range", "from=9999999999&to=10000000000"},
	} {
		values, _ := url.ParseQuery(c.query)
		m := at(epoch).open()
		s, err := m.Query(values)
		var refusal *QueryError
		if s != nil || !errors.As(err, &refusal) || refusal.Error() == "" {
			t.Errorf("%s: %v, %v", c.query, s, err)
			continue
		}
		if known, ok := messages[c.kind]; ok && known != refusal.Message {
			t.Errorf("%s: %q, want %q", c.query, refusal.Message, known)
		}
		messages[c.kind] = refusal.Message
		equal(t, "refusals", m.Snapshot().Refused, `{"unauthorized":0,"invalid_request":0,"unknown_model":0}`)
	}
	distinct := map[string]bool{}
	for _, message := range messages {
		distinct[message] = true
	}
	if len(distinct) != 4 {
		t.Errorf("messages are not distinct: %v", messages)
	}
}

func TestFoldedSamples(t *testing.T) {
	c := at(epoch)
	m := c.open("fast")
	for total := int64(1); total <= 120; total++ {
		if total == 61 {
			c.pass(10 * time.Second)
		}
		c.succeed(m, "fast", total, total, Tokens{})
	}
	one := query(t, m, "from=1800000000&to=1800000060&columns=1").Window.Total
	two := query(t, m, "from=1800000000&to=1800000020").Window.Total
	equal(t, "p90 pooled in a column, and in a range", []any{one.Series.P90, two.Series.P90, two.LatencyMS.Total.P90}, `[[107],[54,114],107]`)
	c.pass(3 * time.Hour)
	m.Refuse(UnknownModel)
	minute := m.total.tiers[1][0]
	equal(t, "folded", []any{len(m.total.tiers[0]), len(minute.total), len(minute.first), minute.sums[successes], *percentile(minute.total, 90)},
		`[1,64,64,120,107]`)
}

// TestTiers follows one bucket through the tiers until it is forgotten.
func TestTiers(t *testing.T) {
	c := at(epoch + 30)
	m := c.open("fast")
	late := m.Begin("fast")
	for _, step := range []struct {
		age  int64 // seconds since the epoch
		want string
	}{
		{7199, `[1,0,0]`},
		{7230, `[1,0,0]`}, // the last 10 s before its whole minute is too old
		{7260, `[0,1,0]`},
		{172800 + 3539, `[0,1,0]`},
		{172800 + 3600, `[0,0,1]`},
		{5184000 - 1, `[0,0,1]`},
		{5184000, `[0,0,0]`},
	} {
		c.Time = time.Unix(epoch+step.age, 0)
		s := m.Snapshot()
		series := m.byID["fast"]
		equal(t, fmt.Sprint("after ", step.age), []int{len(series.tiers[0]), len(series.tiers[1]), len(series.tiers[2])}, step.want)
		if step.age == 7260 {
			late.Fail("late")
			equal(t, "a late outcome joins its folded bucket", series.tiers[1][0].sums[:3], `[1,0,1]`)
		}
		if s.Requests != 1 {
			t.Error("ageing touched the counters since the start")
		}
	}
}

func TestFoldsOncePerMinute(t *testing.T) {
	c := at(epoch)
	m := c.open()
	m.Refuse(Unauthorized)
	c.Time = time.Unix(epoch+7260, 0)
	m.Snapshot()
	before := m.oldest
	c.pass(59 * time.Second)
	m.Snapshot()
	if m.oldest != before {
		t.Error("folded twice in a minute")
	}
	c.pass(time.Second)
	m.Snapshot()
	if m.oldest == before {
		t.Error("not folded in the next minute")
	}
}

// TestNothingIsLost lets a clock run over random requests and compares what the tiers hold with what was counted.
func TestNothingIsLost(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	c := at(epoch)
	m := c.open("fast")
	var running []*Request
	const n = 3000
	for range n {
		running = append(running, m.Begin("fast"))
		c.pass(time.Duration(random.Int64N(int64(30 * time.Minute))))
		if len(running) > 5 {
			i := random.IntN(len(running))
			running[i].Succeed(Tokens{Response: new(int64(1))})
			running = append(running[:i], running[i+1:]...)
		}
	}
	// 3000 requests a quarter of an hour apart take some 31 days, well within the last tier.
	for _, q := range []string{"window=5184000", "window=5184000&columns=1440"} {
		w := query(t, m, q).Window
		var requests, successes int64
		for i := range w.Total.Series.Requests {
			requests += w.Total.Series.Requests[i]
			successes += w.Models[0].Series.Successes[i]
		}
		equal(t, q, []int64{w.Total.Requests, requests, w.Models[0].Successes, successes, w.Total.Response}, `[3000,3000,2995,2995,2995]`)
	}
	for i, buckets := range m.total.tiers {
		for k, b := range buckets {
			if b.start%tiers[i].size != 0 || k > 0 && buckets[k-1].start >= b.start || b.start < m.oldest[i] ||
				i > 0 && b.start >= m.oldest[i-1] || len(b.total) > maxSamples {
				t.Fatalf("tier %d holds a misplaced bucket: %+v", tiers[i].size, b)
			}
		}
	}
}

func TestClockStepsBack(t *testing.T) {
	c := at(epoch)
	m := c.open("fast")
	r := m.Begin("fast")
	c.pass(-3 * day * time.Second)
	r.Succeed(Tokens{})
	c.succeed(m, "fast", 5, 9, Tokens{})
	s := query(t, m, "window=3600")
	equal(t, "window, since start, uptime", []any{s.Window.Total.Successes, s.Successes, s.UptimeS}, `[1,2,0]`)
}
