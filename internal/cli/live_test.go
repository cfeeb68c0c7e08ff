//go:build unix

package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"muster/internal/testing/gittest"
	"muster/internal/testing/program"
	"muster/internal/testing/require"
	"muster/internal/testing/tmuxtest"
	"muster/internal/testing/wait"
	"muster/internal/text"
)

func (w *world) terminal() *tmuxtest.Screen {
	w.Helper()
	s := tmuxtest.Start(w.T, w.dir, os.Environ())
	require.NoError(w, os.Symlink(program.Path(w.T), filepath.Join(s.Dir, "muster")))
	return s
}

// inTmux starts a terminal. It returns the file of the script, and the one to which all that the terminal gets is
// copied, as it is.
func inTmux(t *testing.T, script string) (s *tmuxtest.Screen, words, raw string) {
	t.Helper()
	t.Parallel()
	s = newWorld(t).terminal()
	words, raw = filepath.Join(s.Dir, "words.yaml"), filepath.Join(s.Dir, "raw")
	gittest.Write(t, s.Dir, map[string]string{"words.yaml": strings.ReplaceAll(script, "DIR", s.Dir)})
	s.Tmux("pipe-pane", "-o", "exec cat >"+raw)
	return s, words, raw
}

// waitForRaw waits until the terminal has got a text: the copy comes a little later than the screen.
func waitForRaw(t *testing.T, file, text string) {
	t.Helper()
	wait.For(t, "the terminal gets "+text, func() bool { return strings.Contains(rawOf(t, file), text) })
}

// silent are the sequences that set the title of the window, and that ask for its ground. They end with what rings
// elsewhere.
var silent = regexp.MustCompile("\x1b\\](2|11);[^\a]*\a")

// rawOf returns what the terminal got, without silent sequences.
func rawOf(t *testing.T, file string) string {
	t.Helper()
	return silent.ReplaceAllString(string(require.Value(os.ReadFile(file))(t)), "")
}

const writesToUser = `
speakers:
  lead:
    - do: [{bash: {command: sleep 1}}]
    - do: [{send_message: {to: user, content: Look at this.}}]
    - say: All said.
`

// The conversation rings too, between two frames.
func TestAConversationRings(t *testing.T) {
	s, words, raw := inTmux(t, writesToUser)
	s.Keys("muster --model script/"+text.ShellQuote(words), "Enter")
	s.Wait(`(?m)^muster\s+/(?s:.+)/repo,\s+on main\nmodel   script/(?s:.+)\ncheck   none: muster init sets one up\nwork    lands on muster/repo; main changes only with /merge\nrights  commands are not confined: they run with your rights\n` +
		`\n> $`)
	if got := rawOf(t, raw); strings.Contains(got, "\a") {
		t.Errorf("it rang before anything was said:\n%q", got)
	}
	s.Keys("hello", "Enter")
	s.Wait(`lead to you: Look at this`)
	waitForRaw(t, raw, "\a")
	s.Wait(`All said\.(?s:.*)lead      idle`) // a lead that is at work is not left without a question
	s.Keys("/quit", "Enter")
	s.Wait(`\n\$ $`)
	// The opening has said it, so the note of the run does not.
	if got := rawOf(t, raw); !strings.Contains(got, "work lands on") || strings.Count(got, "they run with your rights") != 1 {
		t.Errorf("the rights are not said once:\n%s", got)
	}
}

// status --watch takes the terminal until Ctrl-C, shows what changes, and leaves the screen as it was.
func TestStatusIsWatched(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.terminal()
	s.Keys("clear; muster task add one; muster status --watch", "Enter")
	s.Wait(`^team repo   no run yet\nBOARD   1 ready$`)
	add := exec.Command(program.Path(t), "task", "add", "two")
	add.Dir = w.dir
	require.NoError(t, add.Run())
	s.Wait(`BOARD   2 ready$`)
	s.Keys("C-c")
	s.Wait(`task 1 added\n\$ $`)
	s.Cooked()
}
