package proc

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"muster"
	"muster/internal/landlock"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
	"muster/internal/testing/wait"
)

// A tool that takes more of the machine than it may is stopped, and whoever reads its output is told why: as the user of
// this test, for whom control groups may keep the limits, and in all also as one who can make none.
func TestLimitsHold(t *testing.T) {
	t.Run("user", func(t *testing.T) {
		if err := exceedLimits(guardOf(t), t.TempDir()); err != nil {
			t.Error(err)
		}
	})
	t.Run("nobody", func(t *testing.T) {
		tier.All(t)
		if os.Getuid() != 0 {
			tier.Missing(t, "only root can be another user")
		}
		// Nobody can go there, and start this program.
		dir, err := os.MkdirTemp("/tmp", "muster-limits-")
		require.NoError(t, err)
		t.Cleanup(func() { _ = os.RemoveAll(dir) })
		self, err := os.Executable()
		if err == nil {
			err = exec.Command("cp", self, filepath.Join(dir, "program")).Run()
		}
		const nobody = 65534
		require.NoError(t, errors.Join(err, os.Chown(dir, nobody, nobody)))
		playLimits(t, filepath.Join(dir, "program"), "limits", dir, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}})
	})
}

// What a tool has started before it is limited is limited, too.
func TestLimitsOfWhatHasStarted(t *testing.T) {
	c := exec.Command("sh", "-c", "sh -c 'sleep 100 & echo $!; wait' & wait")
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Process.Kill() })
	var last int
	if _, err := fmt.Fscan(out, &last); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(last, syscall.SIGKILL) })
	new(guard).limit(&run{pid: c.Process.Pid, order: order{Limits: Limits{FileSize: 1 << 20}}})
	var limit unix.Rlimit
	if err := unix.Prlimit(last, unix.RLIMIT_FSIZE, nil, &limit); err != nil || limit.Max != 1<<20 {
		t.Errorf("the limit of the last one is %d, %v", limit.Max, err)
	}
}

// Before a disk is full, the tool that fills it is killed, and no other. One that starts then can make room.
func TestDiskStaysFree(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS} // so that it can mount a disk of its own
	if os.Getuid() != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
	}
	playLimits(t, self, "disk", t.TempDir(), attr)
}

// playLimits has a program of its own try limits.
func playLimits(t *testing.T, program, mode, dir string, attr *syscall.SysProcAttr) {
	c := exec.Command(program, "play", mode, dir)
	c.SysProcAttr = attr
	if out, err := c.CombinedOutput(); err != nil || string(out) != "all hold\n" {
		t.Errorf("%v: %s", err, out)
	}
}

// fillDisk mounts a disk of 200 MB and has tools fill it, with bytes and with empty files, beside one that only sleeps.
func fillDisk(l Launcher, dir string) error {
	if err := syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=200m,nr_inodes=20000"); err != nil {
		return err
	}
	var outs [4]bytes.Buffer
	var tools [4]Process
	for i, script := range []string{"sleep 3600 & wait", "head -c 190M /dev/zero > big; exec sleep 3600", "rm big; head -c 10M /dev/zero > small; echo fine",
		"i=0; while [ $i -lt 19900 ] && : > $i; do i=$((i+1)); done; exec sleep 3600"} {
		s := sh(script)
		s.Dir, s.Limits, s.Out = dir, Limits{FreeDisk: 100 << 20}, &outs[i]
		var err error
		if tools[i], err = l.Start(context.Background(), s); err != nil {
			return err
		}
		if i > 0 {
			_, err = tools[i].Wait()
		}
		if err != nil {
			return err
		}
	}
	for i, want := range []string{"free on the disk", "fine\n", "free on the disk"} { // of those that have ended
		if got := outs[i+1].String(); !strings.Contains(got, want) {
			return fmt.Errorf("tool %d: %q, want %q", i+1, got, want)
		}
	}
	if tools[0].(*child).isOver() {
		return errors.New("the tool that wrote nothing was killed")
	}
	return tools[0].Kill()
}

// exceedLimits has tools of a launcher exceed each limit in turn, beside one that exceeds none.
func exceedLimits(l Launcher, dir string) error {
	var bad []error
	fail := func(format string, args ...any) { bad = append(bad, fmt.Errorf(format, args...)) }
	innocent := sh("exec sleep 3600")
	innocent.Dir, innocent.Limits = dir, Limits{Processes: 5, Memory: 1 << 30, FreeDisk: 1}
	beside, err := l.Start(context.Background(), innocent)
	if err != nil {
		return err
	}
	// Either starts threads, or fills shared memory, in as many processes as it is told.
	const python = `exec /usr/bin/python3 -c '
import mmap, os, sys, threading, time
what, size, many = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
shared = mmap.mmap(-1, size << 20 or 1)
def fill():
    for i in range(size): shared[i << 20:(i + 1) << 20] = b"x" * (1 << 20)
if what == "threads":
    for i in range(many): threading.Thread(target=time.sleep, args=(3600,)).start()
if what == "shared":
    for i in range(many):
        if os.fork() == 0: fill(); time.sleep(0.5); os._exit(0)
    fill()
    for i in range(many): os.wait()
    if many == 0: time.sleep(3600)
print("fine")' `
	cases := []struct {
		name, script string
		limits       Limits
		want         string
	}{
		{"processes", "(i=0; while [ $i -lt 500 ]; do sleep 3600 & i=$((i+1)); done) 2>/dev/null; exec sleep 3600", Limits{Processes: 40}, "its limit of 40 processes"},
		{"a file", "head -c 5M /dev/zero > f; exec wc -c f", Limits{FileSize: 1 << 20}, "1048576 f"},
		{"nothing", "echo fine", Limits{Processes: 40, Memory: 1 << 30, FileSize: 1 << 20, FreeDisk: 1}, "fine\n"},
		{"memory", "exec dd if=/dev/zero of=/dev/null bs=200M", Limits{Memory: 64 << 20}, "its limit of 64 MB of memory"},
		{"a fork bomb", "b() { [ $1 -gt 11 ] || { b $(($1+1)) & b $(($1+1)) & }; sleep 60; }; b 0 2>/dev/null; sleep 3600", Limits{Processes: 100}, "its limit of 100 processes"},
		{"memory of many", "for i in 1 2 3 4 5 6 7 8; do dd if=/dev/zero of=/dev/null bs=30M & done; wait", Limits{Memory: 100 << 20}, "its limit of 100 MB of memory"},
		{"threads", python + "threads 0 60", Limits{Processes: 40}, "its limit of 40 processes"},
		{"shared memory", python + "shared 200 0", Limits{Memory: 100 << 20}, "its limit of 100 MB of memory"},
		{"memory that many share", python + "shared 40 8", Limits{Memory: 200 << 20}, "fine\n"},
	}
	for _, c := range cases[:tier.Amount(4, len(cases))] { // a fork bomb and much memory run alone
		var out bytes.Buffer
		s := sh(c.script)
		s.Dir, s.Limits, s.Out = dir, c.limits, &out
		p, err := l.Start(context.Background(), s)
		if err != nil {
			return err
		}
		if _, err = p.Wait(); err != nil || !strings.Contains(out.String(), c.want) {
			fail("%s: error %v, output %q", c.name, err, out.String())
		}
	}
	if c := beside.(*child); c.isOver() {
		fail("a tool that has exceeded nothing was killed")
	}
	return errors.Join(append(bad, beside.Kill())...)
}

// TestHideEnvironment starts this program again, which hides its secrets and prints what /proc shows of it.
func TestHideEnvironment(t *testing.T) {
	const key = "sk-ant-0123456789abcdef"
	if os.Getenv("HIDE_KEY") != "" {
		HideEnvironment([]string{key, "", "me"})
		inherited, _ := exec.Command("/bin/sh", "-c", "read -r line <&3; printf %s \"$line\"").Output()
		fmt.Printf("inherited %q\n", inherited)
		// The process may always look at itself.
		environ, err1 := os.ReadFile("/proc/self/environ")
		arguments, err2 := os.ReadFile("/proc/self/cmdline")
		dumpable, err3 := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
		fmt.Printf("%v %v %v dumpable=%d own=%v\n%s\n%s\n", err1, err2, err3, dumpable, os.Getenv("HIDE_KEY") == key, environ, arguments)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestHideEnvironment$", "-test.v", "-test.count=1", "http://h/?key="+key)
	cmd.Env = []string{"HIDE_KEY=" + key, "TWICE=" + key + key, "OTHER=stays"}
	cmd.Env = append(cmd.Env, "SHORT=me", "ME=menu")
	file, err := os.CreateTemp(t.TempDir(), "")
	require.NoError(t, err)
	defer file.Close()
	if _, err := file.WriteAt([]byte("of the file"), 0); err != nil {
		t.Fatal(err)
	}
	cmd.ExtraFiles = []*os.File{file}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text := string(out)
	hidden := strings.Repeat("*", len(key))
	for _, want := range []string{"<nil> <nil> <nil> dumpable=0 own=true", "HIDE_KEY=" + hidden + "\x00TWICE=" + hidden + hidden,
		"OTHER=stays", "SHORT=**\x00ME=menu\x00", `inherited ""`, "http://h/?key=" + hidden} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in %q", want, text)
		}
	}
	if strings.Contains(text, key) {
		t.Errorf("the key is in %q", text)
	}
}

// ruleset returns a ruleset with which a shell can run and write in dir.
func ruleset(t *testing.T, dir string) *os.File {
	t.Helper()
	set, err := landlock.New()
	require.NoError(t, err)
	f := set.File
	t.Cleanup(func() { _ = f.Close() })
	for path, a := range map[string]landlock.Access{"/usr": landlock.Read, "/lib": landlock.Read, "/lib64": landlock.Read, dir: landlock.Write} {
		if err := set.Allow(path, a); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	return f
}

// A tool with a ruleset is under it, with its limits, and so is what it starts; tools without one are not. The threads
// that start them end with them.
func TestRulesets(t *testing.T) {
	if landlock.Version() < landlock.MinVersion {
		tier.Missing(t, "this kernel has no Landlock")
	}
	g := guardOf(t)
	in, out := yard(t), yard(t)
	threads := func() int {
		all, _ := filepath.Glob("/proc/" + itoa(g.PID()) + "/task/*")
		return len(all)
	}
	run := func(f *os.File) string {
		var said bytes.Buffer
		s := sh(`echo x > in; (setsid sh -c 'echo x > ` + out + `/out' 2>&- && echo free); (ulimit -f)
			chmod 640 in && stat -c %a in; chmod 755 ` + out + ` 2>&- && echo changed; true`)
		s.Dir, s.Out, s.Ruleset, s.Limits = in, &said, f, Limits{Processes: 100, FileSize: 1 << 20}
		s.Writable = []string{in}
		ends(t, start(t, g, t.Context(), s), 0)
		return said.String()
	}
	if got := run(nil); got != "free\n2048\n640\nchanged\n" {
		t.Errorf("without a ruleset: %q", got)
	}
	f := ruleset(t, in)
	before := threads()
	for range 30 {
		if got := run(f); got != "2048\n640\n" {
			t.Fatalf("with a ruleset: %q", got)
		}
	}
	wait.For(t, "the threads end", func() bool { return threads() <= before+5 })
	if got := run(nil); got != "free\n2048\n640\nchanged\n" {
		t.Errorf("afterwards, without a ruleset: %q", got)
	}
	// The end of its thread kills no tool that still runs.
	p := start(t, g, t.Context(), Spec{Argv: []string{"/bin/sleep", "100"}, Ruleset: f})
	run(f)
	if err := p.Kill(); err != nil {
		t.Error(err)
	}
	ends(t, p, 137)
}

// A tool with a namespace of its own finds no key of the user's session, and one without finds it.
func TestSessionKeyring(t *testing.T) {
	runtime.LockOSThread() // the keyring is the thread's, which starts the guard
	newSessionKeyring()
	if _, err := unix.AddKey("user", "muster-test", []byte("secret"), unix.KEY_SPEC_SESSION_KEYRING); err != nil {
		tier.Missing(t, "the kernel keeps no keys: "+err.Error())
	}
	g := guardOf(t)
	const search = `import ctypes; print(ctypes.CDLL(None).syscall(250, 10, -3, b"user", b"muster-test", 0) > 0)`
	for _, isOwn := range []bool{false, true, true, false} {
		var out bytes.Buffer
		s := Spec{Argv: []string{"/usr/bin/python3", "-c", search}, Out: &out, HasNamespace: isOwn}
		ends(t, start(t, g, t.Context(), s), 0)
		if want := map[bool]string{false: "True\n", true: "False\n"}[isOwn]; out.String() != want {
			t.Errorf("with a namespace %v: the key is found: %s", isOwn, out.String())
		}
	}
}

// What cannot put a tool under its ruleset does not start it.
func TestNoRulesetWithoutAGuard(t *testing.T) {
	l := new(groups)
	defer l.Close()
	s := sh("exit 0")
	s.Ruleset = ruleset(t, yard(t))
	if _, err := l.Start(t.Context(), s); !errors.Is(err, muster.ErrUnavailable) {
		t.Errorf("started with the error %v", err)
	}
}
