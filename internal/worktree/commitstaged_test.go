package worktree_test

import (
	"strings"
	"testing"

	"muster/internal/testing/gittest"
)

// Where nothing is begun in the lane, no git commit looks at each of its files once more.
func TestACommitOfWhatIsStaged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n", "b": "b\n"})
	lane := w.create("one")
	gittest.Write(t, lane.Path, map[string]string{"a": "a2\n"})
	w.git(lane.Path, "rm", "-q", "b")
	head, _, err := w.Commit(w.ctx(), "one", "Work\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := w.git(lane.Path, "log", "-1", "--format=%H %P %s"); got != head+" "+lane.Base+" Work" {
		t.Errorf("HEAD is %s", got)
	}
	if got := w.git(lane.Path, "diff", "--name-status", lane.Base, "HEAD"); got != "M\ta\nD\tb" {
		t.Errorf("committed %s", got)
	}
	if got := w.git(lane.Path, "status", "--porcelain"); got != "" {
		t.Errorf("left over: %s", got)
	}
	if got := w.git(lane.Path, "reflog", "-1", "--format=%gs"); got != "fast-import" {
		t.Errorf("committed by %s", got)
	}
}

// What the owner's git has begun is ended by the commit, as git commit ends it.
func TestACommitEndsWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n"})
	gittest.Write(t, w.root, map[string]string{"a": "theirs\n"})
	w.git(w.root, "checkout", "-q", "-b", "theirs")
	w.git(w.root, "commit", "-q", "-a", "-m", "theirs")
	w.git(w.root, "checkout", "-q", "main")
	lane := w.create("one")
	gittest.Write(t, lane.Path, map[string]string{"a": "mine\n"})
	w.git(lane.Path, "commit", "-q", "-a", "-m", "mine")
	if _, err := gittest.Try(lane.Path, "cherry-pick", "theirs"); err == nil {
		t.Fatal("no conflict")
	}
	gittest.Write(t, lane.Path, map[string]string{"a": "both\n"})
	if _, _, err := w.Commit(w.ctx(), "one", "Work\n"); err != nil {
		t.Fatal(err)
	}
	if got := w.git(lane.Path, "status"); strings.Contains(got, "cherry-pick") {
		t.Errorf("still under way: %s", got)
	}
	if got := w.git(lane.Path, "show", "HEAD:a"); got != "both" {
		t.Error(got)
	}
}
