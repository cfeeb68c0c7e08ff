//go:build linux

package hostile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/internal/testing/require"
	"muster/internal/testing/tier"
)

// setUpTraps makes a result whose checkout has a git directory that starts a program, and links that lead out.
const setUpTraps = `mkdir -p node_modules
ln -s "$OUT" node_modules/out
ln -s "$USER_HOME/.netrc" node_modules/netrc
cat > node_modules/evil <<EOF
#!/bin/sh
cat '$USER_HOME/.netrc'
for dir in '$OUT' '$USER_HOME' '$REPO'; do echo x > "\$dir/evil"; done
EOF
chmod +x node_modules/evil
git config core.fsmonitor "$PWD/node_modules/evil"
`

// TestWhatASetUpLeaves has a set-up leave traps where muster lists and copies what it has made. Without a sandbox the
// program runs: so it would be found.
func TestWhatASetUpLeaves(t *testing.T) {
	for name, isConfined := range map[string]bool{"bubblewrap": true, "Landlock": true, "open checks": true, "no sandbox": false} {
		t.Run(name, func(t *testing.T) {
			if name != "bubblewrap" && name != "no sandbox" {
				tier.All(t)
			}
			w, flag := newEscapeWorld(t, os.Getuid()), "--sandbox"
			w.env = []string{"MUSTER_SETUP_FILES=setup.sh"}
			w.write("repo/setup.sh", w.vars+setUpTraps)
			w.write("repo/.gitignore", "node_modules/\n")
			w.git("add", "-A")
			w.git("commit", "-q", "-m", "set-up")
			if name == "open checks" {
				w.write("home/config/muster/config.yaml", "sandbox:\n  checks: false\n")
			}
			if name == "Landlock" {
				w.breakBubblewrap()
			} else if !isConfined {
				flag = "--no-sandbox"
			}
			before := w.snapshot()
			out := w.plays(scripted(working(bash("echo good > b.txt"))), flag, "--setup", "sh setup.sh", "--check", "test -e node_modules/evil")
			if said := w.transcript(); !strings.Contains(said, "the kept result for these files was put here") {
				t.Errorf("nothing was copied:\n%s", said)
			}
			if isConfined {
				w.isUnharmed(nil, before, out)
				return
			}
			_, err := os.Stat(filepath.Join(w.base, "out", "evil"))
			require.NoError(t, err)
		})
	}
}

// TestTheCheckoutIsWatchedWithoutASandbox has a hook of the user change their checkout while a member works: that is
// told only where members' commands could have done it.
func TestTheCheckoutIsWatchedWithoutASandbox(t *testing.T) {
	for flag, isTold := range map[string]bool{"--sandbox": false, "--no-sandbox": true} {
		w := newEscapeWorld(t, os.Getuid())
		w.write("home/config/muster/config.yaml", "hooks:\n  PreToolUse:\n    - command: touch '"+w.repo+"/mine'\n")
		out := w.plays(scripted(working(bash("echo good > b.txt"))), flag)
		if strings.Contains(out, "changed while lead worked: files of your checkout: mine") != isTold {
			t.Errorf("%s:\n%s", flag, out)
		}
	}
}
