//go:build linux

package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"muster"
	"muster/internal/testing/program"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
	"muster/internal/testing/tmuxtest"
	"muster/journal"
)

// talkers are a lead that answers, plans when it is asked to, and thinks long when it is asked to; and a teammate.
const talkers = `
speakers:
  lead:
    - say: "Hello. Say plan when I shall begin."
    - cue: think
      say: "one two three four five six seven eight nine ten, and so on, and so on"
      wait: 1m
scenes:
  - cue: '>\nplan'
    who: [lead]
    turns:
      - do: [{task_create: {subject: greet}}, {spawn_teammate: {name: alice, role: coder, prompt: You write code.}}]
      - say: "alice is at it."
  - cue: '>\nhow is it'
    who: [lead]
    turns:
      - say: "It goes well."
  - cue: All done
    who: [lead]
    turns:
      - say: "All of it has landed."
  - cue: 'Interrupted'
    who: [alice]
    turns:
      - do: [{bash: {command: "echo hello > greeting"}}]
  - cue: '(?m)^Task #(?P<id>\d+): (?P<what>\w+)'
    who: [alice]
    turns:
      - do: [{bash: {command: "while [ ! -e \"$BASE/go\" ]; do sleep 0.05; done; echo hello > greeting"}}]
      - do: [{send_message: {to: user, content: "a word to the user"}}]
      - do: [{complete_task: {task_id: "${number:id}", summary: "Says hello."}}]
`

// patient is talkers whose teammate waits for the file go also when it was interrupted.
var patient = strings.Replace(talkers, `"echo hello > greeting"`, `"while [ ! -e \"$BASE/go\" ]; do sleep 0.05; done; echo hello > greeting"`, 1)

func eager(words string) string {
	return strings.Replace(words, `    - say: "Hello. Say plan when I shall begin."`, `    - do: [{task_create: {subject: greet}}, {spawn_teammate: {name: alice, role: coder, prompt: You write code.}}]
    - say: "alice is at it."`, 1)
}

func aliceWorks(e muster.Event) bool { return e.Kind == journal.ToolStarted && e.Member == "alice" }

func (w *world) screen(words string) *tmuxtest.Screen {
	w.t.Helper()
	s := tmuxtest.Start(w.t, w.root, append(w.env, "MUSTER_MODEL="+w.words(words)))
	require.NoError(w.t, os.Symlink(program.Path(w.t), filepath.Join(s.Dir, "muster")))
	return s
}

// alone reports whether nothing runs but the terminal and its shell.
func (w *world) alone() bool {
	return !slices.ContainsFunc(w.processes(), func(p string) bool { return !strings.Contains(p, " tmux ") && !strings.Contains(p, " sh -i ") })
}

// TestTalk is a conversation in a real terminal: start, type, paste, resize, commands, work that goes on, quit, resume.
func TestTalk(t *testing.T) {
	w := newWorld(t)
	s := w.screen(talkers)
	s.Keys("muster", "Enter")
	s.Wait(`rights  (?s:.*)\n>`)
	s.Keys("hi there", "Enter")
	s.Wait(`(?s)> hi there\n.*Hello\. Say plan when I shall begin\.\n.*lead +idle.*waits for you.*\n> $`)

	s.Keys("/he", "Tab", "Enter")
	s.Wait(`Ctrl-C +stops the lead's turn`)
	s.Paste("plan\nwith two lines")
	s.Wait(`> plan\n  with two lines$`)
	s.Keys("Enter")
	s.Wait(`(?s)alice +takes +1 greet.*alice +working +1 greet.*bash while.*\n> $`)
	s.Keys("how is it?", "Enter")
	s.Wait(`(?s)how is it\?\n.*It goes well\.`)
	s.Keys("/tasks", "Enter")
	s.Wait(`(?s)> /tasks\n.*greet.*alice`)

	s.Resize(60)
	s.Wait(`bash while.*\.\.\. +\d+ s\nboard .*\n> $`) // drawn anew; a row that the terminal itself has wrapped is no row of ours
	s.Keys("/team", "Enter")
	text := s.Wait(`(?s)> /team\n.*alice.*\nlead .*\nalice .*\n>`)
	for line := range strings.Lines(text[strings.Index(text, "> /team"):]) {
		if len([]rune(strings.TrimRight(line, "\n"))) > 60 {
			t.Errorf("wider than the terminal: %q", line)
		}
	}
	s.Keys("/quit", "Enter")
	s.Wait(`(?s)what becomes of the team.*s +stop it.*Esc\s+stay here`)
	s.Keys("s")
	s.Wait(`(?s)the state is kept; 1 task is open.*\n\$ $`)
	s.Cooked()
	s.Resize(80)

	s.Keys("clear; muster", "Enter")
	s.Wait(`(?s)a team stopped here.*greet.*/resume.*\n>`)
	w.write(filepath.Join(w.base, "go"), "")
	s.Keys("/resume", "Enter")
	s.Wait(`(?s)alice to you: a word to the user.*landing +lands +1 greet`)
	s.Wait(`(?s)All of it has landed\..*not in main: 1 file, \+1 -0   /merge.*waits for you.*\n> $`) // all are idle
	s.Keys("Up", "Up")
	s.Wait(`\n> /quit$`) // the history outlives the process
	s.Keys("Enter")
	s.Wait(`(?s)1 of 1 task landed on muster/repo.*m  merge it into main: 1 file, \+1 -0 +any other key  leave it$`)
	s.Keys("x")
	s.Wait(`leave it\nnot merged; later: muster merge\n\$ $`)
	s.Cooked()
	w.awaits("nothing of it runs", w.alone)
}

// TestTalkCtrlC stops a turn, not the team; twice, it leaves with the state kept.
func TestTalkCtrlC(t *testing.T) {
	tier.All(t)
	w := newWorld(t)
	s := w.screen(talkers)
	s.Keys("muster", "Enter")
	s.Wait(`rights  (?s:.*)\n>`)
	s.Keys("hi", "Enter")
	s.Wait(`(?s)waits for you.*\n> $`)
	s.Keys("some words", "C-c")
	s.Wait(`\n> $`) // the line is cleared, nothing is stopped
	s.Keys("plan", "Enter")
	s.Wait(`(?s)alice is at it\..*bash while.*waits for|(?s)waits for.*bash while`)
	s.Keys("think", "Enter")
	s.Wait(`lead +working +turn \d+ +thinks`)
	s.Keys("C-c")
	s.Wait(`(?s)stopped: the lead waits for you, the team works on.*alice +working`)
	// One press asks if it comes soon after the notice, and the next one stops the team. Any other one is then the
	// shell's, which shows it as ^C.
	s.Keys("C-c", "C-c", "C-c")
	s.Wait(`(?s)the state is kept; 1 task is open.*\$ $`)
	s.Cooked()
	w.isInterrupted()
}

// A signal ends a conversation without a terminal as it ends a run: the exit code is 130 and the state is kept.
func TestTalkPipedIsInterrupted(t *testing.T) {
	tier.All(t)
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			f := require.Value(os.Open(w.write(filepath.Join(w.base, "in"), "hi there\nplan\n")))(t)
			defer f.Close()
			p := w.startWith(f, "--model", w.words(talkers))
			w.awaitsEvent("alice works", aliceWorks)
			require.NoError(t, p.cmd.Process.Signal(sig))
			w.has("stderr", p.ends(130).stderr, "the state is kept; 1 task is open", "muster resume")
			w.awaits("nothing of it runs", w.alone)
			w.write(filepath.Join(w.base, "go"), "")
			w.has("stdout", w.muster(0, "resume").stdout, "1 of 1 task landed")
		})
	}
}
