package chat

import (
	"slices"
	"strings"

	"muster"
)

// said is what the user has said here and no event has told of yet. Any number of terminals may talk with one lead, and
// each shows what was typed in the others.
type said []string

// add notes what is about to be said: its event may come at once.
func (s *said) add(text string) {
	if text != "" {
		*s = append(*s, strings.TrimSpace(text))
	}
}

// is reports whether the event is of mail to the lead that was typed here, and forgets that mail.
func (s *said) is(e muster.Event) bool {
	if e.Member != muster.User || e.Text("to") != string(muster.Lead) {
		return false
	}
	// The event has the beginning of a long text.
	begin := strings.TrimSpace(strings.TrimSuffix(e.Text("text"), " ..."))
	i := slices.IndexFunc(*s, func(text string) bool { return begin != "" && strings.HasPrefix(text, begin) })
	if i >= 0 {
		*s = slices.Delete(*s, i, i+1)
	}
	return i >= 0
}
