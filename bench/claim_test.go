//go:build linux

package bench

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
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
	var rates, single samples
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
		start = time.Now()
		id++
		w.muster("task", "claim", fmt.Sprint(id), "--as", "one")
		single.took(start)
	}
	report(b, "rate", figure{what: "claim by command, 8 processes, 5,000 tasks", unit: "a second", ours: rates.median(), limit: 100, more: true,
		beside: w.starts(), is: "`muster version` instead"})
	small := newWorld(b, 1)
	small.board(10)
	var few samples
	for i := range 10 {
		start := time.Now()
		small.muster("task", "claim", fmt.Sprint(i+1), "--as", "one")
		few.took(start)
	}
	report(b, "one", figure{what: "claim by command, one process, 5,000 tasks", unit: "ms", ours: single.median(), beside: few.median(), is: "10 tasks"})
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

// BenchmarkClaimOpens counts the files that `muster task claim ID` opens in the repository. Were there an index to open,
// or the board to read, it would be more of them on a larger board.
func BenchmarkClaimOpens(b *testing.B) {
	const tasks, few = 5_000, 10
	opens := map[int]float64{}
	for _, n := range []int{few, tasks} {
		w := newWorld(b, 1)
		w.board(n)
		w.muster("task", "claim", "1", "--as", "one") // makes what the first claim of all makes
		paths, err := w.opened(muster, "task", "claim", "7", "--as", "one")
		if err != nil {
			b.Fatalf("%v: whether a claim opens an index is seen with strace (Debian: apt-get install strace), which needs the right to trace", err)
		}
		for _, path := range paths {
			b.Log(path)
		}
		opens[n] = float64(len(paths))
	}
	report(b, "files", figure{what: "files and directories that `muster task claim ID` opens, 5,000 tasks", unit: "opens", ours: opens[tasks],
		limit: opens[few], beside: opens[few], is: "10 tasks"})
}

// opened runs a program and returns the paths below the repository that it has opened, in their order.
func (w *world) opened(name string, args ...string) (paths []string, err error) {
	w.tb.Helper()
	trace := filepath.Join(w.base, "trace")
	c := w.command("strace", append([]string{"-f", "-y", "-q", "-e", "trace=open,openat,openat2", "-o", trace, name}, args...)...)
	if out, err := c.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("strace: %w: %s", err, out)
	}
	// "PID openat(AT_FDCWD</dir>, "name", FLAGS) = FD</path of what was opened>"
	for line := range bytes.Lines(need(os.ReadFile(trace))(w.tb)) {
		_, result, _ := bytes.Cut(line, []byte(") = "))
		_, path, found := bytes.Cut(bytes.TrimSpace(result), []byte("<"))
		if path, below := bytes.CutPrefix(path, []byte(w.root+"/")); found && below {
			paths = append(paths, string(bytes.TrimSuffix(path, []byte(">"))))
		}
	}
	return paths, nil
}
