package board

import (
	"cmp"
	"context"

	"muster"
	"muster/journal"
)

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
	Log     string  // the path of the whole output
	Seconds float64 // how long the check took
}

// Return gives a task whose landing failed back to its owner, in the same lane. The third in a row makes it
// needs_attention: nobody's, its lane kept, the fence moved. Why is "conflict" or "check".
func (b *Board) Return(ctx context.Context, id muster.TaskID, fence int, why string, d Details) (muster.Task, error) {
	t, was, _, err := b.step(ctx, id, func(t *muster.Task) error { return returnToOwner(t, fence, why, now()) })
	if err != nil {
		return t, err
	}
	returned := event(journal.TaskReturned, t, was.Owner,
		map[string]any{"reason": why, "text": d.Text, "log": d.Log, "seconds": d.Seconds})
	if t.Status != muster.NeedsAttention {
		return t, b.emit(ctx, returned)
	}
	return b.endClaim(ctx, journal.TaskReleased, t, was, returned)
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
	return b.endClaim(ctx, journal.TaskCompleted, t, was, event(journal.TaskCompleted, t, was.Owner, map[string]any{
		"subject": t.Subject, "commit": landed.Commit, "receipt": landed.Receipt, "check": landed.Check,
		"seconds": landed.Seconds, "result": t.Result}))
}
