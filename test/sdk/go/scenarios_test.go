package sdk

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"testing"
)

// driver is one SDK on one protocol.
type driver interface {
	// open begins a conversation; way says how the SDK brings its calls back.
	open(model, way string) conversation
	// fault says what an error is in the SDK's own terms.
	fault(error) fault
}

type conversation interface {
	// use chooses the model that answers next.
	use(model string)
	user(text string, picture bool)
	results(calls []call)
	// ask streams one answer, or gets it whole, and adds it to the conversation in the SDK's own way.
	ask(ctx context.Context, o options) (answer, error)
}

type options struct {
	tools    []string
	thinking bool
	schema   map[string]any
	whole    bool // without a stream
	onText   func(string)
}

type answer struct {
	text, thinking string
	calls          []call
	finish         string // stop, length, failed, or the protocol's word
	input, output  int64  // tokens
}

type call struct {
	id, name string
	args     any
}

type fault struct {
	status  int
	aborted bool
	body    string // that came with the status
}

func (o options) told(text string) {
	if o.onText != nil {
		o.onText(text)
	}
}

func parse(t string) any {
	var v any
	if err := json.Unmarshal([]byte(t), &v); err != nil {
		return fmt.Sprintf("not JSON: %s", t)
	}
	return v
}

// play plays a scenario; an exception may expect it to be refused.
func play(ctx context.Context, t *testing.T, d driver, e expectation, scenario string, egress egress, way string) {
	var names dropped
	err := scenes(context.WithValue(ctx, droppedKey{}, &names), t, d, e, scenario, egress, way)
	switch {
	case e.Refused == 0 && err != nil:
		t.Fatal(err, d.fault(err).body)
	case e.Refused != 0 && err == nil:
		t.Fatalf("not refused with %d", e.Refused)
	case e.Refused != 0 && d.fault(err).status != e.Refused:
		t.Fatalf("not refused with %d but with %v", e.Refused, err)
	}
	of := slices.DeleteFunc(names.sorted(), func(name string) bool { return slices.Contains(egress.PassesOver, name) })
	if e.Refused == 0 && !slices.Equal(of, e.Dropped) {
		t.Fatalf("dropped of the requests is %v and not %v", of, e.Dropped)
	}
}

func scenes(ctx context.Context, t *testing.T, d driver, e expectation, scenario string, egress egress, way string) error {
	c := d.open(egress.ID, way)
	switch scenario {
	case "text", "thinking", "image", "structured output", "length", "refusal", "filter", "empty":
		c.user(e.Prompt, scenario == "image")
		a, err := c.ask(ctx, options{thinking: scenario == "thinking", schema: e.Schema})
		if err != nil {
			return err
		}
		if scenario == "structured output" && e.Value != nil {
			if v := parse(a.text); !reflect.DeepEqual(v, e.Value) {
				return fmt.Errorf("the answer is %v and not %v", v, e.Value)
			}
			return nil
		}
		if scenario == "text" && (a.input <= 0 || a.output <= 0) || scenario == "length" && a.text == "" {
			return fmt.Errorf("no text or no usage: %+v", a)
		}
		if n := len(e.Thinks); n == 0 && a.thinking != "" || n > 0 && (len(a.thinking) < n || a.thinking[:n] != e.Thinks) {
			return fmt.Errorf("the thinking is %q and does not begin with %q", a.thinking, e.Thinks)
		}
		return says(a, e.Says, e.Finish)
	case "one call", "parallel calls", "not streamed":
		return calling(ctx, c, e)
	case "hop":
		for _, model := range []string{egress.ID, egress.Hop, egress.ID} {
			c.use(model)
			if err := calling(ctx, c, e); err != nil {
				return fmt.Errorf("%s: %w", model, err)
			}
		}
		c.user(e.Then, false)
		a, err := c.ask(ctx, options{thinking: true, tools: e.Tools})
		if err != nil {
			return err
		}
		return says(a, e.ThenSays, e.Finish)
	case "error":
		c.user(e.Prompt, false)
		a, err := c.ask(ctx, options{})
		if err == nil {
			return fmt.Errorf("no error but %+v", a)
		}
		if got := d.fault(err).status; got != e.Status {
			return fmt.Errorf("the status is %d and not %d: %w", got, e.Status, err)
		}
		return nil
	case "fail", "cut":
		c.user(e.Prompt, false)
		text := ""
		a, err := c.ask(ctx, options{onText: func(piece string) { text += piece }})
		switch {
		case err == nil && a.finish != "failed":
			return fmt.Errorf("no error but %+v", a)
		case text == "":
			return fmt.Errorf("nothing was streamed before: %w", err)
		}
		return nil
	case "abort":
		c.user(e.Prompt, false)
		text := ""
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		a, err := c.ask(ctx, options{onText: func(piece string) { text += piece; cancel() }})
		switch {
		case err == nil:
			return fmt.Errorf("no error but %+v", a)
		case !d.fault(err).aborted:
			return fmt.Errorf("not the error of an abort: %w", err)
		case len(text) > 1500:
			return fmt.Errorf("%d bytes came before the end", len(text))
		}
		return nil
	}
	t.Fatalf("no scenario %s", scenario)
	return nil
}

func says(a answer, texts []string, finish string) error {
	for _, text := range texts {
		if !regexp.MustCompile(text).MatchString(a.text) {
			return fmt.Errorf("the answer %q does not say %s", a.text, text)
		}
	}
	if a.finish != finish && finish != "" || a.finish == "failed" {
		return fmt.Errorf("the answer ends with %s and not with %s", a.finish, finish)
	}
	return nil
}

// calling has the model call its tools, answers, and reads what it makes of the results.
func calling(ctx context.Context, c conversation, e expectation) error {
	c.user(e.Prompt, false)
	o := options{thinking: true, tools: e.Tools, whole: e.Whole}
	a, err := c.ask(ctx, o)
	if err != nil {
		return err
	}
	ids := map[string]bool{}
	if len(a.calls) != len(e.Tools) {
		return fmt.Errorf("%d calls and not %d: %+v", len(a.calls), len(e.Tools), a)
	}
	for i, call := range a.calls {
		if call.name != e.Tools[i] || !reflect.DeepEqual(call.args, map[string]any{"city": "Oslo"}) {
			return fmt.Errorf("call %d is %+v", i, call)
		}
		if call.id != "" && ids[call.id] { // Gemini's calls may have none
			return fmt.Errorf("the id %s stands twice", call.id)
		}
		ids[call.id] = true
	}
	c.results(a.calls)
	if a, err = c.ask(ctx, o); err != nil {
		return err
	}
	if len(a.calls) > 0 {
		return fmt.Errorf("calls again: %+v", a.calls)
	}
	return says(a, e.Says, e.Finish)
}
