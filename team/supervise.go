package team

import (
	"context"
	"sync"
	"time"

	"muster"
	"muster/internal/teammate"
)

// supervisor makes the members that live in this process match the roster.
type supervisor struct {
	team *Team
	host muster.HostID

	mu      sync.Mutex
	running map[muster.Name]*runningMember
	left    []muster.Name             // who has ended since the last look: it may have been spawned again meanwhile
	closing bool                      // nobody is started any more
	seen    muster.Mark               // up to where the members were looked at; of serve alone
	carried map[muster.RequestID]bool // shutdowns that were carried out; of serve alone
	fatal   chan error                // what stops the whole team
	serving sync.WaitGroup            // the goroutines that serve the members; run and join wait for them
	stop    context.CancelCauseFunc
}

// sweep is how often the supervisor looks without a hint.
const sweep = 5 * time.Second

func newSupervisor(t *Team, host muster.HostID) *supervisor {
	return &supervisor{team: t, host: host, running: map[muster.Name]*runningMember{},
		carried: map[muster.RequestID]bool{}, fatal: make(chan error, 1)}
}

// run hosts the team until the lead's life is over, then stops whoever still lives.
func (s *supervisor) run(ctx context.Context) (teammate.End, error) {
	ctx, s.stop = context.WithCancelCause(ctx)
	defer s.stop(nil)
	defer s.serving.Wait()
	house, closeHouse := context.WithCancel(ctx) // what serves the members ends after them
	defer closeHouse()
	for _, serve := range []func(context.Context){s.team.deps.Queue.Serve, s.team.deps.Roster.Projector, s.repairLoop,
		func(house context.Context) { s.serve(house, ctx) }} {
		s.serving.Go(func() { serve(house) })
	}
	s.serving.Go(func() {
		if err := s.team.checkBase(house); err != nil && house.Err() == nil {
			s.fail(err)
		}
	})

	record, err := s.team.deps.Roster.Get(ctx, muster.Lead)
	if err != nil {
		return teammate.End{Code: 1}, err
	}
	lead, err := s.member(record)
	if err != nil {
		return teammate.End{Code: 1}, err
	}
	s.team.log.Info("member started", "member", muster.Lead, "host", s.host)
	end, err := s.live(ctx, &lead)
	s.team.logMemberStopped(muster.Lead, err)
	s.close()
	select {
	case err = <-s.fatal:
	default:
	}
	switch {
	case err == nil:
		s.each(func(_ muster.Name, l *runningMember) { l.cancel(muster.CauseShutdown) })
		err = s.shutDownLead(context.WithoutCancel(ctx), lead.TurnCount())
	default:
		s.stop(err) // records stay as they are, for resume
	}
	s.wait()
	if err == nil {
		err = s.team.deps.Roster.Project(context.WithoutCancel(ctx))
	}
	return end, err
}

// fail stops the whole team; the first error counts.
func (s *supervisor) fail(err error) {
	select {
	case s.fatal <- err:
	default:
	}
	s.stop(err)
}

func (s *supervisor) shutDownLead(ctx context.Context, turns int) error {
	_, err := s.team.deps.Roster.Update(ctx, muster.Lead, func(m *muster.Member) {
		m.Status, m.Doing, m.IdleReason, m.Host, m.Task, m.Turns = muster.Shutdown, "", "", "", 0, turns
	})
	return err
}

// serve looks at the records at each hint and at each sweep, until house ends. Members live in ctx.
func (s *supervisor) serve(house, ctx context.Context) {
	members := s.team.deps.Roster.Watch(house)
	requests := s.team.deps.Requests.Watch(house)
	var swept time.Time
	for {
		all := time.Since(swept) >= sweep
		if all {
			swept = time.Now()
		}
		again := time.NewTimer(min(s.reconcile(ctx, all), sweep-time.Since(swept)))
		select {
		case <-house.Done():
			again.Stop()
			return
		case <-members:
		case <-requests:
		case <-s.team.wake:
		case <-again.C:
		}
		again.Stop()
	}
}

// repairLoop settles what other programs left undone: the effects of a completion, a status that they wrote, a mail of
// a request. Whoever comes by does it.
func (s *supervisor) repairLoop(ctx context.Context) {
	changed := s.team.deps.Board.Watch(ctx)
	tick := time.NewTicker(sweep)
	defer tick.Stop()
	log := func(what string, err error) { s.team.logDropped(ctx, what, err) } // what fails now is tried again
	log("taking back orphaned claims", s.team.releaseOrphans(ctx))
	for {
		log("settling the board", s.team.deps.Board.Settle(ctx))
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-tick.C:
			log("settling requests", s.team.deps.Requests.Settle(ctx))
			log("taking back orphaned claims", s.team.releaseOrphans(ctx))
		}
	}
}

// reconcile starts who should live here and stops who should not, and says when to look again. Of the members it looks
// at those only that have changed, or ended here, since the last look; at a sweep at all of them: somebody's host may
// have died.
func (s *supervisor) reconcile(ctx context.Context, all bool) (next time.Duration) {
	members, err := s.changedMembers(ctx, all)
	for _, m := range members {
		if m.Name != muster.Lead && m.Status != muster.Shutdown && s.find(m.Name) == nil {
			s.takeOverMember(ctx, m)
		}
	}
	if err == nil {
		_, err = s.team.deps.Requests.Expire(ctx, time.Now())
	}
	var requests []muster.Request
	if err == nil {
		requests, err = s.team.deps.Requests.List(ctx)
	}
	if err != nil {
		s.team.logDropped(ctx, "looking at members and requests", err)
		return sweep // the next sweep looks again
	}
	next = sweep
	for _, r := range requests {
		if r.Kind == muster.AskShutdown {
			next = min(next, s.shutdown(ctx, r))
		}
	}
	return next
}

// changedMembers are the members to look at.
func (s *supervisor) changedMembers(ctx context.Context, all bool) ([]muster.Member, error) {
	roster := s.team.deps.Roster
	s.mu.Lock()
	left := s.left
	s.left = nil
	s.mu.Unlock()
	if all { // not both: each looks at every document
		return roster.List(ctx)
	}
	members, mark, err := roster.Changed(ctx, s.seen)
	if err != nil {
		return nil, err
	}
	s.seen = mark
	for _, name := range left {
		m, err := roster.Find(ctx, name)
		if err != nil { // gone, or not to be read now: the next sweep looks again
			s.team.logDropped(ctx, "looking at a member that has ended", err)
			continue
		}
		members = append(members, m)
	}
	return members, nil
}

// shutdown carries out a request to shut down that no answer can stop any more, and says when to look at it again.
func (s *supervisor) shutdown(ctx context.Context, r muster.Request) time.Duration {
	if r.To == muster.Lead {
		return s.shutdownLead(ctx, r)
	}
	l := s.find(r.To)
	switch {
	case l == nil, s.carried[r.ID]: // or of an earlier life of that name: see takeOverMember
	case r.Status == muster.RequestPending && r.Force:
		_, _, err := s.team.deps.Requests.Decide(ctx, r.ID, r.To, true, "forced")
		s.team.logDropped(ctx, "deciding a shutdown", err)
		if err == nil {
			s.carried[r.ID] = true
			s.end(ctx, r.To, l)
		}
	case r.Status == muster.RequestApproved && r.Force, r.Status == muster.RequestExpired:
		// A member may refuse a request, but not let its deadline pass.
		s.carried[r.ID] = true
		s.end(ctx, r.To, l)
	case r.Status == muster.RequestPending && r.Deadline > 0:
		return max(s.team.deps.Requests.Left(r, time.Now()), time.Millisecond)
	}
	return sweep
}

// shutdownLead stops the team, as Ctrl-C does: there is nobody above the lead who could go on without it. The state is
// kept.
func (s *supervisor) shutdownLead(ctx context.Context, r muster.Request) time.Duration {
	if r.Status == muster.RequestPending && !s.carried[r.ID] {
		_, _, err := s.team.deps.Requests.Decide(ctx, r.ID, muster.Lead, true, "the team stops; muster resume goes on")
		s.team.logDropped(ctx, "deciding the lead's shutdown", err)
		if err == nil {
			s.carried[r.ID] = true
			s.fail(muster.CauseUser)
		}
	}
	return sweep
}
