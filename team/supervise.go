package team

import (
	"context"
	"slices"
	"sync"
	"time"

	"muster"
	"muster/internal/roster"
	"muster/internal/spend"
	"muster/internal/teammate"
)

// supervisor makes the members that live in this process match the roster, for one time of hosting.
type supervisor struct {
	site      *site
	members   *members
	finalizer *finalizer
	meter     *spend.Meter
	wake      chan struct{}                       // holds one token: it is to reconcile
	tend      func(context.Context) (isDone bool) // see host
	id        muster.HostID                       // of this process
	// hostsLead says that the lead lives here. It is set before run begins.
	hostsLead bool

	mu      sync.Mutex
	running map[muster.Name]*runningMember
	closing bool                      // nobody is started any more
	carried map[muster.RequestID]bool // shutdowns that were carried out, or concern an earlier life; of serve alone
	fatal   chan error                // what stops the whole team
	stopped map[muster.Name]bool      // who makes no call any more, because a budget of the whole team is spent
	serving sync.WaitGroup            // the goroutines that serve the members; run waits for them
	stop    context.CancelCauseFunc
}

func newSupervisor(h *host, id muster.HostID) *supervisor {
	return &supervisor{site: h.site, members: h.members, finalizer: h.finalizer, meter: h.spending.meter,
		wake: h.shared.wake, tend: h.tend, id: id, running: map[muster.Name]*runningMember{},
		carried: map[muster.RequestID]bool{}, fatal: make(chan error, 1), stopped: map[muster.Name]bool{}}
}

// run runs the members of this process until work is over, then ends those that still live. Members live in ctx; what
// serves them lives in house, which ends after them. Where work has failed, or anything that stops the team, their
// records stay as they are, for whoever goes on with them. Else they are shut down, and conclude is called while they
// end.
func (s *supervisor) run(
	ctx context.Context, work func(ctx, house context.Context) error, conclude func(context.Context) error,
) error {
	ctx, s.stop = context.WithCancelCause(ctx)
	defer s.stop(nil)
	defer s.serving.Wait()
	house, closeHouse := context.WithCancel(ctx)
	defer closeHouse()
	for _, serve := range []func(context.Context){s.site.roster.Projector, s.repairLoop,
		func(house context.Context) { s.serve(house, ctx) }} {
		s.serving.Go(func() { serve(house) })
	}
	if watch := s.members.collisions; watch != nil {
		s.serving.Go(func() { watch.Serve(house) })
	}
	s.serving.Go(func() { s.site.listeners.share(house, s.site.workspace.Paths().Live()) })
	err := work(ctx, house)
	// From here on serve starts nobody: a member that came to life now would not be waited for.
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	// What stops the whole team counts more than the error of whoever was stopped by it.
	select {
	case err = <-s.fatal:
	default:
	}
	if err == nil {
		for _, l := range s.all() {
			l.cancel(muster.CauseShutdown)
		}
		err = conclude(context.WithoutCancel(ctx))
	} else {
		s.stop(err)
	}
	// After this nothing of a member is written any more: nobody is let in, a member's own code heeds its context, and
	// what does not, a model or an embedder's tool, is left behind by callForeign.
	for _, l := range s.all() {
		<-l.done
	}
	return err
}

// lead runs the lead until its life is over, with its teammates and with work beside it, whose error stops the team.
func (s *supervisor) lead(
	ctx context.Context, beside func(ctx context.Context) error,
) (end teammate.End, err error) {
	end.Code, s.hostsLead = 1, true // the code counts until the lead has lived
	var lead *teammate.Member
	err = s.run(ctx, func(ctx, house context.Context) error {
		s.serving.Go(func() {
			if err := beside(house); err != nil && house.Err() == nil {
				s.fail(err)
			}
		})
		record, err := s.site.roster.Get(ctx, muster.Lead)
		if err == nil {
			lead, end, err = s.live(ctx, record)
		}
		if over, is := exceeded(err); is {
			s.awaitQuiet(ctx, muster.Lead, over)
		}
		return err
	}, func(ctx context.Context) error {
		_, err := s.site.roster.Update(ctx, muster.Lead, func(m *muster.Member) {
			m.Status, m.Doing, m.IdleReason, m.Host, m.Task = muster.Shutdown, "", "", "", 0
			m.Turns = lead.TurnCount()
		})
		return err
	})
	if err == nil {
		err = s.site.roster.Project(context.WithoutCancel(ctx))
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

// serve looks at the records at each hint, and after each IdlePoll without one, until house ends. So long a member of a
// process that has died waits at most for another process. Members live in ctx.
func (s *supervisor) serve(house, ctx context.Context) {
	members := s.site.roster.Watch(house)
	requests := s.site.requests.Watch(house)
	var swept time.Time
	poll := s.site.config.Limits.IdlePoll
	for {
		// A hint can be lost, and a host that dies gives none, so all members are looked at regularly.
		all := time.Since(swept) >= poll
		if all {
			swept = time.Now()
		}
		again := time.After(min(s.reconcile(ctx, all), poll-time.Since(swept)))
		select {
		case <-house.Done():
			return
		case <-members:
		case <-requests:
		case <-s.wake:
		case <-again:
		}
	}
}

// repairLoop settles what processes left undone: the effects of a completion, a mail of a request. Whoever comes by
// does it. It also reads the run's record, so that the store undoes what another program may have made of it.
func (s *supervisor) repairLoop(ctx context.Context) {
	changed := s.site.board.Watch(ctx)
	tick := time.NewTicker(s.site.config.Limits.IdlePoll)
	defer tick.Stop()
	log := func(what string, err error) { logDropped(ctx, s.site.log, what, err) } // what fails now is tried again
	log("taking back orphaned claims", s.finalizer.releaseOrphans(ctx))
	isTended := false
	for {
		log("settling the board", s.site.board.Settle(ctx))
		isTended = isTended || s.tend(ctx)
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-tick.C:
			log("settling requests", s.site.requests.Settle(ctx))
			_, err := s.site.runs.Get(ctx)
			log("reading the run's record", err)
			log("taking back orphaned claims", s.finalizer.releaseOrphans(ctx))
		}
	}
}

// reconcile starts who should live here and stops who should not, and says when to look again. Whether the hosts of
// others' members are alive is looked at with all set only, because it asks the kernel for each.
func (s *supervisor) reconcile(ctx context.Context, all bool) (next time.Duration) {
	members, err := roster.ListIf(ctx, s.site.roster, func(m *muster.Member) bool {
		isOurs := m.Host == "" || m.Host == s.id
		return m.Name != muster.Lead && m.Status != muster.Shutdown && (isOurs || all) && s.get(m.Name) == nil
	})
	for _, m := range members {
		s.takeOverMember(ctx, m)
	}
	if err == nil {
		_, err = s.site.requests.Expire(ctx, time.Now())
	}
	var requests []muster.Request
	if err == nil {
		requests, err = s.site.requests.List(ctx)
	}
	if err != nil {
		logDropped(ctx, s.site.log, "looking at members and requests", err)
		return s.site.config.Limits.IdlePoll // the next sweep looks again
	}
	next = s.site.config.Limits.IdlePoll
	for _, r := range requests {
		switch r.Kind {
		case muster.AskShutdown:
			next = min(next, s.shutdown(ctx, r))
		case muster.AskInterrupt:
			s.interrupt(ctx, r)
		}
	}
	return next
}

// interrupt carries out a request of the user in another process that the lead, which lives here, ends its turn. It is
// decided after that, because only then is it known whether there was a turn. A process that dies in between has ended
// the turn in its own way.
func (s *supervisor) interrupt(ctx context.Context, r muster.Request) {
	if r.Status != muster.RequestPending || !s.hostsLead {
		return
	}
	why := ""
	switch c := s.site.config.Conversation; {
	case c == nil: // a lead that nobody talks with would not know for what it waits
		why = "it works without a conversation; muster stop stops the team"
	case !c.Interrupt():
		why = "it waits already"
	}
	_, _, err := s.site.requests.Decide(ctx, r.ID, muster.Lead, why == "", why)
	logDropped(ctx, s.site.log, "answering an interruption", err)
}

// shutdown carries out a request to shut down that no answer can stop any more, and says when to look at it again.
func (s *supervisor) shutdown(ctx context.Context, r muster.Request) time.Duration {
	if s.carried[r.ID] {
		return s.site.config.Limits.IdlePoll
	}
	// A request is decided before it is carried out. Where that cannot be written it is tried again, and nobody ends
	// without a record of why.
	grant := func(why string) bool {
		_, _, err := s.site.requests.Decide(ctx, r.ID, r.To, true, why)
		logDropped(ctx, s.site.log, "deciding a shutdown", err)
		s.carried[r.ID] = err == nil
		return err == nil
	}
	l := s.get(r.To)
	switch {
	case r.To == muster.Lead && !s.hostsLead: // a process that has joined leaves it to that of the lead
	case r.To == muster.Lead:
		// It stops the team, as Ctrl-C does, and the state is kept: there is nobody above the lead who could go on
		// without it.
		if r.Status == muster.RequestPending && grant("the team stops; muster resume goes on") {
			s.fail(muster.CauseUser)
		}
	case l == nil: // it lives elsewhere, or not at all
	case r.Status == muster.RequestPending && r.Force:
		if grant("forced") {
			s.end(ctx, r.To, l)
		}
	case r.Status == muster.RequestApproved && r.Force, r.Status == muster.RequestExpired:
		// A member may refuse a request, but not let its deadline pass.
		s.carried[r.ID] = true
		s.end(ctx, r.To, l)
	case r.Status == muster.RequestPending && r.Deadline > 0:
		return max(s.site.requests.Left(r, time.Now()), time.Millisecond)
	}
	return s.site.config.Limits.IdlePoll
}

// awaitQuiet waits, because a budget of the whole team is spent, until every member that lives here has come to its
// next call, is idle, or waits: what was paid for is used. The named member has come to its next call.
func (s *supervisor) awaitQuiet(ctx context.Context, name muster.Name, e *spend.Exceeded) {
	if !e.StopsTeam() {
		return
	}
	s.mu.Lock()
	s.stopped[name] = true
	s.mu.Unlock()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	changed := s.site.roster.Watch(ctx)
	for {
		members, err := s.site.roster.List(ctx)
		s.mu.Lock()
		isBusy := slices.ContainsFunc(members, func(m muster.Member) bool {
			return m.Host == s.id && m.Status == muster.Working && m.Doing == "" && !s.stopped[m.Name]
		})
		s.mu.Unlock()
		if err == nil && !isBusy {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-changed: // the last one that comes to its next call looks by itself
		case <-time.After(s.site.config.Limits.IdlePoll):
		}
	}
}
