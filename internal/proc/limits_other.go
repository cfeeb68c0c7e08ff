//go:build !linux

package proc

import "errors"

// ControlGroups returns an error: only Linux has control groups.
func ControlGroups() (processes, memory bool, err error) {
	return false, false, errors.New("this system has no control groups")
}
