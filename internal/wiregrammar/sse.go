package wiregrammar

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
)

// block is one event of a stream.
type block struct {
	where string // for faults
	event string
	named bool // it has an event line
	data  string
}

var emptyLines = regexp.MustCompile(`\n{3,}`)

// blocks cuts a stream into its events. A block is at most one event line and one data line, in this order, and a blank
// line; lines end in LF; comments stand in blocks of their own, which are left out. Where idle is set, empty lines may stand
// between blocks.
func (r *report) blocks(stream []byte, idle bool) (list []block) {
	if i := bytes.IndexByte(stream, '\r'); i >= 0 {
		r.add("byte %d: a carriage return; lines end in LF alone", i)
	}
	if idle {
		stream = emptyLines.ReplaceAll(bytes.TrimLeft(stream, "\n"), []byte("\n\n"))
	}
	texts := strings.Split(string(stream), "\n\n")
	if last := len(texts) - 1; texts[last] != "" {
		r.add("the last block does not end with a blank line: %.60q", texts[last])
	} else {
		texts = texts[:last]
	}
	for i, text := range texts {
		b := block{where: fmt.Sprintf("block %d", i)}
		comments, data := 0, 0
		for line := range strings.SplitSeq(text, "\n") {
			name, value, _ := strings.Cut(line, ":")
			value = strings.TrimPrefix(value, " ")
			switch name {
			case "":
				if line == "" {
					r.add("%s: an empty line too many", b.where)
				} else {
					comments++
				}
			case "event":
				if b.named {
					r.add("%s: a second event line", b.where)
				}
				if data > 0 {
					r.add("%s: the event line stands after the data line", b.where)
				}
				b.named, b.event = true, value
			case "data":
				if data++; data > 1 {
					r.add("%s: a second data line", b.where)
				}
				b.data = value
			default:
				r.add("%s: a line that is neither event, data nor comment: %.60q", b.where, line)
			}
		}
		switch {
		case data == 0 && !b.named && comments > 0:
			continue
		case data == 0:
			r.add("%s: no data line", b.where)
			continue
		case comments > 0:
			r.add("%s: a comment inside an event", b.where)
		}
		list = append(list, b)
	}
	return list
}

// unnamed reports an event line in a protocol that has none.
func (r *report) unnamed(b block) {
	if b.named {
		r.add("%s: an event line; the protocol has data lines only", b.where)
	}
}
