package textmatch

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// form is a text in the form in which texts are compared: look-alikes as ASCII, each run of blanks in a line as one
// space, and no blanks at both ends.
type form struct {
	text string
	at   []int // the byte of the original at which each byte of text begins, and its length at the end
}

// newForm returns the form of a line.
func newForm(s string) form {
	f := form{at: make([]int, 0, len(s)+1)}
	var b strings.Builder
	put := func(t string, at int) {
		b.WriteString(t)
		for range len(t) {
			f.at = append(f.at, at)
		}
	}
	blank := -1 // where the run of blanks begins that comes before this character
	for i, r := range s {
		switch {
		case isBlank(r):
			if blank < 0 {
				blank = i
			}
			continue
		case isInvisible(r):
			continue
		}
		if blank >= 0 && b.Len() > 0 {
			put(" ", blank)
		}
		blank = -1
		if t := lookAlikes[r]; t != "" {
			put(t, i)
		} else if r == utf8.RuneError {
			put(s[i:i+1], i) // a byte that is not UTF-8 stays itself
		} else {
			put(string(r), i)
		}
	}
	f.at = append(f.at, len(s))
	f.text = b.String()
	return f
}

// isBlank reports whether r is a space of any width or a tab. A carriage return counts, because it ends a line.
func isBlank(r rune) bool { return r == '\t' || r == '\r' || unicode.Is(unicode.Zs, r) }

// isInvisible reports whether r has no width.
func isInvisible(r rune) bool {
	return r >= '\u200b' && r <= '\u200d' || r == '\u2060' || r == '\ufeff' || r == '\u00ad'
}

// lookAlikes are characters that models write for others.
var lookAlikes = map[rune]string{
	'\u2018': "'", '\u2019': "'", '\u201a': "'", '\u201b': "'", '\u2032': "'", '\u00b4': "'",
	'\u201c': `"`, '\u201d': `"`, '\u201e': `"`, '\u201f': `"`, '\u2033': `"`, '\u00ab': `"`, '\u00bb': `"`,
	'\u2010': "-", '\u2011': "-", '\u2012': "-", '\u2013': "-", '\u2014': "-", '\u2015': "-", '\u2212': "-",
	'\u2026': "...",
}

// file is a text with its lines.
type file struct {
	text  string
	lines []fileLine
	unit  string // of indentation: a tab, or some spaces; "" where it cannot be told
}

// fileLine is a line of a file: its bytes without the end, and its form.
type fileLine struct {
	start, end int
	form       string
}

// hasForm reports whether the line has a form.
func (l fileLine) hasForm(form string) bool { return l.form == form }

// newFile takes a text apart.
func newFile(text string) *file {
	f := &file{text: text, unit: unitOf(text)}
	at := 0
	for line := range strings.Lines(text) {
		body := strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
		f.lines = append(f.lines, fileLine{at, at + len(body), newForm(body).text})
		at += len(line)
	}
	return f
}

// match is a place that is the same as a quote in its form. The bytes start and end are within its first and its last
// line.
type match struct{ line, start, end int }

// similar finds the places that are the same as the quote in their form. Of several, what stands there then is only
// told if all are to be changed.
func (f *file) similar(r reading, all bool) (places []Place, err error) {
	q := newQuote(r)
	var found []match
	switch {
	case strings.Join(q.forms, "") == "":
		return nil, nil
	case len(q.forms) == 1:
		found = f.findInLines(q)
	default:
		if found = f.findLines(q, all); len(found) == 0 && !all {
			q, found = f.findApart(q)
		}
	}
	// Lines that are the same to the last blank are meant where others are only similar.
	if len(found) > 1 {
		var same []match
		for _, m := range found {
			if strings.ReplaceAll(f.text[m.start:m.end], "\r\n", "\n") == strings.Join(q.oldLines, "\n") {
				same = append(same, m)
			}
		}
		if len(same) == 1 && !all {
			found = same
		}
	}
	for _, m := range found {
		p := Place{Start: m.start, End: m.end}
		if len(found) == 1 || all {
			if p, err = f.put(q, m); err != nil {
				return nil, err
			}
		}
		places = append(places, p)
	}
	return places, nil
}

// findLines finds a quote of several lines, each of which must be a whole line of the file.
func (f *file) findLines(q quote, all bool) (found []match) {
	n := len(q.forms)
	for at := 0; at+n <= len(f.lines) && len(found) <= MaxPlaces; at++ {
		if !slices.EqualFunc(f.lines[at:at+n], q.forms, fileLine.hasForm) {
			continue
		}
		found = append(found, match{at, f.lines[at].start, f.lines[at+n-1].end})
		if all {
			at += n - 1
		}
	}
	return found
}

// findInLines finds a quote of one line in the lines of the file.
func (f *file) findInLines(q quote) (found []match) {
	want := q.forms[0]
	for i, line := range f.lines {
		if len(found) > MaxPlaces || q.line != 0 && q.line != i+1 || !strings.Contains(line.form, want) {
			continue
		}
		if line.form == want {
			found = append(found, match{i, line.start, line.end})
			continue
		}
		have := newForm(f.text[line.start:line.end])
		for from := 0; !q.isWhole; {
			at := strings.Index(have.text[from:], want)
			if at < 0 {
				break
			}
			at += from
			from = at + 1
			end := at + len(want)
			if have.isCut(at) || have.isCut(end) || q.isFromStart && at > 0 || q.isToEnd && end < len(have.text) {
				continue
			}
			// The blanks before the first character belong to the place, as they do if the whole line is quoted.
			m := match{i, line.start + have.at[at], line.start + have.endOf(f.text[line.start:line.end], end)}
			if at == 0 {
				m.start = line.start
			}
			found = append(found, m)
			from = end
		}
	}
	return found
}

// isCut reports whether byte i of the form parts a character of the original, a word, a number, or an operator.
func (f form) isCut(i int) bool {
	if i == 0 || i == len(f.text) {
		return false
	}
	a, b := f.text[i-1], f.text[i]
	isOperator := func(b byte) bool { return strings.IndexByte("=<>!&|+-*/%^~:?", b) >= 0 }
	return f.at[i] == f.at[i-1] || isWord(a) && isWord(b) || isOperator(a) && isOperator(b) ||
		(a == '.' || b == '.') && (isWord(a) || isWord(b)) || a == '-' && b >= '0' && b <= '9'
}

// isWord reports whether a byte is a part of names.
func isWord(b byte) bool {
	return b == '_' || b >= '0' && b <= '9' || b|0x20 >= 'a' && b|0x20 <= 'z' || b >= utf8.RuneSelf
}

// endOf returns the byte of the original behind the character before byte i of the form.
func (f form) endOf(s string, i int) int {
	_, size := utf8.DecodeRuneInString(s[f.at[i-1]:])
	return f.at[i-1] + size
}

// findApart finds a quote that differs from lines of the file also in empty lines between them. The quote that is
// returned has the empty lines of the file. It is found at one place only, and needs two lines that say something.
func (f *file) findApart(q quote) (quote, []match) {
	want := slices.DeleteFunc(slices.Clone(q.forms), func(form string) bool { return form == "" })
	var have []int // the lines of the file that are not empty
	for i, line := range f.lines {
		if line.form != "" {
			have = append(have, i)
		}
	}
	isSame := func(line int, form string) bool { return f.lines[line].form == form }
	var found []match
	for i := 0; len(want) > 1 && i+len(want) <= len(have) && len(found) < 2; i++ {
		if slices.EqualFunc(have[i:i+len(want)], want, isSame) {
			last := have[i+len(want)-1]
			found = append(found, match{have[i], f.lines[have[i]].start, f.lines[last].end})
			if len(found) == 1 {
				q = q.withLinesOf(f.lines[have[i] : last+1])
			}
		}
	}
	return q, found
}

// withLinesOf returns the quote with the empty lines that lines have, in both texts.
func (q quote) withLinesOf(lines []fileLine) quote {
	var old []string
	drop, insert := map[int]bool{}, map[int]int{} // old lines to drop, and how many to insert before an old line
	k := 0
	for i, form := range q.forms {
		switch {
		case form == "" && (k == 0 || k >= len(lines) || lines[k].form != ""):
			drop[i] = true
			continue
		case form != "":
			for ; k < len(lines) && lines[k].form == ""; k++ {
				insert[i]++
				old = append(old, "")
			}
		}
		old = append(old, q.oldLines[i])
		k++
	}
	var new []string
	for j, line := range q.newLines {
		at := q.same[j]
		// An empty line stays where it is as long as one of its neighbours does.
		if at >= 0 && drop[at] {
			continue
		}
		if at >= 0 && (j > 0 || at == 0) {
			new = append(new, slices.Repeat([]string{""}, insert[at])...)
		}
		new = append(new, line)
		if next := at + 1; at >= 0 && insert[next] > 0 && (j+1 == len(q.newLines) || q.same[j+1] != next) &&
			!slices.Contains(q.same, next) {
			new = append(new, slices.Repeat([]string{""}, insert[next])...)
		}
	}
	q.oldLines, q.newLines = old, new
	q.compare()
	return q
}
