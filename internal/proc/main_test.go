//go:build linux

package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muster/internal/testing/require"
	"muster/internal/testing/wait"
)

// TestMain lets the test binary play what the tests start: modes, named by the second argument. Every one of them has
// the test's directory as its last argument, so that alive finds it whatever it did to its environment.
func TestMain(m *testing.M) {
	GuardMain()
	signal.Notify(make(chan os.Signal, 1), unix.SIGHUP) // under nohup what the tests start would ignore it
	if len(os.Args) == 4 && os.Args[1] == "play" {
		play(os.Args[2], os.Args[3])
	}
	os.Exit(m.Run())
}

func play(mode, dir string) {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	start := func(mode string) {
		c := exec.Command(self, "play", mode, dir)
		c.Env, c.SysProcAttr = []string{}, &syscall.SysProcAttr{Setsid: true}
		c.Stdout = os.Stdout // it holds its starter's pipe
		if err := c.Start(); err != nil {
			panic(err)
		}
	}
	switch mode {
	case "sleeper": // ignores everything that can be ignored
		signal.Ignore(unix.SIGTERM, unix.SIGINT, unix.SIGHUP)
		if err := os.WriteFile(filepath.Join(dir, "sleeps"+strconv.Itoa(os.Getpid())), nil, 0o600); err != nil {
			panic(err)
		}
		wait.Elapse(time.Hour)
	case "orphaner": // its child has no parent, no environment, and a session of its own
		start("sleeper")
		syscall.Exit(0) // not os.Exit, which takes a second in a program built with -race
	case "tool": // runs until it is killed, and has set a sleeper free
		start("orphaner")
		wait.Elapse(time.Hour)
	case "leaver": // ends by itself once its sleeper sleeps
		start("orphaner")
		wait.Poll(time.Hour, func() bool { return sleeps(dir) })
		syscall.Exit(7)
	case "limits", "disk":
		try := map[string]func(Launcher, string) error{"limits": exceedLimits, "disk": fillDisk}[mode]
		l, err := New(context.Background())
		if err == nil {
			err = errors.Join(try(l, dir), l.Close())
		}
		if err == nil {
			_, err = fmt.Println("all hold")
		}
		if err != nil {
			fmt.Println(err)
		}
		syscall.Exit(0)
	case "muster": // stands for the program that runs tools
		l, err := New(context.Background())
		if err != nil {
			panic(err)
		}
		for range 2 {
			if _, err := l.Start(context.Background(), Spec{Argv: []string{self, "play", "tool", dir}}); err != nil {
				panic(err)
			}
		}
		fmt.Println(l.(*Guard).PID())
		wait.Elapse(time.Hour)
	}
	panic("unknown mode " + mode)
}

// sleeps tells whether a sleeper has begun.
func sleeps(dir string) bool {
	found, _ := filepath.Glob(filepath.Join(dir, "sleeps*"))
	return len(found) > 0
}

// tool is a Spec for a mode. Its environment is empty unless a test says otherwise.
func tool(t testing.TB, mode, dir string) Spec {
	self, err := os.Executable()
	require.NoError(t, err)
	return Spec{Argv: []string{self, "play", mode, dir}}
}

// alive lists the living processes whose command line names dir.
func alive(dir string) (list []string) {
	for pid, t := range allProcesses() {
		cmd, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		if !t.isDead() && strings.Contains(string(cmd), dir) {
			list = append(list, fmt.Sprintf("%d (%c, parent %d): %s", pid, t.state, t.parent, strings.ReplaceAll(string(cmd), "\x00", " ")))
		}
	}
	return list
}

// yard is a directory for tools to play in. Whatever still plays when the test is over, as some do when it fails, dies.
func yard(t testing.TB) string {
	dir := t.TempDir()
	t.Cleanup(func() {
		for _, s := range alive(dir) {
			if pid, err := strconv.Atoi(strings.Fields(s)[0]); err == nil {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}
	})
	return dir
}

// awaitDead waits until no process of dir lives.
func awaitDead(t testing.TB, dir string) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("alive: %s", strings.Join(alive(dir), "\n"))
		}
	}()
	wait.For(t, "everything is dead", func() bool { return len(alive(dir)) == 0 })
}

func guardOf(t testing.TB) *Guard {
	l, err := New(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	return l.(*Guard)
}

// each runs f with both launchers.
func each(t *testing.T, f func(t *testing.T, l Launcher)) {
	t.Run("guard", func(t *testing.T) { f(t, guardOf(t)) })
	t.Run("groups", func(t *testing.T) {
		l := new(groups)
		t.Cleanup(func() { _ = l.Close() })
		f(t, l)
	})
}

func start(t testing.TB, l Launcher, ctx context.Context, s Spec) Process {
	t.Helper()
	p, err := l.Start(ctx, s)
	require.NoError(t, err)
	return p
}

// awaitReady waits until g's guard catches signals.
func awaitReady(t testing.TB, g *Guard) {
	t.Helper()
	wait.For(t, "the guard is ready", func() bool {
		name, _ := os.ReadFile("/proc/" + itoa(g.PID()) + "/comm")
		return string(name) == "muster-guard\n"
	})
}

// ends fails the test unless a process exits with the code.
func ends(t testing.TB, p Process, code int) {
	t.Helper()
	if exit, err := p.Wait(); exit != code || err != nil {
		t.Errorf("exit %d, error %v; want exit %d", exit, err, code)
	}
}

// noneLives fails the test if a process of dir lives.
func noneLives(t testing.TB, dir string) {
	t.Helper()
	if left := alive(dir); len(left) > 0 {
		t.Errorf("there live still: %v", left)
	}
}
