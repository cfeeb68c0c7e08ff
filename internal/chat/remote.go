package chat

import (
	"context"
	"sync"
	"time"

	"muster"
	"muster/internal/mailbox"
	"muster/internal/teammate"
	"muster/internal/transcript"
)

// Remote is a lead that lives in another process. What the user types is mailed to it; what it says is read from its
// transcript.
type Remote struct {
	mail   *mailbox.Mail
	lease  muster.Lease // nil: somebody else shows a conversation, too
	gone   chan struct{}
	cancel context.CancelFunc
	done   sync.WaitGroup
}

// hostCheckInterval is how often Attach checks whether the lead's process is alive.
const hostCheckInterval = time.Second

// Attach shows on face what the lead of the team in s says from now on; isAlive reports whether its process lives.
// While it is attached, no member is timed out, because the lease tells the members that a user is there. That the
// lease is taken only means that another process shows a conversation, too.
func Attach(ctx context.Context, s muster.Store, post *mailbox.Mail, face Face, isAlive func() bool) *Remote {
	ctx, stop := context.WithCancel(ctx)
	r := &Remote{mail: post, gone: make(chan struct{}), cancel: stop}
	r.lease, _ = s.Leases().Acquire(ctx, teammate.TalkLease)
	r.done.Go(func() { followLead(ctx, s.Log(), face) })
	r.done.Go(func() {
		tick := time.NewTicker(hostCheckInterval)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if !isAlive() {
					close(r.gone)
					return
				}
			}
		}
	})
	return r
}

// Over is closed when the lead's process has ended.
func (r *Remote) Over() <-chan struct{} { return r.gone }

// Detach stops following the lead, which goes on.
func (r *Remote) Detach() {
	r.cancel()
	r.done.Wait()
	if r.lease != nil {
		_ = r.lease.Release()
	}
}

// Say mails the lead.
func (r *Remote) Say(ctx context.Context, text string) error {
	_, err := r.mail.Send(ctx, muster.Message{Type: muster.MailMessage, From: muster.User, To: muster.Lead,
		Content: text})
	return err
}

// Interrupt returns false: it cannot reach into another process.
func (*Remote) Interrupt() bool { return false }

// Close does nothing: the lead goes on.
func (*Remote) Close() {}

// Resting reports true: whether the lead rests cannot be seen from here, and the user may write at any time.
func (*Remote) Resting() (resting, done bool) { return true, false }

// Changed returns nil, which never receives.
func (*Remote) Changed() <-chan struct{} { return nil }

// followLead shows what the lead says from now on, until ctx ends. It watches before it asks for the end of the log,
// so that nothing is missed in between.
func followLead(ctx context.Context, l muster.Log, face Face) {
	stream := transcript.Stream(muster.Lead)
	more := l.Watch(ctx, stream) // before the first look, so that nothing is missed
	at, err := l.Tail(ctx, stream, 0)
	if err != nil {
		face.Print("what the lead says cannot be read: " + err.Error())
		return
	}
	for ctx.Err() == nil {
		for e, err := range transcript.Read(ctx, l, muster.Lead, at) {
			at = max(at, e.Pos)
			if err != nil || e.Kind != transcript.KindReply {
				continue
			}
			if text := plainText(*e.Message); text != "" {
				face.Stream(text)
				face.Flush()
			}
		}
		select {
		case <-ctx.Done():
		case <-more:
		}
	}
}
