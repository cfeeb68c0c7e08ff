package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"muster"
	"muster/internal/spend"
	"muster/internal/text"
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
// in place. Its methods may be called from any goroutine: events come from the journal, and those that the journal
// could not take from the team's own goroutines. It sets no mode of the terminal, so the terminal stays usable however
// the program ends.
//
// A line is written once and never changed. So a line that will be known better in a moment waits: the plan for more
// tasks, a claim for its lane, and a check for its outcome, which makes the line that it has begun superfluous.
type Progress struct {
	mu sync.Mutex // guards the fields below; exported methods lock it
	// options are as given, but Opening is emptied when it is said or not needed, and Width follows the terminal.
	options Options
	// names is the width of the second column. It only grows, because jumping columns cannot be read.
	names int
	// subjects caches the subjects of tasks, because each line needs one. It has "" for a task that cannot be read.
	subjects map[muster.TaskID]string
	presence Presence
	plan     []muster.TaskID // the lead's new tasks that were not written yet
	// planAt is when the last of the tasks in plan was added.
	planAt time.Time
	// planBy is who added them: the lead, or the system for a playbook.
	planBy muster.Name
	// lastBroadcast is the last broadcast. It is mailed to each member, but shown once.
	lastBroadcast string
	wroteLine     bool
	// hasRowsAbove says that the last line had rows below it.
	hasRowsAbove bool
	// queue has the lines that wait, in the order of their events. It begins with a claim whose lane is not known yet,
	// or is empty.
	queue []queuedLine
	// checks are the checks and landings under way that were not mentioned yet, oldest first. That of the base has no
	// task.
	checks []queuedLine
	// command is the check's command as a line has said it. Lines that follow leave it out.
	command string
	// drawn are the rows of the living members as they stand on the terminal.
	drawn      []string
	drawnAt    time.Time
	drawnWidth int // of the terminal then
	// drawer prints the lines in place of Options.Print, and draws the rows; nil: Progress does both.
	drawer func(text string)
	alerts alerts
	height int // of the terminal; 0: not known
	// board is what the board had at boardAt. boardIsOld says that events have come since.
	board      Overview
	boardAt    time.Time
	boardIsOld bool
	questions  []Need // that wait for the user
	needsUser  bool   // something waits for the user
	calls      toolCalls
}

// queuedLine is a line with its time. A claim's line waits until the claim's lane is known, and later lines wait
// behind it.
type queuedLine struct {
	at   time.Time // when the event happened, which the line's first column says
	line Line
	task muster.TaskID
	by   muster.Name // who claimed the task
	// waits says that something of the line is not known yet: the lane of a claim, or what a landing waits for.
	waits bool
}

// endWait says what is known of a claim's lane. The claim's line waits no longer.
func (q *queuedLine) endWait(lane string) { q.line.Text, q.waits = nameWith(q.line.name, lane), false }

func laneText(lane string) string {
	if lane == "" {
		return ""
	}
	return "lane " + text.CutColumns(text.OneLine(lane), 40)
}

// Options say where progress is shown, and how. Print, Start and Task are needed.
type Options struct {
	Print  func(text string) // prints one event's line with its newline; it may be wrapped
	Screen                   // on which Print prints
	Start  time.Time         // what the first column counts from
	Task   func(muster.TaskID) (muster.Task, error)
	Check  string // the run's check, as far as it is known before its events

	// Opening is said when no event has come for a second after the start: what is done before the first one.
	Opening string

	// OnlyLines says that somebody else draws the living members, from Rows. Otherwise they are printed below the lines
	// on a terminal.
	OnlyLines bool

	// OneKey says that one key can answer a question here, so no line names the command.
	OneKey bool

	// Size returns the columns and rows of the terminal, which the user can resize; nil: Width stays. Rewraps says that
	// the terminal wraps its rows anew when it gets narrower.
	Size    func() (width, height int)
	Rewraps bool

	// Board returns the tasks, and what waits for the user, of an Overview; nil: they are not shown.
	Board func() (Overview, error)
	// Window returns how many tokens a model takes, 0 where that is not known; nil: it never is.
	Window func(model string) int

	// Below returns what stands below the line of a call that has ended, as rows: the beginning of the difference of an
	// edit, with its counts as in "+12 -3", or of the output of a command. nil: nothing does.
	Below func(ended muster.Event, number int) (counts string, rows []string)

	// Notify tells the user, who may look elsewhere, that something needs them; nil: nobody is told.
	Notify func(words string)
}

// NewProgress returns the progress of a run.
func NewProgress(o Options) *Progress {
	// A conversation may begin beside a team that has something for the user already.
	return &Progress{options: o, names: 8, subjects: map[muster.TaskID]string{}, boardIsOld: o.OnlyLines,
		presence: Presence{check: text.OneLine(o.Check)}, alerts: alerts{notify: o.Notify}}
}

// SetSpent says what the run may spend, "" for any amount, and what it had spent before its events.
func (p *Progress) SetSpent(budget string, before spend.Book) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.presence.budget, p.presence.costs, p.presence.spent = budget, maps.Clone(before.Members), before.Total
}

// HasWritten reports whether a line was written. It is called when all events were shown.
func (p *Progress) HasWritten() bool { return p.wroteLine }

// Event shows one event. Its line may be written now, later, together with others, or not at all.
func (p *Progress) Event(e muster.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := e.Text("subject"); s != "" && e.Task != 0 {
		p.subjects[e.Task] = s
	}
	if e.Kind == journal.RunStarted { // what an earlier run had is over
		p.presence.check = ""
	}
	p.options.Opening = "" // something happens, so nobody wonders
	p.alerts.event(e, p.subject)
	p.boardIsOld = true
	// What has waited for this event comes before its own line.
	p.presence.Apply(e)
	p.presence.addCost(e)
	p.presence.noteContext(e)
	p.resolveClaims(e)
	p.noteChecks(e)
	// The lead, or a playbook, adds tasks one by one. They are collected and shown as one plan, when another line comes
	// or none was added for a moment.
	if e.Kind == journal.TaskCreated && (e.Member == muster.Lead || e.Member == muster.System) {
		if e.Member != p.planBy {
			p.flushPlan()
		}
		p.plan, p.planAt, p.planBy = append(p.plan, e.Task), muster.Time(e.At), e.Member
		return
	}
	if e.Kind == journal.MailSent && e.Text("type") == string(muster.MailBroadcast) {
		// Each recipient's mail has an event of its own.
		said := string(e.Member) + " " + e.Text("text")
		if said == p.lastBroadcast {
			return // the same to the next one
		}
		p.lastBroadcast = said
	}
	hasFrame := p.options.OnlyLines && p.options.OneKey // for questions
	if hasFrame {
		e = withQuestion(e)
	}
	lines := Lines(e, p.facts())
	if hasFrame && e.Kind == journal.RequestCreated && e.Text("to") == string(muster.User) {
		lines = nil
	}
	if l := p.toolLine(e); p.options.OnlyLines && l.Show { // a run shows what lands, and not each step
		lines = []Line{l}
	}
	for _, l := range lines {
		if !l.Show {
			continue
		}
		p.flushPlan()
		q := queuedLine{at: muster.Time(e.At), line: l, task: e.Task, by: e.Member}
		if q.waits = e.Kind == journal.TaskClaimed && e.Text("lane") == ""; q.waits {
			// The task may have its lane already.
			if t, err := p.options.Task(e.Task); err == nil && t.Worktree != "" && t.Owner == e.Member {
				q.endWait(laneText(string(t.Worktree)))
			}
		}
		p.enqueue(q)
	}
}

// noteChecks remembers checks and landings that begin, and forgets those that end. Tick mentions those that are still
// remembered after a while.
func (p *Progress) noteChecks(e muster.Event) {
	switch e.Kind {
	case journal.CheckStarted, journal.CheckBase, journal.TaskLanding, journal.TaskReturned, journal.TaskCompleted,
		journal.TaskReleased, journal.TaskRevoked, journal.TaskAttention, journal.LandingCheck, journal.LandingChecked:
		p.checks = slices.DeleteFunc(p.checks, func(c queuedLine) bool { return c.task == e.Task })
	}
	isDrawn := p.options.Width > 0 || p.options.OnlyLines // then the row of the task's owner says it
	q, check := queuedLine{at: muster.Time(e.At), task: e.Task}, text.CutColumns(p.presence.check, 60)
	switch {
	case e.Kind == journal.CheckStarted:
		q.line = checkLine("the base", check, "running", Plain)
	case e.Kind == journal.TaskLanding && !isDrawn:
		q.waits = true // its text is made when it is written, for the queue moves
	case e.Kind == journal.LandingCheck && !isDrawn:
		// All that are checked together have one line.
		tasks := checkedTasks(e)
		p.checks = slices.DeleteFunc(p.checks, func(c queuedLine) bool { return slices.Contains(tasks, c.task) })
		q.line = checkLine(checkedName(tasks, lineWriter{e, p.facts()}.taskName()), check, "running", Plain)
	default:
		return
	}
	p.checks = append(p.checks, q)
}

func (p *Progress) landingLine(task muster.TaskID, now time.Time) Line {
	name := lineWriter{muster.Event{Task: task}, p.facts()}.taskName()
	text := nameWith(name, p.presence.queue.describe(task, now))
	return Line{Who: "landing", Verb: "lands?", Text: text, Show: true, name: name}
}

// resolveClaims ends the wait of claims: either their lane is known now, or the event shows that they have none. A turn
// of the owner begins only when its lane is made, so after one nothing is waited for.
func (p *Progress) resolveClaims(e muster.Event) {
	p.endWaits(func(q *queuedLine) {
		switch {
		case e.Kind == journal.LaneCreated && e.Task == q.task:
			q.endWait(laneText(e.Text("lane")))
		case e.Task == q.task || e.Kind == journal.TurnStarted && e.Member == q.by:
			q.waits = false
		}
	})
}

// endWaits calls a function that may end the wait of a claim, for each that waits, and writes the lines that need not
// wait. A line behind a claim that waits stays in the queue, so that the order of lines is that of the events.
func (p *Progress) endWaits(end func(claim *queuedLine)) {
	for i := range p.queue {
		if p.queue[i].waits {
			end(&p.queue[i])
		}
	}
	for len(p.queue) > 0 && !p.queue[0].waits {
		q := p.queue[0]
		p.queue = p.queue[1:]
		p.write(q.at, q.line)
	}
}

// enqueue writes one line, after those that wait.
func (p *Progress) enqueue(q queuedLine) {
	p.queue = append(p.queue, q)
	p.endWaits(func(*queuedLine) {})
}

func (p *Progress) write(at time.Time, l Line) {
	p.wroteLine = true
	if l.command != "" && l.command == p.command {
		l = l.withoutCommand()
	}
	p.command = cmp.Or(l.command, p.command)
	if !l.isCall {
		p.names = max(p.names, min(len(l.Who), 16))
	}
	when := fmt.Sprintf("%6s ", elapsed(at.Sub(p.options.Start)))
	if l.isOld {
		when = fmt.Sprintf("%6s ", at.Local().Format("15:04"))
	}
	l.faint = p.options.OnlyLines
	rows := p.drawn
	if p.measure() {
		rows = nil // they do not fit any more; the next redraw makes others
	}
	all := string(l.Append(nil, p.options.Paint, when, p.names, p.options.Width)) + "\n"
	if len(l.below) > 0 {
		all += strings.Join(l.below, "\n") + "\n"
	}
	if len(l.below) > 0 || p.hasRowsAbove { // air between blocks
		all = "\n" + all
	}
	p.hasRowsAbove = len(l.below) > 0
	p.repaint(all, rows)
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
		s := fmt.Sprintf("%d %s", id, text.OneLine(p.subject(id)))
		if t, err := p.options.Task(id); err == nil && len(t.DependsOn) > 0 {
			s += " (after " + IDs(t.DependsOn) + ")"
		}
		each = append(each, s)
	}
	// A plan of many tasks is cut: each of them has a line when it is claimed.
	line := each[0]
	for _, s := range each[1:] {
		if len(line)+len(s) > 110 {
			line += ", ..."
			break
		}
		line += ", " + s
	}
	line = text.Count(len(ids), "task") + ": " + line
	who := string(muster.Lead)
	if p.planBy == muster.System { // a playbook's
		who = "muster"
	}
	p.enqueue(queuedLine{at: p.planAt, line: Line{Who: who, Verb: "plan", Text: line}})
}

// Join joins the texts of items, as strings.Join joins strings.
func Join[T any](items []T, separator string, text func(T) string) string {
	var all []string
	for _, x := range items {
		all = append(all, text(x))
	}
	return strings.Join(all, separator)
}

// IDs joins task ids with commas.
func IDs(ids []muster.TaskID) string {
	return Join(ids, ", ", func(id muster.TaskID) string { return fmt.Sprint(id) })
}

func (p *Progress) facts() Facts {
	return Facts{Subject: p.subject, Check: p.presence.check, OneKey: p.options.OneKey}
}

// Subject returns the subject of a task, or "" if it cannot be read.
func (p *Progress) Subject(id muster.TaskID) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.subject(id)
}

// subject is Subject with the lock held.
func (p *Progress) subject(id muster.TaskID) string {
	if s, ok := p.subjects[id]; ok || id == 0 {
		return s
	}
	t, _ := p.options.Task(id) // without its record the task goes by its number
	p.subjects[id] = t.Subject
	return t.Subject
}

// Tick writes what has waited long enough, and redraws the living members if their rows have changed. It is called
// several times a second, also when nothing happens: the rows say for how long.
func (p *Progress) Tick(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.plan) > 0 && now.Sub(p.planAt) >= planDelay {
		p.flushPlan()
	}
	p.alerts.tick(now)
	p.expireClaims(now)
	for len(p.checks) > 0 && now.Sub(p.checks[0].at) >= longWorkDelay {
		p.flushPlan()
		q := p.checks[0]
		if q.waits {
			q.line = p.landingLine(q.task, now)
		}
		p.enqueue(queuedLine{at: now, line: q.line})
		p.checks = p.checks[1:]
	}
	if p.options.Opening != "" && now.Sub(p.options.Start) >= longWorkDelay {
		p.enqueue(queuedLine{at: p.options.Start, line: Line{Who: "muster", Verb: "begins", Text: p.options.Opening}})
		p.options.Opening = ""
	}
	if p.isLive() && now.Sub(p.drawnAt) >= RedrawInterval {
		p.redraw(now)
	}
}

// expireClaims writes the claims whose lane did not come in time. Otherwise a slow checkout would hold back all later
// lines.
func (p *Progress) expireClaims(now time.Time) {
	p.endWaits(func(q *queuedLine) {
		if now.Sub(q.at) < laneDelay {
			return
		}
		lane := ""
		if p.presence.Find(q.by) != nil { // members have lanes, other processes that claim have none
			lane = "its lane is being made"
		}
		q.endWait(lane)
	})
}

// Close writes what is left and leaves only lines on the terminal. Claims are written with what is known of their
// lanes.
func (p *Progress) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.flushPlan()
	p.endWaits(func(q *queuedLine) { q.waits = false })
	p.repaint("", nil)
}
