package file

import (
	"cmp"
	"os"
	"sync"
	"sync/atomic"

	"muster/internal/durable"
)

// fileNames lists a directory in no order. On the real file system it makes no object of each entry, because a first
// look at a large table would take noticeably longer.
func fileNames(on durable.FS, dir string) ([]string, error) {
	if _, ok := on.(durable.OS); ok {
		d, err := os.Open(dir)
		if err != nil {
			return nil, err
		}
		defer func() { _ = d.Close() }()
		return d.Readdirnames(-1)
	}
	entries, err := on.ReadDir(dir)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}

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
