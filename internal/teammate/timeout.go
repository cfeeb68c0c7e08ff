package teammate

import (
	"context"
	"slices"

	"muster"
)

// keepsClaim reports whether an idle member must not be timed out yet, and keeps the task
// that it has claimed: a conversation with the user is open, it waits for a background job or
// for an answer, or tasks that others work on could still unblock something for it.
func (i *idling) keepsClaim(ctx context.Context) (bool, error) {
	if i.jobs.Running() > 0 || i.hasConversation(ctx) {
		return true, nil
	}
	members, err := i.Roster.List(ctx)
	if err != nil {
		return false, err
	}
	if hasResponder(i.presence.openQuestions(), members) {
		return true, nil
	}
	all, err := i.Board.List(ctx)
	if err != nil {
		return false, err
	}
	return canUnblock(all, members, i.presence.Me()), nil
}

// hasResponder reports whether one of those who were asked something can still answer.
func hasResponder(asked []muster.Name, members []muster.Member) bool {
	all := byName(members)
	return slices.ContainsFunc(asked, func(name muster.Name) bool {
		m := all[name]
		return name == muster.User || name == muster.Lead || m != nil && m.Status != muster.Shutdown
	})
}

// canUnblock reports whether work that is under way could make a task claimable for the
// member: some task that it may claim waits, however indirectly, for one that somebody else
// works on, and for none that is stuck.
func canUnblock(all []muster.Task, members []muster.Member, me muster.Member) bool {
	owners := byName(members)
	w := waitGraph{tasks: map[muster.TaskID]muster.Task{}, members: members, me: me.Name,
		idle: map[muster.Name]bool{me.Name: true}, seen: map[muster.TaskID]bool{}}
	for _, t := range all {
		w.tasks[t.ID] = t
		// An idle owner moves neither its task nor another one: two would wait for each other
		// for ever.
		if o := owners[t.Owner]; o != nil && t.Open() && isIdleWith(o, t) {
			w.idle[t.Owner] = true
		}
	}
	// One such task is enough to wait for.
	for _, t := range all {
		if t.Status == muster.Pending && len(t.BlockedBy) > 0 && t.RoleMay(me.Role) {
			clear(w.seen)
			if moves, stuck := w.blockers(t); moves && !stuck {
				return true
			}
		}
	}
	return false
}

// waitGraph is the open tasks and who works on them, to find out what a task waits for.
type waitGraph struct {
	tasks   map[muster.TaskID]muster.Task
	members []muster.Member
	me      muster.Name
	idle    map[muster.Name]bool // who moves nothing, for all that is known
	seen    map[muster.TaskID]bool
}

// blockers looks at all that a task waits for, and reports whether something moves there and
// whether something is stuck.
func (w *waitGraph) blockers(t muster.Task) (moves, stuck bool) {
	for _, id := range t.BlockedBy {
		// Each task is looked at once: the graph may join again, and a damaged one may have a
		// cycle.
		if w.seen[id] {
			continue
		}
		w.seen[id] = true
		b, ok := w.tasks[id]
		switch {
		case !ok || b.Status == muster.NeedsAttention || b.Owner == w.me && b.Open():
			stuck = true // the member's own task does not move while it is idle
		case b.Claimed():
			moves = moves || !w.idle[b.Owner]
		case len(b.BlockedBy) > 0:
			more, held := w.blockers(b)
			moves, stuck = moves || more, stuck || held
		case canBeClaimed(b, w.members, w.idle):
			moves = true
		default:
			stuck = true
		}
	}
	return moves, stuck
}

// canBeClaimed reports whether a living teammate that is not in except may claim the task.
// The lead does not count.
func canBeClaimed(t muster.Task, members []muster.Member, except map[muster.Name]bool) bool {
	for i := range members {
		o := &members[i]
		if o.Name != muster.Lead && o.Status != muster.Shutdown && !except[o.Name] && t.RoleMay(o.Role) {
			return true
		}
	}
	return false
}
