package cli

import (
	"context"
	"slices"

	"muster"
	"muster/internal/text"
	"muster/journal"
)

// howStopped says why a run has stopped in another process that had not come to its end: as its events and the requests
// tell, or else that the process has died. A process that is killed writes nothing.
func howStopped(ctx context.Context, o opened, run muster.Run) string {
	var since, last muster.Event
	for e, err := range o.Journal().Read(ctx, 0) {
		if err != nil || e.At < run.StartedAt {
			continue
		}
		isStop, _ := e.Fields["stop"].(bool)
		// What stopped an earlier attempt says nothing of this one.
		switch {
		case e.Kind == journal.RunStarted, e.Kind == journal.RunResumed:
			since, last = e.Event, muster.Event{}
		case e.Kind == journal.RunEnded, isStop:
			last = e.Event
		}
	}
	// Every stop writes an event, but only the request names who has asked for it.
	// A request to the lead that was granted since then says who has stopped the team.
	requests, _ := o.Requests().List(ctx)
	isStop := func(r muster.Request) bool {
		return r.Kind == muster.AskShutdown && r.To == muster.Lead && r.Status == muster.RequestApproved &&
			r.ResolvedAt >= since.At
	}
	// A list that cannot be read leaves out only the name: the event still tells a stop from a death.
	at := slices.IndexFunc(requests, isStop)
	switch why := last.Text("text"); {
	case at >= 0:
		return "the team was stopped by the " + text.OneLine(string(requests[at].From)) + " with muster stop"
	case why != "":
		return "the team has stopped: " + text.CutColumns(text.OneLine(why), 160)
	}
	return "the process of the team has died; the state is kept"
}
