package difflines

import "iter"

// Rows returns the indexes of the lines that stand beside each other, the old one at the left. Without isSplit each
// line has a row, and both are its index. With it, removed lines stand beside the added ones that came in their place,
// and where there are none, a side is empty: -1. All other lines are at both sides.
func Rows(lines []Line, isSplit bool) iter.Seq2[int, int] {
	at := func(side []int, i int) int {
		if i < len(side) {
			return side[i]
		}
		return -1
	}
	return func(yield func(left, right int) bool) {
		for i := 0; i < len(lines); {
			removed, next := run(lines, i, Removed)
			added, end := run(lines, next, Added)
			if !isSplit || len(removed)+len(added) == 0 {
				removed, added, end = []int{i}, []int{i}, i+1
			}
			for n := range max(len(removed), len(added)) {
				if !yield(at(removed, n), at(added, n)) {
					return
				}
			}
			// That a file has no newline at its end stands below the pairs.
			for n := i; n < end; n++ {
				if end > i+1 && lines[n].Kind == Meta && !yield(n, n) {
					return
				}
			}
			i = end
		}
	}
}
