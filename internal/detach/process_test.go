//go:build unix

package detach

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/charmbracelet/x/term"
	"golang.org/x/sys/unix"

	"muster/internal/testing/require"
	"muster/internal/testing/tier"
	"muster/internal/testing/tmuxtest"
	"muster/internal/testing/wait"
)

// TestMain is the program that is tested, when the test binary starts itself: a first process, or the child of one.
func TestMain(m *testing.M) {
	if os.Getenv("MUSTER_TEST_DETACH") == "" {
		signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP) // under nohup the program would ignore it
		os.Exit(m.Run())
	}
	terminal, env := FromEnv(os.Environ())
	if terminal != nil {
		os.Exit(child(terminal, os.Args[1:]))
	}
	code, err := Foreground(os.Args[1:], env)
	if err != nil {
		fmt.Println("no child:", err)
		os.Exit(99)
	}
	os.Exit(code)
}

// quickExit keeps the race detector from waiting a second at each exit of the program.
const quickExit = "GORACE=atexit_sleep_ms=0"

// child is the work of the program.
func child(terminal *Terminal, args []string) int {
	gone := errors.New("the first process is gone")
	ctx, cancel := terminal.Context(context.Background(), gone)
	defer cancel(nil)
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) {
		signal.Notify(signals, syscall.SIGHUP)
	}
	switch args[0] {
	case "exit":
		code, _ := strconv.Atoi(args[1])
		return code
	case "nested":
		_, again := Foreground([]string{"exit", "0"}, os.Environ())
		fmt.Println("variable", os.Getenv(variable), "child", again)
		return 0
	case "raw":
		_, _ = term.MakeRaw(os.Stdin.Fd())
		fmt.Print("\x1b[?25l")
	case "leave":
		// The test reads this file: what is printed after Leave reaches nobody.
		text := fmt.Sprint("left ", os.Getpid())
		if err := terminal.Leave(); err != nil {
			text = err.Error()
		}
		_ = os.WriteFile(args[1], []byte(text), 0o600)
	}
	fmt.Println("ready", os.Getpid())
	select {
	case <-ctx.Done():
		_ = os.WriteFile(args[1], []byte(context.Cause(ctx).Error()), 0o600)
		return 3
	case s := <-signals:
		fmt.Println("signal", s)
		return 4
	}
}

// program is a first process, with its child.
type program struct {
	*exec.Cmd
	t      *testing.T
	out    *bufio.Reader
	note   string // the file in which the child says what nobody may read any more
	child  int
	waited bool
}

// start starts the program by a command that runs it, in a process group of its own.
func start(t *testing.T, before []string, args ...string) *program {
	t.Helper()
	self := require.Value(os.Executable())(t)
	p := &program{t: t, note: filepath.Join(t.TempDir(), "note")}
	args = append(append(append([]string{}, before...), self), append(args, p.note)...)
	p.Cmd = exec.Command(args[0], args[1:]...)
	p.Env = append(os.Environ(), "MUSTER_TEST_DETACH=yes", quickExit)
	p.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out := require.Value(p.StdoutPipe())(t)
	p.out = bufio.NewReader(out)
	require.NoError(t, p.Start())
	t.Cleanup(func() {
		if p.child != 0 {
			_ = syscall.Kill(p.child, syscall.SIGKILL)
		}
		if !p.waited {
			_ = p.Process.Kill()
			_ = p.Wait()
		}
	})
	return p
}

// ready waits until the child works.
func (p *program) ready() *program {
	p.t.Helper()
	line, err := p.out.ReadString('\n')
	if _, scanErr := fmt.Sscanf(line, "ready %d", &p.child); scanErr != nil {
		p.t.Fatalf("it says %q, %v", line, err)
	}
	return p
}

// ends waits for the first process, and returns its exit code and what was printed meanwhile.
func (p *program) ends() (code int, said string) {
	p.t.Helper()
	out, err := io.ReadAll(p.out)
	if err != nil {
		p.t.Error(err)
	}
	p.waited = true
	if err := p.Wait(); err != nil && p.ProcessState == nil {
		p.t.Fatal(err)
	}
	return p.ProcessState.ExitCode(), string(out)
}

// noted waits until the child has noted something.
func (p *program) noted(want string) {
	p.t.Helper()
	var got []byte
	wait.For(p.t, "the child notes "+want, func() bool {
		got, _ = os.ReadFile(p.note)
		return bytes.Contains(got, []byte(want))
	})
}

// isAlive reports whether a process runs: one that has ended and is not waited for does not.
func isAlive(pid int) bool {
	out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && !strings.HasPrefix(strings.TrimSpace(string(out)), "Z")
}

func TestExitCodes(t *testing.T) {
	for _, want := range []int{0, 7, 255} {
		if code, _ := start(t, nil, "exit", strconv.Itoa(want)).ends(); code != want {
			t.Errorf("the child ends with %d, the first process with %d", want, code)
		}
	}
	code, said := start(t, nil, "nested").ends()
	if code != 0 || !strings.HasPrefix(said, "variable  child <nil>") {
		// The variable is not inherited, so a child is free to start another first process.
		t.Errorf("%d, %q", code, said)
	}
}

// A signal to the first process alone reaches the child, which decides what it means.
func TestSignalsArePassedOn(t *testing.T) {
	for _, s := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if s == syscall.SIGHUP && signal.Ignored(s) {
			continue // the test itself runs under nohup
		}
		p := start(t, nil, "wait").ready()
		require.NoError(t, p.Process.Signal(s))
		if code, said := p.ends(); code != 4 || said != "signal "+s.String()+"\n" {
			t.Errorf("%v: the first process ends with %d, the child said %q", s, code, said)
		}
	}
}

// Under nohup a hangup of the terminal, which reaches both processes, ends neither.
func TestHangupIsIgnoredUnderNohup(t *testing.T) {
	p := start(t, []string{"nohup"}, "wait").ready()
	require.NoError(t, syscall.Kill(-p.Process.Pid, syscall.SIGHUP))
	// The second signal shows that the first one is over: a process takes the lower number first.
	require.NoError(t, syscall.Kill(p.child, syscall.SIGTERM))
	if code, said := p.ends(); code != 4 || said != "signal terminated\n" {
		t.Errorf("it ends with %d after %q", code, said)
	}
}

// A child whose first process was killed learns that at once, and one that has left never does.
func TestFirstProcessIsKilled(t *testing.T) {
	p := start(t, nil, "wait").ready()
	require.NoError(t, p.Process.Kill())
	p.noted("the first process is gone")
	wait.For(t, "the child ends", func() bool { return !isAlive(p.child) })
}

// A process that has left the terminal goes on in a session of its own, where the first one's signals do not reach it.
func TestLeave(t *testing.T) {
	p := start(t, nil, "leave")
	if code, said := p.ends(); code != 0 || said != "" {
		t.Fatalf("the first process ends with %d after %q", code, said)
	}
	p.noted("left ")
	note, _ := os.ReadFile(p.note)
	if _, err := fmt.Sscanf(string(note), "left %d", &p.child); err != nil {
		t.Fatalf("it noted %q", note)
	}
	if session, err := unix.Getsid(p.child); err != nil || session != p.child {
		t.Errorf("it is in session %d, %v", session, err)
	}
	if err := syscall.Kill(-p.Process.Pid, syscall.SIGTERM); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("somebody is left in the first process's group: %v", err)
	}
	if again, _ := os.ReadFile(p.note); !bytes.Equal(again, note) || !isAlive(p.child) {
		t.Errorf("it has ended, and noted %q", again)
	}
}

// The first process may be killed in the moment in which the child leaves. The child then goes on: it was told to.
func TestLeaveAfterTheFirstProcess(t *testing.T) {
	ours, theirs, err := pair()
	require.NoError(t, err)
	_ = ours.Close()
	terminal := &Terminal{pipe: theirs}
	if err := terminal.tell(); err != nil || !terminal.hasLeft.Load() {
		t.Errorf("leaving fails: %v", err)
	}
}

// A process whose end would end all others starts no child that could outlive it.
func TestFirstProcessOfANamespace(t *testing.T) {
	unshare := []string{"unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child"}
	if os.Geteuid() == 0 { // root may without a namespace of users, which some systems forbid
		unshare = append(unshare[:1:1], unshare[3:]...)
	}
	if out, err := exec.Command(unshare[0], append(unshare[1:], "true")...).CombinedOutput(); err != nil {
		tier.Missing(t, fmt.Sprintf("no namespace of processes can be made: %v: %s", err, out))
	}
	code, said := start(t, unshare, "exit", "0").ends()
	if code != 99 || said != "no child: no process outlives the first one of a container\n" {
		t.Errorf("it ends with %d after %q", code, said)
	}
}

// inTerminal starts a shell in a terminal, in which the command talk runs the program in raw mode.
func inTerminal(t *testing.T) *tmuxtest.Screen {
	t.Helper()
	self := require.Value(os.Executable())(t)
	s := tmuxtest.Start(t, "", append(os.Environ(), "MUSTER_TEST_DETACH=yes", quickExit))
	script := fmt.Sprintf("#!/bin/sh\nexec '%s' \"$@\" '%s/note'\n", self, s.Dir)
	require.NoError(t, os.WriteFile(filepath.Join(s.Dir, "talk"), []byte(script), 0o700))
	return s
}

// kill kills the child in a terminal.
func kill(t *testing.T, s *tmuxtest.Screen, seen string) {
	t.Helper()
	pid := 0
	if _, err := fmt.Sscanf(seen[strings.LastIndex(seen, "ready "):], "ready %d", &pid); err != nil {
		t.Fatalf("%v:\n%s", err, s.Text())
	}
	require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
}

// A child that is killed gives back nothing by itself. The first process does it, once, and says by its exit code what
// has happened.
func TestChildIsKilledOnATerminal(t *testing.T) {
	s := inTerminal(t)
	s.Tmux("pipe-pane", "-o", "cat > '"+s.Dir+"/bytes'")
	s.Keys("talk raw; echo ended with $?", "Enter")
	kill(t, s, s.Wait(`ready \d+`))
	s.Wait(`ended with 137\n\$ $`)
	s.Cooked()
	s.Keys("echo typed", "Enter")
	s.Wait(`\$ echo typed\ntyped\n\$ $`)
	// What tmux passes on arrives in its own time. What was typed last comes behind what is counted.
	var written []byte
	wait.For(t, "what the terminal was told", func() bool {
		written, _ = os.ReadFile(filepath.Join(s.Dir, "bytes"))
		return bytes.Contains(written, []byte("\ntyped"))
	})
	if n := bytes.Count(written, []byte("\x1b[?25h")); n != 1 {
		t.Errorf("the cursor was shown %d times: %q", n, written)
	}
}

// A first process in the background of its shell leaves the terminal to who has it now. Setting its mode would stop the
// process, and disturb the program in the foreground.
func TestChildIsKilledInTheBackground(t *testing.T) {
	tier.All(t)
	s := inTerminal(t)
	s.Keys("talk wait &", "Enter")
	kill(t, s, s.Wait(`ready \d+`))
	s.Keys("wait", "Enter")
	s.Wait(`(Done\(|Exit )137`)
}
