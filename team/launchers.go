package team

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
	"muster/internal/sandbox"
	"muster/internal/worktree"
)

// setLaunchers sets how checks and hooks start, and returns what starts the commands of members. All are logged, and what
// they print has no keys. A hook and a member's command have a temporary directory of its lane or of this process, and
// removeDirs removes the latter; a check has one of its own. A member's command and a check are confined by m, unless it
// is nil, and the git of members has hooks.
func (s *site) setLaunchers(
	ctx context.Context, launcher proc.Launcher, m sandbox.Method,
) (members proc.Launcher, removeDirs func(), err error) {
	logged := loggedLauncher{s.config.Resources.limit(launcher), s.log, s.secrets}
	members, checks, err := s.confine(ctx, logged, m)
	if err != nil {
		return nil, func() {}, err
	}
	s.workspace.SetLauncher(checks)
	forHooks, removeHooksDir := s.withTemporaryDir(ctx, logged)
	members, removeToolsDir := s.withTemporaryDir(ctx, members)
	foreign := forHooks
	if !s.config.Sandbox.OpenHooks {
		foreign = members
	}
	s.hooks.Start(forHooks, foreign, s.workspace.Journal())
	return s.hookAgents(ctx, members), func() {
		removeHooksDir()
		removeToolsDir()
	}, nil
}

// withTemporaryDir returns the launcher whose programs have a temporary directory, and the function that removes it.
func (s *site) withTemporaryDir(ctx context.Context, l proc.Launcher) (_ proc.Launcher, removeDir func()) {
	lanes, ok := s.lanes.(*worktree.Lanes)
	if !ok {
		return l, func() {}
	}
	t := &temporaryLauncher{Launcher: l, lanes: lanes,
		warn: func(err error) { logDropped(ctx, s.log, "making a temporary directory", err) }}
	return t, t.removeDir
}

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

// removeDir removes the directory. Every program that was started has ended.
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

// hookAgents makes the launcher of the run's checks one for agents.
func (s *site) hookAgents(ctx context.Context, l proc.Launcher) proc.Launcher {
	r, ok := s.repository.(gitRepository)
	if !ok {
		return l
	}
	return hookedLauncher{l, sync.OnceValue(func() *git.AgentHooks {
		dir := filepath.Join(".team", "githooks")
		hooks, err := git.NewAgentHooks(r.Repo, dir, s.workspace.Paths().Scratch(), s.target())
		logDropped(ctx, s.log, "writing the hooks of the agents' git", err)
		return hooks
	})}
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
		l.log.Debug("process ended", "argv0", argv0, "dir", s.Dir, "process", p.PID(), "exit", exit,
			"seconds", time.Since(began).Seconds(), "err", causeText(err))
		return exit, err
	}), nil
}
