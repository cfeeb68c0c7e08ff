package textmatch

import "strings"

// indents tells how an indentation of a quote stands in the file. It learns that from the lines of the quote.
type indents struct {
	pairs        []indentPair // of the lines of the quote, each once
	quoted, file string       // by what an indentation grows in general; "" where that cannot be told
}

// indentPair is the indentation of a line.
type indentPair struct{ quoted, file string }

// learn takes the indentation of a line. It reports whether the file has the same for all lines of that indentation.
func (x *indents) learn(quoted, file string) bool {
	for _, p := range x.pairs {
		if p.quoted == quoted {
			return p.file == file
		}
	}
	x.pairs = append(x.pairs, indentPair{quoted, file})
	return true
}

// inFile returns what an indentation of the quote is in the file. One that no line of the quote has is as much deeper
// than the others as the lines of the quote differ there; if these have one depth, a unit of the quote is a unit of the
// file. ok is false where that cannot be told.
func (x indents) inFile(quoted string) (indent string, ok bool) {
	first, run, rise := x.pairs[0], len(x.quoted), len(x.file)
	isSame, inQuote, inFile := true, quoted, ""
	for _, p := range x.pairs {
		if p.quoted == quoted {
			return p.file, true
		}
		isSame, inQuote, inFile = isSame && p.quoted == p.file, inQuote+p.quoted, inFile+p.file
	}
	if isSame && (inFile != "" || x.file == "") {
		return quoted, true
	}
	if len(x.pairs) > 1 {
		run, rise = len(x.pairs[1].quoted)-len(first.quoted), len(x.pairs[1].file)-len(first.file)
	}
	inFile += x.file
	isMixed := func(s string) bool { return strings.Contains(s, " ") && strings.Contains(s, "\t") }
	if run*rise <= 0 || isMixed(inQuote) || isMixed(inFile) {
		return "", false
	}
	for _, p := range append(x.pairs, indentPair{quoted: quoted}) {
		more := (len(p.quoted) - len(first.quoted)) * rise
		n := len(first.file) + more/run
		if more%run != 0 || n < 0 || p.quoted != quoted && n != len(p.file) {
			return "", false
		}
		indent = strings.Repeat(inFile[:1], n)
	}
	return indent, true
}

// unitOf returns by what the indentation of lines most often grows or shrinks: a tab, or 2, 3, 4 or 8 spaces.
func unitOf(text string) (unit string) {
	counts := map[string]int{}
	last, isFirst := "", true
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		indent := indentOf(line)
		step, ok := strings.CutPrefix(indent, last)
		if !ok {
			step, ok = strings.CutPrefix(last, indent)
		}
		if strings.HasPrefix(step, "\t") {
			step = "\t" // two tabs are two units
		}
		if ok && !isFirst {
			counts[step]++
		}
		last, isFirst = indent, false
	}
	best := 0
	for _, step := range []string{"\t", "    ", "  ", "        ", "   "} {
		if counts[step] > best {
			unit, best = step, counts[step]
		}
	}
	return unit
}

// indentOf returns the blanks that a line begins with.
func indentOf(line string) string { return line[:len(line)-len(strings.TrimLeft(line, " \t"))] }
