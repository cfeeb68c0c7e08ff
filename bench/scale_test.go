//go:build linux

package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	root "muster"
	"muster/internal/board"
)

// large is the board of these benchmarks.
const large = 100_000

// forget drops the contents of the files in some directories from the page cache.
func (w *world) forget(dirs ...string) {
	w.tb.Helper()
	unix.Sync() // what is not on the disk yet cannot be dropped
	for _, dir := range dirs {
		for _, e := range need(os.ReadDir(filepath.Join(w.root, dir)))(w.tb) {
			f := need(os.Open(filepath.Join(w.root, dir, e.Name())))(w.tb)
			must(w.tb, unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED))
			f.Close()
		}
	}
}

// BenchmarkOpen is the first look of a process at a board of 100,000 tasks, and a whole short command on it.
func BenchmarkOpen(b *testing.B) {
	w := newWorld(b, 1)
	w.board(large)
	must(b, os.MkdirAll(filepath.Join(w.root, ".team"), 0o700))
	open := func(brd bool) float64 {
		runtime.GC()
		start := time.Now()
		s, j := w.open()
		defer s.Close()
		if brd {
			if all := need(board.New(s, j).Ready(b.Context(), "", false)); len(all(b)) != large {
				b.Fatal("not all tasks are ready")
			}
			return ms(time.Since(start))
		}
		n := 0
		for _, err := range s.Table(root.TableTasks).Changes(b.Context(), 0) {
			must(b, err)
			n++
		}
		if n != large {
			b.Fatalf("the table has %d documents", n)
		}
		return ms(time.Since(start))
	}
	cache := filepath.Join(w.root, ".team", "cache")
	var without, cold, warm, table samples
	for range 3 {
		must(b, os.RemoveAll(cache))
		w.forget(".tasks")
		without.add(open(true))
		w.forget(".tasks", filepath.Join(".team", "cache"))
		cold.add(open(true))
		warm.add(open(true))
		table.add(open(false))
	}
	report(b, "cold", figure{what: "open a board of 100,000 tasks, page cache cold", unit: "ms", ours: cold.median(), limit: 3000,
		beside: without.median(), is: "without a snapshot, which it then writes"})
	report(b, "warm", figure{what: "... page cache warm", unit: "ms", ours: warm.median(), beside: table.median(), is: "the documents alone, not decoded"})

	for _, name := range []string{"status", "task list --json"} {
		took, peak := w.watched(strings.Fields(name)...)
		report(b, strings.Fields(name)[0], figure{what: "`muster " + name + "`, 100,000 tasks", unit: "ms", ours: took})
		report(b, strings.Fields(name)[0]+"-memory", figure{what: "... its peak memory, `" + name + "`", unit: "MB", ours: peak, limit: 200})
	}
}

// watched runs the program and returns how long it took, in ms, and the most memory that it had, in MB. What the system
// reports of a child that has ended counts the memory of this process, too.
func (w *world) watched(args ...string) (took, peak float64) {
	w.tb.Helper()
	c := w.command(muster, args...)
	start := time.Now()
	must(w.tb, c.Start())
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	for tick := time.NewTicker(2 * time.Millisecond); ; {
		select {
		case err := <-done:
			must(w.tb, err)
			tick.Stop()
			return ms(time.Since(start)), peak
		case <-tick.C:
			peak = max(peak, memory(c.Process.Pid, "VmHWM"))
		}
	}
}

// roles gives all but so many tasks of the world's board to a role that nobody asks for.
func (w *world) roles(all, open int) {
	w.tb.Helper()
	s, _ := w.open()
	defer s.Close()
	for id := open + 1; id <= all; id++ {
		data := need(root.Encode(root.Task{ID: root.TaskID(id), Subject: fmt.Sprintf("task number %d", id), Status: root.Pending, ClaimRole: "other",
			Description: strings.Repeat("What is wanted, in some words. ", 10), CreatedBy: root.User}))(w.tb)
		must(w.tb, os.WriteFile(filepath.Join(w.root, ".tasks", fmt.Sprintf("task_%d.json", id)), data, 0o600))
	}
}

// BenchmarkWarm is what a process does that knows its board: on 100,000 tasks by turns with 100, as many of them ready.
func BenchmarkWarm(b *testing.B) {
	const few, times = 100, 60
	ctx := b.Context()
	type side struct {
		board                *board.Board
		claim, list, release samples
	}
	sides := map[int]*side{few: {}, large: {}}
	for n, x := range sides {
		w := newWorld(b, 1)
		w.board(few)
		w.roles(n, few)
		unix.Sync()
		s, j := w.open()
		x.board = board.New(s, j)
		x.board.Watch(ctx)
		if n := len(need(x.board.Ready(ctx, "coder", false))(b)); n != few {
			b.Fatalf("%d tasks are ready", n)
		}
	}
	runtime.GC()
	for i := range times {
		for _, x := range sides {
			start := time.Now()
			t, ok, err := x.board.ClaimNext(ctx, board.Claim{Owner: root.Name(fmt.Sprintf("w%d", i)), Role: "coder"})
			if err != nil || !ok {
				b.Fatal(ok, err)
			}
			x.claim.took(start)
			start = time.Now()
			need(x.board.Ready(ctx, "coder", false))(b)
			x.list.took(start)
			start = time.Now()
			need(x.board.Complete(ctx, t.ID, t.Fence, board.Outcome{By: t.Owner, Result: "done"}))(b)
			x.release.took(start)
		}
	}
	for _, f := range []struct {
		name string
		of   func(*side) samples
	}{{"claim", func(x *side) samples { return x.claim }}, {"list-ready", func(x *side) samples { return x.list }},
		{"complete", func(x *side) samples { return x.release }}} {
		less := f.of(sides[few]).median()
		report(b, f.name, figure{what: f.name + " in a warm process, 100,000 tasks", unit: "ms", ours: f.of(sides[large]).median(), limit: 2 * less,
			beside: less, is: "100 tasks"})
	}
}
