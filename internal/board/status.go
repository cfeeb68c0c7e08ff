package board

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"muster"
)

// This file is the state machine of one task: pure functions that change the task or return why they do
// not. None of them does any I/O. Each takes the time as at, and the caller writes the task by
// compare-and-set, so a function may run again on a newer version of the task.

// deleted is what other programs write when they mean that the task is no more. For the board it is not there.
const deleted muster.TaskStatus = "deleted"

// A task is set aside, with the status NeedsAttention, when one of its counts reaches its limit.
const (
	maxAttempts = 3  // releases that count
	maxReturns  = 3  // landings that came back, in a row, and count
	maxRounds   = 12 // landings that came back, in a row
)

// maxMet is how many of the landed commits that it has met a task keeps; the newest count.
const maxMet = 8

// claim makes c.Owner the owner of t and raises the fence. It clears what an earlier claim left in t. The
// caller has to check that the blockers are complete, because that takes reading them.
//
// The fence and the owner change in one write. So whoever holds the fence of an earlier claim is refused
// from that write on, even if it is the same member that claims the task again.
func claim(t *muster.Task, c Claim, at float64) error {
	switch {
	case t.Owner != "" && t.Open():
		return errHeld(*t)
	case t.Status != muster.Pending:
		return errNotPending(*t)
	case !t.RoleMay(c.Role):
		if c.Role == "" {
			return muster.Errorf(muster.Invalid, "task %d is for the role %s only", t.ID, t.ClaimRole)
		}
		return muster.Errorf(muster.Invalid, "task %d is for the role %s only, not for %s", t.ID, t.ClaimRole, c.Role)
	}
	t.Status, t.Owner, t.Fence = muster.InProgress, c.Owner, t.Fence+1
	t.ClaimedAt, t.ClaimSource, t.UpdatedAt = at, c.Source, at
	t.BlockedBy, t.Landing, t.Landed, t.Effects, t.CompletedBy, t.Result = nil, nil, nil, nil, "", ""
	return nil
}

// owned returns nil if the holder of the fence may act on t now. The fence is compared with the stored
// task, so an owner that was suspended or declared dead cannot act on a claim that has gone to somebody
// else.
func owned(t muster.Task, fence int) error {
	if isFenced(t, fence) || !t.Claimed() {
		return errClaimLost(t)
	}
	return nil
}

// isFenced reports whether the fence is not that of t's claim.
func isFenced(t muster.Task, fence int) bool {
	return t.Fence != fence
}

// free takes t from its owner. Its lane and base stay, because the next owner goes on with the work that is
// there. The fence stays too: an owner that gives its task back may do so twice, and is known by it. Where
// the owner did not ask for it, the caller raises the fence.
func free(t *muster.Task, to muster.TaskStatus, at float64) {
	t.Status, t.Owner, t.Landing = to, "", nil
	t.ClaimedAt, t.ClaimSource, t.UpdatedAt = 0, "", at
}

// giveUp sets t aside until somebody looks. The fence moves, so that a late owner is refused.
func giveUp(t *muster.Task, why string, at float64) {
	free(t, muster.NeedsAttention, at)
	t.Fence++
	t.Result = why
	t.Effects = []muster.Effect{muster.EffectTell}
}

// release gives t back by its owner. The third release that counts sets it aside, so that a task that
// nobody can do does not go round for ever.
func release(t *muster.Task, fence int, r Release, at float64) error {
	if t.Fence == fence && t.Status == muster.Pending && t.Owner == "" && fence > 0 {
		return errNoChange // given back already by this claim
	}
	if err := owned(*t, fence); err != nil {
		return err
	}
	free(t, muster.Pending, at)
	if r.Note != "" {
		t.Note = r.Note
	}
	if r.Final {
		why := r.Reason
		if t.Returned != "" { // that it did not land says more than that its owner then stopped
			why = "did not land: " + t.Returned + "; " + why
		}
		giveUp(t, why, at)
		return nil
	}
	if r.Counts {
		t.Attempts++
		if t.Attempts >= maxAttempts {
			giveUp(t, fmt.Sprintf("given back %d times, last: %s", t.Attempts, r.Reason), at)
		}
	}
	return nil
}

// revoke ends the claim with the fence. A pending task with an owner, which another program left, can be
// revoked too.
func revoke(t *muster.Task, fence int, at float64) error {
	if isFenced(*t, fence) {
		return muster.Errorf(muster.Fenced, "that claim of task %d is over", t.ID)
	}
	if t.Status == muster.Completed || t.Status == muster.NeedsAttention {
		return errNotPending(*t)
	}
	if t.Status == muster.Pending && t.Owner == "" {
		return muster.Errorf(muster.Invalid, "task %d is nobody's", t.ID)
	}
	free(t, muster.Pending, at)
	t.Fence++
	return nil
}

// beginLanding notes what is to land. Called again, the newer attempt counts: after a crash the owner
// begins anew, and the head of its lane may have moved.
func beginLanding(t *muster.Task, fence int, a muster.PendingLanding, at float64) error {
	if err := owned(*t, fence); err != nil {
		return err
	}
	t.Status, t.Landing, t.UpdatedAt = muster.Landing, &a, at
	return nil
}

// returnToOwner gives a task whose landing failed back to its owner. The third time in a row it is given
// up. A return that only a moving target has caused does not count, but a task that never gets through is given up too.
func returnToOwner(t *muster.Task, fence int, why string, d Details, at float64) error {
	if err := owned(*t, fence); err != nil {
		return err
	}
	if t.Status != muster.Landing {
		return muster.Errorf(muster.Invalid, "task %d is not landing", t.ID)
	}
	isLast, met := LastReturn(*t, d)
	t.Returned, t.Met, t.UpdatedAt = why, met, at
	t.Rounds++
	if !d.Moved {
		t.Returns++
	}
	if !isLast {
		t.Status, t.Landing = muster.InProgress, nil
		return nil
	}
	giveUp(t, fmt.Sprintf("came back %d times, last: %s", t.Rounds, why), at)
	t.Sides = d.Sides
	return nil
}

// LastReturn reports whether a task that comes back now is given up, and returns the landed commits that it has met by
// then, each once and the newest last.
func LastReturn(t muster.Task, d Details) (isLast bool, met []string) {
	returns := t.Returns
	if !d.Moved {
		returns++
	}
	met = t.Met
	for _, commit := range d.Met {
		met = append(slices.DeleteFunc(slices.Clone(met), func(c string) bool { return c == commit }), commit)
	}
	return returns >= maxReturns || t.Rounds+1 >= maxRounds, met[max(0, len(met)-maxMet):]
}

// complete ends t by its owner and names what follows.
func complete(t *muster.Task, fence int, o Outcome, at float64) error {
	if t.Status == muster.Completed && t.Fence == fence {
		return errNoChange
	}
	if err := owned(*t, fence); err != nil {
		return err
	}
	o.By = cmp.Or(o.By, t.Owner)
	setCompleted(t, o, at)
	return nil
}

// finish ends t by somebody who need not be its owner. An owner who is somebody else has lost it.
func finish(t *muster.Task, o Outcome, at float64) error {
	switch t.Status {
	case muster.Completed:
		return errNoChange
	case muster.Landing:
		return errLanding(*t)
	}
	if t.Owner != o.By {
		t.Fence++
	}
	setCompleted(t, o, at)
	return nil
}

// errLanding returns the refusal while a landing is under way.
func errLanding(t muster.Task) error {
	return muster.Errorf(muster.Held, "task %d is being landed for %s right now", t.ID, t.Owner).
		WithHint("see what becomes of it: muster task show %d", t.ID)
}

// setCompleted completes t and names the effects that follow. They are in the same write as the completion,
// so a crash after it loses none of them.
func setCompleted(t *muster.Task, o Outcome, at float64) {
	t.Status, t.Landing, t.Landed, t.UpdatedAt = muster.Completed, nil, o.Landed, at
	t.Result, t.CompletedBy, t.Returns, t.Rounds = o.Result, o.By, 0, 0
	t.Returned, t.Met, t.Sides = "", nil, ""
	t.Effects = []muster.Effect{muster.EffectUnblock, muster.EffectTell}
	if t.Worktree != "" {
		t.Effects = append(t.Effects, muster.EffectArchive)
	}
}

// retry makes a task that was given up pending again, with its counts of attempts and returns at zero. It
// also resets the counts of a task that is pending.
func retry(t *muster.Task, at float64) error {
	if t.Status != muster.Pending && t.Status != muster.NeedsAttention {
		return errNotPending(*t)
	}
	if t.Status == muster.NeedsAttention {
		t.Result = ""
	}
	t.Status, t.Attempts, t.Returns, t.Rounds, t.UpdatedAt, t.Effects = muster.Pending, 0, 0, 0, at, nil
	t.Met, t.Sides = nil, ""
	return nil
}

// errHeld returns the refusal for who comes second. It names the owner and, if it is known, the time of the
// claim.
func errHeld(t muster.Task) error {
	e := muster.Errorf(muster.Held, "task %d is %s's%s", t.ID, t.Owner, timeOfDay(" since ", t.ClaimedAt))
	return e.WithHint("take it back with: muster task release %d", t.ID)
}

// errNotPending returns the refusal of what only a pending task, or one that somebody has, can take.
func errNotPending(t muster.Task) error {
	switch t.Status {
	case muster.Completed:
		return muster.Errorf(muster.Invalid, "task %d is completed", t.ID)
	case muster.NeedsAttention:
		e := muster.Errorf(muster.Invalid, "task %d needs you: %s", t.ID, t.Result)
		if t.Result == "" {
			e = muster.Errorf(muster.Invalid, "task %d needs you", t.ID)
		}
		return e.WithHint("muster task retry %d", t.ID)
	case muster.InProgress, muster.Landing:
		if t.Owner != "" {
			return errHeld(t)
		}
		return muster.Errorf(muster.Invalid, "task %d is in progress, though nobody owns it", t.ID).
			WithHint("put it back with: muster task release %d", t.ID)
	}
	return muster.Errorf(muster.Invalid, "task %d has the status %q, which is none of ours", t.ID, string(t.Status))
}

// errClaimLost returns the refusal for a claim that is over. It says what has become of the task, because
// the former owner, who is often a model, decides by that what to do with its work.
func errClaimLost(t muster.Task) error {
	what := ""
	switch {
	case t.Status == muster.Completed && t.CompletedBy != "":
		what = fmt.Sprintf("%s completed it%s", t.CompletedBy, timeOfDay(" at ", t.UpdatedAt))
	case t.Status == muster.Completed:
		what = "it is completed"
	case t.Status == muster.NeedsAttention:
		what = fmt.Sprintf("it was set aside%s: %s", timeOfDay(" at ", t.UpdatedAt), t.Result)
	case t.Owner != "":
		what = fmt.Sprintf("%s claimed it%s", t.Owner, timeOfDay(" at ", t.ClaimedAt))
	default:
		what = "it went back to the board" + timeOfDay(" at ", t.UpdatedAt)
	}
	return muster.Errorf(muster.Fenced, "task %d is no longer yours: %s", t.ID, what)
}

// timeOfDay returns before and a time of day for people, with the date when it is not today; "" when the time
// is not known.
func timeOfDay(before string, stamp float64) string {
	if stamp == 0 {
		return ""
	}
	t, today := muster.Time(stamp), time.Now()
	if t.Year() == today.Year() && t.YearDay() == today.YearDay() {
		return before + t.Format("15:04")
	}
	return before + t.Format("2006-01-02 15:04")
}

// set is ids sorted, each once, as a new list.
func set(ids ...muster.TaskID) []muster.TaskID {
	out := slices.Clone(ids)
	slices.Sort(out)
	return slices.Compact(out)
}
