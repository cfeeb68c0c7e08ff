//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster"
	"muster/internal/testing/require"
	"muster/journal"
)

// byHand is a team whose member is in the middle of a command while somebody edits the files.
const byHand = `
speakers:
  lead:
    - do:
        - task_create: {subject: slow, description: Write slow.}
        - task_create: {subject: next, description: Write next., blocked_by: [slow]}
        - spawn_teammate: {name: alice, role: coder, prompt: You write what is asked for.}
    - do: [{wait: {}}]
      until: All done
    - say: Nothing is open.
scenes:
  - cue: 'Task #(?P<id>\d+): slow\n'
    who: [coder]
    turns:
      - do: [{write_file: {path: slow.txt, content: "slow\n"}}]
      - do: [{bash: {command: "touch %[1]s/working; until test -e %[1]s/go; do sleep 0.02; done"}}]
      - do: [{complete_task: {task_id: "${number:id}", summary: "Writes slow."}}]
  - cue: 'Task #(?P<id>\d+): next\n'
    who: [coder]
    turns:
      - do: [{write_file: {path: next.txt, content: "next\n"}}]
      - do: [{complete_task: {task_id: "${number:id}", summary: "Writes next."}}]
`

// TestByHand has a person complete a task in an editor, in two writes, and take a mail out of an inbox, while the task's
// owner works: nothing of ours breaks, and what was done is kept and said.
func TestByHand(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := t.TempDir()
	model := w.words(fmt.Sprintf(byHand, dir))
	n := &neighbour{t: t, root: w.root}
	run := w.start("run", "--team", "hand", "--model", model, "work while somebody edits")
	w.awaits("alice works", func() bool { _, err := os.Stat(filepath.Join(dir, "working")); return err == nil })

	require.NoError(t, os.MkdirAll(filepath.Join(w.root, ".team", "inbox"), 0o700))
	for _, what := range []string{"first", "second", "third"} {
		n.send("alice", map[string]any{"type": "message", "sender": "lead", "content": "by hand: " + what, "ts": muster.UnixTime(time.Now())})
	}
	inbox := filepath.Join(w.root, ".team/inbox/alice.jsonl")
	var left string
	for line := range strings.Lines(w.read(".team/inbox/alice.jsonl")) {
		if !strings.Contains(line, "second") {
			left += line
		}
	}
	save := func(path, text string) {
		t.Helper()
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	save(inbox, left)

	slow := w.called("slow")
	file := fmt.Sprintf(".tasks/task_%d.json", slow)
	task := n.load(file)
	task["status"], task["mood"] = "completed", "done by hand"
	whole := require.Value(json.MarshalIndent(task, "", "  "))(t)
	save(filepath.Join(w.root, file), string(whole[:len(whole)/2]))
	save(filepath.Join(w.root, file), string(whole))
	w.awaitsEvent("the completion is told", func(e muster.Event) bool { return e.Kind == journal.TaskForeign && e.Task == slow })
	save(filepath.Join(dir, "go"), "")
	out := run.ends(3) // what its owner had done is not landed

	if landed := w.git("log", "--format=%(trailers:key=Muster-Task,valueonly,separator=%x20)", "main..muster/hand"); strings.TrimSpace(landed) != fmt.Sprint(w.called("next")) {
		t.Errorf("commits are of tasks %q", landed)
	}
	if task := n.load(file); task["status"] != "completed" || task["landed"] != nil || task["mood"] != "done by hand" {
		t.Errorf("the task is %v", task)
	}
	if data, err := os.ReadFile(filepath.Join(w.root, ".worktrees", fmt.Sprintf("task-%d-slow", slow), "slow.txt")); err != nil || string(data) != "slow\n" {
		t.Errorf("what its owner had done: %q, %v", data, err)
	}
	foreign := 0
	for _, e := range w.events() {
		switch e.Kind {
		case journal.TaskForeign:
			foreign++
		case journal.StateCorrupt, journal.MailRejected:
			t.Errorf("%+v", e)
		}
	}
	if foreign != 1 {
		t.Errorf("said %d times", foreign)
	}
	words := w.read(".transcripts/alice/log.jsonl")
	w.has("what alice read", words, "by hand: first", "by hand: third")
	w.lacks("what alice read", words, "by hand: second")
	w.muster(0, "doctor")
	if t.Failed() {
		t.Logf("%s\n%s", out, w.told())
	}
}
