package landlock

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_X86_64
	isX32     = 0x40000000 // the bit of calls of programs with pointers of 32 bits (__X32_SYSCALL_BIT)
)

// These are calls that only this kind of processor has.
var olderCalls = map[uint32]attributeCall{
	unix.SYS_CHMOD:     {dir: -1, path: 0, flags: -1, change: chmod(1)},
	unix.SYS_CHOWN:     {dir: -1, path: 0, flags: -1, change: chown(1)},
	unix.SYS_LCHOWN:    {dir: -1, path: 0, flags: -1, isOnLink: true, change: chown(1)},
	unix.SYS_UTIME:     {dir: -1, path: 0, flags: -1, change: setTimes(1, 1, 0)},
	unix.SYS_UTIMES:    {dir: -1, path: 0, flags: -1, change: setTimes(1, 2, 1000)},
	unix.SYS_FUTIMESAT: {dir: 0, path: 1, flags: -1, mayLackPath: true, change: setTimes(2, 2, 1000)},
}

var (
	olderMakingCalls = []modeCall{{unix.SYS_OPEN, 2, 1}, {unix.SYS_CREAT, 1, -1}, {unix.SYS_MKNOD, 1, -1}}
	olderChmods      = []modeCall{{unix.SYS_CHMOD, 1, -1}}
)
