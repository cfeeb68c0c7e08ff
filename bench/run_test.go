//go:build linux

package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"muster/internal/testing/wait"
)

// run is what one run of a program cost.
type run struct {
	first float64 // ms from its start to its first request
	gaps  samples // ms from the end of a reply to the next request
	gap   float64 // their median
	cpu   float64 // seconds, with all its children
	peak  float64 // MB, until its end
	guard float64 // MB that the child that lives as long as it does has for itself; 0 without one
	size  float64 // KB of the first request
}

func (w *world) measure(s *server, turns int, program string, args ...string) (r run) {
	w.tb.Helper()
	s.forget()
	c := w.command(program, args...)
	c.Env = append(c.Env, s.env()...)
	log := need(os.CreateTemp(w.tb.TempDir(), ""))(w.tb)
	defer log.Close()
	c.Stdout, c.Stderr = log, log
	// Asked of the living process: the usage that the system tells afterwards counts the memory of whoever started it.
	pid, peaks := make(chan int, 1), make(chan [2]float64, 1)
	s.mu.Lock()
	s.onEach = func(_ string, n int) {
		if n == turns {
			watch := watchPeaks(<-pid) // it waits for this reply
			go func() { peaks <- watch() }()
		}
	}
	s.mu.Unlock()
	start := time.Now()
	must(w.tb, c.Start())
	pid <- c.Process.Pid
	if err := c.Wait(); err != nil {
		text, _ := os.ReadFile(log.Name())
		w.tb.Fatalf("%s: %v\n%s", strings.Join(c.Args, " "), err, text)
	}
	all := s.visits("lead")
	if len(all) != turns+1 {
		w.tb.Fatalf("%s asked %d times, not %d", program, len(all), turns+1)
	}
	for i, v := range all[1:] {
		r.gaps.add(ms(v.came.Sub(all[i].left)))
	}
	r.first, r.gap, r.size = ms(all[0].came.Sub(start)), r.gaps.median(), float64(all[0].bytes)/1024
	r.cpu = (c.ProcessState.UserTime() + c.ProcessState.SystemTime()).Seconds()
	peak := <-peaks
	r.peak, r.guard = peak[0], peak[1]
	return r
}

// BenchmarkRun is a whole run of 50 turns of one `true` each, with nobody but the lead. muster and the
// bare program take turns, each time in a new repository.
func BenchmarkRun(b *testing.B) {
	const n = 50
	s := serve(b, turns(n))
	var ours, theirs []run
	for range rounds {
		ours = append(ours, newWorld(b, 1).measure(s, n, muster, "run", "--teammates", "0", "call true"))
		theirs = append(theirs, newWorld(b, 1).measure(s, n, bare, "call true"))
	}
	median := func(all []run, of func(run) float64) float64 {
		var s samples
		for _, r := range all {
			s.add(of(r))
		}
		return s.median()
	}
	for _, f := range []struct {
		name, what, unit string
		limit            float64
		of               func(run) float64
	}{
		{"first", "start to first request", "ms", 60, func(r run) float64 { return r.first }},
		{"gap", "reply ends to next request leaves, transcript synced", "ms", 5, func(r run) float64 { return r.gap }},
		{"cpu", "CPU for the run, with all that it starts", "s", 0.5, func(r run) float64 { return r.cpu }},
		{"peak", "peak memory, and the guard process's own", "MB", 40, func(r run) float64 { return r.peak + r.guard }},
		{"guard", "... of it the guard process's own", "MB", 0, func(r run) float64 { return r.guard }},
		{"lead", "first request of the lead", "KB", 16, func(r run) float64 { return r.size }},
	} {
		report(b, f.name, figure{what: f.what, unit: f.unit, ours: median(ours, f.of), limit: f.limit, beside: median(theirs, f.of), is: "bare"})
	}
}

// BenchmarkConfined is the gap of BenchmarkRun where commands are confined. Each reply takes 30 ms, as no model is
// faster: what muster makes ahead for the next command is made meanwhile.
func BenchmarkConfined(b *testing.B) {
	const n = 50
	s := serve(b, turns(n))
	s.pause = 30 * time.Millisecond
	none := b.TempDir() // a bwrap that works nowhere
	must(b, os.WriteFile(filepath.Join(none, "bwrap"), []byte("#!/bin/sh\nexit 1\n"), 0o755))
	for _, method := range []struct{ name, path string }{{"bubblewrap", ""}, {"Landlock", none + ":"}} {
		var ours, theirs samples
		for range rounds {
			w := newWorld(b, 1)
			w.env = append(w.env, "MUSTER_SANDBOX_ENABLED=true", "PATH="+method.path+os.Getenv("PATH"))
			ours.add(w.measure(s, n, muster, "run", "--teammates", "0", "call true").gap)
			theirs.add(newWorld(b, 1).measure(s, n, bare, "call true").gap)
		}
		report(b, method.name, figure{what: "the same with " + method.name + ", after replies of 30 ms", unit: "ms",
			ours: ours.median(), limit: 8, beside: theirs.median(), is: "bare"})
	}
}

// watchPeaks looks at a process that waits for a reply, and at the child that it has. The function that it returns looks at
// them until the process ends, and returns the peak of the one, and the most that the other had for itself, in MB.
func watchPeaks(pid int) (watch func() [2]float64) {
	guard := children(pid)
	var peaks [2]float64
	look := func(withGuard bool) bool {
		m := memory(pid, "VmHWM")
		peaks[0] = max(peaks[0], m)
		if m > 0 && withGuard && len(guard) > 0 {
			peaks[1] = max(peaks[1], private(guard[0]))
		}
		return m > 0
	}
	look(true)
	return func() [2]float64 {
		for n := 1; look(n%10 == 0); n++ { // the guard seldom: it makes the system walk through all pages
			wait.Elapse(time.Millisecond)
		}
		return peaks
	}
}

func children(pid int) (pids []int) {
	var data []byte
	entries, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, e := range entries {
		more, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, e.Name()))
		data = append(append(data, ' '), more...)
	}
	for _, f := range strings.Fields(string(data)) {
		if n, err := strconv.Atoi(f); err == nil {
			pids = append(pids, n)
		}
	}
	return pids
}

func memory(pid int, field string) float64 { return megabytes(pid, "status", field) }

// private is the memory of a process that no other one maps, in MB.
func private(pid int) float64 {
	return megabytes(pid, "smaps_rollup", "Private_Clean", "Private_Dirty", "Private_Hugetlb")
}

func megabytes(pid int, file string, fields ...string) (sum float64) {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(line, ":")
		if slices.Contains(fields, name) {
			kb, _ := strconv.ParseFloat(strings.Fields(value)[0], 64)
			sum += kb / 1024
		}
	}
	return sum
}
