package view

import (
	"bytes"
	"strconv"
	"strings"

	"muster/internal/text"
)

// Append appends the line to a buffer as it is printed, without a newline: the text before it (the time), the name
// padded to names columns, the verb, and the text. With a width, the text is made to fit and wrapped text is indented.
// With width 0 nothing is cut. A log of many lines uses one buffer for all.
func (l Line) Append(to []byte, p Paint, before string, names, width int) []byte {
	if l.isCall {
		return l.appendCall(to, p, before, width)
	}
	said, verbs := l.Text, 0
	if said != "" { // else the verb is the last column and needs no blanks after it
		verbs = 6
	}
	if width > 0 {
		// Wrapped text stands under the text, so the eye finds the names and verbs at the left. On a terminal that is
		// too narrow for that, a text that does not fit stands below them, where it has most of the width.
		const least, below = 20, 4
		indent := text.Columns(before) + names + len(" verb12 ")
		isBelow := width-indent < least && text.Columns(said) > width-indent
		if isBelow {
			indent = below
		}
		gap := "\n" + strings.Repeat(" ", indent)
		rows := l.fit(max(width-indent, least))
		if l.faint && l.Tone == Plain {
			for i, row := range rows {
				rows[i] = p.In(Faint, row)
			}
		}
		said = strings.Join(rows, gap)
		if isBelow {
			said = gap + said
		}
	}
	start, who := len(to), p.nameColour(l.Who)
	tone := toneCodes[l.Tone]
	if l.faint {
		before = p.In(Faint, before)
		if l.Tone == Plain {
			tone = toneCodes[Faint]
		}
	}
	to = append(p.pad(append(to, before...), who, l.Who, names), ' ')
	to = append(p.pad(to, tone, l.Verb, verbs), ' ')
	if strings.HasPrefix(said, "\n") {
		to = bytes.TrimRight(to, " ")
	}
	to = append(to, said...)
	return to[:start+len(bytes.TrimRight(to[start:], " "))]
}

// appendCall is Append for a call of a tool.
func (l Line) appendCall(to []byte, p Paint, before string, width int) []byte {
	rows, name := []string{l.Text}, l.name
	column := text.Columns(before) + text.Columns(l.Who) + len("  ")
	if width > 0 {
		room := max(width-column, 12)
		// What it does is cut, because the rest must stay visible.
		if rest, ok := strings.CutPrefix(l.Text, l.name); ok && text.Columns(l.Text) > room {
			name = text.CutColumns(l.name, max(room-text.Columns(rest), 8))
			l.Text = name + rest
		}
		rows = l.fit(room)
	}
	for i, row := range rows {
		if rest, ok := strings.CutPrefix(row, name); ok && i == 0 && l.Tone != Bad { // what it does is bright
			rows[i] = name + p.Counts(rest)
		} else {
			rows[i] = p.In(Faint, row)
		}
	}
	said := strings.Join(rows, "\n"+strings.Repeat(" ", column))
	return append(to, p.In(Faint, before)+p.In(l.Tone, l.Who)+"  "+said...)
}

// Counts returns faint words in which numbers of lines, such as "+5 -3", have the colours of a difference.
func (p Paint) Counts(words string) string {
	all := strings.Split(words, " ")
	for i, word := range all {
		switch _, err := strconv.Atoi(word); {
		case err == nil && word[0] == '+':
			all[i] = p.In(Good, word)
		case err == nil && word[0] == '-':
			all[i] = p.In(Bad, word)
		default:
			all[i] = p.In(Faint, word)
		}
	}
	return strings.Join(all, " ")
}

// fit makes the text fit into room columns. The command is shortened first, then the task's name, because the outcome
// must stay visible. Bad news, notes and what the user must answer are wrapped instead of cut.
func (l Line) fit(room int) []string {
	if text.Columns(l.Text) <= room {
		return []string{l.Text}
	}
	said := l.Text
	// The command stands between two gaps. It is cut, or left out with one of them if too little of it would be left.
	if l.command != "" {
		const gap = "  "
		if i := strings.LastIndex(said, gap+l.command+gap); i >= 0 {
			short := ""
			if left := room - text.Columns(said) + text.Columns(l.command); left >= 8 {
				short = gap + text.CutColumns(l.command, left)
			}
			said = said[:i] + short + said[i+len(gap+l.command):]
		}
	}
	// Six columns of a name show at least the task's number.
	if over := text.Columns(said) - room; over > 0 && l.name != "" {
		if rest, ok := strings.CutPrefix(said, text.PadColumns(l.name, taskColumn)); ok {
			width := max(text.Columns(l.name), taskColumn) - over
			said = text.PadColumns(text.CutColumns(l.name, max(width, 6)), max(width, 6)) + rest
		}
	}
	if l.Tone == Bad || l.whole {
		return text.Wrap(said, room)
	}
	return []string{text.CutColumns(said, room)}
}

// Hang returns lines with those that are wider than width broken between words. What follows stands in a column, so
// that the first words of each line stand alone at the left.
func Hang(all string, column, width int) string {
	lines := strings.Split(all, "\n")
	for i, l := range lines {
		if text.Columns(l) <= width {
			continue
		}
		// Only the first row has the whole width, so the rest is wrapped anew in what is left of it.
		first, rest := text.Wrap(l, width)[0], ""
		if rest = strings.TrimLeft(strings.TrimPrefix(l, first), " "); rest != "" {
			gap := "\n" + strings.Repeat(" ", column)
			lines[i] = first + gap + strings.Join(text.Wrap(rest, max(width-column, 1)), gap)
		}
	}
	return strings.Join(lines, "\n")
}
