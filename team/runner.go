package team

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"strings"
	"sync"
	"syscall"
	"time"

	"muster"
	"muster/internal/durable"
	"muster/internal/git"
	"muster/internal/mailbox"
	"muster/internal/requests"
	"muster/internal/teammate"
	"muster/journal"
	"muster/llm"
	"muster/loop"
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
	roster := s.Roster
	if m.Host != s.id {
		if alive, err := roster.Alive(ctx, m.Host); err != nil || alive {
			logDropped(ctx, s.Log, "looking whether a member's host lives", err)
			return
		}
		logDropped(ctx, s.Log, "counting the calls of a dead process", s.spending.meter.CutOff(ctx, roster.Alive))
		// Nothing of the dead process may write where the member now works.
		_, err := roster.EndTools(ctx)
		logDropped(ctx, s.Log, "ending the tools of dead processes", err)
	}
	// What was decided before this life is not about it; whose clock said when does not matter.
	list, err := s.Requests.List(ctx)
	if err != nil {
		logDropped(ctx, s.Log, "listing requests", err)
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
			logDropped(ctx, s.Log, "taking a member over", err)
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

// remove says that nothing of the member runs here any more.
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
	wake(s.team.wake)
}

// finalizeMember ends a member that lived here, and tries again for a while. words are for the lead.
func (s *supervisor) finalizeMember(ctx context.Context, name muster.Name, why, words string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finalizeTimeout)
	defer cancel()
	news := muster.Message{ID: mailbox.NewID(), Type: muster.MailError, From: muster.System, To: muster.Lead,
		Content: words}
	for pause := finalizeTimeout / 64; ; pause *= 2 { // what cannot be written in the end, a sweep or the next run does
		err := s.runHost.finalizeMember(ctx, name, s.id, why, news)
		if err == nil || !isTransient(err) || !wait(ctx, pause) {
			logDropped(ctx, s.Log, "ending a member", err)
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

// get returns a member that lives here, or nil.
func (s *supervisor) get(name muster.Name) *runningMember {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running[name]
}

func (s *supervisor) member(record muster.Member) (*teammate.Member, error) {
	c, l, stored := s.config, s.config.Limits, record
	role := c.role(record.Role)
	noteRole(s.runHost, record.Name, role)
	record.Model = c.modelOf(record)
	noImages := c.NoImages != nil && c.NoImages(c.nameOf(record.Model))
	window, reply := 0, 0
	if c.Window != nil {
		window, reply = c.Window(c.nameOf(record.Model))
	}
	return teammate.New(teammate.Config{
		Services: s.Services, Record: stored, Extra: foreignTools(c.Tools),
		ServerTools: serverTools(s.mcp, noImages),
		OwnModel:    record.Model != "" && record.Model != c.ModelName,
		Limits: teammate.Limits{Turns: l.Turns, IdleTimeout: max(l.IdleTimeout, 0),
			MaxTokens:   cmp.Or(role.MaxTokens, l.MaxTokens),
			BashTimeout: l.BashTimeout, BackgroundTimeout: l.BackgroundTimeout, SubagentTurns: l.SubagentTurns,
			TodoLimit: l.TodoLimit, TodoReminder: l.TodoReminder, KeptResults: l.KeptResults},
		ModelName: cmp.Or(record.Model, s.config.ModelName),
		NoImages:  noImages, Window: window, ReplyTokens: reply,
		Model: func(now func() (muster.TaskID, int), onWait func(time.Time, error)) (llm.Model, error) {
			return s.model(record, role, now, onWait)
		},
		Subagent: func(kind string, now func() (muster.TaskID, int), onWait func(time.Time, error)) (
			teammate.Subagent, error,
		) {
			return s.subagent(record, kind, now, onWait)
		},
		Emit: func(e loop.Event) {
			if p, ok := e.(loop.ToolProgress); ok { // all else has passed the model or the tool
				p.Text = s.Secrets.String(p.Text)
				e = p
			}
			s.publish(record.Name, TurnEvent{Member: record.Name, Event: e})
		},
	})
}

// tellTrouble returns what tells the journal of a trouble with a model's server that a member is the first to meet.
func (s *supervisor) tellTrouble(name muster.Name) func(until time.Time, why error) {
	return func(until time.Time, why error) {
		s.emit(context.Background(), journal.ModelRetry, name,
			map[string]any{"text": why.Error(), "until": muster.UnixTime(until)})
	}
}

// A member restarts up to maxRestarts times after transient failures, with a pause of one, two and four seconds
// before it. healthyTime without a failure resets a member's count. While the disk is full there is no limit, and
// the longest pause is maxPause: each try may cost a request.
const (
	maxRestarts = 3
	healthyTime = 5 * time.Minute
	maxPause    = time.Minute
)

// isTransient reports whether a retry is worthwhile, because something outside failed: a file could not be written, or
// git was killed.
func isTransient(err error) bool {
	if errors.Is(err, durable.ErrEnded) { // this process can write nothing any more
		return false
	}
	_, isGit := errors.AsType[*git.ExitError](err)
	return isGit || errors.Is(err, muster.ErrUnavailable)
}

// isDiskFull reports whether the disk is full, which only the user can change.
func isDiskFull(err error) bool {
	// Git writes files of its own, and tells of a full disk in words only.
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return true
	}
	e, isGit := errors.AsType[*git.ExitError](err)
	return isGit && strings.Contains(strings.ToLower(e.Stderr), syscall.ENOSPC.Error())
}

// runWithRestarts calls run until it succeeds, fails for a lasting cause, or has failed too often. what is the subject
// of the notes that tell the user each failure, but a full disk only once. member is who runs; "" is nobody. A member
// that is shut down during a pause ends with its own error, so that its claims are released.
func (p *runHost) runWithRestarts(ctx context.Context, what string, member muster.Name, run func() error) error {
	tries, pause, isFullReported := 0, time.Second, false
	for {
		began := time.Now()
		err := run()
		// What failed after so long is a new failure, and not the same one again.
		if member != "" && time.Since(began) >= healthyTime {
			tries, pause, isFullReported = 0, time.Second, false
		}
		if err == nil || ctx.Err() != nil || !isTransient(err) {
			return err
		}
		isFull, when := isDiskFull(err), "when there is room"
		if !isFull {
			when = "after an error"
			if tries++; tries > maxRestarts {
				return err
			}
		}
		p.Log.Warn("restart", "what", what, "cause", causeText(err), "wait", pause)
		if !isFull || !isFullReported {
			p.note(ctx, member, what+" goes on "+when+": "+mailbox.Short(muster.PlainText(err)))
		}
		isFullReported = isFullReported || isFull
		if !wait(ctx, pause) {
			// Whoever is shut down while it waits has claims that nobody else gives back: its caller tells that by
			// the error.
			if errors.Is(context.Cause(ctx), muster.CauseShutdown) {
				return err
			}
			return context.Cause(ctx)
		}
		pause = min(2*pause, maxPause)
	}
}

// live runs the member of a record until its life is over, and returns it as it was last. After a transient failure it
// goes on with its conversation and its task, as after a crash. A teammate whose conversation is not where this process
// has written it begins a new one. The error is Fenced when the member is another process's then.
func (s *supervisor) live(ctx context.Context, record muster.Member) (m *teammate.Member, end teammate.End, err error) {
	name := record.Name
	s.Log.Info("member started", "member", name, "host", s.id)
	defer func() { s.Log.Info("member stopped", "member", name, "cause", causeText(err)) }()
	err = s.runWithRestarts(ctx, string(name), name, func() error {
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

// hosts reports whether a member is this process's by its record.
func (s *supervisor) hosts(ctx context.Context, name muster.Name) bool {
	m, err := s.Roster.Get(ctx, name)
	return err == nil && m.Host == s.id && m.Status != muster.Shutdown
}

// restore makes a living member of its record, which is read again if the member failed: it may have changed since.
func (s *supervisor) restore(
	ctx context.Context, name muster.Name, record *muster.Member, failed bool,
) (m *teammate.Member, err error) {
	if failed {
		*record, err = s.Roster.TakeOver(ctx, name, s.id, s.id)
		if errors.Is(err, muster.ErrStale) || err == nil && record.Status == muster.Shutdown {
			err = muster.Errorf(muster.Fenced, "%s runs in another process now", name)
		}
		if err != nil {
			return nil, err
		}
	}
	return s.member(*record) //nolint:contextcheck // The trouble of a server is told while no member lives, too.
}
