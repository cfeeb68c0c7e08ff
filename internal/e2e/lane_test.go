//go:build linux

package e2e

import (
	"strings"
	"syscall"
	"testing"

	"muster/internal/testing/tier"
)

// lateWriter is a team whose alice has a command under way that writes in her lane when it is told to. Whoever does the
// task after her waits until that has happened, and only then completes it.
const lateWriter = `
speakers:
  lead:
    - do:
        - task_create: {subject: one}
        - spawn_teammate: {name: alice, role: coder, prompt: You write files.}
    - do: [{wait: {}}]
      until: All done
    - say: It has landed.
scenes:
  - cue: 'Task #1: one'
    who: [alice]
    turns:
      - do: [{bash: {command: "touch $BASE/alice; until test -e $BASE/go; do sleep 0.02; done; echo late > late.txt; touch $BASE/wrote"}}]
      - do: [{complete_task: {task_id: 1, summary: too late}}]
  - cue: 'Task #1: one'
    turns:
      - do: [{write_file: {path: one.txt, content: "one\n"}}, {bash: {command: "touch $BASE/worker; until test -e $BASE/wrote; do sleep 0.02; done"}}]
      - do: [{complete_task: {task_id: 1, summary: Writes one.}}]
`

// TestLaneOfAStoppedProcess stops the program while a tool of alice's runs, which goes on. Her task is taken from her and done
// in another process: what the tool writes late is not in what lands, and is kept.
func TestLaneOfAStoppedProcess(t *testing.T) {
	tier.All(t)
	t.Parallel()
	w := newWorld(t)
	model := w.words(lateWriter)
	run := w.start("run", "--team", "late", "--model", model, "write a file")
	w.awaits("alice's command runs", w.exists("alice"))
	if err := run.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	w.muster(0, "task", "release", "1")
	join := w.start("join", "--role", "coder", "--model", model)
	w.awaits("the other process works", w.exists("worker"))
	w.write(w.base+"/go", "")
	w.awaitsEvent("the task has landed", kind("task.completed"))
	if files := w.git("ls-tree", "--name-only", "muster/late"); files != "README\none.txt" {
		t.Errorf("the target has %q", files)
	}
	if err := run.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	run.ends(0)
	join.ends(0)
	w.landedOnce("muster/late", "1")
	w.untouched()
	kept := ""
	for ref := range strings.FieldsSeq(w.git("for-each-ref", "--format=%(refname)", "refs/muster/archive/")) {
		kept += w.git("ls-tree", "--name-only", ref) + "\n"
	}
	w.has("what is kept", kept, "late.txt")
}
