package textmatch

import (
	"strings"
	"unicode/utf8"
)

// cell is a character of a quote, or a run of blanks, and what the file has for it.
type cell struct{ quoted, file string }

// cellsOf takes a line of the quote and the same line of the file apart. Both have the same form.
func cellsOf(quoted, file string) (cells []cell) {
	q, f := newForm(quoted), newForm(file)
	if q.text != f.text {
		return nil
	}
	for from, i := 0, 1; i <= len(q.text); i++ {
		// A byte of the form at which no character begins belongs to the cell before it.
		if i < len(q.text) && (q.at[i] == q.at[i-1] || f.at[i] == f.at[i-1]) {
			continue
		}
		c := cell{quoted[q.at[from]:q.at[i]], file[f.at[from]:f.at[i]]}
		if i == len(q.text) {
			c.quoted = strings.TrimRight(c.quoted, " \t\r")
		}
		cells = append(cells, c)
		from = i
	}
	return cells
}

// chars says what the file has for the characters of a quote that look like others: "" if it has several things.
type chars map[string]string

// learn learns from the cells of a line. ASCII is meant where the new text has it.
func (c chars) learn(cells []cell) {
	for _, x := range cells {
		if len(x.quoted) == 1 || utf8.RuneCountInString(x.quoted) != 1 {
			continue
		}
		if was, ok := c[x.quoted]; ok && was != x.file {
			x.file = ""
		}
		c[x.quoted] = x.file
	}
}

// translate replaces the characters that stand for others in the file.
func (c chars) translate(s string) string {
	var pairs []string
	for quoted, file := range c {
		if file != "" {
			pairs = append(pairs, quoted, file)
		}
	}
	return strings.NewReplacer(pairs...).Replace(s)
}

// blend returns a new line in which what it has in common with the quoted one, at both ends, is as the file has it.
func (c chars) blend(cells []cell, line string) string {
	var head, tail string
	isBlankRun := func(s string) bool { return strings.Trim(s, " \t") == "" }
	for len(cells) > 0 {
		rest, ok := strings.CutPrefix(line, cells[0].quoted)
		if !ok || rest != "" && isBlankRun(cells[0].quoted) && isBlankRun(rest[:1]) {
			break
		}
		head, line, cells = head+cells[0].file, rest, cells[1:]
	}
	for n := len(cells) - 1; n >= 0; n-- {
		rest, ok := strings.CutSuffix(line, cells[n].quoted)
		if !ok || rest != "" && isBlankRun(cells[n].quoted) && isBlankRun(rest[len(rest)-1:]) {
			break
		}
		line, tail = rest, cells[n].file+tail
	}
	return head + c.translate(line) + tail
}
