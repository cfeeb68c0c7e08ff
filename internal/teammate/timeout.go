package teammate

import (
	"context"
	"errors"
	"fmt"

	"muster"
	"muster/internal/board"
)

// holdsOn reports whether the member must not be timed out yet: the user is there, it waits for an answer or a background
// job, or tasks that others work on could still unblock something for it.
func (m *Member) holdsOn(ctx context.Context) (bool, error) {
	if m.jobs.Running() > 0 || m.talking(ctx) {
		return true, nil
	}
	members, err := m.Roster.List(ctx)
	if err != nil {
		return false, err
	}
	if m.waitsForAnswer(members) {
		return true, nil
	}
	all, err := m.Board.List(ctx)
	if err != nil {
		return false, err
	}
	return couldUnblock(all, members, m.Me()), nil
}

// waitsForAnswer reports whether it has asked somebody something who can still answer.
func (m *Member) waitsForAnswer(members []muster.Member) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for name := range m.asked {
		if name == muster.User || name == muster.Lead {
			return true
		}
		for _, o := range members {
			if o.Name == name && o.Status != muster.Shutdown {
				return true
			}
		}
	}
	return false
}

// couldUnblock reports whether work that is under way could make a task claimable for the member: some task that it
// may take waits, however indirectly, for one that somebody else works on, and for none that is stuck.
func couldUnblock(all []muster.Task, members []muster.Member, me muster.Member) bool {
	byID := map[muster.TaskID]muster.Task{}
	for _, t := range all {
		byID[t.ID] = t
	}
	for _, t := range all {
		if t.Status == muster.Pending && len(t.BlockedBy) > 0 && t.RoleMay(me.Role) {
			if moves, stuck := upstream(byID, members, me, t, map[muster.TaskID]bool{}); moves && !stuck {
				return true
			}
		}
	}
	return false
}

// upstream looks at all that a task waits for: whether something moves there, and whether something is stuck.
func upstream(byID map[muster.TaskID]muster.Task, members []muster.Member, me muster.Member, t muster.Task, seen map[muster.TaskID]bool) (moves, stuck bool) {
	for _, id := range t.BlockedBy {
		if seen[id] {
			continue
		}
		seen[id] = true
		b, ok := byID[id]
		switch {
		case !ok || b.Status == muster.NeedsAttention || b.Owner == me.Name && b.Open():
			stuck = true // what it has in its own hand does not move while it rests
		case b.Status == muster.InProgress || b.Status == muster.Landing:
			moves = true
		case len(b.BlockedBy) > 0:
			more, held := upstream(byID, members, me, b, seen)
			moves, stuck = moves || more, stuck || held
		case takenByAnother(members, me, b):
			moves = true
		default:
			stuck = true
		}
	}
	return moves, stuck
}

// takenByAnother reports whether another member that lives may take the task.
func takenByAnother(members []muster.Member, me muster.Member, t muster.Task) bool {
	for _, o := range members {
		if o.Name != me.Name && o.Name != muster.Lead && o.Status != muster.Shutdown && t.RoleMay(o.Role) {
			return true
		}
	}
	return false
}

// timeOut ends an idle life: the task in hand goes back, the lead is told.
func (m *Member) timeOut(ctx context.Context) (End, bool, error) {
	text := fmt.Sprintf("%s found nothing to do for %s and shuts down; spawn it again by name when there is work.", m.name(), m.IdleTimeout)
	if t, ok := m.Hand(); ok {
		text = fmt.Sprintf("%s was idle for %s with task #%d in hand and shuts down; the task is back on the board.", m.name(), m.IdleTimeout, t.ID)
	}
	if err := m.letGo(ctx, board.Release{Reason: "idle timeout of its owner", By: m.name()}); err != nil {
		return End{}, false, err
	}
	_, err := m.Post.Send(ctx, muster.Message{Type: muster.MailIdle, From: m.name(), To: muster.Lead, Content: text})
	if err != nil && !errors.Is(err, muster.ErrNotFound) {
		return End{}, false, err
	}
	if err := m.status(ctx, muster.Idle, muster.IdleTimeout, ""); err != nil {
		return End{}, false, err
	}
	if found, err := m.readMail(ctx); err != nil || found { // it came at the last moment
		return End{}, found, err
	}
	return End{Text: "idle timeout"}, false, nil
}
