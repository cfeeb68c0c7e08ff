package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"muster/internal/view"
)

// help prints what a command is for and how it is called. An error of writing is not reported: there is nobody to
// tell. It replaces the help of cobra, which has no groups of flags and no example.
func help(c *cobra.Command, _ []string) {
	w := c.OutOrStdout()
	every := c.InheritedFlags()
	if !c.HasParent() {
		every = c.PersistentFlags()
		fmt.Fprintf(w, "muster: %s\n\n  muster run \"GOAL\" --check \"go test ./...\"\n", c.Short)
	} else {
		// The short text has no capital letter and no full stop, because lists show it.
		fmt.Fprintf(w, "%s\n\n  %s\n", strings.ToUpper(c.Short[:1])+c.Short[1:]+".", c.UseLine())
		if c.Long != "" {
			fmt.Fprintf(w, "\n%s\n", strings.TrimSpace(c.Long))
		}
	}
	for _, g := range c.Groups() {
		section(w, g.Title, c, g.ID)
	}
	if c.HasParent() {
		section(w, "Commands", c, "")
	}
	flags(w, "Flags", c.LocalNonPersistentFlags().FlagUsagesWrapped(100))
	flags(w, "Flags of every command", every.FlagUsagesWrapped(100))
	if !c.HasParent() {
		fmt.Fprintf(w, "\nmuster COMMAND --help says more.\n")
	}
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

// flags prints the usages of flags, if there are any. Local flags and those of every command are sections of their
// own.
func flags(w io.Writer, title, usages string) {
	if usages != "" {
		fmt.Fprintf(w, "\n%s\n%s", title, usages)
	}
}
