package teammate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"muster"
	"muster/internal/board"
	"muster/internal/failpoint"
	"muster/internal/landing"
	"muster/internal/mailbox"
	"muster/internal/prompt"
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
		if t.Owner == m.name() && t.Claimed() {
			m.setHand(&t)
			return m.standAgain(ctx, t)
		}
	}
	return nil
}

// standAgain puts the member into the lane of the task in hand, which the dead process that hosted it has left.
func (m *Member) standAgain(ctx context.Context, t muster.Task) error {
	if t.Worktree == "" {
		return nil
	}
	err := m.occupy(ctx, t.Worktree)
	if errors.Is(err, muster.ErrHeld) { // that process died before it had a lane of its own, and an earlier owner's lives on in this one
		if _, _, err = m.lane(ctx, &t); err == nil {
			m.setHand(&t)
		}
		err = m.lost(ctx, err)
	}
	return m.lostOr(err) // of a lane that is gone its tools will tell
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
	failpoint.Hit("teammate.claimed")
	m.setHand(&t)
	if err := m.status(ctx, muster.Working, "", ""); err != nil { // before its lane, which may take long
		return "", "", err
	}
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
	if errors.Is(err, muster.ErrHeld) { // by itself: it has lost sight of it
		if now, e := m.Board.Get(ctx, id); e == nil && now.Owner == m.name() && now.Claimed() {
			t, err = now, nil
		}
	}
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
			return llm.ErrorResult("Task %d is completed already.", id), nil
		}
		return llm.ErrorResult("Task %d is not in your hand: claim it first.", id), nil
	}
	if n := m.jobs.Running(); n > 0 {
		return llm.ErrorResult("%d of your background jobs still run: wait for them or stop them (check_background, stop_background) before you complete.", n), nil
	}
	if text := m.onlyIgnored(ctx, t); text != "" {
		return llm.ErrorResult("%s", text), nil
	}
	defer m.doing(ctx, fmt.Sprintf("lands %d %s", t.ID, t.Subject))()
	v, err := m.Lander.Land(ctx, t.ID, t.Fence, summary, m.name())
	if err != nil {
		return llm.Result{}, m.lost(ctx, err)
	}
	switch {
	case v.Task.Status == muster.NeedsAttention:
		m.handDone(ctx)
		return llm.ErrorResult("Task %d came back too often and needs attention now; it is no longer yours. %s", t.ID, v.Text), nil
	case v.Task.Status == muster.Completed:
		m.handDone(ctx)
		return tool.Text(completedText(v.Task)), nil
	}
	m.setHand(&v.Task)
	return llm.ErrorResult("%s", returned(t, v)), nil
}

// maxNamed is how many ignored files are named.
const maxNamed = 5

// onlyIgnored says, once for a claim, that the lane has nothing but what git ignores: its owner may think that it lands.
func (m *Member) onlyIgnored(ctx context.Context, t muster.Task) string {
	if t.Worktree == "" || m.ignored == claimMark(t) {
		return ""
	}
	changed, err := m.Lanes.Changed(ctx, t.Worktree)
	if err != nil || changed {
		return "" // what is wrong with the lane its landing tells
	}
	files, err := m.Lanes.Ignored(ctx, t.Worktree)
	if err != nil || len(files) == 0 {
		return ""
	}
	m.ignored = claimMark(t)
	named := strings.Join(files[:min(len(files), maxNamed)], ", ")
	if n := len(files) - maxNamed; n > 0 {
		named += fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("Nothing of task #%d would land: your lane has no change but what git ignores (%s), and that goes with the lane. "+
		"git add -f what belongs into the repository; or complete the task again if nothing does.", t.ID, named)
}

// endLanding goes on with a landing of the task in hand that an error has cut off, perhaps after the target had moved: while
// its owner rests nobody else would. What came of it is told to the owner, once for a claim: it may answer nothing.
func (m *Member) endLanding(ctx context.Context) (bool, error) {
	t, ok := m.Hand()
	if !ok || m.landed == claimMark(t) || m.jobs.Running() > 0 {
		return false, nil
	}
	now, err := m.Board.Get(ctx, t.ID)
	if err != nil || now.Status != muster.Landing || now.Fence != t.Fence {
		return false, nil
	}
	if err := m.wake(ctx); err != nil {
		return false, err
	}
	res, err := m.Complete(ctx, t.ID, "")
	text := res.Text()
	var e *muster.Error
	if errors.As(err, &e) && e.Code != muster.Unavailable {
		text, err = tool.ErrorText(err), nil
	}
	if err != nil {
		return false, err
	}
	m.landed = claimMark(t)
	return true, m.say(ctx, nil, prompt.Reminder("%s", mailbox.Escape(text)))
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

// handDone: the task is out of hand, and with it the lane; a teammate's phase ends with it, the lead goes on.
func (m *Member) handDone(ctx context.Context) {
	if t, ok := m.Hand(); ok {
		m.leaveLane(ctx, t.Worktree)
	}
	m.dropHand()
}

func (m *Member) dropHand() {
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
	err := m.release(ctx, board.Release{Reason: "cannot", Note: reason, Counts: true, By: m.name()})
	if err == nil || errors.Is(err, muster.ErrHeld) {
		m.handDone(ctx)
	}
	return err
}

// letGo releases the task in hand, if there is one; its lane is kept. Where its work turns out to have landed, that is as good.
func (m *Member) letGo(ctx context.Context, r board.Release) error {
	err := m.release(ctx, r)
	if errors.Is(err, muster.ErrHeld) {
		return nil
	}
	return err
}

// release is Held when the work has landed.
func (m *Member) release(ctx context.Context, r board.Release) error {
	t, ok := m.Hand()
	if !ok {
		return nil
	}
	defer m.setHand(nil)
	m.jobs.Stop()
	m.leaveLane(ctx, t.Worktree) // it is the next owner's
	if err := m.cancelPlans(ctx, t, "the task was given back"); err != nil {
		return err
	}
	if t.Worktree != "" {
		if err := m.Lanes.Release(ctx, t.Worktree); err != nil && !errors.Is(err, muster.ErrNotFound) {
			return err
		}
	}
	if err := m.unland(ctx, t); err != nil {
		return err
	}
	_, err := m.Board.Release(ctx, t.ID, t.Fence, r)
	if errors.Is(err, muster.ErrFenced) || errors.Is(err, muster.ErrNotFound) {
		return nil // taken from it, or deleted: there is nothing to give back
	}
	return err
}

// unland ends a landing of which nobody knows how far it came, so that it cannot land after the task was given to the next
// one. Held when it has landed: then it is completed.
func (m *Member) unland(ctx context.Context, t muster.Task) error {
	now, err := m.Board.Get(ctx, t.ID)
	if errors.Is(err, muster.ErrNotFound) || err == nil && (now.Status != muster.Landing || now.Fence != t.Fence) {
		return nil
	}
	if err != nil {
		return err
	}
	return m.Lander.Revoke(ctx, t.ID, t.Fence)
}

// lost drops a hand that is no longer the member's. What it had running in the lane is stopped, and a lane that is the
// task's no more is put aside.
func (m *Member) lost(ctx context.Context, err error) error {
	if !errors.Is(err, muster.ErrFenced) && !errors.Is(err, muster.ErrNotFound) {
		return err
	}
	t, had := m.Hand()
	if had {
		switch mine := m.stillMine(ctx); {
		case mine == nil && errors.Is(err, muster.ErrFenced): // it may land no more, and whoever took that right back has died
			if e := m.letGo(ctx, board.Release{Reason: "its right to land was taken back", By: m.name()}); e != nil {
				return e
			}
			m.dropHand()
			return err
		case !errors.Is(mine, muster.ErrFenced) && !errors.Is(mine, muster.ErrNotFound):
			return err // the claim stands: something else is not there, the lane or the target
		}
	}
	m.jobs.Stop()
	m.dropHand()
	if had {
		m.logClaimLost(ctx, t, err)
	}
	if !had || t.Worktree == "" {
		return err
	}
	// A void plan does no harm.
	m.logDropped(ctx, "cancelling the plans of a lost task", m.cancelPlans(ctx, t, "the task was taken back"))
	if now, e := m.Board.Get(ctx, t.ID); errors.Is(e, muster.ErrNotFound) || e == nil && now.Worktree != t.Worktree {
		m.putAside(ctx, t.Worktree)
	} else {
		m.leaveLane(ctx, t.Worktree)
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
	case errors.Is(err, muster.ErrCorrupt):
		return nil // somebody may be in the middle of saving it; what lands asks again
	case err == nil && now.Status == muster.Completed:
		return muster.Errorf(muster.Fenced, "task %d is completed: stop working on it", t.ID) // by another program, perhaps, in the owner's name
	case err == nil && (now.Fence != t.Fence || now.Owner != m.name()):
		return muster.Errorf(muster.Fenced, "task %d was taken from you (it is %s now): stop working on it", t.ID, now.Status)
	}
	return err
}
