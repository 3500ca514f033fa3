package gateway

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/ingress"
	"github.com/prism-shadow/mmsp-go/internal/carry"
)

// TestDeltasStayOffTheHeap: a delta of a text that is under way is written in every protocol without an allocation, on its whole
// way from the client's event to the bytes of the answer.
func TestDeltasStayOffTheHeap(t *testing.T) {
	encoders := map[string]encoder{"stream": publicEncoder{&call{}}}
	exchanges := map[string]*exchange{}
	for name, request := range map[string][2]string{
		"responses":       {"/v1/responses", `{"model":"m","stream":true,"input":"hi"}`},
		"chatCompletions": {"/v1/chat/completions", `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`},
		"messages":        {"/v1/messages", `{"model":"m","stream":true,"max_tokens":99,"messages":[{"role":"user","content":"hi"}]}`},
		"generateContent": {"/v1beta/models/m:streamGenerateContent?alt=sse", `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`},
	} {
		r := httptest.NewRequest("POST", request[0], nil)
		asked, err := endpointOf(r).protocol.Parse(r, []byte(request[1]))
		if err != nil {
			t.Fatal(err)
		}
		env := &ingress.Env{Store: carry.NewMemory(time.Hour, 1<<20), RequestID: "req_1", Asks: func(*mmsp.Config) bool { return true }}
		read, err := asked.Read(t.Context(), env)
		if err != nil {
			t.Fatal(err)
		}
		exchanges[name] = &exchange{asked: asked, request: read, words: newTranslator(carry.Peer{}, "", carry.Chat)}
		encoders[name] = ingressEncoder{exchanges[name]}
	}
	for name, encoder := range encoders {
		out := newEventWriter(httptest.NewRecorder(), 0, encoder)
		out.started = true
		text := strings.Repeat("A few words. ", 2)
		stream := func(yield func(mmsp.Event, error) bool) {
			event := mmsp.Event{Type: mmsp.EventDelta, Item: mmsp.Item{Type: mmsp.TextDelta, Text: text}, More: true}
			if x := exchanges[name]; x != nil {
				x.pass(&event, yield)
			} else {
				yield(event, nil)
			}
		}
		write := func() {
			for event := range stream { // as call.copy does
				_ = out.event(&event)
			}
			out.buf = out.buf[:0]
		}
		for range 4096 { // what grows has grown
			write()
		}
		if n := testing.AllocsPerRun(1000, write); n > 0.1 {
			t.Errorf("%s: %.1f allocations a delta", name, n)
		}
	}
}
