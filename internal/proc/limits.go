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
	Processes int64 // at once, with their threads
	Memory    int64 // bytes
	FileSize  int64 // bytes of a file that they write
	// FreeDisk is how many bytes stay free on the disk with their directory: when it falls below, or fewer than one
	// file in leastFiles can still be made, the program that has written most to it is killed.
	FreeDisk int64
}

// leastFiles is how many files a disk may have for each that stays free.
const leastFiles = 50

// String returns the numbers of the limits, as they go to the guard.
func (l Limits) String() string {
	return fmt.Sprint(l.Processes, l.Memory, l.FileSize, l.FreeDisk)
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
			reachedDisk: fmt.Sprintf("it was killed, because less than %d MB, or one file in %d, is free on the disk "+
				"(setting resources.free_disk): remove what is not needed", l.FreeDisk>>20, leastFiles),
		}[name]
		_, _ = fmt.Fprintf(out, "[%s]\n", text)
	}
}
