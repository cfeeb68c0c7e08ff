package view

import (
	"fmt"
	"io"
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

// WriteRequests prints a table of requests, in the given order. The last column gives way on a narrow terminal, so that
// the ids, which people type, stay whole.
func WriteRequests(w io.Writer, p Paint, width int, all []muster.Request, now time.Time) error {
	t := Table{Titles: []string{"ID", "FROM", "TO", "ASKS", "STATUS", ">FOR", "TEXT"}, Wide: 6}
	for _, r := range all {
		t.Row(Text(OneLine(string(r.ID))), Cell{Text: OneLine(string(r.From)), Who: OneLine(string(r.From))},
			Text(OneLine(string(r.To))), Text(Question(r)),
			requestStatus(r.Status), Text(Age(WaitingTime(r, now))), Text(Cut(requestText(r), 200)))
	}
	return t.Write(w, p, width)
}

// requestStatus returns a status in its colour.
func requestStatus(s muster.RequestStatus) Cell {
	return Cell{Text: string(s), Tone: map[muster.RequestStatus]Tone{muster.RequestApproved: Good,
		muster.RequestRejected: Bad, muster.RequestExpired: Bad}[s]}
}

// requestText is the answer where there is one, otherwise what was asked.
func requestText(r muster.Request) string {
	switch {
	case r.Response != "":
		return OneLine(r.Response)
	case r.Plan != "":
		return OneLine(r.Plan)
	}
	return OneLine(r.Reason)
}
