package proc

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// Limits say how much of the machine a program and all that it starts may use; 0 is no limit. They hold where there is
// a guard.
//
// A program that reaches one is killed with all that it has started, but for the size of a file, beyond which nothing
// can be written. Control groups of the kernel keep the first two where this process may make some (internal/cgroup),
// so that the limit is never passed. Elsewhere the guard counts.
type Limits struct {
	Processes int64 // at once, threads among them in a control group
	Memory    int64 // bytes
	FileSize  int64 // bytes of a file that they write
	// FreeDisk is how many bytes stay free on the disk with their directory: when it falls below, the program that has
	// written most to it is killed.
	FreeDisk int64
}

// Limit returns a launcher whose programs have limits, unless their Spec says others.
func Limit(l Launcher, x Limits) Launcher { return &limited{l, x} }

// limited is a launcher with limits.
type limited struct {
	Launcher
	limits Limits
}

// Start starts a program with limits.
func (l *limited) Start(ctx context.Context, s Spec) (Process, error) {
	if s.Limits == (Limits{}) {
		s.Limits = l.limits
	}
	return l.Launcher.Start(ctx, s)
}

// The limits that a program can have reached, as the guard names them.
const (
	reachedProcesses = "processes"
	reachedMemory    = "memory"
	reachedDisk      = "disk"
)

// tellReached tells whoever reads the output of a program which limits it has reached. Most programs say nothing that
// would explain it.
func tellReached(out io.Writer, l Limits, reached string) {
	if out == nil {
		return
	}
	for _, name := range strings.Fields(reached) {
		text := map[string]string{
			reachedProcesses: fmt.Sprintf("it has reached its limit of %d processes (setting resources.processes)",
				l.Processes),
			reachedMemory: fmt.Sprintf("it has reached its limit of %d MB of memory (setting resources.memory)",
				l.Memory>>20),
			reachedDisk: fmt.Sprintf("it was killed, because less than %d MB is free on the disk (setting "+
				"resources.free_disk): remove what is not needed", l.FreeDisk>>20),
		}[name]
		_, _ = fmt.Fprintf(out, "[%s]\n", text)
	}
}
