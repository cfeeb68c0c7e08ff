package team

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"time"

	"muster"
	"muster/internal/board"
	"muster/internal/proc"
	"muster/internal/teammate"
	"muster/journal"
	"muster/llm"
)

// Summary is how a run ended.
type Summary struct {
	Run muster.Run
	// Code: 0 all done, 1 an error, 3 stopped with work left.
	Code int
	// Text is the lead's last words, or why the run stopped; where Off is not empty its first line says that, and what to do.
	Text string
	// Verified is false when no check is set.
	Verified bool
	// Red says that the target's check was red at the end.
	Red bool
	// Tasks of the board, by id.
	Tasks []muster.Task
	// Unread says, by id, why the record of a task of this run cannot be read: whether it is open is not known.
	Unread map[muster.TaskID]string
	// Off are the tasks that landed in this run and are no longer on its target: somebody has moved or removed it.
	Off []muster.TaskID
}

// Run takes a goal to landed commits and returns when the run is over. When ctx ends with muster.CauseUser the state is
// kept for Resume and that cause is returned.
func (t *Team) Run(ctx context.Context, goal string, s Start) (Summary, error) {
	_, open, stopped, err := t.check(ctx)
	if err != nil {
		return Summary{Code: 1}, err
	}
	if stopped && !s.Add {
		return Summary{Code: 1}, RefuseStopped(open)
	}
	if stopped {
		return t.resume(ctx, goal)
	}
	only, err := t.takeLead(ctx)
	if err != nil {
		return Summary{Code: 1}, err
	}
	defer only.Release()
	// Again, now that no other can start: one may have started and stopped meanwhile.
	if _, open, stopped, err = t.check(ctx); err == nil && stopped {
		err = RefuseStopped(open)
	}
	if err != nil {
		return Summary{Code: 1}, err
	}
	note, err := t.ground.Prepare(ctx, t.target(), t.config.Land != "", s.Fresh)
	if err != nil {
		return Summary{Code: 1}, err
	}
	dirty := t.dirty(ctx) // looks while the records are written
	defer dirty()
	if err := t.forget(ctx); err != nil {
		return Summary{Code: 1}, err
	}
	return t.live(ctx, func(ctx context.Context, host muster.HostID) error {
		notes, err := t.begin(ctx, goal, open, host, dirty)
		if err != nil {
			return err
		}
		t.emit(ctx, muster.Event{Kind: journal.RunStarted, Member: muster.Lead, Fields: map[string]any{"goal": goal, "target": t.branch}})
		if note != "" {
			notes = append([]string{note}, notes...)
		}
		for _, n := range notes {
			t.emit(ctx, muster.Event{Kind: journal.RunNote, Fields: map[string]any{"text": n}})
		}
		return nil
	})
}

// Resume goes on where a stopped or killed team was, with every member's own conversation. Where the process was killed
// after the run had ended and before it could say so, Resume asks no model: it returns that run's summary.
func (t *Team) Resume(ctx context.Context) (Summary, error) {
	if _, _, err := t.stoppedRun(ctx); err != nil {
		return Summary{Code: 1}, err
	}
	return t.resume(ctx, "")
}

// stoppedRun returns the run that can go on. ended is true for one that has ended, with no task open, and whose end was
// never told. Errors: NotFound where there is nothing to go on with.
func (t *Team) stoppedRun(ctx context.Context) (run muster.Run, ended bool, err error) {
	run, open, _, err := t.check(ctx)
	switch {
	case err != nil:
	case run.StartedAt == 0:
		err = muster.Errorf(muster.NotFound, "there is no team here to go on with").WithHint(`start one: muster run "GOAL"`)
	case run.EndedAt != 0 && len(open) == 0:
		ended = true
		var told bool
		if told, err = t.endWasTold(ctx); err == nil && told {
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
	defer only.Release()
	run, ended, err := t.stoppedRun(ctx) // asked again: it may have gone on, or been put aside, meanwhile
	if err != nil {
		return Summary{Code: 1}, err
	}
	if err := t.adopt(ctx, run); err != nil {
		return Summary{Code: 1}, err
	}
	if ended {
		return t.tellEnd(ctx, run)
	}
	if err := t.landable(ctx); err != nil {
		return Summary{Code: 1}, err
	}
	return t.live(ctx, func(ctx context.Context, host muster.HostID) error {
		if err := t.hireLead(ctx, "", host); err != nil {
			return err
		}
		away := t.stopped(ctx, run)
		if _, err := t.runs.change(ctx, func(r *muster.Run) {
			r.EndedAt, r.Away = 0, r.Away+away
			r.Cap, r.Model = t.config.Teammates, t.config.ModelName
			if r.Check != t.config.Check || r.Setup != t.config.Setup { // mended: what the old one said counts no more
				r.Check, r.Setup, r.BaseCheck = t.config.Check, t.config.Setup, ""
			}
		}); err != nil {
			return err
		}
		t.emit(ctx, muster.Event{Kind: journal.RunResumed, Member: muster.Lead, Fields: map[string]any{"goal": run.Goal, "target": t.branch}})
		if more == "" {
			return nil
		}
		_, err := t.rooms.Post.Send(ctx, muster.Message{Type: muster.MailMessage, From: muster.User, To: muster.Lead, Content: more})
		return err
	})
}

// stopped is for how many seconds the run has stopped, by the journal's last event.
func (t *Team) stopped(ctx context.Context, run muster.Run) (away float64) {
	from, err := t.rooms.Journal.Tail(ctx, 1)
	if err != nil {
		return 0
	}
	for e, err := range t.rooms.Journal.Read(ctx, from) {
		if err == nil && e.At >= run.StartedAt {
			away = max(muster.Stamp(time.Now())-e.At, 0)
		}
	}
	return away
}

// adopt takes over what a stopped run was started with.
func (t *Team) adopt(ctx context.Context, run muster.Run) error {
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
	return t.furnish(ctx)
}

// live hosts the team in this process until the lead's run is over. The caller holds LeadLease.
func (t *Team) live(ctx context.Context, begin func(context.Context, muster.HostID) error) (sum Summary, err error) {
	ctx, leave := t.stay(ctx)
	defer leave()
	host, err := t.rooms.Roster.Join(ctx, "muster run")
	if err != nil {
		return Summary{Code: 1}, err
	}
	defer host.Release()
	launched, drop := t.launching(context.WithoutCancel(ctx)) // while the records are written
	defer drop()
	if err := t.rooms.Lanes.Recover(ctx); err != nil {
		return Summary{Code: 1}, err
	}
	if err := t.settle(ctx); err != nil {
		return Summary{Code: 1}, err
	}
	if err := t.rooms.Requests.Settle(ctx); err != nil {
		return Summary{Code: 1}, err
	}
	if err := t.answerLate(ctx); err != nil {
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
	launcher = loggedLauncher{launcher, t.log}
	t.rooms.Launcher, t.rooms.Lander = launcher, t.lander(launcher)

	t.log.Info("run hosted", "team", t.config.Name, "host", host.ID())
	s := newSupervisor(t, host.ID())
	end, err := s.run(ctx)
	t.log.Info("run left", "team", t.config.Name, "host", host.ID(), "code", end.Code, "cause", causeText(err))
	return t.conclude(context.WithoutCancel(ctx), end, err)
}

// stay ends ctx when the repository's directory is moved away or replaced: whatever is written there belongs to nothing.
func (t *Team) stay(ctx context.Context) (context.Context, func()) {
	root := t.ground.Root()
	here, err := os.Stat(root)
	if err != nil {
		return ctx, func() {} // ground without a directory
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
				stop(muster.Errorf(muster.Unavailable, "the repository is no longer at %s: it was moved or removed while the team worked", root).
					WithHint("move it back, then: muster resume"))
				return
			}
		}
	})
	return ctx, func() { stop(nil); looking.Wait() }
}

// forget removes what git still says of claims that the board cannot have made: somebody has removed its tasks.
func (t *Team) forget(ctx context.Context) error {
	tasks, err := t.rooms.Board.List(ctx)
	if err != nil {
		return err
	}
	return t.ground.Forget(ctx, tasks)
}

// launching begins to start what starts tools. launched waits for it; drop closes it, whether it was waited for or not.
func (t *Team) launching(ctx context.Context) (launched func() (proc.Launcher, error), drop func()) {
	launched = sync.OnceValues(func() (proc.Launcher, error) { return t.launch(ctx) })
	go launched()
	return launched, func() {
		if l, err := launched(); err == nil {
			t.logDropped(ctx, "closing the launcher", l.Close())
		}
	}
}

// answerLate grants the shutdowns that were asked of a lead that was dead already: they do not concern its next life.
func (t *Team) answerLate(ctx context.Context) error {
	pending, err := t.rooms.Requests.Pending(ctx)
	for _, r := range pending {
		if r.Kind == muster.AskShutdown && r.To == muster.Lead && err == nil {
			_, _, err = t.rooms.Requests.Decide(ctx, r.ID, muster.Lead, true, "it had stopped already")
		}
	}
	return err
}

// conclude writes the end of the run and gathers its summary. A run that was interrupted or met a limit has not ended.
func (t *Team) conclude(ctx context.Context, end teammate.End, err error) (Summary, error) {
	var stop *teammate.TeamStop
	stopped := errors.As(err, &stop)
	if stopped && llm.KindOf(err) == llm.Denied {
		err, stopped = muster.Errorf(muster.Invalid, "the model cannot be used: %w", stop.Err).WithHint("mend the key or the model's name, then: muster resume"), false
		end.Code = 1
	}
	switch {
	case stopped:
		end = teammate.End{Code: 3, Text: stop.Error()}
	case err != nil:
		run, unread := t.runs.get(ctx)
		t.logDropped(ctx, "reading the run's record after it was stopped", unread)
		t.emit(ctx, muster.Event{Kind: journal.RunNote, Fields: map[string]any{"text": interruption(err)}})
		tasks, unread := t.rooms.Board.List(ctx)
		t.logDropped(ctx, "reading the board after the run was stopped", unread)
		return Summary{Run: run, Code: max(end.Code, 1), Text: err.Error(), Tasks: tasks}, err
	}
	// What a member's end cut short (news, an archived lane) is done now, not at the next start.
	if err := t.settle(ctx); err != nil {
		return Summary{Code: 1}, err
	}
	if !stopped {
		if err := t.dismiss(ctx); err != nil {
			return Summary{Code: 1}, err
		}
	}
	run, err := t.runs.change(ctx, func(r *muster.Run) {
		if !stopped { // by a limit: it has not ended, and can be resumed
			r.EndedAt = muster.Stamp(time.Now())
		}
	})
	if err != nil {
		return Summary{Code: 1}, err
	}
	return t.summarize(ctx, run, end)
}

// summarize gathers the summary of a run whose record is written, and tells its end. It reads the tasks after the end
// was written: what is made later belongs to the next run.
func (t *Team) summarize(ctx context.Context, run muster.Run, end teammate.End) (Summary, error) {
	tasks, err := t.rooms.Board.List(ctx)
	if err != nil {
		return Summary{Code: 1}, err
	}
	if open, late := run.Left(tasks); late && end.Code == 0 {
		end = teammate.End{Code: 3, Text: strings.TrimSpace(fmt.Sprintf("%s\n%s came while the run ended: muster resume goes on.", end.Text, openTasks(len(open))))}
	}
	sum := Summary{Run: run, Code: end.Code, Text: end.Text, Tasks: tasks, Verified: run.Check != "", Red: run.BaseCheck == baseRed}
	for _, u := range t.rooms.Board.Corrupt() {
		if !run.HasID(u.ID) {
			continue
		}
		if sum.Unread == nil {
			sum.Unread = map[muster.TaskID]string{}
		}
		sum.Unread[u.ID] = u.Why
		sum.Code = max(sum.Code, 3)
	}
	o, err := t.rooms.Progress(ctx)
	t.logDropped(ctx, "looking whether the run had tasks", err)
	if err == nil && sum.Red && sum.Code == 0 && o.HadTasks {
		sum.Code = 3 // where no task was made, the answer was the goal
	}
	t.account(ctx, &sum)
	t.emit(ctx, muster.Event{Kind: journal.RunEnded, Member: muster.Lead, Fields: map[string]any{"text": sum.Text, "code": sum.Code}})
	return sum, nil
}

// settle settles what steps have left to follow. What cannot be done now is said and left for the next time: news that
// is late, or a lane that is not archived, is no reason to stop a team.
func (t *Team) settle(ctx context.Context) error {
	err := t.rooms.Board.Settle(ctx)
	if err == nil || !board.OnlyUnsettled(err) {
		return err
	}
	t.logDropped(ctx, "settling what steps have left", err)
	t.emit(ctx, muster.Event{Kind: journal.RunNote, Fields: map[string]any{"text": "left for later: " + err.Error()}})
	return nil
}

// interruption says why a run stopped without having ended.
func interruption(err error) string {
	if errors.Is(err, muster.CauseUser) {
		return "interrupted; the state is kept"
	}
	return "stopped: " + err.Error()
}

func (t *Team) emit(ctx context.Context, e muster.Event) {
	e.At = muster.Stamp(time.Now())
	err := t.rooms.Journal.Emit(context.WithoutCancel(ctx), e)
	if err != nil && t.config.Emit != nil { // the journal drives nothing
		t.config.Emit(e.Member, e)
	}
}
