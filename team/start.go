package team

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"muster"
	"muster/internal/delivery"
	"muster/internal/playbook"
	"muster/internal/text"
	"muster/internal/view"
	"muster/internal/workspace"
)

// Start says how a run begins beside what is there already.
type Start struct {
	// Add goes on with a stopped team, and gives the goal to its lead as mail.
	Add bool
	// Fresh archives a diverged target branch and starts it again at HEAD.
	Fresh bool
	// Changes says what becomes of the user's uncommitted changes.
	Changes Changes
	// Playbook has the tasks of the run; nil: the lead makes them. The lead is asked only when something needs it, and
	// the goal may be empty.
	Playbook *Playbook
}

// Uncommitted is what the user has not committed where a run is to begin.
type Uncommitted struct {
	Files  []string
	Branch string // that is checked out; "": none
	Target string // on which the snapshot would be a commit
	Why    string // why a run cannot begin at a snapshot now; "": it can
}

// Uncommitted returns what a run that begins now could have a snapshot of. There are no Files where that is not to be
// asked: the user has decided, has named a branch to land on, or the team's own has work already.
func (t *Team) Uncommitted(ctx context.Context, s Start) (u Uncommitted, err error) {
	if s.Changes != ChangesUndecided || t.site.config.Land != "" {
		return u, nil
	}
	repo, err := t.services().Repo(ctx)
	if err != nil {
		return u, err
	}
	if hasWork, err := hasWork(ctx, repo, t.site.target(), s.Fresh); err != nil || hasWork {
		return u, err
	}
	if u.Files, err = delivery.Uncommitted(ctx, repo); err != nil || len(u.Files) == 0 {
		return u, err
	}
	u.Target = t.site.branch
	if branch, err := repo.CurrentBranch(ctx); err == nil {
		u.Branch = strings.TrimPrefix(branch, "refs/heads/")
	}
	u.Why, err = whyNot(delivery.MaySnapshot(ctx, repo))
	return u, err
}

// takeLead makes this process the only one that may bring a team to life, until the lease is released. The lead's
// record says who lives, too, but two processes that start at one moment could both find it free.
func (t *Team) takeLead(ctx context.Context) (release func(), err error) {
	if err := t.checkModel(); err != nil {
		return nil, err
	}
	w, leases := t.services(), t.site.config.Store.Leases()
	only, err := leases.Acquire(ctx, workspace.LeadLease)
	// Somebody else has the lease. Which of three it is decides what the user is told: a lead at work, an archive, or
	// a process that is about to be one of them.
	if errors.Is(err, muster.ErrHeld) {
		if err := t.checkNoLead(ctx); err != nil {
			return nil, err
		}
		if busy, err := leases.Held(ctx, workspace.ArchiveLease); err != nil || busy {
			return nil, cmp.Or(err, workspace.ErrArchiving())
		}
		return nil, muster.Errorf(muster.Held, "another process is just starting a team on this repository").
			WithHint("watch it:     muster log -f\nadd workers:  muster join")
	}
	if err != nil {
		return nil, err
	}
	release = func() { logDropped(ctx, t.site.log, "releasing the lease", only.Release()) }
	// Who archives writes its note while it holds this lease, so a look before could miss it.
	if err := w.CheckNotArchiving(ctx); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// RunState is the last run and what it has left open.
type RunState struct {
	Run  muster.Run // the zero Run when there was none
	Open []muster.Task
	// IsStopped is true when Open are the tasks of a run that stopped, so that Resume goes on with it.
	IsStopped bool
}

// RunState returns how the last run stands. It writes nothing.
func (t *Team) RunState(ctx context.Context) (s RunState, err error) {
	w := t.services()
	if s.Run, err = w.Runs().Look(ctx); err != nil {
		return s, err
	}
	tasks, err := w.Board().List(ctx)
	s.Open, s.IsStopped = s.Run.Left(tasks)
	return s, err
}

// Err returns the error, with what to do, for a run over a team that stopped with open tasks. It is nil where no team
// has.
func (s RunState) Err() error {
	if !s.IsStopped {
		return nil
	}
	lines := view.OpenTasks(s.Open, 24, "muster task list")
	return muster.Errorf(muster.Held, "a team stopped here with %s", text.Count(len(s.Open), "open task")).
		WithHint("%s\ngo on:                muster resume\ngo on, with a goal:   muster run --add \"GOAL\"\n"+
			"put it aside:         muster archive --yes", strings.Join(lines, "\n"))
}

// checkStart decides whether a run may start: not beside a living lead, and not over a team that stopped with open
// tasks, unless the run is to go on with these. It writes nothing, because the start may be refused.
func (t *Team) checkStart(ctx context.Context, mayGoOn bool) (s RunState, err error) {
	if err = t.checkNoLead(ctx); err == nil {
		s, err = t.RunState(ctx)
	}
	if err == nil && !mayGoOn {
		err = s.Err()
	}
	return s, err
}

// findStoppedRun returns the run that can go on. ended is true for one that has ended, with no task open, and whose end
// was never told. Errors: NotFound where there is nothing to go on with.
func (t *Team) findStoppedRun(ctx context.Context) (run muster.Run, ended bool, err error) {
	s, err := t.checkStart(ctx, true)
	switch {
	case err != nil:
	case s.Run.StartedAt == 0:
		err = muster.Errorf(muster.NotFound, "there is no team here to go on with").
			WithHint(`start one: muster run "GOAL"`)
	case s.Run.EndedAt != 0 && len(s.Open) == 0:
		ended = true
		var told bool
		if told, err = isEndReported(ctx, t.Journal()); err == nil && told {
			err = muster.Errorf(muster.NotFound, "the last run has ended and no task is open").
				WithHint(`start another: muster run "GOAL"`)
		}
	}
	return s.Run, ended, err
}

func (t *Team) checkNoLead(ctx context.Context) error {
	if alive, err := t.Members().IsLeadAlive(ctx); err != nil || !alive {
		return err
	}
	roster := t.services().Roster(ctx)
	lead, err := roster.Find(ctx, muster.Lead)
	if err != nil {
		return err
	}
	return muster.Errorf(muster.Held, "a lead is at work on this repository in another process (%s)",
		roster.Where(ctx, lead.Host)).
		WithHint("write to it:  muster mail send lead \"...\"\nwatch it:     muster log -f\nadd workers:  muster join")
}

// Run takes a goal to landed commits and returns when the run is over. When ctx ends with muster.CauseUser the state is
// kept for Resume and that cause is returned.
func (t *Team) Run(ctx context.Context, goal string, s Start) (Summary, error) {
	goal = t.site.secrets.String(goal)
	if s.Changes == WithChanges && t.site.config.Land != "" {
		return Summary{Code: 1}, muster.Errorf(muster.Invalid, "--with-changes begins on the team's own branch, and "+
			"--land names %s: leave one of the two out", text.OneLine(t.site.config.Land))
	}
	// Opening writes nothing, so whatever it refuses leaves no trace.
	r, err := t.openRun(ctx, muster.Run{})
	if err != nil {
		return Summary{Code: 1}, err
	}
	// A start that will be refused takes no lease, with which it would stand in the way of a resume.
	if _, err := t.checkStart(ctx, s.Add); err != nil {
		return Summary{Code: 1}, err
	}
	// A branch that the user named wrongly is refused before anything is made, the lease too.
	if err := r.checkTarget(ctx); err != nil {
		return Summary{Code: 1}, err
	}
	if err := r.checkDirectory(); err != nil {
		return Summary{Code: 1}, err
	}
	if s.Changes == WithChanges {
		if err := checkSnapshot(ctx, r.site, s.Fresh); err != nil {
			return Summary{Code: 1}, err
		}
	}
	book, err := s.book(ctx, r.site)
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
		if state.IsStopped && s.Changes == WithChanges {
			return sum, muster.Errorf(muster.Invalid, "a snapshot of your changes begins a run, and a team stopped "+
				"here").WithHint("leave --with-changes out\nor put the team aside:  muster archive --yes")
		}
		if state.IsStopped {
			return t.resume(ctx, goal)
		}
		return r.begin(ctx, goal, book, state.Open, s.Fresh, s.Changes)
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

// resume brings the stopped team back to life. more is what the user wants besides. The caller holds LeadLease.
func (t *Team) resume(ctx context.Context, more string) (sum Summary, err error) {
	// With the lease the answer is final: the run may have gone on, or been put aside, before.
	last, ended, err := t.findStoppedRun(ctx)
	if err != nil {
		return sum, err
	}
	r, err := t.openRun(ctx, last)
	if err != nil {
		return sum, err
	}
	if ended {
		return r.reportEnd(ctx, last)
	}
	return r.resume(ctx, last, more)
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

// Join adds a process with workers to a team whose run is under way, and returns when the run is over or nobody lives
// in this process any more. The process also takes over teammates of processes that die. When ctx ends its members'
// records stay as they are, and another process of the team goes on with them. Errors: NotFound where no run is under
// way.
func (t *Team) Join(ctx context.Context, w *Workers) (why Ending, err error) {
	// Where there is no run nothing is written, not even a host.
	if err := t.checkModel(); err != nil {
		return "", err
	}
	run, err := t.services().Runs().Get(ctx)
	if err := cmp.Or(err, checkUnderWay(run)); err != nil {
		return "", err
	}
	r, err := t.openRun(ctx, run)
	if err != nil {
		return "", err
	}
	return r.join(ctx, w)
}

// openRun opens a run that this process leads or joins. The zero Run stands for one that begins.
func (t *Team) openRun(ctx context.Context, last muster.Run) (*teamRun, error) {
	if err := t.checkModel(); err != nil {
		return nil, err
	}
	s, err := t.openSite(ctx, last)
	if err != nil {
		return nil, err
	}
	return newTeamRun(ctx, s, &t.hosting, last)
}

func (t *Team) checkModel() error {
	if t.site.config.Model == nil {
		return muster.Errorf(muster.Invalid, "a run needs a model").
			WithHint("set Config.Model: llm/anthropic.New or llm/openai.New")
	}
	return nil
}

// book reads the playbook of a start, nil where there is none. It writes nothing.
func (s Start) book(ctx context.Context, at *site) (*playbook.Book, error) {
	if s.Playbook == nil {
		return nil, nil
	}
	if s.Add {
		return nil, muster.Errorf(muster.Invalid, "a playbook begins a run, and does not go on with one").
			WithHint("go on with the one that stopped: muster resume")
	}
	hide := at.secrets.String
	source := playbook.Source{File: s.Playbook.File, Data: []byte(hide(string(s.Playbook.Data))),
		Params: map[string]string{}, Tracked: func() ([]string, error) {
			return at.repository.TrackedFiles(ctx, at.target(), at.config.Land != "", s.Fresh)
		}}
	for name, value := range s.Playbook.Params {
		source.Params[name] = hide(value)
	}
	b, err := playbook.Read(source)
	if err != nil {
		return nil, err
	}
	return &b, nil
}
