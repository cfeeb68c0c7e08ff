package torture

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/board"
)

// claims lets twelve processes create tasks that depend on each other, claim them and complete them. Processes are
// killed. Some are stopped before, and their claims are given to others before they go on.
func claims(ctx context.Context, a *env) error {
	r, err := a.openServices()
	if err != nil {
		return err
	}
	defer r.store.Close()
	var jobs []Job
	for i := range 12 {
		jobs = append(jobs, Job{Kind: "claim", Name: fmt.Sprintf("p%d", i+1), Seed: a.rng.Uint64()})
	}
	fates := a.atRandom(a.amount(100, 8))
	for range a.amount(50, 5) {
		fates = append(fates, fate{stop: true})
	}
	a.rng.Shuffle(len(fates), func(i, k int) { fates[i], fates[k] = fates[k], fates[i] })
	w := &workers{env: a, stopped: func(ctx context.Context, worker string) bool {
		return r.giveToAnother(ctx, muster.Name(worker), func(muster.Task) error { return nil })
	}}
	if err := w.run(ctx, jobs, fates); err != nil || a.row.Bad() {
		return err
	}
	return a.checkClaims(ctx, r)
}

// claimer claims the next task, works on it for some milliseconds and completes it, again and again.
func claimer(ctx context.Context, r *services) error {
	r.board.OnEffect(muster.EffectTell, r.tellLead)
	held, err := r.heldBy(ctx, r.owner()) // by an earlier process of this worker
	if err != nil {
		return err
	}
	for _, t := range held {
		if err := r.complete(ctx, t); err != nil {
			return err
		}
	}
	r.report(isReady)
	for {
		t, ok, err := r.claimOrCreate(ctx)
		if err != nil {
			return err
		}
		if ok {
			err = r.complete(ctx, t)
		} else if r.isFinishing() {
			var isDone bool
			if isDone, err = r.allDone(ctx); isDone {
				return nil
			}
		}
		if err != nil {
			return err
		}
	}
}

func (r *services) owner() muster.Name { return muster.Name(r.Name) }

// tellLead is the effect of a completion.
func (r *services) tellLead(ctx context.Context, t muster.Task) error {
	_, err := r.post.Send(ctx, muster.Message{ID: muster.MessageID(fmt.Sprintf("task-%d-%d", t.ID, t.Fence)),
		From: muster.System, To: muster.Lead, Type: muster.MailLanded, TaskID: t.ID, Content: t.Subject})
	return err
}

func (r *services) complete(ctx context.Context, t muster.Task) error {
	time.Sleep(2*time.Millisecond + rand.N(8*time.Millisecond))
	_, err := r.board.Complete(ctx, t.ID, t.Fence, board.Outcome{By: r.owner()})
	if errors.Is(err, muster.ErrFenced) {
		r.report("late", t.ID, t.Fence, r.Name)
		return nil
	}
	if err == nil {
		r.report("done", t.ID, t.Fence, r.Name)
	}
	return err
}

// maxOpen is how many tasks are open at most.
const maxOpen = 50

// claimOrCreate claims the next task. If there is none, it creates one, which depends on up to two of the open ones,
// unless there are enough or the workers are to finish.
func (r *services) claimOrCreate(ctx context.Context) (t muster.Task, ok bool, err error) {
	if t, ok, err = r.board.ClaimNext(ctx, board.Claim{Owner: r.owner()}); ok || err != nil {
		return t, ok, err
	}
	open, err := r.board.List(ctx)
	if err != nil {
		return t, false, err
	}
	open = slices.DeleteFunc(open, func(t muster.Task) bool { return !t.Open() })
	if len(open) >= maxOpen || r.isFinishing() {
		time.Sleep(10 * time.Millisecond)
		return t, false, nil
	}
	d := board.Draft{Subject: "work", CreatedBy: muster.Lead}
	if len(open) > 1 {
		first := rand.IntN(len(open) - 1)
		for _, t := range open[first : first+rand.IntN(3)] {
			d.BlockedBy = append(d.BlockedBy, t.ID)
		}
	}
	if t, err = r.board.Create(ctx, d); err == nil {
		r.report("created", t.ID)
	}
	return t, false, err
}

// heldBy returns the tasks that the owner has claimed.
func (r *services) heldBy(ctx context.Context, owner muster.Name) ([]muster.Task, error) {
	all, err := r.board.List(ctx)
	return slices.DeleteFunc(all, func(t muster.Task) bool { return t.Owner != owner || !t.Claimed() }), err
}

// allDone settles what killed processes have left undone, and reports whether every task is completed.
func (r *services) allDone(ctx context.Context) (bool, error) {
	if err := r.board.Settle(ctx); err != nil && !board.OnlyUnsettled(err) {
		return false, err
	}
	all, err := r.board.List(ctx)
	return err == nil && !slices.ContainsFunc(all, muster.Task.Open), err
}

// giveToAnother takes the claims of a stopped owner back, after it has called before for each, and waits until others
// have them. The owner may have been stopped while it held a lock that others wait for, so there is a limit to that.
func (r *services) giveToAnother(ctx context.Context, owner muster.Name, before func(muster.Task) error) (gave bool) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	held, err := r.heldBy(ctx, owner)
	if err != nil {
		return false
	}
	for _, t := range held {
		if before(t) != nil {
			continue
		}
		now, err := r.board.Revoke(ctx, t.ID, t.Fence, muster.Lead, "its owner is stopped")
		gave = gave || err == nil
		for err == nil && ctx.Err() == nil && now.Owner == "" {
			time.Sleep(2 * time.Millisecond)
			now, err = r.board.Get(ctx, t.ID)
		}
	}
	return gave
}

// checkPromises compares what the workers were promised with the board: each created task is there, and each task was
// completed by one claim, the one that the board names.
func (a *env) checkPromises(all []muster.Task) {
	byID := map[string]muster.Task{}
	for _, t := range all {
		byID[number(t.ID)] = t
	}
	a.row.Operations = len(all)
	for _, p := range a.promises {
		t, ok := byID[p.words[1]]
		if !ok {
			a.fail(&a.row.Lost, "task %s was created and is not on the board", p.words[1])
			continue
		}
		switch claim := fmt.Sprintf("%d %d %s", t.ID, t.Fence, t.CompletedBy); p.words[0] {
		case "late":
			a.row.Refused++
		case "done":
			if by := strings.Join(p.words[1:], " "); by != claim {
				a.fail(&a.row.Doubled, "task %d was completed by the claim %q, and the board says %q", t.ID, by, claim)
			}
		}
	}
}

// checkClaims wants every task to be completed, and the lead to have one mail about each: the effect that is settled
// after the step.
func (a *env) checkClaims(ctx context.Context, r *services) error {
	r.board.OnEffect(muster.EffectTell, r.tellLead)
	if err := r.board.Settle(ctx); err != nil {
		return err
	}
	all, err := r.board.List(ctx)
	if err != nil {
		return err
	}
	a.checkPromises(all)
	mails, _, _, err := r.post.Peek(ctx, muster.Lead, 0, 1<<30)
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
			a.fail(&a.row.Stuck, "task %d is %s and waits for %v", t.ID, t.Status, t.BlockedBy)
		case told[t.ID] == 0:
			a.fail(&a.row.Lost, "the lead was not told that task %d is completed", t.ID)
		case told[t.ID] > 1:
			a.fail(&a.row.Doubled, "the completion of task %d was told %d times", t.ID, told[t.ID])
		}
	}
	return nil
}
