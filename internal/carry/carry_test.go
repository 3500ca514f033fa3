package carry

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prism-shadow/mmsp-go"
)

var claude = Peer{"anthropic-official", Messages, "api.anthropic.com", "claude-sonnet-5-5"}

// TestGolden fixes the layout: envelopes live in callers' histories for months.
func TestGolden(t *testing.T) {
	golden, err := os.ReadFile("testdata/envelopes.txt")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(golden)), "\n")
	for i, e := range []Envelope{
		{claude, "thinking", mmsp.Fidelity(`{"signature":"c2ln","issuer":"anthropic"}`), nil},
		{Peer{"google-genai", GenerateContent, "", "gemini-3.8-flash"}, "tool_call", mmsp.Fidelity(`{"signature":"c2ln","issuer":"google"}`), &Owner{ToolCallID: "call_1"}},
		{Peer{Protocol: MMSP}, "text", mmsp.Fidelity(`{"phase":"commentary"}`), &Owner{Previous: true}},
		{claude, "thinking", nil, nil},
	} {
		if got := Seal(e, MaxInline); got != lines[i] {
			t.Errorf("envelope %d is now\n%s", i, got)
		}
		if got, ok := Open(lines[i]); !ok || !reflect.DeepEqual(got, e) {
			t.Errorf("envelope %d reads as %+v %v", i, got, ok)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	good := Seal(Envelope{Issuer: claude, Kind: "thinking", Fidelity: mmsp.Fidelity(`{"a":1}`)}, MaxInline)
	for _, text := range []string{"", "c2ln", "mmsp1.", "mmsp1.!", "mmsp2." + good[6:], good + "=", good[:len(good)-3], "mmsp1.bnVsbA", "mmsp1.e30", "mmsp1.eyJrIjoidCIsImYiOlsxXX0"} {
		if e, ok := Open(text); ok {
			t.Errorf("%q is %+v", text, e)
		}
	}
	deep := strings.Repeat("[", 600) + strings.Repeat("]", 600)
	if e, ok := Open(Seal(Envelope{Kind: "text", Fidelity: mmsp.Fidelity(`{"a":` + deep + `}`)}, MaxInline)); ok {
		t.Errorf("deeper than any message may be: %.80s", e.Fidelity)
	}
	large := Envelope{Issuer: claude, Kind: "thinking", Fidelity: mmsp.Fidelity(`{"a":"` + strings.Repeat("x", 2000) + `"}`)}
	if e, ok := Open(Seal(large, 1000)); !ok || e.Fidelity != nil || e.Kind != "thinking" {
		t.Errorf("too large: %+v %v", e, ok)
	}
}

func FuzzOpen(f *testing.F) {
	f.Add("mmsp1.eyJieSI6WyIiLCIiLCIiLCIiXSwiayI6InRoaW5raW5nIn0")
	f.Fuzz(func(t *testing.T, text string) {
		if e, ok := Open(text); ok {
			if again, ok := Open(Seal(e, 1<<30)); !ok || again.Kind != e.Kind {
				t.Errorf("%+v reads back as %+v", e, again)
			}
		}
	})
}

func TestValueAndRestore(t *testing.T) {
	signed := mmsp.Fidelity(`{"signature":"c2ln","issuer":"anthropic"}`)
	for _, tt := range []struct {
		name     string
		protocol Protocol
		peer     Peer
		fidelity mmsp.Fidelity
		raw      string        // the value, where it is the provider's own
		restored mmsp.Fidelity // nil: as it was
	}{
		{"the provider's own", Messages, claude, signed, "c2ln", mmsp.Fidelity(`{"signature":"c2ln"}`)},
		{"of another protocol", Responses, claude, signed, "", nil},
		{"more than the field holds", Responses, Peer{Protocol: Responses}, mmsp.Fidelity(`{"encrypted_content":"x","format":"f"}`), "", nil},
		{"a channel shows by itself", Responses, Peer{Protocol: Responses}, mmsp.Fidelity(`{"channel":"summary","encrypted_content":"x","issuer":"openai"}`), "x", mmsp.Fidelity(`{"encrypted_content":"x"}`)},
		{"an envelope of the provider's is sealed again", Messages, claude, mmsp.Fidelity(`{"signature":"mmsp1.eA"}`), "", nil},
		{"Chat has no field of its own", Chat, Peer{Protocol: Chat}, mmsp.Fidelity(`{"reasoning_field":"reasoning"}`), "", nil},
	} {
		value := Value(tt.protocol, tt.peer, "thinking", tt.fidelity, MaxInline)
		if Sealed(value) != (tt.raw == "") || tt.raw != "" && value != tt.raw {
			t.Errorf("%s: %q", tt.name, value)
		}
		e, ok := Restore(tt.protocol, tt.peer, value)
		want := tt.restored
		if want == nil {
			want = tt.fidelity
		}
		if !ok || string(e.Fidelity) != string(want) {
			t.Errorf("%s: restored %s %v", tt.name, e.Fidelity, ok)
		}
	}
	if Value(Messages, claude, "thinking", nil, MaxInline) != "" {
		t.Error("nothing is carried as something")
	}
	for _, value := range []string{"", "c2ln", "mmsp1.x"} {
		if e, ok := Restore(Messages, Peer{Protocol: Chat}, value); ok {
			t.Errorf("%q is taken for %+v", value, e)
		}
	}
}

func get(t *testing.T, s Store, caller, key string) string {
	t.Helper()
	record, err := s.Get(context.Background(), caller, key)
	if err != nil {
		t.Fatal(err)
	}
	return string(record)
}

func TestMemory(t *testing.T) {
	ctx := context.Background()
	now := time.Unix(1000, 0)
	m := NewMemory(time.Hour, 20_000)
	m.now = func() time.Time { return now }
	put := func(caller, record string, keys ...string) {
		t.Helper()
		if err := m.Put(ctx, caller, []byte(record), keys...); err != nil {
			t.Fatal(err)
		}
	}
	put("a", "one", "k1", "k2", "k1")
	put("b", "other", "k1")
	if get(t, m, "a", "k1") != "one" || get(t, m, "a", "k2") != "one" || get(t, m, "b", "k1") != "other" || get(t, m, "c", "k1") != "" || get(t, m, "b", "k2") != "" {
		t.Error("callers do not see their own records alone")
	}
	put("a", "two", "k1")
	if get(t, m, "a", "k1") != "two" || get(t, m, "a", "k2") != "one" {
		t.Error("a key is not taken over alone")
	}
	now = now.Add(2 * time.Hour)
	if get(t, m, "a", "k1") != "" || get(t, m, "a", "k2") != "" {
		t.Error("a record outlives its age")
	}
	put("b", "new", "k3")
	if len(m.callers) != 1 || len(m.callers["b"].byKey) != 1 {
		t.Errorf("what is too old stays: %v", m.callers)
	}
	// Who fills the store pays for it.
	for i := range 100 {
		put("flood", strings.Repeat("x", 1000), fmt.Sprint("f", i))
	}
	if get(t, m, "b", "k3") != "new" || get(t, m, "flood", "f0") != "" || get(t, m, "flood", "f99") == "" || m.bytes > m.maxBytes {
		t.Errorf("the wrong records went; %d bytes", m.bytes)
	}
	_ = m.Put(ctx, "b", make([]byte, 100, 4000), "grown")
	if record, _ := m.Get(ctx, "b", "grown"); len(record) != 100 || cap(record) > 120 {
		t.Errorf("a record of %d bytes holds %d", len(record), cap(record))
	}
	put("b", strings.Repeat("x", 6000), "large")
	if get(t, m, "b", "large") != "" {
		t.Error("a record of a quarter of the store is kept")
	}
}

// TestMemoryCounts holds the sum of the bytes against what is there, whatever happens.
func TestMemoryCounts(t *testing.T) {
	ctx := context.Background()
	m := NewMemory(time.Hour, 30_000)
	for range 3000 {
		caller, key := fmt.Sprint("c", rand.IntN(4)), fmt.Sprint("k", rand.IntN(20))
		_ = m.Put(ctx, caller, make([]byte, rand.IntN(2000)), key, fmt.Sprint("k", rand.IntN(20)))
		var sum int64
		for _, s := range m.callers {
			var own int64
			for e := s.oldest.Front(); e != nil; e = e.Next() {
				own += e.Value.(*entry).size()
			}
			if own != s.bytes || s.oldest.Len() == 0 {
				t.Fatalf("a caller has %d bytes in %d records, counted as %d", own, s.oldest.Len(), s.bytes)
			}
			sum += own
		}
		if sum != m.bytes || sum > m.maxBytes {
			t.Fatalf("%d bytes, counted as %d", sum, m.bytes)
		}
	}
}

func thought(text, fidelity string) mmsp.Item {
	return mmsp.Item{Type: mmsp.ThinkingDone, Thinking: text, Fidelity: mmsp.Fidelity(fidelity)}
}

func with(item mmsp.Item, fidelity string) mmsp.Item {
	item.Fidelity = mmsp.Fidelity(fidelity)
	return item
}

func TestRecall(t *testing.T) {
	question := mmsp.UserMessage(mmsp.Text("And now?"))
	proof := thought("Hm.", `{"signature":"p1"}`)
	signed := with(mmsp.ToolCall("c1", "f", `{"n":9007199254740993,"a":1.0}`), `{"signature":"p2"}`)
	second := mmsp.ToolCall("c2", "f", `{}`)
	text := with(mmsp.Text("Let me see."), `{"phase":"commentary"}`)
	for _, tt := range []struct {
		name         string
		answer       []mmsp.Item
		given, wants []mmsp.Item
	}{
		{
			"a turn comes back without its proofs",
			[]mmsp.Item{proof, text, signed, second},
			[]mmsp.Item{mmsp.Text("Let me see.\n"), mmsp.ToolCall("c1", "f", `{"a":1,"n":9007199254740992}`), mmsp.ToolCall("c2", "f", "{}")},
			[]mmsp.Item{proof, text, signed, second},
		},
		{
			"without its text, too",
			[]mmsp.Item{proof, text, signed, second},
			[]mmsp.Item{mmsp.ToolCall("c1", "f", `{"n":9007199254740993,"a":1.0}`), second},
			[]mmsp.Item{proof, signed, second},
		},
		{
			"with its thinking, but not the proof",
			[]mmsp.Item{proof, signed},
			[]mmsp.Item{thought("Hm.", ""), mmsp.ToolCall("c1", "f", `{"n":9007199254740993,"a":1.0}`)},
			[]mmsp.Item{proof, signed},
		},
		{
			"a call that was changed is not the one that was signed",
			[]mmsp.Item{proof, signed},
			[]mmsp.Item{mmsp.ToolCall("c1", "f", `{"a":2}`)},
			[]mmsp.Item{mmsp.ToolCall("c1", "f", `{"a":2}`)},
		},
		{
			"a turn of text is known by what it says",
			[]mmsp.Item{proof, mmsp.Text("It is"), mmsp.Text(" so.")},
			[]mmsp.Item{mmsp.Text("It is so.")},
			[]mmsp.Item{proof, mmsp.Text("It is"), mmsp.Text(" so.")},
		},
		{
			"another text is another turn",
			[]mmsp.Item{proof, mmsp.Text("It is so.")},
			[]mmsp.Item{mmsp.Text("It is not so.")},
			[]mmsp.Item{mmsp.Text("It is not so.")},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ctx, store := context.Background(), NewMemory(time.Hour, 1<<20)
			answer := mmsp.AssistantMessage(tt.answer...)
			if err := Remember(ctx, store, "me", Peer{}, after(question), &answer, nil); err != nil {
				t.Fatal(err)
			}
			for _, caller := range []string{"me", "other"} {
				history := []mmsp.Message{question, mmsp.AssistantMessage(tt.given...)}
				paths := [][]string{{"messages[0]"}, make([]string, len(tt.given))}
				if _, _, err := Recall(ctx, store, caller, Peer{}, history, paths, nil); err != nil {
					t.Fatal(err)
				}
				want := tt.wants
				if caller == "other" {
					want = tt.given
				}
				got := mmsp.AssistantMessage(history[1].ContentItems...)
				if wanted := mmsp.AssistantMessage(want...); string(got.AppendJSON(nil)) != string(wanted.AppendJSON(nil)) {
					t.Errorf("%s:\ngot  %s\nwant %s", caller, got.AppendJSON(nil), wanted.AppendJSON(nil))
				}
				if len(paths[1]) != len(history[1].ContentItems) {
					t.Errorf("%d paths for %d items", len(paths[1]), len(history[1].ContentItems))
				}
			}
		})
	}
}

// after is the trail of a conversation.
func after(history ...mmsp.Message) *Trail {
	_, trail, _ := Recall(context.Background(), NewMemory(time.Hour, 1<<20), "", Peer{}, history, make([][]string, len(history)), nil)
	return trail
}

// TestRecallOfLikeTurns: conversations of one caller whose turns say the same keep their own thinking, and what a caller kept of
// a turn wins.
func TestRecallOfLikeTurns(t *testing.T) {
	ctx, store := context.Background(), NewMemory(time.Hour, 1<<20)
	call := mmsp.ToolCall("functions.f:0", "f", `{"a":1}`)
	said := map[string][]mmsp.Item{"call": {mmsp.Text("x"), call}, "text": {mmsp.Text("You're welcome!")}}
	conversation := func(topic string) []mmsp.Message {
		return []mmsp.Message{mmsp.UserMessage(mmsp.Text(topic)), mmsp.AssistantMessage(mmsp.Text("Noted.")), mmsp.UserMessage(mmsp.Text("thanks"))}
	}
	for _, topic := range []string{"one", "two"} {
		for _, items := range said {
			answer := mmsp.AssistantMessage(append([]mmsp.Item{thought("on "+topic, `{"signature":"`+topic+`"}`)}, items...)...)
			if err := Remember(ctx, store, "", Peer{}, after(conversation(topic)...), &answer, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, tt := range []struct {
		name, topic, turn string
		kept              []mmsp.Item
		want              string // thinking and proof
	}{
		{"a call in the first", "one", "call", nil, `on one {"signature":"one"}`},
		{"a call in the second", "two", "call", nil, `on two {"signature":"two"}`},
		{"a text in the first", "one", "text", nil, `on one {"signature":"one"}`},
		{"a call where the caller left out what came before", "", "call", nil, `on two {"signature":"two"}`},
		{"a text where the caller left out what came before", "", "text", nil, ""},
		{"what the caller kept of another sample", "two", "call", []mmsp.Item{thought("mine", `{"signature":"mine"}`)}, `mine {"signature":"mine"}`},
		{"a proof without a text", "two", "call", []mmsp.Item{thought("", `{"signature":"mine"}`)}, ` {"signature":"mine"}`},
		{"a text without a proof", "two", "call", []mmsp.Item{thought("mine", "")}, "mine "},
		{"what is of the turn", "two", "call", []mmsp.Item{thought("on  two\n", "")}, `on two {"signature":"two"}`},
		{"what is of the turn, in parts", "two", "call", []mmsp.Item{thought("on", `{"signature":"two"}`), thought("two", `{"signature":"two"}`)}, `on two {"signature":"two"}`},
		{"the words of the turn in another order", "two", "call", []mmsp.Item{thought("two", ""), thought("on", "")}, "two "},
		{"a proof of the turn", "two", "call", []mmsp.Item{thought("", `{"signature":"two"}`)}, `on two {"signature":"two"}`},
		{"what another provider issued", "two", "call", []mmsp.Item{thought("", Void)}, `on two {"signature":"two"}`},
	} {
		history := conversation(tt.topic)
		if tt.topic == "" {
			history = history[2:]
		}
		history = append(history, mmsp.AssistantMessage(append(tt.kept, said[tt.turn]...)...))
		last := len(history) - 1
		paths := make([][]string, len(history))
		paths[last] = make([]string, len(history[last].ContentItems))
		_, _, err := Recall(ctx, store, "", Peer{}, history, paths, nil)
		got := ""
		if first := history[last].ContentItems[0]; first.Type == mmsp.ThinkingDone {
			got = first.Thinking + " " + string(first.Fidelity)
		}
		if got != tt.want || err != nil {
			t.Errorf("%s: %q, want %q, %v", tt.name, got, tt.want, err)
		}
	}
}

// TestRecallIsBounded: what one small history makes Recall read has a limit, however often it names a turn.
func TestRecallIsBounded(t *testing.T) {
	ctx, store := context.Background(), &counting{Memory: NewMemory(time.Hour, 1<<30)}
	call := mmsp.ToolCall("c", "f", "{}")
	answer := mmsp.AssistantMessage(thought(strings.Repeat("x", 1<<20), `{"signature":"p"}`), call)
	if err := Remember(ctx, store, "", Peer{}, &Trail{}, &answer, nil); err != nil {
		t.Fatal(err)
	}
	history := func(turns, proofs int, more ...mmsp.Item) (messages []mmsp.Message, paths [][]string) {
		turn := slices.Concat(slices.Repeat([]mmsp.Item{thought("x", `{"signature":"p"}`)}, proofs), more, []mmsp.Item{call})
		for range turns {
			messages = append(messages, mmsp.AssistantMessage(slices.Clone(turn)...), mmsp.UserMessage(mmsp.ToolResult("c", "")))
			paths = append(paths, make([]string, len(turn)), nil)
		}
		return messages, paths
	}
	messages, paths := history(200, 0)
	_, trail, err := Recall(ctx, store, "", Peer{}, messages, paths, nil)
	if err == nil || store.bytes > maxRecalled+2<<20 {
		t.Errorf("a call in every turn: read %d bytes, %v", store.bytes, err)
	}
	if len(messages[0].ContentItems) != 2 || len(messages[398].ContentItems) != 1 {
		t.Errorf("the first turn has %d items, the last %d", len(messages[0].ContentItems), len(messages[398].ContentItems))
	}
	if want := after(messages...); string(trail.digest.Sum(nil)) != string(want.digest.Sum(nil)) {
		t.Error("the trail ends where the history recalls too much")
	}
	store.bytes = 0
	messages, paths = history(1, 1000, thought("another", ""))
	if _, _, err := Recall(ctx, store, "", Peer{}, messages, paths, nil); err != nil || store.bytes > (maxProofs+3)*(1<<20+1000) {
		t.Errorf("a proof a thousand times: read %d bytes, %v", store.bytes, err)
	}
}

// counting counts what is read of a store.
type counting struct {
	*Memory
	bytes int
}

func (c *counting) Get(ctx context.Context, caller, key string) ([]byte, error) {
	record, err := c.Memory.Get(ctx, caller, key)
	c.bytes += len(record)
	return record, err
}

// TestTrails: a turn is another after a conversation that said anything else, and the same however its caller writes it.
func TestTrails(t *testing.T) {
	user, assistant := mmsp.UserMessage, mmsp.AssistantMessage
	conversation := func(messages ...mmsp.Message) string {
		return keysOf(after(messages...), new(assistant(mmsp.Text("Yes."))), nil)[0]
	}
	call := func(id, arguments string) mmsp.Message { return assistant(mmsp.ToolCall(id, "f", arguments)) }
	question := mmsp.Text("q")
	seen := map[string]int{}
	for i, alike := range [][]string{
		{conversation(), conversation(assistant())},
		{
			conversation(user(question)), conversation(user(mmsp.Text(" q\n"))), conversation(user(mmsp.Text(""), question)),
			conversation(user(question), assistant(thought("t", `{"signature":"p"}`)), user()),
		},
		{conversation(user(mmsp.Text("q2")))},
		{conversation(user(question, mmsp.ImageURL("https://a.test/1.png")))},
		{conversation(user(question, mmsp.ImageURL("https://a.test/2.png")))},
		{conversation(user(question, mmsp.InlineData([]byte("1"), "application/pdf", "")))},
		{conversation(user(question, mmsp.InlineData([]byte("2"), "application/pdf", "")))},
		{conversation(user(question), assistant(mmsp.Text("a")), user(mmsp.Text("b"))), conversation(user(question), assistant(mmsp.Text("a")), assistant(), user(mmsp.Text("b")))},
		{conversation(user(question), user(mmsp.Text("a")), user(mmsp.Text("b")))},
		{conversation(user(question), assistant(mmsp.Text("a"), mmsp.Text("b")))},
		{conversation(user(question), call("1", `{"a":1,"b":2}`), user(mmsp.ToolResult("1", "r"))), conversation(user(question), call("2", `{ "b":2, "a":1 }`), user(mmsp.ToolResult("2", "r")))},
		{conversation(user(question), call("1", `{"a":1,"b":3}`), user(mmsp.ToolResult("1", "r")))},
		{conversation(user(question), call("1", `{"a":1,"b":2}`), user(mmsp.ToolResult("1", "other")))},
	} {
		for j, key := range alike {
			if other, ok := seen[key]; ok && other != i {
				t.Errorf("%d and %d leave one trail", other, i)
			} else if key != alike[0] {
				t.Errorf("%d leaves another trail where it is written as in %d", i, j)
			}
			seen[key] = i
		}
	}
}

// TestInventedIDs: an id that was made up for a call is not that of another conversation's.
func TestInventedIDs(t *testing.T) {
	ctx, store := context.Background(), NewMemory(time.Hour, 1<<20)
	call := mmsp.ToolCall("call_1_0", "f", "{}")
	answer := mmsp.AssistantMessage(with(call, `{"signature":"p"}`))
	if err := Remember(ctx, store, "", Peer{}, after(mmsp.UserMessage(mmsp.Text("One?"))), &answer, nil); err != nil {
		t.Fatal(err)
	}
	for _, invented := range []bool{false, true} {
		history := []mmsp.Message{mmsp.UserMessage(mmsp.Text("Another?")), mmsp.AssistantMessage(call)}
		if _, _, err := Recall(ctx, store, "", Peer{}, history, [][]string{{""}, {""}}, map[string]bool{call.ToolCallID: invented}); err != nil {
			t.Fatal(err)
		}
		if recalled := history[1].ContentItems[0].Fidelity != nil; recalled == invented {
			t.Errorf("invented %v, recalled %v", invented, recalled)
		}
	}
}

// TestRecallWithoutIDs: a caller whose protocol has no ids for calls makes up its own.
func TestRecallWithoutIDs(t *testing.T) {
	ctx, store := context.Background(), NewMemory(time.Hour, 1<<20)
	question := mmsp.UserMessage(mmsp.Text("And?"))
	signed := with(mmsp.ToolCall("c1", "f", `{"b":1,"a":2}`), `{"signature":"p"}`)
	answer := mmsp.AssistantMessage(signed, mmsp.ToolCall("c2", "f", `{}`))
	if err := Remember(ctx, store, "", Peer{}, after(question), &answer, map[string]string{"c1": "real"}); err != nil {
		t.Fatal(err)
	}
	history := []mmsp.Message{
		question, mmsp.AssistantMessage(mmsp.ToolCall("x1", "f", `{"a":2,"b":1}`), mmsp.ToolCall("x2", "f", "{}")),
		mmsp.UserMessage(mmsp.ToolResult("x2", "two"), mmsp.ToolResult("x1", "one")),
	}
	ids, _, err := Recall(ctx, store, "", Peer{}, history, [][]string{{""}, {"", ""}, {"", ""}}, map[string]bool{"x1": true, "x2": true})
	if err != nil || ids["c1"] != "real" {
		t.Error(ids, err)
	}
	calls, results := history[1].ContentItems, history[2].ContentItems
	if calls[0].ToolCallID != "c1" || calls[1].ToolCallID != "c2" || string(calls[0].Fidelity) != `{"signature":"p"}` {
		t.Errorf("calls %+v", calls)
	}
	if results[0].ToolCallID != "c2" || results[1].ToolCallID != "c1" {
		t.Errorf("results %+v", results)
	}
}

// TestProofsOfOneHost: a host that serves several protocols gives proofs that are good for one of them.
func TestProofsOfOneHost(t *testing.T) {
	const proof = `{"issuer":"proxy:1","signature":"p"}`
	at := func(p Protocol) Peer { return Peer{Protocol: p, Host: "proxy:1"} }
	for _, tt := range []struct {
		issuer, peer Protocol
		fidelity     mmsp.Fidelity
		want         string
	}{
		{Messages, Messages, mmsp.Fidelity(proof), proof},
		{Messages, GenerateContent, mmsp.Fidelity(proof), Void},
		{Interactions, GenerateContent, mmsp.Fidelity(proof), proof},
		{Messages, MMSP, mmsp.Fidelity(proof), proof},
		{MMSP, Messages, mmsp.Fidelity(proof), proof},
		{Chat, Messages, mmsp.Fidelity(`{"reasoning_field":"reasoning"}`), Void},
		{Chat, Messages, nil, Void},
		{Chat, Chat, nil, ""},
	} {
		value := Seal(Envelope{Issuer: at(tt.issuer), Kind: "thinking", Fidelity: tt.fidelity}, MaxInline)
		if e, ok := Restore(Responses, at(tt.peer), value); !ok || string(e.Fidelity) != tt.want {
			t.Errorf("%s to %s: %s %v", tt.issuer, tt.peer, e.Fidelity, ok)
		}
		ctx, store := context.Background(), NewMemory(time.Hour, 1<<20)
		answer := mmsp.AssistantMessage(thought("t", string(tt.fidelity)), mmsp.Text("a"))
		if err := Remember(ctx, store, "", at(tt.issuer), after(), &answer, nil); err != nil {
			t.Fatal(err)
		}
		history := []mmsp.Message{mmsp.AssistantMessage(mmsp.Text("a"))}
		if _, _, err := Recall(ctx, store, "", at(tt.peer), history, [][]string{{""}}, nil); err != nil || string(history[0].ContentItems[0].Fidelity) != tt.want {
			t.Errorf("%s recalled for %s: %s %v", tt.issuer, tt.peer, history[0].ContentItems[0].Fidelity, err)
		}
	}
}

// TestRecallOfForeignProofs: a proof that a caller brings back as it came is of who issued it, though another speaks the same
// protocol.
func TestRecallOfForeignProofs(t *testing.T) {
	ctx, store := context.Background(), NewMemory(time.Hour, 1<<20)
	at := func(host string) Peer { return Peer{ClientType: "ant-messages", Protocol: Messages, Host: host} }
	answer := mmsp.AssistantMessage(thought("t", `{"signature":"p"}`), mmsp.Text("a"))
	if err := Remember(ctx, store, "", at("one"), after(), &answer, nil); err != nil {
		t.Fatal(err)
	}
	// The same was said elsewhere, with a proof of its own.
	answer.ContentItems[0].Fidelity = mmsp.Fidelity(`{"signature":"q"}`)
	if err := Remember(ctx, store, "", at("two"), after(), &answer, nil); err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]string{"one": `{"signature":"p"}`, "two": Void} {
		e, _ := Restore(Messages, at(host), "p")
		history := []mmsp.Message{mmsp.AssistantMessage(thought("t", string(e.Fidelity)), mmsp.Text("a"))}
		_, _, _ = Recall(ctx, store, "", at(host), history, [][]string{{"", ""}}, nil)
		if got := string(history[0].ContentItems[0].Fidelity); got != want {
			t.Errorf("%s: %s, want %s", host, got, want)
		}
	}
}

func TestRememberKeepsWhatCanBeLost(t *testing.T) {
	ctx := context.Background()
	for want, answer := range map[bool]mmsp.Message{
		false: mmsp.AssistantMessage(mmsp.Text("a"), with(mmsp.Text("no"), `{"refusal":true}`), mmsp.ToolCall("c", "f", "{}")),
		true:  mmsp.AssistantMessage(mmsp.ToolCall("c", "f", "{}"), thought("t", "")),
	} {
		store := NewMemory(time.Hour, 1<<20)
		if err := Remember(ctx, store, "", Peer{}, after(), &answer, nil); err != nil || (store.bytes > 0) != want {
			t.Errorf("%v: %v, %d bytes", want, err, store.bytes)
		}
	}
}

type broken struct{ Store }

func (broken) Get(context.Context, string, string) ([]byte, error) { return nil, errors.New("down") }

func TestRecallFromABrokenStore(t *testing.T) {
	history := []mmsp.Message{mmsp.AssistantMessage(mmsp.Text("a"))}
	if _, _, err := Recall(context.Background(), broken{}, "", Peer{}, history, [][]string{{""}}, nil); err == nil || history[0].Text() != "a" {
		t.Errorf("%v, %v", err, history)
	}
}
