//go:build !linux

package git

import (
	"syscall"

	"muster/internal/proc"
)

// newAttributes is as on Linux. This system cannot end git when muster dies, so such a git ends by itself.
func newAttributes(bool) *syscall.SysProcAttr { return proc.NewSession() }
