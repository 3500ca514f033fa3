package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/gateway"
	"github.com/prism-shadow/mmsp-go/gateway/config"
	"github.com/prism-shadow/mmsp-go/internal/wiregrammar"
)

const (
	chatCall = `data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"c1","type":"function","function":{"name":"look","arguments":"{\"q\":"}}]}}]}` + "\n\n"
	chatStop = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
)

// TestPhases: whenever a provider fails, a stream that has begun ends in its protocol's own way, and one that has not is
// an HTTP error, as is every answer in one piece.
func TestPhases(t *testing.T) {
	t.Parallel()
	quiet := make(chan struct{})
	// plays what is written, and then ends the body, breaks the connection or stays silent.
	const (
		ends = iota
		breaks
		stays
	)
	play := func(wire string, then int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			flushes(w, wire)
			switch then {
			case breaks:
				panic(http.ErrAbortHandler)
			case stays:
				<-quiet
			}
		}
	}
	const (
		busy    = `{"error":{"message":"slow down","type":"rate_limit_error"}}`
		broken  = `{"error":{"message":"no such luck","type":"server_error"}}`
		garbage = "data: {\"choices\":[}\n\n"
	)
	type phase struct {
		name    string
		handler http.HandlerFunc // nil: nobody listens
		kind    *kind            // nil: the answer is whole
		status  int
		again   bool // SDKs may ask again
		text    bool // came before
		call    bool // came before
		says    string
	}
	phases := []phase{
		{name: "refused", kind: &fault, status: 502, again: true, says: "no answer from the provider"},
		{name: "no header", handler: func(http.ResponseWriter, *http.Request) { <-quiet }, kind: &timeout, status: 504, again: true, says: "timeout"},
		{name: "no byte", handler: play("", stays), kind: &timeout, status: 504, says: "sent nothing"},
		{name: "nothing", handler: play("", ends), kind: &fault, status: 502},
		{name: "a cut before anything", handler: play("", breaks), kind: &fault, status: 502},
		{name: "[DONE] alone", handler: play("data: [DONE]\n\n", ends), kind: &fault, status: 502},
		{name: "an error first", handler: play("data: "+busy+"\n\n", ends), kind: &rateLimit, status: 429, again: true, says: "slow down"},
		{name: "a broken provider first", handler: play("data: "+broken+"\n\n", ends), kind: &fault, status: 502, again: true, says: "no such luck"},
		{name: "garbage first", handler: play(garbage, ends), kind: &fault, status: 502, says: "not readable"},
		{name: "a page", handler: play("<html><h1>Sign in</h1></html>", ends), kind: &fault, status: 502, says: "Sign in"},
		{name: "silence in a text", handler: play(chatDelta, stays), kind: &timeout, status: 504, text: true, says: "sent nothing"},
		{name: "a cut in a text", handler: play(chatDelta, breaks), kind: &fault, status: 502, text: true},
		{name: "a clean cut in a text", handler: play(chatDelta, ends), kind: &fault, status: 502, text: true},
		{name: "a cut in an event", handler: play(chatDelta+`data: {"cho`, ends), kind: &fault, status: 502, text: true},
		{name: "an error in a text", handler: play(chatDelta+"data: "+busy+"\n\n", ends), kind: &rateLimit, status: 429, again: true, text: true, says: "slow down"},
		{name: "garbage in a text", handler: play(chatDelta+garbage, ends), kind: &fault, status: 502, text: true, says: "not readable"},
		{name: "a page in a text", handler: play(chatDelta+"<html>Sign in</html>\n\n", ends), kind: &fault, status: 502, text: true},
		{name: "silence in a call", handler: play(chatDelta+chatCall, stays), kind: &timeout, status: 504, text: true, call: true},
		{name: "a cut in a call", handler: play(chatDelta+chatCall, breaks), kind: &fault, status: 502, text: true, call: true},
		{name: "a clean cut in a call", handler: play(chatDelta+chatCall, ends), kind: &fault, status: 502, text: true, call: true},
		{name: "an error in a call", handler: play(chatDelta+chatCall+"data: "+busy+"\n\n", ends), kind: &rateLimit, status: 429, again: true, text: true, call: true, says: "slow down"},
		{name: "unreadable arguments", handler: play(chatDelta+chatCall+chatEnd, ends), kind: &fault, status: 502, text: true, call: true, says: "arguments"},
		{name: "a cut behind the finish", handler: play(chatDelta+chatStop, breaks), text: true},
		{name: "a clean cut behind the finish", handler: play(chatDelta+chatStop, ends), text: true},
		{name: "silence behind the finish", handler: play(chatDelta+chatStop, stays), text: true},
	}
	var models []config.Model
	for _, p := range phases {
		row := chatRow(p.name, "http://127.0.0.1:1")
		if p.handler != nil {
			row = chat(t, p.name, p.handler)
		}
		models = append(models, row)
	}
	t.Cleanup(func() { close(quiet) }) // before the upstreams end, which wait for it
	c := everywhere(table(models...))
	patient := start(t, c)
	c = everywhere(table(models...))
	c.Upstream.HeaderTimeout, c.Upstream.IdleTimeout = 600*time.Millisecond, 200*time.Millisecond
	hasty := start(t, c)

	t.Run("phase", func(t *testing.T) {
		for _, p := range phases {
			t.Run(p.name, func(t *testing.T) {
				t.Parallel()
				s := patient
				if p.kind == &timeout || strings.HasPrefix(p.name, "silence") {
					s = hasty
				}
				for i := range dialects {
					d := &dialects[i]
					streamed, whole := d.ask(s, p.name, "hi", true), d.ask(s, p.name, "hi", false)
					refused := []answer{whole}
					switch {
					case p.kind == nil:
						if e := d.ending(t, streamed); e.failed != nil || e.text != "He" {
							t.Errorf("%s: %+v", d.endpoint, e)
						}
						if whole.status != 200 || d.text(whole.body) != "He" {
							t.Errorf("%s: %d %s", d.endpoint, whole.status, whole.body)
						}
						continue
					case p.text:
						e := d.ending(t, streamed)
						if e.failed == nil || !p.kind.says(d, true, e.failed.words) || !strings.Contains(e.failed.message, p.says) || e.failed.message == "" {
							t.Errorf("%s: %+v, want %s", d.endpoint, e.failed, p.kind.words(d, true))
						}
						// Calls go out whole to those who speak as Google.
						if call := p.call && d.endpoint != "generateContent"; e.text != "He" || call != (e.calls == 1) {
							t.Errorf("%s: %+v", d.endpoint, e)
						}
					default:
						refused = append(refused, streamed)
					}
					for _, got := range refused {
						e := d.failure(t, got)
						if got.status != p.status || !p.kind.says(d, false, e.words) || !strings.Contains(e.message, p.says) || e.message == "" {
							t.Errorf("%s: %d %+v, want %d %s", d.endpoint, got.status, e, p.status, p.kind.words(d, false))
						}
						if again := got.header.Get("X-Should-Retry") != "false"; again != p.again {
							t.Errorf("%s: SDKs ask again: %v", d.endpoint, again)
						}
					}
				}
			})
		}
	})
	var failures, successes int64
	for _, p := range phases {
		if p.kind == nil {
			successes += 2 * int64(len(dialects))
		} else {
			failures += 2 * int64(len(dialects))
		}
	}
	for _, s := range []*served{patient, hasty} {
		m := s.metrics()
		failures, successes = failures-m.Failures, successes-m.Successes
		if m.Disconnects != 0 || m.InFlight != 0 || m.Process.OpenUpstreamStreams != 0 {
			t.Errorf("%+v", m.Counts)
		}
		eventually(t, "the lines of the log", func() bool {
			return int64(len(s.json.with(`"outcome":"failure"`))) == m.Failures
		})
	}
	if failures != 0 || successes != 0 {
		t.Errorf("%d failures and %d successes are not counted", failures, successes)
	}
}

// TestCallersLeave: who goes takes the request to the provider along, before and after the first event, streaming or not.
func TestCallersLeave(t *testing.T) {
	t.Parallel()
	reached := make(chan struct{}, 1)
	gone := make(chan time.Time, 1)
	waits := func(before string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body) // the end of a caller is noticed behind the body
			if before != "" {
				flushes(w, before)
			}
			reached <- struct{}{}
			<-r.Context().Done()
			gone <- time.Now()
		}
	}
	models := []config.Model{
		chat(t, "before the header", waits("")), chat(t, "before an event", waits(": hello\n\n")), chat(t, "in a text", waits(chatDelta)), chat(t, "in a call", waits(chatCall)),
	}
	s := start(t, everywhere(table(models...)))
	left := int64(0)
	for _, row := range models {
		for i := range dialects {
			d := &dialects[i]
			for _, stream := range []bool{false, true} {
				name := fmt.Sprintf("%s, %s, stream %v", d.endpoint, row.ServerModelID, stream)
				ctx, leave := context.WithCancel(t.Context())
				ended := make(chan error)
				begun := make(chan struct{}, 1)
				go func() {
					response, err := s.client.Do(d.request(s, row.ServerModelID, "hi", stream).WithContext(ctx))
					begun <- struct{}{}
					if err == nil {
						_, err = io.Copy(io.Discard, response.Body)
						response.Body.Close()
					}
					ended <- err
				}()
				<-reached
				if stream && row.ServerModelID == "in a text" {
					<-begun
				}
				began := time.Now()
				leave()
				if took := (<-gone).Sub(began); took > 100*time.Millisecond {
					t.Errorf("%s: the upstream was open for %v", name, took)
				}
				if err := <-ended; err == nil {
					t.Errorf("%s: the answer looks whole", name)
				}
				left++
				eventually(t, "a disconnect, "+name, func() bool { return s.metrics().Disconnects == left })
			}
		}
	}
	eventually(t, "nothing is open", func() bool {
		m := s.metrics()
		return m.InFlight == 0 && m.Process.OpenUpstreamStreams == 0
	})
	if m := s.metrics(); m.Failures != 0 || m.Successes != 0 {
		t.Errorf("%+v", m.Counts)
	}
}

// TestHeartbeats: a stream lives while the provider is silent, before, between and behind its events, and has one end.
func TestHeartbeats(t *testing.T) {
	t.Parallel()
	const every = 12 * time.Millisecond
	pause := func(ctx context.Context) {
		select {
		case <-time.After(30 * every):
		case <-ctx.Done():
		}
	}
	slow := func(err error, events ...mmsp.UniEvent) script {
		return script{do: func(ctx context.Context, say func(mmsp.UniEvent) bool) error {
			for _, e := range events {
				pause(ctx)
				say(fresh(e))
			}
			pause(ctx)
			return err
		}}
	}
	busy := &mmsp.UpstreamError{Client: "C", Status: 429, Message: "slow down"}
	finish := stops
	finish.FinishReason = mmsp.FinishToolCall
	c := everywhere(table())
	c.KeepAlive = every
	s := start(t, c,
		own("talks", slow(nil, thinks("Hm"), says("He"), says("y"), calls(`{"q":`), continues(`1}`), finish)), own("fails", slow(busy)), own("fails late", slow(busy, thinks("Hm"), says("Hey"))),
		own("fails in a call", slow(busy, says("Hey"), calls(`{"q":`))))
	for i := range dialects {
		d := &dialects[i]
		for _, tt := range []struct {
			model, text   string
			calls, pauses int
			fails         bool
		}{
			{"talks", "Hey", 1, 6, false},
			{"fails", "", 0, 1, true},
			{"fails late", "Hey", 0, 3, true},
			{"fails in a call", "Hey", 1, 3, true},
		} {
			t.Run(d.endpoint+" "+tt.model, func(t *testing.T) {
				t.Parallel()
				got := d.ask(s, tt.model, "hi", true)
				e := d.ending(t, got)
				if d.endpoint == "generateContent" && tt.fails { // calls go out whole
					tt.calls = 0
				}
				if e.text != tt.text || e.calls != tt.calls || (e.failed != nil) != tt.fails {
					t.Errorf("%+v, %s", e, got.body)
				}
				if tt.fails && (!rateLimit.says(d, true, e.failed.words) || !strings.Contains(e.failed.message, "slow down")) {
					t.Errorf("%+v", e.failed)
				}
				if signs := strings.Count(got.body, "\n\n"); signs < 2*tt.pauses {
					t.Errorf("%d signs of life in %d pauses: %s", signs, tt.pauses, got.body)
				}
				// Not so an answer in one piece: its status is still open.
				whole := d.ask(s, tt.model, "hi", false)
				if want := map[bool]int{false: 200, true: 429}[tt.fails]; whole.status != want {
					t.Errorf("%d %s", whole.status, whole.body)
				}
			})
		}
	}
}

// TestBegins: an answer begins when the provider begins, though it says nothing yet. What fails from then on is told in the
// stream, but an answer in one piece has its status still.
func TestBegins(t *testing.T) {
	t.Parallel()
	firsts := map[string]string{
		"openai-chat":      `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]}`,
		"openai-responses": `data: {"type":"response.created","response":{"id":"r","status":"in_progress","output":[]}}`,
		"ant-messages":     `data: {"type":"message_start","message":{"id":"m","content":[]}}`,
		"google-genai":     `data: {"candidates":[{"content":{"role":"model","parts":[{"text":""}]}}]}`,
		"google-official":  `data: {"event_type":"interaction.created","interaction":{"id":"i","status":"in_progress"}}`,
	}
	for clientType, first := range firsts {
		t.Run(clientType, func(t *testing.T) {
			t.Parallel()
			begun := make(chan struct{}, 16) // room for all, though nobody waits
			row := chat(t, "m", func(w http.ResponseWriter, r *http.Request) {
				flushes(w, first+"\n\n")
				select {
				case <-begun:
				case <-time.After(10 * time.Second):
				}
				flushes(w, `data: {"type":"error","error":{"type":"overloaded_error","message":"busy"}}`+"\n\n")
			})
			row.ClientType = clientType
			s := start(t, everywhere(table(row)))
			began := time.Now()
			for i := range dialects {
				d := &dialects[i]
				response, err := s.client.Do(d.request(s, "m", "hi", true)) // returns with the header
				if err != nil {
					t.Fatal(err)
				}
				begun <- struct{}{}
				body, _ := io.ReadAll(response.Body)
				response.Body.Close()
				if e := d.ending(t, answer{response.StatusCode, response.Header, string(body), false}); e.failed == nil || !strings.Contains(e.failed.message, "busy") {
					t.Errorf("%s: %s", d.endpoint, body)
				}
				begun <- struct{}{}
				if got := d.ask(s, "m", "hi", false); got.status < 400 || !strings.Contains(d.failure(t, got).message, "busy") {
					t.Errorf("%s: %d %s", d.endpoint, got.status, got.body)
				}
			}
			response, err := s.open(t.Context(), "m")
			if err != nil {
				t.Fatal(err)
			}
			begun <- struct{}{}
			body, _ := io.ReadAll(response.Body)
			response.Body.Close()
			if k := kinds(t, string(body)); k != "UpstreamError [DONE]" {
				t.Errorf("%s: %s", k, body)
			}
			if time.Since(began) > 9*time.Second {
				t.Error("an answer began when the provider went on")
			}
		})
	}
}

// TestHeartbeatsAmongEvents: signs of life come between events whenever they come.
func TestHeartbeatsAmongEvents(t *testing.T) {
	t.Parallel()
	c := everywhere(table())
	c.KeepAlive = time.Nanosecond
	s := start(t, c, own("m", script{do: func(_ context.Context, say func(mmsp.UniEvent) bool) error {
		for i := range 30 {
			for j, e := range []mmsp.UniEvent{thinks("a"), says("x"), says("y"), calls("{"), continues("}")} {
				e.Deltas[0].ToolCallID = map[bool]string{true: fmt.Sprint("c", i)}[e.Deltas[0].Name != ""]
				e.Deltas[0].ItemID = fmt.Sprint(i, e.Deltas[0].Type)
				e.More = (i+j)%3 == 0
				say(e)
			}
		}
		say(stops)
		return nil
	}}), own("fails", plays(&mmsp.UpstreamError{Status: 429, Message: "no"}, says("x"))), own("fails first", plays(&mmsp.UpstreamError{Status: 429, Message: "no"})))
	for i := range dialects {
		d := &dialects[i]
		t.Run(d.endpoint, func(t *testing.T) {
			t.Parallel()
			for range 5 {
				if e := d.ending(t, d.ask(s, "m", "hi", true)); e.failed != nil || e.text != strings.Repeat("xy", 30) || e.calls != 30 {
					t.Errorf("%+v", e)
				}
				if e := d.ending(t, d.ask(s, "fails", "hi", true)); e.failed == nil || e.text != "x" {
					t.Errorf("%+v", e)
				}
				if got := d.ask(s, "fails first", "hi", true); got.status == 200 {
					if e := d.ending(t, got); e.failed == nil || e.text != "" {
						t.Errorf("%+v", e)
					}
				} else if got.status != 429 || strings.Contains(got.body, "data:") {
					t.Errorf("%d %s", got.status, got.body)
				}
			}
		})
	}
}

// TestShutdownInDialects: a server that ends refuses what comes, and ends what outlives its drain, as something to try again.
func TestShutdownInDialects(t *testing.T) {
	t.Parallel()
	waits := func(events ...mmsp.UniEvent) script {
		return script{do: func(ctx context.Context, say func(mmsp.UniEvent) bool) error {
			for _, e := range events {
				say(fresh(e))
			}
			<-ctx.Done()
			return ctx.Err()
		}}
	}
	var text, jsonLines lines
	server, err := gateway.New(everywhere(table()), logger(&text, &jsonLines), own("silent", waits()), own("begun", waits(says("He"))))
	if err != nil {
		t.Fatal(err)
	}
	s := run(t, server, &text, &jsonLines, 2*time.Second) // time enough to be refused in, on a busy machine
	type asked struct {
		d      *dialect
		model  string
		stream bool
		got    answer
	}
	answers := make(chan asked)
	running := 0
	for i := range dialects {
		for _, model := range []string{"silent", "begun"} {
			for _, stream := range []bool{false, true} {
				running++
				go func() {
					a := asked{d: &dialects[i], model: model, stream: stream}
					a.got = a.d.ask(s, model, "hi", stream)
					answers <- a
				}()
			}
		}
	}
	eventually(t, "all run", func() bool { return s.metrics().Process.OpenUpstreamStreams == running })
	s.end()
	eventually(t, "the drain", func() bool { return s.get("/readyz").status == 503 })
	refused := func(d *dialect, got answer) {
		t.Helper()
		status := map[bool]int{true: 529, false: 503}[d.endpoint == "messages"]
		if e := d.failure(t, got); got.status != status || !overloaded.says(d, false, e.words) || !strings.Contains(e.message, "shutting down") || got.header.Get("X-Should-Retry") == "false" {
			t.Errorf("%s: %d %v %s", d.endpoint, got.status, got.header, got.body)
		}
	}
	for i := range dialects {
		refused(&dialects[i], dialects[i].ask(s, "begun", "hi", true))
	}
	for range running {
		a := <-answers
		if !a.stream || a.model == "silent" {
			refused(a.d, a.got)
			continue
		}
		if e := a.d.ending(t, a.got); e.text != "He" || e.failed == nil || !overloaded.says(a.d, true, e.failed.words) || !strings.Contains(e.failed.message, "shutting down") {
			t.Errorf("%s: %+v", a.d.endpoint, e)
		}
	}
	<-s.ended
	// It is nobody's failure, in one piece or not.
	if n := len(text.with("outcome=cancelled")); n != running {
		t.Errorf("%d of %d are logged as cancelled", n, running)
	}
}

// TestHeadersOfOnePiece: an answer in one piece says its length, and is no stream to proxies.
func TestHeadersOfOnePiece(t *testing.T) {
	t.Parallel()
	s := start(t, everywhere(table()), own("m", plays(nil, thinks("Hm"), says("Hey"), stops)))
	for i := range dialects {
		d := &dialects[i]
		for _, stream := range []bool{false, true} {
			h := d.ask(s, "m", "hi", stream).header
			whole := h.Get("Content-Type") == "application/json" && h.Get("Content-Length") != "" && h.Get("X-Accel-Buffering") == ""
			if whole == stream {
				t.Errorf("%s, stream %v: %v", d.endpoint, stream, h)
			}
		}
	}
}

// TestCuts: the answers of every protocol of providers that break off are told as broken in every dialect.
func TestCuts(t *testing.T) {
	t.Parallel()
	s := start(t, everywhere(table(simulated(t)...)))
	for _, model := range egress {
		for _, prompt := range []string{"cut", "cut clean", "think, cut clean", "call, cut", "call, cut clean"} {
			for i := range dialects {
				d := &dialects[i]
				name := fmt.Sprintf("%s to %s, %s", d.endpoint, model, prompt)
				for _, stream := range []bool{true, false} {
					got := d.ask(s, model, prompt, stream)
					if stream && got.status == 200 {
						e := d.ending(t, got)
						if e.failed == nil || !fault.says(d, true, e.failed.words) || !strings.Contains(e.failed.message, "ended early") {
							t.Errorf("%s: %+v", name, e.failed)
						}
						continue
					}
					// Of thinking, and of a call that is cut, nothing goes out to some.
					if stream && strings.HasPrefix(prompt, "cut") {
						t.Errorf("%s: the stream has the status %d", name, got.status)
					}
					if e := d.failure(t, got); got.status != 502 || !fault.says(d, false, e.words) || got.header.Get("X-Should-Retry") != "false" {
						t.Errorf("%s, stream %v: %d %s", name, stream, got.status, got.body)
					}
				}
			}
		}
	}
	if m := s.metrics(); m.Successes != 0 || m.InFlight != 0 {
		t.Errorf("%+v", m.Counts)
	}
}

// TestCallersAreApart: nobody sees what another caller's conversation left behind.
func TestCallersAreApart(t *testing.T) {
	t.Parallel()
	c := everywhere(table(simulated(t)...))
	c.APIKeys = []mmsp.Secret{mmsp.NewSecret(callerKey), mmsp.NewSecret(otherCallerKey)}
	s := start(t, c)
	send := func(key, path, body string) answer {
		r := s.request("POST", path, body)
		r.Header.Set("X-Api-Key", key)
		return s.send(r)
	}
	first := send(callerKey, "/v1/responses", `{"model":"openai-responses","input":"the secret word is heron"}`)
	var kept struct {
		ID     string
		Output []struct{ ID string }
	}
	if err := json.Unmarshal([]byte(first.body), &kept); err != nil || first.status != 200 || len(kept.Output) != 1 {
		t.Fatalf("%v: %d %s", err, first.status, first.body)
	}
	item := kept.Output[0].ID
	for name, body := range map[string]string{
		"previous response": `{"model":"openai-responses","input":"go on","previous_response_id":"` + kept.ID + `"}`,
		"item reference":    `{"model":"openai-responses","input":[{"type":"item_reference","id":"` + item + `"},{"role":"user","content":"go on"}]}`,
	} {
		if got := send(callerKey, "/v1/responses", body); got.status != 200 || strings.Contains(name, "previous") && !strings.Contains(got.body, "turn 2") {
			t.Errorf("%s: the caller's own: %d %s", name, got.status, got.body)
		}
		strange := send(otherCallerKey, "/v1/responses", body)
		if strange.status != 400 || strings.Contains(strange.body, "heron") {
			t.Errorf("%s: another's: %d %s", name, strange.status, strange.body)
		}
		// It reads as if there had never been such a one.
		unknown := send(otherCallerKey, "/v1/responses", strings.NewReplacer(kept.ID, "resp_nothing", item, "msg_nothing").Replace(body))
		a, b := responsesDialect.failure(t, strange), responsesDialect.failure(t, unknown)
		if a.words != b.words || a.param != b.param || unknown.status != 400 {
			t.Errorf("%s: %+v, unknown %+v", name, a, b)
		}
	}
}

// TestRecallIsApart: thinking that a dialect has no place for comes back to the provider for the caller who got it alone.
func TestRecallIsApart(t *testing.T) {
	t.Parallel()
	const proof = "cHJvb2Ytb2YtdGhpbmtpbmc="
	event := func(kind, fields string) string {
		return "event: " + kind + "\ndata: {\"type\":\"" + kind + "\"" + fields + "}\n\n"
	}
	answer := event("message_start", `,"message":{"id":"msg_1","type":"message","role":"assistant","content":[],"model":"m","usage":{"input_tokens":1,"output_tokens":1}}`) +
		event("content_block_start", `,"index":0,"content_block":{"type":"thinking","thinking":"","signature":""}`) +
		event("content_block_delta", `,"index":0,"delta":{"type":"thinking_delta","thinking":"private"}`) +
		event("content_block_delta", `,"index":0,"delta":{"type":"signature_delta","signature":"`+proof+`"}`) +
		event("content_block_stop", `,"index":0`) +
		event("content_block_start", `,"index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"look","input":{}}`) +
		event("content_block_delta", `,"index":1,"delta":{"type":"input_json_delta","partial_json":"{}"}`) +
		event("content_block_stop", `,"index":1`) +
		event("message_delta", `,"delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":5}`) + event("message_stop", "")
	sent := make(chan string, 1)
	row := chat(t, "m", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent <- string(body)
		flushes(w, answer)
	})
	row.ClientType = "ant-messages"
	c := everywhere(table(row))
	c.APIKeys = []mmsp.Secret{mmsp.NewSecret(callerKey), mmsp.NewSecret(otherCallerKey)}
	s := start(t, c)
	const tools = `,"tools":[{"type":"function","function":{"name":"look","parameters":` + lookSchema + `}}]`
	send := func(key, messages string) (got, upstream string) {
		r := s.request("POST", "/v1/chat/completions", `{"model":"m"`+tools+`,"messages":[`+messages+`]}`)
		r.Header.Set("Authorization", "Bearer "+key)
		a := s.send(r)
		if a.status != 200 {
			t.Fatalf("%d %s", a.status, a.body)
		}
		return a.body, <-sent
	}
	got, _ := send(callerKey, `{"role":"user","content":"look"}`)
	var whole struct {
		Choices []struct {
			Message struct {
				Calls []struct{ ID string } `json:"tool_calls"`
			}
		}
	}
	if err := json.Unmarshal([]byte(got), &whole); err != nil || len(whole.Choices) != 1 || len(whole.Choices[0].Message.Calls) != 1 {
		t.Fatalf("%v: %s", err, got)
	}
	id := whole.Choices[0].Message.Calls[0].ID
	history := `{"role":"user","content":"look"},{"role":"assistant","content":null,"tool_calls":[{"id":"` + id + `","type":"function","function":{"name":"look","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"` + id + `","content":"nothing"}`
	if _, upstream := send(callerKey, history); !strings.Contains(upstream, proof) || !strings.Contains(upstream, "private") {
		t.Errorf("the caller's own thinking is lost: %s", upstream)
	}
	if _, upstream := send(otherCallerKey, history); strings.Contains(upstream, proof) || strings.Contains(upstream, "private") {
		t.Errorf("another caller's thinking comes back: %s", upstream)
	}
}

// TestNothingSaid: what a dialect does not show begins no stream, so that the error after it still has a status.
func TestNothingSaid(t *testing.T) {
	t.Parallel()
	s := start(t, everywhere(table()), own("m", plays(&mmsp.UpstreamError{Client: "C", Status: 429, Message: "slow down"}, calls(`{"q":`))))
	got := geminiDialect.ask(s, "m", "hi", true)
	if e := geminiDialect.failure(t, got); got.status != 429 || e.message != "slow down" {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// TestArrays: the array that generateContent streams to those who do not ask for events is whole JSON however it ends.
func TestArrays(t *testing.T) {
	t.Parallel()
	const every = 10 * time.Millisecond
	talks := func(err error, events ...mmsp.UniEvent) script {
		return script{do: func(ctx context.Context, say func(mmsp.UniEvent) bool) error {
			for _, e := range events {
				time.Sleep(20 * every)
				say(fresh(e))
			}
			time.Sleep(20 * every)
			return err
		}}
	}
	busy := &mmsp.UpstreamError{Client: "C", Status: 429, Message: "slow down"}
	c := everywhere(table())
	c.KeepAlive = every
	s := start(t, c, own("whole", talks(nil, says("He"), stops)), own("late", talks(busy, says("He"))), own("first", talks(busy)))
	for model, chunks := range map[string]int{"whole": 2, "late": 2, "first": 1} {
		got := s.send(s.request("POST", "/v1beta/models/"+model+":streamGenerateContent", geminiDialect.body("", "hi", true)))
		var array []struct {
			Error *struct {
				Code    int
				Message string
			}
		}
		err := json.Unmarshal([]byte(got.body), &array)
		if err == nil {
			err = wiregrammar.GenerateContentArray([]byte(got.body))
		}
		if err != nil || got.status != 200 || len(array) != chunks {
			t.Errorf("%s: %v: %d %s", model, err, got.status, got.body)
			continue
		}
		failure := array[len(array)-1].Error
		if (failure == nil) != (model == "whole") || failure != nil && (failure.Code != 429 || failure.Message != "slow down") {
			t.Errorf("%s: %s", model, got.body)
		}
	}
}

// TestUnreadableProofs: what no envelope is, and not of the provider that is asked, is absent, and counted.
func TestUnreadableProofs(t *testing.T) {
	t.Parallel()
	s := start(t, everywhere(table()), own("m", plays(nil, says("hi"), stops)))
	for _, tt := range []struct{ path, body string }{
		{"/v1/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"a"},{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"nobody's"},{"type":"text","text":"b"}]},{"role":"user","content":"c"}]}`},
		{"/v1/responses", `{"model":"m","input":[{"role":"user","content":"a"},{"type":"reasoning","summary":[],"encrypted_content":"mmsp1.broken"},{"role":"assistant","content":"b"},{"role":"user","content":"c"}]}`},
		{"/v1beta/models/m:generateContent", `{"contents":[{"role":"user","parts":[{"text":"a"}]},{"role":"model","parts":[{"text":"b","thoughtSignature":"bm9ib2R5"}]},{"role":"user","parts":[{"text":"c"}]}]}`},
	} {
		before := s.metrics().Process.FidelityUnreadable
		if got := s.send(s.request("POST", tt.path, tt.body)); got.status != 200 || s.metrics().Process.FidelityUnreadable != before+1 {
			t.Errorf("%s: %d %s, %d counted", tt.path, got.status, got.body, s.metrics().Process.FidelityUnreadable-before)
		}
	}
}
