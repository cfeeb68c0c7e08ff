package teammate

import (
	"context"
	"errors"
	"fmt"

	"muster"
	"muster/internal/board"
	"muster/internal/fault"
	"muster/internal/landing"
	"muster/llm"
	"muster/tool"
)

// Hand is the task in hand.
func (m *Member) Hand() (muster.Task, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.hand == nil {
		return muster.Task{}, false
	}
	return *m.hand, true
}

func (m *Member) setHand(t *muster.Task) {
	m.mu.Lock()
	m.hand = t
	m.mu.Unlock()
}

// findHand reads from the board what the member has claimed: a claim outlives its owner's process.
func (m *Member) findHand(ctx context.Context) error {
	all, err := m.Board.List(ctx)
	if err != nil {
		return err
	}
	for _, t := range all {
		if t.Owner == m.name() && (t.Status == muster.InProgress || t.Status == muster.Landing) {
			m.setHand(&t)
			if t.Worktree != "" {
				m.Standing.enter(m.name(), t.Worktree)
			}
			return nil
		}
	}
	return nil
}

// claimMark notes in the transcript that the owner was told of this claim.
func claimMark(t muster.Task) muster.MessageID {
	return muster.MessageID(fmt.Sprintf("claim-%d-%d", t.ID, t.Fence))
}

// nextTask claims the next task that the member may take, if there is one, and returns what it reads about it.
func (m *Member) nextTask(ctx context.Context) (text string, mark muster.MessageID, err error) {
	if err := m.lostOr(m.held(ctx)); err != nil {
		return "", "", err
	}
	if t, ok := m.Hand(); ok { // claimed, and perhaps not told: the process died in between
		if m.script.Delivered(claimMark(t)) {
			return "", "", nil
		}
		return m.brief(ctx, t)
	}
	t, ok, err := m.Board.ClaimNext(ctx, board.Claim{Owner: m.name(), Role: m.Record.Role, Source: muster.SourceAuto})
	if err != nil || !ok {
		return "", "", err
	}
	fault.Point("teammate.claimed")
	m.setHand(&t)
	return m.brief(ctx, t)
}

// Take claims a task by hand.
func (m *Member) Take(ctx context.Context, id muster.TaskID) (string, error) {
	if t, ok := m.Hand(); ok {
		if t.ID == id {
			return fmt.Sprintf("Task #%d is yours already.", id), nil
		}
		return "", muster.Errorf(muster.Held, "you have task %d in hand: complete it or release it first", t.ID)
	}
	role, err := m.roleFor(ctx, id)
	if err != nil {
		return "", err
	}
	t, err := m.Board.Claim(ctx, id, board.Claim{Owner: m.name(), Role: role, Source: muster.SourceManual})
	if err != nil {
		return "", err
	}
	m.setHand(&t)
	text, _, err := m.brief(ctx, t)
	if err == nil && text == "" {
		err = muster.Errorf(muster.Invalid, "task %d could not start: no lane could be made for it", id)
	}
	m.mu.Lock()
	m.known = t.Fence
	if m.lead() {
		m.phase.turns, m.phase.extra = 0, false // the lead's phase is to its next wait or claim
	}
	m.mu.Unlock()
	return text, err
}

// roleFor is the role in which the member claims a task: its own. Where there are no teammates the lead has them all.
func (m *Member) roleFor(ctx context.Context, id muster.TaskID) (string, error) {
	if !m.lead() {
		return m.Record.Role, nil
	}
	run, err := m.Run(ctx)
	if err != nil || run.Cap > 0 {
		return m.Record.Role, err
	}
	t, err := m.Board.Get(ctx, id)
	if err != nil || t.ClaimRole == "" {
		return m.Record.Role, err
	}
	return t.ClaimRole, nil
}

// Complete lands the task in hand; it returns when that is decided.
func (m *Member) Complete(ctx context.Context, id muster.TaskID, summary string) (llm.Result, error) {
	t, ok := m.Hand()
	if !ok || t.ID != id {
		if done, err := m.Board.Get(ctx, id); err == nil && done.Status == muster.Completed {
			return llm.Sorry("Task %d is completed already.", id), nil
		}
		return llm.Sorry("Task %d is not in your hand: claim it first.", id), nil
	}
	if n := m.jobs.Running(); n > 0 {
		return llm.Sorry("%d of your background jobs still run: wait for them or stop them (check_background, stop_background) before you complete.", n), nil
	}
	defer m.doing(ctx, fmt.Sprintf("lands %d %s", t.ID, t.Subject))()
	v, err := m.Lander.Land(ctx, t.ID, t.Fence, summary, m.name())
	if err != nil {
		return llm.Result{}, m.lost(ctx, err)
	}
	switch {
	case v.Task.Status == muster.NeedsAttention:
		m.handDone()
		return llm.Sorry("Task %d came back too often and needs attention now; it is no longer yours. %s", t.ID, v.Text), nil
	case v.Task.Status == muster.Completed:
		m.handDone()
		return tool.Text(completedText(v.Task)), nil
	}
	m.setHand(&v.Task)
	return llm.Sorry("%s", returned(t, v)), nil
}

// completedText says how a task was completed.
func completedText(t muster.Task) string {
	switch {
	case t.Landed == nil:
		return fmt.Sprintf("Task #%d is completed; its lane had no change, so nothing landed.", t.ID)
	case t.Landed.Receipt == muster.ReceiptStillRed:
		return fmt.Sprintf("Task #%d landed as %.7s. The check is still red, as it was before.", t.ID, t.Landed.Commit)
	}
	return fmt.Sprintf("Task #%d landed as %.7s.", t.ID, t.Landed.Commit)
}

// returned is what the owner reads when its work came back.
func returned(t muster.Task, v landing.Verdict) string {
	if v.Text != "" {
		return v.Text
	}
	return fmt.Sprintf("Task #%d came back: mend it in your lane and complete it again.", t.ID)
}

// handDone: the task is out of hand; a teammate's phase ends with it, the lead goes on.
func (m *Member) handDone() {
	m.Standing.leave(m.name())
	m.mu.Lock()
	m.hand = nil
	m.phase.over = m.phase.over || !m.lead()
	m.mu.Unlock()
}

// GiveBack releases the task in hand because its owner cannot do it.
func (m *Member) GiveBack(ctx context.Context, id muster.TaskID, reason string) error {
	if t, ok := m.Hand(); !ok || t.ID != id {
		return muster.Errorf(muster.Invalid, "task %d is not in your hand", id)
	}
	if err := m.letGo(ctx, board.Release{Reason: "cannot", Note: reason, Counts: true, By: m.name()}); err != nil {
		return err
	}
	m.handDone()
	return nil
}

// letGo releases the task in hand, if there is one; its lane is kept.
func (m *Member) letGo(ctx context.Context, r board.Release) error {
	t, ok := m.Hand()
	if !ok {
		return nil
	}
	m.jobs.Stop() // the lane is the next owner's
	defer m.Standing.leave(m.name())
	defer m.setHand(nil)
	if err := m.cancelPlans(ctx, t, "the task was given back"); err != nil {
		return err
	}
	if t.Worktree != "" {
		if err := m.Lanes.Release(ctx, t.Worktree); err != nil && !errors.Is(err, muster.ErrNotFound) {
			return err
		}
	}
	_, err := m.Board.Release(ctx, t.ID, t.Fence, r)
	if errors.Is(err, muster.ErrFenced) || errors.Is(err, muster.ErrNotFound) {
		return nil // taken from it, or deleted: there is nothing to give back
	}
	return err
}

// lost drops a hand that is no longer the member's. What it had running in the lane is stopped, and a lane that is the
// task's no more is put aside.
func (m *Member) lost(ctx context.Context, err error) error {
	if !errors.Is(err, muster.ErrFenced) && !errors.Is(err, muster.ErrNotFound) {
		return err
	}
	t, had := m.Hand()
	m.jobs.Stop()
	m.handDone()
	if !had || t.Worktree == "" {
		return err
	}
	_ = m.cancelPlans(ctx, t, "the task was taken back") // a void plan does no harm
	if now, e := m.Board.Get(ctx, t.ID); errors.Is(e, muster.ErrNotFound) || e == nil && now.Worktree != t.Worktree {
		_, _ = m.Lanes.Archive(ctx, t.Worktree) // what cannot be archived is kept
	}
	return err
}

// held checks that the task in hand is still the member's, before a tool changes something for it.
func (m *Member) held(ctx context.Context) error { return m.lost(ctx, m.stillMine(ctx)) }

// stillMine says, as Fenced or NotFound, that the task in hand is no longer the member's.
func (m *Member) stillMine(ctx context.Context) error {
	t, ok := m.Hand()
	if !ok {
		return nil
	}
	now, err := m.Board.Get(ctx, t.ID)
	switch {
	case errors.Is(err, muster.ErrNotFound):
		return muster.Errorf(muster.NotFound, "task %d was deleted: stop working on it", t.ID)
	case err == nil && (now.Fence != t.Fence || now.Owner != m.name()):
		return muster.Errorf(muster.Fenced, "task %d was taken from you (it is %s now): stop working on it", t.ID, now.Status)
	}
	return err
}
