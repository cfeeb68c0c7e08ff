package face

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"muster"
	"muster/internal/spend"
	"muster/internal/view"
	"muster/journal"
	"muster/team"
)

// recentEvents is how many events are read to see what members do right now. What a member does now is among the
// last few events of each, and a long journal must not make the command slow.
const recentEvents = 300

// Overview reads how a team stands. The parts are read one after the other while the team works, so they may
// differ by a moment.
func Overview(ctx context.Context, t *team.Team, now time.Time) (view.Overview, error) {
	run, runErr := t.LastRun(ctx)
	members, membersErr := readMembers(ctx, t)
	tasks, _, tasksErr := t.Tasks().List(ctx)
	requests, requestsErr := t.Requests().Pending(ctx)
	// Where no lane was ever made, git is not started: that would be the slowest part of the command.
	lanes, lanesErr := t.Lanes().List(ctx)
	mail, mailErr := t.Mail().Pending(ctx, muster.User)
	spending, spendErr := team.ReadSpending(ctx, t)
	collisions, collideErr := t.Tasks().Collisions(ctx)
	// After an error the other parts are read all the same. That costs little, and the first error is returned.
	o := Empty()
	if err := cmp.Or(runErr, membersErr, tasksErr, requestsErr, lanesErr, mailErr, spendErr, collideErr); err != nil {
		return o, err
	}
	o.Team, o.Run, o.Tasks, o.Now = t.Name(ctx), run, tasks, now
	o.Members, o.Requests = append(o.Members, members...), append(o.Requests, requests...)
	o.Alive = slices.ContainsFunc(members, func(m view.Member) bool { return m.Alive })
	countTasks(&o)
	for _, l := range lanes {
		o.Lanes[l.Status]++
	}
	o.Spending, o.Collisions = *spending, append(o.Collisions, collisions...)
	o.Mail = len(mail) // mail is only counted: it is printed by muster mail list
	err := readRecent(ctx, t.Journal(), &o)
	if o.Alive {
		o.Landings = o.Presence.Queued(now)
	}
	return o, err
}

// Board reads the part of an overview that a face shows all the time: the tasks, and what waits for the user.
func Board(ctx context.Context, t *team.Team) (view.Overview, error) {
	tasks, _, tasksErr := t.Tasks().List(ctx)
	requests, requestsErr := t.Requests().Pending(ctx)
	mail, mailErr := t.Mail().Pending(ctx, muster.User)
	members, membersErr := readMembers(ctx, t)
	o := Empty()
	o.Tasks, o.Requests, o.Mail, o.Members = tasks, requests, len(mail), members
	o.Alive = slices.ContainsFunc(members, func(m view.Member) bool { return m.Alive })
	countTasks(&o)
	return o, cmp.Or(tasksErr, requestsErr, mailErr, membersErr)
}

func countTasks(o *view.Overview) {
	for _, x := range o.Tasks {
		o.Board[view.BoardLabel(x)]++
		if x.Status == muster.NeedsAttention {
			o.Needy = append(o.Needy, x)
		}
	}
}

// Empty returns an overview without content. Its lists and maps are printed as [] and {}.
func Empty() view.Overview {
	return view.Overview{Members: []view.Member{}, Board: map[string]int{}, Requests: []muster.Request{},
		Needy: []muster.Task{}, Lanes: map[muster.LaneStatus]int{}, Spending: *spend.NewBook(),
		Collisions: []muster.Collision{}, Landings: []view.QueuedLanding{}}
}

// readRecent takes from the last events what the records do not have: what members do now, and the turns since their
// records were written, because a record is written only when a status changes. It also computes for how long
// processes of the team have lived in the run. A run whose processes have all ended is counted up to its last event,
// and not up to now. Events that cannot be read are left out; muster doctor counts them.
func readRecent(ctx context.Context, j *journal.Journal, o *view.Overview) error {
	from, err := j.Tail(ctx, recentEvents)
	if err != nil {
		return err
	}
	last := muster.Event{}
	for e, err := range j.Read(ctx, from) {
		if errors.Is(err, muster.ErrCorrupt) {
			continue
		}
		if err != nil {
			return err
		}
		last = e.Event
		o.Presence.Apply(last)
		countTurn(o.Members, last)
	}
	end := o.Now // while a process lives, the run lasts until now
	if last.Kind != "" && last.At >= o.Run.StartedAt && !o.Alive {
		end = muster.Time(last.At)
	}
	o.AddHelpers()
	// The time between the death of a process and the resume of its run is not counted.
	o.Lived = end.Sub(muster.Time(o.Run.StartedAt)) - time.Duration(o.Run.Away*float64(time.Second))
	return nil
}

// countTurn takes the number of a member's turns from an event: the events know more than the record of a member that
// works.
func countTurn(members []view.Member, e muster.Event) {
	i := slices.IndexFunc(members, func(m view.Member) bool { return m.Name == e.Member })
	if i >= 0 && e.Kind == journal.TurnStarted {
		members[i].Turns = max(members[i].Turns, int(e.Number("turns")))
	}
}

// countTurns takes the numbers of the members' turns from the last events, so that all that shows them shows the same.
func countTurns(ctx context.Context, t *team.Team, members []view.Member) error {
	from, err := t.Journal().Tail(ctx, recentEvents)
	if err != nil {
		return err
	}
	for e, err := range t.Journal().Read(ctx, from) {
		switch {
		case err == nil:
			countTurn(members, e.Event)
		case !errors.Is(err, muster.ErrCorrupt): // muster doctor counts those
			return err
		}
	}
	return nil
}

// Members returns all members as they are shown: the lead first, then as they joined.
func Members(ctx context.Context, t *team.Team) ([]view.Member, error) {
	all, err := readMembers(ctx, t)
	if err == nil {
		err = countTurns(ctx, t, all)
	}
	return all, err
}

func readMembers(ctx context.Context, t *team.Team) ([]view.Member, error) {
	members, err := t.Members().List(ctx)
	all := make([]view.Member, len(members))
	for i, m := range members {
		all[i] = view.Member{Member: m.Member, Alive: m.IsAlive}
		if m.Task == 0 {
			continue
		}
		// A task that cannot be read has a number all the same.
		if task, err := t.Tasks().Get(ctx, m.Task); err == nil {
			all[i].Subject = task.Subject
		}
	}
	return all, err
}
