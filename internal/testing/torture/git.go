package torture

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"muster"
	"muster/internal/git"
)

// target is the branch that the work of the landings scenario lands on.
const target = "landed"

// git runs git in the repository and returns what it prints. It must succeed.
func (a *env) git(args ...string) string {
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = a.at("repo"), git.Environ(os.Environ())
	out, err := cmd.CombinedOutput()
	if err != nil {
		a.fail(&a.row.lost, "git %s: %v: %s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// checkGit wants one commit on the branch for each task, the one that the task names, and nothing half-made.
func (a *env) checkGit(all []muster.Task, branch string) {
	out := a.git("log", "--format=%H %(trailers:key=Muster-Task,valueonly,separator=%x20)", "main.."+branch)
	commits := map[string][]string{}
	for line := range strings.Lines(out) {
		commit, task, _ := strings.Cut(strings.TrimSpace(line), " ")
		commits[task] = append(commits[task], commit)
	}
	for _, t := range all {
		on := commits[fmt.Sprint(t.ID)]
		switch {
		case t.Status != muster.Completed || len(t.Effects) > 0:
			a.fail(&a.row.stuck, "task %d is %s, with %v to follow", t.ID, t.Status, t.Effects)
		case len(on) > 1:
			a.fail(&a.row.doubled, "task %d has landed %d times: %v", t.ID, len(on), on)
		case len(on) == 0 || t.Landed == nil:
			a.fail(&a.row.lost, "task %d is completed, and no commit on %s is of it", t.ID, branch)
		case !slices.Contains(on, t.Landed.Commit):
			a.fail(&a.row.lost, "task %d names the commit %s, and %s is on %s", t.ID, t.Landed.Commit, on[0], branch)
		}
	}
	if red := a.git("log", "--format=%H", "main.."+branch, "--", "broken-*"); red != "" {
		a.fail(&a.row.lost, "%s was red at %s", branch, red)
	}
	a.git("prune-packed") // all objects must be in packs that git knows, also without the loose copies
	a.git("fsck", "--full", "--no-dangling")
	a.checkLeftovers()
}

// checkLeftovers wants no lane to be left: no worktree, branch, directory, row, landing ref or temporary file.
func (a *env) checkLeftovers() {
	if trees := a.git("worktree", "list", "--porcelain"); strings.Count(trees, "worktree ") != 1 {
		a.fail(nil, "worktrees are left: %s", trees)
	}
	refs := a.git("for-each-ref", "--format=%(refname)", "refs/heads/wt", "refs/muster/landing")
	if refs != "" {
		a.fail(nil, "refs are left: %s", refs)
	}
	index, err := os.ReadFile(a.at("repo/.worktrees/index.json"))
	if err == nil && !strings.Contains(strings.Join(strings.Fields(string(index)), ""), `"worktrees":{}`) {
		a.fail(nil, "rows are left in the lanes' index: %s", index)
	}
	dirs, err := os.ReadDir(a.at("repo/.worktrees"))
	if err != nil {
		a.fail(nil, "%v", err)
	}
	for _, d := range dirs {
		if d.IsDir() || strings.HasSuffix(d.Name(), ".tmp") {
			a.fail(nil, "%s is left in .worktrees", d.Name())
		}
	}
}
