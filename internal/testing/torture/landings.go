package torture

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"muster"
	"muster/internal/proc"
	"muster/internal/testing/faultinject"
)

// greenCheck is the check of the landings. A task whose number can be divided by five breaks it with its first try.
const greenCheck = "! ls broken-*"

// landings lets four processes land tasks in one git repository, and kills them at every point of a landing and of a
// lane's life. Each task must have landed once, as the commit that is recorded, and the target must be green at each of
// its commits.
func landings(ctx context.Context, a *env) error {
	w := &workers{env: a}
	if err := w.run(ctx, a.jobs("land", "l", 4), a.armsOfLandings(a.amount(150, 12))); err != nil {
		return err
	}
	return a.checkLandings(ctx)
}

// ofLanding matches the points at which the processes are killed.
var ofLanding = regexp.MustCompile(`^(landing|lane|lanes|objects|packs|tasks\.put)\.`)

// armsOfLandings returns n arms: kills at the points of a landing and of a lane. Since a process may never pass its
// point, it also dies at random.
func (a *env) armsOfLandings(n int) (arms []arm) {
	var points []string
	for _, p := range faultinject.Points() {
		if ofLanding.MatchString(p.Name) {
			points = append(points, p.Name)
		}
	}
	a.rng.Shuffle(len(points), func(i, k int) { points[i], points[k] = points[k], points[i] })
	for i := range n {
		arms = append(arms, arm{fault: fmt.Sprintf("kill:%s;random:%d:0.002", points[i%len(points)], a.rng.Uint32())})
	}
	return arms
}

// lander is a process that lands three tasks at once, each from a lane. They are one stack, unless one comes too late.
func lander(ctx context.Context, r *worker) error {
	launcher, err := proc.New(ctx)
	if err != nil {
		return err
	}
	r.SetLauncher(launcher)
	if err := r.lanes.Recover(ctx); err != nil {
		return err
	}
	return r.doTasks(ctx, 3, r.land)
}

// land does the work of a task in a lane and lands it. A task that comes back is mended and landed again.
func (r *worker) land(ctx context.Context, t muster.Task) error {
	if t.Worktree == "" { // else an earlier process of this worker has made it
		lane, err := r.lanes.Create(ctx, muster.Name(fmt.Sprintf("task-%d-%d", t.ID, os.Getpid())), t.ID, "")
		if err != nil {
			return err
		}
		if t, err = r.Board().SetLane(ctx, t.ID, t.Fence, lane.Name, lane.Base); err != nil {
			return err
		}
	}
	dir, err := r.lanes.Enter(ctx, t.Worktree)
	if err != nil {
		return err
	}
	text := fmt.Appendf(nil, "%s %d\n", t.Owner, t.Fence)
	for {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("work-%d", t.ID)), text, 0o644); err != nil {
			return err
		}
		broken := filepath.Join(dir, fmt.Sprintf("broken-%d", t.ID))
		if t.ID%5 == 0 && t.Returns == 0 && t.Status == muster.InProgress {
			err = os.WriteFile(broken, text, 0o644)
		} else {
			err = os.RemoveAll(broken)
		}
		if err != nil {
			return err
		}
		v, err := r.lander.Land(ctx, t.ID, t.Fence, "Does it.", t.Owner)
		if err != nil {
			return err
		}
		if t = v.Task; t.Status != muster.InProgress {
			r.report("done", t.ID, t.Fence, r.Worker)
			return nil
		}
	}
}

// checkLandings compares the promises and the board with the repository, after a last recovery.
func (a *env) checkLandings(ctx context.Context) error {
	if err := a.lanes.Recover(ctx); err != nil {
		return err
	}
	all, err := a.settled(ctx)
	if err != nil {
		return err
	}
	// A process that was killed may have left a lane that its task does not name.
	lanes, err := a.lanes.List(ctx)
	if err != nil {
		return err
	}
	for _, lane := range lanes {
		if t, err := a.Board().Get(ctx, lane.TaskID); err != nil || t.Worktree != lane.Name {
			if _, err := a.lanes.Archive(ctx, lane.Name); err != nil {
				return err
			}
		}
	}
	a.checkGit(all, target)
	return nil
}
