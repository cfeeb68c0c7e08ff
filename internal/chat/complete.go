package chat

import (
	"slices"
	"strings"
)

// Names is what Tab can complete besides commands: the members, and the requests that wait.
type Names struct {
	Members  func() []string
	Requests func() []string
}

// Complete returns what may stand at the cursor, which is a byte offset: commands at the start, ids of requests after
// approve and reject, and names of members anywhere. from is the start of the completed word.
func (n Names) Complete(text string, cursor int) (from int, candidates []string) {
	// Only what stands before the cursor counts: the rest of the line stays as it is.
	before := text[:min(cursor, len(text))]
	from = strings.LastIndexAny(before, " \n") + 1
	word, head := before[from:], strings.TrimSpace(before[:from])
	var all []string
	switch {
	case head == "" && strings.HasPrefix(word, "/"):
		for _, c := range commands {
			all = append(all, "/"+c.name)
		}
	case head == "/approve" || head == "/reject":
		all = n.Requests()
	case head == "/inbox":
		all = append(n.Members(), "user")
	// Other commands take no name, and an empty word would offer all members after each blank.
	case strings.HasPrefix(head, "/"), word == "":
		return from, nil
	default:
		all = n.Members()
	}
	for _, c := range all {
		if strings.HasPrefix(c, word) && c != word {
			candidates = append(candidates, c+" ")
		}
	}
	slices.Sort(candidates)
	return from, slices.Compact(candidates)
}
