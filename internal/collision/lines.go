package collision

import (
	"bytes"
	"fmt"
	"strings"
)

// maxRanges is how many ranges of lines are named of a file.
const maxRanges = 5

// lineRange are lines of a file, counted from 1.
type lineRange struct{ from, to int }

// conflictLines returns the lines of both sides that are in conflict. merged is the file with markers, whose labels
// begin with the ids of the two commits; ours and theirs are the file on both sides. It returns nothing where there are
// no markers.
//
// The merged file says which lines are in conflict, but its line numbers are nobody's: it has what either side has
// added elsewhere. So the lines of each side are looked for in that side's own file, at the place nearest to where they
// should be. Where the same lines stand twice near each other, the other place may be named. It is a hint all the same.
func conflictLines(merged, ours, theirs []byte, oursID, theirsID string) (inOurs, inTheirs string) {
	begin, end := []byte("<<<<<<< "+oursID), []byte(">>>>>>> "+theirsID)
	a, b := &side{lines: splitLines(ours)}, &side{lines: splitLines(theirs)}
	var into *side // nil outside of a conflict
	isBase := false
	for _, line := range splitLines(merged) {
		switch {
		case into == nil && bytes.HasPrefix(line, begin):
			into = a
		case into == nil:
			a.skip()
			b.skip()
		case bytes.HasPrefix(line, end):
			a.close()
			b.close()
			into, isBase = nil, false
		case into == a && bytes.HasPrefix(line, []byte("|||||||")):
			isBase = true
		case into == a && bytes.Equal(line, []byte("=======")):
			into, isBase = b, false
		case !isBase:
			into.block = append(into.block, line)
		}
	}
	return a.String(), b.String()
}

// splitLines returns the lines of a file without their ends.
func splitLines(data []byte) [][]byte {
	lines := bytes.Split(data, []byte("\n"))
	if n := len(lines); len(lines[n-1]) == 0 {
		lines = lines[:n-1]
	}
	for i, line := range lines {
		lines[i] = bytes.TrimSuffix(line, []byte("\r"))
	}
	return lines
}

// side finds the lines of one side of the conflicts in that side's own file.
type side struct {
	lines [][]byte
	at    int // where the next line of the merged file most probably is in lines
	block [][]byte
	found []lineRange
	// compared counts lines. A file may be made so that the search would take for ever.
	compared int
}

// maxCompared is how many lines are compared to find those of one side.
const maxCompared = 1 << 20

// skip passes a line of the merged file that is in no conflict. It may have come from the other side: then at is not
// exact until the next conflict is found.
func (s *side) skip() { s.at++ }

// close looks for the lines that this side has in the conflict that ends here: the place nearest to where they are
// expected. A side that deleted lines has none; the line after them is named.
func (s *side) close() {
	n := len(s.block)
	if at := s.nearest(); at >= 0 {
		s.at = at
	}
	from := min(s.at, max(len(s.lines)-1, 0)) + 1
	s.found = append(s.found, lineRange{from, max(from+n-1, from)})
	s.at += n
	s.block = nil
}

// nearest returns where the block is in lines, -1 when it is empty or is nowhere.
func (s *side) nearest() int {
	n := len(s.block)
	if n == 0 {
		return -1
	}
	isAt := func(at int) bool {
		if at < 0 || at+n > len(s.lines) {
			return false
		}
		for i, line := range s.block {
			s.compared++
			if !bytes.Equal(line, s.lines[at+i]) {
				return false
			}
		}
		return true
	}
	for off := 0; off <= len(s.lines) && s.compared < maxCompared; off++ {
		if isAt(s.at + off) {
			return s.at + off
		}
		if isAt(s.at - off) {
			return s.at - off
		}
	}
	return -1
}

// String names the lines that were found, as "3-5, 9".
func (s *side) String() string {
	var b strings.Builder
	for i, r := range s.found {
		if i == maxRanges {
			fmt.Fprintf(&b, " and %d more places", len(s.found)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		if r.from == r.to {
			fmt.Fprint(&b, r.from)
		} else {
			fmt.Fprintf(&b, "%d-%d", r.from, r.to)
		}
	}
	return b.String()
}
