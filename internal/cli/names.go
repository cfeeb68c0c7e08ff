package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/chat"
	"muster/internal/text"
	"muster/internal/view"
	"muster/internal/workspace"
	"muster/team"
)

// namesKept is how long what a menu offers is taken for current. It is asked for at each key.
const namesKept = time.Second

// names returns what the conversation completes. An error means that there is nothing to complete. again is called
// when there is more to choose from.
func (c *conversation) names(ctx context.Context, again func()) chat.Names {
	ctx = context.WithoutCancel(ctx) // a list that is read in the background may outlast the conversation
	now := c.app.Now
	return chat.Names{Members: kept(now, func() (names []chat.Name) {
		members, _ := c.Members().List(ctx)
		for _, m := range members {
			names = append(names, chat.Name{Name: string(m.Name), Note: text.OneLine(m.Role)})
		}
		return names
	}), Requests: kept(now, func() (ids []chat.Name) {
		all, _ := c.Requests().Pending(ctx)
		for _, r := range all {
			kind := view.Question(r) + " of " + text.OneLine(string(r.From))
			ids = append(ids, chat.Name{Name: string(r.ID), Note: kind})
		}
		return ids
	}), Tasks: kept(now, func() (ids []chat.Name) {
		all, _, _ := c.Tasks().List(ctx)
		for _, x := range all {
			ids = append(ids, chat.Name{Name: fmt.Sprint(x.ID), Note: text.OneLine(x.Subject)})
		}
		return ids
	}), Custom: kept(now, c.customCommands), Commands: c.commands,
		Files: &chat.Files{Now: now, Changed: again, List: func(ctx context.Context) []string {
			return c.workspace.ListFiles(ctx)
		}}}
}

// kept returns a function that returns the same for a while. Only one goroutine may call it, as the keys of a terminal
// do.
func kept[T any](now func() time.Time, read func() []T) func() []T {
	var last []T
	var at time.Time
	// A list of a moment ago is good enough, and a key must not wait for the store.
	return func() []T {
		if now().Sub(at) > namesKept {
			last, at = read(), now()
		}
		return last
	}
}

// addInput adds the commands, and what else the user can type beside messages, to a session. done ends what it has
// started.
func (c *conversation) addInput(s *chat.Session) (done func()) {
	s.Now, s.Custom = c.app.Now, c.customCommands
	s.Compact, s.Clear, s.Share = c.Mail().Compact, c.Mail().Clear, c.share
	s.Waiting, s.Members, s.Commands = c.waiting, c.teammates, c.commands
	s.Model = func(ctx context.Context, name string) string {
		return c.modelCommand(ctx, name, s.Stopped, s.HasBegun)
	}
	if c.terminal == nil { // a pipe must not run commands, and has no line that could be edited
		return func() {}
	}
	// It runs with the rights of the user, whose machine this is: the rights of members are another matter.
	shell := &userShell{app: c.app}
	s.Shell, s.Edit, s.Fill, s.Untaken = shell.run, c.terminal.Edit, c.terminal.Fill, c.untaken
	return shell.close
}

// teammates returns the names of the members beside the lead. Where they cannot be read there are none.
func (c *conversation) teammates(ctx context.Context) (names []muster.Name) {
	members, _ := c.Members().List(ctx)
	for _, m := range members {
		if m.Name != muster.Lead {
			names = append(names, m.Name)
		}
	}
	return names
}

// needsTerminal is an annotation of commands that cannot be typed behind a slash: they begin a run or a conversation,
// take the whole terminal, or go on until they are stopped.
const needsTerminal = "needs a terminal"

// inTerminal marks commands as ones that need a terminal of their own.
func inTerminal(c *cobra.Command) *cobra.Command {
	c.Annotations = map[string]string{needsTerminal: "yes"}
	return c
}

// slashCommands returns the commands of the command line that a conversation has too, in the order of the help.
func slashCommands(a *App) (all []chat.Command) {
	own := chat.Builtin()
	fresh := *a // its flags are bound anew
	for _, c := range fresh.root().Commands() {
		if c.Annotations[needsTerminal] != "" || !c.IsAvailableCommand() || slices.Contains(own, c.Name()) {
			continue
		}
		_, args, _ := strings.Cut(c.Use, " ")
		if c.HasAvailableSubCommands() && args == "" {
			args = "[...]"
		}
		all = append(all, chat.Command{Name: c.Name(), Args: args, Does: c.Short})
	}
	return all
}

// waiting returns the requests that the user may answer, and those that are shown: without a terminal all are. Where
// they cannot be read there are none.
func (c *conversation) waiting(ctx context.Context) (all, shown []muster.Request) {
	all = usersRequests(ctx, c.Team)
	if c.terminal == nil {
		return all, all
	}
	return all, c.progress.Questions()
}

// usersRequests returns the requests that wait, and that the user may answer.
func usersRequests(ctx context.Context, t *team.Team) []muster.Request {
	all, _ := t.Requests().Pending(ctx)
	now := time.Now()
	return slices.DeleteFunc(all, func(r muster.Request) bool { return !view.IsForUser(r, now) })
}

func (c *conversation) share(ctx context.Context, path string) (string, error) {
	if below, ok := strings.CutPrefix(path, "~/"); ok {
		path = filepath.Join(c.app.env("HOME"), below)
	}
	return workspace.Share(ctx, c.workspace, path)
}

func pasted(text string) string {
	return chat.PastedImage(text, func(path string) bool {
		fi, err := os.Stat(path)
		return err == nil && fi.Mode().IsRegular()
	})
}
