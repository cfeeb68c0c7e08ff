package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"muster"
	"muster/internal/config"
	"muster/internal/detect"
	"muster/internal/durable"
	"muster/internal/localfiles"
	"muster/internal/text"
	"muster/internal/trust"
	"muster/team"
)

// initCommand is muster init, which proposes settings for a repository.
type initCommand struct {
	*App
	yes, isPrint, noTry bool
}

// initResult is what muster init --json prints.
type initResult struct {
	Proposal detect.Proposal  `json:"proposal"`
	Settings string           `json:"settings"`        // the proposed muster.yaml
	Exists   bool             `json:"exists"`          // there is one already, which is left as it is
	Trial    *team.CheckTrial `json:"trial,omitempty"` // nil: nothing was tried
	Written  bool             `json:"written"`
	// LocalFiles are the lines of the proposed .worktreeinclude; none where there is one already.
	LocalFiles []string `json:"local_files,omitempty"`
}

func newInitCommand(a *App) *cobra.Command {
	i := &initCommand{App: a}
	c := &cobra.Command{Use: "init", Args: namedArgs(),
		Short: "propose set-up and check for this repository, and try them"}
	c.Long = "It looks at the files of HEAD, proposes a muster.yaml, tries set-up and check once in a clean\n" +
		"checkout as a landing does, and writes the file when you say so. What it tries are commands of this\n" +
		"repository, with your rights: it asks before. A muster.yaml that is there is never changed."
	f := c.Flags()
	f.BoolVar(&i.yes, "yes", false, "do not ask: try it, and write the file unless set-up or check cannot run")
	f.BoolVar(&i.isPrint, "print", false, "only print the file, and run nothing")
	f.BoolVar(&i.noTry, "no-try", false, "do not try it")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if i.yes && i.isPrint {
			return &usageError{c.CommandPath(), "--yes and --print exclude each other"}
		}
		o, err := a.open(c.Context())
		if err != nil {
			return err
		}
		defer o.close()
		return i.run(c.Context(), o)
	}
	return c
}

// run proposes, tries and writes, each as far as the user wants it.
func (i *initCommand) run(ctx context.Context, o opened) error {
	// An agent must not have commands of the repository run outside of its own limits, nor trust them.
	if err := o.workspace.CheckOutsideTools(ctx); err != nil {
		return err
	}
	p, err := team.SetupOf(o.Team).Propose(ctx)
	if err != nil {
		return err
	}
	local, err := team.SetupOf(o.Team).LocalFiles(ctx)
	if err != nil {
		return err
	}
	r := initResult{Proposal: p, Settings: p.Settings(), LocalFiles: local}
	path := filepath.Join(o.Root(), config.File)
	if _, err := os.Lstat(path); err == nil {
		r.Exists = true
	} else if !errors.Is(err, fs.ErrNotExist) {
		return muster.Errorf(muster.Unavailable, "%s cannot be looked for: %w", config.File, err)
	}
	if !i.json {
		fmt.Fprintln(i.Stdout, strings.TrimRight(text.Clean(r.Settings), "\n"))
	}
	if len(local) > 0 && !i.json {
		explain(i.Stderr, "git ignores files that work may need, so lanes and checks do not have them",
			fmt.Sprintf("name them in %s, and they are copied when you have trusted that (muster trust):\n%s",
				localfiles.Name, text.Clean(strings.Join(local, "\n"))))
	}
	canAsk := i.terminalIn() != nil && !i.json
	switch {
	case r.Exists:
		explain(i.Stderr, config.File+" is there already and is left as it is: above is what one would be like",
			"")
		return i.result(r)
	case i.isPrint:
		return i.result(r)
	case !i.yes && !canAsk:
		explain(i.Stderr, "nothing was tried, and nothing was written",
			"muster init --yes tries it, and writes "+config.File)
		return i.result(r)
	}
	if err := i.try(ctx, o, &r); err != nil {
		return err
	}
	if !i.yes {
		question := "write " + config.File + ", and trust what is in it"
		if len(local) > 0 {
			question = "write " + config.File + " and " + localfiles.Name + ", and trust what is in them"
		}
		if err := confirm(ctx, i.App, question, "muster init --yes"); err != nil {
			return err
		}
	} else if r.Trial != nil && r.Trial.CannotRun {
		explain(i.Stderr, "nothing was written: what is proposed does not work here",
			"muster init --print > "+config.File+", and change it, or: muster init --yes --no-try")
		return errors.Join(i.result(r), exitStatus(exitError))
	}
	return i.write(ctx, o, path, &r)
}

// result prints the result for programs. People have read it already.
func (i *initCommand) result(r initResult) error {
	if !i.json {
		return nil
	}
	return i.print(r, nil)
}

// try runs what is proposed, unless the user does not want that.
func (i *initCommand) try(ctx context.Context, o opened, r *initResult) error {
	settings, _, err := o.workspace.Settings(nil)
	if err != nil {
		return err
	}
	setup, check := r.Proposal.SetupCommand(), r.Proposal.CheckCommand()
	if i.noTry || setup == "" && check == "" {
		return nil
	}
	if !i.yes {
		switch err := confirm(ctx, i.App, "\nrun this once now, in a clean checkout of HEAD", ""); {
		case errors.Is(err, errDeclined):
			return nil
		case err != nil:
			return err
		}
	}
	tried := settings.Run
	tried.Setup, tried.Check, tried.Checks = setup, check, r.Proposal.NamedChecks()
	fmt.Fprintf(i.Stderr, "trying it in a clean checkout of HEAD ...\n")
	t, err := team.OpenIn(o.workspace, team.Config{ //nolint:contextcheck // OpenIn starts nothing.
		Settings: tried, Secrets: secretValues(i.App),
		Environ: i.Env, Home: i.env("HOME"), UserDir: userDir(i.App), CacheDir: cacheDir(i.App), Log: i.logger(),
		Sandbox: team.Sandbox(settings.Sandbox), Resources: resources(settings)})
	if err != nil {
		return err
	}
	trial, err := team.SetupOf(t).Try(ctx)
	if err != nil {
		return err
	}
	r.Trial = &trial
	fmt.Fprint(i.Stderr, trialText(trial))
	for _, line := range trial.Advisory {
		fmt.Fprintln(i.Stderr, "advisory, and red: "+text.OneLine(line))
	}
	return nil
}

func trialText(t team.CheckTrial) string {
	said := fmt.Sprintf("%.7s: %s after %.1f s", t.Commit, text.OneLine(t.How), t.Seconds)
	switch {
	case t.Green && len(t.RanNone) > 0:
		return fmt.Sprintf("set-up and check end well at %.7s, after %.1f s, but no test was run: %s\n"+
			"A check that runs no test lets everything land: name one that does.\n", t.Commit, t.Seconds,
			text.OneLine(strings.Join(t.RanNone, "; ")))
	case t.Green && t.Command == "":
		return fmt.Sprintf("ok: set-up works at %.7s, after %.1f s\n", t.Commit, t.Seconds)
	case t.Green:
		return fmt.Sprintf("ok: set-up and check are green at %.7s, after %.1f s\n", t.Commit, t.Seconds)
	case t.CannotRun:
		said = "it does not work at " + said
	default:
		said = "the check is red at " + said + ", before any work is done: landings with a red check are accepted\n" +
			"until one turns it green"
	}
	return said + "\n" + strings.TrimRight(text.Clean(t.Output), "\n") + "\n"
}

// write writes the file and notes that the user trusts it: who has just read a file and asked for it has seen what is
// in it. Only the values that were shown are trusted, whatever is written to the file meanwhile.
func (i *initCommand) write(ctx context.Context, o opened, path string, r *initResult) error {
	if err := createFile(o, path, r.Settings); err != nil {
		return err
	}
	local := trust.Item{}
	if len(r.LocalFiles) > 0 {
		local = localfiles.ItemOf(strings.Join(r.LocalFiles, "\n") + "\n")
		if err := createFile(o, filepath.Join(o.Root(), localfiles.Name), local.Text); err != nil {
			return err
		}
	}
	r.Written = true
	err := o.workspace.Trust().Change(ctx, func(t *trust.Settings) {
		shown := map[string]string{"setup": r.Proposal.SetupCommand(), "check": r.Proposal.CheckCommand()}
		if checks := config.Checks(r.Proposal.NamedChecks()); len(checks) > 0 {
			shown["check"], shown["checks"] = "", checks.String()
		}
		if local.Text != "" {
			t.Trust(local.Key(), local.Text)
		}
		for name, text := range shown {
			if item := (trust.Item{Name: name, File: config.File, Text: text}); text != "" {
				t.Trust(item.Key(), item.Text)
			}
		}
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(i.Stderr, "%s is written, and trusted with just this content. Commit it, so that others have it too.\n",
		config.File)
	return i.result(*r)
}

// createFile writes a file that is not there yet.
func createFile(o opened, path, content string) error {
	f, err := durable.OpenBelow(o.Root(), path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err == nil {
		_, err = f.WriteString(content)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return muster.Errorf(muster.Unavailable, "%s cannot be written: %w", filepath.Base(path), err)
	}
	return nil
}
