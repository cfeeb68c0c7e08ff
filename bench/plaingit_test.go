//go:build linux

package bench

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// plainGit lands branches on a tip by git's own commands: with what a maintainer would write in an afternoon. All branches
// are ready when it begins, which those of a team are not.
type plainGit struct {
	*world
	check string // the command
	dir   string // the worktree in which the check runs, always the same
	lane  string // the worktree in which branches are mended
	tip   string
}

// branch is a task's work as a commit that may land.
type branch struct {
	task landingTask
	head string
}

func newPlainGit(w *world, check string, tasks []landingTask) (p *plainGit, all []branch) {
	w.tb.Helper()
	p = &plainGit{world: w, check: check, dir: filepath.Join(w.base, "checked"), lane: filepath.Join(w.base, "lane"), tip: w.head()}
	for _, dir := range []string{p.dir, p.lane} {
		w.git("worktree", "add", "-q", "--detach", dir)
	}
	w.writeWork(tasks)
	for _, t := range tasks {
		p.in(p.lane, "git", "checkout", "-q", "--detach", p.tip)
		all = append(all, branch{t, p.commitWork(t, "edit")})
	}
	return p, all
}

func (w *world) head() string {
	w.tb.Helper()
	return strings.TrimSpace(w.output(w.command("git", "rev-parse", "HEAD")))
}

func (p *plainGit) in(dir, name string, args ...string) string {
	p.tb.Helper()
	c := p.command(name, args...)
	c.Dir = dir
	return p.output(c)
}

func (p *plainGit) commitWork(t landingTask, what string) string {
	p.tb.Helper()
	p.in(p.lane, "sh", "-c", p.work(fmt.Sprintf("%02d", t.n), what))
	p.in(p.lane, "git", "add", "-A")
	p.in(p.lane, "git", "commit", "-q", "--allow-empty", "-m", fmt.Sprintf("task %02d", t.n))
	return strings.TrimSpace(p.in(p.lane, "git", "rev-parse", "HEAD"))
}

// mend merges the tip into a branch, resolves what conflicts and mends what does not hold together.
func (p *plainGit) mend(b *branch) {
	p.tb.Helper()
	p.in(p.lane, "git", "checkout", "-q", "--detach", b.head)
	c := p.command("git", "merge", "-q", "--no-commit", "--no-ff", p.tip)
	c.Dir = p.lane
	_ = c.Run() // it may conflict
	b.head = p.commitWork(b.task, "mend")
}

// merge returns the commit that lands a branch on a commit; "" when they conflict.
func (p *plainGit) merge(onto string, b branch) string {
	p.tb.Helper()
	c := p.command("git", "merge-tree", "--write-tree", onto, b.head)
	tree, err := c.Output()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() == 1 {
		return ""
	}
	must(p.tb, err)
	return strings.TrimSpace(p.output(p.command("git", "commit-tree", "-p", onto, "-m", fmt.Sprintf("task %02d", b.task.n), strings.TrimSpace(string(tree)))))
}

func (p *plainGit) isGreen(commit string) bool {
	p.tb.Helper()
	p.in(p.dir, "git", "checkout", "-q", "--detach", commit)
	c := p.command("sh", "-c", p.check)
	c.Dir = p.dir
	return c.Run() == nil
}

func (p *plainGit) moveTo(commit string) {
	p.git("update-ref", "refs/heads/landed", commit)
	p.tip = commit
}

// inBatches merges all branches that wait and checks the last commit. When it is red, it bisects to the first branch that
// turns it red, lands what is before that, and has the branch mended for the next batch, like one that conflicts.
func (p *plainGit) inBatches(all []branch) {
	for len(all) > 0 {
		var stack []string
		var merged, later []branch
		onto := p.tip
		for _, b := range all {
			if commit := p.merge(onto, b); commit != "" {
				stack, merged, onto = append(stack, commit), append(merged, b), commit
			} else {
				later = append(later, b)
			}
		}
		good, bad := 0, len(stack) // so many are green; so many are known to be red, or one more than there are
		if len(stack) == 0 || p.isGreen(stack[len(stack)-1]) {
			good, bad = len(stack), len(stack)+1
		}
		for bad-good > 1 {
			if half := (good + bad) / 2; p.isGreen(stack[half-1]) {
				good = half
			} else {
				bad = half
			}
		}
		if good > 0 {
			p.moveTo(stack[good-1])
		}
		if bad <= len(merged) {
			p.mend(&merged[bad-1])
			all = append(merged[good:len(merged):len(merged)], later...)
		} else {
			all = later
		}
		for i := range later {
			p.mend(&all[len(all)-len(later)+i])
		}
	}
}

func (l *library) plainly(tb testing.TB, tasks []landingTask) (cost landingCost) {
	tb.Helper()
	w := l.newWorld(tb)
	p, all := newPlainGit(w, w.checkScript(libraryCheck), tasks)
	start := time.Now()
	p.inBatches(all)
	cost.wall = time.Since(start).Seconds()
	cost.checks, cost.cpu = w.checksRun()
	w.checkTasksOnce(p.tip, tasks)
	must(tb, os.RemoveAll(w.root))
	return cost
}
