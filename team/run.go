package team

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"muster"
	"muster/internal/git"
	"muster/internal/landing"
	"muster/internal/mailbox"
	"muster/internal/playbook"
	"muster/internal/requests"
	"muster/internal/workspace"
	"muster/journal"
)

// Run takes a goal to landed commits and returns when the run is over. When ctx ends with muster.CauseUser the state is
// kept for Resume and that cause is returned.
func (t *Team) Run(ctx context.Context, goal string, s Start) (Summary, error) {
	goal = t.site.secrets.String(goal)
	// Opening writes nothing, so whatever it refuses leaves no trace.
	p, err := t.open(ctx, muster.Run{})
	if err != nil {
		return Summary{Code: 1}, err
	}
	// A start that will be refused takes no lease, with which it would stand in the way of a resume.
	if _, err := t.checkStart(ctx, s.Add); err != nil {
		return Summary{Code: 1}, err
	}
	// A branch that the user named wrongly is refused before anything is made, the lease too.
	if err := checkTarget(ctx, p); err != nil {
		return Summary{Code: 1}, err
	}
	book, err := s.book(ctx, p.site, p.repository)
	if err != nil {
		return Summary{Code: 1}, err
	}
	if book != nil {
		goal = playbookGoal(book, goal)
	}
	return t.asLead(ctx, func() (sum Summary, err error) {
		// Asked again while the lease is held: no other process can start a run, or put the team aside, from here on.
		state, err := t.checkStart(ctx, s.Add)
		if err != nil {
			return sum, err
		}
		if state.IsStopped {
			return t.resume(ctx, goal)
		}
		return p.begin(ctx, goal, book, state.Open, s.Fresh)
	})
}

// Resume goes on where a stopped or killed team was, with every member's own conversation. Where the process was killed
// after the run had ended and before it could say so, Resume asks no model: it returns that run's summary.
func (t *Team) Resume(ctx context.Context) (Summary, error) {
	// Where there is nothing to go on with, nothing is written, not even a lease.
	if _, _, err := t.findStoppedRun(ctx); err != nil {
		return Summary{Code: 1}, err
	}
	return t.asLead(ctx, func() (Summary, error) { return t.resume(ctx, "") })
}

// asLead calls f while this process is the only one that may bring the team to life. A failed run has the code 1 or
// more.
func (t *Team) asLead(ctx context.Context, f func() (Summary, error)) (sum Summary, err error) {
	release, err := t.takeLead(ctx)
	if err == nil {
		defer release()
		sum, err = f()
	}
	if err != nil {
		sum.Code = max(sum.Code, 1)
	}
	return sum, err
}

// begin begins a run. book is its playbook, or nil. open are the tasks that are on the board already.
func (p *runHost) begin(
	ctx context.Context, goal string, book *playbook.Book, open []muster.Task, fresh bool,
) (sum Summary, err error) {
	// What cannot be used is refused before a record is written.
	if err := findSandbox(ctx, p); err != nil {
		return sum, err
	}
	note, err := p.repository.Prepare(ctx, p.target(), p.config.Land != "", fresh)
	if err != nil {
		return sum, err
	}
	// A store in memory has made no file so far. The members will make some.
	if err := p.workspace.Mark(ctx); err != nil {
		return sum, err
	}
	prepared := onBegin(ctx, p)
	defer prepared()
	// Git looks while the records are written, and does not outlive the run.
	checkout := inBackground(func() (git.CheckoutState, error) { return p.repository.Checkout(ctx) })
	defer func() { _, _ = checkout() }()
	tasks, err := p.Board.List(ctx)
	if err == nil {
		// What git still says of claims that this board cannot have made: somebody has removed its tasks.
		err = p.repository.ForgetRevoked(ctx, tasks)
	}
	if err != nil {
		return sum, err
	}
	return p.lead(ctx, func(ctx context.Context, host muster.HostID) error {
		prepared()
		// The records come before the event: who reads the event finds them.
		notes, err := p.writeStart(ctx, goal, book, open, host)
		if err != nil {
			return err
		}
		// It is only a note: where git cannot tell, there is none.
		if s, err := checkout(); err == nil && s.Changed > 0 {
			notes = append(notes, "your uncommitted changes are part of no lane: lanes start from commits")
		}
		if text := p.spending.earlier(ctx); text != "" {
			notes = append(notes, text)
		}
		run, err := p.Run(ctx)
		if err != nil {
			return err
		}
		p.emit(ctx, journal.RunStarted, muster.Lead, map[string]any{"goal": run.Goal, "target": p.branch})
		if note != "" {
			p.note(ctx, "", note)
		}
		if text := forwardNote(p); text != "" {
			p.note(ctx, "", text)
		}
		for _, n := range notes {
			p.note(ctx, "", n)
		}
		p.emit(ctx, journal.RunNote, "", map[string]any{"text": p.config.Sandbox.rightsBy(p.sandbox), "rights": true})
		return putPlaybook(ctx, p)
	})
}

// onBegin calls Config.OnBegin beside the caller, and returns what waits for its end. The records of the run are
// written after that.
func onBegin(ctx context.Context, p *runHost) (wait func()) {
	if p.config.OnBegin == nil {
		return func() {}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		p.config.OnBegin(ctx)
	}()
	return func() { <-done }
}

// resume brings the stopped team back to life. The run's own name, target and cap stand. more is what the user wants
// besides.
func (t *Team) resume(ctx context.Context, more string) (sum Summary, err error) {
	// With the lease the answer is final: the run may have gone on, or been put aside, before.
	run, ended, err := t.findStoppedRun(ctx)
	if err != nil {
		return sum, err
	}
	p, err := t.open(ctx, run)
	if err != nil {
		return sum, err
	}
	if ended {
		return p.reportEnd(ctx, run)
	}
	if err := p.validateTarget(ctx); err != nil {
		return sum, err
	}
	prepared := onBegin(ctx, p)
	defer prepared()
	return p.lead(ctx, func(ctx context.Context, host muster.HostID) error {
		prepared()
		// First the lead, whose host shows that the team is alive again; then the run, which is not ended any more. A
		// crash in between leaves a run that can be resumed again.
		if err := p.createLead(ctx, "", host); err != nil {
			return err
		}
		// The time without any process does not count as time of the run.
		away := secondsAway(ctx, p.Journal, run)
		if _, err := p.workspace.Runs().Change(ctx, func(r *muster.Run) {
			r.EndedAt, r.Away = 0, r.Away+away
			r.Cap, r.Model, r.Budget = p.config.Teammates, p.config.ModelName, p.config.Budgets.Team
			r.Review = p.config.Review
			c := p.config
			if r.Check != c.Check || r.Setup != c.Setup || !reflect.DeepEqual(r.Checks, c.Checks) {
				// Mended: what the old one said counts no more.
				r.Check, r.Checks, r.Setup, r.BaseCheck = c.Check, c.Checks, c.Setup, ""
			}
		}); err != nil {
			return err
		}
		if err := putPlaybook(ctx, p); err != nil {
			return err
		}
		p.emit(ctx, journal.RunResumed, muster.Lead, map[string]any{"goal": run.Goal, "target": p.branch})
		p.note(ctx, "", keptSettings(p.branch, p.config))
		if more == "" {
			return nil
		}
		_, err := p.Post.Send(ctx, muster.Message{Type: muster.MailMessage, From: muster.User, To: muster.Lead,
			Content: more})
		return err
	})
}

// keptSettings says with what a stopped run goes on: it is the record's word, and the user should see it.
func keptSettings(target string, c Config) string {
	text := "it goes on with the target " + target
	for _, x := range [][2]string{{"model", c.ModelName}, {"check", c.Check}, {"set-up", c.Setup},
		{"reviewer", c.Review}} {
		if x[1] != "" {
			text += fmt.Sprintf(", the %s %s", x[0], x[1])
		}
	}
	return text
}

// secondsAway is for how many seconds the run has stopped, by the journal's last event.
func secondsAway(ctx context.Context, j *journal.Journal, run muster.Run) (away float64) {
	from, err := j.Tail(ctx, 1)
	if err != nil {
		return 0
	}
	for e, err := range j.Read(ctx, from) {
		if err == nil && e.At >= run.StartedAt {
			away = max(muster.UnixTime(time.Now())-e.At, 0)
		}
	}
	return away
}

// lead hosts the team in this process until the lead's life is over. It finishes what a crash left half done, then
// calls write, which writes the records of the run and of the lead. The caller holds LeadLease.
func (p *runHost) lead(ctx context.Context, write func(context.Context, muster.HostID) error) (sum Summary, err error) {
	// Lanes first, because an effect may archive one. All of this may run any number of times: a crash in the middle
	// leaves the rest to the next start.
	prepare := func(ctx context.Context, host muster.HostID) error {
		for _, finish := range []func(context.Context) error{p.Lanes.Recover, p.runEffects, p.Requests.Settle} {
			if err := finish(ctx); err != nil {
				return err
			}
		}
		if err := answerLateShutdowns(ctx, p.Requests); err != nil {
			return err
		}
		return write(ctx, host)
	}
	err = p.host(ctx, "muster run", prepare, func(ctx context.Context, s *supervisor) error {
		p.Log.Info("run hosted", "team", p.config.Name, "host", s.id)
		endNotices := notifyUser(ctx, p)
		end, err := s.lead(ctx)
		p.Log.Info("run left", "team", p.config.Name, "host", s.id, "code", end.Code, "cause", causeText(err))
		if watch, ok := p.Phases.(*phaseWatch); ok {
			watch.close(context.WithoutCancel(ctx))
			end = watch.verdict(end)
		}
		sum, err = p.conclude(context.WithoutCancel(ctx), end, err)
		endNotices()
		return err
	})
	return sum, err
}

// answerLateShutdowns grants the shutdowns that were asked of a lead that was dead already: they do not concern its
// next life.
func answerLateShutdowns(ctx context.Context, all *requests.Requests) error {
	pending, err := all.Pending(ctx)
	for _, r := range pending {
		if r.Kind == muster.AskShutdown && r.To == muster.Lead && err == nil {
			_, _, err = all.Decide(ctx, r.ID, muster.Lead, true, "it had stopped already")
		}
	}
	return err
}

// isEndReported reports whether the journal has the end of the last run. The run's record says that it has ended before
// the journal does, so a process that is killed in between leaves a run that has ended and of which nobody was told.
func isEndReported(ctx context.Context, j *journal.Journal) (told bool, err error) {
	for e, err := range j.Read(ctx, 0) {
		switch {
		case errors.Is(err, muster.ErrCorrupt):
		case err != nil:
			return false, err
		case e.Kind == journal.RunStarted, e.Kind == journal.RunResumed:
			told = false
		case e.Kind == journal.RunEnded:
			told = true
		}
	}
	return told, nil
}

// reportEnd returns the summary of a run that has ended, and tells its end, as the process that ran it would have done.
// No member lives and no model is asked.
func (p *runHost) reportEnd(ctx context.Context, run muster.Run) (Summary, error) {
	if err := p.runEffects(ctx); err != nil {
		return Summary{}, err
	}
	end, err := p.LeadEnd(ctx)
	if err != nil {
		return Summary{}, err
	}
	return p.summarize(ctx, run, end)
}

// checkBase runs the check on the base beside the lead's first turn. What it finds is said to user and lead; a check
// that cannot run at all stops the run.
func (p *runHost) checkBase(ctx context.Context) error {
	// A record that cannot be read must not mean that the base was never checked, or the check would run again. So the
	// error stops the run.
	run, err := p.Run(ctx)
	if err != nil || run.Check == "" || run.BaseCheck != "" {
		return err
	}
	p.emit(ctx, journal.CheckStarted, "", map[string]any{"command": run.Check})
	var v landing.CheckResult
	if err := p.runWithRestarts(ctx, "the check on the base", "", func() (err error) {
		v, err = p.Lander.CheckBase(ctx)
		return err
	}); err != nil {
		return err
	}
	result := workspace.BaseGreen
	switch {
	case v.CannotRun:
		return muster.Errorf(muster.Invalid, "the check cannot run: %s\n%s", run.Check, v.Output).
			WithHint("%s", "mend it, or name another: muster run --check CMD"+missingSetup(ctx, p, run)+confinedHint(p))
	case !v.Green:
		result = workspace.BaseRed
	}
	p.emit(ctx, journal.CheckBase, "",
		map[string]any{"result": result, "seconds": v.Seconds, "command": run.Check, "failed": v.Failed})
	// What CheckBase has found is in the run's record by now. The mail is for the lead, which may plan for it.
	if v.Green {
		return nil
	}
	hint := missingSetup(ctx, p, run) + confinedHint(p)
	if hint != "" {
		p.emit(ctx, journal.RunNote, "", map[string]any{"text": "the check fails on the base" + hint})
	}
	_, err = p.Post.Send(ctx, muster.Message{Type: muster.MailMessage, From: muster.System, To: muster.Lead,
		Content: fmt.Sprintf("The check fails on the base already, before any work%s: %s\n"+
			"Until a landing turns it green, landings whose check is red are accepted and marked \"still red\"; "+
			"after that a red check is refused. %s", hint, run.Check, mailbox.Short(v.Output))})
	return err
}
