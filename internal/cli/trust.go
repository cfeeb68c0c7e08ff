package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/config"
	"muster/internal/editdist"
	"muster/internal/hooks"
	"muster/internal/text"
	"muster/internal/trust"
	"muster/internal/view"
	"muster/internal/workspace"
)

// proposal is an item that the user does not trust.
type proposal struct {
	trust.Item
	// Trusted is what the user has trusted in its place before; nil: nothing.
	Trusted *string `json:"trusted,omitempty"`
}

func newTrustCommand(a *App) *cobra.Command {
	var yes, list, revoke bool
	c := &cobra.Command{Use: "trust", Args: namedArgs(),
		Short: "trust what this repository's own settings run, and where they let work land"}
	c.Long = "A check, a set-up command, a branch to land on and the like in the repository's muster.yaml do not\n" +
		"count until you have seen them here, and nor do its hooks and the filters of its git config. A change\n" +
		"of one of them is shown again. Its check, set-up, hooks and filters run confined, where commands of\n" +
		"members do. Servers of models, scripts and keys are never taken from a repository:\n" +
		"they come from flags, the environment and your own config.yaml."
	f := c.Flags()
	f.BoolVar(&yes, "yes", false, "do not ask")
	f.BoolVar(&list, "list", false, "show what you trust in this repository")
	f.BoolVar(&revoke, "revoke", false, "trust nothing in this repository any more")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if list && (yes || revoke) || yes && revoke {
			return &usageError{c.CommandPath(), "--yes, --list and --revoke exclude each other"}
		}
		o, err := a.open(c.Context())
		if err != nil {
			return err
		}
		defer o.close()
		switch {
		case list:
			return listTrusted(a, o)
		case revoke:
			err := o.workspace.Trust().Change(c.Context(), func(t *trust.Settings) { *t = trust.Settings{} })
			return a.printLine(struct{}{}, err, "nothing in this repository is trusted any more")
		}
		return trustProposals(c.Context(), a, o, yes)
	}
	return c
}

// trustProposals shows what is not trusted yet, and trusts just that when the user says so.
func trustProposals(ctx context.Context, a *App, o opened, yes bool) error {
	// What a variable overrides here is shown too: the next command may have another environment.
	all, _, err := proposals(ctx, a, o.workspace, nil, func(config.Withheld) bool { return true })
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return a.printLine(all, nil, "nothing here waits to be trusted")
	}
	if !yes {
		if err := confirmTrust(ctx, a, all); err != nil {
			return err
		}
	}
	return a.printLine(all, trustAll(ctx, o, all), "%strusted in this repository, with just this content",
		map[bool]string{true: proposalsText(all)}[yes])
}

// confirmTrust shows the proposals and asks the user whether to trust them.
func confirmTrust(ctx context.Context, a *App, all []proposal) error {
	fmt.Fprintf(a.Stderr, "This repository brings settings that run commands with your rights, choose\n"+
		"where work lands, or cost money. They count only if you trust them.\n\n%s\n", proposalsText(all))
	return confirm(ctx, a, "trust it", "muster trust --yes")
}

// trustAll notes that the user trusts what was shown. What has changed since is not trusted.
func trustAll(ctx context.Context, o opened, all []proposal) error {
	return o.workspace.Trust().Change(ctx, func(t *trust.Settings) {
		for _, p := range all {
			t.Trust(p.Key(), p.Text)
		}
	})
}

func listTrusted(a *App, o opened) error {
	trusted, err := o.workspace.Trust().Get()
	if err != nil {
		return err
	}
	all := []proposal{}
	for _, name := range slices.Sorted(maps.Keys(trusted.Trusted)) {
		all = append(all, proposal{Item: trust.Item{Name: name, Text: trusted.Trusted[name].Text}})
	}
	for _, server := range trusted.Servers {
		all = append(all, proposal{Item: trust.Item{Name: "server", Text: server}})
	}
	if len(all) == 0 {
		return a.printLine(all, nil, "nothing in this repository is trusted")
	}
	t := view.Table{Titles: []string{"NAME", "CONTENT"}, Wide: 1}
	for _, x := range all {
		t.Row(x.Name, text.OneLine(x.Text))
	}
	return a.print(all, t.Draw)
}

// repositoryItems returns what the repository brings that counts only when the user trusts it, trusted or not. Of the
// settings and of git's drivers it returns only what is not trusted.
func repositoryItems(
	ctx context.Context, a *App, w *workspace.Workspace, settings config.Settings, values []config.Value,
	which func(config.Withheld) bool,
) (all []trust.Item, err error) {
	for _, v := range values {
		if v.Withheld != nil && v.Withheld.NeedsTrust && which(*v.Withheld) {
			all = append(all, trust.Item{Name: v.Name, File: config.File, Text: v.Withheld.Value})
		}
	}
	for _, source := range []func() ([]trust.Item, error){
		func() ([]trust.Item, error) { return w.Trust().DriverItems(ctx) },
		func() ([]trust.Item, error) { return w.Trust().LocalFileItems(ctx) },
		func() ([]trust.Item, error) { return repositoryRoleItems(a, w.Root()), nil },
		func() ([]trust.Item, error) { _, items, err := findMCPServers(a, w, settings); return items, err },
		func() ([]trust.Item, error) { all, err := w.Trust().Hooks(""); return hooks.Items(all), err },
	} {
		items, err := source()
		if err != nil {
			return nil, err
		}
		all = append(all, items...)
	}
	return all, nil
}

// proposals returns the items that the user does not trust, and the settings under the given flags. Of the withheld
// settings it returns those that which wants.
func proposals(
	ctx context.Context, a *App, w *workspace.Workspace, flags map[string]string, which func(config.Withheld) bool,
) ([]proposal, []config.Value, error) {
	settings, values, errSettings := w.Settings(flags)
	trusted, errTrusted := w.Trust().Get()
	if err := cmp.Or(errSettings, errTrusted); err != nil {
		return nil, nil, err
	}
	items, err := repositoryItems(ctx, a, w, settings, values, which)
	all := []proposal{}
	for _, item := range items {
		if trusted.TrustsItem(item) {
			continue
		}
		p := proposal{Item: item}
		if was, ok := trusted.Trusted[item.Key()]; ok {
			p.Trusted = &was.Text
		}
		all = append(all, p)
	}
	return all, values, err
}

// proposalsText shows proposals: each value whole, and beside a value that was trusted before what has changed.
func proposalsText(all []proposal) string {
	var b strings.Builder
	for _, p := range all {
		verb := "sets"
		if p.Trusted != nil {
			verb = "has changed"
		}
		fmt.Fprintf(&b, "%s %s %s:\n", text.OneLine(p.File), verb, text.OneLine(p.Name))
		for _, line := range changedLines(p) {
			fmt.Fprintf(&b, "  %s\n", line)
		}
		for line := range strings.Lines(p.Now) {
			fmt.Fprintf(&b, "  now: %s\n", text.OneLine(line))
		}
	}
	return b.String()
}

// changedLines returns the lines of a value. Of one that was trusted with another content, the lines that are new begin
// with a plus sign, and those that are gone with a minus sign.
func changedLines(p proposal) (lines []string) {
	split := func(content string) []string {
		return strings.Split(strings.TrimRight(text.Clean(content), "\n"), "\n")
	}
	is := split(p.Text)
	if p.Trusted == nil {
		return is
	}
	was := split(*p.Trusted)
	// The lines at the beginning and at the end that are the same stand once.
	head, tail := editdist.CommonEnds(was, is)
	add := func(mark string, some []string) {
		for _, line := range some {
			lines = append(lines, mark+line)
		}
	}
	add("  ", is[:head])
	add("- ", was[head:len(was)-tail])
	add("+ ", is[head:len(is)-tail])
	add("  ", is[len(is)-tail:])
	return lines
}

// offerTrust asks the user at a terminal, once for each content, whether to trust what would count in a run. It says
// what is left out, and which settings muster no longer has. A run that goes on keeps its own check, set-up and target,
// so of these nothing is said then.
func offerTrust(ctx context.Context, a *App, o opened, flags map[string]string, goesOn bool) error {
	all, values, err := proposals(ctx, a, o.workspace, flags,
		func(w config.Withheld) bool { return !w.IsOverridden && (!goesOn || !w.StopsRuns) })
	if err != nil {
		return err
	}
	for _, line := range removedLines(values) {
		explain(a.Stderr, line, "")
	}
	if len(all) > 0 && a.terminalIn() != nil && !a.json {
		if isTrusted, err := askTrust(ctx, a, o, all); err != nil || isTrusted {
			return err
		}
	}
	if !goesOn && checkTrusted(values) != nil {
		return nil // the run is refused, and muster trust shows the rest too
	}
	for _, line := range withheldLines(all, values) {
		explain(a.Stderr, line, "")
	}
	return nil
}

// askTrust asks whether to trust the proposals, unless the user was asked about just these before.
func askTrust(ctx context.Context, a *App, o opened, all []proposal) (isTrusted bool, err error) {
	contents := map[string]string{}
	for _, p := range all {
		contents[p.Key()] = p.Text
	}
	if trusted, err := o.workspace.Trust().Get(); err != nil || trusted.HasDeclined(contents) {
		return false, err
	}
	err = confirmTrust(ctx, a, all)
	if errors.Is(err, errDeclined) {
		return false, o.workspace.Trust().Change(ctx, func(t *trust.Settings) { t.Decline(contents) })
	}
	if err != nil {
		return false, err
	}
	return true, trustAll(ctx, o, all)
}

// checkTrusted refuses a run that would be another one than the repository's file means: one that is not checked, or
// lands elsewhere. Flags and variables that set the same are stronger than the file.
func checkTrusted(values []config.Value) error {
	var names []string
	for _, v := range values {
		if w := v.Withheld; w != nil && w.StopsRuns && !w.IsOverridden {
			names = append(names, v.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	does := "which runs with your rights or chooses where work lands, and you have not trusted it"
	if len(names) > 1 {
		does = "which run with your rights or choose where work lands, and you have not trusted them"
	}
	flags := view.Join(names, " ", func(name string) string {
		return map[string]string{"check": "--check COMMAND", "checks": "--check COMMAND", "setup": "--setup COMMAND",
			"land": "--land BRANCH"}[name]
	})
	return muster.Errorf(muster.Invalid, "%s sets %s, %s", config.File, strings.Join(names, " and "), does).
		WithHint("look at it, and trust it:  muster trust\nor say it yourself:        %s", flags)
}

// removedLines returns a line for each setting that is set and that muster no longer has.
func removedLines(values []config.Value) (lines []string) {
	for _, v := range values {
		if v.Removed != "" {
			lines = append(lines, fmt.Sprintf("the setting %s (%s) does nothing: it was removed in %s",
				v.Name, v.Source, v.Removed))
		}
	}
	return lines
}

// withheldLines returns a line for each file of which something does not count because the user does not trust it, and
// one for each value that a repository may only lower.
func withheldLines(all []proposal, values []config.Value) (lines []string) {
	byFile := map[string][]proposal{}
	var files []string
	for _, p := range all {
		if byFile[p.File] == nil {
			files = append(files, p.File)
		}
		byFile[p.File] = append(byFile[p.File], p)
	}
	for _, file := range files {
		does, it, most := "does", "it", 120
		if len(byFile[file]) > 1 {
			does, it, most = "do", "them", 30
		}
		sets := view.Join(byFile[file], ", ", func(p proposal) string { return settingText(p.Name, p.Text, most) })
		lines = append(lines, fmt.Sprintf("%s sets %s, which %s not count: you have not trusted %s (muster trust)",
			text.OneLine(file), sets, does, it))
	}
	for _, v := range values {
		if w := v.Withheld; w != nil && !w.IsOverridden && !w.NeedsTrust {
			lines = append(lines, fmt.Sprintf("%s sets %s, which does not count: a repository may only lower it",
				config.File, settingText(v.Name, w.Value, 120)))
		}
	}
	return lines
}

// settingText returns what a file sets, with the value if that has at most so many bytes in one line.
func settingText(name, value string, most int) string {
	if name = text.OneLine(name); len(value) > most || strings.Contains(value, "\n") {
		return name
	}
	return name + " to " + text.OneLine(value)
}
