package cli

import "golang.org/x/sys/unix"

// parent is the parent of a process, 0 when it is not known.
func parent(pid int) int {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return 0
	}
	return int(info.Eproc.Ppid)
}
