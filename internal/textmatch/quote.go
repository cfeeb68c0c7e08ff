package textmatch

import (
	"slices"
	"strings"
)

// quote is a reading, line by line.
type quote struct {
	reading
	// isFromStart and isToEnd say that the quote begins or ends with a line, and isWithEnd that the end of the last
	// line goes too.
	isFromStart, isToEnd, isWithEnd bool
	oldLines, newLines              []string
	forms                           []string // of the old lines
	same                            []int    // for each new line, the line of the quote that it repeats, or -1
	instead                         []int    // for each other one, the line in whose place it is, or -1
}

// newQuote takes off the empty lines that both texts have at their ends: they are no part of what is meant.
func newQuote(r reading) quote {
	q := quote{reading: r}
	q.old, q.new = strings.ReplaceAll(r.old, "\r\n", "\n"), strings.ReplaceAll(r.new, "\r\n", "\n")
	for strings.HasPrefix(q.old, "\n") && strings.HasPrefix(q.new, "\n") {
		q.old, q.new, q.isFromStart = q.old[1:], q.new[1:], true
	}
	for strings.HasSuffix(q.old, "\n") && strings.HasSuffix(q.new, "\n") {
		q.old, q.new, q.isToEnd = q.old[:len(q.old)-1], q.new[:len(q.new)-1], true
	}
	// One newline more in the quote joins two lines only where the quote is exact. With nothing in its place, the line
	// goes.
	if old, ok := strings.CutSuffix(q.old, "\n"); ok && !strings.HasSuffix(old, "\n") {
		q.old, q.isToEnd, q.isWithEnd = old, true, q.new == ""
	}
	q.oldLines, q.newLines = strings.Split(q.old, "\n"), strings.Split(q.new, "\n")
	for _, lines := range [][]string{q.oldLines, q.newLines} {
		for i, line := range lines {
			lines[i] = withSpaces(line)
		}
	}
	q.isFromStart = q.isFromStart || indentOf(q.oldLines[0]) != ""
	q.compare()
	return q
}

// withSpaces makes each blank that a line begins with a space, apart from tabs.
func withSpaces(line string) string {
	body := strings.TrimLeftFunc(line, isBlank)
	indent := strings.Map(func(r rune) rune {
		if r == '\t' {
			return r
		}
		return ' '
	}, line[:len(line)-len(body)])
	return indent + body
}

// compare compares the lines of the quote with those of the new text.
func (q *quote) compare() {
	q.forms = nil
	for _, line := range q.oldLines {
		q.forms = append(q.forms, newForm(line).text)
	}
	q.same = repeated(q.oldLines, q.newLines)
	q.instead = replaced(len(q.oldLines), q.same)
}

// put returns the place of a match.
func (f *file) put(q quote, m match) (Place, error) {
	lines := strings.Split(strings.ReplaceAll(f.text[m.start:m.end], "\r\n", "\n"), "\n")
	w := writer{quote: q, file: lines, isFromStart: m.start == f.lines[m.line].start,
		indents: &indents{unit: f.unit, step: stepOf(q.oldLines, q.newLines), known: map[string]string{},
			two: map[string]bool{}}, chars: chars{}}
	end := m.end
	if q.isWithEnd && end == f.lines[m.line+len(q.oldLines)-1].end {
		end += len(f.text[end:]) - len(strings.TrimPrefix(strings.TrimPrefix(f.text[end:], "\r"), "\n"))
		if w.isFromStart {
			return Place{m.start, end, ""}, nil
		}
	}
	for i, line := range q.oldLines {
		if i > 0 || w.isFromStart {
			w.indents.learn(line, w.file[i])
		}
		w.chars.learn(cellsOf(line, w.file[i]))
	}
	eol := "\n"
	if isCRLFAt(f.text, m.start) {
		eol = "\r\n"
	}
	var b strings.Builder
	for i, line := range q.newLines {
		if i > 0 {
			b.WriteString(eol)
		}
		text, err := w.line(i, line)
		if err != nil {
			return Place{}, err
		}
		b.WriteString(text)
	}
	return Place{m.start, end, b.String()}, nil
}

// writer writes the new text of a quote at a place.
type writer struct {
	quote
	file        []string // the lines of the quote as the file has them
	isFromStart bool     // the place begins with its line
	indents     *indents
	chars       chars
}

// line returns new line i as it stands in the file: what it has in common with the quote as the file has it, and the
// rest with the indentation of the file.
func (w *writer) line(i int, line string) (string, error) {
	at, body := w.same[i], strings.TrimLeft(line, " \t")
	isMoved := !w.isFromStart && (at == 0) != (i == 0)
	switch {
	case at >= 0 && !isMoved && indentOf(line) == indentOf(w.oldLines[at]):
		return w.file[at], nil
	case body == "":
		return "", nil
	case at >= 0:
		body = strings.TrimLeft(w.file[at], " \t")
	case w.instead[i] >= 0:
		at := w.instead[i]
		body = w.chars.blend(cellsOf(w.oldLines[at], w.file[at]), body)
	default:
		body = w.chars.translate(body)
	}
	if !w.isFromStart {
		// Nothing tells how the lines of a quote from within a line are indented.
		if i > 0 {
			return "", ErrIndent
		}
		return body, nil
	}
	indent, ok := w.indents.inFile(indentOf(line))
	if !ok {
		return "", ErrIndent
	}
	return indent + body, nil
}

// indentOf returns the blanks that a line begins with.
func indentOf(line string) string { return line[:len(line)-len(strings.TrimLeft(line, " \t"))] }

// maxCompared is how many lines of a quote and its new text are compared, multiplied.
const maxCompared = 4 << 20

// repeated returns for each line of new which line of old it repeats, in the same order as in old, or -1. It finds the
// most that is possible. The blanks at both ends of a line do not count.
func repeated(old, new []string) []int {
	same := slices.Repeat([]int{-1}, len(new))
	if len(old)*len(new) > maxCompared {
		return same
	}
	// longest[i][j] is the length of the longest common sequence of old[i:] and new[j:].
	longest := make([][]int, len(old)+1)
	longest[len(old)] = make([]int, len(new)+1)
	isSame := func(a, b string) bool { return strings.TrimSpace(a) == strings.TrimSpace(b) }
	for i := len(old) - 1; i >= 0; i-- {
		longest[i] = make([]int, len(new)+1)
		for j := len(new) - 1; j >= 0; j-- {
			longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			if isSame(old[i], new[j]) {
				longest[i][j] = max(longest[i][j], longest[i+1][j+1]+1)
			}
		}
	}
	for i, j := 0, 0; i < len(old) && j < len(new); {
		switch {
		case isSame(old[i], new[j]):
			same[j] = i
			i, j = i+1, j+1
		case longest[i+1][j] >= longest[i][j+1]:
			i++
		default:
			j++
		}
	}
	return same
}

// replaced returns for each new line that repeats none in whose place it is, or -1. It is told only where as many lines
// take the place of others.
func replaced(old int, same []int) []int {
	instead := slices.Repeat([]int{-1}, len(same))
	from, at := 0, 0 // the new line and the old line behind the last repeated one
	for j := range len(same) + 1 {
		next := old
		switch {
		case j < len(same) && same[j] < 0:
			continue
		case j < len(same):
			next = same[j]
		}
		if j-from == next-at {
			for k := range j - from {
				instead[from+k] = at + k
			}
		}
		from, at = j+1, next+1
	}
	return instead
}
