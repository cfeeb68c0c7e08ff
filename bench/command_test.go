//go:build linux

package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/internal/proc"
)

// sandboxKind is a kind of sandbox, with the environment in which muster takes it.
type sandboxKind struct {
	name string
	env  []string
}

func sandboxes(b *testing.B) []sandboxKind {
	fake := b.TempDir() // where bubblewrap does not start, Landlock takes over
	must(b, os.WriteFile(filepath.Join(fake, "bwrap"), []byte("#!/bin/sh\nexit 1\n"), 0o755))
	on := "MUSTER_SANDBOX_ENABLED=true"
	return []sandboxKind{{"no sandbox", nil}, {"Landlock", []string{on, "PATH=" + fake + ":" + os.Getenv("PATH")}}, {"bubblewrap", []string{on}}}
}

// BenchmarkCommand is the time from a reply that calls `true` in a lane to the next request, in each kind of sandbox, and
// beside it a `true` that a plain program starts.
func BenchmarkCommand(b *testing.B) {
	const n = 25 // more without a change end the phase
	const before = "    - do: [{task_create: {subject: work}}]\n    - do: [{claim_task: {task_id: 1}}]\n"
	const after = "    - do: [{bash: {command: \"echo > new\"}}]\n    - do: [{complete_task: {task_id: 1, summary: works}}]\n"
	head, commands, _ := strings.Cut(turns(n), "lead:\n")
	commands, tail, _ := strings.Cut(commands, "    - say")
	s := serve(b, head+"lead:\n"+before+commands+after+"    - say"+tail)
	s.pause = 30 * time.Millisecond // no model answers sooner, and a sandbox is started ahead meanwhile
	kinds := sandboxes(b)
	gaps := make([]samples, len(kinds))
	var plain, direct samples
	for range rounds {
		for i, kind := range kinds {
			w := newWorld(b, 1)
			w.env = proc.WithVariables(w.env, kind.env...)
			gaps[i].add(w.measure(s, n+4, muster, "run", "--teammates", "0", "call true").gap)
		}
		direct.add(newWorld(b, 1).measure(s, n+4, bare, "call true").gap)
		for range n {
			start := time.Now()
			must(b, exec.Command("/bin/true").Run())
			plain.took(start)
		}
	}
	for i, kind := range kinds {
		name := kind.name
		f := figure{what: fmt.Sprintf("a reply that calls `true` in a lane to the next request, %s", name), unit: "ms", ours: gaps[i].median(),
			beside: direct.median(), is: "bare"}
		report(b, name, f)
		if i > 0 {
			f.what, f.ours, f.limit = fmt.Sprintf("... of it %s itself", name), f.ours-gaps[0].median(), 4
			f.beside, f.is = plain.median(), "a `true` that a plain program starts"
			report(b, name+" itself", f)
		}
	}
}

// BenchmarkComplete is the time from a reply that calls complete_task, in a repository of 5,000 files, to the next request.
func BenchmarkComplete(b *testing.B) {
	const tasks = 5
	var words strings.Builder
	words.WriteString("speakers:\n  lead:\n")
	for i := range tasks {
		// git compares each file that was checked out in the second of the index, so that gets younger.
		fmt.Fprintf(&words, `    - do: [{task_create: {subject: work %[1]d}}]
    - do: [{claim_task: {task_id: %[1]d}}]
    - do: [{bash: {command: "echo %[1]d > new%[1]d; sleep 1.1; git update-index -q --refresh"}}]
    - do: [{complete_task: {task_id: %[1]d, summary: works}}]
`, i+1)
	}
	words.WriteString("    - say: Done.\n")
	s := serve(b, words.String())
	s.pause = 300 * time.Millisecond // no model answers sooner, and what a command has changed is compared with other lanes meanwhile
	kinds := sandboxes(b)
	gaps := make([]samples, len(kinds))
	for range 3 {
		for i, kind := range kinds {
			w := newWorld(b, 5_000)
			w.env = proc.WithVariables(w.env, kind.env...)
			r := w.measure(s, 4*tasks, muster, "run", "--teammates", "0", "--check", "true", "five tasks")
			for n := range tasks {
				gaps[i].add(r.gaps[4*n+3])
			}
		}
	}
	for i, kind := range kinds {
		report(b, kind.name, figure{what: "a reply that calls complete_task to the next request, 5000 files, " + kind.name, unit: "ms",
			ours: gaps[i].median()})
	}
}
