package check

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"muster/internal/durable"
	"muster/internal/localfiles"
	"muster/internal/setup"
)

// setUp sets the checkout up: with the kept result for the commit's files if there is one, else by the command. The key
// of a result has the user's environment and not this checkout's, in which paths are its own.
func (x *run) setUp(ctx context.Context) (res Result, err error) {
	command := x.options.Check.Setup
	o, err := x.options.Setups.Prepare(ctx, setup.Job{Dir: x.spec.Dir, Commit: x.commit, Command: command,
		Patterns: x.options.SetupFiles, Environ: x.options.Environ, Launch: x.options.Launch,
		Local: x.options.Local.Hash(),
		Run: func(ctx context.Context) (ok bool, err error) {
			written, err := x.options.Local.Put(x.spec.Dir)
			if err != nil {
				fmt.Fprintf(x.log, "[files of %s are missing here: %v]\n", localfiles.Name, err)
			}
			res, err = x.runCommand(ctx, x.spec, command, x.options.Check.Timeout, x.log, x.launchSetup)
			// They are the user's, and not what the set-up has made and what is kept.
			return res.Green, cmp.Or(err, localfiles.Remove(x.spec.Dir, written))
		}})
	switch {
	case err != nil:
		return res, err
	case o.Reused:
		fmt.Fprintf(x.log, "$ %s\n[the kept result for these files was put here in %.1f s]\n",
			x.options.Secrets.String(command), o.Seconds)
		res = Result{Green: true, Command: command, How: "exit 0", Seconds: o.Seconds}
	case o.Note != "":
		fmt.Fprintf(x.log, "[%s]\n", o.Note)
	}
	return res, nil
}

// fillSubmodules fills the submodules of the checkout with what the user has of them.
func (x *run) fillSubmodules(ctx context.Context) error {
	if durable.IsMissing(filepath.Join(x.spec.Dir, ".gitmodules")) {
		return nil
	}
	launcher, err := x.options.Launch()
	if err != nil {
		return err
	}
	spec := x.spec
	spec.Env = makeHonest(spec.Env, x.checkouts, spec.Dir).env
	empty, err := setup.FillSubmodules(ctx, launcher, x.options.Repo, spec, filepath.Join(spec.Dir, ".git"))
	if len(empty) > 0 {
		fmt.Fprintf(x.log, "[submodules that are empty here, because your checkout does not have them: %s]\n",
			strings.Join(empty, ", "))
	}
	return err
}
