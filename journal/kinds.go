package journal

// The kinds of events. Behind each are the fields it carries beside event, ts, member and task_id. Seconds are
// float seconds; reasons and texts are for people and may change their wording.
//
// The run.
const (
	RunStarted = "run.started" // goal, target; the goal of a conversation is "" until run.goal
	RunResumed = "run.resumed" // goal, target
	RunGoal    = "run.goal"    // goal: of a run that began as a conversation, at its first task
	RunEnded   = "run.ended"   // text: the summary's first line; code: the exit code
	// and refused: calls that were refused, not_started: commands that could not start; each is left out at 0
	BudgetWarned = "budget.warned" // text: most of a budget is spent; scope: team, member, task or day; budget
	BudgetSpent  = "budget.spent"  // as in budget.warned: the team stops
	RunNote      = "run.note"      // text: said once, such as that uncommitted changes are part of no lane
	// and stop: true where the run stops there with its state kept; unverified: why what the check says proves nothing
	// of what lands
	CheckStarted = "check.started" // command: runs on the base now
	CheckBase    = "check.base"    // result: "ok", "red" or "cannot run"; seconds; command; failed: the first
)

// Members.
const (
	MemberSpawned  = "member.spawned"  // role
	MemberIdle     = "member.idle"     // reason: one of muster.IdleReason
	MemberWorking  = "member.working"  // -
	MemberShutdown = "member.shutdown" // reason
	MemberResumed  = "member.resumed"  // -
	MemberSteps    = "member.steps"    // done, of: how many of its own steps it has done; text: the one that it is at
)

// Agents that work for a member: subagents, and reviewers of its work. Member is the member for which one works. The
// events of its turns and tools have agent, its name, and role, too.
const (
	AgentStarted = "agent.started" // agent, role, model, text: what it is to do
	AgentEnded   = "agent.ended"   // agent, role, turns, seconds
)

// Turns and tools. Those of a helper have subagent: true, agent and role.
const (
	TurnStarted = "turn.started" // turn: of the phase; turns: of the member's life
	TurnEnded   = "turn.ended"   // stop, model, seconds, summary; tokens: input, output, cache_*
	// and turn: of a helper
	// and dollars: null where the price is not known; left out where nothing has a price
	ToolStarted = "tool.started" // tool, call: its id, text: what it does in few words
	// tool, call, seconds without waiting for answers, error: "" when it went well, output: some lines of what a
	// command has printed; of an edit the diff that docs/json.md describes, up to 4,000 bytes of lines, and added and
	// removed, the numbers of lines
	ToolEnded = "tool.ended"
	// and not_started: true where the shell has not found the command or could not start it
	ModelRetry = "model.retry" // text: why it waits; until: Unix seconds

	// A rule, the mode or the user has decided whether a call may run.
	PermissionDecided = "permission.decided" // tool, call, outcome: "allowed" or "denied"; what, rule

	// A hook has run. Outcome is "ok", "blocked", "changed" (it has changed a tool's input) or "failed"; text is the
	// reason, or what the hook says to the user.
	HookRan = "hook.ran" // hook: its event, such as PreToolUse; command, file, exit, seconds, outcome, text

	// A conversation was made shorter. Before and after are the tokens of the next request.
	ContextCompacted = "context.compacted" // how: "cleared" or "compressed"; text: why; before, after
)

// Tasks. member is the owner, or who did it when the task has no owner.
const (
	TaskCreated  = "task.created"  // subject, depends_on
	TaskUpdated  = "task.updated"  // changed: names of fields; "retry" when it was set back to pending
	TaskClaimed  = "task.claimed"  // role, source, subject, fence, lane
	TaskReleased = "task.released" // reason
	TaskRevoked  = "task.revoked"  // reason, by
	TaskLanding  = "task.landing"  // head
	TaskReturned = "task.returned" // text; failed: the first; log; seconds
	// and reason: "conflict", "check", "target" (it was moved), "empty" (the lane has no file), "review", "secret"
	// or "local" (a file of the user's)
	// and with: whose landed work it met, in a line; counts: whether the return counts towards needs_attention
	TaskRefused   = "task.refused"   // reason: why the runtime could not land it; the task stays as it is
	TaskCompleted = "task.completed" // subject, commit, receipt, check, seconds, covered_by: a task; flaky; result
	// and review: who has approved it
	TaskAttention   = "task.attention"    // reason
	TaskDeleted     = "task.deleted"      // subject
	TaskEdgeRemoved = "task.edge_removed" // blocker: the id that the task no longer waits for
)

// Checks of landings. Tasks are the ids of those whose work is checked together, in the order in which they would land.
const (
	LandingCheck   = "landing.check"   // tasks: their check begins
	LandingChecked = "landing.checked" // tasks; result: a receipt, "red" or "cannot run"; seconds; failed: the first
)

// Agents that the runtime asks about a landing. Member is the owner of the task.
const (
	ReviewStarted = "review.started" // role
	ReviewEnded   = "review.ended"   // role, model, seconds; result: "approved", "returned" or "none"; comments, text
)

// Mail. member is the sender of mail.sent and the reader of the others.
const (
	MailSent      = "mail.sent"      // to, type, id, text
	MailDelivered = "mail.delivered" // count
	MailRejected  = "mail.rejected"  // text
)

// Requests.
const (
	RequestCreated = "request.created" // request_id, kind, to, text
	RequestDecided = "request.decided" // request_id, kind, status, by, text, asked
)

// Lanes.
const (
	LaneCreated  = "lane.created"  // lane, branch
	LaneRemoved  = "lane.removed"  // lane
	LaneKept     = "lane.kept"     // lane
	LaneArchived = "lane.archived" // lane, ref
	LaneFailed   = "lane.failed"   // lane, text
	// The work in the lane of a task collides with that in another one, or with the target. Files have path, lines and
	// with_lines. With over: true it does so no longer.
	LaneCollides = "lane.collides" // with: the other task, 0 is the target; with_owner, files; landed: tasks; over
)

// MemorySaved says that a member has saved something for later runs.
const MemorySaved = "memory.saved" // name, type, text: its description

// The records.
const (
	// StateCorrupt says that one record cannot be read; the others can.
	StateCorrupt = "state.corrupt" // text, and table, key, rev where it is a document
	// StateForeign says that another program changed a record while the team worked, and that this was undone.
	StateForeign = "state.foreign" // text, file
)
