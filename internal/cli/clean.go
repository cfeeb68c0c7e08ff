package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/text"
	"muster/internal/view"
	"muster/team"
)

// day is the unit of --older.
const day = 24 * time.Hour

func newCleanCommand(a *App) *cobra.Command {
	var how team.Cleaning
	var days int
	c := &cobra.Command{Use: "clean", Args: namedArgs(), Short: "list what nobody needs any more, and remove it",
		Long: "Merged branches of teams, lanes without work, old archives, and what checks and set-ups keep in\n" +
			"your cache directory. Nothing is removed without --yes, and nothing of a team at work. Archived work\n" +
			"of tasks that were given up is in no branch: only --unmerged removes it, and then it cannot be had back."}
	f := c.Flags()
	f.BoolVar(&how.Remove, "yes", false, "remove what is listed")
	f.IntVar(&days, "older", 30, "remove only archives and caches that nobody has used for so many `DAYS`")
	f.BoolVar(&how.Unmerged, "unmerged", false, "remove archived work that is in no branch, too")
	c.RunE = func(c *cobra.Command, args []string) error {
		if days < 0 {
			return &usageError{c.CommandPath(), "--older is a number of days: 0 or more"}
		}
		how.Older = time.Duration(days) * day
		return a.changing(func(c *cobra.Command, o opened, _ []string) error {
			all, err := team.Clean(c.Context(), o.Team, how)
			if err != nil {
				return err
			}
			// On a terminal the list is a question. Anybody else repeats the command with --yes.
			goes := func(x team.Cleanable) bool { return x.Kept == "" }
			if !how.Remove && !a.json && a.terminalIn() != nil && slices.ContainsFunc(all, goes) {
				fmt.Fprint(a.Stderr, cleanText(a.screen(a.Stderr), all, false, a.Now()))
				if err := confirm(c.Context(), a, "remove it", "muster clean --yes"); err != nil {
					return err
				}
				how.Remove = true
				if all, err = team.Clean(c.Context(), o.Team, how); err != nil {
					return err
				}
			}
			if all == nil {
				all = []team.Cleanable{}
			}
			return a.print(all, func(s view.Screen) string { return cleanText(s, all, how.Remove, a.Now()) })
		})(c, args)
	}
	return c
}

// cleanText lists what goes, or is gone, and then what stays and why. What stays is listed too: a branch that is not
// removed because HEAD lacks some of it reminds its user that there is work to take.
func cleanText(s view.Screen, all []team.Cleanable, isRemoving bool, now time.Time) string {
	goes := view.Table{Titles: []string{"WHAT", "NAME", ">SIZE", ">AGE"}, Wide: 1}
	stays := view.Table{Titles: []string{"STAYS", "NAME", ">SIZE", ">AGE", "WHY"}, Wide: 4}
	var sum int64
	for _, x := range all {
		row := []any{x.Kind, x.Name, size(x.Size), view.Age(now.Sub(muster.Time(x.At)))}
		if x.Kept != "" {
			stays.Row(append(row, x.Kept)...)
			continue
		}
		sum += x.Size
		goes.Row(row...)
	}
	var w strings.Builder
	if len(goes.Rows) > 0 {
		w.WriteString(goes.Draw(s))
	}
	if len(stays.Rows) > 0 {
		w.WriteString(stays.Draw(s))
	}
	switch n := len(goes.Rows); {
	case n == 0:
		w.WriteString("there is nothing to remove\n")
	case isRemoving:
		fmt.Fprintf(&w, "removed: %d%s\n", n, ofSize(sum))
	default:
		fmt.Fprintf(&w, "to remove %s%s:  muster clean --yes\n", text.Plural(n, "it", "them"), ofSize(sum))
	}
	return w.String()
}

// ofSize returns a size in parentheses, "" for none.
func ofSize(n int64) string {
	if n == 0 {
		return ""
	}
	return " (" + size(n) + ")"
}

// size returns a number of bytes in the largest unit of which there is one, "" where it is not known. The units are
// powers of 1024, as those of du -h are, so that both tell the same of a directory.
func size(n int64) string {
	switch {
	case n == 0:
		return ""
	case n < 1<<10:
		return fmt.Sprintf("%d B", n)
	case n < 1<<20:
		return fmt.Sprintf("%.1f kB", float64(n)/(1<<10))
	case n < 1<<30:
		return fmt.Sprintf("%.1f MB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GB", float64(n)/(1<<30))
}
