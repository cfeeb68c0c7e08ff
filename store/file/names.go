package file

import (
	"cmp"
	"sync"
	"sync/atomic"
)

// byKey orders documents by key; numbers are ordered by their value.
func byKey(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }

// parallelFrom is from how many files on they are read in parallel.
const parallelFrom = 64

// parallelReaders is how many goroutines read files. It exceeds the number of processors, because a disk serves many
// requests at once.
const parallelReaders = 8

// inParallel calls f for 0 to n-1, from several goroutines if n is large.
func inParallel(n int, f func(i int)) {
	var next atomic.Int64
	work := func() {
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			f(i)
		}
	}
	if n < parallelFrom {
		work()
		return
	}
	var all sync.WaitGroup
	for range parallelReaders {
		all.Go(work)
	}
	all.Wait()
}
