package teammate

import (
	"cmp"
	"context"
	"slices"

	"muster"
	"muster/internal/board"
)

// TeamProgress is how the team stands, read from the board, the roster, the requests and the
// mail. The lead's sleep and the end of a run are decided from it.
type TeamProgress struct {
	HadTasks       bool // a task was created in this run, or was open in it
	Open           []muster.Task
	NeedsAttention []muster.Task      // since this run began
	Landed         int                // tasks, in this run
	Working        []muster.Name      // teammates at work; without any, one that mail will wake
	Unreadable     []board.Unreadable // tasks whose record cannot be read: open, for all that is known
	Unclaimable    []muster.Task      // ready, and no living teammate may take them
	Requests       []muster.Request   // that wait for the lead
	// Patient says that nobody is ever timed out: an idle owner keeps its task.
	Patient bool
	// Stuck says, when tasks are open, why nothing that runs or waits could ever move them;
	// it is empty when something can.
	Stuck string
}

// Done reports that nothing is open and nobody is at work.
func (p TeamProgress) Done() bool {
	return len(p.Open) == 0 && len(p.Unreadable) == 0 && len(p.Working) == 0
}

// Progress reads how the team stands. It looks into the inboxes of idle members only when
// nobody is at work and either all is done or nothing can move: only then does mail that
// wakes somebody change the answer, and there may be thousands of inboxes.
func (s *Services) Progress(ctx context.Context) (TeamProgress, error) {
	p, members, err := s.progressWithoutMail(ctx)
	if err != nil || len(p.Working) > 0 || len(p.Open)+len(p.Unreadable) > 0 && p.Stuck == "" {
		return p, err
	}
	for _, m := range members {
		if m.Status != muster.Idle || m.Name == muster.Lead {
			continue
		}
		wakes, err := s.hasWakingMail(ctx, m.Name)
		if err != nil {
			return p, err
		}
		if wakes {
			p.Working, p.Stuck = []muster.Name{m.Name}, ""
			return p, nil
		}
	}
	// Read again after the inboxes: a member says that it is at work before it takes its
	// mail, so that mail which was gone already shows as a member at work now.
	p, _, err = s.progressWithoutMail(ctx)
	return p, err
}

// progressWithoutMail reads the progress without the inboxes, and returns the members too.
func (s *Services) progressWithoutMail(ctx context.Context) (p TeamProgress, members []muster.Member, err error) {
	p.Patient = s.Patient || s.hasConversation(ctx)
	run, runErr := s.Run(ctx)
	// Members before tasks. A member claims a task while it is idle and then says that it
	// works. In the other order it could be seen idle, after its task was seen unclaimed:
	// nobody would seem to be at work on an open task.
	members, membersErr := s.Roster.List(ctx)
	tasks, tasksErr := s.Board.List(ctx)
	pending, err := s.Requests.Pending(ctx)
	if err = cmp.Or(runErr, membersErr, tasksErr, err); err != nil {
		return p, nil, err
	}
	for i := range members {
		if m := &members[i]; m.Status == muster.Working && m.Name != muster.Lead {
			p.Working = append(p.Working, m.Name)
		}
	}
	p.addTasks(run, tasks, members)
	ofOthers := func(r muster.Request) bool { return r.To != muster.Lead }
	p.Requests = slices.DeleteFunc(slices.Clone(pending), ofOthers)
	outOfRun := func(u board.Unreadable) bool { return !run.HasID(u.ID) }
	p.Unreadable = slices.DeleteFunc(slices.Clone(s.Board.Corrupt()), outOfRun)
	if len(p.Open)+len(p.Unreadable) > 0 {
		p.Stuck = stuckReason(p, members, pending)
	}
	return p, members, nil
}

// addTasks sorts the tasks of the board.
func (p *TeamProgress) addTasks(run muster.Run, tasks []muster.Task, members []muster.Member) {
	for _, t := range tasks {
		mine := run.Has(t)
		p.HadTasks = p.HadTasks || mine || t.Open()
		switch {
		case t.Open():
			p.Open = append(p.Open, t)
			if t.Claimable(t.ClaimRole) && !canBeClaimed(t, members, nil) {
				p.Unclaimable = append(p.Unclaimable, t)
			}
		case t.Status == muster.NeedsAttention && mine:
			p.NeedsAttention = append(p.NeedsAttention, t)
		case t.Landed != nil && mine:
			p.Landed++
		}
	}
}

// hasWakingMail reports whether mail waits for an idle member that will wake it. A shutdown
// request that was decided already wakes nobody.
func (s *Services) hasWakingMail(ctx context.Context, name muster.Name) (bool, error) {
	msgs, err := s.Post.Waking(ctx, name, 0)
	for _, msg := range msgs {
		if msg.Type != muster.MailShutdown || !isDecided(ctx, s.Requests, msg.RequestID) {
			return true, err
		}
	}
	return false, err
}
