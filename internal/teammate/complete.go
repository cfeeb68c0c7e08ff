package teammate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"muster"
	"muster/internal/landing"
	"muster/internal/mailbox"
	"muster/llm"
	"muster/tool"
)

// Complete lands the current task for a tool call. It returns when the landing is decided.
func (c *claims) Complete(ctx context.Context, id muster.TaskID, summary string) (llm.Result, error) {
	h, ok := c.current()
	t := h.task
	if !ok || t.ID != id {
		if now, err := c.Board.Get(ctx, id); err == nil && now.Status == muster.Completed {
			return llm.ErrorResult("Task %d is completed already.", id), nil
		}
		return llm.ErrorResult("Task %d is not in your hand: claim it first.", id), nil
	}
	// A job could write into the lane while its files are committed.
	if n := c.jobs.Running(); n > 0 {
		return llm.ErrorResult("%d of your background jobs still run: wait for them or stop them "+
			"(check_background, stop_background) before you complete.", n), nil
	}
	if files := c.onlyIgnoredFiles(ctx, h); files != "" {
		c.note(func(h *claim) { h.warnedIgnored = true })
		return llm.ErrorResult("Nothing of task #%d would land: your lane has no change but what git ignores (%s), "+
			"and that goes with the lane. git add -f what belongs into the repository; or complete the task again if "+
			"nothing does.", t.ID, files), nil
	}
	// The landing is a record on the board with this claim's fence. If this process dies now,
	// the call is recovered from the board; if the claim is lost meanwhile, the landing is
	// refused.
	defer c.presence.showActivity(ctx, fmt.Sprintf("lands %d %s", t.ID, t.Subject))()
	v, err := c.Lander.Land(ctx, t.ID, t.Fence, summary, c.name())
	if err != nil {
		return llm.Result{}, c.onClaimLost(ctx, err)
	}
	switch {
	case v.Task.Status == muster.NeedsAttention:
		c.finishTask(ctx)
		return llm.ErrorResult("Task %d came back too often and needs attention now; it is no longer yours. %s",
			t.ID, v.Text), nil
	case v.Task.Status == muster.Completed:
		c.finishTask(ctx)
		return tool.Text(completedText(v.Task)), nil
	}
	// The work came back with the same claim: its owner goes on in the same lane.
	c.setTask(v.Task)
	return llm.ErrorResult("%s", returnedText(t, v)), nil
}

// finishTask leaves the lane of a task that is no longer the member's, and ends its claim.
func (c *claims) finishTask(ctx context.Context) {
	if t, ok := c.CurrentTask(); ok {
		c.lanes.leave(ctx, t.Worktree)
	}
	c.endTask()
}

// maxNamed is how many ignored files are named.
const maxNamed = 5

// onlyIgnoredFiles names the files of a lane that has nothing but what git ignores: its owner
// may think that they land. It returns "" once the owner was warned of this claim.
func (c *claims) onlyIgnoredFiles(ctx context.Context, h claim) string {
	if h.task.Worktree == "" || h.warnedIgnored {
		return ""
	}
	changed, err := c.Lanes.Changed(ctx, h.task.Worktree)
	if err != nil || changed {
		return "" // the landing reports what is wrong with the lane
	}
	files, err := c.Lanes.Ignored(ctx, h.task.Worktree)
	if err != nil || len(files) == 0 {
		return ""
	}
	named := strings.Join(files[:min(len(files), maxNamed)], ", ")
	if n := len(files) - maxNamed; n > 0 {
		named += fmt.Sprintf(" and %d more", n)
	}
	return named
}

// hasInterruptedLanding reports whether a landing of the current task was cut off by an error
// and is to be resumed. The idle owner must do it, because no other process will. It is tried
// once for a claim.
func (c *claims) hasInterruptedLanding(ctx context.Context) bool {
	h, ok := c.current()
	if !ok || h.landingResumed || c.jobs.Running() > 0 {
		return false
	}
	now, err := c.Board.Get(ctx, h.task.ID)
	return err == nil && now.Status == muster.Landing && now.Fence == h.task.Fence
}

// resumeLanding resumes an interrupted landing of the current task and tells the owner what
// came of it.
func (c *claims) resumeLanding(ctx context.Context) error {
	t, ok := c.CurrentTask()
	if !ok {
		return nil
	}
	if err := c.conversation.wake(ctx); err != nil {
		return err
	}
	res, err := c.Complete(ctx, t.ID, "")
	text := res.Text()
	var e *muster.Error
	if errors.As(err, &e) && e.Code != muster.Unavailable {
		text, err = tool.ErrorText(err), nil
	}
	if err != nil {
		return err
	}
	c.note(func(h *claim) { h.landingResumed = true })
	return c.conversation.remind(ctx, "%s", mailbox.Escape(text))
}

// Completed returns what complete_task returns for a task that is completed by now.
func (c *claims) Completed(ctx context.Context, id muster.TaskID) (llm.Result, bool) {
	t, err := c.Board.Get(ctx, id)
	if err != nil || t.Status != muster.Completed {
		return llm.Result{}, false
	}
	return tool.Text(completedText(t)), true
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

// returnedText is what the owner reads when its work came back.
func returnedText(t muster.Task, v landing.Verdict) string {
	if v.Text != "" {
		return v.Text
	}
	return fmt.Sprintf("Task #%d came back: mend it in your lane and complete it again.", t.ID)
}
