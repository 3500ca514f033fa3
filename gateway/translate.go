package gateway

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/prism-shadow/mmsp-go"
	"github.com/prism-shadow/mmsp-go/ingress"
	"github.com/prism-shadow/mmsp-go/internal/carry"
	"github.com/prism-shadow/mmsp-go/internal/jsonscan"
)

// translator stands between what a caller of an ingress protocol knows tool calls and tools by and what the provider does.
// Ids are unique in a conversation and fit every protocol's alphabet, names fit the provider's; both can be turned back
// without a memory, but for ids that are too long.
//
// Proofs name their issuer: a vendor, or the provider's host, which callers know by its class.
type translator struct {
	peer        carry.Peer
	host, class string // the provider's; "": not known
	// plain reports that the caller's protocol allows any text as an id.
	plain bool

	used  map[string]bool   // the ids that the caller knows
	given map[string]string // new in this answer, where the id alone does not tell the provider's
	names map[string]string // the provider's name → the caller's

	// The call that is streaming.
	open bool
	id   string
}

func newTranslator(peer carry.Peer, host string, protocol carry.Protocol) *translator {
	return &translator{
		peer: peer, host: host, class: classOf(host), plain: protocol == carry.Chat || protocol == carry.GenerateContent,
		used: map[string]bool{}, given: map[string]string{}, names: map[string]string{},
	}
}

const (
	escapeMark = "mmx_" // before an id that is escaped
	hashMark   = "mmh_" // before the digest of one that is too long
	uniqueMark = "_mm"  // before what makes an id unique
	uniqueLen  = 10
	maxID      = 64
)

var (
	plainID  = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	uniqueID = regexp.MustCompile(`^(.+)` + uniqueMark + `[a-z2-7]{10}$`)
)

// in turns a request into the provider's terms. known holds ids that the store recalls.
func (t *translator) in(request *ingress.Request, known map[string]string) {
	for i := range request.Config.Tools {
		t.name(&request.Config.Tools[i].Name)
	}
	if choice := request.Config.ToolChoice; choice != nil {
		choice.Names = slices.Clone(choice.Names)
		for i := range choice.Names {
			t.name(&choice.Names[i])
		}
	}
	taken := map[string]int{}     // a provider's id → how many calls would have it
	turn := map[string]int{}      // a caller's id → the turn of the last call with it
	open := map[string][]string{} // a caller's id → the provider's of the calls with it that have no result yet
	for m := range request.Messages {
		for i := range request.Messages[m].ContentItems {
			item := &request.Messages[m].ContentItems[i]
			item.Fidelity = reissued(item.Fidelity, t.class, t.host)
			caller := item.ToolCallID
			switch item.Type {
			case mmsp.ToolCallDone:
				t.name(&item.Name)
				id := t.fitting(t.original(item, known))
				if last, again := turn[caller]; !t.mayRepeat(id, item.Name, again && last < m) {
					id = t.unique(id, taken)
				}
				taken[id]++
				turn[caller], t.used[caller] = m, true
				open[caller] = append(open[caller], id)
				item.ToolCallID = id
			case mmsp.ToolResultDone:
				if ids := open[caller]; len(ids) > 0 {
					item.ToolCallID, open[caller] = ids[0], ids[1:]
				}
			}
		}
	}
}

// fitting returns an id in the place of one that the provider refuses, the same each time: of Responses' at most 64
// characters are wanted, letters, digits, _ and -. The clients of Messages see to theirs.
func (t *translator) fitting(id string) string {
	if t.peer.Protocol == carry.Responses && !plainID.MatchString(id) {
		return hashedID(id)
	}
	return id
}

// mayRepeat reports whether a call may have an id that another has: at providers that count anew in every turn, a call of
// a later turn, and at Google's, whose clients do not send it, the name that stands for no id. What another server asks is
// for that to judge.
func (t *translator) mayRepeat(id, name string, later bool) bool {
	switch t.peer.Protocol {
	case carry.Chat:
		return later
	case carry.GenerateContent:
		return later || id == name
	case carry.Interactions, carry.MMSP:
		return id == name
	}
	return false
}

// unique returns an id that no call before has. It depends on those alone: as a conversation goes on, what was sent stays.
func (t *translator) unique(id string, taken map[string]int) string {
	one := id
	for taken[one] > 0 {
		taken[id]++
		one = t.fitting(fmt.Sprint(id, "_", taken[id]))
	}
	return one
}

// original returns the provider's id of a call of the history, which has the provider's name already.
func (t *translator) original(call *mmsp.Item, known map[string]string) string {
	id := call.ToolCallID
	if real, ok := known[id]; ok {
		return real
	}
	if m := uniqueID.FindStringSubmatch(id); m != nil && t.peer.Protocol == carry.GenerateContent && t.unescaped(m[1]) == call.Name {
		return call.Name // a call that Gemini gave no id
	} else if m != nil {
		return id
	}
	return t.unescaped(id)
}

// unescaped returns what visible wrote as the id.
func (t *translator) unescaped(id string) string {
	if t.plain {
		return id
	}
	return unescapeID(id)
}

// out turns an event of the answer into the caller's terms.
func (t *translator) out(e *mmsp.Event) {
	item := &e.Item
	item.Fidelity = reissued(item.Fidelity, t.host, t.class)
	switch item.Type {
	case mmsp.InlineDataDelta, mmsp.InlineDataDone, mmsp.InlineThinkingDelta, mmsp.InlineThinkingDone:
		if item.MimeType != "" { // as in all but the first delta
			item.MimeType = ingress.MediaType(item.MimeType)
		}
	case mmsp.ToolCallDelta:
		if !t.open {
			t.open, t.id = true, t.visible(item.ToolCallID, item.Name)
		}
		if item.ToolCallID != "" {
			item.ToolCallID = t.id
		}
		item.Name = t.callerName(item.Name)
	case mmsp.ToolCallDone:
		if !t.open {
			t.id = t.visible(item.ToolCallID, item.Name)
		}
		t.open, item.ToolCallID, item.Name = false, t.id, t.callerName(item.Name)
	}
}

// reissued returns a proof whose issuer has another name, if it has the one.
func reissued(fidelity mmsp.Fidelity, from, to string) mmsp.Fidelity {
	if len(fidelity) == 0 || from == "" {
		return fidelity
	}
	var s jsonscan.Scanner
	s.Reset(fidelity)
	for first := true; s.Field(&first); {
		if string(s.Name()) != "issuer" || s.Kind() != '"' {
			s.Skip()
		} else if s.String() == from {
			issuer := s.Span()
			return slices.Concat(fidelity[:issuer.From], []byte(to), fidelity[issuer.To:])
		}
	}
	return fidelity
}

// visible returns the id that the caller gets for a call of the provider.
func (t *translator) visible(id, name string) string {
	visible := id
	if !t.plain {
		visible = escapeID(id)
	}
	if len(visible) > maxID && !t.plain {
		visible = hashedID(id)
	}
	if idless := id == name; idless || t.used[visible] || visible == "" {
		base := visible
		if room := maxID - len(uniqueMark) - uniqueLen; len(base) > room {
			base = base[:room]
		}
		visible = base + uniqueMark + strings.ToLower(rand.Text()[:uniqueLen])
		if idless && base != id {
			t.given[visible] = id
		}
	} else if strings.HasPrefix(visible, hashMark) {
		t.given[visible] = id
	}
	t.used[visible] = true
	return visible
}

// hashedID stands for an id that cannot be written.
func hashedID(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hashMark + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:25]))
}

// escapeID writes an id in letters, digits, _ and -, so that unescapeID reads it back.
func escapeID(id string) string {
	if plainID.MatchString(id) && !strings.HasPrefix(id, escapeMark) && !strings.HasPrefix(id, hashMark) {
		return id
	}
	b := []byte(escapeMark)
	for i := range len(id) {
		switch c := id[i]; {
		case c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z':
			b = append(b, c)
		case c == '_':
			b = append(b, "__"...)
		default:
			b = fmt.Appendf(b, "_%02x", c)
		}
	}
	return string(b)
}

// unescapeID returns the id that was escaped, and any other as it is.
func unescapeID(id string) string {
	rest, ok := strings.CutPrefix(id, escapeMark)
	if !ok {
		return id
	}
	var b []byte
	for i := 0; i < len(rest); i++ {
		switch {
		case rest[i] != '_':
			b = append(b, rest[i])
		case strings.HasPrefix(rest[i+1:], "_"):
			b = append(b, '_')
			i++
		default:
			if len(rest) < i+3 {
				return id
			}
			char, err := hex.DecodeString(rest[i+1 : i+3])
			if err != nil {
				return id
			}
			b = append(b, char[0])
			i += 2
		}
	}
	return string(b)
}

var (
	// commonName fits every provider.
	commonName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)
	// wideNames are what some take beyond that.
	wideNames = map[carry.Protocol]*regexp.Regexp{
		carry.Chat:            regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`),
		carry.Responses:       regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`),
		carry.Messages:        regexp.MustCompile(`^[A-Za-z0-9_-]{1,128}$`),
		carry.GenerateContent: regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.:-]{0,63}$`),
	}
	foreignChars = regexp.MustCompile(`[^A-Za-z0-9_-]+`)
)

// name writes a tool's name so that the provider takes it, and remembers the caller's.
func (t *translator) name(name *string) {
	caller := *name
	wide := wideNames[t.peer.Protocol]
	if caller == "" || commonName.MatchString(caller) || wide != nil && wide.MatchString(caller) {
		return
	}
	sum := sha256.Sum256([]byte(caller))
	short := "t_" + foreignChars.ReplaceAllString(caller, "_")
	*name = short[:min(len(short), maxID-9)] + "_" + hex.EncodeToString(sum[:4])
	t.names[*name] = caller
}

func (t *translator) callerName(name string) string {
	if caller, ok := t.names[name]; ok {
		return caller
	}
	return name
}
