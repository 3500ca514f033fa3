package metrics

import (
	"net/url"
	"slices"
	"strconv"
	"time"
)

const (
	maxRange       = 60 * day // seconds a query may span
	maxColumns     = 1440
	defaultColumns = 360
)

// spans are the column widths a window may have, in seconds.
var spans = []int64{10, 20, 30, 60, 120, 300, 600, 900, 1200, 1800, 3600, 7200, 10800, 21600, 43200}

// QueryError is a query that Query refuses; Message is for the caller.
type QueryError struct{ Message string }

func (e *QueryError) Error() string { return e.Message }

// Window is a range of the history, cut into columns of BucketS seconds. Start and End are unix seconds.
type Window struct {
	Seconds  int64         `json:"seconds"` // as asked for; the columns may cover a little more
	BucketS  int64         `json:"bucket_s"`
	Start    int64         `json:"start"`
	End      int64         `json:"end"`
	Total    WindowTotal   `json:"total"`
	Models   []WindowModel `json:"models"`   // in table order
	Previous *WindowSums   `json:"previous"` // the equally long range before, if the history covers it
}

// WindowTotal is the range over all models.
type WindowTotal struct {
	WindowSums
	Series Series `json:"series"`
}

// WindowModel is the range of one model, without refusals.
type WindowModel struct {
	ID string `json:"id"`
	WindowTotal
}

// WindowSums is what was counted in a range, by the moment a request began.
type WindowSums struct {
	Requests    int64    `json:"requests"`
	Successes   int64    `json:"successes"`
	Failures    int64    `json:"failures"`
	Disconnects int64    `json:"disconnects"`
	InFlight    int64    `json:"in_flight"`
	SuccessRate *float64 `json:"success_rate"`
	Refused     *int64   `json:"refused,omitempty"` // nil for a model
	TokensOut   int64    `json:"tokens_out"`
	Thoughts    int64    `json:"thoughts"`
	Response    int64    `json:"response"`
	GenMS       int64    `json:"generation_ms"`
	TPS         *float64 `json:"tps"`
	LatencyMS   Latency  `json:"latency_ms"`
}

// Series holds one value per column; latencies are in milliseconds.
type Series struct {
	Requests      []int64    `json:"requests"`
	Successes     []int64    `json:"successes"`
	Failures      []int64    `json:"failures"`
	Disconnects   []int64    `json:"disconnects"`
	Refused       []int64    `json:"refused,omitempty"` // nil for a model
	TokensOut     []int64    `json:"tokens_out"`
	Thoughts      []int64    `json:"thoughts"`
	Response      []int64    `json:"response"`
	GenMS         []int64    `json:"generation_ms"`
	TPS           []*float64 `json:"tps"`
	P50           []*int64   `json:"p50"`
	P90           []*int64   `json:"p90"`
	FirstEventP50 []*int64   `json:"first_event_p50"`
	FirstEventP90 []*int64   `json:"first_event_p90"`
}

// Query is Snapshot with the range the query asks for: window=N seconds up to now, or from=F&to=T in unix seconds, cut
// into at most columns=C columns where the history is fine enough. Other parameters are ignored. The only error is a
// *QueryError.
func (m *Metrics) Query(query url.Values) (*Snapshot, error) {
	asked, err := parse(query)
	if err != nil {
		return nil, err
	}
	now := m.now()
	answer := m.snapshot(now)
	if asked.seconds > 0 {
		answer.Window = m.window(asked, now)
	}
	return answer, nil
}

// interval is a parsed query: seconds up to now if to is 0, no range at all if seconds is 0.
type interval struct{ seconds, from, to, columns int64 }

func parse(query url.Values) (interval, error) {
	asked := interval{columns: defaultColumns}
	var ok bool
	if query.Has("columns") {
		if asked.columns, ok = number(query.Get("columns"), 1, maxColumns); !ok {
			return asked, &QueryError{"columns must be an integer from 1 to 1440"}
		}
	}
	window, from, to := query.Has("window"), query.Has("from"), query.Has("to")
	if from != to || window && from {
		return asked, &QueryError{"give either window, or both from and to"}
	}
	if window {
		if asked.seconds, ok = number(query.Get("window"), 10, maxRange); !ok {
			return asked, &QueryError{"window must be an integer from 10 to 5184000 seconds"}
		}
	}
	if from {
		var fromOK, toOK bool
		asked.from, fromOK = number(query.Get("from"), 0, maxUnix)
		asked.to, toOK = number(query.Get("to"), 0, maxUnix)
		asked.seconds = asked.to - asked.from
		if !fromOK || !toOK || asked.seconds <= 0 || asked.seconds > maxRange {
			return asked, &QueryError{"from and to must be unix seconds, with from before to and at most 5184000 seconds apart"}
		}
	}
	return asked, nil
}

const maxUnix = 9_999_999_999

// number reads ASCII digits, leading zeros included, without a sign.
func number(text string, least, most int64) (int64, bool) {
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && least <= n && n <= most
}

// window reads one series at a time, so that a long range never holds up counting for long.
func (m *Metrics) window(asked interval, now time.Time) *Window {
	m.mu.Lock()
	table, since := slices.Clone(m.table), m.since
	span, start, end := columns(asked, now.Unix(), m.oldest)
	m.mu.Unlock()

	read := func(s *series, start, end int64, ofTotal bool) WindowTotal {
		m.mu.Lock()
		columns := s.between(start, end, span)
		m.mu.Unlock()
		return render(columns, ofTotal)
	}
	w := &Window{
		Seconds: asked.seconds, BucketS: span, Start: start, End: end,
		Total:  read(m.total, start, end, true),
		Models: make([]WindowModel, len(table)),
	}
	for i, s := range table {
		w.Models[i] = WindowModel{s.id, read(s, start, end, false)}
	}
	if before := start - (end - start); before >= floor(since, span) {
		w.Previous = new(read(m.total, before, start, true).WindowSums)
	}
	return w
}

// columns chooses the finest tier that still holds the range, and in it the narrowest columns that are not too many.
func columns(asked interval, now int64, oldest [3]int64) (span, start, end int64) {
	for i, t := range tiers {
		for _, span = range spans {
			if span%t.size != 0 {
				continue
			}
			if asked.to > 0 {
				start, end = floor(asked.from, span), floor(asked.to+span-1, span)
			} else {
				end = floor(now, span) + span
				start = end - floor(asked.seconds+span-1, span)
			}
			if (end-start)/span <= asked.columns {
				break
			}
		}
		if start >= oldest[i] {
			break
		}
	}
	return span, start, end
}

func render(columns []bucket, ofTotal bool) WindowTotal {
	var all bucket
	var out Series
	for _, c := range columns {
		all.merge(&c)
		c.thin()
		out.Requests = append(out.Requests, c.sums[requests])
		out.Successes = append(out.Successes, c.sums[successes])
		out.Failures = append(out.Failures, c.sums[failures])
		out.Disconnects = append(out.Disconnects, c.sums[disconnects])
		if ofTotal {
			out.Refused = append(out.Refused, c.sums[refused])
		}
		out.TokensOut = append(out.TokensOut, c.sums[tokensOut])
		out.Thoughts = append(out.Thoughts, c.sums[thoughts])
		out.Response = append(out.Response, c.sums[response])
		out.GenMS = append(out.GenMS, c.sums[generation])
		out.TPS = append(out.TPS, c.sums.tps())
		out.P50 = append(out.P50, percentile(c.total, 50))
		out.P90 = append(out.P90, percentile(c.total, 90))
		out.FirstEventP50 = append(out.FirstEventP50, percentile(c.first, 50))
		out.FirstEventP90 = append(out.FirstEventP90, percentile(c.first, 90))
	}
	all.thin()
	w := WindowTotal{Series: out, WindowSums: WindowSums{
		Requests:    all.sums[requests],
		Successes:   all.sums[successes],
		Failures:    all.sums[failures],
		Disconnects: all.sums[disconnects],
		InFlight:    all.sums.inFlight(),
		SuccessRate: all.sums.successRate(),
		TokensOut:   all.sums[tokensOut],
		Thoughts:    all.sums[thoughts],
		Response:    all.sums[response],
		GenMS:       all.sums[generation],
		TPS:         all.sums.tps(),
		LatencyMS:   latency(all.total, all.first),
	}}
	if ofTotal {
		w.Refused = &all.sums[refused]
	}
	return w
}
