package git

import "syscall"

// newAttributes is as on Linux. This system cannot end git when muster dies, so such a git ends by itself.
func newAttributes(bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
