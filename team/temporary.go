package team

import (
	"context"
	"sync"

	"muster/internal/proc"
	"muster/internal/worktree"
)

// temporaryLauncher gives the programs that it starts a directory of this process for their temporary files, which goes
// with the process: a compiler that is killed leaves its files there. A next start removes the directory of a process
// that was killed. The directory is made when the first program starts.
type temporaryLauncher struct {
	proc.Launcher
	dirs *worktree.CheckDirs
	warn func(error)

	once   sync.Once
	dir    string // "" when none could be made: programs then use the system's
	remove func()
}

// Start starts a program with TMPDIR set to the directory.
func (l *temporaryLauncher) Start(ctx context.Context, s proc.Spec) (proc.Process, error) {
	l.once.Do(func() {
		var err error
		if l.dir, l.remove, err = l.dirs.CreateTemporary(); err != nil {
			l.warn(err)
		}
	})
	if l.dir != "" {
		s.Env = proc.WithVariables(s.Env, "TMPDIR="+l.dir)
	}
	return l.Launcher.Start(ctx, s)
}

// removeDir removes the directory. Every program that was started has ended.
func (l *temporaryLauncher) removeDir() {
	l.once.Do(func() {}) // from now on none is made
	if l.remove != nil {
		l.remove()
	}
}
