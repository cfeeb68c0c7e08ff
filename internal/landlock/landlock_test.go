//go:build linux && (amd64 || arm64)

package landlock

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"muster/internal/testing/tier"
)

// TestMain lets the test binary be a confined program, which tries what its arguments name.
func TestMain(m *testing.M) {
	if len(os.Args) == 4 && os.Args[1] == "confine" {
		if err := confine(os.Args[2], os.Args[3]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) == 4 && os.Args[1] == "try" {
		for _, name := range slices.Sorted(maps.Keys(tries)) {
			fmt.Printf("%s: %s\n", name, outcome(tries[name].do(os.Args[2], os.Args[3])))
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// outcome is the errno of an error, or "done".
func outcome(err error) string {
	if errno, ok := errors.AsType[syscall.Errno](err); ok {
		return unix.ErrnoName(errno)
	}
	if err != nil {
		return err.Error()
	}
	return "done"
}

// call makes a call of the system.
func call(number uintptr, args ...uintptr) error {
	args = append(args, 0, 0, 0, 0, 0, 0)
	_, _, errno := unix.Syscall6(number, args[0], args[1], args[2], args[3], args[4], args[5])
	if errno != 0 {
		return errno
	}
	return nil
}

// touch makes a file.
func touch(path string) error { return os.WriteFile(path, nil, 0o600) }

// pair makes a pair of sockets.
func pair(domain, kind int) error {
	fds, err := unix.Socketpair(domain, kind, 0)
	if err == nil {
		err = errors.Join(unix.Close(fds[0]), unix.Close(fds[1]))
	}
	return err
}

// socket makes a socket.
func socket(domain, kind int) error { _, err := unix.Socket(domain, kind, 0); return err }

// tries are what a confined program tries: in is a directory that it may write, and out one of which it may see
// nothing.
var tries = map[string]struct {
	want string
	do   func(in, out string) error
}{
	"write in": {"done", func(in, _ string) error { return touch(in + "/new") }},
	"make and rename": {"done", func(in, _ string) error {
		return errors.Join(os.Mkdir(in+"/d", 0o700), touch(in+"/a"), os.Rename(in+"/a", in+"/d/b"), os.RemoveAll(in+"/d"))
	}},
	"write out":      {"EACCES", func(_, out string) error { return touch(out + "/new") }},
	"read out":       {"EACCES", func(_, out string) error { _, err := os.ReadFile(out + "/secret"); return err }},
	"list out":       {"EACCES", func(_, out string) error { _, err := os.ReadDir(out); return err }},
	"remove out":     {"EACCES", func(_, out string) error { return os.Remove(out + "/secret") }},
	"cut off out":    {"EACCES", func(_, out string) error { return os.Truncate(out+"/secret", 0) }},
	"link out":       {"EACCES EXDEV EPERM", func(in, out string) error { return os.Link(out+"/secret", in+"/link") }},
	"move out":       {"EACCES", func(in, out string) error { return errors.Join(touch(in+"/move"), os.Rename(in+"/move", out+"/moved")) }},
	"through a link": {"EACCES", func(in, out string) error { _ = os.Symlink(out, in+"/way"); return touch(in + "/way/new") }},
	"through a descriptor": {"EACCES", func(_, out string) error {
		fd, err := unix.Open(out, unix.O_PATH, 0) // may be opened, and gives no rights
		if err == nil {
			_, err = unix.Openat(fd, "secret", unix.O_RDONLY, 0)
		}
		return err
	}},
	"fifo in": {"done", func(in, _ string) error { return unix.Mkfifo(in+"/fifo", 0o600) }},
	"device":  {"EPERM EACCES", func(in, _ string) error { return unix.Mknod(in+"/dev", unix.S_IFCHR|0o600, int(unix.Mkdev(1, 1))) }},
	"settings": {"EACCES", func(string, string) error {
		_, err := os.OpenFile("/proc/sys/kernel/core_pattern", os.O_WRONLY, 0)
		return err
	}},
	"environment of the parent": {"EACCES", func(string, string) error {
		_, err := os.ReadFile("/proc/" + strconv.Itoa(os.Getppid()) + "/environ")
		return err
	}},
	"trace the parent":               {"EPERM", func(string, string) error { return call(unix.SYS_PTRACE, unix.PTRACE_ATTACH, uintptr(os.Getppid())) }},
	"signal the parent":              {"EPERM", func(string, string) error { return unix.Kill(os.Getppid(), 0) }},
	"signal all":                     {"EPERM", func(string, string) error { return unix.Kill(-1, 0) }},
	"signal the group of the parent": {"EPERM ESRCH", func(string, string) error { return unix.Kill(-os.Getppid(), 0) }},
	"signal itself":                  {"done", func(string, string) error { return unix.Kill(os.Getpid(), 0) }},
	// One of the parent's threads is under the same rules.
	"signal the parent's threads": {"EPERM", func(string, string) error {
		return eachThread(func(id int) error { return call(unix.SYS_TGKILL, uintptr(os.Getppid()), uintptr(id), 0) })
	}},
	"signal them by number": {"EPERM", func(string, string) error {
		return eachThread(func(id int) error { return errors.Join(unix.Kill(id, 0), call(unix.SYS_TKILL, uintptr(id), 0)) })
	}},
	"signal them by a queue": {"EPERM", func(string, string) error {
		var info [128]byte
		return eachThread(func(id int) error {
			return call(unix.SYS_RT_TGSIGQUEUEINFO, uintptr(os.Getppid()), uintptr(id), 0, uintptr(unsafe.Pointer(&info)))
		})
	}},
	"descriptors of them": {"EPERM", func(string, string) error {
		return eachThread(func(id int) error { _, err := unix.PidfdOpen(id, unix.PIDFD_THREAD); return err })
	}},
	"signal for input": {"EPERM", func(string, string) error { _, err := unix.FcntlInt(0, unix.F_SETSIG, 9); return err }},
	"trace them": {"EPERM", func(string, string) error {
		return eachThread(func(id int) error { return call(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(id)) })
	}},
	"memory of them": {"EACCES", func(string, string) error {
		return eachThread(func(id int) error { _, err := os.OpenFile(threadDir(id)+"/mem", os.O_RDWR, 0); return err })
	}},
	"descriptors in them": {"EACCES", func(string, string) error {
		return eachThread(func(id int) error { _, err := os.Open(threadDir(id) + "/fd/0"); return err })
	}},
	"limits of the parent":     {"EPERM", func(string, string) error { return unix.Prlimit(os.Getppid(), unix.RLIMIT_NOFILE, nil, &unix.Rlimit{}) }},
	"limits of its own":        {"done", func(string, string) error { return unix.Prlimit(0, unix.RLIMIT_NOFILE, nil, &unix.Rlimit{}) }},
	"processors of the parent": {"EPERM", func(string, string) error { return unix.SchedSetaffinity(os.Getppid(), &unix.CPUSet{1}) }},
	"processors of its own": {"done", func(string, string) error {
		var set unix.CPUSet
		return errors.Join(unix.SchedGetaffinity(0, &set), unix.SchedSetaffinity(0, &set))
	}},
	"class of the parent": {"EPERM", func(string, string) error {
		return unix.SchedSetAttr(os.Getppid(), &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_BATCH}, 0)
	}},
	"priority of the parent": {"EPERM", func(string, string) error { return unix.Setpriority(unix.PRIO_PROCESS, os.Getppid(), 19) }},
	"priority of the user":   {"EPERM", func(string, string) error { return unix.Setpriority(unix.PRIO_USER, 0, 19) }},
	"priority of its own":    {"done", func(string, string) error { return unix.Setpriority(unix.PRIO_PROCESS, 0, 19) }},
	"input and output of the parent": {"EPERM", func(string, string) error {
		return call(unix.SYS_IOPRIO_SET, 1, uintptr(os.Getppid()), 3<<13)
	}},
	"mark of its own": {"EPERM", func(string, string) error {
		return unix.Prlimit(0, unix.RLIMIT_MSGQUEUE, &unix.Rlimit{Cur: 1, Max: 1}, nil)
	}},
	"mark by the older call": {"EPERM", func(string, string) error { return call(unix.SYS_SETRLIMIT, unix.RLIMIT_MSGQUEUE, 8) }},
	"mark, looked at":        {"done", func(string, string) error { return unix.Prlimit(0, unix.RLIMIT_MSGQUEUE, nil, &unix.Rlimit{}) }},
	"file in memory":         {"ENOSYS", func(string, string) error { _, err := unix.MemfdCreate("x", 0); return err }},
	"TCP":                    {"EACCES", func(string, string) error { return socket(unix.AF_INET, unix.SOCK_STREAM) }},
	"UDP":                    {"EACCES", func(string, string) error { return socket(unix.AF_INET6, unix.SOCK_DGRAM) }},
	"netlink":                {"EACCES", func(string, string) error { return socket(unix.AF_NETLINK, unix.SOCK_RAW) }},
	"local socket":           {"EACCES", func(string, string) error { return socket(unix.AF_UNIX, unix.SOCK_STREAM) }},
	"pair of streams":        {"done", func(string, string) error { return pair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC) }},
	"pair of packets":        {"done", func(string, string) error { return pair(unix.AF_UNIX, unix.SOCK_SEQPACKET) }},
	"pair of datagrams":      {"EACCES", func(string, string) error { return pair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_NONBLOCK) }},
	"pair of raw ones":       {"EACCES", func(string, string) error { return pair(unix.AF_UNIX, unix.SOCK_RAW) }},
	"pair of another family": {"EACCES", func(string, string) error { return pair(unix.AF_TIPC, unix.SOCK_STREAM) }},
	"ring":                   {"ENOSYS", func(string, string) error { return call(unix.SYS_IO_URING_SETUP, 1) }},
	"new namespace":          {"EPERM", func(string, string) error { return unix.Unshare(unix.CLONE_NEWUSER) }},
	"namespace of a child":   {"EPERM", func(string, string) error { return namespaced() }},
	"clone3":                 {"ENOSYS", func(string, string) error { return call(unix.SYS_CLONE3) }},
	"enter a namespace":      {"EPERM", func(string, string) error { return unix.Setns(0, 0) }},
	"mount":                  {"EPERM", func(in, _ string) error { return unix.Mount("none", in, "tmpfs", 0, "") }},
	"change the root":        {"EPERM", func(in, _ string) error { return unix.Chroot(in) }},
	"shared memory":          {"EPERM", func(string, string) error { return call(unix.SYS_SHMGET, 1, 100, 0o1600) }},
	"message queue":          {"EPERM", func(string, string) error { return call(unix.SYS_MQ_OPEN) }},
	"keyring":                {"EPERM", func(string, string) error { return call(unix.SYS_KEYCTL) }},
	"programs of the kernel": {"EPERM", func(string, string) error { return call(unix.SYS_BPF) }},
	"type into a terminal": {"EPERM", func(string, string) error {
		return call(unix.SYS_IOCTL, 0, unix.TIOCSTI, uintptr(unsafe.Pointer(new(byte))))
	}},
	// The kernel looks at 32 bits of the command only.
	"type with more bits": {"EPERM", func(string, string) error {
		return call(unix.SYS_IOCTL, 0, unix.TIOCSTI|1<<40, uintptr(unsafe.Pointer(new(byte))))
	}},
	"mode in": {"done", func(in, _ string) error {
		return errors.Join(touch(in+"/mode"), os.Chmod(in+"/mode", 0o751), modeIs(in+"/mode", 0o751),
			unix.Fchmodat(unix.AT_FDCWD, in+"/mode", 0o640, 0), modeIs(in+"/mode", 0o640))
	}},
	"mode by a descriptor in": {"done", func(in, _ string) error {
		f, err := os.Create(in + "/opened")
		return errors.Join(err, f.Chmod(0o604), modeIs(in+"/opened", 0o604), os.Remove(in+"/opened"), f.Chmod(0o600))
	}},
	"mode by the C library's way": {"done", func(in, _ string) error {
		f, err := os.Create(in + "/libc")
		return errors.Join(err, os.Chmod(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), 0o611), modeIs(in+"/libc", 0o611))
	}},
	"mode below the working directory": {"done", func(in, _ string) error {
		return errors.Join(os.Chdir(in), touch("here"), os.Chmod("here", 0o700), os.Chmod("./here", 0o711), modeIs(in+"/here", 0o711),
			os.Chmod(".", 0o777), os.Chmod(in, 0o700))
	}},
	"mode of a pipe": {"done", func(string, string) error {
		r, w, err := os.Pipe()
		return errors.Join(err, call(unix.SYS_FCHMOD, r.Fd(), 0o600), w.Close())
	}},
	"mode of what is not there": {"ENOENT", func(in, _ string) error { return os.Chmod(in+"/none", 0o600) }},
	"mode of no descriptor":     {"EBADF", func(string, string) error { return call(unix.SYS_FCHMOD, 999, 0o600) }},
	"mode without a name":       {"ENOENT", func(string, string) error { return os.Chmod("", 0o600) }},
	"mode of a name that is nowhere": {"EFAULT", func(string, string) error {
		return call(unix.SYS_FCHMODAT, 0, 8, 0o600)
	}},
	"mode of a link": {"ENOTSUP", func(in, _ string) error {
		_ = os.Symlink("x", in+"/broken")
		return unix.Fchmodat(unix.AT_FDCWD, in+"/broken", 0o600, unix.AT_SYMLINK_NOFOLLOW)
	}},
	"mode out":    {"EPERM", func(_, out string) error { return os.Chmod(out+"/secret", 0o666) }},
	"mode of out": {"EPERM", func(_, out string) error { return os.Chmod(out, 0o777) }},
	"mode through a link": {"EPERM", func(in, out string) error {
		_ = os.Symlink(out+"/secret", in+"/mode-link")
		return os.Chmod(in+"/mode-link", 0o666)
	}},
	"mode through a way": {"EPERM", func(in, out string) error {
		_ = os.Symlink(out, in+"/mode-way")
		return os.Chmod(in+"/mode-way/secret", 0o666)
	}},
	"mode through dots": {"EPERM", func(in, out string) error { return os.Chmod(in+"/../"+filepath.Base(out)+"/secret", 0o666) }},
	"mode by a descriptor": {"EPERM", func(_, out string) error {
		fd, err := unix.Open(out, unix.O_PATH, 0)
		return errors.Join(err, unix.Fchmodat(fd, "secret", 0o666, 0))
	}},
	"mode by a descriptor's name": {"EPERM", func(_, out string) error {
		fd, err := unix.Open(out+"/secret", unix.O_PATH, 0)
		return errors.Join(err, os.Chmod(fmt.Sprintf("/proc/self/fd/%d", fd), 0o666))
	}},
	"mode through a process": {"ELOOP EPERM", func(_, out string) error { return os.Chmod("/proc/self/root"+out+"/secret", 0o666) }},
	"mode of what the parent has open": {"ELOOP ENOENT EPERM EBADF", func(string, string) error {
		return errors.Join(os.Chmod("/proc/self/fd/../fd/3", 0o666), os.Chmod(fmt.Sprintf("/proc/%d/fd/1", os.Getppid()), 0o666))
	}},
	"owner in": {"done", func(in, _ string) error {
		_ = os.Symlink("x", in+"/owned-link")
		return errors.Join(touch(in+"/owned"), os.Chown(in+"/owned", os.Getuid(), os.Getgid()), os.Lchown(in+"/owned-link", -1, os.Getgid()))
	}},
	"owner in, of another": {"EPERM", func(in, _ string) error { return errors.Join(touch(in+"/given"), os.Chown(in+"/given", 12345, -1)) }},
	"owner out":            {"EPERM", func(_, out string) error { return os.Chown(out+"/secret", -1, os.Getgid()) }},
	"dates in": {"done", func(in, _ string) error {
		at := time.Unix(1e9, 5000)
		err := errors.Join(touch(in+"/dated"), os.Chtimes(in+"/dated", at, at))
		if st, statErr := os.Stat(in + "/dated"); err == nil && (statErr != nil || !st.ModTime().Equal(at)) {
			err = fmt.Errorf("the date is %v, %w", st.ModTime(), statErr)
		}
		return errors.Join(err, unix.Utimes(in+"/dated", nil), call(unix.SYS_UTIMENSAT, descriptor(in+"/dated"), 0, 0, 0))
	}},
	"dates of a link in": {"done", func(in, _ string) error {
		_ = os.Symlink("x", in+"/dated-link")
		return unix.UtimesNanoAt(unix.AT_FDCWD, in+"/dated-link", []unix.Timespec{{Sec: 1}, {Sec: 2}}, unix.AT_SYMLINK_NOFOLLOW)
	}},
	"dates out":         {"EPERM", func(_, out string) error { return os.Chtimes(out+"/secret", time.Unix(1, 0), time.Unix(1, 0)) }},
	"dates out, by now": {"EPERM", func(_, out string) error { return unix.Utimes(out+"/secret", nil) }},
	"flags": {"ENOTTY", func(string, string) error {
		flags := 0x40 // what dump leaves out
		return call(unix.SYS_IOCTL, descriptor(os.Args[0]), unix.FS_IOC_SETFLAGS, uintptr(unsafe.Pointer(&flags)))
	}},
	"snapshot of btrfs":  {"ENOTTY", func(string, string) error { return call(unix.SYS_IOCTL, descriptor("/usr"), 0x50009417) }},
	"size of a terminal": {"EACCES ENOTTY", func(string, string) error { _, err := unix.IoctlGetWinsize(0, unix.TIOCGWINSZ); return err }},
	"bytes in a pipe": {"done", func(string, string) error {
		r, w, err := os.Pipe()
		if err == nil {
			_, err = unix.IoctlGetInt(int(r.Fd()), unix.TIOCINQ)
		}
		return errors.Join(err, w.Close())
	}},
	"clone in": {"done ENOTSUP EXDEV EINVAL", func(in, _ string) error {
		to, err := os.Create(in + "/clone")
		return errors.Join(err, unix.IoctlFileClone(int(to.Fd()), int(descriptor(os.Args[0]))))
	}},
	"lease": {"EPERM", func(string, string) error {
		_, err := unix.FcntlInt(descriptor(os.Args[0]), unix.F_SETLEASE, unix.F_RDLCK)
		return err
	}},
	"descriptors of threads in /proc": {"ENOSYS", func(string, string) error {
		return eachThread(func(id int) error {
			fd, err := unix.Open(fmt.Sprintf("/proc/%d", id), unix.O_DIRECTORY|unix.O_RDONLY, 0)
			if err == nil {
				err = unix.PidfdSendSignal(fd, 0, nil, 0)
			}
			return err
		})
	}},
	"mode of a program for everybody": {"EPERM", func(in, _ string) error {
		return errors.Join(touch(in+"/suid"), call(unix.SYS_FCHMOD, descriptor(in+"/suid"), 0o4755))
	}},
	"program for everybody, made so": {"EPERM", func(in, _ string) error {
		_, err := unix.Open(in+"/made-suid", unix.O_CREAT|unix.O_WRONLY, 0o4755)
		_, second := unix.Openat2(unix.AT_FDCWD, in+"/made2-suid", &unix.OpenHow{Flags: unix.O_CREAT | unix.O_WRONLY, Mode: 0o4755})
		if second != unix.ENOSYS {
			return second
		}
		_, tmp := unix.Openat(unix.AT_FDCWD, in, unix.O_TMPFILE|unix.O_WRONLY, 0o2755)
		node := unix.Mknodat(unix.AT_FDCWD, in+"/node-suid", unix.S_IFREG|0o6755, 0)
		if err == nil || tmp == nil || node == nil {
			return nil
		}
		return errors.Join(err, tmp, node)
	}},
	"open with what stands where a mode would": {"done", func(in, _ string) error {
		return errors.Join(touch(in+"/no-mode"), call(unix.SYS_OPENAT, descriptor(in), uintptr(unsafe.Pointer(&[]byte("no-mode\x00")[0])), 0, 0o6755))
	}},
	"mode of a directory for a group": {"done", func(in, _ string) error {
		return errors.Join(os.Mkdir(in+"/sgid", 0o700), call(unix.SYS_FCHMOD, descriptor(in+"/sgid"), 0o2755))
	}},
	"flags by their call": {"ENOTSUP", func(_, out string) error { return call(unix.SYS_FILE_SETATTR) }},
	"more attributes":     {"ENOTSUP", func(_, out string) error { return unix.Setxattr(out+"/secret", "user.x", []byte("x"), 0) }},
	"capabilities": {"done", func(string, string) error {
		data, err := os.ReadFile("/proc/self/status")
		opens := ""
		if os.Geteuid() == 0 {
			opens = "2" // CAP_DAC_OVERRIDE
		}
		want := map[string]string{"CapEff": opens, "CapPrm": opens, "CapBnd": opens, "CapAmb": "", "NoNewPrivs": "1"}
		if opens == "" {
			delete(want, "CapBnd") // it says nothing where there are none
		}
		for line := range strings.Lines(string(data)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), ":\t")
			if is, isKnown := want[name]; isKnown && strings.Trim(value, "0") != is {
				err = errors.Join(err, errors.New(strings.TrimSpace(line)))
			}
		}
		return err
	}},
}

// modeIs returns an error where a file has another mode.
func modeIs(path string, want os.FileMode) error {
	st, err := os.Stat(path)
	if err == nil && st.Mode().Perm() != want {
		err = fmt.Errorf("the mode is %v and not %v", st.Mode().Perm(), want)
	}
	return err
}

// descriptor opens a file and leaves it open.
func descriptor(path string) uintptr {
	fd, _ := unix.Open(path, unix.O_RDONLY, 0)
	return uintptr(fd)
}

// threadDir is the directory of a thread of the parent.
func threadDir(id int) string { return fmt.Sprintf("/proc/%d/task/%d", os.Getppid(), id) }

// eachThread tries something with each thread of the parent. The error is that of the first with which it succeeds, as
// text, or that of the last.
func eachThread(try func(id int) error) (err error) {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", os.Getppid()))
	if err != nil || len(entries) < 2 {
		return fmt.Errorf("the parent has %d threads: %w", len(entries), err)
	}
	for _, e := range entries {
		id, _ := strconv.Atoi(e.Name())
		if err = try(id); err == nil {
			return fmt.Errorf("succeeds with %d", id)
		}
	}
	return err
}

// namespaced starts a program in a new namespace.
func namespaced() error {
	c := exec.Command("/bin/true")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER}
	return c.Run()
}

// TestRestrict runs a confined program that tries what it may and what it may not, as this user and as another.
func TestRestrict(t *testing.T) {
	if Version() < MinVersion {
		tier.Missing(t, "this kernel has no Landlock")
	}
	users := map[string]*syscall.Credential{"this user": nil}
	if os.Getuid() == 0 && tier.IsAll() {
		users["nobody"] = &syscall.Credential{Uid: 65534, Gid: 65534}
	}
	for name, as := range users {
		t.Run(name, func(t *testing.T) {
			in, out := place(t, as), place(t, as)
			if err := os.WriteFile(filepath.Join(out, "secret"), []byte("secret"), 0o644); err != nil {
				t.Fatal(err)
			}
			said := tryAll(t, as, in, out)
			for name, try := range tries {
				got := "nothing"
				for line := range strings.Lines(said) {
					if rest, ok := strings.CutPrefix(line, name+": "); ok {
						got = strings.TrimSpace(rest)
					}
				}
				if name == "signal the parent" && !KeepsSignals() {
					continue
				}
				if !slices.Contains(strings.Fields(try.want), got) {
					t.Errorf("%s: %s, want %s", name, got, try.want)
				}
			}
			for path, want := range map[string]os.FileMode{out: 0o700, filepath.Join(out, "secret"): 0o644} {
				if err := modeIs(path, want); err != nil {
					t.Errorf("outside: %v", err)
				}
			}
			if data, _ := os.ReadFile(filepath.Join(out, "secret")); string(data) != "secret" {
				t.Errorf("the file outside has %q", data)
			}
		})
	}
}

// place makes a directory of a user's.
func place(t *testing.T, as *syscall.Credential) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "muster-landlock-")
	if err == nil && as != nil {
		err = os.Chown(dir, int(as.Uid), int(as.Gid))
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// tryAll runs the confined program, started by a process of a user's, and returns what it says.
func tryAll(t *testing.T, as *syscall.Credential, in, out string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The program itself lies where only root may go.
	program := filepath.Join(in, "program")
	data, err := os.ReadFile(self)
	if err == nil {
		err = os.WriteFile(program, data, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program, "confine", in, out)
	c.Env, c.Dir = []string{"PATH=/usr/bin"}, "/"
	c.SysProcAttr = &syscall.SysProcAttr{Credential: as, Setsid: true}
	said, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	return string(said)
}

// confine runs the confined program.
func confine(in, out string) error {
	set, err := New()
	if err != nil {
		return err
	}
	file := set.File
	defer file.Close()
	for path, a := range map[string]Access{"/usr": Read, "/lib": Read, "/lib64": Read, "/etc": Read, "/proc": Read, "/dev/null": Device, in: Write} {
		if err := set.Allow(path, a); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	// As a process must be whose threads are under rules.
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return err
	}
	c := exec.Command(filepath.Join(in, "program"), "try", in, out)
	c.Env, c.Stdout, c.Stderr = []string{"PATH=/usr/bin"}, os.Stdout, os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	ended := make(chan error)
	OnThread(func() {
		err := Restrict(int(file.Fd()), []string{in})
		if err == nil {
			err = c.Run()
		}
		ended <- err
	})
	return <-ended
}
