//go:build linux

package bench

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/internal/git"
	"muster/internal/trust"
)

// BenchmarkTrust is what it costs that muster believes little, in a repository of 5,000 files: the question whether the
// state is the user's own, which each command asks, and the look at what is the user's after each phase of a member.
func BenchmarkTrust(b *testing.B) {
	w := newWorld(b, 5000)
	w.muster("task", "add", "one")
	env := func(name string) string {
		for _, kv := range w.env {
			if value, ok := strings.CutPrefix(kv, name+"="); ok {
				return value
			}
		}
		return ""
	}
	repo := trust.Repository{Root: w.root, Common: filepath.Join(w.root, ".git"),
		Tracked: func(below []string) ([]string, error) {
			if git.MayTrack(filepath.Join(w.root, ".git"), below) {
				b.Error("git would be asked")
			}
			return nil, nil
		}}
	var opening, version, phase, status samples
	for range 3 * rounds {
		start := time.Now()
		must(b, trust.Open(env).CheckState(repo))
		opening.took(start)
		start = time.Now()
		w.muster("version")
		version.took(start)
	}
	report(b, "open", figure{what: "decide whether the state is the user's own, 5,000 files", unit: "ms",
		ours: opening.median(), limit: 5, beside: version.median(), is: "`muster version`"})

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
