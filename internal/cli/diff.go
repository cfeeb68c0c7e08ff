package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/redact"
	"muster/internal/text"
	"muster/internal/view"
	"muster/team"
)

// newDiffCommand returns muster diff, which shows what a task has changed.
func newDiffCommand(a *App) *cobra.Command {
	var stat bool
	c := &cobra.Command{Use: "diff TASK [FILE...]", Args: namedArgs("TASK", "[FILE...]"),
		Short: "what a task has changed: in its lane, or as it has landed",
		Long: "Of a task that is under way it shows all that its lane has and the target has not,\n" +
			"uncommitted files too. With FILE, a path from the root, only what has changed there."}
	c.Flags().BoolVar(&stat, "stat", false, "only the files, and how many lines")
	c.RunE = func(c *cobra.Command, args []string) error {
		id, err := parseTaskID(c, args[0])
		if err != nil {
			return err
		}
		return a.looking(nil, func(c *cobra.Command, o opened, args []string) error {
			d, err := o.Tasks().ReviewedDiff(c.Context(), id, args[1:]...)
			if err != nil {
				return hintAtList(err)
			}
			if stat {
				d.Text = ""
			}
			return a.print(d, func(s view.Screen) string {
				if stat || len(d.Files) == 0 {
					return diffStat(s, d)
				}
				return drawDiff(s, d, a.secrets)
			})
		})(c, args)
	}
	return a.paged(c, "")
}

// drawDiff returns the difference with what the user has said about its lines. In a pipe that stands before it, so that
// the rest is a patch for other programs. Secrets are hidden here, because colours within one would hide it from the
// writer that hides all others.
func drawDiff(s view.Screen, d team.Diff, secrets *redact.Secrets) string {
	d.Text = secrets.String(d.Text)
	head, below := "", map[int]string{}
	for _, c := range d.Comments {
		said := "you to " + text.OneLine(string(c.To)) + ": " + text.OneLine(c.Text)
		if s.Width > 0 && c.Row >= 0 {
			below[c.Row] += s.Who(string(muster.User), "  "+said) + "\n"
			continue
		}
		head += fmt.Sprintf("%s:%d: %s\n", text.OneLine(c.File), c.Line, text.OneLine(c.Quoted)) +
			s.Who(string(muster.User), "  "+said) + "\n"
	}
	return head + view.Diff(s, d.Lines(), func(row int) string { return below[row] })
}

func diffStat(s view.Screen, d team.Diff) string {
	if len(d.Files) == 0 {
		return "nothing is changed\n"
	}
	t := view.Table{Titles: []string{"FILE", ">ADDED", ">DELETED"}, Wide: 0}
	added, deleted := 0, 0
	for _, f := range d.Files {
		added, deleted = added+f.Added, deleted+f.Deleted
		if f.Binary {
			t.Row(view.Text(text.OneLine(f.File)), "binary", "")
			continue
		}
		t.Row(view.Text(text.OneLine(f.File)), f.Added, f.Deleted)
	}
	return t.Draw(s) + fmt.Sprintf("%s, %s added, %d deleted\n", text.Count(len(d.Files), "file"),
		text.Count(added, "line"), deleted)
}

func newReviewCommand(a *App) *cobra.Command {
	return &cobra.Command{Use: "review TASK FILE:LINE TEXT", Args: namedArgs("TASK", "FILE:LINE", "TEXT..."),
		Short: "say something about a line of a task's work; its owner gets it as mail",
		Long: "The line is one of the file as it is in the task's lane, or as it has landed: then the lead gets\n" +
			"the mail.\n" +
			"TEXT may be -, which reads it from standard input.",
		RunE: func(c *cobra.Command, args []string) error {
			id, err := parseTaskID(c, args[0])
			if err != nil {
				return err
			}
			file, line, err := parseFileLine(c, args[1])
			if err != nil {
				return err
			}
			text, err := a.textOrStdin(strings.Join(args[2:], " "))
			if err != nil {
				return err
			}
			return a.telling(func(c *cobra.Command, o opened, _ []string) error {
				m, err := o.Tasks().Comment(c.Context(), id, file, line, text)
				return a.printLine(m, hintAtList(err), "mail sent to %s", m.To)
			})(c, args)
		}}
}
