package landlock

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_X86_64
	isX32     = 0x40000000 // the bit of calls of programs with pointers of 32 bits (__X32_SYSCALL_BIT)
)

// Only this kind of processor has the older calls.
func init() {
	attributeCalls[unix.SYS_CHMOD] = attributeCall{dir: -1, path: 0, flags: -1, change: chmod(1)}
	attributeCalls[unix.SYS_CHOWN] = attributeCall{dir: -1, path: 0, flags: -1, change: chown(1)}
	attributeCalls[unix.SYS_LCHOWN] = attributeCall{dir: -1, path: 0, flags: -1, isOnLink: true, change: chown(1)}
	attributeCalls[unix.SYS_UTIME] = attributeCall{dir: -1, path: 0, flags: -1, change: setTimes(1, 8, seconds)}
	attributeCalls[unix.SYS_UTIMES] = attributeCall{dir: -1, path: 0, flags: -1, change: setTimes(1, 16, timeval)}
	attributeCalls[unix.SYS_FUTIMESAT] = attributeCall{dir: 0, path: 1, flags: -1, mayLackPath: true,
		change: setTimes(2, 16, timeval)}
}

// seconds reads a time_t.
func seconds(data []byte) unix.Timespec { return unix.Timespec{Sec: word(data)} }

// timeval reads a struct timeval.
func timeval(data []byte) unix.Timespec {
	return unix.Timespec{Sec: word(data), Nsec: word(data[8:]) * 1000}
}
