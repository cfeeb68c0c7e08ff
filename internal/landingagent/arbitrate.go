package landingagent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"muster/internal/landing"
	"muster/internal/prompt"
	"muster/internal/text"
)

// Arbitrate lets the agent work in the lane until it ends. An agent that has used its turns has done what it could:
// what it leaves is for the check to judge. The error says why the agent could not work to its end.
func (a Agent) Arbitrate(ctx context.Context, d landing.Dispute) (landing.ArbiterReport, error) {
	report := landing.ArbiterReport{Model: a.ModelName}
	message, err := a.disputeMessage(d)
	if err != nil {
		return report, err
	}
	c := conversation{Agent: a, purpose: "arbiter", system: prompt.Arbiter(a.Role, a.Team, a.File.Render())}
	report.Text, err = c.run(ctx, message)
	if errors.Is(err, errTurns) {
		err = nil
	}
	return report, err
}

// disputeMessage returns what an arbiter is told first: both intents, because a model that knows only one of them keeps
// that one, and what failed last. What does not fit is cut; the commits are named, and the arbiter can read them.
func (a Agent) disputeMessage(d landing.Dispute) (string, error) {
	t := d.Task
	var b strings.Builder
	fmt.Fprintf(&b, "Work on task #%d, by %s, came back %d times in a row from landing on %s. %s is merged into its "+
		"lane now.\n", t.ID, t.Owner, t.Rounds, d.Branch, d.Branch)
	if len(d.Conflicts) > 0 {
		var open []string
		for _, c := range d.Conflicts {
			open = append(open, c.String())
		}
		fmt.Fprintf(&b, "These files conflict; in each, after <<<<<<< is the task's side, after ||||||| what both "+
			"started from, and after ======= what has landed:\n%s\nWhere a file has no marker, make it what it should "+
			"be, then git add it or git rm it.\n", prompt.Material("the conflicts", strings.Join(open, "\n")))
	} else {
		b.WriteString("Nothing conflicts in the files: what fails, fails on both together.\n")
	}
	if t.Arbiter != nil && t.Arbiter.Why != "" {
		b.WriteString(prompt.Material("why it came back last", t.Arbiter.Why) + "\n")
	}
	if a.Check != "" {
		fmt.Fprintf(&b, "The check, on the merged tree: %s\n", a.Check)
	}
	fmt.Fprintf(&b, "\nThe task that is to land:\n%s\n%s\n",
		prompt.Material(fmt.Sprintf("task #%d", t.ID), taskText(t.Subject, t.Description)),
		prompt.Material("its owner's summary", text.CutBytes(cmp.Or(d.Summary, "none"), maxText)))
	diff, err := a.difference(d.Diff)
	if err != nil {
		return "", err
	}
	b.WriteString(diff + "\n")
	for _, o := range d.Others {
		fmt.Fprintf(&b, "\nIt collides with this work, which has landed as %.7s (git show %.7s):\n%s\n%s\n%s\n",
			o.Commit, o.Commit,
			prompt.Material(fmt.Sprintf("task #%s, by %s", o.Task, o.Owner), taskText(o.Subject, o.Description)),
			prompt.Material("its owner's summary", cmp.Or(o.Summary, "none")),
			prompt.Material("its difference", text.CutBytes(o.Diff, maxOtherDiff)))
	}
	return b.String(), nil
}
