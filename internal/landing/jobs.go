package landing

import (
	"runtime"

	"muster/internal/proc"
)

// What one check is taken to need: a build uses several cores, and some memory for each.
const (
	coresPerCheck  = 4
	memoryPerCheck = 4 << 30
	maxJobs        = 2 // the halves of a red stack
)

// DefaultJobs returns how many checks may run at once on this machine: two if it has eight cores and eight gigabytes of
// memory, and one otherwise.
func DefaultJobs() int { return defaultJobs(runtime.NumCPU(), uint64(proc.MachineMemory())) }

// defaultJobs is DefaultJobs of a machine. A memory of 0 is unknown, and then the cores decide.
func defaultJobs(cores int, memory uint64) int {
	jobs := min(cores/coresPerCheck, maxJobs)
	if memory > 0 {
		jobs = min(jobs, int(memory/memoryPerCheck))
	}
	return max(1, jobs)
}

// checksAtOnce returns how many of several named checks may run at once, in all jobs together. A linter, or the tests
// of one part of a project, need less than a whole build, so there are more of them than jobs: four also where there
// are fewer cores, unless the memory is small.
func checksAtOnce(cores int, memory uint64) int {
	most := max(4, cores)
	if memory > 0 {
		most = min(most, max(2, int(memory/(1<<30))))
	}
	return most
}
