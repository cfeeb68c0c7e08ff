package teammate

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"muster"
	"muster/internal/mailbox"
	"muster/llm"
	"muster/tool"
)

// Complete lands the current task for a tool call. It returns when the landing is decided.
func (c *claims) Complete(ctx context.Context, id muster.TaskID, summary string) (llm.Result, error) {
	h := c.held.get()
	t := h.task
	if t.ID == 0 || t.ID != id {
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
		c.held.change(func(h *claim) { h.warnedIgnored = true })
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
	switch v.Task.Status {
	case muster.NeedsAttention:
		c.finishTask(ctx)
		return llm.ErrorResult("Task %d came back too often and needs attention now; it is no longer yours. %s",
			t.ID, v.Text), nil
	case muster.Completed:
		c.finishTask(ctx)
		return tool.Text(completedText(v.Task)), nil
	}
	// The work came back with the same claim: its owner goes on in the same lane.
	c.setTask(v.Task)
	return llm.ErrorResult("%s", cmp.Or(v.Text,
		fmt.Sprintf("Task #%d came back: mend it in your lane and complete it again.", t.ID))), nil
}

// finishTask leaves the lane of a task that is no longer the member's, and ends its claim.
func (c *claims) finishTask(ctx context.Context) {
	t, _ := c.CurrentTask()
	c.lanes.leave(ctx, t.Worktree)
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

// resumeLanding resumes a landing of the current task that an error has cut off, and tells the
// owner what came of it. The idle owner must do it, because no other process will.
func (c *claims) resumeLanding(ctx context.Context) error {
	t, ok := c.CurrentTask()
	if !ok {
		return nil
	}
	if err := c.conversation.wake(ctx); err != nil {
		return err
	}
	res, err := c.Complete(ctx, t.ID, "")
	if err != nil {
		if res, err = tool.FromError(tool.Classify(err)); err != nil {
			return err
		}
	}
	c.held.change(func(h *claim) { h.landingResumed = true })
	return c.conversation.remind(ctx, "%s", mailbox.Escape(res.Text()))
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
