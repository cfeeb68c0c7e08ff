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
	// A quote with an indentation that is that of the file goes on in it.
	if indent, ok := x.byRule(quoted, 0); ok && x.isSameAsFile() {
		return indent, true
	}
	widths := []int{0, 1, 2, 3, 4, 8}
	if slices.Contains(widths[1:], x.step) {
		if indent, ok := x.byRule(quoted, x.step); ok && x.isWhole(indent) {
			return indent, true
		}
	}
	// All rules that explain the lines of the quote must say the same. Those that lead to whole units go before others.
	for _, isWhole := range []bool{true, false} {
		var answers []string
		for _, width := range widths {
			isPart := width > 0 && x.step > 0 && (x.step%width != 0 || x.step > 1 && width == 1) // of a step
			indent, ok := x.byRule(quoted, width)
			if ok && !isPart && x.isWhole(indent) == isWhole && !slices.Contains(answers, indent) {
				answers = append(answers, indent)
			}
		}
		if len(answers) > 0 {
			return answers[0], len(answers) == 1
		}
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
	first, ok := x.convert(x.pairs[0][0], width)
	more, isMore := strings.CutSuffix(x.pairs[0][1], first) // that the file has in front
	less, isLess := strings.CutSuffix(first, x.pairs[0][1]) // that the quote has in front
	switch {
	case !ok || !isMore && !isLess:
		return "", false
	case isMore:
		less = ""
	default:
		more = ""
	}
	inFile := func(quoted string) (string, bool) {
		q, ok := x.convert(quoted, width)
		rest, isIn := strings.CutPrefix(q, less)
		return more + rest, ok && isIn
	}
	for _, p := range x.pairs {
		if indent, ok := inFile(p[0]); !ok || indent != p[1] {
			return "", false
		}
	}
	return inFile(quoted)
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
