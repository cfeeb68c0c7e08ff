package view

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"muster"
	"muster/internal/spend"
	"muster/internal/text"
	"muster/journal"
)

// Away is what has happened since the user last did something.
type Away struct {
	Since   time.Time // when that was; zero: never
	IsWhole bool      // all of the run counts, whatever the user did in it
	Landed  []muster.TaskID
	// IsUnverified says that no check has proved some of what landed.
	IsUnverified bool
	GivenUp      []muster.TaskID // and not landed or retried since
	Spent        spend.Sum
}

// Event takes the next event of the run.
func (a *Away) Event(e muster.Event) {
	isUsers := e.Member == muster.User || e.Text("by") == string(muster.User)
	switch {
	case isUsers && !a.IsWhole, e.Kind == journal.RunStarted, e.Kind == journal.RunResumed && !a.IsWhole:
		*a = Away{Since: muster.Time(e.At), IsWhole: a.IsWhole}
	case e.Kind == journal.TaskCompleted && e.Text("commit") != "":
		a.Landed = append(a.Landed, e.Task)
		a.IsUnverified = a.IsUnverified || e.Text("receipt") == muster.ReceiptUnchecked
	case e.Kind == journal.TaskAttention:
		a.GivenUp = append(a.GivenUp, e.Task)
	case e.Kind == journal.TurnEnded:
		a.Spent = a.Spent.Plus(spend.Sum{Dollars: spend.FromFloat(e.Number("dollars"))})
	}
}

// Draw returns what has happened, a line for each kind of it, or "" where nothing has. tasks are those of the board,
// and changed counts the lines that a landed task has added and removed; nil: they are not counted.
func (a Away) Draw(
	s Screen, now time.Time, tasks []muster.Task, changed func(muster.TaskID) (added, removed int),
) string {
	if a.Since.IsZero() {
		return ""
	}
	var lines []string
	line := func(head, words string) {
		lines = append(lines, s.Labelled(head, text.CutColumns(words, max(s.Width-len(needsYou)-4, 20))))
	}
	names := func(ids []muster.TaskID) string {
		return Join(ids, ", ", func(id muster.TaskID) string {
			return strings.TrimSpace(fmt.Sprint(id, " ", subjectOf(tasks, id)))
		})
	}
	if len(a.Landed) > 0 {
		counts := text.Count(len(a.Landed), "task")
		if changed != nil {
			added, removed := 0, 0
			for _, id := range a.Landed {
				more, less := changed(id)
				added, removed = added+more, removed+less
			}
			counts += fmt.Sprintf(", +%d -%d", added, removed)
		}
		line("landed", counts+": "+names(a.Landed))
		if a.IsUnverified {
			line("check", "not verified")
		}
	}
	given := slices.DeleteFunc(slices.Clone(a.GivenUp), func(id muster.TaskID) bool {
		return !slices.ContainsFunc(tasks, func(t muster.Task) bool {
			return t.ID == id && t.Status == muster.NeedsAttention
		})
	})
	if len(given) > 0 {
		line(needsYou, names(given))
	}
	if a.Spent.Dollars > 0 {
		line("cost", a.Spent.Cost())
	}
	if len(lines) == 0 {
		return ""
	}
	head := s.In(Faint, "while you were away ("+Duration(now.Sub(a.Since))+")")
	return head + "\n" + strings.Join(lines, "\n")
}

// Labelled returns what has happened behind its label, wrapped.
func (s Screen) Labelled(label, words string) string {
	tone, column := Faint, len(needsYou)+2
	if label == needsYou {
		tone = Yours
	}
	all := text.PadColumns(label, column) + words
	if s.Width > 0 {
		all = Hang(all, column, s.Width-1)
	}
	return s.In(tone, label) + all[len(label):]
}

// subjectOf returns the subject of a task in one line.
func subjectOf(tasks []muster.Task, id muster.TaskID) string {
	for _, t := range tasks {
		if t.ID == id {
			return text.OneLine(t.Subject)
		}
	}
	return ""
}
