package team

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"muster"
	"muster/internal/text"
	"muster/internal/worktree"
	"muster/journal"
)

// Leftover is work of members that did not land in the run.
type Leftover struct {
	// Where it was made: a lane, or a member's scratch checkout, of which nothing lands.
	Lane   muster.Name
	Member muster.Name
	Task   muster.TaskID // of the lane; 0: none
	Ref    string        // the commit that keeps it; "": it is still where it was made
	Files  []string      // what the target would get by it
	// Dropped says that somebody gave it up on purpose: its task was deleted, it was removed or is kept by hand, or
	// another attempt at its task has landed.
	Dropped bool

	err error // why it cannot be told, or kept
}

// findLeftovers looks for what members have changed and what did not land. A run that leaves any of it has not done
// all, whatever its lead says; what was given up on purpose is only listed.
func (r *teamRun) findLeftovers(ctx context.Context, sum *Summary) {
	tip, err := r.site.repository.Resolve(ctx, r.site.target())
	if err != nil || tip == "" {
		return // verifyLanded says that the target is gone
	}
	tasks := map[muster.TaskID]muster.Task{}
	for _, t := range sum.Tasks {
		tasks[t.ID] = t
	}
	var found []worktree.Leftover
	archived, last, err := archivedLanes(ctx, r.site.journal, sum.Run, tasks)
	if err == nil {
		found, err = r.site.lanes.Unlanded(ctx, append([]string{tip}, sum.Run.MayBeAt()...), archived)
	}
	if err != nil {
		sum.Text = strings.TrimSpace(fmt.Sprintf("Whether everything has landed cannot be told: %s\n%s",
			muster.PlainText(err), sum.Text))
		sum.Code = cmp.Or(sum.Code, 3)
	}
	lanes, err := r.site.lanes.List(ctx)
	logDropped(ctx, r.site.log, "listing the lanes that are left", err)
	for _, f := range found {
		lane := muster.Lane{}
		if i := slices.IndexFunc(lanes, func(l muster.Lane) bool { return l.Name == f.Lane }); i >= 0 && f.Ref == "" {
			lane = lanes[i]
		}
		if f.Ref == "" && f.Lane != "" && isOthersLane(lane, sum.Run, tasks) {
			continue
		}
		// The landing has committed all that the lane held. What has moved to the user's repository since, such as the
		// commits of a submodule, git finds in the lane no longer.
		if f.Err != nil && f.Ref == "" && tasks[f.Task].Landed != nil {
			continue
		}
		sum.Left = append(sum.Left, Leftover{Lane: f.Lane, Member: f.Member, Task: f.Task, Ref: f.Ref, Files: f.Files,
			Dropped: isDropped(f, lane, tasks, last), err: f.Err})
	}
	var left, dropped string
	for _, l := range sum.Left {
		if l.Dropped {
			dropped += "\nGiven up: " + l.String()
		} else {
			left += "Not landed: " + l.String() + "\n"
			sum.Code = cmp.Or(sum.Code, 3)
		}
	}
	sum.Text = strings.TrimSpace(left + sum.Text + dropped)
}

// archivedLanes returns what was archived since the run began, by the journal, and the last lane of each task: the one
// in which it was completed. Other lanes of a task held earlier attempts.
func archivedLanes(
	ctx context.Context, j *journal.Journal, run muster.Run, tasks map[muster.TaskID]muster.Task,
) (all []worktree.Archived, last map[muster.TaskID]muster.Name, err error) {
	from, err := startOf(ctx, j, run)
	if err != nil {
		return nil, nil, err
	}
	last = map[muster.TaskID]muster.Name{}
	for e, err := range j.Read(ctx, from) {
		lane := muster.Name(e.Text("lane"))
		switch {
		case err != nil || e.At < run.StartedAt: // what cannot be read is told by whoever reads the journal for people
		case e.Kind == journal.LaneCreated:
			last[e.Task] = lane
		case e.Kind == journal.LaneArchived:
			all = append(all, worktree.Archived{Lane: lane, Task: e.Task, Ref: e.Text("ref")})
		}
	}
	for i, a := range all {
		all[i].HasLanded = tasks[a.Task].Landed != nil && cmp.Or(last[a.Task], a.Lane) == a.Lane
	}
	return all, last, nil
}

// startOf returns a position of the journal that is before all events of the run, and not long before.
func startOf(ctx context.Context, j *journal.Journal, run muster.Run) (muster.Pos, error) {
	for n := 1000; ; n *= 4 {
		from, err := j.Tail(ctx, n)
		if err != nil || from == 0 {
			return from, err
		}
		for e, err := range j.Read(ctx, from) {
			if err == nil {
				if e.At < run.StartedAt {
					return from, nil
				}
				break
			}
		}
	}
}

// isOthersLane reports whether a lane that still exists says nothing of the run: its task is open or needs attention,
// which the summary tells by itself, or it is of another run.
func isOthersLane(lane muster.Lane, run muster.Run, tasks map[muster.TaskID]muster.Task) bool {
	if t, ok := tasks[lane.TaskID]; ok && t.Worktree == lane.Name {
		return t.Open() || t.Status == muster.NeedsAttention || !run.Has(t)
	}
	return lane.CreatedAt < run.StartedAt
}

// isDropped reports whether somebody has given the work up on purpose. lane is the one that still has it, if one does.
func isDropped(
	f worktree.Leftover, lane muster.Lane, tasks map[muster.TaskID]muster.Task, last map[muster.TaskID]muster.Name,
) bool {
	_, hasTask := tasks[f.Task]
	switch {
	case f.Err != nil || f.Member != "" || worktree.IsScratch(f.Lane):
		return false
	case f.Ref == "":
		return worktree.IsAskedToKeep(lane) || f.Task != 0 && !hasTask
	}
	// An archived lane of no task was removed by hand.
	return !hasTask || cmp.Or(last[f.Task], f.Lane) != f.Lane
}

// maxLeftFiles is how many files of a leftover are named.
const maxLeftFiles = 5

// String says what was left where, and how to get it.
func (l Leftover) String() string {
	files := text.List(l.Files, maxLeftFiles)
	text := fmt.Sprintf("what lane %s has", l.Lane)
	if l.Member != "" {
		text = fmt.Sprintf("what %s has changed outside of a lane", l.Member)
	}
	if l.Task != 0 {
		text += fmt.Sprintf(" of task %d", l.Task)
	}
	switch {
	case l.err != nil && files != "":
		return fmt.Sprintf("%s (%s): %s", text, files, muster.PlainText(l.err))
	case l.err != nil:
		return fmt.Sprintf("%s cannot be told: %s", text, muster.PlainText(l.err))
	case l.Ref != "":
		return fmt.Sprintf("%s (%s), kept as %s", text, files, l.Ref)
	}
	return fmt.Sprintf("%s (%s): muster worktree list", text, files)
}
