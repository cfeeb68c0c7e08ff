package textmatch

import "slices"

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
