package collision_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster"
	"muster/internal/collision"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/internal/worktree"
)

// lines are ten lines of a file, the nth replaced where n is not 0.
func lines(n int, text string) string {
	all := strings.Split("1 2 3 4 5 6 7 8 9 10", " ")
	if n > 0 {
		all[n-1] = text
	}
	return strings.Join(all, "\n") + "\n"
}

// newClash makes a world in which alice and bob, with the tasks 1 and 2, have changed the same line. bob's lane is b.
func newClash(t *testing.T, files map[string]string) (w *world, one, two muster.TaskID, b string) {
	t.Helper()
	w = newWorld(t, files)
	one, a := w.task("alice")
	two, b = w.task("bob")
	w.write(a, map[string]string{"f": lines(3, "alice")})
	w.write(b, map[string]string{"f": lines(3, "bob")})
	return w, one, two, b
}

// TestBothOwnersHear checks that the owners of two lanes with the same lines hear of it, and the lead, and nobody else;
// that each hears of it once, and again when another file collides; and that nothing was touched.
func TestBothOwnersHear(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"f": lines(0, ""), "g": lines(0, ""), ".gitignore": "*.log\n"})
	one, a := w.task("alice")
	two, b := w.task("bob")
	three, c := w.task("carol")
	w.write(a, map[string]string{"f": lines(3, "alice"), "x.log": "alice"})
	w.write(b, map[string]string{"f": "new\n" + lines(3, "bob"), "x.log": "bob"})
	gittest.Git(t, b, "commit", "-q", "-a", "-m", "bob's")
	place, _, err := worktree.PlaceAt(t.Context(), w.lanes, b)
	require.NoError(t, err)
	require.NoError(t, place.TakeBranch(t.Context())) // as at the end of his command
	w.write(c, map[string]string{"f": lines(9, "carol"), "own": "carol"})
	before := gittest.Checkout(t, w.root) + gittest.Git(t, a, "status", "--porcelain") + gittest.Git(t, w.root,
		"count-objects")
	w.mustLook()
	w.heard("alice", one, "[1+2 f:3|4]")
	w.heard("bob", two, "[2+1 f:4|3]")
	w.heard("carol", three, "[]")
	w.heard("lead", 0, "[1+2 f:3|4]")
	equal(t, "events", w.events(), 1)
	if after := gittest.Checkout(t, w.root) + gittest.Git(t, a, "status", "--porcelain") + gittest.Git(t, w.root,
		"count-objects"); after != before {
		t.Errorf("a look has changed something: %s\n%s", before, after)
	}
	if known := collision.Read(w.root); len(known) != 1 || short(known[0]) != "1+2 f:3|4" {
		t.Errorf("known: %v", known)
	}

	w.write(a, map[string]string{"f": lines(3, "alice again")})
	w.mustLook()
	w.heard("bob", two, "[]")
	w.write(a, map[string]string{"g": lines(1, "alice")})
	w.write(b, map[string]string{"g": lines(1, "bob")})
	w.mustLook()
	equal(t, "another file", fmt.Sprint(w.hears("bob", two), w.hears("lead", 0)), "[2+1 f:4|3 g:1|1] [1+2 f:3|4 g:1|1]")

	w.write(a, map[string]string{"f": lines(0, ""), "g": lines(0, "")})
	w.mustLook()
	// Whoever has heard of it hears that it is over, once. Alice has not taken what she should have heard of g.
	w.heard("alice", one, "[1+2 over]")
	w.heard("bob", two, "[2+1 over]")
	w.heard("carol", three, "[]")
	w.heard("lead", 0, "[1+2 over]")
	w.heard("bob", two, "[]")
	equal(t, "known", len(collision.Read(w.root)), 0)
	equal(t, "events", w.events(), 3)

	// It begins again, and is over before anybody has heard of that.
	w.write(a, map[string]string{"f": lines(3, "alice")})
	w.mustLook()
	w.write(a, map[string]string{"f": lines(0, "")})
	w.mustLook()
	equal(t, "what was over before it was told", fmt.Sprint(w.hears("bob", two), w.hears("lead", 0)), "[] []")
}

// TestAWarningWaitsForALaneThatCannotBeLookedAt checks that what was found is told, though its lane is locked or in the
// middle of a merge before anybody has heard.
func TestAWarningWaitsForALaneThatCannotBeLookedAt(t *testing.T) {
	t.Parallel()
	w, one, two, b := newClash(t, map[string]string{"f": lines(0, "")})
	w.mustLook()
	gittest.Git(t, b, "commit", "-q", "-a", "-m", "bob's")
	gittest.Git(t, b, "checkout", "-q", "--detach")
	w.Changed("lane-2")
	w.mustLook()
	equal(t, "known", len(collision.Read(w.root)), 0)
	gittest.Git(t, b, "checkout", "-q", "-")
	w.Changed("lane-2")
	w.mustLook()
	equal(t, "heard", fmt.Sprint(w.hears("alice", one), w.hears("bob", two)), "[1+2 f:3|3] [2+1 f:3|3]")
}

// TestLandingsAreNotWarned checks that the owner of a task that is to land hears nothing: the landing says it.
func TestLandingsAreNotWarned(t *testing.T) {
	t.Parallel()
	w, one, two, _ := newClash(t, map[string]string{"f": lines(0, "")})
	for _, id := range []muster.TaskID{one, two} {
		task, err := w.board.Get(t.Context(), id)
		if err == nil {
			_, err = w.board.BeginLanding(t.Context(), id, task.Fence, muster.PendingLanding{Head: "x"})
		}
		require.NoError(t, err)
	}
	w.land(9, map[string]string{"f": lines(3, "nine")})
	w.mustLook()
	equal(t, "heard", fmt.Sprint(w.hears("alice", one), w.hears("bob", two), w.hears("lead", 0)), "[] [] []")
	if known := collision.Read(w.root); len(known) != 3 {
		t.Errorf("status shows %v", known)
	}
}

// TestAReturnedTaskIsNotWarned checks that what a landing has just told is not told again.
func TestAReturnedTaskIsNotWarned(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"f": lines(0, "")})
	one, a := w.task("alice")
	w.write(a, map[string]string{"f": lines(3, "alice")})
	w.land(9, map[string]string{"f": lines(3, "nine")})
	w.mustLook()
	w.Returned(one)
	w.heard("alice", one, "[]")
}

// TestTarget checks that an owner hears when the target has moved into what its lane changes, and which task has landed
// in these lines; once for each landing; and no more when the lane has the target's work.
func TestTarget(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"f": lines(0, "")})
	one, a := w.task("alice")
	w.write(a, map[string]string{"f": lines(3, "alice")})
	w.mustLook()
	if got := w.hears("alice", one); len(got) > 0 {
		t.Fatalf("nothing has landed: %v", got)
	}
	w.land(8, map[string]string{"f": lines(9, "eight")})
	w.mustLook()
	w.heard("alice", one, "[]")
	w.land(9, map[string]string{"f": "0\n" + strings.Replace(lines(9, "eight"), "3", "nine", 1)})
	w.mustLook()
	w.mustLook()
	w.heard("alice", one, "[1+0[9] f:3|4]")
	gittest.Git(t, a, "commit", "-q", "-a", "-m", "mine")
	if out, err := gittest.Try(a, "merge", "-q", gittest.Git(t, w.root, "rev-parse", "muster/t")); err == nil {
		t.Fatalf("no conflict: %s", out)
	}
	w.Changed("lane-1")
	w.mustLook() // in the middle of the merge
	gittest.Write(t, a, map[string]string{"f": "0\n" + lines(3, "both")})
	gittest.Git(t, a, "commit", "-q", "-a", "-m", "merged")
	w.Changed("lane-1")
	w.mustLook()
	equal(t, "known", len(collision.Read(w.root)), 0)
	w.land(10, map[string]string{"f": "0\n" + lines(3, "ten")})
	w.mustLook()
	w.heard("alice", one, "[1+0[10] f:4|4]")
}

// TestSeveralProcesses checks that a process knows the lanes of others, and that one collision has one event.
func TestSeveralProcesses(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"f": lines(0, "")})
	_, a := w.task("alice")
	two, b := w.task("bob")
	other := w.newWatcher()
	w.write(a, map[string]string{"f": lines(3, "alice")})
	w.write(b, map[string]string{"f": lines(3, "bob")})
	w.mustLook()
	other.Changed("lane-2")
	require.NoError(t, other.Look(t.Context()))
	if n := len(other.Take("bob", two)); n != 1 || w.events() != 1 {
		t.Errorf("bob hears %d, %d events", n, w.events())
	}
	w.heard("bob", 7, "[]")
}

// TestHostileLanes checks that lanes with all that can be wrong with them hide no collision of others, make no error and
// are looked at, thirty of them.
func TestHostileLanes(t *testing.T) {
	t.Parallel()
	w, one, two, _ := newClash(t, map[string]string{"f": lines(0, ""), "bin": "a\x00b", "link": "x"})
	spoil := []func(dir string){
		func(dir string) { // larger than any memory, and no file of git's
			require.NoError(t, os.Truncate(filepath.Join(dir, "f"), 1<<40))
		},
		func(dir string) { w.write(dir, map[string]string{"bin": "c\x00d", "f": lines(5, "x")}) },
		func(dir string) {
			require.NoError(t, os.Remove(filepath.Join(dir, "link")))
			require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(dir, "link")))
		},
		func(dir string) { // a repository of its own
			require.NoError(t, os.Mkdir(filepath.Join(dir, "inner"), 0o700))
			gittest.Git(t, filepath.Join(dir, "inner"), "init", "-q")
			gittest.Write(t, filepath.Join(dir, "inner"), map[string]string{"f": "x"})
		},
		func(dir string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, ".git"), []byte("gitdir: /nowhere"), 0o600))
		},
		func(dir string) { require.NoError(t, os.RemoveAll(dir)) },
		func(dir string) { // another history
			gittest.Git(t, dir, "checkout", "-q", "--orphan", "other")
		},
		func(dir string) { gittest.Git(t, dir, "checkout", "-q", "--detach") },
		func(dir string) { // its index is none
			index := gittest.Git(t, dir, "rev-parse", "--path-format=absolute", "--git-path", "index")
			require.NoError(t, os.WriteFile(index, []byte("x"), 0o600))
			w.write(dir, map[string]string{"f": "x"})
		},
		func(dir string) { // a commit of which a file is missing
			w.write(dir, map[string]string{"f": lines(3, "gone")})
			gittest.Git(t, dir, "commit", "-q", "-a", "-m", "x")
			id := gittest.Git(t, dir, "rev-parse", "HEAD:f")
			require.NoError(t, os.Remove(gittest.Git(t, dir, "rev-parse", "--path-format=absolute", "--git-path",
				filepath.Join("objects", id[:2], id[2:]))))
		},
		func(dir string) { w.write(dir, map[string]string{".gitattributes": "f filter=none", "f": "x"}) },
		func(dir string) { w.write(dir, map[string]string{"a\nb\x1b[31m": "x", ":(top)f": "y", "-x": "z"}) },
	}
	for i := range 30 {
		_, dir := w.task(muster.Name(fmt.Sprintf("m%d", i)))
		if i < len(spoil) {
			spoil[i](dir)
		} else {
			w.write(dir, map[string]string{fmt.Sprintf("own-%d", i): "x"})
		}
		w.Changed(muster.Name(filepath.Base(dir)))
	}
	w.mustLook()
	w.mustLook()
	if got := w.hears("alice", one); !slices.Contains(got, "1+2 f:3|3") {
		t.Errorf("alice hears %v", got)
	}
	if got := w.hears("bob", two); !slices.Contains(got, "2+1 f:3|3") {
		t.Errorf("bob hears %v", got)
	}
}
