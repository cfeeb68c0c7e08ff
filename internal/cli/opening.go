package cli

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"muster"
	"muster/internal/chat"
	"muster/internal/config"
	"muster/internal/text"
	"muster/internal/view"
	"muster/journal"
	"muster/team"
)

// openingLines say where a conversation takes place before anything is typed: the repository with its branch and the
// model, the check, and what the team may do. What cannot be read is left out: whoever needs it says why.
func openingLines(ctx context.Context, c *conversation) []string {
	s := c.settings
	const unchecked = "none: muster init sets one up"
	where, branch := belowHome(c.app.env("HOME"), c.Root()), ""
	if repo, err := c.workspace.Repo(ctx); err == nil {
		branch, _ = repo.CurrentBranch(ctx)
		branch = strings.TrimPrefix(branch, "refs/heads/")
		where += ", on " + cmp.Or(branch, "no branch")
	}
	model := config.Stored(s.Model) // without what may be secret
	if choice, _, err := s.Endpoints.Choose(s.Model, c.app.Env); model == "" && err == nil {
		model = choice.Vendor() + "/" + choice.Name // of the vendor whose key is set
	}
	// Names of branches, models and commands come from others, so they stay on one line and steer nothing.
	var lines []string
	for _, row := range [][2]string{
		{"muster", where},
		{"model", model},
		{"check", cmp.Or(s.CheckText(), unchecked)},
		{"work", landsOn(s.Land, string(c.Name(ctx)), branch)},
		{"rights", team.Sandbox(s.Sandbox).Rights()},
	} {
		lines = append(lines, fmt.Sprintf("%-7s %s", row[0], text.CutColumns(text.OneLine(row[1]), 160)))
	}
	return lines
}

// landsOn says where work lands, and what becomes of the branch that is checked out, "" for none. land is the setting.
func landsOn(land, team, branch string) string {
	switch target := cmp.Or(land, "muster/"+team); {
	case branch == target && land == "":
		return "cannot land on " + target + " while it is checked out: switch to your branch"
	case branch == "" || branch == target:
		return "lands on " + target
	default:
		return "lands on " + target + "; " + branch + " changes only with /merge"
	}
}

// belowHome returns a path with "~" in place of the home directory.
func belowHome(home, path string) string {
	if below, err := filepath.Rel(home, path); home != "" && err == nil && filepath.IsLocal(below) && below != "." {
		return filepath.Join("~", below)
	}
	return path
}

// paintLabels makes the words in the first column faint, and the name of the program bold.
func paintLabels(p view.Paint, lines string) string {
	const column = len("rights  ")
	var painted []string
	for line := range strings.SplitSeq(lines, "\n") {
		label := strings.TrimRight(line[:min(column, len(line))], " ")
		switch {
		case label == "muster":
			line = p.Bold(label) + line[len(label):]
		case label != "" && len(label) < column && !strings.Contains(label, " "):
			line = p.In(view.Faint, label) + line[len(label):]
		}
		painted = append(painted, line)
	}
	return strings.Join(painted, "\n")
}

// withoutRights shows all that happens in a run but the note about what its commands may do, which the opening of the
// conversation has said. Other faces show that note.
type withoutRights struct{ chat.Teller }

// Event shows an event.
func (t withoutRights) Event(e muster.Event) {
	if isRights, _ := e.Fields["rights"].(bool); e.Kind != journal.RunNote || !isRights {
		t.Teller.Event(e)
	}
}
