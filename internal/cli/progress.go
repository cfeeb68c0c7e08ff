package cli

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
	redraw   = 100 * time.Millisecond // at most that often
	planLull = time.Second            // a plan is told when no task was added for that long
	laneLull = time.Second            // a claim is told without its lane when none came for that long
)

// progress tells people what happens: one line an event and, on a terminal, the living members below, redrawn in
// place. It is used by one goroutine. It sets no mode of the terminal, so whatever ends the program leaves it clean.
type progress struct {
	out   io.Writer
	paint paint
	width int // of the terminal; 0: it is none
	start time.Time
	look  func(muster.TaskID) (muster.Task, error)

	names    int // the width of the second column
	subjects map[muster.TaskID]string
	check    string
	living   living
	plan     []muster.TaskID // the lead's new tasks, not told yet
	planned  time.Time       // when the last of them came
	heard    string          // the last broadcast
	told     bool            // anything
	queue    []said          // begins with a claim whose lane is not known yet; else empty
	drawn    []string        // the living members' lines as they stand on the terminal
	drawnAt  time.Time
}

// said is a line at its time. One that tells a claim waits for the claim's lane, and all that came later behind it.
type said struct {
	at    time.Time
	line  line
	claim muster.TaskID // 0: it need not wait
	by    muster.Name
}

func newProgress(out io.Writer, p paint, width int, start time.Time, look func(muster.TaskID) (muster.Task, error)) *progress {
	return &progress{out: out, paint: p, width: width, start: start, look: look, names: 8, subjects: map[muster.TaskID]string{}}
}

// event tells one event.
func (p *progress) event(e muster.Event) {
	if s := e.Text("subject"); s != "" && e.Task != 0 {
		p.subjects[e.Task] = s
	}
	if e.Kind == journal.CheckBase {
		p.check = e.Text("command")
	}
	p.living.apply(e)
	p.settle(e)
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
	for _, l := range lines(e, facts{p.subject, p.check}) {
		if l.show {
			p.tell()
			p.say(muster.Time(e.At), l)
		}
	}
}

// claim tells who takes a task, in which lane: the one that the task has already, or the one that is made for it now.
func (p *progress) claim(e muster.Event) {
	s := said{at: muster.Time(e.At), claim: e.Task, by: e.Member}
	if t, err := p.look(e.Task); err == nil && t.Worktree != "" && t.Owner == e.Member {
		e, s.claim = withLane(e, string(t.Worktree)), 0
	}
	s.line = lines(e, facts{p.subject, p.check})[0]
	p.queue = append(p.queue, s)
	p.flush()
}

// withLane is a claim with its lane.
func withLane(e muster.Event, lane string) muster.Event {
	return muster.Event{Kind: journal.TaskClaimed, At: e.At, Member: e.Member, Task: e.Task, Fields: map[string]any{"lane": lane}}
}

// settle ends the wait of claims: their lane is there, or what comes next shows that they have none.
func (p *progress) settle(e muster.Event) {
	for i := range p.queue {
		s := &p.queue[i]
		switch {
		case s.claim == 0:
		case e.Kind == journal.LaneCreated && e.Task == s.claim:
			s.line = lines(withLane(muster.Event{Member: s.by, Task: s.claim}, e.Text("lane")), facts{p.subject, p.check})[0]
			s.claim = 0
		case e.Task == s.claim || e.Kind == journal.TurnStarted && e.Member == s.by:
			s.claim = 0
		}
	}
	p.flush()
}

// flush writes what need not wait.
func (p *progress) flush() {
	for len(p.queue) > 0 && p.queue[0].claim == 0 {
		s := p.queue[0]
		p.queue = p.queue[1:]
		p.write(s.at, s.line)
	}
}

// say writes one line above the living members, behind those that wait.
func (p *progress) say(at time.Time, l line) {
	p.queue = append(p.queue, said{at: at, line: l})
	p.flush()
}

func (p *progress) write(at time.Time, l line) {
	p.told = true
	p.erase()
	p.names = max(p.names, min(len(l.who), 16))
	verb := l.verb
	if l.text != "" {
		verb = pad(verb, 6)
	}
	text, indent := l.text, len("123.4s ")+p.names+len(" verb12 ")
	if p.width > 0 {
		text = strings.Join(l.fit(max(p.width-indent, 20)), "\n"+strings.Repeat(" ", indent))
	}
	s := fmt.Sprintf("%6s %s %s %s", elapsed(at.Sub(p.start)), p.paint.who(l.who, pad(l.who, p.names)), p.paint.in(l.tone, verb), text)
	io.WriteString(p.out, strings.TrimRight(s, " ")+"\n")
}

// tell says the plan that has gathered.
func (p *progress) tell() {
	if len(p.plan) == 0 {
		return
	}
	ids := p.plan
	p.plan = nil
	var each []string
	for _, id := range ids {
		s := fmt.Sprintf("%d %s", id, oneLine(p.subject(id)))
		if t, err := p.look(id); err == nil && len(t.DependsOn) > 0 {
			s += " (after " + list(t.DependsOn) + ")"
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
	p.say(p.planned, line{who: string(muster.Lead), verb: "plan", text: number(len(ids), "task") + ": " + text})
}

// list is ids with commas.
func list(ids []muster.TaskID) string {
	var s []string
	for _, id := range ids {
		s = append(s, fmt.Sprint(id))
	}
	return strings.Join(s, ", ")
}

func (p *progress) subject(id muster.TaskID) string {
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

// tick draws the living members anew where something has changed, and tells a plan that is complete.
func (p *progress) tick(now time.Time) {
	if len(p.plan) > 0 && now.Sub(p.planned) >= planLull {
		p.tell()
	}
	for i := range p.queue {
		if now.Sub(p.queue[i].at) >= laneLull {
			p.queue[i].claim = 0
		}
	}
	p.flush()
	if p.width == 0 || now.Sub(p.drawnAt) < redraw {
		return
	}
	rows := p.living.rows(p.paint, now, p.width, p.subject)
	if len(rows) > 0 {
		rows = append([]string{""}, rows...) // apart from what happened
	}
	if slices.Equal(rows, p.drawn) {
		return
	}
	p.erase()
	io.WriteString(p.out, strings.Join(rows, "\n"))
	if len(rows) > 0 {
		io.WriteString(p.out, "\n")
	}
	p.drawn, p.drawnAt = rows, now
}

// erase takes the living members off the terminal.
func (p *progress) erase() {
	if len(p.drawn) > 0 {
		fmt.Fprintf(p.out, "\x1b[%dA\r\x1b[J", len(p.drawn))
	}
	p.drawn = nil
}

// close tells what is left to tell and leaves the terminal with lines only.
func (p *progress) close() {
	p.tell()
	for i := range p.queue {
		p.queue[i].claim = 0
	}
	p.flush()
	p.erase()
}
