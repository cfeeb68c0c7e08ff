package teammate

import (
	"context"
	"slices"
	"strings"

	"muster"
	"muster/internal/failpoint"
	"muster/internal/mailbox"
	"muster/internal/requests"
	"muster/internal/transcript"
	"muster/journal"
)

// maxDelivery is how many bytes of mail enter at one boundary.
const maxDelivery = 64 << 10

// deliver moves pending mail into the conversation and reports whether some was new. The
// transcript comes first, then the inbox: a crash in between leaves mail in both, and the
// transcript says that it was delivered.
func (v *conversation) deliver(ctx context.Context) (bool, error) {
	msgs, end, waiting, err := v.Post.Peek(ctx, v.name(), v.inbox, maxDelivery)
	if err != nil || len(msgs) == 0 {
		return false, err
	}
	fresh := v.fresh(ctx, msgs)
	if len(fresh) > 0 {
		ids := make([]muster.MessageID, len(fresh))
		for i, msg := range fresh {
			ids[i] = msg.ID
		}
		if err := v.say(ctx, ids, mailbox.Render(fresh, waiting)); err != nil {
			return false, err
		}
		v.presence.event(ctx, journal.MailDelivered, map[string]any{"count": len(fresh)})
		v.reportHeard(fresh)
	}
	// The mail is in the transcript. A crash before the drop delivers it a second time, and
	// fresh leaves it out then.
	failpoint.Hit("teammate.delivered")
	if err := v.Post.Drop(ctx, v.name(), end); err != nil {
		return false, err
	}
	failpoint.Hit("teammate.dropped")
	v.inbox = end
	v.presence.noteAnswers(fresh)
	return len(fresh) > 0, nil
}

// deliverWaking delivers all mail if some of it is worth waking a model for. Status news
// alone stays in the inbox: it is delivered with whatever wakes the member next.
func (v *conversation) deliverWaking(ctx context.Context) (bool, error) {
	if wakes, err := v.hasWakingMail(ctx); err != nil || !wakes {
		return false, err
	}
	return v.deliver(ctx)
}

// hasWakingMail reports whether mail waits that an idle model should read. Mail that says
// nothing any more is dropped on the way, so that nobody takes it for mail that is still to
// be read.
func (v *conversation) hasWakingMail(ctx context.Context) (bool, error) {
	msgs, err := v.Post.Waking(ctx, v.name(), v.inbox)
	if err != nil || len(msgs) == 0 {
		return false, err
	}
	if len(v.fresh(ctx, msgs)) > 0 {
		return true, nil
	}
	_, err = v.deliver(ctx)
	return false, err
}

// hasMailFrom reports whether mail waits that is worth waking a model for and whose sender
// satisfies from.
func (v *conversation) hasMailFrom(ctx context.Context, from func(muster.Name) bool) (bool, error) {
	msgs, err := v.Post.Waking(ctx, v.name(), v.inbox)
	isFrom := func(msg muster.Message) bool { return from(msg.From) }
	return err == nil && slices.ContainsFunc(v.fresh(ctx, msgs), isFrom), err
}

// newLanding returns the news of a landing that waits in the inbox, or "".
func (v *conversation) newLanding(ctx context.Context) (string, error) {
	msgs, err := v.Post.Landings(ctx, v.name(), v.inbox)
	if err != nil {
		return "", err
	}
	for _, msg := range v.fresh(ctx, msgs) {
		return msg.Content, nil
	}
	return "", nil
}

// fresh returns the mails that the conversation does not have and that still say something.
func (v *conversation) fresh(ctx context.Context, msgs []muster.Message) (fresh []muster.Message) {
	seen := map[muster.MessageID]bool{}
	for _, msg := range msgs {
		if !seen[msg.ID] && !v.script.Delivered(msg.ID) && !v.isVoid(ctx, msg) {
			fresh = append(fresh, msg)
		}
		seen[msg.ID] = true
	}
	return fresh
}

// isVoid reports whether a mail says nothing any more: it brings a shutdown request or a plan
// that was decided already, or the answer to a plan, which submit_plan has returned.
func (v *conversation) isVoid(ctx context.Context, msg muster.Message) bool {
	switch msg.Type {
	case muster.MailShutdown, muster.MailPlan:
		return isDecided(ctx, v.Requests, msg.RequestID)
	case muster.MailPlanAnswer:
		_, returned := v.returned.Load(msg.RequestID)
		return returned
	}
	return false
}

// isDecided reports whether a request is known to be over. One that cannot be read counts as
// open.
func isDecided(ctx context.Context, q *requests.Requests, id muster.RequestID) bool {
	r, err := q.Get(ctx, id)
	return err == nil && requests.Final(r)
}

// reportHeard reports to the user's conversation which of the user's mails have entered the
// lead's.
func (v *conversation) reportHeard(mail []muster.Message) {
	if !v.isLead() || v.Talk == nil {
		return
	}
	for _, msg := range mail {
		if msg.From == muster.User {
			v.Talk.Heard(msg.ID)
		}
	}
}

// Inbox shows what waits and what was delivered last. Mail enters only at a boundary, where
// no tool runs, so that it may be called from a tool.
func (v *conversation) Inbox(ctx context.Context) (string, error) {
	msgs, _, waiting, err := v.Post.Peek(ctx, v.name(), v.inbox, maxDelivery)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	if fresh := v.fresh(ctx, msgs); len(fresh) == 0 {
		b.WriteString("Nothing waits.\n")
	} else {
		b.WriteString("What waits is given to you at the next step:\n" + mailbox.Render(fresh, waiting) + "\n")
	}
	last, err := transcript.LastDelivered(ctx, v.Store.Log(), v.name(), transcript.MaxShown)
	if len(last) > 0 {
		b.WriteString("Delivered last:\n" + mailbox.Render(last, 0))
	}
	return b.String(), err
}
