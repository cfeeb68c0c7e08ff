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
	"muster/internal/trust"
	"muster/internal/view"
	"muster/internal/workspace"
)

// proposal is a content that the repository brings and that counts only when the user trusts it.
type proposal struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	// Trusted is what the user has trusted under this name before; nil: nothing.
	Trusted *string `json:"trusted,omitempty"`
}

// newTrustCommand returns muster trust, with which the user decides what of the repository's own settings counts.
func newTrustCommand(a *App) *cobra.Command {
	var yes, list, revoke bool
	c := &cobra.Command{Use: "trust", Args: namedArgs(),
		Short: "let count what this repository's own settings run, and where they let work land"}
	c.Long = "A check, a set-up command, a branch to land on and the like in the repository's muster.yaml do not\n" +
		"count until you have seen them here, and nor do the filters of its git config. A change of one of them\n" +
		"is shown again. Servers, scripts and keys are never taken from a repository: they come from flags, the\n" +
		"environment and your own config.yaml."
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
	_, values, err := o.workspace.Settings(nil)
	if err != nil {
		return err
	}
	// What a variable overrides here is shown too: the next command may have another environment.
	all, err := proposals(ctx, o, values, func(config.Withheld) bool { return true })
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
			t.Trust(p.Name, p.Value)
		}
	})
}

// listTrusted prints what the user trusts in this repository, and the servers that the user has named here.
func listTrusted(a *App, o opened) error {
	trusted, err := o.workspace.Trust().Get()
	if err != nil {
		return err
	}
	all := []proposal{}
	for _, name := range slices.Sorted(maps.Keys(trusted.Trusted)) {
		all = append(all, proposal{Name: name, Value: trusted.Trusted[name].Text})
	}
	for _, server := range trusted.Servers {
		all = append(all, proposal{Name: "server", Value: server})
	}
	if len(all) == 0 {
		return a.printLine(all, nil, "nothing in this repository is trusted")
	}
	t := view.Table{Titles: []string{"NAME", "CONTENT"}, Wide: 1}
	for _, x := range all {
		t.Row(x.Name, view.OneLine(x.Value))
	}
	return a.print(all, t.Draw)
}

// proposals returns the withheld values that need trust and that which wants, and git's drivers of the repository's
// config, each with what the user has trusted in its place before.
func proposals(
	ctx context.Context, o opened, values []config.Value, which func(config.Withheld) bool,
) ([]proposal, error) {
	trusted, errTrusted := o.workspace.Trust().Get()
	drivers, errDrivers := o.workspace.Trust().UntrustedDrivers(ctx)
	if err := cmp.Or(errTrusted, errDrivers); err != nil {
		return nil, err
	}
	all := []proposal{}
	add := func(name, value string) {
		p := proposal{Name: name, Value: value}
		if was, ok := trusted.Trusted[name]; ok {
			p.Trusted = &was.Text
		}
		all = append(all, p)
	}
	for _, v := range values {
		if v.Withheld != nil && v.Withheld.NeedsTrust && which(*v.Withheld) {
			add(v.Name, v.Withheld.Value)
		}
	}
	if drivers != "" {
		add(workspace.Drivers, drivers)
	}
	return all, nil
}

// proposalsText shows proposals: each value whole, and beside a value that was trusted before what has changed.
func proposalsText(all []proposal) string {
	var b strings.Builder
	for _, p := range all {
		file, verb := config.File, "sets"
		if p.Name == workspace.Drivers {
			file = "the repository's git config"
		}
		if p.Trusted != nil {
			verb = "has changed"
		}
		fmt.Fprintf(&b, "%s %s %s:\n", file, verb, p.Name)
		for _, line := range changedLines(p) {
			fmt.Fprintf(&b, "  %s\n", line)
		}
	}
	return b.String()
}

// changedLines returns the lines of a value. Of one that was trusted with another content, the lines that are new begin
// with a plus sign, and those that are gone with a minus sign.
func changedLines(p proposal) (lines []string) {
	split := func(text string) []string { return strings.Split(strings.TrimRight(view.ManyLines(text), "\n"), "\n") }
	is := split(p.Value)
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
// what is left out. A run that goes on keeps its own check, set-up and target, so of these nothing is said then.
func offerTrust(ctx context.Context, a *App, o opened, flags map[string]string, goesOn bool) error {
	_, values, err := o.workspace.Settings(flags)
	if err != nil {
		return err
	}
	all, err := proposals(ctx, o, values,
		func(w config.Withheld) bool { return !w.IsOverridden && (!goesOn || !w.StopsRuns) })
	if err != nil {
		return err
	}
	if len(all) > 0 && a.terminalIn() != nil && !a.json {
		if isTrusted, err := askTrust(ctx, a, o, all); err != nil || isTrusted {
			return err
		}
	}
	if !goesOn && checkTrusted(values) != nil {
		return nil // the run is refused, and muster trust shows the rest too
	}
	for _, line := range withheldLines(values, false) {
		explain(a.Stderr, line, "")
	}
	if n := len(all); n > 0 && all[n-1].Name == workspace.Drivers {
		explain(a.Stderr, "the repository's git config sets filters or merge drivers, which do not run: "+
			"you have not trusted them (muster trust)", "")
	}
	return nil
}

// askTrust asks whether to trust the proposals, unless the user was asked about just these before.
func askTrust(ctx context.Context, a *App, o opened, all []proposal) (isTrusted bool, err error) {
	contents := map[string]string{}
	for _, p := range all {
		contents[p.Name] = p.Value
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
		return map[string]string{"check": "--check COMMAND", "setup": "--setup COMMAND", "land": "--land BRANCH"}[name]
	})
	return muster.Errorf(muster.Invalid, "%s sets %s, %s", config.File, strings.Join(names, " and "), does).
		WithHint("look at it, and let it count:  muster trust\nor say it yourself:            %s", flags)
}

// withheldLines returns a line for each value that does not count. Those that no run begins without are an error of the
// run, and are left out unless all is set.
func withheldLines(values []config.Value, all bool) (lines []string) {
	for _, v := range values {
		w := v.Withheld
		if w == nil || w.IsOverridden || w.StopsRuns && !all {
			continue
		}
		why := "a repository may only lower it"
		if w.NeedsTrust {
			why = "you have not trusted it (muster trust)"
		}
		lines = append(lines, fmt.Sprintf("%s sets %s to %s, which does not count: %s", config.File, v.Name,
			view.Cut(view.OneLine(w.Value), 120), why))
	}
	return lines
}
