package delivery_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster"
	"muster/internal/delivery"
	"muster/internal/git"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
)

// snapshot returns the tree of a snapshot of dir.
func snapshot(t *testing.T, dir string) string {
	t.Helper()
	repo := require.Value(git.Open(t.Context(), dir))(t)
	return require.Value(delivery.Snapshot(t.Context(), repo))(t)
}

// What a snapshot has is what the user could commit, as their git stores it: also with a split index, a new file that
// is only intended to be added, and line ends that their git converts. Nothing of the user's is changed.
func TestSnapshotIsWhatTheUserCouldCommit(t *testing.T) {
	t.Parallel()
	dir := gittest.Repo(t, map[string]string{"a": "a\n", "b": "b\n", "Cargo.toml": "", ".gitignore": "ignored\n",
		".gitattributes": "*.txt text eol=crlf\n"})
	gittest.Git(t, dir, "config", "core.splitIndex", "true")
	gittest.Git(t, dir, "update-index", "--split-index")
	gittest.Write(t, dir, map[string]string{"a": "changed\n", "intended": "i\n", "x.txt": "one\r\ntwo\r\n", "ignored": "i\n",
		"node_modules/m/i.js": "m\n", "target/debug/x": "x\n", "cache/CACHEDIR.TAG": "Signature: 8a477f597d28d172789f06886806bc55\n",
		"forced/ignored": "f\n", ".team/run.json": "{}\n"})
	gittest.Git(t, dir, "add", "-N", "intended")
	gittest.Git(t, dir, "add", "-f", "forced/ignored")
	gittest.Git(t, dir, "rm", "-q", "b")
	repo := require.Value(git.Open(t.Context(), dir))(t)
	want := []string{"a", "b", "forced/ignored", "intended", "x.txt"}
	if got := require.Value(delivery.Uncommitted(t.Context(), repo))(t); !slices.Equal(got, want) {
		t.Errorf("uncommitted are %q", got)
	}
	before, shared := gittest.Checkout(t, dir), sharedIndexes(t, dir)
	tree := snapshot(t, dir)
	commit := gittest.Git(t, dir, "commit-tree", "-p", "main", "-m", "snapshot", tree)
	if is, err := delivery.IsSnapshot(t.Context(), repo, commit); err != nil || !is {
		t.Errorf("IsSnapshot: %v, %v", is, err)
	}
	if is, err := delivery.IsSnapshot(t.Context(), repo, "main"); err != nil || is {
		t.Errorf("IsSnapshot of main: %v, %v", is, err)
	}
	if after := gittest.Checkout(t, dir); after != before {
		t.Errorf("the checkout was\n%s\nand is\n%s", before, after)
	}
	if after := sharedIndexes(t, dir); !slices.Equal(after, shared) {
		t.Errorf("the shared indexes were %q and are %q", shared, after)
	}
	files := gittest.Git(t, dir, "ls-tree", "-r", "--name-only", tree)
	if files != ".gitattributes\n.gitignore\nCargo.toml\na\nforced/ignored\nintended\nx.txt" {
		t.Errorf("it has %q", files)
	}
	if text := gittest.Git(t, dir, "cat-file", "blob", tree+":x.txt"); text != "one\ntwo" {
		t.Errorf("x.txt has %q", text)
	}
}

func sharedIndexes(t *testing.T, dir string) []string {
	t.Helper()
	return require.Value(filepath.Glob(filepath.Join(dir, ".git", "sharedindex.*")))(t)
}

// withWork makes the snapshot a commit on main's and puts work on top of it. It returns both.
func withWork(t *testing.T, dir string) (commit, tip string) {
	t.Helper()
	commit = gittest.Git(t, dir, "commit-tree", "-p", "main", "-m", "snapshot", snapshot(t, dir))
	work := dir + "-work"
	gittest.Git(t, dir, "worktree", "add", "-q", "-b", target, work, commit)
	gittest.Write(t, work, map[string]string{"a": "landed\n"})
	gittest.Git(t, work, "commit", "-qam", "landed")
	return commit, gittest.Git(t, work, "rev-parse", "HEAD")
}

// openAt opens the checkout at dir with a snapshot.
func openAt(t *testing.T, dir, commit string) delivery.Checkout {
	t.Helper()
	repo := require.Value(git.Open(t.Context(), dir))(t)
	c := require.Value(delivery.Open(t.Context(), repo, target))(t)
	c.Snapshot = commit
	return c
}

// Where the checkout has the snapshot, whatever the index has of it, the branch moves to the work. Later changes, files
// that are ignored now and the user's stash stay.
func TestMergeOfTheSnapshotKeepsOtherChanges(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stage  func(t *testing.T, dir string)
		status string
	}{
		"nothing staged":  {func(*testing.T, string) {}, ""},
		"all staged":      {func(t *testing.T, dir string) { gittest.Git(t, dir, "add", "-A") }, ""},
		"intent to add":   {func(t *testing.T, dir string) { gittest.Git(t, dir, "add", "-N", "new") }, ""},
		"staged deletion": {func(t *testing.T, dir string) { gittest.Git(t, dir, "rm", "-q", "gone") }, ""},
		"taken out of the index and ignored": {func(t *testing.T, dir string) {
			gittest.Git(t, dir, "rm", "-q", "--cached", "gone")
			gittest.Write(t, dir, map[string]string{".gitignore": "gone\nignored/\n"})
		}, "!! gone"},
		"tracked below an ignored directory": {func(t *testing.T, dir string) {
			gittest.Write(t, dir, map[string]string{"ignored/tracked": "mine\n", "ignored/other": "mine\n"})
		}, "!! ignored/other"},
		"an ignored directory in the place of a file": {func(t *testing.T, dir string) {
			gittest.Git(t, dir, "rm", "-q", "--cached", "gone")
			require.NoError(t, os.Remove(filepath.Join(dir, "gone")))
			gittest.Write(t, dir, map[string]string{".gitignore": "gone/\nignored/\n", "gone/other": "mine\n"})
			gittest.Git(t, dir, "reset", "-q")
		}, "!! gone/"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := gittest.Repo(t, map[string]string{"a": "a\n", "b": "b\n", "gone": "g\n", ".gitignore": "ignored/\n"})
			gittest.Write(t, dir, map[string]string{"ignored/tracked": "t\n"})
			gittest.Git(t, dir, "add", "-f", "ignored/tracked")
			gittest.Git(t, dir, "commit", "-qm", "tracked")
			gittest.Write(t, dir, map[string]string{"b": "stashed\n"})
			gittest.Git(t, dir, "stash", "-q")
			stash := gittest.Git(t, dir, "rev-parse", "refs/stash")
			gittest.Write(t, dir, map[string]string{"a": "mine\n", "new": "mine\n"})
			c.stage(t, dir)
			commit, tip := withWork(t, dir)
			gittest.Write(t, dir, map[string]string{"b": "later\n", "later": "later\n"})
			checkout := openAt(t, dir, commit)
			if may, err := checkout.MayMerge(t.Context(), target, tip); err != nil || !may {
				t.Errorf("MayMerge: %v, %v", may, err)
			}
			m, err := delivery.Merge(t.Context(), checkout, target, tip, false)
			if err != nil || m.How != delivery.FastForward || m.Snapshot != commit || m.At != tip || m.Said != "" {
				t.Fatalf("%+v, %v", m, err)
			}
			want := strings.TrimSpace(" M b\n?? later\n" + c.status)
			if got := gittest.Git(t, dir, "status", "--porcelain", "--ignored"); got != want {
				t.Errorf("status says %q, want %q", got, want)
			}
			if got := gittest.Git(t, dir, "rev-list", "-g", "refs/stash"); got != stash {
				t.Errorf("the stash has %q", got)
			}
		})
	}
}

// A hook that refuses the merge, when git has written the files, leaves all as it was.
func TestMergeOfTheSnapshotThatAHookRefuses(t *testing.T) {
	t.Parallel()
	dir := gittest.Repo(t, map[string]string{"a": "a\n", "gone": "g\n", "cached": "c\n"})
	gittest.Write(t, dir, map[string]string{"a": "mine\n", "new": "mine\n", ".gitignore": "cached\n"})
	gittest.Git(t, dir, "rm", "-q", "gone")
	gittest.Git(t, dir, "rm", "-q", "--cached", "cached")
	gittest.Git(t, dir, "add", "-N", "new")
	commit, _ := withWork(t, dir)
	work := dir + "-work"
	gittest.Write(t, work, map[string]string{"made/by": "work\n"})
	gittest.Git(t, work, "rm", "-q", "new")
	gittest.Git(t, work, "add", "-A")
	gittest.Git(t, work, "commit", "-qm", "more")
	tip := gittest.Git(t, work, "rev-parse", "HEAD")
	hook := filepath.Join(dir, ".git", "hooks", "reference-transaction")
	require.NoError(t, os.WriteFile(hook, []byte("#!/bin/sh\ntest \"$1\" = prepared || exit 0\n"+
		"while read old to ref; do test $to != "+tip+" || { ls made >&2; exit 1; }; done\n"), 0o755))
	before, index := contents(t, dir), gittest.Read(t, dir, ".git/index")
	_, err := delivery.Merge(t.Context(), openAt(t, dir, commit), target, tip, false)
	// ls says that git had written the files.
	if err == nil || !strings.Contains(muster.PlainText(err), "main stays as it is, git has refused the merge: by") {
		t.Errorf("%v", err)
	}
	if after := contents(t, dir); after != before {
		t.Errorf("the checkout was\n%s\nand is\n%s", before, after)
	}
	if gittest.Read(t, dir, ".git/index") != index {
		t.Error("the index has other bytes")
	}
	require.NoError(t, os.Remove(hook))
	if m, err := delivery.Merge(t.Context(), openAt(t, dir, commit), target, tip, false); err != nil || m.At != tip {
		t.Errorf("without the hook: %+v, %v", m, err)
	}
}

// What the user has written since is not merged over: a file, its mode, and a file that was deleted again. MayMerge
// says so before, and nothing has changed.
func TestMergeRefusesWhatWasEditedSinceTheSnapshot(t *testing.T) {
	t.Parallel()
	const changed = "a has changed since the snapshot"
	says := map[string]string{"content": changed, "mode": changed, "deleted": changed,
		"there again": "gone has changed since", "staged only": "what is staged of a is neither in HEAD nor in the snapshot",
		"mine is committed": "uncommitted changes in a, gone, new would be overwritten"}
	for name, edit := range map[string]func(t *testing.T, dir string){
		"content": func(t *testing.T, dir string) { gittest.Write(t, dir, map[string]string{"a": "more\n"}) },
		"mode": func(t *testing.T, dir string) {
			require.NoError(t, os.Chmod(filepath.Join(dir, "a"), 0o755)) //nolint:gosec // It is what the test is about.
		},
		"deleted":     func(t *testing.T, dir string) { gittest.Git(t, dir, "rm", "-q", "-f", "a") },
		"there again": func(t *testing.T, dir string) { gittest.Write(t, dir, map[string]string{"gone": "g\n"}) },
		"staged only": func(t *testing.T, dir string) {
			gittest.Write(t, dir, map[string]string{"a": "staged\n"})
			gittest.Git(t, dir, "add", "a")
			gittest.Write(t, dir, map[string]string{"a": "mine\n"})
		},
		"mine is committed": func(t *testing.T, dir string) {
			gittest.Git(t, dir, "commit", "-q", "--allow-empty", "-m", "meanwhile")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := gittest.Repo(t, map[string]string{"a": "a\n", "b": "b\n", "gone": "g\n"})
			gittest.Write(t, dir, map[string]string{"a": "mine\n", "new": "mine\n"})
			require.NoError(t, os.Remove(filepath.Join(dir, "gone")))
			commit, tip := withWork(t, dir)
			edit(t, dir)
			c := openAt(t, dir, commit)
			before := contents(t, dir)
			if may, err := c.MayMerge(t.Context(), target, tip); err != nil || may {
				t.Errorf("MayMerge: %v, %v", may, err)
			}
			_, err := delivery.Merge(t.Context(), c, target, tip, false)
			if err == nil || !strings.Contains(muster.PlainText(err), says[name]) {
				t.Errorf("%v", err)
			}
			if after := contents(t, dir); after != before {
				t.Errorf("the checkout was\n%s\nand is\n%s", before, after)
			}
		})
	}
}
