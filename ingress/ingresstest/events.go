// Package ingresstest makes public streams for the property tests of the ingress encoders: whatever the grammar allows, and
// whatever fidelity, ids, texts and arguments the clients are known to let out. Tests alone import it.
package ingresstest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/prism-shadow/mmsp-go"
)

// Events makes a public stream: its events, and the error that it ends with after them, nil if the last is a stop. The
// same source makes the same stream.
func Events(r *rand.Rand) ([]mmsp.Event, error) {
	g := &generator{r: r, now: 1_790_000_000_000}
	if g.one(12) { // refused before anything was sent
		return nil, pick[error](g,
			&mmsp.InvalidRequestError{Param: "messages[0].content_items[1].tool_call_id", Message: "a tool result needs the id of its call"},
			&mmsp.UnsupportedParameterError{Client: "ScriptClient", Parameter: "temperature", Message: "ScriptClient takes no temperature."},
			&mmsp.UnsupportedOperationError{Client: "ScriptClient", Operation: "list_models", Message: "ScriptClient lists no models."},
			&mmsp.AuthenticationError{Message: "the key is wrong"},
			&mmsp.NotFoundError{Message: "no such model"},
			g.upstream(),
		)
	}
	kinds := []func(){g.text, g.text, g.text, g.thinking, g.thinking, g.toolCall, g.toolCall, g.inlineData, g.inlineThinking}
	switch {
	case g.one(15):
		kinds = []func(){g.embedding}
	case g.one(6): // nothing but thinking, or nothing at all
		kinds = []func(){g.thinking, g.inlineThinking}
	case g.one(3): // an ordinary turn
		kinds = []func(){g.thinking, g.text, g.toolCall}
	}
	for range g.r.IntN(6) {
		pick(g, kinds...)()
	}
	switch {
	case g.one(4):
		return g.fails()
	case !g.spoke && !g.one(10): // the base of the library ends a turn without content so; another server may send a stop
		e := g.stop()
		return g.events, &mmsp.EmptyResponseError{Client: "ScriptClient", FinishReason: e.FinishReason, Usage: e.Usage, StopDetail: e.StopDetail}
	}
	g.events = append(g.events, g.stop())
	return g.events, nil
}

// Stream plays events and then the error, if there is one.
func Stream(events []mmsp.Event, err error) iter.Seq2[mmsp.Event, error] {
	return func(yield func(mmsp.Event, error) bool) {
		for _, event := range events {
			if !yield(event, nil) {
				return
			}
		}
		if err != nil {
			yield(mmsp.Event{}, err)
		}
	}
}

type generator struct {
	r      *rand.Rand
	now    int64
	events []mmsp.Event
	spoke  bool // there is something but thinking
	called bool
}

// one is true in one of n cases.
func (g *generator) one(n int) bool { return g.r.IntN(n) == 0 }

func pick[T any](g *generator, of ...T) T { return of[g.r.IntN(len(of))] }

// item adds an item: its deltas, the first of which has the header, and the .done item. Its fidelity rides the first
// delta, a later one, or one of its own right before the end, where signatures come.
func (g *generator) item(header, done mmsp.Item, delta mmsp.ItemType, pieces []mmsp.Item) {
	if len(pieces) == 0 {
		pieces = []mmsp.Item{{}}
	}
	at := g.r.IntN(len(pieces))
	if len(done.Fidelity) > 0 {
		switch g.r.IntN(3) {
		case 0:
			at = 0
		case 1:
			pieces = append(pieces, mmsp.Item{})
			at = len(pieces) - 1
		}
	}
	for i, piece := range pieces {
		piece.Type = delta
		if i == 0 {
			piece.Name, piece.ToolCallID, piece.MimeType, piece.Filename = header.Name, header.ToolCallID, header.MimeType, header.Filename
		} else if header.MimeType != "" && !g.one(3) {
			piece.MimeType, piece.Filename = header.MimeType, header.Filename
		}
		if i == at {
			piece.Fidelity = done.Fidelity
		}
		g.add(piece)
	}
	g.add(done)
}

func (g *generator) add(item mmsp.Item) {
	g.now += g.r.Int64N(40)
	g.events = append(g.events, mmsp.Event{Type: mmsp.EventDelta, Item: item, CreatedAt: g.now, More: g.one(2)})
}

// Texts that are hard to carry: those that end a line, a field or a frame elsewhere, and those of more than one byte or rune.
var texts = []string{
	"", " ", "Zwölf Boote", "liegen <hier> & dort.", "\u2028\u2029", "\n", "\n\n", "\r\n", "\t", "\x00\x1b\x7f", `"`, `\`, `\"}`, "data: [DONE]\n\n",
	"event: error\ndata: {}\n\n", "[DONE]", ": ping", "船が四隻", "👩‍👩‍👧‍👦", "e\u0301", "\u202eabc", "\ufeff", "\ufffd", "\uffff", "𝔘", "</think>", "_REDACTED_THINKING",
	`{"city":"Oslo"}`, "```json\n{}\n```", "mmsp1.", "null",
}

func (g *generator) phrase() string {
	if g.one(8) {
		return ""
	}
	var b strings.Builder
	for range 1 + g.r.IntN(6) {
		b.WriteString(pick(g, texts...))
	}
	if g.one(40) {
		b.WriteString(strings.Repeat("ü ", 1<<12))
	}
	return b.String()
}

// cut cuts a text at the ends of runes. Some pieces are empty.
func (g *generator) cut(text string) (pieces []string) {
	for text != "" && !g.one(5) {
		n := 0
		for range g.r.IntN(12) {
			_, size := utf8.DecodeRuneInString(text[n:])
			n += size
		}
		pieces = append(pieces, text[:n])
		text = text[n:]
	}
	return append(pieces, text)
}

func (g *generator) secret() string {
	b := make([]byte, 1+g.r.IntN(48))
	for i := range b {
		b[i] = byte(g.r.Uint32())
	}
	return base64.StdEncoding.EncodeToString(b)
}

// object makes fidelity of keys and values.
func object(pairs ...any) mmsp.Fidelity {
	m := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	data, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return data
}

func (g *generator) text() {
	g.spoke = true
	text := g.phrase()
	fidelity := pick[mmsp.Fidelity](g, nil, nil, nil, nil,
		object("refusal", true),
		object("phase", "commentary"), object("phase", "final_answer"),
		object("signature", g.secret(), "issuer", "google"),
		object("vendor", map[string]any{"x": []any{1, nil}}),
	)
	var pieces []mmsp.Item
	for _, piece := range g.cut(text) {
		pieces = append(pieces, mmsp.Item{Text: piece})
	}
	g.item(mmsp.Item{}, mmsp.Item{Type: mmsp.TextDone, Text: text, Fidelity: fidelity}, mmsp.TextDelta, pieces)
}

func (g *generator) thinking() {
	text := g.phrase()
	index := int64(g.r.IntN(3))
	issuer := pick(g, "anthropic", "anthropic@bedrock", "openai", "google", "google@vertex", "deepseek", "zai", "moonshot", "minimax", "models.example.com:8443")
	fidelity := pick[mmsp.Fidelity](g, nil,
		object("signature", g.secret(), "issuer", issuer),                               // Messages, generateContent, Interactions
		object("signature", g.secret()),                                                 // of an older history
		object("channel", "summary"),                                                    // Responses
		object("channel", "content"),                                                    //
		object("channel", "summary", "encrypted_content", g.secret(), "issuer", issuer), //
		object("encrypted_content", g.secret(), "issuer", issuer),                       //
		object("channel", "content", "encrypted_content", g.secret(), "signature", g.secret(), "format", "unknown", "issuer", issuer), //
		object("reasoning_field", "reasoning_content"), // Chat
		object("reasoning_field", "reasoning"),         //
		object("issuer", issuer, "reasoning_details", []any{map[string]any{"type": "reasoning.text", "format": "anthropic-claude-v1", "index": index, "signature": g.secret()}}),
		object("issuer", issuer, "reasoning_details", []any{map[string]any{"type": "reasoning.encrypted", "id": "rs_1", "data": g.secret()}}),
	)
	if g.one(6) {
		text, fidelity = "_REDACTED_THINKING", object("signature", g.secret(), "issuer", pick(g, "anthropic", "anthropic@bedrock", "minimax"))
		g.item(mmsp.Item{}, mmsp.Item{Type: mmsp.ThinkingDone, Thinking: text, Fidelity: fidelity}, mmsp.ThinkingDelta, []mmsp.Item{{Thinking: text}})
		return
	}
	var pieces []mmsp.Item
	for _, piece := range g.cut(text) {
		pieces = append(pieces, mmsp.Item{Thinking: piece})
	}
	g.item(mmsp.Item{}, mmsp.Item{Type: mmsp.ThinkingDone, Thinking: text, Fidelity: fidelity}, mmsp.ThinkingDelta, pieces)
}

func (g *generator) call() mmsp.Item {
	return mmsp.Item{
		Name: pick(g, "get_weather", "get_weather", "f", "a.b-c", "mcp__server__tool", "ünï", strings.Repeat("n", 64)),
		ToolCallID: pick(g,
			fmt.Sprintf("call_%d", g.r.IntN(1000)), "call_1", "toolu_01", "functions.get_weather:0", "get_weather", "weird id/ü", strings.Repeat("i", 200), "0"),
	}
}

func (g *generator) toolCall() {
	g.spoke, g.called = true, true
	arguments := pick(g, "", "{}", " { } \n", `{"city":"Oslo"}`, `{"id":9007199254740993,"low":-9223372036854775808,"high":18446744073709551615,"x":1.50,"y":1E400}`,
		`{"text":"\u00fc\ud83d\ude00 ü 👩‍👩‍👧‍👦 \"quoted\" \\ "}`, "{\n  \"a\": [1, {\"b\": null}],\n  \"c\": \"{\\\"d\\\":1}\"\n}", `{"":{"":{}}}`, `{"code":"`+strings.Repeat("x = 1\\n", 200)+`"}`)
	header := g.call()
	pieces := []mmsp.Item{}
	if g.one(2) { // the name comes alone
		pieces = append(pieces, mmsp.Item{})
	}
	if g.one(3) {
		pieces = append(pieces, mmsp.Item{Arguments: arguments})
	} else {
		for _, piece := range g.cut(arguments) {
			pieces = append(pieces, mmsp.Item{Arguments: piece})
		}
	}
	done := header
	done.Type, done.Arguments = mmsp.ToolCallDone, arguments
	if arguments == "" {
		done.Arguments = "{}"
	}
	done.Fidelity = pick[mmsp.Fidelity](g, nil, nil, nil, object("signature", g.secret(), "issuer", "google"), object("signature", g.secret(), "issuer", "google@vertex"))
	g.item(header, done, mmsp.ToolCallDelta, pieces)
}

// data makes bytes in pieces.
func (g *generator) data(prefix string) (whole []byte, pieces []mmsp.Item) {
	whole = []byte(prefix)
	for range g.r.IntN(64) {
		whole = append(whole, byte(g.r.Uint32()))
	}
	rest := whole
	for len(rest) > 0 && !g.one(3) {
		n := g.r.IntN(len(rest) + 1)
		pieces = append(pieces, mmsp.Item{Data: rest[:n:n]})
		rest = rest[n:]
	}
	return whole, append(pieces, mmsp.Item{Data: rest})
}

func (g *generator) inlineData() {
	g.spoke = true
	header := pick(g, mmsp.Item{MimeType: "image/png"}, mmsp.Item{MimeType: "image/jpeg"}, mmsp.Item{MimeType: "audio/l16; rate=24000; channels=1"},
		mmsp.Item{MimeType: "application/pdf", Filename: "Fahrplan ü.pdf"})
	whole, pieces := g.data("\x89PNG\x00\xff")
	done := header
	done.Type, done.Data = mmsp.InlineDataDone, whole
	done.Fidelity = pick[mmsp.Fidelity](g, nil, nil, object("signature", g.secret(), "issuer", "google"))
	g.item(header, done, mmsp.InlineDataDelta, pieces)
}

func (g *generator) inlineThinking() {
	header := mmsp.Item{MimeType: "image/jpeg"}
	whole, pieces := g.data("sketch")
	g.item(header, mmsp.Item{Type: mmsp.InlineThinkingDone, MimeType: "image/jpeg", Data: whole, Fidelity: pick[mmsp.Fidelity](g, nil, object("signature", g.secret(), "issuer", "google"))},
		mmsp.InlineThinkingDelta, pieces)
}

func (g *generator) embedding() {
	g.spoke = true
	vector := make([]float64, g.r.IntN(5))
	for i := range vector {
		vector[i] = pick(g, 0, -1e-7, 0.30000000000000004, 1, 3, g.r.NormFloat64())
	}
	g.item(mmsp.Item{}, mmsp.Item{Type: mmsp.EmbeddingDone, Embedding: vector}, mmsp.EmbeddingDelta, []mmsp.Item{{Embedding: vector}})
}

// stop makes the stop that fits the items.
func (g *generator) stop() mmsp.Event {
	e := mmsp.Event{Type: mmsp.EventStop, FinishReason: mmsp.FinishStop, Usage: &mmsp.Usage{}, CreatedAt: g.now}
	if g.called {
		e.FinishReason = mmsp.FinishToolCall
	}
	switch {
	case g.one(4):
		e.FinishReason = mmsp.FinishLength
	case g.one(3):
		e.FinishReason = mmsp.FinishUnknown
		if kind := pick(g, "", "filter", "refusal", "pause", "context", "malformed_call", "a kind of tomorrow"); kind != "" {
			e.StopDetail = &mmsp.StopDetail{Kind: kind, Text: g.phrase()}
		}
	case e.FinishReason == mmsp.FinishStop && g.one(5):
		e.StopDetail = &mmsp.StopDetail{Kind: "stop_sequence", Text: g.phrase()}
	}
	for _, field := range []**int64{&e.Usage.CachedTokens, &e.Usage.PromptTokens, &e.Usage.ThoughtsTokens, &e.Usage.ResponseTokens} {
		if !g.one(3) {
			*field = new(pick(g, 0, g.r.Int64N(100), g.r.Int64N(1<<40)))
		}
	}
	return e
}

func (g *generator) upstream() *mmsp.UpstreamError {
	return pick(g,
		&mmsp.UpstreamError{Client: "ScriptClient", Message: "Overloaded", Status: 529, ErrorType: "overloaded_error", RequestID: "req_1"},
		&mmsp.UpstreamError{Client: "ScriptClient", Message: "slow down", Status: 429, ErrorType: "rate_limit_error", Code: "rate_limit_exceeded", RetryAfter: 1500 * time.Millisecond},
		&mmsp.UpstreamError{
			Client: "ScriptClient", Message: "too long", Status: 400, ErrorType: "invalid_request_error", Code: "context_length_exceeded", Param: "messages",
			Object: json.RawMessage(`{"message":"too long","type":"invalid_request_error","inner":[1]}`),
		},
		&mmsp.UpstreamError{Client: "ScriptClient", Message: "who are you", Status: 401, ErrorType: "authentication_error"},
		&mmsp.UpstreamError{Client: "ScriptClient", Message: "no model", Status: 404, Code: "model_not_found"},
		&mmsp.UpstreamError{Client: "ScriptClient", Message: "inside a stream: \u2028\n\"", ErrorType: "server_error", Code: "server_error"},
		&mmsp.UpstreamError{Client: "ScriptClient"},
		&mmsp.UpstreamError{Client: "ScriptClient", Status: 503, Err: io.ErrUnexpectedEOF},
		&mmsp.UpstreamError{Client: "ScriptClient", Message: "of the next hop", Status: 500, Wire: json.RawMessage(`{"type":"UpstreamError","message":"of the next hop"}`)},
	)
}

// fails cuts the stream where it is, or inside it, and returns what cut it.
func (g *generator) fails() ([]mmsp.Event, error) {
	if g.one(4) {
		e := g.stop()
		call := g.call()
		raw := pick(g, `{"city":"Os`, `[1]`, `{"a":1}}`, `nonsense`, `"x"`, `{"ü":"👩‍👩‍👧‍👦`)
		for i, piece := range g.cut(raw) {
			delta := mmsp.Item{Type: mmsp.ToolCallDelta, Arguments: piece}
			if i == 0 {
				delta.Name, delta.ToolCallID = call.Name, call.ToolCallID
			}
			g.add(delta)
		}
		return g.events, &mmsp.ToolCallArgumentParseError{
			Client: "ScriptClient", ToolName: call.Name, ToolCallID: call.ToolCallID, RawArguments: raw, Reason: "unexpected end",
			FinishReason: pick(g, mmsp.FinishLength, mmsp.FinishToolCall, mmsp.FinishStop, mmsp.FinishUnknown), Usage: e.Usage, StopDetail: e.StopDetail,
		}
	}
	g.events = g.events[:g.r.IntN(len(g.events)+1)]
	return g.events, pick[error](g,
		g.upstream(), g.upstream(), g.upstream(),
		&mmsp.IncompleteStreamError{Client: "ScriptClient", Reason: "no finish reason arrived"},
		&mmsp.IncompleteStreamError{Client: "ScriptClient", Reason: "the connection was cut", Err: io.ErrUnexpectedEOF},
		&mmsp.StreamProtocolError{Client: "ScriptClient", Detail: "a fragment of no open tool call"},
		fmt.Errorf("reading: %w", context.Canceled),
		fmt.Errorf("reading: %w", context.DeadlineExceeded),
		errors.New("an error of no type"),
	)
}
