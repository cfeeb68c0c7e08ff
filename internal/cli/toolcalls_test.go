//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/internal/testing/require"
	"muster/internal/text"
)

// In a conversation the calls of the lead's tools have a line each, and can be opened.
func TestToolCallsOpen(t *testing.T) {
	s, words, _ := inTmux(t, `
speakers:
  lead:
    - do: [{bash: {command: "echo out; echo 'more\u009b[2J'"}}, {read_file: {path: none.txt}}]
    - do: [{task_create: {subject: greet}}]
    - say: Two calls.
`)
	require.NoError(t, os.WriteFile(filepath.Join(s.Dir, "go"), nil, 0o600))
	s.Keys("clear; muster --model script/"+text.ShellQuote(words), "Enter")
	s.Wait(`> $`)
	s.Keys("/open", "Enter")
	s.Wait(`the lead has called no tool since this conversation was opened\n`)
	s.Keys("greet the world", "Enter")
	s.Wait(`(?s)bash  echo out; .*  \[1\]\n +out\n +more\[2J\n.*read_file  none.txt  error: .*  \[2\]\n`)
	s.Wait(`Two calls\.`) // on a busy machine it is shown before the lines of the calls
	s.Keys("/open 1", "Enter")
	s.Wait(`(?s)> /open 1\n.*bash\n  command: echo out; echo 'more\[2J'\n  output\n    out\n    more\[2J\n`)
	s.Keys("/open", "Enter")
	s.Wait(`(?s)> /open\n.*read_file\n  path: none.txt\n  error\n    .*none\.txt`)
	s.Keys("/open 7", "Enter")
	s.Wait(`there is no tool call 7: the lines of the lead's tools have their numbers\n`)
	s.Keys("/open x", "Enter")
	text := s.Wait(`"x" is not the number of a tool call: /open 3, or /open for the last one\n`)
	if strings.Contains(text, "task_create") {
		t.Errorf("the plan has two lines:\n%s", text)
	}
	s.Keys("/quit", "Enter")
	s.Wait(`Esc\s+stay here`)
	s.Keys("s")
	s.Wait(`\n\$ $`)
}
