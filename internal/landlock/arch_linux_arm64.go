package landlock

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_AARCH64
	isX32     = 0 // it has none
)

// olderCalls are calls that are asked about and that only this kind of processor has.
var olderCalls map[uintptr]attributeCall
