package landlock

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_X86_64
	isX32     = 0x40000000 // the bit of calls of programs with pointers of 32 bits (__X32_SYSCALL_BIT)
)
