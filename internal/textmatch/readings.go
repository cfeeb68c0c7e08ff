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

// readings returns what a model may have meant, the plain meaning first. What was wrapped around the quote was wrapped
// around the new text too. So both are unwrapped alike, and a reading is left out if it is not clear how to unwrap the
// new text.
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

// withoutFence removes the code fences around the texts.
func withoutFence(old, new string) (reading, bool) {
	o, ok := cutFence(old)
	n, isFenced := cutFence(new)
	if !isFenced && strings.Contains(new, "```") {
		return reading{}, false
	}
	return reading{old: o, new: n, isWhole: true}, ok
}

// cutFence removes the code fence around a text.
func cutFence(s string) (string, bool) {
	head, rest, ok := strings.Cut(strings.TrimSpace(s), "\n")
	if !ok || !strings.HasPrefix(head, "```") || strings.Contains(head[3:], "`") {
		return s, false
	}
	rest, ok = strings.CutSuffix(rest, "```")
	if !ok || strings.Contains(rest, "```") {
		return s, false
	}
	if !strings.HasSuffix(s, "\n") {
		rest = strings.TrimSuffix(rest, "\n")
	}
	return rest, true
}

// numbered matches a line of a listing: a number, a separator, the text.
var numbered = lazyregexp.New(`^ *L?(\d+)(\t|→|: ?| ?[|│] ?|$)`)

// withoutNumbers removes the line numbers of a listing. Each line of the old text must have one, and they must rise by
// one. The new text has one in each line, or in none; or, where a tab or an arrow shows what is a number, in some. A
// single line with another separator may as well be an entry of a list, so it must be the line of that number.
func withoutNumbers(old, new string) (reading, bool) {
	old, new = strings.ReplaceAll(old, "\r\n", "\n"), strings.ReplaceAll(new, "\r\n", "\n")
	o, numbers, isPlain := cutNumbers(old)
	if len(numbers) == 0 || len(numbers) != lineCount(old) {
		return reading{}, false
	}
	for i, n := range numbers {
		if n != numbers[0]+i {
			return reading{}, false
		}
	}
	n, others, isNewPlain := cutNumbers(new)
	if len(others) != 0 && len(others) != lineCount(new) && !(isPlain && isNewPlain) {
		return reading{}, false
	}
	r := reading{old: o, new: n, isWhole: true}
	if len(numbers) == 1 && !isPlain {
		r.line = numbers[0]
	}
	return r, true
}

// lineCount returns the number of lines, without an empty one at the end.
func lineCount(s string) int { return strings.Count(strings.TrimSuffix(s, "\n"), "\n") + 1 }

// cutNumbers removes the number of each line that has one, and returns the numbers. isPlain says that a tab or an arrow
// follows each.
func cutNumbers(s string) (bare string, numbers []int, isPlain bool) {
	var b strings.Builder
	isPlain = true
	for line := range strings.Lines(s) {
		line, isEnded := strings.CutSuffix(line, "\n")
		if at := numbered().FindStringSubmatch(line); at != nil {
			if n, err := strconv.Atoi(at[1]); err == nil {
				numbers = append(numbers, n)
				isPlain = isPlain && (at[2] == "\t" || at[2] == "→" || at[2] == "")
				line = line[len(at[0]):]
			}
		}
		b.WriteString(line)
		if isEnded {
			b.WriteByte('\n')
		}
	}
	return b.String(), numbers, isPlain
}

// unescape undoes one level of the escapes of a JSON string in texts that were escaped once too often. Such a text has
// no newline of its own, or each of its quotation marks has a backslash.
func unescape(old, new string) (reading, bool) {
	o, ok := unescapeText(old)
	if !ok {
		return reading{}, false
	}
	if !strings.Contains(new, `\`) && (!hasBareQuote(new) || hasBareQuote(old)) {
		return reading{old: o, new: new}, true
	}
	n, ok := unescapeText(new)
	return reading{old: o, new: n}, ok
}

// hasBareQuote reports whether s has a quotation mark without a backslash.
func hasBareQuote(s string) bool {
	return strings.Count(s, `"`) > strings.Count(s, `\"`)
}

// unescapeText undoes one level of the escapes of a text, if it is plain that all of it is escaped.
func unescapeText(s string) (string, bool) {
	if hasBareQuote(s) && strings.Contains(s, `\"`) {
		return s, false
	}
	isOneLine := !strings.Contains(strings.TrimRight(s, "\n"), "\n")
	if !strings.Contains(s, `\`) || !isOneLine && (hasBareQuote(s) || !strings.Contains(s, `\"`)) {
		return s, false
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case 'n':
			b.WriteByte('\n')
		case 't':
			b.WriteByte('\t')
		case 'r':
			b.WriteByte('\r')
		case '"', '\'', '\\', '/', '`', '$':
			b.WriteByte(s[i])
		default:
			return s, false // no escape of JSON: the backslash is meant
		}
	}
	return b.String(), true
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
