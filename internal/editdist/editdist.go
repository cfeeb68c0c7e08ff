// Package editdist measures how different two words are, for "did you mean" in messages, and finds where two texts
// differ. It compares bytes and knows nothing of upper and lower case: callers normalize the words as they need it.
package editdist

import "slices"

// DidYouMean returns the question for people who have mistyped a name, to be appended to the sentence that says so:
// which of the similar names they mean. It returns "" when there are none.
func DidYouMean[S ~string](similar []S) string {
	if len(similar) == 0 {
		return ""
	}
	text := " (did you mean " + string(similar[0])
	for _, name := range similar[1:] {
		text += " or " + string(name)
	}
	return text + "?)"
}

// Suggest returns the word of all that is closest to a mistyped one, as DidYouMean asks for it. It returns "" if none
// is close: two letters are a slip of the fingers, and more is another word.
func Suggest(word string, all []string) string {
	if len(all) == 0 {
		return ""
	}
	distance := func(w string) int { return Distance(word, w) }
	best := slices.MinFunc(all, func(a, b string) int { return distance(a) - distance(b) })
	if distance(best) > 2 {
		return ""
	}
	return DidYouMean([]string{best})
}

// Distance returns how many bytes must be changed, inserted, removed, or swapped with their neighbour to turn a into b
// (the optimal string alignment distance).
func Distance(a, b string) int {
	var before []int
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	// row[j] is the distance of a[:i] and b[:j]; last and before are the rows for i-1 and i-2.
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}

// CommonEnds returns how many lines, or bytes, two texts have in common at their beginning, and of the others how many
// at their end.
func CommonEnds[T comparable](a, b []T) (head, tail int) {
	n := min(len(a), len(b))
	for head < n && a[head] == b[head] {
		head++
	}
	for tail < n-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	return head, tail
}
