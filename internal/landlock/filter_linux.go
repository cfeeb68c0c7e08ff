//go:build amd64 || arm64

package landlock

import (
	"encoding/binary"
	"maps"
	"slices"

	"golang.org/x/sys/unix"
)

// The filter is a program for the kernel (https://docs.kernel.org/userspace-api/seccomp_filter.html). It answers each
// call of the system: it may go on, or it fails with an error. A filter sees numbers only, so what is told apart by a
// name is refused as a whole. Function program makes it of a list of rules.

// rule is the answer to some calls, where all its conditions hold. Of several rules that fit, the first counts. A call
// that no rule fits goes on.
type rule struct {
	answer uint32
	calls  calls
	when   when
}

type (
	calls []uint32    // the numbers of calls
	when  []condition // all of them must hold
)

// fail is the answer with which a call fails.
func fail(errno unix.Errno) uint32 { return unix.SECCOMP_RET_ERRNO | uint32(errno) }

// condition compares a part of a call with values. It holds where one of the comparisons does, or with not, where none
// does.
type condition struct {
	part   part
	op     uint16 // BPF_JEQ, BPF_JGT or BPF_JSET
	not    bool
	values []uint32
}

func is(p part, values ...uint32) condition    { return condition{p, unix.BPF_JEQ, false, values} }
func isNot(p part, values ...uint32) condition { return condition{p, unix.BPF_JEQ, true, values} }
func isAbove(p part, n uint32) condition       { return condition{p, unix.BPF_JGT, false, []uint32{n}} }
func has(p part, bits uint32) condition        { return condition{p, unix.BPF_JSET, false, []uint32{bits}} }

// part is 32 bits of what a filter sees of a call (struct seccomp_data of linux/seccomp.h), of which only those in mask
// count.
type part struct{ at, mask uint32 }

const allBits = 1<<32 - 1

var number, arch = part{0, allBits}, part{4, allBits}

// arg is the lower half of an argument, and upper is the other one. Both kinds of processors have the lower half first.
func arg(i uint32) part              { return part{16 + 8*i, allBits} }
func upper(i uint32) part            { return part{16 + 8*i + 4, allBits} }
func (p part) bits(mask uint32) part { return part{p.at, mask} }

// namespaces are the flags of clone that make a namespace. Of the flags the kernel takes 32 bits.
const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET

// modeCall is a call that gives a file its mode, which is argument mode. A call that opens a file makes one only where
// argument flags says so; -1: it always does.
type modeCall struct {
	number      uint32
	mode, flags int
}

// makingCalls are the calls that make a file.
var makingCalls = append(olderMakingCalls, modeCall{unix.SYS_OPENAT, 3, 2}, modeCall{unix.SYS_MKNODAT, 2, -1})

// modesWithout returns the rules that refuse calls whose mode has one of these bits.
func modesWithout(bits uint32, all ...modeCall) (r []rule) {
	for _, c := range all {
		when := when{has(arg(uint32(c.mode)), bits)}
		if c.flags >= 0 {
			when = append(when, has(arg(uint32(c.flags)), unix.O_CREAT|unix.O_TMPFILE&^unix.O_DIRECTORY))
		}
		r = append(r, rule{fail(unix.EPERM), calls{c.number}, when})
	}
	return r
}

// everywhere are the rules that hold whatever else confines the program.
var everywhere = slices.Concat(modesWithout(unix.S_ISUID|unix.S_ISGID, makingCalls...), []rule{
	{unix.SECCOMP_RET_ALLOW, calls{unix.SYS_OPENAT}, nil}, // the most frequent one need not pass all that follows
	// The mode for a new file is in memory, where no filter sees it. There are older calls.
	{fail(unix.ENOSYS), calls{unix.SYS_OPENAT2}, nil},
	// New namespaces would give capabilities again, and with them much more of the kernel to attack.
	{fail(unix.EPERM), calls{unix.SYS_UNSHARE, unix.SYS_SETNS, unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT,
		unix.SYS_CHROOT, unix.SYS_OPEN_TREE, unix.SYS_MOVE_MOUNT, unix.SYS_FSOPEN, unix.SYS_FSMOUNT, unix.SYS_FSPICK,
		unix.SYS_MOUNT_SETATTR, unix.SYS_OPEN_BY_HANDLE_AT}, nil},
	{fail(unix.EPERM), calls{unix.SYS_CLONE}, when{has(arg(0), namespaces)}},
	// Its flags are in memory, which no filter sees. The older call does what it does. As with all that fails with
	// ENOSYS, a library that finds it missing does without.
	{fail(unix.ENOSYS), calls{unix.SYS_CLONE3}, nil},
	// The keys of the user's session.
	{fail(unix.EPERM), calls{unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL}, nil},
	{fail(unix.EPERM), calls{unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_KEXEC_LOAD}, nil},
	// What is asked for through a ring passes no filter.
	{fail(unix.ENOSYS), calls{unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER}, nil},
	// Files in memory, which no limit counts while no process has them mapped.
	{fail(unix.ENOSYS), calls{unix.SYS_MEMFD_CREATE, unix.SYS_MEMFD_SECRET}, nil},
	// What types text into a terminal, which is run by whatever shell reads there. The kernel looks at 32 bits only.
	{fail(unix.EPERM), calls{unix.SYS_IOCTL}, when{is(arg(1), unix.TIOCSTI, unix.TIOCLINUX)}},
	// A lease on a file keeps others from writing it for a while.
	{fail(unix.EPERM), calls{unix.SYS_FCNTL}, when{is(arg(1), unix.F_SETLEASE, 1040 /* F_SETDELEG */)}},
})

// inNamespaces are the rules besides for programs that have namespaces of their own. A program that runs as its owner
// would give the user's rights to everybody who starts it. One that runs as its group cannot be told from a directory
// whose files get its group, which is common.
var inNamespaces = append(modesWithout(unix.S_ISUID, append(olderChmods, modeCall{unix.SYS_FCHMOD, 1, -1},
	modeCall{unix.SYS_FCHMODAT, 2, -1}, modeCall{unix.SYS_FCHMODAT2, 2, -1})...), []rule{
	// Sockets of other families, such as vsock, lead out of a network namespace, or reach seldom used parts of the
	// kernel.
	{fail(unix.EAFNOSUPPORT), calls{unix.SYS_SOCKET, unix.SYS_SOCKETPAIR},
		when{isNot(arg(0), unix.AF_UNIX, unix.AF_INET, unix.AF_INET6, unix.AF_NETLINK)}},
	// Memory that no limit counts while no process has it mapped: as much as a database needs to know of another one.
	{fail(unix.ENOSPC), calls{unix.SYS_SHMGET}, when{isAbove(arg(1), 64<<10)}},
	{fail(unix.ENOSPC), calls{unix.SYS_SHMGET}, when{isNot(upper(1), 0)}},
}...)

// inHost returns the rules besides for what a thread of a process starts, where that has no namespaces of its own.
func inHost(process, thread int) []rule {
	return []rule{
		{unix.SECCOMP_RET_USER_NOTIF, slices.Collect(maps.Keys(attributeCalls)), nil},
		// Some of the attributes of other names are lists of who may use a file.
		{fail(unix.EOPNOTSUPP), calls{unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_SETXATTRAT,
			unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR, unix.SYS_REMOVEXATTRAT,
			unix.SYS_FILE_SETATTR}, nil},
		// Shared memory, semaphores and messages belong to all programs of a user.
		{fail(unix.EPERM), calls{unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SEMGET, unix.SYS_SEMOP,
			unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL, unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL,
			unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK}, nil},
		// A program that can make a socket reaches the network, the loopback and the sockets of the user's session. The
		// two ends of a pair reach each other only, but those for datagrams can be led to any other socket later.
		{fail(unix.EACCES), calls{unix.SYS_SOCKET}, nil},
		{fail(unix.EACCES), calls{unix.SYS_SOCKETPAIR}, when{isNot(arg(0), unix.AF_UNIX)}},
		{fail(unix.EACCES), calls{unix.SYS_SOCKETPAIR},
			when{isNot(arg(1).bits(0xf), unix.SOCK_STREAM, unix.SOCK_SEQPACKET)}}, // without its flags
		// The commands of ioctl are those of terminals and of sockets, and a few of files: they read, or write to what
		// is open for that. Landlock knows only what goes to devices: others would change files that are only read, or
		// make directories with content anywhere, as those of btrfs.
		{fail(unix.ENOTTY), calls{unix.SYS_IOCTL}, when{
			isNot(arg(1), unix.FS_IOC_GETFLAGS, 0x801c581f /* FS_IOC_FSGETXATTR */, 0xc020660b, /* FS_IOC_FIEMAP */
				unix.FICLONE, unix.FICLONERANGE, unix.FIDEDUPERANGE),
			isNot(arg(1).bits(0xff00), 'T'<<8 /* of terminals */, 0x89<<8 /* of sockets */)}},

		// Nothing changes the limits, the processors and the priority of other processes. Only 0 is surely not another
		// one. The limit of message queues is the mark of a tool (internal/proc): it can be asked for only.
		{fail(unix.EPERM), calls{unix.SYS_PRLIMIT64, unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETSCHEDULER,
			unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR}, when{isNot(arg(0), 0)}},
		{fail(unix.EPERM), calls{unix.SYS_PRLIMIT64}, when{is(arg(1), unix.RLIMIT_MSGQUEUE), isNot(arg(2), 0)}},
		{fail(unix.EPERM), calls{unix.SYS_PRLIMIT64}, when{is(arg(1), unix.RLIMIT_MSGQUEUE), isNot(upper(2), 0)}},
		{fail(unix.EPERM), calls{unix.SYS_SETRLIMIT}, when{is(arg(0), unix.RLIMIT_MSGQUEUE)}},
		// These take a process, a group of processes, or a user.
		{fail(unix.EPERM), calls{unix.SYS_SETPRIORITY}, when{is(arg(0), unix.PRIO_USER)}},
		{fail(unix.EPERM), calls{unix.SYS_IOPRIO_SET}, when{is(arg(0), 3 /* IOPRIO_WHO_USER */)}},
		{fail(unix.EPERM), calls{unix.SYS_SETPRIORITY, unix.SYS_IOPRIO_SET}, when{isNot(arg(1), 0)}},

		// No signals reach the thread, which is under the same rules, its process, the group that this leads, and all
		// processes at once.
		{fail(unix.EPERM), calls{unix.SYS_KILL, unix.SYS_TKILL, unix.SYS_TGKILL, unix.SYS_RT_SIGQUEUEINFO,
			unix.SYS_RT_TGSIGQUEUEINFO}, when{is(arg(0), uint32(process), uint32(-process), uint32(thread), allBits)}},
		// The descriptor of a process leads to its main thread, which is not under the rules; that of a thread does
		// not. The directory in /proc of a thread is such a descriptor.
		{fail(unix.EPERM), calls{unix.SYS_PIDFD_OPEN}, when{has(arg(1), unix.PIDFD_THREAD)}},
		{fail(unix.ENOSYS), calls{unix.SYS_PIDFD_SEND_SIGNAL}, nil},
		// Input can be announced to any thread by a signal, but only by one that does no harm (SIGIO).
		{fail(unix.EPERM), calls{unix.SYS_FCNTL}, when{is(arg(1), unix.F_SETSIG)}},
	}
}

func program(lists ...[]rule) []unix.SockFilter {
	code := slices.Concat(
		// The numbers of another kind, such as those of programs of 32 bits, mean other calls.
		answer(fail(unix.ENOSYS), isNot(arch, auditArch)), answer(fail(unix.ENOSYS), has(number, isX32)))
	for _, r := range slices.Concat(lists...) {
		code = append(code, answer(r.answer, append(when{is(number, r.calls...)}, r.when...)...)...)
	}
	return append(code, answer(unix.SECCOMP_RET_ALLOW)...)
}

// answer returns a program that answers a call if all conditions hold, and goes on behind if not.
func answer(answer uint32, all ...condition) []unix.SockFilter {
	code := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: answer}}
	for _, c := range slices.Backward(all) {
		test := []unix.SockFilter{{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: c.part.at},
			{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: c.part.mask}}
		for i, value := range c.values {
			// How many instructions are skipped where the comparison holds, and where it fails. The others are skipped
			// where it holds, and the code for the condition where that is not met. No rule is longer than 255.
			holds, fails := len(c.values)-1-i, 0
			if c.not {
				holds += len(code)
			} else if holds == 0 {
				fails = len(code)
			}
			test = append(test, unix.SockFilter{Code: unix.BPF_JMP | c.op | unix.BPF_K, K: value,
				Jt: uint8(holds), Jf: uint8(fails)})
		}
		code = append(test, code...)
	}
	return code
}

// FilterInNamespaces returns the filter of calls for programs with namespaces of their own, as bubblewrap reads it. It
// refuses what the filter beside Landlock refuses, but for what namespaces confine. It is nil where there is none for
// this kind of processor.
func FilterInNamespaces() []byte {
	var data []byte
	for _, f := range program(everywhere, inNamespaces) { // struct sock_filter of linux/filter.h
		data = binary.NativeEndian.AppendUint16(data, f.Code)
		data = binary.NativeEndian.AppendUint32(append(data, f.Jt, f.Jf), f.K)
	}
	return data
}
