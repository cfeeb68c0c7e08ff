package team

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"muster"
	"muster/internal/prompt"
	"muster/internal/workspace"
)

// Start says how a run begins beside what is there already.
type Start struct {
	// Add goes on with a stopped team, and gives the goal to its lead as mail.
	Add bool
	// Fresh archives a diverged target branch and starts it again at HEAD.
	Fresh bool
}

// takeLead makes this process the only one that may bring a team to life, until the lease is released. The lead's
// record says who lives, too, but two processes that start at one moment could both find it free.
func (t *Team) takeLead(ctx context.Context) (muster.Lease, error) {
	leases := t.config.Store.Leases()
	only, err := leases.Acquire(ctx, workspace.LeadLease)
	if errors.Is(err, muster.ErrHeld) {
		if err := t.checkNoLead(ctx); err != nil {
			return nil, err
		}
		switch busy, err := leases.Held(ctx, workspace.ArchiveLease); {
		case err != nil:
			return nil, err
		case busy:
			return nil, workspace.ErrArchiving()
		}
		return nil, muster.Errorf(muster.Held, "another process is just bringing a team to life on this repository").
			WithHint("watch it:     muster log -f\nadd workers:  muster join")
	}
	if err != nil {
		return nil, err
	}
	if err := t.services().CheckNotArchiving(ctx); err != nil {
		t.logDropped(ctx, "releasing the lease", only.Release())
		return nil, err
	}
	return only, nil
}

// checkStart decides whether a run may start: not beside a living lead, and not over a team that stopped with open
// tasks.
func (t *Team) checkStart(ctx context.Context) (run muster.Run, open []muster.Task, stopped bool, err error) {
	if err := t.checkNoLead(ctx); err != nil {
		return run, nil, false, err
	}
	if run, err = t.runs().Look(ctx); err != nil {
		return run, nil, false, err
	}
	all, err := t.deps.Board.List(ctx)
	if err != nil {
		return run, nil, false, err
	}
	open, stopped = run.Left(all)
	return run, open, stopped, nil
}

// checkNoLead refuses to start beside a lead that is alive in another process.
func (t *Team) checkNoLead(ctx context.Context) error {
	lead, err := t.deps.Roster.Get(ctx, muster.Lead)
	if errors.Is(err, muster.ErrNotFound) || err == nil && lead.Host == "" {
		return nil
	}
	if err != nil {
		return err
	}
	alive, err := t.deps.Roster.Alive(ctx, lead.Host)
	if err != nil || !alive {
		return err
	}
	where := t.deps.Roster.Where(ctx, lead.Host)
	return muster.Errorf(muster.Held, "a lead is at work on this repository in another process (%s)", where).
		WithHint("write to it:  muster mail send lead \"...\"\nwatch it:     muster log -f\nadd workers:  muster join")
}

// Err returns the error, with what to do, for a run over a team that stopped with open tasks. It is nil where none has
// secondsAway.
func (s RunState) Err() error {
	if !s.IsStopped {
		return nil
	}
	return errStopped(s.Open)
}

// errStopped is the error, with what to do, for a run over a team that stopped with open tasks.
func errStopped(open []muster.Task) error {
	var lines []string
	for _, task := range open {
		lines = append(lines, fmt.Sprintf("%3d  %-24s %s", task.ID, task.Subject, task.Status))
	}
	return muster.Errorf(muster.Held, "a team stopped here with %s", openTasks(len(open))).
		WithHint("%s\ngo on:                muster resume\ngo on, with a goal:   muster run --add \"GOAL\"\n"+
			"put it aside:         muster archive", strings.Join(lines, "\n"))
}

// tasksNeedingAttention are the tasks that nobody has looked at since they were given up. next is after the last task
// that there is.
func (t *Team) tasksNeedingAttention(ctx context.Context) (list []muster.Task, next muster.TaskID, err error) {
	all, err := t.deps.Board.List(ctx)
	next = 1
	for _, task := range all {
		next = max(next, task.ID+1)
		if task.Status == muster.NeedsAttention {
			list = append(list, task)
		}
	}
	for _, u := range t.deps.Board.Corrupt() {
		next = max(next, u.ID+1)
	}
	return list, next, err
}

// writeStart writes the records of a new run, in this order: the run, the lead.
func (t *Team) writeStart(
	ctx context.Context, goal string, open []muster.Task, host muster.HostID, dirty func() bool,
) (notes []string, err error) {
	if err := t.stopOrphans(ctx); err != nil {
		return nil, err
	}
	needy, next, err := t.tasksNeedingAttention(ctx)
	if err != nil {
		return nil, err
	}
	for _, task := range needy {
		notes = append(notes, fmt.Sprintf("task %d (%s) of an earlier run needs attention: muster task retry %d",
			task.ID, task.Subject, task.ID))
	}
	base, err := t.repository.Tip(ctx, t.target())
	if err != nil {
		return nil, err
	}
	run, err := t.runs().Change(ctx, func(r *muster.Run) {
		*r = muster.Run{Team: t.config.Name, Goal: goal, Check: t.config.Check, Setup: t.config.Setup, Target: t.branch,
			Model: t.config.ModelName, Cap: t.config.Teammates, Base: base, StartedAt: muster.UnixTime(time.Now()),
			First: next, Extra: r.Extra}
		for _, task := range open {
			r.Open = append(r.Open, task.ID)
		}
	})
	if err != nil {
		return nil, err
	}
	words := prompt.Goal(run, open, needy)
	if t.config.Conversation != nil {
		words += "\n\n" + prompt.Talk
	}
	if err := t.createLead(ctx, words, host); err != nil {
		return nil, err
	}
	if dirty() {
		notes = append(notes, "your uncommitted changes are part of no lane: lanes start from commits")
	}
	return append(notes, "tools are not confined: they run with your rights"), nil
}

// dirty begins to look for uncommitted changes of the user's; what it returns waits for the answer. It only makes a
// note: where git cannot tell, there is none.
func (t *Team) dirty(ctx context.Context) (is func() bool) {
	is = sync.OnceValue(func() bool {
		dirty, err := t.repository.Dirty(ctx)
		return dirty && err == nil
	})
	go is()
	return is
}

// stopOrphans shuts down who is left of processes that died: a run ends with nobody, and a new one begins with nobody
// but those whom the user spawned for it. Their claims go back with them.
func (t *Team) stopOrphans(ctx context.Context) error {
	all, err := t.deps.Roster.List(ctx)
	if err != nil {
		return err
	}
	for _, m := range all {
		if m.Name == muster.Lead || m.Status == muster.Shutdown || m.Host == "" {
			continue
		}
		if alive, err := t.deps.Roster.Alive(ctx, m.Host); err != nil {
			return err
		} else if alive {
			continue
		}
		if err := t.finalizeMember(ctx, m.Name, m.Host, "its process died", muster.Message{}); err != nil {
			return err
		}
	}
	return nil
}

// finalizeMember ends a member that can do nothing any more: what it had claimed goes back on the board, then the lead
// is sent the news if there is any, then the member's record says so. One that is another process's by now is left
// alone. It may be called again after an error.
func (t *Team) finalizeMember(
	ctx context.Context, name muster.Name, host muster.HostID, why string, news muster.Message,
) error {
	m, err := t.deps.Roster.Get(ctx, name)
	lost := errors.Is(err, muster.ErrCorrupt) // nobody can say so in its record; the rest is done
	if !lost && (err != nil || m.Host != host) {
		return err
	}
	if err := t.releaseClaims(ctx, name, why); err != nil {
		return err
	}
	if news.Content != "" {
		if _, err := t.deps.Post.Send(ctx, news); err != nil {
			return err
		}
	}
	if err := t.deps.Requests.Leave(ctx, name, why); err != nil || lost {
		return err
	}
	_, err = t.deps.Roster.Update(ctx, name, func(m *muster.Member) {
		if m.Host == host {
			m.Status, m.IdleReason, m.Host, m.Doing, m.Task = muster.Shutdown, "", "", "", 0
		}
	})
	return err
}

// releaseClaims puts what a member had claimed back on the board.
func (t *Team) releaseClaims(ctx context.Context, name muster.Name, why string) error {
	tasks, err := t.deps.Board.Claimed(ctx)
	if err != nil {
		return err
	}
	for _, task := range tasks {
		if task.Owner == name {
			if err := t.releaseClaim(ctx, task, why); err != nil {
				return err
			}
		}
	}
	return nil
}

// releaseOrphans puts back what members had claimed who have shut down since: they could not be seen to have it, or it
// could not be read, when they went. What was claimed in such a name after that is somebody else's doing.
func (t *Team) releaseOrphans(ctx context.Context) error {
	tasks, err := t.deps.Board.Claimed(ctx)
	if err != nil {
		return err
	}
	for _, task := range tasks {
		m, err := t.deps.Roster.Find(ctx, task.Owner)
		if err != nil || m.Status != muster.Shutdown || m.Since < task.ClaimedAt {
			continue // nobody of the team, or nobody who can be read now
		}
		if err := t.releaseClaim(ctx, task, "its owner has shut down"); err != nil {
			return err
		}
	}
	return nil
}

func (t *Team) releaseClaim(ctx context.Context, task muster.Task, why string) error {
	if t.deps.Lander != nil { // before a run has one, nothing lands
		if err := t.deps.Lander.Revoke(ctx, task.ID, task.Fence); errors.Is(err, muster.ErrHeld) {
			return nil // it has landed
		} else if err != nil {
			return err
		}
	}
	_, err := t.deps.Board.Revoke(ctx, task.ID, muster.System, why)
	if errors.Is(err, muster.ErrInvalid) { // nobody has it any more
		return nil
	}
	return err
}

func openTasks(n int) string {
	if n == 1 {
		return "1 open task"
	}
	return fmt.Sprintf("%d open tasks", n)
}

// createLead writes the lead's record: a new one, or the old one with a new goal.
func (t *Team) createLead(ctx context.Context, words string, host muster.HostID) error {
	if _, err := t.deps.Roster.Get(ctx, muster.Lead); errors.Is(err, muster.ErrNotFound) {
		_, err := t.deps.Roster.Add(ctx, muster.Member{Name: muster.Lead, Role: "lead", Status: muster.Working,
			Prompt: words, Model: t.config.ModelName, Host: host})
		return err
	}
	_, err := t.deps.Roster.Update(ctx, muster.Lead, func(m *muster.Member) {
		m.Status, m.IdleReason, m.Doing, m.Task, m.Host = muster.Working, "", "", 0, host
		m.Epoch++
		m.Model = t.config.ModelName
		if words != "" {
			m.Prompt = words
		}
	})
	return err
}
