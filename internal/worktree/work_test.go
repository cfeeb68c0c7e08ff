package worktree_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/internal/git"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/internal/treediff"
	"muster/internal/worktree"
)

func TestCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n", "b": "b\n", ".gitignore": "*.log\n"})
	lane := w.create("one")
	ctx := w.ctx()
	head, changed, err := w.Commit(ctx, "one", "nothing")
	if err != nil || changed || head != lane.Base {
		t.Errorf("nothing to commit: %s %v %v", head, changed, err)
	}
	// Added while the team works. The project ignores the same.
	gittest.Write(t, w.root, map[string]string{".git/info/exclude": gittest.Read(t, w.root, ".git/info/exclude") + "\n*.log\n"})
	gittest.Write(t, lane.Path, map[string]string{"a": "a2\n", "dir/new ü.txt": "new\n", "x.log": "noise\n"})
	w.git(lane.Path, "rm", "-q", "b")
	returns(t, true)(w.Changed(ctx, "one"))
	head, changed, err = w.Commit(ctx, "one", "Work\n\n# not a comment\n")
	if err != nil || !changed {
		t.Fatal(head, changed, err)
	}
	equal(t, "commit", w.git(lane.Path, "log", "-1", "--format=%an <%ae> %B", head),
		"Ann Tester <ann@example.com> Work\n\n# not a comment")
	equal(t, "files", w.git(lane.Path, "-c", "core.quotePath=false", "ls-tree", "-r", "--name-only", head),
		".gitignore\na\ndir/new ü.txt")
	equal(t, "HEAD and its parent", w.git(lane.Path, "rev-parse", "HEAD", "HEAD~"), head+"\n"+lane.Base)
	if again, _, err := w.Commit(ctx, "one", "again"); err != nil || again != head {
		t.Error(again, err)
	}
	if s, err := w.Status(ctx, "one"); err != nil || !strings.Contains(s, "Work") || !strings.Contains(s, "uncommitted: none") {
		t.Errorf("status %q, %v", s, err)
	}
	// What the project does not ignore, and somebody hides meanwhile, is not left out.
	gittest.Write(t, w.root, map[string]string{".git/info/exclude": "*.log\n*.hid\n", ".worktrees/one/x.hid": "hidden\n"})
	head, _, err = w.Commit(ctx, "one", "hidden")
	require.NoError(t, err)
	equal(t, "what somebody has hidden", w.git(lane.Path, "show", head+":x.hid"), "hidden")
}

// A lane is as sparse as the user's checkout. What its owner makes outside is committed, and what it does not see
// stays.
func TestCommitOutsideASparseCheckout(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"in/a": "a\n", "out/b": "b\n", "out/c": "c\n"})
	w.git(w.root, "sparse-checkout", "set", "in")
	w = openWorld(t, w.root, worktree.Options{})
	lane := w.create("one")
	equal(t, "not sparse", exists(lane.Path+"/out/b"), false)
	gittest.Write(t, lane.Path, map[string]string{"out/new": "new\n", "out/c": "mine\n"})
	head, _, err := w.Commit(w.ctx(), "one", "Work\n")
	require.NoError(t, err)
	equal(t, "committed", w.git(w.root, "diff", "--name-status", lane.Base, head), "M\tout/c\nA\tout/new")
}

// Changes of files that git was told to look past are committed.
func TestCommitOfFilesThatGitLooksPast(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n", "b": "b\n", "c": "c\n"})
	lane, two := w.create("one"), w.create("two")
	w.git(lane.Path, "update-index", "--assume-unchanged", "a")
	w.git(two.Path, "update-index", "--skip-worktree", "b")
	returns(t, true)(w.Changed(w.ctx(), "one"))
	returns(t, true)(w.Changed(w.ctx(), "two"))
	w.git(lane.Path, "update-index", "--skip-worktree", "b", "c")
	gittest.Write(t, lane.Path, map[string]string{"a": "a2\n", "b": "b2\n"})
	require.NoError(t, os.Remove(lane.Path+"/c"))
	head, _, err := w.Commit(w.ctx(), "one", "Work\n")
	require.NoError(t, err)
	equal(t, "committed", w.git(w.root, "diff", "--name-status", lane.Base, head), "M\ta\nM\tb\nD\tc")
}

// A git that was killed in the lane, its owner's or the runtime's, left its lock.
func TestCommitPastALockThatWasLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n"})
	w.create("one", map[string]string{"a": "a2\n"})
	lock := w.git(w.root+"/.worktrees/one", "rev-parse", "--absolute-git-dir") + "/index.lock"
	require.NoError(t, os.WriteFile(lock, nil, 0o600))
	at := time.Now().Add(-9900 * time.Millisecond)
	require.NoError(t, os.Chtimes(lock, at, at))
	if _, changed, err := w.Commit(w.ctx(), "one", "Work\n"); err != nil || !changed {
		t.Error(changed, err)
	}
}

func TestAnInnerRepositoryIsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n"})
	lane := w.create("one")
	inner := lane.Path + "/vendor/inner"
	require.NoError(t, os.MkdirAll(inner, 0o755))
	w.git(inner, "init", "-q")
	gittest.Write(t, inner, map[string]string{"x": "x\n"})
	for range 2 { // the second time it has a commit
		_, _, err := w.Commit(w.ctx(), "one", "x")
		wants(t, err, muster.ErrInvalid, "vendor/inner")
		_, err = w.Archive(w.ctx(), "one")
		wants(t, err, muster.ErrInvalid, "cannot verify")
		wants(t, err, muster.ErrInvalid, "vendor/inner")
		w.git(inner, "add", "-A")
		w.git(inner, "commit", "-q", "--allow-empty", "-m", "inner")
	}
	// The owner's own git makes a link of it.
	w.git(lane.Path, "add", "-A")
	w.git(lane.Path, "commit", "-q", "-m", "linked")
	gittest.Write(t, lane.Path, map[string]string{"late": "late\n"})
	_, _, err := w.Commit(w.ctx(), "one", "x")
	wants(t, err, muster.ErrInvalid, "vendor/inner")
	w.git(lane.Path, "rm", "-q", "--cached", "vendor/inner")
	require.NoError(t, os.RemoveAll(inner+"/.git"))
	head, _, err := w.Commit(w.ctx(), "one", "files")
	require.NoError(t, err)
	equal(t, "the content", w.git(lane.Path, "show", head+":vendor/inner/x"), "x")
}

// A merge with every kind of conflict: markers, binary, deleted there. A line that begins with a blank, or with many
// signs and no label, is no marker.
func TestMerge(t *testing.T) {
	t.Parallel()
	const like = " indented\n<<<<<<<<\n> quoted\n"
	w := newWorld(t, map[string]string{"text": like + "1\n2\n3\n", "bin": "\x00one", "gone": "gone\n", "calm": "calm\n"})
	ctx := w.ctx()
	lane := w.create("one")
	w.git(w.root, "rm", "-q", "gone")
	w.land(map[string]string{"text": like + "1 theirs\n2\n3\n", "bin": "\x00theirs", "fresh": "fresh\n"})
	theirs, _ := w.repo.Head(ctx)
	gittest.Write(t, lane.Path, map[string]string{"text": like + "1 ours\n2\n3\n", "bin": "\x00ours", "gone": "ours\n"})
	wants(t, fault(w.Merge(ctx, "one", theirs)), muster.ErrInvalid, "uncommitted")
	mine, _, err := w.Commit(ctx, "one", "ours")
	require.NoError(t, err)
	base := func(_, base string, err error) string { t.Helper(); require.NoError(t, err); return base }
	equal(t, "compared with", base(worktree.Content(ctx, w.Lanes, "one", theirs)), lane.Base)
	for range 2 { // the second time as after a crash
		conflicts, err := w.Merge(ctx, "one", w.git(w.root, "rev-parse", "main"))
		if err != nil || strings.Join(conflicts, " ") != "bin gone text" {
			t.Fatalf("conflicts %v, %v", conflicts, err)
		}
	}
	equal(t, "compared with", base(worktree.Content(ctx, w.Lanes, "one", theirs)), theirs)
	equal(t, "what both had", strings.Contains(gittest.Read(t, lane.Path, "text"), "\n||||||| "), true)
	says := func(want string) {
		t.Helper()
		open, err := w.Unresolved(ctx, "one")
		if got := fmt.Sprint(open); err != nil || got != want {
			t.Fatalf("open: %s, %v; want %s", got, err, want)
		}
		if _, _, err := w.Commit(ctx, "one", "merge"); want != "[]" {
			wants(t, err, muster.ErrInvalid, "not resolved")
		}
	}
	says("[bin (no marker: choose what it should be) gone (no marker: choose what it should be) text line 4]")
	w.git(lane.Path, "add", "bin")
	says("[gone (no marker: choose what it should be) text line 4]")
	require.NoError(t, os.Remove(lane.Path+"/gone"))
	w.ok(w.Merge(ctx, "one", theirs)) // it stays decided
	says("[text line 4]")
	// Added with its markers still in it: git believes it, we do not.
	w.git(lane.Path, "add", "text")
	says("[text line 4]")
	gittest.Write(t, lane.Path, map[string]string{"text": like + "1 both\n2\n3\n"})
	head, changed, err := w.Commit(ctx, "one", "merged")
	if err != nil || !changed {
		t.Fatal(err)
	}
	equal(t, "parents", w.git(lane.Path, "log", "-1", "--format=%P"), mine+" "+theirs)
	equal(t, "files", w.git(lane.Path, "ls-tree", "-r", "--name-only", head), "bin\ncalm\nfresh\ntext")
	returns(t, "calm")(treediff.LineOf(ctx, w.repo, head, "calm", 1))
	wants(t, fault(treediff.LineOf(ctx, w.repo, head, "calm", 0)), muster.ErrInvalid, "no line 0")
	says("[]")
	if got, err := w.Get(ctx, "one"); err != nil || got.Extra != nil {
		t.Errorf("left in the row: %v, %v", got.Extra, err)
	}
	if conflicts, err := w.Merge(ctx, "one", theirs); err != nil || len(conflicts) != 0 {
		t.Errorf("merged already: %v, %v", conflicts, err)
	}
	if again, _, err := w.Commit(ctx, "one", "nothing"); err != nil || again != head {
		t.Errorf("a merge of nothing was committed: %s, %v", again, err)
	}
}

func TestArchiveKeepsEverything(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n", "b": "b\n", ".gitignore": "*.log\n"})
	ctx := w.ctx()
	before := gittest.Checkout(t, w.root)
	lane := w.create("one", map[string]string{"a": "committed\n"})
	mine, _, err := w.Commit(ctx, "one", "work")
	require.NoError(t, err)
	gittest.Write(t, lane.Path, map[string]string{"b": "staged\n", "untracked/file": "untracked\n", "x.log": "noise\n"})
	w.git(lane.Path, "add", "b")
	gittest.Write(t, lane.Path, map[string]string{"b": "changed after\n"})
	require.NoError(t, os.Remove(lane.Path+"/.gitignore"))
	gittest.Write(t, lane.Path, map[string]string{".gitignore": "*.log\n# more\n"})

	index := w.git(lane.Path, "ls-files", "-s")
	ref, err := w.Preserve(ctx, "one")
	if err != nil || ref != "refs/muster/archive/one-1" {
		t.Fatal(ref, err)
	}
	if w.git(lane.Path, "ls-files", "-s") != index || w.git(lane.Path, "rev-parse", "HEAD") != mine {
		t.Error("preserving disturbed the lane")
	}
	equal(t, "leases of temporary directories", w.leases(), "")
	// The same content in another commit has the same archive.
	w.git(w.root, "update-ref", ref, w.git(w.root, "commit-tree", ref+"^{tree}", "-p", mine, "-m", "at another time"))
	wants(t, w.Remove(ctx, "one", false), muster.ErrHeld, "work that has not landed")
	returns(t, ref)(w.Archive(ctx, "one"))
	for file, want := range map[string]string{"a": "committed", "b": "changed after", "untracked/file": "untracked", ".gitignore": "*.log\n# more"} {
		if got := w.git(w.root, "show", ref+":"+file); got != want {
			t.Errorf("%s in the archive: %q", file, got)
		}
	}
	equal(t, "the archive does not stand on the lane's commits", w.git(w.root, "rev-parse", ref+"^"), mine)
	w.tidy()
	wants(t, fault(w.Archive(ctx, "one")), muster.ErrNotFound, "one")
	equal(t, "the user's checkout has changed", gittest.Checkout(t, w.root), before)
	// The same name again, with other work: another ref.
	lane = w.create("one")
	gittest.Write(t, lane.Path, map[string]string{"a": "other\n"})
	require.NoError(t, w.Remove(ctx, "one", true))
	equal(t, "the content", w.git(w.root, "show", "refs/muster/archive/one-2:a"), "other")
	// Nothing beyond the base: no ref.
	w.create("two")
	returns(t, "")(w.Archive(ctx, "two"))
	w.tidy()
	if events := fmt.Sprint(w.events()); !strings.Contains(events, "worktree.remove.before one worktree.remove.after one") {
		t.Errorf("events %s", events)
	}
}

func TestRemoveKeepsWhatIsUnclear(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n"})
	ctx := w.ctx()
	lane := w.create("one", map[string]string{"mine": "mine\n"})
	require.NoError(t, w.Keep(ctx, "one"))
	wants(t, w.Remove(ctx, "one", false), muster.ErrHeld, "is kept")
	// Its index cannot be read: nobody can tell what it holds.
	gitdir := w.git(lane.Path, "rev-parse", "--git-dir")
	require.NoError(t, os.WriteFile(gitdir+"/index", []byte("no index"), 0o644))
	wants(t, fault(w.Changed(ctx, "one")), muster.ErrInvalid, "cannot verify")
	wants(t, w.Remove(ctx, "one", true), muster.ErrInvalid, "cannot verify")
	equal(t, "what it holds", gittest.Read(t, lane.Path, "mine"), "mine\n")
	require.NoError(t, os.Remove(gitdir+"/index")) // without one all files are new to git
	require.NoError(t, w.Remove(ctx, "one", true))
	w.tidy()
	equal(t, "the content", w.git(w.root, "show", "refs/muster/archive/one-1:mine"), "mine")
}

// What is staged by name is what there is, whatever the names look like to git, and also where one is gone by then.
func TestCommitStagesFilesByName(t *testing.T) {
	w := newWorld(t, map[string]string{"a": "a\n", "gone": "x\n", "dir/file": "x\n", "file": "x\n"})
	lane := w.create("one")
	for _, name := range []string{"gone", "dir", "file"} {
		require.NoError(t, os.RemoveAll(filepath.Join(lane.Path, name)))
	}
	gittest.Write(t, lane.Path, map[string]string{"*": "star\n", ":(top)x": "magic\n", "dir": "a file now\n",
		"file/inside": "a directory now\n", "late": "late\n"})
	// Somebody removes a file after git was asked what there is.
	err := w.with("--pathspec-from-file", "rm -f '"+filepath.Join(lane.Path, "late")+"'", func() error {
		_, _, err := w.Commit(w.ctx(), "one", "x")
		return err
	})
	require.NoError(t, err)
	if got := strings.ReplaceAll(w.git(lane.Path, "ls-tree", "-r", "--name-only", "HEAD"), "\n", " "); got != "* :(top)x a dir file/inside" {
		t.Errorf("the lane's commit has %s", got)
	}
	equal(t, "left over", w.git(lane.Path, "status", "--porcelain"), "")
}

// A file that keeps its size and is changed in the second in which the index was written is in the tree of the lane.
func TestAChangeInTheSecondOfTheCheckout(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "before\n"})
	// Nothing but the second of the last change tells such a file from the old one.
	w.git(w.root, "config", "core.trustctime", "false")
	w.git(w.root, "config", "core.checkStat", "minimal")
	lane := w.create("one")
	at := time.Now().Add(-time.Hour).Truncate(time.Second)
	old := func(path string) { require.NoError(t, os.Chtimes(path, at, at)) }
	old(lane.Path + "/a")
	w.git(lane.Path, "update-index", "--refresh")
	gittest.Write(t, lane.Path, map[string]string{"a": "behind\n"})
	old(lane.Path + "/a")
	old(w.git(lane.Path, "rev-parse", "--absolute-git-dir") + "/index")
	tree, _, err := worktree.Content(w.ctx(), w.Lanes, lane.Name, lane.Base)
	require.NoError(t, err)
	equal(t, "the tree", w.git(w.root, "show", tree+":a"), "behind")
}

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

// Files of the team's state do not land, in whatever way their directory is written. To delete one does no harm.
func TestTheTeamsStateDoesNotLand(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{".team/old": ""})
	lane := w.create("one")
	w.git(lane.Path, "rm", "-q", ".team/old")
	w.ok2(w.Commit(w.ctx(), "one", "less"))
	for _, file := range []string{".team/x", ".TASKS. /x", ".work\u200btrees/x"} {
		gittest.Write(t, lane.Path, map[string]string{file: ""})
		w.git(lane.Path, "add", "-f", file)
		w.git(lane.Path, "commit", "-q", "-m", "more")
		_, _, err := w.Commit(w.ctx(), "one", "x")
		wants(t, err, muster.ErrInvalid, "would land in the directories of the team's state")
		w.git(lane.Path, "rm", "-q", file)
	}
}

// A temporary commit has what a lane holds now, without large files. Its id depends on nothing else.
func TestATemporaryCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n", "gone": "gone\n", ".gitignore": "*.log\n"})
	lane, two, temp := w.conflict(), w.create("two"), t.TempDir()
	mine, main := w.git(lane.Path, "rev-parse", "HEAD"), w.git(w.root, "rev-parse", "main")
	take := func(name muster.Name, isBase bool) string {
		t.Helper()
		commit, is, err := worktree.TemporaryCommit(w.ctx(), w.Lanes, w.repo, w.repo.CommonDir(), name, temp)
		require.NoError(t, err)
		equal(t, "it holds nothing", is, isBase)
		return commit
	}
	refused := func(name muster.Name) {
		t.Helper()
		_, _, err := worktree.TemporaryCommit(w.ctx(), w.Lanes, w.repo, w.repo.CommonDir(), name, temp)
		wants(t, err, muster.ErrUnavailable, "not finished, or too much")
	}
	equal(t, "of commits", take("one", false), mine)
	equal(t, "of nothing", take("two", true), two.Base)
	gittest.Write(t, lane.Path, map[string]string{"a": "now\n", "new/b": "b\n", "x.log": "",
		"large": strings.Repeat("x", 1<<20+1)})
	require.NoError(t, os.Remove(lane.Path+"/gone"))
	gittest.Write(t, temp, map[string]string{"index.lock": ""}) // of a git that was killed
	commit := take("one", false)
	equal(t, "changed", w.git(w.root, "diff", "--name-status", mine, commit), "M\ta\nD\tgone\nA\tnew/b")
	equal(t, "made", w.git(w.root, "log", "-1", "--format=%at %ct %P", commit), "1000000000 1000000000 "+mine)
	equal(t, "staged", w.git(lane.Path, "diff", "--cached", "--name-only"), "")
	mine, _, err := w.Commit(w.ctx(), "one", "all")
	require.NoError(t, err)
	w.ok(w.Merge(w.ctx(), "one", main))
	refused("one")
	gittest.Write(t, lane.Path, map[string]string{"a": "both\n"})
	w.git(lane.Path, "add", "a")
	equal(t, "of a merge", w.git(w.root, "log", "-1", "--format=%P", take("one", false)), mine+" "+main)
	for n, text := range map[int]string{33: strings.Repeat("x", 1<<20), 2001: ""} {
		for i := range n {
			gittest.Write(t, two.Path, map[string]string{fmt.Sprint(i): text})
		}
		refused("two")
		w.git(two.Path, "clean", "-fdq")
	}
}

// A file of holes that is longer than all that may land is refused before git reads it.
func TestAFileOfHolesIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, map[string]string{"a": "a\n"})
	lane := w.create("one")
	require.NoError(t, os.Truncate(filepath.Join(lane.Path, "a"), git.MaxUnpacked+1))
	_, _, err := w.Commit(w.ctx(), "one", "x")
	wants(t, err, muster.ErrInvalid, "the largest of them is a")
}
