package team

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"muster"
	"muster/internal/home"
	"muster/internal/landing"
	"muster/internal/prompt"
)

// Start says how a run begins beside what is there already.
type Start struct {
	// Add goes on with a stopped team, and gives the goal to its lead as mail.
	Add bool
	// Fresh archives a diverged target branch and starts it again at HEAD.
	Fresh bool
}

// check decides whether a run may start: not beside a living lead, and not over a team that stopped with open tasks.
func (t *Team) check(ctx context.Context) (run muster.Run, open []muster.Task, stopped bool, err error) {
	if err := t.alone(ctx); err != nil {
		return run, nil, false, err
	}
	if run, err = t.runs.look(ctx); err != nil {
		return run, nil, false, err
	}
	all, err := t.rooms.Board.List(ctx)
	if err != nil {
		return run, nil, false, err
	}
	open, stopped = run.Left(all)
	return run, open, stopped, nil
}

// alone refuses to start beside a lead that is alive in another process.
func (t *Team) alone(ctx context.Context) error {
	lead, err := t.rooms.Roster.Get(ctx, muster.Lead)
	if errors.Is(err, muster.ErrNotFound) || err == nil && lead.Host == "" {
		return nil
	}
	if err != nil {
		return err
	}
	alive, err := t.rooms.Roster.Alive(ctx, lead.Host)
	if err != nil || !alive {
		return err
	}
	return muster.Errorf(muster.Held, "a lead is at work on this repository in another process (%s)", t.rooms.Roster.Where(ctx, lead.Host)).
		WithHint("write to it:  muster mail send lead \"...\"\nwatch it:     muster log -f\nadd workers:  muster join")
}

// RefuseStopped is the error, with what to do, for a run over a team that stopped with open tasks.
func RefuseStopped(open []muster.Task) error {
	var lines []string
	for _, task := range open {
		lines = append(lines, fmt.Sprintf("%3d  %-24s %s", task.ID, task.Subject, task.Status))
	}
	return muster.Errorf(muster.Held, "a team stopped here with %s", openTasks(len(open))).
		WithHint("%s\ngo on:                muster resume\ngo on, with a goal:   muster run --add \"GOAL\"\nput it aside:         muster archive", strings.Join(lines, "\n"))
}

// prepare makes the target ready for a new run; what cannot be used is refused before anything is written.
func (t *Team) prepare(ctx context.Context, s Start) (note string, err error) {
	note, err = landing.PrepareTarget(ctx, t.repo, t.branch, t.config.Land != "", s.Fresh)
	if err != nil {
		return "", err
	}
	return note, t.repo.Exclude(ctx, home.Excluded)
}

// landable refuses to go on with a target that is gone, or checked out anywhere.
func (t *Team) landable(ctx context.Context) error {
	ref := "refs/heads/" + t.branch
	if at, err := t.repo.Ref(ctx, ref); err != nil {
		return err
	} else if at == "" {
		return muster.Errorf(muster.NotFound, "the branch %s, on which this team's work lands, is gone", t.branch).
			WithHint("bring it back: git branch %s COMMIT", t.branch)
	}
	path, err := t.repo.CheckedOut(ctx, ref)
	if err == nil && path != "" {
		err = muster.Errorf(muster.Held, "%s is checked out at %s, and work cannot land on a branch that somebody has checked out", t.branch, path).
			WithHint("git -C %s switch ANOTHER-BRANCH", path)
	}
	return err
}

// needy are the tasks that nobody has looked at since they were given up.
func (t *Team) needy(ctx context.Context) (list []muster.Task, err error) {
	all, err := t.rooms.Board.List(ctx)
	for _, task := range all {
		if task.Status == muster.NeedsAttention {
			list = append(list, task)
		}
	}
	return list, err
}

// begin writes the records of a new run, in this order: the run, the lead.
func (t *Team) begin(ctx context.Context, goal string, open []muster.Task, host muster.HostID, dirty func() bool) (notes []string, err error) {
	if err := t.dismiss(ctx); err != nil {
		return nil, err
	}
	needy, err := t.needy(ctx)
	if err != nil {
		return nil, err
	}
	for _, task := range needy {
		notes = append(notes, fmt.Sprintf("task %d (%s) of an earlier run needs attention: muster task retry %d", task.ID, task.Subject, task.ID))
	}
	base, err := t.repo.Resolve(ctx, "refs/heads/"+t.branch)
	if err != nil {
		return nil, err
	}
	run, err := t.runs.change(ctx, func(r *muster.Run) {
		*r = muster.Run{Team: t.config.Name, Goal: goal, Check: t.config.Check, Setup: t.config.Setup, Target: t.branch,
			Model: t.config.ModelName, Cap: t.config.Teammates, Base: base, StartedAt: muster.Stamp(time.Now()), Extra: r.Extra}
	})
	if err != nil {
		return nil, err
	}
	words := prompt.Goal(run, open, needy)
	if t.config.Conversation != nil {
		words += "\n\n" + prompt.Talk
	}
	if err := t.hireLead(ctx, words, host); err != nil {
		return nil, err
	}
	if dirty() {
		notes = append(notes, "your uncommitted changes are part of no lane: lanes start from commits")
	}
	return append(notes, "tools are not confined: they run with your rights"), nil
}

// dirty begins to look for uncommitted changes of the user's; what it returns waits for the answer. It only makes a note: where git
// cannot tell, there is none.
func (t *Team) dirty(ctx context.Context) (is func() bool) {
	is = sync.OnceValue(func() bool {
		dirty, err := t.repo.Status(ctx, t.repo.Root())
		return dirty && err == nil
	})
	go is()
	return is
}

// dismiss shuts down who is left of an earlier run that was killed: a new run begins with nobody but those whom the user
// spawned for it. Their claims go back with them.
func (t *Team) dismiss(ctx context.Context) error {
	all, err := t.rooms.Roster.List(ctx)
	if err != nil {
		return err
	}
	for _, m := range all {
		if m.Name == muster.Lead || m.Status == muster.Shutdown || m.Host == "" {
			continue
		}
		if alive, err := t.rooms.Roster.Alive(ctx, m.Host); err != nil {
			return err
		} else if alive {
			continue
		}
		if err := t.bury(ctx, m.Name, m.Host, "its process died", ""); err != nil {
			return err
		}
	}
	return nil
}

// bury ends a member that can do nothing any more: what it had claimed goes back on the board, then words are mailed to the
// lead if there are any, then its record says so. One that is another process's by now is left alone.
func (t *Team) bury(ctx context.Context, name muster.Name, host muster.HostID, why, words string) error {
	if m, err := t.rooms.Roster.Get(ctx, name); err != nil || m.Host != host {
		return err
	}
	if err := t.takeBack(ctx, name, why); err != nil {
		return err
	}
	if words != "" {
		if _, err := t.rooms.Post.Send(ctx, muster.Message{Type: muster.MailError, From: muster.System, To: muster.Lead, Content: words}); err != nil {
			return err
		}
	}
	if err := t.rooms.Requests.Leave(ctx, name, why); err != nil {
		return err
	}
	_, err := t.rooms.Roster.Update(ctx, name, func(m *muster.Member) {
		if m.Host == host {
			m.Status, m.IdleReason, m.Host, m.Doing, m.Task = muster.Shutdown, "", "", "", 0
		}
	})
	return err
}

// takeBack puts what a member had claimed back on the board.
func (t *Team) takeBack(ctx context.Context, name muster.Name, why string) error {
	tasks, err := t.rooms.Board.List(ctx)
	if err != nil {
		return err
	}
	for _, task := range tasks {
		if task.Owner != name || task.Status != muster.InProgress && task.Status != muster.Landing {
			continue
		}
		if t.rooms.Lander != nil { // before a run has one, nothing lands
			if err := t.rooms.Lander.Revoke(ctx, task.ID, task.Fence); errors.Is(err, muster.ErrHeld) {
				continue // it has landed
			} else if err != nil {
				return err
			}
		}
		if _, err := t.rooms.Board.Revoke(ctx, task.ID, muster.System, why); err != nil && !errors.Is(err, muster.ErrInvalid) {
			return err
		}
	}
	return nil
}

func openTasks(n int) string {
	if n == 1 {
		return "1 open task"
	}
	return fmt.Sprintf("%d open tasks", n)
}

// hireLead writes the lead's record: a new one, or the old one with a new goal.
func (t *Team) hireLead(ctx context.Context, words string, host muster.HostID) error {
	if _, err := t.rooms.Roster.Get(ctx, muster.Lead); errors.Is(err, muster.ErrNotFound) {
		_, err := t.rooms.Roster.Add(ctx, muster.Member{Name: muster.Lead, Role: "lead", Status: muster.Working,
			Prompt: words, Model: t.config.ModelName, Host: host})
		return err
	}
	_, err := t.rooms.Roster.Update(ctx, muster.Lead, func(m *muster.Member) {
		m.Status, m.IdleReason, m.Doing, m.Task, m.Host = muster.Working, "", "", 0, host
		m.Epoch++
		m.Model = t.config.ModelName
		if words != "" {
			m.Prompt = words
		}
	})
	return err
}
