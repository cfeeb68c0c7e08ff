package cli

import (
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/editdist"
)

// newGroup returns a command that only has commands of its own. Called without one of them it prints its help.
func newGroup(use, short string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: knownCommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() }}
	c.AddCommand(commands...)
	return c
}

// knownCommand refuses an argument that is no command of the group, and names those that are like it. It replaces
// the message of cobra, which does not say how to get help.
func knownCommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	// Two edits catch the usual slips of typing and still do not suggest unrelated short names.
	c.SuggestionsMinimumDistance = 2
	name := strings.TrimSpace(strings.TrimPrefix(c.CommandPath()+" "+args[0], "muster"))
	near := editdist.DidYouMean(c.SuggestionsFor(args[0]))
	return &usageError{c.CommandPath(), "there is no command \"" + name + "\"" + near}
}

// namedArgs returns a check for these arguments, which are named for people. A last one with "..." may be several,
// and one in brackets may be missing. The error of the check names the first argument that is missing, or the first
// that is too many. It is a usageError, so the program exits with 2 and nothing was done.
func namedArgs(names ...string) cobra.PositionalArgs {
	// An argument without brackets must be given, and one with "..." takes all that follow.
	least, most := 0, len(names)
	for _, n := range names {
		if strings.Contains(n, "...") {
			most = math.MaxInt
		}
		if !strings.HasPrefix(n, "[") {
			least++
		}
	}
	return func(c *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return &usageError{c.CommandPath(), c.CommandPath() + " wants " + names[len(args)]}
		case len(args) > most:
			return &usageError{c.CommandPath(), c.CommandPath() + " does not take \"" + args[most] + "\""}
		}
		return nil
	}
}

// parseTaskID reads a task's id: 3 or #3. Lists print ids with and without the sign, and both can be pasted.
func parseTaskID(c *cobra.Command, s string) (muster.TaskID, error) {
	// 0 and negative numbers are refused too: to package team 0 means no task.
	n, err := strconv.Atoi(strings.TrimPrefix(s, "#"))
	if err != nil || n <= 0 {
		return 0, &usageError{c.CommandPath(),
			fmt.Sprintf("%q is not a task's id: ids are numbers, muster task list shows them", s)}
	}
	return muster.TaskID(n), nil
}

// textOrStdin returns text, or all of standard input when it is "-". With "-" a long text need not be quoted for a
// shell.
func (a *App) textOrStdin(text string) (string, error) {
	if text != "-" {
		return text, nil
	}
	data, err := io.ReadAll(a.Stdin)
	return string(data), err
}
