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
	Redraw   = 100 * time.Millisecond // how often Tick draws, at most
	planLull = time.Second            // a plan is told when no task was added for that long
	longWork = time.Second            // what takes longer than that is told when it is under way, not only at its end
	laneLull = time.Second            // a claim is told without its lane when none came for that long
)

// Progress tells people what happens: one line an event and, on a terminal, the living members below, redrawn in
// place. It is used by one goroutine. It sets no mode of the terminal, so whatever ends the program leaves it clean.
type Progress struct {
	out     io.Writer
	paint   Paint
	width   int // of the terminal; 0: it is none
	start   time.Time
	look    func(muster.TaskID) (muster.Task, error)
	members func(rows []string)

	names    int // the width of the second column
	subjects map[muster.TaskID]string
	check    string
	living   Presence
	plan     []muster.TaskID // the lead's new tasks, not told yet
	planned  time.Time       // when the last of them came
	heard    string          // the last broadcast
	told     bool            // anything
	queue    []said          // begins with a claim whose lane is not known yet; else empty
	opening  string          // said when nothing happens for long
	checks   []checking      // that run and are not told
	drawn    []string        // the living members' lines as they stand on the terminal
	drawnAt  time.Time
}

// checking is a check that runs.
type checking struct {
	at   time.Time
	task muster.TaskID // 0: of the base
	line Line
}

// said is a line at its time. One that tells a claim waits for the claim's lane, and all that came later behind it.
type said struct {
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

// NewProgress is the progress of a run of which nothing was told yet.
func NewProgress(o Options) *Progress {
	return &Progress{out: o.Out, paint: o.Paint, width: o.Width, start: o.Start, look: o.Task, members: o.Members,
		names: 8, subjects: map[muster.TaskID]string{}, check: o.Check, living: Presence{check: o.Check}, opening: o.Opening}
}

// Told says whether a line was written.
func (p *Progress) Told() bool { return p.told }

// Resize says that the terminal has another width now, in columns.
func (p *Progress) Resize(width int) { p.width = width }

// Rows are the living members at that time, as lines of less than width columns.
func (p *Progress) Rows(now time.Time, width int) []string {
	return p.living.Rows(p.paint, now, width, p.subject)
}

// Event tells one event.
func (p *Progress) Event(e muster.Event) {
	if s := e.Text("subject"); s != "" && e.Task != 0 {
		p.subjects[e.Task] = s
	}
	switch e.Kind {
	case journal.RunStarted: // what an earlier run had is over
		p.check, p.living.check = "", ""
	case journal.CheckStarted, journal.CheckBase:
		p.check = e.Text("command")
	}
	p.opening = ""
	p.living.Apply(e)
	p.settle(e)
	p.checking(e)
	if e.Kind == journal.TaskCreated && e.Member == muster.Lead {
		p.plan, p.planned = append(p.plan, e.Task), muster.Time(e.At)
		return
	}
	if e.Kind == journal.MailSent && e.Text("type") == string(muster.MailBroadcast) {
		said := string(e.Member) + " " + e.Text("text")
		if said == p.heard {
			return // the same to the next one
		}
		p.heard = said
	}
	if e.Kind == journal.TaskClaimed && e.Text("lane") == "" {
		p.tell()
		p.claim(e)
		return
	}
	for _, l := range Lines(e, Facts{p.subject, p.check}) {
		if l.Show {
			p.tell()
			p.say(muster.Time(e.At), l)
		}
	}
}

// checking takes note of checks that begin and end.
func (p *Progress) checking(e muster.Event) {
	switch e.Kind {
	case journal.CheckStarted, journal.CheckBase, journal.TaskLanding, journal.TaskReturned, journal.TaskCompleted, journal.TaskReleased, journal.TaskRevoked, journal.TaskAttention:
	default:
		return
	}
	p.checks = slices.DeleteFunc(p.checks, func(c checking) bool { return c.task == e.Task })
	at := muster.Time(e.At)
	switch {
	case e.Kind == journal.CheckStarted:
		p.checks = append(p.checks, checking{at, 0, running("the base", Cut(OneLine(p.check), 60))})
	case e.Kind == journal.TaskLanding && p.check != "" && p.width == 0 && p.members == nil: // on a terminal its owner's row says it
		l := running(teller{Event: e, Facts: Facts{p.subject, p.check}}.name(), Cut(OneLine(p.check), 60))
		l.Verb, l.Text = "lands?", strings.TrimSuffix(l.Text, "running")+"under way" // it may still wait for another landing
		p.checks = append(p.checks, checking{at, e.Task, l})
	}
}

// claim tells who takes a task, in which lane: the one that the task has already, or the one that is made for it now.
func (p *Progress) claim(e muster.Event) {
	s := said{at: muster.Time(e.At), claim: e.Task, by: e.Member}
	if t, err := p.look(e.Task); err == nil && t.Worktree != "" && t.Owner == e.Member {
		e, s.claim = withLane(e, string(t.Worktree)), 0
	}
	s.line = Lines(e, Facts{p.subject, p.check})[0]
	p.queue = append(p.queue, s)
	p.flush()
}

// withLane is a claim with its lane.
func withLane(e muster.Event, lane string) muster.Event {
	return muster.Event{Kind: journal.TaskClaimed, At: e.At, Member: e.Member, Task: e.Task, Fields: map[string]any{"lane": lane}}
}

// settle ends the wait of claims: their lane is there, or what comes next shows that they have none.
func (p *Progress) settle(e muster.Event) {
	for i := range p.queue {
		s := &p.queue[i]
		switch {
		case s.claim == 0:
		case e.Kind == journal.LaneCreated && e.Task == s.claim:
			s.line = Lines(withLane(muster.Event{Member: s.by, Task: s.claim}, e.Text("lane")), Facts{p.subject, p.check})[0]
			s.claim = 0
		case e.Task == s.claim || e.Kind == journal.TurnStarted && e.Member == s.by:
			s.claim = 0
		}
	}
	p.flush()
}

// flush writes what need not wait.
func (p *Progress) flush() {
	for len(p.queue) > 0 && p.queue[0].claim == 0 {
		s := p.queue[0]
		p.queue = p.queue[1:]
		p.write(s.at, s.line)
	}
}

// say writes one line above the living members, behind those that wait.
func (p *Progress) say(at time.Time, l Line) {
	p.queue = append(p.queue, said{at: at, line: l})
	p.flush()
}

func (p *Progress) write(at time.Time, l Line) {
	p.told = true
	p.erase()
	p.names = max(p.names, min(len(l.Who), 16))
	io.WriteString(p.out, l.Format(p.paint, fmt.Sprintf("%6s ", elapsed(at.Sub(p.start))), p.names, p.width)+"\n")
}

// tell says the plan that has gathered.
func (p *Progress) tell() {
	if len(p.plan) == 0 {
		return
	}
	ids := p.plan
	p.plan = nil
	var each []string
	for _, id := range ids {
		s := fmt.Sprintf("%d %s", id, OneLine(p.subject(id)))
		if t, err := p.look(id); err == nil && len(t.DependsOn) > 0 {
			s += " (after " + IDs(t.DependsOn) + ")"
		}
		each = append(each, s)
	}
	text := ""
	for i, s := range each {
		if i > 0 && len(text)+len(s) > 110 {
			text += ", ..."
			break
		}
		if i > 0 {
			text += ", "
		}
		text += s
	}
	p.say(p.planned, Line{Who: string(muster.Lead), Verb: "plan", Text: Count(len(ids), "task") + ": " + text})
}

// IDs is ids with commas.
func IDs(ids []muster.TaskID) string {
	var s []string
	for _, id := range ids {
		s = append(s, fmt.Sprint(id))
	}
	return strings.Join(s, ", ")
}

func (p *Progress) subject(id muster.TaskID) string {
	if s, ok := p.subjects[id]; ok || id == 0 {
		return s
	}
	s := ""
	if t, err := p.look(id); err == nil {
		s = t.Subject
	}
	p.subjects[id] = s
	return s
}

// Tick draws the living members anew where something has changed, and tells a plan that is complete.
func (p *Progress) Tick(now time.Time) {
	if len(p.plan) > 0 && now.Sub(p.planned) >= planLull {
		p.tell()
	}
	for i := range p.queue {
		s := &p.queue[i]
		if s.claim == 0 || now.Sub(s.at) < laneLull {
			continue
		}
		if p.living.Find(s.by) != nil { // a member has lanes, who claims from outside has none
			s.line = Lines(muster.Event{Kind: journal.TaskClaimed, Member: s.by, Task: s.claim}, Facts{p.subject, p.check})[0]
			s.line.Text = Pad(s.line.Text, taskColumn) + "  its lane is being made"
		}
		s.claim = 0
	}
	p.flush()
	for len(p.checks) > 0 && now.Sub(p.checks[0].at) >= longWork {
		p.tell()
		p.say(now, p.checks[0].line)
		p.checks = p.checks[1:]
	}
	if p.opening != "" && now.Sub(p.start) >= longWork {
		p.say(p.start, Line{Who: "muster", Verb: "begins", Text: p.opening})
		p.opening = ""
	}
	if p.width == 0 || now.Sub(p.drawnAt) < Redraw {
		return
	}
	rows := p.Rows(now, p.width)
	if p.members == nil && len(rows) > 0 {
		rows = append([]string{""}, rows...) // apart from what happened
	}
	if slices.Equal(rows, p.drawn) {
		return
	}
	p.erase()
	p.drawn, p.drawnAt = rows, now
	if p.members != nil {
		p.members(rows)
		return
	}
	if len(rows) > 0 {
		io.WriteString(p.out, strings.Join(rows, "\n")+"\n")
	}
}

// erase takes the living members off the terminal.
func (p *Progress) erase() {
	if p.members != nil { // whoever draws them takes them away
		return
	}
	if len(p.drawn) > 0 {
		fmt.Fprintf(p.out, "\x1b[%dA\r\x1b[J", len(p.drawn))
	}
	p.drawn = nil
}

// Close tells what is left to tell and leaves the terminal with lines only.
func (p *Progress) Close() {
	p.tell()
	for i := range p.queue {
		p.queue[i].claim = 0
	}
	p.flush()
	p.erase()
}
