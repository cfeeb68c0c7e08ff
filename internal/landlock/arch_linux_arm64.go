package landlock

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_AARCH64
	isX32     = 0 // it has none
)

var olderCalls map[uint32]attributeCall // it has none
