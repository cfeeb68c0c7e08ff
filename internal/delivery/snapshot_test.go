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

// Files that are as the snapshot has them are merged. Other changes, also staged ones, and the user's stash stay.
func TestMergeOfTheSnapshotKeepsTheStashAndOtherChanges(t *testing.T) {
	t.Parallel()
	dir := gittest.Repo(t, map[string]string{"a": "a\n", "b": "b\n"})
	gittest.Write(t, dir, map[string]string{"b": "stashed\n"})
	gittest.Git(t, dir, "stash", "-q")
	stash := gittest.Git(t, dir, "rev-parse", "refs/stash")
	gittest.Write(t, dir, map[string]string{"a": "mine\n", "new": "mine\n"})
	gittest.Git(t, dir, "add", "new")
	commit, tip := withWork(t, dir)
	gittest.Write(t, dir, map[string]string{"b": "later\n", "later": "later\n"})
	gittest.Git(t, dir, "add", "b", "later")
	repo := require.Value(git.Open(t.Context(), dir))(t)
	c := require.Value(delivery.Open(t.Context(), repo, target))(t)
	c.Snapshot = commit
	if may, err := c.MayMerge(t.Context(), target, tip); err != nil || !may {
		t.Errorf("MayMerge: %v, %v", may, err)
	}
	m, err := delivery.Merge(t.Context(), c, target, tip, false)
	if err != nil || m.How != delivery.FastForward || m.Snapshot != commit || m.At != tip {
		t.Fatalf("%+v, %v", m, err)
	}
	if got := gittest.Git(t, dir, "status", "--porcelain"); got != "M  b\nA  later" {
		t.Errorf("status says %q", got)
	}
	if got := gittest.Git(t, dir, "rev-list", "-g", "refs/stash"); got != stash {
		t.Errorf("the stash has %q", got)
	}
}

// What the user has written since is not merged over: a file, its mode, and a file that was deleted again. MayMerge
// says so before, and nothing has changed.
func TestMergeRefusesWhatWasEditedSinceTheSnapshot(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(t *testing.T, dir string){
		"content": func(t *testing.T, dir string) { gittest.Write(t, dir, map[string]string{"a": "more\n"}) },
		"mode": func(t *testing.T, dir string) {
			require.NoError(t, os.Chmod(filepath.Join(dir, "a"), 0o755)) //nolint:gosec // It is what the test is about.
		},
		"deleted": func(t *testing.T, dir string) { gittest.Git(t, dir, "rm", "-q", "-f", "a") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := gittest.Repo(t, map[string]string{"a": "a\n", "b": "b\n"})
			gittest.Write(t, dir, map[string]string{"a": "mine\n", "new": "mine\n"})
			commit, tip := withWork(t, dir)
			edit(t, dir)
			repo := require.Value(git.Open(t.Context(), dir))(t)
			c := require.Value(delivery.Open(t.Context(), repo, target))(t)
			c.Snapshot = commit
			before := contents(t, dir)
			if may, err := c.MayMerge(t.Context(), target, tip); err != nil || may {
				t.Errorf("MayMerge: %v, %v", may, err)
			}
			_, err := delivery.Merge(t.Context(), c, target, tip, false)
			if err == nil || !strings.Contains(muster.PlainText(err), "a has changed since the snapshot") {
				t.Errorf("%v", err)
			}
			if after := contents(t, dir); after != before {
				t.Errorf("the checkout was\n%s\nand is\n%s", before, after)
			}
		})
	}
}
