package workspace

import "golang.org/x/sys/unix"

// parent returns the parent of a process, or 0 when it is not known.
func parent(pid int) int {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil {
		return 0
	}
	return int(info.Eproc.Ppid)
}
