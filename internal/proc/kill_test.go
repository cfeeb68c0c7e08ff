//go:build linux

package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muster"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
	"muster/internal/testing/wait"
)

func itoa(n int) string { return strconv.Itoa(n) }

// promised checks that try, which returns how long something took to die, keeps what a user is promised: 100 ms. A slow
// machine may take as much longer as it takes longer for one process, without a guard, that is killed and looked for in
// the same way. The first tier, in which other tests run beside this one, does not look at the time.
func promised(t *testing.T, try func() time.Duration) {
	t.Helper()
	if !tier.IsAll() {
		try()
		return
	}
	const (
		promise = 100 * time.Millisecond
		factor  = 20 // what has to die is 5 processes and more, after several looks at all processes
	)
	var took, plain []time.Duration
	for range 5 {
		p, d := killPlain(t), try()
		if d <= max(promise, factor*p) {
			return
		}
		took, plain = append(took, d), append(plain, p)
	}
	t.Errorf("never dead within %v: %v, beside one plain process: %v", promise, took, plain)
}

// killPlain kills a program that no guard has started, and returns how long it took to be seen dead.
func killPlain(t *testing.T) time.Duration {
	t.Helper()
	dir := yard(t)
	c := exec.Command(tool(t, "sleeper", dir).Argv[0], "play", "sleeper", dir)
	require.NoError(t, c.Start())
	wait.For(t, "the sleeper sleeps", func() bool { return sleeps(dir) })
	begin := time.Now()
	require.NoError(t, c.Process.Kill())
	awaitDead(t, dir)
	took := time.Since(begin)
	_ = c.Wait()
	return took
}

// TestStopsStop: setsid, a double fork, an empty environment and ignored signals, and each way to end.
func TestStopsStop(t *testing.T) {
	g := guardOf(t)
	cause := errors.New("enough")
	for name, end := range map[string]func(p Process, cancel context.CancelCauseFunc) error{
		"kill":   func(p Process, _ context.CancelCauseFunc) error { return p.Kill() },
		"cancel": func(_ Process, cancel context.CancelCauseFunc) error { cancel(cause); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			promised(t, func() time.Duration {
				dir := yard(t)
				ctx, cancel := context.WithCancelCause(t.Context())
				p := start(t, g, ctx, tool(t, "tool", dir))
				wait.For(t, "the sleeper sleeps", func() bool { return sleeps(dir) })
				begin := time.Now()
				require.NoError(t, end(p, cancel))
				exit, err := p.Wait()
				if exit != 137 || name == "cancel" && !errors.Is(err, cause) || name == "kill" && err != nil {
					t.Errorf("exit %d, error %v", exit, err)
				}
				noneLives(t, dir)
				return time.Since(begin)
			})
		})
	}
	t.Run("timeout", func(t *testing.T) {
		dir := yard(t)
		var p Process
		err := context.DeadlineExceeded
		for limit := 300 * time.Millisecond; errors.Is(err, context.DeadlineExceeded); limit *= 2 { // until it starts in time
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			p, err = g.Start(ctx, tool(t, "tool", dir))
		}
		require.NoError(t, err)
		if _, err := p.Wait(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		noneLives(t, dir)
	})
	t.Run("its own end", func(t *testing.T) {
		dir := yard(t)
		ends(t, start(t, g, t.Context(), tool(t, "leaver", dir)), 7)
		noneLives(t, dir)
	})
	t.Run("close", func(t *testing.T) {
		dir := yard(t)
		l, err := New(t.Context())
		require.NoError(t, err)
		p := start(t, l, t.Context(), tool(t, "tool", dir))
		wait.For(t, "the sleeper sleeps", func() bool { return sleeps(dir) })
		require.NoError(t, l.Close())
		noneLives(t, dir)
		ends(t, p, 137)
	})
}

// TestNoneIsAliveAfterKill9 of the program whose tools they are.
func TestNoneIsAliveAfterKill9(t *testing.T) {
	promised(t, func() time.Duration {
		dir := yard(t)
		self, err := os.Executable()
		require.NoError(t, err)
		c := exec.Command(self, "play", "muster", dir)
		out, err := c.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, c.Start())
		line := make([]byte, 20)
		n, _ := out.Read(line)
		guard, err := strconv.Atoi(strings.TrimSpace(string(line[:n])))
		require.NoError(t, err)
		wait.For(t, "the sleeper sleeps", func() bool { return sleeps(dir) })
		if !slices.ContainsFunc(alive(dir), func(s string) bool { return strings.Contains(s, "sleeper") }) {
			t.Fatal("alive does not see what it is to see")
		}
		begin := time.Now()
		require.NoError(t, c.Process.Kill())
		awaitDead(t, dir)
		wait.For(t, "the guard is dead", func() bool { g, ok := readProcess(guard); return !ok || g.isDead() })
		took := time.Since(begin)
		_ = c.Wait()
		return took
	})
}

// A guard that was stopped goes on when there is something to do.
func TestAStoppedGuardIsWoken(t *testing.T) {
	t.Parallel()
	g := guardOf(t)
	awaitReady(t, g)
	stop := func() {
		t.Helper()
		require.NoError(t, unix.Kill(g.PID(), unix.SIGSTOP))
		wait.For(t, "the guard is stopped", func() bool { g, _ := readProcess(g.PID()); return g.state == 'T' })
	}
	dir := yard(t)
	ctx, cancel := context.WithCancel(t.Context())
	stop()
	p := start(t, g, ctx, tool(t, "tool", dir))
	wait.For(t, "the sleeper sleeps", func() bool { return sleeps(dir) })
	stop()
	cancel()
	if _, err := p.Wait(); !errors.Is(err, context.Canceled) {
		t.Errorf("the tool ended with %v", err)
	}
	awaitDead(t, dir)
	stop() // Close fails when the guard has to be killed
}

// A guard that stays stopped when its program is dead ends nothing. It is found by its arguments, and is killed with all
// that is below it, whatever environment that has.
func TestAnAbandonedGuardIsKilled(t *testing.T) {
	t.Parallel()
	dir := yard(t)
	require.NoError(t, os.WriteFile(filepath.Join(dir, guardWord),
		[]byte("env -i sh -c 'while :; do sleep 1; done' "+dir+"/below & touch "+dir+"/sleeps; wait"), 0o600))
	const program = 1<<30 | 1 // no process has that number
	c := exec.Command("sh", guardWord, fmt.Sprintf("%d.7.TEXT.", program), dir)
	c.Dir = dir
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	require.NoError(t, c.Start())
	go func() { _ = c.Wait() }()
	wait.For(t, "what the guard has started lives", func() bool { return sleeps(dir) && len(alive(dir)) == 2 })
	require.NoError(t, unix.Kill(c.Process.Pid, unix.SIGSTOP))
	if n := KillAbandoned(program, 8); n != 0 || len(alive(dir)) != 2 {
		t.Errorf("%d processes of another program were killed", n)
	}
	if n := KillAbandoned(program, 7); n < 2 {
		t.Errorf("%d processes were found", n)
	}
	awaitDead(t, dir)
}

func TestTheGuardOutlivesSignalsAndIsReplaced(t *testing.T) {
	t.Parallel()
	g := guardOf(t)
	first := g.PID()
	awaitReady(t, g)
	for _, s := range []unix.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGPIPE} {
		require.NoError(t, unix.Kill(first, s))
	}
	me, _ := unix.Getsid(0)
	if its, err := unix.Getsid(first); err != nil || its == me {
		t.Errorf("the guard is in our session (%v): Ctrl-C would reach it", err)
	}
	if exit, err := start(t, g, t.Context(), sh("exit 4")).Wait(); exit != 4 || err != nil || g.PID() != first {
		t.Fatalf("after signals: exit %d, error %v, guard %d, was %d", exit, err, g.PID(), first)
	}

	dir := yard(t)
	p := start(t, g, t.Context(), tool(t, "tool", dir))
	wait.For(t, "the sleeper sleeps", func() bool { return sleeps(dir) })
	require.NoError(t, unix.Kill(first, unix.SIGKILL))
	if _, err := p.Wait(); !errors.Is(err, muster.ErrUnavailable) {
		t.Errorf("a tool whose guard was killed: %v", err)
	}
	if exit, err := start(t, g, t.Context(), sh("exit 4")).Wait(); exit != 4 || err != nil || g.PID() == first {
		t.Errorf("with the next guard: exit %d, error %v, guard %d", exit, err, g.PID())
	}
	// Nobody promises the sleeper's death: without tag, session and guard it cannot be found.
	for _, s := range alive(dir) {
		if !strings.Contains(s, "sleeper") {
			t.Errorf("alive: %s", s)
		}
	}
}

// TestOnlyThatTool: what two tools set free looks the same but for the mark, and only one of them is killed.
func TestOnlyThatTool(t *testing.T) {
	t.Parallel()
	g := guardOf(t)
	one, two := yard(t), yard(t)
	p := start(t, g, t.Context(), tool(t, "tool", one))
	q := start(t, g, t.Context(), tool(t, "tool", two))
	isOrphaner := func(s string) bool { return strings.Contains(s, "orphaner") } // it ends at once
	wait.For(t, "both sleep", func() bool {
		return sleeps(one) && sleeps(two) && !slices.ContainsFunc(alive(two), isOrphaner)
	})
	before := alive(two)
	require.NoError(t, p.Kill())
	_, _ = p.Wait()
	noneLives(t, one)
	if now := alive(two); len(now) != len(before) {
		t.Errorf("the other tool lost something: %v, was %v", now, before)
	}
	ends(t, start(t, g, t.Context(), sh("exit 4")), 4)
	if now := alive(two); len(now) != len(before) {
		t.Errorf("the end of a third tool cost the other something: %v, was %v", now, before)
	}
	_ = q.Kill()
	_, _ = q.Wait()
	noneLives(t, two)
}

func TestForkingFasterThanKilling(t *testing.T) {
	t.Parallel()
	g := guardOf(t)
	dir := yard(t)
	s := sh(`i=0; while [ $i -lt 2000 ]; do (setsid sh -c 'sh -c "sleep 100 & sleep 100" "$1" & exit' "$0" "$0" &); i=$((i+1)); done`)
	s.Argv = append(s.Argv, dir)
	p := start(t, g, t.Context(), s)
	wait.For(t, "some dozens", func() bool { return len(alive(dir)) > 30 })
	require.NoError(t, p.Kill())
	_, _ = p.Wait()
	noneLives(t, dir)
	below := children(g.PID())
	if len(below) > 0 {
		t.Errorf("the guard still has %v", below)
	}
}

// TestGroups: without a guard, what stays in the group, the session or the environment dies.
func TestGroups(t *testing.T) {
	t.Parallel()
	l := new(groups)
	defer l.Close()
	dir := yard(t)
	s := sh("(setsid sh -c 'sleep 100; :' \"$0\" &); sh -c 'trap \"\" TERM; sleep 100; :' \"$0\" & touch \"$0\"/sleeps; wait")
	s.Argv = append(s.Argv, dir)
	p := start(t, l, t.Context(), s)
	wait.For(t, "it began", func() bool { return sleeps(dir) })
	require.NoError(t, p.Kill())
	ends(t, p, 137)
	awaitDead(t, dir)
}

// TestWaitDoesNotHang on a pipe that something unkillable holds: here, what groups cannot find.
func TestWaitDoesNotHang(t *testing.T) {
	t.Parallel()
	l := new(groups)
	defer l.Close()
	dir := yard(t)
	s := tool(t, "leaver", dir)
	var out strings.Builder
	s.Out = &out
	ends(t, start(t, l, t.Context(), s), 7)
}

// TestWithoutMarks: where the kernel gives no marks, a process that says nothing about itself lives until the last tool
// that may have started it has ended. A tool with a namespace of its own leaves none.
func TestWithoutMarks(t *testing.T) {
	stranger := process{pid: 1 << 30, state: 'S'} // no such process
	own := func(r run) map[int]*run { return map[int]*run{stranger.pid: &r} }
	other := func(r run) map[int]*run { return map[int]*run{7: &r} }
	for name, c := range map[string]struct {
		guard *guard
		dies  bool
	}{
		"a tool":                 {&guard{running: own(run{})}, false},
		"one that is over":       {&guard{running: own(run{over: true})}, true},
		"another runs":           {&guard{running: other(run{})}, false},
		"another is over":        {&guard{running: other(run{over: true})}, true},
		"another is a namespace": {&guard{running: other(run{order: order{HasNamespace: true}})}, true},
		"none runs":              {&guard{}, true},
		"the end":                {&guard{running: own(run{}), closing: true}, true},
	} {
		if got := c.guard.mustDie(stranger); got != c.dies {
			t.Errorf("%s: it dies: %v", name, got)
		}
	}
}

func TestTheGuardKnowsNoKeys(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "secret")
	g := guardOf(t)
	ends(t, start(t, g, t.Context(), sh("exit 4")), 4)
	if env, err := os.ReadFile("/proc/" + itoa(g.PID()) + "/environ"); err != nil || strings.Contains(string(env), "secret") {
		t.Errorf("environment %q, error %v", env, err)
	}
}
