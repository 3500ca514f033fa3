package tokens

// class is what a byte of UTF-8 begins: text is counted by the bytes that lead its characters, so that one look at a table
// tells the script, and bytes that are no UTF-8 do no harm.
type class uint8

const (
	continuation class = iota
	lower
	upper
	accented // Latin beyond ASCII
	digit
	space
	newline
	mark // ASCII that is none of the above
	greek
	cyrillic
	hebrew // and Armenian
	arabic // and what lies beside it
	indic  // and Thai, Lao, Tibetan
	far    // what begins with E1: Georgian, Khmer, the letters of Vietnamese, …
	symbol // Latin-1's, typography, arrows, mathematics
	kana   // and the punctuation of Chinese and Japanese
	han
	hangul
	wide // full-width forms, private use
	emoji
	classes
)

var classOf = func() (table [256]class) {
	for c := range table {
		switch {
		case 'a' <= c && c <= 'z':
			table[c] = lower
		case 'A' <= c && c <= 'Z':
			table[c] = upper
		case '0' <= c && c <= '9':
			table[c] = digit
		case c == ' ', c == '\t':
			table[c] = space
		case c == '\n', c == '\r':
			table[c] = newline
		case c < 0x80:
			table[c] = mark
		case c < 0xc0:
			table[c] = continuation
		case c == 0xc2, c == 0xe2:
			table[c] = symbol
		case c < 0xce:
			table[c] = accented
		case c < 0xd0:
			table[c] = greek
		case c < 0xd5:
			table[c] = cyrillic
		case c < 0xd8:
			table[c] = hebrew
		case c < 0xe0:
			table[c] = arabic
		case c == 0xe0:
			table[c] = indic
		case c == 0xe1:
			table[c] = far
		case c == 0xe3:
			table[c] = kana
		case c < 0xea:
			table[c] = han
		case c < 0xee:
			table[c] = hangul
		case c < 0xf0:
			table[c] = wide
		default:
			table[c] = emoji
		}
	}
	return table
}()

// What pieces of text cost, in thousandths of a token of a vocabulary of 200,000, fitted on prose of twenty languages, code,
// JSON and logs.
const (
	word       = 1000 // its first letter
	shortWord  = 6    // letters that come with it
	longLetter = 130  // each further one
	capital    = 140  // after another capital
	accent     = 240  // what a letter with one costs beside the word it stands in
	number     = 1100 // every third digit
	spacedOut  = 700  // a space before a number, which is no part of it as it is of a word
	gap        = 650  // several spaces
	lineEnd    = 420
	softEnd    = 220 // a line's end after a mark
	emptyLine  = 40
	firstMark  = 770
	nextMark   = 130
)

// each holds what the characters of the other scripts cost, whose words have no part in it.
var each = [classes]int64{
	greek: 445, cyrillic: 350, hebrew: 445, arabic: 420, indic: 450, far: 250, symbol: 1000,
	kana: 700, han: 880, hangul: 810, wide: 700, emoji: 1850,
}

// text estimates the tokens of a text, in thousandths. Every further byte adds to them or adds nothing.
func text(s string) (cost int64) {
	before, run := newline, 0
	for i := range len(s) {
		c := classOf[s[i]]
		switch c {
		case continuation:
			continue
		case lower, accented, upper:
			inWord := before == lower || before == accented || before == upper || before == far
			switch {
			case inWord && c == upper && before != upper, !inWord: // camelCase is two words
				cost += word
				run = 1
			case c == upper:
				cost += capital
			default:
				if run++; run > shortWord {
					cost += longLetter
				}
			}
			if c == accented {
				cost += accent
			}
		case digit:
			if before != digit {
				run = 0
				if before == space {
					cost += spacedOut
				}
			}
			if run%3 == 0 {
				cost += number
			}
			run++
		case space:
			if before != space {
				run = 0
			}
			if run++; run == 2 {
				cost += gap
			}
		case newline:
			switch before {
			case newline:
				cost += emptyLine
			case mark:
				cost += softEnd
			default:
				cost += lineEnd
			}
		case mark:
			switch {
			case before == mark:
				cost += nextMark
			case s[i] != '\'' || before != lower && before != upper: // what's
				cost += firstMark
			}
		default:
			cost += each[c]
		}
		before = c
	}
	return cost
}
