package landlock

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_AARCH64
	isX32     = 0 // it has none
)

// It has none of the older calls.
var (
	olderCalls                    map[uint32]attributeCall
	olderMakingCalls, olderChmods []modeCall
)
