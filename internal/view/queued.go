package view

import (
	"fmt"
	"strings"
	"time"

	"muster"
	"muster/internal/text"
)

// QueuedLanding is a task that is to land: whether it is being checked, or where it stands in the queue. Its JSON is
// what programs read.
type QueuedLanding struct {
	Task  muster.TaskID `json:"task"`
	Place int           `json:"place,omitempty"` // in the queue, from 1; 0: a check runs for it
	// Tasks are all that are checked together with it, in the order in which they would land, and Since when that check
	// began, in Unix seconds. Both are of a task for which a check runs.
	Tasks []muster.TaskID `json:"tasks,omitempty"`
	Since float64         `json:"since,omitempty"`
	// Seconds is how long it may still take, by the checks before it; 0: nobody knows.
	Seconds float64 `json:"seconds,omitempty"`
}

// queued returns what is to land: first what is being checked, then the queue.
func (l *landings) queued(now time.Time) []QueuedLanding {
	all := []QueuedLanding{}
	for _, id := range l.waiting {
		if c := l.checkOf(id); c != nil {
			all = append(all, QueuedLanding{Task: id, Tasks: c.tasks, Since: muster.UnixTime(c.since),
				Seconds: secondsLeft(l.estimate(c.since, now, 1))})
		}
	}
	for _, id := range l.waiting {
		if n := l.place(id); n > 0 {
			q := QueuedLanding{Task: id, Place: n}
			switch {
			case len(l.checks) > 0:
				q.Seconds = secondsLeft(l.estimate(l.checks[0].since, now, 2))
			case l.base.IsZero():
				q.Seconds = secondsLeft(l.estimate(now, now, 1))
			}
			all = append(all, q)
		}
	}
	return all
}

// secondsLeft is a duration in whole seconds; 0 where it is over already.
func secondsLeft(d time.Duration) float64 { return max(d.Round(time.Second).Seconds(), 0) }

// lines says in lines which checks run and since when, and who waits behind them:
//
//	2, 3 checked together for 12 s, about 18 s still: go test ./...
//	then 5, 7, 9
func (l *landings) lines(now time.Time, check string) (lines []string) {
	if !l.base.IsZero() {
		lines = append(lines, "the base is checked for "+Duration(now.Sub(l.base)))
	}
	for _, c := range l.checks {
		words := IDs(c.tasks) + " checked"
		if len(c.tasks) > 1 {
			words += " together"
		}
		words += " for " + Duration(now.Sub(c.since))
		if left := l.left(c.since, now, 1); left != "" {
			words += left + " still"
		}
		lines = append(lines, words)
	}
	var queue []muster.TaskID
	for _, id := range l.waiting {
		if l.place(id) > 0 {
			queue = append(queue, id)
		}
	}
	if len(lines) > 0 && check != "" {
		lines[0] += ": " + text.CutColumns(text.OneLine(check), 60)
	}
	if len(queue) > 0 {
		words := "then "
		if len(lines) == 0 {
			words = "next "
		}
		shown := queue[:min(len(queue), maxQueue)]
		words += IDs(shown)
		if more := len(queue) - len(shown); more > 0 {
			words += fmt.Sprintf(" and %d more", more)
		}
		lines = append(lines, words)
	}
	return lines
}

// maxQueue is how many tasks that wait for their landing are named.
const maxQueue = 12

// labelled returns lines behind a label that stands in front of the first.
func labelled(s Screen, label string, lines []string) string {
	var b strings.Builder
	for i, line := range lines {
		if i > 0 {
			label = ""
		}
		line = text.PadColumns(label, len("COLLIDE")) + " " + line
		if s.Width > 0 {
			line = text.CutColumns(line, s.Width-1)
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// Queued returns what is to land, by the events that were applied.
func (l *Presence) Queued(now time.Time) []QueuedLanding { return l.queue.queued(now) }
