package team

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

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
	w, err := s.t.prepareChange(ctx)
	if err != nil {
		return muster.Message{}, err
	}
	return w.Mail(ctx).Send(ctx, muster.Message{Type: muster.MailMessage, From: muster.User, To: to, Content: text})
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
	var to []muster.Name
	for _, m := range members {
		if m.Status != muster.Shutdown {
			to = append(to, m.Name)
		}
	}
	if len(to) == 0 {
		return nil, muster.Errorf(muster.NotFound, "no mail sent: nobody is there to read it").
			WithHint("muster team list")
	}
	return w.Mail(ctx).Broadcast(ctx, muster.User, text, to)
}

// Pending returns the mail of a member, or of the user, that has not been read yet, and the position after it. The
// error is NotFound, with similar names, when nobody has the name.
func (s Mail) Pending(ctx context.Context, box muster.Name) (all []muster.Message, end muster.Pos, err error) {
	w := s.t.services()
	known, similar, err := w.Roster(ctx).Known(ctx, box)
	if err != nil {
		return nil, 0, err
	}
	if !known {
		return nil, 0, errNoMember(box, similar)
	}
	for {
		some, next, left, err := w.Mail(ctx).Peek(ctx, box, end, math.MaxInt32)
		if err != nil {
			return nil, 0, err
		}
		all, end = append(all, some...), next
		if left == 0 {
			return all, end, nil
		}
	}
}

// errNoMember says that nobody has the name, and who has a similar one.
func errNoMember(name muster.Name, similar []muster.Name) error {
	text := fmt.Sprintf("there is no member %q", string(name))
	if len(similar) > 0 {
		var all []string
		for _, n := range similar {
			all = append(all, string(n))
		}
		text += " (did you mean " + strings.Join(all, " or ") + "?)"
	}
	return muster.Errorf(muster.NotFound, "%s", text).WithHint("muster team list")
}

// Delivered returns the last n mails of a box that have been read. A member's are in its conversation. The user's are
// only in the journal, with as much of their text as that has.
func (s Mail) Delivered(ctx context.Context, box muster.Name, n int) ([]muster.Message, error) {
	w := s.t.services()
	if box != muster.User {
		return transcript.LastDelivered(ctx, w.Store().Log(), box, n)
	}
	waiting, _, err := s.Pending(ctx, box)
	if err != nil {
		return nil, err
	}
	isPending := map[muster.MessageID]bool{}
	for _, m := range waiting {
		isPending[m.ID] = true
	}
	var sent []muster.Message
	for e, err := range w.Journal().Read(ctx, 0) {
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

// Remove removes the mail of a box up to a position that Pending has returned. What is read is shown first and removed
// then: mail that is shown twice is better than mail that is lost.
func (s Mail) Remove(ctx context.Context, box muster.Name, end muster.Pos) error {
	w, err := s.t.prepareChange(ctx)
	if err != nil {
		return err
	}
	return w.Mail(ctx).Drop(ctx, box, end)
}
