package sandbox

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/internal/proc"
	"muster/internal/testing/require"
	"muster/internal/testing/tier"
	"muster/internal/testing/wait"
)

// findAhead returns bubblewrap with what it starts ahead.
func findAhead(t testing.TB) (*bubblewrap, proc.Launcher) {
	t.Helper()
	_, l := findNamespaces(t)
	return require.Value(findBubblewrap(t.Context(), os.Environ(), nil))(t), l
}

// waits returns the sandbox that waits for a command, once there is one.
func waits(t testing.TB, b *bubblewrap) (id sandboxID, w *waiting) {
	t.Helper()
	a := &b.ahead
	wait.For(t, "a sandbox waits", func() bool {
		a.mu.Lock()
		defer a.mu.Unlock()
		for i, r := range a.asked {
			if r.next != nil {
				id, w = i, r.next
			}
		}
		return w != nil
	})
	return id, w
}

// A command that asks for the same sandbox as two before it gets one that was started ahead, and nobody else gets that
// one. It is what a new one would be.
func TestAhead(t *testing.T) {
	b, l := findAhead(t)
	dir := t.TempDir()
	rules := append(System(), Rule{Path: dir, Access: Write})
	start := func(ctx context.Context, command string, out io.Writer) proc.Process {
		t.Helper()
		s := proc.Spec{Argv: []string{"sh", "-c", command, "it's", ""}, Dir: dir, Env: []string{"PATH=/usr/bin:/bin", "A=b c"}, Out: out}
		return require.Value(b.start(ctx, l, s, rules))(t)
	}
	run := func(command string, want int) string {
		t.Helper()
		var out bytes.Buffer
		if exit, err := start(t.Context(), command, &out).Wait(); exit != want || err != nil {
			t.Errorf("%s: exit %d, %v", command, exit, err)
		}
		return out.String()
	}
	const look = `echo "$0,$#,$A,$(pwd),$(cat; ls -d /tmp/mine 2>/dev/null)"; touch /tmp/mine; echo x > written; echo wrong >&2; exit 3`
	first := run(look, 3)
	if want := "it's,1,b c," + dir + ",\nwrong\n"; first != want {
		t.Errorf("%q, want %q", first, want)
	}
	run("true", 0)
	for range 3 {
		_, w := waits(t, b)
		var out bytes.Buffer
		p := start(t.Context(), look, &out)
		if exit, err := p.Wait(); p.PID() != w.PID() || exit != 3 || err != nil || out.String() != first {
			t.Errorf("process %d and not %d: exit %d, %v, %q", p.PID(), w.PID(), exit, err, out.String())
		}
	}
	t.Run("the end of ctx", func(t *testing.T) {
		waits(t, b)
		ctx, cancel := context.WithCancelCause(t.Context())
		p := start(ctx, "sleep 1000", nil)
		cancel(errors.ErrUnsupported)
		if _, err := p.Wait(); !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("ended with %v", err)
		}
	})
	t.Run("output that fails", func(t *testing.T) {
		waits(t, b)
		r, w := io.Pipe()
		_ = r.CloseWithError(io.ErrShortBuffer)
		if _, err := start(t.Context(), "yes", struct{ io.Writer }{w}).Wait(); !errors.Is(err, io.ErrShortBuffer) {
			t.Errorf("ended with %v", err)
		}
	})
	t.Run("one that was killed", func(t *testing.T) {
		_, w := waits(t, b)
		require.NoError(t, w.Kill())
		<-w.ended
		if got := run(look, 3); got != first {
			t.Errorf("%q", got)
		}
	})
	t.Run("none asks", func(t *testing.T) {
		id, w := waits(t, b)
		b.ahead.forget(id)
		<-w.ended
	})
}

// A sandbox that was started ahead is not used where what it shows has changed since, nor for another program.
func TestAheadFits(t *testing.T) {
	b, l := findAhead(t)
	base := t.TempDir()
	at := func(name string) string { return filepath.Join(base, name) }
	write(t, base, filepath.Base, "dir/a", "hidden/b", "link-1/c", "link-2/d")
	require.NoError(t, os.Symlink("link-1", at("link")))
	rules := append(System(), Rule{Path: at("dir"), Access: Write}, Rule{Path: at("hidden"), Access: Empty}, Rule{Path: at("later")},
		Rule{Path: at("dir/secret"), Access: Masked}, Rule{Path: at("shown"), From: at("link")})
	same := proc.Spec{Argv: []string{"sh", "-c", "cd " + base + "; find . -type f -size +0 | sort | tr '\\n' ' '"}, Dir: "/", Env: []string{"PATH=/usr/bin:/bin"}}
	run := func(s proc.Spec) (pid int, out string) {
		t.Helper()
		var text bytes.Buffer
		s.Out = &text
		p := require.Value(b.start(t.Context(), l, s, rules))(t)
		_, err := p.Wait()
		require.NoError(t, err)
		return p.PID(), text.String()
	}
	again := func(name string) error {
		return errors.Join(os.Rename(at(name), at("old-"+name)), os.Mkdir(at(name), 0o755), os.WriteFile(at(name+"/new"), []byte("new"), 0o600))
	}
	for name, c := range map[string]struct {
		change func(s *proc.Spec) error
		want   string // is seen besides
	}{
		"nothing":             {func(*proc.Spec) error { return nil }, ""},
		"environment":         {func(s *proc.Spec) error { s.Env = append(s.Env, "B=c"); return nil }, ""},
		"directory":           {func(s *proc.Spec) error { s.Dir = "/usr"; return nil }, ""},
		"limits":              {func(s *proc.Spec) error { s.Limits.FileSize = 1 << 30; return nil }, ""},
		"input":               {func(s *proc.Spec) error { s.Stdin = strings.NewReader("x"); return nil }, ""},
		"a path that appears": {func(*proc.Spec) error { return os.WriteFile(at("later"), []byte("later"), 0o600) }, "./later"},
		"a mask that appears": {func(*proc.Spec) error { return os.WriteFile(at("dir/secret"), []byte("secret"), 0o600) }, ""},
		"another directory":   {func(*proc.Spec) error { return again("dir") }, "./dir/new"},
		"hidden, another one": {func(*proc.Spec) error { return again("hidden") }, ""},
		"another link": {func(*proc.Spec) error {
			return errors.Join(os.Remove(at("link")), os.Symlink("link-2", at("link")))
		}, "./shown/d"},
	} {
		t.Run(name, func(t *testing.T) {
			for range 2 {
				run(same)
			}
			_, w := waits(t, b)
			s := same
			require.NoError(t, c.change(&s))
			pid, out := run(s)
			if (pid == w.PID()) != (name == "nothing") {
				t.Errorf("the sandbox that waited was used: %v", pid == w.PID())
			}
			if !strings.Contains(out, c.want) || strings.Contains(out, "hidden") || strings.Contains(out, "secret") {
				t.Errorf("it sees %s", out)
			}
			for id := range b.ahead.asked {
				b.ahead.forget(id)
			}
		})
	}
}

// tryCalls makes calls that a filter refuses, and some that it must not, and prints how each ends.
const tryCalls = `
import ctypes, errno, fcntl, mmap, os, socket
libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
def call(name, *args):
    ok = libc.syscall(*[ctypes.c_long(a) for a in args]) >= 0
    print(name, "done" if ok else errno.errorcode[ctypes.get_errno()])
def does(name, f):
    try:
        f()
        print(name, "done")
    except OSError as e:
        print(name, errno.errorcode[e.errno])
def loopback():
    s = socket.create_server(("127.0.0.1", 0)); c = socket.create_connection(s.getsockname()); s.accept()
call("keyctl", 250, 0, -3, 0); call("add_key", 248, 0, 0, 0, 0, -3); call("request_key", 249, 0, 0, 0, 0)
call("io_uring", 425, 1, 0); call("memfd", 319, 0, 0); call("bpf", 321, 0, 0, 0); call("userfaultfd", 323, 0)
call("unshare", 272, 0x10000000); call("clone3", 435, 0, 0)
call("shmget", 29, 0, 4096, 0o1600); call("shmget, much", 29, 0, 1 << 20, 0o1600); call("shmget, more", 29, 0, 1 << 32, 0o1600)
for family in ("vsock", 40), ("alg", 38), ("packet", 17), ("bluetooth", 31), ("unix", 1), ("netlink", 16):
    does(family[0], lambda: socket.socket(family[1], socket.SOCK_RAW if family[1] in (16, 17) else socket.SOCK_STREAM if family[1] != 38 else 5))
does("pair", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)); does("loopback", loopback)
open("/tmp/f", "w"); f = open("/tmp/f")
does("lease", lambda: fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_RDLCK)); does("lock", lambda: fcntl.lockf(open("/tmp/f", "w"), fcntl.LOCK_EX))
does("suid", lambda: os.chmod("/tmp/f", 0o4755)); does("made suid", lambda: os.open("/tmp/s", os.O_CREAT, 0o4755)); os.mkdir("/tmp/d")
does("group's directory", lambda: os.chmod("/tmp/d", 0o2755)); does("attribute", lambda: os.chmod("/tmp/f", 0o600)); does("priority", lambda: os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0)))
does("processors", lambda: os.sched_setaffinity(os.getpid(), os.sched_getaffinity(0)))
`

// The filter of calls holds in bubblewrap, too, but for what a program's own namespaces confine.
func TestFilterInNamespaces(t *testing.T) {
	m, l := findNamespaces(t)
	if _, err := os.Stat("/usr/bin/python3"); err != nil {
		tier.Missing(t, "python3 is missing")
	}
	got := run(t, m, l, System(), "/usr/bin/python3 - <<'E'\n"+tryCalls+"\nE\n")
	for line := range strings.Lines(`keyctl EPERM
add_key EPERM
request_key EPERM
io_uring ENOSYS
memfd ENOSYS
bpf EPERM
userfaultfd EPERM
unshare EPERM
clone3 ENOSYS
shmget done
shmget, much ENOSPC
shmget, more ENOSPC
vsock EAFNOSUPPORT
alg EAFNOSUPPORT
packet EAFNOSUPPORT
bluetooth EAFNOSUPPORT
unix done
netlink done
pair done
loopback done
lease EPERM
lock done
suid EPERM
made suid EPERM
group's directory done
attribute done
priority done
processors done
`) {
		if !strings.Contains("\n"+got, "\n"+line) {
			t.Errorf("want %sgot\n%s", line, got)
		}
	}
}
