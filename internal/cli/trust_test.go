//go:build unix

package cli

import (
	"testing"

	"muster/internal/testing/gittest"
)

// A user at a terminal is asked once for each content of the repository's settings. A no is remembered, and so is a yes.
func TestAUserIsAskedOnceWhetherToTrust(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.terminal()
	write := func(name, text string) { gittest.Write(t, w.dir, map[string]string{name: text}) }
	words := w.words("speakers: {lead: [{say: Hello.}]}\n")
	write("go.sh", "clear; muster run hello --without-changes --model 'script/"+words+"'; echo exit $?\n")
	write("muster.yaml", "check: test 1 = 1\n")
	s.Keys("sh go.sh", "Enter")
	s.Wait(`muster.yaml sets check:\n  test 1 = 1\n\ntrust it\? \[y/N\]`)
	s.Keys("what is that", "Enter")
	s.Wait(`answer y or n:`)
	s.Keys("n", "Enter")
	s.Wait(`you have not trusted it(?s:.*)exit 1\n`)
	s.Keys("sh go.sh", "Enter")
	s.Wait(`^(?s:[^?]*)you have not trusted it(?s:.*)exit 1\n`)
	write("muster.yaml", "check: test 2 = 2\n")
	s.Keys("sh go.sh", "Enter")
	s.Wait(`  test 2 = 2\n\ntrust it\? \[y/N\]`)
	s.Keys("y", "Enter")
	s.Wait(`Hello\.(?s:.*)exit 0\n`)
	s.Keys("sh go.sh", "Enter")
	s.Wait(`^(?s:[^?]*)Hello\.(?s:.*)exit 0\n`)
	write("muster.yaml", "check: test 3 = 3\n")
	s.Keys("sh go.sh", "Enter")
	s.Wait(`muster.yaml has changed check:\n  - test 2 = 2\n  \+ test 3 = 3\n`)
	s.Keys("C-c")
	s.Wait(`\^C\n\$ $`) // the shell of go.sh is interrupted too
}
