package faultinject

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// passes, when it is in the environment, are points that this test binary passes instead of testing.
const passes = "MUSTER_FAULT_TEST"

func TestMain(m *testing.M) {
	if names := os.Getenv(passes); names != "" {
		if err := Arm(); err != nil {
			os.Stderr.WriteString(err.Error())
			os.Exit(2)
		}
		for name := range strings.FieldsSeq(names) {
			Hit(name)
		}
		if os.Getenv(Variable) != "" {
			os.Exit(3) // a child would be armed too
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// run passes the points in a process of its own, and returns how it ended and which points it came to.
func run(t *testing.T, arm, points string) (state *os.ProcessState, passed, stderr string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "passed")
	var errs strings.Builder
	cmd := exec.Command(self)
	cmd.Stderr = &errs
	cmd.Env = append(os.Environ(), passes+"="+points, Variable+"="+arm+";list:"+file)
	_ = cmd.Run()
	data, _ := os.ReadFile(file)
	return cmd.ProcessState, strings.Join(strings.Fields(string(data)), " "), errs.String()
}

func TestKill(t *testing.T) {
	const all = "lane.creating lane.branch lane.added lane.active"
	for arm, want := range map[string]string{
		"kill:lane.branch":   "lane.creating lane.branch",
		"kill:lane.branch:2": "lane.creating lane.branch lane.added",
		"kill:lane.branch:3": all,
		"kill:lane.dropped":  all,
		"random:1:1":         "lane.creating",
		"random:1:0":         all,
	} {
		state, passed, stderr := run(t, arm, "lane.creating lane.branch lane.added lane.branch lane.active")
		if killed := state.ExitCode() == -1; killed != (want != all) || passed != want || !killed && !state.Success() {
			t.Errorf("%s: %v, passed %q, want %q; %s", arm, state, passed, want, stderr)
		}
	}
}

func TestRandomIsSeeded(t *testing.T) {
	path := ""
	for i := range 1000 {
		path += fmt.Sprint("point.", i, " ")
	}
	_, first, _ := run(t, "random:7:0.01", path)
	_, again, _ := run(t, "random:7:0.01", path)
	if first == strings.TrimSpace(path) || first != again {
		t.Errorf("the same seed dies after %q, then after %q", first, again)
	}
}

func TestArmRefuses(t *testing.T) {
	for _, arm := range []string{"kill", "kill:no.such", "kill:lane.branch:0", "kill:lane.branch:x", "random:x:1", "random:1:2", "list:", "die:lane.branch"} {
		if state, _, stderr := run(t, arm, "lane.branch"); state.ExitCode() != 2 || !strings.Contains(stderr, arm) {
			t.Errorf("%s: %v %q", arm, state, stderr)
		}
	}
}

func TestFileKind(t *testing.T) {
	for path, want := range map[string]string{
		"/r/.tasks/task_7.json": "tasks", "/r/.tasks/meta.json": "tasks", "/r/.tasks/claim_events.jsonl": "claim_events",
		"/r/.team/run.json": "team", "/r/.team/events.jsonl": "events", "/r/.team/members/a.json": "members",
		"/r/.team/inbox/a.jsonl": "inbox", "/r/.team/inbox/a.segments/00000001-5.jsonl": "segments",
		"/r/.team/archive/moving": "archive", "/r/.team/archive/20261121-1/archive.json": "archive", "/r/.team/damaged/x.json": "damaged",
		"/r/.team/events.7.jsonl": "events", "/r/.tasks": "tasks", "/r/.team/locks/check-3": "checks", "/r/.transcripts": "transcripts",
		"/r/.transcripts/a/log.jsonl": "transcripts", "/r/.worktrees/index.json": "lanes", "/r/.worktrees/events.jsonl": "lane_events",
		"/r/.git/worktrees/task-1-a/muster-place": "places", "/r/.git/muster/places/.worktrees/task-1-a/copied.json": "places",
		"/r/.git/muster/mark": "registry",
	} {
		if got := fileKind(path); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
}

func BenchmarkHit(b *testing.B) {
	for b.Loop() {
		Hit("lane.branch")
	}
}

func BenchmarkHitFile(b *testing.B) {
	for b.Loop() {
		HitFile("/r/.tasks/task_7.json", "put.begin")
	}
}
