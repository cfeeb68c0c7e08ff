package torture

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/landing"
	"muster/internal/outbox"
	"muster/internal/paths"
	"muster/internal/proc"
	"muster/internal/worktree"
)

// target is the branch that the torture's work lands on.
const target = "landed"

// landings: four processes land tasks on one git repository, each several at once, as a stack. They are killed at every
// point of a landing and of a lane's life, and stopped just before the target moves while their claims are given to
// others. Each task has landed once, by the commit that is recorded, the target was green at each commit, and nothing
// half-made is left.
func landings(ctx context.Context, a *env) error {
	tasks := a.amount(100, 8)
	if err := a.repository(); err != nil {
		return err
	}
	if err := a.plan(tasks); err != nil {
		return err
	}
	r, err := a.openServices()
	if err != nil {
		return err
	}
	defer r.store.Close()
	l, err := r.openGit(ctx)
	if err != nil {
		return err
	}
	arms := a.arms(tasks)
	var jobs []Job
	for i := range 4 {
		jobs = append(jobs, Job{Kind: "land", Name: fmt.Sprintf("l%d", i+1), Seed: a.rng.Uint64(), Count: tasks})
	}
	err = a.run(ctx, jobs, chaos{total: tasks, step: func(e entry) bool { return e.words[0] == "done" },
		arm: func(*worker) (arm string) {
			if len(arms) > 0 {
				arm, arms = arms[0], arms[1:]
			}
			return arm
		},
		stopped: func(ctx context.Context, h *worker, _ int) bool {
			return a.giveToAnother(ctx, r, l, muster.Name(h.job.Name))
		}})
	if err != nil || a.row.Bad() {
		return err
	}
	a.row.Operations = tasks
	return a.checkLandings(ctx, r, l, tasks)
}

// arms returns what the processes of the workers are armed with, one after the other: every point of a landing and
// of a lane, as often as there are tasks for it, and between them stops just before the target moves, with which it
// begins: however few tasks there are, some owners are late. Some are armed with what a life does not pass: so each
// dies after some tasks, whatever it has met.
func (a *env) arms(tasks int) (all []string) {
	want := tasks * 3 / 2
	stops := []string{"stop:landing.checked", "stop:landing.moving", "stop:landing.claimed"}
	all = append(all, stops...)
	for len(all) < want {
		var round []string
		for _, p := range pointsOf("landing.", "lane.", "lanes.", "tasks.put.", "objects.", "packs.n", "packs.r") {
			round = append(round, "kill:"+p)
		}
		round = append(append(round, stops...), stops...)
		a.rng.Shuffle(len(round), func(i, j int) { round[i], round[j] = round[j], round[i] })
		all = append(all, round...)
	}
	common := pointsOf("landing.m", "landing.c", "landing.packed", "landing.noted", "landing.recorded", "lane.a",
		"lane.removed")
	for i := range all {
		all[i] += fmt.Sprintf(";kill:%s:%d", common[a.rng.IntN(len(common))], 2+a.rng.IntN(3))
	}
	return all[:want]
}

// gitServices are the services that landing needs.
type gitServices struct {
	repo   *git.Repo
	lanes  *worktree.Lanes
	lander *landing.Lander
}

func (r *services) openGit(ctx context.Context) (g gitServices, err error) {
	if g.repo, err = git.Open(ctx, r.Dir); err != nil {
		return g, err
	}
	dir := paths.Dir(r.Dir)
	g.lanes, err = worktree.Open(g.repo, durable.New(durable.OS{}), dir, r.journal, r.store.Log(),
		worktree.Options{Base: "refs/heads/" + target})
	if err != nil {
		return g, err
	}
	outbox.Register(r.board, r.post.Send, g.lanes.ArchiveCompleted)
	launch := sync.OnceValues(func() (proc.Launcher, error) { return proc.New(ctx) })
	// The check is green on the base, so a red one is always the work's.
	isGreen := func(context.Context, string) (string, error) { return "ok", nil }
	g.lander = landing.New(g.repo, g.lanes, r.board, r.journal, launch, landing.Options{Target: "refs/heads/" + target,
		Check: landing.Check{Command: stackCheck}, Outputs: dir.Outputs(), CheckState: isGreen})
	return g, nil
}

// lander is a process that claims tasks and lands them, each from a lane.
func lander(ctx context.Context, r *services) error {
	g, err := r.openGit(ctx)
	if err != nil {
		return err
	}
	if err := g.lanes.Recover(ctx); err != nil {
		return err
	}
	owner := muster.Name(r.Name)
	all, err := r.board.List(ctx)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(t muster.Task) bool { return t.Owner != owner || !t.Claimed() })
	if err := r.landAll(ctx, g, all, owner); err != nil {
		return err
	}
	r.ready()
	for {
		held, err := r.claimSome(ctx, owner)
		if err != nil {
			return err
		}
		if len(held) > 0 {
			if err := r.landAll(ctx, g, held, owner); err != nil {
				return err
			}
			continue
		}
		if err := r.board.Settle(ctx); err != nil && !board.OnlyUnsettled(err) {
			return err
		}
		if over, err := r.allDone(ctx); err != nil || over {
			return err
		}
		time.Sleep(50 * time.Millisecond) // others are at theirs
	}
}

// land takes one task to its end: its lane, its work, its landing.
func (r *services) land(ctx context.Context, g gitServices, t muster.Task, owner muster.Name) error {
	claim := []string{number(int(t.ID)), number(t.Fence), string(owner)}
	lane, err := r.laneOf(ctx, g, &t)
	if err == nil {
		err = r.landLane(ctx, g, t, lane)
	}
	switch {
	case err == nil:
		r.note(append([]string{"done"}, claim...)...)
	case errors.Is(err, muster.ErrFenced) || r.isOver(ctx, t):
		r.note(append([]string{"late"}, claim...)...)
		if now, e := r.board.Get(ctx, t.ID); e == nil && lane.Name != "" && now.Worktree != lane.Name {
			_, _ = g.lanes.Archive(ctx, lane.Name) // what cannot be archived is kept
		}
		return nil
	}
	return err
}

// laneOf is the task's lane: the one that an earlier life of this owner was given for this claim, else a fresh one.
func (r *services) laneOf(ctx context.Context, g gitServices, t *muster.Task) (lane muster.Lane, err error) {
	const mine = "claim" // a file beside the lane's work would land with it, so it is the name that says whose it is
	name := muster.Name(fmt.Sprintf("%s-%d-%d", mine, t.ID, t.Fence))
	lane, err = g.lanes.Get(ctx, name)
	if errors.Is(err, muster.ErrNotFound) {
		lane, err = g.lanes.Create(ctx, name, t.ID, "")
	}
	if err != nil {
		return lane, err
	}
	if _, err := g.lanes.Enter(ctx, name); err != nil {
		return lane, err
	}
	old := t.Worktree
	now, err := r.board.SetLane(ctx, t.ID, t.Fence, lane.Name, lane.Base)
	if err != nil {
		return lane, err
	}
	if *t = now; old != "" && old != lane.Name {
		_, _ = g.lanes.Archive(ctx, old)
	}
	return lane, nil
}

// giveToAnother takes a stopped owner's claim back, as a team does, and waits until somebody else has it.
func (a *env) giveToAnother(ctx context.Context, r *services, g gitServices, owner muster.Name) (gave bool) {
	ctx, cancel := context.WithTimeout(ctx, maxStop)
	defer cancel()
	all, err := r.board.List(ctx)
	if err != nil {
		return false
	}
	for _, t := range all {
		if t.Owner != owner || !t.Claimed() {
			continue
		}
		if g.lander.Revoke(ctx, t.ID, t.Fence) != nil {
			continue
		}
		now, err := r.board.Revoke(ctx, t.ID, t.Fence, muster.Lead, "its owner is stopped")
		gave = gave || err == nil
		for err == nil && ctx.Err() == nil && now.Owner == "" {
			time.Sleep(5 * time.Millisecond)
			now, err = r.board.Get(ctx, t.ID)
		}
	}
	return gave
}

// repository makes a git repository with one commit, and the branch that work lands on.
func (a *env) repository() error {
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

// checkLandings compares the board with what git has, after a last recovery.
func (a *env) checkLandings(ctx context.Context, r *services, g gitServices, tasks int) error {
	if err := g.lanes.Recover(ctx); err != nil {
		return err
	}
	if err := r.board.Settle(ctx); err != nil {
		return err
	}
	if err := r.archiveLate(ctx, g); err != nil {
		return err
	}
	done := map[string]bool{}
	for _, e := range a.ledgers.all {
		switch e.words[0] {
		case "done":
			done[strings.Join(e.words[1:], " ")] = true
		case "late":
			a.row.Refused++
		}
	}
	all, err := r.board.List(ctx)
	if err != nil {
		return err
	}
	for _, t := range all {
		for claim := range done {
			if strings.HasPrefix(claim, fmt.Sprintf("%d ", t.ID)) &&
				claim != fmt.Sprintf("%d %d %s", t.ID, t.Fence, t.CompletedBy) {
				a.fail(&a.row.Doubled, "task %d was landed for the claim %s, and the board says fence %d by %s", t.ID,
					claim, t.Fence, t.CompletedBy)
			}
		}
	}
	if err := checkStacks(a, all); err != nil {
		return err
	}
	return a.checkGit(all, target, tasks)
}

// checkGit wants one commit on the target for each task, the one that the task names, and nothing half-made.
func (a *env) checkGit(all []muster.Task, branch string, tasks int) error {
	out, err := a.git("log", "--format=%H %(trailers:key=Muster-Task,valueonly,separator=%x20)", "main.."+branch)
	if err != nil {
		return err
	}
	commits := map[string][]string{}
	for line := range strings.Lines(out) {
		commit, task, _ := strings.Cut(strings.TrimSpace(line), " ")
		commits[task] = append(commits[task], commit)
	}
	if len(all) != tasks {
		a.fail(&a.row.Lost, "there are %d tasks of %d", len(all), tasks)
	}
	for _, t := range all {
		on := commits[number(int(t.ID))]
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
	// Every object that is needed is in git's directory, without the loose ones that packs have too.
	for _, args := range [][]string{{"prune-packed"}, {"fsck", "--full", "--no-dangling"}} {
		if out, err := a.git(args...); err != nil {
			a.fail(&a.row.Lost, "%v: %s", err, out)
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
