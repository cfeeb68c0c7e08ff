//go:build failpoint

package torture_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster"
	"muster/internal/cli"
	"muster/internal/proc"
	"muster/internal/testing/faultinject"
	"muster/internal/testing/tier"
	"muster/internal/testing/torture"
	"muster/store/file"
)

// The first argument of the processes that the crash tests start: this test binary is muster, or a worker, then.
const (
	roleMuster = "as-muster"
	roleWorker = "as-worker"
)

func TestMain(m *testing.M) {
	proc.GuardMain()
	if len(os.Args) < 2 || os.Args[1] != roleMuster && os.Args[1] != roleWorker {
		os.Exit(m.Run())
	}
	if err := faultinject.Arm(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	if os.Args[1] == roleMuster {
		os.Args = append(os.Args[:1:1], os.Args[2:]...)
		os.Exit(cli.Main())
	}
	if err := torture.Work(context.Background(), open, os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func open(root string) (muster.Store, error) { return file.Open(root) }

// config returns the configuration of a session whose processes are this test binary.
func config(t *testing.T) torture.Config {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	home := t.TempDir()
	return torture.Config{Dir: filepath.Join(t.TempDir(), "torture"), Open: open,
		Muster: []string{self, roleMuster}, Worker: []string{self, roleWorker},
		Env: append(os.Environ(), "MUSTER_SANDBOX_ENABLED=false", "GORACE=atexit_sleep_ms=0", "HOME="+home,
			"XDG_CONFIG_HOME="+home, "XDG_STATE_HOME="+home, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull)}
}

// TestScenarios is the short form of all scenarios. Nothing is lost, doubled or stuck, and the processes pass no points but
// those of the list, and all of a landing, a lane and a teammate.
func TestScenarios(t *testing.T) {
	tier.All(t)
	list := filepath.Join(t.TempDir(), "points")
	if err := faultinject.ArmWith("list:"+list, ""); err != nil { // the points that this process passes
		t.Fatal(err)
	}
	t.Cleanup(faultinject.Disarm)
	c := config(t)
	c.Seed, c.List = 3, list
	rows, err := torture.Run(t.Context(), c)
	must(t, err)
	for _, r := range rows {
		t.Logf("%+v", r)
		if r.Bad() {
			t.Errorf("%s: %s", r.Scenario, strings.Join(r.Violations, "\n"))
		}
	}
	data, err := os.ReadFile(list)
	must(t, err)
	passed := map[string]bool{}
	for name := range strings.FieldsSeq(string(data)) {
		passed[name] = true
		if !faultinject.Known(name) {
			t.Errorf("the point %s was passed, and is not on the list", name)
		}
	}
	for _, p := range faultinject.Points() {
		kind, _, _ := strings.Cut(p.Name, ".")
		// Reviews and arbiters need models: internal/landing has the crashes around them.
		if needsModel := strings.HasPrefix(p.Name, "landing.review") || strings.HasPrefix(p.Name, "landing.arbitrat"); needsModel {
			continue
		}
		switch kind {
		case "landing", "lane", "lanes", "teammate", "playbook", "refs", "packs", "inbox", "segments", "spend":
			if !passed[p.Name] {
				t.Errorf("the point %s is never passed", p.Name)
			}
		}
	}
}

// TestWorkerStaysInside checks that a worker writes only into the directory of a session.
func TestWorkerStaysInside(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "mine", "repo")
	must(t, os.MkdirAll(dir, 0o700))
	for _, job := range []string{"", "{}", fmt.Sprintf(`{"Kind":"claim","Dir":%q,"Name":"p1"}`, dir)} {
		if err := torture.Work(t.Context(), open, job); !errors.Is(err, muster.ErrInvalid) {
			t.Errorf("%s: %v", job, err)
		}
	}
	if all, _ := os.ReadDir(dir); len(all) > 0 {
		t.Errorf("it has written %v", all)
	}
}

// TestDirectory checks that a directory that holds anything is refused.
func TestDirectory(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "mine"), nil, 0o600))
	if _, err := torture.Run(t.Context(), torture.Config{Dir: dir}); !errors.Is(err, muster.ErrHeld) {
		t.Errorf("%v", err)
	}
}
