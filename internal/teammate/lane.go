package teammate

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"muster"
	"muster/internal/board"
	"muster/internal/fault"
	"muster/internal/mailbox"
	"muster/internal/prompt"
)

// brief gives the task its lane, if it has none yet, and returns what its owner reads.
func (m *Member) brief(ctx context.Context, t muster.Task) (string, muster.MessageID, error) {
	lane, had, err := m.lane(ctx, &t)
	switch {
	case err == nil:
	case context.Cause(ctx) != nil: // not the lane's fault: the claim stands, and whoever goes on makes it
		return "", "", context.Cause(ctx)
	case errors.Is(err, muster.ErrFenced), errors.Is(err, muster.ErrNotFound) && m.held(ctx) != nil:
		m.Standing.leave(m.name())
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
	if old != "" && m.Standing.enter(m.name(), old) { // else its last owner has not left it yet
		if lane, err = m.Lanes.Get(ctx, old); err == nil && lane.Base == t.Base {
			if _, err = m.Lanes.Enter(ctx, lane.Name); err == nil {
				if changed, err := m.Lanes.Changed(ctx, lane.Name); err == nil && changed {
					had, _ = m.Lanes.Status(ctx, lane.Name)
				}
				return lane, had, nil
			}
		}
	}
	base, err := m.Lander.Target(ctx)
	if err != nil {
		return lane, "", err
	}
	name := muster.LaneName(t.ID, t.Subject)
	for n := 2; ; n++ {
		lane, err = m.Lanes.Create(ctx, name, t.ID, base)
		if errors.Is(err, muster.ErrHeld) && m.clearUnnamed(ctx, name, *t) {
			lane, err = m.Lanes.Create(ctx, name, t.ID, base)
		}
		if !errors.Is(err, muster.ErrHeld) || n > maxLaneNames {
			break
		}
		suffix := fmt.Sprintf("-%d", n)
		name = muster.LaneName(t.ID, t.Subject)
		name = name[:min(len(name), 32-len(suffix))] + muster.Name(suffix)
	}
	if err != nil {
		return lane, "", err
	}
	m.Standing.enter(m.name(), lane.Name)
	if _, err := m.Lanes.Enter(ctx, lane.Name); err != nil {
		return lane, "", err
	}
	claimed, err := m.Board.SetLane(ctx, t.ID, t.Fence, lane.Name, lane.Base)
	if err != nil {
		return lane, "", err
	}
	fault.Point("teammate.laned")
	*t = claimed
	if old != "" && old != lane.Name && !m.Standing.taken(old) {
		_, _ = m.Lanes.Archive(ctx, old) // what cannot be archived is kept
	}
	return lane, "", nil
}

// clearUnnamed puts a lane aside that was made for the task and that the task does not name: whoever made it died, or lost
// the claim, before it could say so.
func (m *Member) clearUnnamed(ctx context.Context, name muster.Name, t muster.Task) bool {
	lane, err := m.Lanes.Get(ctx, name)
	if err != nil || lane.TaskID != t.ID || lane.Name == t.Worktree || lane.Status != muster.LaneActive || m.Standing.taken(name) {
		return false
	}
	_, err = m.Lanes.Archive(ctx, name)
	return err == nil
}

// Standing is who stands in which lane in this process. A claim can be taken from an owner that lives on, with its
// tools running: the next one gets a fresh lane then.
type Standing struct {
	mu sync.Mutex
	by map[muster.Name]muster.Name // by lane
}

// NewStanding is of a process in which nobody stands anywhere.
func NewStanding() *Standing { return &Standing{by: map[muster.Name]muster.Name{}} }

// enter puts the member into the lane, and out of the one that it was in; false: somebody else is in it.
func (s *Standing) enter(member, lane muster.Name) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if who, ok := s.by[lane]; ok && who != member {
		return false
	}
	s.drop(member)
	s.by[lane] = member
	return true
}

func (s *Standing) taken(lane muster.Name) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.by[lane]
	return ok
}

func (s *Standing) leave(member muster.Name) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.drop(member)
}

func (s *Standing) drop(member muster.Name) {
	for lane, who := range s.by {
		if who == member {
			delete(s.by, lane)
		}
	}
}
