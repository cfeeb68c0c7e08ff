//go:build linux

package bench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/internal/git"
)

// BenchmarkTrust is what it costs that muster believes little, in a repository of 5,000 files: the look at what is the
// user's after each phase of a member. BenchmarkPrint has the question that each command asks.
func BenchmarkTrust(b *testing.B) {
	w := newWorld(b, 5000)
	var phase, status samples
	opened := need(git.Open(b.Context(), w.root))(b)
	skip := func(ref string) bool { return strings.HasPrefix(ref, "refs/heads/wt/") }
	print := need(git.TakeFingerprint(b.Context(), opened, nil, skip))(b)
	for i := range 3 * rounds {
		must(b, os.WriteFile(filepath.Join(w.root, "d01", "f0101.go"), []byte(strings.Repeat("x", i)), 0o644))
		start := time.Now()
		print = need(git.TakeFingerprint(b.Context(), opened, print, skip))(b)
		phase.took(start)
		start = time.Now()
		w.git("status", "--porcelain")
		status.took(start)
	}
	report(b, "phase", figure{what: "look at what is the user's after a phase, 5,000 files", unit: "ms",
		ours: phase.median(), limit: 10, beside: status.median(), is: "`git status`"})
}
