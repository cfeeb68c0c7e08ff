package view

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"muster"
	"muster/internal/text"
	"muster/journal"
)

// landings are the tasks that wait for their landing, and the checks that run for them, according to the events. Like
// the presence it is for people alone: what lands, and when, is decided by records.
type landings struct {
	waiting []muster.TaskID // in the order in which they came, those first that have come back before
	// returned are the tasks that have come back and have not landed since.
	returned map[muster.TaskID]bool
	checks   []runningCheck
	took     []float64 // seconds of the last checks
	// base is when the check of the base began that runs; zero: none does.
	base time.Time
	// tests are the tests that checks run now, by the last task of each; 0 is the base.
	tests map[muster.TaskID]string
}

// runningCheck is a check of the work of some tasks together. The last of them would land last.
type runningCheck struct {
	tasks []muster.TaskID
	since time.Time
}

// clone returns landings that stay as they are when these change. The tasks of a check never change.
func (l *landings) clone() landings {
	c := *l
	c.waiting, c.checks, c.took = slices.Clone(l.waiting), slices.Clone(l.checks), slices.Clone(l.took)
	c.returned, c.tests = maps.Clone(l.returned), maps.Clone(l.tests)
	return c
}

// knownTimes is how many checks an estimate is made from.
const knownTimes = 5

// apply updates the queue with one event.
func (l *landings) apply(e muster.Event) {
	switch e.Kind { // what ran before has ended, or is another check's
	case journal.RunStarted, journal.RunResumed, journal.CheckStarted, journal.CheckBase, journal.LandingCheck,
		journal.LandingChecked, journal.TaskLanding, journal.TaskReturned, journal.TaskCompleted:
		delete(l.tests, e.Task)
	}
	switch e.Kind {
	case journal.RunStarted, journal.RunResumed: // nothing is under way in a process that begins
		l.waiting, l.checks, l.base = nil, nil, time.Time{}
	case journal.CheckStarted:
		l.base = muster.Time(e.At)
	case journal.CheckBase:
		l.base = time.Time{}
		l.addTime(e)
	case journal.TaskLanding:
		l.wait(e.Task)
	case journal.LandingCheck:
		l.endCheck(e.Task)
		l.checks = append(l.checks, runningCheck{checkedTasks(e), muster.Time(e.At)})
	case journal.LandingChecked:
		l.endCheck(e.Task)
		l.addTime(e)
		if e.Text("result") == "red" { // checks of more than that can tell nothing new, and were ended
			isLarger := func(c runningCheck) bool { return slices.Contains(c.tasks, e.Task) }
			l.checks = slices.DeleteFunc(l.checks, isLarger)
		}
	case journal.ReviewEnded: // approved work queues again; the rest is told by its return
		if e.Text("result") == "approved" && !slices.Contains(l.waiting, e.Task) {
			l.waiting = append(l.waiting, e.Task)
		}
	case journal.ReviewStarted, journal.TaskReturned, journal.TaskCompleted, journal.TaskReleased, journal.TaskRevoked,
		journal.TaskAttention:
		l.waiting = slices.DeleteFunc(l.waiting, func(id muster.TaskID) bool { return id == e.Task })
		l.endCheck(e.Task)
		if l.returned == nil {
			l.returned = map[muster.TaskID]bool{}
		}
		if delete(l.returned, e.Task); e.Kind == journal.TaskReturned {
			l.returned[e.Task] = true
		}
	}
}

// wait puts a task where it will land: those that have come back go first.
func (l *landings) wait(id muster.TaskID) {
	if slices.Contains(l.waiting, id) {
		return
	}
	at := len(l.waiting)
	isNew := func(w muster.TaskID) bool { return !l.returned[w] }
	if i := slices.IndexFunc(l.waiting, isNew); l.returned[id] && i >= 0 {
		at = i
	}
	l.waiting = slices.Insert(l.waiting, at, id)
}

// test notes which test a check runs now.
func (l *landings) test(id muster.TaskID, name string) {
	if l.tests == nil {
		l.tests = map[muster.TaskID]string{}
	}
	l.tests[id] = text.CutColumns(text.OneLine(name), 60)
}

// endCheck forgets the check in which a task is the last one.
func (l *landings) endCheck(last muster.TaskID) {
	l.checks = slices.DeleteFunc(l.checks, func(c runningCheck) bool { return c.tasks[len(c.tasks)-1] == last })
}

// addTime notes how long a check took. One that could not run took no time that tells anything.
func (l *landings) addTime(e muster.Event) {
	if s := e.Number("seconds"); s > 0 && e.Text("result") != "cannot run" {
		l.took = append(l.took, s)
		l.took = l.took[max(len(l.took)-knownTimes, 0):]
	}
}

// checkedTasks returns the tasks of a check. The list is of another type in an event that was read from the journal
// than in one of this process. The event's own task is the last one.
func checkedTasks(e muster.Event) (all []muster.TaskID) {
	switch list := e.Fields["tasks"].(type) {
	case []int:
		for _, id := range list {
			all = append(all, muster.TaskID(id))
		}
	case []any:
		for _, x := range list {
			if id, ok := x.(float64); ok {
				all = append(all, muster.TaskID(id))
			}
		}
	}
	if len(all) == 0 || all[len(all)-1] != e.Task {
		all = append(all, e.Task)
	}
	return all
}

// checkOf returns the smallest check that runs for a task, or nil. Where a check of many is halved, that says most.
func (l *landings) checkOf(id muster.TaskID) (found *runningCheck) {
	for i, c := range l.checks {
		if slices.Contains(c.tasks, id) && (found == nil || len(c.tasks) < len(found.tasks)) {
			found = &l.checks[i]
		}
	}
	return found
}

// place returns a task's place among those for which no check runs, counted from 1; 0 when it does not wait.
func (l *landings) place(id muster.TaskID) (n int) {
	for _, w := range l.waiting {
		if l.checkOf(w) != nil {
			continue
		}
		if n++; w == id {
			return n
		}
	}
	return 0
}

// describe says where a task stands that is to land, and about how long that will take still:
//
//	third in the queue, about 40 s
//	checked with 3 others: TestCount, about 20 s
//
// It is "" for a task that does not wait.
func (l *landings) describe(id muster.TaskID, now time.Time) string {
	if c := l.checkOf(id); c != nil {
		said := "checked"
		if n := len(c.tasks) - 1; n > 0 {
			said += fmt.Sprintf(" with %d %s", n, text.Plural(n, "other", "others"))
		}
		return Because(said, l.tests[c.tasks[len(c.tasks)-1]]) + l.left(c.since, now, 1)
	}
	n := l.place(id)
	if n == 0 {
		return ""
	}
	said := ordinal(n) + " in the queue"
	switch {
	case len(l.checks) > 0:
	case !l.base.IsZero():
		return Because(ordinal(n)+", the base is checked", l.tests[0])
	default:
		return said + l.left(now, now, 1)
	}
	// Its own check begins when the one that runs has ended.
	return said + l.left(l.checks[0].since, now, 2)
}

// estimate returns how long so many checks take still, the first of which has begun, if each takes as long as those
// before did; 0 where none is known.
func (l *landings) estimate(began, now time.Time, checks int) time.Duration {
	if len(l.took) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(l.took))
	usual := time.Duration(sorted[len(sorted)/2] * float64(time.Second))
	return time.Duration(checks)*usual - now.Sub(began)
}

// left says about how long so many checks take still, the first of which has begun; "" where nobody can know.
func (l *landings) left(began, now time.Time, checks int) string {
	left := l.estimate(began, now, checks)
	switch step := 5 * time.Second; {
	case left < time.Second: // it takes longer than usual
		return ""
	case left < 4*step:
		return ", about " + Duration(left.Round(time.Second))
	case left < time.Minute-step/2:
		return ", about " + Duration(left.Round(step))
	default:
		return ", about " + Duration(left.Round(time.Minute))
	}
}

// ordinal is a place in words: first, second, ..., 13th.
func ordinal(n int) string {
	words := [...]string{"first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"}
	if n <= len(words) {
		return words[n-1]
	}
	ends := map[int]string{1: "st", 2: "nd", 3: "rd"}
	end, isKnown := ends[n%10]
	if !isKnown || n%100 > 10 && n%100 < 14 {
		end = "th"
	}
	return strconv.Itoa(n) + end
}

// checkedName names what a check is of: a task by its name, several by their numbers.
func checkedName(tasks []muster.TaskID, name string) string {
	if len(tasks) == 1 {
		return name
	}
	return text.CutColumns(IDs(tasks)+" together", 2*taskColumn)
}

// landingLine is the line of an event of a check of landings. The progress has that of a check of several tasks that is
// red: a task that comes back has a line of its own, and so has one that lands.
func (t lineWriter) landingLine() Line {
	tasks := checkedTasks(t.Event)
	name := checkedName(tasks, t.taskName())
	switch t.Kind {
	case journal.LandingCheck:
		l := checkLine(name, text.CutColumns(text.OneLine(t.Check), 60), "running", Plain)
		l.Show = false
		return l
	case journal.LandingChecked:
		verdict, tone := t.field("result", 60), Good
		switch took := seconds(t.Number("seconds")); verdict {
		case "red":
			verdict, tone = Because("FAIL "+took, t.field("failed", 90)), Bad
		case "cannot run":
			tone = Bad
		default:
			verdict += " " + took
		}
		l := checkLine(name, text.CutColumns(text.OneLine(t.Check), 60), verdict, tone)
		l.Show = tone == Bad && len(tasks) > 1
		return l
	}
	return Line{}
}
