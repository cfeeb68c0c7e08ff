package markdown

import (
	"slices"
	"strings"

	"github.com/yuin/goldmark/text"
)

// columnGap is how many blanks stand between two columns of a table, and leastColumn how narrow a column may get.
const (
	columnGap   = 2
	leastColumn = 8
)

// The library has tables as an extension. They are read here, because the start of that extension takes longer than
// that of the rest together, and every command of the program would wait for it.

// splitTable splits the lines of a paragraph into those before a table and its cells, with the titles first. ok is
// false where it has no table: a line of titles, and below it a line of dashes for as many columns. right says which
// columns are aligned to the right.
func splitTable(text string) (before string, grid [][]string, right []bool, ok bool) {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := 1; i < len(lines); i++ {
		dashes := splitCells(lines[i])
		right = right[:0]
		for _, c := range dashes {
			c = strings.TrimPrefix(c, ":")
			if strings.Trim(strings.TrimSuffix(c, ":"), "-") != "" || !strings.Contains(c, "-") {
				break
			}
			right = append(right, strings.HasSuffix(c, ":") && !strings.HasPrefix(dashes[len(right)], ":"))
		}
		// A line of dashes alone is the underline of a heading.
		hasBars := strings.Contains(lines[i-1], "|") && strings.ContainsAny(lines[i], "|:")
		if !hasBars || len(right) != len(dashes) || len(splitCells(lines[i-1])) != len(dashes) {
			continue
		}
		grid = append(grid, splitCells(lines[i-1]))
		for _, line := range lines[i+1:] {
			grid = append(grid, splitCells(line))
		}
		return strings.Join(lines[:i-1], "\n"), grid, right, true
	}
	return "", nil, nil, false
}

// splitCells splits a line of a table into its cells. A bar behind a backslash is one of the text.
func splitCells(line string) (all []string) {
	line = strings.TrimPrefix(strings.TrimSpace(line), "|")
	c := ""
	for {
		i := strings.IndexByte(line, '|')
		switch {
		case i < 0:
			if c += line; strings.TrimSpace(c) != "" || len(all) == 0 {
				all = append(all, strings.TrimSpace(c))
			}
			return all
		case i > 0 && line[i-1] == '\\':
			c += line[:i-1] + "|"
		default:
			all, c = append(all, strings.TrimSpace(c+line[:i])), ""
		}
		line = line[i+1:]
	}
}

// text returns a text that is part of a line.
func (d *drawer) text(source string, s style) row {
	part := drawer{source: []byte(source), colour: d.colour, marks: d.marks}
	var all row
	for n := newInlineParser().Parse(text.NewReader(part.source)).FirstChild(); n != nil; n = n.NextSibling() {
		all = append(all, part.inline(n, s)...)
	}
	return all
}

// table returns a table as rows, below the lines before it. Where it is too wide, its widest columns are wrapped; where
// they would get too narrow for words, each cell is a line of its own.
func (d *drawer) table(before string, grid [][]string, right []bool, width int) (rows []row) {
	if before != "" {
		rows = d.text(before, 0).wrap(width)
	}
	drawn := make([][]row, len(grid))
	most := 0 // columns: a line may have more cells than there are titles
	for i, line := range grid {
		for _, c := range line {
			s := style(0)
			if i == 0 {
				s = bold
			}
			drawn[i] = append(drawn[i], d.text(c, s))
		}
		most = max(most, len(line))
	}
	widths := columnWidths(drawn, most, width)
	if widths == nil {
		return append(rows, listed(drawn, width)...)
	}
	for i, line := range drawn {
		rows = append(rows, alignedRows(line, widths, right)...)
		if i == 0 && d.marks { // with colour the titles are bold
			rows = append(rows, rule(widths))
		}
	}
	return rows
}

// columnWidths returns how wide each column is, and nil where the table does not fit. The widest column gives way
// first.
func columnWidths(grid [][]row, most, width int) []int {
	widths := make([]int, most)
	for _, line := range grid {
		for i, c := range line {
			widths[i] = max(widths[i], c.columns())
		}
	}
	sum := columnGap * (len(widths) - 1)
	for _, w := range widths {
		sum += w
	}
	// One column of the terminal at a time, so that columns end up about as wide as each other.
	for ; sum > width; sum-- {
		i := slices.Index(widths, slices.Max(widths))
		if widths[i] <= leastColumn {
			return nil
		}
		widths[i]--
	}
	return widths
}

// alignedRows returns a line of a table as rows.
func alignedRows(line []row, widths []int, right []bool) (rows []row) {
	wrapped := make([][]row, len(widths))
	high := 1
	for i := range line {
		wrapped[i] = line[i].wrap(widths[i])
		high = max(high, len(wrapped[i]))
	}
	for y := range high {
		var r row
		for i, w := range widths {
			var c row
			if y < len(wrapped[i]) {
				c = wrapped[i][y]
			}
			if i > 0 {
				r = append(r, cells("  ", 0)...)
			}
			r = append(r, c.pad(w, i < len(right) && right[i])...)
		}
		rows = append(rows, r)
	}
	return rows
}

// rule returns the row below the titles.
func rule(widths []int) (r row) {
	for i, w := range widths {
		if i > 0 {
			r = append(r, cells("  ", 0)...)
		}
		for range w {
			r = append(r, cell{text: "-", width: 1})
		}
	}
	return r
}

// listed returns a table with a line for each cell, behind the title of its column.
func listed(grid [][]row, width int) (rows []row) {
	if len(grid) == 1 { // titles without lines
		grid = append(grid, make([]row, len(grid[0])))
	}
	for n, line := range grid[min(1, len(grid)):] {
		if n > 0 {
			rows = append(rows, nil)
		}
		line = append(line, make([]row, max(len(grid[0])-len(line), 0))...) // a title is shown without its cell, too
		for i, c := range line {
			if i < len(grid[0]) {
				c = slices.Concat(grid[0][i], cells(": ", 0), c)
			}
			rows = append(rows, c.wrap(width)...)
		}
	}
	return rows
}
