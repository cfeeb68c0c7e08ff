package places

import (
	"fmt"
	"strings"
)

// minShown is how many bytes of a description are worth showing.
const minShown = 60

// Item is a line of a list: a name, and what it is for.
type Item struct{ Name, About string }

// Lines returns a line for each item, in so many bytes. When the items are too many, descriptions are shortened, and
// then left out, and then the rest of the items is. isWhole says that nothing is missing.
func Lines(items []Item, most int) (text string, isWhole bool) {
	longest, size := MaxDescription, 0
	for _, item := range items {
		size += len(item.line(MaxDescription))
	}
	if isWhole = size <= most; !isWhole {
		longest = max(most/len(items)-maxNameShown/2, 0)
	}
	var b strings.Builder
	for i, item := range items {
		line := item.line(longest)
		if b.Len()+len(line) > most {
			fmt.Fprintf(&b, "and %d more\n", len(items)-i)
			return b.String(), false
		}
		b.WriteString(line)
	}
	return b.String(), isWhole
}

// maxNameShown is how many bytes a long name in a list has.
const maxNameShown = 64

// line returns the line of an item, with so many bytes of its description at most.
func (item Item) line(longest int) string {
	if longest < minShown {
		return "- " + item.Name + "\n"
	}
	return "- " + item.Name + ": " + Cut(item.About, longest) + "\n"
}
