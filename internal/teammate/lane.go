package teammate

import (
	"context"
	"errors"
	"fmt"

	"muster"
	"muster/internal/board"
	"muster/internal/failpoint"
	"muster/internal/mailbox"
	"muster/internal/prompt"
	"muster/internal/worktree"
)

// brief gives the task its lane, if it has none yet, and returns what its owner reads.
func (m *Member) brief(ctx context.Context, t muster.Task) (string, muster.MessageID, error) {
	lane, had, err := m.lane(ctx, &t)
	switch {
	case err == nil:
	case context.Cause(ctx) != nil: // not the lane's fault: the claim stands, and whoever goes on makes it
		return "", "", context.Cause(ctx)
	case errors.Is(err, muster.ErrFenced), errors.Is(err, muster.ErrNotFound) && m.held(ctx) != nil:
		m.setHand(nil)
		return "", "", nil // taken back meanwhile
	default:
		note := fmt.Sprintf("no lane could be made: %v", err)
		if e := m.letGo(ctx, board.Release{Reason: "no lane", Note: note, Counts: true, By: m.name()}); e != nil {
			return "", "", e
		}
		_, e := m.Post.Send(ctx, muster.Message{Type: muster.MailError, From: muster.System, To: muster.Lead, TaskID: t.ID,
			Content: fmt.Sprintf("Task #%d could not start: %s", t.ID, note)})
		return "", "", e
	}
	m.setHand(&t)
	run, err := m.Run(ctx)
	if err != nil {
		return "", "", err
	}
	t.RequirePlan = t.RequirePlan || !m.lead() && m.Record.RequirePlan
	b := prompt.Briefing{Task: t, Lane: lane, Check: run.Check, Had: had}
	for _, id := range t.DependsOn {
		if d, err := m.Board.Get(ctx, id); err == nil {
			b.Blockers = append(b.Blockers, d)
		}
	}
	return "<auto-claimed>\n" + prompt.Claimed(b, mailbox.Escape) + "\n</auto-claimed>", claimMark(t), nil
}

// maxLaneNames bounds the search for a free lane name.
const maxLaneNames = 100

// lane is the lane of a claimed task: the one an earlier owner left, if it is as expected, else a fresh one from the
// target's tip. had is what an inherited one holds.
func (m *Member) lane(ctx context.Context, t *muster.Task) (lane muster.Lane, had string, err error) {
	old := t.Worktree
	if old != "" {
		if lane, had, err = m.inherit(ctx, *t); err == nil {
			return lane, had, nil
		}
	}
	if lane, err = m.newLane(ctx, *t); err != nil {
		return lane, "", err
	}
	claimed := *t
	if _, err = m.Lanes.Enter(ctx, lane.Name); err == nil {
		claimed, err = m.Board.SetLane(ctx, t.ID, t.Fence, lane.Name, lane.Base)
	}
	if err != nil {
		m.leaveLane(ctx, lane.Name)
		return lane, "", err
	}
	failpoint.Hit("teammate.laned")
	*t = claimed
	if old != "" && old != lane.Name {
		m.putAside(ctx, old)
	}
	return lane, "", nil
}

// inherit enters the lane that the task names.
func (m *Member) inherit(ctx context.Context, t muster.Task) (lane muster.Lane, had string, err error) {
	if lane, err = m.Lanes.Get(ctx, t.Worktree); err != nil {
		return lane, "", err
	}
	if lane.Base != t.Base {
		return lane, "", muster.Errorf(muster.Invalid, "the lane %s was not made for task %d as it is", lane.Name, t.ID)
	}
	if err = m.occupy(ctx, lane.Name); err != nil {
		return lane, "", err
	}
	if _, err = m.Lanes.Enter(ctx, lane.Name); err != nil {
		return lane, "", err
	}
	if changed, err := m.Lanes.Changed(ctx, lane.Name); err == nil && changed {
		had, _ = m.Lanes.Status(ctx, lane.Name)
	}
	return lane, had, nil
}

// newLane makes a lane with the member in it, under the first of the task's names that is free.
func (m *Member) newLane(ctx context.Context, t muster.Task) (lane muster.Lane, err error) {
	base, err := m.Lander.Target(ctx)
	if err != nil {
		return lane, err
	}
	name := muster.LaneName(t.ID, t.Subject)
	for n := 2; ; n++ {
		lane, err = m.Lanes.Create(ctx, name, t.ID, base)
		if errors.Is(err, muster.ErrHeld) && m.clearUnnamed(ctx, name, t) {
			lane, err = m.Lanes.Create(ctx, name, t.ID, base)
		}
		if err == nil {
			err = m.Lanes.Occupy(ctx, name, worktree.Occupant{}, m.occupant())
		}
		if !errors.Is(err, muster.ErrHeld) || n > maxLaneNames {
			return lane, err
		}
		suffix := fmt.Sprintf("-%d", n)
		name = muster.LaneName(t.ID, t.Subject)
		name = name[:min(len(name), 32-len(suffix))] + muster.Name(suffix)
	}
}

// clearUnnamed puts a lane aside that was made for the task and that the task does not name: whoever made it died, or lost
// the claim, before it could say so.
func (m *Member) clearUnnamed(ctx context.Context, name muster.Name, t muster.Task) bool {
	lane, err := m.Lanes.Get(ctx, name)
	if err != nil || lane.TaskID != t.ID || lane.Name == t.Worktree || lane.Status != muster.LaneActive {
		return false
	}
	return m.putAside(ctx, name)
}

// clearDeserted puts the lanes aside in which a process died after their tasks had got another one, or were deleted: a
// claim can be taken from an owner that lives on, and nobody touches its lane while it does.
func (m *Member) clearDeserted(ctx context.Context) {
	lanes, err := m.Lanes.List(ctx)
	if err != nil {
		m.logDropped(ctx, "listing the lanes to put aside", err)
		return // whoever comes by next tries again
	}
	for _, lane := range lanes {
		if worktree.OccupantOf(lane) == (worktree.Occupant{}) || lane.TaskID == 0 || worktree.IsAskedToKeep(lane) {
			continue
		}
		t, err := m.Board.Get(ctx, lane.TaskID)
		if errors.Is(err, muster.ErrNotFound) || err == nil && t.Worktree != lane.Name {
			m.putAside(ctx, lane.Name)
		}
	}
}

// putAside archives a lane that no task names any more, and reports whether it did. One in which somebody stands is left
// to them; what cannot be archived is kept.
func (m *Member) putAside(ctx context.Context, lane muster.Name) bool {
	if err := m.occupy(ctx, lane); err != nil { // so that nobody comes in meanwhile
		if !errors.Is(err, muster.ErrHeld) {
			m.logDropped(ctx, "putting the lane "+string(lane)+" aside", err)
		}
		return false
	}
	_, err := m.Lanes.Archive(ctx, lane)
	m.logDropped(ctx, "archiving the lane "+string(lane), err)
	return err == nil
}

// occupant is the member, where it stands.
func (m *Member) occupant() worktree.Occupant {
	return worktree.Occupant{Member: m.name(), Host: m.Record.Host}
}

// occupy makes the member the lane's occupant. Held: somebody else stands there and has not left, in a process that is
// alive, be it this one or a stopped one: its commands may still write there.
func (m *Member) occupy(ctx context.Context, name muster.Name) error {
	lane, err := m.Lanes.Get(ctx, name)
	if err != nil {
		return err
	}
	was := worktree.OccupantOf(lane)
	switch {
	case was == m.occupant():
		return nil
	case was.Host != "":
		if alive, err := m.Roster.Alive(ctx, was.Host); err != nil {
			return err
		} else if alive {
			return muster.Errorf(muster.Held, "%s stands in the lane %s (%s)", was.Member, name, m.Roster.Where(ctx, was.Host))
		}
	}
	return m.Lanes.Occupy(ctx, name, was, m.occupant())
}

// leaveLane says that nothing of the member's runs in the lane any more. Where that cannot be said, or somebody else
// stands there, the next owner gets a fresh one.
func (m *Member) leaveLane(ctx context.Context, name muster.Name) {
	if name == "" {
		return
	}
	lastly, cancel := finally(ctx)
	defer cancel()
	err := m.Lanes.Occupy(lastly, name, m.occupant(), worktree.Occupant{})
	m.logDropped(lastly, "leaving the lane "+string(name), err)
}
