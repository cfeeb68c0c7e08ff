//go:build linux

package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"muster/internal/testing/tier"
	"muster/internal/testing/tmuxtest"
)

func leaves(s *tmuxtest.Screen) {
	s.Keys("/quit", "Enter")
	s.Wait(`(?s)what becomes of the team.*s +stop it.*stay here`)
	s.Keys("b")
	s.Wait(`(?s)the team works on in the background.*\n\$ $`)
}

func attaches(s *tmuxtest.Screen) {
	s.Keys("clear; muster attach", "Enter")
	s.Wait(`a team is at work here, in another process`)
}

func goesOn(s *tmuxtest.Screen) {
	s.Keys("clear; muster --continue", "Enter")
	s.Wait(`(?s)alice +again.*alice +working.*\n> $`)
}

// TestBackground leaves a team at work, comes back to it, stops it, goes on with it, leaves it again, and reads how its
// run has ended.
func TestBackground(t *testing.T) {
	tier.All(t)
	w := newWorld(t)
	s := w.screen(patient)
	s.Keys(`muster "hi there"`, "Enter")
	s.Wait(`(?s)> hi there\n.*Hello\. Say plan.*waits for you.*\n> $`)
	s.Keys("plan it all with care", "Enter")
	s.Wait(`(?s)lead +plan .*alice +working.*bash while.*\n> $`)
	s.Keys("C-d")
	s.Wait(`(?s)what becomes of the team.*s +stop it.*stay here`)
	s.Keys("Escape")
	s.Wait(`\n> $`)
	s.Keys("/quit", "Enter")
	s.Wait(`(?s)what becomes of the team.*s +stop it.*stay here`)
	s.Keys("b")
	s.Wait(`(?s)the team works on in the background.*come back: muster attach.*\n\$ $`)
	s.Cooked()

	s.Keys("clear; muster status", "Enter")
	s.Wait(`(?s)goal: plan it all with care.*alice.*bash while.*\n\$ $`)
	attaches(s)
	s.Keys("how is it?", "Enter")
	s.Wait(`It goes well\.`)
	s.Keys("C-d")
	s.Wait(`(?s)the team works on.*\n\$ $`)

	s.Keys("clear; muster stop", "Enter")
	s.Wait(`(?s)stopped; the state is kept, 1 task is open.*\n\$ $`)
	w.awaits("nothing of it runs", w.alone)
	s.Keys("clear; muster attach", "Enter")
	s.Wait(`(?s)the team has stopped, with 1 open task.*muster resume.*\n\$ $`)

	// Who is attached reads who has stopped the team, and that a process that was killed has died.
	leave := func() {
		goesOn(s)
		leaves(s)
		attaches(s)
	}
	leave()
	w.muster(0, "stop")
	s.Wait(`(?s)muster: the team was stopped by the user with muster stop; 1 task is open\n +go on: muster resume.*\n\$ $`)
	leave()
	for pid, line := range w.running() {
		if n, err := strconv.Atoi(pid); err == nil && strings.HasPrefix(line, "muster --continue") {
			_ = syscall.Kill(n, syscall.SIGKILL)
		}
	}
	s.Wait(`(?s)muster: the process of the team has died; the state is kept; 1 task is open\n +go on: muster resume.*\n\$ $`)

	goesOn(s)
	s.Keys("C-c", "C-c", "C-c")
	s.Wait(`(?s)the state is kept; 1 task is open.*\n\$ .*$`)
	goesOn(s)
	leaves(s)
	w.write(filepath.Join(w.base, "go"), "")
	w.isOver()
	s.Keys("clear; muster attach", "Enter")
	s.Wait(`(?s)the run has ended \d+ s ago.*1 of 1 task landed on muster/repo.*\n\$ $`)
}

// While somebody is attached, a team in the background does not end: its lead waits for the next words. It ends when
// nobody is there any more.
func TestBackgroundWaitsForWhoIsAttached(t *testing.T) {
	tier.All(t)
	w := newWorld(t)
	s := w.screen(talkers)
	s.Keys(`muster "plan it"`, "Enter")
	s.Wait(`(?s)Hello\. Say plan`)
	s.Keys("plan", "Enter")
	s.Wait(`(?s)alice +working.*bash while.*\n> $`)
	leaves(s)
	attaches(s)
	w.write(filepath.Join(w.base, "go"), "")
	s.Wait(`(?s)All of it has landed\..*`)
	s.Keys("how is it?", "Enter")
	s.Wait(`It goes well\.`)
	s.Keys("C-d")
	s.Wait(`(?s)the team works on.*\n\$ $`)
	w.isOver()
}

// A conversation whose first process is killed ends as one whose terminal was closed: nothing is left running, and the
// state is kept.
func TestBackgroundEndsWithItsFirstProcess(t *testing.T) {
	tier.All(t)
	w := newWorld(t)
	s := w.screen(talkers)
	s.Keys("muster", "Enter")
	s.Wait(`rights  (?s:.*)\n>`)
	s.Keys("plan", "Enter")
	s.Wait(`(?s)Hello\. Say plan`)
	s.Keys("plan", "Enter")
	s.Wait(`(?s)alice +working.*bash while.*\n> $`)
	shell := ""
	for pid, line := range w.running() {
		if strings.HasPrefix(line, "sh -i ") {
			shell = pid
		}
	}
	killed := 0
	for pid, line := range w.running() {
		stat, _ := os.ReadFile(filepath.Join("/proc", pid, "stat"))
		if n, err := strconv.Atoi(pid); err == nil && strings.HasPrefix(line, "muster ") && strings.Contains(string(stat), " S "+shell+" ") {
			killed++
			_ = syscall.Kill(n, syscall.SIGKILL)
		}
	}
	if killed != 1 {
		t.Fatalf("%d processes are the shell's %s\n%s", killed, shell, strings.Join(w.processes(), "\n"))
	}
	w.isInterrupted()
}

// A run and a resume in the background return when the team is at work, with nothing of the caller's left open, and say
// at once what prevents them.
func TestRunInTheBackground(t *testing.T) {
	w := newWorld(t)
	words := w.words(eager(patient))
	r := w.start("run", "--background", "--model", words, "--land", "no such branch", "greet").ends(1)
	w.has("why it cannot begin", r.stderr, "cannot be the name of a branch")
	r = w.start("run", "--background", "--model", words, "greet").ends(0)
	if want := "muster: the team works in the background"; !strings.HasPrefix(r.stderr, want) {
		t.Errorf("it says %q before %q", r.stderr, want)
	}
	w.has("what it says", r.stderr, "the team works in the background", "come back: muster attach")
	w.awaits("the status names what alice does", func() bool {
		return strings.Contains(w.start("status").ends(0).stdout, "bash while")
	})
	w.has("the stop", w.start("stop").ends(0).stdout, "stopped; the state is kept, 1 task is open")
	w.awaits("nothing of it runs", func() bool { return len(w.processes()) == 0 })
	w.has("the resume", w.start("resume", "--background").ends(0).stderr, "the team works in the background")
	w.write(filepath.Join(w.base, "go"), "")
	w.isOver()
	w.has("the summary", w.start("attach").ends(0).stdout, "1 of 1 task landed")
}
