package metrics

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

const (
	bucketText  = `[1800000000,[1,1,0,0,0,6,0,6,300,[390],[90]]]`
	seriesText  = `{"10":[` + bucketText + `],"60":[],"3600":[]}`
	historyText = `{"version":1,"since":1800000000,"saved_at":1800000060,"errors":[],"total":` + seriesText + `,"models":{"fast":` + seriesText + "}}\n"
)

func TestHistoryFile(t *testing.T) {
	c := at(epoch)
	path := filepath.Join(t.TempDir(), "new", "folder", "metrics.json")
	m := Open(Options{Models: []string{"fast"}, File: path, Now: c.now})
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Fatal("a server that counted nothing wrote a file:", err)
	}

	m = Open(Options{Models: []string{"fast"}, File: path, Now: c.now})
	c.succeed(m, "fast", 90, 390, Tokens{Response: new(int64(6))})
	c.pass(time.Minute)
	if err := m.Save(); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(path); string(got) != historyText {
		t.Errorf("\n got %s\nwant %s", got, historyText)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if left, _ := filepath.Glob(filepath.Dir(path) + "/*"); len(left) != 1 {
		t.Errorf("files left: %v", left)
	}

	c.pass(time.Minute)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	m.Refuse(Unauthorized)
	if err := m.Save(); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(path); string(got) != historyText {
		t.Errorf("written though nothing new was counted before Close: %s", got)
	}
}

func TestRestart(t *testing.T) {
	c := at(epoch)
	path := filepath.Join(t.TempDir(), "metrics.json")
	open := func(models ...string) *Metrics { return Open(Options{Models: models, File: path, Now: c.now}) }
	first := open("old", "fast")
	c.succeed(first, "old", 1, 2, Tokens{})
	first.Begin("fast").Fail("<boom> \"é\"\n")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}

	c.pass(time.Hour)
	second := open("fast")
	s := query(t, second, "window=7200")
	equal(t, "counters, started, since, errors", []any{s.Requests, s.StartedAt, s.Since, s.Errors, s.Models[0].LastError},
		`[0,1800003600,1800000000,[{"at":1800000000,"model":"fast","message":"\u003cboom\u003e \"é\"\n"}],null]`)
	equal(t, "window", []int64{s.Window.Total.Requests, s.Window.Models[0].Failures, int64(len(s.Window.Models))}, `[2,1,1]`)
	c.succeed(second, "fast", 1, 2, Tokens{})
	if err := second.Close(); err != nil {
		t.Fatal(err)
	}

	c.pass(3 * time.Hour) // the buckets fold as the file is read
	third := open("old", "fast")
	s = query(t, third, "window=86400")
	equal(t, "a model that came back", []int64{s.Window.Total.Requests, s.Window.Models[0].Successes, s.Window.Models[1].Requests}, `[3,1,2]`)
	equal(t, "tiers", []int{len(third.total.tiers[0]), len(third.total.tiers[1])}, `[0,2]`)
}

func TestMalformedHistory(t *testing.T) {
	swap := func(old, new string) string { return strings.Replace(historyText, old, new, 1) }
	series := func(tiers string) string { return swap(seriesText, tiers) }
	bucket := func(b string) string { return swap(bucketText, b) }
	for name, file := range map[string]string{
		"empty":                    "",
		"not JSON":                 "{",
		"text after it":            historyText + "{}",
		"a list":                   "[]",
		"null":                     "null",
		"version true":             swap(`"version":1`, `"version":true`),
		"version 2":                swap(`"version":1`, `"version":2`),
		"version 1.0":              swap(`"version":1`, `"version":1.0`),
		"version missing":          swap(`"version":1,`, ``),
		"since negative":           swap(`"since":1800000000`, `"since":-1`),
		"since a fraction":         swap(`"since":1800000000`, `"since":1.5`),
		"since null":               swap(`"since":1800000000`, `"since":null`),
		"errors null":              swap(`"errors":[]`, `"errors":null`),
		"errors an object":         swap(`"errors":[]`, `"errors":{}`),
		"error null":               swap(`"errors":[]`, `"errors":[null]`),
		"error without at":         swap(`"errors":[]`, `"errors":[{"model":"m","message":"x"}]`),
		"error without model":      swap(`"errors":[]`, `"errors":[{"at":1,"message":"x"}]`),
		"error without message":    swap(`"errors":[]`, `"errors":[{"at":1,"model":"m"}]`),
		"error at a text":          swap(`"errors":[]`, `"errors":[{"at":"1","model":"m","message":"x"}]`),
		"total missing":            swap(`"total"`, `"sum"`),
		"total null":               series(`null`),
		"total a list":             series(`[]`),
		"a tier missing":           series(`{"10":[],"60":[]}`),
		"a tier null":              series(`{"10":[],"60":null,"3600":[]}`),
		"models missing":           swap(`"models"`, `"rows"`),
		"model null":               swap(`"fast":`+seriesText, `"fast":null`),
		"model without tiers":      swap(`"fast":`+seriesText, `"fast":{}`),
		"bucket null":              bucket(`null`),
		"bucket empty":             bucket(`[]`),
		"bucket without body":      bucket(`[1800000000]`),
		"bucket with more":         bucket(`[1800000000,[1,1,0,0,0,6,0,6,300,[390],[90]],1]`),
		"start a text":             bucket(`["1800000000",[1,1,0,0,0,6,0,6,300,[390],[90]]]`),
		"start negative":           bucket(`[-10,[1,1,0,0,0,6,0,6,300,[390],[90]]]`),
		"start not aligned":        bucket(`[1800000001,[1,1,0,0,0,6,0,6,300,[390],[90]]]`),
		"start twice":              bucket(bucketText + "," + bucketText),
		"not sorted":               bucket(bucketText + `,[1700000000,[1,1,0,0,0,6,0,6,300,[390],[90]]]`),
		"a counter missing":        bucket(`[1800000000,[1,1,0,0,0,6,0,6,[390],[90]]]`),
		"a counter more":           bucket(`[1800000000,[1,1,0,0,0,6,0,6,300,1,[390],[90]]]`),
		"counter negative":         bucket(`[1800000000,[1,1,0,0,0,6,0,6,-300,[390],[90]]]`),
		"counter a fraction":       bucket(`[1800000000,[1,1.5,0,0,0,6,0,6,300,[390],[90]]]`),
		"counter true":             bucket(`[1800000000,[true,1,0,0,0,6,0,6,300,[390],[90]]]`),
		"counter null":             bucket(`[1800000000,[1,null,0,0,0,6,0,6,300,[390],[90]]]`),
		"counter too large":        bucket(`[1800000000,[9223372036854775808,1,0,0,0,6,0,6,300,[390],[90]]]`),
		"samples missing":          bucket(`[1800000000,[1,1,0,0,0,6,0,6,300,[390]]]`),
		"samples null":             bucket(`[1800000000,[1,1,0,0,0,6,0,6,300,null,[90]]]`),
		"samples a number":         bucket(`[1800000000,[1,1,0,0,0,6,0,6,300,390,90]]`),
		"sample a fraction":        bucket(`[1800000000,[1,1,0,0,0,6,0,6,300,[390.5],[90]]]`),
		"sample a text":            bucket(`[1800000000,[1,1,0,0,0,6,0,6,300,[390],["90"]]]`),
		"sample null":              bucket(`[1800000000,[1,1,0,0,0,6,0,6,300,[390],[null]]]`),
		"nested without end":       strings.Repeat("[", 100_000),
		"bucket nested ever more ": bucket(strings.Repeat("[", 5000) + strings.Repeat("]", 5000)),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "metrics.json")
			if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
				t.Fatal(err)
			}
			if file == historyText {
				t.Fatal("the case changes nothing")
			}
			var log bytes.Buffer
			c := at(epoch + 60)
			m := Open(Options{Models: []string{"fast"}, File: path, Now: c.now, Logger: slog.New(slog.NewTextHandler(&log, nil))})
			s := query(t, m, "window=120")
			equal(t, "since, window, errors", []any{s.Since, s.Window.Total.Requests, s.Errors}, `[1800000060,0,[]]`)
			if n := strings.Count(log.String(), "\n"); n != 1 {
				t.Errorf("%d lines logged: %s", n, log.String())
			}
			m.Refuse(Unauthorized)
			if err := m.Close(); err != nil {
				t.Fatal(err)
			}
			if text, _ := os.ReadFile(path); !strings.Contains(string(text), `"since":1800000060`) {
				t.Errorf("not replaced by the next save: %s", text)
			}
		})
	}
}

func TestReadableHistory(t *testing.T) {
	var many strings.Builder
	for total := 120; total > 1; total-- {
		fmt.Fprintf(&many, "%d,", total)
	}
	errs := strings.Repeat(`{"at":1800000000.5,"model":"m","message":"x"},`, 120) + `{"at":1,"model":"m","message":"y"}`
	path := filepath.Join(t.TempDir(), "metrics.json")
	spaced := strings.NewReplacer(",", " , ", "[390]", "["+many.String()+"1]", `"errors":[]`, `"errors":[`+errs+`]`).Replace(historyText)
	if err := os.WriteFile(path, []byte(spaced), 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	m := Open(Options{File: path, Now: at(epoch + 60).now, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	s := query(t, m, "window=120")
	equal(t, "requests, p90 of thinned samples, errors", []any{s.Window.Total.Requests, s.Window.Total.LatencyMS.Total.P90, len(s.Errors)}, `[1,107,100]`)
	if b := m.total.tiers[0][0]; len(b.total) != maxSamples || log.Len() > 0 {
		t.Errorf("%d samples kept, log %q", len(b.total), log.String())
	}
}

func TestFailedWrite(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "folder")
	if err := os.WriteFile(folder, nil, 0o600); err != nil { // a file where the folder should be
		t.Fatal(err)
	}
	var log bytes.Buffer
	c := at(epoch)
	m := Open(Options{File: filepath.Join(folder, "metrics.json"), Now: c.now, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	lines := func() int { return strings.Count(log.String(), "level=ERROR") }
	log.Reset() // the file was not readable either
	m.Refuse(Unauthorized)
	for range 3 {
		if m.Save() == nil || lines() != 1 {
			t.Fatalf("want an error each time and one line, have %q", log.String())
		}
	}
	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	if err := m.Save(); err != nil {
		t.Fatal("not retried:", err)
	}
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(folder, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	m.Refuse(Unauthorized)
	if m.Close() == nil || lines() != 2 {
		t.Errorf("a failure after a success is news: %q", log.String())
	}
}

func TestRunSavesEveryMinute(t *testing.T) {
	path := filepath.Join(t.TempDir(), "metrics.json")
	synctest.Test(t, func(t *testing.T) {
		m := Open(Options{Models: []string{"fast"}, File: path})
		go m.Run(t.Context())
		saved := func(after time.Duration) bool {
			time.Sleep(after)
			synctest.Wait()
			_, err := os.Stat(path)
			os.Remove(path)
			return err == nil
		}
		if saved(3 * time.Minute) {
			t.Error("saved though nothing was counted")
		}
		m.Begin("fast").Disconnect()
		if saved(59 * time.Second) {
			t.Error("saved too early")
		}
		if !saved(time.Second) {
			t.Error("not saved after a minute")
		}
		if saved(5 * time.Minute) {
			t.Error("saved again though nothing was counted")
		}
	})
}

func FuzzHistory(f *testing.F) {
	f.Add([]byte(historyText))
	f.Add([]byte(strings.Replace(historyText, `[]`, `[{"at":1e300,"model":"\ud800","message":"x"}]`, 1)))
	f.Add([]byte(strings.Replace(historyText, bucketText, `[0,[9223372036854775807,1,0,0,0,6,0,6,300,[-1],[]]],`+bucketText, 1)))
	f.Fuzz(func(t *testing.T, file []byte) {
		h, err := decode(file)
		if err != nil {
			return
		}
		m := at(epoch + 7200 + 7).open()
		m.total.tiers, m.errors, m.folded = h.Total.tiers(), h.errors, 0
		m.window(interval{seconds: maxRange, columns: maxColumns}, m.now())
		m.Refuse(Unauthorized) // folds what was read
		if _, err := decode(m.encode()); err != nil {
			t.Errorf("what was read is written unreadable: %v", err)
		}
	})
}
