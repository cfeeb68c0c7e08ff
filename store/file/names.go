package file

import (
	"path/filepath"
	"sync"
	"sync/atomic"

	"muster/internal/durable"
)

// namesOf lists a directory through the interface.
func namesOf(on durable.FS, dir string) ([]string, error) {
	entries, err := on.ReadDir(dir)
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, err
}

// stampsOf is stamps through the interface.
func stampsOf(on durable.FS, dir string, n int, name func(i int) string) []stamp {
	all := make([]stamp, n)
	for i := range all {
		if fi, err := on.Stat(filepath.Join(dir, name(i))); err == nil {
			all[i] = stampOf(fi)
		}
	}
	return all
}

// many is how many files are worth looking at side by side.
const many = 64

// hands is how many goroutines look at files: more than there are processors, for a disk serves many at once.
const hands = 8

// sideBySide calls f for 0 to n-1, in several goroutines when there are many.
func sideBySide(n int, f func(i int)) {
	const batch = 16
	if n < many {
		for i := range n {
			f(i)
		}
		return
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range hands {
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
