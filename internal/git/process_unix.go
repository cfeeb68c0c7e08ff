//go:build unix && !linux

package git

import "syscall"

// newAttributes keeps git out of the terminal's process group: a Ctrl-C is for muster, which lets git finish its last
// write. This system cannot end git when muster dies, so such a git ends by itself.
func newAttributes(bool) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
