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
	"muster/internal/board"
)

// stackCheck is the check of the landings. A task whose number can be divided by five breaks it with its first try.
const stackCheck = "test -e README && ! ls broken-*"

// atOnce is how many tasks a process lands at once. They are one stack, unless one of them comes too late.
const atOnce = 3

// claimSome claims as many tasks as a process lands at once, or those that there are.
func (r *services) claimSome(ctx context.Context, owner muster.Name) (held []muster.Task, err error) {
	for len(held) < atOnce {
		t, ok, err := r.board.ClaimNext(ctx, board.Claim{Owner: owner})
		if err != nil || !ok {
			return held, err
		}
		held = append(held, t)
	}
	return held, nil
}

// landAll takes some tasks to their ends, at the same time.
func (r *services) landAll(ctx context.Context, g gitServices, tasks []muster.Task, owner muster.Name) error {
	failed := make([]error, len(tasks))
	var all sync.WaitGroup
	for i, t := range tasks {
		all.Go(func() { failed[i] = r.land(ctx, g, t, owner) })
	}
	all.Wait()
	return errors.Join(failed...)
}

// landLane does the work of a task in its lane and lands it. What breaks the check is mended when the task comes back.
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
		t = v.Task // it came back
	}
}

// isOver reports whether a claim is another's now. A process that is stopped while it lands one task may be anywhere
// with the others, so that the next owner has archived their lanes.
func (r *services) isOver(ctx context.Context, t muster.Task) bool {
	now, err := r.board.Get(ctx, t.ID)
	return err == nil && now.Fence != t.Fence
}

// archiveLate archives the lanes that no task names. A process whose claim was given to another before the task had its
// lane archives that itself, and may have been killed before.
func (r *services) archiveLate(ctx context.Context, g gitServices) error {
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
	return nil
}

// checkStacks wants the target to have been green at each of its commits, and each commit that claims no check of its
// own to lie below one that was checked.
func checkStacks(a *env, all []muster.Task) error {
	out, err := a.git("log", "--format=%H", "main.."+target, "--", "broken-*")
	if err != nil {
		return err
	}
	if out != "" {
		a.fail(&a.row.Lost, "%s was red at %s", target, strings.ReplaceAll(out, "\n", ", "))
	}
	if out, err = a.git("log", "-1", "--format=%(trailers:key=Muster-Check,valueonly)", target); err != nil {
		return err
	}
	if !strings.HasPrefix(out, muster.ReceiptGreen) {
		a.fail(&a.row.Lost, "the tip of %s says %q of its check", target, out)
	}
	landed := map[muster.TaskID]*muster.Landed{}
	for _, t := range all {
		landed[t.ID] = t.Landed
	}
	for id, l := range landed {
		// A landing that a crash kept from being recorded is found by its commit, which does not name the later one.
		if l == nil || l.Receipt != muster.ReceiptCovered || l.CoveredBy == 0 {
			continue
		}
		by := landed[l.CoveredBy]
		if by == nil || by.Receipt != muster.ReceiptGreen {
			a.fail(&a.row.Lost, "task %d is covered by the check of task %d, which says %v", id, l.CoveredBy, by)
			continue
		}
		if _, err := a.git("merge-base", "--is-ancestor", l.Commit, by.Commit); err != nil {
			a.fail(&a.row.Lost, "task %d is covered by the check of task %d, which does not have it: %v", id,
				l.CoveredBy, err)
		}
	}
	return nil
}
