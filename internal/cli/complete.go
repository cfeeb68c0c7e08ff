package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/config"
	"muster/internal/roles"
	"muster/internal/text"
	"muster/internal/view"
	"muster/internal/workspace"
	"muster/llm/catalogue"
	"muster/team"
)

// newCompletionCommand returns muster completion, which prints the script that a shell needs to complete commands. The
// scripts call the program again for each completion, so they need not be made anew for a new version.
func newCompletionCommand(a *App) *cobra.Command {
	shells := []string{"bash", "zsh", "fish"}
	c := &cobra.Command{Use: "completion SHELL", Short: "what a shell needs to complete commands: bash, zsh, fish",
		Args: namedArgs("SHELL"), ValidArgs: shells,
		Long: "bash:  muster completion bash > ~/.local/share/bash-completion/completions/muster\n" +
			"zsh:   muster completion zsh > \"${fpath[1]}/_muster\"\n" +
			"fish:  muster completion fish > ~/.config/fish/completions/muster.fish\n" +
			"It completes tasks, members, questions, lanes, models and files of a difference too."}
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

// candidates returns what may stand in one place of a command line. It only reads the state. It runs while somebody
// waits for the shell, so it reads no more than it needs.
type candidates func(ctx context.Context, o opened) ([]cobra.Completion, error)

// registerCompletions names, for arguments and flags, what may stand there. Its table is the only place that lists
// completions.
func (a *App) registerCompletions(root *cobra.Command) {
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	// Each of these reads the state only when a shell asks for it.
	openTask := tasksThat(muster.Task.Open)
	known := each(knownRoles(a), func(r roles.Role) (name, _ string) { return r.Name, "" })
	anyRole := join(memberRoles, wantedRoles, known)
	anyTask := tasksThat(func(muster.Task) bool { return true })
	anyMember := membersThat(func(muster.Member) bool { return true })
	for path, find := range map[string]candidates{
		"task show": anyTask,
		"diff":      anyTask,
		"review":    anyTask,
		"undo":      anyTask,
		"task claim": tasksThat(func(t muster.Task) bool {
			return t.Status == muster.Pending && len(t.BlockedBy) == 0
		}),
		"task complete": openTask,
		"task release":  tasksThat(muster.Task.Claimed),
		"task retry":    tasksThat(func(t muster.Task) bool { return t.Status == muster.NeedsAttention }),
		"task delete":   tasksThat(func(t muster.Task) bool { return t.Status != muster.Landing }),
		"approve":       decidableRequests,
		"requests show": allRequests,
		"reject":        decidableRequests,
		"team spawn": membersThat(func(m muster.Member) bool {
			return m.Status == muster.Shutdown && m.Name != muster.Lead
		}),
		"team stop":             membersThat(func(m muster.Member) bool { return m.Status != muster.Shutdown }),
		"mail send":             join(anyMember, fixed(string(muster.All)+"\tevery member that has not shut down")),
		"mail list":             join(anyMember, fixed(string(muster.User)+"\tyour own")),
		"worktree run":          laneNames,
		"worktree keep":         laneNames,
		"worktree remove":       laneNames,
		"log --task":            anyTask,
		"log --member":          anyMember,
		"context":               anyMember,
		"task list --owner":     owners,
		"task list --status":    fixed(taskStatuses()...),
		"task add --blocked-by": openTask,
		"task add --role":       anyRole,
		"task claim --as":       anyMember,
		"task claim --role":     anyRole,
		"task complete --as":    owners,
		"team spawn --role":     anyRole,
		"join --role":           anyRole,
		"roles":                 known,
		"archive restore":       archiveNames,
		"merge":                 archiveNames,
		"web":                   archiveNames,
		"share":                 archiveNames,
	} {
		path, flag, isFlag := strings.Cut(path, " --")
		command, _, err := root.Find(strings.Fields(path))
		switch complete := a.completion(find, isFlag, further[path]); {
		case err != nil: // this program does not have it
		case isFlag:
			// The only error is that the flag has completions already.
			_ = command.RegisterFlagCompletionFunc(flag, complete)
		default:
			command.ValidArgsFunction = complete
		}
	}
	a.completeModels(root)
	_ = root.MarkPersistentFlagDirname("dir") // it exists
}

// completeModels completes --model of c and its commands with the models that are known. It needs no team.
func (a *App) completeModels(c *cobra.Command) {
	if c.LocalNonPersistentFlags().Lookup("model") != nil {
		// The only error is that the flag has completions already.
		_ = c.RegisterFlagCompletionFunc("model",
			func(*cobra.Command, []string, string) (all []cobra.Completion, _ cobra.ShellCompDirective) {
				for _, m := range config.ReadEndpoints(a.configOptions("")).Models(catalogue.All()) {
					all = append(all, m.Provider+"/"+m.Name)
				}
				return all, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
			})
	}
	for _, sub := range c.Commands() {
		a.completeModels(sub)
	}
}

// further has what may stand behind the first argument of a command.
var further = map[string]func(args []string) candidates{
	"diff": func(args []string) candidates { return changedFiles(args[0], args[1:], "") },
	"review": func(args []string) candidates {
		if len(args) > 1 {
			return fixed() // the text
		}
		return changedFiles(args[0], nil, ":")
	},
}

// changedFiles are the files of a task's difference but for those that are named already, each with end behind it.
func changedFiles(task string, named []string, end string) candidates {
	return each(func(ctx context.Context, o opened) ([]team.FileChange, error) {
		id, err := strconv.Atoi(strings.TrimPrefix(task, "#"))
		if err != nil {
			return nil, err
		}
		d, err := o.Tasks().Diff(ctx, muster.TaskID(id))
		return d.Files, err
	}, func(f team.FileChange) (file, lines string) {
		if slices.Contains(named, f.File) || text.OneLine(f.File) != f.File {
			return "", ""
		}
		return f.File + end, fmt.Sprintf("+%d -%d", f.Added, f.Deleted)
	})
}

// completion completes the value of a flag, or the first argument of a command. Behind the first it completes what
// further has, which may be nil: most are free text or commands. Where the state of this directory is missing or cannot
// be read, nothing is offered: a shell has no place for an error message.
func (a *App) completion(
	find candidates, isFlag bool, further func(args []string) candidates,
) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		directive := cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
		find := find
		switch {
		case isFlag || len(args) == 0:
		case further == nil:
			return nil, cobra.ShellCompDirectiveNoFileComp
		default:
			find = further(args)
			directive |= cobra.ShellCompDirectiveNoSpace // a line or another file may follow
		}
		o, err := a.look(c.Context())
		if err != nil {
			return nil, directive
		}
		defer o.close()
		// A part of a list is not offered: it would look as if nothing else could stand there.
		found, err := find(c.Context(), o)
		if err != nil {
			return nil, directive
		}
		// The value of a flag may be a list with commas. A shell replaces the whole word, so the values before the last
		// comma stand in front of each candidate.
		for i := range found {
			if value, _, _ := strings.Cut(found[i], "\t"); strings.HasSuffix(value, ":") {
				directive |= cobra.ShellCompDirectiveNoSpace // a line follows
			}
			if isFlag {
				found[i] = typed[:strings.LastIndexByte(typed, ',')+1] + found[i]
			}
		}
		return found, directive
	}
}

func fixed(all ...cobra.Completion) candidates {
	return func(context.Context, opened) ([]cobra.Completion, error) { return all, nil }
}

// join returns the candidates of several, each once.
func join(all ...candidates) candidates {
	return func(ctx context.Context, o opened) (found []cobra.Completion, err error) {
		for _, find := range all {
			some, err := find(ctx, o)
			if err != nil {
				return nil, err
			}
			for _, x := range some {
				if !slices.Contains(found, x) {
					found = append(found, x)
				}
			}
		}
		return found, nil
	}
}

// each returns a candidate for each item of a list, with what a shell shows beside it. An item for which describe
// returns no value is left out. What is shown beside a value is cut, so that a candidate stays on one line.
func each[T any](
	list func(context.Context, opened) ([]T, error), describe func(T) (value, about string),
) candidates {
	return func(ctx context.Context, o opened) (found []cobra.Completion, err error) {
		// A part of a list is returned together with the error; the caller then offers nothing.
		items, err := list(ctx, o)
		for _, x := range items {
			value, about := describe(x)
			if about != "" {
				value = cobra.CompletionWithDesc(value, text.CutColumns(text.OneLine(about), 60))
			}
			if value != "" && !slices.Contains(found, value) {
				found = append(found, value)
			}
		}
		return found, err
	}
}

func allTasks(ctx context.Context, o opened) ([]muster.Task, error) {
	all, _, err := o.Tasks().List(ctx)
	return all, err
}

// allMembers lists the members: the lead comes first, as in muster team list.
func allMembers(ctx context.Context, o opened) ([]team.Member, error) {
	return o.Members().List(ctx)
}

// tasksThat returns the ids of the tasks that match, each with its subject.
func tasksThat(match func(muster.Task) bool) candidates {
	return each(allTasks, func(t muster.Task) (id, subject string) {
		if match(t) {
			id, subject = fmt.Sprint(t.ID), t.Subject
		}
		return id, subject
	})
}

// membersThat returns the names of the members that match, each with its role.
func membersThat(match func(muster.Member) bool) candidates {
	return each(allMembers, func(m team.Member) (name, role string) {
		if match(m.Member) {
			name, role = string(m.Name), m.Role
		}
		return name, role
	})
}

var (
	// owners are those who have or had a task. The names come from the tasks and not from the roster, because somebody
	// outside the team can own a task.
	owners = each(allTasks, func(t muster.Task) (name, _ string) { return text.OneLine(string(t.Owner)), "" })

	// memberRoles are those of the members. That of the lead is left out, because it names one member and not a kind
	// of work.
	memberRoles = each(allMembers, func(m team.Member) (role, _ string) { return workRole(m.Role), "" })

	// wantedRoles are the roles that tasks want.
	wantedRoles = each(allTasks, func(t muster.Task) (role, _ string) { return workRole(t.ClaimRole), "" })

	// decidableRequests are the requests that the user may decide. Requests to other members are left out: approve
	// and reject refuse them.
	decidableRequests = each(func(ctx context.Context, o opened) ([]muster.Request, error) {
		return o.Requests().Pending(ctx)
	}, func(r muster.Request) (id, about string) {
		if r.To == muster.User || r.To == muster.Lead {
			id, about = string(r.ID), view.Question(r)+" of "+string(r.From)
		}
		return id, about
	})

	// allRequests are those that wait, whoever may decide them.
	allRequests = each(func(ctx context.Context, o opened) ([]muster.Request, error) {
		return o.Requests().Pending(ctx)
	}, func(r muster.Request) (id, about string) {
		return string(r.ID), view.Question(r) + " of " + string(r.From)
	})

	// laneNames are the lanes, each with its status.
	laneNames = each(func(ctx context.Context, o opened) ([]muster.Lane, error) {
		return o.Lanes().List(ctx)
	}, func(l muster.Lane) (name, status string) { return string(l.Name), string(l.Status) })
)

// archiveNames are the archived teams, the last one first.
var archiveNames = each(func(_ context.Context, o opened) ([]workspace.ArchivedTeam, error) {
	all, _, err := o.workspace.Archives()
	slices.Reverse(all)
	return all, err
}, func(t workspace.ArchivedTeam) (name, goal string) { return t.Name, cmp.Or(t.Goal, string(t.Team)) })

func knownRoles(a *App) func(context.Context, opened) ([]roles.Role, error) {
	return func(_ context.Context, o opened) ([]roles.Role, error) {
		return roles.Usable(findRoles(a, o.Root())), nil
	}
}

// workRole returns a role as it is typed, and "" for the lead's.
func workRole(role string) string {
	if role = text.OneLine(role); role == string(muster.Lead) {
		return ""
	}
	return role
}
