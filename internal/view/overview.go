package view

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/spend"
	"muster/internal/text"
)

// Member is a member and whether a living process hosts it. The record alone does not tell: a process that was killed
// leaves its members as they were.
type Member struct {
	muster.Member
	Alive   bool
	Subject string `json:"-"` // of its task; "" where it was not looked up
	// WorksFor is the member for which a helper works, "" for a member. The JSON has it as works_for.
	WorksFor muster.Name `json:"-"`
}

// Overview is how a team stands. Its JSON is what programs read, so the names of its fields are a format.
type Overview struct {
	Team     muster.Name               `json:"team"`
	Run      muster.Run                `json:"run"`
	Alive    bool                      `json:"alive"` // a living process hosts any of the members
	Members  []Member                  `json:"members"`
	Board    map[string]int            `json:"board"` // the number of tasks by BoardLabel
	Requests []muster.Request          `json:"requests"`
	Needy    []muster.Task             `json:"needs_attention"`
	Lanes    map[muster.LaneStatus]int `json:"lanes"`
	Mail     int                       `json:"mail"` // waits for the user
	Spending spend.Book                `json:"spending"`
	// Collisions are the tasks that will conflict if they land as they are.
	Collisions []muster.Collision `json:"collisions"`
	// Landings are the tasks that are to land, those first that are being checked.
	Landings []QueuedLanding `json:"landings"`

	// What only people see. Lived is how long processes of the team have lived in the run.
	Lived    time.Duration `json:"-"`
	Presence Presence      `json:"-"`
	Tasks    []muster.Task `json:"-"`
	Now      time.Time     `json:"-"`
}

// BoardLabel returns under which label a board counts a task: its status, but "landed" or "done" for a completed task
// and "ready" or "waiting" for a pending one.
func BoardLabel(t muster.Task) string {
	switch {
	case t.Status == muster.Completed && t.Landed != nil:
		return "landed"
	case t.Status == muster.Completed:
		return "done"
	case t.Status == muster.Pending && len(t.BlockedBy) > 0:
		return "waiting"
	case t.Status == muster.Pending:
		return "ready"
	}
	return string(t.Status)
}

// Draw returns the overview: the headline, the members, the counts of the board and of the lanes, and at the end, where
// it is seen first above the prompt, what waits for the user.
func (o Overview) Draw(s Screen) string {
	w := new(strings.Builder)
	fmt.Fprintln(w, o.Headline(s))
	if len(o.Members) > 0 {
		w.WriteString(o.members(s))
	}
	fmt.Fprintf(w, "BOARD   %s\n", cmp.Or(o.counts(), "no tasks"))
	lanes := formatCounts(o.Lanes, muster.LaneActive, muster.LaneCreating, muster.LaneKept, muster.LaneFailed)
	if lanes != "" {
		fmt.Fprintf(w, "LANES   %s\n", lanes)
	}
	if o.Alive {
		w.WriteString(labelled(s, "CHECKS", o.Presence.queue.lines(o.Now, o.Run.Check)))
	}
	var collisions []string
	for _, c := range o.Collisions {
		collisions = append(collisions, CollisionText(c))
	}
	w.WriteString(labelled(s, "COLLIDE", collisions))
	if needs := o.Needs(); len(needs) > 0 {
		w.WriteString(s.In(Yours, "NEEDS YOU") + "\n" + needsTable(needs).Draw(s))
		if i := slices.IndexFunc(needs, func(n Need) bool { return n.Request != nil }); i >= 0 {
			fmt.Fprintf(w, "  read one whole: muster requests show %s\n", needs[i].Name)
		}
	}
	return w.String()
}

// counts returns how many tasks there are of each kind; "" where there are none.
func (o Overview) counts() string {
	return formatCounts(o.Board, "landed", "done", "landing", "in_progress", "ready", "waiting", "needs_attention")
}

// Headline returns the team, its goal, and for how long it has worked. The goal gives up the room that the rest needs,
// because the rest says what to do.
func (o Overview) Headline(s Screen) string {
	team, end := "team "+string(o.Team), ""
	switch {
	case o.Run.StartedAt == 0:
		team += "   no run yet"
	case o.Run.EndedAt > 0:
		end = "    ended " + Clock(muster.Time(o.Run.EndedAt), o.Now)
	default:
		end = "    " + Duration(o.Lived)
	}
	if spent := spentOf(o.Run.Budget, o.Spending.Total); spent != "" && o.Run.StartedAt > 0 {
		end = "    " + spent + end
	}
	// A run whose process was killed has no end in its record. That no member lives shows that it has stopped.
	stopped := ""
	if o.Run.StartedAt > 0 && o.Run.EndedAt == 0 && !o.Alive {
		end, stopped = end+"   ", "stopped"
	}
	goal := ""
	if o.Run.Goal != "" {
		room := 100
		if s.Width > 0 {
			room = min(room, max(s.Width-1-text.Columns(team+"   goal: "+end+stopped+": muster resume"), 20))
		}
		goal = "   goal: " + text.CutColumns(text.OneLine(o.Run.Goal), room)
	}
	if stopped != "" {
		stopped = s.In(Bad, stopped) + ": muster resume"
	}
	return team + goal + end + stopped
}

func (o Overview) members(s Screen) string {
	subject := o.Subjects()
	t := Table{Titles: []string{"MEMBER", "ROLE", "DOES", ">FOR", ">TURNS"}, Wide: 2}
	if o.Spending.Total.Dollars > 0 {
		t.Titles = append(t.Titles, ">COST")
	}
	for _, m := range o.Members {
		stands := o.Standing(m, subject)
		name := Named(m.Owner())
		name.Text = m.Label()
		row := []any{name, m.Role, Text(stands.Text()), SinceStamp(stands.Since, o.Now), m.Turns, o.CostOf(m).Cost()}
		t.Row(row[:len(t.Titles)]...)
	}
	return t.Draw(s)
}

// Subjects returns a function that names tasks. It returns "" for those that are unknown.
func (o Overview) Subjects() func(muster.TaskID) string {
	subjects := make(map[muster.TaskID]string, len(o.Tasks))
	for _, t := range o.Tasks {
		subjects[t.ID] = t.Subject
	}
	return func(id muster.TaskID) string { return subjects[id] }
}

// Members returns a table of members as their records have them.
func Members(members []Member, now time.Time) Table {
	t := Table{Titles: []string{"NAME", "ROLE", "STATUS", "DOES", ">FOR", ">TURNS"}, Wide: 3}
	o := Overview{Members: members, Now: now}
	o.Alive = slices.ContainsFunc(members, func(m Member) bool { return m.Alive })
	for _, m := range members {
		stands := o.Standing(m, func(muster.TaskID) string { return "" })
		t.Row(Named(m.Name), m.Role, Cell{Text: string(stands.Look), Tone: stands.Look.Tone()}, Text(stands.What),
			SinceStamp(m.Since, now), m.Turns)
	}
	return t
}

// formatCounts returns text like "4 landed, 1 landing" in the order of names. What is not there is not mentioned.
func formatCounts[K ~string](n map[K]int, names ...K) string {
	var parts []string
	for _, name := range names {
		if n[name] == 0 {
			continue
		}
		what := LabelWord(string(name))
		switch what {
		case needsYou:
			what = text.Plural(n[name], needsYou, "need you")
		case "done":
			what = "done without a change"
		}
		parts = append(parts, fmt.Sprintf("%d %s", n[name], what))
	}
	return strings.Join(parts, ", ")
}

// Question is what a request asks, in two or three words. Commands complete ids with it, and tables have it as a
// column.
func Question(r muster.Request) string {
	switch r.Kind {
	case muster.AskPlan:
		return fmt.Sprintf("plan for %d", r.TaskID)
	case muster.AskShutdown:
		return "shutdown"
	case muster.AskInterrupt:
		return "end of the turn"
	}
	return strings.ReplaceAll(text.OneLine(string(r.Kind)), "_", " ")
}

// DecidedBefore says that somebody else was first to answer a request, and that this answer stands.
func DecidedBefore(r muster.Request, now time.Time) string {
	by, words := "", ""
	if r.ResolvedBy != "" {
		by = fmt.Sprintf(", by %s at %s", r.ResolvedBy, Clock(muster.Time(r.ResolvedAt), now))
	}
	if r.Response != "" {
		words = " (" + text.OneLine(r.Response) + ")"
	}
	return fmt.Sprintf("%s of %s was %s before%s: that stands%s", Question(r), text.OneLine(string(r.From)),
		RequestWord(r.Status), by, words)
}

// Longer says for how long a permission was given, behind what was decided; "" for once.
func Longer(scope muster.RequestScope) string {
	return map[muster.RequestScope]string{muster.ScopeRun: " for this run", muster.ScopeAlways: " for good"}[scope]
}

// WaitingTime is how long a request has waited, or waited until it was decided.
func WaitingTime(r muster.Request, now time.Time) time.Duration {
	if r.ResolvedAt > 0 {
		now = muster.Time(r.ResolvedAt)
	}
	return now.Sub(muster.Time(r.CreatedAt))
}

// Requests returns a table of requests, in the given order. The last column gives way on a narrow terminal, so that
// the ids, which people type, stay whole.
func Requests(all []muster.Request, now time.Time) Table {
	t := Table{Titles: []string{"ID", "FROM", "TO", "ASKS", "STATUS", ">FOR", "TEXT"}, Wide: 6}
	for _, r := range all {
		// The answer says more than what was asked.
		words := text.OneLine(cmp.Or(r.Response, r.Plan, r.Reason))
		t.Row(r.ID, Named(r.From), r.To, Question(r), RequestState(r.Status), Age(WaitingTime(r, now)),
			text.CutColumns(words, 200))
	}
	return t
}
