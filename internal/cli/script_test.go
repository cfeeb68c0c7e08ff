package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/cobra"

	"muster/internal/proc"
	"muster/internal/roster"
	"muster/internal/sandbox"
	"muster/internal/testing/gittest"
	"muster/internal/testing/program"
	"muster/internal/testing/rawnames"
	"muster/internal/testing/require"
	"muster/internal/testing/scripts"
	"muster/journal"
	"muster/store/file"
)

func TestMain(m *testing.M) {
	proc.GuardMain()
	sandbox.ForwardMain()
	if filepath.Base(os.Args[0]) == "host" {
		os.Exit(host())
	}
	time.Local = time.UTC
	cobra.EnableCommandSorting = false // as in Main
	gittest.Main(m)
}

const sandboxVariable = "MUSTER_SANDBOX_ENABLED"

// host is a process of the team that lives in the current directory. It joins, starts the command of its arguments as
// a tool of its own, prints what that prints, and exits as it does. Without a command it says "joined" in the file
// ../joined and lives until it is interrupted.
func host() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	dir, _ := os.Getwd()
	s, err := file.Open(dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer s.Close()
	h, err := roster.New(s, journal.New(s.Log()), "team").Join(ctx, "host of the test")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = h.Release() }() // the process ends here, which releases it too
	if len(os.Args) == 1 {
		if err := os.WriteFile(filepath.Join(filepath.Dir(dir), "joined"), nil, 0o600); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		<-ctx.Done()
		return 0
	}
	l, err := proc.New(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer l.Close()
	p, err := l.Start(ctx, proc.Spec{Argv: os.Args[1:], Dir: dir, Env: os.Environ(), Out: os.Stdout})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code, err := p.Wait()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// TestScripts runs the scripts of testdata/script, on the machine of an ordinary user: see gittest.Home.
//
// "muster" and "exits CODE muster" run a command in this process. "exec muster" starts the program: in the background,
// on a terminal, and where a script changes what a process has from the system beside its arguments (PATH, the
// directory of temporary files, the proxy of net/http).
func TestScripts(t *testing.T) {
	bin, self := t.TempDir(), executable(t)
	for name, target := range map[string]string{"muster": program.Path(t), "host": self} {
		require.NoError(t, os.Symlink(target, filepath.Join(bin, name)))
	}
	// Git that a command starts in this process has the home of the process, and all else has that of the script.
	require.NoError(t, gittest.Home(os.Getenv("HOME")))
	root := filepath.Join(t.TempDir(), "ann's work")
	require.NoError(t, os.Mkdir(root, 0o700))
	testscript.Run(t, testscript.Params{
		Dir:         scriptDir,
		WorkdirRoot: root,
		Setup: func(e *testscript.Env) error {
			e.Setenv("PATH", bin+string(filepath.ListSeparator)+e.Getenv("PATH"))
			e.Values["t"] = t
			e.Values[input{}] = new(input)
			e.Values[printedJSON{}] = map[string]bool{}
			return scripts.Setup(e)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"muster":   runsMuster,
			"input":    inputs,
			"repo":     scripts.Repo,
			"exits":    exits,
			"contains": scripts.Contains,
			"serve":    serveModel,
			"guarded":  guarded,
			"login":    login,

			"allprintjson":  allPrintJSON,
			"speaksplainly": speaksPlainly,
		},
		Condition:           scripts.Condition,
		RequireExplicitExec: true,
	})
}

// scriptDir is the directory of the scripts.
var scriptDir = filepath.Join("testdata", "script")

// input is what the next command of muster reads.
type input struct{ text string }

// inputs is "input FILE": the next "muster" reads the file.
func inputs(ts *testscript.TestScript, _ bool, args []string) {
	ts.Value(input{}).(*input).text = ts.ReadFile(args[0])
}

// runsMuster is "muster ARGS...": the command must succeed, and fail after "!". It leaves its output as exec does.
func runsMuster(ts *testscript.TestScript, neg bool, args []string) {
	if code := runMuster(ts, args); (code != 0) != neg {
		ts.Fatalf("exit code %d", code)
	}
}

// setsVariable finds the variables that a script sets.
var setsVariable = regexp.MustCompile(`(?m)^env (\w+)=(?:\S* (\w+)=)?`)

func runMuster(ts *testscript.TestScript, args []string) int {
	a := appOf(ts, args...)
	var out bytes.Buffer
	stdout := a.Stdout.(*writer)
	stdout.to = io.MultiWriter(stdout.to, &out)
	code := a.Run(ts.Value("t").(*testing.T).Context())
	checkJSON(ts, a.root(), args, out.Bytes())
	return code
}

func appOf(ts *testscript.TestScript, args ...string) *App {
	in := ts.Value(input{}).(*input)
	a := &App{Args: args, Dir: ts.MkAbs("."), Stdin: strings.NewReader(in.text),
		Stdout: &writer{to: ts.Stdout()}, Stderr: &writer{to: ts.Stderr()}, Now: time.Now}
	in.text = ""
	a.Start = a.startTeam
	a.Demo = func(ctx context.Context, dir string, isPlayed bool) (Job, error) {
		return demoJob(ctx, dir, cacheDir(a), isPlayed)
	}
	data, err := os.ReadFile(filepath.Join(scriptDir, ts.Name()+".txtar"))
	ts.Check(err)
	names := []string{"HOME", "PATH", "TMPDIR", "TZ", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_NOSYSTEM",
		"GIT_CEILING_DIRECTORIES", "WORK", sandboxVariable}
	for _, set := range setsVariable.FindAllStringSubmatch(string(data), -1) {
		names = append(names, set[1:]...)
	}
	for _, name := range names {
		if name != "" {
			a.Env = append(a.Env, name+"="+ts.Getenv(name))
		}
	}
	return a
}

// writer is a writer for several goroutines, as a file is.
type writer struct {
	mu sync.Mutex
	to io.Writer
}

func (w *writer) Write(data []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.to.Write(data)
}

func executable(t *testing.T) string {
	t.Helper()
	return require.Value(os.Executable())(t)
}

// speaksPlainly is "speaksplainly": what the last command has printed has no name of the runtime in it.
func speaksPlainly(ts *testscript.TestScript, _ bool, _ []string) {
	for _, file := range []string{"stdout", "stderr"} {
		if found := rawnames.Find(ts.ReadFile(file)); len(found) > 0 {
			ts.Fatalf("%s: %s", file, strings.Join(found, "\n"))
		}
	}
}

// exits CODE PROGRAM ARGS... checks a program's exit code; stdout and stderr are kept as exec keeps them. It runs muster
// in this process, and "exits CODE exec muster" starts it.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if args[1] == "muster" {
		if code := runMuster(ts, args[2:]); fmt.Sprint(code) != args[0] {
			ts.Fatalf("exit code %d, want %s", code, args[0])
		}
		return
	}
	if args[1] == "exec" {
		args = slices.Delete(args, 1, 2)
	}
	scripts.Exits(ts, neg, args)
}
