package teammate

import (
	"context"
	"regexp"
	"strings"

	"muster"
	"muster/internal/failpoint"
	"muster/internal/mailbox"
	"muster/internal/requests"
	"muster/internal/tool/code"
	"muster/journal"
)

// maxDelivery is how many bytes of mail enter at one boundary.
const maxDelivery = 64 << 10

// lastMails is how many delivered mails read_inbox shows.
const lastMails = 20

// deliver moves pending mail into the conversation: transcript first, then the inbox. At rest, status news alone stays
// where it is: it wakes no model. It reports whether something came in that the model should hear now.
func (m *Member) deliver(ctx context.Context, rest bool) (bool, error) {
	if rest {
		wakes, err := m.mailWakes(ctx)
		if err != nil || !wakes {
			return false, err
		}
	}
	msgs, end, waiting, err := m.Post.Peek(ctx, m.name(), m.inbox, maxDelivery)
	if err != nil || len(msgs) == 0 {
		return false, err
	}
	fresh := m.fresh(ctx, msgs)
	if len(fresh) > 0 {
		ids := make([]muster.MessageID, len(fresh))
		for i, msg := range fresh {
			ids[i] = msg.ID
		}
		if err := m.say(ctx, ids, mailbox.Render(fresh, waiting)); err != nil {
			return false, err
		}
		m.event(ctx, journal.MailDelivered, map[string]any{"count": len(fresh)})
		m.heardUser(fresh)
	}
	failpoint.Hit("teammate.delivered")
	if err := m.Post.Drop(ctx, m.name(), end); err != nil {
		return false, err
	}
	failpoint.Hit("teammate.dropped")
	m.mu.Lock()
	m.inbox = end
	for _, msg := range fresh {
		if !msg.Type.News() {
			delete(m.asked, msg.From)
		}
	}
	m.mu.Unlock()
	return len(fresh) > 0, nil
}

// mailWakes reports whether mail waits that a resting model should hear. What is void, or lies there a second time, goes
// on its way, so that nobody takes it for mail that is still to be read.
func (m *Member) mailWakes(ctx context.Context) (bool, error) {
	msgs, err := m.Post.Waking(ctx, m.name(), m.inbox)
	if err != nil || len(msgs) == 0 {
		return false, err
	}
	if len(m.fresh(ctx, msgs)) > 0 {
		return true, nil
	}
	_, err = m.deliver(ctx, false) // all of it stale
	return false, err
}

// fresh are the mails that the conversation does not have and that still say something.
func (m *Member) fresh(ctx context.Context, msgs []muster.Message) (fresh []muster.Message) {
	seen := map[muster.MessageID]bool{}
	for _, msg := range msgs {
		if !seen[msg.ID] && !m.script.Delivered(msg.ID) && !m.settled(ctx, msg) {
			fresh = append(fresh, msg)
		}
		seen[msg.ID] = true
	}
	return fresh
}

// settled reports whether a mail is void: a shutdown request or a plan that was decided already, or the answer to a plan,
// which submit_plan has returned.
func (m *Member) settled(ctx context.Context, msg muster.Message) bool {
	switch msg.Type {
	case muster.MailShutdown, muster.MailPlan:
		r, err := m.Requests.Get(ctx, msg.RequestID)
		return err == nil && requests.Final(r)
	case muster.MailPlanAnswer:
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.answered[msg.RequestID]
	}
	return false
}

// announce tells of finished background jobs.
func (m *Member) announce(ctx context.Context) (bool, error) {
	done := m.jobs.Finished()
	if len(done) == 0 {
		return false, nil
	}
	return true, m.say(ctx, nil, code.Render(done))
}

// Inbox shows what waits and what was delivered last.
func (m *Member) Inbox(ctx context.Context) (string, error) {
	msgs, _, waiting, err := m.Post.Peek(ctx, m.name(), m.inbox, maxDelivery)
	if err != nil {
		return "", err
	}
	fresh := m.fresh(ctx, msgs)
	var b strings.Builder
	if len(fresh) == 0 {
		b.WriteString("Nothing waits.\n")
	} else {
		b.WriteString("What waits is given to you at the next step:\n" + mailbox.Render(fresh, waiting) + "\n")
	}
	if last := m.script.LastDelivered(lastMails); len(last) > 0 {
		b.WriteString("Delivered last:\n" + mailbox.Render(last, 0))
	}
	return b.String(), nil
}

// question is a question mark that ends a sentence, not one inside a URL.
var question = regexp.MustCompile(`[?？]["')\]]*(\s|$)`)

// Asked notes a question: while it is not answered, the member is not timed out.
func (m *Member) Asked(to muster.Name, content string) {
	if question.MatchString(content) {
		m.mu.Lock()
		m.asked[to] = true
		m.mu.Unlock()
	}
}
