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
	owners := map[muster.Name]*muster.Member{}
	for i := range members {
		owners[members[i].Name] = &members[i]
	}
	// Who rests with a task in hand moves nothing, neither this task nor another: two would wait for each other for ever.
	rests := map[muster.Name]bool{}
	byID := map[muster.TaskID]muster.Task{}
	for _, t := range all {
		byID[t.ID] = t
		if o := owners[t.Owner]; o != nil && t.Open() && restsWith(o, t) {
			rests[t.Owner] = true
		}
	}
	rests[me.Name] = true
	for _, t := range all {
		if t.Status == muster.Pending && len(t.BlockedBy) > 0 && t.RoleMay(me.Role) {
			if moves, stuck := upstream(byID, members, rests, me.Name, t, map[muster.TaskID]bool{}); moves && !stuck {
				return true
			}
		}
	}
	return false
}

// upstream looks at all that a task waits for: whether something moves there, and whether something is stuck.
func upstream(byID map[muster.TaskID]muster.Task, members []muster.Member, rests map[muster.Name]bool, me muster.Name, t muster.Task, seen map[muster.TaskID]bool) (moves, stuck bool) {
	for _, id := range t.BlockedBy {
		if seen[id] {
			continue
		}
		seen[id] = true
		b, ok := byID[id]
		switch {
		case !ok || b.Status == muster.NeedsAttention || b.Owner == me && b.Open():
			stuck = true // what it has in its own hand does not move while it rests
		case b.Claimed():
			moves = moves || !rests[b.Owner]
		case len(b.BlockedBy) > 0:
			more, held := upstream(byID, members, rests, me, b, seen)
			moves, stuck = moves || more, stuck || held
		case takenBy(members, rests, b):
			moves = true
		default:
			stuck = true
		}
	}
	return moves, stuck
}

// takenBy reports whether a member that lives may take the task; the lead and those in except do not count.
func takenBy(members []muster.Member, except map[muster.Name]bool, t muster.Task) bool {
	for i := range members {
		o := &members[i]
		if o.Name != muster.Lead && o.Status != muster.Shutdown && !except[o.Name] && t.RoleMay(o.Role) {
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
	lastly, cancel := finally(ctx)
	defer cancel()
	if err := m.shutDown(lastly); err != nil {
		return End{}, false, err
	}
	if found, err := m.calledBack(ctx); err != nil || found {
		return End{}, found, err
	}
	return End{Text: "idle timeout"}, false, nil
}

// calledBack reads mail that came while the member shut down, and goes on with its life. Its sender looked after sending
// and found it there; a later one sees that it has shut down. A next life, if there is one already, reads it itself.
func (m *Member) calledBack(ctx context.Context) (bool, error) {
	if wakes, err := m.mailWakes(ctx); err != nil || !wakes {
		return false, err
	}
	mine := false
	r, err := m.Roster.Update(ctx, m.name(), func(r *muster.Member) {
		if mine = r.Status == muster.Shutdown && r.Epoch == m.Record.Epoch; mine {
			r.Status, r.IdleReason, r.Host = muster.Working, "", m.Record.Host
		}
	})
	if err != nil || !mine {
		return false, err
	}
	m.mu.Lock()
	m.record = r
	m.mu.Unlock()
	return m.readMail(ctx)
}
