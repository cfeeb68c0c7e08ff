package landlock

import (
	"maps"

	"golang.org/x/sys/unix"
)

const (
	auditArch = unix.AUDIT_ARCH_X86_64
	isX32     = 0x40000000 // the bit of calls of programs with pointers of 32 bits (__X32_SYSCALL_BIT)
)

// withOlderCalls adds the calls that only this kind of processor has.
func withOlderCalls(all map[uint32]attributeCall) map[uint32]attributeCall {
	maps.Copy(all, map[uint32]attributeCall{
		unix.SYS_CHMOD:     {dir: -1, path: 0, flags: -1, change: chmod(1)},
		unix.SYS_CHOWN:     {dir: -1, path: 0, flags: -1, change: chown(1)},
		unix.SYS_LCHOWN:    {dir: -1, path: 0, flags: -1, isOnLink: true, change: chown(1)},
		unix.SYS_UTIME:     {dir: -1, path: 0, flags: -1, change: setTimes(1, 8, seconds)},
		unix.SYS_UTIMES:    {dir: -1, path: 0, flags: -1, change: setTimes(1, 16, timeval)},
		unix.SYS_FUTIMESAT: {dir: 0, path: 1, flags: -1, mayLackPath: true, change: setTimes(2, 16, timeval)},
	})
	return all
}

// seconds reads a time_t.
func seconds(data []byte) unix.Timespec { return unix.Timespec{Sec: word(data)} }

// timeval reads a struct timeval.
func timeval(data []byte) unix.Timespec {
	return unix.Timespec{Sec: word(data), Nsec: word(data[8:]) * 1000}
}
