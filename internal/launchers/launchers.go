// Package launchers adds to a launcher of programs what surrounds each program of a team: the log and the secrets that
// are hidden in its output, what it has missed (checkout.go), a directory for temporary files with the ports of a lane,
// and the hooks of the agents' git.
// What confines programs is in package confined.
package launchers

import (
	"cmp"
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"muster/internal/git"
	"muster/internal/proc"
	"muster/internal/redact"
	"muster/internal/worktree"
)

// WithTemporaryDir returns a launcher for commands of members and for hooks. They have a lower priority than checks. In
// a lane they have its ports and its directory for temporary files. Elsewhere they have one of this process, which goes
// with the process: a compiler that is killed leaves its files there. A next start removes the directory of a process
// that was killed. The directory is made when the first program starts; warn gets the error when that fails, and
// programs then use the system's. Call removeDir when every program that it has started has ended.
func WithTemporaryDir(l proc.Launcher, lanes *worktree.Lanes, warn func(error)) (_ proc.Launcher, removeDir func()) {
	var once sync.Once
	var dir string
	var remove func()
	start := func(ctx context.Context, s proc.Spec) (proc.Process, error) {
		once.Do(func() {
			var err error
			if dir, remove, err = lanes.CheckDirs.Create(); err != nil {
				warn(err)
			}
		})
		if dir != "" {
			s.Env = proc.WithVariables(s.Env, "TMPDIR="+dir)
		}
		if s.Env != nil {
			s.Env = proc.WithVariables(s.Env, worktree.Environ(ctx, lanes, s.Dir, s.Env)...)
		}
		p, err := l.Start(ctx, s)
		if err == nil {
			// The commands of members wait for a model most of the time, and a check is what all of them wait for.
			proc.LowerPriority(p.PID())
		}
		return p, err
	}
	return proc.Through(l, start), func() {
		once.Do(func() {}) // from now on none is made
		if remove != nil {
			remove()
		}
	}
}

// WithHooks returns a launcher for the commands of agents: their git has hooks that refuse to move refs which are not
// theirs. The hooks are written when the first command starts; hooks returns nil where they cannot be.
func WithHooks(l proc.Launcher, hooks func() *git.AgentHooks) proc.Launcher {
	return proc.Through(l, func(ctx context.Context, s proc.Spec) (proc.Process, error) {
		if h := hooks(); h != nil && s.Env != nil {
			s.Env = h.Env(s.Env, s.Dir)
		}
		return l.Start(ctx, s)
	})
}

// Logged returns a launcher that logs each program that it starts and how it ended. Of its arguments it logs the
// program only: the others are a model's words. It hides secrets in what the program prints, so that neither a result
// nor a file has them.
func Logged(l proc.Launcher, log *slog.Logger, secrets *redact.Secrets) proc.Launcher {
	return proc.Through(l, func(ctx context.Context, s proc.Spec) (proc.Process, error) {
		began, argv0 := time.Now(), ""
		if len(s.Argv) > 0 {
			argv0 = filepath.Base(s.Argv[0])
		}
		flush := func() error { return nil }
		if s.Out != nil && secrets != nil {
			out := secrets.Writer(s.Out)
			s.Out, flush = out, out.Flush
		}
		p, err := l.Start(ctx, s)
		if err != nil {
			log.Warn("process not started", "argv0", argv0, "dir", s.Dir, "err", err)
			return p, err
		}
		return proc.Then(p, func(exit int, err error) (int, error) {
			err = cmp.Or(err, flush()) // the output is whole when Wait returns: what was held back follows
			cause := ""
			if err != nil {
				cause = err.Error()
			}
			log.Debug("process ended", "argv0", argv0, "dir", s.Dir, "process", p.PID(), "exit", exit,
				"seconds", time.Since(began).Seconds(), "err", cause)
			return exit, err
		}), nil
	})
}
