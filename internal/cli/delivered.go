package cli

import (
	"context"
	"errors"

	"muster"
	"muster/internal/transcript"
	"muster/journal"
)

// withDelivered puts the last n delivered mails of a box before those that wait. A member's are in its conversation; the
// user's are only in the events, with as much of their text as those have.
func (p *place) withDelivered(ctx context.Context, box muster.Name, n int, waiting []muster.Message) ([]muster.Message, error) {
	if box != muster.User {
		t, err := transcript.Open(ctx, p.store.Log(), box)
		if err != nil {
			return nil, err
		}
		return append(t.LastDelivered(n), waiting...), nil
	}
	waits := map[muster.MessageID]bool{}
	for _, m := range waiting {
		waits[m.ID] = true
	}
	var sent []muster.Message
	for e, err := range p.journal.Read(ctx, 0) {
		if err != nil && !errors.Is(err, muster.ErrCorrupt) {
			return nil, err
		}
		if id := muster.MessageID(e.Text("id")); err == nil && e.Kind == journal.MailSent && e.Text("to") == string(box) && !waits[id] {
			sent = append(sent, muster.Message{ID: id, Type: muster.MessageType(e.Text("type")), From: e.Member, To: box, Content: e.Text("text"), At: e.At})
		}
	}
	return append(sent[max(0, len(sent)-n):], waiting...), nil
}
