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
	fake := b.TempDir()             // where bubblewrap does not start, Landlock takes over
	must(b, os.WriteFile(filepath.Join(fake, "bwrap"), []byte("#!/bin/sh\nexit 1\n"), 0o755))
	names := []string{"no sandbox", "Landlock", "bubblewrap"}
	gaps := make([]samples, len(names))
	var plain, direct samples
	for range rounds {
		for i, env := range [][]string{nil, {"MUSTER_SANDBOX_ENABLED=true", "PATH=" + fake + ":" + os.Getenv("PATH")},
			{"MUSTER_SANDBOX_ENABLED=true"}} {
			w := newWorld(b, 1)
			w.env = proc.WithVariables(w.env, env...)
			gaps[i].add(w.measure(s, n+4, muster, "run", "--teammates", "0", "call true").gap)
		}
		direct.add(newWorld(b, 1).measure(s, n+4, bare, "call true").gap)
		for range n {
			start := time.Now()
			must(b, exec.Command("/bin/true").Run())
			plain.took(start)
		}
	}
	for i, name := range names {
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
