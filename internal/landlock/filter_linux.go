//go:build amd64 || arm64

package landlock

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// The filter is a program for the kernel (https://docs.kernel.org/userspace-api/seccomp_filter.html). It answers each
// call of the system: it may go on, or it fails with an error. A filter sees numbers only, so what is told apart by a
// name is refused as a whole.

// refused are the calls that fail, with their errors, whatever else confines the program.
var refused = map[unix.Errno][]uintptr{
	unix.EPERM: {
		// New namespaces would give capabilities again, and with them much more of the kernel to attack.
		unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT,
		unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSMOUNT, unix.SYS_FSPICK,
		unix.SYS_MOUNT_SETATTR, unix.SYS_OPEN_BY_HANDLE_AT,
		// The keys of the user's session.
		unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL,
		unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_KEXEC_LOAD,
	},
	// A library that finds these missing does without.
	unix.ENOSYS: {
		// What is asked for through a ring passes no filter.
		unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
		// Its flags are in memory, which no filter sees. The older call does what it does.
		unix.SYS_CLONE3,
		// Files in memory that nobody counts while no process has them mapped.
		unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET,
	},
}

// refusedInHost are the calls that fail besides where the program has no namespaces of its own.
var refusedInHost = map[unix.Errno][]uintptr{
	unix.EPERM: {
		// Shared memory, semaphores and messages belong to all programs of a user.
		unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP,
		unix.SYS_SEMCTL, unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL, unix.SYS_MQ_OPEN,
		unix.SYS_MQ_UNLINK,
	},
	// The directory in /proc of a thread is a descriptor of it: it would reach the thread that protect is about.
	unix.ENOSYS: {unix.SYS_PIDFD_SEND_SIGNAL},
	// Some of the attributes of other names are lists of who may use a file.
	unix.EOPNOTSUPP: {
		unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_SETXATTRAT,
		unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR, unix.SYS_REMOVEXATTRAT,
		unix.SYS_FILE_SETATTR,
	},
	// Whoever can make a socket reaches the network, the loopback and the sockets of the user's session.
	unix.EACCES: {unix.SYS_SOCKET},
}

// namespaces are the flags of clone that make a namespace. Of the flags the kernel takes 32 bits.
const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// Where what a filter sees of a call has its parts: struct seccomp_data of linux/seccomp.h. An argument has 64 bits,
// the lower ones first in both kinds of processors.
const (
	atNumber = 0
	atArch   = 4
	atFirst  = 16
)

// assembler writes a filter. Each of its methods either answers the call or goes on behind.
type assembler []unix.SockFilter

func (a *assembler) load(at uint32) {
	*a = append(*a, unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at})
}

func (a *assembler) answer(action uint32) {
	*a = append(*a, unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: action})
}

// allow lets a call go on.
func (a *assembler) allow() { a.answer(unix.SECCOMP_RET_ALLOW) }

// compare runs what then writes if the comparison of what was loaded with k holds, or, with not, if it does not.
func (a *assembler) compare(op uint16, k uint32, not bool, then func()) {
	at := len(*a)
	*a = append(*a, unix.SockFilter{Code: unix.BPF_JMP | op | unix.BPF_K, K: k})
	then()
	skip := uint8(len(*a) - at - 1)
	if not {
		(*a)[at].Jt = skip
	} else {
		(*a)[at].Jf = skip
	}
}

// fail lets a call fail.
func (a *assembler) fail(errno unix.Errno) func() {
	return func() { a.answer(unix.SECCOMP_RET_ERRNO | uint32(errno)) }
}

// onCall writes what decides about the call with the number. The arguments can be loaded there; what falls through
// goes on.
func (a *assembler) onCall(number uintptr, decide func()) {
	a.compare(unix.BPF_JEQ, uint32(number), false, func() {
		decide()
		a.allow()
	})
}

// argument loads the lower half of an argument.
func (a *assembler) argument(i uint32) { a.load(atFirst + 8*i) }

// begin writes what holds for all programs.
func (a *assembler) begin() {
	a.load(atArch)
	// The numbers of another kind, such as those of programs of 32 bits, mean other calls.
	a.compare(unix.BPF_JEQ, auditArch, true, a.fail(unix.ENOSYS))
	a.load(atNumber)
	if isX32 != 0 {
		a.compare(unix.BPF_JGE, isX32, false, a.fail(unix.ENOSYS))
	}
	a.refuse(refused)
	a.onCall(unix.SYS_CLONE, func() {
		a.argument(0)
		a.compare(unix.BPF_JSET, namespaces, false, a.fail(unix.EPERM))
	})
}

// refuse lets calls fail.
func (a *assembler) refuse(calls map[unix.Errno][]uintptr) {
	for errno, numbers := range calls {
		for _, number := range numbers {
			a.compare(unix.BPF_JEQ, uint32(number), false, a.fail(errno))
		}
	}
}

// filterInNamespaces returns the filter of this kind of processor for programs that have namespaces of their own.
func filterInNamespaces() []unix.SockFilter {
	var a assembler
	a.begin()
	// Sockets of other families, such as vsock, lead out of a network namespace, or reach seldom used parts of the
	// kernel.
	for _, number := range []uintptr{unix.SYS_SOCKET, unix.SYS_SOCKETPAIR} {
		a.onCall(number, func() {
			a.argument(0)
			for _, family := range []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK} {
				a.compare(unix.BPF_JEQ, family, false, a.allow)
			}
			a.fail(unix.EAFNOSUPPORT)()
		})
	}
	// Memory that nobody counts while no process has it mapped: as much as a database needs to know of another one.
	a.onCall(unix.SYS_SHMGET, func() {
		a.argument(1)
		a.compare(unix.BPF_JGT, 64<<10, false, a.fail(unix.ENOSPC))
		a.load(atFirst + 8 + 4)
		a.compare(unix.BPF_JEQ, 0, true, a.fail(unix.ENOSPC))
	})
	a.onCall(unix.SYS_IOCTL, a.refuseTyping)
	a.onCall(unix.SYS_FCNTL, a.refuseLeases)
	a.allow()
	return a
}

// FilterInNamespaces returns the filter of calls for programs with namespaces of their own, as bubblewrap reads it. It
// refuses what the filter beside Landlock refuses, but for what namespaces confine. It is nil where there is none for
// this kind of processor.
func FilterInNamespaces() []byte {
	var data []byte
	for _, f := range filterInNamespaces() { // struct sock_filter of linux/filter.h
		data = binary.NativeEndian.AppendUint16(data, f.Code)
		data = binary.NativeEndian.AppendUint32(append(data, f.Jt, f.Jf), f.K)
	}
	return data
}

// filter returns the filter of this kind of processor for what the thread of a process starts.
func filter(process, thread int) []unix.SockFilter {
	var a assembler
	a.begin()
	a.refuse(refusedInHost)
	for _, calls := range []map[uintptr]attributeCall{attributeCalls, olderCalls} {
		for number := range calls {
			a.compare(unix.BPF_JEQ, uint32(number), false, func() { a.answer(unix.SECCOMP_RET_USER_NOTIF) })
		}
	}
	// The two ends of a pair reach each other only. Those for datagrams can be led to any other socket later.
	a.onCall(unix.SYS_SOCKETPAIR, func() {
		a.argument(0)
		a.compare(unix.BPF_JEQ, unix.AF_UNIX, true, a.fail(unix.EACCES))
		a.argument(1)
		a.mask(socketTypes)
		a.compare(unix.BPF_JEQ, unix.SOCK_SEQPACKET, false, a.allow)
		a.compare(unix.BPF_JEQ, unix.SOCK_STREAM, true, a.fail(unix.EACCES))
	})
	a.onCall(unix.SYS_IOCTL, a.control)
	a.schedule()
	a.protect(process, thread)
	a.allow()
	return a
}

// schedule refuses to change the limits, the processors and the priority of other processes. Only 0 is surely not
// another one. The limit of message queues is the mark of a tool (internal/proc).
func (a *assembler) schedule() {
	a.onCall(unix.SYS_PRLIMIT64, func() {
		a.argument(0)
		a.compare(unix.BPF_JEQ, 0, true, a.fail(unix.EPERM))
		a.argument(1)
		a.compare(unix.BPF_JEQ, unix.RLIMIT_MSGQUEUE, true, a.allow)
		for _, half := range []uint32{0, 4} { // the new limit, which is none where it is only asked for
			a.load(atFirst + 8*2 + half)
			a.compare(unix.BPF_JEQ, 0, true, a.fail(unix.EPERM))
		}
	})
	a.onCall(unix.SYS_SETRLIMIT, func() {
		a.argument(0)
		a.compare(unix.BPF_JEQ, unix.RLIMIT_MSGQUEUE, false, a.fail(unix.EPERM))
	})
	for _, number := range []uintptr{unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM,
		unix.SYS_SCHED_SETATTR} {
		a.onCall(number, func() {
			a.argument(0)
			a.compare(unix.BPF_JEQ, 0, true, a.fail(unix.EPERM))
		})
	}
	// These take a process, a group of processes, or a user.
	for number, user := range map[uintptr]uint32{unix.SYS_SETPRIORITY: unix.PRIO_USER, unix.SYS_IOPRIO_SET: 3} {
		a.onCall(number, func() {
			a.argument(0)
			a.compare(unix.BPF_JEQ, user, false, a.fail(unix.EPERM))
			a.argument(1)
			a.compare(unix.BPF_JEQ, 0, true, a.fail(unix.EPERM))
		})
	}
}

// The commands of ioctl are those of terminals and of sockets, and a few of files. Landlock knows only what goes to
// devices: others would change files that are only read, or make directories with content anywhere, as those of btrfs.
const kindOfTerminals, kindOfSockets = 'T', 0x89

// fileCommands are the commands for files: they read, or write to what is open for that.
var fileCommands = []uint32{unix.FS_IOC_GETFLAGS, 0x801c581f /* FS_IOC_FSGETXATTR */, 0xc020660b, /* FS_IOC_FIEMAP */
	unix.FICLONE, unix.FICLONERANGE, unix.FIDEDUPERANGE}

// control decides about a call of ioctl.
func (a *assembler) control() {
	a.refuseTyping()
	for _, command := range fileCommands {
		a.compare(unix.BPF_JEQ, command, false, a.allow)
	}
	a.mask(0xff00)
	for _, kind := range []uint32{kindOfTerminals, kindOfSockets} {
		a.compare(unix.BPF_JEQ, kind<<8, false, a.allow)
	}
	a.fail(unix.ENOTTY)()
}

// refuseTyping refuses to type text into a terminal, which is run by whatever shell reads there. It loads the command
// of a call of ioctl, of which the kernel looks at 32 bits only.
func (a *assembler) refuseTyping() {
	a.argument(1)
	for _, command := range []uint32{unix.TIOCSTI, unix.TIOCLINUX} {
		a.compare(unix.BPF_JEQ, command, false, a.fail(unix.EPERM))
	}
}

// refuseLeases refuses a lease on a file, which keeps others from writing it for a while. It loads the command of a
// call of fcntl.
func (a *assembler) refuseLeases() {
	a.argument(1)
	const setDelegation = 1040 // F_SETDELEG of linux/fcntl.h
	for _, command := range []uint32{unix.F_SETLEASE, setDelegation} {
		a.compare(unix.BPF_JEQ, command, false, a.fail(unix.EPERM))
	}
}

// protect refuses signals to a thread that is under the same rules, to its process and the group that this leads, and
// to all processes.
func (a *assembler) protect(process, thread int) {
	for _, number := range []uintptr{unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_TGKILL, unix.SYS_RT_SIGQUEUEINFO,
		unix.SYS_RT_TGSIGQUEUEINFO} {
		a.onCall(number, func() {
			a.argument(0)
			for _, id := range []int{process, -process, thread, -1} {
				a.compare(unix.BPF_JEQ, uint32(id), false, a.fail(unix.EPERM))
			}
		})
	}
	// The descriptor of a process leads to its main thread, which is not under the rules; that of a thread does not.
	a.onCall(unix.SYS_PIDFD_OPEN, func() {
		a.argument(1)
		a.compare(unix.BPF_JSET, unix.PIDFD_THREAD, false, a.fail(unix.EPERM))
	})
	// Input can be announced to any thread by a signal, but only by one that harms nobody (SIGIO).
	a.onCall(unix.SYS_FCNTL, func() {
		a.refuseLeases()
		a.compare(unix.BPF_JEQ, unix.F_SETSIG, false, a.fail(unix.EPERM))
	})
}

// socketTypes are the bits of the type of a socket without its flags.
const socketTypes = 0xf

// mask keeps only some bits of what was loaded.
func (a *assembler) mask(bits uint32) {
	*a = append(*a, unix.SockFilter{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: bits})
}
