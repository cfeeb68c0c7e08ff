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
	"muster/internal/text"
	"muster/internal/view"
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
	return &usageError{c.CommandPath(), "there is no command \"" + text.OneLine(name) + "\"" + near + goalHint(c, args)}
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
	data, err := io.ReadAll(io.LimitReader(a.Stdin, maxStdin+1))
	if len(data) > maxStdin {
		return "", muster.Errorf(muster.Invalid, "standard input has more than %d KB, which is the most that a text "+
			"may have: write it to a file and name that", maxStdin>>10)
	}
	return string(data), err
}

// maxStdin is how many bytes of a text are read from standard input.
const maxStdin = 1 << 20

// setHelp makes c and its commands print our help, which begins with examples and leaves the flags of every command to
// "muster help flags". The help of a command that does not exist is an error.
func setHelp(a *App, root *cobra.Command) {
	root.SetHelpFunc(func(c *cobra.Command, _ []string) {
		// The function of cobra returns no error.
		if c.HasSubCommands() {
			a.noHelp = knownCommand(c, c.Flags().Args())
		}
		if a.noHelp == nil {
			help(c)
		}
	})
	root.SetHelpCommand(&cobra.Command{Use: "help [COMMAND]", Short: "what a command does and takes",
		ValidArgsFunction: func(
			_ *cobra.Command, args []string, _ string,
		) (all []cobra.Completion, _ cobra.ShellCompDirective) {
			found, _, _ := root.Find(args)
			for _, sub := range found.Commands() {
				if sub.IsAvailableCommand() || sub.Name() == flagsTopic {
					all = append(all, cobra.CompletionWithDesc(sub.Name(), sub.Short))
				}
			}
			return all, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			c, rest, err := root.Find(args)
			if err == nil && c.HasSubCommands() {
				err = knownCommand(c, rest)
			}
			if err != nil {
				return err
			}
			return c.Help()
		}})
	// It cannot be run, so no list of commands has it.
	root.AddCommand(&cobra.Command{Use: flagsTopic, Short: "the flags of every command"})
}

// flagsTopic is what "muster help" takes beside the names of commands.
const flagsTopic = "flags"

// help prints what a command is for and how it is called. An error of writing is not reported: there is nobody to
// tell.
func help(c *cobra.Command) {
	w := c.OutOrStdout()
	path := strings.TrimSpace(strings.TrimPrefix(c.CommandPath(), "muster"))
	switch {
	case path == flagsTopic:
		fmt.Fprintf(w, "The flags of every command.\n\n%s", c.Root().PersistentFlags().FlagUsagesWrapped(100))
		return
	case path == "":
		fmt.Fprintf(w, "muster: %s\n\n", c.Short)
	default:
		// The short text has no capital letter and no full stop, because lists show it.
		fmt.Fprintf(w, "%s\n\n", strings.ToUpper(c.Short[:1])+c.Short[1:]+".")
	}
	for _, e := range examples[path] {
		fmt.Fprintf(w, "  %s\n", e)
	}
	if c.HasParent() {
		fmt.Fprintf(w, "\nUsage\n  %s\n", c.UseLine())
	}
	if c.Long != "" {
		fmt.Fprintf(w, "\n%s\n", strings.TrimSpace(c.Long))
	}
	for _, g := range c.Groups() {
		section(w, g.Title, c, g.ID)
	}
	if c.HasParent() {
		section(w, "Commands", c, "")
	}
	if usages := c.LocalNonPersistentFlags().FlagUsagesWrapped(100); usages != "" {
		fmt.Fprintf(w, "\nFlags\n%s", usages)
	}
	if !c.HasParent() {
		fmt.Fprintf(w, "\nmuster COMMAND --help says more. ")
	} else {
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "Flags of every command: muster help %s\n", flagsTopic)
}

// section prints the commands of a group, each with what it is for. A command that only has commands of its own is
// shown with their names, so that the first page of the help shows them all.
func section(w io.Writer, title string, c *cobra.Command, group string) {
	t := view.Table{Titles: []string{"", ""}, Wide: -1}
	for _, sub := range c.Commands() {
		if sub.GroupID != group || !sub.IsAvailableCommand() || sub.Name() == "help" {
			continue
		}
		// The first word of Use is the name, and the rest are its arguments.
		_, args, _ := strings.Cut(sub.Use, " ")
		name := sub.Name()
		if sub.HasAvailableSubCommands() && args == "" {
			args = view.Join(sub.Commands(), "|", (*cobra.Command).Name)
		}
		// A long list of arguments would push the descriptions of all commands to the right.
		if c.HasParent() || len(args) < 40 {
			name = strings.TrimSpace(name + " " + args)
		}
		t.Row(view.Text("  "+name), sub.Short)
	}
	if len(t.Rows) > 0 {
		fmt.Fprintf(w, "\n%s\n%s", title, t.Draw(view.Screen{}))
	}
}
