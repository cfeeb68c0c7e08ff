package git_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"muster/internal/git"
	"muster/internal/testing/gittest"
)

// commitStaged commits what is staged in root on main as CommitChanges does.
func commitStaged(t *testing.T, r *git.Repo, root, message string) (string, error) {
	t.Helper()
	onto := gittest.Git(t, root, "rev-parse", "main")
	_, changes, err := git.StagedChanges(t.Context(), r, root, onto)
	check(t, err)
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
		commit, err := commitStaged(t, r, root, message)
		if err != nil {
			rt.Fatal(err)
		}
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
