//go:build unix

package cli

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"muster/internal/testing/gittest"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
	"muster/internal/testing/tmuxtest"
	"muster/internal/testing/wait"
)

// asksAtTerminal returns a terminal, and what to type there for a run that asks before each of two commands. Then it
// waits for the file go on.
func asksAtTerminal(t *testing.T) (s *tmuxtest.Screen, run string) {
	t.Helper()
	t.Parallel()
	w := newWorld(t)
	s = w.terminal()
	gittest.Write(t, s.Dir, map[string]string{"user/muster/config.yaml": "permissions: {ask: [\"bash(make *)\"]}\n"})
	words := w.words(`speakers:
  lead:
    - do: [{bash: {command: make one || true}}]
    - do: [{bash: {command: make two || true}}]
    - say: All done.
`)
	gittest.Write(t, s.Dir, map[string]string{"go.sh": "clear; CI= XDG_CONFIG_HOME=" + filepath.Join(s.Dir, "user") +
		" muster run x --without-changes --teammates 0 --check true" +
		" --model 'script/" + words + "'; echo exit $?\n"})
	return s, "sh " + filepath.Join(s.Dir, "go.sh")
}

// answerWhen presses a key when the question about a command has stood long enough.
func answerWhen(t *testing.T, s *tmuxtest.Screen, command, key string) {
	t.Helper()
	age := regexp.MustCompile(`(?:permission|plan for 1) +(\d+) s`)
	waits := func() int {
		m := age.FindStringSubmatch(s.Text())
		if m == nil {
			return -1
		}
		return require.Value(strconv.Atoi(m[1]))(t)
	}
	s.Wait(command + `(?s:.*)y yes · n no, with a reason`)
	from := waits()
	wait.For(t, "the question stands", func() bool { return waits() > from+1 })
	s.Keys(key)
}

// One key answers a question of muster run. Afterwards the terminal is the shell's again.
func TestOneKeyAnswersARun(t *testing.T) {
	s, run := asksAtTerminal(t)
	s.Keys(run, "Enter")
	answerWhen(t, s, `make one`, "y")
	s.Wait(`user     yes    lead's permission`)
	answerWhen(t, s, `make two`, "n")
	s.Wait(`> /reject$`)
	s.Keys("-l", "not today")
	s.Keys("Enter")
	s.Wait(`no     lead's permission: not today(?s:.*)All done\.(?s:.*)exit 0\n\$ $`)
	s.Cooked()
}

// The user of a demo that is played decides about the plan, and undoes the last task.
func TestADemoIsPlayed(t *testing.T) {
	tier.All(t)
	t.Parallel()
	s := newWorld(t).terminal()
	s.Tmux("resize-window", "-y", "60")
	s.Keys("clear; CI= muster demo --play; echo exit $?", "Enter")
	shows := func(what string) { // Go may compile its standard library first
		t.Helper()
		wait.Within(t, 10*time.Minute, what, func() bool { return strings.Contains(s.Text(), what) })
	}
	shows("y yes · n no, with a reason")
	answerWhen(t, s, `Replace what Lines returns\.`, "n")
	s.Wait(`> /reject$`)
	s.Keys("-l", "what becomes of the callers?")
	s.Keys("Enter")
	answerWhen(t, s, `compare numbers too`, "y")
	shows("u  undo task 7")
	s.Keys("u")
	shows("exit 0")
	s.Wait(`7 of 7 tasks landed(?s:.*)task 7 is taken back(?s:.*)exit 0\n`)
	s.Cooked()
}

// What was typed before a question came is for the shell. No key is taken then, and the command is named.
func TestNoKeyAnswersWhileTheShellIsTypedFor(t *testing.T) {
	s, run := asksAtTerminal(t)
	s.Keys(run, "Enter")
	s.Wait(`work lands on`)
	s.Keys("-l", "echo shell-$((1+1))")
	s.Wait(`NEEDS YOU(?s:.*)muster requests show`)
	s.Keys("C-c")
	s.Wait(`muster resume\n(?s:.*)\$ $`)
	s.Keys("Enter")
	s.Cooked()
}
