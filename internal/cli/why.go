package cli

import (
	"fmt"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/text"
	"muster/internal/view"
	"muster/team"
)

// newWhyCommand returns muster why.
func newWhyCommand(a *App) *cobra.Command {
	return &cobra.Command{Use: "why FILE:LINE", Args: namedArgs("FILE:LINE"),
		Short: "which task a line comes from: its owner, its plan, its check, its cost",
		Long:  "The line is one of the file as it is in the commit that you are on.",
		RunE: a.changing(func(c *cobra.Command, o opened, args []string) error {
			file, line, err := parseFileLine(c, args[0])
			if err != nil {
				return err
			}
			y, err := o.Tasks().Why(c.Context(), path.Join(a.start(), filepath.ToSlash(file)), line)
			if err != nil {
				return err
			}
			return a.print(y, func(s view.Screen) string { return whyText(a, s, y) })
		})}
}

// parseFileLine reads FILE:LINE.
func parseFileLine(c *cobra.Command, s string) (file string, line int, err error) {
	i := strings.LastIndexByte(s, ':')
	if line, err = strconv.Atoi(s[i+1:]); i <= 0 || err != nil || line <= 0 {
		return "", 0, &usageError{c.CommandPath(), fmt.Sprintf("%q is not FILE:LINE, as in main.go:12", s)}
	}
	return s[:i], line, nil
}

// whyText says what a line comes from, as people read it.
func whyText(a *App, s view.Screen, y team.Why) string {
	t := view.Table{Titles: []string{"", ""}, Wide: 1}
	t.Row("line", text.OneLine(y.Text))
	t.Row("commit", fmt.Sprintf("%.7s %s", y.Commit, text.OneLine(y.Message)))
	switch {
	case y.TaskID == 0:
		return t.Draw(s) + "the commit is of no task of muster\n"
	case y.Task == nil:
		t.Row("task", fmt.Sprintf("%d, whose record is not on the board any more", y.TaskID))
	default:
		t.Row("task", fmt.Sprintf("%d %s", y.TaskID, text.OneLine(y.Task.Subject)))
		t.Row("owner", view.Named(y.Task.Owner))
	}
	for _, r := range y.Plans {
		words := view.Because("approved by "+string(r.ResolvedBy), text.OneLine(r.Plan))
		t.Row("plan", fmt.Sprintf("%s at %s", words, view.Clock(muster.Time(r.ResolvedAt), a.Now())))
	}
	if l := y.Landed; l != nil {
		t.Row("check", strings.TrimSuffix(l.Receipt+", "+text.OneLine(l.Check), ", "))
		if l.Review != "" {
			t.Row("review", l.Review)
		}
	}
	if y.Spent.Dollars > 0 {
		t.Row("cost", y.Spent.Cost())
	}
	return t.Draw(s)
}
