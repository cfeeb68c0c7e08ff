package team

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"sync"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/proc"
	"muster/journal"
)

// Run takes a goal to landed commits and returns when the run is over. When ctx ends with muster.CauseUser the state is
// kept for Resume and that cause is returned.
func (t *Team) Run(ctx context.Context, goal string, s Start) (Summary, error) {
	if err := t.openServices(ctx); err != nil {
		return Summary{Code: 1}, err
	}
	_, open, stopped, err := t.checkStart(ctx)
	if err != nil {
		return Summary{Code: 1}, err
	}
	if stopped && !s.Add {
		return Summary{Code: 1}, errStopped(open)
	}
	if stopped {
		return t.resume(ctx, goal)
	}
	only, err := t.takeLead(ctx)
	if err != nil {
		return Summary{Code: 1}, err
	}
	defer func() { t.logDropped(ctx, "releasing the lease", only.Release()) }()
	// Again, now that no other can start: one may have started and stopped meanwhile.
	if _, open, stopped, err = t.checkStart(ctx); err == nil && stopped {
		err = errStopped(open)
	}
	if err != nil {
		return Summary{Code: 1}, err
	}
	note, err := t.repository.Prepare(ctx, t.target(), t.config.Land != "", s.Fresh)
	if err != nil {
		return Summary{Code: 1}, err
	}
	dirty := t.dirty(ctx) // looks while the records are written
	defer dirty()
	if err := t.forgetRevoked(ctx); err != nil {
		return Summary{Code: 1}, err
	}
	return t.live(ctx, func(ctx context.Context, host muster.HostID) error {
		notes, err := t.writeStart(ctx, goal, open, host, dirty)
		if err != nil {
			return err
		}
		t.emit(ctx, muster.Event{Kind: journal.RunStarted, Member: muster.Lead,
			Fields: map[string]any{"goal": goal, "target": t.branch}})
		if note != "" {
			notes = append([]string{note}, notes...)
		}
		for _, n := range notes {
			t.note(ctx, "", n)
		}
		return nil
	})
}

// Resume goes on where a stopped or killed team was, with every member's own conversation. Where the process was killed
// after the run had ended and before it could say so, Resume asks no model: it returns that run's summary.
func (t *Team) Resume(ctx context.Context) (Summary, error) {
	if err := t.openServices(ctx); err != nil {
		return Summary{Code: 1}, err
	}
	if _, _, err := t.findStoppedRun(ctx); err != nil {
		return Summary{Code: 1}, err
	}
	return t.resume(ctx, "")
}

// findStoppedRun returns the run that can go on. ended is true for one that has ended, with no task open, and whose end
// was never told. Errors: NotFound where there is nothing to go on with.
func (t *Team) findStoppedRun(ctx context.Context) (run muster.Run, ended bool, err error) {
	run, open, _, err := t.checkStart(ctx)
	switch {
	case err != nil:
	case run.StartedAt == 0:
		err = muster.Errorf(muster.NotFound, "there is no team here to go on with").
			WithHint(`start one: muster run "GOAL"`)
	case run.EndedAt != 0 && len(open) == 0:
		ended = true
		var told bool
		if told, err = t.isEndReported(ctx); err == nil && told {
			err = muster.Errorf(muster.NotFound, "the last run has ended and no task is open").
				WithHint(`start another: muster run "GOAL"`)
		}
	}
	return run, ended, err
}

// resume brings the stopped team back to life. The run's own check, target and cap stand.
func (t *Team) resume(ctx context.Context, more string) (Summary, error) {
	only, err := t.takeLead(ctx)
	if err != nil {
		return Summary{Code: 1}, err
	}
	defer func() { t.logDropped(ctx, "releasing the lease", only.Release()) }()
	run, ended, err := t.findStoppedRun(ctx) // asked again: it may have gone on, or been put aside, meanwhile
	if err != nil {
		return Summary{Code: 1}, err
	}
	if err := t.takeOverRun(ctx, run); err != nil {
		return Summary{Code: 1}, err
	}
	if ended {
		return t.reportEnd(ctx, run)
	}
	if err := t.validateTarget(ctx); err != nil {
		return Summary{Code: 1}, err
	}
	return t.live(ctx, func(ctx context.Context, host muster.HostID) error {
		if err := t.createLead(ctx, "", host); err != nil {
			return err
		}
		away := t.secondsAway(ctx, run)
		if _, err := t.runs().Change(ctx, func(r *muster.Run) {
			r.EndedAt, r.Away = 0, r.Away+away
			r.Cap, r.Model = t.config.Teammates, t.config.ModelName
			if r.Check != t.config.Check || r.Setup != t.config.Setup { // mended: what the old one said counts no more
				r.Check, r.Setup, r.BaseCheck = t.config.Check, t.config.Setup, ""
			}
		}); err != nil {
			return err
		}
		t.emit(ctx, muster.Event{Kind: journal.RunResumed, Member: muster.Lead,
			Fields: map[string]any{"goal": run.Goal, "target": t.branch}})
		if more == "" {
			return nil
		}
		_, err := t.deps.Post.Send(ctx, muster.Message{Type: muster.MailMessage, From: muster.User, To: muster.Lead,
			Content: more})
		return err
	})
}

// secondsAway is for how many seconds the run has stopped, by the journal's last event.
func (t *Team) secondsAway(ctx context.Context, run muster.Run) (away float64) {
	from, err := t.deps.Journal.Tail(ctx, 1)
	if err != nil {
		return 0
	}
	for e, err := range t.deps.Journal.Read(ctx, from) {
		if err == nil && e.At >= run.StartedAt {
			away = max(muster.UnixTime(time.Now())-e.At, 0)
		}
	}
	return away
}

// takeOverRun takes over what a stopped run was started with.
func (t *Team) takeOverRun(ctx context.Context, run muster.Run) error {
	t.branch = run.Target
	if run.Team != "" {
		t.config.Name = run.Team
	}
	if t.config.Check == "" {
		t.config.Check = run.Check
	}
	if t.config.Setup == "" {
		t.config.Setup = run.Setup
	}
	return t.openServices(ctx)
}

// live hosts the team in this process until the lead's run is over. The caller holds LeadLease.
func (t *Team) live(ctx context.Context, begin func(context.Context, muster.HostID) error) (sum Summary, err error) {
	ctx, leave := t.cancelIfRepoMoves(ctx)
	defer leave()
	host, err := t.deps.Roster.Join(ctx, "muster run")
	if err != nil {
		return Summary{Code: 1}, err
	}
	defer func() { t.logDropped(ctx, "releasing the lease", host.Release()) }()
	launched, drop := t.launching(context.WithoutCancel(ctx)) // while the records are written
	defer drop()
	if err := t.deps.Lanes.Recover(ctx); err != nil {
		return Summary{Code: 1}, err
	}
	if err := t.runEffects(ctx); err != nil {
		return Summary{Code: 1}, err
	}
	if err := t.deps.Requests.Settle(ctx); err != nil {
		return Summary{Code: 1}, err
	}
	if err := t.answerLateShutdowns(ctx); err != nil {
		return Summary{Code: 1}, err
	}
	if err := begin(ctx, host.ID()); err != nil {
		return Summary{Code: 1}, err
	}
	launcher, err := launched()
	if err != nil {
		return Summary{Code: 1}, err
	}
	if g, ok := launcher.(interface{ PID() int }); ok {
		if err := host.SetGuard(ctx, g.PID()); err != nil {
			return Summary{Code: 1}, err
		}
	}
	t.setLauncher(launcher)

	t.log.Info("run hosted", "team", t.config.Name, "host", host.ID())
	s := newSupervisor(t, host.ID())
	end, err := s.run(ctx)
	t.log.Info("run left", "team", t.config.Name, "host", host.ID(), "code", end.Code, "cause", causeText(err))
	return t.conclude(context.WithoutCancel(ctx), end, err)
}

// cancelIfRepoMoves ends ctx when the repository's directory is moved away or replaced: whatever is written there
// belongs to nothing.
func (t *Team) cancelIfRepoMoves(ctx context.Context) (context.Context, func()) {
	root := t.repository.Root()
	here, err := os.Stat(root)
	if err != nil {
		return ctx, func() {} // a repository without a directory
	}
	ctx, stop := context.WithCancelCause(ctx)
	var looking sync.WaitGroup
	looking.Go(func() {
		tick := time.NewTicker(sweep)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if now, err := os.Stat(root); errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(here, now) {
				stop(muster.Errorf(muster.Unavailable,
					"the repository is no longer at %s: it was moved or removed while the team worked", root).
					WithHint("move it back, then: muster resume"))
				return
			}
		}
	})
	return ctx, func() { stop(nil); looking.Wait() }
}

// forgetRevoked removes what git still says of claims that the board cannot have made: somebody has removed its tasks.
func (t *Team) forgetRevoked(ctx context.Context) error {
	tasks, err := t.deps.Board.List(ctx)
	if err != nil {
		return err
	}
	return t.repository.ForgetRevoked(ctx, tasks)
}

// launching begins to start what starts tools. launched waits for it; drop closes it, whether it was waited for or not.
func (t *Team) launching(ctx context.Context) (launched func() (proc.Launcher, error), drop func()) {
	launched = sync.OnceValues(func() (proc.Launcher, error) { return t.launch(ctx) })
	go func() { _, _ = launched() }() // whoever calls launched gets the error
	return launched, func() {
		if l, err := launched(); err == nil {
			t.logDropped(ctx, "closing the launcher", l.Close())
		}
	}
}

// answerLateShutdowns grants the shutdowns that were asked of a lead that was dead already: they do not concern its
// next life.
func (t *Team) answerLateShutdowns(ctx context.Context) error {
	pending, err := t.deps.Requests.Pending(ctx)
	for _, r := range pending {
		if r.Kind == muster.AskShutdown && r.To == muster.Lead && err == nil {
			_, _, err = t.deps.Requests.Decide(ctx, r.ID, muster.Lead, true, "it had stopped already")
		}
	}
	return err
}

// runEffects settles what steps have left to follow. What cannot be done now is said and left for the next time: news
// that is late, or a lane that is not archived, is no reason to stop a team.
func (t *Team) runEffects(ctx context.Context) error {
	err := t.deps.Board.Settle(ctx)
	if err == nil || !board.OnlyUnsettled(err) {
		return err
	}
	t.logDropped(ctx, "settling what steps have left", err)
	t.note(ctx, "", "left for later: "+err.Error())
	return nil
}

// note tells the user something about the run, or about a member; "" is none.
func (t *Team) note(ctx context.Context, member muster.Name, text string) {
	t.emit(ctx, muster.Event{Kind: journal.RunNote, Member: member, Fields: map[string]any{"text": text}})
}

// emit writes an event to the journal. A journal that cannot be written stops nobody, because nothing depends on it:
// the event then goes to those who listen in this process.
func (t *Team) emit(ctx context.Context, e muster.Event) {
	e.At = muster.UnixTime(time.Now())
	err := t.deps.Journal.Emit(context.WithoutCancel(ctx), e)
	if err == nil {
		return
	}
	t.subscribers.publish(StateEvent{journal.Entry{Event: e}})
	if t.config.Emit != nil {
		t.config.Emit(e.Member, e)
	}
}
