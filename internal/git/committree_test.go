package git_test

import (
	"os"
	"regexp"
	"testing"

	"muster/internal/git"
	"muster/internal/testing/gittest"
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
			r, err := git.Open(t.Context(), root)
			check(t, err)
			head := gittest.Git(t, root, "rev-parse", "HEAD")
			tree := gittest.Git(t, root, "rev-parse", "HEAD^{tree}")
			commit := func(message string, parents ...string) string {
				t.Helper()
				id, err := r.CommitTree(t.Context(), tree, parents, message)
				check(t, err)
				return id
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
		id, err := r.CommitTree(t.Context(), tree, []string{head}, "x\n")
		check(t, err)
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
