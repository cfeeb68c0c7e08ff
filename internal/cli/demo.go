package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"muster"
	"muster/team"
)

// demo returns muster demo, which does a job of its own in a repository of its own. It is the same program at work,
// with a scripted model, so that a new user sees real landings without a key.
func (r runCommands) demo() *cobra.Command {
	var keep string
	var isPlayed bool
	c := &cobra.Command{Use: "demo", Short: "a real team on a throw-away repository; needs no key and no network",
		Args: namedArgs(), Long: "Only the model's words are scripted: git, tools, tests and landings are real."}
	c.Flags().StringVar(&keep, "keep", "", "make the repository in `DIR`, an empty or new directory, and keep it")
	_ = c.MarkFlagDirname("keep") // it exists
	c.Flags().BoolVar(&isPlayed, "play", false, "decide about a plan yourself, by a key, and undo a task at the end")
	c.RunE = func(c *cobra.Command, _ []string) error {
		if isPlayed && !r.canTakeKeys() {
			return &usageError{c.CommandPath(), "--play needs a terminal"}
		}
		dir, err := r.demoDir(keep)
		if err != nil {
			return err
		}
		if keep == "" {
			// The directory goes even after an interruption, so an error of the demo leaves nothing behind.
			defer func() { _ = os.RemoveAll(dir) }()
		}
		if !r.json {
			fmt.Fprintf(r.Stderr, "muster demo: a lead and three teammates on a throw-away repository\n"+
				"the model's words are scripted; git, tools, tests and landing are real\n"+
				"(a real model: muster run --model ...)\nbefore the first demo Go compiles its standard library\n\n")
		}
		job, err := r.Demo(c.Context(), dir, isPlayed)
		if err != nil {
			return err
		}
		job.demoDir, job.isTemporary = dir, keep == ""
		// The flags of this command must not choose the directory of the demo again.
		there := *r.App // the same program, started in the demo's repository
		there.Dir, there.dir = dir, ""
		// The user's rules, hooks and budgets are for their own work: no one could answer a question of theirs here.
		there.otherConfigHome = filepath.Join(dir, ".git", "no-settings")
		if keep == "" { // what is remembered of the repository goes with it, and needs no home directory
			there.Env = append(slices.Clip(r.Env), "XDG_STATE_HOME="+filepath.Join(dir, ".git", "state"))
		}
		o, err := there.open(c.Context())
		if err != nil {
			return err
		}
		defer o.close()
		if keep == "" {
			defer func() { _ = team.ForgetChecks(o.Team) }() // muster clean lists what is left
		}
		if isPlayed {
			fmt.Fprint(r.Stderr, "alice asks for approval of a plan. The lead does not answer, so after ten\n"+
				"seconds it is shown to you: y approves it, n rejects it, v shows all of it.\n\n")
		}
		err = runCommands{&there}.perform(c.Context(), o, job)
		if err != nil || !isPlayed {
			return err
		}
		return there.playUndo(c.Context())
	}
	return c
}

// playUndo offers to undo the last task of the demo, by one key.
func (a *App) playUndo(ctx context.Context) error {
	fmt.Fprint(a.Stdout, "\nu  undo task 7, as muster undo 7 does    any other key  end the demo\n")
	if key, err := readKey(ctx, a.terminalIn()); err != nil || key != 'u' {
		return nil //nolint:nilerr // Ctrl-C is another key.
	}
	fmt.Fprint(a.Stdout, "\ntakes task 7 back and tests the rest ...\n")
	shape := a.screen(a.Stdout)
	printed, ok := a.within(ctx, a.Dir, &shape, []string{"undo", "7"})
	fmt.Fprint(a.Stdout, printed)
	if !ok {
		return exitStatus(1)
	}
	return nil
}

// demoDir returns an empty directory for the demo. A directory that the user names must be empty, because nothing
// of the user's may be overwritten.
func (r runCommands) demoDir(keep string) (string, error) {
	if keep == "" {
		return os.MkdirTemp("", "muster-demo-")
	}
	// The path is taken against -C, as each path of the command line is.
	if !filepath.IsAbs(keep) {
		keep = filepath.Join(r.workDir(), keep)
	}
	if err := os.MkdirAll(keep, 0o755); err != nil {
		return "", muster.Errorf(muster.Invalid, "the directory %s cannot be made: %w", keep, err)
	}
	// MkdirAll succeeds for a directory that exists, so whether it is empty is looked at afterwards.
	entries, err := os.ReadDir(keep)
	if err == nil && len(entries) > 0 {
		return "", muster.Errorf(muster.Invalid, "%s is not empty", keep).
			WithHint("name a new directory: muster demo --keep DIR")
	}
	return keep, err
}
