// Package proc starts programs, and stops them with everything that they have started. Every program that muster runs
// on behalf of agents and users goes through a Launcher; only internal/git starts git itself.
//
// New returns one of two launchers:
//
//   - Guard (guard_linux.go) is for a program on Linux that calls GuardMain first thing in main. It starts that program
//     once more as a small process, a subreaper, which the kernel makes the parent of whatever its descendants orphan.
//     That guard (serve_linux.go) starts every tool. It kills all that descends from a tool when it is told to, when
//     the tool's main process ends, and when the program itself dies, by kill -9 too. Only a change of user takes a
//     process out of its reach: not setsid, not forking twice, not ignored signals, not an empty environment. When the
//     guard dies, each call kills what its tool has left and ends with an error, and the next Start starts a new guard.
//   - groups (groups.go) is for everything else: a process group for each program, or a job object on Windows, which is
//     killed as a whole. There a child that leaves its group survives unless the sweep finds it (Linux only, by
//     ancestry, session and environment), and on Unix nothing is killed when muster itself is killed with -9.
//
// The package keeps these invariants:
//
//   - When Wait returns, the whole tree of the program is dead, or its death was tried until a time limit.
//   - Everything is killed with SIGKILL and never asked first: whoever cancels a tool wants its effects to end now, and
//     during a grace period it would go on writing.
//   - A process is killed only while its number cannot be another's: before it is reaped, or after it was stopped.
//
// What a command is allowed to do is not decided here, but what it sees of the user's environment (environ.go) and of
// this process's own (hide_linux.go).
package proc

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
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
	// is. When Out fails, the pipe is closed, what does not end by that is killed, and Wait returns the error.
	Out io.Writer
	// Err gets stderr in place of Out; nil: Out gets both.
	Err *os.File

	Limits Limits // of the machine that it may use

	// Extra is open in the program as descriptor 3; nil is none. The caller closes it after Start.
	Extra *os.File
	// HasNamespace says that the program puts what it starts into a PID namespace of its own, and that this ends with
	// the program.
	HasNamespace bool

	// Ruleset is the Landlock ruleset that the program is put under, a file of package landlock; nil is none. It goes
	// without Extra. Only a Guard can: another launcher starts nothing that has one. The caller closes it after Start.
	Ruleset *os.File
	// Writable are the directories below which a program under a ruleset may change the mode, the owner and the dates
	// of files.
	Writable []string
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

// Through returns l with another way to start programs.
func Through(l Launcher, start func(context.Context, Spec) (Process, error)) Launcher {
	return &through{l, start}
}

type through struct {
	Launcher
	start func(context.Context, Spec) (Process, error)
}

func (t *through) Start(ctx context.Context, s Spec) (Process, error) { return t.start(ctx, s) }

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

// outputTimeout is how long output may still arrive after the tree was killed.
const outputTimeout = 2 * time.Second

// brokenPipeGrace is how long a program may go on when its output is not taken any more.
const brokenPipeGrace = time.Second

// CallVar is the environment variable that tags everything that a tool starts. Its value differs for each call.
const CallVar = "MUSTER_CALL"

// New returns a launcher: with a guard where GuardMain was called in this process and the system has subreapers, else
// with process groups. ctx limits only the start of the guard. The caller closes the launcher.
func New(ctx context.Context) (Launcher, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return newLauncher()
}

// Shell returns the arguments that run a command line through the POSIX shell. Checks, setup commands and commands in
// lanes go through it: no other place names a shell.
func Shell(command string) []string { return []string{shellProgram("sh"), "-c", command} }

// Bash is Shell through bash, and through sh where there is no bash. It is for the tool that models know as bash.
func Bash(command string) []string {
	if program := shellProgram("bash"); isInPath(program) {
		return []string{program, "-c", command}
	}
	return Shell(command)
}

// shellProgram returns the program of a shell: its name, which is looked up in the PATH of the command. Where Windows
// has none there, it is the one that Git for Windows brings: git.exe lies in its directory cmd or bin, and the shells
// beside that in bin.
func shellProgram(name string) string {
	if runtime.GOOS != "windows" || isInPath(name) {
		return name
	}
	git, err := exec.LookPath("git")
	program := filepath.Join(filepath.Dir(filepath.Dir(git)), "bin", name+".exe")
	if err != nil || !isInPath(program) {
		return name
	}
	return program
}

// isInPath reports whether this process would find the program.
func isInPath(program string) bool {
	_, err := exec.LookPath(program)
	return err == nil
}
