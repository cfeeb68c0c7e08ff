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

// Remote is a lead that lives in another process: what the user types is mail to it, what it says is read from its
// transcript.
type Remote struct {
	post  *mailbox.Post
	lease muster.Lease // nil: somebody else shows a conversation, too
	over  chan struct{}
	stop  context.CancelFunc
	done  sync.WaitGroup
}

// lookAfter is how often a remote lead is looked for.
const lookAfter = time.Second

// Attach shows on face what the lead of s says from now on; alive reports whether its process lives. While it is
// attached, no member is timed out.
func Attach(ctx context.Context, s muster.Store, post *mailbox.Post, face Face, alive func() bool) *Remote {
	ctx, stop := context.WithCancel(ctx)
	r := &Remote{post: post, over: make(chan struct{}), stop: stop}
	r.lease, _ = s.Leases().Acquire(ctx, teammate.TalkLease)
	r.done.Go(func() { follow(ctx, s.Log(), face) })
	r.done.Go(func() {
		tick := time.NewTicker(lookAfter)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				if !alive() {
					close(r.over)
					return
				}
			}
		}
	})
	return r
}

// Over is closed when the lead's process is gone.
func (r *Remote) Over() <-chan struct{} { return r.over }

// Detach leaves the lead where it is.
func (r *Remote) Detach() {
	r.stop()
	r.done.Wait()
	if r.lease != nil {
		_ = r.lease.Release()
	}
}

// Say mails the lead.
func (r *Remote) Say(ctx context.Context, text string) error {
	_, err := r.post.Send(ctx, muster.Message{Type: muster.MailMessage, From: muster.User, To: muster.Lead, Content: text})
	return err
}

// Interrupt cannot reach into another process.
func (*Remote) Interrupt() bool { return false }

// Close leaves the lead where it is.
func (*Remote) Close() {}

// Resting is true: nobody can tell from here, and the user may write at any time.
func (*Remote) Resting() (resting, done bool) { return true, false }

// Changed never receives.
func (*Remote) Changed() <-chan struct{} { return nil }

// follow shows what the lead says from now on, until ctx ends.
func follow(ctx context.Context, l muster.Log, face Face) {
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
			if text := words(*e.Message); text != "" {
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
