//go:build linux

package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"muster/internal/tool/code"
	"muster/llm"
)

// searched is a directory in which a tool works.
type searched string

func (d searched) Workdir(context.Context) (code.Workdir, error) {
	return code.Workdir{Dir: string(d)}, nil
}

// source makes a repository of n files of program text, and returns its directory and the names of the files.
func source(b *testing.B, n int) (dir string, names []string) {
	b.Helper()
	random := rand.New(rand.NewPCG(1, 2)) // the same text in each run
	words := strings.Fields("func return context Context err nil handler request Reply 17 _test map[string]int " +
		"render the of a state == != := x.y(z) \"text\" // because")
	var lines []string
	for range 4000 {
		line := strings.Repeat("\t", random.IntN(4))
		for range 1 + random.IntN(9) {
			line += words[random.IntN(len(words))] + " "
		}
		lines = append(lines, line)
	}
	dir = b.TempDir()
	for i := range n {
		from := random.IntN(3800)
		text := strings.Join(lines[from:from+20+random.IntN(130)], "\n") + "\n"
		if i%5000 == 0 {
			text += fmt.Sprintf("\tneedleInHaystack%06d()\n", i)
		}
		name := filepath.Join(dir, fmt.Sprintf("d%03d/s%02d/f%05d.go", i%200, i/200%10, i))
		must(b, os.MkdirAll(filepath.Dir(name), 0o700))
		must(b, os.WriteFile(name, []byte(text), 0o600))
		names = append(names, name)
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "."}} {
		c := exec.Command("git", args...)
		c.Dir = dir
		must(b, c.Run())
	}
	return dir, names
}

// readAll reads every file once, as plainly as Go can, with a worker for each processor.
func readAll(b *testing.B, names []string) {
	b.Helper()
	var workers sync.WaitGroup
	n := runtime.GOMAXPROCS(0)
	for w := range n {
		workers.Go(func() {
			for i := w; i < len(names); i += n {
				if _, err := os.ReadFile(names[i]); err != nil {
					b.Error(err)
				}
			}
		})
	}
	workers.Wait()
}

// BenchmarkGrep is the tool grep in 50,000 files that the system has in memory, by turns with ripgrep; without it, with
// reading all files in plain Go.
func BenchmarkGrep(b *testing.B) {
	const files = 50_000
	dir, names := source(b, files)
	grep := code.ReadTools(searched(dir))[2]
	beside, name := func(string) { readAll(b, names) }, "read all files in plain Go"
	if rg, err := exec.LookPath("rg"); err == nil {
		name = "ripgrep"
		beside = func(pattern string) {
			c := exec.Command(rg, "--no-config", "--hidden", "--glob", "!.git", "-n", "-e", pattern, ".")
			c.Dir = dir
			if out, err := c.Output(); err != nil || len(out) == 0 {
				b.Fatal("rg finds nothing: ", err)
			}
		}
	}
	for _, c := range []struct {
		what, pattern string
		factor        float64
	}{
		{"a literal", "needleInHaystack", 1.5},
		{"an expression with a literal", `needle\w+\d{6}\(`, 1.5},
		{"an expression without a literal", `[a-z]+[A-Z]\w+\d{6}`, 3},
		{"an expression in any case", `(?i)NEEDLEINHAY\w+`, 3},
		{"an alternative", `handlerX|needleIn|renderY`, 3},
	} {
		var ours, theirs samples
		input, err := json.Marshal(map[string]string{"pattern": c.pattern})
		must(b, err)
		for i := range rounds + 1 {
			start := time.Now()
			beside(c.pattern)
			if i > 0 { // the first only brings the files into memory
				theirs.took(start)
			}
			start = time.Now()
			r, err := grep.Run(b.Context(), llm.Call{ID: "1", Name: "grep", Input: input}, nil)
			must(b, err)
			if i > 0 {
				ours.took(start)
			}
			if n := strings.Count(r.Text(), "needleIn"); r.IsError || n != files/5000 {
				b.Fatalf("%s: %d matches: %s", c.pattern, n, r.Text())
			}
		}
		report(b, c.what, figure{what: fmt.Sprintf("grep for %s in 50,000 files, warm", c.what), unit: "ms",
			ours: ours.median(), limit: c.factor * theirs.median(), beside: theirs.median(), is: name})
	}
}
