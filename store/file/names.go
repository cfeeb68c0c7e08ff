package file

import (
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"muster/internal/durable"
)

// namesByFS lists a directory through the interface.
func namesByFS(on durable.FS, dir string) ([]string, error) {
	entries, err := on.ReadDir(dir)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}

// stampsByFS is stamps through the interface.
func stampsByFS(on durable.FS, dir string, n int, name func(i int) string) []stamp {
	all := make([]stamp, n)
	for i := range all {
		if fi, err := on.Stat(filepath.Join(dir, name(i))); err == nil {
			all[i] = stampOf(fi).settled(time.Now())
		}
	}
	return all
}

// parallelFrom is from how many files on they are read in parallel.
const parallelFrom = 64

// parallelReaders is how many goroutines read files. It exceeds the number of processors, because a disk serves many
// requests at once.
const parallelReaders = 8

// inParallel calls f for 0 to n-1, from several goroutines if n is large.
func inParallel(n int, f func(i int)) {
	const batch = 16
	if n < parallelFrom {
		for i := range n {
			f(i)
		}
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range parallelReaders {
		wg.Go(func() {
			for to := int(next.Add(batch)); to-batch < n; to = int(next.Add(batch)) {
				for i := to - batch; i < min(to, n); i++ {
					f(i)
				}
			}
		})
	}
	wg.Wait()
}
