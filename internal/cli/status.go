package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"muster"
)

func (a *App) statusCommand() *cobra.Command {
	return &cobra.Command{Use: "status", Short: "team, board and lanes at a glance", Args: exactly(), RunE: func(c *cobra.Command, _ []string) error {
		none := func(w io.Writer, _ paint, _ int) error {
			_, err := fmt.Fprintf(w, "%s: %s\n", nobody.Message, nobody.Hint)
			return err
		}
		p, err := a.look(c.Context())
		if errors.Is(err, nobody) {
			return a.print(newGlance(), none)
		}
		if err != nil {
			return err
		}
		defer p.close()
		g, err := p.glance(c.Context())
		if err != nil {
			return err
		}
		if g.Run.StartedAt == 0 && len(g.Members) == 0 && len(g.subject) == 0 {
			return a.print(g, none)
		}
		return a.print(g, func(w io.Writer, pt paint, width int) error { return a.writeGlance(w, pt, width, g) })
	}}
}

// glance is how a team stands.
type glance struct {
	Team     muster.Name      `json:"team"`
	Run      muster.Run       `json:"run"`
	Alive    bool             `json:"alive"` // a process of the team lives
	Members  []muster.Member  `json:"members"`
	Board    map[string]int   `json:"board"`
	Requests []muster.Request `json:"requests"`
	Needy    []muster.Task    `json:"needs_attention"`
	Lanes    map[string]int   `json:"lanes"`
	Mail     int              `json:"mail"` // waits for the user

	members []present
	living  living
	subject map[muster.TaskID]string
}

func newGlance() glance {
	return glance{Members: []muster.Member{}, Board: map[string]int{}, Requests: []muster.Request{}, Needy: []muster.Task{}, Lanes: map[string]int{}}
}

// recent is how many events are read for what members do right now.
const recent = 300

func (p *place) glance(ctx context.Context) (g glance, err error) {
	g = newGlance()
	g.Team = p.team(ctx)
	if g.Run, err = p.run(ctx); err != nil {
		return g, err
	}
	if g.members, err = p.members(ctx); err != nil {
		return g, err
	}
	for _, m := range g.members {
		g.Members = append(g.Members, m.Member)
		g.Alive = g.Alive || m.alive
	}
	tasks, err := p.theBoard().List(ctx)
	if err != nil {
		return g, err
	}
	g.sort(tasks)
	requests, err := p.theRequests(ctx).Pending(ctx)
	if err != nil {
		return g, err
	}
	g.Requests = append(g.Requests, requests...)
	if g.Lanes, err = p.countLanes(ctx); err != nil {
		return g, err
	}
	mail, _, err := waiting(ctx, p.thePost(ctx), muster.User)
	if err != nil {
		return g, err
	}
	g.Mail = len(mail)
	from, err := p.journal.Tail(ctx, recent)
	if err != nil {
		return g, err
	}
	for e, err := range p.journal.Read(ctx, from) {
		if err != nil && !errors.Is(err, muster.ErrCorrupt) {
			return g, err
		}
		if err == nil {
			g.living.apply(e.Event)
		}
	}
	return g, nil
}

// sort counts the board.
func (g *glance) sort(tasks []muster.Task) {
	g.subject = map[muster.TaskID]string{}
	for _, t := range tasks {
		g.subject[t.ID] = t.Subject
		switch {
		case t.Status == muster.Completed && t.Landed != nil:
			g.Board["landed"]++
		case t.Status == muster.Completed:
			g.Board["done"]++
		case t.Status == muster.NeedsAttention:
			g.Board["needs_attention"]++
			g.Needy = append(g.Needy, t)
		case t.Status == muster.Pending && len(t.BlockedBy) > 0:
			g.Board["waiting"]++
		case t.Status == muster.Pending:
			g.Board["ready"]++
		default:
			g.Board[string(t.Status)]++
		}
	}
}

// countLanes counts lanes by status. Where no lane was ever made, git is not asked.
func (p *place) countLanes(ctx context.Context) (map[string]int, error) {
	n := map[string]int{}
	if !isFile(p.home.Index()) {
		return n, nil
	}
	lanes, err := p.theLanes(ctx)
	if err != nil {
		return n, err
	}
	all, err := lanes.List(ctx)
	for _, l := range all {
		n[string(l.Status)]++
	}
	return n, err
}

// does is what a member does, in words; tool is what runs in its hands.
func (m present) does(subject map[muster.TaskID]string, tool string) string {
	task := ""
	if m.Task != 0 {
		task = strings.TrimSpace(fmt.Sprintf("%d %s", m.Task, oneLine(subject[m.Task])))
	}
	switch {
	case m.Status == muster.Shutdown:
		return "has stopped"
	case !m.alive:
		return because("no process runs it", task)
	case m.Doing != "":
		return because(task, oneLine(m.Doing))
	case m.Status == muster.Idle:
		return because("idle", idle(m.Name, string(m.IdleReason)))
	}
	return because(task, tool)
}

func (a *App) writeGlance(w io.Writer, p paint, width int, g glance) error {
	a.writeTeam(w, p, g)
	if len(g.members) > 0 {
		t := table{titles: []string{"MEMBER", "ROLE", "DOES", ">FOR", ">TURNS"}, wide: 2}
		for _, m := range g.members {
			does, since := m.does(g.subject, ""), m.Since
			if l := g.living.find(m.Name); l != nil && m.alive && m.Status == muster.Working {
				if m.Doing == "" {
					does = m.does(g.subject, l.doing)
				}
				since = muster.Stamp(l.since)
			}
			t.row(cell{text: string(m.Name), who: string(m.Name)}, text(oneLine(m.Role)), text(strings.TrimPrefix(does, ": ")), text(a.since(since)), text(fmt.Sprint(m.Turns)))
		}
		if err := t.write(w, p, width); err != nil {
			return err
		}
	}
	fmt.Fprintf(w, "BOARD   %s\n", counts(g.Board, "no tasks", "landed", "done", "landing", "in_progress", "ready", "waiting", "needs_attention"))
	if len(g.Lanes) > 0 {
		fmt.Fprintf(w, "LANES   %s\n", counts(g.Lanes, "", "active", "creating", "kept", "failed"))
	}
	return a.writeNeeds(w, p, width, g)
}

func (a *App) writeTeam(w io.Writer, p paint, g glance) {
	s := "team " + string(g.Team)
	switch {
	case g.Run.StartedAt == 0:
		s += "   no run yet"
	default:
		s += "   goal: " + cut(oneLine(g.Run.Goal), 100)
		if g.Run.EndedAt > 0 {
			s += "    ended " + clock(muster.Time(g.Run.EndedAt), a.Now())
		} else {
			s += "    " + words(a.Now().Sub(muster.Time(g.Run.StartedAt)))
		}
	}
	if g.Run.StartedAt > 0 && g.Run.EndedAt == 0 && !g.Alive {
		s += "   " + p.in(bad, "stopped") + ": muster resume"
	}
	fmt.Fprintln(w, s)
}

// counts is "4 landed, 1 landing" in the order of the names.
func counts(n map[string]int, none string, names ...string) string {
	var parts []string
	for _, name := range names {
		if n[name] == 0 {
			continue
		}
		what := strings.ReplaceAll(name, "_", " ")
		if name == "needs_attention" {
			what = map[bool]string{true: "needs you", false: "need you"}[n[name] == 1]
		}
		if name == "done" {
			what = "done without a change"
		}
		parts = append(parts, fmt.Sprintf("%d %s", n[name], what))
	}
	if parts == nil {
		return none
	}
	return strings.Join(parts, ", ")
}

// writeNeeds lists what waits for the user, each with what to type.
func (a *App) writeNeeds(w io.Writer, p paint, width int, g glance) error {
	t := table{titles: []string{"", "", ""}, wide: 1}
	for _, r := range g.Requests {
		if r.To != muster.User && r.To != muster.Lead {
			continue
		}
		what := fmt.Sprintf("%s of %s, waits %s", asks(r), r.From, words(a.waited(r)))
		if r.Kind == muster.AskPlan {
			what = fmt.Sprintf("plan of %s for %d, waits %s", r.From, r.TaskID, words(a.waited(r)))
		}
		t.row(text("  "+string(r.ID)), text(what), text(fmt.Sprintf("muster approve %[1]s | muster reject %[1]s \"why\"", r.ID)))
	}
	for _, x := range g.Needy {
		t.row(text(fmt.Sprintf("  task %d", x.ID)), text(cut(because(oneLine(x.Subject), oneLine(x.Result)), 80)), text(fmt.Sprintf("muster task retry %d", x.ID)))
	}
	if g.Mail > 0 {
		t.row(text("  mail"), text(number(g.Mail, "mail")+" for you"), text("muster mail list --take"))
	}
	if len(t.rows) == 0 {
		return nil
	}
	fmt.Fprintln(w, p.in(bad, "NEEDS YOU"))
	return t.write(w, p, width)
}
