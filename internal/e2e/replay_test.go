//go:build linux

package e2e

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
)

// replayTimes is how often each recording is played. A hundred times takes some minutes:
//
//	go test ./internal/e2e -run TestReplay -replay.times 100 -timeout 60m
var replayTimes = flag.Int("replay.times", 2, "how often TestReplay plays each recording")

// replays plays a recording again and again, at different speeds. Each time it must come as recorded.
func (w *world) replays(file string) {
	w.t.Helper()
	began := time.Now()
	for i := range *replayTimes {
		speed := []string{"0", "50", "3"}[i%3]
		r := w.muster(0, "replay", file, "--speed", speed)
		w.has(fmt.Sprintf("replay %d", i+1), r.stdout, "it came as recorded", "the same files")
		if w.t.Failed() {
			w.t.Fatalf("replay %d at the speed %s:\n%s", i+1, speed, r)
		}
	}
	w.t.Logf("%d replays of %s took %s", *replayTimes, filepath.Base(file), time.Since(began).Round(time.Second))
}

// TestReplayOfTheDemo plays a recording of the demo: a plan that is rejected first, a shutdown that is refused, a red
// check and a conflict.
func TestReplayOfTheDemo(t *testing.T) {
	tier.All(t)
	t.Parallel()
	w := newWorld(t)
	file := filepath.Join(w.base, "demo.rec")
	w.muster(0, "demo", "--keep", filepath.Join(w.base, "demo"), "--record", file)
	w.root = filepath.Join(w.base, "demo")
	target := w.git("rev-parse", "muster/demo")
	w.replays(file)
	if now := w.git("rev-parse", "muster/demo"); now != target {
		t.Errorf("a replay has moved the target from %s to %s", target, now)
	}
	w.untouched()
}

// busy is a team of eight, all of whom write the same file: conflicts, red checks, subagents side by side, commands in
// the background, plans, conversations that are made shorter, mail, and members that are shut down while others work.
const busy = `
speakers:
  lead:
    - do:
TASKS
SPAWNS
    - do: [{wait: {for: landing}}]
    - do: [{task_list: {}}, {read_inbox: {}}, {list_teammates: {}}, {request_shutdown: {teammate: m3, reason: enough}}]
    - do: [{wait: {}}]
      until: All done
    - say: All is there.
  subagent:
    - do: [{glob: {pattern: "*"}}]
    - say: It has some files.
scenes:
  - cue: 'waits for your decision|"type": "plan_approval_request"'
    who: [lead]
    turns:
      - do: [{review_plan: {request_id: "${request}", approve: true}}]
  - cue: 'shutdown_request'
    who: [m3]
    turns:
      - do: [{respond_shutdown: {request_id: "${request}", approve: true}}]
  - cue: 'Task #(?P<id>\d+): word (?P<word>w0)'
    turns:
      - do:
          - send_message: {to: lead, content: "I begin with ${word}."}
          - subagent: {kind: explore, prompt: "look for ${word}"}
          - subagent: {kind: explore, prompt: "look again for ${word}"}
          - bash: {command: "sleep 0.0${number:id}; date", background: true}
      - do: [{submit_plan: {plan: "add ${word}"}}, {task_list: {}}]
      - do: [{bash: {command: "sleep 0.4; echo ${word} >>all; date +%N >/dev/null; echo ${word} >${word}"}}]
      - do: [{complete_task: {task_id: "${number:id}", summary: "the word ${word}"}}]
      - &again
        cue: onflict
        do: [{bash: {command: "sed -i '/^[<|=>]/d' all; sort -u -o all all"}}, {complete_task: {task_id: "${number:id}", summary: again}}]
AGAIN
  - cue: 'Task #(?P<id>\d+): word (?P<word>w[1-9]\d*)'
    turns:
      - do:
          - send_message: {to: lead, content: "I begin with ${word}."}
          - subagent: {kind: explore, prompt: "look for ${word}"}
          - subagent: {kind: explore, prompt: "look again for ${word}"}
          - bash: {command: "sleep 0.0${number:id}; date", background: true}
      - do: [{task_list: {}}]
      - do: [{bash: {command: "sleep 0.4; echo ${word} >>all; date +%N >/dev/null; echo ${word} >${word}"}}]
      - do: [{complete_task: {task_id: "${number:id}", summary: "the word ${word}"}}]
AGAIN
`

// TestReplayOfABusyTeam plays a recording of a team in which the path depends on who is faster all the time.
func TestReplayOfABusyTeam(t *testing.T) {
	tier.All(t)
	t.Parallel()
	w := newWorld(t)
	var tasks, spawns strings.Builder
	for i := range 12 {
		plan := ""
		if i == 0 {
			plan = ", require_plan: true"
		}
		fmt.Fprintf(&tasks, "        - task_create: {subject: word w%d, description: \"Add a line w%[1]d to all.\"%s}\n", i, plan)
	}
	for i := range 8 {
		fmt.Fprintf(&spawns, "        - spawn_teammate: {name: m%d, role: writer, prompt: You write.}\n", i+1)
	}
	again := strings.Repeat("      - *again\n", 12) // whoever has come back so often is not asked any more
	model := w.words(strings.NewReplacer("TASKS\n", tasks.String(), "SPAWNS\n", spawns.String(), "AGAIN\n", again).Replace(busy))
	file := filepath.Join(w.base, "busy.rec")
	r := w.start("run", "words", "--teammates", "8", "--model", model, "--check", "test -e README", "--record", file).wait()
	if r.code != 0 && r.code != 3 { // who comes back too often gives up, which is a path too
		t.Fatal(r)
	}
	kinds := map[string]int{}
	for _, e := range w.events() {
		kinds[e.Kind]++
	}
	t.Logf("exit %d, events: %v", r.code, kinds)
	if kinds["task.completed"] < 6 || kinds["task.returned"] == 0 || kinds["context.compacted"] == 0 {
		t.Errorf("the run shows too little: %v\n%s", kinds, r.stderr)
	}
	require.NoError(t, os.Remove(filepath.Join(w.base, "words.yaml")))
	w.replays(file)
}

// TestReplayOfAKilledRun plays what a killed run has left, which only the user's word lets run.
func TestReplayOfAKilledRun(t *testing.T) {
	tier.All(t)
	t.Parallel()
	w := newWorld(t)
	file := filepath.Join(w.base, "killed.rec")
	model := w.words(`
speakers:
  lead:
    - do: [{task_create: {subject: one, description: one}}, {spawn_teammate: {name: alice, role: writer, prompt: You write.}}]
    - do: [{wait: {}}]
  alice:
    - do: [{bash: {command: "echo hello >greeting"}}]
    - do: [{bash: {command: "touch \"$BASE/here\"; test -e \"$BASE/again\" || sleep 100"}}]
`)
	p := w.start("run", "words", "--teammates", "1", "--model", model, "--record", file)
	w.awaits("the command", w.exists("here"))
	require.NoError(t, p.cmd.Process.Kill())
	p.wait()
	w.soonGone()
	w.write(filepath.Join(w.base, "again"), "")
	w.has("stderr", w.muster(1, "replay", file).stderr, "its run was killed", `touch \"$BASE/here\"`)
	out := w.muster(0, "replay", "--yes", file).stdout
	w.has("stdout", out, "it came as recorded, to where the recorded run was cut off: 4 of 4 turns")
	var state []muster.Task
	if state = w.tasks(); len(state) != 1 || state[0].Status != muster.InProgress {
		t.Errorf("the killed run has the tasks %+v", state)
	}
}
