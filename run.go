package muster

import (
	"slices"
	"strings"
)

// Run is the run under way, or the last one: .team/run.json.
type Run struct {
	Team Name   `json:"team"`
	Goal string `json:"goal"`
	// FirstWords are what the user has said first in a conversation, where Goal is "" until there is a task.
	FirstWords string `json:"first_words,omitempty"`
	Check      string `json:"check,omitempty"` // the command that proves the merged tree; "": nothing is verified
	// Checks are the checks, where there are several. Check then has the names of those that are required.
	Checks []NamedCheck `json:"checks,omitempty"`
	Setup  string       `json:"setup,omitempty"`  // runs before the check in a fresh checkout
	Review string       `json:"review,omitempty"` // the role that reviews all work before it lands; "": none does
	// Directory is where members' commands start and relative paths begin, relative to the root; "": at the root.
	Directory string  `json:"directory,omitempty"`
	Target    string  `json:"target"` // the branch that work lands on, without refs/heads/
	Model     string  `json:"model,omitempty"`
	Cap       int     `json:"cap"`                  // how many teammates at most
	Budget    string  `json:"budget,omitempty"`     // what the run may cost in all
	Base      string  `json:"base,omitempty"`       // the target's tip when the run started
	BaseCheck string  `json:"base_check,omitempty"` // what the check said of the base: "ok", "red", "" not run yet
	StartedAt float64 `json:"started_at"`
	EndedAt   float64 `json:"ended_at,omitempty"` // 0 while it is under way, or was interrupted
	Stopped   string  `json:"stopped,omitempty"`  // why it stopped with work left, in a line; "": it did not
	Away      float64 `json:"away,omitempty"`     // for how many seconds it had stopped, all in all
	// First and Open say which tasks belong to the run: those from First on, and those that were open when it started.
	// A record of an earlier version has neither, and First is 0.
	First TaskID   `json:"first_task,omitempty"`
	Open  []TaskID `json:"open_tasks,omitempty"`
	// Tips are where the target may be: where it was found at the start, and what has landed or is just landing. A
	// record of an earlier version has none, and then the target may be anywhere.
	Tips []Tip `json:"tips,omitempty"`
	// Into is the branch of the user's, without refs/heads/, that is moved forward to the target at the end: they had
	// it checked out when they named it for the run. "": none.
	Into string `json:"into,omitempty"`
	// Playbook is where the run's tasks come from; nil: from its lead.
	Playbook *Playbook `json:"playbook,omitempty"`
	Extra    Extra     `json:"-"`
}

// NamedCheck is one of several commands that prove the merged tree together.
type NamedCheck struct {
	Name    string `json:"name"`
	Command string `json:"command"`
	// Paths are patterns of the files on which it depends; none: on all. They are those of doublestar, with slashes and
	// from the root, and the name of a directory stands for all that is in it.
	Paths    []string `json:"paths,omitempty"`
	Timeout  float64  `json:"timeout,omitempty"`  // in seconds; 0: that of the run
	Advisory bool     `json:"advisory,omitempty"` // work lands while it fails
}

// RequiredNames returns the names of the checks that must pass, with commas between them.
func RequiredNames(checks []NamedCheck) string {
	var names []string
	for _, c := range checks {
		if !c.Advisory {
			names = append(names, c.Name)
		}
	}
	return strings.Join(names, ", ")
}

// CheckText returns what is checked, as a member reads it: the command, or each of several with its name.
func (r Run) CheckText() string {
	var lines []string
	for _, c := range r.Checks {
		name := c.Name
		if c.Advisory {
			name += " (advisory)"
		}
		lines = append(lines, name+": "+c.Command)
	}
	if len(lines) == 0 {
		return r.Check
	}
	return strings.Join(lines, "; ")
}

// Playbook is the playbook of a run. The runtime puts its tasks on the board and spawns the teammates for them. The
// lead is asked only when something needs it.
type Playbook struct {
	Name string `json:"name"`
	Hash string `json:"hash"` // the SHA-256 of its file
	// Tasks are those to put on the board, each after those that it waits for. They stay here, all of them, until all
	// are there.
	Tasks []PlannedTask `json:"tasks,omitempty"`
}

// PlannedTask is a task that a playbook puts on the board.
type PlannedTask struct {
	Key         string   `json:"key"` // unique in the playbook
	Subject     string   `json:"subject"`
	Description string   `json:"description,omitempty"`
	BlockedBy   []string `json:"blocked_by,omitempty"` // keys
	Role        string   `json:"role,omitempty"`
	Priority    int      `json:"priority,omitempty"`
	RequirePlan bool     `json:"require_plan,omitempty"`
	Review      bool     `json:"review,omitempty"`
	Files       []string `json:"files,omitempty"`
}

// Tip is a commit at which the target may be. Onto is the tip that it landed on; "" is the one of the run's start, or
// one that the user has accepted.
type Tip struct {
	Commit string `json:"commit"`
	Onto   string `json:"onto,omitempty"`
}

// runFields has no methods, so that package json fills and writes the fields by itself.
type runFields Run

// MarshalJSON writes r with the fields it did not know.
func (r Run) MarshalJSON() ([]byte, error) { return marshalKeep(runFields(r), r.Extra) }

// UnmarshalJSON reads a run and keeps what it does not know.
func (r *Run) UnmarshalJSON(data []byte) error {
	return unmarshalKeep(data, (*runFields)(r), &r.Extra, runFields{})
}

// Has reports whether a task was made or done in the run: by its id, which no clock changes, else by its stamps.
func (r Run) Has(t Task) bool {
	return r.First > 0 && r.HasID(t.ID) || max(t.CreatedAt, t.UpdatedAt) >= r.StartedAt
}

// HasID reports whether the task of that id was made in the run, or was open when it started. It is true for every task
// when the record does not say which ones belong to the run.
func (r Run) HasID(id TaskID) bool { return id >= r.First || slices.Contains(r.Open, id) }

// MayBeAt returns the commits at which the run's target may be, by its record, or the target itself.
func (r Run) MayBeAt() []string {
	if len(r.Tips) == 0 {
		return []string{"refs/heads/" + r.Target}
	}
	commits := make([]string, len(r.Tips))
	for i, t := range r.Tips {
		commits[i] = t.Commit
	}
	return commits
}

// Left returns the open tasks of a board. stopped reports whether some of them are this run's, so that it stopped
// before its end and can go on. Tasks that were added after its end wait for the next run.
func (r Run) Left(tasks []Task) (open []Task, stopped bool) {
	for _, t := range tasks {
		if t.Open() {
			open = append(open, t)
			stopped = stopped || r.StartedAt > 0 && (r.EndedAt == 0 || t.CreatedAt <= r.EndedAt)
		}
	}
	return open, stopped
}
