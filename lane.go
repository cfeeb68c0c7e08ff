package muster

// LaneStatus is where a lane stands. A removed one leaves the index.
type LaneStatus string

// The statuses of a lane.
const (
	LaneCreating LaneStatus = "creating" // the intent is written, the worktree may not be there yet
	LaneActive   LaneStatus = "active"
	LaneKept     LaneStatus = "kept"
	LaneFailed   LaneStatus = "failed"
)

// Lane is a git worktree for a task: an entry of .worktrees/index.json.
type Lane struct {
	Name      Name       `json:"name"`
	Path      string     `json:"path"`   // absolute
	Branch    string     `json:"branch"` // wt/NAME
	TaskID    TaskID     `json:"task_id,omitempty"`
	Status    LaneStatus `json:"status"`
	Base      string     `json:"base,omitempty"` // the commit it was made from
	CreatedAt float64    `json:"created_at,omitempty"`
	Extra     Extra      `json:"-"`
}

// laneFields has no methods, so that package json fills and writes the fields by itself.
type laneFields Lane

// MarshalJSON writes l with the fields it did not know.
func (l Lane) MarshalJSON() ([]byte, error) { return marshalKeep(laneFields(l), l.Extra) }

// UnmarshalJSON reads a lane and keeps what it does not know.
func (l *Lane) UnmarshalJSON(data []byte) error {
	return unmarshalKeep(data, (*laneFields)(l), &l.Extra, laneFields{})
}
