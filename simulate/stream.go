package simulate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"time"
)

// object is a JSON object under construction.
type object map[string]any

// leading are the keys that providers write first. What they write before the rest is what fast readers look at.
var leading = []string{
	"type", "id", "object", "created", "model", "service_tier", "system_fingerprint", "index", "choices", "name",
}

// MarshalJSON writes the leading keys first and the others in alphabetical order.
func (o object) MarshalJSON() ([]byte, error) {
	rank := func(key string) int {
		if i := slices.Index(leading, key); i >= 0 {
			return i
		}
		return len(leading)
	}
	keys := slices.SortedFunc(maps.Keys(o), func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
	})
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	for i, key := range keys {
		text.WriteByte("{,"[min(i, 1)])
		_ = encoder.Encode(key)
		text.WriteByte(':')
		if err := encoder.Encode(o[key]); err != nil {
			return nil, err
		}
	}
	if len(keys) == 0 {
		text.WriteByte('{')
	}
	text.WriteByte('}')
	return text.Bytes(), nil
}

// stream writes server-sent events, or what the protocol has in their place. After the caller has gone it writes nothing and waits for nothing, so that who uses
// it only has to stop looping.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	ctx     context.Context
	pace    time.Duration
	frame   bytes.Buffer
	gone    bool

	write func(frame *bytes.Buffer, name string, data []byte) // makes a frame of an event; nil: a server-sent one
}

// send writes one event and flushes it. An empty name leaves out the event line.
func (s *stream) send(name string, data any) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(data)
	s.event(name, bytes.TrimSuffix(text.Bytes(), []byte("\n")))
}

func (s *stream) event(name string, data []byte) {
	s.frame.Reset()
	if s.write != nil {
		s.write(&s.frame, name, data)
		s.flush()
		return
	}
	if name != "" {
		s.frame.WriteString("event: " + name + "\n")
	}
	s.frame.WriteString("data: ")
	s.frame.Write(data)
	s.frame.WriteString("\n\n")
	s.flush()
}

// done writes the end mark of Chat Completions.
func (s *stream) done() { s.event("", []byte("[DONE]")) }

func (s *stream) flush() {
	if s.gone || s.ctx.Err() != nil {
		s.gone = true
		return
	}
	if _, err := s.w.Write(s.frame.Bytes()); err != nil {
		s.gone = true
		return
	}
	if err := s.control.Flush(); err != nil {
		s.gone = true
	}
}

// next waits for the time of the next chunk. It reports false when the caller has gone.
func (s *stream) next() bool { return s.sleep(s.pace) }

func (s *stream) sleep(d time.Duration) bool {
	if d > 0 && !s.gone {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-s.ctx.Done():
		}
	}
	s.gone = s.gone || s.ctx.Err() != nil
	return !s.gone
}
