package shellcommands

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster/internal/testing/require"
	"muster/internal/testing/tier"
)

// standIns are the programs of a PATH on which each notes that it was started. None does anything else.
var standIns = []string{"git", "rm", "ls", "push", "sh2"}

// newBash returns what runs a script in a real bash, whose PATH has the stand-ins only, and returns the programs that
// it started.
func newBash(t *testing.T) func(script string) []string {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Fatal("there is no bash, with which the parser is compared")
	}
	dir := t.TempDir()
	bin, runs := filepath.Join(dir, "bin"), 0
	require.NoError(t, os.Mkdir(bin, 0o700))
	for _, name := range standIns {
		text := fmt.Sprintf("#!%s\necho %s >> started\n", bash, name)
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte(text), 0o700))
	}
	for _, real := range []string{"env", "xargs", "timeout", "nice", "nohup", "find"} {
		if path, err := exec.LookPath(real); err == nil {
			require.NoError(t, os.Symlink(path, filepath.Join(bin, real)))
		}
	}
	require.NoError(t, os.Symlink(bash, filepath.Join(bin, "bash")))
	return func(script string) []string {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		// Each script has a directory of its own: what it starts in the background may come late.
		runs++
		work := filepath.Join(dir, strconv.Itoa(runs))
		require.NoError(t, os.Mkdir(work, 0o700))
		c := exec.CommandContext(ctx, bash, "-c", script)
		c.Dir, c.Env = work, []string{"PATH=" + bin, "x=git", "HOME=" + work}
		_ = c.Run() // many scripts fail
		data, err := os.ReadFile(filepath.Join(work, "started"))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		return strings.Fields(string(bytes.TrimSpace(data)))
	}
}

// checkNamed fails if bash starts a program that Parse has not named in a script that it says it knows.
func checkNamed(t interface {
	Helper()
	Fatalf(string, ...any)
}, script string, started []string) {
	t.Helper()
	s := Parse(script)
	if s.Unknown != "" {
		return
	}
	for _, name := range started {
		isNamed := slices.ContainsFunc(s.Commands, func(c Command) bool {
			base, ok := c.Words[0].Base()
			return !ok || base == name
		})
		if !isNamed {
			t.Fatalf("bash starts %s, and Parse names %v for\n%s", name, s.Commands, script)
		}
	}
}

// pieces are what generated scripts are made of. A % stands for another one.
var pieces = []string{
	"git push", "rm x", "ls", "\\git push", "'git' push", "g\"i\"t push", "$x push", "\"$x\" push", "$(echo git) push", "{git,push}", "gi? x",
	"%; %", "% && %", "% || %", "% | %", "(%)", "{ %; }", "! %", "if %; then %; else %; fi", "while %; do break; done", "for i in a b; do %; done",
	"case a in a) %;; *) %;; esac", "f() { %; }; f", "y=$(%)", "echo `%`", "echo \"$(%)\"", "echo ${y:-$(%)}", "cat <(%)", "echo $(( $(%) + 1 ))",
	"[[ -n $(%) ]]", "eval '%'", "eval %", "trap '%' EXIT", "bash -c '%'", "bash -ec \"%\"", "bash <<'E'\n%\nE\n", "bash <<E\n%\nE\n", "bash <<< '%'",
	"echo '%' | bash", "env %", "env A=b %", "env -i %", "timeout 5 %", "nice -n 1 %", "nohup %", "xargs % < /dev/null", "command %", "exec %",
	"find . -maxdepth 0 -exec % \\;", "A=b %", "y='a[$(%)]'; echo $((y))", "y='$(%)'; echo ${y@P}", "time %", "coproc %", "% &", "% > /dev/null",
	"echo $'%'", "y=git; $y push", "set -- git push; \"$@\"", "alias g=git; g push", "shopt -s expand_aliases\nalias g=git\ng push", "% # comment",
	"echo \\\n%", "%\n%", "source /dev/stdin <<< '%'", ". <(echo '%')", "function h { %; }; h", "printf -v 'a[$(%)]' x", "test -v 'a[$(%)]'",
	"((y = $(%)))", "let 'y=a[$(%)]'", "declare z=$(%)", "export Z=`%`", "IFS=,; y=git,push; $y", "select i in a; do %; done < /dev/null",
	"echo \"a ${y:=$(%)}\"", "y=([$(%)]=1)", "until %; do break; done", "PATH=$PATH:. %", "hash -p /bin/true ls; %", "unset 'a[$(%)]'",
	"read 'a[$(%)]' <<< x", "echo ~/$(%)", "${z:-git} push", "\"\"git push", "git\\\n push", "$'gi\\x74' push", "[ $(%) ]", "printf '%s' '$(%)'",
	"jobs -x %", "builtin eval '%'", "eval -- %", "trap '%' DEBUG; :", "xargs -I{} % <<< x", "x=-exec; find . -maxdepth 0 \"$x\" % \\;",
	"timeout -k 1 5 %", "nice -1 %", "env -u x -i %", "env - %", "bash -O posix -c '%'", "bash -s <<< '%'", "cd /dev/fd; bash 3 3<<< '%'",
	"mapfile -tC '% #' -c1 z <<< a", "BASH_CMDS[ls]=$(type -P git); ls", "printf -v 'BASH_CMDS[ls]' \"$(type -P git)\"; ls",
	"declare -n r=BASH_CMDS; r[ls]=$(type -P git); ls", "hash -rp \"$(type -P git)\" ls; ls", "set -o posix; alias ls=git\nls",
	"exec {a[$(%)]}>x", "x='a[$(%)]'; declare -i n=x", "x='a[$(%)]'; echo ${z:x}", "{ %; } | bash", "ln -s \"$(type -P git)\" ./l; ./l",
	"PROMPT_COMMAND='%' bash -i <<< x", "find . -maxdepth 0 -exec bash -c '%' \\;", "echo % | xargs -I{} bash -c {}", "command eval '%'",
}

// TestBashStartsWhatIsNamed: of generated scripts, each program that a real bash starts is named, or the script is said
// to be unknown.
func TestBashStartsWhatIsNamed(t *testing.T) {
	tier.All(t)
	run := newBash(t)
	rapid.Check(t, func(t *rapid.T) {
		script := "%"
		for range rapid.IntRange(1, 6).Draw(t, "steps") {
			script = strings.Replace(script, "%", rapid.SampledFrom(pieces).Draw(t, "piece"), 1)
		}
		script = strings.ReplaceAll(script, "%", "ls")
		checkNamed(t, script, run(script))
	})
}

// FuzzParse finds texts on which Parse panics or takes very long.
func FuzzParse(f *testing.F) {
	for _, p := range pieces {
		f.Add(p)
	}
	f.Fuzz(func(_ *testing.T, text string) { Parse(text) })
}
