package worktree

import (
	"cmp"
	"context"
	"errors"
	"time"

	"muster"
	"muster/internal/clock"
	"muster/journal"
)

// recorder writes what happens to lanes: to the journal, and to the lanes' own log .worktrees/events.jsonl, which
// other programs read.
type recorder struct {
	log     muster.Log
	journal *journal.Journal
	task    func(context.Context, muster.TaskID) (muster.Task, error) // nil: nobody knows the tasks
}

type event struct {
	kind  string      // the journal's word for it; "": the journal does not have it
	name  string      // the word of the lanes' own log; "": that log does not have it
	ref   string      // of journal.LaneArchived: where the lane is archived
	cause error       // why it failed
	task  muster.Task // the zero value: only the id is known, and the lane has it
}

// entry is a line of the lanes' own log. Its names and their order are those of the older format, so that programs
// which read it go on working.
type entry struct {
	Event    string     `json:"event"`
	At       float64    `json:"ts"`
	Task     *entryTask `json:"task,omitempty"`
	Worktree entryLane  `json:"worktree"`
	Error    string     `json:"error,omitempty"`
}

type entryTask struct {
	ID      muster.TaskID     `json:"id"`
	Subject string            `json:"subject,omitempty"`
	Status  muster.TaskStatus `json:"status,omitempty"`
}

type entryLane struct {
	Name   muster.Name       `json:"name"`
	Path   string            `json:"path,omitempty"`
	Branch string            `json:"branch,omitempty"`
	Status muster.LaneStatus `json:"status"`
}

// record writes an event, also when ctx has just ended: what has happened must be told.
func (r recorder) record(ctx context.Context, lane muster.Lane, e event) error {
	ctx, cancel := clock.Detach(ctx)
	defer cancel()
	text := ""
	if e.cause != nil {
		text = e.cause.Error()
	}
	if e.name != "" {
		line := entry{Event: e.name, At: muster.UnixTime(time.Now()), Error: text,
			Worktree: entryLane{Name: lane.Name, Path: lane.Path, Branch: lane.Branch, Status: lane.Status}}
		if id := cmp.Or(e.task.ID, lane.TaskID); id != 0 {
			t := e.task
			if t.ID == 0 && r.task != nil {
				var err error // what cannot be read leaves the id alone
				if t, err = r.task(ctx, id); errors.Is(err, muster.ErrNotFound) {
					t.Status = taskDeleted
				}
			}
			line.Task = &entryTask{ID: id, Subject: t.Subject, Status: t.Status}
		}
		data, err := muster.MarshalLine(line)
		if err != nil {
			return muster.Errorf(muster.Invalid, "the event %s cannot be written: %w", e.name, err)
		}
		if _, err := r.log.Append(ctx, muster.StreamLanes, muster.Anywhere, data); err != nil {
			return err
		}
	}
	if e.kind == "" {
		return nil
	}
	fields := map[string]any{"lane": string(lane.Name)}
	switch e.kind {
	case journal.LaneCreated:
		fields["branch"] = lane.Branch
	case journal.LaneArchived:
		fields["ref"] = e.ref
	case journal.LaneFailed:
		fields["text"] = text
	}
	return r.journal.Emit(ctx, muster.Event{Kind: e.kind, Task: lane.TaskID, Fields: fields})
}

// The statuses that only events have: a task that is deleted has no document, and a removed lane has no row.
const (
	taskDeleted muster.TaskStatus = "deleted"
	laneRemoved muster.LaneStatus = "removed"
)

// fail marks a lane that cannot be finished as failed, and then writes why; name is for the lanes' own log. A lane that
// is gone by now is no error.
func (l *Lanes) fail(ctx context.Context, lane muster.Lane, name string, cause error) error {
	lane, err := l.index.setMade(ctx, lane.Name, muster.LaneFailed)
	if err != nil {
		return ignoreNotFound(err)
	}
	return l.events.record(ctx, lane, event{kind: journal.LaneFailed, name: name, cause: cause})
}
