package textmatch

import (
	"strings"
	"unicode/utf8"

	"muster/internal/editdist"
	"muster/internal/lazyregexp"
)

// A text is compared with another by its tokens: a break between two lines, which has the empty lines there and the
// indentation of the second line; blanks; a name or a number; or another character.
var token = lazyregexp.New(`\n(?:[ \t]*\n)*[ \t]*|[ \t]+|[\w.\x{80}-\x{10FFFF}]+|.`)

// lineEnd matches the blanks at the end of a line.
var lineEnd = lazyregexp.New(`(?m)[ \t]+$`)

// write returns the place of a match with the new text as it is to stand there: what the old and the new text of the
// quote have in common is as the file has it, and new lines are indented as those around them are in the file.
func (f *file) write(q quote, m match) (Place, error) {
	if q.isWithEnd {
		rest := strings.TrimLeft(f.source[m.end:], " \t\r")
		return Place{m.start, len(f.source) - len(strings.TrimPrefix(rest, "\n")), ""}, nil
	}
	oldText, newText := withASCII(q.old, q.new, f.source[m.start:m.end])
	if trimmed := lineEnd().ReplaceAllString(oldText, ""); trimmed != oldText {
		oldText, newText = trimmed, lineEnd().ReplaceAllString(newText, "")
	}
	oldIndent, newIndent := indentOf(oldText), indentOf(newText)
	x := indents{quoted: unitOf(oldText + "\n" + newText), file: f.unit}
	isClear := x.learn(oldIndent, indentOf(f.source[m.start:m.end]))
	old := token().FindAllString(oldText[len(oldIndent):], -1)
	have := f.tokens(oldText, old, m)
	for i, t := range old {
		if isBreak(t) {
			isClear = x.learn(lastLine(t), lastLine(have[i])) && isClear
		}
	}
	if !isClear {
		return Place{}, ErrIndent
	}
	var b strings.Builder
	if m.isFromStart && strings.TrimLeft(newText, "\n") == newText && newText != "" {
		indent, ok := x.inFile(newIndent)
		if !ok {
			return Place{}, ErrIndent
		}
		b.WriteString(indent)
	}
	newline := "\n"
	if isCRLFAt(f.source, m.start) {
		newline = "\r\n"
	}
	new := token().FindAllString(newText[len(newIndent):], -1)
	for n, k := range partners(old, new) {
		switch t := new[n]; {
		case k >= 0:
			b.WriteString(have[k])
		case !isBreak(t):
			b.WriteString(t)
		default:
			indent, ok := x.inFile(lastLine(t))
			if n == len(new)-1 { // only empty lines come
				indent, ok = "", true
			}
			if !ok || !m.isFromStart { // nothing tells how lines are indented that begin within a line
				return Place{}, ErrIndent
			}
			b.WriteString(strings.Repeat(newline, strings.Count(t, "\n")) + indent)
		}
	}
	return Place{m.start, m.end, b.String()}, nil
}

// isBreak reports whether a token is a break between lines.
func isBreak(token string) bool { return token[0] == '\n' }

// lastLine returns what comes after the last newline.
func lastLine(s string) string { return s[strings.LastIndexByte(s, '\n')+1:] }

// withASCII returns the texts with ASCII for the characters that the old one has and its place in the file has not.
func withASCII(old, new, place string) (string, string) {
	var pairs []string
	isDone := map[rune]bool{}
	for _, c := range old {
		if c >= utf8.RuneSelf && !isDone[c] && !strings.ContainsRune(place, c) {
			pairs = append(pairs, string(c), plain(c))
		}
		isDone[c] = true
	}
	replacer := strings.NewReplacer(pairs...)
	return replacer.Replace(old), replacer.Replace(new)
}

// tokens returns for each token of a quote, which are those after its indentation, its bytes in the file.
func (f *file) tokens(quoted string, all []string, m match) (have []string) {
	at := newForm(quoted).at
	offset, i, from := len(indentOf(quoted)), 0, f.at[m.at]
	for _, t := range all {
		offset += len(t)
		for i < len(at) && at[i] < offset {
			i++
		}
		to := m.end
		if i < len(at) {
			to = max(from, f.at[m.at+i])
		}
		have = append(have, f.source[from:to])
		from = to
	}
	return have
}

// maxCells limits the table with which common tokens are found between the common ends of two texts.
const maxCells = 1 << 20

// partners returns for each token of new the token of old that it repeats, or -1.
func partners(old, new []string) []int {
	partner := make([]int, len(new))
	head, tail := editdist.CommonEnds(old, new)
	for j := range partner {
		switch {
		case j < head:
			partner[j] = j
		case j >= len(new)-tail:
			partner[j] = j - len(new) + len(old)
		default:
			partner[j] = -1
		}
	}
	a, b := old[head:len(old)-tail], new[head:len(new)-tail]
	if len(a)*len(b) > maxCells {
		return partner
	}
	// common[i][j] is how many tokens a[i:] and b[j:] have in common, in the same order.
	common := make([][]int, len(a)+1)
	for i := range common {
		common[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			common[i][j] = max(common[i+1][j], common[i][j+1])
			if a[i] == b[j] {
				common[i][j] = 1 + common[i+1][j+1]
			}
		}
	}
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i] == b[j]:
			partner[head+j] = head + i
			i, j = i+1, j+1
		case common[i+1][j] >= common[i][j+1]:
			i++
		default:
			j++
		}
	}
	return partner
}
