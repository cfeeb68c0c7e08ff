package team

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"time"

	"muster"
	"muster/internal/durable"
	"muster/internal/paths"
	"muster/internal/prompt"
)

// Start says how a run begins beside what is there already.
type Start struct {
	// Add goes on with a stopped team, and gives the goal to its lead as mail.
	Add bool
	// Fresh archives a diverged target branch and starts it again at HEAD.
	Fresh bool
}

// What a start and an archive exclude each other by. A process that brings a team to life, and one that puts a team aside,
// holds LeadLease: of those that start at one moment only one goes on. The latter holds ArchiveLease too, and while it
// moves the state, or was killed before all was moved, the file home.Dir.Moving names where it goes.
const (
	LeadLease    = "lead"
	ArchiveLease = "archive"
)

// RefuseHalf is the error for work on state of which an archive moves a part, or has moved it and was interrupted; nil
// where there is none. root is the repository's.
func RefuseHalf(ctx context.Context, root string, leases muster.Leases) error {
	on, path := durable.OS{}, paths.Dir(root).Moving()
	data, _, err := durable.New(on).ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return muster.Errorf(muster.Unavailable, "whether the last team is being put aside cannot be told: %w", durable.Unreadable(on, path, err))
	}
	switch busy, err := leases.Held(ctx, ArchiveLease); {
	case err != nil:
		return err
	case busy:
		return putAside()
	}
	return muster.Errorf(muster.Invalid, "putting the last team aside (%s) was interrupted", strings.TrimSpace(string(data))).WithHint("muster archive")
}

func putAside() error {
	return muster.Errorf(muster.Held, "the team is being put aside right now by another process").WithHint("in a moment: again")
}

// takeLead makes this process the only one that may bring a team to life, until the lease is released. The lead's record
// says who lives, too, but two processes that start at one moment could both find it free.
func (t *Team) takeLead(ctx context.Context) (muster.Lease, error) {
	leases := t.config.Store.Leases()
	only, err := leases.Acquire(ctx, LeadLease)
	if errors.Is(err, muster.ErrHeld) {
		if err := t.alone(ctx); err != nil {
			return nil, err
		}
		switch busy, err := leases.Held(ctx, ArchiveLease); {
		case err != nil:
			return nil, err
		case busy:
			return nil, putAside()
		}
		return nil, muster.Errorf(muster.Held, "another process is just bringing a team to life on this repository").WithHint("watch it:     muster log -f\nadd workers:  muster join")
	}
	if err != nil {
		return nil, err
	}
	if err := RefuseHalf(ctx, t.ground.Root(), leases); err != nil {
		only.Release()
		return nil, err
	}
	return only, nil
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

// needy are the tasks that nobody has looked at since they were given up. next is after the last task that there is.
func (t *Team) needy(ctx context.Context) (list []muster.Task, next muster.TaskID, err error) {
	all, err := t.rooms.Board.List(ctx)
	next = 1
	for _, task := range all {
		next = max(next, task.ID+1)
		if task.Status == muster.NeedsAttention {
			list = append(list, task)
		}
	}
	for _, u := range t.rooms.Board.Corrupt() {
		next = max(next, u.ID+1)
	}
	return list, next, err
}

// begin writes the records of a new run, in this order: the run, the lead.
func (t *Team) begin(ctx context.Context, goal string, open []muster.Task, host muster.HostID, dirty func() bool) (notes []string, err error) {
	if err := t.dismiss(ctx); err != nil {
		return nil, err
	}
	needy, next, err := t.needy(ctx)
	if err != nil {
		return nil, err
	}
	for _, task := range needy {
		notes = append(notes, fmt.Sprintf("task %d (%s) of an earlier run needs attention: muster task retry %d", task.ID, task.Subject, task.ID))
	}
	base, err := t.ground.Tip(ctx, t.target())
	if err != nil {
		return nil, err
	}
	run, err := t.runs.change(ctx, func(r *muster.Run) {
		*r = muster.Run{Team: t.config.Name, Goal: goal, Check: t.config.Check, Setup: t.config.Setup, Target: t.branch,
			Model: t.config.ModelName, Cap: t.config.Teammates, Base: base, StartedAt: muster.Stamp(time.Now()),
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
		dirty, err := t.ground.Dirty(ctx)
		return dirty && err == nil
	})
	go is()
	return is
}

// dismiss shuts down who is left of processes that died: a run ends with nobody, and a new one begins with nobody but those
// whom the user spawned for it. Their claims go back with them.
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
		if err := t.bury(ctx, m.Name, m.Host, "its process died", muster.Message{}); err != nil {
			return err
		}
	}
	return nil
}

// bury ends a member that can do nothing any more: what it had claimed goes back on the board, then the lead is sent the news
// if there is any, then the member's record says so. One that is another process's by now is left alone. It may be called again
// after an error.
func (t *Team) bury(ctx context.Context, name muster.Name, host muster.HostID, why string, news muster.Message) error {
	m, err := t.rooms.Roster.Get(ctx, name)
	lost := errors.Is(err, muster.ErrCorrupt) // nobody can say so in its record; the rest is done
	if !lost && (err != nil || m.Host != host) {
		return err
	}
	if err := t.takeBack(ctx, name, why); err != nil {
		return err
	}
	if news.Content != "" {
		if _, err := t.rooms.Post.Send(ctx, news); err != nil {
			return err
		}
	}
	if err := t.rooms.Requests.Leave(ctx, name, why); err != nil || lost {
		return err
	}
	_, err = t.rooms.Roster.Update(ctx, name, func(m *muster.Member) {
		if m.Host == host {
			m.Status, m.IdleReason, m.Host, m.Doing, m.Task = muster.Shutdown, "", "", "", 0
		}
	})
	return err
}

// takeBack puts what a member had claimed back on the board.
func (t *Team) takeBack(ctx context.Context, name muster.Name, why string) error {
	tasks, err := t.rooms.Board.Claimed(ctx)
	if err != nil {
		return err
	}
	for _, task := range tasks {
		if task.Owner == name {
			if err := t.takeOne(ctx, task, why); err != nil {
				return err
			}
		}
	}
	return nil
}

// takeOrphans puts back what members had claimed who have shut down since: they could not be seen to have it, or it could
// not be read, when they went. What was claimed in such a name after that is somebody else's doing.
func (t *Team) takeOrphans(ctx context.Context) error {
	tasks, err := t.rooms.Board.Claimed(ctx)
	if err != nil {
		return err
	}
	for _, task := range tasks {
		m, err := t.rooms.Roster.Find(ctx, task.Owner)
		if err != nil || m.Status != muster.Shutdown || m.Since < task.ClaimedAt {
			continue // nobody of the team, or nobody who can be read now
		}
		if err := t.takeOne(ctx, task, "its owner has shut down"); err != nil {
			return err
		}
	}
	return nil
}

func (t *Team) takeOne(ctx context.Context, task muster.Task, why string) error {
	if t.rooms.Lander != nil { // before a run has one, nothing lands
		if err := t.rooms.Lander.Revoke(ctx, task.ID, task.Fence); errors.Is(err, muster.ErrHeld) {
			return nil // it has landed
		} else if err != nil {
			return err
		}
	}
	if _, err := t.rooms.Board.Revoke(ctx, task.ID, muster.System, why); err != nil && !errors.Is(err, muster.ErrInvalid) {
		return err
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
