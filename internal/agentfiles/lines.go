package agentfiles

import (
	"fmt"
	"strings"

	"muster/internal/text"
)

// minShown is how many bytes of a description are worth showing.
const minShown = 60

// Item is a line of a list for a model: a name, and what it is for.
type Item struct{ Name, About string }

// Lines returns a line for each item, in at most limit bytes. When the items are too many, descriptions are shortened,
// and then left out, and then the rest of the items is. isWhole says that nothing is missing.
func Lines(items []Item, limit int) (list string, isWhole bool) {
	longest, size := MaxDescription, 0
	for _, item := range items {
		size += len(item.line(MaxDescription))
	}
	if isWhole = size <= limit; !isWhole {
		longest = max(limit/len(items)-maxName/2, 0)
	}
	var b strings.Builder
	for i, item := range items {
		line := item.line(longest)
		if b.Len()+len(line) > limit {
			fmt.Fprintf(&b, "and %d more\n", len(items)-i)
			return b.String(), false
		}
		b.WriteString(line)
	}
	return b.String(), isWhole
}

// line returns the line of an item, with at most longest bytes of its description.
func (item Item) line(longest int) string {
	if longest < minShown {
		return "- " + text.EscapeTags(item.Name) + "\n"
	}
	return "- " + text.EscapeTags(item.Name) + ": " + text.CutBytes(text.EscapeTags(item.About), longest) + "\n"
}
