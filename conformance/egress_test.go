package conformance

import (
	"cmp"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prism-shadow/mmsp-go"
)

// egressCase is what a provider answers and what a client of a gateway, which speaks another protocol, makes of it. Here
// the answer is read by the client types of its own protocol, and what the other protocol would say is translated.
type egressCase struct {
	name     string
	Kind     string        `json:"kind"`
	Client   string        `json:"client_protocol"`
	Upstream string        `json:"upstream_protocol"`
	Expect   egressExpect  `json:"expect"`
	Steps    []egressReply `json:"steps"`
	egressReply
}

type egressReply struct {
	Stream   []json.RawMessage `json:"upstream_stream"`
	Encoding string            `json:"upstream_encoding"`
	Response *struct {
		Status  int               `json:"status"`
		Headers map[string]string `json:"headers"`
		Body    json.RawMessage   `json:"body"`
		Raw     string            `json:"body_raw"`
	} `json:"upstream_response"`
}

type egressExpect struct {
	Client *struct {
		Text     *string   `json:"text"`
		Length   *int      `json:"text_length"`
		AllOf    string    `json:"text_all_char"`
		Thinking *[]string `json:"thinking"`
		Calls    *[]struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"tool_calls"`
		RawCalls []struct {
			Name   string `json:"name"`
			Length int    `json:"arguments_length"`
		} `json:"tool_calls_raw"`
		Finish string `json:"finish"`
		Usage  object `json:"usage"`

		ItemTypes []string `json:"item_types"` // are a gateway's matter
	} `json:"client"`
	Error    object         `json:"error"`
	NoError  bool           `json:"no_error"`
	AnyOf    []egressExpect `json:"any_of"`
	Distinct bool           `json:"tool_ids_distinct"`
	Nonempty bool           `json:"tool_ids_nonempty"`
	Never    struct {
		Finish []string `json:"finish_in"`
	} `json:"never"`
}

// upstreams are the protocols of providers by their names in the cases; nil: no client type speaks them as streams.
var upstreams = map[string]*protocol{
	"openai-chat": &chat, "openai-responses": &responses, "anthropic-messages": &messages,
	"gemini-generate": &generateContent, "gemini-interactions": &interactions,
	"openai-embeddings": nil, "gemini-embeddings": nil,
}

// clientWords translates how a turn ended from the words of the protocols that clients of a gateway speak. A status of
// Responses says less than a finish reason does.
var clientWords = map[string]map[string][]mmsp.FinishReason{
	"anthropic-messages": {
		"end_turn": {mmsp.FinishStop}, "stop_sequence": {mmsp.FinishStop}, "max_tokens": {mmsp.FinishLength},
		"tool_use": {mmsp.FinishToolCall}, "refusal": {mmsp.FinishUnknown}, "pause_turn": {mmsp.FinishUnknown},
	},
	"openai-chat": {
		"stop": {mmsp.FinishStop}, "length": {mmsp.FinishLength}, "tool_calls": {mmsp.FinishToolCall}, "content_filter": {mmsp.FinishUnknown},
	},
	"openai-responses": {
		"completed": {mmsp.FinishStop, mmsp.FinishToolCall}, "incomplete": {mmsp.FinishLength, mmsp.FinishUnknown},
		"failed": {""}, // an error in place of a stop
	},
	"gemini-generate": {
		"STOP": {mmsp.FinishStop, mmsp.FinishToolCall}, "MAX_TOKENS": {mmsp.FinishLength}, "SAFETY": {mmsp.FinishUnknown},
	},
}

// clientUsage says the counts in the terms of the protocols that clients of a gateway speak.
func clientUsage(protocol string, u *mmsp.Usage) map[string]int64 {
	cached, prompt, thoughts, response := *orZero(u.CachedTokens), *orZero(u.PromptTokens), *orZero(u.ThoughtsTokens), *orZero(u.ResponseTokens)
	switch protocol {
	case "anthropic-messages":
		return map[string]int64{
			"input_tokens": prompt, "cache_read_input_tokens": cached, "cache_creation_input_tokens": 0, "output_tokens": thoughts + response,
		}
	case "openai-chat":
		return map[string]int64{
			"prompt_tokens": cached + prompt, "prompt_tokens_details.cached_tokens": cached,
			"completion_tokens": thoughts + response, "completion_tokens_details.reasoning_tokens": thoughts, "total_tokens": u.Total(),
		}
	case "openai-responses":
		return map[string]int64{
			"input_tokens": cached + prompt, "input_tokens_details.cached_tokens": cached,
			"output_tokens": thoughts + response, "output_tokens_details.reasoning_tokens": thoughts, "total_tokens": u.Total(),
		}
	case "gemini-generate":
		return map[string]int64{
			"promptTokenCount": cached + prompt, "cachedContentTokenCount": cached, "thoughtsTokenCount": thoughts,
			"candidatesTokenCount": response, "totalTokenCount": u.Total(),
		}
	}
	return nil
}

// loadCases reads the case.json of every folder in MMSP_CASES, those in testdata where it is not set.
func loadCases(t *testing.T) (all []*egressCase) {
	folder := os.Getenv("MMSP_CASES")
	if folder == "" {
		t.Log("MMSP_CASES is not set: only the two made-up cases in testdata are read")
		folder = filepath.Join("testdata", "cases")
	}
	files, err := filepath.Glob(filepath.Join(folder, "*", "case.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s holds no cases: %v", folder, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c := &egressCase{name: filepath.Base(filepath.Dir(file))}
		if err := json.Unmarshal(data, c); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		all = append(all, c)
	}
	return all
}

// serve writes what the provider answers. Waits are cut short: none of them is what these tests are about.
func (r *egressReply) serve(w http.ResponseWriter) error {
	if r.Response != nil {
		for name, value := range r.Response.Headers {
			w.Header().Set(name, value)
		}
		w.WriteHeader(cmp.Or(r.Response.Status, http.StatusOK))
		_, err := io.WriteString(w, cmp.Or(r.Response.Raw, string(r.Response.Body)))
		return err
	}
	w.Header().Set("Content-Type", "text/event-stream")
	out, flush := io.Writer(w), func() error { return nil }
	if r.Encoding == "gzip" {
		w.Header().Set("Content-Encoding", "gzip")
		zip := gzip.NewWriter(w)
		defer zip.Close()
		out, flush = zip, zip.Flush
	} else if r.Encoding != "" {
		return fmt.Errorf("the encoding %q", r.Encoding)
	}
	for _, raw := range r.Stream {
		var text string
		var special struct {
			Hex    string `json:"hex"`
			Repeat string `json:"repeat"`
			Times  int    `json:"times"`
			Sleep  int    `json:"sleep_ms"`
			EOF    bool   `json:"eof"`
		}
		if json.Unmarshal(raw, &text) != nil {
			if err := json.Unmarshal(raw, &special); err != nil {
				return err
			}
			if special.EOF {
				return nil
			}
			bytes, err := hex.DecodeString(special.Hex)
			if err != nil {
				return err
			}
			text = string(bytes) + strings.Repeat(special.Repeat, special.Times)
			time.Sleep(time.Duration(min(special.Sleep, 10)) * time.Millisecond)
		}
		if _, err := io.WriteString(out, text); err != nil {
			return err
		}
		if special.Repeat == "" {
			if err := errors.Join(flush(), http.NewResponseController(w).Flush()); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestEgress reads the answers of every case with each client type of their protocol. All of them keep the grammar; what
// a case of kind egress-stream or transport says of its one stream holds of the public stream.
func TestEgress(t *testing.T) {
	type row struct {
		name    string
		of      *egressCase
		reply   *egressReply
		clients []client
		judged  bool
	}
	var rows []row
	for _, c := range loadCases(t) {
		protocol, known := upstreams[c.Upstream]
		if !known {
			t.Errorf("%s: the protocol %q is not known here", c.name, c.Upstream)
		}
		speakers := slices.DeleteFunc(slices.Clone(clients), func(client client) bool { return client.protocol != protocol })
		if protocol == nil {
			continue
		}
		replies := []*egressReply{&c.egressReply}
		for i := range c.Steps {
			replies = append(replies, &c.Steps[i])
		}
		for i, reply := range replies {
			if reply.Stream == nil && reply.Response == nil {
				continue
			}
			judged := i == 0 && reply.Stream != nil && (c.Kind == "egress-stream" || c.Kind == "transport")
			rows = append(rows, row{fmt.Sprint(c.name, "/", i), c, reply, speakers, judged})
			if judged && c.Expect.Client == nil && c.Expect.Error == nil && c.Expect.AnyOf == nil {
				t.Errorf("%s expects nothing", c.name)
			}
		}
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		number, _, _ := strings.Cut(request.URL.Path[1:], "/")
		i, err := strconv.Atoi(number)
		if err != nil || i >= len(rows) {
			http.NotFound(w, request)
			return
		}
		_ = rows[i].reply.serve(w) // a client that has read enough may be gone
	}))
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
	})
	for i, r := range rows {
		for _, c := range r.clients {
			t.Run(c.name+"/"+r.name, func(t *testing.T) {
				t.Parallel()
				o := run(t.Context(), c.provider(t, server.URL+"/"+strconv.Itoa(i), transport))
				if o.broken != nil {
					t.Errorf("%v\n%s", o.broken, o.dump())
				}
				if r.reply.Response != nil && r.reply.Response.Status >= 400 {
					if failure := (*mmsp.UpstreamError)(nil); !errors.As(o.err, &failure) || failure.Status != r.reply.Response.Status {
						t.Errorf("status %d: %v", r.reply.Response.Status, o.err)
					}
				}
				if !r.judged {
					return
				}
				differences := r.of.Expect.judge(r.of.Client, r.reply, &o)
				for n := range r.of.Expect.AnyOf {
					more := r.of.Expect.AnyOf[n].judge(r.of.Client, r.reply, &o)
					if len(more) == 0 {
						break
					}
					if n == len(r.of.Expect.AnyOf)-1 {
						differences = append(append(differences, "no alternative holds; the last:"), more...)
					}
				}
				if len(differences) > 0 {
					t.Errorf("%s\n%.3000s", strings.Join(differences, "\n"), o.dump())
				}
			})
		}
	}
}

// judge returns what a public stream lacks of what a client in the given protocol is to see.
func (want *egressExpect) judge(protocol string, reply *egressReply, o *outcome) (differences []string) {
	differ := func(what string, want, got any) {
		differences = append(differences, fmt.Sprintf("%s: want %.300s, got %.300s", what, show(want), show(got)))
	}

	// How it ends: with a stop, or where nothing was said with an error that holds what a stop would.
	var finish mmsp.FinishReason
	var usage *mmsp.Usage
	empty := (*mmsp.EmptyResponseError)(nil)
	if errors.As(o.err, &empty) {
		finish, usage = empty.FinishReason, empty.Usage
	} else if o.stop != nil {
		finish, usage = o.stop.FinishReason, o.stop.Usage
	}
	failed := o.err != nil && empty == nil
	switch {
	case want.Error == nil && failed, want.NoError && o.err != nil:
		differ("the error", "none", o.err)
	case want.Error != nil && o.err == nil:
		differ("the error", want.Error, "none")
	case want.Error.string("where") == "in-stream" && failed:
		// What the provider said went wrong, or that it did not say how the turn ended.
		said := slices.ContainsFunc(reply.Stream, func(piece json.RawMessage) bool { return strings.Contains(string(piece), `\"error\":`) })
		if _, ok := errors.AsType[*mmsp.UpstreamError](o.err); ok != said {
			differ("an UpstreamError", said, o.err)
		}
		if _, ok := errors.AsType[*mmsp.IncompleteStreamError](o.err); ok == said {
			differ("an IncompleteStreamError", !said, o.err)
		}
	}
	words := clientWords[protocol]
	for _, word := range want.Never.Finish {
		if slices.Contains(words[word], finish) {
			differ("never", word, finish)
		}
	}

	var text string
	var calls []mmsp.Item
	thinking := []string{}
	for i := range o.events {
		switch item := &o.events[i].Item; item.Type {
		case mmsp.TextDelta: // of an item that the error cut, too
			text += item.Text
		case mmsp.ThinkingDone:
			thinking = append(thinking, item.Thinking)
		case mmsp.ToolCallDone:
			calls = append(calls, *item)
		}
	}
	ids := map[string]bool{}
	for _, call := range calls {
		ids[call.ToolCallID] = true
	}
	if want.Distinct && len(ids) != len(calls) || want.Nonempty && (ids[""] || len(ids) == 0) {
		differ("the ids", "distinct and not empty", calls)
	}

	client := want.Client
	if client == nil {
		return differences
	}
	if client.Text != nil && text != *client.Text {
		differ("text", *client.Text, text)
	}
	if client.Length != nil && (len(text) != *client.Length || strings.Trim(text, client.AllOf) != "") {
		differ("text", fmt.Sprintf("%d times %s", *client.Length, client.AllOf), fmt.Sprintf("%.20s… of %d", text, len(text)))
	}
	if client.Thinking != nil && !slices.Equal(thinking, *client.Thinking) {
		differ("thinking", *client.Thinking, thinking)
	}
	if client.Calls != nil {
		if len(calls) != len(*client.Calls) {
			differ("calls", *client.Calls, calls)
		}
		for i, call := range (*client.Calls)[:min(len(calls), len(*client.Calls))] {
			if call.Name != calls[i].Name || !sameJSON(call.Arguments, []byte(calls[i].Arguments)) {
				differ("call", call, calls[i])
			}
		}
	}
	if client.RawCalls != nil && len(client.RawCalls) != len(calls) {
		differ("calls", client.RawCalls, len(calls))
	}
	for i, call := range client.RawCalls[:min(len(calls), len(client.RawCalls))] {
		if call.Name != calls[i].Name || call.Length != len(calls[i].Arguments) {
			differ("call", call, fmt.Sprint(calls[i].Name, " ", len(calls[i].Arguments)))
		}
	}
	if client.Finish != "" && !slices.Contains(words[client.Finish], finish) {
		differ("finish", client.Finish, finish)
	}
	if client.Usage != nil {
		if usage == nil {
			usage = &mmsp.Usage{}
		}
		got := clientUsage(protocol, usage)
		for name, count := range maps.All(flat("", client.Usage)) {
			if n, ok := got[name]; !ok || count != n {
				differ("usage "+name, count, n)
			}
		}
	}
	return differences
}

// flat names the counts in objects of a usage by their paths.
func flat(prefix string, usage object) map[string]int64 {
	counts := map[string]int64{}
	for name, value := range usage {
		switch value := value.(type) {
		case map[string]any:
			maps.Copy(counts, flat(prefix+name+".", value))
		case json.Number:
			counts[prefix+name], _ = value.Int64()
		}
	}
	return counts
}
