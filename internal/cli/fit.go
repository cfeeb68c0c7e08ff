package cli

import "strings"

// fit makes the line's text fit into room columns: its command gives way first, then the task's name, so that what came
// of it is always there. The text of other lines is cut; trouble is said whole, on more lines than one.
func (l line) fit(room int) []string {
	if columns(l.text) <= room {
		return []string{l.text}
	}
	text := l.text
	if l.command != "" {
		const gap = "  "
		if i := strings.LastIndex(text, gap+l.command+gap); i >= 0 {
			short := ""
			if left := room - columns(text) + columns(l.command); left >= 8 {
				short = gap + cut(l.command, left)
			}
			text = text[:i] + short + text[i+len(gap+l.command):]
		}
	}
	if over := columns(text) - room; over > 0 && l.name != "" {
		if rest, ok := strings.CutPrefix(text, pad(l.name, taskColumn)); ok {
			width := max(columns(l.name), taskColumn) - over
			text = pad(cut(l.name, max(width, 6)), max(width, 6)) + rest
		}
	}
	if l.tone == bad {
		return wrap(text, room)
	}
	return []string{cut(text, room)}
}

// wrap breaks s into lines of at most width columns, between words where there is a gap.
func wrap(s string, width int) (all []string) {
	for columns(s) > width {
		n, end, blank := 0, 0, 0
		for i, r := range s {
			if n += columns(string(r)); n > width && i > 0 {
				break
			}
			if r == ' ' && i > 0 {
				blank = i
			}
			end = i + len(string(r))
		}
		if end < len(s) && s[end] == ' ' {
			blank = end
		}
		if blank > 0 {
			end = blank
		}
		all = append(all, strings.TrimRight(s[:end], " "))
		s = strings.TrimLeft(s[end:], " ")
	}
	return append(all, s)
}
