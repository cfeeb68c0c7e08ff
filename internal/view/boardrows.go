package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/text"
)

const (
	// maxNeeds is how many of the things that wait for the user have a row of their own.
	maxNeeds = 3
	// lowRows is below how many rows the line about the team has only what fits on one.
	lowRows = 12
)

// boardRows returns a line about the team, and what waits for the user, which stays in sight however much scrolls by.
// What the board has is read again when something has happened.
// They take at most so many rows as leave some for members; 0 is any number.
func (p *Progress) boardRows(now time.Time, most int) []string {
	// A conversation has them always: a team that has stopped may wait for an answer.
	if len(p.presence.members) == 0 && !p.options.OnlyLines {
		return nil
	}
	// A burst of events has it read once, and while nothing happens it is not read at all.
	if p.options.Board != nil && p.boardIsOld && now.Sub(p.boardAt) >= boardInterval {
		if o, err := p.options.Board(); err == nil { // else it stays as it was: the next event has it read again
			p.board = o
		}
		p.boardIsOld, p.boardAt = false, now
	}
	rows := p.teamRows()
	if most > 0 && most < lowRows {
		rows = rows[:min(1, len(rows))]
	}
	o := p.board
	// The events know sooner than any record what was spent.
	o.Run.Budget, o.Spending.Total, o.Presence.dayBudget = p.presence.budget, p.presence.spent, p.presence.dayBudget
	o.Now = now // how long something waits goes on, though the board is not read again
	if !p.boardIsOld {
		p.presence.noteResting(o) // a question to the lead is the user's after a while
	}
	needs := o.Needs()
	p.questions = slices.DeleteFunc(slices.Clone(needs), func(n Need) bool {
		return n.Request == nil || n.Request.To == muster.Lead && WaitingTime(*n.Request, now) < leadAnswerTime
	})
	p.needsUser = len(p.questions) > 0
	p.presence.asking = nil
	if p.options.OnlyLines || p.drawer != nil { // the questions have a frame of their own
		needs = slices.DeleteFunc(needs, func(n Need) bool { return n.Request != nil })
		for _, n := range p.questions {
			p.presence.asking = append(p.presence.asking, n.Request.From)
		}
		if !slices.ContainsFunc(p.presence.members, func(m *Activity) bool { return !p.presence.isAsking(m) }) {
			rows = nil // all members wait for an answer
		}
	}
	p.needsUser = p.needsUser || len(needs) > 0
	all := p.needRows(needs, maxNeeds, true)
	// On a low terminal the commands below go first, and then all but the first that waits.
	if left := max(most-leastMembers-1-len(rows), 2); most > 0 && len(all) > left {
		if all = p.needRows(needs, maxNeeds, false); len(all) > left {
			all = p.needRows(needs, 1, false)
		}
	}
	return append(rows, all...)
}

// rowHead returns the first column of a row about the team with the gap behind it, and how many columns are left.
func rowHead(p *Progress, name string) (head string, room int) {
	names, _ := p.presence.nameColumns(p.options.Width - 1)
	head = text.PadColumns(name+" ", max(names, leastNames)+2)
	return head, p.options.Width - 1 - text.Columns(head)
}

// teamRows returns a line with the tasks of each kind, what was spent of the budget, and how full the lead's context
// is. What does not fit stands on a second line, so that a narrow terminal has all of it.
func (p *Progress) teamRows() (rows []string) {
	if len(p.presence.members) == 0 { // no member has worked since the conversation began
		return nil
	}
	parts := strings.SplitAfter(p.board.counts(), ", ") // "" before the first task
	spent := spentOf(p.presence.budget, p.presence.spent)
	if l := p.presence; len(l.members) == 1 && spent == l.costs[l.members[0].name].Cost() {
		spent = "" // its row says it
	}
	if spent != "" {
		parts = append(parts, spent)
	}
	if p.options.Window != nil && p.presence.context > 0 {
		if window := p.options.Window(p.presence.model); window > 0 {
			parts = append(parts, "context "+percent(p.presence.context, window))
		}
	}
	name := "team"
	if len(p.board.Board) > 0 {
		name = "board"
	}
	head, room := rowHead(p, name)
	words := ""
	flush := func() {
		if words != "" && room > 0 {
			rows = append(rows, head+text.CutColumns(strings.TrimRight(words, " "), room))
			head, words = strings.Repeat(" ", text.Columns(head)), ""
		}
	}
	for _, part := range parts {
		gap := "   "
		if words == "" || strings.HasSuffix(words, ", ") {
			gap = ""
		}
		if words != "" && text.Columns(words+gap+strings.TrimRight(part, " ")) > room {
			flush()
			gap = ""
		}
		words += gap + part
	}
	flush()
	return rows
}

// needRows returns at most so many of the things that wait for the user, each with what to type. hasRoom says that a
// command may stand below what it is for, where it does not fit beside it.
func (p *Progress) needRows(needs []Need, most int, hasRoom bool) (rows []string) {
	for i, n := range needs {
		if i == most {
			head, room := rowHead(p, "")
			more := fmt.Sprintf("and %d more: %s", len(needs)-i, typed(p, "muster status"))
			rows = append(rows, head+text.CutColumns(more, room))
			break
		}
		command := n.Command
		if n.Request != nil {
			command = "muster requests show " + n.Name
		}
		head, room := rowHead(p, "NEEDS YOU")
		words, command := n.Name+"  "+n.What, typed(p, command)
		// What is to be typed is of no use when it is cut, so the text gives way, or the command has a row of its own.
		left := room - text.Columns(command) - 3
		below := left < 12
		if !below {
			words = text.CutColumns(words, left) + "   " + command
		}
		rows = append(rows, p.options.In(Yours, head)+text.CutColumns(words, max(room, 0)))
		if below && hasRoom && text.Columns(command) < p.options.Width {
			rows = append(rows, strings.Repeat(" ", min(2, p.options.Width-1-text.Columns(command)))+command)
		}
	}
	return rows
}

// typed returns a command as it is typed here: a conversation has commands of its own for most.
func typed(p *Progress, command string) string {
	if !p.options.OnlyLines {
		return command
	}
	for _, c := range [][2]string{{"muster mail list --take", "/inbox"}, {"muster requests show ", "/requests show "},
		{"muster task retry ", "/retry "}, {"muster status", "/status"}, {"muster doctor", "!muster doctor"}} {
		if rest, ok := strings.CutPrefix(command, c[0]); ok {
			return c[1] + rest
		}
	}
	return command
}

// Fail tells the user that the run has ended with an error, which no event says.
func (p *Progress) Fail(now time.Time, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.alerts.tell(now, "the run has stopped: "+muster.PlainText(err))
}

// Rows returns the living members, the board, and what waits for the user as lines of less than width columns. From
// then on the terminal has that width: the user can resize the window. There are at most so many rows; 0 is any
// number.
func (p *Progress) Rows(now time.Time, width, most int) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	// Lines that are printed later fit the new width too. Those that stand already are not laid out again.
	p.options.Width = width
	below := p.boardRows(now, most)
	members := mostMembers
	if most > 0 { // one row says how many others there are
		members = min(max(most-len(below)-1, leastMembers), mostMembers)
	}
	return append(p.presence.rows(p.options.Paint, now, width, members, p.subject), below...)
}

// Title says in a few words how a run stands, for the title of a window: its name, the tasks that have landed of all,
// and what was spent. A ? before it says that something waits for the user.
func (p *Progress) Title(name string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	all := 0
	for _, n := range p.board.Board {
		all += n
	}
	if all > 0 {
		name += fmt.Sprintf(" %d/%d", p.board.Board["landed"]+p.board.Board["done"], all)
	}
	if p.presence.spent.Dollars > 0 {
		name += " " + p.presence.spent.Cost()
	}
	if p.needsUser {
		name = "? " + name
	}
	return text.OneLine(name)
}

// Questions returns the requests that wait for the user, the oldest first, as the rows that were drawn last have found
// them. One to the lead is among them when the lead has not answered it for a while.
func (p *Progress) Questions() (all []muster.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range p.questions {
		all = append(all, *n.Request)
	}
	return all
}

// Test says which test the check of a task runs now, or has run last; 0 is the base. It is shown while the check runs.
func (p *Progress) Test(task muster.TaskID, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.presence.queue.test(task, name)
}
