package metrics

import (
	"cmp"
	"slices"
	"time"
)

// The counters of a bucket, in the order the history file lists them.
const (
	requests = iota
	successes
	failures
	disconnects
	refused
	tokensOut
	thoughts
	response
	generation // milliseconds between first event and end
	counters
)

type sums [counters]int64

func (s *sums) add(delta sums) {
	for i, n := range delta {
		s[i] = add(s[i], n)
	}
}

// tiers are the bucket sizes, finest first, and how long each is kept, all in seconds. Buckets are aligned to the wall
// clock, and every moment lives in exactly one tier: what is too old for a tier folds into the next.
var tiers = [3]struct{ size, keep int64 }{{10, 2 * 3600}, {60, 2 * day}, {3600, maxRange}}

const (
	day        = 24 * 3600
	maxSamples = 64   // latencies kept per bucket, first come
	maxLatest  = 1000 // latencies kept per series since the start, last come
)

// bucket is what was counted from start on, for the size of its tier, with samples of the latencies in milliseconds.
type bucket struct {
	start        int64
	sums         sums
	total, first []int64
}

// merge adds what other counted, leaving more samples than a bucket may keep until thin is called.
func (b *bucket) merge(other *bucket) {
	b.sums.add(other.sums)
	b.total = append(b.total, other.total...)
	b.first = append(b.first, other.first...)
}

func (b *bucket) thin() { b.total, b.first = thin(b.total), thin(b.first) }

// thin sorts the samples in place and keeps at most maxSamples of them, evenly spread over the order.
func thin(samples []int64) []int64 {
	slices.Sort(samples)
	n := len(samples)
	if n <= maxSamples {
		return samples
	}
	kept := make([]int64, maxSamples)
	for k := range kept {
		kept[k] = samples[k*n/maxSamples]
	}
	return kept
}

// series is the record of one model, or of the whole server.
type series struct {
	id     string
	listed bool         // in the model table
	tiers  [3][]*bucket // each sorted by start

	// Since the start of the process.
	sums           sums
	prompt, cached int64
	latest         latest
	lastRequest    time.Time
	lastOutcome    *string
	lastError      *LastError
}

// latest holds the latencies of the last maxLatest successes, in milliseconds.
type latest struct {
	total, first []int64
	next         int // the oldest entry, once full
}

func (l *latest) push(total, first int64) {
	if len(l.total) < maxLatest {
		l.total, l.first = append(l.total, total), append(l.first, first)
		return
	}
	l.total[l.next], l.first[l.next] = total, first
	l.next = (l.next + 1) % maxLatest
}

// bucketAt returns the bucket that holds the moment at, given the first start each tier holds.
func (s *series) bucketAt(at int64, oldest [3]int64) *bucket {
	for i := range 2 {
		if at >= oldest[i] {
			return s.bucket(i, at)
		}
	}
	return s.bucket(2, at)
}

// bucket returns the bucket of a tier that at falls in, adding it if need be.
func (s *series) bucket(tier int, at int64) *bucket {
	start := floor(at, tiers[tier].size)
	i := search(s.tiers[tier], start)
	if i == len(s.tiers[tier]) || s.tiers[tier][i].start != start {
		s.tiers[tier] = slices.Insert(s.tiers[tier], i, &bucket{start: start})
	}
	return s.tiers[tier][i]
}

// search returns the index of the first bucket that starts at start or later.
func search(buckets []*bucket, start int64) int {
	i, _ := slices.BinarySearchFunc(buckets, start, func(b *bucket, start int64) int { return cmp.Compare(b.start, start) })
	return i
}

// between collects the range from start to before end in columns of span seconds, unthinned.
func (s *series) between(start, end, span int64) []bucket {
	columns := make([]bucket, (end-start)/span)
	for _, buckets := range s.tiers {
		for _, b := range buckets[search(buckets, start):search(buckets, end)] {
			columns[(b.start-start)/span].merge(b)
		}
	}
	return columns
}

// fold moves every bucket that is too old for its tier into the next one, and drops what the last tier cannot hold.
func (s *series) fold(oldest [3]int64) {
	for i := range tiers {
		n := search(s.tiers[i], oldest[i])
		for old := s.tiers[i][:n]; len(old) > 0 && i+1 < len(tiers); {
			into := s.bucket(i+1, old[0].start)
			for len(old) > 0 && old[0].start < into.start+tiers[i+1].size {
				into.merge(old[0])
				old = old[1:]
			}
			into.thin()
		}
		s.tiers[i] = slices.Delete(s.tiers[i], 0, n)
	}
}

// fold ages all series, at most once per wall-clock minute. Models that left the table are forgotten with their last
// bucket. It is called with m.mu held, before anything is counted, read or saved.
func (m *Metrics) fold(now int64) {
	if now/60 == m.folded {
		return
	}
	m.folded = now / 60
	for i, t := range tiers {
		// Whole buckets of the next tier, so that folding never splits one.
		whole := tiers[min(i+1, len(tiers)-1)].size
		m.oldest[i] = floor(floor(now, t.size)+t.size-t.keep, whole)
	}
	m.total.fold(m.oldest)
	for id, s := range m.byID {
		s.fold(m.oldest)
		if !s.listed && len(s.tiers[0])+len(s.tiers[1])+len(s.tiers[2]) == 0 {
			delete(m.byID, id)
		}
	}
}

// floor rounds seconds down to a multiple of size.
func floor(seconds, size int64) int64 { return seconds - seconds%size }
