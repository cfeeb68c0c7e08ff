//go:build !linux

package git

import (
	"errors"
	"syscall"

	"muster/internal/proc"
)

// newAttributes is as on Linux. This system cannot end git when muster dies, so such a git ends by itself.
func newAttributes(bool) *syscall.SysProcAttr { return proc.NewSession() }

// swap returns errors.ErrUnsupported here.
func swap(string, string) error { return errors.ErrUnsupported }
