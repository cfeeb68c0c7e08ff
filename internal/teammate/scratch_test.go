package teammate

import (
	"strings"
	"testing"

	"muster"
	"muster/internal/board"
)

// A member without a task is told after a command what it has changed where nothing lands, once as long as that stays the
// same, and once more when it stops. In a lane nobody is told.
func TestAMemberIsToldWhereNothingLands(t *testing.T) {
	const told, reminded = "[Nothing that you change here lands", "You have changed a.txt where nothing lands"
	bash := func(command string) turn { return calls("bash", map[string]any{"command": command}) }
	for name, c := range map[string]struct {
		who             muster.Name
		scratch         []string
		task            bool
		told, reminders int
		asked           int
	}{
		"the lead":               {muster.Lead, []string{"a.txt"}, false, 1, 1, 4},
		"a teammate":             {"alice", []string{"a.txt"}, false, 1, 1, 4},
		"nothing is changed":     {"alice", nil, false, 0, 0, 3},
		"a teammate with a task": {"alice", []string{"a.txt"}, true, 0, 0, 5},
	} {
		live(t, c.who, func(l *life) {
			if c.task {
				l.create(board.Draft{})
			}
			l.rows.scratch = c.scratch
			l.start(bash("echo one"), bash("echo two"), says("So."), says("So I said."), says("And again."))
			heard := l.heard()
			if n := strings.Count(heard, told); n != c.told {
				t.Errorf("%s: told %d times: %s", name, n, heard)
			}
			if n := strings.Count(heard, reminded); n != c.reminders || len(l.asked) != c.asked {
				t.Errorf("%s: reminded %d times, asked %d times", name, n, len(l.asked))
			}
		})
	}
}
