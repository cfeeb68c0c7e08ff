package worktree_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"muster"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
)

// A lane with git settings of its own is a lane, whatever these say: they count for the user's git alone.
func TestALaneWithSettingsOfItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n"})
	lane := w.create("one")
	w.git(w.root, "config", "extensions.worktreeConfig", "true")
	w.ok(gittest.User(lane.Path, "config", "--worktree", "user.name", "Bob"))
	returns(t, lane.Path)(w.Enter(w.ctx(), "one"))
	w.git(lane.Path, "checkout", "-q", "--detach")
	wants(t, fault(w.Enter(w.ctx(), "one")), muster.ErrInvalid, "on no branch")
	w.ok(gittest.User(lane.Path, "config", "--worktree", "core.worktree", t.TempDir()))
	returns(t, lane.Path)(w.Workdir(w.ctx(), "one"))
}

// What a lane holds is told for each place where work may be, and never for a lane of which it cannot be told.
func TestWhereALaneHasChanged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n"})
	lane := w.create("one")
	changed := func(want bool) {
		t.Helper()
		returns(t, want)(w.Changed(w.ctx(), "one"))
	}
	changed(false)
	w.git(lane.Path, "checkout", "-q", "--detach")
	w.git(lane.Path, "commit", "-q", "--allow-empty", "-m", "at HEAD only")
	changed(true)
	w.git(lane.Path, "reset", "-q", "--hard", lane.Base)
	only := w.git(w.root, "commit-tree", "-p", lane.Base, "-m", "on the branch only", "HEAD^{tree}")
	w.git(w.root, "update-ref", "refs/heads/wt/one", only)
	changed(true)
	wants(t, w.Remove(w.ctx(), "one", false), muster.ErrHeld, "one")
	w.git(w.root, "update-ref", "-d", "refs/heads/wt/one")
	changed(false)
	unclear := func(says string) {
		t.Helper()
		got, err := w.Changed(w.ctx(), "one")
		wants(t, err, muster.ErrInvalid, says)
		if got {
			t.Error("what cannot be told counts as changed")
		}
	}
	row := w.row("one", muster.LaneActive, "")
	for old, new := range map[string]string{`"base"`: `"bases"`, lane.Base: "main"} {
		w.rows(strings.Replace(row, old, new, 1))
		unclear("what it was made from is not recorded")
	}
	w.rows(w.row("one", muster.LaneActive, ""))
	other := gittest.Repo(t, nil)
	gittest.Write(t, lane.Path, map[string]string{".git": "gitdir: " + other + "/.git\n"})
	unclear("not the lane one any more")
	for name, err := range map[string]error{"ignored": fault(w.Ignored(w.ctx(), "one")),
		"status": fault(w.Status(w.ctx(), "one")), "unresolved": fault(w.Unresolved(w.ctx(), "one"))} {
		if err == nil {
			t.Errorf("%s of another repository", name)
		}
	}
	// The link leads to another repository, and not the branch is what is missing.
	w.git(w.root, "branch", "wt/one", lane.Base)
	if found := w.findings(); len(found) != 1 || found[0].Lane != "one" || found[0].Fix != "git worktree repair" {
		t.Errorf("found %+v", found)
	}
	if got, err := w.Changed(w.ctx(), "none"); got || err == nil {
		t.Errorf("of no lane, changed is %v, %v", got, err)
	}
}

// The fingerprint of a lane is another one after each change of what it holds beyond its base, and else the same.
func TestTheFingerprintOfALane(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n", "b c": "b\n", ".gitignore": "ignored\n"})
	lane := w.create("one")
	seen := map[string]string{}
	look := func(what string, want ...string) {
		t.Helper()
		got, err := w.Fingerprint(w.ctx(), "one")
		require.NoError(t, err)
		if again, _ := w.Fingerprint(w.ctx(), "one"); again != got {
			t.Errorf("%s: it changes by itself", what)
		}
		if len(want) > 0 && got != want[0] || len(want) == 0 && seen[got] != "" {
			t.Errorf("%s has the fingerprint of: %s", what, seen[got])
		}
		seen[got] = what
	}
	write := func(files map[string]string) { gittest.Write(t, lane.Path, files) }
	look("nothing", "")
	write(map[string]string{"ignored/x": "x", "ignored/y": "y"})
	look("what git ignores", "")
	equal(t, "ignored", strings.Join(require.Value(w.Ignored(w.ctx(), "one"))(t), " "), "ignored/")
	for i, change := range []func(){
		func() { write(map[string]string{"b c": "one\n"}) },
		func() { write(map[string]string{"b c": "two\n"}) },
		func() { write(map[string]string{"new/deep/f": "one\n"}) },
		func() { write(map[string]string{"new/deep/f": "two\n"}) },
		func() { w.git(lane.Path, "add", "-A") },
		func() { write(map[string]string{"b c": "six\n"}) },
		func() { w.git(lane.Path, "commit", "-q", "-a", "-m", "one") },
		func() {
			w.git(lane.Path, "checkout", "-q", "--detach")
			w.git(lane.Path, "commit", "-q", "--allow-empty", "-m", "two")
		},
		func() { w.git(lane.Path, "rm", "-q", "a") },
		func() {
			w.git(lane.Path, "checkout", "-q", "-f", "--detach", lane.Base)
			write(map[string]string{"b c": "ours\n"})
			w.git(lane.Path, "commit", "-q", "-a", "-m", "ours")
			_, _ = gittest.Try(lane.Path, "cherry-pick", "wt/one") // it conflicts
		},
		func() { write(map[string]string{"b c": "both\n"}) },
	} {
		change()
		look(fmt.Sprint("change ", i))
	}
	w.git(lane.Path, "reset", "-q", "--hard", lane.Base)
	look("all taken back", "")
	if got, err := w.Fingerprint(w.ctx(), "none"); got != "" || err == nil {
		t.Errorf("of no lane: %q, %v", got, err)
	}
}

// The status of a lane has a limit, and says what is left out. It names a branch that is not the lane's, and conflicts.
func TestTheStatusOfALane(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n"})
	lane := w.conflict()
	status := func() string {
		t.Helper()
		s, err := w.Status(w.ctx(), "one")
		require.NoError(t, err)
		return s
	}
	has := func(s string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if is := strings.HasPrefix(part, "!"); strings.Contains(s, strings.TrimPrefix(part, "!")) == is {
				t.Errorf("the status is %s, want %s", s, part)
			}
		}
	}
	has(status(), "uncommitted: none\n", "commits since its base ", ":\n  ", "!HEAD is not", "!in conflict", "!more")
	for n := range 21 {
		gittest.Write(t, lane.Path, map[string]string{fmt.Sprintf("file-%02d", n): "new\n"})
	}
	has(status(), "uncommitted:\n", "  ?? file-19\n", "  and 1 more\n", "!file-20")
	require.NoError(t, os.Remove(lane.Path+"/file-20"))
	has(status(), "  ?? file-19\n", "!more")
	w.git(lane.Path, "checkout", "-q", "--detach")
	has(status(), "its HEAD is not on its branch: HEAD\n")
	w.git(lane.Path, "checkout", "-q", "wt/one")
	w.git(lane.Path, "clean", "-qf")
	w.ok(w.Merge(w.ctx(), "one", w.git(w.root, "rev-parse", "main")))
	has(status(), "in conflict: a line 1\n")
}

// A submodule that the target's .gitmodules names is committed as its owner has staged it.
func TestASubmoduleIsCommittedAsItIsStaged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n",
		".gitmodules": "[submodule \"sub\"]\n\tpath = sub\n\turl = ./sub\n"})
	lane := w.create("one")
	inner := lane.Path + "/sub"
	w.git(lane.Path, "init", "-q", "sub")
	w.git(inner, "commit", "-q", "--allow-empty", "-m", "staged")
	staged := w.git(inner, "rev-parse", "HEAD")
	w.git(lane.Path, "add", "sub")
	w.git(inner, "commit", "-q", "--allow-empty", "-m", "not staged")
	head, _, err := w.Commit(w.ctx(), "one", "a submodule")
	require.NoError(t, err)
	equal(t, "committed", w.git(lane.Path, "rev-parse", head+":sub"), staged)
	// What is not committed there is committed too, and kept where the lane's end does not reach.
	gittest.Write(t, inner, map[string]string{"x": "x\n"})
	head, _, err = w.Commit(w.ctx(), "one", "a file")
	require.NoError(t, err)
	sub := w.git(lane.Path, "rev-parse", head+":sub")
	equal(t, "kept", w.git(w.root, "show", "refs/muster/submodules/"+sub+":x"), "x")
	// A link to a repository whose files are gone is removed, as any other file that is gone.
	w.git(lane.Path, "update-index", "--add", "--cacheinfo", "160000,"+staged+",other")
	head, _, err = w.Commit(w.ctx(), "one", "no other")
	require.NoError(t, err)
	equal(t, "files", w.git(lane.Path, "ls-tree", "--name-only", head), ".gitmodules\na\nsub")
	// What the base has already is no work of the lane, wherever it points to.
	w.git(w.root, "update-ref", "refs/heads/main", head)
	two := w.create("two")
	w.git(two.Path, "update-index", "--cacheinfo", "160000,"+lane.Base+",sub")
	gittest.Write(t, two.Path, map[string]string{".gitmodules": "\n"})
	w.ok2(w.Commit(w.ctx(), "two", "moved"))
}

// A merge of another commit waits for the one that is under way, and one that git refuses is not begun.
func TestOneMergeAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n"})
	w.conflict()
	stranger := w.git(w.root, "commit-tree", "-m", "stranger", "HEAD^{tree}")
	_, err := w.Merge(w.ctx(), "one", stranger)
	wants(t, err, muster.ErrInvalid, "cannot be merged")
	if conflicts, err := w.Merge(w.ctx(), "one", w.git(w.root, "rev-parse", "main")); err != nil || len(conflicts) != 1 {
		t.Fatal(conflicts, err)
	}
	conflicts, err := w.Merge(w.ctx(), "one", stranger)
	wants(t, err, muster.ErrInvalid, "is under way")
	if len(conflicts) > 0 {
		t.Errorf("conflicts %v", conflicts)
	}
	// The owner takes its own side, which changes nothing: that is a merge too.
	gittest.Write(t, w.root, map[string]string{".worktrees/one/a": "ours\n"})
	w.ok2(w.Commit(w.ctx(), "one", "merge"))
	equal(t, "parents", len(strings.Fields(w.git(w.root, "log", "-1", "--format=%P", "wt/one"))), 2)
	// A merge without conflicts leaves no note, and the next commit finishes it.
	lane := w.create("two", map[string]string{"c": "c\n"})
	w.ok2(w.Commit(w.ctx(), "two", "ours"))
	w.ok(w.Merge(w.ctx(), "two", w.land(map[string]string{"b": "b\n"})))
	if two, err := w.Get(w.ctx(), "two"); err != nil || two.Extra != nil {
		t.Errorf("%+v, %v", two, err)
	}
	w.ok2(w.Commit(w.ctx(), "two", "merge"))
	equal(t, "parents", len(strings.Fields(w.git(lane.Path, "log", "-1", "--format=%P"))), 2)
}

// A symbolic link in conflict is resolved when it points elsewhere than the merge left it.
func TestALinkInConflict(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	link := func(dir, to string) {
		t.Helper()
		_ = os.Remove(dir + "/link") // unless it is the first
		require.NoError(t, os.Symlink(to, dir+"/link"))
	}
	lane := w.create("one")
	link(lane.Path, "ours")
	w.ok2(w.Commit(w.ctx(), "one", "ours"))
	link(w.root, "theirs")
	w.git(w.root, "add", "link")
	w.git(w.root, "commit", "-q", "-m", "theirs")
	w.ok(w.Merge(w.ctx(), "one", w.git(w.root, "rev-parse", "main")))
	_, _, err := w.Commit(w.ctx(), "one", "too early")
	wants(t, err, muster.ErrInvalid, "not resolved: link (no marker")
	link(lane.Path, "both")
	w.ok2(w.Commit(w.ctx(), "one", "both"))
}
