package torture

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/proc"
	"muster/internal/testing/faultinject"
)

// greenCheck is the check of the landings. A task whose number can be divided by five breaks it with its first try.
const greenCheck = "! ls broken-*"

// landings lets four processes land tasks in one git repository. They are killed at every point of a landing and of a
// lane's life, and stopped before the target moves while their claims are given to others. Each task must have landed
// once, as the commit that is recorded, and the target must be green at each of its commits.
func landings(ctx context.Context, a *env) error {
	w := &workers{env: a, stopped: a.giveToAnother}
	if err := w.run(ctx, a.jobs("land", "l", 4), a.armsOfLandings(a.amount(150, 12))); err != nil {
		return err
	}
	return a.checkLandings(ctx)
}

// ofLanding matches the points at which the processes are killed, stopPoints are those at which they are stopped.
var (
	ofLanding  = regexp.MustCompile(`^(landing|lane|lanes|objects|packs|tasks\.put)\.`)
	stopPoints = []string{"landing.checked", "landing.moving", "landing.claimed"}
)

// armsOfLandings returns n arms: kills at the points of a landing and of a lane, and a stop after every fourth. Since
// a process may never pass its point, it also dies at random.
func (a *env) armsOfLandings(n int) (arms []arm) {
	var points []string
	for _, p := range faultinject.Points() {
		if ofLanding.MatchString(p.Name) {
			points = append(points, p.Name)
		}
	}
	a.rng.Shuffle(len(points), func(i, k int) { points[i], points[k] = points[k], points[i] })
	for i := 0; len(arms) < n; i++ {
		arms = append(arms, arm{fault: fmt.Sprintf("kill:%s;random:%d:0.002", points[i%len(points)], a.rng.Uint32())})
		if i%4 == 0 {
			arms = append(arms, arm{fault: "stop:" + stopPoints[i/4%len(stopPoints)]})
		}
	}
	return arms
}

// giveToAnother takes the claims of a stopped worker back and gives them to others at once, before the target moves.
// It gives up after a second, because the worker may have been stopped while it holds a lock.
func (a *env) giveToAnother(ctx context.Context, worker muster.Name) (gave bool) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	held, err := a.heldBy(ctx, worker)
	if err != nil {
		return false
	}
	others := slices.DeleteFunc([]muster.Name{"l1", "l2", "l3", "l4"}, func(n muster.Name) bool { return n == worker })
	for _, t := range held {
		if _, err := a.RevokeTask(ctx, t, muster.Lead, "its owner is stopped"); err == nil {
			_, err = a.Board().Claim(ctx, t.ID, board.Claim{Owner: others[int(t.ID)%len(others)]})
			gave = gave || err == nil || errors.Is(err, muster.ErrHeld) // Held: a third one was faster
		}
	}
	return gave
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

// land takes one task to its end, or reports that it came too late.
func (r *worker) land(ctx context.Context, t muster.Task) error {
	err := r.landTask(ctx, t)
	if err == nil {
		r.report("done", t.ID, t.Fence, r.Worker)
		return nil
	}
	now, getErr := r.Board().Get(ctx, t.ID)
	if getErr != nil || !errors.Is(err, muster.ErrFenced) && now.Fence == t.Fence {
		return errors.Join(err, getErr)
	}
	// The claim is another's now. Its new owner may have archived the lane at any moment, so all errors are excused.
	// The board must refuse a late completion, too.
	_, err = r.Board().Complete(ctx, t.ID, t.Fence, board.Outcome{By: r.Worker})
	if !errors.Is(err, muster.ErrFenced) {
		return errors.Join(fmt.Errorf("the late completion of task %d was not refused", t.ID), err)
	}
	r.report("late", t.ID, t.Fence, r.Worker)
	return nil
}

// landTask does the work of a task in a lane and lands it. A task that comes back is mended and landed again.
func (r *worker) landTask(ctx context.Context, t muster.Task) error {
	claim := fmt.Sprintf("claim-%d-%d-", t.ID, t.Fence)
	if old := t.Worktree; !strings.HasPrefix(string(old), claim) { // else an earlier process of this worker has made it
		lane, err := r.lanes.Create(ctx, muster.Name(claim+strconv.Itoa(os.Getpid())), t.ID, "")
		if err != nil {
			return err
		}
		if t, err = r.Board().SetLane(ctx, t.ID, t.Fence, lane.Name, lane.Base); err != nil {
			return err
		}
		if old != "" {
			_, _ = r.lanes.Archive(ctx, old) // what cannot be archived is kept
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
		if err != nil || v.Task.Status != muster.InProgress {
			return err
		}
		t = v.Task
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
	// A process that was late or was killed may have left a lane that its task does not name.
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
