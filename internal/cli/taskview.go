package cli

import (
	"fmt"
	"io"
	"strings"
	"time"

	"muster"
)

// writeTask prints one task: names and values, then its texts.
func writeTask(w io.Writer, p paint, t muster.Task, now time.Time) error {
	fmt.Fprintf(w, "%d  %s\n", t.ID, oneLine(t.Subject))
	v := table{titles: []string{"", ""}, wide: -1}
	row := func(name, value string) {
		if value != "" {
			v.row(text(name), text(oneLine(value)))
		}
	}
	v.row(text("status"), taskStatus(t.Status))
	owner := string(t.Owner)
	if owner != "" && t.ClaimedAt > 0 {
		owner += " since " + clock(muster.Time(t.ClaimedAt), now)
	}
	row("owner", owner)
	row("role", t.ClaimRole)
	row("waits for", list(t.BlockedBy))
	row("depends on", list(t.DependsOn))
	row("blocks", list(t.Blocks))
	if t.Priority != 0 {
		row("priority", fmt.Sprint(t.Priority))
	}
	if t.RequirePlan {
		row("plan", "must be approved first")
	}
	row("lane", string(t.Worktree))
	if t.Landed != nil {
		v.row(text("landed"), text(fmt.Sprintf("%.7s  %s", t.Landed.Commit, landedProof(*t.Landed))))
	} else if t.Status == muster.Completed {
		row("landed", "no change of ours")
	}
	if t.Attempts > 0 {
		row("attempts", fmt.Sprint(t.Attempts))
	}
	if t.Returns > 0 {
		row("came back", fmt.Sprint(t.Returns))
	}
	if t.CreatedAt > 0 {
		made := clock(muster.Time(t.CreatedAt), now)
		if t.CreatedBy != "" {
			made += " by " + string(t.CreatedBy)
		}
		row("added", made)
	}
	if err := v.write(w, p, 0); err != nil {
		return err
	}
	for _, s := range []struct{ title, body string }{{"description", t.Description}, {"note", t.Note}, {"result", t.Result}} {
		if body := strings.TrimSpace(manyLines(s.body)); body != "" {
			fmt.Fprintf(w, "\n%s\n  %s\n", s.title, strings.ReplaceAll(body, "\n", "\n  "))
		}
	}
	return nil
}

func landedProof(l muster.Landed) string {
	s := oneLine(l.Receipt)
	if l.Seconds > 0 {
		s += " " + seconds(l.Seconds)
	}
	if l.Check != "" {
		s = oneLine(l.Check) + "  " + s
	}
	return s
}
