//go:build amd64 || arm64

package landlock

import (
	"errors"
	"os"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// OnThread runs do on a thread of its own, which ends with it, so that do can call Restrict. It waits for nothing. It
// is never the main thread of the process: the kernel asks that one what others may do with the process.
func OnThread(do func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != os.Getpid() {
			do() // the thread ends with the goroutine, because that does not unlock it
			return
		}
		begun := make(chan struct{})
		OnThread(func() { // while this goroutine holds the main thread, no other gets it
			close(begun)
			do()
		})
		<-begun
		runtime.UnlockOSThread()
	}()
}

// Restrict puts this thread and what it starts under the ruleset with the descriptor, limits its capabilities, and
// filters its calls of the system. None of this can be undone. It is called in OnThread only. The error is that of the
// system; then nothing may be started on this thread. writable are the directories below which the mode, the owner and
// the dates of files may be changed; no part of them is a link.
//
// What the thread has started can do with the thread whatever the rules do not forbid, because both are under the same.
// So a process whose threads live on after this must not be dumpable, which keeps others from its memory and its
// descriptors, and the filter refuses signals to the thread.
func Restrict(ruleset int, writable []string) error {
	if err := limitCapabilities(); err != nil {
		return err
	}
	// Without this a program with a set-user-id bit would run as its owner under rules that it does not expect, so the
	// kernel demands it for both of what follows.
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return os.NewSyscallError("prctl", err)
	}
	if _, _, errno := unix.RawSyscall(unix.SYS_LANDLOCK_RESTRICT_SELF, uintptr(ruleset), 0, 0); errno != 0 {
		return os.NewSyscallError("landlock_restrict_self", errno)
	}
	code := program(everywhere, inHost(os.Getpid(), unix.Gettid()))
	prog := unix.SockFprog{Len: uint16(len(code)), Filter: &code[0]}
	// A program that gets a signal while it waits for an answer must not ask again: the change may have been made.
	const flags = unix.SECCOMP_FILTER_FLAG_NEW_LISTENER | unix.SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV
	fd, _, errno := unix.RawSyscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, flags,
		uintptr(unsafe.Pointer(&prog)))
	runtime.KeepAlive(code)
	if errno != 0 {
		return os.NewSyscallError("seccomp", errno)
	}
	OnThread((&attributes{int(fd), writable}).serve)
	return nil
}

// limitCapabilities takes all capabilities from this thread, but leaves root what opens files whatever their modes say:
// files of others below the user's own directories are root's to use, and the rules say which. A program of root's gets
// those of the bounding set when it starts, so that is limited first.
func limitCapabilities() error {
	const most = 63 // the kernel has two words of 32 bits for them
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var sets, left [2]unix.CapUserData
	if err := unix.Capget(&head, &sets[0]); err != nil {
		return os.NewSyscallError("capget", err)
	}
	if os.Geteuid() == 0 {
		left[0].Permitted = sets[0].Permitted & (1 << unix.CAP_DAC_OVERRIDE)
		left[0].Effective = left[0].Permitted
	}
	// Who is not root and has none gets none by the bounding set: no_new_privs sees to that.
	mayDrop := sets[0].Effective&(1<<unix.CAP_SETPCAP) != 0
	for c := uintptr(0); mayDrop && c <= most; c++ {
		if left[0].Permitted&(1<<c) != 0 {
			continue
		}
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) { // there are no more
			break
		}
		if err != nil {
			return os.NewSyscallError("prctl", err)
		}
	}
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) // an old kernel has none
	if os.Geteuid() == 0 && !mayDrop {
		return os.NewSyscallError("prctl", unix.EPERM) // what root starts would have its capabilities again
	}
	return os.NewSyscallError("capset", unix.Capset(&head, &left[0]))
}
