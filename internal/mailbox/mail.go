// Package mailbox is mail between members. Each member has one durable inbox in the store; Mail sends to
// them and reads them, and Render turns mail into text for a model.
//
// A mail is delivered exactly once, whatever crashes. The sender's runtime gives a mail its id before the
// first try, so that sending it again does no harm. The reader makes pending mail durable in its transcript
// before it drops it from the inbox, and its transcript recognises the ids of mail that is read twice. Who
// sends is stamped by the runtime and never taken from a model.
//
// When members read their mail, and what they do then, is decided in package teammate.
package mailbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"muster"
	"muster/internal/editdist"
	"muster/internal/text"
	"muster/journal"
)

const (
	// MaxMail is how many bytes of text one mail may have.
	MaxMail = 64 << 10
	// MaxDelivery is how many bytes of mail enter a conversation at once. A single larger mail enters
	// alone.
	MaxDelivery = 64 << 10
)

// Known reports whether a name can get mail, and if not, which names are similar. It is the roster's, which
// knows the members; this package does not.
type Known func(context.Context, muster.Name) (known bool, near []muster.Name, err error)

// Mail sends and reads the mail of one team. It is safe for concurrent use.
type Mail struct {
	inbox   muster.Inbox
	journal *journal.Journal
	known   Known
}

// New returns the mail of the team in s.
func New(s muster.Store, j *journal.Journal, known Known) *Mail {
	return &Mail{inbox: s.Inbox(), journal: j, known: known}
}

// NewID returns a new random id for a mail: 64 bits in hex, so no two mails ever get the same.
func NewID() muster.MessageID { return muster.MessageID(fmt.Sprintf("%016x", rand.Uint64())) }

// Check reports why m cannot be sent. Errors: NotFound if nobody has the recipient's name; Invalid.
func (p *Mail) Check(ctx context.Context, m muster.Message) error {
	size := 0
	for _, text := range []string{m.Content, m.Plan, m.Feedback} {
		if !utf8.ValidString(text) {
			return muster.Errorf(muster.Invalid, "no mail sent: its text is not UTF-8")
		}
		size += len(text)
	}
	speech := m.Type == "" || m.Type == muster.MailMessage || m.Type == muster.MailBroadcast
	switch {
	case m.From == "":
		return muster.Errorf(muster.Invalid, "no mail sent: it has no sender")
	case m.To == "":
		return muster.Errorf(muster.Invalid, "no mail sent: it has no recipient")
	case speech && strings.TrimSpace(m.Content) == "":
		return muster.Errorf(muster.Invalid, "no mail sent: it is empty")
	case size > MaxMail:
		return muster.Errorf(muster.Invalid, "no mail sent: its text has %d bytes, and a mail may have %d", size,
			MaxMail).
			WithHint("write it to a file that the other can read, and name the file in the mail")
	}
	ok, near, err := p.known(ctx, m.To)
	if err != nil || ok {
		return err
	}
	return muster.Errorf(muster.NotFound, "no mail sent: there is no member %q%s", string(m.To),
		editdist.DidYouMean(near)).WithHint("muster team list")
}

// Send sends m and returns it as sent, with an id and the time. The mail is durable when Send returns nil.
// Sending again with the same id is harmless. Errors: those of Check.
func (p *Mail) Send(ctx context.Context, m muster.Message) (muster.Message, error) {
	if err := p.Check(ctx, m); err != nil {
		return muster.Message{}, err
	}
	m.ID = cmp.Or(m.ID, NewID())
	m.Type = cmp.Or(m.Type, muster.MailMessage)
	m.At = muster.UnixTime(time.Now())
	if err := p.inbox.Put(ctx, m.To, m); err != nil {
		return muster.Message{}, err
	}
	// The mail is what counts: that its event could not be written is not the sender's trouble.
	_ = p.journal.Emit(context.WithoutCancel(ctx), muster.Event{Kind: journal.MailSent, Member: m.From, Task: m.TaskID,
		Fields: map[string]any{"to": m.To, "type": m.Type, "id": m.ID, "text": excerpt(m)}})
	return m, nil
}

// Broadcast sends content to each of to except the sender, each mail with an id of its own. It returns the
// mails that were sent also when it returns an error.
func (p *Mail) Broadcast(
	ctx context.Context, from muster.Name, content string, to []muster.Name,
) (sent []muster.Message, err error) {
	done := map[muster.Name]bool{from: true}
	for _, n := range to {
		if done[n] {
			continue
		}
		done[n] = true
		m, failed := p.Send(ctx, muster.Message{Type: muster.MailBroadcast, From: from, To: n, Content: content})
		switch {
		case failed == nil:
			sent = append(sent, m)
		case err == nil:
			err = failed // as it is, so that its hint is not lost
		default:
			err = errors.Join(err, failed)
		}
	}
	return sent, err
}

// Peek returns the oldest pending mails after a position: as many as fit into maxBytes when rendered (0
// means MaxDelivery), but at least one. end is the position after them, and waiting the number of mails
// behind them. A mail that lies there twice is returned once. Mail that is not dropped is returned again by
// the next Peek; the transcript recognises it.
func (p *Mail) Peek(ctx context.Context, box muster.Name, after muster.Pos, maxBytes int) (
	msgs []muster.Message, end muster.Pos, waiting int, err error,
) {
	if maxBytes <= 0 {
		maxBytes = MaxDelivery
	}
	all, end, err := p.inbox.Peek(ctx, box, after, math.MaxInt32)
	if err != nil || len(all) == 0 {
		return nil, max(after, end), 0, err
	}
	n, size := 0, 0
	for n < len(all) {
		if size += len(renderMail(all[n])); n > 0 && size > maxBytes {
			break
		}
		n++
	}
	waiting = len(all) - n
	if waiting > 0 { // only the store knows the place after the first n
		if all, end, err = p.inbox.Peek(ctx, box, after, n); err != nil {
			return nil, after, 0, err
		}
	}
	seen := map[muster.MessageID]bool{}
	for _, m := range all {
		if m.ID == "" || !seen[m.ID] { // a foreign program may write mail without an id
			msgs = append(msgs, m)
		}
		seen[m.ID] = true
	}
	return msgs, end, waiting, nil
}

// Drop removes the mail before a position. It must be the end of a Peek whose mails are durable in the
// transcript, otherwise a crash would lose them.
func (p *Mail) Drop(ctx context.Context, box muster.Name, before muster.Pos) error {
	return p.inbox.Drop(ctx, box, before)
}

// Watch returns a channel that receives after mail has come, until ctx ends.
func (p *Mail) Watch(ctx context.Context, box muster.Name) <-chan struct{} {
	return p.inbox.Watch(ctx, box)
}

// excerpt returns the first words of a mail for the journal.
func excerpt(m muster.Message) string {
	return text.CutBytes(cmp.Or(m.Content, m.Feedback), 200)
}

// Waking returns the pending mails after a position that are not status news, oldest first.
func (p *Mail) Waking(ctx context.Context, box muster.Name, after muster.Pos) ([]muster.Message, error) {
	return p.pending(ctx, box, after, func(t muster.MessageType) bool { return !t.News() })
}

// Landings returns the pending mails after a position that report a landing, oldest first.
func (p *Mail) Landings(ctx context.Context, box muster.Name, after muster.Pos) ([]muster.Message, error) {
	return p.pending(ctx, box, after, func(t muster.MessageType) bool { return t == muster.MailLanded })
}

// pending returns the mails after a position whose type is wanted.
func (p *Mail) pending(ctx context.Context, box muster.Name, after muster.Pos, isWanted func(muster.MessageType) bool) (
	[]muster.Message, error,
) {
	msgs, _, err := p.inbox.Peek(ctx, box, after, math.MaxInt32)
	return slices.DeleteFunc(msgs, func(m muster.Message) bool { return !isWanted(m.Type) }), err
}

// Render returns mail as it enters a conversation, each mail as <mail from="NAME" ...>TEXT</mail>, and how many mails
// still wait.
func Render(msgs []muster.Message, waiting int) string {
	var parts []string
	for _, m := range msgs {
		parts = append(parts, renderMail(m))
	}
	switch {
	case waiting == 1:
		parts = append(parts, "1 more mail waits and comes next.")
	case waiting > 1:
		parts = append(parts, fmt.Sprintf("%d more mails wait and come next.", waiting))
	}
	return strings.Join(parts, "\n")
}

// renderMail returns one mail. The recipient is left out, because it is the reader. An attribute has the name of the
// parameter that takes its value.
func renderMail(m muster.Message) string {
	var tag, body strings.Builder
	attribute := func(name, value string) {
		if value != "" || name == "from" {
			fmt.Fprintf(&tag, " %s=\"%s\"", name, strings.NewReplacer(`"`, "'", "<", "&lt;", ">", "&gt;").
				Replace(text.OneLine(value)))
		}
	}
	attribute("from", string(m.From))
	if m.TaskID != 0 {
		attribute("task_id", fmt.Sprint(m.TaskID))
	}
	if m.Type != muster.MailMessage {
		attribute("type", string(m.Type))
	}
	attribute("request_id", string(m.RequestID))
	if m.Approve != nil {
		attribute("approve", fmt.Sprint(*m.Approve))
	}
	body.WriteString(m.Content)
	parts := []struct{ name, text string }{{"Plan", m.Plan}, {"Feedback", m.Feedback}, {"Other fields", other(m)}}
	for _, x := range parts {
		if x.text != "" {
			fmt.Fprintf(&body, "\n%s: %s", x.name, x.text)
		}
	}
	return "<mail" + tag.String() + ">\n" + text.EscapeTags(strings.ToValidUTF8(body.String(), "\ufffd")) + "\n</mail>"
}

// other returns the fields that another program has written beside those of mail, as JSON; "" for none.
func other(m muster.Message) string {
	if !json.Valid([]byte(m.Other)) {
		return ""
	}
	return string(m.Other)
}

// Short returns a text that fits into a mail: valid UTF-8 of at most 4,000 bytes.
func Short(s string) string {
	return text.CutBytes(strings.ToValidUTF8(s, "?"), 4000)
}
