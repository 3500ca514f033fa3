package simulate

import (
	"cmp"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// turn is what a request asks, in no protocol's terms.
type turn struct {
	model    string
	streamed bool
	counts   bool // nothing but the size of the prompt is asked for

	said     []string // by the user since the model last spoke
	ruled    []string // by the system prompts
	prompt   string   // what was said, joined
	system   string   // the rules, joined
	results  []result // of the calls the model made last
	pictures []picture
	fresh    int // pictures that came since the model last spoke
	turns    int // messages of the user
	segments []segment

	tools   []tool
	must    bool            // a tool has to be called
	never   bool            // none may be
	only    map[string]bool // names of those that may be; empty: all
	oneCall bool

	effort string // the level of thinking asked for, in the request's word
	think  bool   // thinking is asked for
	limit  int    // tokens of the answer, thinking included; 0: none
	mute   bool   // nothing is to be said: the prompt is to be read into the cache
	stops  []string
	rich   bool // pictures and speech can come out, and the prompt can be blocked
	paint  bool // a picture is asked for
	speak  bool // speech is asked for
	json   bool // the answer must be JSON
	schema any  // that follows this schema; nil: any object
}

type result struct {
	name   string
	text   string
	failed bool
}

type tool struct {
	name   string
	schema any
}

// say adds a text to the prompt that the provider sees, which usage counts.
func (t *turn) say(role, text string) {
	t.segments = append(t.segments, segment{role, text, tokens(text) + 1})
}

// hear adds a text of the user.
func (t *turn) hear(text string) {
	t.say("user", text)
	t.said = append(t.said, text)
}

// rule adds a text of the system prompt.
func (t *turn) rule(text string) {
	t.say("system", text)
	t.ruled = append(t.ruled, text)
}

// see adds a picture; the source tells it from others.
func (t *turn) see(p picture, source string) {
	t.segments = append(t.segments, segment{"image", source, p.tokens()})
	t.pictures = append(t.pictures, p)
	t.fresh++
}

// spoke marks a message of the model: what stands before it has been answered.
func (t *turn) spoke() { t.said, t.results, t.fresh = nil, nil, 0 }

// size is the tokens of the prompt.
func (t *turn) size() int {
	size := replyOverhead
	for _, s := range t.segments {
		size += s.tokens
	}
	return size
}

// offer adds the tools to the start of the prompt.
func (t *turn) offer(name string, schema json.RawMessage) {
	t.tools = append(t.tools, tool{name, parseSchema(schema)})
	t.say("tools", name+string(schema))
}

// partKind is a kind of content.
type partKind int

const (
	thinking partKind = iota
	redacted          // thinking that is not shown
	text
	refusal
	call
	painting // a picture
	sketch   // a picture that belongs to the thinking
	speech   // sound
)

// part is a piece of content of one kind.
type part struct {
	kind    partKind
	key     string // unique; the protocol puts its own prefix before it
	name    string // of the tool
	text    string // for a call its arguments, a JSON object; of pictures and speech the bytes
	partial bool   // it ends in the middle
}

// tokens is the price of the part.
func (p part) tokens() int {
	switch p.kind {
	case painting, sketch:
		return paintingTokens
	case speech:
		return (len(p.text) + speechChunk - 1) / speechChunk
	}
	return tokens(p.text)
}

// finish says why the model stopped.
type finish int

const (
	stopped finish = iota
	stoppedAt
	called
	lengthy
	refused
	filtered
	forbidden // a call that may not be
	blocked   // the prompt: there is no answer
)

// ending says how the answer's transport ends.
type ending int

const (
	complete ending = iota
	failed          // with an error inside the stream
	cut             // with the connection, before the terminal event
)

// reply is what the provider is going to say.
type reply struct {
	parts       []part
	finish      finish
	stop        string // the sequence the text stopped at
	ending      ending
	failure     fault // of an ending that failed; the protocol's own way to fail if empty
	clean       bool  // a cut that looks like the orderly end of the body
	slow        bool
	interleaved bool // fragments of parallel calls alternate
	usage       usage
}

// usage counts tokens. Input includes what was cached, output the thoughts.
type usage struct{ input, cached, output, thoughts int }

// fault is the error inside the stream, with a status unless another was asked for.
func (r *reply) fault(status int) *fault {
	f := r.failure
	f.status = cmp.Or(f.status, status)
	return &f
}

// thought reports whether the reply begins with thinking.
func (r *reply) thought() bool {
	return len(r.parts) > 0 && (r.parts[0].kind == thinking || r.parts[0].kind == redacted)
}

// groups yields the parts in order, interleaved calls together.
func (r *reply) groups() iter.Seq[[]part] {
	return func(yield func([]part) bool) {
		for i := 0; i < len(r.parts); {
			end := i + 1
			for r.interleaved && r.parts[i].kind == call && end < len(r.parts) {
				end++
			}
			if !yield(r.parts[i:end]) {
				return
			}
			i = end
		}
	}
}

// fragments yields the texts of the parts in small pieces, one of each part in turn.
func fragments(parts []part) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		rest := make([][]string, len(parts))
		for i, p := range parts {
			rest[i] = pieces(p.text)
		}
		for more := true; more; {
			more = false
			for i := range rest {
				if len(rest[i]) == 0 {
					continue
				}
				if !yield(i, rest[i][0]) {
					return
				}
				rest[i], more = rest[i][1:], true
			}
		}
	}
}

var scenarioWords = map[string]bool{
	"think": true, "redacted": true, "call": true, "parallel": true, "interleaved": true, "image": true, "error": true,
	"fail": true, "cut": true, "clean": true, "slow": true, "long": true, "length": true, "refuse": true, "filter": true,
	"empty": true, "paint": true, "say": true, "block": true, "webpage": true, noQuota: true, tooLong: true,
}

// The errors that are asked for by their code.
const (
	noQuota = "insufficient_quota"
	tooLong = "context_length_exceeded"
)

// plan decides the answer, or the HTTP error that takes its place.
func (t *turn) plan(now time.Time) (*reply, *fault) {
	t.prompt, t.system = strings.Join(t.said, "\n"), strings.Join(t.ruled, "\n")
	said := map[string]bool{}
	for _, word := range words(t.prompt) {
		if word = strings.ToLower(word); scenarioWords[word] {
			said[word] = true
		}
	}
	if m := errorStatus.FindStringSubmatch(t.prompt); m != nil {
		f := &fault{page: said["webpage"], retryDate: strings.EqualFold(m[2], "until")}
		f.status, _ = strconv.Atoi(m[1])
		f.retryAfter, _ = strconv.Atoi(m[3])
		return nil, f
	}
	switch {
	case said["webpage"]:
		return nil, &fault{status: http.StatusOK, page: true}
	case said[noQuota] && !said["fail"]:
		return nil, &fault{status: http.StatusTooManyRequests, code: noQuota}
	case said[tooLong] && !said["fail"]:
		return nil, &fault{status: http.StatusBadRequest, code: tooLong}
	}

	r := &reply{slow: said["slow"], interleaved: said["interleaved"], clean: said["clean"]}
	if t.mute {
		r.finish = lengthy
		return r, nil
	}
	add := func(kind partKind, name, text string) {
		r.parts = append(r.parts, part{kind: kind, key: newID(""), name: name, text: text})
	}
	switch {
	case said["redacted"]:
		add(redacted, "", t.thoughts())
	case said["think"] || t.think:
		add(thinking, "", t.thoughts())
	}
	paint := t.rich && (said["paint"] || t.paint)
	if paint && len(r.parts) > 0 {
		add(sketch, "", paintPicture(t.prompt+" in outline"))
	}

	offered := t.offered(said)
	filler := newFiller(t.prompt, offered, now)
	switch wanted := said["call"] || said["parallel"] || t.must; {
	case said["empty"]:
	case t.rich && said["block"]:
		r.finish = blocked
	case said["refuse"]:
		r.finish = refused
		add(refusal, "", fmt.Sprintf("I will not help with %s.", quote(t.prompt, 80)))
	case said["filter"] && t.rich && wanted:
		r.finish = forbidden
	case said["filter"]:
		r.finish = filtered
	case wanted && !t.never && len(offered) > 0:
		r.finish = called
		count := 1
		if said["parallel"] && !t.oneCall {
			count = min(max(len(offered), 2), 3)
		}
		for i := range count {
			tool := offered[i%len(offered)]
			add(call, tool.name, filler.object(tool.schema))
		}
	case wanted:
		add(text, "", "I was to call a tool, but the request has none that I may call. "+t.report())
	case t.rich && (said["say"] || t.speak):
		add(speech, "", sound(t.prompt))
	case paint:
		add(text, "", t.report())
		add(painting, "", paintPicture(t.prompt))
	case t.json:
		add(text, "", filler.object(t.schema))
	case said["long"]:
		add(text, "", t.lines())
	default:
		add(text, "", t.report())
	}

	for i, p := range r.parts {
		if p.kind != text {
			continue
		}
		for _, stop := range t.stops[:min(len(t.stops), 16)] {
			if at := strings.Index(r.parts[i].text, stop); at >= 0 && stop != "" {
				r.parts[i].text, r.finish, r.stop = p.text[:at], stoppedAt, stop
			}
		}
	}
	total := 0
	for _, p := range r.parts {
		total += p.tokens()
	}
	limit := t.limit
	if limit == 0 {
		limit = total
	}
	if said["length"] {
		limit = min(limit, max(total/2, 1))
	}
	if r.truncate(limit) || said["length"] {
		r.finish = lengthy
	}
	if said["fail"] || said["cut"] {
		r.truncate(min(limit, total) / 2)
		r.ending = failed
		switch m := failStatus.FindStringSubmatch(t.prompt); {
		case m != nil:
			r.failure.status, _ = strconv.Atoi(m[1])
		case said[noQuota]:
			r.failure = fault{status: http.StatusTooManyRequests, code: noQuota}
		case said[tooLong]:
			r.failure = fault{status: http.StatusBadRequest, code: tooLong}
		}
		if said["cut"] {
			r.ending = cut
		}
	}
	for _, p := range r.parts {
		r.usage.output += p.tokens()
		if p.kind == thinking || p.kind == redacted || p.kind == sketch {
			r.usage.thoughts += p.tokens()
		}
	}
	return r, nil
}

// truncate keeps the first tokens of the reply and reports whether that ended a part in its middle or left one out.
func (r *reply) truncate(limit int) bool {
	for i, p := range r.parts {
		if n := p.tokens(); n <= limit {
			limit -= n
			continue
		}
		if limit == 0 || p.kind == painting || p.kind == sketch {
			r.parts = r.parts[:i]
			return true
		}
		if r.parts[i].partial = true; p.kind == speech {
			r.parts[i].text = p.text[:limit*speechChunk]
		} else {
			r.parts[i].text = string([]rune(p.text)[:limit*runesPerToken])
		}
		r.parts = r.parts[:i+1]
		return true
	}
	return false
}

// offered returns the tools that may be called, those that the prompt names first.
func (t *turn) offered(said map[string]bool) []tool {
	heard := map[string]bool{}
	for _, word := range words(strings.ToLower(t.prompt)) {
		heard[word] = !said[word]
	}
	named := func(tool tool) (n int) {
		for _, word := range words(strings.ToLower(strings.ReplaceAll(tool.name, "_", " "))) {
			if heard[word] {
				n++
			}
		}
		return n
	}
	offered := slices.DeleteFunc(slices.Clone(t.tools), func(tool tool) bool {
		return len(t.only) > 0 && !t.only[tool.name]
	})
	slices.SortStableFunc(offered, func(a, b tool) int { return cmp.Compare(named(b), named(a)) })
	return offered
}

func (t *turn) thoughts() string {
	if t.prompt == "" && len(t.results) > 0 {
		return fmt.Sprintf("The tools gave %s back.\n\nThat is enough to answer.", plural(len(t.results), "result"))
	}
	return fmt.Sprintf("The user wrote %s: %s.\n\nI have %s for this and will answer it as it stands.",
		plural(len(strings.Fields(t.prompt)), "word"), quote(t.prompt, 200), plural(len(t.tools), "tool"))
}

// report says what arrived with the request.
func (t *turn) report() string {
	var b strings.Builder
	for _, r := range t.results {
		verb := "answered"
		if r.failed {
			verb = "failed with"
		}
		fmt.Fprintf(&b, "%s %s %s. ", cmp.Or(r.name, "The tool"), verb, quote(r.text, 600))
	}
	if t.prompt != "" {
		fmt.Fprintf(&b, "You wrote %s: %s. ", plural(len(strings.Fields(t.prompt)), "word"), quote(t.prompt, 600))
	}
	shown := t.pictures[len(t.pictures)-t.fresh:]
	for _, word := range words(t.prompt) {
		if strings.EqualFold(word, "image") && len(shown) == 0 {
			shown = t.pictures
			if len(shown) == 0 {
				b.WriteString("No image was sent. ")
				break
			}
		}
	}
	for i, p := range shown[:min(len(shown), 20)] {
		fmt.Fprintf(&b, "Image %d is %s. ", i+1, p)
	}
	fmt.Fprintf(&b, "This is turn %d", t.turns)
	if t.system != "" {
		fmt.Fprintf(&b, ", under the system prompt %s", quote(t.system, 200))
	}
	if t.effort != "" {
		fmt.Fprintf(&b, ", with thinking set to %s", quote(t.effort, 40))
	}
	if len(t.tools) > 0 {
		fmt.Fprintf(&b, ", with %s", plural(len(t.tools), "tool"))
	}
	b.WriteString(".")
	return b.String()
}

// lines is the prompt again and again, in some hundred pieces.
func (t *turn) lines() string {
	var b strings.Builder
	for i := range 60 {
		fmt.Fprintf(&b, "Line %d of 60 repeats: %s\n", i+1, clip(t.prompt, 80))
	}
	return b.String()
}

const runesPerToken = 4

// tokens estimates the tokens of a text.
func tokens(text string) int {
	return (utf8.RuneCountInString(text) + runesPerToken - 1) / runesPerToken
}

// words splits a text at everything but letters, digits, underscores and what joins words.
func words(text string) []string {
	split := strings.FieldsFunc(text, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' && r != '\'' && r != '_'
	})
	return slices.DeleteFunc(split, func(word string) bool { return strings.Trim(word, "-'_") == "" })
}

// pieces splits a text before its spaces, and a longer word into pieces of eight characters.
func pieces(text string) []string {
	var all []string
	start, length := 0, 0
	for at, r := range text {
		if length == 8 || length > 0 && unicode.IsSpace(r) {
			all = append(all, text[start:at])
			start, length = at, 0
		}
		length++
	}
	if start < len(text) {
		all = append(all, text[start:])
	}
	return all
}

func plural(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

func quote(text string, limit int) string { return "“" + clip(text, limit) + "”" }

func clip(text string, limit int) string {
	for at := range text {
		if limit--; limit < 0 {
			return text[:at] + "…"
		}
	}
	return text
}
