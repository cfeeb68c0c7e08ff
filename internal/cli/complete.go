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
)

func (a *App) completionCommand() *cobra.Command {
	shells := []string{"bash", "zsh", "fish"}
	c := &cobra.Command{Use: "completion SHELL", Short: "what a shell needs to complete commands: bash, zsh, fish", Args: exactly("SHELL"), ValidArgs: shells,
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

// wordsByRef is, for a bash without the package bash-completion, the one function of it that the script needs.
const wordsByRef = `if ! declare -F _get_comp_words_by_ref >/dev/null; then
    _get_comp_words_by_ref() {
        cword=$COMP_CWORD
        words=("${COMP_WORDS[@]}")
        cur=${COMP_WORDS[COMP_CWORD]}
        prev=${COMP_WORDS[COMP_CWORD-1]}
    }
fi
`

// completing says whether a shell asks for completions: then nothing may be said beside them.
func completing(args []string) bool {
	return len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd)
}

// candidates are what may stand in one place of a command line. They are found in the state, which is only read.
type candidates func(ctx context.Context, p *place) ([]cobra.Completion, error)

// complete names, for arguments and flags, what may stand there.
func (a *App) complete(root *cobra.Command) {
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	open := tasksThat(muster.Task.Open)
	for path, find := range map[string]candidates{
		"task show":       tasksThat(func(muster.Task) bool { return true }),
		"task claim":      tasksThat(func(t muster.Task) bool { return t.Status == muster.Pending && len(t.BlockedBy) == 0 }),
		"task complete":   open,
		"task release":    tasksThat(muster.Task.Claimed),
		"task retry":      tasksThat(func(t muster.Task) bool { return t.Status == muster.NeedsAttention }),
		"task delete":     tasksThat(func(t muster.Task) bool { return t.Status != muster.Landing }),
		"approve":         questions,
		"reject":          questions,
		"team spawn":      membersThat(func(m muster.Member) bool { return m.Status == muster.Shutdown && m.Name != muster.Lead }),
		"team stop":       membersThat(func(m muster.Member) bool { return m.Status != muster.Shutdown }),
		"mail send":       and(membersThat(anyone), string(muster.All)+"\tevery member that has not shut down"),
		"mail list":       and(membersThat(anyone), string(muster.User)+"\tyour own"),
		"worktree run":    lanesNow,
		"worktree keep":   lanesNow,
		"worktree remove": lanesNow,
	} {
		c, _, err := root.Find(strings.Fields(path))
		if err != nil {
			continue
		}
		c.ValidArgsFunction = func(c *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return a.found(c.Context(), find)
		}
	}
	for path, find := range map[string]candidates{
		"log --task":        tasksThat(func(muster.Task) bool { return true }),
		"log --member":      membersThat(anyone),
		"task list --owner": owners,
		"task list --status": func(context.Context, *place) ([]cobra.Completion, error) {
			return statuses(), nil
		},
		"task add --blocked-by": open,
		"task add --role":       roles,
		"task claim --as":       membersThat(anyone),
		"task claim --role":     roles,
		"task complete --as":    owners,
		"team spawn --role":     roles,
	} {
		command, flag, _ := strings.Cut(path, " --")
		c, _, err := root.Find(strings.Fields(command))
		if err != nil {
			continue
		}
		_ = c.RegisterFlagCompletionFunc(flag, func(c *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			found, directive := a.found(c.Context(), find)
			if i := strings.LastIndexByte(typed, ','); i >= 0 { // one more of a list
				for k := range found {
					found[k] = typed[:i+1] + found[k]
				}
			}
			return found, directive
		})
	}
	_ = root.MarkPersistentFlagDirname("dir")
	if c, _, err := root.Find([]string{"demo"}); err == nil && c != root {
		_ = c.MarkFlagDirname("keep")
	}
}

// found asks the state of this directory. Where there is none, or it cannot be read, nothing is found.
func (a *App) found(ctx context.Context, find candidates) ([]cobra.Completion, cobra.ShellCompDirective) {
	const directive = cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	p, err := a.look(ctx)
	if err != nil {
		return nil, directive
	}
	defer p.close()
	found, err := find(ctx, p)
	if err != nil {
		return nil, directive
	}
	return found, directive
}

// described is a candidate with what a shell shows beside it.
func described(value, about string) cobra.Completion {
	return cobra.CompletionWithDesc(value, view.Cut(view.OneLine(about), 60))
}

func and(find candidates, more ...cobra.Completion) candidates {
	return func(ctx context.Context, p *place) ([]cobra.Completion, error) {
		found, err := find(ctx, p)
		return append(found, more...), err
	}
}

func tasksThat(fit func(muster.Task) bool) candidates {
	return func(ctx context.Context, p *place) (found []cobra.Completion, err error) {
		all, err := p.theBoard().List(ctx)
		for _, t := range all {
			if fit(t) {
				found = append(found, described(fmt.Sprint(t.ID), t.Subject))
			}
		}
		return found, err
	}
}

func anyone(muster.Member) bool { return true }

func membersThat(fit func(muster.Member) bool) candidates {
	return func(ctx context.Context, p *place) (found []cobra.Completion, err error) {
		all, err := p.members(ctx)
		for _, m := range all {
			if fit(m.Member) {
				found = append(found, described(string(m.Name), m.Role))
			}
		}
		return found, err
	}
}

// owners are who has or had a task.
func owners(ctx context.Context, p *place) (found []cobra.Completion, err error) {
	all, err := p.theBoard().List(ctx)
	for _, t := range all {
		if name := view.OneLine(string(t.Owner)); name != "" && !slices.Contains(found, name) {
			found = append(found, name)
		}
	}
	return found, err
}

// roles are those of the members, and those that tasks want.
func roles(ctx context.Context, p *place) (found []cobra.Completion, err error) {
	members, err := p.members(ctx)
	if err != nil {
		return nil, err
	}
	tasks, err := p.theBoard().List(ctx)
	add := func(role string) {
		if role = view.OneLine(role); role != "" && role != string(muster.Lead) && !slices.Contains(found, role) {
			found = append(found, role)
		}
	}
	for _, m := range members {
		add(m.Role)
	}
	for _, t := range tasks {
		add(t.ClaimRole)
	}
	return found, err
}

// questions are the requests that the user may decide.
func questions(ctx context.Context, p *place) (found []cobra.Completion, err error) {
	all, err := p.theRequests(ctx).Pending(ctx)
	for _, r := range all {
		if r.To == muster.User || r.To == muster.Lead {
			found = append(found, described(string(r.ID), view.Question(r)+" of "+string(r.From)))
		}
	}
	return found, err
}

func lanesNow(ctx context.Context, p *place) (found []cobra.Completion, err error) {
	if !isFile(p.home.Index()) {
		return nil, nil
	}
	lanes, err := p.theLanes(ctx)
	if err != nil {
		return nil, err
	}
	all, err := lanes.List(ctx)
	for _, l := range all {
		found = append(found, described(string(l.Name), string(l.Status)))
	}
	return found, err
}
