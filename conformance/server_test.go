package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"time"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/clients/mmsp"
	"github.com/prism-shadow/mmsp-go/gateway"
	"github.com/prism-shadow/mmsp-go/gateway/config"
)

// TestServerEqualsClient reads what passes through POST /v1/stream with the client of this protocol: it is what the
// upstream client yields by itself. Item kinds that no recording here has come from a server that plays a script.
func TestServerEqualsClient(t *testing.T) {
	type row struct {
		name   string
		model  config.Model
		direct mmsp.Provider
	}
	var rows []row
	key := mmsp.NewSecret("key")

	recordings := load(t)
	upstream, transport := replay(t, recordings)
	for _, c := range clients {
		for i, r := range recordings {
			if r.protocol == c.protocol && c.protocol != &bedrock { // a row of the configuration names no other address for it
				url := upstream.URL + "/" + strconv.Itoa(i)
				model := config.Model{ModelID: recordedModel, ClientType: c.name, BaseURL: url, APIKey: key}
				rows = append(rows, row{c.name + "/" + r.path, model, c.provider(t, url, transport)})
			}
		}
	}
	for name, script := range scripts {
		peer := httptest.NewServer(script)
		t.Cleanup(peer.Close)
		rows = append(rows, row{name, config.Model{ModelID: name, ClientType: "mmsp", BaseURL: peer.URL + "/v1", APIKey: key}, script})
	}

	served := config.Defaults()
	served.Upstream.MaxRetries = 0
	for i := range rows {
		rows[i].model.ServerModelID = rows[i].name
		served.Models = append(served.Models, rows[i].model)
	}
	address := serve(t, &served)
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			through, err := mmspclient.New(mmsp.Options{
				Model: r.name, BaseURL: address, HTTP: mmsp.HTTPOptions{MaxRetries: new(0)}, HTTPClient: &http.Client{Transport: transport},
			})
			if err != nil {
				t.Fatal(err)
			}
			want, got := run(t.Context(), r.direct), run(t.Context(), through)
			if want.broken != nil || got.broken != nil {
				t.Errorf("direct: %v, through the server: %v", want.broken, got.broken)
			}
			// The error of the upstream client comes as the error object that the server sent.
			if failure := (*mmsp.UpstreamError)(nil); want.err != nil && errors.As(got.err, &failure) {
				var object struct{ Error json.RawMessage }
				if err := json.Unmarshal(mmsp.AppendErrorJSON(nil, want.err), &object); err != nil {
					t.Fatal(err)
				}
				if !sameJSON(object.Error, failure.Wire) {
					t.Errorf("the error:\n%s\n%s", object.Error, failure.Wire)
				}
				want.err, got.err = nil, nil
			}
			if d := firstDifference(want.dump(), got.dump()); d != "" {
				t.Errorf("direct, then through the server: %s", d)
			}
		})
	}
}

// serve runs a server until the test ends and returns its base URL.
func serve(t *testing.T, c *config.Config) string {
	server, err := gateway.New(c, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- server.Serve(ctx, listener, time.Second) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil && !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return "http://" + listener.Addr().String() + "/v1"
}

// script is a provider that plays events, and an MMSP server of it.
type script []mmsp.UniEvent

func (script) Class() string                                { return "ScriptClient" }
func (script) ListModels(context.Context) ([]string, error) { return nil, nil }

func (script) Prepare(context.Context, []mmsp.Message, *mmsp.Config) (*mmsp.Request, error) {
	return &mmsp.Request{}, nil
}

func (s script) Do(context.Context, *mmsp.Request) iter.Seq2[*mmsp.UniEvent, error] {
	return func(yield func(*mmsp.UniEvent, error) bool) {
		for _, event := range s {
			if !yield(&event, nil) {
				return
			}
		}
	}
}

func (s script) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	question := []mmsp.Message{mmsp.UserMessage(mmsp.Text("Question."))}
	w.Header().Set("Content-Type", "text/event-stream")
	for event, err := range mmsp.NewClient(s).StreamingResponse(request.Context(), question, nil) {
		line := event.AppendJSON([]byte("data: "))
		if err != nil {
			line = mmsp.AppendErrorJSON([]byte("data: "), err)
		}
		w.Write(append(line, "\n\n"...))
		w.(http.Flusher).Flush()
	}
	w.Write([]byte("data: [DONE]\n\n"))
}

// scripts has every kind of item, and every way to end, at least once.
var scripts = map[string]script{
	"text": {
		says(mmsp.Item{Type: mmsp.TextDelta, Text: "Zwölf \u2028 Boote\n"}, mmsp.Item{Type: mmsp.TextDelta, Text: "liegen <hier> & dort."}), stops(mmsp.FinishStop, nil),
	},
	"refusal": {
		says(mmsp.Item{Type: mmsp.TextDelta, Text: "Not that.", Fidelity: mmsp.Fidelity(`{"refusal":true}`)}),
		stops(mmsp.FinishUnknown, &mmsp.StopDetail{Kind: "refusal", Text: "harbour policy"}),
	},
	"thinking with fidelity": {
		says(mmsp.Item{Type: mmsp.ThinkingDelta, Thinking: "Which berth"}, mmsp.Item{Type: mmsp.ThinkingDelta, Thinking: " is free?"}),
		says(mmsp.Item{Type: mmsp.ThinkingDelta, Fidelity: mmsp.Fidelity(`{"signature":"c2ln+/==","issuer":"harbour","format":null}`)}),
		says(mmsp.Item{Type: mmsp.TextDelta, Text: "Berth 4."}), stops(mmsp.FinishLength, nil),
	},
	"tool calls": {
		says(mmsp.Item{Type: mmsp.ToolCallDelta, Name: "moor", ToolCallID: "c1", Fidelity: mmsp.Fidelity(`{"signature":"c2ln"}`)}),
		says(mmsp.Item{Type: mmsp.ToolCallDelta, Arguments: `{"id":9007199254740993,"low":-9223372036854775808,`}),
		says(mmsp.Item{Type: mmsp.ToolCallDelta, Arguments: `"high":18446744073709551615,"x":1.50}`}),
		says(mmsp.Item{Type: mmsp.ToolCallDelta, Name: "wait", ToolCallID: "c2"}), stops(mmsp.FinishToolCall, nil),
	},
	"pictures": {
		says(
			mmsp.Item{Type: mmsp.InlineDataDelta, MimeType: "image/png", Data: []byte("\x89PNG\x00\xff")},
			mmsp.Item{Type: mmsp.InlineDataDelta, MimeType: "image/png", Data: []byte("\x89PNG second"), Fidelity: mmsp.Fidelity(`{"signature":"cGlj"}`)},
		), stops(mmsp.FinishStop, nil),
	},
	"audio": {
		says(mmsp.Item{Type: mmsp.InlineDataDelta, MimeType: "audio/l16; rate=24000; channels=1", Data: []byte{0, 1, 2}}),
		says(mmsp.Item{Type: mmsp.InlineDataDelta, MimeType: "audio/l16; rate=24000; channels=1", Data: []byte{3, 4}}), stops(mmsp.FinishStop, nil),
	},
	"picture thoughts": {
		says(mmsp.Item{Type: mmsp.ThinkingDelta, Thinking: "A sketch:"}, mmsp.Item{Type: mmsp.InlineThinkingDelta, MimeType: "image/jpeg", Data: []byte("sketch")}),
		says(mmsp.Item{Type: mmsp.InlineThinkingDelta, MimeType: "image/jpeg", Data: []byte("second sketch")}),
		says(mmsp.Item{Type: mmsp.TextDelta, Text: "Done."}), stops(mmsp.FinishStop, nil),
	},
	"embeddings": {
		says(
			mmsp.Item{Type: mmsp.EmbeddingDelta, Embedding: []float64{0.1, -1e-7, 3, 0.30000000000000004}},
			mmsp.Item{Type: mmsp.EmbeddingDelta, Embedding: []float64{1}},
		), stops(mmsp.FinishStop, nil),
	},
	"nothing but thinking": {says(mmsp.Item{Type: mmsp.ThinkingDelta, Thinking: "Hm."}), stops(mmsp.FinishUnknown, &mmsp.StopDetail{Kind: "pause"})},
	"unreadable arguments": {
		says(mmsp.Item{Type: mmsp.ToolCallDelta, Name: "moor", ToolCallID: "c1"}, mmsp.Item{Type: mmsp.ToolCallDelta, Arguments: `{"berth":`}),
		stops(mmsp.FinishLength, nil),
	},
	"no end":         {says(mmsp.Item{Type: mmsp.TextDelta, Text: "And then"})},
	"broken grammar": {says(mmsp.Item{Type: mmsp.ToolCallDelta, Arguments: `{}`}), stops(mmsp.FinishStop, nil)},
}

func says(items ...mmsp.Item) mmsp.UniEvent {
	event := mmsp.UniEvent{Type: mmsp.EventDelta}
	for _, item := range items {
		event.Deltas = append(event.Deltas, mmsp.Delta{Item: item})
	}
	return event
}

func stops(finish mmsp.FinishReason, detail *mmsp.StopDetail) mmsp.UniEvent {
	usage := &mmsp.Usage{CachedTokens: new(int64(0)), PromptTokens: new(int64(1 << 40)), ResponseTokens: new(int64(7))}
	return mmsp.UniEvent{Type: mmsp.EventStop, FinishReason: finish, Usage: usage, StopDetail: detail, Last: true}
}
