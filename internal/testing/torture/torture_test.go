package torture_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"muster"
	"muster/internal/cli"
	"muster/internal/proc"
	"muster/internal/testing/failpoint"
	"muster/internal/testing/torture"
	"muster/store/file"
)

// asProgram is in the environment of what the torture starts: this test binary is the program then.
const asProgram = "MUSTER_TORTURE_PROGRAM"

func TestMain(m *testing.M) {
	proc.GuardMain()
	if os.Getenv(asProgram) == "" {
		os.Exit(m.Run())
	}
	if err := failpoint.Arm(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Exit(cli.Main())
}

func open(root string) (muster.Store, error) { return file.Open(root) }

// session tortures.
func session(t *testing.T, c torture.Config) []torture.Row {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	c.Dir, c.Self, c.Open, c.Untimed = filepath.Join(t.TempDir(), "torture"), []string{self}, open, true
	c.Env = append(os.Environ(), asProgram+"=1", "GORACE=atexit_sleep_ms=0", "HOME="+home, "XDG_CONFIG_HOME="+home, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull)
	rows, err := torture.Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		t.Logf("%s: %d %s, %d kills (%d at points), %d stops, %d refused, recovery %.2f s, at most %.2f s; %.1f s in all; %v", r.Scenario, r.Operations, r.What,
			r.Kills, r.AtPoints, r.Stops, r.Refused, r.Median, r.Max, r.Seconds, r.Points)
	}
	return rows
}

// TestMutants: each protection that is switched off shows. That nothing is synced shows only where a power loss is
// simulated (internal/durable/simfs).
func TestMutants(t *testing.T) {
	for _, c := range []struct {
		mutant   failpoint.Mutant
		scenario string
	}{
		{failpoint.NoLock, "claims"},
		{failpoint.NoFence, "claims"},
		{failpoint.NoTail, "mail"},
		{failpoint.NoRecompare, "foreign"},
	} {
		t.Run(c.mutant.String(), func(t *testing.T) {
			for seed := range uint64(3) { // a wrong design is wrong at some moments only
				r := session(t, torture.Config{Only: []string{c.scenario}, Seed: seed + 1, Mutant: c.mutant.String()})[0]
				if r.Bad() {
					t.Log(r.Violations[0])
					return
				}
			}
			t.Errorf("%s: %s goes unnoticed", c.scenario, c.mutant)
		})
	}
}

// TestWorkerStaysInside: a worker touches nothing but a torture's directory.
func TestWorkerStaysInside(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "mine", "repo")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, job := range []string{"", "{}", fmt.Sprintf(`{"Kind":"claims","Dir":%q,"Name":"p1"}`, dir)} {
		if err := torture.Work(context.Background(), open, job); !errors.Is(err, muster.ErrInvalid) {
			t.Errorf("%s: %v", job, err)
		}
	}
	if all, _ := os.ReadDir(dir); len(all) > 0 {
		t.Errorf("it has written %v", all)
	}
}

// TestDirectory: a directory that holds anything is refused.
func TestDirectory(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := torture.Run(t.Context(), torture.Config{Dir: dir}); !errors.Is(err, muster.ErrHeld) {
		t.Errorf("%v", err)
	}
}
