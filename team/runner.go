package team

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"muster"
	"muster/internal/durable"
	"muster/internal/mailbox"
	"muster/internal/requests"
	"muster/internal/teammate"
)

// runningMember is a member that runs in this process.
type runningMember struct {
	cancel context.CancelCauseFunc // of its life
	ended  sync.Once               // end was called
	done   chan struct{}           // closed when nothing of it runs any more
}

// grace is how long a cancelled member has to finish its writes. finalizeTimeout is the part of it in which its final
// status is written.
const (
	grace           = 10 * time.Second
	finalizeTimeout = 4 * time.Second
)

// takeOverMember takes a member that no living process hosts and starts it here.
func (s *supervisor) takeOverMember(ctx context.Context, m muster.Member) {
	roster := s.site.roster
	if m.Host != s.id {
		if alive, err := roster.Alive(ctx, m.Host); err != nil || alive {
			logDropped(ctx, s.site.log, "looking whether a member's host lives", err)
			return
		}
		logDropped(ctx, s.site.log, "counting the calls of a dead process", s.meter.CutOff(ctx, roster.Alive))
		// Nothing of the dead process may write where the member now works.
		_, err := roster.EndTools(ctx)
		logDropped(ctx, s.site.log, "ending the tools of dead processes", err)
	}
	// What was decided before this life is not about it; whose clock said when does not matter.
	list, err := s.site.requests.List(ctx)
	if err != nil {
		logDropped(ctx, s.site.log, "listing requests", err)
		return // the next sweep tries again
	}
	for _, r := range list {
		if r.To == m.Name && requests.Final(r) {
			s.carried[r.ID] = true
		}
	}
	// The member is listed before its record says that it lives here. The other way round, a team that ends in between
	// would not wait for it.
	l := &runningMember{done: make(chan struct{})}
	ctx, l.cancel = context.WithCancelCause(ctx)
	if !s.add(m.Name, l) {
		l.cancel(nil)
		return
	}
	// One compare-and-set decides between all processes that have seen the host die.
	taken, err := roster.TakeOver(ctx, m.Name, m.Host, s.id)
	if err != nil || taken.Status == muster.Shutdown {
		if !errors.Is(err, muster.ErrStale) {
			logDropped(ctx, s.site.log, "taking a member over", err)
		}
		s.remove(m.Name, l) // another process was faster, or the next sweep tries again
		return
	}
	go s.runMember(ctx, taken, l)
}

// add makes the member one that lives here, unless the team is about to end.
func (s *supervisor) add(name muster.Name, l *runningMember) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return false
	}
	s.running[name] = l
	return true
}

func (s *supervisor) remove(name muster.Name, l *runningMember) {
	s.mu.Lock()
	delete(s.running, name)
	s.mu.Unlock()
	close(l.done)
	l.cancel(nil)
}

// runMember runs a teammate until its life is over, and sees to what its end means for the team: nothing where it ended
// in order or was cancelled with the team, the end of the team where nobody could go on, and otherwise the release of
// what it had claimed.
func (s *supervisor) runMember(ctx context.Context, m muster.Member, l *runningMember) {
	name := m.Name
	_, _, err := s.live(ctx, m)
	var stop *teammate.TeamStop
	switch {
	case err == nil || context.Cause(ctx) != nil && errors.Is(err, context.Cause(ctx)):
	case errors.As(err, &stop):
		if over, is := exceeded(err); is {
			s.awaitQuiet(ctx, name, over)
		}
		s.fail(stop)
	case errors.Is(err, durable.ErrEnded): // nothing of this process is written any more
		s.fail(err)
	case errors.Is(err, muster.ErrFenced): // another process goes on with it
	case errors.Is(context.Cause(ctx), muster.CauseShutdown): // between two lives: nobody else gives back what it has
		s.finalizeMember(ctx, name, "shutdown of its owner", "")
	default: // it failed: what it had goes back to the board, and the lead is told
		s.finalizeMember(ctx, name, "its owner is lost",
			"Teammate "+string(name)+" is lost: "+mailbox.Short(muster.PlainText(err)))
	}
	s.remove(name, l)
	wake(s.wake)
}

// finalizeMember ends a member that lived here, and tries again for a while. words are for the lead.
func (s *supervisor) finalizeMember(ctx context.Context, name muster.Name, why, words string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finalizeTimeout)
	defer cancel()
	news := muster.Message{ID: mailbox.NewID(), Type: muster.MailError, From: muster.System, To: muster.Lead,
		Content: words}
	for pause := finalizeTimeout / 64; ; pause *= 2 { // what cannot be written in the end, a sweep or the next run does
		err := s.finalizer.member(ctx, name, s.id, why, news)
		if err == nil || !isTransient(err) || !wait(ctx, pause) {
			logDropped(ctx, s.site.log, "ending a member", err)
			return
		}
	}
}

// end cancels a member and gives it the grace for its last writes. One that hangs is written off: its record says
// shutdown, its task goes back, and its tools die with their context. The caller is one of the supervisor's own
// goroutines, so that the run does not return before the writing off is over.
func (s *supervisor) end(ctx context.Context, name muster.Name, l *runningMember) {
	l.ended.Do(func() {
		l.cancel(muster.CauseShutdown)
		s.serving.Go(func() {
			select {
			case <-l.done:
			case <-time.After(grace):
				s.finalizeMember(ctx, name, "its owner did not end",
					"Teammate "+string(name)+" did not end in time and was given up; its task is back on the board.")
			}
		})
	})
}

func (s *supervisor) all() map[muster.Name]*runningMember {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.running)
}

func (s *supervisor) get(name muster.Name) *runningMember {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running[name]
}

// live runs the member of a record until its life is over, and returns it as it was last. After a transient failure it
// goes on with its conversation and its task, as after a crash. A teammate whose conversation is not where this process
// has written it begins a new one. The error is Fenced when the member is another process's then.
func (s *supervisor) live(ctx context.Context, record muster.Member) (m *teammate.Member, end teammate.End, err error) {
	name := record.Name
	s.site.log.Info("member started", "member", name, "host", s.id)
	defer func() { s.site.log.Info("member stopped", "member", name, "cause", causeText(err)) }()
	err = s.site.runWithRestarts(ctx, string(name), name, func() error {
		made, err := s.restore(ctx, name, &record, m != nil)
		if err == nil {
			m = made
			end, err = m.Live(ctx)
		}
		if errors.Is(err, muster.ErrFenced) && name != muster.Lead && ctx.Err() == nil && s.hosts(ctx, name) {
			err = muster.Errorf(muster.Unavailable, "its transcript was removed, or something else has written it")
		}
		return err
	})
	return m, end, err
}

func (s *supervisor) hosts(ctx context.Context, name muster.Name) bool {
	m, err := s.site.roster.Get(ctx, name)
	return err == nil && m.Host == s.id && m.Status != muster.Shutdown
}

// restore makes a living member of its record, which is read again if the member failed: it may have changed since.
func (s *supervisor) restore(
	ctx context.Context, name muster.Name, record *muster.Member, failed bool,
) (m *teammate.Member, err error) {
	if failed {
		*record, err = s.site.roster.TakeOver(ctx, name, s.id, s.id)
		if errors.Is(err, muster.ErrStale) || err == nil && record.Status == muster.Shutdown {
			err = muster.Errorf(muster.Fenced, "%s runs in another process now", name)
		}
		if err != nil {
			return nil, err
		}
	}
	return s.members.new(*record) //nolint:contextcheck // The trouble of a server is told while no member lives, too.
}
