package muster

// MemberStatus is what a member does.
type MemberStatus string

// The statuses of a member.
const (
	Working  MemberStatus = "working"
	Idle     MemberStatus = "idle"
	Shutdown MemberStatus = "shutdown"
)

// IdleReason is why a member is idle.
type IdleReason string

// Why a member is idle.
const (
	IdleNoToolUse IdleReason = "no_tool_use"       // the model stopped calling tools
	IdleMessages  IdleReason = "awaiting_messages" // it waits for mail
	IdleTasks     IdleReason = "awaiting_tasks"    // it waits for a task it may take
	IdleTimeout   IdleReason = "timeout"           // nothing came in time
)

// Member is one member: .team/members/NAME.json. The lead is one too.
type Member struct {
	Name       Name         `json:"name"`
	Role       string       `json:"role"`
	Status     MemberStatus `json:"status"`
	IdleReason IdleReason   `json:"idle_reason,omitempty"`
	Doing      string       `json:"doing,omitempty"` // for people: "parked until 14:32", "waits for plan 7f2c91aa"
	Task       TaskID       `json:"task_id,omitempty"`
	AgentID    string       `json:"agent_id,omitempty"` // name@team
	Model      string       `json:"model,omitempty"`
	JoinedAt   float64      `json:"joined_at,omitempty"`
	Since      float64      `json:"since,omitempty"` // of the status
	Turns      int          `json:"turns,omitempty"`
	// Host is the process that runs it, "" when none does; see roster.
	Host HostID `json:"host,omitempty"`
	// Epoch counts the times it was taken over or spawned again.
	Epoch       int    `json:"epoch,omitempty"`
	StartedBy   Name   `json:"started_by,omitempty"`
	Prompt      string `json:"prompt,omitempty"` // what it was spawned with
	RequirePlan bool   `json:"require_plan,omitempty"`
	Extra       Extra  `json:"-"`
}

// HostID names one life of one process: the lease it holds, a dot, and how often that lease's slot was taken.
type HostID string

// memberFields has no methods, so that package json fills and writes the fields by itself.
type memberFields Member

// MarshalJSON writes m with the fields it did not know.
func (m Member) MarshalJSON() ([]byte, error) { return marshalKeep(memberFields(m), m.Extra) }

// UnmarshalJSON reads a member, also as other programs write it: active for working.
func (m *Member) UnmarshalJSON(data []byte) error {
	err := unmarshalKeep(data, (*memberFields)(m), &m.Extra, memberFields{})
	if err == nil && m.Status == "active" {
		m.Status = Working
	}
	return err
}
