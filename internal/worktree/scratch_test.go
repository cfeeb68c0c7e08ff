package worktree_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"muster"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/internal/worktree"
)

// A scratch checkout that git cannot move is kept aside with all its files, each time under another name, and a new one
// is made. What is kept is connected to the repository no more, unless it has a repository of its own.
func TestABrokenScratchCheckoutIsKeptAside(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n"})
	first := w.git(w.root, "rev-parse", "HEAD")
	w.git(w.root, "commit", "-q", "--allow-empty", "-m", "two")
	second := w.git(w.root, "rev-parse", "HEAD")
	dir, err := w.Scratch(w.ctx(), "alice", first)
	require.NoError(t, err)
	for n, breaks := range []func(){
		func() { // git knows the checkout, and cannot change it
			gittest.Write(t, w.git(dir, "rev-parse", "--absolute-git-dir"), map[string]string{"index": "no index"})
		},
		func() {
			require.NoError(t, os.Remove(dir+"/.git"))
			w.git(dir, "init", "-q")
		},
	} {
		breaks()
		gittest.Write(t, dir, map[string]string{"mine": "mine\n"})
		returns(t, dir)(w.Scratch(w.ctx(), "alice", second))
		if w.git(dir, "rev-parse", "HEAD") != second || gittest.Read(t, dir, "mine") != "" {
			t.Error("it is not made anew")
		}
		aside := []string{dir + ".aside-1", dir + ".aside-2"}[n]
		equal(t, aside, gittest.Read(t, aside, "mine"), "mine\n")
		if _, err := os.Lstat(aside + "/.git"); os.IsNotExist(err) == (n == 1) {
			t.Errorf("the link of %s: %v", aside, err)
		}
	}
}

// A link in the place of a scratch checkout is moved aside, and what it leads to stays as it is: git would give up what
// was changed there. Nothing is made where a link in the place of their directory leads.
func TestAScratchCheckoutThatIsALink(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n"})
	first := w.git(w.root, "rev-parse", "HEAD")
	w.git(w.root, "commit", "-q", "--allow-empty", "-m", "two")
	users := filepath.Join(t.TempDir(), "users")
	w.git(w.root, "worktree", "add", "-q", "-b", "users", users)
	gittest.Write(t, users, map[string]string{"a": "changed\n"})
	scratch := filepath.Join(w.root, ".team", "scratch")
	require.NoError(t, errors.Join(os.MkdirAll(scratch, 0o700), os.Symlink(users, filepath.Join(scratch, "alice"))))
	dir, err := w.Scratch(w.ctx(), "alice", first)
	if err != nil || w.git(dir, "rev-parse", "HEAD") != first {
		t.Fatal(dir, err)
	}
	if gittest.Read(t, users, "a") != "changed\n" || w.git(users, "rev-parse", "--abbrev-ref", "HEAD") != "users" {
		t.Error("the user's checkout was changed")
	}
	moved := filepath.Join(t.TempDir(), "moved")
	require.NoError(t, errors.Join(os.Rename(dir, moved), os.Symlink(moved, dir)))
	gittest.Write(t, moved, map[string]string{"a": "changed\n"})
	_, err = w.Scratch(w.ctx(), "alice", w.git(w.root, "rev-parse", "HEAD"))
	if require.NoError(t, err); gittest.Read(t, moved, "a") != "changed\n" {
		t.Error("a checkout that was moved elsewhere was changed")
	}
	elsewhere := t.TempDir()
	require.NoError(t, errors.Join(os.RemoveAll(scratch), os.Symlink(elsewhere, scratch)))
	_, err = w.Scratch(w.ctx(), "alice", first)
	wants(t, err, muster.ErrUnavailable, "symbolic link")
	if left, err := os.ReadDir(elsewhere); err != nil || len(left) > 0 {
		t.Errorf("made elsewhere: %v, %v", left, err)
	}
}

// A checkout that cannot be made is told, and so is a call that has ended.
func TestAScratchCheckoutThatCannotBeMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n"})
	wants(t, fault(w.Scratch(w.ctx(), "alice", strings.Repeat("1", 40))), muster.ErrUnavailable, "cannot be made")
	head := w.git(w.root, "rev-parse", "HEAD")
	dir, err := w.Scratch(w.ctx(), "alice", head)
	require.NoError(t, err)
	require.NoError(t, os.Remove(dir+"/.git")) // so that only git can tell what it is
	ctx, cancel := context.WithCancel(w.ctx())
	cancel()
	for _, member := range []muster.Name{"alice", "bob"} {
		if _, err := w.Scratch(ctx, member, head); !errors.Is(err, context.Canceled) || errors.Is(err, muster.ErrUnavailable) {
			t.Errorf("%s: %v", member, err)
		}
	}
	if aside, _ := filepath.Glob(dir + ".aside-*"); len(aside) > 0 {
		t.Errorf("moved aside: %v", aside)
	}
}

// Several calls for one member at once make one checkout.
func TestOneScratchCheckoutAMember(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n"})
	head := w.git(w.root, "rev-parse", "HEAD")
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if dir, err := w.Scratch(w.ctx(), "alice", head); err != nil || gittest.Read(t, dir, "a") != "a\n" {
				t.Errorf("%s, %v", dir, err)
			}
		})
	}
	all.Wait()
	if found, _ := filepath.Glob(w.root + "/.team/scratch/*"); len(found) != 1 {
		t.Errorf("made %v", found)
	}
}

// scratchAt makes alice's scratch checkout at HEAD, and returns its directory.
func (w *world) scratchAt() string {
	w.t.Helper()
	dir, err := w.Scratch(w.ctx(), "alice", w.git(w.root, "rev-parse", "HEAD"))
	require.NoError(w.t, err)
	return dir
}

// land commits files on the user's branch, which stands for the target here.
func (w *world) land(files map[string]string) (tip string) {
	w.t.Helper()
	gittest.Write(w.t, w.root, files)
	w.git(w.root, "add", "-A")
	w.git(w.root, "commit", "-qm", "landed")
	return w.git(w.root, "rev-parse", "HEAD")
}

// What a member changes, adds, deletes or commits in its scratch checkout counts until the target has it. What git
// ignores does not.
func TestChangesInAScratchCheckout(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		do   func(w *world, dir string)
		want string
	}{
		"nothing": {func(*world, string) {}, ""},
		"an edit": {func(w *world, dir string) { gittest.Write(w.t, dir, map[string]string{"a": "mine\n"}) }, "a"},
		"a new file": {func(w *world, dir string) {
			gittest.Write(w.t, dir, map[string]string{"new": "mine\n", "dir/new": "mine\n"})
		}, "dir/new new"},
		"a file in a directory that was empty": {func(w *world, dir string) {
			for range 2 {
				require.NoError(w.t, os.MkdirAll(filepath.Join(dir, "empty", "too"), 0o755))
				if files, err := w.ScratchChanges(w.ctx(), "alice", []string{"HEAD"}); err != nil || len(files) > 0 {
					w.t.Errorf("an empty directory: %v, %v", files, err)
				}
			}
			gittest.Write(w.t, dir, map[string]string{"empty/too/new": "mine\n"})
		}, "empty/too/new"},
		"a deletion": {func(w *world, dir string) { w.git(dir, "rm", "-q", "a") }, "a"},
		"a commit": {func(w *world, dir string) {
			gittest.Write(w.t, dir, map[string]string{"a": "mine\n"})
			w.git(dir, "commit", "-qam", "mine")
		}, "a"},
		"a commit on a branch of its own": {func(w *world, dir string) {
			w.git(dir, "switch", "-qc", "own")
			gittest.Write(w.t, dir, map[string]string{"a": "mine\n"})
			w.git(dir, "commit", "-qam", "mine")
		}, "a"},
		"an ignored file":     {func(w *world, dir string) { gittest.Write(w.t, dir, map[string]string{"x.o": "mine\n"}) }, ""},
		"what was taken back": {func(w *world, dir string) { w.git(dir, "commit", "-q", "--allow-empty", "-m", "none") }, ""},
		"a conflict": {func(w *world, dir string) {
			gittest.Write(w.t, dir, map[string]string{"b": "mine\n"})
		}, "b"},
		"what the target has too": {func(w *world, dir string) { gittest.Write(w.t, dir, map[string]string{"b": "landed\n"}) }, ""},
	} {
		w := newWorld(t, map[string]string{"a": "a\n", ".gitignore": "*.o\n"})
		dir := w.scratchAt()
		if files, err := w.ScratchChanges(w.ctx(), "alice", []string{"HEAD"}); err != nil || len(files) > 0 {
			t.Errorf("%s: at the beginning %v, %v", name, files, err)
		}
		c.do(w, dir)
		if files, err := w.ScratchChanges(w.ctx(), "alice", []string{"HEAD"}); err != nil || c.want != "" && len(files) == 0 {
			t.Errorf("%s: before the landing %v, %v", name, files, err)
		}
		tip := w.land(map[string]string{"b": "landed\n"})
		files, err := w.ScratchChanges(w.ctx(), "alice", []string{"HEAD~", tip}) // it may be at either
		if got := strings.Join(files, " "); err != nil || got != c.want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
		again, err := w.ScratchChanges(w.ctx(), "alice", []string{"HEAD~"}) // the target was moved back
		if err != nil || name == "what the target has too" && len(again) == 0 {
			t.Errorf("%s: where the target has it no more %v, %v", name, again, err)
		}
		all, err := w.Unlanded(w.ctx(), []string{tip, "HEAD~"}, nil)
		if err != nil || (len(all) > 0) != (c.want != "") {
			t.Errorf("%s: at the end %+v, %v", name, all, err)
		}
		if len(all) == 0 {
			continue
		}
		if all[0].Member != "alice" || all[0].Ref == "" || !slices.Equal(all[0].Files, files) || all[0].Err != nil {
			t.Errorf("%s: %+v", name, all[0])
		}
		if got := w.git(w.root, "diff", "--name-only", "HEAD~", all[0].Ref, "--", "a", "b", "new", "dir", "empty"); strings.ReplaceAll(got, "\n", " ") != c.want {
			t.Errorf("%s: the archive has %q", name, got)
		}
		if left := w.git(dir, "status", "--porcelain"); left != "" || w.git(dir, "rev-parse", "HEAD") != tip {
			t.Errorf("%s: it is not cleared: %s", name, left)
		}
		if all, err = w.Unlanded(w.ctx(), []string{tip}, nil); err != nil || len(all) > 0 {
			t.Errorf("%s: and once more %+v, %v", name, all, err)
		}
	}
}

// A scratch checkout that moves to a new commit loses nothing: what was changed in it is archived first.
func TestAScratchCheckoutThatMovesLosesNothing(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]map[string]string{
		"an edit":                    {"a": "mine\n"},
		"a file that is in the way":  {"b": "mine\n"},
		"a file that stays as it is": {"c": "mine\n"},
		"a commit":                   {"mine": "mine\n"},
	} {
		w := newWorld(t, map[string]string{"a": "a\n"})
		dir := w.scratchAt()
		gittest.Write(t, dir, files)
		if name == "a commit" {
			w.git(dir, "add", "-A")
			w.git(dir, "commit", "-qm", "mine")
		}
		tip := w.land(map[string]string{"b": "landed\n"})
		if again, err := w.Scratch(w.ctx(), "alice", tip); err != nil || again != dir || gittest.Read(t, dir, "b") != "landed\n" {
			t.Fatalf("%s: %s, %v", name, again, err)
		}
		kept := w.git(w.root, "for-each-ref", "--format=%(refname)", "refs/muster/archive/")
		if name == "a file that stays as it is" {
			if kept != "" || gittest.Read(t, dir, "c") != "mine\n" {
				t.Errorf("%s: archived %s", name, kept)
			}
			continue
		}
		for file, text := range files {
			if got := w.git(w.root, "show", kept+":"+file); got+"\n" != text {
				t.Errorf("%s: the archive %s has %q", name, kept, got)
			}
		}
		all, err := w.Unlanded(w.ctx(), []string{tip}, []worktree.Archived{{Lane: "scratch-alice", Ref: kept}})
		if err != nil || len(all) != 1 || all[0].Ref != kept {
			t.Errorf("%s: at the end %+v, %v", name, all, err)
		}
	}
}

// A lane, and the archive of one, counts when the target does not have what is in it.
func TestWhatLanesHoldAtTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n"})
	var archived []worktree.Archived
	for name, files := range map[muster.Name]map[string]string{
		"empty": nil, "same": {"b": "landed\n"}, "other": {"c": "mine\n"}, "gone": {"d": "mine\n"}, "gone-same": {"b": "landed\n"},
		"late": {"e": "mine\n"}, "landed": {"f": "mine\n"},
	} {
		lane, err := w.Create(w.ctx(), name, 0, "")
		require.NoError(t, err)
		gittest.Write(t, lane.Path, files)
		if name == "landed" {
			w.ok2(w.Commit(w.ctx(), name, "which the target has had, and has no more"))
		}
		if slices.Contains([]muster.Name{"gone", "gone-same", "late", "landed"}, name) {
			ref, err := w.Archive(w.ctx(), name)
			require.NoError(t, err)
			archived = append(archived, worktree.Archived{Lane: name, Ref: ref, HasLanded: name[0] == 'l'})
		}
	}
	tip := w.land(map[string]string{"b": "landed\n"})
	all, err := w.Unlanded(w.ctx(), []string{tip}, archived)
	var got []string
	for _, l := range all {
		got = append(got, string(l.Lane)+":"+strings.Join(l.Files, ","))
	}
	slices.Sort(got)
	if want := "gone:d late:e other:c"; err != nil || strings.Join(got, " ") != want {
		t.Errorf("%v, want %s; %v", got, want, err)
	}
}

// What has more than 256 MB is told, and stays in its checkout.
func TestALargeScratchCheckoutStays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	dir := w.scratchAt()
	gittest.Write(t, dir, map[string]string{"large": ""})
	require.NoError(t, os.Truncate(dir+"/large", 257<<20))
	tips := []string{w.git(w.root, "rev-parse", "HEAD")}
	if files, err := w.ScratchChanges(w.ctx(), "alice", tips); err != nil || !slices.Equal(files, []string{"large"}) {
		t.Errorf("%v, %v", files, err)
	}
	all, err := w.Unlanded(w.ctx(), tips, nil)
	require.NoError(t, err)
	if len(all) != 1 || all[0].Err == nil || all[0].Ref != "" || !exists(dir+"/large") {
		t.Errorf("%+v", all)
	}
}
