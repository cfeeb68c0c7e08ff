package torture

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"muster"
	"muster/internal/board"
)

// claims lets twelve processes create tasks that depend on each other, claim them and complete them, and kills the
// processes.
func claims(ctx context.Context, a *env) error {
	w := &workers{env: a}
	if err := w.run(ctx, a.jobs("claim", "p", 12), a.randomArms(a.amount(600, 24))); err != nil {
		return err
	}
	return a.checkClaims(ctx)
}

// claimer claims the next task, works on it for some milliseconds and completes it, again and again.
func claimer(ctx context.Context, r *worker) error {
	return r.doTasks(ctx, 1, func(ctx context.Context, t muster.Task) error {
		time.Sleep(2*time.Millisecond + time.Duration(r.rng.IntN(8))*time.Millisecond)
		_, err := r.Board().Complete(ctx, t.ID, t.Fence, board.Outcome{By: r.Worker})
		if err == nil {
			r.report("done", t.ID, t.Fence, r.Worker)
		}
		return err
	})
}

// doTasks claims tasks and does them, at most atOnce at the same time, until the worker is told to finish and all tasks
// are completed.
func (r *worker) doTasks(ctx context.Context, atOnce int, do func(context.Context, muster.Task) error) error {
	for {
		tasks, err := r.claim(ctx, atOnce)
		if err != nil {
			return err
		}
		if len(tasks) == 0 && r.isFinishing() {
			time.Sleep(10 * time.Millisecond)
			if isDone, err := r.allDone(ctx); err != nil || isDone {
				return err
			}
		}
		failed := make([]error, len(tasks))
		var all sync.WaitGroup
		for i, t := range tasks {
			all.Go(func() { failed[i] = do(ctx, t) })
		}
		all.Wait()
		if err := errors.Join(failed...); err != nil {
			return err
		}
	}
}

// claim returns the tasks that an earlier process of this worker has claimed, and claims up to n in all. If there are
// fewer, it creates one, unless the worker is to finish.
func (r *worker) claim(ctx context.Context, n int) ([]muster.Task, error) {
	held, err := r.Board().List(ctx)
	if err != nil {
		return nil, err
	}
	held = slices.DeleteFunc(held, func(t muster.Task) bool { return t.Owner != r.Worker || !t.Claimed() })
	for len(held) < n {
		t, ok, err := r.Board().ClaimNext(ctx, board.Claim{Owner: r.Worker})
		if err != nil {
			return nil, err
		}
		if !ok && !r.isFinishing() {
			return held, r.create(ctx)
		}
		if !ok {
			break
		}
		held = append(held, t)
	}
	return held, nil
}

// maxOpen is how many tasks are open at most.
const maxOpen = 50

// create creates a task, which depends on up to two of the open ones, unless there are enough.
func (r *worker) create(ctx context.Context) error {
	open, err := r.Board().List(ctx)
	if err != nil {
		return err
	}
	open = slices.DeleteFunc(open, func(t muster.Task) bool { return !t.Open() })
	if len(open) >= maxOpen {
		time.Sleep(10 * time.Millisecond)
		return nil
	}
	d := board.Draft{Subject: "work", CreatedBy: muster.Lead}
	for _, i := range r.rng.Perm(len(open))[:min(r.rng.IntN(3), len(open))] {
		d.BlockedBy = append(d.BlockedBy, open[i].ID)
	}
	t, err := r.Board().Create(ctx, d)
	if err == nil {
		r.report("created", t.ID)
	}
	return err
}

// allDone settles what killed processes have left undone, and reports whether every task is completed.
func (r *worker) allDone(ctx context.Context) (bool, error) {
	if err := r.Board().Settle(ctx); err != nil && !board.OnlyUnsettled(err) {
		return false, err
	}
	all, err := r.Board().List(ctx)
	return err == nil && !slices.ContainsFunc(all, muster.Task.Open), err
}

// settled returns the board's tasks after a last settling. It compares them with the promises: each created task is
// there, and each completed one was completed by one claim, the one that the board names.
func (a *env) settled(ctx context.Context) ([]muster.Task, error) {
	if err := a.Board().Settle(ctx); err != nil {
		return nil, err
	}
	all, err := a.Board().List(ctx)
	if err != nil {
		return nil, err
	}
	a.row.operations = len(all)
	for _, p := range a.promises {
		kind, claim, _ := strings.Cut(p, " ")
		id, _, _ := strings.Cut(claim, " ")
		i := slices.IndexFunc(all, func(t muster.Task) bool { return fmt.Sprint(t.ID) == id })
		if i < 0 {
			a.fail(&a.row.lost, "task %s was created and is not on the board", id)
			continue
		}
		t := all[i]
		by := fmt.Sprintf("%d %d %s", t.ID, t.Fence, t.CompletedBy)
		if kind == "done" && claim != by {
			a.fail(&a.row.doubled, "task %d was completed by the claim %q, and the board says %q", t.ID, claim, by)
		}
	}
	return all, nil
}

// checkClaims wants every task to be completed, and the lead to have one mail about each: the effect that is settled
// after the step.
func (a *env) checkClaims(ctx context.Context) error {
	all, err := a.settled(ctx)
	if err != nil {
		return err
	}
	mails, _, _, err := a.Mail(ctx).Peek(ctx, muster.Lead, 0, 1<<30)
	if err != nil {
		return err
	}
	told := map[muster.TaskID]int{}
	for _, m := range mails {
		told[m.TaskID]++
	}
	for _, t := range all {
		switch {
		case t.Status != muster.Completed || len(t.BlockedBy) > 0:
			a.fail(&a.row.stuck, "task %d is %s and waits for %v", t.ID, t.Status, t.BlockedBy)
		case told[t.ID] == 0:
			a.fail(&a.row.lost, "the lead was not told that task %d is completed", t.ID)
		case told[t.ID] > 1:
			a.fail(&a.row.doubled, "the completion of task %d was told %d times", t.ID, told[t.ID])
		}
	}
	return nil
}
