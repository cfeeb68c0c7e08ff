// Package spend counts what the calls of models cost, and holds budgets.
//
// A Meter wraps the models of one process. It writes each call into a ledger, a stream of the store, before the call is
// made, and what it cost when the reply is there. A Ledger reads the stream of all processes, and a Book adds the calls
// up. Budget, Sum and Dollars are the words for amounts.
//
// The package keeps these invariants:
//
//   - A call is in the ledger before it is made, and its cost before its reply is used. So after a kill at any moment
//     the calls of the ledger are those that were made, and each has its cost or what is known of it.
//   - A call begins only while what was spent is less than each budget. All processes read one ledger, so at most the
//     calls that are under way go over a budget, in all of them together.
//   - A price that is not known is never counted as nothing: a Sum says of how many calls it does not know the price.
//
// What follows from a budget that is used up is not decided here: see internal/teammate and team. Prices come from the
// caller, and what people read is in internal/view.
package spend

import (
	"fmt"

	"muster"
	"muster/llm"
)

// State says how far a call has come.
type State string

// The states of a call. A call has a record of each that it reaches.
const (
	Begun State = "begun" // what it holds is estimated; it counts for nothing yet
	Ended State = "ended" // the model has answered, or refused
	Cut   State = "cut"   // nothing is known of its end; it counts as its request
)

// Turn is the kind of a call whose request names no purpose: a turn of the member's own.
const Turn = "turn"

// Call is one call of a model: a line of the ledger. The names of its fields are a format on disk.
type Call struct {
	State State         `json:"call"`
	ID    string        `json:"id"` // the same in all records of the call
	At    float64       `json:"ts"`
	Run   float64       `json:"run"`            // when the run began: its started_at
	Host  muster.HostID `json:"host,omitempty"` // the process
	// Member is who called, Task what it had claimed, or 0, and Turn the number of its turn in its life.
	Member muster.Name   `json:"member"`
	Task   muster.TaskID `json:"task_id"`
	Turn   int           `json:"turn"`
	// Agent is the helper of the member that called, "" for the member itself. Role is the helper's role.
	Agent    muster.Name `json:"agent,omitempty"`
	Role     string      `json:"role,omitempty"`
	Kind     string      `json:"kind"`               // Turn, or the purpose of the request
	Model    string      `json:"model"`              // as the settings name it
	Answered string      `json:"answered,omitempty"` // the model that answered, in its provider's words
	Endpoint string      `json:"endpoint,omitempty"`
	llm.Usage
	Dollars   *Dollars `json:"dollars"`             // null: the price is not known
	Estimated bool     `json:"estimated,omitempty"` // the usage is no count of the provider
	Error     string   `json:"error,omitempty"`     // the kind of error, where there was no reply
}

// Sum is what calls have used.
type Sum struct {
	Calls int `json:"calls"`
	llm.Usage
	Dollars   Dollars `json:"dollars"`         // of the calls whose price is known
	Unpriced  int     `json:"unpriced_calls"`  // calls whose price is not known
	Estimated int     `json:"estimated_calls"` // calls whose usage is estimated
}

// Tokens returns all tokens that were sent and received, whether a cache had them or not.
func (s Sum) Tokens() int { return s.Input + s.Output + s.CacheRead + s.CacheWrite + s.CacheWriteLong }

// Cost returns the money in words: $0.42, "at least $0.42" where the price of some calls is not known, "unknown" where
// that of none is, and "" where nothing has a price.
func (s Sum) Cost() string {
	switch {
	case s.Unpriced > 0 && s.Dollars == 0:
		return "unknown"
	case s.Unpriced > 0:
		return "at least " + s.Dollars.String()
	case s.Dollars == 0:
		return ""
	}
	return s.Dollars.String()
}

// Plus returns the sum of both.
func (s Sum) Plus(t Sum) Sum { return s.add(t, 1) }

// add returns s with t added sign times: 1, or -1 to take it away.
func (s Sum) add(t Sum, sign int) Sum {
	return Sum{Calls: s.Calls + sign*t.Calls, Dollars: s.Dollars + Dollars(sign)*t.Dollars,
		Unpriced: s.Unpriced + sign*t.Unpriced, Estimated: s.Estimated + sign*t.Estimated,
		Usage: s.Usage.Plus(llm.Usage{Input: sign * t.Input, Output: sign * t.Output, CacheRead: sign * t.CacheRead,
			CacheWrite: sign * t.CacheWrite, CacheWriteLong: sign * t.CacheWriteLong})}
}

// isPossible reports whether the call can have used what it says.
func (c Call) isPossible() bool {
	u := c.Usage
	return min(u.Input, u.Output, u.CacheRead, u.CacheWrite, u.CacheWriteLong) >= 0 &&
		max(u.Input, u.Output, u.CacheRead, u.CacheWrite, u.CacheWriteLong) <= 1000*maxCall
}

func (c Call) sum() Sum {
	s := Sum{Usage: c.Usage, Calls: 1}
	if c.Dollars != nil {
		s.Dollars = *c.Dollars
	} else if s.Tokens() > 0 {
		s.Unpriced = 1
	}
	if c.Estimated && s.Tokens() > 0 {
		s.Estimated = 1
	}
	return s
}

// Scope says what a budget is for.
type Scope string

// The scopes of budgets.
const (
	OfTeam   Scope = "team" // the whole run
	OfMember Scope = "member"
	OfTask   Scope = "task"
	OfDay    Scope = "day" // all repositories of the user
)

// Exceeded is why a call was not made: a budget is used up.
type Exceeded struct {
	Scope  Scope
	Member muster.Name   // whose budget it is, of OfMember
	Task   muster.TaskID // of OfTask
	Budget Budget
	Spent  Sum
}

// Error returns the sentence that people and models read.
func (e *Exceeded) Error() string {
	return fmt.Sprintf("the budget of %v%s is spent", e.Budget, e.whose())
}

// Warning returns the sentence that warns of the budget before it is used up.
func (e *Exceeded) Warning() string {
	percent := 100 * e.Budget.Used(e.Spent)
	return fmt.Sprintf("%s%s is spent: %.0f%% of the budget", e.Budget.Of(e.Spent), e.whose(), percent)
}

// whose returns what the budget is for, in words after it.
func (e *Exceeded) whose() string {
	switch e.Scope {
	case OfMember:
		return fmt.Sprintf(" for the member %s", e.Member)
	case OfTask:
		return fmt.Sprintf(" for task %d", e.Task)
	case OfDay:
		return " for today"
	case OfTeam:
	}
	return ""
}

// GoOn returns what to type behind muster resume to go on; "" where no flag helps.
func (e *Exceeded) GoOn() string {
	if e.Scope != OfTeam {
		return ""
	}
	return "--budget " + e.Budget.Next(e.Spent)
}

// Hint returns what else the user can do, in words after Error; "" where GoOn says it.
func (e *Exceeded) Hint() string {
	switch e.Scope {
	case OfDay:
		return "; it goes on tomorrow, or with a larger budget.day in your own config.yaml"
	case OfMember, OfTask:
		return fmt.Sprintf("; raise budget.%s", e.Scope)
	case OfTeam:
	}
	return ""
}

// StopsTeam reports whether nobody of the team can go on.
func (e *Exceeded) StopsTeam() bool { return e.Scope == OfTeam || e.Scope == OfDay }
