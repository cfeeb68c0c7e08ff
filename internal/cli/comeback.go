package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"muster"
	"muster/internal/face"
	"muster/internal/text"
	"muster/internal/view"
	"muster/journal"
	"muster/team"
)

// awayTasks is of how many landed tasks the lines are counted at most: each needs a difference of git.
const awayTasks = 10

// recallRows is about how many rows of the conversation are shown to a user who comes back, and otherRows how many the
// terminal needs beside them.
const (
	recallRows = 20
	otherRows  = 16
)

// recalled is something that was said in the conversation, or a call of a tool of the lead that has ended. A call that
// has changed and printed nothing is not shown.
type recalled struct {
	at             float64
	text           string
	isUser         bool
	started, ended muster.Event // of a call
}

func (r recalled) isShown() bool { return r.text != "" || r.ended.Text("output") != "" }

// rows is about how many rows of a width it takes.
func (r recalled) rows(width int) int {
	switch {
	case !r.isShown():
		return 0
	case r.text != "":
		n := 1
		for line := range strings.Lines(r.text) {
			n += 1 + text.Columns(strings.TrimSpace(line))/max(width, 1)
		}
		return n
	case r.ended.Text("tool") == "bash":
		return 2 + strings.Count(r.ended.Text("output"), "\n")
	}
	return 1 + face.PreviewLines
}

// recall shows a user who comes back what has happened meanwhile in the last run, and the end of its conversation.
// isAtWork says that the run goes on in another process. What cannot be read is left out.
func (c *conversation) recall(ctx context.Context, run muster.Run, isAtWork bool) {
	away := view.Away{IsWhole: run.EndedAt > 0}
	var all []recalled
	if run.FirstWords != "" {
		all = append(all, recalled{at: run.StartedAt, text: run.FirstWords, isUser: true})
	}
	started := map[string]muster.Event{}
	for e, err := range c.Team.Journal().Read(ctx, 0) {
		if err != nil || e.At < run.StartedAt {
			continue
		}
		away.Event(e.Event)
		isMessage := e.Kind == journal.MailSent && muster.MessageType(e.Text("type")) == muster.MailMessage
		switch id := e.Text("call"); {
		case isMessage && e.Member == muster.User && e.Text("to") == string(muster.Lead):
			all = append(all, recalled{at: e.At, text: e.Text("text"), isUser: true})
		case e.Member != muster.Lead || e.Text("agent") != "":
		case e.Kind == journal.ToolStarted:
			started[id] = e.Event
		case e.Kind == journal.ToolEnded:
			all = append(all, recalled{at: e.At, started: started[id], ended: e.Event})
			delete(started, id)
		}
	}
	for said, err := range c.Members().Conversation(ctx, muster.Lead, 0) {
		if err == nil && said.Kind == team.SaidByIt && said.At >= run.StartedAt {
			all = append(all, recalled{at: said.At, text: said.Text})
		}
	}
	slices.SortStableFunc(all, func(a, b recalled) int { return cmp.Compare(a.at, b.at) })
	tasks, _, _ := c.Tasks().List(ctx)
	width, _ := view.TerminalWidth(c.app.Stdout)
	changed := func(id muster.TaskID) (added, removed int) {
		diff, _ := c.Tasks().Diff(ctx, id)
		for _, f := range diff.Files {
			added, removed = added+f.Added, removed+f.Deleted
		}
		return added, removed
	}
	if len(away.Landed) > awayTasks {
		changed = nil
	}
	if !isAtWork && len(away.Landed)+len(away.GivenUp) == 0 {
		away = view.Away{} // who has stopped it knows what it cost
	}
	shape := view.Screen{Paint: c.paint, Width: width}
	news := away.Draw(shape, c.app.Now(), tasks, changed)
	head := ""
	if run.EndedAt > 0 {
		// The user may have been there to its end.
		if len(all) > 0 {
			ago := view.Duration(c.app.Now().Sub(muster.Time(run.EndedAt)))
			head = "\n" + c.paint.In(view.Faint, "the last run ended "+ago+" ago")
		}
		_, news, _ = strings.Cut(news, "\n")
		if untaken := c.untaken(ctx); untaken != "" {
			news += "\n" + shape.Labelled("branch", untaken)
		}
	}
	if news != "" {
		head += "\n" + news
	}
	if head != "" {
		c.face.Print(head)
	}
	most := recallRows
	if height := view.TerminalHeight(c.app.Stdout); height > 0 {
		most = min(most, max(height-otherRows, 2))
	}
	first, rows := len(all), 0
	for ; first > 0; first-- {
		if rows += all[first-1].rows(width); rows > most && first < len(all) {
			break
		}
	}
	// What the user said last tells what the words after it are about.
	last := len(all) - 1
	for last >= 0 && !all[last].isUser {
		last--
	}
	if last >= 0 && last < first {
		c.face.Echo(all[last].text)
		c.face.Print(c.paint.In(view.Faint, "..."))
	}
	for i, r := range all {
		switch {
		case r.text == "":
			c.progress.Recall(r.started, r.ended, i >= first && r.isShown()) // all have a number
		case i < first:
		case r.isUser:
			c.face.Echo(r.text)
		default:
			c.face.Stream(r.text)
			c.face.Flush()
		}
	}
	for _, e := range started { // they still run
		c.progress.Recall(e, muster.Event{}, false)
	}
}

// untaken says what has landed that the user's branch has not, and how to take it. It is "" where there is nothing.
func (c *conversation) untaken(ctx context.Context) string {
	u, err := team.TargetOf(c.Team).Untaken(ctx)
	if err != nil || u.Commits == 0 {
		return ""
	}
	return "on " + text.OneLine(u.Target) + ", not in " + text.OneLine(u.Branch) + changesOf(ctx, c.workspace, u) +
		"   /merge"
}
