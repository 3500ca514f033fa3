package conformance

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// recording is one answer of a provider.
type recording struct {
	path     string // the folder of the case below the corpus
	protocol *protocol
	status   int
	stream   bool
	array    bool        // the stream is one JSON array
	body     []byte      // as the provider sent it
	events   []wireEvent // of a stream
	expected *expected   // nil: no neutral expectation exists, only the rules that hold for every stream

	conversation string // recordings of one conversation share it
	turn         int
	request      []byte // nil: not recorded
}

// expected is what a neutral reader finds in an answer.
type expected struct {
	Text       string         `json:"text"`
	Thinking   string         `json:"thinking"`
	Refusal    string         `json:"refusal"`
	Calls      []expectedCall `json:"tool_calls"`
	Finish     *string        `json:"finish_reason_raw"`
	Incomplete string         `json:"incomplete_reason"`
	Blocked    string         `json:"block_reason"` // why the prompt was refused
	Others     []string       `json:"other_items"`  // kinds of what is neither text nor thinking nor a call
	Usage      object         `json:"usage_raw"`
	Error      *string        `json:"error"`
}

type expectedCall struct {
	ID           *string         `json:"id"` // nil: the provider gave none
	Name         string          `json:"name"`
	Arguments    json.RawMessage `json:"arguments"`
	RawArguments *string         `json:"arguments_raw"` // in their place where the text is no JSON object
}

// object is a JSON object whose numbers keep their spelling.
type object map[string]any

func (o *object) UnmarshalJSON(data []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	return decoder.Decode((*map[string]any)(o))
}

// int returns the integer at the end of a path, nil where there is none.
func (o object) int(path ...string) *int64 {
	for _, name := range path[:len(path)-1] {
		o, _ = o[name].(map[string]any)
	}
	number, _ := o[path[len(path)-1]].(json.Number)
	if n, err := number.Int64(); err == nil {
		return &n
	}
	return nil
}

func (o object) string(name string) string {
	s, _ := o[name].(string)
	return s
}

// wireEvent is one event of a stream with the place in the body where its data ends.
type wireEvent struct {
	object
	end int
}

// corpus returns the folder of recordings, testdata where none is named.
func corpus(tb testing.TB) string {
	tb.Helper()
	if folder := os.Getenv("MMSP_CORPUS"); folder != "" {
		return folder
	}
	tb.Log("MMSP_CORPUS is not set: only the made-up recordings in testdata are read")
	return "testdata"
}

// load reads the recordings of the protocols that a client here speaks.
func load(tb testing.TB) []*recording {
	tb.Helper()
	folder := corpus(tb)
	manifest, err := os.ReadFile(filepath.Join(folder, "MANIFEST.tsv"))
	if err != nil {
		tb.Fatal(err)
	}
	var all []*recording
	var columns map[string]int
	for line := range strings.Lines(string(manifest)) {
		cells := strings.Split(strings.TrimRight(line, "\r\n"), "\t")
		if columns == nil {
			columns = map[string]int{}
			for i, name := range cells {
				columns[name] = i
			}
			continue
		}
		protocol := protocols[cells[columns["protocol"]]]
		if protocol == nil {
			continue
		}
		status, err := strconv.Atoi(cells[columns["http_status"]])
		if err != nil {
			tb.Fatalf("%s: %v", cells[0], err)
		}
		r := &recording{path: cells[columns["path"]], protocol: protocol, status: status}
		source, number, _ := strings.Cut(cells[columns["source_path"]], "#")
		if r.turn, err = strconv.Atoi(number); err == nil {
			r.conversation = source
		}
		r.read(tb, filepath.Join(folder, r.path))
		all = append(all, r)
		if raw := r.framed(tb, filepath.Join(folder, r.path)); raw != nil && protocol == &messages {
			all = append(all, raw)
		}
	}
	if len(all) == 0 {
		tb.Fatalf("%s holds no recordings", folder)
	}
	return all
}

func (r *recording) read(tb testing.TB, folder string) {
	tb.Helper()
	file := func(name string) []byte {
		data, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil && !os.IsNotExist(err) {
			tb.Fatal(err)
		}
		return data
	}
	if data := file("expected.json"); data != nil {
		if err := json.Unmarshal(data, &r.expected); err != nil {
			tb.Fatalf("%s: expected.json: %v", r.path, err)
		}
	}
	r.request = file("request.json")
	r.stream = true
	if r.body = file("stream.sse"); r.body == nil {
		for line := range bytes.Lines(file("stream.jsonl")) {
			r.body = append(r.body, r.protocol.frame(bytes.TrimSpace(line))...)
		}
	}
	if r.body == nil {
		r.body = file("stream.json")
		r.array = r.body != nil
	}
	if r.body == nil {
		r.stream = false
		r.body = file("response.json")
	}
	switch {
	case r.body == nil:
		tb.Fatalf("%s: neither stream.sse nor stream.jsonl nor stream.json nor response.json", r.path)
	case r.array:
		r.events = arrayEvents(r.body)
	case r.stream:
		r.events = wireEvents(r.body)
	}
}

// wireEvents reads a stream with nothing but lines: each data line that is a JSON object is an event.
func wireEvents(body []byte) (events []wireEvent) {
	end := 0
	for line := range bytes.Lines(body) {
		end += len(line)
		data, ok := bytes.CutPrefix(bytes.TrimRight(line, "\r\n"), []byte("data:"))
		var o object
		if ok && json.Unmarshal(data, &o) == nil && o != nil {
			events = append(events, wireEvent{o, end - (len(line) - len(bytes.TrimRight(line, "\r\n \t")))})
		}
	}
	return events
}

// arrayEvents reads a stream that is one JSON array.
func arrayEvents(body []byte) (events []wireEvent) {
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.Token()
	for decoder.More() {
		var o object
		if decoder.Decode(&o) != nil {
			break
		}
		events = append(events, wireEvent{o, int(decoder.InputOffset())})
	}
	return events
}
