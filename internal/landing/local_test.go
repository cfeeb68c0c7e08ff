package landing_test

import (
	"testing"

	"muster"
	"muster/internal/landing"
	"muster/internal/localfiles"
	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
)

// What was copied from the user's checkout does not land, also when the settings name it no more.
func TestLocalFilesDoNotLand(t *testing.T) {
	t.Parallel()
	for _, keepsHistory := range []bool{false, true} {
		w := newWorld(t, "test -f .env", map[string]string{"a": "a\n", ".gitignore": ".env\nold.key\n"})
		gittest.Write(t, w.root, map[string]string{".env": "K=1\n"})
		w.before = gittest.Checkout(t, w.root)
		set := require.Value(localfiles.Read(t.Context(), w.repo, ".env\n"))(t)
		w.process("test -f .env", func(o *landing.Options) { o.Local, o.MergeCommits = set, keepsHistory })
		task, lane := w.task("forced", "alice", map[string]string{"b": "b\n", ".env": "K=1\n", "old.key": "k\n"})
		require.NoError(t, w.lanes.SetLocal(w.ctx(), muster.Name(task.Worktree), []string{"old.key"}))
		gittest.Git(t, lane, "add", "-f", ".env", "old.key")
		v := w.back(task)
		says(t, v.Text, "never land: .env, old.key.", "git rm --cached -f .env")
		equal(t, "people read", v.Task.Returned, "local: .env, old.key of .worktreeinclude")
		gittest.Git(t, lane, "rm", "-q", "--cached", "-f", ".env", "old.key")
		if keepsHistory {
			says(t, w.back(v.Task).Text, "ALL commits", "git reset --soft $(git merge-base HEAD muster/demo)")
			gittest.Git(t, lane, "reset", "-q", "--soft", w.git("merge-base", "wt/"+string(task.Worktree), target))
		}
		w.lands(v.Task)
		equal(t, "landed", w.git("ls-tree", "-r", "--name-only", target), ".gitignore\na\nb")
		equal(t, "in the history", w.git("log", "--format=%h", target, "--", ".env", "old.key"), "")
	}
}
