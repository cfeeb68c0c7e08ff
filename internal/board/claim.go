package board

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"muster"
	"muster/internal/text"
	"muster/journal"
)

// Claim says who takes a task and how it came to it.
type Claim struct {
	Owner  muster.Name
	Role   string // of the owner; tasks for another role are refused
	Source string // muster.SourceAuto or SourceManual
	// OnlyOwn says that ClaimNext proposes only tasks that ask for Role.
	OnlyOwn bool
}

// Claim makes the task the owner's and returns it with the new fence. It reads the task and its blockers,
// nothing else. Errors: Held when somebody has it, Invalid when it is blocked, for another role, or not
// pending.
func (b *Board) Claim(ctx context.Context, id muster.TaskID, c Claim) (muster.Task, error) {
	if err := checkOwner(c.Owner); err != nil {
		return muster.Task{}, err
	}
	c.Source = cmp.Or(c.Source, muster.SourceManual)
	var isBlocked bool
	t, err := b.change(ctx, id, func(t *muster.Task) error {
		was := *t
		if err := claim(t, c, now()); err != nil {
			return err
		}
		// The blockers are read after the task. One that is completed in between is found completed. One that is
		// added in between changes the task, so the write of this claim is stale and this function is called again.
		err := b.checkBlockers(ctx, was)
		isBlocked = err != nil
		return err
	})
	if isBlocked && b.tasks.Refresh(ctx) == nil {
		// Other programs test blockedBy. The error is dropped because Settle repairs what this leaves.
		_ = b.updateBlockedBy(ctx, id)
	}
	if err != nil {
		return muster.Task{}, err
	}
	line := claimLine{Event: journal.TaskClaimed, Owner: t.Owner, Role: c.Role, Source: c.Source}
	return t, b.emitClaim(ctx, t, line, claimEvent(t, c))
}

// claimEvent is the event of a claim that gave the task to its owner.
func claimEvent(t muster.Task, c Claim) muster.Event {
	return event(journal.TaskClaimed, t, t.Owner, map[string]any{"role": c.Role, "source": c.Source,
		"subject": t.Subject, "fence": t.Fence, "lane": string(t.Worktree)})
}

// checkBlockers reads the blockers of t as they are stored, because the graph may be behind what other
// processes have just written. It returns the refusal that names the unfinished ones, if there is one.
func (r *records) checkBlockers(ctx context.Context, t muster.Task) error {
	var says []string
	for _, id := range set(t.DependsOn...) {
		on, _, err := r.read(ctx, id)
		switch {
		case errors.Is(err, muster.ErrNotFound):
			says = append(says, fmt.Sprintf("%d, which does not exist", id))
		case errors.Is(err, muster.ErrCorrupt):
			says = append(says, fmt.Sprintf("%d, which cannot be read", id))
		case err != nil:
			return err
		case on.Status == muster.Completed:
			continue
		default:
			says = append(says, fmt.Sprintf("%d (%s)", id, where(on)))
		}
	}
	if says == nil {
		return nil
	}
	if more := len(says) - 5; more > 0 {
		says = append(says[:5], fmt.Sprintf("%d more", more))
	}
	return muster.Errorf(muster.Invalid, "task %d waits for %s", t.ID, strings.Join(says, ", "))
}

// where returns a task's status, and its owner if it has one, in words for a refusal.
func where(t muster.Task) string {
	s := strings.ReplaceAll(string(t.Status), "_", " ")
	if t.Owner != "" && t.Open() {
		s += ", " + string(t.Owner) + "'s"
	}
	return s
}

// ClaimNext claims the first task that is ready for c.Role: the higher priority first, then the lower id,
// and last those with files that somebody works on (see readyFor). It returns false when there is none, or when others
// were faster at all of them.
//
// The graph only proposes tasks, and Claim decides by the stored document. A task that Claim refuses is not
// proposed again in this call, so the loop ends although the graph may be behind.
func (b *Board) ClaimNext(ctx context.Context, c Claim) (muster.Task, bool, error) {
	c.Source = cmp.Or(c.Source, muster.SourceAuto)
	tried := map[muster.TaskID]bool{} // refused in this call
	for {
		next := muster.TaskID(0)
		err := b.tasks.ViewFresh(ctx, func() {
			for next = range b.graph.readyFor(c.Role, c.OnlyOwn) {
				if !tried[next] {
					// Who decides before this claim is written takes no task with the same files.
					mark(b.graph.claiming, next, len(b.graph.tasks[next].task.Files) > 0)
					return
				}
			}
			next = 0
		})
		if err != nil {
			return muster.Task{}, false, err
		}
		if next == 0 {
			return muster.Task{}, false, nil
		}
		t, err := b.Claim(ctx, next, c)
		b.tasks.View(func() { mark(b.graph.claiming, next, false) })
		switch {
		case t.ID != 0:
			return t, true, err
		case errors.Is(err, muster.ErrHeld), ignoreVanished(err) == nil,
			errors.Is(err, muster.ErrInvalid) && checkOwner(c.Owner) == nil:
			tried[next] = true
		default:
			return muster.Task{}, false, err
		}
	}
}

// SetLane binds the task to a lane and the commit it was made from, for the holder of the fence. A pending
// task may be bound too: its next owner gets the lane. The lane must exist before, so that no task ever
// names one that was never made.
func (b *Board) SetLane(
	ctx context.Context, id muster.TaskID, fence int, lane muster.Name, base string,
) (muster.Task, error) {
	return b.change(ctx, id, func(t *muster.Task) error {
		if t.Fence != fence || t.Status == muster.Completed {
			return errClaimLost(*t)
		}
		if t.Worktree == lane && t.Base == base {
			return errNoChange
		}
		t.Worktree, t.Base, t.UpdatedAt = lane, base, now()
		return nil
	})
}

// ForgetLane takes the name of a removed lane from the completed task that it belonged to. It leaves any other task,
// and one that cannot be read, as it is.
func (b *Board) ForgetLane(ctx context.Context, lane muster.Lane) error {
	if lane.TaskID == 0 {
		return nil
	}
	_, err := b.change(ctx, lane.TaskID, func(t *muster.Task) error {
		if t.Status != muster.Completed || t.Worktree != lane.Name {
			return errNoChange
		}
		t.Worktree = ""
		return nil
	})
	if errors.Is(err, muster.ErrNotFound) || errors.Is(err, muster.ErrCorrupt) {
		return nil
	}
	return err
}

// Release says why a task is given back.
type Release struct {
	Reason string
	Note   string      // for the next owner; "" leaves what an earlier one noted
	Counts bool        // a turn limit, a loop, "cannot": the third makes it needs_attention
	Final  bool        // it needs attention at once: only the user can change what stands in its way
	By     muster.Name // "" is the owner
}

// Release gives the task back to the board and keeps its lane and its fence. To give it back a second time
// with the same fence changes nothing and is no error: a caller that crashed after the first time may
// repeat it. Another fence is Fenced.
func (b *Board) Release(ctx context.Context, id muster.TaskID, fence int, r Release) (muster.Task, error) {
	t, was, changed, err := b.step(ctx, id, func(t *muster.Task) error { return release(t, fence, r, now()) })
	if !changed {
		return t, err
	}
	fields := map[string]any{"reason": r.Reason}
	if r.By != "" && r.By != was.Owner {
		fields["by"] = string(r.By)
	}
	return b.endClaim(ctx, journal.TaskReleased, t, was, event(journal.TaskReleased, t, was.Owner, fields))
}

// Revoke ends the claim with the fence, and puts the task back on the board. It raises the fence, so that whatever
// the old owner still tries is refused. A task that nobody has is Invalid, and one that was claimed again is Fenced.
//
// The right to land is not the board's: the caller ends it first, for the same fence (landing's Revoke). Otherwise
// work of the old owner could still land after this, and with another fence the work of another claim.
func (b *Board) Revoke(
	ctx context.Context, id muster.TaskID, fence int, by muster.Name, reason string,
) (muster.Task, error) {
	t, was, _, err := b.step(ctx, id, func(t *muster.Task) error { return revoke(t, fence, now()) })
	if err != nil {
		return t, err
	}
	return b.endClaim(ctx, journal.TaskRevoked, t, was,
		event(journal.TaskRevoked, t, was.Owner, map[string]any{"reason": reason, "by": string(by)}))
}

// endClaim writes the event e of a step that took t from its owner, when it was was, and runs the effects of
// that step. kind is what the line about the claim says. A task that was set aside has an event for that too.
// An effect that fails is no error: a later Settle runs it.
func (b *Board) endClaim(ctx context.Context, kind string, t, was muster.Task, e muster.Event) (muster.Task, error) {
	events := []muster.Event{e}
	if t.Status == muster.NeedsAttention {
		events = append(events, attentionEvent(t, was.Owner))
	}
	down := b.emitClaim(ctx, t, claimLine{Event: kind, Owner: was.Owner, Source: was.ClaimSource}, events...)
	t, _, err := b.effects.run(ctx, t)
	return t, cmp.Or(down, onlyUnavailable(err))
}

// checkOwner refuses names that no member could have. The lead and the user can own tasks too. An owner
// need not be in the roster, because other programs may work on the board.
func checkOwner(n muster.Name) error {
	if n == muster.Lead || n == muster.User {
		return nil
	}
	return muster.CheckName(n)
}

// Outcome is how a task ended.
type Outcome struct {
	Landed *muster.Landed // nil: nothing was changed
	Result string         // the closing summary
	By     muster.Name    // "" is the owner
}

// BeginLanding notes that the task's work is on its way: from in progress, or from landing again. Whoever
// takes the task away from here on revokes the landing first (landing's Revoke).
func (b *Board) BeginLanding(
	ctx context.Context, id muster.TaskID, fence int, a muster.PendingLanding,
) (muster.Task, error) {
	t, err := b.change(ctx, id, func(t *muster.Task) error { return beginLanding(t, fence, a, now()) })
	if err != nil {
		return t, err
	}
	return t, b.emit(ctx, event(journal.TaskLanding, t, t.Owner, map[string]any{"head": a.Head}))
}

// Details are what the event of a returned task carries beside the reason.
type Details struct {
	Text    string  // the last lines, or the files in conflict
	Failed  string  // the first test or error, in a line; "": none is known
	Log     string  // the path of the whole output
	Seconds float64 // how long the check took
	With    string  // whose landed work it met, in a line; "": nobody's
	// Moved says that it came back only because the target has moved, so that the return does not count.
	Moved bool
	// Met are the landed commits that it has met.
	Met []string
	// Sides says what the task and the work that it met were for, and what each has changed. It stays with a task that
	// is given up.
	Sides string
}

// words says in a line why a task came back: the reason, and what is known of it.
func (d Details) words(why string) string {
	about, before := d.Text, ": "
	switch why {
	case "conflict", "secret":
		before = " in "
	case "check":
		about = d.Failed
	}
	if about != "" {
		why += before + text.CutBytes(text.OneLine(about), 200)
	}
	if d.With != "" {
		why += "; landed meanwhile: " + d.With
	}
	return why
}

// Return gives a task whose landing failed back to its owner, in the same lane. The third return in a row that
// counts makes the task needs_attention: it loses its owner, its fence moves, and its lane stays. why is a reason of
// journal.TaskReturned.
func (b *Board) Return(ctx context.Context, id muster.TaskID, fence int, why string, d Details) (muster.Task, error) {
	words := d.words(why)
	t, was, _, err := b.step(ctx, id, func(t *muster.Task) error {
		return returnToOwner(t, fence, words, d, now())
	})
	if err != nil {
		return t, err
	}
	returned := event(journal.TaskReturned, t, was.Owner,
		map[string]any{"reason": why, "text": d.Text, "failed": d.Failed, "log": d.Log, "seconds": d.Seconds,
			"counts": !d.Moved})
	if d.With != "" {
		returned.Fields["with"] = d.With
	}
	if t.Status != muster.NeedsAttention {
		return t, b.emit(ctx, returned)
	}
	return b.endClaim(ctx, journal.TaskReleased, t, was, returned)
}

// Refuse notes why the runtime could not land the task of the holder of the fence. The task stays as it is.
func (b *Board) Refuse(ctx context.Context, id muster.TaskID, fence int, why string) error {
	why = text.CutBytes(text.OneLine(why), 400)
	t, _, _, err := b.step(ctx, id, func(t *muster.Task) error {
		if err := owned(*t, fence); err != nil {
			return err
		}
		t.Returned, t.UpdatedAt = why, now()
		return nil
	})
	if err != nil {
		return err
	}
	return b.emit(ctx, event(journal.TaskRefused, t, t.Owner, map[string]any{"reason": why}))
}

// Complete ends the task for the holder of the fence, then settles what follows: dependants are unblocked,
// handlers of OnEffect run. An effect that fails now is settled by a later Settle. The same fence on a
// completed task is fine: a caller that crashed after the first time may repeat it, and what was left then
// is done. Another fence is Fenced.
//
// The work has landed before: the target decides, and this record follows it.
func (b *Board) Complete(ctx context.Context, id muster.TaskID, fence int, o Outcome) (muster.Task, error) {
	return b.end(ctx, id, func(t *muster.Task) error { return complete(t, fence, o, now()) })
}

// CompleteByHand completes the task whoever owns it: for the user, and for owners that carry no fence. Whether a
// lane of it holds work that has not landed is the caller's to ask first. A task that is landing is Held.
func (b *Board) CompleteByHand(
	ctx context.Context, id muster.TaskID, by muster.Name, result string,
) (muster.Task, error) {
	if err := checkOwner(by); err != nil {
		return muster.Task{}, err
	}
	return b.end(ctx, id, func(t *muster.Task) error { return finish(t, Outcome{Result: result, By: by}, now()) })
}

// end completes a task by a step, then writes the events and runs the effects that the step has named in
// the task. The effects run even if the task was completed before: an earlier process may have died between
// the two.
func (b *Board) end(ctx context.Context, id muster.TaskID, f func(*muster.Task) error) (muster.Task, error) {
	t, was, ended, err := b.step(ctx, id, f)
	if err != nil {
		return t, err
	}
	if !ended {
		t, _, err = b.effects.run(ctx, t)
		return t, onlyUnavailable(err)
	}
	landed := cmp.Or(t.Landed, &muster.Landed{})
	was.Owner = cmp.Or(t.Owner, t.CompletedBy) // a task that nobody had is told of as of who completed it
	completed := event(journal.TaskCompleted, t, was.Owner, map[string]any{
		"subject": t.Subject, "commit": landed.Commit, "receipt": landed.Receipt, "check": landed.Check,
		"seconds": landed.Seconds, "result": t.Result})
	if landed.CoveredBy != 0 {
		completed.Fields["covered_by"] = int(landed.CoveredBy)
	}
	if landed.Flaky {
		completed.Fields["flaky"] = true
	}
	if landed.Review != "" {
		completed.Fields["review"] = landed.Review
	}
	return b.endClaim(ctx, journal.TaskCompleted, t, was, completed)
}
