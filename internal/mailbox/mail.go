// Package mailbox is mail between members: one durable inbox each. A sender mints a mail's id before its first try, and
// the runtime stamps who sends; the reader takes what is pending into its transcript before it drops it here, so a mail
// is delivered once, whatever crashes.
package mailbox

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"muster"
	"muster/journal"
)

const (
	// MaxMail is how many bytes of text one mail may have.
	MaxMail = 64 << 10
	// MaxDelivery is how many bytes enter a conversation at once, unless one mail alone is more.
	MaxDelivery = 64 << 10
)

// Known reports whether a name can get mail, and if not, which names are like it.
type Known func(context.Context, muster.Name) (known bool, near []muster.Name, err error)

// Post sends and reads mail.
type Post struct {
	inbox   muster.Inbox
	journal *journal.Journal
	known   Known
	quiets  quiets
}

// New is the post of the team in s.
func New(s muster.Store, j *journal.Journal, known Known) *Post {
	return &Post{inbox: s.Inbox(), journal: j, known: known}
}

// NewID mints a mail's id.
func NewID() muster.MessageID {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return muster.MessageID(hex.EncodeToString(b[:]))
}

// Check reports why m cannot be sent. Errors: NotFound when nobody has the recipient's name; Invalid.
func (p *Post) Check(ctx context.Context, m muster.Message) error {
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
		return muster.Errorf(muster.Invalid, "no mail sent: its text has %d bytes, and a mail may have %d", size, MaxMail).
			WithHint("write it to a file that the other can read, and name the file in the mail")
	}
	ok, near, err := p.known(ctx, m.To)
	if err != nil || ok {
		return err
	}
	e := muster.Errorf(muster.NotFound, "no mail sent: there is no member %q", string(m.To))
	if len(near) > 0 {
		names := make([]string, len(near))
		for i, n := range near {
			names[i] = string(n)
		}
		e.Message += " (did you mean " + strings.Join(names, " or ") + "?)"
	}
	return e
}

// Send sends m and returns it as it was sent: with an id, if it had none, and the time. It is durable on nil. Sending
// again with the same id is harmless. Errors: those of Check.
func (p *Post) Send(ctx context.Context, m muster.Message) (muster.Message, error) {
	if err := p.Check(ctx, m); err != nil {
		return muster.Message{}, err
	}
	if m.ID == "" {
		m.ID = NewID()
	}
	if m.Type == "" {
		m.Type = muster.MailMessage
	}
	m.At = muster.Stamp(time.Now())
	if err := p.inbox.Put(ctx, m.To, m); err != nil {
		return muster.Message{}, err
	}
	// The mail is what counts: that its event could not be written is not the sender's trouble.
	_ = p.journal.Emit(context.WithoutCancel(ctx), muster.Event{Kind: journal.MailSent, Member: m.From, Task: m.TaskID,
		Fields: map[string]any{"to": m.To, "type": m.Type, "id": m.ID, "text": excerpt(m)}})
	return m, nil
}

// Broadcast sends content to each of to, but not to the sender: one mail with its own id each. What could be sent is
// returned beside the error.
func (p *Post) Broadcast(ctx context.Context, from muster.Name, content string, to []muster.Name) ([]muster.Message, error) {
	var sent []muster.Message
	var errs []error
	done := map[muster.Name]bool{from: true}
	for _, n := range to {
		if done[n] {
			continue
		}
		done[n] = true
		m, err := p.Send(ctx, muster.Message{Type: muster.MailBroadcast, From: from, To: n, Content: content})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		sent = append(sent, m)
	}
	if len(errs) == 1 {
		return sent, errs[0]
	}
	return sent, errors.Join(errs...)
}

// Peek returns the oldest pending mails after the place, as many as fit into maxBytes when rendered (0: MaxDelivery) but at
// least one, the place after them, and how many wait behind them. A mail that lies there twice is returned once; what
// an earlier Peek returned and nobody dropped comes again, and the transcript knows it.
func (p *Post) Peek(ctx context.Context, box muster.Name, after muster.Pos, maxBytes int) (msgs []muster.Message, end muster.Pos, waiting int, err error) {
	if maxBytes <= 0 {
		maxBytes = MaxDelivery
	}
	all, end, err := p.inbox.Peek(ctx, box, after, math.MaxInt32)
	if err != nil || len(all) == 0 {
		return nil, max(after, end), 0, err
	}
	n, size := 0, 0
	for n < len(all) {
		if size += len(letter(all[n])); n > 0 && size > maxBytes {
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
	had := map[muster.MessageID]bool{}
	for _, m := range all {
		if m.ID == "" || !had[m.ID] {
			msgs = append(msgs, m)
		}
		had[m.ID] = true
	}
	return msgs, end, waiting, nil
}

// Drop removes what lies before the place: the end of a Peek whose mails are durable in the transcript.
func (p *Post) Drop(ctx context.Context, box muster.Name, before muster.Pos) error {
	p.quiets.note(box, func(k *quiet) { *k = quiet{dropped: time.Now()} })
	return p.inbox.Drop(ctx, box, before)
}

// Watch receives after mail came, until ctx ends.
func (p *Post) Watch(ctx context.Context, box muster.Name) <-chan struct{} {
	return p.inbox.Watch(ctx, box)
}

// excerpt is what the events show of a mail: its first words.
func excerpt(m muster.Message) string {
	text := m.Content
	if text == "" {
		text = m.Feedback
	}
	const most = 200
	if utf8.RuneCountInString(text) <= most {
		return text
	}
	return string([]rune(text)[:most]) + " ..."
}
