package landing_test

import (
	"fmt"
	"strings"
	"testing"

	"muster"
	"muster/internal/testing/gittest"
	"muster/journal"
)

// land makes a task with the files and lands it.
func (w *world) landFiles(subject string, owner muster.Name, files map[string]string) muster.Task {
	w.t.Helper()
	one, _ := w.task(subject, owner, files)
	w.lands(one)
	return one
}

// TestAConflictNamesWhatItMet checks that the owner, people and the board hear whose landed work a task collides with,
// and of nothing that others have landed elsewhere.
func TestAConflictNamesWhatItMet(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", map[string]string{"a b.txt": "1\n2\n3\n", "*.txt": "s\n", "c.txt": "c\n"})
	two, lane := w.task("Two", "bob", map[string]string{"a b.txt": "1 two\n2\n3\n"})
	w.landFiles("Elsewhere", "carol", map[string]string{"c.txt": "other\n", "*.txt": "sky\n"})
	w.landFiles("One", "alice", map[string]string{"a b.txt": "1 one\n2\n3\n"})
	for _, lines := range []int{2000, 2450, 2900, 3350} { // one is long, and the last of the others is too much
		w.landFiles("Large", "dave", map[string]string{"a b.txt": "1 one\n2\n3\n" + strings.Repeat("line\n", lines)})
	}
	v := w.back(two)
	says(t, v.Text, `- task 3 "One" by alice (`, ") in a b.txt\n  What alice did.\n", "\n-1\n+1 one\n",
		`- task 4 "Large" by dave (`, " -- 'a b.txt'\n")
	equal(t, "the newest that it met", v.Task.Met[len(v.Task.Met)-1], w.git("rev-parse", target))
	if strings.Contains(v.Text, "Elsewhere") || strings.Count(v.Text, "is long: git show") != 2 || strings.Contains(v.Text, "sky") || len(v.Text) > 9<<10 {
		t.Errorf("%d bytes: %s", len(v.Text), v.Text)
	}
	others := w.said(journal.TaskReturned, "with", "task 7 of dave, task 6 of dave, ")
	if len(others) != 1 || v.Task.Returned != "conflict in a b.txt; landed meanwhile: "+others[0] {
		t.Errorf("the board says %q, the event %q", v.Task.Returned, others)
	}
	// What both started from is a side of its own, and its marker may not stay.
	gittest.Write(t, lane, map[string]string{"a b.txt": "1 two\n||||||| 1234567\n2\n3\n"})
	wants(t, fault(w.try(two)), muster.ErrInvalid, "a b.txt line 2")
	gittest.Write(t, lane, map[string]string{"a b.txt": "1 one two\n2\n3\n"})
	equal(t, "landed, and still returned", w.lands(two).Task.Returned, "")
}

// TestARedCheckNamesWhatHasLanded checks that an owner whose check fails only with the work of others hears of that.
func TestARedCheckNamesWhatHasLanded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "test ! -e lib.go || test ! -e use.go || { echo broken; exit 1; }", map[string]string{"a": "a"})
	use, _ := w.task("Use", "bob", map[string]string{"use.go": "use\n"})
	w.landFiles("Lib", "alice", map[string]string{"lib.go": "lib\n"})
	w.landFiles("Other", "carol", map[string]string{"other.md": "other\n"})
	v := w.back(use)
	says(t, v.Text, `- task 3 "Other" by carol (`, ") in other.md\n", `- task 2 "Lib" by alice (`, ") in lib.go\n")
	equal(t, "the return", v.Task.Returned[strings.Index(v.Task.Returned, ";"):],
		"; landed meanwhile: task 3 of carol, task 2 of alice")
}

// TestACommitOfTheUser checks that what no landing has made is told as nobody's, and of much that has landed the
// newest.
func TestACommitOfTheUser(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "", map[string]string{"a.txt": "1\n"})
	two, _ := w.task("Two", "bob", map[string]string{"a.txt": "two\n"})
	three, _ := w.task("Three", "bob", map[string]string{"a.txt": "three\n"})
	mine := t.TempDir()
	w.git("worktree", "add", "-q", "--detach", mine, target)
	gittest.Write(t, mine, map[string]string{"a.txt": "user\n"})
	gittest.Git(t, mine, "commit", "-q", "-a", "-m", "Mine\n\nMuster-Task: 1 or so")
	w.git("update-ref", target, gittest.Git(t, mine, "rev-parse", "HEAD"))
	if v := w.back(two); strings.Contains(v.Text, "landed meanwhile (") || v.Task.Returned != "conflict in a.txt" {
		t.Errorf("%q in %s", v.Task.Returned, v.Text)
	}
	for i := range 10 {
		gittest.Write(t, mine, map[string]string{"a.txt": fmt.Sprintln("user", i)})
		gittest.Git(t, mine, "commit", "-qam", fmt.Sprintf("Change\n\nMuster-Task: %d\nMuster-Check: ok", i+10))
	}
	w.git("update-ref", target, gittest.Git(t, mine, "rev-parse", "HEAD"))
	says(t, w.back(three).Text, "first:\n- task 19 \"Change\" by somebody (", "- task 12 ",
		"+user 2\n- and 2 more: git log ")
}
