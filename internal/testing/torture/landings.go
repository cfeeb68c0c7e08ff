package torture

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"muster"
	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/landing"
	"muster/internal/outbox"
	"muster/internal/paths"
	"muster/internal/proc"
	"muster/internal/testing/faultinject"
	"muster/internal/worktree"
)

// target is the branch that the work lands on.
const target = "landed"

// greenCheck is the check of the landings. A task whose number can be divided by five breaks it with its first try.
const greenCheck = "test -e README && ! ls broken-*"

// atOnce is how many tasks a process lands at once. They are one stack, unless one of them comes too late.
const atOnce = 3

// landings lets four processes land tasks in one git repository. They are killed at every point of a landing and of a
// lane's life, and stopped just before the target moves while their claims are given to others. Each task must have
// landed once, as the commit that is recorded, and the target must be green at each of its commits.
func landings(ctx context.Context, a *env) error {
	if err := a.newRepository(); err != nil {
		return err
	}
	r, err := a.openServices()
	if err != nil {
		return err
	}
	defer r.store.Close()
	g, err := r.openGit(ctx)
	if err != nil {
		return err
	}
	var jobs []Job
	for i := range 4 {
		jobs = append(jobs, Job{Kind: "land", Name: fmt.Sprintf("l%d", i+1), Seed: a.rng.Uint64()})
	}
	w := &workers{env: a, stopped: func(ctx context.Context, worker string) bool {
		revoke := func(t muster.Task) error { return g.lander.Revoke(ctx, t.ID, t.Fence) }
		return r.giveToAnother(ctx, muster.Name(worker), revoke)
	}}
	if err := w.run(ctx, jobs, a.fatesOfLandings(a.amount(150, 12))); err != nil || a.row.Bad() {
		return err
	}
	return a.checkLandings(ctx, r, g)
}

// fatesOfLandings returns n fates: in each round a kill at every point of a landing and of a lane, and some stops just
// before the target moves. Since a process may never pass its point, it is also armed with one that every landing
// passes.
func (a *env) fatesOfLandings(n int) (fates []fate) {
	common := pointsOf("landing.m", "landing.c", "landing.packed", "landing.noted", "landing.recorded", "lane.a",
		"lane.removed")
	stops := []string{"stop:landing.checked", "stop:landing.moving", "stop:landing.claimed"}
	for len(fates) < n {
		round := append(stops, stops...)
		for _, p := range pointsOf("landing.", "lane.", "lanes.", "tasks.put.", "objects.", "packs.n", "packs.r") {
			round = append(round, "kill:"+p)
		}
		a.rng.Shuffle(len(round), func(i, k int) { round[i], round[k] = round[k], round[i] })
		if len(fates) == 0 { // even a short session has stops
			round = append(stops, round...)
		}
		for _, arm := range round {
			arm += fmt.Sprintf(";kill:%s:%d", common[a.rng.IntN(len(common))], 2+a.rng.IntN(3))
			fates = append(fates, fate{arm: arm, stop: strings.HasPrefix(arm, "stop:")})
		}
	}
	return fates[:n]
}

// pointsOf returns the points whose names begin with one of the prefixes.
func pointsOf(prefixes ...string) (names []string) {
	for _, p := range faultinject.Points() {
		for _, prefix := range prefixes {
			if strings.HasPrefix(p.Name, prefix) {
				names = append(names, p.Name)
			}
		}
	}
	return names
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
	isGreen := func(context.Context, string) (string, error) { return landing.BaseGreen, nil }
	g.lander = landing.New(g.repo, g.lanes, r.board, r.journal, launch, landing.Options{Target: "refs/heads/" + target,
		Check: landing.Check{Command: greenCheck}, Outputs: dir.Outputs(), CheckState: isGreen})
	return g, nil
}

// lander is a process that creates tasks, claims some of them and lands these at the same time, each from a lane.
func lander(ctx context.Context, r *services) error {
	g, err := r.openGit(ctx)
	if err != nil {
		return err
	}
	if err := g.lanes.Recover(ctx); err != nil {
		return err
	}
	held, err := r.heldBy(ctx, r.owner()) // by an earlier process of this worker
	if err != nil {
		return err
	}
	if err := r.landAll(ctx, g, held); err != nil {
		return err
	}
	r.report(isReady)
	for {
		held, err := r.claimSome(ctx)
		if err != nil {
			return err
		}
		if err := r.landAll(ctx, g, held); err != nil {
			return err
		}
		if len(held) > 0 {
			continue
		}
		if over, err := r.allDone(ctx); err != nil || over {
			return err
		}
	}
}

// claimSome claims as many tasks as a process lands at once, or those that there are.
func (r *services) claimSome(ctx context.Context) (held []muster.Task, err error) {
	for len(held) < atOnce {
		t, ok, err := r.claimOrCreate(ctx)
		if ok {
			held = append(held, t)
		} else if err != nil || len(held) > 0 || r.isFinishing() {
			return held, err
		}
	}
	return held, nil
}

// landAll takes some tasks to their ends, at the same time.
func (r *services) landAll(ctx context.Context, g gitServices, tasks []muster.Task) error {
	failed := make([]error, len(tasks))
	var all sync.WaitGroup
	for i, t := range tasks {
		all.Go(func() { failed[i] = r.land(ctx, g, t) })
	}
	all.Wait()
	return errors.Join(failed...)
}

// land takes one task to its end: its lane, its work, its landing.
func (r *services) land(ctx context.Context, g gitServices, t muster.Task) error {
	lane, err := r.laneOf(ctx, g, &t)
	if err == nil {
		err = r.landLane(ctx, g, t, lane)
	}
	if err == nil {
		r.report("done", t.ID, t.Fence, r.Name)
		return nil
	}
	now, getErr := r.board.Get(ctx, t.ID)
	if getErr != nil || !errors.Is(err, muster.ErrFenced) && now.Fence == t.Fence {
		return errors.Join(err, getErr)
	}
	// The claim is another's now. Its new owner may have archived the lane at any moment, so all errors are excused.
	r.report("late", t.ID, t.Fence, r.Name)
	if lane.Name != "" && now.Worktree != lane.Name {
		_, _ = g.lanes.Archive(ctx, lane.Name) // what cannot be archived is kept
	}
	return nil
}

// laneOf returns the lane of this claim, which an earlier process of this worker may have made.
func (r *services) laneOf(ctx context.Context, g gitServices, t *muster.Task) (lane muster.Lane, err error) {
	name := muster.Name(fmt.Sprintf("claim-%d-%d", t.ID, t.Fence))
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

// landLane does the work of a task in its lane and lands it. A task that comes back is mended and landed again.
func (r *services) landLane(ctx context.Context, g gitServices, t muster.Task, lane muster.Lane) error {
	broken := filepath.Join(lane.Path, fmt.Sprintf("broken-%d", t.ID))
	for {
		work := fmt.Appendf(nil, "%s %d\n", t.Owner, t.Fence)
		err := os.WriteFile(filepath.Join(lane.Path, fmt.Sprintf("work-%d", t.ID)), work, 0o644)
		if isFirst := t.Status == muster.InProgress && t.Returns == 0; err == nil && isFirst && t.ID%5 == 0 {
			err = os.WriteFile(broken, work, 0o644)
		} else if err == nil {
			err = os.RemoveAll(broken)
		}
		if err != nil {
			return err
		}
		v, err := g.lander.Land(ctx, t.ID, t.Fence, "Does it.", t.Owner)
		if err != nil || v.Task.Status != muster.InProgress {
			return err
		}
		t = v.Task
	}
}

// checkLandings compares the promises and the board with the repository, after a last recovery.
func (a *env) checkLandings(ctx context.Context, r *services, g gitServices) error {
	if err := g.lanes.Recover(ctx); err != nil {
		return err
	}
	if err := r.board.Settle(ctx); err != nil {
		return err
	}
	all, err := r.board.List(ctx)
	if err != nil {
		return err
	}
	a.checkPromises(all)
	// A process whose claim was given to another archives its lane itself, and may have been killed before.
	lanes, err := g.lanes.List(ctx)
	if err != nil {
		return err
	}
	for _, lane := range lanes {
		if t, err := r.board.Get(ctx, lane.TaskID); err != nil || t.Worktree != lane.Name {
			if _, err := g.lanes.Archive(ctx, lane.Name); err != nil {
				return err
			}
		}
	}
	red, err := a.git("log", "--format=%H", "main.."+target, "--", "broken-*")
	if err != nil {
		return err
	}
	if red != "" {
		a.fail(&a.row.Lost, "%s was red at %s", target, strings.ReplaceAll(red, "\n", ", "))
	}
	return a.checkGit(all, target)
}
