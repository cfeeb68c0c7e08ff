package view

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/text"
	"muster/journal"
)

// Tally adds up the events of a run: what each task took, and all tokens. Time in which no process of the team lived
// is not counted. The events are added in their order, each once; what they do not tell, because some were lost, is
// missing from the sums and changes nothing else.
type Tally struct {
	tasks map[muster.TaskID]*effort
	// current is the task that each member has now.
	current map[muster.Name]muster.TaskID
	tokens  float64 // of all
	// memories are the names of what members have saved for later runs.
	memories []string
	// trouble counts what members have tried in vain.
	trouble journal.Trouble
	// made is how many tasks were made.
	made int
	// ranNone are the words of green checks that say that no test was run.
	ranNone []string
	// unverified are the reasons for which a green check proves nothing.
	unverified []string
	// baseFailed is what failed first on the base.
	baseFailed string
	// away is how long no process of the team lived.
	away time.Duration
	// lastAlive is when a process of the team was last seen alive, in Unix seconds as in the events.
	lastAlive float64
}

// effort is what one task took.
type effort struct {
	// owner is the last owner. The document of a task that was given up no longer has it.
	owner muster.Name
	// tries is how many landings were begun.
	tries int
	// returned is how many of them came back, by the reason.
	returned map[string]int
	// moved is how many of all that came back did so only because the target had moved: they count against nobody.
	moved  int
	tokens float64
	// time is how long the task was claimed, summed over its claims.
	time time.Duration
	// claimedAt is when the open claim began, or 0. Time without a living process moves it on.
	claimedAt float64
}

// NewTally returns an empty tally.
func NewTally() *Tally {
	return &Tally{tasks: map[muster.TaskID]*effort{}, current: map[muster.Name]muster.TaskID{}}
}

// effortOf returns the effort of a task, adding one if there is none.
func (t *Tally) effortOf(id muster.TaskID) *effort {
	if t.tasks[id] == nil {
		t.tasks[id] = &effort{returned: map[string]int{}}
	}
	return t.tasks[id]
}

// Add counts one event.
func (t *Tally) Add(e muster.Event) {
	t.skipDowntime(e)
	t.trouble.Add(e)
	switch e.Kind {
	case journal.TurnEnded:
		n := e.Number("input") + e.Number("output") + e.Number("cache_read") + e.Number("cache_write") +
			e.Number("cache_write_long")
		t.tokens += n
		// A turn that names no task belongs to the one that the member has claimed.
		if id := cmp.Or(e.Task, t.current[e.Member]); id != 0 {
			t.effortOf(id).tokens += n
		}
	case journal.TaskCreated:
		t.made++
	case journal.TaskClaimed:
		t.current[e.Member] = e.Task
		t.effortOf(e.Task).owner, t.effortOf(e.Task).claimedAt = e.Member, e.At
	case journal.TaskReturned: // the owner goes on in the same claim
		w := t.effortOf(e.Task)
		w.tries++
		w.returned[text.OneLine(cmp.Or(e.Text("reason"), "conflict"))]++
		if counts, isSaid := e.Fields["counts"].(bool); isSaid && !counts {
			w.moved++
		}
	case journal.TaskCompleted:
		// Without a commit nothing was landed, so no landing was tried.
		if e.Text("commit") != "" {
			t.effortOf(e.Task).tries++
		}
		t.endClaim(e)
	case journal.CheckBase:
		t.baseFailed = text.OneLine(e.Text("failed"))
	case journal.RunNote:
		if why := text.OneLine(e.Text("unverified")); why != "" && !slices.Contains(t.unverified, why) {
			t.unverified = append(t.unverified, why)
		}
		if said := text.OneLine(e.Text("ran_none")); said != "" && !slices.Contains(t.ranNone, said) {
			t.ranNone = append(t.ranNone, said)
		}
	case journal.MemorySaved:
		if name := text.OneLine(e.Text("name")); !slices.Contains(t.memories, name) {
			t.memories = append(t.memories, name)
		}
	case journal.TaskReleased, journal.TaskRevoked, journal.TaskAttention:
		t.endClaim(e)
	}
}

// skipDowntime removes the time between the end of one process and the start of the next from all durations. Only a
// process of the team writes events of runs, turns, tools and checks, so these show when one was alive.
func (t *Tally) skipDowntime(e muster.Event) {
	if e.Kind == journal.RunResumed && t.lastAlive > 0 {
		t.away += muster.Time(e.At).Sub(muster.Time(t.lastAlive))
		for _, w := range t.tasks {
			if w.claimedAt > 0 {
				w.claimedAt += e.At - max(t.lastAlive, w.claimedAt)
			}
		}
	}
	switch kind, _, _ := strings.Cut(e.Kind, "."); kind {
	case "run", "turn", "tool", "check":
		t.lastAlive = e.At
	}
}

// endClaim adds the time of the open claim to the task. Turns that its owner takes afterwards count for no task.
func (t *Tally) endClaim(e muster.Event) {
	w := t.effortOf(e.Task)
	if w.claimedAt > 0 {
		w.time += muster.Time(e.At).Sub(muster.Time(w.claimedAt))
	}
	w.claimedAt = 0
	for n, id := range t.current {
		if id == e.Task {
			delete(t.current, n)
		}
	}
}

// Trouble says in a line how many calls were refused and how many commands could not start, "" for none.
func (t *Tally) Trouble() string { return t.trouble.String() }

// HasMade reports whether a task was made in the run, also one that was deleted.
func (t *Tally) HasMade() bool { return t.made > 0 }

// Remembered says what members have saved for later runs, or "" where they have saved nothing.
func (t *Tally) Remembered() string {
	if len(t.memories) == 0 {
		return ""
	}
	return "remembered: " + text.List(t.memories, 10) + " (muster memory)"
}
