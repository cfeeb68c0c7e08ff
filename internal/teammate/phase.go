package teammate

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"muster"
	"muster/llm"
)

// phase is what a member counts within one work phase. Tools run side by side and count too; decisions are made
// on a copy of the counters.
type phase struct{ guarded[counters] }

// counters are the facts of a work phase. They are not stored: a restarted member begins a
// new phase.
type counters struct {
	started    time.Time // zero: no phase has begun in this process
	over       bool      // a tool ended the phase: idle, or a complete_task that landed
	leaves     bool      // the model has agreed to shut down
	onHold     bool      // the user stopped the phase, or a limit did in a conversation: the user speaks next
	turns      int       // of the model, since the phase began or was extended
	extended   bool      // the turn limit was met once, and as many turns granted again
	lastTurnAt time.Time
	stop       llm.Stop // of the last reply
	words      string   // of the last reply
	cutReplies int      // replies that were cut at max_tokens
	parks      int      // how often the member was parked for its model
	reminded   bool     // that a task is still claimed
	usedTodo   bool     // todo was called in this round

	restarted bool // the conversation was started afresh, because it had grown too long
	replies   int  // of the model, since then

	calls     map[string]llm.Call // of the last reply, by id
	pending   []string            // calls that the end of this process cut off, and that records answer
	lastCall  [sha256.Size]byte   // the last counted call with its result
	repeats   int                 // how often it came in a row
	warned    bool                // of the repeats
	idleWaits int                 // waits of the lead that returned at once, with nothing done in between
}

// Idle ends this phase after the round of tools.
func (p *phase) Idle(string) { p.change(func(c *counters) { c.over = true }) }

// countReply counts a reply of the model, and keeps its calls until their results come.
// ownsTodo says whether a call is one of the todo tool.
func (c *counters) countReply(r llm.Reply, ownsTodo func(llm.Call) bool) {
	calls := r.Message.Calls()
	c.calls = map[string]llm.Call{}
	for _, call := range calls {
		c.calls[call.ID] = call
	}
	c.stop, c.words = r.Stop, textOf(r.Message)
	c.usedTodo = c.usedTodo || slices.ContainsFunc(calls, ownsTodo)
	c.replies++
}

// countResult counts calls that repeat with the same result. A tool that polls is not
// counted.
func (c *counters) countResult(r llm.Result, polls func(tool string) bool) {
	call, ok := c.calls[r.ID]
	if !ok || polls(call.Name) {
		return
	}
	c.idleWaits = 0
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s\x00%s\x00", call.Name, call.Input)
	for _, part := range r.Parts {
		_ = json.NewEncoder(&b).Encode(part) // a part that does not encode only counts as equal
	}
	sum := sha256.Sum256(b.Bytes())
	if sum == c.lastCall {
		c.repeats++
	} else {
		c.lastCall, c.repeats, c.warned = sum, 1, false
	}
}

// countWait counts a wait of the lead, and reports whether it is one of too many that
// returned at once. A wait that has slept begins a new phase: the lead's lasts from a wake to
// its next wait, claim or end.
func (c *counters) countWait(slept, mail bool) (isLoop bool) {
	switch {
	case slept:
		c.turns, c.extended, c.idleWaits = 0, false, 0
	case !mail:
		c.idleWaits++
		return c.idleWaits >= repeatEnd
	}
	return false
}

// idleReason says why the phase ended, for the record of an idle member.
func (c *counters) idleReason(asks bool, latest muster.Member) muster.IdleReason {
	switch {
	case asks:
		return muster.IdleMessages
	case c.over:
		return muster.IdleTasks
	case c.started.IsZero() && latest.Status == muster.Idle: // it was idle before this process began
		return latest.IdleReason
	}
	return muster.IdleNoToolUse
}
