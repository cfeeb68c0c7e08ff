package difflines

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff/lcs"
)

// Changed words are marked only in lines that were changed in a few places: many marks on one line do not help, nor do
// marks in lines that have little in common. The rules are those of delta, but for its limit of six tenths: a removed
// line is paired with the first added line, behind the pair before, of which at most a half is other words.
const (
	maxDistance = 0.5
	maxText     = 1000 // bytes of a line that is compared
	maxRun      = 40   // lines of a side that are compared with all of the other side
)

// markWords marks the words that differ between removed lines and the added ones in their place.
func markWords(lines []Line, removed, added []int) {
	old, new := tokensOf(lines, removed), tokensOf(lines, added)
	next := 0
	for i, r := range removed {
		last := len(added)
		if len(removed) > maxRun || len(added) > maxRun { // only the line at the same place
			if next = i; next >= len(added) {
				return
			}
			last = next + 1
		}
		for j := next; j < last; j++ {
			if goneWords, newWords, ok := compare(old[i], new[j]); ok {
				lines[r].change(old[i], goneWords)
				lines[added[j]].change(new[j], newWords)
				next = j + 1
				break
			}
		}
	}
}

// tokensOf returns the words of lines; nil for a line that is too long.
func tokensOf(lines []Line, at []int) [][]string {
	all := make([][]string, len(at))
	for i, x := range at {
		if len(lines[x].Text) <= maxText {
			all[i] = tokens(lines[x].Text)
		}
	}
	return all
}

// tokens splits a line into words, blanks and other characters.
func tokens(s string) (all []string) {
	class := func(r rune) int {
		switch {
		case unicode.Is(unicode.Han, r) || unicode.Is(unicode.Hiragana, r): // without blanks between words
			return 0
		case r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
			return 1
		case unicode.IsSpace(r):
			return 2
		}
		return 0
	}
	start, last := 0, 0
	for i, r := range s {
		c := class(r)
		if i > 0 && (c == 0 || c != last) {
			all = append(all, s[start:i])
			start = i
		}
		last = c
	}
	if start < len(s) {
		all = append(all, s[start:])
	}
	return all
}

// compare returns which words of each side the other one does not have. ok is false where the lines have too little in
// common.
func compare(old, new []string) (gone, come []bool, ok bool) {
	if len(old) == 0 || len(new) == 0 || !mayBeSimilar(old, new) {
		return nil, nil, false
	}
	gone, come = make([]bool, len(old)), make([]bool, len(new))
	for _, d := range lcs.DiffLines(old, new) {
		for i := d.Start; i < d.End; i++ {
			gone[i] = true
		}
		for i := d.ReplStart; i < d.ReplEnd; i++ {
			come[i] = true
		}
	}
	changed, all := weigh(old, gone)
	changedNew, _ := weigh(new, come)
	// What both have counts once.
	if float64(changed+changedNew) > maxDistance*float64(all+changedNew) {
		return nil, nil, false
	}
	return bridged(old, gone), bridged(new, come), true
}

// mayBeSimilar reports whether lines have enough words in common, in whatever order. It is quick, and most lines of a
// long run have not.
func mayBeSimilar(old, new []string) bool {
	counts := map[string]int{}
	all, common := 0, 0
	for _, w := range old {
		counts[w]++
		all += weight(w)
	}
	for _, w := range new {
		if counts[w] > 0 {
			counts[w]--
			common += weight(w)
		} else {
			all += weight(w)
		}
	}
	return float64(all-common) <= maxDistance*float64(all)
}

// weight is how much a word counts: its characters, and blanks nothing.
func weight(word string) int {
	if strings.TrimSpace(word) == "" {
		return 0
	}
	return utf8.RuneCountInString(word)
}

func weigh(words []string, changed []bool) (of, all int) {
	for i, w := range words {
		if all += weight(w); changed[i] {
			of += weight(w)
		}
	}
	return of, all
}

// bridged also marks the blanks between two changed words, but not those that indent the line: code that moves into a
// block has no changed words.
func bridged(words []string, changed []bool) []bool {
	if weight(words[0]) == 0 {
		changed[0] = false
	}
	for i := 1; i < len(words)-1; i++ {
		if changed[i-1] && changed[i+1] && weight(words[i]) == 0 {
			changed[i] = true
		}
	}
	return changed
}

// change marks words of the line, within the pieces of its code.
func (l *Line) change(words []string, changed []bool) {
	code := l.Spans
	if code == nil {
		code = []Span{{Len: len(l.Text)}}
	}
	var all []Span
	for i, w := range words {
		for n := len(w); n > 0; {
			part := min(n, code[0].Len)
			x := Span{Len: part, Code: code[0].Code, IsChanged: changed[i]}
			if last := len(all) - 1; last >= 0 && all[last].Code == x.Code && all[last].IsChanged == x.IsChanged {
				all[last].Len += part
			} else {
				all = append(all, x)
			}
			if n, code[0].Len = n-part, code[0].Len-part; code[0].Len == 0 {
				code = code[1:]
			}
		}
	}
	l.Spans = all
}
