package team

import "muster/internal/proc"

// Resources say how much of the machine a program and all that it starts may use; 0 is no limit. A program that reaches
// a limit is told so at the end of its output, and whoever reads that knows which setting it was.
//
// They hold on Linux, in a program that calls Guard. Control groups keep the first two where this user may make some;
// elsewhere the processes are counted, and the program is killed.
type Resources struct {
	Processes int64 // at once, with their threads
	Memory    int64 // bytes
	FileSize  int64 // bytes of each file that is written
	// FreeDisk is how many bytes stay free on the disk of a lane: the program that has written most is killed before.
	FreeDisk int64
}

// The library limits nothing by itself: a program that embeds a team knows what else its machine has to do. The
// defaults of the command are in internal/config.

func (r Resources) limit(l proc.Launcher) proc.Launcher { return proc.Limit(l, proc.Limits(r)) }
