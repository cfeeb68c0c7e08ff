package git_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"muster/internal/git"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
)

// Commits that are written without git are, to the byte, those that git makes.
func TestCommitTreeWithoutGit(t *testing.T) {
	for _, format := range []string{"sha1", "sha256"} {
		t.Run(format, func(t *testing.T) {
			t.Setenv("GIT_AUTHOR_NAME", "A. <U>thor Ü.")
			t.Setenv("GIT_AUTHOR_EMAIL", "a@localhost")
			root := t.TempDir()
			gittest.Git(t, root, "init", "-q", "--object-format="+format)
			gittest.Git(t, root, "commit", "-q", "--allow-empty", "-m", "start")
			r := require.Value(git.Open(t.Context(), root))(t)
			head := gittest.Git(t, root, "rev-parse", "HEAD")
			tree := gittest.Git(t, root, "rev-parse", "HEAD^{tree}")
			commit := func(message string, parents ...string) string {
				t.Helper()
				return require.Value(r.CommitTree(t.Context(), tree, parents, message))(t)
			}
			side := commit("made by git\n", head)
			commit("made after reading that\n", head)

			path := os.Getenv("PATH")
			t.Setenv("PATH", "")
			type made struct {
				id, message string
				parents     []string
			}
			var all []made
			for _, m := range []made{{"", "one\n", []string{head}}, {"", "two\n\nbody\n\nA: b\n", []string{head, side}}, {"", "none\n", nil}, {"", "ü\n", []string{side}}} {
				m.id = commit(m.message, m.parents...)
				all = append(all, m)
			}
			if _, err := r.CommitTree(t.Context(), tree, nil, "not ended"); err == nil {
				t.Error("a message that git completes was taken as it is")
			}
			t.Setenv("PATH", path)

			at := regexp.MustCompile(`(?m)^committer .*> (\d+ [+-]\d+)$`)
			for _, m := range all {
				when := at.FindStringSubmatch(gittest.Git(t, root, "cat-file", "commit", m.id))[1]
				t.Setenv("GIT_AUTHOR_DATE", when)
				t.Setenv("GIT_COMMITTER_DATE", when)
				t.Setenv("GIT_COMMITTER_NAME", "A. <U>thor Ü.")
				t.Setenv("GIT_COMMITTER_EMAIL", "a@localhost")
				args := []string{"commit-tree", tree, "-F", root + "/message"}
				for _, p := range m.parents {
					args = append(args, "-p", p)
				}
				gittest.Write(t, root, map[string]string{"message": m.message})
				if got := gittest.Git(t, root, args...); got != m.id {
					t.Errorf("%q is %s, and git makes %s:\n%s\n%s", m.message, m.id, got,
						gittest.Git(t, root, "cat-file", "commit", m.id), gittest.Git(t, root, "cat-file", "commit", got))
				}
			}
			gittest.Git(t, root, "fsck", "--strict", "--no-dangling")
		})
	}
}

// What this process has put into a commit is known without git.
func TestTheTreeOfAMadeCommit(t *testing.T) {
	root := gittest.Repo(t, map[string]string{"a": "a\n"})
	r := open(t, root)
	head, tree := gittest.Git(t, root, "rev-parse", "HEAD"), gittest.Git(t, root, "rev-parse", "HEAD^{tree}")
	var made []string
	for range 3 {
		id := require.Value(r.CommitTree(t.Context(), tree, []string{head}, "x\n"))(t)
		head, made = id, append(made, head)
	}
	path := os.Getenv("PATH")
	t.Setenv("PATH", t.TempDir())
	returns(t, tree)(r.Tree(t.Context(), head))
	for _, below := range made {
		returns(t, true)(r.IsAncestor(t.Context(), below, head))
	}
	t.Setenv("PATH", path)
	returns(t, false)(r.IsAncestor(t.Context(), head, made[0]))
}

// commitStaged commits what is staged in root on main as CommitChanges does.
func commitStaged(t *testing.T, r *git.Repo, root, message string) (string, error) {
	t.Helper()
	onto := gittest.Git(t, root, "rev-parse", "main")
	_, changes, err := git.StagedChanges(t.Context(), r, root, onto)
	require.NoError(t, err)
	return git.CommitChanges(t.Context(), r, root, "refs/heads/main", onto, message, changes)
}

// The commit has the tree of the index, whatever was added, changed and deleted, and the message that git commit makes.
func TestCommitChangesMakesTheTreeOfTheIndex(t *testing.T) {
	t.Parallel()
	root := gittest.Repo(t, map[string]string{"a/b/c": "c\n", "a/d": "d\n"})
	r := open(t, root)
	name := rapid.SampledFrom([]string{"a", "b c", "quo\"te", `back\slash`, "tab\tnew\nline", "ü", "-x", "\xff"})
	rapid.Check(t, func(rt *rapid.T) {
		gittest.Git(t, root, "read-tree", "--empty")
		// A file has the name of a directory, or of one below another, in about every second index.
		for _, path := range rapid.SliceOfN(rapid.SliceOfN(name, 1, 3), 0, 6).Draw(rt, "paths") {
			mode := rapid.SampledFrom([]string{"100644", "100755", "120000", "160000"}).Draw(rt, "mode")
			id := gittest.Git(t, root, "rev-parse", "main")
			if mode != "160000" {
				gittest.Write(t, root, map[string]string{".git/content": fmt.Sprint(rapid.IntRange(0, 3).Draw(rt, "n"))})
				id = gittest.Git(t, root, "hash-object", "-w", ".git/content")
			}
			gittest.Git(t, root, "update-index", "--replace", "--add", "--cacheinfo", mode, id, strings.Join(path, "/"))
		}
		message := rapid.StringOf(rapid.SampledFrom([]rune("a#ü \t\n\r"))).Draw(rt, "message")
		want, before := gittest.Git(t, root, "write-tree"), gittest.Git(t, root, "rev-parse", "main")
		commit := require.Value(commitStaged(t, r, root, message))(rt)
		got := gittest.Git(t, root, "log", "-1", "--format=%T %P %an <%ae> %cn <%ce>", "main")
		if got != want+" "+before+" Ann Tester <ann@example.com> Ann Tester <ann@example.com>" {
			rt.Fatalf("the commit has %s, want the tree %s on %s", got, want, before)
		}
		if at := gittest.Git(t, root, "rev-parse", "HEAD"); at != commit {
			rt.Fatalf("HEAD is at %s, want %s", at, commit)
		}
		gittest.Git(t, root, "commit", "-q", "--allow-empty", "--allow-empty-message", "--cleanup=whitespace", "-m", message)
		if got, want := gittest.Git(t, root, "cat-file", "commit", commit), gittest.Git(t, root, "cat-file", "commit", "HEAD"); afterHead(got) != afterHead(want) {
			rt.Fatalf("of %q the message is %q, want %q", message, afterHead(got), afterHead(want))
		}
	})
	if packs := gittest.Git(t, root, "count-objects", "-v"); !strings.Contains(packs, "packs: 0") {
		t.Errorf("there are packs that are not synced: %s", packs)
	}
}

func afterHead(commit string) string {
	_, message, _ := strings.Cut(commit, "\n\n")
	return message
}

// A branch that has another commit by now stays there, and so does one that only git commit can move.
func TestCommitChangesMovesNoBranchFromElsewhere(t *testing.T) {
	root := gittest.Repo(t, map[string]string{"a": "a\n"})
	r := open(t, root)
	old := gittest.Git(t, root, "rev-parse", "main")
	gittest.Git(t, root, "commit", "-q", "--allow-empty", "-m", "theirs")
	at := gittest.Git(t, root, "rev-parse", "main")
	blob := gittest.Git(t, root, "rev-parse", "main:a")
	changes := []git.Change{{Path: "b", Mode: "100644", ID: blob}}
	for message, onto := range map[string]string{"late": old, "no\x00text": at, "no text \xff": at} {
		if commit, err := git.CommitChanges(t.Context(), r, root, "refs/heads/main", onto, message, changes); err == nil {
			t.Errorf("%q: committed as %s", message, commit)
		}
	}
	for _, name := range []string{"Bo <x>", ".", "Bo."} {
		t.Setenv("GIT_AUTHOR_NAME", name)
		if commit, err := git.CommitChanges(t.Context(), open(t, root), root, "refs/heads/main", at, "x", changes); err == nil {
			t.Errorf("committed as %s by %s", commit, name)
		}
	}
	if now := gittest.Git(t, root, "rev-parse", "main"); now != at {
		t.Errorf("main has moved from %s to %s", at, now)
	}
}
