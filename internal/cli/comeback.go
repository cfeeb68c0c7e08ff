package cli

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"muster"
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

// words are what was said in the conversation.
type words struct {
	at     float64
	text   string
	isUser bool
}

// recall shows a user who comes back what has happened meanwhile in the last run, and the end of its conversation. What
// cannot be read is left out.
func (c *conversation) recall(ctx context.Context, run muster.Run) {
	var away view.Away
	var all []words
	if run.FirstWords != "" {
		all = append(all, words{run.StartedAt, run.FirstWords, true})
	}
	for e, err := range c.Team.Journal().Read(ctx, 0) {
		if err != nil || e.At < run.StartedAt {
			continue
		}
		away.Event(e.Event)
		isMessage := e.Kind == journal.MailSent && muster.MessageType(e.Text("type")) == muster.MailMessage
		if isMessage && e.Member == muster.User && e.Text("to") == string(muster.Lead) {
			all = append(all, words{e.At, e.Text("text"), true})
		}
	}
	for said, err := range c.Members().Conversation(ctx, muster.Lead, 0) {
		if err == nil && said.Kind == team.SaidByIt && said.At >= run.StartedAt {
			all = append(all, words{said.At, said.Text, false})
		}
	}
	slices.SortStableFunc(all, func(a, b words) int { return cmp.Compare(a.at, b.at) })
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
	text := away.Draw(view.Screen{Paint: c.paint, Width: width}, c.app.Now(), tasks, changed)
	head := ""
	if run.EndedAt > 0 {
		// The user may have been there to its end.
		if len(all) > 0 {
			ago := view.Duration(c.app.Now().Sub(muster.Time(run.EndedAt)))
			head = "\n" + c.paint.In(view.Faint, "the last run ended "+ago+" ago")
		}
		_, text, _ = strings.Cut(text, "\n")
	}
	if text != "" {
		head += "\n" + text
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
		if rows += 2 + strings.Count(all[first-1].text, "\n"); rows > most && first < len(all) {
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
	for _, w := range all[first:] {
		if w.isUser {
			c.face.Echo(w.text)
			continue
		}
		c.face.Stream(w.text)
		c.face.Flush()
	}
}
