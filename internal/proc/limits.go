package proc

import "context"

// Limits say how much of the machine a program and all that it starts may use; 0 is no limit. They hold where there is
// a guard.
//
// A program that reaches one is killed with all that it has started, but for the size of a file, beyond which nothing
// can be written. Control groups keep the first two where this process may make some (internal/cgroup). Elsewhere the
// guard counts.
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

// Limit returns a launcher whose programs have limits, unless their Spec says others.
func Limit(l Launcher, x Limits) Launcher {
	return Through(l, func(ctx context.Context, s Spec) (Process, error) {
		if s.Limits == (Limits{}) {
			s.Limits = x
		}
		return l.Start(ctx, s)
	})
}
