// Package proc starts programs in such a way that to stop one stops everything it started.
//
// On Linux a program that calls GuardMain first thing in main gets a guard: itself, run again as a small process that
// adopts whatever its descendants orphan (a subreaper). The guard starts every tool, and kills all that descends from
// it when told to, when the tool's main process ends, or when the program itself dies, by kill -9 too. Nothing a tool
// does short of becoming another user's process takes it out of the guard's reach: not setsid, not forking twice, not
// ignoring signals, not an empty environment. Read serve_linux.go for how.
//
// Programs that did not call GuardMain, and other systems, get the weaker thing: a process group each (a job object on
// Windows), killed as a whole. There a child that leaves its group survives unless the sweep finds it (Linux only, by
// ancestry, session and environment), and on Unix nothing is killed when the program itself is killed with -9.
//
// Everything is killed with SIGKILL and never asked first: who cancels a tool wants its effects to end now, and a
// grace period is a time in which it goes on writing.
package proc

import (
	"context"
	"io"
	"time"
)

// Spec says what to start.
type Spec struct {
	Argv []string // Argv[0] without a slash is looked up in Env's PATH
	Dir  string
	Env  []string // the whole environment; nothing is inherited. The tag of the call is added to it

	// Stdin is what the program reads; nil is an empty input. An *os.File is handed over as it is.
	Stdin io.Reader
	// Out gets stdout and stderr as they come, from one goroutine; nil discards them. An *os.File is handed over as it
	// is. When Out fails, the pipe is closed and Wait returns the error.
	Out io.Writer
}

// Launcher starts programs. It is safe for concurrent use.
type Launcher interface {
	// Start starts a program in a session of its own, without a terminal. The end of ctx kills its whole tree. Errors:
	// NotFound when there is no such program or directory, Invalid when it cannot be run, Unavailable when nothing can
	// be started here; the cause of ctx when it is over.
	Start(ctx context.Context, s Spec) (Process, error)
	// Close kills everything that was started and is not over. Start fails afterwards.
	Close() error
}

// Process is a program that was started, together with all that descends from it.
type Process interface {
	// Wait returns when the program has ended and its tree is dead: the exit status, 128+N after signal N. The error is
	// nil, or the cause of the ctx whose end killed it, or what made its output or outcome unknown. It may be called by
	// several goroutines and any number of times.
	Wait() (exit int, err error)
	// Kill kills the tree. It does not wait: Wait does. Killing what is over is no error.
	Kill() error
	// PID is the process id of the program itself.
	PID() int
}

// linger is how long output may still arrive after the tree was killed.
const linger = 2 * time.Second

// CallVar is the environment variable that tags everything a tool starts; its value differs for each call.
const CallVar = "MUSTER_CALL"

// New returns a launcher: with a guard where GuardMain was called in this process and the system has them, else with
// process groups. ctx bounds only the starting of the guard. Close it.
func New(ctx context.Context) (Launcher, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	if guardable() {
		return newGuard()
	}
	return newGroups(), nil
}
