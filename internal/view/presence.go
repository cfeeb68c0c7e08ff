package view

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/spend"
	"muster/internal/text"
	"muster/journal"
	"muster/llm"
)

// Presence is what the members do right now, according to the events. It is derived from them alone and read by people
// alone: whether a member lives, and what it has claimed, is decided by records.
type Presence struct {
	members []*Activity // in the order in which they joined, the lead first
	// claims has the tasks of those who are not shown: people outside the team, and members whose event of spawning
	// comes after that of their first claim.
	claims map[muster.Name]muster.TaskID
	budget string   // of the run; "" is none
	check  string   // the run's check, as one line; "" when none is known
	queue  landings // what is to land

	// costs is what each member has spent in the run, and spent what all have.
	costs map[muster.Name]spend.Sum
	spent spend.Sum

	// dayBudget says that most of the user's budget of a day is spent; "" while it is not.
	dayBudget string

	// asking are the members whose question stands in a frame, which says all that a row would.
	asking []muster.Name

	// context is how many tokens the lead's last request and its reply had, and model who has counted them.
	context int
	model   string

	// These are the widest columns so far. They never shrink, because jumping lines cannot be read.
	names, states, tasks, turns, prices int
}

// Clone returns a presence that stays as it is when this one changes.
func (l *Presence) Clone() Presence {
	c := *l
	c.costs, c.claims, c.queue = maps.Clone(l.costs), maps.Clone(l.claims), l.queue.clone()
	// Activities are changed in place, so they are copied, too.
	c.members = make([]*Activity, len(l.members))
	for i, m := range l.members {
		one := *m
		c.members[i] = &one
	}
	return c
}

func (l *Presence) noteContext(e muster.Event) {
	if e.Kind == journal.TurnEnded && e.Member == muster.Lead && !bySubagent(e) && e.Fields["summary"] == nil {
		l.model, l.context = e.Text("model"), sentAndRead(e)
	}
}

func sentAndRead(e muster.Event) (n int) {
	for _, part := range []string{"input", "cache_read", "cache_write", "cache_write_long", "output"} {
		n += int(e.Number(part))
	}
	return n
}

// noteBudget notes that the budget of a day is nearly spent, until a run begins anew.
func (l *Presence) noteBudget(e muster.Event) {
	switch e.Kind {
	case journal.RunStarted, journal.RunResumed:
		l.dayBudget = ""
	case journal.BudgetWarned, journal.BudgetSpent:
		if spend.Scope(e.Text("scope")) == spend.OfDay {
			l.dayBudget = text.OneLine(e.Text("text"))
		}
	}
}

func (l *Presence) addCost(e muster.Event) {
	dollars, isKnown := e.Fields["dollars"]
	if e.Kind != journal.TurnEnded || !isKnown {
		return
	}
	// The sums of tokens of a kind are not kept here, so all of them count as input.
	s := spend.Sum{Dollars: spend.FromFloat(e.Number("dollars")), Usage: llm.Usage{Input: sentAndRead(e)}}
	if dollars == nil {
		s.Unpriced = 1
	}
	if l.costs == nil {
		l.costs = map[muster.Name]spend.Sum{}
	}
	who := e.Member
	if h := l.Find(helperOf(e)); h != nil {
		who = h.name
	}
	l.costs[who], l.spent = l.costs[who].Plus(s), l.spent.Plus(s)
}

// Activity is what one member does.
type Activity struct {
	name muster.Name
	// worksFor is the member for which a helper works, and role its role. Both are "" for a member.
	worksFor    muster.Name
	role, model string
	state       Look          // working, needs you, idle, landing, waiting or stopped
	task        muster.TaskID // that it has claimed, or 0
	turn        int           // of all that it has taken, as the tables of members count them; 0 before the first one
	// step is where it is in the list of its own steps, "" where it has none or has done all.
	step string
	// Doing is the running tool, or why the member is idle.
	Doing string
	// Since is when it began to do that.
	Since time.Time
}

// Apply updates the presence with one event. Its member begins to be shown with the first event that says what it does.
func (l *Presence) Apply(e muster.Event) {
	if e.Kind == journal.CheckStarted || e.Kind == journal.CheckBase {
		l.check = text.OneLine(e.Text("command"))
	}
	l.queue.apply(e)
	l.noteBudget(e)
	m := l.Find(e.Member)
	switch {
	case e.Member == "" || e.Member == muster.System || e.Member == muster.User:
		return
	case bySubagent(e): // the member itself is still in the call that has started it
		l.applyToHelper(e)
		return
	case m == nil && strings.HasPrefix(e.Kind, "task."): // somebody outside the team is no member
		l.noteClaim(e)
		return
	case m == nil:
		m = &Activity{name: e.Member, task: l.claims[e.Member]}
	}
	state, doing := LookWorking, ""
	switch e.Kind {
	case journal.TurnStarted, journal.MemberIdle, journal.MemberSpawned, journal.MemberResumed, journal.MemberShutdown:
		// What it has asked a helper for has ended with its turn before this, or with the process that it lived in.
		l.endHelpers(func(h *Activity) bool { return h.worksFor == m.name })
	}
	switch e.Kind {
	case journal.MemberShutdown:
		l.members = slices.DeleteFunc(l.members, func(o *Activity) bool { return o == m })
		return
	case journal.MemberSpawned, journal.MemberResumed, journal.MemberWorking, journal.ToolEnded, journal.TaskReturned:
	case journal.MemberIdle:
		state = idleLook(muster.IdleReason(e.Text("reason")))
		doing = IdleReason(e.Member, e.Text("reason"))
	case journal.TurnStarted:
		m.turn, doing = turnOf(e), "thinks"
	case journal.TurnEnded: // its tools are still to run, or the member rests
		if m.state != "" && m.Doing != "thinks" { // it does something else already
			return
		}
	case journal.ToolStarted:
		doing = strings.TrimSpace(text.OneLine(e.Text("tool")) + " " + text.OneLine(e.Text("text")))
		if e.Text("tool") == "wait" { // the lead sleeps in this tool
			state, doing = LookWaiting, IdleReason(e.Member, string(muster.IdleMessages))
		}
	case journal.ModelRetry:
		state, doing = LookWaiting, text.OneLine(e.Text("text"))
	case journal.TaskClaimed:
		m.task, m.step = e.Task, ""
		return
	case journal.MemberSteps:
		m.step = stepText(e)
		return
	case journal.TaskLanding: // what it waits for, the queue says
		state = LookLanding
	case journal.TaskCompleted, journal.TaskReleased, journal.TaskRevoked, journal.TaskAttention:
		if m.task != e.Task {
			return
		}
		m.task = 0
	default:
		return
	}
	m.state, m.Doing, m.Since = state, doing, muster.Time(e.At)
	l.add(m)
}

// noteClaim notes the task of somebody who is not shown. The two events of a new member, its spawning and its first
// claim, are written by different goroutines, so they may come in either order.
func (l *Presence) noteClaim(e muster.Event) {
	switch e.Kind {
	case journal.TaskClaimed:
		if l.claims == nil {
			l.claims = map[muster.Name]muster.TaskID{}
		}
		l.claims[e.Member] = e.Task
	case journal.TaskCompleted, journal.TaskReleased, journal.TaskRevoked, journal.TaskAttention:
		if l.claims[e.Member] == e.Task {
			delete(l.claims, e.Member)
		}
	}
}

// noteResting takes from the records who waits for the user. Events say only that the lead waits for mail, and that a
// member runs the tool that asks.
func (l *Presence) noteResting(o Overview) {
	for _, m := range o.Members {
		a, isAsking := l.Find(m.Name), m.Alive && m.Doing != WaitsForUser && o.asksFor(m) != ""
		switch {
		case a == nil || a.state == LookStopped:
		case m.Doing == WaitsForUser && a.state == LookWaiting:
			a.state, a.Doing = LookIdle, WaitsForUser
		case isAsking:
			a.state, a.Doing = LookNeedsYou, o.asksFor(m)
		case a.state == LookNeedsYou:
			a.state, a.Doing = LookWorking, ""
		}
	}
}

// stopAll shows all members as stopped: the process that they lived in has ended.
func (l *Presence) stopAll(at time.Time) {
	l.endHelpers(func(h *Activity) bool { return h.worksFor != "" })
	for _, m := range l.members {
		m.state, m.Doing, m.Since = LookStopped, "", at
	}
}

// turnOf returns the number of a turn, of all that the member has taken. Events of old do not have it.
func turnOf(e muster.Event) int { return int(cmp.Or(e.Number("turns"), e.Number("turn"))) }

// add begins to show a member, unless it is shown already.
func (l *Presence) add(m *Activity) {
	at := len(l.members)
	if m.name == muster.Lead { // the lead comes first
		at = 0
	}
	if m.worksFor != "" { // below its member, and its other helpers
		for i, o := range l.members {
			if o.name == m.worksFor || o.worksFor == m.worksFor {
				at = i + 1
			}
		}
	}
	if !slices.Contains(l.members, m) {
		l.members = slices.Insert(l.members, at, m)
		delete(l.claims, m.name)
	}
}

// DoingOf returns what a member does, and since when. One whose task is to land does what the queue says.
func (l *Presence) DoingOf(m *Activity, now time.Time) (doing string, since time.Time) {
	if m.state != LookLanding {
		if m.state == LookWorking {
			doing = m.step
		}
		return strings.TrimPrefix(Because(doing, m.Doing), ": "), m.Since
	}
	if c := l.queue.checkOf(m.task); c != nil {
		return l.queue.describe(m.task, now), c.since
	}
	return l.queue.describe(m.task, now), m.Since
}

// stepText says where a member is in the list of its own steps: "2 of 5, write the parser". It is "" for no list, and
// for one that is done.
func stepText(e muster.Event) string {
	done, of := int(e.Number("done")), int(e.Number("of"))
	if done >= of {
		return ""
	}
	step := fmt.Sprintf("%d of %d", done, of)
	if at := text.OneLine(e.Text("text")); at != "" {
		step = fmt.Sprintf("%d of %d, %s", done+1, of, text.CutColumns(at, 40))
	}
	return step
}

// bySubagent reports whether an event tells of a helper of its member, such as a subagent.
func bySubagent(e muster.Event) bool {
	is, _ := e.Fields["subagent"].(bool)
	return is
}

// Find returns what the member does, or nil if no event has mentioned it.
func (l *Presence) Find(n muster.Name) *Activity {
	if i := slices.IndexFunc(l.members, func(m *Activity) bool { return m.name == n }); i >= 0 {
		return l.members[i]
	}
	return nil
}

// IdleReason says why a member is idle. A lead that waits for mail waits for its team, whoever writes.
func IdleReason(who muster.Name, reason string) string {
	if who == muster.Lead && muster.IdleReason(reason) == muster.IdleMessages {
		return "waits for the team"
	}
	if strings.Contains(reason, " ") { // words already
		return text.OneLine(reason)
	}
	return wordOf(idleReasons, muster.IdleReason(reason))
}

// Rows returns the members as lines of less than width columns:
//
//	alice  working  2 counter   turn 7  bash go test ./...  12 s
func (l *Presence) Rows(p Paint, now time.Time, width int, subject func(muster.TaskID) string) []string {
	return l.rows(p, now, width, mostMembers, subject)
}

// rows is Rows with at most so many members.
func (l *Presence) rows(
	p Paint, now time.Time, width, most int, subject func(muster.TaskID) string,
) []string {
	shown, rest := l.matters(most)
	shown = slices.DeleteFunc(slices.Clone(shown), l.isAsking)
	tasks := make([]string, len(shown))
	l.names = max(l.names, leastNames)
	for i, m := range shown {
		l.names, l.states = max(l.names, min(len(m.label()), 16)), max(l.states, 7, len(m.state))
		if m.task != 0 {
			name := strings.TrimSpace(fmt.Sprintf("%d %s", m.task, text.OneLine(subject(m.task))))
			tasks[i] = text.CutColumns(name, taskColumn)
		}
		l.tasks = max(l.tasks, text.Columns(tasks[i]))
		if turn := m.turnText(); turn != "" {
			l.turns = max(l.turns, 7, len(turn))
		}
		l.prices = max(l.prices, text.Columns(l.costs[m.name].Cost()))
	}
	// The columns are as wide as the widest of all rows, so the rows are laid out only when all are known.
	var rows []string
	for i, m := range shown {
		shown := *m
		shown.Doing, shown.Since = l.DoingOf(m, now)
		if m.state == LookWaiting { // the column before it says so
			shown.Doing = waitsFor(shown.Doing)
		}
		rows = append(rows, l.row(p, &shown, tasks[i], Duration(now.Sub(shown.Since)), width-1))
	}
	if rest != "" {
		rows = append(rows, text.CutColumns(rest, max(width-1, 0)))
	}
	return rows
}

// isAsking reports whether the question of a member stands in a frame.
func (l *Presence) isAsking(m *Activity) bool { return slices.Contains(l.asking, m.name) }

// turnText names the member's turn, or is empty before the first one.
func (m *Activity) turnText() string {
	if m.turn == 0 {
		return ""
	}
	return fmt.Sprintf("turn %d", m.turn)
}

// leastNames is the least width of the column of names.
const leastNames = 8

// nameColumns returns how wide the column of names is in rows of room columns. Where they are too few for what a member
// does beside a long name and its state, names are cut, and isNarrow says so.
func (l *Presence) nameColumns(room int) (names int, isNarrow bool) {
	const state, took, least, name = 9, 7, 16, 8
	if room < l.names+state+took+least {
		return min(l.names, name), true
	}
	return l.names, false
}

// row returns one member in room columns. Where they are too few, it leaves out first what the member does right now,
// then the turn, then the task. Where only a few are left beside the name, it says in words how the member stands.
func (l *Presence) row(p Paint, m *Activity, task, took string, room int) string {
	const least = 8 // columns; less of a text says nothing
	names, isNarrow := l.nameColumns(room)
	names = min(names, max(room-len(took)-2, least))
	head := text.PadColumns(text.CutColumns(m.label(), names), names)
	who := string(cmp.Or(m.worksFor, m.name))
	left := room - text.Columns(head) - text.Columns(took) - 2
	rest := ""
	column := func(s string, width int) {
		if width > 0 && left >= width+2 {
			rest += "  " + text.PadColumns(s, width)
			left -= width + 2
		}
	}
	// shrinking is a column that may be narrower than its text, but not narrower than least.
	shrinking := func(s string, width int) {
		if room := min(width, left-2); room >= min(width, least) {
			column(text.CutColumns(s, room), room)
		}
	}
	// One text has all that is known, so that the end of it is cut and never a whole column of it.
	if isNarrow {
		number, _, _ := strings.Cut(task, " ")
		s := Standing{Look: m.state, What: m.Doing}
		if m.state == LookWorking {
			s.What = strings.TrimPrefix(Because(number, cmp.Or(m.Doing, string(m.state))), ": ")
		}
		shrinking(s.Text(), text.Columns(s.Text()))
		column(l.costs[m.name].Cost(), text.Columns(l.costs[m.name].Cost()))
		return p.Who(who, head) + rest + "  " + took
	}
	column(string(m.state), l.states)
	if m.state == LookIdle && task == "" && text.Columns(m.Doing) <= l.tasks { // why it has none
		task, m.Doing = m.Doing, ""
	}
	shrinking(task, l.tasks)
	turn := m.turnText()
	if m.state == LookIdle {
		turn = ""
	}
	column(turn, l.turns)
	column(l.costs[m.name].Cost(), l.prices)
	shrinking(m.Doing, text.Columns(m.Doing))
	rest = strings.TrimRight(rest, " ")
	if m.state == LookNeedsYou {
		rest = p.In(Yours, rest)
	}
	return p.Who(who, head) + rest + "  " + took
}
