package view

import (
	"cmp"
	"fmt"
	"time"

	"muster"
)

// Question is what a request asks, in two or three words. Commands complete ids with it, and tables have it as a
// column.
func Question(r muster.Request) string {
	switch r.Kind {
	case muster.AskPlan:
		return fmt.Sprintf("plan for %d", r.TaskID)
	case muster.AskShutdown:
		return "shutdown"
	}
	return OneLine(string(r.Kind))
}

// WaitingTime is how long a request has waited, or waited until it was decided.
func WaitingTime(r muster.Request, now time.Time) time.Duration {
	if r.ResolvedAt > 0 {
		now = muster.Time(r.ResolvedAt)
	}
	return now.Sub(muster.Time(r.CreatedAt))
}

// Requests returns a table of requests, in the given order. The last column gives way on a narrow terminal, so that
// the ids, which people type, stay whole.
func Requests(all []muster.Request, now time.Time) Table {
	t := Table{Titles: []string{"ID", "FROM", "TO", "ASKS", "STATUS", ">FOR", "TEXT"}, Wide: 6}
	for _, r := range all {
		status := Status(r.Status, muster.RequestApproved, muster.RequestRejected, muster.RequestExpired)
		// The answer says more than what was asked.
		text := OneLine(cmp.Or(r.Response, r.Plan, r.Reason))
		t.Row(r.ID, Named(r.From), r.To, Question(r), status, Age(WaitingTime(r, now)), Cut(text, 200))
	}
	return t
}
