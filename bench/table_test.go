//go:build linux

package bench

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// order is the table's: that of the benchmarks whose figures it has.
var order = []string{"BenchmarkRun", "BenchmarkTeammates", "BenchmarkConfined", "BenchmarkOrdinary", "BenchmarkHabits",
	"BenchmarkPickup", "BenchmarkClaim", "BenchmarkMail", "BenchmarkLane", "BenchmarkLand", "BenchmarkLanding", "BenchmarkPrint",
	"BenchmarkGrep", "BenchmarkFaces", "BenchmarkCommand", "BenchmarkComplete"}

// figure is a row of the table.
type figure struct {
	what  string
	unit  string
	ours  float64
	limit float64 // at most; with more: at least; 0: nobody has set one
	more  bool
	// beside is what was measured beside it in the same run, and what that is.
	beside float64
	is     string

	of string // the benchmark
}

// table is all figures of this run; a later one of the same name counts.
var table []figure

// report says a figure, its limit and their ratio, at most 1 where the limit is met, and what was measured beside it. A
// benchmark measures as often as it needs to by itself and then reports, so its figures are its sub-benchmarks' metrics.
func report(b *testing.B, name string, f figure) {
	b.Helper()
	b.Run(name, func(b *testing.B) {
		unit := strings.ReplaceAll(f.unit, " ", "-")
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(f.ours, "ours-"+unit)
		if f.limit > 0 {
			b.ReportMetric(f.limit, "limit-"+unit)
			b.ReportMetric(f.ratio(), "of-limit")
		}
		if f.is != "" {
			b.ReportMetric(f.beside, "beside-"+unit)
		}
	})
	f.of, _, _ = strings.Cut(b.Name(), "/")
	table = slices.DeleteFunc(table, func(old figure) bool { return old.what == f.what })
	table = append(table, f)
}

func (f figure) ratio() float64 {
	if f.more {
		return f.limit / max(f.ours, 1e-9)
	}
	return f.ours / max(f.limit, 1e-9)
}

func (f figure) row() string {
	limit, met, beside := "", "", ""
	if f.limit > 0 {
		least := "at most"
		if f.more {
			least = "at least"
		}
		limit, met = fmt.Sprintf("%s %s %s", least, number(f.limit), f.unit), "yes"
		if f.ratio() > 1 {
			met = "**no**"
		}
	}
	if f.is != "" {
		beside = fmt.Sprintf("%s %s (%s)", number(f.beside), f.unit, f.is)
	}
	return fmt.Sprintf("| %s | %s %s | %s | %s | %s |\n", f.what, number(f.ours), f.unit, limit, met, beside)
}

// number has three digits that count, or is whole.
func number(v float64) string {
	switch size := max(v, -v); {
	case v == float64(int64(v)) || size >= 100:
		return fmt.Sprintf("%.0f", v)
	case size < 0.1:
		return fmt.Sprintf("%.3f", v)
	case size < 10:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.1f", v)
}

// Between these two lines of a file its table stands.
const tableBegins, tableEnds = "<!-- table: written by go test -table, not by hand -->\n", "<!-- end of table -->\n"

// writeTable writes the figures to a file, in Markdown. In a file that has a table already only that is replaced, and
// only by a whole one: figures of two runs are not to stand beside each other.
func writeTable(file string) error {
	if file == "" || len(table) == 0 {
		return nil
	}
	text := markdown(table)
	old, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	before, rest, begins := strings.Cut(string(old), tableBegins)
	_, after, ends := strings.Cut(rest, tableEnds)
	if begins && ends {
		for _, name := range order {
			if !slices.ContainsFunc(table, func(f figure) bool { return f.of == name }) {
				return fmt.Errorf("%s keeps the table that it has, since %s did not run: run all, with -bench .", file, name)
			}
		}
		text = before + tableBegins + text + tableEnds + after
	}
	return os.WriteFile(file, []byte(text), 0o644)
}

func markdown(table []figure) string {
	sorted := slices.Clone(table)
	slices.SortStableFunc(sorted, func(x, y figure) int { return slices.Index(order, x.of) - slices.Index(order, y.of) })
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s.\n\n| | muster | limit | met | beside it in the same run |\n|---|---|---|---|---|\n", machine())
	for _, f := range sorted {
		b.WriteString(f.row())
	}
	b.WriteString("\n")
	return b.String()
}

// machine says on what was measured: "2 cores of AMD EPYC, 24 GB, Linux 6.18, ext4; go1.26, git 2.39; load ...; date".
func machine() string {
	first := func(file, field string) string {
		data, _ := os.ReadFile(file)
		for line := range strings.Lines(string(data)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == field {
				return strings.TrimSpace(value)
			}
		}
		return "unknown"
	}
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	git, _ := exec.Command("git", "version").Output()
	return fmt.Sprintf("%d cores of %s, %s memory, Linux %s, %s; %s, %s; load %s at the start; %s",
		runtime.NumCPU(), first("/proc/cpuinfo", "model name"), first("/proc/meminfo", "MemTotal"), bytes.TrimSpace(kernel),
		filesystem(os.TempDir()), runtime.Version(), bytes.TrimSpace(git), load, time.Now().Format(time.DateOnly))
}

// load is how many processes wanted to run in the minute before this one began.
var load = func() string {
	data, _ := os.ReadFile("/proc/loadavg")
	one, _, _ := strings.Cut(string(data), " ")
	return one
}()

func filesystem(dir string) string {
	name, err := exec.Command("stat", "-f", "-c", "%T", dir).Output()
	if err != nil {
		return "unknown filesystem"
	}
	return string(bytes.TrimSpace(name))
}
