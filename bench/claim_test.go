//go:build linux

package bench

import (
	"fmt"
	"sync"
	"testing"
	"time"
)

// BenchmarkClaimCommand is `muster task claim ID` by 8 processes at once on a board of 5,000 tasks.
func BenchmarkClaimCommand(b *testing.B) {
	const workers, each, tasks = 8, 40, 5_000
	w := newWorld(b, 1)
	w.board(tasks)
	id := 0
	var rates samples
	for range rounds {
		var all sync.WaitGroup
		errs := make(chan error, workers*each)
		start := time.Now()
		for n := range workers {
			first := id + n*each
			all.Go(func() {
				for i := range each {
					c := w.command(muster, "task", "claim", fmt.Sprint(first+i+1), "--as", fmt.Sprintf("w%d", n))
					if out, err := c.CombinedOutput(); err != nil {
						errs <- fmt.Errorf("%w: %s", err, out)
					}
				}
			})
		}
		all.Wait()
		rates.add(workers * each / time.Since(start).Seconds())
		if len(errs) > 0 {
			b.Fatal(<-errs)
		}
		id += workers * each
	}
	report(b, "rate", figure{what: "claim by command, 8 processes, 5,000 tasks", unit: "a second", ours: rates.median(), limit: 100, more: true,
		beside: w.starts(), is: "`muster version` instead"})
}

// starts is how often in a second 8 processes at once start and end without doing anything.
func (w *world) starts() float64 {
	const workers, each = 8, 40
	var all sync.WaitGroup
	start := time.Now()
	for range workers {
		all.Go(func() {
			for range each {
				_ = w.command(muster, "version").Run()
			}
		})
	}
	all.Wait()
	return workers * each / time.Since(start).Seconds()
}
