package carry

import (
	"bytes"
	"container/list"
	"context"
	"sync"
	"time"
)

// Store keeps records for callers whose protocol has no place for what they hold. A caller sees its own records only.
// Records are whole or absent; losing one is no error. It is safe for concurrent use.
type Store interface {
	// Put keeps a record under each of the keys, in the place of what stood there.
	Put(ctx context.Context, caller string, record []byte, keys ...string) error
	// Get returns the record under a key, nil if there is none. It is not to be written to.
	Get(ctx context.Context, caller, key string) ([]byte, error)
}

// Memory is a Store that ends with the process. Where space is wanted, the caller with the most loses its oldest record.
type Memory struct {
	maxAge   time.Duration
	maxBytes int64
	now      func() time.Time

	mu      sync.Mutex
	bytes   int64
	callers map[string]*shelf
}

// shelf is the records of one caller.
type shelf struct {
	bytes  int64
	byKey  map[string]*list.Element
	oldest *list.List // of *entry
}

type entry struct {
	record []byte
	keys   []string
	kept   time.Time
}

const (
	entryOverhead = 256 // bytes of bookkeeping, roughly
	keyOverhead   = 96
)

func (e *entry) size() int64 {
	n := int64(len(e.record)) + entryOverhead
	for _, key := range e.keys {
		n += int64(len(key)) + keyOverhead
	}
	return n
}

// NewMemory returns an empty store that keeps records for maxAge and holds at most maxBytes.
func NewMemory(maxAge time.Duration, maxBytes int64) *Memory {
	return &Memory{maxAge: maxAge, maxBytes: maxBytes, now: time.Now, callers: map[string]*shelf{}}
}

// Put keeps a record. One that is larger than a quarter of the store is not kept.
func (m *Memory) Put(_ context.Context, caller string, record []byte, keys ...string) error {
	if cap(record) > len(record)*9/8 { // what it grew by is not counted
		record = bytes.Clone(record)
	}
	e := &entry{record, keys, m.now()}
	if len(keys) == 0 || e.size() > m.maxBytes/4 {
		return nil
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.callers[caller]
	if s == nil {
		s = &shelf{byKey: map[string]*list.Element{}, oldest: list.New()}
		m.callers[caller] = s
	}
	element := s.oldest.PushBack(e)
	for _, key := range keys {
		if old := s.byKey[key]; old != nil && old != element {
			m.forgetKey(s, old, key)
		}
		s.byKey[key] = element
	}
	s.bytes += e.size()
	m.bytes += e.size()
	for front := s.oldest.Front(); front != nil && m.now().Sub(front.Value.(*entry).kept) > m.maxAge; front = s.oldest.Front() {
		m.remove(caller, s, front)
	}
	for m.bytes > m.maxBytes {
		var name string
		var most *shelf
		for other, shelf := range m.callers {
			if most == nil || shelf.bytes > most.bytes {
				name, most = other, shelf
			}
		}
		m.remove(name, most, most.oldest.Front())
	}
	return nil
}

// Get returns a record that is not too old.
func (m *Memory) Get(_ context.Context, caller, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := m.callers[caller]
	if s == nil || s.byKey[key] == nil {
		return nil, nil
	}
	e := s.byKey[key].Value.(*entry)
	if m.now().Sub(e.kept) > m.maxAge {
		m.remove(caller, s, s.byKey[key])
		return nil, nil
	}
	return e.record, nil
}

// forgetKey takes one key from an entry.
func (m *Memory) forgetKey(s *shelf, element *list.Element, key string) {
	e := element.Value.(*entry)
	before := e.size()
	delete(s.byKey, key)
	rest := make([]string, 0, len(e.keys))
	for _, k := range e.keys {
		if k != key {
			rest = append(rest, k)
		}
	}
	e.keys = rest
	freed := before - e.size()
	if len(rest) == 0 {
		s.oldest.Remove(element)
		freed = before
	}
	s.bytes -= freed
	m.bytes -= freed
}

// remove takes an entry with all its keys, and the shelf that is empty then.
func (m *Memory) remove(caller string, s *shelf, element *list.Element) {
	e := element.Value.(*entry)
	s.oldest.Remove(element)
	for _, key := range e.keys {
		delete(s.byKey, key)
	}
	s.bytes -= e.size()
	m.bytes -= e.size()
	if s.oldest.Len() == 0 {
		delete(m.callers, caller)
	}
}
