//go:build linux

package bench

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestTable has a table replaced where it stands, and left as it is by a run of some benchmarks only.
func TestTable(t *testing.T) {
	old := table
	t.Cleanup(func() { table = old })
	file := filepath.Join(t.TempDir(), "README.md")
	must(t, os.WriteFile(file, []byte("before\n"+tableBegins+"yesterday's\n"+tableEnds+"after\n"), 0o644))
	text := func() string { return string(need(os.ReadFile(file))(t)) }

	table = []figure{{of: order[0], what: "start", unit: "ms", ours: 30, limit: 60}}
	if err := writeTable(file); err == nil || !strings.Contains(text(), "yesterday's") {
		t.Errorf("a table of one benchmark was written over that of all: %v\n%s", err, text())
	}
	table = nil
	for i := len(order) - 1; i >= 0; i-- {
		table = append(table, figure{of: order[i], what: order[i], unit: "ms", ours: 61.2, limit: 60, beside: 3, is: "bare"})
	}
	must(t, writeTable(file))
	got := text()
	if !strings.HasPrefix(got, "before\n"+tableBegins) || !strings.HasSuffix(got, tableEnds+"after\n") || strings.Contains(got, "yesterday's") {
		t.Errorf("the table was not replaced where it stands:\n%s", got)
	}
	if want := "| BenchmarkRun | 61.2 ms | at most 60 ms | **no** | 3 ms (bare) |\n| BenchmarkTeammates |"; !strings.Contains(got, want) {
		t.Errorf("no %q in\n%s", want, got)
	}
}

// TestOrder has every benchmark in the table.
func TestOrder(t *testing.T) {
	var found []string
	for _, file := range need(filepath.Glob("*_test.go"))(t) {
		for _, m := range regexp.MustCompile(`(?m)^func (Benchmark\w+)`).FindAllSubmatch(need(os.ReadFile(file))(t), -1) {
			found = append(found, string(m[1]))
		}
	}
	slices.Sort(found)
	if want := slices.Sorted(slices.Values(order)); !slices.Equal(found, want) {
		t.Errorf("there are\n%v, the table's order has\n%v", found, want)
	}
}

// TestHarness runs muster and the bare program against the stand-in for two turns and looks whether what is measured is
// there. How fast it was is no test's.
func TestHarness(t *testing.T) {
	const n = 2
	s := serve(t, turns(n))
	for program, args := range map[string][]string{muster: {"run", "--teammates", "0", "call true"}, bare: {"call true"}} {
		r := newWorld(t, 3).measure(s, n, program, args...)
		// A gap of bare's can be under 0: its next request may come before the stand-in notes that the reply has left.
		if r.first <= 0 || r.gap == 0 || r.cpu <= 0 || r.peak <= 1 || r.size <= 0 || (r.guard > 0) != (program == muster) {
			t.Errorf("%s: %+v", program, r)
		}
	}
}

// TestTeam has one idle teammate take a task.
func TestTeam(t *testing.T) {
	w := newWorld(t, 1).hire()
	if memory(w.cmd.Process.Pid, "VmRSS") <= 1 || len(children(w.cmd.Process.Pid)) == 0 {
		t.Error("a living team has neither memory nor a guard")
	}
	w.muster("task", "add", "one more")
	w.await("the task is done", func() bool { return w.count("task.completed") > 0 })
}

func TestBoard(t *testing.T) {
	w := newWorld(t, 1)
	w.board(3)
	w.history(3)
	if out := w.muster("task", "list"); strings.Count(out, "task number") != 3 {
		t.Errorf("the board that the benchmarks use is\n%s", out)
	}
	if out := w.muster("task", "claim", "2", "--as", "bob"); !strings.Contains(out, "bob") {
		t.Errorf("a claim says %q", out)
	}
	if out := w.muster("log"); strings.Count(out, "\n") < 3 {
		t.Errorf("the log has\n%s", out)
	}
}
