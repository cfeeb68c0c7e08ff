package docs

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"muster/internal/testing/require"
)

// commandSpan is a code span that is a command of muster: its words, then its flags and arguments.
var commandSpan = regexp.MustCompile("`muster ([a-z]+)((?: [a-z]+)?)([^`]*)`")

// flagForm finds the flags of a command line.
var flagForm = regexp.MustCompile(`(?:^|\s)(--[a-z-]+)`)

// TestCommands checks that the commands and flags that the text of the pages names exist. Those of fenced blocks are run.
func TestCommands(t *testing.T) {
	helps := map[string]string{}
	help := func(words ...string) string {
		key := strings.Join(words, " ")
		if _, ok := helps[key]; !ok {
			out, _ := exec.Command(filepath.Join(bin, "muster"), append(words, "--help")...).CombinedOutput()
			helps[key] = string(out)
		}
		return helps[key]
	}
	everywhere, err := exec.Command(filepath.Join(bin, "muster"), "help", "flags").Output()
	require.NoError(t, err)
	count := 0
	for _, path := range pages(t) {
		data := require.Value(os.ReadFile(path))(t)
		for _, m := range commandSpan.FindAllStringSubmatch(string(data), -1) {
			count++
			name, sub, rest := m[1], strings.TrimSpace(m[2]), m[3]
			// What is no command has no help with a line of its usage.
			if !strings.Contains(help(name), "\n  muster "+name) {
				t.Errorf("%s: %s: there is no such command", filepath.Base(path), m[0])
				continue
			}
			own, _, _ := strings.Cut(rest, " -- ") // what follows is the command of a lane
			for _, f := range flagForm.FindAllStringSubmatch(own, -1) {
				if !strings.Contains(string(everywhere)+help(name), f[1]) && (sub == "" || !strings.Contains(help(name, sub), f[1])) {
					t.Errorf("%s: %s: there is no flag %s", filepath.Base(path), m[0], f[1])
				}
			}
		}
	}
	if count < 100 {
		t.Errorf("%d commands found: the test looks at the wrong place", count)
	}
}
