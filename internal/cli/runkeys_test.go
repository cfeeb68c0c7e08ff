//go:build unix

package cli

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"muster/internal/terminal"
	"muster/internal/testing/gittest"
	"muster/internal/testing/program"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
	"muster/internal/testing/tmuxtest"
	"muster/internal/testing/wait"
)

// asksAtTerminal returns a terminal, and what to type there for a run that asks before the first command and runs the
// second one.
func asksAtTerminal(t *testing.T, second string) (w *world, s *tmuxtest.Screen, run string) {
	t.Helper()
	t.Parallel()
	w = newWorld(t)
	s = w.terminal()
	gittest.Write(t, s.Dir, map[string]string{"user/muster/config.yaml": "permissions: {ask: [\"bash(make *)\"]}\n"})
	words := w.words(`speakers:
  lead:
    - do: [{bash: {command: make one || true}}]
    - do: [{bash: {command: ` + second + `}}]
    - say: All done.
`)
	gittest.Write(t, s.Dir, map[string]string{"go.sh": "clear; CI= XDG_CONFIG_HOME=" + filepath.Join(s.Dir, "user") +
		" muster run x --without-changes --teammates 0 --check true" +
		" --model 'script/" + words + "'; echo exit $?\n"})
	return w, s, "sh " + filepath.Join(s.Dir, "go.sh")
}

// elsewhere returns a muster command in another process, in the repository of the world.
func (w *world) elsewhere(args ...string) *exec.Cmd {
	w.Helper()
	c := exec.Command(program.Path(w.T), args...)
	c.Dir = w.dir
	return c
}

// answerWhen presses a key when the question about a command has stood long enough.
func answerWhen(t *testing.T, s *tmuxtest.Screen, command, key string) {
	t.Helper()
	s.Wait(command + `(?s:.*)y +yes(?s:.*)n +no`)
	seen := time.Now()
	wait.For(t, "the question stands", func() bool { return time.Since(seen) > terminal.AnswerAfter+time.Second/10 })
	s.Keys(key)
}

// One key answers a question of muster run. Afterwards the terminal is the shell's again.
func TestOneKeyAnswersARun(t *testing.T) {
	_, s, run := asksAtTerminal(t, "make two || true")
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
	shows("follow this plan?")
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

// What is typed while the question is answered elsewhere is not given to the shell.
func TestTheShellGetsNoHalfOfALine(t *testing.T) {
	w, s, run := asksAtTerminal(t, "sleep 600")
	s.Keys(run, "Enter")
	s.Wait(`make one(?s:.*)y +yes`)
	s.Keys("-l", "echo half")
	s.Wait(`> echo half$`)
	all, err := w.elsewhere("requests", "--json").Output()
	require.NoError(t, err)
	id := regexp.MustCompile(`"request_id": "(\w+)"`).FindSubmatch(all)
	require.NoError(t, w.elsewhere("reject", string(id[1]), "no").Run())
	s.Wait(`lead +working .*bash sleep 600 +[3-9] s(?s:.*)\n> echo half$`) // the question has gone for a while
	s.Keys("-l", " of a line")
	s.Keys("Enter")
	s.Wait(`> echo half of a line\n(?s:.*)this was not sent`)
	s.Keys("C-c")
	s.Wait(`muster resume\n(?s:.*)\$ $`)
}

// A run in the background of its shell goes on while a question waits, and names the command that answers.
func TestARunInTheBackgroundIsNotStopped(t *testing.T) {
	_, s, run := asksAtTerminal(t, "make two || true")
	s.Keys("set -m; "+run+" & cat", "Enter") // which has the terminal
	s.Wait(`NEEDS YOU(?s:.*)muster requests show`)
	s.Keys("C-c")
	s.Keys("clear; jobs", "Enter")
	s.Wait(`Running`)
	s.Keys("clear; kill %1", "Enter")
	s.Wait(`muster resume`)
}

// What was typed before a question came is for the shell. No key is taken then, and the command is named.
func TestNoKeyAnswersWhileTheShellIsTypedFor(t *testing.T) {
	_, s, run := asksAtTerminal(t, "make two || true")
	s.Keys(run, "Enter")
	s.Wait(`work lands on`)
	s.Keys("-l", "echo shell-$((1+1))")
	s.Wait(`NEEDS YOU(?s:.*)muster requests show`)
	s.Keys("C-c")
	s.Wait(`muster resume\n(?s:.*)\$ $`)
	s.Keys("Enter")
	s.Cooked()
}
