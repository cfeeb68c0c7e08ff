//go:build linux

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
	"muster/internal/testing/wait"
)

// slow is a team whose every step can be met in the middle. Its tools leave children that do not end by themselves, in
// sessions of their own. Each file is written several times: what was cut off is never run again by the runtime.
const slow = `
speakers:
  lead:
    - do:
        - task_create: {subject: one, description: Write one.}
        - task_create: {subject: two, description: Write two.}
        - task_create: {subject: three, description: Write three., blocked_by: [one, two]}
        - spawn_teammate: {name: alice, role: coder, prompt: You write files.}
        - spawn_teammate: {name: bob, role: coder, prompt: You write files too.}
    - do: [{wait: {}}]
      until: All done
    - say: All three have landed.
scenes:
  - cue: 'Task #\d+: one\n'
    who: [coder]
    turns:
      - do:
          - bash: {command: "setsid sleep 300 & sleep 300", background: true}
          - write_file: {path: one.txt, content: "one\n"}
      - do: [{stop_background: {id: bg-1}}]
  - cue: 'Task #(?P<id>\d+): (?P<word>one|two|three)\n'
    who: [coder]
    turns:
      - do:
          - write_file: {path: "${word}.txt", content: "${word}\n"}
          - bash: {command: "setsid sleep 300 & setsid -f sleep 300; touch \"$BASE/${word}.slept\"; sleep 0.3"}
      - do:
          - write_file: {path: "${word}.txt", content: "${word}\n"}
          - send_message: {to: lead, content: "${word} is half done"}
          - bash: {command: "sleep 0.1"}
      - do:
          - write_file: {path: "${word}.txt", content: "${word}\n"}
      - do: [{complete_task: {task_id: "${number:id}", summary: "Writes ${word}."}}]
      - cue: came back|nterrupted|unknown
        do: [{complete_task: {task_id: "${number:id}", summary: "Writes ${word}."}}]
`

// slowCheck leaves children too, and notes in the world how often it ran.
const slowCheck = `setsid sleep 300 & mktemp "$BASE/checks/XXXXXX" && sleep 0.3 && test -e README`

// slowWorld is a world with that team in it, not yet started, and how to start it. The model is asked over the wire.
func slowWorld(t *testing.T) (w *world, run []string) {
	t.Helper()
	w = newWorld(t)
	require.NoError(t, os.Mkdir(filepath.Join(w.base, "checks"), 0o755))
	return w, []string{"run", "--team", "slow", "--model", "anthropic/stand-in@" + serve(t, slow).url, "--check", slowCheck,
		"write three files"}
}

// goesOn resumes the run to its end, with no word about what it was started with, and checks that all has landed once.
func (w *world) goesOn() {
	w.t.Helper()
	out := w.muster(0, "resume")
	w.has("stdout", out.stdout, "3 of 3 tasks landed on muster/slow")
	w.landedOnce("muster/slow", "1", "2", "3")
	w.untouched()
	w.soonGone()
	if w.t.Failed() {
		w.t.Logf("%s\n%s", out, w.told())
	}
}

func (w *world) exists(name string) func() bool {
	return func() bool {
		_, err := os.Stat(filepath.Join(w.base, name))
		return err == nil
	}
}

func (w *world) checks() int {
	all, _ := os.ReadDir(filepath.Join(w.base, "checks"))
	return len(all)
}

// soonGone checks that no process of the world is alive soon, and returns how long that took.
func (w *world) soonGone() time.Duration {
	w.t.Helper()
	var left []string
	took, gone := wait.Poll(time.Minute, func() bool {
		left = w.processes()
		return len(left) == 0
	})
	if !gone {
		w.t.Errorf("alive after the end:\n%s", strings.Join(left, "\n"))
		w.killAll()
	}
	return took
}

// TestCtrlC interrupts a run as a terminal does, and goes on with it. It is not parallel, and in all it holds the
// promise that nothing is alive a second later.
func TestCtrlC(t *testing.T) {
	w, run := slowWorld(t)
	p := w.start(run...)
	w.awaits("a tool runs", w.exists("one.slept"))
	if all := strings.Join(w.processes(), "\n"); strings.Count(all, "sleep 300") < 2 {
		t.Errorf("the children that must not survive are not there:\n%s", all)
	}
	pressed := time.Now()
	require.NoError(t, syscall.Kill(-p.cmd.Process.Pid, syscall.SIGINT))
	out := p.ends(130)
	t.Logf("it ended %s after Ctrl-C", time.Since(pressed).Round(time.Millisecond))
	w.has("stderr", out.stderr, "interrupted; the state is kept", "muster resume")
	if out.stdout != "" {
		t.Errorf("stdout is %q", out.stdout)
	}
	if took := w.soonGone(); took > time.Second && tier.IsAll() {
		t.Errorf("something was alive for %s after the end", took)
	}
	w.untouched()
	w.has("status", w.muster(0, "status").stdout, "muster resume")
	w.has("run", w.muster(1, run...).stderr, "a team stopped here with 3 open tasks", "muster resume", "muster run --add", "muster archive")
	w.goesOn()
}

// TestKill kills the program at moments that events tell, and goes on. Lock files of a git that was killed with it are
// in nobody's way.
func TestKill(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		when string
		wait func(*world)
	}{
		{"a task is claimed", func(w *world) { w.awaitsEvent("a task is claimed", kind("task.claimed")) }},
		{"a tool runs", func(w *world) { w.awaits("a tool runs", w.exists("one.slept")) }},
		{"mail is sent", func(w *world) {
			w.awaitsEvent("mail is sent", func(e muster.Event) bool { return e.Kind == "mail.sent" && e.Text("type") == "message" })
		}},
		{"a check runs", func(w *world) {
			w.awaits("the check of a landing runs", func() bool { return w.checks() >= 2 })
		}},
		{"a task has landed", func(w *world) { w.awaitsEvent("a task has landed", kind("task.completed")) }},
	} {
		t.Run(c.when, func(t *testing.T) {
			if c.when != "a check runs" {
				tier.All(t)
			}
			t.Parallel()
			w, run := slowWorld(t)
			p := w.start(run...)
			c.wait(w)
			require.NoError(t, p.cmd.Process.Kill())
			<-p.done
			w.soonGone()
			w.untouched()
			if c.when == "a check runs" { // as after a kill in the middle of a transaction of git
				refs := strings.Fields(w.git("for-each-ref", "--format=%(refname)", "refs/muster/landing"))
				if len(refs) == 0 {
					t.Fatalf("nothing was landing\n%s", w.told())
				}
				for _, ref := range refs {
					w.write(".git/"+ref+".lock", "")
				}
			}
			w.goesOn()
		})
	}
}
