package proc

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"muster"
	"muster/internal/landlock"
	"muster/internal/testing/tier"
	"muster/internal/testing/wait"
)

// ruleset returns a ruleset with which a shell can run and write in dir.
func ruleset(t *testing.T, dir string) *os.File {
	t.Helper()
	set, err := landlock.New()
	check(t, err)
	f := set.File
	t.Cleanup(func() { _ = f.Close() })
	for path, a := range map[string]landlock.Access{"/usr": landlock.Read, "/lib": landlock.Read, "/lib64": landlock.Read, dir: landlock.Write} {
		if err := set.Allow(path, a); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	return f
}

// A tool with a ruleset is under it, with its limits, and so is what it starts; tools without one are not. The threads
// that start them end with them.
func TestRulesets(t *testing.T) {
	if landlock.Version() < landlock.MinVersion {
		tier.Missing(t, "this kernel has no Landlock")
	}
	g := guardOf(t)
	in, out := yard(t), yard(t)
	threads := func() int {
		all, _ := filepath.Glob("/proc/" + itoa(g.PID()) + "/task/*")
		return len(all)
	}
	run := func(f *os.File) string {
		var said bytes.Buffer
		s := sh(`echo x > in; (setsid sh -c 'echo x > ` + out + `/out' 2>&- && echo free); (ulimit -f)
			chmod 640 in && stat -c %a in; chmod 755 ` + out + ` 2>&- && echo changed; true`)
		s.Dir, s.Out, s.Ruleset, s.Limits = in, &said, f, Limits{Processes: 100, FileSize: 1 << 20}
		s.Writable = []string{in}
		ends(t, start(t, g, t.Context(), s), 0)
		return said.String()
	}
	if got := run(nil); got != "free\n2048\n640\nchanged\n" {
		t.Errorf("without a ruleset: %q", got)
	}
	f := ruleset(t, in)
	before := threads()
	for range 30 {
		if got := run(f); got != "2048\n640\n" {
			t.Fatalf("with a ruleset: %q", got)
		}
	}
	wait.For(t, "the threads end", func() bool { return threads() <= before+5 })
	if got := run(nil); got != "free\n2048\n640\nchanged\n" {
		t.Errorf("afterwards, without a ruleset: %q", got)
	}
	// The end of its thread kills no tool that still runs.
	p := start(t, g, t.Context(), Spec{Argv: []string{"/bin/sleep", "100"}, Ruleset: f})
	run(f)
	if err := p.Kill(); err != nil {
		t.Error(err)
	}
	ends(t, p, 137)
}

// What cannot put a tool under its ruleset does not start it.
func TestNoRulesetWithoutAGuard(t *testing.T) {
	l := newGroups()
	defer l.Close()
	s := sh("exit 0")
	s.Ruleset = ruleset(t, yard(t))
	if _, err := l.Start(t.Context(), s); !errors.Is(err, muster.ErrUnavailable) {
		t.Errorf("started with the error %v", err)
	}
}
