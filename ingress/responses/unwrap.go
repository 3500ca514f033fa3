package responses

import (
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// unwrapper takes the input of a tool that takes any text out of the arguments that the model writes, while it writes
// them: the object {"input": "…"}.
type unwrapper struct {
	inside, ended bool
	at            int    // how far the arguments are read
	text          []byte // what came out
}

// feed returns what is new in the input, of the arguments so far.
func (u *unwrapper) feed(arguments []byte) string {
	if !u.inside && !u.enter(arguments) || u.ended {
		return ""
	}
	end := u.at
	for end < len(arguments) && !u.ended {
		n := 1
		switch c := arguments[end]; {
		case c == '"':
			u.ended = true
			continue
		case c == '\\':
			n = escape(arguments[end:])
		case c >= utf8.RuneSelf:
			n = 0
			if utf8.FullRune(arguments[end:]) {
				_, n = utf8.DecodeRune(arguments[end:])
			}
		}
		if n == 0 { // the rest of it is still to come
			break
		}
		end += n
	}
	var piece string
	if json.Unmarshal(append(append([]byte{'"'}, arguments[u.at:end]...), '"'), &piece) != nil {
		u.ended = true // the arguments are no JSON
		return ""
	}
	u.at = end
	u.text = append(u.text, piece...)
	return piece
}

// enter reads up to the input's first character.
func (u *unwrapper) enter(arguments []byte) bool {
	at := 0
	for _, token := range []string{"{", `"input"`, ":", `"`} {
		for at < len(arguments) && strings.IndexByte(" \t\r\n", arguments[at]) >= 0 {
			at++
		}
		if len(arguments)-at < len(token) || string(arguments[at:at+len(token)]) != token {
			return false
		}
		at += len(token)
	}
	u.inside, u.at = true, at
	return true
}

// escape returns the length of an escape, both halves of a pair together, 0 where the end of it is missing.
func escape(text []byte) int {
	switch {
	case len(text) < 2:
		return 0
	case text[1] != 'u':
		return 2
	case len(text) < 6:
		return 0
	}
	unit, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil || !utf16.IsSurrogate(rune(unit)) || unit >= 0xdc00 {
		return 6
	}
	switch {
	case len(text) == 6, len(text) < 12 && text[6] == '\\' && (len(text) == 7 || text[7] == 'u'):
		return 0
	case len(text) < 12 || text[6] != '\\' || text[7] != 'u':
		return 6
	}
	return 12
}

// unwrap returns the input in arguments that are not {"input": "…"}: the string called input, or the only one; else the
// arguments themselves. Of arguments that were cut before it, it is empty.
func unwrap(arguments string) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &fields) != nil {
		return ""
	}
	raw := fields["input"]
	if raw == nil && len(fields) == 1 {
		for _, raw = range fields {
		}
	}
	var input string
	if raw == nil || json.Unmarshal(raw, &input) != nil {
		return arguments
	}
	return input
}
