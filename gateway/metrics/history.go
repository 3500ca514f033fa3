package metrics

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

const (
	saveEvery  = time.Minute
	maxHistory = 1 << 30 // bytes of a history file worth reading
)

// Run saves the history once a minute until ctx is done. The last save is Close's, after the last request has ended.
func (m *Metrics) Run(ctx context.Context) {
	ticker := time.NewTicker(saveEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			_ = m.Save() // reports its own failures
		}
	}
}

// Close saves the history and lets go of the file: what is counted afterwards stays in memory. Further calls do nothing.
func (m *Metrics) Close() error {
	m.saving.Lock()
	defer m.saving.Unlock()
	err := m.save()
	m.closed = true
	return err
}

// Save writes the history file if anything was counted since the last save. A failure is logged once, until a save
// succeeds again, and leaves everything to be saved by the next call.
func (m *Metrics) Save() error {
	m.saving.Lock()
	defer m.saving.Unlock()
	return m.save()
}

func (m *Metrics) save() error {
	if m.file == "" || m.closed {
		return nil
	}
	text := m.encode()
	if text == nil {
		return nil
	}
	err := replace(m.file, text)
	if err != nil {
		m.mu.Lock()
		m.dirty = true
		m.mu.Unlock()
		if !m.writeFailed {
			m.log.Error("metrics history not written, will try again", "file", m.file, "error", err)
		}
	}
	m.writeFailed = err != nil
	return err
}

// replace writes a file that is complete at every moment and readable by its owner only.
func replace(path string, text []byte) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	temporary := path + ".tmp"
	file, err := os.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	err = errors.Join(file.Chmod(0o600), err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		os.Remove(temporary)
	}
	return err
}

// encode returns the history as one line of JSON, or nil if nothing was counted since the last call. Each series is
// written under a lock of its own, so that a long history never holds up counting for long; what is counted meanwhile
// makes the next save due.
func (m *Metrics) encode() []byte {
	now := m.now()
	m.mu.Lock()
	if !m.dirty {
		m.mu.Unlock()
		return nil
	}
	m.dirty = false
	m.fold(now.Unix())
	models := slices.Clone(m.table)
	for _, id := range slices.Sorted(maps.Keys(m.byID)) {
		if s := m.byID[id]; !s.listed {
			models = append(models, s)
		}
	}
	head, _ := json.Marshal(struct { // numbers and strings only: it cannot fail
		Version int     `json:"version"`
		Since   int64   `json:"since"`
		SavedAt float64 `json:"saved_at"`
		Errors  []Error `json:"errors"`
	}{1, m.since, unix(now), append([]Error{}, m.errors...)})
	m.mu.Unlock()

	write := func(text []byte, s *series) []byte {
		m.mu.Lock()
		defer m.mu.Unlock()
		return s.append(text)
	}
	text := append(head[:len(head)-1], `,"total":`...)
	text = write(text, m.total)
	text = append(text, `,"models":{`...)
	for i, s := range models {
		if i > 0 {
			text = append(text, ',')
		}
		id, _ := json.Marshal(s.id)
		text = append(append(text, id...), ':')
		text = write(text, s)
	}
	return append(text, "}}\n"...)
}

// append writes {"10":[[start,[counters…,[total ms],[first event ms]]],…],"60":…,"3600":…}, by hand because counting
// waits meanwhile.
func (s *series) append(text []byte) []byte {
	list := func(numbers []int64) {
		for i, n := range numbers {
			if i > 0 {
				text = append(text, ',')
			}
			text = strconv.AppendInt(text, n, 10)
		}
	}
	for i, t := range tiers {
		text = append(text, "{,,"[i], '"')
		text = strconv.AppendInt(text, t.size, 10)
		text = append(text, `":[`...)
		for k, b := range s.tiers[i] {
			if k > 0 {
				text = append(text, ',')
			}
			text = append(text, '[')
			text = strconv.AppendInt(text, b.start, 10)
			text = append(text, ",["...)
			list(b.sums[:])
			text = append(text, ",["...)
			list(b.total)
			text = append(text, "],["...)
			list(b.first)
			text = append(text, "]]]"...)
		}
		text = append(text, ']')
	}
	return append(text, '}')
}

// load continues the history in the file. A file that cannot be read, or is in any part not what encode writes, is
// left alone until the next save replaces it.
func (m *Metrics) load() {
	if m.file == "" {
		return
	}
	text, err := read(m.file)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	var h history
	if err == nil {
		h, err = decode(text)
	}
	if err != nil {
		m.log.Warn("metrics history not readable, starting a new one", "file", m.file, "error", err)
		return
	}
	m.since, m.errors, m.total.tiers = *h.Since, h.errors, h.Total.tiers()
	for id, t := range h.Models {
		m.byID[id] = &series{id: id, tiers: t.tiers()}
	}
}

func read(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, maxHistory+1))
	if err == nil && len(text) > maxHistory {
		err = errors.New("too large")
	}
	return text, err
}

// history is the file as read. What may not be missing or null is a pointer, a slice or a map, checked by decode.
type history struct {
	Version *int64
	Since   *int64
	Errors  []struct {
		At             *float64
		Model, Message *string
	}
	Total  *fileTiers
	Models map[string]*fileTiers

	errors []Error
}

type fileTiers struct {
	Seconds []*bucket `json:"10"`
	Minutes []*bucket `json:"60"`
	Hours   []*bucket `json:"3600"`
}

func (t *fileTiers) tiers() [3][]*bucket { return [3][]*bucket{t.Seconds, t.Minutes, t.Hours} }

func decode(text []byte) (history, error) {
	var h history
	if err := json.Unmarshal(text, &h); err != nil {
		return h, err
	}
	if h.Version == nil || *h.Version != 1 {
		return h, errors.New("version is not 1")
	}
	if h.Since == nil || *h.Since < 0 {
		return h, errors.New("since is not a time")
	}
	if h.Errors == nil || h.Models == nil {
		return h, errors.New("errors or models missing")
	}
	for _, e := range h.Errors {
		if e.At == nil || e.Model == nil || e.Message == nil {
			return h, errors.New("incomplete entry in errors")
		}
		h.errors = append(h.errors, Error{*e.At, *e.Model, clip(*e.Message)})
	}
	h.errors = h.errors[:min(len(h.errors), maxErrors)]
	if err := h.Total.check(); err != nil {
		return h, fmt.Errorf("total: %w", err)
	}
	for id, t := range h.Models {
		if err := t.check(); err != nil {
			return h, fmt.Errorf("model %q: %w", id, err)
		}
	}
	return h, nil
}

// check makes sure that every tier is there, sorted and aligned, which everything else relies on.
func (t *fileTiers) check() error {
	if t == nil {
		return errors.New("missing")
	}
	for i, buckets := range t.tiers() {
		if buckets == nil {
			return fmt.Errorf("tier %d missing", tiers[i].size)
		}
		previous := int64(-1)
		for _, b := range buckets {
			if b == nil || b.start <= previous || b.start%tiers[i].size != 0 {
				return fmt.Errorf("tier %d has a misplaced bucket", tiers[i].size)
			}
			previous = b.start
		}
	}
	return nil
}

// UnmarshalJSON reads a bucket as append writes it: integers and lists, exactly as many as there must be.
func (b *bucket) UnmarshalJSON(text []byte) error {
	if bytes.IndexByte(text, 'n') >= 0 { // null would decode as 0 or as an empty list
		return errors.New("null in a bucket")
	}
	var body []any // decoding fills what the pointers point to
	for i := range b.sums {
		body = append(body, &b.sums[i])
	}
	body = append(body, &b.total, &b.first)
	pair := []any{&b.start, &body}
	if err := json.Unmarshal(text, &pair); err != nil {
		return err
	}
	if len(pair) != 2 || len(body) != counters+2 || slices.Min(b.sums[:]) < 0 {
		return errors.New("malformed bucket")
	}
	if len(b.total) > maxSamples || len(b.first) > maxSamples {
		b.thin()
	}
	return nil
}
