package textmatch

import (
	"strconv"
	"strings"

	"muster/internal/lazyregexp"
)

// A reading is what a model may have meant by a quote and the text in its place.
type reading struct {
	old, new string
	isWhole  bool // the quote is of whole lines
	line     int  // the number of the only line that is meant, or 0
}

// readings returns what a model may have meant, the plain meaning first. What was put around the quote was put around
// the new text too. So both are unwrapped alike, and a reading is left out if it is not clear how to unwrap the new
// text.
func readings(old, new string) []reading {
	all := []reading{{old: old, new: new}}
	for _, unwrap := range []func(old, new string) (reading, bool){
		withoutFence, withoutNumbers, unescape, withoutEntities,
	} {
		if r, ok := unwrap(old, new); ok && strings.TrimSpace(r.old) != "" {
			all = append(all, r)
		}
	}
	return all
}

// fence matches a text in a code fence.
var fence = lazyregexp.New("^\\s*```[^`\n]*\n((?s:.*?))\n?```(\n?)\\s*$")

// withoutFence removes the code fences around the texts.
func withoutFence(old, new string) (reading, bool) {
	o := fence().FindStringSubmatch(old)
	if o == nil || strings.Contains(o[1], "```") {
		return reading{}, false
	}
	n := fence().FindStringSubmatch(new)
	if n == nil {
		n = []string{"", new, ""}
	}
	return reading{old: o[1] + o[2], new: n[1] + n[2], isWhole: true}, !strings.Contains(n[1], "```")
}

// numbered matches the number of a line of a listing with what separates it from the text.
var numbered = lazyregexp.New(`^ *L?(\d{1,7})(\t|→|: ?| ?[|│] ?|$)`)

// listing is a text in which lines may begin with their numbers.
type listing struct {
	text    string // without the numbers
	lines   int
	numbers []int
	isClear bool // a tab or an arrow follows each number
}

// withoutNumbers removes the line numbers of a listing. Each line of the old text must have one, and they must rise by
// one. The new text has one in each line, or in none; or, where a tab or an arrow shows what is a number, in some. A
// single line with another separator may as well be an entry of a list, so it must be the line of that number.
func withoutNumbers(old, new string) (reading, bool) {
	o, n := newListing(old), newListing(new)
	r := reading{old: o.text, new: n.text, isWhole: true}
	for i, number := range o.numbers {
		if number != o.numbers[0]+i {
			return r, false
		}
	}
	if len(o.numbers) == 1 && !o.isClear {
		r.line = o.numbers[0]
	}
	isAll := func(l listing) bool { return len(l.numbers) == l.lines }
	return r, isAll(o) && (isAll(n) || len(n.numbers) == 0 || o.isClear && n.isClear)
}

// newListing takes the numbers of the lines off a text.
func newListing(s string) listing {
	l := listing{isClear: true}
	var b strings.Builder
	for line := range strings.Lines(toLF(s)) {
		l.lines++
		if m := numbered().FindStringSubmatch(strings.TrimSuffix(line, "\n")); m != nil {
			number, _ := strconv.Atoi(m[1]) // it has only digits
			l.numbers = append(l.numbers, number)
			l.isClear = l.isClear && (m[2] == "\t" || m[2] == "→" || m[2] == "")
			line = line[len(m[0]):]
		}
		b.WriteString(line)
	}
	l.text = b.String()
	return l
}

// escapes are those of a string of JSON or JavaScript. escaped matches a text that has no other backslash.
var (
	escapes = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t", `\r`, "\r", `\"`, `"`, `\'`, `'`, `\/`, "/",
		"\\`", "`", `\$`, "$")
	escaped = lazyregexp.New("^(?:[^\\\\]|\\\\[\\\\ntr\"'/`$])*$")
)

// unescape undoes one level of escapes in texts that were escaped once too often.
func unescape(old, new string) (reading, bool) {
	r := reading{old: escapes.Replace(old), new: new}
	// A new text without any backslash is meant as it is, unless it has quotation marks and the old one escapes them.
	if strings.Contains(new, `\`) || hasBareQuote(new) && !hasBareQuote(old) {
		r.new = escapes.Replace(new)
		return r, isEscaped(old) && isEscaped(new)
	}
	return r, isEscaped(old)
}

// hasBareQuote reports whether s has a quotation mark without a backslash.
func hasBareQuote(s string) bool {
	return strings.Count(s, `"`) > strings.Count(s, `\"`)
}

// isEscaped reports whether all of a text is escaped: it has no newline of its own, or each of its quotation marks has
// a backslash.
func isEscaped(s string) bool {
	hasEscapedQuote, isOneLine := strings.Contains(s, `\"`), !strings.Contains(strings.TrimRight(s, "\n"), "\n")
	return strings.Contains(s, `\`) && escaped().MatchString(s) && !(hasBareQuote(s) && hasEscapedQuote) &&
		(isOneLine || hasEscapedQuote)
}

// entities are those that a text gets that was written into HTML or XML.
var entities = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&", "&quot;", `"`, "&#39;", "'", "&#x27;", "'",
	"&apos;", "'")

// withoutEntities replaces the entities in both texts. One with entities and with what they stand for is not clear.
func withoutEntities(old, new string) (reading, bool) {
	r := reading{old: entities.Replace(old), new: entities.Replace(new)}
	isMixed := func(s, plain string) bool { return s != plain && strings.ContainsAny(s, "<>") }
	return r, r.old != old && !isMixed(old, r.old) && !isMixed(new, r.new)
}
