package landing_test

import (
	"strings"
	"testing"

	"muster"
	"muster/internal/board"
)

// A task that is set aside after it has met others' work has what both sides were for, and what each has changed. Until
// then it has not.
func TestATaskThatIsSetAsideHasBothSides(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "! grep -q two list || grep -q one list", map[string]string{"list": "base\n"})
	w.state = "ok"
	one, err := w.board.Create(w.ctx(), board.Draft{Subject: "One", Description: "Lists one.", CreatedBy: "lead"})
	w.must(err)
	one, _ = w.claim(one.ID, "alice", map[string]string{"list": "one\n", "long": strings.Repeat("line\n", 2000)})
	two, lane := w.task("Two", "bob", map[string]string{"list": "two\n"})
	w.lands(one)
	v := w.back(two) // the conflict, which does not count
	for range 3 {
		equal(t, "both sides of a task that is not set aside", v.Task.Sides, "")
		w.write(lane, map[string]string{"list": "two\n"})
		v = w.back(two)
	}
	equal(t, "the status", v.Task.Status, muster.NeedsAttention)
	says(t, v.Task.Sides, `Task 2 "Two" of bob, which came back:`, "Its owner says: What bob did.\n", "\n-one\n+two\n",
		`It collides with task 1 "One" by alice (`, "Lists one.\nIts owner says: What alice did.\n", "\n-base\n+one\n",
		"... all of it: git show ")
	if n := len(v.Task.Sides); n > 6<<10 {
		t.Errorf("%d bytes: %s", n, v.Task.Sides)
	}
}
