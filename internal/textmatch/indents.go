package textmatch

import (
	"slices"
	"strings"
)

// indents says how an indentation of the quote stands in the file. It learns from the lines of the quote.
type indents struct {
	unit  string            // of the file: a tab, or some spaces; "" where it cannot be told
	step  int               // of the quote: the number of spaces by which its lines grow, 1 for a tab, or 0
	known map[string]string // of lines of the quote; ambiguous ones are those with two
	pairs [][2]string
	two   map[string]bool // indentations that stand for two in the file
}

// newIndents returns the indents of a quote in a file with this unit.
func newIndents(unit string, q quote) *indents {
	step := stepOf(q.oldLines, q.newLines)
	return &indents{unit: unit, step: step, known: map[string]string{}, two: map[string]bool{}}
}

// stepOf returns the largest step in which all lines of both texts are indented: 1 for a tab, a number of spaces, or 0
// if it cannot be told.
func stepOf(texts ...[]string) (step int) {
	first, tabs, spaces := -1, 0, 0
	for _, line := range slices.Concat(texts...) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		indent := indentOf(line)
		tabs, spaces = tabs+strings.Count(indent, "\t"), spaces+strings.Count(indent, " ")
		if first < 0 {
			first = len(indent)
		}
		step = greatestDivisor(step, max(len(indent)-first, first-len(indent)))
	}
	switch {
	case tabs > 0 && spaces > 0:
		return 0
	case tabs > 0:
		return 1
	case step == 1:
		return 0
	}
	return step
}

// greatestDivisor returns the greatest common divisor of a and b. That of 0 and another number is the other.
func greatestDivisor(a, b int) int {
	for b > 0 {
		a, b = b, a%b
	}
	return a
}

// learn learns from a line of the quote and from the same one of the file.
func (x *indents) learn(quoted, file string) {
	if strings.TrimSpace(quoted) == "" {
		return
	}
	q, f := indentOf(quoted), indentOf(file)
	if was, ok := x.known[q]; ok && was != f {
		x.two[q] = true
	} else if !ok {
		x.pairs = append(x.pairs, [2]string{q, f})
	}
	x.known[q] = f
}

// inFile returns what an indentation of the quote is in the file. ok is false where it cannot be told.
func (x *indents) inFile(quoted string) (indent string, ok bool) {
	if x.two[quoted] {
		return "", false
	}
	if indent, ok := x.known[quoted]; ok {
		return indent, true
	}
	asIs, isAsIs := x.byRule(quoted, 0)
	// A quote with an indentation that is that of the file goes on in it.
	if isAsIs && x.isSameAsFile() {
		return asIs, true
	}
	// All rules that explain the lines of the quote must say the same, or the step of the quote tells which is right.
	answers := map[string]bool{}
	if isAsIs {
		answers[asIs] = true
	}
	for _, width := range []int{1, 2, 3, 4, 8} {
		if x.step > 0 && (x.step%width != 0 || x.step > 1 && width == 1) {
			continue
		}
		indent, ok := x.byRule(quoted, width)
		if ok && width == x.step && x.isWhole(indent) {
			return indent, true
		}
		if ok {
			answers[indent] = true
		}
	}
	if len(answers) > 1 {
		for indent := range answers {
			if !x.isWhole(indent) {
				delete(answers, indent)
			}
		}
	}
	for indent := range answers {
		return indent, len(answers) == 1
	}
	return "", false
}

// isSameAsFile reports whether the lines of the quote are indented as they are in the file, and one is at all.
func (x *indents) isSameAsFile() bool {
	isIndented := false
	for _, p := range x.pairs {
		if p[0] != p[1] {
			return false
		}
		isIndented = isIndented || p[0] != ""
	}
	return isIndented
}

// byRule returns what an indentation is in the file by one rule, if that explains all lines of the quote. The rule of
// width 0 is that both have the same units. By another, that many columns of the quote, or for 1 a tab, are one unit of
// the file. In both, all lines may be deeper in the file by the same, or in the quote.
func (x *indents) byRule(quoted string, width int) (string, bool) {
	if width > 0 && x.unit == "" {
		return "", false
	}
	if len(x.pairs) == 0 {
		return quoted, width == 0
	}
	var more, less string // that the file, or the quote, has in front
	for i, p := range x.pairs {
		q, ok := x.convert(p[0], width)
		if !ok {
			return "", false
		}
		m, isMore := strings.CutSuffix(p[1], q)
		l, isLess := strings.CutSuffix(q, p[1])
		if !isMore {
			m = ""
		}
		if !isLess {
			l = ""
		}
		if !isMore && !isLess || i > 0 && (m != more || l != less) {
			return "", false
		}
		more, less = m, l
	}
	q, ok := x.convert(quoted, width)
	if !ok || !strings.HasPrefix(q, less) {
		return "", false
	}
	return more + strings.TrimPrefix(q, less), true
}

// convert returns an indentation in the units of the file.
func (x *indents) convert(quoted string, width int) (string, bool) {
	unit := " "
	switch width {
	case 0:
		return quoted, true
	case 1:
		unit = "\t"
	}
	n := strings.Count(quoted, unit)
	if n != len(quoted) || n%width != 0 {
		return "", false
	}
	return strings.Repeat(x.unit, n/width), true
}

// isWhole reports whether an indentation is made of whole units of the file.
func (x *indents) isWhole(indent string) bool {
	return x.unit != "" && strings.Repeat(x.unit, len(indent)/len(x.unit)) == indent
}

// unitOf returns the indentation by which the lines of a text most often grow: a tab, or 2, 3, 4 or 8 spaces.
func unitOf(text string) string {
	counts := map[string]int{}
	last := ""
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		indent := indentOf(line)
		if step, ok := strings.CutPrefix(indent, last); ok && step != "" {
			if strings.Trim(step, "\t") == "" {
				step = "\t" // two tabs are two units
			}
			counts[step]++
		}
		last = indent
	}
	unit := ""
	for _, step := range []string{"\t", "    ", "  ", "        ", "   "} {
		if counts[step] > counts[unit] {
			unit = step
		}
	}
	return unit
}
