package view

import (
	"fmt"
	"strings"
	"time"

	"muster"
)

// Task returns one task: its fields, then its texts. A field that is empty, or as in every new task, is left out.
func Task(p Paint, t muster.Task, now time.Time) string {
	w := new(strings.Builder)
	fmt.Fprintf(w, "%d  %s\n", t.ID, OneLine(t.Subject))
	v := Table{Titles: []string{"", ""}}
	row := func(name string, value any) {
		if value != "" && value != 0 {
			v.Row(name, value)
		}
	}
	v.Row("status", TaskStatus(t.Status))
	owner := string(t.Owner)
	if owner != "" && t.ClaimedAt > 0 {
		owner += " since " + Clock(muster.Time(t.ClaimedAt), now)
	}
	row("owner", owner)
	row("role", t.ClaimRole)
	row("waits for", IDs(t.BlockedBy))
	row("depends on", IDs(t.DependsOn))
	row("blocks", IDs(t.Blocks))
	row("priority", t.Priority)
	if t.RequirePlan {
		row("plan", "must be approved first")
	}
	row("lane", string(t.Worktree))
	// A task may be completed and not landed: it needed no change, or another program wrote that it is complete.
	if t.Landed != nil {
		v.Row("landed", Text(fmt.Sprintf("%.7s  %s", t.Landed.Commit, landingEvidence(*t.Landed))))
	} else if t.Status == muster.Completed {
		row("landed", "no change of ours")
	}
	row("attempts", t.Attempts)
	row("came back", t.Returns)
	if t.CreatedAt > 0 {
		made := Clock(muster.Time(t.CreatedAt), now)
		if t.CreatedBy != "" {
			made += " by " + string(t.CreatedBy)
		}
		row("added", made)
	}
	w.WriteString(v.Draw(Screen{Paint: p}))
	texts := []struct{ title, body string }{{"description", t.Description}, {"note", t.Note}, {"result", t.Result}}
	for _, s := range texts {
		if body := strings.TrimSpace(ManyLines(s.body)); body != "" {
			fmt.Fprintf(w, "\n%s\n  %s\n", s.title, strings.ReplaceAll(body, "\n", "\n  "))
		}
	}
	return w.String()
}

// landingEvidence says what was checked when the task landed, and the result: the command, the receipt, and how long
// the check took.
func landingEvidence(l muster.Landed) string {
	s := OneLine(l.Receipt)
	if l.Seconds > 0 {
		s += " " + seconds(l.Seconds)
	}
	if l.Check != "" {
		s = OneLine(l.Check) + "  " + s
	}
	return s
}

// TaskStatus returns a status in its colour.
func TaskStatus(s muster.TaskStatus) Cell { return Status(s, muster.Completed, muster.NeedsAttention) }
