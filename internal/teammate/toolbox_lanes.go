package teammate

import (
	"context"
	"errors"
	"fmt"

	"muster"
	"muster/internal/board"
	"muster/internal/clock"
	"muster/internal/failpoint"
	"muster/internal/roster"
	"muster/internal/worktree"
)

// laneKeeper finds and makes the lanes of the member's tasks. At most one member's commands run in a lane: a member
// becomes its occupant only when there is none, or when the occupant's process is dead.
type laneKeeper struct {
	occupant  worktree.Occupant // the member
	worktrees Lanes
	board     *board.Board
	lander    Lander
	roster    *roster.Roster
	diary     *diary
}

const maxLaneNames = 100

// forTask returns the lane of a claimed task: an earlier owner's, the one in which the member works, or a fresh one.
// had is what it holds.
func (k laneKeeper) forTask(ctx context.Context, t *muster.Task, own *ownLane) (
	lane muster.Lane, had string, err error) {
	old := t.Worktree
	if old != "" {
		if lane, had, err = k.inherit(ctx, *t); err == nil {
			return lane, had, nil
		}
	}
	lane, isOwn := own.get()
	if !isOwn {
		if lane, err = k.newLane(ctx, *t); err != nil {
			return lane, "", err
		}
	}
	// The lane exists before the task names it: what a crash leaves here the next owner archives.
	claimed := *t
	if _, err = k.worktrees.Enter(ctx, lane.Name); err == nil {
		claimed, err = k.board.SetLane(ctx, t.ID, t.Fence, lane.Name, lane.Base)
	}
	if err != nil {
		if !isOwn {
			k.leave(ctx, lane.Name)
		}
		return lane, "", err
	}
	failpoint.Hit("teammate.laned")
	*t = claimed
	if isOwn {
		own.forget()
		return k.inherit(ctx, *t)
	}
	if old != "" && old != lane.Name {
		k.archive(ctx, old)
	}
	return lane, "", nil
}

func (k laneKeeper) inherit(ctx context.Context, t muster.Task) (lane muster.Lane, had string, err error) {
	lane, err = k.worktrees.Get(ctx, t.Worktree)
	if err == nil && lane.Base != t.Base {
		err = muster.Errorf(muster.Invalid, "the lane %s was not made for task %d as it is now", lane.Name, t.ID)
	}
	if err == nil {
		err = k.occupy(ctx, lane.Name)
	}
	if err == nil {
		_, err = k.worktrees.Enter(ctx, lane.Name)
	}
	if err == nil && lane.TaskID == 0 { // the lead had it before the task
		lane.TaskID, err = t.ID, k.worktrees.Bind(ctx, lane.Name, t.ID)
	}
	if err != nil {
		return lane, "", err
	}
	if changed, err := k.worktrees.Changed(ctx, lane.Name); err == nil && changed {
		had, _ = k.worktrees.Status(ctx, lane.Name)
	}
	return lane, had, nil
}

func (k laneKeeper) newLane(ctx context.Context, t muster.Task) (lane muster.Lane, err error) {
	base, err := k.lander.Target(ctx)
	if err != nil {
		return lane, err
	}
	return k.create(ctx, muster.LaneName(t.ID, t.Subject), t, base)
}

// create makes a lane and makes the member its occupant. t is the zero Task for a lane without a task. If there is a
// lane of the name, the new one gets a number.
func (k laneKeeper) create(ctx context.Context, wanted muster.Name, t muster.Task, base string) (
	lane muster.Lane, err error) {
	name := wanted
	for n := 2; ; n++ {
		lane, err = k.worktrees.Create(ctx, name, t.ID, base)
		if errors.Is(err, muster.ErrHeld) && k.archiveUnnamed(ctx, name, t) {
			lane, err = k.worktrees.Create(ctx, name, t.ID, base)
		}
		if err == nil {
			err = k.worktrees.Occupy(ctx, name, worktree.Occupant{}, k.occupant)
		}
		if !errors.Is(err, muster.ErrHeld) || n > maxLaneNames {
			return lane, err
		}
		suffix := fmt.Sprintf("-%d", n)
		name = wanted[:min(len(wanted), 32-len(suffix))] + muster.Name(suffix)
	}
}

// archiveUnnamed archives a lane that was made for the task and that it does not name: the process that made it died or
// lost the claim before it could write the name. It reports whether it did.
func (k laneKeeper) archiveUnnamed(ctx context.Context, name muster.Name, t muster.Task) bool {
	lane, err := k.worktrees.Get(ctx, name)
	return err == nil && t.ID != 0 && lane.TaskID == t.ID && name != t.Worktree && lane.Status == muster.LaneActive &&
		k.archive(ctx, name)
}

// archiveAbandoned archives the lanes in which a process died after their tasks had got another one, or were deleted.
// The lane of an owner that lives on is left alone.
func (k laneKeeper) archiveAbandoned(ctx context.Context) {
	lanes, err := k.worktrees.List(ctx)
	k.diary.dropped(ctx, "listing the lanes to archive", err) // the next member that starts tries again
	for _, lane := range lanes {
		if worktree.OccupantOf(lane) == (worktree.Occupant{}) || lane.TaskID == 0 || worktree.IsAskedToKeep(lane) {
			continue
		}
		t, err := k.board.Get(ctx, lane.TaskID)
		if errors.Is(err, muster.ErrNotFound) || err == nil && t.Worktree != lane.Name {
			k.archive(ctx, lane.Name)
		}
	}
}

func (k laneKeeper) archive(ctx context.Context, lane muster.Name) bool {
	err := k.occupy(ctx, lane) // the member is the occupant meanwhile, so that nobody enters
	if err == nil {
		_, err = k.worktrees.Archive(ctx, lane)
	}
	if !errors.Is(err, muster.ErrHeld) {
		k.diary.dropped(ctx, "archiving the lane "+string(lane), err)
	}
	return err == nil
}

// occupy makes the member the lane's occupant. It is Held when the process of another occupant is alive, even if
// stopped: its commands may still write there.
func (k laneKeeper) occupy(ctx context.Context, name muster.Name) error {
	lane, err := k.worktrees.Get(ctx, name)
	if err != nil {
		return err
	}
	was := worktree.OccupantOf(lane)
	switch {
	case was == k.occupant:
		return nil
	case was.Host != "":
		if alive, err := k.roster.Alive(ctx, was.Host); err != nil {
			return err
		} else if alive {
			return muster.Errorf(muster.Held, "%s works in the lane %s (%s)", was.Member, name,
				k.roster.Where(ctx, was.Host))
		}
	}
	return k.worktrees.Occupy(ctx, name, was, k.occupant)
}

// leave notes that no command of the member runs in the lane any more. If that fails, the next owner gets a fresh lane.
func (k laneKeeper) leave(ctx context.Context, name muster.Name) {
	if name == "" {
		return
	}
	last, cancel := clock.Detach(ctx)
	defer cancel()
	err := k.worktrees.Occupy(last, name, k.occupant, worktree.Occupant{})
	if !errors.Is(err, muster.ErrNotFound) { // it went with its landed task
		k.diary.dropped(last, "leaving the lane "+string(name), err)
	}
}
