package view

import (
	"strings"
	"time"

	"muster"
	"muster/journal"
)

// Tally is what the events of a run add up to.
type Tally struct {
	tasks map[muster.TaskID]*effort
	hand  map[muster.Name]muster.TaskID // the task that each member has now
	token float64                       // of all
	away  time.Duration                 // no process of the team lived
	seen  float64                       // when one was last seen alive
}

// effort is what one task took.
type effort struct {
	owner     muster.Name // the last one: a completed task's document keeps it, one that was given up does not
	tries     int         // landings begun
	checks    int         // came back red
	conflicts int         // came back with a conflict
	tokens    float64
	time      time.Duration // claimed, summed over its claims
	since     float64       // of the claim that is open
}

// NewTally is a tally of nothing.
func NewTally() *Tally {
	return &Tally{tasks: map[muster.TaskID]*effort{}, hand: map[muster.Name]muster.TaskID{}}
}

func (t *Tally) of(id muster.TaskID) *effort {
	if t.tasks[id] == nil {
		t.tasks[id] = &effort{}
	}
	return t.tasks[id]
}

// Add counts one event.
func (t *Tally) Add(e muster.Event) {
	t.alive(e)
	switch e.Kind {
	case journal.TurnEnded:
		n := e.Number("input") + e.Number("output") + e.Number("cache_read") + e.Number("cache_write")
		t.token += n
		id := e.Task
		if id == 0 {
			id = t.hand[e.Member]
		}
		if id != 0 {
			t.of(id).tokens += n
		}
	case journal.TaskClaimed:
		t.hand[e.Member] = e.Task
		t.of(e.Task).owner, t.of(e.Task).since = e.Member, e.At
	case journal.TaskReturned:
		w := t.of(e.Task)
		w.tries++
		if e.Text("reason") == "check" {
			w.checks++
		} else {
			w.conflicts++
		}
	case journal.TaskCompleted:
		if e.Text("commit") != "" {
			t.of(e.Task).tries++
		}
		t.end(e)
	case journal.TaskReleased, journal.TaskRevoked, journal.TaskAttention:
		t.end(e)
	}
}

// alive takes the time between a process's end and the next one's start out of all that is counted. Only a process of
// the team writes events of runs, turns and tools; tasks are changed by people too.
func (t *Tally) alive(e muster.Event) {
	if e.Kind == journal.RunResumed && t.seen > 0 {
		t.away += muster.Time(e.At).Sub(muster.Time(t.seen))
		for _, w := range t.tasks {
			if w.since > 0 {
				w.since += e.At - max(t.seen, w.since)
			}
		}
	}
	switch kind, _, _ := strings.Cut(e.Kind, "."); kind {
	case "run", "turn", "tool", "check":
		t.seen = e.At
	}
}

// end closes the claim that is open.
func (t *Tally) end(e muster.Event) {
	w := t.of(e.Task)
	if w.since > 0 {
		w.time += muster.Time(e.At).Sub(muster.Time(w.since))
	}
	w.since = 0
	for n, id := range t.hand {
		if id == e.Task {
			delete(t.hand, n)
		}
	}
}
