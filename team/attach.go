package team

import (
	"context"
	"sync"
	"time"

	"muster"
	"muster/internal/teammate"
	"muster/internal/transcript"
	"muster/internal/workspace"
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
	// done counts the two goroutines. Detach waits for them, so that nothing reads the store after it was closed.
	done sync.WaitGroup
}

// hostCheckInterval is how often an Attachment checks whether the lead's process is alive.
const hostCheckInterval = time.Second

// Attach begins a conversation with the lead of another process. While it is attached no member is timed out for
// idleness, because the lease tells the members that a user is there. The caller must call Detach.
func (t *Team) Attach(ctx context.Context) (*Attachment, error) {
	ctx, cancel := context.WithCancel(ctx)
	a := &Attachment{t: t, replies: make(chan llm.Message), over: make(chan struct{}), cancel: cancel}
	// Only what the lead says from now on belongs to the conversation: what was said before is in muster log.
	log, stream := t.config.Store.Log(), transcript.Stream(muster.Lead)
	more := log.Watch(ctx, stream) // before the end is asked for, so that nothing is missed in between
	end, err := log.Tail(ctx, stream, 0)
	if err != nil {
		cancel()
		return nil, err
	}
	// That the lease is held only means that another process is attached too.
	// The lease ends with this process, however it ends, so a terminal that is killed lets members be timed out again.
	if a.lease, err = t.config.Store.Leases().Acquire(ctx, teammate.TalkLease); err != nil {
		a.lease = nil
	}
	a.done.Go(func() { a.followReplies(ctx, log, end, more) })
	a.done.Go(func() { a.awaitEnd(ctx) })
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

// Detach ends the conversation. The lead goes on.
func (a *Attachment) Detach() {
	a.cancel()
	a.done.Wait()
	if a.lease != nil {
		_ = a.lease.Release() // the lease ends with the process anyway
	}
}

// followReplies sends what the lead says after the position, until ctx ends.
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

// awaitEnd closes over when the lead's process is gone.
func (a *Attachment) awaitEnd(ctx context.Context) {
	for wait(ctx, hostCheckInterval) {
		// When it cannot be read whether the process lives, it is taken to live, and the next round asks again.
		if running, err := a.t.IsRunning(ctx); err == nil && !running {
			close(a.over)
			return
		}
	}
}

// IsRunning reports whether a process runs the team: its lead is alive, or the process has not yet written how the run
// ended, which it does after its lead has shut down.
func (t *Team) IsRunning(ctx context.Context) (bool, error) {
	alive, err := t.Members().IsLeadAlive(ctx)
	if alive || err != nil {
		return alive, err
	}
	return t.config.Store.Leases().Held(ctx, workspace.LeadLease)
}

// LastRun returns the record of the run under way, or of the last one. It is the zero Run when there was none.
func (t *Team) LastRun(ctx context.Context) (muster.Run, error) {
	return t.services().Runs().Look(ctx)
}
