package team

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"muster"
	"muster/internal/config"
	"muster/internal/playbook"
	"muster/internal/prompt"
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
	// Playbook has the tasks of the run; nil: the lead makes them. The lead is asked only when something needs it, and
	// the goal may be empty.
	Playbook *Playbook
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
			"put it aside:         muster archive", strings.Join(lines, "\n"))
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

// writeStart writes the records of a new run, in this order: the run, the lead. It returns what the user should know.
func (p *runHost) writeStart(
	ctx context.Context, goal string, book *playbook.Book, open []muster.Task, host muster.HostID,
) (notes []string, err error) {
	if err := p.stopOrphans(ctx); err != nil {
		return nil, err
	}
	all, errTasks := p.Board.List(ctx)
	base, errBase := p.repository.Resolve(ctx, p.target())
	if err := cmp.Or(errTasks, errBase); err != nil {
		return nil, err
	}
	first := muster.TaskID(1)        // after every task that there is
	var needsAttention []muster.Task // nobody has looked at them since they were given up
	for _, task := range all {
		first = max(first, task.ID+1)
		if task.Status == muster.NeedsAttention {
			needsAttention = append(needsAttention, task)
			notes = append(notes, fmt.Sprintf("task %d (%s) of an earlier run needs attention: muster task retry %d",
				task.ID, task.Subject, task.ID))
		}
	}
	// An id of a record that cannot be read is used too: the record may be mended, and then it is a task again.
	for _, u := range p.Board.Corrupt() {
		first = max(first, u.ID+1)
	}
	c := p.config
	// Noted before the run's record has it: a resume finds that the user has named it.
	if err := confirmTargets(ctx, p); err != nil {
		return nil, err
	}
	// Fields that other programs have added to the record (Extra) outlive the run that they were added to.
	run, err := p.workspace.Runs().Change(ctx, func(r *muster.Run) {
		*r = muster.Run{Team: c.Name, Goal: goal, Check: c.Check, Checks: c.Checks, Setup: c.Setup, Review: c.Review,
			Target: p.branch, Model: c.ModelName, Cap: c.Teammates, Budget: c.Budgets.Team, Base: base,
			StartedAt: muster.UnixTime(time.Now()), First: first, Into: p.into,
			Tips: []muster.Tip{{Commit: base}}, Extra: r.Extra}
		r.Open = view.TaskIDs(open)
		beginAsConversation(r, c.Conversation != nil && book == nil)
		if book != nil {
			r.Playbook = &muster.Playbook{Name: book.Name, Hash: book.Hash, Tasks: book.Tasks}
		}
	})
	if err != nil {
		return nil, err
	}
	words := prompt.Goal(run, open, needsAttention)
	if c.Conversation != nil {
		words += "\n\n" + prompt.Talk
	}
	if book != nil {
		words += "\n\n" + prompt.Playbook
	}
	return notes, p.createLead(ctx, words, host)
}

func (p *runHost) createLead(ctx context.Context, words string, host muster.HostID) error {
	// The epoch rises with each life, so that what was said to an earlier one is recognised. A lead that is resumed
	// gets no new prompt: its conversation has the first one.
	leads := config.Stored(cmp.Or(p.config.role("lead").Model, p.config.ModelName))
	_, err := p.Roster.Update(ctx, muster.Lead, func(m *muster.Member) {
		m.Status, m.IdleReason, m.Doing, m.Task, m.Host = muster.Working, "", "", 0, host
		m.Epoch++
		m.Model, m.Prompt = leads, cmp.Or(words, m.Prompt)
	})
	if errors.Is(err, muster.ErrNotFound) {
		_, err = p.Roster.Add(ctx, muster.Member{Name: muster.Lead, Role: "lead", Status: muster.Working,
			Prompt: words, Model: leads, Host: host})
	}
	return err
}
