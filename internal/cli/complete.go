package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/view"
	"muster/team"
)

// completionCommand returns muster completion, which prints the script that a shell needs to complete commands. The
// scripts call the program again for each completion, so they need not be made anew for a new version.
func (a *App) completionCommand() *cobra.Command {
	shells := []string{"bash", "zsh", "fish"}
	c := &cobra.Command{Use: "completion SHELL", Short: "what a shell needs to complete commands: bash, zsh, fish",
		Args: namedArgs("SHELL"), ValidArgs: shells,
		Long: "bash:  muster completion bash > ~/.local/share/bash-completion/completions/muster\n" +
			"zsh:   muster completion zsh > \"${fpath[1]}/_muster\"\n" +
			"fish:  muster completion fish > ~/.config/fish/completions/muster.fish\n" +
			"It completes tasks, members, questions and lanes too."}
	c.RunE = func(c *cobra.Command, args []string) error {
		switch root := c.Root(); args[0] {
		case "bash":
			if _, err := io.WriteString(a.Stdout, wordsByRef); err != nil {
				return err
			}
			return root.GenBashCompletionV2(a.Stdout, true)
		case "zsh":
			return root.GenZshCompletion(a.Stdout)
		case "fish":
			return root.GenFishCompletion(a.Stdout, true)
		}
		return &usageError{c.CommandPath(), fmt.Sprintf("there is no completion for %q: bash, zsh, fish", args[0])}
	}
	return c
}

// wordsByRef defines the one function of the package bash-completion that the script needs, for a bash without it.
// Without the function the script fails at the first completion.
const wordsByRef = `if ! declare -F _get_comp_words_by_ref >/dev/null; then
    _get_comp_words_by_ref() {
        cword=$COMP_CWORD
        words=("${COMP_WORDS[@]}")
        cur=${COMP_WORDS[COMP_CWORD]}
        prev=${COMP_WORDS[COMP_CWORD-1]}
    }
fi
`

// isCompletion reports whether a shell asks for completions. The shell then runs a hidden command of cobra, and
// shows whatever it prints.
func isCompletion(args []string) bool {
	return len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd)
}

// candidates returns what may stand in one place of a command line. It only reads the state. It runs while somebody
// waits for the shell, so it reads no more than it needs.
type candidates func(ctx context.Context, t *team.Team) ([]cobra.Completion, error)

// completer tells shells what may stand where.
type completer struct{ app *App }

// register names, for arguments and flags, what may stand there. Its two tables are the only place that lists
// completions.
func (c completer) register(root *cobra.Command) {
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	openTask := tasksThat(muster.Task.Open)
	anyTask := tasksThat(func(muster.Task) bool { return true })
	anyMember := membersThat(func(muster.Member) bool { return true })
	for path, find := range map[string]candidates{
		"task show": anyTask,
		"task claim": tasksThat(func(t muster.Task) bool {
			return t.Status == muster.Pending && len(t.BlockedBy) == 0
		}),
		"task complete": openTask,
		"task release":  tasksThat(muster.Task.Claimed),
		"task retry":    tasksThat(func(t muster.Task) bool { return t.Status == muster.NeedsAttention }),
		"task delete":   tasksThat(func(t muster.Task) bool { return t.Status != muster.Landing }),
		"approve":       decidableRequests,
		"reject":        decidableRequests,
		"team spawn": membersThat(func(m muster.Member) bool {
			return m.Status == muster.Shutdown && m.Name != muster.Lead
		}),
		"team stop":       membersThat(func(m muster.Member) bool { return m.Status != muster.Shutdown }),
		"mail send":       withMore(anyMember, string(muster.All)+"\tevery member that has not shut down"),
		"mail list":       withMore(anyMember, string(muster.User)+"\tyour own"),
		"worktree run":    laneNames,
		"worktree keep":   laneNames,
		"worktree remove": laneNames,
	} {
		if command, _, err := root.Find(strings.Fields(path)); err == nil {
			command.ValidArgsFunction = c.forArgument(find)
		}
	}
	for path, find := range map[string]candidates{
		"log --task":        anyTask,
		"log --member":      anyMember,
		"task list --owner": owners,
		"task list --status": func(context.Context, *team.Team) ([]cobra.Completion, error) {
			return taskStatuses(), nil
		},
		"task add --blocked-by": openTask,
		"task add --role":       roles,
		"task claim --as":       anyMember,
		"task claim --role":     roles,
		"task complete --as":    owners,
		"team spawn --role":     roles,
	} {
		path, flag, _ := strings.Cut(path, " --")
		if command, _, err := root.Find(strings.Fields(path)); err == nil {
			// The only error is that the flag has completions already.
			_ = command.RegisterFlagCompletionFunc(flag, c.forFlag(find))
		}
	}
	_ = root.MarkPersistentFlagDirname("dir") // it exists
	if command, _, err := root.Find([]string{"demo"}); err == nil && command != root {
		_ = command.MarkFlagDirname("keep")
	}
}

// forArgument completes the first argument of a command. The arguments behind the first are free text or commands,
// for which there is nothing to offer.
func (c completer) forArgument(find candidates) cobra.CompletionFunc {
	return func(command *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return c.find(command.Context(), find)
	}
}

// forFlag completes the value of a flag, which may be a list with commas. The part before the last comma is put
// back in front of each candidate, because a shell replaces the whole word.
func (c completer) forFlag(find candidates) cobra.CompletionFunc {
	return func(command *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		found, directive := c.find(command.Context(), find)
		before := typed[:strings.LastIndexByte(typed, ',')+1]
		for i := range found {
			found[i] = before + found[i]
		}
		return found, directive
	}
}

// find asks the state of this directory. Where there is none, or it cannot be read, it finds nothing. A shell has
// no place for an error message, so the user sees that nothing is offered.
func (c completer) find(ctx context.Context, find candidates) ([]cobra.Completion, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	o, err := c.app.look(ctx)
	if err != nil {
		return nil, directive
	}
	defer o.close()
	found, err := find(ctx, o.Team)
	if err != nil {
		return nil, directive
	}
	return found, directive
}

// described returns a candidate with what a shell shows beside it. The description is cut, so that a candidate
// stays on one line.
func described(value, about string) cobra.Completion {
	return cobra.CompletionWithDesc(value, view.Cut(view.OneLine(about), 60))
}

// withMore returns the candidates of find and some more. It serves names that are no member, such as all and user.
func withMore(find candidates, more ...cobra.Completion) candidates {
	return func(ctx context.Context, t *team.Team) ([]cobra.Completion, error) {
		found, err := find(ctx, t)
		return append(found, more...), err
	}
}

// tasksThat returns the ids of the tasks that match, each with its subject. A partial list is returned together
// with the error; find decides what to do with it.
func tasksThat(match func(muster.Task) bool) candidates {
	return func(ctx context.Context, t *team.Team) (found []cobra.Completion, err error) {
		all, _, err := t.Tasks().List(ctx)
		for _, x := range all {
			if match(x) {
				found = append(found, described(fmt.Sprint(x.ID), x.Subject))
			}
		}
		return found, err
	}
}

// membersThat returns the names of the members that match, each with its role. The lead comes first, as in muster
// team list.
func membersThat(match func(muster.Member) bool) candidates {
	return func(ctx context.Context, t *team.Team) (found []cobra.Completion, err error) {
		all, err := t.Members().List(ctx)
		for _, m := range all {
			if match(m.Member) {
				found = append(found, described(string(m.Name), m.Role))
			}
		}
		return found, err
	}
}

// owners returns who has or had a task. The names come from the tasks and not from the roster, because somebody
// outside the team can own a task.
func owners(ctx context.Context, t *team.Team) (found []cobra.Completion, err error) {
	all, _, err := t.Tasks().List(ctx)
	for _, x := range all {
		if name := view.OneLine(string(x.Owner)); name != "" && !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	return found, err
}

// roles returns the roles of the members, and those that tasks want. The role of the lead is left out, because it
// names one member and not a kind of work.
func roles(ctx context.Context, t *team.Team) (found []cobra.Completion, err error) {
	// The roles of members come first, because a task for one of them can be claimed at once.
	members, err := t.Members().List(ctx)
	if err != nil {
		return nil, err
	}
	tasks, _, err := t.Tasks().List(ctx)
	add := func(role string) {
		if role = view.OneLine(role); role != "" && role != string(muster.Lead) && !slices.Contains(found, role) {
			found = append(found, role)
		}
	}
	for _, m := range members {
		add(m.Role)
	}
	for _, x := range tasks {
		add(x.ClaimRole)
	}
	return found, err
}

// decidableRequests returns the requests that the user may decide. Requests to other members are left out: approve
// and reject refuse them.
func decidableRequests(ctx context.Context, t *team.Team) (found []cobra.Completion, err error) {
	all, err := t.Requests().Pending(ctx)
	for _, r := range all {
		if r.To == muster.User || r.To == muster.Lead {
			found = append(found, described(string(r.ID), view.Question(r)+" of "+string(r.From)))
		}
	}
	return found, err
}

// laneNames returns the lanes, each with its status.
func laneNames(ctx context.Context, t *team.Team) (found []cobra.Completion, err error) {
	all, err := t.Lanes().List(ctx)
	for _, l := range all {
		found = append(found, described(string(l.Name), string(l.Status)))
	}
	return found, err
}
