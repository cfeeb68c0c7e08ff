package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/text"
	"muster/internal/workspace"
)

func newAdoptCommand(a *App) *cobra.Command {
	var yes bool
	c := &cobra.Command{Use: "adopt", Args: namedArgs(),
		Short: "take over a team's state that another program made, or that you copied here"}
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	c.Long = "State that muster did not make for you on this machine is not used: a clone may bring anything.\n" +
		"Look at what it says before you take it over: a resumed run uses its check, its set-up and its target."
	c.RunE = func(c *cobra.Command, _ []string) error {
		w, err := openUnverified(c.Context(), a)
		if err != nil {
			return err
		}
		defer w.Close()
		found, err := w.Find(c.Context())
		if err != nil {
			return err
		}
		if found.IsOwn && len(found.Owners)+len(found.Lost) == 0 {
			return a.printLine(found, nil, "the state here is your own already: there is nothing to take over")
		}
		if !yes {
			fmt.Fprint(a.Stderr, foundText(found))
			if err := confirm(c.Context(), a, "take it over", "muster adopt --yes"); err != nil {
				return err
			}
		}
		if err := w.Adopt(c.Context(), found); err != nil || len(found.Lost) == 0 {
			return a.printLine(found, err, "taken over: %s in %s; go on with muster status",
				text.Count(found.Tasks, "task"), strings.Join(found.Dirs, ", "))
		}
		return a.printLine(found, nil, "taken over: %s; what has its files is a lane again (muster worktree list), "+
			"and the commits of the others are below refs/muster/archive/", text.List(nameTexts(found.Lost), maxLost))
	}
	return c
}

// openUnverified opens the repository with whatever state is there, for a command with which the user decides over it.
func openUnverified(ctx context.Context, a *App) (*workspace.Unverified, error) {
	return workspace.OpenUnverified(ctx, a.workDir(), a.workspaceOptions(ctx))
}

// foundText says what state holds, and what of it would be carried out.
func foundText(f workspace.FoundState) string {
	var b strings.Builder
	line := func(title, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%s%s\n", text.PadColumns(title, 10), text.OneLine(value))
		}
	}
	if len(f.Dirs) > 0 {
		line("state", strings.Join(f.Dirs, ", ")+": "+text.Count(f.Tasks, "task"))
	}
	line("members", strings.Join(nameTexts(f.Members), ", "))
	line("owners", strings.Join(nameTexts(f.Owners), ", "))
	line("lanes", strings.Join(nameTexts(f.Lanes), ", "))
	line("lost", text.List(nameTexts(f.Lost), maxLost))
	line("goal", f.Run.Goal)
	line("check", f.Run.Check)
	line("setup", f.Run.Setup)
	line("target", f.Run.Target)
	line("model", f.Run.Model)
	return b.String()
}

func nameTexts(all []muster.Name) []string {
	texts := make([]string, len(all))
	for i, n := range all {
		texts[i] = string(n)
	}
	return texts
}

const maxLost = 20 // lanes that are named

// noteLost names the lanes of a team whose state was removed.
func noteLost(ctx context.Context, a *App, w *workspace.Workspace) {
	if lost, err := w.Lost(ctx); err == nil && len(lost) > 0 {
		explain(a.Stderr, "git still has lanes of a team whose state is gone: "+text.List(nameTexts(lost), maxLost),
			"take them over: muster adopt")
	}
}

// confirm asks the user a question on the terminal, and returns an error unless the answer is yes. Where nobody can
// answer, the error names the command that does it without asking. When ctx ends first, its cause is returned.
func confirm(ctx context.Context, a *App, question, unasked string) error {
	f := a.terminalIn()
	if f == nil {
		return muster.Errorf(muster.Invalid, "nobody can be asked here whether to %s", question).WithHint("%s", unasked)
	}
	fmt.Fprintf(a.Stderr, "%s? [y/N] ", question)
	answered := make(chan error, 1)
	// Where ctx ends first the program ends, so the read that still waits does no harm.
	go func() {
		for lines := bufio.NewScanner(f); lines.Scan(); fmt.Fprint(a.Stderr, "answer y or n: ") {
			switch strings.ToLower(strings.TrimSpace(lines.Text())) {
			case "y", "yes":
				answered <- nil
				return
			case "", "n", "no":
				answered <- errDeclined
				return
			}
		}
		answered <- errors.New("the question was not answered") // the terminal is gone
	}()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case err := <-answered:
		return err
	}
}

// errDeclined is the error for a question that was not answered with yes.
var errDeclined = errors.New("nothing is changed")
