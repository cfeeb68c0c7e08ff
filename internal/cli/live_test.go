//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"muster/internal/testing/gittest"
	"muster/internal/testing/program"
	"muster/internal/testing/tier"
	"muster/internal/testing/tmuxtest"
	"muster/internal/testing/wait"
	"muster/internal/text"
)

// terminal starts a shell in a terminal, in the world's repository, with muster in its path.
func (w *world) terminal() *tmuxtest.Screen {
	w.Helper()
	s := tmuxtest.Start(w.T, w.dir, os.Environ())
	if err := os.Symlink(program.Path(w.T), filepath.Join(s.Dir, "muster")); err != nil {
		w.Fatal(err)
	}
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

// rawOf returns what the terminal has got.
func rawOf(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

const writesToUser = `
speakers:
  lead:
    - do: [{bash: {command: sleep 1}}]
    - do: [{send_message: {to: user, content: Look at this.}}]
    - say: All said.
`

// A run rings when it writes to the user and when it ends, on a terminal that may be redrawn only.
func TestARunRings(t *testing.T) {
	tier.All(t)
	s, words, raw := inTmux(t, writesToUser)
	s.Keys("muster run x --plain --model script/"+text.ShellQuote(words), "Enter")
	s.Wait(`All said\.\n.*\n?\$ $`)
	s.Keys("TERM=dumb muster run x --model script/"+text.ShellQuote(words), "Enter")
	s.Wait(`(?s)All said.*All said\.\n.*\n?\$ $`)
	if got := rawOf(t, raw); strings.ContainsAny(got, "\a") || strings.Contains(got, "\x1b[") {
		t.Errorf("plain lines:\n%q", got)
	}
	s.Keys("clear", "Enter")
	s.Wait(`^\$ $`)
	s.Keys("MUSTER_NOTIFY=osc muster run x --model script/"+text.ShellQuote(words), "Enter")
	s.Wait(`All said\.\n.*\n?\$ $`)
	waitForRaw(t, raw, "]9;muster: lead writes to you")
}

// The conversation rings too, between two frames.
func TestAConversationRings(t *testing.T) {
	s, words, raw := inTmux(t, writesToUser)
	s.Keys("muster --model script/"+text.ShellQuote(words), "Enter")
	s.Wait(`(?m)^here    repo, on main, model\s+script/\S+\ncheck   none, so what lands is not verified .*\nrights  commands are not confined: they run with your rights\n` +
		`open    nothing: say what you want; /help lists the commands\n> $`)
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

// The live rows are drawn in one piece each time, fit a narrow terminal, and are gone at the end.
func TestLiveRowsOnANarrowTerminal(t *testing.T) {
	tier.All(t)
	// Behind ssh nothing but TERM tells of tmux, and GNU screen wraps its rows anew as tmux does.
	for name, env := range map[string]string{"tmux": "", "by TERM alone": "env -u TMUX TERM=screen-256color "} {
		t.Run(name, func(t *testing.T) { resizeLiveRows(t, env) })
	}
}

// waitForNextSecond waits until rows that fit the pattern are drawn anew, which they are each second. A frame that is on
// its way when a terminal changes its size is drawn for the old one, and what is left of it is nobody's fault.
func waitForNextSecond(t *testing.T, s *tmuxtest.Screen, pattern string) {
	t.Helper()
	seconds := func() string {
		all := regexp.MustCompile(`(\d+) s\nboard`).FindAllStringSubmatch(s.Wait(pattern), -1)
		return all[len(all)-1][1]
	}
	first := seconds()
	wait.For(t, "the next second", func() bool { return seconds() != first })
}

func resizeLiveRows(t *testing.T, env string) {
	s, words, raw := inTmux(t, `
speakers:
  lead:
    - do: [{task_create: {subject: count the words of all the files}}, {claim_task: {task_id: 1}}]
    - do: [{bash: {command: "while test ! -e DIR/go; do sleep 0.1; done"}}]
    - do: [{write_file: {path: count, content: "1\n"}}]
    - do: [{complete_task: {task_id: 1, summary: Counted.}}]
    - say: Counted.
`)
	s.Resize(30)
	s.Keys("clear; "+env+"muster run x --teammates 0 --model script/"+text.ShellQuote(words), "Enter")
	waitForNextSecond(t, s, `\n\nlead      1: bash .* s\nboard      1 in progress$`)
	s.Resize(200)
	waitForNextSecond(t, s, `\n\nlead      working  1 count the .* s\nboard      1 in progress$`)
	s.Resize(30)
	text := s.Wait(`\n\nlead      1: bash .* s\nboard      1 in progress$`)
	if strings.Count(text, "board  ") != 1 || strings.Count(text, "lead      working")+strings.Count(text, "lead      1: bash") != 1 {
		t.Errorf("rows are left from before:\n%s", text)
	}
	if err := os.WriteFile(filepath.Join(s.Dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if text = s.Wait(`take them:  muster merge\n\$ $`); strings.Contains(text, "1: bash") {
		t.Errorf("rows are left at the end:\n%s", text)
	}
	waitForRaw(t, raw, "take them")
	got := rawOf(t, raw)
	if strings.Count(got, "\x1b[?2026h") < 3 || strings.Count(got, "\x1b[?2026h") != strings.Count(got, "\x1b[?2026l") {
		t.Errorf("not synchronized:\n%q", got)
	}
}
