package permissions

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"muster/internal/proc"
	"muster/internal/sandbox"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
)

func TestMain(m *testing.M) {
	proc.GuardMain()
	sandbox.ForwardMain()
	os.Exit(m.Run())
}

// usual are rules that many people have.
var usual = []string{"deny bash(git push *)", "deny bash(rm -rf *)", "deny bash(curl *)"}

// TestEverydayScriptsDoNotAsk: of scripts that run nothing that is denied, at most 2% are asked about.
func TestEverydayScriptsDoNotAsk(t *testing.T) {
	scripts, asked := lines(t, "everyday.txt", "\n----\n")[1:], 0
	p := policy(t, Auto, append(usual, "deny write_file(.github/**)", "deny Read(./.env)", "deny Read(./.env.*)",
		"deny Read(secrets/**)", "deny Read(~/.ssh/**)")...)
	for _, script := range scripts {
		if d := p.Decide(bash(script), nil); d.Action != Allow {
			asked++
			t.Logf("%s\n%v by %s: %q: %s", script, d.Action, d.Rule, d.Subject, d.Why)
		}
	}
	if len(scripts) < 200 || asked*50 > len(scripts) {
		t.Errorf("%d of %d are asked about", asked, len(scripts))
	}
}

// realBash runs scripts in a bash that is confined to a directory. Its PATH has only programs that note how they were
// started, and a few that start others.
type realBash struct {
	method    *sandbox.Method
	launcher  proc.Launcher
	bash, dir string
	runs      int
}

// newRealBash returns a bash, or skips the test where nothing can confine it.
func newRealBash(t *testing.T) *realBash {
	t.Helper()
	launcher := require.Value(proc.New(t.Context()))(t)
	t.Cleanup(func() { _ = launcher.Close() })
	method, err := sandbox.Find(t.Context(), os.Environ())
	if err != nil {
		tier.Missing(t, err.Error())
	}
	b := &realBash{method: method, launcher: launcher, bash: tier.Needs(t, "bash")}
	b.dir = require.Value(filepath.EvalSymlinks(t.TempDir()))(t)
	bin := filepath.Join(b.dir, "bin")
	require.NoError(t, os.Mkdir(bin, 0o700))
	stub := func(name, then string) {
		text := "#!" + b.bash + "\nline=" + name + `
			for x; do line+=$'\t'${x//[$'\n\t']/ }; done
			echo "$line" >> started
			` + then
		require.NoError(t, os.WriteFile(filepath.Join(bin, name), []byte(text), 0o700))
	}
	for _, name := range []string{"git", "rm", "curl", "ls", "make"} {
		stub(name, "")
	}
	stub("sudo", `exec "$@"`)
	stub("cat", `while IFS= read -r x || [ -n "$x" ]; do echo "$x"; done`)
	for _, name := range []string{"env", "xargs", "timeout", "nice", "find"} {
		require.NoError(t, os.Symlink(tier.Needs(t, name), filepath.Join(bin, name)))
	}
	for _, name := range []string{"bash", "sh"} {
		require.NoError(t, os.Symlink(b.bash, filepath.Join(bin, name)))
	}
	return b
}

// run runs scripts, each in an empty directory of its own, and returns the commands that each has started.
func (b *realBash) run(ctx context.Context, scripts []string) (started [][][]string, err error) {
	b.runs++
	base := filepath.Join(b.dir, strconv.Itoa(b.runs))
	// What a script starts in the background may come late: it notes that in the directory of its script.
	for i := range scripts {
		if err := os.MkdirAll(filepath.Join(base, strconv.Itoa(i)), 0o700); err != nil {
			return nil, err
		}
	}
	all := `i=0; for s; do (cd $i && exec timeout 20 bash -c "$s" < /dev/null); i=$((i + 1)); done`
	argv := append([]string{b.bash, "-c", all, "_"}, scripts...)
	p, err := b.method.Start(ctx, b.launcher,
		proc.Spec{Argv: argv, Dir: base, Env: []string{"PATH=" + filepath.Join(b.dir, "bin")}},
		append(sandbox.System(), sandbox.Rule{Path: b.dir}, sandbox.Rule{Path: base, Access: sandbox.Write}))
	if err != nil {
		return nil, err
	}
	_, _ = p.Wait() // many scripts fail
	for i := range scripts {
		data, _ := os.ReadFile(filepath.Join(base, strconv.Itoa(i), "started"))
		var commands [][]string
		for line := range strings.Lines(string(data)) {
			commands = append(commands, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
		}
		started = append(started, commands)
	}
	return started, os.RemoveAll(base)
}

// isDenied reports whether one of the usual rules is for a command with these arguments.
func isDenied(argv []string) bool {
	switch options := strings.Join(argv, " "); argv[0] {
	case "git":
		for len(argv) > 2 && (argv[1] == "-C" || argv[1] == "-c") {
			argv = argv[2:]
		}
		return len(argv) > 1 && argv[1] == "push"
	case "rm":
		return strings.Contains(options, " -rf") || strings.Contains(options, " -fr") ||
			strings.Contains(options, " -r") && strings.Contains(options, " -f")
	}
	return argv[0] == "curl"
}

// commands are simple commands of generated scripts. Some are denied, and some look like it.
var commands = []string{"git push", "git push", "git push origin main", "git -C . push", "git -c a=b push", "git status",
	"git stash push", "rm -rf x", "rm -fr x", "rm -r -f x", "rm x -rf", "rm -f x", "rm -r x", "curl x", "curl -s x", "ls",
	"ls push", "make curl"}

// spellings are ways to write a word of a command, which is a %.
var spellings = []string{"%", "%", "%", "%", "'%'", `"%"`, `\%`, `""%`, "$'%'", "{%,}", "$(echo %)", "`echo %`",
	`"$(echo %)"`, "${none:-%}", "${none}%", "$(printf %s %)"}

// drawScript returns a script that is made of several others.
func drawScript(t *rapid.T, ways []string) string {
	script := "%"
	for range rapid.IntRange(0, 4).Draw(t, "parts") {
		script = strings.Replace(script, "%", rapid.SampledFrom(ways).Draw(t, "part"), 1)
	}
	for strings.Contains(script, "%") {
		var words []string
		for word := range strings.FieldsSeq(rapid.SampledFrom(commands).Draw(t, "command")) {
			spelling := rapid.SampledFrom(spellings).Draw(t, "spelling")
			words = append(words, strings.ReplaceAll(strings.ReplaceAll(spelling, "%s", "\x00"), "%", word))
		}
		script = strings.Replace(script, "%", strings.Join(words, " "), 1)
	}
	return strings.ReplaceAll(script, "\x00", "%s")
}

// TestBashStartsNothingThatIsDenied: of generated scripts that may run, a real bash starts no command that a rule
// denies.
func TestBashStartsNothingThatIsDenied(t *testing.T) {
	real, ways, hits, policies := newRealBash(t), ways(t), 0, map[string]Policy{}
	for i, program := range []string{"git", "rm", "curl"} {
		policies[program] = policy(t, Auto, usual[i])
	}
	draw := rapid.Custom(func(t *rapid.T) string { return drawScript(t, ways) })
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	defer cancel()
	rapid.Check(t, func(t *rapid.T) {
		scripts := rapid.SliceOfN(draw, 1, tier.Amount(10, 100)).Draw(t, "scripts")
		started, err := real.run(ctx, scripts)
		require.NoError(t, err)
		for i, script := range scripts {
			for _, argv := range started[i] {
				if !isDenied(argv) {
					continue
				}
				hits++
				if policies[argv[0]].Decide(bash(script), nil).Action == Allow {
					t.Fatalf("bash starts %q, and this may run:\n%s", argv, script)
				}
			}
		}
	})
	if hits < 50 {
		t.Errorf("only %d commands were started that are denied", hits)
	}
}

// FuzzDecide finds texts on which Decide panics or takes very long.
func FuzzDecide(f *testing.F) {
	for _, way := range ways(f) {
		f.Add(way)
	}
	p := policy(f, Auto, usual...)
	f.Fuzz(func(_ *testing.T, text string) { p.Decide(bash(text), nil) })
}
