package worktree

import (
	"context"
	"time"

	"muster"
	"muster/journal"
)

// note is a line of .worktrees/events.jsonl, for its readers; the journal has the same in its own words.
type note struct {
	Event    string    `json:"event"`
	At       float64   `json:"ts"`
	Task     *noteTask `json:"task,omitempty"`
	Worktree noteLane  `json:"worktree"`
	Error    string    `json:"error,omitempty"`
}

type noteTask struct {
	ID      muster.TaskID     `json:"id"`
	Subject string            `json:"subject,omitempty"`
	Status  muster.TaskStatus `json:"status,omitempty"`
}

type noteLane struct {
	Name   muster.Name       `json:"name"`
	Path   string            `json:"path,omitempty"`
	Branch string            `json:"branch,omitempty"`
	Status muster.LaneStatus `json:"status"`
}

// tell writes what happened to a lane: kind into the journal ("": nothing there), event into the lanes' own log.
// What has happened is told also when ctx has ended meanwhile.
func (l *Lanes) tell(ctx context.Context, kind, event string, lane muster.Lane, ref string, cause error) error {
	ctx, cancel := grace(ctx)
	defer cancel()
	n := note{Event: event, At: muster.Stamp(time.Now()),
		Worktree: noteLane{Name: lane.Name, Path: lane.Path, Branch: lane.Branch, Status: lane.Status}}
	if lane.TaskID != 0 {
		n.Task = &noteTask{ID: lane.TaskID}
	}
	if cause != nil {
		n.Error = cause.Error()
	}
	if event != "" {
		if err := l.write(ctx, n); err != nil {
			return err
		}
	}
	if kind == "" {
		return nil
	}
	fields := map[string]any{"lane": string(lane.Name)}
	switch kind {
	case journal.LaneCreated:
		fields["branch"] = lane.Branch
	case journal.LaneArchived:
		fields["ref"] = ref
	case journal.LaneFailed:
		fields["text"] = n.Error
	}
	return l.journal.Emit(ctx, muster.Event{Kind: kind, At: n.At, Task: lane.TaskID, Fields: fields})
}

// write appends to the lanes' own log.
func (l *Lanes) write(ctx context.Context, n note) error {
	line, err := muster.Line(n)
	if err != nil {
		return muster.Errorf(muster.Invalid, "the event %s cannot be written: %w", n.Event, err)
	}
	_, err = l.log.Append(ctx, muster.StreamLanes, muster.Anywhere, line)
	return err
}

// tellCompleted writes into the lanes' own log that a lane's task is done; the journal has it from the board.
func (l *Lanes) tellCompleted(ctx context.Context, lane muster.Lane, t muster.Task) error {
	ctx, cancel := grace(ctx)
	defer cancel()
	return l.write(ctx, note{Event: "task.completed", At: muster.Stamp(time.Now()),
		Task:     &noteTask{ID: t.ID, Subject: t.Subject, Status: t.Status},
		Worktree: noteLane{Name: lane.Name, Path: lane.Path, Branch: lane.Branch, Status: lane.Status}})
}
