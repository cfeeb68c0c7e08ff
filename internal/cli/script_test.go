package cli

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"muster/internal/proc"
	"muster/internal/roster"
	"muster/internal/sandbox"
	"muster/journal"
	"muster/store/file"
)

func TestMain(m *testing.M) {
	proc.GuardMain()
	sandbox.ForwardMain()
	if _, isSet := os.LookupEnv(sandboxVariable); !isSet {
		os.Setenv(sandboxVariable, "false") // most tests are about something else; those of the sandbox ask for it
	}
	testscript.Main(m, map[string]func(){
		"muster": func() { os.Exit(Main()) },
		"host":   func() { os.Exit(host()) },
	})
}

const sandboxVariable = "MUSTER_SANDBOX_ENABLED"

// host is a process of the team that lives in the current directory. It joins, starts the command of its arguments as
// a tool of its own, prints what that prints, and exits as it does. Without a command it says "joined" in the file
// ../joined and lives until it is interrupted. With OTHER_GUARD set the guard that is written down is not the one it has.
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
	if g, ok := l.(interface{ PID() int }); ok {
		pid := g.PID()
		if os.Getenv("OTHER_GUARD") != "" {
			pid = 1 << 30 // one that is dead
		}
		if err := h.SetGuard(ctx, pid); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
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

// buildProgram builds the program as people install it, and returns the directory with it. The scripts start it some
// thousand times, and a start with the race detector takes three times as long. Whole programs with it are in
// internal/e2e.
func buildProgram(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", dir, "muster/cmd/muster").CombinedOutput(); err != nil {
		t.Fatalf("the program cannot be built: %v\n%s", err, out)
	}
	return dir
}

func TestScripts(t *testing.T) {
	program := buildProgram(t)
	testscript.Run(t, testscript.Params{
		Dir: filepath.Join("testdata", "script"),
		Setup: func(e *testscript.Env) error {
			for k, v := range map[string]string{
				"HOME": e.WorkDir + "/home", "XDG_STATE_HOME": "", "XDG_CONFIG_HOME": e.WorkDir + "/home/config", "TZ": "UTC",
				"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.DevNull, "GIT_CEILING_DIRECTORIES": e.WorkDir,
				sandboxVariable:   "false",             // but for the scripts that are about it
				"GORACE":          "atexit_sleep_ms=0", // with -race every program would sleep for a second at its end
				"GIT_AUTHOR_NAME": "user", "GIT_AUTHOR_EMAIL": "user@example.org", "GIT_COMMITTER_NAME": "user", "GIT_COMMITTER_EMAIL": "user@example.org",
			} {
				e.Setenv(k, v)
			}
			e.Setenv("PATH", program+string(filepath.ListSeparator)+e.Getenv("PATH"))
			e.Values["t"] = t
			return os.MkdirAll(filepath.Join(e.WorkDir, "home"), 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"repo":     repo,
			"exits":    exits,
			"contains": contains,
			"serve":    serveModel,
			"guarded":  guarded,
			"login":    login,
		},
		RequireExplicitExec: true,
	})
}

// repo DIR makes a repository with one commit and goes there.
func repo(ts *testscript.TestScript, _ bool, args []string) {
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o755))
	ts.Check(ts.Exec("git", "init", "-q", "-b", "main", dir))
	ts.Check(ts.Exec("git", "-C", dir, "commit", "-q", "--allow-empty", "-m", "start"))
	ts.Check(ts.Chdir(dir))
}

// exits CODE PROGRAM ARGS... checks a program's exit code; stdout and stderr are kept as exec keeps them.
func exits(ts *testscript.TestScript, _ bool, args []string) {
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	if err != nil {
		var n int
		if _, e := fmt.Sscanf(err.Error(), "exit status %d", &n); e != nil {
			ts.Fatalf("%v", err)
		}
		code = n
	}
	if fmt.Sprint(code) != args[0] {
		ts.Fatalf("exit code %d, want %s", code, args[0])
	}
}

// contains FILE TEXT... checks that a file has each of the texts, as they are.
func contains(ts *testscript.TestScript, neg bool, args []string) {
	data := ts.ReadFile(args[0])
	for _, want := range args[1:] {
		if strings.Contains(data, want) == neg {
			ts.Fatalf("%s has it: %v, %q\n%s", args[0], !neg, want, data)
		}
	}
}
