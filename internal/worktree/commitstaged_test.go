package worktree_test

import (
	"strings"
	"testing"

	"muster/internal/testing/gittest"
)

// What the owner's git has begun is ended by the commit, as git commit ends it.
func TestACommitEndsWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n"})
	gittest.Write(t, w.root, map[string]string{"a": "theirs\n"})
	w.git(w.root, "checkout", "-q", "-b", "theirs")
	w.git(w.root, "commit", "-q", "-a", "-m", "theirs")
	w.git(w.root, "checkout", "-q", "main")
	lane := w.create("one", map[string]string{"a": "mine\n"})
	w.git(lane.Path, "commit", "-q", "-a", "-m", "mine")
	if _, err := gittest.Try(lane.Path, "cherry-pick", "theirs"); err == nil {
		t.Fatal("no conflict")
	}
	gittest.Write(t, lane.Path, map[string]string{"a": "both\n"})
	w.ok2(w.Commit(w.ctx(), "one", "Work\n"))
	if got := w.git(lane.Path, "status"); strings.Contains(got, "cherry-pick") {
		t.Errorf("still under way: %s", got)
	}
	equal(t, "the content", w.git(lane.Path, "show", "HEAD:a"), "both")
}
