package confined

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

// temporaryLauncher starts the commands of members. They have a lower priority than checks. In a lane they have its
// ports and its directory for temporary files. Elsewhere they have one of this process, which goes with the process: a
// compiler that is killed leaves its files there. A next start removes the directory of a process that was killed. The
// directory is made when the first program starts.
type temporaryLauncher struct {
	proc.Launcher
	lanes *worktree.Lanes
	warn  func(error)

	once   sync.Once
	dir    string // "" when none could be made: programs then use the system's
	remove func()
}

// Start starts a program with TMPDIR set to the directory.
func (l *temporaryLauncher) Start(ctx context.Context, s proc.Spec) (proc.Process, error) {
	l.once.Do(func() {
		var err error
		if l.dir, l.remove, err = l.lanes.CheckDirs.CreateTemporary(); err != nil {
			l.warn(err)
		}
	})
	if l.dir != "" {
		s.Env = proc.WithVariables(s.Env, "TMPDIR="+l.dir)
	}
	if s.Env != nil {
		s.Env = proc.WithVariables(s.Env, worktree.Environ(ctx, l.lanes, s.Dir, s.Env)...)
	}
	p, err := l.Launcher.Start(ctx, s)
	if err == nil {
		// The commands of members wait for a model most of the time, and a check is what all of them wait for.
		proc.LowerPriority(p.PID())
	}
	return p, err
}

// WithTemporaryDir returns a launcher for commands of members and for hooks. Call removeDir when every program that it
// has started has ended: it removes the directory of this process. warn gets the error when none can be made.
func WithTemporaryDir(l proc.Launcher, lanes *worktree.Lanes, warn func(error)) (_ proc.Launcher, removeDir func()) {
	t := &temporaryLauncher{Launcher: l, lanes: lanes, warn: warn}
	return t, t.removeDir
}

func (l *temporaryLauncher) removeDir() {
	l.once.Do(func() {}) // from now on none is made
	if l.remove != nil {
		l.remove()
	}
}

// hookedLauncher starts the commands of agents: their git has hooks that refuse to move refs which are not theirs. The
// hooks are written when the first command starts.
type hookedLauncher struct {
	proc.Launcher
	hooks func() *git.AgentHooks // nil where they cannot be written
}

// WithHooks returns a launcher for the commands of agents.
func WithHooks(l proc.Launcher, hooks func() *git.AgentHooks) proc.Launcher {
	return hookedLauncher{l, hooks}
}

// Start starts a program with the hooks.
func (l hookedLauncher) Start(ctx context.Context, s proc.Spec) (proc.Process, error) {
	if h := l.hooks(); h != nil && s.Env != nil {
		s.Env = h.Env(s.Env, s.Dir)
	}
	return l.Launcher.Start(ctx, s)
}

// loggedLauncher logs each program that is started and how it ended. Of its arguments it logs the program only: the
// others are a model's words. It hides secrets in what the program prints, so that neither a result nor a file has
// them.
type loggedLauncher struct {
	proc.Launcher
	log     *slog.Logger
	secrets *redact.Secrets
}

// Logged returns a launcher that logs what it starts, and hides secrets in what that prints.
func Logged(l proc.Launcher, log *slog.Logger, secrets *redact.Secrets) proc.Launcher {
	return loggedLauncher{l, log, secrets}
}

// Start starts a program and logs its end when that comes.
func (l loggedLauncher) Start(ctx context.Context, s proc.Spec) (proc.Process, error) {
	began, argv0 := time.Now(), ""
	if len(s.Argv) > 0 {
		argv0 = filepath.Base(s.Argv[0])
	}
	var out *redact.Writer
	if s.Out != nil && l.secrets != nil {
		out = l.secrets.Writer(s.Out)
		s.Out = out
	}
	p, err := l.Launcher.Start(ctx, s)
	if err != nil {
		l.log.Warn("process not started", "argv0", argv0, "dir", s.Dir, "err", err)
	}
	if err == nil && out != nil {
		// The output is whole when Wait returns: what was held back follows.
		p = proc.Then(p, func(exit int, err error) (int, error) { return exit, cmp.Or(err, out.Flush()) })
	}
	if err != nil || !l.log.Enabled(ctx, slog.LevelDebug) {
		return p, err
	}
	// Several goroutines may wait for the same process, and its end is one line.
	return proc.Then(p, func(exit int, err error) (int, error) {
		cause := ""
		if err != nil {
			cause = err.Error()
		}
		l.log.Debug("process ended", "argv0", argv0, "dir", s.Dir, "process", p.PID(), "exit", exit,
			"seconds", time.Since(began).Seconds(), "err", cause)
		return exit, err
	}), nil
}
