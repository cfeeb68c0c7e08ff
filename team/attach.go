package team

import (
	"context"
	"sync"

	"muster"
	"muster/internal/teammate"
	"muster/internal/transcript"
	"muster/llm"
)

// Attachment is a conversation with a lead that runs in another process. What the user says is sent as mail; what the
// lead says is read from its transcript.
type Attachment struct {
	t       *Team
	lease   muster.Lease // nil when another process is attached too
	replies chan llm.Message
	over    chan struct{}
	cancel  context.CancelFunc
	// done counts the goroutines. Detach waits for them, so that nothing reads the store after it was closed.
	done sync.WaitGroup
	// start runs a function in one of them, with a context that ends at Detach.
	start func(func(ctx context.Context))
}

// Attach begins a conversation with the lead of another process. While it is attached no member is timed out for
// idleness, because the lease tells the members that a user is there. The caller must call Detach.
func (t *Team) Attach(ctx context.Context) (*Attachment, error) {
	ctx, cancel := context.WithCancel(ctx)
	a := &Attachment{t: t, replies: make(chan llm.Message), over: make(chan struct{}), cancel: cancel}
	// Only what the lead says from now on belongs to the conversation: what was said before is in muster log.
	log, stream := t.site.config.Store.Log(), transcript.Stream(muster.Lead)
	more := log.Watch(ctx, stream) // before the end is asked for, so that nothing is missed in between
	end, err := log.Tail(ctx, stream, 0)
	if err != nil {
		cancel()
		return nil, err
	}
	// That the lease is held only means that another process is attached too.
	// The lease ends with this process, however it ends, so a terminal that is killed lets members be timed out again.
	if a.lease, err = t.site.config.Store.Leases().Acquire(ctx, teammate.TalkLease); err != nil {
		a.lease = nil
	}
	a.start = func(f func(ctx context.Context)) { a.done.Go(func() { f(ctx) }) }
	a.start(func(ctx context.Context) { a.followReplies(ctx, log, end, more) })
	a.start(a.awaitEnd)
	return a, nil
}

// Replies returns what the lead says. A reply may have no text: the lead only calls tools then.
func (a *Attachment) Replies() <-chan llm.Message { return a.replies }

// Over is closed when the lead's process has ended and has written how the run ended.
func (a *Attachment) Over() <-chan struct{} { return a.over }

// Say sends the lead what the user says.
func (a *Attachment) Say(ctx context.Context, text string) error {
	_, err := a.t.Mail().Send(ctx, muster.Lead, text)
	return err
}

// Interrupt stops the lead's turn, with the commands that it runs, as Conversation.Interrupt does. What came of it is
// told later, by a goroutine, because the lead's process may be slow: the error is nil where the turn has ended.
// Nothing is told after Detach.
func (a *Attachment) Interrupt(told func(err error)) {
	a.start(func(ctx context.Context) {
		if err := a.interrupt(ctx); ctx.Err() == nil {
			told(err)
		}
	})
}

func (a *Attachment) interrupt(ctx context.Context) error {
	w, err := a.t.prepareChange(ctx)
	if err != nil {
		return err
	}
	all := w.Requests(ctx)
	r, err := all.Ask(ctx, muster.Request{Kind: muster.AskInterrupt, From: muster.User, To: muster.Lead})
	if err == nil {
		r, err = all.Await(ctx, r.ID)
	}
	if err == nil && r.Status != muster.RequestApproved {
		err = muster.Errorf(muster.Held, "the lead's turn was not stopped: %s", r.Response)
	}
	return err
}

// Detach ends the conversation. The lead goes on.
func (a *Attachment) Detach() {
	a.cancel()
	a.done.Wait()
	if a.lease != nil {
		_ = a.lease.Release() // the lease ends with the process anyway
	}
}

func (a *Attachment) followReplies(ctx context.Context, log muster.Log, at muster.Pos, more <-chan struct{}) {
	for ctx.Err() == nil {
		// An entry that cannot be read is left out. It has a position too, so reading goes on behind it.
		for e, err := range transcript.Read(ctx, log, muster.Lead, at) {
			at = max(at, e.Pos)
			if err != nil || e.Kind != transcript.KindReply {
				continue
			}
			select {
			case a.replies <- *e.Message:
			case <-ctx.Done():
				return
			}
		}
		select {
		case <-ctx.Done():
		case <-more:
		}
	}
}

func (a *Attachment) awaitEnd(ctx context.Context) {
	for wait(ctx, hostCheckInterval) {
		// When it cannot be read whether the process lives, it is taken to live, and the next round asks again.
		if running, err := a.t.IsRunning(ctx); err == nil && !running {
			close(a.over)
			return
		}
	}
}
