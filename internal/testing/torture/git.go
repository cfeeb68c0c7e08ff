package torture

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"muster"
	"muster/internal/git"
	"muster/internal/paths"
)

// newRepository makes a git repository with one commit, and the branch that work lands on.
func (a *env) newRepository() error {
	if err := os.MkdirAll(a.root(), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(a.root(), "README"), []byte("a repository\n"), 0o644); err != nil {
		return err
	}
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"add", "README"},
		{"-c", "user.name=torture", "-c", "user.email=torture@localhost", "-c", "commit.gpgsign=false", "commit",
			"-q", "--no-verify", "-m", "start"},
		{"branch", target}} {
		if _, err := a.git(args...); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(a.root(), ".git", "info", "exclude"),
		[]byte(strings.Join(paths.Excluded, "\n")+"\n"), 0o600)
}

func (a *env) git(args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = a.root(), git.Environ(a.Env)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", muster.Errorf(muster.Unavailable, "git %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// checkGit wants one commit on the branch for each task, the one that the task names, and nothing half-made.
func (a *env) checkGit(all []muster.Task, branch string) error {
	out, err := a.git("log", "--format=%H %(trailers:key=Muster-Task,valueonly,separator=%x20)", "main.."+branch)
	if err != nil {
		return err
	}
	commits := map[string][]string{}
	for line := range strings.Lines(out) {
		commit, task, _ := strings.Cut(strings.TrimSpace(line), " ")
		commits[task] = append(commits[task], commit)
	}
	for _, t := range all {
		on := commits[number(t.ID)]
		switch {
		case t.Status != muster.Completed || len(t.Effects) > 0:
			a.fail(&a.row.Stuck, "task %d is %s, with %v to follow", t.ID, t.Status, t.Effects)
		case len(on) > 1:
			a.fail(&a.row.Doubled, "task %d has landed %d times: %v", t.ID, len(on), on)
		case len(on) == 0 || t.Landed == nil:
			a.fail(&a.row.Lost, "task %d is completed, and no commit on %s is of it", t.ID, branch)
		case !slices.Contains(on, t.Landed.Commit):
			a.fail(&a.row.Lost, "task %d names the commit %s, and %s is on %s", t.ID, t.Landed.Commit, on[0], branch)
		}
	}
	// All objects must be in packs that git knows, also without the loose copies.
	for _, args := range [][]string{{"prune-packed"}, {"fsck", "--full", "--no-dangling"}} {
		if _, err := a.git(args...); err != nil {
			a.fail(&a.row.Lost, "%v", err)
		}
	}
	return a.checkLeftovers()
}

// checkLeftovers wants no lane to be left: no worktree, branch, directory, row, landing ref or temporary file.
func (a *env) checkLeftovers() error {
	trees, err := a.git("worktree", "list", "--porcelain")
	if err != nil {
		return err
	}
	if strings.Count(trees, "worktree ") != 1 {
		a.fail(nil, "worktrees are left: %s", trees)
	}
	refs, err := a.git("for-each-ref", "--format=%(refname)", "refs/heads/wt", "refs/muster/landing")
	if err != nil {
		return err
	}
	if refs != "" {
		a.fail(nil, "refs are left: %s", refs)
	}
	index, err := os.ReadFile(filepath.Join(a.root(), ".worktrees", "index.json"))
	if err == nil && !strings.Contains(strings.Join(strings.Fields(string(index)), ""), `"worktrees":{}`) {
		a.fail(nil, "rows are left in the lanes' index: %s", index)
	}
	dirs, err := os.ReadDir(filepath.Join(a.root(), ".worktrees"))
	if err != nil {
		return err
	}
	for _, d := range dirs {
		if d.IsDir() || strings.HasSuffix(d.Name(), ".tmp") {
			a.fail(nil, "%s is left in .worktrees", d.Name())
		}
	}
	return nil
}
