package muster

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"unicode"
)

// TaskStatus is where a task stands.
type TaskStatus string

// The statuses of a task.
const (
	Pending        TaskStatus = "pending"         // claimable once its blockers are complete
	InProgress     TaskStatus = "in_progress"     // claimed
	Landing        TaskStatus = "landing"         // finished by its owner; being merged, checked, landed
	Completed      TaskStatus = "completed"       // landed, or done without a change
	NeedsAttention TaskStatus = "needs_attention" // given up until somebody looks; keeps blocking its dependants
)

// Where a claim came from.
const (
	SourceAuto   = "auto"   // an idle teammate found it on the board
	SourceManual = "manual" // a tool call or the command line
	SourceUndo   = "undo"   // the user takes back landed tasks; a process that holds the lease for that does it
)

// Task is one task: .tasks/task_N.json.
type Task struct {
	ID          TaskID     `json:"id"`
	Subject     string     `json:"subject"`
	Description string     `json:"description"`
	Status      TaskStatus `json:"status"`
	Owner       Name       `json:"owner"` // "" when nobody's
	// BlockedBy are the unfinished blockers: what other programs test for emptiness. Derived from DependsOn.
	BlockedBy []TaskID `json:"blockedBy"`
	// DependsOn are all blockers, never shortened: the graph.
	DependsOn []TaskID `json:"dependsOn"`
	// Blocks are the dependants. They are derived from the DependsOn of the other tasks and never stored: see
	// StoredTask.
	Blocks    []TaskID `json:"blocks"`
	ClaimRole string   `json:"claim_role,omitempty"` // only members of this role may claim it
	Priority  int      `json:"priority"`             // higher goes first; 0 by default
	// Files are paths, directories or globs that its work is expected to change. The board hands out other tasks first
	// than one whose files somebody works on.
	Files       []string `json:"files,omitempty"`
	Worktree    Name     `json:"worktree"`       // its lane
	Base        string   `json:"base,omitempty"` // the commit its lane was made from
	ClaimedAt   float64  `json:"claimed_at,omitempty"`
	ClaimSource string   `json:"claim_source,omitempty"`
	// Fence rises with each claim, and whenever a claim is taken away. Who acts for a claim names the fence that it
	// got; an older one is refused.
	Fence int `json:"fence"`
	// Attempts count the times that an owner gave the task up or had to: at the turn limit, at a call repeated
	// without end, by release_task, after a failed model, or without a lane. The third makes it needs_attention.
	Attempts int `json:"attempts"`
	// Returns count the landings in a row that came back because of the work itself, such as after a red check.
	Returns int `json:"returns,omitempty"`
	// Rounds count all landings in a row that came back, those too that only a moving target has sent back.
	Rounds int `json:"rounds,omitempty"`
	// Met are the landed commits with which those landings have collided.
	Met []string `json:"met,omitempty"`
	// Sides says what the task and the work that it met were for, and what each has changed, if it needs attention for
	// those landings. Most of it was written by others.
	Sides string `json:"sides,omitempty"`
	// Returned says in a line why the last landing came back, or could not begin. It goes when the task is completed.
	Returned    string  `json:"returned,omitempty"`
	CreatedBy   Name    `json:"created_by,omitempty"`
	CreatedAt   float64 `json:"created_at,omitempty"`
	UpdatedAt   float64 `json:"updated_at,omitempty"`
	RequirePlan bool    `json:"require_plan,omitempty"`
	// Review says that its work is reviewed before it lands, also where the run does not ask for that.
	Review bool `json:"review,omitempty"`
	// Key is what the playbook of the run knows the task by. It says, after a crash, which of them are there.
	Key     string          `json:"playbook_task,omitempty"`
	Undoes  []TaskID        `json:"undoes,omitempty"` // the landed tasks that it takes back
	Landing *PendingLanding `json:"landing,omitempty"`
	Landed  *Landed         `json:"landed"`
	Effects []Effect        `json:"effects,omitempty"`
	// CompletedBy is who completed it. It is empty when another program wrote that it is completed; an earlier version
	// then made it System. Nothing was landed by us in both cases.
	CompletedBy Name   `json:"completed_by,omitempty"`
	Result      string `json:"result,omitempty"` // the owner's closing summary, or why it needs attention
	// Note is what the last attempt left for the next one.
	Note  string `json:"note,omitempty"`
	Extra Extra  `json:"-"`
}

// PendingLanding is a landing under way.
type PendingLanding struct {
	Head    string `json:"head"` // the lane's head that is to land
	Onto    string `json:"onto"` // the target's tip that it is merged against
	Receipt string `json:"receipt,omitempty"`
	Summary string `json:"summary,omitempty"` // the owner's, for the commit's body
}

// Landed is the proof that a task's work is on the target.
type Landed struct {
	Commit  string  `json:"commit"`
	Receipt string  `json:"receipt"` // one of the Receipt words; programs accept others
	Check   string  `json:"check,omitempty"`
	Seconds float64 `json:"seconds,omitempty"` // how long the check took
	// CoveredBy is the task with whose landing the check passed on a tree that has this one's work too.
	CoveredBy TaskID `json:"covered_by,omitempty"`
	// Advisory names the advisory checks that were red on its tree, with commas between them.
	Advisory string `json:"advisory,omitempty"`
	Flaky    bool   `json:"flaky,omitempty"` // the check failed on this very tree, and passed when it ran again
	// Review says who has approved the work before it landed, as in "approved by reviewer (MODEL)"; "": nobody was
	// asked.
	Review string `json:"review,omitempty"`
}

// What a landing's receipt says of the check.
const (
	ReceiptGreen     = "ok"           // the check passed on the merged tree
	ReceiptStillRed  = "still red"    // the base was red and the merged tree is too: landed, never called verified
	ReceiptUnchecked = "not verified" // no check is set
	ReceiptCovered   = "covered"      // the check passed on a later commit that landed in the same step
)

// Effect is something that must still follow from a task's last change; whoever comes by settles it, any number of
// times, then removes it.
type Effect string

// The effects of a task's steps, with what each of them changes.
const (
	EffectUnblock Effect = "unblock" // dependants' blockedBy
	EffectTell    Effect = "tell"    // mail to the lead, and to the user about one that needs attention
	EffectArchive Effect = "archive" // the lane
)

// Open reports whether t still asks for work: not completed and not given up.
func (t Task) Open() bool { return t.Status != Completed && t.Status != NeedsAttention }

// Claimed reports whether t is in somebody's hand: at work on it, or landing it.
func (t Task) Claimed() bool { return t.Status == InProgress || t.Status == Landing }

// Claimable reports whether a member of the role may claim t now.
func (t Task) Claimable(role string) bool {
	return t.Status == Pending && t.Owner == "" && len(t.BlockedBy) == 0 && t.RoleMay(role)
}

// RoleMay reports whether t's role gate lets the role in.
func (t Task) RoleMay(role string) bool {
	return t.ClaimRole == "" || t.ClaimRole == role || RoleKey(t.ClaimRole) == RoleKey(role)
}

// RoleName returns the name of a role in one word, as a task has it: what separates its words becomes hyphens.
func RoleName(role string) string { return strings.Join(strings.Fields(role), "-") }

// RoleKey returns the same text for names of one role, in whatever script: those that differ in upper and lower case
// and in what separates their words only, such as "Frontend Developer" and "frontend-developer".
func RoleKey(role string) string {
	words := strings.FieldsFunc(strings.ToLower(strings.ToUpper(role)), func(r rune) bool {
		return r == '_' || unicode.IsSpace(r) || unicode.Is(unicode.Pd, r)
	})
	return strings.Join(words, "-")
}

type taskFields Task // without methods

// MarshalJSON writes t with the fields it did not know.
func (t Task) MarshalJSON() ([]byte, error) { return marshalKeep(t.fields(), t.Extra) }

// fields returns t without methods, and with lists that are never null: other programs' readers expect lists.
func (t Task) fields() taskFields {
	for _, ids := range []*[]TaskID{&t.BlockedBy, &t.DependsOn, &t.Blocks} {
		if *ids == nil {
			*ids = []TaskID{}
		}
	}
	return taskFields(t)
}

// UnreadableTask is a task whose document cannot be read, and why. It blocks the tasks that depend on it, because
// nobody knows whether it is completed.
type UnreadableTask struct {
	ID  TaskID
	Why string
}

// StoredTask is a Task as its document has it: without Blocks, which whoever reads the whole board derives from the
// tasks' DependsOn. Each edge is stored once, so the two ends of it cannot disagree. A document of an earlier version
// that still has the field is read like any other, and loses it at its next write.
type StoredTask Task

// MarshalJSON writes t as Task does, without the field blocks.
func (t StoredTask) MarshalJSON() ([]byte, error) {
	stored := struct {
		taskFields
		Blocks *struct{} `json:"blocks,omitempty"` // hides the field of taskFields, and is left out
	}{taskFields: Task(t).fields()}
	return marshalKeep(stored, t.Extra)
}

// UnmarshalJSON reads a task, also as other programs write it: blocked_by, required_role, owner null, and blockedBy
// without dependsOn.
func (t *Task) UnmarshalJSON(data []byte) error {
	var f taskFields
	var extra Extra
	if err := unmarshalKeep(data, &f, &extra, taskFields{Status: Pending}); err != nil {
		return err
	}
	var role string
	if err := errors.Join(extra.take("blocked_by", &f.BlockedBy), extra.take("required_role", &role)); err != nil {
		return err
	}
	f.ClaimRole = cmp.Or(f.ClaimRole, role)
	if f.DependsOn == nil {
		f.DependsOn = slices.Clone(f.BlockedBy)
	}
	if len(extra) > 0 {
		f.Extra = extra
	}
	*t = Task(f)
	return nil
}
