package team

import (
	"context"
	"errors"
	"math"

	"muster"
	"muster/internal/transcript"
	"muster/journal"
)

// Mail is what the user and the members write to each other.
type Mail struct{ t *Team }

// Mail returns the mail of the team.
func (t *Team) Mail() Mail { return Mail{t} }

// Send sends the user's text to one member, or to the lead. A member that has shut down reads it when it is started
// again. The error is NotFound when nobody has the name.
func (s Mail) Send(ctx context.Context, to muster.Name, text string) (muster.Message, error) {
	return s.send(ctx, muster.MailMessage, to, text)
}

func (s Mail) send(
	ctx context.Context, kind muster.MessageType, to muster.Name, text string,
) (m muster.Message, err error) {
	w, err := s.t.prepareChange(ctx)
	if err != nil {
		return m, err
	}
	return w.Mail(ctx).Send(ctx, muster.Message{Type: kind, From: muster.User, To: to, Content: text})
}

// Compact has the lead's conversation compressed: at once where it rests, otherwise between two of its steps. The
// summary keeps focus above all; it may be empty. The request is a record, so that it reaches a lead in any process.
func (s Mail) Compact(ctx context.Context, focus string) error {
	_, err := s.send(ctx, muster.MailCompact, muster.Lead, focus)
	return err
}

// Clear has the lead begin a new conversation: at once where it rests, otherwise between two of its steps. It then
// knows the goal, the team and the board, and nothing that was said. The former conversation stays in its transcript.
// Like that of Compact the request is a record.
func (s Mail) Clear(ctx context.Context) error {
	_, err := s.send(ctx, muster.MailClear, muster.Lead, "begin a new conversation")
	return err
}

// SendAll sends the user's text to every member that has not shut down. The error is NotFound when there is none.
func (s Mail) SendAll(ctx context.Context, text string) ([]muster.Message, error) {
	w, err := s.t.prepareChange(ctx)
	if err != nil {
		return nil, err
	}
	members, err := w.Roster(ctx).List(ctx)
	if err != nil {
		return nil, err
	}
	// Who joins later does not get the mail.
	var to []muster.Name
	for _, m := range members {
		if m.Status != muster.Shutdown {
			to = append(to, m.Name)
		}
	}
	// A broadcast to nobody would look like success.
	if len(to) == 0 {
		return nil, muster.Errorf(muster.NotFound, "no mail sent: nobody is there to read it").
			WithHint("muster team list")
	}
	return w.Mail(ctx).Broadcast(ctx, muster.User, text, to)
}

// Pending returns the mail of a member, or of the user, that has not been read yet. The error is NotFound, with similar
// names, when nobody has the name.
func (s Mail) Pending(ctx context.Context, box muster.Name) ([]muster.Message, error) {
	w := s.t.services()
	// An inbox can be read for every name, so the name is checked first: no mail for a name that nobody has would look
	// like an answer.
	known, _, err := w.Roster(ctx).Known(ctx, box)
	if err == nil && !known {
		_, err = w.Roster(ctx).Get(ctx, box)
	}
	if err != nil {
		return nil, err
	}
	all, _, _, err := w.Mail(ctx).Peek(ctx, box, 0, math.MaxInt32)
	return all, err
}

// Take shows the mail that waits for the user, and removes it when show has succeeded: mail that is shown twice is
// better than mail that is lost. Mail that arrives meanwhile stays.
func (s Mail) Take(ctx context.Context, show func([]muster.Message) error) error {
	w, err := s.t.prepareChange(ctx)
	if err != nil {
		return err
	}
	all, end, _, err := w.Mail(ctx).Peek(ctx, muster.User, 0, math.MaxInt32)
	if err == nil {
		err = show(all)
	}
	if err != nil || len(all) == 0 {
		return err
	}
	// The position removes exactly what was shown.
	return w.Mail(ctx).Drop(ctx, muster.User, end)
}

// Delivered returns the last n mails of a box that have been read. A member's are in its conversation. The user's are
// only in the journal, with as much of their text as that has. Events that cannot be read are left out.
func (s Mail) Delivered(ctx context.Context, box muster.Name, n int) ([]muster.Message, error) {
	w := s.t.services()
	if n <= 0 {
		return nil, nil
	}
	if box != muster.User {
		return transcript.LastDelivered(ctx, w.Store().Log(), box, n)
	}
	// The journal also has the mail that still waits. It is left out here, because Pending has it with its whole text.
	waiting, err := s.Pending(ctx, box)
	if err != nil {
		return nil, err
	}
	isPending := map[muster.MessageID]bool{}
	for _, m := range waiting {
		isPending[m.ID] = true
	}
	var sent []muster.Message
	for e, err := range w.Journal().Read(ctx, 0) {
		// This is for reading back only, so what cannot be read is no reason to show nothing.
		if err != nil && !errors.Is(err, muster.ErrCorrupt) {
			return nil, err
		}
		id := muster.MessageID(e.Text("id"))
		if err == nil && e.Kind == journal.MailSent && e.Text("to") == string(box) && !isPending[id] {
			sent = append(sent, muster.Message{ID: id, Type: muster.MessageType(e.Text("type")), From: e.Member,
				To: box, Content: e.Text("text"), At: e.At})
		}
	}
	return sent[max(0, len(sent)-n):], nil
}
