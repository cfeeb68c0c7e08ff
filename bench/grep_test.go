//go:build linux

package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/internal/proc"
	"muster/internal/tool/code"
	"muster/llm"
)

// searched is a directory in which a tool works.
type searched string

func (d searched) Workdir(context.Context) (code.Workdir, error) {
	return code.Workdir{Dir: string(d)}, nil
}

// source makes a repository of n files of program text, and returns its directory.
func source(b *testing.B, n int) (dir string) {
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
	}
	// An intent to add needs no objects, which would take longer to write than all the rest.
	for _, args := range [][]string{{"init", "-q"}, {"add", "-N", "."}} {
		c := exec.Command("git", args...)
		c.Dir = dir
		must(b, c.Run())
	}
	return dir
}

// ripgrep returns a command that runs rg on what a call of grep asks for.
func ripgrep(rg, dir string, in map[string]any) *exec.Cmd {
	args := []string{"--no-config", "--hidden", "--glob", "!.git", "-n"}
	switch {
	case in["multiline"] == true:
		args = append(args, "--multiline", "--multiline-dotall")
	case in["output_mode"] == "count":
		args = append(args, "-c")
	case in["-i"] == true:
		args = append(args, "-i")
	}
	c := exec.Command(rg, append(args, "-e", in["pattern"].(string), ".")...)
	c.Dir = dir
	return c
}

// differs says how a result differs from one of so many lines, of which grep shows 200 and says how many there are.
func differs(r llm.Result, lines int) string {
	text := r.Text()
	if lines > 200 && strings.Contains(text, fmt.Sprintf("[the first 200 of %d ", lines)) ||
		lines <= 200 && strings.Count(text, "\n") == lines {
		return ""
	}
	return fmt.Sprintf("rg prints %d lines, and grep this:\n%.2000s", lines, text)
}

// cpu is the processor time of this process and of those that it has waited for.
func cpu(b *testing.B) (sum time.Duration) {
	b.Helper()
	for _, who := range []int{syscall.RUSAGE_SELF, syscall.RUSAGE_CHILDREN} {
		var used syscall.Rusage
		must(b, syscall.Getrusage(who, &used))
		sum += time.Duration(used.Utime.Nano() + used.Stime.Nano())
	}
	return sum
}

// costs are the time that something took, and the processor time, in milliseconds.
type costs struct{ wall, cpu samples }

func (c *costs) measure(b *testing.B, do func()) {
	b.Helper()
	start, used := time.Now(), cpu(b)
	do()
	c.wall.took(start)
	c.cpu.add(ms(cpu(b) - used))
}

// BenchmarkGrep is the tool grep in 50,000 files that the system has in memory, by turns with ripgrep. The processor time
// tells more than the time where other programs run.
func BenchmarkGrep(b *testing.B) {
	const turns = 5
	rg, err := exec.LookPath("rg")
	if err != nil {
		b.Skip("left out: rg is not installed")
	}
	dir := source(b, 50_000)
	launcher, err := proc.New(b.Context())
	must(b, err)
	defer launcher.Close()
	for _, c := range []struct {
		what     string
		in       map[string]any
		launcher proc.Launcher // of ripgrep; nil: the tool does without
		factor   float64
	}{
		{"a rare literal", map[string]any{"pattern": "needleInHaystack"}, nil, 1.5},
		{"a common literal", map[string]any{"pattern": "return"}, nil, 1.5},
		{"a literal, counted", map[string]any{"pattern": "return", "output_mode": "count"}, nil, 1.5},
		{"a literal in any case", map[string]any{"pattern": "NEEDLEINHAY", "-i": true}, nil, 1.5},
		{"one of several words", map[string]any{"pattern": "handler|needleInHay|Reply"}, nil, 8},
		{"an expression over lines", map[string]any{"pattern": `func.*\n.*return`, "multiline": true}, nil, 8},
		{"the beginning of a line", map[string]any{"pattern": `^\s*return\b`}, nil, 8},
		{"an expression without a literal", map[string]any{"pattern": `[a-z]+[A-Z]\w+\d{6}`}, nil, 8},
		{"an expression without a literal by ripgrep", map[string]any{"pattern": `[a-z]+[A-Z]\w+\d{6}`}, launcher, 2},
	} {
		grep := code.ReadTools(searched(dir), c.launcher, code.Options{})[2]
		var ours, theirs costs
		input, err := json.Marshal(c.in)
		must(b, err)
		lines, err := ripgrep(rg, dir, c.in).Output()
		must(b, err)
		for range turns {
			theirs.measure(b, func() { must(b, ripgrep(rg, dir, c.in).Run()) })
			ours.measure(b, func() {
				r, err := grep.Run(b.Context(), llm.Call{ID: "1", Name: "grep", Input: input}, nil)
				must(b, err)
				problem := differs(r, bytes.Count(lines, []byte("\n")))
				if problem != "" && c.in["multiline"] != true { // rg counts lines there
					b.Fatalf("%s: %s", c.what, problem)
				}
			})
		}
		what := fmt.Sprintf("grep for %s in 50,000 files, warm", c.what)
		report(b, c.what, figure{what: what, unit: "ms", ours: ours.wall.median(),
			limit: c.factor * theirs.wall.median(), beside: theirs.wall.median(), is: "ripgrep"})
		report(b, c.what+", CPU", figure{what: "... its CPU: " + c.what, unit: "ms", ours: ours.cpu.median(),
			beside: theirs.cpu.median(), is: "ripgrep"})
	}
}
