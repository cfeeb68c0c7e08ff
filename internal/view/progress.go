package view

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/journal"
)

const (
	// RedrawInterval is how often Tick redraws at most.
	RedrawInterval = 100 * time.Millisecond
	// planDelay is how long no task must be added before the plan is written.
	planDelay = time.Second
	// longWorkDelay is how long work must take to be mentioned while it runs, not only at its end.
	longWorkDelay = time.Second
	// laneDelay is how long a claim waits for the event that names its lane.
	laneDelay = time.Second
)

// Progress shows a run while it goes on: one line for each event and, on a terminal, the living members below, redrawn
// in place. One goroutine uses it. It sets no mode of the terminal, so the terminal stays usable however the program
// ends.
type Progress struct {
	out     io.Writer
	paint   Paint
	width   int // of the terminal; 0: it is none
	start   time.Time
	lookUp  func(muster.TaskID) (muster.Task, error)
	members func(rows []string)

	names int // the width of the second column
	// subjects caches the subjects of tasks, because each line needs one.
	subjects map[muster.TaskID]string
	check    string
	presence Presence
	plan     []muster.TaskID // the lead's new tasks that were not written yet
	// planAt is when the last of the tasks in plan was added.
	planAt time.Time
	// lastBroadcast is the last broadcast. It is mailed to each member, but shown once.
	lastBroadcast string
	wroteLine     bool // anything
	// queue begins with a claim whose lane is not known yet, or is empty.
	queue []queuedLine
	// opening is shown if nothing happens for long.
	opening string
	checks  []runningCheckNote // that run and were not written yet
	// drawn are the rows of the living members as they stand on the terminal.
	drawn   []string
	drawnAt time.Time
}

// runningCheckNote is a check that runs and has not been mentioned.
type runningCheckNote struct {
	at   time.Time
	task muster.TaskID // 0: of the base
	line Line
}

// queuedLine is a line with its time. A claim's line waits until the claim's lane is known, and later lines wait
// behind it.
type queuedLine struct {
	at    time.Time
	line  Line
	claim muster.TaskID // 0: it need not wait
	by    muster.Name
}

// Options say where progress is shown, and how. Out, Start and Task are needed.
type Options struct {
	Out   io.Writer // finished lines: one Write is one event's line, which may be wrapped
	Paint Paint
	Width int       // in columns; 0: Out is no terminal
	Start time.Time // what the first column counts from
	Task  func(muster.TaskID) (muster.Task, error)
	Check string // the run's check, as far as it is known before its events

	// Opening is said when no event has come for a second after the start: what is done before the first one.
	Opening string

	// Members is given the living members' rows, each less than Width columns, whenever they have changed. Where it is
	// nil, the rows are drawn on Out, below the lines, when that is a terminal.
	Members func(rows []string)
}

// NewProgress returns the progress of a run.
func NewProgress(o Options) *Progress {
	return &Progress{out: o.Out, paint: o.Paint, width: o.Width, start: o.Start, lookUp: o.Task, members: o.Members,
		names: 8, subjects: map[muster.TaskID]string{}, check: o.Check, presence: Presence{check: o.Check},
		opening: o.Opening}
}

// HasWritten reports whether a line was written.
func (p *Progress) HasWritten() bool { return p.wroteLine }

// Resize sets the width of the terminal in columns.
func (p *Progress) Resize(width int) { p.width = width }

// Rows returns the living members as lines of less than width columns.
func (p *Progress) Rows(now time.Time, width int) []string {
	return p.presence.Rows(p.paint, now, width, p.subject)
}

// Event shows one event.
func (p *Progress) Event(e muster.Event) {
	if s := e.Text("subject"); s != "" && e.Task != 0 {
		p.subjects[e.Task] = s
	}
	switch e.Kind {
	case journal.RunStarted: // what an earlier run had is over
		p.check, p.presence.check = "", ""
	case journal.CheckStarted, journal.CheckBase:
		p.check = e.Text("command")
	}
	p.opening = ""
	p.presence.Apply(e)
	p.resolveClaims(e)
	p.noteChecks(e)
	// The lead adds its tasks one by one. They are collected and shown as one plan, when another line comes or none was
	// added for a moment.
	if e.Kind == journal.TaskCreated && e.Member == muster.Lead {
		p.plan, p.planAt = append(p.plan, e.Task), muster.Time(e.At)
		return
	}
	if e.Kind == journal.MailSent && e.Text("type") == string(muster.MailBroadcast) {
		said := string(e.Member) + " " + e.Text("text")
		if said == p.lastBroadcast {
			return // the same to the next one
		}
		p.lastBroadcast = said
	}
	if e.Kind == journal.TaskClaimed && e.Text("lane") == "" {
		p.flushPlan()
		p.enqueueClaim(e)
		return
	}
	for _, l := range Lines(e, p.facts()) {
		if l.Show {
			p.flushPlan()
			p.enqueue(muster.Time(e.At), l)
		}
	}
}

// noteChecks remembers checks that begin and forgets those that end.
func (p *Progress) noteChecks(e muster.Event) {
	switch e.Kind {
	case journal.CheckStarted, journal.CheckBase, journal.TaskLanding, journal.TaskReturned, journal.TaskCompleted,
		journal.TaskReleased, journal.TaskRevoked, journal.TaskAttention:
	default:
		return
	}
	p.checks = slices.DeleteFunc(p.checks, func(c runningCheckNote) bool { return c.task == e.Task })
	at := muster.Time(e.At)
	switch {
	case e.Kind == journal.CheckStarted:
		p.checks = append(p.checks, runningCheckNote{at, 0, checkLine("the base", Cut(OneLine(p.check), 60), "running", Plain)})
	// on a terminal its owner's row says it
	case e.Kind == journal.TaskLanding && p.check != "" && p.width == 0 && p.members == nil:
		l := checkLine(lineWriter{e, p.facts()}.taskName(), Cut(OneLine(p.check), 60), "under way", Plain)
		l.Verb = "lands?" // it may still wait for another landing
		p.checks = append(p.checks, runningCheckNote{at, e.Task, l})
	}
}

// enqueueClaim shows who claims a task in which lane: the lane that the task has already, or the one that is being
// made.
func (p *Progress) enqueueClaim(e muster.Event) {
	s := queuedLine{at: muster.Time(e.At), claim: e.Task, by: e.Member}
	if t, err := p.lookUp(e.Task); err == nil && t.Worktree != "" && t.Owner == e.Member {
		e, s.claim = withLane(e, string(t.Worktree)), 0
	}
	s.line = Lines(e, p.facts())[0]
	p.queue = append(p.queue, s)
	p.writeReady()
}

// withLane returns the event of a claim with its lane.
func withLane(e muster.Event, lane string) muster.Event {
	return muster.Event{Kind: journal.TaskClaimed, At: e.At, Member: e.Member, Task: e.Task,
		Fields: map[string]any{"lane": lane}}
}

// resolveClaims ends the wait of claims: either their lane is known now, or the event shows that they have none. A turn
// of the owner begins only when its lane is made, so after one nothing is waited for.
func (p *Progress) resolveClaims(e muster.Event) {
	for i := range p.queue {
		s := &p.queue[i]
		switch {
		case s.claim == 0:
		case e.Kind == journal.LaneCreated && e.Task == s.claim:
			s.line = Lines(withLane(muster.Event{Member: s.by, Task: s.claim}, e.Text("lane")), p.facts())[0]
			s.claim = 0
		case e.Task == s.claim || e.Kind == journal.TurnStarted && e.Member == s.by:
			s.claim = 0
		}
	}
	p.writeReady()
}

// writeReady writes the lines that need not wait.
func (p *Progress) writeReady() {
	for len(p.queue) > 0 && p.queue[0].claim == 0 {
		s := p.queue[0]
		p.queue = p.queue[1:]
		p.write(s.at, s.line)
	}
}

// enqueue writes one line, after those that wait.
func (p *Progress) enqueue(at time.Time, l Line) {
	p.queue = append(p.queue, queuedLine{at: at, line: l})
	p.writeReady()
}

// write writes one line above the living members, which the next redraw puts back.
func (p *Progress) write(at time.Time, l Line) {
	p.wroteLine = true
	p.erase()
	p.names = max(p.names, min(len(l.Who), 16))
	p.print(l.Format(p.paint, fmt.Sprintf("%6s ", elapsed(at.Sub(p.start))), p.names, p.width) + "\n")
}

// flushPlan writes the tasks that the lead has added since the last plan, as one line. It comes before every other
// line, so that the order of lines is that of the events.
func (p *Progress) flushPlan() {
	if len(p.plan) == 0 {
		return
	}
	ids := p.plan
	p.plan = nil
	var each []string
	for _, id := range ids {
		s := fmt.Sprintf("%d %s", id, OneLine(p.subject(id)))
		if t, err := p.lookUp(id); err == nil && len(t.DependsOn) > 0 {
			s += " (after " + IDs(t.DependsOn) + ")"
		}
		each = append(each, s)
	}
	text := each[0]
	for _, s := range each[1:] {
		if len(text)+len(s) > 110 {
			text += ", ..."
			break
		}
		text += ", " + s
	}
	p.enqueue(p.planAt, Line{Who: string(muster.Lead), Verb: "plan", Text: Count(len(ids), "task") + ": " + text})
}

// IDs joins task ids with commas.
func IDs(ids []muster.TaskID) string {
	var s []string
	for _, id := range ids {
		s = append(s, fmt.Sprint(id))
	}
	return strings.Join(s, ", ")
}

// facts are what lines say beside their event.
func (p *Progress) facts() Facts { return Facts{p.subject, p.check} }

// subject returns the subject of a task, or "" if it cannot be read.
func (p *Progress) subject(id muster.TaskID) string {
	if s, ok := p.subjects[id]; ok || id == 0 {
		return s
	}
	t, _ := p.lookUp(id) // without its record the task goes by its number
	p.subjects[id] = t.Subject
	return t.Subject
}

// Tick writes what has waited long enough, and redraws the living members if their rows have changed.
func (p *Progress) Tick(now time.Time) {
	if len(p.plan) > 0 && now.Sub(p.planAt) >= planDelay {
		p.flushPlan()
	}
	p.expireClaims(now)
	for len(p.checks) > 0 && now.Sub(p.checks[0].at) >= longWorkDelay {
		p.flushPlan()
		p.enqueue(now, p.checks[0].line)
		p.checks = p.checks[1:]
	}
	if p.opening != "" && now.Sub(p.start) >= longWorkDelay {
		p.enqueue(p.start, Line{Who: "muster", Verb: "begins", Text: p.opening})
		p.opening = ""
	}
	if p.width > 0 && now.Sub(p.drawnAt) >= RedrawInterval {
		p.redraw(now)
	}
}

// expireClaims writes the claims whose lane did not come in time. Otherwise a slow checkout would hold back all later
// lines.
func (p *Progress) expireClaims(now time.Time) {
	for i := range p.queue {
		s := &p.queue[i]
		if s.claim == 0 || now.Sub(s.at) < laneDelay {
			continue
		}
		if p.presence.Find(s.by) != nil { // members have lanes, other processes that claim have none
			s.line = Lines(withLane(muster.Event{Member: s.by, Task: s.claim}, ""), p.facts())[0]
			s.line.Text = nameWith(s.line.Text, "its lane is being made")
		}
		s.claim = 0
	}
	p.writeReady()
}

// redraw replaces the rows of the living members if they have changed.
func (p *Progress) redraw(now time.Time) {
	rows := p.Rows(now, p.width)
	if p.members == nil && len(rows) > 0 {
		rows = append([]string{""}, rows...) // a blank row separates them from what happened
	}
	if slices.Equal(rows, p.drawn) {
		return
	}
	// The old rows are erased by their number, so drawn must always be what stands on the terminal.
	p.erase()
	p.drawn, p.drawnAt = rows, now
	if p.members != nil {
		p.members(rows)
	} else if len(rows) > 0 {
		p.print(strings.Join(rows, "\n") + "\n")
	}
}

// print writes to the output. A failure is not reported: a run goes on when nobody can read its progress.
func (p *Progress) print(s string) { _, _ = io.WriteString(p.out, s) }

// erase removes the living members from the terminal.
func (p *Progress) erase() {
	if p.members != nil { // the one who draws them also removes them
		return
	}
	if len(p.drawn) > 0 {
		p.print(fmt.Sprintf("\x1b[%dA\r\x1b[J", len(p.drawn)))
	}
	p.drawn = nil
}

// Close writes what is left and leaves only lines on the terminal.
func (p *Progress) Close() {
	p.flushPlan()
	for i := range p.queue {
		p.queue[i].claim = 0
	}
	p.writeReady()
	p.erase()
}
