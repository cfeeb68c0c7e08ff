package textmatch

import (
	"slices"
	"strings"
)

// Search returns the things that have words of a query in their names or in what is said about them, those with the
// most words first. A word of a name counts three times.
func Search[T any](all []T, query string, describe func(T) (name, about string)) []T {
	words := strings.FieldsFunc(strings.ToLower(query), func(r rune) bool { return strings.ContainsRune(" ,-_./:", r) })
	score := func(x T) (n int) {
		name, about := describe(x)
		name, about = strings.ToLower(name), strings.ToLower(about)
		for _, w := range words {
			switch {
			case strings.Contains(name, w):
				n += 3
			case strings.Contains(about, w):
				n++
			}
		}
		return n
	}
	found := slices.DeleteFunc(slices.Clone(all), func(x T) bool { return score(x) == 0 })
	slices.SortStableFunc(found, func(a, b T) int { return score(b) - score(a) })
	return found
}
