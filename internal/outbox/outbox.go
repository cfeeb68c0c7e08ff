// Package outbox carries out what follows from the end of a task: mail that says so, and the archive of its lane.
//
// The board records these effects in the task when the task ends, and runs them in whatever process has registered them
// with Register. A crash between record and effect is harmless, because the next process runs it: every effect here may
// run any number of times. A mail has the same id each time, so its reader drops a repeat, and a lane that is gone is
// no error.
//
// When a task ends, and which effects follow, is for the board to decide.
package outbox

import (
	"context"
	"fmt"
	"strings"

	"muster"
	"muster/internal/board"
	"muster/internal/mailbox"
)

// Send sends a mail: mailbox.Mail.Send.
type Send func(context.Context, muster.Message) (muster.Message, error)

// Finish archives the lane of a completed task: worktree.Lanes.ArchiveCompleted.
type Finish func(context.Context, muster.Task) (ref string, err error)

// Register makes this process one that carries the effects out. A process that has not registered them leaves them to
// one that has.
func Register(b *board.Board, send Send, finish Finish) {
	b.OnEffect(muster.EffectTell, func(ctx context.Context, t muster.Task) error { return mailEnd(ctx, send, t) })
	b.OnEffect(muster.EffectArchive, func(ctx context.Context, t muster.Task) error {
		if t.Worktree == "" || t.Status != muster.Completed {
			return nil
		}
		_, err := finish(ctx, t)
		return err
	})
}

// mailEnd mails the lead that a task of another has landed, and lead and user that one needs attention.
func mailEnd(ctx context.Context, send Send, t muster.Task) error {
	if t.Status == muster.Completed && t.CompletedBy == muster.Lead {
		return nil // the result of its own call has told it
	}
	m := muster.Message{ID: muster.MessageID(fmt.Sprintf("task-%d-%d-%s", t.ID, t.Fence, t.Status)),
		Type: muster.MailLanded, From: muster.System, To: muster.Lead, TaskID: t.ID}
	switch {
	case t.Status == muster.NeedsAttention:
		reason := fmt.Sprintf("%s.%s", mailbox.Short(t.Result), blockedText(t))
		m.Type = muster.MailError
		// People read the lead's mail too.
		m.Content = fmt.Sprintf("Task #%d (%s) needs attention: %s Set its status to pending to have it tried again, "+
			"change it, split it, or delete it.", t.ID, t.Subject, reason)
		toUser := m
		toUser.To = muster.User
		toUser.Content = fmt.Sprintf("task %d (%s) needs you: %s muster task retry %d", t.ID, t.Subject, reason, t.ID)
		if t.Sides != "" {
			m.Content += " What it and the landed work that it met were for:\n\n" + t.Sides
			toUser.Content += fmt.Sprintf("; both sides: muster task show %d", t.ID)
		}
		if _, err := send(ctx, toUser); err != nil {
			return err
		}
	case t.Landed == nil:
		// What such a task was for is in its owner's report, and in nothing that has landed.
		m.Content = fmt.Sprintf("Task #%d (%s) is completed without a change: %s", t.ID, t.Subject,
			mailbox.Short(t.Result))
		if len(t.Result) > len(mailbox.Short(t.Result)) {
			m.Content += fmt.Sprintf(" (task_list with task_id %d has all of it)", t.ID)
		}
	default:
		m.Content = fmt.Sprintf("Task #%d (%s) landed as %.7s (%s): %s",
			t.ID, t.Subject, t.Landed.Commit, t.Landed.Receipt, mailbox.Short(t.Result))
	}
	_, err := send(ctx, m)
	return err
}

// blockedText names the tasks that wait for this one, "" when none does.
func blockedText(t muster.Task) string {
	if len(t.Blocks) == 0 {
		return ""
	}
	ids := strings.Trim(fmt.Sprint(t.Blocks), "[]") // 1 2 3
	return " #" + strings.ReplaceAll(ids, " ", ", #") + " cannot start before it."
}
