//go:build amd64 || arm64

package landlock

import (
	"bytes"
	"encoding/binary"
	"errors"
	"maps"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Landlock has no check for the mode, the owner and the dates of a file. The filter has the kernel ask this process
// about each call that changes them
// (https://docs.kernel.org/userspace-api/seccomp_filter.html#userspace-notification).
//
// Invariant: no such call goes on in the kernel, because the program could change what it names after it was looked at.
// The file is opened here, and what is open is looked at and changed. That is done with the program's rights: as the
// same user, with the same capabilities.

// attributes answers the calls of the programs under one filter.
type attributes struct {
	listener int
	writable []string // the directories below which programs may change files
}

// attributeCall says which arguments of a call name the file, and what the call does with it.
type attributeCall struct {
	dir, path, flags int // -1: there is no such argument
	isOnLink         bool
	mayLackPath      bool // it is about the descriptor then
	// change changes the file that is open, which is of this kind.
	change func(n *asked, fd int, kind uint32) error
}

// attributeCalls are the calls that are asked about, by their numbers.
var attributeCalls = with(olderCalls, map[uint32]attributeCall{
	unix.SYS_FCHMOD:    {dir: 0, path: -1, flags: -1, change: chmod(1)},
	unix.SYS_FCHMODAT:  {dir: 0, path: 1, flags: -1, change: chmod(2)},
	unix.SYS_FCHMODAT2: {dir: 0, path: 1, flags: 3, change: chmod(2)},
	unix.SYS_FCHOWN:    {dir: 0, path: -1, flags: -1, change: chown(1)},
	unix.SYS_FCHOWNAT:  {dir: 0, path: 1, flags: 4, change: chown(2)},
	unix.SYS_UTIMENSAT: {dir: 0, path: 1, flags: 3, mayLackPath: true, change: setTimes(2, 2, 1)},
})

func with(more, all map[uint32]attributeCall) map[uint32]attributeCall {
	maps.Copy(all, more)
	return all
}

// notification is what the kernel tells of a call: struct seccomp_notif of linux/seccomp.h.
type notification struct {
	id      uint64
	pid     uint32
	flags   uint32
	number  int32
	arch    uint32
	address uint64
	args    [6]uint64
}

// asked is a notification of a listener.
type asked struct {
	notification
	*attributes
}

// response is an answer to a notification: struct seccomp_notif_resp.
type response struct {
	id    uint64
	value int64
	error int32
	flags uint32
}

func (a *attributes) control(request uintptr, arg unsafe.Pointer) error {
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(a.listener), request, uintptr(arg)); errno != 0 {
		return errno
	}
	return nil
}

// serve answers calls until the last program is gone, with the capabilities of programs. It is called in OnThread.
func (a *attributes) serve() {
	defer unix.Close(a.listener) // calls fail when nobody answers
	if limitCapabilities() != nil {
		return
	}
	for {
		poll := []unix.PollFd{{Fd: int32(a.listener), Events: unix.POLLIN}}
		_, err := unix.Poll(poll, -1)
		if err == nil && poll[0].Revents&unix.POLLIN == 0 { // no program is under the filter any more
			return
		}
		if err == nil {
			err = a.answer()
		}
		// A signal has come, or a program has ended meanwhile.
		if err != nil && !errors.Is(err, unix.EINTR) && !errors.Is(err, unix.ENOENT) {
			return
		}
	}
}

// answer answers one call. The error is that of the listener.
func (a *attributes) answer() error {
	n := &asked{attributes: a}
	if err := a.control(unix.SECCOMP_IOCTL_NOTIF_RECV, unsafe.Pointer(&n.notification)); err != nil {
		return err
	}
	r := response{id: n.id}
	if err := n.decide(); err != nil {
		errno, ok := errors.AsType[unix.Errno](err)
		if !ok {
			errno = unix.EPERM
		}
		r.error = -int32(errno)
	}
	return a.control(unix.SECCOMP_IOCTL_NOTIF_SEND, unsafe.Pointer(&r))
}

// decide makes the change that a call asks for, where it may be made. The error is what the call returns.
func (n *asked) decide() error {
	call, ok := attributeCalls[uint32(n.number)]
	if !ok {
		return unix.ENOSYS
	}
	fd, err := n.open(call)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := n.check(); err != nil {
		return err
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	name, err := os.Readlink(byDescriptor(fd))
	if err != nil || !n.isWritable(name) {
		return unix.EPERM
	}
	return call.change(n, fd, st.Mode&unix.S_IFMT)
}

func (a *attributes) isWritable(name string) bool {
	if strings.HasPrefix(name, "pipe:[") || strings.HasPrefix(name, "socket:[") { // of the program's own
		return true
	}
	for _, dir := range a.writable {
		if name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/") {
			return true
		}
	}
	return false
}

// byDescriptor returns the path that leads to what is open in this process.
func byDescriptor(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// check returns an error where the program has ended meanwhile: its number may be another's now, and what was read or
// opened by that number.
func (n *asked) check() error {
	return n.control(unix.SECCOMP_IOCTL_NOTIF_ID_VALID, unsafe.Pointer(&n.id))
}

func (n *asked) proc(name string) string { return "/proc/" + strconv.Itoa(int(n.pid)) + "/" + name }

// open opens what a call names, as the program sees it, for nothing but to know which file it is.
func (n *asked) open(c attributeCall) (fd int, err error) {
	dir, path, flags := unix.AT_FDCWD, "", 0
	if c.dir >= 0 {
		dir = int(int32(n.args[c.dir]))
	}
	if c.flags >= 0 {
		flags = int(int32(n.args[c.flags]))
	}
	switch {
	case c.path < 0 && dir < 0:
		return -1, unix.EBADF
	case c.path < 0, n.args[c.path] == 0 && c.mayLackPath: // as futimens does
	default:
		if path, err = n.text(n.args[c.path]); err != nil {
			return -1, err
		}
		if path == "" && flags&unix.AT_EMPTY_PATH == 0 {
			return -1, unix.ENOENT
		}
	}
	// The C library names descriptors in this way, and there "self" is the program.
	for _, prefix := range []string{"/proc/self/fd/", "/proc/thread-self/fd/", "/dev/fd/", n.proc("fd/")} {
		if rest, ok := strings.CutPrefix(path, prefix); ok {
			if dir, err = strconv.Atoi(rest); err != nil || dir < 0 {
				return -1, unix.ENOENT
			}
			path = ""
		}
	}
	from := -1
	if !strings.HasPrefix(path, "/") {
		if from, err = n.descriptor(dir); err != nil || path == "" {
			return from, err
		}
		defer unix.Close(from)
	}
	// Other links in /proc would lead to what this process has open.
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_MAGICLINKS}
	if c.isOnLink || flags&unix.AT_SYMLINK_NOFOLLOW != 0 {
		how.Flags |= unix.O_NOFOLLOW
	}
	return unix.Openat2(from, path, &how)
}

// descriptor opens what a program has open, or its working directory.
func (n *asked) descriptor(fd int) (int, error) {
	const flags = unix.O_PATH | unix.O_CLOEXEC
	if fd == unix.AT_FDCWD {
		return unix.Open(n.proc("cwd"), flags, 0)
	}
	opened, err := unix.Open(n.proc("fd/"+strconv.Itoa(fd)), flags, 0)
	if errors.Is(err, unix.ENOENT) {
		err = unix.EBADF
	}
	return opened, err
}

func (n *asked) text(address uint64) (string, error) {
	data, err := n.memory(address, unix.PathMax)
	text, _, ends := bytes.Cut(data, []byte{0})
	switch {
	case err != nil || ends:
		return string(text), err
	case len(data) < unix.PathMax:
		return "", unix.EFAULT
	}
	return "", unix.ENAMETOOLONG
}

// memory reads at most size bytes of the program's memory: fewer where the memory ends.
func (n *asked) memory(address uint64, size int) ([]byte, error) {
	file, err := os.Open(n.proc("mem"))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data := make([]byte, size)
	got, err := file.ReadAt(data, int64(address))
	if got == 0 && err != nil {
		return nil, unix.EFAULT
	}
	return data[:got], n.check()
}

// chmod returns the change of the mode, which is an argument of the call. A program that runs as its owner would give
// the user's rights to everybody who starts it.
func chmod(mode int) func(*asked, int, uint32) error {
	return func(n *asked, fd int, kind uint32) error {
		mode := uint32(n.args[mode]) & 0o7777
		switch {
		case kind == unix.S_IFLNK:
			return unix.EOPNOTSUPP
		case kind != unix.S_IFDIR && mode&(unix.S_ISUID|unix.S_ISGID) != 0:
			return unix.EPERM
		}
		return unix.Fchmodat(unix.AT_FDCWD, byDescriptor(fd), mode, 0)
	}
}

// chown returns the change of the owner and the group, which are arguments of the call.
func chown(owner int) func(*asked, int, uint32) error {
	return func(n *asked, fd int, _ uint32) error {
		return unix.Fchownat(fd, "", int(int32(n.args[owner])), int(int32(n.args[owner+1])), unix.AT_EMPTY_PATH)
	}
}

// setTimes returns the change of the two dates at the pointer in argument arg of the call. Each date is one number, its
// seconds, or two, the second of which counts units of unit nanoseconds. A null pointer sets both to the present.
func setTimes(arg, each int, unit int64) func(*asked, int, uint32) error {
	return func(n *asked, fd int, _ uint32) error {
		times := []unix.Timespec{{Nsec: unix.UTIME_NOW}, {Nsec: unix.UTIME_NOW}}
		if n.args[arg] != 0 {
			numbers := make([]int64, 2*each)
			data, err := n.memory(n.args[arg], 8*len(numbers))
			if err != nil {
				return err
			}
			if _, err := binary.Decode(data, binary.NativeEndian, numbers); err != nil { // the memory ends before
				return unix.EFAULT
			}
			for i := range times {
				times[i] = unix.Timespec{Sec: numbers[i*each]}
				if each == 2 {
					times[i].Nsec = numbers[2*i+1] * unit
				}
			}
		}
		return unix.UtimesNanoAt(fd, "", times, unix.AT_EMPTY_PATH)
	}
}
