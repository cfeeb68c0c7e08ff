// Package effects carries out what follows from a task's end, in whatever process the task ends: the news is mailed, the
// lane is archived.
package outbox

import (
	"context"
	"fmt"
	"strings"

	"muster"
	"muster/internal/board"
	"muster/internal/mailbox"
)

// Lanes puts a completed task's lane aside: worktree.Lanes.
type Lanes interface {
	Finish(ctx context.Context, t muster.Task) (ref string, err error)
}

// Mail sends the news: mailbox.Mail.
type Mail interface {
	Send(ctx context.Context, m muster.Message) (muster.Message, error)
}

// Register makes the board's process one that carries the effects out. Each may run any number of times; a process that
// has not registered them leaves them to one that has.
func Register(b *board.Board, post Mail, lanes Lanes) {
	b.OnEffect(muster.EffectTell, func(ctx context.Context, t muster.Task) error { return tell(ctx, post, t) })
	b.OnEffect(muster.EffectArchive, func(ctx context.Context, t muster.Task) error {
		if t.Worktree == "" || t.Status != muster.Completed {
			return nil
		}
		_, err := lanes.Finish(ctx, t)
		return err
	})
}

// tell mails the lead that a task landed; lead and user that one needs attention. The id is the same each time, so a
// repeat is dropped by its reader.
func tell(ctx context.Context, post Mail, t muster.Task) error {
	m := muster.Message{ID: muster.MessageID(fmt.Sprintf("task-%d-%d-%s", t.ID, t.Fence, t.Status)),
		Type: muster.MailLanded, From: muster.System, To: muster.Lead, TaskID: t.ID}
	switch {
	case t.Status == muster.NeedsAttention:
		m.Type = muster.MailError
		m.Content = fmt.Sprintf("Task #%d (%s) needs attention: %s.%s Try it again with task_update{status:\"pending\"}, change it, split it, or delete it.", t.ID, t.Subject, mailbox.Short(t.Result), waiting(t))
		u := m
		u.To, u.Content = muster.User, fmt.Sprintf("task %d (%s) needs attention: %s.%s muster task retry %d", t.ID, t.Subject, mailbox.Short(t.Result), waiting(t), t.ID)
		if _, err := post.Send(ctx, u); err != nil {
			return err
		}
	case t.CompletedBy == muster.System:
		m.Content = fmt.Sprintf("Task #%d (%s) was completed by another program; nothing was landed by us.", t.ID, t.Subject)
	case t.Landed == nil:
		m.Content = fmt.Sprintf("Task #%d (%s) is completed without a change.", t.ID, t.Subject)
	default:
		m.Content = fmt.Sprintf("Task #%d (%s) landed as %.7s (%s): %s", t.ID, t.Subject, t.Landed.Commit, t.Landed.Receipt, mailbox.Short(t.Result))
	}
	_, err := post.Send(ctx, m)
	return err
}

// waiting says who waits for a task; "" when nobody does.
func waiting(t muster.Task) string {
	if len(t.Blocks) == 0 {
		return ""
	}
	var list []string
	for _, id := range t.Blocks {
		list = append(list, fmt.Sprintf("#%d", id))
	}
	return " " + strings.Join(list, ", ") + " cannot start before it."
}
