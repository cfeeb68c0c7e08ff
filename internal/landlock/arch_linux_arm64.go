package landlock

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_AARCH64
	isX32     = 0 // it has none
)

// withOlderCalls adds nothing: this kind of processor has no other calls.
func withOlderCalls(all map[uint32]attributeCall) map[uint32]attributeCall { return all }
